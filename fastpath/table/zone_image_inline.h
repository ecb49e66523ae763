/* SPDX-License-Identifier: Apache-2.0 */
/* zone_image_inline.h: the readers of zone_image.h. Included by it, by nobody else.
 *
 * All of them trust zone_image_verify and nothing else: after it said OK no call here leaves the image, whatever it holds.
 * Without deltas (the rule) they are inline and follow refs. With deltas they resolve by name, so that newer nodes win:
 * zone_image_delta_hot.c. Budget: zone_find about 30 instructions without deltas, plus one XXH3 per name for the caller. */
#pragma once
#include "base/base.h"
#include "dns/name.h"
#include "dns/rr_type.h"

struct zone_nsec3_at {
	const struct zone_image *image;
	const struct zone_nsec3 *nsec3;
}; /* nsec3 NULL: no chain */

/* --- one image ------------------------------------------------------------------------------------------------------- */

HOT ALWAYS_INLINE const void *zone_ptr(const struct zone_image *image, zone_ref ref)
{
	return (const uint8_t *)image + (size_t)ref * ZONE_REF_UNIT;
}
HOT ALWAYS_INLINE const struct zone_rrset_slot *zone_node_rrset_slots(const struct zone_node *node)
{
	return (const struct zone_rrset_slot *)(node + 1);
}
/* Wire, case kept; node->name_bytes octets, zeroes behind it up to the next multiple of 8. */
HOT ALWAYS_INLINE const uint8_t *zone_node_name(const struct zone_node *node)
{
	return (const uint8_t *)(zone_node_rrset_slots(node) + node->rrset_count);
}
HOT ALWAYS_INLINE const struct zone_embedded *zone_rrset_embedded(const struct zone_rrset *rrset)
{
	return (const struct zone_embedded *)(rrset + 1);
}
HOT ALWAYS_INLINE const uint8_t *zone_rrset_block(const struct zone_rrset *rrset)
{
	return (const uint8_t *)(zone_rrset_embedded(rrset) + rrset->embedded_count);
}
/* The signatures over an RRset, given its image; NULL if there are none. */
HOT ALWAYS_INLINE const struct zone_rrset *zone_rrset_signature(const struct zone_image *image, const struct zone_rrset *rrset)
{
	return rrset->signature ? zone_ptr(image, rrset->signature) : NULL;
}

/* Eight octets lower-cased at once; others than A to Z stay. */
HOT ALWAYS_INLINE uint64_t zone_fold_word(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t low7 = word & (0x7f * ones);
	uint64_t from_a = low7 + (0x80 - 'A') * ones, above_z = low7 + (0x7f - 'Z') * ones;
	return word | ((from_a & ~above_z & ~word & (0x80 * ones)) >> 2);
}
/* zone_name_is of names whose octets differ: equal but for case? Out of line: stored names are mostly in lower case. */
HOT __attribute__((noinline, unused)) static bool zone_name_folds(const uint8_t *stored, const uint8_t *lower, size_t bytes)
{
	uint64_t a, b = 0;
	if (bytes < sizeof a) {
		memcpy(&a, stored, sizeof a); /* a node's name is padded with zeroes */
		for (size_t i = 0; i < bytes; i++)
			b |= (uint64_t)lower[i] << (8 * i);
		return zone_fold_word(a) == b;
	}
	for (size_t i = 0; i + sizeof a < bytes; i += sizeof a) {
		memcpy(&a, stored + i, sizeof a);
		memcpy(&b, lower + i, sizeof b);
		if (zone_fold_word(a) != b)
			return false;
	}
	memcpy(&a, stored + bytes - sizeof a, sizeof a);
	memcpy(&b, lower + bytes - sizeof b, sizeof b);
	return zone_fold_word(a) == b;
}
/* Whether a node's name equals a lower-cased one of the same length. Words that overlap at the end, no branch for a match. */
HOT ALWAYS_INLINE bool zone_name_is(const uint8_t *stored, const uint8_t *lower, size_t bytes)
{
	uint64_t a, b, difference;
	if (unlikely(bytes < sizeof a))
		return zone_name_folds(stored, lower, bytes);
	memcpy(&a, stored + bytes - sizeof a, sizeof a);
	memcpy(&b, lower + bytes - sizeof b, sizeof b);
	difference = a ^ b;
	for (size_t i = sizeof a; i < bytes; i += sizeof a) {
		memcpy(&a, stored + i - sizeof a, sizeof a);
		memcpy(&b, lower + i - sizeof b, sizeof b);
		difference |= a ^ b;
	}
	return likely(difference == 0) || zone_name_folds(stored, lower, bytes);
}

