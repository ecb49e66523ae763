/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h: the policy image: which group a client belongs to, and what its group may do. Sealed shared memory, replaced whole.
 *
 * Lookup     Longest prefix match. The prefixes are made into ranges that do not overlap; a search tree finds the range: one comparison of
 *            vectors for a handful of prefixes, a static B+ tree with nodes of one cache line for more. A tree decides by 32 bits of the
 *            address; where longer IPv6 prefixes differ, another one goes on. A million prefixes are allowed.
 * Size       One page for a handful of prefixes; 8 to 17 octets for a prefix of a million.
 * Groups     Group 0 is everybody whom no prefix names.
 * Trust      policy_attach checks every index once; the memory is sealed against writing, so lookups check nothing. */
#pragma once
#include "base/base.h"

#define POLICY_MAGIC 0x504b5653u
#define POLICY_VERSION 1u
#define POLICY_MAX_PREFIXES 1048576u
#define POLICY_MAX_GROUPS 4096u

enum { POLICY_F_RECURSION = 1 }; /* may ask for names that are not ours */
struct policy_group {
	uint32_t flags;
	uint16_t partition; /* of the cache */
	uint16_t reserved;
};
struct policy_prefix {
	uint8_t address[16]; /* IPv4: the first four octets; bits beyond the length must be zero */
	uint8_t family;	     /* 4 or 6 */
	uint8_t bits;
	uint16_t group;
};

/* --- making -------------------------------------------------------------------------------------------------------- */
/* Makes a sealed memfd. Of equal prefixes the last one counts. ERR_ARGUMENT (a group or length out of range, set bits beyond the length,
 * with *bad the index of the prefix; no group at all: *bad is prefix_count), ERR_NOSPACE (too many), ERR_NOMEM. */
MUST_USE enum err policy_create(int *fd, const struct policy_group *groups, size_t group_count,
				const struct policy_prefix *prefixes, size_t prefix_count, size_t *bad);

/* --- reading ------------------------------------------------------------------------------------------------------- */
struct policy; /* immutable */
/* Maps and checks a sealed image. Takes no descriptor. ERR_DENIED: not sealed; ERR_CORRUPT with *why. */
MUST_USE enum err policy_attach(struct policy **out, int fd, const char **why);
void policy_detach(struct policy *p);
size_t policy_bytes(const struct policy *p);
/* Group of a client; address as in struct answer_client. IPv4-mapped IPv6 addresses (::ffff:0:0/96) count as IPv4. */
HOT uint16_t policy_find(const struct policy *p, uint8_t family, const uint8_t address[16]);
/* Never NULL: a group that does not exist is group 0. */
HOT const struct policy_group *policy_group(const struct policy *p, uint16_t group);
