/* SPDX-License-Identifier: Apache-2.0 */
/* zone_set_map.c: the writers of zone maps. Entries are laid out as they come; only the slots' refs wait for zone_map_build_finish,
 * which knows where the entries begin. */
#include "table/zone_set_private.h"
#include "dns/name.h"

#include <stdlib.h>

#define SLOTS_MIN 8u
#define ZONES_MAX (1u << 30)

struct zone_map_build {
	uint64_t generation;
	uint32_t zone_count;
	uint32_t slot_mask;
	struct zone_slot *slot; /* node: offset / 8 in entries, + 1 */
	uint8_t *entries;
	size_t bytes, capacity_bytes;
	uint64_t label_counts[2];
};

enum err zone_map_build_create(struct zone_map_build **out, uint64_t generation)
{
	struct zone_map_build *b = calloc(1, sizeof(*b));
	if (!b)
		return ERR_NOMEM;
	b->generation = generation;
	b->slot_mask = SLOTS_MIN - 1;
	b->slot = calloc(SLOTS_MIN, sizeof(*b->slot));
	if (!b->slot) {
		free(b);
		return ERR_NOMEM;
	}
	*out = b;
	return ERR_OK;
}

void zone_map_build_destroy(struct zone_map_build *b)
{
	if (!b)
		return;
	free(b->entries);
	free(b->slot);
	free(b);
}

static const struct zone_map_entry *entry_of(const struct zone_map_build *b, zone_ref node)
{
	return (const struct zone_map_entry *)(b->entries + (size_t)(node - 1) * ZONE_REF_UNIT);
}

/* The slot that holds the name, or the empty one where it belongs. There is always an empty one. */
static struct zone_slot *slot_of(const struct zone_map_build *b, uint64_t hash, const uint8_t *lower, size_t bytes)
{
	for (uint32_t i = (uint32_t)hash & b->slot_mask;; i = (i + 1) & b->slot_mask) {
		struct zone_slot *s = &b->slot[i];
		if (!s->node)
			return s;
		if (s->tag != (uint32_t)(hash >> 32))
			continue;
		const struct zone_map_entry *e = entry_of(b, s->node);
		if (e->hash == hash && e->name_bytes == bytes && memcmp(zone_map_entry_name(e), lower, bytes) == 0)
			return s;
	}
}

static enum err grow_slots(struct zone_map_build *b)
{
	uint32_t mask = b->slot_mask * 2 + 1;
	struct zone_slot *slot = calloc((size_t)mask + 1, sizeof(*slot));
	if (!slot)
		return ERR_NOMEM;
	for (uint32_t i = 0; i <= b->slot_mask; i++) {
		if (!b->slot[i].node)
			continue;
		uint32_t at = (uint32_t)entry_of(b, b->slot[i].node)->hash & mask;
		while (slot[at].node)
			at = (at + 1) & mask;
		slot[at] = b->slot[i];
	}
	free(b->slot);
	b->slot = slot;
	b->slot_mask = mask;
	return ERR_OK;
}

static enum err reserve(struct zone_map_build *b, size_t more_bytes)
{
	size_t need = b->bytes + more_bytes;
	if (need <= b->capacity_bytes)
		return ERR_OK;
	size_t capacity = MAX(need, MAX(b->capacity_bytes + b->capacity_bytes / 2, (size_t)4096));
	uint8_t *entries = realloc(b->entries, capacity);
	if (!entries)
		return ERR_NOMEM;
	b->entries = entries;
	b->capacity_bytes = capacity;
	return ERR_OK;
}

static enum err add(struct zone_map_build *b, const uint8_t *name, const struct zone_map_image *image, unsigned image_count,
		    int64_t serve_until_s, uint8_t flags)
{
	uint8_t lower[NAME_MAX_BYTES];
	size_t name_bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	if (name_bytes == 0)
		return ERR_ARGUMENT;
	if (b->zone_count >= ZONES_MAX)
		return ERR_NOSPACE;
	name_lower(lower, name, name_bytes);
	uint64_t hash = name_hash(lower, name_bytes);
	size_t bytes = zone_map_entry_bytes(image_count - 1, (unsigned)name_bytes);
	if (((uint64_t)b->zone_count + 1) * 4 > ((uint64_t)b->slot_mask + 1) * 3 && grow_slots(b) != ERR_OK)
		return ERR_NOMEM;
	struct zone_slot *slot = slot_of(b, hash, lower, name_bytes);
	if (slot->node)
		return ERR_EXISTS;
	if (reserve(b, bytes) != ERR_OK)
		return ERR_NOMEM;
	struct zone_map_entry *e = (struct zone_map_entry *)(b->entries + b->bytes);
	unsigned labels = name_labels(lower);
	memset(e, 0, bytes);
	e->hash = hash;
	e->serve_until_s = serve_until_s;
	e->index = b->zone_count++;
	e->name_bytes = (uint8_t)name_bytes;
	e->labels = (uint8_t)labels;
	e->delta_count = (uint8_t)(image_count - 1);
	e->flags = flags;
	memcpy(e->image, image, image_count * sizeof(*image));
	memcpy((uint8_t *)zone_map_entry_name(e), lower, name_bytes);
	*slot = (struct zone_slot){ .tag = (uint32_t)(hash >> 32), .node = (zone_ref)(b->bytes / ZONE_REF_UNIT) + 1 };
	b->bytes += bytes;
	b->label_counts[labels >> 6] |= 1ull << (labels & 63);
	return ERR_OK;
}

