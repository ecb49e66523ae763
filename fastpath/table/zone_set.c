/* SPDX-License-Identifier: Apache-2.0 */
/* zone_set.c: attaching a zone map: checked, in one walk over the entries, then turned into views of plain pointers. A map that comes
 * after another is compared with it: memory runs faster than checks that jump to a slot and to an image for each entry. */
#include "table/zone_set_private.h"
#include "dns/name_inline.h"
#include "table/shm.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PREFETCH_AHEAD 12
#define HUGE_PAGE_BYTES (2u << 20)

static const char *header_fault(const struct zone_map *m, size_t bytes)
{
	if (bytes < sizeof(*m) || m->magic != ZONE_MAP_MAGIC)
		return "not a zone map";
	if (m->version != ZONE_MAP_VERSION)
		return "zone map of another layout version";
	if (m->size_bytes != bytes || bytes % ZONE_REF_UNIT)
		return "zone map of another size than its header says";
	uint64_t slots = (uint64_t)m->slot_mask + 1;
	if (slots & (slots - 1))
		return "the zone map's slots are not a power of two";
	if (m->slots != sizeof(*m) / ZONE_REF_UNIT || m->entries != m->slots + slots || m->entries > bytes / ZONE_REF_UNIT)
		return "the zone map's slots reach beyond it";
	if ((uint64_t)m->zone_count * 4 > slots * 3 || m->max_probe > slots)
		return "the zone map's slots are too full";
	return NULL;
}

/* --- segments ----------------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	uint32_t x = (*(struct segment *const *)a)->id, y = (*(struct segment *const *)b)->id;
	return (x > y) - (x < y);
}

struct resolver {		  /* finds images of segments; lives during attach */
	struct segment **segment; /* ascending by id */
	uint32_t *uses;
	uint32_t *cursor; /* per segment: where the last image was found; entries mostly come in their order */
	size_t count, last;
	bool is_verified; /* what entries say is believed as far as it stays inside the segments */
};

static enum err resolver_init(struct resolver *r, struct segment *const *segments, size_t count, const char **why)
{
	*r = (struct resolver){ .count = count };
	r->segment = calloc(count + 1, sizeof(struct segment *));
	r->uses = calloc(count + 1, sizeof(uint32_t));
	r->cursor = calloc(count + 1, sizeof(uint32_t));
	if (!r->segment || !r->uses || !r->cursor) {
		*why = "out of memory";
		return ERR_NOMEM;
	}
	if (count)
		memcpy(r->segment, segments, count * sizeof(struct segment *));
	qsort(r->segment, count, sizeof(struct segment *), by_id);
	for (size_t i = 1; i < count; i++) {
		if (r->segment[i]->id == r->segment[i - 1]->id) {
			*why = "two segments of one id";
			return ERR_CORRUPT;
		}
	}
	return ERR_OK;
}

static void resolver_fini(struct resolver *r)
{
	free(r->segment);
	free(r->uses);
	free(r->cursor);
}

