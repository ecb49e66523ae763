/* SPDX-License-Identifier: Apache-2.0 */
/* One TCP connection: octets in, messages cut out of them, answers collected and written.
 *
 *   read_buffer (worker's)  --+--> whole messages --answer()--> out (worker's) --uv_try_write--> kernel
 *                             |                                                      |
 *                             +--> held: the rest of the input                       +--> a write request: what the kernel
 *                                                                                         did not take; no reading meanwhile
 *
 * An idle connection owns no buffer. Answers are written in the order of their queries, but for those that come back from the
 * resolver (tcp_miss.h). */
#include "base/bytes.h"
#include "dns/message.h"
#include "slowpath/listen/tcp_miss.h"
#include "slowpath/listen/tcp_private.h"
#include "slowpath/resolve/resolve.h"
#include <stdlib.h>

struct write_request {
	uv_write_t request; /* first */
	uint32_t bytes;
	uint8_t data[];
};

/* --- lists ----------------------------------------------------------------- */
static void leave_list(struct tcp_connection *c)
{
	struct tcp_list *l = &c->worker->list[c->state];
	*(c->previous ? &c->previous->next : &l->first) = c->next;
	*(c->next ? &c->next->previous : &l->last) = c->previous;
	c->previous = c->next = NULL;
}

static void join_list(struct tcp_connection *c, enum tcp_state state)
{
	struct tcp_list *l = &c->worker->list[state];
	c->state = state;
	c->since_ms = uv_now(&c->worker->loop);
	c->previous = l->last;
	*(l->last ? &l->last->next : &l->first) = c;
	l->last = c;
}

void tcp_connection_enter(struct tcp_connection *c, enum tcp_state state)
{
	leave_list(c);
	join_list(c, state);
}

/* --- the end ----------------------------------------------------------------- */
static void drop_held(struct tcp_connection *c)
{
	c->worker->buffer_bytes -= c->held_capacity;
	free(c->held);
	c->held = NULL;
	c->held_bytes = c->held_capacity = 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct tcp_connection *c = (struct tcp_connection *)handle;
	c->is_closed = true;
	if (c->pending == 0)
		free(c); /* else tcp_miss_next does */
}

void tcp_connection_close(struct tcp_connection *c, enum counter why)
{
	if (c->is_closing)
		return;
	c->is_closing = true;
	counter_add(c->worker->thread.counters, C_TCP_CLOSED, 1);
	if (why != C_COUNT_)
		counter_add(c->worker->thread.counters, why, 1);
	leave_list(c);
	drop_held(c);
	tcp_clients_leave(c->worker->clients, &c->client);
	uv_close((uv_handle_t *)&c->handle, on_closed);
}

/* --- writing ----------------------------------------------------------------- */
static void use_input(struct tcp_connection *c, const uint8_t *data, size_t bytes);
static void settle(struct tcp_connection *c, bool is_progress);

static void on_written(uv_write_t *request, int status)
{
	struct tcp_connection *c = (struct tcp_connection *)request->handle;
	struct write_request *w = (struct write_request *)request;
	c->worker->buffer_bytes -= w->bytes;
	c->unsent_bytes -= w->bytes;
	free(w);
	if (c->is_closing)
		return;
	if (status < 0)
		tcp_connection_close(c, C_COUNT_);
	else
		use_input(c, NULL, 0);
}

/* Writes data; what the kernel does not take is copied and queued. False if the connection was closed. */
static bool write_out(struct tcp_connection *c, const uint8_t *data, uint32_t bytes)
{
	struct tcp_worker *worker = c->worker;
	uv_buf_t buffer = uv_buf_init((char *)data, bytes);
	int n = uv_try_write((uv_stream_t *)&c->handle, &buffer, 1);
	if (n < 0 && n != UV_EAGAIN) {
		tcp_connection_close(c, C_COUNT_);
		return false;
	}
	uint32_t rest = bytes - (uint32_t)MAX(n, 0);
	if (rest == 0)
		return true;
	struct write_request *w = worker->buffer_bytes + rest <= worker->buffer_budget ? malloc(sizeof *w + rest) : NULL;
	if (!w) {
		tcp_connection_close(c, C_TCP_NO_BUFFER);
		return false;
	}
	w->bytes = rest;
	memcpy(w->data, data + bytes - rest, rest);
	worker->buffer_bytes += rest;
	c->unsent_bytes += rest;
	buffer = uv_buf_init((char *)w->data, rest);
	if (uv_write(&w->request, (uv_stream_t *)&c->handle, &buffer, 1, on_written) == 0)
		return true;
	worker->buffer_bytes -= rest;
	c->unsent_bytes -= rest;
	free(w);
	tcp_connection_close(c, C_COUNT_);
	return false;
}

