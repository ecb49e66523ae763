/* SPDX-License-Identifier: Apache-2.0 */
#include "zone_exercise.h"
#include "zone_model.h"

static size_t compile(enum model_signing signing, unsigned owners, uint64_t seed, struct zone_image **out)
{
	model_random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 3;
	struct model *m = model_create("example.test.", signing, owners);
	struct zone_build *b = model_build(m);
	*out = model_compile(b);
	zone_build_destroy(b);
	free(m);
	return (*out)->size_bytes;
}
/* A copy that ends where its memory ends. */
static struct zone_image *copy(const struct zone_image *image, size_t bytes)
{
	struct zone_image *c = malloc(bytes ? bytes : 1);
	memcpy(c, image, bytes);
	return c;
}
static bool accepts(const struct zone_image *image, size_t bytes)
{
	const char *why = NULL;
	enum err err = zone_image_verify(image, bytes, &why);
	cr_assert(err == ERR_OK || (err == ERR_CORRUPT && why && *why), "a reason comes with it");
	return err == ERR_OK;
}

Test(zone_verify, every_truncation_is_refused)
{
	struct zone_image *image;
	size_t bytes = compile(MODEL_NSEC3, 10, 1, &image);
	for (size_t cut = 0; cut < bytes; cut++) {
		struct zone_image *c = copy(image, cut);
		cr_assert(!accepts(c, cut), "%zu octets", cut);
		if (cut >= 16) {
			c->size_bytes = cut;
			cr_assert(!accepts(c, cut), "%zu octets, and the header says so", cut);
		}
		free(c);
	}
	free(image);
}

/* Every octet, changed in several ways: refused, or safe to read. */
Test(zone_verify, changed_octets_are_refused_or_harmless)
{
	for (enum model_signing signing = 0; signing < MODEL_SIGNINGS; signing++) {
		struct zone_image *image;
		size_t bytes = compile(signing, 6, 11 + signing, &image), accepted = 0;
		struct zone_image *c = copy(image, bytes);
		for (size_t at = 0; at < bytes; at++) {
			static const uint8_t change[] = { 0x01, 0x02, 0x04, 0x08, 0x80, 0xff };
			for (unsigned i = 0; i < ARRAY_LEN(change); i++) {
				struct zone_view view = { .base = c };
				((uint8_t *)c)[at] ^= change[i];
				if (accepts(c, bytes)) {
					exercise_view(&view);
					accepted++;
				}
				((uint8_t *)c)[at] ^= change[i];
			}
		}
		cr_assert_gt(accepted, 0, "data octets may have any value");
		cr_assert_lt(accepted, bytes * 6);
		free(c);
		free(image);
	}
}

/* Several words at once, among them values that are good elsewhere in the image. */
Test(zone_verify, random_damage_is_refused_or_harmless)
{
	unsigned accepted = 0;
	for (unsigned round = 0; round < 4000; round++) {
		static struct zone_image *image[8];
		struct zone_image **original = &image[round % 8];
		if (!*original)
			compile(round % MODEL_SIGNINGS, 4 + round % 8, 100 + round, original);
		size_t bytes = (*original)->size_bytes;
		struct zone_image *c = copy(*original, bytes);
		model_random_state = round * UINT64_C(0x9e3779b97f4a7c15) + 5;
		for (unsigned i = 0, n = 1 + model_random(3); i < n; i++) {
			uint16_t *word = (uint16_t *)c + model_random((uint32_t)bytes / 2);
			*word = model_random(2) ? ((uint16_t *)c)[model_random((uint32_t)bytes / 2)]
						: (uint16_t)(*word + model_random(17) - 8);
		}
		if (accepts(c, bytes)) {
			const struct zone_image *delta[] = { *original };
			exercise_view(&(struct zone_view){ .base = c });
			exercise_view(&(struct zone_view){ .base = c, .delta = delta, .delta_count = 1 });
			accepted++;
		}
		free(c);
	}
	cr_assert_gt(accepted, 100);
}

struct field {
	const char *name;
	size_t offset, bytes;
	uint64_t value;
};
#define HEADER(field, value) \
	{ \
#field, offsetof(struct zone_image, field), sizeof(((struct zone_image *)0)->field), value \
	}
