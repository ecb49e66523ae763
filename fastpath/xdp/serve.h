/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h: one pinned thread that serves one AF_XDP queue: receive, answer in place, send, recycle.
 *
 * Split      serve_hot.c holds serve_batch(): no system call, no clock, no lock. serve.c holds the loop around it: clock,
 *            heartbeat,
 *            kicks, sleeping, quiescent states.
 * Memory     Everything is allocated before the thread starts.
 * Sharing    The control thread writes stop_ and mtu_bytes_ and reads the counters; everything else is the thread's. */
#pragma once
#include "answer/answer.h"
#include "base/base.h"
#include "table/counters.h"
#include "table/snapshot.h"
#include "xdp/frame.h"
#include "xdp/serve_miss.h"
#include "xdp/socket.h"

#include <pthread.h>

/* Messages answered together: enough to overlap cache misses, few enough for their state and headers to stay in L1 (frames of
 * 2048 octets fall on the same few cache sets). */
#define SERVE_GROUP 16u
#define SERVE_MIN_CAPACITY_BYTES 512u /* answer.h: a message has at least this room */
#define SERVE_POLL_MS 5		      /* longest sleep: the heartbeat is at most 10 ms old */

struct serve {
	/* set up by the owner before the thread starts */
	struct umem *umem;
	struct xdp_socket *socket;
	struct counter_block *counters;
	const struct snapshot_holder *snapshots;
	int cpu; /* -1: not pinned */
	bool verify_checksums;
	struct serve_miss *miss; /* owned by who set it up; NULL: nobody resolves, misses are dropped */
	/* written by the control thread */
	_Atomic bool stop;
	_Atomic uint32_t mtu_bytes;
	_Atomic uint32_t missing_frames; /* sent ones that never came back */
	/* the thread's */
	uint64_t lost_frames; /* that the rings gave impossible addresses for */
	struct answer_thread answer;
	struct log_writer log; /* answer.log points here, or nowhere */
	uint64_t now_ns, wall_read_ns;
	uint64_t wall_minus_mono_ns;				/* modulo 2^64 */
	struct umem_packet in[UMEM_BATCH], out[2 * UMEM_BATCH]; /* replies to the batch, then answers of the resolver */
	struct frame frame[SERVE_GROUP];
	uint64_t address[SERVE_GROUP];
	struct answer_query query[SERVE_GROUP];
	pthread_t thread;
	bool is_started;
};

/* Takes up to UMEM_BATCH packets, answers them from snap, puts replies into the TX ring, recycles frames. Returns how many
 * packets
 * came. The caller sets s->now_ns and the times in s->answer, and does the kicks. */
MUST_USE HOT uint32_t serve_batch(struct serve *s, const struct snapshot *snap);

/* Starts the thread on s->cpu. s stays the caller's and outlives the thread. */
MUST_USE enum err serve_start(struct serve *s, const char *name);
/* Asks the thread to stop and joins it. */
void serve_stop(struct serve *s);