/* --- reading ----------------------------------------------------------------- */
/* Answers one message into worker->out at *out_bytes. False for what is no DNS at all: nothing sensible can follow it. */
static bool answer_one(struct tcp_connection *c, const struct snapshot *s, struct answer_thread *t, const uint8_t *message,
		       uint32_t bytes, uint32_t *out_bytes)
{
	uint8_t *out = c->worker->out + *out_bytes;
	struct answer_query q;
	q.msg = out + TCP_LENGTH_BYTES;
	q.query_bytes = bytes;
	q.capacity_bytes = TCP_MESSAGE_MAX;
	q.client = c->client;
	memcpy(q.msg, message, bytes);
	enum answer_verdict verdict = answer(s, t, &q);
	counter_add(t->counters, C_TCP_QUERIES, 1);
	if (verdict == ANSWER_SEND_AND_REFRESH && c->worker->box)
		resolve_refresh(c->worker->thread.resolve, &q);
	if (verdict == ANSWER_MISS && c->worker->box)
		(void)!tcp_miss_ask(c, &q); /* refused and counted: this query stays without answer */
	if (verdict == ANSWER_SEND || verdict == ANSWER_SEND_AND_REFRESH) {
		store_be16(out, (uint16_t)q.response_bytes);
		*out_bytes += TCP_LENGTH_BYTES + q.response_bytes;
	}
	return bytes >= DNS_HEADER_BYTES;
}

/* As many queries under way as it may have: it is not read until one of them comes back. */
static bool is_full(const struct tcp_connection *c) { return c->pending >= c->worker->limits.max_queries_in_flight; }

/* Answers whole messages until data ends, the client does not take the answers, or too much is under way; *used octets were used. Writes what was
 * answered. False if the connection was closed. */
static bool answer_messages(struct tcp_connection *c, const uint8_t *data, size_t bytes, size_t *used)
{
	struct tcp_worker *worker = c->worker;
	struct answer_thread *t = &worker->thread.answer;
	size_t pos = 0;
	uint32_t out_bytes = 0, answered = 0;
	bool is_open = true, is_sane = true;
	snapshot_online();
	listen_thread_clock(&worker->thread);
	listen_thread_beat(
		&worker->thread); /* one turn of the loop may serve a thousand connections: the tick alone would be late */
	const struct snapshot *s = listen_thread_snapshot(&worker->thread);
	while (is_open && is_sane && c->unsent_bytes == 0 && !is_full(c) && bytes - pos >= TCP_LENGTH_BYTES) {
		uint32_t length = load_be16(data + pos);
		if (bytes - pos - TCP_LENGTH_BYTES < length)
			break;
		is_sane = answer_one(c, s, t, data + pos + TCP_LENGTH_BYTES, length, &out_bytes);
		pos += TCP_LENGTH_BYTES + length;
		answered++;
		if (TCP_OUT_BYTES - out_bytes < TCP_LENGTH_BYTES + TCP_MESSAGE_MAX ||
		    answered >= worker->limits.max_queries_in_flight) {
			is_open = out_bytes == 0 || write_out(c, worker->out, out_bytes);
			out_bytes = answered = 0;
		}
	}
	snapshot_offline();
	if (is_open && out_bytes)
		is_open = write_out(c, worker->out, out_bytes);
	if (is_open && !is_sane) {
		tcp_connection_close(c, C_COUNT_);
		is_open = false;
	}
	*used = pos;
	return is_open;
}

