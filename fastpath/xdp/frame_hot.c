/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums (RFC 1071) are summed in the machine's byte order over 64-bit words: the one's complement sum does not care, so only
 * constants are written as they stand in memory. Lengths are added as host integers and converted once. */
#include "xdp/frame.h"

#include "base/bytes.h"

enum { ETH_TYPE_IPV4 = 0x0800, ETH_TYPE_IPV6 = 0x86dd, ETH_TYPE_VLAN = 0x8100 };
enum { IP_PROTOCOL_UDP = 17, IPV4_VERSION_IHL = 0x45, IPV4_DF = 0x4000, REPLY_TTL = 64 };
enum { ETH_SOURCE = 6, ETH_TYPE = 12 };
enum { IPV4_TOTAL = 2, IPV4_FRAGMENT = 6, IPV4_PROTOCOL = 9, IPV4_SOURCE = 12, IPV4_DESTINATION = 16 };
enum { IPV6_PAYLOAD = 4, IPV6_NEXT = 6, IPV6_SOURCE = 8, IPV6_DESTINATION = 24 };
enum { UDP_LENGTH = 4, UDP_CHECKSUM = 6 };

ALWAYS_INLINE uint16_t load16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}
ALWAYS_INLINE uint32_t load32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
ALWAYS_INLINE uint64_t load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}
ALWAYS_INLINE void store16(uint8_t *p, uint16_t v) { memcpy(p, &v, 2); }
ALWAYS_INLINE void store32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }
ALWAYS_INLINE void store64(uint8_t *p, uint64_t v) { memcpy(p, &v, 8); }
/* A 16-bit number as it stands in memory. */
ALWAYS_INLINE uint32_t word(uint16_t host) { return be16_from(host).wire_; }

ALWAYS_INLINE uint64_t add_carry(uint64_t sum, uint64_t v)
{
	sum += v;
	return sum + (sum < v);
}

/* At least 8 octets. */
ALWAYS_INLINE uint64_t sum_bytes(const uint8_t *p, size_t bytes)
{
	uint64_t a = 0, b = 0;
	const uint8_t *end = p + bytes;
	size_t rest = bytes & 7;

	for (; (size_t)(end - p) >= 16; p += 16) {
		a = add_carry(a, load64(p));
		b = add_carry(b, load64(p + 8));
	}
	if (end - p >= 8)
		a = add_carry(a, load64(p));
	/* The last 1 to 7 octets: the word that ends there, without what was summed already. */
	if (rest)
		b = add_carry(b, load64(end - 8) >> (64 - 8 * rest));
	return add_carry(a, b);
}

ALWAYS_INLINE uint16_t fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16); /* 33 bits before, 18 after */
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Addresses, length and protocol as UDP sums them. */
ALWAYS_INLINE uint64_t pseudo_sum(uint64_t address_sum, size_t udp_bytes)
{
	return add_carry(address_sum, (uint64_t)word((uint16_t)udp_bytes) + word(IP_PROTOCOL_UDP));
}

static bool is_udp_checksum_right(const uint8_t *udp, size_t udp_bytes, uint64_t address_sum, bool may_be_absent)
{
	if (load16(udp + UDP_CHECKSUM) == 0)
		return may_be_absent;
	return fold(add_carry(pseudo_sum(address_sum, udp_bytes), sum_bytes(udp, udp_bytes))) == 0xffff;
}

static enum frame_verdict parse_udp(struct frame *out, struct answer_client *client, const struct frame *f, const uint8_t *data,
				    size_t ip_payload_bytes)
{
	const uint8_t *udp = data + f->dns - FRAME_UDP_BYTES;
	size_t udp_bytes = load_be16(udp + UDP_LENGTH);
	uint16_t port = load_be16(udp);

	if (udp_bytes != ip_payload_bytes || udp_bytes < FRAME_UDP_BYTES + FRAME_DNS_HEADER_BYTES)
		return FRAME_LENGTH;
	if (port == 0)
		return FRAME_PORT_ZERO;
	client->port = port;
	client->family = f->family;
	client->transport = TRANSPORT_UDP;
	*out = *f;
	out->dns_bytes = (uint16_t)(udp_bytes - FRAME_UDP_BYTES);
	return FRAME_OK;
}

