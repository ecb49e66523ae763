/* SPDX-License-Identifier: Apache-2.0 */
/* What a serving thread asks of the resolver, and what it sends of what comes back: whatever that is. */
#include "table/cache.h"

static unsigned fake_shard(const struct cache_reader *r, uint64_t hash)
{
	(void)r;
	return (unsigned)(hash & 63);
}
#define cache_reader_shard fake_shard
#include "fastpath/xdp/serve_miss_hot.c"

#include "tests/unit/fastpath/xdp/packet.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WORKERS 3u
#define FRAMES 64u
#define CAPACITY (1u << 16)
#define MTU 1500u

static struct ring_set rings;
static int rings_fd, worker_wake[WORKERS], wake;
static struct counter_block counters;
static struct serve_miss *miss;
static struct umem umem;
static uint32_t spare[FRAMES];
static struct ring_consumer questions[WORKERS];
static struct ring_producer answers[WORKERS];
static uint8_t query[] = {
	0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'w', 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0, 0, 1, 0, 1
};

static void make_miss(unsigned per_client, uint64_t seed)
{
	struct serve_miss_options o = { .rings = &rings,
					.thread = 0,
					.worker_wake = worker_wake,
					.wake = wake,
					.counters = &counters,
					.per_client = per_client,
					.seed = seed };

	cr_assert_eq(serve_miss_create(&miss, &o), ERR_OK);
}

static void setup(void)
{
	cr_assert_eq(ring_set_create(&rings_fd, 1, WORKERS, CAPACITY, CAPACITY), ERR_OK);
	cr_assert_eq(ring_set_attach(&rings, rings_fd), ERR_OK);
	for (unsigned i = 0; i < WORKERS; i++) {
		size_t bytes;
		void *ring = ring_set_questions(&rings, 0, i, &bytes);

		cr_assert_eq(ring_consumer_attach(&questions[i], ring, bytes), ERR_OK);
		ring = ring_set_answers(&rings, 0, i, &bytes);
		cr_assert_eq(ring_producer_attach(&answers[i], ring, bytes), ERR_OK);
		worker_wake[i] = eventfd(0, EFD_NONBLOCK);
	}
	wake = eventfd(0, EFD_NONBLOCK);
	umem_init(&umem, aligned_alloc(4096, FRAMES * UMEM_FRAME_BYTES), FRAMES, spare);
#ifdef SKUA_DEBUG
	umem.owner = calloc(FRAMES, 1);
#endif
	make_miss(100000, 7);
}

static void teardown(void)
{
	serve_miss_destroy(miss);
	ring_set_detach(&rings);
	close(rings_fd);
	free(umem.area);
}
TestSuite(serve_miss, .init = setup, .fini = teardown);

struct asked {
	struct packet_options options;
	uint8_t frame[256];
	struct frame f;
	struct answer_query q;
};

/* One query of a client, through frame_parse, as serve_hot.c does it. */
static void ask(struct asked *a, int family, int vlan, uint16_t port, uint64_t hash, uint64_t now_ns)
{
	size_t bytes;

	a->options = (struct packet_options){
		.family = family, .vlan = vlan, .source_port = port, .destination_port = 53, .dns_bytes = sizeof(query)
	};
	bytes = packet_make(a->frame, &a->options, query);
	memset(&a->q, 0, sizeof(a->q));
	cr_assert_eq(frame_parse(&a->f, &a->q.client, a->frame, bytes, true), FRAME_OK);
	a->q.msg = a->frame + a->f.dns;
	a->q.query_bytes = sizeof(query);
	a->q.capacity_bytes = 1400;
	a->q.question_end = sizeof(query);
	a->q.flags = DNS_RD;
	a->q.qtype = 1;
	a->q.cache_hash = hash;
	serve_miss_ask(miss, &a->q, &a->f, a->frame, now_ns);
}

/* The question that the worker gets: its ticket, or 0. */
static uint64_t take_question(unsigned worker, struct miss_question *out, uint8_t *message)
{
	uint8_t record[1024];
	uint32_t bytes;

	if (ring_pop(&questions[worker], record, sizeof(record), &bytes) != RING_OK)
		return 0;
	memcpy(out, record, sizeof(*out));
	cr_assert_eq(bytes, sizeof(*out) + out->query_bytes);
	memcpy(message, record + sizeof(*out), out->query_bytes);
	return out->ticket;
}

static void give_answer(unsigned worker, uint64_t ticket, uint32_t said_bytes, uint32_t bytes)
{
	struct miss_answer *a = ring_reserve(&answers[worker], (uint32_t)sizeof(*a) + bytes);

	cr_assert(a);
	*a = (struct miss_answer){ .ticket = ticket, .response_bytes = said_bytes };
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)(a + 1))[i] = (uint8_t)i;
	ring_commit(&answers[worker]);
}

static void expect(enum counter c, uint64_t value) { cr_expect_eq(counter_get(&counters, c), value, "%s", counter_name(c)); }

