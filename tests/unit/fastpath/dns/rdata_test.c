/* SPDX-License-Identifier: Apache-2.0 */
/* Record data by hand-written cases; rdata_property_test.c has the generated ones. */
#include "tests/unit/fastpath/dns/rdata_words.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define MAX_WORDS 64

static const uint8_t origin[] = "\1x"; /* x. */

static enum err parse(const char *type_text, const char *text, uint8_t *wire, size_t max, size_t *bytes,
		      struct rdata_error *error, uint16_t *type)
{
	struct rdata_token token[MAX_WORDS];
	unsigned count = rdata_words(text, token, MAX_WORDS);

	cr_assert(rr_type_from_text(type_text, strlen(type_text), type), "%s", type_text);
	return rdata_from_text(*type, token, count, origin, wire, max, bytes, error);
}

static void hex(char *out, const uint8_t *wire, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", wire[i]);
	out[2 * n] = '\0';
}

/* clang-format off */
/* wire NULL: not compared. print NULL: as text. */
static const struct { const char *type, *text, *wire, *print; } good[] = {
	{ "A", "1.2.3.255", "010203ff", NULL },
	{ "A", "\\# 4 0a0B0c0d", "0a0b0c0d", "10.11.12.13" },
	{ "TYPE1", "\\# 4 0a 0b0 c0d", "0a0b0c0d", "10.11.12.13" },
	{ "AAAA", "2001:DB8:0:0:1:0:0:1", "20010db8000000000001000000000001", "2001:db8::1:0:0:1" },
	{ "AAAA", "::", NULL, NULL },
	{ "AAAA", "::1", NULL, NULL },
	{ "AAAA", "::ffff:1.2.3.4", "00000000000000000000ffff01020304", NULL },
	{ "AAAA", "64:ff9b::1.2.3.4", NULL, "64:ff9b::102:304" },
	{ "AAAA", "1:2:3:4:5:6:7::", NULL, "1:2:3:4:5:6:7:0" },
	{ "NS", "ns", "026e73017800", "ns.x." },
	{ "NS", "@", "017800", "x." },
	{ "NS", ".", "00", NULL },
	{ "SOA", "a b 4294967295 1h 1D2h 3W 0", NULL, "a.x. b.x. 4294967295 3600 93600 1814400 0" },
	{ "MX", "0010 Mail.x.", "000a044d61696c017800", "10 Mail.x." },
	{ "TXT", "a \"b c\" \"\" \"\\\"\\\\;@\\000\"", "0161036220630005225c3b4000", "\"a\" \"b c\" \"\" \"\\\"\\\\;@\\000\"" },
	{ "HINFO", "a \"b c\"", NULL, "\"a\" \"b c\"" },
	{ "ISDN", "150862028003217 004", NULL, "\"150862028003217\" \"004\"" },
	{ "ISDN", "150862028003217", NULL, "\"150862028003217\"" },
	{ "X25", "311061700956", NULL, "\"311061700956\"" },
	{ "GPOS", "-32.6882 116.8652 10.0", NULL, "\"-32.6882\" \"116.8652\" \"10.0\"" },
	{ "NSAP", "0x47.0005.80.005a00", "47000580005a00", "0x47000580005a00" },
	{ "ATMA", "+61.200", "01363132" "3030", "+61200" },
	{ "ATMA", "39.246f", "0039246f", "39246f" },
	{ "LOC", "42 21 54 N 71 06 18 W -24m 30m",
	  "0033161389172dd070be15f000988d20", "42 21 54.000 N 71 6 18.000 W -24.00m 30m 10000m 10m" },
	{ "LOC", "90 N 180 W 42849672.95m 90000000m 0.05m 0",
	  NULL, "90 0 0.000 N 180 0 0.000 W 42849672.95m 90000000m 0.05m 0.00m" },
	{ "LOC", "\\# 2 01ff", "01ff", "\\# 2 01FF" },
	{ "WKS", "10.0.0.1 tcp ftp smtp 0", "0a0000010680000440" "", NULL },
	{ "NXT", "foo A MX", NULL, "foo.x. A MX" },
	{ "A6", "0 ::1", NULL, NULL },
	{ "A6", "8 ffff::1 foo", NULL, "8 ff::1 foo.x." },
	{ "A6", "128 foo", "8003666f6f017800", "128 foo.x." },
	{ "APL", "", "", NULL },
	{ "APL", "1:192.168.32.0/21 !1:192.168.38.0/28 2:ff00::/8 2:::/0", NULL, NULL },
	{ "APL", "\\# 4 00030800", NULL, "\\# 4 00030800" },
	{ "CERT", "pkix 1 RSASHA256 AAAA", "000100010800" "0000", "PKIX 1 RSASHA256 AAAA" },
	{ "CERT", "65534 1 200 AA==", NULL, NULL },
	{ "DS", "1 RSASHA256 200 ab CD", "000108c8abcd", "1 8 200 ABCD" },
	{ "CDS", "0 0 0 00", "0000000000", NULL },
	{ "CDNSKEY", "0 3 0 AA==", "0000030000", NULL },
	{ "KEY", "49152 3 5", "c0000305", NULL },
	{ "DNSKEY", "257 3 ECDSAP256SHA256 AA AA", NULL, "257 3 13 AAAA" },
	{ "RRSIG", "A 8 3 300 20260101000000 1 1 foo AAAA", NULL, "A 8 3 300 20260101000000 19700101000001 1 foo.x. AAAA" },
	{ "RRSIG", "TYPE65280 8 3 300 21060207062815 20000229235959 1 . AAAA", NULL, NULL },
	{ "RRSIG", "A 8 3 300 19691231235959 0 1 . AAAA", NULL, "A 8 3 300 21060207062815 19700101000000 1 . AAAA" },
	{ "NSEC", "foo TYPE65535 A TYPE1 MX ANY", NULL, "foo.x. A MX ANY TYPE65535" },
	{ "NSEC3", "1 1 10 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom", NULL, "1 1 10 - 0P9MHAVEQVM6T7VBL5LOP2U3T2RP3TOM" },
	{ "NSEC3PARAM", "1 0 65535 aabb", "0100ffff02aabb", "1 0 65535 AABB" },
	{ "CSYNC", "66 3", "0000004200" "03", NULL },
	{ "TLSA", "3 1 1 aabb ccdd", NULL, "3 1 1 AABBCCDD" },
	{ "HIP", "2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc rvs1 Rvs2.example.", NULL,
	  "2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc rvs1.x. Rvs2.example." },
	{ "IPSECKEY", "10 1 2 192.0.2.38 AQNR", "0a0102c0000226010351", NULL },
	{ "IPSECKEY", "10 0 0 .", "0a0000", NULL },
	{ "IPSECKEY", "10 3 2 foo AQNR", NULL, "10 3 2 foo.x. AQNR" },
	{ "AMTRELAY", "10 1 2 2001:db8::1", NULL, NULL },
	{ "AMTRELAY", "10 0 0 .", "0a00", NULL },
	{ "AMTRELAY", "\\# 3 0a0411", NULL, "\\# 3 0A0411" },
	{ "NID", "10 0014:4fff:FF20:0", NULL, "10 14:4fff:ff20:0" },
	{ "L32", "10 10.1.2.0", NULL, NULL },
	{ "EUI48", "00-00-5E-00-53-2a", NULL, "00-00-5e-00-53-2a" },
	{ "EUI64", "00-00-5e-ef-10-00-00-2a", "00005eef1000002a", NULL },
	{ "URI", "10 1 \"ftp://a\\\"b\"", NULL, NULL },
	{ "URI", "10 1 \"\"", "000a0001", NULL },
	{ "CAA", "128 iodef \"\"", "8005696f646566", NULL },
	{ "CAA", "0 Issue ca", "00054973737565" "6361", "0 Issue \"ca\"" },
	{ "DOA", "1234567 1 2 \"text/html\" -", NULL, NULL },
	{ "DOA", "0 1 2 \"\" AAAA", NULL, NULL },
	{ "SINK", "1 2 3", "010203", NULL },
	{ "DSYNC", "CDS notify 5353 foo", "003b0114e903666f6f017800", "CDS NOTIFY 5353 foo.x." },
	{ "DSYNC", "ANY 2 1 .", NULL, NULL },
	{ "TSIG", "hmac-sha256. 281474976710655 300 3 AAAA 1 BADTIME 0", NULL, NULL },
	{ "TKEY", "a. 1 2 3 BADKEY 0 3 AAAA", NULL, NULL },
	{ "NULL", "\\# 3 aabbcc", "aabbcc", "\\# 3 AABBCC" },
	{ "NULL", "\\# 0", "", NULL },
	{ "TYPE9999", "\\# 1 0 1", "01", "\\# 1 01" },
	{ "SVCB", "0 foo", "000003666f6f017800", "0 foo.x." },
	{ "SVCB", "1 . alpn=h2,h3 port=53 ipv4hint=1.2.3.4,1.2.3.5 ipv6hint=::1,2::2 ech=AAAA dohpath=\"/q{?dns}\" key667=hello key668",
	  NULL,
	"1 . alpn=\"h2,h3\" port=53 ipv4hint=1.2.3.4,1.2.3.5 ech=AAAA ipv6hint=::1,2::2 key7=\"/q{?dns}\" key667=\"hello\" key668" },
	{ "SVCB", "1 . port=53 mandatory=port,alpn alpn=h2", "00010000000004000100030001000302683200030002" "0035",
	  "1 . mandatory=alpn,port alpn=\"h2\" port=53" },
	{ "SVCB", "16 foo.example.org. alpn=\"f\\\\\\\\oo\\\\,bar,h2\"",
	  "001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832",
	  "16 foo.example.org. alpn=\"f\\\\\\\\oo\\\\,bar,h2\"" },
	{ "SVCB", "16 foo.example.org. alpn=f\\\\\\092oo\\092,bar,h2",
	  "001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832",
	  "16 foo.example.org. alpn=\"f\\\\\\\\oo\\\\,bar,h2\"" },
	{ "SVCB", "1 foo.example.com. key667=\"hello\\210qoo\"",
	  "000103666f6f076578616d706c6503636f6d00029b000968656c6c6fd2716f6f", NULL },
	{ "HTTPS", "1 . key3=\\000\\053 key1=\\002h2 no-default-alpn", NULL, "1 . alpn=\"h2\" no-default-alpn port=53" },
	{ "HTTPS", "1 . ech= ohttp tls-supported-groups=29,23", NULL, "1 . ech key8 key9=\"\\000\\029\\000\\023\"" },
};

