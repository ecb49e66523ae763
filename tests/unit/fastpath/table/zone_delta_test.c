/* SPDX-License-Identifier: Apache-2.0 */
/* A base and up to ZONE_MAX_DELTAS deltas on top of it answer like the last state built whole. The deltas are made as their writer will
 * make them: for each owner that differs from the state before, its complete node. */
#include "zone_model_check.h"
#include "table/zone_compile_internal.h"

static bool same_content(const struct model *a, const struct model *b, const uint8_t *owner, bool is_subset)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct model_record *r = &a->record[i];
		bool is_there = false;
		if (!name_equal(r->owner, owner))
			continue;
		for (size_t j = 0; j < b->count && !is_there; j++)
			is_there = b->record[j].type == r->type && b->record[j].ttl_s == r->ttl_s &&
				   name_equal(b->record[j].owner, owner) &&
				   model_same_rdata(r->type, r, b->record[j].rdata, b->record[j].rdata_bytes);
		if (!is_there)
			return false;
	}
	return is_subset || same_content(b, a, owner, true);
}

static void flag(struct zone_build *b, const uint8_t *name, uint16_t flags)
{
	struct zone_build_node *node;
	cr_assert_eq(zone_build_make(b, name, name_wire_bytes(name, NAME_MAX_BYTES), &node), ERR_OK);
	node->flags |= flags;
}

static struct zone_image *compile_delta(const struct model *before, const struct model *after)
{
	static struct model_name name[MODEL_MAX_NAMES];
	struct zone_build *b = model_build(after);
	b->is_delta = true;
	size_t count = model_names(after, name);
	for (size_t i = 0; i < count; i++)
		if (!model_exists(before, name[i].wire) || !same_content(before, after, name[i].wire, false))
			flag(b, name[i].wire, ZONE_BUILD_CHANGED);
	for (size_t i = 0; i < after->count; i++) /* NSEC3 owners are no names of the zone */
		if (after->record[i].type == RR_NSEC3 && !same_content(before, after, after->record[i].owner, false))
			flag(b, after->record[i].owner, ZONE_BUILD_CHANGED);
	count = model_names(before, name);
	for (size_t i = 0; i < count; i++)
		if (!model_exists(after, name[i].wire))
			flag(b, name[i].wire, ZONE_BUILD_DELETED);
	for (size_t i = 0; i < before->count; i++)
		if (before->record[i].type == RR_NSEC3 && !model_has(after, before->record[i].owner, RR_NSEC3))
			flag(b, before->record[i].owner, ZONE_BUILD_DELETED);
	struct zone_image *image = model_compile(b);
	cr_assert(image->flags & ZONE_DELTA);
	zone_build_destroy(b);
	return image;
}

/* Some owners go, some change, some come. */
static void mutate(struct model *m)
{
	model_unsign(m);
	for (unsigned i = 0, n = model_random(4); i < n && m->count > 1; i++) {
		struct model_record r = m->record[model_random((uint32_t)m->count)];
		if (!name_equal(r.owner, m->apex))
			model_remove_owner(m, r.owner);
	}
	for (unsigned i = 0, n = model_random(3); i < n; i++) {
		struct model_record r = m->record[model_random((uint32_t)m->count)];
		model_add_random(m, r.owner);
	}
	if (model_random(3) == 0) { /* names sink below a new cut */
		static const uint8_t ns[] = "\2ns\5other\4test";
		struct model_record r = m->record[model_random((uint32_t)m->count)];
		if (name_labels(r.owner) > name_labels(m->apex) + 1)
			model_add(m, model_up(r.owner).wire, RR_NS, 60, ns, sizeof ns);
	}
	model_grow(m, model_random(4));
	model_finish(m);
}

static void run(enum model_signing signing, unsigned owners, unsigned deltas, uint64_t seed)
{
	model_random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 7;
	struct model *m = model_create("zone.test.", signing, owners), *before = malloc(sizeof *before);
	struct zone_build *b = model_build(m);
	struct zone_image *base = model_compile(b);
	const struct zone_image *delta[ZONE_MAX_DELTAS];
	struct zone_view view = { .base = base, .delta = delta };
	for (unsigned i = 0; i < deltas; i++) {
		*before = *m;
		mutate(m);
		memmove(delta + 1, delta, view.delta_count * sizeof *delta);
		delta[0] = compile_delta(before, m);
		view.delta_count++;
		check_view(m, &view, 20);
	}
	for (unsigned i = 0; i < deltas; i++)
		free((void *)delta[i]);
	free(base);
	free(before);
	free(m);
	zone_build_destroy(b);
}

static void run_rounds(enum model_signing signing)
{
	for (unsigned i = 0; i < 8; i++) {
		cr_log_info("signing %d, seed %u", signing, i);
		run(signing, 5 + 4 * i, i == 7 ? ZONE_MAX_DELTAS : 1 + i % 3, i);
	}
}

Test(zone_delta, unsigned_views_answer_as_the_model) { run_rounds(MODEL_UNSIGNED); }
Test(zone_delta, nsec_views_answer_as_the_model) { run_rounds(MODEL_NSEC); }
Test(zone_delta, nsec3_views_answer_as_the_model) { run_rounds(MODEL_NSEC3); }
Test(zone_delta, opt_out_views_answer_as_the_model) { run_rounds(MODEL_OPT_OUT); }
