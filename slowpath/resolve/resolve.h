/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h: the resolver: what the cache does not hold is asked of others, stored, and given to those who wait.
 *
 * Workers    Threads with a libuv loop each. A question belongs to the worker of its name's cache shard, so that identical questions
 *            meet there and go upstream once, and each shard has one writer.
 * Intake     From serving threads of the fastpath by rings (table/ring.h, table/miss.h), from threads of this process by
 *            resolve_submit (a lock-free queue per worker). Both copy the query.
 * Answers    A worker makes every response by answer_from_entry() (answer/answer.h), from the entry that it has stored or from one made
 *            for the occasion (a failure, a stale one), and gives it back the way the question came: by ring, or by `reply`.
 * Bounds     limits.max-questions in all, limits.max-questions-per-client for each client prefix, limits.question-time for each question;
 *            what is refused is counted, and dropped (a client that asks again joins the question that is under way).
 * RCU        Workers are readers of the snapshot (table/snapshot.h) while they handle events, offline while they wait. */
#pragma once
#include "answer/answer.h"
#include "config/config.h"
#include "table/cache.h"
#include "table/counters.h"
#include "table/log_ring.h"
#include "table/ring.h"
#include "table/snapshot.h"

#include <jansson.h>

struct resolve; /* all workers */

struct resolve_config {
	const struct config *config; /* borrowed during resolve_start: forward, cache, recursion, limits */
	unsigned workers;
	const int *cpus; /* worker i runs on cpus[i % cpu_count]; NULL: anywhere */
	size_t cpu_count;
	const struct snapshot_holder *snapshots; /* borrowed until resolve_stop, as all below */
	struct cache_writer *cache;
	struct cache_reader *cache_reader;
	unsigned first_marks; /* mark arrays from this one on are the workers' */
	struct counters *counters;
	uint32_t first_block;
	struct log_ring_map *log;
	unsigned first_log;
	const struct ring_set *rings; /* NULL: no fastpath */
	const int *worker_wake;	      /* eventfds, one a worker: somebody has filled a ring or the queue */
	const int *thread_wake;	      /* eventfds, one a thread of the fastpath */
};
MUST_USE enum err resolve_start(struct resolve **out, const struct resolve_config *config);
/* Questions under way are dropped; origins get reply(NULL, 0). NULL is fine. */
void resolve_stop(struct resolve *r);

/* Where a question of this process came from: the first member of what the caller allocates per question. */
struct resolve_origin {
	/* Exactly once, on the worker's thread: the whole response, or NULL: there is none. Frees the origin. */
	void (*reply)(struct resolve_origin *origin, const uint8_t *message, size_t message_bytes);
};
/* Hands a question that answer() called a MISS to its worker; copies the query, takes origin on success. Any thread, no locks.
 * ERR_NOSPACE: a bound is reached (counted; the origin stays the caller's). ERR_NOMEM. */
MUST_USE enum err resolve_submit(struct resolve *r, const struct answer_query *q, uint64_t received_ns,
				 struct resolve_origin *origin);
/* The entry that answer() has just used is about to expire: ask again, nobody waits. Never fails visibly. */
void resolve_refresh(struct resolve *r, const struct answer_query *q);

/* For the control protocol, from the control thread; each waits until all workers that it concerns have done it. Text is for people. */
MUST_USE enum err resolve_flush_name(struct resolve *r, const uint8_t *lower, size_t name_bytes, uint16_t type,
				     uint64_t *removed);
MUST_USE enum err resolve_flush_tree(struct resolve *r, const uint8_t *lower, size_t name_bytes, uint64_t *removed);
void resolve_flush_all(struct resolve *r);
/* New references; NULL without memory. */
json_t *resolve_cache_stats(struct resolve *r);
/* An array of entries as text: what there is of the name (type 0: all types), expired ones too, and an NXDOMAIN above it. */
json_t *resolve_cache_lookup(struct resolve *r, const uint8_t *lower, size_t name_bytes, uint16_t type);
/* Workers, questions under way, how full the rings are. */
json_t *resolve_status(struct resolve *r);
json_t *resolve_upstream_list(struct resolve *r);
/* Asks every upstream of a zone (NULL: all) for its SOA over each transport it has, and waits at most timeout_ms. */
json_t *resolve_upstream_test(struct resolve *r, const uint8_t *zone, size_t zone_bytes, unsigned timeout_ms);
/* The zone set lost or gained a zone: what was resolved across it is old. Before the change is acknowledged. */
void resolve_zones_changed(struct resolve *r);
