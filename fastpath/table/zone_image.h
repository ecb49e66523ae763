/* SPDX-License-Identifier: Apache-2.0 */
/* zone_image.h: a zone compiled into one relocatable block of bytes, made to be answered from.
 *
 * Memory     Read-only after the compiler sealed it; shared by every process. Everything is an offset in units of
 *            8 bytes from the image's start ("ref"; 0 means none), so a zone may have 32 GiB.
 * Trust      The writer is another process: zone_image_verify() walks every structure once when it is mapped and
 *            checks every ref, length, count and embedded-name table. The readers below rely on that and on nothing else.
 * Layout     ABI: bump ZONE_IMAGE_VERSION on any change. Integers are little-endian host integers.
 *
 *   header | slots (hash index) | nodes, each followed by its RRsets | order (NSEC chain) | nsec3 table
 *
 * A node exists for every owner name and every empty non-terminal, glue and occluded names included; NSEC3 owners have
 * none (RFC 5155 section 7.2.8): they live in the nsec3 table. A node and its first RRsets are adjacent: a hit on a small
 * RRset touches one or two cache lines behind the slot.
 *
 * RR block   An RRset is stored ready to be copied into a message: for each RR
 *                C0 0C | type | class | ttl | rdlength | rdata          (all big-endian, as sent)
 *            The owner is a pointer to the question's name, right for the common case, patched otherwise (zone_block_*
 *            in answer/render). Names in rdata that may be compressed are stored as labels and a two-octet pointer that
 *            is *relative* and gets its base added when it is copied; struct zone_embedded lists them.
 *            All other names are stored whole. A relative pointer is at most 0x3fff; base + pointer may not be, in large
 *            messages: zone_embedded_name spells the name then. RRs stand in canonical order (RFC 4034 section 6.3).
 * Order      No gaps. The apex is the first node. Nodes follow as their owners came in, in zones with an NSEC chain in canonical
 *            order. An RRset's signatures stand right behind it, and nowhere in a node's table: there is no RRSIG RRset.
 *            Behind the nodes: the SOA for negative answers, the NSEC3 RRsets by hash.
 */
#pragma once
#include "base/base.h"
#include "dns/name.h"

#define ZONE_IMAGE_MAGIC 0x5a4b5653u /* "SVKZ" */
#define ZONE_IMAGE_VERSION 1u
#define ZONE_REF_UNIT 8u
#define ZONE_MAX_DELTAS 8u
#define ZONE_RR_FIXED_BYTES 12u /* owner pointer, type, class, ttl, rdlength */

typedef uint32_t zone_ref; /* offset from the image's start / 8 */

enum zone_image_flags {
	ZONE_SIGNED_NSEC = 1,  /* the apex has an NSEC and no usable NSEC3 chain: proofs by NSEC */
	ZONE_SIGNED_NSEC3 = 2, /* usable NSEC3PARAM and chain (RFC 5155 section 10.4: it wins over NSEC) */
	ZONE_HAS_WILDCARD = 4,
	ZONE_HAS_DNAME = 8,
	ZONE_HAS_CUT = 16,
	ZONE_DELTA = 32,       /* changed owners only: never a view's base */
	ZONE_TRANSPARENT = 64, /* answers for the names below its apex that have data, and hides no other */
};

struct zone_slot {    /* open addressing, linear probing; node 0 = empty; at most 3/4 full */
	uint32_t tag; /* high half of the owner's name_hash */
	zone_ref node;
};

struct zone_image {
	uint32_t magic, version;
	uint64_t size_bytes;
	uint32_t flags;
	uint32_t serial;		  /* the SOA's */
	uint32_t node_count, rrset_count; /* RRsets in the nodes' tables */
	uint64_t rr_count;		  /* records: signatures and NSEC3 too, the negative SOA's copies not */
	uint32_t slot_mask;		  /* slots - 1, a power of two minus 1 */
	uint32_t max_probe;		  /* longest distance between a name's home slot and its slot, +1: bounds every search */
	zone_ref slots, apex;		  /* struct zone_slot[], struct zone_node */
	zone_ref
		negative_soa; /* struct zone_rrset: the SOA with TTL = min(TTL, MINIMUM) (RFC 2308 section 3), and its RRSIG alike */
	zone_ref order;	      /* zone_ref[order_count]: nodes that own an NSEC, in canonical order; 0 if none */
	zone_ref nsec3;	      /* struct zone_nsec3[nsec3_count], ascending by hash */
	uint32_t order_count, nsec3_count;
	uint16_t nsec3_iterations;
	uint8_t nsec3_salt_bytes;
	uint8_t max_labels; /* most labels of any owner */
	uint16_t class_;
	uint8_t apex_labels, apex_bytes; /* the apex's name is the apex node's */
	uint8_t nsec3_salt[256];	 /* trimmed: the header ends behind nsec3_salt_bytes octets, rounded up to 8 */
};