/* clang-format on */

Test(rdata, texts_wires_and_prints)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		uint8_t wire[1024];
		char text[4096], expected[2048];
		struct rdata_error error = { 0 };
		size_t bytes = 0, text_bytes = 0;
		uint16_t type;
		enum err err = parse(good[i].type, good[i].text, wire, sizeof wire, &bytes, &error, &type);

		cr_assert_eq(err, ERR_OK, "%s %s: %s", good[i].type, good[i].text, error.expected);
		hex(expected, wire, bytes);
		if (good[i].wire != NULL)
			cr_assert_str_eq(expected, good[i].wire, "%s %s", good[i].type, good[i].text);
		cr_assert_eq(rdata_check(type, wire, bytes), ERR_OK, "%s %s", good[i].type, good[i].text);
		cr_assert_eq(rdata_to_text(type, wire, bytes, text, sizeof text, &text_bytes), ERR_OK);
		cr_assert_eq(strlen(text), text_bytes);
		if (strcmp(good[i].type, "WKS") != 0)
			cr_assert_str_eq(text, good[i].print != NULL ? good[i].print : good[i].text);
		for (size_t max = 0; max <= text_bytes; max++)
			cr_assert_eq(rdata_to_text(type, wire, bytes, text, max, &text_bytes), ERR_NOSPACE);
		for (size_t max = 0; max < bytes; max++)
			cr_assert_eq(parse(good[i].type, good[i].text, wire, max, &bytes, &error, &type), ERR_NOSPACE,
				     "%s %s in %zu", good[i].type, good[i].text, max);
	}
}

