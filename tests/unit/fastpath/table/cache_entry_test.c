/* SPDX-License-Identifier: Apache-2.0 */
/* cache_entry_check: what is whole passes, and nothing else. */
#include "tests/unit/lib/cache_entries.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct cache_reader *reader;
static struct cache_writer *writer;
static struct cache_entries_room room;

static void open_cache(void)
{
	int fd;
	cr_assert_eq(cache_create(&fd, CACHE_MIN_BYTES), ERR_OK);
	cr_assert_eq(cache_writer_attach(&writer, fd, -1), ERR_OK);
	reader = cache_writer_reader(writer);
}
static void close_cache(void) { cache_writer_detach(writer); }
TestSuite(cache_entry, .init = open_cache, .fini = close_cache);

/* Two records and two signatures in the answer section: 12 + 20 octets each. */
static struct cache_entry *signed_entry(void)
{
	return cache_entries_make(
		&room, reader,
		&(struct cache_entries_want){
			.name = "www.example.", .type = 1, .ttl_s = 60, .records = 2, .signatures = 2, .data_bytes = 20 });
}
static uint16_t *ttl_at(struct cache_entry *e) { return (uint16_t *)(uintptr_t)cache_entry_ttl_at(e); }
static uint16_t *pointer_at(struct cache_entry *e) { return (uint16_t *)(uintptr_t)cache_entry_pointer_at(e); }

Test(cache_entry, whole_ones_pass)
{
	struct cache_entry *e = signed_entry();
	cr_expect(cache_entry_check(e, e->bytes));
	for (unsigned records = 1; records < 100; records += 7) {
		e = cache_entries_make(
			&room, reader,
			&(struct cache_entries_want){ .name = ".", .type = 0, .records = records, .signatures = records / 3 });
		cr_expect(cache_entry_check(e, e->bytes));
	}
	/* Without any record, as failures are. */
	memset(room.words, 0, sizeof(room.words));
	e->name_bytes = 1, e->type = 1, e->ede = -1, e->bytes = cache_entry_size(0, 0, 1, 0), e->flags = CACHE_F_FAILURE;
	cr_expect(cache_entry_check(e, e->bytes));
	e->hash = cache_hash(reader, name_hash((const uint8_t *)"", 1));
	cr_expect_eq(cache_store(writer, e), ERR_OK);
}

struct damage {
	const char *what;
	void (*make)(struct cache_entry *e);
};
/* clang-format off */
#define DAMAGES(X) \
	X(bytes_more, "longer than the copy", e->bytes += 8) \
	X(bytes_less, "shorter than its parts", e->bytes -= 8) \
	X(flags, "a flag that nobody knows", e->flags |= 64) \
	X(nxdomain_flag, "NXDOMAIN with a type", e->flags |= CACHE_F_NXDOMAIN) \
	X(no_type, "no type without NXDOMAIN", e->type = 0) \
	X(partition, "a partition that does not exist", e->partition = CACHE_PARTITIONS) \
	X(name_longer, "a name longer than its labels", e->name_bytes += 1) \
	X(name_none, "no name", e->name_bytes = 0) \
	X(label, "a label of more than 63 octets", ((uint8_t *)(uintptr_t)cache_entry_name(e))[0] = 64) \
	X(label_beyond, "a label beyond the name", ((uint8_t *)(uintptr_t)cache_entry_name(e))[0] = 60) \
	X(rr_count, "more TTLs than counted", e->rr_count += 1) \
	X(rr_count_max, "too many records", e->rr_count = CACHE_ENTRY_MAX_RRS + 1; e->count[0] = CACHE_ENTRY_MAX_RRS + 1) \
	X(count, "sections that do not add up", e->count[1] = 1) \
	X(count_moved, "a record of the span counted in another section", e->count[0] -= 1; e->count[1] += 1) \
	X(dnssec_count, "fewer records in the span than there are", e->dnssec_count[0] = 1) \
	X(dnssec_count_more, "more records in the span than in the section", e->dnssec_count[0] = 5) \
	X(dnssec_none, "a span without records", e->dnssec_count[0] = 0) \
	X(span_none, "records without a span", e->span[0].end = e->span[0].begin) \
	X(span_turned, "a span that ends before it begins", e->span[0].begin = e->span[0].end + 1) \
	X(span_beyond, "a span that ends behind the body", e->span[0].end = (uint16_t)(e->body_bytes + 1)) \
	X(span_early, "a span that begins in a record's head", e->span[0].begin -= 21) \
	X(span_late, "a span that begins behind its first record's begin", e->span[0].begin += 9) \
	X(span_pointer, "a pointer across the span's begin", e->span[0].begin += 1) \
	X(span_end, "a span that ends in its last record", e->span[0].end -= 21) \
	X(ttl_first, "a TTL before the body's first record can have one", ttl_at(e)[0] = 4) \
	X(ttl_last, "a TTL that ends behind the body", ttl_at(e)[3] = (uint16_t)(e->body_bytes - 5)) \
	X(ttl_order, "TTLs out of order", ttl_at(e)[1] = ttl_at(e)[0]) \
	X(ttl_close, "TTLs closer than a record is long", ttl_at(e)[1] = (uint16_t)(ttl_at(e)[0] + 10)) \
	X(ttl_span, "a signature's TTL in front of the span", ttl_at(e)[2] = (uint16_t)(e->span[0].begin - 11)) \
	X(pointer_last, "a pointer that ends behind the body", pointer_at(e)[3] = (uint16_t)(e->body_bytes - 1)) \
	X(pointer_far, "a pointer far behind the body", pointer_at(e)[3] = UINT16_MAX) \
	X(pointer_order, "pointers out of order", pointer_at(e)[1] = 0) \
	X(pointer_overlap, "pointers that overlap", pointer_at(e)[1] = 1) \
	X(body, "a longer body", e->body_bytes += 8) \
	X(body_max, "a body of 65,535 octets", e->body_bytes = UINT16_MAX)
#define DEFINE(name, text, statement) static void damage_##name(struct cache_entry *e) { statement; }
DAMAGES(DEFINE)
#define ROW(name, text, statement) { text, damage_##name },
static const struct damage damages[] = { DAMAGES(ROW) };
/* clang-format on */

Test(cache_entry, damaged_ones_do_not)
{
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		struct cache_entry *e = signed_entry();
		uint32_t bytes = e->bytes;
		damages[i].make(e);
		cr_expect_not(cache_entry_check(e, bytes), "%s", damages[i].what);
		if (e->bytes == bytes)
			cr_expect_eq(cache_store(writer, e), ERR_MALFORMED, "%s", damages[i].what);
	}
	struct cache_entry *e = signed_entry();
	cr_expect_not(cache_entry_check(e, 0));
	cr_expect_not(cache_entry_check(e, sizeof(*e) - 1));
	e->bytes = CACHE_ENTRY_MAX_BYTES + 8;
	cr_expect_not(cache_entry_check(e, CACHE_ENTRY_MAX_BYTES + 8));
}

Test(cache_entry, any_octet_changed_is_refused_or_harmless)
{
	struct cache_entry *e = signed_entry(), *copy = malloc(e->bytes);
	unsigned passed = 0;
	for (uint32_t at = 0; at < e->bytes; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			memcpy(copy, e, e->bytes);
			((uint8_t *)copy)[at] ^= (uint8_t)(1u << bit);
			if (!cache_entry_check(copy, e->bytes))
				continue;
			passed++;
			cache_entries_use(copy);
		}
	}
	cr_expect_gt(passed, 100u);
	cr_expect_lt(passed, e->bytes * 8);
	free(copy);
}
