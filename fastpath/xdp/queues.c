/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/queues.h"

#include "base/clock.h"
#include "base/log.h"
#include "xdp/cpus.h"
#include "xdp/device.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define MTU_MIN_BYTES 576u	      /* RFC 791: every host takes that much; the answer function needs 512 */
#define STUCK_NS 3000000000u	      /* sent frames of which none comes back for so long are missing */
#define AFTER_LINK_UP_NS 30000000000u /* a card that was reset may have lost frames: looked at more strictly */
#define DRAIN_MS 20		      /* from clearing the slots to stopping: the rings run empty */

void queues_init(struct queues *q)
{
	memset(q, 0, sizeof(*q));
	q->device_fd = -1;
}

enum err queues_add(struct queues *q, const char *ifname, uint32_t ifindex, enum config_xdp_mode mode, int xskmap_fd)
{
	struct queue_interface *i = &q->interface[q->interface_count];

	if (q->interface_count == ARRAY_LEN(q->interface))
		return ERR_NOSPACE;
	snprintf(i->name, sizeof(i->name), "%s", ifname);
	i->ifindex = ifindex;
	i->mode = mode;
	i->xskmap_fd = xskmap_fd;
	i->is_running = true;
	q->interface_count++;
	return ERR_OK;
}

/* --- binding -------------------------------------------------------------------------------------------------------- */

static void choose_cpus(struct cpus *out, const struct config *config, int numa_node)
{
	cpu_set_t usable, node;

	if (config->xdp.cpus) {
		out->count = (uint32_t)config->xdp.cpu_count;
		for (size_t i = 0; i < config->xdp.cpu_count; i++)
			out->cpu[i] = (int)config->xdp.cpus[i];
		return;
	}
	if (sched_getaffinity(0, sizeof(usable), &usable) != 0)
		CPU_ZERO(&usable);
	cpus_choose(out, &usable, cpus_of_node(&node, numa_node) ? &node : NULL);
}

/* Pages belong to the NUMA node of the CPU that touches them first. */
static enum err bind_on_cpu(struct queue *queue, const struct config *config)
{
	const struct queue_interface *i = queue->interface;
	struct xdp_socket_options o = {
		.ifname = i->name,
		.ifindex = i->ifindex,
		.queue = queue->index,
		.mode = i->mode,
		.ring_size = config->xdp.ring_size,
		.busy_poll_us = config->xdp.busy_poll_us,
	};
	cpu_set_t before, here;
	bool is_moved = false;
	enum err err;

	if (queue->cpu >= 0 && sched_getaffinity(0, sizeof(before), &before) == 0) {
		CPU_ZERO(&here);
		CPU_SET((size_t)queue->cpu, &here);
		is_moved = sched_setaffinity(0, sizeof(here), &here) == 0;
		if (!is_moved) {
			log_write(M_XDP_CPU, "%s queue %u: CPU %d is not usable: %s; its thread is not pinned", i->name,
				  queue->index, queue->cpu, strerror(errno));
			queue->cpu = -1;
		}
	}
	err = xdp_socket_create(&queue->socket, &o);
	if (is_moved)
		sched_setaffinity(0, sizeof(before), &before);
	return err;
}

/* What makes an interface useless whatever its queues say. */
static enum err check_interface(const struct queues *q, const struct queue_interface *i, const struct device *d)
{
	uint32_t mtu_bytes = device_mtu_bytes(q->device_fd, i->name);

	if (d->ifindex != i->ifindex) {
		log_write(M_XDP_SOCKET_FAILED, "%s: is another interface now (index %u, was %u)", i->name, d->ifindex,
			  i->ifindex);
		return ERR_NOTFOUND;
	}
	if (mtu_bytes < MTU_MIN_BYTES) {
		log_write(M_XDP_SOCKET_FAILED, "%s: an MTU of %u is too small: %u is needed", i->name, mtu_bytes, MTU_MIN_BYTES);
		return ERR_RANGE;
	}
	if (d->strips_vlan)
		log_write(
			M_XDP_VLAN_OFFLOAD,
			"%s: the card takes VLAN tags off, so tagged queries are answered without one: ethtool -K %s rxvlan off",
			i->name, i->name);
	return ERR_OK;
}