enum err zone_map_build_add_images(struct zone_map_build *b, const uint8_t *name, const struct zone_map_image *image,
				   unsigned image_count, int64_t serve_until_s)
{
	if (image_count == 0 || image_count > 1 + ZONE_MAX_DELTAS)
		return ERR_ARGUMENT;
	return add(b, name, image, image_count, serve_until_s, 0);
}

enum err zone_map_build_add(struct zone_map_build *b, const uint8_t *name, uint32_t segment, uint64_t offset_bytes,
			    int64_t serve_until_s)
{
	if (offset_bytes % ZONE_REF_UNIT || offset_bytes / ZONE_REF_UNIT > UINT32_MAX)
		return ERR_ARGUMENT;
	struct zone_map_image image = { .segment = segment, .image = (zone_ref)(offset_bytes / ZONE_REF_UNIT) };
	return add(b, name, &image, 1, serve_until_s, 0);
}

enum err zone_map_build_add_unusable(struct zone_map_build *b, const uint8_t *name)
{
	return add(b, name, &(struct zone_map_image){ 0 }, 1, 0, ZONE_MAP_UNUSABLE);
}

static size_t entries_offset(const struct zone_map_build *b)
{
	return sizeof(struct zone_map) + ((size_t)b->slot_mask + 1) * sizeof(struct zone_slot);
}

size_t zone_map_build_bytes(const struct zone_map_build *b) { return entries_offset(b) + b->bytes; }

enum err zone_map_build_finish(struct zone_map_build *b, void *out)
{
	size_t bytes = zone_map_build_bytes(b), entries = entries_offset(b);
	if (bytes / ZONE_REF_UNIT > UINT32_MAX)
		return ERR_NOSPACE;
	struct zone_map *map = out;
	*map = (struct zone_map){
		.magic = ZONE_MAP_MAGIC,
		.version = ZONE_MAP_VERSION,
		.size_bytes = bytes,
		.generation = b->generation,
		.zone_count = b->zone_count,
		.slot_mask = b->slot_mask,
		.slots = sizeof(struct zone_map) / ZONE_REF_UNIT,
		.entries = (zone_ref)(entries / ZONE_REF_UNIT),
		.label_counts = { b->label_counts[0], b->label_counts[1] },
	};
	struct zone_slot *slot = (struct zone_slot *)(map + 1);
	for (uint32_t i = 0; i <= b->slot_mask; i++) {
		if (!b->slot[i].node)
			continue;
		uint32_t home = (uint32_t)entry_of(b, b->slot[i].node)->hash & b->slot_mask;
		map->max_probe = MAX(map->max_probe, ((i - home) & b->slot_mask) + 1);
		slot[i] = (struct zone_slot){ .tag = b->slot[i].tag, .node = map->entries + b->slot[i].node - 1 };
	}
	if (b->bytes)
		memcpy((uint8_t *)out + entries, b->entries, b->bytes);
	return ERR_OK;
}

/* --- a copy, changed ------------------------------------------------------------------------------------------------ */

void zone_map_renew(void *map, uint64_t generation) { ((struct zone_map *)map)->generation = generation; }

enum err zone_map_change(void *map, const uint8_t *name, const struct zone_map_image *image)
{
	const struct zone_map *m = map;
	const struct zone_slot *slots = (const struct zone_slot *)(m + 1);
	uint8_t lower[NAME_MAX_BYTES];
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	if (bytes == 0)
		return ERR_NOTFOUND;
	name_lower(lower, name, bytes);
	uint64_t hash = name_hash(lower, bytes);
	for (uint32_t i = 0; i < m->max_probe; i++) {
		struct zone_slot slot = slots[((uint32_t)hash + i) & m->slot_mask];
		if (!slot.node)
			return ERR_NOTFOUND;
		struct zone_map_entry *e = (struct zone_map_entry *)((uint8_t *)map + (size_t)slot.node * ZONE_REF_UNIT);
		if (e->hash != hash || e->name_bytes != bytes || memcmp(zone_map_entry_name(e), lower, bytes) != 0)
			continue;
		if (e->delta_count)
			return ERR_UNSUPPORTED;
		e->image[0] = image ? *image : (struct zone_map_image){ 0 };
		e->flags = image ? 0 : ZONE_MAP_UNUSABLE;
		e->serve_until_s = 0;
		return ERR_OK;
	}
	return ERR_NOTFOUND;
}
