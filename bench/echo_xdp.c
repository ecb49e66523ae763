/* SPDX-License-Identifier: Apache-2.0 */
/* echo_xdp IF: the ceiling of AF_XDP on one queue. Each query comes back with QR set, addresses swapped, and nothing looked at.
 * One XSK on queue 0, batches of 64, one kick a batch, poll when idle. Ends on SIGTERM; prints how many frames it sent. */
#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include "base/base.h"
#include "echo.skel.h"

#define FRAMES 8192u
#define FRAME_BYTES 2048u
#define RING 4096u
#define BATCH 64u

static volatile sig_atomic_t is_stopping;
static void on_signal(int number)
{
	(void)number;
	is_stopping = 1;
}

struct echoer {
	uint8_t *memory;
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill, tx;
	struct xsk_ring_cons completion, rx;
	uint64_t sent;
	unsigned in_flight;
};

static void swap_bytes(uint8_t *a, uint8_t *b, size_t count)
{
	uint8_t saved[8];

	memcpy(saved, a, count);
	memcpy(a, b, count);
	memcpy(b, saved, count);
}

/* Ethernet, IPv4 without options, UDP: the program passes nothing else. A checksum of 0 is none (RFC 768). */
static void turn_around(uint8_t *frame)
{
	swap_bytes(frame, frame + 6, 6);
	swap_bytes(frame + 26, frame + 30, 4);
	swap_bytes(frame + 34, frame + 36, 2);
	frame[40] = frame[41] = 0;
	frame[44] |= 0x80;
}

static void recycle(struct echoer *e)
{
	uint32_t from, to, count = xsk_ring_cons__peek(&e->completion, 4 * BATCH, &from);

	if (count == 0 || xsk_ring_prod__reserve(&e->fill, count, &to) != count)
		return;
	for (uint32_t i = 0; i < count; i++)
		*xsk_ring_prod__fill_addr(&e->fill, to + i) = *xsk_ring_cons__comp_addr(&e->completion, from + i);
	xsk_ring_prod__submit(&e->fill, count);
	xsk_ring_cons__release(&e->completion, count);
	e->in_flight -= count;
}

static void kick(struct echoer *e) { sendto(xsk_socket__fd(e->socket), NULL, 0, MSG_DONTWAIT, NULL, 0); }

static void serve(struct echoer *e)
{
	struct pollfd wait = { .fd = xsk_socket__fd(e->socket), .events = POLLIN };

	while (!is_stopping) {
		uint32_t from, to, count = xsk_ring_cons__peek(&e->rx, BATCH, &from);

		if (count > 0) {
			while (xsk_ring_prod__reserve(&e->tx, count, &to) < count) {
				kick(e);
				recycle(e);
			}
			for (uint32_t i = 0; i < count; i++) {
				const struct xdp_desc *in = xsk_ring_cons__rx_desc(&e->rx, from + i);

				turn_around(xsk_umem__get_data(e->memory, in->addr));
				*xsk_ring_prod__tx_desc(&e->tx, to + i) = (struct xdp_desc){ .addr = in->addr, .len = in->len };
			}
			xsk_ring_prod__submit(&e->tx, count);
			xsk_ring_cons__release(&e->rx, count);
			e->sent += count;
			e->in_flight += count;
		}
		if (e->in_flight > 0) {
			kick(e);
			recycle(e);
		}
		if (count == 0)
			poll(&wait, 1, 100);
	}
}

static int open_socket(struct echoer *e, const char *interface)
{
	struct xsk_umem_config umem = { .fill_size = RING, .comp_size = RING, .frame_size = FRAME_BYTES };
	struct xsk_socket_config socket = { .rx_size = RING,
					    .tx_size = RING,
					    .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
					    .bind_flags = XDP_USE_NEED_WAKEUP };
	uint32_t at;

	e->memory = mmap(NULL, FRAMES * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (e->memory == MAP_FAILED)
		return -1;
	int error = xsk_umem__create(&e->umem, e->memory, FRAMES * FRAME_BYTES, &e->fill, &e->completion, &umem);

	if (error)
		return error;
	if (xsk_ring_prod__reserve(&e->fill, RING, &at) != RING)
		return -1;
	for (uint32_t i = 0; i < RING; i++)
		*xsk_ring_prod__fill_addr(&e->fill, at + i) = (uint64_t)i * FRAME_BYTES;
	xsk_ring_prod__submit(&e->fill, RING);
	return xsk_socket__create(&e->socket, interface, 0, e->umem, &e->rx, &e->tx, &socket);
}

int main(int argc, char **argv)
{
	static struct echoer echo;
	uint32_t queue = 0;
	unsigned ifindex = argc == 2 ? if_nametoindex(argv[1]) : 0;
	struct echo *skeleton = ifindex ? echo__open_and_load() : NULL;

	if (!skeleton) {
		fputs("usage: echo_xdp INTERFACE (which must exist; root)\n", stderr);
		return 2;
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	struct bpf_link *link = bpf_program__attach_xdp(skeleton->progs.echo_steer, (int)ifindex);
	int error = link ? open_socket(&echo, argv[1]) : -1;

	if (error) {
		fprintf(stderr, "echo_xdp: %s: %s\n", argv[1], strerror(error < 0 ? -error : error));
		return 1;
	}
	int fd = xsk_socket__fd(echo.socket);

	bpf_map__update_elem(skeleton->maps.xsks, &queue, sizeof queue, &fd, sizeof fd, 0);
	serve(&echo);
	printf("{\"sent\": %llu}\n", (unsigned long long)echo.sent);
	bpf_link__destroy(link);
	xsk_socket__delete(echo.socket);
	xsk_umem__delete(echo.umem);
	echo__destroy(skeleton);
	return 0;
}
