/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/umem.h"

ALWAYS_INLINE uint32_t frame_of(uint64_t address) { return (uint32_t)(address >> UMEM_FRAME_SHIFT); }

#ifdef SKUA_DEBUG
static void move(struct umem *u, uint32_t frame, enum umem_owner from, enum umem_owner to)
{
	if (!u->owner)
		return;
	ASSERT(u->owner[frame] == from);
	u->owner[frame] = (uint8_t)to;
}
#else
#define move(u, frame, from, to) ((void)(frame))
#endif

/* The spare frames are a queue, so that all frames go round in the order of their addresses, nearly: the CPU fetches the next ones
 * ahead, and the kernel's own record of each. As a stack they come back shuffled, which costs more than a warm frame saves. */
ALWAYS_INLINE void put_spare(struct umem *u, uint32_t frame)
{
	uint32_t at = u->spare_first + u->spare_count++;

	u->spare[at < u->frame_count ? at : at - u->frame_count] = frame;
}

ALWAYS_INLINE uint32_t take_spare(struct umem *u)
{
	uint32_t frame = u->spare[u->spare_first];

	u->spare_first = u->spare_first + 1 < u->frame_count ? u->spare_first + 1 : 0;
	u->spare_count--;
	return frame;
}

void umem_init(struct umem *u, uint8_t *area, uint32_t frame_count, uint32_t *spare)
{
	u->area = area;
	u->frame_count = u->rx_most = frame_count;
	u->spare = spare;
	u->with_rx = u->with_tx = 0;
	for (uint32_t i = 0; i < frame_count; i++)
		spare[i] = i;
	u->spare_first = 0;
	u->spare_count = frame_count;
}

bool umem_is_conserved(const struct umem *u)
{
#ifdef SKUA_DEBUG
	uint32_t count[4] = { 0 };

	if (u->owner) {
		for (uint32_t i = 0; i < u->frame_count; i++)
			count[u->owner[i] & 3]++;
		if (count[UMEM_SPARE] != u->spare_count || count[UMEM_WITH_RX] != u->with_rx || count[UMEM_WITH_TX] != u->with_tx)
			return false;
	}
#endif
	return u->with_rx + u->with_tx + u->spare_count == u->frame_count;
}

uint32_t umem_receive(struct umem *u, struct umem_packet *out, uint32_t max, uint32_t *lost)
{
	uint32_t index, n = xsk_ring_cons__peek(&u->rx, max, &index), taken = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&u->rx, index + i);
		uint64_t address = d->addr;
		uint32_t bytes = d->len, room = UMEM_FRAME_BYTES - (uint32_t)(address & (UMEM_FRAME_BYTES - 1));

		if (unlikely(frame_of(address) >= u->frame_count || bytes > room)) {
			*lost += 1;
			continue;
		}
		__builtin_prefetch(u->area + address);
		__builtin_prefetch(u->area + address + CACHE_LINE);
		move(u, frame_of(address), UMEM_WITH_RX, UMEM_IN_BATCH);
		out[taken++] = (struct umem_packet){ address, bytes };
	}
	if (n) {
		xsk_ring_cons__release(&u->rx, n);
		u->with_rx -= taken;
	}
	return taken;
}

uint32_t umem_send(struct umem *u, const struct umem_packet *packets, uint32_t count)
{
	uint32_t index, n = MIN(xsk_prod_nb_free(&u->tx, count), count);

	if (!n || xsk_ring_prod__reserve(&u->tx, n, &index) != n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		struct xdp_desc *d = xsk_ring_prod__tx_desc(&u->tx, index + i);

		DEBUG_ASSERT(packets[i].bytes >= 14);
		DEBUG_ASSERT((packets[i].address & (UMEM_FRAME_BYTES - 1)) + packets[i].bytes <= UMEM_FRAME_BYTES);
		move(u, frame_of(packets[i].address), UMEM_IN_BATCH, UMEM_WITH_TX);
		d->addr = packets[i].address;
		d->len = packets[i].bytes;
		d->options = 0;
	}
	xsk_ring_prod__submit(&u->tx, n);
	u->with_tx += n;
	return n;
}

void umem_drop(struct umem *u, uint64_t address)
{
	move(u, frame_of(address), UMEM_IN_BATCH, UMEM_SPARE);
	put_spare(u, frame_of(address));
}

bool umem_take(struct umem *u, uint64_t *address)
{
	if (unlikely(u->spare_count == 0))
		return false;
	uint32_t frame = take_spare(u);

	move(u, frame, UMEM_SPARE, UMEM_IN_BATCH);
	*address = (uint64_t)frame << UMEM_FRAME_SHIFT;
	return true;
}

uint32_t umem_recycle(struct umem *u, uint32_t *lost)
{
	uint32_t index, completed = 0, n = xsk_ring_cons__peek(&u->completion, u->frame_count, &index);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t frame = frame_of(*xsk_ring_cons__comp_addr(&u->completion, index + i));

		if (unlikely(frame >= u->frame_count || u->spare_count == u->frame_count)) {
			*lost += 1;
			continue;
		}
		move(u, frame, UMEM_WITH_TX, UMEM_SPARE);
		put_spare(u, frame);
		completed++;
	}
	if (n) {
		xsk_ring_cons__release(&u->completion, n);
		u->with_tx -= completed;
	}
	n = MIN(u->spare_count, u->rx_most - u->with_rx);
	if (n && xsk_ring_prod__reserve(&u->fill, n, &index) == n) {
		for (uint32_t i = 0; i < n; i++) {
			uint32_t frame = take_spare(u);

			move(u, frame, UMEM_SPARE, UMEM_WITH_RX);
			*xsk_ring_prod__fill_addr(&u->fill, index + i) = (uint64_t)frame << UMEM_FRAME_SHIFT;
		}
		xsk_ring_prod__submit(&u->fill, n);
		u->with_rx += n;
	}
	return completed;
}
