/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c: asking. An ask has up to FORWARD_LEGS exchanges under way, its legs. A timer starts another one when the last is late: a hedge or a
 * retry, depending on whom there is to ask. The first useful reply ends the ask for its owner; legs that are left go on for a while, unseen,
 * for what they teach of their servers. Probes are asks without an owner from the start. */
#include "base/clock.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/forward_private.h"
#include "slowpath/resolve/random_pool.h"
#include "slowpath/resolve/timer_wheel.h"

#include <stdlib.h>
#include <sys/queue.h>

#define MS 1000000ull
#define FORWARD_LEGS 4u
#define SLAB_ASKS 32u
#define HEDGE_TIMES 3u /* the usual time */
#define HEDGE_MIN_NS (4 * MS)
#define HEDGE_MAX_NS (500 * MS)
#define HEDGE_UNKNOWN_NS (150 * MS)
#define HEDGE_COST 10u /* credits; each question brings one: at most a tenth of them are hedged */
#define HEDGE_CREDIT_MAX 1000u
#define PATIENCE_MIN_NS (200 * MS)
#define PATIENCE_MAX_NS (2000 * MS)
#define PATIENCE_UNKNOWN_NS (500 * MS)
#define ROUND_PAUSE_NS (100 * MS) /* before those that could not be reached are tried once more */
#define ROUNDS_MAX 2u
#define NO_UPSTREAM UINT32_MAX

struct leg {
	struct forward_ask *ask;
	struct exchange *exchange; /* NULL: free */
	uint64_t sent_ns;
	unsigned index; /* in the zone */
	enum exchange_transport transport;
	bool is_edns, is_0x20, has_full_cookie;
	unsigned noted; /* points for lateness given so far */
};

struct forward_ask {
	struct forwarder *f;
	LIST_ENTRY(forward_ask) link; /* f->asks, or f->free_ */
	const struct forward_zone *zone;
	forward_done *done;
	void *user;
	bool (*is_useful)(void *user, const uint8_t *message, size_t message_bytes);
	struct timer_entry timer;
	struct leg leg[FORWARD_LEGS];
	unsigned legs, queries, round;
	uint64_t deadline_ns, patience_ns;
	uint64_t tried, bad; /* bits of the zone's upstreams: asked in this round; that answered uselessly */
	uint16_t rcode, type;
	int16_t ede;
	bool is_cd, is_done, is_reached, is_loop, has_cookie_retry;
	const char *server;
	uint8_t name_bytes, name[NAME_MAX_BYTES];
};
LIST_HEAD(ask_list, forward_ask);

struct forwarder {
	struct forward_table *table;
	struct exchanger *exchanger;
	struct counter_block *counters;
	struct upstream_share *share;
	struct timer_wheel wheel;
	struct random_pool random;
	struct ask_list asks, free_;
	void **slabs; /* owned */
	size_t slab_count;
	unsigned turn, hedge_credit;
};

static void on_leg_done(void *user, const struct exchange_outcome *o);
static void on_timer(struct timer_entry *entry);

static struct upstream *upstream_of(const struct forward_ask *a, unsigned index)
{
	return &a->f->table->upstream[a->zone->upstream[index]];
}

static struct upstream_share *share_of(const struct forward_ask *a, unsigned index)
{
	return &a->f->share[a->zone->upstream[index]];
}

/* --- the life of an ask --------------------------------------------------------------------------------------------- */

static struct forward_ask *take_ask(struct forwarder *f)
{
	if (LIST_EMPTY(&f->free_)) {
		void **slabs = realloc(f->slabs, (f->slab_count + 1) * sizeof *slabs);
		if (!slabs)
			return NULL;
		f->slabs = slabs;
		struct forward_ask *slab = malloc(SLAB_ASKS * sizeof *slab);
		if (!slab)
			return NULL;
		f->slabs[f->slab_count++] = slab;
		for (unsigned i = 0; i < SLAB_ASKS; i++)
			LIST_INSERT_HEAD(&f->free_, &slab[i], link);
	}
	struct forward_ask *a = LIST_FIRST(&f->free_);
	LIST_REMOVE(a, link);
	memset(a, 0, offsetof(struct forward_ask, name));
	a->f = f;
	a->rcode = RCODE_SERVFAIL;
	a->ede = EDE_NONE;
	LIST_INSERT_HEAD(&f->asks, a, link);
	return a;
}

