/* SPDX-License-Identifier: Apache-2.0 */
/* One value of each kind of the schema into its field. */
#include "config/load.h"
#include "base/log.h"
#include "config/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define SHOWN_BYTES 60 /* of a wrong value in a message */

void load_expected(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	char expected[SCHEMA_EXPECTED_BYTES];

	schema_expected(expected, row);
	if (load_is_null(node))
		reporter_error(&l->reporter, node->key_place.line ? node->key_place : node->place,
			       "%s: has no value: expected %s; leave the key out for its default", key, expected);
	else if (node->kind == TREE_SCALAR && row->kind == SCHEMA_SECRETS)
		reporter_error(&l->reporter, node->place, "%s: expected %s", key, expected); /* a log is no place for secrets */
	else if (node->kind == TREE_SCALAR)
		reporter_error(&l->reporter, node->place, "%s: expected %s, not \"%.*s%s\"", key, expected, SHOWN_BYTES,
			       node->text, node->text_bytes > SHOWN_BYTES ? "..." : "");
	else if (node->kind != TREE_REFUSED)
		reporter_error(&l->reporter, node->place, "%s: expected %s, not a %s", key, expected,
			       node->kind == TREE_LIST ? "list" : "mapping");
}

static void *field_of(const struct loader *l, const struct schema_row *row) { return (char *)l->base + row->offset; }

static void set_text(struct loader *l, const struct schema_row *row, const char *text)
{
	char **field = field_of(l, row);

	*field = strdup(text);
	if (!*field)
		l->is_out_of_memory = true;
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			return false;
	}
	return true;
}

static bool is_auto(const struct schema_row *row, const struct tree_node *node)
{
	return row->has_auto && node->kind == TREE_SCALAR && strcasecmp(node->text, "auto") == 0;
}

static bool set_number(struct loader *l, const struct schema_row *row, const struct tree_node *node)
{
	uint64_t value = 0;
	bool ok = true;

	if (is_auto(row, node))
		goto store;
	switch (row->kind) {
	case SCHEMA_SIZE: ok = value_size(node->text, &value); break;
	case SCHEMA_DURATION: ok = value_duration(node->text, &value) && value % row->unit_ns == 0; break;
	default: ok = value_count(node->text, &value); break;
	}
	if (!ok || value < row->min || value > row->max || (row->is_power_of_two && (value & (value - 1)) != 0))
		return false;
	if (row->kind == SCHEMA_DURATION)
		value /= row->unit_ns;
store:
	if (row->field_bytes == sizeof value) {
		memcpy(field_of(l, row), &value, sizeof value);
	} else {
		unsigned narrow = (unsigned)value; /* the schema's ranges fit */
		ASSERT(row->field_bytes == sizeof narrow && narrow == value);
		memcpy(field_of(l, row), &narrow, sizeof narrow);
	}
	return true;
}

static void set_choice(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	unsigned i = 0;

	while (row->words[i] && strcasecmp(row->words[i], node->text) != 0)
		i++;
	if (!row->words[i]) {
		load_expected(l, row, node, key);
	} else if (row->words_later >> i & 1) {
		reporter_error(&l->reporter, node->place, "%s: \"%s\" is not available yet in this version", key, row->words[i]);
	} else if (row->kind == SCHEMA_CHOICE) {
		ASSERT(row->field_bytes == sizeof i);
		memcpy(field_of(l, row), &i, sizeof i);
	} else {
		enum log_subsystem subsystem = LOG_RUN;
		bool is_known = log_subsystem_from_text(row->key, &subsystem);
		ASSERT(is_known);
		l->config->log.level[l->config->log.level_count].subsystem = (int)subsystem;
		l->config->log.level[l->config->log.level_count++].level = (int)i;
	}
}

bool load_path(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key,
	       char out[static LOAD_PATH_BYTES])
{
	const char *text = node->text;
	size_t limit = MIN((size_t)row->max, (size_t)LOAD_PATH_BYTES - 1);

	if (node->kind != TREE_SCALAR || load_is_null(node) || !*text) {
		load_expected(l, row, node, key);
		return false;
	}
	for (const char *p = text; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 127) {
			reporter_error(&l->reporter, node->place, "%s: a path may not hold control characters", key);
			return false;
		}
	}
	while (text[0] == '.' && text[1] == '/')
		text += 2;
	int bytes = *text == '/' ? snprintf(out, LOAD_PATH_BYTES, "%s", text)
				 : snprintf(out, LOAD_PATH_BYTES, "%s/%s", l->folder, text);
	if (bytes < 0 || (size_t)bytes > limit) {
		reporter_error(&l->reporter, node->place, "%s: the path is longer than %zu octets%s", key, limit,
			       *text == '/' ? "" : " with the folder of this file before it");
		return false;
	}
	return true;
}

