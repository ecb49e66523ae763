/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that no single source has: a chain of CNAMEs from a zone of ours to other names, from the cache into a zone of ours, or where
 * an upstream does not follow its own. Each part is a message: a zone's answer, or the response to a plain question (one whose chain
 * is not followed further), which its worker answers from the cache or by asking. Their answer sections one behind the other, with the last
 * one's rcode and authority section, make a reply like an upstream's, and entry_build makes an entry of that. */
#include "slowpath/resolve/worker.h"

#include "dns/rdata.h"
#include "dns/rr_type.h"

#include <stdlib.h>

#define JOIN_PARTS_MAX ENTRY_CHAIN_MAX
#define SECTION_ANSWER 0u
#define SECTION_AUTHORITY 1u
#define RR_FIXED_BYTES 10u
#define DATA_NAMES_MAX 3u
#define REPLY_FIRST_BYTES 1024u
#define QUERY_MAX_BYTES (DNS_HEADER_BYTES + NAME_MAX_BYTES + 4u + EDNS_OPT_FIXED_BYTES)

/* A plain question that is being answered by a worker, perhaps another one. The home worker's but for bytes and message, which are the
 * other's until it has told. */
struct part {
	struct message message; /* first */
	struct resolve_origin origin;
	struct worker *home;
	struct join *join; /* NULL: nobody waits any more */
	uint8_t *bytes;	   /* owned; NULL: no response */
	size_t count;
};

struct join {
	struct question *question;
	struct part *part; /* waited for; the other worker's until it comes back */
	unsigned parts;
	bool is_aa;		      /* the first part is a zone's */
	uint8_t name[NAME_MAX_BYTES]; /* where the chain has come to, lower-cased */
	size_t bytes, capacity;
	size_t owner_at; /* of the last owner that was written out; 0: none */
	uint8_t *reply;	 /* owned; grows with what comes, up to DNS_MESSAGE_MAX_BYTES */
};

enum step { STEP_END, STEP_ON, STEP_BROKEN };

/* --- parts ------------------------------------------------------------------------------------------------------------ */

/* A query for where the chain has come to, as a client with DO would ask. Returns its octets. */
static uint32_t make_query(const struct join *j, uint8_t *msg)
{
	const struct question *q = j->question;
	size_t name_bytes = name_wire_bytes(j->name, NAME_MAX_BYTES), pos = DNS_HEADER_BYTES + name_bytes;
	memset(msg, 0, QUERY_MAX_BYTES);
	store_be16(msg + 2, (uint16_t)(DNS_RD | (q->is_cd ? DNS_CD : 0)));
	store_be16(msg + 4, 1);
	store_be16(msg + 10, 1);
	memcpy(msg + DNS_HEADER_BYTES, j->name, name_bytes);
	store_be16(msg + pos, q->type);
	store_be16(msg + pos + 2, RR_CLASS_IN);
	store_be16(msg + pos + 5, RR_OPT);
	store_be16(msg + pos + 7, UINT16_MAX);
	store_be32(msg + pos + 9, EDNS_DO);
	return (uint32_t)(pos + 4 + EDNS_OPT_FIXED_BYTES);
}

/* Room for that many more octets. False: there is none, or no memory. */
static bool reserve(struct join *j, size_t count)
{
	size_t need = j->bytes + count, capacity = MAX(j->capacity, REPLY_FIRST_BYTES);
	while (capacity < need)
		capacity *= 2;
	capacity = MIN(capacity, DNS_MESSAGE_MAX_BYTES);
	if (need > capacity)
		return false;
	if (capacity == j->capacity)
		return true;
	uint8_t *grown = realloc(j->reply, capacity);
	if (!grown)
		return false;
	j->reply = grown;
	j->capacity = capacity;
	return true;
}

static bool append(struct join *j, const void *from, size_t count)
{
	if (!reserve(j, count))
		return false;
	memcpy(j->reply + j->bytes, from, count);
	j->bytes += count;
	return true;
}

/* An RRset repeats its owner: a pointer from its second record on keeps large ones within a message. */
static bool append_owner(struct join *j, const uint8_t *owner, size_t owner_bytes)
{
	uint8_t pointer[2];
	size_t at = j->bytes;
	if (j->owner_at && memcmp(j->reply + j->owner_at, owner, owner_bytes) == 0) {
		store_be16(pointer, (uint16_t)(~DNS_POINTER_MAX | j->owner_at));
		return append(j, pointer, sizeof(pointer));
	}
	j->owner_at = at <= DNS_POINTER_MAX ? at : 0;
	return append(j, owner, owner_bytes);
}

