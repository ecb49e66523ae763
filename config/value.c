/* SPDX-License-Identifier: Apache-2.0 */
#include "config/value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#define NEAREST_MAX_BYTES 48 /* longer words have no nearest one */

struct unit {
	const char *text;
	uint64_t factor;
};
static const struct unit size_units[] = {
	{ "", 1 },
	{ "K", 1ull << 10 },
	{ "M", 1ull << 20 },
	{ "G", 1ull << 30 },
	{ "T", 1ull << 40 },
	{ "KiB", 1ull << 10 },
	{ "MiB", 1ull << 20 },
	{ "GiB", 1ull << 30 },
	{ "TiB", 1ull << 40 },
};
static const struct unit duration_units[] = {
	{ "us", 1000 },	      { "ms", 1000000 },      { "s", 1000000000 },
	{ "m", 60000000000 }, { "h", 3600000000000 }, { "d", 86400000000000 },
};

bool value_bool(const char *text, bool *out)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*out = i & 1;
			return true;
		}
	}
	return false;
}

/* Digits at *text, which moves behind them. */
static bool take_count(const char **text, uint64_t *out)
{
	const char *p = *text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
		return false; /* no leading zeros: YAML 1.1 reads them as octal, people do not */
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return false;
	}
	*text = p;
	*out = value;
	return true;
}

bool value_count(const char *text, uint64_t *out)
{
	uint64_t value;

	if (!take_count(&text, &value) || *text)
		return false;
	*out = value;
	return true;
}

static bool with_unit(const char *text, const struct unit *units, size_t unit_count, uint64_t *out)
{
	uint64_t value;

	if (!take_count(&text, &value))
		return false;
	while (*text == ' ')
		text++;
	for (size_t i = 0; i < unit_count; i++) {
		if (strcasecmp(text, units[i].text) == 0)
			return !__builtin_mul_overflow(value, units[i].factor, out);
	}
	return false;
}

bool value_size(const char *text, uint64_t *out_bytes)
{
	uint64_t bytes;

	if (!with_unit(text, size_units, ARRAY_LEN(size_units), &bytes))
		return false;
	*out_bytes = bytes;
	return true;
}

bool value_duration(const char *text, uint64_t *out_ns)
{
	uint64_t ns = 0;

	if (strcmp(text, "0") != 0 && !with_unit(text, duration_units, ARRAY_LEN(duration_units), &ns))
		return false;
	*out_ns = ns;
	return true;
}

void value_size_text(char out[static VALUE_TEXT_BYTES], uint64_t bytes)
{
	size_t best = 0;

	for (size_t i = 1; i <= 4; i++) {
		if (bytes && bytes % size_units[i].factor == 0)
			best = i;
	}
	snprintf(out, VALUE_TEXT_BYTES, "%" PRIu64 "%s", bytes / size_units[best].factor, size_units[best].text);
}

void value_duration_text(char out[static VALUE_TEXT_BYTES], uint64_t ns)
{
	size_t best = 0;

	for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
		if (ns % duration_units[i].factor == 0)
			best = i;
	}
	if (ns == 0)
		snprintf(out, VALUE_TEXT_BYTES, "0");
	else
		snprintf(out, VALUE_TEXT_BYTES, "%" PRIu64 "%s", ns / duration_units[best].factor, duration_units[best].text);
}

static bool split_port(const char *text, char host[static INET6_ADDRSTRLEN], uint64_t *port, const char **why)
{
	const char *end = text + strlen(text), *colon = strchr(text, ':');

	if (*text == '[') {
		text++;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':')) {
			*why = "the bracket is not closed, or something else than a port follows it";
			return false;
		}
		colon = end[1] ? end + 1 : NULL;
	} else if (colon && strchr(colon + 1, ':')) {
		colon = NULL; /* IPv6 without a port */
	} else if (colon) {
		end = colon;
	}
	if (colon && (!value_count(colon + 1, port) || *port < 1 || *port > 65535)) {
		*why = "the port must be a number from 1 to 65535";
		return false;
	}
	if ((size_t)(end - text) >= INET6_ADDRSTRLEN) {
		*why = "it is too long";
		return false;
	}
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	return true;
}

