/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_compile_internal.h"

#include "base/bytes.h"
#include "dns/name_inline.h"

#include <stdlib.h>

#define SOA_TIMERS_BYTES 20 /* serial, refresh, retry, expire, minimum: the end of the rdata */
#define SOA_MIN_BYTES (SOA_TIMERS_BYTES + 2)
#define FIRST_SLOTS 4u

/* One pass over the zone. The plan's pass has no output: both take the same steps and so agree on every place. */
struct pass {
	struct zone_build *b;
	struct zone_block *block;
	uint8_t *out; /* NULL: the plan's */
	size_t at;    /* next free octet of the image */
	uint32_t rrset_count, order_count;
	uint64_t rr_count;
	const char *why;      /* of a failure */
	zone_ref last_nsec;   /* node of the last NSEC in canonical order */
	zone_build_ref next_; /* see next_node */
	uint32_t index_;
};

/* Next node of the image: in canonical order when there is an NSEC chain, as they came in otherwise. */
static struct zone_build_node *next_node(struct pass *p)
{
	struct zone_build *b = p->b;
	struct zone_build_node *node;
	do {
		if (b->plan.flags & ZONE_SIGNED_NSEC) {
			node = p->index_ < b->node_count ? zone_build_node(b, b->sorted[p->index_++]) : NULL;
		} else {
			node = zone_build_node(b, p->next_);
			p->next_ = node ? node->next : 0;
		}
	} while (node && !(node->flags & ZONE_BUILD_WANTED));
	return node;
}
static void pass_start(struct pass *p, size_t at)
{
	*p = (struct pass){ .b = p->b, .block = p->block, .out = p->out, .at = at, .next_ = p->b->first_node };
}

/* Signatures and NSEC3 have their own places. */
static bool is_kept(const struct zone_build_rrset *rrset) { return rrset->type != RR_RRSIG && rrset->type != RR_NSEC3; }

/* --- marks ---------------------------------------------------------------------------------------------------------------- */

/* Sets the node's own flags; whether it has data of its own, and whether it is nothing but an NSEC3 owner. */
static bool mark_own(struct zone_build *b, struct zone_build_node *node, bool *is_nsec3_owner)
{
	bool has_data = false;
	*is_nsec3_owner = false;
	ZONE_BUILD_EACH_RRSET(b, node, rrset) {
		*is_nsec3_owner = *is_nsec3_owner || rrset->type == RR_NSEC3;
		if (!is_kept(rrset))
			continue;
		has_data = true;
		if (rrset->type == RR_NS && node->parent) {
			node->flags |= ZONE_BUILD_CUT;
			b->plan.flags |= ZONE_HAS_CUT;
		}
		if (rrset->type == RR_DNAME) {
			node->flags |= ZONE_BUILD_DNAME;
			b->plan.flags |= ZONE_HAS_DNAME;
		}
	}
	*is_nsec3_owner = *is_nsec3_owner && !has_data;
	return has_data;
}

static void want(struct zone_build *b, struct zone_build_node *node)
{
	struct zone_build_plan *plan = &b->plan;
	node->flags |= ZONE_BUILD_WANTED;
	plan->node_count++;
	plan->max_labels = MAX(plan->max_labels, node->labels);
	plan->flags |= name_is_wildcard(node->name) ? ZONE_HAS_WILDCARD : 0;
}

/* Owners of data and all names between them and the apex get a node. A delta's cuts may be above its nodes without being in it. */
static void mark_wanted(struct zone_build *b)
{
	if (b->has_compiler_marks)
		ZONE_BUILD_EACH_NODE(b, node)
			node->flags &= (uint16_t) ~(ZONE_BUILD_WANTED | ZONE_BUILD_CUT | ZONE_BUILD_DNAME);
	b->has_compiler_marks = true;
	want(b, zone_build_apex(b));
	ZONE_BUILD_EACH_NODE(b, node) {
		bool is_nsec3_owner;
		if (node->flags & ZONE_BUILD_OUT_OF_ZONE)
			continue;
		bool has_data = mark_own(b, node, &is_nsec3_owner);
		if (b->is_delta)
			has_data = node->flags & ZONE_BUILD_DELETED || (node->flags & ZONE_BUILD_CHANGED && !is_nsec3_owner);
		/* The apex ends it, since it is wanted. In a delta nobody is wanted for what is below. */
		for (struct zone_build_node *up = node; has_data && up && !(up->flags & ZONE_BUILD_WANTED);
		     up = b->is_delta ? NULL : zone_build_node(b, up->parent))
			want(b, up);
	}
	if (b->is_delta)
		b->plan.flags |= ZONE_DELTA | ZONE_HAS_CUT | ZONE_HAS_DNAME;
}

