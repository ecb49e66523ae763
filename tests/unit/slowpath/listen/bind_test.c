/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "slowpath/listen/bind.h"
#include "slowpath/listen/port_holder.h"
#include <dirent.h>

static struct config_address address(const char *text, uint16_t port)
{
	struct config_address a = { .family = strchr(text, ':') ? 6 : 4, .port = port };
	cr_assert_eq(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, text, a.address), 1);
	snprintf(a.text, sizeof a.text, "%s port %u", text, port);
	return a;
}

/* A port that nobody has now, for both kinds and families. */
static uint16_t free_port(void)
{
	struct sockaddr_in6 any = fixture_v6("::", 0);
	int off = 0, fd = socket(AF_INET6, SOCK_STREAM, 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&any, sizeof any), 0);
	uint16_t port = (uint16_t)fixture_port(fd);
	close(fd);
	return port;
}

static unsigned open_files(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int option_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t bytes = sizeof value;
	cr_assert_eq(getsockopt(fd, level, option, &value, &bytes), 0);
	return value;
}

Test(bind, each_worker_gets_a_socket_per_address_and_kind)
{
	uint16_t port = free_port();
	struct config_address a[] = { address("127.0.0.1", port), address("::1", port) };
	struct bind_request request = { .addresses = a, .address_count = 2, .workers = 3, .udp_receive_buffer = 1 << 20 };
	struct bind_set set;
	struct bind_error error;
	unsigned before = open_files();
	cr_assert_eq(bind_sockets(&set, &request, &error), ERR_OK, "%s", error.text);
	cr_assert_eq(set.count, 12);
	unsigned seen[2][3] = { 0 };
	for (size_t i = 0; i < set.count; i++) {
		const struct bind_socket *s = &set.sockets[i];
		seen[s->kind][s->worker]++;
		cr_assert_eq(fixture_port(s->fd), port);
		cr_assert_eq(option_of(s->fd, SOL_SOCKET, SO_TYPE), s->kind == LINK_LISTEN_UDP ? SOCK_DGRAM : SOCK_STREAM);
		cr_assert_eq(option_of(s->fd, SOL_SOCKET, SO_ACCEPTCONN), s->kind == LINK_LISTEN_TCP);
		bool is_v6 = option_of(s->fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6;
		cr_assert_str_eq(s->text, a[is_v6].text);
		if (s->kind == LINK_LISTEN_UDP)
			cr_assert_eq(is_v6 ? option_of(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER)
					   : option_of(s->fd, IPPROTO_IP, IP_MTU_DISCOVER),
				     is_v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE);
	}
	for (int kind = 0; kind < 2; kind++) {
		for (int w = 0; w < 3; w++)
			cr_assert_eq(seen[kind][w], 2);
	}
	cr_assert_geq(set.udp_receive_buffer, 1 << 19);
	bind_set_fini(&set);
	cr_assert_eq(open_files(), before);
}

Test(bind, a_wildcard_and_an_address_of_it_and_both_families_go_together)
{
	uint16_t port = free_port();
	struct config_address a[] = { address("0.0.0.0", port), address("127.0.0.1", port), address("::", port) };
	struct bind_request request = { .addresses = a, .address_count = 3, .workers = 2, .udp_receive_buffer = 65536 };
	struct bind_set set;
	struct bind_error error;
	cr_assert_eq(bind_sockets(&set, &request, &error), ERR_OK, "%s", error.text);
	cr_assert_eq(set.count, 12);
	/* Where a packet went to is noted from the start, and only where the address does not say it. */
	for (size_t i = 0; i < set.count; i++) {
		const struct bind_socket *s = &set.sockets[i];
		if (s->kind != LINK_LISTEN_UDP)
			continue;
		bool is_v6 = option_of(s->fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6;
		int notes = is_v6 ? option_of(s->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) : option_of(s->fd, IPPROTO_IP, IP_PKTINFO);
		cr_assert_eq(notes, strcmp(s->text, a[1].text) != 0, "%s", s->text);
	}
	bind_set_fini(&set);
}

Test(bind, an_address_that_is_not_here_yet_is_bound_anyway)
{
	uint16_t port = free_port();
	struct config_address a[] = { address("192.0.2.77", port), address("2001:db8::77", port) };
	struct bind_request request = { .addresses = a, .address_count = 2, .workers = 1, .udp_receive_buffer = 65536 };
	struct bind_set set;
	struct bind_error error;
	cr_assert_eq(bind_sockets(&set, &request, &error), ERR_OK, "%s", error.text);
	bind_set_fini(&set);
}

/* The other holder shares the port as we would: it is refused all the same, by name. */
Test(bind, a_port_that_somebody_holds_is_refused_and_the_holder_named)
{
	static const struct {
		const char *theirs;
		int type;
		const char *ours;
		bool is_conflict;
	} cases[] = {
		{ "127.0.0.1", SOCK_DGRAM, "127.0.0.1", true },	 { "127.0.0.1", SOCK_STREAM, "127.0.0.1", true },
		{ "0.0.0.0", SOCK_DGRAM, "127.0.0.1", true },	 { "127.0.0.1", SOCK_STREAM, "0.0.0.0", true },
		{ "127.0.0.2", SOCK_DGRAM, "127.0.0.1", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint16_t port = free_port();
		struct sockaddr_in theirs = fixture_v4(cases[i].theirs, port);
		int fd = socket(AF_INET, cases[i].type, 0), on = 1;
		cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
		cr_assert_eq(bind(fd, (struct sockaddr *)&theirs, sizeof theirs), 0);
		if (cases[i].type == SOCK_STREAM)
			cr_assert_eq(listen(fd, 5), 0);
		struct config_address a[] = { address("127.0.0.9", port), address(cases[i].ours, port) };
		struct bind_request request = { .addresses = a, .address_count = 2, .workers = 2, .udp_receive_buffer = 65536 };
		struct bind_set set;
		struct bind_error error;
		unsigned before = open_files();
		enum err err = bind_sockets(&set, &request, &error);
		cr_assert_eq(err, cases[i].is_conflict ? ERR_BUSY : ERR_OK, "case %zu: %s", i, error.text);
		if (cases[i].is_conflict) {
			char me[32];
			snprintf(me, sizeof me, "(pid %d)", getpid());
			/* The wildcard conflicts with the first address already. */
			cr_assert_eq(error.errno_value, EADDRINUSE);
			cr_assert_eq(error.kind, cases[i].type == SOCK_DGRAM ? LINK_LISTEN_UDP : LINK_LISTEN_TCP);
			cr_assert_not_null(strstr(error.text, me), "%s", error.text);
			cr_assert_not_null(strstr(error.text, error.address->text), "%s", error.text);
			cr_assert_eq(open_files(), before, "sockets were left open");
		} else {
			bind_set_fini(&set);
		}
		close(fd);
	}
}

Test(bind, a_past_connection_does_not_hold_the_port)
{
	uint16_t port = free_port();
	struct config_address a = address("127.0.0.1", port);
	struct bind_request request = { .addresses = &a, .address_count = 1, .workers = 1, .udp_receive_buffer = 65536 };
	struct bind_set set;
	struct bind_error error;
	for (int turn = 0; turn < 2; turn++) {
		cr_assert_eq(bind_sockets(&set, &request, &error), ERR_OK, "%s", error.text);
		int listener = set.sockets[0].kind == LINK_LISTEN_TCP ? set.sockets[0].fd : set.sockets[1].fd;
		struct sockaddr_in to = fixture_v4("127.0.0.1", port);
		int client = socket(AF_INET, SOCK_STREAM, 0);
		cr_assert_eq(connect(client, (struct sockaddr *)&to, sizeof to), 0);
		int accepted = accept(listener, NULL, NULL);
		close(accepted); /* the server closes first: TIME_WAIT is on its side */
		fixture_sleep_ms(20);
		close(client);
		bind_set_fini(&set);
	}
}

Test(port_holder, nobody_is_found_on_a_free_port)
{
	char text[100];
	uint8_t v4[4] = { 127, 0, 0, 1 };
	cr_assert(!port_holder_find(text, sizeof text, true, 4, v4, free_port()));
	cr_assert(!port_holder_find(text, sizeof text, false, 4, v4, free_port()));
}

/* A socket that is dual-stack holds IPv4 too, but stands in the IPv6 table. */
Test(port_holder, a_dual_stack_socket_is_found_for_ipv4)
{
	struct sockaddr_in6 any = fixture_v6("::", 0);
	int off = 0, fd = socket(AF_INET6, SOCK_DGRAM, 0);
	cr_assert_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&any, sizeof any), 0);
	char text[100];
	uint8_t v4[4] = { 127, 0, 0, 1 };
	cr_assert(port_holder_find(text, sizeof text, true, 4, v4, (uint16_t)fixture_port(fd)));
	cr_assert_not_null(strstr(text, "pid"));
}
