/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/client.h"

#include "base/printable.h"
#include "config/glance.h"
#include "tools/skua/config_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_RING 4

static void count_errors(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)place;
	(void)message;
	*(unsigned *)user += is_error;
}

int client_run_dir(const struct verb_call *call, char out[static PATH_MAX])
{
	struct config *config;
	bool is_default;
	const char *path = config_file_path(call->config, &is_default), *run = call->run_dir;
	char *text;
	size_t text_bytes;
	unsigned errors = 0;

	if (run)
		return (size_t)snprintf(out, PATH_MAX, "%s", run) < PATH_MAX
			       ? VERB_OK
			       : client_complain(call, "usage", "--run is too long");
	enum err err = config_read_file(path, &text, &text_bytes);
	if (err != ERR_OK) {
		if (!is_default)
			return client_complain(call, "config", "%s: %s", path,
					       err == ERR_NOSPACE ? err_text(err) : strerror(errno));
		snprintf(out, PATH_MAX, "%s", CONFIG_FILE_RUN_DIR);
		return VERB_OK;
	}
	err = glance_load(&config, path, text, text_bytes, count_errors, &errors);
	free(text);
	if (err != ERR_OK)
		return client_complain(
			call, "config",
			"%s has %u errors (`skua config check` lists them); --run DIR names the run folder without it", path,
			errors);
	snprintf(out, PATH_MAX, "%s", config->server.run);
	config_free(config);
	return VERB_OK;
}

static int exit_code(const char *code)
{
	if (!strcmp(code, "not-running"))
		return VERB_NOT_RUNNING;
	return !strcmp(code, "usage") || !strcmp(code, "config") || !strcmp(code, "bad-args") ? VERB_USAGE : VERB_FAILED;
}

int client_ask(const char *run_dir, const char *process, const char *verb, json_t *take_args, int timeout_ms, json_t **result,
	       struct control_error *error)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof path, "%s/%s.sock", run_dir, process) >= sizeof path) {
		json_decref(take_args);
		control_fail(error, "usage", "the run folder's path is too long");
		return VERB_USAGE;
	}
	if (control_call(path, verb, take_args, timeout_ms, result, error) == ERR_OK)
		return VERB_OK;
	return exit_code(error->code);
}

int client_error(const struct verb_call *call, const struct control_error *error)
{
	if (verb_has(call, VERB_OPT_JSON)) {
		json_t *object = json_pack("{s:{s:s, s:s}}", "error", "code", error->code, "message", error->message);
		json_dumpf(object, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(object);
	} else {
		fprintf(stderr, "skua: %s\n", error->message);
	}
	return exit_code(error->code);
}

int client_complain(const struct verb_call *call, const char *code, const char *format, ...)
{
	struct control_error error;
	char message[sizeof error.message];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	control_fail(&error, code, "%s", message);
	return client_error(call, &error);
}

/* A slowpath that is down would let us wait for its next start, which may never come: better to say how it ended. */
static int check_slowpath(const char *run_dir, struct control_error *error)
{
	json_t *status;
	int code = client_ask(run_dir, "run", "status", NULL, CLIENT_TIMEOUT_MS, &status, error);

	if (code != VERB_OK)
		return code;
	const json_t *part = json_object_get(json_object_get(status, "parts"), "slowpath");
	if (client_integer(part, "pid") == 0) {
		control_fail(error, "not-serving", "the slowpath does not run (%s); it %s", client_text(part, "state"),
			     client_text(part, "last_exit"));
		code = VERB_FAILED;
	}
	json_decref(status);
	return code;
}

int client_ask_slowpath(const struct verb_call *call, const char *verb, json_t *take_args, int timeout_ms, json_t **result)
{
	char run_dir[PATH_MAX];
	struct control_error error;
	int code = client_run_dir(call, run_dir);

	if (code != VERB_OK) {
		json_decref(take_args);
		return code;
	}
	code = check_slowpath(run_dir, &error);
	if (code == VERB_OK)
		code = client_ask(run_dir, "slowpath", verb, take_args, timeout_ms, result, &error);
	else
		json_decref(take_args);
	return code == VERB_OK ? VERB_OK : client_error(call, &error);
}

int client_result(const struct verb_call *call, json_t *take_result, void (*human)(const json_t *result))
{
	if (!take_result)
		return client_complain(call, "no-memory", "no memory for the result");
	if (verb_has(call, VERB_OPT_JSON)) {
		json_dumpf(take_result, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		human(take_result);
	}
	json_decref(take_result);
	return fflush(stdout) == 0 ? VERB_OK : VERB_FAILED;
}

const char *client_text(const json_t *object, const char *key)
{
	static char ring[TEXT_RING][1200];
	static unsigned next;
	const json_t *value = json_object_get(object, key);
	char *out = ring[next++ % TEXT_RING];

	if (!json_is_string(value) || !json_string_length(value))
		return "-";
	printable_copy(out, sizeof ring[0], json_string_value(value), json_string_length(value));
	return out;
}

long long client_integer(const json_t *object, const char *key) { return json_integer_value(json_object_get(object, key)); }

const char *client_duration(long long seconds, char out[static 32])
{
	static const struct {
		long long s;
		char unit;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	size_t i = 0;

	while (i < ARRAY_LEN(units) - 1 && seconds < units[i].s)
		i++;
	if (i == ARRAY_LEN(units) - 1)
		snprintf(out, 32, "%llds", seconds);
	else
		snprintf(out, 32, "%lld%c %lld%c", seconds / units[i].s, units[i].unit, seconds % units[i].s / units[i + 1].s,
			 units[i + 1].unit);
	return out;
}
