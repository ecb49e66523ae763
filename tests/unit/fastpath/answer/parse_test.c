/* SPDX-License-Identifier: Apache-2.0 */
/* Headers, questions, OPT and TSIG records as they should not be, and what the response says. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "tests/unit/lib/zones.h"

#define CAPACITY 4096

static const char zone[] = "@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n";
static struct snapshot *snapshot;
static uint8_t msg[CAPACITY];
static size_t msg_bytes;
static struct answer_query query;

static void setup(void)
{
	snapshot = zones_snapshot(&(struct zones_text){ "example.", zone }, 1);
	snapshot->settings.cookie_secret_count = 1;
	snapshot->settings.flags |= SETTINGS_F_COOKIES;
}
static void teardown(void) { snapshot_destroy(snapshot); }
TestSuite(parse, .init = setup, .fini = teardown);

static void put(const char *hex)
{
	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		cr_assert_eq(sscanf(hex, "%2hhx", &msg[msg_bytes++]), 1);
		hex++;
	}
}

/* A query made of hexadecimal text; returns the verdict. */
static enum answer_verdict ask(const char *hex, bool is_tcp)
{
	msg_bytes = 0;
	put(hex);
	return zones_answer_raw(snapshot, msg, msg_bytes, CAPACITY, is_tcp, &query);
}

#define HEADER "1234 0000 0001 0000 0000 0000 "
#define HEADER_AR1 "1234 0000 0001 0000 0000 0001 "
#define NS_A "026e73 07 6578616d706c65 00 0001 0001 "
#define OPT(ttl, rdlength) "00 0029 04d0 " ttl rdlength

/* clang-format off */
struct test_case { const char *sentence, *hex; uint16_t rcode; bool has_question, has_opt; };

static const struct test_case cases[] = {
	{ "a good query", HEADER NS_A, RCODE_NOERROR, true, false },
	{ "with OPT", HEADER_AR1 NS_A OPT("00000000", "0000"), RCODE_NOERROR, true, true },
	{ "another opcode, whatever follows", "1234 1000 0001 0000 0000 0000 ff", RCODE_NOTIMP, false, false },
	{ "UPDATE", "1234 2800 0001 0000 0000 0000 " NS_A, RCODE_NOTIMP, false, false },
	{ "no question and no cookie", "1234 0000 0000 0000 0000 0000", RCODE_FORMERR, false, false },
	{ "no question but a cookie", "1234 0000 0000 0000 0000 0001" OPT("00000000", "000c") "000a 0008 0102030405060708", RCODE_NOERROR, false, true },
	{ "two questions", "1234 0000 0002 0000 0000 0000 " NS_A NS_A, RCODE_FORMERR, false, false },
	{ "question missing", HEADER, RCODE_FORMERR, false, false },
	{ "name without end", HEADER "026e73 07 6578616d70", RCODE_FORMERR, false, false },
	{ "type missing", HEADER "026e73 07 6578616d706c65 00", RCODE_FORMERR, false, false },
	{ "half a class", HEADER "026e73 07 6578616d706c65 00 0001 00", RCODE_FORMERR, false, false },
	{ "a pointer in the question", HEADER "c00c 0001 0001", RCODE_FORMERR, false, false },
	{ "a label type that was never used", HEADER "40 61 00 0001 0001", RCODE_FORMERR, false, false },
	{ "an answer in the query", "1234 0000 0001 0001 0000 0000 " NS_A "00 0001 0001 00000000 0004 01020304", RCODE_FORMERR, true, false },
	{ "authority in the query", "1234 0000 0001 0000 0001 0000 " NS_A "00 0001 0001 00000000 0004 01020304", RCODE_FORMERR, true, false },
	{ "authority with IXFR is right, IXFR is refused", "1234 0000 0001 0000 0001 0000 07 6578616d706c65 00 00fb 0001 00 0006 0001 00000000 0000",
	  RCODE_REFUSED, true, false },
	{ "a record is announced but missing", HEADER_AR1 NS_A, RCODE_FORMERR, true, false },
	{ "a record's data ends too early", HEADER_AR1 NS_A OPT("00000000", "0004") "0003", RCODE_FORMERR, true, false },
	{ "OPT below another name", HEADER_AR1 NS_A "0161 " OPT("00000000", "0000"), RCODE_FORMERR, true, false },
	{ "two OPT records", "1234 0000 0001 0000 0000 0002 " NS_A OPT("00000000", "0000") OPT("00000000", "0000"), RCODE_FORMERR, true, true },
	{ "EDNS version 1", HEADER_AR1 NS_A OPT("00010000", "0000"), RCODE_BADVERS, true, true },
	{ "EDNS version 1 with odd options", HEADER_AR1 NS_A OPT("00010000", "0002") "ffff", RCODE_BADVERS, true, true },
	{ "an unknown option is ignored", HEADER_AR1 NS_A OPT("00000000", "0006") "fde9 0002 abcd", RCODE_NOERROR, true, true },
	{ "an option header cut off", HEADER_AR1 NS_A OPT("00000000", "0003") "fde900", RCODE_FORMERR, true, true },
	{ "an option longer than the record", HEADER_AR1 NS_A OPT("00000000", "0005") "fde9 0002 ab", RCODE_FORMERR, true, true },
	{ "unknown EDNS flags are ignored", HEADER_AR1 NS_A OPT("00007fff", "0000"), RCODE_NOERROR, true, true },
	{ "a cookie of 7 octets", HEADER_AR1 NS_A OPT("00000000", "000b") "000a 0007 01020304050607", RCODE_FORMERR, true, true },
	{ "a cookie of 9 octets", HEADER_AR1 NS_A OPT("00000000", "000d") "000a 0009 010203040506070809", RCODE_FORMERR, true, true },
	{ "class ANY", HEADER "026e73 07 6578616d706c65 00 0001 00ff", RCODE_REFUSED, true, false },
	{ "class HS", HEADER "026e73 07 6578616d706c65 00 0001 0004", RCODE_REFUSED, true, false },
	{ "version.bind is off", HEADER "07 76657273696f6e 04 62696e64 00 0010 0003", RCODE_REFUSED, true, false },
	{ "type 0", HEADER "026e73 07 6578616d706c65 00 0000 0001", RCODE_FORMERR, true, false },
	{ "octets behind the message are ignored", HEADER NS_A "deadbeef", RCODE_NOERROR, true, false },
	{ "more records than a query may have", "1234 0000 0001 0000 0000 0011 " NS_A, RCODE_FORMERR, true, false },
	{ "a signature by a key we lack",
	  HEADER_AR1 NS_A "036b657900 00fa 00ff 00000000 0021 0b686d61632d73686132353600 000065800000 012c 0004 01020304 1234 0000 0000",
	  RCODE_NOTAUTH, true, false },
	{ "TSIG that is not the last record",
	  "1234 0000 0001 0000 0000 0002 " NS_A "036b657900 00fa 00ff 00000000 0021 0b686d61632d73686132353600 000065800000 012c 0004 01020304 1234 0000 0000"
	  OPT("00000000", "0000"), RCODE_FORMERR, true, false },
};
/* clang-format on */

