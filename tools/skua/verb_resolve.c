/* SPDX-License-Identifier: Apache-2.0 */
/* cache stats, lookup, flush, flush-tree, flush-all; upstream list, test: asked from the slowpath, who resolves. */
#include "tools/skua/client.h"
#include "tools/skua/verbs.h"

#include <stdio.h>

#define FLUSH_TIMEOUT_MS 60000 /* a tree is looked for in the whole cache */

/* --- cache ------------------------------------------------------------------------------------------------------------ */

static void print_stats(const json_t *s)
{
	long long size = client_integer(s, "size_bytes"),
		  used = client_integer(s, "small_bytes") + client_integer(s, "main_bytes");

	printf("entries %lld, %.1f octets each; %lld of %lld KiB in use\n", client_integer(s, "entries"),
	       json_real_value(json_object_get(s, "bytes_per_entry")), used / 1024, size / 1024);
	printf("stored %lld, of these in place of another %lld; too large %lld, overtaken by a flush %lld\n",
	       client_integer(s, "stores"), client_integer(s, "replaced"), client_integer(s, "too_large"),
	       client_integer(s, "outdated"));
	printf("made room for others: %lld that were fresh, %lld that had expired; kept since they were read %lld\n",
	       client_integer(s, "evicted") + client_integer(s, "no_slot"), client_integer(s, "expired"),
	       client_integer(s, "promoted"));
}

int verb_cache_stats(const struct verb_call *call)
{
	json_t *result;
	int code = client_ask_slowpath(call, "cache stats", NULL, CLIENT_TIMEOUT_MS, &result);

	return code == VERB_OK ? client_result(call, result, print_stats) : code;
}

static void print_records(const json_t *entry, const char *section)
{
	size_t i;
	json_t *record;

	json_array_foreach(json_object_get(entry, section), i, record) {
		printf("  %-10s %s\n", i == 0 ? section : "", json_string_value(record));
	}
}

static void print_entries(const json_t *entries)
{
	char age[32], left[32];
	size_t i;
	json_t *e;

	if (json_array_size(entries) == 0)
		printf("nothing is cached\n");
	json_array_foreach(entries, i, e) {
		long long expires_s = client_integer(e, "expires_in_s");
		const char *type = client_text(e, "type");

		printf("%s %s: %s, %s, %lld octets, asked %s ago, %s%s%s\n", client_text(e, "name"), *type ? type : "(all types)",
		       client_text(e, "rcode"), client_text(e, "state"), client_integer(e, "bytes"),
		       client_duration(client_integer(e, "age_s"), age), expires_s > 0 ? "for another " : "expired ",
		       client_duration(expires_s > 0 ? expires_s : -expires_s, left), expires_s > 0 ? "" : " ago");
		if (json_object_get(e, "extended_error"))
			printf("  extended error %lld\n", client_integer(e, "extended_error"));
		if (json_object_get(e, "failures_in_a_row"))
			printf("  failed %lld times in a row\n", client_integer(e, "failures_in_a_row"));
		if (json_is_true(json_object_get(e, "joined")))
			printf("  its chain goes on elsewhere: put together for each answer\n");
		print_records(e, "answer");
		print_records(e, "authority");
	}
}

/* NAME [TYPE] of the command line. */
static json_t *name_and_type(const struct verb_call *call)
{
	json_t *args = json_object();

	json_object_set_new(args, "name", json_string(call->args[0]));
	if (call->arg_count > 1)
		json_object_set_new(args, "type", json_string(call->args[1]));
	return args;
}

int verb_cache_lookup(const struct verb_call *call)
{
	json_t *result;
	int code = client_ask_slowpath(call, "cache lookup", name_and_type(call), CLIENT_TIMEOUT_MS, &result);

	return code == VERB_OK ? client_result(call, result, print_entries) : code;
}

static void print_flushed(const json_t *result)
{
	if (json_object_get(result, "removed"))
		printf("%lld entries removed; what is being resolved is asked again\n", client_integer(result, "removed"));
	else
		printf("everything is forgotten; what is being resolved is asked again\n");
}

static int flush(const struct verb_call *call, const char *verb, json_t *take_args)
{
	json_t *result;
	int code = client_ask_slowpath(call, verb, take_args, FLUSH_TIMEOUT_MS, &result);

	return code == VERB_OK ? client_result(call, result, print_flushed) : code;
}

int verb_cache_flush(const struct verb_call *call) { return flush(call, "cache flush", name_and_type(call)); }
int verb_cache_flush_tree(const struct verb_call *call) { return flush(call, "cache flush-tree", name_and_type(call)); }
int verb_cache_flush_all(const struct verb_call *call) { return flush(call, "cache flush-all", NULL); }

/* --- upstreams -------------------------------------------------------------------------------------------------------- */

static void print_upstreams(const json_t *zones)
{
	size_t i, k;
	json_t *zone, *u;

	json_array_foreach(zones, i, zone) {
		printf("%s %s%s\n", client_text(zone, "zone"), client_text(zone, "strategy"),
		       json_is_true(json_object_get(zone, "dnssec")) ? ", DNSSEC" : "");
		json_array_foreach(json_object_get(zone, "upstreams"), k, u) {
			printf("  %-40s %-7s usually %.1f ms; queries %lld, replies %lld, failures %lld; EDNS %s, 0x20 %s%s\n",
			       client_text(u, "server"), client_text(u, "state"), json_real_value(json_object_get(u, "usual_ms")),
			       client_integer(u, "queries"), client_integer(u, "replies"), client_integer(u, "failures"),
			       client_text(u, "edns"), client_text(u, "letter_case"),
			       json_is_true(json_object_get(u, "cookie")) ? ", cookies" : "");
		}
	}
}

int verb_upstream_list(const struct verb_call *call)
{
	json_t *result;
	int code = client_ask_slowpath(call, "upstream list", NULL, CLIENT_TIMEOUT_MS, &result);

	return code == VERB_OK ? client_result(call, result, print_upstreams) : code;
}

static bool is_reply(const json_t *test) { return strcmp(client_text(test, "result"), "reply") == 0; }

static void print_tests(const json_t *results)
{
	size_t i;
	json_t *r;

	json_array_foreach(results, i, r) {
		printf("%-24s %-40s %-4s ", client_text(r, "zone"), client_text(r, "server"), client_text(r, "transport"));
		if (is_reply(r))
			printf("%s in %.1f ms\n", client_text(r, "rcode"), json_real_value(json_object_get(r, "usual_ms")));
		else
			printf("FAILED: %s\n", client_text(r, "result"));
	}
}

int verb_upstream_test(const struct verb_call *call)
{
	json_t *args = json_object(), *result;

	if (call->arg_count)
		json_object_set_new(args, "zone", json_string(call->args[0]));
	int code = client_ask_slowpath(call, "upstream test", args, FLUSH_TIMEOUT_MS, &result);
	if (code != VERB_OK)
		return code;
	/* A script must not overlook an upstream that does not answer. */
	bool is_failed = false;
	size_t i;
	json_t *r;
	json_array_foreach(result, i, r) {
		is_failed |= !is_reply(r);
	}
	code = client_result(call, result, print_tests);
	return code == VERB_OK && is_failed ? VERB_FAILED : code;
}
