/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_udp.c: sockets with random ports, sends and receives by the batch.
 *
 * What one turn of the loop has to send leaves from one socket, drawn at random, as far as that socket's bound goes: one sendmmsg for the
 * turn, and the replies come by the batch too. With little traffic that means a random socket for each query, and hardly ever the same twice.
 * All sockets stand in one epoll set, which is one handle for libuv. Errors of unconnected sockets come by IP_RECVERR with the message
 * that they are for; what quotes less than a header of it can't be told from a forgery and is ignored. */
#include "base/clock.h"
#include "dns/message.h"
#include "slowpath/resolve/exchange_private.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_FIRST 1024u /* those below are services' */
#define PORT_TRIES 16u	 /* ports that are taken; then the kernel chooses */
#define ERROR_BATCH 32u	 /* errors read of one socket in one turn */

struct udp_receive {
	struct mmsghdr message[UDP_RECEIVE_BATCH];
	struct iovec iov[UDP_RECEIVE_BATCH];
	struct sockaddr_storage source[UDP_RECEIVE_BATCH];
	uint8_t octets[UDP_RECEIVE_BATCH][UDP_MESSAGE_BYTES];
};

/* --- sockets -------------------------------------------------------------------------------------------------------- */

static bool bind_random(struct exchanger *x, int fd, bool is_v6)
{
	for (unsigned i = 0; i <= PORT_TRIES; i++) {
		uint16_t port = random_pool_u16(&x->random);
		struct sockaddr_in v4 = { .sin_family = AF_INET };
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
		if (port < PORT_FIRST)
			continue;
		v4.sin_port = v6.sin6_port = i < PORT_TRIES ? htons(port) : 0;
		if (bind(fd, is_v6 ? (void *)&v6 : (void *)&v4, is_v6 ? sizeof v6 : sizeof v4) == 0)
			return true;
		if (errno != EADDRINUSE && errno != EACCES)
			return false;
	}
	return false;
}

static int open_socket(struct exchanger *x, bool is_v6)
{
	int on = 1, fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	bool is_ready = is_v6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0 &&
					setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on) == 0
			      : setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0;
	if (is_ready && bind_random(x, fd, is_v6))
		return fd;
	close(fd);
	return -1;
}

static void free_dead_ports(struct exchanger *x)
{
	struct udp_port *p;
	if (x->is_receiving)
		return;
	while ((p = LIST_FIRST(&x->dead_ports))) {
		LIST_REMOVE(p, link);
		free(p);
	}
}

static void close_port(struct udp_port *p)
{
	struct exchanger *x = p->x;
	close(p->fd); /* leaves the epoll set too: nobody else holds it */
	p->fd = -1;
	timer_wheel_clear(&x->wheel, &p->timer);
	LIST_REMOVE(p, link);
	x->udp[p->is_v6].port_count--;
	LIST_INSERT_HEAD(&x->dead_ports, p, link);
	free_dead_ports(x);
}

/* Takes no more queries; closed at once if it waits for nothing. */
static void retire(struct udp_port *p)
{
	struct udp_family *family = &p->x->udp[p->is_v6];
	if (family->slot[p->slot] == p)
		family->slot[p->slot] = NULL;
	p->is_retired = true;
	if (p->outstanding == 0)
		close_port(p);
}

static void on_port_age(struct timer_entry *entry)
{
	retire((struct udp_port *)((char *)entry - offsetof(struct udp_port, timer)));
}

