/* SPDX-License-Identifier: Apache-2.0 */
/* reload.h: brings the store up to date with the master files: all zones or one, in parallel. Nothing is published here.
 *
 * Each zone is replaced wholly or not at all: one whose new file is unusable keeps what it had and gets a fault that says why.
 * Files that have not changed are not parsed.
 *
 * Memory     Each thread holds one zone under construction and one segment; no more than RELOAD_TEXT_BYTES of master files are
 *            read at a time (a larger file is read alone). */
#pragma once
#include "base/base.h"
#include "slowpath/zone/zone_store.h"

#define RELOAD_TEXT_BYTES (256ull << 20)
#define RELOAD_FAULT_LINES 10u /* errors that a zone's fault quotes */
#define RELOAD_FAULTS 20u      /* zones that the result quotes */

struct reload_request {
	const uint8_t *zone; /* wire; NULL: all */
	bool is_forced;	     /* read unchanged files too */
	unsigned threads;
	uint64_t max_zone_bytes;
	const _Atomic bool *stop;  /* another thread may set it: give up; may be NULL */
	uint32_t *next_segment_id; /* the ids that new segments get */
	/* If not NULL: called now and then in a long load, from the calling thread; is_new: the store has more to serve than before. */
	void (*progress)(void *user, bool is_new);
	void *user;
};

struct reload_fault {
	uint8_t zone[NAME_MAX_BYTES];
	char *lines;
	uint32_t errors;
}; /* lines: owned, one error a line */
struct reload_result {
	uint64_t loaded, unchanged, failed, unread; /* unread: given up since `stop` was set */
	uint64_t duration_ns;
	struct reload_fault fault[RELOAD_FAULTS];
	unsigned fault_count; /* at most RELOAD_FAULTS; `failed` counts all */
};

/* ERR_NOTFOUND: no such zone; ERR_NOMEM. ERR_OK with failed > 0: some zones keep what they had. result_fini even on failure. */
MUST_USE enum err reload_run(struct zone_store *store, const struct reload_request *request, struct reload_result *result);
void reload_result_fini(struct reload_result *result);
