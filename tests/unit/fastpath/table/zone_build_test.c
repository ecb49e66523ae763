/* SPDX-License-Identifier: Apache-2.0 */
#include "zone_model.h"

static enum err add(struct zone_build *b, const char *owner, uint16_t type, uint32_t ttl_s, const void *rdata, size_t bytes,
		    uint32_t line)
{
	struct model_name name = model_name(owner);
	struct master_record record = { .owner = name.wire,
					.owner_bytes = name.bytes,
					.type = type,
					.class_ = RR_CLASS_IN,
					.ttl_s = ttl_s,
					.rdata = rdata,
					.rdata_bytes = (uint16_t)bytes,
					.place = { .file = "zone.txt", .line = line, .column = 7 } };
	return zone_build_add(b, &record);
}
static struct zone_build *create(size_t max_bytes)
{
	struct zone_build *b = NULL;
	cr_assert_eq(zone_build_create(&b, model_name("Example.test.").wire, RR_CLASS_IN, max_bytes), ERR_OK);
	return b;
}

struct listing {
	char text[4096];
	size_t used;
	unsigned stop_after;
};
static bool list(void *user, const struct zone_build_record *r)
{
	struct listing *l = user;
	cr_assert_str_eq(r->place.file, "zone.txt");
	l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s %u %u %.*s@%u\n", model_text(r->owner),
				    r->type, r->ttl_s, r->rdata_bytes, (const char *)r->rdata, r->place.line);
	return --l->stop_after > 0;
}

Test(zone_build, each_visits_names_types_and_rdata_in_canonical_order)
{
	struct zone_build *b = create(1 << 20);
	struct listing l = { .stop_after = UINT32_MAX };
	cr_assert_eq(add(b, "z.example.test.", RR_TXT, 1, "\1b", 2, 1), ERR_OK);
	cr_assert_eq(add(b, "Z.a.example.test.", RR_TXT, 2, "\1c", 2, 2), ERR_OK);
	cr_assert_eq(add(b, "yljkjljk.A.example.test.", RR_TXT, 3, "\1d", 2, 3), ERR_OK);
	cr_assert_eq(add(b, "z.example.test.", RR_TXT, 1, "\1a", 2, 4), ERR_OK);
	cr_assert_eq(add(b, "z.example.test.", RR_A, 1, "1234", 4, 5), ERR_OK);
	cr_assert_eq(add(b, "\\001.z.example.test.", RR_A, 1, "0000", 4, 6), ERR_OK);
	cr_assert_eq(add(b, "*.z.example.test.", RR_A, 1, "0001", 4, 7), ERR_OK);
	cr_assert_eq(add(b, "\\200.z.example.test.", RR_A, 1, "0002", 4, 8), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_A, 1, "0003", 4, 9), ERR_OK);
	cr_assert_eq(add(b, "a.example.test.", RR_A, 1, "0004", 4, 10), ERR_OK);
	cr_assert_eq(zone_build_each(b, list, &l), ERR_OK);
	/* The example of RFC 4034 section 6.1, with records. */
	cr_assert_str_eq(l.text, "Example.test. 1 1 0003@9\n"
				 "a.example.test. 1 1 0004@10\n"
				 "yljkjljk.A.example.test. 16 3 \1d@3\n"
				 "Z.a.example.test. 16 2 \1c@2\n"
				 "z.example.test. 1 1 1234@5\n"
				 "z.example.test. 16 1 \1a@4\n"
				 "z.example.test. 16 1 \1b@1\n"
				 "\\001.z.example.test. 1 1 0000@6\n"
				 "*.z.example.test. 1 1 0001@7\n"
				 "\\200.z.example.test. 1 1 0002@8\n");
	l = (struct listing){ .stop_after = 2 };
	cr_assert_eq(zone_build_each(b, list, &l), ERR_OK);
	cr_assert_str_eq(l.text, "Example.test. 1 1 0003@9\na.example.test. 1 1 0004@10\n");
	zone_build_destroy(b);
}

