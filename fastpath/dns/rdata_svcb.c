/* SPDX-License-Identifier: Apache-2.0 */
/* SvcParams of SVCB and HTTPS (RFC 9460): key, length and value, in strictly ascending order of keys.
 *
 * AliasMode (priority 0) is no case of its own here: senders should leave the parameters out, receivers ignore them
 * (section 2.4.2), so that data with them stays valid as long as the parameters are. */
#include "dns/escape_inline.h"
#include "dns/rdata_field.h"

enum svc_key { SVC_MANDATORY, SVC_ALPN, SVC_NO_DEFAULT_ALPN, SVC_PORT, SVC_IPV4HINT, SVC_ECH, SVC_IPV6HINT };
#define PARAM_FRONT_BYTES 4
#define ITEM_MAX_BYTES 64 /* of a list of addresses, numbers or keys */
#define ALPN_MAX_BYTES 255

/* A parameter's value in text: the octets between the quotes, if there are any. */
struct value {
	const char *text;
	size_t bytes, at;
};

/* What a key's value looks like. */
struct svc_kind {
	const char *name;
	bool (*valid)(const uint8_t *value, size_t n);
	/* Appends the value; NULL: the octets as they are. */
	enum err (*parse)(struct rdata_scan *s, struct value *value);
	/* Prints what stands behind "name="; NULL: in quotes, and the key by its number, which every server can read. */
	void (*print)(struct rdata_print *p, const uint8_t *value, size_t n);
};

static const struct svc_kind *svc_kind(uint16_t key);

static const char bad_value[] = "a parameter whose value its key can have";

/* Next item of a comma-separated list, unescaped. False at an item that is empty or too long, or a bad escape. */
static bool next_item(struct value *v, char item[static ITEM_MAX_BYTES], size_t *n)
{
	*n = 0;
	while (v->at < v->bytes) {
		uint8_t octet;

		if (escape_next(v->text, v->bytes, &v->at, &octet) != NULL)
			return false;
		if (octet == ',')
			return *n > 0 && v->at < v->bytes; /* a comma at the end announces an empty item */
		if (*n == ITEM_MAX_BYTES)
			return false;
		item[(*n)++] = (char)octet;
	}
	return *n > 0;
}

static enum err raw_parse(struct rdata_scan *s, struct value *v)
{
	while (v->at < v->bytes) {
		uint8_t octet;
		enum err err;

		if (escape_next(v->text, v->bytes, &v->at, &octet) != NULL)
			return rdata_expected(s, ERR_SYNTAX, bad_value);
		err = rdata_append_u8(s, octet);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

/* Calls `item` for every item of a list that has at least one. */
static enum err list_parse(struct rdata_scan *s, struct value *v,
			   enum err (*append)(struct rdata_scan *s, const char *item, size_t n))
{
	do {
		char item[ITEM_MAX_BYTES];
		size_t n;
		enum err err = next_item(v, item, &n) ? append(s, item, n) : rdata_expected(s, ERR_SYNTAX, bad_value);

		if (err != ERR_OK)
			return err;
	} while (v->at < v->bytes);
	return ERR_OK;
}

static bool key_from_text(const char *text, size_t n, uint16_t *key, bool *by_number);

static enum err key_append(struct rdata_scan *s, const char *item, size_t n)
{
	uint16_t key;
	bool by_number;

	if (!key_from_text(item, n, &key, &by_number))
		return rdata_expected(s, ERR_SYNTAX, "a list of keys behind mandatory=");
	return rdata_append_u16(s, key);
}

/* A list of keys is sorted here, since people may write it in any order. */
static enum err mandatory_parse(struct rdata_scan *s, struct value *v)
{
	size_t start = s->n;
	enum err err = list_parse(s, v, key_append);

	for (size_t i = start + 2; err == ERR_OK && i < s->n; i += 2) {
		uint16_t key = load_be16(s->out + i);
		size_t at = i;

		for (; at > start && load_be16(s->out + at - 2) > key; at -= 2)
			memcpy(s->out + at, s->out + at - 2, 2);
		store_be16(s->out + at, key);
	}
	return err;
}

static bool mandatory_valid(const uint8_t *value, size_t n)
{
	unsigned last = SVC_MANDATORY; /* which it must not list (section 8) */

	for (size_t i = 0; i + 2 <= n; i += 2) {
		if (load_be16(value + i) <= last)
			return false;
		last = load_be16(value + i);
	}
	return n > 0 && n % 2 == 0;
}

static void print_key(struct rdata_print *p, uint16_t key)
{
	const struct svc_kind *kind = svc_kind(key);

	if (kind != NULL && kind->print != NULL) {
		rdata_print_text(p, kind->name, strlen(kind->name));
		return;
	}
	rdata_print_text(p, "key", 3);
	rdata_print_number(p, key);
}

static void mandatory_print(struct rdata_print *p, const uint8_t *value, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		if (i > 0)
			rdata_print_char(p, ',');
		print_key(p, load_be16(value + i));
	}
}

/* The list's own escapes, \, and \\, lie below those of the text (appendix A.1). */
static enum err alpn_parse(struct rdata_scan *s, struct value *v)
{
	size_t length_at = s->n;
	enum err err = rdata_append_u8(s, 0);

