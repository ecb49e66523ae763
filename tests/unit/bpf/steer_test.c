/* SPDX-License-Identifier: Apache-2.0 */
/* The XDP program over packet fixtures by BPF_PROG_TEST_RUN: for each the action, and the one counter that moves. A fixture is a
 * right query with octets inserted, overwritten or cut off. Root only, skipped otherwise. */
#include "base/base.h"
#include "bpf/steer_maps.h"
#include "steer.skel.h"
#include "tests/unit/fastpath/xdp/packet.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <criterion/criterion.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum base { V4, V6, V4_VLAN, V6_VLAN };
struct patch {
	uint16_t at;
	uint8_t count, octet[8];
};
struct fixture {
	const char *name;
	enum base base;
	enum steer_counter counter; /* TAKEN: XDP_REDIRECT; any other: XDP_PASS */
	struct patch insert;	    /* before `at` */
	struct patch patch[3];	    /* count 0: none */
	uint16_t dns_bytes;	    /* 0: 40 */
	uint16_t padded_bytes;
	uint16_t cut_bytes; /* 0: whole; else the frame ends here */
};

/* Offsets in the plain frames: IPv4 at 14, UDP at 34, DNS at 42; IPv6 at 14, UDP at 54, DNS at 62; 4 more with a tag. */
static const struct fixture fixtures[] = {
	{ "an IPv4 query", V4, STEER_TAKEN, .dns_bytes = 40 },
	{ "an IPv6 query", V6, STEER_TAKEN, .dns_bytes = 40 },
	{ "an IPv4 query with a VLAN tag", V4_VLAN, STEER_TAKEN, .dns_bytes = 40 },
	{ "an IPv6 query with a VLAN tag", V6_VLAN, STEER_TAKEN, .dns_bytes = 40 },
	{ "59 octets padded to 60: the root's NS without EDNS", V4, STEER_TAKEN, .dns_bytes = 17, .padded_bytes = 60 },
	{ "padded to 200", V6, STEER_TAKEN, .dns_bytes = 12, .padded_bytes = 200 },
	{ "a header alone, 12 octets", V4, STEER_TAKEN, .dns_bytes = 12, .padded_bytes = 60 },
	{ "a large query", V4, STEER_TAKEN, .dns_bytes = 1472 },
	{ "DF set", V4, STEER_TAKEN, .patch = { { 20, 1, { 0x40 } } } },
	{ "DSCP and ECN set", V4, STEER_TAKEN, .patch = { { 15, 1, { 0xff } } } },
	{ "from the DNS port itself", V4, STEER_TAKEN, .patch = { { 34, 2, { 0, 53 } } } },
	{ "another opcode, QR clear", V4, STEER_TAKEN, .patch = { { 44, 1, { 0x28 } } } },
	{ "a link-local IPv6 source", V6, STEER_TAKEN, .patch = { { 22, 2, { 0xfe, 0x80 } } } },

	{ "ARP", V4, STEER_NOT_IP, .patch = { { 12, 2, { 0x08, 0x06 } } } },
	{ "LLDP", V4, STEER_NOT_IP, .patch = { { 12, 2, { 0x88, 0xcc } } } },
	{ "ARP in a VLAN", V4_VLAN, STEER_NOT_IP, .patch = { { 16, 2, { 0x08, 0x06 } } } },
	{ "two 802.1Q tags", V4_VLAN, STEER_VLAN, .insert = { 12, 4, { 0x81, 0, 0, 5 } } },
	{ "an 802.1ad tag", V4, STEER_VLAN, .insert = { 12, 4, { 0x88, 0xa8, 0, 5 } } },
	{ "802.1Q in 802.1ad (QinQ)", V4_VLAN, STEER_VLAN, .insert = { 12, 4, { 0x88, 0xa8, 0, 5 } } },
	{ "802.1ad in 802.1Q", V4_VLAN, STEER_VLAN, .insert = { 16, 4, { 0x88, 0xa8, 0, 5 } } },
	{ "a frame that ends in its VLAN tag", V4_VLAN, STEER_VLAN, .cut_bytes = 16 },
	{ "to the broadcast MAC address", V4, STEER_MULTICAST, .patch = { { 0, 6, { 255, 255, 255, 255, 255, 255 } } } },
	{ "to a multicast MAC address", V6, STEER_MULTICAST, .patch = { { 0, 2, { 0x33, 0x33 } } } },

	{ "TCP over IPv4", V4, STEER_NOT_UDP, .patch = { { 23, 1, { 6 } } } },
	{ "ICMP", V4, STEER_NOT_UDP, .patch = { { 23, 1, { 1 } } } },
	{ "TCP over IPv6", V6, STEER_NOT_UDP, .patch = { { 20, 1, { 6 } } } },
	{ "ICMPv6", V6, STEER_NOT_UDP, .patch = { { 20, 1, { 58 } } } },
	{ "IPv4 options", V4, STEER_OPTIONS, .insert = { 34, 4, { 1, 1, 1, 1 } }, .patch = { { 14, 1, { 0x46 } } } },
	{ "IHL below 5", V4, STEER_BAD_LENGTH, .patch = { { 14, 1, { 0x44 } } } },
	{ "version 5 behind the IPv4 type", V4, STEER_BAD_LENGTH, .patch = { { 14, 1, { 0x55 } } } },
	{ "version 4 behind the IPv6 type", V6, STEER_BAD_LENGTH, .patch = { { 14, 1, { 0x40 } } } },
	{ "first fragment (MF)", V4, STEER_FRAGMENT, .patch = { { 20, 1, { 0x20 } } } },
	{ "a later fragment", V4, STEER_FRAGMENT, .patch = { { 21, 1, { 0x10 } } } },
	{ "a later fragment with a high offset", V4, STEER_FRAGMENT, .patch = { { 20, 1, { 0x1f } } } },
	{ "the reserved flag", V4, STEER_FRAGMENT, .patch = { { 20, 1, { 0x80 } } } },
	{ "an IPv6 fragment header", V6, STEER_FRAGMENT, .patch = { { 20, 1, { 44 } } } },
	{ "hop-by-hop options", V6, STEER_EXT_HEADER, .patch = { { 20, 1, { 0 } } } },
	{ "a routing header", V6, STEER_EXT_HEADER, .patch = { { 20, 1, { 43 } } } },
	{ "destination options", V6, STEER_EXT_HEADER, .patch = { { 20, 1, { 60 } } } },
	{ "an authentication header", V6, STEER_EXT_HEADER, .patch = { { 20, 1, { 51 } } } },

	{ "another IPv4 address", V4, STEER_OTHER_ADDRESS, .patch = { { 33, 1, { 54 } } } },
	{ "IPv4 address 0.0.0.0", V4, STEER_OTHER_ADDRESS, .patch = { { 30, 4, { 0 } } } },
	{ "another IPv6 address", V6, STEER_OTHER_ADDRESS, .patch = { { 53, 1, { 54 } } } },
	{ "IPv6 address ::", V6, STEER_OTHER_ADDRESS, .patch = { { 38, 8, { 0 } }, { 46, 8, { 0 } } } },
	{ "another port", V4, STEER_OTHER_PORT, .patch = { { 36, 2, { 0, 54 } } } },
	{ "port 53 in the wrong octet", V6, STEER_OTHER_PORT, .patch = { { 56, 2, { 53, 0 } } } },
	{ "the second listed port on the first's address", V4, STEER_OTHER_ADDRESS, .patch = { { 36, 2, { 0x14, 0xe9 } } } },

	{ "IPv4 length beyond the frame", V4, STEER_BAD_LENGTH, .patch = { { 16, 2, { 0, 69 } } } },
	{ "IPv4 length below its header", V4, STEER_BAD_LENGTH, .patch = { { 16, 2, { 0, 19 } } } },
	{ "IPv4 length 0", V4, STEER_BAD_LENGTH, .patch = { { 16, 2, { 0, 0 } } } },
	{ "IPv6 length beyond the frame", V6, STEER_BAD_LENGTH, .patch = { { 18, 2, { 0, 49 } } } },
	{ "IPv6 length 0 (jumbogram)", V6, STEER_BAD_LENGTH, .patch = { { 18, 2, { 0, 0 } } } },
	{ "UDP length one more than IP's payload", V4, STEER_BAD_LENGTH, .patch = { { 38, 2, { 0, 49 } } } },
	{ "UDP length one less than IP's payload", V4, STEER_BAD_LENGTH, .patch = { { 38, 2, { 0, 47 } } } },
	{ "UDP length 0", V6, STEER_BAD_LENGTH, .patch = { { 58, 2, { 0, 0 } } } },
	{ "11 octets of DNS", V4, STEER_BAD_LENGTH, .dns_bytes = 11, .padded_bytes = 60 },
	{ "no DNS at all", V6, STEER_BAD_LENGTH, .patch = { { 18, 2, { 0, 8 } }, { 58, 2, { 0, 8 } } } },
	{ "a frame that ends in its IPv4 header", V4, STEER_BAD_LENGTH, .cut_bytes = 33 },
	{ "a frame that ends in its IPv6 header", V6, STEER_BAD_LENGTH, .cut_bytes = 53 },
	{ "a frame that ends in its UDP header", V4, STEER_BAD_LENGTH, .cut_bytes = 41 },
	{ "a frame that ends in its DNS header", V6, STEER_BAD_LENGTH, .cut_bytes = 73 },
	{ "a frame one octet short", V4, STEER_BAD_LENGTH, .cut_bytes = 81 },

	{ "a response over IPv4", V4, STEER_RESPONSE, .patch = { { 44, 1, { 0x80 } } } },
	{ "a response over IPv6", V6, STEER_RESPONSE, .patch = { { 64, 1, { 0x85 } } } },
	{ "source port 0", V4, STEER_MARTIAN, .patch = { { 34, 2, { 0, 0 } } } },
	{ "from 0.0.0.0", V4, STEER_MARTIAN, .patch = { { 26, 4, { 0 } } } },
	{ "from 127.0.0.1", V4, STEER_MARTIAN, .patch = { { 26, 4, { 127, 0, 0, 1 } } } },
	{ "from a multicast address", V4, STEER_MARTIAN, .patch = { { 26, 4, { 224, 0, 0, 1 } } } },
	{ "from 240.0.0.1", V4, STEER_MARTIAN, .patch = { { 26, 4, { 240, 0, 0, 1 } } } },
	{ "from 255.255.255.255", V4, STEER_MARTIAN, .patch = { { 26, 4, { 255, 255, 255, 255 } } } },
	{ "from the destination itself", V4, STEER_MARTIAN, .patch = { { 26, 4, { 192, 0, 2, 53 } } } },
	{ "from 223.255.255.254", V4, STEER_TAKEN, .patch = { { 26, 4, { 223, 255, 255, 254 } } } },
	{ "from ::1", V6, STEER_MARTIAN, .patch = { { 22, 4, { 0 } } } },
	{ "from ff02::1", V6, STEER_MARTIAN, .patch = { { 22, 2, { 0xff, 0x02 } } } },
	{ "from ::ffff:192.0.2.1", V6, STEER_MARTIAN, .patch = { { 22, 4, { 0 } }, { 32, 2, { 0xff, 0xff } } } },
	{ "from the IPv6 destination itself", V6, STEER_MARTIAN, .patch = { { 37, 1, { 0x53 } } } },
};

