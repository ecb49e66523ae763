/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_set_private.h"
#include "table/shm.h"
#include "table/zone_build.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "dns/message.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- zones, segments, maps for tests ---------------------------------------------------------------------------------- */

static size_t name_of(uint8_t out[static NAME_MAX_BYTES], const char *text)
{
	const char *why = "";
	size_t bytes = name_from_text(out, text, strlen(text), NULL, &why);
	cr_assert(bytes, "%s: %s", text, why);
	return bytes;
}

/* SOA with the serial, and NS. */
static struct zone_build *make_zone(const char *text, uint32_t serial)
{
	uint8_t name[NAME_MAX_BYTES], soa[22] = { 0 }, root[1] = { 0 };
	size_t bytes = name_of(name, text);
	struct zone_build *b;
	struct master_record r = { .owner = name, .owner_bytes = bytes, .class_ = 1, .ttl_s = 60 };
	cr_assert_eq(zone_build_create(&b, name, 1, 1 << 20), ERR_OK);
	store_be32(soa + 2, serial);
	r.type = 6, r.rdata = soa, r.rdata_bytes = sizeof(soa);
	cr_assert_eq(zone_build_add(b, &r), ERR_OK);
	r.type = 2, r.rdata = root, r.rdata_bytes = 1;
	cr_assert_eq(zone_build_add(b, &r), ERR_OK);
	return b;
}

struct packed { /* a segment in the making: plain memory, so that tests can spoil it */
	uint8_t *bytes;
	size_t size_bytes;
	uint32_t image_count;
	uint64_t offset[64];
};

static void pack_zone(struct packed *p, const char *text, uint32_t serial)
{
	const char *why = "";
	size_t image_bytes;
	struct zone_build *b = make_zone(text, serial);
	cr_assert_eq(zone_compile_bytes(b, &image_bytes, &why), ERR_OK, "%s", why);
	size_t at = p->size_bytes ? p->size_bytes : sizeof(struct segment_header), end = at + ((image_bytes + 7) & ~(size_t)7);
	p->bytes = realloc(p->bytes, end);
	memset(p->bytes + p->size_bytes, 0, end - p->size_bytes);
	cr_assert_eq(zone_compile(b, p->bytes + at, image_bytes), ERR_OK);
	zone_build_destroy(b);
	p->offset[p->image_count++] = at;
	p->size_bytes = end;
}

static void pack_header(struct packed *p, uint32_t id)
{
	*(struct segment_header *)p->bytes = (struct segment_header){ .magic = SEGMENT_MAGIC,
								      .version = SEGMENT_VERSION,
								      .size_bytes = p->size_bytes,
								      .id = id,
								      .image_count = p->image_count,
								      .notes = p->size_bytes };
}

static int sealed(const void *bytes, size_t size_bytes)
{
	int fd;
	void *map;
	size_t got;
	cr_assert_eq(shm_create(&fd, "test", size_bytes), ERR_OK);
	cr_assert_eq(shm_map_writable(&map, &got, fd), ERR_OK);
	memcpy(map, bytes, size_bytes);
	shm_unmap(map, got);
	cr_assert_eq(shm_seal(fd), ERR_OK);
	return fd;
}

static enum err attach_packed(struct segment **out, const struct packed *p, const char **why)
{
	int fd = sealed(p->bytes, p->size_bytes);
	enum err err = segment_attach(out, fd, why);
	close(fd);
	return err;
}

static struct segment *make_segment(struct packed *p, uint32_t id, const char *const *names, size_t count)
{
	struct segment *s;
	const char *why = "";
	*p = (struct packed){ 0 };
	for (size_t i = 0; i < count; i++)
		pack_zone(p, names[i], (uint32_t)i + 1);
	pack_header(p, id);
	cr_assert_eq(attach_packed(&s, p, &why), ERR_OK, "%s", why);
	return s;
}

static void *finish_map(struct zone_map_build *b, size_t *bytes)
{
	*bytes = zone_map_build_bytes(b);
	void *map = calloc(1, *bytes);
	cr_assert_eq(zone_map_build_finish(b, map), ERR_OK);
	zone_map_build_destroy(b);
	return map;
}

static enum err attach_map(struct zone_set **out, const void *map, size_t bytes, struct segment *const *segments, size_t count,
			   const char **why)
{
	int fd = sealed(map, bytes);
	enum err err = zone_set_attach(out, fd, segments, count, why);
	close(fd);
	return err;
}

