/* SPDX-License-Identifier: Apache-2.0 */
/* One connected socket per flow, epoll for those that have something to say. */
#include "bench/generate.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SOCKET_BUFFER_BYTES (4 << 20)
#define REPLY_HEAD_BYTES 12u

struct udp_wire {
	struct generate_wire wire;
	int epoll;
	unsigned flows;
	int *fd;
	/* ready flows of the last epoll_wait that were not read empty */
	struct epoll_event ready[64];
	int ready_count, ready_at;
};

/* Messages of one flow that follow each other go out by one sendmmsg. */
static unsigned udp_send(struct generate_wire *wire, const struct generate_message *messages, unsigned count)
{
	struct udp_wire *w = (struct udp_wire *)wire;
	uint8_t copy[GENERATE_BATCH][GENERATE_MESSAGE_MAX];
	struct iovec iov[GENERATE_BATCH];
	struct mmsghdr h[GENERATE_BATCH];
	unsigned done = 0;

	memset(h, 0, sizeof(h[0]) * count);
	for (unsigned i = 0; i < count; i++) {
		memcpy(copy[i], messages[i].data, messages[i].bytes);
		store_be16(copy[i], messages[i].id);
		iov[i] = (struct iovec){ copy[i], messages[i].bytes };
		h[i].msg_hdr.msg_iov = &iov[i];
		h[i].msg_hdr.msg_iovlen = 1;
	}
	while (done < count) {
		unsigned same = 1;

		while (done + same < count && messages[done + same].flow == messages[done].flow)
			same++;
		int n = sendmmsg(w->fd[messages[done].flow], &h[done], same, MSG_DONTWAIT);

		if (n <= 0)
			break;
		done += (unsigned)n;
	}
	return done;
}

static unsigned udp_receive(struct generate_wire *wire, struct generate_reply *replies)
{
	struct udp_wire *w = (struct udp_wire *)wire;
	static uint8_t heads[GENERATE_BATCH][REPLY_HEAD_BYTES];
	static struct iovec iov[GENERATE_BATCH];
	static struct mmsghdr h[GENERATE_BATCH];

	if (!iov[0].iov_base)
		for (unsigned i = 0; i < GENERATE_BATCH; i++) {
			iov[i] = (struct iovec){ heads[i], REPLY_HEAD_BYTES };
			h[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
		}
	for (;;) {
		if (w->ready_at == w->ready_count) {
			w->ready_at = 0;
			w->ready_count = MAX(0, epoll_wait(w->epoll, w->ready, ARRAY_LEN(w->ready), 0));
			if (w->ready_count == 0)
				return 0;
		}
		uint32_t flow = w->ready[w->ready_at].data.u32;
		int n = recvmmsg(w->fd[flow], h, GENERATE_BATCH, MSG_DONTWAIT, NULL);

		if (n < (int)GENERATE_BATCH)
			w->ready_at++;
		if (n <= 0)
			continue;
		for (int i = 0; i < n; i++)
			replies[i] = (struct generate_reply){
				.flow = (uint16_t)flow, .id = load_be16(heads[i]), .rcode = heads[i][3] & 15, .flags = heads[i][2]
			};
		return (unsigned)n;
	}
}

static void udp_wait(struct generate_wire *wire, uint64_t timeout_ns)
{
	struct udp_wire *w = (struct udp_wire *)wire;
	struct pollfd p = { .fd = w->epoll, .events = POLLIN };
	struct timespec t = { .tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000) };

	(void)ppoll(&p, 1, &t, NULL);
}

static void udp_close(struct generate_wire *wire)
{
	struct udp_wire *w = (struct udp_wire *)wire;

	for (unsigned i = 0; i < w->flows; i++)
		close(w->fd[i]);
	close(w->epoll);
	free(w->fd);
	free(w);
}

struct generate_wire *generate_udp(const struct generate_options *o)
{
	struct udp_wire *w = calloc(1, sizeof(*w));
	int bytes = SOCKET_BUFFER_BYTES;

	if (!w)
		return NULL;
	w->fd = calloc(o->flows, sizeof(*w->fd));
	if (!w->fd) {
		free(w);
		return NULL;
	}
	w->wire = (struct generate_wire){ udp_send, udp_receive, udp_wait, udp_close };
	w->epoll = epoll_create1(0);
	for (; w->flows < o->flows; w->flows++) {
		struct epoll_event e = { .events = EPOLLIN, .data.u32 = w->flows };
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		if (fd < 0 || connect(fd, (const struct sockaddr *)&o->server, sizeof(o->server)) < 0 ||
		    epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
			fprintf(stderr, "generate: socket of flow %u: %s\n", w->flows, strerror(errno));
			udp_close(&w->wire);
			return NULL;
		}
		if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
			(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
		w->fd[w->flows] = fd;
	}
	return &w->wire;
}
