/* SPDX-License-Identifier: Apache-2.0 */
/* nsec3_hash.h: the hash of NSEC3 owner names (RFC 5155 section 5), SHA-1. */
#pragma once
#include "base/base.h"

#define NSEC3_HASH_BYTES 20
#define NSEC3_HASH_TEXT_BYTES 32 /* base32hex without padding: the label */

/* out = IH(salt, name, iterations). `lower` is a lower-cased wire name. No allocation; iterations + 1 SHA-1 runs. */
HOT void zone_nsec3_hash(uint8_t out[static NSEC3_HASH_BYTES], const uint8_t *lower, size_t bytes, const uint8_t *salt,
			 size_t salt_bytes, unsigned iterations);
