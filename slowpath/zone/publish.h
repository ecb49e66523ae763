/* SPDX-License-Identifier: Apache-2.0 */
/* publish.h: puts what the store has into service: a new map, the snapshot of this process, and over the link the supervisor's and
 * the fastpath's. Also the way back: after a restart the store takes over what the supervisor has kept.
 *
 * Order      SEGMENT of every new one, then MAP: who has a map has its segments. DROP comes after the map that no longer names
 *            a segment. Old mappings go when the last snapshot that uses them does, after its grace period.
 * Threads    The loader thread publishes; the main thread sets settings and notes what the supervisor tells. */
#pragma once
#include "base/base.h"
#include "base/link.h"
#include "slowpath/zone/zone_store.h"
#include "table/cache.h"
#include "table/policy.h"
#include "table/snapshot.h"

struct publisher;
/* link: borrowed; -1: there is nobody to tell. holder: borrowed, its snapshot is replaced. */
MUST_USE enum err publisher_create(struct publisher **out, int link, struct snapshot_holder *holder,
				   const struct settings *settings);
/* Leaves the holder's last snapshot to its owner, who has ended it before: the policy goes with the publisher. */
void publisher_destroy(struct publisher *p);
/* The ids that new segments get, for reload_request. */
uint32_t *publisher_segment_id(struct publisher *p);
/* What is served: generation and number of zones. Loader thread. */
uint64_t publisher_generation(const struct publisher *p);
uint32_t publisher_zones(const struct publisher *p);

/* Publishes the store's zones: those that are configured and not loaded are answered SERVFAIL. *generation is that of the new
 * set, live in this process on return. On failure what was served stays, and *why is a static sentence. ERR_CLOSED: the link. */
MUST_USE enum err publisher_publish(struct publisher *p, struct zone_store *store, uint64_t *generation, const char **why);
/* New settings over the same zones, at once. Before the first publication they are only kept. */
MUST_USE enum err publisher_settings(struct publisher *p, const struct settings *settings);
/* Another policy over the same zones, at once; takes it on success, and lets go of the one before when no answer uses it any more. NULL: none. */
MUST_USE enum err publisher_policy(struct publisher *p, struct policy *take);
/* The cache that snapshots name; borrowed until the last of them is gone. Before the first publication. */
void publisher_cache(struct publisher *p, const struct cache_reader *cache);
/* Tells the supervisor that no map names the segment any more. */
MUST_USE enum err publisher_drop(struct publisher *p, uint32_t segment_id);

/* What the supervisor says of a part. */
void publisher_note_live(struct publisher *p, uint32_t part, uint64_t generation);
/* Whether every part has left older generations; waits for that. */
bool publisher_wait_live(struct publisher *p, uint64_t generation, unsigned timeout_ms);

/* What the supervisor has kept: descriptors stay the caller's. */
struct publish_kept {
	struct publish_kept_segment {
		uint32_t id;
		int fd;
		bool is_verified; /* by a process before us (base/link.h) */
	} * segment;
	size_t segment_count;
	int map_fd;
	bool is_map_verified;
	uint64_t generation;
};
/* Maps all of it, verifies with that many threads what was not verified before, and serves it: no store is needed for that. On failure
 * (ERR_NOTFOUND: there is no map) nothing of it is used, but newer ids and generations are. kept stays the caller's and is not needed afterwards. */
MUST_USE enum err publisher_adopt(struct publisher *p, const struct publish_kept *kept, unsigned threads, const char **why);
/* Once, by the loader thread, after publisher_adopt (whatever came of it): lets the store's items know their images. Zones that are not
 * in the store are left out of the next map. */
MUST_USE enum err publisher_adopt_store(struct publisher *p, struct zone_store *store);
/* Tells the supervisor to drop what it has kept and the store has no use for. After a map was published. */
MUST_USE enum err publisher_drop_orphans(struct publisher *p);
