/* SPDX-License-Identifier: Apache-2.0 */
/* RRsets into the message. An RRset's block (table/zone_image.h) is copied whole; then its owners and the pointers of its embedded
 * names get their place. Budget: 40 instructions for an RRset of one address record.
 *
 * Every compression pointer must stay below 0x4000. Owners and apexes do in all but huge responses over TCP; a block that
 * lies too far for its own names to point to each other is written name by name (render_far). */
#include "answer/render_inline.h"
#include "dns/name_inline.h"

#define NSEC3_LABEL_BYTES 32u

/* Labels of an owner that stand before its apex, length octets included, in text (at most NAME_MAX_BYTES). */
static uint32_t owner_labels(const struct owner *owner, uint8_t *text)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

	if (owner->kind == OWNER_NODE) {
		const struct zone_node *node = owner->object;
		uint32_t bytes = (uint32_t)node->name_bytes - owner->image->apex_bytes;

		memcpy(text, zone_node_name(node), bytes);
		return bytes;
	}
	const uint8_t *hash = ((const struct zone_nsec3 *)owner->object)->hash;

	*text++ = NSEC3_LABEL_BYTES;
	for (unsigned i = 0; i < 4; i++, hash += 5, text += 8) {
		uint64_t bits = (uint64_t)hash[0] << 32 | (uint64_t)hash[1] << 24 | (uint64_t)hash[2] << 16 |
				(uint64_t)hash[3] << 8 | hash[4];

		for (unsigned j = 0; j < 8; j++)
			text[j] = (uint8_t)digits[bits >> (35 - 5 * j) & 31];
	}
	return 1 + NSEC3_LABEL_BYTES;
}

static bool put(struct render *r, const void *bytes, uint32_t count)
{
	if (r->pos + count > r->limit)
		return false;
	memcpy(r->msg + r->pos, bytes, count);
	r->pos += count;
	return true;
}

static bool put_pointer(struct render *r, uint32_t target)
{
	be16 pointer = be16_from((uint16_t)(RENDER_POINTER | target));

	return put(r, &pointer, 2);
}

/* One RR of a far block: rdata from..to, with its embedded names [*next..) written out. */
static bool put_far_rdata(struct render *r, const struct zone_image *image, const struct zone_rrset *rrset, uint32_t from,
			  uint32_t to, unsigned *next)
{
	const uint8_t *block = zone_rrset_block(rrset);
	const struct zone_embedded *embedded = zone_rrset_embedded(rrset);

	for (; *next < rrset->embedded_count && embedded[*next].offset < to; ++*next) {
		const struct zone_embedded *e = &embedded[*next];

		uint8_t name[NAME_MAX_BYTES];

		if (e->pointer == 0)
			continue;
		if (!put(r, block + from, e->offset - from) || !put(r, name, (uint32_t)zone_embedded_name(image, rrset, e, name)))
			return false;
		from = e->pointer + 2u;
	}
	return put(r, block + from, to - from);
}

static bool render_far(struct render *r, const struct zone_image *image, const struct zone_rrset *rrset,
		       const struct owner *owner)
{
	const uint8_t *block = zone_rrset_block(rrset);
	uint8_t labels[NAME_MAX_BYTES];
	uint32_t label_bytes = owner->kind == OWNER_POINTER ? 0 : owner_labels(owner, labels), from = 0;
	unsigned next = 0;

	for (unsigned i = 0; i < rrset->rr_count; i++) {
		uint32_t to = from + ZONE_RR_FIXED_BYTES + load_be16(block + from + 10);

		if (!put(r, labels, label_bytes) || !put_pointer(r, label_bytes ? owner->apex_pos : owner->pointer) ||
		    !put(r, block + from + 2, ZONE_RR_FIXED_BYTES - 2))
			return false;
		uint32_t rdata_pos = r->pos;

		if (!put_far_rdata(r, image, rrset, from + ZONE_RR_FIXED_BYTES, to, &next))
			return false;
		store_be16(r->msg + rdata_pos - 2, (uint16_t)(r->pos - rdata_pos));
		from = to;
	}
	return true;
}

bool render_rrset(struct render *r, enum render_section section, const struct zone_image *image, const struct zone_rrset *rrset,
		  const struct owner *owner, uint32_t apex_pos, bool is_needed, uint32_t *block_pos)
{
	uint32_t start = r->pos, first = owner->pointer;

	if (unlikely(!render_is_near(start, rrset))) {
		*block_pos = start;
		if (!render_far(r, image, rrset, owner)) {
			r->pos = start;
			r->is_full |= is_needed;
			return false;
		}
		r->count[section] = (uint16_t)(r->count[section] + rrset->rr_count);
		return true;
	}
	if (owner->kind != OWNER_POINTER) {
		uint8_t labels[NAME_MAX_BYTES];
		uint32_t bytes = owner_labels(owner, labels);

		if (!put(r, labels, bytes)) {
			r->is_full |= is_needed;
			return false;
		}
		first = owner->apex_pos;
	}
	if (unlikely(r->pos + rrset->block_bytes > r->limit)) {
		r->pos = start;
		r->is_full |= is_needed;
		return false;
	}
	*block_pos = r->pos;
	render_block(r, section, rrset, first, owner->kind == OWNER_POINTER ? first : start, apex_pos);
	return true;
}

bool render_signed(struct walk *w, enum render_section section, const struct zone_image *image, const struct zone_rrset *rrset,
		   const struct owner *owner, uint32_t apex_pos, bool is_needed, uint32_t *block_pos)
{
	uint32_t signature_pos, before = w->r.pos;

	if (!render_rrset(&w->r, section, image, rrset, owner, apex_pos, is_needed, block_pos))
		return false;
	if (likely(!w->q->is_do || rrset->signature == 0))
		return true;
	if (render_rrset(&w->r, section, image, zone_rrset_signature(image, rrset), owner, apex_pos, is_needed, &signature_pos))
		return true;
	w->r.pos = before;
	w->r.count[section] = (uint16_t)(w->r.count[section] - rrset->rr_count);
	return false;
}

uint32_t message_suffix(const uint8_t *msg, uint32_t pos, unsigned drop)
{
	for (;;) {
		while (msg[pos] >= 0xc0) /* ours point backwards to labels, so this ends */
			pos = load_be16(msg + pos) & DNS_POINTER_MAX;
		if (drop-- == 0)
			return pos;
		pos += 1u + msg[pos];
	}
}

void message_name(struct answer_query *q, uint32_t pos)
{
	const uint8_t *msg = q->msg;
	uint32_t bytes = 0;
	unsigned labels = 0;

	for (;;) {
		while (msg[pos] >= 0xc0)
			pos = load_be16(msg + pos) & DNS_POINTER_MAX;
		uint8_t length = msg[pos];

		q->label_offset[labels] = (uint8_t)bytes;
		memcpy(q->lower + bytes, msg + pos, 1u + length);
		bytes += 1u + length;
		if (length == 0)
			break;
		labels++;
		pos += 1u + length;
	}
	q->label_count = (uint8_t)labels;
	q->name_bytes = (uint8_t)bytes;
	name_lower_inline(q->lower, q->lower, bytes);
	q->name_hash = name_hash_inline(q->lower, bytes);
}