static struct udp_port *make_port(struct exchanger *x, bool is_v6, unsigned slot)
{
	struct udp_family *family = &x->udp[is_v6];
	struct udp_port *p = calloc(1, sizeof *p);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = p };
	if (!p)
		return NULL;
	p->fd = open_socket(x, is_v6);
	if (p->fd < 0 || epoll_ctl(x->udp_epoll, EPOLL_CTL_ADD, p->fd, &event) < 0) {
		if (p->fd >= 0)
			close(p->fd);
		free(p);
		return NULL;
	}
	p->x = x;
	TAILQ_INIT(&p->exchanges);
	p->is_v6 = is_v6;
	p->slot = (uint8_t)slot;
	LIST_INSERT_HEAD(&family->ports, p, link);
	family->port_count++;
	family->slot[slot] = p;
	uint64_t now_ns = clock_mono_ns();
	timer_wheel_set(&x->wheel, &p->timer, now_ns, now_ns + EXCHANGE_SOCKET_AGE_MS * 1000000ull, on_port_age);
	counter_add(x->counters, C_UPSTREAM_SOCKETS, 1);
	return p;
}

/* A socket that may send, or NULL: there is none to be had. */
static struct udp_port *draw_port(struct exchanger *x, bool is_v6)
{
	struct udp_family *family = &x->udp[is_v6];
	uint8_t random;
	random_pool_take(&x->random, &random, 1);
	unsigned slot = random % family->slot_count;
	struct udp_port *p = family->slot[slot];
	bool is_used_up = p && p->sent >= EXCHANGE_SOCKET_QUERIES;
	if (p && !is_used_up)
		return p;
	if (is_used_up && (p->outstanding == 0 || family->port_count < x->limits.udp_sockets)) {
		retire(p);
		p = NULL;
	}
	struct udp_port *made = family->port_count < x->limits.udp_sockets ? make_port(x, is_v6, slot) : NULL;
	if (made)
		return made;
	counter_add(x->counters, C_UPSTREAM_SOCKET_LIMIT, 1);
	for (unsigned i = 0; !p && i < family->slot_count; i++)
		p = family->slot[(slot + i) % family->slot_count];
	return p;
}

/* --- sending -------------------------------------------------------------------------------------------------------- */

void exchange_udp_send(struct exchange *e)
{
	TAILQ_INSERT_TAIL(&e->x->udp[e->peer->address.ss_family == AF_INET6].unsent, e, queue);
}

static void mark_sent(struct exchange *e, struct udp_port *p, uint64_t now_ns)
{
	TAILQ_REMOVE(&e->x->udp[p->is_v6].unsent, e, queue);
	TAILQ_INSERT_TAIL(&p->exchanges, e, same_carrier);
	e->state = EXCHANGE_SENT;
	e->port = p;
	e->sent_ns = now_ns;
	p->outstanding++;
	p->sent++;
	counter_add(e->x->counters, C_UPSTREAM_QUERIES, 1);
}

/* The first of a batch was refused with this errno, twice. No room is like a loss on the way: its timer decides. */
static void take_send_error(struct exchange *e, struct udp_port *p, int error, uint64_t now_ns)
{
	counter_add(e->x->counters, C_UPSTREAM_SEND_ERROR, 1);
	mark_sent(e, p, now_ns);
	if (error != EAGAIN && error != ENOBUFS && error != ENOMEM)
		exchange_end_later(e, EXCHANGE_UNREACHABLE);
}

/* Sends batch[0..count) from p. */
static void send_batch(struct udp_port *p, struct exchange **batch, unsigned count)
{
	struct mmsghdr message[UDP_BATCH];
	struct iovec iov[UDP_BATCH];
	unsigned done = 0;
	bool is_again = false;
	for (unsigned i = 0; i < count; i++) {
		struct exchange_peer *peer = batch[i]->peer;
		iov[i] = (struct iovec){ .iov_base = exchange_query(batch[i]), .iov_len = batch[i]->query_bytes };
		message[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &peer->address,
							    .msg_namelen = peer->address_bytes,
							    .msg_iov = &iov[i],
							    .msg_iovlen = 1 } };
	}
	uint64_t now_ns = clock_mono_ns();
	while (done < count) {
		int n = sendmmsg(p->fd, message + done, count - done, MSG_NOSIGNAL);
		if (n > 0) {
			for (int i = 0; i < n; i++)
				mark_sent(batch[done++], p, now_ns);
			is_again = false;
		} else if (errno == EINTR) {
			continue;
		} else if (!is_again) { /* may be the error of an earlier message, which is taken with this */
			is_again = true;
		} else {
			take_send_error(batch[done++], p, errno, now_ns);
			is_again = false;
		}
	}
}

