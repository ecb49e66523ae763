/* SPDX-License-Identifier: Apache-2.0 */
#include "table/ring.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "table/shm.h"

#define CAPACITY 4096u
#define RECORD_MAX (CAPACITY / 4 - 8)

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Shared memory for one ring that ends where its mapping ends: whoever reads on dies. */
static void *ring_memory(uint32_t capacity)
{
	size_t bytes = ring_bytes(capacity), page = 4096, whole = (bytes + page - 1) / page * page;
	uint8_t *map = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(map, MAP_FAILED);
	cr_assert_eq(mprotect(map + page, whole, PROT_READ | PROT_WRITE), 0);
	void *mem = map + page + whole - bytes;
	cr_assert_eq(ring_format(mem, bytes, capacity), ERR_OK);
	return mem;
}

struct pair {
	struct ring_map *map;
	struct ring_producer p;
	struct ring_consumer c;
};
static struct pair pair_at(uint32_t index)
{
	struct pair r = { .map = ring_memory(CAPACITY) };
	r.map->head = r.map->tail = index;
	cr_assert_eq(ring_producer_attach(&r.p, r.map, ring_bytes(CAPACITY)), ERR_OK);
	cr_assert_eq(ring_consumer_attach(&r.c, r.map, ring_bytes(CAPACITY)), ERR_OK);
	return r;
}

/* Octet i of record n: each record says which one it is, and shows when it was torn. */
static uint8_t octet(uint64_t n, size_t i) { return (uint8_t)(n * 167 + i * 31 + (n >> 8) + (i >> 8)); }
static void fill(uint8_t *at, uint64_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = octet(n, i);
}
static bool is_whole(const uint8_t *at, uint64_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != octet(n, i))
			return false;
	return true;
}

