/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that hold an address in a form that other octets choose: APL, WKS, IPSECKEY, AMTRELAY, HIP, A6. */
#include "dns/number_inline.h"
#include "dns/rdata_field.h"

static void print_ipv4(struct rdata_print *p, const uint8_t *address)
{
	char text[RDATA_IPV4_TEXT_BYTES];

	rdata_print_text(p, text, rdata_ipv4_to_text(text, address));
}

static void print_ipv6(struct rdata_print *p, const uint8_t *address)
{
	char text[RDATA_IPV6_TEXT_BYTES];

	rdata_print_text(p, text, rdata_ipv6_to_text(text, address));
}

/* APL (RFC 3123): items of family, prefix length, negation with octet count, and the address without trailing zeros. */
enum { APL_IPV4 = 1, APL_IPV6 = 2 };
#define APL_FRONT_BYTES 4
#define APL_NEGATED 0x80

static enum err apl_item_parse(struct rdata_scan *s)
{
	static const char what[] = "1:address/prefix or 2:address/prefix, with ! in front to negate";
	const struct rdata_token *word = rdata_word(s);
	const char *text = word->text, *end = text + word->bytes, *slash;
	bool negated = text < end && text[0] == '!';
	uint8_t item[APL_FRONT_BYTES + 16] = { 0 };
	uint32_t prefix;
	unsigned octets;

	text += negated;
	if (end - text < 4 || (text[0] != '1' && text[0] != '2') || text[1] != ':')
		return rdata_expected(s, ERR_SYNTAX, what);
	item[1] = (uint8_t)(text[0] - '0');
	text += 2;
	slash = memchr(text, '/', (size_t)(end - text));
	octets = item[1] == APL_IPV4 ? 4 : 16;
	if (slash == NULL || !number_from_text(slash + 1, (size_t)(end - slash - 1), octets * 8, &prefix) ||
	    !(item[1] == APL_IPV4 ? rdata_ipv4_from_text(text, (size_t)(slash - text), item + APL_FRONT_BYTES)
				  : rdata_ipv6_from_text(text, (size_t)(slash - text), item + APL_FRONT_BYTES)))
		return rdata_expected(s, ERR_SYNTAX, what);
	while (octets > 0 && item[APL_FRONT_BYTES + octets - 1] == 0)
		octets--;
	item[2] = (uint8_t)prefix;
	item[3] = (uint8_t)(octets | (negated ? APL_NEGATED : 0));
	s->at++;
	return rdata_append(s, item, APL_FRONT_BYTES + octets);
}

static enum err apl_parse(struct rdata_scan *s, uint8_t flags)
{
	enum err err = ERR_OK;

	(void)flags;
	while (err == ERR_OK && s->at < s->count)
		err = apl_item_parse(s);
	return err;
}

static size_t apl_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t pos = 0;

	(void)flags;
	while (pos < left) {
		const uint8_t *item = wire + pos;

		if (left - pos < APL_FRONT_BYTES)
			return RDATA_MALFORMED;

		unsigned family = load_be16(item), octets = item[3] & ~(unsigned)APL_NEGATED;
		unsigned most = family == APL_IPV4 ? 4 : family == APL_IPV6 ? 16 : 127;

		if (octets > left - pos - APL_FRONT_BYTES || octets > most || (most < 127 && item[2] > most * 8) ||
		    (octets > 0 && item[APL_FRONT_BYTES + octets - 1] == 0))
			return RDATA_MALFORMED;
		pos += APL_FRONT_BYTES + octets;
	}
	return left;
}

static bool apl_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	for (size_t pos = 0; pos < bytes;) {
		unsigned family = load_be16(wire + pos), octets = wire[pos + 3] & ~(unsigned)APL_NEGATED;
		uint8_t address[16] = { 0 };

		if (family != APL_IPV4 && family != APL_IPV6)
			return false;
		memcpy(address, wire + pos + APL_FRONT_BYTES, octets);
		rdata_print_gap(p);
		if (wire[pos + 3] & APL_NEGATED)
			rdata_print_char(p, '!');
		rdata_print_text(p, family == APL_IPV4 ? "1:" : "2:", 2);
		if (family == APL_IPV4)
			print_ipv4(p, address);
		else
			print_ipv6(p, address);
		rdata_print_char(p, '/');
		rdata_print_number(p, wire[pos + 2]);
		pos += APL_FRONT_BYTES + octets;
	}
	return true;
}

