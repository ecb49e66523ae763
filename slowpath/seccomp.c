/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.c: the system calls of the slowpath, and why each is needed. Everything else fails with EPERM, which libraries take for
 * "not on this system" and go on: a call that a new libc invents must not stop DNS. No program can be started (execve and
 * fork are not there), no socket be made but unix and IP ones. */
#include "slowpath/slowpath.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/socket.h>

/* clang-format off */
static const int allowed[] = {
	/* Serving: UDP by the batch, TCP by libuv. */
	SCMP_SYS(recvmmsg), SCMP_SYS(sendmmsg), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendto),
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(accept4), SCMP_SYS(listen) /* uv_listen, again */,
	SCMP_SYS(shutdown), SCMP_SYS(close),
	/* What a socket is, who its peer is; TCP_NODELAY and the like. */
	SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(ioctl), SCMP_SYS(fcntl),
	/* Waiting: libuv's loop and its wake-ups, the main loop, time. */
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2), SCMP_SYS(pipe2),
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(signalfd4),
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
	SCMP_SYS(restart_syscall),
	/* Threads: locks, grace periods, CPU affinity, names, stacks. */
	SCMP_SYS(futex), SCMP_SYS(membarrier), SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(gettid),
	SCMP_SYS(getpid), SCMP_SYS(prctl), SCMP_SYS(sigaltstack),
	/* Memory: the allocator and mappings. */
	SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(getrandom),
	SCMP_SYS(sysinfo), SCMP_SYS(prlimit64),
	/* Segments and maps. */
	SCMP_SYS(memfd_create), SCMP_SYS(ftruncate), SCMP_SYS(fallocate),
	/* Master files and image files; NSS for the control protocol's group check. */
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(fstat), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
	SCMP_SYS(pread64), SCMP_SYS(lseek), SCMP_SYS(getdents64), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
	SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
	SCMP_SYS(fsync), SCMP_SYS(fdatasync),
	/* Questions to other servers: sockets with random ports. */
	SCMP_SYS(connect), SCMP_SYS(bind),
	/* Signals; an assertion that fails must be able to say so and die by SIGABRT. */
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(tgkill),
	/* Who we are, for SO_PEERCRED's comparison. */
	SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(uname),
};
/* clang-format on */

static const struct syscall_condition conditional[] = {
	/* Threads, not processes. */
	{ SCMP_SYS(clone), 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM },
	/* The journal's socket, and nscd's if there is one. */
	{ SCMP_SYS(socket), 0, SYSCALL_ALL_BITS, AF_UNIX },
	/* Questions to other servers. */
	{ SCMP_SYS(socket), 0, SYSCALL_ALL_BITS, AF_INET },
	{ SCMP_SYS(socket), 0, SYSCALL_ALL_BITS, AF_INET6 },
};

/* clone3 hides its flags from the filter: without it libc uses clone. */
static const int absent[] = { SCMP_SYS(clone3) };

const struct syscall_list slowpath_syscalls = {
	.allowed = allowed,
	.allowed_count = ARRAY_LEN(allowed),
	.conditional = conditional,
	.conditional_count = ARRAY_LEN(conditional),
	.absent = absent,
	.absent_count = ARRAY_LEN(absent),
	.others = SYSCALL_REFUSAL_EPERM,
};