Test(ring, sizes)
{
	static const struct {
		uint32_t capacity;
		bool is_good;
	} cases[] = { { 0, false },   { 4095, false },	  { 4096, true },      { 4097, false },
		      { 8192, true }, { 1u << 24, true }, { 1u << 25, false }, { UINT32_MAX, false } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(ring_bytes(cases[i].capacity), cases[i].is_good ? 192 + (size_t)cases[i].capacity : 0);
	cr_expect_eq(ring_record_max(CAPACITY), 1016);
}

Test(ring, what_is_no_ring_is_not_attached)
{
	struct ring_map *map = ring_memory(CAPACITY);
	size_t bytes = ring_bytes(CAPACITY);
	struct ring_producer p;
	struct ring_consumer c;
	cr_expect_eq(ring_format(map, bytes - 1, CAPACITY), ERR_ARGUMENT);
	cr_expect_eq(ring_format(map, bytes, CAPACITY + 1), ERR_ARGUMENT);
	cr_expect_eq(ring_format((uint8_t *)map + 8, bytes, CAPACITY), ERR_ARGUMENT, "not aligned");
	cr_expect_eq(ring_producer_attach(&p, map, bytes - 1), ERR_CORRUPT);
	cr_expect_eq(ring_consumer_attach(&c, map, 191), ERR_CORRUPT, "not even a header");
	map->capacity = CAPACITY * 2;
	cr_expect_eq(ring_producer_attach(&p, map, bytes), ERR_CORRUPT);
	map->capacity = 0;
	cr_expect_eq(ring_consumer_attach(&c, map, bytes), ERR_CORRUPT);
	map->capacity = CAPACITY;
	map->magic++;
	cr_expect_eq(ring_producer_attach(&p, map, bytes), ERR_CORRUPT);
	cr_expect_eq(ring_consumer_attach(&c, map, bytes), ERR_CORRUPT);
}

Test(ring, every_length_at_every_place)
{
	struct ring_map *map = ring_memory(CAPACITY);
	uint8_t out[RECORD_MAX];
	uint64_t n = 0;
	for (uint32_t start = 0; start < CAPACITY; start += 8) {
		struct ring_producer p;
		struct ring_consumer c;
		map->head = map->tail = start % 16 ? start : start - CAPACITY; /* also across the end of the indices */
		cr_assert_eq(ring_producer_attach(&p, map, ring_bytes(CAPACITY)), ERR_OK);
		cr_assert_eq(ring_consumer_attach(&c, map, ring_bytes(CAPACITY)), ERR_OK);
		for (uint32_t bytes = 0; bytes <= RECORD_MAX; bytes += bytes < 40 || bytes > RECORD_MAX - 24 ? 1 : 8, n++) {
			uint32_t popped = 0;
			map->head = map->tail = c.head_ = c.tail_seen_ = p.tail_ = p.head_seen_ = start;
			uint8_t *at = ring_reserve(&p, bytes);
			cr_assert(at, "an empty ring has room for %u octets at %u", bytes, start);
			cr_assert_eq((uintptr_t)at % 8, 0);
			cr_assert_eq(ring_pop(&c, out, sizeof out, &popped), RING_WAIT, "not committed");
			fill(at, n, bytes);
			ring_commit(&p);
			cr_assert_eq(ring_pop(&c, out, sizeof out, &popped), RING_OK);
			cr_assert_eq(popped, bytes);
			cr_assert(is_whole(out, n, bytes));
			cr_assert_eq(ring_pop(&c, out, sizeof out, &popped), RING_WAIT);
		}
		cr_assert_null(ring_reserve(&p, RECORD_MAX + 1));
		cr_assert_null(ring_reserve(&p, UINT32_MAX));
	}
}

/* A queue as naive as can be, with the octets that each record takes. */
Test(ring, behaves_as_a_queue)
{
	struct pair r = pair_at((uint32_t)-64);
	struct {
		uint32_t bytes, taken;
	} queue[CAPACITY / 8];
	uint64_t pushed = 0, popped = 0, full = 0;
	uint32_t used = 0, place = CAPACITY - 64;
	for (unsigned turn = 0; turn < 2000000; turn++) {
		uint32_t bytes = random_next() % 4 ? random_next() % 64 : random_next() % (RECORD_MAX + 1);
		bool is_push = random_next() % 100 < (turn / 5000 % 2 ? 60 : 40); /* fills up, runs empty */
		if (is_push) {
			uint32_t whole = 8 + (bytes + 7) / 8 * 8, skip = place + whole > CAPACITY ? CAPACITY - place : 0;
			uint8_t *at = ring_reserve(&r.p, bytes);
			cr_assert_eq(at != NULL, used + skip + whole <= CAPACITY, "turn %u", turn);
			full += !at;
			if (!at)
				continue;
			if (random_next() % 16 == 0) /* thought better of it */
				continue;
			fill(at, pushed, bytes);
			ring_commit(&r.p);
			queue[pushed++ % ARRAY_LEN(queue)] = (typeof(queue[0])){ bytes, skip + whole };
			used += skip + whole;
			place = (place + skip + whole) % CAPACITY;
		} else {
			uint8_t out[RECORD_MAX];
			uint32_t got;
			enum ring_result result = ring_pop(&r.c, out, sizeof out, &got);
			cr_assert_eq(result, pushed == popped ? RING_WAIT : RING_OK, "turn %u", turn);
			if (result != RING_OK)
				continue;
			cr_assert_eq(got, queue[popped % ARRAY_LEN(queue)].bytes);
			cr_assert(is_whole(out, popped, got));
			used -= queue[popped++ % ARRAY_LEN(queue)].taken;
		}
	}
	cr_expect_gt(full, 1000, "the ring was full at times");
	cr_expect_gt(popped, 100000);
}

Test(ring, a_record_longer_than_the_callers_buffer_is_skipped_alone)
{
	struct pair r = pair_at(0);
	uint8_t out[16] = { 0 };
	uint32_t bytes = 77;
	fill(ring_reserve(&r.p, 17), 1, 17);
	ring_commit(&r.p);
	fill(ring_reserve(&r.p, 16), 2, 16);
	ring_commit(&r.p);
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_CORRUPT);
	cr_expect_eq(bytes, 77);
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_OK);
	cr_expect(is_whole(out, 2, 16));
}

