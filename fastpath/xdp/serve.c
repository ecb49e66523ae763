/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/serve.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

#define KICKS_MAX 4 /* sendto calls in a row while the kernel leaves descriptors behind */
#define WALL_READ_NS 50000000u

/* Makes the kernel send what the TX ring holds. In copy mode one call sends tx_budget descriptors at most, and stops early at
 * one it
 * refuses, so 0 does not mean empty: what counts is the ring's consumer. Failures move nothing that we must move back: a frame
 * that the kernel drops is completed. EBUSY, EAGAIN, ENOBUFS: try later. ENETDOWN: the link is down, frames wait for it. */
static void kick(struct serve *s)
{
	struct umem *u = s->umem;
	struct pollfd p = { .fd = s->socket->fd, .events = POLLIN };
	unsigned most = s->socket->is_zerocopy ? 1 : KICKS_MAX, n = 0;

	for (; n < most && umem_tx_pending(u) && xsk_ring_prod__needs_wakeup(&u->tx); n++) {
		if (sendto(s->socket->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 || errno == EAGAIN)
			continue;
		if (errno != EBUSY && errno != ENOBUFS && errno != ENETDOWN)
			counter_add(s->counters, C_TX_ERROR, 1);
		n++;
		break;
	}
	counter_add(s->counters, C_TX_KICK, n);
	/* With preferred busy polling in zero-copy mode sendto runs the driver's receive poll and wakes nothing. A driver that sends
	 * there too has left nothing in the ring; one that sends elsewhere, as virtio_net does, is woken by poll(). */
	if (n && s->socket->is_busy_poll && s->socket->is_zerocopy && umem_tx_pending(u))
		poll(&p, 1, 0);
}

/* More is in the ring: send and go on. A driver that ran out of frames waits for a call. Where the kernel's receive thread (threaded
 * NAPI, ksoftirqd) shares our CPU, it would wait for a whole time slice of ours, longer than a card's ring or veth's lasts. In
 * zero-copy mode rings are larger, and interrupts come through. */
static void kick_and_go_on(struct serve *s)
{
	kick(s);
	if (!s->socket->is_zerocopy && !s->socket->is_busy_poll)
		sched_yield();
	if (xsk_ring_prod__needs_wakeup(&s->umem->fill))
		recvfrom(s->socket->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

/* Nothing to do: sleep until a packet comes. poll() also sends what the TX ring holds, up to its budget, before it looks for
 * packets, so
 * a burst costs one system call. */
static void sleep_until_rx(struct serve *s)
{
	struct pollfd p[] = { { .fd = s->socket->fd, .events = POLLIN },
			      { .fd = s->miss ? s->miss->wake : -1, .events = POLLIN } };

	if (s->miss && !serve_miss_prepare_sleep(s->miss))
		return;
	if (umem_tx_pending(s->umem) > (s->socket->is_zerocopy ? 0 : s->socket->tx_budget))
		kick(s);
	counter_add(s->counters, C_RX_WAKEUP, 1);
	counter_set(s->counters, C_FRAME_LOST, s->lost_frames + atomic_load_explicit(&s->missing_frames, memory_order_relaxed));
	snapshot_offline();
	/* An error state would make poll return at once, again and again. */
	if (poll(p, s->miss ? 2 : 1, SERVE_POLL_MS) > 0 && p[0].revents && !(p[0].revents & POLLIN))
		poll(NULL, 0, SERVE_POLL_MS);
	snapshot_online();
	if (s->miss)
		serve_miss_awake(s->miss, p[1].revents != 0);
}

/* Preferred busy polling: the driver works inside of our calls, so there must be one per round. */
static void busy_poll(struct serve *s)
{
	kick(s);
	snapshot_offline();
	recvfrom(s->socket->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	snapshot_online();
}

#ifdef SKUA_DEBUG
/* Fault injection for tests: SKUA_FAULT_SPIN_AFTER=N, in the environment of a debug build, hangs a thread after N packets. */
static void maybe_hang(uint64_t packets)
{
	static _Thread_local uint64_t limit, seen;
	const char *text;

	if (!limit) {
		text = getenv("SKUA_FAULT_SPIN_AFTER");
		limit = text ? strtoull(text, NULL, 10) : UINT64_MAX;
	}
	seen += packets;
	while (seen >= limit)
		__builtin_ia32_pause();
}
#else
#define maybe_hang(packets) ((void)(packets))
#endif

/* The wall clock is looked at now and then; in between it goes on with the other one. */
static void read_clocks(struct serve *s)
{
	s->now_ns = clock_mono_ns();
	if (unlikely(s->now_ns - s->wall_read_ns > WALL_READ_NS || s->wall_read_ns == 0)) {
		s->wall_read_ns = s->now_ns;
		s->wall_minus_mono_ns = clock_wall_ns() - s->now_ns;
		s->answer.wall_s = clock_wall_s();
		s->answer.now_s = clock_mono_s();
	}
	s->answer.wall_ns = s->now_ns + s->wall_minus_mono_ns;
}

static void *serve_run(void *arg)
{
	struct serve *s = arg;
	uint64_t generation = 0;

	snapshot_thread_register();
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		const struct snapshot *snap;
		uint32_t n;

		read_clocks(s);
		atomic_store_explicit(&s->counters->heartbeat_ns, s->now_ns, memory_order_relaxed);
		snap = snapshot_acquire(s->snapshots);
		if (unlikely(snap->generation != generation)) {
			generation = snap->generation;
			atomic_store_explicit(&s->counters->generation, generation, memory_order_relaxed);
		}
		n = serve_batch(s, snap);
		snapshot_quiescent();
		if (s->miss)
			serve_miss_kick(s->miss);
		maybe_hang(n);
		if (n && (n == UMEM_BATCH || !umem_rx_is_empty(s->umem)))
			kick_and_go_on(s);
		else if (s->socket->is_busy_poll)
			busy_poll(s);
		else
			sleep_until_rx(s);
	}
	atomic_store_explicit(&s->counters->heartbeat_ns, 0, memory_order_relaxed);
	snapshot_thread_unregister();
	return NULL;
}

enum err serve_start(struct serve *s, const char *name)
{
	pthread_attr_t attributes;
	cpu_set_t cpus;
	int result;

	ASSERT(s->umem && s->socket && s->counters && s->snapshots && snapshot_acquire(s->snapshots));
	s->answer.counters = s->counters;
	read_clocks(s);
	atomic_store(&s->stop, false);
	result = pthread_attr_init(&attributes);
	if (result)
		return err_from_errno(result);
	if (s->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET((size_t)s->cpu, &cpus);
		pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus);
	}
	result = pthread_create(&s->thread, &attributes, serve_run, s);
	pthread_attr_destroy(&attributes);
	if (result)
		return err_from_errno(result);
	pthread_setname_np(s->thread, name);
	s->is_started = true;
	return ERR_OK;
}

void serve_stop(struct serve *s)
{
	if (!s->is_started)
		return;
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	s->is_started = false;
}