static enum frame_verdict parse_ipv4(struct frame *out, struct answer_client *client, size_t l3, const uint8_t *data,
				     size_t bytes, bool verify)
{
	struct frame f = { .l3 = (uint16_t)l3, .dns = (uint16_t)(l3 + FRAME_IPV4_BYTES + FRAME_UDP_BYTES), .family = 4 };
	const uint8_t *ip = data + l3;
	size_t total;
	uint64_t header_sum;
	enum frame_verdict v;

	if (bytes < f.dns)
		return FRAME_SHORT;
	if (ip[0] != IPV4_VERSION_IHL || ip[IPV4_PROTOCOL] != IP_PROTOCOL_UDP ||
	    load_be16(ip + IPV4_FRAGMENT) & ~(unsigned)IPV4_DF)
		return FRAME_NOT_PLAIN;
	total = load_be16(ip + IPV4_TOTAL);
	if (total < FRAME_IPV4_BYTES || total > bytes - l3)
		return FRAME_LENGTH;
	header_sum = add_carry(add_carry(load64(ip), load64(ip + 8)), load32(ip + 16));
	if (fold(header_sum) != 0xffff)
		return FRAME_IP_CHECKSUM;
	v = parse_udp(out, client, &f, data, total - FRAME_IPV4_BYTES);
	if (v != FRAME_OK)
		return v;
	if (verify && !is_udp_checksum_right(data + f.dns - FRAME_UDP_BYTES, total - FRAME_IPV4_BYTES,
					     (uint64_t)load32(ip + IPV4_SOURCE) + load32(ip + IPV4_DESTINATION), true))
		return FRAME_UDP_CHECKSUM;
	memset(client->address, 0, sizeof(client->address));
	memcpy(client->address, ip + IPV4_SOURCE, 4);
	return FRAME_OK;
}

static enum frame_verdict parse_ipv6(struct frame *out, struct answer_client *client, size_t l3, const uint8_t *data,
				     size_t bytes, bool verify)
{
	struct frame f = { .l3 = (uint16_t)l3, .dns = (uint16_t)(l3 + FRAME_IPV6_BYTES + FRAME_UDP_BYTES), .family = 6 };
	const uint8_t *ip = data + l3;
	size_t payload;
	enum frame_verdict v;

	if (bytes < f.dns)
		return FRAME_SHORT;
	if (ip[0] >> 4 != 6 || ip[IPV6_NEXT] != IP_PROTOCOL_UDP)
		return FRAME_NOT_PLAIN;
	payload = load_be16(ip + IPV6_PAYLOAD);
	if (payload > bytes - l3 - FRAME_IPV6_BYTES)
		return FRAME_LENGTH;
	v = parse_udp(out, client, &f, data, payload);
	if (v != FRAME_OK)
		return v;
	if (verify && !is_udp_checksum_right(data + f.dns - FRAME_UDP_BYTES, payload, sum_bytes(ip + IPV6_SOURCE, 32), false))
		return FRAME_UDP_CHECKSUM;
	memcpy(client->address, ip + IPV6_SOURCE, 16);
	return FRAME_OK;
}

enum frame_verdict frame_parse(struct frame *out, struct answer_client *client, const uint8_t *data, size_t bytes,
			       bool verify_udp_checksum)
{
	size_t l3 = FRAME_ETH_BYTES;
	uint16_t type;

	if (bytes < FRAME_ETH_BYTES + FRAME_VLAN_BYTES)
		return FRAME_SHORT;
	type = load_be16(data + ETH_TYPE);
	if (type == ETH_TYPE_VLAN) {
		l3 += FRAME_VLAN_BYTES;
		type = load_be16(data + ETH_TYPE + FRAME_VLAN_BYTES);
	}
	if (type == ETH_TYPE_IPV4)
		return parse_ipv4(out, client, l3, data, bytes, verify_udp_checksum);
	if (type == ETH_TYPE_IPV6)
		return parse_ipv6(out, client, l3, data, bytes, verify_udp_checksum);
	return FRAME_NOT_IP;
}