/* The longest zone at or above text, as "apex#label", "unusable#label" or "none". */
static const char *find(const struct zone_set *set, const char *text, unsigned skip)
{
	static char out[NAME_TEXT_MAX_BYTES + 16];
	uint8_t name[NAME_MAX_BYTES + 33] = { 0 }, offset[NAME_MAX_LABELS + 1];
	size_t bytes = name_of(name, text);
	name_lower(name, name, bytes);
	unsigned labels = name_labels(name);
	for (unsigned i = 0; i <= labels; i++)
		offset[i] = (uint8_t)name_suffix_offset(name, i);
	struct zone_set_hit hit = zone_set_find(set, name, bytes, offset, labels, skip);
	if (!hit.view)
		return "none";
	if (!hit.view->base) {
		snprintf(out, sizeof(out), "%s#%u", hit.view->flags & ZONE_VIEW_UNUSABLE ? "unusable" : "?", hit.zone_label);
		return out;
	}
	size_t n = name_to_text(out, zone_node_name(zone_ptr(hit.view->base, hit.view->base->apex)));
	snprintf(out + n, sizeof(out) - n, "#%u", hit.zone_label);
	return out;
}

/* --- finding ---------------------------------------------------------------------------------------------------------- */

static const char *const names[] = { "example.", "a.example.", "B.a.Example.", "com.", "x.y.z.org.", "168.192.in-addr.arpa." };

static struct zone_set *make_set(struct packed *p, struct segment **segment, bool with_root)
{
	struct zone_map_build *b;
	struct zone_set *set;
	size_t bytes;
	const char *why = "";
	uint8_t name[NAME_MAX_BYTES];
	*segment = make_segment(p, 7, names, ARRAY_LEN(names));
	cr_assert_eq(zone_map_build_create(&b, 42), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		name_of(name, names[i]);
		cr_assert_eq(zone_map_build_add(b, name, 7, p->offset[i], 1000 + (int64_t)i), ERR_OK);
	}
	name_of(name, "broken.example.");
	cr_assert_eq(zone_map_build_add_unusable(b, name), ERR_OK);
	if (with_root) {
		name_of(name, ".");
		cr_assert_eq(zone_map_build_add_unusable(b, name), ERR_OK);
	}
	void *map = finish_map(b, &bytes);
	cr_assert_eq(attach_map(&set, map, bytes, segment, 1, &why), ERR_OK, "%s", why);
	free(map);
	return set;
}

Test(zone_set, finds_the_longest_zone)
{
	static const struct {
		const char *name;
		unsigned skip;
		const char *expected;
	} cases[] = {
		{ "example.", 0, "example.#0" },
		{ "EXAMPLE.", 0, "example.#0" },
		{ "www.example.", 0, "example.#1" },
		{ "a.example.", 0, "a.example.#0" },
		{ "a.example.", 1, "example.#1" }, /* DS is asked at the parent */
		{ "b.a.example.", 0, "B.a.Example.#0" },
		{ "1.2.3.b.a.example.", 0, "B.a.Example.#3" },
		{ "1.2.3.b.a.example.", 4, "a.example.#4" },
		{ "ba.example.", 0, "example.#1" }, /* a label that ends alike */
		{ "xexample.", 0, "none" },
		{ "org.", 0, "none" },
		{ "y.z.org.", 0, "none" },
		{ "w.x.y.z.org.", 0, "x.y.z.org.#1" },
		{ ".", 0, "none" },
		{ "net.", 1, "none" },
		{ "broken.example.", 0, "unusable#0" },
		{ "sub.broken.example.", 0, "unusable#1" },
		{ "4.3.168.192.in-addr.arpa.", 0, "168.192.in-addr.arpa.#2" },
	};
	struct packed p;
	struct segment *segment;
	struct zone_set *set = make_set(&p, &segment, false);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_str_eq(find(set, cases[i].name, cases[i].skip), cases[i].expected, "%s skip %u gives %s", cases[i].name,
				 cases[i].skip, find(set, cases[i].name, cases[i].skip));
	cr_expect_eq(zone_set_generation(set), 42);
	cr_expect_eq(zone_set_zones(set), ARRAY_LEN(names) + 1);
	segment_put(segment); /* the set holds its own reference */
	cr_expect_str_eq(find(set, "www.example.", 0), "example.#1");
	zone_set_release(set);
	free(p.bytes);
}

