/* SPDX-License-Identifier: Apache-2.0 */
/* miss_quota.h: how many questions of one client prefix may be under way at once, so that one source that floods misses starves nobody.
 *
 * Prefixes   IPv4 /24, IPv6 /56; the limit counts per prefix. Counts lie in a table of fixed size, found by a keyed hash in two places:
 *            the smaller one decides (a count-min sketch), so that strangers who share a place with a flood are not punished for it.
 * Threads    One table per thread; no locks. */
#pragma once
#include "base/base.h"

#define MISS_QUOTA_PLACES 4096u
#define MISS_QUOTA_MAX 65535u /* both limits are cut to it */

struct miss_quota {
	uint64_t key_;
	uint32_t limit, total, total_limit;
	uint16_t count_[2][MISS_QUOTA_PLACES];
};
/* What miss_quota_give_back needs to know. */
struct miss_quota_ticket {
	uint16_t place[2];
};

/* limit: of one prefix; total_limit: of all. key: random. */
void miss_quota_init(struct miss_quota *q, uint32_t limit, uint32_t total_limit, uint64_t key);
enum miss_quota_result { MISS_QUOTA_OK, MISS_QUOTA_CLIENT, MISS_QUOTA_TOTAL };
/* Takes one, or says which limit is reached. */
MUST_USE HOT enum miss_quota_result miss_quota_take(struct miss_quota *q, uint8_t family, const uint8_t address[16],
						    struct miss_quota_ticket *ticket);
HOT void miss_quota_give_back(struct miss_quota *q, const struct miss_quota_ticket *ticket);
