/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/zone/store_world.h"

#include <signal.h>
#include <sys/resource.h>

static struct world w;
static struct zone_image_files files;

static void init(void)
{
	world_init(&w);
	world_put_zone(&w, "a.example", 1, 3);
	world_put_zone(&w, "b.example", 2, 40);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	zone_image_files_init(&files, w.folder, 0);
	cr_assert_not_null(files.folder);
}

static void fini(void)
{
	zone_image_files_fini(&files);
	world_fini(&w);
}

TestSuite(zone_image_file, .init = init, .fini = fini, .timeout = 120);

/* One segment with both zones, written to a file. */
static void load_and_write(void)
{
	struct reload_result result;
	struct reload_request request = { .threads = 1, .max_zone_bytes = 1 << 20, .next_segment_id = &w.next_segment_id };
	cr_assert_eq(reload_run(w.store, &request, &result), ERR_OK);
	cr_assert_eq(result.loaded, 2);
	cr_assert_eq(zone_store_segments(w.store), 1);
	zone_image_files_write(&files, w.store, NULL);
	cr_assert_eq(world_files(&w, "zones", ".img"), 1);
	cr_assert_eq(world_files(&w, "zones", ".tmp"), 0);
}

/* A new process with nothing but the disk. */
static uint64_t start_again(void)
{
	world_new_store(&w);
	world_add(&w, "a.example");
	world_add(&w, "b.example");
	zone_image_files_fini(&files);
	zone_image_files_init(&files, w.folder, 0);
	return zone_image_files_read(&files, w.store, &w.next_segment_id);
}

static const char *image_path(uint64_t number)
{
	char name[64];
	snprintf(name, sizeof(name), "zones/%016llx.img", (unsigned long long)number);
	return world_path(&w, name);
}

static uint8_t *slurp(const char *path, size_t *bytes)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	cr_assert(fd >= 0 && fstat(fd, &st) == 0, "%s", path);
	*bytes = (size_t)st.st_size;
	uint8_t *content = malloc(*bytes);
	cr_assert_eq(read(fd, content, *bytes), (ssize_t)*bytes);
	close(fd);
	return content;
}

static void spill(const char *path, const void *content, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	cr_assert(fd >= 0 && write(fd, content, bytes) == (ssize_t)bytes, "%s", path);
	close(fd);
}

Test(zone_image_file, a_cold_start_finds_its_zones_and_reads_no_master_file)
{
	load_and_write();
	cr_assert_eq(start_again(), 2);
	cr_expect_eq(zone_item_state(world_item(&w, "a.example")), ZONE_PENDING,
		     "nothing is served before the stamps were looked at");
	world_expect(&w, NULL, false, 0, 2, 0);
	cr_expect_eq(world_serial(&w, "a.example"), 1);
	cr_expect_eq(world_serial(&w, "b.example"), 2);
	cr_expect_eq(zone_item_state(world_item(&w, "a.example")), ZONE_SERVED);
	zone_image_files_write(&files, w.store, NULL);
	cr_expect_eq(world_files(&w, "zones", ".img"), 1, "it is not written twice");
}

Test(zone_image_file, a_changed_master_file_wins)
{
	load_and_write();
	world_put_zone(&w, "a.example", 11, 3);
	cr_assert_eq(start_again(), 2);
	world_expect(&w, NULL, false, 1, 1, 0);
	cr_expect_eq(world_serial(&w, "a.example"), 11);
	cr_expect_eq(world_serial(&w, "b.example"), 2);
}

Test(zone_image_file, a_changed_and_broken_master_file_is_not_papered_over)
{
	load_and_write();
	world_put(&w, "a.example", "rubbish\n");
	cr_assert_eq(start_again(), 2);
	world_expect(&w, NULL, false, 0, 1, 1);
	cr_expect_eq(zone_item_state(world_item(&w, "a.example")), ZONE_BROKEN);
}

Test(zone_image_file, damage_at_every_kind_of_place_is_found)
{
	size_t bytes;
	load_and_write();
	uint8_t *content = slurp(image_path(1), &bytes);
	size_t step = bytes / 97 + 1; /* everywhere in images and notes, each octet of the headers */
	for (size_t at = 0; at < bytes; at += at < 128 ? 1 : step) {
		content[at] ^= 0x10;
		spill(image_path(1), content, bytes);
		content[at] ^= 0x10;
		cr_assert_eq(start_again(), 0, "octet %zu", at);
		cr_assert_eq(world_files(&w, "zones", ".img"), 0, "octet %zu: the file is removed", at);
	}
	for (size_t cut = 0; cut < bytes; cut += cut < 128 ? 7 : step) {
		spill(image_path(1), content, cut);
		cr_assert_eq(start_again(), 0, "cut to %zu", cut);
	}
	content = realloc(content, bytes + 8);
	memset(content + bytes, 0, 8);
	spill(image_path(1), content, bytes + 8);
	cr_expect_eq(start_again(), 0, "octets behind the end");
	spill(image_path(1), content, bytes);
	cr_expect_eq(start_again(), 2, "as it was");
	free(content);
	world_put_zone(&w, "a.example", 5, 3);
	spill(image_path(1), "junk", 4);
	cr_expect_eq(start_again(), 0);
	world_expect(&w, NULL, false, 2, 0, 0); /* and all is loaded from the master files */
}

