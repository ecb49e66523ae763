/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of the answer cache: two cache lines, one block. The order of loads is the whole protocol: the slot (acquire), the block's words,
 * a fence (acquire), the slot again. A writer that reuses a block's place has cleared or changed its slot before (release fence), so a copy that
 * is followed by the same slot word is the block that the slot was published with.
 *
 * Budget: 150 instructions for the answer of an A record. Not reached: 286 for a hit, 224 for a miss, 394 for a cut with two ancestors
 * (callgrind over bench/micro/cache_micro read, miss, cut). */
#include "table/cache.h"

#include "dns/name_inline.h"
#include "table/cache_layout.h"

#if defined(__SSE2__) && !defined(CACHE_THREAD_SANITIZER)
#include <emmintrin.h>
#define CACHE_MATCH_SSE2 1
#endif

#define READ_TRIES 3u /* of a slot whose block moves meanwhile */

/* What the head of a wanted block says, as far as the masks go. */
struct wanted {
	uint64_t word0, word1;
	uint16_t tag;
};
#define WORD0_MASK UINT64_C(0xffffffffffff0000) /* type, hash_low */
#define WORD1_FLAGS (0xffu & ~(CACHE_F_KNOWN & ~(CACHE_F_CD | CACHE_F_NXDOMAIN)))
#define WORD1_MASK (UINT64_C(0x00ffffff) | (uint64_t)WORD1_FLAGS << 24) /* partition, name_bytes, the flags that must be so */
static_assert(offsetof(struct cache_block, shape) == 15 && CACHE_BLOCK_LONG == 0x80, "the sign of word 1");

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
ALWAYS_INLINE const uint64_t *bucket_at(const struct cache_reader *r, const uint8_t *shard, uint32_t bucket)
{
	return (const uint64_t *)(shard + r->g.slots_at) + (size_t)bucket * CACHE_BUCKET_SLOTS;
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
	const uint8_t *shard = shard_at(r, hash);

	__builtin_prefetch(bucket_at(r, shard, cache_bucket_first(&r->g, (uint32_t)hash)));
	__builtin_prefetch(bucket_at(r, shard, cache_bucket_second(&r->g, (uint32_t)hash)));
}

void cache_prefetch_entry(const struct cache_reader *r, const struct cache_key *key)
{
	const uint8_t *shard = shard_at(r, key->hash);
	const uint64_t *bucket = bucket_at(r, shard, cache_bucket_first(&r->g, (uint32_t)key->hash));
	uint16_t tag = cache_tag_of(key->hash, key->type, cache_key_word(key->partition, key->name_bytes, key->is_cd));
	uint32_t bits = match(bucket, tag);

	if (unlikely(bits == 0)) {
		bucket = bucket_at(r, shard, cache_bucket_second(&r->g, (uint32_t)key->hash));
		bits = match(bucket, tag);
		if (bits == 0)
			return;
	}
	uint32_t place = (uint32_t)cache_word_load(&bucket[(unsigned)__builtin_ctz(bits) / 2]);
	const uint8_t *block = shard + r->g.logs_at + (size_t)MIN(place, r->g.units) * CACHE_UNIT;
	__builtin_prefetch(block);
	__builtin_prefetch(block + CACHE_LINE);
}

ALWAYS_INLINE uint64_t load_word(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}
ALWAYS_INLINE bool name_is(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	if (unlikely(bytes < sizeof(uint64_t)))
		return memcmp(a, b, bytes) == 0;
	const uint8_t *last = a + bytes - sizeof(uint64_t);
	uint64_t differences = load_word(last) ^ load_word(b + bytes - sizeof(uint64_t));
	for (; a < last; a += sizeof(uint64_t), b += sizeof(uint64_t))
		differences |= load_word(a) ^ load_word(b);
	return differences == 0;
}

ALWAYS_INLINE void put_word(void *to, uint32_t index, uint64_t word) { memcpy((uint64_t *)to + index, &word, sizeof(word)); }

/* Copies words two at a time; one more than asked for may be read and written. */
ALWAYS_INLINE void copy_words(void *to, const uint64_t *from, uint32_t words)
{
	for (uint32_t i = 0; i < words; i += 2) {
		uint64_t first = cache_word_load(from + i), second = cache_word_load(from + i + 1);

		put_word(to, i, first);
		put_word(to, i + 1, second);
	}
}

