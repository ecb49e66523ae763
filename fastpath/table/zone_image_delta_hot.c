/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of a view with deltas, and those that need a name spelled out. Everything is resolved by name or hash, newest image
 * first, so that no ref can lead to an older state of an owner. Costs one look-up per image and step; deltas are few and
 * merged in the background. */
#include "table/zone_image.h"

#include "base/bytes.h"
#include "dns/name_inline.h"
#include "table/nsec3_hash.h"

#define MAX_IMAGES (1 + ZONE_MAX_DELTAS)

/* Images newest first; the base is the last. */
HOT static inline const struct zone_image *view_image(const struct zone_view *view, uint32_t i)
{
	return i < view->delta_count ? view->delta[i] : view->base;
}

HOT struct zone_at zone_delta_find(const struct zone_view *view, const uint8_t *lower, size_t bytes, uint64_t hash)
{
	for (uint32_t i = 0; i <= view->delta_count; i++) {
		const struct zone_image *image = view_image(view, i);
		const struct zone_node *node = zone_image_find(image, lower, bytes, hash);
		if (node)
			return (struct zone_at){ .image = image, .node = node->flags & ZONE_NODE_DELETED ? NULL : node };
	}
	return (struct zone_at){ .image = view->base };
}

HOT static struct zone_at find_name(const struct zone_view *view, const uint8_t *lower, size_t bytes)
{
	return zone_find(view, lower, bytes, name_hash_inline(lower, bytes));
}

HOT struct zone_at zone_delta_parent(const struct zone_view *view, struct zone_at at)
{
	uint8_t lower[NAME_MAX_BYTES];
	if (at.node->labels <= view->base->apex_labels)
		return (struct zone_at){ .image = at.image };
	name_lower(lower, zone_node_name(at.node), at.node->name_bytes);
	size_t drop = 1u + lower[0];
	return find_name(view, lower + drop, at.node->name_bytes - drop);
}

HOT struct zone_at zone_delta_wildcard(const struct zone_view *view, struct zone_at at)
{
	uint8_t lower[NAME_MAX_BYTES + 2] = { 1, '*' };
	if (at.node->name_bytes + 2u > NAME_MAX_BYTES)
		return (struct zone_at){ .image = at.image };
	name_lower(lower + 2, zone_node_name(at.node), at.node->name_bytes);
	return find_name(view, lower, at.node->name_bytes + 2u);
}

/* From the apex downwards: the first cut or DNAME is the topmost. At most 127 look-ups. */
HOT struct zone_at zone_delta_cut(const struct zone_view *view, struct zone_at at)
{
	uint8_t lower[NAME_MAX_BYTES];
	size_t bytes = at.node->name_bytes;
	name_lower(lower, zone_node_name(at.node), bytes);
	for (unsigned labels = view->base->apex_labels; labels < at.node->labels; labels++) {
		size_t from = name_suffix_offset(lower, at.node->labels - labels);
		struct zone_at up = find_name(view, lower + from, bytes - from);
		if (up.node && up.node->flags & (ZONE_NODE_CUT | ZONE_NODE_DNAME))
			return up;
	}
	return at.node->flags & ZONE_NODE_CUT ? at : (struct zone_at){ .image = at.image };
}

/* --- embedded names ------------------------------------------------------------------------------------------------------ */

HOT size_t zone_embedded_name(const struct zone_image *image, const struct zone_rrset *rrset, const struct zone_embedded *e,
			      uint8_t out[static NAME_MAX_BYTES])
{
	const uint8_t *block = zone_rrset_block(rrset);
	const struct zone_embedded *all = zone_rrset_embedded(rrset);
	size_t at = e->offset, used = 0;
	while (e->pointer) {
		memcpy(out + used, block + at, e->pointer - at);
		used += e->pointer - at;
		size_t value = load_be16(block + e->pointer);
		if (e->flags & ZONE_EMBEDDED_TO_APEX) {
			memcpy(out + used, zone_node_name(zone_ptr(image, image->apex)) + value, image->apex_bytes - value);
			return used + image->apex_bytes - value;
		}
		/* The pointer leads into the last name that begins at or before it, an earlier one: this ends. */
		uint32_t low = 0, high = (uint32_t)(e - all);
		while (high - low > 1) {
			uint32_t middle = low + (high - low) / 2;
			if (all[middle].offset <= value)
				low = middle;
			else
				high = middle;
		}
		e = &all[low];
		at = value;
	}
	size_t rest = (size_t)e->offset + e->name_bytes - at;
	memcpy(out + used, block + at, rest);
	return used + rest;
}

HOT struct zone_at zone_delta_embedded_target(const struct zone_view *view, const struct zone_image *image,
					      const struct zone_embedded *e, const struct zone_rrset *rrset)
{
	uint8_t name[NAME_MAX_BYTES];
	const struct zone_node *apex = zone_ptr(view->base, view->base->apex);
	size_t bytes = zone_embedded_name(image, rrset, e, name);
	if (e->labels == 0 || !(e->flags & ZONE_EMBEDDED_ADDITIONAL || rrset->type == RR_CNAME || rrset->type == RR_DNAME) ||
	    !name_is_at_or_below(name, zone_node_name(apex)))
		return (struct zone_at){ .image = image };
	name_lower(name, name, bytes);
	return find_name(view, name, bytes);
}

/* --- NSEC ----------------------------------------------------------------------------------------------------------------- */

