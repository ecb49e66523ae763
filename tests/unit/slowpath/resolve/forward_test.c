/* SPDX-License-Identifier: Apache-2.0 */
#include "script_server.h"
#include "slowpath/resolve/forward_private.h"

#define MS 1000000ull

/* --- a forwarder and its upstreams ---------------------------------------------------------------------------------- */

struct world {
	struct asker asker;
	struct forward_table *table;
	struct forwarder *forwarder;
	struct config config;
	struct config_forward zone[4];
	struct config_upstream to[8];
	unsigned to_count;
};
static struct world w;

static const uint8_t root[] = "", name[] = "\3www\7example\4test";

static struct config_upstream upstream_for(const struct sockaddr_in *a, const char *text)
{
	struct config_upstream u = { .address = { .family = 4, .port = ntohs(a->sin_port) } };
	memcpy(u.address.address, &a->sin_addr, 4);
	snprintf(u.address.text, sizeof u.address.text, "%s", text);
	return u;
}

static void add_zone(const uint8_t *zone, size_t zone_bytes, enum config_strategy strategy, struct server *const *servers,
		     unsigned count)
{
	struct config_forward *z = &w.zone[w.config.forward_count++];
	*z = (struct config_forward){ .zone = { .name = (uint8_t *)(uintptr_t)zone, .name_bytes = zone_bytes },
				      .to = &w.to[w.to_count],
				      .count = count,
				      .strategy = strategy };
	for (unsigned i = 0; i < count; i++)
		w.to[w.to_count++] = upstream_for((const struct sockaddr_in *)&servers[i]->as.address, servers[i]->text);
	w.config.forward = w.zone;
}

static void world_begin(void) { memset(&w, 0, sizeof w); }

static void world_open(void)
{
	asker_init(&w.asker, NULL);
	cr_assert_eq(forward_table_create(&w.table, &w.config), ERR_OK);
	cr_assert_eq(forwarder_create(&w.forwarder, w.table, &w.asker.loop, w.asker.x, w.asker.counters), ERR_OK);
}

static void world_close(void)
{
	forwarder_destroy(w.forwarder);
	asker_fini(&w.asker);
	forward_table_destroy(w.table);
}

static uint64_t counted(enum counter c) { return counter_get(w.asker.counters, c); }

struct got {
	unsigned count;
	enum forward_result result;
	uint16_t rcode;
	int16_t ede;
	bool is_ours, is_dnssec;
	size_t bytes;
	uint8_t message[4096];
	char server[64];
	uint64_t began_ns, took_ns;
};

static void on_done(void *user, const struct forward_outcome *o)
{
	struct got *g = user;
	g->count++;
	g->result = o->result;
	g->rcode = o->rcode;
	g->ede = o->ede;
	g->is_ours = o->is_ours;
	g->is_dnssec = o->is_dnssec;
	g->bytes = MIN(o->message_bytes, sizeof g->message);
	if (o->message)
		memcpy(g->message, o->message, g->bytes);
	snprintf(g->server, sizeof g->server, "%s", o->server ? o->server : "");
	g->took_ns = clock_mono_ns() - g->began_ns;
}

static struct forward_ask *begin(struct got *g, const uint8_t *qname, size_t qname_bytes, unsigned deadline_ms)
{
	*g = (struct got){ .began_ns = clock_mono_ns() };
	struct forward_question q = {
		.name = qname, .name_bytes = (uint8_t)qname_bytes, .type = RR_A, .deadline_ns = g->began_ns + deadline_ms * MS
	};
	return forward_ask(w.forwarder, &q, on_done, g);
}

static struct got ask_within(unsigned deadline_ms)
{
	static struct got g;
	cr_assert_not_null(begin(&g, name, sizeof name, deadline_ms));
	cr_assert_eq(g.count, 0, "not from within forward_ask");
	asker_run(&w.asker, &g.count, 1);
	cr_assert_eq(g.count, 1);
	return g;
}

static struct got ask(void) { return ask_within(3000); }