/* The topmost cut or DNAME strictly above; NULL if there is none. At most 127 steps. */
static const struct zone_build_node *cut_above(const struct zone_build *b, const struct zone_build_node *node)
{
	const struct zone_build_node *top = NULL;
	for (const struct zone_build_node *up = zone_build_node(b, node->parent); up; up = zone_build_node(b, up->parent))
		if (up->flags & (ZONE_BUILD_CUT | ZONE_BUILD_DNAME))
			top = up;
	return top;
}

/* --- RRsets ---------------------------------------------------------------------------------------------------------------- */

/* Makes the next block. False with p->why if that RRset can't be served. */
static bool make_block(struct pass *p, const struct zone_build_rrset *rrset, uint16_t covered, uint32_t ttl_cap_s)
{
	p->why = "an RRset is too large for a message";
	if (!zone_block_make(p->block, rrset, covered, ttl_cap_s))
		return false;
	p->why = "an owner has several CNAMEs or DNAMEs";
	return p->block->rr_count <= 1 || (rrset->type != RR_CNAME && rrset->type != RR_DNAME);
}

static bool put_plain(struct pass *p, const struct zone_build_rrset *rrset, zone_ref *ref)
{
	struct zone_plain plain;
	if (!zone_plain_measure(p->b, rrset, &plain))
		return false;
	*ref = (zone_ref)(p->at / ZONE_REF_UNIT);
	p->rr_count += plain.rr_count;
	if (p->out)
		zone_plain_write(p->b, rrset, &plain, (struct zone_rrset *)(p->out + p->at));
	p->at += zone_plain_image_bytes(&plain);
	return true;
}

static bool put_block(struct pass *p, const struct zone_build_rrset *rrset, uint32_t ttl_cap_s, zone_ref *ref)
{
	if (!make_block(p, rrset, ZONE_ANY_COVERED, ttl_cap_s))
		return false;
	*ref = (zone_ref)(p->at / ZONE_REF_UNIT);
	p->rr_count += p->block->rr_count;
	if (p->out)
		zone_block_write(p->block, rrset->type, (struct zone_rrset *)(p->out + p->at));
	p->at += zone_block_image_bytes(p->block);
	return true;
}

/* An RRset and behind it the signatures that cover it. */
static bool put_rrset(struct pass *p, const struct zone_build_rrset *rrset, const struct zone_build_rrset *signatures,
		      uint32_t ttl_cap_s, zone_ref *ref)
{
	struct zone_rrset *out = p->out ? (struct zone_rrset *)(p->out + p->at) : NULL;
	bool is_capped = ttl_cap_s != UINT32_MAX;
	if ((is_capped || !put_plain(p, rrset, ref)) && !put_block(p, rrset, ttl_cap_s, ref))
		return false;
	if (!signatures)
		return true;
	/* With a cap, the signature's TTL follows the RRset's. */
	if (!make_block(p, signatures, rrset->type, is_capped ? p->block->ttl_s : UINT32_MAX))
		return false;
	if (p->block->rr_count == 0)
		return true;
	p->rr_count += p->block->rr_count;
	if (out) {
		out->signature = (zone_ref)(p->at / ZONE_REF_UNIT);
		zone_block_write(p->block, RR_RRSIG, (struct zone_rrset *)(p->out + p->at));
	}
	p->at += zone_block_image_bytes(p->block);
	return true;
}

/* --- nodes ----------------------------------------------------------------------------------------------------------------- */

/* NSEC3 of the name and of "*.<name>": where answers need them. */
static void fill_nsec3(const struct zone_build *b, const struct zone_build_node *node, struct zone_node *out)
{
	uint8_t lower[NAME_MAX_BYTES + 2] = { 1, '*' };
	bool matches;
	name_lower(lower + 2, node->name, node->name_bytes);
	out->nsec = zone_compile_nsec3_find(b, lower + 2, node->name_bytes, &matches);
	if (!matches)
		out->flags |= ZONE_NODE_NO_DENIAL;
	/* Names below a cut or a DNAME are never denied, so neither can be a closest encloser. */
	if (!(node->flags & (ZONE_BUILD_CUT | ZONE_BUILD_DNAME)) && node->name_bytes + 2u <= NAME_MAX_BYTES)
		out->nsec3_wildcard = zone_compile_nsec3_find(b, lower, node->name_bytes + 2u, &matches);
}

static zone_ref image_ref(const struct zone_build_node *node)
{
	return node && node->flags & ZONE_BUILD_WANTED ? node->image : 0;
}

