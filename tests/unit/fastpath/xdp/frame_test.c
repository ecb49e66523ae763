/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/frame.h"

#include "tests/unit/fastpath/xdp/packet.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST 1800u

static const struct {
	int family, vlan;
	const char *name;
} kinds[] = {
	{ 4, -1, "IPv4" },
	{ 6, -1, "IPv6" },
	{ 4, 1, "IPv4 in a VLAN" },
	{ 6, 4094, "IPv6 in a VLAN" },
};

static struct packet_options options(size_t kind, size_t dns_bytes)
{
	return (struct packet_options){ .family = kinds[kind].family,
					.vlan = kinds[kind].vlan,
					.source_port = 40000,
					.destination_port = 53,
					.dns_bytes = dns_bytes };
}

/* xorshift: the same octets in every run. */
static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

static void fill(uint8_t *p, size_t bytes, uint32_t *state)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(next_random(state) >> 11);
}

Test(frame, every_reply_length_has_right_headers_and_checksums)
{
	uint32_t seed = 1;

	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
		for (size_t bytes = FRAME_DNS_HEADER_BYTES; bytes <= LONGEST; bytes++) {
			uint8_t query[2048] = { 0 }, reply[2048], dns[64];
			struct packet_options o = options(kind, 40);
			struct answer_client client;
			struct frame f;
			const char *wrong;
			size_t frame_bytes;

			fill(dns, sizeof(dns), &seed);
			o.source_port = (uint16_t)(next_random(&seed) | 1);
			frame_bytes = packet_make(query, &o, dns);
			cr_assert_eq(frame_parse(&f, &client, query, frame_bytes, true), FRAME_OK);
			memcpy(reply, query, sizeof(reply));
			fill(reply + f.dns, bytes, &seed);
			frame_bytes = frame_reply(&f, reply, bytes);
			wrong = packet_check_reply(query, &o, reply, frame_bytes, bytes);
			cr_assert_null(wrong, "%s, %zu octets: %s", kinds[kind].name, bytes, wrong);
		}
}

Test(frame, payloads_that_are_hard_on_carries)
{
	static const uint8_t octets[] = { 0x00, 0xff, 0x80, 0x7f, 0x01, 0xfe };

	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
		for (size_t i = 0; i < ARRAY_LEN(octets); i++)
			for (size_t bytes = FRAME_DNS_HEADER_BYTES; bytes < 300; bytes++) {
				uint8_t query[2048] = { 0 }, reply[2048], dns[64] = { 0 };
				struct packet_options o = options(kind, 20);
				struct answer_client client;
				struct frame f;
				const char *wrong;
				size_t frame_bytes = packet_make(query, &o, dns);

				cr_assert_eq(frame_parse(&f, &client, query, frame_bytes, true), FRAME_OK);
				memcpy(reply, query, sizeof(reply));
				memset(reply + f.dns, octets[i], bytes);
				frame_bytes = frame_reply(&f, reply, bytes);
				wrong = packet_check_reply(query, &o, reply, frame_bytes, bytes);
				cr_assert_null(wrong, "%s, %zu of %02x: %s", kinds[kind].name, bytes, octets[i], wrong);
			}
}

Test(frame, a_udp_checksum_of_zero_is_sent_as_ffff)
{
	/* One of the 65,536 values of two payload octets sums to zero: tried for both families. */
	for (size_t kind = 0; kind < 2; kind++) {
		unsigned found = 0;

		for (unsigned v = 0; v <= 0xffff; v++) {
			uint8_t query[256], reply[256], dns[20] = { 0 };
			struct packet_options o = options(kind, 20);
			struct answer_client client;
			struct frame f;
			size_t frame_bytes = packet_make(query, &o, dns);

			cr_assert_eq(frame_parse(&f, &client, query, frame_bytes, true), FRAME_OK);
			memcpy(reply, query, sizeof(reply));
			packet_put16(reply + f.dns, v);
			frame_bytes = frame_reply(&f, reply, 20);
			cr_assert_gt(frame_bytes, 0u);
			cr_assert_neq(packet_get16(reply + f.dns - 2), 0);
			found += packet_get16(reply + f.dns - 2) == 0xffff;
		}
		cr_expect_geq(found, 1u, "no payload reached the case");
	}
}

Test(frame, the_client_is_read_from_the_packet)
{
	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
		uint8_t query[256], dns[20] = { 0 };
		struct packet_options o = options(kind, 20);
		struct answer_client client;
		struct frame f;
		size_t bytes = packet_make(query, &o, dns);
		static const uint8_t v4[16] = { 192, 0, 2, 1 }, v6[16] = { 0x20, 1, 0x0d, 0xb8, [15] = 1 };

		memset(&client, 0xaa, sizeof(client));
		cr_assert_eq(frame_parse(&f, &client, query, bytes, false), FRAME_OK);
		cr_expect_arr_eq(client.address, o.family == 4 ? v4 : v6, 16);
		cr_expect_eq(client.port, 40000);
		cr_expect_eq(client.family, o.family);
		cr_expect_eq(client.transport, TRANSPORT_UDP);
		cr_expect_eq(f.dns_bytes, 20);
		cr_expect_eq(f.dns, (o.vlan >= 0 ? 18 : 14) + (o.family == 4 ? 20 : 40) + 8);
	}
}

struct refusal {
	const char *name;
	int kind;
	uint16_t at;
	uint8_t count, octet[4];
	enum frame_verdict verdict;
	bool fix_ip_checksum;
};