Test(zone_set, the_root_zone_catches_the_rest)
{
	struct packed p;
	struct segment *segment;
	struct zone_set *set = make_set(&p, &segment, true);
	cr_expect_str_eq(find(set, "net.", 0), "unusable#1");
	cr_expect_str_eq(find(set, ".", 0), "unusable#0");
	cr_expect_str_eq(find(set, "com.", 1), "unusable#1");
	cr_expect_str_eq(find(set, "com.", 0), "com.#0");
	segment_put(segment);
	zone_set_release(set);
	free(p.bytes);
}

Test(zone_set, names_of_all_lengths)
{
	struct zone_map_build *b;
	struct zone_set *set;
	size_t bytes;
	const char *why = "";
	char text[2 * NAME_MAX_LABELS + 8] = "";
	uint8_t name[NAME_MAX_BYTES];
	cr_assert_eq(zone_map_build_create(&b, 1), ERR_OK);
	for (unsigned labels = 1; labels <= NAME_MAX_LABELS; labels++) {
		strcat(text, "a.");
		name_of(name, text);
		if (labels % 9 == 1 || labels == 64 || labels == NAME_MAX_LABELS)
			cr_assert_eq(zone_map_build_add_unusable(b, name), ERR_OK);
	}
	void *map = finish_map(b, &bytes);
	cr_assert_eq(attach_map(&set, map, bytes, NULL, 0, &why), ERR_OK, "%s", why);
	for (unsigned labels = 1; labels <= NAME_MAX_LABELS; labels++) {
		char expected[32];
		text[2 * labels] = 0;
		memset(text, 0, sizeof(text));
		for (unsigned i = 0; i < labels; i++)
			strcat(text, "a.");
		unsigned zone = labels == NAME_MAX_LABELS ? labels : labels == 64 ? 64 : (labels - 1) / 9 * 9 + 1;
		snprintf(expected, sizeof(expected), "unusable#%u", labels - zone);
		cr_expect_str_eq(find(set, text, 0), expected, "%u labels", labels);
	}
	zone_set_release(set);
	free(map);
}

Test(zone_set, the_empty_set_has_nothing)
{
	struct zone_set *set;
	cr_assert_eq(zone_set_empty(&set), ERR_OK);
	cr_expect_str_eq(find(set, "www.example.", 0), "none");
	cr_expect_str_eq(find(set, ".", 0), "none");
	cr_expect_eq(zone_set_generation(set), 0);
	zone_set_release(set);
	zone_set_release(NULL);
}

static void count_zone(void *user, const uint8_t *name, const struct zone_view *view)
{
	uint8_t expected[NAME_MAX_BYTES];
	size_t i = (*(size_t *)user)++;
	size_t bytes = name_of(expected, i < ARRAY_LEN(names) ? names[i] : "broken.example.");
	cr_expect_eq(name_wire_bytes(name, NAME_MAX_BYTES), bytes);
	cr_expect(name_equal(name, expected));
	cr_expect_eq(view->serve_until_s, i < ARRAY_LEN(names) ? 1000 + (int64_t)i : 0);
	cr_expect_eq(view->base != NULL, i < ARRAY_LEN(names));
}

Test(zone_set, each_visits_all_in_order)
{
	struct packed p;
	struct segment *segment;
	struct zone_set *set = make_set(&p, &segment, false);
	size_t count = 0;
	zone_set_each(set, count_zone, &count);
	cr_expect_eq(count, ARRAY_LEN(names) + 1);
	segment_put(segment);
	zone_set_release(set);
	free(p.bytes);
}

Test(zone_set, deltas_are_part_of_the_view)
{
	static const char *const same[] = { "example.", "example.", "example." };
	struct packed p;
	struct zone_map_build *b;
	struct zone_set *set;
	size_t bytes;
	const char *why = "";
	uint8_t name[NAME_MAX_BYTES];
	struct segment *segment = make_segment(&p, 3, same, 3);
	struct zone_map_image image[2 + ZONE_MAX_DELTAS];
	for (size_t i = 0; i < ARRAY_LEN(image); i++)
		image[i] = (struct zone_map_image){ 3, (zone_ref)(p.offset[i % 3] / 8) };
	name_of(name, "example.");
	cr_assert_eq(zone_map_build_create(&b, 1), ERR_OK);
	cr_expect_eq(zone_map_build_add_images(b, name, image, 0, 0), ERR_ARGUMENT);
	cr_expect_eq(zone_map_build_add_images(b, name, image, 2 + ZONE_MAX_DELTAS, 0), ERR_ARGUMENT);
	cr_assert_eq(zone_map_build_add_images(b, name, image, 3, 5), ERR_OK);
	void *map = finish_map(b, &bytes);
	cr_assert_eq(attach_map(&set, map, bytes, &segment, 1, &why), ERR_OK, "%s", why);
	uint8_t offset[] = { 0, 8 };
	struct zone_set_hit hit = zone_set_find(set, name, 9, offset, 1, 0);
	cr_assert(hit.view);
	cr_assert_eq(hit.view->delta_count, 2);
	cr_expect_eq(hit.view->base->serial, 1);
	cr_expect_eq(hit.view->delta[0]->serial, 2);
	cr_expect_eq(hit.view->delta[1]->serial, 3);
	cr_expect_eq(hit.view->serve_until_s, 5);
	zone_set_release(set);
	segment_put(segment);
	free(map);
	free(p.bytes);
}

