/* SPDX-License-Identifier: Apache-2.0 */
/* fastpath.h: the state of the process skua-fastpath, shared by the files of its control thread.
 *
 *   main.c        start, loop, end          orders.c      what the supervisor's messages mean
 *   zones.c       segments, snapshots       status.c      control verbs
 *   seccomp.c     system calls it may make
 *
 * Threads    One control thread (main) for everything here; one pinned thread per queue (serve.c). */
#pragma once
#include "base/control.h"
#include "base/link.h"
#include "base/syscall_filter.h"
#include "config/config.h"
#include "table/counters.h"
#include "table/policy.h"
#include "table/shared.h"
#include "table/snapshot.h"
#include "xdp/queues.h"

/* Segments that the supervisor gave us, attached; a map names some of them. */
struct zones {
	struct segment *segment[ZONE_SET_MAX_SEGMENTS];
	size_t segment_count;
	struct snapshot_holder holder;
	struct settings settings;
	struct policy *policy;		  /* owned; NULL: nobody may ask for what is not ours */
	const struct cache_reader *cache; /* borrowed; NULL: there is none */
	uint64_t generation;		  /* of the published set; 0: none yet */
	uint32_t zone_count;
};

struct fastpath {
	int link;
	struct config *config;	   /* owned */
	struct counters *counters; /* owned */
	struct zones zones;
	struct shared shared; /* attached by GO */
	struct queues queues;
	int control_listen_fd;		/* owned; -1: none */
	struct control_server *control; /* owned */
	bool is_started;		/* GO was obeyed */
	enum link_exit exit_code;
	uint64_t started_ns;
};

/* orders.c. Returns false when the process must end (exit_code says how). */
MUST_USE bool orders_receive(struct fastpath *f);
/* Tells the supervisor; false if it is gone. */
MUST_USE bool orders_send(struct fastpath *f, enum link_type type, uint64_t generation, uint32_t a, const char *text);

/* zones.c */
void zones_init(struct zones *z);
void zones_fini(struct zones *z);
/* Each takes fd; all log what they refuse and then change nothing. is_verified: LINK_VERIFIED of base/link.h. */
MUST_USE enum err zones_settings(struct zones *z, int fd);
/* From here on names that are not ours are looked for there; what came before GO is published anew. */
MUST_USE enum err zones_cache(struct zones *z, const struct cache_reader *cache);
/* The policy before stays if this one fails. */
MUST_USE enum err zones_policy(struct zones *z, int fd);
MUST_USE enum err zones_segment(struct zones *z, uint32_t id, int fd, bool is_verified);
void zones_segment_drop(struct zones *z, uint32_t id);
/* Publishes; returns when every serving thread has left the older set. */
MUST_USE enum err zones_map(struct zones *z, uint64_t generation, int fd, bool is_verified);
/* The empty set, so that threads have one to start with. */
MUST_USE enum err zones_start_empty(struct zones *z);

/* status.c: ends with a NULL name; user is the struct fastpath. */
extern const struct control_verb status_verbs[];

/* seccomp.c: for syscall_filter_enter, once the threads run. */
extern const struct syscall_list fastpath_syscalls;
