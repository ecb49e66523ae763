/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/lib/zones.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dns/master.h"
#include "dns/message.h"
#include "dns/rdata.h"
#include "table/shm.h"
#include "table/zone_build.h"

#define ROUND_UP_8(n) (((n) + 7u) & ~(size_t)7)
#define WALL_S 1700000000

static struct counter_block counters;

_Noreturn static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "tests/unit/lib/zones.c: %s: %s\n", what, detail);
	abort();
}

static void check(enum err err, const char *what)
{
	if (err != ERR_OK)
		fail(what, err_text(err));
}

static bool add_record(void *user, const struct master_record *record)
{
	check(zone_build_add(user, record), "zone_build_add");
	return true;
}

static bool master_error(void *user, struct master_place place, const char *message)
{
	(void)user;
	fprintf(stderr, "%s:%u:%u: ", place.file, place.line, place.column);
	fail("master file", message);
}

static struct zone_build *build_zone(const struct zones_text *zone, uint8_t origin[static NAME_MAX_BYTES], size_t *image_bytes)
{
	const char *why = "";
	struct zone_build *build;

	if (!name_from_text(origin, zone->origin, strlen(zone->origin), NULL, &why))
		fail(zone->origin, why);
	check(zone_build_create(&build, origin, RR_CLASS_IN, 1u << 30), "zone_build_create");
	struct master_file file = { zone->origin, zone->text, strlen(zone->text) };
	struct master_options options = {
		.origin = origin, .class_ = RR_CLASS_IN, .default_ttl_s = 300, .has_default_ttl = true
	};
	struct master_callbacks callbacks = { .record = add_record, .error = master_error, .user = build };

	master_read(&file, &options, &callbacks);
	if (zone_compile_bytes(build, image_bytes, &why) != ERR_OK)
		fail(zone->origin, why);
	return build;
}

/* One segment a zone keeps this short. */
static struct segment *zone_segment(const struct zones_text *zone, uint32_t id, struct zone_map_build *map)
{
	uint8_t origin[NAME_MAX_BYTES];
	const char *why = "";
	size_t image_bytes, size;
	int fd;
	void *bytes;
	struct segment *segment;
	struct zone_build *build = build_zone(zone, origin, &image_bytes);

	check(shm_create(&fd, "test-segment", ROUND_UP_8(sizeof(struct segment_header)) + ROUND_UP_8(image_bytes)), "shm_create");
	check(shm_map_writable(&bytes, &size, fd), "shm_map_writable");
	*(struct segment_header *)bytes = (struct segment_header){
		.magic = SEGMENT_MAGIC, .version = SEGMENT_VERSION, .size_bytes = size, .id = id, .image_count = 1
	};
	check(zone_compile(build, (uint8_t *)bytes + sizeof(struct segment_header), image_bytes), "zone_compile");
	zone_build_destroy(build);
	shm_unmap(bytes, size);
	check(shm_seal(fd), "shm_seal");
	if (segment_attach(&segment, fd, &why) != ERR_OK)
		fail("segment_attach", why);
	close(fd);
	check(zone_map_build_add(map, origin, id, sizeof(struct segment_header), 0), "zone_map_build_add");
	return segment;
}

struct snapshot *zones_snapshot(const struct zones_text *zones, size_t count)
{
	struct segment *segments[64];
	struct zone_map_build *map;
	struct zone_set *set;
	struct snapshot *snapshot;
	struct settings settings;
	size_t size, segment_count = 0;
	const char *why = "";
	void *bytes;
	int fd;

	check(zone_map_build_create(&map, 1), "zone_map_build_create");
	for (size_t i = 0; i < count; i++) {
		uint8_t origin[NAME_MAX_BYTES];

		if (zones[i].text) {
			segments[segment_count] = zone_segment(&zones[i], (uint32_t)i + 1, map);
			segment_count++;
			continue;
		}
		name_from_text(origin, zones[i].origin, strlen(zones[i].origin), NULL, &why);
		check(zone_map_build_add_unusable(map, origin), "zone_map_build_add_unusable");
	}
	check(shm_create(&fd, "test-map", zone_map_build_bytes(map)), "shm_create");
	check(shm_map_writable(&bytes, &size, fd), "shm_map_writable");
	check(zone_map_build_finish(map, bytes), "zone_map_build_finish");
	shm_unmap(bytes, size);
	zone_map_build_destroy(map);
	check(shm_seal(fd), "shm_seal");
	if (zone_set_attach(&set, fd, segments, segment_count, &why) != ERR_OK)
		fail("zone_set_attach", why);
	close(fd);
	for (size_t i = 0; i < segment_count; i++)
		segment_put(segments[i]);
	settings_defaults(&settings);
	check(snapshot_create(&snapshot, set, &settings), "snapshot_create");
	return snapshot;
}

