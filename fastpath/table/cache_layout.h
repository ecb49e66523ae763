/* SPDX-License-Identifier: Apache-2.0 */
/* cache_layout.h: how the answer cache lies in its memory. For cache*.c only; cache.h is for everybody else.
 *
 *     header (a page) | shard | shard | ...          shard: head | slots | ghosts | small log, main log
 *
 * Geometry   A function of the size alone, which fstat tells: nothing in the memory says where anything is.
 * Buckets    The low half of a name's hash chooses two buckets, first and second. What is stored goes to the first while that has some slots left,
 *            then to where more are: so nearly all slots can be used, and most reads end at the first.
 * Slot       tag:16 | lap:16 | place:32. The place counts CACHE_UNITs from the shard's logs, the small one first. 0: empty.
 * Tag        name:12 | type:4. The first part mixes the name's hash and length, the partition and CD; so the writer finds all types of a name. Type bits are
 *            1 for NXDOMAIN and have bit 3 for all else: no tag is 0.
 * Position   lap:32 | offset:32, of a log's head and tail. lap of head and tail differ by one at most. A block never lies across the end of a log: where
 *            it does not fit, a unit whose first word is 0 says that the lap ends.
 * Block      An entry as it lies in a log: struct cache_block, in long ones struct cache_block_long, then what stands behind struct
 *            cache_entry. An A record's answer takes 72 octets.
 * Writes     Every word that a reader may look at is written by a relaxed atomic store. */
#pragma once
#include "base/base.h"
#include "table/cache.h"

#define CACHE_HEADER_BYTES 4096u
#define CACHE_SHARD_MIN_BYTES (1ull << 20)
#define CACHE_UNIT 8u
#define CACHE_BUCKET_SLOTS 8u
#define CACHE_BUCKETS 2u	 /* that a name may lie in */
#define CACHE_FIRST_FILL 5u	 /* slots that are used in the first one before the second one is looked at */
#define CACHE_SLOT_LOG_BYTES 64u /* octets of the logs for each slot: half of the slots are used with entries of 128 octets */
#define CACHE_GHOST_WAYS 16u	 /* fingerprints that one name may lie among */
#define CACHE_GHOST_LOG_BYTES 128u
#define CACHE_SMALL_PART 10u /* the small log is a tenth */

enum cache_log_name { CACHE_SMALL, CACHE_MAIN, CACHE_LOGS };

struct cache_header {
	uint32_t magic, version; /* constant once made, as are the next two */
	uint64_t size_bytes;
	uint64_t hash_key[2];
	_Atomic uint32_t is_dirty; /* a writer is attached, or has died */
	alignas(CACHE_LINE) _Atomic uint32_t epoch[CACHE_PARTITIONS];
};
static_assert(sizeof(struct cache_header) <= CACHE_HEADER_BYTES, "a page");

enum cache_counter {
	CACHE_N_ENTRIES, /* in slots */
	CACHE_N_BYTES,	 /* of their blocks */
	CACHE_N_STORES,
	CACHE_N_REPLACED,
	CACHE_N_EVICTED,
	CACHE_N_PROMOTED,
	CACHE_N_EXPIRED,
	CACHE_N_OUTDATED,
	CACHE_N_TOO_LARGE,
	CACHE_N_GHOST_HITS,
	CACHE_N_NO_SLOT,
	CACHE_N_RESETS,
	CACHE_COUNTERS,
};
struct cache_shard_head { /* written by the shard's writer, read by the next one and for statistics */
	struct {
		_Atomic uint64_t head, tail;
	} log[CACHE_LOGS];
	alignas(CACHE_LINE) _Atomic uint64_t count[CACHE_COUNTERS];
};
#define CACHE_SHARD_HEAD_BYTES 256u
static_assert(sizeof(struct cache_shard_head) <= CACHE_SHARD_HEAD_BYTES, "ABI changed");

