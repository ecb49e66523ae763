/* SPDX-License-Identifier: Apache-2.0 */
/* The writers' calls of cache.h. Logs and eviction: cache_evict.c; what a dead writer left: cache_repair.c. */
#include "table/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "table/cache_write_private.h"
#include "table/shm.h"

/* --- attaching --------------------------------------------------------------------------------------------------------- */

static void init_shard(struct cache_shard *s, const struct cache_reader *r, unsigned index)
{
	uint8_t *at = r->shards + index * r->g.shard_bytes;

	s->r = r;
	s->head = (struct cache_shard_head *)at;
	s->slots = (uint64_t *)(at + r->g.slots_at);
	s->ghosts = (uint16_t *)(at + r->g.ghosts_at);
	s->words = (uint64_t *)(at + r->g.logs_at);
	s->first_slot = (uint64_t)index * r->g.buckets * CACHE_BUCKET_SLOTS;
	s->now_s = 0;
	for (unsigned i = 0; i < CACHE_LOGS; i++)
		s->log[i] = (struct cache_log){ .units = r->g.log_units[i],
						.base = i == CACHE_SMALL ? 0 : r->g.log_units[CACHE_SMALL],
						.head_there = &s->head->log[i].head,
						.tail_there = &s->head->log[i].tail };
}

/* A record lock: the descriptor came over a socket or by fork, so that a lock of the open file would be everybody's. It goes with the process. */
static enum err lock_cache(int cache_fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(cache_fd, F_SETLK, &whole) == 0)
		return ERR_OK;
	return errno == EACCES || errno == EAGAIN ? ERR_BUSY : err_from_errno(errno);
}

static void unlock_cache(int cache_fd)
{
	struct flock whole = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	fcntl(cache_fd, F_SETLK, &whole);
}

static struct cache_header *header_of(const struct cache_writer *w) { return (struct cache_header *)w->r.map; }

static enum err repair_all(struct cache_writer *w)
{
	bool was_clean = atomic_load_explicit(&header_of(w)->is_dirty, memory_order_acquire) == 0;