static void set_scalar(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	char path[LOAD_PATH_BYTES];
	bool is_true = false, ok;

	if (node->kind != TREE_SCALAR || load_is_null(node)) {
		load_expected(l, row, node, key);
		return;
	}
	switch (row->kind) {
	case SCHEMA_TEXT:
		ok = node->text_bytes >= row->min && node->text_bytes <= row->max && is_printable(node->text);
		if (ok)
			set_text(l, row, node->text);
		break;
	case SCHEMA_USER:
		ok = value_is_user(node->text);
		if (ok)
			set_text(l, row, node->text);
		break;
	case SCHEMA_PATH:
		ok = true; /* or reported */
		if (row->is_optional && !*node->text)
			set_text(l, row, "");
		else if (load_path(l, row, node, key, path))
			set_text(l, row, path);
		break;
	case SCHEMA_BOOL:
		ok = value_bool(node->text, &is_true);
		memcpy(field_of(l, row), &is_true, sizeof is_true);
		break;
	default: ok = set_number(l, row, node); break;
	}
	if (!ok)
		load_expected(l, row, node, key);
}

/* Room for a list's entries, none of them yet. */
static void *make_list(struct loader *l, const struct schema_row *row, size_t count, size_t entry_bytes)
{
	void *list = count ? calloc(count, entry_bytes) : NULL;

	if (count && !list)
		l->is_out_of_memory = true;
	memcpy(field_of(l, row), &list, sizeof list);
	return list;
}

static size_t *count_of(const struct loader *l, const struct schema_row *row)
{
	return (size_t *)((char *)l->base + row->count_offset);
}

static void add_address(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list)
{
	struct config_address *all = list, *a = &all[*count_of(l, row)];
	const char *why = NULL;

	if (!value_address(node->text, 53, a, &why)) {
		reporter_error(&l->reporter, node->place, "%s: \"%.*s\" is not an address: %s", key, SHOWN_BYTES, node->text,
			       why);
		return;
	}
	for (struct config_address *b = all; b < a; b++) {
		if (a->family == b->family && a->port == b->port && !memcmp(a->address, b->address, sizeof a->address)) {
			reporter_error(&l->reporter, node->place, "%s: %s stands at line %u, column %u already", key, a->text,
				       b->place.line, b->place.column);
			return;
		}
	}
	a->place = node->place;
	++*count_of(l, row);
}

static void add_prefix(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list)
{
	struct config_prefix *p = &((struct config_prefix *)list)[*count_of(l, row)];
	const char *why = NULL;

	if (!value_prefix(node->text, p, &why)) {
		reporter_error(&l->reporter, node->place, "%s: \"%.*s\" is not a prefix: %s", key, SHOWN_BYTES, node->text, why);
		return;
	}
	p->place = node->place;
	++*count_of(l, row);
}

static bool is_same_server(const struct config_upstream *a, const struct config_upstream *b)
{
	return a->is_tls == b->is_tls && a->address.family == b->address.family && a->address.port == b->address.port &&
	       memcmp(a->address.address, b->address.address, sizeof a->address.address) == 0;
}

static void add_upstream(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key,
			 void *list)
{
	struct config_upstream *all = list, *u = &all[*count_of(l, row)];
	const char *why = NULL, *auth_name = NULL;

	if (!value_upstream(node->text, u, &auth_name, &why)) {
		reporter_error(&l->reporter, node->place, "%s: \"%.*s\" is not a server: %s", key, SHOWN_BYTES, node->text, why);
		return;
	}
	for (struct config_upstream *b = all; b < u; b++) {
		if (is_same_server(b, u)) {
			reporter_error(&l->reporter, node->place, "%s: %s stands at line %u, column %u already", key,
				       u->address.text, b->place.line, b->place.column);
			return;
		}
	}
	u->place = u->address.place = node->place;
	if (auth_name && !(u->auth_name = strdup(auth_name)))
		l->is_out_of_memory = true;
	++*count_of(l, row);
}