Test(zone_verify, wrong_headers)
{
	static const struct field row[] = {
		HEADER(magic, 0),
		HEADER(version, ZONE_IMAGE_VERSION + 1),
		HEADER(size_bytes, 8),
		HEADER(flags, 64),
		HEADER(node_count, 0),
		HEADER(node_count, UINT32_MAX),
		HEADER(rrset_count, 1),
		HEADER(rr_count, 1),
		HEADER(slot_mask, UINT32_MAX),
		HEADER(slot_mask, 6),
		HEADER(max_probe, 0),
		HEADER(max_probe, UINT32_MAX),
		HEADER(slots, 0),
		HEADER(slots, UINT32_MAX),
		HEADER(apex, 0),
		HEADER(apex, UINT32_MAX),
		HEADER(negative_soa, 0),
		HEADER(negative_soa, UINT32_MAX),
		HEADER(order, 1),
		HEADER(order, UINT32_MAX),
		HEADER(nsec3, 1),
		HEADER(order_count, UINT32_MAX),
		HEADER(order_count, 0),
		HEADER(nsec3_count, UINT32_MAX),
		HEADER(nsec3_count, 1),
		HEADER(nsec3_salt_bytes, 255),
		HEADER(max_labels, 255),
		HEADER(max_labels, 0),
		HEADER(apex_labels, 1),
		HEADER(apex_bytes, 2),
		HEADER(class_, 3),
	};
	struct zone_image *image;
	size_t bytes = compile(MODEL_NSEC, 10, 1, &image);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct zone_image *c = copy(image, bytes);
		cr_assert(accepts(c, bytes));
		memcpy((uint8_t *)c + row[i].offset, &row[i].value, row[i].bytes);
		cr_assert(!accepts(c, bytes), "%s = %llu", row[i].name, (unsigned long long)row[i].value);
		free(c);
	}
	uint8_t *shifted = malloc(bytes + 4);
	memcpy(shifted + 4, image, bytes);
	cr_assert(!accepts((struct zone_image *)(shifted + 4), bytes), "misaligned");
	free(shifted);
	free(image);
}

/* Refs between nodes that are right in form and wrong in meaning. */
Test(zone_verify, wrong_refs)
{
	struct zone_image *image;
	static const uint8_t a[] = { 192, 0, 2, 1 }, ns[] = "\2ns\3sub\7example\4test";
	struct model *m = model_create("example.test.", MODEL_NSEC, 0);
	model_unsign(m);
	model_add(m, model_name("sub.example.test.").wire, RR_NS, 60, ns, sizeof ns);
	model_add(m, model_name("ns.sub.example.test.").wire, RR_A, 60, a, sizeof a);
	model_add(m, model_name("*.w.example.test.").wire, RR_A, 60, a, sizeof a);
	model_finish(m);
	struct zone_build *b = model_build(m);
	image = model_compile(b);
	size_t bytes = image->size_bytes;
	struct zone_view view = { .base = image };
#define REF(name) ((zone_ref)(((const uint8_t *)model_find(&view, model_name(name).wire).node - (const uint8_t *)image) / 8))
#define NODE(c, name) ((struct zone_node *)((uint8_t *)(c) + (size_t)REF(name) * 8))
	zone_ref sub = REF("sub.example.test."), glue = REF("ns.sub.example.test."), star = REF("*.w.example.test."),
		 apex = image->apex, w = REF("w.example.test.");
	zone_ref *field;
	const struct {
		const char *what, *node;
		size_t offset;
		zone_ref value;
	} row[] = {
		{ "no parent", "sub.example.test.", offsetof(struct zone_node, parent), 0 },
		{ "a parent of its own depth", "sub.example.test.", offsetof(struct zone_node, parent), sub },
		{ "a parent two labels up", "ns.sub.example.test.", offsetof(struct zone_node, parent), apex },
		{ "a parent above the apex", "example.test.", offsetof(struct zone_node, parent), sub },
		{ "a parent between two nodes", "sub.example.test.", offsetof(struct zone_node, parent), apex + 1 },
		{ "a wildcard that is none", "sub.example.test.", offsetof(struct zone_node, wildcard), glue },
		{ "a wildcard of another depth", "example.test.", offsetof(struct zone_node, wildcard), star },
		{ "a wildcard out of the image", "example.test.", offsetof(struct zone_node, wildcard), UINT32_MAX },
		{ "a cut that is deeper", "sub.example.test.", offsetof(struct zone_node, cut), glue },
		{ "a cut that is no ancestor", "*.w.example.test.", offsetof(struct zone_node, cut), sub },
		{ "a parent of another name", "ns.sub.example.test.", offsetof(struct zone_node, parent), w },
		{ "a cut that is none", "ns.sub.example.test.", offsetof(struct zone_node, cut), apex },
		{ "a cut out of the image", "ns.sub.example.test.", offsetof(struct zone_node, cut), UINT32_MAX },
		{ "no NSEC", "sub.example.test.", offsetof(struct zone_node, nsec), 0 },
		{ "an NSEC at a node without one", "sub.example.test.", offsetof(struct zone_node, nsec), glue },
		{ "an NSEC3 in a zone without", "sub.example.test.", offsetof(struct zone_node, nsec3_wildcard), 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct zone_image *c = copy(image, bytes);
		field = (zone_ref *)((uint8_t *)NODE(c, row[i].node) + row[i].offset);
		cr_assert_neq(*field, row[i].value, "%s", row[i].what);
		*field = row[i].value;
		cr_assert(!accepts(c, bytes), "%s", row[i].what);
		free(c);
	}
	free(image);
	free(m);
	zone_build_destroy(b);
}
