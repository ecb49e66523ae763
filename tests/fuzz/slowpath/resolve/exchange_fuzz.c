/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may send: a datagram to the port of a query, or octets on the connection of one. Whatever it is, the exchange ends at most once,
 * and with REPLY only for a message that has its id and its question (or none).
 * Input: one octet of flags, one of the size of pieces, then what is sent. Flags: see below. */
#include "base/clock.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/exchange_stream.c"
#include <arpa/inet.h>

enum flags {
	STREAM = 1,
	RIGHT_ID = 2,
	RIGHT_QUESTION = 4,
	CASE = 8,
	COOKIE = 16,
	COOKIE_EXPECTED = 32,
	OTHER_SOURCE = 64,
	TWO = 128
};

static uv_loop_t loop;
static struct exchanger *x;
static struct counter_block *counters;
static struct exchange_server server;
static const uint8_t name[] = "\3www\7example\4test", cookie[16] = "cookies in pairs";
static unsigned ends;
static bool is_stream;

struct asked {
	uint8_t query[512];
	size_t query_bytes;
	unsigned ends;
	struct exchange *exchange; /* NULL when it has ended */
};

static void on_done(void *user, const struct exchange_outcome *o)
{
	struct asked *a = user;
	ASSERT(++a->ends == 1);
	a->exchange = NULL;
	ends++;
	if (o->result != EXCHANGE_REPLY)
		return;
	ASSERT(o->message_bytes >= DNS_HEADER_BYTES && dns_id(o->message) == dns_id(a->query));
	ASSERT(dns_qdcount(o->message) <= 1);
	if (dns_qdcount(o->message) == 1)
		ASSERT(name_equal(o->message + 12, name) &&
		       memcmp(o->message + 12 + sizeof name, a->query + 12 + sizeof name, 4) == 0);
	ASSERT(o->edns.cookie_bytes <= REPLY_COOKIE_MAX_BYTES);
}

