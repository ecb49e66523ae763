/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/resolve/upstream.h"
#include "base/log.h"

#define HEARD_STEP_NS 1000000u
#define LOOPS_SAID 3u

#define load(p) atomic_load_explicit(p, memory_order_relaxed)
#define store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

uint64_t upstream_patience_ns(const struct upstream *u) { return (load(&u->srtt_us) + 4ull * load(&u->rttvar_us)) * 1000u; }

/* RFC 6298 section 2. */
static void estimate(struct upstream *u, uint64_t rtt_ns)
{
	uint32_t rtt_us = (uint32_t)MIN(MAX(rtt_ns / 1000, 1u), 60000000u), srtt_us = load(&u->srtt_us);
	if (srtt_us == 0) {
		store(&u->srtt_us, rtt_us);
		store(&u->rttvar_us, rtt_us / 2);
		return;
	}
	uint32_t deviation = rtt_us > srtt_us ? rtt_us - srtt_us : srtt_us - rtt_us;
	store(&u->rttvar_us, (uint32_t)((3ull * load(&u->rttvar_us) + deviation) / 4));
	store(&u->srtt_us, MAX((uint32_t)((7ull * srtt_us + rtt_us) / 8), 1u));
}

static void take_out(struct upstream *u, uint64_t now_ns, const char *why)
{
	uint64_t in_use = 0;
	if (!atomic_compare_exchange_strong_explicit(&u->out_since_ns, &in_use, now_ns, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	store(&u->pause_ns, UPSTREAM_PAUSE_FIRST_NS);
	store(&u->next_probe_ns, now_ns + UPSTREAM_PAUSE_FIRST_NS);
	log_write(M_UPSTREAM_OUT, "%s: %s", u->text, why);
}

static void take_back(struct upstream *u, uint64_t now_ns)
{
	uint64_t since = load(&u->out_since_ns);
	if (since == 0 ||
	    !atomic_compare_exchange_strong_explicit(&u->out_since_ns, &since, 0, memory_order_relaxed, memory_order_relaxed))
		return;
	store(&u->is_out_bad, false);
	log_write(M_UPSTREAM_BACK, "%s: after %llu ms", u->text, (unsigned long long)(now_ns - since) / 1000000);
}

void upstream_note_reply(struct upstream *u, struct upstream_share *s, uint64_t rtt_ns, uint64_t now_ns, bool is_good)
{
	store(&s->replies, load(&s->replies) + 1);
	if (now_ns > load(&u->heard_ns) + HEARD_STEP_NS)
		store(&u->heard_ns, now_ns);
	if (s->until_sample-- == 0 || load(&u->srtt_us) == 0) {
		s->until_sample = UPSTREAM_SAMPLE - 1;
		estimate(u, rtt_ns);
		store(&u->next_look_ns, now_ns + UPSTREAM_LOOK_NS);
	}
	if (load(&u->points))
		store(&u->points, 0);
	if (load(&u->loops))
		store(&u->loops, 0);
	if (is_good && load(&u->bad))
		store(&u->bad, 0);
	if (unlikely(upstream_is_out(u)) && (is_good || !load(&u->is_out_bad)))
		take_back(u, now_ns);
}

void upstream_note_failure(struct upstream *u, unsigned points, uint64_t sent_ns, uint64_t now_ns)
{
	/* heard_ns may be a step behind. */
	if (load(&u->heard_ns) + HEARD_STEP_NS >= sent_ns)
		return;
	if (atomic_fetch_add_explicit(&u->points, points, memory_order_relaxed) + points >= UPSTREAM_OUT_POINTS)
		take_out(u, now_ns, "it does not answer");
}

void upstream_note_bad(struct upstream *u, uint64_t now_ns)
{
	if (atomic_fetch_add_explicit(&u->bad, 1, memory_order_relaxed) + 1 < UPSTREAM_OUT_BAD || upstream_is_out(u))
		return;
	store(&u->is_out_bad, true);
	take_out(u, now_ns, "its answers are of no use, while others know better");
}

static bool claim(_Atomic uint64_t *at_ns, uint64_t now_ns, uint64_t pause_ns)
{
	uint64_t at = load(at_ns);
	return at <= now_ns &&
	       atomic_compare_exchange_strong_explicit(at_ns, &at, now_ns + pause_ns, memory_order_relaxed, memory_order_relaxed);
}

bool upstream_claim_probe(struct upstream *u, uint64_t now_ns)
{
	uint64_t pause_ns = load(&u->pause_ns);
	if (!claim(&u->next_probe_ns, now_ns, MIN(2 * pause_ns, UPSTREAM_PAUSE_MAX_NS)))
		return false;
	store(&u->pause_ns, MIN(2 * pause_ns, UPSTREAM_PAUSE_MAX_NS));
	return true;
}

bool upstream_claim_look(struct upstream *u, uint64_t now_ns) { return claim(&u->next_look_ns, now_ns, UPSTREAM_LOOK_NS); }

void upstream_note_no_edns(struct upstream *u, uint64_t now_ns)
{
	store(&u->no_edns_until_ns, now_ns + UPSTREAM_RETRY_CAPABILITY_NS);
	store(&u->knows_edns, 0);
	log_write(M_UPSTREAM_NO_EDNS, "%s", u->text);
}

void upstream_note_suspect(struct upstream *u, struct upstream_share *s, uint64_t now_ns)
{
	store(&s->suspects, load(&s->suspects) + 1);
	if (atomic_fetch_add_explicit(&u->suspects, 1, memory_order_relaxed) + 1 < UPSTREAM_SUSPECTS_MAX)
		return;
	store(&u->no_case_until_ns, now_ns + UPSTREAM_RETRY_CAPABILITY_NS);
	store(&u->no_cookie_until_ns, now_ns + UPSTREAM_RETRY_CAPABILITY_NS);
	store(&u->keeps_case, 0);
}

void upstream_note_cookie(struct upstream *u, struct upstream_share *s, const struct reply_edns *edns)
{
	if (edns->cookie_bytes <= sizeof u->client_cookie || memcmp(edns->cookie, u->client_cookie, sizeof u->client_cookie) != 0)
		return;
	memcpy(s->cookie, edns->cookie, edns->cookie_bytes);
	s->server_cookie_bytes = (uint8_t)(edns->cookie_bytes - sizeof u->client_cookie);
}

void upstream_note_loop(struct upstream *u, uint64_t now_ns)
{
	if (atomic_fetch_add_explicit(&u->loops, 1, memory_order_relaxed) + 1 == LOOPS_SAID)
		log_write(M_UPSTREAM_SELF, "%s: queries that were sent to it came back to us", u->text);
	upstream_note_failure(u, UPSTREAM_BROKEN, UINT64_MAX, now_ns);
}
