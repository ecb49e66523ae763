/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/resolve/timer_wheel.h"
#include "base/clock.h"

#define DUE TIMER_WHEEL_SLOTS
#define STALL_TICKS 5u

static void on_timer(uv_timer_t *timer);

void timer_wheel_init(struct timer_wheel *w, uv_loop_t *loop)
{
	memset(w, 0, sizeof *w);
	(void)uv_timer_init(loop, &w->timer_); /* can't fail */
	w->timer_.data = w;
	w->tick_ = clock_mono_ns() / TIMER_WHEEL_TICK_NS;
}

void timer_wheel_fini(struct timer_wheel *w, uv_close_cb closed, void *user)
{
	w->timer_.data = user;
	uv_close((uv_handle_t *)&w->timer_, closed);
}

static void join(struct timer_wheel *w, struct timer_entry *e, unsigned slot)
{
	e->slot_ = (uint16_t)slot;
	e->next_ = w->slot_[slot];
	e->previous_ = &w->slot_[slot];
	if (e->next_)
		e->next_->previous_ = &e->next_;
	w->slot_[slot] = e;
	if (slot != DUE)
		w->occupied_[slot / 64] |= 1ull << slot % 64;
}

static void leave(struct timer_wheel *w, struct timer_entry *e)
{
	*e->previous_ = e->next_;
	if (e->next_)
		e->next_->previous_ = e->previous_;
	e->previous_ = NULL;
	if (e->slot_ != DUE && !w->slot_[e->slot_])
		w->occupied_[e->slot_ / 64] &= ~(1ull << e->slot_ % 64);
}

/* Ticks from w->tick_ to the next occupied slot, 1 to TIMER_WHEEL_SLOTS; 0: all are empty. */
static unsigned next_occupied(const struct timer_wheel *w)
{
	unsigned first = (unsigned)((w->tick_ + 1) % TIMER_WHEEL_SLOTS);
	for (unsigned n = 0; n <= TIMER_WHEEL_SLOTS / 64; n++) {
		unsigned word = (first / 64 + n) % (TIMER_WHEEL_SLOTS / 64);
		uint64_t bits = w->occupied_[word];
		if (n == 0)
			bits &= ~0ull << first % 64;
		if (bits) {
			unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
			return (slot + TIMER_WHEEL_SLOTS - first) % TIMER_WHEEL_SLOTS + 1;
		}
	}
	return 0;
}

static void arm(struct timer_wheel *w, uint64_t tick)
{
	w->armed_tick_ = tick;
	/* libuv counts from when the loop last woke: up to date only now. */
	uv_update_time(w->timer_.loop);
	uint64_t now = clock_mono_ns() / TIMER_WHEEL_TICK_NS;
	(void)uv_timer_start(&w->timer_, on_timer, tick > now ? tick - now : 0, 0);
}

void timer_wheel_set(struct timer_wheel *w, struct timer_entry *e, uint64_t now_ns, uint64_t deadline_ns,
		     void (*fire)(struct timer_entry *entry))
{
	if (e->previous_)
		leave(w, e);
	else
		w->count_++;
	if (w->count_ == 1)
		w->tick_ = MAX(w->tick_, now_ns / TIMER_WHEEL_TICK_NS);
	e->fire_ = fire;
	e->tick_ = MAX(deadline_ns / TIMER_WHEEL_TICK_NS, w->tick_) + 1;
	join(w, e, (unsigned)(e->tick_ % TIMER_WHEEL_SLOTS));
	if (w->armed_tick_ == 0 || e->tick_ < w->armed_tick_)
		arm(w, MIN(e->tick_, w->tick_ + TIMER_WHEEL_SLOTS));
}

void timer_wheel_clear(struct timer_wheel *w, struct timer_entry *e)
{
	if (!e->previous_)
		return;
	leave(w, e);
	w->count_--; /* the timer may fire for nothing: cheaper than stopping and starting it with every exchange */
}

static void on_timer(uv_timer_t *timer)
{
	struct timer_wheel *w = timer->data;
	uint64_t now = clock_mono_ns() / TIMER_WHEEL_TICK_NS;
	/* The thread was held up: what came meanwhile is read first (libuv runs timers before it), or it would be taken for late. */
	if (now > w->armed_tick_ + STALL_TICKS && !w->is_postponed_) {
		w->is_postponed_ = true;
		arm(w, now + 1);
		return;
	}
	w->is_postponed_ = false;
	uint64_t first = now > w->tick_ + TIMER_WHEEL_SLOTS ? now - TIMER_WHEEL_SLOTS : w->tick_;
	w->armed_tick_ = 0;
	for (uint64_t tick = first + 1; tick <= now; tick++) {
		struct timer_entry *next;
		for (struct timer_entry *e = w->slot_[tick % TIMER_WHEEL_SLOTS]; e; e = next) {
			next = e->next_;
			if (e->tick_ > now)
				continue;
			leave(w, e);
			join(w, e, DUE);
		}
	}
	w->tick_ = MAX(now, w->tick_);
	while (w->slot_[DUE]) {
		struct timer_entry *e = w->slot_[DUE];
		leave(w, e);
		w->count_--;
		e->fire_(e);
	}
	unsigned ticks = next_occupied(w);
	if (ticks && (w->armed_tick_ == 0 || w->tick_ + ticks < w->armed_tick_))
		arm(w, w->tick_ + ticks);
}