static void open_exchanger(void)
{
	const struct exchange_limits limits = { 100, 100, 4, 4, 2, 1000000000 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	memcpy(&server.address, &a, sizeof a);
	server.address_bytes = sizeof a;
	counters = aligned_alloc(CACHE_LINE, sizeof *counters);
	ASSERT(counters && uv_loop_init(&loop) == 0);
	memset(counters, 0, sizeof *counters);
	ASSERT(exchanger_create(&x, &loop, counters, &limits) == ERR_OK);
}

static void start(struct asked *a, unsigned flags)
{
	enum exchange_result result;
	struct exchange_request r = { .server = &server,
				      .name = name,
				      .name_bytes = sizeof name,
				      .type = RR_A,
				      .is_edns = true,
				      .is_0x20 = flags & CASE,
				      .cookie = flags & COOKIE ? cookie : NULL,
				      .cookie_bytes = sizeof cookie,
				      .is_cookie_expected = flags & COOKIE_EXPECTED,
				      .udp_payload_bytes = 1232,
				      .timeout_ns = 1000000000 };
	a->exchange = exchange_start(x, &r, on_done, a, &result);
	ASSERT(a->exchange);
	a->query_bytes = a->exchange->query_bytes;
	memcpy(a->query, exchange_query(a->exchange), a->query_bytes);
}

/* As if it had been sent from the port, or over the connection, without either. */
static void mark_sent(struct exchange *e, struct udp_port *port, struct stream *c)
{
	TAILQ_REMOVE(&x->udp[0].unsent, e, queue);
	e->state = EXCHANGE_SENT;
	e->sent_ns = 1;
	if (c) {
		e->transport = EXCHANGE_TCP;
		e->stream = c;
		TAILQ_INSERT_TAIL(&c->exchanges, e, same_carrier);
		c->waiting++;
		c->in_flight++;
	} else {
		e->port = port;
		TAILQ_INSERT_TAIL(&port->exchanges, e, same_carrier);
		port->outstanding++;
	}
}

static struct stream *make_stream(struct exchange_peer *peer)
{
	struct stream *c = calloc(1, sizeof *c);
	ASSERT(c);
	c->x = x;
	c->peer = peer;
	c->transport = EXCHANGE_TCP;
	c->state = STREAM_OPEN;
	TAILQ_INIT(&c->exchanges);
	uv_tcp_init(&loop, &c->handle);
	x->open_handles++;
	x->stream_count++;
	peer->stream_count++;
	LIST_INSERT_HEAD(&x->all_streams, c, all);
	LIST_INSERT_HEAD(&peer->streams, c, same_peer);
	return c;
}

/* The id and question of a's query over those of the message at m. */
static void make_right(uint8_t *m, size_t bytes, const struct asked *a, unsigned flags)
{
	size_t question = 12 + sizeof name + 4;
	if ((flags & RIGHT_ID) && bytes >= 2)
		memcpy(m, a->query, 2);
	if ((flags & RIGHT_QUESTION) && bytes >= question)
		memcpy(m + 12, a->query + 12, question - 12);
}

static void take_datagram(uint8_t *octets, size_t bytes, struct asked *a, unsigned flags)
{
	struct udp_port port = { .x = x, .fd = -1 };
	struct sockaddr_storage source = server.address;
	TAILQ_INIT(&port.exchanges);
	for (unsigned i = 0; i < 2 && a[i].exchange; i++)
		mark_sent(a[i].exchange, &port, NULL);
	if (flags & OTHER_SOURCE)
		((struct sockaddr_in *)&source)->sin_port++;
	make_right(octets, bytes, &a[0], flags);
	struct exchange_arrival arrival = {
		.message = octets, .message_bytes = bytes, .port = &port, .source = &source, .now_ns = clock_mono_ns()
	};
	for (unsigned i = 0; i < 2 * EXCHANGE_NEAR_MISSES; i++) {
		bool is_taken = exchange_take_message(x, &arrival, TAILQ_FIRST(&port.exchanges));
		ASSERT(!is_taken || !(flags & OTHER_SOURCE));
	}
	for (unsigned i = 0; i < 2; i++)
		if (a[i].exchange)
			exchange_cancel(a[i].exchange);
	ASSERT(port.outstanding == 0);
}

static void take_octets(uint8_t *octets, size_t bytes, struct asked *a, unsigned flags, unsigned piece)
{
	struct stream *c = make_stream(a[0].exchange->peer);
	for (unsigned i = 0; i < 2 && a[i].exchange; i++)
		mark_sent(a[i].exchange, NULL, c);
	if (bytes >= STREAM_FRAME_BYTES)
		make_right(octets + STREAM_FRAME_BYTES, bytes - STREAM_FRAME_BYTES, &a[0], flags);
	bool is_open = true;
	for (size_t pos = 0; pos < bytes && is_open; pos += piece) {
		/* A copy of its own, so that reading beyond it shows. */
		size_t n = MIN(piece, bytes - pos);
		uint8_t *copy = malloc(n);
		ASSERT(copy);
		memcpy(copy, octets + pos, n);
		is_open = exchange_stream_take(c, copy, n);
		ASSERT(is_open == (c->state != STREAM_CLOSED));
		ASSERT(!is_open || c->in.bytes <= STREAM_FRAME_BYTES + MESSAGE_MAX_BYTES);
		free(copy);
	}
	exchange_stream_close_all(x); /* resends may have made others */
	for (unsigned i = 0; i < 2; i++)
		if (a[i].exchange)
			exchange_cancel(a[i].exchange);
	exchange_stream_close_all(x);
	uv_run(&loop, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct asked a[2] = { 0 };
	if (size < 2)
		return 0;
	if (!x)
		open_exchanger();
	unsigned flags = data[0], piece = data[1] + 1u;
	size_t bytes = size - 2;
	uint8_t *octets = malloc(MAX(bytes, 1u));
	ASSERT(octets);
	memcpy(octets, data + 2, bytes);
	is_stream = flags & STREAM;
	start(&a[0], flags);
	if (flags & TWO)
		start(&a[1], flags);
	if (is_stream)
		take_octets(octets, bytes, a, flags, piece);
	else
		take_datagram(octets, bytes, a, flags);
	ASSERT(exchanger_outstanding(x) == 0 && x->stream_count == 0);
	free(octets);
	return 0;
}
