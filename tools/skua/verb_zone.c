/* SPDX-License-Identifier: Apache-2.0 */
/* reload, zone list, zone status: asked from the slowpath, whose zones they are. */
#include "tools/skua/client.h"
#include "tools/skua/verbs.h"

#include "base/printable.h"

#include <stdio.h>
#include <time.h>

#define LIST_TIMEOUT_MS 60000 /* there may be a million zones */

static void print_reload(const json_t *result)
{
	printf("%lld loaded, %lld unchanged; generation %lld%s, %lld ms\n", client_integer(result, "loaded"),
	       client_integer(result, "unchanged"), client_integer(result, "generation"),
	       json_is_true(json_object_get(result, "live")) ? " is live" : " is not live everywhere yet",
	       client_integer(result, "duration_us") / 1000);
}

int verb_reload(const struct verb_call *call)
{
	json_t *args = json_object(), *result;

	if (call->arg_count)
		json_object_set_new(args, "zone", json_string(call->args[0]));
	if (verb_has(call, VERB_OPT_FORCE))
		json_object_set_new(args, "force", json_true());
	int code = client_ask_slowpath(call, "reload", args, CLIENT_RELOAD_TIMEOUT_MS, &result);
	return code == VERB_OK ? client_result(call, result, print_reload) : code;
}

static void print_zones(const json_t *result)
{
	size_t i;
	json_t *z;

	printf("%-32s %-8s %10s %10s  %s\n", "zone", "state", "serial", "records", "file");
	json_array_foreach(result, i, z) {
		printf("%-32s %-8s %10lld %10lld  %s\n", client_text(z, "zone"), client_text(z, "state"),
		       client_integer(z, "serial"), client_integer(z, "records"), client_text(z, "file"));
	}
}

int verb_zone_list(const struct verb_call *call)
{
	json_t *result;
	int code = client_ask_slowpath(call, "zone list", NULL, LIST_TIMEOUT_MS, &result);

	return code == VERB_OK ? client_result(call, result, print_zones) : code;
}

static void print_time(const char *name, json_int_t seconds)
{
	char text[40];
	time_t t = (time_t)seconds;
	struct tm tm;

	if (gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
		printf("%-12s %s\n", name, text);
}

static void print_lines(const char *name, const json_t *lines)
{
	char text[1200];
	size_t i;
	json_t *line;

	json_array_foreach(lines, i, line) {
		if (!json_is_string(line))
			continue;
		printable_copy(text, sizeof text, json_string_value(line), json_string_length(line));
		printf("%-12s %s\n", i ? "" : name, text);
	}
}

/* Every field of the answer, a line each. */
static void print_zone(const json_t *result)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)result, name, value) {
		size_t bytes = strlen(name);
		if (json_is_integer(value) && bytes > 3 && !strcmp(name + bytes - 3, "_at"))
			print_time(name, json_integer_value(value));
		else if (json_is_integer(value))
			printf("%-12s %lld\n", name, (long long)json_integer_value(value));
		else if (json_is_boolean(value))
			printf("%-12s %s\n", name, json_is_true(value) ? "yes" : "no");
		else if (json_is_array(value))
			print_lines(name, value);
		else
			printf("%-12s %s\n", name, client_text(result, name));
	}
}

int verb_zone_status(const struct verb_call *call)
{
	json_t *result;
	int code =
		client_ask_slowpath(call, "zone status", json_pack("{s:s}", "zone", call->args[0]), CLIENT_TIMEOUT_MS, &result);

	return code == VERB_OK ? client_result(call, result, print_zone) : code;
}
