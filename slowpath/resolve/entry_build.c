/* SPDX-License-Identifier: Apache-2.0 */
/* Three passes: index the reply's records; choose what belongs to the question, in the order of the entry; write it.
 *
 * Owners and record data are compared by hashes of their lower-cased form. Whoever makes two of them collide loses a record of his own
 * reply, or gains one that he could have sent under the right name anyway: owners are written from the chain, never from the record. */
#include "slowpath/resolve/entry_build.h"

#include "dns/rdata.h"

#define SECTION_ANSWER 0u
#define SECTION_AUTHORITY 1u
#define RR_FIXED_BYTES 10u	 /* type, class, TTL, rdlength */
#define RRSIG_COVERED_BYTES 2u	 /* the type covered stands first (RFC 4034 section 3.1) */
#define SOA_TAIL_BYTES 4u	 /* the minimum stands last */
#define TTL_TOP_BIT 0x80000000u	 /* RFC 2181 section 8 */
#define FAILURE_MAX_S 300u	 /* RFC 9520 section 3.2 */
#define FAILURE_MAX_DOUBLINGS 9u /* 2^9 exceeds it */
#define POINTERS_PER_RR 3u	 /* owner and two names in the data (SOA, MINFO) */
#define SECONDS_PER_MINUTE 60u
/* The last place that may be pointed at: an NXDOMAIN moves back by as many octets as a name below is longer. */
#define POINTER_TARGET_MAX (DNS_POINTER_MAX - NAME_MAX_BYTES)
#define MADE_CNAME UINT16_MAX /* owner_at of a CNAME that a DNAME implies: no record of the reply */

struct record {
	uint64_t owner_hash, data_hash; /* of lower-cased forms */
	uint32_t ttl;
	uint16_t owner_at, data_at, data_bytes; /* in the message */
	uint16_t type, covered;			/* covered: RRSIG */
	uint8_t section;
	bool is_used;
};

/* A record to be written. */
struct choice {
	uint32_t ttl;
	uint16_t record; /* index; of a made CNAME: MADE_CNAME */
	uint8_t owner;	 /* index in chain; OWNER_OF_RECORD: its own, from the message */
	uint8_t section;
	bool is_dnssec;
};
#define OWNER_OF_RECORD 255u

struct chain_name {
	uint64_t hash;
	uint8_t bytes;
	uint8_t name[NAME_MAX_BYTES]; /* lower-cased */
};

struct build {
	const struct entry_question *question;
	const struct entry_limits *limits;
	const uint8_t *reply;
	size_t reply_bytes;
	uint16_t flags;
	unsigned record_count, left_out, answer_count;
	bool is_overfull; /* records that may belong to the answer were not indexed */
	bool has_authority_ns;
	unsigned chain_count; /* names: the last one is where the chain ends */
	unsigned choice_count;
	uint32_t lifetime_s;
	bool is_join, is_loop, is_found, is_too_long;
	uint8_t data[RDATA_MAX_BYTES];
	struct chain_name chain[ENTRY_CHAIN_MAX + 1];
	struct record record[CACHE_ENTRY_MAX_RRS];
	struct choice choice[CACHE_ENTRY_MAX_RRS + ENTRY_CHAIN_MAX]; /* each record at most once; a made CNAME a step */
};

/* --- index ----------------------------------------------------------------------------------------------------------- */

static bool is_dnssec_type(uint16_t type) { return type == RR_RRSIG || type == RR_NSEC || type == RR_NSEC3; }

/* Types that are data: what an answer may consist of. */
static bool is_data_type(uint16_t type) { return type != 0 && !(rr_type_info(type)->flags & RR_TYPE_F_META); }

/* Uncompressed record data into b->data; 0 for malformed data, and for data of no octets, which *is_empty tells apart. */
static size_t expand(struct build *b, const struct record *r, bool *is_sound)
{
	size_t bytes = 0;
	*is_sound = rdata_from_message(r->type, b->reply, b->reply_bytes, r->data_at, r->data_bytes, b->data, sizeof(b->data),
				       &bytes) == ERR_OK;
	return bytes;
}

