/* SPDX-License-Identifier: Apache-2.0 */
/* entry_build.h: from an upstream's reply to a cache entry: a pure function over bytes, the gate that everything from outside passes.
 *
 * Kept       The answer section's chain from the question's name (CNAME; DNAME with its CNAME, which is made if the server left it out,
 *            RFC 6672), then the RRset that was asked for, each with its RRSIGs. Of the authority section the NSEC and NSEC3 records with
 *            their RRSIGs (proofs of negative answers and of wildcards), and for negative answers the SOA. Nothing of the additional
 *            section. Records that do not belong to the chain, of another class, with malformed data, or beyond bounds are left
 *            out and counted in the report. Duplicates go, uncounted. TTLs of an RRset and its RRSIGs are made equal (the least, RFC 2181
 *            section 5.2); values with the top bit set count as 0.
 * Negative   NXDOMAIN and NODATA live as long as RFC 2308 section 5 says: min(SOA TTL, SOA minimum), at most negative_ttl_s; without SOA they
 *            are not stored (lifetime 0). NXDOMAIN at the end of a chain says nothing of the question's own name: rcode only, no CACHE_F_NXDOMAIN.
 * Chain      At most ENTRY_CHAIN_MAX names. It ends where a name is in one of our zones (is_ours): what is behind it is dropped,
 *            CACHE_F_JOIN is set. It is open where the reply says nothing of its last name (an authoritative upstream): CACHE_F_JOIN too.
 * TTL limits min_ttl_s and max_ttl_s change the TTLs of positive records; the entry expires with the first of its records.
 * DNSSEC     What only DO gets (RRSIG, NSEC, NSEC3) lies in the spans, unless its type or ANY was asked for.
 * Bounds     Time is linear in the message times ENTRY_CHAIN_MAX, quadratic only in the records of one owner and type (2,048 at most). */
#pragma once
#include "base/base.h"
#include "table/cache_entry.h"

#define ENTRY_CHAIN_MAX 16u
/* What entry_build may write: an answer too large for the cache still goes to those who wait. */
#define ENTRY_BUILD_MAX_BYTES \
	(sizeof(struct cache_entry) + 2 * (1 + 3) * CACHE_ENTRY_MAX_RRS + NAME_MAX_BYTES + DNS_MESSAGE_MAX_BYTES + 8)

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
	ENTRY_USELESS, /* a referral, an empty NOERROR without SOA from a server without RA, an rcode or a reply that does not answer */
	ENTRY_MALFORMED, /* can't be parsed up to the end of the answer section, or its question differs */
	ENTRY_TOO_LARGE, /* more than CACHE_ENTRY_MAX_RRS records, or longer than a message once written our way */
};
struct entry_report {
	uint32_t lifetime_s; /* 0: for those who wait only: TTL 0, no SOA, TC, larger than CACHE_ENTRY_MAX_BYTES */
	unsigned
		left_out; /* records of the answer and authority sections; of the latter not those that nobody asked for (NS, DS) */
	bool is_truncated; /* TC was set */
	bool is_open;	   /* the chain's last name is answered neither by records nor by an SOA */
	uint8_t rcode;
};
/* out: room for ENTRY_BUILD_MAX_BYTES, 8-byte aligned; unspecified unless ENTRY_OK. *report is always filled. Uses 300 KiB of stack. */
MUST_USE enum entry_result entry_build(struct cache_entry *out, const struct entry_question *question,
				       const struct entry_limits *limits, uint32_t now_s, const uint8_t *message,
				       size_t message_bytes, struct entry_report *report);
/* An entry that says that resolving failed: SERVFAIL with ede; lifetime min(2^(backoff-1), 300) seconds (RFC 9520 section 3.2). */
void entry_failure(struct cache_entry *out, const struct entry_question *question, uint32_t now_s, uint8_t backoff, int16_t ede);
/* Turns a copy of an expired entry (stale or not) into what is served stale for lifetime_s: TTLs ttl_s, CACHE_F_STALE, EDE 3, or 19 for
 * NXDOMAIN. expired_min keeps when its own time ended, for less than 45 days. */
void entry_make_stale(struct cache_entry *e, uint32_t now_s, uint32_t ttl_s, uint32_t lifetime_s, uint32_t epoch);
/* How long ago the entry's own time ended, to the second or, for stale ones, to the minute; 0 if it has not. */
uint32_t entry_expired_s(const struct cache_entry *e, uint32_t now_s);
