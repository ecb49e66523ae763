/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as root, as the system tests do: what is given up must be there before. */
#include "base/privileges.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEATH_MS 5000

/* The rest of the line of /proc/self/status that begins with key, without white space around it. */
static void status(const char *key, char *out, size_t out_bytes)
{
	char line[512];
	FILE *f = fopen("/proc/self/status", "re");
	out[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		const char *value = line + strlen(key);
		value += strspn(value, " \t");
		snprintf(out, out_bytes, "%.*s", (int)strcspn(value, "\n"), value);
	}
	if (f)
		fclose(f);
}

static bool has_status(const char *key, const char *expected)
{
	char value[256];
	status(key, value, sizeof(value));
	if (strcmp(value, expected) == 0)
		return true;
	fprintf(stderr, "%s is \"%s\", not \"%s\"\n", key, value, expected);
	return false;
}

/* The child's exit code: which of the checks failed, 0 none. */
static int check_dropped(const char *user, uid_t uid, gid_t gid, const char *groups)
{
	char ids[64], gids[64];
	if (privileges_drop(user) != ERR_OK)
		return 1;
	snprintf(ids, sizeof(ids), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
	snprintf(gids, sizeof(gids), "%u\t%u\t%u\t%u", gid, gid, gid, gid);
	if (!has_status("Uid:", ids) || !has_status("Gid:", gids))
		return 2;
	if (groups && !has_status("Groups:", groups))
		return 3;
	static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };
	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (!has_status(sets[i], "0000000000000000"))
			return 4;
	if (!has_status("NoNewPrivs:", "1"))
		return 5;
#ifndef SKUA_DEBUG
	if (prctl(PR_GET_DUMPABLE) != 0)
		return 6;
#endif
	int death_signal = 0;
	if (prctl(PR_GET_PDEATHSIG, &death_signal) != 0 || death_signal != SIGKILL)
		return 7;
	/* For good. */
	return setresuid(0, 0, 0) == 0 && uid != 0 ? 8 : 0;
}

static int child_code(pid_t child)
{
	int code = -1;
	cr_assert_eq(waitpid(child, &code, 0), child);
	return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

Test(privileges, root_becomes_the_user_and_keeps_nothing)
{
	const struct passwd *nobody = getpwnam("nobody");
	cr_assert(nobody);
	uid_t uid = nobody->pw_uid;
	gid_t gid = nobody->pw_gid;
	cr_assert_eq(geteuid(), 0, "unit tests run as root");
	pid_t child = fork();
	if (child == 0)
		_exit(check_dropped("nobody", uid, gid, ""));
	cr_assert_eq(child_code(child), 0);
}

Test(privileges, a_user_that_does_not_exist_leaves_root_without_capabilities)
{
	pid_t child = fork();
	if (child == 0)
		_exit(check_dropped("skua-no-such-user", 0, 0, NULL));
	cr_assert_eq(child_code(child), 0);
}

static int check_unprivileged(void)
{
	if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
		return 1;
	if (privileges_drop("daemon") != ERR_OK)
		return 2;
	return has_status("Uid:", "65534\t65534\t65534\t65534") && has_status("CapEff:", "0000000000000000") ? 0 : 3;
}

Test(privileges, who_is_not_root_stays_who_he_is)
{
	pid_t child = fork();
	if (child == 0)
		_exit(check_unprivileged());
	cr_assert_eq(child_code(child), 0);
}

/* parent makes a child that drops its privileges and then hangs; ends when that is done. */
static void be_parent_of_one_that_hangs(int alive_fd)
{
	int ready[2];
	if (pipe(ready) != 0)
		_exit(1);
	if (fork() == 0) {
		char result = privileges_drop("nobody") == ERR_OK ? 'y' : 'n';
		if (write(ready[1], &result, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	char result = 'n';
	if (read(ready[0], &result, 1) != 1)
		_exit(1);
	close(alive_fd);
	_exit(result == 'y' ? 0 : 2);
}

Test(privileges, a_part_dies_with_its_parent)
{
	int alive[2];
	cr_assert_eq(pipe2(alive, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (parent == 0)
		be_parent_of_one_that_hangs(alive[1]);
	cr_assert_eq(child_code(parent), 0);
	close(alive[1]);
	/* The other end closes with the last process that holds it. */
	struct pollfd p = { .fd = alive[0], .events = POLLIN };
	cr_assert_eq(poll(&p, 1, DEATH_MS), 1);
	char octet;
	cr_assert_eq(read(alive[0], &octet, 1), 0);
	close(alive[0]);
}
