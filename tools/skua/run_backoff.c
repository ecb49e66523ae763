/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_backoff.h"

uint64_t run_backoff_next(struct run_backoff *b, uint64_t ready_ns, uint64_t now_ns)
{
	uint64_t wait_ns = RUN_BACKOFF_FIRST_NS;

	if (ready_ns && now_ns > ready_ns && now_ns - ready_ns >= RUN_BACKOFF_RESET_NS)
		b->failures = 0;
	if (b->failures++ == 0)
		return 0;
	for (uint32_t i = 2; i < b->failures && wait_ns < RUN_BACKOFF_MAX_NS; i++)
		wait_ns *= 2;
	return MIN(wait_ns, RUN_BACKOFF_MAX_NS);
}
