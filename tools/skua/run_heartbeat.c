/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_heartbeat.h"

bool run_pulse_tick(struct run_pulse *p, uint64_t now_ns, uint64_t tick_ns)
{
	uint64_t last_ns = p->last_tick_ns;

	p->last_tick_ns = now_ns;
	return last_ns && now_ns >= last_ns && now_ns - last_ns <= 2 * tick_ns;
}

enum run_verdict run_heartbeat_judge(enum counter_role role, uint64_t heartbeat_ns, uint64_t now_ns, uint64_t park_after_ns)
{
	uint64_t silent_ns = now_ns > heartbeat_ns ? now_ns - heartbeat_ns : 0;

	if (!heartbeat_ns)
		return RUN_ALIVE;
	switch (role) {
	case COUNTER_XDP:
		if (silent_ns >= MAX(RUN_KILL_XDP_AFTER_NS, 2 * park_after_ns))
			return RUN_HUNG;
		return silent_ns >= park_after_ns ? RUN_SILENT : RUN_ALIVE;
	case COUNTER_UDP:
	case COUNTER_RESOLVE:
	case COUNTER_TCP: return silent_ns >= RUN_KILL_SOCKET_AFTER_NS ? RUN_HUNG : RUN_ALIVE;
	case COUNTER_UNUSED:
	case COUNTER_OTHER: break;
	}
	return RUN_ALIVE;
}