Test(serve_miss, an_answer_leaves_as_the_reply_to_its_query)
{
	static const struct {
		int family, vlan;
	} cases[] = { { 4, -1 }, { 6, -1 }, { 4, 100 }, { 6, 4094 } };
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		for (uint32_t bytes = 12; bytes <= 1400; bytes += 347) {
			struct asked a;
			uint64_t ticket;

			ask(&a, cases[i].family, cases[i].vlan, 4242, 64 + 5, 1000);
			cr_assert((ticket = take_question(5 % WORKERS, &question, message)) != 0);
			cr_expect_eq(question.received_ns, 1000);
			cr_expect_eq(question.port, 4242);
			cr_expect_eq(question.family, cases[i].family);
			cr_expect_eq(question.capacity_bytes, 1400);
			cr_expect_arr_eq(question.address, a.q.client.address, 16);
			cr_expect_eq(question.query_bytes, sizeof(query));
			cr_expect_arr_eq(message, query, sizeof(query));
			give_answer(5 % WORKERS, ticket, bytes, bytes);
			cr_assert_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 2000), 1);
			const uint8_t *reply = umem.area + out[0].address;
			const char *fault = packet_check_reply(a.frame, &a.options, reply, out[0].bytes, bytes);

			cr_expect_null(fault, "%s", fault);
			cr_expect_eq(reply[a.f.dns + bytes - 1], (uint8_t)(bytes - 1));
			umem_drop(&umem, out[0].address);
		}
	expect(C_MISS_ASKED, counter_get(&counters, C_MISS_ANSWERED));
}

Test(serve_miss, a_ticket_is_good_once)
{
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];
	struct asked a;

	ask(&a, 4, -1, 1, 0, 0);
	uint64_t ticket = take_question(0, &question, message);

	give_answer(0, ticket, 40, 40);
	give_answer(1, ticket, 40, 40);
	give_answer(0, 0, 40, 40);
	give_answer(0, ticket + SERVE_MISS_PENDING, 40, 40);
	give_answer(0, UINT64_MAX, 40, 40);
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 1);
	expect(C_MISS_LATE, 4);
}

Test(serve_miss, an_answer_that_can_not_be_right_is_not_sent)
{
	static const struct {
		uint32_t said, is;
	} cases[] = {
		{ 40, 41 }, { 41, 40 }, { 11, 11 }, { 1473, 1473 }, { 4096, 4096 }, { 0xffffffff, 20 }, { 0, 0 }, { 0, 100 }
	};
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct asked a;

		ask(&a, 4, -1, 1, 0, 0);
		give_answer(0, take_question(0, &question, message), cases[i].said, cases[i].is);
		cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 0, "case %u", i);
	}
	expect(C_MISS_BAD_ANSWER, 6); /* the last two mean that there is no answer */
	cr_expect_eq(umem.spare_count, FRAMES);
	/* Nothing is left under way. */
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 2 * SERVE_MISS_LIFE_NS), 0);
	expect(C_MISS_EXPIRED, 0);
}

Test(serve_miss, questions_end_after_their_time)
{
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];
	struct asked a;

	ask(&a, 4, -1, 1, 0, 1000);
	uint64_t ticket = take_question(0, &question, message);

	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 1000 + SERVE_MISS_LIFE_NS - 1), 0);
	expect(C_MISS_EXPIRED, 0);
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 1000 + SERVE_MISS_LIFE_NS), 0);
	expect(C_MISS_EXPIRED, 1);
	give_answer(0, ticket, 40, 40);
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 1000 + SERVE_MISS_LIFE_NS), 0);
	expect(C_MISS_LATE, 1);
}

Test(serve_miss, a_slow_question_holds_up_no_slot_but_its_own)
{
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];
	struct asked a;

	ask(&a, 4, -1, 1, 0, 0); /* is never answered */
	cr_assert(take_question(0, &question, message));
	for (unsigned i = 0; i < 3 * SERVE_MISS_PENDING; i++) {
		ask(&a, 4, -1, (uint16_t)(i + 1) | 1, 0, 0);
		uint64_t ticket = take_question(0, &question, message);

		cr_assert(ticket != 0, "%u", i);
		give_answer(0, ticket, 40, 40);
		cr_assert_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 1);
		umem_drop(&umem, out[0].address);
	}
}

Test(serve_miss, all_slots_can_be_taken_and_come_back)
{
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];
	struct asked a;

	for (unsigned i = 0; i < SERVE_MISS_PENDING; i++) {
		ask(&a, 4, -1, 1, 0, i);
		cr_assert(take_question(0, &question, message));
	}
	expect(C_MISS_ASKED, SERVE_MISS_PENDING);
	ask(&a, 4, -1, 1, 0, 0); /* the quota of all */
	expect(C_MISS_QUOTA, 1);
	for (unsigned i = 0; i < SERVE_MISS_PENDING; i++)
		cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, SERVE_MISS_PENDING + SERVE_MISS_LIFE_NS), 0);
	expect(C_MISS_EXPIRED, SERVE_MISS_PENDING);
	ask(&a, 4, -1, 1, 0, 0);
	cr_expect(take_question(0, &question, message));
}