/* Completes a record whose fixed part was read; false: leave it out. */
static bool index_data(struct build *b, struct record *r, const uint8_t *owner, size_t owner_bytes)
{
	uint8_t lower[NAME_MAX_BYTES];
	bool is_sound;
	size_t bytes = expand(b, r, &is_sound);
	if (!is_sound)
		return false;
	r->covered = r->type == RR_RRSIG ? load_be16(b->data) : 0;
	rdata_canonical(r->type, b->data, bytes);
	r->data_hash = name_hash(b->data, bytes);
	name_lower(lower, owner, owner_bytes);
	r->owner_hash = name_hash(lower, owner_bytes);
	return true;
}

/* Whether the record is one that an entry may hold. */
static bool is_wanted(struct build *b, const struct record *r, uint16_t rr_class)
{
	if (rr_class != RR_CLASS_IN || !is_data_type(r->type))
		return false;
	b->has_authority_ns |= r->section == SECTION_AUTHORITY && r->type == RR_NS;
	return r->section == SECTION_ANSWER || is_dnssec_type(r->type) || r->type == RR_SOA;
}

/* Reads one record at *pos. False where the message ends or is malformed. */
static bool index_one(struct build *b, unsigned section, size_t *pos)
{
	uint8_t owner[NAME_MAX_BYTES];
	size_t at = *pos, owner_bytes = name_from_message(owner, b->reply, b->reply_bytes, &at);
	if (owner_bytes == 0 || b->reply_bytes - at < RR_FIXED_BYTES)
		return false;
	const uint8_t *fixed = b->reply + at;
	struct record r = { .type = load_be16(fixed),
			    .ttl = load_be32(fixed + 4),
			    .owner_at = (uint16_t)*pos,
			    .data_at = (uint16_t)(at + RR_FIXED_BYTES),
			    .data_bytes = load_be16(fixed + 8),
			    .section = (uint8_t)section };
	if (b->reply_bytes - at - RR_FIXED_BYTES < r.data_bytes)
		return false;
	*pos = at + RR_FIXED_BYTES + r.data_bytes;
	if (r.ttl & TTL_TOP_BIT)
		r.ttl = 0;
	bool is_other = section == SECTION_AUTHORITY && (r.type == RR_NS || r.type == RR_DS);
	if (!is_wanted(b, &r, load_be16(fixed + 2))) {
		b->left_out += !is_other;
		return true;
	}
	if (b->record_count == CACHE_ENTRY_MAX_RRS) {
		b->is_overfull |= section == SECTION_ANSWER;
		b->left_out++;
		return true;
	}
	if (index_data(b, &r, owner, owner_bytes))
		b->record[b->record_count++] = r;
	else
		b->left_out++;
	return true;
}

/* Header, question, and the records of the first two sections. */
static bool index_reply(struct build *b)
{
	const struct entry_question *q = b->question;
	uint8_t name[NAME_MAX_BYTES];
	size_t pos = DNS_HEADER_BYTES;
	if (b->reply_bytes < DNS_HEADER_BYTES || b->reply_bytes > DNS_MESSAGE_MAX_BYTES)
		return false;
	b->flags = dns_flags(b->reply);
	if (!(b->flags & DNS_QR) || (b->flags & DNS_OPCODE_MASK) || dns_qdcount(b->reply) != 1)
		return false;
	if (name_from_message(name, b->reply, b->reply_bytes, &pos) != q->name_bytes || !name_equal(name, q->name) ||
	    b->reply_bytes - pos < 4 || load_be16(b->reply + pos) != q->type || load_be16(b->reply + pos + 2) != RR_CLASS_IN)
		return false;
	pos += 4;
	b->answer_count = dns_ancount(b->reply);
	for (unsigned i = 0; i < b->answer_count; i++) {
		if (!index_one(b, SECTION_ANSWER, &pos))
			return false;
	}
	for (unsigned i = dns_nscount(b->reply); i > 0 && index_one(b, SECTION_AUTHORITY, &pos); i--)
		continue;
	return true;
}

