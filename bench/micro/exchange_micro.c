/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_micro: one resolver worker's exchanges over UDP against a responder in a thread of its own, on another CPU.
 *   exchange_micro exchange WINDOW COUNT   exchanges alone (id, port, matching), WINDOW of them at a time
 *   exchange_micro forward WINDOW COUNT    with forwarding on top: letter case, cookies, timers, estimates
 * Prints exchanges per second and the worker's CPU time for each, its system calls included. */
#include "base/bytes.h"
#include "base/clock.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/forward.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH 64
#define TIMEOUT_NS 2000000000ull

static const struct exchange_limits limits = { .outstanding = 100000,
					       .outstanding_per_server = 100000,
					       .udp_sockets = 2048,
					       .connections = 16,
					       .connections_per_server = 4,
					       .idle_ns = TIMEOUT_NS };
static struct exchanger *exchanger;
static struct forwarder *forwarder;
static struct exchange_server server;
static uv_loop_t loop;
static unsigned long long begun, ended, failed, wanted;
static bool is_forward;

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof set, &set);
}

/* Queries back with QR and RA set. */
static void *respond(void *user)
{
	static uint8_t octets[BATCH][512];
	static struct sockaddr_storage from[BATCH];
	struct mmsghdr m[BATCH] = { 0 };
	struct iovec iov[BATCH];
	int fd = *(int *)user;
	pin(1);
	for (;;) {
		for (int i = 0; i < BATCH; i++) {
			iov[i] = (struct iovec){ octets[i], sizeof octets[i] };
			m[i].msg_hdr = (struct msghdr){
				.msg_name = &from[i], .msg_namelen = sizeof from[i], .msg_iov = &iov[i], .msg_iovlen = 1
			};
		}
		int n = recvmmsg(fd, m, BATCH, MSG_WAITFORONE, NULL);
		for (int i = 0; i < n; i++) {
			octets[i][2] |= 0x80;
			octets[i][3] |= 0x80;
			iov[i].iov_len = m[i].msg_len;
		}
		for (int done = 0; done < n;) {
			int sent = sendmmsg(fd, m + done, (unsigned)(n - done), 0);
			done += sent > 0 ? sent : 1;
		}
	}
	return NULL;
}

static void begin(void);

static void note(bool is_reply)
{
	ended++;
	failed += !is_reply;
	if (begun < wanted)
		begin();
	else if (ended == wanted)
		uv_stop(&loop);
}

static void on_exchange(void *user, const struct exchange_outcome *o)
{
	(void)user;
	note(o->result == EXCHANGE_REPLY);
}

static void on_forward(void *user, const struct forward_outcome *o)
{
	(void)user;
	note(o->result == FORWARD_REPLY);
}

static void begin(void)
{
	uint8_t name[32];
	enum exchange_result result;
	char label[16];
	int n = snprintf(label, sizeof label, "n%llu", begun++);
	name[0] = (uint8_t)n;
	memcpy(name + 1, label, (size_t)n);
	memcpy(name + 1 + n, "\7example\4test", 14);
	if (is_forward) {
		struct forward_question q = {
			.name = name, .name_bytes = (uint8_t)(n + 15), .type = RR_A, .deadline_ns = clock_mono_ns() + TIMEOUT_NS
		};
		if (!forward_ask(forwarder, &q, on_forward, NULL))
			fail("forward_ask");
		return;
	}
	struct exchange_request r = { .server = &server,
				      .name = name,
				      .name_bytes = (uint8_t)(n + 15),
				      .type = RR_A,
				      .is_rd = true,
				      .is_edns = true,
				      .is_0x20 = true,
				      .udp_payload_bytes = 1232,
				      .timeout_ns = TIMEOUT_NS };
	if (!exchange_start(exchanger, &r, on_exchange, NULL, &result))
		fail("exchange_start");
}

static double cpu_s(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) + (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t bytes = sizeof a;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 16 << 20;
	pthread_t thread;
	if (argc != 4)
		fail("usage: exchange_micro exchange|forward WINDOW COUNT");
	is_forward = strcmp(argv[1], "forward") == 0;
	unsigned window = (unsigned)atoi(argv[2]);
	wanted = strtoull(argv[3], NULL, 10);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	if (bind(fd, (void *)&a, sizeof a) < 0 || getsockname(fd, (void *)&a, &bytes) < 0 ||
	    pthread_create(&thread, NULL, respond, &fd) != 0)
		fail("no responder");
	pin(0);
	memcpy(&server.address, &a, sizeof a);
	server.address_bytes = sizeof a;
	server.text = "responder";
	struct config_upstream to = { .address = { .family = 4, .port = ntohs(a.sin_port), .address = { 127, 0, 0, 1 } } };
	struct config_forward zone = {
		.zone = { .name = (uint8_t[]){ 0 }, .name_bytes = 1 }, .to = &to, .count = 1, .strategy = STRATEGY_ORDERED
	};
	struct config config = { .forward = &zone, .forward_count = 1 };
	struct forward_table *table;
	struct counter_block *counters = aligned_alloc(CACHE_LINE, sizeof *counters);
	if (!counters || uv_loop_init(&loop) < 0 || exchanger_create(&exchanger, &loop, counters, &limits) != ERR_OK ||
	    forward_table_create(&table, &config) != ERR_OK ||
	    forwarder_create(&forwarder, table, &loop, exchanger, counters) != ERR_OK)
		fail("no worker");
	memset(counters, 0, sizeof *counters);
	struct rusage before, after;
	getrusage(RUSAGE_THREAD, &before);
	uint64_t start_ns = clock_mono_ns();
	while (begun < window && begun < wanted)
		begin();
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
	getrusage(RUSAGE_THREAD, &after);
	printf("{\"what\": \"%s\", \"window\": %u, \"per_second\": %.0f, \"cpu_us\": %.2f, \"user_share\": %.2f, \"failed\": "
	       "%llu, \"sockets\": %llu}\n",
	       argv[1], window, (double)ended / seconds, (cpu_s(&after) - cpu_s(&before)) * 1e6 / (double)ended,
	       ((double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
		(double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6) /
		       (cpu_s(&after) - cpu_s(&before)),
	       failed, (unsigned long long)counter_get(counters, C_UPSTREAM_SOCKETS));
	return failed != 0;
}
