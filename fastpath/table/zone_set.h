/* SPDX-License-Identifier: Apache-2.0 */
/* zone_set.h: all zones of a server: a map from name to zone, over segments of shared memory that hold zone images.
 *
 * Layout     A *segment* is a sealed memfd: struct segment_header, then images, each 8-byte aligned, then notes. Small zones share
 *            segments, so mappings do not grow with zones. The *map* is a sealed memfd of its own: struct zone_map, slots and entries;
 *            entries name segments by id. A change of one zone makes one new segment (or none) and a new map.
 * Trust      Attached read-only; verified whole once (sealed memory cannot change afterwards). Nothing else is believed.
 * Views      One map per view comes with F09; the map carries a view id, 0 now. */
#pragma once
#include "base/base.h"
#include "table/zone_image.h"

#define SEGMENT_MAGIC 0x534b5653u
#define SEGMENT_VERSION 1u
#define ZONE_MAP_MAGIC 0x4d4b5653u
#define ZONE_MAP_VERSION 1u
#define ZONE_SET_MAX_SEGMENTS 4096u

struct segment_header {
	uint32_t magic, version;
	uint64_t size_bytes;
	uint32_t id, image_count;
	uint64_t notes; /* offset behind the last image, a multiple of 8: from here to the end stand the writer's own notes
	                              * (which files the images came from), which readers pass over unread. 0: there are none */
};

/* clang-format off */
struct zone_map_image { uint32_t segment; zone_ref image; };   /* id of a segment, offset / 8 in it */
struct zone_map_entry {              /* entries stand one behind the other, from zone_map.entries to the map's end */
	uint64_t hash;               /* name_hash of the name below */
	int64_t serve_until_s;
	uint32_t index;              /* 0 for the first entry, then ascending: the reader's place for its view */
	uint8_t name_bytes, labels;
	uint8_t delta_count;
	uint8_t flags;               /* enum zone_map_flags */
	struct zone_map_image image[];   /* [0] the base, then delta_count deltas, newest first; then the lower-cased name, padded to 8 */
};
enum zone_map_flags { ZONE_MAP_UNUSABLE = 1 };   /* configured, but not loaded: image[0] is zero, no deltas; the view's base is NULL */
/* clang-format on */

struct zone_map {
	uint32_t magic, version;
	uint64_t size_bytes;
	uint64_t generation; /* grows with every publication */
	uint32_t view, zone_count;
	uint32_t slot_mask, max_probe;
	zone_ref slots;		  /* struct zone_slot[]; node = ref of a zone_map_entry in this map */
	zone_ref entries;	  /* the first struct zone_map_entry; behind the slots */
	uint64_t label_counts[2]; /* bit n: some zone's name has n labels; searches skip the other suffixes */
};
static_assert(sizeof(struct segment_header) == 32, "ABI");
static_assert(sizeof(struct zone_map_entry) == 24, "ABI");
static_assert(sizeof(struct zone_map) == 64, "ABI");

/* --- the writer (slowpath) ------------------------------------------------------------------------------------------ */
struct zone_map_build;
MUST_USE enum err zone_map_build_create(struct zone_map_build **out, uint64_t generation);
/* Adds a zone: name is wire, copied. ERR_EXISTS if it was added before; ERR_ARGUMENT for an offset that is no multiple of 8 or
 * beyond 32 GiB; ERR_NOMEM. */
MUST_USE enum err zone_map_build_add(struct zone_map_build *b, const uint8_t *name, uint32_t segment, uint64_t offset_bytes,
				     int64_t serve_until_s);
/* The same with deltas: image[0] is the base, the others deltas, newest first; image_count 1 to 1 + ZONE_MAX_DELTAS. */
MUST_USE enum err zone_map_build_add_images(struct zone_map_build *b, const uint8_t *name, const struct zone_map_image *image,
					    unsigned image_count, int64_t serve_until_s);
/* Adds a zone that is configured but could not be loaded. */
MUST_USE enum err zone_map_build_add_unusable(struct zone_map_build *b, const uint8_t *name);
size_t zone_map_build_bytes(const struct zone_map_build *b);
/* out: zeroed, 8-byte aligned, zone_map_build_bytes long. */
MUST_USE enum err zone_map_build_finish(struct zone_map_build *b, void *out);
void zone_map_build_destroy(struct zone_map_build *b);

