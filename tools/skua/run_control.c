/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/version.h"
#include "tools/skua/run.h"

#include <unistd.h>

/* AF_XDP drops, each with its reason: counters of a queue that mean a packet which got no answer. */
static const enum counter queue_drops[] = {
	C_DROP_SHORT, C_DROP_RESPONSE,	C_DROP_MARTIAN,	  C_DROP_MALFORMED, C_TX_FULL,		C_FRAME_BAD,
	C_FRAME_LOST, C_XDP_RX_DROPPED, C_XDP_RX_INVALID, C_XDP_TX_INVALID, C_XDP_RX_RING_FULL, C_XDP_FILL_EMPTY,
};

static json_int_t seconds_since(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns && now_ns > then_ns ? (json_int_t)((now_ns - then_ns) / 1000000000) : 0;
}

static json_t *counters_json(const struct run_part *p)
{
	json_t *object = json_object();

	for (unsigned c = 0; c < C_COUNT_; c++) {
		uint64_t sum = 0;
		for (unsigned role = COUNTER_XDP; role <= COUNTER_OTHER; role++)
			sum += run_part_total(p, role, c);
		json_object_set_new(object, counter_name(c), json_integer((json_int_t)sum));
	}
	return object;
}

static json_t *part_json(const struct run_part *p, uint64_t now_ns)
{
	bool runs = run_part_is_running(p);
	unsigned threads = 0;

	for (unsigned i = 0; run_part_has_counted(p) && i < COUNTER_MAX_THREADS; i++)
		threads += atomic_load_explicit((_Atomic uint32_t *)&p->counters->block[i].role, memory_order_relaxed) !=
			   COUNTER_UNUSED;
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "name", p->name, "state",
			 run_part_state_text(p->state), "pid", (json_int_t)p->pid, "uptime_s",
			 runs ? seconds_since(p->started_ns, now_ns) : (json_int_t)0, "restarts", (json_int_t)p->restarts,
			 "hangs", (json_int_t)p->hangs, "threads", (json_int_t)threads, "live_generation",
			 (json_int_t)p->live_generation, "last_exit", p->last_exit, "counters", counters_json(p));
}

static json_t *queue_json(const struct run *r, const struct run_part *p, unsigned block, uint64_t now_ns)
{
	const struct counter_block *b = &p->counters->block[block];
	uint64_t beat_ns = atomic_load_explicit((_Atomic uint64_t *)&b->heartbeat_ns, memory_order_relaxed);
	const struct run_interface *i = run_xdp_find(&r->xdp, b->ifindex);
	json_t *drops = json_object();

	for (size_t d = 0; d < ARRAY_LEN(queue_drops); d++)
		json_object_set_new(drops, counter_name(queue_drops[d]),
				    json_integer((json_int_t)counter_get(b, queue_drops[d])));
	return json_pack("{s:s, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "interface", i ? i->name : "?", "queue",
			 (json_int_t)b->queue, "cpu", (json_int_t)b->cpu, "state",
			 p->parked[block] ? "parked"
			 : beat_ns	  ? "serving"
					  : "idle",
			 "heartbeat_age_ms", (json_int_t)(beat_ns && now_ns > beat_ns ? (now_ns - beat_ns) / 1000000 : 0),
			 "generation", (json_int_t)atomic_load_explicit((_Atomic uint64_t *)&b->generation, memory_order_relaxed),
			 "rx_frames", (json_int_t)counter_get(b, C_RX), "tx_frames", (json_int_t)counter_get(b, C_TX), "answers",
			 (json_int_t)counter_get(b, C_ANSWERS), "drops", drops);
}

/* Every serving thread with its own counters, since its process started. */
static json_t *threads_json(const struct run *r)
{
	static const char *const roles[] = { [COUNTER_XDP] = "xdp",
					     [COUNTER_UDP] = "udp",
					     [COUNTER_TCP] = "tcp",
					     [COUNTER_RESOLVE] = "resolve",
					     [COUNTER_OTHER] = "other" };
	json_t *array = json_array();

	for (unsigned i = 0; i < LINK_PART_COUNT_ * COUNTER_MAX_THREADS; i++) {
		const struct run_part *p = &r->part[i / COUNTER_MAX_THREADS];
		const struct counter_block *b = &p->counters->block[i % COUNTER_MAX_THREADS];
		uint32_t role = atomic_load_explicit((_Atomic uint32_t *)&b->role, memory_order_acquire);
		json_t *counters;

		if (!run_part_has_counted(p) || role == COUNTER_UNUSED || role > COUNTER_OTHER)
			continue;
		counters = json_object();
		for (unsigned c = 0; c < C_COUNT_; c++)
			json_object_set_new(counters, counter_name(c), json_integer((json_int_t)counter_get(b, c)));
		json_array_append_new(array, json_pack("{s:s, s:s, s:I, s:I, s:o}", "part", p->name, "role", roles[role], "cpu",
						       (json_int_t)b->cpu, "generation",
						       (json_int_t)atomic_load_explicit((_Atomic uint64_t *)&b->generation,
											memory_order_relaxed),
						       "counters", counters));
	}
	return array;
}