/* One record of a part, its data uncompressed, to the end of the reply; what it says of the chain. False: malformed, or no room. */
static bool append_record(struct join *j, const uint8_t *msg, size_t bytes, size_t *pos, unsigned section, bool *is_found)
{
	uint8_t owner[NAME_MAX_BYTES];
	size_t owner_bytes = name_from_message(owner, msg, bytes, pos), data_bytes;
	if (owner_bytes == 0 || bytes - *pos < RR_FIXED_BYTES)
		return false;
	const uint8_t *fixed = msg + *pos;
	uint16_t type = load_be16(fixed), length = load_be16(fixed + 8);
	/* Names in it may get longer by what is written out: at most three in types that may be compressed. */
	if (!append_owner(j, owner, owner_bytes) || !append(j, fixed, RR_FIXED_BYTES) ||
	    !reserve(j, MIN(length + DATA_NAMES_MAX * NAME_MAX_BYTES, DNS_MESSAGE_MAX_BYTES - j->bytes)))
		return false;
	uint8_t *data = j->reply + j->bytes;
	if (rdata_from_message(type, msg, bytes, *pos + RR_FIXED_BYTES, length, data, j->capacity - j->bytes, &data_bytes) !=
	    ERR_OK)
		return false;
	store_be16(data - 2, (uint16_t)data_bytes);
	store_be16(j->reply + 6 + 2 * section, (uint16_t)(load_be16(j->reply + 6 + 2 * section) + 1));
	j->bytes += data_bytes;
	*pos += RR_FIXED_BYTES + length;
	if (section != SECTION_ANSWER || !name_equal(owner, j->name))
		return true;
	if (type == j->question->type || j->question->type == RR_ANY)
		*is_found = true;
	else if (type == RR_CNAME)
		name_lower(j->name, data, data_bytes);
	return true;
}

/* Takes over a part: our own response, so its chain is in order. */
static enum step take_part(struct join *j, const uint8_t *msg, size_t bytes)
{
	uint8_t name[NAME_MAX_BYTES], before[NAME_MAX_BYTES];
	size_t pos = DNS_HEADER_BYTES;
	bool is_found = false;
	if (bytes < DNS_HEADER_BYTES || (dns_flags(msg) & DNS_TC) || dns_qdcount(msg) != 1 ||
	    name_from_message(name, msg, bytes, &pos) == 0)
		return STEP_BROKEN;
	unsigned rcode = dns_flags(msg) & DNS_RCODE_MASK;
	if (rcode != RCODE_NOERROR && rcode != RCODE_NXDOMAIN && rcode != RCODE_YXDOMAIN)
		return STEP_BROKEN;
	memcpy(before, j->name, sizeof(before));
	pos += 4;
	for (unsigned i = dns_ancount(msg); i > 0; i--) {
		if (!append_record(j, msg, bytes, &pos, SECTION_ANSWER, &is_found))
			return STEP_BROKEN;
	}
	j->parts++;
	/* Of the authority section only an SOA ends a chain that has moved on; a zone's NS records do not. */
	bool is_moved = !name_equal(before, j->name), has_soa = false;
	size_t answer_end = j->bytes, at = pos;
	for (unsigned i = dns_nscount(msg); i > 0; i--) {
		size_t record = at;
		if (name_from_message(name, msg, bytes, &record) == 0 || bytes - record < RR_FIXED_BYTES)
			return STEP_BROKEN;
		has_soa |= load_be16(msg + record) == RR_SOA;
		if (!append_record(j, msg, bytes, &at, SECTION_AUTHORITY, &is_found))
			return STEP_BROKEN;
	}
	if (!is_moved || is_found || has_soa || rcode != RCODE_NOERROR || j->parts == JOIN_PARTS_MAX) {
		store_be16(j->reply + 2, (uint16_t)(DNS_QR | DNS_RA | rcode));
		return STEP_END;
	}
	j->bytes = answer_end; /* more of the answer follows */
	j->owner_at = 0;
	store_be16(j->reply + 8, 0);
	return STEP_ON;
}

static void finish(struct join *j)
{
	static const struct entry_limits none = { .min_ttl_s = 0, .max_ttl_s = INT32_MAX, .negative_ttl_s = INT32_MAX };
	struct question *q = j->question;
	struct worker *w = q->worker;
	struct cache_entry *entry = (struct cache_entry *)w->entry;
	struct entry_question key = question_key(q);
	struct entry_report report;
	key.is_ours = NULL;
	w->built = NULL;
	enum entry_result result = entry_build(entry, &key, &none, w->answer.now_s, j->reply, j->bytes, &report);
	if (result != ENTRY_OK) {
		question_fail(q, EDE_OTHER);
		return;
	}
	counter_add(w->thread.counters, C_RESOLVE_CHAINS, 1);
	entry->flags &= CACHE_F_KNOWN & ~CACHE_F_JOIN;
	question_complete(q, entry, j->is_aa);
}

/* --- asking ----------------------------------------------------------------------------------------------------------- */

/* Our zones' answer, without the cache and what is behind it. */
static uint32_t answer_from_zone(struct join *j)
{
	struct worker *w = j->question->worker;
	struct snapshot zones = *w->snapshot;
	struct answer_thread quiet = w->look;
	struct answer_query q = { .msg = w->message,
				  .capacity_bytes = sizeof(w->message),
				  .client = j->question->first_waiter->client };
	zones.cache = NULL;
	quiet.log = NULL;
	q.client.transport = TRANSPORT_TCP; /* whole */
	q.query_bytes = make_query(j, q.msg);
	enum answer_verdict verdict = answer(&zones, &quiet, &q);
	return verdict == ANSWER_SEND || verdict == ANSWER_SEND_AND_REFRESH ? q.response_bytes : 0;
}

