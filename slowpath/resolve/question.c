/* SPDX-License-Identifier: Apache-2.0 */
/* A question under way: who waits for it, what the cache still knows, what comes of it.
 *
 *   question_take --answer()--> at once        question_find_or_begin --> begin --forward_ask--> on_reply --> complete, or join_begin
 *                                                                           |                       |
 *                                                                     client timer: stale      question_fail: stale, or a failure entry
 *
 * Whatever ends a question after its partition's epoch has advanced ends in question_restart instead. */
#include "slowpath/resolve/worker.h"

#include "dns/rr_type.h"
#include "table/zone_image_inline.h"

#include <stdlib.h>

#define BACKOFF_MEMORY_S 600u /* failures in a row: the last one no longer ago than twice the longest pause */
#define BACKOFF_MAX UINT8_MAX
#define REFRESH_PART 10u	/* as in fastpath/answer: the last tenth of an entry's time */
#define QUESTIONS_PER_WAITER 2u /* those without waiters (refreshes, what was answered stale) may be as many as the others */

/* --- the table -------------------------------------------------------------------------------------------------------- */

static struct question **bucket_of(struct worker *w, const struct cache_key *key)
{
	uint64_t hash = key->hash ^ (uint64_t)key->type * 0x9e3779b97f4a7c15u ^ (uint64_t)key->partition << 20;
	return &w->bucket[(hash ^ hash >> 32) & w->bucket_mask];
}

static struct question *question_find(struct worker *w, const struct cache_key *key, bool is_plain)
{
	for (struct question *q = *bucket_of(w, key); q; q = q->next) {
		if (q->hash == key->hash && q->type == key->type && q->partition == key->partition && q->is_cd == key->is_cd &&
		    q->is_plain == is_plain && q->name_bytes == key->name_bytes &&
		    memcmp(q->name, key->name, key->name_bytes) == 0)
			return q;
	}
	return NULL;
}

static struct cache_key key_of(const struct question *q)
{
	return (struct cache_key){ .name = q->name,
				   .hash = q->hash,
				   .type = q->type,
				   .partition = q->partition,
				   .name_bytes = q->name_bytes,
				   .is_cd = q->is_cd };
}

static struct question *question_create(struct worker *w, const struct cache_key *key, bool is_plain)
{
	struct question *q =
		w->question_count < QUESTIONS_PER_WAITER * w->resolve->set.max_questions ? calloc(1, sizeof(*q)) : NULL;
	if (!q)
		return NULL;
	struct question **bucket = bucket_of(w, key);
	q->worker = w;
	q->hash = key->hash;
	q->type = key->type;
	q->partition = key->partition;
	q->is_cd = key->is_cd;
	q->is_plain = is_plain;
	q->name_bytes = key->name_bytes;
	memcpy(q->name, key->name, key->name_bytes);
	q->next = *bucket;
	*bucket = q;
	q->previous_all = w->last_question;
	*(w->last_question ? &w->last_question->next_all : &w->first_question) = q;
	w->last_question = q;
	w->question_count++;
	return q;
}

/* Ends a question; its waiters are returned, a list by message.node.next. */
static struct waiter *question_detach(struct question *q)
{
	struct worker *w = q->worker;
	struct cache_key key = key_of(q);
	struct waiter *waiters = q->first_waiter;
	struct question **at = bucket_of(w, &key);
	if (q->ask)
		forward_cancel(q->ask);
	if (q->join)
		join_cancel(q->join);
	timer_wheel_clear(&w->timers, &q->stale_timer);
	if (w->built == q)
		w->built = NULL;
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	*(q->previous_all ? &q->previous_all->next_all : &w->first_question) = q->next_all;
	*(q->next_all ? &q->next_all->previous_all : &w->last_question) = q->previous_all;
	w->question_count--;
	free(q);
	return waiters;
}

static struct waiter *waiter_next(const struct waiter *waiter) { return (struct waiter *)waiter->message.node.next; }

static void add_waiter(struct question *q, struct waiter *take)
{
	take->message.node.next = NULL;
	if (q->last_waiter)
		q->last_waiter->message.node.next = &take->message.node;
	else
		q->first_waiter = take;
	q->last_waiter = take;
}

/* --- our zones and the cache -------------------------------------------------------------------------------------------- */

