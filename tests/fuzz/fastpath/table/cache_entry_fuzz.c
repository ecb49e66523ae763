/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that somebody else made: what cache_entry_check lets pass can be used without leaving it. And blocks that somebody else wrote into the cache:
 * what cache_read returns is such an entry. Input: octet 0: bit 0: a block, bit 1: with a head that fits the question; then the entry or the block. */
#include <stdlib.h>

#include "table/cache_layout.h"
#include "tests/unit/lib/cache_entries.h"

#define NOW_S 0x01000000u

static struct cache_writer *writer;
static struct cache_reader *reader;
static struct cache_entries_room room;

static void make_cache(void)
{
	int fd;

	ASSERT(cache_create(&fd, CACHE_MIN_BYTES) == ERR_OK && cache_writer_attach(&writer, fd, -1) == ERR_OK);
	reader = cache_writer_reader(writer);
}

static void check_entry(const uint8_t *data, size_t size)
{
	struct cache_entry *e = malloc(MAX(size, sizeof(*e)));

	ASSERT(e);
	memcpy(e, data, size);
	if (size >= sizeof(*e)) {
		if (cache_entry_check(e, (uint32_t)size))
			cache_entries_use(e);
		e->bytes = (uint32_t)size;
		if (cache_entry_check(e, (uint32_t)size)) {
			cache_entries_use(e);
			e->hash = cache_hash(reader, name_hash(cache_entry_name(e), e->name_bytes));
			enum err err = cache_store(writer, e);
			ASSERT(err == ERR_OK || err == ERR_NOSPACE);
		}
	}
	free(e);
}

/* Puts octets where a question's block lies, then asks. */
static void check_block(const uint8_t *data, size_t size, bool fits)
{
	static const struct cache_entries_want want = { .name = "fuzz.example.", .type = 1, .stored_s = NOW_S, .ttl_s = 60 };
	static uint64_t scratch[CACHE_SCRATCH_WORDS];
	uint8_t wire[NAME_MAX_BYTES];
	struct cache_key key = cache_entries_key(wire, reader, &want);
	struct cache_hit hit;
	struct cache_block b, own;

	ASSERT(cache_store(writer, cache_entries_make(&room, reader, &want)) == ERR_OK);
	uint8_t *shard = reader->shards + cache_shard_of(&reader->g, key.hash) * reader->g.shard_bytes;
	uint64_t *bucket = (uint64_t *)(shard + reader->g.slots_at) +
			   (size_t)cache_bucket_first(&reader->g, (uint32_t)key.hash) * CACHE_BUCKET_SLOTS;
	uint16_t tag = cache_tag_of(key.hash, key.type, cache_key_word(0, key.name_bytes, false));
	for (unsigned i = 0; i < CACHE_BUCKET_SLOTS; i++) {
		uint32_t place = (uint32_t)bucket[i];
		if (cache_slot_tag(bucket[i]) != tag || place + size / CACHE_UNIT + 1 >= reader->g.units)
			continue;
		uint8_t *block = shard + reader->g.logs_at + (size_t)place * CACHE_UNIT;
		memcpy(&own, block, sizeof(own));
		memcpy(block, data, size);
		memcpy(&b, block, sizeof(b));
		if (fits) {
			b.hash_low = own.hash_low, b.type = own.type, b.partition = own.partition, b.name_bytes = own.name_bytes;
			b.flags = (uint8_t)(b.flags & ~(CACHE_F_CD | CACHE_F_NXDOMAIN) & CACHE_F_KNOWN);
			memcpy(block, &b, sizeof(b));
		}
	}
	if (cache_read(reader, &key, NOW_S, scratch, &hit) == CACHE_MISS)
		return;
	struct cache_entry *copy = malloc(hit.entry->bytes);
	ASSERT(copy);
	memcpy(copy, hit.entry, hit.entry->bytes);
	ASSERT(cache_entry_check(copy, copy->bytes));
	cache_entries_use(copy);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!writer)
		make_cache();
	if (size < 1 || size > 8192)
		return 0;
	if (data[0] & 1)
		check_block(data + 1, size - 1, data[0] & 2);
	else
		check_entry(data + 1, size - 1);
	return 0;
}
