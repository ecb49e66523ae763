/* SPDX-License-Identifier: Apache-2.0 */
/* The thread around udp_hot.c. With one socket it sleeps in recvmmsg itself (one system call less per batch: the fastest way);
 * with several it sleeps in epoll. Sends never wait: what the socket cannot take is dropped and counted. */
#include "slowpath/listen/udp.h"
#include "slowpath/listen/listen_thread.h"
#include "slowpath/listen/udp_hot.h"
#include "slowpath/listen/udp_miss.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define UNEXPECTED_ERROR_PAUSE_US 1000 /* receive errors that a loop would only repeat */

struct udp_worker {
	struct listen_thread thread;
	struct udp_batch *batch; /* owned mapping */
	struct udp_miss miss;
	int epoll; /* -1 with one socket */
	size_t socket_count;
	struct udp_socket socket[];
};

/* Sends tx[0..count), all that can be sent. */
static void send_all(struct udp_worker *w, const struct udp_socket *socket, unsigned count)
{
	unsigned done = 0, sent = 0, failed = 0;
	bool is_truncated = false;
	while (done < count) { /* each turn sends, gives up or shortens (once) at least one message */
		int n = sendmmsg(socket->fd, &w->batch->tx[done], count - done, MSG_DONTWAIT);
		if (n > 0) {
			done += (unsigned)n;
			sent += (unsigned)n;
			is_truncated = false;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EMSGSIZE && !is_truncated) {
			udp_batch_truncate(w->batch, done);
			is_truncated = true;
			continue;
		}
		failed++;
		done++;
		is_truncated = false;
	}
	counter_add(w->thread.counters, C_UDP_TX, sent);
	if (failed)
		counter_add(w->thread.counters, C_UDP_TX_ERROR, failed);
}

/* What recvmmsg returned: answers and sends. */
static void handle(struct udp_worker *w, const struct udp_socket *socket, int received)
{
	if (received <= 0) {
		if (received < 0 && errno != EAGAIN && errno != EINTR)
			usleep(UNEXPECTED_ERROR_PAUSE_US);
		return;
	}
	listen_thread_clock(&w->thread);
	w->miss.socket = socket;
	w->miss.received_ns = 0;
	const struct snapshot *s = listen_thread_snapshot(&w->thread);
	counter_add(w->thread.counters, C_UDP_RX, (unsigned)received);
	unsigned count = udp_batch_answer(w->batch, socket, s, &w->thread.answer, (unsigned)received);
	if (count)
		send_all(w, socket, count);
	udp_batch_rearm(w->batch, socket, (unsigned)received);
}

static void serve_one(struct udp_worker *w)
{
	const struct udp_socket *socket = &w->socket[0];
	udp_batch_rearm(w->batch, socket, UDP_BATCH);
	while (!listen_thread_stops(&w->thread)) {
		snapshot_offline();
		int n = recvmmsg(socket->fd, w->batch->rx, UDP_BATCH, MSG_WAITFORONE, NULL);
		int saved = errno;
		snapshot_online();
		listen_thread_beat(&w->thread);
		errno = saved;
		handle(w, socket, n);
	}
}

static void serve_many(struct udp_worker *w)
{
	struct epoll_event ready[16];
	while (!listen_thread_stops(&w->thread)) {
		snapshot_offline();
		int n = epoll_wait(w->epoll, ready, ARRAY_LEN(ready), LISTEN_SLEEP_MS);
		snapshot_online();
		for (int i = 0; i < n; i++) {
			const struct udp_socket *socket = &w->socket[ready[i].data.u32];
			listen_thread_beat(&w->thread);
			udp_batch_rearm(w->batch, socket, UDP_BATCH);
			handle(w, socket, recvmmsg(socket->fd, w->batch->rx, UDP_BATCH, MSG_DONTWAIT, NULL));
			snapshot_quiescent();
		}
		listen_thread_beat(&w->thread);
	}
}

