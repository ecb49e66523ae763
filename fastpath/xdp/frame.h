/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h: Ethernet, VLAN, IP and UDP headers of one query: checked, and turned round into those of its reply.
 *
 * Trust      Nothing is believed. The XDP program has filtered already, but is another party: everything is checked again, so
 *            no frame can make us read or write outside of it.
 * In place   The DNS response is written where the query stood; frame_reply() then turns the headers round. One 802.1Q tag stays
 *            as it came. TTL and hop limit 64, DF set, identification 0 (RFC 6864 section 4.1), DSCP, ECN and flow label 0.
 * Checksums  UDP's is always computed, over IPv4 too; 0 is sent as 0xffff (RFC 768, RFC 8200 section 8.1).
 * Time       About 20 ns to parse and 30 ns to turn round a reply of 100 octets. */
#pragma once
#include "answer/answer.h"
#include "base/base.h"

#define FRAME_MIN_BYTES 60u /* Ethernet without FCS; shorter replies are padded with zeros */
#define FRAME_ETH_BYTES 14u
#define FRAME_VLAN_BYTES 4u
#define FRAME_IPV4_BYTES 20u
#define FRAME_IPV6_BYTES 40u
#define FRAME_UDP_BYTES 8u
#define FRAME_DNS_HEADER_BYTES 12u

enum frame_verdict {
	FRAME_OK,
	FRAME_SHORT,	 /* ends before its headers do */
	FRAME_NOT_IP,	 /* another protocol, or more than one VLAN tag */
	FRAME_NOT_PLAIN, /* IPv4 options, a fragment, IPv6 extension headers, not UDP */
	FRAME_LENGTH,	 /* IP, UDP and frame length disagree, or there is no room for a DNS header */
	FRAME_PORT_ZERO, /* the source port is 0: nobody to answer */
	FRAME_IP_CHECKSUM,
	FRAME_UDP_CHECKSUM, /* only if asked to verify */
};

struct frame {
	uint16_t l3;	    /* offset of the IP header: 14, or 18 behind a VLAN tag */
	uint16_t dns;	    /* offset of the DNS message */
	uint16_t dns_bytes; /* of the query, from the UDP header: padding is not counted */
	uint8_t family;	    /* 4 or 6 */
};

/* Checks data[0..bytes) and fills *out and the sender's address, port, family in *client; meant only with FRAME_OK. */
MUST_USE HOT enum frame_verdict frame_parse(struct frame *out, struct answer_client *client, const uint8_t *data, size_t bytes,
					    bool verify_udp_checksum);
/* Turns the headers of data round for a DNS message of dns_bytes at data + f->dns. Returns the frame's length, at least
 * FRAME_MIN_BYTES:
 * data must have room for that. */
MUST_USE HOT size_t frame_reply(const struct frame *f, uint8_t *data, size_t dns_bytes);

/* The longest DNS message that fits a frame with room_bytes from data on and an interface with this MTU. */
ALWAYS_INLINE size_t frame_capacity(const struct frame *f, size_t room_bytes, size_t mtu_bytes)
{
	size_t headers = (size_t)f->dns - f->l3;

	return MIN(room_bytes - f->dns, mtu_bytes - MIN(headers, mtu_bytes));
}