/* clang-format off */
/* token: index of the offending word. */
static const struct { const char *type, *text; unsigned token; } bad[] = {
	{ "A", "", 0 }, { "A", "1.2.3", 0 }, { "A", "1.2.3.256", 0 }, { "A", "01.2.3.4", 0 }, { "A", "1.2.3.4 5", 1 },
	{ "A", "1.2.3.4.", 0 }, { "A", "1..2.3", 0 }, { "A", "\\# 3 010203", 0 }, { "A", "\\# 4 010203", 1 }, { "A", "\\#", 1 },
	{ "A", "\\# x 00", 1 },  { "A", "\\# 4 0102030", 2 }, { "A", "\\# 4 0102030g", 2 }, { "A", "\"\\#\" 4 01020304", 0 },
	{ "AAAA", "::1%lo", 0 }, { "AAAA", "1::2::3", 0 },  { "AAAA", "1:2:3:4:5:6:7", 0 }, { "AAAA", "1:2:3:4:5:6:7:8:9", 0 },
	{ "AAAA", "00001::", 0 }, { "AAAA", ":1:2:3:4:5:6:7", 0 }, { "AAAA", "1:2:3:4:5:6:7:", 0 }, { "AAAA", ":::", 0 },
	{ "AAAA", "", 0 },
	{ "AAAA", "1:2:3:4:5:6:7:1.2.3.4", 0 }, { "AAAA", "::1.2.3", 0 },
	{ "NS", "", 0 },         { "NS", "\"foo\"", 0 },    { "NS", "a b", 1 },          { "NS", "a..b", 0 },
	{ "MX", "10", 1 },       { "MX", "65536 a", 0 },    { "MX", "-1 a", 0 },         { "MX", "0x1 a", 0 },
	{ "SOA", "a b 1h 1 1 1 1", 2 }, { "SOA", "a b 1 1 1 1", 6 }, { "SOA", "a b 1 1x 1 1 1", 3 },
	{ "SOA", "a b 1 1h1 1 1 1", 3 },
	{ "SOA", "a b 1 h 1 1 1", 3 }, { "SOA", "a b 1 4294967296 1 1 1", 3 }, { "SOA", "a b 1 7102w 1 1 1", 3 },
	{ "TXT", "", 0 },        { "TXT", "\"a\\256\"", 0 }, { "TXT", "\"a\\25\"", 0 },  { "TXT", "a \\1x2", 1 },
	{ "X25", "123", 0 }, { "X25", "12a4", 0 }, { "GPOS", "a b c", 0 }, { "GPOS", "1 2 .", 2 }, { "GPOS", "1 2", 2 },
	{ "NSAP", "47", 0 }, { "NSAP", "0x4", 0 }, { "NSAP", "0x", 0 }, { "ATMA", "+", 0 }, { "ATMA", "1", 0 },
	{ "ATMA", "+1a", 0 },
	{ "LOC", "91 N 1 W 0", 0 }, { "LOC", "90 0 0.001 N 1 W 0", 3 }, { "LOC", "1 60 N 1 W 0", 1 },
	{ "LOC", "1 2 60 N 1 W 0", 2 },
	{ "LOC", "1 2 3.1234 N 1 W 0", 2 }, { "LOC", "1 N 1 W", 4 }, { "LOC", "1 N 1 W 0 1 2 3 4", 8 },
	{ "LOC", "1 N 1 W 0 90000000.01", 5 },
	{ "LOC", "1 N 1 W -100000.01", 4 }, { "LOC", "1 N 1 W 42849672.96", 4 }, { "LOC", "1 W 1 N 0", 1 },
	{ "LOC", "1 N 181 W 0", 2 },
	{ "LOC", "\\# 16 00aa1613800000008000000000989680", 0 },
	{ "WKS", "1.2.3.4 6 foo", 2 }, { "WKS", "1.2.3.4 6 65536", 2 }, { "WKS", "\\# 7 01020304068000", 0 },
	{ "NXT", "foo TYPE128", 1 }, { "NXT", "foo TYPE0", 1 },
	{ "A6", "129 foo", 0 },  { "A6", "0 ::1 foo", 2 },  { "A6", "64 ::1", 2 },
	{ "APL", "3:00/8", 0 }, { "APL", "1:1.2.3.4/33", 0 }, { "APL", "2:1::/129", 0 }, { "APL", "1:1.2.3.4", 0 },
	{ "APL", "\\# 6 000108020100", 0 },
	{ "DS", "1 8 2 00", 4 }, { "DS", "1 8 200", 3 }, { "DS", "1 FOO 200 00", 1 }, { "SSHFP", "1 1 00", 3 },
	{ "ZONEMD", "1 1 3 00", 4 },
	{ "DNSKEY", "256 3 8", 3 }, { "OPENPGPKEY", "A", 0 }, { "OPENPGPKEY", "AB==", 0 }, { "OPENPGPKEY", "AA==AAAA", 0 },
	{ "OPENPGPKEY", "AAA", 0 }, { "OPENPGPKEY", "AA=", 0 }, { "OPENPGPKEY", "AA===", 0 }, { "OPENPGPKEY", "A*AA", 0 },
	{ "RRSIG", "FOO 8 3 300 1 1 1 foo AAAA", 0 }, { "RRSIG", "A 8 3 1w 1 1 1 foo AAAA", 3 },
	{ "RRSIG", "A 8 3 1 20230230000000 1 1 foo AAAA", 4 },
	{ "RRSIG", "A 8 3 1 20230101240000 1 1 foo AAAA", 4 }, { "RRSIG", "A 8 3 1 22000101000000 1 1 foo AAAA", 4 },
	{ "RRSIG", "A 8 3 1 2023010100000 1 1 foo AAAA", 4 }, { "RRSIG", "A 8 3 1 20231301000000 1 1 foo AAAA", 4 },
	{ "NSEC", "foo", 1 }, { "NSEC", "foo BLA", 1 }, { "NSEC3", "1 0 1 - AA", 4 }, { "NSEC3", "1 0 1 abc 00", 3 },
	{ "NSEC3", "1 0 1 - 0", 4 },
	{ "NSEC3", "1 0 1 - 01", 4 }, { "NSEC3", "1 0 1 - 0w", 4 },
	{ "HIP", "2 - AAAA", 1 }, { "HIP", "2 20", 2 },
	{ "IPSECKEY", "10 4 2 . AAAA", 1 }, { "IPSECKEY", "10 0 2 foo AAAA", 3 }, { "AMTRELAY", "10 2 0 .", 1 },
	{ "AMTRELAY", "10 0 4 .", 2 },
	{ "NID", "10 00000:0:0:0", 1 }, { "NID", "10 1:2:3", 1 }, { "NID", "10 1:2:3:4:5", 1 },
	{ "EUI48", "00-00-5E-00-53-2", 0 },
	{ "EUI48", "00:00:5e:00:53:2a", 0 }, { "CAA", "0 is-sue x", 1 }, { "CAA", "0 issue", 2 }, { "CAA", "0 issue a b", 3 },
	{ "DOA", "0 1 2 a", 4 }, { "DSYNC", "CDS FOO 1 .", 1 }, { "TSIG", "a. 281474976710656 1 0 1 0 0", 1 },
	{ "TSIG", "a. 1 300 4 AAAA 1 0 0", 4 }, { "NULL", "abc", 0 }, { "TYPE9999", "abc", 0 }, { "TYPE9999", "", 0 },
	{ "SVCB", "1 . alpn=h2 alpn=h2", 3 }, { "SVCB", "1 . mandatory=port", 3 }, { "SVCB", "1 . mandatory=mandatory", 2 },
	{ "SVCB", "1 . mandatory=alpn,alpn alpn=h2", 2 }, { "SVCB", "1 . mandatory= alpn=h2", 2 },
	{ "SVCB", "1 . no-default-alpn", 3 },
	{ "SVCB", "1 . alpn=h2 no-default-alpn=x", 3 }, { "SVCB", "1 . alpn", 2 }, { "SVCB", "1 . alpn=h2,", 2 },
	{ "SVCB", "1 . alpn=,h2", 2 },
	{ "SVCB", "1 . alpn=\"h\\\\x\"", 2 }, { "SVCB", "1 . alpn=\"h\\\\\"", 2 },
	{ "SVCB", "1 . port=", 2 }, { "SVCB", "1 . port=65536", 2 }, { "SVCB", "1 . port=1,2", 2 },
	{ "SVCB", "1 . ipv4hint=1.2.3", 2 },
	{ "SVCB", "1 . ipv6hint=::1,,::2", 2 }, { "SVCB", "1 . ipv4hint=1.2.3.4,", 2 }, { "SVCB", "1 . ech=A", 2 },
	{ "SVCB", "1 . dohpath=/q", 2 },
	{ "SVCB", "1 . key65536=a", 2 }, { "SVCB", "1 . key007=a", 2 }, { "SVCB", "1 . KEY7=a", 2 }, { "SVCB", "1 . key", 2 },
	{ "SVCB", "1 . =a", 2 },
	{ "SVCB", "1 . \"alpn=h2\"", 2 }, { "SVCB", "1 . ohttp=x", 2 }, { "SVCB", "1 . tls-supported-groups=1,1", 2 },
	{ "SVCB", "1 . key3=\\001", 2 },
	{ "SVCB", "1 .\\", 1 }, { "SVCB", "\\# 9 000100 00030001 35 00", 0 }, { "SVCB", "\\# 11 0001 00 0008 0000 0008 0000", 0 },
};

