/* SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

Test(schema, rows_are_consistent)
{
	for (size_t i = 0; i < schema_section_count; i++) {
		const struct schema_section *s = &schema_sections[i];
		cr_expect(s->is_later ? s->row_count == 0 : s->row_count > 0, "%s", s->name);
		cr_expect_eq(s->help[strlen(s->help) - 1], '.', "%s", s->name);
		for (size_t k = 0; k < s->row_count; k++) {
			const struct schema_row *row = &s->rows[k];
			char expected[SCHEMA_EXPECTED_BYTES];
			cr_expect_eq(strspn(row->key, "abcdefghijklmnopqrstuvwxyz-"), strlen(row->key), "%s.%s", s->name,
				     row->key);
			cr_expect(row->fallback || row->fallback_text, "%s.%s: no default in the docs", s->name, row->key);
			cr_expect_leq(row->min, row->max, "%s.%s", s->name, row->key);
			cr_expect_eq(row->help[strlen(row->help) - 1], '.', "%s.%s", s->name, row->key);
			schema_expected(expected, row);
			cr_expect_lt(strlen(expected), sizeof expected - 1, "%s.%s", s->name, row->key);
			for (size_t j = 0; j < k; j++)
				cr_expect_str_neq(row->key, s->rows[j].key);
		}
	}
}

Test(schema, what_is_expected_reads_well)
{
	static const struct {
		const char *key, *want;
	} cases[] = {
		{ "workers", "auto, or a number from 1 to 256" },
		{ "udp-receive-buffer", "a size from 64K to 1G" },
		{ "idle-timeout", "a duration from 100ms to 1h, in whole ms" },
		{ "mode", "one of auto, zerocopy, copy, skb" },
		{ "reply", "one of swap" },
		{ "ring-size", "a power of two from 64 to 16384" },
		{ "chaos", "true or false" },
		{ "file", "a path of at most 1024 octets, or \"\"" },
		{ "max-ttl", "a duration from 1s to 7d, in whole seconds" },
		{ "strategy", "one of ordered, fastest, spread" },
	};
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		char expected[SCHEMA_EXPECTED_BYTES] = "";
		for (size_t i = 0; i < schema_section_count; i++) {
			for (size_t k = 0; k < schema_sections[i].row_count; k++) {
				if (strcmp(schema_sections[i].rows[k].key, cases[c].key) == 0)
					schema_expected(expected, &schema_sections[i].rows[k]);
			}
		}
		cr_expect_str_eq(expected, cases[c].want, "%s: %s", cases[c].key, expected);
	}
}

Test(schema, the_reference_tells_of_every_key)
{
	char *page = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&page, &bytes);
	config_print_reference(f);
	fclose(f);
	for (size_t i = 0; i < schema_section_count; i++) {
		const struct schema_section *s = &schema_sections[i];
		char heading[64];
		snprintf(heading, sizeof heading, s->is_later ? " `%s`" : "\n## %s\n", s->name);
		const char *at = strstr(page, heading);
		cr_assert(at, "%s", s->name);
		for (size_t k = 0; k < s->row_count; k++) {
			char row[64];
			snprintf(row, sizeof row, "\n| `%s` | ", s->rows[k].key);
			at = strstr(at, row);
			cr_assert(at, "%s.%s is missing or out of order", s->name, s->rows[k].key);
		}
	}
	unsigned cells = 0;
	for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
		if (line[0] != '|')
			continue;
		unsigned bars = 0;
		for (char *p = line; *p; p++)
			bars += *p == '|' && (p == line || p[-1] != '\\');
		cr_expect_eq(bars, 6, "five cells: %s", line);
		cells++;
	}
	cr_expect_gt(cells, 40);
	free(page);
}
