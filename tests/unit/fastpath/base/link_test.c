/* SPDX-License-Identifier: Apache-2.0 */
#include "base/link.h"
#include "tests/unit/lib/open_fds.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint32_t with_fd[] = { LINK_CONFIG, LINK_COUNTERS, LINK_SETTINGS, LINK_CONTROL, LINK_LISTEN,
				    LINK_XSKMAP, LINK_SEGMENT,	LINK_MAP,      LINK_ZONES,   LINK_POLICY,
				    LINK_LOG,	 LINK_CACHE,	LINK_MARKS,    LINK_WAKE,    LINK_RINGS };
static const uint32_t without_fd[] = { LINK_GO, LINK_STOP, LINK_PARKED, LINK_SEGMENT_DROP, LINK_READY, LINK_LIVE, LINK_FAILED };

static void make_pair(int pair[2], int flags)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0, pair), 0);
}

/* What a hostile peer may do: any octets, any descriptors. */
static void send_raw(int link, const void *bytes, size_t count, const int *fds, size_t fd_count)
{
	char control[CMSG_SPACE(16 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)bytes, count };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	cr_assert_eq(sendmsg(link, &h, MSG_NOSIGNAL), (ssize_t)count);
}

Test(link, every_type_arrives_whole_with_its_descriptor)
{
	cr_assert_eq(ARRAY_LEN(with_fd) + ARRAY_LEN(without_fd), LINK_TYPE_COUNT_ - 1, "a new type: add it here");
	int pair[2], null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	make_pair(pair, 0);
	for (size_t i = 0; i < LINK_TYPE_COUNT_ - 1; i++) {
		bool has_fd = i < ARRAY_LEN(with_fd);
		struct link_msg in = {
			.type = has_fd ? with_fd[i] : without_fd[i - ARRAY_LEN(with_fd)], .a = 1, .b = 2, .generation = 1ull << 40
		};
		struct link_msg out = { 0 };
		int fd = 99;
		snprintf(in.text, sizeof in.text, "text %zu", i);
		cr_assert_eq(link_send(pair[0], &in, has_fd ? null_fd : -1), ERR_OK);
		cr_assert_eq(link_receive(pair[1], &out, &fd), ERR_OK, "%s", link_type_text(in.type));
		cr_expect_eq(memcmp(&in, &out, sizeof in), 0);
		cr_expect_eq(out.magic, LINK_MAGIC);
		cr_expect_str_neq(link_type_text(in.type), "unknown");
		if (!has_fd) {
			cr_expect_eq(fd, -1);
			continue;
		}
		struct stat a, b;
		cr_expect_eq(fstat(null_fd, &a), 0);
		cr_expect_eq(fstat(fd, &b), 0);
		cr_expect(a.st_rdev == b.st_rdev);
		cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC, "must not leak into what a part executes");
		close(fd);
	}
	cr_expect_str_eq(link_type_text(0), "unknown");
	cr_expect_str_eq(link_type_text(LINK_TYPE_COUNT_), "unknown");
	cr_expect_str_eq(link_type_text(UINT32_MAX), "unknown");
}