static void free_ask(struct forward_ask *a)
{
	for (unsigned i = 0; i < FORWARD_LEGS; i++)
		if (a->leg[i].exchange)
			exchange_cancel(a->leg[i].exchange);
	timer_wheel_clear(&a->f->wheel, &a->timer);
	LIST_REMOVE(a, link);
	LIST_INSERT_HEAD(&a->f->free_, a, link);
}

static void set_timer(struct forward_ask *a, uint64_t now_ns, uint64_t pause_ns)
{
	uint64_t at_ns = now_ns + pause_ns;
	if (!a->is_done)
		at_ns = MIN(at_ns, a->deadline_ns);
	timer_wheel_set(&a->f->wheel, &a->timer, now_ns, at_ns, on_timer);
}

static uint64_t patience_of(const struct upstream *u)
{
	uint64_t patience_ns = upstream_patience_ns(u);
	return patience_ns ? MIN(MAX(patience_ns, PATIENCE_MIN_NS), PATIENCE_MAX_NS) : PATIENCE_UNKNOWN_NS;
}

/* The owner gets what there is; legs that are left are watched for a while. */
static void finish(struct forward_ask *a, struct forward_outcome *o, uint64_t now_ns)
{
	forward_done *done = a->done;
	a->is_done = true;
	o->server = a->server;
	o->is_dnssec = a->zone->dnssec;
	if (a->legs)
		set_timer(a, now_ns, patience_of(upstream_of(a, a->leg[0].index)));
	void *user = a->user;
	if (a->legs == 0)
		free_ask(a);
	done(user, o);
}

static void finish_failed(struct forward_ask *a, uint64_t now_ns)
{
	struct forward_outcome o = { .result = FORWARD_FAILED, .rcode = a->rcode, .is_ours = a->is_loop, .ede = a->ede };
	if (a->ede == EDE_NONE)
		o.ede = a->bad ? EDE_OTHER : a->is_reached ? EDE_NETWORK_ERROR : EDE_NO_REACHABLE_AUTHORITY;
	counter_add(a->f->counters, C_FORWARD_FAILED, 1);
	finish(a, &o, now_ns);
}

/* --- sending -------------------------------------------------------------------------------------------------------- */

static struct leg *free_leg(struct forward_ask *a)
{
	for (unsigned i = 0; i < FORWARD_LEGS; i++)
		if (!a->leg[i].exchange)
			return &a->leg[i];
	return NULL;
}

/* Sends to the zone's upstream of that index. False: it can't be begun; counts as a failure of it, or of ours. */
static bool send_leg(struct forward_ask *a, unsigned index, enum exchange_transport transport, bool is_edns, uint64_t now_ns)
{
	struct upstream *u = upstream_of(a, index);
	struct upstream_share *s = share_of(a, index);
	struct leg *leg = free_leg(a);
	enum exchange_result result;
	if (!leg || a->queries >= FORWARD_QUERIES_MAX || a->deadline_ns <= now_ns)
		return false;
	a->queries++;
	bool has_cookie = is_edns && !u->is_tls && upstream_may_cookie(u, now_ns);
	*leg = (struct leg){ .ask = a,
			     .sent_ns = now_ns,
			     .index = index,
			     .transport = transport,
			     .is_edns = is_edns,
			     .is_0x20 = transport == EXCHANGE_UDP && upstream_may_case(u, now_ns),
			     .has_full_cookie = has_cookie && s->server_cookie_bytes };
	struct exchange_request r = { .server = &u->server,
				      .transport = transport,
				      .name = a->name,
				      .name_bytes = a->name_bytes,
				      .type = a->type,
				      .is_rd = true,
				      .is_cd = a->is_cd,
				      .is_edns = is_edns,
				      .is_do = is_edns && a->zone->dnssec,
				      .is_0x20 = leg->is_0x20,
				      .is_cookie_expected = leg->has_full_cookie,
				      .udp_payload_bytes = FORWARD_UDP_PAYLOAD_BYTES,
				      .cookie = leg->has_full_cookie ? s->cookie
						: has_cookie	     ? u->client_cookie
								     : NULL,
				      .cookie_bytes = (uint8_t)(sizeof u->client_cookie +
								(leg->has_full_cookie ? s->server_cookie_bytes : 0)),
				      .timeout_ns = a->deadline_ns - now_ns };
	leg->exchange = exchange_start(a->f->exchanger, &r, on_leg_done, leg, &result);
	a->server = u->text;
	if (!leg->exchange) {
		if (result != EXCHANGE_LIMIT)
			upstream_note_failure(u, UPSTREAM_BROKEN, UINT64_MAX, now_ns);
		a->is_reached |= result != EXCHANGE_LIMIT;
		return false;
	}
	a->legs++;
	atomic_store_explicit(&s->queries, atomic_load_explicit(&s->queries, memory_order_relaxed) + 1, memory_order_relaxed);
	return true;
}

