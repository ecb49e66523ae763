/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h: the plain part of YAML as a tree with places: mappings, lists and scalars. Anchors, aliases, merge keys, tags and
 * second documents are refused, so a file is never larger than it looks; size, depth and counts are bounded. */
#pragma once
#include "config/config.h"

#define TREE_MAX_DEPTH 8
#define TREE_MAX_NODES 8000000
#define TREE_MAX_KEYS 256 /* of one mapping */
#define TREE_MAX_SCALAR_BYTES 4096

/* Counts and forwards what is reported; what comes after CONFIG_MAX_ERRORS errors is left out. */
struct reporter {
	config_report *report;
	void *user;
	unsigned error_count;
};
void reporter_error(struct reporter *r, struct config_place place, const char *format, ...) PRINTF(3, 4);
void reporter_warning(struct reporter *r, struct config_place place, const char *format, ...) PRINTF(3, 4);

enum tree_kind {
	TREE_SCALAR,
	TREE_LIST,
	TREE_MAP,
	TREE_REFUSED, /* reported already */
};
struct tree_node {
	enum tree_kind kind;
	bool is_quoted; /* scalar */
	bool is_flow;	/* mapping in braces */
	struct config_place place, key_place;
	const char *key;  /* in a mapping; NUL-terminated */
	const char *text; /* scalar; NUL-terminated, holds no other NUL */
	size_t text_bytes;
	struct tree_node *child, *last_child, *next;
	size_t child_count;
};

struct tree {
	struct tree_node *root; /* NULL: the text is empty or only comments */
	struct tree_chunk *chunks_;
	size_t chunk_used_, node_count_;
};
/* ERR_SYNTAX after a report, if the tree can't be used; ERR_OK may still come with reported errors (r->error_count). ERR_NOMEM.
 * tree_fini is due in every case. */
MUST_USE enum err tree_parse(struct tree *t, const char *text, size_t text_bytes, struct reporter *r);
void tree_fini(struct tree *t);