/* A slot in one load: its tag in the low half, its node in the high one. */
HOT ALWAYS_INLINE uint64_t zone_slot_word(const struct zone_slot *slot)
{
	uint64_t word;
	memcpy(&word, slot, sizeof word);
	return word;
}

/* The node of a name in this image alone, deleted ones included; NULL if there is none. Bound: max_probe. */
HOT ALWAYS_INLINE const struct zone_node *zone_image_find(const struct zone_image *image, const uint8_t *lower, size_t bytes,
							  uint64_t hash)
{
	const struct zone_slot *slots = zone_ptr(image, image->slots);
	uint32_t mask = image->slot_mask, tag = (uint32_t)(hash >> 32), at = (uint32_t)hash & mask;
	for (uint32_t left = image->max_probe; left > 0; left--) {
		uint64_t slot = zone_slot_word(&slots[at]);
		if (slot >> 32 == 0)
			return NULL;
		if (likely((uint32_t)slot == tag)) {
			const struct zone_node *node = zone_ptr(image, (zone_ref)(slot >> 32));
			if (likely(node->name_bytes == bytes && zone_name_is(zone_node_name(node), lower, bytes)))
				return node;
		}
		at = (at + 1) & mask;
	}
	return NULL;
}

/* The number of order entries at or before the name. Bound: 32 steps. */
HOT static inline uint32_t zone_image_order_floor(const struct zone_image *image, const uint8_t *lower)
{
	const zone_ref *order = zone_ptr(image, image->order);
	uint32_t low = 0, high = image->order_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (name_compare(zone_node_name(zone_ptr(image, order[middle])), lower) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
/* The number of NSEC3 entries at or before the hash. Hashes are spread evenly, so the search starts where the hash should be
 * and widens a window around it. Bound: 64 steps. */
HOT static inline uint32_t zone_image_nsec3_floor(const struct zone_image *image, const uint8_t hash[20])
{
	const struct zone_nsec3 *nsec3 = zone_ptr(image, image->nsec3);
	uint32_t count = image->nsec3_count, low = 0, high = count;
	uint32_t prefix = (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
	uint32_t guess = (uint32_t)(((uint64_t)prefix * count) >> 32);
	for (uint64_t reach = 16; count > reach; reach *= 8) {
		if (guess > reach && low < guess - reach && memcmp(nsec3[guess - reach].hash, hash, 20) <= 0)
			low = (uint32_t)(guess - reach) + 1;
		if (guess + reach < high && memcmp(nsec3[guess + reach].hash, hash, 20) > 0)
			high = (uint32_t)(guess + reach);
		if ((low > 0 || guess <= reach) && (high < count || guess + reach >= count))
			break;
	}
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (memcmp(nsec3[middle].hash, hash, 20) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- the zone as a view ------------------------------------------------------------------------------------------------ */

/* The same as the functions below, for views with deltas; by name, never by ref. */
HOT struct zone_at zone_delta_find(const struct zone_view *view, const uint8_t *lower, size_t bytes, uint64_t hash);
HOT struct zone_at zone_delta_cut(const struct zone_view *view, struct zone_at at);
HOT struct zone_at zone_delta_parent(const struct zone_view *view, struct zone_at at);
HOT struct zone_at zone_delta_wildcard(const struct zone_view *view, struct zone_at at);
HOT struct zone_at zone_delta_nsec_covering(const struct zone_view *view, const uint8_t *lower);
HOT struct zone_nsec3_at zone_delta_nsec3_find(const struct zone_view *view, const uint8_t hash[20], bool *matches);

/* The node of a lower-cased name; hash: its name_hash. node NULL if there is none or it was deleted. */
HOT ALWAYS_INLINE struct zone_at zone_find(const struct zone_view *view, const uint8_t *lower, size_t bytes, uint64_t hash)
{
	if (unlikely(view->delta_count != 0))
		return zone_delta_find(view, lower, bytes, hash);
	return (struct zone_at){ .image = view->base, .node = zone_image_find(view->base, lower, bytes, hash) };
}
HOT ALWAYS_INLINE void zone_prefetch_slot(const struct zone_view *view, uint64_t hash)
{
	const struct zone_slot *slots = zone_ptr(view->base, view->base->slots);
	__builtin_prefetch(&slots[(uint32_t)hash & view->base->slot_mask]);
}
#define ZONE_PREFETCH_PROBES 4u /* a home slot and the ones behind it share a cache line or two */
/* Reads the slot and prefetches the node, which is returned for zone_find_hinted: NULL if there is none or there are deltas. Node, name
 * and a small RRset lie on three lines mostly. */
HOT ALWAYS_INLINE const struct zone_node *zone_prefetch_node(const struct zone_view *view, uint64_t hash)
{
	const struct zone_image *image = view->base;
	const struct zone_slot *slots = zone_ptr(image, image->slots);
	uint32_t mask = image->slot_mask, at = (uint32_t)hash, tag = (uint32_t)(hash >> 32);
	if (unlikely(view->delta_count != 0))
		return NULL;
	for (uint32_t end = at + ZONE_PREFETCH_PROBES; at != end; at++) {
		uint64_t slot = zone_slot_word(&slots[at & mask]);
		if (slot >> 32 == 0)
			return NULL;
		if (likely((uint32_t)slot == tag)) {
			const struct zone_node *node = zone_ptr(image, (zone_ref)(slot >> 32));
			__builtin_prefetch(node);
			__builtin_prefetch((const uint8_t *)node + CACHE_LINE);
			__builtin_prefetch((const uint8_t *)node + 2 * CACHE_LINE);
			return node;
		}
	}
	return NULL;
}
/* zone_find that tries the node of zone_prefetch_node first. */
HOT ALWAYS_INLINE struct zone_at zone_find_hinted(const struct zone_view *view, const struct zone_node *hint,
						  const uint8_t *lower, size_t bytes, uint64_t hash)
{
	if (likely(hint && hint->name_bytes == bytes && zone_name_is(zone_node_name(hint), lower, bytes)))
		return (struct zone_at){ .image = view->base, .node = hint };
	return zone_find(view, lower, bytes, hash);
}

/* Whether the zone has a say about this name, which is at or below its apex: a transparent one only about names that it has data for.
 * is_spare: the zone is the root's, and somebody else can be asked: then an unusable one has none, or one bad line of a hosts file
 * would take everything away. */
HOT ALWAYS_INLINE bool zone_speaks_for(const struct zone_view *view, bool is_spare, const uint8_t *lower, size_t bytes,
				       uint64_t hash)
{
	if (unlikely(!view->base))
		return !is_spare;
	if (likely(!(view->base->flags & ZONE_TRANSPARENT)))
		return true;
	struct zone_at at = zone_find(view, lower, bytes, hash);
	return at.node && at.node->rrset_count > 0 && !(at.node->flags & ZONE_NODE_APEX);
}

HOT ALWAYS_INLINE struct zone_at zone_apex(const struct zone_view *view)
{
	const struct zone_image *image = view->delta_count ? view->delta[0] : view->base; /* every image holds the apex */
	return (struct zone_at){ .image = image, .node = zone_ptr(image, image->apex) };
}

/* The longest existing name at or above a lower-cased name of the zone; the apex if there is none between. Ancestors of existing names exist
 * (empty non-terminals are nodes), so the number of labels is searched by halving. Bound: 7 look-ups. */
HOT static inline struct zone_at zone_closest_encloser(const struct zone_view *view, const uint8_t *lower,
						       const uint8_t *label_offset, unsigned labels)
{
	unsigned bytes = label_offset[labels] + 1u, low = view->base->apex_labels, high = view->base->max_labels;
	struct zone_at best = zone_apex(view);
	for (uint32_t i = 0; i < view->delta_count; i++)
		high = MAX(high, view->delta[i]->max_labels);
	high = MIN(high, labels);
	while (low < high) {
		unsigned middle = low + (high - low + 1) / 2, from = label_offset[labels - middle];
		struct zone_at at = zone_find(view, lower + from, bytes - from, name_hash(lower + from, bytes - from));
		if (at.node) {
			best = at;
			low = middle;
		} else {
			high = middle - 1;
		}
	}
	return best;
}

HOT ALWAYS_INLINE struct zone_at zone_at_ref(const struct zone_image *image, zone_ref ref)
{
	return (struct zone_at){ .image = image, .node = ref ? zone_ptr(image, ref) : NULL };
}
/* "*.<this>"; node NULL if there is none. */
HOT ALWAYS_INLINE struct zone_at zone_node_wildcard(const struct zone_view *view, struct zone_at at)
{
	return likely(view->delta_count == 0) ? zone_at_ref(at.image, at.node->wildcard) : zone_delta_wildcard(view, at);
}
/* The topmost cut or DNAME strictly above, else the node itself if it is a cut; node NULL: authoritative data. With
 * deltas the flag ZONE_NODE_BELOW may be out of date; this is not. */
HOT ALWAYS_INLINE struct zone_at zone_node_cut(const struct zone_view *view, struct zone_at at)
{
	return likely(view->delta_count == 0) ? zone_at_ref(at.image, at.node->cut) : zone_delta_cut(view, at);
}
/* One label up; node NULL for the apex. */
HOT ALWAYS_INLINE struct zone_at zone_node_parent(const struct zone_view *view, struct zone_at at)
{
	return likely(view->delta_count == 0) ? zone_at_ref(at.image, at.node->parent) : zone_delta_parent(view, at);
}

/* The node's RRset of a type; NULL if it has none. Bound: rrset_count, by halving when there are many. */
HOT ALWAYS_INLINE const struct zone_rrset *zone_node_rrset(struct zone_at at, uint16_t type)
{
	const struct zone_rrset_slot *slot = zone_node_rrset_slots(at.node);
	uint32_t low = 0, high = at.node->rrset_count;
	while (unlikely(high - low > 8)) {
		uint32_t middle = low + (high - low) / 2;
		if (slot[middle].type <= type)
			low = middle;
		else
			high = middle;
	}
	for (; low < high; low++)
		if (slot[low].type == type)
			return zone_ptr(at.image, slot[low].rrset);
	return NULL;
}

/* Writes an embedded name of an RRset of this image whole, case kept; returns its length (e->name_bytes). For chains that
 * leave the zone, and for the renderer where a pointer would not reach (base + value above 0x3fff). */
HOT size_t zone_embedded_name(const struct zone_image *image, const struct zone_rrset *rrset, const struct zone_embedded *e,
			      uint8_t out[static NAME_MAX_BYTES]);
HOT struct zone_at zone_delta_embedded_target(const struct zone_view *view, const struct zone_image *image,
					      const struct zone_embedded *e, const struct zone_rrset *rrset);
/* This zone's node of the embedded name; node NULL if it is out of the zone or absent. at: the RRset's node. */
HOT ALWAYS_INLINE struct zone_at zone_embedded_target(const struct zone_view *view, struct zone_at at,
						      const struct zone_embedded *e, const struct zone_rrset *rrset)
{
	if (likely(view->delta_count == 0))
		return zone_at_ref(at.image, e->target);
	return zone_delta_embedded_target(view, at.image, e, rrset);
}

/* --- denial of existence ------------------------------------------------------------------------------------------------ */

/* The node whose NSEC owner is the last at or before the name in canonical order; node NULL if the zone has no NSEC. */
HOT static inline struct zone_at zone_nsec_covering(const struct zone_view *view, const uint8_t *lower)
{
	if (unlikely(view->delta_count != 0))
		return zone_delta_nsec_covering(view, lower);
	const struct zone_image *image = view->base;
	if (image->order_count == 0)
		return (struct zone_at){ .image = image };
	uint32_t at = zone_image_order_floor(image, lower);
	const zone_ref *order = zone_ptr(image, image->order);
	return zone_at_ref(image, order[(at ? at : image->order_count) - 1]);
}
/* The node whose NSEC matches an existing name or (ENT, names below a cut) covers it. */
HOT struct zone_at zone_delta_nsec_of_node(const struct zone_view *view, struct zone_at at);
HOT ALWAYS_INLINE struct zone_at zone_nsec_of_node(const struct zone_view *view, struct zone_at at)
{
	if (unlikely(view->delta_count != 0))
		return zone_delta_nsec_of_node(view, at);
	return zone_at_ref(at.image, at.image->flags & ZONE_SIGNED_NSEC ? at.node->nsec : 0);
}

/* The NSEC3 that matches the hash, or else the one that covers it. nsec3 NULL if the zone has no usable chain. */
HOT static inline struct zone_nsec3_at zone_nsec3_find(const struct zone_view *view, const uint8_t hash[20], bool *matches)
{
	if (unlikely(view->delta_count != 0))
		return zone_delta_nsec3_find(view, hash, matches);
	const struct zone_image *image = view->base;
	*matches = false;
	if (image->nsec3_count == 0)
		return (struct zone_nsec3_at){ .image = image };
	uint32_t at = zone_image_nsec3_floor(image, hash);
	const struct zone_nsec3 *nsec3 = zone_ptr(image, image->nsec3);
	const struct zone_nsec3 *found = &nsec3[(at ? at : image->nsec3_count) - 1];
	*matches = memcmp(found->hash, hash, sizeof found->hash) == 0;
	return (struct zone_nsec3_at){ .image = image, .nsec3 = found };
}
/* The same for a lower-cased name: hashes it with the zone's parameters. */
HOT struct zone_nsec3_at zone_nsec3_find_name(const struct zone_view *view, const uint8_t *lower, size_t bytes, bool *matches);
HOT struct zone_nsec3_at zone_nsec3_of_name(const struct zone_view *view, struct zone_at at, bool wildcard, bool *matches);

/* For an existing name; nothing is hashed without deltas, except for names below a cut. */
HOT ALWAYS_INLINE struct zone_nsec3_at zone_nsec3_of_node(const struct zone_view *view, struct zone_at at, bool *matches)
{
	if (unlikely(view->delta_count != 0 || !(at.image->flags & ZONE_SIGNED_NSEC3) || at.node->nsec == 0))
		return zone_nsec3_of_name(view, at, false, matches);
	const struct zone_nsec3 *nsec3 = zone_ptr(at.image, at.image->nsec3);
	*matches = !(at.node->flags & ZONE_NODE_NO_DENIAL);
	return (struct zone_nsec3_at){ .image = at.image, .nsec3 = &nsec3[at.node->nsec - 1] };
}
/* For "*.<this>", whether that exists or not. */
HOT ALWAYS_INLINE struct zone_nsec3_at zone_nsec3_of_wildcard(const struct zone_view *view, struct zone_at at, bool *matches)
{
	if (unlikely(view->delta_count != 0 || !(at.image->flags & ZONE_SIGNED_NSEC3) || at.node->nsec3_wildcard == 0))
		return zone_nsec3_of_name(view, at, true, matches);
	const struct zone_nsec3 *nsec3 = zone_ptr(at.image, at.image->nsec3);
	const struct zone_node *wildcard = at.node->wildcard ? zone_ptr(at.image, at.node->wildcard) : NULL;
	*matches = wildcard && !(wildcard->flags & ZONE_NODE_NO_DENIAL);
	return (struct zone_nsec3_at){ .image = at.image, .nsec3 = &nsec3[at.node->nsec3_wildcard - 1] };
}
