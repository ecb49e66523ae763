/* SPDX-License-Identifier: Apache-2.0 */
/* run.h: `skua run`: the supervisor's whole state. One thread, one poll loop, nothing in it waits; what would wait (a SIGHUP's reload,
 * the release of an ended process) is given to short-lived threads of ordinary priority.
 *
 *   run.c           start, loop, end                       run_part.c       one process: spawn, link queue, stop, reap
 *   run_setup.c     folders, lock, sockets, memory         run_publish.c    segments and map as they are handed on
 *   run_shared.c    cache, rings, policy, log rings
 *   run_orders.c    what link messages mean, hand-over     run_xdp.c        steering programs
 *   run_watch.c     heartbeats                             run_control.c    the control verb `status`
 *   run_memory.c    what the configuration left behind */
#pragma once
#include "base/base.h"
#include "base/control.h"
#include "config/config.h"
#include "slowpath/listen/bind.h"
#include "tools/skua/run_heartbeat.h"
#include "tools/skua/run_part.h"
#include "tools/skua/run_publish.h"
#include "tools/skua/run_shared.h"
#include "tools/skua/run_xdp.h"
#include "tools/skua/verb.h"

#define RUN_START_FASTPATH_NS 60000000000ull   /* from start to READY at most; then it is killed as hung */
#define RUN_START_SLOWPATH_NS 1800000000000ull /* it may have to load every zone first */

struct run {
	struct config *config;		   /* without zones */
	char config_path[LINK_TEXT_BYTES]; /* absolute */
	int config_fd, small_config_fd;	   /* sealed text; small: without zones, for the fastpath */
	int settings_fd, lock_fd;
	int signal_fd, timer_fd;
	uint64_t tick_ns, started_ns;
	uint64_t patience_until_ns; /* the one before us was killed: what it holds may need until then to vanish */
	struct run_pulse pulse;
	struct run_part part[LINK_PART_COUNT_];
	struct run_publish publish;
	struct run_shared shared;
	struct run_xdp xdp;
	struct bind_set sockets;
	int control_fd;
	struct control_server *control;
	bool is_stopping, was_announced; /* announced: systemd was told READY */
	int exit_code;
	uint64_t watchdog_ns, watchdog_due_ns;	 /* 0: none wanted */
	_Atomic bool is_reloading, reload_again; /* main thread and reload thread */
};

/* run_setup.c: everything that is there before the first part starts. Logs what fails; VERB_OK or the exit code. */
MUST_USE int run_setup(struct run *r, const struct verb_call *call);
void run_setup_undo(struct run *r);

/* run_orders.c: */
/* Starts a part and gives it everything that it needs to serve at once. */
void run_orders_start(struct run *r, struct run_part *p, uint64_t now_ns);
/* The part's link is readable. */
void run_orders_receive(struct run *r, struct run_part *p, uint64_t now_ns);
/* The part's process has ended. */
void run_orders_ended(struct run *r, struct run_part *p, uint64_t now_ns);
/* Begins the end of everything; exit_code is run's own then. */
void run_orders_stop(struct run *r, int exit_code, uint64_t now_ns);

/* run_watch.c: judges every serving thread. */
void run_watch(struct run *r, uint64_t now_ns);

/* run_control.c: makes the server of run.sock. */
MUST_USE enum err run_control_create(struct run *r);
json_t *run_control_status(const struct run *r);

/* run.c: the verb. */
int run_verb(const struct verb_call *call);
