/* SPDX-License-Identifier: Apache-2.0 */
/* zone_model.h: a zone as a plain list of records, with naive versions of everything that an image answers, and random
 * zones. For the tests of table/zone_*: what the image says must be what the model says. */
#pragma once
#include "base/bytes.h"
#include "dns/message.h"
#include "dns/rdata.h"
#include "table/nsec3_hash.h"
#include "table/zone_build_internal.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef MODEL_WITHOUT_CRITERION /* the fuzzer's templates */
#define cr_assert(x, ...) ASSERT(x)
#define cr_assert_eq(a, b, ...) ASSERT((a) == (b))
#define cr_assert_lt(a, b, ...) ASSERT((a) < (b))
#define cr_assert_leq(a, b, ...) ASSERT((a) <= (b))
#define cr_assert_fail(...) ASSERT(!"reached")
#else
#include <criterion/criterion.h>
#endif

#define MODEL_MAX_RECORDS 1500
#define MODEL_MAX_NAMES 600
#define MODEL_MAX_RDATA 300

enum model_signing { MODEL_UNSIGNED, MODEL_NSEC, MODEL_NSEC3, MODEL_OPT_OUT, MODEL_SIGNINGS };

struct model_record {
	uint8_t owner[NAME_MAX_BYTES];
	size_t owner_bytes;
	uint16_t type;
	uint32_t ttl_s;
	uint16_t rdata_bytes;
	uint8_t rdata[MODEL_MAX_RDATA];
};
struct model {
	uint8_t apex[NAME_MAX_BYTES];
	enum model_signing signing;
	uint32_t alphabet, cuts; /* labels in use; one in so many NS and DNAME records is taken */
	uint32_t serial;
	size_t count;
	struct model_record record[MODEL_MAX_RECORDS];
};
struct model_name {
	uint8_t wire[NAME_MAX_BYTES];
	size_t bytes;
};

/* --- random, from a seed that failing tests print ----------------------------------------------------------------------- */

static uint64_t model_random_state;
static inline uint32_t model_random(uint32_t below)
{
	model_random_state ^= model_random_state << 13;
	model_random_state ^= model_random_state >> 7;
	model_random_state ^= model_random_state << 17;
	return (uint32_t)((model_random_state >> 16) % below);
}

/* --- names ---------------------------------------------------------------------------------------------------------------- */

static inline struct model_name model_name(const char *text)
{
	struct model_name n;
	const char *why;
	n.bytes = name_from_text(n.wire, text, strlen(text), NULL, &why);
	cr_assert(n.bytes != 0, "%s: %s", text, why);
	return n;
}
static inline const char *model_text(const uint8_t *name)
{
	static char text[4][NAME_TEXT_MAX_BYTES];
	static unsigned turn;
	char *out = text[turn++ % 4];
	name_to_text(out, name);
	return out;
}
/* One of few labels, so that names meet; any letter case. */
static inline size_t model_random_label(uint8_t *out, uint32_t alphabet)
{
	static const char *const label[] = { "\1a",    "\1*", "\1b",   "\2aa",	"\1\0", "\3a-b",
					     "\4host", "\1c", "\2\1x", "\3ns1", "\1z" };
	uint32_t which = model_random(MIN(alphabet, ARRAY_LEN(label)));
	size_t bytes = 1u + (unsigned)label[which][0];
	memcpy(out, label[which], bytes);
	if (model_random(3) == 0)
		for (size_t i = 1; i < bytes; i++)
			if (out[i] >= 'a' && out[i] <= 'z')
				out[i] -= 0x20;
	return bytes;
}
static inline struct model_name model_random_name(const struct model *m)
{
	struct model_name n = { .bytes = 0 };
	unsigned labels = model_random(20) == 0 ? 5 + model_random(20) : model_random(4);
	for (unsigned i = 0; i < labels; i++)
		n.bytes += model_random_label(n.wire + n.bytes, m->alphabet);
	size_t apex_bytes = name_wire_bytes(m->apex, NAME_MAX_BYTES);
	memcpy(n.wire + n.bytes, m->apex, apex_bytes);
	n.bytes += apex_bytes;
	return n;
}
static inline struct model_name model_up(const uint8_t *name)
{
	struct model_name n = { .bytes = name_wire_bytes(name, NAME_MAX_BYTES) - 1u - name[0] };
	memcpy(n.wire, name + 1 + name[0], n.bytes);
	return n;
}

