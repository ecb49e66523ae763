/* SPDX-License-Identifier: Apache-2.0 */
/* run_backoff.h: when a part that ended is started again. Pure: time is an argument.
 *
 * The first restart comes at once, then after 50 ms, doubled each time up to 5 s. A part that was healthy for 60 s
 * starts afresh. */
#pragma once
#include "base/base.h"

#define RUN_BACKOFF_FIRST_NS 50000000ull
#define RUN_BACKOFF_MAX_NS 5000000000ull
#define RUN_BACKOFF_RESET_NS 60000000000ull

struct run_backoff {
	uint32_t failures;
};

/* The part ended at now_ns after it had served since ready_ns (0: it never became ready). How long to wait before the next start. */
uint64_t run_backoff_next(struct run_backoff *b, uint64_t ready_ns, uint64_t now_ns);
