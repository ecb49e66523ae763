/* SPDX-License-Identifier: Apache-2.0 */
/* publish_private.h: what publish.c and publish_adopt.c share. */
#pragma once
#include "slowpath/zone/publish.h"

#include <pthread.h>

struct publisher {
	int link;
	struct snapshot_holder *holder;
	pthread_mutex_t lock; /* the next six */
	pthread_cond_t live_changed;
	uint64_t live[LINK_PART_COUNT_];
	struct settings settings;
	struct policy *policy; /* owned */
	const struct cache_reader *cache;
	struct zone_set *zones;	  /* owned reference: what the current snapshot has */
	uint64_t generation;	  /* loader thread */
	uint32_t next_segment_id; /* loader thread */
	/* between publisher_adopt and publisher_adopt_store */
	struct segment **adopted; /* owned, references too; an entry is NULL once the store has it */
	size_t adopted_count;
	/* loader thread: what the supervisor has kept and nobody here uses */
	uint32_t *orphan; /* owned */
	size_t orphan_count;
};

/* Makes the set this process's current one. Takes the reference on success. */
MUST_USE enum err publisher_serve(struct publisher *p, struct zone_set *take);
/* Sends to the supervisor, if there is one; waits while the link is full. fd -1: none. */
MUST_USE enum err publisher_tell(struct publisher *p, struct link_msg message, int fd);
/* Lets go of the segments that the store did not take. */
void publisher_drop_adopted(struct publisher *p);
