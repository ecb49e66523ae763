/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of cache.h as readers see it: keys, times, epochs, cuts, marks; making and attaching. */
#include "tests/unit/lib/cache_entries.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/cache_layout.h"
#include "table/shm.h"

#define NOW_S 0x01000000u

static int cache_fd, marks_fd;
static struct cache_writer *writer;
static struct cache_reader *reader;
static uint64_t scratch[CACHE_SCRATCH_WORDS];
static struct cache_entries_room room;
static struct cache_hit hit;

static void open_cache(void)
{
	cr_assert_eq(cache_create(&cache_fd, 4 << 20), ERR_OK);
	cr_assert_eq(cache_marks_create(&marks_fd, cache_fd, 3), ERR_OK);
	cr_assert_eq(cache_writer_attach(&writer, cache_fd, marks_fd), ERR_OK);
	cr_assert_eq(cache_reader_attach(&reader, cache_fd, marks_fd), ERR_OK);
}
static void close_cache(void)
{
	cache_reader_detach(reader);
	cache_writer_detach(writer);
	close(cache_fd);
	close(marks_fd);
}
TestSuite(cache, .init = open_cache, .fini = close_cache);

static void store(struct cache_entries_want want)
{
	want.stored_s = want.stored_s ? want.stored_s : NOW_S;
	cr_assert_eq(cache_store(writer, cache_entries_make(&room, reader, &want)), ERR_OK);
}
static enum cache_result ask_at(uint32_t now_s, struct cache_entries_want want)
{
	uint8_t wire[NAME_MAX_BYTES];
	struct cache_key key = cache_entries_key(wire, reader, &want);
	enum cache_result result = cache_read(reader, &key, now_s, scratch, &hit);

	if (result != CACHE_MISS)
		cr_assert(cache_entries_is_true(hit.entry));
	return result;
}
static enum cache_result ask(struct cache_entries_want want) { return ask_at(NOW_S, want); }

/* --- keys -------------------------------------------------------------------------------------------------------------- */

Test(cache, what_was_stored_is_found_octet_for_octet)
{
	static const struct cache_entries_want all[] = {
		{ .name = "www.example.com.", .type = 1, .ttl_s = 60 },
		{ .name = "a.", .type = 28, .ttl_s = 60, .data_bytes = 16 },
		{ .name = ".", .type = 2, .ttl_s = 60, .records = 13, .data_bytes = 20 },
		{ .name = "signed.example.", .type = 1, .ttl_s = 60, .records = 2, .signatures = 2, .data_bytes = 96 },
		{ .name = "many.example.", .type = 16, .ttl_s = 60, .records = 300 },
		{ .name = "long.example.", .type = 16, .ttl_s = 60, .records = 5, .data_bytes = 4000 },
		{ .name = "none.example.", .type = 0, .ttl_s = 60, .data_bytes = 40 },
		{ .name = "failed.example.", .type = 1, .ttl_s = 60, .flags = CACHE_F_FAILURE },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		store(all[i]);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		cr_assert_eq(ask(all[i]), CACHE_HIT, "%s", all[i].name);
		struct cache_entry *made = cache_entries_make(&room, reader, &all[i]);
		made->stored_s = NOW_S, made->expire_s += NOW_S;
		cr_expect_eq(hit.entry->bytes, made->bytes);
		cr_expect(cache_entries_are_equal(hit.entry, made), "%s", all[i].name);
	}
}

