/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's thread: its loop, what comes in by rings and by the inbox, what goes out, and when it sleeps. */
#include "slowpath/resolve/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define EXCHANGE_OUTSTANDING_EACH 4u /* upstream queries at once for one question: a hedge, TCP, another upstream */
#define UDP_SOCKETS 64u
#define CONNECTIONS 256u
#define CONNECTIONS_PER_SERVER 4u
#define CONNECTION_IDLE_NS 10000000000ull
#define BUCKETS_MIN 256u

/* A question of the fastpath, with room for the longest query. */
struct ring_question {
	struct miss_question head;
	uint8_t query[MISS_QUERY_MAX_BYTES];
};

/* --- turns ------------------------------------------------------------------------------------------------------------ */

void worker_enter(struct worker *w)
{
	if (w->is_online)
		return;
	snapshot_online();
	listen_thread_beat(&w->thread);
	w->is_online = true;
	w->snapshot = listen_thread_snapshot(&w->thread);
	w->now_ns = clock_mono_ns();
	w->answer.wall_ns = clock_wall_ns();
	w->answer.wall_s = (int64_t)(w->answer.wall_ns / 1000000000u);
	w->answer.now_s = clock_mono_s();
	struct counter_block *own = w->look.counters;
	w->look = w->answer;
	w->look.counters = own;
}

static void wake(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof(one)); /* full: it is awake */
}

void worker_tell(struct worker *w, struct message *give)
{
	if (inbox_push(&w->inbox, &give->node))
		wake(w->wake_fd);
}

/* --- out -------------------------------------------------------------------------------------------------------------- */

static void send_by_ring(struct worker *w, const struct waiter *waiter, const uint8_t *message, uint32_t bytes)
{
	struct ring_producer *p = &w->answers[waiter->thread];
	struct miss_answer head = { .ticket = waiter->ticket, .response_bytes = bytes };
	uint8_t *room = ring_reserve(p, (uint32_t)sizeof(head) + bytes);
	if (!room) {
		counter_add(w->thread.counters, C_RESOLVE_RING_FULL, 1); /* the client will ask again */
		return;
	}
	memcpy(room, &head, sizeof(head));
	if (bytes)
		memcpy(room + sizeof(head), message, bytes);
	ring_commit(p);
	w->is_answered[waiter->thread] = true;
}

void worker_send(struct worker *w, struct waiter *take, const uint8_t *message, uint32_t bytes)
{
	if (take->has_quota)
		miss_quota_give_back(&w->quota, &take->quota);
	counter_add(w->thread.counters, C_RESOLVE_ANSWERS, message && !take->is_internal);
	if (take->origin)
		take->origin->reply(take->origin, message, message ? bytes : 0);
	else
		send_by_ring(w, take, message, message ? bytes : 0);
	free(take);
}

/* Wakes the threads of the fastpath that have got answers and sleep. */
static void kick(struct worker *w)
{
	for (unsigned i = 0; i < w->ring_count; i++) {
		if (!w->is_answered[i])
			continue;
		w->is_answered[i] = false;
		if (!ring_needs_kick(&w->answers[i]))
			continue;
		counter_add(w->thread.counters, C_RESOLVE_KICKS, 1);
		wake(w->thread_wake[i]);
	}
}

/* --- in --------------------------------------------------------------------------------------------------------------- */

struct waiter *waiter_create(const struct answer_client *client, const uint8_t *query, uint32_t query_bytes,
			     uint32_t capacity_bytes)
{
	struct waiter *waiter = malloc(sizeof(*waiter) + query_bytes);
	if (!waiter)
		return NULL;
	memset(waiter, 0, sizeof(*waiter));
	waiter->message.kind = MESSAGE_QUESTION;
	waiter->client = *client;
	waiter->query_bytes = query_bytes;
	waiter->capacity_bytes = capacity_bytes;
	memcpy(waiter->query, query, query_bytes);
	return waiter;
}

