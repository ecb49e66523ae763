/* SPDX-License-Identifier: Apache-2.0 */
/* A process that writes what it likes into the whole cache, while we read: we may miss, and must neither crash nor read beyond (run it with ASan). */
#include "tests/unit/fastpath/table/cache_world.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "table/cache_layout.h"
#include "table/shm.h"

#define MIB (1u << 20)
#define NAMES 4000u

static struct cache_world world;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One change: octets anywhere; a slot's bits; a block's head, where slots aim. */
static void scribble(uint8_t *map, size_t bytes, const struct cache_geometry *g, uint64_t *random)
{
	uint64_t r = next_random(random), value = next_random(random);
	uint8_t *shard = map + CACHE_HEADER_BYTES + (r >> 8) % g->shards * g->shard_bytes;
	uint64_t *slots = (uint64_t *)(shard + g->slots_at), *words = (uint64_t *)(shard + g->logs_at);
	size_t slot = (r >> 20) % ((size_t)g->buckets * CACHE_BUCKET_SLOTS);
	switch (r % 8) {
	case 0: /* not magic, size and key, which are read once */ map[64 + (r >> 16) % (bytes - 64)] = (uint8_t)value; break;
	case 1: slots[slot] ^= 1ull << (value & 63); break;
	case 2: slots[slot] = slots[(slot + value) % ((size_t)g->buckets * CACHE_BUCKET_SLOTS)]; break;
	case 3:
		slots[slot] =
			(slots[slot] & ~UINT64_C(0xffffffff)) | (value & 1 ? g->units - value % 16 : value % (g->units + 16));
		break;
	default: {
		size_t place = (uint32_t)slots[slot];
		if (place + 16 < g->units)
			((uint8_t *)(words + place))[(value >> 8) % (r % 8 == 4 ? 32 : 128)] = (uint8_t)value;
		break;
	}
	}
}

static _Noreturn void scribble_forever(uint64_t random)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test end before it kills us */
	struct cache_geometry g;
	void *map;
	size_t bytes;
	if (shm_map_writable(&map, &bytes, world.cache_fd) != ERR_OK || !cache_geometry_of(&g, bytes))
		_exit(1);
	for (;;)
		scribble(map, bytes, &g, &random);
}

static void fill(void)
{
	for (unsigned i = 0; i < NAMES; i++) {
		struct cache_entries_want want = world_want(i);
		want.type = i % 9 == 0 ? 0 : 1, want.records = 1 + i % 5, want.signatures = i % 3 == 0,
		want.data_bytes = 4 + i % 50;
		world_store(&world, want);
	}
}

/* Everything a serving thread does. Returns what it found. */
static enum cache_result look(unsigned number)
{
	uint8_t wire[NAME_MAX_BYTES], offset[NAME_MAX_LABELS + 1];
	struct cache_entries_want want = world_want(number);
	struct cache_key key = cache_entries_key(wire, world.reader, &want);
	unsigned labels = name_labels(wire);
	for (unsigned i = 0; i <= labels; i++)
		offset[i] = (uint8_t)name_suffix_offset(wire, i);
	cache_prefetch_bucket(world.reader, key.hash);
	cache_prefetch_entry(world.reader, &key);
	enum cache_result result = cache_read(world.reader, &key, NOW_S, world.scratch, &world.hit);
	if (result == CACHE_MISS)
		result = cache_read_cut(world.reader, &key, offset, labels, NOW_S, world.scratch, &world.hit);
	if (result == CACHE_MISS)
		return result;
	struct cache_entry *copy = malloc(world.hit.entry->bytes); /* so that ASan knows where it ends */
	memcpy(copy, world.hit.entry, world.hit.entry->bytes);
	cr_assert(cache_entry_check(copy, copy->bytes));
	cache_entries_use(copy);
	free(copy);
	cache_mark(cache_reader_marks(world.reader, 0), world.hit.slot);
	return result;
}

Test(cache_hostile, readers_of_a_cache_that_somebody_else_scribbles_in, .timeout = 60)
{
	uint64_t found = 0, missed = 0;
	world_open(&world, 2 * MIB);
	fill();
	struct cache_reader *reader;
	cr_assert_eq(cache_reader_attach(&reader, world.cache_fd, world.marks_fd), ERR_OK);
	cache_writer_detach(world.writer);
	world.reader = reader;
	for (unsigned round = 0; round < 20; round++) {
		pid_t child = fork();
		if (child == 0)
			scribble_forever(round * 1234567 + 1);
		for (unsigned i = 0; i < 4000; i++)
			*(look(i * 31 % NAMES) == CACHE_MISS ? &missed : &found) += 1;
		cr_assert_eq(kill(child, SIGKILL), 0);
		cr_assert_eq(waitpid(child, NULL, 0), child);
		/* The next writer takes it as it is, and makes a cache of it. */
		struct cache_writer *w;
		cr_assert_eq(cache_writer_attach(&w, world.cache_fd, world.marks_fd), ERR_OK);
		world.writer = w, world.reader = cache_writer_reader(w);
		for (unsigned i = 0; i < NAMES; i++)
			look(i);
		cache_remove_tree(w, 0, (const uint8_t *)"", 1);
		cache_remove_tree(w, 1, (const uint8_t *)"", 1);
		for (unsigned i = 0; i < CACHE_PARTITIONS; i++) /* the epochs are whatever he wrote */
			atomic_store(&((struct cache_header *)world.reader->map)->epoch[i], 0);
		fill();
		cr_assert_eq(look(NAMES - 2), CACHE_HIT);
		cache_writer_detach(w);
		world.reader = reader;
	}
	cr_expect_gt(found, 1000u);
	cr_expect_gt(missed, 1000u);
	cache_reader_detach(reader);
	close(world.cache_fd);
	close(world.marks_fd);
}

/* The writer trusts nobody either: memory that changes under it costs content, nothing else. */
Test(cache_hostile, a_writer_in_a_cache_that_somebody_else_scribbles_in, .timeout = 60)
{
	uint64_t random = 3;
	world_open(&world, MIB);
	for (unsigned i = 0; i < 60000; i++) {
		struct cache_entries_want want = world_want(i % 15000);
		want.data_bytes = i % 100 == 0 ? 900 : 4 + i % 40;
		cr_assert_eq(world_try_store(&world, want), ERR_OK);
		if (i % 3 == 0)
			scribble(world.reader->map, world.reader->map_bytes, &world.reader->g, &random);
		look(i % 15000);
		if (i % 1000 == 0)
			cache_remove_tree(world.writer, 0, (const uint8_t *)"\7example", 9);
	}
	world_close(&world);
}
