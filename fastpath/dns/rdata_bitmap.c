/* SPDX-License-Identifier: Apache-2.0 */
/* Type bitmaps (RFC 4034 section 4.1.2, RFC 2535 section 5.2) and identifiers that are written digit by digit. */
#include "dns/number_inline.h"
#include "dns/rdata_field.h"

#define WINDOW_MAX_OCTETS 32
#define WINDOWS 256
#define NXT_MAX_OCTETS 16 /* types 0 to 127 */

/* The next word as a type from lowest to below limit; taken. */
static enum err scan_type(struct rdata_scan *s, unsigned lowest, unsigned limit, uint16_t *type)
{
	if (!rr_type_from_text(rdata_word(s)->text, rdata_word(s)->bytes, type))
		return rdata_expected(s, ERR_SYNTAX, "a record type");
	if (*type < lowest || *type >= limit)
		return rdata_expected(s, ERR_RANGE, "a record type that this bitmap can hold");
	s->at++;
	return ERR_OK;
}

/* Octets up to the last one that is not zero. */
static unsigned octets_used(const uint8_t *bits, unsigned n)
{
	while (n > 0 && bits[n - 1] == 0)
		n--;
	return n;
}

static enum err append_window(struct rdata_scan *s, unsigned window, const uint8_t *bits)
{
	unsigned n = octets_used(bits, WINDOW_MAX_OCTETS);
	enum err err = rdata_append_u8(s, (uint8_t)window);

	if (err == ERR_OK)
		err = rdata_append_u8(s, (uint8_t)n);
	return err != ERR_OK ? err : rdata_append(s, bits, n);
}

static enum err bitmap_parse(struct rdata_scan *s, uint8_t flags)
{
	uint8_t bits[WINDOWS][WINDOW_MAX_OCTETS]; /* a window is cleared when its first type comes: most have none */
	bool is_used[WINDOWS] = { false };
	unsigned end = 0; /* behind the last window that is used */
	enum err err = ERR_OK;

	if (s->at == s->count && !(flags & RDF_F_OPTIONAL))
		return rdata_expected(s, ERR_SYNTAX, "at least one record type");
	while (err == ERR_OK && s->at < s->count) {
		uint16_t type = 0;

		err = scan_type(s, 0, WINDOWS * 256, &type);
		if (!is_used[type >> 8])
			memset(bits[type >> 8], 0, WINDOW_MAX_OCTETS);
		is_used[type >> 8] = true;
		end = MAX(end, (type >> 8) + 1u);
		bits[type >> 8][(type & 0xff) / 8] |= (uint8_t)(0x80 >> (type & 7));
	}
	for (unsigned w = 0; err == ERR_OK && w < end; w++)
		if (is_used[w])
			err = append_window(s, w, bits[w]);
	return err;
}

static size_t bitmap_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	int last_window = -1;
	size_t pos = 0;

	if (left == 0)
		return flags & RDF_F_OPTIONAL ? 0 : RDATA_MALFORMED;
	while (pos < left) {
		if (left - pos < 3 || wire[pos] <= last_window)
			return RDATA_MALFORMED;

		unsigned octets = wire[pos + 1];

		last_window = wire[pos];
		if (octets < 1 || octets > WINDOW_MAX_OCTETS || octets > left - pos - 2 || wire[pos + 1 + octets] == 0)
			return RDATA_MALFORMED;
		pos += 2 + octets;
	}
	return left;
}

static void print_types(struct rdata_print *p, const uint8_t *bits, unsigned octets, unsigned first)
{
	for (unsigned bit = 0; bit < octets * 8; bit++) {
		char text[16];

		if ((bits[bit / 8] & (0x80 >> (bit & 7))) == 0)
			continue;
		rdata_print_gap(p);
		rdata_print_text(p, text, rr_type_to_text(text, (uint16_t)(first + bit)));
	}
}

static bool bitmap_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	for (size_t pos = 0; pos < bytes; pos += 2u + wire[pos + 1])
		print_types(p, wire + pos + 2, wire[pos + 1], wire[pos] * 256u);
	return true;
}

static enum err bitmap_nxt_parse(struct rdata_scan *s, uint8_t flags)
{
	uint8_t bits[NXT_MAX_OCTETS] = { 0 };
	enum err err = ERR_OK;