static bool is_sound(const struct ring_question *q, uint32_t bytes)
{
	const struct miss_question *h = &q->head;
	return bytes >= sizeof(*h) && h->query_bytes == bytes - sizeof(*h) && h->query_bytes >= DNS_HEADER_BYTES &&
	       (h->family == 4 || h->family == 6) &&
	       (h->flags == MISS_F_REFRESH || (h->flags == 0 && h->capacity_bytes >= DNS_UDP_PLAIN_BYTES));
}

/* A refresh from the fastpath comes as the query that hit the entry. */
static void refresh_by_ring(struct worker *w, struct ring_question *question, const struct answer_client *client)
{
	struct answer_query q = { .msg = w->message,
				  .query_bytes = question->head.query_bytes,
				  .capacity_bytes = sizeof(w->message),
				  .client = *client };
	struct answer_thread quiet = w->look;
	quiet.log = NULL;
	memcpy(q.msg, question->query, q.query_bytes);
	enum answer_verdict verdict = answer(w->snapshot, &quiet, &q);
	if (verdict == ANSWER_DROP || verdict == ANSWER_MISS || q.path != LOG_PATH_CACHE)
		return; /* gone, stale, or not from the cache: nothing to renew */
	struct cache_key key = { .name = q.lower,
				 .hash = q.cache_hash,
				 .type = q.qtype,
				 .partition = policy_group(w->snapshot->policy, q.group)->partition,
				 .name_bytes = q.name_bytes,
				 .is_cd = q.flags & DNS_CD };
	question_refresh(w, &key);
}

static void take_from_ring(struct worker *w, unsigned thread, struct ring_question *question)
{
	const struct miss_question *h = &question->head;
	struct answer_client client = { .port = h->port, .family = h->family, .transport = TRANSPORT_UDP };
	memcpy(client.address, h->address, h->family == 4 ? 4 : 16);
	if (h->flags & MISS_F_REFRESH) {
		refresh_by_ring(w, question, &client);
		return;
	}
	struct waiter *waiter =
		waiter_create(&client, question->query, h->query_bytes, MIN(h->capacity_bytes, MISS_RESPONSE_MAX_BYTES));
	if (!waiter) {
		counter_add(w->thread.counters, C_RESOLVE_NO_MEMORY, 1);
		return;
	}
	waiter->thread = (uint16_t)thread;
	waiter->ticket = h->ticket;
	waiter->received_ns = h->received_ns;
	question_take(w, waiter);
}

/* Takes what lies in the rings, a bounded number from each. True: there may be more. */
static bool take_rings(struct worker *w)
{
	struct ring_question question;
	bool is_more = false;
	for (unsigned i = 0; i < w->ring_count; i++) {
		uint32_t bytes = 0;
		unsigned taken = 0;
		for (; taken < RESOLVE_RING_BATCH; taken++) {
			enum ring_result result = ring_pop(&w->questions[i], &question, sizeof(question), &bytes);
			if (result == RING_WAIT)
				break;
			worker_enter(w);
			if (result == RING_OK && is_sound(&question, bytes))
				take_from_ring(w, i, &question);
			else
				counter_add(w->thread.counters, C_RESOLVE_RING_BAD, 1);
		}
		is_more |= taken == RESOLVE_RING_BATCH;
	}
	return is_more;
}

static void take_order(struct worker *w, struct order *order);

static void take_inbox(struct worker *w)
{
	struct inbox_node *node = inbox_take(&w->inbox);
	while (node) {
		struct message *m = (struct message *)node;
		node = node->next;
		worker_enter(w);
		switch (m->kind) {
		case MESSAGE_QUESTION:
			if (!((struct waiter *)m)->is_internal)
				atomic_fetch_sub_explicit(&w->inbox_count, 1, memory_order_relaxed);
			question_take(w, (struct waiter *)m);
			break;
		case MESSAGE_REFRESH: {
			struct refresh *r = (struct refresh *)m;
			struct cache_key key = { .name = r->name,
						 .hash = r->hash,
						 .type = r->type,
						 .partition = policy_group(w->snapshot->policy, r->group)->partition,
						 .name_bytes = r->name_bytes,
						 .is_cd = r->is_cd };
			question_refresh(w, &key);
			free(r);
			break;
		}
		case MESSAGE_PART: join_part(w, m); break;
		case MESSAGE_ORDER: take_order(w, (struct order *)m); break;
		}
	}
}

