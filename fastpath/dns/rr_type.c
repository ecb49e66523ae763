/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rr_type.h"

#include "dns/number_inline.h"

#define F_META RR_TYPE_F_META
#define F_ONE RR_TYPE_F_SINGLETON
#define F_OLD RR_TYPE_F_OBSOLETE
#define F_IN RR_TYPE_F_CLASS_IN
#define F_PARENT RR_TYPE_F_AT_PARENT

/* clang-format off */
#define U8 { RDF_U8, 0 }
#define U16 { RDF_U16, 0 }
#define U32 { RDF_U32, 0 }
#define TTL { RDF_TTL, 0 }
#define TIME { RDF_TIME, 0 }
#define TYPE { RDF_TYPE, 0 }
#define ALG { RDF_ALGORITHM, 0 }
#define STRING { RDF_STRING, 0 }
#define STRINGS { RDF_STRINGS, 0 }
#define HEX { RDF_HEX, 0 }
#define BASE64 { RDF_BASE64, 0 }
#define UNKNOWN { RDF_UNKNOWN, 0 }
#define F(kind, flags) { kind, flags }
/* Names of the types of RFC 1035: compressed when sent; those that only have to be read compressed; the rest. */
#define NAME_1035 { RDF_NAME, RDF_F_COMPRESS | RDF_F_LOWER }
#define NAME_1035_ADD { RDF_NAME, RDF_F_COMPRESS | RDF_F_LOWER | RDF_F_ADDITIONAL }
#define NAME_3597 { RDF_NAME, RDF_F_DECOMPRESS | RDF_F_LOWER }
#define NAME_3597_ADD { RDF_NAME, RDF_F_DECOMPRESS | RDF_F_LOWER | RDF_F_ADDITIONAL }
#define NAME_LOWER { RDF_NAME, RDF_F_LOWER }
#define NAME { RDF_NAME, 0 }
#define NAME_ADD { RDF_NAME, RDF_F_ADDITIONAL }

