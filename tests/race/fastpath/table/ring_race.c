/* SPDX-License-Identifier: Apache-2.0 */
/* For ThreadSanitizer (`make race`): the memory that serving threads and resolver workers share without locks.
 *
 *   ring        a producer and a consumer, which sleeps by ring_prepare_sleep: whole records in order, no wake-up lost
 *   log ring    a fast writer, two slow readers: whole records only, records + lost = written
 *
 * usage: ring_race [SECONDS]; exit code 0, 1 for what is wrong, 66 for a race. */
#include "base/clock.h"
#include "table/log_ring.h"
#include "table/ring.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CAPACITY RING_MIN_BYTES
#define RECORD_MAX (CAPACITY / 4 - 8)
#define SECONDS_DEFAULT 8
#define PATIENCE_MS 10000

static struct ring_map *ring;
static struct log_ring_map *logs;
static int event;
static uint64_t until_ns, log_until_ns;
static _Atomic bool is_log_done;
static uint64_t sent, received, sleeps;

static _Noreturn void wrong(const char *what)
{
	fprintf(stderr, "ring_race: %s\n", what);
	exit(1);
}

static uint32_t length_of(uint64_t n) { return 8 + (uint32_t)(n * 2654435761u >> 5) % (n % 16 ? 120 : RECORD_MAX - 7); }
static uint8_t octet(uint64_t n, uint32_t i) { return (uint8_t)(n * 167 + i * 31); }

static void *produce(void *unused)
{
	struct ring_producer p;

	(void)unused;
	if (ring_producer_attach(&p, ring, ring_bytes(CAPACITY)) != ERR_OK)
		wrong("no producer");
	for (; clock_mono_ns() < until_ns; sent++) {
		uint8_t *at;
		while (!(at = ring_reserve(&p, length_of(sent))))
			sched_yield();
		memcpy(at, &sent, 8);
		for (uint32_t i = 8; i < length_of(sent); i++)
			at[i] = octet(sent, i);
		ring_commit(&p);
		if (ring_needs_kick(&p))
			eventfd_write(event, 1);
		if (sent % 64 == 0)
			sched_yield();
	}
	uint8_t *end;
	while (!(end = ring_reserve(&p, 1))) /* shorter than any other */
		sched_yield();
	*end = 0;
	ring_commit(&p);
	if (ring_needs_kick(&p))
		eventfd_write(event, 1);
	return NULL;
}

static void check_record(const uint8_t *record, uint32_t bytes)
{
	uint64_t n;

	memcpy(&n, record, 8);
	if (n != received || bytes != length_of(n))
		wrong("a record out of order, or of another length");
	for (uint32_t i = 8; i < bytes; i++)
		if (record[i] != octet(n, i))
			wrong("a torn record");
	received++;
}

static void *consume(void *unused)
{
	struct ring_consumer c;
	uint8_t record[RECORD_MAX];
	uint32_t bytes = 0;

	(void)unused;
	if (ring_consumer_attach(&c, ring, ring_bytes(CAPACITY)) != ERR_OK)
		wrong("no consumer");
	for (;;) {
		enum ring_result result = ring_pop(&c, record, sizeof record, &bytes);
		struct pollfd p = { .fd = event, .events = POLLIN };
		eventfd_t value;

		if (result == RING_CORRUPT)
			wrong("a sound ring is said to be corrupt");
		if (result == RING_OK && bytes == 1)
			return NULL;
		if (result == RING_OK) {
			check_record(record, bytes);
		} else if (ring_prepare_sleep(&c)) {
			if (poll(&p, 1, PATIENCE_MS) != 1)
				wrong("a wake-up was lost");
			eventfd_read(event, &value);
			ring_cancel_sleep(&c);
			sleeps++;
		}
	}
}

static void *write_log(void *unused)
{
	struct log_writer w;
	static struct log_record record = { .family = 6 };

	(void)unused;
	log_writer_init(&w, logs, 0);
	for (uint32_t n = 0; clock_mono_ns() < log_until_ns; n++) {
		record.latency_us = n;
		record.name_bytes = (uint8_t)(n % 256);
		memset(record.name, (int)(n % 251), record.name_bytes);
		log_write_record(&w, &record);
		if (n % 4096 == 0)
			sched_yield();
	}
	is_log_done = true;
	return NULL;
}

static void *read_log(void *pause_us)
{
	struct log_reader r;
	struct log_record record;

	log_reader_init(&r, logs, 0, true);
	for (bool is_last = false; !is_last;) {
		is_last = is_log_done;
		while (log_reader_next(&r, &record)) {
			if (record.name_bytes != record.latency_us % 256)
				wrong("a crossed log record");
			for (unsigned i = 0; i < record.name_bytes; i++)
				if (record.name[i] != record.latency_us % 251)
					wrong("a torn log record");
		}
		usleep((useconds_t)(uintptr_t)pause_us);
	}
	if (r.damaged)
		wrong("a damaged slot without damage");
	if (r.records + r.lost != log_ring_written(logs, 0))
		wrong("log records read and lost are not those written");
	printf("ring_race: log records read %llu, lost %llu\n", (unsigned long long)r.records, (unsigned long long)r.lost);
	if (!r.records || !r.lost)
		wrong("the log reader was never behind, or always");
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : SECONDS_DEFAULT;
	pthread_t thread[5];
	int fd;

	ring = aligned_alloc(CACHE_LINE, (ring_bytes(CAPACITY) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!ring || event < 0 || ring_format(ring, ring_bytes(CAPACITY), CAPACITY) != ERR_OK ||
	    log_ring_create(&fd, 1, "race") != ERR_OK || log_ring_attach(&logs, fd, true) != ERR_OK)
		wrong("no memory");
	close(fd);
	until_ns = clock_mono_ns() + seconds * 500000000ull;
	log_until_ns = until_ns + seconds * 500000000ull;
	pthread_create(&thread[0], NULL, produce, NULL);
	pthread_create(&thread[1], NULL, consume, NULL);
	pthread_create(&thread[3], NULL, read_log, (void *)(uintptr_t)1);
	pthread_create(&thread[4], NULL, read_log, (void *)(uintptr_t)20000);
	usleep(10000); /* readers that begin from now have begun */
	pthread_create(&thread[2], NULL, write_log, NULL);
	for (unsigned i = 0; i < ARRAY_LEN(thread); i++)
		pthread_join(thread[i], NULL);
	printf("ring_race: records sent %llu, received %llu, sleeps %llu\n", (unsigned long long)sent,
	       (unsigned long long)received, (unsigned long long)sleeps);
	if (sent != received || received < 1000 || sleeps == 0)
		wrong("records are missing, too few came, or nobody slept");
	log_ring_detach(logs);
	free(ring);
	return 0;
}
