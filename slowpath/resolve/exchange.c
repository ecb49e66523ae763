/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c: the life of an exchange, the table of questions that replies are matched by, bounds.
 *
 * The table's key is the question (lower-cased name, type), under a secret seed. Ids need not be unique, and a reply that has a question that
 * waits but a wrong id, port or source is seen for what it is: a guess. */
#include "base/clock.h"
#include "dns/message.h"
#include "dns/name_inline.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/exchange_private.h"

#include <stdlib.h>

#define SLAB_EXCHANGES 64u
#define PEER_BUCKETS_MAX 4096u
#define PEER_SESSIONS_MAX 1024u /* peers that stay only for their TLS session */
#define QUESTION_FIXED_BYTES 4u

static void on_timeout(struct timer_entry *entry);

/* --- peers ---------------------------------------------------------------------------------------------------------- */

bool exchange_address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET) {
		const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	}
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	return a6->sin6_port == b6->sin6_port && memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0 &&
	       (!IN6_IS_ADDR_LINKLOCAL(&a6->sin6_addr) || a6->sin6_scope_id == b6->sin6_scope_id);
}

static uint64_t address_hash(const struct exchanger *x, const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET) {
		const struct sockaddr_in *a4 = (const void *)a;
		uint64_t key = (uint64_t)a4->sin_addr.s_addr << 16 | a4->sin_port;
		return XXH3_64bits_withSeed(&key, sizeof key, x->seed);
	}
	const struct sockaddr_in6 *a6 = (const void *)a;
	return XXH3_64bits_withSeed(&a6->sin6_addr, sizeof a6->sin6_addr, x->seed + a6->sin6_port);
}

/* Whether connections to p may be used for this request's server. */
static bool is_same_peer(const struct exchange_peer *p, const struct exchange_request *r)
{
	const struct exchange_server *s = r->server;
	if (!exchange_address_equal(&p->address, &s->address))
		return false;
	if (r->transport != EXCHANGE_TLS || !s->tls)
		return !p->tls;
	return p->tls == s->tls && !p->auth_name == !s->auth_name && !p->pin == !s->pin &&
	       (!p->auth_name || strcmp(p->auth_name, s->auth_name) == 0) &&
	       (!p->pin || memcmp(p->pin, s->pin, EXCHANGE_PIN_BYTES) == 0);
}

static struct exchange_peer *peer_get(struct exchanger *x, const struct exchange_request *r)
{
	const struct exchange_server *s = r->server;
	uint64_t hash = address_hash(x, &s->address);
	struct peer_list *bucket = &x->peer_bucket[hash & x->peer_mask];
	struct exchange_peer *p;
	for (p = LIST_FIRST(bucket); p; p = LIST_NEXT(p, link))
		if (p->hash == hash && is_same_peer(p, r))
			return p;
	p = LIST_FIRST(&x->free_peers);
	if (p)
		LIST_REMOVE(p, link);
	else if (!(p = malloc(sizeof *p)))
		return NULL;
	*p = (struct exchange_peer){ .hash = hash, .address_bytes = s->address_bytes };
	memcpy(&p->address, &s->address, s->address_bytes);
	if (r->transport == EXCHANGE_TLS) {
		p->tls = s->tls;
		p->auth_name = s->auth_name;
		p->pin = s->pin;
		p->text = s->text;
	}
	LIST_INSERT_HEAD(bucket, p, link);
	x->peer_count++;
	return p;
}

void exchange_peer_release(struct exchanger *x, struct exchange_peer *p)
{
	if (p->outstanding || p->stream_count || (p->session && !x->is_destroyed && x->peer_count <= PEER_SESSIONS_MAX))
		return;
	SSL_SESSION_free(p->session);
	p->session = NULL;
	LIST_REMOVE(p, link);
	LIST_INSERT_HEAD(&x->free_peers, p, link);
	x->peer_count--;
}

/* --- exchanges ------------------------------------------------------------------------------------------------------ */

static struct exchange *take_free(struct exchanger *x)
{
	if (TAILQ_EMPTY(&x->free_)) {
		struct exchange *slab = malloc(SLAB_EXCHANGES * sizeof *slab);
		if (!slab)
			return NULL;
		x->slabs[x->slab_count++] = slab;
		for (unsigned i = 0; i < SLAB_EXCHANGES; i++)
			TAILQ_INSERT_TAIL(&x->free_, &slab[i], queue);
	}
	struct exchange *e = TAILQ_FIRST(&x->free_);
	TAILQ_REMOVE(&x->free_, e, queue);
	memset(e, 0, offsetof(struct exchange, frame));
	e->x = x;
	return e;
}

