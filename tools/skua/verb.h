/* SPDX-License-Identifier: Apache-2.0 */
/* verb.h: the command line of `skua`: one table of verbs (main.c), the options that each allows, and hints for typing errors.
 *
 * Verbs are one or two words ("zone check"). Options may stand anywhere; "--" ends them. --json and --help go with every verb.
 * Everything here is pure: it prints and exits nothing. */
#pragma once
#include "base/base.h"

enum verb_exit { VERB_OK = 0, VERB_FAILED = 1, VERB_USAGE = 2, VERB_NOT_RUNNING = 3 };

enum verb_option {
	VERB_OPT_CONFIG = 1, /* -c FILE, --config FILE */
	VERB_OPT_RUN = 2,    /* --run DIR */
	VERB_OPT_FORCE = 4,  /* --force */
	VERB_OPT_ORIGIN = 8, /* --origin NAME */
	VERB_OPT_PRINT = 16, /* --print */
	VERB_OPT_JSON = 32,
	VERB_OPT_HELP = 64,
};
#define VERB_OPT_ALWAYS (VERB_OPT_JSON | VERB_OPT_HELP)

struct verb_call;
struct verb {
	const char *name;
	int (*run)(const struct verb_call *call); /* returns enum verb_exit */
	unsigned options;			  /* enum verb_option that it takes beside VERB_OPT_ALWAYS */
	int min_args, max_args;
	const char *arguments; /* for the usage line */
	const char *help;      /* one sentence; NULL: an alias that no list shows */
};

/* One parsed command line. Strings are borrowed from argv. */
struct verb_call {
	const struct verb *verb;
	unsigned options; /* which ones were given */
	const char *config, *run_dir, *origin;
	char **args;
	int arg_count;
};
bool verb_has(const struct verb_call *call, enum verb_option option);

/* Parses argv[1..argc) against a table that ends with a NULL name. Reorders argv (words first). False with *why a sentence;
 * call->options then tells what was read so far (so that --json can shape the complaint). No verb at all: true, verb NULL. */
bool verb_parse(const struct verb *table, int argc, char **argv, struct verb_call *call, char *why, size_t why_bytes);

/* The entry of candidates[0..count) that is most like text, NULL if none is close: at most a third of its letters differ. */
const char *verb_nearest(const char *text, const char *const *candidates, size_t count);
