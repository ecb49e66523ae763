/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a batch. In groups: check headers and prepare each message, prefetch each, finish each, so that the cache misses of
 * one message hide behind the work of the others. Every reply is written over its query. */
#include "xdp/serve.h"

/* Checks and prepares the packets; returns how many are worth finishing (state in frame[], address[], query[]). */
static uint32_t prepare_group(struct serve *s, const struct snapshot *snap, const struct umem_packet *in, uint32_t count,
			      uint32_t mtu_bytes)
{
	struct umem *u = s->umem;
	uint32_t good = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint8_t *data = u->area + in[i].address;
		size_t room = UMEM_FRAME_BYTES - (in[i].address & (UMEM_FRAME_BYTES - 1));
		struct frame *f = &s->frame[good];
		struct answer_query *q = &s->query[good];
		enum frame_verdict v = frame_parse(f, &q->client, data, in[i].bytes, s->verify_checksums);
		size_t capacity = v == FRAME_OK ? frame_capacity(f, room, mtu_bytes) : 0;

		if (unlikely(capacity < SERVE_MIN_CAPACITY_BYTES || f->dns_bytes > capacity)) {
			umem_drop(u, in[i].address);
			continue;
		}
		q->msg = data + f->dns;
		q->query_bytes = f->dns_bytes;
		q->capacity_bytes = (uint32_t)capacity;
		s->address[good++] = in[i].address;
		answer_prepare(snap, &s->answer, q);
	}
	if (unlikely(good < count))
		counter_add(s->counters, C_FRAME_BAD, count - good);
	return good;
}

/* Appends the replies to out[out_count..]; returns the new count. */
static uint32_t finish_group(struct serve *s, const struct snapshot *snap, uint32_t count, uint32_t out_count)
{
	struct umem *u = s->umem;

	for (uint32_t i = 0; i < count; i++)
		answer_prefetch(snap, &s->query[i]);
	for (uint32_t i = 0; i < count; i++) {
		struct answer_query *q = &s->query[i];

		switch (answer_finish(snap, &s->answer, q)) {
		case ANSWER_SEND_AND_REFRESH:
			if (s->miss)
				serve_miss_refresh(s->miss, q, s->now_ns);
			__attribute__((fallthrough));
		case ANSWER_SEND:
			DEBUG_ASSERT(q->response_bytes >= FRAME_DNS_HEADER_BYTES && q->response_bytes <= q->capacity_bytes);
			s->out[out_count].address = s->address[i];
			s->out[out_count].bytes = (uint32_t)frame_reply(&s->frame[i], u->area + s->address[i], q->response_bytes);
			out_count++;
			break;
		case ANSWER_MISS:
			if (s->miss)
				serve_miss_ask(s->miss, q, &s->frame[i], u->area + s->address[i], s->now_ns);
			__attribute__((fallthrough));
		case ANSWER_DROP: umem_drop(u, s->address[i]); break;
		}
	}
	return out_count;
}

uint32_t serve_batch(struct serve *s, const struct snapshot *snap)
{
	uint32_t lost = 0, out_count = 0, sent = 0;
	uint32_t received = umem_receive(s->umem, s->in, UMEM_BATCH, &lost);
	uint32_t mtu_bytes = atomic_load_explicit(&s->mtu_bytes, memory_order_relaxed);

	for (uint32_t i = 0; i < received; i += SERVE_GROUP) {
		uint32_t good = prepare_group(s, snap, s->in + i, MIN(SERVE_GROUP, received - i), mtu_bytes);

		out_count = finish_group(s, snap, good, out_count);
	}
	if (s->miss)
		out_count += serve_miss_collect(s->miss, s->umem, s->out + out_count, UMEM_BATCH, mtu_bytes, s->now_ns);
	if (out_count)
		sent = umem_send(s->umem, s->out, out_count);
	for (uint32_t i = sent; i < out_count; i++)
		umem_drop(s->umem, s->out[i].address);
	umem_recycle(s->umem, &lost);
	if (received || sent) {
		counter_add(s->counters, C_RX, received);
		counter_add(s->counters, C_TX, sent);
	}
	if (unlikely(out_count > sent))
		counter_add(s->counters, C_TX_FULL, out_count - sent);
	s->lost_frames += lost;
	DEBUG_ASSERT(umem_is_conserved(s->umem));
	return received;
}
