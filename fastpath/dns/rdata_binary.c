/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that are octets in hexadecimal, base64 or base32. */
#include "dns/number_inline.h"
#include "dns/rdata_field.h"

/* Values of digits; anything above is none. */
#define NO_DIGIT 0xff
#define PADDING 0xfe

static uint8_t hex_digit(char c)
{
	char upper = number_upper(c);

	if (number_is_digit(c))
		return (uint8_t)(c - '0');
	return upper >= 'A' && upper <= 'F' ? (uint8_t)(upper - 'A' + 10) : NO_DIGIT;
}

static uint8_t base32hex_digit(char c)
{
	char upper = number_upper(c);

	if (number_is_digit(c))
		return (uint8_t)(c - '0');
	return upper >= 'A' && upper <= 'V' ? (uint8_t)(upper - 'A' + 10) : NO_DIGIT;
}

static uint8_t base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint8_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint8_t)(c - 'a' + 26);
	if (number_is_digit(c))
		return (uint8_t)(c - '0' + 52);
	return c == '+' ? 62 : c == '/' ? 63 : c == '=' ? PADDING : NO_DIGIT;
}

/* Last word that belongs to the data. */
static unsigned words_end(const struct rdata_scan *s, bool to_end) { return to_end ? s->count : MIN(s->at + 1, s->count); }

enum err rdata_scan_hex(struct rdata_scan *s, bool to_end, size_t *octets)
{
	unsigned end = words_end(s, to_end), half = 0; /* half: the first digit of a pair, with a mark above it */
	size_t start = s->n;

	for (; s->at < end; s->at++) {
		const struct rdata_token *word = &s->token[s->at];

		for (uint32_t i = 0; i < word->bytes; i++) {
			uint8_t digit = hex_digit(word->text[i]);

			if (unlikely(digit == NO_DIGIT))
				return rdata_expected(s, ERR_SYNTAX, "hexadecimal digits");
			if (half == 0) {
				half = 0x100u | digit;
				continue;
			}
			if (unlikely(s->n == s->max))
				return rdata_no_space(s);
			s->out[s->n++] = (uint8_t)(half << 4 | digit);
			half = 0;
		}
	}
	if (half != 0) {
		s->at--;
		return rdata_expected(s, ERR_SYNTAX, "an even number of hexadecimal digits");
	}
	*octets = s->n - start;
	return ERR_OK;
}

/* Bits that were read and not yet written, and what the padding looked like. */
struct base64_state {
	uint32_t bits;
	unsigned digits, paddings;
};

static enum err base64_word(struct rdata_scan *s, const struct rdata_token *word, struct base64_state *state)
{
	for (uint32_t i = 0; i < word->bytes; i++) {
		uint8_t digit = base64_digit(word->text[i]);

		if (digit == PADDING && state->digits >= 2 && state->digits + state->paddings < 4) {
			state->paddings++;
			continue;
		}
		if (unlikely(digit >= PADDING || state->paddings > 0))
			return rdata_expected(s, ERR_SYNTAX, "base64");
		state->bits = state->bits << 6 | digit;
		if (++state->digits < 4)
			continue;
		if (unlikely(s->max - s->n < 3))
			return rdata_no_space(s);
		s->out[s->n++] = (uint8_t)(state->bits >> 16);
		s->out[s->n++] = (uint8_t)(state->bits >> 8);
		s->out[s->n++] = (uint8_t)state->bits;
		*state = (struct base64_state){ 0 };
	}
	return ERR_OK;
}

enum err rdata_scan_base64(struct rdata_scan *s, bool to_end, size_t *octets)
{
	unsigned end = words_end(s, to_end);
	struct base64_state state = { 0 };
	size_t start = s->n;

	for (; s->at < end; s->at++) {
		enum err err = base64_word(s, &s->token[s->at], &state);

		if (err != ERR_OK)
			return err;
	}
	if (state.digits > 0) {
		/* Two digits hold one octet and four zero bits, three hold two octets and two zero bits. */
		unsigned spare = state.digits == 2 ? 4 : 2, whole = state.digits - 1;

		if (state.digits + state.paddings != 4 || (state.bits & ((1u << spare) - 1)) != 0) {
			s->at--;
			return rdata_expected(s, ERR_SYNTAX,
					      "base64 that ends in a whole group of four, padded by zero bits and =");
		}
		if (s->max - s->n < whole)
			return rdata_no_space(s);
		state.bits >>= spare;
		for (unsigned i = 0; i < whole; i++)
			s->out[s->n++] = (uint8_t)(state.bits >> (8 * (whole - 1 - i)));
	}
	*octets = s->n - start;
	return ERR_OK;
}

void rdata_print_hex(struct rdata_print *p, const uint8_t *octets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char two[2] = { "0123456789ABCDEF"[octets[i] >> 4], "0123456789ABCDEF"[octets[i] & 15] };

		rdata_print_text(p, two, 2);
	}
}

