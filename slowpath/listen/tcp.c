/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a TCP thread: it accepts, enforces limits and timeouts. One timer does all of it: the three lists are
 * in the order of their deadlines, so each tick looks at their heads only. */
#include "slowpath/listen/tcp.h"
#include "slowpath/listen/tcp_miss.h"
#include "slowpath/listen/tcp_private.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ACCEPT_BACKLOG 1024 /* libuv calls listen again */

/* --- accepting ----------------------------------------------------------------- */
static bool fill_client(struct answer_client *out, const uv_tcp_t *handle)
{
	struct sockaddr_storage peer;
	int length = sizeof peer;
	if (uv_tcp_getpeername(handle, (struct sockaddr *)&peer, &length) < 0)
		return false;
	*out = (struct answer_client){ .transport = TRANSPORT_TCP };
	if (peer.ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer;
		out->family = 4;
		memcpy(out->address, &v4->sin_addr, 4);
		out->port = ntohs(v4->sin_port);
	} else {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer;
		out->family = 6;
		memcpy(out->address, &v6->sin6_addr, 16);
		out->port = ntohs(v6->sin6_port);
	}
	return true;
}

/* Closes the connection of this worker that is idle for longest; failing that, the one whose begun message is oldest. Those
 * that are being answered stay. */
static bool evict_one(struct tcp_worker *w)
{
	struct tcp_connection *victim = w->list[TCP_IDLE].first ? w->list[TCP_IDLE].first : w->list[TCP_MESSAGE].first;
	if (!victim)
		return false;
	tcp_connection_close(victim, C_TCP_EVICTED);
	return true;
}

static bool admit(struct tcp_worker *w, const struct answer_client *client)
{
	enum tcp_admission admission = tcp_clients_admit(w->clients, client);
	if (admission == TCP_FULL && evict_one(w))
		admission = tcp_clients_admit(w->clients, client);
	return admission == TCP_ADMITTED;
}

static void on_refused_closed(uv_handle_t *handle) { free(handle); }

static void on_connection(uv_stream_t *stream, int status)
{
	if (status < 0)
		return;
	struct tcp_listener *listener = (struct tcp_listener *)stream;
	struct tcp_worker *w = listener->worker;
	struct tcp_connection *c = calloc(1, sizeof *c);
	listener->is_pending = !c; /* the next tick tries again */
	if (!c)
		return;
	c->worker = w;
	(void)uv_tcp_init(&w->loop, &c->handle); /* cannot fail: it makes no socket yet */
	if (uv_accept(stream, (uv_stream_t *)&c->handle) < 0 || !fill_client(&c->client, &c->handle) || !admit(w, &c->client)) {
		counter_add(w->thread.counters, C_TCP_REFUSED, 1);
		uv_close((uv_handle_t *)&c->handle, on_refused_closed);
		return;
	}
	counter_add(w->thread.counters, C_TCP_ACCEPTED, 1);
	tcp_connection_begin(c);
}

/* --- time ----------------------------------------------------------------- */
/* Closes what has been in `state` for too long. Each turn takes the head away from the front, so the loop ends. */
static void expire(struct tcp_worker *w, enum tcp_state state, unsigned timeout_ms)
{
	uint64_t now = uv_now(&w->loop);
	struct tcp_connection *c;
	while ((c = w->list[state].first) && now - c->since_ms >= timeout_ms) {
		size_t unsent = uv_stream_get_write_queue_size((uv_stream_t *)&c->handle);
		if (state == TCP_WRITING && unsent < c->unsent_seen) { /* slow, but it reads */
			c->unsent_seen = unsent;
			tcp_connection_enter(c, TCP_WRITING);
			continue;
		}
		tcp_connection_close(c, C_TCP_TIMEOUT);
	}
}

static void close_all(struct tcp_worker *w)
{
	for (size_t i = 0; i < w->listener_count; i++)
		uv_close((uv_handle_t *)&w->listeners[i].handle, NULL);
	for (int state = 0; state < TCP_STATE_COUNT_; state++) {
		while (w->list[state].first)
			tcp_connection_close(w->list[state].first, C_COUNT_);
	}
	uv_close((uv_handle_t *)&w->timer, NULL);
	if (w->has_returns)
		uv_close((uv_handle_t *)&w->returns, NULL);
}

/* --- the resolver ----------------------------------------------------------------- */
static void on_returns(uv_poll_t *handle, int status, int events)
{
	struct tcp_worker *w = handle->data;
	struct tcp_returned r;
	uint64_t count;
	int fd = -1;
	(void)status;
	(void)events;
	(void)uv_fileno((uv_handle_t *)handle, &fd);
	(void)!read(fd, &count, sizeof count);
	while (tcp_miss_next(w->box, &r))
		tcp_connection_answered(r.connection, r.message, r.bytes);
}