/* clang-format on */

Test(rdata, bad_texts_name_the_word)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint8_t wire[1024];
		struct rdata_error error = { 4711, "" };
		size_t bytes = 4711;
		uint16_t type;
		enum err err = parse(bad[i].type, bad[i].text, wire, sizeof wire, &bytes, &error, &type);

		cr_assert(err == ERR_SYNTAX || err == ERR_RANGE, "%s %s gave %s", bad[i].type, bad[i].text, err_text(err));
		cr_assert_eq(error.token, bad[i].token, "%s %s: word %u: %s", bad[i].type, bad[i].text, error.token,
			     error.expected);
		cr_assert_eq(strncmp(error.expected, "expected ", 9), 0, "%s", error.expected);
		cr_assert_eq(bytes, 4711, "out-parameters stay as they are");
	}
}

Test(rdata, a_string_of_255_octets_fits_and_256_do_not)
{
	char text[257];
	struct rdata_token token = { text, 255, true };
	uint8_t wire[512];
	struct rdata_error error;
	size_t bytes;

	memset(text, 'a', sizeof text);
	cr_assert_eq(rdata_from_text(RR_TXT, &token, 1, NULL, wire, sizeof wire, &bytes, &error), ERR_OK);
	cr_assert_eq(bytes, 256);
	token.bytes = 256;
	cr_assert_eq(rdata_from_text(RR_TXT, &token, 1, NULL, wire, sizeof wire, &bytes, &error), ERR_RANGE);
}

