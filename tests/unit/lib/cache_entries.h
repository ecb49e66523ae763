/* SPDX-License-Identifier: Apache-2.0 */
/* cache_entries.h: for tests and benchmarks: cache entries that can be told from torn, crossed and foreign ones, since everything in them follows
 * from the question and a seed that stands in the first record's data. Aborts when a test's own input is wrong. */
#pragma once
#include "table/cache.h"

struct cache_entries_want {
	const char *name; /* presentation form */
	uint16_t type;	  /* 0: NXDOMAIN */
	uint16_t partition;
	bool is_cd;
	uint16_t flags; /* more of enum cache_entry_flags */
	uint32_t stored_s, ttl_s, epoch;
	uint32_t seed;	     /* a version of the answer */
	unsigned records;    /* in the answer section (NXDOMAIN: authority); 0: 1 */
	unsigned data_bytes; /* of each record, at least 4; 0: 4 */
	unsigned signatures; /* records in the DNSSEC span of that section */
};
/* Room for the largest entry. */
struct cache_entries_room {
	alignas(8) uint64_t words[CACHE_SCRATCH_WORDS];
};
/* The entry, in room. */
struct cache_entry *cache_entries_make(struct cache_entries_room *room, const struct cache_reader *r,
				       const struct cache_entries_want *want);
/* Its question; *wire holds the name while the key is used. */
struct cache_key cache_entries_key(uint8_t wire[static NAME_MAX_BYTES], const struct cache_reader *r,
				   const struct cache_entries_want *want);
/* The seed of an entry's first record. */
uint32_t cache_entries_seed(const struct cache_entry *e);
/* Whether all that counts of two entries is the same. */
bool cache_entries_are_equal(const struct cache_entry *a, const struct cache_entry *b);
/* Whether every octet is what cache_entries_make would make of the entry's question and seed. */
bool cache_entries_is_true(const struct cache_entry *e);
/* Uses all that cache_entry_check promises, within a message of the right size: a sanitizer tells. Returns something of it. */
uint32_t cache_entries_use(const struct cache_entry *e);
