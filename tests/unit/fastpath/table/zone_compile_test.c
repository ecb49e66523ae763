/* SPDX-License-Identifier: Apache-2.0 */
#include "zone_model.h"
#include "table/zone_compile_internal.h"

/* A zone made by hand: example.test. with a SOA (TTL 3600, MINIMUM 300). */
struct zone {
	struct zone_build *b;
	struct zone_image *image;
	struct zone_view view;
};

static void add(struct zone *z, const char *owner, uint16_t type, uint32_t ttl_s, const void *rdata, size_t bytes)
{
	struct model_name name = model_name(owner);
	struct master_record record = { .owner = name.wire,
					.owner_bytes = name.bytes,
					.type = type,
					.class_ = RR_CLASS_IN,
					.ttl_s = ttl_s,
					.rdata = rdata,
					.rdata_bytes = (uint16_t)bytes };
	cr_assert_eq(zone_build_add(z->b, &record), ERR_OK);
}
/* rdata: `prefix` octets of zero and a name. */
static void add_name(struct zone *z, const char *owner, uint16_t type, unsigned prefix, const char *target)
{
	uint8_t rdata[8 + NAME_MAX_BYTES] = { 0 };
	struct model_name name = model_name(target);
	memcpy(rdata + prefix, name.wire, name.bytes);
	add(z, owner, type, 60, rdata, prefix + name.bytes);
}
static void add_signature(struct zone *z, const char *owner, uint16_t covered, uint32_t ttl_s)
{
	uint8_t rdata[20] = { (uint8_t)(covered >> 8), (uint8_t)covered, 13 };
	add(z, owner, RR_RRSIG, ttl_s, rdata, sizeof rdata);
}
static struct zone *create(bool with_soa)
{
	struct zone *z = calloc(1, sizeof *z);
	static const uint8_t soa[] =
		"\2ns\7example\4test\0\4root\7example\4test\0\0\0\0\x2a\0\0\x10\0\0\0\x0e\0\0\1\0\0\0\0\1\x2c";
	cr_assert_eq(zone_build_create(&z->b, model_name("example.test.").wire, RR_CLASS_IN, 64u << 20), ERR_OK);
	if (with_soa)
		add(z, "example.test.", RR_SOA, 3600, soa, sizeof soa - 1);
	return z;
}
static struct zone *compile(struct zone *z)
{
	z->image = model_compile(z->b);
	z->view.base = z->image;
	return z;
}
static void destroy(struct zone *z)
{
	zone_build_destroy(z->b);
	free(z->image);
	free(z);
}
static struct zone_at at(const struct zone *z, const char *name) { return model_find(&z->view, model_name(name).wire); }
static const struct zone_rrset *rrset(const struct zone *z, const char *name, uint16_t type)
{
	return at(z, name).node ? zone_node_rrset(at(z, name), type) : NULL;
}
static void check_block(const struct zone_rrset *r, const char *expected, size_t bytes)
{
	cr_assert_not_null(r);
	cr_assert_eq(r->block_bytes, bytes, "%u octets", r->block_bytes);
	for (size_t i = 0; i < bytes; i++)
		cr_assert_eq(zone_rrset_block(r)[i], (uint8_t)expected[i], "octet %zu is %02x", i, zone_rrset_block(r)[i]);
}
#define BLOCK(r, text) check_block(r, text, sizeof(text) - 1)

Test(zone_compile, a_block_is_what_goes_into_a_message)
{
	struct zone *z = create(true);
	add(z, "www.example.test.", RR_A, 300, "\xc0\0\2\2", 4);
	add(z, "www.example.test.", RR_A, 256, "\xc0\0\2\1", 4);
	compile(z);
	const struct zone_rrset *r = rrset(z, "WWW.example.test.", RR_A);
	BLOCK(r, "\xc0\x0c\0\1\0\1\0\0\1\0\0\4\xc0\0\2\1"
		 "\xc0\x0c\0\1\0\1\0\0\1\0\0\4\xc0\0\2\2");
	cr_assert_eq(r->ttl_s, 256, "the smallest of the set");
	cr_assert_eq(r->rr_count, 2);
	cr_assert_eq(r->embedded_count, 0);
	cr_assert_null(rrset(z, "www.example.test.", RR_AAAA));
	cr_assert_eq(z->image->serial, 42);
	destroy(z);
}

