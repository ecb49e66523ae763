/* SPDX-License-Identifier: Apache-2.0 */
/* zone_compile_internal.h: the parts of the compiler: zone_compile.c (plan, nodes), zone_compile_block.c (RRsets),
 * zone_compile_nsec3.c (the NSEC3 chain). For them and their tests only.
 *
 * Two passes: the plan gives each node its place, so that the second pass can write refs to nodes behind it. RRset sizes
 * depend on how well embedded names compress, which is why both passes make the same blocks.
 *
 * Deltas     With zone_build.is_delta set, only the apex and the nodes flagged ZONE_BUILD_CHANGED or ZONE_BUILD_DELETED (made
 *            by zone_build_make) go into the image; NSEC3 owners likewise. Refs that readers only follow without deltas
 *            stay 0 where their node is not in the image. */
#pragma once
#include "table/zone_build_internal.h"

#define ZONE_BLOCK_MAX_BYTES (65535u - 12u - 255u) /* beyond it no message holds question and RRset */
#define ZONE_POINTER_MAX 0x3fffu		   /* of a relative pointer, and of a pointer in a message */
#define ZONE_COMPRESS_SEARCH 16u		   /* earlier names of a block that are tried as a pointer's target */
#define ZONE_BLOCK_MAX_NAMES (ZONE_BLOCK_MAX_BYTES / (ZONE_RR_FIXED_BYTES + 1) * 2 + RR_TYPE_MAX_FIELDS) /* MINFO has two */
#define ZONE_ANY_COVERED 0u										 /* see zone_block_make */

static inline size_t zone_pad(size_t bytes) { return (bytes + ZONE_REF_UNIT - 1) & ~(size_t)(ZONE_REF_UNIT - 1); }

/* One RRset made ready. The compiler keeps one of these and uses it again and again. */
struct zone_block {
	const struct zone_build *b;
	uint32_t bytes, embedded_count, rr_count, ttl_s;
	struct zone_embedded embedded[ZONE_BLOCK_MAX_NAMES];
	const uint8_t *name[ZONE_BLOCK_MAX_NAMES]; /* the embedded names whole; in the builder */
	uint8_t octets[2 * 65536];
};

/* Makes the block of an RRset; of RRSIGs only those that cover `covered`, of other types give ZONE_ANY_COVERED. rr_count 0 if
 * there are none. ttl_cap_s limits the TTL (UINT32_MAX: no limit). False if it would be larger than a message allows.
 * Targets are the nodes' image refs as far as the plan has set them. */
MUST_USE bool zone_block_make(struct zone_block *block, const struct zone_build_rrset *rrset, uint16_t covered,
			      uint32_t ttl_cap_s);
/* An RRset whose block is its RRs one behind the other: no names to list or compress, nothing to leave out. Most are, and they need no
 * struct zone_block. */
struct zone_plain {
	uint32_t bytes, rr_count, ttl_s;
};
/* False: it is none, or is too large; zone_block_make tells. */
MUST_USE bool zone_plain_measure(const struct zone_build *b, const struct zone_build_rrset *rrset, struct zone_plain *plain);
static inline size_t zone_plain_image_bytes(const struct zone_plain *plain)
{
	return zone_pad(sizeof(struct zone_rrset) + plain->bytes);
}
/* Writes that; signature is left 0. */
void zone_plain_write(const struct zone_build *b, const struct zone_build_rrset *rrset, const struct zone_plain *plain,
		      struct zone_rrset *out);

/* Bytes of struct zone_rrset, embedded table and block, padded. */
static inline size_t zone_block_image_bytes(const struct zone_block *block)
{
	return zone_pad(sizeof(struct zone_rrset) + block->embedded_count * sizeof(struct zone_embedded) + block->bytes);
}
/* Writes that; signature is left 0. Returns zone_block_image_bytes. */
size_t zone_block_write(const struct zone_block *block, uint16_t type, struct zone_rrset *out);

/* Chooses the NSEC3 chain to be used, fills plan.nsec3_*; nsec3_count stays 0 if there is none. ERR_NOMEM. */
MUST_USE enum err zone_compile_nsec3_plan(struct zone_build *b);
/* 1-based index of the NSEC3 that matches or covers a lower-cased name. */
uint32_t zone_compile_nsec3_find(const struct zone_build *b, const uint8_t *lower, size_t bytes, bool *matches);
