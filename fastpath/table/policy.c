/* SPDX-License-Identifier: Apache-2.0 */
/* The image from prefixes, and its check. */
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "table/policy_private.h"
#include "table/shm.h"

#define CHUNK_BITS 32u	/* of an address; a tree decides by one chunk */
#define MAX_NESTING 34u /* prefixes of one chunk that contain each other: lengths 0 to 32, and who is outside */
#define GROW_FIRST_BYTES 4096u

struct entry {
	uint8_t address[16];
	uint8_t family, bits;
	uint16_t group;
	uint32_t index;
};

/* Where the value changes. */
struct place {
	uint32_t at, value;
};

struct builder {
	const struct entry *entry;
	struct place *place; /* a stack: trees that are being made, the outer ones below */
	size_t place_count, place_room;
	uint8_t *out;
	size_t used, room;
	size_t trees_offset; /* of out */
	bool is_out_of_memory;
};

/* --- places ---------------------------------------------------------------------------------------------------------- */

/* From `at` on value holds; first: of the places of this tree, below is what holds before it. */
static void put(struct builder *b, size_t first, uint32_t below, uint32_t at, uint32_t value)
{
	if (b->place_count > first && b->place[b->place_count - 1].at == at)
		b->place_count--; /* nothing lies between */
	uint32_t before = b->place_count > first ? b->place[b->place_count - 1].value : below;
	if (value == before)
		return;
	if (b->place_count == b->place_room) {
		size_t room = b->place_room ? b->place_room * 2 : 256;
		struct place *grown = realloc(b->place, room * sizeof *grown);
		if (!grown) {
			b->is_out_of_memory = true;
			return;
		}
		b->place = grown;
		b->place_room = room;
	}
	b->place[b->place_count++] = (struct place){ at, value };
}

static size_t aligned(size_t offset, size_t align) { return (offset + align - 1) / align * align; }

/* Room for octets in the image, zeroed; NULL: out of memory. *offset: where. */
static void *grow(struct builder *b, size_t bytes, size_t align, size_t *offset)
{
	size_t start = aligned(b->used, align);

	if (start + bytes > b->room) {
		size_t room = MAX(start + bytes, b->room ? b->room * 2 : (size_t)GROW_FIRST_BYTES);
		uint8_t *grown = realloc(b->out, room);
		if (!grown) {
			b->is_out_of_memory = true;
			return NULL;
		}
		b->out = grown;
		b->room = room;
	}
	memset(b->out + b->used, 0, start + bytes - b->used);
	b->used = start + bytes;
	*offset = start;
	return b->out + start;
}

static int32_t biased(uint32_t at) { return (int32_t)(at ^ 0x80000000u); }
static uint32_t value_of(const struct builder *b, enum policy_value_kind kind, size_t offset)
{
	return (uint32_t)kind << POLICY_VALUE_SHIFT | (uint32_t)((offset - b->trees_offset) / POLICY_UNIT_BYTES);
}

static uint32_t write_leaf(struct builder *b, const struct place *place, size_t count, uint32_t below)
{
	size_t offset;
	struct policy_leaf *leaf = grow(b, sizeof *leaf, POLICY_UNIT_BYTES, &offset);

	if (!leaf)
		return 0;
	leaf->value[0] = below;
	for (size_t i = 0; i < POLICY_LEAF_KEYS; i++) {
		leaf->key[i] = i < count ? biased(place[i].at) : INT32_MAX;
		leaf->value[i + 1] = i < count ? place[i].value : leaf->value[i];
	}
	return value_of(b, POLICY_VALUE_LEAF, offset);
}

/* Nodes of each level, the last one for so many places. */
static uint32_t plan_levels(struct policy_tree *t, size_t place_count)
{
	uint32_t nodes[POLICY_MAX_LEVELS], count = 0, first = 0;

	nodes[count++] = (uint32_t)((place_count + POLICY_NODE_KEYS - 1) / POLICY_NODE_KEYS);
	for (; nodes[count - 1] > 1; count++) {
		ASSERT(count < POLICY_MAX_LEVELS);
		nodes[count] = (nodes[count - 1] + POLICY_NODE_KEYS) / (POLICY_NODE_KEYS + 1);
	}
	t->level_count = count;
	for (uint32_t l = 0; l < count; l++) {
		t->level[l].first = first;
		first += nodes[count - 1 - l];
		t->level[l].last = first - 1;
	}
	t->values = (uint32_t)(sizeof *t + first * sizeof(struct policy_node));
	t->place_count = (uint32_t)place_count;
	return first;
}