static bool resolver_segment(struct resolver *r, uint32_t id)
{
	if (r->last < r->count && r->segment[r->last]->id == id)
		return true;
	size_t low = 0, high = r->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (r->segment[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == r->count || r->segment[low]->id != id)
		return false;
	r->last = low;
	return true;
}

/* NULL unless an image begins exactly there. */
static const struct zone_image *resolver_image(struct resolver *r, struct zone_map_image at)
{
	if (!resolver_segment(r, at.segment))
		return NULL;
	struct segment *s = r->segment[r->last];
	const char *why;
	if (r->is_verified) {
		if ((size_t)at.image * ZONE_REF_UNIT + offsetof(struct zone_image, nsec3_salt) > s->images_end)
			return NULL;
		r->uses[r->last]++;
		return (const struct zone_image *)(s->map + (size_t)at.image * ZONE_REF_UNIT);
	}
	if (segment_list(s, &why) != ERR_OK)
		return NULL;
	uint32_t low = r->cursor[r->last], high = s->image_count;
	if (low >= s->image_count || s->image[low] != at.image) {
		low = 0;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			if (s->image[middle] < at.image)
				low = middle + 1;
			else
				high = middle;
		}
		if (low == s->image_count || s->image[low] != at.image)
			return NULL;
	}
	r->cursor[r->last] = low + 1;
	r->uses[r->last]++;
	return (const struct zone_image *)(s->map + (size_t)at.image * ZONE_REF_UNIT);
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* Whether name[0..bytes) is exactly one lower-cased wire name of so many labels. It is 8-byte aligned and padded to 8, by octets
 * that do not matter but must not look like capitals. */
static bool is_lower_name(const uint8_t *name, size_t bytes, unsigned labels)
{
	const uint64_t *word = (const uint64_t *)name;
	for (size_t i = 0; i < (bytes + 7) / 8; i++)
		if (zone_fold_word(word[i]) != word[i])
			return false;
	size_t at = 0;
	unsigned n = 0;
	for (; at < bytes && name[at] != 0; n++) { /* ends: every turn moves on */
		if (name[at] > NAME_MAX_LABEL_BYTES)
			return false;
		at += 1u + name[at];
	}
	return at + 1 == bytes && n == labels;
}

/* The entry at *at of the map, wholly inside it and right in itself; *at moves behind it. NULL with *why. */
static const struct zone_map_entry *next_entry(const struct zone_set *set, size_t *at, uint32_t index, const char **why)
{
	size_t left = set->map_bytes - *at;
	const struct zone_map_entry *e = (const struct zone_map_entry *)(set->map + *at);
	if (left < sizeof(*e) || e->delta_count > ZONE_MAX_DELTAS || left < zone_map_entry_bytes(e->delta_count, e->name_bytes)) {
		*why = "an entry reaches beyond the zone map";
		return NULL;
	}
	const uint8_t *name = zone_map_entry_name(e);
	if (!is_lower_name(name, e->name_bytes, e->labels)) {
		*why = "an entry's name is not a lower-cased name";
		return NULL;
	}
	if (name_hash_inline(name, e->name_bytes) != e->hash) {
		*why = "an entry's hash is not its name's";
		return NULL;
	}
	if (e->index != index || e->flags & ~ZONE_MAP_UNUSABLE || (e->flags && e->delta_count)) {
		*why = "an entry's index or flags are wrong";
		return NULL;
	}
	if (!(set->label_counts[e->labels >> 6] >> (e->labels & 63) & 1)) {
		*why = "an entry's label count is not announced";
		return NULL;
	}
	*at += zone_map_entry_bytes(e->delta_count, e->name_bytes);
	return e;
}

/* Slots lie anywhere, entries one behind the other: a cursor that runs PREFETCH_AHEAD entries in front fetches their slots. It
 * believes the lengths that it finds, as far as the map goes; they are checked when the walk gets there. */
static void prefetch_slot(const struct zone_set *set, size_t *ahead)
{
	if (set->map_bytes - *ahead < sizeof(struct zone_map_entry))
		return;
	const struct zone_map_entry *e = (const struct zone_map_entry *)(set->map + *ahead);
	size_t bytes = zone_map_entry_bytes(e->delta_count, e->name_bytes);
	__builtin_prefetch(&set->slots[(uint32_t)e->hash & set->slot_mask]);
	*ahead += MIN(bytes, set->map_bytes - *ahead);
}

static bool is_in_slots(const struct zone_set *set, const struct zone_map_entry *e)
{
	zone_ref ref = (zone_ref)(((const uint8_t *)e - set->map) / ZONE_REF_UNIT);
	for (uint32_t i = 0; i < set->max_probe; i++) {
		struct zone_slot slot = set->slots[((uint32_t)e->hash + i) & set->slot_mask];
		if (slot.node == ref)
			return slot.tag == (uint32_t)(e->hash >> 32);
		if (!slot.node)
			return false;
	}
	return false;
}

static bool is_zone_of(const struct zone_image *image, const struct zone_map_entry *e)
{
	if (image->apex_labels != e->labels || image->apex_bytes != e->name_bytes || !image->apex)
		return false;
	const struct zone_node *apex = zone_ptr(image, image->apex);
	return name_equal(zone_node_name(apex), zone_map_entry_name(e));
}

static enum err resolve_view(struct zone_view *view, const struct zone_image **delta, struct resolver *r,
			     const struct zone_map_entry *e, const char **why)
{
	*view = (struct zone_view){ .delta_count = e->delta_count, .serve_until_s = e->serve_until_s };
	if (e->flags & ZONE_MAP_UNUSABLE) {
		view->flags = ZONE_VIEW_UNUSABLE;
		return ERR_OK;
	}
	view->delta = e->delta_count ? delta : NULL;
	for (unsigned i = 0; i <= e->delta_count; i++) {
		const struct zone_image *image = resolver_image(r, e->image[i]);
		if (!image || (!r->is_verified && !is_zone_of(image, e))) {
			*why = image ? "an image of another zone than its entry" : "an entry names an image that is not there";
			return ERR_CORRUPT;
		}
		if (i == 0 && !r->is_verified && image->flags & ZONE_DELTA) {
			*why = "an entry's base is a delta";
			return ERR_CORRUPT;
		}
		if (i == 0)
			view->base = image;
		else
			delta[i - 1] = image;
	}
	return ERR_OK;
}

/* First walk: entries, slots, deltas counted. Each entry being in a slot, and no more slots used than entries, makes every
 * used slot the ref of an entry. */
static enum err check_entries(const struct zone_set *set, size_t entries, size_t *delta_total, const char **why)
{
	size_t at = entries, ahead = entries, deltas = 0;
	uint32_t used = 0;
	for (int i = 0; i < PREFETCH_AHEAD; i++)
		prefetch_slot(set, &ahead);
	for (uint32_t i = 0; i < set->zone_count; i++) {
		const struct zone_map_entry *e = next_entry(set, &at, i, why);
		if (!e)
			return ERR_CORRUPT;
		prefetch_slot(set, &ahead);
		if (!is_in_slots(set, e)) {
			*why = "an entry can't be found by its hash";
			return ERR_CORRUPT;
		}
		deltas += e->delta_count;
	}
	for (uint64_t i = 0; i <= set->slot_mask; i++)
		used += set->slots[i].node != 0;
	if (used != set->zone_count || at != set->map_bytes) {
		*why = "the zone map's slots and entries differ";
		return ERR_CORRUPT;
	}
	*delta_total = deltas;
	return ERR_OK;
}

static enum err resolve_entries(struct zone_set *set, size_t entries, struct resolver *r, const char **why)
{
	size_t at = entries, delta = 0;
	for (uint32_t i = 0; i < set->zone_count; i++) {
		const struct zone_map_entry *e = (const struct zone_map_entry *)(set->map + at);
		enum err err = resolve_view((struct zone_view *)&set->view[i], &set->delta[delta], r, e, why);
		if (err != ERR_OK)
			return err;
		delta += e->delta_count;
		at += zone_map_entry_bytes(e->delta_count, e->name_bytes);
	}
	return ERR_OK;
}

/* Uninitialised. Many views get huge pages if there are some: first touches of small ones would take longer than the checks. */
static struct zone_view *allocate_views(uint32_t count)
{
	size_t bytes = ((size_t)count + 1) * sizeof(struct zone_view);
	if (bytes < 2 * HUGE_PAGE_BYTES)
		return malloc(bytes);
	struct zone_view *view = aligned_alloc(HUGE_PAGE_BYTES, (bytes + HUGE_PAGE_BYTES - 1) & ~(size_t)(HUGE_PAGE_BYTES - 1));
	if (view)
		(void)madvise(view, bytes & ~(size_t)(HUGE_PAGE_BYTES - 1),
			      MADV_HUGEPAGE); /* the last, partly used one stays small */
	return view;
}

/* Of a map that was verified before. */
static enum err count_deltas(const struct zone_set *set, size_t entries, size_t *delta_total, const char **why)
{
	size_t at = entries;
	for (uint32_t i = 0; i < set->zone_count; i++) {
		const struct zone_map_entry *e = (const struct zone_map_entry *)(set->map + at);
		if (at + sizeof(*e) > set->map_bytes || e->index != i) {
			*why = "a verified zone map that is none";
			return ERR_CORRUPT;
		}
		*delta_total += e->delta_count;
		at += zone_map_entry_bytes(e->delta_count, e->name_bytes);
	}
	return ERR_OK;
}

static enum err allocate_arrays(struct zone_set *set, size_t deltas, const char **why)
{
	set->view = allocate_views(set->zone_count);
	set->delta = calloc(deltas + 1, sizeof(*set->delta));
	set->delta_count = deltas;
	if (set->view && set->delta)
		return ERR_OK;
	*why = "out of memory";
	return ERR_NOMEM;
}

static enum err fill_whole(struct zone_set *set, struct resolver *r, size_t entries, const char **why)
{
	size_t deltas = 0;
	enum err err = r->is_verified ? count_deltas(set, entries, &deltas, why) : check_entries(set, entries, &deltas, why);
	if (err == ERR_OK)
		err = allocate_arrays(set, deltas, why);
	return err == ERR_OK ? resolve_entries(set, entries, r, why) : err;
}

/* --- a map after another -------------------------------------------------------------------------------------------- */

/* Equal in everything but the generation and the entries. */
static bool is_like(const struct zone_set *set, const struct zone_set *before)
{
	if (set->map_bytes != before->map_bytes || !before->zone_count)
		return false;
	struct zone_map header = *(const struct zone_map *)set->map;
	header.generation = before->generation;
	size_t entries = (size_t)header.entries * ZONE_REF_UNIT;
	return memcmp(&header, before->map, sizeof(header)) == 0 &&
	       memcmp(set->map + sizeof(header), before->map + sizeof(header), entries - sizeof(header)) == 0;
}

/* Index in before->used; its entries were resolved, so it is there. */
static size_t used_index(const struct zone_set *before, uint32_t id)
{
	size_t low = 0, high = before->segment_count;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (before->used[middle].segment->id <= id)
			low = middle;
		else
			high = middle;
	}
	ASSERT(before->segment_count && before->used[low].segment->id == id);
	return low;
}