static bool is_ours(const struct snapshot *s, const uint8_t *lower, size_t name_bytes, unsigned skip)
{
	uint8_t offset[NAME_MAX_LABELS + 1], padded[sizeof(((struct answer_query *)NULL)->lower)]; /* wide loads read on */
	unsigned labels = 0;
	size_t at = 0;
	memcpy(padded, lower, name_bytes);
	for (; lower[at] != 0; at += 1u + lower[at])
		offset[labels++] = (uint8_t)at;
	offset[labels] = (uint8_t)at;
	if (skip > labels)
		return false;
	struct zone_set_hit hit = zone_set_find(s->zones, padded, name_bytes, offset, labels, skip);
	return hit.view && zone_speaks_for(hit.view, hit.zone_label == labels, padded, name_bytes, name_hash(lower, name_bytes));
}

bool question_name_is_ours(void *user, const uint8_t *lower, size_t name_bytes) { return is_ours(user, lower, name_bytes, 0); }

struct entry_question question_key(const struct question *q)
{
	return (struct entry_question){ .name = q->name,
					.hash = q->hash,
					.name_bytes = q->name_bytes,
					.type = q->type,
					.partition = q->partition,
					.is_cd = q->is_cd,
					.epoch = q->epoch,
					.is_ours = question_name_is_ours,
					.user = (void *)(uintptr_t)q->worker->snapshot };
}

bool question_is_outdated(const struct question *q) { return q->epoch != cache_epoch(q->worker->resolve->reader, q->partition); }

static enum cache_result read_cache(struct question *q, struct cache_hit *hit)
{
	struct worker *w = q->worker;
	struct cache_key key = key_of(q);
	return q->is_ours ? CACHE_MISS : cache_read(w->resolve->reader, &key, w->answer.now_s, w->scratch, hit);
}

/* The cache is full of larger things, or the entry is too large for it: not worth more than the cache's own counter. */
static void store(struct question *q, const struct cache_entry *entry) { (void)!cache_store(q->worker->resolve->cache, entry); }

/* Whether an expired entry may be served stale. */
static bool is_usable_stale(const struct worker *w, const struct cache_entry *e)
{
	return !(e->flags & CACHE_F_FAILURE) && entry_expired_s(e, w->answer.now_s) < w->resolve->set.stale_for_s;
}

/* --- answers ------------------------------------------------------------------------------------------------------------ */

static void fill_query(struct worker *w, struct answer_query *q, const struct waiter *waiter)
{
	q->msg = w->message;
	q->query_bytes = waiter->query_bytes;
	q->capacity_bytes = waiter->capacity_bytes;
	q->client = waiter->client;
	memcpy(w->message, waiter->query, waiter->query_bytes);
}

static void answer_waiters(struct worker *w, struct waiter *take, const struct cache_entry *entry, bool is_aa)
{
	while (take) {
		struct waiter *next = waiter_next(take);
		struct answer_query q;
		fill_query(w, &q, take);
		if (entry->flags & CACHE_F_STALE)
			counter_add(w->thread.counters, C_RESOLVE_STALE, 1);
		if (answer_from_entry(w->snapshot, &w->answer, &q, entry) == ANSWER_DROP) {
			worker_send(w, take, NULL, 0);
		} else {
			if (is_aa)
				w->message[2] |= DNS_AA >> 8;
			worker_send(w, take, w->message, q.response_bytes);
		}
		take = next;
	}
}

void question_complete(struct question *q, const struct cache_entry *entry, bool is_aa)
{
	struct worker *w = q->worker;
	answer_waiters(w, question_detach(q), entry, is_aa);
}

/* The client timer: those who wait get what is left in the cache; the question goes on. */
static void give_stale(struct question *q)
{
	struct worker *w = q->worker;
	const struct resolve_settings *set = &w->resolve->set;
	struct cache_hit hit;
	if (!q->first_waiter || q->join || read_cache(q, &hit) != CACHE_EXPIRED || !is_usable_stale(w, hit.entry) ||
	    (hit.entry->flags & CACHE_F_JOIN)) /* a chain that goes on elsewhere may take long as well */
		return;
	struct cache_entry *stale = (struct cache_entry *)w->scratch;
	struct waiter *waiters = q->first_waiter;
	entry_make_stale(stale, w->answer.now_s, set->stale_ttl_s, set->stale_ttl_s, q->epoch);
	q->first_waiter = q->last_waiter = NULL;
	answer_waiters(w, waiters, stale, false);
}

static void on_stale(struct timer_entry *timer)
{
	struct question *q = (struct question *)((uint8_t *)timer - offsetof(struct question, stale_timer));
	worker_enter(q->worker);
	q->is_stale_due = true;
	give_stale(q);
}