/* WKS (RFC 1035 section 3.4.2): a protocol and one bit per port. The names are those of RFC 1010 and of everyday use. */
#define WKS_MAX_OCTETS 8192
struct known {
	const char *name;
	uint16_t number;
};
static const struct known protocols[] = { { "ICMP", 1 }, { "IGMP", 2 }, { "GGP", 3 }, { "TCP", 6 }, { "EGP", 8 }, { "UDP", 17 } };
static const struct known services[] = {
	{ "ECHO", 7 },	       { "DISCARD", 9 },  { "SYSTAT", 11 },   { "DAYTIME", 13 },    { "NETSTAT", 15 },
	{ "QOTD", 17 },	       { "CHARGEN", 19 }, { "FTP-DATA", 20 }, { "FTP", 21 },	    { "SSH", 22 },
	{ "TELNET", 23 },      { "SMTP", 25 },	  { "TIME", 37 },     { "NAMESERVER", 42 }, { "NICNAME", 43 },
	{ "WHOIS", 43 },       { "DOMAIN", 53 },  { "BOOTPS", 67 },   { "BOOTPC", 68 },	    { "TFTP", 69 },
	{ "GOPHER", 70 },      { "FINGER", 79 },  { "HTTP", 80 },     { "WWW", 80 },	    { "KERBEROS", 88 },
	{ "POP2", 109 },       { "POP3", 110 },	  { "SUNRPC", 111 },  { "AUTH", 113 },	    { "SFTP", 115 },
	{ "NNTP", 119 },       { "NTP", 123 },	  { "IMAP2", 143 },   { "IMAP", 143 },	    { "SNMP", 161 },
	{ "SNMP-TRAP", 162 },  { "BGP", 179 },	  { "IRC", 194 },     { "LDAP", 389 },	    { "HTTPS", 443 },
	{ "SUBMISSION", 587 }, { "IMAPS", 993 },
};

static bool known_from_text(const struct known *list, size_t count, const struct rdata_token *word, uint32_t max, uint32_t *out)
{
	if (number_from_text(word->text, word->bytes, max, out))
		return true;
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(list[i].name), same = 0;

		while (same < n && same < word->bytes && number_upper(word->text[same]) == list[i].name[same])
			same++;
		if (same == n && n == word->bytes) {
			*out = list[i].number;
			return true;
		}
	}
	return false;
}

static enum err wks_parse(struct rdata_scan *s, uint8_t flags)
{
	uint8_t bits[WKS_MAX_OCTETS] = { 0 };
	uint32_t number, octets = 0;
	enum err err;

	(void)flags;
	if (rdata_word(s) == NULL || !known_from_text(protocols, ARRAY_LEN(protocols), rdata_word(s), UINT8_MAX, &number))
		return rdata_expected(s, ERR_SYNTAX, "a protocol: tcp, udp or a number");
	s->at++;
	err = rdata_append_u8(s, (uint8_t)number);
	for (; s->at < s->count; s->at++) {
		if (!known_from_text(services, ARRAY_LEN(services), rdata_word(s), UINT16_MAX, &number))
			return rdata_expected(s, ERR_SYNTAX, "a port: a number or a well-known service");
		bits[number / 8] |= (uint8_t)(0x80 >> (number & 7));
		octets = MAX(octets, number / 8 + 1);
	}
	return err != ERR_OK ? err : rdata_append(s, bits, octets);
}

static size_t wks_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return left < 1 || left > 1 + WKS_MAX_OCTETS || (left > 1 && wire[left - 1] == 0) ? RDATA_MALFORMED : left;
}

static bool wks_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)flags;
	rdata_print_gap(p);
	rdata_print_number(p, wire[0]);
	for (size_t port = 0; port < (bytes - 1) * 8; port++) {
		if ((wire[1 + port / 8] & (0x80 >> (port & 7))) == 0)
			continue;
		rdata_print_gap(p);
		rdata_print_number(p, port);
	}
	return true;
}

/* What IPSECKEY (RFC 4025) calls gateway and AMTRELAY (RFC 8777) relay: nothing, an address or a name. */
enum endpoint_type { ENDPOINT_NONE, ENDPOINT_IPV4, ENDPOINT_IPV6, ENDPOINT_NAME, ENDPOINT_TYPES };

static enum err endpoint_parse(struct rdata_scan *s, enum endpoint_type type)
{
	const struct rdata_token *word = rdata_word(s);

