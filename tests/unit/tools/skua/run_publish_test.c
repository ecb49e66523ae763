/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_publish.h"

#include "table/shm.h"
#include "table/zone_set.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int memory(const void *bytes, size_t size, bool sealed)
{
	int fd = -1;
	void *map;
	size_t map_bytes;

	cr_assert_eq(shm_create(&fd, "test", size), ERR_OK);
	cr_assert_eq(shm_map_writable(&map, &map_bytes, fd), ERR_OK);
	memcpy(map, bytes, size);
	shm_unmap(map, map_bytes);
	if (sealed)
		cr_assert_eq(shm_seal(fd), ERR_OK);
	return fd;
}

static int segment(void) { return memory("segment", 8, true); }

static int map(uint64_t generation, uint32_t zones)
{
	struct zone_map m = {
		.magic = ZONE_MAP_MAGIC, .version = ZONE_MAP_VERSION, .generation = generation, .zone_count = zones
	};
	return memory(&m, sizeof m, true);
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

Test(run_publish, keeps_segments_in_order_and_gives_them_up_by_id)
{
	static const uint32_t ids[] = { 7, 3, 9, 1, 8, 2, 100, 50, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17 };
	struct run_publish p;
	int fd3 = -1;

	run_publish_init(&p);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		int fd = segment();
		if (ids[i] == 3)
			fd3 = fd;
		cr_assert_eq(run_publish_segment(&p, ids[i], fd), ERR_OK);
	}
	cr_assert_eq(p.count, ARRAY_LEN(ids));
	for (size_t i = 1; i < p.count; i++)
		cr_expect_lt(p.segment_[i - 1].id, p.segment_[i].id);
	cr_assert_eq(run_publish_drop(&p, 3), ERR_OK);
	cr_expect_not(is_open(fd3), "a dropped segment's descriptor is closed");
	cr_expect_eq(p.count, ARRAY_LEN(ids) - 1);
	cr_expect_eq(run_publish_drop(&p, 3), ERR_NOTFOUND);
	cr_expect_eq(run_publish_drop(&p, 1000), ERR_NOTFOUND);
	run_publish_fini(&p);
}

Test(run_publish, refuses_what_could_still_change)
{
	struct run_publish p;
	int fd = memory("open", 5, false), zero = open("/dev/zero", O_RDONLY);

	run_publish_init(&p);
	cr_expect_eq(run_publish_segment(&p, 1, fd), ERR_DENIED);
	cr_expect_eq(run_publish_segment(&p, 1, zero), ERR_DENIED);
	cr_expect_eq(run_publish_map(&p, 1, fd), ERR_DENIED);
	cr_expect(is_open(fd), "a refused descriptor stays the caller's");
	cr_expect_eq(p.count, 0);
	run_publish_fini(&p);
	close(fd);
	close(zero);
}

Test(run_publish, refuses_an_id_twice)
{
	struct run_publish p;
	int fd = segment();

	run_publish_init(&p);
	cr_assert_eq(run_publish_segment(&p, 5, segment()), ERR_OK);
	cr_expect_eq(run_publish_segment(&p, 5, fd), ERR_EXISTS);
	close(fd);
	run_publish_fini(&p);
}

Test(run_publish, a_map_replaces_the_one_before)
{
	struct run_publish p;
	int first = map(1, 10), second = map(5, 20);

	run_publish_init(&p);
	cr_assert_eq(run_publish_map(&p, 1, first), ERR_OK);
	cr_expect_eq(p.zone_count, 10);
	cr_assert_eq(run_publish_map(&p, 5, second), ERR_OK);
	cr_expect_not(is_open(first));
	cr_expect_eq(p.generation, 5);
	cr_expect_eq(p.zone_count, 20);
	run_publish_fini(&p);
	cr_expect_not(is_open(second));
}

