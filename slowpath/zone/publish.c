/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/publish.h"
#include "base/clock.h"
#include "slowpath/zone/publish_private.h"
#include "table/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define SEND_TIMEOUT_MS 10000 /* the supervisor reads all the time; one that does not is lost */

enum err publisher_create(struct publisher **out, int link, struct snapshot_holder *holder, const struct settings *settings)
{
	struct publisher *p = calloc(1, sizeof(*p));
	pthread_condattr_t monotonic;
	if (!p)
		return ERR_NOMEM;
	*p = (struct publisher){ .link = link, .holder = holder, .settings = *settings, .next_segment_id = 1 };
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&p->live_changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = p;
	return ERR_OK;
}

void publisher_destroy(struct publisher *p)
{
	if (!p)
		return;
	publisher_drop_adopted(p);
	free(p->orphan);
	zone_set_release(p->zones);
	policy_detach(p->policy);
	pthread_cond_destroy(&p->live_changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

uint32_t *publisher_segment_id(struct publisher *p) { return &p->next_segment_id; }
uint64_t publisher_generation(const struct publisher *p) { return p->generation; }
uint32_t publisher_zones(const struct publisher *p) { return p->zones ? zone_set_zones(p->zones) : 0; }

/* --- to the supervisor ---------------------------------------------------------------------------------------------- */

enum err publisher_tell(struct publisher *p, struct link_msg message, int fd)
{
	if (p->link < 0)
		return ERR_OK;
	uint64_t until_ns = clock_mono_ns() + SEND_TIMEOUT_MS * 1000000ull;
	enum err err;
	while ((err = link_send(p->link, &message, fd)) == ERR_AGAIN && clock_mono_ns() < until_ns) {
		/* A full queue, or too many descriptors in flight, for which there is nothing to poll. */
		struct pollfd writable = { .fd = p->link, .events = POLLOUT };
		if (poll(&writable, 1, 100) == 1)
			poll(NULL, 0, 2);
	}
	return err;
}

enum err publisher_drop(struct publisher *p, uint32_t segment_id)
{
	return publisher_tell(p, (struct link_msg){ .type = LINK_SEGMENT_DROP, .a = segment_id }, -1);
}

void publisher_note_live(struct publisher *p, uint32_t part, uint64_t generation)
{
	if (part >= LINK_PART_COUNT_)
		return;
	pthread_mutex_lock(&p->lock);
	p->live[part] = generation;
	pthread_cond_broadcast(&p->live_changed);
	pthread_mutex_unlock(&p->lock);
}

static bool is_live(const struct publisher *p, uint64_t generation)
{
	for (unsigned i = 0; i < LINK_PART_COUNT_; i++)
		if (p->live[i] < generation)
			return false;
	return true;
}

bool publisher_wait_live(struct publisher *p, uint64_t generation, unsigned timeout_ms)
{
	if (p->link < 0)
		return true;
	uint64_t until_ns = clock_mono_ns() + timeout_ms * 1000000ull;
	struct timespec until = { (time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000) };
	int r = 0;
	pthread_mutex_lock(&p->lock);
	while (!is_live(p, generation) && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&p->live_changed, &p->lock, &until);
	bool live = is_live(p, generation);
	pthread_mutex_unlock(&p->lock);
	return live;
}

/* --- this process --------------------------------------------------------------------------------------------------- */

/* Under the lock: two publications must not pass each other. What waits for it meanwhile can wait. Takes the reference to zones. */
static enum err publish_snapshot(struct publisher *p, struct zone_set *take, const struct settings *settings,
				 const struct policy *policy)
{
	struct snapshot *s;
	enum err err = snapshot_create(&s, take, settings);
	if (err != ERR_OK) {
		zone_set_release(take);
		return err;
	}
	s->policy = policy;
	s->cache = p->cache;
	snapshot_publish(p->holder, s);
	return ERR_OK;
}

enum err publisher_serve(struct publisher *p, struct zone_set *take)
{
	struct zone_set *old = NULL;
	pthread_mutex_lock(&p->lock);
	enum err err = publish_snapshot(p, zone_set_get(take), &p->settings, p->policy);
	if (err == ERR_OK) {
		old = p->zones;
		p->zones = take;
		p->generation = zone_set_generation(take);
	}
	pthread_mutex_unlock(&p->lock);
	zone_set_release(old);
	return err;
}

enum err publisher_settings(struct publisher *p, const struct settings *settings)
{
	enum err err = ERR_OK;
	pthread_mutex_lock(&p->lock);
	p->settings = *settings;
	if (p->zones)
		err = publish_snapshot(p, zone_set_get(p->zones), settings, p->policy);
	pthread_mutex_unlock(&p->lock);
	return err;
}

enum err publisher_policy(struct publisher *p, struct policy *take)
{
	struct policy *old = NULL;
	enum err err = ERR_OK;
	pthread_mutex_lock(&p->lock);
	if (p->zones)
		err = publish_snapshot(p, zone_set_get(p->zones), &p->settings, take);
	if (err == ERR_OK) {
		old = p->policy;
		p->policy = take;
	}
	pthread_mutex_unlock(&p->lock);
	policy_detach(old);
	return err;
}

void publisher_cache(struct publisher *p, const struct cache_reader *cache) { p->cache = cache; }

/* --- a new map ------------------------------------------------------------------------------------------------------ */

static enum err add_zones(struct zone_map_build *b, const struct zone_store *store)
{
	enum err err = ERR_OK;
	for (uint32_t i = 0; i < zone_store_zones(store) && err == ERR_OK; i++) {
		const struct zone_item *item = zone_store_item(store, i);
		if (item->segment && !item->is_unchecked)
			err = zone_map_build_add(b, item->name, item->segment->id, item->offset_bytes, 0);
		else
			err = zone_map_build_add_unusable(b, item->name);
	}
	return err;
}

#define MAP_LABEL "skua-zone-map"

static enum err finish_map(int fd, struct zone_map_build *b)
{
	void *map;
	size_t bytes;
	enum err err = shm_map_writable(&map, &bytes, fd);
	if (err != ERR_OK)
		return err;
	err = zone_map_build_finish(b, map);
	shm_unmap(map, bytes);
	return err;
}

/* Takes fd. */
static enum err seal_map(int *out, int fd, enum err err)
{
	if (err == ERR_OK)
		err = shm_seal(fd);
	if (err != ERR_OK) {
		close(fd);
		return err;
	}
	*out = fd;
	return ERR_OK;
}

static enum err build_map(int *fd, const struct zone_store *store, uint64_t generation)
{
	struct zone_map_build *b;
	int made;
	enum err err = zone_map_build_create(&b, generation);
	if (err != ERR_OK)
		return err;
	err = add_zones(b, store);
	if (err == ERR_OK)
		err = shm_create(&made, MAP_LABEL, zone_map_build_bytes(b));
	if (err == ERR_OK)
		err = seal_map(fd, made, finish_map(made, b));
	zone_map_build_destroy(b);
	return err;
}

static enum err write_changes(int fd, const struct zone_store *store, uint64_t generation)
{
	void *out;
	size_t bytes;
	enum err err = shm_map_sparse(&out, &bytes, fd);
	if (err != ERR_OK)
		return err;
	zone_map_renew(out, generation);
	for (const struct zone_item *i = NULL; err == ERR_OK && (i = zone_store_next_changed(store, i));) {
		bool is_served = i->segment && !i->is_unchecked;
		struct zone_map_image image = { .image = (zone_ref)(i->offset_bytes / ZONE_REF_UNIT) };
		if (is_served)
			image.segment = i->segment->id;
		err = zone_map_change(out, i->name, is_served ? &image : NULL);
	}
	shm_unmap(out, bytes);
	return err;
}

/* The same zones as in the map before: its copy with some changes. Otherwise from the beginning. */
static enum err next_map(int *fd, const struct publisher *p, const struct zone_store *store, uint64_t generation)
{
	int made;
	size_t bytes;
	if (!p->zones || zone_store_is_reshaped(store))
		return build_map(fd, store, generation);
	const void *last = zone_set_map(p->zones, &bytes);
	enum err err = shm_create_copy(&made, MAP_LABEL, last, bytes);
	if (err == ERR_OK)
		err = seal_map(fd, made, write_changes(made, store, generation));
	return err == ERR_UNSUPPORTED ? build_map(fd, store, generation) : err;
}

static enum err attach(struct zone_set **out, const struct zone_set *before, int fd, const struct zone_store *store,
		       const char **why)
{
	size_t count = zone_store_segments(store);
	struct segment **segment = calloc(count + 1, sizeof(struct segment *));
	if (!segment)
		return ERR_NOMEM;
	for (size_t i = 0; i < count; i++)
		segment[i] = zone_store_segment(store, i)->segment;
	enum err err = zone_set_attach_after(out, before, fd, segment, count, why);
	free(segment);
	return err;
}

/* The new segments that the map names, then the map. */
static enum err tell_zones(struct publisher *p, struct zone_store *store, int map_fd, uint64_t generation)
{
	for (size_t i = 0; i < zone_store_segments(store); i++) {
		struct store_segment *s = zone_store_segment(store, i);
		if (s->is_published || s->live_zones == 0)
			continue;
		enum err err = publisher_tell(p, (struct link_msg){ .type = LINK_SEGMENT, .a = s->id }, s->fd);
		if (err != ERR_OK)
			return err;
		s->is_published = true;
		close(s->fd);
		s->fd = -1;
	}
	return publisher_tell(p, (struct link_msg){ .type = LINK_MAP, .generation = generation }, map_fd);
}

enum err publisher_publish(struct publisher *p, struct zone_store *store, uint64_t *generation, const char **why)
{
	int fd = -1;
	struct zone_set *zones = NULL;
	uint64_t next = p->generation + 1;
	*why = "there is not enough memory for the zone map";
	enum err err = next_map(&fd, p, store, next);
	if (err != ERR_OK)
		return err;
	err = attach(&zones, p->zones, fd, store, why);
	if (err == ERR_OK) {
		*why = "the supervisor does not take it";
		err = tell_zones(p, store, fd, next);
	}
	close(fd);
	if (err == ERR_OK) {
		*why = "there is not enough memory for the snapshot";
		err = publisher_serve(p, zones);
	}
	if (err != ERR_OK) {
		zone_set_release(zones);
		p->generation = next; /* the supervisor may have seen it: never use it again */
		return err;
	}
	zone_store_settle(store);
	*generation = next;
	return publisher_tell(p, (struct link_msg){ .type = LINK_LIVE, .a = LINK_PART_SLOWPATH, .generation = next }, -1);
}
