/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of cache.h as writers see it: storing, replacing, removing, who must leave. */
#include "tests/unit/fastpath/table/cache_world.h"

#include <sys/wait.h>
#include <time.h>

#include "table/cache_layout.h"

#define MIB (1u << 20)

static struct cache_world world;

static void open_small(void) { world_open(&world, MIB); }
static void close_world(void)
{
	world_check(&world);
	world_close(&world);
}
TestSuite(cache_write, .init = open_small, .fini = close_world);

/* --- what is refused ------------------------------------------------------------------------------------------------------ */

Test(cache_write, too_large_for_the_small_log)
{
	struct cache_entries_want want = world_want(1);
	want.data_bytes = 1500;
	unsigned records = 1;
	for (;; records++) {
		want.records = records;
		enum err err = world_try_store(&world, want);
		if (err == ERR_NOSPACE)
			break;
		cr_assert_eq(err, ERR_OK);
		cr_assert_eq(world_ask(&world, want), CACHE_HIT);
	}
	cr_expect_geq(records, 10u);
	cr_expect_leq(records, 20u, "a quarter of a tenth of a MiB");
	cr_expect_eq(world_stats(&world).too_large, 1);
	cr_assert_eq(world_ask(&world, want), CACHE_HIT, "what was there stays");
	cr_expect_eq(world.hit.entry->rr_count, records - 1);
}

Test(cache_write, what_is_no_entry_is_not_stored)
{
	struct cache_entries_want want = world_want(1);
	struct cache_entry *e = cache_entries_make(&world.room, world.reader, &want);
	e->rr_count = 2;
	cr_expect_eq(cache_store(world.writer, e), ERR_MALFORMED);
	e = cache_entries_make(&world.room, world.reader, &want);
	e->bytes = 8;
	cr_expect_eq(cache_store(world.writer, e), ERR_MALFORMED);
	e->bytes = CACHE_ENTRY_MAX_BYTES + 8;
	cr_expect_eq(cache_store(world.writer, e), ERR_NOSPACE);
	cr_expect_eq(world_stats(&world).entries, 0);
}

Test(cache_write, the_largest_entry)
{
	struct cache_world big;
	/* A shard of 3 MiB has room for any entry. */
	world_open(&big, 200 * MIB);
	struct cache_entries_want want = world_want(7);
	want.records = 8;
	want.data_bytes = (CACHE_ENTRY_MAX_BYTES - 200) / 8 - 20;
	for (unsigned i = 0; i < 200; i++) {
		want.seed = i;
		world_store(&big, want);
		cr_assert_eq(world_ask(&big, want), CACHE_HIT);
		cr_assert_eq(cache_entries_seed(big.hit.entry), i);
	}
	world_check(&big);
	world_close(&big);
}

/* --- who must leave ------------------------------------------------------------------------------------------------------- */

static unsigned store_many(unsigned begin, unsigned end)
{
	for (unsigned i = begin; i < end; i++)
		world_store(&world, world_want(i));
	return end;
}
static unsigned count_there(unsigned begin, unsigned end)
{
	unsigned there = 0;
	for (unsigned i = begin; i < end; i++)
		there += world_ask(&world, world_want(i)) == CACHE_HIT;
	return there;
}

Test(cache_write, nothing_is_lost_while_there_is_room)
{
	store_many(0, 10000);
	/* The hash key is random: now and then both buckets of a name are full. */
	cr_expect_eq(count_there(0, 10000) + world_stats(&world).no_slot, 10000);
	cr_expect_leq(world_stats(&world).no_slot, 20);
	cr_expect_eq(world_stats(&world).evicted, 0);
}

Test(cache_write, a_full_cache_keeps_what_was_read_twice)
{
	store_many(0, 5000);
	for (unsigned i = 0; i < 5000; i += 10)
		world_read(&world, i, 2);
	for (unsigned next = 5000; next < 100000;) {
		next = store_many(next, next + 5000);
		for (unsigned i = 0; i < 5000; i += 10)
			if (world_ask(&world, world_want(i)) == CACHE_HIT)
				cache_mark(cache_reader_marks(world.reader, 1), world.hit.slot);
	}
	unsigned popular = 0;
	for (unsigned i = 0; i < 5000; i += 10)
		popular += world_ask(&world, world_want(i)) == CACHE_HIT;
	cr_expect_geq(popular, 490u, "%u of 500 survived a scan of ten times the cache", popular);
	cr_expect_leq(count_there(5000, 90000), 11500u);
	cr_expect_gt(world_stats(&world).evicted, 80000u);
}

