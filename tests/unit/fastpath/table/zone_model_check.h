/* SPDX-License-Identifier: Apache-2.0 */
/* zone_model_check.h: compares every answer of a zone view with the model's (zone_model.h). */
#pragma once
#include "zone_model.h"

/* A node is what the name says: that name, or nothing when it is NULL. */
static inline void check_is(struct zone_at at, const uint8_t *name, const char *what, const uint8_t *of)
{
	cr_assert_eq(at.node != NULL, name != NULL, "%s of %s: %s, expected %s", what, model_text(of),
		     at.node ? model_text(zone_node_name(at.node)) : "none", name ? model_text(name) : "none");
	if (name)
		cr_assert(name_equal(zone_node_name(at.node), name), "%s of %s is %s, expected %s", what, model_text(of),
			  model_text(zone_node_name(at.node)), model_text(name));
}

/* The last owner of an NSEC at or before the name; NULL if the zone has no NSEC. */
static inline const uint8_t *model_nsec_covering(const struct model *m, const uint8_t *name)
{
	const uint8_t *best = NULL, *last = NULL;
	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->record[i];
		if (r->type != RR_NSEC)
			continue;
		if (name_compare(r->owner, name) <= 0 && (!best || name_compare(r->owner, best) > 0))
			best = r->owner;
		if (!last || name_compare(r->owner, last) > 0)
			last = r->owner;
	}
	return best ? best : last;
}
/* The owner of the NSEC3 that matches or covers; NULL if there is no chain. */
static inline const uint8_t *model_nsec3_find(const struct model *m, const uint8_t *name, bool *matches)
{
	uint8_t hash[20];
	const uint8_t *best = NULL, *last = NULL;
	model_hash(hash, name);
	struct model_name wanted = model_nsec3_owner(m, hash);
	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->record[i];
		if (r->type != RR_NSEC3)
			continue;
		/* All owners have one label of 32 characters in base32hex, whose order is that of the hashes. */
		if (name_compare(r->owner, wanted.wire) <= 0 && (!best || name_compare(r->owner, best) > 0))
			best = r->owner;
		if (!last || name_compare(r->owner, last) > 0)
			last = r->owner;
	}
	*matches = best && name_equal(best, wanted.wire);
	return best ? best : last;
}
static inline void check_nsec3(const struct model *m, struct zone_nsec3_at at, bool matches, const uint8_t *name,
			       const char *what)
{
	bool expected_matches;
	const uint8_t *expected = model_nsec3_find(m, name, &expected_matches);
	cr_assert_eq(at.nsec3 != NULL, expected != NULL, "%s of %s", what, model_text(name));
	cr_assert_eq(matches, expected_matches, "%s of %s: matches", what, model_text(name));
	if (!expected)
		return;
	struct model_name owner = model_nsec3_owner(m, at.nsec3->hash);
	cr_assert(name_equal(owner.wire, expected), "%s of %s is %s, expected %s", what, model_text(name), model_text(owner.wire),
		  model_text(expected));
	model_check_rrset(m, at.image, zone_ptr(at.image, at.nsec3->rrset), expected, RR_NSEC3, 0);
}

static inline void check_embedded_targets(const struct model *m, const struct zone_view *view, struct zone_at at,
					  const struct zone_rrset *rrset)
{
	const struct zone_embedded *e = zone_rrset_embedded(rrset);
	for (uint32_t i = 0; i < rrset->embedded_count; i++) {
		uint8_t name[NAME_MAX_BYTES];
		zone_embedded_name(at.image, rrset, &e[i], name);
		bool is_followed =
			rrset->type != RR_SOA && name[0] != 0 && name_is_at_or_below(name, m->apex) && model_exists(m, name);
		check_is(zone_embedded_target(view, at, &e[i], rrset), is_followed ? name : NULL, "target",
			 zone_node_name(at.node));
	}
}

