/* SPDX-License-Identifier: Apache-2.0 */
#include "table/snapshot.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static struct snapshot *make(uint16_t payload)
{
	struct zone_set *zones;
	struct snapshot *s;
	struct settings settings;
	settings_defaults(&settings);
	settings.udp_payload_bytes = payload;
	cr_assert_eq(zone_set_empty(&zones), ERR_OK);
	cr_assert_eq(snapshot_create(&s, zones, &settings), ERR_OK);
	return s;
}

Test(snapshot, is_a_copy_of_the_settings_and_owns_the_zones)
{
	struct snapshot *s = make(1000);
	cr_expect_eq(s->settings.udp_payload_bytes, 1000);
	cr_expect_eq(s->generation, 0);
	cr_expect_eq(zone_set_zones(s->zones), 0);
	snapshot_destroy(s);
	snapshot_destroy(NULL);
}

Test(snapshot, two_snapshots_may_share_one_zone_set)
{
	struct zone_set *zones;
	struct snapshot *a, *b;
	struct settings settings;
	settings_defaults(&settings);
	cr_assert_eq(zone_set_empty(&zones), ERR_OK);
	cr_assert_eq(snapshot_create(&a, zones, &settings), ERR_OK);
	cr_assert_eq(snapshot_create(&b, zone_set_get(zones), &settings), ERR_OK);
	snapshot_destroy(a);
	cr_expect_eq(zone_set_zones(b->zones), 0, "still there");
	snapshot_destroy(b);
}

struct reader {
	struct snapshot_holder *holder;
	_Atomic bool stop;
	_Atomic uint64_t rounds;
	_Atomic bool is_broken;
};

/* Both fields of a snapshot must always fit: a freed one would be caught by ASan, or hold rubbish. */
static void *read_on(void *user)
{
	struct reader *r = user;
	snapshot_thread_register();
	while (!atomic_load(&r->stop)) {
		const struct snapshot *s = snapshot_acquire(r->holder);
		uint16_t payload = s->settings.udp_payload_bytes;
		if (payload != s->settings.tcp_idle_timeout_100ms)
			atomic_store(&r->is_broken, true);
		for (int i = 0; i < 50; i++)
			if (s->settings.udp_payload_bytes != payload)
				atomic_store(&r->is_broken, true);
		snapshot_quiescent();
		if (atomic_fetch_add(&r->rounds, 1) % 64 == 0) {
			snapshot_offline();
			sched_yield();
			snapshot_online();
		}
	}
	snapshot_thread_unregister();
	return NULL;
}

Test(snapshot, readers_never_see_one_that_was_freed, .timeout = 20)
{
	struct snapshot_holder holder = { 0 };
	struct reader r = { .holder = &holder };
	pthread_t thread[2];
	for (uint16_t i = 0; i < 200; i++) {
		struct snapshot *s = make((uint16_t)(512 + i));
		s->settings.tcp_idle_timeout_100ms = s->settings.udp_payload_bytes;
		snapshot_publish(&holder, s);
		if (i == 0)
			for (int t = 0; t < 2; t++)
				cr_assert_eq(pthread_create(&thread[t], NULL, read_on, &r), 0);
		while (i == 0 && atomic_load(&r.rounds) == 0)
			sched_yield();
	}
	atomic_store(&r.stop, true);
	for (int t = 0; t < 2; t++)
		pthread_join(thread[t], NULL);
	cr_expect_not(atomic_load(&r.is_broken));
	cr_expect_gt(atomic_load(&r.rounds), 0);
	snapshot_publish(&holder, NULL);
	cr_expect_null(snapshot_acquire(&holder));
}

static void *sleep_offline(void *user)
{
	struct reader *r = user;
	snapshot_thread_register();
	snapshot_offline();
	atomic_store(&r->rounds, 1);
	while (!atomic_load(&r->stop))
		usleep(1000);
	snapshot_online();
	snapshot_thread_unregister();
	return NULL;
}

Test(snapshot, an_offline_sleeper_does_not_hold_up_publication, .timeout = 5)
{
	struct snapshot_holder holder = { 0 };
	struct reader r = { .holder = &holder };
	pthread_t thread;
	cr_assert_eq(pthread_create(&thread, NULL, sleep_offline, &r), 0);
	while (!atomic_load(&r.rounds))
		sched_yield();
	for (int i = 0; i < 10; i++)
		snapshot_publish(&holder, make(512)); /* would hang here */
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	snapshot_publish(&holder, NULL);
}
