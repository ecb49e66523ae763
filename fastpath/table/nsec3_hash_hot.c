/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: one SHA-1 of one or two blocks per run, about 150 ns. OpenSSL's EVP interface allocates, the low-level one does
 * not; it is deprecated, hence the silence in this one file. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "table/nsec3_hash.h"

#include <openssl/sha.h>

static_assert(NSEC3_HASH_BYTES == SHA_DIGEST_LENGTH, "RFC 5155 knows SHA-1 only");

HOT void zone_nsec3_hash(uint8_t out[static NSEC3_HASH_BYTES], const uint8_t *lower, size_t bytes, const uint8_t *salt,
			 size_t salt_bytes, unsigned iterations)
{
	SHA_CTX sha;
	SHA1_Init(&sha);
	SHA1_Update(&sha, lower, bytes);
	SHA1_Update(&sha, salt, salt_bytes);
	SHA1_Final(out, &sha);
	for (unsigned i = 0; i < iterations; i++) {
		SHA1_Init(&sha);
		SHA1_Update(&sha, out, NSEC3_HASH_BYTES);
		SHA1_Update(&sha, salt, salt_bytes);
		SHA1_Final(out, &sha);
	}
}
