/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of fixed width whose text is a number, a time or a mnemonic. */
#include "dns/number_inline.h"
#include "dns/rdata_field.h"

struct mnemonic {
	const char *text;
	uint16_t value;
};

/* RFC 4034 appendix A.1 and IANA's registry; the first text of a value is printed. */
static const struct mnemonic algorithms[] = {
	{ "RSAMD5", 1 },
	{ "DH", 2 },
	{ "DSA", 3 },
	{ "RSASHA1", 5 },
	{ "NSEC3DSA", 6 },
	{ "DSA-NSEC3-SHA1", 6 },
	{ "NSEC3RSASHA1", 7 },
	{ "RSASHA1-NSEC3-SHA1", 7 },
	{ "RSASHA256", 8 },
	{ "RSASHA512", 10 },
	{ "ECCGOST", 12 },
	{ "ECC-GOST", 12 },
	{ "ECDSAP256SHA256", 13 },
	{ "ECDSA256", 13 },
	{ "ECDSAP384SHA384", 14 },
	{ "ECDSA384", 14 },
	{ "ED25519", 15 },
	{ "ED448", 16 },
	{ "INDIRECT", 252 },
	{ "PRIVATEDNS", 253 },
	{ "PRIVATEOID", 254 },
};
static const struct mnemonic cert_types[] = {
	/* RFC 4398 section 2.1 */
	{ "PKIX", 1 }, { "SPKI", 2 },	{ "PGP", 3 },	  { "IPKIX", 4 }, { "ISPKI", 5 },
	{ "IPGP", 6 }, { "ACPKIX", 7 }, { "IACPKIX", 8 }, { "URI", 253 }, { "OID", 254 },
};
static const struct mnemonic dsync_schemes[] = { { "NOTIFY", 1 } }; /* RFC 9859 section 2.2 */

static bool is_mnemonic(const struct rdata_token *word, const char *upper)
{
	size_t i = 0;

	for (; i < word->bytes && upper[i] != '\0'; i++)
		if (number_upper(word->text[i]) != upper[i])
			return false;
	return i == word->bytes && upper[i] == '\0';
}

static bool find_mnemonic(const struct mnemonic *list, size_t count, const struct rdata_token *word, uint16_t *value)
{
	for (size_t i = 0; i < count; i++) {
		if (is_mnemonic(word, list[i].text)) {
			*value = list[i].value;
			return true;
		}
	}
	return false;
}

enum err rdata_scan_number(struct rdata_scan *s, uint32_t max, const char *what, uint32_t *out)
{
	const struct rdata_token *word = rdata_word(s);

	if (word == NULL)
		return rdata_expected(s, ERR_SYNTAX, what);
	if (!number_from_text(word->text, word->bytes, max, out)) {
		bool digits = word->bytes > 0;

		for (uint32_t i = 0; i < word->bytes; i++)
			digits &= number_is_digit(word->text[i]);
		return rdata_expected(s, digits ? ERR_RANGE : ERR_SYNTAX, what);
	}
	s->at++;
	return ERR_OK;
}

enum err rdata_append(struct rdata_scan *s, const void *octets, size_t n)
{
	uint8_t *room = rdata_room(s, n);

	if (room == NULL)
		return rdata_no_space(s);
	if (n > 0)
		memcpy(room, octets, n);
	s->n += n;
	return ERR_OK;
}

enum err rdata_append_u8(struct rdata_scan *s, uint8_t value) { return rdata_append(s, &value, 1); }

enum err rdata_append_u16(struct rdata_scan *s, uint16_t value)
{
	uint8_t octets[2];

	store_be16(octets, value);
	return rdata_append(s, octets, sizeof octets);
}

static enum err append_u32(struct rdata_scan *s, uint32_t value)
{
	uint8_t octets[4];

	store_be32(octets, value);
	return rdata_append(s, octets, sizeof octets);
}

void rdata_print_number(struct rdata_print *p, uint64_t value)
{
	char digits[NUMBER_TEXT_MAX_BYTES];

	rdata_print_text(p, digits, number_to_text(digits, value));
}

static enum err u8_parse(struct rdata_scan *s, uint8_t flags)
{
	uint32_t value = 0;
	enum err err = rdata_scan_number(s, UINT8_MAX, "a number from 0 to 255", &value);

	(void)flags;
	return err != ERR_OK ? err : rdata_append_u8(s, (uint8_t)value);
}

static enum err u16_parse(struct rdata_scan *s, uint8_t flags)
{
	uint32_t value = 0;
	enum err err = rdata_scan_number(s, UINT16_MAX, "a number from 0 to 65535", &value);

	(void)flags;
	return err != ERR_OK ? err : rdata_append_u16(s, (uint16_t)value);
}

static enum err u32_parse(struct rdata_scan *s, uint8_t flags)
{
	uint32_t value = 0;
	enum err err = rdata_scan_number(s, UINT32_MAX, "a number from 0 to 4294967295", &value);