/* --- records --------------------------------------------------------------------------------------------------------------- */

static inline bool model_same_rdata(uint16_t type, const struct model_record *r, const uint8_t *rdata, size_t bytes)
{
	uint8_t a[MODEL_MAX_RDATA], b[MODEL_MAX_RDATA];
	memcpy(a, r->rdata, r->rdata_bytes);
	memcpy(b, rdata, bytes);
	rdata_canonical(type, a, r->rdata_bytes);
	rdata_canonical(type, b, bytes);
	return rdata_compare(a, r->rdata_bytes, b, bytes) == 0;
}
static inline bool model_has(const struct model *m, const uint8_t *owner, uint16_t type)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->record[i].type == type && name_equal(m->record[i].owner, owner))
			return true;
	return false;
}
static inline void model_add(struct model *m, const uint8_t *owner, uint16_t type, uint32_t ttl_s, const uint8_t *rdata,
			     size_t bytes)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->record[i].type == type && name_equal(m->record[i].owner, owner) &&
		    model_same_rdata(type, &m->record[i], rdata, bytes))
			return;
	cr_assert(m->count < MODEL_MAX_RECORDS && bytes <= MODEL_MAX_RDATA);
	struct model_record *r = &m->record[m->count++];
	*r = (struct model_record){ .type = type, .ttl_s = ttl_s, .rdata_bytes = (uint16_t)bytes };
	r->owner_bytes = name_wire_bytes(owner, NAME_MAX_BYTES);
	memcpy(r->owner, owner, r->owner_bytes);
	memcpy(r->rdata, rdata, bytes);
}
static inline void model_remove_owner(struct model *m, const uint8_t *owner)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i++)
		if (!name_equal(m->record[i].owner, owner) || m->record[i].type == RR_SOA)
			m->record[kept++] = m->record[i];
	m->count = kept;
}
/* Takes signatures and denial away, for signing anew. */
static inline void model_unsign(struct model *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i++) {
		uint16_t type = m->record[i].type;
		if (type != RR_RRSIG && type != RR_NSEC && type != RR_NSEC3 && type != RR_NSEC3PARAM && type != RR_SOA)
			m->record[kept++] = m->record[i];
	}
	m->count = kept;
}

static inline void model_add_random(struct model *m, const uint8_t *owner)
{
	static const uint16_t type[] = { RR_A, RR_A, RR_AAAA, RR_TXT, RR_NS, RR_MX, RR_MX, RR_SRV, RR_CNAME, RR_DNAME, 65280 };
	static const uint8_t prefix[] = { [RR_MX] = 2, [RR_SRV] = 6, [RR_DNAME] = 0 };
	uint16_t t = type[model_random(ARRAY_LEN(type))];
	uint8_t rdata[MODEL_MAX_RDATA];
	size_t bytes = 0;
	bool is_apex = name_equal(owner, m->apex);
	if (((t == RR_NS || t == RR_DNAME) && model_random(m->cuts)) ||
	    ((t == RR_CNAME || t == RR_DNAME) && (is_apex || model_has(m, owner, t))))
		return;
	if (t == RR_NS || t == RR_MX || t == RR_SRV || t == RR_CNAME || t == RR_DNAME) {
		for (; bytes < (t < sizeof prefix ? prefix[t] : 0u); bytes++)
			rdata[bytes] = (uint8_t)model_random(3);
		struct model_name target =
			model_random(6) ? model_random_name(m) : model_name(model_random(2) ? "Mail.other.test." : ".");
		memcpy(rdata + bytes, target.wire, target.bytes);
		bytes += target.bytes;
	} else {
		bytes = t == RR_A ? 4 : t == RR_AAAA ? 16 : model_random(40);
		for (size_t i = 0; i < bytes; i++)
			rdata[i] = (uint8_t)model_random(256);
		if (t == RR_TXT) {
			rdata[0] = (uint8_t)bytes;
			bytes++;
		}
	}
	model_add(m, owner, t, 60 + model_random(3), rdata, bytes);
}

