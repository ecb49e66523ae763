/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_query.c: the query's octets. */
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/exchange_private.h"

#define PADDING_BLOCK_BYTES 128u /* RFC 8467 section 4.1 */
#define OPTION_FIXED_BYTES 4u
#define QUESTION_FIXED_BYTES 4u /* type, class */

static_assert(DNS_HEADER_BYTES + NAME_MAX_BYTES + QUESTION_FIXED_BYTES + EDNS_OPT_FIXED_BYTES + OPTION_FIXED_BYTES +
			      REPLY_COOKIE_MAX_BYTES + OPTION_FIXED_BYTES + PADDING_BLOCK_BYTES <=
		      EXCHANGE_QUERY_MAX_BYTES,
	      "the longest query fits");

/* Letters get a random case (draft-vixie-dnsext-dns0x20); length octets are no letters. */
static void randomise_case(struct random_pool *random, uint8_t *name, size_t name_bytes)
{
	uint64_t bits = 0;
	unsigned left = 0;
	for (size_t i = 0; i < name_bytes; i++) {
		if (name[i] < 'a' || name[i] > 'z')
			continue;
		if (left == 0) {
			bits = random_pool_u64(random);
			left = 64;
		}
		name[i] ^= (uint8_t)((bits & 1) << 5);
		bits >>= 1;
		left--;
	}
}

static size_t write_option(uint8_t *at, uint16_t code, const uint8_t *data, size_t bytes)
{
	store_be16(at, code);
	store_be16(at + 2, (uint16_t)bytes);
	if (data)
		memcpy(at + OPTION_FIXED_BYTES, data, bytes);
	else
		memset(at + OPTION_FIXED_BYTES, 0, bytes);
	return OPTION_FIXED_BYTES + bytes;
}

static size_t write_opt(uint8_t *query, size_t pos, const struct exchange_request *r)
{
	uint8_t *opt = query + pos;
	size_t data_bytes = 0;
	memset(opt, 0, EDNS_OPT_FIXED_BYTES);
	store_be16(opt + 1, RR_OPT);
	store_be16(opt + 3, r->udp_payload_bytes);
	store_be16(opt + 7, r->is_do ? EDNS_DO : 0);
	uint8_t *data = opt + EDNS_OPT_FIXED_BYTES;
	if (r->cookie)
		data_bytes += write_option(data, EDNS_COOKIE, r->cookie, r->cookie_bytes);
	if (r->transport == EXCHANGE_TLS) {
		size_t bare = pos + EDNS_OPT_FIXED_BYTES + data_bytes + OPTION_FIXED_BYTES;
		size_t padding = (PADDING_BLOCK_BYTES - bare % PADDING_BLOCK_BYTES) % PADDING_BLOCK_BYTES;
		data_bytes += write_option(data + data_bytes, EDNS_PADDING, NULL, padding);
	}
	store_be16(opt + 9, (uint16_t)data_bytes);
	return pos + EDNS_OPT_FIXED_BYTES + data_bytes;
}

bool exchange_query_build(struct exchange *e, const struct exchange_request *r)
{
	uint8_t *query = exchange_query(e);
	bool has_cookie = r->is_edns && r->cookie;
	if (r->name_bytes == 0 || (has_cookie && r->cookie_bytes != COOKIE_CLIENT_PART_BYTES &&
				   (r->cookie_bytes < 2 * COOKIE_CLIENT_PART_BYTES || r->cookie_bytes > REPLY_COOKIE_MAX_BYTES)))
		return false;
	e->id = random_pool_u16(&e->x->random);
	e->type = r->type;
	e->name_bytes = r->name_bytes;
	e->is_0x20 = r->is_0x20 && r->transport == EXCHANGE_UDP;
	e->has_cookie = has_cookie;
	e->is_cookie_expected = has_cookie && r->is_cookie_expected;
	if (has_cookie)
		memcpy(e->client_cookie, r->cookie, COOKIE_CLIENT_PART_BYTES);
	memset(query, 0, DNS_HEADER_BYTES);
	store_be16(query, e->id);
	store_be16(query + 2, (uint16_t)((r->is_rd ? DNS_RD : 0) | (r->is_cd ? DNS_CD : 0)));
	query[5] = 1;
	query[11] = r->is_edns;
	memcpy(query + DNS_HEADER_BYTES, r->name, r->name_bytes);
	if (e->is_0x20)
		randomise_case(&e->x->random, query + DNS_HEADER_BYTES, r->name_bytes);
	size_t pos = DNS_HEADER_BYTES + r->name_bytes;
	store_be16(query + pos, r->type);
	store_be16(query + pos + 2, RR_CLASS_IN);
	pos += QUESTION_FIXED_BYTES;
	if (r->is_edns)
		pos = write_opt(query, pos, r);
	e->query_bytes = (uint16_t)pos;
	store_be16(e->frame, e->query_bytes);
	return true;
}