static void unlink_exchange(struct exchange *e)
{
	struct exchanger *x = e->x;
	struct exchange_peer *peer = e->peer;
	LIST_REMOVE(e, same_bucket);
	timer_wheel_clear(&x->wheel, &e->timer);
	if (e->state == EXCHANGE_ENDING)
		TAILQ_REMOVE(&x->ending, e, queue);
	else if (e->state == EXCHANGE_QUEUED && e->transport == EXCHANGE_UDP)
		TAILQ_REMOVE(&x->udp[peer->address.ss_family == AF_INET6].unsent, e, queue);
	x->outstanding--;
	peer->outstanding--;
	if (e->port)
		exchange_udp_leave(e);
	if (e->stream)
		exchange_stream_leave(e);
	exchange_peer_release(x, peer);
	TAILQ_INSERT_HEAD(&x->free_, e, queue);
}

static void count_result(struct counter_block *c, enum exchange_result result)
{
	static const enum counter counter_of[] = { [EXCHANGE_REPLY] = C_UPSTREAM_REPLIES,
						   [EXCHANGE_TIMEOUT] = C_UPSTREAM_TIMEOUTS,
						   [EXCHANGE_UNREACHABLE] = C_UPSTREAM_UNREACHABLE,
						   [EXCHANGE_CLOSED] = C_COUNT_,
						   [EXCHANGE_TLS_FAILED] = C_COUNT_,
						   [EXCHANGE_SUSPECT] = C_UPSTREAM_SUSPECT,
						   [EXCHANGE_LOOP] = C_UPSTREAM_LOOPS,
						   [EXCHANGE_LIMIT] = C_UPSTREAM_LIMIT };
	if (counter_of[result] != C_COUNT_) /* those are counted per connection */
		counter_add(c, counter_of[result], 1);
}

void exchange_end(struct exchange *e, enum exchange_result result, const struct exchange_outcome *reply)
{
	struct exchange_outcome outcome = { 0 };
	exchange_done *done = e->done;
	void *user = e->user;
	if (reply)
		outcome = *reply;
	else
		outcome.now_ns = clock_mono_ns();
	outcome.result = result;
	outcome.rtt_ns = e->sent_ns && outcome.now_ns > e->sent_ns ? outcome.now_ns - e->sent_ns : 0;
	count_result(e->x->counters, result);
	unlink_exchange(e);
	done(user, &outcome);
}

void exchange_end_later(struct exchange *e, enum exchange_result result)
{
	struct exchanger *x = e->x;
	if (e->state == EXCHANGE_ENDING)
		return;
	if (e->state == EXCHANGE_QUEUED && e->transport == EXCHANGE_UDP)
		TAILQ_REMOVE(&x->udp[e->peer->address.ss_family == AF_INET6].unsent, e, queue);
	timer_wheel_clear(&x->wheel, &e->timer);
	e->state = EXCHANGE_ENDING;
	e->result = result;
	TAILQ_INSERT_TAIL(&x->ending, e, queue);
}

static void on_timeout(struct timer_entry *entry)
{
	struct exchange *e = (struct exchange *)((char *)entry - offsetof(struct exchange, timer));
	if (e->stream)
		exchange_stream_timed_out(e);
	exchange_end(e, e->is_suspect ? EXCHANGE_SUSPECT : EXCHANGE_TIMEOUT, NULL);
}

static uint64_t question_hash(const struct exchanger *x, const uint8_t *lower, size_t name_bytes, uint16_t type)
{
	return XXH3_64bits_withSeed(lower, name_bytes, x->seed ^ type * 0x9e3779b97f4a7c15u);
}

static struct exchange *refuse(struct exchanger *x, struct exchange_peer *peer, enum exchange_result why,
			       enum exchange_result *result)
{
	if (peer)
		exchange_peer_release(x, peer);
	count_result(x->counters, why);
	*result = why;
	return NULL;
}