/* Everything about a name that exists. */
static inline void check_node(const struct model *m, const struct zone_view *view, struct zone_at at, const uint8_t *name)
{
	struct model_name cut, up = model_name(".");
	bool has_cut = model_cut(m, name, &cut), matches, is_below = model_is_below(m, name), is_apex = name_equal(name, m->apex);
	uint8_t wildcard[NAME_MAX_BYTES];
	static const uint8_t star[] = { 1, '*' };
	check_is(zone_node_cut(view, at), has_cut ? cut.wire : NULL, "cut", name);
	if (!is_apex)
		up = model_up(name);
	check_is(zone_node_parent(view, at), is_apex ? NULL : up.wire, "parent", name);
	cr_assert_eq(!!(at.node->flags & ZONE_NODE_APEX), is_apex);
	cr_assert_eq(!!(at.node->flags & ZONE_NODE_CUT), !is_apex && model_has(m, name, RR_NS));
	cr_assert_eq(!!(at.node->flags & ZONE_NODE_DNAME), model_has(m, name, RR_DNAME));
	cr_assert_eq(!!(at.node->flags & ZONE_NODE_WILDCARD), name_is_wildcard(name));
	cr_assert_eq(!!(at.node->flags & ZONE_NODE_EMPTY), at.node->rrset_count == 0);
	if (view->delta_count == 0)
		cr_assert_eq(!!(at.node->flags & ZONE_NODE_BELOW), is_below);
	bool fits = name_concat(wildcard, star, sizeof star, name) != 0;
	check_is(zone_node_wildcard(view, at), fits && model_exists(m, wildcard) ? wildcard : NULL, "wildcard", name);
	for (uint32_t type = 1, seen = 0; type <= 65535; type++) {
		const struct zone_rrset *rrset = zone_node_rrset(at, (uint16_t)type);
		if (rrset) {
			seen++;
			check_embedded_targets(m, view, at, rrset);
		}
		if (type < 256 || type == 65280)
			if (type != RR_RRSIG && type != RR_NSEC3)
				model_check_rrset(m, at.image, rrset, name, (uint16_t)type, 0);
		if (type == 65535)
			cr_assert_eq(seen, at.node->rrset_count);
	}
	check_is(zone_nsec_of_node(view, at), model_nsec_covering(m, name), "NSEC of node", name);
	struct zone_nsec3_at nsec3 = zone_nsec3_of_node(view, at, &matches);
	check_nsec3(m, nsec3, matches, name, "NSEC3 of node");
	if (fits && !is_below) {
		nsec3 = zone_nsec3_of_wildcard(view, at, &matches);
		check_nsec3(m, nsec3, matches, wildcard, "NSEC3 of wildcard");
	}
}

static inline void check_name(const struct model *m, const struct zone_view *view, const uint8_t *name)
{
	uint8_t lower[NAME_MAX_BYTES], label_offset[NAME_MAX_LABELS + 1], hash[20];
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	unsigned labels = 0;
	bool matches;
	name_lower(lower, name, bytes);
	for (size_t at = 0; lower[at] != 0; at += 1u + lower[at])
		label_offset[labels++] = (uint8_t)at;
	label_offset[labels] = (uint8_t)(bytes - 1);
	struct model_name encloser = { .bytes = bytes };
	memcpy(encloser.wire, name, bytes);
	while (!model_exists(m, encloser.wire))
		encloser = model_up(encloser.wire);
	zone_prefetch_slot(view, name_hash(lower, bytes));
	zone_prefetch_node(view, name_hash(lower, bytes));
	struct zone_at at = model_find(view, name);
	check_is(at, model_exists(m, name) ? name : NULL, "find", name);
	check_is(zone_closest_encloser(view, lower, label_offset, labels), encloser.wire, "closest encloser", name);
	check_is(zone_nsec_covering(view, lower), model_nsec_covering(m, name), "NSEC covering", name);
	model_hash(hash, name);
	struct zone_nsec3_at nsec3 = zone_nsec3_find(view, hash, &matches);
	check_nsec3(m, nsec3, matches, name, "NSEC3");
	if (at.node)
		check_node(m, view, at, name);
}

/* All names of the model, some beside and below each, and `extra` random ones. */
static inline void check_view(const struct model *m, const struct zone_view *view, unsigned extra)
{
	static struct model_name name[MODEL_MAX_NAMES];
	size_t count = model_names(m, name);
	check_is(zone_apex(view), m->apex, "apex", m->apex);
	for (size_t i = 0; i < count; i++) {
		uint8_t beside[NAME_MAX_BYTES], below[NAME_MAX_BYTES];
		check_name(m, view, name[i].wire);
		if (name_concat(below, (const uint8_t *)"\2zz\1*", 5, name[i].wire))
			check_name(m, view, below);
		if (!name_equal(name[i].wire, m->apex) &&
		    name_concat(beside, (const uint8_t *)"\4HOSt", 5, model_up(name[i].wire).wire))
			check_name(m, view, beside);
	}
	for (unsigned i = 0; i < extra; i++)
		check_name(m, view, model_random_name(m).wire);
}