static enum err bind_interface(struct queues *q, struct queue_interface *i, const struct config *config,
			       struct counters *counters, size_t *bound)
{
	struct device d;
	struct cpus cpus;
	enum err last = ERR_OK, err = device_query(&d, i->name);

	if (!err)
		err = check_interface(q, i, &d);
	if (err)
		return err;
	choose_cpus(&cpus, config, d.numa_node);
	for (uint32_t n = 0; n < d.queues && q->count < QUEUES_MAX; n++) {
		struct queue *queue = &q->queue[q->count];

		*queue = (struct queue){ .interface = i, .index = n, .cpu = cpus.count ? cpus.cpu[q->count % cpus.count] : -1 };
		queue->counters = &counters->block[q->count++];
		err = bind_on_cpu(queue, config);
		if (err)
			last = err;
		else
			*bound += 1;
	}
	return last;
}

enum err queues_bind(struct queues *q, const struct config *config, struct counters *counters)
{
	enum err last = ERR_OK;
	size_t bound = 0;

	q->device_fd = device_socket();
	if (q->device_fd < 0)
		return err_from_errno(errno);
	for (size_t i = 0; i < q->interface_count; i++) {
		enum err err = bind_interface(q, &q->interface[i], config, counters, &bound);

		if (err)
			last = err;
	}
	return bound ? ERR_OK : last;
}

/* --- serving -------------------------------------------------------------------------------------------------------- */

/* The queue's own parts of what is shared: marks, log ring, rings to the resolver. index: the thread's number there; without a place
 * for it, it does without. */
static enum err share_one(struct serve *s, unsigned index, const struct config *config, struct shared *shared)
{
	struct serve_miss_options o = { .rings = &shared->rings,
					.thread = index,
					.worker_wake = shared->worker_wake,
					.counters = s->counters,
					.cache = shared->cache,
					.per_client = config->limits.max_questions_per_client };

	if (shared->log && index < log_ring_threads(shared->log)) {
		log_writer_init(&s->log, shared->log, index);
		s->answer.log = &s->log;
	}
	if (!shared->cache)
		return ERR_OK;
	s->answer.marks = cache_reader_marks(shared->cache, shared->first_marks + index);
	s->answer.scratch = aligned_alloc(CACHE_LINE, CACHE_SCRATCH_WORDS * sizeof(uint64_t));
	if (!s->answer.scratch)
		return ERR_NOMEM;
	if (index >= shared->rings.threads || index >= shared->thread_wake_count ||
	    shared->worker_wake_count < shared->rings.workers)
		return ERR_OK;
	if (getrandom(&o.seed, sizeof(o.seed), 0) != sizeof(o.seed))
		return ERR_IO;
	o.wake = shared->thread_wake[index];
	return serve_miss_create(&s->miss, &o);
}

