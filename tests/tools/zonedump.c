/* SPDX-License-Identifier: Apache-2.0 */
/* zonedump ORIGIN FILE: what the master file reader and the zone checks make of a file, for tests/system/master_test.py.
 *   stdout   the zone's records, one a line, in canonical order: owner TTL class type data
 *   stderr   FILE:LINE:COLUMN: error|warning: ID: TEXT   (ID "syntax" for the reader's errors)
 * Exit code 0: no errors; 1: errors; 2: it could not do its work. */
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dns/master.h"
#include "table/zone_build.h"

#define MAX_BYTES ((size_t)4 << 30)

static void die(const char *what)
{
	fprintf(stderr, "zonedump: %s\n", what);
	exit(2);
}

static enum err read_file(const char *path, struct master_file *out)
{
	struct stat st;
	size_t used = 0;
	char *text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return ERR_NOTFOUND;
	if (fstat(fd, &st) != 0 || (text = malloc((size_t)st.st_size + 1)) == NULL)
		die("out of memory");
	for (ssize_t n; used < (size_t)st.st_size && (n = read(fd, text + used, (size_t)st.st_size - used)) > 0;)
		used += (size_t)n;
	close(fd);
	*out = (struct master_file){ strdup(path), text, used };
	return ERR_OK;
}

static enum err on_open(void *user, const char *path, const char *from, struct master_file *out)
{
	char whole[8192], folder[4096];

	(void)user;
	snprintf(folder, sizeof(folder), "%s", from);
	snprintf(whole, sizeof(whole), "%s/%s", dirname(folder), path);
	return read_file(path[0] == '/' ? path : whole, out);
}

static void on_close(void *user, struct master_file *file)
{
	(void)user;
	free((void *)file->text); /* the name is needed for places */
}

static bool on_record(void *user, const struct master_record *record)
{
	if (zone_build_add(user, record) != ERR_OK)
		die("out of memory");
	return true;
}

static bool on_error(void *user, struct master_place place, const char *message)
{
	(void)user;
	fprintf(stderr, "%s:%u:%u: error: syntax: %s\n", place.file, place.line, place.column, message);
	return true;
}

static void on_finding(void *user, const struct zone_finding *f)
{
	(void)user;
	fprintf(stderr, "%s:%u:%u: %s: %s: %s\n", f->place.file != NULL ? f->place.file : "-", f->place.line, f->place.column,
		f->level == ZONE_ERROR ? "error" : "warning", f->id, f->text);
}

static bool on_print(void *user, const struct zone_build_record *r)
{
	static char data[5 * RDATA_MAX_BYTES];
	char owner[NAME_TEXT_MAX_BYTES], type[16];
	size_t bytes;

	(void)user;
	name_to_text(owner, r->owner);
	rr_type_to_text(type, r->type);
	if (rdata_to_text(r->type, r->rdata, r->rdata_bytes, data, sizeof(data), &bytes) != ERR_OK)
		die("record data without a text form");
	printf("%s %u IN %s %s\n", owner, r->ttl_s, type, data);
	return true;
}

int main(int argc, char **argv)
{
	uint8_t origin[NAME_MAX_BYTES];
	const char *why;
	struct zone_build *build;
	struct master_file file;
	struct master_options options = { .origin = origin, .class_ = RR_CLASS_IN };
	struct master_callbacks callbacks = { .record = on_record, .error = on_error, .open = on_open, .close = on_close };
	struct master_result read;
	struct zone_check_result checked = { 0 };

	if (argc != 3 || name_from_text(origin, argv[1], strlen(argv[1]), NULL, &why) == 0)
		die("usage: zonedump ORIGIN FILE");
	if (read_file(argv[2], &file) != ERR_OK)
		die("can't read the file");
	if (zone_build_create(&build, origin, RR_CLASS_IN, MAX_BYTES) != ERR_OK)
		die("out of memory");
	callbacks.user = build;
	read = master_read(&file, &options, &callbacks);
	if (read.errors == 0)
		checked = zone_check(build, on_finding, NULL);
	if (zone_build_each(build, on_print, NULL) != ERR_OK)
		die("out of memory");
	zone_build_destroy(build);
	return read.errors + checked.errors > 0;
}
