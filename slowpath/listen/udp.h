/* SPDX-License-Identifier: Apache-2.0 */
/* udp.h: one thread that answers over the UDP sockets of one worker. */
#pragma once
#include "base/base.h"
#include "slowpath/listen/listen_thread.h"
#include "table/counters.h"
#include "table/snapshot.h"

struct udp_worker;

struct udp_worker_config {
	const int *fds;	 /* bound UDP sockets, borrowed until udp_worker_stop; the array only during the start */
	size_t fd_count; /* 1 to LISTEN_MAX_SOCKETS */
	const struct snapshot_holder *snapshots;
	struct counter_block *counters;
	struct listen_service service;
	unsigned index; /* of the worker, for the thread's name */
	int cpu;	/* -1: any */
};

/* ERR_ARGUMENT for a descriptor that is no bound UDP socket. */
MUST_USE enum err udp_worker_start(struct udp_worker **out, const struct udp_worker_config *config);
/* Ends the thread within LISTEN_SLEEP_MS, joins it, frees. NULL is fine. */
void udp_worker_stop(struct udp_worker *w);
