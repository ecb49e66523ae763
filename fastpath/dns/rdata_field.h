/* SPDX-License-Identifier: Apache-2.0 */
/* rdata_field.h: what the kinds of record data fields have to offer; private to rdata*.c.
 *
 * A kind is a row of rdata_field_ops: how it is read from text, how many octets it takes on the wire, how it is printed and,
 * where it hides names inside, how they are found. rdata.c drives them along the descriptor of the type. */
#pragma once
#include "base/base.h"
#include "base/bytes.h"
#include "dns/rdata.h"

#define RDATA_MALFORMED SIZE_MAX

/* Text being read, and wire being written. */
struct rdata_scan {
	const struct rdata_token *token;
	unsigned count, at;
	const uint8_t *origin;
	uint8_t *out;
	size_t n, max;
	struct rdata_error *error;
};

/* Text being written. Nothing more is written once it is full. */
struct rdata_print {
	char *out;
	size_t n, max; /* max leaves room for the NUL */
	bool full;
};

struct rdata_field_ops {
	/* Takes its words and appends the field's octets. Only rest-of-data fields may meet the end of the words. */
	enum err (*parse)(struct rdata_scan *s, uint8_t flags);
	/* Octets of the field at wire, of which `left` exist; RDATA_MALFORMED if they are no such field. Digest kinds read the
	 * octet in front of wire: their rows put a U8 there. */
	size_t (*measure)(const uint8_t *wire, size_t left, uint8_t flags);
	/* Prints a measured field. False if only the RFC 3597 form can show it. */
	bool (*print)(struct rdata_print *p, const uint8_t *wire, size_t bytes, uint8_t flags);
	/* NULL if there are no names inside. The first name at or behind *pos; *pos moves behind it. */
	bool (*next_name)(const uint8_t *wire, size_t bytes, size_t *pos, size_t *name_at, size_t *name_bytes);
};

const struct rdata_field_ops *rdata_field_ops(uint8_t kind);

/* measure for an octet that says how many follow it. */
static inline size_t rdata_l8_measure(const uint8_t *wire, size_t left, uint8_t flags)
{
	(void)flags;
	return left < 1 || left < 1u + wire[0] ? RDATA_MALFORMED : 1u + wire[0];
}

extern const struct rdata_field_ops rdata_ops_u8, rdata_ops_u16, rdata_ops_u32, rdata_ops_u48, rdata_ops_time, rdata_ops_ttl,
	rdata_ops_type, rdata_ops_algorithm, rdata_ops_cert_type, rdata_ops_dsync_scheme, rdata_ops_rcode;
extern const struct rdata_field_ops rdata_ops_name, rdata_ops_ipv4, rdata_ops_ipv6, rdata_ops_string, rdata_ops_strings,
	rdata_ops_string_long, rdata_ops_tag, rdata_ops_x25, rdata_ops_gpos;
extern const struct rdata_field_ops rdata_ops_hex, rdata_ops_base64, rdata_ops_ds_digest, rdata_ops_sshfp_digest,
	rdata_ops_zonemd_digest, rdata_ops_hex_l8, rdata_ops_base32hex_l8, rdata_ops_base64_l16, rdata_ops_bitmap,
	rdata_ops_bitmap_nxt, rdata_ops_eui48, rdata_ops_eui64, rdata_ops_nid64, rdata_ops_nsap, rdata_ops_atma,
	rdata_ops_unknown;
extern const struct rdata_field_ops rdata_ops_apl, rdata_ops_loc, rdata_ops_wks, rdata_ops_svcparams, rdata_ops_ipseckey,
	rdata_ops_amtrelay, rdata_ops_hip, rdata_ops_a6;

/* Fills the error: "expected WHAT, not "WORD"" or "... but the record ends here", for the word at s->at. Returns err. */
COLD enum err rdata_expected(struct rdata_scan *s, enum err err, const char *what);
COLD enum err rdata_no_space(struct rdata_scan *s);

/* The next word, not taken yet; NULL at the end. */
ALWAYS_INLINE const struct rdata_token *rdata_word(const struct rdata_scan *s)
{
	return s->at < s->count ? &s->token[s->at] : NULL;
}
/* Room for n more octets: NULL if there is none. Appending is complete when s->n was raised. */
ALWAYS_INLINE uint8_t *rdata_room(const struct rdata_scan *s, size_t n) { return n <= s->max - s->n ? s->out + s->n : NULL; }

/* A decimal word of at most max, taken. */
MUST_USE enum err rdata_scan_number(struct rdata_scan *s, uint32_t max, const char *what, uint32_t *out);
MUST_USE enum err rdata_append(struct rdata_scan *s, const void *octets, size_t n);
MUST_USE enum err rdata_append_u8(struct rdata_scan *s, uint8_t value);
MUST_USE enum err rdata_append_u16(struct rdata_scan *s, uint16_t value);
/* Hex or base64 of the words up to the end of the record, or only of the next one. *octets is what they hold. */
MUST_USE enum err rdata_scan_hex(struct rdata_scan *s, bool to_end, size_t *octets);
MUST_USE enum err rdata_scan_base64(struct rdata_scan *s, bool to_end, size_t *octets);
/* Whole text is an address. */
bool rdata_ipv4_from_text(const char *text, size_t text_bytes, uint8_t out[static 4]);
bool rdata_ipv6_from_text(const char *text, size_t text_bytes, uint8_t out[static 16]);
#define RDATA_IPV4_TEXT_BYTES 15
#define RDATA_IPV6_TEXT_BYTES 45
size_t rdata_ipv4_to_text(char out[static RDATA_IPV4_TEXT_BYTES], const uint8_t *address); /* no NUL */
size_t rdata_ipv6_to_text(char out[static RDATA_IPV6_TEXT_BYTES], const uint8_t *address);

void rdata_print_text(struct rdata_print *p, const char *text, size_t n);
void rdata_print_char(struct rdata_print *p, char c);
void rdata_print_number(struct rdata_print *p, uint64_t value);
/* A blank unless at the start. Each word of a field begins with it. */
void rdata_print_gap(struct rdata_print *p);
void rdata_print_hex(struct rdata_print *p, const uint8_t *octets, size_t n);
void rdata_print_base64(struct rdata_print *p, const uint8_t *octets, size_t n);
void rdata_print_name(struct rdata_print *p, const uint8_t *name);
/* In quotes, with escapes. */
void rdata_print_quoted(struct rdata_print *p, const uint8_t *octets, size_t n);
