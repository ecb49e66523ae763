/* SPDX-License-Identifier: Apache-2.0 */
/* Any packets on the link, with any descriptors: a message arrives whole and well-formed, or not at all, and nothing stays open.
 * Input, again and again: how many descriptors (0 to 7) and in bit 3 whether the head is made right, a length (2 octets), the packet. */
#include "base/bytes.h"
#include "base/link.h"
#include "tests/unit/lib/open_fds.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define FDS_MAX 7u
#define PACKETS_MAX 16u

static int null_fd = -1;

static bool send_packet(int link, const uint8_t *data, size_t bytes, unsigned fd_count)
{
	char control[CMSG_SPACE(FDS_MAX * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)data, bytes };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		for (unsigned i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &null_fd, sizeof(int));
	}
	return sendmsg(link, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

/* What came must be what was sent. */
static void receive(int link, const uint8_t *sent, size_t bytes, unsigned fd_count)
{
	struct link_msg m, expected, untouched;
	int fd = -2;

	memset(&m, 0xa5, sizeof m);
	untouched = m;
	enum err err = link_receive(link, &m, &fd);
	if (err == ERR_OK) {
		memcpy(&expected, sent, MIN(bytes, sizeof expected));
		ASSERT(bytes == sizeof m && memcmp(&m, &expected, sizeof m) == 0 && m.magic == LINK_MAGIC);
		ASSERT(m.type > 0 && m.type < LINK_TYPE_COUNT_ && memchr(m.text, 0, sizeof m.text));
		ASSERT(fd_count <= 1 && (fd >= 0) == (fd_count == 1));
		/* What may come may be sent on. */
		struct link_msg again = m;
		ASSERT(link_send(link, &again, fd) == ERR_OK);
		if (fd >= 0) {
			ASSERT(fcntl(fd, F_GETFD) == FD_CLOEXEC);
			close(fd);
		}
	} else {
		ASSERT(err == ERR_MALFORMED || (err == ERR_CLOSED && bytes == 0));
		ASSERT(fd == -2 && memcmp(&m, &untouched, sizeof m) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2];

	if (null_fd < 0)
		null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned before = open_fds();
	ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	for (unsigned i = 0; i < PACKETS_MAX && size >= 3; i++) {
		uint8_t packet[2 * sizeof(struct link_msg)];
		unsigned fd_count = data[0] & 7;
		bool is_headed = data[0] & 8;
		size_t bytes = MIN(load_be16(data + 1) % sizeof packet, size - 3);
		if (is_headed)
			bytes = sizeof(struct link_msg);
		memset(packet, 0, sizeof packet);
		memcpy(packet, data + 3, MIN(bytes, size - 3));
		if (is_headed)
			memcpy(packet, &(uint32_t){ LINK_MAGIC }, sizeof(uint32_t));
		size_t used = 3 + MIN(bytes, size - 3);
		data += used;
		size -= used;
		if (send_packet(pair[0], packet, bytes, fd_count))
			receive(pair[1], packet, bytes, fd_count);
	}
	close(pair[0]);
	close(pair[1]);
	ASSERT(open_fds() == before);
	return 0;
}
