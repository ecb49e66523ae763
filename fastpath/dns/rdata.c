/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rdata.h"

#include "base/printable.h"
#include "dns/name_inline.h"
#include "dns/number_inline.h"
#include "dns/rdata_field.h"

#include <stdio.h>

static const struct rdata_field_ops *const kinds[RDF_KIND_COUNT_] = {
	[RDF_U8] = &rdata_ops_u8,
	[RDF_U16] = &rdata_ops_u16,
	[RDF_U32] = &rdata_ops_u32,
	[RDF_U48] = &rdata_ops_u48,
	[RDF_TIME] = &rdata_ops_time,
	[RDF_TTL] = &rdata_ops_ttl,
	[RDF_TYPE] = &rdata_ops_type,
	[RDF_ALGORITHM] = &rdata_ops_algorithm,
	[RDF_CERT_TYPE] = &rdata_ops_cert_type,
	[RDF_DSYNC_SCHEME] = &rdata_ops_dsync_scheme,
	[RDF_RCODE] = &rdata_ops_rcode,
	[RDF_NAME] = &rdata_ops_name,
	[RDF_IPV4] = &rdata_ops_ipv4,
	[RDF_IPV6] = &rdata_ops_ipv6,
	[RDF_STRING] = &rdata_ops_string,
	[RDF_STRINGS] = &rdata_ops_strings,
	[RDF_STRING_LONG] = &rdata_ops_string_long,
	[RDF_TAG] = &rdata_ops_tag,
	[RDF_HEX] = &rdata_ops_hex,
	[RDF_BASE64] = &rdata_ops_base64,
	[RDF_DS_DIGEST] = &rdata_ops_ds_digest,
	[RDF_SSHFP_DIGEST] = &rdata_ops_sshfp_digest,
	[RDF_ZONEMD_DIGEST] = &rdata_ops_zonemd_digest,
	[RDF_HEX_L8] = &rdata_ops_hex_l8,
	[RDF_BASE32HEX_L8] = &rdata_ops_base32hex_l8,
	[RDF_BASE64_L16] = &rdata_ops_base64_l16,
	[RDF_BITMAP] = &rdata_ops_bitmap,
	[RDF_BITMAP_NXT] = &rdata_ops_bitmap_nxt,
	[RDF_EUI48] = &rdata_ops_eui48,
	[RDF_EUI64] = &rdata_ops_eui64,
	[RDF_NID64] = &rdata_ops_nid64,
	[RDF_L32] = &rdata_ops_ipv4,
	[RDF_NSAP] = &rdata_ops_nsap,
	[RDF_ATMA] = &rdata_ops_atma,
	[RDF_X25] = &rdata_ops_x25,
	[RDF_APL] = &rdata_ops_apl,
	[RDF_LOC] = &rdata_ops_loc,
	[RDF_WKS] = &rdata_ops_wks,
	[RDF_SVCPARAMS] = &rdata_ops_svcparams,
	[RDF_IPSECKEY] = &rdata_ops_ipseckey,
	[RDF_AMTRELAY] = &rdata_ops_amtrelay,
	[RDF_HIP] = &rdata_ops_hip,
	[RDF_A6] = &rdata_ops_a6,
	[RDF_GPOS] = &rdata_ops_gpos,
	[RDF_UNKNOWN] = &rdata_ops_unknown,
};

const struct rdata_field_ops *rdata_field_ops(uint8_t kind)
{
	ASSERT(kind < ARRAY_LEN(kinds) && kinds[kind] != NULL);
	return kinds[kind];
}

enum err rdata_expected(struct rdata_scan *s, enum err err, const char *what)
{
	const struct rdata_token *word = rdata_word(s);
	char shown[40];

	s->error->token = s->at;
	if (word == NULL) {
		snprintf(s->error->expected, sizeof s->error->expected, "expected %.100s, but the record ends here", what);
		return err;
	}
	printable_copy(shown, sizeof shown, word->text, word->bytes);
	snprintf(s->error->expected, sizeof s->error->expected, "expected %.100s, not \"%s\"", what, shown);
	return err;
}

enum err rdata_no_space(struct rdata_scan *s) { return rdata_expected(s, ERR_NOSPACE, "record data of at most 65535 octets"); }

/* "\#", which quotes would make a plain string. */
static bool is_generic(const struct rdata_token *token)
{
	return token->bytes == 2 && token->text[0] == '\\' && token->text[1] == '#' && !token->quoted;
}

static enum err generic_from_text(struct rdata_scan *s, uint16_t type)
{
	uint32_t announced;
	size_t octets = 0;
	enum err err;

