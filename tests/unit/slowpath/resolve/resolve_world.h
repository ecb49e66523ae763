/* SPDX-License-Identifier: Apache-2.0 */
/* resolve_world.h: a resolver with a real cache, real answers and rings, over a forwarder that a test scripts: what it says for which
 * name, how late, and how often it was asked. */
#pragma once
#include "base/clock.h"
#include "slowpath/resolve/forward.h"
#include "slowpath/resolve/resolve.h"
#include "table/miss.h"
#include "tests/unit/lib/zones.h"
#include "tests/unit/slowpath/resolve/reply.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WORLD_WORKERS_MAX 4u
#define WORLD_PATIENCE_MS 5000u
#define WORLD_SCRIPTS 16u

/* --- the forwarder ---------------------------------------------------------------------------------------------------- */

struct script {
	const char *name; /* questions for it and all below it; the first that fits counts */
	void (*reply)(struct reply *r, const char *name, uint16_t type); /* NULL: fails */
	int16_t ede;							 /* of failures */
	unsigned delay_ms;
};
static struct {
	pthread_mutex_t lock;
	struct script script[WORLD_SCRIPTS];
	unsigned scripts;
	_Atomic unsigned asked, cancelled;
	_Atomic bool is_held; /* nothing is answered */
	_Atomic bool is_loop;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct forward_table {
	int nothing;
};
struct forwarder {
	uv_loop_t *loop;
};
struct exchanger {
	int nothing;
};
struct forward_ask {
	uv_timer_t timer; /* first */
	uint8_t name[NAME_MAX_BYTES];
	struct forward_question question;
	forward_done *done;
	void *user;
	uint64_t due_ns;
};

enum err forward_table_create(struct forward_table **out, const struct config *config)
{
	(void)config;
	*out = calloc(1, sizeof(**out));
	return ERR_OK;
}
void forward_table_destroy(struct forward_table *t) { free(t); }
enum err exchanger_create(struct exchanger **out, uv_loop_t *loop, struct counter_block *counters,
			  const struct exchange_limits *limits)
{
	(void)loop;
	(void)counters;
	(void)limits;
	*out = calloc(1, sizeof(**out));
	return ERR_OK;
}
void exchanger_destroy(struct exchanger *x) { free(x); }
void exchanger_flush(struct exchanger *x) { (void)x; }
enum err forwarder_create(struct forwarder **out, struct forward_table *table, uv_loop_t *loop, struct exchanger *exchanger,
			  struct counter_block *counters)
{
	(void)table;
	(void)exchanger;
	(void)counters;
	*out = calloc(1, sizeof(**out));
	(*out)->loop = loop;
	return ERR_OK;
}
void forwarder_destroy(struct forwarder *f) { free(f); }
bool forwarder_take_loop(struct forwarder *f, const uint8_t *query, size_t query_bytes)
{
	(void)f;
	(void)query;
	(void)query_bytes;
	return atomic_load(&fake.is_loop);
}
json_t *forward_table_status(const struct forward_table *t)
{
	(void)t;
	return json_array();
}
json_t *forward_test(const struct forward_table *t, const uint8_t *zone, size_t zone_bytes, unsigned timeout_ms)
{
	(void)t;
	(void)zone;
	(void)zone_bytes;
	(void)timeout_ms;
	return json_array();
}

static void fake_closed(uv_handle_t *handle) { free(handle); }

static void fake_due(uv_timer_t *timer)
{
	struct forward_ask *a = (struct forward_ask *)timer;
	struct forward_outcome outcome = { .result = FORWARD_FAILED, .rcode = RCODE_SERVFAIL, .ede = EDE_NO_REACHABLE_AUTHORITY };
	struct reply *reply = malloc(sizeof(*reply));
	char text[NAME_TEXT_MAX_BYTES];
	if (clock_mono_ns() >= a->question.deadline_ns) {
		outcome.ede = EDE_NO_REACHABLE_AUTHORITY;
	} else if (atomic_load(&fake.is_held) || clock_mono_ns() < a->due_ns) {
		free(reply);
		return;
	} else {
		pthread_mutex_lock(&fake.lock);
		name_to_text(text, a->name);
		for (unsigned i = 0; i < fake.scripts; i++) {
			const struct script *s = &fake.script[i];
			uint8_t name[NAME_MAX_BYTES];
			reply_name(name, s->name);
			if (!name_is_at_or_below(a->name, name))
				continue;
			outcome.ede = s->ede ? s->ede : EDE_NO_REACHABLE_AUTHORITY;
			if (!s->reply)
				break;
			s->reply(reply, text, a->question.type);
			if (a->question.is_useful(a->user, reply->msg, reply->bytes))
				outcome = (struct forward_outcome){ .result = FORWARD_REPLY,
								    .message = reply->msg,
								    .message_bytes = reply->bytes };
			break;
		}
		pthread_mutex_unlock(&fake.lock);
	}
	uv_close((uv_handle_t *)&a->timer, fake_closed);
	a->done(a->user, &outcome);
	free(reply);
}

bool forward_covers(const struct forward_table *t, const uint8_t *lower, size_t name_bytes)
{
	(void)t;
	(void)lower;
	(void)name_bytes;
	return true;
}

struct forward_ask *forward_ask(struct forwarder *f, const struct forward_question *question, forward_done *done, void *user)
{
	struct forward_ask *a = calloc(1, sizeof(*a));
	unsigned delay_ms = 0;
	memcpy(a->name, question->name, question->name_bytes);
	a->question = *question;
	a->done = done;
	a->user = user;
	pthread_mutex_lock(&fake.lock);
	for (unsigned i = 0; i < fake.scripts; i++) {
		uint8_t name[NAME_MAX_BYTES];
		reply_name(name, fake.script[i].name);
		if (name_is_at_or_below(a->name, name)) {
			delay_ms = fake.script[i].delay_ms;
			break;
		}
	}
	pthread_mutex_unlock(&fake.lock);
	a->due_ns = clock_mono_ns() + delay_ms * 1000000ull;
	uv_timer_init(f->loop, &a->timer);
	uv_timer_start(&a->timer, fake_due, 0, 1);
	atomic_fetch_add(&fake.asked, 1);
	return a;
}

void forward_cancel(struct forward_ask *a)
{
	atomic_fetch_add(&fake.cancelled, 1);
	uv_close((uv_handle_t *)&a->timer, fake_closed);
}

static inline void fake_script(const char *name, void (*reply)(struct reply *, const char *, uint16_t), unsigned delay_ms)
{
	pthread_mutex_lock(&fake.lock);
	unsigned i = 0;
	while (i < fake.scripts && strcmp(fake.script[i].name, name) != 0)
		i++;
	cr_assert_lt(i, WORLD_SCRIPTS);
	fake.script[i] = (struct script){ .name = name, .reply = reply, .delay_ms = delay_ms };
	fake.scripts = MAX(fake.scripts, i + 1);
	pthread_mutex_unlock(&fake.lock);
}

/* --- the world -------------------------------------------------------------------------------------------------------- */

struct world {
	struct config config;
	struct snapshot_holder holder;
	struct counters *counters;
	struct policy *policy;
	struct cache_writer *writer;
	struct cache_reader *reader;
	int cache_fd, marks_fd, policy_fd, wake[WORLD_WORKERS_MAX], thread_wake[2];
	unsigned workers;
	struct ring_set rings;
	bool has_rings;
	struct answer_thread thread; /* of the test, which plays a listener */
	struct resolve *resolve;
};
static struct world world;

static inline struct snapshot *world_snapshot(const struct zones_text *zones, size_t count)
{
	struct snapshot *s = zones_snapshot(zones, count);
	s->policy = world.policy;
	s->cache = world.reader;
	return s;
}

static inline void world_defaults(void)
{
	world.config.cache.max_ttl_s = 86400;
	world.config.cache.negative_ttl_s = 3600;
	world.config.cache.stale_for_s = 86400;
	world.config.cache.stale_ttl_s = 30;
	world.config.cache.stale_wait_ms = 100;
	world.config.limits.max_questions = 20000;
	world.config.limits.max_questions_per_client = 2000;
	world.config.limits.max_questions_per_upstream = 10000;
	world.config.limits.question_time_ms = 2000;
}

static inline void world_start(unsigned workers, unsigned threads)
{
	static const struct policy_group group = { .flags = POLICY_F_RECURSION };
	const char *why;
	size_t bad;
	int fd;
	world.workers = workers;
	cr_assert_eq(cache_create(&world.cache_fd, 8 << 20), ERR_OK);
	cr_assert_eq(cache_marks_create(&world.marks_fd, world.cache_fd, 16), ERR_OK);
	cr_assert_eq(cache_writer_attach(&world.writer, world.cache_fd, world.marks_fd), ERR_OK);
	world.reader = cache_writer_reader(world.writer);
	cr_assert_eq(policy_create(&world.policy_fd, &group, 1, NULL, 0, &bad), ERR_OK);
	cr_assert_eq(policy_attach(&world.policy, world.policy_fd, &why), ERR_OK);
	cr_assert_eq(counters_create(&fd, "test"), ERR_OK);
	cr_assert_eq(counters_attach(&world.counters, fd, true), ERR_OK);
	close(fd);
	if (threads) {
		cr_assert_eq(ring_set_create(&fd, threads, workers, 65536, 65536), ERR_OK);
		cr_assert_eq(ring_set_attach(&world.rings, fd), ERR_OK);
		close(fd);
		world.has_rings = true;
	}
	for (unsigned i = 0; i < workers; i++)
		world.wake[i] = eventfd(0, EFD_NONBLOCK);
	for (unsigned i = 0; i < 2; i++)
		world.thread_wake[i] = eventfd(0, EFD_NONBLOCK);
	snapshot_publish(&world.holder, world_snapshot(NULL, 0));
	snapshot_thread_register();
	struct resolve_config c = { .config = &world.config,
				    .workers = workers,
				    .snapshots = &world.holder,
				    .cache = world.writer,
				    .cache_reader = world.reader,
				    .first_marks = 1,
				    .counters = world.counters,
				    .first_block = 1,
				    .rings = threads ? &world.rings : NULL,
				    .worker_wake = world.wake,
				    .thread_wake = world.thread_wake };
	cr_assert_eq(resolve_start(&world.resolve, &c), ERR_OK);
	world.thread = (struct answer_thread){ .counters = &world.counters->block[0],
					       .scratch = calloc(CACHE_SCRATCH_WORDS, 8),
					       .marks = cache_reader_marks(world.reader, 0) };
}

static inline void world_stop(void)
{
	resolve_stop(world.resolve);
	snapshot_thread_unregister();
	snapshot_publish(&world.holder, NULL);
	cache_writer_detach(world.writer);
	policy_detach(world.policy);
	if (world.has_rings)
		ring_set_detach(&world.rings);
	counters_detach(world.counters);
	for (unsigned i = 0; i < world.workers; i++)
		close(world.wake[i]);
	for (unsigned i = 0; i < 2; i++)
		close(world.thread_wake[i]);
	close(world.cache_fd);
	close(world.marks_fd);
	close(world.policy_fd);
	free(world.thread.scratch);
}

/* New zones, as the loader publishes them: the older snapshot has no readers afterwards. */
static inline void world_publish(const struct zones_text *zones, size_t count)
{
	snapshot_offline();
	snapshot_publish(&world.holder, world_snapshot(zones, count));
	snapshot_online();
}

static inline uint64_t world_counter(enum counter which)
{
	uint64_t sum = 0;
	for (unsigned i = 1; i <= world.workers; i++)
		sum += counter_get(&world.counters->block[i], which);
	return sum;
}

/* --- clients ---------------------------------------------------------------------------------------------------------- */

struct client {
	struct resolve_origin origin; /* first */
	sem_t done;
	bool is_answered, is_hit, is_refused; /* is_hit: the test's own answer() knew */
	uint8_t *message;
	size_t bytes;
	enum answer_verdict verdict;
	uint64_t began_ns, ended_ns;
};

static void client_reply(struct resolve_origin *origin, const uint8_t *message, size_t bytes)
{
	struct client *c = (struct client *)origin;
	if (message) {
		c->message = malloc(bytes);
		memcpy(c->message, message, bytes);
		c->bytes = bytes;
	}
	c->ended_ns = clock_mono_ns();
	sem_post(&c->done);
}

static inline void client_ask_from(struct client *c, const char *name, uint16_t type, bool is_do, uint8_t last_octet)
{
	static uint8_t msg[DNS_MESSAGE_MAX_BYTES];
	static uint16_t id;
	struct answer_query q = {
		.msg = msg,
		.capacity_bytes = sizeof(msg),
		.client = { .address = { 127, 0, last_octet, 1 }, .port = 5000, .family = 4, .transport = TRANSPORT_TCP }
	};
	memset(c, 0, sizeof(*c));
	sem_init(&c->done, 0, 0);
	c->origin.reply = client_reply;
	q.query_bytes = (uint32_t)zones_query(
		msg, sizeof(msg), &(struct zones_ask){ .name = name, .type = type, .is_do = is_do, .has_edns = true });
	store_be16(msg, ++id);
	msg[2] |= DNS_RD >> 8;
	world.thread.wall_s = clock_wall_s();
	world.thread.now_s = clock_mono_s();
	const struct snapshot *s = snapshot_acquire(&world.holder);
	c->began_ns = clock_mono_ns();
	c->verdict = answer(s, &world.thread, &q);
	snapshot_quiescent();
	if (c->verdict == ANSWER_MISS) {
		c->is_refused = resolve_submit(world.resolve, &q, c->began_ns, &c->origin) != ERR_OK;
		if (c->is_refused)
			sem_post(&c->done);
		return;
	}
	if (c->verdict == ANSWER_SEND_AND_REFRESH)
		resolve_refresh(world.resolve, &q);
	c->is_hit = true;
	client_reply(&c->origin, c->verdict == ANSWER_DROP ? NULL : msg, q.response_bytes);
}

static inline void client_ask(struct client *c, const char *name, uint16_t type) { client_ask_from(c, name, type, false, 0); }

static inline bool client_wait_ms(struct client *c, unsigned ms)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	snapshot_offline();
	c->is_answered = sem_timedwait(&c->done, &until) == 0;
	snapshot_online();
	return c->is_answered;
}

