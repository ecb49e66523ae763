/* SPDX-License-Identifier: Apache-2.0 */
/* The query's header, question and records behind it: answer_prepare.
 *
 * What deserves silence (RFC 1035 and operational habit): less than a header, and responses. Everything else gets an answer, so that a
 * client learns what is wrong with its query. Budget: 200 instructions with an OPT record. */
#include "answer/answer_internal.h"
#include "answer/cookie.h"
#include "dns/name_inline.h"

static_assert(NAME_LOWER_SLACK_BYTES + NAME_MAX_BYTES <= sizeof((struct answer_query *)0)->lower + 1,
	      "lower-casing writes ahead");
static_assert(DNS_HEADER_BYTES + NAME_MAX_BYTES + NAME_LOWER_SLACK_BYTES <= 512, "and reads ahead within the least capacity");

/* Fills lower, label offsets, count, bytes and hash of q from the name at *pos (in front of query_bytes); no pointers allowed. */
ALWAYS_INLINE bool parse_question_name(struct answer_query *q, uint32_t *pos)
{
	const uint8_t *name = q->msg + *pos;
	uint32_t at = 0, end = MIN(q->query_bytes - *pos, NAME_MAX_BYTES);
	unsigned labels = 0;

	for (;;) {
		if (unlikely(at >= end))
			return false;
		uint8_t length = name[at];

		q->label_offset[labels] = (uint8_t)at;
		if (length == 0)
			break;
		if (unlikely(length > NAME_MAX_LABEL_BYTES))
			return false;
		labels++;
		at += 1u + length;
	}
	at++;
	q->label_count = (uint8_t)labels;
	q->name_bytes = (uint8_t)at;
	name_lower_inline(q->lower, name, at);
	q->name_hash = name_hash_inline(q->lower, at);
	*pos += at;
	return true;
}

/* Moves *pos behind a name, compressed or not. */
static bool skip_name(const uint8_t *msg, uint32_t end, uint32_t *pos)
{
	for (uint32_t at = *pos; at < end; at += 1u + msg[at]) {
		if (msg[at] == 0) {
			*pos = at + 1;
			return true;
		}
		if (msg[at] >= 0xc0) {
			*pos = at + 2;
			return at + 2 <= end;
		}
		if (msg[at] > NAME_MAX_LABEL_BYTES)
			return false;
	}
	return false;
}

/* One OPT record, rdata at opt. */
static bool parse_opt(struct answer_query *q, const uint8_t *fixed, uint32_t rdata_bytes)
{
	if (q->has_edns)
		return false; /* RFC 6891 section 6.1.1: more than one is an error */
	q->has_edns = true;
	q->edns_payload_bytes = load_be16(fixed + 2);
	q->is_do = (load_be16(fixed + 6) & EDNS_DO) != 0;
	if (fixed[5] > EDNS_VERSION) {
		q->rcode = RCODE_BADVERS;
		return true;
	}
	return edns_parse_options(q, fixed + 10, rdata_bytes);
}

/* The records behind the question. False: FORMERR. */
static bool parse_records(struct answer_query *q)
{
	const uint8_t *msg = q->msg;
	uint32_t authority = dns_nscount(msg), records = authority + dns_arcount(msg), pos = q->question_end;

	/* A query has no answers; its authority section is empty but for IXFR (RFC 1995 section 3). */
	if (dns_ancount(msg) != 0 || (authority != 0 && q->qtype != RR_IXFR) || records > ANSWER_MAX_QUERY_RECORDS)
		return false;
	for (uint32_t i = 0; i < records; i++) {
		uint32_t owner = pos;

		if (!skip_name(msg, q->query_bytes, &pos) || pos + 10 > q->query_bytes)
			return false;
		const uint8_t *fixed = msg + pos;
		uint16_t type = load_be16(fixed), rdata_bytes = load_be16(fixed + 8);

		pos += 10u + rdata_bytes;
		if (pos > q->query_bytes)
			return false;
		if (i < authority)
			continue;
		if (type == RR_OPT && (msg[owner] != 0 || !parse_opt(q, fixed, rdata_bytes)))
			return false;
		if (type == RR_TSIG) {
			if (i + 1 != records || load_be16(fixed + 2) != RR_CLASS_ANY)
				return false; /* RFC 8945 section 5.1: the last one */
			q->tsig_offset = (uint16_t)owner;
		}
	}
	return true;
}

/* Types that are questions only, and those that are none. NOERROR: an ordinary type. */
static uint16_t qtype_rcode(const struct answer_query *q)
{
	switch (q->qtype) {
	case RR_OPT:
	case RR_TSIG: return RCODE_FORMERR;
	case RR_MAILA:
	case RR_MAILB:
	case RR_TKEY: return RCODE_NOTIMP;
	case RR_AXFR: /* RFC 5936 section 4.2: not over UDP */
		return q->client.transport == TRANSPORT_UDP ? RCODE_FORMERR : RCODE_REFUSED;
	case RR_IXFR: return RCODE_REFUSED;
	default: return q->qtype == 0 ? RCODE_FORMERR : RCODE_NOERROR;
	}
}

