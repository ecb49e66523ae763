/* SPDX-License-Identifier: Apache-2.0 */
#include "base/control_request.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/version.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void control_fail(struct control_error *error, const char *code, const char *format, ...)
{
	char raw[sizeof error->message + 1]; /* one more, so that a cut is seen and marked */
	va_list args;

	snprintf(error->code, sizeof error->code, "%s", code);
	va_start(args, format);
	int bytes = vsnprintf(raw, sizeof raw, format, args);
	va_end(args);
	printable_copy(error->message, sizeof error->message, raw, bytes < 0 ? 0 : MIN((size_t)bytes, sizeof raw - 1));
}

static bool only_has(const json_t *object, const char *const *known, struct control_error *error, const char *code)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		const char *const *k = known;
		while (*k && strcmp(*k, key) != 0)
			k++;
		if (!*k) {
			control_fail(error, code, "unknown member \"%s\"", key);
			return false;
		}
	}
	return true;
}

static json_t *level_list(void)
{
	json_t *list = json_object();

	for (int i = 0; list && i < LOG_SUBSYSTEM_COUNT_; i++) {
		const char *level = log_level_text(log_get_level((enum log_subsystem)i));
		if (json_object_set_new(list, log_subsystem_text((enum log_subsystem)i), json_string(level)) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *verb_log_level(void *user, const json_t *args, struct control_error *error)
{
	static const char *const known[] = { "subsystem", "level", NULL };
	const json_t *subsystem = json_object_get(args, "subsystem"), *level = json_object_get(args, "level");
	enum log_subsystem s = LOG_RUN;
	enum log_level l;

	(void)user;
	if (!only_has(args, known, error, "bad-args"))
		return NULL;
	if (!subsystem && !level)
		return level_list();
	if (!json_is_string(level) || !log_level_from_text(json_string_value(level), &l)) {
		control_fail(error, "bad-args", "\"level\" must be one of error, warning, notice, info, debug");
		return NULL;
	}
	if (subsystem && (!json_is_string(subsystem) || !log_subsystem_from_text(json_string_value(subsystem), &s))) {
		control_fail(error, "bad-args", "no such subsystem; `log level` without arguments lists them");
		return NULL;
	}
	for (int i = 0; i < LOG_SUBSYSTEM_COUNT_; i++) {
		if (!subsystem || i == (int)s)
			log_set_level((enum log_subsystem)i, l);
	}
	log_write(M_LOG_LEVEL_SET, "log level of %s is now %s", subsystem ? log_subsystem_text(s) : "every subsystem",
		  log_level_text(l));
	return level_list();
}

static json_t *verb_version(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args, (void)error;
	return json_pack("{s:s}", "version", version_text());
}

static json_t *verb_help(void *user, const json_t *args, struct control_error *error);

static const struct control_verb built_in[] = {
	{ .name = "help", .handler = verb_help, .help = "lists the verbs" },
	{ .name = "version", .handler = verb_version, .help = "says which build this is" },
	{ .name = "log level",
	  .handler = verb_log_level,
	  .help = "lists the log levels, or sets one: {subsystem, level}; without subsystem, all" },
	{ .name = NULL },
};

/* user is the process's own table. */
static json_t *verb_help(void *user, const json_t *args, struct control_error *error)
{
	const struct control_verb *const tables[] = { built_in, user };
	json_t *list = json_array();

	(void)args, (void)error;
	for (size_t t = 0; list && t < ARRAY_LEN(tables); t++) {
		for (const struct control_verb *v = tables[t]; v->name; v++) {
			if (json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "verb", v->name, "help",
								  v->help ? v->help : "", "slow", v->is_slow)) != 0) {
				json_decref(list);
				return NULL;
			}
		}
	}
	return list;
}

static const struct control_verb *find_verb(const struct control_verb *table, const char *name)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->name ? table : NULL;
}

static bool is_built_in(const struct control_verb *verb) { return verb >= built_in && verb < built_in + ARRAY_LEN(built_in); }