static struct steer *steer;
static int xsk = -1;

static void set(int fd, const void *key, const void *value) { cr_assert_eq(bpf_map_update_elem(fd, key, value, BPF_ANY), 0); }

static void list4(const char *address, uint16_t port, uint8_t value)
{
	struct steer_key4 key = { .port = htons(port) };

	cr_assert_eq(inet_pton(AF_INET, address, &key.address), 1);
	set(bpf_map__fd(steer->maps.addresses4), &key, &value);
}

static void list6(const char *address, uint16_t port, uint8_t value)
{
	struct steer_key6 key = { .port = htons(port) };

	cr_assert_eq(inet_pton(AF_INET6, address, key.address), 1);
	set(bpf_map__fd(steer->maps.addresses6), &key, &value);
}

static void switch_to(uint32_t flags)
{
	struct steer_settings settings = { .flags = flags };
	uint32_t zero = 0;

	set(bpf_map__fd(steer->maps.settings), &zero, &settings);
}

static void start(void)
{
	uint32_t zero = 0;

	cr_assert_eq(geteuid(), 0, "unit tests run as root");
	steer = steer__open_and_load();
	cr_assert_not_null(steer);
	list4("192.0.2.53", 53, STEER_LISTED);
	list4("0.0.0.0", 53, STEER_PORT_ONLY);
	list4("192.0.2.99", 5353, STEER_LISTED);
	list4("0.0.0.0", 5353, STEER_PORT_ONLY);
	list6("2001:db8::53", 53, STEER_LISTED);
	list6("::", 53, STEER_PORT_ONLY);
	switch_to(STEER_F_ON);
	xsk = socket(AF_XDP, SOCK_RAW, 0);
	cr_assert_geq(xsk, 0);
	set(bpf_map__fd(steer->maps.xsks), &zero, &xsk);
}

