/* SPDX-License-Identifier: Apache-2.0 */
/* segment_notes.h: what a segment says behind its images about where each of them came from. With them a slowpath that was
 * just started, or an image file on disk, knows which master files it may leave unread.
 *
 * Layout     struct segment_notes, then one struct segment_note per image, in the images' order, each followed by its
 *            sources; everything 8-byte aligned. Only the slowpath reads and writes them.
 * Trust      The reader checks every length: the notes may come from a file on disk. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/zone_source.h"

#define SEGMENT_NOTES_MAGIC 0x4e4b5653u
#define SEGMENT_NOTES_VERSION 1u

struct segment_notes {
	uint32_t magic, version, note_count, reserved;
};
struct segment_note {
	uint32_t bytes;		    /* of this note with its sources */
	uint32_t source_count;	    /* 1 to ZONE_MAX_SOURCES; the master file first */
	int64_t loaded_at_s;	    /* wall clock */
	uint32_t load_us, warnings; /* what the load took, what zone_check warned of */
	uint64_t source_bytes;	    /* of all files */
};
struct segment_note_source { /* followed by the path with its NUL, padded to 8 */
	struct zone_stamp stamp;
	uint64_t content_hash;
	uint16_t path_bytes;
	uint8_t is_settled, reserved[5];
};
static_assert(sizeof(struct segment_note) == 32, "ABI of image files");
static_assert(sizeof(struct segment_note_source) == 56, "ABI of image files");

/* Octets that the note of these sources takes; writes it to out (8-byte aligned). */
size_t segment_note_bytes(struct zone_source *const *sources, uint32_t source_count);
void segment_note_write(void *out, const struct segment_note *head, struct zone_source *const *sources, uint32_t source_count);

/* A walk over notes that nobody has checked. */
struct segment_notes_reader {
	const uint8_t *at_;
	size_t left_;
	uint32_t notes_left_;
};
/* False: these are no notes for image_count images. */
bool segment_notes_open(struct segment_notes_reader *r, const void *notes, size_t notes_bytes, uint32_t image_count);
/* The next note, checked whole, its sources too; NULL at the end or at the first damage. */
const struct segment_note *segment_notes_next(struct segment_notes_reader *r);

/* Of a checked note: the source behind `previous`, the first for NULL. NULL behind the last. */
const struct segment_note_source *segment_note_source_next(const struct segment_note *note,
							   const struct segment_note_source *previous);
const char *segment_note_source_path(const struct segment_note_source *s);
/* Whether every source still has the content that was compiled. Reads stamps, and content where stamps prove nothing. */
bool segment_note_is_unchanged(const struct segment_note *note);
