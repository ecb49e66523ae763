/* SPDX-License-Identifier: Apache-2.0 */
/* For ThreadSanitizer (`make race`): everything that runs beside the serving threads, all at once, for some seconds. A plain program, for
 * Criterion does not run under it.
 *
 *   serving     two workers' UDP and TCP threads (slowpath/listen/)
 *   loader      reloads changed zones, publishes, repacks, writes image files (slowpath/zone/loader.c)
 *   supervisor  answers what the publisher sends, as the main thread of the slowpath hears it; changes the settings
 *   control     waits for reloads, asks for others, reads store and counters as the verbs do
 *   clients     by UDP and TCP: no answer may be older than what was published before its question
 *
 * usage: serve_race [SECONDS]; exit code 0, 1 for a wrong answer, 66 for a race. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "dns/message.h"
#include "slowpath/listen/listen.h"
#include "slowpath/zone/loader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZONES 4u
#define WORKERS 2u
#define PORT 53053
#define SECONDS_DEFAULT 8
#define PATIENCE_MS 2000
#define MIN_ROUNDS 5u /* fewer publications than that test nothing */
#define MIN_ANSWERS 500u

static char folder[] = "/dev/shm/skua-race-XXXXXX";
static struct zone_store *store;
static struct publisher *publisher;
static struct snapshot_holder holder;
static struct zone_image_files files;
static struct loader *loader;
static struct listen *listener;
static struct counters *counters;
static const struct counters *counters_read; /* another mapping, as the supervisor has it */
static struct sockaddr_in address;
static int links[2];
static _Atomic bool stops, is_started;
static _Atomic uint32_t published[ZONES]; /* serials that are served everywhere */
static _Atomic uint64_t answers, rounds, wrong;

static void complain(const char *what, uint32_t got, uint32_t least)
{
	fprintf(stderr, "%s: %u, not at least %u\n", what, got, least);
	atomic_fetch_add(&wrong, 1);
}

/* libuv has no instrumentation and closes descriptors behind the sanitizer's back, which takes their next use for a race. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "called_from_lib:libuv.so\n"; }

/* --- zones ------------------------------------------------------------------------------------------------------------ */

static void zone_path(char out[static 64], unsigned zone) { snprintf(out, 64, "%s/%u", folder, zone); }
static const uint8_t *zone_name(unsigned zone)
{
	static const uint8_t names[ZONES][5] = { "\1a\1t", "\1b\1t", "\1c\1t", "\1d\1t" };
	return names[zone];
}

static void write_zone(unsigned zone, uint32_t serial)
{
	char path[64], temporary[72];
	zone_path(path, zone);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	FILE *f = fopen(temporary, "we");
	ASSERT(f);
	fprintf(f, "$TTL 300\n@ SOA ns host %u 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n", serial);
	for (unsigned i = 0; i < 100u * (zone + 1); i++)
		fprintf(f, "h%u A 192.0.2.%u\n", i, i % 256);
	fclose(f);
	ASSERT(rename(temporary, path) == 0);
}

static void started(void *user, const char *why)
{
	(void)user;
	ASSERT(!why);
	atomic_store(&is_started, true);
}

/* --- threads beside the serving ones ------------------------------------------------------------------------------------ */

static void *supervise(void *unused)
{
	struct settings settings;
	unsigned turn = 0;
	(void)unused;
	settings_defaults(&settings);
	while (!atomic_load(&stops)) {
		struct pollfd readable = { .fd = links[1], .events = POLLIN };
		struct link_msg m;
		int fd = -1;
		if (poll(&readable, 1, 10) == 1 && link_receive(links[1], &m, &fd) == ERR_OK) {
			if (fd >= 0)
				close(fd);
			for (uint32_t part = 0; m.type == LINK_MAP && part < LINK_PART_COUNT_; part++)
				publisher_note_live(publisher, part, m.generation);
		}
		settings.udp_payload_bytes = (uint16_t)(1232 + turn % 100);
		if (turn++ % 16 == 0)
			ASSERT(publisher_settings(publisher, &settings) == ERR_OK);
	}
	return NULL;
}

