/* SPDX-License-Identifier: Apache-2.0 */
/* TCP threads over a real resolver with a scripted forwarder. */
#include "tests/unit/slowpath/resolve/resolve_world.h"

#include <arpa/inet.h>
#include <poll.h>

#include "slowpath/listen/tcp.h"

static struct tcp_worker *worker;
static struct tcp_clients *clients;
static struct counter_block *counters;
static int listener;

static void say(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	reply_add(r, 0, name, "A", 300, "192.0.2.1");
}

static void start(unsigned in_flight)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	world_defaults();
	world_start(2, 0);
	fake_script("slow.example.", say, 300);
	fake_script("example.", say, 20);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(listen(listener, 16), 0);
	counters = &world.counters->block[10];
	cr_assert_eq(tcp_clients_create(&clients, 100, 100), ERR_OK);
	struct tcp_worker_config c = { .fds = &listener,
				       .fd_count = 1,
				       .snapshots = &world.holder,
				       .counters = counters,
				       .service = { .resolve = world.resolve },
				       .clients = clients,
				       .limits = { .max_connections = 100,
						   .max_per_client = 100,
						   .idle_timeout_ms = 1000,
						   .message_timeout_ms = 1000,
						   .max_queries_in_flight = in_flight },
				       .cpu = -1 };
	cr_assert_eq(tcp_worker_start(&worker, &c), ERR_OK);
}

static void setup(void) { start(128); }
static void setup_narrow(void) { start(4); }

static void stop(void)
{
	snapshot_offline();
	tcp_worker_stop(worker);
	cr_assert_eq(tcp_clients_total(clients), 0);
	tcp_clients_destroy(clients);
	world_stop();
	close(listener);
}

static int connected(void)
{
	struct sockaddr_in to;
	socklen_t bytes = sizeof(to);
	struct timeval timeout = { .tv_sec = WORLD_PATIENCE_MS / 1000 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&to, &bytes), 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static size_t framed(uint8_t *out, const char *name, uint16_t id)
{
	size_t bytes = zones_query(out + 2, 510, &(struct zones_ask){ .name = name, .type = RR_A });
	store_be16(out, (uint16_t)bytes);
	store_be16(out + 2, id);
	out[4] |= DNS_RD >> 8;
	return bytes + 2;
}

static void ask(int fd, const char *name, uint16_t id)
{
	uint8_t query[512];
	size_t bytes = framed(query, name, id);
	cr_assert_eq(send(fd, query, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

/* The id of the next answer; -1: the connection ended. */
static int answer_id(int fd)
{
	uint8_t message[4096];
	if (recv(fd, message, 2, MSG_WAITALL) != 2)
		return -1;
	uint16_t bytes = load_be16(message);
	cr_assert_eq(recv(fd, message, bytes, MSG_WAITALL), bytes);
	cr_assert_eq(dns_ancount(message), 1);
	return load_be16(message);
}

Test(tcp_miss, a_miss_is_answered_and_a_hit_does_not_wait_for_it, .init = setup, .fini = stop)
{
	int fd = connected();
	ask(fd, "www.example.", 1);
	cr_assert_eq(answer_id(fd), 1);
	ask(fd, "slow.example.", 2);
	ask(fd, "www.example.", 3);
	ask(fd, "other.example.", 4);
	cr_assert_eq(answer_id(fd), 3, "the hit goes out at once");
	cr_assert_eq(answer_id(fd), 4);
	cr_assert_eq(answer_id(fd), 2);
	close(fd);
}

Test(tcp_miss, as_many_queries_are_under_way_as_may_be_and_the_others_wait, .init = setup_narrow, .fini = stop)
{
	uint8_t query[40 * 64];
	size_t bytes = 0;
	bool seen[40] = { false };
	int fd = connected();
	atomic_store(&fake.is_held, true);
	for (uint16_t i = 0; i < 40; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%u.example.", i);
		bytes += framed(query + bytes, name, i);
	}
	cr_assert_eq(send(fd, query, bytes, 0), (ssize_t)bytes);
	usleep(200000);
	cr_assert_eq(atomic_load(&fake.asked), 4);
	atomic_store(&fake.is_held, false);
	for (unsigned i = 0; i < 40; i++) {
		int id = answer_id(fd);
		cr_assert(id >= 0 && id < 40 && !seen[id]);
		seen[id] = true;
	}
	close(fd);
}

Test(tcp_miss, a_client_that_has_ended_its_side_gets_its_answers, .init = setup, .fini = stop)
{
	int fd = connected();
	ask(fd, "slow.example.", 7);
	shutdown(fd, SHUT_WR);
	cr_assert_eq(answer_id(fd), 7);
	cr_assert_eq(answer_id(fd), -1, "then the connection ends");
	close(fd);
}

Test(tcp_miss, a_connection_that_waits_is_not_idle, .init = setup, .fini = stop)
{
	int fd = connected();
	fake_script("slow.example.", say, 1500);
	ask(fd, "slow.example.", 8);
	cr_assert_eq(answer_id(fd), 8);
	cr_assert_eq(counter_get(counters, C_TCP_TIMEOUT), 0);
	cr_assert_eq(answer_id(fd), -1, "idle from here on");
	cr_assert_eq(counter_get(counters, C_TCP_TIMEOUT), 1);
	close(fd);
}

Test(tcp_miss, connections_that_are_gone_get_nothing, .init = setup, .fini = stop)
{
	for (unsigned i = 0; i < 50; i++) {
		int fd = connected();
		struct linger hard = { .l_onoff = 1 };
		char name[32];
		snprintf(name, sizeof(name), "n%u.slow.example.", i);
		ask(fd, name, (uint16_t)i);
		usleep(2000);
		if (i & 1)
			cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
		close(fd);
	}
	usleep(600000);
	int fd = connected();
	ask(fd, "www.example.", 9);
	cr_assert_eq(answer_id(fd), 9);
	close(fd);
}

Test(tcp_miss, the_thread_may_end_before_the_resolver, .init = setup)
{
	int fd = connected();
	atomic_store(&fake.is_held, true);
	for (unsigned i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%u.example.", i);
		ask(fd, name, (uint16_t)i);
	}
	usleep(100000);
	stop();
	cr_assert_eq(answer_id(fd), -1);
	close(fd);
}