/* Tests run side by side: a port that one has closed must not be another's, so each has addresses of its own. */
static const char *own_address(const char *text)
{
	static char own[4][24];
	static unsigned turn;
	char *out = own[turn++ % 4];
	snprintf(out, sizeof own[0], "127.%u.%u.%s", 1 + (unsigned)getpid() / 256 % 250, (unsigned)getpid() % 256,
		 strrchr(text, '.') + 1);
	return out;
}

static struct server *start(const char *address, server_script *script)
{
	return server_start(own_address(address), script, NULL, NULL, SERVER_BOTH);
}

static void script_servfail(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	server_send(s, q, out, make_reply(out, q, RCODE_SERVFAIL, 0));
}

static void script_truncate(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	server_send(s, q, out, make_reply(out, q, RCODE_NOERROR, q->is_stream ? 0 : DNS_TC));
}

/* --- tests ---------------------------------------------------------------------------------------------------------- */

Test(forward, the_longest_zone_answers)
{
	static const uint8_t example[] = "\7example\4test", other[] = "\5other\4test";
	world_begin();
	struct server *a = start("127.0.0.3", script_good), *b = start("127.0.0.4", script_good);
	add_zone(root, 1, STRATEGY_ORDERED, &a, 1);
	add_zone(example, sizeof example, STRATEGY_ORDERED, &b, 1);
	world_open();
	cr_assert_str_eq(ask().server, b->text);
	struct got g;
	cr_assert_not_null(begin(&g, other, sizeof other, 3000));
	asker_run(&w.asker, &g.count, 1);
	cr_assert_str_eq(g.server, a->text);
	cr_assert_eq(g.result, FORWARD_REPLY);
	cr_assert_eq(dns_ancount(g.message), 1);
	world_close();
	server_stop(a);
	server_stop(b);
}

Test(forward, what_no_zone_covers_is_not_asked)
{
	static const uint8_t example[] = "\7example\4test", other[] = "\5other\4test";
	world_begin();
	struct server *a = start("127.0.0.3", script_good);
	add_zone(example, sizeof example, STRATEGY_ORDERED, &a, 1);
	world_open();
	struct got g;
	cr_assert_null(begin(&g, other, sizeof other, 3000));
	cr_assert_not(forward_covers(w.table, other, sizeof other));
	cr_assert(forward_covers(w.table, name, sizeof name));
	cr_assert(forward_covers(w.table, example, sizeof example));
	cr_assert_not(forward_covers(w.table, root, 1));
	world_close();
	server_stop(a);
}

Test(forward, a_truncated_reply_is_asked_again_over_tcp)
{
	world_begin();
	struct server *a = start("127.0.0.3", script_truncate);
	add_zone(root, 1, STRATEGY_ORDERED, &a, 1);
	world_open();
	struct got g = ask();
	cr_assert_eq(g.result, FORWARD_REPLY);
	cr_assert_eq(dns_ancount(g.message), 1);
	cr_assert_eq(a->stream_queries, 1);
	cr_assert_eq(counted(C_UPSTREAM_TRUNCATED), 1);
	world_close();
	server_stop(a);
}

Test(forward, servfail_goes_on_to_the_next_upstream)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_servfail), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	struct got g = ask();
	cr_assert_eq(g.result, FORWARD_REPLY);
	cr_assert_str_eq(g.server, s[1]->text);
	cr_assert_lt(g.took_ns, 100 * MS);
	cr_assert_eq(counted(C_UPSTREAM_FAILOVERS), 1);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, if_all_say_servfail_that_is_the_outcome)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_servfail), start("127.0.0.4", script_servfail) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	struct got g = ask();
	cr_assert_eq(g.result, FORWARD_FAILED);
	cr_assert_eq(g.rcode, RCODE_SERVFAIL);
	cr_assert_eq(g.ede, EDE_OTHER);
	cr_assert_lt(g.took_ns, 200 * MS, "nobody is asked in vain");
	cr_assert_eq(s[0]->queries + s[1]->queries, 2);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, silence_ends_with_the_deadline)
{
	world_begin();
	struct server *a = start("127.0.0.3", script_silent);
	add_zone(root, 1, STRATEGY_ORDERED, &a, 1);
	world_open();
	struct got g = ask_within(700);
	cr_assert_eq(g.result, FORWARD_FAILED);
	cr_assert_eq(g.ede, EDE_NO_REACHABLE_AUTHORITY);
	cr_assert_geq(g.took_ns, 700 * MS);
	cr_assert_lt(g.took_ns, 900 * MS);
	cr_assert_geq(a->queries, 2, "asked again: the first may have been lost");
	world_close();
	server_stop(a);
}

