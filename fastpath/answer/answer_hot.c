/* SPDX-License-Identifier: Apache-2.0 */
/* From a prepared query to a response. The short way is for one RRset; the long one sets limits, takes the step that the state names, and
 * adds OPT, header, counters. Budget: 550 instructions for the whole of answer() on a zone hit; `bench/micro/run` counted 511. */
#include "answer/single_inline.h"
#include "answer/cached.h"
#include "answer/cookie.h"
#include "dns/name_inline.h"
#include "table/cache.h"

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

ALWAYS_INLINE void count_response(struct answer_thread *t, uint16_t rcode)
{
	static const uint8_t by_rcode[] = { C_NOERROR, C_FORMERR, C_SERVFAIL, C_NXDOMAIN, C_NOTIMP, C_REFUSED };

	counter_add(t->counters, C_ANSWERS, 1);
	counter_add(t->counters, rcode < ARRAY_LEN(by_rcode) ? by_rcode[rcode] : C_RCODE_OTHER, 1);
}

ALWAYS_INLINE unsigned recursion_available(const struct answer_query *q) { return q->may_recurse ? DNS_RA : 0; }

/* Octets 2 to 9: flags and the counts but ARCOUNT. */
ALWAYS_INLINE void write_header(uint8_t *msg, uint16_t flags, bool has_question, uint32_t answers, uint32_t authority)
{
	store_be64(msg + 2, (uint64_t)flags << 48 | (uint64_t)has_question << 32 | answers << 16 | authority);
}

/* name: of the question, lower-cased; name_bytes 0: it could not be read. */
static __attribute__((noinline)) void write_log(struct answer_thread *t, const struct answer_query *q, const uint8_t *name,
						uint32_t name_bytes)
{
	struct log_record r;

	r.wall_ns = t->wall_ns;
	r.latency_us = t->latency_us;
	r.qtype = name_bytes ? q->qtype : 0;
	r.qclass = name_bytes ? q->qclass : 0;
	r.response_bytes = (uint16_t)q->response_bytes;
	r.flags = q->flags;
	r.rcode = q->rcode;
	r.ede = q->ede;
	r.group = q->group;
	r.port = q->client.port;
	memcpy(r.address, q->client.address, sizeof(r.address));
	r.family = q->client.family;
	r.transport = q->client.transport;
	r.path = q->rcode == RCODE_REFUSED ? LOG_PATH_REFUSED : q->path;
	r.name_bytes = (uint8_t)name_bytes;
	memcpy(r.name, name, name_bytes);
	log_write_record(t->log, &r);
}

/* The whole response: one RRset and perhaps a plain OPT, within the 512 octets that every limit allows. False, with nothing done, if
 * it is not that plain. A negative response's RRset is the SOA. */
ALWAYS_INLINE bool answer_single(const struct snapshot *s, struct answer_thread *t, struct answer_query *q,
				 const struct zone_rrset *rrset, bool is_negative, uint16_t rcode)
{
	struct render r = { .msg = q->msg, .pos = q->question_end };
	uint32_t apex_pos = question_apex_pos(q), owner_pos = is_negative ? apex_pos : DNS_HEADER_BYTES;

	if (unlikely(q->cookie_state != COOKIE_NONE || q->edns_options != 0))
		return false;
	if (unlikely(r.pos + rrset->block_bytes + EDNS_OPT_FIXED_BYTES > DNS_UDP_PLAIN_BYTES))
		return false;
	render_block(&r, SECTION_ANSWER, rrset, owner_pos, owner_pos, apex_pos);
	if (q->has_edns) {
		edns_put_fixed(r.msg + r.pos, &s->settings, q->is_do, rcode);
		r.pos += EDNS_OPT_FIXED_BYTES;
	}
	store_be16(r.msg + 10, q->has_edns);
	write_header(r.msg, (uint16_t)(DNS_QR | DNS_AA | recursion_available(q) | (q->flags & (DNS_RD | DNS_CD)) | rcode), true,
		     is_negative ? 0 : rrset->rr_count, is_negative);
	q->rcode = rcode;
	q->response_bytes = r.pos;
	count_response(t, rcode);
	if (t->log)
		write_log(t, q, q->lower, q->name_bytes);
	return true;
}