Test(zone_compile, names_point_to_the_apex_or_into_the_block)
{
	struct zone *z = create(true);
	add_name(z, "example.test.", RR_NS, 0, "ns1.EXAMPLE.test.");
	add_name(z, "example.test.", RR_NS, 0, "a.dns.other.test.");
	add_name(z, "example.test.", RR_NS, 0, "b.DNS.other.test.");
	add_name(z, "example.test.", RR_NS, 0, "example.test.");
	add_name(z, "example.test.", RR_NS, 0, "org.");
	add(z, "ns1.example.test.", RR_A, 60, "1234", 4);
	compile(z);
	const struct zone_rrset *r = rrset(z, "example.test.", RR_NS);
	const struct zone_embedded *e = zone_rrset_embedded(r);
#define NS(bytes) "\xc0\x0c\0\2\0\1\0\0\0\x3c\0" bytes
	/* In canonical order, names as they are: lengths first. "test" is at 8 of the apex; "dns" at 14 of the block. */
	BLOCK(r, NS("\x0e") "\1a\3dns\5other\0\x8" NS("\4") "\1b\0\xe" NS("\6") "\3ns1\0\0" NS("\5") "\3org\0" NS("\2") "\0\0");
	static const struct {
		uint16_t offset, pointer;
		uint8_t flags, labels;
		uint16_t bytes;
	} row[] = {
		{ 12, 24, ZONE_EMBEDDED_TO_APEX, 4, 18 }, { 38, 40, ZONE_EMBEDDED_TO_BLOCK, 4, 18 },
		{ 54, 58, ZONE_EMBEDDED_TO_APEX, 3, 18 }, { 72, 0, 0, 1, 5 },
		{ 89, 89, ZONE_EMBEDDED_TO_APEX, 2, 14 },
	};
	cr_assert_eq(r->embedded_count, ARRAY_LEN(row));
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		cr_assert_eq(e[i].offset, row[i].offset, "%zu at %u", i, e[i].offset);
		cr_assert_eq(e[i].pointer, row[i].pointer, "%zu to %u", i, e[i].pointer);
		cr_assert_eq(e[i].flags, row[i].flags | ZONE_EMBEDDED_MAY_COMPRESS | ZONE_EMBEDDED_ADDITIONAL);
		cr_assert_eq(e[i].labels, row[i].labels);
		cr_assert_eq(e[i].name_bytes, row[i].bytes);
	}
	cr_assert_eq(zone_ptr(z->image, e[2].target), at(z, "ns1.example.test.").node);
	cr_assert_eq(e[4].target, z->image->apex);
	cr_assert_eq(e[0].target, 0);
	destroy(z);
}

Test(zone_compile, which_names_are_listed)
{
	struct zone *z = create(true);
	static const struct {
		uint16_t type;
		unsigned prefix;
		uint8_t flags;
		bool is_listed, is_followed;
	} row[] = {
		{ RR_NS, 0, ZONE_EMBEDDED_MAY_COMPRESS | ZONE_EMBEDDED_ADDITIONAL, true, true },
		{ RR_MX, 2, ZONE_EMBEDDED_MAY_COMPRESS | ZONE_EMBEDDED_ADDITIONAL, true, true },
		{ RR_CNAME, 0, ZONE_EMBEDDED_MAY_COMPRESS, true, true },
		{ RR_PTR, 0, ZONE_EMBEDDED_MAY_COMPRESS, true, false },
		{ RR_SRV, 6, ZONE_EMBEDDED_ADDITIONAL, true, true },
		{ RR_SVCB, 2, ZONE_EMBEDDED_ADDITIONAL, true, true },
		{ RR_HTTPS, 2, ZONE_EMBEDDED_ADDITIONAL, true, true },
		{ RR_DNAME, 0, 0, true, true },
		{ RR_NSEC, 0, 0, false, false },
		{ 65280, 0, 0, false, false },
	};
	add(z, "host.example.test.", RR_A, 60, "1234", 4);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		char owner[40];
		snprintf(owner, sizeof owner, "t%u.example.test.", row[i].type);
		add_name(z, owner, row[i].type, row[i].prefix, "Host.example.test.");
	}
	compile(z);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		char owner[40];
		snprintf(owner, sizeof owner, "t%u.example.test.", row[i].type);
		const struct zone_rrset *r = rrset(z, owner, row[i].type);
		const struct zone_embedded *e = zone_rrset_embedded(r);
		bool may_compress = row[i].flags & ZONE_EMBEDDED_MAY_COMPRESS;
		cr_assert_eq(r->embedded_count, row[i].is_listed, "%s", owner);
		cr_assert_eq(r->block_bytes, 12 + row[i].prefix + (may_compress ? 7 : 19), "%s", owner);
		if (!row[i].is_listed)
			continue;
		cr_assert_eq(e->flags & ~ZONE_EMBEDDED_TO_APEX, row[i].flags, "%s", owner);
		cr_assert_eq(!!(e->flags & ZONE_EMBEDDED_TO_APEX), may_compress, "%s", owner);
		struct zone_at target = zone_embedded_target(&z->view, at(z, owner), e, r);
		cr_assert_eq(target.node, row[i].is_followed ? at(z, "host.example.test.").node : NULL, "%s", owner);
	}
	destroy(z);
}