void question_fail(struct question *q, int16_t ede)
{
	struct worker *w = q->worker;
	const struct resolve_settings *set = &w->resolve->set;
	struct cache_hit hit;
	counter_add(w->thread.counters, C_RESOLVE_FAILED, 1);
	if (question_is_outdated(q)) {
		question_restart(q);
		return;
	}
	bool is_stored = !q->is_ours && !q->join;
	enum cache_result result = is_stored ? read_cache(q, &hit) : CACHE_MISS;
	if (result == CACHE_HIT && !(hit.entry->flags & (CACHE_F_FAILURE | CACHE_F_JOIN))) { /* a refresh: still good */
		question_complete(q, hit.entry, false);
		return;
	}
	if (result == CACHE_EXPIRED && is_usable_stale(w, hit.entry)) {
		struct cache_entry *stale = (struct cache_entry *)w->scratch;
		entry_make_stale(stale, w->answer.now_s, set->stale_ttl_s, set->stale_ttl_s, q->epoch);
		store(q, stale);
		if ((stale->flags & CACHE_F_JOIN) && !q->is_plain)
			join_begin(q, stale);
		else
			question_complete(q, stale, false);
		return;
	}
	struct cache_entry *failure = (struct cache_entry *)w->entry;
	struct entry_question key = question_key(q);
	w->built = NULL;
	entry_failure(failure, &key, w->answer.now_s, (uint8_t)MIN(q->backoff + 1, BACKOFF_MAX), ede);
	if (is_stored)
		store(q, failure);
	question_complete(q, failure, false);
}

/* --- asking ------------------------------------------------------------------------------------------------------------- */

/* What the reply makes, in w->entry. */
static enum entry_result build(struct question *q, const uint8_t *message, size_t bytes)
{
	struct worker *w = q->worker;
	struct entry_question key = question_key(q);
	w->built_result = entry_build((struct cache_entry *)w->entry, &key, &w->resolve->set.limits, w->answer.now_s, message,
				      bytes, &w->report);
	w->built = q;
	return w->built_result;
}

static bool on_candidate(void *user, const uint8_t *message, size_t bytes)
{
	struct question *q = user;
	worker_enter(q->worker);
	enum entry_result result = build(q, message, bytes);
	if (result == ENTRY_OK || result == ENTRY_TOO_LARGE)
		return true;
	counter_add(q->worker->thread.counters, C_RESOLVE_USELESS, 1);
	return false;
}

static void on_reply(struct question *q, const struct forward_outcome *outcome)
{
	struct worker *w = q->worker;
	struct cache_entry *entry = (struct cache_entry *)w->entry;
	if (w->built != q)
		(void)build(q, outcome->message, outcome->message_bytes);
	if (w->built_result != ENTRY_OK) {
		question_fail(q, w->built_result == ENTRY_TOO_LARGE ? EDE_OTHER : EDE_INVALID_DATA);
		return;
	}
	counter_add(w->thread.counters, C_RESOLVE_LEFT_OUT, w->report.left_out);
	if (w->report.lifetime_s > 0)
		store(q, entry);
	if ((entry->flags & CACHE_F_JOIN) && !q->is_plain)
		join_begin(q, entry);
	else
		question_complete(q, entry, false);
}

static void on_done(void *user, const struct forward_outcome *outcome)
{
	struct question *q = user;
	worker_enter(q->worker);
	q->ask = NULL;
	if (question_is_outdated(q))
		question_restart(q);
	else if (outcome->result == FORWARD_REPLY)
		on_reply(q, outcome);
	else
		question_fail(q, outcome->ede);
}

static void ask(struct question *q)
{
	struct worker *w = q->worker;
	struct forward_question question = { .name = q->name,
					     .name_bytes = q->name_bytes,
					     .type = q->type,
					     .is_cd = q->is_cd,
					     .deadline_ns = q->deadline_ns,
					     .is_useful = on_candidate };
	q->ask = q->deadline_ns > w->now_ns ? forward_ask(w->forwarder, &question, on_done, q) : NULL;
	if (!q->ask)
		question_fail(q, EDE_NO_REACHABLE_AUTHORITY);
}

