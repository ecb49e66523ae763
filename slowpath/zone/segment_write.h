/* SPDX-License-Identifier: Apache-2.0 */
/* segment_write.h: a segment being filled: images are compiled straight into its memfd, notes are collected beside it and put
 * behind the images when it is finished, cut to size and sealed. One thread a writer. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/segment_notes.h"
#include "table/zone_set.h"

#define SEGMENT_FILL_BYTES (64ull << 20) /* small zones share segments of up to this size; a larger zone gets one alone */

struct segment_write {
	int fd; /* -1: none begun */
	uint8_t *map;
	size_t capacity_bytes; /* of the mapping; the memfd is allocated up to allocated_bytes */
	size_t allocated_bytes, used_bytes;
	size_t touched_bytes; /* given out, committed or not: may be other than zero */
	uint32_t image_count;
	uint8_t *notes;
	size_t notes_bytes, notes_capacity_bytes;
};

void segment_write_init(struct segment_write *w);
/* Drops whatever was begun. */
void segment_write_fini(struct segment_write *w);
/* Whether an image and note of these sizes still fit into what was begun; true if nothing was. */
bool segment_write_has_room(const struct segment_write *w, size_t image_bytes, size_t note_bytes);
/* Room for an image and its note: *image is 8-byte aligned and zeroed, *note 8-byte aligned, valid until the next call. Neither
 * counts before segment_write_commit; a second reserve takes the place of the first. Begins a segment if there is none.
 * ERR_NOMEM, ERR_NOSPACE (no memory for the memfd). */
MUST_USE enum err segment_write_reserve(struct segment_write *w, size_t image_bytes, size_t note_bytes, void **image,
					void **note);
/* Keeps what was reserved last; *offset_bytes is the image's place. */
void segment_write_commit(struct segment_write *w, size_t image_bytes, size_t note_bytes, uint64_t *offset_bytes);
/* Seals the segment under this id and attaches it, without a verification: since it was mapped here, nobody else could write to it. *fd
 * and the reference are the caller's. Afterwards, on failure too (*why is a static sentence), the writer is as after init.
 * ERR_NOTFOUND if it holds nothing (and nothing changes). */
MUST_USE enum err segment_write_finish(struct segment_write *w, uint32_t id, int *fd, struct segment **segment, const char **why);