	if (type == ENDPOINT_IPV4)
		return rdata_ops_ipv4.parse(s, 0);
	if (type == ENDPOINT_IPV6)
		return rdata_ops_ipv6.parse(s, 0);
	if (type == ENDPOINT_NAME)
		return rdata_ops_name.parse(s, 0);
	if (word == NULL || word->bytes != 1 || word->text[0] != '.')
		return rdata_expected(s, ERR_SYNTAX, "a single dot, as the type 0 in front says");
	s->at++;
	return ERR_OK;
}

/* RDATA_MALFORMED also for types that nobody defined. */
static size_t endpoint_measure(enum endpoint_type type, const uint8_t *wire, size_t left)
{
	switch (type) {
	case ENDPOINT_NONE: return 0;
	case ENDPOINT_IPV4: return rdata_ops_ipv4.measure(wire, left, 0);
	case ENDPOINT_IPV6: return rdata_ops_ipv6.measure(wire, left, 0);
	case ENDPOINT_NAME: return rdata_ops_name.measure(wire, left, 0);
	case ENDPOINT_TYPES: break;
	}
	return RDATA_MALFORMED;
}

static void endpoint_print(struct rdata_print *p, enum endpoint_type type, const uint8_t *wire)
{
	rdata_print_gap(p);
	if (type == ENDPOINT_IPV4)
		print_ipv4(p, wire);
	else if (type == ENDPOINT_IPV6)
		print_ipv6(p, wire);
	else if (type == ENDPOINT_NAME)
		rdata_print_name(p, wire);
	else
		rdata_print_char(p, '.');
}

static bool endpoint_next_name(enum endpoint_type type, size_t front, size_t bytes, size_t *pos, size_t *name_at,
			       size_t *name_bytes)
{
	if (type != ENDPOINT_NAME || *pos != 0)
		return false;
	*name_at = front;
	*name_bytes = bytes - front;
	*pos = bytes;
	return true;
}

/* Precedence, gateway type, algorithm, gateway. */
#define IPSECKEY_FRONT_BYTES 3

static enum err ipseckey_parse(struct rdata_scan *s, uint8_t flags)
{
	uint32_t precedence = 0, type = 0, algorithm = 0;
	enum err err = rdata_scan_number(s, UINT8_MAX, "a precedence from 0 to 255", &precedence);

	(void)flags;
	if (err == ERR_OK)
		err = rdata_scan_number(s, ENDPOINT_TYPES - 1, "a gateway type from 0 to 3", &type);
	if (err == ERR_OK)
		err = rdata_scan_number(s, UINT8_MAX, "an algorithm from 0 to 255", &algorithm);
	if (err == ERR_OK) {
		uint8_t front[IPSECKEY_FRONT_BYTES] = { (uint8_t)precedence, (uint8_t)type, (uint8_t)algorithm };

		err = rdata_append(s, front, sizeof front);
	}
	return err != ERR_OK ? err : endpoint_parse(s, type);
}

static size_t ipseckey_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t gateway;

	(void)flags;
	if (left < IPSECKEY_FRONT_BYTES || wire[1] >= ENDPOINT_TYPES)
		return RDATA_MALFORMED;
	gateway = endpoint_measure(wire[1], wire + IPSECKEY_FRONT_BYTES, left - IPSECKEY_FRONT_BYTES);
	return gateway == RDATA_MALFORMED ? RDATA_MALFORMED : IPSECKEY_FRONT_BYTES + gateway;
}

static bool ipseckey_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)bytes, (void)flags;
	for (unsigned i = 0; i < IPSECKEY_FRONT_BYTES; i++) {
		rdata_print_gap(p);
		rdata_print_number(p, wire[i]);
	}
	endpoint_print(p, wire[1], wire + IPSECKEY_FRONT_BYTES);
	return true;
}

static bool ipseckey_next_name(const uint8_t *wire, size_t bytes, size_t *pos, size_t *name_at, size_t *name_bytes)
{
	return endpoint_next_name(wire[1], IPSECKEY_FRONT_BYTES, bytes, pos, name_at, name_bytes);
}

/* Precedence, discovery-optional bit with the relay type, relay. */
#define AMTRELAY_FRONT_BYTES 2
#define AMTRELAY_DISCOVERY 0x80

static unsigned amtrelay_type(const uint8_t *wire) { return wire[1] & ~(unsigned)AMTRELAY_DISCOVERY; }

static enum err amtrelay_parse(struct rdata_scan *s, uint8_t flags)
{
	uint32_t precedence = 0, discovery = 0, type = 0;
	enum err err = rdata_scan_number(s, UINT8_MAX, "a precedence from 0 to 255", &precedence);

