/* SPDX-License-Identifier: Apache-2.0 */
/* umem.h: the frames and the four rings of one AF_XDP socket, seen from the thread that owns them.
 *
 *        +------------- fill ring --> kernel, driver --> RX ring -----+
 *        |                                                            v
 *   spare frames <---------- dropped, bad ----------------------- the batch
 *        ^                                                            |
 *        +--- completion ring <-- kernel, driver <-- TX ring <--------+
 *
 * Ownership  A frame has exactly one owner. Counts (release) and an owner octet per frame (SKUA_DEBUG) follow it at each step:
 *            frame_count = with_rx + with_tx + spare_count + what the batch holds, always. Feeding a frame twice would
 *            corrupt packets silently.
 * Rings      One producer, one consumer each: every function here belongs to the serving thread.
 * Room       Fill and completion ring hold every frame, so giving back can't fail.
 * Trust      The kernel's addresses are range-checked: the rings are shared memory. */
#pragma once
#include "base/base.h"

#include <xdp/xsk.h>

#define UMEM_FRAME_SHIFT 11u
#define UMEM_FRAME_BYTES (1u << UMEM_FRAME_SHIFT)
#define UMEM_HEADROOM_BYTES 256u /* the kernel's own; ours is 0 */
#define UMEM_BATCH 64u

enum umem_owner { UMEM_SPARE, UMEM_WITH_RX, UMEM_IN_BATCH, UMEM_WITH_TX };

struct umem {
	struct xsk_ring_cons rx, completion;
	struct xsk_ring_prod tx, fill;
	uint8_t *area; /* borrowed: frame_count frames */
	uint32_t frame_count;
	uint32_t rx_most; /* with_rx is filled up to this */
	uint32_t with_rx, with_tx, spare_count;
	uint32_t *spare;      /* owned by who set it up: room for frame_count frame numbers; a queue */
	uint32_t spare_first; /* where in it the next one to be used stands */
#ifdef SKUA_DEBUG
	uint8_t *owner; /* enum umem_owner of each frame; NULL switches the check off */
#endif
};

/* Received and to be sent frames: an address in the UMEM and a length, as the rings hold them. */
struct umem_packet {
	uint64_t address;
	uint32_t bytes;
};

/* All frames are spare at first, and may all be filled in (rx_most). Rings are set up by the caller. */
void umem_init(struct umem *u, uint8_t *area, uint32_t frame_count, uint32_t *spare);
/* Counts of all owners add up; SKUA_DEBUG: and agree with the owner octets. For tests and assertions between batches. */
bool umem_is_conserved(const struct umem *u);

/* Takes up to max (at most UMEM_BATCH) received packets out of the RX ring into the batch; impossible addresses are left out and
 * counted in *lost. */
MUST_USE HOT uint32_t umem_receive(struct umem *u, struct umem_packet *out, uint32_t max, uint32_t *lost);
/* Gives packets of the batch to the TX ring. Returns how many: fewer when it is full. They are the first ones. */
MUST_USE HOT uint32_t umem_send(struct umem *u, const struct umem_packet *packets, uint32_t count);
/* A spare frame joins the batch, for what answers no packet of this batch. False: none is spare. */
MUST_USE HOT bool umem_take(struct umem *u, uint64_t *address);
/* Gives a frame of the batch back unsent. */
HOT void umem_drop(struct umem *u, uint64_t address);
/* Moves completed frames to the spare ones, and spare ones to the fill ring until with_rx is rx_most: those that were spare
 * longest first. Returns how many were completed. Bounded by frame_count. */
HOT uint32_t umem_recycle(struct umem *u, uint32_t *lost);

/* Descriptors that the kernel has not taken out of the TX ring yet. */
ALWAYS_INLINE uint32_t umem_tx_pending(const struct umem *u)
{
	return u->tx.cached_prod - __atomic_load_n(u->tx.consumer, __ATOMIC_ACQUIRE);
}
ALWAYS_INLINE bool umem_rx_is_empty(const struct umem *u)
{
	return __atomic_load_n(u->rx.producer, __ATOMIC_ACQUIRE) == u->rx.cached_cons;
}
