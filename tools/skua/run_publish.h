/* SPDX-License-Identifier: Apache-2.0 */
/* run_publish.h: the zone set as the supervisor keeps it: descriptors of the sealed segments and of the newest map, so that a part
 * that starts gets them at once. Nothing is mapped here; of a map only the header is read, and copied before it is believed. */
#pragma once
#include "base/base.h"

struct run_segment {
	uint32_t id;
	int fd;
	uint64_t after_generation; /* the map that was the newest when it came */
	uint32_t verified;	   /* bit n: a process of part n has reported LIVE with it (base/link.h) */
};
struct run_publish {
	struct run_segment *segment_; /* ascending by id */
	size_t count, capacity_;
	int map_fd;	     /* -1: none yet */
	uint64_t generation; /* of the map; 0: none yet */
	uint32_t zone_count;
	uint32_t map_verified; /* as run_segment.verified */
	uint32_t highest_id;   /* of all segments that ever came */
};

void run_publish_init(struct run_publish *p);
void run_publish_fini(struct run_publish *p);
/* Takes fd on success. ERR_DENIED: not sealed; ERR_EXISTS: that id is held; ERR_NOSPACE: ZONE_SET_MAX_SEGMENTS; ERR_NOMEM. */
MUST_USE enum err run_publish_segment(struct run_publish *p, uint32_t id, int fd);
/* Takes fd on success and closes the map before. ERR_DENIED: not sealed; ERR_CORRUPT: no map of this generation, or not newer
 * than the last. */
MUST_USE enum err run_publish_map(struct run_publish *p, uint64_t generation, int fd);
/* A process of the part serves the map of this generation: it has verified it, and every segment that came before it. What it was
 * told to be verified already is verified. */
void run_publish_live(struct run_publish *p, unsigned part, uint64_t generation);
/* What processes of this part have verified counts no longer: its program has changed, or it can't serve. */
void run_publish_forget(struct run_publish *p, unsigned part);
/* The newest map does not name the segment: closes it. ERR_NOTFOUND. */
MUST_USE enum err run_publish_drop(struct run_publish *p, uint32_t id);