/* --- naive answers ---------------------------------------------------------------------------------------------------------- */

/* Whether a record makes its owner a node. */
static inline bool model_is_data(const struct model_record *r) { return r->type != RR_NSEC3 && r->type != RR_RRSIG; }

static inline bool model_exists(const struct model *m, const uint8_t *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (model_is_data(&m->record[i]) && name_is_at_or_below(m->record[i].owner, name))
			return true;
	return false;
}
/* False if the name is authoritative. */
static inline bool model_cut(const struct model *m, const uint8_t *name, struct model_name *cut)
{
	unsigned labels = name_labels(name), apex_labels = name_labels(m->apex);
	for (unsigned l = apex_labels; l <= labels; l++) {
		const uint8_t *up = name + name_suffix_offset(name, labels - l);
		bool is_cut = l > apex_labels && model_has(m, up, RR_NS);
		if (is_cut || (l < labels && model_has(m, up, RR_DNAME))) {
			cut->bytes = name_wire_bytes(up, NAME_MAX_BYTES);
			memcpy(cut->wire, up, cut->bytes);
			return true;
		}
	}
	return false;
}
static inline bool model_is_below(const struct model *m, const uint8_t *name)
{
	struct model_name cut;
	return model_cut(m, name, &cut) && !name_equal(cut.wire, name);
}

static int model_name_compare(const void *a, const void *b)
{
	return name_compare(((const struct model_name *)a)->wire, ((const struct model_name *)b)->wire);
}
/* All existing names, in canonical order. */
static inline size_t model_names(const struct model *m, struct model_name *out)
{
	size_t count = 0, kept = 0;
	for (size_t i = 0; i < m->count; i++) {
		if (!model_is_data(&m->record[i]))
			continue;
		struct model_name n = { .bytes = m->record[i].owner_bytes };
		memcpy(n.wire, m->record[i].owner, n.bytes);
		for (;;) {
			bool is_known = false;
			for (size_t j = 0; j < count && !is_known; j++)
				is_known = name_equal(out[j].wire, n.wire);
			if (is_known)
				break;
			cr_assert(count < MODEL_MAX_NAMES);
			out[count++] = n;
			if (name_equal(n.wire, m->apex))
				break;
			n = model_up(n.wire);
		}
	}
	qsort(out, count, sizeof *out, model_name_compare);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !name_equal(out[kept - 1].wire, out[i].wire))
			out[kept++] = out[i];
	return kept;
}

/* --- signing, in form only --------------------------------------------------------------------------------------------------- */

#define MODEL_ITERATIONS 2
static const uint8_t model_salt[3] = { 0xaa, 0xbb, 0xcc };

