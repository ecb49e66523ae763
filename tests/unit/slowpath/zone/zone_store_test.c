/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/zone/store_world.h"

Test(zone_store, zones_come_and_go)
{
	struct zone_store *s;
	char text[32];
	cr_assert_eq(zone_store_create(&s), ERR_OK);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "Zone%d.example", i);
		cr_assert_eq(zone_store_add(s, world_name(text), "/f"), ERR_OK);
	}
	cr_expect_eq(zone_store_zones(s), 1000);
	cr_expect_eq(zone_store_add(s, world_name("zONE7.example"), "/g"), ERR_EXISTS);
	for (int i = 0; i < 1000; i += 2) {
		snprintf(text, sizeof(text), "zone%d.EXAMPLE", i);
		cr_assert_eq(zone_store_remove(s, world_name(text)), ERR_OK);
		cr_assert_eq(zone_store_remove(s, world_name(text)), ERR_NOTFOUND);
	}
	cr_expect_eq(zone_store_zones(s), 500);
	for (uint32_t i = 0; i < 500; i++) {
		cr_expect_eq(zone_store_item(s, i)->index, i);
		cr_expect_eq(zone_store_find(s, zone_store_item(s, i)->name), zone_store_item(s, i));
		cr_expect_str_eq(zone_store_item(s, i)->file, "/f");
		cr_expect_eq(zone_item_state(zone_store_item(s, i)), ZONE_PENDING);
	}
	cr_expect_null(zone_store_find(s, world_name("zone2.example")));
	cr_expect(zone_store_find(s, world_name("zone3.example")));
	zone_store_destroy(s);
	zone_store_destroy(NULL);
}

Test(zone_store, what_cannot_be_is_refused)
{
	struct zone_store *s;
	uint8_t endless[NAME_MAX_BYTES];
	char *path = malloc(10000);
	memset(endless, 1, sizeof(endless));
	memset(path, 'x', 9999);
	path[9999] = 0;
	cr_assert_eq(zone_store_create(&s), ERR_OK);
	cr_expect_eq(zone_store_add(s, endless, "/f"), ERR_ARGUMENT);
	cr_expect_eq(zone_store_add(s, world_name("a."), path), ERR_RANGE);
	cr_expect_null(zone_store_find(s, endless));
	cr_expect_eq(zone_store_zones(s), 0);
	free(path);
	zone_store_destroy(s);
}

Test(zone_store, segments_count_what_is_served)
{
	struct world w;
	world_init(&w);
	world_put_zone(&w, "a.example", 1, 3);
	world_put_zone(&w, "b.example", 1, 3);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	struct zone_store_totals t = zone_store_totals(w.store);
	cr_expect(t.zones == 2 && t.pending == 2 && t.served == 0 && t.segments == 0);
	world_expect(&w, NULL, false, 2, 0, 0);
	t = zone_store_totals(w.store);
	cr_expect(t.served == 2 && t.pending == 0 && t.broken == 0 && t.stale == 0);
	cr_expect_eq(t.records, 2 * 6);
	uint64_t live = t.live_bytes;
	cr_expect_eq(live, world_item(&w, "a.example")->image->size_bytes + world_item(&w, "b.example")->image->size_bytes);
	cr_expect_gt(t.segment_bytes, live);
	cr_assert_eq(zone_store_remove(w.store, world_name("a.example")), ERR_OK);
	t = zone_store_totals(w.store);
	cr_expect(t.zones == 1 && t.served == 1);
	cr_expect_lt(t.live_bytes, live);
	for (size_t i = 0; i < zone_store_segments(w.store);)
		if (zone_store_segment(w.store, i)->live_zones == 0)
			zone_store_drop_segment(w.store, i);
		else
			i++;
	cr_expect_eq(zone_store_segments(w.store), 1);
	world_fini(&w);
}
