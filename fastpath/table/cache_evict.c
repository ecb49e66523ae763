/* SPDX-License-Identifier: Apache-2.0 */
/* The logs and who must leave them: S3-FIFO (Yang et al., SOSP 2023) over two circular logs.
 *
 * New entries go to the small log. At its tail one that was read twice moves to the main log, as does any other while main has room that nobody
 * needs; the rest lose their slot, and the ghost table keeps their fingerprint. At main's tail an entry that was read since it came there goes round
 * again. What has expired or is of an older epoch leaves at either tail whatever its marks are.
 *
 * Order of stores, so that a death between any two leaves nothing that cache_repair.c can't put right: block, head, slot; slot cleared, tail. */
#include "table/cache_write_private.h"

#define ROUNDS_MAX 32u /* blocks that go round again for one store */
#define SWEEP_MAX 4u   /* dead blocks at main's tail that are passed to save one of the small log */

/* --- blocks and slots ------------------------------------------------------------------------------------------------ */

bool cache_found_at(const struct cache_shard *s, uint32_t place, struct cache_found *out)
{
	uint32_t units = s->r->g.units;

	if (place >= units || units - place < CACHE_BLOCK_LEAST_UNITS)
		return false;
	memcpy(&out->b, s->words + place, sizeof(out->b));
	bool is_long = out->b.shape & CACHE_BLOCK_LONG;
	if (out->b.units > units - place || cache_block_rest_words(out->b.units, is_long) == 0)
		return false;
	if (is_long)
		memcpy(&out->l, s->words + place + CACHE_BLOCK_WORDS, sizeof(out->l));
	else
		memset(&out->l, 0, sizeof(out->l));
	out->place = place;
	return true;
}

const uint8_t *cache_found_name(const struct cache_shard *s, const struct cache_found *f)
{
	bool is_long = f->b.shape & CACHE_BLOCK_LONG;
	uint32_t head_words = is_long ? 2 * CACHE_BLOCK_WORDS : CACHE_BLOCK_WORDS,
		 lists = (uint32_t)f->b.pointer_count + f->l.pointer_count;

	for (unsigned i = 0; i < 3; i++)
		lists += is_long ? f->l.count[i] : f->b.count[i];
	if (2 * lists + f->b.name_bytes > (f->b.units - head_words) * CACHE_UNIT)
		return NULL;
	return (const uint8_t *)(s->words + f->place + head_words) + 2 * (size_t)lists;
}

uint64_t *cache_slot_of(const struct cache_shard *s, uint32_t hash_low, uint64_t where)
{
	for (unsigned turn = 0; turn < CACHE_BUCKETS; turn++) {
		uint64_t *bucket = cache_bucket_at(s, hash_low, turn);

		for (unsigned i = 0; i < CACHE_BUCKET_SLOTS; i++)
			if (bucket[i] != 0 && (bucket[i] & CACHE_SLOT_WHERE) == where)
				return &bucket[i];
	}
	return NULL;
}

bool cache_found_is_over(const struct cache_shard *s, const struct cache_found *f)
{
	return f->b.expire_s <= s->now_s || (int32_t)(f->b.epoch - cache_epoch(s->r, f->b.partition)) < 0;
}

void cache_slot_drop(struct cache_shard *s, uint64_t *slot, const struct cache_found *f)
{
	cache_slot_store(slot, 0);
	cache_marks_clear(s, slot);
	cache_count(s, CACHE_N_ENTRIES, -1);
	cache_count(s, CACHE_N_BYTES, -(int64_t)(f->b.units * CACHE_UNIT));
}

/* --- marks ------------------------------------------------------------------------------------------------------------- */

/* Mark arrays start a page into their memory; cache_reader_marks wants a reader that is not constant. */
static uint8_t *mark_of(const struct cache_shard *s, const uint64_t *slot, unsigned reader)
{
	struct cache_reader *r = (struct cache_reader *)(uintptr_t)s->r;

	return cache_reader_marks(r, reader) + s->first_slot + (size_t)(slot - s->slots);
}