	(void)flags;
	if (err == ERR_OK)
		err = rdata_scan_number(s, 1, "the discovery-optional bit, 0 or 1", &discovery);
	if (err == ERR_OK)
		err = rdata_scan_number(s, ENDPOINT_TYPES - 1, "a relay type from 0 to 3", &type);
	if (err == ERR_OK) {
		uint8_t front[AMTRELAY_FRONT_BYTES] = { (uint8_t)precedence,
							(uint8_t)(discovery ? AMTRELAY_DISCOVERY | type : type) };

		err = rdata_append(s, front, sizeof front);
	}
	return err != ERR_OK ? err : endpoint_parse(s, type);
}

static size_t amtrelay_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t relay;

	(void)flags;
	if (left < AMTRELAY_FRONT_BYTES)
		return RDATA_MALFORMED;
	if (amtrelay_type(wire) >= ENDPOINT_TYPES) /* for the future: RFC 8777 section 4.2.3 */
		return left;
	relay = endpoint_measure(amtrelay_type(wire), wire + AMTRELAY_FRONT_BYTES, left - AMTRELAY_FRONT_BYTES);
	return relay == RDATA_MALFORMED ? RDATA_MALFORMED : AMTRELAY_FRONT_BYTES + relay;
}

static bool amtrelay_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	(void)bytes, (void)flags;
	if (amtrelay_type(wire) >= ENDPOINT_TYPES)
		return false;
	rdata_print_gap(p);
	rdata_print_number(p, wire[0]);
	rdata_print_text(p, wire[1] & AMTRELAY_DISCOVERY ? " 1 " : " 0 ", 3);
	rdata_print_number(p, amtrelay_type(wire));
	endpoint_print(p, amtrelay_type(wire), wire + AMTRELAY_FRONT_BYTES);
	return true;
}

static bool amtrelay_next_name(const uint8_t *wire, size_t bytes, size_t *pos, size_t *name_at, size_t *name_bytes)
{
	return endpoint_next_name(amtrelay_type(wire), AMTRELAY_FRONT_BYTES, bytes, pos, name_at, name_bytes);
}

/* HIP (RFC 8005): HIT length, algorithm, key length, HIT, key, rendezvous servers. */
#define HIP_FRONT_BYTES 4

static enum err hip_parse(struct rdata_scan *s, uint8_t flags)
{
	static const char hit_what[] = "a HIT of 1 to 255 octets in hexadecimal", key_what[] = "a public key in base64";
	uint8_t front[HIP_FRONT_BYTES] = { 0 };
	size_t start = s->n, hit = 0, key = 0;
	uint32_t algorithm = 0;
	enum err err = rdata_scan_number(s, UINT8_MAX, "an algorithm from 0 to 255", &algorithm);

	if (err == ERR_OK)
		err = rdata_append(s, front, sizeof front);
	if (err == ERR_OK)
		err = rdata_scan_hex(s, false, &hit);
	if (err == ERR_OK && (hit == 0 || hit > UINT8_MAX))
		return rdata_expected(s, ERR_SYNTAX, hit_what);
	if (err == ERR_OK)
		err = rdata_scan_base64(s, false, &key);
	if (err == ERR_OK && (key == 0 || key > UINT16_MAX))
		return rdata_expected(s, ERR_SYNTAX, key_what);
	if (err != ERR_OK)
		return err;
	s->out[start] = (uint8_t)hit;
	s->out[start + 1] = (uint8_t)algorithm;
	store_be16(s->out + start + 2, (uint16_t)key);
	while (err == ERR_OK && s->at < s->count)
		err = rdata_ops_name.parse(s, flags);
	return err;
}

static size_t hip_servers_at(const uint8_t *wire) { return HIP_FRONT_BYTES + (size_t)wire[0] + load_be16(wire + 2); }

static size_t hip_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t pos;

	if (left < HIP_FRONT_BYTES || wire[0] == 0 || load_be16(wire + 2) == 0)
		return RDATA_MALFORMED;
	pos = hip_servers_at(wire);
	if (pos > left)
		return RDATA_MALFORMED;
	while (pos < left) {
		size_t name = rdata_ops_name.measure(wire + pos, left - pos, flags);

		if (name == RDATA_MALFORMED)
			return RDATA_MALFORMED;
		pos += name;
	}
	return left;
}

static bool hip_next_name(const uint8_t *wire, size_t bytes, size_t *pos, size_t *name_at, size_t *name_bytes)
{
	size_t at = MAX(*pos, hip_servers_at(wire));

	if (at >= bytes)
		return false;
	*name_at = at;
	*name_bytes = name_wire_bytes(wire + at, bytes - at);
	*pos = at + *name_bytes;
	return true;
}

