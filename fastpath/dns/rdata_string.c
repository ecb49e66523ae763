/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that are names, addresses or <character-string>s. */
#include "dns/escape_inline.h"
#include "dns/rdata_field.h"

#define STRING_MAX_BYTES 255

void rdata_print_text(struct rdata_print *p, const char *text, size_t n)
{
	if (n > p->max - p->n)
		p->full = true;
	if (p->full)
		return;
	/* cppcheck-suppress uninitvar ; n counts what the caller has written */
	memcpy(p->out + p->n, text, n);
	p->n += n;
}

void rdata_print_char(struct rdata_print *p, char c) { rdata_print_text(p, &c, 1); }

void rdata_print_gap(struct rdata_print *p)
{
	if (p->n > 0)
		rdata_print_char(p, ' ');
}

void rdata_print_name(struct rdata_print *p, const uint8_t *name)
{
	char text[NAME_TEXT_MAX_BYTES];

	rdata_print_text(p, text, name_to_text(text, name));
}

void rdata_print_quoted(struct rdata_print *p, const uint8_t *octets, size_t n)
{
	rdata_print_char(p, '"');
	for (size_t i = 0; i < n; i++) {
		char escaped[ESCAPE_MAX_BYTES];

		if (octets[i] < ' ' || octets[i] > '~') {
			rdata_print_text(p, escaped, escape_decimal(escaped, octets[i]));
			continue;
		}
		if (octets[i] == '"' || octets[i] == '\\')
			rdata_print_char(p, '\\');
		rdata_print_char(p, (char)octets[i]);
	}
	rdata_print_char(p, '"');
}

static enum err name_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint8_t local[NAME_MAX_BYTES], *out = rdata_room(s, NAME_MAX_BYTES);
	const char *why = NULL;
	size_t n;

	(void)flags;
	if (word == NULL || word->quoted)
		return rdata_expected(s, ERR_SYNTAX, "a domain name (without quotes)");
	if (unlikely(out == NULL))
		out = local;
	if (word->bytes == 1 && word->text[0] == '@' && s->origin != NULL) {
		n = name_wire_bytes(s->origin, NAME_MAX_BYTES);
		memcpy(out, s->origin, n);
	} else {
		n = name_from_text(out, word->text, word->bytes, s->origin, &why);
	}
	if (unlikely(n == 0)) {
		char what[100] = "a domain name (";
		size_t length = strlen(what), room = sizeof what - length - 2, why_bytes = MIN(strlen(why), room);

		memcpy(what + length, why, why_bytes);
		memcpy(what + length + why_bytes, ")", 2);
		return rdata_expected(s, ERR_SYNTAX, what);
	}
	if (unlikely(out == local))
		return rdata_append(s, local, n) != ERR_OK ? ERR_NOSPACE : (s->at++, ERR_OK);
	s->n += n;
	s->at++;
	return ERR_OK;
}

static size_t name_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t n = name_wire_bytes(wire, left);

	(void)flags;
	return n == 0 ? RDATA_MALFORMED : n;
}

static bool name_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)bytes, (void)flags;
	rdata_print_gap(p);
	rdata_print_name(p, wire);
	return true;
}

static bool name_next(const uint8_t *wire, size_t bytes, size_t *pos, size_t *name_at, size_t *name_bytes)
{
	(void)wire;
	if (*pos != 0)
		return false;
	*name_at = 0;
	*name_bytes = *pos = bytes;
	return true;
}

bool rdata_ipv4_from_text(const char *text, size_t text_bytes, uint8_t out[static 4])
{
	size_t i = 0;

	for (unsigned part = 0; part < 4; part++) {
		unsigned value = 0, digits = 0;

		if (part > 0 && (i == text_bytes || text[i++] != '.'))
			return false;
		for (; i < text_bytes && number_is_digit(text[i]); i++) {
			if (++digits > 3 || (digits > 1 && value == 0)) /* a leading zero would look octal */
				return false;
			value = value * 10 + (unsigned)(text[i] - '0');
		}
		if (digits == 0 || value > 255)
			return false;
		out[part] = (uint8_t)value;
	}
	return i == text_bytes;
}

static int hex_value(char c)
{
	char upper = number_upper(c);

	if (number_is_digit(c))
		return c - '0';
	return upper >= 'A' && upper <= 'F' ? upper - 'A' + 10 : -1;
}

/* RFC 4291 section 2.2. */
bool rdata_ipv6_from_text(const char *text, size_t text_bytes, uint8_t out[static 16])
{
	size_t i = 0, n = 0, gap = SIZE_MAX; /* n octets are written; gap: where "::" stands */

	memset(out, 0, 16);
	if (text_bytes >= 2 && text[0] == ':' && text[1] == ':') {
		gap = 0;
		i = 2;
	}
	while (i < text_bytes) {
		size_t start = i;
		unsigned value = 0;

		for (; i < text_bytes && i - start < 4 && hex_value(text[i]) >= 0; i++)
			value = value << 4 | (unsigned)hex_value(text[i]);
		if (i < text_bytes && text[i] == '.') {
			if (n > 12 || !rdata_ipv4_from_text(text + start, text_bytes - start, out + n))
				return false;
			n += 4;
			break;
		}
		if (i == start || n == 16)
			return false;
		store_be16(out + n, (uint16_t)value);
		n += 2;
		if (i == text_bytes)
			break;
		if (text[i++] != ':' || i == text_bytes) /* a single colon at the end */
			return false;
		if (text[i] == ':') {
			if (gap != SIZE_MAX)
				return false;
			gap = n;
			i++;
		}
	}
	if (gap == SIZE_MAX)
		return n == 16;
	if (n == 16)
		return false;
	memmove(out + 16 - (n - gap), out + gap, n - gap);
	memset(out + gap, 0, 16 - n);
	return true;
}

