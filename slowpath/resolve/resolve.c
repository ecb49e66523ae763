/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver's front: start and stop, questions from this process's threads, orders and questions of the control protocol. */
#include "slowpath/resolve/worker.h"

#include "dns/rr_type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND_NS 1000000u
#define REFRESH_SLOT_BITS 20u /* of a place in `refreshed`: a part of the hash; the others: when */

/* --- start and stop --------------------------------------------------------------------------------------------------- */

static struct resolve_settings read_settings(const struct config *c, unsigned workers)
{
	return (struct resolve_settings){
		.limits = { .min_ttl_s = c->cache.min_ttl_s,
			    .max_ttl_s = c->cache.max_ttl_s,
			    .negative_ttl_s = c->cache.negative_ttl_s },
		.question_time_ns = (uint64_t)c->limits.question_time_ms * MILLISECOND_NS,
		.stale_wait_ns = (uint64_t)c->cache.stale_wait_ms * MILLISECOND_NS,
		.stale_ttl_s = c->cache.stale_ttl_s,
		.stale_for_s = c->cache.stale_for_s,
		.max_questions = MAX(c->limits.max_questions / workers, 1u),
		.max_per_client = c->limits.max_questions_per_client,
		.max_per_upstream = MAX(c->limits.max_questions_per_upstream / workers, 1u),
	};
}

enum err resolve_start(struct resolve **out, const struct resolve_config *config)
{
	if (config->workers == 0 || config->workers > RESOLVE_WORKERS_MAX ||
	    (config->rings && config->rings->workers != config->workers) ||
	    config->first_block + config->workers > config->counters->block_count)
		return ERR_ARGUMENT;
	struct resolve *r = calloc(1, sizeof(*r));
	if (!r)
		return ERR_NOMEM;
	r->set = read_settings(config->config, config->workers);
	r->snapshots = config->snapshots;
	r->cache = config->cache;
	r->reader = config->cache_reader;
	r->worker_count = config->workers;
	r->rings = config->rings;
	enum err err = forward_table_create(&r->forward, config->config);
	for (unsigned i = 0; err == ERR_OK && i < config->workers; i++) {
		struct worker_config worker = { .resolve = r,
						.index = i,
						.cpu = config->cpus && config->cpu_count ? config->cpus[i % config->cpu_count]
											 : -1,
						.wake_fd = config->worker_wake[i],
						.thread_wake = config->thread_wake,
						.rings = config->rings,
						.counters = &config->counters->block[config->first_block + i],
						.marks = cache_reader_marks(config->cache_reader, config->first_marks + i),
						.log = config->log,
						.log_index = config->first_log + i };
		err = worker_create(&r->worker[i], &worker);
	}
	/* Parts of answers go from one to the other: all must be there before the first runs. */
	for (unsigned i = 0; err == ERR_OK && i < config->workers; i++)
		err = worker_run(r->worker[i]);
	if (err != ERR_OK) {
		resolve_stop(r);
		return err;
	}
	*out = r;
	return ERR_OK;
}

void resolve_stop(struct resolve *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->worker_count; i++)
		worker_stop(r->worker[i]);
	/* Twice: what is drained from one may end in a part for another. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned i = 0; i < r->worker_count; i++)
			worker_drain(r->worker[i]);
	for (unsigned i = 0; i < r->worker_count; i++)
		worker_destroy(r->worker[i]);
	forward_table_destroy(r->forward);
	free(r);
}

/* --- questions of this process ---------------------------------------------------------------------------------------- */

static struct worker *worker_of(const struct resolve *r, uint64_t hash)
{
	return r->worker[cache_shard(r->cache, hash) % r->worker_count];
}

enum err resolve_submit(struct resolve *r, const struct answer_query *q, uint64_t received_ns, struct resolve_origin *origin)
{
	uint8_t lower[NAME_MAX_BYTES];
	/* Not q's name, which follows a chain of our own zones. answer() has checked that the question is sound. */
	size_t bytes = name_wire_bytes(q->msg + DNS_HEADER_BYTES, q->query_bytes - DNS_HEADER_BYTES);
	name_lower(lower, q->msg + DNS_HEADER_BYTES, bytes);
	struct worker *w = worker_of(r, cache_hash(r->reader, name_hash(lower, bytes)));
	if (atomic_fetch_add_explicit(&w->inbox_count, 1, memory_order_relaxed) >= r->set.max_questions) {
		atomic_fetch_sub_explicit(&w->inbox_count, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&w->inbox_refused, 1, memory_order_relaxed);
		return ERR_NOSPACE;
	}
	struct waiter *waiter = waiter_create(&q->client, q->msg, q->query_bytes, q->capacity_bytes);
	if (!waiter) {
		atomic_fetch_sub_explicit(&w->inbox_count, 1, memory_order_relaxed);
		return ERR_NOMEM;
	}
	waiter->received_ns = received_ns;
	waiter->origin = origin;
	worker_tell(w, &waiter->message);
	return ERR_OK;
}

