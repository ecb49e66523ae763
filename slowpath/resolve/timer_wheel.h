/* SPDX-License-Identifier: Apache-2.0 */
/* timer_wheel.h: many timeouts on one libuv timer: setting and clearing cost a few instructions, however many there are.
 *
 * Resolution TIMER_WHEEL_TICK_NS, rounded up: a timeout never fires early. Those beyond one turn of the wheel stay in their slot for the next.
 * Stalls     After a time in which the thread did not run, the loop's sockets are served once before any timeout is told.
 * Threads    The loop's. */
#pragma once
#include "base/base.h"
#include <uv.h>

#define TIMER_WHEEL_TICK_NS 1000000u
#define TIMER_WHEEL_SLOTS 1024u

struct timer_wheel;
struct timer_entry { /* in what it is for; zero: not set */
	struct timer_entry *next_, **previous_;
	uint64_t tick_;
	uint16_t slot_;
	void (*fire_)(struct timer_entry *entry);
};

struct timer_wheel {
	uv_timer_t timer_;
	uint64_t tick_, armed_tick_; /* up to where slots were looked at; when the timer fires, 0: not armed */
	unsigned count_;
	bool is_postponed_;
	uint64_t occupied_[TIMER_WHEEL_SLOTS / 64];
	struct timer_entry *slot_[TIMER_WHEEL_SLOTS + 1]; /* the last one: what is due */
};

void timer_wheel_init(struct timer_wheel *w, uv_loop_t *loop);
/* Entries that are set are forgotten. w must live until closed was called (from the loop). */
void timer_wheel_fini(struct timer_wheel *w, uv_close_cb closed, void *user);
/* Calls fire once at deadline_ns (CLOCK_MONOTONIC) or a little later, from the loop. A set entry is moved. fire may set and clear any. */
void timer_wheel_set(struct timer_wheel *w, struct timer_entry *e, uint64_t now_ns, uint64_t deadline_ns,
		     void (*fire)(struct timer_entry *entry));
void timer_wheel_clear(struct timer_wheel *w, struct timer_entry *e); /* one that is not set is fine */
ALWAYS_INLINE bool timer_entry_is_set(const struct timer_entry *e) { return e->previous_ != NULL; }
