/* SPDX-License-Identifier: Apache-2.0 */
/* number_inline.h: decimal numbers in text, without locale or allocation. A sign, white space or an empty text is an error. */
#pragma once
#include "base/base.h"

#define NUMBER_TEXT_MAX_BYTES 20 /* of any uint64_t, without a NUL */

ALWAYS_INLINE bool number_is_digit(char c) { return (unsigned char)(c - '0') < 10; }
ALWAYS_INLINE char number_upper(char c) { return (char)(c - ((unsigned char)(c - 'a') < 26 ? 32 : 0)); }

/* Decimal digits only, at most max. False leaves *out alone. */
ALWAYS_INLINE bool number_from_text(const char *text, size_t text_bytes, uint32_t max, uint32_t *out)
{
	uint64_t value = 0;

	if (text_bytes == 0)
		return false;
	for (size_t i = 0; i < text_bytes; i++) {
		if (!number_is_digit(text[i]))
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
		if (value > max)
			return false;
	}
	*out = (uint32_t)value;
	return true;
}

/* Digits, or numbers each with one of the units w, d, h, m, s in any case (BIND's form: "1h30m"), at most max.
 * The last number may go without a unit when it is the only one. */
static inline bool number_ttl_from_text(const char *text, size_t text_bytes, uint32_t max, uint32_t *out)
{
	uint64_t total = 0, value = 0;
	bool digits = false, units = false;

	for (size_t i = 0; i < text_bytes; i++) {
		uint32_t unit = 0;

		if (number_is_digit(text[i])) {
			value = value * 10 + (unsigned)(text[i] - '0');
			digits = true;
			if (value > max)
				return false;
			continue;
		}
		switch (number_upper(text[i])) {
		case 'W': unit = 604800; break;
		case 'D': unit = 86400; break;
		case 'H': unit = 3600; break;
		case 'M': unit = 60; break;
		case 'S': unit = 1; break;
		default: return false;
		}
		if (!digits)
			return false;
		total += value * unit;
		if (total > max)
			return false;
		value = 0;
		digits = false;
		units = true;
	}
	if (digits == units) /* nothing at all, or digits without a unit behind some with */
		return false;
	*out = (uint32_t)(units ? total : value);
	return true;
}

/* Writes the decimal digits, no NUL; returns how many (at most NUMBER_TEXT_MAX_BYTES). */
static inline size_t number_to_text(char *out, uint64_t value)
{
	char digits[NUMBER_TEXT_MAX_BYTES];
	size_t n = 0;

	do {
		digits[sizeof digits - ++n] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	memcpy(out, digits + sizeof digits - n, n);
	return n;
}
