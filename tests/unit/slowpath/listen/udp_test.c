/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "slowpath/listen/udp.c"
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>

static struct fixture f;
static struct udp_worker *worker;

static void start(const int *fds, size_t count)
{
	struct udp_worker_config c = {
		.fds = fds, .fd_count = count, .snapshots = &f.holder, .counters = &f.counters->block[3], .cpu = -1
	};
	cr_assert_eq(udp_worker_start(&worker, &c), ERR_OK);
}

static int client_of(const void *address, socklen_t bytes)
{
	int fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_DGRAM, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, address, bytes), 0);
	return fd;
}

/* Connected clients take replies only from the address that they asked. */
static void ask(int client, uint16_t id)
{
	uint8_t query[64], reply[4096];
	size_t bytes = fixture_query(query, id, id);
	cr_assert_eq(send(client, query, bytes, 0), (ssize_t)bytes);
	cr_assert(fixture_readable(client, PATIENCE_MS), "no reply");
	ssize_t n = recv(client, reply, sizeof reply, 0);
	cr_assert(fixture_is_refusal(reply, n, query, bytes));
}

Test(udp, answers_on_one_specific_address_of_each_family)
{
	fixture_init(&f);
	struct sockaddr_in v4 = fixture_v4("127.0.0.1", 0);
	struct sockaddr_in6 v6 = fixture_v6("::1", 0);
	struct {
		const void *address;
		socklen_t bytes;
	} cases[] = { { &v4, sizeof v4 }, { &v6, sizeof v6 } };
	for (size_t i = 0; i < 2; i++) {
		int fd = fixture_socket(cases[i].address, cases[i].bytes, SOCK_DGRAM);
		struct sockaddr_storage bound;
		socklen_t bytes = sizeof bound;
		cr_assert_eq(getsockname(fd, (struct sockaddr *)&bound, &bytes), 0);
		start(&fd, 1);
		int client = client_of(&bound, bytes);
		for (uint16_t id = 1; id < 50; id++)
			ask(client, id);
		udp_worker_stop(worker);
		close(client);
		close(fd);
	}
	cr_assert_eq(counter_get(&f.counters->block[3], C_UDP_RX), 98);
	cr_assert_eq(counter_get(&f.counters->block[3], C_UDP_TX), 98);
	cr_assert_eq(counter_get(&f.counters->block[3], C_REFUSED), 98);
	cr_assert_eq(atomic_load(&f.counters->block[3].role), COUNTER_UNUSED);
}

Test(udp, a_wildcard_socket_replies_from_the_address_that_was_asked)
{
	fixture_init(&f);
	struct sockaddr_in any4 = fixture_v4("0.0.0.0", 0);
	struct sockaddr_in6 any6 = fixture_v6("::", 0);
	int fds[2] = { fixture_socket(&any4, sizeof any4, SOCK_DGRAM), fixture_socket(&any6, sizeof any6, SOCK_DGRAM) };
	start(fds, 2);
	const char *addresses[] = { "127.0.0.1", "127.0.0.2", "127.7.7.7" };
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		struct sockaddr_in to = fixture_v4(addresses[i], fixture_port(fds[0]));
		ask(client_of(&to, sizeof to), (uint16_t)i);
	}
	struct sockaddr_in6 to6 = fixture_v6("::1", fixture_port(fds[1]));
	ask(client_of(&to6, sizeof to6), 9);
	udp_worker_stop(worker);
}

Test(udp, many_sockets_of_one_worker_are_all_served)
{
	fixture_init(&f);
	int fds[40];
	for (unsigned i = 0; i < ARRAY_LEN(fds); i++) {
		char text[32];
		snprintf(text, sizeof text, "127.0.1.%u", i + 1);
		struct sockaddr_in a = fixture_v4(text, 0);
		fds[i] = fixture_socket(&a, sizeof a, SOCK_DGRAM);
	}
	start(fds, ARRAY_LEN(fds));
	for (unsigned i = 0; i < ARRAY_LEN(fds); i++) {
		struct sockaddr_in a;
		socklen_t bytes = sizeof a;
		cr_assert_eq(getsockname(fds[i], (struct sockaddr *)&a, &bytes), 0);
		int client = client_of(&a, sizeof a);
		ask(client, (uint16_t)i);
		close(client);
	}
	udp_worker_stop(worker);
}

