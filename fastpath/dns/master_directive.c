/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "dns/master_internal.h"

static bool word_is(const struct rdata_token *t, const char *text)
{
	return t->bytes == strlen(text) && strncasecmp(t->text, text, t->bytes) == 0;
}

/* Reports what stands behind the last word that the directive takes. */
static bool nothing_follows(struct master_reader *r, uint32_t i)
{
	char shown[MASTER_SHOWN_BYTES];

	if (i >= r->entry.count)
		return true;
	master_error(r, master_place_of(r, i), "expected the end of the directive, found %s",
		     master_show(shown, &r->entry.token[i]));
	return false;
}

/* Word i as a name relative to the origin. 0 after an error was reported. */
static size_t name_from_word(struct master_reader *r, uint32_t i, uint8_t out[static NAME_MAX_BYTES])
{
	const uint8_t *origin = master_source(r)->origin;
	const struct rdata_token *t = &r->entry.token[i];
	char shown[MASTER_SHOWN_BYTES];
	const char *why = NULL;
	size_t bytes;

	if (i >= r->entry.count) {
		master_error(r, master_place_of(r, i), "expected a domain name, found the end of the directive");
		return 0;
	}
	if (t->bytes == 1 && t->text[0] == '@' && !t->quoted) {
		bytes = name_wire_bytes(origin, NAME_MAX_BYTES);
		memcpy(out, origin, bytes);
		return bytes;
	}
	bytes = name_from_text(out, t->text, t->bytes, origin, &why);
	if (bytes == 0)
		master_error(r, master_place_of(r, i), "expected a domain name, found %s: %s", master_show(shown, t), why);
	return bytes;
}

static void directive_origin(struct master_reader *r)
{
	uint8_t name[NAME_MAX_BYTES];
	size_t bytes = name_from_word(r, 1, name);

	if (bytes > 0 && nothing_follows(r, 2))
		memcpy(master_source(r)->origin, name, bytes);
}

static void directive_ttl(struct master_reader *r)
{
	const struct rdata_token *t = &r->entry.token[1];
	char shown[MASTER_SHOWN_BYTES];
	uint32_t ttl_s = 0;

	if (r->entry.count < 2 || t->quoted || master_ttl_parse(t->text, t->bytes, &ttl_s) != ERR_OK)
		master_error(r, master_place_of(r, 1), "expected a TTL of at most %u seconds, such as 3600 or 1h30m, found %s",
			     MASTER_MAX_TTL_S, master_show_word(shown, r, 1));
	else
		nothing_follows(r, 2);
	/* After an error as well, so that not every entry that relies on it is reported too. */
	r->default_ttl_s = ttl_s;
	r->default_ttl_known = true;
}

/* The path's octets as they are, but for quotes and backslashes that a backslash stands before in a quoted one. */
static size_t path_from_word(const struct rdata_token *t, char out[static MASTER_MAX_PATH_BYTES])
{
	size_t used = 0;

	for (uint32_t i = 0; i < t->bytes; i++) {
		if (t->quoted && t->text[i] == '\\' && i + 1 < t->bytes && (t->text[i + 1] == '"' || t->text[i + 1] == '\\'))
			i++;
		if (used == MASTER_MAX_PATH_BYTES - 1)
			return 0;
		out[used++] = t->text[i];
	}
	out[used] = '\0';
	return used;
}

/* Whether a file of that name is being read already. */
static bool is_open(const struct master_reader *r, const char *name)
{
	for (uint32_t i = 0; i <= r->depth; i++)
		if (strcmp(r->source[i].file.name, name) == 0)
			return true;
	return false;
}

static void include_push(struct master_reader *r, const struct master_file *file, const uint8_t *origin, size_t origin_bytes)
{
	struct master_source *from = master_source(r), *s = &r->source[++r->depth];

	s->file = *file;
	s->owner_state = from->owner_state;
	s->owner_bytes = from->owner_bytes;
	memcpy(s->owner, from->owner, from->owner_bytes);
	memcpy(s->origin, origin, origin_bytes);
	master_lexer_init(&s->lexer, file->text, file->bytes);
}

/* $INCLUDE file [origin]: origin and last owner are the file's own; TTLs stated in it go on behind it, as with BIND. */
static void directive_include(struct master_reader *r)
{
	char path[MASTER_MAX_PATH_BYTES];
	uint8_t origin[NAME_MAX_BYTES];
	struct master_source *s = master_source(r);
	struct master_place place = master_place_of(r, 1);
	size_t origin_bytes = name_wire_bytes(s->origin, NAME_MAX_BYTES);
	struct master_file file = { 0 };
	enum err err;

	memcpy(origin, s->origin, origin_bytes);
	if (r->entry.count < 2 || path_from_word(&r->entry.token[1], path) == 0) {
		master_error(r, place, "expected the path of a file, of 1 to %u octets", MASTER_MAX_PATH_BYTES - 1);
		return;
	}
	if (r->entry.count > 2) {
		origin_bytes = name_from_word(r, 2, origin);
		if (origin_bytes == 0 || !nothing_follows(r, 3))
			return;
	}
	if (r->callbacks->open == NULL) {
		master_error(r, place, "expected no $INCLUDE: other files are not read here");
		return;
	}
	if (r->depth == MASTER_MAX_INCLUDE_DEPTH || r->includes == MASTER_MAX_INCLUDES) {
		master_error(r, place, "expected at most %u files inside each other and %u in all, found one more: '%s'",
			     MASTER_MAX_INCLUDE_DEPTH, MASTER_MAX_INCLUDES, path);
		return;
	}
	err = r->callbacks->open(r->callbacks->user, path, s->file.name, &file);
	if (err != ERR_OK) {
		master_error(r, place, "expected a file that can be read, found '%s': %s", path, err_text(err));
		return;
	}
	r->includes++;
	if (is_open(r, file.name)) {
		master_error(r, place, "expected another file, found one that is being read already: '%s'", path);
		if (r->callbacks->close != NULL)
			r->callbacks->close(r->callbacks->user, &file);
		return;
	}
	include_push(r, &file, origin, origin_bytes);
}

void master_directive(struct master_reader *r)
{
	const struct rdata_token *t = &r->entry.token[0];
	char shown[MASTER_SHOWN_BYTES];

	if (word_is(t, "$ORIGIN"))
		directive_origin(r);
	else if (word_is(t, "$TTL"))
		directive_ttl(r);
	else if (word_is(t, "$INCLUDE"))
		directive_include(r);
	else if (word_is(t, "$GENERATE"))
		master_generate(r);
	else
		master_error(r, master_place_of(r, 0), "expected $ORIGIN, $TTL, $INCLUDE, $GENERATE or an owner name, found %s",
			     master_show(shown, t));
}
