/* SPDX-License-Identifier: Apache-2.0 */
/* docs/config.md out of the schema. */
#include "config/schema.h"

#include <stdio.h>

static const char intro[] = "<!-- Made by `make docs` from config/schema.c: change it there. -->\n"
			    "# skua.yaml\n\n"
			    "`skua config check -c FILE` reads a file and says all that is wrong with it, with line and column; "
			    "`skua run -c FILE` runs it.\n"
			    "config/skua.yaml is an example that holds every key. A key that is left out has its default.\n\n"
			    "The file is YAML in UTF-8: sections, keys and lists. Anchors, aliases, merge keys, tags and second "
			    "documents are refused, as\n"
			    "are unknown and repeated keys. A wrong file is refused whole.\n\n"
			    "* A **size** is a number of octets, or has K, M, G or T behind it: powers of 1024.\n"
			    "* A **duration** has a unit: us, ms, s, m, h or d.\n"
			    "* A **prefix** is `10.0.0.0/8` or `2001:db8::/32`; an address alone is a prefix of its own.\n"
			    "* An **address** is `10.0.0.1` or `2001:db8::1`; with a port, `10.0.0.1:5300` or "
			    "`[2001:db8::1]:5300`. Quote the latter.\n"
			    "* A **path** that does not start with a slash starts from the folder of skua.yaml.\n"
			    "* **true or false** may also be yes, no, on or off.\n\n"
			    "*Takes effect*: **restart** means when `skua run` is started again. `skua reload` and SIGHUP read "
			    "the master files of the zones\n"
			    "anew, not this file.\n";

static const char *const effects[] = {
	[EFFECT_RESTART] = "restart",
	[EFFECT_RESTART_FILE] = "restart; the file's content: `skua reload`",
	[EFFECT_RESTART_LEVEL] = "restart; until then `skua log level`",
};

/* Characters that would end a cell or start a link. */
static void print_cell(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputc('\\', f);
		fputc(*text, f);
	}
}

static void print_row(FILE *f, const struct schema_row *row)
{
	char expected[SCHEMA_EXPECTED_BYTES];

	schema_expected(expected, row);
	fprintf(f, "| `%s` | ", row->key);
	print_cell(f, expected);
	if (row->fallback_text)
		fprintf(f, " | %s", row->fallback_text);
	else
		fprintf(f, " | `%s`", row->fallback);
	fprintf(f, " | %s | ", effects[row->effect]);
	print_cell(f, row->help);
	fputs(" |\n", f);
}

void config_print_reference(void *file)
{
	FILE *f = file;

	fputs(intro, f);
	for (size_t i = 0; i < schema_section_count; i++) {
		const struct schema_section *s = &schema_sections[i];
		if (s->is_later)
			continue;
		fprintf(f, "\n## %s\n\n%s\n\n| Key | Value | Default | Takes effect | Meaning |\n| - | - | - | - | - |\n",
			s->name, s->help);
		for (size_t k = 0; k < s->row_count; k++)
			print_row(f, &s->rows[k]);
	}
	size_t later = 0;
	for (size_t i = 0; i < schema_section_count; i++) {
		if (schema_sections[i].is_later)
			fprintf(f, "%s `%s`",
				later++ ? "," : "\n## Not available yet in this version\n\nThese sections are known and refused:",
				schema_sections[i].name);
	}
	fputs(later ? ".\n" : "", f);
}