/* Appends to held, which grows with what really arrived. False if the connection was closed. */
static bool hold(struct tcp_connection *c, const uint8_t *data, size_t bytes)
{
	size_t need = c->held_bytes + bytes, capacity = MAX(c->held_capacity, TCP_HELD_FIRST_BYTES);
	while (capacity < need)
		capacity *= 2;
	if (capacity != c->held_capacity) {
		size_t more = capacity - c->held_capacity;
		uint8_t *grown = c->worker->buffer_bytes + more <= c->worker->buffer_budget ? realloc(c->held, capacity) : NULL;
		if (!grown) {
			tcp_connection_close(c, C_TCP_NO_BUFFER);
			return false;
		}
		c->worker->buffer_bytes += more;
		c->held = grown;
		c->held_capacity = (uint32_t)capacity;
	}
	memcpy(c->held + c->held_bytes, data, bytes);
	c->held_bytes += (uint32_t)bytes;
	return true;
}

/* Takes new input (may be none) after what is held. The connection may be closed afterwards. */
static void use_input(struct tcp_connection *c, const uint8_t *data, size_t bytes)
{
	size_t used;
	if (c->held_bytes == 0) {
		if (!answer_messages(c, data, bytes, &used))
			return;
		if (used < bytes && !hold(c, data + used, bytes - used))
			return;
	} else {
		if (bytes && !hold(c, data, bytes))
			return;
		if (!answer_messages(c, c->held, c->held_bytes, &used))
			return;
		c->held_bytes -= (uint32_t)used;
		if (c->held_bytes == 0)
			drop_held(c);
		else if (used)
			memmove(c->held, c->held + used, c->held_bytes);
	}
	settle(c, used > 0);
}

static void on_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	(void)suggested;
	struct tcp_connection *c = (struct tcp_connection *)handle;
	*out = uv_buf_init((char *)c->worker->read_buffer, TCP_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct tcp_connection *c = (struct tcp_connection *)stream;
	if (n > 0) {
		use_input(c, (const uint8_t *)buffer->base, (size_t)n);
	} else if (n == UV_EOF) {
		c->is_ended = true;
		settle(c, false);
	} else if (n < 0) {
		tcp_connection_close(c, C_COUNT_);
	}
}

static void pause_reading(struct tcp_connection *c)
{
	if (!c->is_paused)
		(void)uv_read_stop((uv_stream_t *)&c->handle);
	c->is_paused = true;
}

static void resume_reading(struct tcp_connection *c)
{
	if (!c->is_paused)
		return;
	c->is_paused = false;
	if (uv_read_start((uv_stream_t *)&c->handle, on_buffer, on_read) < 0)
		tcp_connection_close(c, C_COUNT_);
}

/* The state that follows from what is held, unsent and pending; reads exactly while the client takes its answers and has not too many queries
 * under way. */
static void settle(struct tcp_connection *c, bool is_progress)
{
	if (c->unsent_bytes) {
		if (c->state != TCP_WRITING)
			counter_add(c->worker->thread.counters, C_TCP_STALLED, 1);
		pause_reading(c);
		c->unsent_seen = uv_stream_get_write_queue_size((uv_stream_t *)&c->handle);
		tcp_connection_enter(c, TCP_WRITING);
		return;
	}
	if (c->is_ended &&
	    c->pending == 0) { /* a half-closed client has got all its answers; what is held can never become whole */
		tcp_connection_close(c, C_COUNT_);
		return;
	}
	bool is_resumed = c->state == TCP_WRITING, is_reading = !is_full(c) && !c->is_ended;
	enum tcp_state state = c->pending ? TCP_WAITING : TCP_IDLE;
	if (c->held_bytes && is_reading)
		state = TCP_MESSAGE;
	/* Octets that complete nothing do not prolong anything: a message has its time from its first octet on. */
	if (is_resumed || is_progress || state != c->state)
		tcp_connection_enter(c, state);
	if (is_reading)
		resume_reading(c);
	else
		pause_reading(c);
}

void tcp_connection_answered(struct tcp_connection *c, uint8_t *message, size_t bytes)
{
	bool is_open = !c->is_closing;
	if (is_open && message) {
		store_be16(c->worker->out, (uint16_t)bytes);
		memcpy(c->worker->out + TCP_LENGTH_BYTES, message, bytes);
		is_open = write_out(c, c->worker->out, (uint32_t)(TCP_LENGTH_BYTES + bytes));
	}
	free(message);
	if (is_open)
		use_input(c, NULL, 0);
}

void tcp_connection_begin(struct tcp_connection *c)
{
	join_list(c, TCP_IDLE);
	if (uv_read_start((uv_stream_t *)&c->handle, on_buffer, on_read) < 0)
		tcp_connection_close(c, C_COUNT_);
}
