/* SPDX-License-Identifier: Apache-2.0 */
/* What the resolver tells the control protocol: the cache's numbers and entries, questions under way, rings, upstreams. */
#include "slowpath/resolve/worker.h"

#include "dns/rdata.h"
#include "dns/rr_type.h"

#include <stdio.h>
#include <stdlib.h>

#define RECORD_TEXT_BYTES 4096u /* longer records are shown in part */
#define RR_FIXED_BYTES 10u

static json_t *number(uint64_t n) { return json_integer((json_int_t)n); }

json_t *resolve_cache_stats(struct resolve *r)
{
	struct cache_stats s;
	cache_writer_stats(r->cache, &s);
	const struct {
		const char *name;
		uint64_t value;
	} values[] = { { "size_bytes", s.size_bytes }, { "entries", s.entries },	 { "entry_bytes", s.entry_bytes },
		       { "slots", s.slots },	       { "small_bytes", s.small_bytes }, { "main_bytes", s.main_bytes },
		       { "stores", s.stores },	       { "replaced", s.replaced },	 { "evicted", s.evicted },
		       { "expired", s.expired },       { "promoted", s.promoted },	 { "ghost_hits", s.ghost_hits },
		       { "no_slot", s.no_slot },       { "too_large", s.too_large },	 { "outdated", s.outdated } };
	json_t *stats = json_object();
	for (unsigned i = 0; i < ARRAY_LEN(values); i++)
		json_object_set_new(stats, values[i].name, number(values[i].value));
	json_object_set_new(stats, "bytes_per_entry", json_real(s.entries ? (double)s.entry_bytes / (double)s.entries : 0));
	return stats;
}

/* --- entries ---------------------------------------------------------------------------------------------------------- */

/* A message with the entry's body in its place; its octets. */
static size_t entry_message(uint8_t *msg, const struct cache_entry *e)
{
	size_t pos = DNS_HEADER_BYTES;
	memset(msg, 0, DNS_HEADER_BYTES);
	memcpy(msg + pos, cache_entry_name(e), e->name_bytes);
	pos += e->name_bytes;
	memset(msg + pos, 0, 4);
	memcpy(msg + pos + 4, cache_entry_body(e), e->body_bytes);
	return pos + 4 + e->body_bytes;
}

/* One record at *pos as text with its present TTL; NULL if it is damaged. data: RDATA_MAX_BYTES. */
static json_t *record_text(const uint8_t *msg, size_t bytes, size_t *pos, uint32_t age_s, uint8_t *data)
{
	char text[RECORD_TEXT_BYTES], line[NAME_TEXT_MAX_BYTES + RECORD_TEXT_BYTES + 64], owner[NAME_TEXT_MAX_BYTES],
		type_text[16];
	uint8_t name[NAME_MAX_BYTES];
	size_t n;
	if (name_from_message(name, msg, bytes, pos) == 0 || bytes - *pos < RR_FIXED_BYTES)
		return NULL;
	uint16_t type = load_be16(msg + *pos), length = load_be16(msg + *pos + 8);
	uint32_t ttl_s = load_be32(msg + *pos + 4);
	if (rdata_from_message(type, msg, bytes, *pos + RR_FIXED_BYTES, length, data, RDATA_MAX_BYTES, &n) != ERR_OK)
		return NULL;
	if (rdata_to_text(type, data, n, text, sizeof(text), &n) != ERR_OK)
		snprintf(text, sizeof(text), "(too long to be shown)");
	name_to_text(owner, name);
	rr_type_to_text(type_text, type);
	*pos += RR_FIXED_BYTES + length;
	int written = snprintf(line, sizeof(line), "%s %u %s %s", owner, ttl_s > age_s ? ttl_s - age_s : 0, type_text, text);
	return json_stringn(line, MIN((size_t)written, sizeof(line) - 1)); /* text is printable ASCII */
}

static void add_records(json_t *entry, const struct cache_entry *e, uint32_t age_s)
{
	static const char *const sections[] = { "answer", "authority", "additional" };
	uint8_t *msg = malloc(DNS_HEADER_BYTES + NAME_MAX_BYTES + 4 + (size_t)e->body_bytes), *data = malloc(RDATA_MAX_BYTES);
	if (msg && data) {
		size_t bytes = entry_message(msg, e), pos = bytes - e->body_bytes;
		for (unsigned i = 0; i < ARRAY_LEN(sections); i++) {
			json_t *records = json_array(), *text;
			for (unsigned left = e->count[i]; left > 0 && (text = record_text(msg, bytes, &pos, age_s, data)); left--)
				json_array_append_new(records, text);
			json_object_set_new(entry, sections[i], records);
		}
	}
	free(msg);
	free(data);
}

static const char *entry_state(const struct cache_entry *e, bool is_fresh)
{
	if (!is_fresh)
		return "expired";
	if (e->flags & CACHE_F_FAILURE)
		return "failure";
	return e->flags & CACHE_F_STALE ? "stale" : "fresh";
}