/* Swaps the addresses in place and returns their sum, which swapping does not change. */
ALWAYS_INLINE uint64_t reply_ipv4(uint8_t *ip, size_t total)
{
	uint32_t source = load32(ip + IPV4_SOURCE), destination = load32(ip + IPV4_DESTINATION);
	uint64_t addresses = (uint64_t)source + destination;
	uint64_t sum = addresses + word(IPV4_VERSION_IHL << 8) + word((uint16_t)total) + word(IPV4_DF) +
		       word(REPLY_TTL << 8 | IP_PROTOCOL_UDP);

	store32(ip, word(IPV4_VERSION_IHL << 8) | word((uint16_t)total) << 16);
	store32(ip + 4, word(IPV4_DF) << 16);
	store32(ip + 8, word(REPLY_TTL << 8 | IP_PROTOCOL_UDP) | (uint32_t)(uint16_t)~fold(sum) << 16);
	store32(ip + IPV4_SOURCE, destination);
	store32(ip + IPV4_DESTINATION, source);
	return addresses;
}

ALWAYS_INLINE uint64_t reply_ipv6(uint8_t *ip, size_t payload)
{
	uint64_t s0 = load64(ip + IPV6_SOURCE), s1 = load64(ip + IPV6_SOURCE + 8);
	uint64_t d0 = load64(ip + IPV6_DESTINATION), d1 = load64(ip + IPV6_DESTINATION + 8);

	store32(ip, word(0x6000));
	store32(ip + IPV6_PAYLOAD, word((uint16_t)payload) | word(IP_PROTOCOL_UDP << 8 | REPLY_TTL) << 16);
	store64(ip + IPV6_SOURCE, d0);
	store64(ip + IPV6_SOURCE + 8, d1);
	store64(ip + IPV6_DESTINATION, s0);
	store64(ip + IPV6_DESTINATION + 8, s1);
	return add_carry(add_carry(s0, s1), add_carry(d0, d1));
}

size_t frame_reply(const struct frame *f, uint8_t *data, size_t dns_bytes)
{
	uint8_t *ip = data + f->l3, *udp = data + f->dns - FRAME_UDP_BYTES;
	size_t udp_bytes = FRAME_UDP_BYTES + dns_bytes, end = f->dns + dns_bytes;
	uint64_t sum;
	uint32_t ports;
	uint16_t checksum, mac4;
	uint32_t mac0;

	memcpy(&mac0, data, 4);
	memcpy(&mac4, data + 4, 2);
	memcpy(data, data + ETH_SOURCE, 6);
	memcpy(data + ETH_SOURCE, &mac0, 4);
	memcpy(data + ETH_SOURCE + 4, &mac4, 2);
	sum = f->family == 4 ? reply_ipv4(ip, FRAME_IPV4_BYTES + udp_bytes) : reply_ipv6(ip, udp_bytes);
	ports = load32(udp);
	ports = ports << 16 | ports >> 16;
	store32(udp, ports);
	store16(udp + UDP_LENGTH, (uint16_t)word((uint16_t)udp_bytes));
	/* The header's own fields: ports, and the length once more. */
	sum = add_carry(pseudo_sum(sum, udp_bytes), (uint64_t)ports + word((uint16_t)udp_bytes));
	sum = add_carry(sum, sum_bytes(udp + FRAME_UDP_BYTES, dns_bytes));
	checksum = (uint16_t)~fold(sum);
	store16(udp + UDP_CHECKSUM, checksum ? checksum : 0xffff);
	if (end >= FRAME_MIN_BYTES)
		return end;
	memset(data + end, 0, FRAME_MIN_BYTES - end);
	return FRAME_MIN_BYTES;
}