static void end(void)
{
	if (steer)
		steer__destroy(steer);
	if (xsk >= 0)
		close(xsk);
}

static void read_counters(uint64_t out[STEER_COUNTER_COUNT_])
{
	uint64_t per_cpu[1024];

	cr_assert_leq(libbpf_num_possible_cpus(), 1024);
	for (uint32_t i = 0; i < STEER_COUNTER_COUNT_; i++) {
		out[i] = 0;
		cr_assert_eq(bpf_map_lookup_elem(bpf_map__fd(steer->maps.counters), &i, per_cpu), 0);
		for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
			out[i] += per_cpu[cpu];
	}
}

static size_t build(uint8_t *out, const struct fixture *f)
{
	struct packet_options o = {
		.family = f->base == V4 || f->base == V4_VLAN ? 4 : 6,
		.vlan = f->base >= V4_VLAN ? 100 : -1,
		.source_port = 5000,
		.destination_port = 53,
		.dns_bytes = f->dns_bytes ? f->dns_bytes : 40,
		.padded_bytes = f->padded_bytes,
	};
	uint8_t dns[1500] = { 0x12, 0x34, 0x01, 0x00, 0, 1 };
	size_t bytes = packet_make(out, &o, dns);

	if (f->insert.count) {
		memmove(out + f->insert.at + f->insert.count, out + f->insert.at, bytes - f->insert.at);
		memcpy(out + f->insert.at, f->insert.octet, f->insert.count);
		bytes += f->insert.count;
	}
	for (size_t i = 0; i < ARRAY_LEN(f->patch); i++)
		memcpy(out + f->patch[i].at, f->patch[i].octet, f->patch[i].count);
	return f->cut_bytes ? f->cut_bytes : bytes;
}

