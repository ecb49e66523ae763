/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"
#include "base/log.h"
#include "config/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WORDS 32	     /* rows of a section, and sections */
#define MAX_FALLBACK_WORDS 4 /* of a list */

bool load_is_null(const struct tree_node *node)
{
	return node->kind == TREE_SCALAR && !node->is_quoted &&
	       (!*node->text || !strcmp(node->text, "~") || !strcmp(node->text, "null"));
}

const struct tree_node *load_find(const struct tree_node *map, const char *key)
{
	const struct tree_node *n = map ? map->child : NULL;

	while (n && strcmp(n->key, key) != 0)
		n = n->next;
	return n;
}

static const struct schema_section *find_section(const char *name)
{
	for (size_t i = 0; i < schema_section_count; i++) {
		if (strcmp(schema_sections[i].name, name) == 0)
			return &schema_sections[i];
	}
	return NULL;
}

static bool has_row(const struct schema_section *section, const char *key)
{
	for (size_t i = 0; i < section->row_count; i++) {
		if (strcmp(section->rows[i].key, key) == 0)
			return true;
	}
	return false;
}

/* The section, other than in, that has the key. */
static const char *home_of(const char *key, const struct schema_section *in)
{
	for (size_t i = 0; i < schema_section_count; i++) {
		if (&schema_sections[i] != in && has_row(&schema_sections[i], key))
			return schema_sections[i].name;
	}
	return NULL;
}