	while (err == ERR_OK && v->at < v->bytes) {
		uint8_t octet;

		if (escape_next(v->text, v->bytes, &v->at, &octet) != NULL)
			return rdata_expected(s, ERR_SYNTAX, bad_value);
		if (octet == ',') {
			length_at = s->n;
			err = rdata_append_u8(s, 0);
			continue;
		}
		if (octet == '\\' && (v->at == v->bytes || escape_next(v->text, v->bytes, &v->at, &octet) != NULL ||
				      (octet != ',' && octet != '\\')))
			return rdata_expected(s, ERR_SYNTAX, "an alpn list in which only \\\\, and \\\\\\\\ are escaped");
		if (s->out[length_at] == ALPN_MAX_BYTES)
			return rdata_expected(s, ERR_RANGE, "protocols of at most 255 octets in alpn");
		err = rdata_append_u8(s, octet);
		if (err == ERR_OK)
			s->out[length_at]++;
	}
	return err;
}

static bool alpn_valid(const uint8_t *value, size_t n)
{
	for (size_t pos = 0; pos < n; pos += 1u + value[pos])
		if (value[pos] == 0 || value[pos] > n - pos - 1)
			return false;
	return n > 0;
}

static void alpn_print(struct rdata_print *p, const uint8_t *value, size_t n)
{
	rdata_print_char(p, '"');
	for (size_t pos = 0; pos < n; pos += 1u + value[pos]) {
		if (pos > 0)
			rdata_print_char(p, ',');
		for (size_t i = pos + 1; i <= pos + value[pos]; i++) {
			char escaped[ESCAPE_MAX_BYTES];

			if (value[i] <= ' ' || value[i] > '~') {
				rdata_print_text(p, escaped, escape_decimal(escaped, value[i]));
				continue;
			}
			if (value[i] == ',')
				rdata_print_text(p, "\\\\", 2);
			else if (value[i] == '\\')
				rdata_print_text(p, "\\\\\\", 3);
			else if (value[i] == '"')
				rdata_print_char(p, '\\');
			rdata_print_char(p, (char)value[i]);
		}
	}
	rdata_print_char(p, '"');
}

static bool empty_valid(const uint8_t *value, size_t n)
{
	(void)value;
	return n == 0;
}

static enum err number_append(struct rdata_scan *s, const char *item, size_t n)
{
	uint32_t number;