static void *change_zones(void *unused)
{
	(void)unused;
	for (uint32_t serial = 2; !atomic_load(&stops); serial++) {
		unsigned zone = serial % ZONES;
		struct loader_reply reply = { 0 };
		write_zone(zone, serial);
		if (loader_reload(loader, serial % 3 ? zone_name(zone) : NULL, serial % 5 == 0, &reply) != ERR_OK)
			break;
		if (reply.err != ERR_OK || reply.result.failed)
			complain("reload failed", (uint32_t)reply.err, 0);
		else
			atomic_store(&published[zone], serial);
		reload_result_fini(&reply.result);
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void *look(void *unused)
{
	uint64_t sum = 0;
	(void)unused;
	for (unsigned turn = 0; !atomic_load(&stops); turn++) {
		zone_store_lock(store);
		struct zone_store_totals totals = zone_store_totals(store);
		const struct zone_item *item = zone_store_find(store, zone_name(turn % ZONES));
		sum += totals.records + (item->image ? item->image->serial : 0);
		zone_store_unlock(store);
		for (unsigned b = 0; b < 2 * WORKERS; b++)
			for (unsigned c = 0; c < C_COUNT_; c++)
				sum += counter_get(&counters_read->block[b], (enum counter)c);
		sum += loader_generation(loader) + loader_is_busy(loader);
		if (turn % 32 == 0)
			loader_wish_reload(loader);
		usleep(1000);
	}
	*(volatile uint64_t *)&sum = sum;
	return NULL;
}

/* --- clients ------------------------------------------------------------------------------------------------------------ */

static size_t soa_query(uint8_t *out, uint16_t id, unsigned zone)
{
	memcpy(out, "\0\0\0\0\0\1\0\0\0\0\0\0", DNS_HEADER_BYTES);
	store_be16(out, id);
	memcpy(out + DNS_HEADER_BYTES, zone_name(zone), 5);
	memcpy(out + DNS_HEADER_BYTES + 5, "\0\6\0\1", 4);
	return DNS_HEADER_BYTES + 9;
}

/* The SOA is the only answer: serial, refresh, retry, expire, minimum stand at its end. */
static void check_answer(const uint8_t *reply, ssize_t bytes, uint16_t id, uint32_t least)
{
	if (bytes < 60 || load_be16(reply) != id || (reply[3] & 15) != 0 || load_be16(reply + 6) != 1) {
		complain("no answer with a SOA", (uint32_t)MAX(bytes, 0), 60);
		return;
	}
	size_t rdata = DNS_HEADER_BYTES + 9 + 2 + 8, end = rdata + 2 + load_be16(reply + rdata);
	uint32_t serial = end <= (size_t)bytes ? load_be32(reply + end - 20) : 0;
	if (serial < least)
		complain("an old zone", serial, least);
	atomic_fetch_add(&answers, 1);
}

static int connected(int type)
{
	struct timeval timeout = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	ASSERT(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0);
	ASSERT(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static void *ask_udp(void *unused)
{
	uint8_t message[4096];
	(void)unused;
	for (uint16_t id = 0; !atomic_load(&stops); id++) {
		int fd = connected(SOCK_DGRAM); /* another port, another worker */
		for (unsigned zone = 0; zone < ZONES; zone++) {
			uint32_t least = atomic_load(&published[zone]);
			size_t bytes = soa_query(message, id, zone);
			ASSERT(send(fd, message, bytes, 0) == (ssize_t)bytes);
			check_answer(message, recv(fd, message, sizeof(message), 0), id, least);
		}
		close(fd);
	}
	return NULL;
}

static ssize_t receive_framed(int fd, uint8_t *out, size_t room)
{
	uint8_t head[2];
	if (recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head) || load_be16(head) > room)
		return -1;
	return recv(fd, out, load_be16(head), MSG_WAITALL);
}

static void *ask_tcp(void *unused)
{
	uint8_t message[4096];
	(void)unused;
	for (uint16_t id = 0; !atomic_load(&stops); id++) {
		int fd = connected(SOCK_STREAM);
		for (unsigned zone = 0; zone < ZONES; zone++) {
			uint32_t least = atomic_load(&published[zone]);
			size_t bytes = soa_query(message + 2, id, zone);
			store_be16(message, (uint16_t)bytes);
			ASSERT(send(fd, message, bytes + 2, MSG_NOSIGNAL) == (ssize_t)bytes + 2);
			check_answer(message, receive_framed(fd, message, sizeof(message)), id, least);
		}
		close(fd);
	}
	return NULL;
}

/* --- start and end ------------------------------------------------------------------------------------------------------ */

static int bound(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), on = 1;
	ASSERT(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0);
	ASSERT(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	ASSERT(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
	ASSERT(type == SOCK_DGRAM || listen(fd, 64) == 0);
	return fd;
}

static void start_loading(void)
{
	ASSERT(mkdtemp(folder) && zone_store_create(&store) == ERR_OK);
	for (unsigned zone = 0; zone < ZONES; zone++) {
		char path[64];
		zone_path(path, zone);
		write_zone(zone, 1);
		atomic_store(&published[zone], 1);
		ASSERT(zone_store_add(store, zone_name(zone), path) == ERR_OK);
	}
	struct settings settings;
	settings_defaults(&settings);
	ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, links) == 0);
	ASSERT(publisher_create(&publisher, links[0], &holder, &settings) == ERR_OK);
	zone_image_files_init(&files, folder, 0);
	struct loader_config config = { .store = store,
					.publisher = publisher,
					.files = &files,
					.threads = 2,
					.max_zone_bytes = 64 << 20,
					.started = started };
	ASSERT(loader_start(&loader, &config) == ERR_OK);
}

static void start_serving(struct listen_socket sockets[static 2 * WORKERS])
{
	int fd;
	ASSERT(counters_create(&fd, "race") == ERR_OK && counters_attach(&counters, fd, true) == ERR_OK);
	struct counters *other;
	ASSERT(counters_attach(&other, fd, false) == ERR_OK);
	counters_read = other;
	close(fd);
	/* A loopback address of our own, so that no other process has the port. */
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons(PORT),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK | ((uint32_t)getpid() & 0xffff) << 8) };
	for (unsigned i = 0; i < 2 * WORKERS; i++)
		sockets[i] = (struct listen_socket){ .fd = bound(i % 2 ? SOCK_STREAM : SOCK_DGRAM),
						     .kind = i % 2 ? LINK_LISTEN_TCP : LINK_LISTEN_UDP,
						     .worker = i / 2 };
	struct listen_config config = {
		.sockets = sockets,
		.socket_count = 2 * WORKERS,
		.snapshots = &holder,
		.counters = counters,
		.tcp = { .max_connections = 100, .max_per_client = 100, .idle_timeout_ms = 5000, .max_queries_in_flight = 64 }
	};
	ASSERT(listen_start(&listener, &config) == ERR_OK);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

/* In the order of the slowpath's own end. */
static void end(const struct listen_socket sockets[static 2 * WORKERS])
{
	loader_destroy(loader);
	listen_stop(listener);
	snapshot_publish(&holder, NULL);
	publisher_destroy(publisher);
	zone_store_destroy(store);
	zone_image_files_fini(&files);
	counters_detach(counters);
	counters_detach((struct counters *)counters_read);
	for (unsigned i = 0; i < 2 * WORKERS; i++)
		close(sockets[i].fd);
	close(links[0]);
	close(links[1]);
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv)
{
	static void *(*const run[])(void *) = { supervise, change_zones, look, ask_udp, ask_udp, ask_tcp };
	pthread_t thread[ARRAY_LEN(run)];
	struct listen_socket sockets[2 * WORKERS];
	int seconds = argc > 1 ? atoi(argv[1]) : SECONDS_DEFAULT;
	log_init("race");
	for (int i = 0; i < LOG_SUBSYSTEM_COUNT_; i++)
		log_set_level((enum log_subsystem)i, LOG_LEVEL_ERROR);
	start_loading();
	ASSERT(pthread_create(&thread[0], NULL, run[0], NULL) == 0);
	while (!atomic_load(&is_started))
		usleep(1000);
	start_serving(sockets);
	for (size_t i = 1; i < ARRAY_LEN(run); i++)
		ASSERT(pthread_create(&thread[i], NULL, run[i], NULL) == 0);
	sleep((unsigned)MAX(seconds, 1));
	loader_stop(loader);
	atomic_store(&stops, true);
	for (size_t i = 0; i < ARRAY_LEN(run); i++)
		pthread_join(thread[i], NULL);
	end(sockets);
	printf("%llu answers, %llu reloads, %llu wrong\n", (unsigned long long)atomic_load(&answers),
	       (unsigned long long)atomic_load(&rounds), (unsigned long long)atomic_load(&wrong));
	return atomic_load(&wrong) || atomic_load(&rounds) < MIN_ROUNDS || atomic_load(&answers) < MIN_ANSWERS;
}
