/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_build_internal.h"

#include "dns/name_inline.h"
#include "dns/rdata.h"

#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_SLOTS 32u
#define MAX_FILES UINT16_MAX /* places in more files lose the file's name */

#define PREFETCH_AHEAD 16u /* slots between a prefetch and its use */

/* --- memory -------------------------------------------------------------------------------------------------------------- */

/* Large zones are walked at random: huge pages save most of the page faults and TLB misses. Not zeroed. */
static void *memory_take(size_t bytes)
{
	if (bytes < ZONE_BUILD_CHUNK_BYTES)
		return malloc(bytes);
	void *p = aligned_alloc(ZONE_BUILD_CHUNK_BYTES, bytes); /* larger ones are powers of two, so multiples of it */
	if (p)
		(void)madvise(p, bytes, MADV_HUGEPAGE); /* a wish */
	return p;
}

static enum err chunk_add(struct zone_build *b, size_t bytes)
{
	if (b->chunk_count == ZONE_BUILD_MAX_CHUNKS || bytes > b->max_bytes - b->used_bytes)
		return ERR_NOSPACE;
	if (b->chunk_count == b->chunk_capacity) {
		uint32_t capacity = b->chunk_capacity ? 2 * b->chunk_capacity : 8;
		uint8_t **chunks = realloc(b->chunks, capacity * sizeof *chunks);
		if (!chunks)
			return ERR_NOMEM;
		b->chunks = chunks;
		b->chunk_capacity = capacity;
	}
	uint8_t *chunk = memory_take(bytes);
	if (!chunk)
		return ERR_NOMEM;
	b->chunks[b->chunk_count++] = chunk;
	b->used_bytes += bytes;
	/* Ref 0 means none, so the first unit of the first chunk stays unused. */
	b->room_begin = b->chunk_count == 1 ? ZONE_BUILD_UNIT : 0;
	b->room_end = (uint32_t)bytes;
	return ERR_OK;
}

/* An object of at most a few bytes more than 64 KiB; not zeroed. */
static enum err arena_take(struct zone_build *b, size_t bytes, zone_build_ref *ref)
{
	size_t rounded = (bytes + ZONE_BUILD_UNIT - 1) & ~(size_t)(ZONE_BUILD_UNIT - 1);
	if (rounded > b->room_end - b->room_begin) {
		size_t left = b->max_bytes - b->used_bytes;
		size_t wanted = (size_t)ZONE_BUILD_FIRST_CHUNK_BYTES << MIN(3 * b->chunk_count, 16u);
		wanted = MIN(MIN(wanted, ZONE_BUILD_CHUNK_BYTES), left);
		enum err err = chunk_add(b, MAX(wanted, rounded));
		if (err != ERR_OK)
			return err;
	}
	*ref = (b->chunk_count - 1) << ZONE_BUILD_CHUNK_BITS | b->room_begin / ZONE_BUILD_UNIT;
	b->room_begin += (uint32_t)rounded;
	return ERR_OK;
}

static enum err slots_grow(struct zone_build *b, uint32_t count)
{
	size_t bytes = count * sizeof *b->slots, old_bytes = b->slots ? (b->slot_mask + 1) * sizeof *b->slots : 0;
	if (bytes - old_bytes > b->max_bytes - b->used_bytes)
		return ERR_NOSPACE;
	struct zone_build_slot *slots = memory_take(bytes);
	if (!slots)
		return ERR_NOMEM;
	memset(slots, 0, bytes);
	for (uint32_t i = 0; b->slots && i <= b->slot_mask; i++) {
		__builtin_prefetch(&slots[b->slots[(i + PREFETCH_AHEAD) & b->slot_mask].hash_low & (count - 1)], 1);
		if (b->slots[i].node == 0)
			continue;
		uint32_t at = b->slots[i].hash_low & (count - 1);
		while (slots[at].node != 0)
			at = (at + 1) & (count - 1);
		slots[at] = b->slots[i];
	}
	free(b->slots);
	b->slots = slots;
	b->slot_mask = count - 1;
	b->used_bytes += bytes - old_bytes;
	return ERR_OK;
}

