/* SPDX-License-Identifier: Apache-2.0 */
#include "config/tree.h"
#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#define FIRST_CHUNK_BYTES (16u << 10) /* enough for most files */
#define CHUNK_BYTES (1u << 20)
#define MESSAGE_BYTES 512

struct tree_chunk {
	struct tree_chunk *next;
	size_t size;
	alignas(16) char bytes[];
};

struct builder {
	struct tree *tree;
	struct reporter *reporter;
	struct tree_node *open[TREE_MAX_DEPTH]; /* mappings and lists that have not ended */
	size_t depth;
	const char *key; /* read, its value not yet */
	struct config_place key_place;
	bool is_key_refused; /* its value is built and then not linked */
	unsigned documents;
};

static void report(struct reporter *r, bool is_error, struct config_place place, const char *format, va_list args)
{
	char raw[MESSAGE_BYTES + 1], message[MESSAGE_BYTES];

	if (r->error_count > CONFIG_MAX_ERRORS)
		return;
	r->error_count += is_error;
	int bytes = vsnprintf(raw, sizeof raw, format, args);
	if (r->error_count > CONFIG_MAX_ERRORS)
		bytes = snprintf(raw, sizeof raw, "too many errors: the rest of the file was not checked");
	printable_copy(message, sizeof message, raw, bytes < 0 ? 0 : MIN((size_t)bytes, sizeof raw - 1));
	r->report(r->user, is_error, place, message);
}

void reporter_error(struct reporter *r, struct config_place place, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(r, true, place, format, args);
	va_end(args);
}

void reporter_warning(struct reporter *r, struct config_place place, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(r, false, place, format, args);
	va_end(args);
}

static void *take_bytes(struct tree *t, size_t bytes)
{
	bytes = (bytes + 15) & ~(size_t)15;
	if (!t->chunks_ || t->chunks_->size - t->chunk_used_ < bytes) {
		size_t size = t->chunks_ ? CHUNK_BYTES : FIRST_CHUNK_BYTES; /* both larger than any request */
		struct tree_chunk *c = malloc(sizeof *c + size);
		if (!c)
			return NULL;
		*c = (struct tree_chunk){ .next = t->chunks_, .size = size };
		t->chunks_ = c;
		t->chunk_used_ = 0;
	}
	void *p = t->chunks_->bytes + t->chunk_used_;
	t->chunk_used_ += bytes;
	return p;
}

static const char *copy_text(struct tree *t, const yaml_event_t *event)
{
	size_t bytes = event->data.scalar.length;
	char *copy = take_bytes(t, bytes + 1);

	if (copy) {
		memcpy(copy, event->data.scalar.value, bytes);
		copy[bytes] = '\0';
	}
	return copy;
}

static struct config_place place_of(const yaml_mark_t *mark)
{
	return (struct config_place){ (uint32_t)mark->line + 1, (uint32_t)mark->column + 1 };
}

/* Places node in what is open. */
static enum err link_node(struct builder *b, struct tree_node *node)
{
	if (b->depth == 0) {
		b->tree->root = node;
		return ERR_OK;
	}
	struct tree_node *parent = b->open[b->depth - 1];
	if (parent->kind == TREE_MAP) {
		node->key = b->key;
		node->key_place = b->key_place;
		b->key = NULL;
		if (b->is_key_refused) {
			b->is_key_refused = false;
			return ERR_OK;
		}
		if (parent->child_count == TREE_MAX_KEYS) {
			reporter_error(b->reporter, node->key_place, "a mapping has at most %d keys", TREE_MAX_KEYS);
			return ERR_SYNTAX;
		}
	}
	if (parent->last_child)
		parent->last_child->next = node;
	else
		parent->child = node;
	parent->last_child = node;
	parent->child_count++;
	return ERR_OK;
}

static void check_properties(struct builder *b, struct config_place place, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		reporter_error(b->reporter, place, "anchors (&name) are not supported: write the value where it is needed");
	if (tag)
		reporter_error(b->reporter, place, "tags (!type) are not supported: write the value alone");
}

static enum err add_node(struct builder *b, const yaml_event_t *event, enum tree_kind kind, struct tree_node **out)
{
	if (b->tree->node_count_++ == TREE_MAX_NODES) {
		reporter_error(b->reporter, place_of(&event->start_mark), "the file has more than %d values", TREE_MAX_NODES);
		return ERR_SYNTAX;
	}
	struct tree_node *node = take_bytes(b->tree, sizeof *node);
	if (!node)
		return ERR_NOMEM;
	*node = (struct tree_node){ .kind = kind, .place = place_of(&event->start_mark) };
	*out = node;
	return link_node(b, node);
}

static bool is_key_next(const struct builder *b) { return b->depth > 0 && b->open[b->depth - 1]->kind == TREE_MAP && !b->key; }

static enum err on_scalar(struct builder *b, const yaml_event_t *event)
{
	struct config_place place = place_of(&event->start_mark);
	struct tree_node *node = NULL;

	check_properties(b, place, event->data.scalar.anchor, event->data.scalar.tag);
	if (event->data.scalar.length > TREE_MAX_SCALAR_BYTES) {
		reporter_error(b->reporter, place, "a value is longer than %d octets", TREE_MAX_SCALAR_BYTES);
		return ERR_SYNTAX;
	}
	if (memchr(event->data.scalar.value, '\0', event->data.scalar.length)) {
		reporter_error(b->reporter, place, "a value holds a NUL character");
		return ERR_SYNTAX;
	}
	const char *text = copy_text(b->tree, event);
	if (!text)
		return ERR_NOMEM;
	if (is_key_next(b)) {
		b->key = text;
		b->key_place = place;
		b->is_key_refused = strcmp(text, "<<") == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		if (b->is_key_refused)
			reporter_error(b->reporter, place,
				       "merge keys (<<) are not supported: write the keys where they are needed");
		return ERR_OK;
	}
	enum err err = add_node(b, event, TREE_SCALAR, &node);
	if (err != ERR_OK)
		return err;
	node->text = text;
	node->text_bytes = event->data.scalar.length;
	node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return ERR_OK;
}

