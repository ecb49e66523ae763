/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

/* Length of the UTF-8 character at p (RFC 3629: shortest form, no surrogates, at most U+10FFFF) and its code point; 0 if none. */
static size_t utf8_decode(const uint8_t *p, size_t left, uint32_t *code)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t bytes = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	if (bytes == 0 || bytes > left)
		return 0;
	uint32_t c = bytes == 1 ? p[0] : p[0] & (0xffu >> (bytes + 1));
	for (size_t i = 1; i < bytes; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[bytes] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*code = c;
	return bytes;
}

static bool is_shown(uint32_t c)
{
	return c >= 0x20 && (c < 0x7f || c >= 0xa0) && c != 0x061c &&	      /* C0, DEL, C1; Arabic letter mark */
	       c != 0x200e && c != 0x200f && !(c >= 0x2028 && c <= 0x202e) && /* direction marks, separators, embeddings */
	       !(c >= 0x2066 && c <= 0x2069) && c != 0xfeff;		      /* isolates, byte order mark */
}

size_t printable_copy(char *out, size_t out_bytes, const char *text, size_t text_bytes)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *in = (const uint8_t *)text;
	size_t used = 0, cut_at = 0; /* cut_at: the last end of a character that leaves room for "..." */

	ASSERT(out_bytes >= 8);
	for (size_t i = 0; i < text_bytes;) {
		uint32_t code = 0;
		size_t bytes = utf8_decode(in + i, text_bytes - i, &code);
		bool shown = bytes > 0 && is_shown(code);
		if (bytes == 0)
			bytes = 1;
		size_t need = shown ? bytes : 4 * bytes;
		if (used + need >= out_bytes) {
			memcpy(out + cut_at, "...", 4);
			return cut_at + 3;
		}
		for (size_t k = 0; k < bytes; k++, i++) {
			if (shown) {
				out[used++] = (char)in[i];
				continue;
			}
			out[used++] = '\\';
			out[used++] = 'x';
			out[used++] = hex[in[i] >> 4];
			out[used++] = hex[in[i] & 15];
		}
		if (used + 4 <= out_bytes)
			cut_at = used;
	}
	out[used] = '\0';
	return used;
}
