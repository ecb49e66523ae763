/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_compile_internal.h"

#include "base/bytes.h"
#include "dns/rdata.h"

/* Which of a type's names the image lists: those that may be compressed, whose addresses are additional data, or that are
 * followed. Types without any are copied as they are. */
static bool is_listed(uint16_t type, uint8_t flags)
{
	return flags & (RDF_F_COMPRESS | RDF_F_ADDITIONAL) || type == RR_CNAME || type == RR_DNAME;
}
static bool type_lists_names(uint16_t type)
{
	if (type == RR_A || type == RR_AAAA || type == RR_RRSIG)
		return false;
	const struct rr_type_info *info = rr_type_info(type);
	for (unsigned i = 0; i < RR_TYPE_MAX_FIELDS && info->field[i].kind != RDF_END; i++)
		if (info->field[i].kind == RDF_NAME && is_listed(type, info->field[i].flags))
			return true;
	return false;
}

/* This zone's node of a name, as a ref into the image. The root as a target means "none" (MX, SRV) or "the owner" (SVCB). */
static zone_ref target_of(const struct zone_build *b, const uint8_t *name, unsigned labels)
{
	const struct zone_build_node *apex = zone_build_apex(b);
	if (labels == 0 || labels < apex->labels || !name_is_at_or_below(name, apex->name))
		return 0;
	const struct zone_build_node *node = zone_build_find(b, name);
	return node && node->flags & ZONE_BUILD_WANTED ? node->image : 0;
}

/* Where a name's tail can be found: how many octets are saved, and what the pointer says. */
struct tail {
	unsigned kept_bytes; /* of the name, in front of the pointer */
	uint16_t value;
	uint8_t flag; /* ZONE_EMBEDDED_TO_; 0: stored whole */
};

static struct tail find_tail(const struct zone_block *block, const uint8_t *name, unsigned bytes, unsigned labels)
{
	const struct zone_build_node *apex = zone_build_apex(block->b);
	struct tail best = { .kept_bytes = bytes };
	unsigned shared = name_common_labels(name, apex->name);
	if (shared > 0) {
		best = (struct tail){ .kept_bytes = (unsigned)name_suffix_offset(name, labels - shared),
				      .value = (uint16_t)name_suffix_offset(apex->name, apex->labels - shared),
				      .flag = ZONE_EMBEDDED_TO_APEX };
	}
	uint32_t first = block->embedded_count > ZONE_COMPRESS_SEARCH ? block->embedded_count - ZONE_COMPRESS_SEARCH : 0;
	for (uint32_t i = block->embedded_count; i-- > first;) {
		const struct zone_embedded *e = &block->embedded[i];
		shared = name_common_labels(name, block->name[i]);
		if (shared == 0)
			continue;
		size_t kept = name_suffix_offset(name, labels - shared);
		size_t inside = name_suffix_offset(block->name[i], e->labels - shared);
		/* Only labels that stand in the block can be pointed to. */
		if (kept >= best.kept_bytes || e->offset + inside > ZONE_POINTER_MAX ||
		    (e->pointer && e->offset + inside >= e->pointer))
			continue;
		best = (struct tail){ .kept_bytes = (unsigned)kept,
				      .value = (uint16_t)(e->offset + inside),
				      .flag = ZONE_EMBEDDED_TO_BLOCK };
	}
	return best;
}

static void put_name(struct zone_block *block, uint16_t type, const uint8_t *name, const struct rdata_name *at)
{
	unsigned labels = name_labels(name);
	struct tail tail = { .kept_bytes = at->bytes };
	struct zone_embedded e = { .offset = (uint16_t)block->bytes, .labels = (uint8_t)labels, .name_bytes = at->bytes };
	if (at->flags & RDF_F_COMPRESS) {
		tail = find_tail(block, name, at->bytes, labels);
		e.flags = (uint8_t)(ZONE_EMBEDDED_MAY_COMPRESS | tail.flag);
	}
	if (at->flags & RDF_F_ADDITIONAL)
		e.flags |= ZONE_EMBEDDED_ADDITIONAL;
	if (at->flags & RDF_F_ADDITIONAL || type == RR_CNAME || type == RR_DNAME)
		e.target = target_of(block->b, name, labels);
	memcpy(block->octets + block->bytes, name, tail.kept_bytes);
	block->bytes += tail.kept_bytes;
	if (tail.flag) {
		e.pointer = (uint16_t)block->bytes;
		store_be16(block->octets + block->bytes, tail.value);
		block->bytes += 2;
	}
	block->name[block->embedded_count] = name;
	block->embedded[block->embedded_count++] = e;
}

static void put_octets(struct zone_block *block, const uint8_t *from, size_t bytes)
{
	memcpy(block->octets + block->bytes, from, bytes);
	block->bytes += (uint32_t)bytes;
}