/* As it is asked first. */
static bool send_first(struct forward_ask *a, unsigned index, uint64_t now_ns)
{
	const struct upstream *u = upstream_of(a, index);
	a->tried |= 1ull << index;
	bool is_edns = a->zone->dnssec || upstream_may_edns(u, now_ns);
	return send_leg(a, index, u->is_tls ? EXCHANGE_TLS : EXCHANGE_UDP, is_edns, now_ns);
}

/* --- whom to ask ---------------------------------------------------------------------------------------------------- */

static bool is_choice(const struct forward_ask *a, unsigned index, bool may_be_out)
{
	const struct upstream *u = upstream_of(a, index);
	return !u->is_self && !(a->tried >> index & 1) && (may_be_out || !upstream_is_out(u));
}

/* The fastest; one that is not known comes after all that are, and among equals the first from a random one on. */
static unsigned choose_fastest(struct forward_ask *a, bool may_be_out)
{
	unsigned best = NO_UPSTREAM, start = random_pool_u16(&a->f->random) % a->zone->count;
	uint64_t best_ns = 0;
	for (unsigned n = 0; n < a->zone->count; n++) {
		unsigned i = (start + n) % a->zone->count;
		uint64_t usual_ns = upstream_usual_ns(upstream_of(a, i));
		usual_ns = usual_ns ? usual_ns : UINT64_MAX;
		if (is_choice(a, i, may_be_out) && (best == NO_UPSTREAM || usual_ns < best_ns)) {
			best = i;
			best_ns = usual_ns;
		}
	}
	return best;
}

static unsigned choose_among(struct forward_ask *a, bool may_be_out)
{
	const struct forward_zone *z = a->zone;
	if (z->strategy == STRATEGY_FASTEST)
		return choose_fastest(a, may_be_out);
	unsigned start = z->strategy == STRATEGY_SPREAD ? a->f->turn++ % z->count : 0;
	for (unsigned n = 0; n < z->count; n++)
		if (is_choice(a, (start + n) % z->count, may_be_out))
			return (start + n) % z->count;
	return NO_UPSTREAM;
}

/* One that was not asked in this round; one that is out only if there is no other. */
static unsigned choose(struct forward_ask *a)
{
	unsigned index = choose_among(a, false);
	return index != NO_UPSTREAM ? index : choose_among(a, true);
}

/* Whether there is another one to ask; those that are out count only if all are. */
static bool has_other(const struct forward_ask *a)
{
	bool is_any_in_use = false, is_any = false;
	for (unsigned i = 0; i < a->zone->count; i++) {
		const struct upstream *u = upstream_of(a, i);
		if (is_choice(a, i, false))
			return true;
		is_any_in_use |= !u->is_self && !upstream_is_out(u);
		is_any |= is_choice(a, i, true);
	}
	return is_any && !is_any_in_use;
}

/* --- going on ------------------------------------------------------------------------------------------------------- */