/* --- dead and slow upstreams ---------------------------------------------------------------------------------------- */

/* A server whose port is closed by now. */
static struct server *start_gone(const char *address)
{
	struct server *s = server_start(own_address(address), script_good, NULL, NULL, SERVER_UDP_ONLY);
	close(s->udp);
	s->udp = -1;
	return s;
}

static void script_20_ms(struct server *s, const struct server_query *q)
{
	usleep(20000);
	script_good(s, q);
}

static struct upstream *knowledge(unsigned i) { return &w.table->upstream[i]; }

Test(forward, a_closed_port_costs_no_time_and_opens_the_circuit)
{
	world_begin();
	struct server *s[] = { start_gone("127.0.0.3"), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	for (unsigned i = 0; i < 10; i++) {
		struct got g = ask();
		cr_assert_eq(g.result, FORWARD_REPLY);
		cr_assert_str_eq(g.server, s[1]->text);
		cr_assert_lt(g.took_ns, 400 * MS, "less than any timeout");
	}
	cr_assert(upstream_is_out(knowledge(0)));
	cr_assert_leq(counted(C_UPSTREAM_FAILOVERS), 3, "it is left out then");
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, if_all_ports_are_closed_that_is_known_soon)
{
	world_begin();
	struct server *s[] = { start_gone("127.0.0.3"), start_gone("127.0.0.4") };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	struct got g = ask();
	cr_assert_eq(g.result, FORWARD_FAILED);
	cr_assert_eq(g.ede, EDE_NETWORK_ERROR);
	cr_assert_eq(g.rcode, RCODE_SERVFAIL);
	cr_assert_lt(g.took_ns, 4000 * MS, "before the deadline, even where the kernel sends fewer ICMP errors than it should");
	cr_assert_eq(counted(C_FORWARD_FAILED), 1);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, one_of_two_is_silent_and_no_question_fails)
{
	static const enum config_strategy strategies[] = { STRATEGY_ORDERED, STRATEGY_FASTEST, STRATEGY_SPREAD };
	for (size_t k = 0; k < ARRAY_LEN(strategies); k++) {
		world_begin();
		struct server *s[] = { start("127.0.0.3", script_good), start("127.0.0.4", script_good) };
		add_zone(root, 1, strategies[k], s, 2);
		world_open();
		for (unsigned i = 0; i < 30; i++) /* so that both are known */
			cr_assert_eq(ask().result, FORWARD_REPLY);
		s[0]->script = script_silent;
		unsigned slow = 0;
		for (unsigned i = 0; i < 60; i++) {
			struct got g = ask();
			cr_assert_eq(g.result, FORWARD_REPLY, "strategy %zu, question %u", k, i);
			slow += g.took_ns > 50 * MS;
		}
		cr_assert_leq(slow, 2, "hedges and the circuit keep it fast: %u", slow);
		if (strategies[k] != STRATEGY_FASTEST) /* which need not have asked it often enough to know */
			cr_assert(upstream_is_out(knowledge(0)));
		world_close();
		server_stop(s[0]);
		server_stop(s[1]);
	}
}

Test(forward, a_late_one_is_hedged_and_the_first_reply_counts)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_good), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	for (unsigned i = 0; i < 10; i++)
		cr_assert_str_eq(ask().server, s[0]->text);
	s[0]->script = script_20_ms;
	struct got g = ask();
	cr_assert_str_eq(g.server, s[1]->text);
	cr_assert_lt(g.took_ns, 20 * MS);
	cr_assert_eq(counted(C_UPSTREAM_HEDGES), 1);
	unsigned never = 0;
	asker_run_for(&w.asker, &never, 1, 100 * MS);
	cr_assert_eq(exchanger_outstanding(w.asker.x), 0);
	cr_assert_not(upstream_is_out(knowledge(0)), "late is not dead");
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, hedges_are_a_bounded_share)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_good), start("127.0.0.4", script_silent) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 1);
	add_zone((const uint8_t *)"\4test", 6, STRATEGY_ORDERED, s, 2);
	world_open();
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(ask().result, FORWARD_REPLY);
	s[0]->script = script_silent;
	static struct got g[2000];
	for (unsigned i = 0; i < ARRAY_LEN(g); i++)
		cr_assert_not_null(begin(&g[i], name, sizeof name, 150));
	unsigned never = 0;
	asker_run_for(&w.asker, &never, 1, 120 * MS);
	cr_assert_leq(counted(C_UPSTREAM_HEDGES), 200, "%lu", (unsigned long)counted(C_UPSTREAM_HEDGES));
	asker_run_for(&w.asker, &never, 1, 100 * MS);
	for (unsigned i = 0; i < ARRAY_LEN(g); i++)
		cr_assert_eq(g[i].count, 1);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, one_that_is_out_comes_back_by_a_probe)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_silent), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	for (unsigned i = 0; i < 40 && !upstream_is_out(knowledge(0)); i++)
		cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert(upstream_is_out(knowledge(0)));
	s[0]->script = script_good;
	uint64_t end = clock_mono_ns() + 4000 * MS;
	while (upstream_is_out(knowledge(0)) && clock_mono_ns() < end) {
		struct got g = ask();
		cr_assert_str_eq(g.server, s[1]->text, "probes are nobody's question");
		usleep(10000);
	}
	cr_assert_not(upstream_is_out(knowledge(0)));
	cr_assert_geq(counted(C_UPSTREAM_PROBES), 1);
	cr_assert_str_eq(ask().server, s[0]->text);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

