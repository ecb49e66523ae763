/* SPDX-License-Identifier: Apache-2.0 */
/* config_load when each of its allocations fails in turn. Sanitizers bring their own malloc: there the same file is loaded and
 * freed, so that they see what is left. */
#include "config/config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

static const char text[] =
	"server:\n  identity: a\n  cookie-secrets: [ 000102030405060708090a0b0c0d0e0f ]\n"
	"listen:\n  dns: [ 10.0.0.1, 10.0.0.2 ]\nxdp:\n  interfaces: [ a, b ]\n  cpus: 1-3\n"
	"forward:\n  - zone: a\n    to: [ 10.0.0.1, \"tls://10.0.0.2#b\" ]\n  - to: [ 10.0.0.3 ]\n"
	"recursion:\n  allow: [ 10.0.0.0/8 ]\nlocal:\n  special-names-off: [ a, b ]\n  hosts: [ c ]\n  records: [ d, e ]\n"
	"zones:\n  - name: a\n    file: b\n  - name: c\n    file: d\nlog:\n  run: debug\n";

static unsigned reports;
static void count(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)user, (void)is_error, (void)place, (void)message;
	reports++;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static _Thread_local long fail_at; /* 1: the next one fails; 0: none */
static bool is_failing(void)
{
	if (fail_at == 0 || --fail_at > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes) { return is_failing() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return is_failing() ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return is_failing() ? NULL : __libc_realloc(old, bytes); }

Test(load_memory, every_failed_allocation_is_told_and_nothing_is_kept)
{
	long failed = 0;
	for (long n = 1;; n++) {
		struct config *c = NULL;
		reports = 0;
		fail_at = n;
		enum err err = config_load(&c, "/x/skua.yaml", text, strlen(text), count, NULL);
		bool is_used_up = fail_at > 0;
		fail_at = 0;
		if (is_used_up) {
			cr_assert_eq(err, ERR_OK);
			config_free(c);
			break;
		}
		cr_assert_eq(err, ERR_NOMEM, "allocation %ld gave %s", n, err_text(err));
		cr_assert_null(c);
		cr_assert_eq(reports, 0, "it is not the file's fault");
		failed++;
	}
	cr_expect_gt(failed, 30);
}

#else

Test(load_memory, nothing_is_left)
{
	struct config *c = NULL;

	cr_assert_eq(config_load(&c, "/x/skua.yaml", text, strlen(text), count, NULL), ERR_OK);
	cr_assert_eq(reports, 0);
	config_free(c);
}

#endif
