/* SPDX-License-Identifier: Apache-2.0 */
#include "script_server.h"

static const uint8_t name[] = "\3www\7example\4test";
static struct asker asker;

static struct exchange_request request_to(const struct server *s)
{
	return (struct exchange_request){ .server = &s->as,
					  .transport = EXCHANGE_UDP,
					  .name = name,
					  .name_bytes = sizeof name,
					  .type = RR_A,
					  .is_rd = true,
					  .is_edns = true,
					  .udp_payload_bytes = 1232,
					  .timeout_ns = 1000000000ull };
}

static uint64_t counted(enum counter c) { return counter_get(asker.counters, c); }

/* One exchange, to its end. */
static struct asked ask(const struct exchange_request *r)
{
	struct asked a = { 0 };
	enum exchange_result result;
	cr_assert_not_null(exchange_start(asker.x, r, asked_done, &a, &result));
	cr_assert_eq(a.count, 0, "not from within exchange_start");
	asker_run(&asker, &a.count, 1);
	cr_assert_eq(a.count, 1);
	cr_assert_eq(exchanger_outstanding(asker.x), 0);
	return a;
}

Test(exchange_udp, a_reply_comes_back)
{
	struct server *s = server_start("127.0.0.3", script_good, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	struct asked a = ask(&r);
	cr_assert_eq(a.result, EXCHANGE_REPLY);
	cr_assert_eq(dns_ancount(a.message), 1);
	cr_assert(a.edns.has_opt);
	cr_assert_gt(a.rtt_ns, 0);
	cr_assert_eq(counted(C_UPSTREAM_QUERIES), 1);
	cr_assert_eq(counted(C_UPSTREAM_REPLIES), 1);
	asker_fini(&asker);
	server_stop(s);
}

struct wrong {
	const char *what;
	enum counter counter;
	void (*spoil)(uint8_t *message, size_t *bytes);
	bool is_0x20;
};
static void spoil_id(uint8_t *m, size_t *n) { (void)n, m[0] ^= 1; }
static void spoil_question(uint8_t *m, size_t *n) { (void)n, m[13] = 'x'; }
static void spoil_type(uint8_t *m, size_t *n) { (void)n, m[12 + sizeof name + 1] = 28; }
static void spoil_class(uint8_t *m, size_t *n) { (void)n, m[12 + sizeof name + 3] = 3; }
static void spoil_qr(uint8_t *m, size_t *n) { (void)n, m[2] &= 0x7f; }
static void spoil_opcode(uint8_t *m, size_t *n) { (void)n, m[2] |= 0x20; }
static void spoil_length(uint8_t *m, size_t *n) { (void)m, *n = 11; }
static void spoil_qdcount(uint8_t *m, size_t *n) { (void)n, m[5] = 2; }
static void spoil_no_question(uint8_t *m, size_t *n) { m[5] = 0, *n = 12; }
static void spoil_case(uint8_t *m, size_t *n) { (void)n, m[13] ^= 0x20, m[14] ^= 0x20; }
static const struct wrong wrongs[] = {
	{ "a wrong id", C_UPSTREAM_WRONG_ID, spoil_id, false },
	{ "another question", C_UPSTREAM_WRONG_QUESTION, spoil_question, false },
	{ "another type", C_UPSTREAM_WRONG_QUESTION, spoil_type, false },
	{ "another class", C_UPSTREAM_MALFORMED, spoil_class, false },
	{ "a query", C_UPSTREAM_MALFORMED, spoil_qr, false },
	{ "another opcode", C_UPSTREAM_MALFORMED, spoil_opcode, false },
	{ "less than a header", C_UPSTREAM_MALFORMED, spoil_length, false },
	{ "two questions", C_UPSTREAM_MALFORMED, spoil_qdcount, false },
	{ "no question, but NOERROR", C_UPSTREAM_WRONG_QUESTION, spoil_no_question, false },
	{ "another letter case than we sent", C_UPSTREAM_WRONG_CASE, spoil_case, true },
};

static void script_wrong_first(struct server *s, const struct server_query *q)
{
	const struct wrong *w = s->user;
	uint8_t out[1024];
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0);
	w->spoil(out, &bytes);
	server_send(s, q, out, bytes);
	script_good(s, q);
}

