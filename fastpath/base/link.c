/* SPDX-License-Identifier: Apache-2.0 */
#include "base/link.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room for more descriptors than a message may carry, so that surplus ones arrive and are closed here rather than
 * making the control data look cut off in ways that differ between kernels. */
#define LINK_FDS_RECEIVED 4

static const struct {
	const char *text;
	bool has_fd; /* always, or never */
} types[LINK_TYPE_COUNT_] = {
	[LINK_CONFIG] = { "config", true },
	[LINK_COUNTERS] = { "counters", true },
	[LINK_SETTINGS] = { "settings", true },
	[LINK_CONTROL] = { "control", true },
	[LINK_LISTEN] = { "listen", true },
	[LINK_XSKMAP] = { "xskmap", true },
	[LINK_GO] = { "go", false },
	[LINK_STOP] = { "stop", false },
	[LINK_PARKED] = { "parked", false },
	[LINK_SEGMENT] = { "segment", true },
	[LINK_SEGMENT_DROP] = { "segment drop", false },
	[LINK_MAP] = { "map", true },
	[LINK_READY] = { "ready", false },
	[LINK_LIVE] = { "live", false },
	[LINK_FAILED] = { "failed", false },
	[LINK_ZONES] = { "zones", true },
	[LINK_POLICY] = { "policy", true },
	[LINK_LOG] = { "log", true },
	[LINK_CACHE] = { "cache", true },
	[LINK_MARKS] = { "marks", true },
	[LINK_WAKE] = { "wake", true },
	[LINK_RINGS] = { "rings", true },
};

static bool is_type(uint32_t type) { return type < LINK_TYPE_COUNT_ && types[type].text; }

const char *link_type_text(uint32_t type) { return is_type(type) ? types[type].text : "unknown"; }

enum err link_send(int link, struct link_msg *msg, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };

	if (!is_type(msg->type) || types[msg->type].has_fd != (fd >= 0) || !memchr(msg->text, '\0', sizeof msg->text))
		return ERR_ARGUMENT;
	msg->magic = LINK_MAGIC;
	struct iovec iov = { msg, sizeof *msg };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (fd >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof control.bytes;
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	ssize_t sent;
	do
		sent = sendmsg(link, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return ERR_OK; /* a packet goes whole or not at all */
	/* ETOOMANYREFS: too many descriptors in flight; they become fewer as the peer reads */
	return errno == ENOTCONN ? ERR_CLOSED : errno == ETOOMANYREFS ? ERR_AGAIN : err_from_errno(errno);
}

/* Takes every descriptor out of header; keeps the first in *fd and closes the rest. How many came. */
static unsigned take_descriptors(struct msghdr *header, int *fd, bool *is_strange)
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			*is_strange = true;
			continue;
		}
		size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < fds; i++) {
			int got;
			memcpy(&got, CMSG_DATA(c) + i * sizeof(int), sizeof got);
			if (count++ == 0)
				*fd = got;
			else
				close(got);
		}
	}
	return count;
}

enum err link_receive(int link, struct link_msg *msg, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(LINK_FDS_RECEIVED * sizeof(int))];
	} control;
	struct link_msg got;
	struct iovec iov = { &got, sizeof got };
	struct msghdr header = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
	};
	ssize_t bytes;

	do
		bytes = recvmsg(link, &header, MSG_CMSG_CLOEXEC);
	while (bytes < 0 && errno == EINTR);
	if (bytes < 0)
		return errno == ENOTCONN ? ERR_CLOSED : err_from_errno(errno);

	int got_fd = -1;
	bool is_strange = false;
	unsigned fds = take_descriptors(&header, &got_fd, &is_strange);
	if (bytes == 0 && fds == 0)
		return ERR_CLOSED; /* an empty packet looks the same and ends the link as well */
	if (is_strange || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || bytes != sizeof got || got.magic != LINK_MAGIC ||
	    !is_type(got.type) || fds != types[got.type].has_fd || !memchr(got.text, '\0', sizeof got.text)) {
		if (got_fd >= 0)
			close(got_fd);
		return ERR_MALFORMED;
	}
	*msg = got;
	*fd = got_fd;
	return ERR_OK;
}