	(void)flags;
	while (err == ERR_OK && s->at < s->count) {
		uint16_t type = 0;

		err = scan_type(s, 1, NXT_MAX_OCTETS * 8, &type);
		if (err == ERR_OK)
			bits[type / 8] |= (uint8_t)(0x80 >> (type & 7));
	}
	return err != ERR_OK ? err : rdata_append(s, bits, octets_used(bits, NXT_MAX_OCTETS));
}

/* Bit 0 says that the rest is not this bitmap; such data was never defined. */
static size_t bitmap_nxt_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return left > NXT_MAX_OCTETS || (left > 0 && ((wire[0] & 0x80) != 0 || wire[left - 1] == 0)) ? RDATA_MALFORMED : left;
}

static bool bitmap_nxt_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	print_types(p, wire, (unsigned)bytes, 0);
	return true;
}

static int hex_digit(char c)
{
	char upper = number_upper(c);

	if (number_is_digit(c))
		return c - '0';
	return upper >= 'A' && upper <= 'F' ? upper - 'A' + 10 : -1;
}

/* n octets as hexadecimal pairs with dashes between them. */
static enum err eui_parse(struct rdata_scan *s, unsigned n, const char *what)
{
	const struct rdata_token *word = rdata_word(s);
	uint8_t octets[8];

	if (word == NULL || word->bytes != n * 3 - 1)
		return rdata_expected(s, ERR_SYNTAX, what);
	for (unsigned i = 0; i < n; i++) {
		const char *pair = word->text + i * 3;

		if (hex_digit(pair[0]) < 0 || hex_digit(pair[1]) < 0 || (i + 1 < n && pair[2] != '-'))
			return rdata_expected(s, ERR_SYNTAX, what);
		octets[i] = (uint8_t)(hex_digit(pair[0]) << 4 | hex_digit(pair[1]));
	}
	s->at++;
	return rdata_append(s, octets, n);
}

static enum err eui48_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return eui_parse(s, 6, "an address of the form 00-00-5e-00-53-2a");
}
static enum err eui64_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return eui_parse(s, 8, "an address of the form 00-00-5e-ef-10-00-00-2a");
}
static size_t measure_6(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 6 ? RDATA_MALFORMED : 6;
}
static size_t measure_8(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 8 ? RDATA_MALFORMED : 8;
}

static void print_lower_hex(struct rdata_print *p, uint8_t octet)
{
	rdata_print_char(p, "0123456789abcdef"[octet >> 4]);
	rdata_print_char(p, "0123456789abcdef"[octet & 15]);
}

static bool eui_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	for (size_t i = 0; i < bytes; i++) {
		if (i > 0)
			rdata_print_char(p, '-');
		print_lower_hex(p, wire[i]);
	}
	return true;
}

/* RFC 6742 section 2.1.2: four groups of 16 bits, leading zeros optional. */
static enum err nid64_parse(struct rdata_scan *s, uint8_t flags)
{
	static const char what[] = "four groups of hexadecimal digits with colons between them";
	const struct rdata_token *word = rdata_word(s);
	uint8_t octets[8];
	uint32_t i = 0;

	(void)flags;
	if (word == NULL)
		return rdata_expected(s, ERR_SYNTAX, what);
	for (unsigned group = 0; group < 4; group++) {
		unsigned value = 0, digits = 0;

		if (group > 0 && (i == word->bytes || word->text[i++] != ':'))
			return rdata_expected(s, ERR_SYNTAX, what);
		for (; i < word->bytes && hex_digit(word->text[i]) >= 0; i++, digits++)
			value = value << 4 | (unsigned)hex_digit(word->text[i]);
		if (digits < 1 || digits > 4)
			return rdata_expected(s, ERR_SYNTAX, what);
		store_be16(octets + 2 * group, (uint16_t)value);
	}
	if (i != word->bytes)
		return rdata_expected(s, ERR_SYNTAX, what);
	s->at++;
	return rdata_append(s, octets, sizeof octets);
}

static bool nid64_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)bytes, (void)flags;
	rdata_print_gap(p);
	for (unsigned group = 0; group < 4; group++) {
		unsigned value = load_be16(wire + 2 * group);

		if (group > 0)
			rdata_print_char(p, ':');
		for (int shift = 12; shift >= 0; shift -= 4)
			if (value >> shift != 0 || shift == 0)
				rdata_print_char(p, "0123456789abcdef"[value >> shift & 15]);
	}
	return true;
}

