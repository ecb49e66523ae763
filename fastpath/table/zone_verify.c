/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler lays an image out without gaps, so most refs have exactly one right value: the place that the walk has reached.
 * The first walk goes over all bytes in order and marks where nodes begin; the second one, over the marks, checks refs to
 * nodes. Budget: 30 ns a node. */
#include "table/zone_image.h"

#include "base/bytes.h"

#include <stdlib.h>

#define BLOCK_MAX_BYTES (65535u - 12u - 255u)
#define SOA_RDATA_MIN_BYTES 22u
#define POINTER_MAX 0x3fffu
#define KNOWN_IMAGE_FLAGS (2u * ZONE_TRANSPARENT - 1)
#define KNOWN_NODE_FLAGS (2u * ZONE_NODE_NO_DENIAL - 1)
#define SLOT_DELAY 8u /* nodes between the prefetch of a slot and its check */

struct pending_slot {
	uint64_t hash;
	zone_ref node;
};

struct walk {
	const uint8_t *base;
	const struct zone_image *image;
	size_t size, at, area_end; /* nodes and RRsets end at area_end */
	uint64_t *node_starts;	   /* one bit per 8 octets */
	uint64_t rr_count;
	uint32_t rrset_count, longest_probe, pending_count;
	struct pending_slot pending[SLOT_DELAY];
	uint8_t apex_labels_at[NAME_MAX_BYTES + 1]; /* labels of the apex from that octet on; 0: no label begins there */
	const char *why;
};

static bool fault(struct walk *w, const char *why)
{
	w->why = why;
	return false;
}

static bool is_node_start(const struct walk *w, zone_ref ref)
{
	return (size_t)ref * ZONE_REF_UNIT < w->area_end && (w->node_starts[ref / 64] >> (ref % 64) & 1);
}
static const struct zone_node *node_at(const struct walk *w, zone_ref ref) { return zone_ptr(w->image, ref); }

/* --- header --------------------------------------------------------------------------------------------------------------- */

static bool check_counts(struct walk *w)
{
	const struct zone_image *image = w->image;
	uint64_t slots = (uint64_t)image->slot_mask + 1;
	bool is_delta = image->flags & ZONE_DELTA;
	if (image->flags & ~KNOWN_IMAGE_FLAGS)
		return fault(w, "the image has unknown flags");
	if (slots & (slots - 1) || image->node_count == 0 || image->node_count >= slots)
		return fault(w, "the image's slots are no power of two or too few");
	if (image->max_probe == 0 || image->max_probe > slots)
		return fault(w, "the image's probe limit is out of range");
	if (image->max_labels > NAME_MAX_LABELS || image->apex_labels > image->max_labels)
		return fault(w, "the image's label counts are out of range");
	if (image->flags & ZONE_SIGNED_NSEC && image->flags & ZONE_SIGNED_NSEC3)
		return fault(w, "the image claims both kinds of denial");
	if (!is_delta && (!(image->flags & ZONE_SIGNED_NSEC) != !image->order_count ||
			  !(image->flags & ZONE_SIGNED_NSEC3) != !image->nsec3_count))
		return fault(w, "the image's flags and its denial tables differ");
	return true;
}

