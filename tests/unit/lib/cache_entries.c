/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lib/cache_entries.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

#define CLASS_IN 1u
#define TYPE_RRSIG 46u
#define QUESTION_POINTER 0xc00cu
#define RECORD_FIXED_BYTES 12u /* pointer, type, class, TTL, RDLENGTH */
#define LEAST_DATA_BYTES 4u
#define MOST_RECORDS 512u

static void give_up(const char *why)
{
	fprintf(stderr, "cache_entries: %s\n", why);
	abort();
}

static size_t wire_of(uint8_t wire[static NAME_MAX_BYTES], const char *text)
{
	const char *why = NULL;
	size_t bytes = name_from_text(wire, text, strlen(text), NULL, &why);

	if (bytes == 0)
		give_up(why);
	name_lower(wire, wire, bytes);
	return bytes;
}

/* What makes an entry, with its name in wire form. */
struct recipe {
	const uint8_t *name;
	uint8_t name_bytes;
	uint16_t type, partition, flags;
	uint32_t stored_s, ttl_s, epoch, seed;
	unsigned records, data_bytes, signatures;
};

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static uint8_t *put_record(uint8_t *at, const struct recipe *want, uint16_t type, uint32_t *random)
{
	store_be16(at, QUESTION_POINTER);
	store_be16(at + 2, type);
	store_be16(at + 4, CLASS_IN);
	store_be32(at + 6, want->ttl_s);
	store_be16(at + 10, (uint16_t)want->data_bytes);
	at += RECORD_FIXED_BYTES;
	store_be32(at, want->seed);
	for (unsigned i = LEAST_DATA_BYTES; i < want->data_bytes; i++)
		at[i] = (uint8_t)next_random(random);
	return at + want->data_bytes;
}

static void make(struct cache_entry *e, const struct recipe *want)
{
	unsigned all = want->records + want->signatures, section = want->type == 0 ? 1 : 0;
	uint32_t record_bytes = RECORD_FIXED_BYTES + want->data_bytes, body_bytes = all * record_bytes;
	uint32_t bytes = cache_entry_size(all, all, want->name_bytes, body_bytes);

	if (all > MOST_RECORDS || bytes > CACHE_ENTRY_MAX_BYTES)
		give_up("an entry is too large");
	memset(e, 0, bytes);
	*e = (struct cache_entry){ .bytes = bytes,
				   .stored_s = want->stored_s,
				   .expire_s = want->stored_s + want->ttl_s,
				   .epoch = want->epoch,
				   .type = want->type,
				   .partition = want->partition,
				   .flags = (uint8_t)want->flags,
				   .name_bytes = want->name_bytes,
				   .rcode = want->type == 0 ? 3 : 0,
				   .ede = EDE_NONE,
				   .rr_count = (uint16_t)all,
				   .pointer_count = (uint16_t)all,
				   .body_bytes = (uint16_t)body_bytes };
	e->count[section] = (uint16_t)all;
	e->dnssec_count[section] = (uint16_t)want->signatures;
	if (want->signatures)
		e->span[section] = (struct cache_span){ (uint16_t)(want->records * record_bytes), (uint16_t)body_bytes };
	uint16_t *ttl_at = (uint16_t *)(e + 1), *pointer_at = ttl_at + all;
	uint8_t *name = (uint8_t *)(pointer_at + all), *body = name + want->name_bytes;
	/* Of the question too, so that nobody else's octets are right. */
	uint32_t random = (uint32_t)name_hash(want->name, want->name_bytes) ^ (want->type * 0x9e3779b1u) ^
			  (want->partition * 0x85ebca6bu) ^ (want->seed * 0xc2b2ae35u) ^ want->flags;
	random += random == 0;
	for (unsigned i = 0; i < all; i++) {
		pointer_at[i] = (uint16_t)(i * record_bytes);
		ttl_at[i] = (uint16_t)(pointer_at[i] + 6);
	}
	memcpy(name, want->name, want->name_bytes);
	for (unsigned i = 0; i < all; i++)
		body = put_record(body, want, i < want->records ? want->type : TYPE_RRSIG, &random);
}

struct cache_entry *cache_entries_make(struct cache_entries_room *room, const struct cache_reader *r,
				       const struct cache_entries_want *want)
{
	uint8_t wire[NAME_MAX_BYTES];
	struct cache_entry *e = (struct cache_entry *)room->words;
	struct recipe recipe = { .name = wire,
				 .name_bytes = (uint8_t)wire_of(wire, want->name),
				 .type = want->type,
				 .partition = want->partition,
				 .flags = (uint16_t)(want->flags | (want->is_cd ? CACHE_F_CD : 0) |
						     (want->type == 0 ? CACHE_F_NXDOMAIN : 0)),
				 .stored_s = want->stored_s,
				 .ttl_s = want->ttl_s,
				 .epoch = want->epoch,
				 .seed = want->seed,
				 .records = want->records ? want->records : 1,
				 .data_bytes = MAX(want->data_bytes, LEAST_DATA_BYTES),
				 .signatures = want->signatures };

	make(e, &recipe);
	e->hash = cache_hash(r, name_hash(wire, recipe.name_bytes));
	return e;
}

