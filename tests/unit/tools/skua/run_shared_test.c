/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_shared.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/policy.h"
#include "table/shared.h"
#include "table/shm.h"

static void complain(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)user;
	cr_expect_not(is_error, "%u:%u: %s", place.line, place.column, message);
}
static struct config *config_of(const char *text)
{
	struct config *config;
	cr_assert_eq(config_load(&config, "/test.yaml", text, strlen(text), complain, NULL), ERR_OK);
	return config;
}
static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;
	cr_assert(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The part's side: what it would have after GO. */
struct part {
	struct shared shared;
	int policy_fd;
	char order[600];
};
static void receive(void *user, const struct link_msg *message, int fd)
{
	static const char letters[LINK_TYPE_COUNT_] = { [LINK_POLICY] = 'P', [LINK_LOG] = 'L',	[LINK_CACHE] = 'C',
							[LINK_MARKS] = 'M',  [LINK_WAKE] = 'W', [LINK_RINGS] = 'R' };
	struct part *p = user;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	cr_assert_geq(copy, 0, "%s without a descriptor", link_type_text(message->type));
	p->order[strlen(p->order)] = letters[message->type];
	if (message->type == LINK_POLICY)
		p->policy_fd = copy;
	else
		cr_assert_eq(shared_take(&p->shared, message, &copy), ERR_OK);
}
static struct part *hand_over(const struct run_shared *s, enum link_part id)
{
	struct part *p = calloc(1, sizeof *p);
	const char *why = "";
	shared_init(&p->shared);
	run_shared_hand_over(s, id, receive, p);
	cr_assert_eq(shared_attach(&p->shared, &why), ERR_OK, "%s", why);
	return p;
}
static void end(struct part *p)
{
	shared_fini(&p->shared);
	close(p->policy_fd);
	free(p);
}

static uint16_t flags_of(const struct part *p, uint8_t family, const uint8_t address[16])
{
	struct policy *policy;
	const char *why = "";
	cr_assert_eq(policy_attach(&policy, p->policy_fd, &why), ERR_OK, "%s", why);
	const struct policy_group *group = policy_group(policy, policy_find(policy, family, address));
	uint16_t flags = (uint16_t)group->flags;
	cr_expect_eq(group->partition, 0);
	policy_detach(policy);
	return flags;
}

static const uint8_t loopback[16] = { 127, 0, 0, 1 }, ten[16] = { 10 }, loopback6[16] = { [15] = 1 };

Test(run_shared, without_recursion_policy_and_log_only)
{
	unsigned before = open_fds();
	struct config *c = config_of("recursion:\n  allow: [ 10.0.0.0/8 ]\n");
	struct run_shared s;
	const char *why;
	run_shared_init(&s);
	cr_assert_eq(run_shared_create(&s, c, 2, 3, &why), ERR_OK);
	for (int id = 0; id < LINK_PART_COUNT_; id++) {
		struct part *p = hand_over(&s, id);
		cr_expect_str_eq(p->order, "PL");
		cr_expect_null(p->shared.cache);
		cr_expect_eq(p->shared.rings.threads, 0);
		cr_expect_eq(log_ring_threads(p->shared.log), id == LINK_PART_FASTPATH ? 2 : 9);
		cr_expect_eq(flags_of(p, 4, ten), 0, "nobody may ask where nobody resolves");
		end(p);
	}
	run_shared_fini(&s);
	run_shared_fini(&s);
	config_free(c);
	cr_expect_eq(open_fds(), before);
}

Test(run_shared, with_recursion_each_part_gets_what_it_needs)
{
	unsigned before = open_fds();
	struct config *c = config_of(
		"forward:\n  - to: [ 10.0.0.1 ]\nrecursion:\n  allow: [ 10.0.0.0/8, \"::1/128\" ]\ncache:\n  memory: 8M\n");
	struct run_shared s;
	const char *why;
	run_shared_init(&s);
	cr_assert_eq(run_shared_create(&s, c, 2, 3, &why), ERR_OK, "%s", why);
	cr_expect_leq(s.cache_bytes + s.marks_bytes, (8u << 20) + 65536);
	cr_expect_geq(s.cache_bytes + s.marks_bytes, 7u << 20, "what was asked for");
	for (int id = 0; id < LINK_PART_COUNT_; id++) {
		struct part *p = hand_over(&s, id);
		bool is_fastpath = id == LINK_PART_FASTPATH;
		cr_expect_str_eq(p->order, "PLCMWWWWWR");
		cr_assert(p->shared.cache);
		cr_expect_eq(p->shared.rings.threads, 2);
		cr_expect_eq(p->shared.rings.workers, 3);
		cr_expect_geq(ring_record_max(p->shared.rings.answer_capacity), 4096 + 16);
		cr_expect_eq(p->shared.first_marks, is_fastpath ? 0 : 2);
		cr_expect_not_null(cache_reader_marks(p->shared.cache, is_fastpath ? 1 : 2 + 8));
		cr_expect_null(cache_reader_marks(p->shared.cache, 2 + 9));
		cr_expect_eq(fcntl(p->shared.cache_fd, F_GETFL) & O_ACCMODE, is_fastpath ? O_RDONLY : O_RDWR);
		cr_expect_eq(flags_of(p, 4, ten), POLICY_F_RECURSION);
		cr_expect_eq(flags_of(p, 6, loopback6), POLICY_F_RECURSION);
		cr_expect_eq(flags_of(p, 4, loopback), 0, "not in the list");
		if (is_fastpath)
			cr_expect_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, p->shared.cache_fd, 0), MAP_FAILED);
		end(p);
	}
	run_shared_fini(&s);
	config_free(c);
	cr_expect_eq(open_fds(), before);
}

