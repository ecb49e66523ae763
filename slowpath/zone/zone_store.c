/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/zone_store.h"
#include "base/clock.h"
#include "dns/name.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define BUCKETS_MIN 16u
#define PATH_MAX_BYTES 4096u

struct zone_store {
	pthread_mutex_t lock;
	struct zone_item **item;
	uint32_t count, capacity;
	struct zone_item **bucket;
	uint32_t bucket_mask;
	struct zone_item *changed; /* through changed_next_: the items of changed_round */
	uint64_t changed_round;
	bool is_reshaped;
	struct store_segment **segment; /* owned one by one: items point to them */
	size_t segment_count, segment_capacity;
};

enum err zone_store_create(struct zone_store **out)
{
	struct zone_store *s = calloc(1, sizeof(*s));
	if (!s)
		return ERR_NOMEM;
	s->bucket_mask = BUCKETS_MIN - 1;
	s->changed_round = 1;
	s->is_reshaped = true;
	s->bucket = calloc(BUCKETS_MIN, sizeof(struct zone_item *));
	if (!s->bucket) {
		free(s);
		return ERR_NOMEM;
	}
	pthread_mutex_init(&s->lock, NULL);
	*out = s;
	return ERR_OK;
}

/* --- changes -------------------------------------------------------------------------------------------------------- */

static void note_change(struct zone_item *item)
{
	struct zone_store *s = item->store_;
	if (s->is_reshaped || item->changed_round_ == s->changed_round)
		return;
	item->changed_round_ = s->changed_round;
	item->changed_next_ = s->changed;
	s->changed = item;
}

static void note_shape(struct zone_store *s)
{
	s->is_reshaped = true;
	s->changed = NULL;
}

bool zone_store_is_reshaped(const struct zone_store *s) { return s->is_reshaped; }

struct zone_item *zone_store_next_changed(const struct zone_store *s, const struct zone_item *before)
{
	return before ? before->changed_next_ : s->changed;
}

void zone_store_settle(struct zone_store *s)
{
	s->is_reshaped = false;
	s->changed = NULL;
	s->changed_round++;
}

static void free_item(struct zone_item *item)
{
	zone_item_unload(item);
	free(item->fault);
	free(item);
}

void zone_store_destroy(struct zone_store *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		free_item(s->item[i]);
	while (s->segment_count)
		zone_store_drop_segment(s, s->segment_count - 1);
	pthread_mutex_destroy(&s->lock);
	free(s->segment);
	free(s->bucket);
	free(s->item);
	free(s);
}

void zone_store_lock(struct zone_store *s) { pthread_mutex_lock(&s->lock); }
void zone_store_unlock(struct zone_store *s) { pthread_mutex_unlock(&s->lock); }

/* --- zones ---------------------------------------------------------------------------------------------------------- */

static struct zone_item **place_of(const struct zone_store *s, uint64_t hash, const uint8_t *lower, size_t bytes)
{
	struct zone_item **at = &s->bucket[(uint32_t)hash & s->bucket_mask];
	while (*at && ((*at)->hash != hash || (*at)->name_bytes != bytes || memcmp((*at)->name, lower, bytes) != 0))
		at = &(*at)->next_;
	return at;
}

struct zone_item *zone_store_find(const struct zone_store *s, const uint8_t *name)
{
	uint8_t lower[NAME_MAX_BYTES];
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	if (bytes == 0)
		return NULL;
	name_lower(lower, name, bytes);
	return *place_of(s, name_hash(lower, bytes), lower, bytes);
}

static enum err grow_items(struct zone_store *s)
{
	uint32_t capacity = s->capacity ? s->capacity + s->capacity / 2 + 1 : 8;
	struct zone_item **item = realloc(s->item, capacity * sizeof(struct zone_item *));
	if (!item)
		return ERR_NOMEM;
	s->item = item;
	s->capacity = capacity;
	return ERR_OK;
}

static enum err grow_buckets(struct zone_store *s)
{
	uint32_t mask = s->bucket_mask * 2 + 1;
	struct zone_item **bucket = calloc((size_t)mask + 1, sizeof(struct zone_item *));
	if (!bucket)
		return ERR_NOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		struct zone_item *item = s->item[i];
		item->next_ = bucket[(uint32_t)item->hash & mask];
		bucket[(uint32_t)item->hash & mask] = item;
	}
	free(s->bucket);
	s->bucket = bucket;
	s->bucket_mask = mask;
	return ERR_OK;
}

enum err zone_store_add(struct zone_store *s, const uint8_t *name, const char *file)
{
	size_t name_bytes = name_wire_bytes(name, NAME_MAX_BYTES), file_bytes = strlen(file) + 1;
	if (name_bytes == 0)
		return ERR_ARGUMENT;
	if (file_bytes > PATH_MAX_BYTES)
		return ERR_RANGE;
	if (s->count == s->capacity && grow_items(s) != ERR_OK)
		return ERR_NOMEM;
	if (s->count > s->bucket_mask && grow_buckets(s) != ERR_OK)
		return ERR_NOMEM;
	struct zone_item *item = calloc(1, sizeof(*item) + name_bytes + file_bytes);
	if (!item)
		return ERR_NOMEM;
	name_lower(item->name, name, name_bytes);
	item->name_bytes = (uint8_t)name_bytes;
	item->hash = name_hash(item->name, name_bytes);
	item->file = memcpy(item->name + name_bytes, file, file_bytes);
	struct zone_item **at = place_of(s, item->hash, item->name, name_bytes);
	if (*at) {
		free(item);
		return ERR_EXISTS;
	}
	*at = item;
	item->store_ = s;
	note_shape(s);
	item->index = s->count;
	s->item[s->count++] = item;
	return ERR_OK;
}