/* Runs one and checks action and counters. */
static void check(const struct fixture *f, enum steer_counter want)
{
	uint8_t packet[2048], after[2048];
	uint64_t before[STEER_COUNTER_COUNT_], now[STEER_COUNTER_COUNT_];
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = packet, .data_out = after, .data_size_out = sizeof(after), .repeat = 1);

	run.data_size_in = (uint32_t)build(packet, f);
	read_counters(before);
	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(steer->progs.steer), &run), 0, "%s", f->name);
	read_counters(now);
	cr_expect_eq(run.retval, (uint32_t)(want == STEER_TAKEN ? XDP_REDIRECT : XDP_PASS), "%s: action %u", f->name, run.retval);
	for (uint32_t i = 0; i < STEER_COUNTER_COUNT_; i++)
		cr_expect_eq(now[i] - before[i], i == (uint32_t)want, "%s: counter %u moved by %llu", f->name, i,
			     (unsigned long long)(now[i] - before[i]));
	cr_expect_eq(run.data_size_out, run.data_size_in, "%s: length changed", f->name);
	cr_expect_arr_eq(after, packet, run.data_size_in, "%s: octets changed", f->name);
}

Test(steer, every_fixture_takes_its_way_and_moves_its_counter, .init = start, .fini = end)
{
	for (size_t i = 0; i < ARRAY_LEN(fixtures); i++)
		check(&fixtures[i], fixtures[i].counter);
}

