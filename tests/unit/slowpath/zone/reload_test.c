/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/zone/store_world.h"

static struct world w;

static void init(void) { world_init(&w); }
static void fini(void) { world_fini(&w); }

TestSuite(reload, .init = init, .fini = fini, .timeout = 60);

static const char broken[] =
	"$TTL 300\n@ SOA ns hostmaster 7 3600 900 604800 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.\nmail MX mail\n";

Test(reload, good_files_are_served)
{
	world_put_zone(&w, "a.example", 11, 2);
	world_put_zone(&w, "b.example", 22, 200);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	world_expect(&w, NULL, false, 2, 0, 0);
	cr_expect_eq(world_serial(&w, "a.example"), 11);
	cr_expect_eq(world_serial(&w, "b.example"), 22);
	cr_expect_eq(zone_item_state(world_item(&w, "A.example")), ZONE_SERVED);
	cr_expect_eq(world_item(&w, "b.example")->note->source_count, 1);
}

Test(reload, unchanged_files_are_left_alone_unless_forced)
{
	world_put_zone(&w, "a.example", 1, 2);
	world_add(&w, "a.example");
	world_expect(&w, NULL, false, 1, 0, 0);
	const struct zone_image *before = world_item(&w, "a.example")->image;
	world_expect(&w, NULL, false, 0, 1, 0);
	cr_expect_eq(world_item(&w, "a.example")->image, before);
	world_expect(&w, NULL, true, 1, 0, 0);
	cr_expect_neq(world_item(&w, "a.example")->image, before);
	world_put_zone(&w, "a.example", 2, 2);
	world_expect(&w, NULL, false, 1, 0, 0);
	cr_expect_eq(world_serial(&w, "a.example"), 2);
}

Test(reload, a_broken_new_file_leaves_the_old_zone_and_says_why)
{
	char place[600];
	world_put_zone(&w, "a.example", 1, 2);
	world_put_zone(&w, "b.example", 1, 2);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	world_expect(&w, NULL, false, 2, 0, 0);
	const struct zone_image *before = world_item(&w, "a.example")->image;
	world_put(&w, "a.example", broken);
	world_put_zone(&w, "b.example", 2, 2);
	struct reload_result r = world_reload(&w, NULL, false);
	cr_expect_eq(r.loaded, 1, "the other zone is not held up");
	cr_expect_eq(r.failed, 1);
	cr_assert_eq(r.fault_count, 1);
	cr_expect(name_equal(r.fault[0].zone, world_name("a.example")));
	cr_expect_eq(r.fault[0].errors, 2);
	snprintf(place, sizeof(place), "%s:5:", world_path(&w, "a.example"));
	cr_expect(strstr(r.fault[0].lines, place), "%s names line 5", r.fault[0].lines);
	snprintf(place, sizeof(place), "%s:6:", world_path(&w, "a.example"));
	cr_expect(strstr(r.fault[0].lines, place), "%s names line 6", r.fault[0].lines);
	reload_result_fini(&r);
	const struct zone_item *a = world_item(&w, "a.example");
	cr_expect_eq(a->image, before);
	cr_expect_eq(zone_item_state(a), ZONE_STALE);
	cr_expect_eq(a->fault_errors, 2);
	cr_expect_eq(world_serial(&w, "b.example"), 2);
	world_put_zone(&w, "a.example", 3, 2);
	world_expect(&w, "a.example", false, 1, 0, 0);
	cr_expect_eq(zone_item_state(a), ZONE_SERVED);
	cr_expect_null(a->fault);
	cr_expect_eq(world_serial(&w, "a.example"), 3);
}

Test(reload, the_old_file_put_back_ends_the_fault)
{
	world_put_zone(&w, "a.example", 1, 2);
	world_add(&w, "a.example");
	world_expect(&w, NULL, false, 1, 0, 0);
	world_put(&w, "a.example", broken);
	world_expect(&w, NULL, false, 0, 0, 1);
	world_put_zone(&w, "a.example", 1, 2);
	world_expect(&w, NULL, false, 0, 1, 0);
	cr_expect_eq(zone_item_state(world_item(&w, "a.example")), ZONE_SERVED);
}

Test(reload, a_zone_that_was_never_good_is_broken)
{
	world_put(&w, "a.example", broken);
	world_put(&w, "b.example", "@ 300 NS ns.other.\n"); /* reads well, but is no zone */
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	world_add(&w, "c.example"); /* no file */
	world_expect(&w, NULL, false, 0, 0, 3);
	static const char *const zones[] = { "a.example", "b.example", "c.example" };
	for (int i = 0; i < 3; i++) {
		const struct zone_item *item = world_item(&w, zones[i]);
		cr_expect_eq(zone_item_state(item), ZONE_BROKEN, "%s", zones[i]);
		cr_expect(item->fault && strlen(item->fault) > 0, "%s", zones[i]);
		cr_expect_null(item->image);
	}
	cr_expect(strstr(world_item(&w, "c.example")->fault, "no such file"));
	cr_expect_eq(zone_store_totals(w.store).broken, 3);
}

