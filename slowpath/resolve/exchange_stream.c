/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_stream.c: connections (RFC 7766): shared by the queries to a server, pipelined, answered in any order.
 *
 * An exchange waits in its connection's list, QUEUED until it is written, SENT then. What one turn of the loop writes leaves by one write. A server
 * that closes a connection with several queries waiting is taken for one that does not know pipelining: from then on it gets one query on each
 * connection (the next one would cross with its closing). */
#include "base/bytes.h"
#include "base/clock.h"
#include "slowpath/resolve/exchange_private.h"

#include <stdlib.h>

#define BUFFER_FIRST_BYTES 1024u
#define MESSAGE_MAX_BYTES 65535u

static void close_stream(struct stream *c, enum exchange_result result);

/* --- buffers -------------------------------------------------------------------------------------------------------- */

bool stream_buffer_append(struct stream_buffer *b, const uint8_t *octets, size_t bytes, size_t max_bytes)
{
	size_t need = b->bytes + bytes, capacity = MAX(b->capacity, BUFFER_FIRST_BYTES);
	if (need > max_bytes)
		return false;
	while (capacity < need)
		capacity *= 2;
	if (capacity != b->capacity) {
		uint8_t *grown = realloc(b->octets, capacity);
		if (!grown)
			return false;
		b->octets = grown;
		b->capacity = (uint32_t)capacity;
	}
	memcpy(b->octets + b->bytes, octets, bytes);
	b->bytes += (uint32_t)bytes;
	return true;
}

