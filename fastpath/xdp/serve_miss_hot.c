/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: 300 instructions to ask, 400 to send an answer on. */
#include "xdp/serve_miss.h"

#include "dns/message.h"
#include "table/cache.h"

#define EXPIRE_MOST 64u /* pending queries that one call ends */

ALWAYS_INLINE uint32_t slot_of(uint64_t ticket) { return (uint32_t)(ticket % SERVE_MISS_PENDING); }

static void release(struct serve_miss *m, struct serve_pending *p)
{
	miss_quota_give_back(&m->quota_, &p->quota);
	m->pending[p->older].newer = p->newer;
	m->pending[p->newer].older = p->older;
	p->ticket = 0;
	p->newer = m->free_;
	m->free_ = (uint16_t)(p - m->pending);
}

static void expire(struct serve_miss *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < EXPIRE_MOST; i++) {
		struct serve_pending *oldest = &m->pending[m->pending[SERVE_MISS_PENDING].newer];

		if (oldest == &m->pending[SERVE_MISS_PENDING] || now_ns - oldest->began_ns < SERVE_MISS_LIFE_NS)
			return;
		counter_add(m->counters, C_MISS_EXPIRED, 1);
		release(m, oldest);
	}
}

static struct serve_pending *take_slot(struct serve_miss *m, uint64_t now_ns)
{
	struct serve_pending *head = &m->pending[SERVE_MISS_PENDING], *p = &m->pending[m->free_];
	uint16_t slot = m->free_;

	if (unlikely(p == head))
		return NULL;
	m->free_ = p->newer;
	p->older = head->older;
	p->newer = SERVE_MISS_PENDING;
	m->pending[p->older].newer = slot;
	head->older = slot;
	m->generation_++;
	p->ticket = m->generation_ * SERVE_MISS_PENDING + slot;
	p->began_ns = now_ns;
	return p;
}

static struct miss_question *reserve(struct serve_miss *m, const struct answer_query *q, uint32_t query_bytes, unsigned *worker)
{
	struct miss_question *r;

	*worker = cache_reader_shard(m->cache, q->cache_hash) % m->workers;
	r = ring_reserve(&m->questions[*worker], (uint32_t)sizeof(*r) + query_bytes);
	if (unlikely(!r)) {
		counter_add(m->counters, C_MISS_RING_FULL, 1);
		m->asked_ |= 1ull << (*worker % 64);
		return NULL;
	}
	*r = (struct miss_question){ .name_hash = q->name_hash,
				     .port = q->client.port,
				     .family = q->client.family,
				     .group = q->group,
				     .query_bytes = (uint16_t)query_bytes };
	memcpy(r->address, q->client.address, sizeof(r->address));
	return r;
}

static void commit(struct serve_miss *m, unsigned worker)
{
	ring_commit(&m->questions[worker]);
	m->asked_ |= 1ull << (worker % 64);
}

void serve_miss_ask(struct serve_miss *m, const struct answer_query *q, const struct frame *f, const uint8_t *data,
		    uint64_t now_ns)
{
	struct miss_quota_ticket quota;
	struct serve_pending *p;
	struct miss_question *r;
	unsigned worker;

	if (unlikely(q->query_bytes > MISS_QUERY_MAX_BYTES)) {
		counter_add(m->counters, C_MISS_TOO_LONG, 1);
		return;
	}
	if (unlikely(miss_quota_take(&m->quota_, q->client.family, q->client.address, &quota) != MISS_QUOTA_OK)) {
		counter_add(m->counters, C_MISS_QUOTA, 1);
		return;
	}
	r = reserve(m, q, q->query_bytes, &worker);
	p = r ? take_slot(m, now_ns) : NULL;
	if (unlikely(!p)) {
		if (r)
			counter_add(m->counters, C_MISS_NO_SLOT, 1);
		miss_quota_give_back(&m->quota_, &quota);
		return; /* a reservation that is not committed is none */
	}
	p->quota = quota;
	p->frame = *f;
	memcpy(p->headers, data, f->dns);
	r->ticket = p->ticket;
	r->received_ns = now_ns;
	r->capacity_bytes = (uint16_t)MIN(q->capacity_bytes, MISS_RESPONSE_MAX_BYTES);
	memcpy(r + 1, q->msg, q->query_bytes);
	commit(m, worker);
	counter_add(m->counters, C_MISS_ASKED, 1);
}

