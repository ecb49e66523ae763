/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_lock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void make_folder(void)
{
	strcpy(folder, "/tmp/skua-run-lock-XXXXXX");
	cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(run_lock, .init = make_folder, .fini = remove_folder);

static const char *inside(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

Test(run_lock, makes_a_folder_and_those_above_it)
{
	struct stat st;

	cr_assert_eq(run_lock_folder(inside("a/b/c"), 0750), ERR_OK);
	cr_assert_eq(stat(inside("a/b/c"), &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0750);
	cr_expect_eq(run_lock_folder(inside("a/b/c"), 0750), ERR_OK, "it is there already");
}

Test(run_lock, says_why_a_folder_can_not_be)
{
	char too_long[5000];

	fclose(fopen(inside("file"), "w"));
	cr_expect_eq(run_lock_folder(inside("file"), 0755), ERR_EXISTS);
	cr_expect_eq(errno, ENOTDIR);
	cr_expect_neq(run_lock_folder(inside("file/below"), 0755), ERR_OK);
	cr_expect_eq(errno, ENOTDIR);
	memset(too_long, 'x', sizeof too_long - 1);
	too_long[0] = '/';
	too_long[sizeof too_long - 1] = '\0';
	cr_expect_eq(run_lock_folder(too_long, 0755), ERR_RANGE);
}

Test(run_lock, a_second_one_is_told_who_is_first)
{
	int first = -1, second = -1;
	pid_t holder = -1;

	cr_assert_eq(run_lock_take(&first, folder, &holder), ERR_OK);
	cr_expect_eq(holder, 0, "nobody was here before");
	cr_expect_eq(run_lock_take(&second, folder, &holder), ERR_BUSY);
	cr_expect_eq(holder, getpid());
	cr_expect_eq(second, -1);
	run_lock_give(first);
	cr_assert_eq(run_lock_take(&second, folder, &holder), ERR_OK);
	cr_expect_eq(holder, 0, "a proper end names nobody");
	run_lock_give(second);
}

Test(run_lock, whoever_was_killed_holds_nothing_but_is_named)
{
	int fd = -1, status;
	pid_t holder = -1, child = fork();

	if (child == 0) {
		_exit(run_lock_take(&fd, folder, &holder) == ERR_OK ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(run_lock_take(&fd, folder, &holder), ERR_OK);
	cr_expect_eq(holder, child);
	run_lock_give(fd);
}

Test(run_lock, a_link_in_its_place_is_not_followed)
{
	int fd = -1;
	pid_t holder = 0;

	char target[256];
	snprintf(target, sizeof target, "%s", inside("elsewhere"));
	cr_assert_eq(symlink(target, inside("skua.lock")), 0);
	cr_expect_neq(run_lock_take(&fd, folder, &holder), ERR_OK);
	cr_expect_eq(access(target, F_OK), -1);
}
