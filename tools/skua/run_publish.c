/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_publish.h"

#include "table/shm.h"
#include "table/zone_set.h"

#include <stdlib.h>
#include <unistd.h>

void run_publish_init(struct run_publish *p) { *p = (struct run_publish){ .map_fd = -1 }; }

void run_publish_fini(struct run_publish *p)
{
	for (size_t i = 0; i < p->count; i++)
		close(p->segment_[i].fd);
	if (p->map_fd >= 0)
		close(p->map_fd);
	free(p->segment_);
	run_publish_init(p);
}

/* Index of the first segment with at least this id. */
static size_t lower_bound(const struct run_publish *p, uint32_t id)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (p->segment_[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

enum err run_publish_segment(struct run_publish *p, uint32_t id, int fd)
{
	size_t at = lower_bound(p, id);

	if (at < p->count && p->segment_[at].id == id)
		return ERR_EXISTS;
	if (p->count >= ZONE_SET_MAX_SEGMENTS)
		return ERR_NOSPACE;
	if (!shm_is_sealed(fd, true))
		return ERR_DENIED;
	if (p->count == p->capacity_) {
		size_t capacity = p->capacity_ ? 2 * p->capacity_ : 16;
		struct run_segment *grown = realloc(p->segment_, capacity * sizeof *grown);
		if (!grown)
			return ERR_NOMEM;
		p->segment_ = grown;
		p->capacity_ = capacity;
	}
	memmove(p->segment_ + at + 1, p->segment_ + at, (p->count - at) * sizeof *p->segment_);
	p->segment_[at] = (struct run_segment){ .id = id, .fd = fd, .after_generation = p->generation };
	p->count++;
	/* An id that was in use before: the map may name it, and have been verified over other memory. */
	if (id <= p->highest_id)
		p->map_verified = 0;
	p->highest_id = MAX(p->highest_id, id);
	return ERR_OK;
}

enum err run_publish_map(struct run_publish *p, uint64_t generation, int fd)
{
	struct zone_map header;

	if (!shm_is_sealed(fd, true))
		return ERR_DENIED;
	if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header || header.magic != ZONE_MAP_MAGIC ||
	    header.version != ZONE_MAP_VERSION || header.generation != generation || generation <= p->generation)
		return ERR_CORRUPT;
	if (p->map_fd >= 0)
		close(p->map_fd);
	p->map_fd = fd;
	p->generation = generation;
	p->zone_count = header.zone_count;
	p->map_verified = 0;
	return ERR_OK;
}

void run_publish_live(struct run_publish *p, unsigned part, uint64_t generation)
{
	if (generation != p->generation || !generation)
		return;
	p->map_verified |= 1u << part;
	for (size_t i = 0; i < p->count; i++)
		if (p->segment_[i].after_generation < generation)
			p->segment_[i].verified |= 1u << part;
}

void run_publish_forget(struct run_publish *p, unsigned part)
{
	p->map_verified &= ~(1u << part);
	for (size_t i = 0; i < p->count; i++)
		p->segment_[i].verified &= ~(1u << part);
}

enum err run_publish_drop(struct run_publish *p, uint32_t id)
{
	size_t at = lower_bound(p, id);

	if (at == p->count || p->segment_[at].id != id)
		return ERR_NOTFOUND;
	close(p->segment_[at].fd);
	memmove(p->segment_ + at, p->segment_ + at + 1, (p->count - at - 1) * sizeof *p->segment_);
	p->count--;
	return ERR_OK;
}
