/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include "slowpath/resolve/upstream.h"

#define MS 1000000ull
#define BEGAN (1000 * 1000 * MS)

static struct upstream u = { .text = "192.0.2.1:53" };
static struct upstream_share s;

static void reply(uint64_t rtt_ns, uint64_t now_ns) { upstream_note_reply(&u, &s, rtt_ns, now_ns, true); }

static void take_out(void)
{
	while (!upstream_is_out(&u))
		upstream_note_failure(&u, UPSTREAM_BROKEN, UINT64_MAX, BEGAN);
}

Test(upstream, estimates_follow_the_replies)
{
	cr_assert_eq(upstream_usual_ns(&u), 0);
	cr_assert_eq(upstream_patience_ns(&u), 0);
	reply(10 * MS, BEGAN);
	cr_assert_eq(upstream_usual_ns(&u), 10 * MS);
	cr_assert_eq(upstream_patience_ns(&u), 30 * MS, "srtt + 4 * srtt/2");
	for (unsigned i = 0; i < 100 * UPSTREAM_SAMPLE; i++)
		reply(20 * MS, BEGAN);
	cr_assert_gt(upstream_usual_ns(&u), 19 * MS);
	cr_assert_leq(upstream_usual_ns(&u), 20 * MS);
	cr_assert_lt(upstream_patience_ns(&u), 22 * MS);
	for (unsigned i = 0; i < 100 * UPSTREAM_SAMPLE; i++)
		reply(0, BEGAN);
	cr_assert_gt(upstream_usual_ns(&u), 0, "known, however fast");
}

Test(upstream, failures_open_the_circuit_and_a_reply_closes_it)
{
	for (unsigned points = 0; points < UPSTREAM_OUT_POINTS; points += UPSTREAM_BROKEN) {
		cr_assert_not(upstream_is_out(&u));
		upstream_note_failure(&u, UPSTREAM_BROKEN, UINT64_MAX, BEGAN);
	}
	cr_assert(upstream_is_out(&u));
	upstream_note_failure(&u, UPSTREAM_BROKEN, UINT64_MAX, BEGAN + MS);
	cr_assert_eq(u.out_since_ns, BEGAN, "since then");
	upstream_note_reply(&u, &s, MS, BEGAN + 2 * MS, false);
	cr_assert_not(upstream_is_out(&u), "any reply, for it was silence");
}

Test(upstream, a_reply_takes_all_points_away)
{
	for (unsigned i = 0; i < 100; i++) {
		upstream_note_failure(&u, UPSTREAM_LATE, BEGAN + 100 * MS, BEGAN + 200 * MS);
		if (i % 4 == 3)
			reply(MS, BEGAN);
	}
	cr_assert_not(upstream_is_out(&u));
}

Test(upstream, who_was_heard_since_is_slow_not_dead)
{
	reply(MS, BEGAN + 10 * MS);
	for (unsigned i = 0; i < 100; i++)
		upstream_note_failure(&u, UPSTREAM_SILENT, BEGAN + 5 * MS, BEGAN + 300 * MS);
	cr_assert_not(upstream_is_out(&u));
	for (unsigned i = 0; i < UPSTREAM_OUT_POINTS; i++)
		upstream_note_failure(&u, UPSTREAM_LATE, BEGAN + 15 * MS, BEGAN + 300 * MS);
	cr_assert(upstream_is_out(&u));
}

Test(upstream, useless_replies_open_it_until_a_good_one)
{
	for (unsigned i = 0; i < UPSTREAM_OUT_BAD; i++) {
		cr_assert_not(upstream_is_out(&u));
		upstream_note_bad(&u, BEGAN);
	}
	cr_assert(upstream_is_out(&u));
	upstream_note_reply(&u, &s, MS, BEGAN, false);
	cr_assert(upstream_is_out(&u));
	reply(MS, BEGAN);
	cr_assert_not(upstream_is_out(&u));
	for (unsigned i = 0; i < 10 * UPSTREAM_OUT_BAD; i++) {
		upstream_note_bad(&u, BEGAN);
		if (i % 4 == 0)
			reply(MS, BEGAN);
	}
	cr_assert_not(upstream_is_out(&u), "in a row");
}