Test(cache_write, the_small_log_is_first_in_first_out)
{
	/* Main is full of what nobody gives up: everything in it was read. */
	unsigned next = store_many(0, 20000);
	for (unsigned i = 0; i < 20000; i++)
		if (world_ask(&world, world_want(i)) == CACHE_HIT)
			cache_mark(cache_reader_marks(world.reader, 0), world.hit.slot),
				cache_mark(cache_reader_marks(world.reader, 0), world.hit.slot);
	next = store_many(next, next + 5000);
	/* Some find no slot, and a few are taken for others that were evicted lately. */
	cr_expect_geq(count_there(next - 1000, next), 950u);
	cr_expect_leq(count_there(next - 5000, next - 1500), 100u);
}

Test(cache_write, what_comes_back_soon_goes_to_main)
{
	unsigned next = store_many(0, 30000), gone = next - 4000;
	uint64_t before = world_stats(&world).ghost_hits;
	cr_expect_leq(before, 30u, "fingerprints of 16 bits, among 16: a few are mistaken");
	while (world_ask(&world, world_want(gone)) == CACHE_HIT)
		gone++;
	world_store(&world, world_want(gone));
	cr_expect_eq(world_stats(&world).ghost_hits, before + 1);
	store_many(next, next + 5000);
	cr_expect_eq(world_ask(&world, world_want(gone)), CACHE_HIT);
}

/* Half of what lies in main has expired when others, that are read, need the room: those leave that have expired, though they were read too. */
Test(cache_write, the_expired_leave_first)
{
	for (unsigned i = 0; i < 11000; i++) {
		struct cache_entries_want want = world_want(i);
		want.ttl_s = i % 2 ? 10 : 3600;
		world_store(&world, want);
	}
	for (unsigned i = 0; i < 11000; i++)
		if (world_ask(&world, world_want(i)) == CACHE_HIT)
			world_read(&world, i, 2);
	for (unsigned i = 11000; i < 15000; i++) {
		struct cache_entries_want want = world_want(i);
		want.stored_s += 100;
		world_store(&world, want);
		world_read(&world, i, 2);
	}
	unsigned even = 0, odd = 0;
	for (unsigned i = 0; i < 11000; i++)
		*(i % 2 ? &odd : &even) += world_ask(&world, world_want(i)) != CACHE_MISS;
	cr_expect_geq(even, 5000u, "%u fresh ones, %u expired ones", even, odd);
	cr_expect_leq(odd, 3000u);
	cr_expect_geq(world_stats(&world).expired, 2500u);
}

Test(cache_write, a_flushed_cache_fills_again)
{
	store_many(0, 20000);
	cache_epoch_advance(world.writer, 0);
	for (unsigned i = 0; i < 9000; i++) {
		struct cache_entries_want want = world_want(i);
		want.epoch = 1;
		world_store(&world, want);
	}
	unsigned there = 0;
	for (unsigned i = 0; i < 9000; i++)
		there += world_ask(&world, world_want(i)) == CACHE_HIT;
	cr_expect_geq(there, 8900u, "what is of the old epoch takes nobody's place: %u", there);
}

Test(cache_write, more_than_a_name_s_slots)
{
	for (unsigned i = 0; i < 40; i++) {
		struct cache_entries_want want = {
			.name = "p.example.", .type = 1, .partition = (uint16_t)i, .stored_s = NOW_S, .ttl_s = 60 + i
		};
		world_store(&world, want);
		cr_assert_eq(world_ask(&world, want), CACHE_HIT);
	}
	cr_expect_geq(world_stats(&world).no_slot, 24u);
	cr_expect_leq(world_stats(&world).entries, 16u);
	struct cache_entries_want last = { .name = "p.example.", .type = 1, .partition = 38 };
	cr_expect_eq(world_ask(&world, last), CACHE_HIT, "what ends first gives way");
}

/* Blocks of all sizes over many laps of both logs. */
Test(cache_write, logs_go_round_and_round)
{
	uint32_t random = 12345;
	for (unsigned i = 0; i < 60000; i++) {
		random = random * 1664525 + 1013904223;
		struct cache_entries_want want = world_want(random % 3000);
		want.seed = i;
		want.records = 1 + random / 4096 % 7;
		want.data_bytes = (random >> 20) % 50 == 0 ? 1500 : 4 + (random >> 16) % 60;
		want.signatures = (random >> 24) % 4 == 0;
		want.ttl_s = 3600;
		world_store(&world, want);
		cr_assert_eq(world_ask(&world, want), CACHE_HIT);
		cr_assert_eq(cache_entries_seed(world.hit.entry), i);
		if (random >> 31)
			cache_mark(cache_reader_marks(world.reader, random >> 30 & 1), world.hit.slot);
		if (i % 10000 == 0)
			world_check(&world);
	}
	cr_expect_gt(world_stats(&world).replaced, 20000u);
}