void serve_miss_refresh(struct serve_miss *m, const struct answer_query *q, uint64_t now_ns)
{
	uint64_t hash = q->cache_hash ^ (uint64_t)q->qtype << 1 ^ (q->flags & DNS_CD);
	uint32_t place = (uint32_t)(hash % SERVE_MISS_REFRESHES), bytes = q->question_end;
	struct miss_question *r;
	unsigned worker;
	uint8_t *query;

	if (m->refresh_[place].hash == hash && now_ns < m->refresh_[place].until_ns)
		return;
	m->refresh_[place].hash = hash;
	m->refresh_[place].until_ns = now_ns + SERVE_MISS_REFRESH_NS;
	r = reserve(m, q, bytes, &worker);
	if (!r)
		return;
	r->flags = MISS_F_REFRESH;
	query = (uint8_t *)(r + 1);
	memcpy(query, q->msg, bytes); /* the question is where it was; the header is written anew */
	memset(query, 0, DNS_HEADER_BYTES);
	store_be16(query + 2, DNS_RD | (q->flags & DNS_CD));
	store_be16(query + 4, 1);
	commit(m, worker);
	counter_add(m->counters, C_REFRESHES, 1);
}

/* The answer in the buffer becomes a packet. False: it is dropped, and counted. */
static bool send_on(struct serve_miss *m, struct umem *u, uint32_t record_bytes, struct umem_packet *out, uint32_t mtu_bytes)
{
	struct miss_answer a;
	struct serve_pending *p;
	const uint8_t *message = (const uint8_t *)m->buffer_ + sizeof(a);
	uint64_t address;

	if (unlikely(record_bytes < sizeof(a))) {
		counter_add(m->counters, C_MISS_BAD_ANSWER, 1);
		return false;
	}
	memcpy(&a, m->buffer_, sizeof(a));
	p = &m->pending[slot_of(a.ticket)];
	if (unlikely(a.ticket == 0 || p->ticket != a.ticket)) {
		counter_add(m->counters, C_MISS_LATE, 1);
		return false;
	}
	release(m, p); /* whatever it is, there is no second one */
	if (a.response_bytes == 0)
		return false;
	if (unlikely(a.response_bytes != record_bytes - sizeof(a) || a.response_bytes < DNS_HEADER_BYTES ||
		     a.response_bytes > frame_capacity(&p->frame, UMEM_FRAME_BYTES, mtu_bytes))) {
		counter_add(m->counters, C_MISS_BAD_ANSWER, 1);
		return false;
	}
	if (unlikely(!umem_take(u, &address))) {
		counter_add(m->counters, C_MISS_NO_FRAME, 1);
		return false;
	}
	uint8_t *data = u->area + address;

	memcpy(data, p->headers, p->frame.dns);
	memcpy(data + p->frame.dns, message, a.response_bytes);
	out->address = address;
	out->bytes = (uint32_t)frame_reply(&p->frame, data, a.response_bytes);
	counter_add(m->counters, C_MISS_ANSWERED, 1);
	return true;
}

uint32_t serve_miss_collect(struct serve_miss *m, struct umem *u, struct umem_packet *out, uint32_t most, uint32_t mtu_bytes,
			    uint64_t now_ns)
{
	uint32_t count = 0, taken = 0;

	for (unsigned i = 0; i < m->workers; i++) {
		for (; taken < most; taken++) {
			uint32_t bytes;
			enum ring_result result = ring_pop(&m->answers[i], m->buffer_, sizeof(m->buffer_), &bytes);

			if (result == RING_WAIT)
				break;
			if (unlikely(result == RING_CORRUPT))
				counter_add(m->counters, C_MISS_BAD_ANSWER, 1);
			else if (send_on(m, u, bytes, &out[count], mtu_bytes))
				count++;
		}
	}
	expire(m, now_ns);
	return count;
}
