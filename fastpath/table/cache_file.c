/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's file: a header, records, an end.
 *
 *     struct file_header | { struct file_record | entry } ... | struct file_record with 0 octets
 *
 * Entries are those of cache_entry.h, with neither hash nor epoch, which mean nothing to another cache. Each record's checksum covers its number and is
 * seeded with the header's, so that none can be left out, moved or taken from another file unnoticed. It is written beside its name, made durable and
 * renamed: a crash leaves the old one. All numbers are the machine's own: the file stays on the box. */
#include "table/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define FILE_MAGIC UINT64_C(0x31454843414b5300)
#define FILE_VERSION 1u
#define BUFFER_BYTES (1u << 17)
#define PATH_BYTES 4096
static_assert(BUFFER_BYTES >= 2 * CACHE_ENTRY_MAX_BYTES, "a record fits in");

struct file_header {
	uint64_t magic;
	uint32_t version, entry_bytes; /* sizeof(struct cache_entry) */
	uint64_t settings;
	int64_t wall_s; /* when it was written, by both clocks */
	uint32_t now_s, reserved;
	uint64_t check; /* of all in front of it */
};
struct file_record {
	uint32_t bytes, number; /* of the entry; 0: the end. number: from 0 on */
	uint64_t check;
};
static_assert(sizeof(struct file_header) == 48 && sizeof(struct file_record) == 16, "format");

static uint64_t header_check(const struct file_header *h) { return XXH3_64bits(h, offsetof(struct file_header, check)); }
static uint64_t record_check(const struct file_record *r, const void *entry, uint64_t file_check)
{
	uint64_t head = XXH3_64bits_withSeed(r, offsetof(struct file_record, check), file_check);

	return XXH3_64bits_withSeed(entry, r->bytes, head);
}

/* --- saving ------------------------------------------------------------------------------------------------------------ */

struct save {
	struct cache_writer *w;
	int fd;
	uint32_t now_s, number;
	uint64_t file_check;
	size_t used;
	int error; /* errno of the first write that failed */
	uint8_t buffer[BUFFER_BYTES];
};

static bool flush(struct save *s)
{
	for (size_t at = 0; s->error == 0 && at < s->used;) {
		ssize_t n = write(s->fd, s->buffer + at, s->used - at);

		if (n == 0 || (n < 0 && errno != EINTR))
			s->error = n == 0 ? ENOSPC : errno;
		at += n > 0 ? (size_t)n : 0;
	}
	s->used = 0;
	return s->error == 0;
}

static bool put(struct save *s, const void *from, size_t bytes)
{
	if (s->used + bytes > sizeof(s->buffer) && !flush(s))
		return false;
	memcpy(s->buffer + s->used, from, bytes);
	s->used += bytes;
	return true;
}

static bool put_record(struct save *s, const void *entry, uint32_t bytes)
{
	struct file_record r = { .bytes = bytes, .number = s->number };

	r.check = record_check(&r, entry, s->file_check);
	return put(s, &r, sizeof(r)) && put(s, entry, bytes);
}

/* What is fresh and says something about the name; failures are asked for again. */
static bool save_entry(void *user, const struct cache_entry *e)
{
	struct save *s = user;
	alignas(8) uint8_t copy[CACHE_ENTRY_MAX_BYTES];
	struct cache_entry *out = (struct cache_entry *)copy;

	if (s->now_s >= e->expire_s || (e->flags & (CACHE_F_FAILURE | CACHE_F_STALE)) ||
	    (int32_t)(e->epoch - cache_epoch(cache_writer_reader(s->w), e->partition)) < 0)
		return true;
	memcpy(copy, e, e->bytes);
	out->hash = out->epoch = out->hash_low_ = out->units_ = out->shape_ = out->pointer_count_ = 0;
	memset(out->count_, 0, sizeof(out->count_));
	bool is_put = put_record(s, copy, e->bytes);
	s->number++;
	return is_put;
}

static int write_all(struct save *s, uint64_t settings, int64_t wall_s)
{
	struct file_header h = { .magic = FILE_MAGIC,
				 .version = FILE_VERSION,
				 .entry_bytes = sizeof(struct cache_entry),
				 .settings = settings,
				 .wall_s = wall_s,
				 .now_s = s->now_s };

	h.check = s->file_check = header_check(&h);
	if (!put(s, &h, sizeof(h)))
		return s->error;
	for (unsigned i = 0; i < cache_writer_shards(s->w) && s->error == 0; i++)
		cache_walk(s->w, i, save_entry, s);
	if (s->error == 0 && put_record(s, "", 0) && flush(s) && fsync(s->fd) < 0)
		s->error = errno;
	return s->error;
}

static enum err replace_file(const char *new_path, const char *path)
{
	char folder[PATH_BYTES];
	const char *slash = strrchr(path, '/');

	if (rename(new_path, path) < 0)
		return err_from_errno(errno);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd); /* without it a crash of the machine may bring the old file back */
		close(fd);
	}
	return ERR_OK;
}

enum err cache_file_save(struct cache_writer *w, const char *path, uint64_t settings, int64_t wall_s, uint32_t now_s,
			 uint64_t *entries)
{
	char new_path[PATH_BYTES];

	if ((size_t)snprintf(new_path, sizeof(new_path), "%s.new", path) >= sizeof(new_path))
		return ERR_RANGE;
	struct save *s = malloc(sizeof(*s));
	if (!s)
		return ERR_NOMEM;
	s->w = w;
	s->now_s = now_s;
	s->number = 0;
	s->used = 0;
	s->error = 0;
	s->fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	enum err err = s->fd < 0 ? err_from_errno(errno) : ERR_OK;
	if (err != ERR_OK)
		goto free_save;
	int error = write_all(s, settings, wall_s);
	if (close(s->fd) < 0 && error == 0)
		error = errno;
	err = error ? err_from_errno(error) : replace_file(new_path, path);
	if (err != ERR_OK)
		unlink(new_path);
	else
		*entries = s->number;
free_save:
	free(s);
	return err;
}

