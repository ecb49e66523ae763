/* SPDX-License-Identifier: Apache-2.0 */
/* message.h: the fixed parts of a DNS message (RFC 1035 section 4.1, RFC 6891). Host byte order everywhere
 * but in the message itself. */
#pragma once
#include "base/base.h"
#include "base/bytes.h"

#define DNS_HEADER_BYTES 12
#define DNS_MESSAGE_MAX_BYTES 65535
#define DNS_UDP_PLAIN_BYTES 512 /* without EDNS */
#define DNS_POINTER_MAX 0x3fff

/* clang-format off */
/* Octets 2 and 3 as one host-order word. */
enum dns_flags {
	DNS_QR = 0x8000, DNS_OPCODE_MASK = 0x7800, DNS_OPCODE_SHIFT = 11, DNS_AA = 0x0400, DNS_TC = 0x0200, DNS_RD = 0x0100,
	DNS_RA = 0x0080, DNS_Z = 0x0040, DNS_AD = 0x0020, DNS_CD = 0x0010, DNS_RCODE_MASK = 0x000f,
};
/* clang-format on */
ALWAYS_INLINE uint16_t dns_id(const uint8_t *msg) { return load_be16(msg); }
ALWAYS_INLINE uint16_t dns_flags(const uint8_t *msg) { return load_be16(msg + 2); }
ALWAYS_INLINE uint16_t dns_qdcount(const uint8_t *msg) { return load_be16(msg + 4); }
ALWAYS_INLINE uint16_t dns_ancount(const uint8_t *msg) { return load_be16(msg + 6); }
ALWAYS_INLINE uint16_t dns_nscount(const uint8_t *msg) { return load_be16(msg + 8); }
ALWAYS_INLINE uint16_t dns_arcount(const uint8_t *msg) { return load_be16(msg + 10); }

#define EDNS_VERSION 0
#define EDNS_DO 0x8000		/* in the OPT TTL's low 16 bits */
#define EDNS_OPT_FIXED_BYTES 11 /* root owner, type, class, ttl, rdlength */
/* clang-format off */
enum edns_option { EDNS_NSID = 3, EDNS_CLIENT_SUBNET = 8, EDNS_EXPIRE = 9, EDNS_COOKIE = 10, EDNS_TCP_KEEPALIVE = 11,
		   EDNS_PADDING = 12, EDNS_EDE = 15 };
/* Extended DNS errors (RFC 8914). */
enum ede_code { EDE_NONE = -1, EDE_OTHER = 0, EDE_STALE = 3, EDE_CACHED_ERROR = 13, EDE_NOT_READY = 14, EDE_PROHIBITED = 18,
		EDE_STALE_NXDOMAIN = 19, EDE_NOT_AUTHORITATIVE = 20, EDE_NOT_SUPPORTED = 21, EDE_NO_REACHABLE_AUTHORITY = 22,
		EDE_NETWORK_ERROR = 23, EDE_INVALID_DATA = 24 };
/* clang-format on */
