/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/zone_image_file.h"
#include "base/log.h"
#include "table/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHUNK_BYTES (4u << 20) /* between two looks at `stop` */
#define NAME_BYTES 32
#define PATH_BYTES 4096

/* --- the folder ----------------------------------------------------------------------------------------------------- */

static bool path_of(const struct zone_image_files *f, char out[static PATH_BYTES], const char *name)
{
	return snprintf(out, PATH_BYTES, "%s/%s", f->folder, name) < PATH_BYTES;
}

/* "00000000000000ff.img": 16 hex digits. */
static bool number_of(const char *name, uint64_t *out)
{
	char *end;
	if (strspn(name, "0123456789abcdef") != 16 || strcmp(name + 16, ".img") != 0)
		return false;
	*out = strtoull(name, &end, 16);
	return true;
}

static void name_of(char out[static NAME_BYTES], uint64_t number, const char *suffix)
{
	snprintf(out, NAME_BYTES, "%016" PRIx64 ".%s", number, suffix);
}

static void remove_file(const struct zone_image_files *f, const char *name)
{
	char path[PATH_BYTES];
	if (path_of(f, path, name))
		unlink(path);
}

static int descending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x < y) - (x > y);
}

/* The numbers of the files, newest first, at most as many as there may be segments; removes half-written ones. */
static size_t list(const struct zone_image_files *f, uint64_t **out)
{
	DIR *dir = opendir(f->folder);
	uint64_t *number = calloc(ZONE_SET_MAX_SEGMENTS, sizeof(*number));
	size_t count = 0;
	for (struct dirent *e; dir && number && (e = readdir(dir));) {
		size_t bytes = strlen(e->d_name);
		if (bytes > 4 && strcmp(e->d_name + bytes - 4, ".tmp") == 0)
			remove_file(f, e->d_name);
		else if (count < ZONE_SET_MAX_SEGMENTS && number_of(e->d_name, &number[count]))
			count++;
	}
	if (dir)
		closedir(dir);
	if (number)
		qsort(number, count, sizeof(*number), descending);
	*out = number;
	return count;
}

void zone_image_files_init(struct zone_image_files *f, const char *state, uint64_t min_bytes)
{
	*f = (struct zone_image_files){ .next_number = 1, .min_bytes = min_bytes };
	if (asprintf(&f->folder, "%s/zones", state) < 0) {
		f->folder = NULL;
		return;
	}
	if ((mkdir(f->folder, 0750) < 0 && errno != EEXIST) || access(f->folder, R_OK | W_OK | X_OK) < 0) {
		log_write(M_ZONE_IMAGE_WRITE_FAILED, "%s can't be used for image files: %s", f->folder, strerror(errno));
		zone_image_files_fini(f);
		return;
	}
	uint64_t *number;
	if (list(f, &number) > 0)
		f->next_number = number[0] + 1;
	free(number);
}

void zone_image_files_fini(struct zone_image_files *f)
{
	free(f->folder);
	f->folder = NULL;
}

/* --- checksum --------------------------------------------------------------------------------------------------------- */

/* The segment's header as it stands in the file: without its id, which is one process's affair. */
static struct segment_header header_in_file(const void *segment)
{
	struct segment_header header;
	memcpy(&header, segment, sizeof(header));
	header.id = 0;
	return header;
}

static void checksum(uint8_t out[static 16], const struct zone_image_file *head, const void *segment)
{
	struct {
		struct zone_image_file head;
		struct segment_header header;
		XXH128_canonical_t rest;
	} all = { .head = *head, .header = header_in_file(segment) };
	XXH128_canonical_t canonical;
	memset(all.head.checksum, 0, sizeof(all.head.checksum));
	XXH128_canonicalFromHash(&all.rest, XXH3_128bits((const uint8_t *)segment + sizeof(struct segment_header),
							 (size_t)head->segment_bytes - sizeof(struct segment_header)));
	static_assert(sizeof(all) == sizeof(struct zone_image_file) + sizeof(struct segment_header) + sizeof(XXH128_canonical_t),
		      "padding would be hashed");
	XXH128_canonicalFromHash(&canonical, XXH3_128bits(&all, sizeof(all)));
	memcpy(out, canonical.digest, 16);
}

