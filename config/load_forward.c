/* SPDX-License-Identifier: Apache-2.0 */
/* The list of forward zones. */
#include "config/load.h"

#include <stdio.h>
#include <stdlib.h>

/* One entry; whatever is wrong with it was reported. What it holds then is freed with the list. */
static void read_entry(struct loader *l, const struct schema_section *section, const struct tree_node *entry, size_t number)
{
	char key[LOAD_KEY_BYTES];

	load_check_keys(l, entry, section);
	for (size_t i = 0; i < section->row_count && !l->is_out_of_memory; i++) {
		const struct schema_row *row = &section->rows[i];
		const struct tree_node *node = load_find(entry, row->key);
		snprintf(key, sizeof key, "%s[%zu].%s", section->name, number, row->key);
		if (node && node->kind != TREE_REFUSED)
			load_value(l, row, node, key);
		else if (!node && row->fallback)
			load_fallback(l, row, key);
		else if (!node)
			reporter_error(&l->reporter, entry->place, "%s[%zu]: \"%s\" is missing", section->name, number, row->key);
	}
}

static void check_repeated(struct loader *l, const struct config_forward *f, size_t number)
{
	const struct config *c = l->config;

	struct config_place place = f->zone.place.line ? f->zone.place : f->place; /* a default stands nowhere */

	for (size_t i = 0; f->zone.name && i < c->forward_count; i++) {
		const struct config_forward *other = &c->forward[i];
		if (other == f || !other->zone.name || other->zone.name_bytes != f->zone.name_bytes ||
		    memcmp(other->zone.name, f->zone.name, f->zone.name_bytes) != 0)
			continue;
		reporter_error(&l->reporter, place, "forward[%zu].zone: \"%.60s\" stands in the entry at line %u already", number,
			       f->zone.text, other->place.line);
		return;
	}
}

void load_forward(struct loader *l, const struct schema_section *section, const struct tree_node *list)
{
	struct config *c = l->config;
	size_t number = 0;

	if (!list || load_is_null(list))
		return;
	if (list->kind != TREE_LIST) {
		if (list->kind != TREE_REFUSED)
			reporter_error(&l->reporter, list->place,
				       "forward: expected a list, such as \"- zone: example.com\" and \"  to: [ 10.0.0.1 ]\"");
		return;
	}
	if (list->child_count > CONFIG_MAX_FORWARD_ZONES) {
		reporter_error(&l->reporter, list->place, "forward: more than %d zones", CONFIG_MAX_FORWARD_ZONES);
		return;
	}
	if (list->child_count == 0)
		return;
	c->forward = calloc(list->child_count, sizeof *c->forward);
	if (!c->forward) {
		l->is_out_of_memory = true;
		return;
	}
	for (const struct tree_node *entry = list->child; entry && !l->is_out_of_memory; entry = entry->next, number++) {
		if (entry->kind != TREE_MAP) {
			if (entry->kind != TREE_REFUSED)
				reporter_error(&l->reporter, entry->place,
					       "forward[%zu]: expected a mapping with \"zone\" and \"to\"", number);
			continue;
		}
		struct config_forward *f = &c->forward[c->forward_count++];
		l->base = f;
		f->place = entry->place;
		read_entry(l, section, entry, number);
		check_repeated(l, f, number);
	}
	l->base = c;
}