/* All but TTL and length. */
static void put_fixed(uint8_t *fixed, uint16_t type, uint16_t class_)
{
	store_be16(fixed, 0xc000 + 12); /* the question's name */
	store_be16(fixed + 2, type);
	store_be16(fixed + 4, class_);
}

static void put_rr(struct zone_block *block, uint16_t type, const struct zone_build_rr *rr, bool has_names)
{
	uint8_t *fixed = block->octets + block->bytes;
	put_fixed(fixed, type, block->b->class_);
	block->bytes += ZONE_RR_FIXED_BYTES;
	uint32_t begin = block->bytes, copied = 0;
	struct rdata_walk walk = { 0 };
	struct rdata_name at;
	while (has_names && rdata_next_name(type, rr->rdata, rr->rdata_bytes, &walk, &at)) {
		if (!is_listed(type, at.flags))
			continue;
		put_octets(block, rr->rdata + copied, at.offset - copied);
		put_name(block, type, rr->rdata + at.offset, &at);
		copied = (uint32_t)at.offset + at.bytes;
	}
	put_octets(block, rr->rdata + copied, rr->rdata_bytes - copied);
	store_be16(fixed + 10, (uint16_t)(block->bytes - begin));
}

bool zone_block_make(struct zone_block *block, const struct zone_build_rrset *rrset, uint16_t covered, uint32_t ttl_cap_s)
{
	bool has_names = type_lists_names(rrset->type);
	block->bytes = block->embedded_count = block->rr_count = 0;
	block->ttl_s = ttl_cap_s;
	ZONE_BUILD_EACH_RR(block->b, rrset, rr) {
		if (rrset->type == RR_RRSIG && (rr->rdata_bytes < 2 || load_be16(rr->rdata) != covered))
			continue;
		put_rr(block, rrset->type, rr, has_names);
		if (block->bytes > ZONE_BLOCK_MAX_BYTES)
			return false;
		block->rr_count++;
		block->ttl_s = MIN(block->ttl_s, rr->ttl_s);
	}
	/* The TTL is known at the end only (RFC 2181 section 5.2: the smallest of the set). */
	for (uint32_t at = 0; at < block->bytes; at += ZONE_RR_FIXED_BYTES + load_be16(block->octets + at + 10))
		store_be32(block->octets + at + 6, block->ttl_s);
	return true;
}

size_t zone_block_write(const struct zone_block *block, uint16_t type, struct zone_rrset *out)
{
	*out = (struct zone_rrset){ .type = type,
				    .rr_count = (uint16_t)block->rr_count,
				    .ttl_s = block->ttl_s,
				    .block_bytes = (uint16_t)block->bytes,
				    .embedded_count = (uint16_t)block->embedded_count };
	struct zone_embedded *embedded = (struct zone_embedded *)(out + 1);
	memcpy(embedded, block->embedded, block->embedded_count * sizeof *embedded);
	memcpy(embedded + block->embedded_count, block->octets, block->bytes);
	return zone_block_image_bytes(block);
}

bool zone_plain_measure(const struct zone_build *b, const struct zone_build_rrset *rrset, struct zone_plain *plain)
{
	uint32_t bytes = 0, ttl_s = UINT32_MAX;
	if (rrset->type == RR_RRSIG || type_lists_names(rrset->type))
		return false;
	ZONE_BUILD_EACH_RR(b, rrset, rr) {
		bytes += ZONE_RR_FIXED_BYTES + rr->rdata_bytes;
		if (bytes > ZONE_BLOCK_MAX_BYTES)
			return false;
		ttl_s = MIN(ttl_s, rr->ttl_s);
	}
	*plain = (struct zone_plain){ .bytes = bytes, .rr_count = rrset->rr_count, .ttl_s = ttl_s };
	return true;
}

void zone_plain_write(const struct zone_build *b, const struct zone_build_rrset *rrset, const struct zone_plain *plain,
		      struct zone_rrset *out)
{
	*out = (struct zone_rrset){ .type = rrset->type,
				    .rr_count = (uint16_t)plain->rr_count,
				    .ttl_s = plain->ttl_s,
				    .block_bytes = (uint16_t)plain->bytes };
	uint8_t *at = (uint8_t *)(out + 1);
	ZONE_BUILD_EACH_RR(b, rrset, rr) {
		put_fixed(at, rrset->type, b->class_);
		store_be32(at + 6, plain->ttl_s);
		store_be16(at + 10, rr->rdata_bytes);
		memcpy(at + ZONE_RR_FIXED_BYTES, rr->rdata, rr->rdata_bytes);
		at += ZONE_RR_FIXED_BYTES + rr->rdata_bytes;
	}
}