enum zone_node_flags {
	ZONE_NODE_APEX = 1,
	ZONE_NODE_CUT = 2,	   /* NS here and not the apex: a delegation */
	ZONE_NODE_DNAME = 4,	   /* has a DNAME */
	ZONE_NODE_EMPTY = 8,	   /* empty non-terminal (no RRsets) */
	ZONE_NODE_BELOW = 16,	   /* below a cut or DNAME: glue or occluded; not authoritative */
	ZONE_NODE_WILDCARD = 32,   /* leftmost label is "*" */
	ZONE_NODE_CNAME = 64,	   /* has a CNAME */
	ZONE_NODE_DELETED = 128,   /* in a delta: the owner has gone */
	ZONE_NODE_NO_DENIAL = 256, /* below an opt-out span: no NSEC3 matches this name */
};

struct zone_rrset_slot {
	uint16_t type, reserved;
	zone_ref rrset;
};

struct zone_node {     /* followed by struct zone_rrset_slot[rrset_count] ascending by type, then by the name */
	uint64_t hash; /* name_hash of the lower-cased owner */
	uint16_t flags;
	uint16_t rrset_count;
	uint8_t name_bytes, labels;
	uint16_t reserved;
	zone_ref parent;   /* node one label up; 0 for the apex */
	zone_ref wildcard; /* node "*.<this>"; 0 if none */
	zone_ref cut;	   /* topmost cut or DNAME node strictly above this one, or this one itself if it is a cut
	                                 * (a DNAME's own node is authoritative); 0 if none */
	zone_ref nsec;	   /* NSEC zones: node whose NSEC matches this name or (ENT, below) covers it. NSEC3 zones: 1-based
	                                 * index of the matching struct zone_nsec3 (of the covering one if ZONE_NODE_NO_DENIAL) */
	zone_ref
		nsec3_wildcard; /* NSEC3 zones: 1-based index of the NSEC3 that matches or covers "*.<this>"; only for nodes that can be a closest encloser */
	uint32_t reserved2;
};

struct zone_embedded {	     /* one name inside an RR block; offsets from the block's start, ascending */
	uint16_t offset;     /* first octet of the name */
	uint16_t pointer;    /* offset of its two-octet relative pointer; 0: the name is stored whole */
	uint8_t flags;	     /* ZONE_EMBEDDED_ */
	uint8_t labels;	     /* of the whole name, uncompressed */
	uint16_t name_bytes; /* of the whole name, uncompressed */
	zone_ref target;     /* additional data or chain target: this zone's node of that name (glue included); 0: none */
};
enum {
	ZONE_EMBEDDED_TO_APEX = 1,  /* pointer base: the position of the zone's apex in the message (the question has it) */
	ZONE_EMBEDDED_TO_BLOCK = 2, /* pointer base: the position of this block in the message; refers to an earlier name of it */
	ZONE_EMBEDDED_ADDITIONAL = 4,	/* its addresses belong into the additional section */
	ZONE_EMBEDDED_MAY_COMPRESS = 8, /* RFC 1035 types */
};

struct zone_rrset { /* followed by struct zone_embedded[embedded_count], then by the block, padded to 8 */
	uint16_t type, rr_count;
	uint32_t ttl_s;
	uint16_t block_bytes; /* an RRset whose block exceeds 65535-12-255 is refused by the compiler */
	uint16_t embedded_count;
	zone_ref signature; /* struct zone_rrset of type RRSIG: the signatures that cover this RRset; 0: none */
};

struct zone_nsec3 { /* its owner is base32hex(hash) under the apex */
	uint8_t hash[20];
	zone_ref rrset; /* struct zone_rrset of type NSEC3; the block's owner pointers are patched when sent. 0: in a
	                                 * delta, this hash has gone */
};