Test(ring, kicked_once_per_sleep)
{
	struct pair r = pair_at(0);
	uint8_t out[8];
	uint32_t bytes;
	cr_expect_not(ring_needs_kick(&r.p), "nobody sleeps");
	cr_expect(ring_prepare_sleep(&r.c));
	cr_expect_not(ring_needs_kick(&r.p), "nothing was committed");
	for (int i = 0; i < 3; i++) {
		cr_assert(ring_reserve(&r.p, 8));
		ring_commit(&r.p);
	}
	cr_expect(ring_needs_kick(&r.p));
	cr_expect_not(ring_needs_kick(&r.p), "once");
	cr_assert(ring_reserve(&r.p, 8));
	ring_commit(&r.p);
	cr_expect_not(ring_needs_kick(&r.p), "awake already");
	cr_expect_not(ring_prepare_sleep(&r.c), "something is there");
	cr_expect_eq(r.map->is_sleeping, 0);
	for (int i = 0; i < 4; i++) {
		cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_OK);
		cr_expect_eq(ring_prepare_sleep(&r.c), i == 3);
	}
	ring_cancel_sleep(&r.c);
	cr_assert(ring_reserve(&r.p, 8));
	ring_commit(&r.p);
	cr_expect_not(ring_needs_kick(&r.p), "did not go to sleep after all");
	cr_expect_eq(r.map->kicks, 1);
}

Test(ring, a_successor_of_the_producer_kicks_for_it)
{
	struct pair r = pair_at(0);
	cr_expect(ring_prepare_sleep(&r.c));
	cr_assert(ring_reserve(&r.p, 8));
	ring_commit(&r.p);
	cr_assert(ring_reserve(&r.p, 8)); /* and dies */
	cr_assert_eq(ring_producer_attach(&r.p, r.map, ring_bytes(CAPACITY)), ERR_OK);
	cr_expect(ring_needs_kick(&r.p));
	uint8_t out[8];
	uint32_t bytes;
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_OK);
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_WAIT, "what was not committed is not there");
}

Test(ring, a_successor_of_the_consumer_finds_what_is_left_or_discards_it)
{
	struct pair r = pair_at(0);
	uint8_t out[8];
	uint32_t bytes;
	cr_expect(ring_prepare_sleep(&r.c));
	for (uint64_t n = 0; n < 3; n++) {
		fill(ring_reserve(&r.p, 8), n, 8);
		ring_commit(&r.p);
	}
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_OK);
	cr_assert_eq(ring_consumer_attach(&r.c, r.map, ring_bytes(CAPACITY)), ERR_OK);
	cr_expect_eq(r.map->is_sleeping, 0, "the one that slept is gone");
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_OK);
	cr_expect(is_whole(out, 1, 8));
	cr_expect_eq(ring_discard(&r.c), 16);
	cr_expect_eq(ring_discard(&r.c), 0);
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_WAIT);
	unsigned room = 0;
	while (ring_reserve(&r.p, 8)) {
		ring_commit(&r.p);
		room++;
	}
	cr_expect_eq(room, CAPACITY / 16, "the producer has the room back");
}

/* --- hostile memory -------------------------------------------------------------------------------------------------- */

/* Whatever stands there: pop ends, and after as many pops as the ring could hold, says that it is empty. */
static void consumer_survives(struct ring_consumer *c)
{
	uint8_t out[RECORD_MAX + 16];
	unsigned turns = 0;
	enum ring_result result;
	do {
		uint32_t bytes = 0, room = random_next() % 4 ? RECORD_MAX : random_next() % 64;
		memset(out + room, 0xa5, 16);
		result = ring_pop(c, out, room, &bytes);
		cr_assert_leq(bytes, room);
		for (unsigned i = 0; i < 16; i++)
			cr_assert_eq(out[room + i], 0xa5, "written behind the caller's buffer");
	} while (result != RING_WAIT && ++turns <= CAPACITY / 8 + 1);
	cr_assert_leq(turns, CAPACITY / 8 + 1);
	(void)!ring_prepare_sleep(c);
}

/* What it gets lies within the ring, with all the octets that it asked for. */
static void producer_survives(struct ring_producer *p)
{
	for (unsigned i = 0; i < 8; i++) {
		uint32_t bytes = random_next() % (RECORD_MAX + 8);
		uint8_t *at = ring_reserve(p, bytes);
		if (!at)
			continue;
		cr_assert(at >= p->map_->data + 8 && at + bytes <= p->map_->data + CAPACITY);
		memset(at, (int)random_next(), bytes);
		ring_commit(p);
	}
	(void)!ring_needs_kick(p);
}

