/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the fastpath's threads, which come and go by rings. */
#include "tests/unit/slowpath/resolve/resolve_world.h"

static void say_address(struct reply *r, const char *name, uint16_t type)
{
	(void)type;
	reply_init(r, name, RR_A, DNS_RA);
	reply_add(r, 0, name, "A", 300, "192.0.2.1");
}

static void setup_rings(void)
{
	world_defaults();
	world_start(2, 2);
	fake_script("www.example.", say_address, 0);
}

static void sleep_ms(unsigned ms)
{
	snapshot_offline();
	usleep(ms * 1000);
	snapshot_online();
}

static struct ring_producer questions[2];
static struct ring_consumer answers[2];

static void attach(unsigned thread)
{
	for (unsigned w = 0; w < 2; w++) {
		size_t bytes;
		void *mem = ring_set_questions(&world.rings, thread, w, &bytes);
		cr_assert_eq(ring_producer_attach(&questions[w], mem, bytes), ERR_OK);
		mem = ring_set_answers(&world.rings, thread, w, &bytes);
		cr_assert_eq(ring_consumer_attach(&answers[w], mem, bytes), ERR_OK);
	}
}

/* Puts a question for the name into the ring of the worker that it belongs to. */
static unsigned ring_ask(const char *name, uint64_t ticket, struct miss_question *change)
{
	uint8_t query[512], wire[NAME_MAX_BYTES];
	size_t bytes = zones_query(query, sizeof(query), &(struct zones_ask){ .name = name, .type = RR_A });
	size_t name_bytes = reply_name(wire, name);
	name_lower(wire, wire, name_bytes);
	unsigned w = cache_reader_shard(world.reader, cache_hash(world.reader, name_hash(wire, name_bytes))) % 2;
	struct miss_question head = { .ticket = ticket,
				      .received_ns = clock_mono_ns(),
				      .address = { 127, 0, 0, 1 },
				      .port = 4000,
				      .family = 4,
				      .capacity_bytes = 1232,
				      .query_bytes = (uint16_t)bytes };
	query[2] |= DNS_RD >> 8;
	if (change) {
		change->ticket = ticket;
		head = *change;
	}
	uint8_t *room = ring_reserve(&questions[w], (uint32_t)(sizeof(head) + bytes));
	cr_assert_not_null(room);
	memcpy(room, &head, sizeof(head));
	memcpy(room + sizeof(head), query, bytes);
	ring_commit(&questions[w]);
	if (ring_needs_kick(&questions[w])) {
		uint64_t one = 1;
		cr_assert_eq(write(world.wake[w], &one, sizeof(one)), 8);
	}
	return w;
}

/* The next answer of a worker, waited for; its message is text. NULL: there is none in time. */
static char *ring_answer(unsigned w, uint64_t *ticket)
{
	static alignas(8) uint8_t record[8192];
	uint32_t bytes = 0;
	for (unsigned i = 0; i < 1000; i++) {
		if (ring_pop(&answers[w], record, sizeof(record), &bytes) == RING_OK) {
			struct miss_answer head;
			memcpy(&head, record, sizeof(head));
			cr_assert_eq(bytes, sizeof(head) + head.response_bytes);
			*ticket = head.ticket;
			return head.response_bytes ? zones_message_text(record + sizeof(head), head.response_bytes) : strdup("");
		}
		sleep_ms(1);
	}
	return NULL;
}

Test(resolve_ring, questions_come_and_go_by_rings, .init = setup_rings, .fini = world_stop)
{
	uint64_t ticket;
	attach(1);
	for (unsigned i = 0; i < 200; i++) {
		char name[40];
		snprintf(name, sizeof(name), "n%u.www.example.", i % 150);
		unsigned w = ring_ask(name, 1000 + i, NULL);
		char *text = ring_answer(w, &ticket);
		cr_assert_not_null(text, "question %u", i);
		cr_assert_eq(ticket, 1000 + i);
		cr_assert_eq(strncmp(text, "NOERROR | n", 11), 0, "%s", text);
		free(text);
	}
	cr_assert_eq(atomic_load(&fake.asked), 150);
	cr_assert_eq(world_counter(C_RESOLVE_FROM_CACHE), 50);
}

