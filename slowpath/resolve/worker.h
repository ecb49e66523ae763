/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h: what the files of the resolver's core share: resolve.c (front), worker.c (thread, loop, ways in and out), question.c (a question
 * under way), join.c (chains across zones).
 *
 * Turns      Callbacks of the loop begin with worker_enter: online as an RCU reader, with a snapshot and the time. What they send is collected
 *            and leaves when the loop is about to sleep: one sendmmsg, one kick per thread of the fastpath, then offline.
 * Ownership  A waiter belongs to the inbox, then to its question, then to worker_send, which ends it. A question belongs to its worker's
 *            table from question_find_or_begin on until question_end. */
#pragma once
#include "base/inbox.h"
#include "slowpath/listen/listen_thread.h"
#include "slowpath/resolve/entry_build.h"
#include "slowpath/resolve/forward.h"
#include "slowpath/resolve/resolve.h"
#include "slowpath/resolve/timer_wheel.h"
#include "table/miss.h"
#include "table/miss_quota.h"

#include <semaphore.h>

#define RESOLVE_QUERY_MAX_BYTES DNS_MESSAGE_MAX_BYTES
#define RESOLVE_RING_BATCH 64u	       /* questions taken from one ring before the next has its turn */
#define RESOLVE_REFRESH_PLACES 4096u   /* entries that were asked for again lately */
#define RESOLVE_REFRESH_PAUSE_SHIFT 3u /* the same entry again after 2^3 s at the earliest */
#define RESOLVE_WORKERS_MAX RING_SET_MAX_WORKERS

/* Of the configuration, in our units. */
struct resolve_settings {
	struct entry_limits limits;
	uint64_t question_time_ns, stale_wait_ns;
	uint32_t stale_ttl_s, stale_for_s;	   /* stale_for_s 0: nothing is served stale */
	uint32_t max_questions;			   /* of one worker */
	uint32_t max_per_client, max_per_upstream; /* of one worker */
};

struct resolve {
	struct resolve_settings set;
	struct forward_table *forward;
	const struct snapshot_holder *snapshots;
	struct cache_writer *cache;
	struct cache_reader *reader;
	unsigned worker_count;
	const struct ring_set *rings; /* NULL: none */
	struct worker *worker[RESOLVE_WORKERS_MAX];
	_Atomic uint32_t refreshed[RESOLVE_REFRESH_PLACES]; /* what was asked for again, and when */
};

/* --- what lies in an inbox ------------------------------------------------------------------------------------------ */

enum message_kind { MESSAGE_QUESTION, MESSAGE_REFRESH, MESSAGE_PART, MESSAGE_ORDER };
struct message {
	struct inbox_node node; /* first */
	enum message_kind kind;
};

/* Somebody who waits for a response, with the query as it came. */
struct waiter {
	struct message message; /* first; node.next: the next waiter of the question */
	struct answer_client client;
	uint64_t received_ns;
	struct resolve_origin *origin; /* owned; NULL: a thread of the fastpath, by ring */
	uint64_t ticket;
	uint16_t thread;
	bool has_quota;
	bool is_internal; /* a part of another question: that one's clients are counted already */
	struct miss_quota_ticket quota;
	uint32_t capacity_bytes;
	uint32_t query_bytes;
	uint8_t query[];
};

/* Nobody waits: an entry is to be renewed. */
struct refresh {
	struct message message; /* first */
	uint64_t hash;
	uint16_t type, group; /* group: of the client whose query hit the entry */
	bool is_cd;
	uint8_t name_bytes;
	uint8_t name[];
};

/* From the control thread, which waits at `done`. */
struct order {
	struct message message; /* first */
	const uint8_t *name;	/* borrowed until done */
	size_t name_bytes;
	uint16_t type;	  /* 0: all */
	bool is_tree;	  /* everything at or below the name */
	bool is_flush;	  /* out of the cache too; else only questions under way are concerned */
	uint64_t removed; /* out */
	sem_t *done;	  /* NULL: nobody waits, the order is freed; name must then be static */
};

/* --- a question under way --------------------------------------------------------------------------------------------- */

struct join; /* join.c */

struct question {
	struct question *next; /* of its bucket */
	struct question *previous_all, *next_all;
	struct worker *worker;
	struct waiter *first_waiter, *last_waiter;
	struct forward_ask *ask; /* owned while it runs */
	struct join *join;	 /* owned; NULL: not put together */
	struct timer_entry stale_timer;
	uint64_t deadline_ns;
	uint64_t hash; /* cache_hash of the name */
	uint32_t epoch;
	uint16_t type, partition;
	bool is_cd;
	bool is_stale_due; /* the client timer of RFC 8767 has fired: stale data may be given */
	bool is_ours;	   /* the name is in a zone of ours: nothing of it is stored */
	bool is_plain;	   /* a part of another answer: what the upstream says, its chain is not followed further */
	uint8_t backoff;   /* failures in a row before this question */
	uint8_t name_bytes;
	uint8_t name[NAME_MAX_BYTES]; /* lower-cased */
};

