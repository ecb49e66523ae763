/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's answer: an entry's body (table/cache_entry.h) behind the question, without DNSSEC spans unless asked for, with TTLs
 * counted down and, for names below an NXDOMAIN, pointers shifted. Budget: 250 instructions behind the cache's own. */
#include "answer/cached.h"
#include "table/cache.h"
#include "table/policy.h"

#define REFRESH_PART 10u    /* in the last tenth of its time a popular entry is refreshed */
#define REFRESH_LEAST_S 10u /* entries that live shorter are not worth it */
#define POPULAR_MARK 2u

void cached_client(const struct snapshot *s, struct answer_query *q)
{
	q->may_recurse = false;
	q->group = 0;
	if (!s->policy)
		return;
	q->group = policy_find(s->policy, q->client.family, q->client.address);
	q->may_recurse = s->cache && (policy_group(s->policy, q->group)->flags & POLICY_F_RECURSION) != 0;
}

static uint8_t refuse(struct answer_query *q, int16_t ede)
{
	q->rcode = RCODE_REFUSED;
	q->ede = ede;
	q->path = LOG_PATH_REFUSED;
	return STATE_QUESTION;
}

uint8_t cached_prepare(const struct snapshot *s, struct answer_query *q)
{
	if (unlikely(!q->may_recurse))
		return refuse(q, s->cache ? EDE_PROHIBITED : EDE_NOT_AUTHORITATIVE);
	/* Without RD nothing is resolved, and what others have asked is not told. */
	if (unlikely(!(q->flags & DNS_RD)))
		return refuse(q, EDE_NOT_AUTHORITATIVE);
	q->cache_hash = cache_hash(s->cache, q->name_hash);
	cache_prefetch_bucket(s->cache, q->cache_hash);
	return STATE_CACHE;
}

ALWAYS_INLINE struct cache_key key_of(const struct snapshot *s, const struct answer_query *q)
{
	return (struct cache_key){ .name = q->lower,
				   .hash = q->cache_hash,
				   .type = q->qtype,
				   .partition = policy_group(s->policy, q->group)->partition,
				   .name_bytes = q->name_bytes,
				   .is_cd = (q->flags & DNS_CD) != 0 };
}

void cached_prefetch(const struct snapshot *s, const struct answer_query *q)
{
	struct cache_key key = key_of(s, q);

	cache_prefetch_entry(s->cache, &key);
}

/* --- rendering ------------------------------------------------------------------------------------------------------ */

/* Octets of DNSSEC spans that end at or before `at` of the body; within a span: all of it is counted. */
ALWAYS_INLINE uint32_t skipped_before(const struct cache_entry *e, uint32_t at)
{
	uint32_t skipped = 0;

	for (unsigned i = 0; i < SECTION_COUNT_; i++)
		if (e->span[i].begin < e->span[i].end && e->span[i].end <= at)
			skipped += (uint32_t)e->span[i].end - e->span[i].begin;
	return skipped;
}
ALWAYS_INLINE bool is_skipped(const struct cache_entry *e, uint32_t at)
{
	for (unsigned i = 0; i < SECTION_COUNT_; i++)
		if (at >= e->span[i].begin && at < e->span[i].end)
			return true;
	return false;
}

ALWAYS_INLINE void put_ttl(uint8_t *p, uint32_t age_s)
{
	uint32_t ttl_s = load_be32(p);

	store_be32(p, ttl_s > age_s ? ttl_s - age_s : 0);
}

/* Pointers move by as much as the question's name is longer than the entry's. */
ALWAYS_INLINE void put_pointer(uint8_t *p, uint32_t shift) { store_be16(p, (uint16_t)(load_be16(p) + shift)); }

/* All of the body. */
static void copy_whole(uint8_t *out, const struct cache_entry *e, uint32_t age_s, uint32_t shift)
{
	const uint16_t *at = cache_entry_ttl_at(e);

	memcpy(out, cache_entry_body(e), e->body_bytes);
	for (unsigned i = 0; i < e->rr_count; i++)
		put_ttl(out + at[i], age_s);
	if (likely(shift == 0))
		return;
	at = cache_entry_pointer_at(e);
	for (unsigned i = 0; i < e->pointer_count; i++)
		put_pointer(out + at[i], shift);
}