unsigned cache_marks_sum(const struct cache_shard *s, const uint64_t *slot)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < s->r->marks_readers && sum < 2; i++)
		sum += __atomic_load_n(mark_of(s, slot, i), __ATOMIC_RELAXED);
	return MIN(sum, 2u);
}
static void marks_lower(const struct cache_shard *s, const uint64_t *slot, unsigned by)
{
	for (unsigned i = 0; i < s->r->marks_readers; i++) {
		uint8_t *mark = mark_of(s, slot, i), value = __atomic_load_n(mark, __ATOMIC_RELAXED);

		if (value != 0)
			__atomic_store_n(mark, (uint8_t)(value > by ? value - by : 0), __ATOMIC_RELAXED);
	}
}
void cache_marks_clear(struct cache_shard *s, const uint64_t *slot) { marks_lower(s, slot, UINT8_MAX); }

/* --- ghosts ------------------------------------------------------------------------------------------------------------ */

static uint16_t *ghost_set(const struct cache_shard *s, const struct cache_block *b, uint16_t *fingerprint)
{
	uint32_t key = b->type | (uint32_t)b->partition << 16 | (uint32_t)(b->flags & CACHE_F_CD) << 24;
	uint32_t mixed = (b->hash_low ^ key * 0x85ebca6bu) * 0x9e3779b1u;
	uint32_t set = (uint32_t)(((uint64_t)(b->hash_low * 0xc2b2ae35u) * s->r->g.ghost_sets) >> 32);

	*fingerprint = (uint16_t)((mixed >> 16) | (mixed >> 16 == 0)); /* 0: none */
	return s->ghosts + (size_t)set * CACHE_GHOST_WAYS;
}
/* In a set the newest comes first. */
static void ghost_put(struct cache_shard *s, const struct cache_block *b)
{
	uint16_t fingerprint, *set = ghost_set(s, b, &fingerprint);

	memmove(set + 1, set, (CACHE_GHOST_WAYS - 1) * sizeof(*set));
	set[0] = fingerprint;
}
bool cache_ghost_take(struct cache_shard *s, const struct cache_block *b)
{
	uint16_t fingerprint, *set = ghost_set(s, b, &fingerprint);

	for (unsigned i = 0; i < CACHE_GHOST_WAYS; i++) {
		if (set[i] != fingerprint)
			continue;
		memmove(set + i, set + i + 1, (CACHE_GHOST_WAYS - 1 - i) * sizeof(*set));
		set[CACHE_GHOST_WAYS - 1] = 0;
		return true;
	}
	return false;
}

/* --- positions ----------------------------------------------------------------------------------------------------------- */

static uint64_t next_lap(uint64_t position) { return (uint64_t)(cache_position_lap(position) + 1) << 32; }

uint64_t cache_log_behind(const struct cache_log *l, uint64_t position, uint32_t units)
{
	return cache_position_offset(position) + units == l->units ? next_lap(position) : position + units;
}

uint64_t cache_log_used(const struct cache_log *l)
{
	uint32_t laps = cache_position_lap(l->head) - cache_position_lap(l->tail);

	if (laps > 1)
		return UINT64_MAX;
	return (uint64_t)laps * l->units + cache_position_offset(l->head) - cache_position_offset(l->tail);
}

enum cache_step cache_log_block(const struct cache_shard *s, const struct cache_log *l, uint64_t *position,
				struct cache_found *out)
{
	if (*position == l->head)
		return CACHE_STEP_END;
	uint32_t offset = cache_position_offset(*position);
	bool is_last_lap = cache_position_lap(*position) == cache_position_lap(l->head);
	if ((s->words[l->base + offset] & UINT16_MAX) == 0) {
		if (is_last_lap)
			return CACHE_STEP_BROKEN;
		*position = next_lap(*position);
		if (*position == l->head)
			return CACHE_STEP_END;
		offset = 0;
		is_last_lap = true;
	}
	uint32_t room = is_last_lap ? cache_position_offset(l->head) - offset : l->units - offset;
	return cache_found_at(s, l->base + offset, out) && out->b.units <= room ? CACHE_STEP_BLOCK : CACHE_STEP_BROKEN;
}

