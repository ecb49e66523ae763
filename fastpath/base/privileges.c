/* SPDX-License-Identifier: Apache-2.0 */
#include "base/privileges.h"
#include "base/log.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

static enum err failure(const char *what)
{
	int saved = errno;
	log_write(M_PRIVILEGES, "%s: %s", what, strerror(saved));
	return err_from_errno(saved);
}

static enum err become_user(const char *name)
{
	if (geteuid() != 0)
		return ERR_OK;
	const struct passwd *user = getpwnam(name);
	if (!user) {
		log_write(M_PRIVILEGES, "there is no user %s: staying root, without capabilities", name);
		return ERR_OK;
	}
	if (setgroups(0, NULL) != 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
		return failure(name);
	return ERR_OK;
}

static enum err drop_capabilities(void)
{
	cap_t none = cap_init();
	if (!none)
		return ERR_NOMEM;
	int result = cap_set_proc(none);
	cap_free(none);
	return result == 0 ? ERR_OK : failure("capabilities");
}

enum err privileges_drop(const char *user)
{
	pid_t parent = getppid();
	/* The bounding set first: shrinking it takes CAP_SETPCAP, which goes with root. Without it there is nothing that could come
	 * back. */
	for (cap_value_t c = 0; cap_get_bound(c) >= 0; c++)
		(void)cap_drop_bound(c);
	enum err err = become_user(user);
	if (err == ERR_OK)
		err = drop_capabilities();
	if (err != ERR_OK)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return failure("no_new_privs");
#ifndef SKUA_DEBUG
	/* Debuggers and sanitizers want both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return failure("dumpable");
#endif
	/* Another uid has cleared it. The link ends as well when the supervisor dies; this is for a process that hangs then. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		return failure("death signal");
	/* Who died before that call will not kill us any more. */
	if (getppid() != parent) {
		log_write(M_PRIVILEGES, "the supervisor died while this part started");
		return ERR_CLOSED;
	}
	return ERR_OK;
}
