/* SPDX-License-Identifier: Apache-2.0 */
/* A record is its header, its octets, and padding to a multiple of 8. One that does not fit before the end of the data lies at its start, behind
 * a header that says so:
 *
 *     ... | header | octets, padding | header: SKIP | unused | end      start | header | octets, padding | ...
 *
 * Indices count octets and are never reduced, so that full and empty differ: index & (capacity - 1) is the place.
 * Budget: reserve and commit 30 instructions, pop 40 and the copy (bench: none of its own; part of the miss path). */
#include "table/ring.h"

#define HEADER_BYTES 8u
#define SKIP UINT32_MAX /* in place of a length */

/* Octets of the whole record; record_bytes is at most ring_record_max, so nothing overflows. */
static uint32_t whole(uint32_t record_bytes) { return HEADER_BYTES + ((record_bytes + 7) & ~7u); }

/* The header may be written by the other side while we look: one load, then never again. */
static uint32_t header_load(const uint8_t *at) { return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_RELAXED); }
static void header_store(uint8_t *at, uint32_t value) { __atomic_store_n((uint32_t *)(void *)at, value, __ATOMIC_RELAXED); }

void *ring_reserve(struct ring_producer *p, uint32_t record_bytes)
{
	if (record_bytes > p->capacity_ / 4 - HEADER_BYTES)
		return NULL;
	uint32_t offset = p->tail_ & (p->capacity_ - 1);
	uint32_t bytes = whole(record_bytes);
	uint32_t skip = bytes > p->capacity_ - offset ? p->capacity_ - offset : 0;
	uint32_t needed = bytes + skip;

	if (needed > p->capacity_ - (p->tail_ - p->head_seen_)) {
		/* Acquires what ring_pop releases: the consumer has copied what stood there. */
		uint32_t head = atomic_load_explicit(&p->map_->head, memory_order_acquire) & ~7u;
		if (p->tail_ - head > p->capacity_) /* impossible: as if full, until a sound consumer attaches */
			return NULL;
		p->head_seen_ = head;
		if (needed > p->capacity_ - (p->tail_ - head))
			return NULL;
	}
	if (skip) {
		header_store(p->map_->data + offset, SKIP);
		offset = 0;
	}
	header_store(p->map_->data + offset, record_bytes);
	p->reserved_ = needed;
	return p->map_->data + offset + HEADER_BYTES;
}

void ring_commit(struct ring_producer *p)
{
	p->tail_ += p->reserved_;
	p->reserved_ = 0;
	/* Releases the record; ring_pop acquires it. */
	atomic_store_explicit(&p->map_->tail, p->tail_, memory_order_release);
}

bool ring_needs_kick(struct ring_producer *p)
{
	if (p->tail_ == p->kicked_)
		return false;
	p->kicked_ = p->tail_;
	/* Against ring_prepare_sleep, which stores is_sleeping and then loads tail: of four sequentially consistent operations, one side's
	 * load sees the other side's store. */
	atomic_store_explicit(&p->map_->tail, p->tail_, memory_order_seq_cst);
	if (!atomic_load_explicit(&p->map_->is_sleeping, memory_order_seq_cst))
		return false;
	if (!atomic_exchange_explicit(&p->map_->is_sleeping, 0, memory_order_relaxed))
		return false;
	uint32_t kicks = atomic_load_explicit(&p->map_->kicks, memory_order_relaxed);
	atomic_store_explicit(&p->map_->kicks, kicks + 1, memory_order_relaxed);
	return true;
}

static void consumed(struct ring_consumer *c, uint32_t head)
{
	c->head_ = head;
	/* Releases the place; ring_reserve acquires it. */
	atomic_store_explicit(&c->map_->head, head, memory_order_release);
}

static enum ring_result corrupt(struct ring_consumer *c)
{
	consumed(c, c->tail_seen_);
	return RING_CORRUPT;
}

enum ring_result ring_pop(struct ring_consumer *c, void *out, uint32_t out_bytes, uint32_t *record_bytes)
{
	if (c->tail_seen_ == c->head_) {
		/* Acquires what ring_commit releases. */
		c->tail_seen_ = atomic_load_explicit(&c->map_->tail, memory_order_acquire) & ~7u;
		if (c->tail_seen_ == c->head_)
			return RING_WAIT;
	}
	uint32_t ready = c->tail_seen_ - c->head_; /* a multiple of 8, so at least a header */
	if (ready > c->capacity_)
		return corrupt(c);
	uint32_t head = c->head_;
	uint32_t offset = head & (c->capacity_ - 1);
	uint32_t bytes = header_load(c->map_->data + offset);

	if (bytes == SKIP) { /* at most once: what follows lies at the start, and is no SKIP */
		uint32_t skip = c->capacity_ - offset;
		if (ready <= skip)
			return corrupt(c);
		ready -= skip;
		head += skip;
		offset = 0;
		bytes = header_load(c->map_->data);
	}
	if (bytes > c->capacity_ / 4 - HEADER_BYTES || whole(bytes) > ready || whole(bytes) > c->capacity_ - offset)
		return corrupt(c);
	if (bytes > out_bytes) {
		consumed(c, head + whole(bytes));
		return RING_CORRUPT;
	}
	memcpy(out, c->map_->data + offset + HEADER_BYTES, bytes);
	*record_bytes = bytes;
	consumed(c, head + whole(bytes));
	return RING_OK;
}

bool ring_prepare_sleep(struct ring_consumer *c)
{
	if (c->tail_seen_ != c->head_)
		return false;
	/* Sequentially consistent, both: see ring_needs_kick. */
	atomic_store_explicit(&c->map_->is_sleeping, 1, memory_order_seq_cst);
	if ((atomic_load_explicit(&c->map_->tail, memory_order_seq_cst) & ~7u) == c->head_)
		return true;
	ring_cancel_sleep(c);
	return false;
}

void ring_cancel_sleep(struct ring_consumer *c) { atomic_store_explicit(&c->map_->is_sleeping, 0, memory_order_relaxed); }