static size_t value_count(const struct policy_tree *t)
{
	const uint32_t bottom = t->level_count - 1;
	return (size_t)(t->level[bottom].last - t->level[bottom].first + 1) * POLICY_NODE_KEYS + 1;
}

/* The first place of the subtree below a node; SIZE_MAX: the node does not exist. */
static size_t first_place(const struct policy_tree *t, uint32_t level, size_t k)
{
	for (; level + 1 < t->level_count; level++)
		k *= POLICY_NODE_KEYS + 1;
	return k * POLICY_NODE_KEYS;
}

static uint32_t write_tree(struct builder *b, const struct place *place, size_t count, uint32_t below)
{
	struct policy_tree plan = { 0 };
	plan_levels(&plan, count);
	size_t values = value_count(&plan), offset;
	struct policy_tree *t = grow(b, plan.values + values * 4, CACHE_LINE, &offset);

	if (!t)
		return 0;
	*t = plan;
	struct policy_node *node = (void *)(t + 1);
	for (uint32_t l = 0; l < plan.level_count; l++)
		for (uint32_t k = 0; k <= plan.level[l].last - plan.level[l].first; k++)
			for (uint32_t i = 0; i < POLICY_NODE_KEYS; i++) {
				bool is_bottom = l + 1 == plan.level_count;
				size_t n = is_bottom ? (size_t)k * POLICY_NODE_KEYS + i
						     : first_place(&plan, l + 1, (size_t)k * (POLICY_NODE_KEYS + 1) + i + 1);
				node[plan.level[l].first + k].key[i / 4][i % 4] = n < count ? biased(place[n].at) : INT32_MAX;
			}
	uint32_t *value = (uint32_t *)(void *)((uint8_t *)t + plan.values);
	value[0] = below;
	for (size_t i = 1; i < values; i++)
		value[i] = i <= count ? place[i - 1].value : value[i - 1];
	return value_of(b, POLICY_VALUE_TREE, offset);
}

/* --- trees ----------------------------------------------------------------------------------------------------------- */

static uint32_t chunk_of(const struct entry *e, unsigned depth) { return load_be32(e->address + (size_t)4 * depth); }

struct open {
	uint64_t end; /* first address that no longer belongs to it */
	uint32_t group;
};

/* Ends what ends at or before `at`. */
static unsigned close_until(struct builder *b, size_t first, const struct open *open, unsigned count, uint64_t at)
{
	for (; count > 1 && open[count - 1].end <= at; count--)
		if (open[count - 1].end <= UINT32_MAX)
			put(b, first, open[0].group, (uint32_t)open[count - 1].end, open[count - 2].group);
	return count;
}

/* The value that decides between entries from to to, which have the chunks before depth in common and are sorted; below holds where none
 * matches. Depth: at most 4 calls. */
static uint32_t build(struct builder *b, size_t from, size_t to, unsigned depth, uint32_t below)
{
	const size_t first = b->place_count;
	struct open open[MAX_NESTING] = { { UINT64_MAX, below } };
	unsigned open_count = 1;

	for (size_t i = from; i < to && !b->is_out_of_memory;) {
		const struct entry *e = &b->entry[i];
		uint32_t at = chunk_of(e, depth);
		unsigned bits = e->bits - depth * CHUNK_BITS;

		open_count = close_until(b, first, open, open_count, at);
		if (bits <= CHUNK_BITS) {
			ASSERT(open_count < MAX_NESTING);
			open[open_count++] = (struct open){ at + (UINT64_C(1) << (CHUNK_BITS - bits)), e->group };
			put(b, first, below, at, e->group);
			i++;
			continue;
		}
		size_t next = i + 1; /* shorter ones with this chunk sort before; all that follow are longer */
		while (next < to && chunk_of(&b->entry[next], depth) == at)
			next++;
		uint32_t inside = open[open_count - 1].group, value = build(b, i, next, depth + 1, inside);
		put(b, first, below, at, value);
		if (at < UINT32_MAX)
			put(b, first, below, at + 1, inside);
		i = next;
	}
	close_until(b, first, open, open_count, UINT64_C(1) << CHUNK_BITS);

	size_t count = b->place_count - first;
	b->place_count = first;
	if (b->is_out_of_memory || count == 0)
		return below;
	const struct place *place = b->place + first;
	return count <= POLICY_LEAF_KEYS ? write_leaf(b, place, count, below) : write_tree(b, place, count, below);
}