Test(exchange_udp, what_does_not_match_is_counted_and_ignored)
{
	for (size_t i = 0; i < ARRAY_LEN(wrongs); i++) {
		struct server *s = server_start("127.0.0.3", script_wrong_first, (void *)&wrongs[i], NULL, SERVER_UDP_ONLY);
		asker_init(&asker, NULL);
		struct exchange_request r = request_to(s);
		r.is_0x20 = wrongs[i].is_0x20;
		struct asked a = ask(&r);
		cr_assert_eq(a.result, EXCHANGE_REPLY, "%s", wrongs[i].what);
		cr_assert_eq(counted(wrongs[i].counter), 1, "%s: %lu", wrongs[i].what, (unsigned long)counted(wrongs[i].counter));
		asker_fini(&asker);
		server_stop(s);
	}
}

/* Answers from another address first. */
static void script_other_source(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	struct sockaddr_in a = server_address("127.0.0.9", 0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	(void)!bind(fd, (void *)&a, sizeof a);
	(void)!sendto(fd, out, make_reply(out, q, RCODE_NOERROR, 0), 0, (const void *)&q->from, q->from_bytes);
	close(fd);
	script_good(s, q);
}

Test(exchange_udp, another_source_is_ignored)
{
	struct server *s = server_start("127.0.0.3", script_other_source, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	cr_assert_eq(ask(&r).result, EXCHANGE_REPLY);
	cr_assert_eq(counted(C_UPSTREAM_WRONG_SOURCE), 1);
	asker_fini(&asker);
	server_stop(s);
}

/* --- ICMP, time, size ----------------------------------------------------------------------------------------------- */

Test(exchange_udp, a_closed_port_is_known_at_once)
{
	struct server *s = server_start("127.0.0.3", script_good, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	struct exchange_server gone = s->as;
	server_stop(s);
	r.server = &gone;
	uint64_t began = clock_mono_ns();
	cr_assert_eq(ask(&r).result, EXCHANGE_UNREACHABLE);
	cr_assert_lt(clock_mono_ns() - began, 200000000ull);
	cr_assert_eq(counted(C_UPSTREAM_UNREACHABLE), 1);
	asker_fini(&asker);
}

Test(exchange_udp, an_address_without_route_is_known_at_once)
{
	asker_init(&asker, NULL);
	struct exchange_server nowhere = { .text = "nowhere" };
	struct sockaddr_in a = server_address("255.255.255.255", 53); /* needs SO_BROADCAST: EACCES */
	memcpy(&nowhere.address, &a, sizeof a);
	nowhere.address_bytes = sizeof a;
	struct exchange_request r = {
		.server = &nowhere, .name = name, .name_bytes = sizeof name, .type = RR_A, .timeout_ns = 2000000000
	};
	struct asked got = ask(&r);
	cr_assert_eq(got.result, EXCHANGE_UNREACHABLE);
	cr_assert_eq(counted(C_UPSTREAM_SEND_ERROR), 1);
	asker_fini(&asker);
}

Test(exchange_udp, silence_ends_in_time)
{
	struct server *s = server_start("127.0.0.3", script_silent, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	r.timeout_ns = 100000000;
	uint64_t began = clock_mono_ns();
	cr_assert_eq(ask(&r).result, EXCHANGE_TIMEOUT);
	cr_assert_geq(clock_mono_ns() - began, 100000000ull, "never early");
	cr_assert_eq(counted(C_UPSTREAM_TIMEOUTS), 1);
	asker_fini(&asker);
	server_stop(s);
}

static void script_huge(struct server *s, const struct server_query *q)
{
	uint8_t out[8192] = { 0 };
	(void)make_reply(out, q, RCODE_NOERROR, 0);
	server_send(s, q, out, sizeof out);
}

Test(exchange_udp, a_datagram_that_does_not_fit_counts_as_truncated)
{
	struct server *s = server_start("127.0.0.3", script_huge, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	struct asked a = ask(&r);
	cr_assert_eq(a.result, EXCHANGE_REPLY);
	cr_assert(dns_flags(a.message) & DNS_TC);
	asker_fini(&asker);
	server_stop(s);
}

static void script_header_only(struct server *s, const struct server_query *q)
{
	uint8_t out[12] = { 0 };
	memcpy(out, q->message, 2);
	store_be16(out + 2, DNS_QR | RCODE_FORMERR);
	server_send(s, q, out, sizeof out);
}

Test(exchange_udp, a_formerr_without_question_is_a_reply)
{
	struct server *s = server_start("127.0.0.3", script_header_only, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	r.is_0x20 = true;
	struct asked a = ask(&r);
	cr_assert_eq(a.result, EXCHANGE_REPLY);
	cr_assert_eq(a.edns.rcode, RCODE_FORMERR);
	cr_assert_not(a.edns.has_opt);
	asker_fini(&asker);
	server_stop(s);
}

/* --- guesses -------------------------------------------------------------------------------------------------------- */

static void script_guess(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0);
	for (unsigned i = 1; i <= *(unsigned *)s->user; i++) {
		uint8_t guess[1024];
		memcpy(guess, out, bytes);
		store_be16(guess, (uint16_t)(dns_id(out) + i));
		server_send(s, q, guess, bytes);
	}
	script_good(s, q);
}

Test(exchange_udp, a_few_wrong_ids_do_no_harm_many_make_the_exchange_suspect)
{
	for (unsigned guesses = EXCHANGE_NEAR_MISSES - 1; guesses <= EXCHANGE_NEAR_MISSES; guesses++) {
		struct server *s = server_start("127.0.0.3", script_guess, &guesses, NULL, SERVER_UDP_ONLY);
		asker_init(&asker, NULL);
		struct exchange_request r = request_to(s);
		cr_assert_eq(ask(&r).result, guesses < EXCHANGE_NEAR_MISSES ? EXCHANGE_REPLY : EXCHANGE_SUSPECT);
		cr_assert_eq(counted(C_UPSTREAM_WRONG_ID), guesses);
		asker_fini(&asker);
		server_stop(s);
	}
}

static void script_lower_case(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0);
	name_lower(out + 12, out + 12, sizeof name);
	server_send(s, q, out, bytes);
}

Test(exchange_udp, a_server_that_does_not_keep_letter_case_is_suspect_soon)
{
	static const uint8_t long_name[] = "\24abcdefghijklmnopqrst\24abcdefghijklmnopqrst\4test";
	struct server *s = server_start("127.0.0.3", script_lower_case, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	r.is_0x20 = true;
	r.name = long_name;
	r.name_bytes = sizeof long_name;
	uint64_t began = clock_mono_ns();
	cr_assert_eq(ask(&r).result, EXCHANGE_SUSPECT);
	cr_assert_lt(clock_mono_ns() - began, 300000000ull, "not the whole timeout");
	cr_assert_eq(counted(C_UPSTREAM_SUSPECT), 1);
	r.is_0x20 = false;
	cr_assert_eq(ask(&r).result, EXCHANGE_REPLY);
	asker_fini(&asker);
	server_stop(s);
}

static void script_keep_name(struct server *s, const struct server_query *q)
{
	memcpy((uint8_t *)s->user + q->index * 64, q->message + 12, 47);
	script_good(s, q);
}

Test(exchange_udp, letter_case_differs_from_query_to_query)
{
	static const uint8_t long_name[] = "\24abcdefghijklmnopqrst\24abcdefghijklmnopqrst\4test";
	static uint8_t seen[4 * 64];
	struct server *s = server_start("127.0.0.3", script_keep_name, seen, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	r.is_0x20 = true;
	r.name = long_name;
	r.name_bytes = sizeof long_name;
	for (unsigned i = 0; i < 3; i++) {
		struct asked a = ask(&r);
		cr_assert_eq(a.result, EXCHANGE_REPLY);
		cr_assert(name_equal(seen + i * 64, long_name));
		cr_assert(memcmp(seen + i * 64, long_name, sizeof long_name - 1) != 0);
	}
	cr_assert(memcmp(seen, seen + 64, 47) != 0 && memcmp(seen + 64, seen + 128, 47) != 0);
	asker_fini(&asker);
	server_stop(s);
}

struct cookie_case {
	const char *what;
	unsigned cookie_bytes; /* in the reply; 0: no option */
	bool is_foreign, is_expected;
	enum exchange_result want;
};
static const struct cookie_case cookie_cases[] = {
	{ "ours comes back", 24, false, true, EXCHANGE_REPLY },
	{ "another client's cookie", 24, true, false, EXCHANGE_SUSPECT },
	{ "none from a server that is known to send them", 0, false, true, EXCHANGE_SUSPECT },
	{ "none from one that is not", 0, false, false, EXCHANGE_REPLY },
	{ "one of a length that is none", 11, true, false, EXCHANGE_REPLY },
};
static const uint8_t client_cookie[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static void script_cookie(struct server *s, const struct server_query *q)
{
	const struct cookie_case *c = s->user;
	uint8_t out[1024], cookie[40] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0);
	cookie[0] ^= c->is_foreign;
	if (c->cookie_bytes)
		bytes = add_option(out, bytes, EDNS_COOKIE, cookie, c->cookie_bytes, 0);
	server_send(s, q, out, bytes);
}

Test(exchange_udp, cookies_must_be_ours)
{
	for (size_t i = 0; i < ARRAY_LEN(cookie_cases); i++) {
		const struct cookie_case *c = &cookie_cases[i];
		struct server *s = server_start("127.0.0.3", script_cookie, (void *)c, NULL, SERVER_UDP_ONLY);
		asker_init(&asker, NULL);
		struct exchange_request r = request_to(s);
		r.cookie = client_cookie;
		r.cookie_bytes = sizeof client_cookie;
		r.is_cookie_expected = c->is_expected;
		struct asked a = ask(&r);
		cr_assert_eq(a.result, c->want, "%s: %d", c->what, a.result);
		cr_assert_eq(counted(C_UPSTREAM_WRONG_COOKIE), c->want == EXCHANGE_SUSPECT, "%s", c->what);
		if (c->want == EXCHANGE_REPLY)
			cr_assert_eq(a.edns.cookie_bytes, c->cookie_bytes == 24 ? 24 : 0, "%s", c->what);
		asker_fini(&asker);
		server_stop(s);
	}
}

/* The reply to the first query goes to where the second one came from. */
struct two {
	_Atomic int is_crossed; /* 1: done, -1: both came from one port */
	uint8_t message[512];
	size_t bytes;
	struct sockaddr_storage from;
};
static void script_crossed(struct server *s, const struct server_query *q)
{
	struct two *two = s->user;
	uint8_t out[1024];
	if (q->index % 2 == 0) {
		memcpy(two->message, q->message, q->bytes);
		two->bytes = q->bytes;
		two->from = q->from;
		return;
	}
	struct server_query first = *q;
	first.message = two->message;
	first.bytes = two->bytes;
	atomic_store(&two->is_crossed, memcmp(&two->from, &q->from, sizeof(struct sockaddr_in)) != 0 ? 1 : -1);
	server_send(s, &first, out, make_reply(out, &first, RCODE_NOERROR, 0)); /* first.from is the second's */
	first.from = two->from;
	server_send(s, &first, out, make_reply(out, &first, RCODE_NOERROR, 0));
	script_good(s, q);
}

Test(exchange_udp, a_reply_to_another_port_is_ignored)
{
	static const uint8_t other[] = "\5other\4test";
	struct two two = { 0 };
	struct server *s = server_start("127.0.0.3", script_crossed, &two, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	for (unsigned tries = 0; tries < 20 && two.is_crossed != 1; tries++) {
		struct asked a[2] = { 0 };
		enum exchange_result result;
		struct exchange_request r = request_to(s);
		cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a[0], &result));
		exchanger_flush(asker.x);
		usleep(1000);
		r.name = other;
		r.name_bytes = sizeof other;
		cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a[1], &result));
		exchanger_flush(asker.x);
		asker_run(&asker, &a[0].count, 1);
		asker_run(&asker, &a[1].count, 1);
		cr_assert_eq(a[0].result, EXCHANGE_REPLY);
		cr_assert_eq(a[1].result, EXCHANGE_REPLY);
	}
	cr_assert_eq(two.is_crossed, 1);
	cr_assert_eq(counted(C_UPSTREAM_WRONG_PORT), 1);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_udp, a_query_that_comes_back_is_known)
{
	static uint8_t seen[512];
	static size_t bytes;
	struct two two = { 0 };
	struct server *s = server_start("127.0.0.3", script_crossed, &two, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	r.is_0x20 = true;
	struct asked a = { 0 };
	enum exchange_result result;
	cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a, &result));
	exchanger_flush(asker.x);
	for (unsigned i = 0; i < 1000 && s->queries == 0; i++)
		usleep(1000);
	usleep(1000);
	memcpy(seen, two.message, two.bytes);
	bytes = two.bytes;
	seen[13] ^= 0x20;
	cr_assert_not(exchanger_take_loop(asker.x, seen, bytes), "another letter case");
	seen[13] ^= 0x20;
	seen[0] ^= 1;
	cr_assert_not(exchanger_take_loop(asker.x, seen, bytes), "another id");
	seen[0] ^= 1;
	cr_assert_not(exchanger_take_loop(asker.x, seen, 20), "less than a question");
	cr_assert(exchanger_take_loop(asker.x, seen, bytes));
	cr_assert_eq(a.count, 0, "not from within");
	asker_run(&asker, &a.count, 1);
	cr_assert_eq(a.result, EXCHANGE_LOOP);
	asker_fini(&asker);
	server_stop(s);
}

/* --- bounds, many, cancelling --------------------------------------------------------------------------------------- */

Test(exchange_udp, bounds_hold)
{
	struct server *s = server_start("127.0.0.3", script_silent, NULL, NULL, SERVER_UDP_ONLY);
	struct server *other = server_start("127.0.0.4", script_silent, NULL, NULL, SERVER_UDP_ONLY);
	struct exchange_limits limits = ordinary_limits;
	limits.outstanding = 100;
	limits.outstanding_per_server = 60;
	asker_init(&asker, &limits);
	struct exchange_request r = request_to(s), r2 = request_to(other);
	struct asked a = { 0 };
	enum exchange_result result = EXCHANGE_REPLY;
	for (unsigned i = 0; i < 60; i++)
		cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a, &result));
	cr_assert_null(exchange_start(asker.x, &r, asked_done, &a, &result));
	cr_assert_eq(result, EXCHANGE_LIMIT);
	for (unsigned i = 0; i < 40; i++)
		cr_assert_not_null(exchange_start(asker.x, &r2, asked_done, &a, &result));
	cr_assert_null(exchange_start(asker.x, &r2, asked_done, &a, &result));
	cr_assert_eq(counted(C_UPSTREAM_LIMIT), 2);
	asker_run(&asker, &a.count, 100);
	cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a, &result), "room again");
	limits.outstanding = 0;
	struct exchanger *none;
	cr_assert_eq(exchanger_create(&none, &asker.loop, asker.counters, &limits), ERR_ARGUMENT);
	asker_fini(&asker);
	server_stop(s);
	server_stop(other);
}

