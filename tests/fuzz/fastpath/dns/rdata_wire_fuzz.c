/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a record type, then record data. */
#include "base/bytes.h"
#include "tests/unit/fastpath/dns/rdata_words.h"

#define MAX_WORDS 65536

static char text[5 * RDATA_MAX_BYTES];
static uint8_t out[RDATA_MAX_BYTES];
static struct rdata_token words[MAX_WORDS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rdata_walk walk = { 0 };
	struct rdata_name name;
	struct rdata_error error;
	uint16_t type;
	size_t n, bytes = 0;

	if (size < 2 || size > 4096)
		return 0;
	type = load_be16(data);
	data += 2;
	size -= 2;
	(void)rdata_key_tag(data, size);
	(void)rdata_bitmap_has(data, size, type);
	ASSERT(rdata_to_text(type, data, size, text, sizeof text, &n) == ERR_OK);
	if (rdata_from_message(type, data, size, 0, size, out, sizeof out, &bytes) == ERR_OK)
		ASSERT(rdata_check(type, out, bytes) == ERR_OK);
	if (rdata_check(type, data, size) != ERR_OK)
		return 0;
	ASSERT(rdata_from_text(type, words, rdata_words(text, words, MAX_WORDS), NULL, out, sizeof out, &bytes, &error) ==
	       ERR_OK);
	ASSERT(bytes == size && memcmp(out, data, size) == 0);
	while (rdata_next_name(type, data, size, &walk, &name))
		ASSERT(name_wire_bytes(data + name.offset, size - name.offset) == name.bytes);
	rdata_canonical(type, out, size);
	ASSERT(rdata_check(type, out, size) == ERR_OK);
	return 0;
}
