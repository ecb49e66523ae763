/* SPDX-License-Identifier: Apache-2.0 */
/* zone_build_internal.h: the zone under construction, for zone_build.c, zone_check.c and zone_compile*.c only.
 *
 * Memory     One arena of chunks; objects are named by 32-bit refs in units of 4 bytes (0: none) and never move, so a pointer
 *            from an accessor stays good until zone_build_destroy. About 110 bytes a record where each name has one.
 * Structure  nodes (one a name, hashed by the lower-cased name, ancestors up to the apex included) → RRsets ascending by type
 *            → RRs. While records come in, a node is made whenever the owner changes, and nothing is looked up: such nodes are
 *            loose. zone_build_settle puts them into the hash table all at once, which then has its final size and whose lines
 *            can be fetched ahead, gives them their ancestors, and merges those of one name. It also sorts RRs canonically and
 *            moves exact duplicates away. Call it before looking at nodes or RRs.
 *            RRSIGs are one RRset of type 46 here, NSEC3 owners are nodes: the compiler takes them apart. */
#pragma once
#include "dns/name.h"
#include "dns/rr_type.h"
#include "table/zone_build.h"

typedef uint32_t zone_build_ref;

#define ZONE_BUILD_UNIT 4u
#define ZONE_BUILD_CHUNK_BITS 19u /* units: chunks of 2 MiB, a huge page each */
#define ZONE_BUILD_CHUNK_BYTES ((size_t)ZONE_BUILD_UNIT << ZONE_BUILD_CHUNK_BITS)
#define ZONE_BUILD_FIRST_CHUNK_BYTES 8192u /* as most zones are small; then 8 times as large each */
#define ZONE_BUILD_MAX_CHUNKS (1u << (32 - ZONE_BUILD_CHUNK_BITS))

enum {
	ZONE_BUILD_OUT_OF_ZONE = 1, /* not at or below the apex; has no parent, no place in the image */
	ZONE_BUILD_WANTED = 2,	    /* compiler: gets a node in the image */
	ZONE_BUILD_CUT = 4,	    /* compiler: NS, not the apex */
	ZONE_BUILD_DNAME = 8,	    /* compiler: has a DNAME */
	ZONE_BUILD_DELETED = 16,    /* delta under construction: the owner has gone (see zone_compile_internal.h) */
	ZONE_BUILD_CHANGED = 32,    /* delta under construction: the owner belongs into it */
	ZONE_BUILD_NS_TARGET = 64,  /* zone_check: some NS record names it */
};

struct zone_build_node {
	uint32_t hash_low, hash_high; /* name_hash of the lower-cased name */
	zone_build_ref parent;	      /* one label up; 0 for the apex and out-of-zone names */
	zone_build_ref rrsets;	      /* ascending by type; 0 for an empty non-terminal */
	zone_build_ref next;	      /* all nodes, in order of creation */
	zone_ref image;		      /* compiler: its node in the image */
	uint16_t flags;		      /* ZONE_BUILD_ */
	uint8_t name_bytes, labels;
	uint8_t name[]; /* wire, case of its first use */
};
struct zone_build_rrset {
	zone_build_ref next;	    /* of this node, next higher type */
	zone_build_ref first, last; /* its RRs; canonical order once settled */
	zone_build_ref duplicates;  /* RRs that occur again, once settled */
	uint32_t rr_count;	    /* without duplicates, once settled */
	uint16_t type;
	uint16_t is_unsettled;
};
struct zone_build_rr {
	zone_build_ref next;
	uint32_t ttl_s, line;
	uint16_t column, file; /* file: index into zone_build.files */
	uint16_t rdata_bytes, reserved;
	uint8_t rdata[];
};
struct zone_build_slot {
	uint32_t hash_low;
	zone_build_ref node;
};

/* What zone_compile_bytes found out and zone_compile uses. Refs and counts are of the image. */
struct zone_build_plan {
	size_t size_bytes; /* 0: no plan */
	uint32_t flags, node_count, rrset_count, slot_count, order_count, nsec3_count;
	uint64_t rr_count;
	zone_ref slots, nodes, negative_soa, order, nsec3;
	uint8_t max_labels, nsec3_salt_bytes;
	uint16_t nsec3_iterations;
	const uint8_t *nsec3_salt;	       /* in the NSEC3PARAM's rdata */
	struct zone_build_nsec3 *nsec3_owners; /* [nsec3_count] ascending; owned */
};
struct zone_build_nsec3 {
	uint8_t hash[20];
	zone_build_ref node; /* 0: in a delta, gone */
};

