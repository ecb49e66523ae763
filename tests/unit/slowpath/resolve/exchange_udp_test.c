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
