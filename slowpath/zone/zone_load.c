/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/zone_load.h"
#include "base/clock.h"
#include "slowpath/zone/local_zones.h"
#include "table/zone_image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct zone_load {
	struct zone_load_request request;
	struct zone_build *build;
	struct zone_source **source; /* owned; the paths are the places' file names */
	uint32_t source_count, source_capacity;
	size_t image_bytes;
	uint64_t began_ns, errors;
	uint64_t warnings;
	enum err failure; /* why a callback stopped the reading */
};

PRINTF(3, 4) static void complain(struct zone_load *l, struct master_place place, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	l->errors++;
	l->request.report(l->request.user, ZONE_ERROR, place, text);
}

/* --- files --------------------------------------------------------------------------------------------------------- */

static const char *reason(enum err err)
{
	switch (err) {
	case ERR_NOTFOUND: return "there is no such file";
	case ERR_DENIED: return "the slowpath's user may not read it";
	case ERR_UNSUPPORTED: return "it is not a regular file";
	case ERR_NOSPACE: return "it is larger than limits.max-zone-bytes";
	case ERR_BUSY: return "it keeps changing while it is read";
	default: return err_text(err);
	}
}

static enum err open_file(struct zone_load *l, const char *path, struct master_file *out)
{
	if (l->source_count == ZONE_MAX_SOURCES)
		return ERR_NOSPACE;
	if (l->source_count == l->source_capacity) {
		uint32_t capacity = l->source_capacity ? l->source_capacity * 2 : 1;
		struct zone_source **grown = realloc(l->source, capacity * sizeof(struct zone_source *));
		if (!grown)
			return ERR_NOMEM;
		l->source = grown;
		l->source_capacity = capacity;
	}
	char *text;
	struct zone_source *s;
	enum err err = zone_source_read(&s, &text, path, l->request.max_bytes);
	if (err != ERR_OK)
		return err;
	l->source[l->source_count++] = s;
	*out = (struct master_file){ .name = s->path, .text = text, .bytes = (size_t)s->stamp.size_bytes };
	return ERR_OK;
}

static enum err open_included(void *user, const char *path, const char *from, struct master_file *out)
{
	char joined[4096];
	const char *slash = strrchr(from, '/');
	int folder_bytes = slash && path[0] != '/' ? (int)(slash + 1 - from) : 0;
	if (snprintf(joined, sizeof(joined), "%.*s%s", folder_bytes, from, path) >= (int)sizeof(joined))
		return ERR_RANGE;
	return open_file(user, joined, out);
}

static void close_file(void *user, struct master_file *file)
{
	(void)user;
	free((char *)file->text);
}

/* --- records -------------------------------------------------------------------------------------------------------- */

static void complain_of_memory(struct zone_load *l, struct master_place place, enum err err)
{
	complain(l, place, "%s",
		 err == ERR_NOSPACE ? "the zone takes more memory than limits.max-zone-bytes allows" : err_text(err));
}

static bool take_record(void *user, const struct master_record *record)
{
	struct zone_load *l = user;
	if (l->request.stop && atomic_load_explicit(l->request.stop, memory_order_relaxed)) {
		l->failure = ERR_CLOSED;
		return false;
	}
	enum err err = zone_build_add(l->build, record);
	if (err == ERR_OK)
		return true;
	l->failure = err;
	complain_of_memory(l, record->place, err);
	return false;
}

static bool take_error(void *user, struct master_place place, const char *message)
{
	struct zone_load *l = user;
	complain(l, place, "%s", message);
	if (l->errors < ZONE_LOAD_MAX_ERRORS)
		return true;
	complain(l, place, "too many errors: the rest was not read");
	return false;
}

static void take_finding(void *user, const struct zone_finding *finding)
{
	struct zone_load *l = user;
	if (finding->level == ZONE_ERROR)
		l->errors++;
	else
		l->warnings++;
	l->request.report(l->request.user, finding->level, finding->place, finding->text);
}

static enum err read_records(struct zone_load *l)
{
	struct master_file file;
	enum err err = open_file(l, l->request.file, &file);
	if (err != ERR_OK) {
		complain(l, (struct master_place){ .file = l->request.file }, "%s", reason(err));
		return err == ERR_NOMEM ? err : ERR_SYNTAX;
	}
	struct master_options options = { .origin = l->request.name, .class_ = l->request.class_ };
	struct master_callbacks callbacks = {
		.record = take_record, .error = take_error, .open = open_included, .close = close_file, .user = l
	};
	(void)master_read(&file, &options, &callbacks);
	close_file(l, &file);
	if (l->failure != ERR_OK)
		return l->failure;
	return l->errors ? ERR_SYNTAX : ERR_OK;
}

static enum err build(struct zone_load *l)
{
	enum err err = zone_build_create(&l->build, l->request.name, l->request.class_, (size_t)l->request.max_bytes);
	if (err == ERR_OK)
		err = read_records(l);
	if (err != ERR_OK)
		return err;
	err = zone_check(l->build, take_finding, l).err;
	if (err == ERR_NOSPACE)
		complain_of_memory(l, (struct master_place){ .file = l->request.file }, err);
	if (err != ERR_OK)
		return err;
	if (l->errors)
		return ERR_SYNTAX;
	const char *why = "it can't be compiled";
	err = zone_compile_bytes(l->build, &l->image_bytes, &why);
	if (err == ERR_NOSPACE) {
		complain(l, (struct master_place){ .file = l->request.file }, "%s", why);
		return ERR_SYNTAX;
	}
	return err;
}

enum err zone_load_begin(struct zone_load **out, const struct zone_load_request *request)
{
	struct zone_load *l = calloc(1, sizeof(*l));
	enum err err = ERR_NOMEM;
	if (l) {
		l->request = *request;
		l->began_ns = clock_mono_ns();
		err = build(l);
	}
	if (err == ERR_OK) {
		*out = l;
		return ERR_OK;
	}
	if (!l || l->errors == 0)
		request->report(request->user, ZONE_ERROR, (struct master_place){ .file = request->file },
				err == ERR_CLOSED ? "the load was given up: the process stops" : err_text(err));
	zone_load_destroy(l);
	return err;
}

size_t zone_load_image_bytes(const struct zone_load *l) { return l->image_bytes; }
size_t zone_load_note_bytes(const struct zone_load *l) { return segment_note_bytes(l->source, l->source_count); }
struct zone_build *zone_load_build(struct zone_load *l) { return l->build; }

enum err zone_load_finish(struct zone_load *l, void *image, void *note)
{
	enum err err = zone_compile(l->build, image, l->image_bytes);
	if (err != ERR_OK)
		return err;
	if (strcmp(l->request.file, LOCAL_ZONES_HOSTS) == 0)
		((struct zone_image *)image)->flags |= ZONE_TRANSPARENT;
	struct segment_note head = { .loaded_at_s = clock_wall_s(),
				     .load_us = (uint32_t)MIN((clock_mono_ns() - l->began_ns) / 1000, UINT32_MAX),
				     .warnings = (uint32_t)MIN(l->warnings, UINT32_MAX) };
	segment_note_write(note, &head, l->source, l->source_count);
	return ERR_OK;
}

void zone_load_destroy(struct zone_load *l)
{
	if (!l)
		return;
	zone_build_destroy(l->build);
	for (uint32_t i = 0; i < l->source_count; i++)
		free(l->source[i]);
	free(l->source);
	free(l);
}