struct cache_key cache_entries_key(uint8_t wire[static NAME_MAX_BYTES], const struct cache_reader *r,
				   const struct cache_entries_want *want)
{
	size_t bytes = wire_of(wire, want->name);

	return (struct cache_key){ .name = wire,
				   .hash = cache_hash(r, name_hash(wire, bytes)),
				   .type = want->type,
				   .partition = want->partition,
				   .name_bytes = (uint8_t)bytes,
				   .is_cd = want->is_cd };
}

/* The private part of the head is not the maker's business. */
static struct cache_entry head_of(const struct cache_entry *e)
{
	struct cache_entry head = *e;

	head.units_ = 0;
	head.hash_low_ = 0;
	head.shape_ = 0;
	memset(head.count_, 0, sizeof(head.count_));
	head.pointer_count_ = 0;
	return head;
}
bool cache_entries_are_equal(const struct cache_entry *a, const struct cache_entry *b)
{
	struct cache_entry x = head_of(a), y = head_of(b);

	return memcmp(&x, &y, sizeof(x)) == 0 && memcmp(a + 1, b + 1, a->bytes - sizeof(x)) == 0;
}

uint32_t cache_entries_seed(const struct cache_entry *e) { return load_be32(cache_entry_body(e) + RECORD_FIXED_BYTES); }

bool cache_entries_is_true(const struct cache_entry *e)
{
	struct cache_entries_room room;
	struct cache_entry *made = (struct cache_entry *)room.words;
	unsigned section = e->type == 0 ? 1 : 0;

	if (!cache_entry_check(e, e->bytes) || e->body_bytes < RECORD_FIXED_BYTES + LEAST_DATA_BYTES)
		return false;
	struct recipe recipe = { .name = cache_entry_name(e),
				 .name_bytes = e->name_bytes,
				 .type = e->type,
				 .partition = e->partition,
				 .flags = e->flags,
				 .stored_s = e->stored_s,
				 .ttl_s = e->expire_s - e->stored_s,
				 .epoch = e->epoch,
				 .seed = cache_entries_seed(e),
				 .data_bytes = load_be16(cache_entry_body(e) + RECORD_FIXED_BYTES - 2),
				 .signatures = e->dnssec_count[section] };
	recipe.records = e->count[section] - recipe.signatures;
	if (recipe.data_bytes < LEAST_DATA_BYTES || e->count[section] * (RECORD_FIXED_BYTES + recipe.data_bytes) != e->body_bytes)
		return false;
	make(made, &recipe);
	made->hash = e->hash;
	return cache_entries_are_equal(made, e);
}

/* What lies outside of the spans. */
static uint32_t copy_outside(uint8_t *out, const struct cache_entry *e)
{
	uint32_t pos = 0, from = 0;

	for (unsigned s = 0; s < 3; s++) {
		if (e->span[s].begin == e->span[s].end)
			continue;
		memcpy(out + pos, cache_entry_body(e) + from, e->span[s].begin - from);
		pos += e->span[s].begin - from;
		from = e->span[s].end;
	}
	memcpy(out + pos, cache_entry_body(e) + from, e->body_bytes - from);
	return pos + e->body_bytes - from;
}

uint32_t cache_entries_use(const struct cache_entry *e)
{
	uint8_t *message = malloc(e->body_bytes + 1u), name[NAME_MAX_BYTES];
	uint32_t sum = 0;

	if (!message)
		give_up("no memory");
	memcpy(name, cache_entry_name(e), e->name_bytes);
	sum += name_labels(name);
	memcpy(message, cache_entry_body(e), e->body_bytes);
	for (unsigned i = 0; i < e->rr_count; i++)
		store_be32(message + cache_entry_ttl_at(e)[i], 1);
	for (unsigned i = 0; i < e->pointer_count; i++)
		store_be16(message + cache_entry_pointer_at(e)[i], 1);
	for (unsigned i = 0; i < e->body_bytes; i++)
		sum += message[i];
	free(message);
	/* The same without spans, in as much room as that takes: offsets behind a span move by its length. */
	uint32_t spans = 0, outside = e->body_bytes;
	for (unsigned s = 0; s < 3; s++)
		outside -= (uint32_t)(e->span[s].end - e->span[s].begin);
	message = malloc(outside + 1u);
	if (!message || copy_outside(message, e) != outside)
		give_up("spans that overlap");
	for (unsigned i = 0, s = 0; i < e->rr_count; i++) {
		for (; s < 3 && (e->span[s].begin == e->span[s].end || e->span[s].end <= cache_entry_ttl_at(e)[i]); s++)
			spans += (uint32_t)(e->span[s].end - e->span[s].begin);
		if (s == 3 || cache_entry_ttl_at(e)[i] < e->span[s].begin)
			store_be32(message + cache_entry_ttl_at(e)[i] - spans, 1);
	}
	spans = 0;
	for (unsigned i = 0, s = 0; i < e->pointer_count; i++) {
		for (; s < 3 && (e->span[s].begin == e->span[s].end || e->span[s].end <= cache_entry_pointer_at(e)[i]); s++)
			spans += (uint32_t)(e->span[s].end - e->span[s].begin);
		if (s == 3 || cache_entry_pointer_at(e)[i] < e->span[s].begin)
			store_be16(message + cache_entry_pointer_at(e)[i] - spans, 1);
	}
	free(message);
	return sum + outside + e->count[0] + e->count[1] + e->count[2];
}
