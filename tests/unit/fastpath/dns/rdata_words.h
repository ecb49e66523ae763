/* SPDX-License-Identifier: Apache-2.0 */
/* rdata_words.h: splits the text of record data as the master file reader does, for tests. */
#pragma once
#include "dns/rdata.h"

/* Splits at blanks; quotes make one word, and key="value" too. Returns the number of words, at most max. */
static inline unsigned rdata_words(const char *text, struct rdata_token *token, unsigned max)
{
	unsigned count = 0;

	for (const char *p = text; *p != '\0' && count < max;) {
		const char *start = p;
		bool quoted = *p == '"', inside = false;

		if (*p == ' ') {
			p++;
			continue;
		}
		for (; *p != '\0' && (inside || *p != ' '); p++) {
			if (*p == '\\' && p[1] != '\0')
				p++;
			else if (*p == '"')
				inside = !inside;
		}
		bool closed = quoted && !inside && p - start >= 2 && p[-1] == '"';

		token[count++] = (struct rdata_token){ start + quoted, (uint32_t)(p - start - quoted - closed), quoted };
	}
	return count;
}
