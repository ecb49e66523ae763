/* SPDX-License-Identifier: Apache-2.0 */
/* policy_private.h: the policy image's layout, for the files policy*.c only.
 *
 *     header | groups | trees, each before the one that refers to it
 *
 * Value   What holds for a range of addresses: a group, or a tree that decides by the next 32 bits.
 * Tree    The sorted places at which the value changes, for 32 bits of the address: value[i] holds from the i-th place to the next one,
 *         value[0] below the first. Up to 4 places stand in a leaf. More of them stand in a static B+ tree with nodes of one cache line:
 *         16 keys, 17 children; child c of node k of one level is node 17 k + c of the next; the last level holds the places in order.
 *         A node that is not full has keys of all ones.
 * Keys    Biased (the highest bit inverted), so that signed comparisons order them: SSE2 has no others. */
#pragma once
#include "base/base.h"
#include "table/policy.h"

#define POLICY_NODE_KEYS 16u
#define POLICY_LEAF_KEYS 4u
#define POLICY_MAX_LEVELS 6u /* 16 * 17^5 places are more than there can be */
#define POLICY_UNIT_BYTES 16u

enum policy_value_kind { POLICY_VALUE_GROUP, POLICY_VALUE_LEAF = 2, POLICY_VALUE_TREE }; /* the highest two bits of a value */
#define POLICY_VALUE_SHIFT 30
#define POLICY_VALUE_MASK ((1u << POLICY_VALUE_SHIFT) - 1) /* the group; or place in the trees / POLICY_UNIT_BYTES */

typedef int32_t policy_lane __attribute__((vector_size(16)));

struct policy_leaf {
	policy_lane key;
	uint32_t value[POLICY_LEAF_KEYS + 1];
	uint32_t reserved[3];
};
static_assert(sizeof(struct policy_leaf) == 48, "ABI changed");

struct policy_node {
	policy_lane key[POLICY_NODE_KEYS / 4];
};
static_assert(sizeof(struct policy_node) == CACHE_LINE, "one line a level");

struct policy_tree {
	uint32_t level_count; /* at least 1 */
	uint32_t values;      /* octets from here to the values, of which there are 16 for each node of the last level, and one */
	struct {
		uint32_t first, last; /* nodes, counted from the end of this header */
	} level[POLICY_MAX_LEVELS];
	uint32_t place_count, reserved;
};
static_assert(sizeof(struct policy_tree) == CACHE_LINE, "ABI changed");

struct policy_header {
	uint32_t magic, version;
	uint64_t total_bytes;
	uint32_t group_count, prefix_count;
	uint32_t root[2]; /* values: IPv4, IPv6 */
	uint64_t trees_offset;
	uint64_t reserved[3];
};
static_assert(sizeof(struct policy_header) == CACHE_LINE, "ABI changed");

struct policy {
	const uint8_t *trees;
	const struct policy_group *group;
	uint32_t root[2];
	uint32_t group_count;
	const void *map;
	size_t map_bytes;
};
