/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/socket.h"

#include "base/clock.h"
#include "base/log.h"
#include "xdp/device.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES (2u << 20)
#define BIND_RETRY_NS 2000000000u
#define BIND_PAUSE_FIRST_NS 1000000
#define BIND_PAUSE_LAST_NS 100000000
#define BUSY_POLL_BUDGET 64
#define TX_BUDGET_DEFAULT 32 /* the kernel's TX_BATCH_SIZE */

/* For headers older than the kernel (6.17). */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#define SO_BUSY_POLL_BUDGET 70
#endif

static const char *hint(int errno_value)
{
	switch (errno_value) {
	case EAFNOSUPPORT:
		return "no AF_XDP here: the kernel needs CONFIG_XDP_SOCKETS; under systemd, RestrictAddressFamilies must list "
		       "AF_XDP and AF_NETLINK";
	case EOPNOTSUPP:
	case EPROTONOSUPPORT: return "the driver does not support this mode: set xdp.mode to auto or copy";
	case ENOBUFS:
		return "locked memory is limited: raise LimitMEMLOCK (ulimit -l unlimited) or grant CAP_IPC_LOCK, or lower "
		       "xdp.ring-size";
	case EBUSY: return "another AF_XDP socket holds this queue: end the process that owns it (see `ss --xdp`)";
	case ERANGE:
		return "a ring is too large, or the MTU too large for frames of 2048 octets: lower xdp.ring-size, or the MTU to "
		       "1500";
	case EINVAL:
		return "no such queue, or the driver wants combined channels and a smaller MTU: see `ethtool -l IF`; try "
		       "xdp.mode copy";
	case EPERM:
	case EACCES: return "needs CAP_NET_RAW: run as root or grant it";
	case ENOMEM: return "too little memory: lower xdp.ring-size";
	case ENETDOWN: return "the interface is down: ip link set dev IF up";
	default: return "see `dmesg` for the driver's own message";
	}
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 64;

	while (p < n)
		p *= 2;
	return p;
}

/* Huge pages need fewer TLB entries: one for 1024 frames. Populated now: a page fault later would wait. */
static uint8_t *map_area(size_t bytes, bool *has_huge_pages)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB | MAP_HUGE_2MB | MAP_POPULATE, -1, 0);

	*has_huge_pages = area != MAP_FAILED;
	if (area == MAP_FAILED) {
		area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
		if (area == MAP_FAILED)
			return NULL;
		/* Advice only: both may be refused. */
		madvise(area, bytes, MADV_HUGEPAGE);
		if (madvise(area, bytes, MADV_POPULATE_WRITE) != 0)
			memset(area, 0, bytes);
	}
	/* A forked child would keep the frames, and with them the queue, alive. */
	madvise(area, bytes, MADV_DONTFORK);
	return area;
}

/* In copy mode a frame that was filled in ends in the RX ring or nowhere, so more than that ring holds would be of no use; a
 * card also
 * keeps some in its own ring. */
static void fill(struct umem *u, const struct xdp_socket_options *o, bool zerocopy)
{
	uint32_t lost = 0;

	if (!zerocopy)
		u->rx_most = MIN(u->frame_count, o->ring_size);
	umem_recycle(u, &lost);
	ASSERT(u->with_rx == u->rx_most && lost == 0);
}

/* UMEM, rings, fill, bind: once. Returns a negative errno. */
static int bind_once(struct xdp_socket *s, const struct xdp_socket_options *o, bool zerocopy)
{
	uint32_t ring = power_of_two(s->umem.frame_count);
	struct xsk_umem_config umem_config = { .fill_size = ring, .comp_size = ring, .frame_size = UMEM_FRAME_BYTES };
	struct xsk_socket_config config = {
		.rx_size = o->ring_size,
		.tx_size = o->ring_size,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (zerocopy ? XDP_ZEROCOPY : XDP_COPY)),
	};
	struct umem *u = &s->umem;
	int result;

	result = xsk_umem__create(&s->umem_handle_, u->area, s->area_bytes_, &u->fill, &u->completion, &umem_config);
	if (result) {
		s->umem_handle_ = NULL;
		return result;
	}
	umem_init(u, u->area, u->frame_count, u->spare);
#ifdef SKUA_DEBUG
	memset(u->owner, UMEM_SPARE, u->frame_count);
#endif
	fill(u, o, zerocopy);
	result = xsk_socket__create(&s->handle_, o->ifname, o->queue, s->umem_handle_, &u->rx, &u->tx, &config);
	if (result) {
		s->handle_ = NULL;
		xsk_umem__delete(s->umem_handle_);
		s->umem_handle_ = NULL;
	}
	return result;
}

/* The kernel gives up a closed socket's queue later, a card's driver seconds later: EBUSY is waited for. */
static int bind_patiently(struct xdp_socket *s, const struct xdp_socket_options *o, bool zerocopy)
{
	struct timespec pause = { .tv_nsec = BIND_PAUSE_FIRST_NS };
	uint64_t until = clock_mono_ns() + BIND_RETRY_NS;
	int result = bind_once(s, o, zerocopy);

	while (result == -EBUSY && clock_mono_ns() < until) {
		nanosleep(&pause, NULL);
		pause.tv_nsec = MIN(pause.tv_nsec * 2, BIND_PAUSE_LAST_NS);
		result = bind_once(s, o, zerocopy);
	}
	return result;
}