static void fill_node(struct pass *p, const struct zone_build_node *node, const struct zone_build_node *cut,
		      struct zone_node *out)
{
	const struct zone_build *b = p->b;
	const struct zone_build_node *parent = zone_build_node(b, node->parent);
	out->hash = (uint64_t)node->hash_high << 32 | node->hash_low;
	out->name_bytes = node->name_bytes;
	out->labels = node->labels;
	out->flags = (uint16_t)((parent ? 0 : ZONE_NODE_APEX) | (node->flags & ZONE_BUILD_CUT ? ZONE_NODE_CUT : 0) |
				(node->flags & ZONE_BUILD_DNAME ? ZONE_NODE_DNAME : 0) | (cut ? ZONE_NODE_BELOW : 0) |
				(name_is_wildcard(node->name) ? ZONE_NODE_WILDCARD : 0));
	if (node->flags & ZONE_BUILD_DELETED)
		out->flags |= ZONE_NODE_DELETED;
	else if (out->rrset_count == 0)
		out->flags |= ZONE_NODE_EMPTY;
	out->parent = image_ref(parent);
	out->cut = image_ref(cut ? cut : node->flags & ZONE_BUILD_CUT ? node : NULL);
	if (out->flags & ZONE_NODE_WILDCARD && out->parent && !(out->flags & ZONE_NODE_DELETED))
		((struct zone_node *)(p->out + (size_t)out->parent * ZONE_REF_UNIT))->wildcard = node->image;
	memcpy((uint8_t *)zone_node_name(out), node->name, node->name_bytes);
	if (b->is_delta)
		return;
	if (b->plan.flags & ZONE_SIGNED_NSEC3 && !cut)
		fill_nsec3(b, node, out);
	else if (b->plan.flags & ZONE_SIGNED_NSEC)
		out->nsec = p->last_nsec;
}

static bool put_node(struct pass *p, struct zone_build_node *node)
{
	struct zone_build *b = p->b;
	struct zone_node *out = p->out ? (struct zone_node *)(p->out + p->at) : NULL;
	const struct zone_build_node *cut = p->b->plan.flags & (ZONE_HAS_CUT | ZONE_HAS_DNAME) ? cut_above(b, node) : NULL;
	const struct zone_build_rrset *signatures = zone_build_rrset_of(b, node, RR_RRSIG);
	uint32_t count = 0;
	bool is_gone = node->flags & ZONE_BUILD_DELETED;
	node->image = (zone_ref)(p->at / ZONE_REF_UNIT);
	ZONE_BUILD_EACH_RRSET(b, node, rrset)
		count += !is_gone && is_kept(rrset);
	p->rrset_count += count;
	p->at += zone_pad(sizeof *out + count * sizeof(struct zone_rrset_slot) + node->name_bytes);
	if (b->plan.flags & ZONE_SIGNED_NSEC && !cut && !is_gone && zone_build_rrset_of(b, node, RR_NSEC)) {
		p->last_nsec = node->image;
		if (out)
			((zone_ref *)(p->out + (size_t)b->plan.order * ZONE_REF_UNIT))[p->order_count] = node->image;
		p->order_count++;
	}
	if (out) {
		out->rrset_count = (uint16_t)count;
		fill_node(p, node, cut, out);
	}
	uint32_t index = 0;
	ZONE_BUILD_EACH_RRSET(b, node, rrset) {
		struct zone_rrset_slot slot = { .type = rrset->type };
		if (is_gone || !is_kept(rrset))
			continue;
		if (!put_rrset(p, rrset, signatures, UINT32_MAX, &slot.rrset))
			return false;
		if (out) {
			out->flags |= slot.type == RR_CNAME ? ZONE_NODE_CNAME : 0;
			((struct zone_rrset_slot *)(out + 1))[index++] = slot;
		}
	}
	p->why = "the zone does not fit into 32 GiB";
	return p->at / ZONE_REF_UNIT <= UINT32_MAX;
}

