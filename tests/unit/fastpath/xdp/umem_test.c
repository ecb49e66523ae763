/* SPDX-License-Identifier: Apache-2.0 */
/* Frames are conserved whatever the kernel and the network do: rings in plain memory, with a random kernel on their other side
 * that
 * takes, delivers, completes and stalls as it likes, and remembers which frames are its own. */
#include "answer/answer.h"

static void fake_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q) { (void)s, (void)t, (void)q; }
static void fake_prefetch(const struct snapshot *s, struct answer_query *q) { (void)s, (void)q; }
static enum answer_verdict fake_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
#define answer_prepare fake_prepare
#define answer_prefetch fake_prefetch
#define answer_finish fake_finish
#include "fastpath/xdp/serve_hot.c"

#include "tests/unit/fastpath/xdp/packet.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define FRAMES 256u
#define RING 64u /* RX and TX: small, so that they fill */
#define FILL FRAMES
#define STEPS 40000u

enum kernel_owner { APPLICATION, FILL_RING, DRIVER_RX, RX_RING, TX_RING, DRIVER_TX, COMPLETION_RING };

struct ring {
	uint32_t producer, consumer, flags, size;
	void *entries;
};

static struct ring fill_ring, rx_ring, tx_ring, completion_ring;
static uint8_t owner[FRAMES]; /* as the kernel sees it */
static uint32_t driver_rx[FRAMES], driver_rx_count, driver_tx[FRAMES], driver_tx_count;
static struct umem umem;
static struct serve serving;
static struct counter_block counters;
static uint32_t random_state;

static uint32_t dice(uint32_t sides)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return (random_state >> 3) % sides;
}

static enum answer_verdict fake_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	static const enum answer_verdict verdicts[] = { ANSWER_SEND, ANSWER_SEND, ANSWER_SEND, ANSWER_SEND_AND_REFRESH,
							ANSWER_MISS, ANSWER_DROP };

	(void)s, (void)t;
	q->response_bytes = FRAME_DNS_HEADER_BYTES + dice(q->capacity_bytes - FRAME_DNS_HEADER_BYTES + 1);
	return verdicts[dice(ARRAY_LEN(verdicts))];
}

static void ring_init(struct ring *r, uint32_t size, size_t entry_bytes)
{
	*r = (struct ring){ .size = size, .entries = calloc(size, entry_bytes) };
}
static void attach_producer(struct xsk_ring_prod *p, struct ring *r)
{
	*p = (struct xsk_ring_prod){ .mask = r->size - 1,
				     .size = r->size,
				     .producer = &r->producer,
				     .consumer = &r->consumer,
				     .ring = r->entries,
				     .flags = &r->flags,
				     .cached_cons = r->size };
}
static void attach_consumer(struct xsk_ring_cons *c, struct ring *r)
{
	*c = (struct xsk_ring_cons){ .mask = r->size - 1,
				     .size = r->size,
				     .producer = &r->producer,
				     .consumer = &r->consumer,
				     .ring = r->entries,
				     .flags = &r->flags };
}

static void give(uint32_t frame, enum kernel_owner from, enum kernel_owner to)
{
	cr_assert_lt(frame, FRAMES);
	cr_assert_eq(owner[frame], from, "frame %u is owned by %u, not by %u", frame, owner[frame], from);
	owner[frame] = (uint8_t)to;
}

/* What the application has published since we looked last. */
static void kernel_look(void)
{
	static uint32_t fill_seen, tx_seen;

	for (; fill_seen != fill_ring.producer; fill_seen++) {
		uint64_t address = ((uint64_t *)fill_ring.entries)[fill_seen % fill_ring.size];

		cr_assert_eq(address % UMEM_FRAME_BYTES, 0u);
		give((uint32_t)(address / UMEM_FRAME_BYTES), APPLICATION, FILL_RING);
	}
	for (; tx_seen != tx_ring.producer; tx_seen++) {
		const struct xdp_desc *d = &((struct xdp_desc *)tx_ring.entries)[tx_seen % tx_ring.size];

		cr_assert_geq(d->len, FRAME_MIN_BYTES);
		cr_assert_leq(d->addr % UMEM_FRAME_BYTES + d->len, UMEM_FRAME_BYTES, "a reply runs out of its frame");
		give((uint32_t)(d->addr / UMEM_FRAME_BYTES), APPLICATION, TX_RING);
	}
}

