/* SPDX-License-Identifier: Apache-2.0 */
/* forward_status.c: forward zones and upstreams for the control protocol: what is known, and what a test finds. */
#include "base/clock.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/forward_private.h"

#include <stdlib.h>

#define load(p) ((unsigned long long)atomic_load_explicit(p, memory_order_relaxed))

static const char *strategy_text(enum config_strategy s)
{
	static const char *const text[] = {
		[STRATEGY_ORDERED] = "ordered", [STRATEGY_FASTEST] = "fastest", [STRATEGY_SPREAD] = "spread"
	};
	return text[s];
}

/* To the microsecond. */
static double ms(unsigned long long ns)
{
	unsigned long long us = ns / 1000;
	return (double)us / 1000.0;
}

/* --- what is known -------------------------------------------------------------------------------------------------- */

static const char *capability(const _Atomic uint8_t *is_seen, const _Atomic uint64_t *not_until_ns, uint64_t now_ns)
{
	return load(not_until_ns) > now_ns ? "no" : load(is_seen) ? "yes" : "unknown";
}

static json_t *upstream_status(const struct forward_table *t, uint32_t index, uint64_t now_ns)
{
	const struct upstream *u = &t->upstream[index];
	unsigned long long queries = 0, replies = 0, failures = 0, suspects = 0, truncated = 0, out_ns = load(&u->out_since_ns);
	bool has_cookie = false;
	for (unsigned i = 0; i < FORWARD_SHARES_MAX; i++) {
		/* Released by forward_share_add. */
		const struct upstream_share *s = atomic_load_explicit(&t->share[i], memory_order_acquire);
		if (!s)
			continue;
		queries += load(&s[index].queries);
		replies += load(&s[index].replies);
		failures += load(&s[index].failures);
		suspects += load(&s[index].suspects);
		truncated += load(&s[index].truncated);
		has_cookie |= load(&s[index].server_cookie_bytes) != 0;
	}
	return json_pack("{s:s, s:s, s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:b, s:f}", "server", u->text, "transport",
			 u->is_tls ? "tls" : "udp", "state",
			 u->is_self ? "self"
			 : out_ns   ? "out"
				    : "in use",
			 "usual_ms", ms(load(&u->srtt_us) * 1000), "deviation_ms", ms(load(&u->rttvar_us) * 1000), "queries",
			 (json_int_t)queries, "replies", (json_int_t)replies, "failures", (json_int_t)failures, "suspect",
			 (json_int_t)suspects, "truncated", (json_int_t)truncated, "edns",
			 capability(&u->knows_edns, &u->no_edns_until_ns, now_ns), "letter_case",
			 capability(&u->keeps_case, &u->no_case_until_ns, now_ns), "cookie", has_cookie, "out_for_ms",
			 out_ns && now_ns > out_ns ? ms(now_ns - out_ns) : 0.0);
}

json_t *forward_table_status(const struct forward_table *t)
{
	uint64_t now_ns = clock_mono_ns();
	json_t *zones = json_array();
	for (size_t i = 0; i < t->zone_count && zones; i++) {
		const struct forward_zone *z = &t->zone[i];
		char text[NAME_TEXT_MAX_BYTES];
		json_t *upstreams = json_array();
		name_to_text(text, z->name);
		for (unsigned k = 0; k < z->count && upstreams; k++)
			(void)json_array_append_new(upstreams, upstream_status(t, z->upstream[k], now_ns)); /* NULL: left out */
		json_t *zone = json_pack("{s:s, s:s, s:b, s:o}", "zone", text, "strategy", strategy_text(z->strategy), "dnssec",
					 z->dnssec, "upstreams", upstreams);
		(void)json_array_append_new(zones, zone);
	}
	return zones;
}

/* --- a test --------------------------------------------------------------------------------------------------------- */

struct probe {
	struct test *test;
	json_t *result; /* owned by the test's array */
};
struct test {
	uv_loop_t loop;
	struct exchanger *exchanger;
	struct counter_block *counters;
	struct probe *probes;
	unsigned count, open;
	json_t *results;
};

static const char *result_text(enum exchange_result r)
{
	static const char *const text[] = {
		[EXCHANGE_REPLY] = "reply",	     [EXCHANGE_TIMEOUT] = "timeout",	   [EXCHANGE_UNREACHABLE] = "unreachable",
		[EXCHANGE_CLOSED] = "closed",	     [EXCHANGE_TLS_FAILED] = "tls failed", [EXCHANGE_SUSPECT] = "suspect",
		[EXCHANGE_LOOP] = "came back to us", [EXCHANGE_LIMIT] = "limit",
	};
	return text[r];
}

