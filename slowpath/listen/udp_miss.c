/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/udp_miss.h"
#include "slowpath/resolve/resolve.h"
#include <errno.h>
#include <stdlib.h>

/* One query that waits for the resolver. */
struct udp_origin {
	struct resolve_origin origin; /* first */
	int fd;
	union udp_peer peer;
	socklen_t peer_bytes;
	size_t control_bytes;
	alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_BYTES];
};

/* False: the interface's MTU refused it. What else may go wrong costs one response, as anywhere on the way. */
static bool send_one(struct udp_origin *o, const void *message, size_t bytes)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)message, .iov_len = bytes };
	struct msghdr h = { .msg_name = &o->peer,
			    .msg_namelen = o->peer_bytes,
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = o->control_bytes ? o->control : NULL,
			    .msg_controllen = o->control_bytes };
	ssize_t sent;
	do {
		sent = sendmsg(o->fd, &h, MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	return sent >= 0 || errno != EMSGSIZE;
}

static void on_reply(struct resolve_origin *origin, const uint8_t *message, size_t bytes)
{
	struct udp_origin *o = (struct udp_origin *)origin;
	uint8_t shorter[UDP_BUFFER_BYTES];
	if (message && !send_one(o, message, bytes) && bytes <= sizeof shorter) {
		memcpy(shorter, message, bytes);
		(void)send_one(o, shorter, udp_truncate(shorter, bytes));
	}
	free(o);
}

void udp_miss_take(void *user, enum answer_verdict verdict, unsigned rx_index, const struct answer_query *q)
{
	struct udp_miss *m = user;
	const struct msghdr *from = &m->batch->rx[rx_index].msg_hdr;
	struct counter_block *counters = m->thread->counters;
	if (verdict == ANSWER_SEND_AND_REFRESH) {
		resolve_refresh(m->thread->resolve, q);
		return;
	}
	struct udp_origin *o = malloc(sizeof *o);
	if (!o) {
		counter_add(counters, C_RESOLVE_NO_MEMORY, 1);
		return;
	}
	o->origin.reply = on_reply;
	o->fd = m->socket->fd;
	o->peer = m->batch->peer[rx_index];
	o->peer_bytes = from->msg_namelen;
	o->control_bytes = from->msg_control ? from->msg_controllen : 0;
	if (o->control_bytes)
		memcpy(o->control, from->msg_control, o->control_bytes);
	if (m->received_ns == 0)
		m->received_ns = clock_mono_ns();
	if (resolve_submit(m->thread->resolve, q, m->received_ns, &o->origin) != ERR_OK)
		free(o); /* counted; the client will ask again */
}