/* The one row per type: number, mnemonic, flags of the type, fields in wire order. */
#define LOW_TYPES(ROW)                                                                             \
	ROW(1, "A", F_IN, F(RDF_IPV4, 0))                                                          \
	ROW(2, "NS", 0, NAME_1035_ADD)                                                             \
	ROW(3, "MD", F_OLD, NAME_1035)                                                             \
	ROW(4, "MF", F_OLD, NAME_1035)                                                             \
	ROW(5, "CNAME", F_ONE, NAME_1035)                                                          \
	ROW(6, "SOA", F_ONE, NAME_1035, NAME_1035, U32, TTL, TTL, TTL, TTL)                        \
	ROW(7, "MB", 0, NAME_1035)                                                                 \
	ROW(8, "MG", 0, NAME_1035)                                                                 \
	ROW(9, "MR", 0, NAME_1035)                                                                 \
	ROW(10, "NULL", 0, UNKNOWN)                                                                \
	ROW(11, "WKS", F_IN | F_OLD, F(RDF_IPV4, 0), F(RDF_WKS, 0))                                \
	ROW(12, "PTR", 0, NAME_1035)                                                               \
	ROW(13, "HINFO", 0, STRING, STRING)                                                        \
	ROW(14, "MINFO", 0, NAME_1035, NAME_1035)                                                  \
	ROW(15, "MX", 0, U16, NAME_1035_ADD)                                                       \
	ROW(16, "TXT", 0, STRINGS)                                                                 \
	ROW(17, "RP", 0, NAME_3597, NAME_3597)                                                     \
	ROW(18, "AFSDB", 0, U16, NAME_3597)                                                        \
	ROW(19, "X25", 0, F(RDF_X25, 0))                                                           \
	ROW(20, "ISDN", 0, STRING, F(RDF_STRING, RDF_F_OPTIONAL))                                  \
	ROW(21, "RT", 0, U16, NAME_3597)                                                           \
	ROW(22, "NSAP", F_IN | F_OLD, F(RDF_NSAP, 0))                                              \
	ROW(23, "NSAP-PTR", F_IN | F_OLD, NAME)                                                    \
	ROW(24, "SIG", 0, TYPE, ALG, U8, U32, TIME, TIME, U16, NAME_3597, BASE64)                  \
	ROW(25, "KEY", 0, U16, U8, ALG, F(RDF_BASE64, RDF_F_OPTIONAL))                             \
	ROW(26, "PX", F_IN, U16, NAME_3597, NAME_3597)                                             \
	ROW(27, "GPOS", 0, F(RDF_GPOS, 0), F(RDF_GPOS, 0), F(RDF_GPOS, 0))                         \
	ROW(28, "AAAA", F_IN, F(RDF_IPV6, 0))                                                      \
	ROW(29, "LOC", 0, F(RDF_LOC, 0))                                                           \
	ROW(30, "NXT", F_OLD, NAME_3597, F(RDF_BITMAP_NXT, 0))                                     \
	ROW(31, "EID", F_IN, HEX)                                                                  \
	ROW(32, "NIMLOC", F_IN, HEX)                                                               \
	ROW(33, "SRV", F_IN, U16, U16, U16, NAME_3597_ADD)                                         \
	ROW(34, "ATMA", F_IN, F(RDF_ATMA, 0))                                                      \
	ROW(35, "NAPTR", 0, U16, U16, STRING, STRING, STRING, NAME_3597)                           \
	ROW(36, "KX", F_IN, U16, NAME_LOWER)                                                       \
	ROW(37, "CERT", 0, F(RDF_CERT_TYPE, 0), U16, F(RDF_ALGORITHM, RDF_F_MNEMONIC), BASE64)     \
	ROW(38, "A6", F_IN | F_OLD, F(RDF_A6, RDF_F_LOWER))                                        \
	ROW(39, "DNAME", F_ONE, NAME_LOWER)                                                        \
	ROW(40, "SINK", 0, U8, U8, U8, F(RDF_BASE64, RDF_F_OPTIONAL))                              \
	ROW(41, "OPT", F_META, UNKNOWN)                                                            \
	ROW(42, "APL", F_IN, F(RDF_APL, 0))                                                        \
	ROW(43, "DS", F_PARENT, U16, ALG, U8, F(RDF_DS_DIGEST, 0))                                 \
	ROW(44, "SSHFP", 0, U8, U8, F(RDF_SSHFP_DIGEST, 0))                                        \
	ROW(45, "IPSECKEY", 0, F(RDF_IPSECKEY, 0), F(RDF_BASE64, RDF_F_OPTIONAL))                  \
	ROW(46, "RRSIG", 0, TYPE, ALG, U8, U32, TIME, TIME, U16, NAME_LOWER, BASE64)               \
	ROW(47, "NSEC", 0, NAME, F(RDF_BITMAP, 0))                                                 \
	ROW(48, "DNSKEY", 0, U16, U8, ALG, BASE64)                                                 \
	ROW(49, "DHCID", F_IN, BASE64)                                                             \
	ROW(50, "NSEC3", 0, U8, U8, U16, F(RDF_HEX_L8, 0), F(RDF_BASE32HEX_L8, 0),                 \
	    F(RDF_BITMAP, RDF_F_OPTIONAL))                                                         \
	ROW(51, "NSEC3PARAM", 0, U8, U8, U16, F(RDF_HEX_L8, 0))                                    \
	ROW(52, "TLSA", 0, U8, U8, U8, HEX)                                                        \
	ROW(53, "SMIMEA", 0, U8, U8, U8, HEX)                                                      \
	ROW(55, "HIP", 0, F(RDF_HIP, 0))                                                           \
	ROW(56, "NINFO", 0, STRINGS)                                                               \
	ROW(57, "RKEY", 0, U16, U8, ALG, BASE64)                                                   \
	ROW(58, "TALINK", 0, NAME, NAME)                                                           \
	ROW(59, "CDS", 0, U16, ALG, U8, F(RDF_DS_DIGEST, 0))                                       \
	ROW(60, "CDNSKEY", 0, U16, U8, ALG, BASE64)                                                \
	ROW(61, "OPENPGPKEY", 0, BASE64)                                                           \
	ROW(62, "CSYNC", 0, U32, U16, F(RDF_BITMAP, RDF_F_OPTIONAL))                               \
	ROW(63, "ZONEMD", 0, U32, U8, U8, F(RDF_ZONEMD_DIGEST, 0))                                 \
	ROW(64, "SVCB", F_IN, U16, NAME_ADD, F(RDF_SVCPARAMS, 0))                                  \
	ROW(65, "HTTPS", F_IN, U16, NAME_ADD, F(RDF_SVCPARAMS, 0))                                 \
	ROW(66, "DSYNC", 0, TYPE, F(RDF_DSYNC_SCHEME, 0), U16, NAME)                               \
	ROW(67, "HHIT", 0, BASE64)                                                                 \
	ROW(68, "BRID", 0, BASE64)                                                                 \
	ROW(99, "SPF", F_OLD, STRINGS)                                                             \
	ROW(100, "UINFO", 0, UNKNOWN)                                                              \
	ROW(101, "UID", 0, UNKNOWN)                                                                \
	ROW(102, "GID", 0, UNKNOWN)                                                                \
	ROW(103, "UNSPEC", 0, UNKNOWN)                                                             \
	ROW(104, "NID", 0, U16, F(RDF_NID64, 0))                                                   \
	ROW(105, "L32", 0, U16, F(RDF_L32, 0))                                                     \
	ROW(106, "L64", 0, U16, F(RDF_NID64, 0))                                                   \
	ROW(107, "LP", 0, U16, NAME)                                                               \
	ROW(108, "EUI48", 0, F(RDF_EUI48, 0))                                                      \
	ROW(109, "EUI64", 0, F(RDF_EUI64, 0))                                                      \
	ROW(128, "NXNAME", F_META, UNKNOWN)                                                        \
	ROW(249, "TKEY", F_META, NAME, U32, U32, U16, F(RDF_RCODE, 0), F(RDF_BASE64_L16, 0),       \
	    F(RDF_BASE64_L16, 0))                                                                  \
	ROW(250, "TSIG", F_META, NAME, F(RDF_U48, 0), U16, F(RDF_BASE64_L16, 0), U16,              \
	    F(RDF_RCODE, 0), F(RDF_BASE64_L16, 0))                                                 \
	ROW(251, "IXFR", F_META, UNKNOWN)                                                          \
	ROW(252, "AXFR", F_META, UNKNOWN)                                                          \
	ROW(253, "MAILB", F_META, UNKNOWN)                                                         \
	ROW(254, "MAILA", F_META | F_OLD, UNKNOWN)                                                 \
	ROW(255, "ANY", F_META, UNKNOWN)                                                           \
	ROW(256, "URI", 0, U16, U16, F(RDF_STRING_LONG, 0))                                        \
	ROW(257, "CAA", 0, U8, F(RDF_TAG, 0), F(RDF_STRING_LONG, 0))                \
	ROW(258, "AVC", 0, STRINGS)                                                                \
	ROW(259, "DOA", 0, U32, U32, U8, STRING, F(RDF_BASE64, RDF_F_OPTIONAL | RDF_F_DASH))       \
	ROW(260, "AMTRELAY", 0, F(RDF_AMTRELAY, 0))                                                \
	ROW(261, "RESINFO", 0, STRINGS)                                                            \
	ROW(262, "WALLET", 0, STRINGS)                                                             \
	ROW(263, "CLA", 0, STRINGS)

