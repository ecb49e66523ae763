/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the place of a name, then a message with it; and the message once more as text. */
#include "dns/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A valid name survives text, lower-casing and a message with compression. */
static void survives(const uint8_t *name, size_t n)
{
	uint8_t back[NAME_MAX_BYTES], lower[NAME_MAX_BYTES], msg[3 * NAME_MAX_BYTES];
	char text[NAME_TEXT_MAX_BYTES];
	struct name_compressor c;
	const char *why;
	size_t pos = 12, at;

	ASSERT(name_wire_bytes(name, n) == n);
	ASSERT(name_from_text(back, text, name_to_text(text, name), NULL, &why) == n && memcmp(back, name, n) == 0);
	name_lower(lower, name, n);
	ASSERT(name_equal(lower, name) && name_compare(lower, name) == 0 && name_is_at_or_below(name, lower));
	ASSERT(name_common_labels(name, lower) == name_labels(name));
	name_compressor_init(&c);
	ASSERT(name_to_message(&c, msg, sizeof msg, &pos, name, true));
	at = pos;
	ASSERT(name_to_message(&c, msg, sizeof msg, &pos, lower, true));
	ASSERT(name_from_message(back, msg, pos, &at) == n && name_equal(back, name) && at == pos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t name[NAME_MAX_BYTES], other[NAME_MAX_BYTES];
	const uint8_t root[1] = { 0 };
	const char *why = NULL;
	size_t pos, n, m;

	if (size < 1)
		return 0;
	pos = data[0];
	data++;
	size--;
	n = name_from_message(name, data, size, &pos);
	ASSERT(pos <= size || n == 0);
	if (n > 0)
		survives(name, n);
	m = name_from_text(other, (const char *)data, size, root, &why);
	ASSERT((m == 0) == (why != NULL));
	if (m > 0)
		survives(other, m);
	if (n > 0 && m > 0) {
		int order = name_compare(name, other);

		ASSERT((order == 0) == name_equal(name, other));
		ASSERT((order < 0) == (name_compare(other, name) > 0));
		ASSERT(name_common_labels(name, other) <= name_labels(name));
	}
	return 0;
}
