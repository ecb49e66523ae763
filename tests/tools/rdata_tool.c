/* SPDX-License-Identifier: Apache-2.0 */
/* rdata_tool ORIGIN < FILE: the record data of a master file as wire and as text, for tests/system/rdata_differential_test.py.
 *   stdout   OWNER TYPE HEX TEXT, one record a line, in the order of the file
 *   stderr   LINE:COLUMN: TEXT
 * Exit code 0: no errors; 1: errors; 2: it could not do its work. */
#include "dns/master.h"

#include <stdio.h>
#include <stdlib.h>

static char text[5 * RDATA_MAX_BYTES], input[32u << 20];

static bool on_record(void *user, const struct master_record *r)
{
	char owner[NAME_TEXT_MAX_BYTES], type[16];
	size_t bytes;

	(void)user;
	name_to_text(owner, r->owner);
	rr_type_to_text(type, r->type);
	if (rdata_to_text(r->type, r->rdata, r->rdata_bytes, text, sizeof text, &bytes) != ERR_OK)
		exit(2);
	printf("%s %s ", owner, type);
	for (unsigned i = 0; i < r->rdata_bytes; i++)
		printf("%02x", r->rdata[i]);
	printf("%s %s\n", r->rdata_bytes == 0 ? "-" : "", text);
	return true;
}

static bool on_error(void *user, struct master_place place, const char *message)
{
	(void)user;
	fprintf(stderr, "%u:%u: %s\n", place.line, place.column, message);
	return true;
}

int main(int argc, char **argv)
{
	uint8_t origin[NAME_MAX_BYTES];
	const char *why;
	struct master_callbacks callbacks = { .record = on_record, .error = on_error };
	struct master_options options = {
		.origin = origin, .class_ = RR_CLASS_IN, .default_ttl_s = 300, .has_default_ttl = true
	};
	struct master_file file = { "stdin", input, 0 };

	if (argc != 2 || name_from_text(origin, argv[1], strlen(argv[1]), NULL, &why) == 0)
		return 2;
	file.bytes = fread(input, 1, sizeof input, stdin);
	return master_read(&file, &options, &callbacks).errors > 0;
}