bool value_address(const char *text, uint16_t default_port, struct config_address *out, const char **why)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char host[INET6_ADDRSTRLEN];
	struct config_address a = *out;
	uint64_t port = default_port;

	if (!split_port(text, host, &port, why))
		return false;
	memset(a.address, 0, sizeof a.address);
	a.port = (uint16_t)port;
	if (*text != '[' && inet_pton(AF_INET, host, a.address) == 1) {
		a.family = 4;
	} else if (inet_pton(AF_INET6, host, a.address) == 1) {
		a.family = 6;
	} else {
		*why = strchr(host, '%') ? "scopes (%interface) are not supported"
					 : "expected an IPv4 or IPv6 address, such as 10.0.0.1, 10.0.0.1:5300, 2001:db8::1 or "
					   "[2001:db8::1]:5300";
		return false;
	}
	if (a.family == 6 && !memcmp(a.address, mapped, sizeof mapped)) {
		*why = "an IPv4-mapped address; write the IPv4 address";
		return false;
	}
	if (a.family == 4 ? a.address[0] >= 224 : a.address[0] == 0xff) {
		*why = "a multicast, reserved or broadcast address";
		return false;
	}
	inet_ntop(a.family == 4 ? AF_INET : AF_INET6, a.address, host, sizeof host);
	snprintf(a.text, sizeof a.text, a.family == 4 ? "%s:%u" : "[%s]:%u", host, (unsigned)a.port);
	*out = a;
	return true;
}

bool value_prefix(const char *text, struct config_prefix *out, const char **why)
{
	struct config_prefix p = { .place = out->place };
	const char *slash = strchr(text, '/');
	size_t host_bytes = slash ? (size_t)(slash - text) : strlen(text);
	char host[INET6_ADDRSTRLEN];
	uint64_t bits;

	*why = "expected an IPv4 or IPv6 prefix, such as 10.0.0.0/8 or 2001:db8::/32";
	if (host_bytes >= sizeof host)
		return false;
	memcpy(host, text, host_bytes);
	host[host_bytes] = '\0';
	if (inet_pton(AF_INET, host, p.address) == 1)
		p.family = 4;
	else if (inet_pton(AF_INET6, host, p.address) == 1)
		p.family = 6;
	else
		return false;
	bits = p.family == 4 ? 32 : 128;
	if (slash && (!value_count(slash + 1, &bits) || bits > (p.family == 4 ? 32 : 128))) {
		*why = p.family == 4 ? "the length must be a number from 0 to 32" : "the length must be a number from 0 to 128";
		return false;
	}
	for (uint64_t i = bits; i < 128; i++) {
		if (p.address[i / 8] >> (7 - i % 8) & 1) {
			*why = "the address has bits set behind the length";
			return false;
		}
	}
	p.bits = (uint8_t)bits;
	*out = p;
	return true;
}

/* Base64 (RFC 4648) of exactly 32 octets: 43 characters and one to fill. */
static bool read_pin(const char *text, uint8_t out[static 32])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t octets[33];
	uint32_t bits = 0;

	if (strlen(text) != 44 || text[43] != '=')
		return false;
	for (size_t i = 0; i < 44; i++) {
		const char *digit = i < 43 ? strchr(digits, text[i]) : digits;
		if (!digit)
			return false;
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (i % 4 == 3) {
			size_t at = i / 4 * 3;
			octets[at] = (uint8_t)(bits >> 16);
			octets[at + 1] = (uint8_t)(bits >> 8);
			octets[at + 2] = (uint8_t)bits;
		}
	}
	if (octets[32] != 0) /* bits that are not part of it */
		return false;
	memcpy(out, octets, 32);
	return true;
}

/* Labels of letters, digits, hyphens and underscores: what certificates hold. */
static bool is_host_name(const char *text)
{
	size_t label = 0, bytes = strlen(text);

	if (bytes == 0 || bytes > 253)
		return false;
	for (; *text; text++) {
		bool is_dot = *text == '.';
		if (is_dot ? label == 0 : !(isalnum((unsigned char)*text) || *text == '-' || *text == '_'))
			return false;
		label = is_dot ? 0 : label + 1;
		if (label > 63)
			return false;
	}
	return label > 0;
}

static bool read_authentication(const char *text, struct config_upstream *u, const char **auth_name, const char **why)
{
	static const char pin[] = "sha256/";

	*why = "over TLS it needs a certificate's name or a pin: tls://ADDRESS#NAME or tls://ADDRESS#sha256/BASE64";
	if (!text || !*text)
		return false;
	if (strncmp(text, pin, sizeof pin - 1) == 0) {
		*why = "a pin is the SHA-256 of a public key (SPKI): 44 characters of Base64";
		u->has_pin = read_pin(text + sizeof pin - 1, u->pin);
		return u->has_pin;
	}
	*why = "a certificate's name is letters, digits, hyphens and dots";
	*auth_name = text;
	return is_host_name(text);
}