/* Reports a key that is not among words, in a section or (NULL) at the top. */
static void report_unknown(struct loader *l, const struct tree_node *node, const struct schema_section *in,
			   const char *const *words)
{
	const char *nearest = value_nearest(node->key, words), *home = home_of(node->key, in);
	const char *where = in ? in->name : "", *preposition = in ? " in " : "";
	char list[300] = "";

	if (home && !(nearest && strcmp(nearest, node->key) == 0)) {
		reporter_error(&l->reporter, node->key_place, "unknown key \"%.60s\"%s%s: it belongs in \"%s\"", node->key,
			       preposition, where, home);
		return;
	}
	if (nearest) {
		reporter_error(&l->reporter, node->key_place, "unknown key \"%.60s\"%s%s: did you mean \"%s\"?", node->key,
			       preposition, where, nearest);
		return;
	}
	for (size_t used = 0; *words && used < sizeof list; words++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", *words);
	reporter_error(&l->reporter, node->key_place, "unknown key \"%.60s\"%s%s: there are %s", node->key, preposition, where,
		       list);
}

/* Whether the key stood before; reports it. */
static bool is_repeated(struct loader *l, const struct tree_node *map, const struct tree_node *node)
{
	const struct tree_node *first = load_find(map, node->key);

	if (first == node)
		return false;
	reporter_error(&l->reporter, node->key_place, "duplicate key \"%.60s\": it stands at line %u, column %u already",
		       node->key, first->key_place.line, first->key_place.column);
	return true;
}

void load_check_keys(struct loader *l, const struct tree_node *map, const struct schema_section *section)
{
	const char *words[MAX_WORDS + 1] = { NULL };

	ASSERT(section->row_count <= MAX_WORDS);
	for (size_t i = 0; i < section->row_count; i++)
		words[i] = section->rows[i].key;
	for (const struct tree_node *n = map->child; n; n = n->next) {
		if (!is_repeated(l, map, n) && !has_row(section, n->key))
			report_unknown(l, n, section, words);
	}
}

static void check_sections(struct loader *l, const struct tree_node *root)
{
	const char *words[MAX_WORDS + 1] = { NULL };

	ASSERT(schema_section_count <= MAX_WORDS);
	for (size_t i = 0; i < schema_section_count; i++)
		words[i] = schema_sections[i].name;
	for (const struct tree_node *n = root->child; n; n = n->next) {
		const struct schema_section *section = find_section(n->key);
		if (is_repeated(l, root, n))
			continue;
		if (!section)
			report_unknown(l, n, NULL, words);
		else if (section->is_later)
			reporter_error(&l->reporter, n->key_place, "\"%s\" is not available yet in this version", n->key);
	}
}

/* The identity, when the file does not give it: the host's name. */
static void host_name(char out[static 128])
{
	char host[256] = "";

	if (gethostname(host, sizeof host - 1) != 0)
		host[0] = '\0';
	for (char *p = host; *p; p++)
		*p = *p < ' ' || *p > '~' ? '?' : *p;
	snprintf(out, 128, "%.127s", host);
}

/* The entries of "[ a, b ]" as a list. text: room for them. */
static void fallback_list(struct tree_node *list, struct tree_node entry[static MAX_FALLBACK_WORDS], char text[static 128])
{
	char *rest = text;

	for (char *word; (word = strsep(&rest, " ,[]"));) {
		if (!*word)
			continue;
		struct tree_node *n = &entry[list->child_count];
		ASSERT(list->child_count < MAX_FALLBACK_WORDS);
		*n = (struct tree_node){ .kind = TREE_SCALAR, .text = word, .text_bytes = strlen(word) };
		if (list->last_child)
			list->last_child->next = n;
		else
			list->child = n;
		list->last_child = n;
		list->child_count++;
	}
}

/* The schema's defaults are a word, "", [] or [ words, with commas ]. */
void load_fallback(struct loader *l, const struct schema_row *row, const char *key)
{
	unsigned errors_before = l->reporter.error_count;
	char text[128];
	struct tree_node entry[MAX_FALLBACK_WORDS], node = { .kind = TREE_SCALAR, .text = text };

	if (!row->fallback) {
		host_name(text);
		node.is_quoted = true;
	} else if (row->fallback[0] == '[') {
		node = (struct tree_node){ .kind = TREE_LIST };
		snprintf(text, sizeof text, "%s", row->fallback);
		fallback_list(&node, entry, text);
	} else {
		node.is_quoted = strcmp(row->fallback, "\"\"") == 0;
		snprintf(text, sizeof text, "%s", node.is_quoted ? "" : row->fallback);
	}
	if (node.kind == TREE_SCALAR)
		node.text_bytes = strlen(text);
	load_value(l, row, &node, key);
	ASSERT(l->is_out_of_memory || l->reporter.error_count == errors_before);
}

static void load_section(struct loader *l, const struct schema_section *section, const struct tree_node *map)
{
	char key[LOAD_KEY_BYTES];

	if (map && map->kind != TREE_MAP && !load_is_null(map)) {
		if (map->kind != TREE_REFUSED)
			reporter_error(&l->reporter, map->place, "%s: expected a mapping, such as \"%s: ...\", not a %s",
				       section->name, section->rows[0].key, map->kind == TREE_LIST ? "list" : "text");
		map = NULL;
	}
	if (map)
		load_check_keys(l, map, section);
	for (size_t i = 0; i < section->row_count && !l->is_out_of_memory; i++) {
		const struct schema_row *row = &section->rows[i];
		const struct tree_node *node = load_find(map, row->key);
		snprintf(key, sizeof key, "%s.%s", section->name, row->key);
		if (!node && row->kind != SCHEMA_LATER)
			load_fallback(l, row, key);
		else if (node && node->kind != TREE_REFUSED)
			load_value(l, row, node, key);
	}
}

/* What no single row can say. */
static void check_whole(struct loader *l, const struct tree_node *root)
{
	const struct tree_node *secrets = load_find(load_find(root, "server"), "cookie-secrets");
	const struct tree_node *per_client = load_find(load_find(root, "tcp"), "max-per-client");
	const struct tree_node *cache = load_find(root, "cache");
	const struct config *c = l->config;

	if (cache && c->cache.min_ttl_s > c->cache.max_ttl_s)
		reporter_error(&l->reporter, load_find(cache, "min-ttl") ? load_find(cache, "min-ttl")->place : cache->key_place,
			       "cache.min-ttl: %u s are more than cache.max-ttl (%u s)", c->cache.min_ttl_s, c->cache.max_ttl_s);
	if (secrets && c->server.cookie_secret_count && !c->server.cookies)
		reporter_warning(&l->reporter, secrets->place,
				 "server.cookie-secrets: have no effect while server.cookies is false");
	if (per_client && c->tcp.max_per_client > c->tcp.max_connections)
		reporter_warning(&l->reporter, per_client->place,
				 "tcp.max-per-client: has no effect above tcp.max-connections (%u)", c->tcp.max_connections);
}

/* Notes the lines that belong to the zones alone. */
static void find_zone_lines(struct config *c, const struct tree_node *root)
{
	const struct tree_node *zones = load_find(root, "zones");

	if (!zones || root->is_flow || zones->key_place.column != 1)
		return;
	c->zones_line_ = zones->key_place.line;
	c->zones_end_line_ = zones->next ? zones->next->key_place.line : UINT32_MAX;
}

static void load_tree(struct loader *l, const struct tree_node *root)
{
	if (root && root->kind != TREE_MAP && !load_is_null(root)) {
		if (root->kind != TREE_REFUSED)
			reporter_error(&l->reporter, root->place,
				       "expected sections, such as \"server:\" and \"listen:\", not a %s",
				       root->kind == TREE_LIST ? "list" : "text");
		return;
	}
	if (root && root->kind != TREE_MAP)
		root = NULL;
	if (root)
		check_sections(l, root);
	for (size_t i = 0; i < schema_section_count && !l->is_out_of_memory; i++) {
		const struct schema_section *section = &schema_sections[i];
		if (section->list == SCHEMA_LIST_ZONES)
			load_zones(l, section, load_find(root, section->name));
		else if (section->list == SCHEMA_LIST_FORWARD)
			load_forward(l, section, load_find(root, section->name));
		else if (!section->is_later)
			load_section(l, section, load_find(root, section->name));
	}
	if (root && l->reporter.error_count == 0 && !l->is_out_of_memory) {
		check_whole(l, root);
		find_zone_lines(l->config, root);
	}
}

/* The folder of the file, absolute. */
static bool find_folder(struct loader *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	int bytes = slash ? (int)(slash - path) : 0;

	if (*path == '/') {
		bytes = snprintf(l->folder, sizeof l->folder, "%.*s", bytes, path);
	} else {
		char here[LOAD_PATH_BYTES];
		if (!getcwd(here, sizeof here))
			return false;
		bytes = snprintf(l->folder, sizeof l->folder, "%s%s%.*s", strcmp(here, "/") == 0 ? "" : here, slash ? "/" : "",
				 bytes, path);
	}
	return bytes >= 0 && (size_t)bytes < sizeof l->folder;
}

enum err config_load(struct config **out, const char *path, const char *text, size_t text_bytes, config_report *report,
		     void *user)
{
	struct loader l = { .reporter = { .report = report, .user = user } };
	struct tree tree = { 0 };
	enum err err = ERR_NOMEM;

	l.config = calloc(1, sizeof *l.config);
	if (!l.config)
		return ERR_NOMEM;
	l.base = l.config;
	l.config->path = strdup(path);
	l.config->log.level = calloc(LOG_SUBSYSTEM_COUNT_, sizeof *l.config->log.level);
	if (l.config->path && l.config->log.level)
		err = tree_parse(&tree, text, text_bytes, &l.reporter);
	if (err == ERR_OK && !find_folder(&l, path)) {
		reporter_error(&l.reporter, (struct config_place){ 1, 1 },
			       "the folder of this file can't be found out: its path is too long, or gone");
		err = ERR_SYNTAX;
	}
	if (err == ERR_OK) {
		load_tree(&l, tree.root);
		err = l.is_out_of_memory ? ERR_NOMEM : l.reporter.error_count ? ERR_SYNTAX : ERR_OK;
	}
	tree_fini(&tree);
	if (err == ERR_OK)
		*out = l.config;
	else
		config_free(l.config);
	return err;
}

void load_free_field(void *base, const struct schema_row *row)
{
	size_t count = *(size_t *)((char *)base + row->count_offset);
	void *field;

	switch (row->kind) {
	case SCHEMA_INTERFACES:
	case SCHEMA_SECRETS:
	case SCHEMA_PATHS:
	case SCHEMA_RECORDS:
		memcpy(&field, (char *)base + row->offset, sizeof field);
		for (size_t i = 0; field && i < count; i++)
			free(((char **)field)[i]);
		free(field);
		break;
	case SCHEMA_NAMES:
		memcpy(&field, (char *)base + row->offset, sizeof field);
		for (size_t i = 0; field && i < count; i++)
			free(((struct config_name *)field)[i].name);
		free(field);
		break;
	case SCHEMA_UPSTREAMS:
		memcpy(&field, (char *)base + row->offset, sizeof field);
		for (size_t i = 0; field && i < count; i++)
			free(((struct config_upstream *)field)[i].auth_name);
		free(field);
		break;
	case SCHEMA_FORWARD_ZONE: free(((struct config_forward *)base)->zone.name); break;
	case SCHEMA_TEXT:
	case SCHEMA_USER:
	case SCHEMA_PATH:
	case SCHEMA_ADDRESSES:
	case SCHEMA_PREFIXES:
	case SCHEMA_CPUS:
		memcpy(&field, (char *)base + row->offset, sizeof field);
		free(field);
		break;
	default: break;
	}
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < schema_section_count; i++) {
		const struct schema_section *section = &schema_sections[i];
		for (size_t k = 0; k < section->row_count; k++) {
			if (section->list == SCHEMA_LIST_NONE)
				load_free_field(c, &section->rows[k]);
			for (size_t f = 0; section->list == SCHEMA_LIST_FORWARD && f < c->forward_count; f++)
				load_free_field(&c->forward[f], &section->rows[k]);
		}
	}
	free(c->forward);
	load_zones_free(c);
	free(c->log.level);
	free(c->path);
	free(c);
}

