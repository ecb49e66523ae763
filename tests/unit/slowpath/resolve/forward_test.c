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

static struct server *start(const char *address, server_script *script)
{
	return server_start(address, script, NULL, NULL, SERVER_BOTH);
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
