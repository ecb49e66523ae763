/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h: a question asked of the upstreams of its forward zone until one answers usefully or the time is over.
 *
 * Choice     `fastest`: by smoothed round trip and failures, now and then another one so that estimates stay true; `ordered`: the first
 *            that works; `spread`: in turn. A hedge: after three times the usual round trip a second upstream is asked too, and the first
 *            useful reply counts. Failures (timeouts, SERVFAIL, REFUSED, FORMERR, nonsense) go on to the next one.
 * Circuit    An upstream that fails repeatedly is left out and probed by single questions with growing pauses; if all are out, all
 *            are tried.
 * Knowledge  Per upstream: round trip, deviation, failures, whether it knows EDNS, keeps letter case (0x20), sends cookies, whether UDP
 *            replies come truncated. Shared by all workers (relaxed atomics). EDNS is given up for a server only after FORMERR or
 *            NOTIMP without OPT, never when the zone wants DNSSEC: then such a server counts as failed (`dnssec: true` is never
 *            silently off).
 * Reply      Truncated over UDP: asked again over TCP. */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "slowpath/resolve/exchange.h"

struct forward_table; /* all zones and upstreams, shared by the workers; immutable but for upstream knowledge */
MUST_USE enum err forward_table_create(struct forward_table **out, const struct config *config);
void forward_table_destroy(struct forward_table *t);

struct forwarder; /* one per worker */
MUST_USE enum err forwarder_create(struct forwarder **out, struct forward_table *table, uv_loop_t *loop,
				   struct exchanger *exchanger, struct counter_block *counters);
void forwarder_destroy(struct forwarder *f);

enum forward_result { FORWARD_REPLY, FORWARD_FAILED };
struct forward_outcome {
	enum forward_result result;
	const uint8_t
		*message; /* valid during the call; NOERROR or NXDOMAIN, or the least bad reply's rcode with FORWARD_FAILED */
	size_t message_bytes;
	int16_t ede;	    /* FAILED: EDE_NO_REACHABLE_AUTHORITY, EDE_NETWORK_ERROR, ... */
	const char *server; /* who answered or failed last; may be NULL */
	bool is_dnssec;	    /* it was asked with DO */
	bool is_ours;	    /* a loop: the query came back to us */
};
typedef void forward_done(void *user, const struct forward_outcome *outcome);

struct forward_question {
	const uint8_t *name; /* lower-cased wire form, borrowed until done */
	uint8_t name_bytes;
	uint16_t type;
	bool is_cd;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};
struct forward_ask;
/* Whether any forward zone covers the name. */
bool forward_covers(const struct forward_table *t, const uint8_t *lower, size_t name_bytes);
/* done: exactly once unless cancelled, never from within. NULL: no zone covers it, or no memory. */
MUST_USE struct forward_ask *forward_ask(struct forwarder *f, const struct forward_question *question, forward_done *done,
					 void *user);
void forward_cancel(struct forward_ask *a);
