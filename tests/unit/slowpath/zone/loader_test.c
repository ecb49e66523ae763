/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/zone/store_world.h"

#include "base/clock.h"

#include <poll.h>
#include <pthread.h>

/* A supervisor that takes everything and says at once that all parts have it. */
struct supervisor {
	int link;
	struct publisher *publisher;
	pthread_t thread;
	_Atomic bool stop, is_silent;
	_Atomic unsigned segments, maps, drops;
};

static void *supervise(void *user)
{
	struct supervisor *s = user;
	while (!atomic_load(&s->stop)) {
		struct pollfd readable = { .fd = s->link, .events = POLLIN };
		struct link_msg m;
		int fd = -1;
		if (poll(&readable, 1, 10) != 1 || link_receive(s->link, &m, &fd) != ERR_OK)
			continue;
		if (fd >= 0)
			close(fd);
		atomic_fetch_add(&s->segments, m.type == LINK_SEGMENT);
		atomic_fetch_add(&s->maps, m.type == LINK_MAP);
		atomic_fetch_add(&s->drops, m.type == LINK_SEGMENT_DROP);
		for (uint32_t part = 0; m.type == LINK_LIVE && !atomic_load(&s->is_silent) && part < LINK_PART_COUNT_; part++)
			publisher_note_live(s->publisher, part, m.generation);
	}
	return NULL;
}

static struct world w;
static struct snapshot_holder holder;
static struct publisher *publisher;
static struct zone_image_files files;
static struct supervisor supervisor;
static struct loader *loader;
static int ends[2];
static _Atomic unsigned started;
static const char *_Atomic start_failure;

static void note_start(void *user, const char *why)
{
	(void)user;
	atomic_store(&start_failure, why);
	atomic_fetch_add(&started, 1);
}

static void init(void)
{
	world_init(&w);
	publisher = world_publisher(&holder, ends);
	supervisor = (struct supervisor){ .link = ends[1], .publisher = publisher };
	cr_assert_eq(pthread_create(&supervisor.thread, NULL, supervise, &supervisor), 0);
}

static void fini(void)
{
	loader_stop(loader);
	loader_destroy(loader);
	atomic_store(&supervisor.stop, true);
	pthread_join(supervisor.thread, NULL);
	snapshot_publish(&holder, NULL);
	publisher_destroy(publisher);
	zone_image_files_fini(&files);
	close(ends[0]);
	close(ends[1]);
	world_fini(&w);
}

TestSuite(loader, .init = init, .fini = fini, .timeout = 60);

static void start(void)
{
	struct loader_config config = { .store = w.store,
					.publisher = publisher,
					.files = &files,
					.threads = 2,
					.max_zone_bytes = 16 << 20,
					.started = note_start };
	zone_image_files_init(&files, w.folder, 0);
	cr_assert_eq(loader_start(&loader, &config), ERR_OK);
	for (int i = 0; i < 2000 && !atomic_load(&started); i++)
		usleep(5000);
	cr_assert_eq(atomic_load(&started), 1);
	cr_assert_null(atomic_load(&start_failure));
}

static void three_zones(void)
{
	world_put_zone(&w, "a.example", 1, 3);
	world_put_zone(&w, "b.example", 2, 3);
	world_put(&w, "c.example", "rubbish\n");
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	world_add(&w, "c.example");
}

static struct loader_reply reload(const char *zone)
{
	struct loader_reply reply;
	cr_assert_eq(loader_reload(loader, zone ? world_name(zone) : NULL, false, &reply), ERR_OK);
	return reply;
}

static void wait_idle(void)
{
	for (int i = 0; i < 2000 && loader_is_busy(loader); i++)
		usleep(5000);
}

Test(loader, loads_publishes_and_says_so_once)
{
	three_zones();
	start();
	wait_idle();
	cr_expect_eq(loader_generation(loader), 1);
	cr_expect_eq(zone_set_zones(snapshot_acquire(&holder)->zones), 3);
	cr_expect_eq(atomic_load(&started), 1);
	cr_expect_geq(world_files(&w, "zones", ".img"), 1, "image files are written in the quiet after");
}

Test(loader, no_zones_at_all_is_a_start_too)
{
	start();
	cr_expect_eq(zone_set_zones(snapshot_acquire(&holder)->zones), 0);
}

Test(loader, reload_is_live_everywhere_when_it_returns)
{
	three_zones();
	start();
	struct loader_reply r = reload(NULL);
	cr_expect(r.err == ERR_OK && r.result.loaded == 0 && r.result.unchanged == 2 && r.result.failed == 1);
	cr_expect_eq(r.generation, 1, "nothing has changed, nothing is published");
	cr_expect(r.is_live);
	reload_result_fini(&r.result);
	world_put_zone(&w, "a.example", 5, 3);
	r = reload("a.example");
	cr_expect(r.err == ERR_OK && r.result.loaded == 1 && r.generation == 2 && r.is_live);
	reload_result_fini(&r.result);
	cr_expect_eq(atomic_load(&supervisor.maps), 2);
	r = reload("nobody.example");
	cr_expect_eq(r.err, ERR_NOTFOUND);
	reload_result_fini(&r.result);
	world_put_zone(&w, "c.example", 6, 3);
	r = reload(NULL);
	cr_expect(r.result.loaded == 1 && r.result.unchanged == 2 && r.result.failed == 0);
	reload_result_fini(&r.result);
}

