/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/reload_faults.h"
#include "slowpath/zone/reload.h"

#include <stdio.h>
#include <stdlib.h>

void reload_faults_take(void *user, enum zone_finding_level level, struct master_place place, const char *text)
{
	struct reload_faults *f = user;
	char line[1024];
	if (level != ZONE_ERROR)
		return;
	f->errors++;
	if (f->line_count == RELOAD_FAULT_LINES)
		return;
	int bytes;
	if (place.file && place.line)
		bytes = snprintf(line, sizeof(line), "%s:%u:%u: %s\n", place.file, place.line, place.column, text);
	else
		bytes = snprintf(line, sizeof(line), "%s%s%s\n", place.file ? place.file : "", place.file ? ": " : "", text);
	size_t take = MIN((size_t)bytes, sizeof(line) - 1);
	char *grown = realloc(f->lines, f->bytes + take + 1);
	if (!grown)
		return; /* it stays counted */
	memcpy(grown + f->bytes, line, take + 1);
	f->lines = grown;
	f->bytes += take;
	f->line_count++;
}

void reload_faults_fini(struct reload_faults *f)
{
	free(f->lines);
	*f = (struct reload_faults){ 0 };
}