static inline void model_hash(uint8_t hash[20], const uint8_t *name)
{
	uint8_t lower[NAME_MAX_BYTES];
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	name_lower(lower, name, bytes);
	zone_nsec3_hash(hash, lower, bytes, model_salt, sizeof model_salt, MODEL_ITERATIONS);
}
static inline struct model_name model_nsec3_owner(const struct model *m, const uint8_t hash[20])
{
	static const char digit[] = "0123456789ABCDEFGHIJKLMNOPQRSTUV";
	struct model_name n;
	uint8_t label[33] = { 32 };
	for (unsigned i = 0; i < 32; i++) {
		unsigned bit = 5 * i, word = (unsigned)hash[bit / 8] << 8 | (bit / 8 + 1 < 20 ? hash[bit / 8 + 1] : 0);
		label[1 + i] = (uint8_t)digit[word >> (11 - bit % 8) & 31];
	}
	n.bytes = name_concat(n.wire, label, sizeof label, m->apex);
	return n;
}
static inline void model_sign_rrset(struct model *m, const uint8_t *owner, uint16_t covered, uint32_t ttl_s)
{
	uint8_t rdata[MODEL_MAX_RDATA] = { (uint8_t)(covered >> 8), (uint8_t)covered, 13, 2 };
	size_t apex_bytes = name_wire_bytes(m->apex, NAME_MAX_BYTES), at = 18;
	memcpy(rdata + at, m->apex, apex_bytes);
	at += apex_bytes;
	rdata[at++] = (uint8_t)covered;
	model_add(m, owner, RR_RRSIG, ttl_s, rdata, at);
}
static inline void model_nsec_chain(struct model *m, const struct model_name *name, size_t count)
{
	static const uint8_t bitmap[] = { 0, 1, 0x40 };
	size_t first = SIZE_MAX, last = SIZE_MAX;
	uint8_t rdata[MODEL_MAX_RDATA];
	for (size_t i = 0; i <= count; i++) {
		if (i < count && model_is_below(m, name[i].wire))
			continue;
		if (i < count) {
			bool is_empty = true;
			for (size_t j = 0; j < m->count && is_empty; j++)
				is_empty = !model_is_data(&m->record[j]) || !name_equal(m->record[j].owner, name[i].wire);
			if (is_empty)
				continue;
		}
		const struct model_name *next = &name[i < count ? i : first];
		if (last != SIZE_MAX) {
			memcpy(rdata, next->wire, next->bytes);
			memcpy(rdata + next->bytes, bitmap, sizeof bitmap);
			model_add(m, name[last].wire, RR_NSEC, 30, rdata, next->bytes + sizeof bitmap);
		} else {
			first = i;
		}
		last = i;
	}
}
static int model_hash_compare(const void *a, const void *b) { return memcmp(a, b, 20); }
static inline void model_nsec3_chain(struct model *m, const struct model_name *name, size_t count)
{
	static uint8_t hash[MODEL_MAX_NAMES][20];
	size_t hashes = 0;
	uint8_t param[8] = { 1, 0, 0, MODEL_ITERATIONS, sizeof model_salt, model_salt[0], model_salt[1], model_salt[2] };
	model_add(m, m->apex, RR_NSEC3PARAM, 0, param, sizeof param);
	for (size_t i = 0; i < count; i++) {
		struct model_name cut;
		bool is_cut = model_cut(m, name[i].wire, &cut);
		if ((is_cut && !name_equal(cut.wire, name[i].wire)) || (is_cut && m->signing == MODEL_OPT_OUT))
			continue;
		model_hash(hash[hashes++], name[i].wire);
	}
	qsort(hash, hashes, 20, model_hash_compare);
	for (size_t i = 0; i < hashes; i++) {
		uint8_t rdata[32] = { 1, m->signing == MODEL_OPT_OUT, 0, MODEL_ITERATIONS, 3, 0xaa, 0xbb, 0xcc, 20 };
		struct model_name owner = model_nsec3_owner(m, hash[i]);
		memcpy(rdata + 9, hash[(i + 1) % hashes], 20);
		rdata[30] = 1;
		rdata[31] = 0x40;
		model_add(m, owner.wire, RR_NSEC3, 30, rdata, 32);
	}
}
/* Adds the SOA and, as m->signing says, chain and signatures. */
static inline void model_finish(struct model *m)
{
	static struct model_name name[MODEL_MAX_NAMES];
	uint8_t soa[2 * NAME_MAX_BYTES + 20];
	size_t apex_bytes = name_wire_bytes(m->apex, NAME_MAX_BYTES), at = 0;
	for (unsigned i = 0; i < 2; i++, at += apex_bytes)
		memcpy(soa + at, m->apex, apex_bytes);
	for (unsigned i = 0; i < 5; i++, at += 4)
		store_be32(soa + at, i == 0 ? ++m->serial : i == 4 ? 300 : 1000 * i);
	model_add(m, m->apex, RR_SOA, 3600, soa, at);
	if (m->signing == MODEL_UNSIGNED)
		return;
	size_t count = model_names(m, name);
	if (m->signing == MODEL_NSEC)
		model_nsec_chain(m, name, count);
	else
		model_nsec3_chain(m, name, count);
	for (size_t i = 0, records = m->count; i < records; i++)
		if (m->record[i].type == RR_NSEC3 || !model_is_below(m, m->record[i].owner))
			model_sign_rrset(m, m->record[i].owner, m->record[i].type, m->record[i].ttl_s);
}
static inline void model_grow(struct model *m, unsigned owners)
{
	for (unsigned i = 0; i < owners; i++) {
		struct model_name owner = model_random_name(m);
		for (unsigned j = 0, n = 1 + model_random(4); j < n; j++)
			model_add_random(m, owner.wire);
	}
}
static inline struct model *model_create(const char *apex, enum model_signing signing, unsigned owners)
{
	static const uint8_t ns[] = "\3ns1\5other\4test";
	struct model *m = calloc(1, sizeof *m);
	struct model_name name = model_name(apex);
	memcpy(m->apex, name.wire, name.bytes);
	m->signing = signing;
	m->alphabet = 3 + model_random(9);
	m->cuts = 1 + model_random(4);
	model_add(m, m->apex, RR_NS, 3600, ns, sizeof ns);
	model_grow(m, owners);
	model_finish(m);
	return m;
}

