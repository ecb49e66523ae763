/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "slowpath/listen/bind.h"
#include "slowpath/listen/listen.h"

static struct fixture f;
static const struct tcp_limits limits = {
	.max_connections = 10, .max_per_client = 10, .idle_timeout_ms = 1000, .max_queries_in_flight = 8
};

static struct listen_config config_for(const struct listen_socket *sockets, size_t count)
{
	return (struct listen_config){ .sockets = sockets,
				       .socket_count = count,
				       .snapshots = &f.holder,
				       .counters = f.counters,
				       .first_block = 2,
				       .tcp = limits };
}

static void ask(int type, unsigned port, uint16_t id)
{
	struct sockaddr_in to = fixture_v4("127.0.0.1", port);
	int fd = socket(AF_INET, type, 0);
	uint8_t query[64], reply[512];
	size_t bytes = fixture_query(query + 2, id, id), skip = type == SOCK_DGRAM ? 2 : 0;
	store_be16(query, (uint16_t)bytes);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	cr_assert_eq(send(fd, query + skip, bytes + 2 - skip, 0), (ssize_t)(bytes + 2 - skip));
	cr_assert(fixture_readable(fd, PATIENCE_MS), "no reply");
	ssize_t n = recv(fd, reply, sizeof reply, 0);
	cr_assert(fixture_is_refusal(reply + 2 - skip, n - 2 + (ssize_t)skip, query + 2, bytes));
	close(fd);
}

Test(listen, workers_serve_both_kinds_and_a_successor_takes_the_same_sockets)
{
	fixture_init(&f);
	struct sockaddr_in any = fixture_v4("127.0.0.1", 0);
	int probe = fixture_socket(&any, sizeof any, SOCK_STREAM);
	struct config_address a = {
		.family = 4, .address = { 127, 0, 0, 1 }, .port = (uint16_t)fixture_port(probe), .text = "127.0.0.1"
	};
	close(probe);
	struct bind_request request = { .addresses = &a, .address_count = 1, .workers = 3, .udp_receive_buffer = 1 << 20 };
	struct bind_set set;
	struct bind_error error;
	cr_assert_eq(bind_sockets(&set, &request, &error), ERR_OK, "%s", error.text);
	struct listen_socket sockets[6];
	for (size_t i = 0; i < 6; i++)
		sockets[i] = (struct listen_socket){ .fd = set.sockets[i].fd,
						     .kind = set.sockets[i].kind,
						     .worker = set.sockets[i].worker };
	cr_assert_eq(listen_blocks(sockets, 6), 6);
	for (int turn = 0; turn < 2; turn++) {
		struct listen *l;
		struct listen_config config = config_for(sockets, 6);
		cr_assert_eq(listen_start(&l, &config), ERR_OK);
		for (uint16_t id = 0; id < 60; id++) /* new ports: the kernel spreads them over the workers */
			ask(id % 2 ? SOCK_DGRAM : SOCK_STREAM, a.port, id);
		cr_assert_eq(atomic_load(&f.counters->block[2].role), COUNTER_UDP);
		cr_assert_eq(atomic_load(&f.counters->block[7].role), COUNTER_TCP);
		listen_stop(l);
	}
	for (unsigned block = 2; block < 8; block++)
		cr_assert_gt(counter_get(&f.counters->block[block], C_QUERIES), 0, "block %u", block);
	bind_set_fini(&set);
}

Test(listen, what_cannot_work_is_refused)
{
	fixture_init(&f);
	struct sockaddr_in any = fixture_v4("127.0.0.1", 0);
	int udp = fixture_socket(&any, sizeof any, SOCK_DGRAM), tcp = fixture_socket(&any, sizeof any, SOCK_STREAM);
	struct listen_socket cases[][2] = {
		{ { udp, LINK_LISTEN_UDP, 0 }, { udp, LINK_LISTEN_TCP, 0 } },		       /* the wrong kind */
		{ { udp, LINK_LISTEN_UDP, 0 }, { tcp, LINK_LISTEN_TCP, LISTEN_MAX_WORKERS } }, /* too many workers */
		{ { udp, LINK_LISTEN_UDP, 0 }, { tcp, LINK_LISTEN_TCP, UINT32_MAX } },
		{ { udp, LINK_LISTEN_UDP, 0 }, { -1, LINK_LISTEN_TCP, 1 } },
	};
	struct listen *l;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct listen_config config = config_for(cases[i], 2);
		cr_assert_eq(listen_start(&l, &config), ERR_ARGUMENT, "case %zu", i);
	}
	struct listen_socket good[] = { { udp, LINK_LISTEN_UDP, 0 }, { tcp, LINK_LISTEN_TCP, 0 } };
	struct listen_config config = config_for(good, 2);
	config.first_block = COUNTER_MAX_THREADS - 1;
	cr_assert_eq(listen_start(&l, &config), ERR_ARGUMENT);
	static struct listen_socket many[LISTEN_MAX_SOCKETS + 1];
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = good[0];
	config = config_for(many, ARRAY_LEN(many));
	cr_assert_eq(listen_start(&l, &config), ERR_ARGUMENT);
	listen_stop(NULL);
}
