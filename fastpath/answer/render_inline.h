/* SPDX-License-Identifier: Apache-2.0 */
/* render_inline.h: the common case of render_rrset: the owner is a name in the message, and all lies within reach of pointers. */
#pragma once
#include "answer/answer_internal.h"

#define RENDER_POINTER 0xc000u

/* Points the embedded names of a block that starts at block_pos to where their rests are now. */
HOT static inline void render_relocate(uint8_t *block, const struct zone_rrset *rrset, uint32_t block_pos, uint32_t apex_pos)
{
	const struct zone_embedded *embedded = zone_rrset_embedded(rrset);

	for (unsigned i = 0; i < rrset->embedded_count; i++) {
		uint8_t *pointer = block + embedded[i].pointer;

		if (embedded[i].pointer == 0)
			continue;
		uint32_t base = embedded[i].flags & ZONE_EMBEDDED_TO_APEX ? apex_pos : block_pos;

		store_be16(pointer, (uint16_t)(RENDER_POINTER | (load_be16(pointer) + base)));
	}
}

/* Sets the owner of the first RR of a block, and of the others. */
HOT static inline void render_owners(uint8_t *block, const struct zone_rrset *rrset, uint32_t first, uint32_t others)
{
	store_be16(block, (uint16_t)(RENDER_POINTER | first));
	for (unsigned i = 1; i < rrset->rr_count; i++) {
		block += ZONE_RR_FIXED_BYTES + load_be16(block + 10);
		store_be16(block, (uint16_t)(RENDER_POINTER | others));
	}
}

/* Whether a block that starts at pos may use pointers into itself; an owner's labels may still stand before it. */
ALWAYS_INLINE bool render_is_near(uint32_t pos, const struct zone_rrset *rrset)
{
	return pos + rrset->block_bytes + NAME_MAX_BYTES <= DNS_POINTER_MAX;
}

/* The blocks of one address or alias: two moves instead of a call. */
ALWAYS_INLINE void render_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	typedef uint8_t chunk __attribute__((vector_size(16)));
	chunk first, last;

	if (unlikely(bytes < sizeof first || bytes > 2 * sizeof first)) {
		memcpy(to, from, bytes);
		return;
	}
	memcpy(&first, from, sizeof first);
	memcpy(&last, from + bytes - sizeof last, sizeof last);
	memcpy(to, &first, sizeof first);
	memcpy(to + bytes - sizeof last, &last, sizeof last);
}

/* Copies the block to r->pos and puts its names right; the caller has seen that it fits and is near. */
ALWAYS_INLINE void render_block(struct render *r, enum render_section section, const struct zone_rrset *rrset, uint32_t first,
				uint32_t others, uint32_t apex_pos)
{
	uint8_t *block = r->msg + r->pos;

	render_copy(block, zone_rrset_block(rrset), rrset->block_bytes);
	if (first != DNS_HEADER_BYTES)
		render_owners(block, rrset, first, others);
	if (rrset->embedded_count > 0)
		render_relocate(block, rrset, r->pos, apex_pos);
	r->pos += rrset->block_bytes;
	r->count[section] = (uint16_t)(r->count[section] + rrset->rr_count);
}
