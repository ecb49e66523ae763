/* SPDX-License-Identifier: Apache-2.0 */
/* Properties over generated data of every type, driven by the descriptors: what is valid survives text both ways, and no
 * damage makes the code read what is not there. RDATA_SEED replays a run. */
#include "dns/rdata.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "tests/unit/fastpath/dns/rdata_words.h"

#ifdef SKUA_DEBUG
#define ROUNDS 300 /* sanitizers are slow */
#else
#define ROUNDS 2000
#endif
#define MAX_WIRE 8192
#define MAX_TEXT 65536
#define MAX_WORDS 4096

static uint64_t seed, state;

static uint32_t pick(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static void start(void)
{
	const char *given = getenv("RDATA_SEED");

	seed = state = given != NULL ? strtoull(given, NULL, 10) : 20261130;
	printf("RDATA_SEED=%llu\n", (unsigned long long)seed);
}

static size_t octets(uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = pick(4) ? (uint8_t)pick(256) : (uint8_t) "\0 \"\\;,=."[pick(8)];
	return n;
}

static size_t some(uint8_t *out, size_t least, size_t most) { return octets(out, least + pick((uint32_t)(most - least + 1))); }

static size_t from_alphabet(uint8_t *out, size_t n, const char *alphabet)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)alphabet[pick((uint32_t)strlen(alphabet))];
	return n;
}

static size_t name(uint8_t *out)
{
	size_t pos = 0;

	for (unsigned labels = pick(5); labels > 0; labels--) {
		out[pos] = (uint8_t)(1 + pick(pick(6) ? 8 : 60));
		octets(out + pos + 1, out[pos]);
		pos += 1u + out[pos];
	}
	out[pos] = 0;
	return pos + 1;
}

static size_t string(uint8_t *out)
{
	out[0] = (uint8_t)pick(pick(8) ? 20 : 256);
	return 1 + octets(out + 1, out[0]);
}