/* The pause until the next leg, after the one to upstream index has begun. */
static void set_next(struct forward_ask *a, unsigned index, uint64_t now_ns)
{
	const struct upstream *u = upstream_of(a, index);
	uint64_t usual_ns = upstream_usual_ns(u);
	a->patience_ns = a->patience_ns ? MIN(2 * a->patience_ns, PATIENCE_MAX_NS) : patience_of(u);
	uint64_t hedge_ns = usual_ns ? MIN(MAX(HEDGE_TIMES * usual_ns, HEDGE_MIN_NS), HEDGE_MAX_NS) : HEDGE_UNKNOWN_NS;
	set_timer(a, now_ns, has_other(a) ? MIN(hedge_ns, a->patience_ns) : a->patience_ns);
}

/* Asks the next one. False: there is nobody, or no more to be sent. */
static bool ask_next(struct forward_ask *a, uint64_t now_ns)
{
	for (unsigned index; (index = choose(a)) != NO_UPSTREAM;) {
		if (!send_first(a, index, now_ns))
			continue;
		set_next(a, index, now_ns);
		return true;
	}
	return false;
}

/* All were asked in this round. Those that could not be reached get another one; who has answered need not be asked again. */
static void end_round(struct forward_ask *a, uint64_t now_ns)
{
	uint64_t all = a->zone->count == 64 ? UINT64_MAX : (1ull << a->zone->count) - 1;
	for (unsigned i = 0; i < a->zone->count; i++)
		if (upstream_of(a, i)->is_self)
			all &= ~(1ull << i);
	a->is_loop |= all == 0;
	bool is_worth = (all & ~a->bad) && !a->is_loop && ++a->round < ROUNDS_MAX && a->queries < FORWARD_QUERIES_MAX;
	if (!is_worth) {
		finish_failed(a, now_ns);
		return;
	}
	a->tried = a->bad;
	set_timer(a, now_ns, ROUND_PAUSE_NS);
}

/* A leg has failed at once, not by silence. */
static void go_on(struct forward_ask *a, uint64_t now_ns)
{
	if (ask_next(a, now_ns))
		counter_add(a->f->counters, C_UPSTREAM_FAILOVERS, 1);
	else if (a->legs == 0)
		end_round(a, now_ns);
}

/* Points for those that are late. Whether all legs have waited beyond their upstream's patience. */
static bool note_late(struct forward_ask *a, uint64_t now_ns)
{
	bool is_beyond = true;
	for (unsigned i = 0; i < FORWARD_LEGS; i++) {
		struct leg *leg = &a->leg[i];
		if (!leg->exchange)
			continue;
		struct upstream *u = upstream_of(a, leg->index);
		bool is_silent = now_ns - leg->sent_ns >= patience_of(u);
		unsigned points = is_silent ? UPSTREAM_SILENT : UPSTREAM_LATE;
		if (points > leg->noted)
			upstream_note_failure(u, points, leg->sent_ns, now_ns);
		leg->noted = MAX(leg->noted, points);
		is_beyond &= is_silent;
	}
	return is_beyond;
}

/* Nothing came for too long: another one, or the same again. */
static void send_another(struct forward_ask *a, uint64_t now_ns)
{
	struct forwarder *f = a->f;
	bool is_beyond = note_late(a, now_ns), is_other = has_other(a);
	if (a->legs && !is_beyond && is_other && f->hedge_credit < HEDGE_COST) {
		set_timer(a, now_ns, a->patience_ns); /* too much is late: not a single server's fault */
		return;
	}
	if (a->legs && is_other) {
		f->hedge_credit -= is_beyond ? 0 : HEDGE_COST;
		counter_add(f->counters, is_beyond ? C_UPSTREAM_FAILOVERS : C_UPSTREAM_HEDGES, 1);
	}
	if (ask_next(a, now_ns))
		return;
	a->tried = a->bad;
	if (free_leg(a) && a->queries < FORWARD_QUERIES_MAX && ask_next(a, now_ns))
		return;
	if (a->legs)
		set_timer(a, now_ns, PATIENCE_MAX_NS);
	else
		end_round(a, now_ns);
}