static _Atomic unsigned per_port[65536];
static void script_count_ports(struct server *s, const struct server_query *q)
{
	atomic_fetch_add(&per_port[ntohs(((const struct sockaddr_in *)&q->from)->sin_port)], 1);
	script_good(s, q);
}

struct many {
	unsigned count, replies;
};
static void on_many(void *user, const struct exchange_outcome *o)
{
	struct many *m = user;
	m->count++;
	m->replies += o->result == EXCHANGE_REPLY;
}

static size_t numbered_name(uint8_t out[32], unsigned i)
{
	char label[16];
	int n = snprintf(label, sizeof label, "n%u", i);
	out[0] = (uint8_t)n;
	memcpy(out + 1, label, (size_t)n);
	memcpy(out + 1 + n, "\4test", 6);
	return (size_t)n + 7;
}

Test(exchange_udp, thousands_at_once_each_get_theirs)
{
	enum { MANY = 10000, AT_ONCE = 2000 };
	struct server *s = server_start("127.0.0.3", script_count_ports, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct many m = { 0 };
	struct exchange_request r = request_to(s);
	r.timeout_ns = 4000000000ull;
	r.is_0x20 = true;
	for (unsigned i = 0; i < MANY; i++) {
		uint8_t qname[32];
		enum exchange_result result;
		r.name = qname;
		r.name_bytes = (uint8_t)numbered_name(qname, i);
		cr_assert_not_null(exchange_start(asker.x, &r, on_many, &m, &result));
		if (i % 100 == 0)
			exchanger_flush(asker.x);
		if (i >= AT_ONCE)
			asker_run(&asker, &m.count, i - AT_ONCE);
	}
	asker_run(&asker, &m.count, MANY);
	cr_assert_eq(m.replies, MANY);
	unsigned ports = 0, most = 0, low = 0;
	for (unsigned i = 0; i < 65536; i++) {
		ports += per_port[i] > 0;
		most = MAX(most, per_port[i]);
		low += i < 1024 && per_port[i];
	}
	cr_assert_leq(most, 2 * EXCHANGE_SOCKET_QUERIES, "a socket is retired in time; its port may be drawn again");
	cr_assert_geq(counted(C_UPSTREAM_SOCKETS), MANY / EXCHANGE_SOCKET_QUERIES);
	cr_assert_geq(ports, MANY / EXCHANGE_SOCKET_QUERIES);
	cr_assert_eq(low, 0);
	asker_fini(&asker);
	server_stop(s);
}

Test(exchange_udp, one_socket_is_enough_if_there_may_be_no_more)
{
	struct server *s = server_start("127.0.0.3", script_good, NULL, NULL, SERVER_UDP_ONLY);
	struct exchange_limits limits = ordinary_limits;
	limits.udp_sockets = 1;
	asker_init(&asker, &limits);
	struct many m = { 0 };
	struct exchange_request r = request_to(s);
	for (unsigned i = 0; i < 200; i++) {
		enum exchange_result result;
		cr_assert_not_null(exchange_start(asker.x, &r, on_many, &m, &result));
	}
	asker_run(&asker, &m.count, 200);
	cr_assert_eq(m.replies, 200);
	cr_assert_gt(counted(C_UPSTREAM_SOCKET_LIMIT), 0);
	asker_fini(&asker);
	server_stop(s);
}

struct canceller {
	unsigned count;
	struct exchange *other;
};
static void on_done_cancel(void *user, const struct exchange_outcome *o)
{
	struct canceller *c = user;
	(void)o;
	c->count++;
	exchange_cancel(c->other);
}

Test(exchange_udp, cancelled_ones_are_never_told)
{
	struct server *s = server_start("127.0.0.3", script_good, NULL, NULL, SERVER_UDP_ONLY);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	struct asked never = { 0 };
	enum exchange_result result;
	exchange_cancel(exchange_start(asker.x, &r, asked_done, &never, &result)); /* queued */
	struct exchange *e = exchange_start(asker.x, &r, asked_done, &never, &result);
	exchanger_flush(asker.x);
	exchange_cancel(e); /* sent */
	struct exchange_server nowhere = { .text = "nowhere" };
	struct sockaddr_in a = server_address("255.255.255.255", 53);
	memcpy(&nowhere.address, &a, sizeof a);
	nowhere.address_bytes = sizeof a;
	r.server = &nowhere;
	e = exchange_start(asker.x, &r, asked_done, &never, &result);
	exchanger_flush(asker.x);
	exchange_cancel(e); /* about to end */
	r.server = &s->as;
	struct canceller c = { 0 };
	struct server *silent = server_start("127.0.0.4", script_silent, NULL, NULL, SERVER_UDP_ONLY);
	struct exchange_request r2 = request_to(silent);
	c.other = exchange_start(asker.x, &r2, asked_done, &never, &result);
	cr_assert_not_null(exchange_start(asker.x, &r, on_done_cancel, &c, &result));
	asker_run(&asker, &c.count, 1);
	cr_assert_eq(exchanger_outstanding(asker.x), 0);
	cr_assert_not_null(exchange_start(asker.x, &r2, asked_done, &never, &result)); /* ends with the exchanger */
	exchanger_flush(asker.x);
	asker_fini(&asker);
	cr_assert_eq(never.count, 0);
	server_stop(s);
	server_stop(silent);
}

static void on_done_again(void *user, const struct exchange_outcome *o)
{
	struct canceller *c = user;
	cr_assert_eq(o->result, EXCHANGE_UNREACHABLE);
	if (++c->count < 50) {
		static const struct sockaddr_in nowhere = { .sin_family = AF_INET,
							    .sin_addr = { 0xffffffff },
							    .sin_port = 0x3500 };
		static struct exchange_server to = { .text = "nowhere", .address_bytes = sizeof nowhere };
		memcpy(&to.address, &nowhere, sizeof nowhere);
		struct exchange_request r = {
			.server = &to, .name = name, .name_bytes = sizeof name, .type = RR_A, .timeout_ns = 1000000000
		};
		enum exchange_result result;
		cr_assert_not_null(exchange_start(asker.x, &r, on_done_again, c, &result));
	}
}

Test(exchange_udp, done_may_start_others_that_fail_at_once)
{
	asker_init(&asker, NULL);
	struct canceller c = { 0 };
	on_done_again(&c, &(struct exchange_outcome){ .result = EXCHANGE_UNREACHABLE });
	asker_run(&asker, &c.count, 50);
	asker_fini(&asker);
}

Test(exchange_udp, ipv6_works_too)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t bytes = sizeof a;
	cr_assert_eq(bind(fd, (void *)&a, sizeof a), 0);
	cr_assert_eq(getsockname(fd, (void *)&a, &bytes), 0);
	asker_init(&asker, NULL);
	struct exchange_server to = { .address_bytes = sizeof a, .text = "::1" };
	memcpy(&to.address, &a, sizeof a);
	struct exchange_request r = {
		.server = &to, .name = name, .name_bytes = sizeof name, .type = RR_A, .timeout_ns = 2000000000
	};
	struct asked got = { 0 };
	enum exchange_result result;
	cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &got, &result));
	exchanger_flush(asker.x);
	uint8_t message[512], out[512];
	struct server_query q = { .message = message, .from_bytes = sizeof q.from };
	ssize_t n = recvfrom(fd, message, sizeof message, 0, (void *)&q.from, &q.from_bytes);
	cr_assert_gt(n, 12);
	q.bytes = (size_t)n;
	cr_assert_gt(sendto(fd, out, make_reply(out, &q, RCODE_NOERROR, 0), 0, (void *)&q.from, q.from_bytes), 0);
	asker_run(&asker, &got.count, 1);
	cr_assert_eq(got.result, EXCHANGE_REPLY);
	close(fd);
	got.count = 0;
	cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &got, &result));
	asker_run(&asker, &got.count, 1);
	cr_assert_eq(got.result, EXCHANGE_UNREACHABLE, "ICMPv6");
	asker_fini(&asker);
}