Test(frame, what_does_not_fit_is_refused)
{
	static const struct refusal refusals[] = {
		{ "ARP", 0, 12, 2, { 8, 6 }, FRAME_NOT_IP, false },
		{ "two VLAN tags", 2, 16, 2, { 0x81, 0 }, FRAME_NOT_IP, false },
		{ "802.1ad", 2, 12, 2, { 0x88, 0xa8 }, FRAME_NOT_IP, false },
		{ "IPv4 options", 0, 14, 1, { 0x46 }, FRAME_NOT_PLAIN, true },
		{ "IPv4 version 6", 0, 14, 1, { 0x65 }, FRAME_NOT_PLAIN, true },
		{ "MF", 0, 20, 1, { 0x20 }, FRAME_NOT_PLAIN, true },
		{ "offset", 0, 21, 1, { 0x01 }, FRAME_NOT_PLAIN, true },
		{ "TCP", 0, 23, 1, { 6 }, FRAME_NOT_PLAIN, true },
		{ "IPv4 total length one too many", 0, 16, 2, { 0, 69 }, FRAME_LENGTH, true },
		{ "IPv4 total length one too few", 0, 16, 2, { 0, 67 }, FRAME_LENGTH, true },
		{ "IPv4 total length 19", 0, 16, 2, { 0, 19 }, FRAME_LENGTH, true },
		{ "IPv4 checksum", 0, 24, 1, { 0 }, FRAME_IP_CHECKSUM, false },
		{ "IPv4 TTL changed without the checksum", 0, 22, 1, { 9 }, FRAME_IP_CHECKSUM, false },
		{ "UDP length one too many", 0, 38, 2, { 0, 49 }, FRAME_LENGTH, false },
		{ "UDP length one too few", 0, 38, 2, { 0, 47 }, FRAME_LENGTH, false },
		{ "UDP length 7", 0, 38, 2, { 0, 7 }, FRAME_LENGTH, false },
		{ "port 0", 0, 34, 2, { 0, 0 }, FRAME_PORT_ZERO, false },
		{ "UDP checksum", 0, 50, 2, { 1, 2 }, FRAME_UDP_CHECKSUM, false },
		{ "no UDP checksum over IPv4", 0, 40, 2, { 0, 0 }, FRAME_OK, false },
		{ "no UDP checksum over IPv6", 1, 60, 2, { 0, 0 }, FRAME_UDP_CHECKSUM, false },
		{ "IPv6 fragment", 1, 20, 1, { 44 }, FRAME_NOT_PLAIN, false },
		{ "IPv6 version 4", 1, 14, 1, { 0x40 }, FRAME_NOT_PLAIN, false },
		{ "IPv6 length one too many", 1, 18, 2, { 0, 49 }, FRAME_LENGTH, false },
		{ "IPv6 length one too few", 1, 18, 2, { 0, 47 }, FRAME_LENGTH, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct refusal *r = &refusals[i];
		uint8_t query[256], dns[40] = { 1 };
		struct packet_options o = options((size_t)r->kind, sizeof(dns));
		struct answer_client client = { .port = 77 };
		struct frame f = { .dns = 99 };
		size_t bytes = packet_make(query, &o, dns);
		enum frame_verdict v;

		memcpy(query + r->at, r->octet, r->count);
		if (r->fix_ip_checksum) {
			packet_put16(query + 24, 0);
			packet_put16(query + 24, ~packet_fold(packet_sum(0, query + 14, 20)) & 0xffff);
		}
		v = frame_parse(&f, &client, query, bytes, true);
		cr_expect_eq(v, r->verdict, "%s: verdict %d", r->name, v);
	}
}

Test(frame, no_octet_behind_the_end_is_read)
{
	/* Each length in memory of exactly that size: ASan and valgrind see an octet too many. */
	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
		uint8_t query[256], dns[20] = { 0 };
		struct packet_options o = options(kind, sizeof(dns));
		size_t whole = packet_make(query, &o, dns);

		for (size_t bytes = 0; bytes <= whole; bytes++) {
			uint8_t *exact = malloc(bytes ? bytes : 1);
			struct answer_client client;
			struct frame f;
			enum frame_verdict v;

			memcpy(exact, query, bytes);
			v = frame_parse(&f, &client, exact, bytes, true);
			cr_expect_eq(v == FRAME_OK, bytes == whole, "%s cut to %zu of %zu: %d", kinds[kind].name, bytes, whole,
				     v);
			free(exact);
		}
	}
}

Test(frame, padding_is_no_part_of_the_message)
{
	for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
		for (size_t pad = 0; pad < 40; pad++) {
			uint8_t query[256], dns[17] = { 0 };
			struct packet_options o = options(kind, sizeof(dns));
			struct answer_client client;
			struct frame f;
			size_t bytes;

			o.padded_bytes = 59 + pad;
			bytes = packet_make(query, &o, dns);
			cr_assert_eq(frame_parse(&f, &client, query, bytes, true), FRAME_OK);
			cr_expect_eq(f.dns_bytes, 17);
		}
}

Test(frame, capacity_is_bounded_by_frame_and_mtu)
{
	struct frame v4 = { .l3 = 14, .dns = 42, .family = 4 }, v6 = { .l3 = 18, .dns = 66, .family = 6 };

	cr_expect_eq(frame_capacity(&v4, 1792, 1500), 1472);
	cr_expect_eq(frame_capacity(&v6, 1792, 1500), 1452);
	cr_expect_eq(frame_capacity(&v4, 1792, 9000), 1750);
	cr_expect_eq(frame_capacity(&v6, 1792, 9000), 1726);
	cr_expect_eq(frame_capacity(&v4, 1792, 0), 0);
}
