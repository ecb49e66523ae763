/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a record type, then the words of record data. */
#include "base/bytes.h"
#include "tests/unit/fastpath/dns/rdata_words.h"

#define MAX_WORDS 4096
#define MAX_INPUT 4096

static char text[MAX_INPUT + 1], printed[5 * RDATA_MAX_BYTES];
static uint8_t wire[RDATA_MAX_BYTES], back[RDATA_MAX_BYTES];
static struct rdata_token words[16 * MAX_WORDS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t origin[] = "\1x";
	struct rdata_error error;
	size_t n = 0, bytes = 0, text_bytes;
	uint16_t type;

	if (size < 2 || size - 2 > MAX_INPUT)
		return 0;
	type = load_be16(data);
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	if (rdata_from_text(type, words, rdata_words(text, words, MAX_WORDS), origin, wire, sizeof wire, &n, &error) != ERR_OK) {
		ASSERT(memchr(error.expected, '\0', sizeof error.expected) != NULL);
		return 0;
	}
	ASSERT(rdata_check(type, wire, n) == ERR_OK);
	ASSERT(rdata_to_text(type, wire, n, printed, sizeof printed, &text_bytes) == ERR_OK);
	ASSERT(rdata_from_text(type, words, rdata_words(printed, words, ARRAY_LEN(words)), NULL, back, sizeof back, &bytes,
			       &error) == ERR_OK);
	ASSERT(bytes == n && memcmp(wire, back, n) == 0);
	return 0;
}
