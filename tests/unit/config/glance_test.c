/* SPDX-License-Identifier: Apache-2.0 */
#include "config/glance.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned errors;

static void count(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)user, (void)place, (void)message;
	errors += is_error;
}

Test(glance, lines_that_look_like_zones_are_left_out)
{
	static const struct {
		const char *text, *rest;
	} cases[] = {
		{ "", "" },
		{ "log: {}\n", "log: {}\n" },
		{ "zones:\n  - name: a\n    file: b\nlog: {}\n", "log: {}\n" },
		{ "zones:\r\n\r\n- name: a\n# note\n\n  file: b\nlog: {}\nxdp: {}", "log: {}\nxdp: {}" },
		{ "log: {}\nzones: [ { name: a, file: b } ]", "log: {}\n" },
		{ "zones:", "" },
		{ "zones", "zones" },
		{ "zoneset: 1\nzones:x\n zones:\n", "zoneset: 1\nzones:x\n zones:\n" },
		{ "{ zones: [] }\n", "{ zones: [] }\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char rest[128] = "";
		size_t bytes = glance_cut(rest, cases[i].text, strlen(cases[i].text));
		cr_expect(bytes == strlen(cases[i].rest) && !memcmp(rest, cases[i].rest, bytes), "case %zu: %.*s", i, (int)bytes,
			  rest);
	}
}

Test(glance, settings_are_those_of_the_whole_file)
{
	static const struct {
		const char *text;
		size_t zones;	 /* found */
		unsigned errors; /* reported */
		const char *run; /* NULL: not loaded */
	} cases[] = {
		{ "server:\n  run: /a\nzones:\n  - name: x\n    file: y\n", 0, 0, "/a" },
		{ "zones:\n  - name: x\n    file: y\nserver:\n  run: /a\n", 0, 0, "/a" },
		{ "server: { run: /a }\n", 0, 0, "/a" },
		{ "{ server: { run: /a }, zones: [ { name: x, file: y } ] }\n", 1, 0, "/a" },
		/* flow style over lines: what is left is no YAML, so the whole counts */
		{ "{ server: { run: /a },\nzones: [ { name: x, file: y } ] }\n", 1, 0, "/a" },
		{ "server:\n  run: /a\nzones:\n  - nome: x\n", 0, 0, "/a" },
		{ "server:\n  ran: /a\nzones:\n  - name: x\n    file: y\n", 0, 1, NULL },
		{ "server:\n  run: relative\nzone: 1\nzones: []\n", 0, 1, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *c = NULL;
		errors = 0;
		enum err err = glance_load(&c, "/etc/skua.yaml", cases[i].text, strlen(cases[i].text), count, NULL);
		cr_assert_eq(err, cases[i].run ? ERR_OK : ERR_SYNTAX, "case %zu", i);
		cr_expect_eq(errors > 0, cases[i].errors > 0, "case %zu", i);
		if (!cases[i].run)
			continue;
		cr_expect_str_eq(c->server.run, cases[i].run, "case %zu", i);
		cr_expect_eq(c->zone_count, cases[i].zones, "case %zu", i);
		config_free(c);
	}
}