static bool check_header(struct walk *w)
{
	const struct zone_image *image = w->image;
	if (w->size < offsetof(struct zone_image, nsec3_salt) || (uintptr_t)image % ZONE_REF_UNIT != 0)
		return fault(w, "too short or misaligned for a zone image");
	if (image->magic != ZONE_IMAGE_MAGIC)
		return fault(w, "not a zone image");
	if (image->version != ZONE_IMAGE_VERSION)
		return fault(w, "zone image of another layout version");
	if (image->size_bytes != w->size || w->size % ZONE_REF_UNIT != 0)
		return fault(w, "zone image of another size than its header says");
	if (!check_counts(w))
		return false;
	size_t at = offsetof(struct zone_image, nsec3_salt) + image->nsec3_salt_bytes;
	at = (at + ZONE_REF_UNIT - 1) & ~(size_t)(ZONE_REF_UNIT - 1);
	size_t slot_bytes = ((size_t)image->slot_mask + 1) * sizeof(struct zone_slot);
	if ((size_t)image->slots * ZONE_REF_UNIT != at || at > w->size || slot_bytes > w->size - at)
		return fault(w, "the image's slots are misplaced");
	w->at = at + slot_bytes;
	/* The tables end the image; what is before them are nodes and RRsets. */
	size_t end = w->size, nsec3_bytes = (size_t)image->nsec3_count * sizeof(struct zone_nsec3);
	size_t order_bytes = ((size_t)image->order_count * sizeof(zone_ref) + ZONE_REF_UNIT - 1) & ~(size_t)(ZONE_REF_UNIT - 1);
	if (nsec3_bytes > end - w->at || (size_t)image->nsec3 * ZONE_REF_UNIT != (nsec3_bytes ? end - nsec3_bytes : 0))
		return fault(w, "the image's NSEC3 table is misplaced");
	end -= nsec3_bytes;
	if (order_bytes > end - w->at || (size_t)image->order * ZONE_REF_UNIT != (order_bytes ? end - order_bytes : 0))
		return fault(w, "the image's NSEC order is misplaced");
	w->area_end = end - order_bytes;
	return true;
}

/* --- names and blocks ------------------------------------------------------------------------------------------------------ */

/* An uncompressed name of exactly `bytes` octets and `labels` labels. */
static bool is_name(const uint8_t *name, size_t bytes, unsigned labels)
{
	size_t at = 0;
	while (at < bytes && name[at] != 0) {
		if (name[at] > NAME_MAX_LABEL_BYTES || labels-- == 0)
			return false;
		at += 1u + name[at];
	}
	return at + 1 == bytes && labels == 0;
}

/* The tail that a pointer into the block names: an earlier embedded name from one of its own labels on. */
static bool block_tail(const uint8_t *block, const struct zone_embedded *e, uint32_t index, size_t value, unsigned *bytes,
		       unsigned *labels)
{
	uint32_t low = 0, high = index;
	if (index == 0 || value < e[0].offset)
		return false;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (e[middle].offset <= value)
			low = middle;
		else
			high = middle;
	}
	const struct zone_embedded *earlier = &e[low];
	size_t at = earlier->offset;
	unsigned passed = 0;
	while (at < value && at != earlier->pointer && block[at] != 0) {
		at += 1u + block[at];
		passed++;
	}
	if (at != value || at == earlier->pointer || block[at] == 0)
		return false;
	*bytes = earlier->name_bytes - (unsigned)(at - earlier->offset);
	*labels = earlier->labels - passed;
	return true;
}

/* One embedded name, inside the rdata block[..end). *from: where it may begin; moved behind it. */
static bool check_embedded(struct walk *w, const uint8_t *block, const struct zone_embedded *all, uint32_t index, size_t *from,
			   size_t end)
{
	const struct zone_embedded *e = &all[index];
	unsigned to = e->flags & (ZONE_EMBEDDED_TO_APEX | ZONE_EMBEDDED_TO_BLOCK);
	if (e->offset < *from || e->flags >= 2 * ZONE_EMBEDDED_MAY_COMPRESS || (e->pointer != 0) != (to != 0) ||
	    (e->pointer && !(e->flags & ZONE_EMBEDDED_MAY_COMPRESS)))
		return fault(w, "an embedded name's entry is wrong");
	size_t at = e->offset;
	unsigned labels = 0, tail_bytes = 1, tail_labels = 0;
	while (at < end && at != e->pointer && block[at] != 0) {
		if (block[at] > NAME_MAX_LABEL_BYTES)
			return fault(w, "an embedded name has a bad label");
		at += 1u + block[at];
		labels++;
	}
	size_t bytes = at - e->offset;
	if (e->pointer) {
		if (at != e->pointer || end - at < 2 || at > end)
			return fault(w, "an embedded name's pointer is misplaced");
		size_t value = load_be16(block + at);
		if (to == ZONE_EMBEDDED_TO_APEX && value < w->image->apex_bytes && w->apex_labels_at[value]) {
			tail_bytes = w->image->apex_bytes - (unsigned)value;
			tail_labels = w->apex_labels_at[value];
		} else if (to != ZONE_EMBEDDED_TO_BLOCK || value > POINTER_MAX ||
			   !block_tail(block, all, index, value, &tail_bytes, &tail_labels)) {
			return fault(w, "an embedded name's pointer leads to no label");
		}
		at += 2;
	} else {
		if (at >= end)
			return fault(w, "an embedded name does not end");
		at++;
	}
	if (bytes + tail_bytes != e->name_bytes || e->name_bytes > NAME_MAX_BYTES || labels + tail_labels != e->labels)
		return fault(w, "an embedded name's length is wrong");
	*from = at;
	return true;
}