/* What became of one look at a slot. */
enum look { LOOK_FOUND, LOOK_OTHER, LOOK_MOVED };

/* Something is not as it should be: either the entry is another one, or its place was reused meanwhile. */
static COLD __attribute__((noinline)) enum look look_again(const uint64_t *slot, uint64_t word)
{
	cache_read_fence();
	return cache_word_load(slot) == word ? LOOK_OTHER : LOOK_MOVED;
}

/* The rest of a look at a block whose head stands in *e: the way of those with DNSSEC spans. */
static __attribute__((noinline)) enum look look_at_long(struct cache_entry *e, const struct cache_reader *r, uint64_t hash,
							const uint64_t *slot, uint64_t word, const uint64_t *from)
{
	struct cache_block_long l;
	uint32_t words = cache_block_rest_words(e->units_, true);

	if (words == 0 || e->units_ > r->g.units - (uint32_t)word)
		return look_again(slot, word);
	copy_words(&l, from + CACHE_BLOCK_WORDS, CACHE_BLOCK_WORDS);
	copy_words(e + 1, from + 2 * CACHE_BLOCK_WORDS, words);
	cache_read_fence();
	if (cache_word_load(slot) != word)
		return LOOK_MOVED;
	e->hash = hash;
	return cache_block_expand_long(e, &l, words * CACHE_UNIT) ? LOOK_FOUND : LOOK_OTHER;
}

/* One look at a slot: a copy that was whole, and is the wanted one but for its name. */
ALWAYS_INLINE enum look look_at(struct cache_entry *e, const struct cache_reader *r, const struct wanted *w, uint64_t hash,
				const uint8_t *logs, const uint64_t *slot)
{
	uint64_t word = cache_slot_load(slot);
	uint32_t place = (uint32_t)word;

	if (unlikely(cache_slot_tag(word) != w->tag || place > r->last_place))
		return LOOK_OTHER;
	const uint64_t *from = (const uint64_t *)(logs + (size_t)place * CACHE_UNIT);
	uint64_t word0 = cache_word_load(from), word1 = cache_word_load(from + 1), word3 = cache_word_load(from + 3);
	uint32_t words = (uint32_t)(word0 & UINT16_MAX) - CACHE_BLOCK_WORDS;
	if (unlikely((word0 & WORD0_MASK) != w->word0 || (word1 & WORD1_MASK) != w->word1))
		return look_again(slot, word);
	put_word(e, 0, word0);
	put_word(e, 1, word1);
	put_word(e, 2, cache_word_load(from + 2));
	put_word(e, 3, word3);
	if (unlikely((int64_t)word1 < 0)) /* CACHE_BLOCK_LONG of its shape */
		return look_at_long(e, r, hash, slot, word, from);
	if (unlikely(words > r->last_place - place + 1 || words > CACHE_SCRATCH_WORDS - CACHE_ENTRY_WORDS))
		return look_again(slot, word);
	copy_words(e + 1, from + CACHE_BLOCK_WORDS, words);
	cache_read_fence();
	if (unlikely(cache_word_load(slot) != word))
		return LOOK_MOVED;
	return likely(cache_block_expand(e, hash, word1, word3, words * CACHE_UNIT)) ? LOOK_FOUND : LOOK_OTHER;
}

/* The number of the slot in a bucket whose entry is wanted; CACHE_BUCKET_SLOTS if there is none. */
ALWAYS_INLINE unsigned find_in(struct cache_entry *e, const struct cache_reader *r, const struct wanted *w,
			       const struct cache_key *key, const uint8_t *logs, const uint64_t *bucket)
{
	for (uint32_t bits = match(bucket, w->tag); bits != 0; bits &= bits - 1) {
		unsigned i = (unsigned)__builtin_ctz(bits) / 2;
		enum look look = look_at(e, r, w, key->hash, logs, bucket + i);

		for (unsigned again = 1; unlikely(look == LOOK_MOVED) && again < READ_TRIES; again++)
			look = look_at(e, r, w, key->hash, logs, bucket + i);
		if (likely(look == LOOK_FOUND) && likely(name_is(cache_entry_name(e), key->name, key->name_bytes)))
			return i;
	}
	return CACHE_BUCKET_SLOTS;
}

