/* SPDX-License-Identifier: Apache-2.0 */
/* rr_type.h: RR types, classes, rcodes, opcodes, and the one descriptor per type from which wire checks,
 * text both ways, canonical form, embedded names and compression permission follow (rr_type.c). */
#pragma once
#include "base/base.h"

/* clang-format off */
enum rr_class { RR_CLASS_IN = 1, RR_CLASS_CH = 3, RR_CLASS_HS = 4, RR_CLASS_NONE = 254, RR_CLASS_ANY = 255 };

/* IANA numbers; the complete list is in rr_type.c's table. These are named for code that treats them apart. */
enum rr_type {
	RR_A = 1, RR_NS = 2, RR_MD = 3, RR_MF = 4, RR_CNAME = 5, RR_SOA = 6, RR_NULL = 10, RR_WKS = 11, RR_PTR = 12,
	RR_HINFO = 13, RR_MINFO = 14, RR_MX = 15, RR_TXT = 16, RR_RP = 17, RR_AFSDB = 18, RR_RT = 21,
	RR_SIG = 24, RR_KEY = 25, RR_AAAA = 28, RR_NXT = 30, RR_SRV = 33, RR_NAPTR = 35, RR_DNAME = 39, RR_OPT = 41,
	RR_DS = 43, RR_RRSIG = 46, RR_NSEC = 47, RR_DNSKEY = 48, RR_NSEC3 = 50, RR_NSEC3PARAM = 51, RR_CDS = 59,
	RR_CDNSKEY = 60, RR_ZONEMD = 63, RR_SVCB = 64, RR_HTTPS = 65, RR_SPF = 99, RR_TKEY = 249, RR_TSIG = 250, RR_IXFR = 251,
	RR_AXFR = 252, RR_MAILB = 253, RR_MAILA = 254, RR_ANY = 255,
};

/* One field of record data, in wire order. */
enum rdata_field_kind {
	RDF_END = 0,
	RDF_U8, RDF_U16, RDF_U32, RDF_U48, /* decimal in text */
	RDF_TIME,                   /* u32: YYYYMMDDHHMMSS or seconds since 1970, RFC 4034 section 3.2 */
	RDF_TTL,                    /* u32: decimal or with units (SOA timers) */
	RDF_TYPE,                   /* u16: type mnemonic or TYPEnnn */
	RDF_ALGORITHM,              /* u8: DNSSEC algorithm number or mnemonic */
	RDF_CERT_TYPE,              /* u16: RFC 4398 mnemonics or number */
	RDF_DSYNC_SCHEME,           /* u8: RFC 9859, NOTIFY or number */
	RDF_RCODE,                  /* u16: mnemonic or number (TKEY, TSIG) */
	RDF_NAME,                   /* domain name; flags below */
	RDF_IPV4, RDF_IPV6,
	RDF_STRING,                 /* one <character-string> */
	RDF_STRINGS,                /* one or more up to the end */
	RDF_STRING_LONG,            /* rest of rdata as one quoted text (CAA value, URI target) */
	RDF_TAG,                    /* CAA tag: length octet and letters, unquoted */
	RDF_HEX, RDF_BASE64,        /* rest of rdata; may be split by white space; not empty unless optional */
	RDF_DS_DIGEST, RDF_SSHFP_DIGEST, RDF_ZONEMD_DIGEST, /* RDF_HEX whose length follows from the digest type in front */
	RDF_HEX_L8,                 /* length octet and hex, "-" when empty (NSEC3 salt) */
	RDF_BASE32HEX_L8,           /* length octet and base32hex (NSEC3 next hashed owner) */
	RDF_BASE64_L16,             /* u16 length and data; the length is a word of the text too (TKEY, TSIG) */
	RDF_BITMAP,                 /* type bitmap, RFC 4034 section 4.1.2; not empty unless optional */
	RDF_BITMAP_NXT,             /* RFC 2535 section 5.2: types below 128, one bit each */
	RDF_EUI48, RDF_EUI64, RDF_NID64, RDF_L32,
	RDF_NSAP, RDF_ATMA, RDF_X25, RDF_APL, RDF_LOC, RDF_WKS, RDF_SVCPARAMS, RDF_IPSECKEY, RDF_AMTRELAY, RDF_HIP, RDF_A6,
	RDF_GPOS,                   /* one <character-string> that is a decimal number (RFC 1712) */
	RDF_UNKNOWN,                /* rest, only as RFC 3597 \# text */
	RDF_KIND_COUNT_
};