/* What lies outside of the spans. Returns its octets. */
static uint32_t copy_plain(uint8_t *out, const struct cache_entry *e, uint32_t age_s, uint32_t shift)
{
	const uint8_t *body = cache_entry_body(e);
	const uint16_t *at = cache_entry_ttl_at(e);
	uint32_t pos = 0, from = 0;

	for (unsigned i = 0; i < SECTION_COUNT_; i++) {
		if (e->span[i].begin == e->span[i].end)
			continue;
		memcpy(out + pos, body + from, e->span[i].begin - from);
		pos += e->span[i].begin - from;
		from = e->span[i].end;
	}
	memcpy(out + pos, body + from, e->body_bytes - from);
	pos += e->body_bytes - from;
	for (unsigned i = 0; i < e->rr_count; i++)
		if (!is_skipped(e, at[i]))
			put_ttl(out + at[i] - skipped_before(e, at[i]), age_s);
	at = cache_entry_pointer_at(e);
	for (unsigned i = 0; shift != 0 && i < e->pointer_count; i++)
		if (!is_skipped(e, at[i]))
			put_pointer(out + at[i] - skipped_before(e, at[i]), shift);
	return pos;
}

void cached_render(struct walk *w, const struct cache_entry *e, uint32_t now_s)
{
	struct render *r = &w->r;
	uint32_t age_s = now_s > e->stored_s ? now_s - e->stored_s : 0, shift = (uint32_t)w->q->name_bytes - e->name_bytes;
	uint32_t span_bytes = skipped_before(e, UINT32_MAX);
	bool with_dnssec = w->q->is_do || span_bytes == 0;
	uint32_t bytes = with_dnssec ? e->body_bytes : e->body_bytes - span_bytes;

	w->rcode = e->rcode;
	if (unlikely(e->ede != EDE_NONE))
		w->q->ede = (int16_t)(unsigned char)e->ede;
	if (unlikely(r->pos + bytes > r->limit || (shift != 0 && r->pos + e->body_bytes > DNS_POINTER_MAX))) {
		r->is_full = true;
		return;
	}
	if (likely(with_dnssec))
		copy_whole(r->msg + r->pos, e, age_s, shift);
	else
		(void)copy_plain(r->msg + r->pos, e, age_s, shift);
	r->pos += bytes;
	for (unsigned i = 0; i < SECTION_COUNT_; i++)
		r->count[i] = (uint16_t)(e->count[i] - (with_dnssec ? 0 : e->dnssec_count[i]));
	w->is_ad = (e->flags & CACHE_F_AD) && (w->q->is_do || (w->q->flags & DNS_AD));
}

/* --- the answer ------------------------------------------------------------------------------------------------------ */

/* Read often, and about to end: worth asking again before somebody has to wait for it. */
ALWAYS_INLINE bool is_refresh_due(const struct cache_entry *e, unsigned mark, uint32_t now_s)
{
	uint32_t life_s = e->expire_s - e->stored_s;

	return mark >= POPULAR_MARK && life_s >= REFRESH_LEAST_S && e->expire_s - now_s <= life_s / REFRESH_PART &&
	       !(e->flags & (CACHE_F_FAILURE | CACHE_F_STALE));
}

enum answer_verdict cached_answer(struct walk *w, struct answer_thread *t)
{
	const struct snapshot *s = w->snapshot;
	struct answer_query *q = w->q;
	struct cache_key key = key_of(s, q);
	struct cache_hit hit;
	enum cache_result result = cache_read(s->cache, &key, t->now_s, t->scratch, &hit);

	if (unlikely(result == CACHE_MISS))
		result = cache_read_cut(s->cache, &key, q->label_offset, q->label_count, t->now_s, t->scratch, &hit);
	if (unlikely(result != CACHE_HIT || (hit.entry->flags & CACHE_F_JOIN)))
		return ANSWER_MISS;
	unsigned mark = cache_mark(t->marks, hit.slot);

	cached_render(w, hit.entry, t->now_s);
	q->path = hit.entry->flags & CACHE_F_STALE ? LOG_PATH_STALE : LOG_PATH_CACHE;
	counter_add(t->counters, C_CACHE_HITS, 1);
	if (unlikely(hit.entry->flags & CACHE_F_FAILURE))
		q->ede = EDE_CACHED_ERROR;
	if (unlikely(hit.entry->flags & CACHE_F_STALE))
		counter_add(t->counters, C_STALE_HITS, 1);
	if (unlikely(is_refresh_due(hit.entry, mark, t->now_s)) && (s->settings.flags & SETTINGS_F_PREFETCH))
		return ANSWER_SEND_AND_REFRESH;
	return ANSWER_SEND;
}