/* --- loading ----------------------------------------------------------------------------------------------------------- */

struct load {
	int fd;
	size_t begin, end; /* of what is in the buffer and not used */
	bool has_failed;
	alignas(8) uint8_t buffer[BUFFER_BYTES];
};

/* The next octets of the file, at an address that is a multiple of 8 if all sizes before were; NULL: it ends before. */
static const void *take(struct load *l, size_t bytes)
{
	if (l->end - l->begin < bytes) {
		memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
		l->end -= l->begin;
		l->begin = 0;
	}
	while (l->end < bytes) {
		ssize_t n = read(l->fd, l->buffer + l->end, sizeof(l->buffer) - l->end);

		if (n < 0 && errno == EINTR)
			continue;
		l->has_failed = n < 0;
		if (n <= 0)
			return NULL;
		l->end += (size_t)n;
	}
	l->begin += bytes;
	return l->buffer + l->begin - bytes;
}

/* A file's times into this boot's. False: it has expired, or is older than the clock can say. */
static bool convert_times(struct cache_entry *e, uint32_t file_now_s, uint64_t elapsed_s, uint32_t now_s)
{
	uint64_t age_s = (file_now_s > e->stored_s ? file_now_s - e->stored_s : 0) + elapsed_s;
	uint64_t left_s = e->expire_s > file_now_s ? e->expire_s - file_now_s : 0;

	if (left_s <= elapsed_s || age_s > now_s)
		return false;
	e->stored_s = now_s - (uint32_t)age_s;
	e->expire_s = (uint32_t)MIN(now_s + left_s - elapsed_s, UINT32_MAX);
	return true;
}

static const char *load_header(struct load *l, struct file_header *h, uint64_t settings, enum err *err)
{
	const void *head = take(l, sizeof(*h));

	*err = ERR_CORRUPT;
	if (!head)
		return "it ends in its header";
	memcpy(h, head, sizeof(*h));
	if (h->magic != FILE_MAGIC)
		return "it is not a cache file";
	if (h->version != FILE_VERSION || h->entry_bytes != sizeof(struct cache_entry))
		return "it is of another version";
	if (h->check != header_check(h))
		return "its header's checksum is wrong";
	*err = ERR_NOTFOUND;
	return h->settings == settings ? NULL : "it was made with other settings";
}

/* One record; *entry is NULL at the end. */
static const char *load_record(struct load *l, const struct file_header *h, uint32_t number, struct cache_entry **entry)
{
	const void *head = take(l, sizeof(struct file_record));
	struct file_record r;

	if (!head)
		return "it ends without an end";
	memcpy(&r, head, sizeof(r));
	if (r.number != number || r.bytes > CACHE_ENTRY_MAX_BYTES || r.bytes % 8 != 0)
		return "a record's head makes no sense";
	const void *bytes = take(l, r.bytes);
	if (!bytes)
		return "it ends in a record";
	if (record_check(&r, bytes, h->check) != r.check)
		return "a record's checksum is wrong";
	*entry = NULL;
	if (r.bytes == 0)
		return take(l, 1) ? "it goes on behind its end" : NULL;
	if (!cache_entry_check(bytes, r.bytes))
		return "a record is no entry";
	*entry = (struct cache_entry *)(uintptr_t)bytes;
	return NULL;
}

static const char *load_all(struct load *l, struct cache_writer *w, const struct file_header *h, uint64_t elapsed_s,
			    uint32_t now_s, uint64_t *entries)
{
	struct cache_reader *r = cache_writer_reader(w);
	struct cache_entry *e;

	for (uint32_t number = 0;; number++) { /* ends with the file */
		const char *why = load_record(l, h, number, &e);

		if (why || !e)
			return why;
		if (!convert_times(e, h->now_s, elapsed_s, now_s))
			continue;
		e->hash = cache_hash(r, name_hash(cache_entry_name(e), e->name_bytes));
		e->epoch = cache_epoch(r, e->partition);
		if (cache_store(w, e) == ERR_OK) /* too large for a smaller cache: left out */
			++*entries;
	}
}

enum err cache_file_load(struct cache_writer *w, const char *path, uint64_t settings, int64_t wall_s, uint32_t now_s,
			 uint64_t *entries, const char **why)
{
	struct file_header h;
	struct stat st;
	enum err err = ERR_NOMEM;

	*entries = 0;
	*why = "there is no memory for it";
	struct load *l = malloc(sizeof(*l));
	if (!l)
		return err;
	l->begin = l->end = 0;
	l->has_failed = false;
	l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (l->fd < 0 || fstat(l->fd, &st) < 0) {
		err = err_from_errno(errno);
		*why = "it can not be opened";
		goto close_file;
	}
	if (!S_ISREG(st.st_mode)) {
		err = ERR_CORRUPT;
		*why = "it is not a file";
		goto close_file;
	}
	*why = load_header(l, &h, settings, &err);
	if (!*why) {
		/* A clock that was put back makes nothing younger than it was. */
		uint64_t elapsed_s = wall_s > h.wall_s ? (uint64_t)wall_s - (uint64_t)h.wall_s : 0;
		*why = load_all(l, w, &h, elapsed_s, now_s, entries);
		err = *why ? ERR_CORRUPT : ERR_OK;
	}
	if (l->has_failed) {
		err = ERR_IO;
		*why = "it can not be read";
	}
close_file:
	if (l->fd >= 0)
		close(l->fd);
	free(l);
	return err;
}
