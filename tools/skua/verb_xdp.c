/* SPDX-License-Identifier: Apache-2.0 */
/* xdp status, xdp detach: both also work while no server runs, from what is pinned. */
#include "config/glance.h"
#include "tools/skua/client.h"
#include "tools/skua/config_file.h"
#include "tools/skua/verb_status.h"
#include "tools/skua/verbs.h"
#include "xdp/program.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PIN_DIR_DEFAULT "/sys/fs/bpf/skua"
#define INTERFACES_MAX 64

struct pins {
	char dir[PATH_MAX];
	char name[INTERFACES_MAX][16];
	size_t count;
};

static void ignore(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)user, (void)is_error, (void)place, (void)message;
}

/* xdp.pin-dir of the configuration; the default if it can't be loaded: detaching must work on a broken box too. */
static void find_pin_dir(const struct verb_call *call, char out[static PATH_MAX])
{
	struct config *config;
	bool is_default;
	const char *path = config_file_path(call->config, &is_default);
	char *text;
	size_t text_bytes;

	snprintf(out, PATH_MAX, "%s", PIN_DIR_DEFAULT);
	if (config_read_file(path, &text, &text_bytes) != ERR_OK)
		return;
	if (glance_load(&config, path, text, text_bytes, ignore, NULL) == ERR_OK) {
		snprintf(out, PATH_MAX, "%s", config->xdp.pin_dir);
		config_free(config);
	}
	free(text);
}

/* Each interface has a folder of its own among the pins. */
static void find_pins(const struct verb_call *call, struct pins *pins)
{
	struct dirent *entry;
	DIR *dir;

	find_pin_dir(call, pins->dir);
	pins->count = 0;
	dir = opendir(pins->dir);
	while (dir && (entry = readdir(dir)) && pins->count < INTERFACES_MAX) {
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof pins->name[0])
			memcpy(pins->name[pins->count++], entry->d_name, strlen(entry->d_name) + 1);
	}
	if (dir)
		closedir(dir);
}

static json_t *packets_json(const struct xdp_program *p)
{
	uint64_t counters[STEER_COUNTER_COUNT_];
	json_t *object = json_object();

	if (xdp_program_counters(p, counters) == ERR_OK) {
		for (unsigned c = 0; c < STEER_COUNTER_COUNT_; c++)
			json_object_set_new(object, xdp_program_counter_name(c), json_integer((json_int_t)counters[c]));
	}
	return object;
}

/* The same fields as the supervisor's status. */
static json_t *pinned_interfaces(const struct verb_call *call)
{
	struct pins pins;
	json_t *list = json_array();

	find_pins(call, &pins);
	for (size_t i = 0; i < pins.count; i++) {
		struct xdp_program *p;
		struct xdp_program_info info;
		if (xdp_program_adopt(&p, pins.name[i], pins.dir) != ERR_OK)
			continue;
		xdp_program_info(p, &info);
		json_array_append_new(list,
				      json_pack("{s:s, s:I, s:b, s:s, s:I, s:s, s:s, s:o}", "name", info.ifname, "ifindex",
						(json_int_t)info.ifindex, "attached", 1, "mode", info.is_skb ? "skb" : "driver",
						"program", (json_int_t)info.program_id, "origin",
						xdp_program_origin_text(info.origin), "reason", "", "packets", packets_json(p)));
		xdp_program_close(p);
	}
	return list;
}

static void print_packets(const json_t *packets)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)packets, name, value) {
		if (json_integer_value(value))
			printf("  %-14s %12lld  %s\n", name, (long long)json_integer_value(value),
			       !strcmp(name, "taken") ? "to AF_XDP" : "to the kernel path");
	}
}

static void print_xdp(const json_t *result)
{
	const json_t *interfaces = json_object_get(result, "interfaces");
	size_t i;
	json_t *x;

	if (!json_is_true(json_object_get(result, "running")))
		printf("no server is running; from what is pinned:\n");
	if (!json_array_size(interfaces))
		printf("no interface has a steering program\n");
	json_array_foreach(interfaces, i, x) {
		if (json_is_true(json_object_get(x, "attached")))
			printf("%s: program %lld, %s mode, %s\n", client_text(x, "name"), client_integer(x, "program"),
			       client_text(x, "mode"), client_text(x, "origin"));
		else
			printf("%s: no XDP: %s\n", client_text(x, "name"), client_text(x, "reason"));
		print_packets(json_object_get(x, "packets"));
	}
	verb_status_queues(json_object_get(result, "queues"));
}

int verb_xdp_status(const struct verb_call *call)
{
	char run_dir[PATH_MAX];
	struct control_error error;
	json_t *status = NULL, *result;
	int code = client_run_dir(call, run_dir);

	if (code != VERB_OK)
		return code;
	code = verb_status_fetch(run_dir, &status, &error);
	if (code != VERB_OK && code != VERB_NOT_RUNNING)
		return client_error(call, &error);
	if (code == VERB_OK)
		result = json_pack("{s:b, s:O?, s:O?}", "running", 1, "interfaces", json_object_get(status, "interfaces"),
				   "queues", json_object_get(status, "queues"));
	else
		result = json_pack("{s:b, s:o, s:[]}", "running", 0, "interfaces", pinned_interfaces(call), "queues");
	json_decref(status);
	return client_result(call, result, print_xdp);
}

static void print_detached(const json_t *result)
{
	size_t i;
	json_t *x;

	json_array_foreach(json_object_get(result, "detached"), i, x) {
		printf("%s: detached\n", json_string_value(x));
	}
	if (!json_array_size(json_object_get(result, "detached")))
		printf("nothing was attached\n");
}

int verb_xdp_detach(const struct verb_call *call)
{
	const char *only = call->arg_count ? call->args[0] : NULL;
	char run_dir[PATH_MAX];
	struct control_error error;
	struct pins pins;
	json_t *status, *detached;
	int code = client_run_dir(call, run_dir);

	if (code != VERB_OK)
		return code;
	code = client_ask(run_dir, "run", "status", NULL, CLIENT_TIMEOUT_MS, &status, &error);
	if (code == VERB_OK) {
		json_decref(status);
		return client_complain(call, "running",
				       "a server is running with this configuration: stop it first, or switch XDP off by "
				       "\"xdp: enabled: false\" and start it again");
	}
	find_pins(call, &pins);
	detached = json_array();
	for (size_t i = 0; i < pins.count; i++) {
		struct xdp_program *p;
		if ((only && strcmp(only, pins.name[i]) != 0) || xdp_program_adopt(&p, pins.name[i], pins.dir) != ERR_OK)
			continue;
		enum err err = xdp_program_detach(p);
		if (err != ERR_OK) {
			json_decref(detached);
			return client_complain(call, "failed", "%s: %s", pins.name[i], err_text(err));
		}
		json_array_append_new(detached, json_string(pins.name[i]));
	}
	if (only && !json_array_size(detached)) {
		json_decref(detached);
		return client_complain(call, "not-found", "%s has no program pinned in %s", only, pins.dir);
	}
	return client_result(call, json_pack("{s:o}", "detached", detached), print_detached);
}