/* --- removing ---------------------------------------------------------------------------------------------------------------- */

static unsigned remove_name(const char *text, uint16_t type)
{
	uint8_t wire[NAME_MAX_BYTES];
	const char *why;
	size_t bytes = name_from_text(wire, text, strlen(text), NULL, &why);
	return cache_remove(world.writer, wire, bytes, type);
}

Test(cache_write, removing_a_name)
{
	struct cache_entries_want a = { .name = "d.example.", .type = 1, .stored_s = NOW_S, .ttl_s = 60 }, aaaa = a, a1 = a,
				  cd = a, other = a;
	aaaa.type = 28;
	a1.partition = 1;
	cd.is_cd = true;
	other.name = "e.example.";
	struct cache_entries_want *all[] = { &a, &aaaa, &a1, &cd, &other };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		world_store(&world, *all[i]);
	cr_expect_eq(remove_name("d.example.", 15), 0);
	cr_expect_eq(remove_name("x.d.example.", 0), 0);
	cr_expect_eq(remove_name("d.example.", 1), 3, "of all partitions, with CD and without");
	cr_expect_eq(world_ask(&world, a), CACHE_MISS);
	cr_expect_eq(world_ask(&world, aaaa), CACHE_HIT);
	cr_expect_eq(remove_name("d.example.", 0), 1);
	cr_expect_eq(world_ask(&world, aaaa), CACHE_MISS);
	cr_expect_eq(world_ask(&world, other), CACHE_HIT);
	a.type = 0;
	world_store(&world, a);
	cr_expect_eq(remove_name("d.example.", 99), 1, "NXDOMAIN answers this type too");
	cr_expect_eq(world_stats(&world).entries, 1);
}

Test(cache_write, removing_a_tree)
{
	static const char *const names[] = { "t.example.",  "a.t.example.",    "b.a.t.example.",
					     "xt.example.", "t.example.org.",  "example.",
					     ".",	    "\\001t.example.", "z\\001t.example." };
	static const bool is_below[] = { true, true, true, false, false, false, false, false, false };
	static const uint8_t tree[] = "\1t\7example";
	uint64_t removed = 0;
	struct cache_world big;
	world_open(&big, 4 * MIB);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		world_store(&big, (struct cache_entries_want){ .name = names[i], .type = 1, .stored_s = NOW_S, .ttl_s = 60 });
	for (unsigned i = 0; i < cache_writer_shards(big.writer); i++)
		removed += cache_remove_tree(big.writer, i, tree, sizeof(tree));
	cr_expect_eq(removed, 3);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		cr_expect_eq(world_ask(&big, (struct cache_entries_want){ .name = names[i], .type = 1 }) == CACHE_MISS,
			     is_below[i], "%s", names[i]);
	removed = 0;
	for (unsigned i = 0; i < cache_writer_shards(big.writer); i++)
		removed += cache_remove_tree(big.writer, i, (const uint8_t *)"", 1);
	cr_expect_eq(removed, ARRAY_LEN(names) - 3, "the root is above all");
	world_check(&big);
	world_close(&big);
}

/* --- walking ------------------------------------------------------------------------------------------------------------------- */

static bool note_order(void *user, const struct cache_entry *e)
{
	unsigned **next = user;
	*(*next)++ = cache_entries_seed(e);
	return cache_entries_seed(e) != 3;
}
Test(cache_write, a_walk_is_in_order_and_stops)
{
	unsigned seen[8] = { 0 }, *next = seen;
	store_many(1, 6);
	world_store(&world, world_want(1));
	cache_walk(world.writer, 0, note_order, &next);
	cr_expect_eq(next - seen, 2);
	cr_expect_eq(seen[0], 2);
	cr_expect_eq(seen[1], 3);
}

/* --- against a naive model ------------------------------------------------------------------------------------------------------ */

/* Keys are few and the cache is large enough for them: everything must be there, and nothing but the last of each. */
#define MODEL_NAMES 40u
#define MODEL_TYPES 3u /* 0: NXDOMAIN */
struct model_entry {
	bool is_there;
	uint32_t seed, expire_s, epoch;
};
static struct model_entry model[MODEL_NAMES][2][MODEL_TYPES]; /* name, CD, type */

