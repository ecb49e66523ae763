/* SPDX-License-Identifier: Apache-2.0 */
/* One AF_XDP socket on queue 0; flows are source ports. The server's MAC is given: there is no ARP here. */
#include "bench/generate.h"

#include "generate.skel.h"

#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#define FRAMES 8192u
#define FRAME_BYTES 2048u
#define RING 4096u
#define HEADERS 42u /* Ethernet, IPv4, UDP */

struct xdp_wire {
	struct generate_wire wire;
	struct generate *skeleton;
	struct bpf_link *link;
	uint8_t *memory;
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	uint32_t free_frames[FRAMES], free_count;
	uint8_t head[HEADERS]; /* of every query; ports, lengths and checksum are filled in */
	uint32_t ip_sum;       /* of the head without its length */
};

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

static void take_completed(struct xdp_wire *w)
{
	uint32_t at, n = xsk_ring_cons__peek(&w->completion, RING, &at);

	for (uint32_t i = 0; i < n; i++)
		w->free_frames[w->free_count++] = (uint32_t)(*xsk_ring_cons__comp_addr(&w->completion, at + i) / FRAME_BYTES);
	xsk_ring_cons__release(&w->completion, n);
}

static void kick(struct xdp_wire *w)
{
	if (xsk_ring_prod__needs_wakeup(&w->tx))
		(void)!sendto(xsk_socket__fd(w->socket), NULL, 0, MSG_DONTWAIT, NULL, 0);
}

static unsigned xdp_send(struct generate_wire *wire, const struct generate_message *messages, unsigned count)
{
	struct xdp_wire *w = (struct xdp_wire *)wire;
	uint32_t at;

	take_completed(w);
	count = MIN(count, w->free_count);
	count = count ? xsk_ring_prod__reserve(&w->tx, count, &at) : 0;
	for (unsigned i = 0; i < count; i++) {
		const struct generate_message *m = &messages[i];
		uint64_t address = (uint64_t)w->free_frames[--w->free_count] * FRAME_BYTES;
		uint8_t *p = w->memory + address;

		memcpy(p, w->head, HEADERS);
		store_be16(p + 16, (uint16_t)(28 + m->bytes));
		store_be16(p + 24, fold(w->ip_sum + 28u + m->bytes));
		store_be16(p + 34, (uint16_t)(GENERATE_FIRST_PORT + m->flow));
		store_be16(p + 38, (uint16_t)(8 + m->bytes));
		memcpy(p + HEADERS, m->data, m->bytes);
		store_be16(p + HEADERS, m->id);
		*xsk_ring_prod__tx_desc(&w->tx, at + i) = (struct xdp_desc){ .addr = address, .len = HEADERS + m->bytes };
	}
	xsk_ring_prod__submit(&w->tx, count);
	kick(w);
	return count;
}

static unsigned xdp_receive(struct generate_wire *wire, struct generate_reply *replies)
{
	struct xdp_wire *w = (struct xdp_wire *)wire;
	uint32_t at, to, n = xsk_ring_cons__peek(&w->rx, GENERATE_BATCH, &at);
	unsigned count = 0;

	if (w->free_count < FRAMES / 2) {
		take_completed(w);
		kick(w);
	}
	if (n == 0 || xsk_ring_prod__reserve(&w->fill, n, &to) != n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&w->rx, at + i);
		const uint8_t *p = w->memory + d->addr;

		if (d->len >= HEADERS + 12)
			replies[count++] = (struct generate_reply){ .flow = (uint16_t)(load_be16(p + 36) - GENERATE_FIRST_PORT),
								    .id = load_be16(p + HEADERS),
								    .rcode = p[HEADERS + 3] & 15,
								    .flags = p[HEADERS + 2] };
		*xsk_ring_prod__fill_addr(&w->fill, to + i) = d->addr / FRAME_BYTES * FRAME_BYTES;
	}
	xsk_ring_prod__submit(&w->fill, n);
	xsk_ring_cons__release(&w->rx, n);
	return count;
}