/* Random names in and out of the zone, with awkward octets: the order is name_compare's. */
static const uint8_t *last_owner;
static bool is_ascending(void *user, const struct zone_build_record *r)
{
	cr_assert(!last_owner || name_compare(last_owner, r->owner) < 0, "%s before %s", model_text(last_owner),
		  model_text(r->owner));
	last_owner = r->owner;
	++*(unsigned *)user;
	return true;
}
Test(zone_build, order_of_any_octets)
{
	for (unsigned outside = 0; outside < 2; outside++) {
		struct zone_build *b = create(1 << 22);
		struct model_name apex = model_name(outside ? "." : "example.test.");
		uint64_t records;
		unsigned seen = 0;
		model_random_state = 42 + outside;
		for (unsigned i = 0; i < 2000; i++) {
			uint8_t name[NAME_MAX_BYTES];
			size_t at = 0;
			for (unsigned l = model_random(4); l > 0; l--) {
				name[at] = (uint8_t)(1 + model_random(model_random(8) ? 2 : 20));
				for (unsigned j = 1; j <= name[at]; j++)
					name[at + j] = (uint8_t)(model_random(3) ? model_random(3) : model_random(256));
				at += 1u + name[at];
			}
			memcpy(name + at, apex.wire, apex.bytes);
			struct master_record record = { .owner = name,
							.owner_bytes = at + apex.bytes,
							.type = RR_TXT,
							.rdata = (const uint8_t *)"",
							.ttl_s = 1 };
			cr_assert_eq(zone_build_add(b, &record), ERR_OK);
		}
		records = zone_build_records(b);
		last_owner = NULL;
		cr_assert_eq(zone_build_each(b, is_ascending, &seen), ERR_OK);
		cr_assert_eq(seen, records);
		cr_assert_gt(records, 300);
		zone_build_destroy(b);
	}
}

Test(zone_build, exact_duplicates_are_dropped_and_kept_for_the_checks)
{
	struct zone_build *b = create(1 << 20);
	cr_assert_eq(add(b, "example.test.", RR_NS, 5, "\2ns\4test", 9, 1), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_NS, 6, "\2NS\4Test", 9, 2), ERR_OK);
	cr_assert_eq(add(b, "EXAMPLE.test.", RR_NS, 5, "\2ns\4tesu", 9, 3), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_TXT, 5, "\1a", 2, 4), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_TXT, 5, "\1A", 2, 5), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_TXT, 5, "\1A", 2, 6), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_TXT, 5, "\1A", 2, 7), ERR_OK);
	cr_assert_eq(zone_build_records(b), 4);
	cr_assert_eq(zone_build_settle(b), ERR_OK);
	const struct zone_build_rrset *ns = zone_build_rrset_of(b, zone_build_apex(b), RR_NS);
	const struct zone_build_rrset *txt = zone_build_rrset_of(b, zone_build_apex(b), RR_TXT);
	cr_assert_eq(ns->rr_count, 2);
	cr_assert_eq(zone_build_rr(b, ns->first)->line, 1, "the first one stays");
	cr_assert_eq(zone_build_rr(b, ns->duplicates)->line, 2);
	cr_assert_eq(txt->rr_count, 2);
	cr_assert_eq(b->duplicate_count, 3);
	cr_assert_eq(zone_build_rr(b, txt->first)->line, 5, "upper case sorts first in data that is no name");
	/* And again after the settling. */
	cr_assert_eq(add(b, "example.test.", RR_TXT, 5, "\1a", 2, 8), ERR_OK);
	cr_assert_eq(add(b, "example.test.", RR_TXT, 5, "\1_", 2, 9), ERR_OK);
	cr_assert_eq(zone_build_records(b), 5);
	zone_build_destroy(b);
}

Test(zone_build, large_rrsets_settle_quickly)
{
	struct zone_build *b = create(16 << 20);
	uint32_t previous = 0, seen = 0;
	for (uint32_t i = 0; i < 50000; i++) {
		uint8_t a[4];
		store_be32(a, i * 2654435761u % 40000);
		cr_assert_eq(add(b, "example.test.", RR_A, 1, a, 4, i), ERR_OK);
	}
	cr_assert_eq(zone_build_settle(b), ERR_OK);
	const struct zone_build_rrset *rrset = zone_build_rrset_of(b, zone_build_apex(b), RR_A);
	ZONE_BUILD_EACH_RR(b, rrset, rr) {
		cr_assert(seen == 0 || load_be32(rr->rdata) > previous);
		previous = load_be32(rr->rdata);
		seen++;
	}
	cr_assert_eq(seen, rrset->rr_count);
	cr_assert_eq(seen + b->duplicate_count, 50000);
	zone_build_destroy(b);
}

Test(zone_build, ancestors_exist_up_to_the_apex)
{
	struct zone_build *b = create(1 << 20);
	cr_assert_eq(add(b, "x.Y.z.example.test.", RR_A, 1, "1234", 4, 1), ERR_OK);
	cr_assert_eq(add(b, "x.y.other.test.", RR_A, 1, "1234", 4, 2), ERR_OK);
	cr_assert_eq(zone_build_settle(b), ERR_OK);
	const struct zone_build_node *node = zone_build_find(b, model_name("X.y.z.example.test.").wire);
	cr_assert_not_null(node);
	static const char *const above[] = { "y.z.example.test.", "z.example.test.", "example.test." };
	for (size_t i = 0; i < ARRAY_LEN(above); i++) {
		node = zone_build_node(b, node->parent);
		cr_assert_eq(node, zone_build_find(b, model_name(above[i]).wire));
	}
	cr_assert_eq(node->parent, 0);
	cr_assert_eq(node, zone_build_apex(b));
	node = zone_build_find(b, model_name("x.y.other.test.").wire);
	cr_assert_eq(node->flags & ZONE_BUILD_OUT_OF_ZONE, ZONE_BUILD_OUT_OF_ZONE);
	cr_assert_null(zone_build_find(b, model_name("y.other.test.").wire));
	cr_assert_null(zone_build_find(b, model_name("nothing.example.test.").wire));
	zone_build_destroy(b);
}

