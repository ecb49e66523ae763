/* SPDX-License-Identifier: Apache-2.0 */
/* Once per batch, not per answer: four calls into liburcu, each a load and a store or two. */
#include "table/snapshot.h"
#include "base/race.h"

#include <urcu/urcu-qsbr.h>

const struct snapshot *snapshot_acquire(const struct snapshot_holder *h)
{
	return atomic_load_explicit((struct snapshot * _Atomic *)&h->current_, memory_order_acquire);
}

/* What a thread has read by now comes before the end of the grace period that waits for it (snapshot_publish). */
void snapshot_quiescent(void)
{
	race_before(&urcu_qsbr_flavor);
	urcu_qsbr_quiescent_state();
}

void snapshot_offline(void)
{
	race_before(&urcu_qsbr_flavor);
	urcu_qsbr_thread_offline();
}

void snapshot_online(void) { urcu_qsbr_thread_online(); }