struct exchange *exchange_start(struct exchanger *x, const struct exchange_request *r, exchange_done *done, void *user,
				enum exchange_result *result)
{
	if (x->outstanding >= x->limits.outstanding)
		return refuse(x, NULL, EXCHANGE_LIMIT, result);
	struct exchange_peer *peer = peer_get(x, r);
	if (!peer || peer->outstanding >= x->limits.outstanding_per_server)
		return refuse(x, peer, EXCHANGE_LIMIT, result);
	struct exchange *e = take_free(x);
	if (!e)
		return refuse(x, peer, EXCHANGE_LIMIT, result);
	e->peer = peer;
	e->done = done;
	e->user = user;
	e->transport = r->transport;
	if (!exchange_query_build(e, r)) {
		TAILQ_INSERT_HEAD(&x->free_, e, queue);
		return refuse(x, peer, EXCHANGE_UNREACHABLE, result);
	}
	e->hash = question_hash(x, r->name, r->name_bytes, r->type);
	LIST_INSERT_HEAD(&x->bucket[e->hash & x->bucket_mask], e, same_bucket);
	x->outstanding++;
	peer->outstanding++;
	uint64_t now_ns = clock_mono_ns();
	timer_wheel_set(&x->wheel, &e->timer, now_ns, now_ns + r->timeout_ns, on_timeout);
	if (r->transport == EXCHANGE_UDP) {
		exchange_udp_send(e);
	} else if (!exchange_stream_send(e, result)) {
		unlink_exchange(e);
		return refuse(x, NULL, *result, result);
	}
	return e;
}

void exchange_cancel(struct exchange *e) { unlink_exchange(e); }

unsigned exchanger_outstanding(const struct exchanger *x) { return x->outstanding; }

/* --- matching ------------------------------------------------------------------------------------------------------- */

struct question {
	const uint8_t *name; /* in the message, letter case as it came */
	size_t name_bytes;
	uint16_t type;
	uint64_t hash;
};

/* One question of class IN, name not compressed (there is nothing before it to point to). */
static bool read_question(const struct exchanger *x, struct question *out, const uint8_t *message, size_t message_bytes)
{
	uint8_t lower[NAME_MAX_BYTES];
	const uint8_t *name = message + DNS_HEADER_BYTES;
	size_t left = message_bytes - DNS_HEADER_BYTES, bytes = name_wire_bytes(name, left);
	if (bytes == 0 || left - bytes < QUESTION_FIXED_BYTES || load_be16(name + bytes + 2) != RR_CLASS_IN)
		return false;
	name_lower(lower, name, bytes);
	*out = (struct question){ .name = name, .name_bytes = bytes, .type = load_be16(name + bytes) };
	out->hash = question_hash(x, lower, bytes, out->type);
	return true;
}

static bool has_question(struct exchange *e, const struct question *q)
{
	return e->hash == q->hash && e->type == q->type && e->name_bytes == q->name_bytes && e->state == EXCHANGE_SENT &&
	       name_equal(exchange_query(e) + DNS_HEADER_BYTES, q->name);
}

/* What the message is for an exchange that has its question: C_UPSTREAM_REPLIES if it is the reply. The later, the closer. */
static enum counter judge(const struct exchange *e, const struct exchange_arrival *a)
{
	if (e->stream != a->stream || (!a->stream && !exchange_address_equal(&e->peer->address, a->source)))
		return C_UPSTREAM_WRONG_SOURCE;
	if (e->port != a->port)
		return C_UPSTREAM_WRONG_PORT;
	return e->id == dns_id(a->message) ? C_UPSTREAM_REPLIES : C_UPSTREAM_WRONG_ID;
}

/* Somebody knows whom we ask what: a few such are a server's oddity or a late reply, more are guesses. */
static void note_near_miss(struct exchange *e, uint64_t now_ns)
{
	if (++e->near_misses < EXCHANGE_NEAR_MISSES)
		return;
	exchange_end(e, EXCHANGE_SUSPECT, &(struct exchange_outcome){ .now_ns = now_ns });
}

/* Right but for letter case or cookie. */
static void note_suspect(struct exchange *e, uint64_t now_ns)
{
	if (!e->is_suspect) {
		uint64_t end_ns = now_ns + EXCHANGE_GRACE_MS * 1000000u;
		e->is_suspect = true;
		/* timer_entry holds ticks; a deadline that is nearer than the grace stays. */
		if (e->timer.tick_ > end_ns / TIMER_WHEEL_TICK_NS)
			timer_wheel_set(&e->x->wheel, &e->timer, now_ns, end_ns, on_timeout);
	}
	note_near_miss(e, now_ns);
}

