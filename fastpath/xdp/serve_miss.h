/* SPDX-License-Identifier: Apache-2.0 */
/* serve_miss.h: a serving thread's questions to the resolver and the way of their answers back to the card.
 *
 *   answer() says MISS --serve_miss_ask--> ring of the name's worker ... ring of answers --serve_miss_collect--> a spare frame --> TX ring
 *
 * Pending    Where a query came from (its headers: MACs, VLAN, addresses, ports) stays in a table of this thread; the ring carries a
 *            ticket, slot and generation. An answer whose ticket is unknown, old or of a process before is dropped and counted.
 *            Entries end after SERVE_MISS_LIFE_NS in the order in which they began.
 * Bounds     SERVE_MISS_PENDING queries, miss_quota per client prefix, the rings: what is beyond is dropped and counted. A client
 *            that asks again gets a ticket of its own; the worker joins the two.
 * Refreshes  A small filter of recent ones, so that a popular entry is asked for once and not once per query.
 * Sharing    Everything is the thread's own but the rings. */
#pragma once
#include "answer/answer.h"
#include "base/base.h"
#include "table/miss.h"
#include "table/miss_quota.h"
#include "table/ring.h"
#include "xdp/frame.h"
#include "xdp/umem.h"

#define SERVE_MISS_PENDING 8192u
#define SERVE_MISS_LIFE_NS 12000000000ull /* longer than limits.question-time may be */
#define SERVE_MISS_REFRESHES 1024u
#define SERVE_MISS_REFRESH_NS 5000000000ull /* an entry is not asked for again so soon */
#define SERVE_MISS_HEADERS_MAX (FRAME_ETH_BYTES + FRAME_VLAN_BYTES + FRAME_IPV6_BYTES + FRAME_UDP_BYTES)

struct serve_pending {
	uint64_t ticket; /* 0: free */
	uint64_t began_ns;
	uint16_t newer,
		older; /* slots under way, in the order in which they began: a ring through SERVE_MISS_PENDING, which is its head.
				* Free ones: newer leads to the next free one */
	struct miss_quota_ticket quota;
	struct frame frame;
	uint8_t headers[SERVE_MISS_HEADERS_MAX];
};

struct serve_miss {
	unsigned workers;
	struct ring_producer *questions; /* one per worker */
	struct ring_consumer *answers;
	const int *worker_wake; /* eventfds; borrowed */
	int wake;		/* this thread's; borrowed */
	struct counter_block *counters;
	const struct cache_reader *cache;
	struct serve_pending *pending; /* SERVE_MISS_PENDING and the list's head */
	uint16_t free_;		       /* first free slot; SERVE_MISS_PENDING: none */
	uint64_t generation_;	       /* of tickets: starts somewhere else in every process */
	struct miss_quota quota_;
	struct {
		uint64_t hash, until_ns;
	} refresh_[SERVE_MISS_REFRESHES];
	uint64_t asked_; /* workers of this batch that want a kick: bit worker % 64 */
	uint32_t buffer_[(sizeof(struct miss_answer) + MISS_RESPONSE_MAX_BYTES) / 4];
};

struct serve_miss_options {
	const struct ring_set *rings; /* borrowed until serve_miss_destroy, as all */
	unsigned thread;	      /* which of the set's */
	const int *worker_wake;
	int wake;
	struct counter_block *counters;
	const struct cache_reader *cache;
	unsigned per_client; /* limits.max-questions-per-client */
	uint64_t seed;	     /* random */
};
/* What a process before has left in the ring of answers is thrown away. ERR_NOMEM, ERR_CORRUPT, ERR_ARGUMENT. */
MUST_USE enum err serve_miss_create(struct serve_miss **out, const struct serve_miss_options *o);
void serve_miss_destroy(struct serve_miss *m);

/* q was a MISS; data is its frame from the Ethernet header on. Counts what becomes of it; the frame stays the caller's. */
HOT void serve_miss_ask(struct serve_miss *m, const struct answer_query *q, const struct frame *f, const uint8_t *data,
			uint64_t now_ns);
/* q was SEND_AND_REFRESH; called before or after the response was written. */
HOT void serve_miss_refresh(struct serve_miss *m, const struct answer_query *q, uint64_t now_ns);
/* Takes at most `most` answers, puts them into frames of u, and appends those to out[0..]. Returns how many. Also ends what is too old. */
MUST_USE HOT uint32_t serve_miss_collect(struct serve_miss *m, struct umem *u, struct umem_packet *out, uint32_t most,
					 uint32_t mtu_bytes, uint64_t now_ns);
/* After a batch: wakes the workers that sleep. One system call for each of them at most. */
void serve_miss_kick(struct serve_miss *m);
/* Before sleeping: false: answers are there already. Then poll m->wake too. */
MUST_USE bool serve_miss_prepare_sleep(struct serve_miss *m);
/* After sleeping; is_woken: m->wake is readable. */
void serve_miss_awake(struct serve_miss *m, bool is_woken);