/* --- the builder ------------------------------------------------------------------------------------------------------ */

Test(zone_set, the_builder_refuses_what_cannot_be_right)
{
	struct zone_map_build *b;
	uint8_t name[NAME_MAX_BYTES], endless[NAME_MAX_BYTES + 1];
	cr_assert_eq(zone_map_build_create(&b, 1), ERR_OK);
	name_of(name, "Example.");
	cr_expect_eq(zone_map_build_add(b, name, 1, 20, 0), ERR_ARGUMENT, "an offset that is no multiple of 8");
	cr_expect_eq(zone_map_build_add(b, name, 1, 8ull << 32, 0), ERR_ARGUMENT, "an offset beyond 32 GiB");
	cr_expect_eq(zone_map_build_add(b, name, 1, 24, 0), ERR_OK);
	name_of(name, "eXample.");
	cr_expect_eq(zone_map_build_add(b, name, 1, 48, 0), ERR_EXISTS, "names have no case");
	cr_expect_eq(zone_map_build_add_unusable(b, name), ERR_EXISTS);
	memset(endless, 1, sizeof(endless));
	cr_expect_eq(zone_map_build_add_unusable(b, endless), ERR_ARGUMENT);
	zone_map_build_destroy(b);
	zone_map_build_destroy(NULL);
}

Test(zone_set, many_zones_are_all_found_in_little_memory, .timeout = 60)
{
	enum { ZONES = 200000 };
	struct zone_map_build *b;
	struct zone_set *set;
	size_t bytes, name_bytes = 0;
	const char *why = "";
	char text[64];
	uint8_t name[NAME_MAX_BYTES];
	cr_assert_eq(zone_map_build_create(&b, 1), ERR_OK);
	for (unsigned i = 0; i < ZONES; i++) {
		snprintf(text, sizeof(text), "zone-%u.test%u.", i, i % 3);
		name_bytes += name_of(name, text);
		cr_assert_eq(zone_map_build_add_unusable(b, name), ERR_OK);
	}
	void *map = finish_map(b, &bytes);
	cr_expect_lt((double)(bytes - name_bytes) / ZONES, 100 - sizeof(struct zone_view),
		     "with its view, a zone takes %.1f octets", (double)(bytes - name_bytes) / ZONES + sizeof(struct zone_view));
	uint64_t began_ns = clock_mono_ns();
	cr_assert_eq(attach_map(&set, map, bytes, NULL, 0, &why), ERR_OK, "%s", why);
	cr_log_info("attaching %u zones took %llu us", ZONES, (unsigned long long)(clock_mono_ns() - began_ns) / 1000);
	for (unsigned i = 0; i < ZONES + 1000; i += 7) {
		snprintf(text, sizeof(text), "www.zone-%u.test%u.", i, i % 3);
		cr_assert_str_eq(find(set, text, 0), i < ZONES ? "unusable#1" : "none", "%s", text);
	}
	zone_set_release(set);
	free(map);
}

/* --- readers that trust nothing ---------------------------------------------------------------------------------------- */

Test(zone_set, unsealed_memory_is_refused)
{
	int fd;
	struct segment *segment = NULL;
	struct zone_set *set = NULL;
	const char *why = NULL;
	cr_assert_eq(shm_create(&fd, "t", 4096), ERR_OK);
	cr_expect_eq(segment_attach(&segment, fd, &why), ERR_DENIED);
	cr_expect_not_null(why);
	why = NULL;
	cr_expect_eq(zone_set_attach(&set, fd, NULL, 0, &why), ERR_DENIED);
	cr_expect_not_null(why);
	cr_expect_null(segment);
	cr_expect_null(set);
	close(fd);
}