size_t load_name(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key,
		 uint8_t out[static NAME_MAX_BYTES])
{
	static const uint8_t root[1];
	const char *why = NULL;

	if (node->kind != TREE_SCALAR || load_is_null(node) || !*node->text) {
		load_expected(l, row, node, key);
		return 0;
	}
	size_t bytes = name_from_text(out, node->text, node->text_bytes, root, &why);
	if (bytes == 0)
		reporter_error(&l->reporter, node->place, "%s: \"%.60s\" is not a domain name: %s", key, node->text, why);
	else
		name_lower(out, out, bytes);
	return bytes;
}

bool load_keep_name(struct loader *l, struct config_name *out, const uint8_t *name, size_t name_bytes,
		    const struct tree_node *node)
{
	uint8_t *copy = malloc(name_bytes + node->text_bytes + 1);

	if (!copy) {
		l->is_out_of_memory = true;
		return false;
	}
	memcpy(copy, name, name_bytes);
	memcpy(copy + name_bytes, node->text, node->text_bytes + 1);
	*out = (struct config_name){
		.name = copy, .name_bytes = name_bytes, .text = (char *)copy + name_bytes, .place = node->place
	};
	return true;
}

static void add_name(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list)
{
	struct config_name *all = list;
	uint8_t name[NAME_MAX_BYTES];

	size_t bytes = load_name(l, row, node, key, name);
	if (bytes == 0)
		return;
	for (size_t i = 0; i < *count_of(l, row); i++) {
		if (all[i].name_bytes == bytes && memcmp(all[i].name, name, bytes) == 0) {
			reporter_error(&l->reporter, node->place, "%s: stands in the list already", key);
			return;
		}
	}
	if (load_keep_name(l, &all[*count_of(l, row)], name, bytes, node))
		++*count_of(l, row);
}

static void set_name(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	uint8_t name[NAME_MAX_BYTES];
	size_t bytes = load_name(l, row, node, key, name);

	if (bytes)
		(void)!load_keep_name(l, field_of(l, row), name, bytes, node);
}

static void add_path(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list)
{
	static const struct schema_row path = { .kind = SCHEMA_PATH, .max = LOAD_PATH_BYTES - 1 };
	char absolute[LOAD_PATH_BYTES];

	if (!load_path(l, &path, node, key, absolute))
		return;
	char *copy = strdup(absolute);
	if (copy)
		((char **)list)[(*count_of(l, row))++] = copy;
	else
		l->is_out_of_memory = true;
}

/* A line of a master file: what it says is found out by those who read it. */
static void add_record(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list)
{
	if (!*node->text || strpbrk(node->text, "\r\n")) {
		reporter_error(&l->reporter, node->place, "%s: expected one line of a master file", key);
		return;
	}
	char *copy = strdup(node->text);
	if (copy)
		((char **)list)[(*count_of(l, row))++] = copy;
	else
		l->is_out_of_memory = true;
}

/* Interfaces and secrets. */
static void add_text(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list)
{
	bool is_secret = row->kind == SCHEMA_SECRETS;
	char **all = list;

	if (!(is_secret ? value_is_secret(node->text) : value_is_interface(node->text))) {
		if (is_secret)
			reporter_error(&l->reporter, node->place, "%s: expected 32 hexadecimal digits", key);
		else
			reporter_error(&l->reporter, node->place, "%s: \"%.*s\" can't be an interface's name", key, SHOWN_BYTES,
				       node->text);
		return;
	}
	for (size_t i = 0; i < *count_of(l, row); i++) {
		if (is_secret ? strcasecmp(all[i], node->text) == 0 : strcmp(all[i], node->text) == 0) {
			reporter_error(&l->reporter, node->place, "%s: stands in the list already", key);
			return;
		}
	}
	char *copy = strdup(node->text);
	if (copy)
		all[(*count_of(l, row))++] = copy;
	else
		l->is_out_of_memory = true;
}

