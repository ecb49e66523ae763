/* SPDX-License-Identifier: Apache-2.0 */
#include "table/cache_entry.h"

#include "table/cache_layout.h"

/* Whether records [first, last) lie within [begin, end), and their neighbours do not reach into it. */
static bool records_lie_within(const struct cache_entry *e, uint32_t first, uint32_t last, struct cache_span span)
{
	const uint16_t *ttl_at = cache_entry_ttl_at(e);

	return ttl_at[first] >= span.begin + CACHE_BEFORE_TTL && ttl_at[last - 1] + CACHE_TTL_AND_LENGTH <= span.end &&
	       (first == 0 || ttl_at[first - 1] + CACHE_TTL_AND_LENGTH <= span.begin) &&
	       (last == e->rr_count || ttl_at[last] >= span.end + CACHE_BEFORE_TTL);
}

/* A pointer across a border would be written in part behind what is sent. */
static bool pointers_cross(const struct cache_entry *e, struct cache_span span)
{
	const uint16_t *at = cache_entry_pointer_at(e);

	for (uint32_t i = 0; i < e->pointer_count; i++)
		if (at[i] + 1 == span.begin || at[i] + 1 == span.end)
			return true;
	return false;
}

bool cache_spans_are_sound(const struct cache_entry *e)
{
	uint32_t end = 0, section = 0;

	for (unsigned s = 0; s < 3; s++) {
		struct cache_span span = e->span[s];
		uint32_t count = e->count[s], within = e->dnssec_count[s];

		if (span.begin > span.end || span.end > e->body_bytes || within > count ||
		    (within == 0) != (span.begin == span.end))
			return false;
		section += count;
		if (within == 0)
			continue;
		if (span.begin < end || pointers_cross(e, span) || !records_lie_within(e, section - within, section, span))
			return false;
		end = span.end;
	}
	return true;
}

bool cache_block_expand_long(struct cache_entry *e, const struct cache_block_long *l, uint32_t rest_bytes)
{
	uint32_t rr_count = (uint32_t)l->count[0] + l->count[1] + l->count[2];
	uint32_t other = 2 * (rr_count + l->pointer_count) + e->name_bytes + (e->shape_ & CACHE_BLOCK_PADDING);

	if (rr_count > CACHE_ENTRY_MAX_RRS || other > rest_bytes)
		return false;
	e->bytes = (uint32_t)sizeof(*e) + rest_bytes;
	memcpy(e->count, l->count, sizeof(e->count));
	memcpy(e->dnssec_count, l->dnssec_count, sizeof(e->dnssec_count));
	memcpy(e->span, l->span, sizeof(e->span));
	e->rr_count = (uint16_t)rr_count;
	e->pointer_count = l->pointer_count;
	e->body_bytes = (uint16_t)(rest_bytes - other);
	e->expired_min = l->expired_min;
	e->reserved = 0;
	return cache_parts_are_sound(e) && cache_spans_are_sound(e);
}

bool cache_entry_check(const struct cache_entry *e, uint32_t bytes)
{
	if (bytes < sizeof(*e) || bytes > CACHE_ENTRY_MAX_BYTES || e->bytes != bytes)
		return false;
	if ((e->flags & ~CACHE_F_KNOWN) || (e->type == 0) != ((e->flags & CACHE_F_NXDOMAIN) != 0) ||
	    e->partition >= CACHE_PARTITIONS)
		return false;
	if (e->rr_count > CACHE_ENTRY_MAX_RRS || (uint32_t)e->count[0] + e->count[1] + e->count[2] != e->rr_count ||
	    bytes != cache_entry_size(e->rr_count, e->pointer_count, e->name_bytes, e->body_bytes))
		return false;
	return name_wire_bytes(cache_entry_name(e), e->name_bytes) == e->name_bytes && e->name_bytes > 0 &&
	       cache_parts_are_sound(e) && cache_spans_are_sound(e);
}
