/* SPDX-License-Identifier: Apache-2.0 */
/* The zones' list: compact memory and a look-up for names that stand twice, since there may be hundreds of thousands. */
#include "config/load.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_CHUNK_BYTES 4096u /* a few zones take no more than that */
#define CHUNK_BYTES (256u << 10)

struct zone_memory {
	struct zone_memory *next;
	size_t used, size;
	char bytes[];
};

/* Indexes into config.zone plus one, by hash of the name; open addressing, at most half full. */
struct zone_index {
	uint32_t *slots;
	size_t mask;
};

static const char *keep(struct loader *l, const void *bytes, size_t count)
{
	struct zone_memory *m = l->config->zone_memory_;

	if (!m || m->size - m->used < count) {
		size_t size = MAX(m ? (size_t)CHUNK_BYTES : (size_t)FIRST_CHUNK_BYTES, count);
		struct zone_memory *fresh = malloc(sizeof *fresh + size);
		if (!fresh) {
			l->is_out_of_memory = true;
			return NULL;
		}
		*fresh = (struct zone_memory){ .next = m, .size = size };
		l->config->zone_memory_ = m = fresh;
	}
	char *p = m->bytes + m->used;
	memcpy(p, bytes, count);
	m->used += count;
	return p;
}

/* The zone of that name; NULL after adding z, whose index is i. */
static const struct config_zone *find_or_add(const struct config *c, struct zone_index *index, const struct config_zone *z,
					     size_t i)
{
	size_t slot = name_hash(z->name, z->name_bytes) & index->mask;

	for (; index->slots[slot]; slot = (slot + 1) & index->mask) {
		const struct config_zone *other = &c->zone[index->slots[slot] - 1];
		ASSERT(other->name && z->name);
		if (other->name_bytes == z->name_bytes && !memcmp(other->name, z->name, z->name_bytes))
			return other;
	}
	index->slots[slot] = (uint32_t)i + 1;
	return NULL;
}

static bool read_name(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key,
		      struct config_zone *z)
{
	uint8_t name[NAME_MAX_BYTES];

	size_t bytes = load_name(l, row, node, key, name);
	if (bytes == 0)
		return false;
	z->name = (const uint8_t *)keep(l, name, bytes);
	z->name_bytes = bytes;
	z->name_text = keep(l, node->text, node->text_bytes + 1);
	z->place = node->place;
	return z->name && z->name_text;
}

/* True if z is complete; whatever is wrong was reported. */
static bool read_zone(struct loader *l, const struct schema_section *section, const struct tree_node *entry, size_t number,
		      struct config_zone *z)
{
	char key[LOAD_KEY_BYTES], path[LOAD_PATH_BYTES];
	bool ok = true;

	*z = (struct config_zone){ 0 };
	if (entry->kind != TREE_MAP) {
		if (entry->kind != TREE_REFUSED)
			reporter_error(&l->reporter, entry->place, "zones[%zu]: expected a mapping with \"name\" and \"file\"",
				       number);
		return false;
	}
	load_check_keys(l, entry, section);
	for (size_t i = 0; i < section->row_count; i++) {
		const struct schema_row *row = &section->rows[i];
		const struct tree_node *node = load_find(entry, row->key);
		snprintf(key, sizeof key, "zones[%zu].%s", number, row->key);
		if (!node) {
			reporter_error(&l->reporter, entry->place, "zones[%zu]: \"%s\" is missing", number, row->key);
			ok = false;
		} else if (row->kind == SCHEMA_ZONE_NAME) {
			ok = read_name(l, row, node, key, z) && ok;
		} else if (load_path(l, row, node, key, path)) {
			z->file = keep(l, path, strlen(path) + 1);
		} else {
			ok = false;
		}
	}
	return ok && !l->is_out_of_memory;
}

static void read_list(struct loader *l, const struct schema_section *section, const struct tree_node *list,
		      struct zone_index *index)
{
	struct config *c = l->config;
	size_t number = 0;

	for (const struct tree_node *entry = list->child; entry; entry = entry->next, number++) {
		struct config_zone *z = &c->zone[c->zone_count];
		if (!read_zone(l, section, entry, number, z))
			continue;
		const struct config_zone *other = find_or_add(c, index, z, c->zone_count);
		if (other)
			reporter_error(&l->reporter, z->place, "zones[%zu].name: \"%.60s\" stands at line %u, column %u already",
				       number, z->name_text, other->place.line, other->place.column);
		else
			c->zone_count++;
	}
}

void load_zones(struct loader *l, const struct schema_section *section, const struct tree_node *list)
{
	struct zone_index index = { .mask = 15 };

	if (!list || load_is_null(list))
		return;
	if (list->kind != TREE_LIST) {
		if (list->kind != TREE_REFUSED)
			reporter_error(
				&l->reporter, list->place,
				"zones: expected a list, such as \"- name: example.com\" and \"  file: example.com.zone\"");
		return;
	}
	if (list->child_count > CONFIG_MAX_ZONES) {
		reporter_error(&l->reporter, list->place, "zones: more than %d zones", CONFIG_MAX_ZONES);
		return;
	}
	if (list->child_count == 0)
		return;
	while (index.mask < list->child_count * 2)
		index.mask = index.mask * 2 + 1;
	index.slots = calloc(index.mask + 1, sizeof *index.slots);
	l->config->zone = calloc(list->child_count, sizeof *l->config->zone);
	if (index.slots && l->config->zone)
		read_list(l, section, list, &index);
	else
		l->is_out_of_memory = true;
	free(index.slots);
}

void load_zones_free(struct config *c)
{
	struct zone_memory *m = c->zone_memory_;

	while (m) {
		struct zone_memory *next = m->next;
		free(m);
		m = next;
	}
	free(c->zone);
}
