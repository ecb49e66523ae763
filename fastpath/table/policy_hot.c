/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: 40 instructions with a handful of prefixes, 60 ns with a million (bench/micro/policy_micro). Bounded: policy_attach has seen that
 * trees refer to other trees at most four deep, and that each node that the clamp below allows exists. */
#include "base/bytes.h"
#include "table/policy_private.h"

/* Lanes greater than the key, as -1 each, added up. */
static int sum(policy_lane v)
{
	v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
	v += __builtin_shufflevector(v, v, 1, 0, 3, 2);
	return v[0];
}

/* The value that a tree has for 32 bits of an address. */
static uint32_t step(const struct policy *p, uint32_t value, uint32_t bits)
{
	const uint8_t *at = p->trees + (size_t)(value & POLICY_VALUE_MASK) * POLICY_UNIT_BYTES;
	int32_t biased = (int32_t)(bits ^ 0x80000000u);
	policy_lane key = { biased, biased, biased, biased };

	if (value >> POLICY_VALUE_SHIFT == POLICY_VALUE_LEAF) {
		const struct policy_leaf *leaf = (const void *)at;
		return leaf->value[(int)POLICY_LEAF_KEYS + sum(leaf->key > key)];
	}
	const struct policy_tree *t = (const void *)at;
	const struct policy_node *node = (const void *)(t + 1);
	uint32_t k = 0, places;
	for (uint32_t l = 0;; l++) { /* to level_count */
		const policy_lane *keys = node[t->level[l].first + k].key;
		places = (uint32_t)((int)POLICY_NODE_KEYS +
				    sum((keys[0] > key) + (keys[1] > key) + (keys[2] > key) + (keys[3] > key)));
		if (l + 1 >= t->level_count)
			break;
		/* The clamp is for the address that equals the filling of a node. */
		k = MIN(k * (POLICY_NODE_KEYS + 1) + places, t->level[l + 1].last - t->level[l + 1].first);
	}
	return ((const uint32_t *)(const void *)(at + t->values))[k * POLICY_NODE_KEYS + places];
}

uint16_t policy_find(const struct policy *p, uint8_t family, const uint8_t address[16])
{
	uint32_t value = p->root[0];

	if (family != 4) {
		bool is_mapped = load_be64(address) == 0 && load_be32(address + 8) == 0xffff; /* RFC 4291 section 2.5.5.2 */
		if (!is_mapped)
			value = p->root[1];
		else
			address += 12;
	}
	for (; value >> POLICY_VALUE_SHIFT; address += 4) /* at most four times */
		value = step(p, value, load_be32(address));
	return (uint16_t)value;
}

const struct policy_group *policy_group(const struct policy *p, uint16_t group)
{
	return &p->group[group < p->group_count ? group : 0];
}
