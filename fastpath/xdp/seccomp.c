/* SPDX-License-Identifier: Apache-2.0 */
/* What skua-fastpath may ask of the kernel once it serves. Everything else kills the process: the supervisor starts it again,
 * and the
 * kernel path serves meanwhile. No file is opened any more, no program run, no socket made, no process started. */
#include "xdp/fastpath.h"

#include "base/log.h"

#include <errno.h>
#include <linux/bpf.h>
#include <seccomp.h>

/* The sanitizers' own calls are many and change: their builds run without. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

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
static const int allowed_bpf[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM };

enum err seccomp_enter(void)
{
	scmp_filter_ctx ctx;
	int result = 0;

	if (IS_SANITIZED)
		return ERR_OK;
	ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!ctx)
		return ERR_NOMEM;
	/* The serving threads run already: they get the same filter. */
	result = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	for (size_t i = 0; i < ARRAY_LEN(allowed) && !result; i++)
		result = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(allowed_bpf) && !result; i++) {
		struct scmp_arg_cmp command = {
			.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)allowed_bpf[i], .datum_b = 0
		};

		result = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1, &command);
	}
	if (!result)
		result = seccomp_load(ctx);
	seccomp_release(ctx);
	if (result) {
		log_write(M_XDP_PRIVILEGES, "seccomp: %s", strerror(-result));
		return err_from_errno(-result);
	}
	return ERR_OK;
}