	if (!number_from_text(item, n, UINT16_MAX, &number))
		return rdata_expected(s, ERR_SYNTAX, bad_value);
	return rdata_append_u16(s, (uint16_t)number);
}
static enum err numbers_parse(struct rdata_scan *s, struct value *v) { return list_parse(s, v, number_append); }

static bool port_valid(const uint8_t *value, size_t n)
{
	(void)value;
	return n == 2;
}

static void port_print(struct rdata_print *p, const uint8_t *value, size_t n)
{
	(void)n;
	rdata_print_number(p, load_be16(value));
}

static enum err ipv4_append(struct rdata_scan *s, const char *item, size_t n)
{
	uint8_t address[4];

	if (!rdata_ipv4_from_text(item, n, address))
		return rdata_expected(s, ERR_SYNTAX, "a list of IPv4 addresses behind ipv4hint=");
	return rdata_append(s, address, sizeof address);
}
static enum err ipv4hint_parse(struct rdata_scan *s, struct value *v) { return list_parse(s, v, ipv4_append); }

static bool ipv4hint_valid(const uint8_t *value, size_t n)
{
	(void)value;
	return n > 0 && n % 4 == 0;
}

static void ipv4hint_print(struct rdata_print *p, const uint8_t *value, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		char text[RDATA_IPV4_TEXT_BYTES];

		if (i > 0)
			rdata_print_char(p, ',');
		rdata_print_text(p, text, rdata_ipv4_to_text(text, value + i));
	}
}

static enum err ipv6_append(struct rdata_scan *s, const char *item, size_t n)
{
	uint8_t address[16];

	if (!rdata_ipv6_from_text(item, n, address))
		return rdata_expected(s, ERR_SYNTAX, "a list of IPv6 addresses behind ipv6hint=");
	return rdata_append(s, address, sizeof address);
}
static enum err ipv6hint_parse(struct rdata_scan *s, struct value *v) { return list_parse(s, v, ipv6_append); }

static bool ipv6hint_valid(const uint8_t *value, size_t n)
{
	(void)value;
	return n > 0 && n % 16 == 0;
}

static void ipv6hint_print(struct rdata_print *p, const uint8_t *value, size_t n)
{
	for (size_t i = 0; i < n; i += 16) {
		char text[RDATA_IPV6_TEXT_BYTES];

		if (i > 0)
			rdata_print_char(p, ',');
		rdata_print_text(p, text, rdata_ipv6_to_text(text, value + i));
	}
}

/* Base64 needs no escapes; the word is scanned as if it stood alone. */
static enum err ech_parse(struct rdata_scan *s, struct value *v)
{
	struct rdata_token word = { .text = v->text, .bytes = (uint32_t)v->bytes };
	struct rdata_scan inner = { .token = &word, .count = 1, .out = s->out, .n = s->n, .max = s->max, .error = s->error };
	size_t octets = 0;
	enum err err = rdata_scan_base64(&inner, true, &octets);

	if (err != ERR_OK)
		return rdata_expected(s, err, "base64 behind ech=");
	s->n = inner.n;
	return ERR_OK;
}

static bool any_valid(const uint8_t *value, size_t n)
{
	(void)value, (void)n;
	return true;
}

/* RFC 9461 section 5: a relative URI template with the variable dns. */
static bool dohpath_valid(const uint8_t *value, size_t n)
{
	static const char variable[] = "{?dns";
	size_t length = sizeof variable - 1;

	for (size_t i = 1; n > 0 && value[0] == '/' && i + length < n; i++)
		if (memcmp(value + i, variable, length) == 0 && (value[i + length] == '}' || value[i + length] == ','))
			return true;
	return false;
}

/* Numbers of TLS named groups, none of them twice. */
static bool groups_valid(const uint8_t *value, size_t n)
{
	uint8_t seen[65536 / 8] = { 0 };

	for (size_t i = 0; i + 2 <= n; i += 2) {
		uint16_t group = load_be16(value + i);

		if (seen[group / 8] & (1u << (group & 7)))
			return false;
		seen[group / 8] |= (uint8_t)(1u << (group & 7));
	}
	return n > 0 && n % 2 == 0;
}

