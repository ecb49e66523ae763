/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h: Ethernet frames for tests, made and checked in the plainest way, with nothing of the code under test. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct packet_options {
	int family; /* 4 or 6 */
	int vlan;   /* VLAN id, or -1 */
	uint16_t source_port, destination_port;
	size_t dns_bytes;
	size_t padded_bytes; /* at least this long: Ethernet padding */
};

static inline void packet_put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}
static inline unsigned packet_get16(const uint8_t *p) { return (unsigned)p[0] << 8 | p[1]; }

/* RFC 1071, two octets at a time. */
static inline uint32_t packet_sum(uint32_t sum, const uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += packet_get16(p + i);
	if (bytes & 1)
		sum += (uint32_t)p[bytes - 1] << 8;
	return sum;
}
static inline unsigned packet_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline unsigned packet_udp_sum(const uint8_t *ip, int family, const uint8_t *udp, size_t udp_bytes)
{
	uint32_t sum = packet_sum(0, family == 4 ? ip + 12 : ip + 8, family == 4 ? 8 : 32);

	return packet_fold(packet_sum(sum + (uint32_t)udp_bytes + 17, udp, udp_bytes));
}

/* Writes a frame with right checksums around the DNS message; returns its length. Client 192.0.2.1 / 2001:db8::1, server
 * 192.0.2.53 / 2001:db8::53, MACs 02:..:01 and 02:..:53. */
static inline size_t packet_make(uint8_t *out, const struct packet_options *o, const uint8_t *dns)
{
	static const uint8_t macs[12] = { 2, 0, 0, 0, 0, 0x53, 2, 0, 0, 0, 0, 1 };
	uint8_t *ip = out + 14, *udp;
	size_t udp_bytes = 8 + o->dns_bytes, end;

	memcpy(out, macs, 12);
	if (o->vlan >= 0) {
		packet_put16(out + 12, 0x8100);
		packet_put16(out + 14, (unsigned)o->vlan | 0x6000);
		ip += 4;
	}
	packet_put16(ip - 2, o->family == 4 ? 0x0800 : 0x86dd);
	if (o->family == 4) {
		static const uint8_t addresses[8] = { 192, 0, 2, 1, 192, 0, 2, 53 };

		memset(ip, 0, 20);
		ip[0] = 0x45;
		ip[1] = 0x10;
		packet_put16(ip + 2, (unsigned)(20 + udp_bytes));
		packet_put16(ip + 4, 0xbeef);
		ip[8] = 57;
		ip[9] = 17;
		memcpy(ip + 12, addresses, 8);
		packet_put16(ip + 10, ~packet_fold(packet_sum(0, ip, 20)) & 0xffff);
		udp = ip + 20;
	} else {
		static const uint8_t prefix[8] = { 0x20, 0x01, 0x0d, 0xb8 };

		memset(ip, 0, 40);
		ip[0] = 0x61;
		ip[3] = 0x77;
		packet_put16(ip + 4, (unsigned)udp_bytes);
		ip[6] = 17;
		ip[7] = 57;
		memcpy(ip + 8, prefix, 8);
		memcpy(ip + 24, prefix, 8);
		ip[23] = 1;
		ip[39] = 0x53;
		udp = ip + 40;
	}
	packet_put16(udp, o->source_port);
	packet_put16(udp + 2, o->destination_port);
	packet_put16(udp + 4, (unsigned)udp_bytes);
	packet_put16(udp + 6, 0);
	memcpy(udp + 8, dns, o->dns_bytes);
	packet_put16(udp + 6, ~packet_udp_sum(ip, o->family, udp, udp_bytes) & 0xffff);
	if (packet_get16(udp + 6) == 0)
		packet_put16(udp + 6, 0xffff);
	end = (size_t)(udp - out) + udp_bytes;
	if (end < o->padded_bytes) {
		memset(out + end, 0xa5, o->padded_bytes - end);
		end = o->padded_bytes;
	}
	return end;
}

/* NULL if reply is the right turn-round of the query made with o for dns_bytes of answer; else what is wrong. */
static inline const char *packet_check_reply(const uint8_t *query, const struct packet_options *o, const uint8_t *reply,
					     size_t reply_bytes, size_t dns_bytes)
{
	size_t l3 = o->vlan >= 0 ? 18 : 14, ip_bytes = o->family == 4 ? 20 : 40, udp_bytes = 8 + dns_bytes;
	const uint8_t *ip = reply + l3, *udp = ip + ip_bytes, *old = query + l3;
	size_t want = l3 + ip_bytes + udp_bytes;

	if (reply_bytes != (want < 60 ? 60 : want))
		return "frame length";
	if (memcmp(reply, query + 6, 6) != 0 || memcmp(reply + 6, query, 6) != 0)
		return "MAC addresses";
	if (memcmp(reply + 12, query + 12, l3 - 12) != 0)
		return "VLAN tag or type";
	if (o->family == 4) {
		if (ip[0] != 0x45 || ip[1] != 0 || packet_get16(ip + 2) != 20 + udp_bytes)
			return "IPv4 version, DSCP or total length";
		if (packet_get16(ip + 4) != 0 || packet_get16(ip + 6) != 0x4000 || ip[8] != 64 || ip[9] != 17)
			return "IPv4 identification, DF, TTL or protocol";
		if (packet_fold(packet_sum(0, ip, 20)) != 0xffff)
			return "IPv4 checksum";
		if (memcmp(ip + 12, old + 16, 4) != 0 || memcmp(ip + 16, old + 12, 4) != 0)
			return "IPv4 addresses";
	} else {
		static const uint8_t first[4] = { 0x60 };

		if (memcmp(ip, first, 4) != 0 || packet_get16(ip + 4) != udp_bytes || ip[6] != 17 || ip[7] != 64)
			return "IPv6 version, flow label, length, next header or hop limit";
		if (memcmp(ip + 8, old + 24, 16) != 0 || memcmp(ip + 24, old + 8, 16) != 0)
			return "IPv6 addresses";
	}
	if (packet_get16(udp) != o->destination_port || packet_get16(udp + 2) != o->source_port ||
	    packet_get16(udp + 4) != udp_bytes)
		return "ports or UDP length";
	if (packet_get16(udp + 6) == 0 || packet_udp_sum(ip, o->family, udp, udp_bytes) != 0xffff)
		return "UDP checksum";
	for (size_t i = want; i < reply_bytes; i++)
		if (reply[i])
			return "padding is not zero";
	return NULL;
}