/* What readers take for granted about single types. Targets are looked at only in the nodes' RRsets, so the RRsets beside them
 * must have none. */
static bool check_type(struct walk *w, const struct zone_rrset *rrset)
{
	const struct zone_embedded *e = zone_rrset_embedded(rrset);
	switch (rrset->type) {
	case RR_SOA:
		return (rrset->rr_count == 1 && rrset->embedded_count == 2 && !e[0].target && !e[1].target &&
			rrset->block_bytes >= ZONE_RR_FIXED_BYTES + SOA_RDATA_MIN_BYTES) ||
		       fault(w, "a SOA is wrong");
	case RR_CNAME:
	case RR_DNAME:
		/* A chain goes on with the name in front; a DNAME's is read in place, so it stands whole there. */
		return (rrset->rr_count == 1 && rrset->embedded_count == 1 && e->offset == ZONE_RR_FIXED_BYTES &&
			(rrset->type == RR_CNAME || e->pointer == 0)) ||
		       fault(w, "a CNAME or DNAME is wrong");
	case RR_RRSIG:
	case RR_NSEC3: return rrset->embedded_count == 0 || fault(w, "an RRset lists names that it may not list");
	default: return true;
	}
}

static bool check_block(struct walk *w, const struct zone_rrset *rrset)
{
	const struct zone_embedded *e = zone_rrset_embedded(rrset);
	const uint8_t *block = zone_rrset_block(rrset);
	uint8_t fixed[ZONE_RR_FIXED_BYTES] = { 0xc0, 12 };
	uint32_t index = 0, rrs = 0;
	size_t end;
	store_be16(fixed + 2, rrset->type);
	store_be16(fixed + 4, w->image->class_);
	store_be32(fixed + 6, rrset->ttl_s);
	for (size_t at = 0; at < rrset->block_bytes; at = end, rrs++) {
		if (rrset->block_bytes - at < ZONE_RR_FIXED_BYTES || memcmp(block + at, fixed, ZONE_RR_FIXED_BYTES - 2) != 0)
			return fault(w, "an RR's fixed fields are wrong");
		size_t from = at + ZONE_RR_FIXED_BYTES;
		end = from + load_be16(block + from - 2);
		if (end > rrset->block_bytes)
			return fault(w, "an RR reaches beyond its block");
		while (index < rrset->embedded_count && e[index].offset < end)
			if (!check_embedded(w, block, e, index++, &from, end))
				return false;
	}
	if (rrs != rrset->rr_count || index != rrset->embedded_count || rrs == 0)
		return fault(w, "an RRset's counts are wrong");
	return check_type(w, rrset);
}

/* The RRset that the walk has reached; type: the expected one. */
static bool check_rrset(struct walk *w, uint16_t type)
{
	const struct zone_rrset *rrset = (const struct zone_rrset *)(w->base + w->at);
	size_t left = w->area_end - w->at;
	if (left < sizeof *rrset || rrset->type != type)
		return fault(w, "an RRset is cut short or of another type");
	size_t bytes = sizeof *rrset + rrset->embedded_count * sizeof(struct zone_embedded) + rrset->block_bytes;
	bytes = (bytes + ZONE_REF_UNIT - 1) & ~(size_t)(ZONE_REF_UNIT - 1);
	if (bytes > left || rrset->block_bytes > BLOCK_MAX_BYTES)
		return fault(w, "an RRset's block is too large");
	if (!check_block(w, rrset))
		return false;
	w->at += bytes;
	w->rr_count += rrset->rr_count;
	return true;
}