static const struct svc_kind kinds[] = {
	[SVC_MANDATORY] = { "mandatory", mandatory_valid, mandatory_parse, mandatory_print },
	[SVC_ALPN] = { "alpn", alpn_valid, alpn_parse, alpn_print },
	[SVC_NO_DEFAULT_ALPN] = { "no-default-alpn", empty_valid, NULL, rdata_print_quoted },
	[SVC_PORT] = { "port", port_valid, numbers_parse, port_print },
	[SVC_IPV4HINT] = { "ipv4hint", ipv4hint_valid, ipv4hint_parse, ipv4hint_print },
	[SVC_ECH] = { "ech", any_valid, ech_parse, rdata_print_base64 },
	[SVC_IPV6HINT] = { "ipv6hint", ipv6hint_valid, ipv6hint_parse, ipv6hint_print },
	[7] = { "dohpath", dohpath_valid, NULL, NULL },
	[8] = { "ohttp", empty_valid, NULL, NULL },
	[9] = { "tls-supported-groups", groups_valid, numbers_parse, NULL },
};

static const struct svc_kind *svc_kind(uint16_t key) { return key < ARRAY_LEN(kinds) ? &kinds[key] : NULL; }

/* A name in lower case (section 2.1) or keyNNN without leading zeros. */
static bool key_from_text(const char *text, size_t n, uint16_t *key, bool *by_number)
{
	uint32_t number;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, text, n) == 0) {
			*key = (uint16_t)i;
			*by_number = false;
			return true;
		}
	}
	if (n < 4 || memcmp(text, "key", 3) != 0 || (text[3] == '0' && n > 4) ||
	    !number_from_text(text + 3, n - 3, UINT16_MAX, &number))
		return false;
	*key = (uint16_t)number;
	*by_number = true;
	return true;
}

/* Splits key=value; false if the quotes are not those of one value. */
static bool split_word(const struct rdata_token *word, size_t *key_bytes, struct value *v)
{
	const char *equals = memchr(word->text, '=', word->bytes);

	*key_bytes = equals != NULL ? (size_t)(equals - word->text) : word->bytes;
	*v = (struct value){ equals != NULL ? equals + 1 : word->text, equals != NULL ? word->bytes - *key_bytes - 1 : 0, 0 };
	if (v->bytes == 0 || v->text[0] != '"')
		return !word->quoted;
	if (v->bytes < 2 || v->text[v->bytes - 1] != '"')
		return false;
	v->text++;
	v->bytes -= 2;
	return !word->quoted;
}

static void reverse(uint8_t *octets, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t keep = octets[i];

		octets[i] = octets[n - 1 - i];
		octets[n - 1 - i] = keep;
	}
}

/* Moves the parameter at `at`, the last one, to its place among the sorted ones from `first` on. False if its key is there. */
static bool insert_sorted(struct rdata_scan *s, size_t first, size_t at)
{
	uint16_t key = load_be16(s->out + at);
	size_t pos = first;

	while (pos < at && load_be16(s->out + pos) < key)
		pos += PARAM_FRONT_BYTES + load_be16(s->out + pos + 2);
	if (pos < at && load_be16(s->out + pos) == key)
		return false;
	reverse(s->out + pos, at - pos);
	reverse(s->out + at, s->n - at);
	reverse(s->out + pos, s->n - pos);
	return true;
}

static enum err param_parse(struct rdata_scan *s, size_t first)
{
	static const char what[] = "a service parameter: key=value or key=\"value\"";
	const struct rdata_token *word = rdata_word(s);
	size_t at = s->n, key_bytes, n;
	const struct svc_kind *kind;
	struct value v;
	uint16_t key;
	bool by_number;
	enum err err;

