/* SPDX-License-Identifier: Apache-2.0 */
/* zone_image_file.h: segments as files in <state>/zones/, so that a cold start need not parse master files that have not changed.
 *
 * A file is never the only copy of anything: whatever is wrong with one, it is removed and the zones are loaded from their master
 * files. It is written under another name, synced, then renamed. Its checksum covers every octet. The segment's notes say which
 * zones it has and from which files; where two files have one zone, the one with the higher number is right.
 *
 * Files are copied into memory, never mapped: serving threads touch no disk. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/zone_store.h"

#define ZONE_IMAGE_FILE_MAGIC 0x494b5653u
#define ZONE_IMAGE_FILE_VERSION 1u
#define ZONE_IMAGE_FILE_MIN_BYTES (1u << 20) /* smaller segments are parsed again sooner than synced to disk */

struct zone_image_file { /* followed by the segment */
	uint32_t magic, version;
	uint32_t segment_version, image_version;
	uint64_t segment_bytes;
	uint8_t checksum[16]; /* XXH3, 128 bits, over this header with the field zero, and the segment with its id zero */
};
static_assert(sizeof(struct zone_image_file) == 40, "layout on disk");

struct zone_image_files {
	char *folder; /* owned; NULL: off */
	uint64_t next_number;
	uint64_t min_bytes;
};

/* Uses <state>/zones, making it (not state itself) if need be; removes what an interrupted write left. When that can't be, it is off
 * and logged: everything below then does nothing. */
void zone_image_files_init(struct zone_image_files *f, const char *state, uint64_t min_bytes);
void zone_image_files_fini(struct zone_image_files *f);

/* Takes what all files have of the store's zones, as unchecked (zone_item.is_unchecked): reload_run looks at the master files'
 * stamps. Only zones that have no image yet. Removes files that are damaged, foreign or hold nothing of use. Zones taken. */
uint64_t zone_image_files_read(struct zone_image_files *f, struct zone_store *store, uint32_t *next_segment_id);
/* After a restart that took over the segments themselves: finds out which file has which, and removes the other files. */
void zone_image_files_match(struct zone_image_files *f, struct zone_store *store);
/* Writes every segment of min_bytes or more that has no file yet. Failures are logged, once a segment. When
 * *stop becomes true it gives up the file that it is at; `stop` may be NULL. */
void zone_image_files_write(struct zone_image_files *f, struct zone_store *store, const _Atomic bool *stop);
/* Tries again where writing failed. */
void zone_image_files_retry(struct zone_image_files *f, struct zone_store *store);
/* Removes the file of a segment that is about to be dropped. */
void zone_image_files_forget(struct zone_image_files *f, struct store_segment *s);