	atomic_store_explicit(&header_of(w)->is_dirty, 1, memory_order_seq_cst);
	for (unsigned i = 0; i < w->r.g.shards; i++) {
		init_shard(&w->shard[i], &w->r, i);
		enum err err = cache_shard_repair(&w->shard[i], was_clean);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

enum err cache_writer_attach(struct cache_writer **out, int cache_fd, int marks_fd)
{
	struct cache_writer *w;
	struct cache_reader r;
	void *map;
	size_t map_bytes;

	if (!shm_is_sealed(cache_fd, false))
		return ERR_CORRUPT;
	enum err err = lock_cache(cache_fd);
	if (err != ERR_OK)
		return err;
	err = shm_map_writable(&map, &map_bytes, cache_fd);
	if (err != ERR_OK)
		goto unlock;
	err = cache_reader_init(&r, map, map_bytes);
	if (err != ERR_OK)
		goto unmap;
	err = cache_reader_init_marks(&r, marks_fd);
	if (err != ERR_OK)
		goto unmap;
	w = aligned_alloc(CACHE_LINE, sizeof(*w) + r.g.shards * sizeof(w->shard[0]));
	if (!w) {
		err = ERR_NOMEM;
		goto unmap_marks;
	}
	w->r = r;
	w->cache_fd = cache_fd;
	err = repair_all(w);
	if (err != ERR_OK)
		goto free_writer;
	*out = w;
	return ERR_OK;
free_writer:
	free(w);
unmap_marks:
	shm_unmap(r.marks_map, r.marks_bytes);
unmap:
	shm_unmap(map, map_bytes);
unlock:
	unlock_cache(cache_fd);
	return err;
}

void cache_writer_detach(struct cache_writer *w)
{
	if (!w)
		return;
	int cache_fd = w->cache_fd;
	atomic_store_explicit(&header_of(w)->is_dirty, 0, memory_order_seq_cst);
	cache_reader_fini(&w->r);
	free(w);
	unlock_cache(cache_fd);
}

struct cache_reader *cache_writer_reader(struct cache_writer *w) { return &w->r; }
unsigned cache_writer_shards(const struct cache_writer *w) { return w->r.g.shards; }
unsigned cache_shard(const struct cache_writer *w, uint64_t hash) { return cache_shard_of(&w->r.g, hash); }

/* --- entries into blocks ------------------------------------------------------------------------------------------------- */

static bool is_long_entry(const struct cache_entry *e)
{
	return (e->dnssec_count[0] | e->dnssec_count[1] | e->dnssec_count[2] | e->expired_min) != 0 ||
	       (e->count[0] | e->count[1] | e->count[2] | e->pointer_count) > UINT8_MAX;
}

/* The head of a checked entry's block. Returns whether it is a long one. */
static bool block_of(const struct cache_entry *e, struct cache_block *b, struct cache_block_long *l)
{
	bool is_long = is_long_entry(e);
	uint32_t head_words = is_long ? 2 * CACHE_BLOCK_WORDS : CACHE_BLOCK_WORDS, rest_bytes = e->bytes - (uint32_t)sizeof(*e);
	uint32_t padding = rest_bytes - 2u * (e->rr_count + e->pointer_count) - e->name_bytes - e->body_bytes;

	*b = (struct cache_block){ .units = (uint16_t)(head_words + rest_bytes / CACHE_UNIT),
				   .type = e->type,
				   .hash_low = (uint32_t)e->hash,
				   .partition = e->partition,
				   .flags = e->flags,
				   .name_bytes = e->name_bytes,
				   .rcode = e->rcode,
				   .shape = (uint8_t)(padding | (is_long ? CACHE_BLOCK_LONG : 0)),
				   .ede = e->ede,
				   .backoff = e->backoff,
				   .stored_s = e->stored_s,
				   .expire_s = e->expire_s,
				   .epoch = e->epoch };
	if (!is_long) {
		for (unsigned i = 0; i < 3; i++)
			b->count[i] = (uint8_t)e->count[i];
		b->pointer_count = (uint8_t)e->pointer_count;
		return false;
	}
	*l = (struct cache_block_long){ .pointer_count = e->pointer_count, .expired_min = e->expired_min };
	memcpy(l->count, e->count, sizeof(l->count));
	memcpy(l->dnssec_count, e->dnssec_count, sizeof(l->dnssec_count));
	memcpy(l->span, e->span, sizeof(l->span));
	return true;
}

/* --- the slots of a name --------------------------------------------------------------------------------------------------- */

/* A name and its two buckets. */
struct spot {
	uint64_t *bucket[CACHE_BUCKETS];
	uint32_t hash_low;
	uint8_t name_bytes;
	const uint8_t *name;
};
#define SPOT_SLOTS (CACHE_BUCKETS * CACHE_BUCKET_SLOTS)
static uint64_t *spot_slot(const struct spot *spot, unsigned i)
{
	return spot->bucket[i / CACHE_BUCKET_SLOTS] + i % CACHE_BUCKET_SLOTS;
}

static struct spot spot_of(const struct cache_shard *s, uint64_t hash, const uint8_t *name, uint8_t name_bytes)
{
	return (struct spot){ .bucket = { cache_bucket_at(s, (uint32_t)hash, 0), cache_bucket_at(s, (uint32_t)hash, 1) },
			      .hash_low = (uint32_t)hash,
			      .name_bytes = name_bytes,
			      .name = name };
}

/* Whether a slot that is not empty holds something of the name. */
static bool slot_is_of_name(const struct cache_shard *s, const struct spot *spot, uint64_t word, struct cache_found *f)
{
	if (!cache_found_at(s, (uint32_t)word, f) || f->b.hash_low != spot->hash_low || f->b.name_bytes != spot->name_bytes)
		return false;
	const uint8_t *name = cache_found_name(s, f);
	return name && memcmp(name, spot->name, spot->name_bytes) == 0;
}

/* What is known of the same question; NULL if nothing is. */
static uint64_t *find_same(const struct cache_shard *s, const struct spot *spot, const struct cache_block *b, uint16_t tag,
			   struct cache_found *f)
{
	for (unsigned i = 0; i < SPOT_SLOTS; i++) {
		uint64_t *slot = spot_slot(spot, i);

		if (cache_slot_tag(*slot) == tag && slot_is_of_name(s, spot, *slot, f) && f->b.type == b->type &&
		    f->b.partition == b->partition && ((f->b.flags ^ b->flags) & CACHE_F_CD) == 0)
			return slot;
	}
	return NULL;
}

/* A name either does not exist or has types: what is stored ends the other. A failure says nothing about it. */
static void drop_contrary(struct cache_shard *s, const struct spot *spot, const struct cache_block *b, uint16_t own_tag)
{
	struct cache_found f;

	if (b->flags & CACHE_F_FAILURE)
		return;
	for (unsigned i = 0; i < SPOT_SLOTS; i++) {
		uint64_t *slot = spot_slot(spot, i);
		uint16_t tag = cache_slot_tag(*slot);

		if (((tag ^ own_tag) & CACHE_TAG_NAME) != 0 || *slot == 0 || !slot_is_of_name(s, spot, *slot, &f) ||
		    (f.b.type == 0) == (b->type == 0))
			continue;
		if (f.b.partition != b->partition || ((f.b.flags ^ b->flags) & CACHE_F_CD) != 0)
			continue;
		cache_slot_drop(s, slot, &f);
		cache_count(s, CACHE_N_REPLACED, 1);
	}
}

/* An empty slot of a bucket; *used is the number of the others. */
static uint64_t *empty_slot(uint64_t *bucket, unsigned *used)
{
	uint64_t *empty = NULL;

	*used = 0;
	for (unsigned i = CACHE_BUCKET_SLOTS; i-- > 0;) {
		if (bucket[i] == 0)
			empty = &bucket[i];
		else
			++*used;
	}
	return empty;
}

/* Whether a is to give way rather than b: what is over, what nobody has read, what ends first. */
static bool gives_way(const struct cache_shard *s, uint64_t *const slot[2], const struct cache_found *a,
		      const struct cache_found *b)
{
	bool a_is_over = cache_found_is_over(s, a), b_is_over = cache_found_is_over(s, b);
	unsigned a_reads = cache_marks_sum(s, slot[0]), b_reads = cache_marks_sum(s, slot[1]);

	if (a_is_over != b_is_over)
		return a_is_over;
	return a_reads != b_reads ? a_reads < b_reads : a->b.expire_s < b->b.expire_s;
}

/* An empty slot of the two buckets; if there is none, somebody else's. */
static uint64_t *take_slot(struct cache_shard *s, const struct spot *spot)
{
	unsigned used, used_second;
	uint64_t *first = empty_slot(spot->bucket[0], &used);

	if (used < CACHE_FIRST_FILL)
		return first;
	uint64_t *second = empty_slot(spot->bucket[1], &used_second);
	if (first || second)
		return second && used_second < used ? second : first;
	uint64_t *victim = NULL;
	struct cache_found f, given_up;
	for (unsigned i = 0; i < SPOT_SLOTS; i++) {
		uint64_t *slot = spot_slot(spot, i);

		if (!cache_found_at(s, (uint32_t)*slot, &f)) /* broken: nobody misses it */
			memset(&f, 0, sizeof(f));
		if (!victim || gives_way(s, (uint64_t *const[]){ slot, victim }, &f, &given_up)) {
			victim = slot;
			given_up = f;
		}
	}
	cache_slot_drop(s, victim, &given_up);
	cache_count(s, CACHE_N_NO_SLOT, 1);
	return victim;
}

/* --- storing --------------------------------------------------------------------------------------------------------------- */

/* What is asked again and again belongs into the main log: it lies there already, was read twice, or was evicted a short time ago. */
static enum cache_log_name choose_log(struct cache_shard *s, const uint64_t *same, const struct cache_block *b)
{
	if (!same) {
		if (!cache_ghost_take(s, b))
			return CACHE_SMALL;
		cache_count(s, CACHE_N_GHOST_HITS, 1);
		return CACHE_MAIN;
	}
	if ((uint32_t)*same >= s->log[CACHE_MAIN].base)
		return CACHE_MAIN;
	if (cache_marks_sum(s, same) < 2)
		return CACHE_SMALL;
	cache_count(s, CACHE_N_PROMOTED, 1);
	return CACHE_MAIN;
}

static void publish(struct cache_shard *s, const struct spot *spot, const struct cache_block *b, uint64_t word)
{
	struct cache_found old;
	uint64_t *slot = find_same(s, spot, b, cache_slot_tag(word), &old);

	drop_contrary(s, spot, b, cache_slot_tag(word));
	if (slot) {
		cache_slot_store(slot, word);
		cache_count(s, CACHE_N_REPLACED, 1);
		cache_count(s, CACHE_N_BYTES, (int64_t)((b->units - (int64_t)old.b.units) * CACHE_UNIT));
		return;
	}
	slot = take_slot(s, spot);
	cache_slot_store(slot, word);
	cache_count(s, CACHE_N_ENTRIES, 1);
	cache_count(s, CACHE_N_BYTES, (int64_t)(b->units * CACHE_UNIT));
}

enum err cache_store(struct cache_writer *w, const struct cache_entry *e)
{
	struct cache_shard *s = &w->shard[cache_shard_of(&w->r.g, e->hash)];
	struct cache_block b;
	struct cache_block_long l;
	struct cache_found same;

	cache_count(s, CACHE_N_STORES, 1);
	if (e->bytes > CACHE_ENTRY_MAX_BYTES) {
		cache_count(s, CACHE_N_TOO_LARGE, 1);
		return ERR_NOSPACE;
	}
	if (!cache_entry_check(e, e->bytes))
		return ERR_MALFORMED;
	DEBUG_ASSERT(e->hash == cache_hash(&w->r, name_hash(cache_entry_name(e), e->name_bytes)));
	bool is_long = block_of(e, &b, &l);
	if (b.units > w->r.g.block_max_units) {
		cache_count(s, CACHE_N_TOO_LARGE, 1);
		return ERR_NOSPACE;
	}
	if ((int32_t)(e->epoch - cache_epoch(&w->r, e->partition)) < 0) {
		cache_count(s, CACHE_N_OUTDATED, 1);
		return ERR_OK;
	}
	s->now_s = MAX(s->now_s, e->stored_s);
	struct spot spot = spot_of(s, e->hash, cache_entry_name(e), e->name_bytes);
	uint16_t tag = cache_tag_of(e->hash, e->type, cache_key_word(e->partition, e->name_bytes, e->flags & CACHE_F_CD));
	enum cache_log_name log = choose_log(s, find_same(s, &spot, &b, tag, &same), &b);
	cache_log_make_room(s, log, b.units); /* may move or evict what is there of the same question */
	publish(s, &spot, &b, cache_slot_word(tag, 0, 0) | cache_log_append(s, log, &b, is_long ? &l : NULL, e + 1));
	return ERR_OK;
}

/* --- removing -------------------------------------------------------------------------------------------------------------- */

unsigned cache_remove(struct cache_writer *w, const uint8_t *lower, size_t name_bytes, uint16_t type)
{
	uint64_t hash = cache_hash(&w->r, name_hash(lower, name_bytes));
	struct cache_shard *s = &w->shard[cache_shard_of(&w->r.g, hash)];
	struct spot spot = spot_of(s, hash, lower, (uint8_t)name_bytes);
	struct cache_found f;
	unsigned removed = 0;

	for (unsigned i = 0; i < SPOT_SLOTS; i++) {
		uint64_t *slot = spot_slot(&spot, i);

		if (*slot == 0 || !slot_is_of_name(s, &spot, *slot, &f) || (type != 0 && f.b.type != 0 && f.b.type != type))
			continue;
		cache_slot_drop(s, slot, &f);
		removed++;
	}
	return removed;
}

/* Calls visit for each block of a shard that a slot aims at: main's first, each log from its tail. */
static void each_block(struct cache_shard *s,
		       bool (*visit)(void *user, struct cache_shard *s, uint64_t *slot, const struct cache_found *f), void *user)
{
	static const enum cache_log_name order[CACHE_LOGS] = { CACHE_MAIN, CACHE_SMALL };
	struct cache_found f;

	for (unsigned i = 0; i < CACHE_LOGS; i++) {
		const struct cache_log *l = &s->log[order[i]];
		uint64_t at = l->tail;

		while (cache_log_block(s, l, &at, &f) == CACHE_STEP_BLOCK) {
			uint64_t *slot = cache_slot_of(s, f.b.hash_low, cache_log_where(l, at));

			if (slot && !visit(user, s, slot, &f))
				return;
			at = cache_log_behind(l, at, f.b.units);
		}
	}
}

struct tree {
	const uint8_t *lower;
	size_t name_bytes;
	uint64_t removed;
};
static bool remove_below(void *user, struct cache_shard *s, uint64_t *slot, const struct cache_found *f)
{
	struct tree *t = user;
	const uint8_t *name = cache_found_name(s, f);

	/* The octets of a suffix, and a label's begin in front of them. */
	if (!name || f->b.name_bytes < t->name_bytes ||
	    memcmp(name + f->b.name_bytes - t->name_bytes, t->lower, t->name_bytes) != 0)
		return true;
	size_t at = 0, end = f->b.name_bytes - t->name_bytes;
	while (at < end)
		at += 1u + name[at];
	if (at == end) {
		cache_slot_drop(s, slot, f);
		t->removed++;
	}
	return true;
}

uint64_t cache_remove_tree(struct cache_writer *w, unsigned shard, const uint8_t *lower, size_t name_bytes)
{
	struct tree t = { .lower = lower, .name_bytes = name_bytes };

	each_block(&w->shard[shard], remove_below, &t);
	return t.removed;
}

void cache_epoch_advance(struct cache_writer *w, uint16_t partition)
{
	if (partition < CACHE_PARTITIONS)
		atomic_fetch_add_explicit(&header_of(w)->epoch[partition], 1, memory_order_acq_rel);
}

/* --- looking ----------------------------------------------------------------------------------------------------------------- */

struct walk {
	struct cache_writer *w;
	bool (*visit)(void *user, const struct cache_entry *e);
	void *user;
	uint64_t scratch[CACHE_SCRATCH_WORDS];
};
static bool visit_entry(void *user, struct cache_shard *s, uint64_t *slot, const struct cache_found *f)
{
	struct walk *walk = user;
	struct cache_entry *e = (struct cache_entry *)walk->scratch;
	uint64_t head[CACHE_BLOCK_WORDS];
	bool is_long = f->b.shape & CACHE_BLOCK_LONG, is_sound;
	uint32_t rest_words = cache_block_rest_words(f->b.units, is_long), head_words = f->b.units - rest_words;

	(void)slot;
	memcpy(head, &f->b, sizeof(head));
	memcpy(e, &f->b, sizeof(f->b));
	memcpy(e + 1, s->words + f->place + head_words, rest_words * sizeof(uint64_t));
	is_sound = is_long ? cache_block_expand_long(e, &f->l, rest_words * CACHE_UNIT)
			   : cache_block_expand(e, 0, head[1], head[3], rest_words * CACHE_UNIT);
	if (!is_sound || !cache_entry_check(e, e->bytes))
		return true;
	e->hash = cache_hash(&walk->w->r, name_hash(cache_entry_name(e), e->name_bytes));
	return walk->visit(walk->user, e);
}

void cache_walk(struct cache_writer *w, unsigned shard, bool (*visit)(void *user, const struct cache_entry *e), void *user)
{
	struct walk walk;

	walk.w = w;
	walk.visit = visit;
	walk.user = user;
	each_block(&w->shard[shard], visit_entry, &walk);
}

static uint64_t bytes_in_use(const struct cache_shard *s, enum cache_log_name name)
{
	struct cache_log l = s->log[name];

	l.tail = atomic_load_explicit(l.tail_there, memory_order_acquire);
	l.head = atomic_load_explicit(l.head_there, memory_order_acquire);
	return MIN(cache_log_used(&l), l.units) * CACHE_UNIT;
}

void cache_writer_stats(const struct cache_writer *w, struct cache_stats *out)
{
	uint64_t sum[CACHE_COUNTERS] = { 0 };

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < w->r.g.shards; i++) {
		const struct cache_shard *s = &w->shard[i];

		for (unsigned n = 0; n < CACHE_COUNTERS; n++)
			sum[n] += atomic_load_explicit(&s->head->count[n], memory_order_relaxed);
		out->small_bytes += bytes_in_use(s, CACHE_SMALL);
		out->main_bytes += bytes_in_use(s, CACHE_MAIN);
	}
	out->size_bytes = w->r.map_bytes;
	out->slots = (uint64_t)w->r.g.shards * w->r.g.buckets * CACHE_BUCKET_SLOTS;
	out->entries = sum[CACHE_N_ENTRIES];
	out->entry_bytes = sum[CACHE_N_BYTES];
	out->stores = sum[CACHE_N_STORES];
	out->replaced = sum[CACHE_N_REPLACED];
	out->evicted = sum[CACHE_N_EVICTED];
	out->promoted = sum[CACHE_N_PROMOTED];
	out->expired = sum[CACHE_N_EXPIRED];
	out->outdated = sum[CACHE_N_OUTDATED];
	out->too_large = sum[CACHE_N_TOO_LARGE];
	out->ghost_hits = sum[CACHE_N_GHOST_HITS];
	out->no_slot = sum[CACHE_N_NO_SLOT];
	out->resets = sum[CACHE_N_RESETS];
}