	(void)flags;
	return err != ERR_OK ? err : append_u32(s, value);
}

static enum err u48_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint8_t octets[8];
	uint64_t value = 0;
	bool valid = word != NULL && word->bytes > 0 && word->bytes <= 15;

	(void)flags;
	for (uint32_t i = 0; valid && i < word->bytes; i++) {
		valid = number_is_digit(word->text[i]);
		value = value * 10 + (uint64_t)(word->text[i] - '0');
	}
	if (!valid || value >> 48 != 0)
		return rdata_expected(s, ERR_SYNTAX, "a number from 0 to 281474976710655");
	s->at++;
	store_be64(octets, value);
	return rdata_append(s, octets + 2, 6);
}

static enum err ttl_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint32_t value = 0;

	(void)flags;
	if (word == NULL || !number_ttl_from_text(word->text, word->bytes, UINT32_MAX, &value))
		return rdata_expected(s, ERR_SYNTAX, "a time in seconds or with units such as 1h30m");
	s->at++;
	return append_u32(s, value);
}

static size_t measure_1(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 1 ? RDATA_MALFORMED : 1;
}
static size_t measure_2(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 2 ? RDATA_MALFORMED : 2;
}
static size_t measure_4(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 4 ? RDATA_MALFORMED : 4;
}
static size_t measure_6(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)wire, (void)flags;
	return left < 6 ? RDATA_MALFORMED : 6;
}

static bool number_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	uint64_t value = 0;

	(void)flags;
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | wire[i];
	rdata_print_gap(p);
	rdata_print_number(p, value);
	return true;
}

/* Days from 1970-01-01 to the first of a month, in the proleptic Gregorian calendar, counted in years that start in March. */
static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = y / 400, year_of_era = y % 400;
	int64_t day_of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void civil_from_days(int64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	int64_t z = days + 719468, era = z / 146097, day_of_era = z % 146097;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t shifted = (5 * day_of_year + 2) / 153;

	*day = (unsigned)(day_of_year - (153 * shifted + 2) / 5 + 1);
	*month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
	*year = (unsigned)(year_of_era + era * 400 + (*month <= 2 ? 1 : 0));
}

static unsigned digits_value(const char *text, unsigned n)
{
	unsigned value = 0;

	for (unsigned i = 0; i < n; i++)
		value = value * 10 + (unsigned)(text[i] - '0');
	return value;
}

/* YYYYMMDDHHMMSS. The 32 bits are a serial number (RFC 4034 section 3.1.5): years around 1970 to 2106 are taken modulo 2^32. */
static bool time_from_text(const char *text, uint32_t *out)
{
	static const uint8_t month_days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	unsigned year = digits_value(text, 4), month = digits_value(text + 4, 2), day = digits_value(text + 6, 2);
	unsigned hour = digits_value(text + 8, 2), minute = digits_value(text + 10, 2), second = digits_value(text + 12, 2);
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	int64_t seconds;

	if (month < 1 || month > 12 || day < 1 || day > month_days[month - 1] + (month == 2 && leap ? 1u : 0u) || hour > 23 ||
	    minute > 59 || second > 60)
		return false;
	seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	if (seconds < INT32_MIN || seconds > UINT32_MAX)
		return false;
	*out = (uint32_t)seconds;
	return true;
}

static enum err time_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint32_t value;
	bool digits = word != NULL;

	(void)flags;
	for (uint32_t i = 0; digits && i < word->bytes; i++)
		digits = number_is_digit(word->text[i]);
	if (!digits || !(word->bytes == 14 ? time_from_text(word->text, &value)
					   : word->bytes <= 10 && number_from_text(word->text, word->bytes, UINT32_MAX, &value)))
		return rdata_expected(s, digits ? ERR_RANGE : ERR_SYNTAX, "a time YYYYMMDDHHMMSS, or seconds since 1970");
	s->at++;
	return append_u32(s, value);
}

static bool time_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	uint32_t value = load_be32(wire), of_day = value % 86400;
	unsigned part[6]; /* year, month, day, hour, minute, second */

	(void)bytes, (void)flags;
	civil_from_days(value / 86400, &part[0], &part[1], &part[2]);
	part[3] = of_day / 3600;
	part[4] = of_day / 60 % 60;
	part[5] = of_day % 60;
	rdata_print_gap(p);
	rdata_print_number(p, part[0]); /* 1970 to 2106: four digits */
	for (unsigned i = 1; i < 6; i++) {
		char two[2] = { (char)('0' + part[i] / 10), (char)('0' + part[i] % 10) };

		rdata_print_text(p, two, 2);
	}
	return true;
}

static enum err type_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);
	uint32_t number;
	uint16_t type;

	(void)flags;
	if (word != NULL && number_from_text(word->text, word->bytes, UINT16_MAX, &number))
		type = (uint16_t)number;
	else if (word == NULL || !rr_type_from_text(word->text, word->bytes, &type))
		return rdata_expected(s, ERR_SYNTAX, "a record type");
	s->at++;
	return rdata_append_u16(s, type);
}

