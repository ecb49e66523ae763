/* SPDX-License-Identifier: Apache-2.0 */
/* skua: the command. Every verb is one line of the table below. */
#include "base/log.h"
#include "base/version.h"
#include "tools/skua/client.h"
#include "tools/skua/run.h"
#include "tools/skua/verbs.h"

#include <stdio.h>

/* Read by jemalloc: one arena. What is free goes back to the kernel after a while, when `run` has started at once (run_memory.h). */
const char *malloc_conf = "narenas:1,tcache:false,muzzy_decay_ms:0";

#define WHERE (VERB_OPT_CONFIG | VERB_OPT_RUN)

static int verb_help(const struct verb_call *call);

static const struct verb verbs[] = {
	{ "run", run_verb, VERB_OPT_CONFIG, 0, 0, "[-c FILE]", "start the server and supervise it in the foreground" },
	{ "status", verb_status, WHERE, 0, 0, "", "what runs, which zones, how many answers left by which path" },
	{ "reload", verb_reload, WHERE | VERB_OPT_FORCE, 0, 1, "[ZONE] [--force]",
	  "load changed zone files; --force: unchanged ones too" },
	{ "zone check", verb_zone_check, VERB_OPT_CONFIG | VERB_OPT_ORIGIN | VERB_OPT_PRINT, 0, 1,
	  "FILE --origin NAME [--print] | -c FILE", "check a zone file, or all of a configuration; --print: write the zone" },
	{ "zone list", verb_zone_list, WHERE, 0, 0, "", "zones that are served" },
	{ "zone status", verb_zone_status, WHERE, 1, 1, "NAME", "one zone: serial, size, file, last error" },
	{ "cache stats", verb_cache_stats, WHERE, 0, 0, "", "the answer cache in numbers" },
	{ "cache lookup", verb_cache_lookup, WHERE, 1, 2, "NAME [TYPE]", "what is cached of a name" },
	{ "cache flush", verb_cache_flush, WHERE, 1, 2, "NAME [TYPE]", "forget a name, or one type of it" },
	{ "cache flush-tree", verb_cache_flush_tree, WHERE, 1, 1, "NAME", "forget a name and everything below it" },
	{ "cache flush-all", verb_cache_flush_all, WHERE, 0, 0, "", "forget everything" },
	{ "upstream list", verb_upstream_list, WHERE, 0, 0, "", "forward zones, their servers, and what is known of them" },
	{ "upstream test", verb_upstream_test, WHERE, 0, 1, "[ZONE]", "ask every server of a forward zone, or of all" },
	{ "xdp status", verb_xdp_status, WHERE, 0, 0, "", "steering programs and AF_XDP queues" },
	{ "xdp detach", verb_xdp_detach, WHERE, 0, 1, "[INTERFACE]", "take the steering program off; the server must not run" },
	{ "config check", verb_config_check, VERB_OPT_CONFIG, 0, 0, "[-c FILE]", "check a configuration, print every finding" },
	{ "log level", verb_log_level, WHERE, 0, 2, "[SUBSYSTEM [LEVEL]]", "show or set log levels of all processes" },
	{ "version", verb_version, WHERE, 0, 0, "", "the version of this program" },
	{ "help", verb_help, WHERE, 0, 2, "[VERB]", "this list, or one verb" },
	{ "checkzone", verb_zone_check, VERB_OPT_CONFIG | VERB_OPT_ORIGIN | VERB_OPT_PRINT, 0, 1, "FILE --origin NAME", NULL },
	{ "zonestatus", verb_zone_status, WHERE, 1, 1, "NAME", NULL },
	{ "conf-check", verb_config_check, VERB_OPT_CONFIG, 0, 0, "[-c FILE]", NULL },
	{ "checkconf", verb_config_check, VERB_OPT_CONFIG, 0, 0, "[-c FILE]", NULL },
	{ "stats", verb_status, WHERE, 0, 0, "", NULL },
	{ NULL, NULL, 0, 0, 0, NULL, NULL },
};

static json_t *help_json(void)
{
	json_t *list = json_array();

	for (const struct verb *v = verbs; v->name; v++) {
		if (v->help)
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:s}", "verb", v->name, "arguments", v->arguments, "help", v->help));
	}
	return json_pack("{s:o}", "verbs", list);
}

static void help_text(const json_t *result)
{
	(void)result;
	printf("usage: skua VERB [ARGUMENTS] [--json]\n\n");
	for (const struct verb *v = verbs; v->name; v++) {
		if (v->help)
			printf("  %-16s %s\n", v->name, v->help);
	}
	printf("\n  -c FILE      the configuration; without it $SKUA_CONFIG, else /etc/skua/skua.yaml\n"
	       "  --run DIR    the run folder of the server to ask, instead of a configuration\n"
	       "  --json       machine-readable output\n\n"
	       "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 no server is running.\n");
}

static void help_verb(const struct verb *v)
{
	printf("usage: skua %s %s\n  %s\n", v->name, v->arguments, v->help ? v->help : "another word for a verb of the list");
}

static int verb_help(const struct verb_call *call)
{
	char *argv[4] = { "skua", call->arg_count > 0 ? call->args[0] : NULL, call->arg_count > 1 ? call->args[1] : NULL, NULL };
	char why[256];
	struct verb_call about;

	if (!call->arg_count)
		return client_result(call, help_json(), help_text);
	if (!verb_parse(verbs, 1 + call->arg_count, argv, &about, why, sizeof why) && !about.verb)
		return client_complain(call, "usage", "%s", why);
	if (!verb_has(call, VERB_OPT_JSON)) {
		help_verb(about.verb);
		return VERB_OK;
	}
	return client_result(call,
			     json_pack("{s:s, s:s, s:s}", "verb", about.verb->name, "arguments", about.verb->arguments, "help",
				       about.verb->help ? about.verb->help : ""),
			     help_text);
}

int verb_version(const struct verb_call *call)
{
	if (verb_has(call, VERB_OPT_JSON))
		return client_result(call, json_pack("{s:s}", "version", version_text()), NULL);
	printf("skua %s\n", version_text());
	return VERB_OK;
}

int main(int argc, char **argv)
{
	struct verb_call call;
	char why[256];

	log_init("skua");
	if (argc == 2 && !strcmp(argv[1], "--version"))
		argv[1] = "version";
	if (!verb_parse(verbs, argc, argv, &call, why, sizeof why))
		return client_complain(&call, "usage", "%s", why);
	if (!call.verb && !verb_has(&call, VERB_OPT_HELP)) {
		help_text(NULL);
		return VERB_USAGE;
	}
	if (!call.verb)
		return client_result(&call, help_json(), help_text);
	if (verb_has(&call, VERB_OPT_HELP)) {
		help_verb(call.verb);
		return VERB_OK;
	}
	return call.verb->run(&call);
}
