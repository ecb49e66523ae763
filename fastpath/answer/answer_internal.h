/* SPDX-License-Identifier: Apache-2.0 */
/* answer_internal.h: what the steps of the answer function share: one struct walk per question, on the stack.
 *
 *   parse_hot    header, question, OPT and TSIG            edns_hot    the OPT of the response
 *   zone_hot     RFC 1034 section 4.3.2 over zone images    denial_hot  NSEC and NSEC3 proofs
 *   render_hot   RRsets into the message                    chaos_hot   class CH
 *   additional_hot  glue and additional data                cookie_hot  RFC 7873, RFC 9018
 *   tsig_hot     queries signed by unknown keys            single_inline  what one RRset answers */
#pragma once
#include "answer/answer.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "table/zone_image.h"

#define ANSWER_MAX_CHAIN 16u	 /* CNAME and DNAME steps followed for one question */
#define ANSWER_MAX_AUTHORITY 24u /* RRsets of one authority section: a proof per chain step, SOA or NS, DS, the last proof */
#define ANSWER_MAX_ADDITIONAL_NAMES 13u
#define ANSWER_MAX_QUERY_RECORDS 16u /* records behind the question that a query may carry */

/* What answer_prepare found, in answer_query.state_. */
enum answer_state {
	STATE_DROP,
	STATE_HEADER,	/* respond with the header alone: the question could not be read or must not be repeated */
	STATE_QUESTION, /* respond with header and question: the rcode says all */
	STATE_TSIG,	/* the same, and a TSIG record that says BADKEY */
	STATE_CHAOS,
	STATE_ZONE,  /* a zone of ours that may be served is in q->zone */
	STATE_CACHE, /* a name that is not ours, of a client that may recurse */
};

enum render_section { SECTION_ANSWER, SECTION_AUTHORITY, SECTION_ADDITIONAL, SECTION_COUNT_ };

/* The message being written. */
struct render {
	uint8_t *msg;
	uint32_t pos;	/* next free octet */
	uint32_t limit; /* records end here at the latest; room for the OPT is taken off */
	uint16_t count[SECTION_COUNT_];
	bool is_full; /* a record that the answer needs did not fit: TC */
};

/* Whose name stands before the records. */
enum owner_kind { OWNER_POINTER, OWNER_NODE, OWNER_NSEC3 };
struct owner {
	uint8_t kind;
	uint16_t pointer;		/* OWNER_POINTER: offset of the name in the message */
	uint32_t apex_pos;		/* the others: offset of their zone's apex in the message */
	const struct zone_image *image; /* the others: theirs */
	const void *object;		/* struct zone_node or struct zone_nsec3 */
};

struct pending {
	const struct zone_image *image;
	const struct zone_rrset *rrset;
	struct owner owner;
};

/* Where a name is in its zone. */
struct place {
	struct zone_at at;	 /* its node; node NULL: there is none */
	struct zone_at encloser; /* then the closest encloser; else node NULL */
};

struct walk {
	const struct snapshot *snapshot;
	struct answer_query
		*q;	    /* q->zone, zone_label, lower, label_offset, label_count, name_bytes, name_hash follow the chain */
	struct place place; /* of the current name */
	struct render r;
	uint32_t name_pos, apex_pos; /* where the current name and its zone's apex stand in the message */
	uint16_t rcode;
	bool is_aa, is_ad;
	bool is_outside; /* the chain left our zones: somebody has to resolve the rest */
	bool may_leave;	 /* it could be resolved: the client may recurse, and the query can be put together again */
	uint8_t pending_count, seen_count, dname_count;
	uint64_t seen[ANSWER_MAX_CHAIN + 1]; /* hashes of the chain's names: a loop ends where it closes */
	struct {
		const struct zone_rrset *rrset;
		uint32_t block_pos;
	} dname[ANSWER_MAX_CHAIN]; /* in the answer already */
	struct pending pending[ANSWER_MAX_AUTHORITY];
	/* the RRset whose names want addresses, if any */
	const struct zone_rrset *additional_of;
	struct zone_at additional_at;
	uint32_t additional_block_pos, additional_apex_pos;
	const struct zone_node *referral_cut; /* glue below it is required (RFC 9471) */
};