static void on_timer(struct timer_entry *entry)
{
	struct forward_ask *a = (struct forward_ask *)((char *)entry - offsetof(struct forward_ask, timer));
	uint64_t now_ns = clock_mono_ns();
	if (a->is_done) { /* long enough watched */
		(void)note_late(a, now_ns);
		free_ask(a);
	} else if (now_ns >= a->deadline_ns) {
		(void)note_late(a, now_ns);
		for (unsigned i = 0; i < FORWARD_LEGS; i++)
			if (a->leg[i].exchange)
				exchange_cancel(a->leg[i].exchange);
		memset(a->leg, 0, sizeof a->leg);
		a->legs = 0;
		finish_failed(a, now_ns);
	} else {
		send_another(a, now_ns);
	}
	exchanger_flush(a->f->exchanger);
}

/* --- replies -------------------------------------------------------------------------------------------------------- */

enum verdict { REPLY_GOOD, REPLY_BAD, REPLY_AGAIN_TCP, REPLY_AGAIN_PLAIN, REPLY_AGAIN_COOKIE };

static enum verdict judge(const struct forward_ask *a, const struct leg *leg, const struct exchange_outcome *o)
{
	unsigned flags = dns_flags(o->message), rcode = o->edns.rcode;
	bool is_dnssec = a->zone->dnssec;
	if (leg->transport == EXCHANGE_UDP && (flags & DNS_TC))
		return REPLY_AGAIN_TCP;
	if (rcode == RCODE_BADCOOKIE && leg->is_edns)
		return leg->transport != EXCHANGE_UDP ? REPLY_BAD : a->has_cookie_retry ? REPLY_AGAIN_TCP : REPLY_AGAIN_COOKIE;
	bool is_no_edns = (rcode == RCODE_FORMERR || rcode == RCODE_NOTIMP) && !o->edns.has_opt;
	if (leg->is_edns && !is_dnssec && (is_no_edns || rcode == RCODE_BADVERS))
		return REPLY_AGAIN_PLAIN;
	if (o->edns.is_malformed || (rcode != RCODE_NOERROR && rcode != RCODE_NXDOMAIN) || dns_qdcount(o->message) != 1)
		return REPLY_BAD;
	if (is_dnssec && !o->edns.has_opt) /* DNSSEC would be off, silently */
		return REPLY_BAD;
	if (dns_ancount(o->message) == 0 && !(flags & (DNS_RA | DNS_AA))) /* a referral, or nothing */
		return REPLY_BAD;
	return REPLY_GOOD;
}

static void finish_good(struct forward_ask *a, const struct exchange_outcome *o)
{
	for (unsigned i = 0; i < a->zone->count; i++)
		if (a->bad >> i & 1)
			upstream_note_bad(upstream_of(a, i), o->now_ns);
	struct forward_outcome out = { .result = FORWARD_REPLY,
				       .message = o->message,
				       .message_bytes = o->message_bytes,
				       .rcode = o->edns.rcode,
				       .ede = o->edns.ede };
	finish(a, &out, o->now_ns);
}

/* What a reply teaches of its server. */
static void learn(const struct forward_ask *a, const struct leg *leg, const struct exchange_outcome *o, bool is_good)
{
	struct upstream *u = upstream_of(a, leg->index);
	struct upstream_share *s = share_of(a, leg->index);
	upstream_note_reply(u, s, o->rtt_ns, o->now_ns, is_good);
	upstream_note_cookie(u, s, &o->edns);
	if (o->edns.has_opt && !atomic_load_explicit(&u->knows_edns, memory_order_relaxed))
		atomic_store_explicit(&u->knows_edns, 1, memory_order_relaxed);
	if (!leg->is_0x20)
		return;
	if (atomic_load_explicit(&u->suspects, memory_order_relaxed))
		atomic_store_explicit(&u->suspects, 0, memory_order_relaxed);
	if (!atomic_load_explicit(&u->keeps_case, memory_order_relaxed))
		atomic_store_explicit(&u->keeps_case, 1, memory_order_relaxed);
}

static void note_bad(struct forward_ask *a, const struct leg *leg, const struct exchange_outcome *o)
{
	bool is_no_edns = leg->is_edns && (o->edns.rcode == RCODE_FORMERR || o->edns.rcode == RCODE_NOTIMP) && !o->edns.has_opt;
	struct upstream *u = upstream_of(a, leg->index);
	if (is_no_edns && a->zone->dnssec && upstream_may_edns(u, o->now_ns))
		upstream_note_no_edns(u, o->now_ns);
	a->bad |= 1ull << leg->index;
	if (o->edns.rcode != RCODE_NOERROR && a->rcode == RCODE_SERVFAIL)
		a->rcode = o->edns.rcode;
	if (a->ede == EDE_NONE)
		a->ede = o->edns.ede;
}

