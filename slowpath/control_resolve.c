/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/control_resolve.h"
#include "base/printable.h"
#include "dns/rr_type.h"

#define TEST_TIMEOUT_MS 3000 /* for each answer of an upstream that is tested */

static json_t *number(uint64_t n) { return json_integer((json_int_t)n); }

/* NULL with *error filled: there is no recursion. */
static struct resolve *resolver(void *user, struct control_error *error)
{
	struct control_context *c = user;
	struct resolve *resolve = c->resolve ? atomic_load(c->resolve) : NULL;
	if (!resolve)
		control_fail(error, "no-recursion",
			     "nothing is resolved here: no forward zone is configured, or the resolver could "
			     "not start (see the log)");
	return resolve;
}

static json_t *check(json_t *result, struct control_error *error)
{
	if (!result)
		control_fail(error, "no-memory", "there is not enough memory for the answer");
	return result;
}

/* The lower-cased wire name of args.name, or args.<key>; its octets, 0 with *error filled. */
static size_t name_argument(const json_t *args, const char *key, uint8_t lower[static NAME_MAX_BYTES],
			    struct control_error *error)
{
	static const uint8_t root[1] = { 0 };
	const json_t *name = json_object_get(args, key);
	const char *why = NULL;
	char shown[128];
	if (!json_is_string(name)) {
		control_fail(error, "bad-args", "\"%s\" must be a string", key);
		return 0;
	}
	size_t bytes = name_from_text(lower, json_string_value(name), json_string_length(name), root, &why);
	if (bytes == 0) {
		printable_copy(shown, sizeof(shown), json_string_value(name), json_string_length(name));
		control_fail(error, "bad-args", "\"%s\" is not a domain name: %s", shown, why);
		return 0;
	}
	name_lower(lower, lower, bytes);
	return bytes;
}

/* args.type into *type, 0 if there is none. False with *error filled. */
static bool type_argument(const json_t *args, uint16_t *type, struct control_error *error)
{
	const json_t *text = json_object_get(args, "type");
	char shown[64] = "";
	*type = 0;
	if (!text)
		return true;
	if (json_is_string(text) && rr_type_from_text(json_string_value(text), json_string_length(text), type) && *type != 0)
		return true;
	if (json_is_string(text))
		printable_copy(shown, sizeof(shown), json_string_value(text), json_string_length(text));
	control_fail(error, "bad-args", "\"%s\" is not a record type", shown);
	return false;
}

/* --- cache ------------------------------------------------------------------------------------------------------------ */

json_t *control_cache_stats(void *user, const json_t *args, struct control_error *error)
{
	struct resolve *r = resolver(user, error);
	(void)args;
	return r ? check(resolve_cache_stats(r), error) : NULL;
}

json_t *control_cache_lookup(void *user, const json_t *args, struct control_error *error)
{
	uint8_t lower[NAME_MAX_BYTES];
	uint16_t type;
	struct resolve *r = resolver(user, error);
	size_t bytes = r ? name_argument(args, "name", lower, error) : 0;
	if (bytes == 0 || !type_argument(args, &type, error))
		return NULL;
	return check(resolve_cache_lookup(r, lower, bytes, type), error);
}

static json_t *flushed(enum err err, uint64_t removed, struct control_error *error)
{
	return check(err == ERR_OK ? json_pack("{s:o}", "removed", number(removed)) : NULL, error);
}

json_t *control_cache_flush(void *user, const json_t *args, struct control_error *error)
{
	uint8_t lower[NAME_MAX_BYTES];
	uint16_t type;
	uint64_t removed = 0;
	struct resolve *r = resolver(user, error);
	size_t bytes = r ? name_argument(args, "name", lower, error) : 0;
	if (bytes == 0 || !type_argument(args, &type, error))
		return NULL;
	return flushed(resolve_flush_name(r, lower, bytes, type, &removed), removed, error);
}

json_t *control_cache_flush_tree(void *user, const json_t *args, struct control_error *error)
{
	uint8_t lower[NAME_MAX_BYTES];
	uint64_t removed = 0;
	struct resolve *r = resolver(user, error);
	size_t bytes = r ? name_argument(args, "name", lower, error) : 0;
	return bytes ? flushed(resolve_flush_tree(r, lower, bytes, &removed), removed, error) : NULL;
}

json_t *control_cache_flush_all(void *user, const json_t *args, struct control_error *error)
{
	struct resolve *r = resolver(user, error);
	(void)args;
	if (!r)
		return NULL;
	resolve_flush_all(r);
	return check(json_object(), error);
}

/* --- upstreams -------------------------------------------------------------------------------------------------------- */

json_t *control_upstream_list(void *user, const json_t *args, struct control_error *error)
{
	struct resolve *r = resolver(user, error);
	(void)args;
	return r ? check(resolve_upstream_list(r), error) : NULL;
}

json_t *control_upstream_test(void *user, const json_t *args, struct control_error *error)
{
	uint8_t lower[NAME_MAX_BYTES];
	struct resolve *r = resolver(user, error);
	bool is_one = json_object_get(args, "zone");
	size_t bytes = r && is_one ? name_argument(args, "zone", lower, error) : 0;
	if (!r || (is_one && bytes == 0))
		return NULL;
	json_t *results = check(resolve_upstream_test(r, is_one ? lower : NULL, bytes, TEST_TIMEOUT_MS), error);
	if (!results || json_array_size(results) > 0)
		return results;
	json_decref(results);
	control_fail(error, "not-found", "no such forward zone; `skua upstream list` shows them");
	return NULL;
}