/* Lists of texts: how large an entry is, and what adds one. */
static const struct {
	size_t entry_bytes;
	void (*add)(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key, void *list);
} lists[] = {
	[SCHEMA_ADDRESSES] = { sizeof(struct config_address), add_address },
	[SCHEMA_PREFIXES] = { sizeof(struct config_prefix), add_prefix },
	[SCHEMA_UPSTREAMS] = { sizeof(struct config_upstream), add_upstream },
	[SCHEMA_NAMES] = { sizeof(struct config_name), add_name },
	[SCHEMA_PATHS] = { sizeof(char *), add_path },
	[SCHEMA_RECORDS] = { sizeof(char *), add_record },
	[SCHEMA_INTERFACES] = { sizeof(char *), add_text },
	[SCHEMA_SECRETS] = { sizeof(char *), add_text },
};

static void set_list(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	char entry_key[LOAD_KEY_BYTES];
	size_t i = 0;

	if (node->kind != TREE_LIST || node->child_count < row->min || node->child_count > row->max) {
		if (node->kind == TREE_LIST) {
			char expected[SCHEMA_EXPECTED_BYTES];
			schema_expected(expected, row);
			reporter_error(&l->reporter, node->place, "%s: expected %s; this list has %zu entries", key, expected,
				       node->child_count);
		} else {
			load_expected(l, row, node, key);
		}
		return;
	}
	void *list = make_list(l, row, node->child_count, lists[row->kind].entry_bytes);
	if (!list)
		return;
	for (const struct tree_node *entry = node->child; entry; entry = entry->next, i++) {
		snprintf(entry_key, sizeof entry_key, "%s[%zu]", key, i);
		if (entry->kind == TREE_REFUSED)
			continue;
		if (entry->kind != TREE_SCALAR || load_is_null(entry))
			reporter_error(&l->reporter, entry->place, "%s: expected a text", entry_key);
		else
			lists[row->kind].add(l, row, entry, entry_key, list);
	}
}

static void set_cpus(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	unsigned cpus[CONFIG_MAX_CPUS];
	const char *why = NULL;
	size_t count = 0;

	if (is_auto(row, node))
		return;
	if (node->kind == TREE_MAP || node->kind == TREE_REFUSED || load_is_null(node) ||
	    (node->kind == TREE_LIST && !node->child)) {
		load_expected(l, row, node, key);
		return;
	}
	for (const struct tree_node *n = node->kind == TREE_LIST ? node->child : node; n; n = n == node ? NULL : n->next) {
		if (n->kind != TREE_SCALAR) {
			load_expected(l, row, n, key);
			return;
		}
		if (!value_cpus(n->text, cpus, &count, &why)) {
			reporter_error(&l->reporter, n->place, "%s: \"%.*s\": %s", key, SHOWN_BYTES, n->text, why);
			return;
		}
	}
	unsigned *list = make_list(l, row, count, sizeof *list);
	if (list) {
		memcpy(list, cpus, count * sizeof *list);
		*count_of(l, row) = count;
	}
}

void load_value(struct loader *l, const struct schema_row *row, const struct tree_node *node, const char *key)
{
	switch (row->kind) {
	case SCHEMA_ADDRESSES:
	case SCHEMA_PREFIXES:
	case SCHEMA_NAMES:
	case SCHEMA_PATHS:
	case SCHEMA_RECORDS:
	case SCHEMA_UPSTREAMS:
	case SCHEMA_INTERFACES:
	case SCHEMA_SECRETS: set_list(l, row, node, key); break;
	case SCHEMA_CPUS: set_cpus(l, row, node, key); break;
	case SCHEMA_CHOICE:
	case SCHEMA_LEVEL:
		if (node->kind != TREE_SCALAR || load_is_null(node))
			load_expected(l, row, node, key);
		else
			set_choice(l, row, node, key);
		break;
	case SCHEMA_FORWARD_ZONE: set_name(l, row, node, key); break;
	case SCHEMA_LATER: reporter_error(&l->reporter, node->key_place, "%s is not available yet in this version", key); break;
	case SCHEMA_EMPTY_LIST:
		if (node->kind == TREE_LIST && node->child)
			reporter_error(&l->reporter, node->place, "%s is not available yet in this version: leave the list empty",
				       key);
		else if (node->kind != TREE_LIST)
			load_expected(l, row, node, key);
		break;
	default: set_scalar(l, row, node, key); break;
	}
}
