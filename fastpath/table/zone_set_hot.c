/* SPDX-License-Identifier: Apache-2.0 */
/* zone_set_find: one hash, one slot line, one entry line for each suffix whose label count some zone has, usually one.
 * Every ref that it follows was checked by zone_set_attach, in memory that is sealed against writing. */
#include "table/zone_set_private.h"
#include "dns/name_inline.h"

/* The most labels, at most `labels`, that some zone's name has; -1 if there are none. */
static inline int next_label_count(const struct zone_set *set, int labels)
{
	if (unlikely(labels >= 64)) {
		uint64_t high = set->label_counts[1] & (UINT64_MAX >> (127 - labels));
		if (high)
			return 127 - __builtin_clzll(high);
		labels = 63;
	}
	uint64_t low = labels < 0 ? 0 : set->label_counts[0] << (63 - labels);
	return low ? labels - __builtin_clzll(low) : -1;
}

/* Without the entry's hash: a tag of 32 bits that is right by chance is rare, and the name is compared anyhow. */
ALWAYS_INLINE const struct zone_map_entry *find_exact(const struct zone_set *set, const uint8_t *lower, size_t bytes)
{
	uint64_t hash = name_hash_inline(lower, bytes);
	uint32_t tag = (uint32_t)(hash >> 32), at = (uint32_t)hash;
	for (uint32_t end = at + set->max_probe; at != end; at++) {
		uint64_t slot = zone_slot_word(&set->slots[at & set->slot_mask]);
		if (slot >> 32 == 0)
			return NULL;
		if (unlikely((uint32_t)slot != tag))
			continue;
		const struct zone_map_entry *e = zone_set_entry(set, (zone_ref)(slot >> 32));
		if (likely(e->name_bytes == bytes && zone_name_is(zone_map_entry_name(e), lower, bytes)))
			return e;
	}
	return NULL;
}

struct zone_set_hit zone_set_find(const struct zone_set *set, const uint8_t *lower, size_t bytes, const uint8_t *label_offset,
				  unsigned labels, unsigned skip)
{
	int count = (int)labels - (int)skip;
	while ((count = next_label_count(set, count)) >= 0) { /* at most NAME_MAX_LABELS + 1 turns */
		unsigned from = labels - (unsigned)count;
		const struct zone_map_entry *e = find_exact(set, lower + label_offset[from], bytes - label_offset[from]);
		if (likely(e != NULL))
			return (struct zone_set_hit){ .view = &set->view[e->index], .zone_label = from };
		count--;
	}
	return (struct zone_set_hit){ .view = NULL };
}
