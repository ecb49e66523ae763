/* SPDX-License-Identifier: Apache-2.0 */
/* Random zones, compiled, against the model: finds, closest enclosers, cuts, wildcards, NSEC, NSEC3, and every record. */
#include "zone_model_check.h"

#define ROUNDS 25u

static void run(const char *apex, enum model_signing signing, unsigned owners, uint64_t seed)
{
	model_random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	struct model *m = model_create(apex, signing, owners);
	struct zone_build *b = model_build(m);
	cr_assert_eq(zone_build_records(b), m->count);
	struct zone_image *image = model_compile(b);
	struct zone_view view = { .base = image };
	cr_assert_eq(image->serial, m->serial);
	cr_assert_eq(image->rr_count, m->count);
	cr_assert_eq(!!(image->flags & ZONE_SIGNED_NSEC), signing == MODEL_NSEC);
	cr_assert_eq(!!(image->flags & ZONE_SIGNED_NSEC3), signing == MODEL_NSEC3 || signing == MODEL_OPT_OUT);
	check_view(m, &view, 30);
	free(image);
	zone_build_destroy(b);
	free(m);
}

static void run_rounds(enum model_signing signing)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		cr_log_info("signing %d, seed %u", signing, i); /* --verbose shows the last one, which failed */
		run(i % 5 == 4 ? "." : i % 5 == 3 ? "Deep.er.Zone.test." : "zone.test.", signing, i == 0 ? 0 : 1 + i % 10 * 6, i);
	}
}

Test(zone_image, random_unsigned_zones_answer_as_the_model) { run_rounds(MODEL_UNSIGNED); }
Test(zone_image, random_nsec_zones_answer_as_the_model) { run_rounds(MODEL_NSEC); }
Test(zone_image, random_nsec3_zones_answer_as_the_model) { run_rounds(MODEL_NSEC3); }
Test(zone_image, random_opt_out_zones_answer_as_the_model) { run_rounds(MODEL_OPT_OUT); }

/* Names at their limits: 255 octets in 127 labels, labels of 63 octets, every letter and its neighbours in ASCII. */
Test(zone_image, names_at_their_limits)
{
	struct model *m = model_create("zone.test.", MODEL_NSEC, 0);
	uint8_t name[NAME_MAX_BYTES];
	size_t apex_bytes = name_wire_bytes(m->apex, NAME_MAX_BYTES), at = 0;
	static const uint8_t a[] = { 192, 0, 2, 1 };
	model_unsign(m);
	for (; at + 2 + apex_bytes <= NAME_MAX_BYTES; at += 2)
		memcpy(name + at, "\1A", 2);
	memcpy(name + at, m->apex, apex_bytes);
	model_add(m, name, RR_A, 60, a, sizeof a);
	for (unsigned i = 0; i < 3; i++) {
		name[64 * i] = 63;
		memset(name + 64 * i + 1, i == 0 ? 'Z' : 'm', 63);
	}
	for (unsigned i = 1; i < 64; i++)
		name[64 + i] = (uint8_t)(i + '@' - 1);
	memcpy(name + 192, m->apex, apex_bytes);
	model_add(m, name, RR_A, 60, a, sizeof a);
	for (unsigned short_name = '@'; short_name < 0x7f; short_name++) {
		name[0] = 1;
		name[1] = (uint8_t)short_name;
		memcpy(name + 2, m->apex, apex_bytes);
		model_add(m, name, RR_A, 60, a, sizeof a);
	}
	model_finish(m);
	struct zone_build *b = model_build(m);
	struct zone_image *image = model_compile(b);
	struct zone_view view = { .base = image };
	cr_assert_geq(image->max_labels, 123);
	check_view(m, &view, 10);
	for (unsigned octet = 1; octet < 256; octet++) {
		name[1] = (uint8_t)octet;
		check_is(model_find(&view, name), model_exists(m, name) ? name : NULL, "find", name);
	}
	free(image);
	zone_build_destroy(b);
	free(m);
}

/* A root zone whose names have fewer than 8 octets, compared in one word. */
Test(zone_image, short_names)
{
	struct model *m = model_create(".", MODEL_UNSIGNED, 0);
	static const uint8_t a[] = { 192, 0, 2, 1 };
	static const char *const text[] = {
		"a.", "B.", "ab.", "abc.", "a.b.", "abcd.", "Abcde.", "abcdef.", "a.c.d.", "abcdefg."
	};
	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		model_add(m, model_name(text[i]).wire, RR_A, 60, a, sizeof a);
	struct zone_build *b = model_build(m);
	struct zone_image *image = model_compile(b);
	struct zone_view view = { .base = image };
	check_view(m, &view, 50);
	free(image);
	zone_build_destroy(b);
	free(m);
}

/* Far more NSEC3s than one search window, each found by its own hash and by the ones beside it. */
Test(zone_image, nsec3_search_over_many_hashes)
{
	enum { COUNT = 20000 };
	struct zone_nsec3 *nsec3;
	size_t bytes = 8 + offsetof(struct zone_image, nsec3_salt) + COUNT * sizeof *nsec3;
	struct zone_image *image = calloc(1, bytes);
	image->nsec3 = (offsetof(struct zone_image, nsec3_salt) + 7) / 8;
	nsec3 = (struct zone_nsec3 *)((uint8_t *)image + image->nsec3 * 8);
	for (unsigned skewed = 0; skewed < 2; skewed++) {
		for (uint32_t i = 0; i < COUNT; i++)
			store_be32(nsec3[i].hash, skewed ? 2 * i + 1 : i * (UINT32_MAX / COUNT) + i % 7);
		for (image->nsec3_count = 1; image->nsec3_count <= COUNT; image->nsec3_count = image->nsec3_count * 3 + 1)
			for (uint32_t i = 0; i < image->nsec3_count; i += 1 + image->nsec3_count / 500) {
				uint8_t hash[20];
				memcpy(hash, nsec3[i].hash, 20);
				cr_assert_eq(zone_image_nsec3_floor(image, hash), i + 1);
				hash[19] = 1;
				cr_assert_eq(zone_image_nsec3_floor(image, hash), i + 1);
				if (load_be32(hash) == 0)
					continue;
				store_be32(hash, load_be32(hash) - 1);
				cr_assert_eq(zone_image_nsec3_floor(image, hash), i, "one before");
			}
		uint8_t last[20];
		memset(last, 0xff, sizeof last);
		image->nsec3_count = COUNT;
		cr_assert_eq(zone_image_nsec3_floor(image, last), COUNT);
	}
	free(image);
}