size_t rdata_ipv4_to_text(char out[static RDATA_IPV4_TEXT_BYTES], const uint8_t *address)
{
	size_t n = 0;

	for (unsigned i = 0; i < 4; i++) {
		if (i > 0)
			out[n++] = '.';
		n += number_to_text(out + n, address[i]);
	}
	return n;
}

static size_t hex_group(char *out, unsigned value)
{
	size_t n = 0;

	for (int shift = 12; shift >= 0; shift -= 4)
		if (value >> shift != 0 || shift == 0)
			out[n++] = "0123456789abcdef"[value >> shift & 15];
	return n;
}

/* The first of the longest runs of at least two zero groups. */
static void longest_zeros(const uint8_t *address, unsigned *at, unsigned *length)
{
	unsigned run = 0;

	*at = 0;
	*length = 0;
	for (unsigned i = 0; i < 8; i++) {
		run = load_be16(address + 2 * i) == 0 ? run + 1 : 0;
		if (run > 1 && run > *length) {
			*length = run;
			*at = i + 1 - run;
		}
	}
}

/* RFC 5952, with dotted quads for IPv4-compatible and IPv4-mapped addresses, as inet_ntop does. */
size_t rdata_ipv6_to_text(char out[static RDATA_IPV6_TEXT_BYTES], const uint8_t *address)
{
	unsigned zeros_at, zeros;
	size_t n = 0;

	longest_zeros(address, &zeros_at, &zeros);
	if (zeros_at == 0 && (zeros == 6 || (zeros == 5 && load_be16(address + 10) == 0xffff))) {
		n = zeros == 6 ? 2 : 7;
		memcpy(out, "::ffff:", n);
		return n + rdata_ipv4_to_text(out + n, address + 12);
	}
	for (unsigned i = 0; i < 8;) {
		if (zeros > 0 && i == zeros_at) {
			out[n++] = ':';
			i += zeros;
			if (i == 8)
				out[n++] = ':';
			continue;
		}
		if (i > 0)
			out[n++] = ':';
		n += hex_group(out + n, load_be16(address + 2 * i));
		i++;
	}
	return n;
}

static enum err ipv4_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint8_t address[4];

	(void)flags;
	if (word == NULL || !rdata_ipv4_from_text(word->text, word->bytes, address))
		return rdata_expected(s, ERR_SYNTAX, "an IPv4 address");
	s->at++;
	return rdata_append(s, address, sizeof address);
}

static enum err ipv6_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint8_t address[16];

	(void)flags;
	if (word == NULL || !rdata_ipv6_from_text(word->text, word->bytes, address))
		return rdata_expected(s, ERR_SYNTAX, "an IPv6 address");
	s->at++;
	return rdata_append(s, address, sizeof address);
}

static size_t ipv4_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 4 ? RDATA_MALFORMED : 4;
}

static size_t ipv6_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 16 ? RDATA_MALFORMED : 16;
}

static bool ipv4_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	char text[RDATA_IPV4_TEXT_BYTES];
	size_t n;

	(void)bytes, (void)flags;
	n = rdata_ipv4_to_text(text, wire);
	rdata_print_gap(p);
	rdata_print_text(p, text, n);
	return true;
}

static bool ipv6_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	char text[RDATA_IPV6_TEXT_BYTES];
	size_t n;

	(void)bytes, (void)flags;
	n = rdata_ipv6_to_text(text, wire);
	rdata_print_gap(p);
	rdata_print_text(p, text, n);
	return true;
}

/* The next word's octets, appended without a length; at most max of them. */
static enum err append_unescaped(struct rdata_scan *s, size_t max, const char *what, size_t *octets)
{
	const struct rdata_token *word = rdata_word(s);
	size_t start = s->n;

	if (word == NULL)
		return rdata_expected(s, ERR_SYNTAX, what);
	for (size_t i = 0; i < word->bytes;) {
		uint8_t octet;

		if (unlikely(escape_next(word->text, word->bytes, &i, &octet) != NULL))
			return rdata_expected(s, ERR_SYNTAX, "a text with escapes of the form \\X or \\DDD (000 to 255)");
		if (unlikely(s->n - start == max))
			return rdata_expected(s, ERR_RANGE, what);
		if (unlikely(s->n == s->max))
			return rdata_no_space(s);
		s->out[s->n++] = octet;
	}
	s->at++;
	*octets = s->n - start;
	return ERR_OK;
}