static size_t write_packet(uint8_t *out)
{
	uint8_t dns[1500] = { 0 };
	struct packet_options o = { .family = dice(2) ? 4 : 6,
				    .vlan = dice(3) ? -1 : 7,
				    .source_port = (uint16_t)(1 + dice(65535)),
				    .destination_port = 53,
				    .dns_bytes = 12 + dice(dice(4) ? 100 : 1400) };
	size_t bytes = packet_make(out, &o, dns);

	if (dice(10) == 0)
		out[dice(60)] ^= (uint8_t)(1 + dice(255)); /* may be refused by the header checks */
	return dice(20) ? bytes : dice((uint32_t)bytes + 1);
}

/* The driver takes frames to receive into, and delivers some. */
static void kernel_receive(uint32_t most)
{
	for (uint32_t i = 0; i < most && fill_ring.consumer != fill_ring.producer; i++, fill_ring.consumer++) {
		uint64_t address = ((uint64_t *)fill_ring.entries)[fill_ring.consumer % fill_ring.size];

		give((uint32_t)(address / UMEM_FRAME_BYTES), FILL_RING, DRIVER_RX);
		driver_rx[driver_rx_count++] = (uint32_t)(address / UMEM_FRAME_BYTES);
	}
	for (uint32_t i = dice(most + 1); i && driver_rx_count && rx_ring.producer - rx_ring.consumer < rx_ring.size; i--) {
		uint32_t at = dice(driver_rx_count), frame = driver_rx[at];
		uint64_t address = (uint64_t)frame * UMEM_FRAME_BYTES + UMEM_HEADROOM_BYTES;

		driver_rx[at] = driver_rx[--driver_rx_count];
		give(frame, DRIVER_RX, RX_RING);
		((struct xdp_desc *)rx_ring.entries)[rx_ring.producer % rx_ring.size] =
			(struct xdp_desc){ .addr = address, .len = (uint32_t)write_packet(umem.area + address) };
		rx_ring.producer++;
	}
}

/* The driver takes frames to send, and completes some, in any order. */
static void kernel_send(uint32_t most)
{
	for (uint32_t i = 0; i < most && tx_ring.consumer != tx_ring.producer; i++, tx_ring.consumer++) {
		uint64_t address = ((struct xdp_desc *)tx_ring.entries)[tx_ring.consumer % tx_ring.size].addr;

		give((uint32_t)(address / UMEM_FRAME_BYTES), TX_RING, DRIVER_TX);
		driver_tx[driver_tx_count++] = (uint32_t)(address / UMEM_FRAME_BYTES);
	}
	for (uint32_t i = dice(most + 1); i && driver_tx_count; i--) {
		uint32_t at = dice(driver_tx_count), frame = driver_tx[at];

		driver_tx[at] = driver_tx[--driver_tx_count];
		give(frame, DRIVER_TX, COMPLETION_RING);
		cr_assert_lt(completion_ring.producer - completion_ring.consumer, completion_ring.size);
		((uint64_t *)completion_ring.entries)[completion_ring.producer++ % completion_ring.size] =
			(uint64_t)frame * UMEM_FRAME_BYTES + UMEM_HEADROOM_BYTES;
	}
}

/* What the application will take of the rings is the application's from the moment it can see it. */
static void application_takes(uint32_t rx_from, uint32_t completion_from)
{
	for (; rx_from != rx_ring.consumer; rx_from++)
		give((uint32_t)(((struct xdp_desc *)rx_ring.entries)[rx_from % rx_ring.size].addr / UMEM_FRAME_BYTES), RX_RING,
		     APPLICATION);
	for (; completion_from != completion_ring.consumer; completion_from++)
		give((uint32_t)(((uint64_t *)completion_ring.entries)[completion_from % completion_ring.size] / UMEM_FRAME_BYTES),
		     COMPLETION_RING, APPLICATION);
}

