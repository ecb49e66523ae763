/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/fastpath.h"

#include "base/log.h"
#include "table/shm.h"

#include <stdlib.h>
#include <unistd.h>

void zones_init(struct zones *z)
{
	memset(z, 0, sizeof(*z));
	settings_defaults(&z->settings);
}

void zones_fini(struct zones *z)
{
	snapshot_publish(&z->holder, NULL);
	for (size_t i = 0; i < z->segment_count; i++)
		segment_put(z->segment[i]);
	z->segment_count = 0;
	policy_detach(z->policy);
	z->policy = NULL;
}

static enum err publish(struct zones *z, struct zone_set *take)
{
	struct snapshot *snapshot;
	uint64_t generation = zone_set_generation(take);
	uint32_t zone_count = zone_set_zones(take);
	enum err err = snapshot_create(&snapshot, take, &z->settings);

	if (err) {
		zone_set_release(take);
		return err;
	}
	snapshot->policy = z->policy;
	snapshot->cache = z->cache;
	snapshot_publish(&z->holder, snapshot);
	z->generation = generation;
	z->zone_count = zone_count;
	return ERR_OK;
}

enum err zones_start_empty(struct zones *z)
{
	struct zone_set *empty;
	enum err err;

	if (z->holder.current_)
		return ERR_OK;
	err = zone_set_empty(&empty);
	return err ? err : publish(z, empty);
}

/* The same zones with other settings: the set is shared, its references are counted. */
static enum err republish(struct zones *z)
{
	const struct snapshot *now = snapshot_acquire(&z->holder);
	struct zone_set *set;

	if (!now)
		return ERR_OK;
	set = zone_set_get(now->zones);
	return publish(z, set);
}

enum err zones_settings(struct zones *z, int fd)
{
	const void *bytes;
	size_t size_bytes;
	const char *why = "cannot be mapped";
	enum err err = shm_is_sealed(fd, true) ? shm_map(&bytes, &size_bytes, fd) : ERR_DENIED;

	close(fd);
	if (!err) {
		err = settings_load(&z->settings, bytes, size_bytes, &why);
		shm_unmap(bytes, size_bytes);
	}
	if (!err)
		err = republish(z);
	if (err)
		log_write(M_XDP_ZONES_BAD, "settings refused: %s (%s)", err_text(err), why);
	return err;
}

enum err zones_cache(struct zones *z, const struct cache_reader *cache)
{
	z->cache = cache;
	return republish(z);
}

enum err zones_policy(struct zones *z, int fd)
{
	const char *why = "no memory";
	struct policy *policy, *old = z->policy;
	enum err err = policy_attach(&policy, fd, &why);

	close(fd);
	if (!err) {
		z->policy = policy;
		err = republish(z);
		if (err)
			z->policy = old;
		policy_detach(err ? policy : old);
	}
	if (err)
		log_write(M_SHARED_BAD, "the policy: %s: %s", err_text(err), why);
	return err;
}

enum err zones_segment(struct zones *z, uint32_t id, int fd, bool is_verified)
{
	const char *why = "too many segments";
	enum err err = z->segment_count < ARRAY_LEN(z->segment) ? ERR_OK : ERR_NOSPACE;
	struct segment *s = NULL;

	if (!err)
		err = is_verified ? segment_attach_verified(&s, fd, &why) : segment_attach(&s, fd, &why);
	close(fd);
	if (!err && segment_id(s) != id) {
		why = "its id is not the announced one";
		err = ERR_CORRUPT;
	}
	if (err) {
		log_write(M_XDP_ZONES_BAD, "segment %u refused: %s (%s)", id, why ? why : "", err_text(err));
		if (s)
			segment_put(s);
		return err;
	}
	z->segment[z->segment_count++] = s;
	return ERR_OK;
}

void zones_segment_drop(struct zones *z, uint32_t id)
{
	for (size_t i = 0; i < z->segment_count; i++)
		if (segment_id(z->segment[i]) == id) {
			segment_put(z->segment[i]);
			z->segment[i] = z->segment[--z->segment_count];
			return;
		}
}

enum err zones_map(struct zones *z, uint64_t generation, int fd, bool is_verified)
{
	const char *why = NULL;
	struct zone_set *set;
	const struct snapshot *now = snapshot_acquire(&z->holder);
	enum err err = is_verified ? zone_set_attach_verified(&set, fd, z->segment, z->segment_count, &why)
				   : zone_set_attach_after(&set, now ? now->zones : NULL, fd, z->segment, z->segment_count, &why);

	close(fd);
	if (!err && zone_set_generation(set) != generation) {
		zone_set_release(set);
		why = "its generation is not the announced one";
		err = ERR_CORRUPT;
	}
	if (!err)
		err = publish(z, set);
	if (err)
		log_write(M_XDP_ZONES_BAD, "zone map %llu refused: %s (%s)", (unsigned long long)generation, why ? why : "",
			  err_text(err));
	else
		log_write(M_XDP_ZONES, "zone set %llu is live: %u zones in %zu segments", (unsigned long long)z->generation,
			  z->zone_count, z->segment_count);
	return err;
}