static void model_store(unsigned name, bool is_cd, unsigned type, struct model_entry e)
{
	for (unsigned t = 0; t < MODEL_TYPES; t++)
		if ((t == 0) != (type == 0))
			model[name][is_cd][t].is_there = false;
	model[name][is_cd][type] = e;
}

static void model_compare(unsigned name, bool is_cd, unsigned type, uint32_t now_s, uint32_t epoch)
{
	struct cache_entries_want want = world_want(name);
	const struct model_entry *e = &model[name][is_cd][type];
	want.type = (uint16_t)type, want.is_cd = is_cd;
	if (!e->is_there)
		e = &model[name][is_cd][0];
	enum cache_result result = world_ask_at(&world, want, now_s);
	if (!e->is_there || e->epoch != epoch) {
		cr_assert_eq(result, CACHE_MISS);
		return;
	}
	cr_assert_eq(result, now_s < e->expire_s ? CACHE_HIT : CACHE_EXPIRED);
	cr_assert_eq(cache_entries_seed(world.hit.entry), e->seed);
}

Test(cache_write, as_a_naive_cache)
{
	uint32_t random = 99, now_s = NOW_S, epoch = 0;
	memset(model, 0, sizeof(model));
	for (unsigned step = 1; step < 40000; step++) {
		random = random * 1664525 + 1013904223;
		unsigned name = (random >> 8) % MODEL_NAMES, type = (random >> 16) % MODEL_TYPES;
		bool is_cd = random >> 24 & 1;
		switch (random >> 25 & 31) {
		default: {
			struct cache_entries_want want = world_want(name);
			want.type = (uint16_t)type, want.is_cd = is_cd, want.seed = step, want.stored_s = now_s,
			want.epoch = epoch;
			want.ttl_s = random >> 28, want.records = 1 + step % 3, want.signatures = step % 5 == 0;
			world_store(&world, want);
			model_store(name, is_cd, type, (struct model_entry){ true, step, now_s + want.ttl_s, epoch });
			break;
		}
		case 0:
			for (unsigned t = 0; t < MODEL_TYPES; t++)
				if (type == 0 || t == type || t == 0)
					model[name][0][t].is_there = model[name][1][t].is_there = false;
			remove_name(world_name(name), (uint16_t)type);
			break;
		case 1: now_s++; break;
		case 2:
			if (step % 16 == 0)
				cache_epoch_advance(world.writer, 0), epoch++;
			break;
		}
		for (unsigned i = 0; i < 4; i++)
			model_compare((name + i * 7) % MODEL_NAMES, is_cd ^ (i & 1), (type + i) % MODEL_TYPES, now_s, epoch);
	}
	world_check(&world);
}

/* --- one writer at a time --------------------------------------------------------------------------------------------------------- */

Test(cache_write, another_process_can_not_write)
{
	pid_t child = fork();
	if (child == 0) { /* with the same open file, as a part gets it from its supervisor */
		struct cache_writer *w;
		_exit(cache_writer_attach(&w, world.cache_fd, world.marks_fd) == ERR_BUSY ? 0 : 1);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
}

/* --- a full cache ------------------------------------------------------------------------------------------------------------------- */

/* A million names into room for a hundred thousand: every tenth takes as long as the first ones that had to evict, within reason. The times are printed: a
 * busy machine is no failure (bench/micro/cache_micro store measures). */
Test(cache_write_full, a_million_names_into_room_for_a_hundred_thousand)
{
	struct cache_world big;
	world_open(&big, 10 * MIB);
	uint64_t most = 0, least = UINT64_MAX;
	for (unsigned tenth = 0; tenth < 10; tenth++) {
		struct timespec begin, end;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		for (unsigned i = 0; i < 100000; i++) {
			world_store(&big, world_want(tenth * 100000 + i));
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
		struct cache_stats stats = world_stats(&big);
		printf("%7u stored: %6.0f ns each, %llu entries, %llu evicted\n", (tenth + 1) * 100000, ns / 100000,
		       (unsigned long long)stats.entries, (unsigned long long)stats.evicted);
		if (tenth > 1) {
			most = MAX(most, stats.entries);
			least = MIN(least, stats.entries);
		}
	}
	cr_expect_geq(least, 90000u);
	cr_expect_leq(most - least, most / 20, "%llu to %llu", (unsigned long long)least, (unsigned long long)most);
	world_check(&big);
	world_close(&big);
}
