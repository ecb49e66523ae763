/* SPDX-License-Identifier: Apache-2.0 */
/* publish_adopt.c: from the supervisor's descriptors to a served set and a store that knows where everything is. */
#include "slowpath/zone/publish_private.h"
#include "dns/name.h"

#include <stdlib.h>

#define THREADS_MAX 64u

struct verify {
	const struct publish_kept *kept;
	struct segment **segment;
	_Atomic size_t next;
	_Atomic int err; /* enum err of the first that failed */
	const char *_Atomic why;
};

static void *verify_some(void *user)
{
	struct verify *v = user;
	for (;;) {
		size_t i = atomic_fetch_add_explicit(&v->next, 1, memory_order_relaxed);
		if (i >= v->kept->segment_count || atomic_load_explicit(&v->err, memory_order_relaxed) != ERR_OK)
			return NULL;
		const char *why = "";
		const struct publish_kept_segment *k = &v->kept->segment[i];
		enum err err = k->is_verified ? segment_attach_verified(&v->segment[i], k->fd, &why)
					      : segment_attach(&v->segment[i], k->fd, &why);
		if (err == ERR_OK && segment_id(v->segment[i]) != k->id) {
			why = "a segment with another id than it was announced with";
			err = ERR_CORRUPT;
		}
		if (err != ERR_OK) {
			atomic_store_explicit(&v->why, why, memory_order_relaxed);
			atomic_store_explicit(&v->err, (int)err, memory_order_relaxed);
		}
	}
}

static enum err verify_segments(struct segment **segment, const struct publish_kept *kept, unsigned threads, const char **why)
{
	struct verify v = { .kept = kept, .segment = segment };
	pthread_t helper[THREADS_MAX];
	unsigned helpers = 0, wanted = (unsigned)MIN((uint64_t)MIN(MAX(threads, 1u), THREADS_MAX), kept->segment_count);
	while (helpers + 1 < wanted && pthread_create(&helper[helpers], NULL, verify_some, &v) == 0)
		helpers++;
	verify_some(&v);
	for (unsigned i = 0; i < helpers; i++)
		pthread_join(helper[i], NULL);
	enum err err = (enum err)atomic_load(&v.err);
	if (err != ERR_OK)
		*why = atomic_load(&v.why);
	return err;
}

/* --- the store ------------------------------------------------------------------------------------------------------ */

struct noting {
	struct zone_store *store;
	uint32_t exact; /* zones of the map that the store has, and will have as the map has them */
};

static void note_image(void *user, const uint8_t *name, const struct zone_view *view)
{
	struct noting *n = user;
	struct zone_item *item = zone_store_find(n->store, name);
	/* A zone with deltas is more than its base: only the journal could tell what; it is loaded afresh. */
	if (!item || view->delta_count != 0)
		return;
	item->image = view->base;
	n->exact++;
}

/* Serves every image of the segment that note_image found to be a configured zone's. */
static void serve_segment(struct zone_store *store, struct store_segment *s)
{
	struct segment_notes_reader notes;
	size_t notes_bytes;
	const void *notes_at = segment_notes(s->segment, &notes_bytes);
	bool has_notes = segment_notes_open(&notes, notes_at, notes_bytes, segment_images(s->segment));
	for (uint32_t i = 0; i < segment_images(s->segment); i++) {
		uint64_t offset;
		const struct zone_image *image = segment_image(s->segment, i, &offset);
		const struct segment_note *note = has_notes ? segment_notes_next(&notes) : NULL;
		struct zone_item *item =
			image->apex ? zone_store_find(store, zone_node_name(zone_ptr(image, image->apex))) : NULL;
		if (item && item->image == image && !item->segment)
			zone_item_serve(item, s, image, offset, note);
	}
}

static enum err take_segments(struct publisher *p, struct zone_store *store)
{
	enum err err = ERR_OK;
	for (size_t i = 0; i < p->adopted_count && err == ERR_OK; i++) {
		struct store_segment *s;
		const char *why;
		err = segment_list(p->adopted[i], &why);
		if (err == ERR_OK)
			err = zone_store_add_segment(store, p->adopted[i], -1, &s);
		if (err != ERR_OK)
			break;
		p->adopted[i] = NULL;
		serve_segment(store, s);
	}
	for (uint32_t i = 0; i < zone_store_zones(store); i++) {
		struct zone_item *item = zone_store_item(store, i);
		if (!item->segment)
			item->image = NULL; /* note_image set it, and we did not get as far as its segment */
	}
	return err;
}

