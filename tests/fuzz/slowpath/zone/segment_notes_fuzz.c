/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a segment, which may come from a damaged file: an octet that says for how many images, then the notes. */
#include "slowpath/zone/segment_notes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment_notes_reader r;
	const struct segment_note *note;
	uint64_t sum = 0;

	if (size < 1)
		return 0;
	uint8_t *notes = malloc(size - 1 ? size - 1 : 1); /* exact and aligned, as a mapping's end is */
	if (!notes)
		return 0;
	memcpy(notes, data + 1, size - 1);
	if (segment_notes_open(&r, notes, size - 1, data[0]))
		while ((note = segment_notes_next(&r))) {
			const struct segment_note_source *s = NULL;
			uint32_t count = 0;
			while ((s = segment_note_source_next(note, s))) {
				sum += strlen(segment_note_source_path(s)) + s->content_hash;
				count++;
			}
			ASSERT(count == note->source_count);
		}
	free(notes);
	*(volatile uint64_t *)&sum = sum; /* read, so that no load is left out */
	return 0;
}