/* The short way to a map that differs from an attached one in a few zones' images: a copy of zone_set_map, changed in place. The same
 * bytes as building it anew. */
void zone_map_renew(void *map, uint64_t generation);
/* The zone's images become this one; NULL: it is unusable from now on. ERR_NOTFOUND; ERR_UNSUPPORTED for a zone with deltas; then
 * nothing has changed. */
MUST_USE enum err zone_map_change(void *map, const uint8_t *name, const struct zone_map_image *image);

/* --- the reader --------------------------------------------------------------------------------------------------- */
/* Process-local: what a snapshot points to. Immutable after zone_set_attach; zone_set_release drops its references. */
struct zone_set;
struct segment; /* a mapped, verified segment, reference-counted, shared by successive sets */

/* Maps fd (populated, read-only), checks seals (SHRINK, GROW, WRITE), header and every image in it. Takes nothing: fd stays the caller's.
 * ERR_DENIED if it is not sealed, ERR_CORRUPT; *why is a static sentence on any failure. */
MUST_USE enum err segment_attach(struct segment **out, int fd, const char **why);
/* The same for one that a process of this program has attached before (base/link.h says who knows that): seals, header and size are
 * checked; its images are believed, and listed only when they are asked for. */
MUST_USE enum err segment_attach_verified(struct segment **out, int fd, const char **why);
/* Lists the images, unless that was done: before segment_image. One thread at a time. ERR_CORRUPT, ERR_NOMEM. */
MUST_USE enum err segment_list(struct segment *s, const char **why);
void segment_get(struct segment *s);
void segment_put(struct segment *s);
uint32_t segment_id(const struct segment *s);
uint64_t segment_bytes(const struct segment *s);
uint32_t segment_images(const struct segment *s);
/* All of its bytes, header first. */
const void *segment_map(const struct segment *s);
/* The n-th image (n < segment_images) and where it begins: segment offset. The image is verified. After segment_list if the
 * segment was attached by segment_attach_verified. */
const struct zone_image *segment_image(const struct segment *s, uint32_t n, uint64_t *offset_bytes);
/* The writer's notes: bytes that nobody has checked. */
const void *segment_notes(const struct segment *s, size_t *notes_bytes);

/* Maps the map in fd, verifies it, resolves entries against the given segments (each that it uses gets a reference).
 * ERR_DENIED, ERR_CORRUPT, ERR_NOMEM; *why is a static sentence on any failure. */
MUST_USE enum err zone_set_attach(struct zone_set **out, int map_fd, struct segment *const *segments, size_t segment_count,
				  const char **why);
/* The same for a map that a process of this program has attached before, over the same segments. */
MUST_USE enum err zone_set_attach_verified(struct zone_set **out, int map_fd, struct segment *const *segments,
					   size_t segment_count, const char **why);
/* The same for a map that comes after another one (NULL: none does): of what is as it was in `before`, nothing is checked again. That is most of it
 * if the same zones stand in both in the same order. */
MUST_USE enum err zone_set_attach_after(struct zone_set **out, const struct zone_set *before, int map_fd,
					struct segment *const *segments, size_t segment_count, const char **why);
/* The empty set: every question gets REFUSED. */
MUST_USE enum err zone_set_empty(struct zone_set **out);
/* Another reference to the same set (new settings over old zones). */
struct zone_set *zone_set_get(const struct zone_set *set);
void zone_set_release(struct zone_set *set);
uint64_t zone_set_generation(const struct zone_set *set);
uint32_t zone_set_zones(const struct zone_set *set);
/* The bytes of the map. */
const void *zone_set_map(const struct zone_set *set, size_t *map_bytes);
/* Visits every zone (status, zone list), in the order in which they were added. The view lives as long as the set. */
void zone_set_each(const struct zone_set *set, void (*each)(void *user, const uint8_t *name, const struct zone_view *view),
		   void *user);

/* Hot: the longest zone at or above the name. label_offset[i] is the offset of the i-th label from the left in `lower`,
 * label_offset[labels] that of the root octet. `skip` > 0 starts the search that many labels up (DS goes to the parent's zone:
 * skip 1). */
struct zone_set_hit {
	const struct zone_view *view; /* NULL: there is none */
	unsigned zone_label;	      /* index of the apex's first label */
};
MUST_USE HOT struct zone_set_hit zone_set_find(const struct zone_set *set, const uint8_t *lower, size_t bytes,
					       const uint8_t *label_offset, unsigned labels, unsigned skip);