Test(loader, segments_that_nobody_serves_from_are_dropped)
{
	world_put_zone(&w, "a.example", 1, 3);
	world_add(&w, "a.example");
	start();
	for (uint32_t i = 2; i < 6; i++) {
		world_put_zone(&w, "a.example", i, 3);
		struct loader_reply r = reload("a.example");
		cr_expect_eq(r.result.loaded, 1);
		reload_result_fini(&r.result);
	}
	wait_idle();
	cr_expect_eq(zone_store_segments(w.store), 1);
	for (int i = 0; i < 200 && atomic_load(&supervisor.drops) < 4; i++)
		usleep(5000);
	cr_expect_eq(atomic_load(&supervisor.drops), 4);
	cr_expect_eq(atomic_load(&supervisor.segments), 5);
	cr_expect_leq(world_files(&w, "zones", ".img"), 1, "their files too");
}

Test(loader, many_one_zone_reloads_leave_few_segments)
{
	char name[32];
	for (unsigned i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		world_put_zone(&w, name, 1, 1);
		world_add(&w, name);
	}
	start();
	for (unsigned i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		world_put_zone(&w, name, 2, 1);
		struct loader_reply r = reload(name);
		reload_result_fini(&r.result);
	}
	wait_idle();
	cr_expect_leq(zone_store_segments(w.store), 40);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		cr_expect_eq(world_serial(&w, name), 2);
	}
}

Test(loader, a_part_that_is_late_is_told_of)
{
	world_put_zone(&w, "a.example", 1, 3);
	world_add(&w, "a.example");
	start();
	wait_idle();
	atomic_store(&supervisor.is_silent, true);
	world_put_zone(&w, "a.example", 2, 3);
	uint64_t began_ns = clock_mono_ns();
	struct loader_reply r = reload(NULL);
	cr_expect(r.err == ERR_OK && r.result.loaded == 1 && !r.is_live);
	cr_expect_geq(clock_mono_ns() - began_ns, LOADER_LIVE_TIMEOUT_MS * 900000ull);
	reload_result_fini(&r.result);
}

static void *ask(void *user)
{
	struct loader_reply r;
	*(enum err *)user = loader_reload(loader, NULL, true, &r);
	if (*(enum err *)user == ERR_OK)
		reload_result_fini(&r.result);
	return NULL;
}

Test(loader, stopping_answers_everybody_who_waits)
{
	enum err err[4] = { 0 };
	pthread_t thread[4];
	world_put_zone(&w, "a.example", 1, 3);
	world_add(&w, "a.example");
	start();
	atomic_store(&supervisor.is_silent, true); /* so that reloads take long */
	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, ask, &err[i]), 0);
	usleep(300000);
	uint64_t began_ns = clock_mono_ns();
	loader_stop(loader);
	cr_expect_lt(clock_mono_ns() - began_ns, 3000000000ull);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		cr_expect(err[i] == ERR_OK || err[i] == ERR_CLOSED);
	}
	struct loader_reply r;
	cr_expect_eq(loader_reload(loader, NULL, false, &r), ERR_CLOSED);
	loader_destroy(loader);
	loader = NULL;
}

static struct loader_reply reply_at_stop;

static void *ask_for_all(void *user)
{
	*(enum err *)user = loader_reload(loader, NULL, false, &reply_at_stop);
	return NULL;
}

/* Stopped at different moments of a reload: before, while reading, between reading and publication, after. */
Test(loader, a_reload_that_a_stop_cut_short_is_no_success)
{
	world_add(&w, "a.example");
	for (unsigned turn = 0; turn < 12; turn++) {
		pthread_t thread;
		enum err err = ERR_OK;
		world_put_zone(&w, "a.example", 2 * turn + 1, 10000);
		atomic_store(&started, 0);
		start();
		world_put_zone(&w, "a.example", 2 * turn + 2, 10000);
		cr_assert_eq(pthread_create(&thread, NULL, ask_for_all, &err), 0);
		usleep(turn * 2000);
		loader_stop(loader);
		pthread_join(thread, NULL);
		if (err == ERR_OK && reply_at_stop.err == ERR_OK) {
			cr_expect_eq(world_serial(&w, "a.example"), 2 * turn + 2, "turn %u", turn);
			cr_expect_eq(reply_at_stop.result.loaded, 1, "turn %u", turn);
		}
		if (err == ERR_OK)
			reload_result_fini(&reply_at_stop.result);
		loader_destroy(loader);
		loader = NULL;
		zone_image_files_fini(&files);
	}
}

Test(loader, a_wish_needs_nobody_to_wait)
{
	world_put_zone(&w, "a.example", 1, 3);
	world_add(&w, "a.example");
	start();
	wait_idle();
	world_put_zone(&w, "a.example", 2, 3);
	for (int i = 0; i < 10; i++)
		loader_wish_reload(loader);
	for (int i = 0; i < 400 && loader_generation(loader) < 2; i++)
		usleep(5000);
	cr_expect_eq(loader_generation(loader), 2);
}

Test(loader, image_files_give_way_to_those_who_wait_and_come_later)
{
	three_zones();
	world_put_zone(&w, "d.example", 4, 200000); /* some pieces long */
	world_add(&w, "d.example");
	start();
	for (unsigned i = 10; i < 16; i++) {
		world_put_zone(&w, "a.example", i, 3);
		struct loader_reply r = reload("a.example");
		cr_expect_eq(r.err, ERR_OK);
		cr_expect(r.is_live);
		cr_expect_eq(world_serial(&w, "a.example"), i);
		reload_result_fini(&r.result);
	}
	wait_idle();
	cr_expect_eq(world_files(&w, "zones", ".img"), zone_store_segments(w.store), "each segment has its file in the end");
	cr_expect_eq(world_files(&w, "zones", ".tmp"), 0, "and nothing is left of those that were given up");
}