Test(serve_miss, one_client_can_not_take_everything)
{
	struct asked a;

	serve_miss_destroy(miss);
	make_miss(10, 9);
	for (unsigned i = 0; i < 50; i++)
		ask(&a, 4, -1, 1, 0, 0);
	expect(C_MISS_ASKED, 10);
	expect(C_MISS_QUOTA, 40);
	ask(&a, 6, -1, 1, 0, 0);
	expect(C_MISS_ASKED, 11);
}

Test(serve_miss, a_full_ring_drops_and_forgets)
{
	struct miss_question question;
	uint8_t message[512];
	struct asked a;
	uint64_t asked;

	for (unsigned i = 0; i < CAPACITY / 64; i++)
		ask(&a, 4, -1, 1, 0, 0);
	asked = counter_get(&counters, C_MISS_ASKED);
	cr_expect_gt(counter_get(&counters, C_MISS_RING_FULL), 0);
	cr_expect_eq(asked + counter_get(&counters, C_MISS_RING_FULL), CAPACITY / 64);
	cr_expect_eq(miss->quota_.total, asked);
	for (uint64_t i = 0; i < asked; i++)
		cr_assert(take_question(0, &question, message));
	ask(&a, 4, -1, 1, 0, 0);
	expect(C_MISS_ASKED, asked + 1);
}

Test(serve_miss, without_a_spare_frame_the_answer_is_dropped)
{
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];
	struct asked a;

	ask(&a, 4, -1, 1, 0, 0);
	give_answer(0, take_question(0, &question, message), 40, 40);
	umem.spare_count = 0;
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 0);
	expect(C_MISS_NO_FRAME, 1);
}

Test(serve_miss, an_entry_is_refreshed_once_in_a_while)
{
	struct miss_question question;
	uint8_t message[512];
	struct asked a;

	ask(&a, 4, -1, 1, 0, 0);
	cr_assert(take_question(0, &question, message));
	a.q.msg[2] = 0x81; /* the response is written already */
	a.q.msg[7] = 1;
	for (unsigned i = 0; i < 100; i++)
		serve_miss_refresh(miss, &a.q, i);
	expect(C_REFRESHES, 1);
	cr_expect_eq(take_question(0, &question, message), 0, "nobody waits: no ticket");
	cr_expect_eq(question.flags, MISS_F_REFRESH);
	cr_expect_eq(question.query_bytes, sizeof(query));
	cr_expect_arr_eq(message + 2, query + 2, sizeof(query) - 2);
	serve_miss_refresh(miss, &a.q, SERVE_MISS_REFRESH_NS);
	expect(C_REFRESHES, 2);
}

Test(serve_miss, a_worker_is_woken_once_per_sleep)
{
	struct asked a;
	uint64_t count;

	cr_assert(ring_prepare_sleep(&questions[0]));
	ask(&a, 4, -1, 1, 0, 0);
	ask(&a, 4, -1, 1, 0, 0);
	serve_miss_kick(miss);
	ask(&a, 4, -1, 1, 0, 0);
	serve_miss_kick(miss);
	cr_expect_eq(read(worker_wake[0], &count, sizeof(count)), sizeof(count));
	cr_expect_eq(count, 1);
	cr_expect_lt(read(worker_wake[1], &count, sizeof(count)), 0);
	expect(C_MISS_KICKS, 1);
}

Test(serve_miss, sleep_is_refused_while_answers_wait)
{
	cr_expect(serve_miss_prepare_sleep(miss));
	serve_miss_awake(miss, true);
	give_answer(2, 1, 40, 40);
	cr_expect_not(serve_miss_prepare_sleep(miss));
}

Test(serve_miss, answers_to_a_process_before_go_nowhere)
{
	struct miss_question question;
	uint8_t message[512];
	struct umem_packet out[8];
	struct asked a;
	uint64_t old;

	ask(&a, 4, -1, 1, 0, 0);
	old = take_question(0, &question, message);
	give_answer(0, old, 40, 40);
	serve_miss_destroy(miss);
	make_miss(100, 123456789);
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 0);
	ask(&a, 4, -1, 1, 0, 0);
	give_answer(0, old, 40, 40); /* and one that was still being made */
	cr_expect_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 0);
	expect(C_MISS_LATE, 1);
}

Test(serve_miss, random_octets_in_the_ring_send_nothing)
{
	struct umem_packet out[8];
	struct asked a;
	size_t bytes;
	uint32_t *ring = ring_set_answers(&rings, 0, 1, &bytes);

	srandom(4);
	for (unsigned i = 0; i < 16; i++)
		ask(&a, 4, -1, 1, 1, 0);
	for (unsigned round = 0; round < 20000; round++) {
		for (unsigned i = 0; i < 64; i++)
			ring[2 + (size_t)random() % (bytes / 4 - 2)] = round & 1 ? (uint32_t)random() : (uint32_t)random() % 64;
		ring[16] += (uint32_t)random() % 512; /* tail */
		cr_assert_eq(serve_miss_collect(miss, &umem, out, 8, MTU, 0), 0);
	}
	cr_expect_eq(umem.spare_count, FRAMES);
}