static void flush_family(struct exchanger *x, bool is_v6)
{
	struct udp_family *family = &x->udp[is_v6];
	while (!TAILQ_EMPTY(&family->unsent)) {
		struct udp_port *p = draw_port(x, is_v6);
		struct exchange *batch[UDP_BATCH];
		if (!p) {
			exchange_end_later(TAILQ_FIRST(&family->unsent), EXCHANGE_UNREACHABLE);
			continue;
		}
		unsigned count = 0, room = p->sent < EXCHANGE_SOCKET_QUERIES ? EXCHANGE_SOCKET_QUERIES - p->sent : UDP_BATCH;
		for (struct exchange *e = TAILQ_FIRST(&family->unsent); e && count < MIN(room, UDP_BATCH);
		     e = TAILQ_NEXT(e, queue))
			batch[count++] = e;
		send_batch(p, batch, count);
	}
}

void exchange_udp_flush(struct exchanger *x)
{
	flush_family(x, false);
	flush_family(x, true);
}

void exchange_udp_leave(struct exchange *e)
{
	struct udp_port *p = e->port;
	TAILQ_REMOVE(&p->exchanges, e, same_carrier);
	e->port = NULL;
	p->outstanding--;
	if (p->is_retired && p->outstanding == 0)
		close_port(p);
}

/* --- receiving ------------------------------------------------------------------------------------------------------ */

static void take_datagram(struct udp_port *p, struct mmsghdr *m, uint64_t now_ns)
{
	uint8_t *octets = m->msg_hdr.msg_iov->iov_base;
	struct exchange_arrival a = {
		.message = octets, .message_bytes = m->msg_len, .port = p, .source = m->msg_hdr.msg_name, .now_ns = now_ns
	};
	if ((m->msg_hdr.msg_flags & MSG_TRUNC) && a.message_bytes >= DNS_HEADER_BYTES)
		store_be16(octets + 2, dns_flags(octets) | DNS_TC);
	(void)exchange_take_message(p->x, &a, TAILQ_FIRST(&p->exchanges));
}

static void receive(struct udp_port *p)
{
	struct exchanger *x = p->x;
	struct udp_receive *r = x->receive;
	/* No more than may come: the kernel is not asked for what is not there. What strangers send comes next turn. */
	unsigned want = MAX(1, MIN(p->outstanding, UDP_RECEIVE_BATCH));
	for (unsigned i = 0; i < want; i++) {
		r->message[i].msg_hdr.msg_namelen = sizeof r->source[i];
		r->message[i].msg_hdr.msg_flags = 0;
	}
	int n = recvmmsg(p->fd, r->message, want, 0, NULL);
	uint64_t now_ns = clock_mono_ns();
	for (int i = 0; i < n && p->fd >= 0; i++)
		take_datagram(p, &r->message[i], now_ns);
}

/* Our query as an ICMP error quotes it: whole or its beginning. */
static struct exchange *find_quoted(struct udp_port *p, const struct sockaddr_storage *to, const uint8_t *quoted, size_t bytes)
{
	if (bytes < DNS_HEADER_BYTES)
		return NULL;
	for (struct exchange *e = TAILQ_FIRST(&p->exchanges); e; e = TAILQ_NEXT(e, same_carrier))
		if (e->state == EXCHANGE_SENT && bytes <= e->query_bytes && memcmp(exchange_query(e), quoted, bytes) == 0 &&
		    exchange_address_equal(&e->peer->address, to))
			return e;
	return NULL;
}