/* Attaches a copy with one byte changed; whatever passes must be safe to use. Under ASan a reader that strays is seen. */
Test(zone_set, any_damage_to_the_map_is_refused_or_harmless, .timeout = 120)
{
	static const uint8_t change[] = { 0x01, 0x80, 0xff };
	struct packed p;
	struct zone_map_build *b;
	size_t bytes, refused = 0;
	uint8_t name[NAME_MAX_BYTES];
	struct segment *segment = make_segment(&p, 7, names, ARRAY_LEN(names));
	cr_assert_eq(zone_map_build_create(&b, 42), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		name_of(name, names[i]);
		cr_assert_eq(zone_map_build_add(b, name, 7, p.offset[i], 0), ERR_OK);
	}
	uint8_t *map = finish_map(b, &bytes);
	for (size_t at = 0; at < bytes; at++) {
		for (size_t c = 0; c < ARRAY_LEN(change); c++) {
			struct zone_set *set;
			const char *why = NULL;
			map[at] ^= change[c];
			enum err err = attach_map(&set, map, bytes, &segment, 1, &why);
			map[at] ^= change[c];
			if (err != ERR_OK) {
				cr_assert_eq(err, ERR_CORRUPT, "byte %zu", at);
				cr_assert_not_null(why);
				refused++;
				continue;
			}
			for (size_t i = 0; i < ARRAY_LEN(names); i++)
				(void)find(set, names[i], 0);
			zone_set_release(set);
		}
	}
	/* Generation, view, serve-until times, unused slots' tags and padding mean nothing that could be wrong. */
	cr_expect_gt(refused, bytes * ARRAY_LEN(change) / 2);
	for (size_t cut = 1; cut < bytes; cut++) {
		struct zone_set *set;
		const char *why = NULL;
		cr_assert_eq(attach_map(&set, map, cut, &segment, 1, &why), ERR_CORRUPT, "cut to %zu", cut);
	}
	segment_put(segment);
	free(map);
	free(p.bytes);
}

Test(zone_set, any_damage_to_a_segments_header_is_refused)
{
	struct packed p;
	struct segment *segment = make_segment(&p, 7, names, ARRAY_LEN(names));
	segment_put(segment);
	for (size_t at = 0; at < sizeof(struct segment_header); at++) {
		const char *why = NULL;
		if (at >= offsetof(struct segment_header, id) && at < offsetof(struct segment_header, image_count))
			continue; /* every id is possible */
		p.bytes[at] ^= 1;
		cr_expect_eq(attach_packed(&segment, &p, &why), ERR_CORRUPT, "byte %zu", at);
		cr_expect_not_null(why);
		p.bytes[at] ^= 1;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *why = NULL;
		uint64_t *size_bytes = &((struct zone_image *)(p.bytes + p.offset[i]))->size_bytes, right = *size_bytes;
		const uint64_t wrong[] = { 0, 8, right - 8, right + 8, right * 100, UINT64_MAX, UINT64_MAX - 7, 1ull << 63 };
		for (size_t n = 0; n < ARRAY_LEN(wrong); n++) {
			*size_bytes = wrong[n];
			cr_expect_eq(attach_packed(&segment, &p, &why), ERR_CORRUPT, "image %zu says %llu octets", i,
				     (unsigned long long)wrong[n]);
		}
		*size_bytes = right;
	}
	free(p.bytes);
}

Test(zone_set, notes_are_passed_over)
{
	struct packed p;
	struct segment *segment = make_segment(&p, 7, names, 2);
	const char *why = "";
	size_t notes_bytes;
	uint64_t offset;
	segment_put(segment);
	size_t end = p.size_bytes;
	p.bytes = realloc(p.bytes, end + 13);
	memset(p.bytes + end, 0xee, 13);
	p.size_bytes += 13;
	struct segment_header *h = (struct segment_header *)p.bytes;
	h->size_bytes = p.size_bytes;
	h->notes = end;
	cr_assert_eq(attach_packed(&segment, &p, &why), ERR_OK, "%s", why);
	const uint8_t *notes = segment_notes(segment, &notes_bytes);
	cr_expect_eq(notes_bytes, 13);
	cr_expect_eq(notes[12], 0xee);
	cr_expect_eq(segment_images(segment), 2);
	cr_expect_eq(segment_image(segment, 1, &offset)->serial, 2);
	cr_expect_eq(offset, p.offset[1]);
	cr_expect_eq(segment_id(segment), 7);
	cr_expect_eq(segment_bytes(segment), p.size_bytes);
	segment_put(segment);
	h->notes = end - 4;
	cr_expect_eq(attach_packed(&segment, &p, &why), ERR_CORRUPT);
	h->notes = p.offset[1];
	cr_expect_eq(attach_packed(&segment, &p, &why), ERR_CORRUPT, "an image in the notes");
	h->notes = p.size_bytes + 8;
	cr_expect_eq(attach_packed(&segment, &p, &why), ERR_CORRUPT, "notes behind the end");
	free(p.bytes);
}