static json_t *queues_json(const struct run *r, uint64_t now_ns)
{
	const struct run_part *p = &r->part[LINK_PART_FASTPATH];
	json_t *array = json_array();

	for (unsigned i = 0; run_part_has_counted(p) && i < COUNTER_MAX_THREADS; i++) {
		if (atomic_load_explicit((_Atomic uint32_t *)&p->counters->block[i].role, memory_order_acquire) == COUNTER_XDP)
			json_array_append_new(array, queue_json(r, p, i, now_ns));
	}
	return array;
}

static json_t *interface_json(const struct run *r, const struct run_interface *i)
{
	uint64_t counters[STEER_COUNTER_COUNT_] = { 0 };
	json_t *steer = json_object();

	if (i->program && xdp_program_counters(i->program, counters) == ERR_OK) {
		for (unsigned c = 0; c < STEER_COUNTER_COUNT_; c++)
			json_object_set_new(steer, xdp_program_counter_name(c), json_integer((json_int_t)counters[c]));
	}
	return json_pack("{s:s, s:I, s:b, s:s, s:I, s:s, s:s, s:o}", "name", i->name, "ifindex", (json_int_t)i->ifindex,
			 "attached", i->program != NULL, "mode",
			 !i->program	  ? "none"
			 : i->info.is_skb ? "skb"
					  : "driver",
			 "program", (json_int_t)i->info.program_id, "origin",
			 i->program ? xdp_program_origin_text(i->info.origin) : "", "reason",
			 i->program	 ? ""
			 : r->xdp.is_off ? "switched off"
					 : err_text(i->reason),
			 "packets", steer);
}

json_t *run_control_status(const struct run *r)
{
	const struct run_part *fastpath = &r->part[LINK_PART_FASTPATH], *slowpath = &r->part[LINK_PART_SLOWPATH];
	uint64_t now_ns = clock_mono_ns();
	json_t *parts = json_object(), *interfaces = json_array();
	const char *state = r->is_stopping ? "stopping" : slowpath->state == RUN_PART_SERVING ? "serving" : "starting";

	for (int i = 0; i < LINK_PART_COUNT_; i++)
		json_object_set_new(parts, r->part[i].name, part_json(&r->part[i], now_ns));
	for (size_t i = 0; i < r->xdp.count; i++)
		json_array_append_new(interfaces, interface_json(r, &r->xdp.interface[i]));
	return json_pack("{s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o, s:o, s:o, s:o}", "version",
			 version_text(), "state", state, "pid", (json_int_t)getpid(), "uptime_s",
			 seconds_since(r->started_ns, now_ns), "config", r->config_path, "run", r->config->server.run,
			 "generation", (json_int_t)r->publish.generation, "zones", (json_int_t)r->publish.zone_count, "segments",
			 (json_int_t)r->publish.count, "answers", "xdp", (json_int_t)run_part_total(fastpath, COUNTER_XDP, C_TX),
			 "udp", (json_int_t)run_part_total(slowpath, COUNTER_UDP, C_UDP_TX), "tcp",
			 (json_int_t)run_part_total(slowpath, COUNTER_TCP, C_ANSWERS), "parts", parts, "interfaces", interfaces,
			 "queues", queues_json(r, now_ns), "threads", threads_json(r));
}

/* What the serving threads of both parts found in the cache. */
static json_t *cache_json(const struct run *r)
{
	static const enum counter which[] = { C_CACHE_HITS, C_STALE_HITS, C_MISSES };
	uint64_t sum[ARRAY_LEN(which)];

	for (unsigned i = 0; i < ARRAY_LEN(which); i++)
		sum[i] = run_part_total(&r->part[LINK_PART_FASTPATH], COUNTER_XDP, which[i]) +
			 run_part_total(&r->part[LINK_PART_SLOWPATH], COUNTER_UDP, which[i]) +
			 run_part_total(&r->part[LINK_PART_SLOWPATH], COUNTER_TCP, which[i]);
	uint64_t all = sum[0] + sum[2];
	return json_pack("{s:I, s:I, s:I, s:f}", "hits", (json_int_t)sum[0], "stale", (json_int_t)sum[1], "misses",
			 (json_int_t)sum[2], "hit_ratio", all ? (double)sum[0] / (double)all : 0.0);
}

static json_t *status(void *user, const json_t *args, struct control_error *error)
{
	json_t *result = run_control_status(user);

	(void)args;
	if (result)
		json_object_set_new(result, "cache", cache_json(user));
	if (!result)
		control_fail(error, "no-memory", "no memory for the answer");
	return result;
}

static const struct control_verb verbs[] = {
	{ "status", status, "parts, queues, interfaces and counters of the whole server", false },
	{ NULL, NULL, NULL, false },
};

enum err run_control_create(struct run *r) { return control_server_create(&r->control, r->control_fd, verbs, r); }
