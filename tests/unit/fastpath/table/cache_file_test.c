/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's file: what comes back, and what damage does. */
#include "tests/unit/fastpath/table/cache_world.h"

#include <fcntl.h>
#include <sys/stat.h>

#define SETTINGS 42u
#define WALL_S 1700000000

static struct cache_world world;
static char folder[] = "/tmp/skua-cache-file-XXXXXX", path[64], new_path[72];

static void open_all(void)
{
	world_open(&world, 2 << 20);
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/cache", folder);
	snprintf(new_path, sizeof(new_path), "%s.new", path);
}
static void close_all(void)
{
	world_check(&world);
	world_close(&world);
	unlink(path);
	cr_expect_eq(rmdir(folder), 0, "nothing is left beside the file");
}
TestSuite(cache_file, .init = open_all, .fini = close_all);

static uint64_t save(void)
{
	uint64_t entries = 99;
	cr_assert_eq(cache_file_save(world.writer, path, SETTINGS, WALL_S, NOW_S, &entries), ERR_OK);
	return entries;
}
static enum err load_into(struct cache_world *w, int64_t wall_s, uint32_t now_s, uint64_t *entries, const char **why)
{
	return cache_file_load(w->writer, path, SETTINGS, wall_s, now_s, entries, why);
}

Test(cache_file, comes_back_as_it_was)
{
	struct cache_world other;
	uint64_t entries;
	const char *why;
	for (unsigned i = 0; i < 3000; i++) {
		struct cache_entries_want want = world_want(i);
		want.partition = i % 5, want.is_cd = i % 3 == 0, want.records = 1 + i % 4, want.signatures = i % 2;
		want.type = (uint16_t)(i % 7);
		world_store(&world, want);
	}
	cr_assert_eq(save(), 3000);
	world_open(&other, 8 << 20); /* another size, another secret, other epochs */
	cache_epoch_advance(other.writer, 2);
	cr_assert_eq(load_into(&other, WALL_S, NOW_S, &entries, &why), ERR_OK);
	cr_expect_eq(entries, 3000);
	for (unsigned i = 0; i < 3000; i++) {
		struct cache_entries_want want = world_want(i);
		want.partition = i % 5, want.is_cd = i % 3 == 0, want.type = (uint16_t)(i % 7);
		cr_assert_eq(world_ask(&other, want), CACHE_HIT);
		cr_expect_eq(cache_entries_seed(other.hit.entry), i);
		cr_expect_eq(other.hit.entry->rr_count, 1 + i % 4 + i % 2);
		cr_expect_eq(other.hit.entry->epoch, want.partition == 2);
	}
	struct stat st;
	cr_expect_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	world_check(&other);
	world_close(&other);
}

Test(cache_file, times_go_on_from_where_they_were)
{
	static const struct {
		uint32_t age_s, ttl_s; /* when saved */
		int64_t off_s;	       /* from then to the load, by the wall clock */
		uint32_t now_s;	       /* of the new boot */
		uint32_t left_s;       /* 0: not there */
	} all[] = {
		{ 0, 60, 0, NOW_S, 60 },
		{ 10, 60, 0, NOW_S, 50 },
		{ 10, 60, 20, NOW_S, 30 },
		{ 10, 60, 49, NOW_S + 5, 1 },
		{ 10, 60, 50, NOW_S, 0 },
		{ 10, 60, -5000, NOW_S, 50 }, /* a clock that was put back makes nothing younger */
		{ 10, 60, INT64_MAX - WALL_S, NOW_S, 0 },
		{ 0, 1u << 31, 1000, NOW_S, (1u << 31) - 1000 },
		{ 500, 1u << 31, 0, 400, 0 }, /* stored before this boot's clock begins */
		{ 60, 60, 0, NOW_S, 0 },
		{ 0, 0, 0, NOW_S, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct cache_world other;
		uint64_t entries;
		const char *why;
		struct cache_entries_want want = world_want(1);
		want.stored_s = NOW_S - all[i].age_s, want.ttl_s = all[i].ttl_s;
		world_store(&world, want);
		save();
		world_open(&other, 2 << 20);
		cr_assert_eq(load_into(&other, WALL_S + all[i].off_s, all[i].now_s, &entries, &why), ERR_OK);
		cr_expect_eq(entries, all[i].left_s != 0, "case %zu", i);
		cr_expect_eq(world_ask_at(&other, want, all[i].now_s), all[i].left_s ? CACHE_HIT : CACHE_MISS, "case %zu", i);
		if (all[i].left_s) {
			cr_expect_eq(other.hit.entry->expire_s - all[i].now_s, all[i].left_s, "case %zu", i);
			cr_expect_eq(other.hit.entry->expire_s - other.hit.entry->stored_s, all[i].ttl_s, "case %zu", i);
		}
		world_close(&other);
	}
}

Test(cache_file, failures_and_what_is_stale_or_outdated_stay_behind)
{
	struct cache_entries_want want = world_want(1);
	want.flags = CACHE_F_FAILURE;
	world_store(&world, want);
	want.name = "s.example.", want.flags = CACHE_F_STALE;
	world_store(&world, want);
	want.name = "o.example.", want.flags = 0, want.partition = 1;
	world_store(&world, want);
	cache_epoch_advance(world.writer, 1);
	cr_expect_eq(save(), 0);
	want.partition = 0;
	world_store(&world, want);
	cr_expect_eq(save(), 1);
}

/* --- what can not be loaded ----------------------------------------------------------------------------------------------- */

static uint8_t whole[1 << 16];
static size_t whole_bytes;

static void read_whole(void)
{
	int fd = open(path, O_RDONLY);
	whole_bytes = (size_t)read(fd, whole, sizeof(whole));
	close(fd);
	cr_assert_lt(whole_bytes, sizeof(whole));
}
static void write_file(const uint8_t *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	cr_assert_eq((size_t)write(fd, bytes, size), size);
	close(fd);
}
/* Loads it into an empty cache: what came through is the beginning of what was saved. */
static enum err load_damaged(uint64_t *entries)
{
	const char *why = NULL;
	for (unsigned i = 0; i < cache_writer_shards(world.writer); i++)
		cache_remove_tree(world.writer, i, (const uint8_t *)"", 1);
	enum err err = load_into(&world, WALL_S, NOW_S, entries, &why);
	cr_assert_eq(world_stats(&world).entries, *entries);
	if (err != ERR_OK)
		cr_assert_not_null(why);
	return err;
}

Test(cache_file, damage_at_every_octet)
{
	uint64_t entries;
	for (unsigned i = 0; i < 12; i++)
		world_store(&world, world_want(i));
	save();
	read_whole();
	for (size_t at = 0; at < whole_bytes; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			whole[at] ^= (uint8_t)(1u << bit);
			write_file(whole, whole_bytes);
			whole[at] ^= (uint8_t)(1u << bit);
			cr_assert_eq(load_damaged(&entries), ERR_CORRUPT, "octet %zu, bit %u", at, bit);
			cr_assert_lt(entries, 13u);
		}
		world_check(&world);
	}
	for (size_t size = 0; size < whole_bytes; size++) {
		write_file(whole, size);
		cr_assert_eq(load_damaged(&entries), ERR_CORRUPT, "cut to %zu octets", size);
	}
	whole[whole_bytes] = 0;
	write_file(whole, whole_bytes + 1);
	cr_expect_eq(load_damaged(&entries), ERR_CORRUPT);
	cr_expect_eq(entries, 12, "what came before is kept");
	write_file(whole, whole_bytes);
	cr_expect_eq(load_damaged(&entries), ERR_OK);
	cr_expect_eq(entries, 12);
}

