/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h: DNS over kernel sockets: threads that take queries from bound sockets and give them to the one answer function.
 *
 * Sockets    The supervisor makes them (listen/bind.h) and hands them over (LINK_LISTEN), so that what waits in their buffers
 *            outlives this process. Family, address and port are asked from the socket itself.
 * Threads    Per worker one for its UDP sockets (listen/udp.c) and one for its TCP sockets (listen/tcp.c). Each is an RCU
 *            reader (table/snapshot.h), offline whenever it sleeps, and stamps its heartbeat at least every 50 ms.
 * Misses     What answer() calls a MISS goes to the resolver (resolve/resolve.h) and is answered from the resolver's thread: by the same
 *            socket over UDP (udp_miss.h), by way of the connection's own thread over TCP (tcp_miss.h).
 * Files      TCP needs one descriptor per connection: the caller sets RLIMIT_NOFILE to listen_descriptors() or more. */
#pragma once
#include "base/base.h"
#include "base/link.h"
#include "table/cache.h"
#include "table/counters.h"
#include "table/log_ring.h"
#include "table/snapshot.h"

#define LISTEN_MAX_WORKERS 120u /* two counter blocks each, and room for the others in COUNTER_MAX_THREADS */
#define LISTEN_MAX_SOCKETS 64u	/* per worker and kind: CONFIG_MAX_ADDRESSES */

/* Bounds of TCP, for the whole process. */
struct tcp_limits {
	unsigned max_connections;    /* in all; when reached, the connection that is idle for longest makes room */
	unsigned max_per_client;     /* per IPv4 address or IPv6 /64; more are closed at once */
	unsigned idle_timeout_ms;    /* since the last complete query; the edns-tcp-keepalive value should say the same */
	unsigned message_timeout_ms; /* a begun message must be complete, and a response be taken, by then; 0: idle_timeout_ms */
	unsigned max_queries_in_flight; /* responses of one connection that are not sent yet; reading stops meanwhile */
};

struct listen_socket {
	int fd; /* borrowed until listen_stop */
	enum link_listen kind;
	unsigned worker; /* index, below LISTEN_MAX_WORKERS */
};

struct listen_config {
	const struct listen_socket *sockets; /* borrowed during listen_start */
	size_t socket_count;
	const struct snapshot_holder *snapshots; /* has a snapshot already; borrowed until listen_stop */
	struct counters *counters;		 /* writable; borrowed until listen_stop */
	uint32_t first_block; /* of those that the threads take: worker 0 UDP, worker 0 TCP, worker 1 UDP, ... */
	const int *cpus;      /* worker i runs on cpus[i % cpu_count]; NULL: wherever the scheduler likes */
	size_t cpu_count;
	struct tcp_limits tcp;
	struct resolve *resolve;    /* what the cache does not know goes there; borrowed until listen_stop; NULL: no recursion */
	struct cache_reader *cache; /* whose mark arrays the threads take; NULL: none */
	struct log_ring_map *log;   /* NULL: nothing is logged */
	unsigned first_marks, first_log; /* of those that the threads take, in the order of the counter blocks */
};

struct listen;

/* Starts all threads. ERR_ARGUMENT for sockets that are no UDP or listening TCP sockets or too many; ERR_NOMEM, ERR_IO.
 * Nothing runs any more on failure. */
MUST_USE enum err listen_start(struct listen **out, const struct listen_config *config);
/* Ends and joins the threads, closes the connections, frees. Answers that were begun are sent. NULL is fine. */
void listen_stop(struct listen *l);
/* How many counter blocks listen_start takes for these sockets. */
uint32_t listen_blocks(const struct listen_socket *sockets, size_t socket_count);
/* File descriptors that the threads may open. */
unsigned listen_descriptors(unsigned workers, const struct tcp_limits *tcp);
