/* SPDX-License-Identifier: Apache-2.0 */
/* zone check: what the slowpath would say when it loads the file, by the same code; needs no running server. */
#include "config/config.h"
#include "dns/name.h"
#include "dns/rdata.h"
#include "slowpath/zone/zone_load.h"
#include "tools/skua/client.h"
#include "tools/skua/config_file.h"
#include "tools/skua/verbs.h"

#include "base/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES_DEFAULT (16ull << 30)		       /* as limits.max-zone-bytes */
#define FINDINGS_MAX 10000u			       /* kept of one zone; all are counted */
#define RECORD_TEXT_BYTES (4 * RDATA_MAX_BYTES + 1024) /* every octet of the data as \DDD */

struct check {
	const struct verb_call *call;
	json_t *zones;		   /* with --json: one object a zone */
	json_t *findings;	   /* of the current zone; NULL without --json */
	uint64_t errors, warnings; /* of the current zone */
	uint64_t all_errors, all_warnings, zone_count, bad_zones;
};

static void report(void *user, enum zone_finding_level level, struct master_place place, const char *text)
{
	struct check *c = user;
	const char *level_text = level == ZONE_ERROR ? "error" : "warning", *file = place.file ? place.file : "";
	char safe[1024], safe_file[PATH_MAX];

	c->errors += level == ZONE_ERROR;
	c->warnings += level == ZONE_WARNING;
	if (c->errors + c->warnings > FINDINGS_MAX)
		return;
	printable_copy(safe, sizeof safe, text, strlen(text));
	printable_copy(safe_file, sizeof safe_file, file, strlen(file));
	if (c->findings)
		json_array_append_new(c->findings,
				      json_pack("{s:s, s:s, s:I, s:I, s:s}", "level", level_text, "file", safe_file, "line",
						(json_int_t)place.line, "column", (json_int_t)place.column, "text", safe));
	else if (place.line)
		fprintf(stderr, "%s:%u:%u: %s: %s\n", safe_file, place.line, place.column, level_text, safe);
	else
		fprintf(stderr, "%s%s%s: %s\n", safe_file, *safe_file ? ": " : "", level_text, safe);
}

/* --- --print: one record a line, in canonical order, as named-compilezone writes them ---------------------------------- */

struct printing {
	FILE *out;
	char *text;
};

static bool print_record(void *user, const struct zone_build_record *record)
{
	struct printing *p = user;
	char owner[NAME_TEXT_MAX_BYTES], type[16];
	size_t bytes;

	name_to_text(owner, record->owner);
	rr_type_to_text(type, record->type);
	if (rdata_to_text(record->type, record->rdata, record->rdata_bytes, p->text, RECORD_TEXT_BYTES, &bytes) != ERR_OK)
		return false;
	fprintf(p->out, "%s\t%u\tIN\t%s\t%s\n", owner, record->ttl_s, type, p->text);
	return !ferror(p->out);
}

static enum err print_zone(struct zone_load *load, FILE *out)
{
	struct printing p = { .out = out, .text = malloc(RECORD_TEXT_BYTES) };
	enum err err = p.text ? zone_build_each(zone_load_build(load), print_record, &p) : ERR_NOMEM;

	free(p.text);
	return err;
}

/* A new reference, NULL for an error. */
static json_t *zone_text(struct zone_load *load)
{
	char *text = NULL;
	size_t bytes = 0;
	json_t *string = NULL;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	enum err err = print_zone(load, out);
	if (fclose(out) == 0 && err == ERR_OK)
		string = json_stringn(text, bytes);
	free(text);
	return string;
}

/* --- one zone ---------------------------------------------------------------------------------------------------------- */

static void finish_zone(struct check *c, const char *name, const char *file, struct zone_load *load, json_t *take_text)
{
	uint64_t records = load ? zone_build_records(zone_load_build(load)) : 0;

	c->all_errors += c->errors;
	c->all_warnings += c->warnings;
	c->zone_count++;
	c->bad_zones += c->errors > 0;
	if (c->zones) {
		json_t *zone = json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:o}", "zone", name, "file", file, "ok",
					 c->errors == 0, "errors", (json_int_t)c->errors, "warnings", (json_int_t)c->warnings,
					 "records", (json_int_t)records, "image_bytes",
					 (json_int_t)(load ? zone_load_image_bytes(load) : 0), "findings", c->findings);
		if (take_text)
			json_object_set_new(zone, "text", take_text);
		json_array_append_new(c->zones, zone);
		c->findings = NULL;
	} else {
		fprintf(stderr, "zone %s: %s, %llu records, %llu errors, %llu warnings\n", name, c->errors ? "not usable" : "ok",
			(unsigned long long)records, (unsigned long long)c->errors, (unsigned long long)c->warnings);
	}
}

