/* SPDX-License-Identifier: Apache-2.0 */
/* The authoritative algorithm: RFC 1034 section 4.3.2 with RFC 4592 (wildcards), 6672 (DNAME), 4035 and 5155 (proofs), 8482 (ANY),
 * 2308 (negative answers), 6604 (rcode of a chain). Each step of a chain finds its zone, node and RRset afresh; bounded by
 * ANSWER_MAX_CHAIN. Budget: 150 instructions for a name that exists. */
#include "answer/single_inline.h"

/* What a step did. */
enum step { STEP_DONE, STEP_CHAIN };

static struct owner owner_here(const struct walk *w)
{
	return (struct owner){ .kind = OWNER_POINTER, .pointer = (uint16_t)w->name_pos };
}

void zone_pend(struct walk *w, const struct zone_image *image, const struct zone_rrset *rrset, struct owner owner)
{
	for (unsigned i = 0; i < w->pending_count; i++)
		if (w->pending[i].rrset == rrset)
			return;
	if (w->pending_count < ANSWER_MAX_AUTHORITY)
		w->pending[w->pending_count++] = (struct pending){ image, rrset, owner };
}

static void pend_soa(struct walk *w)
{
	const struct zone_view *zone = w->q->zone;
	const struct zone_image *image = zone->base;

	for (unsigned i = 0; i < zone->delta_count; i++)
		if (zone->delta[i]->negative_soa != 0) {
			image = zone->delta[i];
			break;
		}
	zone_pend(w, image, zone_ptr(image, image->negative_soa),
		  (struct owner){ .kind = OWNER_POINTER, .pointer = (uint16_t)w->apex_pos, .apex_pos = w->apex_pos });
}

/* The RRset's names want their addresses in the additional section. */
static void want_additional(struct walk *w, struct zone_at at, const struct zone_rrset *rrset, uint32_t block_pos)
{
	w->additional_of = rrset;
	w->additional_at = at;
	w->additional_block_pos = block_pos;
	w->additional_apex_pos = w->apex_pos;
}

/* The step's data comes from a zone: AA is about the first owner of the answer (RFC 1035 section 4.1.1). */
static void authoritative(struct walk *w)
{
	if (w->r.count[SECTION_ANSWER] == 0)
		w->is_aa = true;
}

/* --- delegations -------------------------------------------------------------------------------------------------- */

static enum step referral(struct walk *w, struct zone_at cut)
{
	const struct zone_rrset *ns = zone_node_rrset(cut, RR_NS), *ds;
	unsigned up = w->q->label_count - cut.node->labels;
	struct owner owner = { .kind = OWNER_POINTER, .apex_pos = w->apex_pos };

	owner.pointer = (uint16_t)message_suffix(w->r.msg, w->name_pos, up);
	if (!ns)
		return STEP_DONE;
	zone_pend(w, cut.image, ns, owner);
	w->additional_of = ns; /* its block's place is known when the authority section is written */
	w->additional_at = cut;
	w->additional_apex_pos = w->apex_pos;
	w->referral_cut = cut.node;
	if (!w->q->is_do)
		return STEP_DONE;
	ds = zone_node_rrset(cut, RR_DS);
	if (ds)
		zone_pend(w, cut.image, ds, owner);
	else
		denial_nodata(w, cut); /* that there is no DS */
	return STEP_DONE;
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* The current name becomes the one at target_pos; the next step looks for its zone. */
static enum step follow(struct walk *w, uint32_t target_pos)
{
	struct answer_query *q = w->q;

	/* A response whose chain lies beyond the reach of pointers ends here: the client asks on. */
	if (target_pos > DNS_POINTER_MAX)
		return STEP_DONE;
	w->seen[w->seen_count++] = q->name_hash;
	message_name(q, target_pos);
	for (unsigned i = 0; i < w->seen_count; i++)
		if (w->seen[i] == q->name_hash)
			return STEP_DONE;
	struct zone_set_hit hit = zone_set_find(w->snapshot->zones, q->lower, q->name_bytes, q->label_offset, q->label_count, 0);

	if (!hit.view || unlikely(!zone_speaks_for(hit.view, w->snapshot->cache && hit.zone_label == q->label_count, q->lower,
						   q->name_bytes, q->name_hash))) {
		w->is_outside = w->may_leave;
		return STEP_DONE;
	}
	if (!hit.view->base)
		return STEP_DONE;
	q->zone = hit.view;
	q->hint_ = NULL;
	q->zone_label = (uint8_t)hit.zone_label;
	w->place = place_find(q, place_node(q));
	w->name_pos = target_pos;
	w->apex_pos = message_suffix(w->r.msg, target_pos, hit.zone_label);
	return STEP_CHAIN;
}

/* Writes the CNAME that a DNAME stands for: owner the current name, target its prefix before the DNAME's own target. */
static enum step synthesize_cname(struct walk *w, struct zone_at dname, uint32_t dname_block_pos, uint32_t ttl_s)
{
	struct render *r = &w->r;
	struct answer_query *q = w->q;
	uint32_t prefix_bytes = (uint32_t)q->name_bytes - dname.node->name_bytes,
		 target_pos = dname_block_pos + ZONE_RR_FIXED_BYTES;
	uint8_t *p = r->msg + r->pos;
	uint32_t target_bytes = 1;

