/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the answer cache: a pair of cache lines, one block. The order of loads is the whole protocol: the slot (acquire), the block's words,
 * a fence (acquire), the slot again. A writer that reuses a block's place has cleared or changed its slot before (release fence), so a copy that
 * is followed by the same slot word is the block that the slot was published with.
 *
 * Budget: 150 instructions for the answer of an A record, 100 more for a miss; bench/micro/cache_micro counts. */
#include "table/cache.h"

#include "dns/name_inline.h"
#include "table/cache_layout.h"

#if defined(__SSE2__) && !defined(CACHE_THREAD_SANITIZER)
#include <emmintrin.h>
#define CACHE_MATCH_SSE2 1
#endif

#define READ_TRIES 3u /* of a slot whose block moves meanwhile */

/* A slot in its pair, and what its block must say. */
struct wanted {
	uint64_t *slots; /* the pair's */
	const uint8_t *logs;
	uint64_t word[2]; /* of the block, as far as the masks go */
	size_t first;	  /* index of the pair's first slot in mark arrays */
	uint16_t tag;
};
#define WORD0_MASK UINT64_C(0xffffffffffff0000) /* type, hash_low */
#define WORD1_FLAGS (0xffu & ~(CACHE_F_KNOWN & ~(CACHE_F_CD | CACHE_F_NXDOMAIN)))
#define WORD1_MASK (UINT64_C(0xff00ff) | WORD1_FLAGS << 8) /* partition, the flags that must be so, name_bytes */

uint64_t cache_hash(const struct cache_reader *r, uint64_t name_hash) { return cache_hash_keyed(r->hash_key, name_hash); }
unsigned cache_reader_shard(const struct cache_reader *r, uint64_t hash) { return cache_shard_of(&r->g, hash); }

uint32_t cache_epoch(const struct cache_reader *r, uint16_t partition)
{
	const struct cache_header *h = (const void *)r->map;

	return partition < CACHE_PARTITIONS ? atomic_load_explicit(&h->epoch[partition], memory_order_acquire) : 0;
}

unsigned cache_mark(uint8_t *marks, uint64_t slot)
{
	if (!marks)
		return 2;
	uint8_t mark = __atomic_load_n(&marks[slot], __ATOMIC_RELAXED);
	if (mark >= 2)
		return 2;
	__atomic_store_n(&marks[slot], ++mark, __ATOMIC_RELAXED);
	return mark;
}

ALWAYS_INLINE const uint8_t *shard_at(const struct cache_reader *r, uint64_t hash)
{
	return r->shards + cache_shard_of(&r->g, hash) * r->g.shard_bytes;
}
ALWAYS_INLINE uint64_t *pair_at(const struct cache_reader *r, const uint8_t *shard, uint64_t hash)
{
	size_t at = r->g.slots_at + (size_t)cache_pair_of(&r->g, (uint32_t)hash) * CACHE_PAIR_SLOTS * sizeof(uint64_t);

	return (uint64_t *)(uintptr_t)(shard + at);
}

/* Bits 2 * i + 1 of those slots of a bucket that seem to have the tag: each is loaded again, and in order, before it is believed. */
ALWAYS_INLINE uint32_t match(const uint64_t *bucket, uint16_t tag)
{
#ifdef CACHE_MATCH_SSE2
	const __m128i *v = (const __m128i *)bucket, want = _mm_set1_epi16((short)tag);
	__m128i low = _mm_packs_epi16(_mm_cmpeq_epi16(v[0], want), _mm_cmpeq_epi16(v[1], want));
	__m128i high = _mm_packs_epi16(_mm_cmpeq_epi16(v[2], want), _mm_cmpeq_epi16(v[3], want));

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) & 0xaaaa;
#else
	uint32_t bits = 0;

	for (unsigned i = 0; i < CACHE_BUCKET_SLOTS; i++)
		bits |= (uint32_t)(cache_slot_tag(cache_word_load(&bucket[i])) == tag) << (2 * i + 1);
	return bits;
#endif
}

void cache_prefetch_bucket(const struct cache_reader *r, uint64_t hash)
{
	const uint64_t *pair = pair_at(r, shard_at(r, hash), hash);

	__builtin_prefetch(pair);
	__builtin_prefetch(pair + CACHE_BUCKET_SLOTS);
}

