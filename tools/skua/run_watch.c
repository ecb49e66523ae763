/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "tools/skua/run.h"

#define FULL_LOOK_TICKS 10 /* a thread that starts to serve later than its process is watched at most that late */

static void hung(struct run *r, struct run_part *p, const char *what, uint64_t silent_ns)
{
	if (p->id == LINK_PART_FASTPATH)
		run_xdp_clear_slots(&r->xdp);
	log_write(M_CHILD_HUNG, "%s (process %d): %s for %llu ms; killed", p->name, (int)p->pid, what,
		  (unsigned long long)silent_ns / 1000000);
	run_part_kill(p, true);
}

/* A queue whose thread is silent goes to the kernel path. Once a silence: the fastpath puts the socket back when it beats. */
static void park(struct run *r, struct run_part *p, unsigned block, uint32_t ifindex, uint32_t queue, uint64_t silent_ns)
{
	struct link_msg message = { .type = LINK_PARKED, .a = ifindex, .b = queue };
	const struct run_interface *i = run_xdp_find(&r->xdp, ifindex);

	if (p->parked[block])
		return;
	p->parked[block] = true;
	run_xdp_clear_slot(&r->xdp, ifindex, queue);
	run_part_send(p, &message, -1);
	log_write(M_RUN_PARKED, "%s queue %u: no heartbeat for %llu ms; the kernel path serves it", i ? i->name : "?", queue,
		  (unsigned long long)silent_ns / 1000000);
}

/* The blocks are far apart in memory, and most are unused: looking at all of them takes fifty microseconds of a cold cache. */
static unsigned blocks_to_watch(struct run_part *p)
{
	if (p->until_full_look > 0) {
		p->until_full_look--;
		return p->watched;
	}
	p->until_full_look = FULL_LOOK_TICKS - 1;
	p->watched = 0;
	for (unsigned i = 0; i < COUNTER_MAX_THREADS; i++)
		if (atomic_load_explicit((_Atomic uint32_t *)&p->counters->block[i].role, memory_order_relaxed) != COUNTER_UNUSED)
			p->watched = i + 1;
	return p->watched;
}

static void watch_part(struct run *r, struct run_part *p, uint64_t now_ns)
{
	unsigned count = p->state == RUN_PART_SERVING ? blocks_to_watch(p) : 0;

	for (unsigned i = 0; i < count && p->state == RUN_PART_SERVING; i++) {
		/* The part can write here: read once, use the copy. */
		const struct counter_block *b = &p->counters->block[i];
		enum counter_role role = atomic_load_explicit((_Atomic uint32_t *)&b->role, memory_order_acquire);
		uint64_t beat_ns = atomic_load_explicit((_Atomic uint64_t *)&b->heartbeat_ns, memory_order_relaxed);
		uint32_t ifindex = b->ifindex, queue = b->queue;
		uint64_t silent_ns = now_ns > beat_ns ? now_ns - beat_ns : 0;

		if (role == COUNTER_UNUSED)
			continue;
		switch (run_heartbeat_judge(role, beat_ns, now_ns, r->config->xdp.park_after_ms * 1000000ull)) {
		case RUN_ALIVE:
			if (p->parked[i])
				log_write(M_RUN_UNPARKED, "%s queue %u: heard again", p->name, queue);
			p->parked[i] = false;
			break;
		case RUN_SILENT: park(r, p, i, ifindex, queue, silent_ns); break;
		case RUN_HUNG: hung(r, p, "a serving thread gave no heartbeat", silent_ns); break;
		}
	}
}

static void watch_start(struct run *r, struct run_part *p, uint64_t now_ns)
{
	uint64_t limit_ns = p->id == LINK_PART_FASTPATH ? RUN_START_FASTPATH_NS : RUN_START_SLOWPATH_NS;

	if (p->state == RUN_PART_STARTING && now_ns - p->started_ns > limit_ns)
		hung(r, p, "started, but was not ready", now_ns - p->started_ns);
}

void run_watch(struct run *r, uint64_t now_ns)
{
	if (!run_pulse_tick(&r->pulse, now_ns, r->tick_ns) || r->is_stopping)
		return;
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		watch_start(r, &r->part[i], now_ns);
		watch_part(r, &r->part[i], now_ns);
	}
}
