/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h: the AF_XDP socket of one (interface, queue) with a UMEM of its own: making, options, statistics, end.
 *
 * Start      create: memory, UMEM, rings, frames into the fill ring, *then* bind (a driver that finds an empty fill ring may stop
 *            for good), retried while the queue is still held by a socket that is being torn down. insert: the XSKMAP slot.
 * End        destroy unmaps the rings before it closes the descriptor: a mapped ring keeps the queue busy.
 * Sizes      frames = RX ring + TX ring + the card's own ring (zero-copy), rounded up to huge pages: nothing can run short of a
 *            frame while every ring is full. Fill and completion ring hold all frames.
 * Privilege  create: CAP_NET_RAW, and CAP_IPC_LOCK or enough RLIMIT_MEMLOCK. insert: none (kernel 6.0 and newer).
 * Errors     Logged here, each with a hint. */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "xdp/umem.h"

struct xdp_socket_options {
	const char *ifname;
	uint32_t ifindex, queue;
	enum config_xdp_mode mode; /* XDP_MODE_SKB: the program is attached in generic mode */
	uint32_t ring_size;	   /* descriptors in RX and in TX ring; a power of two */
	uint32_t busy_poll_us;	   /* 0: off */
};

struct xdp_socket {
	struct umem umem; /* the serving thread's */
	uint32_t queue, ifindex;
	int fd; /* owned by handle_ */
	bool is_zerocopy, is_busy_poll;
	uint32_t tx_budget; /* descriptors that one system call sends in copy mode */
	size_t area_bytes_;
	bool has_huge_pages;
	struct xsk_umem *umem_handle_;
	struct xsk_socket *handle_;
};

/* Memory is first touched by the calling thread: run it on the CPU (NUMA node) that will serve the queue. */
MUST_USE enum err xdp_socket_create(struct xdp_socket **out, const struct xdp_socket_options *o);
/* The serving thread has ended. NULL is fine. */
void xdp_socket_destroy(struct xdp_socket *take);
/* Points the queue's XSKMAP slot at the socket: packets come from now on. Not logged. */
MUST_USE enum err xdp_socket_insert(const struct xdp_socket *s, int xskmap_fd);
/* XDP_STATISTICS. From any thread. */
MUST_USE enum err xdp_socket_statistics(const struct xdp_socket *s, struct xdp_statistics *out);