/* The head of struct cache_entry. */
struct cache_block {
	uint16_t units; /* of CACHE_UNIT octets, of everything; 0: the lap ends here */
	uint16_t type;
	uint32_t hash_low;
	uint16_t partition;
	uint8_t name_bytes, flags;
	uint8_t rcode;
	int8_t ede;
	uint8_t backoff;
	uint8_t shape; /* CACHE_BLOCK_LONG, octets of padding at the end */
	uint32_t stored_s, expire_s;
	uint32_t epoch;
	uint8_t count[3], pointer_count;
};
static_assert(sizeof(struct cache_block) == 32, "ABI changed");
static_assert(offsetof(struct cache_entry, epoch) == offsetof(struct cache_block, epoch), "the same head");
static_assert(offsetof(struct cache_entry, flags) == offsetof(struct cache_block, flags), "the same head");
static_assert(offsetof(struct cache_entry, shape_) == offsetof(struct cache_block, shape), "the same head");
static_assert(offsetof(struct cache_entry, hash) == sizeof(struct cache_block), "the same head");
#define CACHE_BLOCK_WORDS 4u
#define CACHE_BLOCK_LEAST_UNITS (CACHE_BLOCK_WORDS + 1)
#define CACHE_BLOCK_LONG 0x80u
#define CACHE_BLOCK_PADDING 0x07u
/* With DNSSEC spans, stale ones, and where the numbers above are too small (there they are 0). */
struct cache_block_long {
	uint16_t count[3], dnssec_count[3];
	struct cache_span span[3];
	uint16_t pointer_count, expired_min, reserved[2];
};
static_assert(sizeof(struct cache_block_long) == 32, "ABI changed");
#define CACHE_ENTRY_WORDS (sizeof(struct cache_entry) / 8)

struct cache_geometry {
	unsigned shards;
	uint32_t buckets, ghost_sets;	/* of a shard */
	uint32_t log_units[CACHE_LOGS]; /* in CACHE_UNIT */
	uint32_t units;			/* of both logs; one more is there to be read */
	uint32_t block_max_units;
	uint32_t main_reserve_units; /* kept free, so that a block moved from main's tail to its head never lies on itself */
	size_t slots_at, ghosts_at, logs_at, shard_bytes;
};
/* False: too small or too large. */
MUST_USE bool cache_geometry_of(struct cache_geometry *out, uint64_t size_bytes);

/* What a process knows of a cache; struct cache_writer has one too. */
struct cache_reader {
	uint8_t *map;	 /* header; written to by writers only */
	uint8_t *shards; /* map + CACHE_HEADER_BYTES */
	uint64_t hash_key[2];
	struct cache_geometry g;
	uint32_t last_place; /* at which a block may begin */
	size_t map_bytes;
	uint8_t *marks_map;
	size_t marks_bytes, marks_stride;
	unsigned marks_readers;
};
/* Checks the header and the marks against the size; both mappings stay the caller's on failure. */
MUST_USE enum err cache_reader_init(struct cache_reader *r, void *map, size_t map_bytes);
MUST_USE enum err cache_reader_init_marks(struct cache_reader *r, int marks_fd);
void cache_reader_fini(struct cache_reader *r);

/* --- hashes and slots -------------------------------------------------------------------------------------------------- */

ALWAYS_INLINE uint64_t cache_hash_keyed(const uint64_t key[2], uint64_t name_hash)
{
	unsigned __int128 product = (unsigned __int128)(name_hash ^ key[0]) * key[1];

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}
/* Bits 0 to 31 choose the buckets, 32 to 37 the shard; 52 to 63 go into the tag. */
ALWAYS_INLINE unsigned cache_shard_of(const struct cache_geometry *g, uint64_t hash)
{
	return (unsigned)(hash >> 32) & (g->shards - 1);
}
ALWAYS_INLINE uint32_t cache_bucket_first(const struct cache_geometry *g, uint32_t hash_low)
{
	return (uint32_t)(((uint64_t)hash_low * g->buckets) >> 32);
}
ALWAYS_INLINE uint32_t cache_bucket_second(const struct cache_geometry *g, uint32_t hash_low)
{
	return (uint32_t)(((uint64_t)(hash_low * 0x9e3779b1u) * g->buckets) >> 32);
}

#define CACHE_TAG_NAME 0xfff0u
#define CACHE_TAG_NXDOMAIN 1u
/* Partition, length of the name, CD as they stand in a block's head, other flags left out. */
ALWAYS_INLINE uint32_t cache_key_word(uint16_t partition, uint8_t name_bytes, bool is_cd)
{
	return partition | (uint32_t)name_bytes << 16 | (uint32_t)is_cd << 24;
}
static_assert(CACHE_F_CD == 1 && offsetof(struct cache_block, flags) == 11 && offsetof(struct cache_block, name_bytes) == 10,
	      "above");
