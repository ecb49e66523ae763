/* SPDX-License-Identifier: Apache-2.0 */
/* load.h: what the files that make a struct config out of a tree share. */
#pragma once
#include "config/schema.h"
#include "config/tree.h"

#define LOAD_PATH_BYTES 4096 /* of a file name, with its NUL */
#define LOAD_KEY_BYTES 96    /* of "section.key[12345]" */

struct loader {
	struct config *config;
	void *base; /* what the offsets of rows count from: config, or an entry of a list */
	struct reporter reporter;
	char folder[LOAD_PATH_BYTES]; /* that relative names start from; absolute, no final slash ("" is the root) */
	bool is_out_of_memory;
};

/* Reports what row expects at key instead of node. */
void load_expected(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key);
/* text as an absolute path in out; false, reported, if it is empty, too long or holds control characters. */
MUST_USE bool load_path(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key,
			char out[static LOAD_PATH_BYTES]);
/* Reports keys of map that rows do not have and keys that stand twice. section: for the messages. */
void load_check_keys(struct loader *l, const struct tree_node *map, const struct schema_section *section);
const struct tree_node *load_find(const struct tree_node *map, const char *key);
/* A scalar that says nothing: "key:", "key: ~", "key: null". */
bool load_is_null(const struct tree_node *node);

/* The domain name of node in out, lower-cased: its octets. 0, reported: it is none. */
MUST_USE size_t load_name(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key,
			  uint8_t out[static NAME_MAX_BYTES]);
/* A copy of a name that load_name has read; false: out of memory. */
MUST_USE bool load_keep_name(struct loader *l, struct config_name *out, const uint8_t *name, size_t name_bytes,
			     const struct tree_node *node);
/* Sets the field of row in l->base from node, reporting what is wrong with it (load_value.c). */
void load_value(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key);
/* Sets the zones from list, which may be NULL (load_zones.c). */
void load_zones(struct loader *l, const struct schema_section *section, const struct tree_node *list);
void load_zones_free(struct config *c);
/* Sets the forward zones from list, which may be NULL (load_forward.c). */
void load_forward(struct loader *l, const struct schema_section *section, const struct tree_node *list);

/* The row's default, by the same way as a value of the file. */
void load_fallback(struct loader *l, const struct schema_row *row, const char *key);
/* Frees what load_value has put into the field of row in base. */
void load_free_field(void *base, const struct schema_row *row);
