/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h: what the tests of this folder share: replies put together record by record, entries rendered as an answer would be, and
 * messages taken apart again. */
#pragma once
#include "base/bytes.h"
#include "dns/message.h"
#include "dns/rdata.h"
#include "slowpath/resolve/entry_build.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define REPLY_RECORDS 2100

/* One record as text: "owner type ttl rdata", in the section where it stood. */
struct reply_set {
	unsigned count, flags;
	char *line[REPLY_RECORDS];
};

struct reply {
	uint8_t msg[DNS_MESSAGE_MAX_BYTES];
	size_t bytes;
	struct name_compressor names;
};

static inline size_t reply_name(uint8_t out[static NAME_MAX_BYTES], const char *text)
{
	const uint8_t root[1] = { 0 };
	const char *why = "";
	size_t bytes = name_from_text(out, text, strlen(text), root, &why);
	cr_assert_neq(bytes, 0, "%s: %s", text, why);
	return bytes;
}

static inline void reply_init(struct reply *r, const char *name, uint16_t type, uint16_t flags)
{
	uint8_t wire[NAME_MAX_BYTES];
	memset(r->msg, 0, DNS_HEADER_BYTES);
	store_be16(r->msg + 2, (uint16_t)(DNS_QR | flags));
	store_be16(r->msg + 4, 1);
	name_compressor_init(&r->names);
	r->bytes = DNS_HEADER_BYTES;
	reply_name(wire, name);
	cr_assert(name_to_message(&r->names, r->msg, sizeof(r->msg), &r->bytes, wire, true));
	store_be16(r->msg + r->bytes, type);
	store_be16(r->msg + r->bytes + 2, RR_CLASS_IN);
	r->bytes += 4;
}

/* section: 0 answer, 1 authority, 2 additional. Owners are compressed. */
static inline void reply_add_wire(struct reply *r, unsigned section, const char *owner, uint16_t type, uint16_t rr_class,
				  uint32_t ttl, const void *data, size_t bytes)
{
	uint8_t wire[NAME_MAX_BYTES];
	reply_name(wire, owner);
	cr_assert(name_to_message(&r->names, r->msg, sizeof(r->msg), &r->bytes, wire, true));
	cr_assert(r->bytes + 10 + bytes <= sizeof(r->msg));
	store_be16(r->msg + r->bytes, type);
	store_be16(r->msg + r->bytes + 2, rr_class);
	store_be32(r->msg + r->bytes + 4, ttl);
	store_be16(r->msg + r->bytes + 8, (uint16_t)bytes);
	memcpy(r->msg + r->bytes + 10, data, bytes);
	r->bytes += 10 + bytes;
	store_be16(r->msg + 6 + 2 * section, (uint16_t)(load_be16(r->msg + 6 + 2 * section) + 1));
}

static inline void reply_add(struct reply *r, unsigned section, const char *owner, const char *type_text, uint32_t ttl,
			     const char *data)
{
	struct rdata_token token[32];
	struct rdata_error error;
	unsigned count = 0;
	uint8_t wire[4096];
	uint16_t type;
	size_t bytes;
	cr_assert(rr_type_from_text(type_text, strlen(type_text), &type));
	for (const char *at = data; *at && count < 32;) {
		size_t n = strcspn(at, " ");
		token[count++] = (struct rdata_token){ .text = at, .bytes = (uint32_t)n };
		at += n + (at[n] == ' ');
	}
	cr_assert_eq(rdata_from_text(type, token, count, NULL, wire, sizeof(wire), &bytes, &error), ERR_OK, "%s", error.expected);
	reply_add_wire(r, section, owner, type, RR_CLASS_IN, ttl, wire, bytes);
}

#define REPLY_SIG(covered, owner_zone) covered " 8 2 300 20300101000000 20200101000000 12345 " owner_zone " c2lnbmF0dXJl"
#define REPLY_SOA "ns.example. admin.example. 1 7200 3600 86400 300"

static inline void reply_set_fini(struct reply_set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		free(s->line[i]);
	s->count = 0;
}

