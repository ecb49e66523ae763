/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h: what one answer sees: zones and settings of one generation. Read-only, swapped whole.
 *
 * The answering process's control thread builds one and publishes it through snapshot_holder (liburcu QSBR); serving threads
 * take the pointer once per batch between quiescent states and hand it to answer() as an argument. */
#pragma once
#include "base/base.h"
#include "table/cache.h"
#include "table/policy.h"
#include "table/settings.h"
#include "table/zone_set.h"

struct snapshot {
	const struct zone_set *zones; /* owned */
	struct settings settings;
	const struct policy *policy;	  /* borrowed from the process until the snapshot is gone; NULL: nobody may recurse */
	const struct cache_reader *cache; /* borrowed for the life of the process; NULL: there is no cache */
	uint64_t generation;		  /* zone_set_generation(zones) */
};

/* Takes zones. ERR_NOMEM leaves it the caller's. */
MUST_USE enum err snapshot_create(struct snapshot **out, struct zone_set *take_zones, const struct settings *settings);
void snapshot_destroy(struct snapshot *s);

struct snapshot_holder {
	struct snapshot *_Atomic current_;
}; /* all zero at first */
/* Control thread only: swaps, waits for the grace period, destroys the old one. take NULL: ends with none. */
void snapshot_publish(struct snapshot_holder *h, struct snapshot *take);
/* Serving threads: register once; then per batch snapshot_acquire ... snapshot_quiescent; offline around anything that sleeps. */
void snapshot_thread_register(void);
void snapshot_thread_unregister(void);
HOT const struct snapshot *snapshot_acquire(const struct snapshot_holder *h);
HOT void snapshot_quiescent(void);
HOT void snapshot_offline(void);
HOT void snapshot_online(void);