/* The response as text (lib/zones.h); "" if there was none. For free(). */
static inline char *client_text(struct client *c)
{
	cr_assert(c->is_answered || client_wait_ms(c, WORLD_PATIENCE_MS), "no answer in time");
	char *text = c->message ? zones_message_text(c->message, c->bytes) : strdup("");
	return text;
}

static inline void client_fini(struct client *c)
{
	free(c->message);
	sem_destroy(&c->done);
}

static inline int client_ede(const struct client *c)
{
	size_t pos = DNS_HEADER_BYTES;
	uint8_t name[NAME_MAX_BYTES];
	if (!c->message)
		return EDE_NONE;
	cr_assert(name_from_message(name, c->message, c->bytes, &pos));
	pos += 4;
	for (unsigned left = dns_ancount(c->message) + dns_nscount(c->message) + dns_arcount(c->message); left > 0; left--) {
		cr_assert(name_from_message(name, c->message, c->bytes, &pos));
		size_t end = pos + 10 + load_be16(c->message + pos + 8);
		if (load_be16(c->message + pos) == RR_OPT) {
			for (size_t at = pos + 10; at + 4 <= end; at += 4u + load_be16(c->message + at + 2))
				if (load_be16(c->message + at) == EDNS_EDE)
					return load_be16(c->message + at + 4);
		}
		pos = end;
	}
	return EDE_NONE;
}

/* Asks, waits, compares with what is expected (a prefix of the text). */
static inline void expect(const char *name, uint16_t type, const char *text)
{
	struct client c;
	client_ask(&c, name, type);
	char *got = client_text(&c);
	cr_assert(strncmp(got, text, strlen(text)) == 0, "%s: \"%s\" instead of \"%s\"", name, got, text);
	free(got);
	client_fini(&c);
}