static uint32_t impossible_index(uint32_t near)
{
	switch (random_next() % 6) {
	case 0: return (uint32_t)random_next();
	case 1: return near + CAPACITY + 8;
	case 2: return near - 8;
	case 3: return near + (uint32_t)(random_next() % 8);
	case 4: return near + (uint32_t)(random_next() % CAPACITY);
	default: return near + CAPACITY;
	}
}

Test(ring, hostile_octets_of_every_kind)
{
	struct pair r = pair_at(0);
	struct ring_map *m = r.map;
	static const uint32_t lengths[] = { 0,	      1,	  7,	      8,	  RECORD_MAX,	RECORD_MAX + 1,
					    CAPACITY, UINT32_MAX, 0xfffffff8, 0x80000000, CAPACITY - 8, 0xfffffff0 };
	for (unsigned turn = 0; turn < 300000; turn++) {
		switch (random_next() % 6) {
		case 0: m->tail = impossible_index(r.c.head_); break;
		case 1: m->head = impossible_index(r.p.tail_); break;
		case 2: /* lengths where they are looked for, and everywhere */
			for (uint32_t at = r.c.head_ % CAPACITY & ~7u, i = 0; i < CAPACITY / 8; i++, at = (at + 8) % CAPACITY) {
				uint32_t length = lengths[random_next() % ARRAY_LEN(lengths)];
				memcpy(m->data + at, &length, 4);
				if (random_next() % 4 == 0)
					break;
			}
			break;
		case 3:
			for (size_t i = 0; i < CAPACITY; i += 8) {
				uint64_t word = random_next();
				memcpy(m->data + i, &word, 8);
			}
			break;
		case 4: m->is_sleeping = (uint32_t)random_next(); break;
		default:
			memset(m->data, random_next() % 2 ? 0 : 0xff, CAPACITY);
			m->tail = r.c.head_ + (uint32_t)(random_next() % (CAPACITY + 1));
			break;
		}
		if (random_next() % 2)
			consumer_survives(&r.c);
		if (random_next() % 2)
			producer_survives(&r.p);
		if (random_next() % 8 == 0)
			cr_assert_eq(ring_producer_attach(&r.p, m, ring_bytes(CAPACITY)), ERR_OK);
		if (random_next() % 8 == 0)
			cr_assert_eq(ring_consumer_attach(&r.c, m, ring_bytes(CAPACITY)), ERR_OK);
	}
	/* And sound again once both sides are. */
	cr_assert_eq(ring_consumer_attach(&r.c, m, ring_bytes(CAPACITY)), ERR_OK);
	cr_assert_eq(ring_producer_attach(&r.p, m, ring_bytes(CAPACITY)), ERR_OK);
	ring_discard(&r.c);
	uint8_t out[64];
	uint32_t bytes;
	for (uint64_t n = 0; n < 1000; n++) {
		uint8_t *at = ring_reserve(&r.p, 64);
		cr_assert(at);
		fill(at, n, 64);
		ring_commit(&r.p);
		cr_assert_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_OK);
		cr_assert(is_whole(out, n, 64));
	}
}

Test(ring, an_impossible_index_is_told_once)
{
	struct pair r = pair_at(0);
	uint8_t out[8];
	uint32_t bytes;
	r.map->tail = CAPACITY + 8;
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_CORRUPT);
	cr_expect_eq(ring_pop(&r.c, out, sizeof out, &bytes), RING_WAIT);
	r.map->head = r.p.tail_ + 8;
	for (unsigned i = 0; i < CAPACITY / 16; i++) {
		cr_assert(ring_reserve(&r.p, 8), "it knows of this room");
		ring_commit(&r.p);
	}
	cr_expect_null(ring_reserve(&r.p, 8), "and looks for more: as if full");
}

