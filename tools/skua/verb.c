/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/verb.h"

#include <stdio.h>
#include <stdlib.h>

#define NEAREST_MAX_BYTES 48 /* longer words are no typing error of ours */
#define VERB_MAX 64	     /* verbs in a table that are looked at for hints */

static const struct {
	const char *brief, *text;
	enum verb_option option;
	bool has_value;
} options[] = {
	{ "-c", "--config", VERB_OPT_CONFIG, true }, { NULL, "--run", VERB_OPT_RUN, true },
	{ NULL, "--force", VERB_OPT_FORCE, false },  { NULL, "--origin", VERB_OPT_ORIGIN, true },
	{ NULL, "--print", VERB_OPT_PRINT, false },  { NULL, "--json", VERB_OPT_JSON, false },
	{ "-h", "--help", VERB_OPT_HELP, false },
};

bool verb_has(const struct verb_call *call, enum verb_option option) { return (call->options & option) != 0; }

static unsigned min3(unsigned a, unsigned b, unsigned c) { return MIN(a, MIN(b, c)); }

/* Insertions, deletions, replacements and swapped neighbours, each counted as one. */
static unsigned distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	unsigned row[3][NEAREST_MAX_BYTES + 1];

	for (size_t j = 0; j <= b_bytes; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_bytes; i++) {
		unsigned *now = row[i % 3], *last = row[(i - 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = MIN(now[j], row[(i - 2) % 3][j - 2] + 1);
		}
	}
	return row[a_bytes % 3][b_bytes];
}

const char *verb_nearest(const char *text, const char *const *candidates, size_t count)
{
	size_t text_bytes = strlen(text);
	const char *best = NULL;
	unsigned best_distance = 0;

	if (text_bytes == 0 || text_bytes > NEAREST_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t bytes = strlen(candidates[i]);
		if (bytes > NEAREST_MAX_BYTES)
			continue;
		unsigned d = distance(text, text_bytes, candidates[i], bytes);
		if (d > MAX(1u, (unsigned)bytes / 3))
			continue;
		if (!best || d < best_distance) {
			best = candidates[i];
			best_distance = d;
		}
	}
	return best;
}

static void hint(char *why, size_t why_bytes, const char *what, const char *text, const char *const *candidates, size_t count)
{
	const char *near = verb_nearest(text, candidates, count);
	if (near)
		snprintf(why, why_bytes, "%s \"%s\"; did you mean \"%s\"?", what, text, near);
	else
		snprintf(why, why_bytes, "%s \"%s\"; `skua help` lists them", what, text);
}

static bool parse_option(int argc, char **argv, int *at, struct verb_call *call, char *why, size_t why_bytes)
{
	const char *text = argv[*at], *equals = strchr(text, '=');
	size_t bytes = equals ? (size_t)(equals - text) : strlen(text);
	const char *names[ARRAY_LEN(options)];

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		bool is_long = strlen(options[i].text) == bytes && !memcmp(options[i].text, text, bytes);
		bool is_brief = options[i].brief && !strcmp(options[i].brief, text);
		const char *value = NULL;

		names[i] = options[i].text;
		if (!is_long && !is_brief)
			continue;
		if (equals && !options[i].has_value) {
			snprintf(why, why_bytes, "option %s takes no value", options[i].text);
			return false;
		}
		if (options[i].has_value) {
			value = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
			if (!value || !*value) {
				snprintf(why, why_bytes, "option %s needs a value", text);
				return false;
			}
		}
		call->options |= options[i].option;
		if (options[i].option == VERB_OPT_CONFIG)
			call->config = value;
		else if (options[i].option == VERB_OPT_RUN)
			call->run_dir = value;
		else if (options[i].option == VERB_OPT_ORIGIN)
			call->origin = value;
		return true;
	}
	hint(why, why_bytes, "unknown option", text, names, ARRAY_LEN(options));
	return false;
}

/* The verb with the most words that match; *used: how many words it took. */
static const struct verb *find(const struct verb *table, char **words, int count, int *used)
{
	const struct verb *best = NULL;

	*used = 0;
	for (const struct verb *v = table; v->name; v++) {
		const char *space = strchr(v->name, ' ');
		size_t first = space ? (size_t)(space - v->name) : strlen(v->name);
		int words_needed = space ? 2 : 1;

		if (count < words_needed || strlen(words[0]) != first || memcmp(words[0], v->name, first) != 0)
			continue;
		if (space && strcmp(words[1], space + 1) != 0)
			continue;
		if (words_needed > *used) {
			best = v;
			*used = words_needed;
		}
	}
	return best;
}

static void unknown_verb(const struct verb *table, char **words, int count, char *why, size_t why_bytes)
{
	const char *names[VERB_MAX];
	char joined[2 * NEAREST_MAX_BYTES];
	size_t n = 0;

	for (const struct verb *v = table; v->name && n < VERB_MAX; v++)
		names[n++] = v->name;
	if (count > 1) {
		snprintf(joined, sizeof joined, "%.*s %.*s", NEAREST_MAX_BYTES, words[0], NEAREST_MAX_BYTES - 2, words[1]);
		if (verb_nearest(joined, names, n)) {
			hint(why, why_bytes, "unknown verb", joined, names, n);
			return;
		}
	}
	for (const struct verb *v = table; v->name; v++) {
		size_t bytes = strlen(words[0]);
		if (!strncmp(v->name, words[0], bytes) && v->name[bytes] == ' ') {
			snprintf(why, why_bytes, "unknown verb \"%s%s%.48s\"; `skua help` lists them", words[0],
				 count > 1 ? " " : "", count > 1 ? words[1] : "");
			return;
		}
	}
	hint(why, why_bytes, "unknown verb", words[0], names, n);
}

bool verb_parse(const struct verb *table, int argc, char **argv, struct verb_call *call, char *why, size_t why_bytes)
{
	int words = 0, used;
	bool options_end = false;

	*call = (struct verb_call){ 0 };
	for (int i = 1; i < argc; i++) {
		if (!options_end && !strcmp(argv[i], "--")) {
			options_end = true;
		} else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
			if (!parse_option(argc, argv, &i, call, why, why_bytes))
				return false;
		} else {
			argv[1 + words++] = argv[i];
		}
	}
	if (!words)
		return true;
	call->verb = find(table, argv + 1, words, &used);
	if (!call->verb) {
		unknown_verb(table, argv + 1, words, why, why_bytes);
		return false;
	}
	call->args = argv + 1 + used;
	call->arg_count = words - used;
	if (verb_has(call, VERB_OPT_HELP))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if ((call->options & options[i].option) && !((call->verb->options | VERB_OPT_ALWAYS) & options[i].option)) {
			snprintf(why, why_bytes, "option %s does not go with `skua %s`", options[i].text, call->verb->name);
			return false;
		}
	}
	if (call->arg_count < call->verb->min_args || call->arg_count > call->verb->max_args) {
		snprintf(why, why_bytes, "usage: skua %s%s%s", call->verb->name, *call->verb->arguments ? " " : "",
			 call->verb->arguments);
		return false;
	}
	return true;
}