/* Cookie, limits, and what every kind of response begins with. Field by field: the arrays of the walk need no clearing. Returns
 * where the response must end. */
ALWAYS_INLINE uint32_t begin(struct walk *w, const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	if (unlikely(q->cookie_state != COOKIE_NONE && (s->settings.flags & SETTINGS_F_COOKIES) &&
		     s->settings.cookie_secret_count > 0)) {
		cookie_verify(&s->settings, t, q);
		cookie_renew(&s->settings, t->wall_s, q);
	}
	uint32_t end = response_limit(&s->settings, q), opt_bytes = q->has_edns ? edns_response_bytes(&s->settings, q) : 0;

	w->snapshot = s;
	w->q = q;
	w->r = (struct render){ .msg = q->msg, .pos = q->question_end, .limit = end - opt_bytes };
	w->rcode = q->rcode;
	w->is_aa = w->is_ad = false;
	return end;
}

/* Header and counters; the sections and the OPT are there. */
ALWAYS_INLINE void finish(struct walk *w, struct answer_thread *t)
{
	struct answer_query *q = w->q;

	store_be16(w->r.msg + 10, w->r.count[SECTION_ADDITIONAL]);
	write_header(w->r.msg,
		     (uint16_t)(DNS_QR | (w->is_aa ? DNS_AA : 0) | (w->r.is_full ? DNS_TC : 0) | (w->is_ad ? DNS_AD : 0) |
				recursion_available(q) | (q->flags & (DNS_OPCODE_MASK | DNS_RD | DNS_CD)) |
				(w->rcode & DNS_RCODE_MASK)),
		     q->state_ != STATE_HEADER, w->r.count[SECTION_ANSWER], w->r.count[SECTION_AUTHORITY]);
	q->rcode = w->rcode;
	q->response_bytes = w->r.pos;
	count_response(t, w->rcode);
	if (unlikely(w->r.is_full))
		counter_add(t->counters, C_TRUNCATED, 1);
	if (!t->log)
		return;
	if (unlikely(q->state_ == STATE_HEADER)) {
		write_log(t, q, (const uint8_t *)"", 0);
		return;
	}
	/* A chain has left the question's name behind. */
	uint8_t lower[NAME_MAX_BYTES + NAME_LOWER_SLACK_BYTES];
	uint32_t name_bytes = q->question_end - DNS_HEADER_BYTES - 4u;

	name_lower_inline(lower, w->r.msg + DNS_HEADER_BYTES, name_bytes);
	write_log(t, q, lower, name_bytes);
}

/* The cache's answer, or the one of entry if there is one. */
static __attribute__((noinline)) enum answer_verdict answer_cached(const struct snapshot *s, struct answer_thread *t,
								   struct answer_query *q, const struct cache_entry *entry)
{
	enum answer_verdict verdict = ANSWER_SEND;
	struct walk w;
	uint32_t end = begin(&w, s, t, q);

	if (unlikely(entry != NULL)) {
		w.is_aa = q->zone != NULL; /* a chain that begins in a zone of ours */
		cached_render(&w, entry, t->now_s);
	} else {
		verdict = cached_answer(&w, t);
		if (verdict == ANSWER_MISS) {
			counter_add(t->counters, C_MISSES, 1);
			return verdict;
		}
	}
	if (q->has_edns)
		edns_render(&w, end);
	finish(&w, t);
	return verdict;
}

#define TAIL_MAX_BYTES 96u /* an OPT with a cookie and a little more */