/* The members of a request object. */
static bool read_members(struct control_request *r, const struct control_verb *verbs, const json_t *root,
			 struct control_error *error)
{
	static const char *const known[] = { "verb", "args", "id", NULL };
	json_t *verb = json_object_get(root, "verb"), *args = json_object_get(root, "args"), *id = json_object_get(root, "id");

	if (id && !json_is_integer(id) && !json_is_string(id) && !json_is_null(id)) {
		control_fail(error, "bad-request", "\"id\" must be a number or a string");
		return false;
	}
	r->id = json_incref(id);
	if (!only_has(root, known, error, "bad-request"))
		return false;
	if (!json_is_string(verb)) {
		control_fail(error, "bad-request", "\"verb\" must be there and be a string");
		return false;
	}
	if (args && !json_is_object(args)) {
		control_fail(error, "bad-request", "\"args\" must be an object");
		return false;
	}
	r->verb = find_verb(built_in, json_string_value(verb));
	if (!r->verb)
		r->verb = find_verb(verbs, json_string_value(verb));
	if (!r->verb) {
		control_fail(error, "unknown-verb", "there is no verb \"%s\" here; `help` lists them", json_string_value(verb));
		return false;
	}
	r->args = args ? json_incref(args) : json_object();
	if (!r->args) {
		control_fail(error, "no-memory", "out of memory");
		return false;
	}
	return true;
}

bool control_request_parse(struct control_request *out, const struct control_verb *verbs, const char *line, size_t line_bytes,
			   struct control_error *error)
{
	json_error_t why;

	*out = (struct control_request){ 0 };
	json_t *root = json_loadb(line, line_bytes, JSON_REJECT_DUPLICATES, &why); /* nesting is bounded by the library: 2048 */
	if (!root) {
		control_fail(error, "bad-request", "not JSON: %s at column %d", why.text, why.column);
		return false;
	}
	bool ok = json_is_object(root);
	if (!ok)
		control_fail(error, "bad-request", "a request is an object: {\"verb\": \"help\"}");
	else
		ok = read_members(out, verbs, root, error);
	json_decref(root);
	return ok;
}

void control_request_fini(struct control_request *r)
{
	json_decref(r->args);
	json_decref(r->id);
	*r = (struct control_request){ 0 };
}

/* Writes {"id":…,"ok":…, member: take_value} as a line. */
static enum err write_response(const json_t *id, bool ok, const char *member, json_t *take_value, char **response,
			       size_t *response_bytes)
{
	json_t *root = json_object();
	char *text = NULL;
	size_t bytes = 0;

	if (root && (!id || json_object_set(root, "id", (json_t *)id) == 0) &&
	    json_object_set_new(root, "ok", json_boolean(ok)) == 0 && json_object_set(root, member, take_value) == 0)
		text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	json_decref(take_value);
	if (!text)
		return ERR_NOMEM;
	bytes = strlen(text);
	if (bytes >= CONTROL_RESPONSE_MAX) {
		free(text);
		return ERR_NOSPACE;
	}
	text[bytes] = '\n'; /* in place of the NUL: the line is counted, not terminated */
	*response = text;
	*response_bytes = bytes + 1;
	return ERR_OK;
}

enum err control_response(const json_t *id, json_t *take_result, const struct control_error *error, char **response,
			  size_t *response_bytes)
{
	struct control_error too_large;

	if (take_result) {
		enum err err = write_response(id, true, "result", take_result, response, response_bytes);
		if (err != ERR_NOSPACE)
			return err;
		control_fail(&too_large, "too-large", "the result is longer than %u octets; ask for a part of it",
			     CONTROL_RESPONSE_MAX);
		error = &too_large;
	}
	json_t *object = json_pack("{s:s, s:s}", "code", error->code, "message", error->message);
	if (!object)
		return ERR_NOMEM;
	return write_response(id, false, "error", object, response, response_bytes);
}

enum err control_request_run(const struct control_request *r, const struct control_verb *verbs, void *user, char **response,
			     size_t *response_bytes)
{
	struct control_error error = { .code = "internal", .message = "the verb failed and did not say why" };
	json_t *result = r->verb->handler(is_built_in(r->verb) ? (void *)verbs : user, r->args, &error);

	return control_response(r->id, result, &error, response, response_bytes);
}
