/* SPDX-License-Identifier: Apache-2.0 */
/* escape_inline.h: the \DDD and \X escapes of RFC 1035 section 5.1. */
#pragma once
#include "base/base.h"
#include "dns/number_inline.h"

#define ESCAPE_MAX_BYTES 4 /* of one octet in text */

/* Reads the octet at text[*i], which exists; *i moves behind it. NULL, or a static sentence that says what is wrong. */
ALWAYS_INLINE const char *escape_next(const char *text, size_t text_bytes, size_t *i, uint8_t *octet)
{
	const char *at = text + *i;
	size_t left = text_bytes - *i;

	if (likely(at[0] != '\\')) {
		*octet = (uint8_t)at[0];
		*i += 1;
		return NULL;
	}
	if (left < 2)
		return "a single backslash ends the text";
	if (!number_is_digit(at[1])) {
		*octet = (uint8_t)at[1];
		*i += 2;
		return NULL;
	}
	if (left < 4 || !number_is_digit(at[2]) || !number_is_digit(at[3]))
		return "a backslash and a digit must be followed by two more digits";

	unsigned value = (unsigned)(at[1] - '0') * 100 + (unsigned)(at[2] - '0') * 10 + (unsigned)(at[3] - '0');

	if (value > 255)
		return "an escaped octet must be at most \\255";
	*octet = (uint8_t)value;
	*i += 4;
	return NULL;
}

/* Writes \DDD; returns its length. */
ALWAYS_INLINE size_t escape_decimal(char out[static ESCAPE_MAX_BYTES], uint8_t octet)
{
	out[0] = '\\';
	out[1] = (char)('0' + octet / 100);
	out[2] = (char)('0' + octet / 10 % 10);
	out[3] = (char)('0' + octet % 10);
	return 4;
}