	for (const uint8_t *label = r->msg + target_pos; *label; label += 1u + *label)
		target_bytes += 1u + *label;
	if (prefix_bytes + target_bytes > NAME_MAX_BYTES) {
		w->rcode = RCODE_YXDOMAIN; /* RFC 6672 section 2.2 */
		return STEP_DONE;
	}
	if (target_pos > DNS_POINTER_MAX || r->pos + ZONE_RR_FIXED_BYTES + prefix_bytes + 2 > r->limit) {
		r->is_full = true;
		return STEP_DONE;
	}
	store_be16(p, (uint16_t)(RENDER_POINTER | w->name_pos));
	store_be16(p + 2, RR_CNAME);
	store_be16(p + 4, RR_CLASS_IN);
	store_be32(p + 6, ttl_s);
	store_be16(p + 10, (uint16_t)(prefix_bytes + 2));
	/* The client's letter case, read label by label: the name itself may be compressed. */
	uint32_t at = w->name_pos;

	for (uint32_t done = 0; done < prefix_bytes;) {
		at = message_suffix(r->msg, at, 0);
		memcpy(p + ZONE_RR_FIXED_BYTES + done, r->msg + at, 1u + r->msg[at]);
		done += 1u + r->msg[at];
		at += 1u + r->msg[at];
	}
	store_be16(p + ZONE_RR_FIXED_BYTES + prefix_bytes, (uint16_t)(RENDER_POINTER | target_pos));
	uint32_t name_pos = r->pos + ZONE_RR_FIXED_BYTES;

	r->pos += ZONE_RR_FIXED_BYTES + prefix_bytes + 2;
	r->count[SECTION_ANSWER]++;
	return q->qtype == RR_CNAME ? STEP_DONE : follow(w, name_pos);
}

static enum step dname_answer(struct walk *w, struct zone_at at)
{
	const struct zone_rrset *dname = zone_node_rrset(at, RR_DNAME);
	struct owner owner = { .kind = OWNER_POINTER, .apex_pos = w->apex_pos };
	uint32_t block_pos;

	if (!dname)
		return STEP_DONE;
	authoritative(w);
	owner.pointer = (uint16_t)message_suffix(w->r.msg, w->name_pos, w->q->label_count - at.node->labels);
	/* A chain may pass the same DNAME again: a record stands only once in a section. */
	for (unsigned i = 0; i < w->dname_count; i++)
		if (w->dname[i].rrset == dname)
			return synthesize_cname(w, at, w->dname[i].block_pos, dname->ttl_s);
	if (!render_signed(w, SECTION_ANSWER, at.image, dname, &owner, w->apex_pos, true, &block_pos))
		return STEP_DONE;
	if (w->dname_count < ANSWER_MAX_CHAIN) {
		w->dname[w->dname_count].rrset = dname;
		w->dname[w->dname_count++].block_pos = block_pos;
	}
	return synthesize_cname(w, at, block_pos, dname->ttl_s);
}

/* --- data --------------------------------------------------------------------------------------------------------- */

static enum step cname_answer(struct walk *w, struct zone_at at, const struct zone_rrset *cname)
{
	struct owner owner = owner_here(w);
	uint32_t block_pos;

	if (!render_signed(w, SECTION_ANSWER, at.image, cname, &owner, w->apex_pos, true, &block_pos))
		return STEP_DONE;
	return follow(w, block_pos + ZONE_RR_FIXED_BYTES);
}

/* ANY and RRSIG: the node's RRsets or their signatures. Over UDP one RRset is enough (RFC 8482 section 4.1). */
static void any_answer(struct walk *w, struct zone_at at)
{
	const struct zone_rrset_slot *slot = zone_node_rrset_slots(at.node);
	struct owner owner = owner_here(w);
	bool is_udp = w->q->client.transport == TRANSPORT_UDP;
	uint32_t block_pos;

	for (unsigned i = 0; i < at.node->rrset_count && !w->r.is_full; i++) {
		const struct zone_rrset *rrset = zone_ptr(at.image, slot[i].rrset);

		if (w->q->qtype == RR_RRSIG) {
			if (rrset->signature == 0)
				continue;
			render_rrset(&w->r, SECTION_ANSWER, at.image, zone_rrset_signature(at.image, rrset), &owner, w->apex_pos,
				     true, &block_pos);
		} else {
			/* The denial of a name is no answer to "what is there" where something else is. */
			if (is_udp && slot[i].type == RR_NSEC && i + 1u < at.node->rrset_count)
				continue;
			render_signed(w, SECTION_ANSWER, at.image, rrset, &owner, w->apex_pos, true, &block_pos);
			if (is_udp)
				break;
		}
	}
}

static void no_data(struct walk *w, struct zone_at at, struct zone_at encloser)
{
	pend_soa(w);
	if (likely(!w->q->is_do))
		return;
	if (encloser.node)
		denial_wildcard_nodata(w, encloser, at);
	else
		denial_nodata(w, at);
}

/* The node answers for the current name; encloser is set when it is a wildcard that was expanded. */
static enum step node_answer(struct walk *w, struct zone_at at, struct zone_at encloser)
{
	uint16_t qtype = w->q->qtype;
	struct owner owner = owner_here(w);
	const struct zone_rrset *rrset;
	uint32_t block_pos, before = w->r.count[SECTION_ANSWER];

