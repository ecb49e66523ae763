/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/zone_source.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/skua-source-test-XXXXXX";
static char path[128];

static void put(const char *text)
{
	FILE *f = fopen(path, "w");
	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

/* As if it had been written long ago. The ctime can't be set back, so the source is told so by hand. */
static struct zone_source *read_settled(const char *text)
{
	struct zone_source *s;
	char *content;
	put(text);
	cr_assert_eq(zone_source_read(&s, &content, path, 1 << 20), ERR_OK);
	free(content);
	s->is_settled = true;
	return s;
}

static bool is_unchanged(const struct zone_source *s)
{
	return zone_source_is_unchanged(&s->stamp, s->is_settled, s->content_hash, s->path);
}

static void make_folder(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
}

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

TestSuite(zone_source, .init = make_folder, .fini = remove_folder);

Test(zone_source, reads_all_and_describes_it)
{
	struct zone_source *s;
	char *text;
	put("hello\n");
	cr_assert_eq(zone_source_read(&s, &text, path, 1 << 20), ERR_OK);
	cr_expect_str_eq(text, "hello\n");
	cr_expect_str_eq(s->path, path);
	cr_expect_eq(s->path_bytes, strlen(path) + 1);
	cr_expect_eq(s->stamp.size_bytes, 6);
	cr_expect_not(s->is_settled, "it was written this instant");
	cr_expect(is_unchanged(s));
	free(text);
	free(s);
}

Test(zone_source, an_empty_file_is_a_file)
{
	struct zone_source *s;
	char *text;
	put("");
	cr_assert_eq(zone_source_read(&s, &text, path, 0), ERR_OK);
	cr_expect_str_eq(text, "");
	cr_expect(is_unchanged(s));
	free(text);
	free(s);
}

Test(zone_source, what_is_no_file_is_refused)
{
	struct zone_source *s = NULL;
	char *text = NULL;
	struct zone_stamp stamp;
	cr_expect_eq(zone_source_read(&s, &text, path, 1 << 20), ERR_NOTFOUND);
	cr_expect_eq(zone_stamp_read(&stamp, path), ERR_NOTFOUND);
	cr_expect_eq(zone_source_read(&s, &text, folder, 1 << 20), ERR_UNSUPPORTED, "a folder");
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(zone_source_read(&s, &text, path, 1 << 20), ERR_UNSUPPORTED,
		     "a FIFO that nobody writes to must not be waited for");
	unlink(path);
	put("12345");
	cr_expect_eq(zone_source_read(&s, &text, path, 4), ERR_NOSPACE);
	cr_expect_eq(zone_source_read(&s, &text, path, 5), ERR_OK);
	free(s);
	free(text);
	char *endless = malloc(70000);
	memset(endless, 'x', 69999);
	endless[69999] = 0;
	cr_expect_eq(zone_source_read(&s, &text, endless, 5), ERR_RANGE);
	free(endless);
}

Test(zone_source, a_change_is_seen)
{
	struct zone_source *s = read_settled("one");
	cr_expect(is_unchanged(s));
	put("two");
	cr_expect_not(is_unchanged(s), "same length, other content");
	put("three");
	cr_expect_not(is_unchanged(s), "other length");
	unlink(path);
	cr_expect_not(is_unchanged(s), "gone");
	free(s);
}

Test(zone_source, a_touched_or_copied_file_is_the_same_by_its_content)
{
	struct zone_source *s = read_settled("one");
	const struct timespec times[2] = { { 1000, 0 }, { 1000, 0 } };
	cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	cr_expect(is_unchanged(s));
	unlink(path);
	put("one");
	cr_expect(is_unchanged(s));
	free(s);
}

Test(zone_source, a_settled_stamp_spares_the_reading)
{
	struct zone_source *s = read_settled("one");
	s->content_hash ^= 1; /* would be found out by reading */
	cr_expect(is_unchanged(s));
	s->is_settled = false;
	cr_expect_not(is_unchanged(s), "a fresh stamp proves nothing: the content decides");
	free(s);
}

Test(zone_source, an_old_file_is_settled)
{
	struct zone_source *s;
	char *text;
	put("one");
	usleep((useconds_t)(ZONE_SETTLE_NS / 1000) + 50000);
	cr_assert_eq(zone_source_read(&s, &text, path, 1 << 20), ERR_OK);
	cr_expect(s->is_settled);
	free(text);
	free(s);
}