static void set_result(struct probe *p, enum exchange_result result)
{
	(void)json_object_set_new(p->result, "result", json_string(result_text(result)));
}

static void on_probed(void *user, const struct exchange_outcome *o)
{
	struct probe *p = user;
	p->test->open--;
	set_result(p, o->result);
	if (o->result == EXCHANGE_REPLY) {
		(void)json_object_set_new(p->result, "rcode", json_string(rcode_text(o->edns.rcode)));
		(void)json_object_set_new(p->result, "usual_ms", json_real(ms(o->rtt_ns)));
		(void)json_object_set_new(p->result, "edns", json_boolean(o->edns.has_opt));
		(void)json_object_set_new(p->result, "answers", json_integer(dns_ancount(o->message)));
	}
	if (p->test->open == 0)
		uv_stop(&p->test->loop);
}

static void probe(struct test *t, const struct forward_zone *z, const struct upstream *u, enum exchange_transport transport,
		  unsigned timeout_ms)
{
	static const char *const transport_text[] = { "udp", "tcp", "tls" };
	char zone[NAME_TEXT_MAX_BYTES];
	struct probe *p = &t->probes[t->count];
	enum exchange_result result;
	name_to_text(zone, z->name);
	p->test = t;
	p->result = json_pack("{s:s, s:s, s:s}", "zone", zone, "server", u->text, "transport", transport_text[transport]);
	if (!p->result || json_array_append_new(t->results, p->result) < 0)
		return; /* without memory a line is missing */
	t->count++;
	struct exchange_request r = { .server = &u->server,
				      .transport = transport,
				      .name = z->name,
				      .name_bytes = z->name_bytes,
				      .type = RR_SOA,
				      .is_rd = true,
				      .is_edns = true,
				      .is_do = z->dnssec,
				      .udp_payload_bytes = FORWARD_UDP_PAYLOAD_BYTES,
				      .timeout_ns = timeout_ms * 1000000ull };
	if (exchange_start(t->exchanger, &r, on_probed, p, &result))
		t->open++;
	else
		set_result(p, result);
}

static bool test_begin(struct test *t, unsigned probes)
{
	const struct exchange_limits limits = { .outstanding = probes,
						.outstanding_per_server = probes,
						.udp_sockets = MAX(probes, 2u),
						.connections = probes,
						.connections_per_server = 1,
						.idle_ns = 1 };
	t->probes = calloc(probes, sizeof *t->probes);
	t->counters = aligned_alloc(CACHE_LINE, sizeof *t->counters);
	t->results = json_array();
	if (!t->probes || !t->counters || !t->results || uv_loop_init(&t->loop) < 0)
		return false;
	memset(t->counters, 0, sizeof *t->counters);
	if (exchanger_create(&t->exchanger, &t->loop, t->counters, &limits) == ERR_OK)
		return true;
	(void)uv_loop_close(&t->loop);
	return false;
}

static bool is_wanted(const struct forward_zone *z, const uint8_t *zone, size_t zone_bytes)
{
	return !zone || (z->name_bytes == zone_bytes && memcmp(z->name, zone, zone_bytes) == 0);
}

json_t *forward_test(const struct forward_table *table, const uint8_t *zone, size_t zone_bytes, unsigned timeout_ms)
{
	struct test t = { 0 };
	unsigned probes = 0;
	for (size_t i = 0; i < table->zone_count; i++)
		probes += is_wanted(&table->zone[i], zone, zone_bytes) ? 2 * table->zone[i].count : 0;
	if (probes == 0)
		return json_array();
	if (!test_begin(&t, probes)) {
		json_decref(t.results);
		free(t.probes);
		free(t.counters);
		return NULL;
	}
	for (size_t i = 0; i < table->zone_count; i++) {
		const struct forward_zone *z = &table->zone[i];
		for (unsigned k = 0; k < z->count && is_wanted(z, zone, zone_bytes); k++) {
			const struct upstream *u = &table->upstream[z->upstream[k]];
			probe(&t, z, u, u->is_tls ? EXCHANGE_TLS : EXCHANGE_UDP, timeout_ms);
			if (!u->is_tls)
				probe(&t, z, u, EXCHANGE_TCP, timeout_ms);
		}
	}
	if (t.open)
		(void)uv_run(&t.loop, UV_RUN_DEFAULT); /* until on_probed stops it: each exchange has its timeout */
	exchanger_destroy(t.exchanger);
	(void)uv_run(&t.loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&t.loop);
	free(t.probes);
	free(t.counters);
	return t.results;
}
