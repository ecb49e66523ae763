/* SPDX-License-Identifier: Apache-2.0 */
/* Records come out as they went in; what was overrun is known by number; nothing that a writer puts there harms a reader. */
#include "table/log_ring_private.h"
#include "table/shm.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd;
static struct log_ring_map *map, *view;
static struct log_writer writer;
static struct log_reader reader;

static void setup(void)
{
	cr_assert_eq(log_ring_create(&fd, 3, "test"), ERR_OK);
	cr_assert_eq(log_ring_attach(&map, fd, true), ERR_OK);
	cr_assert_eq(log_ring_attach(&view, fd, false), ERR_OK);
	log_writer_init(&writer, map, 1);
	log_reader_init(&reader, view, 1, true);
}
static void teardown(void)
{
	log_ring_detach(map);
	log_ring_detach(view);
	close(fd);
}
TestSuite(log_ring, .init = setup, .fini = teardown);

/* Everything in it follows from the number. */
static struct log_record make(uint64_t number)
{
	struct log_record r = { .wall_ns = number,
				.latency_us = (uint32_t)(number * 3),
				.qtype = (uint16_t)number,
				.qclass = 1,
				.response_bytes = (uint16_t)(number * 5),
				.flags = (uint16_t)(number * 7),
				.rcode = (uint16_t)(number % 24),
				.ede = (int16_t)(number % 30) - 1,
				.group = (uint16_t)(number * 11),
				.port = (uint16_t)(number * 13),
				.family = number & 1 ? 4 : 6,
				.transport = number & 1,
				.path = (uint8_t)(number % LOG_PATH_COUNT_),
				.name_bytes = (uint8_t)(1 + number % NAME_MAX_BYTES) };

	memset(r.address, (int)(number & 0xff), r.family == 4 ? 4 : 16);
	memset(r.name, (int)(number * 17 & 0xff), r.name_bytes);
	return r;
}
static bool is_same(const struct log_record *a, const struct log_record *b)
{
	return memcmp(a, b, offsetof(struct log_record, name)) == 0 && memcmp(a->name, b->name, a->name_bytes) == 0;
}

Test(log_ring, records_come_out_as_they_went_in)
{
	struct log_record in, out;

	for (uint64_t i = 0; i < 20000; i++) {
		in = make(i);
		log_write_record(&writer, &in);
		cr_assert(log_reader_next(&reader, &out));
		cr_assert(is_same(&in, &out), "record %llu", (unsigned long long)i);
	}
	cr_expect_not(log_reader_next(&reader, &out));
	cr_expect_eq(reader.records, 20000);
	cr_expect_eq(reader.lost + reader.damaged, 0);
	cr_expect_eq(log_ring_written(view, 1), 20000);
	cr_expect_eq(log_ring_written(view, 0), 0);
}

Test(log_ring, what_was_overrun_is_counted)
{
	struct log_record in, out;
	uint64_t written = 0;

	srandom(3);
	for (unsigned round = 0; round < 200; round++) {
		for (long n = random() % 9000; n > 0; n--) {
			in = make(written++);
			log_write_record(&writer, &in);
		}
		while (log_reader_next(&reader, &out)) {
			struct log_record want = make(out.wall_ns);

			cr_assert(is_same(&want, &out));
			cr_assert_eq(reader.records + reader.lost, out.wall_ns + 1);
		}
	}
	cr_expect_eq(reader.records + reader.lost, written);
	cr_expect_eq(reader.damaged, 0);
	cr_expect_gt(reader.lost, 0);
	cr_expect_gt(reader.records, 0);
}

Test(log_ring, a_late_reader_begins_with_the_oldest_record_that_is_there)
{
	struct log_record in, out;
	struct log_reader late;

	for (uint64_t i = 0; i < 10000; i++) {
		in = make(i);
		log_write_record(&writer, &in);
	}
	log_reader_init(&late, view, 1, false);
	cr_assert(log_reader_next(&late, &out));
	cr_expect_gt(out.wall_ns, 5000);
	while (log_reader_next(&late, &out))
		;
	cr_expect_eq(out.wall_ns, 9999);
	cr_expect_eq(late.lost + late.damaged, 0);
}

Test(log_ring, a_process_that_follows_goes_on_with_the_numbers)
{
	struct log_record in = make(1), out;

	log_write_record(&writer, &in);
	/* The one before died between `begun` and `done`. */
	atomic_fetch_add(&writer.ring_->begun, 3);
	log_writer_init(&writer, map, 1);
	in = make(2);
	log_write_record(&writer, &in);
	cr_assert(log_reader_next(&reader, &out) && out.wall_ns == 1);
	cr_assert(log_reader_next(&reader, &out) && out.wall_ns == 2);
	cr_expect_eq(reader.lost, 0);
}

Test(log_ring, a_reader_beside_a_fast_writer_sees_only_whole_records, .timeout = 30)
{
	struct log_record out;
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion must not leave it behind */
		for (uint64_t i = 0;; i++) {
			struct log_record in = make(i);

			log_write_record(&writer, &in);
		}
	}
	for (uint64_t i = 0; i < 300000;) {
		if (!log_reader_next(&reader, &out))
			continue;
		struct log_record want = make(out.wall_ns);

		i++;
		cr_assert(is_same(&want, &out), "record %llu", (unsigned long long)out.wall_ns);
		cr_assert_eq(reader.records + reader.lost, out.wall_ns + 1);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_expect_eq(reader.damaged, 0);
}

Test(log_ring, random_octets_harm_no_reader)
{
	struct log_record out;
	uint32_t *words = (uint32_t *)map;
	size_t bytes;
	void *all;

	cr_assert_eq(shm_map_writable(&all, &bytes, fd), ERR_OK);
	words = all;
	srandom(5);
	for (unsigned round = 0; round < 3000; round++) {
		for (unsigned i = 0; i < 200; i++)
			words[16 + (size_t)random() % (bytes / 4 - 16)] = round % 3 ? (uint32_t)random() : (uint32_t)random() % 8;
		for (unsigned thread = 0; thread < 3; thread++) {
			struct log_reader r;

			log_reader_init(&r, view, thread, round & 1);
			for (unsigned i = 0; i < 2 * LOG_RING_SLOTS && log_reader_next(&r, &out); i++)
				cr_assert(out.path < LOG_PATH_COUNT_ && (out.family == 4 || out.family == 6));
		}
		for (unsigned i = 0; i < 16 && log_reader_next(&reader, &out); i++)
			;
	}
}

Test(log_ring, what_is_no_log_ring_is_refused)
{
	struct log_ring_map *m = NULL;
	int other;
	void *all;
	size_t bytes;

	cr_expect_eq(log_ring_create(&other, 0, "x"), ERR_ARGUMENT);
	cr_expect_eq(log_ring_create(&other, LOG_RING_MAX_THREADS + 1, "x"), ERR_ARGUMENT);
	cr_assert_eq(shm_create(&other, "x", 100), ERR_OK);
	cr_expect_eq(log_ring_attach(&m, other, false), ERR_CORRUPT);
	close(other);
	cr_assert_eq(shm_map_writable(&all, &bytes, fd), ERR_OK);
	for (unsigned i = 0; i < 6; i++) {
		((uint32_t *)all)[i] ^= 0x10;
		cr_expect_eq(log_ring_attach(&m, fd, false), ERR_CORRUPT, "word %u", i);
		((uint32_t *)all)[i] ^= 0x10;
	}
	cr_expect_null(m);
}