/* --- making ---------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	int order = memcmp(x->address, y->address, sizeof x->address);
	if (order)
		return order;
	if (x->bits != y->bits)
		return x->bits < y->bits ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static bool is_sound(const struct policy_prefix *p, size_t group_count)
{
	unsigned max = p->family == 4 ? 32 : p->family == 6 ? 128 : 0;
	if (!max || p->bits > max || p->group >= group_count)
		return false;
	for (unsigned i = p->bits; i < 128; i++)
		if (p->address[i / 8] >> (7 - i % 8) & 1)
			return false;
	return true;
}

/* Sorted, of equal ones the last; *ipv4_count of them come first. */
static size_t sort(struct entry *entry, size_t count, size_t *ipv4_count)
{
	size_t kept = 0, ipv4 = 0;

	qsort(entry, count, sizeof *entry, compare);
	for (size_t i = 0; i < count; i++) {
		const struct entry *next = i + 1 < count ? &entry[i + 1] : NULL;
		if (next && next->family == entry[i].family && next->bits == entry[i].bits &&
		    memcmp(next->address, entry[i].address, sizeof next->address) == 0)
			continue;
		ipv4 += entry[i].family == 4;
		entry[kept++] = entry[i];
	}
	*ipv4_count = ipv4;
	return kept;
}

static enum err write_image(int *fd, struct builder *b, const struct policy_group *groups, size_t group_count, size_t ipv4_count,
			    size_t count)
{
	size_t groups_bytes = group_count * sizeof *groups, offset;
	size_t trees_offset = aligned(sizeof(struct policy_header) + groups_bytes, CACHE_LINE);
	struct policy_header h = { .magic = POLICY_MAGIC,
				   .version = POLICY_VERSION,
				   .group_count = (uint32_t)group_count,
				   .prefix_count = (uint32_t)count,
				   .trees_offset = trees_offset };

	if (!grow(b, trees_offset, 1, &offset))
		return ERR_NOMEM;
	b->trees_offset = trees_offset;
	memcpy(b->out + sizeof h, groups, groups_bytes);
	h.root[0] = build(b, 0, ipv4_count, 0, 0);
	h.root[1] = build(b, ipv4_count, count, 0, 0);
	if (b->is_out_of_memory)
		return ERR_NOMEM;
	h.total_bytes = b->used;
	memcpy(b->out, &h, sizeof h);

	int made;
	enum err err = shm_create_copy(&made, "skua-policy", b->out, b->used);
	if (err != ERR_OK)
		return err;
	err = shm_seal(made);
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	*fd = made;
	return ERR_OK;
}

enum err policy_create(int *fd, const struct policy_group *groups, size_t group_count, const struct policy_prefix *prefixes,
		       size_t prefix_count, size_t *bad)
{
	if (prefix_count > POLICY_MAX_PREFIXES || group_count > POLICY_MAX_GROUPS)
		return ERR_NOSPACE;
	for (size_t i = 0; i < prefix_count; i++)
		if (!is_sound(&prefixes[i], group_count)) {
			*bad = i;
			return ERR_ARGUMENT;
		}
	if (group_count == 0) {
		*bad = prefix_count;
		return ERR_ARGUMENT;
	}
	struct entry *entry = malloc((prefix_count ? prefix_count : 1) * sizeof *entry);
	if (!entry)
		return ERR_NOMEM;
	for (size_t i = 0; i < prefix_count; i++) {
		entry[i] = (struct entry){
			.family = prefixes[i].family, .bits = prefixes[i].bits, .group = prefixes[i].group, .index = (uint32_t)i
		};
		memcpy(entry[i].address, prefixes[i].address, sizeof entry[i].address);
	}
	size_t ipv4_count, count = sort(entry, prefix_count, &ipv4_count);
	struct builder b = { .entry = entry };
	enum err err = write_image(fd, &b, groups, group_count, ipv4_count, count);
	free(b.place);
	free(b.out);
	free(entry);
	return err;
}

/* --- checking -------------------------------------------------------------------------------------------------------- */

struct check {
	const struct policy_header *h;
	const uint8_t *trees;
	size_t trees_bytes;
	size_t seen_bytes; /* of trees: if many refer to one, a small image would take for ever */
	size_t end; /* of the tree that was checked last: they lie one behind another, in the order in which they are built */
	const char *why;
};

static bool is_value_good(struct check *c, uint32_t value, unsigned chunks);

static bool are_values_good(struct check *c, const uint32_t *value, size_t count, unsigned chunks)
{
	for (size_t i = 0; i < count; i++)
		/* The filling at the end repeats the last value. */
		if ((i == 0 || value[i] != value[i - 1]) && !is_value_good(c, value[i], chunks))
			return false;
	return true;
}

