/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "slowpath/listen/tcp.h"
#include "slowpath/listen/tcp_private.h"
#include <netinet/tcp.h>

static struct fixture f;
static struct tcp_worker *worker;
static struct tcp_clients *clients;
static struct counter_block *counters;
static int listener;

static void start(struct tcp_limits limits)
{
	fixture_init(&f);
	counters = &f.counters->block[1];
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0);
	listener = fixture_socket(&a, sizeof a, SOCK_STREAM);
	cr_assert_eq(tcp_clients_create(&clients, limits.max_connections, limits.max_per_client), ERR_OK);
	struct tcp_worker_config c = { .fds = &listener,
				       .fd_count = 1,
				       .snapshots = &f.holder,
				       .counters = counters,
				       .clients = clients,
				       .limits = limits,
				       .cpu = -1 };
	cr_assert_eq(tcp_worker_start(&worker, &c), ERR_OK);
}

static void stop(void)
{
	tcp_worker_stop(worker);
	cr_assert_eq(tcp_clients_total(clients), 0, "each connection that was counted has left");
	tcp_clients_destroy(clients);
}

static const struct tcp_limits ordinary = { .max_connections = 100,
					    .max_per_client = 100,
					    .idle_timeout_ms = 5000,
					    .message_timeout_ms = 5000,
					    .max_queries_in_flight = 128 };

static int connect_from(const char *source)
{
	struct sockaddr_in from = fixture_v4(source, 0), to = fixture_v4("127.0.0.1", fixture_port(listener));
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	struct timeval timeout = { .tv_sec = PATIENCE_MS / 1000 };
	cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout), 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* With its length before it. */
static size_t framed(uint8_t *out, uint16_t id)
{
	size_t bytes = fixture_query(out + 2, id, id);
	store_be16(out, (uint16_t)bytes);
	return bytes + 2;
}

