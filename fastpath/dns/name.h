/* SPDX-License-Identifier: Apache-2.0 */
/* name.h: domain names in wire form (RFC 1035 section 3.1): length octets and labels, ending in the
 * root's zero octet; 1 to NAME_MAX_BYTES octets, labels of 1 to 63.
 *
 * A "wire name" below is uncompressed and valid unless a function says that it validates. Length
 * octets are below 'A', so a whole wire name can be lower-cased blindly, length octets included.
 * Nothing here allocates; the caller owns every buffer. Case is folded for ASCII only (RFC 4343). */
#pragma once
#include "base/base.h"

#define NAME_MAX_BYTES 255
#define NAME_MAX_LABELS 127 /* without the root */
#define NAME_MAX_LABEL_BYTES 63
#define NAME_TEXT_MAX_BYTES 1024 /* every octet escaped as \DDD, dots, NUL */
#define NAME_MAX_POINTERS 126	 /* compression pointers followed for one name */

/* Length in octets of a name that starts at wire, root octet included, reading at most max_bytes.
 * 0 if it is not a valid uncompressed name within max_bytes. */
size_t name_wire_bytes(const uint8_t *wire, size_t max_bytes);
/* Number of labels of a wire name, the root not counted. */
unsigned name_labels(const uint8_t *name);
/* Offset of the suffix that drops `drop` labels; drop <= name_labels(name). */
size_t name_suffix_offset(const uint8_t *name, unsigned drop);

/* Writes the lower-cased form of name[0..name_bytes) to out (may be name itself). */
void name_lower(uint8_t *out, const uint8_t *name, size_t name_bytes);
/* Hash of a lower-cased wire name (XXH3, 64 bits, no seed: images on disk depend on it). */
uint64_t name_hash(const uint8_t *lower, size_t name_bytes);
/* Equality of wire names, case ignored. */
bool name_equal(const uint8_t *a, const uint8_t *b);
/* Canonical order of RFC 4034 section 6.1: negative, zero or positive. */
int name_compare(const uint8_t *a, const uint8_t *b);
/* Whether name equals parent or lies below it, case ignored. */
bool name_is_at_or_below(const uint8_t *name, const uint8_t *parent);
/* Whether the leftmost label is exactly "*" (RFC 4592). */
bool name_is_wildcard(const uint8_t *name);
/* Number of trailing labels that a and b share, case ignored. */
unsigned name_common_labels(const uint8_t *a, const uint8_t *b);
/* out = left's labels without its root, followed by right. Bytes written, 0 if longer than a name may be. */
size_t name_concat(uint8_t out[static NAME_MAX_BYTES], const uint8_t *left, size_t left_bytes_without_root, const uint8_t *right);
/* Replaces the suffix `from` of name by `to` (DNAME, RFC 6672): bytes written to out, 0 if too long. */
size_t name_replace_suffix(uint8_t out[static NAME_MAX_BYTES], const uint8_t *name, const uint8_t *from, const uint8_t *to);

/* Reads a possibly compressed name at *pos of a message, moves *pos behind it, writes the uncompressed
 * name (case kept) and returns its length. 0 on any error: a label type other than 00 or 11, a pointer
 * that does not go strictly backwards, too many pointers, a name that is too long, the end of the message. */
size_t name_from_message(uint8_t out[static NAME_MAX_BYTES], const uint8_t *msg, size_t msg_bytes, size_t *pos);

/* Master-file text (RFC 1035 section 5.1: \DDD and \X escapes) to wire. "@" is not treated here.
 * A relative text (no final dot) gets origin appended; origin NULL makes a relative name an error.
 * Returns the wire length, 0 on error with *why set to a static English sentence. */
size_t name_from_text(uint8_t out[static NAME_MAX_BYTES], const char *text, size_t text_bytes, const uint8_t *origin,
		      const char **why);
/* Presentation form with a final dot and a NUL; returns its length without the NUL. "." for the root.
 * Octets outside 33..126 become \DDD; . ; \ " ( ) @ $ are escaped by a backslash. */
size_t name_to_text(char out[static NAME_TEXT_MAX_BYTES], const uint8_t *name);

/* Compression of names while writing one message: a small table of what was written where. Linear in
 * NAME_COMPRESS_SLOTS, for slow paths and tests; the hot path uses prepared blocks (table/zone_image.h). */
#define NAME_COMPRESS_SLOTS 64
struct name_compressor {
	unsigned count_;
	uint16_t offset_[NAME_COMPRESS_SLOTS];
};
void name_compressor_init(struct name_compressor *c);
/* Writes name at msg + *pos within max_bytes of msg, using pointers to earlier suffixes (case ignored)
 * where `compress`, and remembering its suffixes below offset 0x4000. False, and *pos unmoved, if it does not fit. */
MUST_USE bool name_to_message(struct name_compressor *c, uint8_t *msg, size_t max_bytes, size_t *pos, const uint8_t *name,
			      bool compress);