static void move_tail(struct cache_log *l, uint64_t position)
{
	l->tail = position;
	atomic_store_explicit(l->tail_there, position, memory_order_release);
}
static void move_head(struct cache_log *l, uint64_t position)
{
	l->head = position;
	atomic_store_explicit(l->head_there, position, memory_order_release);
}

/* Units that a block takes at the head, with what is left unused in front of it. */
static uint32_t needed_units(const struct cache_log *l, uint32_t units)
{
	uint32_t left = l->units - cache_position_offset(l->head);

	return units > left ? units + left : units;
}
static bool has_room(const struct cache_log *l, uint32_t units, uint32_t reserve)
{
	return cache_log_used(l) + needed_units(l, units) + reserve <= l->units;
}

void cache_shard_reset(struct cache_shard *s)
{
	size_t slots = (size_t)s->r->g.buckets * CACHE_BUCKET_SLOTS;

	for (size_t i = 0; i < slots; i++)
		cache_slot_store(&s->slots[i], 0);
	memset(s->ghosts, 0, (size_t)s->r->g.ghost_sets * CACHE_GHOST_WAYS * sizeof(*s->ghosts));
	for (unsigned i = 0; i < CACHE_LOGS; i++) { /* a new lap: no slot word that a reader still holds comes again soon */
		struct cache_log *l = &s->log[i];

		move_head(l, next_lap(l->head));
		move_tail(l, l->head);
	}
	atomic_store_explicit(&s->head->count[CACHE_N_ENTRIES], 0, memory_order_relaxed);
	atomic_store_explicit(&s->head->count[CACHE_N_BYTES], 0, memory_order_relaxed);
	cache_count(s, CACHE_N_RESETS, 1);
}

/* --- appending --------------------------------------------------------------------------------------------------------- */

static uint64_t *put_words(uint64_t *to, const void *from, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++) {
		uint64_t word;

		memcpy(&word, (const uint8_t *)from + 8 * (size_t)i, sizeof(word));
		cache_word_store(to++, word);
	}
	return to;
}

/* Where the next block of so many units begins; what is left of the lap is marked. The caller moves the head. */
static uint64_t begin_block(struct cache_shard *s, struct cache_log *l, uint32_t units)
{
	uint64_t at = l->head;

	cache_write_fence();
	if (units > l->units - cache_position_offset(at)) {
		cache_word_store(&s->words[l->base + cache_position_offset(at)], 0);
		at = next_lap(at);
	}
	return at;
}

uint64_t cache_log_append(struct cache_shard *s, enum cache_log_name name, const struct cache_block *b,
			  const struct cache_block_long *l, const void *rest)
{
	struct cache_log *log = &s->log[name];
	uint64_t at = begin_block(s, log, b->units);
	uint64_t *to = s->words + log->base + cache_position_offset(at);
	uint32_t head_words = l ? 2 * CACHE_BLOCK_WORDS : CACHE_BLOCK_WORDS;

	to = put_words(to, b, CACHE_BLOCK_WORDS);
	if (l)
		to = put_words(to, l, CACHE_BLOCK_WORDS);
	put_words(to, rest, b->units - head_words);
	move_head(log, cache_log_behind(log, at, b->units));
	return cache_log_where(log, at);
}

/* Copies a block to main's head and lets its slot aim there. */
static void move_to_main(struct cache_shard *s, uint64_t *slot, const struct cache_found *f)
{
	struct cache_log *main = &s->log[CACHE_MAIN];
	uint64_t at = begin_block(s, main, f->b.units);

	put_words(s->words + main->base + cache_position_offset(at), s->words + f->place, f->b.units);
	move_head(main, cache_log_behind(main, at, f->b.units));
	cache_slot_store(slot, (*slot & ~CACHE_SLOT_WHERE) | cache_log_where(main, at));
}

/* --- evicting ---------------------------------------------------------------------------------------------------------- */