static bool is_final(const struct sock_extended_err *error)
{
	return error->ee_origin == SO_EE_ORIGIN_LOCAL ||
	       ((error->ee_origin == SO_EE_ORIGIN_ICMP || error->ee_origin == SO_EE_ORIGIN_ICMP6) && error->ee_errno != EMSGSIZE);
}

/* One message of the error queue. False: there is none. */
static bool take_error(struct udp_port *p)
{
	uint8_t quoted[EXCHANGE_QUERY_MAX_BYTES];
	alignas(struct cmsghdr) uint8_t control[512];
	struct sockaddr_storage to = { 0 };
	struct iovec iov = { .iov_base = quoted, .iov_len = sizeof quoted };
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof to,
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof control };
	ssize_t n = recvmsg(p->fd, &m, MSG_ERRQUEUE);
	if (n < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct sock_extended_err error;
		bool is_error = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
				(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
		if (!is_error || c->cmsg_len < CMSG_LEN(sizeof error))
			continue;
		memcpy(&error, CMSG_DATA(c), sizeof error);
		struct exchange *e = is_final(&error) ? find_quoted(p, &to, quoted, (size_t)n) : NULL;
		if (e)
			exchange_end(e, EXCHANGE_UNREACHABLE, NULL);
		return true;
	}
	return true;
}

static void take_errors(struct udp_port *p)
{
	unsigned count = 0;
	while (count < ERROR_BATCH && p->fd >= 0 && take_error(p))
		count++;
	if (count == 0 &&
	    p->fd >= 0) { /* one that found no room in the queue, or that is in none: or it would be told for ever */
		int error;
		socklen_t bytes = sizeof error;
		(void)getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	}
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
	struct exchanger *x = handle->data;
	struct epoll_event ready[UDP_BATCH];
	(void)status;
	(void)events;
	int n = epoll_wait(x->udp_epoll, ready, UDP_BATCH, 0);
	x->is_receiving = true;
	for (int i = 0; i < n; i++) {
		struct udp_port *p = ready[i].data.ptr;
		if ((ready[i].events & EPOLLERR) && p->fd >= 0)
			take_errors(p);
		if ((ready[i].events & EPOLLIN) && p->fd >= 0)
			receive(p);
	}
	x->is_receiving = false;
	free_dead_ports(x);
	exchanger_flush(x);
}

/* --- start and end -------------------------------------------------------------------------------------------------- */

enum err exchange_udp_init(struct exchanger *x)
{
	unsigned slots = MIN(UDP_SLOTS, x->limits.udp_sockets);
	x->udp[0].slot_count = x->udp[1].slot_count = slots;
	struct udp_receive *r = x->receive = calloc(1, sizeof *r);
	if (!r)
		return ERR_NOMEM;
	for (unsigned i = 0; i < UDP_RECEIVE_BATCH; i++) {
		r->iov[i] = (struct iovec){ .iov_base = r->octets[i], .iov_len = UDP_MESSAGE_BYTES };
		r->message[i].msg_hdr.msg_iov = &r->iov[i];
		r->message[i].msg_hdr.msg_iovlen = 1;
		r->message[i].msg_hdr.msg_name = &r->source[i];
	}
	x->udp_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (x->udp_epoll < 0)
		return err_from_errno(errno);
	if (uv_poll_init(x->loop, &x->udp_poll, x->udp_epoll) < 0)
		return ERR_IO;
	(void)uv_poll_start(&x->udp_poll, UV_READABLE, on_readable); /* begins with the loop's next turn; can't fail */
	return ERR_OK;
}

void exchange_udp_close_all(struct exchanger *x)
{
	for (unsigned i = 0; i < 2; i++)
		while (!LIST_EMPTY(&x->udp[i].ports))
			retire(LIST_FIRST(&x->udp[i].ports));
}

void exchange_udp_fini(struct exchanger *x)
{
	if (x->udp_epoll >= 0)
		close(x->udp_epoll);
	free(x->receive);
}