/* The index of a file's name; a zone is read from few files, one after the other. */
static uint16_t file_index(struct zone_build *b, const char *file)
{
	if (!file || file == b->files[b->file_count - 1])
		return file ? (uint16_t)(b->file_count - 1) : 0;
	for (uint32_t i = 1; i < b->file_count; i++)
		if (b->files[i] == file)
			return (uint16_t)i;
	if (b->file_count == MAX_FILES)
		return 0;
	if (b->file_count == b->file_capacity) {
		const char **files = realloc(b->files, 2 * b->file_capacity * sizeof *files);
		if (!files)
			return 0; /* a place without its file's name is no reason to fail */
		b->files = files;
		b->file_capacity *= 2;
	}
	b->files[b->file_count] = file;
	return (uint16_t)b->file_count++;
}

void zone_build_drop_plan(struct zone_build *b)
{
	if (b->plan.size_bytes == 0 && !b->plan.nsec3_owners)
		return;
	free(b->plan.nsec3_owners);
	b->plan = (struct zone_build_plan){ 0 };
}

/* --- RRsets ---------------------------------------------------------------------------------------------------------------- */

/* Whether the octet at `offset` belongs to a name that the canonical form lower-cases. */
static bool is_folded(uint16_t type, const struct zone_build_rr *rr, size_t offset)
{
	struct rdata_walk walk = { 0 };
	struct rdata_name name;
	while (rdata_next_name(type, rr->rdata, rr->rdata_bytes, &walk, &name) && name.offset <= offset)
		if (offset < (size_t)name.offset + name.bytes)
			return name.flags & RDF_F_LOWER;
	return false;
}

int zone_build_rdata_compare(uint16_t type, const struct zone_build_rr *a, const struct zone_build_rr *b)
{
	size_t shorter = MIN(a->rdata_bytes, b->rdata_bytes);
	for (size_t i = 0; i < shorter; i++) {
		int x = a->rdata[i], y = b->rdata[i];
		if (x == y)
			continue;
		/* Up to here they differ in letter case at most, so both have their names at the same places. */
		if (is_folded(type, a, i)) {
			x = name_octet_lower(a->rdata[i]);
			y = name_octet_lower(b->rdata[i]);
		}
		if (x != y)
			return x - y;
	}
	return (int)a->rdata_bytes - (int)b->rdata_bytes;
}

/* Merges two sorted lists; of equal RRs the one from `a` comes first. */
static zone_build_ref merge(const struct zone_build *b, uint16_t type, zone_build_ref x, zone_build_ref y)
{
	zone_build_ref head = 0, *tail = &head;
	while (x && y) {
		struct zone_build_rr *rx = zone_build_rr(b, x), *ry = zone_build_rr(b, y);
		bool first = zone_build_rdata_compare(type, rx, ry) <= 0;
		*tail = first ? x : y;
		tail = first ? &rx->next : &ry->next;
		if (first)
			x = rx->next;
		else
			y = ry->next;
	}
	*tail = x ? x : y;
	return head;
}

static zone_build_ref sort_list(const struct zone_build *b, uint16_t type, zone_build_ref list)
{
	/* run[i] holds a sorted list of 2^i RRs, as the digits of a binary counter do. */
	zone_build_ref run[32] = { 0 };
	while (list) {
		zone_build_ref carry = list;
		list = zone_build_rr(b, carry)->next;
		zone_build_rr(b, carry)->next = 0;
		unsigned i = 0;
		for (; i < ARRAY_LEN(run) - 1 && run[i]; i++) {
			carry = merge(b, type, run[i], carry);
			run[i] = 0;
		}
		run[i] = carry;
	}
	zone_build_ref sorted = 0;
	for (unsigned i = 0; i < ARRAY_LEN(run); i++)
		sorted = merge(b, type, run[i], sorted);
	return sorted;
}

