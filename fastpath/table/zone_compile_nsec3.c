/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_compile_internal.h"

#include "base/bytes.h"
#include "table/nsec3_hash.h"

#include <stdlib.h>

#define NSEC3_ALGORITHM_SHA1 1
#define NSEC3_FIXED_BYTES 5 /* algorithm, flags, iterations, salt length (RFC 5155 section 3.2) */
#define BASE32_BITS 5

/* The hash that a label spells in base32hex (RFC 4648 section 7); false if it does not. */
static bool hash_from_label(uint8_t hash[NSEC3_HASH_BYTES], const uint8_t *label)
{
	uint32_t bits = 0, have = 0, used = 0;
	if (label[0] != NSEC3_HASH_TEXT_BYTES)
		return false;
	for (unsigned i = 1; i <= NSEC3_HASH_TEXT_BYTES; i++) {
		uint8_t c = label[i], value;
		if (c >= '0' && c <= '9')
			value = (uint8_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'v')
			value = (uint8_t)((c | 0x20) - 'a' + 10);
		else
			return false;
		bits = bits << BASE32_BITS | value;
		have += BASE32_BITS;
		if (have >= 8) {
			have -= 8;
			hash[used++] = (uint8_t)(bits >> have);
		}
	}
	return true;
}

/* Whether an NSEC3 RR belongs to the chain of an NSEC3PARAM: algorithm, iterations and salt agree. */
static bool is_of_chain(const struct zone_build_rr *nsec3, const struct zone_build_rr *param)
{
	size_t bytes = NSEC3_FIXED_BYTES + (size_t)param->rdata[4];
	return nsec3->rdata_bytes > bytes && nsec3->rdata[0] == param->rdata[0] &&
	       memcmp(nsec3->rdata + 2, param->rdata + 2, bytes - 2) == 0;
}

static bool has_chain_rr(const struct zone_build *b, const struct zone_build_node *node, const struct zone_build_rr *param)
{
	const struct zone_build_rrset *rrset = zone_build_rrset_of(b, node, RR_NSEC3);
	if (!rrset)
		return false;
	ZONE_BUILD_EACH_RR(b, rrset, rr)
		if (is_of_chain(rr, param))
			return true;
	return false;
}

/* Whether the apex has an NSEC3 with the parameters. */
static bool chain_exists(const struct zone_build *b, const struct zone_build_rr *param)
{
	static const char digit[] = "0123456789abcdefghijklmnopqrstuv";
	const struct zone_build_node *apex = zone_build_apex(b);
	uint8_t lower[NAME_MAX_BYTES], owner[NAME_MAX_BYTES], apex_hash[NSEC3_HASH_BYTES];
	uint8_t label[NSEC3_HASH_TEXT_BYTES + 1] = { NSEC3_HASH_TEXT_BYTES };
	if (param->rdata_bytes < NSEC3_FIXED_BYTES || param->rdata_bytes != NSEC3_FIXED_BYTES + (size_t)param->rdata[4] ||
	    param->rdata[0] != NSEC3_ALGORITHM_SHA1 || param->rdata[1] != 0)
		return false;
	name_lower(lower, apex->name, apex->name_bytes);
	zone_nsec3_hash(apex_hash, lower, apex->name_bytes, param->rdata + NSEC3_FIXED_BYTES, param->rdata[4],
			load_be16(param->rdata + 2));
	uint32_t bits = 0, have = 0;
	for (unsigned i = 0, used = 1; i < NSEC3_HASH_BYTES; i++) {
		bits = bits << 8 | apex_hash[i];
		have += 8;
		for (; have >= BASE32_BITS; have -= BASE32_BITS)
			label[used++] = (uint8_t)digit[bits >> (have - BASE32_BITS) & 31];
	}
	if (name_concat(owner, label, sizeof label, apex->name) == 0)
		return false;
	const struct zone_build_node *node = zone_build_find(b, owner);
	return node && has_chain_rr(b, node, param);
}

static int nsec3_compare(const void *a, const void *b)
{
	const struct zone_build_nsec3 *x = a, *y = b;
	return memcmp(x->hash, y->hash, sizeof x->hash);
}

/* In a delta only changed and deleted owners count; a deleted one keeps its hash and no RRset. */
static bool nsec3_owner(const struct zone_build *b, const struct zone_build_node *node, zone_build_ref ref,
			const struct zone_build_rr *param, struct zone_build_nsec3 *out)
{
	if (node->parent != b->apex || !hash_from_label(out->hash, node->name))
		return false;
	if (b->is_delta && node->flags & ZONE_BUILD_DELETED) {
		out->node = 0;
		return true;
	}
	out->node = ref;
	return has_chain_rr(b, node, param) && (!b->is_delta || node->flags & ZONE_BUILD_CHANGED);
}

static enum err collect(struct zone_build *b, const struct zone_build_rr *param)
{
	struct zone_build_nsec3 *owners = NULL;
	uint32_t count = 0, capacity = 0;
	for (zone_build_ref ref = b->first_node; ref;) {
		const struct zone_build_node *node = zone_build_node(b, ref);
		struct zone_build_nsec3 owner;
		if (nsec3_owner(b, node, ref, param, &owner)) {
			if (count == capacity) {
				capacity = capacity ? 2 * capacity : 64;
				struct zone_build_nsec3 *more = realloc(owners, capacity * sizeof *owners);
				if (!more) {
					free(owners);
					return ERR_NOMEM;
				}
				owners = more;
			}
			owners[count++] = owner;
		}
		ref = node->next;
	}
	if (count > 0)
		qsort(owners, count, sizeof *owners, nsec3_compare);
	b->plan.nsec3_owners = owners;
	b->plan.nsec3_count = count;
	return ERR_OK;
}

enum err zone_compile_nsec3_plan(struct zone_build *b)
{
	const struct zone_build_rrset *params = zone_build_rrset_of(b, zone_build_apex(b), RR_NSEC3PARAM);
	if (!params)
		return ERR_OK;
	ZONE_BUILD_EACH_RR(b, params, param) {
		if (!chain_exists(b, param))
			continue;
		b->plan.flags |= ZONE_SIGNED_NSEC3;
		b->plan.nsec3_iterations = load_be16(param->rdata + 2);
		b->plan.nsec3_salt_bytes = param->rdata[4];
		b->plan.nsec3_salt = param->rdata + NSEC3_FIXED_BYTES;
		return collect(b, param);
	}
	return ERR_OK;
}

uint32_t zone_compile_nsec3_find(const struct zone_build *b, const uint8_t *lower, size_t bytes, bool *matches)
{
	const struct zone_build_plan *plan = &b->plan;
	uint8_t hash[NSEC3_HASH_BYTES];
	uint32_t low = 0, high = plan->nsec3_count;
	zone_nsec3_hash(hash, lower, bytes, plan->nsec3_salt, plan->nsec3_salt_bytes, plan->nsec3_iterations);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (memcmp(plan->nsec3_owners[middle].hash, hash, sizeof hash) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	uint32_t found = low ? low : plan->nsec3_count;
	*matches = found > 0 && memcmp(plan->nsec3_owners[found - 1].hash, hash, sizeof hash) == 0;
	return found;
}