/* The same upstream another way. */
static bool ask_again(struct forward_ask *a, const struct leg *leg, enum verdict verdict, uint64_t now_ns)
{
	switch (verdict) {
	case REPLY_AGAIN_TCP:
		counter_add(a->f->counters, C_UPSTREAM_TRUNCATED, 1);
		return send_leg(a, leg->index, EXCHANGE_TCP, leg->is_edns, now_ns);
	case REPLY_AGAIN_PLAIN:
		counter_add(a->f->counters, C_UPSTREAM_EDNS_OFF, 1);
		return send_leg(a, leg->index, leg->transport, false, now_ns);
	case REPLY_AGAIN_COOKIE: a->has_cookie_retry = true; return send_leg(a, leg->index, EXCHANGE_UDP, true, now_ns);
	case REPLY_GOOD:
	case REPLY_BAD: break;
	}
	return false;
}

static void take_reply(struct forward_ask *a, const struct leg *leg, const struct exchange_outcome *o)
{
	struct upstream *u = upstream_of(a, leg->index);
	struct upstream_share *s = share_of(a, leg->index);
	enum verdict verdict = judge(a, leg, o);
	if (verdict == REPLY_GOOD && !a->is_done && a->is_useful && !a->is_useful(a->user, o->message, o->message_bytes))
		verdict = REPLY_BAD;
	learn(a, leg, o, verdict == REPLY_GOOD || verdict == REPLY_AGAIN_TCP);
	if (verdict == REPLY_AGAIN_TCP)
		atomic_store_explicit(&s->truncated, atomic_load_explicit(&s->truncated, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	if (verdict == REPLY_GOOD && !leg->is_edns && upstream_may_edns(u, o->now_ns) && !a->zone->dnssec)
		upstream_note_no_edns(u, o->now_ns); /* it could answer only without */
	if (a->is_done)
		return;
	a->server = u->text;
	if (verdict == REPLY_GOOD) {
		finish_good(a, o);
		return;
	}
	if (verdict != REPLY_BAD && ask_again(a, leg, verdict, o->now_ns)) {
		set_next(a, leg->index, o->now_ns);
		return;
	}
	note_bad(a, leg, o);
	go_on(a, o->now_ns);
}

static void take_failure(struct forward_ask *a, const struct leg *leg, const struct exchange_outcome *o)
{
	struct upstream *u = upstream_of(a, leg->index);
	struct upstream_share *s = share_of(a, leg->index);
	atomic_store_explicit(&s->failures, atomic_load_explicit(&s->failures, memory_order_relaxed) + 1, memory_order_relaxed);
	if (o->result == EXCHANGE_SUSPECT) {
		upstream_note_suspect(u, s, o->now_ns);
		if (!a->is_done && send_leg(a, leg->index, EXCHANGE_TCP, leg->is_edns, o->now_ns)) {
			set_next(a, leg->index, o->now_ns);
			return;
		}
	} else if (o->result == EXCHANGE_LOOP) {
		upstream_note_loop(u, o->now_ns);
		a->is_loop = true;
	} else if (o->result == EXCHANGE_TIMEOUT) {
		if (leg->noted < UPSTREAM_SILENT)
			upstream_note_failure(u, UPSTREAM_SILENT, leg->sent_ns, o->now_ns);
	} else if (o->result != EXCHANGE_LIMIT) {
		upstream_note_failure(u, UPSTREAM_BROKEN, UINT64_MAX, o->now_ns);
		a->is_reached = true;
	}
	if (!a->is_done)
		go_on(a, o->now_ns);
}

static void on_leg_done(void *user, const struct exchange_outcome *o)
{
	struct leg copy = *(struct leg *)user;
	struct forward_ask *a = copy.ask;
	bool was_done = a->is_done;
	((struct leg *)user)->exchange = NULL;
	a->legs--;
	if (o->result == EXCHANGE_REPLY)
		take_reply(a, &copy, o);
	else
		take_failure(a, &copy, o);
	if (was_done && a->legs == 0)
		free_ask(a);
}

/* --- asking --------------------------------------------------------------------------------------------------------- */

static struct forward_ask *new_ask(struct forwarder *f, const struct forward_zone *zone, const struct forward_question *q)
{
	struct forward_ask *a = take_ask(f);
	if (!a)
		return NULL;
	a->zone = zone;
	a->type = q->type;
	a->is_cd = q->is_cd;
	a->deadline_ns = q->deadline_ns;
	a->name_bytes = q->name_bytes;
	memcpy(a->name, q->name, q->name_bytes);
	return a;
}

/* Copies of the question, which nobody waits for, to those that want to be looked at. */
static void probe_others(struct forwarder *f, const struct forward_zone *z, const struct forward_question *q, uint64_t tried,
			 uint64_t now_ns)
{
	for (unsigned i = 0; i < z->count; i++) {
		struct upstream *u = &f->table->upstream[z->upstream[i]];
		if ((tried >> i & 1) || u->is_self)
			continue;
		bool is_wanted = upstream_is_out(u) ? upstream_claim_probe(u, now_ns)
						    : z->strategy == STRATEGY_FASTEST && upstream_claim_look(u, now_ns);
		struct forward_ask *a = is_wanted ? new_ask(f, z, q) : NULL;
		if (!a)
			continue;
		a->is_done = true;
		a->deadline_ns = now_ns + PATIENCE_MAX_NS;
		counter_add(f->counters, C_UPSTREAM_PROBES, 1);
		if (send_first(a, i, now_ns))
			set_timer(a, now_ns, PATIENCE_MAX_NS);
		else
			free_ask(a);
	}
}

struct forward_ask *forward_ask(struct forwarder *f, const struct forward_question *question, forward_done *done, void *user)
{
	const struct forward_zone *zone = forward_zone_find(f->table, question->name, question->name_bytes);
	struct forward_ask *a = zone ? new_ask(f, zone, question) : NULL;
	if (!a)
		return NULL;
	uint64_t now_ns = clock_mono_ns();
	a->done = done;
	a->user = user;
	a->is_useful = question->is_useful;
	f->hedge_credit = MIN(f->hedge_credit + 1, HEDGE_CREDIT_MAX);
	if (!ask_next(a, now_ns))
		set_timer(a, now_ns, 0); /* done is not called from within here */
	if (zone->count > 1)
		probe_others(f, zone, question, a->tried, now_ns);
	return a;
}

void forward_cancel(struct forward_ask *a) { free_ask(a); }

bool forwarder_take_loop(struct forwarder *f, const uint8_t *query, size_t query_bytes)
{
	return exchanger_take_loop(f->exchanger, query, query_bytes);
}

/* --- the forwarder -------------------------------------------------------------------------------------------------- */

enum err forwarder_create(struct forwarder **out, struct forward_table *table, uv_loop_t *loop, struct exchanger *exchanger,
			  struct counter_block *counters)
{
	struct forwarder *f = calloc(1, sizeof *f);
	if (!f)
		return ERR_NOMEM;
	enum err err = forward_share_add(table, &f->share);
	if (err != ERR_OK) {
		free(f);
		return err;
	}
	f->table = table;
	f->exchanger = exchanger;
	f->counters = counters;
	f->hedge_credit = HEDGE_CREDIT_MAX;
	f->turn = random_pool_u16(&f->random);
	timer_wheel_init(&f->wheel, loop);
	*out = f;
	return ERR_OK;
}

static void on_wheel_closed(uv_handle_t *handle)
{
	struct forwarder *f = handle->data;
	for (size_t i = 0; i < f->slab_count; i++)
		free(f->slabs[i]);
	free(f->slabs);
	free(f);
}

void forwarder_destroy(struct forwarder *f)
{
	if (!f)
		return;
	while (!LIST_EMPTY(&f->asks))
		free_ask(LIST_FIRST(&f->asks));
	timer_wheel_fini(&f->wheel, on_wheel_closed, f);
}
