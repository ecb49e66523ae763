/* SPDX-License-Identifier: Apache-2.0 */
/* run_heartbeat.h: what the silence of a serving thread means. Pure: time is an argument.
 *
 * A thread of the fastpath that is silent for a moment loses its XSKMAP slot, so that the kernel path serves its queue; any
 * serving thread that is silent for long gets its process killed. A supervisor that was itself delayed knows nothing about
 * the others' silence: everyone may have been asleep with it. It looks again one tick later before it judges. */
#pragma once
#include "table/counters.h"

#define RUN_TICK_XDP_NS 10000000ull	      /* how often we look while AF_XDP threads serve */
#define RUN_TICK_SOCKET_NS 50000000ull	      /* and while there are none */
#define RUN_KILL_XDP_AFTER_NS 250000000ull    /* AF_XDP threads: the fastpath is killed; never before twice xdp.park-after */
#define RUN_KILL_SOCKET_AFTER_NS 500000000ull /* UDP and TCP threads: the slowpath is killed */

enum run_verdict { RUN_ALIVE, RUN_SILENT /* park it */, RUN_HUNG /* kill its process */ };

struct run_pulse {
	uint64_t last_tick_ns;
};

/* Call once a tick; they are meant to come tick_ns apart. False: this one is the first or came more than tick_ns late, so that we
 * were delayed ourselves: judge nobody now. */
bool run_pulse_tick(struct run_pulse *p, uint64_t now_ns, uint64_t tick_ns);
/* role: of the thread's block; other roles than XDP, UDP and TCP and heartbeats of 0 (not serving) are never judged.
 * park_after_ns: silence after which an AF_XDP thread loses its slot (xdp.park-after). */
enum run_verdict run_heartbeat_judge(enum counter_role role, uint64_t heartbeat_ns, uint64_t now_ns, uint64_t park_after_ns);
