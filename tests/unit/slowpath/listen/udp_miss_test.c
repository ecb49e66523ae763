/* SPDX-License-Identifier: Apache-2.0 */
/* UDP threads over a real resolver with a scripted forwarder. */
#include "tests/unit/slowpath/resolve/resolve_world.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "slowpath/listen/udp.h"

static struct udp_worker *worker;
static int server;
static unsigned records = 1;

static void say(struct reply *r, const char *name, uint16_t type)
{
	uint8_t data[4] = { 192, 0, 2, 0 };
	reply_init(r, name, type, DNS_RA);
	for (unsigned i = 0; i < records; i++) {
		data[3] = (uint8_t)i;
		reply_add_wire(r, 0, name, type, RR_CLASS_IN, 300, data, 4);
	}
}

static void setup(void)
{
	world_defaults();
	world.config.limits.question_time_ms = 300;
	world_start(2, 0);
	fake_script("example.", say, 20);
}

static void serve(const void *address, socklen_t bytes)
{
	struct udp_worker_config c = { .fd_count = 1,
				       .fds = &server,
				       .snapshots = &world.holder,
				       .counters = &world.counters->block[10],
				       .service = { .resolve = world.resolve, .marks = cache_reader_marks(world.reader, 5) },
				       .cpu = -1 };
	server = socket(((const struct sockaddr *)address)->sa_family, SOCK_DGRAM, 0);
	cr_assert_eq(bind(server, address, bytes), 0);
	cr_assert_eq(udp_worker_start(&worker, &c), ERR_OK);
}

static void stop(void)
{
	snapshot_offline(); /* the threads' grace periods do not wait for the test */
	udp_worker_stop(worker);
	world_stop();
	close(server);
}

/* A client that takes replies from the address that it asks only. */
static int client_of(const void *address, socklen_t bytes)
{
	struct sockaddr_storage to;
	socklen_t length = sizeof(to);
	memcpy(&to, address, bytes);
	struct sockaddr_storage bound;
	cr_assert_eq(getsockname(server, (struct sockaddr *)&bound, &length), 0);
	((struct sockaddr_in *)&to)->sin_port = ((struct sockaddr_in *)&bound)->sin_port; /* the same place in both families */
	int fd = socket(to.ss_family, SOCK_DGRAM, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, bytes), 0);
	return fd;
}

static ssize_t ask(int fd, const char *name, uint16_t payload, uint8_t *reply, size_t max)
{
	uint8_t query[512];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t bytes = zones_query(query, sizeof(query),
				   &(struct zones_ask){ .name = name, .type = RR_A, .has_edns = true, .payload_bytes = payload });
	store_be16(query, 4711);
	query[2] |= DNS_RD >> 8;
	cr_assert_eq(send(fd, query, bytes, 0), (ssize_t)bytes);
	if (poll(&p, 1, (int)WORLD_PATIENCE_MS) != 1)
		return 0;
	ssize_t n = recv(fd, reply, max, 0);
	cr_assert(n >= DNS_HEADER_BYTES && load_be16(reply) == 4711);
	return n;
}

Test(udp_miss, answers_come_from_the_address_that_was_asked, .init = setup, .fini = stop)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000305) };
	uint8_t reply[4096];
	serve(&any, sizeof(any));
	int fd = client_of(&to, sizeof(to));
	for (unsigned i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof(name), "n%u.example.", i % 10);
		ssize_t n = ask(fd, name, 1232, reply, sizeof(reply));
		cr_assert_gt(n, 0, "query %u", i);
		char *text = zones_message_text(reply, (size_t)n);
		cr_assert(strstr(text, "300 A 192.0.2.0") || strstr(text, "299 A 192.0.2.0"), "%s", text);
		free(text);
	}
	cr_assert_eq(atomic_load(&fake.asked), 10);
	cr_assert_eq(counter_get(&world.counters->block[10], C_MISSES), 10);
	cr_assert_eq(counter_get(&world.counters->block[10], C_CACHE_HITS), 10);
	close(fd);
}

Test(udp_miss, ipv6_and_one_address, .init = setup, .fini = stop)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	uint8_t reply[4096];
	serve(&v6, sizeof(v6));
	int fd = client_of(&v6, sizeof(v6));
	cr_assert_gt(ask(fd, "www.example.", 1232, reply, sizeof(reply)), 0);
	close(fd);
}

Test(udp_miss, an_answer_above_the_mtu_becomes_a_truncated_one, .fini = stop)
{
	uint8_t reply[4096];
	struct ifreq r = { .ifr_name = "lo", .ifr_mtu = 1400 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cr_assert_eq(unshare(CLONE_NEWNET), 0, "needs root");
	int fd = socket(AF_INET, SOCK_DGRAM, 0), probe = IP_PMTUDISC_PROBE;
	cr_assert_eq(ioctl(fd, SIOCSIFMTU, &r), 0);
	r.ifr_flags = IFF_UP;
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
	setup();
	struct snapshot *s = world_snapshot(NULL, 0);
	s->settings.udp_payload_bytes = 4096;
	snapshot_offline();
	snapshot_publish(&world.holder, s);
	snapshot_online();
	records = 100;
	serve(&a, sizeof(a));
	cr_assert_eq(setsockopt(server, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)), 0);
	fd = client_of(&a, sizeof(a));
	ssize_t n = ask(fd, "www.example.", 4096, reply, sizeof(reply));
	cr_assert_gt(n, 0);
	cr_assert(reply[2] & 2, "TC");
	cr_assert_eq(dns_ancount(reply), 0);
	cr_assert_eq(dns_arcount(reply), 1);
	close(fd);
}

Test(udp_miss, who_asks_too_much_gets_nothing, .init = setup, .fini = stop)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint8_t query[512], reply[4096];
	atomic_store(&fake.is_held, true);
	serve(&a, sizeof(a));
	int fd = client_of(&a, sizeof(a));
	for (unsigned i = 0; i < 2500; i++) {
		size_t bytes = zones_query(query, sizeof(query), &(struct zones_ask){ .name = "www.example.", .type = RR_A });
		query[2] |= DNS_RD >> 8;
		cr_assert_eq(send(fd, query, bytes, 0), (ssize_t)bytes);
		if (i % 50 == 0)
			usleep(2000);
	}
	unsigned answers = 0;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	while (poll(&p, 1, 1000) == 1 && recv(fd, reply, sizeof(reply), 0) > 0)
		answers++;
	cr_assert_leq(answers, 2000); /* the limit of a prefix */
	cr_assert_gt(world_counter(C_RESOLVE_LIMIT_CLIENT), 0);
	close(fd);
}
