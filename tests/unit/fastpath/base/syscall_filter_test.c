/* SPDX-License-Identifier: Apache-2.0 */
/* Each case restricts a child process and looks at what its calls return. Sanitized builds go without a filter, and that is what is
 * checked there. */
#include "base/syscall_filter.c"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WENT_WRONG 99 /* no errno */

static const int allowed[] = { SCMP_SYS(getpid),       SCMP_SYS(exit),	SCMP_SYS(exit_group), SCMP_SYS(write),
			       SCMP_SYS(rt_sigreturn), SCMP_SYS(futex), SCMP_SYS(close) };
static const struct syscall_condition conditional[] = {
	{ SCMP_SYS(fcntl), 1, SYSCALL_ALL_BITS, F_GETFD },
	{ SCMP_SYS(fcntl), 1, SYSCALL_ALL_BITS, F_GETFL },
	{ SCMP_SYS(lseek), 1, 0xf0, 0x10 },
};
static const int absent[] = { SCMP_SYS(getuid) };

static struct syscall_list list_that(enum syscall_refusal others)
{
	return (struct syscall_list){ .allowed = allowed,
				      .allowed_count = ARRAY_LEN(allowed),
				      .conditional = conditional,
				      .conditional_count = ARRAY_LEN(conditional),
				      .absent = absent,
				      .absent_count = ARRAY_LEN(absent),
				      .others = others };
}

/* errno of one call under the filter; the wait status of the child otherwise. */
static int outcome(enum syscall_refusal others, long call, long a, long b)
{
	int code = 0;
	pid_t child = fork();
	if (child == 0) {
		struct syscall_list list = list_that(others);
		if (syscall_filter_enter(&list) != ERR_OK)
			_exit(WENT_WRONG);
		errno = 0;
		syscall(call, a, b, 0L);
		_exit(errno);
	}
	cr_assert_eq(waitpid(child, &code, 0), child);
	return code;
}

/* What the kernel answers to the call by itself, and what it must answer under the filter. */
static const struct {
	const char *sentence;
	long call, a, b;
	int without, with;
} cases[] = {
	{ "a listed call passes", SYS_getpid, 0, 0, 0, 0 },
	{ "a listed call fails as it always did", SYS_close, -1, 0, EBADF, EBADF },
	{ "one that is not listed is refused", SYS_getppid, 0, 0, 0, EPERM },
	{ "one that does not exist is refused", 100000, 0, 0, ENOSYS, EPERM },
	{ "an absent one looks as if the kernel had not got it", SYS_getuid, 0, 0, 0, ENOSYS },
	{ "the first value of an argument passes", SYS_fcntl, -1, F_GETFD, EBADF, EBADF },
	{ "the second one too", SYS_fcntl, -1, F_GETFL, EBADF, EBADF },
	{ "another one is refused", SYS_fcntl, -1, F_GETLK, EBADF, EPERM },
	{ "bits above the value are looked at", SYS_fcntl, -1, (1L << 32) | F_GETFD, EBADF, EPERM },
	{ "bits outside the mask are not", SYS_lseek, -1, 0xf13, EBADF, EBADF },
	{ "bits within it are", SYS_lseek, -1, 0xf23, EBADF, EPERM },
};

Test(syscall_filter, what_is_not_permitted_fails)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int code = outcome(SYSCALL_REFUSAL_EPERM, cases[i].call, cases[i].a, cases[i].b);
		cr_expect(WIFEXITED(code) && WEXITSTATUS(code) == (IS_SANITIZED ? cases[i].without : cases[i].with), "%s: %x",
			  cases[i].sentence, code);
	}
}

Test(syscall_filter, what_is_not_permitted_kills)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int code = outcome(SYSCALL_REFUSAL_KILL, cases[i].call, cases[i].a, cases[i].b);
		bool is_killed = !IS_SANITIZED && cases[i].with == EPERM;
		cr_expect(is_killed ? WIFSIGNALED(code) && WTERMSIG(code) == SIGSYS
				    : WIFEXITED(code) && WEXITSTATUS(code) == (IS_SANITIZED ? cases[i].without : cases[i].with),
			  "%s: %x", cases[i].sentence, code);
	}
}

static sem_t is_running, is_filtered, is_tried;
static int errno_of_thread;

static void wait_for(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

static void *try_in_thread(void *unused)
{
	(void)unused;
	sem_post(&is_running);
	wait_for(&is_filtered);
	errno = 0;
	syscall(SYS_getppid);
	errno_of_thread = errno;
	sem_post(&is_tried);
	return NULL;
}

Test(syscall_filter, threads_that_run_already_are_under_it)
{
	int code = 0;
	pid_t child = fork();
	if (child == 0) {
		struct syscall_list list = list_that(SYSCALL_REFUSAL_EPERM);
		pthread_t thread;
		if (sem_init(&is_running, 0, 0) != 0 || sem_init(&is_filtered, 0, 0) != 0 || sem_init(&is_tried, 0, 0) != 0 ||
		    pthread_create(&thread, NULL, try_in_thread, NULL) != 0)
			_exit(WENT_WRONG);
		/* Starting a thread takes calls of its own. */
		wait_for(&is_running);
		if (syscall_filter_enter(&list) != ERR_OK)
			_exit(WENT_WRONG);
		sem_post(&is_filtered);
		wait_for(&is_tried);
		_exit(errno_of_thread);
	}
	cr_assert_eq(waitpid(child, &code, 0), child);
	cr_assert(WIFEXITED(code) && WEXITSTATUS(code) == (IS_SANITIZED ? 0 : EPERM), "%x", code);
}

Test(syscall_filter, a_list_that_libseccomp_refuses_is_an_error_and_no_filter)
{
	static const struct syscall_condition seventh_argument[] = { { SCMP_SYS(fcntl), 6, SYSCALL_ALL_BITS, 0 } };
	struct syscall_list list = { .conditional = seventh_argument, .conditional_count = 1, .others = SYSCALL_REFUSAL_KILL };
	cr_assert_eq(syscall_filter_enter(&list) == ERR_OK, IS_SANITIZED);
	cr_assert_gt(getppid(), 0);
}