void cache_prefetch_entry(const struct cache_reader *r, const struct cache_key *key)
{
	const uint8_t *shard = shard_at(r, key->hash);
	const uint64_t *pair = pair_at(r, shard, key->hash);
	unsigned bucket = cache_bucket_of(key->hash) * CACHE_BUCKET_SLOTS;
	uint16_t tag = cache_name_tag(key->hash, key->partition, key->is_cd) | cache_type_tag(key->type);
	uint32_t bits = match(pair + bucket, tag);

	if (unlikely(bits == 0)) {
		bucket ^= CACHE_BUCKET_SLOTS;
		bits = match(pair + bucket, tag);
	}
	if (bits == 0)
		return;
	uint32_t place = (uint32_t)cache_word_load(&pair[bucket + (unsigned)__builtin_ctz(bits) / 2]);
	const uint8_t *block = shard + r->g.logs_at + (size_t)MIN(place, r->g.units) * CACHE_UNIT;
	__builtin_prefetch(block);
	__builtin_prefetch(block + CACHE_LINE);
}

ALWAYS_INLINE bool name_is(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	uint64_t x, y;
	size_t i = 0;

	if (unlikely(bytes < sizeof(x)))
		return memcmp(a, b, bytes) == 0;
	for (; i + sizeof(x) < bytes; i += sizeof(x)) {
		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		if (x != y)
			return false;
	}
	memcpy(&x, a + bytes - sizeof(x), sizeof(x));
	memcpy(&y, b + bytes - sizeof(y), sizeof(y));
	return x == y;
}

enum copied { COPIED, COPIED_OTHER, COPIED_MOVED };

/* Copies the block of a slot word into scratch as an entry, if its head is the wanted one. Says nothing about whether the copy is whole. */
ALWAYS_INLINE enum copied copy_block(const struct cache_reader *r, const struct wanted *w, uint64_t word, uint64_t *scratch,
				     struct cache_block *b, struct cache_block_long *l, uint32_t *rest_words)
{
	uint32_t place = (uint32_t)word, room = r->g.units - place;
	const uint64_t *from = (const uint64_t *)(w->logs + (size_t)place * CACHE_UNIT);
	uint64_t head[CACHE_BLOCK_WORDS];

	if (unlikely(place >= r->g.units || room < CACHE_BLOCK_WORDS))
		return COPIED_OTHER;
	for (unsigned i = 0; i < CACHE_BLOCK_WORDS; i++)
		head[i] = cache_word_load(from + i);
	if (unlikely((head[0] & WORD0_MASK) != w->word[0] || (head[1] & WORD1_MASK) != w->word[1]))
		return COPIED_OTHER;
	memcpy(b, head, sizeof(*b));
	bool is_long = b->shape & CACHE_BLOCK_LONG;
	uint32_t words = cache_block_rest_words(b->units, is_long);
	if (unlikely(words == 0 || b->units > room))
		return COPIED_OTHER;
	from += CACHE_BLOCK_WORDS;
	if (unlikely(is_long)) {
		for (unsigned i = 0; i < CACHE_BLOCK_WORDS; i++)
			head[i] = cache_word_load(from + i);
		memcpy(l, head, sizeof(*l));
		from += CACHE_BLOCK_WORDS;
	}
	for (uint32_t i = 0; i < words; i++)
		scratch[CACHE_ENTRY_WORDS + i] = cache_word_load(from + i);
	*rest_words = words;
	return COPIED;
}

/* One slot: a copy that was whole, and is the key's. */
ALWAYS_INLINE bool read_slot(const struct cache_reader *r, const struct wanted *w, const struct cache_key *key, uint64_t *slot,
			     uint64_t *scratch)
{
	struct cache_entry *e = (struct cache_entry *)scratch;
	struct cache_block b;
	struct cache_block_long l;
	uint32_t rest_words;

	for (unsigned try = 0; try < READ_TRIES; try++) {
		uint64_t word = cache_slot_load(slot);
		if (unlikely(cache_slot_tag(word) != w->tag))
			return false;
		enum copied copied = copy_block(r, w, word, scratch, &b, &l, &rest_words);
		cache_read_fence();
		if (unlikely(cache_word_load(slot) != word))
			continue;
		if (unlikely(copied != COPIED))
			return false;
		e->hash = key->hash;
		bool is_sound = unlikely(b.shape & CACHE_BLOCK_LONG) ? cache_block_expand_long(e, &b, &l, rest_words * CACHE_UNIT)
								     : cache_block_expand(e, &b, rest_words * CACHE_UNIT);
		return likely(is_sound) && likely(name_is(cache_entry_name(e), key->name, key->name_bytes));
	}
	return false;
}

/* The number of the slot in the pair whose entry is wanted; CACHE_PAIR_SLOTS if there is none. */
ALWAYS_INLINE unsigned find(const struct cache_reader *r, const struct wanted *w, const struct cache_key *key, uint64_t *scratch)
{
	unsigned bucket = cache_bucket_of(key->hash) * CACHE_BUCKET_SLOTS;

	for (unsigned turn = 0; turn < 2; turn++, bucket ^= CACHE_BUCKET_SLOTS) {
		for (uint32_t bits = match(w->slots + bucket, w->tag); bits != 0; bits &= bits - 1) {
			unsigned i = bucket + (unsigned)__builtin_ctz(bits) / 2;
			if (likely(read_slot(r, w, key, w->slots + i, scratch)))
				return i;
		}
	}
	return CACHE_PAIR_SLOTS;
}

