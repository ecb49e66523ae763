/* SPDX-License-Identifier: Apache-2.0 */
/* cache_world.h: for the tests of the answer cache: one cache with a writer and marks, names by number, and what must hold whatever was done. */
#pragma once
#include "tests/unit/lib/cache_entries.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOW_S 0x01000000u

struct cache_world {
	int cache_fd, marks_fd;
	struct cache_writer *writer;
	struct cache_reader *reader;
	struct cache_hit hit;
	struct cache_entries_room room;
	uint64_t scratch[CACHE_SCRATCH_WORDS];
};

static inline void world_open(struct cache_world *w, uint64_t bytes)
{
	cr_assert_eq(cache_create(&w->cache_fd, bytes), ERR_OK);
	cr_assert_eq(cache_marks_create(&w->marks_fd, w->cache_fd, 2), ERR_OK);
	cr_assert_eq(cache_writer_attach(&w->writer, w->cache_fd, w->marks_fd), ERR_OK);
	w->reader = cache_writer_reader(w->writer);
}
static inline void world_close(struct cache_world *w)
{
	cache_writer_detach(w->writer);
	close(w->cache_fd);
	close(w->marks_fd);
}

/* n<number>.example. */
static inline const char *world_name(unsigned number)
{
	static char name[32];
	snprintf(name, sizeof(name), "n%u.example.", number);
	return name;
}
static inline struct cache_entries_want world_want(unsigned number)
{
	return (struct cache_entries_want){
		.name = world_name(number), .type = 1, .stored_s = NOW_S, .ttl_s = 3600, .seed = number
	};
}

static inline enum err world_try_store(struct cache_world *w, struct cache_entries_want want)
{
	return cache_store(w->writer, cache_entries_make(&w->room, w->reader, &want));
}
static inline void world_store(struct cache_world *w, struct cache_entries_want want)
{
	cr_assert_eq(world_try_store(w, want), ERR_OK);
}
static inline enum cache_result world_ask_at(struct cache_world *w, struct cache_entries_want want, uint32_t now_s)
{
	uint8_t wire[NAME_MAX_BYTES];
	struct cache_key key = cache_entries_key(wire, w->reader, &want);
	enum cache_result result = cache_read(w->reader, &key, now_s, w->scratch, &w->hit);
	if (result != CACHE_MISS) {
		cr_assert(cache_entries_is_true(w->hit.entry), "%s", want.name);
		cr_assert_eq(w->hit.entry->hash, key.hash);
	}
	return result;
}
static inline enum cache_result world_ask(struct cache_world *w, struct cache_entries_want want)
{
	return world_ask_at(w, want, NOW_S);
}
/* Reads it n times, as a serving thread would. */
static inline void world_read(struct cache_world *w, unsigned number, unsigned times)
{
	while (times-- > 0) {
		cr_assert_eq(world_ask(w, world_want(number)), CACHE_HIT);
		cache_mark(cache_reader_marks(w->reader, 0), w->hit.slot);
	}
}
static inline struct cache_stats world_stats(const struct cache_world *w)
{
	struct cache_stats stats;
	cache_writer_stats(w->writer, &stats);
	return stats;
}

/* What must hold whatever was done: all that the logs hold can be read, is whole, and was counted. */
struct world_count {
	struct cache_world *world;
	uint64_t entries;
};
static inline bool world_count_entry(void *user, const struct cache_entry *e)
{
	struct world_count *count = user;
	struct cache_world *w = count->world;
	struct cache_key key = { .name = cache_entry_name(e),
				 .hash = e->hash,
				 .type = e->type,
				 .partition = e->partition,
				 .name_bytes = e->name_bytes,
				 .is_cd = e->flags & CACHE_F_CD };
	cr_assert(cache_entries_is_true(e));
	bool is_outdated = (int32_t)(e->epoch - cache_epoch(w->reader, e->partition)) < 0;
	enum cache_result wanted = is_outdated ? CACHE_MISS : NOW_S < e->expire_s ? CACHE_HIT : CACHE_EXPIRED;
	cr_assert_eq(cache_read(w->reader, &key, NOW_S, w->scratch, &w->hit), wanted);
	if (!is_outdated)
		cr_assert(cache_entries_are_equal(w->hit.entry, e));
	count->entries++;
	return true;
}
static inline void world_check(struct cache_world *w)
{
	struct cache_stats stats = world_stats(w);
	struct world_count count = { .world = w };
	for (unsigned i = 0; i < cache_writer_shards(w->writer); i++)
		cache_walk(w->writer, i, world_count_entry, &count);
	cr_assert_eq(count.entries, stats.entries);
	cr_assert_leq(stats.entries, stats.slots);
	cr_assert_leq(stats.entry_bytes, stats.small_bytes + stats.main_bytes);
	cr_assert_leq(stats.small_bytes + stats.main_bytes, stats.size_bytes);
	cr_assert_eq(stats.entries == 0, stats.entry_bytes == 0);
	cr_assert_eq(stats.resets, 0);
}
