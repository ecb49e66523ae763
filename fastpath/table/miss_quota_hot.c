/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: 30 instructions a take. */
#include "table/miss_quota.h"

#include "base/bytes.h"

static_assert((MISS_QUOTA_PLACES & (MISS_QUOTA_PLACES - 1)) == 0 && MISS_QUOTA_PLACES <= 65536, "a place is 16 bits of the hash");

void miss_quota_init(struct miss_quota *q, uint32_t limit, uint32_t total_limit, uint64_t key)
{
	memset(q, 0, sizeof *q);
	q->key_ = key;
	q->limit = MIN(limit, MISS_QUOTA_MAX);
	q->total_limit = MIN(total_limit, MISS_QUOTA_MAX); /* so no place overflows */
}

/* Both halves of two products with the key in between: whoever does not know the key can't choose who shares a place with whom. */
static uint64_t mix(uint64_t value, uint64_t key)
{
	unsigned __int128 product = (unsigned __int128)(value ^ key) * 0x9fb21c651e98df25u;
	uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
	product = (unsigned __int128)(folded ^ (key >> 32 | key << 32)) * 0xa0761d6478bd642fu;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

enum miss_quota_result miss_quota_take(struct miss_quota *q, uint8_t family, const uint8_t address[16],
				       struct miss_quota_ticket *ticket)
{
	uint64_t prefix = family == 4 ? (uint64_t)(load_be32(address) >> 8) : load_be64(address) >> 8;
	uint64_t hash = mix(prefix | (uint64_t)family << 56, q->key_); /* a /56 leaves the highest octet free */
	uint16_t a = hash & (MISS_QUOTA_PLACES - 1), b = hash >> 32 & (MISS_QUOTA_PLACES - 1);

	if (MIN(q->count_[0][a], q->count_[1][b]) >= q->limit)
		return MISS_QUOTA_CLIENT;
	if (q->total >= q->total_limit)
		return MISS_QUOTA_TOTAL;
	q->total++;
	q->count_[0][a]++;
	q->count_[1][b]++;
	*ticket = (struct miss_quota_ticket){ { a, b } };
	return MISS_QUOTA_OK;
}

void miss_quota_give_back(struct miss_quota *q, const struct miss_quota_ticket *ticket)
{
	uint16_t a = ticket->place[0] & (MISS_QUOTA_PLACES - 1), b = ticket->place[1] & (MISS_QUOTA_PLACES - 1);
	bool is_taken = q->total && q->count_[0][a] && q->count_[1][b];
	DEBUG_ASSERT(is_taken); /* given back twice */
	if (!is_taken)
		return;
	q->total--;
	q->count_[0][a]--;
	q->count_[1][b]--;
}
