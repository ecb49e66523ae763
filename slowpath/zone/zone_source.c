/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/zone_source.h"
#include "slowpath/zone/local_zones.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define READ_TRIES 3
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static int64_t ns_of(struct timespec ts) { return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec; }

static enum err stamp_of(struct zone_stamp *out, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return ERR_UNSUPPORTED;
	*out = (struct zone_stamp){ .device = st->st_dev,
				    .inode = st->st_ino,
				    .size_bytes = (uint64_t)st->st_size,
				    .mtime_ns = ns_of(st->st_mtim),
				    .ctime_ns = ns_of(st->st_ctim) };
	return ERR_OK;
}

/* What no file holds has a size and nothing else to tell it by: its content must be looked at. */
static enum err read_builtin(struct zone_stamp *stamp, char **text, const char *path, uint64_t max_bytes)
{
	size_t bytes;
	enum err err = local_zones_text(text, &bytes, path);
	if (err != ERR_OK)
		return err;
	if (bytes > max_bytes) {
		free(*text);
		return ERR_NOSPACE;
	}
	*stamp = (struct zone_stamp){ .size_bytes = bytes };
	return ERR_OK;
}

enum err zone_stamp_read(struct zone_stamp *out, const char *path)
{
	struct stat st;
	char *text;
	if (local_zones_has(path)) {
		enum err err = read_builtin(out, &text, path, UINT64_MAX);
		if (err == ERR_OK)
			free(text);
		return err;
	}
	return stat(path, &st) < 0 ? err_from_errno(errno) : stamp_of(out, &st);
}

bool zone_stamp_equal(const struct zone_stamp *a, const struct zone_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

static enum err stamp_of_fd(struct zone_stamp *out, int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 ? err_from_errno(errno) : stamp_of(out, &st);
}

static enum err read_all(char *text, size_t bytes, int fd)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t got = pread(fd, text + at, bytes - at, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_from_errno(errno);
		if (got == 0)
			return ERR_BUSY; /* it was cut short */
		at += (size_t)got;
	}
	return ERR_OK;
}

/* A large file gets huge pages, a wish: first touches of small ones take as long as reading it. */
static char *allocate_text(size_t bytes)
{
	if (bytes < HUGE_PAGE_BYTES)
		return malloc(bytes);
	bytes = (bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
	char *text = aligned_alloc(HUGE_PAGE_BYTES, bytes);
	if (text)
		(void)madvise(text, bytes, MADV_HUGEPAGE);
	return text;
}

/* One try: the stamp, the content, and the stamp again. */
static enum err read_once(struct zone_stamp *stamp, char **text, int fd, uint64_t max_bytes)
{
	enum err err = stamp_of_fd(stamp, fd);
	if (err != ERR_OK)
		return err;
	if (stamp->size_bytes > max_bytes)
		return ERR_NOSPACE;
	char *content = allocate_text((size_t)stamp->size_bytes + 1);
	if (!content)
		return ERR_NOMEM;
	struct zone_stamp after;
	err = read_all(content, (size_t)stamp->size_bytes, fd);
	if (err == ERR_OK)
		err = stamp_of_fd(&after, fd);
	if (err == ERR_OK && !zone_stamp_equal(stamp, &after))
		err = ERR_BUSY;
	if (err != ERR_OK) {
		free(content);
		return err;
	}
	content[stamp->size_bytes] = 0;
	*text = content;
	return ERR_OK;
}

static enum err read_stable(struct zone_stamp *stamp, char **text, const char *path, uint64_t max_bytes)
{
	if (local_zones_has(path))
		return read_builtin(stamp, text, path, max_bytes);
	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_from_errno(errno);
	enum err err = ERR_BUSY;
	for (int i = 0; i < READ_TRIES && err == ERR_BUSY; i++)
		err = read_once(stamp, text, fd, max_bytes);
	close(fd);
	return err;
}

static bool is_settled_now(const struct zone_stamp *stamp)
{
	if (stamp->inode == 0)
		return false;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return ns_of(now) - MAX(stamp->mtime_ns, stamp->ctime_ns) >= ZONE_SETTLE_NS;
}

enum err zone_source_read(struct zone_source **source, char **text, const char *path, uint64_t max_bytes)
{
	size_t path_bytes = strlen(path) + 1;
	if (path_bytes > UINT16_MAX)
		return ERR_RANGE;
	struct zone_source *s = malloc(sizeof(*s) + path_bytes);
	if (!s)
		return ERR_NOMEM;
	char *content;
	enum err err = read_stable(&s->stamp, &content, path, max_bytes);
	if (err != ERR_OK) {
		free(s);
		return err;
	}
	s->content_hash = XXH3_64bits(content, (size_t)s->stamp.size_bytes);
	s->is_settled = is_settled_now(&s->stamp);
	s->path_bytes = (uint16_t)path_bytes;
	memcpy(s->path, path, path_bytes);
	*source = s;
	*text = content;
	return ERR_OK;
}

bool zone_source_is_unchanged(const struct zone_stamp *stamp, bool is_settled, uint64_t content_hash, const char *path)
{
	struct zone_stamp now;
	if (zone_stamp_read(&now, path) != ERR_OK || now.size_bytes != stamp->size_bytes)
		return false;
	if (is_settled && zone_stamp_equal(stamp, &now))
		return true;
	char *content;
	if (read_stable(&now, &content, path, stamp->size_bytes) != ERR_OK)
		return false;
	bool is_same = now.size_bytes == stamp->size_bytes && XXH3_64bits(content, (size_t)now.size_bytes) == content_hash;
	free(content);
	return is_same;
}
