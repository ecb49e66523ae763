/* SPDX-License-Identifier: Apache-2.0 */
/* LOC (RFC 1876). */
#include "dns/number_inline.h"
#include "dns/rdata_field.h"

#define LOC_BYTES 16
#define EQUATOR 0x80000000u /* also the prime meridian; thousandths of a second of arc around it */
#define MS_PER_DEGREE 3600000u
#define ALTITUDE_ZERO_CM 10000000 /* 100 km below the spheroid */
#define LOC_SIZE_MAX_CM 9000000000u
#define SIZE_DEFAULT 0x12 /* 1 m; the precisions: 10 km and 10 m */
#define HORIZONTAL_DEFAULT 0x16
#define VERTICAL_DEFAULT 0x13

/* Digits with at most `places` behind a point, as an integer of 10^-places. At least one digit on either side. */
static bool scaled_from_text(const char *text, size_t n, unsigned places, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;
	unsigned digits = 0, behind = 0;
	bool point = false;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (!number_is_digit(text[i]) || (point && ++behind > places))
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
		digits++;
		if (value > max)
			return false;
	}
	for (; behind < places; behind++)
		value *= 10;
	if (digits == 0 || value > max)
		return false;
	*out = value;
	return true;
}

/* Whether the next word is one of the two directions; taken then. */
static bool direction(struct rdata_scan *s, char positive, char negative, bool *is_negative)
{
	const struct rdata_token *word = rdata_word(s);

	if (word == NULL || word->bytes != 1 ||
	    (number_upper(word->text[0]) != positive && number_upper(word->text[0]) != negative))
		return false;
	*is_negative = number_upper(word->text[0]) == negative;
	s->at++;
	return true;
}

static enum err angle_parse(struct rdata_scan *s, uint32_t max_degrees, char positive, char negative, const char *what)
{
	uint32_t degrees = 0, minutes = 0;
	uint64_t ms = 0, total;
	bool is_negative;
	uint8_t octets[4];
	enum err err = rdata_scan_number(s, max_degrees, what, &degrees);

	if (err != ERR_OK)
		return err;
	if (!direction(s, positive, negative, &is_negative)) {
		err = rdata_scan_number(s, 59, what, &minutes);
		if (err != ERR_OK)
			return err;
		if (!direction(s, positive, negative, &is_negative)) {
			const struct rdata_token *word = rdata_word(s);

			if (word == NULL || !scaled_from_text(word->text, word->bytes, 3, 59999, &ms))
				return rdata_expected(s, ERR_SYNTAX, what);
			s->at++;
			if (!direction(s, positive, negative, &is_negative))
				return rdata_expected(s, ERR_SYNTAX, what);
		}
	}
	total = (uint64_t)degrees * MS_PER_DEGREE + minutes * 60000u + ms;
	if (total > (uint64_t)max_degrees * MS_PER_DEGREE) {
		s->at--;
		return rdata_expected(s, ERR_RANGE, what);
	}
	store_be32(octets, (uint32_t)(is_negative ? EQUATOR - total : EQUATOR + total));
	return rdata_append(s, octets, sizeof octets);
}

/* A length in metres with an optional m behind it, in centimetres. */
static bool metres_from_text(const char *text, size_t n, uint64_t max_cm, uint64_t *out)
{
	if (n > 0 && number_upper(text[n - 1]) == 'M')
		n--;
	return scaled_from_text(text, n, 2, max_cm, out);
}

static enum err altitude_parse(struct rdata_scan *s)
{
	const struct rdata_token *word = rdata_word(s);
	bool below = word != NULL && word->bytes > 0 && word->text[0] == '-';
	uint8_t octets[4];
	uint64_t cm;

	if (word == NULL || !metres_from_text(word->text + below, word->bytes - below,
					      below ? ALTITUDE_ZERO_CM : UINT32_MAX - ALTITUDE_ZERO_CM, &cm))
		return rdata_expected(s, ERR_SYNTAX, "an altitude from -100000.00m to 42849672.95m");
	s->at++;
	store_be32(octets, (uint32_t)(below ? ALTITUDE_ZERO_CM - cm : ALTITUDE_ZERO_CM + cm));
	return rdata_append(s, octets, sizeof octets);
}

/* The optional size at the end: a digit and a power of ten, rounded down. */
static enum err size_parse(struct rdata_scan *s, uint8_t *size)
{
	const struct rdata_token *word = rdata_word(s);
	unsigned exponent = 0;
	uint64_t cm;

