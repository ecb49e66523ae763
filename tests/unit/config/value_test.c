/* SPDX-License-Identifier: Apache-2.0 */
#include "config/value.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define NO UINT64_MAX

Test(value, booleans)
{
	static const struct {
		const char *text;
		int value;
	} cases[] = {
		{ "true", 1 }, { "false", 0 }, { "yes", 1 }, { "no", 0 }, { "on", 1 }, { "off", 0 },	{ "True", 1 },
		{ "OFF", 0 },  { "", -1 },     { "1", -1 },  { "0", -1 }, { "y", -1 }, { "true ", -1 }, { "truee", -1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool out = cases[i].value != 1;
		cr_expect_eq(value_bool(cases[i].text, &out), cases[i].value >= 0, "%s", cases[i].text);
		cr_expect_eq(out, cases[i].value < 0 ? true : cases[i].value == 1, "%s", cases[i].text);
	}
}

typedef bool reader(const char *, uint64_t *);

static void check(reader *read, const char *text, uint64_t want)
{
	uint64_t out = 4711;
	bool ok = read(text, &out);
	cr_expect_eq(ok, want != NO, "\"%s\"", text);
	cr_expect_eq(out, want == NO ? 4711 : want, "\"%s\" gave %llu", text, (unsigned long long)out);
}

Test(value, counts)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "65535", 65535 },
		{ "18446744073709551614", UINT64_MAX - 1 },
		{ "18446744073709551616", NO },
		{ "99999999999999999999999", NO },
		{ "", NO },
		{ "-1", NO },
		{ "+1", NO },
		{ "1.0", NO },
		{ "010", NO },
		{ "00", NO },
		{ "0x10", NO },
		{ "1_000", NO },
		{ " 1", NO },
		{ "1 ", NO },
		{ "1K", NO },
		{ "one", NO },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(value_count, cases[i].text, cases[i].value);
}

Test(value, sizes)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "0", 0 },
		{ "1024", 1024 },
		{ "64K", 65536 },
		{ "64k", 65536 },
		{ "16M", 16u << 20 },
		{ "16 MiB", 16u << 20 },
		{ "1G", 1u << 30 },
		{ "2TiB", 2ull << 40 },
		{ "16777215T", 16777215ull << 40 },
		{ "16777216T", NO },
		{ "1KB", NO },
		{ "1MB", NO },
		{ "1P", NO },
		{ "K", NO },
		{ "", NO },
		{ "-1K", NO },
		{ "1.5G", NO },
		{ "1K1", NO },
		{ "1s", NO },
		{ "01K", NO },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(value_size, cases[i].text, cases[i].value);
}

Test(value, durations)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "50us", 50000 },
		{ "500ms", 500000000 },
		{ "10s", 10000000000 },
		{ "5m", 300000000000 },
		{ "2h", 7200000000000 },
		{ "1d", 86400000000000 },
		{ "10 s", 10000000000 },
		{ "10S", 10000000000 },
		{ "10", NO },
		{ "", NO },
		{ "s", NO },
		{ "1.5s", NO },
		{ "1m30s", NO },
		{ "1w", NO },
		{ "-1s", NO },
		{ "999999999999d", NO },
		{ "05s", NO },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(value_duration, cases[i].text, cases[i].value);
}