static enum err start_one(struct queue *queue, const struct queues *q, const struct config *config,
			  const struct snapshot_holder *snapshots, struct shared *shared)
{
	struct serve *s = aligned_alloc(CACHE_LINE, (sizeof(*s) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	char name[16];

	if (!s)
		return ERR_NOMEM;
	memset(s, 0, sizeof(*s));
	queue->serve = s;
	s->umem = &queue->socket->umem;
	s->socket = queue->socket;
	s->counters = queue->counters;
	s->snapshots = snapshots;
	s->cpu = queue->cpu;
	s->verify_checksums = config->xdp.verify_checksums;
	s->mtu_bytes = device_mtu_bytes(q->device_fd, queue->interface->name);
	enum err err = share_one(s, (unsigned)(queue - q->queue), config, shared);

	if (err != ERR_OK)
		return err;
	queue->counters->cpu = (uint32_t)MAX(queue->cpu, 0);
	queue->counters->ifindex = queue->interface->ifindex;
	queue->counters->queue = queue->index;
	/* Readers load the role with acquire: the fields above are there by then. */
	atomic_store_explicit(&queue->counters->role, COUNTER_XDP, memory_order_release);
	snprintf(name, sizeof(name), "xdp-%.7s-%u", queue->interface->name, queue->index % 1000);
	return serve_start(s, name);
}

enum err queues_start(struct queues *q, const struct config *config, const struct snapshot_holder *snapshots,
		      struct shared *shared)
{
	for (size_t i = 0; i < q->count; i++) {
		enum err err = q->queue[i].socket ? start_one(&q->queue[i], q, config, snapshots, shared) : ERR_OK;

		if (err) {
			log_write(M_XDP_SOCKET_FAILED, "%s queue %u: cannot start its thread: %s", q->queue[i].interface->name,
				  q->queue[i].index, err_text(err));
			return err;
		}
	}
	return ERR_OK;
}

static bool insert(struct queue *queue)
{
	enum err err = xdp_socket_insert(queue->socket, queue->interface->xskmap_fd);

	if (err)
		log_write(M_XDP_SLOT_FAILED, "%s queue %u: cannot set the XSKMAP slot: %s", queue->interface->name, queue->index,
			  err_text(err));
	queue->is_inserted = err == ERR_OK;
	return queue->is_inserted;
}

void queues_insert(struct queues *q)
{
	q->is_inserting = true;
	for (size_t i = 0; i < q->count; i++)
		if (q->queue[i].socket && !q->queue[i].is_inserted && !q->queue[i].is_parked)
			insert(&q->queue[i]);
}

void queues_parked(struct queues *q, uint32_t ifindex, uint32_t index)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->queue[i].interface->ifindex == ifindex && q->queue[i].index == index && q->queue[i].socket) {
			q->queue[i].is_parked = true;
			q->queue[i].is_inserted = false;
		}
}

bool queues_unpark(struct queues *q, uint64_t now_ns)
{
	bool some = false;

	for (size_t i = 0; i < q->count; i++) {
		struct queue *queue = &q->queue[i];
		uint64_t beat_ns;

		if (!queue->is_parked)
			continue;
		beat_ns = atomic_load_explicit(&queue->counters->heartbeat_ns, memory_order_relaxed);
		if (now_ns < beat_ns + QUEUES_FRESH_NS && (!q->is_inserting || insert(queue))) {
			queue->is_parked = false;
			log_write(M_XDP_SLOT_RESTORED, "%s queue %u: serving by AF_XDP again", queue->interface->name,
				  queue->index);
		} else {
			some = true;
		}
	}
	return some;
}

/* --- health --------------------------------------------------------------------------------------------------------- */

static void export_statistics(const struct queue *queue)
{
	struct xdp_statistics x;

	if (xdp_socket_statistics(queue->socket, &x) != ERR_OK)
		return;
	counter_set(queue->counters, C_XDP_RX_DROPPED, x.rx_dropped);
	counter_set(queue->counters, C_XDP_RX_INVALID, x.rx_invalid_descs);
	counter_set(queue->counters, C_XDP_TX_INVALID, x.tx_invalid_descs);
	counter_set(queue->counters, C_XDP_RX_RING_FULL, x.rx_ring_full);
	counter_set(queue->counters, C_XDP_FILL_EMPTY, x.rx_fill_ring_empty_descs);
	counter_set(queue->counters, C_XDP_TX_EMPTY, x.tx_ring_empty_descs);
}

static void check_link(const struct queues *q, struct queue_interface *i, uint64_t now_ns)
{
	bool is_running = device_is_running(q->device_fd, i->name);

	if (is_running == i->is_running)
		return;
	i->is_running = is_running;
	i->running_since_ns = now_ns;
	if (is_running)
		log_write(M_XDP_LINK_UP, "%s: the link is up", i->name);
	else
		log_write(M_XDP_LINK_DOWN, "%s: the link is down", i->name);
}