static void settle_rrset(struct zone_build *b, struct zone_build_rrset *rrset)
{
	rrset->first = sort_list(b, rrset->type, rrset->first);
	zone_build_ref ref = rrset->first;
	struct zone_build_rr *rr = zone_build_rr(b, ref);
	while (rr->next) {
		zone_build_ref next = rr->next;
		struct zone_build_rr *other = zone_build_rr(b, next);
		if (zone_build_rdata_compare(rrset->type, rr, other) != 0) {
			ref = next;
			rr = other;
			continue;
		}
		rr->next = other->next;
		other->next = rrset->duplicates;
		rrset->duplicates = next;
		rrset->rr_count--;
		b->rr_count--;
		b->duplicate_count++;
	}
	rrset->last = ref;
	rrset->is_unsettled = 0;
}

static void settle_rrsets(struct zone_build *b, const struct zone_build_node *node)
{
	ZONE_BUILD_EACH_RRSET(b, node, rrset)
		if (rrset->is_unsettled)
			settle_rrset(b, rrset);
}

/* --- nodes --------------------------------------------------------------------------------------------------------------- */

static zone_build_ref find_ref(const struct zone_build *b, const uint8_t *lower, size_t bytes, uint64_t hash)
{
	for (uint32_t at = (uint32_t)hash & b->slot_mask; b->slots[at].node != 0; at = (at + 1) & b->slot_mask) {
		if (b->slots[at].hash_low != (uint32_t)hash)
			continue;
		const struct zone_build_node *node = zone_build_node(b, b->slots[at].node);
		if (node->hash_high == (uint32_t)(hash >> 32) && node->name_bytes == bytes && name_equal(node->name, lower))
			return b->slots[at].node;
	}
	return 0;
}

struct zone_build_node *zone_build_find_lower(const struct zone_build *b, const uint8_t *lower, size_t bytes, uint64_t hash)
{
	return zone_build_node(b, find_ref(b, lower, bytes, hash));
}

struct zone_build_node *zone_build_find(const struct zone_build *b, const uint8_t *name)
{
	uint8_t lower[NAME_MAX_BYTES];
	size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
	name_lower(lower, name, bytes);
	return zone_build_find_lower(b, lower, bytes, name_hash_inline(lower, bytes));
}

/* A node behind another one of the list (0: the first of all). */
static enum err node_add(struct zone_build *b, zone_build_ref behind, const uint8_t *name, size_t bytes, unsigned labels,
			 uint64_t hash, zone_build_ref *ref)
{
	if (b->node_count == UINT32_MAX)
		return ERR_NOSPACE;
	enum err err = arena_take(b, sizeof(struct zone_build_node) + bytes, ref);
	if (err != ERR_OK)
		return err;
	struct zone_build_node *node = zone_build_node(b, *ref);
	zone_build_ref *link = behind ? &zone_build_node(b, behind)->next : &b->first_node;
	*node = (struct zone_build_node){ .hash_low = (uint32_t)hash,
					  .hash_high = (uint32_t)(hash >> 32),
					  .next = *link,
					  .name_bytes = (uint8_t)bytes,
					  .labels = (uint8_t)labels };
	memcpy(node->name, name, bytes);
	*link = *ref;
	if (behind == b->last_node)
		b->last_node = *ref;
	b->node_count++;
	return ERR_OK;
}

/* There is room. */
static void index_put(struct zone_build *b, zone_build_ref ref)
{
	uint32_t hash_low = zone_build_node(b, ref)->hash_low, at = hash_low & b->slot_mask;
	while (b->slots[at].node != 0)
		at = (at + 1) & b->slot_mask;
	b->slots[at] = (struct zone_build_slot){ .hash_low = hash_low, .node = ref };
}

/* Makes room for all nodes of the list: at most 3/4 of the slots are used. */
static enum err slots_reserve(struct zone_build *b)
{
	uint64_t count = b->slots ? (uint64_t)b->slot_mask + 1 : FIRST_SLOTS;
	while (count / 4 * 3 < b->node_count)
		count *= 2;
	if (count > UINT32_MAX)
		return ERR_NOSPACE;
	return b->slots && count == (uint64_t)b->slot_mask + 1 ? ERR_OK : slots_grow(b, (uint32_t)count);
}

