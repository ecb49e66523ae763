/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/segment_notes.h"

static size_t pad8(size_t n) { return (n + 7) & ~(size_t)7; }

size_t segment_note_bytes(struct zone_source *const *sources, uint32_t source_count)
{
	size_t bytes = sizeof(struct segment_note);
	for (uint32_t i = 0; i < source_count; i++)
		bytes += sizeof(struct segment_note_source) + pad8(sources[i]->path_bytes);
	return bytes;
}

void segment_note_write(void *out, const struct segment_note *head, struct zone_source *const *sources, uint32_t source_count)
{
	struct segment_note note = *head;
	size_t at = sizeof(note);
	note.source_count = source_count;
	note.source_bytes = 0;
	for (uint32_t i = 0; i < source_count; i++) {
		const struct zone_source *from = sources[i];
		struct segment_note_source s = { .stamp = from->stamp,
						 .content_hash = from->content_hash,
						 .path_bytes = from->path_bytes,
						 .is_settled = from->is_settled };
		note.source_bytes += from->stamp.size_bytes;
		memcpy((uint8_t *)out + at, &s, sizeof(s));
		at += sizeof(s);
		memset((uint8_t *)out + at, 0, pad8(s.path_bytes));
		memcpy((uint8_t *)out + at, from->path, s.path_bytes);
		at += pad8(s.path_bytes);
	}
	ASSERT(at <= UINT32_MAX);
	note.bytes = (uint32_t)at;
	memcpy(out, &note, sizeof(note));
}

bool segment_notes_open(struct segment_notes_reader *r, const void *notes, size_t notes_bytes, uint32_t image_count)
{
	struct segment_notes head;
	if (notes_bytes < sizeof(head))
		return false;
	memcpy(&head, notes, sizeof(head));
	if (head.magic != SEGMENT_NOTES_MAGIC || head.version != SEGMENT_NOTES_VERSION || head.note_count != image_count)
		return false;
	*r = (struct segment_notes_reader){ .at_ = (const uint8_t *)notes + sizeof(head),
					    .left_ = notes_bytes - sizeof(head),
					    .notes_left_ = image_count };
	return true;
}

static bool is_note(const struct segment_note *note, size_t left)
{
	if (left < sizeof(*note) || note->bytes > left || note->bytes % 8 || note->source_count == 0 ||
	    note->source_count > ZONE_MAX_SOURCES)
		return false;
	const uint8_t *at = (const uint8_t *)(note + 1), *end = (const uint8_t *)note + note->bytes;
	if (note->bytes < sizeof(*note))
		return false;
	for (uint32_t i = 0; i < note->source_count; i++) {
		const struct segment_note_source *s = (const struct segment_note_source *)at;
		if ((size_t)(end - at) < sizeof(*s) || (size_t)(end - at) - sizeof(*s) < pad8(s->path_bytes) ||
		    s->path_bytes == 0 || s->is_settled > 1 || segment_note_source_path(s)[s->path_bytes - 1] != 0)
			return false;
		at += sizeof(*s) + pad8(s->path_bytes);
	}
	return at == end;
}

const struct segment_note *segment_notes_next(struct segment_notes_reader *r)
{
	const struct segment_note *note = (const struct segment_note *)r->at_;
	if (r->notes_left_ == 0 || !is_note(note, r->left_)) {
		r->notes_left_ = 0;
		return NULL;
	}
	r->notes_left_--;
	r->at_ += note->bytes;
	r->left_ -= note->bytes;
	return note;
}

const char *segment_note_source_path(const struct segment_note_source *s) { return (const char *)(s + 1); }

const struct segment_note_source *segment_note_source_next(const struct segment_note *note,
							   const struct segment_note_source *previous)
{
	if (!previous)
		return (const struct segment_note_source *)(note + 1);
	const uint8_t *next = (const uint8_t *)(previous + 1) + pad8(previous->path_bytes);
	return next < (const uint8_t *)note + note->bytes ? (const struct segment_note_source *)next : NULL;
}

bool segment_note_is_unchanged(const struct segment_note *note)
{
	for (const struct segment_note_source *s = segment_note_source_next(note, NULL); s; s = segment_note_source_next(note, s))
		if (!zone_source_is_unchanged(&s->stamp, s->is_settled, s->content_hash, segment_note_source_path(s)))
			return false;
	return true;
}