/* Frames that were sent come back by the completion ring. When none does for a while although the link is up, the driver has lost
 * them: after a link flap any is one too many (a card that was reset loses what it held), otherwise many are. */
static uint32_t missing_frames(struct queue *queue, uint64_t now_ns)
{
	const struct umem *u = &queue->socket->umem;
	const struct queue_interface *i = queue->interface;
	uint32_t completed = __atomic_load_n(u->completion.producer, __ATOMIC_ACQUIRE);
	uint32_t away = __atomic_load_n(u->tx.producer, __ATOMIC_ACQUIRE) - completed;
	bool was_up_lately = i->running_since_ns && now_ns - i->running_since_ns < AFTER_LINK_UP_NS;

	if (away == 0 || completed != queue->seen_completed || !i->is_running || now_ns - i->running_since_ns < STUCK_NS) {
		queue->seen_completed = completed;
		queue->seen_ns = now_ns;
		return 0;
	}
	if (now_ns - queue->seen_ns < STUCK_NS)
		return 0;
	return was_up_lately || away >= u->frame_count / 4 ? away : 0;
}

/* Somebody may have emptied the slot by hand. Setting it again to the same socket changes nothing. A thread that does not
 * beat is left to the supervisor, which may have emptied it for that. */
static void keep_inserted(struct queue *queue, bool is_inserting, uint64_t now_ns)
{
	uint64_t beat_ns = atomic_load_explicit(&queue->counters->heartbeat_ns, memory_order_relaxed);

	if (is_inserting && !queue->is_parked && now_ns < beat_ns + QUEUES_FRESH_NS)
		insert(queue);
}

bool queues_check(struct queues *q, uint64_t now_ns, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < q->interface_count; i++)
		check_link(q, &q->interface[i], now_ns);
	for (size_t i = 0; i < q->count; i++) {
		struct queue *queue = &q->queue[i];
		uint32_t mtu_bytes, missing;

		if (!queue->serve)
			continue;
		export_statistics(queue);
		keep_inserted(queue, q->is_inserting, now_ns);
		mtu_bytes = device_mtu_bytes(q->device_fd, queue->interface->name);
		if (mtu_bytes)
			atomic_store_explicit(&queue->serve->mtu_bytes, mtu_bytes, memory_order_relaxed);
		missing = missing_frames(queue, now_ns);
		if (missing) {
			atomic_store_explicit(&queue->serve->missing_frames, missing, memory_order_relaxed);
			snprintf(why, why_bytes, "%s queue %u: %u sent frames have not come back", queue->interface->name,
				 queue->index, missing);
			log_write(M_XDP_FRAMES_MISSING, "%s; the socket is bound anew", why);
			return false;
		}
	}
	return true;
}

/* --- end ------------------------------------------------------------------------------------------------------------ */

void queues_stop(struct queues *q)
{
	struct timespec drain = { .tv_nsec = DRAIN_MS * 1000000 };
	bool was_serving = false;

	for (size_t i = 0; i < q->count; i++)
		if (q->queue[i].is_inserted) {
			bpf_map_delete_elem(q->queue[i].interface->xskmap_fd, &q->queue[i].index);
			was_serving = true;
		}
	if (was_serving)
		nanosleep(&drain, NULL);
	for (size_t i = 0; i < q->count; i++) {
		struct queue *queue = &q->queue[i];

		if (queue->serve) {
			serve_stop(queue->serve);
			serve_miss_destroy(queue->serve->miss);
			free(queue->serve->answer.scratch);
		}
		free(queue->serve);
		xdp_socket_destroy(queue->socket);
	}
	for (size_t i = 0; i < q->interface_count; i++)
		close(q->interface[i].xskmap_fd);
	if (q->device_fd >= 0)
		close(q->device_fd);
	queues_init(q);
}
