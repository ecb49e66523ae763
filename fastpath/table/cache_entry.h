/* SPDX-License-Identifier: Apache-2.0 */
/* cache_entry.h: one cached answer, as it lies in a reader's scratch, in the cache file and in a resolver worker's hands. In shared memory the
 * struct is shorter (cache_layout.h), the rest is the same.
 *
 *     struct cache_entry | uint16_t ttl_at[rr_count] | uint16_t pointer_at[pointer_count] | name | body | padding to 8 octets
 *
 * Name       The question's name, lower-cased wire form.
 * Body       The records of the three sections as they stand behind the question in a message whose question is this name: pointers
 *            are absolute offsets of that message. They aim at the question's name (offset DNS_HEADER_BYTES on) or at the body in
 *            front of the first DNSSEC span, so that leaving spans out moves nothing that a pointer aims at. pointer_at lists them
 *            all, as offsets in the body: an NXDOMAIN also answers names below its own (RFC 8020), where everything stands further
 *            behind by as many octets as the name is longer. Names are written in lower case, but for what lies in record data.
 * Spans      In each section the records that only a query with DO gets (RRSIG, NSEC, NSEC3 that were not asked for) come last,
 *            in one span: octets [span[s].begin, span[s].end) of the body, dnssec_count[s] records. Empty: begin == end,
 *            wherever that is.
 * TTLs       ttl_at: the offset in the body of each record's TTL, in their order; it holds the TTL at stored_s. What a client gets is
 *            that minus the age, never less than 0.
 * Order      Fields are in the machine's byte order, the body in the network's.
 * Trust      Readers copy an entry, then cache_entry_check the copy, then use the copy. */
#pragma once
#include "base/base.h"
#include "dns/message.h"
#include "dns/name.h"

#define CACHE_ENTRY_MAX_BYTES 32768u /* larger answers are not stored */
#define CACHE_ENTRY_MAX_RRS 2048u

enum cache_entry_flags {
	CACHE_F_CD = 1,	      /* key: asked with checking disabled */
	CACHE_F_NXDOMAIN = 2, /* answers every type of the name, and all names below it (key: type 0) */
	CACHE_F_FAILURE = 4,  /* RFC 9520: rcode and ede say what failed; backoff says how often in a row */
	CACHE_F_STALE = 8,    /* served past its time since a refresh failed (RFC 8767): TTLs are stale TTLs, EDE 3 or 19 */
	CACHE_F_JOIN =
		16, /* its CNAME chain goes on in a zone of ours, or where the upstream did not follow it: the slowpath joins the parts */
	CACHE_F_AD = 32, /* secure (RFC 4035); never set before validation exists */
	CACHE_F_KNOWN = 63,
};

struct cache_span {
	uint16_t begin, end;
};

struct cache_entry {
	/* The first 32 octets are an entry's head in the logs; what ends in _ counts there only. */
	uint16_t units_;
	uint16_t type; /* 0 for NXDOMAIN */
	uint32_t hash_low_;
	uint16_t partition; /* below CACHE_PARTITIONS */
	uint8_t name_bytes;
	uint8_t flags; /* enum cache_entry_flags */
	uint8_t rcode;
	int8_t ede;	 /* enum ede_code that goes with the answer; EDE_NONE. Not checked: it is only sent */
	uint8_t backoff; /* failures: how many in a row, at most 255 */
	uint8_t shape_;
	uint32_t stored_s, expire_s; /* clock_mono_s(); expire_s: the first second in which it is no longer fresh */
	uint32_t epoch;		     /* of its partition when the question began: older than the current one is a miss */
	uint8_t count_[3], pointer_count_;

	uint64_t hash;	/* cache_hash of the name: where it belongs */
	uint32_t bytes; /* of everything, a multiple of 8 */
	uint16_t rr_count, pointer_count, body_bytes;
	uint16_t expired_min; /* stale: the minute (clock_mono_s() / 60, low bits) in which its own time ended */
	uint32_t reserved;
	uint16_t count[3];	  /* records: answer, authority, additional; with DNSSEC ones */
	uint16_t dnssec_count[3]; /* of these in the spans */
	struct cache_span span[3];
};
static_assert(sizeof(struct cache_entry) == 80, "ABI changed");

ALWAYS_INLINE const uint16_t *cache_entry_ttl_at(const struct cache_entry *e) { return (const uint16_t *)(e + 1); }
ALWAYS_INLINE const uint16_t *cache_entry_pointer_at(const struct cache_entry *e) { return cache_entry_ttl_at(e) + e->rr_count; }
ALWAYS_INLINE const uint8_t *cache_entry_name(const struct cache_entry *e)
{
	return (const uint8_t *)(cache_entry_pointer_at(e) + e->pointer_count);
}
ALWAYS_INLINE const uint8_t *cache_entry_body(const struct cache_entry *e) { return cache_entry_name(e) + e->name_bytes; }
/* Octets of an entry with these parts, rounded up. */
ALWAYS_INLINE uint32_t cache_entry_size(uint32_t rr_count, uint32_t pointer_count, uint32_t name_bytes, uint32_t body_bytes)
{
	uint32_t bytes = (uint32_t)sizeof(struct cache_entry) + 2 * (rr_count + pointer_count) + name_bytes + body_bytes;
	return (bytes + 7) & ~7u;
}

/* Whether a private copy of `bytes` octets is whole: sizes add up; TTLs, pointers and spans lie within the body, spans in the order of their
 * sections; no TTL and no pointer lies across a span's border; counts agree; known flags only. After it no use of the entry can read
 * or write outside of it or of a message with room for its body, with spans or without. */
MUST_USE HOT bool cache_entry_check(const struct cache_entry *e, uint32_t bytes);