	if (!split_word(word, &key_bytes, &v) || !key_from_text(word->text, key_bytes, &key, &by_number))
		return rdata_expected(s, ERR_SYNTAX, what);
	kind = svc_kind(key);
	err = rdata_append_u16(s, key);
	if (err == ERR_OK)
		err = rdata_append_u16(s, 0);
	if (err == ERR_OK)
		err = kind != NULL && kind->parse != NULL && !by_number ? kind->parse(s, &v) : raw_parse(s, &v);
	if (err != ERR_OK)
		return err;
	n = s->n - at - PARAM_FRONT_BYTES;
	store_be16(s->out + at + 2, (uint16_t)n);
	if (kind != NULL && !kind->valid(s->out + at + PARAM_FRONT_BYTES, n))
		return rdata_expected(s, ERR_SYNTAX, bad_value);
	if (!insert_sorted(s, first, at))
		return rdata_expected(s, ERR_SYNTAX, "each service parameter at most once");
	s->at++;
	return ERR_OK;
}

/* Section 8: what mandatory lists is there. Section 7.1.1: no-default-alpn goes with alpn. The keys are sorted. */
static bool is_consistent(const uint8_t *wire, size_t n)
{
	const uint8_t *listed = NULL, *listed_end = NULL;
	bool has_alpn = false;

	for (size_t pos = 0; pos < n; pos += PARAM_FRONT_BYTES + load_be16(wire + pos + 2)) {
		uint16_t key = load_be16(wire + pos);

		if (key == SVC_MANDATORY) {
			listed = wire + pos + PARAM_FRONT_BYTES;
			listed_end = listed + load_be16(wire + pos + 2);
		} else if (listed != listed_end && load_be16(listed) == key) {
			listed += 2;
		}
		has_alpn |= key == SVC_ALPN;
		if (key == SVC_NO_DEFAULT_ALPN && !has_alpn)
			return false;
	}
	return listed == listed_end;
}

static enum err svcparams_parse(struct rdata_scan *s, uint8_t flags)
{
	size_t first = s->n;

	(void)flags;
	while (s->at < s->count) {
		enum err err = param_parse(s, first);

		if (err != ERR_OK)
			return err;
	}
	if (!is_consistent(s->out + first, s->n - first))
		return rdata_expected(s, ERR_SYNTAX, "all parameters that mandatory= lists, and alpn= beside no-default-alpn");
	return ERR_OK;
}

static size_t svcparams_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	long last = -1;

	(void)flags;
	for (size_t pos = 0; pos < left;) {
		const struct svc_kind *kind;
		size_t n;

		if (left - pos < PARAM_FRONT_BYTES)
			return RDATA_MALFORMED;
		n = load_be16(wire + pos + 2);
		kind = svc_kind(load_be16(wire + pos));
		if (n > left - pos - PARAM_FRONT_BYTES || load_be16(wire + pos) <= last ||
		    (kind != NULL && !kind->valid(wire + pos + PARAM_FRONT_BYTES, n)))
			return RDATA_MALFORMED;
		last = load_be16(wire + pos);
		pos += PARAM_FRONT_BYTES + n;
	}
	return is_consistent(wire, left) ? left : RDATA_MALFORMED;
}

static bool svcparams_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	for (size_t pos = 0; pos < bytes;) {
		uint16_t key = load_be16(wire + pos), n = load_be16(wire + pos + 2);
		const struct svc_kind *kind = svc_kind(key);

		rdata_print_gap(p);
		print_key(p, key);
		if (n > 0) {
			rdata_print_char(p, '=');
			(kind != NULL && kind->print != NULL ? kind->print
							     : rdata_print_quoted)(p, wire + pos + PARAM_FRONT_BYTES, n);
		}
		pos += PARAM_FRONT_BYTES + n;
	}
	return true;
}

const struct rdata_field_ops rdata_ops_svcparams = { svcparams_parse, svcparams_measure, svcparams_print, NULL };