/* --- render_hot.c, render_inline.h --------------------------------------------------------------------------------------------------- */
/* Appends an RRset; false, with r unchanged but for is_full where `is_needed`, if it does not fit. *block_pos, where the
 * RR block (table/zone_image.h) begins: names in it are found relative to that. */
HOT bool render_rrset(struct render *r, enum render_section section, const struct zone_image *image,
		      const struct zone_rrset *rrset, const struct owner *owner, uint32_t apex_pos, bool is_needed,
		      uint32_t *block_pos);
/* The same with its signatures, all or nothing. */
HOT bool render_signed(struct walk *w, enum render_section section, const struct zone_image *image,
		       const struct zone_rrset *rrset, const struct owner *owner, uint32_t apex_pos, bool is_needed,
		       uint32_t *block_pos);
/* Offset of the suffix that drops `drop` labels of the name at pos of a message that we wrote; follows pointers. */
HOT uint32_t message_suffix(const uint8_t *msg, uint32_t pos, unsigned drop);
/* The name at pos of a message that we wrote becomes the current name of q: lowered, measured, hashed. */
HOT void message_name(struct answer_query *q, uint32_t pos);

/* --- denial_hot.c --------------------------------------------------------------------------------------------------- */
HOT void denial_nxdomain(struct walk *w, struct zone_at encloser);
HOT void denial_nodata(struct walk *w, struct zone_at node);
HOT void denial_wildcard_nodata(struct walk *w, struct zone_at encloser, struct zone_at wildcard);
HOT void denial_wildcard_answer(struct walk *w, struct zone_at encloser);

/* --- tsig_hot.c ----------------------------------------------------------------------------------------------------- */
#define TSIG_COPY_BYTES 544
struct tsig_query {
	uint16_t key_bytes, algorithm_bytes;
	uint8_t bytes[TSIG_COPY_BYTES];
}; /* key_bytes 0: unusable */
/* Saves the query's TSIG before the response is written over it. */
HOT void tsig_copy(const struct answer_query *q, struct tsig_query *out);
HOT void tsig_render(struct walk *w, const struct tsig_query *tsig);

/* --- zone_hot.c, additional_hot.c, chaos_hot.c, edns_hot.c ------------------------------------------------------------- */
/* For the name in q, in q->zone; w->place is set. */
HOT void zone_answer(struct walk *w);
/* Queues an RRset for the authority section; duplicates are left out. */
HOT void zone_pend(struct walk *w, const struct zone_image *image, const struct zone_rrset *rrset, struct owner owner);
HOT void additional_render(struct walk *w);
HOT void chaos_answer(struct walk *w);

/* Writes the fixed part of the response's OPT, no options yet. */
ALWAYS_INLINE void edns_put_fixed(uint8_t *opt, const struct settings *settings, bool is_do, uint16_t rcode)
{
	/* Root, type, payload size, extended rcode, version, flags; the second store writes the flags again. */
	store_be64(opt, (uint64_t)RR_OPT << 40 | (uint64_t)settings->udp_payload_bytes << 24 | (uint32_t)(rcode >> 4) << 16 |
				EDNS_VERSION << 8);
	store_be32(opt + 7, is_do ? (uint32_t)EDNS_DO << 16 : 0);
}
/* Octets that the response's OPT needs, for a query with EDNS. EDE is not counted: it goes in if there is room. */
HOT uint32_t edns_response_bytes(const struct settings *settings, const struct answer_query *q);
HOT void edns_render(struct walk *w, uint32_t end);
/* Reads an OPT record whose options are at opt[0..opt_bytes): false if they are malformed. */
HOT bool edns_parse_options(struct answer_query *q, const uint8_t *options, uint32_t options_bytes);