static void script_refused(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	server_send(s, q, out, make_reply(out, q, RCODE_REFUSED, 0));
}

Test(forward, one_that_refuses_what_others_know_is_left_out)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_refused), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	for (unsigned i = 0; i < UPSTREAM_OUT_BAD; i++) {
		cr_assert_not(upstream_is_out(knowledge(0)));
		cr_assert_eq(ask().result, FORWARD_REPLY);
	}
	cr_assert(upstream_is_out(knowledge(0)));
	unsigned queries = s[0]->queries;
	cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert_eq(s[0]->queries, queries);
	unsigned never = 0;
	asker_run_for(&w.asker, &never, 1, 300 * MS);
	cr_assert_eq(ask().result, FORWARD_REPLY); /* with a probe, which is refused */
	asker_run_for(&w.asker, &never, 1, 50 * MS);
	cr_assert_eq(s[0]->queries, queries + 1);
	cr_assert(upstream_is_out(knowledge(0)), "a probe that is refused brings it not back");
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

/* --- strategies ----------------------------------------------------------------------------------------------------- */

Test(forward, spread_asks_in_turn_and_fastest_the_fastest)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_good), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_SPREAD, s, 2);
	world_open();
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert_eq(s[0]->queries, 10);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
	world_begin();
	struct server *t[] = { start("127.0.0.3", script_20_ms), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_FASTEST, t, 2);
	world_open();
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(ask().result, FORWARD_REPLY);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_str_eq(ask().server, t[1]->text);
	cr_assert_leq(t[0]->queries, 8);
	cr_assert_geq(t[0]->queries, 1, "each is known");
	world_close();
	server_stop(t[0]);
	server_stop(t[1]);
}

/* --- EDNS, letter case, cookies ------------------------------------------------------------------------------------- */