/* Segments that the store has are not orphans. */
static void find_orphans(struct publisher *p, const struct zone_store *store)
{
	size_t left = 0;
	for (size_t i = 0; i < p->orphan_count; i++) {
		bool is_taken = false;
		for (size_t n = 0; n < zone_store_segments(store) && !is_taken; n++)
			is_taken = zone_store_segment(store, n)->id == p->orphan[i];
		if (!is_taken)
			p->orphan[left++] = p->orphan[i];
	}
	p->orphan_count = left;
}

void publisher_drop_adopted(struct publisher *p)
{
	for (size_t i = 0; i < p->adopted_count; i++)
		segment_put(p->adopted[i]);
	free(p->adopted);
	p->adopted = NULL;
	p->adopted_count = 0;
}

enum err publisher_adopt_store(struct publisher *p, struct zone_store *store)
{
	struct noting noting = { .store = store };
	enum err err = ERR_OK;
	zone_store_lock(store);
	if (p->adopted) {
		zone_set_each(p->zones, note_image, &noting);
		err = take_segments(p, store);
		/* The next map can be a change of this one. */
		if (err == ERR_OK && noting.exact == zone_store_zones(store) && noting.exact == zone_set_zones(p->zones))
			zone_store_settle(store);
	}
	find_orphans(p, store);
	zone_store_unlock(store);
	publisher_drop_adopted(p);
	return err;
}

enum err publisher_drop_orphans(struct publisher *p)
{
	enum err err = ERR_OK;
	while (p->orphan_count && err == ERR_OK)
		err = publisher_drop(p, p->orphan[--p->orphan_count]);
	return err;
}

/* --- the way up to serving --------------------------------------------------------------------------------------------- */

static enum err adopt(struct publisher *p, const struct publish_kept *kept, unsigned threads, const char **why)
{
	struct zone_set *zones;
	enum err err = verify_segments(p->adopted, kept, threads, why);
	if (err == ERR_OK)
		err = kept->is_map_verified ? zone_set_attach_verified(&zones, kept->map_fd, p->adopted, kept->segment_count, why)
					    : zone_set_attach(&zones, kept->map_fd, p->adopted, kept->segment_count, why);
	if (err != ERR_OK)
		return err;
	if (zone_set_generation(zones) != kept->generation) {
		*why = "a map of another generation than it was announced with";
		zone_set_release(zones);
		return ERR_CORRUPT;
	}
	*why = "out of memory";
	err = publisher_serve(p, zones);
	if (err != ERR_OK)
		zone_set_release(zones);
	return err;
}

enum err publisher_adopt(struct publisher *p, const struct publish_kept *kept, unsigned threads, const char **why)
{
	p->orphan = calloc(kept->segment_count + 1, sizeof(*p->orphan));
	p->adopted = calloc(kept->segment_count + 1, sizeof(struct segment *));
	*why = "out of memory";
	enum err err = p->orphan && p->adopted ? ERR_OK : ERR_NOMEM;
	for (size_t i = 0; i < kept->segment_count; i++) {
		p->next_segment_id = MAX(p->next_segment_id, kept->segment[i].id + 1);
		if (err == ERR_OK)
			p->orphan[p->orphan_count++] = kept->segment[i].id;
	}
	if (err == ERR_OK && kept->map_fd < 0) {
		*why = "no map was kept";
		err = ERR_NOTFOUND;
	}
	if (err == ERR_OK) {
		p->adopted_count = kept->segment_count;
		err = adopt(p, kept, threads, why);
	}
	p->generation = MAX(p->generation, kept->generation);
	if (err != ERR_OK) {
		publisher_drop_adopted(p);
		return err;
	}
	return publisher_tell(p, (struct link_msg){ .type = LINK_LIVE, .a = LINK_PART_SLOWPATH, .generation = kept->generation },
			      -1);
}
