/* SPDX-License-Identifier: Apache-2.0 */
/* random_pool.h: random octets for ids, ports and letter case, from the kernel's CSPRNG by the kilobyte, so that a query costs no system
 * call. Octets are erased as they are taken. One per thread; never shared with a child process (this one makes none). */
#pragma once
#include "base/base.h"
#include <errno.h>
#include <sys/random.h>

#define RANDOM_POOL_BYTES 1024u

struct random_pool { /* zero: empty */
	size_t left_;
	uint8_t octets_[RANDOM_POOL_BYTES];
};

/* At most 64 octets. getrandom() fails on bad arguments and without a kernel's support only: our bug. */
ALWAYS_INLINE void random_pool_take(struct random_pool *p, void *out, size_t bytes)
{
	while (p->left_ < bytes) {
		ssize_t n = getrandom(p->octets_, sizeof p->octets_, 0);
		ASSERT(n > 0 || errno == EINTR);
		p->left_ = n > 0 ? (size_t)n : p->left_;
	}
	p->left_ -= bytes;
	memcpy(out, p->octets_ + p->left_, bytes);
	memset(p->octets_ + p->left_, 0, bytes);
}
ALWAYS_INLINE uint16_t random_pool_u16(struct random_pool *p)
{
	uint16_t v;
	random_pool_take(p, &v, sizeof v);
	return v;
}
ALWAYS_INLINE uint64_t random_pool_u64(struct random_pool *p)
{
	uint64_t v;
	random_pool_take(p, &v, sizeof v);
	return v;
}