/* --- choose ---------------------------------------------------------------------------------------------------------- */

/* What only queries with DO get. */
static bool is_hidden(const struct build *b, const struct record *r)
{
	bool is_asked_for = b->question->type == RR_ANY || b->question->type == r->type;
	return is_dnssec_type(r->type) && !(is_asked_for && r->section == SECTION_ANSWER);
}

/* Adds to the choice unless an equal record of the same set stands there from `first` on. */
static void choose_one(struct build *b, unsigned first, unsigned index, unsigned owner)
{
	struct record *r = &b->record[index];
	r->is_used = true;
	for (unsigned i = first; i < b->choice_count; i++) {
		const struct record *other = &b->record[b->choice[i].record];
		if (other->data_hash == r->data_hash && other->type == r->type)
			return;
	}
	b->choice[b->choice_count++] = (struct choice){
		.record = (uint16_t)index, .owner = (uint8_t)owner, .section = r->section, .is_dnssec = is_hidden(b, r)
	};
}

/* The RRset of an owner and type in a section, and what signs it. least_s and most_s bound its TTL. Returns whether there is one. */
static bool choose_set(struct build *b, unsigned section, uint64_t owner_hash, uint16_t type, unsigned owner, uint32_t least_s,
		       uint32_t most_s)
{
	unsigned first = b->choice_count, set_end;
	uint32_t ttl = UINT32_MAX;
	bool is_singleton = rr_type_info(type)->flags & RR_TYPE_F_SINGLETON;
	for (unsigned i = 0; i < b->record_count; i++) {
		struct record *r = &b->record[i];
		if (r->type != type || r->owner_hash != owner_hash || r->section != section || r->is_used)
			continue;
		if (is_singleton && b->choice_count > first && r->data_hash != b->record[b->choice[first].record].data_hash)
			continue; /* stays unused: counted as left out */
		ttl = MIN(ttl, r->ttl);
		choose_one(b, first, i, owner);
	}
	if (b->choice_count == first)
		return false;
	set_end = b->choice_count;
	for (unsigned i = 0; i < b->record_count; i++) {
		const struct record *r = &b->record[i];
		if (r->type != RR_RRSIG || r->covered != type || r->owner_hash != owner_hash || r->section != section ||
		    r->is_used)
			continue;
		ttl = MIN(ttl, r->ttl);
		choose_one(b, set_end, i, owner);
	}
	ttl = MIN(MAX(ttl, least_s), most_s);
	for (unsigned i = first; i < b->choice_count; i++)
		b->choice[i].ttl = ttl;
	b->lifetime_s = MIN(b->lifetime_s, ttl);
	return true;
}

static bool choose_answer(struct build *b, uint16_t type, uint64_t owner_hash, unsigned owner)
{
	return choose_set(b, SECTION_ANSWER, owner_hash, type, owner, b->limits->min_ttl_s, b->limits->max_ttl_s);
}

/* Appends a name to the chain. False: it is there already, or there are too many. */
static bool chain_append(struct build *b, const uint8_t *name, size_t bytes)
{
	if (b->chain_count > ENTRY_CHAIN_MAX)
		return false;
	struct chain_name *c = &b->chain[b->chain_count];
	name_lower(c->name, name, bytes);
	c->bytes = (uint8_t)bytes;
	c->hash = name_hash(c->name, bytes);
	for (unsigned i = 0; i < b->chain_count; i++) {
		if (b->chain[i].hash == c->hash)
			return false;
	}
	b->chain_count++;
	return true;
}

static const struct record *find_record(const struct build *b, unsigned section, uint64_t owner_hash, uint16_t type)
{
	for (unsigned i = 0; i < b->record_count; i++) {
		const struct record *r = &b->record[i];
		if (r->type == type && r->owner_hash == owner_hash && r->section == section)
			return r;
	}
	return NULL;
}