static uint8_t find_zone(const struct snapshot *s, struct answer_query *q)
{
	struct zone_set_hit hit;

	if (!zone_set_find(s->zones, q->lower, q->name_bytes, q->label_offset, q->label_count, 0, &hit)) {
		q->rcode = RCODE_REFUSED;
		q->ede = EDE_NOT_AUTHORITATIVE;
		return STATE_QUESTION;
	}
	/* DS belongs to the parent's side of a cut (RFC 4035 section 3.1.4.1), if that zone is ours too. */
	if (q->qtype == RR_DS && hit.zone_label == 0 && q->label_count > 0) {
		struct zone_set_hit parent;

		if (zone_set_find(s->zones, q->lower, q->name_bytes, q->label_offset, q->label_count, 1, &parent))
			hit = parent;
	}
	q->zone = hit.view;
	q->zone_label = (uint8_t)hit.zone_label;
	if (likely(hit.view->base))
		zone_prefetch_slot(hit.view, q->name_hash);
	return STATE_ZONE;
}

/* Header and question are fine; OPT and TSIG are parsed. */
static uint8_t classify(const struct snapshot *s, struct answer_query *q)
{
	if (q->rcode != RCODE_NOERROR)
		return STATE_QUESTION;
	if (unlikely(q->tsig_offset != 0)) {
		q->rcode = RCODE_NOTAUTH; /* no keys are known: BADKEY (RFC 8945 section 5.2.1) */
		return STATE_TSIG;
	}
	if (unlikely(q->qclass == RR_CLASS_CH))
		return STATE_CHAOS;
	q->rcode = q->qclass == RR_CLASS_IN ? qtype_rcode(q) : RCODE_REFUSED;
	if (unlikely(q->rcode != RCODE_NOERROR))
		return STATE_QUESTION;
	return find_zone(s, q);
}

/* A query without a question asks for nothing but a cookie (RFC 7873 section 5.4). */
static uint8_t prepare_without_question(struct answer_query *q)
{
	q->question_end = DNS_HEADER_BYTES;
	if (!parse_records(q) || q->cookie_state == COOKIE_NONE)
		q->rcode = RCODE_FORMERR;
	return STATE_HEADER;
}

static uint8_t prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	if (unlikely(q->query_bytes < DNS_HEADER_BYTES)) {
		counter_add(t->counters, C_DROP_SHORT, 1);
		return STATE_DROP;
	}
	q->flags = dns_flags(q->msg);
	q->question_end = DNS_HEADER_BYTES;
	if (unlikely(q->flags & DNS_QR)) {
		counter_add(t->counters, C_DROP_RESPONSE, 1);
		return STATE_DROP;
	}
	if (unlikely((q->flags & DNS_OPCODE_MASK) != OPCODE_QUERY << DNS_OPCODE_SHIFT)) {
		q->rcode = RCODE_NOTIMP; /* what follows the header is another opcode's business */
		return STATE_HEADER;
	}
	uint32_t pos = DNS_HEADER_BYTES;

	if (unlikely(dns_qdcount(q->msg) == 0))
		return prepare_without_question(q);
	if (unlikely(dns_qdcount(q->msg) != 1 || !parse_question_name(q, &pos) || pos + 4 > q->query_bytes)) {
		q->rcode = RCODE_FORMERR;
		return STATE_HEADER;
	}
	q->qtype = load_be16(q->msg + pos);
	q->qclass = load_be16(q->msg + pos + 2);
	q->question_end = (uint16_t)(pos + 4);
	if (unlikely(!parse_records(q))) {
		q->rcode = RCODE_FORMERR;
		return STATE_QUESTION;
	}
	return classify(s, q);
}

void answer_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	DEBUG_ASSERT(q->capacity_bytes >= 512);
	q->response_bytes = 0;
	q->rcode = RCODE_NOERROR;
	q->ede = EDE_NONE;
	q->has_edns = q->is_do = false;
	q->cookie_state = COOKIE_NONE;
	q->edns_options = 0;
	q->tsig_offset = 0;
	q->zone = NULL;
	q->hint_ = NULL;
	q->state_ = prepare(s, t, q);
	counter_add(t->counters, C_QUERIES, 1);
	if (q->has_edns)
		counter_add(t->counters, C_EDNS, 1);
	if (q->is_do)
		counter_add(t->counters, C_EDNS_DO, 1);
}

void answer_prefetch(const struct snapshot *s, struct answer_query *q)
{
	(void)s;
	if (likely(q->state_ == STATE_ZONE && q->zone->base))
		q->hint_ = zone_prefetch_node(q->zone, q->name_hash);
}