#define HIGH_TYPES(ROW)                                                                            \
	ROW(32768, "TA", 0, U16, ALG, U8, F(RDF_DS_DIGEST, 0))                                     \
	ROW(32769, "DLV", F_OLD, U16, ALG, U8, F(RDF_DS_DIGEST, 0))                                \
	ROW(65533, "KEYDATA", 0, TIME, TIME, TIME, U16, U8, ALG, BASE64)

#define INFO(number, mnemonic, flags, ...) { number, mnemonic, flags, { __VA_ARGS__ } },
#define INFO_AT(number, mnemonic, flags, ...) [number] = INFO(number, mnemonic, flags, __VA_ARGS__)
/* clang-format on */

static const struct rr_type_info low[] = { LOW_TYPES(INFO_AT) };
static const struct rr_type_info high[] = { HIGH_TYPES(INFO) };
/* RFC 6895 section 3.1: 0 and 128 to 255 are no data types. */
static const struct rr_type_info unknown = { 0, NULL, 0, { UNKNOWN } }, unknown_meta = { 0, NULL, F_META, { UNKNOWN } };

/* Mnemonics side by side for the search, which every record of a master file takes. */
struct key {
	char text[14];
	uint16_t type;
};
#define KEY_OF(number, mnemonic, flags, ...) { mnemonic, number },
static const struct key keys[] = { LOW_TYPES(KEY_OF) HIGH_TYPES(KEY_OF) };
static_assert(sizeof(struct key) == 16, "compared as two words");

struct mnemonic {
	const char *text;
	uint16_t value;
};
static const struct mnemonic classes[] = {
	{ "IN", RR_CLASS_IN },	 { "CH", RR_CLASS_CH },	   { "HS", RR_CLASS_HS },     { "NONE", RR_CLASS_NONE },
	{ "ANY", RR_CLASS_ANY }, { "CHAOS", RR_CLASS_CH }, { "HESIOD", RR_CLASS_HS },
};