Test(upstream, probes_have_growing_pauses)
{
	take_out();
	uint64_t now_ns = BEGAN, last_ns = BEGAN, pause_ns = UPSTREAM_PAUSE_FIRST_NS;
	for (unsigned i = 0; i < 12; i++) {
		while (!upstream_claim_probe(&u, now_ns))
			now_ns += MS;
		cr_assert_eq(now_ns - last_ns, pause_ns, "probe %u", i);
		cr_assert_not(upstream_claim_probe(&u, now_ns), "one of them");
		last_ns = now_ns;
		pause_ns = MIN(2 * pause_ns, UPSTREAM_PAUSE_MAX_NS);
	}
	reply(MS, now_ns);
	for (unsigned i = 0; i < 3; i++)
		upstream_note_failure(&u, UPSTREAM_BROKEN, UINT64_MAX, now_ns);
	cr_assert(upstream_is_out(&u));
	cr_assert_not(upstream_claim_probe(&u, now_ns + UPSTREAM_PAUSE_FIRST_NS - 1));
	cr_assert(upstream_claim_probe(&u, now_ns + UPSTREAM_PAUSE_FIRST_NS), "from the beginning again");
}

Test(upstream, capabilities_are_given_up_for_a_while)
{
	cr_assert(upstream_may_edns(&u, BEGAN) && upstream_may_case(&u, BEGAN) && upstream_may_cookie(&u, BEGAN));
	upstream_note_no_edns(&u, BEGAN);
	cr_assert_not(upstream_may_edns(&u, BEGAN + UPSTREAM_RETRY_CAPABILITY_NS - 1));
	cr_assert(upstream_may_edns(&u, BEGAN + UPSTREAM_RETRY_CAPABILITY_NS));
	for (unsigned i = 1; i < UPSTREAM_SUSPECTS_MAX; i++)
		upstream_note_suspect(&u, &s, BEGAN);
	cr_assert(upstream_may_case(&u, BEGAN));
	upstream_note_suspect(&u, &s, BEGAN);
	cr_assert_not(upstream_may_case(&u, BEGAN));
	cr_assert_not(upstream_may_cookie(&u, BEGAN));
}

Test(upstream, only_cookies_that_answer_ours_are_kept)
{
	struct reply_edns e = { .cookie_bytes = 24 };
	memset(u.client_cookie, 7, sizeof u.client_cookie);
	upstream_note_cookie(&u, &s, &e);
	cr_assert_eq(s.server_cookie_bytes, 0);
	memset(e.cookie, 7, 8);
	e.cookie_bytes = 8;
	upstream_note_cookie(&u, &s, &e);
	cr_assert_eq(s.server_cookie_bytes, 0);
	e.cookie_bytes = 40;
	memset(e.cookie + 8, 9, 32);
	upstream_note_cookie(&u, &s, &e);
	cr_assert_eq(s.server_cookie_bytes, 32);
	cr_assert_eq(memcmp(s.cookie, e.cookie, 40), 0);
}

static void *work(void *user)
{
	struct upstream_share *mine = user;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t now_ns = BEGAN + i * MS;
		if (i % 100 < 60)
			upstream_note_failure(&u, UPSTREAM_SILENT, now_ns, now_ns);
		else
			upstream_note_reply(&u, mine, MS, now_ns, true);
		if (upstream_claim_probe(&u, now_ns))
			mine->until_sample = 0;
		if (i % 1000 == 0)
			upstream_note_suspect(&u, mine, now_ns);
	}
	return NULL;
}

Test(upstream, workers_share_it_without_locks)
{
	pthread_t thread[4];
	struct upstream_share *share = aligned_alloc(CACHE_LINE, 4 * sizeof *share);
	memset(share, 0, 4 * sizeof *share);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, work, &share[i]), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	reply(MS, BEGAN + 30000 * MS);
	cr_assert_not(upstream_is_out(&u));
	cr_assert_eq(upstream_usual_ns(&u), MS);
	free(share);
}