Test(run_publish, refuses_maps_that_are_none_or_not_newer)
{
	struct run_publish p;
	int same = map(5, 1), older = map(4, 1), other = map(9, 1), no_map = segment();
	struct zone_map wrong_version = { .magic = ZONE_MAP_MAGIC, .version = ZONE_MAP_VERSION + 1, .generation = 6 };
	int version = memory(&wrong_version, sizeof wrong_version, true);

	run_publish_init(&p);
	cr_assert_eq(run_publish_map(&p, 5, map(5, 1)), ERR_OK);
	cr_expect_eq(run_publish_map(&p, 5, same), ERR_CORRUPT);
	cr_expect_eq(run_publish_map(&p, 4, older), ERR_CORRUPT);
	cr_expect_eq(run_publish_map(&p, 8, other), ERR_CORRUPT, "its own generation differs from the message's");
	cr_expect_eq(run_publish_map(&p, 6, no_map), ERR_CORRUPT);
	cr_expect_eq(run_publish_map(&p, 6, version), ERR_CORRUPT);
	cr_expect_eq(p.generation, 5);
	run_publish_fini(&p);
	close(same), close(older), close(other), close(no_map), close(version);
}

Test(run_publish, bounded)
{
	struct run_publish p;
	struct rlimit files;
	int fd = segment();

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	files = (struct rlimit){ .rlim_cur = ZONE_SET_MAX_SEGMENTS + 64,
				 .rlim_max = MAX(files.rlim_max, ZONE_SET_MAX_SEGMENTS + 64) };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	run_publish_init(&p);
	for (uint32_t i = 0; i < ZONE_SET_MAX_SEGMENTS; i++)
		cr_assert_eq(run_publish_segment(&p, i, dup(fd)), ERR_OK);
	cr_expect_eq(run_publish_segment(&p, ZONE_SET_MAX_SEGMENTS, fd), ERR_NOSPACE);
	run_publish_fini(&p);
	close(fd);
}

enum { FASTPATH = 0, SLOWPATH = 1 };

/* The verified masks of map and segments, as "map:id=mask id=mask". */
static const char *verified(const struct run_publish *p)
{
	static char text[256];
	int n = snprintf(text, sizeof text, "%u:", p->map_verified);

	for (size_t i = 0; i < p->count; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, " %u=%u", p->segment_[i].id, p->segment_[i].verified);
	return text;
}

Test(run_publish, live_verifies_what_came_before_the_map_for_that_part_alone)
{
	struct run_publish p;

	run_publish_init(&p);
	run_publish_live(&p, FASTPATH, 0);
	cr_assert_eq(run_publish_segment(&p, 1, segment()), ERR_OK);
	run_publish_live(&p, FASTPATH, 0);
	cr_expect_str_eq(verified(&p), "0: 1=0", "there is no map yet");
	cr_assert_eq(run_publish_map(&p, 1, map(1, 1)), ERR_OK);
	cr_assert_eq(run_publish_segment(&p, 2, segment()), ERR_OK);
	run_publish_live(&p, SLOWPATH, 1);
	cr_expect_str_eq(verified(&p), "2: 1=2 2=0", "segment 2 came after the map");
	run_publish_live(&p, FASTPATH, 1);
	cr_expect_str_eq(verified(&p), "3: 1=3 2=0");
	cr_assert_eq(run_publish_map(&p, 2, map(2, 1)), ERR_OK);
	cr_expect_str_eq(verified(&p), "0: 1=3 2=0", "a new map");
	run_publish_live(&p, SLOWPATH, 2);
	run_publish_live(&p, FASTPATH, 1);
	cr_expect_str_eq(verified(&p), "2: 1=3 2=2", "the fastpath is at the older map still");
	run_publish_forget(&p, SLOWPATH);
	cr_expect_str_eq(verified(&p), "0: 1=1 2=0");
	run_publish_fini(&p);
}

Test(run_publish, an_id_that_comes_again_is_another_segment)
{
	struct run_publish p;

	run_publish_init(&p);
	cr_assert_eq(run_publish_segment(&p, 5, segment()), ERR_OK);
	cr_assert_eq(run_publish_map(&p, 1, map(1, 1)), ERR_OK);
	run_publish_live(&p, FASTPATH, 1);
	cr_expect_str_eq(verified(&p), "1: 5=1");
	cr_assert_eq(run_publish_segment(&p, 6, segment()), ERR_OK);
	cr_assert_eq(run_publish_drop(&p, 6), ERR_OK);
	cr_expect_str_eq(verified(&p), "1: 5=1", "the map can't name 6");
	cr_assert_eq(run_publish_drop(&p, 5), ERR_OK);
	cr_assert_eq(run_publish_segment(&p, 5, segment()), ERR_OK);
	cr_expect_str_eq(verified(&p), "0: 5=0", "the map may name 5, and was verified over what 5 was then");
	run_publish_fini(&p);
}