static void run(struct listen_thread *thread)
{
	struct udp_worker *w = (struct udp_worker *)thread;
	if (w->epoll < 0)
		serve_one(w);
	else
		serve_many(w);
}

static enum err adopt_socket(struct udp_socket *out, int fd)
{
	union udp_peer local = { 0 };
	socklen_t length = sizeof local, type_length = sizeof(int);
	int type = 0, on = 1;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) < 0 || type != SOCK_DGRAM ||
	    getsockname(fd, &local.any, &length) < 0)
		return ERR_ARGUMENT;
	struct udp_socket s = { .fd = fd };
	if (local.any.sa_family == AF_INET) {
		s.family = 4;
		s.port = ntohs(local.v4.sin_port);
		memcpy(s.address, &local.v4.sin_addr, 4);
		s.is_wildcard = local.v4.sin_addr.s_addr == htonl(INADDR_ANY);
	} else if (local.any.sa_family == AF_INET6) {
		s.family = 6;
		s.port = ntohs(local.v6.sin6_port);
		memcpy(s.address, &local.v6.sin6_addr, 16);
		s.is_wildcard = IN6_IS_ADDR_UNSPECIFIED(&local.v6.sin6_addr);
	} else {
		return ERR_ARGUMENT;
	}
	if (s.port == 0)
		return ERR_ARGUMENT;
	/* Packet information costs time per message, so only where the bound address does not say it already. */
	if (s.is_wildcard && (s.family == 4 ? setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on)
					    : setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on)) < 0)
		return err_from_errno(errno);
	struct timeval timeout = { .tv_usec = LISTEN_SLEEP_MS * 1000 };
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) < 0)
		return err_from_errno(errno);
	*out = s;
	return ERR_OK;
}

static enum err open_epoll(struct udp_worker *w)
{
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return err_from_errno(errno);
	for (size_t i = 0; i < w->socket_count; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->socket[i].fd, &e) < 0)
			return err_from_errno(errno);
	}
	return ERR_OK;
}

static void destroy(struct udp_worker *w)
{
	if (w->epoll >= 0)
		close(w->epoll);
	if (w->batch)
		munmap(w->batch, sizeof *w->batch);
	listen_thread_fini(&w->thread);
	free(w);
}

enum err udp_worker_start(struct udp_worker **out, const struct udp_worker_config *config)
{
	struct udp_worker *w = calloc(1, sizeof *w + config->fd_count * sizeof w->socket[0]);
	if (!w)
		return ERR_NOMEM;
	w->epoll = -1;
	w->socket_count = config->fd_count;
	enum err err = config->fd_count ? listen_thread_init(&w->thread, &config->service, config->counters) : ERR_ARGUMENT;
	for (size_t i = 0; !err && i < config->fd_count; i++)
		err = adopt_socket(&w->socket[i], config->fds[i]);
	if (!err) {
		/* Not populated: queries touch the first page of each buffer, larger messages the second. */
		void *map = mmap(NULL, sizeof *w->batch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (map == MAP_FAILED)
			err = ERR_NOMEM;
		else
			udp_batch_init(w->batch = map);
	}
	if (!err && config->service.resolve) {
		w->miss = (struct udp_miss){ .batch = w->batch, .thread = &w->thread };
		w->batch->leave = udp_miss_take;
		w->batch->user = &w->miss;
	}
	if (!err && w->socket_count > 1)
		err = open_epoll(w);
	if (!err) {
		char name[16];
		snprintf(name, sizeof name, "udp-%u", config->index % 1000);
		err = listen_thread_start(&w->thread, name, config->cpu, COUNTER_UDP, config->counters, config->snapshots, run);
	}
	if (err) {
		destroy(w);
		return err;
	}
	*out = w;
	return ERR_OK;
}

void udp_worker_stop(struct udp_worker *w)
{
	if (!w)
		return;
	listen_thread_stop(&w->thread);
	destroy(w);
}