/* The block at a log's tail and its slot (NULL: nobody aims at it any more). False: the log is empty, or the shard was broken and is empty now. */
static bool look_at_tail(struct cache_shard *s, struct cache_log *l, struct cache_found *f, uint64_t **slot)
{
	uint64_t at = l->tail;
	enum cache_step step = cache_log_block(s, l, &at, f);

	if (at != l->tail)
		move_tail(l, at);
	if (step == CACHE_STEP_BROKEN)
		cache_shard_reset(s);
	if (step != CACHE_STEP_BLOCK)
		return false;
	*slot = cache_slot_of(s, f->b.hash_low, cache_log_where(l, at));
	return true;
}
static void pass_tail(struct cache_log *l, const struct cache_found *f)
{
	move_tail(l, cache_log_behind(l, l->tail, f->b.units));
}

static void drop_expired(struct cache_shard *s, uint64_t *slot, const struct cache_found *f)
{
	cache_slot_drop(s, slot, f);
	cache_count(s, CACHE_N_EXPIRED, 1);
}

/* Takes the block at main's tail away, or round again if it was read and *rounds are left. False: main is empty. */
static bool evict_main(struct cache_shard *s, unsigned *rounds)
{
	struct cache_log *l = &s->log[CACHE_MAIN];
	struct cache_found f;
	uint64_t *slot;

	if (!look_at_tail(s, l, &f, &slot))
		return false;
	if (slot && cache_found_is_over(s, &f)) {
		drop_expired(s, slot, &f);
	} else if (slot && *rounds > 0 && cache_marks_sum(s, slot) > 0 && has_room(l, f.b.units, 0)) {
		--*rounds;
		move_to_main(s, slot, &f);
		marks_lower(s, slot, 1);
	} else if (slot) {
		cache_slot_drop(s, slot, &f);
		cache_count(s, CACHE_N_EVICTED, 1);
	}
	pass_tail(l, &f);
	return true;
}

static void make_room_in_main(struct cache_shard *s, uint32_t units)
{
	unsigned rounds = ROUNDS_MAX;

	while (!has_room(&s->log[CACHE_MAIN], units, s->r->g.main_reserve_units))
		if (!evict_main(s, &rounds))
			return; /* empty: there is room */
}

/* Whether main has room that costs nobody his place. */
static bool main_has_spare_room(struct cache_shard *s, uint32_t units)
{
	struct cache_log *l = &s->log[CACHE_MAIN];
	struct cache_found f;
	uint64_t *slot;

	for (unsigned i = 0; i <= SWEEP_MAX; i++) {
		if (has_room(l, units, s->r->g.main_reserve_units))
			return true;
		if (!look_at_tail(s, l, &f, &slot))
			return has_room(l, units, s->r->g.main_reserve_units);
		if (slot && !cache_found_is_over(s, &f))
			return false;
		if (slot)
			drop_expired(s, slot, &f);
		pass_tail(l, &f);
	}
	return false;
}

static void evict_small(struct cache_shard *s)
{
	struct cache_log *l = &s->log[CACHE_SMALL];
	struct cache_found f;
	uint64_t *slot;

	if (!look_at_tail(s, l, &f, &slot))
		return;
	if (slot && cache_found_is_over(s, &f)) {
		drop_expired(s, slot, &f);
	} else if (slot && cache_marks_sum(s, slot) >= 2) {
		make_room_in_main(s, f.b.units);
		if (*slot == 0) /* main was broken */
			return;
		move_to_main(s, slot, &f);
		cache_marks_clear(s, slot);
		cache_count(s, CACHE_N_PROMOTED, 1);
	} else if (slot && main_has_spare_room(s, f.b.units)) {
		if (*slot == 0)
			return;
		move_to_main(s, slot, &f);
	} else if (slot && *slot != 0) {
		ghost_put(s, &f.b);
		cache_slot_drop(s, slot, &f);
		cache_count(s, CACHE_N_EVICTED, 1);
	} else if (slot) {
		return;
	}
	pass_tail(l, &f);
}

void cache_log_make_room(struct cache_shard *s, enum cache_log_name name, uint32_t units)
{
	if (name == CACHE_MAIN) {
		make_room_in_main(s, units);
		return;
	}
	struct cache_log *l = &s->log[CACHE_SMALL];
	while (!has_room(l, units, 0)) /* ends: each turn moves the tail, or empties the shard */
		evict_small(s);
}