static const char *const rcodes[] = {
	[RCODE_NOERROR] = "NOERROR",
	[RCODE_FORMERR] = "FORMERR",
	[RCODE_SERVFAIL] = "SERVFAIL",
	[RCODE_NXDOMAIN] = "NXDOMAIN",
	[RCODE_NOTIMP] = "NOTIMP",
	[RCODE_REFUSED] = "REFUSED",
	[RCODE_YXDOMAIN] = "YXDOMAIN",
	[RCODE_YXRRSET] = "YXRRSET",
	[RCODE_NXRRSET] = "NXRRSET",
	[RCODE_NOTAUTH] = "NOTAUTH",
	[RCODE_NOTZONE] = "NOTZONE",
	[11] = "DSOTYPENI",
	[RCODE_BADVERS] = "BADVERS",
	[17] = "BADKEY",
	[18] = "BADTIME",
	[19] = "BADMODE",
	[20] = "BADNAME",
	[21] = "BADALG",
	[22] = "BADTRUNC",
	[RCODE_BADCOOKIE] = "BADCOOKIE",
};

const struct rr_type_info *rr_type_info(uint16_t type)
{
	if (type < ARRAY_LEN(low) && low[type].mnemonic != NULL)
		return &low[type];
	for (size_t i = 0; i < ARRAY_LEN(high); i++)
		if (high[i].type == type)
			return &high[i];
	return type == 0 || (type >= 128 && type <= 255) ? &unknown_meta : &unknown;
}

static bool text_is(const char *text, size_t text_bytes, const char *upper)
{
	for (size_t i = 0; i < text_bytes; i++)
		if (upper[i] == '\0' || number_upper(text[i]) != upper[i])
			return false;
	return upper[text_bytes] == '\0';
}

/* "TYPE" or "CLASS" and a number. */
static bool numbered(const char *text, size_t text_bytes, const char *prefix, uint16_t *out)
{
	size_t prefix_bytes = strlen(prefix);
	uint32_t value;

	if (text_bytes <= prefix_bytes || !text_is(text, prefix_bytes, prefix) ||
	    !number_from_text(text + prefix_bytes, text_bytes - prefix_bytes, UINT16_MAX, &value))
		return false;
	*out = (uint16_t)value;
	return true;
}

bool rr_type_from_text(const char *text, size_t text_bytes, uint16_t *type)
{
	char wanted[sizeof keys[0].text] = { 0 };
	uint64_t head, key_head;

	if (text_bytes == 0 || text_bytes > sizeof wanted)
		return false;
	for (size_t i = 0; i < text_bytes; i++) {
		if (text[i] == '\0')
			return false;
		wanted[i] = number_upper(text[i]);
	}
	memcpy(&head, wanted, sizeof head);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		memcpy(&key_head, keys[i].text, sizeof key_head);
		if (head == key_head &&
		    memcmp(wanted + sizeof head, keys[i].text + sizeof head, sizeof wanted - sizeof head) == 0) {
			*type = keys[i].type;
			return true;
		}
	}
	return numbered(text, text_bytes, "TYPE", type);
}

bool rr_class_from_text(const char *text, size_t text_bytes, uint16_t *class_)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		if (text_is(text, text_bytes, classes[i].text)) {
			*class_ = classes[i].value;
			return true;
		}
	}
	return numbered(text, text_bytes, "CLASS", class_);
}

static size_t to_text(char out[static 16], const char *prefix, const char *mnemonic, uint16_t value)
{
	size_t n = strlen(prefix);

	if (mnemonic != NULL) {
		n = strlen(mnemonic);
		memcpy(out, mnemonic, n + 1);
		return n;
	}
	memcpy(out, prefix, n);
	n += number_to_text(out + n, value);
	out[n] = '\0';
	return n;
}

size_t rr_type_to_text(char out[static 16], uint16_t type) { return to_text(out, "TYPE", rr_type_info(type)->mnemonic, type); }

size_t rr_class_to_text(char out[static 16], uint16_t class_)
{
	const char *mnemonic = NULL;

	for (size_t i = 0; i < ARRAY_LEN(classes) && mnemonic == NULL; i++)
		if (classes[i].value == class_)
			mnemonic = classes[i].text;
	return to_text(out, "CLASS", mnemonic, class_);
}

const char *rcode_text(unsigned rcode)
{
	const char *text = rcode < ARRAY_LEN(rcodes) ? rcodes[rcode] : NULL;

	return text != NULL ? text : "UNASSIGNED";
}