static void set_options(struct xdp_socket *s, const struct xdp_socket_options *o)
{
	int on = 1, budget = (int)o->ring_size, us = (int)o->busy_poll_us, packets = BUSY_POLL_BUDGET;

	s->tx_budget = TX_BUDGET_DEFAULT;
	if (!s->is_zerocopy && setsockopt(s->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget)) == 0)
		s->tx_budget = o->ring_size;
	if (!o->busy_poll_us)
		return;
	/* PREFER and a budget above the default need CAP_NET_ADMIN, which is still there. */
	s->is_busy_poll = setsockopt(s->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof(on)) == 0 &&
			  setsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us)) == 0 &&
			  setsockopt(s->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &packets, sizeof(packets)) == 0;
	if (!s->is_busy_poll)
		log_write(M_XDP_BUSY_POLL, "%s queue %u: busy polling is not to be had: %s", o->ifname, o->queue,
			  strerror(errno));
}

static enum err allocate(struct xdp_socket *s, const struct xdp_socket_options *o, const struct device *d, bool may_zerocopy)
{
	struct umem *u = &s->umem;
	size_t want = 2 * (size_t)o->ring_size + (may_zerocopy ? d->rx_ring : 0) + UMEM_BATCH;

	/* In copy mode the batch comes out of the RX ring's share. */
	if (!may_zerocopy)
		want -= UMEM_BATCH;
	s->area_bytes_ = (want * UMEM_FRAME_BYTES + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	u->frame_count = (uint32_t)(s->area_bytes_ / UMEM_FRAME_BYTES);
	u->spare = calloc(u->frame_count, sizeof(*u->spare));
	u->area = map_area(s->area_bytes_, &s->has_huge_pages);
#ifdef SKUA_DEBUG
	u->owner = calloc(u->frame_count, 1);
	if (!u->owner)
		return ERR_NOMEM;
#endif
	return u->spare && u->area ? ERR_OK : ERR_NOMEM;
}

enum err xdp_socket_create(struct xdp_socket **out, const struct xdp_socket_options *o)
{
	struct xdp_socket *s = NULL;
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct device d;
	const char *reason = "xdp.mode says so";
	bool zerocopy = o->mode == XDP_MODE_ZEROCOPY;
	int result;
	enum err err = device_query(&d, o->ifname);

	if (err) {
		log_write(M_XDP_SOCKET_FAILED, "%s queue %u: %s", o->ifname, o->queue, err_text(err));
		return err;
	}
	if (o->mode == XDP_MODE_AUTO)
		zerocopy = device_can_zerocopy(&d, &reason);
	/* Refused without CAP_SYS_RESOURCE; CAP_IPC_LOCK does as well. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	s = calloc(1, sizeof(*s));
	if (!s)
		return ERR_NOMEM;
	s->queue = o->queue;
	s->ifindex = d.ifindex;
	err = allocate(s, o, &d, zerocopy);
	if (err) {
		log_write(M_XDP_SOCKET_FAILED, "%s queue %u: no memory for %zu octets of frames; lower xdp.ring-size", o->ifname,
			  o->queue, s->area_bytes_);
		goto failed;
	}
	result = bind_patiently(s, o, zerocopy);
	if (zerocopy && o->mode == XDP_MODE_AUTO && result && result != -EBUSY) {
		log_write(M_XDP_FALLBACK, "%s queue %u: zero-copy was refused (%s): using copy mode", o->ifname, o->queue,
			  strerror(-result));
		zerocopy = false;
		reason = "zero-copy was refused";
		result = bind_patiently(s, o, zerocopy);
	}
	if (result) {
		log_write(M_XDP_SOCKET_FAILED, "%s queue %u: cannot make the AF_XDP socket in %s mode: %s; %s", o->ifname,
			  o->queue, zerocopy ? "zero-copy" : "copy", strerror(-result), hint(-result));
		err = err_from_errno(-result);
		goto failed;
	}
	s->fd = xsk_socket__fd(s->handle_);
	s->is_zerocopy = zerocopy;
	set_options(s, o);
	log_write(M_XDP_SOCKET_READY, "%s queue %u (driver %s): %s mode (%s), %u frames in %s pages", o->ifname, o->queue,
		  d.driver[0] ? d.driver : "unknown",
		  o->mode == XDP_MODE_SKB ? "skb"
		  : zerocopy		  ? "zero-copy"
					  : "copy",
		  reason, s->umem.frame_count, s->has_huge_pages ? "huge" : "small");
	*out = s;
	return ERR_OK;
failed:
	xdp_socket_destroy(s);
	return err;
}

void xdp_socket_destroy(struct xdp_socket *take)
{
	if (!take)
		return;
	/* Each unmaps its rings, then closes: the other way round, the queue stays busy. */
	if (take->handle_)
		xsk_socket__delete(take->handle_);
	if (take->umem_handle_)
		xsk_umem__delete(take->umem_handle_);
	if (take->umem.area)
		munmap(take->umem.area, take->area_bytes_);
	free(take->umem.spare);
#ifdef SKUA_DEBUG
	free(take->umem.owner);
#endif
	free(take);
}

enum err xdp_socket_insert(const struct xdp_socket *s, int xskmap_fd)
{
	return bpf_map_update_elem(xskmap_fd, &s->queue, &s->fd, BPF_ANY) == 0 ? ERR_OK : err_from_errno(errno);
}

enum err xdp_socket_statistics(const struct xdp_socket *s, struct xdp_statistics *out)
{
	struct xdp_statistics statistics = { 0 };
	socklen_t bytes = sizeof(statistics);

	if (getsockopt(s->fd, SOL_XDP, XDP_STATISTICS, &statistics, &bytes) != 0)
		return err_from_errno(errno);
	*out = statistics;
	return ERR_OK;
}