Test(run_shared, without_xdp_there_are_no_rings)
{
	struct config *c = config_of("forward:\n  - to: [ 10.0.0.1 ]\ncache:\n  memory: 2M\n");
	struct run_shared s;
	const char *why;
	run_shared_init(&s);
	cr_assert_eq(run_shared_create(&s, c, 0, 1, &why), ERR_OK, "%s", why);
	struct part *p = hand_over(&s, LINK_PART_SLOWPATH);
	cr_expect_str_eq(p->order, "PLCMW");
	cr_expect_eq(p->shared.rings.threads, 0);
	cr_expect_eq(flags_of(p, 4, loopback), POLICY_F_RECURSION, "the default");
	end(p);
	run_shared_fini(&s);
	config_free(c);
}

Test(run_shared, a_large_machine_gets_small_rings)
{
	struct config *c = config_of("forward:\n  - to: [ 10.0.0.1 ]\ncache:\n  memory: 1M\n");
	struct run_shared s;
	const char *why;
	run_shared_init(&s);
	cr_assert_eq(run_shared_create(&s, c, 64, 32, &why), ERR_OK, "%s", why);
	cr_expect_leq(s.rings_bytes, 110u << 20, "%llu", (unsigned long long)s.rings_bytes);
	run_shared_fini(&s);
	config_free(c);
}

Test(run_shared, impossible_numbers_are_refused)
{
	struct config *c = config_of("");
	struct run_shared s;
	const char *why = NULL;
	run_shared_init(&s);
	cr_expect_eq(run_shared_create(&s, c, RING_SET_MAX_THREADS + 1, 1, &why), ERR_ARGUMENT);
	cr_expect_eq(run_shared_create(&s, c, 1, 0, &why), ERR_ARGUMENT);
	cr_expect_eq(run_shared_create(&s, c, 1, RING_SET_MAX_WORKERS + 1, &why), ERR_ARGUMENT);
	cr_expect_not_null(why);
	run_shared_fini(&s);
	config_free(c);
	c = config_of("forward:\n  - to: [ 10.0.0.1 ]\ncache:\n  memory: 1T\n");
	cr_expect_eq(run_shared_create(&s, c, 1, 1, &why), ERR_NOMEM, "a TiB");
	cr_expect_str_eq(why, "no memory for the answer cache");
	run_shared_fini(&s);
	config_free(c);
}

Test(run_shared, memory_is_what_was_asked_for_or_a_quarter)
{
	struct config *given = config_of("cache:\n  memory: 3M\n"), *automatic = config_of("");
	cr_expect_eq(run_shared_memory(given, 1ull << 40), 3u << 20);
	cr_expect_eq(run_shared_memory(automatic, 8ull << 30), 2ull << 30);
	cr_expect_eq(run_shared_memory(automatic, 1ull << 40), 4ull << 30);
	cr_expect_eq(run_shared_memory(automatic, 0), 1u << 20);
	config_free(given);
	config_free(automatic);
}

Test(run_shared, receive_queues_are_counted)
{
	char folder[] = "/tmp/run_sharedXXXXXX", path[300];
	static const char *const made[] = { "/e", "/e/queues", "/e/queues/rx-0", "/e/queues/rx-1", "/e/queues/tx-0", "/f" };
	cr_assert(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		snprintf(path, sizeof path, "%s%s", folder, made[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	cr_expect_eq(run_shared_queues(folder, "e"), 2);
	cr_expect_eq(run_shared_queues(folder, "f"), 0);
	cr_expect_eq(run_shared_queues(folder, "none"), 0);
	for (size_t i = ARRAY_LEN(made); i-- > 0;) {
		snprintf(path, sizeof path, "%s%s", folder, made[i]);
		cr_expect_eq(rmdir(path), 0);
	}
	rmdir(folder);
}
