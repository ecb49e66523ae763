/* SPDX-License-Identifier: Apache-2.0 */
/* run_part.h: one supervised process: started with a link at descriptor 3, spoken to through a queue that never blocks us,
 * ended in steps, counted. What the messages mean is decided in run.c.
 *
 * Thread   Everything here belongs to the supervisor's main thread; `skua status` reads under run's lock. */
#pragma once
#include "base/base.h"
#include "base/link.h"
#include "table/counters.h"
#include "tools/skua/run_backoff.h"

#include <limits.h>
#include <sys/types.h>

#define RUN_PART_QUEUE_MAX 16384u	 /* messages that wait for a part to read them; more: it is hung */
#define RUN_PART_STOP_NS 3000000000ull	 /* after STOP: SIGTERM follows */
#define RUN_PART_TERM_NS 1000000000ull	 /* after SIGTERM: SIGKILL follows */
#define RUN_PART_ORPHAN_NS 2000000000ull /* a part that closed its link must have ended by then */

enum run_part_state {
	RUN_PART_OFF,	   /* not wanted */
	RUN_PART_WAITING,  /* for its back-off */
	RUN_PART_STARTING, /* runs, has not said READY */
	RUN_PART_SERVING,
	RUN_PART_STOPPING, /* was told to end */
	RUN_PART_KILLED,   /* SIGKILL was sent, the kernel is not done yet */
	RUN_PART_FAILED,   /* will not be started again */
};

struct run_part_queued;
struct run_part {
	enum link_part id;
	const char *name; /* "fastpath" */
	char program[PATH_MAX];
	struct run_part_stamp {
		uint64_t device, inode, bytes, modified_ns, changed_ns;
	} program_stamp_; /* of the file, when it was last looked at */
	enum run_part_state state;
	pid_t pid;	  /* 0: does not run */
	int pid_fd, link; /* -1: does not run */
	int control_fd;	  /* listening socket, kept over restarts; -1: none */
	int counters_fd;
	struct counters *counters; /* read-only mapping */
	struct run_backoff backoff;
	uint64_t started_ns, ready_ns; /* of this process; ready_ns 0: not yet */
	uint64_t due_ns;	       /* WAITING: when to start; STOPPING: when to use the next means */
	bool was_terminated;	       /* STOPPING: SIGTERM was sent already */
	uint64_t orphaned_ns;	       /* since when the link has been closed while it runs; 0: it is open */
	bool is_hung;		       /* KILLED since its heartbeat stopped */
	uint32_t restarts, hangs;
	uint64_t live_generation;
	char last_exit[LINK_TEXT_BYTES + 64];	    /* how the process before this one ended; empty: there was none */
	char failure[LINK_TEXT_BYTES];		    /* what it said before it ended */
	uint64_t past[COUNTER_OTHER + 1][C_COUNT_]; /* totals of ended processes, by role */
	uint8_t parked[COUNTER_MAX_THREADS];	    /* fastpath: that block's slot was cleared and it has not been heard since */
	unsigned watched, until_full_look;	    /* the blocks that serve are below `watched`; ticks until all are looked at */
	struct run_part_queued *first_, *last_;
	uint32_t queued;
};

void run_part_init(struct run_part *p, enum link_part id, const char *name);
/* Closes everything; the process must have ended. */
void run_part_fini(struct run_part *p);
bool run_part_is_running(const struct run_part *p);
const char *run_part_state_text(enum run_part_state state);

/* Whether the program's file is another one than at the last call; true at the first. */
bool run_part_is_other_program(struct run_part *p);
/* Forks and executes the program. ERR_BUSY when it runs already; ERR_NOTFOUND when the program can't be executed; ERR_IO. */
MUST_USE enum err run_part_spawn(struct run_part *p, uint64_t now_ns);
/* Queues a message with a duplicate of fd (or -1), and sends what can be sent now. A part whose queue is full is killed as hung. */
void run_part_send(struct run_part *p, const struct link_msg *message, int fd);
/* Sends what waits; call when the link is writable. */
void run_part_flush(struct run_part *p);
bool run_part_has_queued(const struct run_part *p);
/* Begins the end: STOP, then SIGTERM, then SIGKILL, each after its time (run_part_tick). */
void run_part_stop(struct run_part *p, uint64_t now_ns);
void run_part_kill(struct run_part *p, bool is_hung);
/* The link is of no more use: closes it; the process is expected to end. */
void run_part_unlink(struct run_part *p, uint64_t now_ns);
/* Time goes on: continues a stop, ends a part that stays on without a link. */
void run_part_tick(struct run_part *p, uint64_t now_ns);

enum run_part_end {
	RUN_PART_END_RESTART, /* start again after *wait_ns */
	RUN_PART_END_CONFIG,  /* never again: it can't work with this configuration */
	RUN_PART_END_STOPPED, /* as it was told */
};
/* The process has ended (its pid_fd is readable): reaps it, keeps its totals, says what to do. */
enum run_part_end run_part_reap(struct run_part *p, uint64_t now_ns, uint64_t *wait_ns);

/* Whether the counter blocks are those of the process that runs: until it has zeroed them they are the last one's. */
bool run_part_has_counted(const struct run_part *p);
/* Totals over all processes of this part since the supervisor started. */
uint64_t run_part_total(const struct run_part *p, enum counter_role role, enum counter which);
