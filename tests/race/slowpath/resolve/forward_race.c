/* SPDX-License-Identifier: Apache-2.0 */
/* Workers with forwarders of one table, upstreams that answer, fall silent and come back, and a reader of their status: nothing but atomics is
 * shared, and every question ends.   usage: forward_race SECONDS */
#include "base/bytes.h"
#include "base/clock.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/forward.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKERS 3
#define UPSTREAMS 2
#define WINDOW 20
#define MS 1000000ull

static int sockets[UPSTREAMS];
static struct forward_table *table;
static _Atomic bool is_over, is_done, is_silent[UPSTREAMS];
static _Atomic unsigned long asked, ended, failed;

struct worker {
	uv_loop_t loop;
	struct counter_block *counters;
	struct exchanger *exchanger;
	struct forwarder *forwarder;
	unsigned under_way, number;
	pthread_t thread;
};

static void *respond(void *user)
{
	uint8_t m[1024];
	(void)user;
	while (!atomic_load(&is_done)) {
		struct pollfd fds[UPSTREAMS];
		for (int i = 0; i < UPSTREAMS; i++)
			fds[i] = (struct pollfd){ .fd = sockets[i], .events = POLLIN };
		(void)poll(fds, UPSTREAMS, 20);
		for (int i = 0; i < UPSTREAMS; i++) {
			struct sockaddr_in from;
			socklen_t bytes = sizeof from;
			ssize_t n = recvfrom(sockets[i], m, sizeof m, MSG_DONTWAIT, (void *)&from, &bytes);
			if (n < 12 || atomic_load(&is_silent[i]))
				continue;
			m[2] |= 0x80;
			m[3] |= 0x80;
			(void)!sendto(sockets[i], m, (size_t)n, 0, (void *)&from, bytes);
		}
	}
	return NULL;
}

static void begin(struct worker *w);

static void on_done(void *user, const struct forward_outcome *o)
{
	struct worker *w = user;
	w->under_way--;
	atomic_fetch_add(&ended, 1);
	atomic_fetch_add(&failed, o->result != FORWARD_REPLY);
	if (!atomic_load(&is_over))
		begin(w);
	else if (w->under_way == 0)
		uv_stop(&w->loop);
}

static void begin(struct worker *w)
{
	uint8_t name[] = "\6aaaaaa\4test";
	for (unsigned i = 0, n = w->number++; i < 6; i++, n /= 26)
		name[1 + i] = (uint8_t)('a' + n % 26);
	struct forward_question q = {
		.name = name, .name_bytes = sizeof name, .type = RR_A, .deadline_ns = clock_mono_ns() + 2000 * MS
	};
	w->under_way++;
	atomic_fetch_add(&asked, 1);
	ASSERT(forward_ask(w->forwarder, &q, on_done, w));
}

static void *work(void *user)
{
	struct worker *w = user;
	const struct exchange_limits limits = { 10000, 10000, 256, 16, 4, 1000 * MS };
	w->counters = aligned_alloc(CACHE_LINE, sizeof *w->counters);
	ASSERT(w->counters && uv_loop_init(&w->loop) == 0);
	memset(w->counters, 0, sizeof *w->counters);
	ASSERT(exchanger_create(&w->exchanger, &w->loop, w->counters, &limits) == ERR_OK);
	ASSERT(forwarder_create(&w->forwarder, table, &w->loop, w->exchanger, w->counters) == ERR_OK);
	for (unsigned i = 0; i < WINDOW; i++)
		begin(w);
	(void)uv_run(&w->loop, UV_RUN_DEFAULT);
	ASSERT(w->under_way == 0);
	forwarder_destroy(w->forwarder);
	exchanger_destroy(w->exchanger);
	(void)uv_run(&w->loop, UV_RUN_DEFAULT);
	ASSERT(uv_loop_close(&w->loop) == 0);
	free(w->counters);
	return NULL;
}

static void make_table(void)
{
	static struct config_upstream to[UPSTREAMS];
	static struct config_forward zone = {
		.zone = { .name_bytes = 1 }, .to = to, .count = UPSTREAMS, .strategy = STRATEGY_FASTEST
	};
	static uint8_t root[1];
	struct config config = { .forward = &zone, .forward_count = 1 };
	zone.zone.name = root;
	for (int i = 0; i < UPSTREAMS; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
		socklen_t bytes = sizeof a;
		sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
		ASSERT(bind(sockets[i], (void *)&a, sizeof a) == 0 && getsockname(sockets[i], (void *)&a, &bytes) == 0);
		to[i].address = (struct config_address){ .family = 4, .address = { 127, 0, 0, 1 }, .port = ntohs(a.sin_port) };
		snprintf(to[i].address.text, sizeof to[i].address.text, "127.0.0.1:%u", ntohs(a.sin_port));
	}
	ASSERT(forward_table_create(&table, &config) == ERR_OK);
}

int main(int argc, char **argv)
{
	static struct worker workers[WORKERS];
	pthread_t responder;
	uint64_t end_ns = clock_mono_ns() + (argc > 1 ? strtoull(argv[1], NULL, 10) : 8) * 1000 * MS;
	make_table();
	ASSERT(pthread_create(&responder, NULL, respond, NULL) == 0);
	for (int i = 0; i < WORKERS; i++)
		ASSERT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	for (unsigned turn = 0; clock_mono_ns() < end_ns; turn++) {
		atomic_store(&is_silent[0], turn / 20 % 3 == 1); /* one at a time: some question might fail else */
		json_t *status = forward_table_status(table);
		ASSERT(json_array_size(status) == 1);
		json_decref(status);
		usleep(20000);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&is_done, true);
	pthread_join(responder, NULL);
	forward_table_destroy(table);
	printf("%lu questions, %lu failed\n", asked, failed);
	return asked != ended || failed > 0;
}