Test(zone_set, a_map_must_fit_its_segments)
{
	static const struct {
		const char *what;
		uint32_t segment;
		int64_t shift;
		const char *name;
		enum err expected;
	} cases[] = {
		{ "as it is", 1, 0, "example.", ERR_OK },
		{ "a segment that is not there", 9, 0, "example.", ERR_CORRUPT },
		{ "an offset inside an image", 1, 8, "example.", ERR_CORRUPT },
		{ "the segment's header", 1, -32, "example.", ERR_CORRUPT },
		{ "another zone's image", 1, 0, "example2.", ERR_CORRUPT },
		{ "another segment's image", 2, 0, "example.", ERR_CORRUPT },
	};
	struct packed p[2];
	struct segment *segment[2] = { make_segment(&p[0], 1, names, 3), make_segment(&p[1], 2, names + 3, 3) };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct zone_map_build *b;
		struct zone_set *set;
		size_t bytes;
		const char *why = NULL;
		uint8_t name[NAME_MAX_BYTES];
		name_of(name, cases[i].name);
		cr_assert_eq(zone_map_build_create(&b, 1), ERR_OK);
		cr_assert_eq(zone_map_build_add(b, name, cases[i].segment, p[0].offset[0] + (uint64_t)cases[i].shift, 0), ERR_OK);
		void *map = finish_map(b, &bytes);
		cr_expect_eq(attach_map(&set, map, bytes, segment, 2, &why), cases[i].expected, "%s: %s", cases[i].what, why);
		if (cases[i].expected == ERR_OK) {
			zone_set_release(set);
			struct segment *twice[] = { segment[0], segment[1], segment[0] };
			cr_expect_eq(attach_map(&set, map, bytes, twice, 3, &why), ERR_CORRUPT, "two segments of one id");
		}
		free(map);
	}
	for (int i = 0; i < 2; i++) {
		segment_put(segment[i]);
		free(p[i].bytes);
	}
	segment_put(NULL);
}

/* --- a map after another ---------------------------------------------------------------------------------------------- */

enum { CHANGING = 24, COPIES = 4 }; /* each segment has an image of every zone */

struct changing {
	struct packed p[COPIES];
	struct segment *segment[COPIES];
	char name[CHANGING][24];
	unsigned order[CHANGING], count; /* the zones of the map */
	unsigned from[CHANGING];	 /* index of the segment; COPIES: unusable */
};

static uint32_t random_state = 7;

static unsigned below(unsigned limit)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (random_state >> 8) % limit;
}

static void changing_init(struct changing *c)
{
	const char *text[CHANGING];
	*c = (struct changing){ .count = CHANGING };
	for (unsigned i = 0; i < CHANGING; i++) {
		snprintf(c->name[i], sizeof(c->name[i]), "z%u.%s", i, i % 3 ? "example." : "a.example.");
		text[i] = c->name[i];
		c->order[i] = i;
	}
	for (unsigned i = 0; i < COPIES; i++)
		c->segment[i] = make_segment(&c->p[i], i + 1, text, CHANGING);
}

static void changing_fini(struct changing *c)
{
	for (unsigned i = 0; i < COPIES; i++) {
		segment_put(c->segment[i]);
		free(c->p[i].bytes);
	}
}

static struct zone_map_image image_of(const struct changing *c, unsigned zone)
{
	return (struct zone_map_image){ c->from[zone] + 1, (zone_ref)(c->p[c->from[zone]].offset[zone] / ZONE_REF_UNIT) };
}

static void *whole_map(const struct changing *c, uint64_t generation, size_t *bytes)
{
	struct zone_map_build *b;
	cr_assert_eq(zone_map_build_create(&b, generation), ERR_OK);
	for (unsigned i = 0; i < c->count; i++) {
		uint8_t name[NAME_MAX_BYTES];
		unsigned zone = c->order[i];
		name_of(name, c->name[zone]);
		if (c->from[zone] == COPIES)
			cr_assert_eq(zone_map_build_add_unusable(b, name), ERR_OK);
		else
			cr_assert_eq(zone_map_build_add(b, name, c->from[zone] + 1, c->p[c->from[zone]].offset[zone], 0), ERR_OK);
	}
	return finish_map(b, bytes);
}

