/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets as a policy image, and valid images with changes: refused, or every look-up stays inside and finds a group that exists; and
 * images made from any prefixes are right by a naive search.
 *
 * Input      an octet: 0 an image as it is; odd: prefixes, 18 octets each (family, length, address); else changes to an image, 5 octets each */
#include "fastpath/table/policy.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX_BYTES 18u
#define PREFIXES_MAX 200u
#define GROUPS 5u

static const struct policy_group groups[GROUPS];

static struct policy *make(const struct policy_prefix *prefixes, size_t count, int *fd)
{
	struct policy *p = NULL;
	const char *why = NULL;
	size_t bad;

	ASSERT(policy_create(fd, groups, GROUPS, prefixes, count, &bad) == ERR_OK && policy_attach(&p, *fd, &why) == ERR_OK);
	return p;
}

static void look_up(const struct policy *p, const uint8_t *data, size_t size, uint32_t group_count)
{
	uint8_t address[16] = { 0 };

	for (unsigned i = 0; i < 32; i++) {
		if (size >= 16)
			memcpy(address, data + i * 7 % (size - 15), 16);
		address[i % 16] ^= (uint8_t)(i * 37);
		ASSERT(policy_find(p, 4, address) < group_count && policy_find(p, 6, address) < group_count);
	}
	memset(address, 0xff, sizeof address);
	ASSERT(policy_find(p, 4, address) < group_count && policy_find(p, 6, address) < group_count);
}

static void check(const uint8_t *image, size_t bytes, const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that a sanitizer sees what is read behind it; aligned as a mapping is. */
	uint8_t *copy = aligned_alloc(CACHE_LINE, bytes ? (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE : CACHE_LINE);
	struct policy p;

	if (!copy)
		return;
	memcpy(copy, image, bytes);
	if (!check_image(copy, bytes, &p))
		look_up(&p, data, size, p.group_count);
	free(copy);
}

static bool is_match(const struct policy_prefix *p, uint8_t family, const uint8_t *address)
{
	for (unsigned i = 0; i < p->bits; i++)
		if ((p->address[i / 8] ^ address[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return p->family == family;
}

static void compare_with_naive(const uint8_t *data, size_t size)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct policy_prefix all[PREFIXES_MAX];
	size_t count = 0;
	int fd;

	for (; size >= PREFIX_BYTES && count < PREFIXES_MAX; data += PREFIX_BYTES, size -= PREFIX_BYTES, count++) {
		struct policy_prefix *p = &all[count];
		*p = (struct policy_prefix){ .family = data[0] % 2 ? 4 : 6, .group = data[0] / 2 % GROUPS };
		unsigned max = p->family == 4 ? 32 : 128;
		p->bits = data[1] % (max + 1);
		memcpy(p->address, data + 2, max / 8);
		for (unsigned i = p->bits; i < 128; i++)
			p->address[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	}
	struct policy *p = make(all, count, &fd);
	for (size_t i = 0; i < count; i++) {
		uint8_t address[16];
		memcpy(address, all[i].address, 16);
		if (i % 3 && all[i].bits)
			address[(all[i].bits - 1) / 8] ^= (uint8_t)(0x80 >> (all[i].bits - 1) % 8);
		if (all[i].family == 6 && memcmp(address, mapped, 12) == 0)
			continue;
		int best = -1;
		uint16_t group = 0;
		for (size_t k = 0; k < count; k++)
			if (all[k].bits >= best && is_match(&all[k], all[i].family, address)) {
				best = all[k].bits;
				group = all[k].group;
			}
		ASSERT(policy_find(p, all[i].family, address) == group);
	}
	policy_detach(p);
	close(fd);
}

static void change_and_check(const uint8_t *data, size_t size)
{
	static uint8_t image[16384];
	static size_t bytes;

	if (!bytes) { /* some of everything: leaves, trees of two levels, all depths */
		struct policy_prefix all[120];
		int fd;
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			all[i] = (struct policy_prefix){ { (uint8_t)(i * 7), i % 3 ? (uint8_t)(i * 31) : 0, 0, 0,
							   i % 5 == 0 ? (uint8_t)i : 0 },
							 i % 5 ? 4 : 6,
							 i % 5 ? 16 : 128,
							 i % GROUPS };
		struct policy *p = make(all, ARRAY_LEN(all), &fd);
		ASSERT(p->map_bytes <= sizeof image);
		bytes = p->map_bytes;
		memcpy(image, p->map, bytes);
		policy_detach(p);
		close(fd);
	}
	static uint8_t changed[sizeof image];
	memcpy(changed, image, bytes);
	const uint8_t *rest = data;
	for (size_t left = size; left >= 5; rest += 5, left -= 5) {
		size_t at = ((size_t)rest[0] << 8 | rest[1]) % (bytes / 4) * 4;
		uint32_t word, value = (uint32_t)rest[3] << 8 | rest[4];
		memcpy(&word, changed + at, 4);
		word = rest[2] % 4 == 0	  ? value
		       : rest[2] % 4 == 1 ? word + value
		       : rest[2] % 4 == 2 ? word - value
					  : word ^ value << (rest[2] >> 3);
		memcpy(changed + at, &word, 4);
	}
	check(changed, bytes, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] == 0)
		check(data + 1, size - 1, data, size);
	else if (data[0] % 2)
		compare_with_naive(data + 1, size - 1);
	else
		change_and_check(data + 1, size - 1);
	return 0;
}