/* --- building ------------------------------------------------------------------------------------------------------------- */

static inline struct zone_build *model_build(const struct model *m)
{
	struct zone_build *b;
	cr_assert_eq(zone_build_create(&b, m->apex, RR_CLASS_IN, 64u << 20), ERR_OK);
	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->record[i];
		struct master_record record = { .owner = r->owner,
						.owner_bytes = r->owner_bytes,
						.type = r->type,
						.class_ = RR_CLASS_IN,
						.ttl_s = r->ttl_s,
						.rdata = r->rdata,
						.rdata_bytes = r->rdata_bytes,
						.place = { .file = "model", .line = (uint32_t)i + 1, .column = 1 } };
		cr_assert_eq(zone_build_add(b, &record), ERR_OK);
	}
	return b;
}
/* The image is exactly as large as it says, so that the address sanitizer sees every octet read beyond it. */
static inline struct zone_image *model_compile(struct zone_build *b)
{
	size_t bytes;
	const char *why = "";
	enum err err = zone_compile_bytes(b, &bytes, &why);
	cr_assert_eq(err, ERR_OK, "%s", why);
	struct zone_image *image = calloc(1, bytes);
	cr_assert_eq(zone_compile(b, image, bytes), ERR_OK);
	cr_assert_eq(zone_image_verify(image, bytes, &why), ERR_OK, "%s", why);
	return image;
}

/* --- reading back --------------------------------------------------------------------------------------------------------- */

static inline struct zone_at model_find(const struct zone_view *view, const uint8_t *name)
{
	uint8_t *lower = malloc(name_wire_bytes(name, NAME_MAX_BYTES)); /* exact, for the sanitizer */
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	name_lower(lower, name, bytes);
	struct zone_at at = zone_find(view, lower, bytes, name_hash(lower, bytes));
	free(lower);
	return at;
}

/* Puts an RRset's block behind the apex's name into a message, as a renderer would, and reads it with the message parser.
 * Calls `each` with every RR's rdata whole. */