ALWAYS_INLINE void want_name(struct wanted *w, const struct cache_reader *r, const struct cache_key *key)
{
	unsigned shard = cache_shard_of(&r->g, key->hash);
	uint32_t pair = cache_pair_of(&r->g, (uint32_t)key->hash);
	const uint8_t *at = r->shards + shard * r->g.shard_bytes;

	w->slots = (uint64_t *)(uintptr_t)(at + r->g.slots_at) + (size_t)pair * CACHE_PAIR_SLOTS;
	w->logs = at + r->g.logs_at;
	w->first = ((size_t)shard * r->g.pairs + pair) * CACHE_PAIR_SLOTS;
}
ALWAYS_INLINE void want_type(struct wanted *w, const struct cache_key *key, uint16_t type, uint16_t name_tag)
{
	uint32_t flags = (key->is_cd ? CACHE_F_CD : 0u) | (type == 0 ? CACHE_F_NXDOMAIN : 0u);

	w->tag = name_tag | cache_type_tag(type);
	w->word[0] = (uint64_t)type << 16 | key->hash << 32;
	w->word[1] = key->partition | flags << 8 | (uint32_t)key->name_bytes << 16;
}

ALWAYS_INLINE enum cache_result judge(const struct cache_reader *r, uint16_t partition, uint32_t now_s, uint64_t slot,
				      const uint64_t *scratch, struct cache_hit *hit)
{
	const struct cache_entry *e = (const struct cache_entry *)scratch;

	if (unlikely((int32_t)(e->epoch - cache_epoch(r, partition)) < 0))
		return CACHE_MISS;
	hit->entry = e;
	hit->slot = slot;
	return likely(now_s < e->expire_s) ? CACHE_HIT : CACHE_EXPIRED;
}

enum cache_result cache_read(const struct cache_reader *r, const struct cache_key *key, uint32_t now_s, uint64_t *scratch,
			     struct cache_hit *hit)
{
	struct wanted w;
	uint16_t name_tag = cache_name_tag(key->hash, key->partition, key->is_cd);

	if (unlikely(key->partition >= CACHE_PARTITIONS))
		return CACHE_MISS;
	want_name(&w, r, key);
	want_type(&w, key, key->type, name_tag);
	unsigned slot = find(r, &w, key, scratch);
	if (unlikely(slot == CACHE_PAIR_SLOTS)) {
		want_type(&w, key, 0, name_tag);
		slot = find(r, &w, key, scratch);
		if (slot == CACHE_PAIR_SLOTS)
			return CACHE_MISS;
	}
	return judge(r, key->partition, now_s, w.first + slot, scratch, hit);
}

/* The name's own NXDOMAIN, if it is fresh. */
static bool read_nxdomain(const struct cache_reader *r, const struct cache_key *key, uint32_t now_s, uint64_t *scratch,
			  struct cache_hit *hit)
{
	struct wanted w;

	want_name(&w, r, key);
	want_type(&w, key, 0, cache_name_tag(key->hash, key->partition, key->is_cd));
	unsigned slot = find(r, &w, key, scratch);
	return slot != CACHE_PAIR_SLOTS && judge(r, key->partition, now_s, w.first + slot, scratch, hit) == CACHE_HIT;
}

enum cache_result cache_read_cut(const struct cache_reader *r, const struct cache_key *key, const uint8_t *label_offset,
				 unsigned label_count, uint32_t now_s, uint64_t *scratch, struct cache_hit *hit)
{
	struct cache_key above[CACHE_CUT_LABELS];
	unsigned count = 0;

	if (unlikely(key->partition >= CACHE_PARTITIONS))
		return CACHE_MISS;
	/* All hashes first, so that the buckets' loads overlap. The root exists. */
	for (unsigned i = 1; i < label_count && count < CACHE_CUT_LABELS; i++) {
		const uint8_t *name = key->name + label_offset[i];
		uint8_t bytes = (uint8_t)(key->name_bytes - label_offset[i]);

		above[count] = (struct cache_key){ .name = name,
						   .hash = cache_hash(r, name_hash_inline(name, bytes)),
						   .partition = key->partition,
						   .name_bytes = bytes,
						   .is_cd = key->is_cd };
		cache_prefetch_bucket(r, above[count++].hash);
	}
	for (unsigned i = 0; i < count; i++)
		if (unlikely(read_nxdomain(r, &above[i], now_s, scratch, hit)))
			return CACHE_HIT;
	return CACHE_MISS;
}
