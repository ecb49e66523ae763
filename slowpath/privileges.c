/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/slowpath.h"
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
	enum err err = err_from_errno(errno);
	log_write(M_SLOWPATH_PRIVILEGES, "%s: %s", what, strerror(errno));
	return err == ERR_OK ? ERR_IO : err;
}

static enum err become_user(const char *name)
{
	if (geteuid() != 0)
		return ERR_OK;
	struct passwd *user = getpwnam(name);
	if (!user) {
		log_write(M_SLOWPATH_PRIVILEGES, "there is no user %s: the slowpath stays root, without capabilities", name);
		return ERR_OK;
	}
	if (setgroups(0, NULL) < 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
		return failure(name);
	return ERR_OK;
}

enum err privileges_drop(const char *user)
{
	/* The bounding set first: shrinking it takes a capability. Without that one there is nothing that could come back. */
	for (cap_value_t c = 0; cap_get_bound(c) >= 0; c++)
		(void)cap_drop_bound(c);
	enum err err = become_user(user);
	if (err != ERR_OK)
		return err;
	cap_t none = cap_init();
	if (!none)
		return ERR_NOMEM;
	int r = cap_set_proc(none);
	cap_free(none);
	if (r < 0)
		return failure("capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return failure("no_new_privs");
#ifndef SKUA_DEBUG
	/* Nobody may read the memory of this process, nor its core. Debug builds want both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return failure("dumpable");
#endif
	/* Another uid has cleared it. The link ends as well when the supervisor dies; this is for a process that hangs then. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return failure("death signal");
	return ERR_OK;
}
