/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/master_internal.h"

static uint32_t unit_seconds(char c)
{
	switch (c | 0x20) {
	case 's': return 1;
	case 'm': return 60;
	case 'h': return 60 * 60;
	case 'd': return 24 * 60 * 60;
	case 'w': return 7 * 24 * 60 * 60;
	default: return 0;
	}
}

/* Units in any order, each number with one; a number without a unit stands alone. */
enum err master_ttl_parse(const char *text, size_t text_bytes, uint32_t *ttl_s)
{
	uint64_t sum_s = 0;
	bool too_large = false;
	size_t i = 0;

	if (text_bytes == 0)
		return ERR_SYNTAX;
	while (i < text_bytes) {
		uint64_t number = 0;
		size_t start = i;

		for (; i < text_bytes && text[i] >= '0' && text[i] <= '9'; i++)
			number = MIN(number * 10 + (uint64_t)(text[i] - '0'), (uint64_t)UINT32_MAX);
		if (i == start)
			return ERR_SYNTAX;
		if (i < text_bytes) {
			uint32_t unit_s = unit_seconds(text[i++]);

			if (unit_s == 0)
				return ERR_SYNTAX;
			sum_s += number * unit_s;
		} else if (start == 0) {
			sum_s = number;
		} else {
			return ERR_SYNTAX;
		}
		too_large |= sum_s > MASTER_MAX_TTL_S;
		sum_s = MIN(sum_s, (uint64_t)UINT32_MAX);
	}
	if (too_large)
		return ERR_RANGE;
	*ttl_s = (uint32_t)sum_s;
	return ERR_OK;
}

bool master_ttl_from_text(const char *text, size_t text_bytes, uint32_t *ttl_s)
{
	return master_ttl_parse(text, text_bytes, ttl_s) == ERR_OK;
}
