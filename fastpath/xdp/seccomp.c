/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.c: what skua-fastpath may ask of the kernel once it serves, and why. Everything else kills the process: the supervisor
 * starts it again, and the kernel path serves meanwhile. No file is opened any more, no program run, no socket made, no process
 * started. */
#include "xdp/fastpath.h"

#include <linux/bpf.h>
#include <seccomp.h>

static const int allowed[] = {
	/* serving threads: kick, wake up the driver, sleep; the clock where the vDSO has none */
	SCMP_SYS(sendto),
	SCMP_SYS(recvfrom),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	/* threads: liburcu's grace periods, locks, ends */
	SCMP_SYS(futex),
	SCMP_SYS(membarrier),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(sched_yield),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* the link: messages and descriptors */
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(close),
	SCMP_SYS(fcntl),
	/* segments and maps: size, seals, mapping */
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(madvise),
	/* the allocator */
	SCMP_SYS(brk),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(getrandom),
	/* the control socket, signals, log lines */
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(accept4),
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(shutdown),
	SCMP_SYS(getsockopt),
	SCMP_SYS(timerfd_settime),
	/* MTU and link state by ioctl on a socket that is there already */
	SCMP_SYS(ioctl),
	/* an assertion that fails must be able to say so and die by SIGABRT */
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(tgkill),
	SCMP_SYS(restart_syscall),
};

/* Of bpf() only what sets, reads and empties a slot of a map that we hold. */
static const struct syscall_condition conditional[] = {
	{ SCMP_SYS(bpf), 0, SYSCALL_ALL_BITS, BPF_MAP_LOOKUP_ELEM },
	{ SCMP_SYS(bpf), 0, SYSCALL_ALL_BITS, BPF_MAP_UPDATE_ELEM },
	{ SCMP_SYS(bpf), 0, SYSCALL_ALL_BITS, BPF_MAP_DELETE_ELEM },
};

const struct syscall_list fastpath_syscalls = {
	.allowed = allowed,
	.allowed_count = ARRAY_LEN(allowed),
	.conditional = conditional,
	.conditional_count = ARRAY_LEN(conditional),
	.others = SYSCALL_REFUSAL_KILL,
};
