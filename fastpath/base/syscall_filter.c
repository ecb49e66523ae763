/* SPDX-License-Identifier: Apache-2.0 */
#include "base/syscall_filter.h"
#include "base/log.h"

#include <errno.h>
#include <seccomp.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

/* These return negative errno values, as libseccomp does. */
static int add_calls(scmp_filter_ctx ctx, uint32_t action, const int *call, size_t count)
{
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = seccomp_rule_add(ctx, action, call[i], 0);
	return result;
}

static int add_conditions(scmp_filter_ctx ctx, const struct syscall_condition *c, size_t count)
{
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		struct scmp_arg_cmp argument = {
			.arg = c[i].argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = c[i].mask, .datum_b = c[i].value
		};
		result = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, c[i].call, 1, &argument);
	}
	return result;
}

static int load(scmp_filter_ctx ctx, const struct syscall_list *list)
{
	/* Threads that run already get the same filter. */
	int result = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
#ifdef SKUA_DEBUG
	/* The kernel's audit log names what was refused. */
	if (result == 0)
		result = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
#endif
	if (result == 0)
		result = add_calls(ctx, SCMP_ACT_ALLOW, list->allowed, list->allowed_count);
	if (result == 0)
		result = add_conditions(ctx, list->conditional, list->conditional_count);
	if (result == 0)
		result = add_calls(ctx, SCMP_ACT_ERRNO(ENOSYS), list->absent, list->absent_count);
	return result == 0 ? seccomp_load(ctx) : result;
}

enum err syscall_filter_enter(const struct syscall_list *list)
{
	if (IS_SANITIZED)
		return ERR_OK;
	scmp_filter_ctx ctx = seccomp_init(list->others == SYSCALL_REFUSAL_KILL ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return ERR_NOMEM;
	int result = load(ctx, list);
	seccomp_release(ctx);
	if (result == 0)
		return ERR_OK;
	log_write(M_PRIVILEGES, "no seccomp filter: %s", strerror(-result));
	return err_from_errno(-result);
}