/* An in-zone name and the number of its labels: one walk. */
static bool is_in_zone(const struct zone_build *b, const uint8_t *name, size_t bytes, unsigned *labels)
{
	const struct zone_build_node *apex = zone_build_apex(b);
	size_t tail = bytes - apex->name_bytes, at = 0; /* wraps for shorter names: no label begins there */
	bool has_tail = false;
	unsigned count = 0;
	for (; name[at] != 0; at += 1u + name[at], count++)
		has_tail |= at == tail;
	has_tail |= at == tail;
	*labels = count;
	return has_tail && (memcmp(name + tail, apex->name, apex->name_bytes) == 0 || name_equal(name + tail, apex->name));
}

/* Gives an in-zone node its ancestors, upwards until one is there already: at most 127 labels. */
static enum err link_ancestors(struct zone_build *b, zone_build_ref ref)
{
	struct zone_build_node *node = zone_build_node(b, ref);
	unsigned labels = node->labels, apex_labels = zone_build_apex(b)->labels;
	uint8_t lower[NAME_MAX_BYTES];
	zone_build_ref child = ref;
	if (labels > apex_labels + 1)
		name_lower(lower, node->name, node->name_bytes);
	for (size_t at = 0; --labels > apex_labels;) {
		at += 1u + node->name[at];
		size_t bytes = node->name_bytes - at;
		uint64_t hash = name_hash_inline(lower + at, bytes);
		zone_build_ref parent = find_ref(b, lower + at, bytes, hash);
		if (parent) {
			zone_build_node(b, child)->parent = parent;
			return ERR_OK;
		}
		enum err err = node_add(b, child, node->name + at, bytes, labels, hash, &parent);
		if (err == ERR_OK)
			err = slots_reserve(b);
		if (err != ERR_OK)
			return err;
		index_put(b, parent);
		zone_build_node(b, child)->parent = parent;
		child = parent;
	}
	zone_build_node(b, child)->parent = b->apex;
	return ERR_OK;
}

/* The RRsets of a node that turned out to be another one's name go there, RRs behind those that came earlier. */
static void merge_nodes(struct zone_build *b, struct zone_build_node *into, struct zone_build_node *from)
{
	zone_build_ref *link = &into->rrsets;
	while (from->rrsets) {
		zone_build_ref ref = from->rrsets;
		struct zone_build_rrset *rrset = zone_build_rrset(b, ref), *same;
		from->rrsets = rrset->next;
		while ((same = zone_build_rrset(b, *link)) && same->type < rrset->type)
			link = &same->next;
		if (!same || same->type != rrset->type) {
			rrset->next = *link;
			*link = ref;
			b->is_unsettled |= rrset->is_unsettled;
			continue;
		}
		zone_build_rr(b, same->last)->next = rrset->first;
		same->last = rrset->last;
		same->rr_count += rrset->rr_count;
		same->is_unsettled = 1;
		b->is_unsettled = true;
	}
}

/* Takes one loose node in; false if it was merged with another. */
static enum err node_settle(struct zone_build *b, zone_build_ref ref, bool *stays)
{
	struct zone_build_node *node = zone_build_node(b, ref);
	for (uint32_t at = node->hash_low & b->slot_mask; b->slots[at].node != 0; at = (at + 1) & b->slot_mask) {
		if (b->slots[at].hash_low != node->hash_low)
			continue;
		struct zone_build_node *other = zone_build_node(b, b->slots[at].node);
		if (other->hash_high != node->hash_high || other->name_bytes != node->name_bytes ||
		    !name_equal(other->name, node->name))
			continue;
		merge_nodes(b, other, node);
		*stays = false;
		return ERR_OK;
	}
	*stays = true;
	index_put(b, ref);
	if (node->flags & ZONE_BUILD_OUT_OF_ZONE) {
		b->out_of_zone_count++;
		return ERR_OK;
	}
	return link_ancestors(b, ref);
}

/* Slots lie anywhere, loose nodes one behind the other: a cursor that runs in front of them fetches their slots. */
static void prefetch_slot(const struct zone_build *b, zone_build_ref *ahead)
{
	const struct zone_build_node *node = zone_build_node(b, *ahead);
	if (!node)
		return;
	__builtin_prefetch(&b->slots[node->hash_low & b->slot_mask], 1);
	*ahead = node->next;
}