static bool is_same_name(const struct zone_map_entry *a, const struct zone_map_entry *b)
{
	return a->hash == b->hash && a->delta_count == b->delta_count && a->name_bytes == b->name_bytes &&
	       memcmp(zone_map_entry_name(a), zone_map_entry_name(b), a->name_bytes) == 0;
}

/* Checks and resolves the entries that differ; the others' views are copies. gone: images of before->used that are no longer named.
 * ERR_UNSUPPORTED: an entry of another size or name, so that nothing can be said about the slots. */
static enum err resolve_changes(struct zone_set *set, const struct zone_set *before, size_t entries, struct resolver *r,
				uint32_t *gone, const char **why)
{
	size_t at = entries, delta = 0;
	for (uint32_t i = 0; i < set->zone_count; i++) {
		const struct zone_map_entry *old = (const struct zone_map_entry *)(before->map + at);
		const struct zone_map_entry *e = (const struct zone_map_entry *)(set->map + at);
		size_t bytes = zone_map_entry_bytes(old->delta_count, old->name_bytes);
		if (likely(memcmp(old, e, bytes) == 0)) {
			at += bytes;
			delta += old->delta_count;
			continue;
		}
		if (!is_same_name(old, e))
			return ERR_UNSUPPORTED;
		if (!next_entry(set, &at, i, why))
			return ERR_CORRUPT;
		enum err err = resolve_view((struct zone_view *)&set->view[i], &set->delta[delta], r, e, why);
		if (err != ERR_OK)
			return err;
		for (unsigned k = 0; k <= old->delta_count && !(old->flags & ZONE_MAP_UNUSABLE); k++)
			gone[used_index(before, old->image[k].segment)]++;
		delta += old->delta_count;
	}
	return ERR_OK;
}