struct worker {
	struct listen_thread thread; /* first */
	struct resolve *resolve;
	unsigned index;
	uv_loop_t loop;
	uv_poll_t wake;
	uv_timer_t tick;
	uv_prepare_t before_sleep;
	uv_idle_t busy; /* started while rings are not empty: the loop does not sleep */
	bool has_loop, is_running, is_stopping, is_online, is_busy;
	int cpu;
	int wake_fd;
	struct exchanger *exchanger;
	struct forwarder *forwarder;
	struct timer_wheel timers;
	struct inbox inbox;
	_Atomic uint32_t inbox_count;	/* questions in the inbox */
	_Atomic uint32_t inbox_refused; /* since the last tick */

	/* The fastpath's threads. */
	unsigned ring_count;
	struct ring_consumer *questions; /* owned, as the next two */
	struct ring_producer *answers;
	bool *is_answered; /* since the last kick */
	const int *thread_wake;

	/* Of the turn. */
	const struct snapshot *snapshot;
	uint64_t now_ns;
	struct answer_thread answer, look; /* look: counts in a block of its own: its queries were counted where they came in */
	struct counter_block *look_counters;
	struct log_writer log;

	struct question **bucket; /* owned */
	uint32_t bucket_mask, question_count;
	_Atomic uint32_t question_gauge;		 /* question_count as of the last tick, for status */
	struct question *first_question, *last_question; /* all, oldest first */
	struct miss_quota quota;
	uint64_t *answer_scratch, *scratch; /* owned: for answer(); for us */
	uint64_t *entry;		    /* owned: ENTRY_BUILD_MAX_BYTES */
	const struct question *built;	    /* whose reply entry holds, with result and report */
	enum entry_result built_result;
	struct entry_report report;
	uint8_t message[DNS_MESSAGE_MAX_BYTES];
};

/* --- worker.c --------------------------------------------------------------------------------------------------------- */

struct worker_config {
	struct resolve *resolve;
	unsigned index;
	int cpu, wake_fd;
	const int *thread_wake;
	const struct ring_set *rings; /* NULL: none */
	struct counter_block *counters;
	uint8_t *marks;
	struct log_ring_map *log; /* NULL: nothing is logged */
	unsigned log_index;
};
/* Everything but the thread. */
MUST_USE enum err worker_create(struct worker **out, const struct worker_config *config);
/* Starts the thread, once all workers were created. */
MUST_USE enum err worker_run(struct worker *w);
/* Ends and joins the thread, if it runs; whoever waits gets nothing. Others may still tell it something. NULL is fine, as below. */
void worker_stop(struct worker *w);
/* After it has stopped: ends what lies in its inbox; that may tell other workers something. */
void worker_drain(struct worker *w);
/* After all have stopped and were drained. */
void worker_destroy(struct worker *w);
/* Any thread: gives a message to the worker and wakes it. */
void worker_tell(struct worker *w, struct message *give);
/* Begins a turn, in any callback of the loop. */
void worker_enter(struct worker *w);
/* Ends the waiter with a response, or without one (NULL). */
void worker_send(struct worker *w, struct waiter *take, const uint8_t *message, uint32_t bytes);
/* A waiter for this query. received_ns and ticket are the caller's to fill. NULL without memory. */
struct waiter *waiter_create(const struct answer_client *client, const uint8_t *query, uint32_t query_bytes,
			     uint32_t capacity_bytes);

/* --- question.c ------------------------------------------------------------------------------------------------------- */

/* Takes a query: answers it from zones or cache if that is possible by now, joins it to a question under way, or begins one. */
void question_take(struct worker *w, struct waiter *take);
/* The entry of this key is asked for again, unless it was renewed meanwhile. */
void question_refresh(struct worker *w, const struct cache_key *key);
/* Everything that a flush of this name and type (0: all), or of all below the name, concerns is asked again. */
void question_restart_matching(struct worker *w, const uint8_t *lower, uint16_t type, bool is_tree);
/* Everything ends without answers. */
void question_drop_all(struct worker *w);
/* For join.c: the question is answered by this entry, which is not stored. is_aa: its chain begins in a zone of ours. */
void question_complete(struct question *q, const struct cache_entry *entry, bool is_aa);
void question_fail(struct question *q, int16_t ede);
/* Whether the epoch has advanced since the question began. */
bool question_is_outdated(const struct question *q);
/* Its waiters are taken again from the start, and the question is gone. */
void question_restart(struct question *q);
struct entry_question question_key(const struct question *q);
/* What entry_build needs to know of our zones; user: the snapshot. */
bool question_name_is_ours(void *user, const uint8_t *lower, size_t name_bytes);

/* --- join.c ------------------------------------------------------------------------------------------------------------ */

/* Puts the answer together: begins with `first` (an entry of the question's own name whose chain goes on elsewhere), or, if that is NULL,
 * with the zone of ours that the name is in. Ends in question_complete or question_fail, perhaps at once. */
void join_begin(struct question *q, const struct cache_entry *first);
/* A part has come: MESSAGE_PART. Takes it; of a question that is gone it is dropped. */
void join_part(struct worker *w, struct message *take);
/* Its question goes away. */
void join_cancel(struct join *j);