/* Changes some zones' images; in `map`, a copy of the one before, as well. */
static void change_images(struct changing *c, void *map)
{
	for (unsigned n = below(4); n > 0; n--) {
		unsigned zone = c->order[below(c->count)];
		uint8_t name[NAME_MAX_BYTES];
		c->from[zone] = below(8) ? below(COPIES) : (unsigned)COPIES;
		struct zone_map_image image = c->from[zone] == COPIES ? (struct zone_map_image){ 0 } : image_of(c, zone);
		name_of(name, c->name[zone]);
		cr_assert_eq(zone_map_change(map, name, c->from[zone] == COPIES ? NULL : &image), ERR_OK);
	}
}

/* Zones come, go, change places. */
static void change_shape(struct changing *c)
{
	unsigned a = below(CHANGING), b = below(CHANGING), zone = c->order[a];
	c->order[a] = c->order[b];
	c->order[b] = zone;
	c->count = 1 + below(CHANGING);
}

static enum err attach_after(struct zone_set **out, const struct zone_set *before, const void *map, size_t bytes,
			     struct segment *const *segments, size_t count, const char **why)
{
	int fd = sealed(map, bytes);
	enum err err = zone_set_attach_after(out, before, fd, segments, count, why);
	close(fd);
	return err;
}

static void expect_same(const struct zone_set *a, const struct zone_set *b)
{
	cr_assert_eq(a->zone_count, b->zone_count);
	cr_assert_eq(a->generation, b->generation);
	cr_assert_eq(a->delta_count, b->delta_count);
	cr_assert_eq(a->segment_count, b->segment_count);
	for (size_t i = 0; i < a->segment_count; i++)
		cr_assert(a->used[i].segment == b->used[i].segment && a->used[i].uses == b->used[i].uses, "segment %zu", i);
	for (uint32_t i = 0; i < a->zone_count; i++) {
		const struct zone_view *x = &a->view[i], *y = &b->view[i];
		cr_assert(x->base == y->base && x->flags == y->flags && x->serve_until_s == y->serve_until_s &&
				  x->delta_count == y->delta_count,
			  "view %u", i);
		for (uint32_t k = 0; k < x->delta_count; k++)
			cr_assert_eq(x->delta[k], y->delta[k]);
	}
}

Test(zone_set, a_changed_copy_is_the_map_built_anew_and_read_by_its_changes, .timeout = 60)
{
	struct changing c;
	struct zone_set *before, *after, *whole, *verified;
	const char *why = "";
	size_t bytes;
	changing_init(&c);
	void *map = whole_map(&c, 1, &bytes);
	cr_assert_eq(attach_map(&before, map, bytes, c.segment, COPIES, &why), ERR_OK, "%s", why);
	free(map);
	for (uint64_t generation = 2; generation < 600; generation++) {
		size_t copy_bytes;
		const void *last = zone_set_map(before, &copy_bytes);
		void *copy = memcpy(malloc(copy_bytes), last, copy_bytes);
		bool is_new_shape = below(10) == 0;
		zone_map_renew(copy, generation);
		if (is_new_shape)
			change_shape(&c);
		else
			change_images(&c, copy);
		map = whole_map(&c, generation, &bytes);
		if (!is_new_shape)
			cr_assert(bytes == copy_bytes && memcmp(copy, map, bytes) == 0);
		cr_assert_eq(attach_map(&whole, map, bytes, c.segment, COPIES, &why), ERR_OK, "%s", why);
		cr_assert_eq(attach_after(&after, before, map, bytes, c.segment, COPIES, &why), ERR_OK, "%s", why);
		int fd = sealed(map, bytes);
		cr_assert_eq(zone_set_attach_verified(&verified, fd, c.segment, COPIES, &why), ERR_OK, "%s", why);
		close(fd);
		expect_same(after, whole);
		expect_same(verified, whole);
		zone_set_release(whole);
		zone_set_release(verified);
		zone_set_release(before); /* what comes after stands alone */
		before = after;
		free(copy);
		free(map);
	}
	zone_set_release(before);
	changing_fini(&c);
}