/* What unchanged entries name must be here, and the same. */
static enum err count_unchanged(const struct zone_set *before, const uint32_t *gone, struct resolver *r, const char **why)
{
	for (size_t i = 0; i < before->segment_count; i++) {
		uint32_t uses = before->used[i].uses - gone[i];
		if (!uses)
			continue;
		if (!resolver_segment(r, before->used[i].segment->id) || r->segment[r->last] != before->used[i].segment) {
			*why = "an entry names an image that is not there";
			return ERR_CORRUPT;
		}
		r->uses[r->last] += uses;
	}
	return ERR_OK;
}

static void copy_views(struct zone_set *set, const struct zone_set *before)
{
	struct zone_view *view = (struct zone_view *)set->view;
	memcpy(view, before->view, set->zone_count * sizeof(*view));
	if (!before->delta_count)
		return;
	memcpy(set->delta, before->delta, before->delta_count * sizeof(*set->delta));
	for (uint32_t i = 0; i < set->zone_count; i++)
		if (view[i].delta)
			view[i].delta = set->delta + (view[i].delta - before->delta);
}

static enum err fill_after(struct zone_set *set, const struct zone_set *before, struct resolver *r, size_t entries,
			   const char **why)
{
	if (!is_like(set, before))
		return ERR_UNSUPPORTED;
	uint32_t *gone = calloc(before->segment_count + 1, sizeof(*gone));
	*why = "out of memory";
	enum err err = gone ? allocate_arrays(set, before->delta_count, why) : ERR_NOMEM;
	if (err == ERR_OK) {
		copy_views(set, before);
		err = resolve_changes(set, before, entries, r, gone, why);
	}
	if (err == ERR_OK)
		err = count_unchanged(before, gone, r, why);
	free(gone);
	if (err == ERR_UNSUPPORTED) { /* the long way begins anew */
		memset(r->uses, 0, r->count * sizeof(*r->uses));
		free((struct zone_view *)set->view);
		free(set->delta);
		set->view = NULL;
		set->delta = NULL;
	}
	return err;
}

