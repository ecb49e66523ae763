/* SPDX-License-Identifier: Apache-2.0 */
/* A query signed by a key that we don't have: NOTAUTH with an unsigned TSIG that says BADKEY (RFC 8945 sections 5.2.1, 5.3.2). */
#include "answer/answer_internal.h"

#define TSIG_BADKEY 17
#define TSIG_RDATA_REST_BYTES 16u /* time 6, fudge 2, MAC size 2, original id 2, error 2, other length 2 */

static_assert(TSIG_COPY_BYTES >= 2 * NAME_MAX_BYTES + 10 + 8, "key name, fixed fields, algorithm, time and fudge");

void tsig_copy(const struct answer_query *q, struct tsig_query *out)
{
	const uint8_t *tsig = q->msg + q->tsig_offset;
	uint32_t left = q->query_bytes - q->tsig_offset;
	size_t key = name_wire_bytes(tsig, left), algorithm;

	out->key_bytes = 0;
	if (key == 0 || left < key + 10)
		return; /* a compressed key name: RFC 8945 section 4.2 forbids it */
	algorithm = name_wire_bytes(tsig + key + 10, left - key - 10);
	if (algorithm == 0 || left < key + 10 + algorithm + 8)
		return;
	out->key_bytes = (uint16_t)key;
	out->algorithm_bytes = (uint16_t)algorithm;
	memcpy(out->bytes, tsig, key + 10 + algorithm + 8);
}

void tsig_render(struct walk *w, const struct tsig_query *tsig)
{
	struct render *r = &w->r;
	uint32_t bytes = tsig->key_bytes + 10u + tsig->algorithm_bytes + TSIG_RDATA_REST_BYTES;
	uint8_t *p = r->msg + r->pos;

	if (tsig->key_bytes == 0 || r->pos + bytes > r->limit)
		return;
	/* Key, type, class ANY, TTL 0, algorithm, time signed and fudge as they came. */
	memcpy(p, tsig->bytes, tsig->key_bytes + 10u + tsig->algorithm_bytes + 8u);
	p += tsig->key_bytes;
	store_be32(p + 4, 0);
	store_be16(p + 8, (uint16_t)(tsig->algorithm_bytes + TSIG_RDATA_REST_BYTES));
	p += 10u + tsig->algorithm_bytes + 8u;
	store_be16(p, 0);
	store_be16(p + 2, dns_id(r->msg));
	store_be16(p + 4, TSIG_BADKEY);
	store_be16(p + 6, 0);
	r->pos += bytes;
	r->count[SECTION_ADDITIONAL]++;
}
