/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged segments and maps: they are refused, or every search stays inside. The input says which of the two is damaged (bit 0 of
 * its first octet), then lists changes; or, with bit 1 set, is a map as it is. */
#include "base/bytes.h"
#include "table/shm.h"
#include "table/zone_build.h"
#include "table/zone_set.h"

#include <stdlib.h>
#include <unistd.h>

#define CHANGE_BYTES 5u /* where (2 octets), how (1), value (2) */
#define SEGMENT_ID 7u

static const char *const zone_names[] = { "example.", "a.example.", "x.y.z.org.", "." };
static const char *const asked[] = { "example.", "www.example.", "b.a.example.", "q.x.y.z.org.", "gone.test.", "." };

static struct segment_header *segment_template;
static void *map_template;
static size_t map_bytes;

static size_t wire(uint8_t out[static NAME_MAX_BYTES], const char *text)
{
	const char *why;
	size_t bytes = name_from_text(out, text, strlen(text), NULL, &why);

	ASSERT(bytes > 0);
	return bytes;
}

static struct zone_build *make_zone(const char *text)
{
	static const uint8_t soa[22] = { 0 }, root[1] = { 0 };
	uint8_t name[NAME_MAX_BYTES];
	struct zone_build *b;
	struct master_record r = { .owner = name, .owner_bytes = wire(name, text), .class_ = 1, .ttl_s = 60 };

	ASSERT(zone_build_create(&b, name, 1, 1 << 20) == ERR_OK);
	r.type = 6, r.rdata = soa, r.rdata_bytes = sizeof soa;
	ASSERT(zone_build_add(b, &r) == ERR_OK);
	r.type = 2, r.rdata = root, r.rdata_bytes = sizeof root;
	ASSERT(zone_build_add(b, &r) == ERR_OK);
	return b;
}

static void make_templates(void)
{
	size_t end = sizeof(struct segment_header), image_bytes;
	uint8_t *segment = calloc(1, 1 << 16), name[NAME_MAX_BYTES];
	struct zone_map_build *map;
	const char *why;

	ASSERT(segment && zone_map_build_create(&map, 1) == ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(zone_names); i++) {
		struct zone_build *b = make_zone(zone_names[i]);
		ASSERT(zone_compile_bytes(b, &image_bytes, &why) == ERR_OK);
		ASSERT(zone_compile(b, segment + end, image_bytes) == ERR_OK);
		zone_build_destroy(b);
		wire(name, zone_names[i]);
		ASSERT(zone_map_build_add(map, name, SEGMENT_ID, end, 0) == ERR_OK);
		end += (image_bytes + 7) & ~(size_t)7;
	}
	wire(name, "unusable.");
	ASSERT(zone_map_build_add_unusable(map, name) == ERR_OK);
	segment_template = (struct segment_header *)segment;
	*segment_template = (struct segment_header){ .magic = SEGMENT_MAGIC, .version = SEGMENT_VERSION, .size_bytes = end };
	segment_template->id = SEGMENT_ID;
	segment_template->image_count = ARRAY_LEN(zone_names);
	segment_template->notes = end;
	map_bytes = zone_map_build_bytes(map);
	map_template = calloc(1, map_bytes);
	ASSERT(map_template && zone_map_build_finish(map, map_template) == ERR_OK);
	zone_map_build_destroy(map);
}

/* A sealed memfd with these bytes and the listed changes. */
static int damaged(const void *bytes, size_t size, const uint8_t *c, size_t change_bytes)
{
	int fd;
	void *map;
	size_t got;

	ASSERT(shm_create(&fd, "fuzz", size) == ERR_OK && shm_map_writable(&map, &got, fd) == ERR_OK);
	memcpy(map, bytes, size);
	for (; change_bytes >= CHANGE_BYTES && size >= 4; c += CHANGE_BYTES, change_bytes -= CHANGE_BYTES) {
		uint8_t *at = (uint8_t *)map + load_be16(c) % (size - 3);
		uint32_t word, value = load_be16(c + 3);
		memcpy(&word, at, sizeof word);
		word = c[2] % 4 == 0 ? value : c[2] % 4 == 1 ? word + value : c[2] % 4 == 2 ? word - value : word ^ value << 16;
		memcpy(at, &word, sizeof word);
	}
	shm_unmap(map, got);
	ASSERT(shm_seal(fd) == ERR_OK);
	return fd;
}

static void visit(void *user, const uint8_t *name, const struct zone_view *view)
{
	uint64_t *sum = user;

	ASSERT(name_wire_bytes(name, NAME_MAX_BYTES) > 0);
	*sum += view->base ? *zone_node_name(zone_ptr(view->base, view->base->apex)) : 1;
}

static void search(const struct zone_set *set)
{
	uint64_t sum = 0;

	zone_set_each(set, visit, &sum);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		uint8_t name[NAME_MAX_BYTES + 33] = { 0 }, offset[NAME_MAX_LABELS + 1];
		size_t bytes = wire(name, asked[i]);
		unsigned labels = name_labels(name);
		for (unsigned n = 0; n <= labels; n++)
			offset[n] = (uint8_t)name_suffix_offset(name, n);
		for (unsigned skip = 0; skip <= labels && skip < 2; skip++) {
			struct zone_set_hit hit = zone_set_find(set, name, bytes, offset, labels, skip);
			if (hit.view)
				ASSERT(hit.zone_label <= labels && hit.zone_label >= skip);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment *segment = NULL;
	struct zone_set *set;
	const char *why;

	if (!map_template)
		make_templates();
	if (size < 2)
		return 0;
	bool is_segment = data[0] & 1, is_raw = data[0] & 2;
	int fd = damaged(segment_template, segment_template->size_bytes, data + 1, is_segment ? size - 1 : 0);
	enum err err = segment_attach(&segment, fd, &why);
	close(fd);
	if (err == ERR_OK) {
		if (is_segment)
			fd = damaged(map_template, map_bytes, NULL, 0);
		else
			fd = is_raw ? damaged(data + 1, size - 1, NULL, 0) : damaged(map_template, map_bytes, data + 1, size - 1);
		if (zone_set_attach(&set, fd, &segment, 1, &why) == ERR_OK) {
			search(set);
			zone_set_release(set);
		}
		close(fd);
		segment_put(segment);
	} else {
		ASSERT(is_segment && why);
	}
	return 0;
}