Test(rdata, data_of_65535_octets_fits_and_one_more_does_not)
{
	static char text[2 * 65536];
	static uint8_t wire[70000];
	struct rdata_token token[3] = { { "\\#", 2, false }, { "65535", 5, false }, { text, 2 * 65535, false } };
	struct rdata_token long_text[3] = { { "1", 1, false }, { "1", 1, false }, { text, 65531, true } };
	struct rdata_error error;
	size_t bytes;

	memset(text, '0', sizeof text);
	cr_assert_eq(rdata_from_text(9999, token, 3, NULL, wire, sizeof wire, &bytes, &error), ERR_OK);
	cr_assert_eq(bytes, 65535);
	token[2].bytes += 2;
	cr_assert_eq(rdata_from_text(9999, token, 3, NULL, wire, sizeof wire, &bytes, &error), ERR_NOSPACE);
	cr_assert_eq(rdata_from_text(256, long_text, 3, NULL, wire, sizeof wire, &bytes, &error), ERR_OK);
	cr_assert_eq(bytes, 65535);
	long_text[2].bytes++;
	cr_assert_eq(rdata_from_text(256, long_text, 3, NULL, wire, sizeof wire, &bytes, &error), ERR_NOSPACE);
}

Test(rdata, canonical_form_lowers_what_rfc_4034_lists)
{
	static const struct {
		const char *type, *text, *canonical;
	} cases[] = {
		{ "NS", "A.B.", "a.b." },
		{ "SOA", "A. B. 1 2 3 4 5", "a. b. 1 2 3 4 5" },
		{ "MX", "1 A.", "1 a." },
		{ "SRV", "1 2 3 A.", "1 2 3 a." },
		{ "NAPTR", "1 2 \"U\" \"E\" \"R\" A.", "1 2 \"U\" \"E\" \"R\" a." },
		{ "DNAME", "A.", "a." },
		{ "A6", "64 ::1 A.", "64 ::1 a." },
		{ "RRSIG", "A 8 3 300 1 1 1 A. AAAA", "A 8 3 300 19700101000001 19700101000001 1 a. AAAA" },
		{ "NSEC", "A. A", "A. A" },
		{ "SVCB", "1 A. key667=\"A\"", "1 A. key667=\"A\"" },
		{ "HIP", "2 AA AAAA A.", "2 AA AAAA A." },
		{ "IPSECKEY", "1 3 1 A. AAAA", "1 3 1 A. AAAA" },
		{ "LP", "1 A.", "1 A." },
		{ "TXT", "A", "\"A\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t wire[512];
		char text[1024];
		struct rdata_error error;
		size_t bytes, n;
		uint16_t type;

		cr_assert_eq(parse(cases[i].type, cases[i].text, wire, sizeof wire, &bytes, &error, &type), ERR_OK, "%s",
			     cases[i].text);
		rdata_canonical(type, wire, bytes);
		cr_assert_eq(rdata_to_text(type, wire, bytes, text, sizeof text, &n), ERR_OK);
		cr_assert_str_eq(text, cases[i].canonical);
	}
}

Test(rdata, walking_finds_every_name)
{
	static const struct {
		const char *type, *text;
		unsigned names;
		uint16_t offset[3];
	} cases[] = {
		{ "A", "1.2.3.4", 0, { 0 } },
		{ "MX", "1 a.", 1, { 2 } },
		{ "SOA", "a. bb. 1 2 3 4 5", 2, { 0, 3 } },
		{ "RRSIG", "A 8 3 300 1 1 1 a. AAAA", 1, { 18 } },
		{ "NAPTR", "1 2 a b c d.", 1, { 10 } },
		{ "IPSECKEY", "1 3 1 a. AAAA", 1, { 3 } },
		{ "IPSECKEY", "1 1 1 1.2.3.4 AAAA", 0, { 0 } },
		{ "AMTRELAY", "1 0 3 a.", 1, { 2 } },
		{ "HIP", "2 AA AAAA a. b. c.", 3, { 8, 11, 14 } },
		{ "HIP", "2 AA AAAA", 0, { 0 } },
		{ "A6", "128 a.", 1, { 1 } },
		{ "A6", "0 ::", 0, { 0 } },
		{ "SVCB", "1 a. port=1", 1, { 2 } },
		{ "DSYNC", "CDS 1 1 a.", 1, { 5 } },
		{ "ISDN", "a", 0, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t wire[512];
		struct rdata_error error;
		struct rdata_walk walk = { 0 };
		struct rdata_name name;
		unsigned found = 0;
		size_t bytes;
		uint16_t type;

		cr_assert_eq(parse(cases[i].type, cases[i].text, wire, sizeof wire, &bytes, &error, &type), ERR_OK);
		for (; rdata_next_name(type, wire, bytes, &walk, &name); found++) {
			cr_assert_lt(found, cases[i].names, "%s", cases[i].text);
			cr_assert_eq(name.offset, cases[i].offset[found], "%s %s", cases[i].type, cases[i].text);
			cr_assert_eq(name_wire_bytes(wire + name.offset, bytes - name.offset), name.bytes);
		}
		cr_assert_eq(found, cases[i].names, "%s %s", cases[i].type, cases[i].text);
	}
}

Test(rdata, names_in_messages_are_decompressed_where_senders_might_compress)
{
	/* At 0: "x."; then the data, whose last name ends in a pointer to it. */
	static const struct {
		uint16_t type;
		uint8_t data[32];
		size_t bytes;
		bool ok;
		const char *text;
	} cases[] = {
		{ RR_NS, { 1, 'a', 0xc0, 0 }, 4, true, "a.x." },
		{ RR_MX, { 0, 1, 0xc0, 0 }, 4, true, "1 x." },
		{ RR_SOA,
		  { 1, 'a', 0xc0, 0, 0xc0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1 },
		  26,
		  true,
		  "a.x. a.x. 1 1 1 1 1" },
		{ RR_SRV, { 0, 1, 0, 1, 0, 1, 0xc0, 0 }, 8, true, "1 1 1 x." },
		{ 17, { 0xc0, 0, 0xc0, 0 }, 4, true, "x. x." },
		{ RR_DNAME, { 0xc0, 0 }, 2, false, NULL },
		{ 36, { 0, 1, 0xc0, 0 }, 4, false, NULL },
		{ RR_SVCB, { 0, 1, 0xc0, 0 }, 4, false, NULL },
		{ RR_NS, { 1, 'a', 0xc0, 0, 0 }, 5, false, NULL },
		{ RR_NS, { 1, 'a', 0xc0 }, 3, false, NULL },
		{ RR_NS, { 0xc0, 3 }, 2, false, NULL },
		{ RR_MX, { 0 }, 1, false, NULL },
		{ RR_A, { 1, 2, 3, 4 }, 4, true, "1.2.3.4" },
		{ RR_A, { 1, 2, 3, 4 }, 3, false, NULL },
		{ 20, { 1, '1' }, 2, true, "\"1\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t msg[64] = { 1, 'x', 0 }, wire[512];
		char text[1024];
		size_t bytes = 0, n;
		enum err err;

		memcpy(msg + 3, cases[i].data, cases[i].bytes);
		err = rdata_from_message(cases[i].type, msg, 3 + cases[i].bytes, 3, cases[i].bytes, wire, sizeof wire, &bytes);
		cr_assert_eq(err == ERR_OK, cases[i].ok, "case %zu: %s", i, err_text(err));
		if (!cases[i].ok)
			continue;
		cr_assert_eq(rdata_check(cases[i].type, wire, bytes), ERR_OK);
		cr_assert_eq(rdata_to_text(cases[i].type, wire, bytes, text, sizeof text, &n), ERR_OK);
		cr_assert_str_eq(text, cases[i].text);
		for (size_t max = 0; max < bytes; max++)
			cr_assert_neq(
				rdata_from_message(cases[i].type, msg, 3 + cases[i].bytes, 3, cases[i].bytes, wire, max, &n),
				ERR_OK);
		cr_assert_eq(
			rdata_from_message(cases[i].type, msg, 3 + cases[i].bytes - 1, 3, cases[i].bytes, wire, sizeof wire, &n),
			ERR_TRUNCATED);
	}
}

Test(rdata, compare_orders_left_justified_octets)
{
	cr_assert_eq(rdata_compare(NULL, 0, NULL, 0), 0);
	cr_assert_lt(rdata_compare((const uint8_t *)"a", 1, (const uint8_t *)"ab", 2), 0);
	cr_assert_gt(rdata_compare((const uint8_t *)"\xff", 1, (const uint8_t *)"\x01\x02", 2), 0);
	cr_assert_eq(rdata_compare((const uint8_t *)"ab", 2, (const uint8_t *)"ab", 2), 0);
	cr_assert_lt(rdata_compare(NULL, 0, (const uint8_t *)"a", 1), 0);
}

Test(rdata, bitmaps)
{
	static const uint8_t map[] = { 0, 2, 0x40, 0x01, 4, 1, 0x80 }; /* A, MX, TYPE1024 */

	cr_assert(rdata_bitmap_has(map, sizeof map, RR_A));
	cr_assert(rdata_bitmap_has(map, sizeof map, RR_MX));
	cr_assert(rdata_bitmap_has(map, sizeof map, 1024));
	cr_assert_not(rdata_bitmap_has(map, sizeof map, RR_NS));
	cr_assert_not(rdata_bitmap_has(map, sizeof map, RR_AAAA));
	cr_assert_not(rdata_bitmap_has(map, sizeof map, 1032));
	cr_assert_not(rdata_bitmap_has(map, sizeof map, 65535));
	cr_assert_not(rdata_bitmap_has(map, 3, RR_MX), "a bitmap that is cut short");
	cr_assert_not(rdata_bitmap_has(map, 0, RR_A));
}

Test(rdata, key_tag_of_rfc_4034_section_5_4)
{
	static const char key[] =
		"256 3 5 AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvx"
		"egXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw==";
	uint8_t wire[512];
	struct rdata_error error;
	size_t bytes;
	uint16_t type;

	cr_assert_eq(parse("DNSKEY", key, wire, sizeof wire, &bytes, &error, &type), ERR_OK);
	cr_assert_eq(rdata_key_tag(wire, bytes), 60485);
	cr_assert_eq(rdata_key_tag((const uint8_t *)"\1\0\3\1\1\2\3", 7), 0x0102, "RSA/MD5");
	cr_assert_eq(rdata_key_tag((const uint8_t *)"\1\0\3\1", 4), 0);
	cr_assert_eq(rdata_key_tag(NULL, 0), 0);
}
