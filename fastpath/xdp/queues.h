/* SPDX-License-Identifier: Apache-2.0 */
/* queues.h: all queues of all interfaces: sockets, threads, XSKMAP slots, health. Control thread only.
 *
 *   queues_add      an interface and its XSKMAP                          (with privileges)
 *   queues_bind     a socket for every queue, one after another          (with privileges)
 *   queues_start    the serving threads                                  (privileges dropped)
 *   queues_insert   the XSKMAP slots: packets come from now on
 *   queues_check    once a second: XDP_STATISTICS, MTU, link state, slots, missing frames
 *   queues_stop     slots out, threads joined, sockets closed */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "table/counters.h"
#include "table/shared.h"
#include "table/snapshot.h"
#include "xdp/serve.h"

#define QUEUES_MAX COUNTER_MAX_THREADS
#define QUEUES_FRESH_NS 10000000u /* a heartbeat younger than this beats */

struct queue_interface {
	char name[16];
	uint32_t ifindex;
	enum config_xdp_mode mode;
	int xskmap_fd; /* owned */
	bool is_running;
	uint64_t running_since_ns; /* when it last came up while we watched; 0: it always was */
};

struct queue {
	struct queue_interface *interface;
	uint32_t index;
	int cpu;
	struct xdp_socket *socket;	/* owned; NULL: none, the kernel path serves it */
	struct serve *serve;		/* owned */
	struct counter_block *counters; /* in shared memory */
	bool is_inserted, is_parked;
	uint32_t seen_completed; /* for missing frames: completion ring's producer, and since when it stands still */
	uint64_t seen_ns;
};

struct queues {
	struct queue_interface interface[CONFIG_MAX_INTERFACES];
	size_t interface_count;
	struct queue queue[QUEUES_MAX];
	size_t count;
	int device_fd;
	bool is_inserting; /* there is something to serve: slots are wanted */
};

void queues_init(struct queues *q);
/* Takes xskmap_fd. */
MUST_USE enum err queues_add(struct queues *q, const char *ifname, uint32_t ifindex, enum config_xdp_mode mode, int xskmap_fd);
/* Makes what sockets can be made. ERR_OK if there is at least one, or no interface; else the reason of the last failure. */
MUST_USE enum err queues_bind(struct queues *q, const struct config *config, struct counters *counters);
/* shared: attached; borrowed until queues_stop. */
MUST_USE enum err queues_start(struct queues *q, const struct config *config, const struct snapshot_holder *snapshots,
			       struct shared *shared);
void queues_insert(struct queues *q);
/* LINK_PARKED came for this queue: its slot was cleared. */
void queues_parked(struct queues *q, uint32_t ifindex, uint32_t queue);
/* Puts parked queues back whose threads beat again. Returns whether some are still parked. */
bool queues_unpark(struct queues *q, uint64_t now_ns);
/* False: a socket must be bound anew, *why says which and why. */
MUST_USE bool queues_check(struct queues *q, uint64_t now_ns, char *why, size_t why_bytes);
void queues_stop(struct queues *q);
