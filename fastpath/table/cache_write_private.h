/* SPDX-License-Identifier: Apache-2.0 */
/* cache_write_private.h: what cache_write.c (entries), cache_evict.c (logs) and cache_repair.c say to each other. One thread a shard. */
#pragma once
#include "base/base.h"
#include "table/cache_layout.h"

struct cache_log {
	uint32_t units, base;	      /* base: its first unit among the shard's */
	uint64_t head, tail;	      /* lap << 32 | offset; mirrored in the shard's head */
	_Atomic uint64_t *head_there; /* stored (release) behind a block's words and in front of its slot */
	_Atomic uint64_t *tail_there; /* stored behind the clearing of the slots of what it passes */
};
struct cache_shard {
	alignas(CACHE_LINE) const struct cache_reader *r;
	struct cache_shard_head *head;
	uint64_t *slots, *words; /* words: both logs */
	uint16_t *ghosts;
	uint64_t first_slot; /* in the mark arrays */
	struct cache_log log[CACHE_LOGS];
	uint32_t now_s; /* the latest stored_s: what has expired by then goes first */
};
struct cache_writer {
	struct cache_reader r;
	int cache_fd; /* borrowed: the lock is taken by it */
	struct cache_shard shard[];
};

ALWAYS_INLINE void cache_count(struct cache_shard *s, enum cache_counter n, int64_t by)
{
	_Atomic uint64_t *count = &s->head->count[n];

	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + (uint64_t)by, memory_order_relaxed);
}

/* The first or the second bucket of a name. */
ALWAYS_INLINE uint64_t *cache_bucket_at(const struct cache_shard *s, uint32_t hash_low, unsigned turn)
{
	uint32_t bucket = turn == 0 ? cache_bucket_first(&s->r->g, hash_low) : cache_bucket_second(&s->r->g, hash_low);

	return s->slots + (size_t)bucket * CACHE_BUCKET_SLOTS;
}

/* A block's head as the writer sees it. */
struct cache_found {
	struct cache_block b;
	struct cache_block_long l; /* if it is long; cleared if not */
	uint32_t place;
};
/* Reads the block at a place. False: there is none. The words are the shard's writer's own, but may stem from another that was broken. */
MUST_USE bool cache_found_at(const struct cache_shard *s, uint32_t place, struct cache_found *out);
/* Its name; NULL if it does not lie within the block. */
const uint8_t *cache_found_name(const struct cache_shard *s, const struct cache_found *f);
/* The slot that aims at a place with a lap; NULL if none does. */
uint64_t *cache_slot_of(const struct cache_shard *s, uint32_t hash_low, uint64_t where);
/* Clears a slot and its marks. */
void cache_slot_drop(struct cache_shard *s, uint64_t *slot, const struct cache_found *f);
bool cache_found_is_over(const struct cache_shard *s, const struct cache_found *f);

/* --- logs (cache_evict.c) ------------------------------------------------------------------------------------------------ */

ALWAYS_INLINE uint32_t cache_position_lap(uint64_t position) { return (uint32_t)(position >> 32); }
ALWAYS_INLINE uint32_t cache_position_offset(uint64_t position) { return (uint32_t)position; }
/* Units between tail and head; more than there are if the two are impossible. */
uint64_t cache_log_used(const struct cache_log *l);
ALWAYS_INLINE uint64_t cache_log_where(const struct cache_log *l, uint64_t position)
{
	return (uint64_t)(cache_position_lap(position) & 0xffff) << 32 | (l->base + cache_position_offset(position));
}
enum cache_step { CACHE_STEP_BLOCK, CACHE_STEP_END, CACHE_STEP_BROKEN };
/* The block at *position of a log, or behind the end of the lap that is there: then *position is moved. */
enum cache_step cache_log_block(const struct cache_shard *s, const struct cache_log *l, uint64_t *position,
				struct cache_found *out);
/* The position behind it. */
uint64_t cache_log_behind(const struct cache_log *l, uint64_t position, uint32_t units);
/* Makes room for a block of at most block_max_units: cache_log_append will find it. */
void cache_log_make_room(struct cache_shard *s, enum cache_log_name name, uint32_t units);
/* Writes a block (its head, its long head or NULL, the rest) at the head. Returns lap and place of a slot word. */
uint64_t cache_log_append(struct cache_shard *s, enum cache_log_name name, const struct cache_block *b,
			  const struct cache_block_long *l, const void *rest);
/* Whether a fingerprint was among those that were evicted lately; it is not any more. */
bool cache_ghost_take(struct cache_shard *s, const struct cache_block *b);
/* Reads, over all readers, since the marks were cleared; at most 2. */
unsigned cache_marks_sum(const struct cache_shard *s, const uint64_t *slot);
void cache_marks_clear(struct cache_shard *s, const uint64_t *slot);
/* Forgets everything in the shard: its logs make no sense. */
void cache_shard_reset(struct cache_shard *s);
/* Takes heads and tails from the memory, and puts right what a writer that died has left (cache_repair.c). */
MUST_USE enum err cache_shard_repair(struct cache_shard *s, bool was_clean);