Test(zone_set, after_another_map_damage_is_seen_as_ever, .timeout = 120)
{
	struct changing c;
	struct zone_set *before, *set;
	const char *why = "";
	size_t bytes;
	changing_init(&c);
	c.from[3] = c.from[5] = 2;
	uint8_t *map = whole_map(&c, 1, &bytes);
	cr_assert_eq(attach_map(&before, map, bytes, c.segment, COPIES, &why), ERR_OK, "%s", why);
	for (size_t at = 0; at < bytes; at++) {
		map[at] ^= 0x81;
		enum err expected = attach_map(&set, map, bytes, c.segment, COPIES, &why);
		if (expected == ERR_OK)
			zone_set_release(set);
		cr_assert_eq(attach_after(&set, before, map, bytes, c.segment, COPIES, &why), expected, "byte %zu", at);
		if (expected == ERR_OK)
			zone_set_release(set);
		map[at] ^= 0x81;
	}
	/* A segment that only unchanged entries name must be there, and be the one that it was. */
	struct segment *other[COPIES] = { c.segment[0], c.segment[1], NULL, c.segment[3] };
	cr_assert_eq(attach_packed(&other[2], &c.p[2], &why), ERR_OK);
	cr_expect_eq(attach_after(&set, before, map, bytes, other, COPIES, &why), ERR_CORRUPT);
	cr_expect_eq(attach_after(&set, before, map, bytes, other, 2, &why), ERR_CORRUPT);
	segment_put(other[2]);
	zone_set_release(before);
	free(map);
	changing_fini(&c);
}

Test(zone_set, deltas_outlive_the_map_before)
{
	static const char *const same[] = { "example.", "example.", "example." };
	struct packed p;
	struct zone_map_build *b;
	struct zone_set *before, *after;
	size_t bytes;
	const char *why = "";
	uint8_t name[NAME_MAX_BYTES];
	struct segment *segment = make_segment(&p, 3, same, 3);
	struct zone_map_image image[3];
	for (size_t i = 0; i < ARRAY_LEN(image); i++)
		image[i] = (struct zone_map_image){ 3, (zone_ref)(p.offset[i] / 8) };
	name_of(name, "example.");
	cr_assert_eq(zone_map_build_create(&b, 1), ERR_OK);
	cr_assert_eq(zone_map_build_add_images(b, name, image, 3, 5), ERR_OK);
	struct zone_map *map = finish_map(b, &bytes);
	cr_assert_eq(attach_map(&before, map, bytes, &segment, 1, &why), ERR_OK, "%s", why);
	map->generation = 2;
	cr_assert_eq(attach_after(&after, before, map, bytes, &segment, 1, &why), ERR_OK, "%s", why);
	zone_set_release(before);
	cr_expect_eq(after->view[0].delta[0]->serial, 2);
	cr_expect_eq(after->view[0].delta[1]->serial, 3);
	cr_expect_eq(after->used[0].uses, 3);
	cr_expect_eq(zone_map_change(map, name, &image[1]), ERR_UNSUPPORTED);
	name_of(name, "example2.");
	cr_expect_eq(zone_map_change(map, name, &image[1]), ERR_NOTFOUND);
	zone_set_release(after);
	segment_put(segment);
	free(map);
	free(p.bytes);
}

Test(zone_set, a_verified_segment_is_believed_but_for_its_header)
{
	struct packed p;
	const char *why = NULL;
	uint64_t offset;
	struct segment *segment = make_segment(&p, 7, names, ARRAY_LEN(names));
	segment_put(segment);
	p.bytes[p.offset[0] + sizeof(struct zone_image)] ^= 0xff;
	cr_expect_eq(attach_packed(&segment, &p, &why), ERR_CORRUPT);
	int fd = sealed(p.bytes, p.size_bytes);
	cr_assert_eq(segment_attach_verified(&segment, fd, &why), ERR_OK, "%s", why);
	close(fd);
	cr_assert_eq(segment_list(segment, &why), ERR_OK, "%s", why);
	for (uint32_t i = 0; i < segment_images(segment); i++) {
		cr_expect_eq(segment_image(segment, i, &offset)->serial, i + 1);
		cr_expect_eq(offset, p.offset[i]);
	}
	segment_put(segment);
	fd = sealed(p.bytes, p.size_bytes - 8);
	cr_expect_eq(segment_attach_verified(&segment, fd, &why), ERR_CORRUPT);
	close(fd);
	fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_expect_eq(segment_attach_verified(&segment, fd, &why), ERR_DENIED);
	close(fd);
	((struct zone_image *)(p.bytes + p.offset[1]))->size_bytes += 8;
	fd = sealed(p.bytes, p.size_bytes);
	cr_assert_eq(segment_attach_verified(&segment, fd, &why), ERR_OK, "%s", why);
	close(fd);
	cr_expect_eq(segment_list(segment, &why), ERR_CORRUPT);
	segment_put(segment);
	free(p.bytes);
}