/* Walks back from the name over all images at once, until an owner turns up whose newest node still has its NSEC. Each step
 * passes an owner that a delta replaced, so there are at most as many as the deltas have nodes. */
HOT static struct zone_at order_last(const struct zone_view *view, uint32_t left[static MAX_IMAGES])
{
	for (;;) {
		const struct zone_node *last = NULL;
		uint32_t which = 0;
		for (uint32_t i = 0; i <= view->delta_count; i++) {
			const struct zone_image *image = view_image(view, i);
			if (left[i] == 0)
				continue;
			const zone_ref *order = zone_ptr(image, image->order);
			const struct zone_node *node = zone_ptr(image, order[left[i] - 1]);
			if (!last || name_compare(zone_node_name(node), zone_node_name(last)) > 0) {
				last = node;
				which = i;
			}
		}
		if (!last)
			return (struct zone_at){ .image = view->base };
		uint8_t lower[NAME_MAX_BYTES];
		name_lower(lower, zone_node_name(last), last->name_bytes);
		struct zone_at at = zone_delta_find(view, lower, last->name_bytes, name_hash_inline(lower, last->name_bytes));
		if (at.node == last)
			return at;
		left[which]--;
	}
}

HOT struct zone_at zone_delta_nsec_covering(const struct zone_view *view, const uint8_t *lower)
{
	uint32_t left[MAX_IMAGES];
	for (uint32_t i = 0; i <= view->delta_count; i++)
		left[i] = zone_image_order_floor(view_image(view, i), lower);
	struct zone_at at = order_last(view, left);
	if (at.node)
		return at;
	for (uint32_t i = 0; i <= view->delta_count; i++)
		left[i] = view_image(view, i)->order_count;
	return order_last(view, left);
}

HOT struct zone_at zone_delta_nsec_of_node(const struct zone_view *view, struct zone_at at)
{
	uint8_t lower[NAME_MAX_BYTES];
	name_lower(lower, zone_node_name(at.node), at.node->name_bytes);
	return zone_delta_nsec_covering(view, lower);
}

/* --- NSEC3 ---------------------------------------------------------------------------------------------------------------- */

HOT static const struct zone_nsec3 *nsec3_before(const struct zone_image *image, uint32_t left)
{
	return (const struct zone_nsec3 *)zone_ptr(image, image->nsec3) + (left - 1);
}

/* As order_last: the newest image decides about a hash. */
HOT static struct zone_nsec3_at nsec3_last(const struct zone_view *view, uint32_t left[static MAX_IMAGES])
{
	for (;;) {
		struct zone_nsec3_at last = { 0 };
		for (uint32_t i = 0; i <= view->delta_count; i++) {
			const struct zone_image *image = view_image(view, i);
			if (left[i] == 0)
				continue;
			const struct zone_nsec3 *nsec3 = nsec3_before(image, left[i]);
			if (!last.nsec3 || memcmp(nsec3->hash, last.nsec3->hash, sizeof nsec3->hash) > 0)
				last = (struct zone_nsec3_at){ .image = image, .nsec3 = nsec3 };
		}
		if (!last.nsec3 || last.nsec3->rrset != 0)
			return last;
		for (uint32_t i = 0; i <= view->delta_count; i++)
			if (left[i] != 0 && memcmp(nsec3_before(view_image(view, i), left[i])->hash, last.nsec3->hash,
						   sizeof last.nsec3->hash) == 0)
				left[i]--;
	}
}

HOT struct zone_nsec3_at zone_delta_nsec3_find(const struct zone_view *view, const uint8_t hash[20], bool *matches)
{
	uint32_t left[MAX_IMAGES];
	for (uint32_t i = 0; i <= view->delta_count; i++)
		left[i] = zone_image_nsec3_floor(view_image(view, i), hash);
	struct zone_nsec3_at at = nsec3_last(view, left);
	*matches = at.nsec3 && memcmp(at.nsec3->hash, hash, sizeof at.nsec3->hash) == 0;
	if (at.nsec3)
		return at;
	for (uint32_t i = 0; i <= view->delta_count; i++)
		left[i] = view_image(view, i)->nsec3_count;
	return nsec3_last(view, left);
}

HOT struct zone_nsec3_at zone_nsec3_find_name(const struct zone_view *view, const uint8_t *lower, size_t bytes, bool *matches)
{
	const struct zone_image *image = view->base;
	uint8_t hash[NSEC3_HASH_BYTES];
	*matches = false;
	if (!(image->flags & ZONE_SIGNED_NSEC3))
		return (struct zone_nsec3_at){ .image = image };
	zone_nsec3_hash(hash, lower, bytes, image->nsec3_salt, image->nsec3_salt_bytes, image->nsec3_iterations);
	return zone_nsec3_find(view, hash, matches);
}

HOT struct zone_nsec3_at zone_nsec3_of_name(const struct zone_view *view, struct zone_at at, bool wildcard, bool *matches)
{
	uint8_t lower[NAME_MAX_BYTES + 2] = { 1, '*' };
	size_t bytes = at.node->name_bytes + 2u;
	*matches = false;
	if (wildcard && bytes > NAME_MAX_BYTES)
		return (struct zone_nsec3_at){ .image = at.image };
	name_lower(lower + 2, zone_node_name(at.node), at.node->name_bytes);
	return wildcard ? zone_nsec3_find_name(view, lower, bytes, matches)
			: zone_nsec3_find_name(view, lower + 2, bytes - 2, matches);
}