/* id, source, port and question fit. */
static bool take_reply(struct exchange *e, const struct exchange_arrival *a, const struct question *q)
{
	struct exchange_outcome reply = { .message = a->message, .message_bytes = a->message_bytes, .now_ns = a->now_ns };
	struct exchanger *x = e->x;
	reply_edns_read(&reply.edns, a->message, a->message_bytes);
	if (e->is_0x20 && q && memcmp(exchange_query(e) + DNS_HEADER_BYTES, q->name, q->name_bytes) != 0) {
		counter_add(x->counters, C_UPSTREAM_WRONG_CASE, 1);
		note_suspect(e, a->now_ns);
		return false;
	}
	bool is_foreign = reply.edns.cookie_bytes && memcmp(reply.edns.cookie, e->client_cookie, COOKIE_CLIENT_PART_BYTES) != 0;
	if (a->port && e->has_cookie && (reply.edns.cookie_bytes ? is_foreign : e->is_cookie_expected)) {
		counter_add(x->counters, C_UPSTREAM_WRONG_COOKIE, 1);
		note_suspect(e, a->now_ns);
		return false;
	}
	exchange_end(e, EXCHANGE_REPLY, &reply);
	return true;
}

/* A header alone, or without question: servers that could not read the query say so like this. */
static bool take_without_question(struct exchanger *x, const struct exchange_arrival *a, struct exchange *first)
{
	unsigned rcode = dns_flags(a->message) & DNS_RCODE_MASK;
	if (rcode == RCODE_FORMERR || rcode == RCODE_NOTIMP || rcode == RCODE_SERVFAIL || rcode == RCODE_REFUSED)
		for (struct exchange *e = first; e; e = TAILQ_NEXT(e, same_carrier))
			if (e->state == EXCHANGE_SENT && judge(e, a) == C_UPSTREAM_REPLIES)
				return take_reply(e, a, NULL);
	counter_add(x->counters, C_UPSTREAM_WRONG_QUESTION, 1);
	return false;
}

bool exchange_take_message(struct exchanger *x, const struct exchange_arrival *a, struct exchange *first)
{
	struct question q = { 0 };
	bool is_response = a->message_bytes >= DNS_HEADER_BYTES &&
			   (dns_flags(a->message) & (DNS_QR | DNS_OPCODE_MASK)) == DNS_QR && dns_qdcount(a->message) <= 1;
	if (!is_response || (dns_qdcount(a->message) == 1 && !read_question(x, &q, a->message, a->message_bytes))) {
		counter_add(x->counters, C_UPSTREAM_MALFORMED, 1);
		return false;
	}
	if (dns_qdcount(a->message) == 0)
		return take_without_question(x, a, first);
	enum counter closest = C_UPSTREAM_WRONG_QUESTION;
	struct exchange *near = NULL;
	for (struct exchange *e = LIST_FIRST(&x->bucket[q.hash & x->bucket_mask]); e; e = LIST_NEXT(e, same_bucket)) {
		if (!has_question(e, &q))
			continue;
		enum counter what = judge(e, a);
		if (what == C_UPSTREAM_REPLIES)
			return take_reply(e, a, &q);
		if (what > closest) {
			closest = what;
			near = e;
		}
	}
	counter_add(x->counters, closest, 1);
	if (near && closest != C_UPSTREAM_WRONG_SOURCE)
		note_near_miss(near, a->now_ns);
	return false;
}
static_assert(C_UPSTREAM_WRONG_QUESTION < C_UPSTREAM_WRONG_SOURCE && C_UPSTREAM_WRONG_SOURCE < C_UPSTREAM_WRONG_PORT &&
		      C_UPSTREAM_WRONG_PORT < C_UPSTREAM_WRONG_ID,
	      "the later, the closer");

bool exchanger_take_loop(struct exchanger *x, const uint8_t *query, size_t query_bytes)
{
	struct question q;
	bool is_own = false;
	if (query_bytes < DNS_HEADER_BYTES || dns_qdcount(query) != 1 || !read_question(x, &q, query, query_bytes))
		return false;
	for (struct exchange *e = LIST_FIRST(&x->bucket[q.hash & x->bucket_mask]); e; e = LIST_NEXT(e, same_bucket)) {
		if (!has_question(e, &q) || e->id != dns_id(query) ||
		    memcmp(exchange_query(e) + DNS_HEADER_BYTES, q.name, q.name_bytes) != 0)
			continue;
		exchange_end_later(e, EXCHANGE_LOOP);
		is_own = true;
	}
	return is_own;
}

/* --- the exchanger -------------------------------------------------------------------------------------------------- */

void exchanger_flush(struct exchanger *x)
{
	exchange_udp_flush(x);
	exchange_stream_flush(x);
}

