/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "slowpath/resolve/timer_wheel.h"

#define MS 1000000ull

struct alarm {
	struct timer_entry entry; /* first */
	uint64_t due_ns, fired_ns;
	unsigned count;
	struct alarm *clears, *sets;
};
static uv_loop_t loop;
static struct timer_wheel wheel;
static unsigned fired, waited_for;

static void on_fire(struct timer_entry *e)
{
	struct alarm *a = (struct alarm *)e;
	cr_assert_not(timer_entry_is_set(e));
	a->count++;
	a->fired_ns = clock_mono_ns();
	if (a->clears)
		timer_wheel_clear(&wheel, &a->clears->entry);
	if (a->sets)
		timer_wheel_set(&wheel, &a->sets->entry, a->fired_ns, a->sets->due_ns, on_fire);
	if (++fired == waited_for)
		uv_stop(&loop);
}

static void set(struct alarm *a, uint64_t pause_ns)
{
	uint64_t now_ns = clock_mono_ns();
	a->due_ns = now_ns + pause_ns;
	timer_wheel_set(&wheel, &a->entry, now_ns, a->due_ns, on_fire);
}

static void begin(void)
{
	cr_assert_eq(uv_loop_init(&loop), 0);
	timer_wheel_init(&wheel, &loop);
}

static void run(unsigned count)
{
	waited_for = fired + count;
	uv_run(&loop, UV_RUN_DEFAULT);
}

static void end(void)
{
	timer_wheel_fini(&wheel, NULL, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&loop), 0);
}

TestSuite(timer_wheel, .init = begin, .fini = end);

Test(timer_wheel, each_fires_once_never_early_and_soon)
{
	static struct alarm a[3000];
	unsigned seed = 7;
	for (unsigned i = 0; i < ARRAY_LEN(a); i++) {
		seed = seed * 1103515245 + 12345;
		set(&a[i], seed / 65536 % 1500 * MS); /* some of them beyond one turn */
	}
	run(ARRAY_LEN(a));
	for (unsigned i = 0; i < ARRAY_LEN(a); i++) {
		cr_assert_eq(a[i].count, 1);
		cr_assert_geq(a[i].fired_ns, a[i].due_ns, "%u", i);
		cr_assert_lt(a[i].fired_ns, a[i].due_ns + 500 * MS, "%u", i);
	}
}

Test(timer_wheel, what_is_due_already_fires_in_the_next_turn)
{
	struct alarm a = { 0 }, b = { 0 };
	uint64_t now_ns = clock_mono_ns();
	timer_wheel_set(&wheel, &a.entry, now_ns, 0, on_fire);
	timer_wheel_set(&wheel, &b.entry, now_ns, now_ns, on_fire);
	cr_assert_eq(a.count, 0);
	run(2);
	cr_assert(a.count == 1 && b.count == 1);
	cr_assert_lt(clock_mono_ns() - now_ns, 200 * MS);
}

Test(timer_wheel, cleared_ones_do_not_fire_and_moved_ones_fire_late)
{
	struct alarm a = { 0 }, b = { 0 }, c = { 0 };
	set(&a, 20 * MS);
	set(&b, 10 * MS);
	set(&c, 5 * MS);
	timer_wheel_clear(&wheel, &a.entry);
	timer_wheel_clear(&wheel, &a.entry);
	cr_assert_not(timer_entry_is_set(&a.entry));
	set(&b, 60 * MS);
	run(2);
	cr_assert_eq(a.count, 0);
	cr_assert_geq(b.fired_ns, b.due_ns);
	cr_assert_eq(c.count, 1);
}

Test(timer_wheel, one_that_fires_may_clear_and_set_others_of_the_same_moment)
{
	struct alarm a = { 0 }, b = { 0 }, c = { 0 };
	uint64_t now_ns = clock_mono_ns(), due_ns = now_ns + 10 * MS;
	a.due_ns = b.due_ns = due_ns;
	c.due_ns = due_ns + 5 * MS;
	a.clears = &b;
	b.clears = &a; /* whichever is first */
	a.sets = b.sets = &c;
	timer_wheel_set(&wheel, &a.entry, now_ns, due_ns, on_fire);
	timer_wheel_set(&wheel, &b.entry, now_ns, due_ns, on_fire);
	run(2);
	cr_assert_eq(a.count + b.count, 1);
	cr_assert_eq(c.count, 1);
}

Test(timer_wheel, a_loop_that_was_away_for_longer_than_a_turn_misses_nothing)
{
	struct alarm a = { 0 }, b = { 0 }, late = { 0 };
	set(&a, 5 * MS);
	set(&b, 900 * MS);
	set(&late, 2000 * MS);
	nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 300 * MS }, NULL);
	run(2);
	cr_assert(a.count == 1 && b.count == 1 && late.count == 0);
	run(1);
	cr_assert_geq(late.fired_ns, late.due_ns);
}

static int pipe_fds[2];
static unsigned readable;
static struct alarm held_up;
static void on_readable(uv_poll_t *handle, int status, int events)
{
	char octet;
	(void)handle, (void)status, (void)events;
	cr_assert_eq(read(pipe_fds[0], &octet, 1), 1);
	cr_assert_eq(held_up.count, 0, "the timeout must not be told before what had come in time");
	readable++;
	timer_wheel_clear(&wheel, &held_up.entry);
}
static void on_stall(uv_timer_t *timer)
{
	/* What the timeout waits for comes while the thread does not run, long before the timeout. */
	(void)timer;
	cr_assert_eq(write(pipe_fds[1], "x", 1), 1);
	nanosleep(&(struct timespec){ .tv_nsec = 300 * MS }, NULL);
}
static void on_end(uv_timer_t *timer) { uv_stop(timer->loop); }

Test(timer_wheel, what_came_during_a_stall_is_read_before_timeouts_are_told)
{
	uv_poll_t poll;
	uv_timer_t stall, stop;
	cr_assert_eq(pipe(pipe_fds), 0);
	cr_assert_eq(uv_poll_init(&loop, &poll, pipe_fds[0]), 0);
	uv_timer_init(&loop, &stall);
	uv_timer_init(&loop, &stop);
	uv_poll_start(&poll, UV_READABLE, on_readable);
	set(&held_up, 100 * MS);
	uv_timer_start(&stall, on_stall, 20, 0);
	uv_timer_start(&stop, on_end, 600, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_assert_eq(readable, 1);
	cr_assert_eq(held_up.count, 0);
	uv_close((uv_handle_t *)&poll, NULL);
	uv_close((uv_handle_t *)&stall, NULL);
	uv_close((uv_handle_t *)&stop, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}