static bool type_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	char text[16];

	(void)bytes, (void)flags;
	rdata_print_gap(p);
	rdata_print_text(p, text, rr_type_to_text(text, load_be16(wire)));
	return true;
}

/* A mnemonic of the list or a number. */
static enum err listed_parse(struct rdata_scan *s, const struct mnemonic *list, size_t count, bool wide, const char *what)
{
	const struct rdata_token *word = rdata_word(s);
	uint32_t number;
	uint16_t value;

	if (word != NULL && number_from_text(word->text, word->bytes, wide ? UINT16_MAX : UINT8_MAX, &number))
		value = (uint16_t)number;
	else if (word == NULL || !find_mnemonic(list, count, word, &value))
		return rdata_expected(s, ERR_SYNTAX, what);
	s->at++;
	return wide ? rdata_append_u16(s, value) : rdata_append_u8(s, (uint8_t)value);
}

static bool listed_print(struct rdata_print *p, const struct mnemonic *list, size_t count, uint16_t value)
{
	rdata_print_gap(p);
	for (size_t i = 0; i < count; i++) {
		if (list[i].value == value) {
			rdata_print_text(p, list[i].text, strlen(list[i].text));
			return true;
		}
	}
	rdata_print_number(p, value);
	return true;
}

static enum err algorithm_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return listed_parse(s, algorithms, ARRAY_LEN(algorithms), false, "a DNSSEC algorithm, by number or mnemonic");
}

static bool algorithm_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	if (flags & RDF_F_MNEMONIC)
		return listed_print(p, algorithms, ARRAY_LEN(algorithms), wire[0]);
	return number_print(p, wire, bytes, flags);
}

static enum err cert_type_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return listed_parse(s, cert_types, ARRAY_LEN(cert_types), true, "a certificate type, by number or mnemonic");
}

static bool cert_type_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)bytes, (void)flags;
	return listed_print(p, cert_types, ARRAY_LEN(cert_types), load_be16(wire));
}

static enum err dsync_scheme_parse(struct rdata_scan *s, uint8_t flags)
{
	(void)flags;
	return listed_parse(s, dsync_schemes, ARRAY_LEN(dsync_schemes), false, "a DSYNC scheme: NOTIFY or a number");
}

static bool dsync_scheme_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)bytes, (void)flags;
	return listed_print(p, dsync_schemes, ARRAY_LEN(dsync_schemes), wire[0]);
}

#define RCODES_NAMED 24 /* rcode_text knows them below this */

static bool rcode_is_named(unsigned rcode)
{
	return rcode < RCODES_NAMED && strcmp(rcode_text(rcode), rcode_text(UINT16_MAX)) != 0;
}

static enum err rcode_parse(struct rdata_scan *s, uint8_t flags)
{
	const struct rdata_token *word = rdata_word(s);

	(void)flags;
	for (uint16_t i = 0; word != NULL && i < RCODES_NAMED; i++) {
		if (rcode_is_named(i) && is_mnemonic(word, rcode_text(i))) {
			s->at++;
			return rdata_append_u16(s, i);
		}
	}
	return listed_parse(s, NULL, 0, true, "an error code, by number or mnemonic");
}

static bool rcode_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	unsigned rcode = load_be16(wire);

	if (!rcode_is_named(rcode))
		return number_print(p, wire, bytes, flags);
	rdata_print_gap(p);
	rdata_print_text(p, rcode_text(rcode), strlen(rcode_text(rcode)));
	return true;
}

const struct rdata_field_ops rdata_ops_u8 = { u8_parse, measure_1, number_print, NULL };
const struct rdata_field_ops rdata_ops_u16 = { u16_parse, measure_2, number_print, NULL };
const struct rdata_field_ops rdata_ops_u32 = { u32_parse, measure_4, number_print, NULL };
const struct rdata_field_ops rdata_ops_u48 = { u48_parse, measure_6, number_print, NULL };
const struct rdata_field_ops rdata_ops_ttl = { ttl_parse, measure_4, number_print, NULL };
const struct rdata_field_ops rdata_ops_time = { time_parse, measure_4, time_print, NULL };
const struct rdata_field_ops rdata_ops_type = { type_parse, measure_2, type_print, NULL };
const struct rdata_field_ops rdata_ops_algorithm = { algorithm_parse, measure_1, algorithm_print, NULL };
const struct rdata_field_ops rdata_ops_cert_type = { cert_type_parse, measure_2, cert_type_print, NULL };
const struct rdata_field_ops rdata_ops_dsync_scheme = { dsync_scheme_parse, measure_1, dsync_scheme_print, NULL };
const struct rdata_field_ops rdata_ops_rcode = { rcode_parse, measure_2, rcode_print, NULL };