static pid_t start(void (*run)(struct ring_map *map, int event), struct ring_map *map, int event)
{
	pid_t child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		random_state ^= (uint64_t)getpid() << 20;
		run(map, event);
		_exit(0);
	}
	return child;
}
static void expect_good_end(pid_t child)
{
	int status = 0;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "the other process ended with %x", (unsigned)status);
}
static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void scribble(struct ring_map *m, int event)
{
	(void)event;
	for (;;) {
		m->tail = random_next() % 2 ? (uint32_t)random_next() : m->head + (uint32_t)(random_next() % CAPACITY);
		m->head = random_next() % 2 ? (uint32_t)random_next() : m->tail - (uint32_t)(random_next() % CAPACITY);
		m->is_sleeping = (uint32_t)random_next();
		for (size_t i = 0; i < CAPACITY; i += 8) {
			uint64_t word = random_next() % 2 ? random_next() : random_next() % 64;
			memcpy(m->data + i, &word, 8);
		}
	}
}

Test(ring, another_process_writes_random_octets_meanwhile)
{
	struct pair r = pair_at(0);
	pid_t child = start(scribble, r.map, -1);
	for (uint64_t until = clock_mono_ns() + 1000000000; clock_mono_ns() < until;) {
		uint8_t out[RECORD_MAX];
		uint32_t bytes = 0;
		for (unsigned i = 0; i < 64; i++) {
			(void)!ring_pop(&r.c, out, sizeof out, &bytes);
			cr_assert_leq(bytes, sizeof out);
			(void)!ring_prepare_sleep(&r.c);
			producer_survives(&r.p);
		}
	}
	end(child);
}

/* --- two processes --------------------------------------------------------------------------------------------------- */

#define RECORDS 400000u
static uint32_t length_of(uint64_t n) { return (uint32_t)((n * 2654435761u >> 7) % (n % 16 ? 90 : RECORD_MAX - 8)) + 8; }

/* Puts record n, which begins with its number; waits for room. */
static void put(struct ring_producer *p, uint64_t n)
{
	uint8_t *at;
	while (!(at = ring_reserve(p, length_of(n))))
		sched_yield();
	fill(at, n, length_of(n));
	memcpy(at, &n, 8);
	ring_commit(p);
}
/* Whether out is a whole record; *n its number. */
static bool is_record(uint8_t *out, uint32_t bytes, uint64_t *n)
{
	if (bytes < 8)
		return false;
	memcpy(n, out, 8);
	fill(out, *n, 8);
	return bytes == length_of(*n) && is_whole(out, *n, bytes);
}

static void produce_all(struct ring_map *map, int event)
{
	(void)event;
	struct ring_producer p;
	if (ring_producer_attach(&p, map, ring_bytes(CAPACITY)) != ERR_OK)
		_exit(1);
	for (uint64_t n = 0; n < RECORDS; n++)
		put(&p, n);
}

Test(ring, two_processes_lose_and_tear_nothing)
{
	struct pair r = pair_at(UINT32_MAX - 8191);
	pid_t child = start(produce_all, r.map, -1);
	for (uint64_t n = 0; n < RECORDS;) {
		uint8_t out[RECORD_MAX];
		uint32_t bytes;
		uint64_t number;
		enum ring_result result = ring_pop(&r.c, out, sizeof out, &bytes);
		cr_assert_neq(result, RING_CORRUPT);
		if (result == RING_WAIT) {
			sched_yield();
			continue;
		}
		cr_assert(is_record(out, bytes, &number));
		cr_assert_eq(number, n++);
	}
	expect_good_end(child);
}

/* Goes on after the last record of its predecessor, whose number it does not know: it counts in shared memory, after the commit. */
static void produce_until_killed(struct ring_map *map, int event)
{
	(void)event;
	struct ring_producer p;
	_Atomic uint64_t *next = (void *)((uint8_t *)map - 64);
	if (ring_producer_attach(&p, map, ring_bytes(CAPACITY)) != ERR_OK)
		_exit(1);
	for (;;) {
		put(&p, *next);
		++*next;
	}
}

Test(ring, producers_that_die_lose_nothing_that_was_committed)
{
	struct pair r = pair_at(0);
	uint64_t expected = 0, repeated = 0;
	const unsigned lives = 100;
	for (unsigned life = 0; life < lives; life++) {
		pid_t child = start(produce_until_killed, r.map, -1);
		uint64_t until = clock_mono_ns() + 1000000 + random_next() % 10000000;
		for (bool is_dead = false;;) {
			uint8_t out[RECORD_MAX];
			uint32_t bytes;
			uint64_t number;
			enum ring_result result = ring_pop(&r.c, out, sizeof out, &bytes);
			cr_assert_neq(result, RING_CORRUPT);
			if (result == RING_WAIT && is_dead)
				break;
			if (!is_dead && clock_mono_ns() > until) {
				end(child);
				is_dead = true;
			}
			if (result == RING_WAIT)
				continue;
			cr_assert(is_record(out, bytes, &number));
			if (number + 1 == expected) { /* committed, not yet counted */
				repeated++;
				continue;
			}
			cr_assert_eq(number, expected);
			expected++;
		}
	}
	cr_expect_leq(repeated, lives);
	cr_expect_gt(expected, lives);
}