ALWAYS_INLINE uint32_t cache_name_tag(uint64_t hash, uint32_t key_word)
{
	return ((uint32_t)(hash >> 48) + key_word * 0x9e35u) & CACHE_TAG_NAME;
}
ALWAYS_INLINE uint32_t cache_type_tag(uint16_t type) { return ((uint32_t)(type ^ type >> 5) & 7) | 8; }
/* Tag of an entry's key. */
ALWAYS_INLINE uint16_t cache_tag_of(uint64_t hash, uint16_t type, uint32_t key_word)
{
	return (uint16_t)(cache_name_tag(hash, key_word) | (type == 0 ? CACHE_TAG_NXDOMAIN : cache_type_tag(type)));
}

ALWAYS_INLINE uint64_t cache_slot_word(uint16_t tag, uint32_t lap, uint32_t place)
{
	return (uint64_t)tag << 48 | (uint64_t)(lap & 0xffff) << 32 | place;
}
ALWAYS_INLINE uint16_t cache_slot_tag(uint64_t word) { return (uint16_t)(word >> 48); }
#define CACHE_SLOT_WHERE ((UINT64_C(1) << 48) - 1) /* lap and place */

/* --- words that two processes touch --------------------------------------------------------------------------------------
 * ThreadSanitizer knows no fences; there each word carries the order that the fence gives to all of them. */
#if defined(__SANITIZE_THREAD__)
#define CACHE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CACHE_THREAD_SANITIZER 1
#endif
#endif
ALWAYS_INLINE uint64_t cache_word_load(const uint64_t *word)
{
#ifdef CACHE_THREAD_SANITIZER
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#else
	return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}
ALWAYS_INLINE void cache_word_store(uint64_t *word, uint64_t value)
{
#ifdef CACHE_THREAD_SANITIZER
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#else
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
#endif
}
/* Behind a reader's copy, in front of its second look at the slot. */
ALWAYS_INLINE void cache_read_fence(void)
{
#ifndef CACHE_THREAD_SANITIZER
	atomic_thread_fence(memory_order_acquire);
#endif
}
/* Behind a writer's clearing of slots, in front of new words where their blocks lay. */
ALWAYS_INLINE void cache_write_fence(void)
{
#ifndef CACHE_THREAD_SANITIZER
	atomic_thread_fence(memory_order_release);
#endif
}
ALWAYS_INLINE uint64_t cache_slot_load(const uint64_t *slot) { return __atomic_load_n(slot, __ATOMIC_ACQUIRE); }
ALWAYS_INLINE void cache_slot_store(uint64_t *slot, uint64_t word) { __atomic_store_n(slot, word, __ATOMIC_RELEASE); }

/* --- a private copy ---------------------------------------------------------------------------------------------------------- */

/* Octets of a record: owner (one at least), type, class; TTL, RDLENGTH; a pointer. */
enum { CACHE_BEFORE_TTL = 5, CACHE_TTL_AND_LENGTH = 6, CACHE_POINTER_BYTES = 2 };
/* TTLs and pointers: ascending, apart from each other by what must lie between them, within the body. */
ALWAYS_INLINE bool cache_offsets_are_sound(const uint16_t *ttl_at, uint32_t rr_count, const uint16_t *pointer_at,
					   uint32_t pointer_count, uint32_t body_bytes)
{
	uint32_t least = CACHE_BEFORE_TTL, below = 0;
	bool is_bad = false;

	for (uint32_t i = 0; i < rr_count; i++) {
		is_bad |= ttl_at[i] < least;
		least = ttl_at[i] + CACHE_TTL_AND_LENGTH + CACHE_BEFORE_TTL;
	}
	for (uint32_t i = 0; i < pointer_count; i++) {
		is_bad |= pointer_at[i] < below;
		below = pointer_at[i] + CACHE_POINTER_BYTES;
	}
	return !is_bad && (rr_count ? least - CACHE_BEFORE_TTL <= body_bytes : body_bytes == 0) && below <= body_bytes;
}
/* The rest of cache_entry_check, for entries that have one DNSSEC record at least. */
MUST_USE HOT bool cache_spans_are_sound(const struct cache_entry *e);
/* The parts of an entry that was made of a block; what they say of each other. */
ALWAYS_INLINE bool cache_parts_are_sound(const struct cache_entry *e)
{
	return cache_offsets_are_sound(cache_entry_ttl_at(e), e->rr_count, cache_entry_pointer_at(e), e->pointer_count,
				       e->body_bytes);
}