static struct zone_image_file head_of(const struct segment *segment)
{
	struct zone_image_file head = { .magic = ZONE_IMAGE_FILE_MAGIC,
					.version = ZONE_IMAGE_FILE_VERSION,
					.segment_version = SEGMENT_VERSION,
					.image_version = ZONE_IMAGE_VERSION,
					.segment_bytes = segment_bytes(segment) };
	checksum(head.checksum, &head, segment_map(segment));
	return head;
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

static bool read_all(int fd, void *out, size_t bytes, off_t from)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t got = pread(fd, (uint8_t *)out + at, bytes - at, from + (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

static const char *head_fault(const struct zone_image_file *head, uint64_t file_bytes)
{
	if (head->magic != ZONE_IMAGE_FILE_MAGIC)
		return "it is no image file";
	if (head->version != ZONE_IMAGE_FILE_VERSION || head->segment_version != SEGMENT_VERSION ||
	    head->image_version != ZONE_IMAGE_VERSION)
		return "it is of another layout version";
	if (head->segment_bytes < sizeof(struct segment_header) || head->segment_bytes != file_bytes - sizeof(*head))
		return "its length is not what it says";
	return NULL;
}

/* The content into a new memfd under a new id, the checksum compared on the way. */
static const char *copy_in(int *out, int file, const struct zone_image_file *head, uint32_t id)
{
	int fd;
	void *map;
	size_t bytes;
	if (shm_create(&fd, "skua-zones", (size_t)head->segment_bytes) != ERR_OK)
		return "there is not enough memory for it";
	const char *fault = "there is not enough memory for it";
	if (shm_map_writable(&map, &bytes, fd) == ERR_OK) {
		uint8_t sum[16];
		bool is_read = read_all(file, map, bytes, sizeof(*head));
		checksum(sum, head, map);
		struct segment_header *header = map;
		bool is_whole = is_read && header->id == 0 && memcmp(sum, head->checksum, sizeof(sum)) == 0;
		fault = is_whole ? NULL : is_read ? "its checksum is wrong" : "it can't be read";
		header->id = id;
		shm_unmap(map, bytes);
	}
	if (!fault && shm_seal(fd) != ERR_OK)
		fault = "its memory can't be sealed";
	if (fault)
		close(fd);
	else
		*out = fd;
	return fault;
}

static const char *read_file(int *out, const char *path, uint32_t id)
{
	struct stat st;
	struct zone_image_file head;
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (file < 0)
		return "it can't be opened";
	const char *fault = "it can't be read";
	if (fstat(file, &st) == 0 && S_ISREG(st.st_mode)) {
		if ((uint64_t)st.st_size < sizeof(head))
			fault = "it is cut off";
		else if (read_all(file, &head, sizeof(head), 0))
			fault = head_fault(&head, (uint64_t)st.st_size);
		if (!fault)
			fault = copy_in(out, file, &head, id);
	}
	close(file);
	return fault;
}

/* Serves, unchecked, every image whose zone is configured with the same master file and has no image yet. */
static uint64_t take_zones(struct zone_store *store, struct store_segment *s)
{
	struct segment_notes_reader notes;
	size_t notes_bytes;
	uint64_t taken = 0;
	const void *notes_at = segment_notes(s->segment, &notes_bytes);
	if (!segment_notes_open(&notes, notes_at, notes_bytes, segment_images(s->segment)))
		return 0;
	for (uint32_t i = 0; i < segment_images(s->segment); i++) {
		uint64_t offset;
		const struct zone_image *image = segment_image(s->segment, i, &offset);
		const struct segment_note *note = segment_notes_next(&notes);
		if (!note)
			break;
		struct zone_item *item =
			image->apex ? zone_store_find(store, zone_node_name(zone_ptr(image, image->apex))) : NULL;
		if (!item || item->segment ||
		    strcmp(segment_note_source_path(segment_note_source_next(note, NULL)), item->file) != 0)
			continue;
		zone_item_serve(item, s, image, offset, note);
		item->is_unchecked = true;
		taken++;
	}
	return taken;
}

static uint64_t read_one(struct zone_store *store, const char *path, uint64_t number, uint32_t id, const char **fault)
{
	int fd = -1;
	struct segment *segment;
	struct store_segment *s;
	*fault = read_file(&fd, path, id);
	if (*fault)
		return 0;
	if (segment_attach(&segment, fd, fault) != ERR_OK) {
		close(fd);
		return 0;
	}
	if (zone_store_add_segment(store, segment, fd, &s) != ERR_OK) {
		segment_put(segment);
		close(fd);
		*fault = "there are too many segments";
		return 0;
	}
	s->file_number = number;
	uint64_t taken = take_zones(store, s);
	if (taken == 0)
		zone_store_drop_segment(store, zone_store_segments(store) - 1);
	return taken;
}

uint64_t zone_image_files_read(struct zone_image_files *f, struct zone_store *store, uint32_t *next_segment_id)
{
	uint64_t *number, total = 0;
	if (!f->folder)
		return 0;
	size_t count = list(f, &number);
	zone_store_lock(store);
	for (size_t i = 0; i < count; i++) {
		char name[NAME_BYTES], path[PATH_BYTES];
		const char *fault;
		name_of(name, number[i], "img");
		if (!path_of(f, path, name))
			continue;
		uint64_t taken = read_one(store, path, number[i], (*next_segment_id)++, &fault);
		if (fault)
			log_write(M_ZONE_IMAGE_BAD, "%s: %s", path, fault);
		else if (taken)
			log_write(M_ZONE_IMAGE_READ, "%s: %" PRIu64 " zones", path, taken);
		if (taken == 0)
			unlink(path);
		total += taken;
	}
	zone_store_unlock(store);
	free(number);
	return total;
}

/* --- after a restart -------------------------------------------------------------------------------------------------- */

static struct store_segment *segment_of_file(struct zone_store *store, const struct zone_image_file *head)
{
	for (size_t i = 0; i < zone_store_segments(store); i++) {
		struct store_segment *s = zone_store_segment(store, i);
		if (s->file_number || segment_bytes(s->segment) != head->segment_bytes)
			continue;
		struct zone_image_file its = head_of(s->segment);
		if (memcmp(&its, head, sizeof(its)) == 0)
			return s;
	}
	return NULL;
}

void zone_image_files_match(struct zone_image_files *f, struct zone_store *store)
{
	uint64_t *number;
	if (!f->folder)
		return;
	size_t count = list(f, &number);
	for (size_t i = 0; i < count; i++) {
		char name[NAME_BYTES], path[PATH_BYTES];
		struct zone_image_file head;
		name_of(name, number[i], "img");
		if (!path_of(f, path, name))
			continue;
		int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		struct stat st;
		bool is_read = file >= 0 && fstat(file, &st) == 0 && read_all(file, &head, sizeof(head), 0) &&
			       !head_fault(&head, (uint64_t)st.st_size);
		struct store_segment *s = is_read ? segment_of_file(store, &head) : NULL;
		if (file >= 0)
			close(file);
		if (s)
			s->file_number = number[i];
		else
			unlink(path);
	}
	free(number);
}

/* --- writing ---------------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *from, size_t bytes, const _Atomic bool *stop)
{
	for (size_t at = 0; at < bytes;) {
		if (stop && atomic_load_explicit(stop, memory_order_relaxed)) {
			errno = EINTR;
			return false;
		}
		ssize_t put = write(fd, (const uint8_t *)from + at, MIN(bytes - at, (size_t)CHUNK_BYTES));
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return false;
		at += (size_t)put;
		/* Piece by piece: all of it at once could not be given up any more. */
		if (fdatasync(fd) < 0)
			return false;
	}
	return true;
}

/* Both names must be durable: the content before the rename, the rename before we rely on it. */
static bool write_file(const struct zone_image_files *f, const struct segment *segment, const char *temporary, const char *final,
		       const _Atomic bool *stop)
{
	struct zone_image_file head = head_of(segment);
	struct segment_header header = header_in_file(segment_map(segment));
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return false;
	bool ok = write_all(fd, &head, sizeof(head), stop) && write_all(fd, &header, sizeof(header), stop) &&
		  write_all(fd, (const uint8_t *)segment_map(segment) + sizeof(header),
			    (size_t)head.segment_bytes - sizeof(header), stop) &&
		  fsync(fd) == 0;
	int error = errno;
	if (close(fd) < 0 && ok) {
		ok = false;
		error = errno;
	}
	if (ok && rename(temporary, final) < 0) {
		ok = false;
		error = errno;
	}
	if (!ok) {
		unlink(temporary);
		errno = error;
		return false;
	}
	int folder = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0) {
		(void)fsync(folder); /* without it a crash of the machine may lose the file, not damage it */
		close(folder);
	}
	return true;
}