/* Takes a message apart; every record must be sound. */
static inline void reply_parse(struct reply_set *s, const uint8_t *msg, size_t bytes)
{
	uint8_t name[NAME_MAX_BYTES];
	static uint8_t data[RDATA_MAX_BYTES];
	static char text[300000], line[310000];
	size_t pos = DNS_HEADER_BYTES, n;
	s->count = 0;
	s->flags = dns_flags(msg);
	cr_assert_eq(dns_qdcount(msg), 1);
	cr_assert_neq(name_from_message(name, msg, bytes, &pos), 0);
	pos += 4;
	for (unsigned section = 0; section < 3; section++) {
		for (unsigned left = load_be16(msg + 6 + 2 * section); left > 0; left--) {
			char owner[NAME_TEXT_MAX_BYTES], type_text[16];
			n = name_from_message(name, msg, bytes, &pos);
			cr_assert_neq(n, 0, "owner of record %u in section %u", s->count, section);
			name_lower(name, name, n);
			name_to_text(owner, name);
			cr_assert(bytes - pos >= 10);
			uint16_t type = load_be16(msg + pos), length = load_be16(msg + pos + 8);
			uint32_t ttl = load_be32(msg + pos + 4);
			cr_assert_eq(load_be16(msg + pos + 2), RR_CLASS_IN);
			rr_type_to_text(type_text, type);
			cr_assert_eq(rdata_from_message(type, msg, bytes, pos + 10, length, data, sizeof(data), &n), ERR_OK);
			rdata_canonical(type, data, n);
			cr_assert_eq(rdata_to_text(type, data, n, text, sizeof(text), &n), ERR_OK);
			pos += 10u + length;
			snprintf(line, sizeof(line), "%u %s %s %u %s", section, owner, type_text, ttl, text);
			cr_assert_lt(s->count, REPLY_RECORDS);
			s->line[s->count++] = strdup(line);
		}
	}
	cr_assert_eq(pos, bytes);
}

/* The response to a query for name (the entry's, or one below it), as answer_from_entry makes it, without OPT. */
static inline size_t reply_render(uint8_t *msg, const struct cache_entry *e, const uint8_t *name, size_t name_bytes,
				  uint16_t type, bool is_do, uint32_t age_s)
{
	static uint8_t body[DNS_MESSAGE_MAX_BYTES];
	const uint16_t *ttl_at = cache_entry_ttl_at(e), *pointer_at = cache_entry_pointer_at(e);
	size_t pos = DNS_HEADER_BYTES, from = 0;
	memcpy(body, cache_entry_body(e), e->body_bytes);
	for (unsigned i = 0; i < e->rr_count; i++) {
		uint32_t ttl = load_be32(body + ttl_at[i]);
		store_be32(body + ttl_at[i], ttl > age_s ? ttl - age_s : 0);
	}
	for (unsigned i = 0; i < e->pointer_count; i++)
		store_be16(body + pointer_at[i], (uint16_t)(load_be16(body + pointer_at[i]) + name_bytes - e->name_bytes));
	memset(msg, 0, DNS_HEADER_BYTES);
	store_be16(msg + 2, (uint16_t)(DNS_QR | e->rcode));
	store_be16(msg + 4, 1);
	memcpy(msg + pos, name, name_bytes);
	pos += name_bytes;
	store_be16(msg + pos, type);
	store_be16(msg + pos + 2, RR_CLASS_IN);
	pos += 4;
	for (unsigned i = 0; i < 3; i++) {
		size_t to = is_do ? e->span[i].end : e->span[i].begin;
		store_be16(msg + 6 + 2 * i, (uint16_t)(e->count[i] - (is_do ? 0 : e->dnssec_count[i])));
		memcpy(msg + pos, body + from, to - from);
		pos += to - from;
		from = e->span[i].end;
	}
	cr_assert_eq(from, e->body_bytes);
	return pos;
}

static inline bool reply_has(const struct reply_set *s, const char *line)
{
	for (unsigned i = 0; i < s->count; i++) {
		if (strcmp(s->line[i], line) == 0)
			return true;
	}
	return false;
}