/* Hexadecimal digits in pairs, dots anywhere between them (RFC 1706 section 7), up to the end of the record. */
static enum err dotted_hex(struct rdata_scan *s, const struct rdata_token *word, uint32_t from, const char *what)
{
	size_t start = s->n;
	int high = -1;

	for (uint32_t i = from; i < word->bytes; i++) {
		int digit = hex_digit(word->text[i]);

		if (word->text[i] == '.')
			continue;
		if (digit < 0)
			return rdata_expected(s, ERR_SYNTAX, what);
		if (high < 0) {
			high = digit;
			continue;
		}
		if (s->n == s->max)
			return rdata_no_space(s);
		s->out[s->n++] = (uint8_t)(high << 4 | digit);
		high = -1;
	}
	if (high >= 0 || s->n == start)
		return rdata_expected(s, ERR_SYNTAX, what);
	s->at++;
	return ERR_OK;
}

static enum err nsap_parse(struct rdata_scan *s, uint8_t flags)
{
	static const char what[] = "0x and pairs of hexadecimal digits";
	const struct rdata_token *word = rdata_word(s);

	(void)flags;
	if (word == NULL || word->bytes < 2 || word->text[0] != '0' || number_upper(word->text[1]) != 'X')
		return rdata_expected(s, ERR_SYNTAX, what);
	return dotted_hex(s, word, 2, what);
}

static size_t nsap_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left == 0 ? RDATA_MALFORMED : left;
}

static bool nsap_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	rdata_print_text(p, "0x", 2);
	for (size_t i = 0; i < bytes; i++)
		print_lower_hex(p, wire[i]);
	return true;
}

/* ATM addresses (af-dans-0152): format 0 is an NSAP in hexadecimal, format 1 an E.164 number behind a plus. */
enum { ATMA_NSAP = 0, ATMA_E164 = 1 };

static enum err atma_parse(struct rdata_scan *s, uint8_t flags)
{
	static const char what[] = "+ and digits, or pairs of hexadecimal digits";
	const struct rdata_token *word = rdata_word(s);
	enum err err;

	(void)flags;
	if (word == NULL || word->bytes < 2)
		return rdata_expected(s, ERR_SYNTAX, what);
	err = rdata_append_u8(s, word->text[0] == '+' ? ATMA_E164 : ATMA_NSAP);
	if (err != ERR_OK || word->text[0] != '+')
		return err != ERR_OK ? err : dotted_hex(s, word, 0, what);
	for (uint32_t i = 1; err == ERR_OK && i < word->bytes; i++) {
		if (word->text[i] == '.')
			continue;
		if (!number_is_digit(word->text[i]))
			return rdata_expected(s, ERR_SYNTAX, what);
		err = rdata_append_u8(s, (uint8_t)word->text[i]);
	}
	if (err == ERR_OK && s->out[s->n - 1] == ATMA_E164) /* dots only: no digit was appended */
		return rdata_expected(s, ERR_SYNTAX, what);
	s->at++;
	return err;
}

static size_t atma_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	if (left < 2)
		return RDATA_MALFORMED;
	for (size_t i = 1; wire[0] == ATMA_E164 && i < left; i++)
		if (!number_is_digit((char)wire[i]))
			return RDATA_MALFORMED;
	return left;
}

static bool atma_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	if (wire[0] > ATMA_E164)
		return false;
	rdata_print_gap(p);
	if (wire[0] == ATMA_E164) {
		rdata_print_char(p, '+');
		rdata_print_text(p, (const char *)wire + 1, bytes - 1);
		return true;
	}
	for (size_t i = 1; i < bytes; i++)
		print_lower_hex(p, wire[i]);
	return true;
}

const struct rdata_field_ops rdata_ops_bitmap = { bitmap_parse, bitmap_measure, bitmap_print, NULL };
const struct rdata_field_ops rdata_ops_bitmap_nxt = { bitmap_nxt_parse, bitmap_nxt_measure, bitmap_nxt_print, NULL };
const struct rdata_field_ops rdata_ops_eui48 = { eui48_parse, measure_6, eui_print, NULL };
const struct rdata_field_ops rdata_ops_eui64 = { eui64_parse, measure_8, eui_print, NULL };
const struct rdata_field_ops rdata_ops_nid64 = { nid64_parse, measure_8, nid64_print, NULL };
const struct rdata_field_ops rdata_ops_nsap = { nsap_parse, nsap_measure, nsap_print, NULL };
const struct rdata_field_ops rdata_ops_atma = { atma_parse, atma_measure, atma_print, NULL };