/* The tree's octets; 0: it does not fit, or is not laid out as its number of places demands. */
static size_t tree_bytes(const struct policy_tree *t, size_t room)
{
	struct policy_tree expected = { 0 };

	if (room < sizeof *t || t->place_count == 0 || t->place_count > 2 * POLICY_MAX_PREFIXES + 1)
		return 0;
	plan_levels(&expected, t->place_count);
	size_t bytes = expected.values + value_count(&expected) * 4;
	return memcmp(&expected, t, sizeof expected) == 0 && bytes <= room ? bytes : 0;
}

/* chunks: how many are left of the address. */
static bool is_value_good(struct check *c, uint32_t value, unsigned chunks)
{
	enum policy_value_kind kind = value >> POLICY_VALUE_SHIFT;
	size_t at = (size_t)(value & POLICY_VALUE_MASK) * POLICY_UNIT_BYTES, bytes;

	if (kind == POLICY_VALUE_GROUP) {
		c->why = "a group does not exist";
		return value < c->h->group_count;
	}
	c->why = "a tree is deeper than an address is long";
	if (chunks == 0)
		return false;
	c->why = "a tree lies outside";
	if ((kind != POLICY_VALUE_LEAF && kind != POLICY_VALUE_TREE) || at >= c->trees_bytes)
		return false;
	if (kind == POLICY_VALUE_LEAF)
		bytes = sizeof(struct policy_leaf);
	else
		bytes = at % CACHE_LINE ? 0 : tree_bytes((const void *)(c->trees + at), c->trees_bytes - at);
	if (bytes == 0 || bytes > c->trees_bytes - at)
		return false;
	c->why = "a tree is referred to twice";
	c->seen_bytes += bytes;
	if (c->seen_bytes > c->trees_bytes)
		return false;
	const struct policy_leaf *leaf = (const void *)(c->trees + at);
	const struct policy_tree *t = (const void *)(c->trees + at);
	const uint32_t *values =
		kind == POLICY_VALUE_LEAF ? leaf->value : (const uint32_t *)(const void *)(c->trees + at + t->values);
	if (!are_values_good(c, values, kind == POLICY_VALUE_LEAF ? POLICY_LEAF_KEYS + 1 : value_count(t), chunks - 1))
		return false;
	c->why = "a tree stands in the wrong place";
	if (at != aligned(c->end, kind == POLICY_VALUE_LEAF ? POLICY_UNIT_BYTES : CACHE_LINE))
		return false;
	c->end = at + bytes;
	return true;
}

/* Everything that policy_find relies on. */
static const char *check_image(const void *image, size_t bytes, struct policy *out)
{
	const struct policy_header *h = image;

	if (bytes < sizeof *h || h->magic != POLICY_MAGIC)
		return "it is no policy image";
	if (h->version != POLICY_VERSION)
		return "it is of another version";
	if (h->total_bytes != bytes || h->group_count == 0 || h->group_count > POLICY_MAX_GROUPS)
		return "its header is damaged";
	size_t trees_offset = aligned(sizeof *h + h->group_count * sizeof(struct policy_group), CACHE_LINE);
	if (h->trees_offset != trees_offset || trees_offset > bytes)
		return "its header is damaged";
	struct check c = { .h = h, .trees = (const uint8_t *)image + trees_offset, .trees_bytes = bytes - trees_offset };
	if (!is_value_good(&c, h->root[0], 1) || !is_value_good(&c, h->root[1], 4))
		return c.why;
	if (c.end != c.trees_bytes)
		return "something follows the last tree";
	*out = (struct policy){ .trees = c.trees,
				.group = (const void *)(h + 1),
				.root = { h->root[0], h->root[1] },
				.group_count = h->group_count };
	return NULL;
}

enum err policy_attach(struct policy **out, int fd, const char **why)
{
	const void *map;
	size_t bytes;

	*why = "it is not sealed";
	if (!shm_is_sealed(fd, true))
		return ERR_DENIED;
	*why = "it can't be mapped";
	enum err err = shm_map(&map, &bytes, fd);
	if (err != ERR_OK)
		return err;
	struct policy *p = malloc(sizeof *p);
	const char *problem = p ? check_image(map, bytes, p) : NULL;
	if (!p || problem) {
		if (problem)
			*why = problem;
		free(p);
		shm_unmap(map, bytes);
		return problem ? ERR_CORRUPT : ERR_NOMEM;
	}
	p->map = map;
	p->map_bytes = bytes;
	*out = p;
	return ERR_OK;
}

void policy_detach(struct policy *p)
{
	if (!p)
		return;
	shm_unmap(p->map, p->map_bytes);
	free(p);
}

size_t policy_bytes(const struct policy *p) { return p->map_bytes; }