Test(resolve_ring, a_sleeping_thread_is_woken_once_for_many_answers, .init = setup_rings, .fini = world_stop)
{
	uint64_t count = 0, ticket;
	attach(0);
	fake_script("slow.example.", say_address, 100);
	unsigned w = 0;
	for (unsigned i = 0; i < 50; i++)
		w = ring_ask("slow.example.", i, NULL);
	cr_assert(ring_prepare_sleep(&answers[w]));
	sleep_ms(400);
	cr_assert_eq(read(world.thread_wake[0], &count, sizeof(count)), 8);
	cr_assert_eq(count, 1);
	for (unsigned i = 0; i < 50; i++) {
		char *text = ring_answer(w, &ticket);
		cr_assert_not_null(text);
		free(text);
	}
	cr_assert_eq(world_counter(C_RESOLVE_KICKS), 1);
}

Test(resolve_ring, damaged_records_are_counted_and_harmless, .init = setup_rings, .fini = world_stop)
{
	uint64_t ticket;
	uint8_t query[512];
	size_t bytes = zones_query(query, sizeof(query), &(struct zones_ask){ .name = "www.example.", .type = RR_A });
	struct miss_question good = { .address = { 127 }, .family = 4, .capacity_bytes = 1232, .query_bytes = (uint16_t)bytes };
	struct miss_question bad[6];
	attach(0);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		bad[i] = good;
	bad[0].family = 5;
	bad[1].capacity_bytes = 511;
	bad[2].query_bytes--;
	bad[3].query_bytes = UINT16_MAX;
	bad[4].flags = 3;
	bad[5].flags = 0x80;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		(void)ring_ask("www.example.", i, &bad[i]);
	good.received_ns = UINT64_MAX; /* from the future */
	char *text = ring_answer(ring_ask("www.example.", 99, &good), &ticket);
	cr_assert(text && ticket == 99 && strncmp(text, "NOERROR", 7) == 0);
	free(text);
	cr_assert_eq(world_counter(C_RESOLVE_RING_BAD), ARRAY_LEN(bad));
	/* A name that belongs to another worker is not asked for: its shard has another writer. */
	unsigned w = ring_ask("else.www.example.", 5, NULL), other = !w;
	text = ring_answer(w, &ticket);
	free(text);
	for (unsigned i = 0;; i++) {
		char name[40];
		uint8_t wire[NAME_MAX_BYTES];
		snprintf(name, sizeof(name), "x%u.www.example.", i);
		size_t n = reply_name(wire, name);
		if (cache_reader_shard(world.reader, cache_hash(world.reader, name_hash(wire, n))) % 2 == other)
			continue;
		bytes = zones_query(query, sizeof(query), &(struct zones_ask){ .name = name, .type = RR_A });
		query[2] |= 1;
		good.ticket = 77;
		good.query_bytes = (uint16_t)bytes;
		uint8_t *room = ring_reserve(&questions[other], (uint32_t)(sizeof(good) + bytes));
		memcpy(room, &good, sizeof(good));
		memcpy(room + sizeof(good), query, bytes);
		ring_commit(&questions[other]);
		uint64_t one = 1;
		cr_assert_eq(write(world.wake[other], &one, sizeof(one)), 8);
		break;
	}
	text = ring_answer(other, &ticket);
	cr_assert(text && *text == 0 && ticket == 77, "no answer, and the ticket is forgotten");
	free(text);
}

Test(resolve_ring, a_full_ring_costs_answers_and_nothing_else, .init = setup_rings, .fini = world_stop)
{
	attach(0);
	fake_script("slow.example.", say_address, 300);
	struct client c;
	for (unsigned i = 0; i < 1600; i++) {
		(void)ring_ask("slow.example.", i, NULL);
		if (i % 50 == 0)
			sleep_ms(2);
	}
	client_ask(&c, "slow.example.", RR_A);
	free(client_text(&c));
	client_fini(&c);
	sleep_ms(100);
	cr_assert_gt(world_counter(C_RESOLVE_RING_FULL), 0);
	expect("www.example.", RR_A, "NOERROR");
}