	s->at = 1;
	err = rdata_scan_number(s, UINT16_MAX, "the length of the record data", &announced);
	if (err != ERR_OK)
		return err;
	err = rdata_scan_hex(s, true, &octets);
	if (err != ERR_OK)
		return err;
	if (octets != announced) {
		s->at = 1;
		return rdata_expected(s, ERR_SYNTAX, "as many octets as the length behind \\# says");
	}
	if (rdata_check(type, s->out, s->n) != ERR_OK) {
		s->at = 0;
		return rdata_expected(s, ERR_SYNTAX, "octets that make valid data of this type");
	}
	return ERR_OK;
}

enum err rdata_from_text(uint16_t type, const struct rdata_token *token, unsigned count, const uint8_t *origin, uint8_t *out,
			 size_t out_max, size_t *out_bytes, struct rdata_error *error)
{
	const struct rr_type_info *info = rr_type_info(type);
	struct rdata_scan s = {
		.token = token, .count = count, .origin = origin, .out = out, .max = MIN(out_max, RDATA_MAX_BYTES), .error = error
	};
	enum err err = ERR_OK;

	if (count > 0 && unlikely(is_generic(&token[0]))) {
		err = generic_from_text(&s, type);
	} else {
		for (unsigned i = 0; err == ERR_OK && i < RR_TYPE_MAX_FIELDS && info->field[i].kind != RDF_END; i++) {
			if (s.at == count && (info->field[i].flags & (RDF_F_OPTIONAL | RDF_F_DASH)) == RDF_F_OPTIONAL)
				break;
			err = kinds[info->field[i].kind]->parse(&s, info->field[i].flags);
		}
		if (err == ERR_OK && unlikely(s.at < count))
			err = rdata_expected(&s, ERR_SYNTAX, "the end of the record");
	}
	if (err == ERR_OK)
		*out_bytes = s.n;
	return err;
}

enum err rdata_check(uint16_t type, const uint8_t *wire, size_t wire_bytes)
{
	const struct rr_type_info *info = rr_type_info(type);
	size_t pos = 0;

	if (wire_bytes > RDATA_MAX_BYTES)
		return ERR_MALFORMED;
	for (unsigned i = 0; i < RR_TYPE_MAX_FIELDS && info->field[i].kind != RDF_END; i++) {
		size_t left = wire_bytes - pos, bytes;

		if (left == 0 && (info->field[i].flags & RDF_F_OPTIONAL))
			break;
		bytes = kinds[info->field[i].kind]->measure(wire + pos, left, info->field[i].flags);
		if (bytes > left) /* RDATA_MALFORMED too */
			return ERR_MALFORMED;
		pos += bytes;
	}
	return pos == wire_bytes ? ERR_OK : ERR_MALFORMED;
}

/* One field of a message: names of old types may be compressed. Returns the octets written, RDATA_MALFORMED on errors. */
static size_t field_from_message(uint8_t kind, uint8_t flags, const uint8_t *msg, size_t end, size_t *pos, uint8_t *out,
				 size_t max)
{
	uint8_t name[NAME_MAX_BYTES];
	const uint8_t *from = msg + *pos;
	size_t bytes;

	if (kind == RDF_NAME && (flags & (RDF_F_COMPRESS | RDF_F_DECOMPRESS))) {
		bytes = name_from_message(name, msg, end, pos);
		from = name;
		if (bytes == 0)
			return RDATA_MALFORMED;
	} else {
		bytes = kinds[kind]->measure(from, end - *pos, flags);
		if (bytes > end - *pos)
			return RDATA_MALFORMED;
		*pos += bytes;
	}
	if (bytes > max)
		return RDATA_MALFORMED;
	memcpy(out, from, bytes);
	return bytes;
}

enum err rdata_from_message(uint16_t type, const uint8_t *msg, size_t msg_bytes, size_t pos, size_t rdata_bytes, uint8_t *out,
			    size_t out_max, size_t *out_bytes)
{
	const struct rr_type_info *info = rr_type_info(type);
	size_t n = 0, end;

	if (pos > msg_bytes || rdata_bytes > msg_bytes - pos)
		return ERR_TRUNCATED;
	end = pos + rdata_bytes;
	for (unsigned i = 0; i < RR_TYPE_MAX_FIELDS && info->field[i].kind != RDF_END; i++) {
		uint8_t flags = info->field[i].flags;
		size_t bytes;

		if (pos == end && (flags & RDF_F_OPTIONAL))
			break;
		bytes = field_from_message(info->field[i].kind, flags, msg, end, &pos, out + n,
					   MIN(out_max, RDATA_MAX_BYTES) - n);
		if (bytes == RDATA_MALFORMED)
			return ERR_MALFORMED;
		n += bytes;
	}
	if (pos != end)
		return ERR_MALFORMED;
	*out_bytes = n;
	return ERR_OK;
}

