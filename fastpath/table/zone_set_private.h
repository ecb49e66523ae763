/* SPDX-License-Identifier: Apache-2.0 */
/* zone_set_private.h: the reader's own structures, for zone_set*.c only. Process-local memory: pointers are fine. */
#pragma once
#include "table/zone_set.h"

struct segment {
	_Atomic uint32_t references;
	uint32_t id;
	const uint8_t *map;
	size_t bytes, images_end;
	uint32_t image_count;
	zone_ref *image; /* where each image begins, ascending; NULL: not listed yet */
};

struct zone_set {
	/* what zone_set_find reads, on one line */
	alignas(CACHE_LINE) const uint8_t *map;
	const struct zone_slot *slots;
	const struct zone_view *view; /* [zone_count], by zone_map_entry.index */
	uint64_t label_counts[2];
	uint32_t slot_mask, max_probe;
	/* the rest */
	_Atomic uint32_t references;
	uint32_t zone_count;
	uint64_t generation;
	size_t map_bytes;
	const struct zone_image **delta; /* where the views' delta pointers lead */
	size_t delta_count;
	size_t segment_count;
	struct zone_set_segment {
		struct segment *segment; /* a reference */
		uint32_t uses;		 /* images of it that the entries name; not 0 */
	} used[];			 /* ascending by id */
};

ALWAYS_INLINE const struct zone_map_entry *zone_set_entry(const struct zone_set *set, zone_ref ref)
{
	return (const struct zone_map_entry *)(set->map + (size_t)ref * ZONE_REF_UNIT);
}
ALWAYS_INLINE const uint8_t *zone_map_entry_name(const struct zone_map_entry *e)
{
	return (const uint8_t *)&e->image[1 + e->delta_count];
}
/* Octets of the entry, padding included. */
ALWAYS_INLINE size_t zone_map_entry_bytes(unsigned delta_count, unsigned name_bytes)
{
	return sizeof(struct zone_map_entry) + (1 + (size_t)delta_count) * sizeof(struct zone_map_image) +
	       ((name_bytes + 7u) & ~(size_t)7u);
}