/* The DNAME of the answer section that the chain's last name lies below, the deepest if there are several. */
static const struct record *find_dname(const struct build *b, uint8_t owner[static NAME_MAX_BYTES])
{
	const struct chain_name *last = &b->chain[b->chain_count - 1];
	const struct record *found = NULL;
	size_t found_bytes = 0;
	for (unsigned i = 0; i < b->record_count; i++) {
		const struct record *r = &b->record[i];
		uint8_t name[NAME_MAX_BYTES];
		size_t pos = r->owner_at, bytes;
		if (r->type != RR_DNAME || r->section != SECTION_ANSWER)
			continue;
		bytes = name_from_message(name, b->reply, b->reply_bytes, &pos);
		if (bytes <= found_bytes || bytes >= last->bytes || !name_is_at_or_below(last->name, name))
			continue;
		memcpy(owner, name, bytes);
		found_bytes = bytes;
		found = r;
	}
	return found;
}

/* The CNAME that a DNAME implies for the name at `step` of the chain; its target is the next name of the chain. */
static void choose_made_cname(struct build *b, unsigned step, uint32_t ttl)
{
	b->choice[b->choice_count++] =
		(struct choice){ .ttl = ttl, .record = MADE_CNAME, .owner = (uint8_t)step, .section = SECTION_ANSWER };
}

/* Follows a DNAME above the chain's last name. *is_end: the substituted name is too long, or the chain may not go on. */
static bool follow_dname(struct build *b, bool *is_end)
{
	unsigned step = b->chain_count - 1;
	uint8_t owner[NAME_MAX_BYTES], target[NAME_MAX_BYTES];
	const struct record *dname = find_dname(b, owner);
	bool is_sound;
	if (!dname)
		return false;
	(void)expand(b, dname, &is_sound); /* was sound when it was indexed */
	size_t bytes = name_replace_suffix(target, b->chain[step].name, owner, b->data);
	unsigned first = b->choice_count;
	if (!dname->is_used)
		(void)choose_answer(b, RR_DNAME, dname->owner_hash, OWNER_OF_RECORD);
	uint32_t ttl = b->choice_count > first ? b->choice[first].ttl : b->lifetime_s;
	*is_end = true;
	if (bytes == 0) {
		b->is_too_long = true;
		return true;
	}
	const struct record *cname = find_record(b, SECTION_ANSWER, b->chain[step].hash, RR_CNAME);
	if (cname) {
		(void)expand(b, cname, &is_sound);
		if (!name_equal(b->data, target))
			cname = NULL;
	}
	*is_end = !chain_append(b, target, bytes);
	b->is_loop |= *is_end;
	if (cname)
		(void)choose_answer(b, RR_CNAME, b->chain[step].hash, step);
	else if (!*is_end)
		choose_made_cname(b, step, ttl);
	return true;
}

static bool follow_cname(struct build *b, bool *is_end)
{
	unsigned step = b->chain_count - 1;
	const struct record *cname = find_record(b, SECTION_ANSWER, b->chain[step].hash, RR_CNAME);
	bool is_sound;
	if (!cname)
		return false;
	(void)choose_answer(b, RR_CNAME, b->chain[step].hash, step);
	size_t bytes = expand(b, cname, &is_sound);
	*is_end = !chain_append(b, b->data, bytes);
	b->is_loop |= *is_end;
	return true;
}

/* What was asked for, at the chain's last name. */
static bool choose_found(struct build *b)
{
	unsigned step = b->chain_count - 1;
	uint64_t hash = b->chain[step].hash;
	bool is_found = false;
	if (b->question->type != RR_ANY)
		return choose_answer(b, b->question->type, hash, step);
	for (unsigned i = 0; i < b->record_count; i++) {
		const struct record *r = &b->record[i];
		if (r->section == SECTION_ANSWER && r->owner_hash == hash && !r->is_used && r->type != RR_RRSIG)
			is_found |= choose_answer(b, r->type, hash, step);
	}
	return choose_answer(b, RR_RRSIG, hash, step) || is_found; /* signatures whose records are not there */
}