Test(udp, what_waits_in_the_socket_before_the_start_is_answered)
{
	fixture_init(&f);
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0);
	int fd = fixture_socket(&a, sizeof a, SOCK_DGRAM), buffer = 1 << 20;
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer), 0);
	a.sin_port = htons((uint16_t)fixture_port(fd));
	int client = client_of(&a, sizeof a);
	uint8_t query[64], reply[512];
	for (uint16_t id = 0; id < 200; id++) /* three full batches and a rest */
		cr_assert_gt(send(client, query, fixture_query(query, id, id), 0), 0);
	start(&fd, 1);
	bool seen[200] = { false };
	for (unsigned i = 0; i < 200; i++) {
		cr_assert(fixture_readable(client, PATIENCE_MS), "reply %u is missing", i);
		ssize_t n = recv(client, reply, sizeof reply, 0);
		uint16_t id = load_be16(reply);
		size_t bytes = fixture_query(query, id, id);
		cr_assert(id < 200 && !seen[id] && fixture_is_refusal(reply, n, query, bytes));
		seen[id] = true;
	}
	udp_worker_stop(worker);
}

Test(udp, the_heart_beats_while_nothing_comes_and_a_new_snapshot_does_not_wait_for_a_query)
{
	fixture_init(&f);
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0);
	int one[] = { fixture_socket(&a, sizeof a, SOCK_DGRAM) };
	int two[] = { fixture_socket(&a, sizeof a, SOCK_DGRAM), fixture_socket(&a, sizeof a, SOCK_DGRAM) };
	for (int turn = 0; turn < 2; turn++) {
		start(turn ? two : one, turn ? 2 : 1);
		fixture_sleep_ms(100);
		for (int i = 0; i < 20; i++) {
			uint64_t age_ns = clock_mono_ns() - atomic_load(&f.counters->block[3].heartbeat_ns);
			cr_assert_lt(age_ns, 400000000u, "heartbeat is %lu ns old",
				     (unsigned long)age_ns); /* 40 ms and a busy machine */
			fixture_sleep_ms(7);
		}
		cr_assert_eq(atomic_load(&f.counters->block[3].role), COUNTER_UDP);
		uint64_t begin_ns = clock_mono_ns();
		snapshot_publish(&f.holder, fixture_snapshot());
		cr_assert_lt(clock_mono_ns() - begin_ns, 1000000000u);
		udp_worker_stop(worker);
		cr_assert_eq(atomic_load(&f.counters->block[3].heartbeat_ns), 0);
	}
}

/* A worker without a thread, whose batch holds `count` responses to `to`. */
static struct udp_worker *worker_with(int fd, const struct sockaddr_in *to, unsigned count, size_t bytes)
{
	static struct udp_batch batch;
	struct udp_worker *w = calloc(1, sizeof *w + sizeof w->socket[0]);
	cr_assert_not_null(w);
	udp_batch_init(w->batch = &batch);
	w->thread.counters = &f.counters->block[3];
	w->socket[0] = (struct udp_socket){ .fd = fd, .family = 4 };
	for (unsigned i = 0; i < count; i++) {
		size_t question = fixture_query(batch.buffer[i], (uint16_t)i, i);
		memset(batch.buffer[i] + question, 'x', UDP_BUFFER_BYTES - question);
		store_be16(batch.buffer[i] + 6, 7); /* records */
		batch.peer[i].v4 = *to;
		batch.tx_iov[i] = (struct iovec){ batch.buffer[i], bytes };
		batch.tx[i].msg_hdr.msg_name = &batch.peer[i];
		batch.tx[i].msg_hdr.msg_namelen = sizeof *to;
	}
	return w;
}

