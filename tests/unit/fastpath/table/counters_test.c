/* SPDX-License-Identifier: Apache-2.0 */
#include "table/counters.h"
#include "table/shm.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

Test(counters, every_counter_has_a_name_of_its_own_and_help)
{
	for (int i = 0; i < C_COUNT_; i++) {
		cr_expect_gt(strlen(counter_name((enum counter)i)), 0);
		cr_expect_gt(strlen(counter_help((enum counter)i)), 0);
		for (int n = 0; n < i; n++)
			cr_expect_str_neq(counter_name((enum counter)i), counter_name((enum counter)n));
	}
	cr_expect_str_eq(counter_name(C_COUNT_), "unknown");
	cr_expect_str_eq(counter_help((enum counter) - 1), "");
}

Test(counters, blocks_share_no_cache_line)
{
	cr_expect_eq(sizeof(struct counter_block) % CACHE_LINE, 0);
	cr_expect_eq(offsetof(struct counters, block) % CACHE_LINE, 0);
}

Test(counters, writer_counts_reader_reads)
{
	int fd;
	struct counters *w, *r;
	cr_assert_eq(counters_create(&fd, "t"), ERR_OK);
	cr_assert_eq(counters_attach(&w, fd, true), ERR_OK);
	cr_assert_eq(counters_attach(&r, fd, false), ERR_OK);
	counters_reset(w, 4711);
	cr_expect_eq(r->pid, 4711);
	cr_expect_eq(r->block_count, COUNTER_MAX_THREADS);
	atomic_store(&w->block[0].role, COUNTER_XDP);
	atomic_store(&w->block[3].role, COUNTER_UDP);
	counter_add(&w->block[0], C_QUERIES, 5);
	counter_add(&w->block[0], C_QUERIES, 2);
	counter_add(&w->block[3], C_QUERIES, 100);
	counter_add(&w->block[9], C_QUERIES, 1000); /* unused: not in any sum */
	counter_set(&w->block[3], C_RX, UINT64_MAX);
	cr_expect_eq(counter_get(&r->block[0], C_QUERIES), 7);
	cr_expect_eq(counter_get(&r->block[3], C_RX), UINT64_MAX);
	cr_expect_eq(counters_sum(r, COUNTER_UNUSED, C_QUERIES), 107);
	cr_expect_eq(counters_sum(r, COUNTER_XDP, C_QUERIES), 7);
	cr_expect_eq(counters_sum(r, COUNTER_UDP, C_QUERIES), 100);
	cr_expect_eq(counters_sum(r, COUNTER_TCP, C_QUERIES), 0);
	counters_reset(w, 1);
	cr_expect_eq(counters_sum(r, COUNTER_UNUSED, C_QUERIES), 0);
	cr_expect_eq(atomic_load(&r->block[0].role), COUNTER_UNUSED);
	counters_detach(w);
	counters_detach(r);
	close(fd);
}

Test(counters, a_writer_that_spoils_its_header_does_not_lead_readers_astray)
{
	int fd;
	struct counters *w, *r;
	cr_assert_eq(counters_create(&fd, "t"), ERR_OK);
	cr_assert_eq(counters_attach(&w, fd, true), ERR_OK);
	cr_assert_eq(counters_attach(&r, fd, false), ERR_OK);
	w->block_count = UINT32_MAX;
	w->block_bytes = 1;
	cr_expect_eq(counters_sum(r, COUNTER_UNUSED, C_QUERIES), 0);
	counters_detach(w);
	counters_detach(r);
	close(fd);
}

Test(counters, foreign_memory_is_refused)
{
	static const struct {
		const char *what;
		size_t offset;
	} field[] = {
		{ "magic", offsetof(struct counters, magic) },	      { "version", offsetof(struct counters, version) },
		{ "size", offsetof(struct counters, size_bytes) },    { "block size", offsetof(struct counters, block_bytes) },
		{ "blocks", offsetof(struct counters, block_count) }, { "counters", offsetof(struct counters, counter_count) },
	};
	for (size_t i = 0; i < ARRAY_LEN(field); i++) {
		int fd;
		struct counters *c, *untouched = NULL;
		cr_assert_eq(counters_create(&fd, "t"), ERR_OK);
		cr_assert_eq(counters_attach(&c, fd, true), ERR_OK);
		((uint8_t *)c)[field[i].offset] ^= 1;
		cr_expect_eq(counters_attach(&untouched, fd, false), ERR_CORRUPT, "%s", field[i].what);
		cr_expect_null(untouched);
		counters_detach(c);
		close(fd);
	}
	int fd;
	struct counters *c;
	cr_assert_eq(shm_create(&fd, "t", 64), ERR_OK);
	cr_expect_eq(counters_attach(&c, fd, false), ERR_CORRUPT, "too short");
	close(fd);
	char path[] = "/tmp/skua-counters-test-XXXXXX";
	fd = mkstemp(path);
	unlink(path);
	cr_expect_eq(counters_attach(&c, fd, false), ERR_DENIED, "a file could be truncated under us");
	close(fd);
}