	if (word == NULL)
		return ERR_OK;
	if (!metres_from_text(word->text, word->bytes, LOC_SIZE_MAX_CM, &cm))
		return rdata_expected(s, ERR_SYNTAX, "a size from 0.00m to 90000000.00m");
	s->at++;
	for (; cm > 9; cm /= 10)
		exponent++;
	*size = (uint8_t)(cm << 4 | exponent);
	return ERR_OK;
}

static enum err loc_parse(struct rdata_scan *s, uint8_t flags)
{
	uint8_t front[4] = { 0, SIZE_DEFAULT, HORIZONTAL_DEFAULT, VERTICAL_DEFAULT };
	size_t start = s->n;
	enum err err = rdata_append(s, front, sizeof front);

	(void)flags;
	if (err == ERR_OK)
		err = angle_parse(s, 90, 'N', 'S', "a latitude: degrees, minutes, seconds, N or S");
	if (err == ERR_OK)
		err = angle_parse(s, 180, 'E', 'W', "a longitude: degrees, minutes, seconds, E or W");
	if (err == ERR_OK)
		err = altitude_parse(s);
	for (unsigned i = 1; err == ERR_OK && i < sizeof front; i++)
		err = size_parse(s, &s->out[start + i]);
	return err;
}

static bool size_is_valid(uint8_t size) { return size == 0 || ((size >> 4) >= 1 && (size >> 4) <= 9 && (size & 15) <= 9); }

static bool angle_is_valid(uint32_t angle, uint32_t max_degrees)
{
	return angle >= EQUATOR - max_degrees * MS_PER_DEGREE && angle <= EQUATOR + max_degrees * MS_PER_DEGREE;
}

/* Other versions than 0 have a layout that nobody defined. */
static size_t loc_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	if (left > 0 && wire[0] != 0)
		return left;
	if (left < LOC_BYTES || !size_is_valid(wire[1]) || !size_is_valid(wire[2]) || !size_is_valid(wire[3]) ||
	    !angle_is_valid(load_be32(wire + 4), 90) || !angle_is_valid(load_be32(wire + 8), 180))
		return RDATA_MALFORMED;
	return LOC_BYTES;
}

/* value in units of 10^-places. */
static void print_scaled(struct rdata_print *p, uint64_t value, unsigned places)
{
	uint64_t scale = 1;

	for (unsigned i = 0; i < places; i++)
		scale *= 10;
	rdata_print_number(p, value / scale);
	rdata_print_char(p, '.');
	for (uint64_t digit = scale / 10; digit > 0; digit /= 10)
		rdata_print_char(p, (char)('0' + value / digit % 10));
}

static void print_angle(struct rdata_print *p, uint32_t angle, char positive, char negative)
{
	uint32_t ms = angle >= EQUATOR ? angle - EQUATOR : EQUATOR - angle;

	rdata_print_gap(p);
	rdata_print_number(p, ms / MS_PER_DEGREE);
	rdata_print_char(p, ' ');
	rdata_print_number(p, ms / 60000 % 60);
	rdata_print_char(p, ' ');
	print_scaled(p, ms % 60000, 3);
	rdata_print_char(p, ' ');
	rdata_print_char(p, angle >= EQUATOR ? positive : negative);
}

static void print_size(struct rdata_print *p, uint8_t size)
{
	uint64_t cm = size >> 4;

	for (unsigned i = 0; i < (size & 15u); i++)
		cm *= 10;
	rdata_print_char(p, ' ');
	if (cm >= 100)
		rdata_print_number(p, cm / 100);
	else
		print_scaled(p, cm, 2);
	rdata_print_char(p, 'm');
}

static bool loc_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	int64_t altitude_cm;

	(void)bytes, (void)flags;
	if (wire[0] != 0)
		return false;
	print_angle(p, load_be32(wire + 4), 'N', 'S');
	print_angle(p, load_be32(wire + 8), 'E', 'W');
	altitude_cm = (int64_t)load_be32(wire + 12) - ALTITUDE_ZERO_CM;
	rdata_print_char(p, ' ');
	if (altitude_cm < 0)
		rdata_print_char(p, '-');
	print_scaled(p, (uint64_t)(altitude_cm < 0 ? -altitude_cm : altitude_cm), 2);
	rdata_print_char(p, 'm');
	for (unsigned i = 1; i < 4; i++)
		print_size(p, wire[i]);
	return true;
}

const struct rdata_field_ops rdata_ops_loc = { loc_parse, loc_measure, loc_print, NULL };