/* --- orders ----------------------------------------------------------------------------------------------------------- */

static bool is_ours(const struct worker *w, unsigned shard) { return shard % w->resolve->worker_count == w->index; }

/* An NXDOMAIN above the name answers for it too; types nobody has asked for stay. */
static void remove_cuts(struct worker *w, const uint8_t *lower)
{
	unsigned labels = name_labels(lower);
	for (unsigned drop = 1; drop <= labels; drop++) {
		const uint8_t *above = lower + name_suffix_offset(lower, drop);
		size_t bytes = name_wire_bytes(above, NAME_MAX_BYTES);
		if (is_ours(w, cache_shard(w->resolve->cache, cache_hash(w->resolve->reader, name_hash(above, bytes)))))
			(void)cache_remove(w->resolve->cache, above, bytes, UINT16_MAX); /* no such type: the NXDOMAIN only */
	}
}

static void take_order(struct worker *w, struct order *order)
{
	struct cache_writer *cache = w->resolve->cache;
	if (order->is_flush && order->is_tree) {
		for (unsigned shard = w->index; shard < cache_writer_shards(cache); shard += w->resolve->worker_count)
			order->removed += cache_remove_tree(cache, shard, order->name, order->name_bytes);
	} else if (order->is_flush) {
		uint64_t hash = cache_hash(w->resolve->reader, name_hash(order->name, order->name_bytes));
		if (is_ours(w, cache_shard(cache, hash)))
			order->removed += cache_remove(cache, order->name, order->name_bytes, order->type);
	}
	if (order->is_flush)
		remove_cuts(w, order->name);
	question_restart_matching(w, order->name, order->type, order->is_tree);
	if (order->done)
		sem_post(order->done);
	else
		free(order);
}

/* --- the loop --------------------------------------------------------------------------------------------------------- */

static void on_wake(uv_poll_t *handle, int status, int events)
{
	struct worker *w = handle->data;
	uint64_t count;
	(void)status;
	(void)events;
	(void)!read(w->wake_fd, &count, sizeof(count));
	for (unsigned i = 0; i < w->ring_count; i++)
		ring_cancel_sleep(&w->questions[i]);
	take_inbox(w);
}

static void on_busy(uv_idle_t *handle) { (void)handle; /* its being there keeps the loop from sleeping */ }

/* The end of a turn: sends, then lets go of the snapshot. */
static void on_before_sleep(uv_prepare_t *handle)
{
	struct worker *w = handle->data;
	bool is_more = take_rings(w);
	for (unsigned i = 0; i < w->ring_count && !is_more; i++)
		is_more = !ring_prepare_sleep(&w->questions[i]);
	if (w->is_online)
		exchanger_flush(w->exchanger);
	kick(w);
	if (is_more != w->is_busy) {
		w->is_busy = is_more;
		(void)(is_more ? uv_idle_start(&w->busy, on_busy) : uv_idle_stop(&w->busy));
	}
	if (w->is_online) {
		w->is_online = false;
		w->snapshot = NULL;
		snapshot_offline();
	}
}

static void on_wheel_closed(uv_handle_t *handle) { (void)handle; }

/* Everything that keeps the loop alive goes. */
static void close_all(struct worker *w)
{
	if (w->is_stopping)
		return;
	w->is_stopping = true;
	question_drop_all(w);
	forwarder_destroy(w->forwarder);
	exchanger_destroy(w->exchanger);
	timer_wheel_fini(&w->timers, on_wheel_closed, NULL);
	uv_close((uv_handle_t *)&w->wake, NULL);
	uv_close((uv_handle_t *)&w->tick, NULL);
	uv_close((uv_handle_t *)&w->before_sleep, NULL);
	uv_close((uv_handle_t *)&w->busy, NULL);
}