/* All RRsets behind the nodes: the SOA for negative answers, then the NSEC3s by hash. */
static bool put_tail(struct pass *p)
{
	struct zone_build *b = p->b;
	const struct zone_build_node *apex = zone_build_apex(b);
	const struct zone_build_rrset *soa = zone_build_rrset_of(b, apex, RR_SOA);
	const struct zone_build_rr *rr = zone_build_rr(b, soa->first);
	uint64_t rr_count = p->rr_count;
	if (!put_rrset(p, soa, zone_build_rrset_of(b, apex, RR_RRSIG), load_be32(rr->rdata + rr->rdata_bytes - 4),
		       &b->plan.negative_soa))
		return false;
	p->rr_count = rr_count; /* a copy is no record of the zone */
	struct zone_nsec3 *table = p->out ? (struct zone_nsec3 *)(p->out + (size_t)b->plan.nsec3 * ZONE_REF_UNIT) : NULL;
	for (uint32_t i = 0; i < b->plan.nsec3_count; i++) {
		const struct zone_build_nsec3 *owner = &b->plan.nsec3_owners[i];
		const struct zone_build_node *node = zone_build_node(b, owner->node);
		zone_ref ref = 0;
		if (node && !put_rrset(p, zone_build_rrset_of(b, node, RR_NSEC3), zone_build_rrset_of(b, node, RR_RRSIG),
				       UINT32_MAX, &ref))
			return false;
		if (table) {
			memcpy(table[i].hash, owner->hash, sizeof table[i].hash);
			table[i].rrset = ref;
		}
	}
	return true;
}

/* --- plan ------------------------------------------------------------------------------------------------------------------ */

/* At most 3/4 full, so that there is always an empty slot. */
static uint32_t slot_count_for(uint32_t nodes)
{
	uint32_t slots = FIRST_SLOTS;
	while (slots / 4 * 3 < nodes)
		slots *= 2;
	return slots;
}

static enum err plan_chains(struct zone_build *b, const char **why)
{
	struct zone_build_plan *plan = &b->plan;
	const struct zone_build_rrset *soa = zone_build_rrset_of(b, zone_build_apex(b), RR_SOA);
	*why = "the zone has no usable SOA";
	if (!soa || zone_build_rr(b, soa->first)->rdata_bytes < SOA_MIN_BYTES || soa->rr_count != 1)
		return ERR_MALFORMED;
	*why = "out of memory";
	enum err err = zone_compile_nsec3_plan(b);
	if (err == ERR_OK && !(plan->flags & ZONE_SIGNED_NSEC3) && zone_build_rrset_of(b, zone_build_apex(b), RR_NSEC)) {
		plan->flags |= ZONE_SIGNED_NSEC;
		err = zone_build_sort(b);
	}
	return err;
}

static enum err plan_places(struct zone_build *b, struct zone_block *block, const char **why)
{
	struct zone_build_plan *plan = &b->plan;
	struct pass p = { .b = b, .block = block };
	size_t at = zone_pad(offsetof(struct zone_image, nsec3_salt) + plan->nsec3_salt_bytes);
	plan->slot_count = slot_count_for(plan->node_count);
	plan->slots = (zone_ref)(at / ZONE_REF_UNIT);
	at += plan->slot_count * sizeof(struct zone_slot);
	plan->nodes = (zone_ref)(at / ZONE_REF_UNIT);
	pass_start(&p, at);
	for (struct zone_build_node *node; (node = next_node(&p));)
		if (!put_node(&p, node)) {
			*why = p.why;
			return ERR_NOSPACE;
		}
	plan->order_count = p.order_count;
	plan->rrset_count = p.rrset_count;
	if (!put_tail(&p)) {
		*why = p.why;
		return ERR_NOSPACE;
	}
	plan->rr_count = p.rr_count;
	at = p.at;
	plan->order = plan->order_count ? (zone_ref)(at / ZONE_REF_UNIT) : 0;
	at = zone_pad(at + plan->order_count * sizeof(zone_ref));
	plan->nsec3 = plan->nsec3_count ? (zone_ref)(at / ZONE_REF_UNIT) : 0;
	at += plan->nsec3_count * sizeof(struct zone_nsec3);
	plan->size_bytes = at;
	*why = "the zone does not fit into 32 GiB";
	return at / ZONE_REF_UNIT <= UINT32_MAX ? ERR_OK : ERR_NOSPACE;
}

static enum err make_plan(struct zone_build *b, struct zone_block *block, const char **why)
{
	zone_build_drop_plan(b);
	b->plan = (struct zone_build_plan){ 0 };
	*why = "out of memory";
	enum err err = zone_build_settle(b);
	if (err == ERR_OK)
		err = plan_chains(b, why);
	if (err == ERR_OK) {
		mark_wanted(b);
		err = plan_places(b, block, why);
	}
	if (err != ERR_OK)
		b->plan.size_bytes = 0;
	return err;
}

static struct zone_block *block_create(const struct zone_build *b)
{
	struct zone_block *block = malloc(sizeof *block); /* not zeroed: small zones touch little of it */
	if (block)
		block->b = b;
	return block;
}

enum err zone_compile_bytes(struct zone_build *b, size_t *size_bytes, const char **why)
{
	struct zone_block *block = block_create(b);
	if (!block) {
		*why = "out of memory";
		return ERR_NOMEM;
	}
	enum err err = make_plan(b, block, why);
	free(block);
	if (err == ERR_OK)
		*size_bytes = b->plan.size_bytes;
	return err;
}

