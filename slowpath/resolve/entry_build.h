/* SPDX-License-Identifier: Apache-2.0 */
/* entry_build.h: from an upstream's reply to a cache entry: a pure function over bytes, the gate that everything from outside passes.
 *
 * Kept       The answer section's chain from the question's name (CNAME, DNAME with its CNAME, RFC 6672), each RRset of it with its
 *            RRSIGs; for negative answers the authority section's SOA, NSEC, NSEC3 and their RRSIGs; nothing else of the authority or
 *            additional section. Records that do not belong to the chain, of another class, with malformed data, or beyond bounds are left
 *            out and counted in the result. Duplicates go. TTLs of an RRset are made equal (the least, RFC 2181 section 5.2); values with the top
 *            bit set count as 0.
 * Negative   NXDOMAIN and NODATA live as long as RFC 2308 section 5 says: min(SOA TTL, SOA minimum), at most negative_ttl_s; without SOA they
 *            are not stored (lifetime 0).
 * Chain      ends where a name is in one of our zones (is_ours): what is behind it is dropped, CACHE_F_JOIN is set.
 * TTL limits min_ttl_s and max_ttl_s change the TTLs of positive records; the entry expires with the first of its records. */
#pragma once
#include "base/base.h"
#include "table/cache_entry.h"

struct entry_limits {
	uint32_t min_ttl_s, max_ttl_s, negative_ttl_s;
};
struct entry_question {
	const uint8_t *name; /* lower-cased wire form */
	uint64_t hash;	     /* cache_hash */
	uint8_t name_bytes;
	uint16_t type, partition;
	bool is_cd;
	uint32_t epoch;
	bool (*is_ours)(void *user, const uint8_t *lower, size_t name_bytes); /* NULL: nothing is */
	void *user;
};
enum entry_result {
	ENTRY_OK, /* store it, unless its lifetime is 0 */
	ENTRY_USELESS, /* a referral, an empty NOERROR without SOA from a server without RA, a reply that does not answer: try another server */
	ENTRY_MALFORMED, /* can't be parsed up to the end of the answer section, or its question differs */
	ENTRY_TOO_LARGE,
};
struct entry_report {
	uint32_t lifetime_s; /* 0: for those who wait only */
	unsigned left_out;   /* records */
	bool is_truncated;   /* TC was set */
	uint8_t rcode;
};
/* out: room for CACHE_ENTRY_MAX_BYTES, 8-byte aligned. */
MUST_USE enum entry_result entry_build(struct cache_entry *out, const struct entry_question *question,
				       const struct entry_limits *limits, uint32_t now_s, const uint8_t *message,
				       size_t message_bytes, struct entry_report *report);
/* An entry that says that resolving failed: SERVFAIL with ede; lifetime min(2^(backoff-1), 300) seconds (RFC 9520 section 3.2). */
void entry_failure(struct cache_entry *out, const struct entry_question *question, uint32_t now_s, uint8_t backoff, int16_t ede);
/* Turns a copy of an expired entry into what is served stale for lifetime_s: TTLs ttl_s, CACHE_F_STALE, EDE 3, or 19 for NXDOMAIN. */
void entry_make_stale(struct cache_entry *e, uint32_t now_s, uint32_t ttl_s, uint32_t lifetime_s, uint32_t epoch);