static enum err settle_nodes(struct zone_build *b)
{
	zone_build_ref before = b->before_loose, ref = b->first_loose, ahead = ref;
	enum err err = slots_reserve(b);
	for (uint32_t i = 0; i < PREFETCH_AHEAD && err == ERR_OK; i++)
		prefetch_slot(b, &ahead);
	for (uint32_t left = b->loose_count; left > 0 && err == ERR_OK; left--) {
		struct zone_build_node *node = zone_build_node(b, ref);
		zone_build_ref next = node->next;
		bool stays = true;
		prefetch_slot(b, &ahead);
		settle_rrsets(b, node);
		err = node_settle(b, ref, &stays);
		if (!stays) {
			zone_build_node(b, before)->next = next;
			b->last_node = b->last_node == ref ? before : b->last_node;
			b->node_count--;
		}
		/* Over the ancestors too, which joined the list behind it: they are not loose. */
		while (zone_build_node(b, before)->next != next)
			before = zone_build_node(b, before)->next;
		ref = next;
	}
	b->loose_count = 0;
	b->first_loose = b->before_loose = 0;
	b->recent = b->apex; /* it may have been merged */
	return err;
}

enum err zone_build_settle(struct zone_build *b)
{
	if (b->failure == ERR_OK && b->loose_count)
		b->failure = settle_nodes(b);
	if (b->failure != ERR_OK || !b->is_unsettled)
		return b->failure;
	ZONE_BUILD_EACH_NODE(b, node)
		settle_rrsets(b, node);
	b->is_unsettled = false;
	return ERR_OK;
}

static enum err make_ref(struct zone_build *b, const uint8_t *name, size_t bytes, zone_build_ref *out)
{
	const struct zone_build_node *recent = zone_build_node(b, b->recent);
	if (recent->name_bytes == bytes && memcmp(recent->name, name, bytes) == 0) {
		*out = b->recent; /* most records share the owner of the one before */
		return ERR_OK;
	}
	uint8_t lower[NAME_MAX_BYTES];
	unsigned labels;
	zone_build_ref ref, last = b->last_node;
	name_lower(lower, name, bytes);
	bool is_ours = is_in_zone(b, name, bytes, &labels);
	enum err err = node_add(b, last, name, bytes, labels, name_hash_inline(lower, bytes), &ref);
	if (err != ERR_OK)
		return err;
	if (!is_ours)
		zone_build_node(b, ref)->flags = ZONE_BUILD_OUT_OF_ZONE;
	if (b->loose_count++ == 0) {
		b->first_loose = ref;
		b->before_loose = last;
		free(b->sorted);
		b->sorted = NULL;
		zone_build_drop_plan(b);
	}
	*out = b->recent = ref;
	return ERR_OK;
}

enum err zone_build_make(struct zone_build *b, const uint8_t *name, size_t bytes, struct zone_build_node **out)
{
	zone_build_ref ref;
	enum err err = make_ref(b, name, bytes, &ref);
	if (err == ERR_OK)
		err = zone_build_settle(b);
	if (err == ERR_OK)
		*out = zone_build_find(b, name);
	return err;
}

/* --- life ---------------------------------------------------------------------------------------------------------------- */

enum err zone_build_create(struct zone_build **out, const uint8_t *name, uint16_t class_, size_t max_bytes)
{
	struct zone_build *b = calloc(1, sizeof *b);
	if (!b)
		return ERR_NOMEM;
	b->max_bytes = max_bytes;
	b->class_ = class_;
	b->file_count = 1;
	b->file_capacity = 4;
	b->files = calloc(b->file_capacity, sizeof *b->files);
	enum err err = b->files ? ERR_OK : ERR_NOMEM;
	if (err == ERR_OK)
		err = slots_grow(b, FIRST_SLOTS);
	if (err == ERR_OK)
		err = chunk_add(b, ZONE_BUILD_FIRST_CHUNK_BYTES);
	if (err == ERR_OK) {
		uint8_t lower[NAME_MAX_BYTES];
		size_t bytes = name_wire_bytes(name, NAME_MAX_BYTES);
		ASSERT(bytes != 0);
		name_lower(lower, name, bytes);
		err = node_add(b, 0, name, bytes, name_labels(name), name_hash_inline(lower, bytes), &b->apex);
	}
	if (err == ERR_OK)
		index_put(b, b->apex);
	if (err != ERR_OK) {
		zone_build_destroy(b);
		return err;
	}
	b->recent = b->apex;
	*out = b;
	return ERR_OK;
}