	authoritative(w);
	rrset = zone_node_rrset(at, qtype);
	if (likely(rrset)) {
		if (render_signed(w, SECTION_ANSWER, at.image, rrset, &owner, w->apex_pos, true, &block_pos) &&
		    rrset->embedded_count > 0)
			want_additional(w, at, rrset, block_pos);
	} else if (qtype == RR_ANY || qtype == RR_RRSIG) {
		any_answer(w, at);
	} else if (at.node->flags & ZONE_NODE_CNAME) {
		rrset = zone_node_rrset(at, RR_CNAME);
		if (encloser.node && w->q->is_do)
			denial_wildcard_answer(w, encloser); /* before the chain moves on to another zone */
		return rrset ? cname_answer(w, at, rrset) : STEP_DONE;
	}
	if (w->r.count[SECTION_ANSWER] == before && !w->r.is_full)
		no_data(w, at, encloser);
	else if (unlikely(encloser.node && w->q->is_do))
		denial_wildcard_answer(w, encloser);
	return STEP_DONE;
}

static enum step name_error(struct walk *w, struct zone_at encloser)
{
	authoritative(w);
	w->rcode = RCODE_NXDOMAIN;
	pend_soa(w);
	if (unlikely(w->q->is_do))
		denial_nxdomain(w, encloser);
	return STEP_DONE;
}

/* Whether the question goes to the parent's side of this very cut. */
static bool is_parent_side(const struct walk *w, struct zone_at at)
{
	return w->q->qtype == RR_DS && at.node->labels == w->q->label_count;
}

/* The rule: the name exists, has the type, needs no signature and fits. False, with nothing done, for all else. */
ALWAYS_INLINE bool plain_answer(struct walk *w, struct zone_at at)
{
	const struct zone_rrset *rrset = zone_node_rrset(at, w->q->qtype);

	if (unlikely(!rrset || (w->q->is_do && rrset->signature != 0)))
		return false;
	if (unlikely(!render_is_near(w->r.pos, rrset) || w->r.pos + rrset->block_bytes > w->r.limit))
		return false;
	uint32_t block_pos = w->r.pos;

	authoritative(w);
	render_block(&w->r, SECTION_ANSWER, rrset, w->name_pos, w->name_pos, w->apex_pos);
	if (rrset->embedded_count > 0)
		want_additional(w, at, rrset, block_pos);
	return true;
}

static enum step zone_step(struct walk *w)
{
	struct answer_query *q = w->q;
	const struct zone_view *zone = q->zone;
	const struct zone_at none = { NULL, NULL };
	struct zone_at at = w->place.at, encloser = w->place.encloser, cut;

	cut = zone_node_cut(zone, at.node ? at : encloser);
	if (unlikely(cut.node != NULL)) {
		if (!(cut.node->flags & ZONE_NODE_CUT))
			return dname_answer(w, cut);
		return is_parent_side(w, cut) ? node_answer(w, cut, none) : referral(w, cut);
	}
	if (likely(at.node))
		return plain_answer(w, at) ? STEP_DONE : node_answer(w, at, none);
	if (encloser.node->flags & ZONE_NODE_DNAME)
		return dname_answer(w, encloser);
	struct zone_at wildcard = zone_node_wildcard(zone, encloser);

	return wildcard.node ? node_answer(w, wildcard, encloser) : name_error(w, encloser);
}

/* The authority section. A referral's NS block is where the glue's owners point to. */
static void render_pending(struct walk *w)
{
	for (unsigned i = 0; i < w->pending_count && !w->r.is_full; i++) {
		const struct pending *p = &w->pending[i];
		uint32_t block_pos;

		if (render_signed(w, SECTION_AUTHORITY, p->image, p->rrset, &p->owner, p->owner.apex_pos, true, &block_pos) &&
		    p->rrset == w->additional_of)
			w->additional_block_pos = block_pos;
	}
}

void zone_answer(struct walk *w)
{
	uint32_t start = w->r.pos;
	unsigned hops = 0;

	while (zone_step(w) == STEP_CHAIN && ++hops < ANSWER_MAX_CHAIN && !w->r.is_full)
		;
	if (w->pending_count > 0 && !w->r.is_full)
		render_pending(w);
	if (unlikely(w->r.is_full)) {
		/* Half an answer helps nobody: the client comes back by TCP (RFC 2181 section 9). */
		w->r.pos = start;
		memset(w->r.count, 0, sizeof w->r.count);
		return;
	}
	if (w->additional_of)
		additional_render(w);
}