/* With the signatures behind it. */
static bool check_signed_rrset(struct walk *w, zone_ref ref, uint16_t type)
{
	const struct zone_rrset *rrset = (const struct zone_rrset *)(w->base + w->at);
	if ((size_t)ref * ZONE_REF_UNIT != w->at)
		return fault(w, "an RRset is misplaced");
	if (!check_rrset(w, type))
		return false;
	if (rrset->signature == 0)
		return true;
	const struct zone_rrset *signature = (const struct zone_rrset *)(w->base + w->at);
	if ((size_t)rrset->signature * ZONE_REF_UNIT != w->at)
		return fault(w, "a signature is misplaced");
	return check_rrset(w, RR_RRSIG) && (signature->signature == 0 || fault(w, "a signature is signed"));
}

/* --- nodes: first walk ------------------------------------------------------------------------------------------------------ */

static bool check_slot(struct walk *w, struct pending_slot pending)
{
	const struct zone_slot *slots = zone_ptr(w->image, w->image->slots);
	uint32_t at = (uint32_t)pending.hash & w->image->slot_mask;
	for (uint32_t probes = 1; probes <= w->image->max_probe && slots[at].node != 0; probes++) {
		if (slots[at].node == pending.node) {
			w->longest_probe = MAX(w->longest_probe, probes);
			return slots[at].tag == (uint32_t)(pending.hash >> 32) || fault(w, "a slot's tag is wrong");
		}
		at = (at + 1) & w->image->slot_mask;
	}
	return fault(w, "a node can't be found by its hash");
}

/* Slots are all over the place: asked for now, looked at some nodes later. */
static bool slot_later(struct walk *w, const struct zone_node *node, zone_ref ref)
{
	const struct zone_slot *slots = zone_ptr(w->image, w->image->slots);
	struct pending_slot *pending = &w->pending[w->pending_count % SLOT_DELAY];
	if (w->pending_count++ >= SLOT_DELAY && !check_slot(w, *pending))
		return false;
	__builtin_prefetch(&slots[(uint32_t)node->hash & w->image->slot_mask]);
	*pending = (struct pending_slot){ .hash = node->hash, .node = ref };
	return true;
}
static bool slots_finish(struct walk *w)
{
	const struct zone_slot *slots = zone_ptr(w->image, w->image->slots);
	uint32_t used = 0;
	for (uint32_t i = 0; i < MIN(w->pending_count, SLOT_DELAY); i++)
		if (!check_slot(w, w->pending[i]))
			return false;
	for (uint64_t i = 0; i <= w->image->slot_mask; i++)
		used += slots[i].node != 0;
	/* Each node is in a slot; with as many used ones as nodes, each used slot holds a node. */
	return (used == w->image->node_count && w->longest_probe == w->image->max_probe) || fault(w, "slots and nodes differ");
}

static bool check_node(struct walk *w)
{
	const struct zone_image *image = w->image;
	const struct zone_node *node = (const struct zone_node *)(w->base + w->at);
	zone_ref ref = (zone_ref)(w->at / ZONE_REF_UNIT);
	size_t left = w->area_end - w->at;
	if (left < sizeof *node)
		return fault(w, "a node is cut short");
	size_t bytes = sizeof *node + node->rrset_count * sizeof(struct zone_rrset_slot) + node->name_bytes;
	bytes = (bytes + ZONE_REF_UNIT - 1) & ~(size_t)(ZONE_REF_UNIT - 1);
	if (bytes > left || !is_name(zone_node_name(node), node->name_bytes, node->labels))
		return fault(w, "a node's name is wrong");
	if (node->labels > image->max_labels || node->labels < image->apex_labels ||
	    (node->labels == image->apex_labels) != (ref == image->apex))
		return fault(w, "a node is not at or below the apex");
	if (node->flags & ~KNOWN_NODE_FLAGS ||
	    (node->flags & ZONE_NODE_DELETED && (node->rrset_count || !(image->flags & ZONE_DELTA))) ||
	    !(node->flags & ZONE_NODE_APEX) != (ref != image->apex))
		return fault(w, "a node's flags are wrong");
	w->node_starts[ref / 64] |= UINT64_C(1) << (ref % 64);
	if (!slot_later(w, node, ref))
		return false;
	w->at += bytes;
	w->rrset_count += node->rrset_count;
	const struct zone_rrset_slot *slot = zone_node_rrset_slots(node);
	for (uint32_t i = 0; i < node->rrset_count; i++) {
		if ((i > 0 && slot[i].type <= slot[i - 1].type) || slot[i].type == RR_RRSIG || slot[i].type == RR_NSEC3)
			return fault(w, "a node's types are out of order");
		if (!check_signed_rrset(w, slot[i].rrset, slot[i].type))
			return false;
	}
	return true;
}