Test(cache, type_partition_cd_and_name_are_the_key)
{
	store((struct cache_entries_want){ .name = "k.example.", .type = 1, .partition = 7, .ttl_s = 60 });
	static const struct {
		struct cache_entries_want want;
		enum cache_result result;
	} all[] = {
		{ { .name = "k.example.", .type = 1, .partition = 7 }, CACHE_HIT },
		{ { .name = "k.example.", .type = 28, .partition = 7 }, CACHE_MISS },
		{ { .name = "k.example.", .type = 1, .partition = 8 }, CACHE_MISS },
		{ { .name = "k.example.", .type = 1, .partition = 7 + 256 }, CACHE_MISS },
		{ { .name = "k.example.", .type = 1, .partition = 7, .is_cd = true }, CACHE_MISS },
		{ { .name = "l.example.", .type = 1, .partition = 7 }, CACHE_MISS },
		{ { .name = "x.k.example.", .type = 1, .partition = 7 }, CACHE_MISS },
		{ { .name = "k.example.", .type = 0, .partition = 7 }, CACHE_MISS },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		cr_expect_eq(ask(all[i].want), all[i].result, "case %zu", i);
}

Test(cache, all_types_partitions_and_both_cd_stand_beside_each_other)
{
	for (uint16_t i = 1; i <= 12; i++)
		store((struct cache_entries_want){ .name = "b.example.",
						   .type = (uint16_t)(1 + i % 3),
						   .partition = i / 6,
						   .is_cd = (i / 3) % 2,
						   .ttl_s = 60,
						   .seed = i });
	for (uint16_t i = 1; i <= 12; i++) {
		cr_assert_eq(
			ask((struct cache_entries_want){
				.name = "b.example.", .type = (uint16_t)(1 + i % 3), .partition = i / 6, .is_cd = (i / 3) % 2 }),
			CACHE_HIT);
		cr_expect_eq(cache_entries_seed(hit.entry), i);
	}
}

Test(cache, a_second_store_replaces)
{
	struct cache_stats stats;
	struct cache_entries_want want = { .name = "r.example.", .type = 1, .ttl_s = 60, .seed = 1 };
	store(want);
	want.seed = 2;
	want.records = 9;
	store(want);
	cr_assert_eq(ask(want), CACHE_HIT);
	cr_expect_eq(cache_entries_seed(hit.entry), 2);
	cache_writer_stats(writer, &stats);
	cr_expect_eq(stats.entries, 1);
	cr_expect_eq(stats.replaced, 1);
	cr_expect_eq(stats.stores, 2);
}

/* --- times ------------------------------------------------------------------------------------------------------------- */

Test(cache, ttl_edges)
{
	static const struct {
		uint32_t ttl_s, age_s;
		enum cache_result result;
	} all[] = {
		{ 0, 0, CACHE_EXPIRED },
		{ 1, 0, CACHE_HIT },
		{ 1, 1, CACHE_EXPIRED },
		{ 1u << 31, 0, CACHE_HIT },
		{ 1u << 31, (1u << 31) - 1, CACHE_HIT },
		{ 1u << 31, 1u << 31, CACHE_EXPIRED },
		{ 300, 299, CACHE_HIT },
		{ 300, 300, CACHE_EXPIRED },
		{ 300, 1u << 31, CACHE_EXPIRED },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct cache_entries_want want = { .name = "t.example.", .type = 1, .ttl_s = all[i].ttl_s };
		store(want);
		cr_expect_eq(ask_at(NOW_S + all[i].age_s, want), all[i].result, "TTL %u after %u s", all[i].ttl_s, all[i].age_s);
	}
}

/* --- epochs ------------------------------------------------------------------------------------------------------------ */

Test(cache, older_epochs_are_misses_and_are_not_stored)
{
	struct cache_entries_want mine = { .name = "e.example.", .type = 1, .ttl_s = 60, .partition = 3 };
	struct cache_entries_want other = { .name = "e.example.", .type = 1, .ttl_s = 60, .partition = 4 };
	struct cache_stats stats;
	store(mine);
	store(other);
	cache_epoch_advance(writer, 3);
	cr_expect_eq(cache_epoch(reader, 3), 1);
	cr_expect_eq(ask(mine), CACHE_MISS);
	cr_expect_eq(ask(other), CACHE_HIT);
	store(mine); /* its question began before */
	cr_expect_eq(ask(mine), CACHE_MISS);
	cache_writer_stats(writer, &stats);
	cr_expect_eq(stats.outdated, 1);
	mine.epoch = 1;
	mine.seed = 5;
	store(mine);
	cr_expect_eq(ask(mine), CACHE_HIT);
	mine.epoch = 0;
	mine.seed = 4;
	store(mine);
	cr_assert_eq(ask(mine), CACHE_HIT, "what is newer stays");
	cr_expect_eq(cache_entries_seed(hit.entry), 5);
	cache_epoch_advance(writer, CACHE_PARTITIONS); /* nobody's */
	cr_expect_eq(cache_epoch(reader, CACHE_PARTITIONS), 0);
}

Test(cache, epochs_pass_the_end_of_their_numbers)
{
	struct cache_header *h = (struct cache_header *)cache_writer_reader(writer)->map;
	struct cache_entries_want want = { .name = "w.example.", .type = 1, .ttl_s = 60, .epoch = UINT32_MAX };
	atomic_store(&h->epoch[0], UINT32_MAX);
	store(want);
	cr_expect_eq(ask(want), CACHE_HIT);
	cache_epoch_advance(writer, 0);
	cr_expect_eq(cache_epoch(reader, 0), 0);
	cr_expect_eq(ask(want), CACHE_MISS);
}

/* --- NXDOMAIN ------------------------------------------------------------------------------------------------------------ */

Test(cache, nxdomain_answers_every_type_of_its_question)
{
	store((struct cache_entries_want){ .name = "n.example.", .type = 0, .ttl_s = 60 });
	for (uint16_t type = 1; type < 300; type++) {
		cr_assert_eq(ask((struct cache_entries_want){ .name = "n.example.", .type = type }), CACHE_HIT);
		cr_expect_eq(hit.entry->type, 0);
	}
	cr_expect_eq(ask((struct cache_entries_want){ .name = "n.example.", .type = 1, .is_cd = true }), CACHE_MISS);
	cr_expect_eq(ask((struct cache_entries_want){ .name = "n.example.", .type = 1, .partition = 1 }), CACHE_MISS);
}

Test(cache, of_nxdomain_and_types_the_newest_stands)
{
	struct cache_entries_want a = { .name = "x.example.", .type = 1, .ttl_s = 60 },
				  aaaa = { .name = "x.example.", .type = 28, .ttl_s = 60 };
	struct cache_entries_want none = { .name = "x.example.", .type = 0, .ttl_s = 60 }, a_cd = a, failed = aaaa;
	a_cd.is_cd = true;
	failed.flags = CACHE_F_FAILURE;
	store(a);
	store(aaaa);
	store(a_cd);
	store(none);
	cr_assert_eq(ask(a), CACHE_HIT);
	cr_expect_eq(hit.entry->type, 0);
	cr_assert_eq(ask(aaaa), CACHE_HIT);
	cr_expect_eq(hit.entry->type, 0);
	cr_assert_eq(ask(a_cd), CACHE_HIT);
	cr_expect_eq(hit.entry->type, 1, "CD is another key");
	store(a);
	cr_assert_eq(ask(a), CACHE_HIT);
	cr_expect_eq(hit.entry->type, 1);
	cr_expect_eq(ask(aaaa), CACHE_MISS, "the name exists again, what it has is not known");
	store(none);
	store(failed);
	cr_assert_eq(ask(aaaa), CACHE_HIT);
	cr_expect(hit.entry->flags & CACHE_F_FAILURE);
	cr_assert_eq(ask(a), CACHE_HIT, "a failure says nothing about the name");
	cr_expect_eq(hit.entry->type, 0);
}

/* The cut above a name. */
static enum cache_result cut(const char *name, bool is_cd, uint32_t now_s)
{
	uint8_t wire[NAME_MAX_BYTES], offset[NAME_MAX_LABELS + 1];
	struct cache_entries_want want = { .name = name, .type = 1, .is_cd = is_cd };
	struct cache_key key = cache_entries_key(wire, reader, &want);
	unsigned count = name_labels(wire);

	for (unsigned i = 0; i <= count; i++)
		offset[i] = (uint8_t)name_suffix_offset(wire, i);
	return cache_read_cut(reader, &key, offset, count, now_s, scratch, &hit);
}

Test(cache, names_below_an_nxdomain_do_not_exist)
{
	store((struct cache_entries_want){ .name = "gone.example.", .type = 0, .ttl_s = 60, .seed = 1 });
	store((struct cache_entries_want){ .name = "b.gone.example.", .type = 0, .ttl_s = 30, .seed = 2 });
	store((struct cache_entries_want){ .name = "example.", .type = 2, .ttl_s = 60 });
	static const struct {
		const char *name;
		bool is_cd;
		uint32_t age_s, seed; /* 0: none */
	} all[] = {
		{ "a.gone.example.", false, 0, 1 },
		{ "a.b.gone.example.", false, 0, 2 },
		{ "a.b.gone.example.", false, 30, 1 },
		{ "a.b.gone.example.", false, 60, 0 },
		{ "gone.example.", false, 0, 0 },
		{ "a.gone.example.", true, 0, 0 },
		{ "agone.example.", false, 0, 0 },
		{ "6.5.4.3.2.1.gone.example.", false, 0, 1 },
		{ "7.6.5.4.3.2.1.gone.example.", false, 0, 0 },
		{ ".", false, 0, 0 },
		{ "example.", false, 0, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		cr_assert_eq(cut(all[i].name, all[i].is_cd, NOW_S + all[i].age_s), all[i].seed ? CACHE_HIT : CACHE_MISS, "%s",
			     all[i].name);
		if (all[i].seed)
			cr_expect_eq(cache_entries_seed(hit.entry), all[i].seed, "%s", all[i].name);
	}
}

/* --- marks --------------------------------------------------------------------------------------------------------------- */

Test(cache, marks_count_to_two_per_reader)
{
	struct cache_entries_want want = { .name = "m.example.", .type = 1, .ttl_s = 60 };
	uint8_t *marks = cache_reader_marks(reader, 1);
	store(want);
	cr_assert_eq(ask(want), CACHE_HIT);
	cr_expect_eq(cache_mark(NULL, hit.slot), 2);
	cr_expect_eq(cache_mark(marks, hit.slot), 1);
	cr_expect_eq(cache_mark(marks, hit.slot), 2);
	cr_expect_eq(cache_mark(marks, hit.slot), 2);
	cr_expect_eq(cache_reader_marks(cache_writer_reader(writer), 1)[hit.slot], 2, "the writer sees them");
	cr_expect_eq(cache_mark(cache_reader_marks(reader, 2), hit.slot), 1, "each has its own");
	cr_expect_null(cache_reader_marks(reader, 3));
	cr_assert_eq(cache_remove(writer, (const uint8_t *)"\1m\7example", 11, 0), 1);
	cr_expect_eq(marks[hit.slot], 0, "who takes the slot next begins anew");
}

Test(cache, slot_numbers_are_distinct_and_in_range)
{
	struct cache_stats stats;
	static uint8_t seen[1 << 17];
	cache_writer_stats(writer, &stats);
	cr_assert_leq(stats.slots, sizeof(seen));
	for (unsigned i = 0; i < 3000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "s%u.example.", i);
		store((struct cache_entries_want){ .name = name, .type = 1, .ttl_s = 60 });
	}
	for (unsigned i = 0; i < 3000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "s%u.example.", i);
		cr_assert_eq(ask((struct cache_entries_want){ .name = name, .type = 1 }), CACHE_HIT);
		cr_assert_lt(hit.slot, stats.slots);
		cr_assert_eq(seen[hit.slot]++, 0);
	}
}