enum err config_text_without_zones(const struct config *c, const char *text, size_t text_bytes, char **out, size_t *out_bytes)
{
	char *copy = malloc(text_bytes + 1);
	const char *p = text, *end = text + text_bytes;
	size_t used = 0;

	if (!copy)
		return ERR_NOMEM;
	for (uint32_t line = 1; p < end; line++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p)), *next = newline ? newline + 1 : end;
		bool is_zone = c->zones_line_ && line >= c->zones_line_ && line < c->zones_end_line_;
		const char *from = is_zone ? (newline ? newline : end) : p;
		memcpy(copy + used, from, (size_t)(next - from));
		used += (size_t)(next - from);
		p = next;
	}
	copy[used] = '\0';
	*out = copy;
	*out_bytes = used;
	return ERR_OK;
}

enum err config_read_file(const char *path, char **text, size_t *text_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *bytes = NULL;
	size_t used = 0, size = 0, guess = 65536;
	struct stat st;
	enum err err = ERR_OK;

	if (fd < 0)
		return err_from_errno(errno);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		guess = (size_t)MIN(st.st_size, (off_t)CONFIG_MAX_BYTES) +
			1; /* one more, so that the end is seen without growing */
	for (ssize_t n = 1; n != 0 && err == ERR_OK;) {
		if (used == size) {
			size = size ? 2 * size : guess;
			char *moved = realloc(bytes, size);
			if (!moved) {
				err = ERR_NOMEM;
				break;
			}
			bytes = moved;
		}
		n = read(fd, bytes + used, size - used);
		if (n > 0)
			used += (size_t)n;
		else if (n < 0 && errno != EINTR)
			err = err_from_errno(errno);
		if (used > CONFIG_MAX_BYTES)
			err = ERR_NOSPACE;
	}
	int saved_errno = errno;
	close(fd);
	errno = saved_errno;
	if (err != ERR_OK) {
		free(bytes);
		return err;
	}
	*text = bytes;
	*text_bytes = used;
	return ERR_OK;
}
