/* SPDX-License-Identifier: Apache-2.0 */
/* rdata.h: record data, driven by the descriptor of its type (rr_type.h). "wire" is uncompressed
 * record data as stored in zones: names whole, case kept. Nothing here allocates or reads globals
 * other than the constant tables. */
#pragma once
#include "base/base.h"
#include "dns/name.h"
#include "dns/rr_type.h"

#define RDATA_MAX_BYTES 65535

/* One word of a master-file entry. text borrows the caller's buffer, escapes not yet resolved. */
struct rdata_token {
	const char *text;
	uint32_t bytes;
	bool quoted;
};
struct rdata_error {
	unsigned token;	    /* index of the offending token; == count when something is missing */
	char expected[160]; /* an English sentence: what was expected and what stands there */
};

/* Text to wire. Accepts the RFC 3597 form ("\# length hex") for every type, and checks it against the
 * descriptor. Relative names get origin. *out_bytes is the length written to out (out_max <= 65535 used).
 * ERR_SYNTAX, ERR_RANGE or ERR_NOSPACE with *error filled. */
MUST_USE enum err rdata_from_text(uint16_t type, const struct rdata_token *token, unsigned count, const uint8_t *origin,
				  uint8_t *out, size_t out_max, size_t *out_bytes, struct rdata_error *error);
/* Wire to text on one line, as named-compilezone and Knot print it (RFC 3597 form when the type is unknown
 * or the data does not fit its descriptor). Writes at most out_max with a NUL; ERR_NOSPACE if it does not fit. */
MUST_USE enum err rdata_to_text(uint16_t type, const uint8_t *wire, size_t wire_bytes, char *out, size_t out_max,
				size_t *out_bytes);
/* Checks wire against the descriptor: lengths, names, bitmaps, SvcParams order, ... */
MUST_USE enum err rdata_check(uint16_t type, const uint8_t *wire, size_t wire_bytes);
/* From a message: decompresses names where the type's RFC let senders compress (RFC 3597 section 4), then checks. */
MUST_USE enum err rdata_from_message(uint16_t type, const uint8_t *msg, size_t msg_bytes, size_t pos, size_t rdata_bytes,
				     uint8_t *out, size_t out_max, size_t *out_bytes);
/* Canonical form in place (RFC 4034 section 6.2, RFC 6840 section 5.1). wire must pass rdata_check. */
void rdata_canonical(uint16_t type, uint8_t *wire, size_t wire_bytes);
/* Canonical order of two rdata of one type: as left-justified octet strings (RFC 4034 section 6.3). */
int rdata_compare(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes);

/* Walks the embedded names of checked wire data. Start with *pos = 0; each call finds the next name:
 * true and its offset, length and RDF_F_ flags, or false at the end. */
struct rdata_name {
	uint16_t offset, bytes;
	uint8_t flags;
};
struct rdata_walk {
	uint16_t pos_, inside_;
	uint8_t field_;
};
bool rdata_next_name(uint16_t type, const uint8_t *wire, size_t wire_bytes, struct rdata_walk *walk, struct rdata_name *out);

/* NSEC/NSEC3/CSYNC bitmap: whether `type` is set. */
bool rdata_bitmap_has(const uint8_t *bitmap, size_t bitmap_bytes, uint16_t type);
/* Key tag of DNSKEY rdata (RFC 4034 appendix B). */
uint16_t rdata_key_tag(const uint8_t *wire, size_t wire_bytes);
