/* SPDX-License-Identifier: Apache-2.0 */
/* From a prepared query to a response: limits, the step that its state names, OPT, header, counters.
 * Budget: 700 instructions for the whole of answer() on a zone hit; `make bench` counts them. */
#include "answer/answer_internal.h"
#include "answer/cookie.h"

/* Where the response must end. */
static uint32_t response_limit(const struct settings *settings, const struct answer_query *q)
{
	uint32_t limit = DNS_MESSAGE_MAX_BYTES;

	if (q->client.transport == TRANSPORT_UDP) {
		limit = DNS_UDP_PLAIN_BYTES;
		if (q->has_edns)
			limit = MIN(MAX(q->edns_payload_bytes, DNS_UDP_PLAIN_BYTES), settings->udp_payload_bytes);
	}
	return MIN(limit, q->capacity_bytes);
}

static void zone_or_failure(struct walk *w, struct answer_thread *t)
{
	const struct zone_view *zone = w->q->zone;

	if (likely(zone->base && (zone->serve_until_s == 0 || t->wall_s < zone->serve_until_s))) {
		w->apex_pos = DNS_HEADER_BYTES + w->q->label_offset[w->q->zone_label];
		zone_answer(w);
		return;
	}
	if (zone->base)
		counter_add(t->counters, C_ZONE_EXPIRED, 1);
	w->rcode = RCODE_SERVFAIL;
	w->q->ede = zone->base ? EDE_INVALID_DATA : EDE_NOT_READY;
}

static void count_response(struct answer_thread *t, uint16_t rcode, bool is_truncated)
{
	static const uint8_t by_rcode[] = { C_NOERROR, C_FORMERR, C_SERVFAIL, C_NXDOMAIN, C_NOTIMP, C_REFUSED };

	counter_add(t->counters, C_ANSWERS, 1);
	counter_add(t->counters, rcode < ARRAY_LEN(by_rcode) ? by_rcode[rcode] : C_RCODE_OTHER, 1);
	if (unlikely(is_truncated))
		counter_add(t->counters, C_TRUNCATED, 1);
}

static void write_header(const struct walk *w)
{
	const struct answer_query *q = w->q;
	uint8_t *msg = w->r.msg;
	uint16_t flags = DNS_QR | (q->flags & (DNS_OPCODE_MASK | DNS_RD | DNS_CD)) | (w->rcode & DNS_RCODE_MASK);

	if (w->is_aa)
		flags |= DNS_AA;
	if (unlikely(w->r.is_full))
		flags |= DNS_TC;
	store_be64(msg + 2, (uint64_t)flags << 48 | (uint64_t)(q->state_ != STATE_HEADER) << 32 |
				    (uint32_t)w->r.count[SECTION_ANSWER] << 16 | w->r.count[SECTION_AUTHORITY]);
	store_be16(msg + 10, w->r.count[SECTION_ADDITIONAL]);
}

enum answer_verdict answer_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	struct tsig_query tsig;
	struct walk w;

	if (unlikely(q->state_ == STATE_DROP))
		return ANSWER_DROP;
	if (unlikely(q->cookie_state != COOKIE_NONE && (s->settings.flags & SETTINGS_F_COOKIES) &&
		     s->settings.cookie_secret_count > 0)) {
		cookie_verify(&s->settings, t, q);
		cookie_renew(&s->settings, t->wall_s, q);
	}
	uint32_t end = response_limit(&s->settings, q), opt_bytes = q->has_edns ? edns_response_bytes(&s->settings, q) : 0;

	/* Field by field: the arrays behind need no clearing. */
	w.snapshot = s;
	w.q = q;
	w.r = (struct render){ .msg = q->msg, .pos = q->question_end, .limit = end - opt_bytes };
	w.name_pos = DNS_HEADER_BYTES;
	w.apex_pos = 0;
	w.rcode = q->rcode;
	w.is_aa = false;
	w.pending_count = 0;
	w.seen_count = 0;
	w.dname_count = 0;
	w.additional_of = NULL;
	w.referral_cut = NULL;
	switch (q->state_) {
	case STATE_ZONE: zone_or_failure(&w, t); break;
	case STATE_CHAOS: chaos_answer(&w); break;
	case STATE_TSIG: tsig_copy(q, &tsig); break;
	default: break;
	}
	if (q->has_edns)
		edns_render(&w, end);
	if (unlikely(q->state_ == STATE_TSIG))
		tsig_render(&w, &tsig);
	write_header(&w);
	q->rcode = w.rcode;
	q->response_bytes = w.r.pos;
	count_response(t, w.rcode, w.r.is_full);
	return ANSWER_SEND;
}

enum answer_verdict answer(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	answer_prepare(s, t, q);
	return answer_finish(s, t, q);
}