/* --- output ---------------------------------------------------------------------------------------------------------------- */

static void write_header(const struct zone_build *b, struct zone_image *image)
{
	const struct zone_build_plan *plan = &b->plan;
	const struct zone_build_node *apex = zone_build_apex(b);
	const struct zone_build_rr *soa = zone_build_rr(b, zone_build_rrset_of(b, apex, RR_SOA)->first);
	struct zone_image header = {
		.magic = ZONE_IMAGE_MAGIC,
		.version = ZONE_IMAGE_VERSION,
		.size_bytes = plan->size_bytes,
		.flags = plan->flags,
		.serial = load_be32(soa->rdata + soa->rdata_bytes - SOA_TIMERS_BYTES),
		.node_count = plan->node_count,
		.rrset_count = plan->rrset_count,
		.rr_count = plan->rr_count,
		.slot_mask = plan->slot_count - 1,
		.slots = plan->slots,
		.apex = apex->image,
		.negative_soa = plan->negative_soa,
		.order = plan->order,
		.nsec3 = plan->nsec3,
		.order_count = plan->order_count,
		.nsec3_count = plan->nsec3_count,
		.nsec3_iterations = plan->nsec3_iterations,
		.nsec3_salt_bytes = plan->nsec3_salt_bytes,
		.max_labels = plan->max_labels,
		.class_ = b->class_,
		.apex_labels = apex->labels,
		.apex_bytes = apex->name_bytes,
	};
	if (plan->nsec3_salt_bytes)
		memcpy(header.nsec3_salt, plan->nsec3_salt, plan->nsec3_salt_bytes);
	memcpy(image, &header, offsetof(struct zone_image, nsec3_salt) + plan->nsec3_salt_bytes);
}

/* Fills the slots by linear probing, each some nodes after it was prefetched: they are all over the place. */
#define SLOT_DELAY 16u
struct slot_writer {
	struct zone_slot *slots;
	uint32_t mask, count, max_probe;
	const struct zone_build_node *pending[SLOT_DELAY];
};
static void slot_put(struct slot_writer *w, const struct zone_build_node *node)
{
	uint32_t at = node->hash_low & w->mask, probes = 1;
	for (; w->slots[at].node != 0; probes++)
		at = (at + 1) & w->mask;
	w->slots[at] = (struct zone_slot){ .tag = node->hash_high, .node = node->image };
	w->max_probe = MAX(w->max_probe, probes);
}
static void slot_later(struct slot_writer *w, const struct zone_build_node *node)
{
	uint32_t turn = w->count++ % SLOT_DELAY;
	if (w->count > SLOT_DELAY)
		slot_put(w, w->pending[turn]);
	__builtin_prefetch(&w->slots[node->hash_low & w->mask], 1);
	w->pending[turn] = node;
}
static void slots_finish(struct slot_writer *w)
{
	for (uint32_t i = 0; i < MIN(w->count, SLOT_DELAY); i++)
		slot_put(w, w->pending[i]);
}

enum err zone_compile(struct zone_build *b, void *out, size_t size_bytes)
{
	struct zone_block *block = block_create(b);
	const char *why;
	enum err err = block ? ERR_OK : ERR_NOMEM;
	if (err == ERR_OK && b->plan.size_bytes == 0)
		err = make_plan(b, block, &why);
	if (err == ERR_OK && size_bytes != b->plan.size_bytes)
		err = ERR_ARGUMENT;
	if (err != ERR_OK) {
		free(block);
		return err;
	}
	struct zone_image *image = out;
	struct slot_writer w = { .slots = (struct zone_slot *)((uint8_t *)out + (size_t)b->plan.slots * ZONE_REF_UNIT),
				 .mask = b->plan.slot_count - 1 };
	struct pass p = { .b = b, .block = block, .out = out };
	pass_start(&p, (size_t)b->plan.nodes * ZONE_REF_UNIT);
	for (struct zone_build_node *node; (node = next_node(&p));) {
		bool fits = put_node(&p, node);
		ASSERT(fits);
		slot_later(&w, node);
	}
	slots_finish(&w);
	bool fits = put_tail(&p);
	ASSERT(fits);
	ASSERT(zone_pad(p.at + b->plan.order_count * sizeof(zone_ref)) + b->plan.nsec3_count * sizeof(struct zone_nsec3) ==
	       size_bytes);
	write_header(b, image);
	image->max_probe = w.max_probe;
	free(block);
	return ERR_OK;
}