/* The same way and counters, whether or not the settings repeat what the maps list. */
Test(steer, listed_first_or_not_makes_no_difference, .init = start, .fini = end)
{
	struct steer_settings settings = { .flags = STEER_F_ON };
	uint32_t zero = 0;

	settings.first4[1] = (struct steer_key4){ .port = htons(5353) };
	settings.first4[3] = (struct steer_key4){ .port = htons(53) };
	settings.first6[1] = (struct steer_key6){ .port = htons(53) };
	cr_assert_eq(inet_pton(AF_INET, "192.0.2.99", &settings.first4[1].address), 1);
	cr_assert_eq(inet_pton(AF_INET, "192.0.2.53", &settings.first4[3].address), 1);
	cr_assert_eq(inet_pton(AF_INET6, "2001:db8::53", settings.first6[1].address), 1);
	set(bpf_map__fd(steer->maps.settings), &zero, &settings);
	for (size_t i = 0; i < ARRAY_LEN(fixtures); i++)
		check(&fixtures[i], fixtures[i].counter);
}

Test(steer, what_is_listed_first_needs_no_map, .init = start, .fini = end)
{
	struct steer_settings settings = { .flags = STEER_F_ON };
	struct steer_key4 key = { .port = htons(53) };
	uint32_t zero = 0;

	cr_assert_eq(inet_pton(AF_INET, "192.0.2.53", &key.address), 1);
	settings.first4[2] = key;
	set(bpf_map__fd(steer->maps.settings), &zero, &settings);
	cr_assert_eq(bpf_map_delete_elem(bpf_map__fd(steer->maps.addresses4), &key), 0);
	check(&fixtures[0], STEER_TAKEN);
}

/* Settings that were never written: no packet, not even one to 0.0.0.0 port 0, is on their list. */
Test(steer, port_0_is_never_listed, .init = start, .fini = end)
{
	static const struct fixture nowhere = { "to 0.0.0.0 port 0", V4, STEER_OTHER_PORT,
						.patch = { { 30, 4, { 0 } }, { 36, 2, { 0 } } } };
	static const struct fixture nowhere6 = { "to :: port 0", V6, STEER_OTHER_PORT,
						 .patch = { { 38, 8, { 0 } }, { 46, 8, { 0 } }, { 56, 2, { 0 } } } };

	check(&nowhere, STEER_OTHER_PORT);
	check(&nowhere6, STEER_OTHER_PORT);
}

Test(steer, an_empty_slot_passes, .init = start, .fini = end)
{
	uint32_t zero = 0;

	cr_assert_eq(bpf_map_delete_elem(bpf_map__fd(steer->maps.xsks), &zero), 0);
	for (size_t i = 0; i < ARRAY_LEN(fixtures); i++)
		check(&fixtures[i], fixtures[i].counter == STEER_TAKEN ? STEER_NO_SOCKET : fixtures[i].counter);
}

Test(steer, a_closed_socket_leaves_its_slot_empty, .init = start, .fini = end)
{
	close(xsk);
	xsk = -1;
	check(&fixtures[0], STEER_NO_SOCKET);
}

Test(steer, switched_off_everything_passes, .init = start, .fini = end)
{
	switch_to(0);
	for (size_t i = 0; i < ARRAY_LEN(fixtures); i++)
		check(&fixtures[i], STEER_OFF);
}

Test(steer, an_unlisted_address_is_left_alone_at_once, .init = start, .fini = end)
{
	struct steer_key4 key = { .port = htons(53) };

	inet_pton(AF_INET, "192.0.2.53", &key.address);
	cr_assert_eq(bpf_map_delete_elem(bpf_map__fd(steer->maps.addresses4), &key), 0);
	check(&fixtures[0], STEER_OTHER_ADDRESS);
	check(&fixtures[1], STEER_TAKEN);
}

Test(steer, every_port_but_the_listed_ones_passes, .init = start, .fini = end)
{
	for (uint32_t port = 0; port <= 0xffff; port += port < 60 ? 1 : 97) {
		struct fixture f = { "port", V4, STEER_OTHER_PORT,
				     .patch = { { 36, 2, { (uint8_t)(port >> 8), (uint8_t)port } } } };

		check(&f, port == 53 ? STEER_TAKEN : port == 5353 ? STEER_OTHER_ADDRESS : STEER_OTHER_PORT);
	}
}