Test(parse, table)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct test_case *c = &cases[i];

		cr_expect_eq(ask(c->hex, false), ANSWER_SEND, "%s", c->sentence);
		cr_expect_eq(query.rcode, c->rcode, "%s: rcode %u", c->sentence, query.rcode);
		cr_expect_eq(dns_flags(msg) & DNS_RCODE_MASK, c->rcode & DNS_RCODE_MASK, "%s: header", c->sentence);
		cr_expect_eq(dns_id(msg), 0x1234, "%s: id", c->sentence);
		cr_expect(dns_flags(msg) & DNS_QR, "%s: QR", c->sentence);
		cr_expect_eq(dns_qdcount(msg), c->has_question, "%s: question", c->sentence);
		cr_expect_eq(query.has_edns, c->has_opt, "%s: OPT", c->sentence);
		free(zones_message_text(msg, query.response_bytes)); /* aborts unless it parses to its last octet */
	}
}

Test(parse, silence)
{
	uint64_t before = counter_get(zones_counters(), C_DROP_RESPONSE);

	cr_expect_eq(ask("1234 8000 0001 0000 0000 0000 " NS_A, false), ANSWER_DROP, "a response gets none");
	cr_expect_eq(counter_get(zones_counters(), C_DROP_RESPONSE), before + 1);
	before = counter_get(zones_counters(), C_DROP_SHORT);
	cr_expect_eq(ask("1234 0000 0001 0000 0000 00", false), ANSWER_DROP, "eleven octets get none");
	cr_expect_eq(counter_get(zones_counters(), C_DROP_SHORT), before + 1);
}

Test(parse, flags_of_the_response)
{
	ask("1234 0110 0001 0000 0000 0000 " NS_A, false);
	cr_expect_eq(dns_flags(msg), DNS_QR | DNS_AA | DNS_RD | DNS_CD, "RD and CD are copied, RA is off");
	ask("1234 0060 0001 0000 0000 0000 " NS_A, false);
	cr_expect_eq(dns_flags(msg), DNS_QR | DNS_AA, "Z and AD are cleared");
}