/* Checks the order; stores the last number it has seen behind the ring's indices, in the producer's reach of no interest. */
static void consume_until_killed(struct ring_map *map, int event)
{
	(void)event;
	struct ring_consumer c;
	_Atomic uint64_t *next = (void *)((uint8_t *)map - 64);
	if (ring_consumer_attach(&c, map, ring_bytes(CAPACITY)) != ERR_OK)
		_exit(1);
	for (;;) {
		uint8_t out[RECORD_MAX];
		uint32_t bytes;
		uint64_t number;
		enum ring_result result = ring_pop(&c, out, sizeof out, &bytes);
		if (result == RING_WAIT)
			continue;
		/* The predecessor may have died between the copy and the index, or between the index and the count. */
		if (result != RING_OK || !is_record(out, bytes, &number) || number + 1 < *next || number > *next + 1)
			_exit(2);
		*next = number + 1;
	}
}

Test(ring, consumers_that_die_leave_a_sound_ring)
{
	struct pair r = pair_at(0);
	uint64_t n = 0;
	for (unsigned life = 0; life < 100; life++) {
		pid_t child = start(consume_until_killed, r.map, -1);
		for (uint64_t until = clock_mono_ns() + 1000000 + random_next() % 10000000; clock_mono_ns() < until;) {
			uint8_t *at = ring_reserve(&r.p, length_of(n));
			if (!at)
				continue;
			fill(at, n, length_of(n));
			memcpy(at, &n, 8);
			ring_commit(&r.p);
			n++;
		}
		kill(child, SIGKILL);
		int status;
		waitpid(child, &status, 0);
		cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", (unsigned)status);
	}
	cr_expect_gt(n, 1000);
}

/* --- sleeping -------------------------------------------------------------------------------------------------------- */

#define WAKES 60000u
static void produce_and_kick(struct ring_map *map, int event)
{
	struct ring_producer p;
	if (ring_producer_attach(&p, map, ring_bytes(CAPACITY)) != ERR_OK)
		_exit(1);
	for (uint64_t n = 0; n < WAKES; n++) {
		put(&p, n);
		if (ring_needs_kick(&p) && eventfd_write(event, 1) < 0)
			_exit(2);
		/* Around the moment when the consumer goes to sleep. */
		for (volatile unsigned wait = random_next() % 4 ? random_next() % 600 : 0; wait; wait--)
			;
	}
}

Test(ring, no_wake_up_is_lost, .timeout = 60)
{
	struct pair r = pair_at(0);
	int event = eventfd(0, EFD_NONBLOCK);
	pid_t child = start(produce_and_kick, r.map, event);
	unsigned sleeps = 0;
	for (uint64_t n = 0; n < WAKES;) {
		uint8_t out[RECORD_MAX];
		uint32_t bytes;
		uint64_t number;
		enum ring_result result = ring_pop(&r.c, out, sizeof out, &bytes);
		if (result == RING_OK) {
			cr_assert(is_record(out, bytes, &number) && number == n);
			n++;
			continue;
		}
		cr_assert_eq(result, RING_WAIT);
		if (!ring_prepare_sleep(&r.c))
			continue;
		struct pollfd wait = { .fd = event, .events = POLLIN };
		cr_assert_eq(poll(&wait, 1, 10000), 1, "sleeps on record %llu for ever", (unsigned long long)n);
		eventfd_t value;
		cr_assert_eq(eventfd_read(event, &value), 0);
		ring_cancel_sleep(&r.c);
		sleeps++;
	}
	expect_good_end(child);
	cr_expect_gt(sleeps, 100, "it did sleep");
	cr_expect_geq(r.map->kicks, sleeps);
}