static size_t address(uint8_t *out, size_t n)
{
	octets(out, n);
	for (size_t i = 0; i < n; i++)
		if (pick(2))
			out[i] = 0;
	if (n == 16 && pick(4) == 0)
		memset(out, 0, pick(16));
	if (n == 16 && pick(8) == 0)
		memcpy(out, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	return n;
}

static size_t bitmap(uint8_t *out, bool may_be_empty)
{
	size_t pos = 0;
	unsigned window = pick(3) ? 0 : pick(200);

	if (may_be_empty && pick(8) == 0)
		return 0;
	for (unsigned windows = 1 + pick(3); windows > 0 && window < 256; windows--) {
		out[pos] = (uint8_t)window;
		out[pos + 1] = (uint8_t)(1 + pick(32));
		octets(out + pos + 2, out[pos + 1]);
		out[pos + 1 + out[pos + 1]] |= 1;
		pos += 2u + out[pos + 1];
		window += 1 + pick(40);
	}
	return pos;
}

static size_t loc(uint8_t *out)
{
	if (pick(20) == 0) {
		out[0] = (uint8_t)(1 + pick(255));
		return 1 + some(out + 1, 0, 20);
	}
	out[0] = 0;
	for (unsigned i = 1; i < 4; i++)
		out[i] = (uint8_t)(pick(8) ? (1 + pick(9)) << 4 | pick(10) : 0);
	store_be32(out + 4, 0x80000000u - 90u * 3600000u + pick(180u * 3600000u + 1));
	store_be32(out + 8, 0x80000000u - 180u * 3600000u + pick(360u * 3600000u + 1));
	octets(out + 12, 4);
	return 16;
}

static size_t apl(uint8_t *out)
{
	size_t pos = 0;

	for (unsigned items = pick(4); items > 0; items--) {
		unsigned family = pick(10) ? 1 + pick(2) : 3 + pick(100), most = family == 1 ? 4 : family == 2 ? 16 : 127;
		unsigned n = pick(most + 1);

		store_be16(out + pos, (uint16_t)family);
		out[pos + 2] = (uint8_t)pick(most == 127 ? 256 : most * 8 + 1);
		out[pos + 3] = (uint8_t)(n | (pick(2) ? 0x80 : 0));
		octets(out + pos + 4, n);
		if (n > 0)
			out[pos + 3 + n] |= 1;
		pos += 4 + n;
	}
	return pos;
}

static size_t svc_value(uint16_t key, uint8_t *out)
{
	size_t n = 0;

	switch (key) {
	case 1:
		for (unsigned ids = 1 + pick(3); ids > 0; ids--) {
			out[n] = (uint8_t)(1 + pick(12));
			n += 1 + octets(out + n + 1, out[n]);
		}
		return n;
	case 2:
	case 8: return 0;
	case 3: return octets(out, 2);
	case 4: return octets(out, 4 * (1 + pick(3)));
	case 6:
		for (unsigned i = 1 + pick(3); i > 0; i--)
			n += address(out + n, 16);
		return n;
	case 7: memcpy(out, "/a{?dns}", 8); return 8;
	case 9:
		store_be16(out, (uint16_t)pick(1000));
		store_be16(out + 2, (uint16_t)(1000 + pick(1000)));
		return 4;
	default: return some(out, 0, 30);
	}
}

static size_t svcparams(uint8_t *out)
{
	uint16_t keys[16], listed[16];
	unsigned count = 0, mandatory = 0;
	size_t pos = 0;

	for (uint16_t key = 1; key < 10; key++)
		if (pick(3) == 0 && (key != 2 || (count > 0 && keys[0] == 1)))
			keys[count++] = key;
	for (unsigned key = 10 + pick(2000), more = pick(4); more > 0; more--, key += 1 + pick(20000))
		keys[count++] = (uint16_t)key;
	for (unsigned i = 0; i < count; i++)
		if (pick(3) == 0)
			listed[mandatory++] = keys[i];
	if (mandatory > 0) {
		store_be16(out, 0);
		store_be16(out + 2, (uint16_t)(2 * mandatory));
		pos = 4;
		for (unsigned i = 0; i < mandatory; i++, pos += 2)
			store_be16(out + pos, listed[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		size_t n = svc_value(keys[i], out + pos + 4);

		store_be16(out + pos, keys[i]);
		store_be16(out + pos + 2, (uint16_t)n);
		pos += 4 + n;
	}
	return pos;
}

static size_t endpoint(uint8_t *out, unsigned type)
{
	return type == 0 ? 0 : type == 1 ? octets(out, 4) : type == 2 ? address(out, 16) : name(out);
}

static size_t hip(uint8_t *out)
{
	size_t hit = 1 + pick(20), key = 1 + pick(60), pos;

	out[0] = (uint8_t)hit;
	out[1] = (uint8_t)pick(256);
	store_be16(out + 2, (uint16_t)key);
	pos = 4 + octets(out + 4, hit + key);
	for (unsigned servers = pick(3); servers > 0; servers--)
		pos += name(out + pos);
	return pos;
}

static size_t a6(uint8_t *out)
{
	unsigned prefix = pick(4) ? pick(129) : 128u * pick(2);
	size_t suffix = 16 - prefix / 8;

	out[0] = (uint8_t)prefix;
	address(out + 1, suffix);
	if (suffix > 0)
		out[1] &= (uint8_t)(0xff >> (prefix & 7));
	return 1 + suffix + (prefix > 0 ? name(out + 1 + suffix) : 0);
}

/* Digests whose type the octet in front says. */
static size_t digest(uint8_t *out, uint8_t kind)
{
	static const uint8_t ds[] = { 0, 20, 32, 32, 48 }, sshfp[] = { 0, 20, 32 }, zonemd[] = { 0, 48, 64 };
	uint8_t type = out[-1] = (uint8_t)(pick(4) ? pick(6) : pick(256));

	if (kind == RDF_DS_DIGEST && type > 0 && type < sizeof ds)
		return octets(out, ds[type]);
	if (kind == RDF_SSHFP_DIGEST && type > 0 && type < sizeof sshfp)
		return octets(out, sshfp[type]);
	if (kind == RDF_ZONEMD_DIGEST && type > 0 && type < sizeof zonemd)
		return octets(out, zonemd[type]);
	return some(out, kind == RDF_ZONEMD_DIGEST ? 12 : 1, 60);
}

static size_t special(uint8_t kind, uint8_t flags, uint8_t *out)
{
	size_t n;

	switch (kind) {
	case RDF_BITMAP: return bitmap(out, flags & RDF_F_OPTIONAL);
	case RDF_BITMAP_NXT:
		n = some(out, 0, 16);
		out[0] &= 0x7f;
		out[n > 0 ? n - 1 : 0] |= 1;
		return n;
	case RDF_ATMA:
		out[0] = (uint8_t)pick(3);
		return 1 + (out[0] == 1 ? from_alphabet(out + 1, 1 + pick(15), "0123456789") : some(out + 1, 1, 20));
	case RDF_X25: out[0] = (uint8_t)(4 + pick(12)); return 1 + from_alphabet(out + 1, out[0], "0123456789");
	case RDF_GPOS:
		out[0] = (uint8_t)(2 + pick(6));
		from_alphabet(out + 1, out[0], "0123456789");
		out[1] = (uint8_t) "-+.1"[pick(4)];
		return 1u + out[0];
	case RDF_APL: return apl(out);
	case RDF_LOC: return loc(out);
	case RDF_WKS:
		n = 1 + some(out, 0, 30);
		out[n - 1] |= 1;
		return n;
	case RDF_SVCPARAMS: return svcparams(out);
	case RDF_IPSECKEY:
		octets(out, 3);
		out[1] = (uint8_t)pick(4);
		return 3 + endpoint(out + 3, out[1]);
	case RDF_AMTRELAY:
		octets(out, 2);
		out[1] = (uint8_t)(pick(4) | (pick(2) ? 0x80 : 0));
		return 2 + endpoint(out + 2, out[1] & 0x7f);
	case RDF_HIP: return hip(out);
	case RDF_A6: return a6(out);
	default: cr_assert_fail("no generator for field kind %u", kind); return 0;
	}
}

static size_t field(uint8_t kind, uint8_t flags, uint8_t *out)
{
	size_t n = 0;

	switch (kind) {
	case RDF_U8:
	case RDF_ALGORITHM:
	case RDF_DSYNC_SCHEME: return pick(2) ? octets(out, 1) : (out[0] = (uint8_t)pick(17), 1);
	case RDF_U16: return octets(out, 2);
	case RDF_TYPE:
	case RDF_CERT_TYPE:
	case RDF_RCODE: store_be16(out, (uint16_t)(pick(2) ? pick(30) : pick(65536))); return 2;
	case RDF_U32:
	case RDF_TIME:
	case RDF_TTL: return octets(out, 4);
	case RDF_U48:
	case RDF_EUI48: return octets(out, 6);
	case RDF_EUI64:
	case RDF_NID64: return address(out, 8);
	case RDF_NAME: return name(out);
	case RDF_IPV4:
	case RDF_L32: return octets(out, 4);
	case RDF_IPV6: return address(out, 16);
	case RDF_STRING: return string(out);
	case RDF_STRINGS:
		for (unsigned i = 1 + pick(4); i > 0; i--)
			n += string(out + n);
		return n;
	case RDF_STRING_LONG: return some(out, 0, 600);
	case RDF_TAG: out[0] = (uint8_t)(1 + pick(15)); return 1 + from_alphabet(out + 1, out[0], "issueWILD09");
	case RDF_HEX:
	case RDF_BASE64: return some(out, flags & RDF_F_OPTIONAL ? 0 : 1, 70);
	case RDF_NSAP: return some(out, 1, 20);
	case RDF_DS_DIGEST:
	case RDF_SSHFP_DIGEST:
	case RDF_ZONEMD_DIGEST: return digest(out, kind);
	case RDF_HEX_L8: out[0] = (uint8_t)pick(30); return 1 + octets(out + 1, out[0]);
	case RDF_BASE32HEX_L8: out[0] = (uint8_t)(1 + pick(pick(9) ? 30 : 255)); return 1 + octets(out + 1, out[0]);
	case RDF_BASE64_L16: store_be16(out, (uint16_t)pick(50)); return 2 + octets(out + 2, load_be16(out));
	case RDF_UNKNOWN: return some(out, 0, 60);
	default: return special(kind, flags, out);
	}
}

static size_t record(const struct rr_type_info *info, uint8_t *out)
{
	size_t n = 0;

	for (unsigned i = 0; i < RR_TYPE_MAX_FIELDS && info->field[i].kind != RDF_END; i++) {
		if ((info->field[i].flags & RDF_F_OPTIONAL) && pick(4) == 0)
			break;
		n += field(info->field[i].kind, info->field[i].flags, out + n);
	}
	return n;
}

static char text[MAX_TEXT], again[MAX_TEXT];
static struct rdata_token words[MAX_WORDS];

static void from_text_equals(uint16_t type, const char *from, const uint8_t *wire, size_t n)
{
	static uint8_t back[MAX_WIRE];
	struct rdata_error error = { 0 };
	size_t back_bytes = 0;
	enum err err =
		rdata_from_text(type, words, rdata_words(from, words, MAX_WORDS), NULL, back, sizeof back, &back_bytes, &error);

	cr_assert_eq(err, ERR_OK, "seed %llu, type %u, %s: %s", (unsigned long long)seed, type, from, error.expected);
	cr_assert(back_bytes == n && memcmp(back, wire, n) == 0, "seed %llu, type %u: %s", (unsigned long long)seed, type, from);
}

/* wire is valid: text and the RFC 3597 form lead back to it, and so does a message. */
static void survives(uint16_t type, const uint8_t *wire, size_t n)
{
	static uint8_t copy[MAX_WIRE];
	size_t text_bytes = 0, again_bytes = 0, bytes = 0;
	struct rdata_walk walk = { 0 };
	struct rdata_name found;

	cr_assert_eq(rdata_to_text(type, wire, n, text, sizeof text, &text_bytes), ERR_OK);
	from_text_equals(type, text, wire, n);
	cr_assert_eq(rdata_to_text(type, wire, n, again, sizeof again, &again_bytes), ERR_OK);
	cr_assert_str_eq(text, again);
	again_bytes = (size_t)sprintf(again, "\\# %zu ", n);
	for (size_t i = 0; i < n; i++)
		again_bytes += (size_t)sprintf(again + again_bytes, "%02x", wire[i]);
	from_text_equals(type, again, wire, n);

	cr_assert_eq(rdata_from_message(type, wire, n, 0, n, copy, sizeof copy, &bytes), ERR_OK);
	cr_assert(bytes == n && memcmp(copy, wire, n) == 0);
	for (size_t behind = 0; rdata_next_name(type, wire, n, &walk, &found); behind = found.offset + found.bytes) {
		cr_assert_geq(found.offset, behind);
		cr_assert_eq(name_wire_bytes(wire + found.offset, n - found.offset), found.bytes);
	}
	rdata_canonical(type, copy, n);
	cr_assert_eq(rdata_check(type, copy, n), ERR_OK, "canonical data is valid");
}

/* The generated types: every one with a descriptor, two without. */
static bool is_generated(unsigned type) { return rr_type_info((uint16_t)type)->mnemonic != NULL || type == 300 || type == 65280; }

Test(rdata_property, valid_data_survives_text_and_messages)
{
	static uint8_t wire[MAX_WIRE];

	start();
	for (unsigned type = 1; type <= UINT16_MAX; type++) {
		for (unsigned i = 0; is_generated(type) && i < ROUNDS; i++) {
			size_t n = record(rr_type_info((uint16_t)type), wire);

			cr_assert_eq(rdata_check((uint16_t)type, wire, n), ERR_OK, "seed %llu, type %u, round %u",
				     (unsigned long long)seed, type, i);
			survives((uint16_t)type, wire, n);
		}
	}
}

/* Whatever stands there: it is refused or survives, is always printable, and nothing behind it is read (in blocks of exactly
 * that size, for the address sanitizer). */
static void is_harmless(uint16_t type, const uint8_t *wire, size_t n)
{
	static uint8_t out[MAX_WIRE];
	uint8_t *block = malloc(n > 0 ? n : 1);
	size_t bytes;

	cr_assert_not_null(block);
	memcpy(block, wire, n);
	if (rdata_check(type, block, n) == ERR_OK)
		survives(type, block, n);
	else
		cr_assert_eq(rdata_to_text(type, block, n, text, sizeof text, &bytes), ERR_OK);
	if (rdata_from_message(type, block, n, 0, n, out, sizeof out, &bytes) == ERR_OK)
		cr_assert_eq(rdata_check(type, out, bytes), ERR_OK, "seed %llu, type %u", (unsigned long long)seed, type);
	free(block);
}

Test(rdata_property, truncated_and_damaged_data_is_harmless)
{
	static uint8_t wire[MAX_WIRE];

	start();
	for (unsigned type = 1; type <= UINT16_MAX; type++) {
		for (unsigned i = 0; is_generated(type) && i < ROUNDS / 50; i++) {
			size_t n = record(rr_type_info((uint16_t)type), wire);

			for (size_t cut = 0; cut < n; cut += 1 + cut / 32)
				is_harmless((uint16_t)type, wire, cut);
			for (unsigned flips = 0; flips < 20 && n > 0; flips++) {
				wire[pick((uint32_t)n)] ^= (uint8_t)(1u << pick(8));
				is_harmless((uint16_t)type, wire, n);
			}
			octets(wire, n);
			is_harmless((uint16_t)type, wire, n);
		}
	}
}
