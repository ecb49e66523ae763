/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/bind.h"
#include "slowpath/listen/port_holder.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define TCP_BACKLOG 1024 /* connections that wait for accept; the kernel lowers it to net.core.somaxconn */
#define TCP_FASTOPEN_QUEUE 256
#define UDP_SEND_BUFFER (4 << 20) /* several batches of full-size answers: sends do not wait for room */

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t fill_address(union any_address *out, const struct config_address *a)
{
	memset(out, 0, sizeof *out);
	if (a->family == 4) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(a->port);
		memcpy(&out->v4.sin_addr, a->address, 4);
		return sizeof out->v4;
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(a->port);
	memcpy(&out->v6.sin6_addr, a->address, 16);
	return sizeof out->v6;
}

static const char *kind_text(enum link_listen kind) { return kind == LINK_LISTEN_UDP ? "UDP" : "TCP"; }

/* A text that ends in what to do about errno_value. */
static void explain(struct bind_error *error, const char *step, const struct config_address *a, enum link_listen kind,
		    int errno_value)
{
	char holder[160];
	error->address = a;
	error->kind = kind;
	error->errno_value = errno_value;
	const char *hint = "";
	if (errno_value == EADDRINUSE) {
		if (port_holder_find(holder, sizeof holder, kind == LINK_LISTEN_UDP, a->family, a->address, a->port)) {
			snprintf(error->text, sizeof error->text,
				 "cannot listen on %s (%s): the port is held by %s; stop it, or choose another address or port",
				 a->text, kind_text(kind), holder);
			return;
		}
		hint = "another socket holds the port: find it with `ss -lnptu`";
	} else if (errno_value == EADDRNOTAVAIL) {
		hint = a->family == 6 ? "the address is not usable here: is IPv6 off (disable_ipv6), or is it link-local?"
				      : "the address is not usable here";
	} else if (errno_value == EACCES || errno_value == EPERM) {
		hint = "ports below 1024 need root or CAP_NET_BIND_SERVICE";
	} else if (errno_value == EAFNOSUPPORT) {
		hint = "this kernel has no such address family";
	} else if (errno_value == EMFILE || errno_value == ENFILE) {
		hint = "too many open files: raise LimitNOFILE, or lower server.workers";
	}
	snprintf(error->text, sizeof error->text, "cannot listen on %s (%s): %s: %s%s%s", a->text, kind_text(kind), step,
		 strerror(errno_value), *hint ? "; " : "", hint);
}

static int set_int(int fd, int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof value); }

/* Best effort: the socket works without these, or the kernel is too old for one of them. */
static void tune_udp(int fd, const struct config_address *a, unsigned receive_buffer)
{
	static const uint8_t unspecified[16];
	bool is_wildcard = memcmp(a->address, unspecified, a->family == 4 ? 4 : 16) == 0;
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)(receive_buffer / 2)) < 0)
		(void)set_int(fd, SOL_SOCKET, SO_RCVBUF, (int)(receive_buffer / 2)); /* the kernel doubles it */
	if (set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, UDP_SEND_BUFFER / 2) < 0)
		(void)set_int(fd, SOL_SOCKET, SO_SNDBUF, UDP_SEND_BUFFER / 2);
	/* Answers are never fragmented, neither here nor on the way (RFC 9715): DF is set, and what exceeds the interface's MTU
	 * fails with EMSGSIZE, upon which the worker sends TC. PROBE also ignores the path MTU that the kernel learned from ICMP,
	 * which anyone can forge to make a server fragment. */
	if (a->family == 4) {
		(void)set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		/* From the start: the kernel notes where a packet went to when it comes in, also before a worker is there. */
		if (is_wildcard)
			(void)set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	} else {
		(void)set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		(void)set_int(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
		if (is_wildcard)
			(void)set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	}
}

