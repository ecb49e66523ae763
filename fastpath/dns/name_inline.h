/* SPDX-License-Identifier: Apache-2.0 */
/* name_inline.h: the two steps of name.h that every query takes, as inline bodies.
 *
 * Budget: about 10 ns for a name of 32 octets, both together. No call leaves this file (XXH3 is inlined). */
#pragma once
#include "base/base.h"
#include "dns/name.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Bytes that name_lower_inline may read behind `in` and write behind `out`, beyond n. */
#define NAME_LOWER_SLACK_BYTES 32

/* Lower-cases n bytes, 16 at a time: up to NAME_LOWER_SLACK_BYTES behind them are read and written too.
 * out may be in; other overlaps are not allowed. Length octets (below 'A') come through unchanged. */
HOT ALWAYS_INLINE void name_lower_inline(uint8_t *out, const uint8_t *in, size_t n)
{
	typedef unsigned char block __attribute__((vector_size(16)));
	typedef signed char signed_block __attribute__((vector_size(16)));

	for (size_t i = 0; i < n; i += sizeof(block)) {
		block v;

		memcpy(&v, in + i, sizeof v);
		/* One signed compare: 'A' to 'Z' wrap to the lower end of the range, all other octets lie above. */
		v |= (block)((signed_block)(v + 0x3f) < -128 + 26) & 0x20;
		memcpy(out + i, &v, sizeof v);
	}
}

ALWAYS_INLINE uint8_t name_octet_lower(uint8_t octet) { return (uint8_t)(octet + ((uint8_t)(octet - 'A') < 26 ? 32 : 0)); }

/* name_hash of a lower-cased wire name; reads exactly n bytes. XXH3 has a way of its own for each range of lengths: the ones that long names take
 * stay out of line, so that the callers stay small. */
HOT ALWAYS_INLINE uint64_t name_hash_inline(const uint8_t *lower, size_t n)
{
	return likely(n <= 128) ? XXH3_64bits(lower, n) : name_hash(lower, n);
}
