/* SPDX-License-Identifier: Apache-2.0 */
/* store_world.h: for the tests of slowpath/zone/: a temporary folder with master files, and a store that reads them. */
#pragma once
#include "dns/name.h"
#include "slowpath/zone/loader.h"
#include "slowpath/zone/repack.h"
#include "slowpath/zone/zone_load.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	char folder[64];
	struct zone_store *store;
	uint32_t next_segment_id;
	unsigned threads; /* that read zones: with more than one it is chance which zones share a segment */
};

static inline const char *world_path(const struct world *w, const char *name)
{
	static char path[4][512];
	static unsigned turn;
	char *out = path[turn++ % 4];
	snprintf(out, 512, "%s/%s", w->folder, name);
	return out;
}

static inline void world_put(const struct world *w, const char *name, const char *text)
{
	FILE *f = fopen(world_path(w, name), "w");
	cr_assert(f, "%s", name);
	fputs(text, f);
	fclose(f);
}

/* A good zone with this serial and some addresses; larger and smaller ones by `hosts`. */
static inline void world_put_zone(const struct world *w, const char *name, uint32_t serial, unsigned hosts)
{
	FILE *f = fopen(world_path(w, name), "w");
	cr_assert(f, "%s", name);
	fprintf(f, "$TTL 300\n@ SOA ns hostmaster %u 3600 900 604800 300\n@ NS ns\nns A 192.0.2.1\n", serial);
	for (unsigned i = 0; i < hosts; i++)
		fprintf(f, "h%u A 192.0.2.%u\n", i, i % 256);
	fclose(f);
}

static inline const uint8_t *world_name(const char *text)
{
	static uint8_t name[4][NAME_MAX_BYTES];
	static unsigned turn;
	const char *why = "";
	uint8_t *out = name[turn++ % 4];
	cr_assert(name_from_text(out, text, strlen(text), (const uint8_t *)"", &why), "%s: %s", text, why);
	return out;
}

/* A zone whose file has the zone's own name. */
static inline void world_add(struct world *w, const char *zone)
{
	cr_assert_eq(zone_store_add(w->store, world_name(zone), world_path(w, zone)), ERR_OK);
}

static inline struct zone_item *world_item(const struct world *w, const char *zone)
{
	struct zone_item *item = zone_store_find(w->store, world_name(zone));
	cr_assert(item, "%s", zone);
	return item;
}

static inline uint32_t world_serial(const struct world *w, const char *zone)
{
	const struct zone_item *item = world_item(w, zone);
	return item->image ? item->image->serial : 0;
}

static inline void world_init(struct world *w)
{
	*w = (struct world){ .folder = "/tmp/skua-zone-test-XXXXXX", .next_segment_id = 1, .threads = 2 };
	cr_assert(mkdtemp(w->folder));
	cr_assert_eq(zone_store_create(&w->store), ERR_OK);
}

/* With default settings; ends[0] is its link, ends[1] the supervisor's. */
static inline struct publisher *world_publisher(struct snapshot_holder *holder, int ends[2])
{
	struct settings settings;
	struct publisher *out;
	settings_defaults(&settings);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	cr_assert_eq(publisher_create(&out, ends[0], holder, &settings), ERR_OK);
	return out;
}

static inline void world_new_store(struct world *w)
{
	zone_store_destroy(w->store);
	cr_assert_eq(zone_store_create(&w->store), ERR_OK);
}

static inline int world_clear_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline void world_fini(struct world *w)
{
	zone_store_destroy(w->store);
	nftw(w->folder, world_clear_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline unsigned world_files(const struct world *w, const char *folder, const char *suffix)
{
	unsigned count = 0;
	DIR *dir = opendir(world_path(w, folder));
	for (struct dirent *e; dir && (e = readdir(dir));) {
		size_t n = strlen(e->d_name), s = strlen(suffix);
		count += e->d_name[0] != '.' && n >= s && strcmp(e->d_name + n - s, suffix) == 0;
	}
	if (dir)
		closedir(dir);
	return count;
}

static inline struct reload_result world_reload(struct world *w, const char *zone, bool is_forced)
{
	struct reload_result result;
	struct reload_request request = { .zone = zone ? world_name(zone) : NULL,
					  .is_forced = is_forced,
					  .threads = w->threads,
					  .max_zone_bytes = 64 << 20,
					  .next_segment_id = &w->next_segment_id };
	cr_assert_eq(reload_run(w->store, &request, &result), ERR_OK);
	return result;
}

/* The counts, in one expression: loaded, unchanged, failed. */
static inline void world_expect(struct world *w, const char *zone, bool is_forced, unsigned loaded, unsigned unchanged,
				unsigned failed)
{
	struct reload_result r = world_reload(w, zone, is_forced);
	cr_expect(r.loaded == loaded && r.unchanged == unchanged && r.failed == failed,
		  "loaded %u unchanged %u failed %u, not %u %u %u; %s", (unsigned)r.loaded, (unsigned)r.unchanged,
		  (unsigned)r.failed, loaded, unchanged, failed, r.fault_count && r.fault[0].lines ? r.fault[0].lines : "");
	reload_result_fini(&r);
}
