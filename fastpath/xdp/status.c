/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/fastpath.h"

#include "base/clock.h"

static json_t *queue_json(const struct queue *queue, uint64_t now_ns)
{
	json_t *o = json_object(), *counters = json_object();
	uint64_t beat_ns = atomic_load_explicit(&queue->counters->heartbeat_ns, memory_order_relaxed);
	const char *state = !queue->socket ? "no-socket" : queue->is_parked ? "parked" : queue->is_inserted ? "serving" : "idle";

	json_object_set_new(o, "interface", json_string(queue->interface->name));
	json_object_set_new(o, "queue", json_integer(queue->index));
	json_object_set_new(o, "state", json_string(state));
	json_object_set_new(o, "is_link_up", json_boolean(queue->interface->is_running));
	json_object_set_new(o, "cpu", queue->cpu >= 0 ? json_integer(queue->cpu) : json_null());
	if (queue->socket) {
		json_object_set_new(o, "mode",
				    json_string(queue->interface->mode == XDP_MODE_SKB ? "skb"
						: queue->socket->is_zerocopy	       ? "zerocopy"
										       : "copy"));
		json_object_set_new(o, "frames", json_integer(queue->socket->umem.frame_count));
		json_object_set_new(o, "is_huge_pages", json_boolean(queue->socket->has_huge_pages));
	}
	if (queue->serve) {
		json_object_set_new(o, "mtu_bytes",
				    json_integer(atomic_load_explicit(&queue->serve->mtu_bytes, memory_order_relaxed)));
		json_object_set_new(o, "heartbeat_age_us",
				    json_integer(beat_ns && now_ns > beat_ns ? (json_int_t)((now_ns - beat_ns) / 1000) : 0));
		json_object_set_new(
			o, "generation",
			json_integer((json_int_t)atomic_load_explicit(&queue->counters->generation, memory_order_relaxed)));
	}
	for (unsigned c = 0; c < C_COUNT_; c++) {
		uint64_t value = counter_get(queue->counters, (enum counter)c);

		if (value)
			json_object_set_new(counters, counter_name((enum counter)c), json_integer((json_int_t)value));
	}
	json_object_set_new(o, "counters", counters);
	return o;
}

static json_t *status(void *user, const json_t *args, struct control_error *error)
{
	const struct fastpath *f = user;
	json_t *o = json_object(), *queues = json_array();
	uint64_t now_ns = clock_mono_ns();

	(void)args, (void)error;
	for (size_t i = 0; i < f->queues.count; i++)
		json_array_append_new(queues, queue_json(&f->queues.queue[i], now_ns));
	json_object_set_new(o, "process", json_string("fastpath"));
	json_object_set_new(o, "uptime_s", json_integer((json_int_t)((now_ns - f->started_ns) / 1000000000u)));
	json_object_set_new(o, "generation", json_integer((json_int_t)f->zones.generation));
	json_object_set_new(o, "zones", json_integer(f->zones.zone_count));
	json_object_set_new(o, "segments", json_integer((json_int_t)f->zones.segment_count));
	json_object_set_new(o, "queues", queues);
	return o;
}

const struct control_verb status_verbs[] = {
	{ "status", status, "zone set, queues, their mode, state and counters", false },
	{ NULL, NULL, NULL, false },
};