/* type 0 stands for no type that can be asked for: nothing is found. */
ALWAYS_INLINE struct wanted wanted_type(const struct cache_key *key)
{
	uint32_t key_word = cache_key_word(key->partition, key->name_bytes, key->is_cd);

	return (struct wanted){ .word0 = (uint64_t)key->type << 16 | key->hash << 32,
				.word1 = key_word,
				.tag = (uint16_t)(cache_name_tag(key->hash, key_word) | cache_type_tag(key->type)) };
}
ALWAYS_INLINE struct wanted wanted_nxdomain(const struct cache_key *key)
{
	uint32_t key_word = cache_key_word(key->partition, key->name_bytes, key->is_cd);

	return (struct wanted){ .word0 = key->hash << 32,
				.word1 = key_word | (uint32_t)CACHE_F_NXDOMAIN << 24,
				.tag = (uint16_t)(cache_name_tag(key->hash, key_word) | CACHE_TAG_NXDOMAIN) };
}

#define NO_SLOT UINT64_MAX
/* The wanted entry, in *e: the number of its slot in mark arrays, or NO_SLOT. */
ALWAYS_INLINE uint64_t find(struct cache_entry *e, const struct cache_reader *r, const struct cache_key *key, struct wanted w)
{
	unsigned shard = cache_shard_of(&r->g, key->hash);
	const uint8_t *at = r->shards + shard * r->g.shard_bytes, *logs = at + r->g.logs_at;
	uint32_t bucket = cache_bucket_first(&r->g, (uint32_t)key->hash);
	unsigned i = find_in(e, r, &w, key, logs, bucket_at(r, at, bucket));

	if (unlikely(i == CACHE_BUCKET_SLOTS)) {
		bucket = cache_bucket_second(&r->g, (uint32_t)key->hash);
		i = find_in(e, r, &w, key, logs, bucket_at(r, at, bucket));
		if (i == CACHE_BUCKET_SLOTS)
			return NO_SLOT;
	}
	return ((uint64_t)shard * r->g.buckets + bucket) * CACHE_BUCKET_SLOTS + i;
}
static __attribute__((noinline)) uint64_t find_nxdomain(struct cache_entry *e, const struct cache_reader *r,
							const struct cache_key *key)
{
	return find(e, r, key, wanted_nxdomain(key));
}

ALWAYS_INLINE enum cache_result judge(const struct cache_reader *r, uint16_t partition, uint32_t now_s, uint64_t slot,
				      const struct cache_entry *e, struct cache_hit *hit)
{
	if (unlikely(partition >= CACHE_PARTITIONS || (int32_t)(e->epoch - cache_epoch(r, partition)) < 0))
		return CACHE_MISS;
	hit->entry = e;
	hit->slot = slot;
	return likely(now_s < e->expire_s) ? CACHE_HIT : CACHE_EXPIRED;
}

enum cache_result cache_read(const struct cache_reader *r, const struct cache_key *key, uint32_t now_s, uint64_t *scratch,
			     struct cache_hit *hit)
{
	struct cache_entry *e = (struct cache_entry *)scratch;

	uint64_t slot = find(e, r, key, wanted_type(key));
	if (unlikely(slot == NO_SLOT)) {
		slot = find_nxdomain(e, r, key);
		if (slot == NO_SLOT)
			return CACHE_MISS;
	}
	return judge(r, key->partition, now_s, slot, e, hit);
}

enum cache_result cache_read_cut(const struct cache_reader *r, const struct cache_key *key, const uint8_t *label_offset,
				 unsigned label_count, uint32_t now_s, uint64_t *scratch, struct cache_hit *hit)
{
	struct cache_entry *e = (struct cache_entry *)scratch;
	struct cache_key above[CACHE_CUT_LABELS];
	unsigned count = 0;

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
	for (unsigned i = 0; i < count; i++) {
		uint64_t slot = find_nxdomain(e, r, &above[i]);

		if (unlikely(slot != NO_SLOT) && judge(r, key->partition, now_s, slot, e, hit) == CACHE_HIT)
			return CACHE_HIT;
	}
	return CACHE_MISS;
}