/* q may be gone afterwards. */
static void begin(struct question *q, uint64_t received_ns)
{
	struct worker *w = q->worker;
	const struct resolve_settings *set = &w->resolve->set;
	struct cache_hit hit;
	q->epoch = cache_epoch(w->resolve->reader, q->partition);
	q->is_ours = is_ours(w->snapshot, q->name, q->name_bytes, q->type == RR_DS);
	/* What the fastpath says of the time is not trusted. */
	q->deadline_ns = MIN(received_ns, w->now_ns) + set->question_time_ns;
	counter_add(w->thread.counters, C_RESOLVE_QUESTIONS, 1);
	if (q->is_ours) {
		join_begin(q, NULL);
		return;
	}
	enum cache_result result = read_cache(q, &hit);
	if (result == CACHE_HIT && q->first_waiter) { /* not for a refresh */
		if ((hit.entry->flags & CACHE_F_JOIN) && !q->is_plain)
			join_begin(q, hit.entry);
		else
			question_complete(q, hit.entry, false);
		return;
	}
	if (result == CACHE_EXPIRED && (hit.entry->flags & CACHE_F_FAILURE) &&
	    w->answer.now_s - hit.entry->expire_s < BACKOFF_MEMORY_S)
		q->backoff = hit.entry->backoff;
	if (result == CACHE_EXPIRED && is_usable_stale(w, hit.entry))
		timer_wheel_set(&w->timers, &q->stale_timer, w->now_ns, w->now_ns + set->stale_wait_ns, on_stale);
	ask(q);
}

/* --- taking ------------------------------------------------------------------------------------------------------------- */

static const enum counter answer_counters[] = { C_ANSWERS, C_NOERROR,	  C_FORMERR,   C_SERVFAIL,   C_NXDOMAIN,  C_NOTIMP,
						C_REFUSED, C_RCODE_OTHER, C_TRUNCATED, C_CACHE_HITS, C_STALE_HITS };

/* The answer function once more: a zone, the cache or another question's reply may know by now. Queries were counted where they came in. */
static enum answer_verdict look_again(struct worker *w, struct answer_query *q, const struct waiter *waiter)
{
	for (unsigned i = 0; i < ARRAY_LEN(answer_counters); i++)
		counter_set(w->look_counters, answer_counters[i], 0);
	fill_query(w, q, waiter);
	enum answer_verdict verdict = answer(w->snapshot, &w->look, q);
	if (verdict != ANSWER_SEND && verdict != ANSWER_SEND_AND_REFRESH)
		return verdict;
	for (unsigned i = 0; i < ARRAY_LEN(answer_counters); i++)
		counter_add(w->thread.counters, answer_counters[i], counter_get(w->look_counters, answer_counters[i]));
	counter_add(w->thread.counters, C_RESOLVE_FROM_CACHE, 1);
	return verdict;
}

/* The question of a query that answer() has found to be one; lower has room for NAME_MAX_BYTES. */
static bool read_key(struct worker *w, const struct waiter *waiter, const struct answer_query *q, uint8_t *lower,
		     struct cache_key *key)
{
	const uint8_t *msg = waiter->query;
	size_t bytes = waiter->query_bytes > DNS_HEADER_BYTES
			       ? name_wire_bytes(msg + DNS_HEADER_BYTES, waiter->query_bytes - DNS_HEADER_BYTES)
			       : 0;
	if (bytes == 0 || waiter->query_bytes - DNS_HEADER_BYTES - bytes < 4)
		return false;
	name_lower(lower, msg + DNS_HEADER_BYTES, bytes);
	*key = (struct cache_key){ .name = lower,
				   .hash = cache_hash(w->resolve->reader, name_hash(lower, bytes)),
				   .type = load_be16(msg + DNS_HEADER_BYTES + bytes),
				   .partition = policy_group(w->snapshot->policy, q->group)->partition,
				   .name_bytes = (uint8_t)bytes,
				   .is_cd = dns_flags(msg) & DNS_CD };
	return true;
}

/* Whether the waiter is within its bounds; else it is counted and gone. */
static bool is_admitted(struct worker *w, struct waiter *take)
{
	if (take->has_quota || take->is_internal)
		return true;
	enum miss_quota_result result = miss_quota_take(&w->quota, take->client.family, take->client.address, &take->quota);
	if (result == MISS_QUOTA_OK) {
		take->has_quota = true;
		return true;
	}
	counter_add(w->thread.counters, result == MISS_QUOTA_CLIENT ? C_RESOLVE_LIMIT_CLIENT : C_RESOLVE_LIMIT_TOTAL, 1);
	worker_send(w, take, NULL, 0);
	return false;
}