/* --- making and attaching -------------------------------------------------------------------------------------------------- */

Test(cache_made, sizes)
{
	static const struct {
		uint64_t bytes;
		unsigned shards;
	} all[] = { { CACHE_MIN_BYTES, 1 }, { 2 << 20, 2 }, { 3 << 20, 2 }, { 17 << 20, 16 }, { 100 << 20, 64 } };
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		int fd;
		struct cache_writer *w;
		struct cache_stats stats;
		struct stat st;
		cr_assert_eq(cache_create(&fd, all[i].bytes), ERR_OK);
		cr_expect_eq(fstat(fd, &st), 0);
		cr_expect_eq(st.st_mode & 0777, 0600);
		cr_expect(shm_is_sealed(fd, false));
		cr_assert_eq(cache_writer_attach(&w, fd, -1), ERR_OK);
		cr_expect_eq(cache_writer_shards(w), all[i].shards);
		cache_writer_stats(w, &stats);
		cr_expect_leq(stats.size_bytes, all[i].bytes);
		cr_expect_geq(stats.slots * 64, all[i].bytes * 8 / 10);
		cr_expect_leq(stats.slots * 64, all[i].bytes);
		cache_writer_detach(w);
		close(fd);
	}
}

Test(cache_made, impossible_ones)
{
	int fd = 77, other;
	struct cache_reader *r = NULL;
	struct cache_writer *w = NULL;
	cr_expect_eq(cache_create(&fd, CACHE_MIN_BYTES - 1), ERR_RANGE);
	cr_expect_eq(cache_create(&fd, UINT64_MAX), ERR_RANGE);
	cr_expect_eq(fd, 77);
	cr_assert_eq(shm_create(&other, "other", CACHE_MIN_BYTES), ERR_OK);
	cr_expect_eq(cache_reader_attach(&r, other, -1), ERR_CORRUPT);
	cr_expect_eq(cache_writer_attach(&w, other, -1), ERR_CORRUPT);
	close(other);
	cr_assert_eq(cache_create(&fd, CACHE_MIN_BYTES), ERR_OK);
	cr_expect_eq(cache_marks_create(&other, fd, 0), ERR_RANGE);
	cr_expect_eq(cache_reader_attach(&r, fd, fd), ERR_CORRUPT, "not marks");
	int big;
	cr_assert_eq(cache_create(&big, 2 * CACHE_MIN_BYTES), ERR_OK);
	cr_assert_eq(cache_marks_create(&other, big, 2), ERR_OK);
	cr_expect_eq(cache_reader_attach(&r, fd, other), ERR_CORRUPT, "another cache's marks");
	cr_expect_null(r);
	int growing;
	cr_assert_eq(shm_create_growing(&growing, "growing"), ERR_OK);
	cr_assert_eq(ftruncate(growing, CACHE_MIN_BYTES), 0);
	cr_expect_eq(cache_reader_attach(&r, growing, -1), ERR_CORRUPT, "who can shrink it can kill us");
	close(growing);
	close(other);
	close(big);
	close(fd);
}

Test(cache, a_read_only_descriptor_can_not_be_mapped_for_writing)
{
	int fd;
	struct cache_reader *r;
	cr_assert_eq(cache_reopen_read_only(&fd, cache_fd), ERR_OK);
	cr_expect_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(cache_reader_attach(&r, fd, -1), ERR_OK);
	cr_expect_null(cache_reader_marks(r, 0));
	cache_reader_detach(r);
}

Test(cache, hashes_depend_on_a_secret)
{
	int fd;
	struct cache_reader *r;
	cr_assert_eq(cache_create(&fd, CACHE_MIN_BYTES), ERR_OK);
	cr_assert_eq(cache_reader_attach(&r, fd, -1), ERR_OK);
	cr_expect_neq(cache_hash(r, 1), cache_hash(reader, 1));
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t hash = cache_hash(reader, i * 0x123456789abcdefu);
		cr_expect_eq(cache_reader_shard(reader, hash), cache_shard(writer, hash));
		cr_expect_lt(cache_shard(writer, hash), cache_writer_shards(writer));
	}
	cache_reader_detach(r);
	close(fd);
}
