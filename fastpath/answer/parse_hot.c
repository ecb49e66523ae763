/* SPDX-License-Identifier: Apache-2.0 */
/* The query's header, question and records behind it: answer_prepare.
 *
 * What deserves silence (RFC 1035 and operational habit): less than a header, and responses. Everything else gets an answer, so that a
 * client learns what is wrong with its query. Budget: 200 instructions with an OPT record. */
#include "answer/cached.h"
#include "answer/cookie.h"
#include "dns/name_inline.h"

static_assert(NAME_LOWER_SLACK_BYTES + NAME_MAX_BYTES <= sizeof((struct answer_query *)0)->lower + 1,
	      "lower-casing writes ahead");
static_assert(DNS_HEADER_BYTES + NAME_MAX_BYTES + MAX(NAME_MAX_LABEL_BYTES, NAME_LOWER_SLACK_BYTES) <= 512,
	      "and reads ahead within the least capacity");

#define QUESTION_FIXED_BYTES 4u /* type and class */
/* Octets 2 to 5 of the header of a query with one question, but for bits that don't matter. */
#define ONE_QUESTION_MASK ((uint32_t)(DNS_QR | DNS_OPCODE_MASK) << 16 | 0xffff)
#define ONE_QUESTION ((uint32_t)OPCODE_QUERY << (16 + DNS_OPCODE_SHIFT) | 1)

/* Fills lower, label offsets, count, bytes and hash of q from the name behind the header; no pointers allowed. False unless it, type and
 * class end within the query. The labels are walked first and their end is checked then: reads stay within the least capacity. */