static void join_or_begin(struct worker *w, struct waiter *take, const struct cache_key *key)
{
	struct question *q = question_find(w, key, take->is_internal);
	if (q) {
		counter_add(w->thread.counters, C_RESOLVE_JOINED, 1);
		add_waiter(q, take);
		if (q->is_stale_due)
			give_stale(q);
		return;
	}
	q = question_create(w, key, take->is_internal);
	if (!q) {
		counter_add(w->thread.counters, C_RESOLVE_LIMIT_TOTAL, 1);
		worker_send(w, take, NULL, 0);
		return;
	}
	add_waiter(q, take);
	begin(q, take->received_ns);
}

void question_take(struct worker *w, struct waiter *take)
{
	struct answer_query q;
	struct cache_key key;
	uint8_t lower[NAME_MAX_BYTES];
	if (!is_admitted(w, take))
		return;
	enum answer_verdict verdict = look_again(w, &q, take);
	if (verdict == ANSWER_SEND || verdict == ANSWER_SEND_AND_REFRESH) {
		worker_send(w, take, w->message, q.response_bytes);
		return;
	}
	if (verdict == ANSWER_DROP || !read_key(w, take, &q, lower, &key)) {
		worker_send(w, take, NULL, 0);
		return;
	}
	if (!take->is_internal && forwarder_take_loop(w->forwarder, take->query, take->query_bytes)) {
		counter_add(w->thread.counters, C_RESOLVE_LOOPS, 1);
		worker_send(w, take, NULL, 0);
		return;
	}
	/* The shard of a name has one writer. What is ours is not stored, and may come to any worker. */
	bool is_mine = cache_shard(w->resolve->cache, key.hash) % w->resolve->worker_count == w->index;
	if (!is_mine && !is_ours(w->snapshot, lower, key.name_bytes, key.type == RR_DS)) {
		counter_add(w->thread.counters, C_RESOLVE_RING_BAD, 1);
		worker_send(w, take, NULL, 0);
		return;
	}
	join_or_begin(w, take, &key);
}

void question_refresh(struct worker *w, const struct cache_key *key)
{
	struct cache_hit hit;
	if (cache_shard(w->resolve->cache, key->hash) % w->resolve->worker_count != w->index || question_find(w, key, false) ||
	    is_ours(w->snapshot, key->name, key->name_bytes, key->type == RR_DS))
		return;
	if (cache_read(w->resolve->reader, key, w->answer.now_s, w->scratch, &hit) != CACHE_HIT)
		return; /* nobody waits for it any more */
	uint32_t life_s = hit.entry->expire_s - hit.entry->stored_s;
	if ((uint64_t)(hit.entry->expire_s - w->answer.now_s) * REFRESH_PART > life_s)
		return; /* renewed meanwhile */
	struct question *q = question_create(w, key, false);
	if (!q)
		return;
	counter_add(w->thread.counters, C_RESOLVE_REFRESHED, 1);
	begin(q, w->now_ns);
}

/* --- the end ------------------------------------------------------------------------------------------------------------ */

static void take_again(struct worker *w, struct waiter *waiters)
{
	while (waiters) {
		struct waiter *next = waiter_next(waiters);
		question_take(w, waiters);
		waiters = next;
	}
}

void question_restart(struct question *q)
{
	struct worker *w = q->worker;
	counter_add(w->thread.counters, C_RESOLVE_RESTARTED, 1);
	take_again(w, question_detach(q));
}

/* An answer for a name above may be an NXDOMAIN for all below; a chain may lead anywhere. */
static bool is_concerned(const struct question *q, const uint8_t *lower, uint16_t type, bool is_tree)
{
	if (q->join || name_is_at_or_below(lower, q->name))
		return q->join || q->name_bytes != name_wire_bytes(lower, NAME_MAX_BYTES) || type == 0 || type == q->type ||
		       is_tree;
	return is_tree && name_is_at_or_below(q->name, lower);
}

void question_restart_matching(struct worker *w, const uint8_t *lower, uint16_t type, bool is_tree)
{
	struct inbox_node *first = NULL, **last = &first;
	for (struct question *q = w->first_question, *next; q; q = next) {
		next = q->next_all;
		if (!is_concerned(q, lower, type, is_tree))
			continue;
		counter_add(w->thread.counters, C_RESOLVE_RESTARTED, 1);
		*last = (struct inbox_node *)question_detach(q);
		while (*last)
			last = &(*last)->next;
	}
	take_again(w, (struct waiter *)first);
}

void question_drop_all(struct worker *w)
{
	while (w->first_question) {
		struct waiter *waiters = question_detach(w->first_question);
		while (waiters) {
			struct waiter *next = waiter_next(waiters);
			worker_send(w, waiters, NULL, 0);
			waiters = next;
		}
	}
}