/* RFC 2308 section 3. */
Test(zone_compile, negative_answers_have_their_own_soa)
{
	for (unsigned is_signed = 0; is_signed < 2; is_signed++) {
		struct zone *z = create(true);
		if (is_signed)
			add_signature(z, "example.test.", RR_SOA, 3600);
		compile(z);
		const struct zone_rrset *r = zone_ptr(z->image, z->image->negative_soa),
					*plain = rrset(z, "example.test.", RR_SOA);
		cr_assert_eq(r->ttl_s, 300);
		cr_assert_eq(load_be32(zone_rrset_block(r) + 6), 300);
		cr_assert_eq(plain->ttl_s, 3600);
		cr_assert_eq(plain->block_bytes, r->block_bytes);
		const struct zone_rrset *signature = zone_rrset_signature(z->image, r);
		cr_assert_eq(signature != NULL, is_signed);
		if (is_signed) {
			cr_assert_eq(signature->ttl_s, 300);
			cr_assert_eq(zone_rrset_signature(z->image, plain)->ttl_s, 3600);
		}
		cr_assert_eq(z->image->rr_count, 1 + is_signed, "copies do not count");
		destroy(z);
	}
}

Test(zone_compile, signatures_stand_beside_what_they_cover)
{
	struct zone *z = create(true);
	add(z, "a.example.test.", RR_A, 60, "1234", 4);
	add(z, "a.example.test.", RR_TXT, 60, "\1x", 2);
	add_signature(z, "a.example.test.", RR_A, 60);
	add_signature(z, "a.example.test.", RR_AAAA, 60);
	add_signature(z, "b.example.test.", RR_A, 60);
	compile(z);
	cr_assert_eq(at(z, "a.example.test.").node->rrset_count, 2);
	cr_assert_null(rrset(z, "a.example.test.", RR_RRSIG));
	const struct zone_rrset *signature = zone_rrset_signature(z->image, rrset(z, "a.example.test.", RR_A));
	cr_assert_eq(signature->type, RR_RRSIG);
	cr_assert_eq(signature->rr_count, 1);
	cr_assert_eq(load_be16(zone_rrset_block(signature) + 12), RR_A);
	cr_assert_null(zone_rrset_signature(z->image, rrset(z, "a.example.test.", RR_TXT)));
	cr_assert_null(at(z, "b.example.test.").node, "signatures over nothing make no name");
	cr_assert_eq(z->image->node_count, 2);
	destroy(z);
}