/* The chain from our zone goes on outside: the query is put together again as it was. */
COLD static enum answer_verdict leave(const struct snapshot *s, struct answer_thread *t, struct answer_query *q,
				      const uint8_t tail[static TAIL_MAX_BYTES])
{
	memcpy(q->msg + q->question_end, tail, q->query_bytes - q->question_end);
	message_name(q, DNS_HEADER_BYTES);
	q->cache_hash = cache_hash(s->cache, q->name_hash);
	counter_add(t->counters, C_MISSES, 1);
	return ANSWER_MISS;
}

/* All other responses. place: of the name, in STATE_ZONE. */
static enum answer_verdict answer_walk(const struct snapshot *s, struct answer_thread *t, struct answer_query *q,
				       const struct place *place)
{
	uint8_t tail[TAIL_MAX_BYTES];
	struct tsig_query tsig;
	struct walk w;
	uint32_t end = begin(&w, s, t, q), tail_bytes = q->query_bytes - MIN(q->question_end, q->query_bytes);

	w.place = *place;
	w.name_pos = DNS_HEADER_BYTES;
	w.apex_pos = 0;
	w.pending_count = 0;
	w.seen_count = 0;
	w.dname_count = 0;
	w.additional_of = NULL;
	w.referral_cut = NULL;
	w.is_outside = false;
	w.may_leave = q->may_recurse && (q->flags & DNS_RD) && tail_bytes <= TAIL_MAX_BYTES;
	switch (q->state_) {
	case STATE_ZONE:
		if (w.may_leave)
			memcpy(tail, q->msg + q->question_end, tail_bytes);
		w.apex_pos = question_apex_pos(q);
		zone_answer(&w);
		if (unlikely(w.is_outside))
			return leave(s, t, q, tail);
		break;
	case STATE_CHAOS: chaos_answer(&w); break;
	case STATE_TSIG: tsig_copy(q, &tsig); break;
	default: break;
	}
	if (q->has_edns)
		edns_render(&w, end);
	if (unlikely(q->state_ == STATE_TSIG))
		tsig_render(&w, &tsig);
	finish(&w, t);
	return ANSWER_SEND;
}

/* What is not just data. at: the name's node, in STATE_ZONE. */
static __attribute__((noinline)) enum answer_verdict answer_other(const struct snapshot *s, struct answer_thread *t,
								  struct answer_query *q, struct zone_at at)
{
	struct place place = { .at = at };

	if (q->state_ == STATE_DROP)
		return ANSWER_DROP;
	if (likely(q->state_ == STATE_ZONE)) {
		place = place_find(q, at);
		const struct zone_rrset *soa = single_negative(q, &place);

		if (soa && answer_single(s, t, q, soa, true, at.node ? RCODE_NOERROR : RCODE_NXDOMAIN))
			return ANSWER_SEND;
	}
	return answer_walk(s, t, q, &place);
}

enum answer_verdict answer_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	struct zone_at at = { NULL, NULL };

	if (likely(q->state_ == STATE_ZONE)) {
		at = place_node(q);
		const struct zone_rrset *rrset = single_data(q, at);

		if (likely(rrset && answer_single(s, t, q, rrset, false, RCODE_NOERROR)))
			return ANSWER_SEND;
	}
	if (q->state_ == STATE_CACHE)
		return answer_cached(s, t, q, NULL);
	return answer_other(s, t, q, at);
}

enum answer_verdict answer_from_entry(const struct snapshot *s, struct answer_thread *t, struct answer_query *q,
				      const struct cache_entry *entry)
{
	parse_query(s, t, q);
	if (q->state_ != STATE_ZONE && q->state_ != STATE_CACHE)
		return answer_other(s, t, q, (struct zone_at){ NULL, NULL }); /* what may be asked has changed meanwhile */
	q->path = entry->flags & CACHE_F_FAILURE ? LOG_PATH_FAILED
		  : entry->flags & CACHE_F_STALE ? LOG_PATH_STALE
						 : LOG_PATH_RESOLVED;
	return answer_cached(s, t, q, entry);
}

enum answer_verdict answer(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	answer_prepare(s, t, q);
	return answer_finish(s, t, q);
}