/* Words behind the head of a block of `units`; 0 if the number is impossible. */
ALWAYS_INLINE uint32_t cache_block_rest_words(uint32_t units, bool is_long)
{
	uint32_t head = is_long ? 2 * CACHE_BLOCK_WORDS : CACHE_BLOCK_WORDS;

	return units > head && units - head <= CACHE_SCRATCH_WORDS - CACHE_ENTRY_WORDS ? units - head : 0;
}
/* What follows an entry's head, words from its hash on: hash; bytes, rr_count, pointer_count; body_bytes, expired_min; count, dnssec_count; span. */
ALWAYS_INLINE void cache_entry_put_word(struct cache_entry *e, unsigned index, uint64_t word)
{
	memcpy((uint8_t *)&e->hash + 8 * (size_t)index, &word, sizeof(word));
}
static_assert(offsetof(struct cache_entry, bytes) == offsetof(struct cache_entry, hash) + 8, "words");
static_assert(offsetof(struct cache_entry, pointer_count) == offsetof(struct cache_entry, hash) + 14, "words");
static_assert(offsetof(struct cache_entry, body_bytes) == offsetof(struct cache_entry, hash) + 16, "words");
static_assert(offsetof(struct cache_entry, count) == offsetof(struct cache_entry, hash) + 24, "words");
static_assert(sizeof(struct cache_entry) == offsetof(struct cache_entry, hash) + 48, "words");

/* Makes *e of its head, which stands in it already, as the rest stands behind it. False: sizes or numbers do not agree. The name is not
 * looked at. */
MUST_USE HOT bool cache_block_expand_long(struct cache_entry *e, const struct cache_block_long *l, uint32_t rest_bytes);
/* One record in the answer section, one pointer: most of all answers. */
#define CACHE_ONE_RECORD UINT64_C(0x01000001) /* count[3], pointer_count */
ALWAYS_INLINE bool cache_expand_one_record(struct cache_entry *e, uint64_t hash, uint32_t other, uint32_t rest_bytes)
{
	const uint16_t *at = (const uint16_t *)(e + 1);
	uint32_t body_bytes = rest_bytes - other - 4, ttl = at[0], pointer = at[1];

	cache_entry_put_word(e, 0, hash);
	cache_entry_put_word(e, 1, (sizeof(*e) + rest_bytes) | UINT64_C(1) << 32 | UINT64_C(1) << 48);
	cache_entry_put_word(e, 2, body_bytes);
	cache_entry_put_word(e, 3, 1);
	cache_entry_put_word(e, 4, 0);
	cache_entry_put_word(e, 5, 0);
	return other + 4 <= rest_bytes && ttl >= CACHE_BEFORE_TTL && ttl + CACHE_TTL_AND_LENGTH <= body_bytes &&
	       pointer + CACHE_POINTER_BYTES <= body_bytes;
}
/* The same for all blocks that are not long. word1, word3: of the head. */
MUST_USE ALWAYS_INLINE bool cache_block_expand(struct cache_entry *e, uint64_t hash, uint64_t word1, uint64_t word3,
					       uint32_t rest_bytes)
{
	uint32_t name_bytes = (uint32_t)(word1 >> 16) & 0xff,
		 other = name_bytes + ((uint32_t)(word1 >> 56) & CACHE_BLOCK_PADDING);

	if (likely(word3 >> 32 == CACHE_ONE_RECORD))
		return cache_expand_one_record(e, hash, other, rest_bytes);
	uint64_t a = word3 >> 32 & 0xff, b = word3 >> 40 & 0xff, c = word3 >> 48 & 0xff, rr_count = a + b + c,
		 pointer_count = word3 >> 56;
	const uint16_t *ttl_at = (const uint16_t *)(e + 1);
	other += 2 * (uint32_t)(rr_count + pointer_count);
	if (unlikely(other > rest_bytes))
		return false;
	uint32_t body_bytes = rest_bytes - other;
	cache_entry_put_word(e, 0, hash);
	cache_entry_put_word(e, 1, (sizeof(*e) + rest_bytes) | rr_count << 32 | pointer_count << 48);
	cache_entry_put_word(e, 2, body_bytes);
	cache_entry_put_word(e, 3, a | b << 16 | c << 32);
	cache_entry_put_word(e, 4, 0);
	cache_entry_put_word(e, 5, 0);
	return cache_offsets_are_sound(ttl_at, (uint32_t)rr_count, ttl_at + rr_count, (uint32_t)pointer_count, body_bytes);
}