void zone_image_files_write(struct zone_image_files *f, struct zone_store *store, const _Atomic bool *stop)
{
	for (size_t i = 0; f->folder && i < zone_store_segments(store); i++) {
		struct store_segment *s = zone_store_segment(store, i);
		char name[NAME_BYTES], final[PATH_BYTES], temporary[PATH_BYTES];
		if (s->file_number || s->is_file_refused || s->live_zones == 0 || segment_bytes(s->segment) < f->min_bytes)
			continue;
		uint64_t number = f->next_number++;
		name_of(name, number, "img");
		bool fits = path_of(f, final, name);
		name_of(name, number, "tmp");
		if (!fits || !path_of(f, temporary, name))
			return;
		if (write_file(f, s->segment, temporary, final, stop)) {
			s->file_number = number;
			continue;
		}
		if (stop && atomic_load_explicit(stop, memory_order_relaxed))
			return;
		s->is_file_refused = true;
		log_write(M_ZONE_IMAGE_WRITE_FAILED, "%s: %s", final, strerror(errno));
	}
}

void zone_image_files_retry(struct zone_image_files *f, struct zone_store *store)
{
	for (size_t i = 0; f->folder && i < zone_store_segments(store); i++)
		zone_store_segment(store, i)->is_file_refused = false;
}

void zone_image_files_forget(struct zone_image_files *f, struct store_segment *s)
{
	char name[NAME_BYTES];
	if (!f->folder || !s->file_number)
		return;
	name_of(name, s->file_number, "img");
	remove_file(f, name);
	s->file_number = 0;
}