Test(value, texts_of_sizes_and_durations_are_read_back)
{
	static const uint64_t values[] = { 0,	      1,	  1023,	      1024,	  1025, 65536,
					   16u << 20, 3ull << 30, 1ull << 40, 5ull << 44, 1232, UINT64_MAX - 1 };
	static const uint64_t times[] = { 0,	      1000,	   50000,	1000000,       1500000,
					  1000000000, 60000000000, 90000000000, 3600000000000, 86400000000000 };
	char text[VALUE_TEXT_BYTES];
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		value_size_text(text, values[i]);
		check(value_size, text, values[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		value_duration_text(text, times[i]);
		check(value_duration, text, times[i]);
	}
	value_duration_text(text, 90000000000);
	cr_expect_str_eq(text, "90s");
	value_size_text(text, 16 << 20);
	cr_expect_str_eq(text, "16M");
}

static const struct {
	const char *text, *out;
	int family;
} addresses[] = {
	{ "10.99.0.1", "10.99.0.1:53", 4 },
	{ "10.99.0.1:5300", "10.99.0.1:5300", 4 },
	{ "0.0.0.0", "0.0.0.0:53", 4 },
	{ "0.0.0.0:65535", "0.0.0.0:65535", 4 },
	{ "127.0.0.1:1", "127.0.0.1:1", 4 },
	{ "::", "[::]:53", 6 },
	{ "::1", "[::1]:53", 6 },
	{ "[::]:5300", "[::]:5300", 6 },
	{ "[2001:db8::1]", "[2001:db8::1]:53", 6 },
	{ "[2001:db8::1]:53", "[2001:db8::1]:53", 6 },
	{ "2001:DB8:0:0::1", "[2001:db8::1]:53", 6 },
	{ "fe80::1", "[fe80::1]:53", 6 },
	{ "2001:db8:1:2:3:4:5:6", "[2001:db8:1:2:3:4:5:6]:53", 6 },
	{ "64:ff9b::1.2.3.4", "[64:ff9b::102:304]:53", 6 },
	{ "", NULL, 0 },
	{ "localhost", NULL, 0 },
	{ "10.0.0", NULL, 0 },
	{ "10.0.0.256", NULL, 0 },
	{ "10.0.0.1.", NULL, 0 },
	{ "10.0.0.1/24", NULL, 0 },
	{ "10.0.0.1:", NULL, 0 },
	{ "10.0.0.1:0", NULL, 0 },
	{ "10.0.0.1:65536", NULL, 0 },
	{ "10.0.0.1:53x", NULL, 0 },
	{ "10.0.0.1:-1", NULL, 0 },
	{ ":53", NULL, 0 },
	{ "[10.0.0.1]:53", NULL, 0 },
	{ "[::1", NULL, 0 },
	{ "[::1]x", NULL, 0 },
	{ "[::1]:", NULL, 0 },
	{ "[]", NULL, 0 },
	{ "[", NULL, 0 },
	{ ":::", NULL, 0 },
	{ "1::2::3", NULL, 0 },
	{ "fe80::1%eth0", NULL, 0 },
	{ "::ffff:10.0.0.1", NULL, 0 },
	{ "224.0.0.1", NULL, 0 },
	{ "255.255.255.255", NULL, 0 },
	{ "240.0.0.1", NULL, 0 },
	{ "ff02::1", NULL, 0 },
	{ "010.0.0.1", NULL, 0 },
	{ " 10.0.0.1", NULL, 0 },
	{ "1111111111111111111111111111111111111111111111111111111111111111", NULL, 0 },
};

Test(value, addresses)
{
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		struct config_address a, before;
		const char *why = NULL;
		memset(&a, 0xaa, sizeof a);
		before = a;
		bool ok = value_address(addresses[i].text, 53, &a, &why);
		cr_expect_eq(ok, addresses[i].out != NULL, "%s", addresses[i].text);
		if (!ok) {
			cr_expect_not_null(why, "%s", addresses[i].text);
			cr_expect_eq(memcmp(&a, &before, sizeof a), 0, "%s", addresses[i].text);
			continue;
		}
		cr_expect_str_eq(a.text, addresses[i].out, "%s gave %s", addresses[i].text, a.text);
		cr_expect_eq(a.family, addresses[i].family, "%s", addresses[i].text);
		cr_expect_eq(a.place.line, before.place.line);
	}
	struct config_address a = { 0 };
	const char *why;
	cr_assert(value_address("10.99.0.1", 53, &a, &why));
	cr_expect_eq(memcmp(a.address, (uint8_t[16]){ 10, 99, 0, 1 }, 16), 0, "the rest is zero");
	cr_expect_eq(a.port, 53);
}

