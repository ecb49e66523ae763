/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/name.h"

#include "dns/escape_inline.h"

static size_t append_origin(uint8_t *out, size_t pos, const uint8_t *origin, const char **why)
{
	if (origin == NULL) {
		*why = "the name is relative but there is no origin (is the final dot missing?)";
		return 0;
	}
	size_t origin_bytes = name_wire_bytes(origin, NAME_MAX_BYTES);

	if (pos + origin_bytes > NAME_MAX_BYTES) {
		*why = "the name is longer than 255 octets with the origin appended";
		return 0;
	}
	memcpy(out + pos, origin, origin_bytes);
	return pos + origin_bytes;
}

size_t name_from_text(uint8_t out[static NAME_MAX_BYTES], const char *text, size_t text_bytes, const uint8_t *origin,
		      const char **why)
{
	size_t label_at = 0, pos = 1; /* label_at: where the current label's length goes; pos: where its next octet goes */

	if (text_bytes == 0) {
		*why = "the name is empty";
		return 0;
	}
	if (text_bytes == 1 && text[0] == '.') {
		out[0] = 0;
		return 1;
	}
	for (size_t i = 0; i < text_bytes;) {
		uint8_t octet;

		if (text[i] == '.') {
			if (pos == label_at + 1) {
				*why = "the name has an empty label";
				return 0;
			}
			out[label_at] = (uint8_t)(pos - label_at - 1);
			label_at = pos++;
			i++;
			continue;
		}
		const char *wrong = escape_next(text, text_bytes, &i, &octet);

		if (wrong != NULL) {
			*why = wrong;
			return 0;
		}
		if (pos - label_at > NAME_MAX_LABEL_BYTES) {
			*why = "the name has a label longer than 63 octets";
			return 0;
		}
		if (pos >= NAME_MAX_BYTES - 1) { /* the last octet is the root's */
			*why = "the name is longer than 255 octets";
			return 0;
		}
		out[pos++] = octet;
	}
	out[label_at] = (uint8_t)(pos - label_at - 1);
	if (pos == label_at + 1) /* it ended in a dot: this zero octet is the root */
		return pos;
	return append_origin(out, pos, origin, why);
}

/* Octets that name_to_text precedes by a backslash. */
static bool is_special(uint8_t c)
{
	return c == '.' || c == ';' || c == '\\' || c == '"' || c == '(' || c == ')' || c == '@' || c == '$';
}

size_t name_to_text(char out[static NAME_TEXT_MAX_BYTES], const uint8_t *name)
{
	size_t n = 0;

	if (name[0] == 0)
		out[n++] = '.';
	while (name[0] != 0) {
		uint8_t label = *name++;

		for (unsigned i = 0; i < label; i++) {
			uint8_t c = name[i];

			if (c <= ' ' || c > '~') {
				n += escape_decimal(out + n, c);
				continue;
			}
			if (is_special(c))
				out[n++] = '\\';
			out[n++] = (char)c;
		}
		out[n++] = '.';
		name += label;
	}
	out[n] = '\0';
	return n;
}