static void send_all(int fd, const void *data, size_t bytes)
{
	cr_assert_eq(send(fd, data, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

static void receive_all(int fd, uint8_t *out, size_t bytes)
{
	for (size_t have = 0; have < bytes;) {
		ssize_t n = recv(fd, out + have, bytes - have, 0);
		cr_assert_gt(n, 0, "%zu of %zu octets, then %s", have, bytes, n ? strerror(errno) : "the end");
		have += (size_t)n;
	}
}

static void expect_answer(int fd, uint16_t id)
{
	uint8_t head[2], reply[65536], query[64];
	receive_all(fd, head, 2);
	size_t bytes = load_be16(head), query_bytes = fixture_query(query, id, id);
	receive_all(fd, reply, bytes);
	cr_assert(fixture_is_refusal(reply, (ssize_t)bytes, query, query_bytes), "answer for id %u, got %u", id,
		  load_be16(reply));
}

static void ask(int fd, uint16_t id)
{
	uint8_t query[64];
	send_all(fd, query, framed(query, id));
	expect_answer(fd, id);
}

/* Whether the server closes within the time. */
static bool closes(int fd, int timeout_ms)
{
	uint8_t data[65536];
	uint64_t end_ns = clock_mono_ns() + (uint64_t)timeout_ms * 1000000u;
	while (clock_mono_ns() < end_ns) {
		if (fixture_readable(fd, 20) && recv(fd, data, sizeof data, 0) <= 0)
			return true;
	}
	return false;
}

Test(tcp, one_connection_serves_many_queries_one_after_another)
{
	start(ordinary);
	int fd = connect_from("127.0.0.1");
	for (uint16_t id = 0; id < 100; id++)
		ask(fd, id);
	cr_assert_eq(counter_get(counters, C_TCP_QUERIES), 100);
	cr_assert_eq(counter_get(counters, C_TCP_ACCEPTED), 1);
	stop();
	cr_assert(closes(fd, 100));
	cr_assert_eq(counter_get(counters, C_TCP_CLOSED), 1);
}

Test(tcp, pipelined_queries_are_answered_in_order)
{
	start(ordinary);
	int fd = connect_from("127.0.0.1");
	static uint8_t data[1000 * 64];
	size_t bytes = 0;
	for (uint16_t id = 0; id < 1000; id++) /* more than max_queries_in_flight */
		bytes += framed(data + bytes, id);
	send_all(fd, data, bytes);
	for (uint16_t id = 0; id < 1000; id++)
		expect_answer(fd, id);
	stop();
}

Test(tcp, queries_may_be_cut_anywhere)
{
	start(ordinary);
	uint8_t data[3 * 64];
	size_t bytes = framed(data, 1);
	bytes += framed(data + bytes, 2);
	bytes += framed(data + bytes, 3);
	for (size_t cut = 1; cut < bytes; cut += 3) {
		int fd = connect_from("127.0.0.1");
		send_all(fd, data, cut);
		fixture_sleep_ms(2);
		send_all(fd, data + cut, bytes - cut);
		for (uint16_t id = 1; id <= 3; id++)
			expect_answer(fd, id);
		close(fd);
	}
	int fd = connect_from("127.0.0.1");
	for (size_t i = 0; i < bytes; i++)
		send_all(fd, data + i, 1);
	for (uint16_t id = 1; id <= 3; id++)
		expect_answer(fd, id);
	stop();
}

Test(tcp, a_half_closed_client_gets_its_answers_and_then_the_end)
{
	start(ordinary);
	int fd = connect_from("127.0.0.1");
	uint8_t data[300 * 64];
	size_t bytes = 0;
	for (uint16_t id = 0; id < 300; id++)
		bytes += framed(data + bytes, id);
	send_all(fd, data, bytes);
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	for (uint16_t id = 0; id < 300; id++)
		expect_answer(fd, id);
	cr_assert(closes(fd, PATIENCE_MS));
	fd = connect_from("127.0.0.1");
	send_all(fd, data, 5); /* half of a message can never become whole */
	cr_assert_eq(shutdown(fd, SHUT_WR), 0);
	cr_assert(closes(fd, PATIENCE_MS));
	stop();
}

Test(tcp, what_is_no_dns_closes_the_connection)
{
	start(ordinary);
	static const struct {
		uint8_t data[16];
		size_t bytes;
	} cases[] = { { { 0, 0 }, 2 }, { { 0, 5, 1, 2, 3, 4, 5 }, 7 }, { "\0\013abcdefghijk", 13 } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int fd = connect_from("127.0.0.1");
		uint8_t query[64];
		size_t bytes = framed(query, 5);
		send_all(fd, query, bytes);
		send_all(fd, cases[i].data, cases[i].bytes);
		expect_answer(fd, 5); /* what came before is answered */
		cr_assert(closes(fd, PATIENCE_MS), "case %zu", i);
		close(fd);
	}
	cr_assert_eq(counter_get(counters, C_DROP_SHORT), 3);
	stop();
}

Test(tcp, a_message_of_65535_octets_is_read_whole)
{
	start(ordinary);
	int fd = connect_from("127.0.0.1");
	static uint8_t data[2 + 65535 + 64];
	store_be16(data, 65535);
	fixture_query(data + 2, 77, 77); /* the rest is padding behind the question */
	size_t bytes = 2 + 65535;
	bytes += framed(data + bytes, 78);
	send_all(fd, data, bytes);
	uint8_t head[2], reply[65536];
	receive_all(fd, head, 2);
	receive_all(fd, reply, load_be16(head));
	cr_assert_eq(load_be16(reply), 77);
	cr_assert(reply[2] & 0x80);
	expect_answer(fd, 78);
	stop();
}

Test(tcp, an_idle_connection_is_closed_and_counted)
{
	struct tcp_limits limits = ordinary;
	limits.idle_timeout_ms = 300;
	start(limits);
	int silent = connect_from("127.0.0.1"), talking = connect_from("127.0.0.1");
	for (uint16_t id = 0; id < 6; id++) {
		ask(talking, id);
		fixture_sleep_ms(100);
	}
	cr_assert(closes(silent, 0 + 50));
	cr_assert_eq(counter_get(counters, C_TCP_TIMEOUT), 1);
	ask(talking, 99);
	cr_assert(closes(talking, 1000));
	cr_assert_eq(counter_get(counters, C_TCP_TIMEOUT), 2);
	stop();
}

Test(tcp, octets_that_complete_nothing_prolong_nothing)
{
	struct tcp_limits limits = ordinary;
	limits.message_timeout_ms = 400;
	start(limits);
	int fd = connect_from("127.0.0.1");
	uint8_t query[64];
	size_t bytes = framed(query, 1), i = 0;
	uint64_t begin_ns = clock_mono_ns();
	while (i < bytes - 1 && send(fd, query + i, 1, MSG_NOSIGNAL) == 1 && !closes(fd, 50)) /* 33 octets would take 1.6 s */
		i++;
	uint64_t took_ms = (clock_mono_ns() - begin_ns) / 1000000u;
	cr_assert(took_ms >= 350 && took_ms < 1200, "closed after %lu ms", (unsigned long)took_ms);
	cr_assert_eq(counter_get(counters, C_TCP_TIMEOUT), 1);
	stop();
}

Test(tcp, a_client_has_no_more_connections_than_its_share)
{
	struct tcp_limits limits = ordinary;
	limits.max_per_client = 3;
	start(limits);
	int fd[4];
	for (int i = 0; i < 3; i++)
		ask(fd[i] = connect_from("127.0.0.1"), 1);
	fd[3] = connect_from("127.0.0.1");
	cr_assert(closes(fd[3], PATIENCE_MS));
	cr_assert_eq(counter_get(counters, C_TCP_REFUSED), 1);
	ask(connect_from("127.0.0.2"), 2); /* another client is not concerned */
	close(fd[0]);
	cr_assert(fixture_reaches(counters, C_TCP_CLOSED, 1));
	ask(connect_from("127.0.0.1"), 3);
	ask(fd[1], 4);
	stop();
}

Test(tcp, the_connection_idle_for_longest_makes_room)
{
	struct tcp_limits limits = ordinary;
	limits.max_connections = 3;
	start(limits);
	int fd[3];
	for (int i = 0; i < 3; i++) {
		ask(fd[i] = connect_from("127.0.0.1"), 1);
		fixture_sleep_ms(15);
	}
	ask(fd[0], 2); /* now fd[1] is idle for longest */
	int late = connect_from("127.0.0.2");
	ask(late, 3);
	cr_assert(closes(fd[1], PATIENCE_MS));
	ask(fd[0], 4);
	ask(fd[2], 5);
	cr_assert_eq(counter_get(counters, C_TCP_EVICTED), 1);
	/* Begun messages go after the idle ones. */
	uint8_t query[64];
	size_t bytes = framed(query, 6);
	send_all(fd[0], query, 10);
	fixture_sleep_ms(30);
	ask(connect_from("127.0.0.3"), 7); /* fd[2] or late is idle */
	send_all(fd[0], query + 10, bytes - 10);
	expect_answer(fd[0], 6);
	cr_assert_eq(counter_get(counters, C_TCP_EVICTED), 2);
	stop();
}

/* Sends until the server's patience and the kernel's buffers are full; returns how many queries went out. */
static unsigned flood(int fd)
{
	static uint8_t data[1000 * 64];
	size_t bytes = 0;
	for (uint16_t id = 0; id < 1000; id++)
		bytes += framed(data + bytes, id);
	unsigned sent = 0;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	for (unsigned i = 0; i < 4000 && poll(&p, 1, 200) == 1; i++) {
		size_t done = 0;
		while (done < bytes) {
			ssize_t n = send(fd, data + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (n <= 0 && (errno != EAGAIN || poll(&p, 1, 200) != 1))
				return sent * 1000; /* the last block went out in part */
			done += n > 0 ? (size_t)n : 0;
		}
		sent++;
	}
	return sent * 1000;
}

static int connect_narrow(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	struct sockaddr_in to = fixture_v4("127.0.0.1", fixture_port(listener));
	struct timeval timeout = { .tv_sec = PATIENCE_MS / 1000 };
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

Test(tcp, a_client_that_does_not_read_is_not_read_then_closed, .timeout = 30)
{
	struct tcp_limits limits = ordinary;
	limits.message_timeout_ms = 800;
	start(limits);
	int fd = connect_narrow();
	flood(fd);
	cr_assert(fixture_reaches(counters, C_TCP_STALLED, 1));
	cr_assert_leq(worker->buffer_bytes, TCP_OUT_BYTES + 2 * (TCP_READ_BYTES + 65538), "one connection's buffers are bounded");
	ask(connect_from("127.0.0.1"), 5); /* the others go on */
	cr_assert(fixture_reaches(counters, C_TCP_TIMEOUT, 1));
	cr_assert_eq(counter_get(counters, C_TCP_CLOSED), 1);
	/* libuv gives what was not written back one turn of the loop later. */
	for (unsigned i = 0; i < 1000 && *(volatile size_t *)&worker->buffer_bytes != 0; i++)
		usleep(1000);
	cr_assert_eq(worker->buffer_bytes, 0);
	stop();
}

Test(tcp, a_client_that_reads_late_gets_everything_in_order, .timeout = 30)
{
	start(ordinary);
	int fd = connect_narrow();
	unsigned count = flood(fd);
	cr_assert(fixture_reaches(counters, C_TCP_STALLED, 1));
	for (unsigned i = 0; i < count; i++)
		expect_answer(fd, (uint16_t)(i % 1000));
	cr_assert_eq(counter_get(counters, C_TCP_TIMEOUT), 0);
	stop();
}

Test(tcp, an_idle_connection_owns_no_buffer)
{
	start(ordinary);
	for (int i = 0; i < 50; i++)
		ask(connect_from("127.0.0.1"), 1);
	cr_assert_eq(worker->buffer_bytes, 0);
	cr_assert_lt(sizeof(struct tcp_connection), 512);
	uint8_t query[64];
	framed(query, 1);
	int fd = connect_from("127.0.0.1");
	send_all(fd, query, 10);
	for (int i = 0; i < 200 && worker->buffer_bytes == 0; i++)
		fixture_sleep_ms(5);
	cr_assert_eq(worker->buffer_bytes, TCP_HELD_FIRST_BYTES, "a begun message holds what arrived, not what it announces");
	stop();
}

Test(tcp, buffers_of_all_connections_together_are_bounded, .timeout = 30)
{
	start(ordinary);
	worker->buffer_budget = 4 * TCP_HELD_FIRST_BYTES;
	uint8_t query[64];
	size_t bytes = framed(query, 1);
	int fd[5];
	for (int i = 0; i < 5; i++) {
		fd[i] = connect_from("127.0.0.1");
		send_all(fd[i], query, 10);
		fixture_sleep_ms(30);
	}
	cr_assert(closes(fd[4], PATIENCE_MS));
	cr_assert_eq(counter_get(counters, C_TCP_NO_BUFFER), 1);
	send_all(fd[0], query + 10, bytes - 10);
	expect_answer(fd[0], 1);
	ask(connect_from("127.0.0.1"), 2); /* whole messages need none */
	int narrow = connect_narrow();
	flood(narrow);
	cr_assert(fixture_reaches(counters, C_TCP_NO_BUFFER, 2));
	stop();
}

Test(tcp, the_heart_beats_and_a_new_snapshot_does_not_wait_for_a_query)
{
	start(ordinary);
	ask(connect_from("127.0.0.1"), 1);
	for (int i = 0; i < 20; i++) {
		uint64_t age_ns = clock_mono_ns() - atomic_load(&counters->heartbeat_ns);
		cr_assert_lt(age_ns, 400000000u); /* 40 ms and a busy machine */
		fixture_sleep_ms(7);
	}
	uint64_t begin_ns = clock_mono_ns();
	snapshot_publish(&f.holder, fixture_snapshot());
	cr_assert_lt(clock_mono_ns() - begin_ns, 1000000000u);
	ask(connect_from("127.0.0.1"), 2);
	stop();
	cr_assert_eq(atomic_load(&counters->heartbeat_ns), 0);
}

Test(tcp, bad_arguments_are_refused_and_nothing_is_left_behind)
{
	start(ordinary);
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0);
	int files[] = { 0, fixture_socket(&a, sizeof a, SOCK_DGRAM), socket(AF_INET, SOCK_STREAM, 0) /* does not listen */,
			1000 };
	struct tcp_worker *other;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct tcp_worker_config c = { .fds = &files[i],
					       .fd_count = 1,
					       .snapshots = &f.holder,
					       .counters = &f.counters->block[2],
					       .clients = worker->clients,
					       .limits = ordinary,
					       .cpu = -1 };
		cr_assert_eq(tcp_worker_start(&other, &c), ERR_ARGUMENT, "case %zu", i);
	}
	stop();
}