Test(parse, tsig_refusal_names_the_key)
{
	ask(cases[ARRAY_LEN(cases) - 2].hex, false);
	size_t tsig = query.response_bytes - (5 + 10 + 13 + 16);

	cr_expect_eq(dns_arcount(msg), 1);
	cr_expect_arr_eq(msg + tsig, "\3key\0\0\372\0\377\0\0\0\0\0\35", 15);
	cr_expect_eq(load_be16(msg + query.response_bytes - 4), 17, "BADKEY");
	cr_expect_eq(load_be16(msg + query.response_bytes - 8), 0, "no MAC");
}

/* The OPT of the response, and its option of that code; NULL without. */
static const uint8_t *find_option(uint16_t code, uint16_t *bytes)
{
	size_t pos = query.question_end;

	for (unsigned i = dns_ancount(msg) + dns_nscount(msg); i > 0; i--)
		pos += 12u + load_be16(msg + pos + 10); /* owners are pointers in these responses */
	cr_assert_eq(msg[pos], 0);
	cr_assert_eq(load_be16(msg + pos + 1), RR_OPT);
	for (size_t at = pos + 11, end = at + load_be16(msg + pos + 9); at < end; at += 4u + load_be16(msg + at + 2))
		if (load_be16(msg + at) == code) {
			*bytes = load_be16(msg + at + 2);
			return msg + at + 4;
		}
	return NULL;
}

Test(parse, options_of_the_response)
{
	uint16_t bytes;
	const uint8_t *option;

	strcpy(snapshot->settings.identity, "ns1.test");
	snapshot->settings.flags |= SETTINGS_F_NSID | SETTINGS_F_EDE;
	snapshot->settings.tcp_idle_timeout_100ms = 100;
	ask(HEADER_AR1 NS_A OPT("00008000", "0014") "0003 0000 000a 0008 0102030405060708 000b 0000", true);
	option = find_option(EDNS_NSID, &bytes);
	cr_assert(option && bytes == 8);
	cr_expect_arr_eq(option, "ns1.test", 8);
	option = find_option(EDNS_COOKIE, &bytes);
	cr_assert(option && bytes == 24);
	cr_expect_arr_eq(option, "\1\2\3\4\5\6\7\10\1\0\0\0", 12);
	option = find_option(EDNS_TCP_KEEPALIVE, &bytes);
	cr_assert(option && bytes == 2);
	cr_expect_eq(load_be16(option), 100);
	cr_expect_null(find_option(EDNS_EDE, &bytes));
	ask(HEADER_AR1 NS_A OPT("00000000", "0004") "000b 0000", false);
	cr_expect_null(find_option(EDNS_TCP_KEEPALIVE, &bytes), "not over UDP (RFC 7828 section 3.3.2)");
	ask(HEADER_AR1 "0161 00 0001 0001" OPT("00000000", "0000"), false);
	option = find_option(EDNS_EDE, &bytes);
	cr_assert(option && bytes == 2, "REFUSED says why");
	cr_expect_eq(load_be16(option), EDE_NOT_AUTHORITATIVE);
}

/* Every truncation and many mutations of good queries: a verdict, a parsable response, no octet touched behind the capacity. */
Test(parse, damaged_queries)
{
	uint32_t random = 1;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		ask(cases[i].hex, false);
		size_t full = (msg_bytes = 0, put(cases[i].hex), msg_bytes);

		for (unsigned round = 0; round < 400; round++) {
			uint8_t exact[512 + 16];
			size_t bytes = round < full ? round : full;

			msg_bytes = 0;
			put(cases[i].hex);
			for (unsigned flips = round < full ? 0 : 1 + round % 3; flips > 0; flips--) {
				random = random * 1664525 + 1013904223;
				msg[(random >> 8) % full] ^= (uint8_t)(1u << (random & 7));
			}
			memset(exact, 0xee, sizeof exact);
			memcpy(exact, msg, bytes);
			if (zones_answer_raw(snapshot, exact, bytes, 512, round & 1, &query) == ANSWER_SEND) {
				cr_assert_leq(query.response_bytes, 512);
				free(zones_message_text(exact, query.response_bytes));
			}
			for (unsigned b = 512; b < sizeof exact; b++)
				cr_assert_eq(exact[b], 0xee, "wrote behind the capacity");
		}
	}
}