/* The answer section, from the question's name to what was asked for. At most ENTRY_CHAIN_MAX steps. */
static void choose_chain(struct build *b)
{
	const struct entry_question *q = b->question;
	bool is_end = false;
	(void)chain_append(b, q->name, q->name_bytes);
	while (!is_end) {
		const struct chain_name *last = &b->chain[b->chain_count - 1];
		if (b->chain_count > 1 && q->is_ours && q->is_ours(q->user, last->name, last->bytes)) {
			b->is_join = true;
			return;
		}
		b->is_found = choose_found(b);
		if (b->is_found)
			return;
		if (!follow_dname(b, &is_end) && (q->type == RR_CNAME || !follow_cname(b, &is_end)))
			return;
	}
}

/* The SOA of the zone that the chain's last name is in. */
static const struct record *find_soa(const struct build *b, uint8_t owner[static NAME_MAX_BYTES])
{
	for (unsigned i = 0; i < b->record_count; i++) {
		const struct record *r = &b->record[i];
		size_t pos = r->owner_at;
		if (r->type == RR_SOA && r->section == SECTION_AUTHORITY &&
		    name_from_message(owner, b->reply, b->reply_bytes, &pos) &&
		    name_is_at_or_below(b->chain[b->chain_count - 1].name, owner))
			return r;
	}
	return NULL;
}

/* NSEC and NSEC3 of the authority section, at or below the apex if one is given. */
static void choose_proofs(struct build *b, const uint8_t *apex, uint32_t most_s)
{
	for (unsigned i = 0; i < b->record_count; i++) {
		const struct record *r = &b->record[i];
		uint8_t owner[NAME_MAX_BYTES];
		size_t pos = r->owner_at;
		if (r->section != SECTION_AUTHORITY || (r->type != RR_NSEC && r->type != RR_NSEC3) || r->is_used)
			continue;
		if (name_from_message(owner, b->reply, b->reply_bytes, &pos) && (!apex || name_is_at_or_below(owner, apex)))
			(void)choose_set(b, SECTION_AUTHORITY, r->owner_hash, r->type, OWNER_OF_RECORD, 0, most_s);
	}
}

/* The authority section of a negative answer. Without SOA there is nothing to keep it for. */
static bool choose_negative(struct build *b)
{
	uint8_t apex[NAME_MAX_BYTES];
	const struct record *soa = find_soa(b, apex);
	bool is_sound;
	if (!soa) {
		b->lifetime_s = 0;
		return false;
	}
	size_t bytes = expand(b, soa, &is_sound);
	uint32_t minimum = load_be32(b->data + bytes - SOA_TAIL_BYTES);
	if (minimum & TTL_TOP_BIT)
		minimum = 0;
	uint32_t most_s = MIN(MIN(minimum, soa->ttl), b->limits->negative_ttl_s);
	(void)choose_set(b, SECTION_AUTHORITY, soa->owner_hash, RR_SOA, OWNER_OF_RECORD, 0, most_s);
	choose_proofs(b, apex, most_s);
	return true;
}

/* What the reply says, in rcode and choice. */
static enum entry_result choose(struct build *b, struct entry_report *report)
{
	unsigned rcode = b->flags & DNS_RCODE_MASK;
	if (rcode != RCODE_NOERROR && rcode != RCODE_NXDOMAIN && rcode != RCODE_YXDOMAIN)
		return ENTRY_USELESS;
	choose_chain(b);
	if (b->is_found || b->is_join || b->is_loop || b->is_too_long) {
		if (b->is_found && rcode != RCODE_NOERROR)
			return ENTRY_USELESS;
		report->rcode = b->is_too_long ? RCODE_YXDOMAIN : RCODE_NOERROR;
		choose_proofs(b, NULL, b->limits->max_ttl_s);
		return ENTRY_OK;
	}
	if (rcode == RCODE_YXDOMAIN)
		return ENTRY_USELESS;
	report->rcode = (uint8_t)rcode;
	uint32_t chain_s = b->lifetime_s;
	if (choose_negative(b) || rcode == RCODE_NXDOMAIN)
		return ENTRY_OK;
	if (b->chain_count > 1) {
		report->is_open = true;
		b->lifetime_s = chain_s;
	}
	bool is_nothing = b->has_authority_ns || b->answer_count > 0 || !(b->flags & DNS_RA);
	return b->chain_count == 1 && is_nothing ? ENTRY_USELESS : ENTRY_OK;
}

