/* SPDX-License-Identifier: Apache-2.0 */
#include "script_server.h"

static const uint8_t name[] = "\3www\7example\4test";
static struct asker asker;

static struct exchange_request request_to(const struct exchange_server *s)
{
	return (struct exchange_request){ .server = s,
					  .transport = EXCHANGE_TCP,
					  .name = name,
					  .name_bytes = sizeof name,
					  .type = RR_A,
					  .is_rd = true,
					  .is_edns = true,
					  .udp_payload_bytes = 1232,
					  .timeout_ns = 2000000000ull };
}

static uint64_t counted(enum counter c) { return counter_get(asker.counters, c); }

static struct exchange *begin(struct asked *a, const struct exchange_request *r)
{
	enum exchange_result result;
	*a = (struct asked){ 0 };
	return exchange_start(asker.x, r, asked_done, a, &result);
}

static struct asked ask(const struct exchange_server *s)
{
	struct asked a;
	struct exchange_request r = request_to(s);
	cr_assert_not_null(begin(&a, &r));
	cr_assert_eq(a.count, 0, "not from within exchange_start");
	asker_run(&asker, &a.count, 1);
	cr_assert_eq(a.count, 1);
	return a;
}

static struct server *start(server_script *script, void *user)
{
	return server_start("127.0.0.3", script, user, NULL, SERVER_BOTH);
}

Test(exchange_stream, replies_come_over_one_connection)
{
	struct server *s = start(script_good, NULL);
	asker_init(&asker, NULL);
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(s->accepted, 1);
	cr_assert_eq(counted(C_UPSTREAM_TCP), 1);
	asker_fini(&asker);
	server_stop(s);
}

/* Holds a batch of queries back and answers it last first. */
#define HELD 20u
struct held {
	struct server_query q[HELD];
	uint8_t message[HELD][512];
};
static void script_reversed(struct server *s, const struct server_query *q)
{
	struct held *h = s->user;
	unsigned i = q->index % HELD;
	memcpy(h->message[i], q->message, q->bytes);
	h->q[i] = *q;
	h->q[i].message = h->message[i];
	if (i == HELD - 1)
		for (unsigned k = HELD; k-- > 0;)
			script_good(s, &h->q[k]);
}

Test(exchange_stream, pipelined_and_answered_in_any_order)
{
	static struct held held;
	struct server *s = start(script_reversed, &held);
	asker_init(&asker, NULL);
	struct asked a[HELD];
	struct exchange_request r = request_to(&s->as);
	for (unsigned i = 0; i < HELD; i++) {
		uint8_t other[] = "\3w00\7example\4test";
		other[2] = (uint8_t)('a' + i);
		r.name = other;
		cr_assert_not_null(begin(&a[i], &r));
	}
	for (unsigned i = 0; i < HELD; i++) {
		asker_run(&asker, &a[i].count, 1);
		cr_assert_eq(a[i].result, EXCHANGE_REPLY);
		cr_assert_eq(a[i].message[14], 'a' + i, "each has its own");
	}
	cr_assert_leq(s->accepted, ordinary_limits.connections_per_server);
	asker_fini(&asker);
	server_stop(s);
}

static void script_hang_up(struct server *s, const struct server_query *q) { server_hang_up(s, q); }
static void script_half(struct server *s, const struct server_query *q)
{
	(void)!send(s->connection[q->connection].fd, "\1\0half", 6, MSG_NOSIGNAL);
	server_hang_up(s, q);
}
/* The first connection's second query is not answered but hung up on. */
static void script_good_then_hang_up(struct server *s, const struct server_query *q)
{
	if (q->index == 1)
		server_hang_up(s, q);
	else
		script_good(s, q);
}
static void script_one_each(struct server *s, const struct server_query *q)
{
	script_good(s, q);
	server_hang_up(s, q);
}

Test(exchange_stream, a_connection_that_breaks_is_told_at_once)
{
	server_script *scripts[] = { script_hang_up, script_half };
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		struct server *s = start(scripts[i], NULL);
		asker_init(&asker, NULL);
		uint64_t began = clock_mono_ns();
		cr_assert_eq(ask(&s->as).result, EXCHANGE_CLOSED);
		cr_assert_lt(clock_mono_ns() - began, 500000000ull);
		cr_assert_eq(counted(C_UPSTREAM_TCP_CLOSED), 1);
		asker_fini(&asker);
		server_stop(s);
	}
}

Test(exchange_stream, a_connection_that_had_worked_is_made_anew_once)
{
	struct server *s = start(script_good_then_hang_up, NULL);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY, "the server closed it meanwhile");
	cr_assert_eq(s->accepted, 2);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_stream, a_server_without_pipelining_is_asked_one_at_a_time)
{
	struct server *s = start(script_one_each, NULL);
	asker_init(&asker, NULL);
	struct asked a[30];
	struct exchange_request r = request_to(&s->as);
	for (unsigned i = 0; i < ARRAY_LEN(a); i++)
		cr_assert_not_null(begin(&a[i], &r));
	for (unsigned i = 0; i < ARRAY_LEN(a); i++) {
		asker_run(&asker, &a[i].count, 1);
		cr_assert_eq(a[i].result, EXCHANGE_REPLY, "%u: %d", i, a[i].result);
	}
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_stream, nobody_listens)
{
	struct server *s = server_start("127.0.0.3", script_good, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_UNREACHABLE);
	asker_fini(&asker);
	server_stop(s);
}

