/* SPDX-License-Identifier: Apache-2.0 */
#include "table/miss_quota.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct miss_quota q;
static struct miss_quota_ticket tickets[70000];

static void address4(uint8_t out[16], uint32_t host_order)
{
	memset(out, 0, 16);
	for (unsigned i = 0; i < 4; i++)
		out[i] = (uint8_t)(host_order >> (24 - 8 * i));
}
static enum miss_quota_result take4(uint32_t address, struct miss_quota_ticket *t)
{
	uint8_t octets[16];
	address4(octets, address);
	return miss_quota_take(&q, 4, octets, t);
}

Test(miss_quota, one_prefix_has_its_limit_and_gets_back_what_it_gave)
{
	miss_quota_init(&q, 10, 1000, 0x1234567890abcdef);
	for (unsigned i = 0; i < 10; i++)
		cr_expect_eq(take4(0xc0000200 + i * 25, &tickets[i]), MISS_QUOTA_OK);
	struct miss_quota_ticket untouched = { { 7, 8 } };
	cr_expect_eq(take4(0xc00002ff, &untouched), MISS_QUOTA_CLIENT, "the same /24");
	cr_expect(untouched.place[0] == 7 && untouched.place[1] == 8);
	cr_expect_eq(take4(0xc0000300, &tickets[10]), MISS_QUOTA_OK, "the next /24");
	miss_quota_give_back(&q, &tickets[3]);
	cr_expect_eq(take4(0xc0000201, &tickets[3]), MISS_QUOTA_OK);
	cr_expect_eq(take4(0xc0000201, &untouched), MISS_QUOTA_CLIENT);
	for (unsigned i = 0; i <= 10; i++)
		miss_quota_give_back(&q, &tickets[i]);
	cr_expect_eq(q.total, 0);
	for (unsigned i = 0; i < MISS_QUOTA_PLACES; i++)
		cr_assert(q.count_[0][i] == 0 && q.count_[1][i] == 0);
}

Test(miss_quota, ipv6_counts_by_56_bits)
{
	uint8_t a[16] = { 0x20, 1, 0xd, 0xb8, 1, 2, 3, 0 }, b[16] = { 0x20, 1, 0xd, 0xb8, 1, 2, 3, 0xff, 9 },
		c[16] = { 0x20, 1, 0xd, 0xb8, 1, 2, 4, 0 }, d[16] = { 0x21, 1, 0xd, 0xb8, 1, 2, 3, 0 };
	struct miss_quota_ticket t;
	miss_quota_init(&q, 1, 1000, 99);
	cr_expect_eq(miss_quota_take(&q, 6, a, &t), MISS_QUOTA_OK);
	cr_expect_eq(miss_quota_take(&q, 6, b, &t), MISS_QUOTA_CLIENT);
	cr_expect_eq(miss_quota_take(&q, 6, c, &t), MISS_QUOTA_OK);
	cr_expect_eq(miss_quota_take(&q, 6, d, &t), MISS_QUOTA_OK);
	uint8_t zero[16] = { 0 };
	cr_expect_eq(miss_quota_take(&q, 6, zero, &t), MISS_QUOTA_OK);
	cr_expect_eq(miss_quota_take(&q, 4, zero, &t), MISS_QUOTA_OK, "families are apart");
}

Test(miss_quota, the_total_has_a_limit)
{
	miss_quota_init(&q, 100, 50, 5);
	for (unsigned i = 0; i < 50; i++)
		cr_expect_eq(take4(i << 8, &tickets[i]), MISS_QUOTA_OK);
	cr_expect_eq(take4(99 << 8, &tickets[50]), MISS_QUOTA_TOTAL);
	miss_quota_give_back(&q, &tickets[0]);
	cr_expect_eq(take4(99 << 8, &tickets[0]), MISS_QUOTA_OK);
}

Test(miss_quota, limits_of_any_size)
{
	miss_quota_init(&q, 0, 10, 5);
	cr_expect_eq(take4(1, &tickets[0]), MISS_QUOTA_CLIENT);
	miss_quota_init(&q, 10, 0, 5);
	cr_expect_eq(take4(1, &tickets[0]), MISS_QUOTA_TOTAL);
	miss_quota_init(&q, UINT32_MAX, UINT32_MAX, 5);
	unsigned taken = 0;
	while (taken < ARRAY_LEN(tickets) && take4(1, &tickets[taken]) == MISS_QUOTA_OK)
		taken++;
	cr_expect_eq(taken, MISS_QUOTA_MAX, "no place overflows");
	while (taken)
		miss_quota_give_back(&q, &tickets[--taken]);
	cr_expect_eq(q.total, 0);
}

/* A flood from one prefix: of 10,000 others, none is refused, whatever the key. */
Test(miss_quota, strangers_are_not_punished_for_a_flood)
{
	for (uint64_t key = 1; key <= 20; key++) {
		unsigned refused = 0;
		struct miss_quota_ticket t;
		miss_quota_init(&q, 1000, 20000, key * 0x9e3779b97f4a7c15);
		for (unsigned i = 0; i < 5000; i++)
			(void)!take4(0x0a000000 + i % 256, &t);
		cr_assert_eq(q.total, 1000);
		for (uint32_t i = 1; i <= 10000; i++) {
			enum miss_quota_result r = take4(0x0b000000 + (i << 8), &t);
			refused += r == MISS_QUOTA_CLIENT;
			if (r == MISS_QUOTA_OK)
				miss_quota_give_back(&q, &t);
		}
		cr_expect_leq(refused, 1, "key %u: both places shared by chance: once in 16 million", (unsigned)key);
	}
}

/* Neighbouring prefixes spread: the fullest place holds what chance says (Poisson with mean 4: above 30 once in 10^14). */
Test(miss_quota, prefixes_spread_over_the_places)
{
	struct miss_quota_ticket t;
	miss_quota_init(&q, 1000, 65535, 0);
	for (uint32_t i = 0; i < 4 * MISS_QUOTA_PLACES; i++)
		cr_assert_eq(take4(0x0a000000 + (i << 8), &t), MISS_QUOTA_OK);
	unsigned most = 0, empty = 0;
	for (unsigned row = 0; row < 2; row++)
		for (unsigned i = 0; i < MISS_QUOTA_PLACES; i++) {
			most = MAX(most, q.count_[row][i]);
			empty += q.count_[row][i] == 0;
		}
	cr_expect_leq(most, 30);
	cr_expect_leq(empty, 300, "e^-4 of 8192 is 150");
}
