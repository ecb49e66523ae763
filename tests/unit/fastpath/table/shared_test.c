/* SPDX-License-Identifier: Apache-2.0 */
#include "table/shared.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct shared s;

static enum err take(uint32_t type, uint32_t a, uint32_t b, int fd)
{
	struct link_msg m = { .type = type, .a = a, .b = b };
	enum err err = shared_take(&s, &m, &fd);
	cr_expect_eq(err == ERR_OK, fd == -1, "taken if it says so, left to the caller otherwise");
	if (fd >= 0)
		close(fd);
	return err;
}
static int null(void) { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

Test(shared, each_comes_once_and_eventfds_in_order)
{
	shared_init(&s);
	static const uint32_t types[] = { LINK_CACHE, LINK_MARKS, LINK_RINGS, LINK_LOG };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		cr_expect_eq(take(types[i], 7, 0, null()), ERR_OK);
		cr_expect_eq(take(types[i], 8, 0, null()), ERR_MALFORMED, "%s twice", link_type_text(types[i]));
	}
	cr_expect_eq(s.first_marks, 7);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_THREAD, 1, null()), ERR_MALFORMED, "not the next one");
	for (unsigned i = 0; i < RING_SET_MAX_THREADS; i++)
		cr_assert_eq(take(LINK_WAKE, LINK_WAKE_THREAD, i, null()), ERR_OK);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_THREAD, RING_SET_MAX_THREADS, null()), ERR_MALFORMED);
	for (unsigned i = 0; i < RING_SET_MAX_WORKERS; i++)
		cr_assert_eq(take(LINK_WAKE, LINK_WAKE_WORKER, i, null()), ERR_OK);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_WORKER, RING_SET_MAX_WORKERS, null()), ERR_MALFORMED);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_WORKER, 0, null()), ERR_MALFORMED);
	cr_expect_eq(take(LINK_WAKE, 2, 0, null()), ERR_MALFORMED);
	cr_expect_eq(take(LINK_SETTINGS, 0, 0, null()), ERR_NOTFOUND);
	cr_expect_eq(take(LINK_POLICY, 0, 0, null()), ERR_NOTFOUND);
	shared_fini(&s);
	cr_expect_eq(s.cache_fd, -1);
	cr_expect_eq(null(), null() - 1, "nothing was left open");
}

Test(shared, what_fails_its_checks_is_left_out_and_the_rest_is_there)
{
	const char *why = NULL;
	int cache, marks, rings, log;
	shared_init(&s);
	cr_assert_eq(cache_create(&cache, 2u << 20), ERR_OK);
	cr_assert_eq(cache_marks_create(&marks, cache, 2), ERR_OK);
	cr_assert_eq(ring_set_create(&rings, 1, 1, 4096, 4096), ERR_OK);
	cr_assert_eq(log_ring_create(&log, 2, "t"), ERR_OK);

	cr_expect_eq(take(LINK_CACHE, 0, 0, dup(cache)), ERR_OK);
	cr_expect_eq(take(LINK_MARKS, 0, 0, dup(marks)), ERR_OK);
	cr_expect_eq(take(LINK_LOG, 0, 0, dup(log)), ERR_OK);
	cr_expect_eq(take(LINK_RINGS, 0, 0, dup(rings)), ERR_OK);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_WORKER, 0, eventfd(0, EFD_CLOEXEC)), ERR_OK);
	cr_expect_eq(shared_attach(&s, &why), ERR_CORRUPT, "rings for one thread, no eventfd for it");
	cr_expect(why && s.cache && s.log && s.rings.threads == 0);
	shared_fini(&s);

	cr_expect_eq(take(LINK_CACHE, 0, 0, dup(log)), ERR_OK);
	cr_expect_eq(take(LINK_LOG, 0, 0, dup(cache)), ERR_OK);
	cr_expect_eq(take(LINK_RINGS, 0, 0, dup(rings)), ERR_OK);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_WORKER, 0, eventfd(0, EFD_CLOEXEC)), ERR_OK);
	cr_expect_eq(take(LINK_WAKE, LINK_WAKE_THREAD, 0, eventfd(0, EFD_CLOEXEC)), ERR_OK);
	cr_expect_neq(shared_attach(&s, &why), ERR_OK, "mixed up");
	cr_expect(!s.cache && !s.log && s.rings.threads == 1);
	shared_fini(&s);
	cr_expect_eq(shared_attach(&s, &why), ERR_OK, "nothing came, nothing is missing");
	close(cache);
	close(marks);
	close(rings);
	close(log);
}