/* before: NULL, or what the map may be compared with. */
static enum err fill(struct zone_set *set, const struct zone_set *before, struct resolver *r, const char **why)
{
	const struct zone_map *m = (const struct zone_map *)set->map;
	const char *fault = header_fault(m, set->map_bytes);
	if (fault) {
		*why = fault;
		return ERR_CORRUPT;
	}
	set->slots = (const struct zone_slot *)(set->map + (size_t)m->slots * ZONE_REF_UNIT);
	set->slot_mask = m->slot_mask;
	set->max_probe = m->max_probe;
	set->zone_count = m->zone_count;
	set->generation = m->generation;
	set->label_counts[0] = m->label_counts[0];
	set->label_counts[1] = m->label_counts[1];
	size_t entries = (size_t)m->entries * ZONE_REF_UNIT;
	enum err err = before ? fill_after(set, before, r, entries, why) : ERR_UNSUPPORTED;
	if (err == ERR_UNSUPPORTED)
		err = fill_whole(set, r, entries, why);
	if (err != ERR_OK)
		return err;
	for (size_t i = 0; i < r->count; i++) {
		if (!r->uses[i])
			continue;
		segment_get(r->segment[i]);
		set->used[set->segment_count++] = (struct zone_set_segment){ r->segment[i], r->uses[i] };
	}
	return ERR_OK;
}