bool value_upstream(const char *text, struct config_upstream *out, const char **auth_name, const char **why)
{
	static const char scheme[] = "tls://";
	static const uint8_t unspecified[16];
	struct config_upstream u = { .place = out->place, .auth_name = out->auth_name };
	const char *name = NULL, *rest, *end;
	char address[80];

	u.is_tls = strncasecmp(text, scheme, sizeof scheme - 1) == 0;
	rest = u.is_tls ? text + sizeof scheme - 1 : text;
	end = strchrnul(rest, '#');
	if (!u.is_tls && (*end || strstr(text, "://"))) {
		*why = *end ? "a name or pin is for TLS: tls://ADDRESS#NAME"
			    : "expected ADDRESS, ADDRESS:PORT or tls://ADDRESS#NAME";
		return false;
	}
	if ((size_t)(end - rest) >= sizeof address) {
		*why = "the address is too long";
		return false;
	}
	memcpy(address, rest, (size_t)(end - rest));
	address[end - rest] = '\0';
	if (!value_address(address, u.is_tls ? 853 : 53, &u.address, why))
		return false;
	if (memcmp(u.address.address, unspecified, sizeof unspecified) == 0) {
		*why = "no server has the unspecified address";
		return false;
	}
	if (u.is_tls && !read_authentication(*end ? end + 1 : NULL, &u, &name, why))
		return false;
	*out = u;
	*auth_name = name;
	return true;
}

static bool add_cpu(unsigned cpus[static CONFIG_MAX_CPUS], size_t *count, unsigned cpu, const char **why)
{
	for (size_t i = 0; i < *count; i++) {
		if (cpus[i] == cpu) {
			*why = "a CPU is named twice";
			return false;
		}
	}
	if (*count == CONFIG_MAX_CPUS) {
		*why = "too many CPUs";
		return false;
	}
	cpus[(*count)++] = cpu;
	return true;
}

bool value_cpus(const char *text, unsigned cpus[static CONFIG_MAX_CPUS], size_t *count, const char **why)
{
	for (;;) {
		uint64_t first = 0, last;
		while (*text == ' ')
			text++;
		bool ok = take_count(&text, &first);
		last = first;
		if (ok && *text == '-') {
			text++;
			ok = take_count(&text, &last);
		}
		while (*text == ' ')
			text++;
		if (!ok || last < first || last > VALUE_MAX_CPU || (*text && *text != ',')) {
			*why = "expected CPU numbers and ranges of them, such as 0,2-3";
			return false;
		}
		for (uint64_t cpu = first; cpu <= last; cpu++) {
			if (!add_cpu(cpus, count, (unsigned)cpu, why))
				return false;
		}
		if (!*text)
			return true;
		text++;
	}
}

bool value_is_interface(const char *text)
{
	size_t bytes = strlen(text);

	if (bytes == 0 || bytes > 15 || !strcmp(text, ".") || !strcmp(text, ".."))
		return false;
	for (; *text; text++) {
		if (*text <= ' ' || *text == 127 || *text == '/' || *text == ':' ||
		    *text == '%') /* dev_valid_name of the kernel */
			return false;
	}
	return true;
}

bool value_is_user(const char *text)
{
	size_t bytes = strlen(text);

	if (bytes == 0 || bytes > 32 || !(islower((unsigned char)*text) || *text == '_'))
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") == bytes;
}

bool value_is_secret(const char *text) { return strlen(text) == 32 && strspn(text, "0123456789abcdefABCDEF") == 32; }

static char folded(char c) { return c == '_' ? '-' : (char)tolower((unsigned char)c); }

/* Edits (insert, delete, replace, swap of neighbours) that make b of a; both at most NEAREST_MAX_BYTES. */
static unsigned distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	unsigned row[3][NEAREST_MAX_BYTES + 1];

	for (unsigned j = 0; j <= b_bytes; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= a_bytes; i++) {
		unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			bool same = folded(a[i - 1]) == folded(b[j - 1]);
			now[j] = MIN(MIN(before[j] + 1, now[j - 1] + 1), before[j - 1] + !same);
			if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]))
				now[j] = MIN(now[j], earlier[j - 2] + 1);
		}
	}
	return row[a_bytes % 3][b_bytes];
}

const char *value_nearest(const char *text, const char *const *words)
{
	size_t bytes = strlen(text);
	unsigned least = bytes < 4 ? 2 : bytes < 8 ? 3 : 4; /* fewer edits than that: a short word has too many neighbours */
	const char *best = NULL;

	if (bytes == 0 || bytes > NEAREST_MAX_BYTES)
		return NULL;
	for (; *words; words++) {
		size_t word_bytes = strlen(*words);
		unsigned edits = word_bytes > NEAREST_MAX_BYTES ? least : distance(text, bytes, *words, word_bytes);
		if (edits < least) {
			least = edits;
			best = *words;
		}
	}
	return best;
}
