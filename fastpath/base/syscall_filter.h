/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_filter.h: which system calls a part may make once it serves: a seccomp filter made from the part's own list
 * (fastpath/xdp/seccomp.c, slowpath/seccomp.c, where each call has its reason). Numbers are libseccomp's, SCMP_SYS(name). */
#pragma once
#include "base/base.h"

#define SYSCALL_ALL_BITS UINT64_MAX

/* Permitted only when the argument of that index (0 to 5), masked, has this value. Several rows for a call: any of them will do. */
struct syscall_condition {
	int call;
	unsigned argument;
	uint64_t mask, value;
};

enum syscall_refusal {
	SYSCALL_REFUSAL_KILL,  /* the process dies by SIGSYS */
	SYSCALL_REFUSAL_EPERM, /* the call fails, and libraries go on as on a system without it */
};

struct syscall_list {
	const int *allowed; /* whatever their arguments */
	size_t allowed_count;
	const struct syscall_condition *conditional;
	size_t conditional_count;
	const int *absent; /* fail with ENOSYS: libc then takes an older call */
	size_t absent_count;
	enum syscall_refusal others;
};

/* Puts all threads of the process under the filter, for good. ERR_NOMEM, ERR_DENIED, ERR_IO and the like: logged, and no thread is
 * under it. Builds with a sanitizer, whose own calls are many and change, go without: ERR_OK, and nothing happens. */
MUST_USE enum err syscall_filter_enter(const struct syscall_list *list);