Test(zone_image_file, what_is_no_image_file_is_left_alone)
{
	load_and_write();
	spill(world_path(&w, "zones/README"), "x", 1);
	spill(world_path(&w, "zones/1.img"), "x", 1);
	spill(world_path(&w, "zones/00000000000000ZZ.img"), "x", 1);
	spill(world_path(&w, "zones/0000000000000007.tmp"), "x", 1);
	cr_expect_eq(start_again(), 2);
	cr_expect_eq(world_files(&w, "zones", "README"), 1);
	cr_expect_eq(world_files(&w, "zones", ".img"), 3);
	cr_expect_eq(world_files(&w, "zones", ".tmp"), 0, "what an interrupted write left is removed");
	cr_assert_eq(symlink(world_path(&w, "a.example"), image_path(9)), 0);
	cr_expect_eq(start_again(), 2);
	cr_expect_eq(world_files(&w, "zones", ".img"), 3, "a link is not followed");
}

Test(zone_image_file, the_newest_file_of_a_zone_counts)
{
	load_and_write();
	world_put_zone(&w, "a.example", 7, 3);
	world_expect(&w, "a.example", false, 1, 0, 0);
	zone_image_files_write(&files, w.store, NULL);
	cr_assert_eq(world_files(&w, "zones", ".img"), 2);
	cr_assert_eq(start_again(), 2);
	cr_expect_eq(world_serial(&w, "a.example"), 7);
	cr_expect_eq(world_serial(&w, "b.example"), 2);
	world_expect(&w, NULL, false, 0, 2, 0);
}

Test(zone_image_file, zones_that_left_the_configuration_take_their_file_along)
{
	load_and_write();
	world_new_store(&w);
	cr_expect_eq(zone_image_files_read(&files, w.store, &w.next_segment_id), 0);
	cr_expect_eq(zone_store_segments(w.store), 0);
	cr_expect_eq(world_files(&w, "zones", ".img"), 0);
}

Test(zone_image_file, a_zone_that_got_another_master_file_is_read)
{
	load_and_write();
	world_new_store(&w);
	cr_assert_eq(zone_store_add(w.store, world_name("a.example"), world_path(&w, "b.example")), ERR_OK);
	cr_expect_eq(zone_image_files_read(&files, w.store, &w.next_segment_id), 0);
}

Test(zone_image_file, a_full_disk_stops_nothing)
{
	struct rlimit limit = { 200, 200 };
	world_expect(&w, NULL, false, 2, 0, 0);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	zone_image_files_write(&files, w.store, NULL);
	cr_expect_eq(world_files(&w, "zones", ".img"), 0);
	cr_expect_eq(world_files(&w, "zones", ".tmp"), 0);
	cr_expect_eq(world_serial(&w, "a.example"), 1);
	cr_expect(zone_store_segment(w.store, 0)->is_file_refused);
	zone_image_files_retry(&files, w.store);
	cr_expect_not(zone_store_segment(w.store, 0)->is_file_refused);
}

Test(zone_image_file, without_a_folder_it_is_off)
{
	struct zone_image_files off;
	zone_image_files_init(&off, "/proc/no/such/folder", 0);
	cr_expect_null(off.folder);
	world_expect(&w, NULL, false, 2, 0, 0);
	zone_image_files_write(&off, w.store, NULL);
	zone_image_files_retry(&off, w.store);
	zone_image_files_match(&off, w.store);
	zone_image_files_forget(&off, zone_store_segment(w.store, 0));
	cr_expect_eq(zone_image_files_read(&off, w.store, &w.next_segment_id), 0);
	zone_image_files_fini(&off);
}

Test(zone_image_file, small_segments_are_not_worth_a_file)
{
	world_expect(&w, NULL, false, 2, 0, 0);
	files.min_bytes = 1 << 20;
	zone_image_files_write(&files, w.store, NULL);
	cr_expect_eq(world_files(&w, "zones", ".img"), 0);
}

Test(zone_image_file, a_restart_knows_its_files_again_and_clears_the_others)
{
	load_and_write();
	size_t bytes;
	uint8_t *content = slurp(image_path(1), &bytes);
	spill(image_path(2), "junk", 4);
	spill(image_path(3), content, bytes / 2);
	struct store_segment *s = zone_store_segment(w.store, 0);
	s->file_number = 0; /* as after adopting it */
	zone_image_files_match(&files, w.store);
	cr_expect_eq(s->file_number, 1);
	cr_expect_eq(world_files(&w, "zones", ".img"), 1);
	zone_image_files_forget(&files, s);
	cr_expect_eq(world_files(&w, "zones", ".img"), 0);
	cr_expect_eq(s->file_number, 0);
	free(content);
}