static void xdp_wait(struct generate_wire *wire, uint64_t timeout_ns)
{
	struct xdp_wire *w = (struct xdp_wire *)wire;
	struct pollfd p = { .fd = xsk_socket__fd(w->socket), .events = POLLIN };
	struct timespec t = { .tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000) };

	(void)ppoll(&p, 1, &t, NULL);
}

static void xdp_close(struct generate_wire *wire)
{
	struct xdp_wire *w = (struct xdp_wire *)wire;

	bpf_link__destroy(w->link);
	xsk_socket__delete(w->socket);
	xsk_umem__delete(w->umem);
	generate__destroy(w->skeleton);
	free(w);
}

static void make_head(struct xdp_wire *w, const struct generate_options *o)
{
	uint8_t *ip = w->head + 14;

	memcpy(w->head, o->server_mac, 6);
	memcpy(w->head + 6, o->own_mac, 6);
	store_be16(w->head + 12, 0x0800);
	store_be16(ip, 0x4500);
	store_be16(ip + 6, 0x4000);
	store_be16(ip + 8, 64 << 8 | IPPROTO_UDP);
	memcpy(ip + 12, &o->own, 4);
	memcpy(ip + 16, &o->server.sin_addr, 4);
	memcpy(ip + 22, &o->server.sin_port, 2);
	for (unsigned i = 0; i < 20; i += 2)
		w->ip_sum += load_be16(ip + i);
}

static int open_socket(struct xdp_wire *w, const char *interface)
{
	struct xsk_umem_config umem = { .fill_size = RING, .comp_size = RING, .frame_size = FRAME_BYTES };
	struct xsk_socket_config socket = { .rx_size = RING,
					    .tx_size = RING,
					    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
					    .bind_flags = XDP_USE_NEED_WAKEUP };
	uint32_t at;

	w->memory = mmap(NULL, FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (w->memory == MAP_FAILED)
		return -1;
	int error = xsk_umem__create(&w->umem, w->memory, FRAMES * FRAME_BYTES, &w->fill, &w->completion, &umem);

	if (error)
		return error;
	/* The first half is received into, the second half is sent from. */
	if (xsk_ring_prod__reserve(&w->fill, RING, &at) != RING)
		return -1;
	for (uint32_t i = 0; i < RING; i++) {
		*xsk_ring_prod__fill_addr(&w->fill, at + i) = (uint64_t)i * FRAME_BYTES;
		w->free_frames[w->free_count++] = RING + i;
	}
	xsk_ring_prod__submit(&w->fill, RING);
	return xsk_socket__create(&w->socket, interface, 0, w->umem, &w->rx, &w->tx, &socket);
}

struct generate_wire *generate_xdp(const struct generate_options *o)
{
	struct xdp_wire *w = calloc(1, sizeof(*w));
	unsigned ifindex = if_nametoindex(o->interface);
	uint32_t queue = 0;
	int error = -1;

	if (!w || !ifindex || !(w->skeleton = generate__open()))
		goto failed;
	w->wire = (struct generate_wire){ xdp_send, xdp_receive, xdp_wait, xdp_close };
	w->skeleton->rodata->first_port = GENERATE_FIRST_PORT;
	w->skeleton->rodata->flows = (uint16_t)o->flows;
	make_head(w, o);
	if (generate__load(w->skeleton) != 0 ||
	    !(w->link = bpf_program__attach_xdp(w->skeleton->progs.generate_steer, (int)ifindex)))
		goto failed;
	error = open_socket(w, o->interface);
	if (error)
		goto failed;
	int fd = xsk_socket__fd(w->socket);

	if (bpf_map__update_elem(w->skeleton->maps.xsks, &queue, sizeof(queue), &fd, sizeof(fd), 0) == 0)
		return &w->wire;
failed:
	fprintf(stderr, "generate: AF_XDP on %s: %s\n", o->interface,
		ifindex ? strerror(error < 0 ? -error : error) : "no such interface");
	free(w);
	return NULL;
}
