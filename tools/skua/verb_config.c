/* SPDX-License-Identifier: Apache-2.0 */
/* config check; log level */
#include "config/config.h"
#include "tools/skua/client.h"
#include "tools/skua/config_file.h"
#include "tools/skua/verbs.h"

#include "base/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- config check ---------------------------------------------------------------------------------------------------- */

struct checking {
	const char *path;
	json_t *findings;
	unsigned errors, warnings;
};

static void collect(void *user, bool is_error, struct config_place place, const char *message)
{
	struct checking *c = user;
	char text[1024];

	printable_copy(text, sizeof text, message, strlen(message));
	c->errors += is_error;
	c->warnings += !is_error;
	json_array_append_new(c->findings,
			      json_pack("{s:s, s:s, s:I, s:I, s:s}", "level", is_error ? "error" : "warning", "file", c->path,
					"line", (json_int_t)place.line, "column", (json_int_t)place.column, "text", text));
}

static void print_check(const json_t *result)
{
	size_t i;
	json_t *f;

	json_array_foreach(json_object_get(result, "findings"), i, f) {
		printf("%s:%lld:%lld: %s: %s\n", client_text(f, "file"), client_integer(f, "line"), client_integer(f, "column"),
		       client_text(f, "level"), client_text(f, "text"));
	}
	printf("%s: %lld errors, %lld warnings, %lld zones\n", client_text(result, "file"), client_integer(result, "errors"),
	       client_integer(result, "warnings"), client_integer(result, "zones"));
}

int verb_config_check(const struct verb_call *call)
{
	bool is_default;
	struct checking c = { .path = config_file_path(call->config, &is_default) };
	struct config *config = NULL;
	char *text;
	size_t text_bytes;

	enum err err = config_read_file(c.path, &text, &text_bytes);
	if (err != ERR_OK)
		return client_complain(call, "config", "%s: %s", c.path, err == ERR_NOSPACE ? err_text(err) : strerror(errno));
	c.findings = json_array();
	err = config_load(&config, c.path, text, text_bytes, collect, &c);
	free(text);
	json_t *result = json_pack("{s:s, s:b, s:I, s:I, s:I, s:o}", "file", c.path, "ok", err == ERR_OK, "errors",
				   (json_int_t)c.errors, "warnings", (json_int_t)c.warnings, "zones",
				   (json_int_t)(config ? config->zone_count : 0), "findings", c.findings);
	if (err == ERR_OK)
		config_free(config);
	int shown = client_result(call, result, print_check);
	return err == ERR_OK ? shown : VERB_USAGE;
}

/* --- log level ------------------------------------------------------------------------------------------------------- */

static void print_levels(const json_t *result)
{
	const char *process, *subsystem;
	json_t *levels, *level;

	json_object_foreach((json_t *)result, process, levels) {
		json_object_foreach(levels, subsystem, level) {
			printf("%-10s %-10s %s\n", process, subsystem, client_text(levels, subsystem));
		}
	}
}

/* Only the subsystem that was asked for. */
static json_t *narrow(json_t *take_levels, const char *subsystem)
{
	if (!subsystem)
		return take_levels;
	json_t *one = json_pack("{s:O?}", subsystem, json_object_get(take_levels, subsystem));
	json_decref(take_levels);
	return one;
}

/* Whom to ask: the supervisor and the parts that run. A part that is down would let us wait for its next start. */
static int find_processes(const char *run_dir, const char *processes[3], size_t *count, struct control_error *error)
{
	json_t *status, *part;
	int code = client_ask(run_dir, "run", "status", NULL, CLIENT_TIMEOUT_MS, &status, error);

	if (code != VERB_OK)
		return code;
	*count = 0;
	processes[(*count)++] = "run";
	part = json_object_get(status, "parts");
	if (client_integer(json_object_get(part, "slowpath"), "pid"))
		processes[(*count)++] = "slowpath";
	if (client_integer(json_object_get(part, "fastpath"), "pid"))
		processes[(*count)++] = "fastpath";
	json_decref(status);
	return VERB_OK;
}

static int ask_level(const char *run_dir, const char *process, const char *subsystem, const char *level, json_t *result,
		     struct control_error *error)
{
	json_t *levels, *args = level ? json_pack("{s:s, s:s}", "subsystem", subsystem, "level", level) : NULL;
	int code = client_ask(run_dir, process, "log level", args, CLIENT_TIMEOUT_MS, &levels, error);

	if (code != VERB_OK)
		return code;
	if (subsystem && !json_object_get(levels, subsystem)) {
		json_decref(levels);
		control_fail(error, "bad-args", "no subsystem \"%s\"; `skua log level` lists them", subsystem);
		return VERB_USAGE;
	}
	json_object_set_new(result, process, narrow(levels, subsystem));
	return VERB_OK;
}

int verb_log_level(const struct verb_call *call)
{
	const char *subsystem = call->arg_count > 0 ? call->args[0] : NULL, *level = call->arg_count > 1 ? call->args[1] : NULL;
	const char *processes[3];
	char run_dir[PATH_MAX];
	struct control_error error = { 0 };
	size_t count = 0;
	json_t *result;
	int code = client_run_dir(call, run_dir);

	if (code != VERB_OK)
		return code;
	result = json_object();
	code = find_processes(run_dir, processes, &count, &error);
	for (size_t i = 0; i < count && code == VERB_OK; i++)
		code = ask_level(run_dir, processes[i], subsystem, level, result, &error);
	if (code == VERB_OK)
		return client_result(call, result, print_levels);
	json_decref(result);
	return client_error(call, &error);
}
