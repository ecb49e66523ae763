/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_backoff.h"

#include <criterion/criterion.h>

#define MS 1000000ull
#define S 1000000000ull

Test(run_backoff, first_restart_at_once_then_doubling_to_the_limit)
{
	static const uint64_t expected_ms[] = { 0, 50, 100, 200, 400, 800, 1600, 3200, 5000, 5000 };
	struct run_backoff b = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(expected_ms); i++)
		cr_assert_eq(run_backoff_next(&b, 10 * S, 11 * S), expected_ms[i] * MS, "restart %zu", i);
}

Test(run_backoff, health_of_a_minute_starts_afresh)
{
	struct run_backoff b = { 0 };

	for (int i = 0; i < 5; i++)
		run_backoff_next(&b, 1 * S, 2 * S);
	cr_assert_eq(run_backoff_next(&b, 10 * S, 10 * S + RUN_BACKOFF_RESET_NS), 0);
	cr_assert_eq(run_backoff_next(&b, 10 * S, 11 * S), 50 * MS);
}

Test(run_backoff, just_short_of_a_minute_does_not)
{
	struct run_backoff b = { 0 };

	run_backoff_next(&b, 0, 1 * S);
	cr_assert_eq(run_backoff_next(&b, 10 * S, 10 * S + RUN_BACKOFF_RESET_NS - 1), 50 * MS);
}

Test(run_backoff, a_part_that_never_was_ready_was_not_healthy)
{
	struct run_backoff b = { 0 };

	run_backoff_next(&b, 0, 1 * S);
	cr_assert_eq(run_backoff_next(&b, 0, 1000 * S), 50 * MS);
}

Test(run_backoff, a_clock_before_ready_is_no_health)
{
	struct run_backoff b = { .failures = 3 };

	cr_assert_neq(run_backoff_next(&b, 200 * S, 100 * S), 0);
}

Test(run_backoff, never_beyond_the_limit_however_often_it_fails)
{
	struct run_backoff b = { 0 };

	for (int i = 0; i < 100000; i++)
		cr_assert_leq(run_backoff_next(&b, 0, 1), RUN_BACKOFF_MAX_NS);
}