ALWAYS_INLINE bool parse_question_name(struct answer_query *q)
{
	const uint8_t *name = q->msg + DNS_HEADER_BYTES;
	uint32_t at = 0, length;
	unsigned labels = 0;

	while ((length = name[at]) - 1 < NAME_MAX_LABEL_BYTES) {
		q->label_offset[labels++] = (uint8_t)at;
		at += 1 + length;
		if (unlikely(at >= NAME_MAX_BYTES))
			return false;
	}
	q->label_offset[labels] = (uint8_t)at;
	if (unlikely(length != 0 || DNS_HEADER_BYTES + at + 1 + QUESTION_FIXED_BYTES > q->query_bytes))
		return false;
	at++;
	q->label_count = (uint8_t)labels;
	q->name_bytes = (uint8_t)at;
	name_lower_inline(q->lower, name, at);
	q->name_hash = name_hash_inline(q->lower, at);
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

static bool read_records(struct answer_query *q)
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

/* The records behind the question. False: FORMERR. */
static bool parse_records(struct answer_thread *t, struct answer_query *q)
{
	bool is_good = read_records(q);

	if (q->has_edns)
		counter_add(t->counters, C_EDNS, 1);
	if (q->is_do)
		counter_add(t->counters, C_EDNS_DO, 1);
	return is_good;
}

/* The records behind the question when there is just an OPT without options, the rule. False, with nothing done, for all else. */
ALWAYS_INLINE bool parse_plain_opt(struct answer_thread *t, struct answer_query *q)
{
	const uint8_t *opt = q->msg + q->question_end;

	if (q->query_bytes - q->question_end < EDNS_OPT_FIXED_BYTES)
		return false;
	/* Root, type, payload size, extended rcode, version, half of the flags; then the flags and the length of the options. */
	uint64_t head = load_be64(opt);
	uint32_t tail = load_be32(opt + 7);

	if (head >> 40 != RR_OPT || (head >> 8 & 0xff) != EDNS_VERSION || (tail & 0xffff) != 0)
		return false;
	q->has_edns = true;
	q->edns_payload_bytes = (uint16_t)(head >> 24);
	counter_add(t->counters, C_EDNS, 1);
	if (tail >> 16 & EDNS_DO) {
		q->is_do = true;
		counter_add(t->counters, C_EDNS_DO, 1);
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

/* The zone is configured, but can't be served. */
COLD static uint8_t no_service(struct answer_thread *t, struct answer_query *q, const struct zone_view *zone)
{
	if (zone->base)
		counter_add(t->counters, C_ZONE_EXPIRED, 1);
	q->rcode = RCODE_SERVFAIL;
	q->ede = zone->base ? EDE_INVALID_DATA : EDE_NOT_READY;
	return STATE_QUESTION;
}

ALWAYS_INLINE uint8_t find_zone(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	struct zone_set_hit hit = zone_set_find(s->zones, q->lower, q->name_bytes, q->label_offset, q->label_count, 0);

	if (!hit.view || unlikely(!zone_speaks_for(hit.view, s->cache && hit.zone_label == q->label_count, q->lower,
						   q->name_bytes, q->name_hash)))
		return cached_prepare(s, q);
	/* DS belongs to the parent's side of a cut (RFC 4035 section 3.1.4.1), if that zone is ours too. */
	if (unlikely(q->qtype == RR_DS && hit.zone_label == 0 && q->label_count > 0)) {
		struct zone_set_hit parent = zone_set_find(s->zones, q->lower, q->name_bytes, q->label_offset, q->label_count, 1);

		if (parent.view)
			hit = parent;
	}
	q->zone = hit.view;
	q->zone_label = (uint8_t)hit.zone_label;
	if (unlikely(!hit.view->base || (hit.view->serve_until_s != 0 && t->wall_s >= hit.view->serve_until_s)))
		return no_service(t, q, hit.view);
	q->path = LOG_PATH_ZONE;
	zone_prefetch_slot(hit.view, q->name_hash);
	return STATE_ZONE;
}

/* Header and question are fine; OPT and TSIG are parsed. STATE_ZONE: a question for data. */
static uint8_t classify(struct answer_query *q)
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
	return likely(q->rcode == RCODE_NOERROR) ? STATE_ZONE : STATE_QUESTION;
}

/* A query without a question asks for nothing but a cookie (RFC 7873 section 5.4). */
static uint8_t read_without_question(struct answer_thread *t, struct answer_query *q)
{
	if (!parse_records(t, q) || q->cookie_state == COOKIE_NONE)
		q->rcode = RCODE_FORMERR;
	return STATE_HEADER;
}

/* A message that is no query with one question. */
static uint8_t read_odd(struct answer_thread *t, struct answer_query *q)
{
	if (q->flags & DNS_QR) {
		counter_add(t->counters, C_DROP_RESPONSE, 1);
		return STATE_DROP;
	}
	if ((q->flags & DNS_OPCODE_MASK) != OPCODE_QUERY << DNS_OPCODE_SHIFT) {
		q->rcode = RCODE_NOTIMP; /* what follows the header is another opcode's business */
		return STATE_HEADER;
	}
	if (dns_qdcount(q->msg) == 0)
		return read_without_question(t, q);
	q->rcode = RCODE_FORMERR;
	return STATE_HEADER;
}

/* The state that the message's own bytes lead to; STATE_ZONE for all questions for data. */
ALWAYS_INLINE uint8_t read_query(struct answer_thread *t, struct answer_query *q)
{
	if (unlikely(q->query_bytes < DNS_HEADER_BYTES)) {
		counter_add(t->counters, C_DROP_SHORT, 1);
		return STATE_DROP;
	}
	uint32_t head = load_be32(q->msg + 2);

	q->flags = (uint16_t)(head >> 16);
	q->question_end = DNS_HEADER_BYTES;
	if (unlikely((head & ONE_QUESTION_MASK) != ONE_QUESTION))
		return read_odd(t, q);
	if (unlikely(!parse_question_name(q))) {
		q->rcode = RCODE_FORMERR;
		return STATE_HEADER;
	}
	uint32_t end = DNS_HEADER_BYTES + q->name_bytes + QUESTION_FIXED_BYTES;
	uint32_t asked = load_be32(q->msg + end - QUESTION_FIXED_BYTES), type = asked >> 16;
	uint64_t record_counts = load_be64(q->msg + 4) & 0xffffffffffffu;

	q->qtype = (uint16_t)type;
	q->qclass = (uint16_t)asked;
	q->question_end = (uint16_t)end;
	if (record_counts > 1 || (record_counts == 1 && !parse_plain_opt(t, q))) {
		if (!parse_records(t, q)) {
			q->rcode = RCODE_FORMERR;
			return STATE_QUESTION;
		}
		return classify(q);
	}
	/* Class IN and an ordinary type: no rcode, no TSIG to look at. */
	if (likely((uint16_t)asked == RR_CLASS_IN && type - 1 < RR_TKEY - 1 && type != RR_OPT))
		return STATE_ZONE;
	return classify(q);
}

void parse_query(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	DEBUG_ASSERT(q->capacity_bytes >= 512);
	q->response_bytes = 0;
	q->rcode = RCODE_NOERROR;
	q->ede = EDE_NONE;
	q->tsig_offset = 0;
	q->cookie_state = COOKIE_NONE;
	q->edns_options = 0;
	q->has_edns = q->is_do = false;
	q->zone = NULL;
	q->hint_ = NULL;
	q->path = LOG_PATH_OTHER;
	q->may_recurse = false;

	uint8_t state = read_query(t, q);

	if (s->policy)
		cached_client(s, q);
	q->state_ = likely(state == STATE_ZONE) ? find_zone(s, t, q) : state;
}

void answer_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	counter_add(t->counters, C_QUERIES, 1);
	parse_query(s, t, q);
}

void answer_prefetch(const struct snapshot *s, struct answer_query *q)
{
	if (q->state_ == STATE_ZONE)
		q->hint_ = zone_prefetch_node(q->zone, q->name_hash);
	else if (q->state_ == STATE_CACHE)
		cached_prefetch(s, q);
}