Test(cache_file, records_are_not_left_out_nor_moved)
{
	uint64_t entries;
	static uint8_t turned[sizeof(whole)];
	for (unsigned i = 0; i < 3; i++)
		world_store(&world, world_want(i));
	save();
	read_whole();
	size_t record = (whole_bytes - 48 - 16) / 3;
	memcpy(turned, whole, 48);
	memcpy(turned + 48, whole + 48 + record, whole_bytes - 48 - record); /* without the first */
	write_file(turned, whole_bytes - record);
	cr_expect_eq(load_damaged(&entries), ERR_CORRUPT);
	cr_expect_eq(entries, 0);
	memcpy(turned, whole, whole_bytes);
	memcpy(turned + 48, whole + 48 + record, record);
	memcpy(turned + 48 + record, whole + 48, record);
	write_file(turned, whole_bytes);
	cr_expect_eq(load_damaged(&entries), ERR_CORRUPT);
}

Test(cache_file, no_file_another_s_and_no_file_at_all)
{
	uint64_t entries = 99;
	const char *why = NULL;
	cr_expect_eq(load_into(&world, WALL_S, NOW_S, &entries, &why), ERR_NOTFOUND);
	cr_expect_eq(entries, 0);
	world_store(&world, world_want(1));
	save();
	cr_expect_eq(cache_file_load(world.writer, path, SETTINGS + 1, WALL_S, NOW_S, &entries, &why), ERR_NOTFOUND);
	cr_expect_str_eq(why, "it was made with other settings");
	cr_expect_eq(cache_file_load(world.writer, folder, SETTINGS, WALL_S, NOW_S, &entries, &why), ERR_CORRUPT, "a folder");
	unlink(path);
	cr_assert_eq(symlink("/dev/zero", path), 0);
	cr_expect_neq(load_into(&world, WALL_S, NOW_S, &entries, &why), ERR_OK, "a link is not followed");
}

Test(cache_file, a_save_that_fails_leaves_the_old_file)
{
	uint64_t entries = 99;
	const char *why;
	world_store(&world, world_want(1));
	save();
	cr_assert_eq(mkdir(new_path, 0700), 0);
	world_store(&world, world_want(2));
	cr_expect_neq(cache_file_save(world.writer, path, SETTINGS, WALL_S, NOW_S, &entries), ERR_OK);
	cr_expect_eq(entries, 99);
	rmdir(new_path);
	cr_assert_eq(symlink("/dev/full", new_path), 0);
	cr_expect_neq(cache_file_save(world.writer, path, SETTINGS, WALL_S, NOW_S, &entries), ERR_OK, "a link is not written to");
	unlink(new_path);
	char long_path[5000];
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	cr_expect_eq(cache_file_save(world.writer, long_path, SETTINGS, WALL_S, NOW_S, &entries), ERR_RANGE);
	cr_expect_eq(cache_file_load(world.writer, path, SETTINGS, WALL_S, NOW_S, &entries, &why), ERR_OK);
	cr_expect_eq(entries, 1);
	cr_expect_eq(save(), 2, "and the next one works");
}
