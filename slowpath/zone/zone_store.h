/* SPDX-License-Identifier: Apache-2.0 */
/* zone_store.h: the slowpath's own list of zones: what is configured, and where the image of each is that is served.
 *
 * Threads    Only the loader thread changes it, and holds the lock while it does; it reads without. Every other thread reads
 *            under the lock.
 * Changes    The store knows which zones are served by another image than in the map that was published last.
 * Memory     About 220 octets a zone, name and path included; the segments are counted apart. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/segment_notes.h"
#include "table/zone_set.h"

struct store_segment {
	struct segment *segment; /* owned reference */
	uint32_t id, live_zones;
	uint64_t live_bytes;  /* of the images that are served */
	int fd;		      /* owned, until the supervisor got it; -1 then */
	uint64_t file_number; /* of its image file; 0: none */
	bool is_file_refused; /* writing it failed; not tried again */
	bool is_published;    /* the supervisor has it */
	bool is_victim;	      /* repack.c is about to write its images anew */
};

enum zone_state {
	ZONE_PENDING, /* not loaded yet */
	ZONE_SERVED,
	ZONE_STALE,  /* served, but its file has become unusable since */
	ZONE_BROKEN, /* its file is unusable and there is nothing older to serve */
};

struct zone_item {
	struct zone_item *next_; /* of the same bucket */
	struct zone_store *store_;
	struct zone_item *changed_next_;
	uint64_t changed_round_;
	uint64_t hash;
	uint32_t index;		       /* of zone_store_item */
	uint32_t fault_errors;	       /* how many errors `fault` begins to list */
	struct store_segment *segment; /* NULL: nothing is served; the next three are NULL and 0 then */
	const struct zone_image *image;
	const struct segment_note *note; /* NULL: unknown; checked */
	uint64_t offset_bytes;
	bool is_unchecked; /* from an image file whose sources were not looked at yet: not served before */
	char *fault;	   /* owned: the first errors of the last load, a line each; NULL: it went well */
	int64_t fault_at_s;
	const char *file; /* the master file; behind the name */
	uint8_t name_bytes;
	uint8_t name[]; /* wire, lower-cased */
};

struct zone_store_totals {
	uint64_t zones, served, stale, broken, pending, records;
	uint64_t segments, segment_bytes, live_bytes;
};

struct zone_store;
MUST_USE enum err zone_store_create(struct zone_store **out);
void zone_store_destroy(struct zone_store *s); /* NULL is fine */
void zone_store_lock(struct zone_store *s);
void zone_store_unlock(struct zone_store *s);

/* name: wire. Both are copied. ERR_EXISTS, ERR_ARGUMENT, ERR_RANGE (the path is too long), ERR_NOMEM. */
MUST_USE enum err zone_store_add(struct zone_store *s, const uint8_t *name, const char *file);
MUST_USE enum err zone_store_remove(struct zone_store *s, const uint8_t *name);
struct zone_item *zone_store_find(const struct zone_store *s, const uint8_t *name); /* any case; NULL if there is none */
uint32_t zone_store_zones(const struct zone_store *s);
struct zone_item *zone_store_item(const struct zone_store *s, uint32_t index);
enum zone_state zone_item_state(const struct zone_item *item);
const char *zone_state_text(enum zone_state state);
struct zone_store_totals zone_store_totals(const struct zone_store *s);

/* Whether zones were added or removed since zone_store_settle; changes are not counted then. */
bool zone_store_is_reshaped(const struct zone_store *s);
/* The zones that changed since zone_store_settle, one after another (NULL: the first). */
struct zone_item *zone_store_next_changed(const struct zone_store *s, const struct zone_item *before);
/* The map that was just published says all that is in the store. */
void zone_store_settle(struct zone_store *s);

/* Takes the reference and fd (-1: the supervisor has it already). ERR_NOMEM, ERR_NOSPACE (ZONE_SET_MAX_SEGMENTS) take nothing. */
MUST_USE enum err zone_store_add_segment(struct zone_store *s, struct segment *take, int fd, struct store_segment **out);
size_t zone_store_segments(const struct zone_store *s);
struct store_segment *zone_store_segment(const struct zone_store *s, size_t index);
/* Forgets a segment of which nothing is served: drops the reference, closes fd. The last one takes its index. */
void zone_store_drop_segment(struct zone_store *s, size_t index);

/* The zone is served from here on by this image of a segment of the store. A fault stays. */
void zone_item_serve(struct zone_item *item, struct store_segment *segment, const struct zone_image *image, uint64_t offset_bytes,
		     const struct segment_note *note);
/* It is no longer is_unchecked. */
void zone_item_note_checked(struct zone_item *item);
/* Nothing is served any more. */
void zone_item_unload(struct zone_item *item);
/* take: allocated text or NULL (out of memory). What is served stays. */
void zone_item_fail(struct zone_item *item, char *take_fault, uint32_t errors);
/* The last load found nothing wrong. */
void zone_item_clear_fault(struct zone_item *item);
