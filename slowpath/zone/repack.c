/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/repack.h"
#include "base/log.h"
#include "slowpath/zone/segment_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define TIERS 64u

static uint64_t garbage_bytes(const struct store_segment *s)
{
	size_t notes_bytes;
	(void)segment_notes(s->segment, &notes_bytes);
	uint64_t images = segment_bytes(s->segment) - notes_bytes - sizeof(struct segment_header);
	return images - MIN(images, s->live_bytes + 8ull * s->live_zones); /* images are padded to 8 */
}

/* 0 to 3 octets, 4 to 15, 16 to 63, ... */
static unsigned tier_of(uint64_t bytes) { return (unsigned)(63 - __builtin_clzll(bytes | 1)) / 2; }

static bool is_candidate(const struct store_segment *s) { return s->live_zones > 0 && s->is_published; }

static bool mark_full_tiers(struct zone_store *store)
{
	unsigned count[TIERS] = { 0 };
	bool is_due = false;
	for (size_t i = 0; i < zone_store_segments(store); i++) {
		const struct store_segment *s = zone_store_segment(store, i);
		if (is_candidate(s) && segment_bytes(s->segment) < SEGMENT_FILL_BYTES / 2)
			count[tier_of(segment_bytes(s->segment))]++;
	}
	for (size_t i = 0; i < zone_store_segments(store); i++) {
		struct store_segment *s = zone_store_segment(store, i);
		uint64_t bytes = segment_bytes(s->segment);
		if (is_candidate(s) && bytes < SEGMENT_FILL_BYTES / 2 && count[tier_of(bytes)] > REPACK_TIER_SEGMENTS)
			is_due = s->is_victim = true;
	}
	return is_due;
}

static bool mark_garbage(struct zone_store *store)
{
	uint64_t garbage = 0, live = 0;
	bool is_due = false;
	for (size_t i = 0; i < zone_store_segments(store); i++) {
		const struct store_segment *s = zone_store_segment(store, i);
		if (!is_candidate(s))
			continue;
		garbage += garbage_bytes(s);
		live += s->live_bytes;
	}
	if (garbage <= MAX(REPACK_GARBAGE_BYTES, live / 4))
		return false;
	for (size_t i = 0; i < zone_store_segments(store); i++) {
		struct store_segment *s = zone_store_segment(store, i);
		/* Half of the average is worth it: those hold most of the garbage. */
		if (is_candidate(s) && garbage_bytes(s) * live * 2 > garbage * s->live_bytes)
			is_due = s->is_victim = true;
	}
	return is_due;
}

bool repack_is_due(struct zone_store *store)
{
	for (size_t i = 0; i < zone_store_segments(store); i++)
		zone_store_segment(store, i)->is_victim = false;
	bool tiers = mark_full_tiers(store), garbage = mark_garbage(store);
	return tiers || garbage;
}

struct packing {
	struct zone_store *store;
	struct segment_write write;
	struct zone_item **item; /* in the order of the images */
	uint32_t count, capacity;
	uint64_t zones, bytes;
};

/* Puts the finished segment into the store and moves its zones to it. */
static enum err flush(struct packing *p, uint32_t *next_segment_id)
{
	int fd;
	struct segment *segment;
	struct store_segment *s;
	struct segment_notes_reader notes;
	const char *why;
	size_t notes_bytes;
	if (p->count == 0)
		return ERR_OK;
	enum err err = segment_write_finish(&p->write, (*next_segment_id)++, &fd, &segment, &why);
	if (err != ERR_OK)
		return err;
	zone_store_lock(p->store);
	err = zone_store_add_segment(p->store, segment, fd, &s);
	if (err == ERR_OK) {
		const void *notes_at = segment_notes(segment, &notes_bytes);
		ASSERT(segment_images(segment) == p->count && segment_notes_open(&notes, notes_at, notes_bytes, p->count));
		for (uint32_t i = 0; i < p->count; i++) {
			uint64_t offset;
			const struct zone_image *image = segment_image(segment, i, &offset);
			zone_item_serve(p->item[i], s, image, offset, segment_notes_next(&notes));
		}
	}
	zone_store_unlock(p->store);
	if (err != ERR_OK) {
		segment_put(segment);
		close(fd);
		return err;
	}
	p->bytes += segment_bytes(segment);
	p->zones += p->count;
	p->count = 0;
	return ERR_OK;
}

static enum err pack(struct packing *p, struct zone_item *item, uint32_t *next_segment_id)
{
	void *image, *note;
	uint64_t offset;
	enum err err = ERR_OK;
	if (p->count == p->capacity) {
		uint32_t capacity = p->capacity ? p->capacity * 2 : 64;
		struct zone_item **grown = realloc(p->item, capacity * sizeof(struct zone_item *));
		if (!grown)
			return ERR_NOMEM;
		p->item = grown;
		p->capacity = capacity;
	}
	size_t image_bytes = (size_t)item->image->size_bytes, note_bytes = item->note->bytes;
	if (!segment_write_has_room(&p->write, image_bytes, note_bytes))
		err = flush(p, next_segment_id);
	if (err == ERR_OK)
		err = segment_write_reserve(&p->write, image_bytes, note_bytes, &image, &note);
	if (err != ERR_OK)
		return err;
	memcpy(image, item->image, image_bytes);
	memcpy(note, item->note, note_bytes);
	segment_write_commit(&p->write, image_bytes, note_bytes, &offset);
	p->item[p->count++] = item;
	return ERR_OK;
}

enum err repack_run(struct zone_store *store, uint32_t *next_segment_id)
{
	struct packing p = { .store = store };
	enum err err = ERR_OK;
	segment_write_init(&p.write);
	for (uint32_t i = 0; i < zone_store_zones(store) && err == ERR_OK; i++) {
		struct zone_item *item = zone_store_item(store, i);
		if (item->segment && item->segment->is_victim && item->note && !item->is_unchecked)
			err = pack(&p, item, next_segment_id);
	}
	if (err == ERR_OK)
		err = flush(&p, next_segment_id);
	segment_write_fini(&p.write);
	free(p.item);
	if (err == ERR_OK)
		log_write(M_ZONE_REPACKED, "%" PRIu64 " zones in %" PRIu64 " KiB", p.zones, p.bytes / 1024);
	else
		log_write(M_ZONE_MEMORY, "segments can't be written anew: %s", err_text(err));
	return err;
}