static void script_no_edns(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	if (dns_arcount(q->message) == 0) {
		script_good(s, q);
		return;
	}
	size_t bytes = make_reply(out, q, RCODE_FORMERR, 0) - EDNS_OPT_FIXED_BYTES;
	store_be16(out + 10, 0);
	server_send(s, q, out, bytes);
}

Test(forward, edns_is_given_up_after_formerr_and_that_is_remembered)
{
	world_begin();
	struct server *a = start("127.0.0.3", script_no_edns);
	add_zone(root, 1, STRATEGY_ORDERED, &a, 1);
	world_open();
	cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert_eq(a->queries, 2);
	cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert_eq(a->queries, 3);
	cr_assert_eq(counted(C_UPSTREAM_EDNS_OFF), 1);
	world_close();
	server_stop(a);
}

static void script_strip_edns(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0) - EDNS_OPT_FIXED_BYTES;
	store_be16(out + 10, 0);
	server_send(s, q, out, bytes);
}
static void script_keep_do(struct server *s, const struct server_query *q)
{
	size_t end = question_end(q->message, q->bytes);
	*(_Atomic int *)s->user = q->bytes > end + 8 && (load_be16(q->message + end + 7) & EDNS_DO) ? 1 : 2;
	script_good(s, q);
}

Test(forward, dnssec_is_never_silently_off)
{
	static _Atomic int has_do;
	server_script *scripts[] = { script_no_edns, script_strip_edns };
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		world_begin();
		struct server *s[] = { start("127.0.0.3", scripts[i]), server_start(own_address("127.0.0.4"), script_keep_do,
										    (void *)&has_do, NULL, SERVER_BOTH) };
		add_zone(root, 1, STRATEGY_ORDERED, s, 2);
		w.zone[0].dnssec = true;
		world_open();
		struct got g = ask();
		cr_assert_eq(g.result, FORWARD_REPLY);
		cr_assert(g.is_dnssec);
		cr_assert_str_eq(g.server, s[1]->text);
		cr_assert_eq(s[0]->queries, 1);
		cr_assert_eq(has_do, 1);
		world_close();
		world_begin();
		add_zone(root, 1, STRATEGY_ORDERED, s, 1);
		w.zone[0].dnssec = true;
		world_open();
		cr_assert_eq(ask().result, FORWARD_FAILED, "rather nothing");
		world_close();
		server_stop(s[0]);
		server_stop(s[1]);
	}
}

static void script_lower(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	size_t bytes = make_reply(out, q, RCODE_NOERROR, 0);
	if (!q->is_stream)
		name_lower(out + 12, out + 12, sizeof name);
	server_send(s, q, out, bytes);
}

Test(forward, a_server_that_does_not_keep_letter_case_is_asked_over_tcp_and_then_without)
{
	world_begin();
	struct server *a = start("127.0.0.3", script_lower);
	add_zone(root, 1, STRATEGY_ORDERED, &a, 1);
	world_open();
	for (unsigned i = 0; i < 10; i++)
		cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert_leq(a->stream_queries,
		      UPSTREAM_SUSPECTS_MAX + 1); /* a name of 14 letters may be sent all lower-case by chance */
	cr_assert_geq(a->stream_queries, 1);
	cr_assert_not(upstream_may_case(knowledge(0), clock_mono_ns()));
	world_close();
	server_stop(a);
}

/* Wants its cookie; answers BADCOOKIE without it. */
static void script_badcookie(struct server *s, const struct server_query *q)
{
	static const uint8_t mine[16] = "server's cookie";
	uint8_t out[1024], cookie[24];
	size_t opt = question_end(q->message, q->bytes), data = opt + EDNS_OPT_FIXED_BYTES;
	bool has_mine = q->bytes == data + 4 + 24 && memcmp(q->message + data + 12, mine, 16) == 0;
	if (q->bytes < data + 12)
		return;
	memcpy(cookie, q->message + data + 4, 8);
	memcpy(cookie + 8, mine, 16);
	size_t bytes = make_reply(out, q, has_mine ? RCODE_NOERROR : RCODE_BADCOOKIE & 15, 0);
	out[bytes - 6] = has_mine ? 0 : RCODE_BADCOOKIE >> 4;
	server_send(s, q, out, add_option(out, bytes, EDNS_COOKIE, cookie, sizeof cookie, 0));
}