static enum err string_parse(struct rdata_scan *s, uint8_t flags)
{
	size_t length_at = s->n, octets = 0;
	enum err err = rdata_append_u8(s, 0);

	(void)flags;
	if (err == ERR_OK)
		err = append_unescaped(s, STRING_MAX_BYTES, "a text of at most 255 octets", &octets);
	if (err == ERR_OK)
		s->out[length_at] = (uint8_t)octets;
	return err;
}

static bool string_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	rdata_print_quoted(p, wire + 1, bytes - 1);
	return true;
}

static enum err strings_parse(struct rdata_scan *s, uint8_t flags)
{
	enum err err;

	do {
		err = string_parse(s, flags);
	} while (err == ERR_OK && s->at < s->count);
	return err;
}

static size_t strings_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t pos = 0;

	if (left == 0)
		return RDATA_MALFORMED;
	while (pos < left) {
		size_t bytes = rdata_l8_measure(wire + pos, left - pos, flags);

		if (bytes == RDATA_MALFORMED)
			return RDATA_MALFORMED;
		pos += bytes;
	}
	return left;
}

static bool strings_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	for (size_t pos = 0; pos < bytes; pos += 1u + wire[pos])
		string_print(p, wire + pos, 1u + wire[pos], flags);
	return true;
}

static enum err string_long_parse(struct rdata_scan *s, uint8_t flags)
{
	size_t octets;

	(void)flags;
	return append_unescaped(s, RDATA_MAX_BYTES, "a text", &octets);
}

static size_t rest_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left;
}

static bool string_long_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	rdata_print_quoted(p, wire, bytes);
	return true;
}

/* A string whose octets must all satisfy `valid`, at least `min` of them. */
static enum err checked_parse(struct rdata_scan *s, bool (*valid)(const uint8_t *octets, size_t n), const char *what)
{
	size_t start = s->n;
	enum err err = string_parse(s, 0);

	if (err == ERR_OK && !valid(s->out + start + 1, s->n - start - 1)) {
		s->at--;
		return rdata_expected(s, ERR_SYNTAX, what);
	}
	return err;
}

static size_t checked_measure(bool (*valid)(const uint8_t *octets, size_t n), const uint8_t *wire, size_t left)
{
	size_t bytes = rdata_l8_measure(wire, left, 0);

	return bytes == RDATA_MALFORMED || !valid(wire + 1, bytes - 1) ? RDATA_MALFORMED : bytes;
}

/* RFC 8659 section 4.1: letters and digits. */
static bool is_tag(const uint8_t *octets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!number_is_digit((char)octets[i]) &&
		    !(number_upper((char)octets[i]) >= 'A' && number_upper((char)octets[i]) <= 'Z'))
			return false;
	return n > 0;
}

static enum err tag_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return checked_parse(s, is_tag, "a tag of letters and digits");
}
static size_t tag_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return checked_measure(is_tag, wire, left);
}
static bool tag_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	rdata_print_text(p, (const char *)wire + 1, bytes - 1);
	return true;
}

/* RFC 1183 section 3.1: an X.121 address, which has at least the four digits of the DNIC. */
static bool is_x121(const uint8_t *octets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!number_is_digit((char)octets[i]))
			return false;
	return n >= 4;
}

static enum err x25_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return checked_parse(s, is_x121, "an X.121 address of at least four digits");
}
static size_t x25_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return checked_measure(is_x121, wire, left);
}

/* RFC 1712 section 3: a real number, with digits on at least one side of the point. */
static bool is_decimal(const uint8_t *octets, size_t n)
{
	size_t i = n > 0 && (octets[0] == '-' || octets[0] == '+') ? 1 : 0;
	unsigned digits = 0, points = 0;

	for (; i < n; i++) {
		if (number_is_digit((char)octets[i]))
			digits++;
		else if (octets[i] != '.' || points++ > 0)
			return false;
	}
	return digits > 0;
}

static enum err gpos_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return checked_parse(s, is_decimal, "a decimal number");
}
static size_t gpos_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return checked_measure(is_decimal, wire, left);
}

const struct rdata_field_ops rdata_ops_name = { name_parse, name_measure, name_print, name_next };
const struct rdata_field_ops rdata_ops_ipv4 = { ipv4_parse, ipv4_measure, ipv4_print, NULL };
const struct rdata_field_ops rdata_ops_ipv6 = { ipv6_parse, ipv6_measure, ipv6_print, NULL };
const struct rdata_field_ops rdata_ops_string = { string_parse, rdata_l8_measure, string_print, NULL };
const struct rdata_field_ops rdata_ops_strings = { strings_parse, strings_measure, strings_print, NULL };
const struct rdata_field_ops rdata_ops_string_long = { string_long_parse, rest_measure, string_long_print, NULL };
const struct rdata_field_ops rdata_ops_tag = { tag_parse, tag_measure, tag_print, NULL };
const struct rdata_field_ops rdata_ops_x25 = { x25_parse, x25_measure, string_print, NULL };
const struct rdata_field_ops rdata_ops_gpos = { gpos_parse, gpos_measure, string_print, NULL };