/* Of two NSEC3PARAM, and of NSEC besides, the NSEC3 chain that is really there is used. */
Test(zone_compile, choice_of_the_chain)
{
	static const struct {
		const char *name;
		uint8_t algorithm, flags;
		bool chain, nsec;
		uint32_t expected;
	} row[] = {
		{ "NSEC3PARAM without a chain", 1, 0, false, false, 0 },
		{ "NSEC3PARAM without a chain, NSEC", 1, 0, false, true, ZONE_SIGNED_NSEC },
		{ "NSEC3PARAM with a chain", 1, 0, true, false, ZONE_SIGNED_NSEC3 },
		{ "both", 1, 0, true, true, ZONE_SIGNED_NSEC3 },
		{ "an algorithm that nobody knows", 2, 0, true, false, 0 },
		{ "flags", 1, 1, true, true, ZONE_SIGNED_NSEC },
	};
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct zone *z = create(true);
		struct model *m = calloc(1, sizeof *m);
		uint8_t hash[20], param[] = { row[i].algorithm, row[i].flags, 0, MODEL_ITERATIONS, 3, 0xaa, 0xbb, 0xcc };
		uint8_t nsec3[] = { row[i].algorithm, 0, 0, MODEL_ITERATIONS, 3, 0xaa, 0xbb, 0xcc, 20, [29] = 1, 1, 0x40 };
		memcpy(m->apex, model_name("example.test.").wire, 14);
		model_hash(hash, m->apex);
		add(z, "example.test.", RR_NSEC3PARAM, 0, "\1\0\0\x63\0", 5);
		add(z, "example.test.", RR_NSEC3PARAM, 0, param, sizeof param);
		if (row[i].nsec)
			add(z, "example.test.", RR_NSEC, 60, "\7example\4test\0\0\1\x40", 17);
		if (row[i].chain)
			add(z, model_text(model_nsec3_owner(m, hash).wire), RR_NSEC3, 60, nsec3, sizeof nsec3);
		compile(z);
		cr_assert_eq(z->image->flags, row[i].expected, "%s: %u", row[i].name, z->image->flags);
		cr_assert_eq(z->image->node_count, 1);
		cr_assert_eq(z->image->nsec3_count, row[i].expected == ZONE_SIGNED_NSEC3);
		if (row[i].expected == ZONE_SIGNED_NSEC3) {
			cr_assert_eq(z->image->nsec3_iterations, MODEL_ITERATIONS);
			cr_assert_eq(z->image->nsec3_salt_bytes, 3);
			cr_assert_arr_eq(z->image->nsec3_salt, model_salt, 3);
		}
		free(m);
		destroy(z);
	}
}

Test(zone_compile, rrsets_up_to_the_size_of_a_message)
{
	static const struct {
		unsigned rrs;
		bool fits;
	} row[] = { { ZONE_BLOCK_MAX_BYTES / 16, true }, { ZONE_BLOCK_MAX_BYTES / 16 + 1, false } };
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct zone *z = create(true);
		size_t bytes = 12345;
		const char *why = NULL;
		for (unsigned j = 0; j < row[i].rrs; j++) {
			uint8_t a[4];
			store_be32(a, j * 2654435761u);
			add(z, "big.example.test.", RR_A, 60, a, 4);
		}
		enum err err = zone_compile_bytes(z->b, &bytes, &why);
		cr_assert_eq(err, row[i].fits ? ERR_OK : ERR_NOSPACE);
		if (row[i].fits) {
			compile(z);
			cr_assert_eq(rrset(z, "big.example.test.", RR_A)->rr_count, row[i].rrs);
		} else {
			cr_assert_str_eq(why, "an RRset is too large for a message");
			cr_assert_eq(bytes, 12345, "untouched on failure");
		}
		destroy(z);
	}
	struct zone *z = create(true);
	uint8_t octets[ZONE_BLOCK_MAX_BYTES] = { 0 };
	add(z, "a.example.test.", 65280, 60, octets, ZONE_BLOCK_MAX_BYTES - 12);
	compile(z);
	cr_assert_eq(rrset(z, "a.example.test.", 65280)->block_bytes, ZONE_BLOCK_MAX_BYTES);
	destroy(z);
}

/* No pointer may reach beyond 0x3fff, wherever a block stands; relative ones stay below on their own. */
Test(zone_compile, pointers_in_large_blocks)
{
	struct zone *z = create(true);
	unsigned pointers = 0;
	for (unsigned i = 0; i < 1500; i++) {
		char target[80];
		snprintf(target, sizeof target, "mail%u.cluster%u.example.org.", i, i / 50);
		add_name(z, "example.test.", RR_MX, 2, target);
	}
	compile(z);
	const struct zone_rrset *r = rrset(z, "example.test.", RR_MX);
	const struct zone_embedded *e = zone_rrset_embedded(r);
	cr_assert_gt(r->block_bytes, 0x4000 + 0x2000);
	for (uint32_t i = 0; i < r->embedded_count; i++)
		if (e[i].pointer) {
			pointers++;
			cr_assert_leq(load_be16(zone_rrset_block(r) + e[i].pointer), 0x3fff);
		}
	cr_assert_gt(pointers, 300);
	for (uint32_t i = 0; i < r->embedded_count; i++) {
		uint8_t name[NAME_MAX_BYTES];
		cr_assert_eq(zone_embedded_name(z->image, r, &e[i], name), e[i].name_bytes);
		cr_assert_eq(name_wire_bytes(name, sizeof name), e[i].name_bytes);
		cr_assert(name_is_at_or_below(name, model_name("example.org.").wire));
	}
	destroy(z);
}

