/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/verb_status.h"

#include "tools/skua/client.h"
#include "tools/skua/verbs.h"

#include <stdio.h>

#define FASTPATH_TIMEOUT_MS 1000 /* a hung part must not hide what the supervisor says of it */

static const json_t *find_queue(const json_t *queues, const json_t *like)
{
	size_t i;
	json_t *q;

	json_array_foreach(queues, i, q) {
		if (json_equal(json_object_get(q, "interface"), json_object_get(like, "interface")) &&
		    json_equal(json_object_get(q, "queue"), json_object_get(like, "queue")))
			return q;
	}
	return NULL;
}

/* What the slowpath says of questions under way and of the rings; nothing if it does not answer. */
static void add_resolver(const char *run_dir, json_t *result)
{
	const json_t *part = json_object_get(json_object_get(result, "parts"), "slowpath");
	struct control_error ignored;
	json_t *slowpath;

	if (client_integer(part, "pid") == 0 ||
	    client_ask(run_dir, "slowpath", "status", NULL, FASTPATH_TIMEOUT_MS, &slowpath, &ignored) != VERB_OK)
		return;
	if (json_object_get(slowpath, "resolver"))
		json_object_set(result, "resolver", json_object_get(slowpath, "resolver"));
	json_decref(slowpath);
}

int verb_status_fetch(const char *run_dir, json_t **result, struct control_error *error)
{
	int code = client_ask(run_dir, "run", "status", NULL, CLIENT_TIMEOUT_MS, result, error);
	struct control_error ignored;
	json_t *fastpath = NULL, *queues, *q;
	size_t i;

	if (code != VERB_OK)
		return code;
	queues = json_object_get(*result, "queues");
	if (json_array_size(queues) &&
	    client_ask(run_dir, "fastpath", "status", NULL, FASTPATH_TIMEOUT_MS, &fastpath, &ignored) != VERB_OK)
		fastpath = NULL;
	json_array_foreach(queues, i, q) {
		const json_t *told = find_queue(json_object_get(fastpath, "queues"), q);
		json_t *mode = json_object_get(told, "mode");
		json_object_set_new(q, "mode", json_is_string(mode) ? json_incref(mode) : json_string("?"));
	}
	json_decref(fastpath);
	add_resolver(run_dir, *result);
	return VERB_OK;
}

static void print_parts(const json_t *parts)
{
	char uptime[32];
	const char *name;
	json_t *p;

	printf("%-10s %-9s %8s %8s %9s %7s  %s\n", "part", "state", "pid", "up", "restarts", "threads", "last end");
	json_object_foreach((json_t *)parts, name, p) {
		printf("%-10s %-9s %8lld %8s %9lld %7lld  %s\n", client_text(p, "name"), client_text(p, "state"),
		       client_integer(p, "pid"), client_duration(client_integer(p, "uptime_s"), uptime),
		       client_integer(p, "restarts"), client_integer(p, "threads"), client_text(p, "last_exit"));
	}
}

static void print_drops(const json_t *drops)
{
	const char *name, *between = "";
	json_t *value;
	bool none = true;

	json_object_foreach((json_t *)drops, name, value) {
		if (!json_integer_value(value))
			continue;
		printf("%s%s %lld", between, name, (long long)json_integer_value(value));
		between = ", ";
		none = false;
	}
	printf("%s\n", none ? "none" : "");
}

void verb_status_queues(const json_t *queues)
{
	size_t i;
	json_t *q;

	if (!json_array_size(queues))
		return;
	printf("%-12s %5s %-9s %-9s %4s %12s %12s  %s\n", "interface", "queue", "mode", "state", "cpu", "received", "sent",
	       "drops");
	json_array_foreach(queues, i, q) {
		printf("%-12s %5lld %-9s %-9s %4lld %12lld %12lld  ", client_text(q, "interface"), client_integer(q, "queue"),
		       client_text(q, "mode"), client_text(q, "state"), client_integer(q, "cpu"), client_integer(q, "rx_frames"),
		       client_integer(q, "tx_frames"));
		print_drops(json_object_get(q, "drops"));
	}
}

static void print_resolver(const json_t *s)
{
	const json_t *cache = json_object_get(s, "cache"), *resolver = json_object_get(s, "resolver"),
		     *rings = json_object_get(resolver, "rings");

	if (!resolver)
		return;
	printf("cache: %.2f %% of %lld questions, %lld of them stale; resolver: %lld questions under way\n",
	       100 * json_real_value(json_object_get(cache, "hit_ratio")),
	       client_integer(cache, "hits") + client_integer(cache, "misses"), client_integer(cache, "stale"),
	       client_integer(resolver, "questions") + client_integer(resolver, "inbox"));
	if (rings)
		printf("rings: %lld threads, %lld workers; %lld and %lld octets wait\n", client_integer(rings, "threads"),
		       client_integer(resolver, "workers"), client_integer(rings, "question_bytes_waiting"),
		       client_integer(rings, "answer_bytes_waiting"));
}

static void print_status(const json_t *s)
{
	const json_t *answers = json_object_get(s, "answers");
	char uptime[32];
	size_t i;
	json_t *x;

	printf("skua %s, %s for %s, process %lld\n", client_text(s, "version"), client_text(s, "state"),
	       client_duration(client_integer(s, "uptime_s"), uptime), client_integer(s, "pid"));
	printf("configuration %s, run folder %s\n", client_text(s, "config"), client_text(s, "run"));
	printf("zones %lld, generation %lld\n", client_integer(s, "zones"), client_integer(s, "generation"));
	printf("answers by AF_XDP %lld, UDP %lld, TCP %lld\n", client_integer(answers, "xdp"), client_integer(answers, "udp"),
	       client_integer(answers, "tcp"));
	print_resolver(s);
	putchar('\n');
	print_parts(json_object_get(s, "parts"));
	json_array_foreach(json_object_get(s, "interfaces"), i, x) {
		if (!json_is_true(json_object_get(x, "attached")))
			printf("\n%s: no XDP: %s\n", client_text(x, "name"), client_text(x, "reason"));
	}
	if (json_array_size(json_object_get(s, "queues")))
		putchar('\n');
	verb_status_queues(json_object_get(s, "queues"));
}

int verb_status(const struct verb_call *call)
{
	char run_dir[PATH_MAX];
	struct control_error error;
	json_t *result;
	int code = client_run_dir(call, run_dir);

	if (code != VERB_OK)
		return code;
	if (verb_status_fetch(run_dir, &result, &error) != VERB_OK)
		return client_error(call, &error);
	return client_result(call, result, print_status);
}