Test(reload, only_the_first_errors_are_quoted_all_are_counted)
{
	FILE *f = fopen(world_path(&w, "a.example"), "w");
	for (int i = 0; i < 300; i++)
		fputs("www IN A nonsense\n", f);
	fclose(f);
	world_add(&w, "a.example");
	struct reload_result r = world_reload(&w, NULL, false);
	cr_assert_eq(r.fault_count, 1);
	unsigned lines = 0;
	for (const char *c = r.fault[0].lines; *c; c++)
		lines += *c == '\n';
	cr_expect_eq(lines, RELOAD_FAULT_LINES);
	cr_expect_geq(r.fault[0].errors, 300);
	reload_result_fini(&r);
}

Test(reload, a_file_of_rubbish_is_not_read_to_its_end)
{
	FILE *f = fopen(world_path(&w, "a.example"), "w");
	for (int i = 0; i < 20000; i++)
		fputs("www IN A nonsense\n", f);
	fclose(f);
	world_add(&w, "a.example");
	struct reload_result r = world_reload(&w, NULL, false);
	cr_expect_leq(r.fault[0].errors, ZONE_LOAD_MAX_ERRORS + 1);
	reload_result_fini(&r);
}

Test(reload, one_zone_alone)
{
	world_put_zone(&w, "a.example", 1, 2);
	world_put_zone(&w, "b.example", 1, 2);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	world_expect(&w, NULL, false, 2, 0, 0);
	world_put_zone(&w, "a.example", 2, 2);
	world_put_zone(&w, "b.example", 2, 2);
	world_expect(&w, "B.example", false, 1, 0, 0);
	cr_expect_eq(world_serial(&w, "a.example"), 1);
	cr_expect_eq(world_serial(&w, "b.example"), 2);
	struct reload_result r;
	struct reload_request request = {
		.zone = world_name("c.example"), .threads = 1, .max_zone_bytes = 1 << 20, .next_segment_id = &w.next_segment_id
	};
	cr_expect_eq(reload_run(w.store, &request, &r), ERR_NOTFOUND);
	reload_result_fini(&r);
}

Test(reload, included_files_are_part_of_the_zone)
{
	world_put(&w, "a.example", "$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\n$INCLUDE hosts\n");
	world_put(&w, "hosts", "ns A 192.0.2.1\n");
	world_add(&w, "a.example");
	world_expect(&w, NULL, false, 1, 0, 0);
	cr_expect_eq(world_item(&w, "a.example")->note->source_count, 2);
	world_expect(&w, NULL, false, 0, 1, 0);
	world_put(&w, "hosts", "ns A 192.0.2.1\nwww A 192.0.2.2\n");
	world_expect(&w, NULL, false, 1, 0, 0);
	cr_expect_eq(world_item(&w, "a.example")->image->rr_count, 4);
	unlink(world_path(&w, "hosts"));
	world_expect(&w, NULL, false, 0, 0, 1);
	cr_expect(strstr(world_item(&w, "a.example")->fault, ":4:"), "%s", world_item(&w, "a.example")->fault);
}

Test(reload, a_file_that_includes_itself_ends)
{
	world_put(&w, "a.example", "$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n$INCLUDE a.example\n");
	world_add(&w, "a.example");
	world_expect(&w, NULL, false, 0, 0, 1);
}

Test(reload, a_zone_may_not_take_more_memory_than_allowed)
{
	world_put_zone(&w, "a.example", 1, 5000);
	world_add(&w, "a.example");
	struct stat st;
	cr_assert_eq(stat(world_path(&w, "a.example"), &st), 0);
	uint64_t limits[] = { (uint64_t)st.st_size - 1, (uint64_t)st.st_size + 1000 };
	for (int i = 0; i < 2; i++) {
		struct reload_result r;
		struct reload_request request = { .threads = 1,
						  .max_zone_bytes = limits[i],
						  .next_segment_id = &w.next_segment_id };
		cr_assert_eq(reload_run(w.store, &request, &r), ERR_OK);
		cr_expect_eq(r.failed, 1, "limit %d", i);
		cr_expect(r.fault[0].lines && strstr(r.fault[0].lines, "max-zone-bytes"), "%s", r.fault[0].lines);
		reload_result_fini(&r);
	}
}

Test(reload, many_zones_share_segments)
{
	enum { ZONES = 400 };
	char name[32];
	for (unsigned i = 0; i < ZONES; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		world_put_zone(&w, name, i + 1, i % 20);
		world_add(&w, name);
	}
	world_expect(&w, NULL, false, ZONES, 0, 0);
	cr_expect_leq(zone_store_segments(w.store), 2, "one a thread");
	for (unsigned i = 0; i < ZONES; i++) {
		snprintf(name, sizeof(name), "z%u.example", i);
		const struct zone_item *item = world_item(&w, name);
		cr_assert_eq(world_serial(&w, name), i + 1);
		const struct segment_note_source *s = segment_note_source_next(item->note, NULL);
		cr_assert_str_eq(segment_note_source_path(s), item->file, "notes and images have one order");
	}
	world_expect(&w, NULL, false, 0, ZONES, 0);
}

Test(reload, a_stop_leaves_the_rest_unread)
{
	_Atomic bool stop = true;
	world_put_zone(&w, "a.example", 1, 2);
	world_add(&w, "a.example");
	struct reload_result r;
	struct reload_request request = {
		.threads = 2, .max_zone_bytes = 1 << 20, .stop = &stop, .next_segment_id = &w.next_segment_id
	};
	cr_assert_eq(reload_run(w.store, &request, &r), ERR_OK);
	cr_expect_eq(r.unread, 1);
	cr_expect_eq(r.loaded + r.failed + r.unchanged, 0);
}
