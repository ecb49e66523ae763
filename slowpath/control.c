/* SPDX-License-Identifier: Apache-2.0 */
/* control.c: the slowpath's verbs. "status" and the lists only read the store under its lock; "reload" waits for the loader.
 * Those about cache and upstreams: control_resolve.c. */
#include "slowpath/control_resolve.h"
#include "slowpath/slowpath.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/version.h"
#include "dns/name.h"

#include <unistd.h>

#define PRINTABLE_BYTES 4096

static json_t *number(uint64_t n) { return json_integer((json_int_t)n); }

static json_t *status(void *user, const json_t *args, struct control_error *error)
{
	struct control_context *c = user;
	(void)args;
	(void)error;
	zone_store_lock(c->store);
	struct zone_store_totals t = zone_store_totals(c->store);
	zone_store_unlock(c->store);
	struct resolve *resolve = c->resolve ? atomic_load(c->resolve) : NULL;
	return json_pack("{s:s, s:s, s:i, s:o, s:b, s:b, s:o, s:i, s:{s:o,s:o,s:o,s:o,s:o,s:o}, s:{s:o,s:o,s:o}, s:o*}", "part",
			 "slowpath", "version", version_text(), "pid", (int)getpid(), "uptime_s",
			 number((clock_mono_ns() - c->started_ns) / 1000000000), "ready", atomic_load(&c->is_ready), "loading",
			 loader_is_busy(c->loader), "generation", number(loader_generation(c->loader)), "workers",
			 (int)c->workers, "zones", "configured", number(t.zones), "served", number(t.served), "stale",
			 number(t.stale), "broken", number(t.broken), "pending", number(t.pending), "records", number(t.records),
			 "memory", "segments", number(t.segments), "segment_bytes", number(t.segment_bytes), "live_bytes",
			 number(t.live_bytes), "resolver", resolve ? resolve_status(resolve) : NULL);
}

/* --- zones ---------------------------------------------------------------------------------------------------------- */

/* Paths and quoted file content may hold anything; JSON may not. */
static json_t *printable(const char *text)
{
	char copy[PRINTABLE_BYTES];
	return json_stringn(copy, printable_copy(copy, sizeof(copy), text, strlen(text)));
}

static json_t *zone_brief(const struct zone_item *item)
{
	char name[NAME_TEXT_MAX_BYTES];
	name_to_text(name, item->name);
	json_t *zone = json_pack("{s:s, s:s, s:o}", "zone", name, "state", zone_state_text(zone_item_state(item)), "file",
				 printable(item->file));
	if (zone && item->segment) {
		json_object_set_new(zone, "serial", number(item->image->serial));
		json_object_set_new(zone, "records", number(item->image->rr_count));
	}
	return zone;
}

static json_t *zone_list(void *user, const json_t *args, struct control_error *error)
{
	struct control_context *c = user;
	(void)args;
	json_t *zones = json_array();
	zone_store_lock(c->store);
	for (uint32_t i = 0; zones && i < zone_store_zones(c->store); i++) {
		if (json_array_append_new(zones, zone_brief(zone_store_item(c->store, i))) < 0) {
			json_decref(zones);
			zones = NULL;
		}
	}
	zone_store_unlock(c->store);
	if (!zones)
		control_fail(error, "no-memory", "there is not enough memory for the list");
	return zones;
}

/* The wire name of args.zone. False with *error filled. */
static bool zone_argument(const json_t *args, uint8_t name[static NAME_MAX_BYTES], struct control_error *error)
{
	const json_t *zone = json_object_get(args, "zone");
	const char *why = NULL;
	const uint8_t root[1] = { 0 };
	if (!json_is_string(zone)) {
		control_fail(error, "bad-args", "\"zone\" must be a string");
		return false;
	}
	if (name_from_text(name, json_string_value(zone), json_string_length(zone), root, &why) == 0) {
		control_fail(error, "bad-args", "\"%s\" is not a domain name: %s", json_string_value(zone), why);
		return false;
	}
	return true;
}

static void add_image(json_t *zone, const struct zone_item *item)
{
	json_object_set_new(zone, "names", number(item->image->node_count));
	json_object_set_new(zone, "rrsets", number(item->image->rrset_count));
	json_object_set_new(zone, "image_bytes", number(item->image->size_bytes));
	json_object_set_new(zone, "signed", json_boolean(item->image->flags & (ZONE_SIGNED_NSEC | ZONE_SIGNED_NSEC3)));
	if (!item->note)
		return;
	uint32_t files = item->note->source_count;
	json_object_set_new(zone, "loaded_at", number((uint64_t)item->note->loaded_at_s));
	json_object_set_new(zone, "load_us", number(item->note->load_us));
	json_object_set_new(zone, "files", number(files));
	json_object_set_new(zone, "file_bytes", number(item->note->source_bytes));
	json_object_set_new(zone, "warnings", number(item->note->warnings));
}