static void on_tick(uv_timer_t *timer)
{
	struct worker *w = timer->data;
	listen_thread_beat(&w->thread);
	if (listen_thread_stops(&w->thread)) {
		worker_enter(w);
		close_all(w);
		return;
	}
	atomic_store_explicit(&w->question_gauge, w->question_count, memory_order_relaxed);
	uint32_t refused = atomic_exchange_explicit(&w->inbox_refused, 0, memory_order_relaxed);
	counter_add(w->thread.counters, C_RESOLVE_LIMIT_TOTAL, refused);
}

static void run(struct listen_thread *thread)
{
	struct worker *w = (struct worker *)thread;
	snapshot_offline(); /* worker_enter goes online */
	uv_run(&w->loop, UV_RUN_DEFAULT);
	if (w->is_online)
		snapshot_offline();
	w->is_online = false;
}

/* --- start and stop --------------------------------------------------------------------------------------------------- */

static enum err attach_rings(struct worker *w, const struct worker_config *config)
{
	const struct ring_set *set = config->rings;
	if (!set)
		return ERR_OK;
	w->questions = calloc(set->threads, sizeof(*w->questions));
	w->answers = calloc(set->threads, sizeof(*w->answers));
	w->is_answered = calloc(set->threads, sizeof(*w->is_answered));
	if (!w->questions || !w->answers || !w->is_answered)
		return ERR_NOMEM;
	w->thread_wake = config->thread_wake;
	for (unsigned i = 0; i < set->threads; i++) {
		size_t bytes;
		void *mem = ring_set_questions(set, i, w->index, &bytes);
		enum err err = ring_consumer_attach(&w->questions[i], mem, bytes);
		mem = ring_set_answers(set, i, w->index, &bytes);
		if (err == ERR_OK)
			err = ring_producer_attach(&w->answers[i], mem, bytes);
		if (err != ERR_OK)
			return err;
		w->is_answered[i] = true; /* a worker before us may have died before its kick */
	}
	w->ring_count = set->threads;
	return ERR_OK;
}

static enum err allocate(struct worker *w)
{
	uint32_t buckets = BUCKETS_MIN;
	uint64_t key;
	while (buckets < w->resolve->set.max_questions && buckets < 1u << 20)
		buckets *= 2;
	w->bucket_mask = buckets - 1;
	w->bucket = calloc(buckets, sizeof(*w->bucket));
	w->look_counters = aligned_alloc(CACHE_LINE, sizeof(*w->look_counters));
	w->answer_scratch = calloc(CACHE_SCRATCH_WORDS, sizeof(uint64_t));
	w->scratch = calloc(CACHE_SCRATCH_WORDS, sizeof(uint64_t));
	w->entry = calloc(1, ENTRY_BUILD_MAX_BYTES);
	if (!w->bucket || !w->look_counters || !w->answer_scratch || !w->scratch || !w->entry)
		return ERR_NOMEM;
	memset(w->look_counters, 0, sizeof(*w->look_counters));
	if (getrandom(&key, sizeof(key), 0) != sizeof(key))
		return ERR_IO;
	miss_quota_init(&w->quota, w->resolve->set.max_per_client, w->resolve->set.max_questions, key);
	return ERR_OK;
}

