/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.h: what is known of one upstream server, by all workers together.
 *
 * Sharing    Relaxed atomics: each value stands for itself, and a lost update of an estimate is no loss. What is written with every reply is
 *            written rarely: estimates by each worker's every UPSTREAM_SAMPLE-th reply, heard_ns once a ms.
 * Points     Failures give points, any reply takes them all away. With UPSTREAM_OUT_POINTS the upstream is out: asked only by probes, with
 *            pauses that grow from UPSTREAM_PAUSE_FIRST_NS to UPSTREAM_PAUSE_MAX_NS, until one is answered. Silence gives points
 *            only if nothing at all came since the query was sent: a server that is slow with one name is not a dead one.
 * Useless    A server that answers, but REFUSED or the like while another one knows the answer, is out by UPSTREAM_OUT_BAD such in a row, until a
 *            probe is answered well. */
#pragma once
#include "base/base.h"
#include "slowpath/resolve/exchange.h"

#define UPSTREAM_OUT_POINTS 6u
#define UPSTREAM_OUT_BAD 8u
#define UPSTREAM_PAUSE_FIRST_NS 250000000ull
#define UPSTREAM_PAUSE_MAX_NS 30000000000ull
#define UPSTREAM_LOOK_NS 1000000000ull		     /* between samples of one that is not in use */
#define UPSTREAM_RETRY_CAPABILITY_NS 900000000000ull /* what a server could not do is tried again after 15 minutes */
#define UPSTREAM_SUSPECTS_MAX 3u		     /* in a row: it does not keep letter case or cookies */
#define UPSTREAM_SAMPLE 8u

/* Points: */
#define UPSTREAM_LATE 1u   /* unusually late, nothing heard meanwhile */
#define UPSTREAM_SILENT 2u /* given up, nothing heard meanwhile */
#define UPSTREAM_BROKEN 2u /* ICMP, a connection that failed, TLS */

/* clang-format off */
struct upstream {
	/* Immutable. */
	struct exchange_server server;  /* text, auth_name, pin are owned below */
	char text[128];
	char *auth_name;
	uint8_t pin[EXCHANGE_PIN_BYTES];
	uint8_t client_cookie[8];       /* of this server only (RFC 7873 section 4.1) */
	bool is_tls;
	bool is_self;                   /* one of our own addresses: never asked */
	/* Shared. */
	alignas(CACHE_LINE) _Atomic uint32_t srtt_us, rttvar_us;  /* RFC 6298; 0: not known */
	_Atomic uint64_t heard_ns;      /* any reply; CLOCK_MONOTONIC, as all below */
	_Atomic uint64_t out_since_ns;  /* 0: in use */
	_Atomic uint64_t pause_ns, next_probe_ns, next_look_ns;
	_Atomic uint32_t points, bad, suspects, loops;
	_Atomic bool is_out_bad;        /* out for useless replies */
	_Atomic uint64_t no_edns_until_ns, no_case_until_ns, no_cookie_until_ns;
	_Atomic uint8_t knows_edns, keeps_case;   /* seen */
};
/* clang-format on */

/* Per worker and upstream: written by that worker only. */
struct upstream_share {
	alignas(CACHE_LINE) _Atomic uint64_t queries, replies, failures, suspects, truncated;
	unsigned until_sample;
	_Atomic uint8_t server_cookie_bytes;	/* 0: none known */
	uint8_t cookie[REPLY_COOKIE_MAX_BYTES]; /* client, then server cookie */
};

/* The usual time of a reply; 0: not known yet. */
ALWAYS_INLINE uint64_t upstream_usual_ns(const struct upstream *u)
{
	return atomic_load_explicit(&u->srtt_us, memory_order_relaxed) * 1000ull;
}
/* After so long a reply is given up hope of: srtt + 4 * rttvar (RFC 6298); 0: not known yet. */
uint64_t upstream_patience_ns(const struct upstream *u);
ALWAYS_INLINE bool upstream_is_out(const struct upstream *u)
{
	return atomic_load_explicit(&u->out_since_ns, memory_order_relaxed) != 0;
}
/* A reply came. is_good: a useful one. Takes it back into use, unless it is out for useless replies and this is one more. */
void upstream_note_reply(struct upstream *u, struct upstream_share *s, uint64_t rtt_ns, uint64_t now_ns, bool is_good);
/* A query failed: points, if nothing was heard since sent_ns; UINT64_MAX: whatever was heard. */
void upstream_note_failure(struct upstream *u, unsigned points, uint64_t sent_ns, uint64_t now_ns);
/* It had no use for a question that another one could answer. */
void upstream_note_bad(struct upstream *u, uint64_t now_ns);
/* Whether this worker shall ask it only to learn how it is: at most one does, once per pause. */
MUST_USE bool upstream_claim_probe(struct upstream *u, uint64_t now_ns);
/* The same for one that works but is not in use. */
MUST_USE bool upstream_claim_look(struct upstream *u, uint64_t now_ns);

/* Capabilities. */
ALWAYS_INLINE bool upstream_may_(const _Atomic uint64_t *until_ns, uint64_t now_ns)
{
	return atomic_load_explicit(until_ns, memory_order_relaxed) <= now_ns;
}
ALWAYS_INLINE bool upstream_may_edns(const struct upstream *u, uint64_t now_ns)
{
	return upstream_may_(&u->no_edns_until_ns, now_ns);
}
ALWAYS_INLINE bool upstream_may_case(const struct upstream *u, uint64_t now_ns)
{
	return upstream_may_(&u->no_case_until_ns, now_ns);
}
ALWAYS_INLINE bool upstream_may_cookie(const struct upstream *u, uint64_t now_ns)
{
	return upstream_may_(&u->no_cookie_until_ns, now_ns);
}
void upstream_note_no_edns(struct upstream *u, uint64_t now_ns);
/* Only doubtful replies came over UDP. */
void upstream_note_suspect(struct upstream *u, struct upstream_share *s, uint64_t now_ns);
/* Remembers the server's cookie, if there is one with our client cookie before it. */
void upstream_note_cookie(struct upstream *u, struct upstream_share *s, const struct reply_edns *edns);
/* The query came back to us. */
void upstream_note_loop(struct upstream *u, uint64_t now_ns);