void zone_build_destroy(struct zone_build *b)
{
	if (!b)
		return;
	zone_build_drop_plan(b);
	for (uint32_t i = 0; i < b->chunk_count; i++)
		free(b->chunks[i]);
	free(b->chunks);
	free(b->slots);
	free(b->files);
	free(b->sorted);
	free(b);
}

/* --- records ------------------------------------------------------------------------------------------------------------- */

static enum err rrset_make(struct zone_build *b, struct zone_build_node *node, uint16_t type, struct zone_build_rrset **out)
{
	zone_build_ref *link = &node->rrsets;
	while (*link && zone_build_rrset(b, *link)->type < type)
		link = &zone_build_rrset(b, *link)->next;
	struct zone_build_rrset *rrset = zone_build_rrset(b, *link);
	if (!rrset || rrset->type != type) {
		zone_build_ref ref;
		enum err err = arena_take(b, sizeof *rrset, &ref);
		if (err != ERR_OK)
			return err;
		rrset = zone_build_rrset(b, ref);
		*rrset = (struct zone_build_rrset){ .next = *link, .type = type };
		*link = ref;
		b->has_cut |= type == RR_NS && node != zone_build_apex(b);
		b->has_dname |= type == RR_DNAME;
	}
	*out = rrset;
	return ERR_OK;
}

enum err zone_build_add(struct zone_build *b, const struct master_record *record)
{
	zone_build_ref node, ref;
	struct zone_build_rrset *rrset;
	enum err err = make_ref(b, record->owner, record->owner_bytes, &node);
	if (err != ERR_OK)
		return err;
	/* The RR first: when memory ends there, no empty RRset stays behind. */
	err = arena_take(b, sizeof(struct zone_build_rr) + record->rdata_bytes, &ref);
	if (err == ERR_OK)
		err = rrset_make(b, zone_build_node(b, node), record->type, &rrset);
	if (err != ERR_OK)
		return err;
	struct zone_build_rr *rr = zone_build_rr(b, ref);
	*rr = (struct zone_build_rr){ .ttl_s = record->ttl_s,
				      .line = record->place.line,
				      .column = (uint16_t)MIN(record->place.column, UINT16_MAX),
				      .file = file_index(b, record->place.file),
				      .rdata_bytes = record->rdata_bytes };
	memcpy(rr->rdata, record->rdata, record->rdata_bytes);
	if (rrset->last) {
		zone_build_rr(b, rrset->last)->next = ref;
		rrset->is_unsettled = 1;
		b->is_unsettled |= !b->loose_count || node != b->last_node; /* the last loose node is settled with the others */
	} else {
		rrset->first = ref;
	}
	rrset->last = ref;
	rrset->rr_count++;
	b->rr_count++;
	zone_build_drop_plan(b);
	return ERR_OK;
}

uint64_t zone_build_records(const struct zone_build *b)
{
	/* Duplicates are found late, and who asks wants them gone: the object itself is never const. On failure they are counted. */
	(void)!zone_build_settle((struct zone_build *)b);
	return b->rr_count;
}

size_t zone_build_bytes(const struct zone_build *b) { return b->used_bytes; }

/* --- canonical order ------------------------------------------------------------------------------------------------------ */

/* The first octets of a name in an encoding whose octet order is the canonical order: labels from the root's side, lower-cased,
 * each ended by 0; the octets 0 and 1 become two, so that they sort behind the end of a shorter label. */
struct sort_entry {
	uint64_t key[2]; /* as numbers */
	const struct zone_build_node *node;
	zone_build_ref ref;
};

