/* SPDX-License-Identifier: Apache-2.0 */
/* listen_thread.h: what the UDP and the TCP threads have in common: an RCU reader with a heartbeat that can be stopped. */
#pragma once
#include "answer/answer.h"
#include "base/base.h"
#include "base/clock.h"
#include "table/counters.h"
#include "table/snapshot.h"
#include <pthread.h>

#define LISTEN_SLEEP_MS 40 /* the longest sleep: the heartbeat is due every 50 ms */

struct resolve;

/* What a serving thread answers from and writes to besides its snapshot and its counters. Zero: zones only, nothing is logged. */
struct listen_service {
	struct resolve *resolve;  /* what a MISS goes to; NULL: it is dropped */
	uint8_t *marks;		  /* of the cache; may be NULL */
	struct log_ring_map *log; /* NULL: nothing is logged */
	unsigned log_index;	  /* of the thread's ring */
};

/* The first member of a worker. */
struct listen_thread {
	pthread_t id_;
	_Atomic bool stop_;
	const struct snapshot_holder *snapshots;
	struct counter_block *counters;
	enum counter_role role_;
	int cpu_;
	void (*run_)(struct listen_thread *);
	struct answer_thread answer; /* for answer(), as of the last listen_thread_clock */
	struct resolve *resolve;
	struct log_writer log_;
};

/* Before the start: the answer context. ERR_NOMEM. listen_thread_fini in any case. */
MUST_USE enum err listen_thread_init(struct listen_thread *t, const struct listen_service *service,
				     struct counter_block *counters);
void listen_thread_fini(struct listen_thread *t);

/* Starts run in a thread that is a registered, online RCU reader. Signals are blocked in it. name: at most 15 octets. */
MUST_USE enum err listen_thread_start(struct listen_thread *t, const char *name, int cpu, enum counter_role role,
				      struct counter_block *counters, const struct snapshot_holder *snapshots,
				      void (*run)(struct listen_thread *));
/* Sets the flag and joins. The block becomes unused; its totals stay. */
void listen_thread_stop(struct listen_thread *t);

ALWAYS_INLINE bool listen_thread_stops(struct listen_thread *t) { return atomic_load_explicit(&t->stop_, memory_order_relaxed); }

/* Before each batch. The coarse clocks are at most one tick (4 ms) late and cost a fifth of the others: once per batch, that counts. */
ALWAYS_INLINE void listen_thread_clock(struct listen_thread *t)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	t->answer.wall_s = ts.tv_sec;
	t->answer.wall_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	t->answer.now_s = clock_mono_s();
}
ALWAYS_INLINE void listen_thread_beat(struct listen_thread *t)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	uint64_t now_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	atomic_store_explicit(&t->counters->heartbeat_ns, now_ns, memory_order_relaxed);
}
/* The snapshot for this batch; valid until the next quiescent state. */
ALWAYS_INLINE const struct snapshot *listen_thread_snapshot(struct listen_thread *t)
{
	const struct snapshot *s = snapshot_acquire(t->snapshots);
	atomic_store_explicit(&t->counters->generation, s->generation, memory_order_relaxed);
	return s;
}
