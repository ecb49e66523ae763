/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of non-existence from pre-signed zones: NSEC (RFC 4035 section 3.1.3) and NSEC3 (RFC 5155 section 7.2). Only questions with DO come here.
 * Budget: what exists is looked up by references; a name that does not costs one binary search (NSEC) or one hash (NSEC3). */
#include "answer/answer_internal.h"

static bool is_nsec3(const struct walk *w) { return (zone_apex(w->q->zone).image->flags & ZONE_SIGNED_NSEC3) != 0; }

static void pend_nsec(struct walk *w, struct zone_at at)
{
	const struct zone_rrset *nsec = at.node ? zone_node_rrset(at, RR_NSEC) : NULL;
	struct owner owner = { .kind = OWNER_NODE, .apex_pos = w->apex_pos, .image = at.image, .object = at.node };

	if (!nsec)
		return;
	if (at.node->hash == w->q->name_hash) {
		owner.kind = OWNER_POINTER; /* the question's own name: two octets instead of its labels */
		owner.pointer = (uint16_t)w->name_pos;
	}
	zone_pend(w, at.image, nsec, owner);
}

static void pend_nsec3(struct walk *w, struct zone_nsec3_at found)
{
	if (found.nsec3)
		zone_pend(w, found.image, zone_ptr(found.image, found.nsec3->rrset),
			  (struct owner){
				  .kind = OWNER_NSEC3, .apex_pos = w->apex_pos, .image = found.image, .object = found.nsec3 });
}

/* The NSEC3 that covers the current name's ancestor of `labels` + 1 labels: the next closer name. */
static void pend_next_closer(struct walk *w, unsigned labels)
{
	const struct answer_query *q = w->q;
	bool matches;

	if (labels >= q->label_count)
		return;
	unsigned from = q->label_offset[q->label_count - labels - 1];

	pend_nsec3(w, zone_nsec3_find_name(q->zone, q->lower + from, q->name_bytes - from, &matches));
}

/* Closest provable encloser, which is returned, and next closer (section 7.2.1). Names in opt-out spans have no NSEC3, so the proof may
 * start further up. */
static struct zone_at pend_closest_encloser(struct walk *w, struct zone_at at)
{
	for (;;) {
		bool matches;
		struct zone_nsec3_at found = zone_nsec3_of_node(w->q->zone, at, &matches);

		if (matches || !found.nsec3) {
			pend_nsec3(w, found);
			break;
		}
		struct zone_at parent = zone_node_parent(w->q->zone, at);

		if (!parent.node)
			break;
		at = parent;
	}
	pend_next_closer(w, at.node->labels);
	return at;
}

void denial_nxdomain(struct walk *w, struct zone_at encloser)
{
	bool matches;

	if (is_nsec3(w)) {
		/* The wildcard that a validator looks for is the one below the encloser that it can prove (section 8.4). */
		encloser = pend_closest_encloser(w, encloser);
		pend_nsec3(w, zone_nsec3_of_wildcard(w->q->zone, encloser, &matches));
		return;
	}
	uint8_t wildcard[2 + NAME_MAX_BYTES] = "\1*";

	pend_nsec(w, zone_nsec_covering(w->q->zone, w->q->lower));
	if (encloser.node->name_bytes + 2u > NAME_MAX_BYTES)
		return; /* no wildcard fits below it */
	memcpy(wildcard + 2, zone_node_name(encloser.node), encloser.node->name_bytes);
	pend_nsec(w, zone_nsec_covering(w->q->zone, wildcard));
}

void denial_nodata(struct walk *w, struct zone_at node)
{
	if (is_nsec3(w)) {
		bool matches;
		struct zone_nsec3_at found = zone_nsec3_of_node(w->q->zone, node, &matches);

		if (matches)
			pend_nsec3(w, found);
		else
			(void)pend_closest_encloser(w, node);
		return;
	}
	pend_nsec(w, zone_nsec_of_node(w->q->zone, node));
}

void denial_wildcard_nodata(struct walk *w, struct zone_at encloser, struct zone_at wildcard)
{
	if (is_nsec3(w)) {
		bool matches;

		(void)pend_closest_encloser(w, encloser);
		pend_nsec3(w, zone_nsec3_of_wildcard(w->q->zone, encloser, &matches));
		return;
	}
	pend_nsec(w, zone_nsec_of_node(w->q->zone, wildcard));
	pend_nsec(w, zone_nsec_covering(w->q->zone, w->q->lower));
}

void denial_wildcard_answer(struct walk *w, struct zone_at encloser)
{
	if (is_nsec3(w))
		pend_next_closer(w, encloser.node->labels);
	else
		pend_nsec(w, zone_nsec_covering(w->q->zone, w->q->lower));
}
