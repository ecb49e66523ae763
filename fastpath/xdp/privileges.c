/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/fastpath.h"

#include "base/log.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

static enum err failed(const char *what)
{
	int saved = errno;

	log_write(M_XDP_PRIVILEGES, "%s: %s", what, strerror(saved));
	return err_from_errno(saved);
}

static enum err switch_user(const char *user)
{
	const struct passwd *p;

	if (geteuid() != 0)
		return ERR_OK;
	p = getpwnam(user);
	if (!p) {
		log_write(M_XDP_PRIVILEGES, "there is no user %s: staying root, without capabilities", user);
		return ERR_OK;
	}
	if (setgroups(0, NULL) != 0 || setresgid(p->pw_gid, p->pw_gid, p->pw_gid) != 0 ||
	    setresuid(p->pw_uid, p->pw_uid, p->pw_uid) != 0)
		return failed("cannot become the user of the fastpath");
	return ERR_OK;
}

static enum err drop_capabilities(void)
{
	cap_t none = cap_init();
	int result;

	if (!none)
		return ERR_NOMEM;
	/* The bounding set needs CAP_SETPCAP, which a process that is not root does not have: nothing to drop there then. */
	for (int c = 0; cap_get_bound(c) >= 0; c++)
		prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	result = cap_set_proc(none);
	cap_free(none);
	if (result != 0)
		return failed("cannot drop capabilities");
	cap_reset_ambient();
	return ERR_OK;
}

enum err privileges_drop(const char *user)
{
	pid_t parent = getppid();
	enum err err = switch_user(user);

	if (!err)
		err = drop_capabilities();
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return failed("no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return failed("cannot forbid dumps");
	/* Changing the uid has cleared it. The parent may have died before: then nobody would kill us. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		return failed("cannot ask to die with the supervisor");
	if (getppid() != parent) {
		log_write(M_XDP_LINK_ENDED, "the supervisor died while the fastpath started");
		return ERR_CLOSED;
	}
	return ERR_OK;
}
