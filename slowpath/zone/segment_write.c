/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/segment_write.h"
#include "table/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ALLOCATE_STEP_BYTES ((size_t)256 << 10)
#define ALLOCATE_HUGE_STEP_BYTES \
	((size_t)8 << 20) /* once a segment is worth huge pages; what is too much is cut off in the end */

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

void segment_write_init(struct segment_write *w) { *w = (struct segment_write){ .fd = -1 }; }

void segment_write_fini(struct segment_write *w)
{
	if (w->map)
		shm_unmap(w->map, w->capacity_bytes);
	if (w->fd >= 0)
		close(w->fd);
	free(w->notes);
	segment_write_init(w);
}

/* Everything that a finished segment takes: header, images, the notes' head and the notes. */
static size_t total_bytes(const struct segment_write *w, size_t image_bytes, size_t note_bytes)
{
	return MAX(w->used_bytes, sizeof(struct segment_header)) + round_up(image_bytes, ZONE_REF_UNIT) +
	       sizeof(struct segment_notes) + w->notes_bytes + note_bytes;
}

bool segment_write_has_room(const struct segment_write *w, size_t image_bytes, size_t note_bytes)
{
	return w->fd < 0 || total_bytes(w, image_bytes, note_bytes) <= w->capacity_bytes;
}

static enum err begin(struct segment_write *w, size_t need_bytes)
{
	size_t capacity = round_up(MAX(need_bytes, (size_t)SEGMENT_FILL_BYTES), ALLOCATE_STEP_BYTES);
	int fd;
	enum err err = shm_create_growing(&fd, "skua-zones");
	if (err != ERR_OK)
		return err;
	void *map = NULL;
	size_t map_bytes;
	err = ftruncate(fd, (off_t)capacity) == 0 ? shm_map_sparse(&map, &map_bytes, fd) : err_from_errno(errno);
	if (err != ERR_OK) {
		close(fd);
		return err;
	}
	w->fd = fd;
	w->map = map;
	w->capacity_bytes = capacity;
	w->used_bytes = sizeof(struct segment_header);
	return ERR_OK;
}

/* Nothing is written where the kernel has not promised a page: that would be a SIGBUS. */
static enum err allocate(struct segment_write *w, size_t to_bytes)
{
	if (to_bytes <= w->allocated_bytes)
		return ERR_OK;
	size_t step = to_bytes < SHM_HUGE_MIN_BYTES ? ALLOCATE_STEP_BYTES : ALLOCATE_HUGE_STEP_BYTES;
	size_t to = MIN(round_up(to_bytes, step), w->capacity_bytes);
	enum err err = shm_allocate(w->fd, w->map, w->allocated_bytes, to);
	if (err == ERR_OK)
		w->allocated_bytes = to;
	return err;
}

static enum err grow_notes(struct segment_write *w, size_t note_bytes)
{
	size_t need = w->notes_bytes + note_bytes;
	if (need <= w->notes_capacity_bytes)
		return ERR_OK;
	size_t capacity = MAX(need, w->notes_capacity_bytes * 2);
	uint8_t *notes = realloc(w->notes, capacity);
	if (!notes)
		return ERR_NOMEM;
	w->notes = notes;
	w->notes_capacity_bytes = capacity;
	return ERR_OK;
}

enum err segment_write_reserve(struct segment_write *w, size_t image_bytes, size_t note_bytes, void **image, void **note)
{
	ASSERT(note_bytes % 8 == 0);
	enum err err = w->fd < 0 ? begin(w, total_bytes(w, image_bytes, note_bytes)) : ERR_OK;
	if (err != ERR_OK)
		return err;
	ASSERT(segment_write_has_room(w, image_bytes, note_bytes));
	err = allocate(w, total_bytes(w, image_bytes, note_bytes));
	if (err == ERR_OK)
		err = grow_notes(w, note_bytes);
	if (err != ERR_OK)
		return err;
	/* Fresh pages are zero; only a reservation that was not committed may have left something. */
	size_t end = w->used_bytes + round_up(image_bytes, ZONE_REF_UNIT);
	if (w->touched_bytes > w->used_bytes)
		memset(w->map + w->used_bytes, 0, MIN(end, w->touched_bytes) - w->used_bytes);
	w->touched_bytes = MAX(w->touched_bytes, end);
	*image = w->map + w->used_bytes;
	*note = w->notes + w->notes_bytes;
	return ERR_OK;
}

void segment_write_commit(struct segment_write *w, size_t image_bytes, size_t note_bytes, uint64_t *offset_bytes)
{
	*offset_bytes = w->used_bytes;
	w->used_bytes += round_up(image_bytes, ZONE_REF_UNIT);
	w->notes_bytes += note_bytes;
	w->image_count++;
}

static void write_head_and_notes(struct segment_write *w, uint32_t id, size_t bytes)
{
	*(struct segment_header *)w->map = (struct segment_header){ .magic = SEGMENT_MAGIC,
								    .version = SEGMENT_VERSION,
								    .size_bytes = bytes,
								    .id = id,
								    .image_count = w->image_count,
								    .notes = w->used_bytes };
	struct segment_notes head = { .magic = SEGMENT_NOTES_MAGIC,
				      .version = SEGMENT_NOTES_VERSION,
				      .note_count = w->image_count };
	memcpy(w->map + w->used_bytes, &head, sizeof(head));
	memcpy(w->map + w->used_bytes + sizeof(head), w->notes, w->notes_bytes);
}

static enum err attach(struct segment **segment, int fd, const char **why)
{
	struct segment *s;
	enum err err = segment_attach_verified(&s, fd, why);
	if (err != ERR_OK)
		return err;
	err = segment_list(s, why);
	if (err != ERR_OK)
		segment_put(s);
	else
		*segment = s;
	return err;
}

enum err segment_write_finish(struct segment_write *w, uint32_t id, int *fd, struct segment **segment, const char **why)
{
	*why = "the segment is empty";
	if (w->image_count == 0)
		return ERR_NOTFOUND;
	size_t bytes = total_bytes(w, 0, 0);
	write_head_and_notes(w, id, bytes);
	shm_unmap(w->map, w->capacity_bytes);
	w->map = NULL;
	*why = "the segment can't be sealed";
	enum err err = ftruncate(w->fd, (off_t)bytes) < 0 ? err_from_errno(errno) : shm_seal(w->fd);
	if (err == ERR_OK)
		err = attach(segment, w->fd, why);
	if (err == ERR_OK) {
		*fd = w->fd;
		w->fd = -1;
	}
	segment_write_fini(w);
	return err;
}