static void tune_tcp(int fd)
{
	/* RFC 9210 section 4.3; without effect unless net.ipv4.tcp_fastopen allows servers. */
	(void)set_int(fd, IPPROTO_TCP, TCP_FASTOPEN, TCP_FASTOPEN_QUEUE);
	/* Accepted sockets inherit it: responses are written whole. */
	(void)set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

/* One bound socket. Without is_shared it is no member of a SO_REUSEPORT group and so conflicts with whoever has the port.
 * Returns the failed step, NULL if none. */
static const char *make_socket(int *out, const struct config_address *a, enum link_listen kind, bool is_shared,
			       unsigned receive_buffer)
{
	union any_address address;
	socklen_t length = fill_address(&address, a);
	int fd = socket(address.any.sa_family, (kind == LINK_LISTEN_UDP ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return "socket";
	const char *step = NULL;
	if (a->family == 6 && set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) < 0) {
		step = "IPV6_V6ONLY";
		goto fail;
	}
	if (is_shared && set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0) {
		step = "SO_REUSEPORT";
		goto fail;
	}
	/* Past connections in TIME_WAIT do not hold a port. */
	if (kind == LINK_LISTEN_TCP && set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0) {
		step = "SO_REUSEADDR";
		goto fail;
	}
	(void)set_int(fd, a->family == 4 ? IPPROTO_IP : IPPROTO_IPV6, a->family == 4 ? IP_FREEBIND : IPV6_FREEBIND, 1);
	if (bind(fd, &address.any, length) < 0) {
		step = "bind";
		goto fail;
	}
	if (kind == LINK_LISTEN_UDP) {
		tune_udp(fd, a, receive_buffer);
	} else {
		tune_tcp(fd);
		if (listen(fd, TCP_BACKLOG) < 0) {
			step = "listen";
			goto fail;
		}
	}
	*out = fd;
	return NULL;
fail:;
	int saved = errno;
	close(fd);
	errno = saved;
	return step;
}

/* Whether somebody else has one of the ports: SO_REUSEPORT alone would quietly share it with, say, another name server of
 * the same user, and each would get half of the queries. All addresses are probed before any is bound, since our own may
 * overlap (a wildcard and one address of it). */
static enum err probe(const struct bind_request *request, struct bind_error *error)
{
	for (size_t i = 0; i < request->address_count; i++) {
		const struct config_address *a = &request->addresses[i];
		for (int kind = LINK_LISTEN_UDP; a->port && kind <= LINK_LISTEN_TCP; kind++) {
			int fd;
			const char *step = make_socket(&fd, a, (enum link_listen)kind, false, 0);
			if (step) {
				int errno_value = errno;
				explain(error, step, a, (enum link_listen)kind, errno_value);
				return errno_value == EADDRINUSE ? ERR_BUSY : err_from_errno(errno_value);
			}
			close(fd);
		}
	}
	return ERR_OK;
}

static enum err add_socket(struct bind_set *set, const struct bind_request *request, const struct config_address *a,
			   enum link_listen kind, unsigned worker, struct bind_error *error)
{
	struct bind_socket *s = &set->sockets[set->count];
	const char *step = make_socket(&s->fd, a, kind, true, request->udp_receive_buffer);
	if (step) {
		int errno_value = errno;
		explain(error, step, a, kind, errno_value);
		return errno_value == EADDRINUSE ? ERR_BUSY : err_from_errno(errno_value);
	}
	s->kind = kind;
	s->worker = worker;
	memcpy(s->text, a->text, sizeof s->text);
	s->text[sizeof s->text - 1] = 0;
	set->count++;
	int granted;
	socklen_t length = sizeof granted;
	if (kind == LINK_LISTEN_UDP && getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &granted, &length) == 0)
		set->udp_receive_buffer = MIN(set->udp_receive_buffer, (unsigned)granted);
	return ERR_OK;
}

enum err bind_sockets(struct bind_set *out, const struct bind_request *request, struct bind_error *error)
{
	ASSERT(request->workers > 0 && request->address_count <= CONFIG_MAX_ADDRESSES);
	memset(error, 0, sizeof *error);
	enum err err = probe(request, error);
	if (err)
		return err;
	struct bind_set set = { .udp_receive_buffer = request->udp_receive_buffer };
	set.sockets = calloc(request->address_count * request->workers * 2 + 1, sizeof *set.sockets);
	if (!set.sockets) {
		snprintf(error->text, sizeof error->text, "cannot listen: out of memory");
		return ERR_NOMEM;
	}
	for (size_t i = 0; i < request->address_count; i++) {
		for (int kind = LINK_LISTEN_UDP; kind <= LINK_LISTEN_TCP; kind++) {
			for (unsigned w = 0; w < request->workers; w++) {
				err = add_socket(&set, request, &request->addresses[i], (enum link_listen)kind, w, error);
				if (err) {
					bind_set_fini(&set);
					return err;
				}
			}
		}
	}
	*out = set;
	return ERR_OK;
}

void bind_set_fini(struct bind_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		close(set->sockets[i].fd);
	free(set->sockets);
	*set = (struct bind_set){ 0 };
}
