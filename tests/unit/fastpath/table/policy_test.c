/* SPDX-License-Identifier: Apache-2.0 */
#include "table/policy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "table/policy_private.h"
#include "table/shm.h"

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static struct policy_group groups[POLICY_MAX_GROUPS];

static void mask(uint8_t address[16], unsigned bits)
{
	for (unsigned i = bits; i < 128; i++)
		address[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

static struct policy *attach(int fd)
{
	struct policy *p = NULL;
	const char *why = NULL;
	enum err err = policy_attach(&p, fd, &why);
	cr_assert_eq(err, ERR_OK, "%s", why);
	return p;
}

static struct policy *make(const struct policy_prefix *prefixes, size_t count)
{
	int fd;
	size_t bad = 0;
	enum err err = policy_create(&fd, groups, POLICY_MAX_GROUPS, prefixes, count, &bad);
	cr_assert_eq(err, ERR_OK, "prefix %zu: %s", bad, err_text(err));
	struct policy *p = attach(fd);
	close(fd);
	return p;
}

/* The longest that matches, the last of equal ones; as naive as can be. */
static uint16_t naive_find(const struct policy_prefix *all, size_t count, uint8_t family, const uint8_t address[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t own[16] = { 0 };
	int best = -1;
	uint16_t group = 0;
	memcpy(own, address, 16);
	if (family == 6 && memcmp(own, mapped, 12) == 0) {
		family = 4;
		memmove(own, own + 12, 4);
		memset(own + 4, 0, 12);
	}
	for (size_t i = 0; i < count; i++) {
		bool is_match = all[i].family == family && all[i].bits >= best;
		for (unsigned k = 0; is_match && k < all[i].bits; k++)
			is_match = !((own[k / 8] ^ all[i].address[k / 8]) >> (7 - k % 8) & 1);
		if (is_match) {
			best = all[i].bits;
			group = all[i].group;
		}
	}
	return group;
}

static void compare(const struct policy *p, const struct policy_prefix *all, size_t count, uint8_t family,
		    const uint8_t address[16])
{
	uint16_t found = policy_find(p, family, address), right = naive_find(all, count, family, address);
	if (found == right)
		return;
	char text[33];
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", address[i]);
	cr_assert_eq(found, right, "family %u, %s, %zu prefixes", family, text, count);
}

/* One less, equal, one more than an address. */
static void step_address(uint8_t a[16], unsigned bytes, int by)
{
	for (unsigned i = bytes; i-- > 0;) {
		a[i] = (uint8_t)(a[i] + by);
		if (a[i] != (by > 0 ? 0 : 0xff))
			return;
	}
}

/* At and around both ends of each prefix, and anywhere. */
static void compare_all(const struct policy *p, const struct policy_prefix *all, size_t count)
{
	uint8_t a[16];
	for (size_t i = 0; i < count; i++) {
		unsigned bytes = all[i].family == 4 ? 4 : 16;
		for (int end = 0; end < 2; end++) {
			memcpy(a, all[i].address, 16);
			for (unsigned k = all[i].bits; end && k < bytes * 8; k++)
				a[k / 8] |= (uint8_t)(0x80 >> k % 8);
			compare(p, all, count, all[i].family, a);
			step_address(a, bytes, -1);
			compare(p, all, count, all[i].family, a);
			step_address(a, bytes, 1);
			step_address(a, bytes, 1);
			compare(p, all, count, all[i].family, a);
		}
	}
	for (unsigned i = 0; i < 200; i++) {
		uint64_t word[2] = { random_next(), random_next() };
		memcpy(a, word, 16);
		if (count && i % 2) { /* near one */
			const struct policy_prefix *q = &all[random_next() % count];
			unsigned same = q->bits ? (unsigned)(random_next() % q->bits) : 0;
			for (unsigned k = 0; k < same; k++)
				a[k / 8] = (uint8_t)((a[k / 8] & ~(0x80 >> k % 8)) | (q->address[k / 8] & (0x80 >> k % 8)));
		}
		compare(p, all, count, 6, a);
		memset(a + 4, 0, 12);
		compare(p, all, count, 4, a);
	}
	static const uint8_t ends[2][16] = { { 0 }, { [0 ... 15] = 0xff } };
	for (unsigned i = 0; i < 2; i++) {
		compare(p, all, count, 6, ends[i]);
		memcpy(a, ends[i], 16);
		memset(a + 4, 0, 12);
		compare(p, all, count, 4, a);
	}
}

/* Prefixes that nest, touch and repeat: the fewer bits of the address are random, the more so. */
static size_t random_prefixes(struct policy_prefix *out, size_t count)
{
	unsigned spread = 1 + (unsigned)(random_next() % 8); /* random octets at most */
	bool is_ipv6_only = random_next() % 3 == 0;
	for (size_t i = 0; i < count; i++) {
		struct policy_prefix *p = &out[i];
		*p = (struct policy_prefix){ .family = is_ipv6_only || random_next() % 2 ? 6 : 4,
					     .group = (uint16_t)(random_next() % (random_next() % 2 ? 3 : POLICY_MAX_GROUPS)) };
		unsigned max = p->family == 4 ? 32 : 128, bytes = max / 8;
		for (unsigned k = 0; k < spread; k++)
			p->address[random_next() % bytes] = (uint8_t)random_next();
		static const uint8_t usual[] = { 0, 8, 16, 24, 31, 32, 33, 48, 56, 63, 64, 65, 96, 127, 128 };
		p->bits = random_next() % 2 ? usual[random_next() % ARRAY_LEN(usual)] : (uint8_t)(random_next() % 129);
		p->bits = (uint8_t)(p->bits % (max + 1));
		if (i && random_next() % 4 == 0) { /* inside or around another one, or the same */
			const struct policy_prefix *q = &out[random_next() % i];
			uint16_t group = p->group;
			uint8_t bits = p->bits;
			*p = *q;
			p->group = group;
			if (random_next() % 4)
				p->bits = (uint8_t)(bits % ((q->family == 4 ? 32 : 128) + 1));
		}
		mask(p->address, p->bits);
	}
	return count;
}

Test(policy, finds_what_a_naive_search_finds, .timeout = 60)
{
	static struct policy_prefix all[700];
	uint64_t until = clock_mono_ns() + 4000000000;
	for (unsigned turn = 0; turn < 3000 && clock_mono_ns() < until; turn++) {
		size_t count = random_prefixes(all, turn % 50 == 49 ? 300 + random_next() % 400 : random_next() % 24);
		struct policy *p = make(all, count);
		compare_all(p, all, count);
		policy_detach(p);
	}
}

/* Every number of places around those at which trees get another level or node. */
Test(policy, trees_of_every_size)
{
	static struct policy_prefix all[2500];
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		all[i] = (struct policy_prefix){ .family = 4, .bits = 32, .group = (uint16_t)(1 + i % 7) };
		uint32_t address = (uint32_t)i * 1717171 + 5;
		for (unsigned k = 0; k < 4; k++)
			all[i].address[k] = (uint8_t)(address >> (24 - 8 * k));
	}
	for (size_t count = 1; count < ARRAY_LEN(all); count += count < 40 || (count > 140 && count < 150) ? 1 : 61) {
		struct policy *p = make(all, count);
		for (size_t i = 0; i < count; i++) {
			uint8_t a[16];
			memcpy(a, all[i].address, 16);
			cr_assert_eq(policy_find(p, 4, a), all[i].group);
			step_address(a, 4, 1);
			cr_assert_eq(policy_find(p, 4, a), 0, "%zu of %zu", i, count);
			step_address(a, 4, -1);
			step_address(a, 4, -1);
			cr_assert_eq(policy_find(p, 4, a), 0);
		}
		policy_detach(p);
	}
}

Test(policy, what_stands_in_the_header_file)
{
	static const struct policy_prefix all[] = {
		{ { 0 }, 4, 0, 1 },
		{ { 127 }, 4, 8, 2 },
		{ { 10, 1, 2, 3 }, 4, 32, 3 },
		{ { 255, 255, 255, 255 }, 4, 32, 4 },
		{ { 0 }, 6, 0, 5 },
		{ { [15] = 1 }, 6, 128, 6 },
		{ { [0 ... 15] = 255 }, 6, 128, 7 },
		{ { 0x20, 1, 0xd, 0xb8 }, 6, 32, 8 },
		{ { 127 }, 4, 8, 9 }, /* the last of equal ones */
	};
	struct policy *p = make(all, ARRAY_LEN(all));
	static const struct {
		uint8_t address[16], family;
		uint16_t group;
	} cases[] = {
		{ { 1, 2, 3, 4 }, 4, 1 },
		{ { 127, 0, 0, 1 }, 4, 9 },
		{ { 126, 255, 255, 255 }, 4, 1 },
		{ { 128 }, 4, 1 },
		{ { 10, 1, 2, 3 }, 4, 3 },
		{ { 10, 1, 2, 4 }, 4, 1 },
		{ { 255, 255, 255, 255 }, 4, 4 },
		{ { 255, 255, 255, 254 }, 4, 1 },
		{ { [15] = 1 }, 6, 6 },
		{ { [15] = 2 }, 6, 5 },
		{ { 0 }, 6, 5 },
		{ { [0 ... 15] = 255 }, 6, 7 },
		{ { [0 ... 14] = 255, 254 }, 6, 5 },
		{ { 0x20, 1, 0xd, 0xb8, 9 }, 6, 8 },
		{ { [10] = 255, 255, 127, 0, 0, 1 }, 6, 9 }, /* mapped */
		{ { [10] = 255, 254, 127, 0, 0, 1 }, 6, 5 },
		{ { [0] = 1, [10] = 255, 255, 127, 0, 0, 1 }, 6, 5 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(policy_find(p, cases[i].family, cases[i].address), cases[i].group, "case %zu", i);
	policy_detach(p);
	policy_detach(NULL);
}

Test(policy, tiny_images_are_tiny)
{
	static const struct policy_prefix all[] = { { { 127 }, 4, 8, 1 }, { { [15] = 1 }, 6, 128, 1 } };
	static const struct policy_group two[] = { { 0, 0, 0 }, { POLICY_F_RECURSION, 5, 0 } };
	int fd;
	size_t bad;
	struct stat st;
	cr_assert_eq(policy_create(&fd, two, 2, all, 2, &bad), ERR_OK);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_leq(st.st_size, 512);
	struct policy *p = attach(fd);
	cr_expect_eq(policy_bytes(p), (size_t)st.st_size);
	cr_expect_eq(policy_group(p, 1)->flags, POLICY_F_RECURSION);
	cr_expect_eq(policy_group(p, 1)->partition, 5);
	cr_expect_eq(policy_group(p, 0)->flags, 0);
	cr_expect_eq(policy_group(p, 2), policy_group(p, 0), "there is none");
	cr_expect_eq(policy_group(p, UINT16_MAX), policy_group(p, 0));
	policy_detach(p);
	close(fd);
	cr_assert_eq(policy_create(&fd, two, 1, NULL, 0, &bad), ERR_OK);
	p = attach(fd);
	cr_expect_eq(policy_find(p, 4, all[0].address), 0);
	cr_expect_eq(policy_find(p, 6, all[1].address), 0);
	policy_detach(p);
	close(fd);
}

Test(policy, wrong_input_is_refused_and_named)
{
	static const struct policy_prefix cases[] = {
		{ { 0 }, 5, 0, 0 },	   { { 0 }, 0, 0, 0 },	  { { 0 }, 4, 33, 0 },	       { { 0 }, 6, 129, 0 },
		{ { 10, 1 }, 4, 8, 0 },	   { { 0 }, 4, 0, 2 },	  { { [15] = 1 }, 6, 127, 0 }, { { 1 }, 6, 7, 0 },
		{ { [4] = 1 }, 4, 32, 0 }, { { 0x80 }, 4, 0, 0 },
	};
	int fd = 77;
	size_t bad = 99;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy_prefix two[] = { { { 127 }, 4, 8, 1 }, cases[i] };
		bad = 99;
		cr_expect_eq(policy_create(&fd, groups, 2, two, 2, &bad), ERR_ARGUMENT, "case %zu", i);
		cr_expect_eq(bad, 1);
	}
	cr_expect_eq(policy_create(&fd, groups, 0, NULL, 0, &bad), ERR_ARGUMENT);
	cr_expect_eq(bad, 0);
	cr_expect_eq(policy_create(&fd, groups, POLICY_MAX_GROUPS + 1, NULL, 0, &bad), ERR_NOSPACE);
	cr_expect_eq(policy_create(&fd, groups, 1, NULL, POLICY_MAX_PREFIXES + 1, &bad), ERR_NOSPACE);
	cr_expect_eq(fd, 77);
}

/* --- damage ---------------------------------------------------------------------------------------------------------- */

/* A sealed copy with another octet. */
static int damaged(const uint8_t *image, size_t bytes, size_t at, uint8_t value)
{
	int fd;
	uint8_t *copy = malloc(bytes);
	memcpy(copy, image, bytes);
	copy[at] = value;
	cr_assert_eq(shm_create_copy(&fd, "t", copy, bytes), ERR_OK);
	cr_assert_eq(shm_seal(fd), ERR_OK);
	free(copy);
	return fd;
}

Test(policy, a_damaged_image_is_refused_or_stays_inside)
{
	static struct policy_prefix all[60];
	size_t count = random_prefixes(all, ARRAY_LEN(all)), bad;
	int fd;
	cr_assert_eq(policy_create(&fd, groups, POLICY_MAX_GROUPS, all, count, &bad), ERR_OK);
	struct policy *p = attach(fd);
	unsigned refused = 0, taken = 0;
	size_t trees = (size_t)(p->trees - (const uint8_t *)p->map);
	for (unsigned turn = 0; turn < 6000; turn++) {
		size_t at = turn < 64 ? turn : trees + random_next() % (p->map_bytes - trees);
		uint8_t old = ((const uint8_t *)p->map)[at],
			fresh = random_next() % 2 ? old ^ (uint8_t)(1u << random_next() % 8) : (uint8_t)random_next();
		if (fresh == old)
			continue;
		int copy = damaged(p->map, p->map_bytes, at, fresh);
		struct policy *q = NULL;
		const char *why = NULL;
		enum err err = policy_attach(&q, copy, &why);
		close(copy);
		refused += err != ERR_OK;
		taken += err == ERR_OK;
		cr_assert(err == ERR_OK || (err == ERR_CORRUPT && why && !q));
		for (unsigned i = 0; q && i < 100; i++) {
			uint64_t word[2] = { random_next() % 2 ? random_next() : 0,
					     random_next() % 2 ? random_next() : UINT64_MAX };
			cr_assert_lt(policy_find(q, i % 2 ? 4 : 6, (const uint8_t *)word), POLICY_MAX_GROUPS);
		}
		policy_detach(q);
	}
	cr_expect_gt(refused, 100);
	cr_expect_gt(taken, 100, "other places and other groups are no damage that can be seen");
	close(fd);
	policy_detach(p);
}

Test(policy, a_header_that_does_not_fit_is_refused)
{
	static const struct policy_prefix all[] = { { { 127 }, 4, 8, 1 } };
	int fd;
	size_t bad;
	struct policy *q = NULL;
	const char *why = NULL;
	cr_assert_eq(policy_create(&fd, groups, 2, all, 1, &bad), ERR_OK);
	struct policy *p = attach(fd);
	for (size_t at = 0; at < offsetof(struct policy_header, reserved); at++) {
		if (at >= offsetof(struct policy_header, prefix_count) && at < offsetof(struct policy_header, root))
			continue; /* for information only */
		int copy = damaged(p->map, p->map_bytes, at, (uint8_t)(((const uint8_t *)p->map)[at] + 0x55));
		cr_expect_eq(policy_attach(&q, copy, &why), ERR_CORRUPT, "octet %zu", at);
		cr_expect_null(q);
		close(copy);
	}
	for (size_t bytes = 1; bytes < p->map_bytes; bytes++) {
		int copy;
		cr_assert_eq(shm_create_copy(&copy, "t", p->map, bytes), ERR_OK);
		cr_assert_eq(shm_seal(copy), ERR_OK);
		cr_expect_eq(policy_attach(&q, copy, &why), ERR_CORRUPT, "cut to %zu", bytes);
		close(copy);
	}
	int open_copy;
	cr_assert_eq(shm_create_copy(&open_copy, "t", p->map, p->map_bytes), ERR_OK);
	cr_expect_eq(policy_attach(&q, open_copy, &why), ERR_DENIED, "not sealed against writing");
	close(open_copy);
	close(fd);
	policy_detach(p);
}

/* Trees that refer to one another in circles, or to one tree often: as long as an image, or refused. */
Test(policy, trees_that_refer_to_themselves_are_refused)
{
	static const struct policy_prefix all[] = { { { 1, [15] = 1 }, 6, 128, 1 }, { { 2, [15] = 1 }, 6, 128, 1 } };
	int fd;
	size_t bad;
	const char *why = NULL;
	struct policy *q = NULL;
	cr_assert_eq(policy_create(&fd, groups, 2, all, 2, &bad), ERR_OK);
	struct policy *p = attach(fd);
	uint8_t *copy = malloc(p->map_bytes);
	size_t trees = (size_t)(p->trees - (const uint8_t *)p->map), leaves = (p->map_bytes - trees) / sizeof(struct policy_leaf);
	cr_assert_eq(leaves, 7);
	for (size_t from = 0; from < leaves; from++)
		for (size_t to = 0; to < leaves; to++)
			for (size_t slot = 0; slot <= POLICY_LEAF_KEYS; slot++) {
				memcpy(copy, p->map, p->map_bytes);
				struct policy_leaf *leaf = (void *)(copy + trees);
				uint32_t value = (uint32_t)POLICY_VALUE_LEAF << POLICY_VALUE_SHIFT | (uint32_t)(to * 3);
				if (leaf[from].value[slot] == value || (slot && leaf[from].value[slot - 1] == value) ||
				    (slot < POLICY_LEAF_KEYS &&
				     leaf[from].value[slot + 1] == value)) /* the same as its neighbour: seen once */
					continue;
				leaf[from].value[slot] = value;
				int made;
				cr_assert_eq(shm_create_copy(&made, "t", copy, p->map_bytes), ERR_OK);
				cr_assert_eq(shm_seal(made), ERR_OK);
				enum err err = policy_attach(&q, made, &why);
				cr_expect_eq(err, ERR_CORRUPT, "leaf %zu, value %zu refers to %zu", from, slot, to);
				close(made);
			}
	free(copy);
	close(fd);
	policy_detach(p);
}

/* --- a million ------------------------------------------------------------------------------------------------------- */

static void million(const char *what, struct policy_prefix *all, size_t count)
{
	int fd;
	size_t bad;
	uint64_t start_ns = clock_mono_ns();
	cr_assert_eq(policy_create(&fd, groups, POLICY_MAX_GROUPS, all, count, &bad), ERR_OK);
	uint64_t built_ns = clock_mono_ns();
	struct policy *p = attach(fd);
	uint64_t checked_ns = clock_mono_ns();
	for (size_t i = 0; i < count; i += 7) {
		uint16_t group = policy_find(p, all[i].family, all[i].address);
		if (group != all[i].group) /* a longer one, or the same again */
			compare(p, all, count, all[i].family, all[i].address);
	}
	printf("%s: %zu prefixes, %zu octets, built in %llu ms, checked in %llu ms\n", what, count, policy_bytes(p),
	       (unsigned long long)(built_ns - start_ns) / 1000000, (unsigned long long)(checked_ns - built_ns) / 1000000);
	policy_detach(p);
	close(fd);
}

Test(policy, a_million_prefixes, .timeout = 120)
{
	const size_t count = POLICY_MAX_PREFIXES;
	struct policy_prefix *all = calloc(count, sizeof *all);
	cr_assert(all);
	for (unsigned kind = 0; kind < 3; kind++) {
		for (size_t i = 0; i < count; i++) {
			static const uint8_t bits[] = { 24, 32, 56 };
			uint32_t number = (uint32_t)i * 2654435761u; /* no number twice, in no order */
			uint8_t *a = all[i].address;
			all[i] = (struct policy_prefix){ .family = kind == 2 ? 6 : 4,
							 .bits = bits[kind],
							 .group = (uint16_t)(1 + i % 1000) };
			if (kind == 2)
				memcpy(a,
				       (uint8_t[]){ 0x2a, 2, 0x12, 0x34, (uint8_t)(number >> 24), (uint8_t)(number >> 16),
						    (uint8_t)(number >> 8) },
				       7);
			else if (kind == 1)
				memcpy(a, &number, 4);
			else
				memcpy(a, (uint8_t[]){ (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i }, 3);
		}
		million(kind == 0 ? "IPv4 /24" : kind == 1 ? "IPv4 /32" : "IPv6 /56", all, count);
	}
	free(all);
}