Test(udp, a_message_that_cannot_be_sent_is_counted_and_the_others_go_on)
{
	fixture_init(&f);
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0), to;
	socklen_t bytes = sizeof to;
	int fd = fixture_socket(&a, sizeof a, SOCK_DGRAM), receiver = fixture_socket(&a, sizeof a, SOCK_DGRAM);
	cr_assert_eq(getsockname(receiver, (struct sockaddr *)&to, &bytes), 0);
	struct udp_worker *w = worker_with(fd, &to, 5, 100);
	unsigned bad[] = { 0, 2, 3 };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		w->batch->peer[bad[i]].v4.sin_addr.s_addr = htonl(INADDR_BROADCAST); /* EACCES */
	send_all(w, &w->socket[0], 5);
	cr_assert_eq(counter_get(w->thread.counters, C_UDP_TX), 2);
	cr_assert_eq(counter_get(w->thread.counters, C_UDP_TX_ERROR), 3);
	uint8_t got[200];
	cr_assert_eq(recv(receiver, got, sizeof got, MSG_DONTWAIT), 100);
	cr_assert_eq(load_be16(got), 1);
	cr_assert_eq(recv(receiver, got, sizeof got, MSG_DONTWAIT), 100);
	cr_assert_eq(load_be16(got), 4);
	free(w);
}

static void loopback_with_mtu(int mtu)
{
	cr_assert_eq(unshare(CLONE_NEWNET), 0, "needs root");
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = { .ifr_name = "lo" };
	r.ifr_mtu = mtu;
	cr_assert_eq(ioctl(fd, SIOCSIFMTU, &r), 0);
	r.ifr_flags = IFF_UP;
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

Test(udp, an_answer_above_the_mtu_becomes_a_truncated_one_instead_of_fragments)
{
	loopback_with_mtu(1400);
	fixture_init(&f);
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0), to;
	socklen_t bytes = sizeof to;
	int fd = fixture_socket(&a, sizeof a, SOCK_DGRAM), receiver = fixture_socket(&a, sizeof a, SOCK_DGRAM),
	    probe = IP_PMTUDISC_PROBE;
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe), 0);
	cr_assert_eq(getsockname(receiver, (struct sockaddr *)&to, &bytes), 0);
	struct udp_worker *w = worker_with(fd, &to, 4, 3000);
	w->batch->tx_iov[1].iov_len = w->batch->tx_iov[3].iov_len = 1372; /* exactly the MTU */
	send_all(w, &w->socket[0], 4);
	cr_assert_eq(counter_get(w->thread.counters, C_UDP_TX), 4);
	cr_assert_eq(counter_get(w->thread.counters, C_UDP_TX_ERROR), 0);
	uint8_t got[4096], query[64];
	for (uint16_t i = 0; i < 4; i++) {
		ssize_t n = recv(receiver, got, sizeof got, MSG_DONTWAIT);
		size_t question = fixture_query(query, i, i);
		cr_assert_eq(load_be16(got), i);
		cr_assert_eq(n, i % 2 ? 1372 : (ssize_t)question);
		cr_assert_eq((got[2] & 2) != 0, i % 2 == 0, "TC");
		cr_assert_eq(load_be16(got + 6), i % 2 ? 7 : 0);
	}
	free(w);
}

Test(udp, other_descriptors_are_refused)
{
	fixture_init(&f);
	struct sockaddr_in a = fixture_v4("127.0.0.1", 0);
	int files[] = { 0, fixture_socket(&a, sizeof a, SOCK_STREAM), socket(AF_INET, SOCK_DGRAM, 0) /* not bound */, 1000 };
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct udp_worker_config c = {
			.fds = &files[i], .fd_count = 1, .snapshots = &f.holder, .counters = &f.counters->block[3], .cpu = -1
		};
		cr_assert_eq(udp_worker_start(&worker, &c), ERR_ARGUMENT, "case %zu", i);
	}
}