Test(forward, cookies_are_learnt_and_sent_back)
{
	world_begin();
	struct server *a = start("127.0.0.3", script_badcookie);
	add_zone(root, 1, STRATEGY_ORDERED, &a, 1);
	world_open();
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(ask().result, FORWARD_REPLY);
	cr_assert_eq(a->queries, 4, "once in vain");
	cr_assert_eq(a->stream_queries, 0);
	world_close();
	server_stop(a);
}

/* --- useless replies, loops, limits, cancelling --------------------------------------------------------------------- */

static void script_referral(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	size_t end = question_end(q->message, q->bytes);
	memcpy(out, q->message, end);
	store_be16(out + 2, DNS_QR);
	memset(out + 6, 0, 6);
	server_send(s, q, out, end);
}

static bool nothing_is_useful(void *user, const uint8_t *message, size_t bytes)
{
	(void)message;
	(void)bytes;
	((struct got *)user)->rcode++;
	return false;
}

Test(forward, a_reply_that_answers_nothing_goes_on)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_referral), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	cr_assert_str_eq(ask().server, s[1]->text);
	struct got g = { .began_ns = clock_mono_ns() };
	struct forward_question q = { .name = name,
				      .name_bytes = sizeof name,
				      .type = RR_A,
				      .deadline_ns = g.began_ns + 3000 * MS,
				      .is_useful = nothing_is_useful };
	cr_assert_not_null(forward_ask(w.forwarder, &q, on_done, &g));
	asker_run(&w.asker, &g.count, 1);
	cr_assert_eq(g.result, FORWARD_FAILED);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, our_own_address_is_never_asked)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_good), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	w.config.listen.dns = &w.to[0].address;
	w.config.listen.dns_count = 1;
	world_open();
	cr_assert_str_eq(ask().server, s[1]->text);
	cr_assert_eq(s[0]->queries, 0);
	world_close();
	world_begin();
	add_zone(root, 1, STRATEGY_ORDERED, s, 1);
	w.config.listen.dns = &w.to[0].address;
	w.config.listen.dns_count = 1;
	world_open();
	struct got g = ask();
	cr_assert_eq(g.result, FORWARD_FAILED);
	cr_assert(g.is_ours);
	cr_assert_eq(s[0]->queries, 0);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

static uint8_t returned[512];
static _Atomic size_t returned_bytes;
static void script_return(struct server *s, const struct server_query *q)
{
	(void)s;
	memcpy(returned, q->message, q->bytes);
	returned_bytes = q->bytes;
}

Test(forward, a_query_that_comes_back_goes_to_the_next)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_return), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	struct got g;
	cr_assert_not_null(begin(&g, name, sizeof name, 3000));
	exchanger_flush(w.asker.x);
	for (unsigned i = 0; i < 1000 && returned_bytes == 0; i++)
		usleep(1000);
	cr_assert(forwarder_take_loop(w.forwarder, returned, returned_bytes));
	asker_run(&w.asker, &g.count, 1);
	cr_assert_eq(g.result, FORWARD_REPLY);
	cr_assert_str_eq(g.server, s[1]->text);
	cr_assert_lt(g.took_ns, 150 * MS);
	cr_assert_eq(counted(C_UPSTREAM_LOOPS), 1);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, cancelled_ones_are_never_told)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_silent), start("127.0.0.4", script_truncate) };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	add_zone((const uint8_t *)"\5other", 7, STRATEGY_ORDERED, &s[1], 1);
	world_open();
	struct got never[40];
	static const uint8_t other[] = "\1a\5other";
	for (unsigned i = 0; i < ARRAY_LEN(never); i++) { /* not sent, sent, hedged, over TCP, and whatever else */
		bool is_other = i % 2;
		struct forward_ask *a = begin(&never[i], is_other ? other : name, is_other ? sizeof other : sizeof name, 3000);
		uint64_t end = clock_mono_ns() + i / 2 * MS / (is_other ? 10 : 1);
		while (clock_mono_ns() < end && never[i].count == 0)
			uv_run(&w.asker.loop, UV_RUN_NOWAIT);
		if (never[i].count == 0)
			forward_cancel(a);
		else
			never[i].count = 0;
	}
	cr_assert_not_null(begin(&never[0], name, sizeof name, 3000)); /* ends with the forwarder */
	world_close();
	for (unsigned i = 0; i < ARRAY_LEN(never); i++)
		cr_assert_eq(never[i].count, 0);
	server_stop(s[0]);
	server_stop(s[1]);
}

