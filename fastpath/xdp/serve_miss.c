/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/serve_miss.h"

#include "table/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static enum err attach(struct serve_miss *m, const struct serve_miss_options *o)
{
	for (unsigned i = 0; i < m->workers; i++) {
		size_t bytes;
		void *ring = ring_set_questions(o->rings, o->thread, i, &bytes);
		enum err err = ring_producer_attach(&m->questions[i], ring, bytes);

		if (err != ERR_OK)
			return err;
		ring = ring_set_answers(o->rings, o->thread, i, &bytes);
		err = ring_consumer_attach(&m->answers[i], ring, bytes);
		if (err != ERR_OK)
			return err;
		(void)ring_discard(&m->answers[i]);
	}
	return ERR_OK;
}

enum err serve_miss_create(struct serve_miss **out, const struct serve_miss_options *o)
{
	struct serve_miss *m;
	enum err err;

	if (o->thread >= o->rings->threads || o->rings->workers == 0)
		return ERR_ARGUMENT;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ERR_NOMEM;
	m->workers = o->rings->workers;
	m->worker_wake = o->worker_wake;
	m->wake = o->wake;
	m->counters = o->counters;
	m->cache = o->cache;
	m->questions = calloc(m->workers, sizeof(*m->questions));
	m->answers = calloc(m->workers, sizeof(*m->answers));
	m->pending = calloc(SERVE_MISS_PENDING + 1, sizeof(*m->pending));
	err = m->questions && m->answers && m->pending ? attach(m, o) : ERR_NOMEM;
	if (err != ERR_OK) {
		serve_miss_destroy(m);
		return err;
	}
	for (uint32_t i = 0; i < SERVE_MISS_PENDING; i++)
		m->pending[i].newer = (uint16_t)(i + 1);
	m->pending[SERVE_MISS_PENDING].newer = m->pending[SERVE_MISS_PENDING].older = SERVE_MISS_PENDING;
	m->generation_ = o->seed | 1;
	miss_quota_init(&m->quota_, o->per_client, SERVE_MISS_PENDING, o->seed);
	*out = m;
	return ERR_OK;
}

void serve_miss_destroy(struct serve_miss *m)
{
	if (!m)
		return;
	free(m->questions);
	free(m->answers);
	free(m->pending);
	free(m);
}

void serve_miss_kick(struct serve_miss *m)
{
	uint64_t one = 1;

	if (likely(m->asked_ == 0))
		return;
	for (unsigned i = 0; i < m->workers; i++)
		if ((m->asked_ >> (i % 64) & 1) && ring_needs_kick(&m->questions[i])) {
			counter_add(m->counters, C_MISS_KICKS, 1);
			if (write(m->worker_wake[i], &one, sizeof(one)) < 0 && errno != EAGAIN)
				counter_add(m->counters, C_MISS_KICK_ERROR, 1);
		}
	m->asked_ = 0;
}

bool serve_miss_prepare_sleep(struct serve_miss *m)
{
	for (unsigned i = 0; i < m->workers; i++)
		if (!ring_prepare_sleep(&m->answers[i])) {
			for (unsigned j = 0; j < i; j++)
				ring_cancel_sleep(&m->answers[j]);
			return false;
		}
	return true;
}

void serve_miss_awake(struct serve_miss *m, bool is_woken)
{
	uint64_t count;

	for (unsigned i = 0; i < m->workers; i++)
		ring_cancel_sleep(&m->answers[i]);
	if (is_woken)
		(void)!read(m->wake, &count, sizeof(count)); /* non-blocking; how often does not matter */
}