enum {
	RDF_F_COMPRESS = 1,  /* a name that may be compressed when sent (RFC 3597 section 4: RFC 1035 types only) */
	RDF_F_LOWER = 2,     /* a name that is lower-cased in canonical form (RFC 4034 6.2 with RFC 6840 5.1) */
	RDF_F_ADDITIONAL = 4,/* the name whose addresses go into the additional section */
	RDF_F_OPTIONAL = 8,  /* may be absent at the end (ISDN subaddress), or empty where it takes the rest of rdata */
	RDF_F_DECOMPRESS = 16, /* a name that is never sent compressed but read so (RFC 3597 section 4: RP, AFSDB, SRV ...) */
	RDF_F_MNEMONIC = 32, /* printed as a mnemonic where there is one (CERT's algorithm) */
	RDF_F_DASH = 64,     /* empty data is "-" in text (DOA) */
};

#define RR_TYPE_MAX_FIELDS 10
struct rr_type_info {
	uint16_t type;
	const char *mnemonic;
	uint8_t flags;               /* RR_TYPE_F_ */
	struct { uint8_t kind, flags; } field[RR_TYPE_MAX_FIELDS]; /* ends with RDF_END */
};
enum {
	RR_TYPE_F_META = 1,          /* not zone data: OPT, TSIG, AXFR, ANY and so on */
	RR_TYPE_F_SINGLETON = 2,     /* at most one RR in an RRset: CNAME, DNAME, SOA */
	RR_TYPE_F_OBSOLETE = 4,
	RR_TYPE_F_CLASS_IN = 8,      /* defined for class IN only: A, AAAA, WKS, SRV, APL, SVCB ... */
	RR_TYPE_F_AT_PARENT = 16,    /* authoritative at the parent side of a cut: DS (and NSEC, RRSIG by rule) */
};

/* clang-format on */

/* Never NULL: types without a descriptor get the RFC 3597 one (mnemonic NULL, one RDF_UNKNOWN field). */
const struct rr_type_info *rr_type_info(uint16_t type);
/* Mnemonic (any case) or TYPEnnn. False if unknown. QTYPE-only mnemonics (ANY, AXFR ...) are known too. */
bool rr_type_from_text(const char *text, size_t text_bytes, uint16_t *type);
/* Mnemonic, or TYPEnnn; NUL-terminated; returns its length. */
size_t rr_type_to_text(char out[static 16], uint16_t type);
bool rr_class_from_text(const char *text, size_t text_bytes, uint16_t *class_);
size_t rr_class_to_text(char out[static 16], uint16_t class_);

/* clang-format off */
enum dns_rcode {
	RCODE_NOERROR = 0, RCODE_FORMERR = 1, RCODE_SERVFAIL = 2, RCODE_NXDOMAIN = 3, RCODE_NOTIMP = 4, RCODE_REFUSED = 5,
	RCODE_YXDOMAIN = 6, RCODE_YXRRSET = 7, RCODE_NXRRSET = 8, RCODE_NOTAUTH = 9, RCODE_NOTZONE = 10,
	RCODE_BADVERS = 16, RCODE_BADCOOKIE = 23,
};
enum dns_opcode { OPCODE_QUERY = 0, OPCODE_IQUERY = 1, OPCODE_STATUS = 2, OPCODE_NOTIFY = 4, OPCODE_UPDATE = 5, OPCODE_DSO = 6 };
/* clang-format on */
const char *rcode_text(unsigned rcode); /* never NULL */