static inline void model_read_rrset(const struct zone_image *image, const struct zone_rrset *rrset,
				    void (*each)(void *user, const uint8_t *rdata, size_t bytes), void *user)
{
	static uint8_t msg[DNS_HEADER_BYTES + NAME_MAX_BYTES + 65536], rdata[65536];
	const struct zone_node *apex = zone_ptr(image, image->apex);
	const struct zone_embedded *e = zone_rrset_embedded(rrset);
	size_t apex_at = DNS_HEADER_BYTES, block_at = apex_at + apex->name_bytes, msg_bytes = block_at + rrset->block_bytes;
	memcpy(msg + apex_at, zone_node_name(apex), apex->name_bytes);
	memcpy(msg + block_at, zone_rrset_block(rrset), rrset->block_bytes);
	for (uint32_t i = 0; i < rrset->embedded_count; i++)
		if (e[i].pointer) {
			uint16_t base = (uint16_t)(e[i].flags & ZONE_EMBEDDED_TO_APEX ? apex_at : block_at);
			uint16_t value = (uint16_t)(load_be16(msg + block_at + e[i].pointer) + base);
			cr_assert_lt(value, 0x4000);
			store_be16(msg + block_at + e[i].pointer, 0xc000 | value);
		}
	uint32_t index = 0, rrs = 0;
	for (size_t at = block_at; at < msg_bytes; rrs++) {
		size_t end = at + 12 + load_be16(msg + at + 10), used = 0;
		cr_assert_eq(load_be16(msg + at), 0xc00c);
		cr_assert_eq(load_be16(msg + at + 2), rrset->type);
		cr_assert_eq(load_be16(msg + at + 4), image->class_);
		cr_assert_eq(load_be32(msg + at + 6), rrset->ttl_s);
		for (at += 12; at < end;) {
			if (index == rrset->embedded_count || block_at + e[index].offset != at) {
				rdata[used++] = msg[at++];
				continue;
			}
			uint8_t name[NAME_MAX_BYTES];
			size_t bytes = name_from_message(rdata + used, msg, msg_bytes, &at);
			cr_assert_eq(bytes, e[index].name_bytes);
			cr_assert_eq(name_labels(rdata + used), e[index].labels);
			cr_assert_eq(zone_embedded_name(image, rrset, &e[index], name), bytes);
			cr_assert(name_equal(name, rdata + used));
			used += bytes;
			index++;
		}
		cr_assert_eq(at, end);
		each(user, rdata, used);
	}
	cr_assert_eq(rrs, rrset->rr_count);
	cr_assert_eq(index, rrset->embedded_count);
}

struct model_expect {
	const struct model *m;
	const uint8_t *owner;
	uint16_t type, covered;
	size_t seen;
	uint8_t last[65536];
	size_t last_bytes;
};
static void model_expect_rr(void *user, const uint8_t *rdata, size_t bytes)
{
	struct model_expect *x = user;
	uint8_t canonical[MODEL_MAX_RDATA];
	cr_assert_leq(bytes, sizeof canonical);
	memcpy(canonical, rdata, bytes);
	rdata_canonical(x->type, canonical, bytes);
	cr_assert(x->seen == 0 || rdata_compare(x->last, x->last_bytes, canonical, bytes) < 0, "canonical order");
	memcpy(x->last, canonical, bytes);
	x->last_bytes = bytes;
	for (size_t i = 0; i < x->m->count; i++) {
		const struct model_record *r = &x->m->record[i];
		if (r->type == x->type && name_equal(r->owner, x->owner) && model_same_rdata(r->type, r, rdata, bytes)) {
			x->seen++;
			return;
		}
	}
	cr_assert_fail("%s type %u: a record that nobody put in", model_text(x->owner), x->type);
}
/* The RRset holds exactly the model's records, or is NULL when it has none. */
static inline void model_check_rrset(const struct model *m, const struct zone_image *image, const struct zone_rrset *rrset,
				     const uint8_t *owner, uint16_t type, uint16_t covered)
{
	size_t expected = 0;
	uint32_t ttl_s = UINT32_MAX;
	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->record[i];
		if (r->type != type || !name_equal(r->owner, owner) || (type == RR_RRSIG && load_be16(r->rdata) != covered))
			continue;
		expected++;
		ttl_s = MIN(ttl_s, r->ttl_s);
	}
	cr_assert_eq(rrset != NULL, expected > 0, "%s type %u", model_text(owner), type);
	if (!rrset)
		return;
	struct model_expect *x = calloc(1, sizeof *x);
	*x = (struct model_expect){ .m = m, .owner = owner, .type = type };
	cr_assert_eq(rrset->type, type);
	cr_assert_eq(rrset->ttl_s, ttl_s);
	model_read_rrset(image, rrset, model_expect_rr, x);
	cr_assert_eq(x->seen, expected);
	free(x);
	if (type != RR_RRSIG)
		model_check_rrset(m, image, zone_rrset_signature(image, rrset), owner, RR_RRSIG, type);
}