/* --- write ----------------------------------------------------------------------------------------------------------- */

struct writer {
	struct build *b;
	struct name_compressor names;
	bool is_sealed; /* in or behind a span: nothing may be pointed at any more */
	size_t pos, body;
	unsigned rr_count, pointer_count;
	uint16_t count[3], dnssec_count[3];
	struct cache_span span[3];
	uint16_t ttl_at[CACHE_ENTRY_MAX_RRS];
	uint16_t pointer_at[POINTERS_PER_RR * CACHE_ENTRY_MAX_RRS];
	uint8_t msg[DNS_MESSAGE_MAX_BYTES];
};

static bool put(struct writer *w, const void *bytes, size_t count)
{
	if (count > sizeof(w->msg) - w->pos)
		return false;
	memcpy(w->msg + w->pos, bytes, count);
	w->pos += count;
	return true;
}

/* A name, compressed, its pointer noted. */
static bool put_name(struct writer *w, const uint8_t *name)
{
	struct name_compressor before = w->names;
	size_t at = w->pos;
	if (!name_to_message(&w->names, w->msg, sizeof(w->msg), &w->pos, name, true))
		return false;
	if (w->is_sealed || w->pos > POINTER_TARGET_MAX)
		w->names = before;
	while (w->msg[at] != 0 && w->msg[at] <= NAME_MAX_LABEL_BYTES)
		at += 1u + w->msg[at];
	if (w->msg[at] == 0)
		return true;
	if (w->pointer_count == ARRAY_LEN(w->pointer_at))
		return false;
	w->pointer_at[w->pointer_count++] = (uint16_t)(at - w->body);
	return true;
}

static bool put_data(struct writer *w, uint16_t type, const uint8_t *data, size_t bytes)
{
	struct rdata_walk walk = { 0 };
	struct rdata_name name;
	size_t from = 0, length_at = w->pos;
	if (!put(w, "\0\0", 2))
		return false;
	while (rdata_next_name(type, data, bytes, &walk, &name)) {
		if (!(name.flags & RDF_F_COMPRESS))
			continue;
		if (!put(w, data + from, name.offset - from) || !put_name(w, data + name.offset))
			return false;
		from = (size_t)name.offset + name.bytes;
	}
	if (!put(w, data + from, bytes - from))
		return false;
	store_be16(w->msg + length_at, (uint16_t)(w->pos - length_at - 2));
	return true;
}

static bool put_choice(struct writer *w, const struct choice *c)
{
	struct build *b = w->b;
	uint8_t owner[NAME_MAX_BYTES], fixed[8];
	const struct record *r = c->record == MADE_CNAME ? NULL : &b->record[c->record];
	uint16_t type = r ? r->type : RR_CNAME;
	if (w->rr_count == CACHE_ENTRY_MAX_RRS)
		return false;
	if (r && c->owner == OWNER_OF_RECORD) {
		size_t pos = r->owner_at, bytes = name_from_message(owner, b->reply, b->reply_bytes, &pos);
		name_lower(owner, owner, bytes);
	}
	store_be16(fixed, type);
	store_be16(fixed + 2, RR_CLASS_IN);
	store_be32(fixed + 4, c->ttl);
	if (!put_name(w, c->owner == OWNER_OF_RECORD ? owner : b->chain[c->owner].name) || !put(w, fixed, sizeof(fixed)))
		return false;
	w->ttl_at[w->rr_count++] = (uint16_t)(w->pos - 4 - w->body);
	if (!r)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a made CNAME is a step of the chain */
		return put_data(w, type, b->chain[c->owner + 1].name, b->chain[c->owner + 1].bytes);
	bool is_sound;
	size_t bytes = expand(b, r, &is_sound);
	return put_data(w, type, b->data, bytes);
}

