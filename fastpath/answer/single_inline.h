/* SPDX-License-Identifier: Apache-2.0 */
/* single_inline.h: the responses that are one RRset, which most are: data that needs no signature and no additional data; NODATA and
 * NXDOMAIN without proofs. What is chosen here is what zone_hot.c comes to on its longer way; all else is left to it. */
#pragma once
#include "answer/render_inline.h"

/* The current name's node; node NULL: there is none. */
ALWAYS_INLINE struct zone_at place_node(const struct answer_query *q)
{
	return zone_find_hinted(q->zone, q->hint_, q->lower, q->name_bytes, q->name_hash);
}
ALWAYS_INLINE struct place place_find(const struct answer_query *q, struct zone_at at)
{
	struct place p = { .at = at };

	if (unlikely(!at.node))
		p.encloser = zone_closest_encloser(q->zone, q->lower, q->label_offset, q->label_count);
	return p;
}

/* Where the apex's name stands in the message as long as the question's name is the current one. */
ALWAYS_INLINE uint32_t question_apex_pos(const struct answer_query *q)
{
	return DNS_HEADER_BYTES + q->label_offset[q->zone_label];
}

static inline bool single_wants_additional(const struct zone_rrset *rrset)
{
	const struct zone_embedded *embedded = zone_rrset_embedded(rrset);

	for (unsigned i = 0; i < rrset->embedded_count; i++)
		if (embedded[i].flags & ZONE_EMBEDDED_ADDITIONAL)
			return true;
	return false;
}

/* The RRset that is the answer. NULL: more belongs to the response, or it takes a closer look to tell. */
ALWAYS_INLINE const struct zone_rrset *single_data(const struct answer_query *q, struct zone_at at)
{
	if (unlikely(!at.node || zone_node_cut(q->zone, at).node))
		return NULL;
	const struct zone_rrset *rrset = zone_node_rrset(at, q->qtype);

	if (unlikely(!rrset || (q->is_do && rrset->signature != 0)))
		return NULL;
	return unlikely(rrset->embedded_count > 0 && single_wants_additional(rrset)) ? NULL : rrset;
}

/* The SOA for the authority section of NODATA or NXDOMAIN. NULL as above. The name has no single_data. */
ALWAYS_INLINE const struct zone_rrset *single_negative(const struct answer_query *q, const struct place *place)
{
	const struct zone_image *image = q->zone->base;
	const struct zone_node *encloser = place->encloser.node;
	const struct zone_rrset *soa = zone_ptr(image, image->negative_soa);

	if (q->zone->delta_count != 0)
		return NULL; /* the SOA may be a delta's */
	if (q->is_do && (soa->signature != 0 || (image->flags & (ZONE_SIGNED_NSEC | ZONE_SIGNED_NSEC3))))
		return NULL;
	if (encloser)
		return encloser->cut != 0 || encloser->wildcard != 0 || (encloser->flags & ZONE_NODE_DNAME) ? NULL : soa;
	if (place->at.node->cut != 0 || (place->at.node->flags & ZONE_NODE_CNAME) || q->qtype == RR_ANY || q->qtype == RR_RRSIG ||
	    zone_node_rrset(place->at, q->qtype))
		return NULL;
	return soa;
}
