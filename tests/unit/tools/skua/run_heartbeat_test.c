/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_heartbeat.h"

#include <criterion/criterion.h>

#define MS 1000000ull
#define NOW (1000000 * MS)
#define PARK (40 * MS) /* the default of xdp.park-after; load_test checks that it is */

Test(run_heartbeat, silence_is_judged_by_the_thread_s_role)
{
	static const struct {
		const char *what;
		enum counter_role role;
		uint64_t silent_ms;
		enum run_verdict verdict;
	} cases[] = {
		{ "AF_XDP, just heard", COUNTER_XDP, 0, RUN_ALIVE },
		{ "AF_XDP, still in time", COUNTER_XDP, 39, RUN_ALIVE },
		{ "AF_XDP, its slot goes", COUNTER_XDP, 40, RUN_SILENT },
		{ "AF_XDP, silent, not yet hung", COUNTER_XDP, 249, RUN_SILENT },
		{ "AF_XDP, hung", COUNTER_XDP, 250, RUN_HUNG },
		{ "UDP, may sleep longer", COUNTER_UDP, 499, RUN_ALIVE },
		{ "UDP, hung", COUNTER_UDP, 500, RUN_HUNG },
		{ "TCP, may sleep longer", COUNTER_TCP, 499, RUN_ALIVE },
		{ "TCP, hung", COUNTER_TCP, 5000, RUN_HUNG },
		{ "a resolver worker, hung", COUNTER_RESOLVE, 500, RUN_HUNG },
		{ "threads that do not serve are never judged", COUNTER_OTHER, 100000, RUN_ALIVE },
		{ "unused blocks are never judged", COUNTER_UNUSED, 100000, RUN_ALIVE },
		{ "a role that nobody knows is never judged", (enum counter_role)77, 100000, RUN_ALIVE },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(run_heartbeat_judge(cases[i].role, NOW - cases[i].silent_ms * MS, NOW, PARK), cases[i].verdict, "%s",
			     cases[i].what);
}

Test(run_heartbeat, a_longer_patience_delays_the_kill_too)
{
	cr_expect_eq(run_heartbeat_judge(COUNTER_XDP, NOW - 1999 * MS, NOW, 2000 * MS), RUN_ALIVE);
	cr_expect_eq(run_heartbeat_judge(COUNTER_XDP, NOW - 2000 * MS, NOW, 2000 * MS), RUN_SILENT);
	cr_expect_eq(run_heartbeat_judge(COUNTER_XDP, NOW - 4000 * MS, NOW, 2000 * MS), RUN_HUNG);
}

Test(run_heartbeat, a_block_that_never_served_is_not_judged)
{
	cr_expect_eq(run_heartbeat_judge(COUNTER_XDP, 0, NOW, PARK), RUN_ALIVE);
	cr_expect_eq(run_heartbeat_judge(COUNTER_UDP, 0, NOW, PARK), RUN_ALIVE);
}

Test(run_heartbeat, a_heartbeat_after_our_look_at_the_clock_is_fresh)
{
	cr_expect_eq(run_heartbeat_judge(COUNTER_XDP, NOW + 5 * MS, NOW, PARK), RUN_ALIVE);
}

Test(run_heartbeat, punctual_ticks_judge)
{
	struct run_pulse p = { 0 };

	cr_expect_not(run_pulse_tick(&p, NOW, 10 * MS), "the first tick knows no past");
	for (uint64_t i = 1; i < 10; i++)
		cr_expect(run_pulse_tick(&p, NOW + i * 10 * MS, 10 * MS));
}

Test(run_heartbeat, a_late_tick_judges_nobody_and_the_next_one_does)
{
	struct run_pulse p = { 0 };

	run_pulse_tick(&p, NOW, 10 * MS);
	cr_expect(run_pulse_tick(&p, NOW + 20 * MS, 10 * MS), "one period late is no delay yet");
	cr_expect_not(run_pulse_tick(&p, NOW + 41 * MS, 10 * MS), "more than that is: we slept ourselves");
	cr_expect(run_pulse_tick(&p, NOW + 51 * MS, 10 * MS), "sampled again");
}

Test(run_heartbeat, a_clock_that_went_back_judges_nobody)
{
	struct run_pulse p = { 0 };

	run_pulse_tick(&p, NOW, 10 * MS);
	cr_expect_not(run_pulse_tick(&p, NOW - 1, 10 * MS));
}

Test(run_heartbeat, the_sum_of_all_delays_stays_below_what_a_hang_may_cost)
{
	/* 3,000 queries at 50,000/s are 60 ms: the silence, and the tick that sees it. */
	cr_expect_leq(PARK + RUN_TICK_XDP_NS, 60 * MS);
}