static bool check_apex(struct walk *w)
{
	const struct zone_node *apex = (const struct zone_node *)(w->base + w->at);
	if (w->area_end - w->at < sizeof *apex || (size_t)w->image->apex * ZONE_REF_UNIT != w->at ||
	    apex->name_bytes != w->image->apex_bytes || apex->labels != w->image->apex_labels)
		return fault(w, "the apex is not the first node");
	size_t head = sizeof *apex + apex->rrset_count * sizeof(struct zone_rrset_slot);
	if (w->area_end - w->at < head + apex->name_bytes || !is_name(w->base + w->at + head, apex->name_bytes, apex->labels))
		return fault(w, "the apex's name is wrong");
	const uint8_t *name = zone_node_name(apex);
	unsigned labels = apex->labels;
	for (size_t at = 0; name[at] != 0; at += 1u + name[at])
		w->apex_labels_at[at] = (uint8_t)labels--;
	return true;
}

static bool walk_bytes(struct walk *w)
{
	const struct zone_image *image = w->image;
	if (!check_apex(w))
		return false;
	for (uint32_t i = 0; i < image->node_count; i++)
		if (!check_node(w))
			return false;
	if (w->rrset_count != image->rrset_count)
		return fault(w, "the image's RRset count is wrong");
	uint64_t rr_count = w->rr_count;
	if (!check_signed_rrset(w, image->negative_soa, RR_SOA))
		return false;
	w->rr_count = rr_count;
	const struct zone_nsec3 *nsec3 = zone_ptr(image, image->nsec3);
	for (uint32_t i = 0; i < image->nsec3_count; i++) {
		if (i > 0 && memcmp(nsec3[i - 1].hash, nsec3[i].hash, sizeof nsec3[i].hash) >= 0)
			return fault(w, "the NSEC3 table is out of order");
		if (nsec3[i].rrset == 0 && image->flags & ZONE_DELTA)
			continue;
		if (!check_signed_rrset(w, nsec3[i].rrset, RR_NSEC3))
			return false;
	}
	if (w->at != w->area_end || w->rr_count != image->rr_count)
		return fault(w, "the image's RR count is wrong, or there are gaps");
	return slots_finish(w);
}

/* --- refs: second walk ------------------------------------------------------------------------------------------------------ */

static bool has_nsec(const struct walk *w, zone_ref ref)
{
	return is_node_start(w, ref) && zone_node_rrset((struct zone_at){ w->image, node_at(w, ref) }, RR_NSEC);
}

static bool check_denial_refs(struct walk *w, const struct zone_node *node)
{
	const struct zone_image *image = w->image;
	bool is_delta = image->flags & ZONE_DELTA;
	uint32_t nsec3_limit = image->flags & ZONE_SIGNED_NSEC3 ? image->nsec3_count : 0;
	if (node->nsec3_wildcard > nsec3_limit)
		return fault(w, "a node's wildcard NSEC3 is out of range");
	if (image->flags & ZONE_SIGNED_NSEC)
		return (is_delta && node->nsec == 0) || has_nsec(w, node->nsec) || fault(w, "a node's NSEC is wrong");
	return node->nsec <= nsec3_limit || fault(w, "a node's NSEC3 is out of range");
}