static json_t *entry_json(const struct cache_entry *e, bool is_fresh, uint32_t now_s)
{
	char name[NAME_TEXT_MAX_BYTES], type[16] = "";
	name_to_text(name, cache_entry_name(e));
	if (!(e->flags & CACHE_F_NXDOMAIN))
		rr_type_to_text(type, e->type);
	json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:i, s:I, s:I, s:I}", "name", name, "type", type, "rcode",
				  rcode_text(e->rcode), "state", entry_state(e, is_fresh), "checking_disabled",
				  e->flags & CACHE_F_CD, "joined", e->flags & CACHE_F_JOIN, "partition", (int)e->partition,
				  "expires_in_s", (json_int_t)e->expire_s - (json_int_t)now_s, "age_s",
				  (json_int_t)now_s - (json_int_t)e->stored_s, "bytes", (json_int_t)e->bytes);
	if (!entry)
		return NULL;
	if (e->ede != EDE_NONE)
		json_object_set_new(entry, "extended_error", json_integer(e->ede));
	if (e->flags & CACHE_F_FAILURE)
		json_object_set_new(entry, "failures_in_a_row", json_integer(e->backoff));
	add_records(entry, e, now_s > e->stored_s ? now_s - e->stored_s : 0);
	return entry;
}

struct lookup {
	struct resolve *r;
	uint64_t *scratch;
	json_t *entries;
	uint32_t now_s;
};

/* Adds the entry of a key, if there is one. True: it is an NXDOMAIN, the name has no other. */
static bool look_up(struct lookup *l, const uint8_t *lower, size_t name_bytes, uint16_t type, bool is_cd, bool is_above)
{
	struct cache_hit hit;
	struct cache_key key = { .name = lower,
				 .hash = cache_hash(l->r->reader, name_hash(lower, name_bytes)),
				 .type = type,
				 .name_bytes = (uint8_t)name_bytes,
				 .is_cd = is_cd };
	enum cache_result result = cache_read(l->r->reader, &key, l->now_s, l->scratch, &hit);
	if (result == CACHE_MISS)
		return false;
	bool is_nxdomain = hit.entry->flags & CACHE_F_NXDOMAIN;
	if (!is_above || (is_nxdomain && result == CACHE_HIT))
		json_array_append_new(l->entries, entry_json(hit.entry, result == CACHE_HIT, l->now_s));
	return is_nxdomain;
}

json_t *resolve_cache_lookup(struct resolve *r, const uint8_t *lower, size_t name_bytes, uint16_t type)
{
	struct lookup l = {
		.r = r, .scratch = calloc(CACHE_SCRATCH_WORDS, sizeof(uint64_t)), .entries = json_array(), .now_s = clock_mono_s()
	};
	for (unsigned is_cd = 0; l.scratch && l.entries && is_cd < 2; is_cd++) {
		/* All types: a look at two cache lines each. */
		unsigned from = type ? type : 1, to = type ? type : UINT16_MAX;
		for (unsigned t = from; t <= to && !look_up(&l, lower, name_bytes, (uint16_t)t, is_cd, false); t++)
			continue;
		for (unsigned drop = 1, labels = name_labels(lower); drop < labels && drop <= CACHE_CUT_LABELS; drop++) {
			size_t at = name_suffix_offset(lower, drop);
			(void)look_up(&l, lower + at, name_bytes - at, RR_A, is_cd, true);
		}
	}
	free(l.scratch);
	return l.entries;
}

/* --- what is under way -------------------------------------------------------------------------------------------------- */

/* Octets that wait in a ring; its indices are written by others, so this is a guess within its capacity. */
static uint64_t ring_waiting(void *mem, uint32_t capacity)
{
	struct ring_map *map = mem;
	uint32_t waiting =
		atomic_load_explicit(&map->tail, memory_order_relaxed) - atomic_load_explicit(&map->head, memory_order_relaxed);
	return MIN(waiting, capacity);
}

json_t *resolve_status(struct resolve *r)
{
	uint64_t questions = 0, inbox = 0, question_bytes = 0, answer_bytes = 0;
	size_t bytes;
	for (unsigned i = 0; i < r->worker_count; i++) {
		questions += atomic_load_explicit(&r->worker[i]->question_gauge, memory_order_relaxed);
		inbox += atomic_load_explicit(&r->worker[i]->inbox_count, memory_order_relaxed);
		for (unsigned t = 0; r->rings && t < r->rings->threads; t++) {
			question_bytes += ring_waiting(ring_set_questions(r->rings, t, i, &bytes), r->rings->question_capacity);
			answer_bytes += ring_waiting(ring_set_answers(r->rings, t, i, &bytes), r->rings->answer_capacity);
		}
	}
	json_t *status = json_pack("{s:i, s:o, s:o}", "workers", (int)r->worker_count, "questions", number(questions), "inbox",
				   number(inbox));
	if (status && r->rings)
		json_object_set_new(status, "rings",
				    json_pack("{s:i, s:o, s:o, s:o, s:o}", "threads", (int)r->rings->threads,
					      "question_bytes_each", number(r->rings->question_capacity), "answer_bytes_each",
					      number(r->rings->answer_capacity), "question_bytes_waiting", number(question_bytes),
					      "answer_bytes_waiting", number(answer_bytes)));
	return status;
}

/* --- upstreams ---------------------------------------------------------------------------------------------------------- */

json_t *resolve_upstream_list(struct resolve *r) { return forward_table_status(r->forward); }

json_t *resolve_upstream_test(struct resolve *r, const uint8_t *zone, size_t zone_bytes, unsigned timeout_ms)
{
	return forward_test(r->forward, zone, zone_bytes, timeout_ms);
}
