/* SPDX-License-Identifier: Apache-2.0 */
/* zone_exercise.h: calls every reader of zone_image.h on an image that zone_image_verify accepted, whatever it holds. What they return is
 * touched, so that a sanitizer sees any octet outside of the image. */
#pragma once
#include "base/bytes.h"
#include "table/zone_image.h"

#define EXERCISE_CHAIN 300 /* more than any chain of names that get shorter or longer */
#define EXERCISE_NODES 500 /* looked at closely, per image */

static volatile uint64_t exercise_sink;

static inline void exercise_octets(const void *p, size_t bytes)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < bytes; i++)
		sum += ((const uint8_t *)p)[i];
	exercise_sink += sum;
}
static inline void exercise_at(struct zone_at at)
{
	if (at.node)
		exercise_octets(zone_node_name(at.node), at.node->name_bytes);
}

static inline void exercise_rrset(const struct zone_view *view, struct zone_at at, const struct zone_rrset *rrset)
{
	const struct zone_embedded *e = zone_rrset_embedded(rrset);
	const uint8_t *block = zone_rrset_block(rrset);
	exercise_octets(block, rrset->block_bytes);
	for (size_t pos = 0; pos < rrset->block_bytes; pos += ZONE_RR_FIXED_BYTES + load_be16(block + pos + 10))
		exercise_octets(block + pos, ZONE_RR_FIXED_BYTES + load_be16(block + pos + 10));
	for (uint32_t i = 0; i < rrset->embedded_count; i++) {
		uint8_t name[NAME_MAX_BYTES];
		size_t bytes = zone_embedded_name(at.image, rrset, &e[i], name);
		ASSERT(bytes == e[i].name_bytes && name_wire_bytes(name, sizeof name) == bytes &&
		       name_labels(name) == e[i].labels);
		if (e[i].pointer)
			exercise_octets(block + e[i].pointer, 2);
		exercise_at(zone_embedded_target(view, at, &e[i], rrset));
	}
}
static inline void exercise_nsec3(struct zone_nsec3_at at)
{
	if (!at.nsec3)
		return;
	exercise_octets(at.nsec3, sizeof *at.nsec3);
	const struct zone_rrset *rrset = zone_ptr(at.image, at.nsec3->rrset);
	exercise_octets(zone_rrset_block(rrset), rrset->block_bytes);
	if (zone_rrset_signature(at.image, rrset))
		exercise_octets(zone_rrset_block(zone_rrset_signature(at.image, rrset)), 12);
}

static inline void exercise_name(const struct zone_view *view, const uint8_t *name)
{
	uint8_t lower[NAME_MAX_BYTES], label_offset[NAME_MAX_LABELS + 1], hash[20];
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	unsigned labels = 0;
	bool matches;
	name_lower(lower, name, bytes);
	for (size_t at = 0; lower[at] != 0; at += 1u + lower[at])
		label_offset[labels++] = (uint8_t)at;
	label_offset[labels] = (uint8_t)(bytes - 1);
	zone_prefetch_slot(view, name_hash(lower, bytes));
	zone_prefetch_node(view, name_hash(lower, bytes));
	exercise_at(zone_find(view, lower, bytes, name_hash(lower, bytes)));
	exercise_at(zone_closest_encloser(view, lower, label_offset, labels));
	exercise_at(zone_nsec_covering(view, lower));
	exercise_nsec3(zone_nsec3_find_name(view, lower, bytes, &matches));
	for (unsigned i = 0; i < sizeof hash; i++)
		hash[i] = (uint8_t)(lower[i % bytes] * 37u + i);
	exercise_nsec3(zone_nsec3_find(view, hash, &matches));
}

static inline void exercise_node(const struct zone_view *view, struct zone_at at)
{
	const struct zone_rrset_slot *slot = zone_node_rrset_slots(at.node);
	bool matches;
	exercise_name(view, zone_node_name(at.node));
	for (uint32_t i = 0; i < at.node->rrset_count; i++) {
		const struct zone_rrset *rrset = zone_node_rrset(at, slot[i].type);
		ASSERT(rrset && rrset->type == slot[i].type && rrset->rr_count > 0);
		exercise_rrset(view, at, rrset);
		if (zone_rrset_signature(at.image, rrset))
			exercise_rrset(view, at, zone_rrset_signature(at.image, rrset));
	}
	exercise_octets(zone_node_rrset(at, 65535), 0);
	/* What the renderer takes for granted: owners end in their image's apex, cuts are ancestors, DNAME targets stand whole. */
	const struct zone_node *apex = zone_ptr(at.image, at.image->apex);
	const struct zone_rrset *dname = zone_node_rrset(at, RR_DNAME);
	ASSERT(name_is_at_or_below(zone_node_name(at.node), zone_node_name(apex)));
	if (dname)
		ASSERT(name_wire_bytes(zone_rrset_block(dname) + ZONE_RR_FIXED_BYTES, dname->block_bytes - ZONE_RR_FIXED_BYTES) !=
		       0);
	unsigned steps = 0;
	for (struct zone_at up = at; up.node; up = zone_node_parent(view, up))
		ASSERT(++steps < EXERCISE_CHAIN);
	for (struct zone_at down = at; down.node; down = zone_node_wildcard(view, down))
		ASSERT(++steps < EXERCISE_CHAIN);
	struct zone_at cut = zone_node_cut(view, at), nsec = zone_nsec_of_node(view, at);
	exercise_at(cut);
	ASSERT(!cut.node || cut.node->flags & (ZONE_NODE_CUT | ZONE_NODE_DNAME));
	ASSERT(!cut.node || name_is_at_or_below(zone_node_name(at.node), zone_node_name(cut.node)));
	exercise_at(nsec);
	ASSERT(!nsec.node || zone_node_rrset(nsec, RR_NSEC));
	exercise_nsec3(zone_nsec3_of_node(view, at, &matches));
	exercise_nsec3(zone_nsec3_of_wildcard(view, at, &matches));
}

/* A base alone, or with the deltas that the view names. */
static inline void exercise_view(const struct zone_view *view)
{
	static const uint8_t odd[] = "\1*\3zzz\1\xff\7example\4test";
	for (uint32_t i = 0; i <= view->delta_count; i++) {
		const struct zone_image *image = i < view->delta_count ? view->delta[i] : view->base;
		const struct zone_slot *slots = zone_ptr(image, image->slots);
		uint32_t seen = 0;
		exercise_at(zone_apex(view));
		ASSERT(zone_node_rrset(zone_apex(view), RR_SOA));
		exercise_rrset(view, zone_apex(view), zone_node_rrset(zone_apex(view), RR_SOA));
		exercise_octets(zone_rrset_block(zone_ptr(image, image->negative_soa)), 12);
		for (uint64_t s = 0; s <= image->slot_mask && seen < EXERCISE_NODES; s++)
			if (slots[s].node != 0) {
				const struct zone_node *node = zone_ptr(image, slots[s].node);
				exercise_node(view, (struct zone_at){ image, node });
				seen++;
			}
	}
	exercise_name(view, odd);
	exercise_name(view, odd + sizeof odd - 1);
}