static void sort_key(struct sort_entry *entry, unsigned skip_labels)
{
	const struct zone_build_node *node = entry->node;
	uint8_t label_at[NAME_MAX_LABELS], key[sizeof entry->key] = { 0 };
	unsigned count = 0, used = 0;
	for (size_t at = 0; node->name[at] != 0; at += 1u + node->name[at])
		label_at[count++] = (uint8_t)at;
	count = count > skip_labels ? count - skip_labels : 0;
	while (count-- > 0 && used < sizeof key) {
		/* cppcheck-suppress uninitvar ; the loop above has set those below count */
		const uint8_t *label = node->name + label_at[count];
		for (unsigned i = 1; i <= label[0] && used < sizeof key; i++) {
			if (label[i] > 1) {
				key[used++] = name_octet_lower(label[i]);
				continue;
			}
			key[used++] = 1;
			if (used < sizeof key)
				key[used++] = (uint8_t)(label[i] + 1);
		}
		used++;
	}
	for (unsigned i = 0; i < ARRAY_LEN(entry->key); i++) {
		uint64_t word;
		memcpy(&word, key + 8 * i, sizeof word);
		entry->key[i] = __builtin_bswap64(word);
	}
}

static int sort_compare(const void *a, const void *b)
{
	const struct sort_entry *x = a, *y = b;
	for (unsigned i = 0; i < ARRAY_LEN(x->key); i++)
		if (x->key[i] != y->key[i])
			return x->key[i] < y->key[i] ? -1 : 1;
	return name_compare(x->node->name, y->node->name);
}

enum err zone_build_sort(struct zone_build *b)
{
	if (b->sorted)
		return ERR_OK;
	zone_build_ref *sorted = malloc(b->node_count * sizeof *sorted);
	struct sort_entry *entry = malloc(b->node_count * sizeof *entry);
	if (!sorted || !entry) {
		free(sorted);
		free(entry);
		return ERR_NOMEM;
	}
	/* All names share the apex's labels, unless some are out of the zone. */
	unsigned skip = b->out_of_zone_count ? 0 : zone_build_apex(b)->labels;
	bool is_ascending = true;
	zone_build_ref ref = b->first_node;
	for (uint32_t i = 0; i < b->node_count; i++) {
		const struct zone_build_node *node = zone_build_node(b, ref);
		ASSERT(node); /* the list is as long as node_count says */
		entry[i] = (struct sort_entry){ .node = node, .ref = ref };
		sort_key(&entry[i], skip);
		is_ascending = is_ascending && (i == 0 || sort_compare(&entry[i - 1], &entry[i]) < 0);
		ref = node->next;
	}
	if (!is_ascending) /* signers write sorted files */
		qsort(entry, b->node_count, sizeof *entry, sort_compare);
	for (uint32_t i = 0; i < b->node_count; i++)
		sorted[i] = entry[i].ref;
	free(entry);
	b->sorted = sorted;
	return ERR_OK;
}

/* One RRset's records; false when `each` wants no more. */
static bool each_rrset(const struct zone_build *b, const struct zone_build_node *node, const struct zone_build_rrset *rrset,
		       bool (*each)(void *user, const struct zone_build_record *), void *user)
{
	ZONE_BUILD_EACH_RR(b, rrset, rr) {
		struct zone_build_record record = { .owner = node->name,
						    .type = rrset->type,
						    .ttl_s = rr->ttl_s,
						    .rdata = rr->rdata,
						    .rdata_bytes = rr->rdata_bytes,
						    .place = zone_build_place(b, rr) };
		if (!each(user, &record))
			return false;
	}
	return true;
}

enum err zone_build_each(struct zone_build *b, bool (*each)(void *user, const struct zone_build_record *), void *user)
{
	enum err err = zone_build_settle(b);
	if (err == ERR_OK)
		err = zone_build_sort(b);
	if (err != ERR_OK)
		return err;
	for (uint32_t i = 0; i < b->node_count; i++) {
		const struct zone_build_node *node = zone_build_node(b, b->sorted[i]);
		ZONE_BUILD_EACH_RRSET(b, node, rrset)
			if (!each_rrset(b, node, rrset, each, user))
				return ERR_OK;
	}
	return ERR_OK;
}
