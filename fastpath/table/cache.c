/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the cache's memory and maps it for readers. Layout: cache_layout.h. */
#include "table/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/cache_layout.h"
#include "table/shm.h"

#define MARKS_MAGIC 0x4b52414du
#define MARKS_HEADER_BYTES 4096u
#define MARKS_MAX_READERS 1024u
#define PAGE_BYTES 4096u
#define SHARD_ALIGN 4096u

struct marks_header {
	uint32_t magic, readers;
	uint64_t stride; /* from array to array */
};

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

bool cache_geometry_of(struct cache_geometry *out, uint64_t size_bytes)
{
	const size_t slots = CACHE_BUCKET_SLOTS * sizeof(uint64_t), logs = CACHE_BUCKET_SLOTS * CACHE_SLOT_LOG_BYTES;
	const size_t ghosts = logs / CACHE_GHOST_LOG_BYTES * sizeof(uint16_t), set = CACHE_GHOST_WAYS * sizeof(uint16_t);
	struct cache_geometry g = { .shards = 1 };

	if (size_bytes < CACHE_MIN_BYTES || size_bytes > SIZE_MAX / 2)
		return false;
	while (g.shards < CACHE_MAX_SHARDS && size_bytes / (g.shards * 2) >= CACHE_SHARD_MIN_BYTES)
		g.shards *= 2;
	g.shard_bytes = (size_bytes - CACHE_HEADER_BYTES) / g.shards / SHARD_ALIGN * SHARD_ALIGN;
	/* A page less than there is: parts are rounded up. */
	size_t buckets = (g.shard_bytes - CACHE_SHARD_HEAD_BYTES - PAGE_BYTES) / (slots + logs + ghosts);
	g.buckets = (uint32_t)buckets;
	g.ghost_sets = (uint32_t)(buckets * ghosts / set);
	g.slots_at = CACHE_SHARD_HEAD_BYTES;
	g.ghosts_at = g.slots_at + buckets * slots;
	g.logs_at = round_up(g.ghosts_at + g.ghost_sets * set, CACHE_LINE);
	size_t units = (g.shard_bytes - g.logs_at) / CACHE_UNIT - 1;
	if (units > UINT32_MAX)
		return false;
	g.units = (uint32_t)units;
	g.log_units[CACHE_SMALL] = g.units / CACHE_SMALL_PART;
	g.log_units[CACHE_MAIN] = g.units - g.log_units[CACHE_SMALL];
	g.block_max_units = MIN(CACHE_ENTRY_MAX_BYTES / CACHE_UNIT, g.log_units[CACHE_SMALL] / 4);
	g.main_reserve_units = 2 * g.block_max_units;
	*out = g;
	return true;
}

static size_t marks_stride_of(const struct cache_geometry *g)
{
	return round_up((size_t)g->shards * g->buckets * CACHE_BUCKET_SLOTS, PAGE_BYTES);
}

/* --- making ---------------------------------------------------------------------------------------------------------- */

static enum err random_key(uint64_t key[2])
{
	for (size_t done = 0; done < 2 * sizeof(*key);) {
		ssize_t n = getrandom((uint8_t *)key + done, 2 * sizeof(*key) - done, 0);

		if (n < 0 && errno != EINTR)
			return err_from_errno(errno);
		done += n > 0 ? (size_t)n : 0;
	}
	key[1] |= 1; /* a factor */
	return ERR_OK;
}

static enum err write_header(int fd, const void *header, size_t header_bytes)
{
	void *map;
	size_t map_bytes;
	enum err err = shm_map_sparse(&map, &map_bytes, fd);

	if (err != ERR_OK)
		return err;
	memcpy(map, header, header_bytes);
	shm_unmap(map, map_bytes);
	return fchmod(fd, S_IRUSR | S_IWUSR) < 0 ? err_from_errno(errno) : ERR_OK;
}

static enum err create_with_header(int *fd, const char *label, size_t size_bytes, const void *header, size_t header_bytes)
{
	int made;
	enum err err = shm_create(&made, label, size_bytes);

	if (err != ERR_OK)
		return err;
	err = write_header(made, header, header_bytes);
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	*fd = made;
	return ERR_OK;
}

enum err cache_create(int *fd, uint64_t size_bytes)
{
	struct cache_geometry g;
	struct cache_header h = { .magic = CACHE_MAGIC, .version = CACHE_VERSION };

