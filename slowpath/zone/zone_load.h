/* SPDX-License-Identifier: Apache-2.0 */
/* zone_load.h: one zone from its master file: read, checked, and compiled to where the caller wants it.
 *
 * Two steps, since the place depends on the size: zone_load_begin reads and checks everything, zone_load_finish compiles. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/segment_notes.h"
#include "table/zone_build.h"

#define ZONE_LOAD_MAX_ERRORS 1000u /* a file that is no zone file at all is not read to its end */

/* One finding. text is valid during the call; place.file may be NULL. */
typedef void zone_load_report(void *user, enum zone_finding_level level, struct master_place place, const char *text);

struct zone_load_request {
	const uint8_t *name; /* wire */
	const char *file;
	uint16_t class_;
	uint64_t max_bytes;	  /* of each file, and of what is built from them */
	const _Atomic bool *stop; /* set by another thread: give up (ERR_CLOSED); may be NULL */
	zone_load_report *report;
	void *user;
};

struct zone_load;
/* ERR_SYNTAX: at least one error was reported. ERR_NOMEM, ERR_NOSPACE (max_bytes), ERR_CLOSED are reported as well. */
MUST_USE enum err zone_load_begin(struct zone_load **out, const struct zone_load_request *request);
size_t zone_load_image_bytes(const struct zone_load *l);
size_t zone_load_note_bytes(const struct zone_load *l);
/* The records, for `skua zone check --print`. Borrowed until destroy. */
struct zone_build *zone_load_build(struct zone_load *l);
/* image: zeroed, 8-byte aligned, image_bytes long; note: likewise, note_bytes long. */
MUST_USE enum err zone_load_finish(struct zone_load *l, void *image, void *note);
void zone_load_destroy(struct zone_load *l); /* NULL is fine */