void resolve_refresh(struct resolve *r, const struct answer_query *q)
{
	/* A popular entry is hit thousands of times in its last seconds: one message for it is enough. */
	uint64_t mixed = (q->cache_hash ^ (uint64_t)q->qtype << 32 ^ (q->flags & DNS_CD)) * 0x9e3779b97f4a7c15u;
	uint32_t now = clock_mono_s() >> RESOLVE_REFRESH_PAUSE_SHIFT;
	uint32_t seen = (uint32_t)(mixed & ((1u << REFRESH_SLOT_BITS) - 1)) | now << REFRESH_SLOT_BITS;
	_Atomic uint32_t *place = &r->refreshed[mixed >> 32 & (RESOLVE_REFRESH_PLACES - 1)];
	if (atomic_load_explicit(place, memory_order_relaxed) == seen)
		return;
	atomic_store_explicit(place, seen, memory_order_relaxed);
	struct refresh *refresh = malloc(sizeof(*refresh) + q->name_bytes);
	if (!refresh)
		return;
	*refresh = (struct refresh){ .message = { .kind = MESSAGE_REFRESH },
				     .hash = q->cache_hash,
				     .type = q->qtype,
				     .group = q->group,
				     .is_cd = q->flags & DNS_CD,
				     .name_bytes = q->name_bytes };
	memcpy(refresh->name, q->lower, q->name_bytes);
	worker_tell(worker_of(r, refresh->hash), &refresh->message);
}

/* --- orders ----------------------------------------------------------------------------------------------------------- */

/* Gives the order to every worker and waits for them. Control thread. */
static enum err order_all(struct resolve *r, const struct order *order, uint64_t *removed)
{
	struct order *orders = calloc(r->worker_count, sizeof(*orders));
	sem_t done;
	if (!orders)
		return ERR_NOMEM;
	sem_init(&done, 0, 0);
	for (unsigned i = 0; i < r->worker_count; i++) {
		orders[i] = *order;
		orders[i].message.kind = MESSAGE_ORDER;
		orders[i].done = &done;
		worker_tell(r->worker[i], &orders[i].message);
	}
	for (unsigned i = 0; i < r->worker_count; i++) {
		while (sem_wait(&done) < 0 && errno == EINTR)
			continue;
	}
	*removed = 0;
	for (unsigned i = 0; i < r->worker_count; i++)
		*removed += orders[i].removed;
	sem_destroy(&done);
	free(orders);
	return ERR_OK;
}

enum err resolve_flush_name(struct resolve *r, const uint8_t *lower, size_t name_bytes, uint16_t type, uint64_t *removed)
{
	struct order order = { .name = lower, .name_bytes = name_bytes, .type = type, .is_flush = true };
	return order_all(r, &order, removed);
}

enum err resolve_flush_tree(struct resolve *r, const uint8_t *lower, size_t name_bytes, uint64_t *removed)
{
	struct order order = { .name = lower, .name_bytes = name_bytes, .is_tree = true, .is_flush = true };
	return order_all(r, &order, removed);
}

/* Older entries are misses from here on, and no older reply is given out: questions look at the epoch before they end. The workers are told
 * so that questions under way are asked again now, not when the old reply is there. */
static void advance(struct resolve *r)
{
	static const uint8_t root[1] = { 0 };
	for (unsigned i = 0; i < CACHE_PARTITIONS; i++)
		cache_epoch_advance(r->cache, (uint16_t)i);
	for (unsigned i = 0; i < r->worker_count; i++) {
		struct order *order = calloc(1, sizeof(*order));
		if (!order)
			continue; /* later, then */
		order->message.kind = MESSAGE_ORDER;
		order->name = root;
		order->name_bytes = sizeof(root);
		order->is_tree = true;
		worker_tell(r->worker[i], &order->message);
	}
}

void resolve_flush_all(struct resolve *r) { advance(r); }
void resolve_zones_changed(struct resolve *r) { advance(r); }