static bool fields_to_text(const struct rr_type_info *info, struct rdata_print *p, const uint8_t *wire, size_t wire_bytes)
{
	size_t pos = 0;

	for (unsigned i = 0; i < RR_TYPE_MAX_FIELDS && info->field[i].kind != RDF_END; i++) {
		const struct rdata_field_ops *ops = kinds[info->field[i].kind];
		uint8_t flags = info->field[i].flags;
		size_t bytes;

		if (pos == wire_bytes && (flags & RDF_F_OPTIONAL)) {
			if (flags & RDF_F_DASH)
				rdata_print_text(p, " -", 2);
			break;
		}
		bytes = ops->measure(wire + pos, wire_bytes - pos, flags);
		if (!ops->print(p, wire + pos, bytes, flags))
			return false;
		pos += bytes;
	}
	return true;
}

static void generic_to_text(struct rdata_print *p, const uint8_t *wire, size_t wire_bytes)
{
	rdata_print_text(p, "\\# ", 3);
	rdata_print_number(p, wire_bytes);
	if (wire_bytes > 0) {
		rdata_print_char(p, ' ');
		rdata_print_hex(p, wire, wire_bytes);
	}
}

enum err rdata_to_text(uint16_t type, const uint8_t *wire, size_t wire_bytes, char *out, size_t out_max, size_t *out_bytes)
{
	struct rdata_print p = { .out = out, .max = out_max - 1 };

	if (out_max == 0)
		return ERR_NOSPACE;
	if (rdata_check(type, wire, wire_bytes) != ERR_OK || !fields_to_text(rr_type_info(type), &p, wire, wire_bytes)) {
		p.n = 0;
		p.full = false;
		generic_to_text(&p, wire, wire_bytes);
	}
	if (p.full)
		return ERR_NOSPACE;
	out[p.n] = '\0';
	*out_bytes = p.n;
	return ERR_OK;
}

bool rdata_next_name(uint16_t type, const uint8_t *wire, size_t wire_bytes, struct rdata_walk *walk, struct rdata_name *out)
{
	const struct rr_type_info *info = rr_type_info(type);

	while (walk->field_ < RR_TYPE_MAX_FIELDS && info->field[walk->field_].kind != RDF_END) {
		uint8_t kind = info->field[walk->field_].kind, flags = info->field[walk->field_].flags;
		const struct rdata_field_ops *ops = kinds[kind];
		const uint8_t *field = wire + walk->pos_;
		size_t bytes = ops->measure(field, wire_bytes - walk->pos_, flags), inside = walk->inside_, at, name_bytes;

		if (bytes > wire_bytes - walk->pos_)
			return false;
		if (ops->next_name != NULL && ops->next_name(field, bytes, &inside, &at, &name_bytes)) {
			walk->inside_ = (uint16_t)inside;
			*out = (struct rdata_name){ (uint16_t)(walk->pos_ + at), (uint16_t)name_bytes, flags };
			return true;
		}
		walk->pos_ = (uint16_t)(walk->pos_ + bytes);
		walk->inside_ = 0;
		walk->field_++;
	}
	return false;
}

void rdata_canonical(uint16_t type, uint8_t *wire, size_t wire_bytes)
{
	struct rdata_walk walk = { 0 };
	struct rdata_name name;

	while (rdata_next_name(type, wire, wire_bytes, &walk, &name))
		if (name.flags & RDF_F_LOWER)
			name_lower(wire + name.offset, wire + name.offset, name.bytes);
}

int rdata_compare(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
	size_t shorter = MIN(a_bytes, b_bytes);
	int order = shorter > 0 ? memcmp(a, b, shorter) : 0;

	if (order == 0 && a_bytes != b_bytes)
		order = a_bytes < b_bytes ? -1 : 1;
	return order;
}

bool rdata_bitmap_has(const uint8_t *bitmap, size_t bitmap_bytes, uint16_t type)
{
	uint8_t window = (uint8_t)(type >> 8), octet = (type & 0xff) / 8;

	for (size_t pos = 0; pos + 2 <= bitmap_bytes; pos += 2u + bitmap[pos + 1]) {
		if (bitmap[pos] != window)
			continue;
		return octet < bitmap[pos + 1] && pos + 2 + octet < bitmap_bytes &&
		       (bitmap[pos + 2 + octet] & (0x80 >> (type & 7))) != 0;
	}
	return false;
}

uint16_t rdata_key_tag(const uint8_t *wire, size_t wire_bytes)
{
	uint32_t sum = 0;

	/* Appendix B.1: RSA/MD5's tag is the low end of the modulus. */
	if (wire_bytes >= 4 && wire[3] == 1)
		return wire_bytes >= 7 ? load_be16(wire + wire_bytes - 3) : 0;
	for (size_t i = 0; i < wire_bytes; i++)
		sum += i & 1 ? wire[i] : (uint32_t)wire[i] << 8;
	return (uint16_t)(sum + (sum >> 16));
}