struct zone_build {
	uint8_t **chunks;
	uint32_t chunk_count, chunk_capacity;
	uint32_t room_begin, room_end; /* free bytes of the last chunk */
	size_t used_bytes, max_bytes;  /* everything allocated for this builder */
	struct zone_build_slot *slots;
	uint32_t slot_mask, node_count;
	uint64_t rr_count; /* without duplicates, once settled */
	uint64_t duplicate_count;
	zone_build_ref first_node, last_node, apex, recent;
	zone_build_ref first_loose, before_loose; /* from first_loose on, nodes of the list are loose */
	uint32_t loose_count;
	enum err failure;   /* of a settling: the zone is not whole */
	const char **files; /* [0] is NULL; borrowed names */
	uint32_t file_count, file_capacity;
	uint32_t out_of_zone_count; /* nodes */
	uint16_t class_;
	bool is_unsettled;	 /* some RRset is, of a node that is not loose */
	bool is_delta;		 /* see zone_compile_internal.h */
	bool has_cut, has_dname; /* there may be NS records beside the apex's, or DNAMEs; never unset */
	bool has_glue_marks, has_compiler_marks;
	zone_build_ref *sorted; /* all nodes in canonical order, [node_count]; NULL until needed; owned */
	struct zone_build_plan plan;
};

static inline void *zone_build_at(const struct zone_build *b, zone_build_ref ref)
{
	return b->chunks[ref >> ZONE_BUILD_CHUNK_BITS] + (size_t)(ref & ((1u << ZONE_BUILD_CHUNK_BITS) - 1)) * ZONE_BUILD_UNIT;
}
/* Each gives NULL for ref 0. */
static inline struct zone_build_node *zone_build_node(const struct zone_build *b, zone_build_ref ref)
{
	return ref ? zone_build_at(b, ref) : NULL;
}
static inline struct zone_build_rrset *zone_build_rrset(const struct zone_build *b, zone_build_ref ref)
{
	return ref ? zone_build_at(b, ref) : NULL;
}
static inline struct zone_build_rr *zone_build_rr(const struct zone_build *b, zone_build_ref ref)
{
	return ref ? zone_build_at(b, ref) : NULL;
}
static inline struct zone_build_node *zone_build_apex(const struct zone_build *b) { return zone_build_node(b, b->apex); }

/* The node's RRset of that type, NULL if none. */
static inline struct zone_build_rrset *zone_build_rrset_of(const struct zone_build *b, const struct zone_build_node *node,
							   uint16_t type)
{
	struct zone_build_rrset *s = zone_build_rrset(b, node->rrsets);
	while (s && s->type < type)
		s = zone_build_rrset(b, s->next);
	return s && s->type == type ? s : NULL;
}
static inline struct master_place zone_build_place(const struct zone_build *b, const struct zone_build_rr *rr)
{
	return (struct master_place){ .file = b->files[rr->file], .line = rr->line, .column = rr->column };
}
/* Loops: for all nodes in order of creation; all RRsets of a node; all RRs of an RRset. */
#define ZONE_BUILD_EACH_NODE(b, node) \
	for (struct zone_build_node *node = zone_build_node(b, (b)->first_node); node; node = zone_build_node(b, node->next))
#define ZONE_BUILD_EACH_RRSET(b, node, rrset) \
	for (struct zone_build_rrset *rrset = zone_build_rrset(b, (node)->rrsets); rrset; \
	     rrset = zone_build_rrset(b, rrset->next))
#define ZONE_BUILD_EACH_RR(b, rrset, rr) \
	for (struct zone_build_rr *rr = zone_build_rr(b, (rrset)->first); rr; rr = zone_build_rr(b, rr->next))

/* The node of a wire name (any case); NULL if the zone has none. After zone_build_settle, as all that follow. */
struct zone_build_node *zone_build_find(const struct zone_build *b, const uint8_t *name);
/* Same for a lower-cased name whose hash is known. */
struct zone_build_node *zone_build_find_lower(const struct zone_build *b, const uint8_t *lower, size_t bytes, uint64_t hash);
/* The node of a name, made (with its ancestors) if there is none; settles. ERR_NOMEM, ERR_NOSPACE. */
MUST_USE enum err zone_build_make(struct zone_build *b, const uint8_t *name, size_t bytes, struct zone_build_node **out);
/* Brings the structure up to date: no node is loose any more, RRs stand canonically within each RRset, and exact duplicates (RFC
 * 4034 section 6.3: names compared case-insensitively) in rrset->duplicates. Cheap when nothing was added since. ERR_NOMEM,
 * ERR_NOSPACE: parts of the zone are out of reach; every later call says the same. */
MUST_USE enum err zone_build_settle(struct zone_build *b);
/* Canonical order of two rdata of a type, names folded where RFC 4034 section 6.2 says so. */
int zone_build_rdata_compare(uint16_t type, const struct zone_build_rr *a, const struct zone_build_rr *b);
/* Fills b->sorted. ERR_NOMEM. */
MUST_USE enum err zone_build_sort(struct zone_build *b);
/* Forgets the plan (zone_compile.c). */
void zone_build_drop_plan(struct zone_build *b);
