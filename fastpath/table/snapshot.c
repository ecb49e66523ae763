/* SPDX-License-Identifier: Apache-2.0 */
#include "table/snapshot.h"
#include "base/race.h"

#include <stdlib.h>
#include <urcu/urcu-qsbr.h>

enum err snapshot_create(struct snapshot **out, struct zone_set *take_zones, const struct settings *settings)
{
	struct snapshot *s = malloc(sizeof(*s));
	if (!s)
		return ERR_NOMEM;
	*s = (struct snapshot){ .zones = take_zones, .settings = *settings, .generation = zone_set_generation(take_zones) };
	*out = s;
	return ERR_OK;
}

void snapshot_destroy(struct snapshot *s)
{
	if (!s)
		return;
	zone_set_release((struct zone_set *)s->zones);
	free(s);
}

void snapshot_publish(struct snapshot_holder *h, struct snapshot *take)
{
	/* The release makes the snapshot complete for snapshot_acquire's acquire. */
	struct snapshot *old = atomic_exchange_explicit(&h->current_, take, memory_order_acq_rel);
	if (!old)
		return;
	urcu_qsbr_synchronize_rcu();
	race_after(&urcu_qsbr_flavor);
	snapshot_destroy(old);
}

void snapshot_thread_register(void) { urcu_qsbr_register_thread(); }
void snapshot_thread_unregister(void)
{
	race_before(&urcu_qsbr_flavor);
	urcu_qsbr_unregister_thread();
}