void rdata_print_base64(struct rdata_print *p, const uint8_t *octets, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		size_t have = MIN(n - i, 3u);
		uint32_t bits = (uint32_t)octets[i] << 16 | (have > 1 ? (uint32_t)octets[i + 1] << 8 : 0) |
				(have > 2 ? octets[i + 2] : 0);
		char four[4] = { digits[bits >> 18], digits[bits >> 12 & 63], have > 1 ? digits[bits >> 6 & 63] : '=',
				 have > 2 ? digits[bits & 63] : '=' };

		rdata_print_text(p, four, 4);
	}
}

static enum err not_empty(struct rdata_scan *s, uint8_t flags, size_t octets, const char *what)
{
	return octets == 0 && !(flags & RDF_F_OPTIONAL) ? rdata_expected(s, ERR_SYNTAX, what) : ERR_OK;
}

static enum err hex_parse(struct rdata_scan *s, uint8_t flags)
{
	size_t octets = 0;
	enum err err = rdata_scan_hex(s, true, &octets);

	return err != ERR_OK ? err : not_empty(s, flags, octets, "hexadecimal digits");
}

static bool is_dash(const struct rdata_token *word) { return word->bytes == 1 && word->text[0] == '-'; }

static enum err base64_parse(struct rdata_scan *s, uint8_t flags)
{
	size_t octets = 0;
	enum err err;

	if (flags & RDF_F_DASH) {
		if (rdata_word(s) == NULL)
			return rdata_expected(s, ERR_SYNTAX, "base64, or -");
		if (is_dash(rdata_word(s))) {
			s->at++;
			return ERR_OK;
		}
	}
	err = rdata_scan_base64(s, true, &octets);
	return err != ERR_OK ? err : not_empty(s, flags, octets, "base64");
}

static size_t rest_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire;
	return left == 0 && !(flags & RDF_F_OPTIONAL) ? RDATA_MALFORMED : left;
}

static bool hex_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	if (bytes > 0)
		rdata_print_gap(p);
	rdata_print_hex(p, wire, bytes);
	return true;
}

static bool base64_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	if (bytes > 0)
		rdata_print_gap(p);
	rdata_print_base64(p, wire, bytes);
	return true;
}

/* Octets that a digest of a type has, for the types whose RFC says it; others have at least `least`. */
struct digest_size {
	uint8_t type, octets;
};
struct digest_sizes {
	size_t least, count;
	struct digest_size size[4];
};
static const struct digest_sizes ds_sizes = { 1,
					      4,
					      { { 1, 20 }, { 2, 32 }, { 3, 32 }, { 4, 48 } } }; /* RFC 4034, 4509, 5933, 6605 */
static const struct digest_sizes sshfp_sizes = { 1, 2, { { 1, 20 }, { 2, 32 } } };		/* RFC 4255, 6594 */
static const struct digest_sizes zonemd_sizes = { 12, 2, { { 1, 48 }, { 2, 64 } } };		/* RFC 8976 */

static bool digest_fits(const struct digest_sizes *sizes, uint8_t type, size_t octets)
{
	for (size_t i = 0; i < sizes->count; i++)
		if (sizes->size[i].type == type)
			return octets == sizes->size[i].octets;
	return octets >= sizes->least;
}

static enum err digest_parse(struct rdata_scan *s, const struct digest_sizes *sizes)
{
	uint8_t type = s->out[s->n - 1];
	size_t octets = 0;
	enum err err = rdata_scan_hex(s, true, &octets);

	if (err == ERR_OK && !digest_fits(sizes, type, octets))
		return rdata_expected(s, ERR_SYNTAX, "a hexadecimal digest of the length that its type has");
	return err;
}

static size_t digest_measure(const struct digest_sizes *sizes, const uint8_t *wire, size_t left)
{
	return digest_fits(sizes, wire[-1], left) ? left : RDATA_MALFORMED;
}

static enum err ds_digest_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return digest_parse(s, &ds_sizes);
}
static size_t ds_digest_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return digest_measure(&ds_sizes, wire, left);
}
static enum err sshfp_digest_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return digest_parse(s, &sshfp_sizes);
}
static size_t sshfp_digest_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return digest_measure(&sshfp_sizes, wire, left);
}
static enum err zonemd_digest_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return digest_parse(s, &zonemd_sizes);
}
static size_t zonemd_digest_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return digest_measure(&zonemd_sizes, wire, left);
}

/* NSEC3 salt. */
static enum err hex_l8_parse(struct rdata_scan *s, uint8_t flags)
{
	static const char what[] = "hexadecimal digits of at most 255 octets, or -";
	const struct rdata_token *word = rdata_word(s);
	size_t length_at = s->n, octets = 0;
	enum err err = rdata_append_u8(s, 0);

	(void)flags;
	if (err != ERR_OK)
		return err;
	if (word == NULL || word->bytes == 0)
		return rdata_expected(s, ERR_SYNTAX, what);
	if (is_dash(word)) {
		s->at++;
		return ERR_OK;
	}
	err = rdata_scan_hex(s, false, &octets);
	if (err != ERR_OK)
		return err;
	if (octets > UINT8_MAX) {
		s->at--;
		return rdata_expected(s, ERR_RANGE, what);
	}
	s->out[length_at] = (uint8_t)octets;
	return ERR_OK;
}