	size_bytes = size_bytes / PAGE_BYTES * PAGE_BYTES;
	if (!cache_geometry_of(&g, size_bytes))
		return ERR_RANGE;
	h.size_bytes = size_bytes;
	enum err err = random_key(h.hash_key);
	if (err != ERR_OK)
		return err;
	return create_with_header(fd, "skua-cache", size_bytes, &h, sizeof(h));
}

enum err cache_reopen_read_only(int *fd, int cache_fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", cache_fd);
	int opened = open(path, O_RDONLY | O_CLOEXEC);
	if (opened < 0)
		return err_from_errno(errno);
	*fd = opened;
	return ERR_OK;
}

enum err cache_marks_create(int *fd, int cache_fd, unsigned readers)
{
	struct cache_geometry g;
	struct stat st;

	if (readers < 1 || readers > MARKS_MAX_READERS)
		return ERR_RANGE;
	if (fstat(cache_fd, &st) < 0)
		return err_from_errno(errno);
	if (st.st_size <= 0 || !cache_geometry_of(&g, (uint64_t)st.st_size))
		return ERR_CORRUPT;
	struct marks_header h = { .magic = MARKS_MAGIC, .readers = readers, .stride = marks_stride_of(&g) };
	return create_with_header(fd, "skua-cache-marks", MARKS_HEADER_BYTES + readers * h.stride, &h, sizeof(h));
}

/* --- attaching -------------------------------------------------------------------------------------------------------- */

enum err cache_reader_init(struct cache_reader *r, void *map, size_t map_bytes)
{
	const struct cache_header *h = map;

	memset(r, 0, sizeof(*r));
	if (!cache_geometry_of(&r->g, map_bytes) || h->magic != CACHE_MAGIC || h->version != CACHE_VERSION ||
	    h->size_bytes != map_bytes)
		return ERR_CORRUPT;
	r->last_place = r->g.units - CACHE_BLOCK_LEAST_UNITS;
	r->map = map;
	r->map_bytes = map_bytes;
	r->shards = r->map + CACHE_HEADER_BYTES;
	r->hash_key[0] = h->hash_key[0];
	r->hash_key[1] = h->hash_key[1] | 1;
	return ERR_OK;
}

enum err cache_reader_init_marks(struct cache_reader *r, int marks_fd)
{
	void *map;
	size_t map_bytes;

	if (marks_fd < 0)
		return ERR_OK;
	if (!shm_is_sealed(marks_fd, false))
		return ERR_CORRUPT;
	enum err err = shm_map_writable(&map, &map_bytes, marks_fd);
	if (err != ERR_OK)
		return err;
	struct marks_header h;
	memcpy(&h, map, sizeof(h));
	if (map_bytes < MARKS_HEADER_BYTES || h.magic != MARKS_MAGIC || h.readers < 1 || h.readers > MARKS_MAX_READERS ||
	    h.stride != marks_stride_of(&r->g) || map_bytes != MARKS_HEADER_BYTES + h.readers * h.stride) {
		shm_unmap(map, map_bytes);
		return ERR_CORRUPT;
	}
	r->marks_map = map;
	r->marks_bytes = map_bytes;
	r->marks_readers = h.readers;
	r->marks_stride = h.stride;
	return ERR_OK;
}

void cache_reader_fini(struct cache_reader *r)
{
	shm_unmap(r->map, r->map_bytes);
	shm_unmap(r->marks_map, r->marks_bytes);
}

enum err cache_reader_attach(struct cache_reader **out, int cache_fd, int marks_fd)
{
	const void *map;
	size_t map_bytes;

	if (!shm_is_sealed(cache_fd, false))
		return ERR_CORRUPT;
	struct cache_reader *r = malloc(sizeof(*r));
	if (!r)
		return ERR_NOMEM;
	enum err err = shm_map(&map, &map_bytes, cache_fd);
	if (err != ERR_OK)
		goto free_reader;
	err = cache_reader_init(r, (void *)(uintptr_t)map, map_bytes);
	if (err == ERR_OK)
		err = cache_reader_init_marks(r, marks_fd);
	if (err != ERR_OK)
		goto unmap;
	*out = r;
	return ERR_OK;
unmap:
	shm_unmap(map, map_bytes);
free_reader:
	free(r);
	return err;
}

void cache_reader_detach(struct cache_reader *r)
{
	if (!r)
		return;
	cache_reader_fini(r);
	free(r);
}

uint8_t *cache_reader_marks(struct cache_reader *r, unsigned i)
{
	return i < r->marks_readers ? r->marks_map + MARKS_HEADER_BYTES + i * r->marks_stride : NULL;
}