/* --- the set --------------------------------------------------------------------------------------------------------- */

Test(ring_set, every_pair_has_rings_of_its_own)
{
	int fd;
	struct ring_set a, b;
	cr_assert_eq(ring_set_create(&fd, 3, 5, 4096, 8192), ERR_OK);
	cr_assert_eq(ring_set_attach(&a, fd), ERR_OK);
	cr_assert_eq(ring_set_attach(&b, fd), ERR_OK);
	close(fd);
	cr_expect(a.threads == 3 && a.workers == 5 && a.question_capacity == 4096 && a.answer_capacity == 8192);
	for (uint64_t pass = 0; pass < 2; pass++)
		for (unsigned t = 0; t < 3; t++)
			for (unsigned w = 0; w < 5; w++)
				for (unsigned is_answer = 0; is_answer < 2; is_answer++) {
					uint64_t name = (t * 5 + w) * 2 + is_answer, out;
					uint32_t got;
					size_t bytes;
					void *mem =
						(is_answer ? ring_set_answers : ring_set_questions)(pass ? &b : &a, t, w, &bytes);
					cr_assert_eq(bytes, ring_bytes(is_answer ? 8192 : 4096));
					if (pass == 0) {
						struct ring_producer p;
						cr_assert_eq(ring_producer_attach(&p, mem, bytes), ERR_OK);
						memcpy(ring_reserve(&p, 8), &name, 8);
						ring_commit(&p);
					} else {
						struct ring_consumer c;
						cr_assert_eq(ring_consumer_attach(&c, mem, bytes), ERR_OK);
						cr_assert_eq(ring_pop(&c, &out, 8, &got), RING_OK);
						cr_expect_eq(out, name);
						cr_expect_eq(ring_pop(&c, &out, 8, &got), RING_WAIT);
					}
				}
	ring_set_detach(&a);
	ring_set_detach(&b);
	ring_set_detach(&b);
}

Test(ring_set, impossible_numbers_are_refused)
{
	int fd = 77;
	static const uint32_t cases[][4] = { { 0, 1, 4096, 4096 },   { 257, 1, 4096, 4096 }, { 1, 0, 4096, 4096 },
					     { 1, 129, 4096, 4096 }, { 1, 1, 4095, 4096 },   { 1, 1, 4096, 0 } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(ring_set_create(&fd, cases[i][0], cases[i][1], cases[i][2], cases[i][3]), ERR_ARGUMENT);
	cr_expect_eq(ring_set_create(&fd, 256, 128, RING_MAX_BYTES, RING_MAX_BYTES), ERR_NOMEM, "a TiB");
	cr_expect_eq(fd, 77);
}

Test(ring_set, a_damaged_header_is_refused)
{
	int fd;
	void *map;
	size_t bytes;
	struct ring_set s = { .threads = 77 };
	cr_assert_eq(ring_set_create(&fd, 2, 2, 4096, 4096), ERR_OK);
	cr_assert_eq(shm_map_writable(&map, &bytes, fd), ERR_OK);
	for (unsigned word = 0; word < 8; word++)
		for (unsigned bit = 0; bit < 32; bit++) {
			((uint32_t *)map)[word] ^= 1u << bit;
			cr_expect_eq(ring_set_attach(&s, fd), ERR_CORRUPT, "word %u bit %u", word, bit);
			((uint32_t *)map)[word] ^= 1u << bit;
		}
	cr_expect_eq(s.threads, 77);
	cr_expect_eq(ring_set_attach(&s, fd), ERR_OK);
	ring_set_detach(&s);
	close(fd);

	int small;
	cr_assert_eq(shm_create(&small, "t", 64), ERR_OK);
	cr_expect_eq(ring_set_attach(&s, small), ERR_CORRUPT);
	close(small);
	cr_assert_eq(shm_create_growing(&small, "t"), ERR_OK);
	cr_assert_eq(ftruncate(small, (off_t)bytes), 0);
	cr_assert_eq(pwrite(small, map, bytes, 0), (ssize_t)bytes);
	cr_expect_eq(ring_set_attach(&s, small), ERR_DENIED, "could be cut short");
	close(small);
	cr_expect_eq(ring_set_attach(&s, -1), ERR_DENIED);
}
