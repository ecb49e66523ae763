/* SPDX-License-Identifier: Apache-2.0 */
/* repack.h: keeps the number of segments and their garbage within bounds by copying the images that are still served into
 * new segments. Each reload of a zone makes a small segment; so segments of like size are merged once there are many, as in
 * a log-structured merge: an image is copied a few times in all, however many reloads there are. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/zone_store.h"

#define REPACK_TIER_SEGMENTS 16u	   /* more of one tier (sizes within a factor of 4) are merged */
#define REPACK_GARBAGE_BYTES (16ull << 20) /* garbage in all that is left alone, and also a quarter of what is served */

/* Whether repack_run would do something; marks the segments it concerns. */
bool repack_is_due(struct zone_store *store);
/* Copies. The old segments keep what could not be copied. Publish afterwards. ERR_NOMEM, ERR_NOSPACE: some are copied. */
MUST_USE enum err repack_run(struct zone_store *store, uint32_t *next_segment_id);