static void script_octets(struct server *s, const struct server_query *q)
{
	uint8_t frame[1024];
	size_t bytes = make_reply(frame + 2, q, RCODE_NOERROR, 0);
	store_be16(frame, (uint16_t)bytes);
	for (size_t i = 0; i < bytes + 2; i++) {
		(void)!send(s->connection[q->connection].fd, frame + i, 1, MSG_NOSIGNAL);
		if (i % 7 == 0)
			usleep(1000);
	}
	/* And the next reply in one piece with the end of another. */
}

static void script_large(struct server *s, const struct server_query *q)
{
	static uint8_t out[65535];
	(void)make_reply(out, q, RCODE_NOERROR, 0);
	server_send(s, q, out, sizeof out);
	script_good(s, q); /* one that nobody waits for */
}

Test(exchange_stream, messages_come_in_any_pieces)
{
	struct server *s = start(script_octets, NULL);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	asker_fini(&asker);
	server_stop(s);
	s = start(script_large, NULL);
	asker_init(&asker, NULL);
	struct asked a = ask(&s->as);
	cr_assert_eq(a.result, EXCHANGE_REPLY);
	cr_assert_eq(a.bytes, sizeof a.message);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(s->accepted, 1);
	asker_fini(&asker);
	server_stop(s);
}

static void script_wrong_id(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0);
	out[0] ^= 1;
	server_send(s, q, out, bytes);
	script_good(s, q);
}
static void script_junk(struct server *s, const struct server_query *q)
{
	for (unsigned i = 0; i < 30; i++)
		server_send(s, q, (const uint8_t *)"junk that is no message", 23);
}

Test(exchange_stream, what_does_not_match_is_ignored_but_not_for_ever)
{
	struct server *s = start(script_wrong_id, NULL);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(counted(C_UPSTREAM_WRONG_ID), 1);
	asker_fini(&asker);
	server_stop(s);
	s = start(script_junk, NULL);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_CLOSED);
	cr_assert_geq(counted(C_UPSTREAM_MALFORMED), 16);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_stream, idle_connections_are_closed)
{
	struct exchange_limits limits = ordinary_limits;
	limits.idle_ns = 50000000;
	struct server *s = start(script_good, NULL);
	asker_init(&asker, &limits);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	unsigned never = 0;
	asker_run_for(&asker, &never, 1, 150000000);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(s->accepted, 2);
	cr_assert_eq(counted(C_UPSTREAM_TCP_CLOSED), 0);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_stream, bounds_hold)
{
	struct exchange_limits limits = ordinary_limits;
	limits.connections_per_server = 1;
	struct server *s = start(script_silent, NULL);
	asker_init(&asker, &limits);
	struct exchange_request r = request_to(&s->as);
	r.timeout_ns = 300000000;
	struct asked a = { 0 };
	enum exchange_result result;
	for (unsigned i = 0; i < 128; i++)
		cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a, &result));
	cr_assert_null(exchange_start(asker.x, &r, asked_done, &a, &result));
	cr_assert_eq(result, EXCHANGE_LIMIT);
	asker_run(&asker, &a.count, 128);
	cr_assert_eq(a.result, EXCHANGE_TIMEOUT);
	cr_assert_eq(s->accepted, 1);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_stream, a_resting_connection_makes_room_for_another_server)
{
	struct exchange_limits limits = ordinary_limits;
	limits.connections = 1;
	struct server *s = start(script_good, NULL), *other = server_start("127.0.0.4", script_good, NULL, NULL, SERVER_BOTH);
	asker_init(&asker, &limits);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
		cr_assert_eq(ask(&other->as).result, EXCHANGE_REPLY);
	}
	asker_fini(&asker);
	server_stop(s);
	server_stop(other);
}

static void script_silent_first(struct server *s, const struct server_query *q)
{
	if (q->index > 0)
		script_good(s, q);
}

Test(exchange_stream, a_connection_that_fell_silent_is_not_used_again)
{
	struct server *s = start(script_silent_first, NULL);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(&s->as);
	struct asked a;
	r.timeout_ns = 100000000;
	cr_assert_not_null(begin(&a, &r));
	asker_run(&asker, &a.count, 1);
	cr_assert_eq(a.result, EXCHANGE_TIMEOUT);
	cr_assert_eq(ask(&s->as).result, EXCHANGE_REPLY);
	cr_assert_eq(s->accepted, 2);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_stream, cancelled_ones_are_never_told)
{
	struct server *s = start(script_silent_first, NULL);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(&s->as);
	struct asked never, a;
	exchange_cancel(begin(&never, &r)); /* connecting */
	struct exchange *e = begin(&never, &r);
	for (unsigned i = 0; i < 1000 && s->queries == 0; i++) {
		uv_run(&asker.loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	cr_assert_eq(s->queries, 1);
	exchange_cancel(e); /* sent */
	cr_assert_eq(exchanger_outstanding(asker.x), 0);
	cr_assert_not_null(begin(&a, &r));
	asker_run(&asker, &a.count, 1);
	cr_assert_eq(a.result, EXCHANGE_REPLY, "the connection is still good");
	cr_assert_eq(s->accepted, 1);
	cr_assert_not_null(begin(&never, &r)); /* ends with the exchanger */
	asker_fini(&asker);
	cr_assert_eq(never.count, 0);
	server_stop(s);
}