enum err zone_store_remove(struct zone_store *s, const uint8_t *name)
{
	struct zone_item *item = zone_store_find(s, name);
	if (!item)
		return ERR_NOTFOUND;
	*place_of(s, item->hash, item->name, item->name_bytes) = item->next_;
	note_shape(s);
	s->item[item->index] = s->item[--s->count];
	s->item[item->index]->index = item->index;
	free_item(item);
	return ERR_OK;
}

uint32_t zone_store_zones(const struct zone_store *s) { return s->count; }

struct zone_item *zone_store_item(const struct zone_store *s, uint32_t index)
{
	ASSERT(index < s->count);
	return s->item[index];
}

enum zone_state zone_item_state(const struct zone_item *item)
{
	if (item->segment && !item->is_unchecked)
		return item->fault_errors ? ZONE_STALE : ZONE_SERVED;
	return item->fault_errors ? ZONE_BROKEN : ZONE_PENDING;
}

const char *zone_state_text(enum zone_state state)
{
	static const char *const text[] = {
		[ZONE_PENDING] = "pending", [ZONE_SERVED] = "served", [ZONE_STALE] = "stale", [ZONE_BROKEN] = "broken"
	};
	return text[state];
}

struct zone_store_totals zone_store_totals(const struct zone_store *s)
{
	struct zone_store_totals t = { .zones = s->count, .segments = s->segment_count };
	for (uint32_t i = 0; i < s->count; i++) {
		enum zone_state state = zone_item_state(s->item[i]);
		t.served += state == ZONE_SERVED || state == ZONE_STALE;
		t.stale += state == ZONE_STALE;
		t.broken += state == ZONE_BROKEN;
		t.pending += state == ZONE_PENDING;
		if (s->item[i]->image)
			t.records += s->item[i]->image->rr_count;
	}
	for (size_t i = 0; i < s->segment_count; i++) {
		t.segment_bytes += segment_bytes(s->segment[i]->segment);
		t.live_bytes += s->segment[i]->live_bytes;
	}
	return t;
}

/* --- segments ------------------------------------------------------------------------------------------------------- */

enum err zone_store_add_segment(struct zone_store *s, struct segment *take, int fd, struct store_segment **out)
{
	if (s->segment_count >= ZONE_SET_MAX_SEGMENTS)
		return ERR_NOSPACE;
	if (s->segment_count == s->segment_capacity) {
		size_t capacity = s->segment_capacity ? s->segment_capacity * 2 : 8;
		struct store_segment **grown = realloc(s->segment, capacity * sizeof(struct store_segment *));
		if (!grown)
			return ERR_NOMEM;
		s->segment = grown;
		s->segment_capacity = capacity;
	}
	struct store_segment *segment = calloc(1, sizeof(*segment));
	if (!segment)
		return ERR_NOMEM;
	*segment = (struct store_segment){ .segment = take, .id = segment_id(take), .fd = fd, .is_published = fd < 0 };
	s->segment[s->segment_count++] = segment;
	*out = segment;
	return ERR_OK;
}

size_t zone_store_segments(const struct zone_store *s) { return s->segment_count; }

struct store_segment *zone_store_segment(const struct zone_store *s, size_t index)
{
	ASSERT(index < s->segment_count);
	return s->segment[index];
}

void zone_store_drop_segment(struct zone_store *s, size_t index)
{
	struct store_segment *gone = zone_store_segment(s, index);
	ASSERT(gone->live_zones == 0);
	s->segment[index] = s->segment[--s->segment_count];
	segment_put(gone->segment);
	if (gone->fd >= 0)
		close(gone->fd);
	free(gone);
}

/* --- what is served ------------------------------------------------------------------------------------------------- */

void zone_item_unload(struct zone_item *item)
{
	if (!item->segment)
		return;
	note_change(item);
	item->segment->live_zones--;
	item->segment->live_bytes -= item->image->size_bytes;
	item->segment = NULL;
	item->image = NULL;
	item->note = NULL;
	item->offset_bytes = 0;
	item->is_unchecked = false;
}

void zone_item_serve(struct zone_item *item, struct store_segment *segment, const struct zone_image *image, uint64_t offset_bytes,
		     const struct segment_note *note)
{
	zone_item_unload(item);
	note_change(item);
	item->segment = segment;
	item->image = image;
	item->note = note;
	item->offset_bytes = offset_bytes;
	segment->live_zones++;
	segment->live_bytes += image->size_bytes;
}

void zone_item_note_checked(struct zone_item *item)
{
	if (item->is_unchecked)
		note_change(item);
	item->is_unchecked = false;
}

void zone_item_fail(struct zone_item *item, char *take_fault, uint32_t errors)
{
	free(item->fault);
	item->fault = take_fault;
	item->fault_errors = MAX(errors, 1u);
	item->fault_at_s = clock_wall_s();
}

void zone_item_clear_fault(struct zone_item *item)
{
	free(item->fault);
	item->fault = NULL;
	item->fault_errors = 0;
	item->fault_at_s = 0;
}