static_assert(sizeof(struct zone_slot) == 8 && offsetof(struct zone_slot, node) == 4, "ABI");
static_assert(sizeof(struct zone_node) == 40, "ABI");
static_assert(sizeof(struct zone_embedded) == 12, "ABI");
static_assert(sizeof(struct zone_rrset) == 16, "ABI");
static_assert(sizeof(struct zone_nsec3) == 24, "ABI");

/* Checks that bytes[0..size) is a complete, consistent image. 8-byte aligned. On ERR_CORRUPT *why is a static sentence. */
MUST_USE enum err zone_image_verify(const void *bytes, size_t size_bytes, const char **why);

/* A zone as the reader sees it: the base image and up to ZONE_MAX_DELTAS later images that hold only changed owners
 * (complete nodes, or ZONE_NODE_DELETED; always the apex), newest first. Deltas come with zone changes; every reader below knows them:
 * nodes are given with their image, and refs are only followed inside one image and then checked against the deltas. */
struct zone_view {
	const struct zone_image *base;	       /* NULL: configured, but it could not be loaded (ZONE_VIEW_UNUSABLE): SERVFAIL */
	const struct zone_image *const *delta; /* delta[delta_count], at most ZONE_MAX_DELTAS; NULL if there are none */
	uint32_t delta_count;
	uint32_t flags;	       /* enum zone_view_flags */
	int64_t serve_until_s; /* wall clock; 0: always (RFC 1035 SOA expire of a secondary) */
};
enum zone_view_flags { ZONE_VIEW_UNUSABLE = 1 };
struct zone_at {
	const struct zone_image *image;
	const struct zone_node *node;
}; /* node NULL: no such name */

#include "table/zone_image_inline.h"
/* The inline header defines, all HOT, no allocation, bounded by max_probe, counts of the image, and ZONE_MAX_DELTAS:
 *
 *   const void *zone_ptr(const struct zone_image *, zone_ref);
 *   const uint8_t *zone_node_name(const struct zone_node *);                  case kept
 *   struct zone_at zone_find(const struct zone_view *, const uint8_t *lower, size_t bytes, uint64_t hash);
 *   void zone_prefetch_slot(const struct zone_view *, uint64_t hash);         stage 1 of a batch
 *   const struct zone_node *zone_prefetch_node(const struct zone_view *, uint64_t hash);   stage 2: reads the slot, prefetches the node
 *   struct zone_at zone_closest_encloser(const struct zone_view *, const uint8_t *lower, const uint8_t *label_offset,
 *                                        unsigned labels);                    longest existing ancestor-or-self; never none (the apex)
 *   struct zone_at zone_apex(const struct zone_view *);
 *   struct zone_at zone_node_wildcard / zone_node_cut / zone_node_parent(const struct zone_view *, struct zone_at);
 *   struct zone_at zone_embedded_target(const struct zone_view *, struct zone_at, const struct zone_embedded *, const struct zone_rrset *);
 *   const struct zone_rrset *zone_node_rrset(struct zone_at, uint16_t type);  NULL if none
 *   const struct zone_rrset *zone_rrset_signature(const struct zone_image *, const struct zone_rrset *);
 *   const struct zone_embedded *zone_rrset_embedded(const struct zone_rrset *);
 *   const uint8_t *zone_rrset_block(const struct zone_rrset *);
 *   size_t zone_embedded_name(const struct zone_image *, const struct zone_rrset *, const struct zone_embedded *, uint8_t out[]);
 *   struct zone_at zone_nsec_covering(const struct zone_view *, const uint8_t *lower);   NSEC owner equal to or before the name
 *   struct zone_at zone_nsec_of_node(const struct zone_view *, struct zone_at);
 *   struct zone_nsec3_at zone_nsec3_find(const struct zone_view *, const uint8_t hash[20], bool *matches);
 *   struct zone_nsec3_at zone_nsec3_find_name(const struct zone_view *, const uint8_t *lower, size_t bytes, bool *matches);   hashes
 *   struct zone_nsec3_at zone_nsec3_of_node / zone_nsec3_of_wildcard(const struct zone_view *, struct zone_at, bool *matches);
 */