static void start(void)
{
	uint32_t lost = 0;

	ring_init(&fill_ring, FILL, sizeof(uint64_t));
	ring_init(&completion_ring, FILL, sizeof(uint64_t));
	ring_init(&rx_ring, RING, sizeof(struct xdp_desc));
	ring_init(&tx_ring, RING, sizeof(struct xdp_desc));
	attach_producer(&umem.fill, &fill_ring);
	attach_producer(&umem.tx, &tx_ring);
	attach_consumer(&umem.completion, &completion_ring);
	attach_consumer(&umem.rx, &rx_ring);
	umem_init(&umem, calloc(FRAMES, UMEM_FRAME_BYTES), FRAMES, calloc(FRAMES, sizeof(uint32_t)));
#ifdef SKUA_DEBUG
	umem.owner = calloc(FRAMES, 1);
#endif
	serving.umem = &umem;
	serving.counters = serving.answer.counters = &counters;
	serving.mtu_bytes = 1500;
	umem_recycle(&umem, &lost);
	cr_assert_eq(umem.with_rx, FRAMES);
	kernel_look();
	random_state = 20260101;
}

Test(umem, frames_are_conserved_under_a_random_kernel, .init = start, .timeout = 60)
{
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t rx_from = rx_ring.consumer, completion_from = completion_ring.consumer;
		uint32_t hurry = step / 1000 % 4; /* times in which sending or receiving stalls */

		if (hurry != 1)
			kernel_send(1 + dice(hurry == 2 ? 4 : 90));
		if (hurry != 3)
			kernel_receive(1 + dice(90));
		cr_assert_leq(serve_batch(&serving, NULL), UMEM_BATCH);
		application_takes(rx_from, completion_from);
		kernel_look();
		cr_assert(umem_is_conserved(&umem), "step %u", step);
	}
	cr_expect_eq(serving.lost_frames, 0u);
	cr_expect_gt(counter_get(&counters, C_RX), STEPS / 2);
	cr_expect_gt(counter_get(&counters, C_TX), STEPS / 4);
	cr_expect_gt(counter_get(&counters, C_TX_FULL), 0u, "the TX ring never was full");
	cr_expect_gt(counter_get(&counters, C_FRAME_BAD), 0u);
}

Test(umem, a_stalled_kernel_gets_everything_back_when_it_goes_on, .init = start, .timeout = 30)
{
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t rx_from = rx_ring.consumer, completion_from = completion_ring.consumer;

		kernel_receive(64);
		cr_assert_leq(serve_batch(&serving, NULL), UMEM_BATCH);
		application_takes(rx_from, completion_from);
		kernel_look();
	}
	cr_assert_eq(tx_ring.producer - tx_ring.consumer, RING, "the TX ring is full");
	for (uint32_t i = 0; i < 2000 && (umem.with_rx != FRAMES || rx_ring.producer != rx_ring.consumer); i++) {
		uint32_t rx_from = rx_ring.consumer, completion_from = completion_ring.consumer;

		kernel_send(64);
		cr_assert_leq(serve_batch(&serving, NULL), UMEM_BATCH);
		application_takes(rx_from, completion_from);
		kernel_look();
	}
	cr_expect_eq(umem.with_rx, FRAMES);
	cr_expect_eq(umem.with_tx, 0u);
}

Test(umem, impossible_addresses_of_the_kernel_are_counted_and_not_followed, .init = start)
{
	uint32_t lost = 0;
	struct umem_packet in[UMEM_BATCH];
	const struct xdp_desc wild[] = {
		{ .addr = (uint64_t)FRAMES * UMEM_FRAME_BYTES, .len = 60 },
		{ .addr = UINT64_MAX, .len = 60 },
		{ .addr = UMEM_HEADROOM_BYTES, .len = UMEM_FRAME_BYTES - UMEM_HEADROOM_BYTES + 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(wild); i++)
		((struct xdp_desc *)rx_ring.entries)[rx_ring.producer++] = wild[i];
	cr_expect_eq(umem_receive(&umem, in, UMEM_BATCH, &lost), 0u);
	cr_expect_eq(lost, ARRAY_LEN(wild));
	((uint64_t *)completion_ring.entries)[completion_ring.producer++] = UINT64_MAX;
	cr_expect_eq(umem_recycle(&umem, &lost), 0u);
	cr_expect_eq(lost, ARRAY_LEN(wild) + 1);
	cr_expect(umem_is_conserved(&umem));
}