/* One string a line, so that they can be shown one below the other. */
static void add_fault(json_t *zone, const char *lines)
{
	json_t *fault = json_array();
	while (*lines) {
		char copy[PRINTABLE_BYTES];
		size_t bytes = strcspn(lines, "\n");
		size_t printed = printable_copy(copy, sizeof(copy), lines, bytes);
		json_array_append_new(fault, json_stringn(copy, printed));
		lines += bytes + (lines[bytes] == '\n');
	}
	json_object_set_new(zone, "fault", fault);
}

static json_t *zone_status(void *user, const json_t *args, struct control_error *error)
{
	struct control_context *c = user;
	uint8_t name[NAME_MAX_BYTES];
	json_t *zone = NULL;
	if (!zone_argument(args, name, error))
		return NULL;
	zone_store_lock(c->store);
	const struct zone_item *item = zone_store_find(c->store, name);
	if (item)
		zone = zone_brief(item);
	if (zone && item->segment)
		add_image(zone, item);
	if (zone && item->fault_errors) {
		json_object_set_new(zone, "errors", number(item->fault_errors));
		json_object_set_new(zone, "failed_at", number((uint64_t)item->fault_at_s));
		add_fault(zone, item->fault ? item->fault : "out of memory");
	}
	zone_store_unlock(c->store);
	if (!item)
		control_fail(error, "not-found", "%s is not a zone of this server",
			     json_string_value(json_object_get(args, "zone")));
	else if (!zone)
		control_fail(error, "no-memory", "there is not enough memory for the answer");
	return zone;
}

/* --- reload --------------------------------------------------------------------------------------------------------- */

/* Some zones were refused: an error, so that no script overlooks it. It quotes the first; `zone status` has the others. */
static void refuse(const struct reload_result *r, struct control_error *error)
{
	const struct reload_fault *f = &r->fault[0];
	char name[NAME_TEXT_MAX_BYTES];
	size_t first_line = f->lines ? strcspn(f->lines, "\n") : 0;
	name_to_text(name, f->zone);
	control_fail(error, "zone-refused",
		     "%llu zone%s refused, the version before stays; %llu loaded, %llu unchanged. %s (%u error%s): %.*s",
		     (unsigned long long)r->failed, r->failed == 1 ? " was" : "s were", (unsigned long long)r->loaded,
		     (unsigned long long)r->unchanged, name, f->errors, f->errors == 1 ? "" : "s", (int)first_line,
		     f->lines ? f->lines : "");
}

static json_t *reload(void *user, const json_t *args, struct control_error *error)
{
	struct control_context *c = user;
	uint8_t name[NAME_MAX_BYTES];
	struct loader_reply reply;
	const json_t *force = json_object_get(args, "force");
	bool is_one = json_object_get(args, "zone");
	json_t *result = NULL;
	if (is_one && !zone_argument(args, name, error))
		return NULL;
	if (force && !json_is_boolean(force)) {
		control_fail(error, "bad-args", "\"force\" must be true or false");
		return NULL;
	}
	if (loader_reload(c->loader, is_one ? name : NULL, json_is_true(force), &reply) != ERR_OK) {
		control_fail(error, "stopping", "the slowpath is ending");
		return NULL;
	}
	if (reply.err == ERR_NOTFOUND && is_one)
		control_fail(error, "not-found", "%s is not a zone of this server",
			     json_string_value(json_object_get(args, "zone")));
	else if (reply.err != ERR_OK)
		control_fail(error, "failed", "%s: %s; what was served before still is", reply.why, err_text(reply.err));
	else if (reply.result.failed)
		refuse(&reply.result, error);
	else
		result = json_pack("{s:o, s:o, s:i, s:o, s:b, s:o}", "loaded", number(reply.result.loaded), "unchanged",
				   number(reply.result.unchanged), "failed", 0, "generation", number(reply.generation), "live",
				   reply.is_live, "duration_us", number(reply.result.duration_ns / 1000));
	reload_result_fini(&reply.result);
	return result;
}

const struct control_verb slowpath_verbs[] = {
	{ "status", status, "this process, its zones and memory", false },
	{ "zone list", zone_list, "every zone with its state", false },
	{ "zone status", zone_status, "one zone: {\"zone\": name}", false },
	{ "reload", reload, "reads changed master files: {\"zone\": name, \"force\": true}, both optional", true },
	{ "cache stats", control_cache_stats, "the answer cache in numbers", false },
	{ "cache lookup", control_cache_lookup, "what is cached of a name: {\"name\": name, \"type\": type}, type optional",
	  true },
	{ "cache flush", control_cache_flush, "forgets a name: {\"name\": name, \"type\": type}, type optional", true },
	{ "cache flush-tree", control_cache_flush_tree, "forgets a name and all below: {\"name\": name}", true },
	{ "cache flush-all", control_cache_flush_all, "forgets everything", false },
	{ "upstream list", control_upstream_list, "forward zones, their servers and what is known of them", false },
	{ "upstream test", control_upstream_test, "asks every server of a zone: {\"zone\": name}, optional", true },
	{ NULL, NULL, NULL, false },
};