/* Equality of `bytes` octets of two names, case ignored. */
static bool same_octets(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	uint64_t x, y;
	size_t i = 0;
	for (; i + sizeof x <= bytes; i += sizeof x) {
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		if (x != y && zone_fold_word(x) != zone_fold_word(y))
			return false;
	}
	for (; i < bytes; i++)
		if (a[i] != b[i] && (uint8_t)zone_fold_word(a[i]) != (uint8_t)zone_fold_word(b[i]))
			return false;
	return true;
}
/* Whether the node's name without its first labels is the name of the node at `ref`, which has fewer labels. */
static bool is_ancestor(const struct walk *w, const struct zone_node *node, zone_ref ref)
{
	if (!is_node_start(w, ref) || node_at(w, ref)->labels >= node->labels)
		return false;
	const struct zone_node *up = node_at(w, ref);
	const uint8_t *name = zone_node_name(node);
	size_t at = 0;
	for (unsigned drop = node->labels - up->labels; drop > 0; drop--)
		at += 1u + name[at];
	return at + up->name_bytes == node->name_bytes && same_octets(name + at, zone_node_name(up), up->name_bytes);
}

static bool check_node_refs(struct walk *w, zone_ref ref)
{
	const struct zone_node *node = node_at(w, ref);
	bool is_apex = node->flags & ZONE_NODE_APEX, may_lack_parent = w->image->flags & ZONE_DELTA;
	if (node->parent ? !is_ancestor(w, node, node->parent) || node_at(w, node->parent)->labels + 1 != node->labels
			 : !is_apex && !(may_lack_parent && is_ancestor(w, node, w->image->apex)))
		return fault(w, "a node's parent is wrong");
	if (node->wildcard && (!is_node_start(w, node->wildcard) || node_at(w, node->wildcard)->parent != ref ||
			       !(node_at(w, node->wildcard)->flags & ZONE_NODE_WILDCARD)))
		return fault(w, "a node's wildcard is wrong");
	if (node->cut && node->cut != ref && !is_ancestor(w, node, node->cut))
		return fault(w, "a node's cut is wrong");
	if (node->cut && !(node_at(w, node->cut)->flags & (ZONE_NODE_CUT | ZONE_NODE_DNAME)))
		return fault(w, "a node's cut is none");
	if (!check_denial_refs(w, node))
		return false;
	const struct zone_rrset_slot *slot = zone_node_rrset_slots(node);
	for (uint32_t i = 0; i < node->rrset_count; i++) {
		const struct zone_rrset *rrset = zone_ptr(w->image, slot[i].rrset);
		const struct zone_embedded *e = zone_rrset_embedded(rrset);
		for (uint32_t j = 0; j < rrset->embedded_count; j++)
			if (e[j].target && !is_node_start(w, e[j].target))
				return fault(w, "an embedded name's target is wrong");
	}
	return true;
}

static bool walk_refs(struct walk *w)
{
	const struct zone_image *image = w->image;
	struct zone_at apex = { image, node_at(w, image->apex) };
	for (size_t word = 0; word <= w->area_end / ZONE_REF_UNIT / 64; word++)
		for (uint64_t bits = w->node_starts[word]; bits; bits &= bits - 1)
			if (!check_node_refs(w, (zone_ref)(word * 64 + (unsigned)__builtin_ctzll(bits))))
				return false;
	if (!zone_node_rrset(apex, RR_SOA))
		return fault(w, "the apex has no SOA");
	const zone_ref *order = zone_ptr(image, image->order);
	for (uint32_t i = 0; i < image->order_count; i++)
		if (!has_nsec(w, order[i]) ||
		    (i > 0 && name_compare(zone_node_name(node_at(w, order[i - 1])), zone_node_name(node_at(w, order[i]))) >= 0))
			return fault(w, "the NSEC order is wrong");
	return true;
}

enum err zone_image_verify(const void *bytes, size_t size_bytes, const char **why)
{
	struct walk w = { .base = bytes, .image = bytes, .size = size_bytes };
	if (!check_header(&w)) {
		*why = w.why;
		return ERR_CORRUPT;
	}
	w.node_starts = calloc(w.size / ZONE_REF_UNIT / 64 + 1, sizeof *w.node_starts);
	if (!w.node_starts) {
		*why = "out of memory";
		return ERR_NOMEM;
	}
	bool is_good = walk_bytes(&w) && walk_refs(&w);
	free(w.node_starts);
	if (is_good)
		return ERR_OK;
	*why = w.why;
	return ERR_CORRUPT;
}