/* One section: what everybody gets, then the span. */
static bool put_section(struct writer *w, unsigned section)
{
	const struct build *b = w->b;
	for (unsigned pass = 0; pass < 2; pass++) {
		w->span[section].begin = (uint16_t)(w->pos - w->body); /* of the second pass, in the end */
		for (unsigned i = 0; i < b->choice_count; i++) {
			const struct choice *c = &b->choice[i];
			if (c->section != section || c->is_dnssec != (pass == 1))
				continue;
			w->is_sealed |= c->is_dnssec;
			if (!put_choice(w, c))
				return false;
			w->count[section]++;
			w->dnssec_count[section] += c->is_dnssec;
		}
	}
	w->span[section].end = (uint16_t)(w->pos - w->body);
	return true;
}

/* The message as the question's name and the sections would stand in it. */
static bool write_body(struct writer *w)
{
	const struct entry_question *q = w->b->question;
	memset(w->msg, 0, DNS_HEADER_BYTES);
	w->pos = DNS_HEADER_BYTES;
	name_compressor_init(&w->names);
	if (!name_to_message(&w->names, w->msg, sizeof(w->msg), &w->pos, q->name, false))
		return false;
	w->pos += 4;
	w->body = w->pos;
	return put_section(w, SECTION_ANSWER) && put_section(w, SECTION_AUTHORITY) && put_section(w, 2);
}

static void entry_head(struct cache_entry *out, const struct entry_question *q, uint32_t now_s)
{
	*out = (struct cache_entry){ .hash = q->hash,
				     .stored_s = now_s,
				     .epoch = q->epoch,
				     .type = q->type,
				     .partition = q->partition,
				     .flags = q->is_cd ? CACHE_F_CD : 0,
				     .name_bytes = q->name_bytes,
				     .ede = EDE_NONE };
}

/* What stands behind the struct. */
static void entry_tail(struct cache_entry *out, const uint16_t *ttl_at, const uint16_t *pointer_at, const uint8_t *name,
		       const uint8_t *body)
{
	uint8_t *at = (uint8_t *)(out + 1);
	const struct {
		const void *from;
		size_t bytes;
	} part[] = { { ttl_at, 2u * out->rr_count },
		     { pointer_at, 2u * out->pointer_count },
		     { name, out->name_bytes },
		     { body, out->body_bytes } };
	out->bytes = cache_entry_size(out->rr_count, out->pointer_count, out->name_bytes, out->body_bytes);
	for (unsigned i = 0; i < ARRAY_LEN(part); i++) {
		if (part[i].bytes)
			memcpy(at, part[i].from, part[i].bytes);
		at += part[i].bytes;
	}
	memset(at, 0, (size_t)((uint8_t *)out + out->bytes - at));
}

static enum entry_result write_entry(struct cache_entry *out, struct build *b, uint32_t now_s, struct entry_report *report)
{
	struct writer w; /* the large arrays need no clearing */
	w.b = b;
	w.is_sealed = false;
	w.rr_count = w.pointer_count = 0;
	memset(w.count, 0, sizeof(w.count));
	memset(w.dnssec_count, 0, sizeof(w.dnssec_count));
	if (!write_body(&w))
		return ENTRY_TOO_LARGE;
	entry_head(out, b->question, now_s);
	out->rcode = report->rcode;
	memcpy(out->count, w.count, sizeof(out->count));
	memcpy(out->dnssec_count, w.dnssec_count, sizeof(out->dnssec_count));
	memcpy(out->span, w.span, sizeof(out->span));
	out->rr_count = (uint16_t)w.rr_count;
	out->pointer_count = (uint16_t)w.pointer_count;
	out->body_bytes = (uint16_t)(w.pos - w.body);
	if (b->is_join || report->is_open)
		out->flags |= CACHE_F_JOIN;
	if (out->rcode == RCODE_NXDOMAIN && b->chain_count == 1) {
		out->flags |= CACHE_F_NXDOMAIN;
		out->type = 0;
	}
	entry_tail(out, w.ttl_at, w.pointer_at, b->question->name, w.msg + w.body);
	if (out->bytes > CACHE_ENTRY_MAX_BYTES || report->is_truncated)
		b->lifetime_s = 0;
	out->expire_s = now_s + b->lifetime_s;
	report->lifetime_s = b->lifetime_s;
	return ENTRY_OK;
}