Test(value, cpus)
{
	static const struct {
		const char *text, *out;
	} cases[] = {
		{ "0", "0," },		{ "2-5", "2,3,4,5," },
		{ "0,2-3", "0,2,3," },	{ "3,1", "3,1," },
		{ " 1 , 2 - 3", NULL }, { " 1 , 2-3 ", "1,2,3," },
		{ "7-7", "7," },	{ "1023", "1023," },
		{ "1024", NULL },	{ "", NULL },
		{ ",", NULL },		{ "1,", NULL },
		{ "3-2", NULL },	{ "1,1", NULL },
		{ "0-2,1", NULL },	{ "0-299", NULL },
		{ "a", NULL },		{ "1-", NULL },
		{ "-1", NULL },		{ "0-18446744073709551615", NULL },
		{ "1;2", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned cpus[CONFIG_MAX_CPUS];
		const char *why = NULL;
		size_t count = 0, used = 0;
		char out[64] = "";
		bool ok = value_cpus(cases[i].text, cpus, &count, &why);
		cr_expect_eq(ok, cases[i].out != NULL, "%s", cases[i].text);
		cr_expect_leq(count, CONFIG_MAX_CPUS);
		for (size_t k = 0; ok && k < count; k++)
			used += (size_t)snprintf(out + used, sizeof out - used, "%u,", cpus[k]);
		if (ok)
			cr_expect_str_eq(out, cases[i].out, "%s", cases[i].text);
		else
			cr_expect_not_null(why);
	}
	unsigned cpus[CONFIG_MAX_CPUS];
	const char *why;
	size_t count = 0;
	cr_expect(value_cpus("0-255", cpus, &count, &why) && count == 256);
	cr_expect(!value_cpus("256", cpus, &count, &why), "no more than there is room for");
}

Test(value, names)
{
	cr_expect(value_is_interface("eth0") && value_is_interface("enp3s0f1np1.100") && value_is_interface("123456789012345"));
	cr_expect(!value_is_interface("") && !value_is_interface("1234567890123456") && !value_is_interface("a b") &&
		  !value_is_interface("a/b") && !value_is_interface(".") && !value_is_interface("..") &&
		  !value_is_interface("eth0:1") && !value_is_interface("a\n") && !value_is_interface("%d"));
	cr_expect(value_is_user("skua-fastpath") && value_is_user("_dns") && value_is_user("a1_2"));
	cr_expect(!value_is_user("") && !value_is_user("1a") && !value_is_user("Root") && !value_is_user("a b") &&
		  !value_is_user("-a") && !value_is_user("a23456789012345678901234567890123"));
	cr_expect(value_is_secret("0123456789abcdefABCDEF0123456789"));
	cr_expect(!value_is_secret("") && !value_is_secret("0123456789abcdefABCDEF012345678") &&
		  !value_is_secret("0123456789abcdefABCDEF01234567890") && !value_is_secret("0123456789abcdefABCDEF012345678g"));
}

Test(value, the_nearest_word)
{
	static const char *const words[] = { "dns", "udp-payload", "mode", "busy-poll", "cpus", "max-connections", "run", NULL };
	static const struct {
		const char *text, *nearest;
	} cases[] = {
		{ "dsn", "dns" },
		{ "dn", "dns" },
		{ "DNS", "dns" },
		{ "udp_payload", "udp-payload" },
		{ "udppayload", "udp-payload" },
		{ "udp-paylod", "udp-payload" },
		{ "mdoe", "mode" },
		{ "modes", "mode" },
		{ "busypol", "busy-poll" },
		{ "cpu", "cpus" },
		{ "maxconnections", "max-connections" },
		{ "max-conections", "max-connections" },
		{ "xyz", NULL },
		{ "", NULL },
		{ "recursion", NULL },
		{ "foo", NULL },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *near = value_nearest(cases[i].text, words);
		if (cases[i].nearest)
			cr_expect(near && !strcmp(near, cases[i].nearest), "%s: %s", cases[i].text, near ? near : "none");
		else
			cr_expect_null(near, "%s: %s", cases[i].text, near);
	}
}

Test(value, prefixes)
{
	static const struct {
		const char *text;
		int family, bits; /* 0: refused */
	} cases[] = {
		{ "10.0.0.0/8", 4, 8 },
		{ "0.0.0.0/0", 4, 0 },
		{ "1.2.3.4", 4, 32 },
		{ "1.2.3.4/32", 4, 32 },
		{ "::/0", 6, 0 },
		{ "::1", 6, 128 },
		{ "2001:db8::/32", 6, 32 },
		{ "224.0.0.0/4", 4, 4 },
		{ "1.2.3.4/31", 4, 0 + 31 },
		{ "1.2.3.5/31", 0, 0 },
		{ "10.0.0.0/33", 0, 0 },
		{ "::/129", 0, 0 },
		{ "10.0.0.0/", 0, 0 },
		{ "10.0.0.0/08", 0, 0 },
		{ "/8", 0, 0 },
		{ "", 0, 0 },
		{ "10/8", 0, 0 },
		{ "::1/127", 0, 0 },
		{ "10.0.0.0/8/9", 0, 0 },
		{ "10.0.0.0 /8", 0, 0 },
		{ "x", 0, 0 },
		{ "[::1]", 0, 0 },
		{ "11111111111111111111111111111111111111111111111111111111111111111/8", 0, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config_prefix p = { .family = 77, .place = { 5, 6 } };
		const char *why = NULL;
		bool ok = value_prefix(cases[i].text, &p, &why);
		cr_expect_eq(ok, cases[i].family != 0, "%s", cases[i].text);
		cr_expect_eq(p.family, ok ? cases[i].family : 77, "%s", cases[i].text);
		cr_expect(ok ? p.bits == cases[i].bits : why != NULL, "%s", cases[i].text);
		cr_expect(p.place.line == 5 && p.place.column == 6);
	}
}

Test(value, upstreams)
{
	static const struct {
		const char *text, *address, *name; /* address NULL: refused */
		bool is_tls, has_pin;
	} cases[] = {
		{ "10.0.0.1", "10.0.0.1:53", NULL, false, false },
		{ "10.0.0.1:5300", "10.0.0.1:5300", NULL, false, false },
		{ "2001:db8::1", "[2001:db8::1]:53", NULL, false, false },
		{ "[2001:db8::1]:99", "[2001:db8::1]:99", NULL, false, false },
		{ "tls://1.1.1.1#one.one.one.one", "1.1.1.1:853", "one.one.one.one", true, false },
		{ "tls://1.1.1.1:8853#a_b-c", "1.1.1.1:8853", "a_b-c", true, false },
		{ "Tls://[::2]#a", "[::2]:853", "a", true, false },
		{ "tls://::2#sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "[::2]:853", NULL, true, true },
		{ "tls://1.1.1.1", NULL, NULL, true, false },
		{ "tls://1.1.1.1#", NULL, NULL, true, false },
		{ "tls://#a", NULL, NULL, true, false },
		{ "tls://dns.example#a", NULL, NULL, true, false },
		{ "tls://1.1.1.1#a..b", NULL, NULL, true, false },
		{ "tls://1.1.1.1#.a", NULL, NULL, true, false },
		{ "tls://1.1.1.1#a.", NULL, NULL, true, false },
		{ "tls://1.1.1.1#a b", NULL, NULL, true, false },
		{ "tls://1.1.1.1#sha256/", NULL, NULL, true, false },
		{ "tls://1.1.1.1#sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", NULL, NULL, true,
		  false }, /* bits too many */
		{ "tls://1.1.1.1#sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", NULL, NULL, true, false },
		{ "tls://1.1.1.1#sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-A=", NULL, NULL, true, false },
		{ "10.0.0.1#a", NULL, NULL, false, false },
		{ "https://10.0.0.1", NULL, NULL, false, false },
		{ "0.0.0.0", NULL, NULL, false, false },
		{ "::", NULL, NULL, false, false },
		{ "224.0.0.1", NULL, NULL, false, false },
		{ "10.0.0.1:0", NULL, NULL, false, false },
		{ "", NULL, NULL, false, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config_upstream u = { .place = { 5, 6 } };
		const char *why = NULL, *name = "untouched";
		bool ok = value_upstream(cases[i].text, &u, &name, &why);
		cr_expect_eq(ok, cases[i].address != NULL, "%s: %s", cases[i].text, why);
		if (!ok) {
			cr_expect(why && !u.address.family && !u.has_pin && strcmp(name, "untouched") == 0, "%s", cases[i].text);
			continue;
		}
		cr_expect_str_eq(u.address.text, cases[i].address);
		cr_expect(u.is_tls == cases[i].is_tls && u.has_pin == cases[i].has_pin && u.place.line == 5, "%s", cases[i].text);
		cr_expect(cases[i].name ? name && strcmp(name, cases[i].name) == 0 : !name, "%s", cases[i].text);
	}
}