static struct zone_set *allocate(size_t segment_count)
{
	size_t bytes = sizeof(struct zone_set) + segment_count * sizeof(struct zone_set_segment);
	struct zone_set *set = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	if (set) {
		memset(set, 0, bytes);
		atomic_init(&set->references, 1);
	}
	return set;
}

static enum err attach(struct zone_set **out, const struct zone_set *before, bool is_verified, int map_fd,
		       struct segment *const *segments, size_t segment_count, const char **why)
{
	if (!shm_is_sealed(map_fd, true)) {
		*why = "the zone map is not sealed";
		return ERR_DENIED;
	}
	if (segment_count > ZONE_SET_MAX_SEGMENTS) {
		*why = "too many segments";
		return ERR_ARGUMENT;
	}
	struct zone_set *set = allocate(segment_count);
	if (!set) {
		*why = "out of memory";
		return ERR_NOMEM;
	}
	struct resolver r;
	enum err err = resolver_init(&r, segments, segment_count, why);
	if (err != ERR_OK)
		goto done;
	r.is_verified = is_verified;
	const void *map;
	err = shm_map(&map, &set->map_bytes, map_fd);
	if (err != ERR_OK) {
		*why = "the zone map can't be mapped";
		goto done;
	}
	set->map = map;
	err = fill(set, before, &r, why);
done:
	resolver_fini(&r);
	if (err != ERR_OK) {
		zone_set_release(set);
		return err;
	}
	*out = set;
	return ERR_OK;
}

enum err zone_set_attach(struct zone_set **out, int map_fd, struct segment *const *segments, size_t segment_count,
			 const char **why)
{
	return attach(out, NULL, false, map_fd, segments, segment_count, why);
}

enum err zone_set_attach_verified(struct zone_set **out, int map_fd, struct segment *const *segments, size_t segment_count,
				  const char **why)
{
	return attach(out, NULL, true, map_fd, segments, segment_count, why);
}

enum err zone_set_attach_after(struct zone_set **out, const struct zone_set *before, int map_fd, struct segment *const *segments,
			       size_t segment_count, const char **why)
{
	return attach(out, before, false, map_fd, segments, segment_count, why);
}

enum err zone_set_empty(struct zone_set **out)
{
	struct zone_set *set = allocate(0);
	if (!set)
		return ERR_NOMEM;
	*out = set;
	return ERR_OK;
}

struct zone_set *zone_set_get(const struct zone_set *set)
{
	struct zone_set *same = (struct zone_set *)set; /* only the count changes */
	atomic_fetch_add_explicit(&same->references, 1, memory_order_relaxed);
	return same;
}

void zone_set_release(struct zone_set *set)
{
	/* The release of every reference is met by the acquire of the last one. */
	if (!set || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < set->segment_count; i++)
		segment_put(set->used[i].segment);
	shm_unmap(set->map, set->map_bytes);
	free((struct zone_view *)set->view);
	free(set->delta);
	free(set);
}

uint64_t zone_set_generation(const struct zone_set *set) { return set->generation; }
uint32_t zone_set_zones(const struct zone_set *set) { return set->zone_count; }

const void *zone_set_map(const struct zone_set *set, size_t *map_bytes)
{
	*map_bytes = set->map_bytes;
	return set->map;
}

void zone_set_each(const struct zone_set *set, void (*each)(void *user, const uint8_t *name, const struct zone_view *view),
		   void *user)
{
	if (!set->zone_count)
		return;
	size_t at = (size_t)((const struct zone_map *)set->map)->entries * ZONE_REF_UNIT;
	for (uint32_t i = 0; i < set->zone_count; i++) {
		const struct zone_map_entry *e = (const struct zone_map_entry *)(set->map + at);
		each(user, zone_map_entry_name(e), &set->view[i]);
		at += zone_map_entry_bytes(e->delta_count, e->name_bytes);
	}
}