enum entry_result entry_build(struct cache_entry *out, const struct entry_question *question, const struct entry_limits *limits,
			      uint32_t now_s, const uint8_t *message, size_t message_bytes, struct entry_report *report)
{
	struct build b; /* the large arrays need no clearing */
	memset(&b, 0, offsetof(struct build, data));
	b.question = question;
	b.limits = limits;
	b.reply = message;
	b.reply_bytes = message_bytes;
	b.lifetime_s = limits->max_ttl_s;
	*report = (struct entry_report){ .rcode = RCODE_SERVFAIL };
	if (!index_reply(&b))
		return ENTRY_MALFORMED;
	report->is_truncated = b.flags & DNS_TC;
	enum entry_result result = choose(&b, report);
	for (unsigned i = 0; i < b.record_count; i++)
		b.left_out += !b.record[i].is_used;
	report->left_out = b.left_out;
	if (result == ENTRY_OK && b.is_overfull)
		return ENTRY_TOO_LARGE;
	return result == ENTRY_OK ? write_entry(out, &b, now_s, report) : result;
}

/* --- entries without a reply ----------------------------------------------------------------------------------------- */

void entry_failure(struct cache_entry *out, const struct entry_question *question, uint32_t now_s, uint8_t backoff, int16_t ede)
{
	uint32_t doublings = backoff > 0 ? MIN(backoff - 1u, FAILURE_MAX_DOUBLINGS) : 0;
	entry_head(out, question, now_s);
	out->flags |= CACHE_F_FAILURE;
	out->rcode = RCODE_SERVFAIL;
	out->ede = ede <= INT8_MAX ? (int8_t)ede : EDE_OTHER; /* an upstream may have said anything */
	out->backoff = backoff;
	out->expire_s = now_s + MIN(1u << doublings, FAILURE_MAX_S);
	entry_tail(out, NULL, NULL, question->name, NULL);
}

uint32_t entry_expired_s(const struct cache_entry *e, uint32_t now_s)
{
	if (e->flags & CACHE_F_STALE)
		return (uint16_t)(now_s / SECONDS_PER_MINUTE - e->expired_min) * SECONDS_PER_MINUTE;
	return now_s > e->expire_s ? now_s - e->expire_s : 0;
}

void entry_make_stale(struct cache_entry *e, uint32_t now_s, uint32_t ttl_s, uint32_t lifetime_s, uint32_t epoch)
{
	const uint16_t *ttl_at = cache_entry_ttl_at(e);
	uint8_t *body = (uint8_t *)(uintptr_t)cache_entry_body(e);
	for (unsigned i = 0; i < e->rr_count; i++)
		store_be32(body + ttl_at[i], ttl_s);
	if (!(e->flags & CACHE_F_STALE))
		e->expired_min = (uint16_t)(MIN(e->expire_s, now_s) / SECONDS_PER_MINUTE);
	e->flags |= CACHE_F_STALE;
	e->ede = e->rcode == RCODE_NXDOMAIN ? EDE_STALE_NXDOMAIN : EDE_STALE;
	e->stored_s = now_s;
	e->expire_s = now_s + lifetime_s;
	e->epoch = epoch;
}
