/* SPDX-License-Identifier: Apache-2.0 */
/* Additional data: the addresses of the names in NS, MX, SRV and SVCB records (RFC 1034 section 3.7, RFC 9460 section 4.1), glue among them.
 * Glue for servers below the cut is part of a referral: it comes first, all of it, and without room for it the response is truncated
 * (RFC 9471). The rest is a courtesy, of at most ANSWER_MAX_ADDITIONAL_NAMES names, left out when it does not fit. */
#include "answer/answer_internal.h"

struct seen {
	unsigned count;
	const struct zone_rrset *rrset[2 * ANSWER_MAX_ADDITIONAL_NAMES];
};

static bool is_seen(struct seen *seen, const struct zone_rrset *rrset)
{
	for (unsigned i = 0; i < seen->count; i++)
		if (seen->rrset[i] == rrset)
			return true;
	if (seen->count < ARRAY_LEN(seen->rrset))
		seen->rrset[seen->count++] = rrset;
	return false;
}

/* Whether the referral is of no use without this name's addresses: it lies below the cut itself. */
static bool is_required(const struct walk *w, struct zone_at target)
{
	return w->referral_cut && zone_node_cut(w->q->zone, target).node == w->referral_cut;
}

static void render_addresses(struct walk *w, struct seen *seen, struct zone_at target, uint32_t owner_pos, bool is_needed)
{
	static const uint16_t types[] = { RR_A, RR_AAAA };
	struct owner owner = { .kind = OWNER_POINTER, .pointer = (uint16_t)owner_pos };
	struct zone_at cut = zone_node_cut(w->q->zone, target);

	/* Data below a cut is glue: for a referral only. Under a DNAME there is no such name. */
	if (cut.node && (!w->referral_cut || !(cut.node->flags & ZONE_NODE_CUT)))
		return;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		const struct zone_rrset *rrset = zone_node_rrset(target, types[i]);
		uint32_t block_pos;

		if (rrset && !is_seen(seen, rrset))
			render_signed(w, SECTION_ADDITIONAL, target.image, rrset, &owner, w->additional_apex_pos, is_needed,
				      &block_pos);
	}
}

/* Required glue, all of it, or else the courtesies. */
static void render_names(struct walk *w, struct seen *seen, bool required)
{
	const struct zone_rrset *rrset = w->additional_of;
	const struct zone_embedded *embedded = zone_rrset_embedded(rrset);
	unsigned names = 0;

	for (unsigned i = 0; i < rrset->embedded_count && !w->r.is_full; i++) {
		uint32_t owner_pos = w->additional_block_pos + embedded[i].offset;

		if (!(embedded[i].flags & ZONE_EMBEDDED_ADDITIONAL) || owner_pos > DNS_POINTER_MAX)
			continue;
		struct zone_at target = zone_embedded_target(w->q->zone, w->additional_at, &embedded[i], rrset);

		/* "." in SVCB: the owner itself (RFC 9460 section 2.5). */
		if (embedded[i].labels == 0 && (rrset->type == RR_SVCB || rrset->type == RR_HTTPS)) {
			target = w->additional_at;
			owner_pos = w->name_pos;
		}
		if (!target.node || is_required(w, target) != required)
			continue;
		if (!required && ++names > ANSWER_MAX_ADDITIONAL_NAMES)
			break;
		render_addresses(w, seen, target, owner_pos, required);
	}
}

void additional_render(struct walk *w)
{
	struct seen seen = { .count = 0 };

	if (w->referral_cut)
		render_names(w, &seen, true);
	render_names(w, &seen, false);
}
