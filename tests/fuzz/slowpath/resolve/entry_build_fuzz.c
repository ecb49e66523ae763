/* SPDX-License-Identifier: Apache-2.0 */
/* Input: an upstream's reply; the question is its own. What comes out is sound: every offset lies where the layout says, and the message
 * that it makes, with DNSSEC and without, for its name and for a longer one, can be read to its end. */
#include "base/bytes.h"
#include "dns/message.h"
#include "dns/rdata.h"
#include "slowpath/resolve/entry_build.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static alignas(8) uint8_t memory[ENTRY_BUILD_MAX_BYTES];
static uint8_t msg[2 * DNS_MESSAGE_MAX_BYTES], data_of_record[RDATA_MAX_BYTES];

/* Names of ours: those with an odd length. */
static bool is_ours(void *user, const uint8_t *lower, size_t bytes)
{
	(void)user;
	ASSERT(name_wire_bytes(lower, bytes) == bytes);
	return bytes & 1;
}

static void check(const struct cache_entry *e)
{
	const uint16_t *ttl_at = cache_entry_ttl_at(e), *pointer_at = cache_entry_pointer_at(e);
	unsigned before = 0, body_from = DNS_HEADER_BYTES + e->name_bytes + 4u, first_span = e->body_bytes;

	ASSERT(e->bytes == cache_entry_size(e->rr_count, e->pointer_count, e->name_bytes, e->body_bytes));
	ASSERT(e->bytes <= ENTRY_BUILD_MAX_BYTES && (e->flags & ~CACHE_F_KNOWN) == 0);
	ASSERT(e->rr_count == e->count[0] + e->count[1] + e->count[2]);
	for (unsigned i = 0; i < 3; i++) {
		ASSERT(e->span[i].begin >= before && e->span[i].end >= e->span[i].begin && e->count[i] >= e->dnssec_count[i]);
		ASSERT((e->span[i].begin == e->span[i].end) == (e->dnssec_count[i] == 0));
		before = e->span[i].end;
		if (e->dnssec_count[i] > 0 && e->span[i].begin < first_span)
			first_span = e->span[i].begin;
	}
	ASSERT(before == e->body_bytes);
	for (unsigned i = 0; i < e->rr_count; i++)
		ASSERT(ttl_at[i] + 4u <= e->body_bytes &&
		       load_be32(cache_entry_body(e) + ttl_at[i]) >= e->expire_s - e->stored_s);
	for (unsigned i = 0; i < e->pointer_count; i++) {
		unsigned target = load_be16(cache_entry_body(e) + pointer_at[i]);

		ASSERT(target >= 0xc000u);
		target -= 0xc000u;
		ASSERT(target >= DNS_HEADER_BYTES && target + NAME_MAX_BYTES <= DNS_POINTER_MAX);
		ASSERT(target < body_from - 4 || (target >= body_from && target < body_from + first_span));
	}
}

/* The answer to a question for the entry's name with `longer` octets of labels in front. */
static void render(const struct cache_entry *e, size_t longer, bool is_do)
{
	const uint16_t *pointer_at = cache_entry_pointer_at(e);
	uint8_t *body = malloc(e->body_bytes + 1u), name[NAME_MAX_BYTES];
	size_t pos = DNS_HEADER_BYTES, from = 0;

	memcpy(body, cache_entry_body(e), e->body_bytes);
	for (unsigned i = 0; i < e->pointer_count; i++)
		store_be16(body + pointer_at[i], (uint16_t)(load_be16(body + pointer_at[i]) + longer));
	memset(msg, 0, pos);
	if (longer > 0) {
		msg[pos] = (uint8_t)(longer - 1);
		memset(msg + pos + 1, 'x', longer - 1);
		pos += longer;
	}
	memcpy(msg + pos, cache_entry_name(e), e->name_bytes);
	pos += e->name_bytes + 4u;
	for (unsigned i = 0; i < 3; i++) {
		size_t to = is_do ? e->span[i].end : e->span[i].begin;

		memcpy(msg + pos, body + from, to - from);
		pos += to - from;
		from = e->span[i].end;
	}
	size_t end = pos, n;
	unsigned count = e->rr_count;
	for (unsigned i = 0; i < 3 && !is_do; i++)
		count -= e->dnssec_count[i];
	pos = DNS_HEADER_BYTES + longer + e->name_bytes + 4u;
	for (; count > 0; count--) {
		ASSERT(name_from_message(name, msg, end, &pos) > 0 && pos + 10 <= end);
		ASSERT(rdata_from_message(load_be16(msg + pos), msg, end, pos + 10, load_be16(msg + pos + 8), data_of_record,
					  sizeof data_of_record, &n) == ERR_OK);
		pos += 10u + load_be16(msg + pos + 8);
	}
	ASSERT(pos == end);
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct entry_limits limits = { .min_ttl_s = 0, .max_ttl_s = 86400, .negative_ttl_s = 3600 };
	struct cache_entry *entry = (struct cache_entry *)memory;
	struct entry_report report;
	uint8_t name[NAME_MAX_BYTES];
	size_t pos = DNS_HEADER_BYTES;

	if (size < DNS_HEADER_BYTES || size > DNS_MESSAGE_MAX_BYTES)
		return 0;
	size_t bytes = name_from_message(name, data, size, &pos);
	if (bytes == 0 || size - pos < 4)
		return 0;
	name_lower(name, name, bytes);
	struct entry_question q = {
		.name = name, .name_bytes = (uint8_t)bytes, .type = load_be16(data + pos), .is_ours = size & 1 ? is_ours : NULL
	};
	if (entry_build(entry, &q, &limits, 1000, data, size, &report) != ENTRY_OK)
		return 0;
	ASSERT(entry->expire_s - entry->stored_s == report.lifetime_s &&
	       (report.lifetime_s == 0 || entry->bytes <= CACHE_ENTRY_MAX_BYTES));
	check(entry);
	for (unsigned is_do = 0; is_do < 2; is_do++) {
		render(entry, 0, is_do);
		if (bytes + 40 <= NAME_MAX_BYTES)
			render(entry, 40, is_do);
	}
	entry_make_stale(entry, 5000, 30, 30, 1);
	check(entry);
	return 0;
}
