/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h: the one function that turns a query into a response, for every transport.
 *
 * Contract   Pure work over the caller's memory: no I/O, no lock, no allocation, no clock, no global. Time is in the thread context.
 * In place   The response replaces the query in query->msg: the question stays where it is, byte for byte (its letter case
 *            is kept), everything behind it is overwritten. msg must have room for capacity_bytes.
 * Batches    Call answer_prepare for each message of a batch, then answer_prefetch for each, then answer_finish for each:
 *            the cache misses of a batch overlap. answer() does the three for one message.
 * Hot        Budget: 700 instructions for a zone hit (bench/micro counts them). */
#pragma once
#include "base/base.h"
#include "dns/name.h"
#include "table/cache_entry.h"
#include "table/counters.h"
#include "table/log_ring.h"
#include "table/snapshot.h"

enum answer_verdict {
	ANSWER_SEND,		 /* response_bytes of msg are the response */
	ANSWER_SEND_AND_REFRESH, /* the same, and the resolver should refresh the entry (with the cache) */
	ANSWER_MISS,		 /* the resolver must answer: question, hash, flags are in the query (with the cache) */
	ANSWER_DROP,		 /* say nothing; counted */
};
enum answer_transport { TRANSPORT_UDP, TRANSPORT_TCP };

/* Where it came from: for cookies, access and limits. IPv4 is stored in the first 4 octets, the rest zero. */
struct answer_client {
	uint8_t address[16];
	uint16_t port;
	uint8_t family; /* 4 or 6 */
	uint8_t transport;
};

struct answer_query {
	/* in */
	uint8_t *msg;
	uint32_t query_bytes;
	uint32_t capacity_bytes; /* room in msg; a response never exceeds it; at least 512 */
	struct answer_client client;
	/* out */
	uint32_t response_bytes;
	uint16_t rcode; /* extended, for counters and the log */
	/* answer_prepare's results, for answer_finish and for MISS. What has a value at first stands together: few stores. */
	int16_t ede;	      /* enum ede_code */
	uint16_t tsig_offset; /* of a TSIG record in the query; 0: none */
	uint8_t cookie_state; /* enum cookie_state (answer/cookie.h) */
	uint8_t edns_options; /* ANSWER_OPT_ asked for */
	bool has_edns, is_do;
	uint8_t state_;
	uint8_t label_count;   /* of the question's name */
	uint8_t name_bytes;    /* of the question's name */
	uint8_t zone_label;    /* index of the apex's first label in the question's name */
	uint16_t question_end; /* offset behind the question */
	uint16_t flags;	       /* header word of the query */
	uint16_t qtype, qclass;
	uint16_t edns_payload_bytes;
	uint64_t name_hash;
	const struct zone_view *zone;
	const struct zone_node *hint_;	    /* what answer_prefetch found for the name */
	uint8_t cookie[24];		    /* client cookie, then the server cookie that goes into the response */
	uint64_t cache_hash;		    /* of the name, if the cache was asked */
	uint16_t group;			    /* of the client in the policy image */
	bool may_recurse;		    /* the client's group may, so that RA is set */
	uint8_t path;			    /* enum log_path */
	uint8_t lower[NAME_MAX_BYTES + 33]; /* lower-cased name; padded so that wide loads may read on */
	uint8_t label_offset[NAME_MAX_LABELS + 1];
};
enum { ANSWER_OPT_NSID = 1, ANSWER_OPT_KEEPALIVE = 2 };

/* One per serving thread; the caller updates the clock before each batch. */
struct answer_thread {
	struct counter_block *counters;
	int64_t wall_s;
	uint64_t wall_ns;	/* for the log */
	uint32_t latency_us;	/* for the log: since the query came; 0 where it is answered at once */
	uint32_t now_s;		/* clock_mono_s() */
	uint8_t *marks;		/* the thread's mark array of the cache; may be NULL */
	uint64_t *scratch;	/* CACHE_SCRATCH_WORDS; NULL only where the snapshot has no cache */
	struct log_writer *log; /* may be NULL: nothing is logged */
};

HOT void answer_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
HOT void answer_prefetch(const struct snapshot *s, struct answer_query *q);
MUST_USE HOT enum answer_verdict answer_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
MUST_USE HOT enum answer_verdict answer(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
/* For the resolver: the response to a query that was a MISS, from this entry (checked, for this question or a name above it)
 * instead of the cache. The message is as it was received. Never a MISS; queries are not counted again. */
MUST_USE HOT enum answer_verdict answer_from_entry(const struct snapshot *s, struct answer_thread *t, struct answer_query *q,
						   const struct cache_entry *entry);
