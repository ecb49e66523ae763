/* SPDX-License-Identifier: Apache-2.0 */
/* The master file reader over any bytes. Behind the first octet 0xff, the rest is a second file that $INCLUDE finds under any
 * name. What must hold: records are valid wire data, places lie inside of the text, opened files are closed, and a name and
 * data that were read, printed and read again stay the same. */
#include <stdlib.h>

#include "dns/master.h"

#define MAX_RECORDS 2000
#define MAX_ERRORS 200
#define MAX_OPENED 100

struct run {
	struct master_file second;
	unsigned opened, closed;
	uint64_t records, errors;
	bool is_again;
	uint16_t type;
	const uint8_t *rdata;
	size_t rdata_bytes;
};

static const uint8_t origin[] = "\7example";

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool again_record(void *user, const struct master_record *r)
{
	const struct run *run = user;

	require(r->type == run->type && r->rdata_bytes == run->rdata_bytes && memcmp(r->rdata, run->rdata, r->rdata_bytes) == 0);
	return true;
}

static bool again_error(void *user, struct master_place place, const char *message)
{
	(void)user, (void)place, (void)message;
	return false;
}

/* Prints the record and reads the text again. */
static void round_trip(const struct master_record *r)
{
	static char line[NAME_TEXT_MAX_BYTES + 5 * RDATA_MAX_BYTES];
	struct run run = { .type = r->type, .rdata = r->rdata, .rdata_bytes = r->rdata_bytes };
	struct master_options options = { .origin = origin, .class_ = r->class_, .has_default_ttl = true };
	struct master_callbacks callbacks = { .record = again_record, .error = again_error, .user = &run };
	struct master_result result;
	struct master_file file = { "again", line, 0 };
	size_t bytes;

	file.bytes = name_to_text(line, r->owner);
	line[file.bytes++] = ' ';
	file.bytes += rr_type_to_text(line + file.bytes, r->type);
	line[file.bytes++] = ' ';
	require(rdata_to_text(r->type, r->rdata, r->rdata_bytes, line + file.bytes, sizeof(line) - file.bytes, &bytes) == ERR_OK);
	file.bytes += bytes;
	result = master_read(&file, &options, &callbacks);
	require(result.records == 1 && result.errors == 0 && !result.stopped);
}

static bool on_record(void *user, const struct master_record *r)
{
	struct run *run = user;

	require(name_wire_bytes(r->owner, r->owner_bytes) == r->owner_bytes && r->owner_bytes > 0);
	require(rdata_check(r->type, r->rdata, r->rdata_bytes) == ERR_OK);
	require(r->ttl_s <= 0x7fffffff && r->place.line > 0 && r->place.column > 0);
	if (run->records < 20)
		round_trip(r);
	return ++run->records < MAX_RECORDS;
}

static bool on_error(void *user, struct master_place place, const char *message)
{
	struct run *run = user;

	require(place.line > 0 && place.column > 0 && place.file != NULL && message[0] != '\0');
	return ++run->errors < MAX_ERRORS;
}

static enum err on_open(void *user, const char *path, const char *from, struct master_file *out)
{
	struct run *run = user;

	require(path[0] != '\0' && from != NULL);
	if (run->second.text == NULL || run->opened == MAX_OPENED)
		return ERR_NOTFOUND;
	*out = run->second;
	out->name = run->opened++ % 3 == 0 ? "second" : "third";
	return ERR_OK;
}

static void on_close(void *user, struct master_file *file)
{
	struct run *run = user;

	require(file->text == run->second.text);
	run->closed++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *split = size > 0 ? memchr(data, 0xff, size) : NULL;
	struct master_file file = { "first", (const char *)data, split != NULL ? (size_t)(split - data) : size };
	struct run run = { 0 };
	struct master_options options = { .origin = origin, .class_ = RR_CLASS_IN };
	struct master_callbacks callbacks = {
		.record = on_record, .error = on_error, .open = on_open, .close = on_close, .user = &run
	};
	struct master_result result;

	if (split != NULL)
		run.second = (struct master_file){ "second", (const char *)split + 1, size - file.bytes - 1 };
	result = master_read(&file, &options, &callbacks);
	require(result.records == run.records && result.errors == run.errors && run.opened == run.closed);
	return 0;
}
