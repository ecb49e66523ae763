/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/segment_notes.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct zone_source *source(const char *path, uint64_t n)
{
	size_t bytes = strlen(path) + 1;
	struct zone_source *s = malloc(sizeof(*s) + bytes);
	*s = (struct zone_source){ .stamp = { n, n + 1, n + 2, (int64_t)n + 3, (int64_t)n + 4 },
				   .content_hash = n + 5,
				   .is_settled = n & 1,
				   .path_bytes = (uint16_t)bytes };
	memcpy(s->path, path, bytes);
	return s;
}

/* Two notes, of one and of two files; *bytes is exact, so that ASan sees every stray read. */
static uint8_t *make_notes(size_t *bytes)
{
	struct zone_source *one[] = { source("/etc/zones/a", 10) };
	struct zone_source *two[] = { source("/b", 21), source("/included/by/b", 30) };
	struct segment_notes head = { SEGMENT_NOTES_MAGIC, SEGMENT_NOTES_VERSION, 2, 0 };
	struct segment_note first = { .loaded_at_s = 1, .load_us = 2, .warnings = 3 }, second = { .loaded_at_s = 4 };
	size_t n1 = segment_note_bytes(one, 1), n2 = segment_note_bytes(two, 2);
	*bytes = sizeof(head) + n1 + n2;
	uint8_t *notes = malloc(*bytes);
	memcpy(notes, &head, sizeof(head));
	segment_note_write(notes + sizeof(head), &first, one, 1);
	segment_note_write(notes + sizeof(head) + n1, &second, two, 2);
	free(one[0]);
	free(two[0]);
	free(two[1]);
	return notes;
}

Test(segment_notes, what_was_written_is_read)
{
	size_t bytes;
	uint8_t *notes = make_notes(&bytes);
	struct segment_notes_reader r;
	cr_assert(segment_notes_open(&r, notes, bytes, 2));
	const struct segment_note *n = segment_notes_next(&r);
	cr_assert(n);
	cr_expect_eq(n->loaded_at_s, 1);
	cr_expect_eq(n->load_us, 2);
	cr_expect_eq(n->warnings, 3);
	cr_expect_eq(n->source_bytes, 12);
	const struct segment_note_source *s = segment_note_source_next(n, NULL);
	cr_expect_str_eq(segment_note_source_path(s), "/etc/zones/a");
	cr_expect_eq(s->stamp.inode, 11);
	cr_expect_eq(s->content_hash, 15);
	cr_expect_eq(s->is_settled, 0);
	cr_expect_null(segment_note_source_next(n, s));
	n = segment_notes_next(&r);
	cr_assert(n);
	cr_expect_eq(n->source_count, 2);
	cr_expect_eq(n->source_bytes, 23 + 32);
	s = segment_note_source_next(n, NULL);
	cr_expect_eq(s->is_settled, 1);
	s = segment_note_source_next(n, s);
	cr_expect_str_eq(segment_note_source_path(s), "/included/by/b");
	cr_expect_null(segment_note_source_next(n, s));
	cr_expect_null(segment_notes_next(&r));
	cr_expect_null(segment_notes_next(&r));
	cr_expect_not(segment_note_is_unchanged(n), "there are no such files");
	free(notes);
}

Test(segment_notes, they_belong_to_so_many_images)
{
	size_t bytes;
	uint8_t *notes = make_notes(&bytes);
	struct segment_notes_reader r;
	cr_expect_not(segment_notes_open(&r, notes, bytes, 1));
	cr_expect_not(segment_notes_open(&r, notes, bytes, 3));
	cr_expect_not(segment_notes_open(&r, notes, 0, 0));
	free(notes);
}

static unsigned walk(const uint8_t *notes, size_t bytes)
{
	struct segment_notes_reader r;
	const struct segment_note *n;
	unsigned count = 0;
	if (!segment_notes_open(&r, notes, bytes, 2))
		return 0;
	while ((n = segment_notes_next(&r))) {
		uint32_t sources = 0;
		for (const struct segment_note_source *s = segment_note_source_next(n, NULL); s;
		     s = segment_note_source_next(n, s)) {
			sources++;
			(void)strlen(segment_note_source_path(s));
		}
		cr_assert_eq(sources, n->source_count);
		count++;
	}
	return count;
}

Test(segment_notes, damage_ends_the_walk_and_nothing_worse)
{
	size_t bytes;
	uint8_t *notes = make_notes(&bytes);
	cr_assert_eq(walk(notes, bytes), 2);
	for (size_t at = 0; at < bytes; at++) {
		for (unsigned v = 0; v < 256; v += 5) {
			uint8_t right = notes[at];
			notes[at] = (uint8_t)v;
			cr_assert_leq(walk(notes, bytes), 2);
			notes[at] = right;
		}
	}
	for (size_t cut = 0; cut < bytes; cut++) {
		uint8_t *copy = malloc(cut + 1);
		memcpy(copy, notes, cut);
		copy = realloc(copy, cut ? cut : 1);
		cr_assert_lt(walk(copy, cut), 2, "cut to %zu", cut);
		free(copy);
	}
	free(notes);
}