Test(forward, thousands_of_questions_with_one_upstream_dead)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_silent), start("127.0.0.4", script_good) };
	add_zone(root, 1, STRATEGY_SPREAD, s, 2);
	world_open();
	enum { MANY = 5000 };
	struct got *g = calloc(MANY, sizeof *g);
	for (unsigned i = 0; i < MANY; i++) {
		cr_assert_not_null(begin(&g[i], name, sizeof name, 4000));
		if (i % 50 == 49) {
			exchanger_flush(w.asker.x);
			asker_run(&w.asker, &g[i - 49].count, 0);
		}
		if (i >= 500)
			asker_run(&w.asker, &g[i - 500].count, 1);
	}
	for (unsigned i = 0; i < MANY; i++) {
		asker_run(&w.asker, &g[i].count, 1);
		cr_assert_eq(g[i].result, FORWARD_REPLY, "%u", i);
	}
	free(g);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}

/* --- what operators see --------------------------------------------------------------------------------------------- */

Test(forward, status_and_test_tell_what_is_known)
{
	world_begin();
	struct server *s[] = { start("127.0.0.3", script_good), start_gone("127.0.0.4") };
	add_zone(root, 1, STRATEGY_ORDERED, s, 2);
	world_open();
	cr_assert_eq(ask().result, FORWARD_REPLY);
	json_t *status = forward_table_status(w.table);
	json_t *zone = json_array_get(status, 0), *up = json_array_get(json_object_get(zone, "upstreams"), 0);
	cr_assert_str_eq(json_string_value(json_object_get(zone, "zone")), ".");
	cr_assert_str_eq(json_string_value(json_object_get(zone, "strategy")), "ordered");
	cr_assert_eq(json_array_size(json_object_get(zone, "upstreams")), 2);
	cr_assert_str_eq(json_string_value(json_object_get(up, "server")), s[0]->text);
	cr_assert_eq(json_integer_value(json_object_get(up, "queries")), 1);
	cr_assert_eq(json_integer_value(json_object_get(up, "replies")), 1);
	cr_assert_str_eq(json_string_value(json_object_get(up, "edns")), "yes");
	cr_assert_gt(json_real_value(json_object_get(up, "usual_ms")), 0);
	json_decref(status);
	json_t *test = forward_test(w.table, NULL, 0, 2000);
	cr_assert_eq(json_array_size(test), 4, "UDP and TCP of both");
	static const char *const want[] = { "reply", "reply", "unreachable", "unreachable" };
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		json_t *t = json_array_get(test, i);
		if (i != 3) /* the TCP port of the closed one was never opened: nobody listens either */
			cr_assert_str_eq(json_string_value(json_object_get(t, "result")), want[i], "%zu", i);
	}
	cr_assert_str_eq(json_string_value(json_object_get(json_array_get(test, 0), "rcode")), "NOERROR");
	json_decref(test);
	test = forward_test(w.table, (const uint8_t *)"\4none", 6, 500);
	cr_assert_eq(json_array_size(test), 0);
	json_decref(test);
	world_close();
	server_stop(s[0]);
	server_stop(s[1]);
}
