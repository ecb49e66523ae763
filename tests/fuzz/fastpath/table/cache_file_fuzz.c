/* SPDX-License-Identifier: Apache-2.0 */
/* Cache files that somebody else made. Octet 0, bit 0: checksums are put right, where the input says that a record is, so that what is in the records is
 * looked at; else the file is the input. */
#include <stdlib.h>

#include "fastpath/table/cache_file.c"
#include "tests/unit/lib/cache_entries.h"

#define NOW_S 0x01000000u

static struct cache_writer *writer;
static char path[64];

static void make_cache(void)
{
	int fd;

	ASSERT(cache_create(&fd, CACHE_MIN_BYTES) == ERR_OK && cache_writer_attach(&writer, fd, -1) == ERR_OK);
	snprintf(path, sizeof(path), "/tmp/skua-cache-fuzz-%d", (int)getpid());
}

static void repair(uint8_t *file, size_t size)
{
	struct file_header h;
	struct file_record r;

	if (size < sizeof(h))
		return;
	memcpy(&h, file, sizeof(h));
	h.magic = FILE_MAGIC, h.version = FILE_VERSION, h.entry_bytes = sizeof(struct cache_entry), h.settings = 0;
	h.check = header_check(&h);
	memcpy(file, &h, sizeof(h));
	size_t at = sizeof(h);
	for (uint32_t number = 0; size - at >= sizeof(r); number++) {
		memcpy(&r, file + at, sizeof(r));
		r.bytes = MIN(r.bytes & 0x0ff8u, (uint32_t)(size - at - sizeof(r)) & ~7u);
		r.number = number;
		uint8_t *entry = file + at + sizeof(r);
		if (r.bytes >= sizeof(struct cache_entry))
			memcpy(entry + offsetof(struct cache_entry, bytes), &r.bytes, sizeof(r.bytes));
		r.check = record_check(&r, entry, h.check);
		memcpy(file + at, &r, sizeof(r));
		at += sizeof(r) + r.bytes;
	}
}

static bool use_entry(void *user, const struct cache_entry *e)
{
	(void)user;
	cache_entries_use(e);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t entries;
	const char *why = NULL;

	if (!writer)
		make_cache();
	if (size < 1)
		return 0;
	uint8_t *file = malloc(size);
	ASSERT(file);
	memcpy(file, data + 1, size - 1);
	if (data[0] & 1)
		repair(file, size - 1);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ASSERT(fd >= 0 && write(fd, file, size - 1) == (ssize_t)(size - 1));
	close(fd);
	enum err err = cache_file_load(writer, path, 0, 1700000000, NOW_S, &entries, &why);
	ASSERT((err == ERR_OK) == (why == NULL));
	cache_walk(writer, 0, use_entry, NULL);
	cache_remove_tree(writer, 0, (const uint8_t *)"", 1);
	unlink(path);
	free(file);
	return 0;
}