static void check_zone(struct check *c, const uint8_t *name, const char *file, uint64_t max_bytes)
{
	struct zone_load_request request = {
		.name = name, .file = file, .class_ = RR_CLASS_IN, .max_bytes = max_bytes, .report = report, .user = c
	};
	struct zone_load *load = NULL;
	char name_text[NAME_TEXT_MAX_BYTES];
	json_t *text = NULL;

	c->errors = c->warnings = 0;
	c->findings = c->zones ? json_array() : NULL;
	name_to_text(name_text, name);
	if (zone_load_begin(&load, &request) != ERR_OK)
		load = NULL;
	if (load && verb_has(c->call, VERB_OPT_PRINT)) {
		if (c->zones)
			text = zone_text(load);
		if (c->zones ? !text : print_zone(load, stdout) != ERR_OK)
			report(c, ZONE_ERROR, (struct master_place){ .file = file }, "the zone can't be printed");
	}
	finish_zone(c, name_text, file, load, text);
	zone_load_destroy(load);
}

/* --- all zones of a configuration, or one file ------------------------------------------------------------------------- */

static void complain_config(void *user, bool is_error, struct config_place place, const char *message)
{
	const char *path = user;

	if (is_error)
		fprintf(stderr, "%s:%u:%u: error: %s\n", path, place.line, place.column, message);
}

static int check_config(struct check *c)
{
	bool is_default;
	const char *path = config_file_path(c->call->config, &is_default);
	struct config *config;
	char *text;
	size_t text_bytes;

	enum err err = config_read_file(path, &text, &text_bytes);
	if (err != ERR_OK)
		return client_complain(c->call, "config", "%s: %s", path, err == ERR_NOSPACE ? err_text(err) : strerror(errno));
	err = config_load(&config, path, text, text_bytes, complain_config, (void *)path);
	free(text);
	if (err != ERR_OK)
		return client_complain(c->call, "config", "%s can't be used", path);
	for (size_t i = 0; i < config->zone_count; i++)
		check_zone(c, config->zone[i].name, config->zone[i].file, config->limits.max_zone_bytes);
	config_free(config);
	return VERB_OK;
}

static int check_file(struct check *c, const char *file)
{
	static const uint8_t root[1];
	uint8_t origin[NAME_MAX_BYTES];
	const char *why;

	if (!c->call->origin)
		return client_complain(c->call, "usage", "zone check %s needs --origin NAME: the zone's name", file);
	if (!name_from_text(origin, c->call->origin, strlen(c->call->origin), root, &why))
		return client_complain(c->call, "usage", "--origin %s: %s", c->call->origin, why);
	check_zone(c, origin, file, MAX_BYTES_DEFAULT);
	return VERB_OK;
}

static void say_total(const json_t *result)
{
	if (client_integer(result, "zones_checked") != 1)
		fprintf(stderr, "%lld zones, %lld not usable; %lld errors, %lld warnings\n",
			client_integer(result, "zones_checked"), client_integer(result, "zones_bad"),
			client_integer(result, "errors"), client_integer(result, "warnings"));
}

int verb_zone_check(const struct verb_call *call)
{
	struct check c = { .call = call, .zones = verb_has(call, VERB_OPT_JSON) ? json_array() : NULL };

	if (call->arg_count && verb_has(call, VERB_OPT_CONFIG))
		return client_complain(call, "usage", "either FILE --origin NAME or -c FILE, not both");
	if (!call->arg_count && call->origin)
		return client_complain(call, "usage", "--origin goes with a zone FILE");
	int code = call->arg_count ? check_file(&c, call->args[0]) : check_config(&c);
	if (code != VERB_OK) {
		json_decref(c.zones);
		return code;
	}
	json_t *result = json_pack("{s:b, s:I, s:I, s:I, s:I, s:o*}", "ok", c.all_errors == 0, "errors", (json_int_t)c.all_errors,
				   "warnings", (json_int_t)c.all_warnings, "zones_checked", (json_int_t)c.zone_count, "zones_bad",
				   (json_int_t)c.bad_zones, "zones", c.zones);
	code = client_result(call, result, say_total);
	return c.all_errors ? VERB_FAILED : code;
}