static bool hex_l8_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	if (bytes == 1)
		rdata_print_char(p, '-');
	rdata_print_hex(p, wire + 1, bytes - 1);
	return true;
}

/* RFC 5155 section 3.3: unpadded base32hex. */
static enum err base32hex_l8_parse(struct rdata_scan *s, uint8_t flags)
{
	static const char what[] = "base32hex of 1 to 255 octets";
	const struct rdata_token *word = rdata_word(s);
	size_t octets, bits = 0;
	uint32_t value = 0;
	uint8_t *out;

	(void)flags;
	/* Eight digits hold five octets; the bits that are left over must be fewer than a digit. */
	if (word == NULL || word->bytes == 0 || word->bytes > 408 || word->bytes * 5 % 8 >= 5)
		return rdata_expected(s, ERR_SYNTAX, what);
	octets = word->bytes * 5 / 8;
	out = rdata_room(s, 1 + octets);
	if (out == NULL)
		return rdata_no_space(s);
	*out++ = (uint8_t)octets;
	for (uint32_t i = 0; i < word->bytes; i++) {
		uint8_t digit = base32hex_digit(word->text[i]);

		if (digit == NO_DIGIT)
			return rdata_expected(s, ERR_SYNTAX, what);
		value = value << 5 | digit;
		bits += 5;
		if (bits >= 8) {
			bits -= 8;
			*out++ = (uint8_t)(value >> bits);
		}
	}
	if ((value & ((1u << bits) - 1)) != 0)
		return rdata_expected(s, ERR_SYNTAX, what);
	s->n += 1 + octets;
	s->at++;
	return ERR_OK;
}

static size_t base32hex_l8_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	return left > 0 && wire[0] == 0 ? RDATA_MALFORMED : rdata_l8_measure(wire, left, flags);
}

static bool base32hex_l8_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	uint32_t value = 0;
	unsigned bits = 0;

	(void)flags;
	rdata_print_gap(p);
	for (size_t i = 1; i < bytes; i++) {
		value = value << 8 | wire[i];
		for (bits += 8; bits >= 5; bits -= 5)
			rdata_print_char(p, "0123456789ABCDEFGHIJKLMNOPQRSTUV"[value >> (bits - 5) & 31]);
	}
	if (bits > 0)
		rdata_print_char(p, "0123456789ABCDEFGHIJKLMNOPQRSTUV"[value << (5 - bits) & 31]);
	return true;
}

static enum err base64_l16_parse(struct rdata_scan *s, uint8_t flags)
{
	uint32_t announced;
	size_t octets = 0;
	enum err err = rdata_scan_number(s, UINT16_MAX, "a length from 0 to 65535", &announced);

	(void)flags;
	if (err == ERR_OK)
		err = rdata_append_u16(s, (uint16_t)announced);
	if (err != ERR_OK || announced == 0)
		return err;
	err = rdata_scan_base64(s, false, &octets);
	if (err == ERR_OK && octets != announced) {
		s->at -= s->at > 0 ? 1 : 0;
		return rdata_expected(s, ERR_SYNTAX, "base64 of as many octets as the length in front says");
	}
	return err;
}

static size_t l16_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return left < 2 || left < 2u + load_be16(wire) ? RDATA_MALFORMED : 2u + load_be16(wire);
}

static bool base64_l16_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	rdata_print_gap(p);
	rdata_print_number(p, bytes - 2);
	return base64_print(p, wire + 2, bytes - 2, flags);
}

static enum err unknown_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return rdata_expected(s, ERR_SYNTAX, "\\# length hex: data of this type has no other form");
}

static size_t unknown_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left;
}

static bool unknown_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)p, (void)wire, (void)bytes, (void)flags;
	return false;
}

const struct rdata_field_ops rdata_ops_hex = { hex_parse, rest_measure, hex_print, NULL };
const struct rdata_field_ops rdata_ops_base64 = { base64_parse, rest_measure, base64_print, NULL };
const struct rdata_field_ops rdata_ops_ds_digest = { ds_digest_parse, ds_digest_measure, hex_print, NULL };
const struct rdata_field_ops rdata_ops_sshfp_digest = { sshfp_digest_parse, sshfp_digest_measure, hex_print, NULL };
const struct rdata_field_ops rdata_ops_zonemd_digest = { zonemd_digest_parse, zonemd_digest_measure, hex_print, NULL };
const struct rdata_field_ops rdata_ops_hex_l8 = { hex_l8_parse, rdata_l8_measure, hex_l8_print, NULL };
const struct rdata_field_ops rdata_ops_base32hex_l8 = { base32hex_l8_parse, base32hex_l8_measure, base32hex_l8_print, NULL };
const struct rdata_field_ops rdata_ops_base64_l16 = { base64_l16_parse, l16_measure, base64_l16_print, NULL };
const struct rdata_field_ops rdata_ops_unknown = { unknown_parse, unknown_measure, unknown_print, NULL };