static void drop_buffer(struct stream_buffer *b)
{
	free(b->octets);
	*b = (struct stream_buffer){ 0 };
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

static void on_written(uv_write_t *request, int status);

static void mark_dirty(struct stream *c)
{
	if (c->is_dirty)
		return;
	c->is_dirty = true;
	LIST_INSERT_HEAD(&c->x->dirty_streams, c, dirty);
}

/* Errors of writes are left to the reading side, which learns of them too. */
static void write_out(struct stream *c)
{
	if (c->is_writing || c->out.bytes == 0 || c->state == STREAM_CONNECTING)
		return;
	uv_buf_t buffer = uv_buf_init((char *)c->out.octets, c->out.bytes);
	int n = uv_try_write((uv_stream_t *)&c->handle, &buffer, 1);
	if (n < 0 && n != UV_EAGAIN)
		n = (int)c->out.bytes;
	uint32_t rest = c->out.bytes - (uint32_t)MAX(n, 0);
	c->out.bytes = rest;
	if (rest == 0)
		return;
	memmove(c->out.octets, c->out.octets + n * (n > 0), rest);
	struct stream_buffer full = c->out;
	c->out = c->writing;
	c->writing = full;
	c->out.bytes = 0;
	buffer = uv_buf_init((char *)c->writing.octets, c->writing.bytes);
	c->is_writing = uv_write(&c->write, (uv_stream_t *)&c->handle, &buffer, 1, on_written) == 0;
}

static void on_written(uv_write_t *request, int status)
{
	struct stream *c = (struct stream *)request->handle;
	c->is_writing = false;
	c->writing.bytes = 0;
	if (c->state == STREAM_CLOSED)
		return;
	if (status < 0)
		close_stream(c, EXCHANGE_CLOSED);
	else
		write_out(c);
}

void exchange_stream_flush(struct exchanger *x)
{
	struct stream *c;
	while ((c = LIST_FIRST(&x->dirty_streams))) {
		LIST_REMOVE(c, dirty);
		c->is_dirty = false;
		write_out(c);
	}
}

static void write_query(struct stream *c, struct exchange *e, uint64_t now_ns)
{
	size_t bytes = STREAM_FRAME_BYTES + e->query_bytes;
	bool is_written = c->ssl ? exchange_tls_write(c, e->frame, bytes)
				 : stream_buffer_append(&c->out, e->frame, bytes, STREAM_OUT_MAX_BYTES);
	if (!is_written) {
		exchange_end_later(e, EXCHANGE_LIMIT);
		return;
	}
	e->state = EXCHANGE_SENT;
	e->sent_ns = now_ns;
	c->in_flight++;
	counter_add(c->x->counters, C_UPSTREAM_QUERIES, 1);
	mark_dirty(c);
}

/* Writes what is queued, as far as the server takes it. */
static void write_queued(struct stream *c)
{
	bool is_sequential = c->peer->is_sequential;
	unsigned may = is_sequential ? 1 : STREAM_PIPELINE_MAX;
	if (c->state != STREAM_OPEN || c->in_flight >= may || c->in_flight == c->waiting || (is_sequential && c->answered))
		return;
	uint64_t now_ns = clock_mono_ns();
	for (struct exchange *e = TAILQ_FIRST(&c->exchanges); e && c->in_flight < may; e = TAILQ_NEXT(e, same_carrier))
		if (e->state == EXCHANGE_QUEUED)
			write_query(c, e, now_ns);
}

void exchange_stream_opened(struct stream *c)
{
	c->state = STREAM_OPEN;
	timer_wheel_clear(&c->x->wheel, &c->timer);
	write_queued(c);
	exchange_stream_rest(c);
}

/* --- the end of a connection ---------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct stream *c = (struct stream *)handle;
	struct exchanger *x = c->x;
	drop_buffer(&c->in);
	drop_buffer(&c->out);
	drop_buffer(&c->writing);
	free(c);
	exchanger_handle_closed(x);
}

/* No more queries for it; closed when nothing waits. */
static void retire(struct stream *c)
{
	if (c->is_retired)
		return;
	c->is_retired = true;
	LIST_REMOVE(c, same_peer);
}

/* e's connection is gone: onto another one if that is fair, else it ends. */
static void leave_broken(struct stream *c, struct exchange *e, enum exchange_result result)
{
	bool is_sent = e->state == EXCHANGE_SENT;
	bool is_again = result == EXCHANGE_CLOSED && c->answered > 0 && e->state != EXCHANGE_ENDING && !(is_sent && e->is_resent);
	TAILQ_REMOVE(&c->exchanges, e, same_carrier);
	e->stream = NULL;
	if (e->state == EXCHANGE_ENDING)
		return;
	e->state = EXCHANGE_QUEUED;
	e->sent_ns = 0;
	e->is_resent |= is_sent;
	if (!is_again || !exchange_stream_send(e, &result))
		exchange_end(e, result, NULL);
}

static void close_stream(struct stream *c, enum exchange_result result)
{
	struct exchanger *x = c->x;
	struct exchange_peer *peer = c->peer;
	struct exchange *e;
	if (c->in_flight && result == EXCHANGE_CLOSED) {
		counter_add(x->counters, C_UPSTREAM_TCP_CLOSED, 1);
		peer->is_sequential |= c->in_flight > 1 && c->answered > 0;
	}
	retire(c);
	c->state = STREAM_CLOSED;
	LIST_REMOVE(c, all);
	if (c->is_dirty)
		LIST_REMOVE(c, dirty);
	timer_wheel_clear(&x->wheel, &c->timer);
	exchange_tls_end(c);
	x->stream_count--;
	peer->stream_count--;
	uv_close((uv_handle_t *)&c->handle, on_closed); /* c lives until then: not before the loop's next turn */
	peer->outstanding++;				/* holds it */
	while ((e = TAILQ_FIRST(&c->exchanges)))
		leave_broken(c, e, result);
	peer->outstanding--;
	exchange_peer_release(x, peer);
}

static void on_idle(struct timer_entry *entry)
{
	close_stream((struct stream *)((char *)entry - offsetof(struct stream, timer)), EXCHANGE_CLOSED);
}

static void on_not_open(struct timer_entry *entry)
{
	struct stream *c = (struct stream *)((char *)entry - offsetof(struct stream, timer));
	bool is_tls = c->state == STREAM_HANDSHAKE;
	if (is_tls)
		counter_add(c->x->counters, C_UPSTREAM_TLS_FAILURES, 1);
	close_stream(c, is_tls ? EXCHANGE_TLS_FAILED : EXCHANGE_UNREACHABLE);
}

/* Nothing waits on it: it goes after a while, or at once. */
void exchange_stream_rest(struct stream *c)
{
	if (c->waiting || c->state != STREAM_OPEN)
		return;
	uint64_t now_ns = clock_mono_ns();
	timer_wheel_set(&c->x->wheel, &c->timer, now_ns, now_ns + (c->is_retired ? 0 : c->x->limits.idle_ns), on_idle);
}

void exchange_stream_leave(struct exchange *e)
{
	struct stream *c = e->stream;
	TAILQ_REMOVE(&c->exchanges, e, same_carrier);
	e->stream = NULL;
	c->waiting--;
	if (e->sent_ns) {
		c->in_flight--;
		c->abandoned++; /* unless this is its reply: exchange_stream_take takes it back */
	}
	write_queued(c);
	exchange_stream_rest(c);
}

void exchange_stream_timed_out(struct exchange *e)
{
	if (e->sent_ns && e->stream->heard_ns < e->sent_ns)
		retire(e->stream); /* silent since: the server may be gone, and what is asked next deserves better */
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* One message. False: the connection is closed now. */
static bool take_message(struct stream *c, const uint8_t *message, size_t bytes)
{
	struct exchange_arrival a = { .message = message, .message_bytes = bytes, .stream = c, .now_ns = c->heard_ns };
	c->answered++;
	if (exchange_take_message(c->x, &a, TAILQ_FIRST(&c->exchanges))) {
		c->abandoned--;
		if (c->state != STREAM_CLOSED && c->peer->is_sequential)
			close_stream(c, EXCHANGE_CLOSED); /* what is queued goes on to another one */
	} else {
		c->answered--;
		if (c->state != STREAM_CLOSED && c->abandoned)
			c->abandoned--;
		else if (c->state != STREAM_CLOSED && ++c->junk > STREAM_JUNK_MAX)
			close_stream(c, EXCHANGE_CLOSED);
	}
	return c->state != STREAM_CLOSED;
}

/* Whole messages of octets; *used were used. False: the connection is closed now. */
static bool take_messages(struct stream *c, const uint8_t *octets, size_t bytes, size_t *used)
{
	size_t pos = 0;
	while (bytes - pos >= STREAM_FRAME_BYTES) {
		size_t length = load_be16(octets + pos);
		if (bytes - pos - STREAM_FRAME_BYTES < length)
			break;
		if (!take_message(c, octets + pos + STREAM_FRAME_BYTES, length))
			return false;
		pos += STREAM_FRAME_BYTES + length;
	}
	*used = pos;
	return true;
}

bool exchange_stream_take(struct stream *c, const uint8_t *octets, size_t bytes)
{
	size_t used;
	/* What is held completes one message first, so that it never holds more than one. */
	while (c->in.bytes && bytes) {
		size_t length =
			c->in.bytes < STREAM_FRAME_BYTES ? STREAM_FRAME_BYTES : STREAM_FRAME_BYTES + load_be16(c->in.octets);
		size_t part = MIN(length - c->in.bytes, bytes);
		if (!stream_buffer_append(&c->in, octets, part, STREAM_FRAME_BYTES + MESSAGE_MAX_BYTES)) {
			close_stream(c, EXCHANGE_CLOSED);
			return false;
		}
		octets += part;
		bytes -= part;
		if (!take_messages(c, c->in.octets, c->in.bytes, &used))
			return false;
		if (used)
			drop_buffer(&c->in);
	}
	if (!take_messages(c, octets, bytes, &used))
		return false;
	if (used == bytes || stream_buffer_append(&c->in, octets + used, bytes - used, STREAM_FRAME_BYTES + MESSAGE_MAX_BYTES))
		return true;
	close_stream(c, EXCHANGE_CLOSED);
	return false;
}

static void on_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
	(void)suggested;
	*out = uv_buf_init((char *)((struct stream *)handle)->x->read_buffer, STREAM_READ_BYTES);
}

static void on_read(uv_stream_t *handle, ssize_t n, const uv_buf_t *buffer)
{
	struct stream *c = (struct stream *)handle;
	if (n == 0)
		return;
	if (n < 0) {
		bool is_tls = c->state == STREAM_HANDSHAKE;
		if (is_tls)
			counter_add(c->x->counters, C_UPSTREAM_TLS_FAILURES, 1);
		close_stream(c, is_tls ? EXCHANGE_TLS_FAILED : EXCHANGE_CLOSED);
		return;
	}
	const uint8_t *octets = (const uint8_t *)buffer->base;
	c->heard_ns = clock_mono_ns();
	bool is_well = c->ssl ? exchange_tls_feed(c, octets, (size_t)n) : exchange_stream_take(c, octets, (size_t)n);
	if (!is_well && c->state != STREAM_CLOSED)
		close_stream(c, c->state == STREAM_HANDSHAKE ? EXCHANGE_TLS_FAILED : EXCHANGE_CLOSED);
	else if (is_well)
		mark_dirty(c);
	exchanger_flush(c->x);
}

/* --- the beginning -------------------------------------------------------------------------------------------------- */

static void on_connected(uv_connect_t *request, int status)
{
	struct stream *c = (struct stream *)request->handle;
	if (c->state == STREAM_CLOSED)
		return;
	if (status < 0 || uv_read_start((uv_stream_t *)&c->handle, on_buffer, on_read) < 0) {
		close_stream(c, EXCHANGE_UNREACHABLE);
		return;
	}
	c->heard_ns = clock_mono_ns();
	if (c->transport == EXCHANGE_TCP) {
		exchange_stream_opened(c);
	} else {
		c->state = STREAM_HANDSHAKE;
		if (!exchange_tls_begin(c)) {
			close_stream(c, EXCHANGE_TLS_FAILED);
			return;
		}
		mark_dirty(c);
	}
	exchange_stream_flush(c->x);
}

static struct stream *open_stream(struct exchanger *x, struct exchange_peer *peer, enum exchange_transport transport)
{
	struct stream *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->x = x;
	c->peer = peer;
	c->transport = transport;
	TAILQ_INIT(&c->exchanges);
	(void)uv_tcp_init(x->loop, &c->handle); /* makes no socket yet: can't fail */
	x->open_handles++;
	x->stream_count++;
	peer->stream_count++;
	LIST_INSERT_HEAD(&x->all_streams, c, all);
	LIST_INSERT_HEAD(&peer->streams, c, same_peer);
	counter_add(x->counters, C_UPSTREAM_TCP, 1);
	uint64_t now_ns = clock_mono_ns();
	timer_wheel_set(&x->wheel, &c->timer, now_ns, now_ns + STREAM_OPEN_TIMEOUT_NS, on_not_open);
	if (uv_tcp_connect(&c->connect, &c->handle, (const struct sockaddr *)&peer->address, on_connected) < 0) {
		close_stream(c, EXCHANGE_UNREACHABLE);
		return NULL;
	}
	(void)uv_tcp_nodelay(&c->handle, 1); /* without it replies come later, but they come */
	return c;
}

/* Makes room for a connection by closing one that rests. */
static bool close_a_resting(struct exchanger *x)
{
	struct stream *resting = NULL;
	for (struct stream *c = LIST_FIRST(&x->all_streams); c; c = LIST_NEXT(c, all))
		if (c->waiting == 0)
			resting = c; /* the last one is the oldest */
	if (resting)
		close_stream(resting, EXCHANGE_CLOSED);
	return resting != NULL;
}

/* The connection with the fewest waiting, or NULL. */
static struct stream *find_stream(const struct exchange_peer *peer)
{
	struct stream *best = NULL;
	for (struct stream *c = LIST_FIRST(&peer->streams); c; c = LIST_NEXT(c, same_peer))
		if (c->waiting < STREAM_PIPELINE_MAX && c->out.bytes < STREAM_OUT_EASY_BYTES &&
		    (!best || c->waiting < best->waiting))
			best = c;
	return best;
}

bool exchange_stream_send(struct exchange *e, enum exchange_result *result)
{
	struct exchanger *x = e->x;
	struct exchange_peer *peer = e->peer;
	if (e->transport == EXCHANGE_TLS && (!peer->tls || (!peer->auth_name && !peer->pin))) {
		counter_add(x->counters, C_UPSTREAM_TLS_FAILURES, 1);
		*result = EXCHANGE_TLS_FAILED;
		return false;
	}
	struct stream *c = find_stream(peer);
	unsigned easy = peer->is_sequential ? 1 : STREAM_PIPELINE_EASY;
	if ((!c || c->waiting >= easy) && peer->stream_count < x->limits.connections_per_server &&
	    (x->stream_count < x->limits.connections || close_a_resting(x))) {
		struct stream *made = open_stream(x, peer, e->transport);
		*result = EXCHANGE_UNREACHABLE;
		if (!made && !c)
			return false;
		c = made ? made : c;
	}
	if (!c) {
		*result = EXCHANGE_LIMIT;
		return false;
	}
	if (c->state == STREAM_OPEN)
		timer_wheel_clear(&x->wheel, &c->timer);
	TAILQ_INSERT_TAIL(&c->exchanges, e, same_carrier);
	e->stream = c;
	c->waiting++;
	write_queued(c);
	return true;
}

void exchange_stream_close_all(struct exchanger *x)
{
	while (!LIST_EMPTY(&x->all_streams))
		close_stream(LIST_FIRST(&x->all_streams), EXCHANGE_CLOSED);
}
