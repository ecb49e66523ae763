/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/zone/store_world.h"

static void publish_all(struct zone_store *s)
{
	for (size_t i = 0; i < zone_store_segments(s); i++)
		zone_store_segment(s, i)->is_published = true;
}

static void sweep(struct zone_store *s)
{
	for (size_t i = 0; i < zone_store_segments(s);)
		if (zone_store_segment(s, i)->live_zones == 0)
			zone_store_drop_segment(s, i);
		else
			i++;
}

Test(repack, segments_stay_few_however_many_reloads, .timeout = 60)
{
	enum { ZONES = 120 };
	struct world w;
	char name[32];
	unsigned repacks = 0;
	world_init(&w);
	for (unsigned i = 0; i < ZONES; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		world_put_zone(&w, name, i + 1, 3);
		world_add(&w, name);
		world_expect(&w, name, false, 1, 0, 0); /* a segment each */
		publish_all(w.store);
		if (repack_is_due(w.store)) {
			cr_assert_eq(repack_run(w.store, &w.next_segment_id), ERR_OK);
			sweep(w.store);
			publish_all(w.store);
			repacks++;
		}
		cr_assert_leq(zone_store_segments(w.store), 4 * (REPACK_TIER_SEGMENTS + 1), "after %u", i);
	}
	cr_expect_gt(repacks, 0);
	cr_expect_lt(repacks, ZONES / 8);
	for (unsigned i = 0; i < ZONES; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		cr_expect_eq(world_serial(&w, name), i + 1);
		cr_expect_str_eq(segment_note_source_path(segment_note_source_next(world_item(&w, name)->note, NULL)),
				 world_item(&w, name)->file);
	}
	world_expect(&w, NULL, false, 0, ZONES, 0);
	world_fini(&w);
}

Test(repack, nothing_to_do_nothing_done)
{
	struct world w;
	world_init(&w);
	cr_expect_not(repack_is_due(w.store));
	world_put_zone(&w, "a.example", 1, 3);
	world_add(&w, "a.example");
	world_expect(&w, NULL, false, 1, 0, 0);
	publish_all(w.store);
	cr_expect_not(repack_is_due(w.store));
	world_fini(&w);
}

Test(repack, much_garbage_is_thrown_away, .timeout = 60)
{
	struct world w;
	char name[32];
	world_init(&w);
	w.threads = 1; /* what is thrown away and what stays must share a segment */
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		world_put_zone(&w, name, 1, 15000);
		world_add(&w, name);
	}
	world_expect(&w, NULL, false, 20, 0, 0);
	publish_all(w.store);
	cr_expect_not(repack_is_due(w.store));
	for (unsigned i = 0; i < 18; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		cr_assert_eq(zone_store_remove(w.store, world_name(name)), ERR_OK);
	}
	struct zone_store_totals before = zone_store_totals(w.store);
	cr_assert_gt(before.segment_bytes, before.live_bytes + REPACK_GARBAGE_BYTES, "%llu octets",
		     (unsigned long long)before.segment_bytes);
	cr_assert(repack_is_due(w.store));
	zone_item_fail(world_item(&w, "z19.example"), strdup("a fault\n"), 1);
	cr_assert_eq(repack_run(w.store, &w.next_segment_id), ERR_OK);
	sweep(w.store);
	struct zone_store_totals after = zone_store_totals(w.store);
	cr_expect_eq(after.live_bytes, before.live_bytes);
	cr_expect_lt(after.segment_bytes, after.live_bytes + after.live_bytes / 4);
	cr_expect_eq(zone_item_state(world_item(&w, "z19.example")), ZONE_STALE, "its fault stays");
	publish_all(w.store);
	cr_expect_not(repack_is_due(w.store));
	world_fini(&w);
}
