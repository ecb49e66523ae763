/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/zone/store_world.h"

#include "table/shm.h"

#include <pthread.h>
#include <sys/mman.h>

static struct world w;
static struct snapshot_holder holder;
static struct publisher *publisher;
static int ends[2]; /* [0] is the publisher's, [1] the supervisor's */

static struct publish_kept kept; /* what the supervisor of these tests keeps */

static void init(void)
{
	world_init(&w);
	publisher = world_publisher(&holder, ends);
	kept = (struct publish_kept){ .map_fd = -1 };
}

static void fini(void)
{
	snapshot_publish(&holder, NULL);
	publisher_destroy(publisher);
	for (size_t i = 0; i < kept.segment_count; i++)
		close(kept.segment[i].fd);
	free(kept.segment);
	if (kept.map_fd >= 0)
		close(kept.map_fd);
	close(ends[0]);
	close(ends[1]);
	world_fini(&w);
}

TestSuite(publish, .init = init, .fini = fini, .timeout = 30);

/* Keeps what the publisher sends, as `skua run` does; returns a letter a message: S M L D. */
static const char *receive(void)
{
	static char letters[64];
	size_t n = 0;
	struct link_msg m;
	int fd;
	while (n < sizeof(letters) - 1 && recv(ends[1], &m, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		cr_assert_eq(link_receive(ends[1], &m, &fd), ERR_OK);
		switch (m.type) {
		case LINK_SEGMENT:
			letters[n++] = 'S';
			cr_expect(shm_is_sealed(fd, true));
			kept.segment = realloc(kept.segment, (kept.segment_count + 1) * sizeof(*kept.segment));
			kept.segment[kept.segment_count++] = (struct publish_kept_segment){ .id = m.a, .fd = fd };
			break;
		case LINK_MAP:
			letters[n++] = 'M';
			cr_expect(shm_is_sealed(fd, true));
			if (kept.map_fd >= 0)
				close(kept.map_fd);
			kept.map_fd = fd;
			kept.generation = m.generation;
			break;
		case LINK_LIVE:
			letters[n++] = 'L';
			cr_expect_eq(m.a, LINK_PART_SLOWPATH);
			break;
		case LINK_SEGMENT_DROP: letters[n++] = 'D'; break;
		default: letters[n++] = '?';
		}
	}
	letters[n] = 0;
	return letters;
}

static uint64_t publish(void)
{
	uint64_t generation = 0;
	const char *why = "";
	cr_assert_eq(publisher_publish(publisher, w.store, &generation, &why), ERR_OK, "%s", why);
	return generation;
}

/* The serial that is served for a zone: 0 for SERVFAIL, -1 if nobody knows it. */
static int64_t served(const char *zone)
{
	const struct snapshot *s = snapshot_acquire(&holder);
	uint8_t lower[NAME_MAX_BYTES + 33] = { 0 }, offset[NAME_MAX_LABELS + 1];
	const uint8_t *name = world_name(zone);
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	name_lower(lower, name, bytes);
	for (unsigned i = 0; i <= name_labels(lower); i++)
		offset[i] = (uint8_t)name_suffix_offset(lower, i);
	struct zone_set_hit hit = zone_set_find(s->zones, lower, bytes, offset, name_labels(lower), 0);
	if (!hit.view)
		return -1;
	return hit.view->base ? (int64_t)hit.view->base->serial : 0;
}

static void two_zones(void)
{
	world_put_zone(&w, "a.example", 1, 3);
	world_put_zone(&w, "b.example", 2, 3);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	struct reload_result result;
	struct reload_request request = { .threads = 1,
					  .max_zone_bytes = 1 << 20,
					  .next_segment_id = publisher_segment_id(publisher) };
	cr_assert_eq(reload_run(w.store, &request, &result), ERR_OK);
	reload_result_fini(&result);
}

static void load(const char *zone)
{
	struct reload_result result;
	struct reload_request request = { .zone = world_name(zone),
					  .threads = 1,
					  .max_zone_bytes = 1 << 20,
					  .next_segment_id = publisher_segment_id(publisher) };
	cr_assert_eq(reload_run(w.store, &request, &result), ERR_OK);
	cr_assert_eq(result.loaded, 1);
	reload_result_fini(&result);
}

Test(publish, segments_then_map_then_live)
{
	two_zones();
	cr_expect_eq(publish(), 1);
	cr_expect_str_eq(receive(), "SML");
	cr_expect_eq(served("a.example"), 1);
	cr_expect_eq(served("www.b.example"), 2);
	cr_expect_eq(served("c.example"), -1);
	world_put_zone(&w, "a.example", 9, 3);
	load("a.example");
	cr_expect_eq(served("a.example"), 1, "not before it is published");
	cr_expect_eq(publish(), 2);
	cr_expect_str_eq(receive(), "SML");
	cr_expect_eq(served("a.example"), 9);
	cr_expect_eq(served("b.example"), 2);
	cr_expect_eq(publisher_generation(publisher), 2);
	cr_expect_eq(publisher_zones(publisher), 2);
	cr_assert_eq(publisher_drop(publisher, 1), ERR_OK);
	cr_expect_str_eq(receive(), "D");
}

Test(publish, zones_that_are_not_loaded_are_known)
{
	world_add(&w, "a.example");
	publish();
	cr_expect_str_eq(receive(), "ML");
	cr_expect_eq(served("a.example"), 0);
	cr_expect_eq(served("example"), -1);
}

Test(publish, settings_change_over_the_same_zones)
{
	struct settings settings;
	two_zones();
	publish();
	settings_defaults(&settings);
	settings.udp_payload_bytes = 999;
	cr_assert_eq(publisher_settings(publisher, &settings), ERR_OK);
	cr_expect_eq(snapshot_acquire(&holder)->settings.udp_payload_bytes, 999);
	cr_expect_eq(served("a.example"), 1);
	publish();
	cr_expect_eq(snapshot_acquire(&holder)->settings.udp_payload_bytes, 999, "the next map keeps them");
}

Test(publish, live_is_waited_for)
{
	two_zones();
	uint64_t generation = publish();
	cr_expect_not(publisher_wait_live(publisher, generation, 20));
	publisher_note_live(publisher, LINK_PART_SLOWPATH, generation);
	publisher_note_live(publisher, LINK_PART_FASTPATH, generation - 1);
	publisher_note_live(publisher, 99, generation);
	cr_expect_not(publisher_wait_live(publisher, generation, 20));
	publisher_note_live(publisher, LINK_PART_FASTPATH, generation);
	cr_expect(publisher_wait_live(publisher, generation, 20));
}

Test(publish, a_supervisor_that_has_gone_is_an_error)
{
	const char *why = NULL;
	uint64_t generation;
	two_zones();
	close(ends[1]);
	cr_expect_eq(publisher_publish(publisher, w.store, &generation, &why), ERR_CLOSED);
	cr_expect_not_null(why);
	ends[1] = dup(ends[0]);
}

/* The process after a crash: a new publisher and store, and what was kept. */
static enum err restart(const char **why)
{
	struct settings settings;
	settings_defaults(&settings);
	snapshot_publish(&holder, NULL);
	publisher_destroy(publisher);
	world_new_store(&w);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	cr_assert_eq(publisher_create(&publisher, ends[0], &holder, &settings), ERR_OK);
	enum err err = publisher_adopt(publisher, &kept, 2, why);
	enum err of_store = publisher_adopt_store(publisher, w.store);
	return err == ERR_OK ? of_store : err;
}

Test(publish, a_restart_serves_what_was_kept_and_reads_nothing)
{
	const char *why = "";
	two_zones();
	publish();
	world_put_zone(&w, "a.example", 9, 3);
	load("a.example");
	publish();
	receive();
	cr_assert_eq(restart(&why), ERR_OK, "%s", why);
	cr_expect_str_eq(receive(), "L");
	cr_expect_eq(served("a.example"), 9);
	cr_expect_eq(served("b.example"), 2);
	cr_expect_eq(publisher_generation(publisher), 2);
	world_expect(&w, NULL, false, 0, 2, 0); /* the notes tell that nothing has changed */
	world_put_zone(&w, "b.example", 3, 3);
	load("b.example");
	cr_expect_eq(publish(), 3);
	cr_expect_str_eq(receive(), "SML");
	cr_expect_eq(kept.segment[2].id, 3, "ids are not used again");
	cr_expect_eq(served("a.example"), 9);
	cr_expect_eq(served("b.example"), 3);
}

Test(publish, zones_that_are_no_longer_configured_go_with_the_next_map)
{
	const char *why = "";
	two_zones();
	world_put_zone(&w, "c.example", 3, 3);
	world_add(&w, "c.example");
	load("c.example");
	publish();
	receive();
	cr_assert_eq(restart(&why), ERR_OK, "%s", why);
	cr_expect_eq(served("c.example"), 3, "it is served until then");
	publish();
	cr_expect_eq(served("c.example"), -1);
	cr_expect_eq(served("a.example"), 1);
}

/* A copy of fd with one octet changed, sealed. */
static int damaged(int fd, size_t at)
{
	const void *map;
	void *copy;
	size_t bytes;
	int out;
	cr_assert_eq(shm_map(&map, &bytes, fd), ERR_OK);
	cr_assert_eq(shm_create(&out, "damaged", bytes), ERR_OK);
	cr_assert_eq(shm_map_writable(&copy, &bytes, out), ERR_OK);
	memcpy(copy, map, bytes);
	((uint8_t *)copy)[at < bytes ? at : bytes - 1] ^= 0xff;
	shm_unmap(map, bytes);
	shm_unmap(copy, bytes);
	cr_assert_eq(shm_seal(out), ERR_OK);
	return out;
}

static void replace(int *fd, int by)
{
	close(*fd);
	*fd = by;
}

Test(publish, damage_in_what_was_kept_is_refused)
{
	const char *why = NULL;
	two_zones();
	publish();
	receive();
	int good = dup(kept.map_fd);
	replace(&kept.map_fd, damaged(good, 0));
	cr_expect_eq(restart(&why), ERR_CORRUPT);
	cr_expect_not_null(why);
	cr_expect_eq(zone_store_segments(w.store), 0);
	cr_expect_eq(*publisher_segment_id(publisher), 2, "ids of what was refused are not used again");
	cr_expect_eq(publisher_generation(publisher), 1);
	replace(&kept.map_fd, dup(good));
	kept.generation = 5;
	cr_expect_eq(restart(&why), ERR_CORRUPT, "another generation");
	kept.generation = 1;
	kept.segment[0].id = 8;
	cr_expect_eq(restart(&why), ERR_CORRUPT, "another id");
	kept.segment[0].id = 1;
	replace(&kept.segment[0].fd, damaged(kept.segment[0].fd, 40));
	cr_expect_eq(restart(&why), ERR_CORRUPT, "an image");
	replace(&kept.segment[0].fd, memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	cr_expect_eq(restart(&why), ERR_DENIED, "not sealed");
	close(good);
	world_expect(&w, NULL, false, 2, 0, 0); /* and the files are read */
	publish();
	cr_expect_eq(served("a.example"), 1);
}

Test(publish, damaged_notes_cost_a_reading_only)
{
	const char *why = "";
	struct stat st;
	two_zones();
	publish();
	receive();
	cr_assert_eq(fstat(kept.segment[0].fd, &st), 0);
	struct segment_header h;
	cr_assert_eq(pread(kept.segment[0].fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
	replace(&kept.segment[0].fd, damaged(kept.segment[0].fd, h.notes));
	cr_assert_eq(restart(&why), ERR_OK, "%s", why);
	cr_expect_eq(served("a.example"), 1);
	world_expect(&w, NULL, false, 2, 0, 0);
}

Test(publish, what_a_process_before_has_verified_is_not_walked_again)
{
	const char *why = "";
	two_zones();
	publish();
	receive();
	int good = dup(kept.segment[0].fd);
	replace(&kept.segment[0].fd, damaged(good, sizeof(struct segment_header) + offsetof(struct zone_image, node_count)));
	cr_expect_eq(restart(&why), ERR_CORRUPT, "the damage would be found");
	kept.segment[0].is_verified = kept.is_map_verified = true;
	cr_expect_eq(restart(&why), ERR_OK, "%s", why);
	replace(&kept.segment[0].fd, good);
	cr_assert_eq(restart(&why), ERR_OK, "%s", why);
	cr_expect_eq(served("a.example"), 1);
	world_expect(&w, NULL, false, 0, 2, 0);
	world_put_zone(&w, "b.example", 3, 3);
	load("b.example");
	publish();
	receive();
	cr_expect_eq(served("a.example"), 1);
	cr_expect_eq(served("b.example"), 3);
	/* A map names what is not there: that is looked at in any case. */
	kept.segment_count--;
	kept.is_map_verified = true;
	cr_expect_eq(restart(&why), ERR_CORRUPT);
	kept.segment_count++;
}

Test(publish, what_was_kept_without_a_map_is_dropped_and_its_ids_are_not_used)
{
	const char *why = "";
	two_zones();
	publish();
	receive();
	replace(&kept.map_fd, -1);
	cr_expect_eq(restart(&why), ERR_NOTFOUND);
	cr_expect_eq(*publisher_segment_id(publisher), 2);
	world_expect(&w, NULL, false, 2, 0, 0);
	publish();
	receive();
	cr_assert_eq(publisher_drop_orphans(publisher), ERR_OK);
	cr_expect_str_eq(receive(), "D");
	kept.map_fd = kept.map_fd < 0 ? -1 : kept.map_fd;
}

/* Maps that are changed copies of the last one say the same as maps made from the beginning. */
Test(publish, changes_alone_make_the_next_map)
{
	const char *why = "";
	uint32_t serial[2] = { 1, 2 };
	two_zones();
	publish();
	for (uint32_t i = 3; i < 40; i++) {
		bool is_second = i % 3 == 0;
		const char *zone = is_second ? "b.example" : "a.example";
		serial[is_second] = i;
		world_put_zone(&w, zone, i, i % 5);
		load(zone);
		cr_expect_not(zone_store_is_reshaped(w.store));
		cr_expect_not_null(zone_store_next_changed(w.store, NULL));
		publish();
		cr_expect_null(zone_store_next_changed(w.store, NULL));
		receive();
		cr_expect_eq(served("a.example"), serial[0]);
		cr_expect_eq(served("b.example"), serial[1]);
		if (i % 7 == 0) {
			cr_assert_eq(restart(&why), ERR_OK, "%s", why);
			cr_expect_not(zone_store_is_reshaped(w.store), "the map that was adopted is as the store");
			receive();
		}
		if (i == 20) { /* another shape */
			world_put_zone(&w, "c.example", 77, 3);
			world_add(&w, "c.example");
			cr_expect(zone_store_is_reshaped(w.store));
			publish();
			cr_expect_eq(served("c.example"), 0);
			load("c.example");
			publish();
			cr_expect_eq(served("c.example"), 77);
			cr_expect_eq(served("b.example"), serial[1]);
			cr_assert_eq(zone_store_remove(w.store, world_name("c.example")), ERR_OK);
			publish();
			cr_expect_eq(served("c.example"), -1);
			receive();
		}
	}
	zone_item_unload(world_item(&w, "a.example"));
	publish();
	cr_expect_eq(served("a.example"), 0);
	receive();
}

/* A policy that lets everybody into a group. */
static struct policy *policy_of(uint16_t group)
{
	const struct policy_group groups[3] = { { 0 } };
	const struct policy_prefix all[] = { { .family = 4, .group = group }, { .family = 6, .group = group } };
	struct policy *p;
	const char *why;
	size_t bad;
	int fd;
	cr_assert_eq(policy_create(&fd, groups, 3, all, 2, &bad), ERR_OK);
	cr_assert_eq(policy_attach(&p, fd, &why), ERR_OK);
	close(fd);
	return p;
}
static int group_now(void)
{
	static const uint8_t anybody[16] = { 1 };
	const struct snapshot *s = snapshot_acquire(&holder);
	return s && s->policy ? policy_find(s->policy, 4, anybody) : -1;
}

Test(publish, a_policy_is_live_at_once_and_stays_with_new_zones_and_settings)
{
	struct settings settings;
	settings_defaults(&settings);
	cr_assert_eq(publisher_policy(publisher, policy_of(1)), ERR_OK, "before there is a snapshot");
	cr_expect_eq(group_now(), -1);
	publisher_cache(publisher, (const void *)&w); /* nobody looks at it here */
	two_zones();
	publish();
	receive();
	cr_expect_eq(group_now(), 1);
	cr_expect_eq((const void *)snapshot_acquire(&holder)->cache, (const void *)&w);
	cr_assert_eq(publisher_policy(publisher, policy_of(2)), ERR_OK);
	cr_expect_eq(group_now(), 2);
	cr_assert_eq(publisher_settings(publisher, &settings), ERR_OK);
	cr_expect_eq(group_now(), 2);
	publish();
	cr_expect_eq(group_now(), 2);
	cr_expect_eq(served("a.example"), 1);
	cr_assert_eq(publisher_policy(publisher, NULL), ERR_OK);
	cr_expect_eq(group_now(), -1, "nobody may ask for what is not ours");
	cr_expect_eq((const void *)snapshot_acquire(&holder)->cache, (const void *)&w);
}