static enum err on_alias(struct builder *b, const yaml_event_t *event)
{
	struct config_place place = place_of(&event->start_mark);
	struct tree_node *node;

	reporter_error(b->reporter, place, "aliases (*name) are not supported: write the value where it is needed");
	if (is_key_next(b)) {
		b->key = "";
		b->key_place = place;
		b->is_key_refused = true;
		return ERR_OK;
	}
	return add_node(b, event, TREE_REFUSED, &node);
}

static enum err on_start(struct builder *b, const yaml_event_t *event)
{
	bool is_map = event->type == YAML_MAPPING_START_EVENT;
	struct config_place place = place_of(&event->start_mark);
	struct tree_node *node = NULL;

	if (is_map)
		check_properties(b, place, event->data.mapping_start.anchor, event->data.mapping_start.tag);
	else
		check_properties(b, place, event->data.sequence_start.anchor, event->data.sequence_start.tag);
	if (is_key_next(b)) {
		reporter_error(b->reporter, place, "a key must be a plain word, not a %s", is_map ? "mapping" : "list");
		return ERR_SYNTAX;
	}
	if (b->depth == TREE_MAX_DEPTH) {
		reporter_error(b->reporter, place, "mappings and lists are nested more than %d deep", TREE_MAX_DEPTH);
		return ERR_SYNTAX;
	}
	enum err err = add_node(b, event, is_map ? TREE_MAP : TREE_LIST, &node);
	if (err != ERR_OK)
		return err;
	node->is_flow = is_map && event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
	b->open[b->depth++] = node;
	return ERR_OK;
}

static enum err on_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++ == 0)
			return ERR_OK;
		reporter_error(b->reporter, place_of(&event->start_mark), "a second document (---) is not supported");
		return ERR_SYNTAX;
	case YAML_SCALAR_EVENT: return on_scalar(b, event);
	case YAML_ALIAS_EVENT: return on_alias(b, event);
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT: return on_start(b, event);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT: b->depth--; return ERR_OK;
	default: return ERR_OK;
	}
}

/* Place of an octet, for errors that libyaml's reader gives by offset only. */
static struct config_place place_of_offset(const char *text, size_t bytes, size_t offset)
{
	struct config_place place = { 1, 1 };

	for (size_t i = 0; i < MIN(bytes, offset); i++) {
		if (text[i] == '\n')
			place = (struct config_place){ place.line + 1, 1 };
		else if (((uint8_t)text[i] & 0xc0) != 0x80)
			place.column++;
	}
	return place;
}

static bool is_at_tab(const char *text, size_t bytes, struct config_place place)
{
	const char *p = text, *end = text + bytes;

	for (uint32_t line = 1; p && line < place.line; line++) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	/* only blanks stand before a tab that was meant to indent, so that octets are columns */
	for (uint32_t column = 1; p && p < end && column < place.column && (*p == ' ' || *p == '\t'); column++)
		p++;
	return p && p < end && *p == '\t';
}

static enum err report_yaml_error(const yaml_parser_t *parser, const char *text, size_t bytes, struct reporter *r)
{
	struct config_place place = place_of(&parser->problem_mark), context = place_of(&parser->context_mark);

	if (parser->error == YAML_MEMORY_ERROR)
		return ERR_NOMEM;
	if (parser->error == YAML_READER_ERROR) {
		reporter_error(r, place_of_offset(text, bytes, parser->problem_offset), "not a text in UTF-8: %s",
			       parser->problem);
		return ERR_SYNTAX;
	}
	if (is_at_tab(text, bytes, place))
		reporter_error(r, place, "a tab can't indent or separate in YAML: use spaces");
	else if (parser->context && context.line != place.line)
		reporter_error(r, place, "not valid YAML: %s, %s that starts at line %u", parser->problem, parser->context,
			       context.line);
	else if (parser->context)
		reporter_error(r, place, "not valid YAML: %s, %s", parser->problem, parser->context);
	else
		reporter_error(r, place, "not valid YAML: %s", parser->problem);
	return ERR_SYNTAX;
}

enum err tree_parse(struct tree *t, const char *text, size_t text_bytes, struct reporter *r)
{
	struct builder b = { .tree = t, .reporter = r };
	yaml_parser_t parser;
	yaml_event_t event;
	enum err err = ERR_OK;

	*t = (struct tree){ 0 };
	if (text_bytes > CONFIG_MAX_BYTES) {
		reporter_error(r, (struct config_place){ 1, 1 }, "the file is larger than %u octets", CONFIG_MAX_BYTES);
		return ERR_SYNTAX;
	}
	if (!yaml_parser_initialize(&parser))
		return ERR_NOMEM;
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, text_bytes);
	for (bool is_done = false; err == ERR_OK && !is_done;) {
		if (!yaml_parser_parse(&parser, &event)) {
			err = report_yaml_error(&parser, text, text_bytes, r);
			break;
		}
		is_done = event.type == YAML_STREAM_END_EVENT;
		err = on_event(&b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return err;
}

void tree_fini(struct tree *t)
{
	while (t->chunks_) {
		struct tree_chunk *next = t->chunks_->next;
		free(t->chunks_);
		t->chunks_ = next;
	}
	*t = (struct tree){ 0 };
}
