/* SPDX-License-Identifier: Apache-2.0 */
/* zone_build.h: a zone being put together record by record (from a master file, later from transfers and updates), its
 * checks, and its compilation into an image. Allocates from an arena of its own, bounded by max_bytes. One thread a builder. */
#pragma once
#include "base/base.h"
#include "dns/master.h"
#include "table/zone_image.h"

struct zone_build;

/* name: the zone's apex, wire, copied. ERR_NOMEM. */
MUST_USE enum err zone_build_create(struct zone_build **out, const uint8_t *name, uint16_t class_, size_t max_bytes);
void zone_build_destroy(struct zone_build *b); /* NULL is fine */

/* Adds one record; everything is copied. `place` is kept (its file pointer borrowed until destroy) for the checks.
 * Exact duplicates are dropped and noted for zone_check. ERR_NOMEM or ERR_NOSPACE (max_bytes). Out-of-zone owners are taken and
 * reported by zone_check. */
MUST_USE enum err zone_build_add(struct zone_build *b, const struct master_record *record);

/* What named-checkzone checks. Errors make the zone unusable, warnings do not. */
enum zone_finding_level { ZONE_WARNING, ZONE_ERROR };
struct zone_finding {
	enum zone_finding_level level;
	const char *id; /* stable: "soa-missing", "ns-missing", "cname-and-other-data", "out-of-zone", "glue-missing", ... */
	struct master_place place; /* file may be NULL */
	const char *text;	   /* valid during the call */
};
struct zone_check_result {
	uint64_t errors, warnings;
	enum err err; /* ERR_NOMEM, ERR_NOSPACE (max_bytes): nothing was checked */
};
struct zone_check_result zone_check(struct zone_build *b, void (*report)(void *user, const struct zone_finding *), void *user);

/* Iterates all records in canonical order (sorted once, on first use) until `each` says false; for `skua zone check --print`,
 * tests and export. ERR_NOMEM. */
struct zone_build_record {
	const uint8_t *owner;
	uint16_t type;
	uint32_t ttl_s;
	const uint8_t *rdata;
	uint16_t rdata_bytes;
	struct master_place place;
};
MUST_USE enum err zone_build_each(struct zone_build *b, bool (*each)(void *user, const struct zone_build_record *), void *user);
uint64_t zone_build_records(const struct zone_build *b);
size_t zone_build_bytes(const struct zone_build *b);

/* Compiles the zone. The caller must have run zone_check without errors. Out-of-zone data is left out, RRset TTLs become the
 * smallest of the set (RFC 2181 5.2). zone_compile_bytes gives the exact size; zone_compile writes into out (8-byte aligned,
 * zeroed). ERR_NOSPACE when an RRset is too large for a message, with *why. */
MUST_USE enum err zone_compile_bytes(struct zone_build *b, size_t *size_bytes, const char **why);
MUST_USE enum err zone_compile(struct zone_build *b, void *out, size_t size_bytes);
