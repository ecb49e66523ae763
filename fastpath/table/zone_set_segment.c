/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_set_private.h"
#include "table/shm.h"

#include <stdlib.h>

#define IMAGE_MIN_BYTES offsetof(struct zone_image, nsec3_salt)

/* Walks the images behind the header; every one must be right, and together they must fill the segment. */
static enum err list_images(struct segment *s, bool is_verified, const char **why)
{
	size_t at = sizeof(struct segment_header);
	for (uint32_t n = 0; n < s->image_count; n++) {
		const struct zone_image *image = (const struct zone_image *)(s->map + at);
		size_t left = s->images_end - at;
		if (left < IMAGE_MIN_BYTES || image->size_bytes < IMAGE_MIN_BYTES || image->size_bytes > left) {
			*why = "an image reaches beyond its segment";
			return ERR_CORRUPT;
		}
		if (at / ZONE_REF_UNIT > UINT32_MAX) {
			*why = "an image lies beyond 32 GiB of its segment";
			return ERR_CORRUPT;
		}
		enum err err = is_verified ? ERR_OK : zone_image_verify(image, image->size_bytes, why);
		if (err != ERR_OK)
			return err;
		s->image[n] = (zone_ref)(at / ZONE_REF_UNIT);
		at += (image->size_bytes + ZONE_REF_UNIT - 1) & ~(size_t)(ZONE_REF_UNIT - 1);
		if (at > s->images_end) {
			*why = "the last image is not padded";
			return ERR_CORRUPT;
		}
	}
	if (at != s->images_end) {
		*why = "a gap behind the segment's last image";
		return ERR_CORRUPT;
	}
	return ERR_OK;
}

static enum err list(struct segment *s, bool is_verified, const char **why)
{
	s->image = calloc((size_t)s->image_count + 1, sizeof(*s->image));
	if (!s->image) {
		*why = "out of memory";
		return ERR_NOMEM;
	}
	enum err err = list_images(s, is_verified, why);
	if (err != ERR_OK) {
		free(s->image);
		s->image = NULL;
	}
	return err;
}

enum err segment_list(struct segment *s, const char **why) { return s->image ? ERR_OK : list(s, true, why); }

static const char *header_fault(const struct segment_header *h, size_t bytes)
{
	if (bytes < sizeof(*h) || h->magic != SEGMENT_MAGIC)
		return "not a segment";
	if (h->version != SEGMENT_VERSION)
		return "segment of another layout version";
	if (h->size_bytes != bytes)
		return "segment of another size than its header says";
	if (h->notes && (h->notes < sizeof(*h) || h->notes > bytes || h->notes % ZONE_REF_UNIT))
		return "the segment's notes are not behind its images";
	if (h->image_count > (bytes - sizeof(*h)) / IMAGE_MIN_BYTES)
		return "more images than the segment can hold";
	return NULL;
}

static enum err attach(struct segment **out, int fd, bool is_verified, const char **why)
{
	if (!shm_is_sealed(fd, true)) {
		*why = "the segment is not sealed";
		return ERR_DENIED;
	}
	const void *map;
	size_t bytes;
	enum err err = shm_map(&map, &bytes, fd);
	if (err != ERR_OK) {
		*why = "the segment can't be mapped";
		return err;
	}
	const struct segment_header *h = map;
	const char *fault = header_fault(h, bytes);
	if (fault) {
		*why = fault;
		shm_unmap(map, bytes);
		return ERR_CORRUPT;
	}
	struct segment *s = calloc(1, sizeof(*s));
	if (!s) {
		*why = "out of memory";
		shm_unmap(map, bytes);
		return ERR_NOMEM;
	}
	atomic_init(&s->references, 1);
	s->id = h->id;
	s->map = map;
	s->bytes = bytes;
	s->images_end = h->notes ? h->notes : bytes;
	s->image_count = h->image_count;
	err = is_verified ? ERR_OK : list(s, false, why);
	if (err != ERR_OK) {
		segment_put(s);
		return err;
	}
	*out = s;
	return ERR_OK;
}

enum err segment_attach(struct segment **out, int fd, const char **why) { return attach(out, fd, false, why); }
enum err segment_attach_verified(struct segment **out, int fd, const char **why) { return attach(out, fd, true, why); }

void segment_get(struct segment *s) { atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed); }

void segment_put(struct segment *s)
{
	/* The release of every put is met by the acquire of the last one. */
	if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
		return;
	shm_unmap(s->map, s->bytes);
	free(s->image);
	free(s);
}

uint32_t segment_id(const struct segment *s) { return s->id; }
uint64_t segment_bytes(const struct segment *s) { return s->bytes; }
uint32_t segment_images(const struct segment *s) { return s->image_count; }
const void *segment_map(const struct segment *s) { return s->map; }

const struct zone_image *segment_image(const struct segment *s, uint32_t n, uint64_t *offset_bytes)
{
	ASSERT(s->image && n < s->image_count);
	*offset_bytes = (uint64_t)s->image[n] * ZONE_REF_UNIT;
	return (const struct zone_image *)(s->map + *offset_bytes);
}

const void *segment_notes(const struct segment *s, size_t *notes_bytes)
{
	*notes_bytes = s->bytes - s->images_end;
	return s->map + s->images_end;
}