Test(link, wrong_messages_are_not_sent)
{
	int pair[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct link_msg m = { .type = 0 };
	make_pair(pair, SOCK_NONBLOCK);
	cr_expect_eq(link_send(pair[0], &m, -1), ERR_ARGUMENT);
	m.type = LINK_TYPE_COUNT_;
	cr_expect_eq(link_send(pair[0], &m, -1), ERR_ARGUMENT);
	m.type = LINK_GO;
	cr_expect_eq(link_send(pair[0], &m, fd), ERR_ARGUMENT, "a descriptor that nobody expects");
	m.type = LINK_MAP;
	cr_expect_eq(link_send(pair[0], &m, -1), ERR_ARGUMENT, "a descriptor is missing");
	memset(m.text, 'x', sizeof m.text);
	cr_expect_eq(link_send(pair[0], &m, fd), ERR_ARGUMENT, "text without an end");
	cr_expect_eq(link_receive(pair[1], &m, &fd), ERR_AGAIN, "nothing was sent");
}

Test(link, a_hostile_peer_ends_the_link_and_leaks_nothing)
{
	int pair[2], fds[16], got = -7;
	struct link_msg good = { .magic = LINK_MAGIC, .type = LINK_GO }, out = { .a = 77 }, m;
	make_pair(pair, SOCK_NONBLOCK);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned before = open_fds();

#define REFUSED(what) \
	cr_expect_eq(link_receive(pair[1], &out, &got), ERR_MALFORMED, what); \
	cr_expect(out.a == 77 && got == -7, "out-parameters stay untouched: %s", what); \
	cr_expect_eq(open_fds(), before, "descriptors leaked: %s", what)

	m = good, m.magic++;
	send_raw(pair[0], &m, sizeof m, NULL, 0);
	REFUSED("wrong magic");
	for (uint32_t type = 0; type < 3; type++) {
		m = good, m.type = type == 0 ? 0 : type == 1 ? LINK_TYPE_COUNT_ : UINT32_MAX;
		send_raw(pair[0], &m, sizeof m, NULL, 0);
		REFUSED("unknown type");
	}
	for (size_t bytes = 1; bytes < sizeof good; bytes += 37) {
		send_raw(pair[0], &good, bytes, NULL, 0);
		REFUSED("too short");
	}
	char longer[sizeof good + 1] = { 0 };
	memcpy(longer, &good, sizeof good);
	send_raw(pair[0], longer, sizeof longer, NULL, 0);
	REFUSED("too long");
	m = good, memset(m.text, 'x', sizeof m.text);
	send_raw(pair[0], &m, sizeof m, NULL, 0);
	REFUSED("text without an end");
	send_raw(pair[0], &good, sizeof good, fds, 1);
	REFUSED("a descriptor with a type that has none");
	m = good, m.type = LINK_MAP;
	send_raw(pair[0], &m, sizeof m, NULL, 0);
	REFUSED("no descriptor with a type that needs one");
	for (size_t count = 2; count <= 16; count += 2) {
		send_raw(pair[0], &m, sizeof m, fds, count);
		REFUSED("surplus descriptors");
	}
	send_raw(pair[0], "", 1, fds, 3);
	REFUSED("descriptors with rubbish");

	send_raw(pair[0], &good, sizeof good, NULL, 0);
	cr_expect_eq(link_receive(pair[1], &out, &got), ERR_OK, "the messages behind are still whole");
}

Test(link, the_end_of_the_peer_is_told_apart_from_silence)
{
	int pair[2], fd = -7;
	struct link_msg m = { .type = LINK_GO };
	make_pair(pair, SOCK_NONBLOCK);
	cr_expect_eq(link_receive(pair[1], &m, &fd), ERR_AGAIN);
	cr_expect_eq(link_send(pair[0], &m, -1), ERR_OK);
	close(pair[0]);
	cr_expect_eq(link_receive(pair[1], &m, &fd), ERR_OK, "what was sent before the end still comes");
	cr_expect_eq(link_receive(pair[1], &m, &fd), ERR_CLOSED);
	cr_expect_eq(link_receive(pair[1], &m, &fd), ERR_CLOSED);
	cr_expect_eq(link_send(pair[1], &m, -1), ERR_CLOSED, "and no SIGPIPE");
}

Test(link, a_full_queue_says_so_and_takes_more_later)
{
	int pair[2], fd;
	struct link_msg m = { .type = LINK_LIVE }, out;
	uint64_t sent = 0;
	enum err err;
	make_pair(pair, SOCK_NONBLOCK);
	while ((err = link_send(pair[0], &m, -1)) == ERR_OK)
		m.generation = ++sent;
	cr_expect_eq(err, ERR_AGAIN);
	cr_assert_gt(sent, 0);
	for (uint64_t i = 0; i < sent; i++) {
		cr_assert_eq(link_receive(pair[1], &out, &fd), ERR_OK);
		cr_assert_eq(out.generation, i);
	}
	cr_expect_eq(link_send(pair[0], &m, -1), ERR_OK);
}

Test(link, a_blocking_link_waits, .timeout = 10)
{
	int pair[2], fd;
	struct link_msg m = { .type = LINK_READY }, out = { 0 };
	make_pair(pair, 0);
	pid_t child = fork();
	if (child == 0) {
		usleep(50000);
		_exit(link_send(pair[0], &m, -1) != ERR_OK);
	}
	cr_expect_eq(link_receive(pair[1], &out, &fd), ERR_OK);
	cr_expect_eq(out.type, LINK_READY);
	waitpid(child, NULL, 0);
}

Test(link, a_receiver_without_free_descriptors_refuses_and_survives)
{
	int pair[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC), got = -7;
	struct link_msg m = { .type = LINK_MAP }, out;
	struct rlimit limit = { 64, 64 };
	make_pair(pair, SOCK_NONBLOCK);
	cr_assert_eq(link_send(pair[0], &m, fd), ERR_OK);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (dup(fd) >= 0)
		;
	cr_expect_eq(link_receive(pair[1], &out, &got), ERR_MALFORMED);
	cr_expect_eq(got, -7);
}