Test(zone_compile, refusals)
{
	const char *why = NULL;
	size_t bytes;
	struct zone *z = create(false);
	add(z, "example.test.", RR_A, 60, "1234", 4);
	cr_assert_eq(zone_compile_bytes(z->b, &bytes, &why), ERR_MALFORMED);
	cr_assert_str_eq(why, "the zone has no usable SOA");
	destroy(z);
	z = create(true);
	add_name(z, "a.example.test.", RR_CNAME, 0, "b.");
	add_name(z, "a.example.test.", RR_CNAME, 0, "c.");
	cr_assert_neq(zone_compile_bytes(z->b, &bytes, &why), ERR_OK);
	cr_assert_str_eq(why, "an owner has several CNAMEs or DNAMEs");
	destroy(z);
	z = create(true);
	cr_assert_eq(zone_compile_bytes(z->b, &bytes, &why), ERR_OK);
	uint64_t *out = calloc(1, bytes + 8);
	cr_assert_eq(zone_compile(z->b, out, bytes + 8), ERR_ARGUMENT);
	cr_assert_eq(out[0], 0);
	add(z, "a.example.test.", RR_A, 60, "1234", 4);
	cr_assert_eq(zone_compile(z->b, out, bytes), ERR_ARGUMENT, "the plan follows the records");
	free(out);
	destroy(compile(z));
}

/* Delegations, glue, and what lies outside. */
Test(zone_compile, cuts_glue_and_strangers)
{
	struct zone *z = create(true);
	add_name(z, "sub.example.test.", RR_NS, 0, "ns.sub.example.test.");
	add_name(z, "sub.example.test.", RR_NS, 0, "ns.other.test.");
	add(z, "ns.sub.example.test.", RR_A, 60, "1234", 4);
	add(z, "ns.other.test.", RR_A, 60, "1234", 4);
	add_name(z, "d.example.test.", RR_DNAME, 0, "other.test.");
	add(z, "x.y.d.example.test.", RR_A, 60, "1234", 4);
	add(z, "*.w.example.test.", RR_A, 60, "1234", 4);
	compile(z);
	cr_assert_eq(z->image->flags, ZONE_HAS_CUT | ZONE_HAS_DNAME | ZONE_HAS_WILDCARD);
	cr_assert_null(at(z, "ns.other.test.").node);
	cr_assert_eq(z->image->rr_count, 7);
	cr_assert_eq(z->image->node_count, 8);
	static const struct {
		const char *name;
		uint16_t flags;
		const char *cut;
	} row[] = {
		{ "example.test.", ZONE_NODE_APEX, NULL },
		{ "sub.example.test.", ZONE_NODE_CUT, "sub.example.test." },
		{ "ns.sub.example.test.", ZONE_NODE_BELOW, "sub.example.test." },
		{ "d.example.test.", ZONE_NODE_DNAME, NULL },
		{ "y.d.example.test.", ZONE_NODE_BELOW | ZONE_NODE_EMPTY, "d.example.test." },
		{ "x.y.d.example.test.", ZONE_NODE_BELOW, "d.example.test." },
		{ "w.example.test.", ZONE_NODE_EMPTY, NULL },
		{ "*.w.example.test.", ZONE_NODE_WILDCARD, NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		cr_assert_eq(at(z, row[i].name).node->flags, row[i].flags, "%s: %u", row[i].name, at(z, row[i].name).node->flags);
		cr_assert_eq(zone_node_cut(&z->view, at(z, row[i].name)).node, row[i].cut ? at(z, row[i].cut).node : NULL, "%s",
			     row[i].name);
	}
	const struct zone_rrset *ns = rrset(z, "sub.example.test.", RR_NS);
	cr_assert_eq(zone_ptr(z->image, zone_rrset_embedded(ns)[0].target), at(z, "ns.sub.example.test.").node, "glue");
	cr_assert_eq(zone_rrset_embedded(ns)[1].target, 0);
	destroy(z);
}