static bool hip_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	size_t pos = 0, name_at, name_bytes;

	(void)flags;
	rdata_print_gap(p);
	rdata_print_number(p, wire[1]);
	rdata_print_char(p, ' ');
	rdata_print_hex(p, wire + HIP_FRONT_BYTES, wire[0]);
	rdata_print_char(p, ' ');
	rdata_print_base64(p, wire + HIP_FRONT_BYTES + wire[0], load_be16(wire + 2));
	while (hip_next_name(wire, bytes, &pos, &name_at, &name_bytes)) {
		rdata_print_char(p, ' ');
		rdata_print_name(p, wire + name_at);
	}
	return true;
}

/* A6 (RFC 2874): prefix length, the address's octets behind the prefix, the prefix's name unless the length is 0. */
#define A6_MAX_PREFIX 128

static size_t a6_suffix_octets(uint8_t prefix) { return 16u - prefix / 8u; }

static enum err a6_parse(struct rdata_scan *s, uint8_t flags)
{
	uint8_t address[16] = { 0 };
	uint32_t prefix = 0;
	enum err err = rdata_scan_number(s, A6_MAX_PREFIX, "a prefix length from 0 to 128", &prefix);

	if (err == ERR_OK)
		err = rdata_append_u8(s, (uint8_t)prefix);
	if (err == ERR_OK && prefix < A6_MAX_PREFIX) {
		const struct rdata_token *word = rdata_word(s);
		size_t octets = a6_suffix_octets((uint8_t)prefix);

		if (word == NULL || !rdata_ipv6_from_text(word->text, word->bytes, address))
			return rdata_expected(s, ERR_SYNTAX, "an IPv6 address");
		s->at++;
		address[16 - octets] &= (uint8_t)(0xff >> (prefix & 7));
		err = rdata_append(s, address + 16 - octets, octets);
	}
	if (err == ERR_OK && prefix > 0)
		err = rdata_ops_name.parse(s, flags);
	return err;
}

static size_t a6_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	size_t suffix, name;

	if (left < 1 || wire[0] > A6_MAX_PREFIX)
		return RDATA_MALFORMED;
	suffix = a6_suffix_octets(wire[0]);
	if (left < 1 + suffix || (suffix > 0 && (wire[1] & ~(0xff >> (wire[0] & 7))) != 0))
		return RDATA_MALFORMED;
	if (wire[0] == 0)
		return 1 + suffix;
	name = rdata_ops_name.measure(wire + 1 + suffix, left - 1 - suffix, flags);
	return name == RDATA_MALFORMED ? RDATA_MALFORMED : 1 + suffix + name;
}

static bool a6_print(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags)
{
	size_t suffix = a6_suffix_octets(wire[0]);
	uint8_t address[16] = { 0 };

	(void)bytes, (void)flags;
	rdata_print_gap(p);
	rdata_print_number(p, wire[0]);
	if (suffix > 0) {
		memcpy(address + 16 - suffix, wire + 1, suffix);
		rdata_print_char(p, ' ');
		print_ipv6(p, address);
	}
	if (wire[0] > 0) {
		rdata_print_char(p, ' ');
		rdata_print_name(p, wire + 1 + suffix);
	}
	return true;
}

static bool a6_next_name(const uint8_t *wire, size_t bytes, size_t *pos, size_t *name_at, size_t *name_bytes)
{
	if (wire[0] == 0 || *pos != 0)
		return false;
	*name_at = 1 + a6_suffix_octets(wire[0]);
	*name_bytes = bytes - *name_at;
	*pos = bytes;
	return true;
}

const struct rdata_field_ops rdata_ops_apl = { apl_parse, apl_measure, apl_print, NULL };
const struct rdata_field_ops rdata_ops_wks = { wks_parse, wks_measure, wks_print, NULL };
const struct rdata_field_ops rdata_ops_ipseckey = { ipseckey_parse, ipseckey_measure, ipseckey_print, ipseckey_next_name };
const struct rdata_field_ops rdata_ops_amtrelay = { amtrelay_parse, amtrelay_measure, amtrelay_print, amtrelay_next_name };
const struct rdata_field_ops rdata_ops_hip = { hip_parse, hip_measure, hip_print, hip_next_name };
const struct rdata_field_ops rdata_ops_a6 = { a6_parse, a6_measure, a6_print, a6_next_name };
