/* SPDX-License-Identifier: Apache-2.0 */
/* shared.h: what the supervisor shares with a part for answers that need more than zones: cache, marks, rings, eventfds, log rings. They
 * outlive the part. Received one by one before GO (base/link.h), then attached together.
 *
 * Trust      The other part can write most of it. What fails its checks is left out, and the part serves without it. */
#pragma once
#include "base/base.h"
#include "base/link.h"
#include "table/cache.h"
#include "table/log_ring.h"
#include "table/ring.h"

struct shared {
	/* Descriptors, owned; -1: none came. */
	int cache_fd; /* writable for the slowpath only */
	int marks_fd, rings_fd, log_fd;
	int worker_wake[RING_SET_MAX_WORKERS]; /* eventfds: the first *_wake_count */
	int thread_wake[RING_SET_MAX_THREADS];
	unsigned worker_wake_count, thread_wake_count;
	unsigned first_marks; /* mark arrays from this one on are the part's */
	/* By shared_attach: NULL, or rings.threads 0: there is none, or it failed its checks. */
	struct cache_reader *cache;
	struct ring_set rings;
	struct log_ring_map *log; /* writable */
};

void shared_init(struct shared *s);
/* Detaches and closes everything. */
void shared_fini(struct shared *s);
/* LINK_CACHE, LINK_MARKS, LINK_RINGS, LINK_WAKE, LINK_LOG: takes *fd, which becomes -1. ERR_NOTFOUND: another message. ERR_MALFORMED: it came
 * before, or an eventfd that is not the next one. */
MUST_USE enum err shared_take(struct shared *s, const struct link_msg *m, int *fd);
/* Attaches what came. On failure the rest is attached all the same, and *why says what is missing; the error is the last one's. */
enum err shared_attach(struct shared *s, const char **why);