/* On the thread of whatever worker has answered. */
static void on_part(struct resolve_origin *origin, const uint8_t *message, size_t bytes)
{
	struct part *part = (struct part *)((uint8_t *)origin - offsetof(struct part, origin));
	part->bytes = message ? malloc(bytes) : NULL;
	if (part->bytes) {
		memcpy(part->bytes, message, bytes);
		part->count = bytes;
	}
	worker_tell(part->home, &part->message);
}

/* Asks the worker that the name belongs to. False without memory. */
static bool ask_part(struct join *j)
{
	struct question *q = j->question;
	struct resolve *r = q->worker->resolve;
	uint8_t query[QUERY_MAX_BYTES];
	uint32_t query_bytes = make_query(j, query);
	uint64_t hash = cache_hash(r->reader, name_hash(j->name, name_wire_bytes(j->name, NAME_MAX_BYTES)));
	struct answer_client client = q->first_waiter->client;
	client.transport = TRANSPORT_TCP;
	struct part *part = calloc(1, sizeof(*part));
	struct waiter *waiter = waiter_create(&client, query, query_bytes, DNS_MESSAGE_MAX_BYTES);
	if (!part || !waiter) {
		free(part);
		free(waiter);
		return false;
	}
	part->message.kind = MESSAGE_PART;
	part->origin.reply = on_part;
	part->home = q->worker;
	part->join = j;
	j->part = part;
	waiter->origin = &part->origin;
	waiter->is_internal = true;
	waiter->received_ns = q->deadline_ns - r->set.question_time_ns; /* the same end */
	worker_tell(r->worker[cache_shard(r->cache, hash) % r->worker_count], &waiter->message);
	return true;
}

/* Goes on until a part must be waited for, or the end. j may be gone afterwards. */
static void go_on(struct join *j, enum step step)
{
	struct question *q = j->question;
	struct worker *w = q->worker;
	while (step == STEP_ON &&
	       question_name_is_ours((void *)(uintptr_t)w->snapshot, j->name, name_wire_bytes(j->name, NAME_MAX_BYTES))) {
		uint32_t bytes = answer_from_zone(j);
		j->is_aa |= j->parts == 0;
		step = bytes ? take_part(j, w->message, bytes) : STEP_BROKEN;
	}
	if (step == STEP_END)
		finish(j);
	else if (step == STEP_BROKEN || !ask_part(j))
		question_fail(q, EDE_OTHER);
}

/* Header and question; counts and rcode follow with the parts. */
static bool begin_reply(struct join *j)
{
	const struct question *q = j->question;
	uint8_t header[DNS_HEADER_BYTES] = { 0 }, tail[4];
	store_be16(header + 2, DNS_QR | DNS_RA);
	store_be16(header + 4, 1);
	store_be16(tail, q->type);
	store_be16(tail + 2, RR_CLASS_IN);
	return append(j, header, sizeof(header)) && append(j, q->name, q->name_bytes) && append(j, tail, sizeof(tail));
}

void join_begin(struct question *q, const struct cache_entry *first)
{
	struct worker *w = q->worker;
	struct join *j = q->first_waiter ? calloc(1, sizeof(*j)) : NULL; /* no one to put it together for: a refresh */
	enum step step = STEP_ON;
	if (!j) {
		if (!q->first_waiter)
			question_complete(q, first, false);
		else
			question_fail(q, EDE_OTHER);
		return;
	}
	j->question = q;
	q->join = j;
	timer_wheel_clear(&w->timers, &q->stale_timer);
	memcpy(j->name, q->name, q->name_bytes);
	if (!begin_reply(j))
		step = STEP_BROKEN;
	if (first && step == STEP_ON) {
		struct answer_query query = { .msg = w->message,
					      .capacity_bytes = sizeof(w->message),
					      .client = q->first_waiter->client };
		struct answer_thread quiet = w->look;
		quiet.log = NULL;
		query.client.transport = TRANSPORT_TCP;
		query.query_bytes = make_query(j, query.msg);
		enum answer_verdict verdict = answer_from_entry(w->snapshot, &quiet, &query, first);
		step = verdict == ANSWER_DROP ? STEP_BROKEN : take_part(j, w->message, query.response_bytes);
	}
	go_on(j, step);
}

void join_part(struct worker *w, struct message *take)
{
	struct part *part = (struct part *)take;
	struct join *j = part->join;
	enum step step = STEP_BROKEN;
	(void)w;
	if (j) {
		j->part = NULL;
		if (question_is_outdated(j->question)) {
			question_restart(j->question);
			j = NULL;
		} else if (part->bytes) {
			step = take_part(j, part->bytes, part->count);
		}
	}
	free(part->bytes);
	free(part);
	if (j)
		go_on(j, step);
}

void join_cancel(struct join *j)
{
	if (j->part)
		j->part->join = NULL;
	free(j->reply);
	free(j);
}
