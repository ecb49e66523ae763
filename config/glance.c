/* SPDX-License-Identifier: Apache-2.0 */
#include "config/glance.h"

#include <stdlib.h>

#define SECTION "zones:"

static bool is_zones(const char *line, size_t bytes)
{
	size_t n = sizeof SECTION - 1;
	return bytes >= n && memcmp(line, SECTION, n) == 0 && (bytes == n || strchr(" \t\r\n", line[n]));
}

/* Of the section above: indented, an item of a list at the margin, a comment, or empty. */
static bool is_continued(char first) { return first == ' ' || first == '-' || first == '#' || first == '\r' || first == '\n'; }

size_t glance_cut(char *rest, const char *text, size_t text_bytes)
{
	const char *p = text, *end = text + text_bytes;
	size_t used = 0;
	bool is_zone = false;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p)), *next = newline ? newline + 1 : end;
		size_t bytes = (size_t)(next - p);
		is_zone = is_zones(p, bytes) || (is_zone && is_continued(*p));
		if (!is_zone) {
			memcpy(rest + used, p, bytes);
			used += bytes;
		}
		p = next;
	}
	return used;
}

static void ignore(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)user, (void)is_error, (void)place, (void)message;
}

enum err glance_load(struct config **out, const char *path, const char *text, size_t text_bytes, config_report *report,
		     void *user)
{
	char *rest = malloc(text_bytes + 1);
	if (!rest)
		return ERR_NOMEM;
	size_t bytes = glance_cut(rest, text, text_bytes);
	enum err err = bytes == text_bytes ? ERR_SYNTAX : config_load(out, path, rest, bytes, ignore, NULL);
	free(rest);
	return err == ERR_SYNTAX ? config_load(out, path, text, text_bytes, report, user) : err;
}