static enum err open_returns(struct tcp_worker *w)
{
	int wake;
	enum err err = tcp_box_create(&w->box, &wake);
	if (err)
		return err;
	int failed = uv_poll_init(&w->loop, &w->returns, wake);
	if (failed)
		return err_from_errno(-failed);
	w->has_returns = true;
	w->returns.data = w;
	(void)uv_poll_start(&w->returns, UV_READABLE, on_returns);
	return ERR_OK;
}

static void on_tick(uv_timer_t *timer)
{
	struct tcp_worker *w = timer->data;
	listen_thread_beat(&w->thread);
	if (listen_thread_stops(&w->thread)) {
		close_all(w);
		return;
	}
	for (size_t i = 0; i < w->listener_count; i++) {
		if (w->listeners[i].is_pending)
			on_connection((uv_stream_t *)&w->listeners[i].handle, 0);
	}
	expire(w, TCP_IDLE, w->limits.idle_timeout_ms);
	expire(w, TCP_MESSAGE, w->limits.message_timeout_ms);
	expire(w, TCP_WRITING, w->limits.message_timeout_ms);
}

/* Ends when close_all has closed every handle. */
static void run(struct listen_thread *thread)
{
	struct tcp_worker *w = (struct tcp_worker *)thread;
	snapshot_offline(); /* answer_messages goes online: libuv polls and calls back in one breath */
	uv_run(&w->loop, UV_RUN_DEFAULT);
}

/* --- start and stop ----------------------------------------------------------------- */
static enum err open_listener(struct tcp_worker *w, int fd)
{
	int type, listens = 0;
	socklen_t type_bytes = sizeof type, listens_bytes = sizeof listens;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) < 0 || type != SOCK_STREAM ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_bytes) < 0 || !listens)
		return ERR_ARGUMENT;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* libuv closes what it is given */
	if (own < 0)
		return err_from_errno(errno);
	struct tcp_listener *listener = &w->listeners[w->listener_count++];
	listener->worker = w;
	(void)uv_tcp_init(&w->loop, &listener->handle);
	int failed = uv_tcp_open(&listener->handle, own);
	if (failed) {
		close(own);
		return err_from_errno(-failed);
	}
	failed = uv_listen((uv_stream_t *)&listener->handle, ACCEPT_BACKLOG, on_connection);
	return failed ? err_from_errno(-failed) : ERR_OK;
}

static void destroy(struct tcp_worker *w)
{
	ASSERT(uv_loop_close(&w->loop) == 0);
	tcp_box_leave(w->box);
	listen_thread_fini(&w->thread);
	free(w->listeners);
	free(w->read_buffer);
	free(w->out);
	free(w);
}

static enum err create(struct tcp_worker **out, const struct tcp_worker_config *config)
{
	struct tcp_worker *w = calloc(1, sizeof *w);
	if (!w)
		return ERR_NOMEM;
	w->listeners = calloc(config->fd_count, sizeof *w->listeners);
	w->read_buffer = malloc(TCP_READ_BYTES);
	w->out = malloc(TCP_OUT_BYTES);
	if (!w->listeners || !w->read_buffer || !w->out || uv_loop_init(&w->loop) < 0) {
		free(w->listeners);
		free(w->read_buffer);
		free(w->out);
		free(w);
		return ERR_NOMEM;
	}
	w->clients = config->clients;
	w->buffer_budget = TCP_BUFFER_BUDGET;
	w->limits = config->limits;
	if (w->limits.message_timeout_ms == 0)
		w->limits.message_timeout_ms = w->limits.idle_timeout_ms;
	*out = w;
	return ERR_OK;
}

enum err tcp_worker_start(struct tcp_worker **out, const struct tcp_worker_config *config)
{
	if (config->fd_count == 0 || config->limits.idle_timeout_ms == 0 || config->limits.max_queries_in_flight == 0)
		return ERR_ARGUMENT;
	struct tcp_worker *w;
	enum err err = create(&w, config);
	if (err)
		return err;
	(void)uv_timer_init(&w->loop, &w->timer); /* neither can fail */
	w->timer.data = w;
	(void)uv_timer_start(&w->timer, on_tick, 0, LISTEN_SLEEP_MS);
	err = listen_thread_init(&w->thread, &config->service, config->counters);
	if (!err && config->service.resolve)
		err = open_returns(w);
	for (size_t i = 0; !err && i < config->fd_count; i++)
		err = open_listener(w, config->fds[i]);
	if (!err) {
		char name[16];
		snprintf(name, sizeof name, "tcp-%u", config->index % 1000);
		err = listen_thread_start(&w->thread, name, config->cpu, COUNTER_TCP, config->counters, config->snapshots, run);
	}
	if (err) {
		close_all(w);
		(void)uv_run(&w->loop, UV_RUN_DEFAULT);
		destroy(w);
		return err;
	}
	*out = w;
	return ERR_OK;
}

void tcp_worker_stop(struct tcp_worker *w)
{
	if (!w)
		return;
	listen_thread_stop(&w->thread);
	destroy(w);
}
