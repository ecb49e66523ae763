/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/resolve/reply_edns.h"
#include "dns/message.h"
#include "dns/name.h"
#include "dns/rr_type.h"

#define RECORD_FIXED_BYTES 10u /* type, class, TTL, RDLENGTH */
#define COOKIE_CLIENT_ONLY_BYTES 8u
#define COOKIE_WITH_SERVER_BYTES 16u

/* Moves *pos behind a name, compressed or not, without following pointers. */
static bool skip_name(const uint8_t *message, size_t message_bytes, size_t *pos)
{
	for (size_t at = *pos; at < message_bytes;) {
		uint8_t octet = message[at];
		if (octet >= 0xc0) {
			*pos = at + 2;
			return at + 2 <= message_bytes;
		}
		if (octet > NAME_MAX_LABEL_BYTES)
			return false;
		at += 1u + octet;
		if (octet == 0) {
			*pos = at;
			return true;
		}
	}
	return false;
}

static void take_option(struct reply_edns *out, uint16_t code, const uint8_t *data, size_t bytes)
{
	if (code == EDNS_COOKIE && out->cookie_bytes == 0) {
		bool is_legal = bytes == COOKIE_CLIENT_ONLY_BYTES ||
				(bytes >= COOKIE_WITH_SERVER_BYTES && bytes <= REPLY_COOKIE_MAX_BYTES);
		if (!is_legal)
			return;
		out->cookie_bytes = (uint8_t)bytes;
		memcpy(out->cookie, data, bytes);
	} else if (code == EDNS_EDE && out->ede == EDE_NONE && bytes >= 2 && load_be16(data) <= INT16_MAX) {
		out->ede = (int16_t)load_be16(data);
	}
}

/* record: behind the owner; data_bytes behind its fixed part are there. */
static bool take_opt(struct reply_edns *out, const uint8_t *record, size_t data_bytes)
{
	const uint8_t *data = record + RECORD_FIXED_BYTES;
	if (out->has_opt)
		return false;
	out->has_opt = true;
	out->rcode = (uint16_t)(out->rcode | record[4] << 4);
	out->version = record[5];
	out->is_do = load_be16(record + 6) & EDNS_DO;
	while (data_bytes >= 4) {
		size_t bytes = load_be16(data + 2);
		if (bytes > data_bytes - 4)
			return false;
		take_option(out, load_be16(data), data + 4, bytes);
		data += 4 + bytes;
		data_bytes -= 4 + bytes;
	}
	return data_bytes == 0;
}

static bool read_records(struct reply_edns *out, const uint8_t *message, size_t message_bytes)
{
	size_t pos = DNS_HEADER_BYTES;
	unsigned records = (unsigned)dns_ancount(message) + dns_nscount(message) + dns_arcount(message);
	unsigned additional = records - dns_arcount(message);
	for (unsigned i = 0; i < dns_qdcount(message); i++) {
		if (!skip_name(message, message_bytes, &pos) || message_bytes - pos < 4)
			return false;
		pos += 4;
	}
	for (unsigned i = 0; i < records; i++) {
		bool is_root = pos < message_bytes && message[pos] == 0;
		if (!skip_name(message, message_bytes, &pos) || message_bytes - pos < RECORD_FIXED_BYTES)
			return false;
		size_t data_bytes = load_be16(message + pos + 8);
		if (message_bytes - pos - RECORD_FIXED_BYTES < data_bytes)
			return false;
		if (i >= additional && is_root && load_be16(message + pos) == RR_OPT && !take_opt(out, message + pos, data_bytes))
			return false;
		pos += RECORD_FIXED_BYTES + data_bytes;
	}
	return true;
}

void reply_edns_read(struct reply_edns *out, const uint8_t *message, size_t message_bytes)
{
	out->is_malformed = out->has_opt = out->is_do = false;
	out->version = out->cookie_bytes = 0;
	out->ede = EDE_NONE;
	out->rcode = dns_flags(message) & DNS_RCODE_MASK;
	out->is_malformed = !read_records(out, message, message_bytes);
}
