/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.h: one thread that answers over the TCP sockets of one worker (RFC 7766, 9210; keepalive RFC 7828).
 *
 * Bounds     Connections, in all and per client (listen/tcp_clients.h); the time a begun message or a response that is not taken
 *            may stand; the bytes of answers that a client has not taken (TCP_OUT_BYTES: reading stops, then the timeout
 *            closes); bytes of all connections' buffers together (TCP_BUFFER_BUDGET). Each has a counter.
 * Order      Answers leave in the order of their queries, all of one read in one write; but those that the resolver has to find leave
 *            when they are there (RFC 7766 section 7). A connection with such queries under way is not idle. */
#pragma once
#include "base/base.h"
#include "slowpath/listen/listen.h"
#include "slowpath/listen/listen_thread.h"
#include "slowpath/listen/tcp_clients.h"

struct tcp_worker;

struct tcp_worker_config {
	const int *fds; /* listening sockets, borrowed until tcp_worker_stop; the array only during the start */
	size_t fd_count;
	const struct snapshot_holder *snapshots;
	struct counter_block *counters;
	struct listen_service service;
	struct tcp_clients *clients; /* of the process; borrowed until tcp_worker_stop */
	struct tcp_limits limits;
	unsigned index; /* of the worker, for the thread's name */
	int cpu;	/* -1: any */
};

/* ERR_ARGUMENT for a descriptor that is no listening TCP socket. */
MUST_USE enum err tcp_worker_start(struct tcp_worker **out, const struct tcp_worker_config *config);
/* Closes all connections, ends and joins the thread, frees. NULL is fine. */
void tcp_worker_stop(struct tcp_worker *w);
