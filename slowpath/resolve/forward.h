/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h: a question asked of the upstreams of its forward zone until one answers usefully or the time is over.
 *
 * Choice     `fastest`: by smoothed round trip, now and then a probe to the others so that estimates stay true; `ordered`: the first
 *            that works; `spread`: in turn. A hedge: after three times the usual round trip a second upstream is asked too, and the first
 *            useful reply counts (hedges are a bounded share of all questions). Failures (SERVFAIL, REFUSED, FORMERR, nonsense, ICMP,
 *            broken connections) go on to the next one at once, silence by the same clock as hedges.
 * Circuit    An upstream that fails repeatedly, or from which nothing is heard while others answer, is left out and probed by single
 *            copies of questions, which nobody waits for, with growing pauses; if all are out, all are tried.
 * Knowledge  Per upstream: round trip, deviation, failures, whether it knows EDNS, keeps letter case (0x20), sends cookies. Shared
 *            by all workers (relaxed atomics). EDNS is given up for a server only after FORMERR, NOTIMP or BADVERS without OPT, never when the
 *            zone wants DNSSEC: then such a server counts as failed (`dnssec: true` is never silently off).
 * Reply      Truncated or suspect over UDP: asked again over TCP.
 * Loops      An upstream that is one of our listening addresses is never asked. A query that comes back to us by other ways is known by
 *            what only we and its receiver know, its id and letter case, while it is under way: forwarder_take_loop. A loop through another
 *            resolver joins the question that is under way (slowpath/resolve/resolve.h) and ends with that question's time.
 * Bounds     FORWARD_QUERIES_MAX queries for one question, probes aside. */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "slowpath/resolve/exchange.h"

#include <jansson.h>

#define FORWARD_QUERIES_MAX 12u

struct forward_table; /* all zones and upstreams, shared by the workers; immutable but for upstream knowledge */
/* Reads the CAs' certificates if an upstream wants TLS with a name: at the start. Makes no sockets. ERR_NOMEM, ERR_NOTFOUND (no CAs), ERR_ARGUMENT
 * (a TLS upstream with neither name nor pin). config is borrowed during the call. */
MUST_USE enum err forward_table_create(struct forward_table **out, const struct config *config);
/* After the forwarders and exchangers that used it are gone. NULL is fine. */
void forward_table_destroy(struct forward_table *t);

struct forwarder; /* one per worker */
MUST_USE enum err forwarder_create(struct forwarder **out, struct forward_table *table, uv_loop_t *loop,
				   struct exchanger *exchanger, struct counter_block *counters);
/* Cancels all. Before the exchanger; the loop must run until its handle is closed. Not from within a done. NULL is fine. */
void forwarder_destroy(struct forwarder *f);

enum forward_result { FORWARD_REPLY, FORWARD_FAILED };
struct forward_outcome {
	enum forward_result result;
	const uint8_t *message; /* REPLY: NOERROR or NXDOMAIN; valid during the call. FAILED: NULL */
	size_t message_bytes;
	uint16_t rcode;	    /* FAILED: the least bad reply's, SERVFAIL if there was none */
	int16_t ede;	    /* FAILED: what an upstream said, else EDE_NO_REACHABLE_AUTHORITY, EDE_NETWORK_ERROR, EDE_OTHER */
	const char *server; /* who answered or failed last; may be NULL; lives as long as the table */
	bool is_dnssec;	    /* it was asked with DO */
	bool is_ours;	    /* FAILED: a loop: the zone's upstreams are ourselves */
};
typedef void forward_done(void *user, const struct forward_outcome *outcome);

struct forward_question {
	const uint8_t *name; /* lower-cased wire form; copied */
	uint8_t name_bytes;
	uint16_t type;
	bool is_cd;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	/* Whether a reply that looks well is of use, called at most once before each REPLY: false goes on to another upstream. user is
	 * forward_ask's. NULL: it is. Must not call into the forwarder. */
	bool (*is_useful)(void *user, const uint8_t *message, size_t message_bytes);
};
struct forward_ask;
/* Whether any forward zone covers the name. */
bool forward_covers(const struct forward_table *t, const uint8_t *lower, size_t name_bytes);
/* done: exactly once unless cancelled, never from within. NULL: no zone covers it, or no memory. */
MUST_USE struct forward_ask *forward_ask(struct forwarder *f, const struct forward_question *question, forward_done *done,
					 void *user);
void forward_cancel(struct forward_ask *a);
/* For each query from outside that misses: whether it is one of our own that came back. It deserves no answer; the ask that had sent it
 * has gone on to another upstream. */
MUST_USE bool forwarder_take_loop(struct forwarder *f, const uint8_t *query, size_t query_bytes);

/* For the control protocol, from any thread; new references, NULL without memory.
 * An array of zones, each with its upstreams and what is known of them. */
json_t *forward_table_status(const struct forward_table *t);
/* Asks every upstream of a zone (NULL: all zones) for the zone's SOA over each transport it has, on a loop of its own, and waits at most
 * timeout_ms. Changes no knowledge. An array of results. */
json_t *forward_test(const struct forward_table *t, const uint8_t *zone, size_t zone_bytes, unsigned timeout_ms);