size_t zones_query(uint8_t *msg, size_t max_bytes, const struct zones_ask *ask)
{
	const char *why = "";
	uint8_t name[NAME_MAX_BYTES];
	size_t name_bytes = name_from_text(name, ask->name, strlen(ask->name), NULL, &why), pos = DNS_HEADER_BYTES;

	if (name_bytes == 0 || max_bytes < DNS_HEADER_BYTES + name_bytes + 15)
		fail(ask->name, why);
	memset(msg, 0, DNS_HEADER_BYTES);
	store_be16(msg, 0x1234);
	store_be16(msg + 4, 1);
	memcpy(msg + pos, name, name_bytes);
	pos += name_bytes;
	store_be16(msg + pos, ask->type);
	store_be16(msg + pos + 2, RR_CLASS_IN);
	pos += 4;
	if (ask->has_edns || ask->is_do) {
		store_be16(msg + 10, 1);
		msg[pos] = 0;
		store_be16(msg + pos + 1, RR_OPT);
		store_be16(msg + pos + 3, ask->payload_bytes ? ask->payload_bytes : 1232);
		store_be32(msg + pos + 5, ask->is_do ? EDNS_DO : 0);
		store_be16(msg + pos + 9, 0);
		pos += EDNS_OPT_FIXED_BYTES;
	}
	return pos;
}

static size_t put_record(FILE *out, const uint8_t *msg, size_t bytes, size_t pos, bool is_first)
{
	static uint8_t rdata[RDATA_MAX_BYTES];
	static char text[4 * RDATA_MAX_BYTES];
	uint8_t owner[NAME_MAX_BYTES];
	char owner_text[NAME_TEXT_MAX_BYTES], type_text[16];
	size_t rdata_bytes, text_bytes;

	if (!name_from_message(owner, msg, bytes, &pos) || pos + 10 > bytes)
		fail("response", "a record's owner or fixed fields are damaged");
	uint16_t type = load_be16(msg + pos);
	size_t rdlength = load_be16(msg + pos + 8);
	uint32_t ttl_s = load_be32(msg + pos + 4);

	pos += 10 + rdlength;
	if (type == RR_OPT)
		return pos;
	check(rdata_from_message(type, msg, bytes, pos - rdlength, rdlength, rdata, sizeof rdata, &rdata_bytes),
	      "rdata of a response");
	check(rdata_to_text(type, rdata, rdata_bytes, text, sizeof text, &text_bytes), "rdata_to_text");
	name_to_text(owner_text, owner);
	rr_type_to_text(type_text, type);
	fprintf(out, "%s%s %u %s %s", is_first ? " " : "; ", owner_text, ttl_s, type_text, text);
	return pos;
}

char *zones_message_text(const uint8_t *msg, size_t bytes)
{
	char *text = NULL;
	size_t text_bytes, pos = DNS_HEADER_BYTES;
	FILE *out = open_memstream(&text, &text_bytes);
	uint16_t flags = dns_flags(msg);
	uint8_t name[NAME_MAX_BYTES];

	fprintf(out, "%s%s%s", rcode_text(flags & DNS_RCODE_MASK), flags & DNS_AA ? " aa" : "", flags & DNS_TC ? " tc" : "");
	for (unsigned i = 0; i < dns_qdcount(msg); i++, pos += 4)
		if (!name_from_message(name, msg, bytes, &pos))
			fail("response", "question is damaged");
	for (unsigned section = 0; section < 3; section++) {
		unsigned count = load_be16(msg + 6 + 2 * section);

		fputs(" |", out);
		for (unsigned i = 0; i < count; i++)
			pos = put_record(out, msg, bytes, pos, i == 0);
	}
	fclose(out);
	if (pos != bytes)
		fail("response", "octets behind the last record");
	return text;
}

enum answer_verdict zones_answer_raw(const struct snapshot *s, uint8_t *msg, size_t bytes, size_t capacity, bool is_tcp,
				     struct answer_query *out)
{
	struct answer_thread thread = { .counters = &counters, .wall_s = WALL_S };

	memset(out, 0xa5, sizeof *out); /* what the caller of answer() does not set may hold anything */
	out->msg = msg;
	out->query_bytes = (uint32_t)bytes;
	out->capacity_bytes = (uint32_t)capacity;
	out->client = (struct answer_client){
		.address = { 192, 0, 2, 1 }, .port = 40000, .family = 4, .transport = is_tcp ? TRANSPORT_TCP : TRANSPORT_UDP
	};
	return answer(s, &thread, out);
}

char *zones_response(const struct snapshot *s, const struct zones_ask *ask)
{
	static uint8_t msg[DNS_MESSAGE_MAX_BYTES];
	struct answer_query q;
	size_t bytes = zones_query(msg, sizeof msg, ask);

	if (zones_answer_raw(s, msg, bytes, ask->is_tcp ? sizeof msg : 4096, ask->is_tcp, &q) != ANSWER_SEND)
		fail(ask->name, "no response");
	return zones_message_text(msg, q.response_bytes);
}

struct counter_block *zones_counters(void) { return &counters; }