/* Before the loop waits: what is not sent yet, and the ends of those that failed at once. */
static void on_prepare(uv_prepare_t *handle)
{
	struct exchanger *x = handle->data;
	exchanger_flush(x);
	while (!TAILQ_EMPTY(&x->ending)) {
		struct exchange *e = TAILQ_FIRST(&x->ending);
		exchange_end(e, e->result, NULL);
		if (TAILQ_EMPTY(&x->ending))
			exchanger_flush(
				x); /* done may have started others, which may fail at once too: whoever starts has a bound */
	}
}

static void free_exchanger(struct exchanger *x)
{
	struct exchange_peer *p;
	for (unsigned i = 0; i < x->slab_count; i++)
		free(x->slabs[i]);
	while ((p = LIST_FIRST(&x->free_peers))) {
		LIST_REMOVE(p, link);
		free(p);
	}
	exchange_udp_fini(x);
	free(x->slabs);
	free(x->bucket);
	free(x->peer_bucket);
	free(x->read_buffer);
	free(x);
}

void exchanger_handle_closed(struct exchanger *x)
{
	if (--x->open_handles == 0 && x->is_destroyed)
		free_exchanger(x);
}

static void on_handle_closed(uv_handle_t *handle) { exchanger_handle_closed(handle->data); }

static bool is_sane(const struct exchange_limits *l)
{
	return l->outstanding && l->outstanding <= EXCHANGE_OUTSTANDING_MAX && l->outstanding_per_server && l->udp_sockets &&
	       l->connections && l->connections_per_server;
}

static uint32_t power_of_two_from(uint32_t n)
{
	uint32_t p = 64;
	while (p < n)
		p *= 2;
	return p;
}

static bool allocate(struct exchanger *x)
{
	uint32_t buckets = power_of_two_from(x->limits.outstanding), peers = MIN(buckets, PEER_BUCKETS_MAX);
	x->bucket_mask = buckets - 1;
	x->peer_mask = peers - 1;
	x->bucket = calloc(buckets, sizeof *x->bucket);
	x->peer_bucket = calloc(peers, sizeof *x->peer_bucket);
	x->slabs = calloc(x->limits.outstanding / SLAB_EXCHANGES + 1, sizeof *x->slabs);
	x->read_buffer = malloc(STREAM_READ_BYTES);
	return x->bucket && x->peer_bucket && x->slabs && x->read_buffer;
}

enum err exchanger_create(struct exchanger **out, uv_loop_t *loop, struct counter_block *counters,
			  const struct exchange_limits *limits)
{
	if (!is_sane(limits))
		return ERR_ARGUMENT;
	struct exchanger *x = calloc(1, sizeof *x);
	if (!x)
		return ERR_NOMEM;
	x->loop = loop;
	x->counters = counters;
	x->limits = *limits;
	x->udp_epoll = -1;
	x->seed = random_pool_u64(&x->random);
	TAILQ_INIT(&x->free_);
	TAILQ_INIT(&x->ending);
	TAILQ_INIT(&x->udp[0].unsent);
	TAILQ_INIT(&x->udp[1].unsent);
	enum err err = allocate(x) ? exchange_udp_init(x) : ERR_NOMEM;
	if (err != ERR_OK) {
		free_exchanger(x);
		return err;
	}
	timer_wheel_init(&x->wheel, loop);
	(void)uv_prepare_init(loop, &x->prepare); /* neither can fail */
	(void)uv_prepare_start(&x->prepare, on_prepare);
	x->prepare.data = x->udp_poll.data = x;
	x->open_handles = 3;
	*out = x;
	return ERR_OK;
}

void exchanger_destroy(struct exchanger *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i <= x->bucket_mask; i++)
		while (!LIST_EMPTY(&x->bucket[i]))
			exchange_cancel(LIST_FIRST(&x->bucket[i]));
	x->is_destroyed = true;
	exchange_stream_close_all(x);
	for (uint32_t i = 0; i <= x->peer_mask; i++)
		for (struct exchange_peer *p = LIST_FIRST(&x->peer_bucket[i]), *next; p; p = next) {
			next = LIST_NEXT(p, link);
			exchange_peer_release(x, p);
		}
	exchange_udp_close_all(x);
	uv_close((uv_handle_t *)&x->udp_poll, on_handle_closed);
	uv_close((uv_handle_t *)&x->prepare, on_handle_closed);
	timer_wheel_fini(&x->wheel, on_handle_closed, x);
}
