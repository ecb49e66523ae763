/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/verb.h"

#include <criterion/criterion.h>
#include <stdio.h>

static int nothing(const struct verb_call *call)
{
	(void)call;
	return VERB_OK;
}

static const struct verb table[] = {
	{ "status", nothing, VERB_OPT_CONFIG | VERB_OPT_RUN, 0, 0, "", "what runs" },
	{ "reload", nothing, VERB_OPT_CONFIG | VERB_OPT_FORCE, 0, 1, "[ZONE]", "load again" },
	{ "zone check", nothing, VERB_OPT_CONFIG | VERB_OPT_ORIGIN, 0, 1, "FILE --origin NAME", "check" },
	{ "zone status", nothing, VERB_OPT_CONFIG, 1, 1, "NAME", "one zone" },
	{ NULL, NULL, 0, 0, 0, NULL, NULL },
};

struct line {
	char *argv[10];
	int argc;
};

static struct line split(const char *text, char buffer[static 256])
{
	struct line line = { .argv = { "skua" }, .argc = 1 };
	char *save = NULL;

	snprintf(buffer, 256, "%s", text);
	for (char *word = strtok_r(buffer, " ", &save); word && line.argc < 9; word = strtok_r(NULL, " ", &save))
		line.argv[line.argc++] = word;
	return line;
}

Test(verb, lines_that_parse)
{
	static const struct {
		const char *line, *verb;
		int args;
		unsigned options;
	} cases[] = {
		{ "status", "status", 0, 0 },
		{ "status --json", "status", 0, VERB_OPT_JSON },
		{ "--json status", "status", 0, VERB_OPT_JSON },
		{ "-c x.yaml status", "status", 0, VERB_OPT_CONFIG },
		{ "status --config=x.yaml", "status", 0, VERB_OPT_CONFIG },
		{ "zone status example.com", "zone status", 1, 0 },
		{ "zone --json status example.com", "zone status", 1, VERB_OPT_JSON },
		{ "zone status -c x.yaml example.com", "zone status", 1, VERB_OPT_CONFIG },
		{ "reload", "reload", 0, 0 },
		{ "reload example.com --force", "reload", 1, VERB_OPT_FORCE },
		{ "reload -- --force", "reload", 1, 0 },
		{ "reload -", "reload", 1, 0 },
		{ "zone status --help", "zone status", 0, VERB_OPT_HELP },
		{ "", NULL, 0, 0 },
		{ "--help", NULL, 0, VERB_OPT_HELP },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char buffer[256], why[256] = "";
		struct line line = split(cases[i].line, buffer);
		struct verb_call call;
		cr_assert(verb_parse(table, line.argc, line.argv, &call, why, sizeof why), "%s: %s", cases[i].line, why);
		cr_expect_eq(call.options, cases[i].options, "%s", cases[i].line);
		cr_expect_eq(call.arg_count, cases[i].args, "%s", cases[i].line);
		if (cases[i].verb)
			cr_expect_str_eq(call.verb->name, cases[i].verb);
		else
			cr_expect_null(call.verb);
	}
}

Test(verb, lines_that_do_not)
{
	static const struct {
		const char *line, *why;
	} cases[] = {
		{ "statsu", "unknown verb \"statsu\"; did you mean \"status\"?" },
		{ "zone chekc f", "unknown verb \"zone chekc\"; did you mean \"zone check\"?" },
		{ "zoen status x", "unknown verb \"zoen status\"; did you mean \"zone status\"?" },
		{ "zone", "unknown verb \"zone\"; `skua help` lists them" },
		{ "zone frobnicate", "unknown verb \"zone frobnicate\"; `skua help` lists them" },
		{ "frobnicate", "unknown verb \"frobnicate\"; `skua help` lists them" },
		{ "status --jsno", "unknown option \"--jsno\"; did you mean \"--json\"?" },
		{ "status --nothing-like-it", "unknown option \"--nothing-like-it\"; `skua help` lists them" },
		{ "status --force", "option --force does not go with `skua status`" },
		{ "status extra", "usage: skua status" },
		{ "zone status", "usage: skua zone status NAME" },
		{ "zone status a b", "usage: skua zone status NAME" },
		{ "status -c", "option -c needs a value" },
		{ "status --config=", "option --config= needs a value" },
		{ "status --json=yes", "option --json takes no value" },
		{ "status -x", "unknown option \"-x\"; `skua help` lists them" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char buffer[256], why[256] = "";
		struct line line = split(cases[i].line, buffer);
		struct verb_call call;
		cr_expect_not(verb_parse(table, line.argc, line.argv, &call, why, sizeof why), "%s", cases[i].line);
		cr_expect_str_eq(why, cases[i].why, "%s: %s", cases[i].line, why);
	}
}

Test(verb, values_and_arguments_are_the_line_s_own)
{
	char buffer[256], why[256];
	struct line line = split("zone check a.zone --origin example.com -c s.yaml", buffer);
	struct verb_call call;

	cr_assert(verb_parse(table, line.argc, line.argv, &call, why, sizeof why));
	cr_expect_str_eq(call.origin, "example.com");
	cr_expect_str_eq(call.config, "s.yaml");
	cr_expect_str_eq(call.args[0], "a.zone");
	cr_expect_null(call.run_dir);
}

Test(verb, json_is_known_although_the_line_is_wrong)
{
	char buffer[256], why[256];
	struct line line = split("--json statsu", buffer);
	struct verb_call call;

	cr_assert_not(verb_parse(table, line.argc, line.argv, &call, why, sizeof why));
	cr_expect(verb_has(&call, VERB_OPT_JSON));
}

Test(verb, nearest_word)
{
	static const char *const words[] = { "status", "reload", "zone check", "xdp" };
	static const struct {
		const char *text, *nearest;
	} cases[] = {
		{ "status", "status" },
		{ "statsu", "status" },
		{ "sttus", "status" },
		{ "statuss", "status" },
		{ "stauts", "status" },
		{ "reloda", "reload" },
		{ "xpd", "xdp" },
		{ "zone chck", "zone check" },
		{ "help", NULL },
		{ "", NULL },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *near = verb_nearest(cases[i].text, words, ARRAY_LEN(words));
		if (cases[i].nearest) {
			cr_assert_not_null(near, "%s", cases[i].text);
			cr_expect_str_eq(near, cases[i].nearest);
		} else {
			cr_expect_null(near, "%s", cases[i].text);
		}
	}
}