static enum err open_loop(struct worker *w)
{
	struct resolve *r = w->resolve;
	struct exchange_limits limits = { .outstanding =
						  MIN(EXCHANGE_OUTSTANDING_EACH * r->set.max_questions, EXCHANGE_OUTSTANDING_MAX),
					  .outstanding_per_server = r->set.max_per_upstream,
					  .udp_sockets = UDP_SOCKETS,
					  .connections = CONNECTIONS,
					  .connections_per_server = CONNECTIONS_PER_SERVER,
					  .idle_ns = CONNECTION_IDLE_NS };
	if (uv_loop_init(&w->loop) < 0)
		return ERR_NOMEM;
	w->has_loop = true;
	(void)uv_timer_init(&w->loop, &w->tick); /* none of these can fail */
	(void)uv_prepare_init(&w->loop, &w->before_sleep);
	(void)uv_idle_init(&w->loop, &w->busy);
	timer_wheel_init(&w->timers, &w->loop);
	int failed = uv_poll_init(&w->loop, &w->wake, w->wake_fd);
	if (failed) { /* the only handle that may not be closed */
		w->is_stopping = true;
		timer_wheel_fini(&w->timers, on_wheel_closed, NULL);
		uv_close((uv_handle_t *)&w->tick, NULL);
		uv_close((uv_handle_t *)&w->before_sleep, NULL);
		uv_close((uv_handle_t *)&w->busy, NULL);
		return err_from_errno(-failed);
	}
	w->wake.data = w->tick.data = w->before_sleep.data = w->busy.data = w;
	enum err err = exchanger_create(&w->exchanger, &w->loop, w->thread.counters, &limits);
	if (err == ERR_OK)
		err = forwarder_create(&w->forwarder, r->forward, &w->loop, w->exchanger, w->thread.counters);
	if (err != ERR_OK)
		return err;
	(void)uv_poll_start(&w->wake, UV_READABLE, on_wake);
	(void)uv_timer_start(&w->tick, on_tick, 0, LISTEN_SLEEP_MS);
	(void)uv_prepare_start(&w->before_sleep, on_before_sleep);
	return ERR_OK;
}

void worker_destroy(struct worker *w)
{
	if (!w)
		return;
	if (w->has_loop) {
		close_all(w); /* of a worker that never ran */
		(void)uv_run(&w->loop, UV_RUN_DEFAULT);
		ASSERT(uv_loop_close(&w->loop) == 0);
	}
	free(w->bucket);
	free(w->look_counters);
	free(w->answer_scratch);
	free(w->scratch);
	free(w->entry);
	free(w->questions);
	free(w->answers);
	free(w->is_answered);
	free(w);
}

enum err worker_create(struct worker **out, const struct worker_config *config)
{
	struct worker *w = calloc(1, sizeof(*w));
	if (!w)
		return ERR_NOMEM;
	w->resolve = config->resolve;
	w->index = config->index;
	w->cpu = config->cpu;
	w->wake_fd = config->wake_fd;
	w->thread.counters = config->counters;
	enum err err = allocate(w);
	if (err == ERR_OK)
		err = attach_rings(w, config);
	if (err == ERR_OK)
		err = open_loop(w);
	if (config->log)
		log_writer_init(&w->log, config->log, config->log_index);
	w->answer = (struct answer_thread){ .counters = config->counters,
					    .marks = config->marks,
					    .scratch = w->answer_scratch,
					    .log = config->log ? &w->log : NULL };
	w->look.counters = w->look_counters;
	if (err != ERR_OK) {
		worker_destroy(w);
		return err;
	}
	*out = w;
	return ERR_OK;
}

enum err worker_run(struct worker *w)
{
	char name[16];
	snprintf(name, sizeof(name), "resolve-%u", w->index % 1000);
	enum err err =
		listen_thread_start(&w->thread, name, w->cpu, COUNTER_RESOLVE, w->thread.counters, w->resolve->snapshots, run);
	w->is_running = err == ERR_OK;
	return err;
}

void worker_stop(struct worker *w)
{
	if (w && w->is_running)
		listen_thread_stop(&w->thread);
}

void worker_drain(struct worker *w)
{
	struct inbox_node *node = w ? inbox_take(&w->inbox) : NULL;
	while (node) {
		struct message *m = (struct message *)node;
		node = node->next;
		switch (m->kind) {
		case MESSAGE_QUESTION: worker_send(w, (struct waiter *)m, NULL, 0); break;
		case MESSAGE_REFRESH: free(m); break;
		case MESSAGE_PART: join_part(w, m); break;
		case MESSAGE_ORDER: {
			struct order *order = (struct order *)m;
			if (order->done)
				sem_post(order->done);
			else
				free(order);
			break;
		}
		}
	}
}
