/* SPDX-License-Identifier: Apache-2.0 */
/* What the next writer does with a shard whose last one died: positions that are impossible, or a log that does not lead from tail to head, cost the
 * shard its content; a slot that no block of a log answers to is cleared. One pass over the logs; readers go on meanwhile. */
#include <stdlib.h>

#include "table/cache_write_private.h"

static bool position_is_possible(const struct cache_log *l)
{
	return cache_position_offset(l->head) < l->units && cache_position_offset(l->tail) < l->units &&
	       cache_log_used(l) <= l->units;
}

/* Notes the slots of a log's blocks. False: the log does not lead to its head. */
static bool walk_log(struct cache_shard *s, const struct cache_log *l, uint64_t *is_sound, uint64_t *entries, uint64_t *units)
{
	uint64_t at = l->tail;
	struct cache_found f;
	enum cache_step step;

	while ((step = cache_log_block(s, l, &at, &f)) == CACHE_STEP_BLOCK) {
		const uint64_t *slot = cache_slot_of(s, f.b.hash_low, cache_log_where(l, at));

		if (slot) {
			size_t i = (size_t)(slot - s->slots);

			is_sound[i / 64] |= 1ull << (i % 64);
			++*entries;
			*units += f.b.units;
		}
		at = cache_log_behind(l, at, f.b.units);
	}
	return step == CACHE_STEP_END;
}

enum err cache_shard_repair(struct cache_shard *s, bool was_clean)
{
	size_t slots = (size_t)s->r->g.buckets * CACHE_BUCKET_SLOTS;
	uint64_t entries = 0, units = 0;
	bool is_possible = true;

	for (unsigned i = 0; i < CACHE_LOGS; i++) {
		s->log[i].head = atomic_load_explicit(s->log[i].head_there, memory_order_acquire);
		s->log[i].tail = atomic_load_explicit(s->log[i].tail_there, memory_order_acquire);
		is_possible = is_possible && position_is_possible(&s->log[i]);
	}
	if (is_possible && was_clean)
		return ERR_OK;
	if (!is_possible) {
		cache_shard_reset(s);
		return ERR_OK;
	}
	uint64_t *is_sound = calloc(slots / 64 + 1, sizeof(*is_sound));
	if (!is_sound)
		return ERR_NOMEM;
	if (walk_log(s, &s->log[CACHE_SMALL], is_sound, &entries, &units) &&
	    walk_log(s, &s->log[CACHE_MAIN], is_sound, &entries, &units)) {
		for (size_t i = 0; i < slots; i++)
			if (s->slots[i] != 0 && !(is_sound[i / 64] >> (i % 64) & 1))
				cache_slot_store(&s->slots[i], 0);
		atomic_store_explicit(&s->head->count[CACHE_N_ENTRIES], entries, memory_order_relaxed);
		atomic_store_explicit(&s->head->count[CACHE_N_BYTES], units * CACHE_UNIT, memory_order_relaxed);
	} else {
		cache_shard_reset(s);
	}
	free(is_sound);
	return ERR_OK;
}