Test(zone_build, stops_at_its_limit_of_memory)
{
	static const uint8_t text[60000] = { 0 };
	struct zone_build *b;
	enum err err = ERR_OK;
	uint64_t records;
	cr_assert_eq(zone_build_create(&b, model_name("example.test.").wire, RR_CLASS_IN, 100), ERR_NOSPACE);
	b = create(3 << 20);
	for (uint32_t i = 0; err == ERR_OK && i < 1000; i++) {
		char owner[64];
		snprintf(owner, sizeof owner, "n%u.example.test.", i);
		err = add(b, owner, 65280, 1, text, sizeof text, i);
	}
	cr_assert_eq(err, ERR_NOSPACE);
	records = zone_build_records(b);
	cr_assert_gt(records, 40);
	cr_assert_leq(zone_build_bytes(b), 3 << 20);
	zone_build_destroy(b);
	zone_build_destroy(NULL);
}

Test(zone_build, a_record_costs_about_as_many_octets_as_promised)
{
	struct zone_build *b = create(64 << 20);
	for (uint32_t i = 0; i < 100000; i++) {
		char owner[64];
		snprintf(owner, sizeof owner, "host%u.example.test.", i);
		cr_assert_eq(add(b, owner, RR_A, 1, "1234", 4, i), ERR_OK);
	}
	cr_assert_lt(zone_build_bytes(b) / 100000, 150, "%zu", zone_build_bytes(b) / 100000);
	zone_build_destroy(b);
}

Test(zone_build, records_of_one_owner_may_stand_apart)
{
	static const char *const owners[] = { "b.a.example.test.", "a.example.test.", "EXAMPLE.test.", "x.b.a.Example.test." };
	struct zone_build *b = create(1 << 20);
	uint32_t nodes = 0;
	for (uint32_t i = 0; i < 24; i++) {
		uint8_t a[4] = { 192, 0, 2, (uint8_t)(24 - i) };
		cr_assert_eq(
			add(b, owners[i % 4], i % 3 ? RR_A : RR_TXT, 1, i % 3 ? a : (const uint8_t *)"\1a", i % 3 ? 4 : 2, i),
			ERR_OK);
		if (i == 11) /* and again after a settling */
			cr_assert_eq(zone_build_settle(b), ERR_OK);
	}
	cr_assert_eq(zone_build_settle(b), ERR_OK);
	ZONE_BUILD_EACH_NODE(b, node)
		nodes++;
	cr_assert_eq(nodes, 4);
	cr_assert_eq(b->node_count, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct zone_build_node *node = zone_build_find(b, model_name(owners[i]).wire);
		const struct zone_build_rrset *a = zone_build_rrset_of(b, node, RR_A),
					      *txt = zone_build_rrset_of(b, node, RR_TXT);
		uint8_t last = 0;
		cr_assert_eq(a->rr_count, 4);
		cr_assert_eq(txt->rr_count, 1);
		cr_assert_eq(zone_build_rrset(b, node->rrsets), a);
		cr_assert_eq(zone_build_rrset(b, a->next), txt);
		cr_assert_eq(txt->next, 0);
		ZONE_BUILD_EACH_RR(b, a, rr) {
			cr_assert_gt(rr->rdata[3], last);
			last = rr->rdata[3];
		}
	}
	const struct zone_build_node *deep = zone_build_find(b, model_name(owners[3]).wire);
	cr_assert_eq(zone_build_node(b, deep->parent), zone_build_find(b, model_name(owners[0]).wire));
	cr_assert_eq(b->duplicate_count, 4);
	zone_build_destroy(b);
}

Test(zone_build, a_zone_that_does_not_fit_is_neither_checked_nor_compiled)
{
	struct zone_build *b = create(100000);
	enum err err = ERR_OK;
	size_t bytes;
	const char *why = NULL;
	for (uint32_t i = 0; err == ERR_OK; i++) {
		char owner[64];
		snprintf(owner, sizeof owner, "host%u.example.test.", i);
		err = add(b, owner, RR_A, 1, "1234", 4, i);
	}
	cr_assert_eq(err, ERR_NOSPACE);
	/* The records took all of it; nothing is left for the hash table. */
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(zone_build_settle(b), ERR_NOSPACE);
		cr_assert_eq(zone_check(b, NULL, NULL).err, ERR_NOSPACE);
		cr_assert_eq(zone_compile_bytes(b, &bytes, &why), ERR_NOSPACE);
		cr_assert_not_null(why);
	}
	zone_build_destroy(b);
}
