/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/slowpath/resolve/resolve_world.h"

/* --- what upstreams say ----------------------------------------------------------------------------------------------- */

static uint32_t ttl = 300;
static const char *address = "192.0.2.1";

static void say_address(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	if (type == RR_A)
		reply_add(r, 0, name, "A", ttl, address);
	else
		reply_add(r, 1, "example.", "SOA", 300, REPLY_SOA);
}

static void say_nxdomain(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA | RCODE_NXDOMAIN);
	reply_add(r, 1, "example.", "SOA", 300, REPLY_SOA);
}

static void say_signed(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	reply_add(r, 0, name, "A", ttl, address);
	reply_add(r, 0, name, "RRSIG", ttl, REPLY_SIG("A", "example."));
}

static void say_cname_to_ours(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	reply_add(r, 0, name, "CNAME", 300, "www.ours.test.");
	reply_add(r, 0, "www.ours.test.", "A", 300, "198.51.100.66");
}

static void say_cname_to_ours_briefly(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	reply_add(r, 0, name, "CNAME", 1, "www.ours.test.");
}

static void say_cname_to_loop(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	reply_add(r, 0, name, "CNAME", 300, "loop.ours.test.");
}

static void say_cname_to_back(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_RA);
	reply_add(r, 0, name, "CNAME", 300, "back.ours.test.");
}

static void say_open_chain(struct reply *r, const char *name, uint16_t type)
{
	reply_init(r, name, type, DNS_AA);
	reply_add(r, 0, name, "CNAME", 300, "www.example.");
}

static void say_servfail(struct reply *r, const char *name, uint16_t type) { reply_init(r, name, type, DNS_RA | RCODE_SERVFAIL); }

static void setup(void)
{
	world_defaults();
	world_start(2, 0);
	fake_script("www.example.", say_address, 0);
}

static void sleep_ms(unsigned ms)
{
	snapshot_offline();
	usleep(ms * 1000);
	snapshot_online();
}

/* --- questions -------------------------------------------------------------------------------------------------------- */

Test(resolve, a_miss_is_asked_once_and_a_hit_from_then_on, .init = setup, .fini = world_stop)
{
	struct client c;
	expect("www.example.", RR_A, "NOERROR | www.example. 300 A 192.0.2.1");
	cr_assert_eq(atomic_load(&fake.asked), 1);
	client_ask(&c, "WWW.example.", RR_A);
	cr_assert(c.is_hit);
	client_fini(&c);
	cr_assert_eq(atomic_load(&fake.asked), 1);
	cr_assert_eq(world_counter(C_RESOLVE_QUESTIONS), 1);
}

Test(resolve, identical_questions_go_upstream_once, .init = setup, .fini = world_stop)
{
	static struct client c[1000];
	fake_script("many.example.", say_address, 50);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++)
		client_ask_from(&c[i], "many.example.", RR_A, i & 1, (uint8_t)(i % 10));
	for (unsigned i = 0; i < ARRAY_LEN(c); i++) {
		char *text = client_text(&c[i]);
		cr_assert(strncmp(text, "NOERROR | many.example. 300 A 192.0.2.1 |", 40) == 0, "%s", text);
		free(text);
		client_fini(&c[i]);
	}
	cr_assert_eq(atomic_load(&fake.asked), 1);
	cr_assert_eq(world_counter(C_RESOLVE_JOINED), 999);
}

Test(resolve, do_gets_signatures_from_the_same_entry, .init = setup, .fini = world_stop)
{
	struct client c;
	char *text;
	fake_script("signed.example.", say_signed, 0);
	client_ask_from(&c, "signed.example.", RR_A, true, 0);
	text = client_text(&c);
	cr_assert(strstr(text, "RRSIG"), "%s", text);
	free(text);
	client_fini(&c);
	client_ask_from(&c, "signed.example.", RR_A, false, 0);
	text = client_text(&c);
	cr_assert(c.is_hit && !strstr(text, "RRSIG"), "%s", text);
	free(text);
	client_fini(&c);
}

Test(resolve, nxdomain_answers_what_is_below, .init = setup, .fini = world_stop)
{
	struct client c;
	fake_script("no.example.", say_nxdomain, 0);
	expect("no.example.", RR_A, "NXDOMAIN | | example. 300 SOA");
	client_ask(&c, "very.far.below.no.example.", RR_TXT);
	cr_assert(c.is_hit);
	char *text = client_text(&c);
	cr_assert(strncmp(text, "NXDOMAIN | | example. 300 SOA", 29) == 0, "%s", text);
	free(text);
	client_fini(&c);
}

Test(resolve, ttl_0_is_given_and_not_stored, .init = setup, .fini = world_stop)
{
	ttl = 0;
	for (unsigned i = 1; i <= 3; i++) {
		expect("www.example.", RR_A, "NOERROR | www.example. 0 A 192.0.2.1");
		cr_assert_eq(atomic_load(&fake.asked), i);
	}
}

Test(resolve, other_types_cd_and_names_are_other_questions, .init = setup, .fini = world_stop)
{
	struct client c[3];
	fake_script("www.example.", say_address, 50);
	client_ask(&c[0], "www.example.", RR_A);
	client_ask(&c[1], "www.example.", RR_AAAA);
	client_ask(&c[2], "a.www.example.", RR_A);
	for (unsigned i = 0; i < 3; i++) {
		free(client_text(&c[i]));
		client_fini(&c[i]);
	}
	cr_assert_eq(atomic_load(&fake.asked), 3);
	cr_assert_eq(world_counter(C_RESOLVE_JOINED), 0);
}

/* --- failures --------------------------------------------------------------------------------------------------------- */

Test(resolve, a_failure_is_cached_for_a_second_and_recovers, .init = setup, .fini = world_stop)
{
	struct client c;
	fake_script("bad.example.", NULL, 0);
	client_ask(&c, "bad.example.", RR_A);
	char *text = client_text(&c);
	cr_assert_eq(strncmp(text, "SERVFAIL", 8), 0, "%s", text);
	cr_assert_eq(client_ede(&c), EDE_NO_REACHABLE_AUTHORITY);
	free(text);
	client_fini(&c);
	client_ask(&c, "bad.example.", RR_A);
	cr_assert(c.is_hit);
	cr_assert_eq(client_ede(&c), EDE_CACHED_ERROR);
	client_fini(&c);
	cr_assert_eq(atomic_load(&fake.asked), 1);
	fake_script("bad.example.", say_address, 0);
	sleep_ms(2100);
	expect("bad.example.", RR_A, "NOERROR | bad.example. 300 A 192.0.2.1");
}

Test(resolve, failures_in_a_row_back_off, .init = setup, .fini = world_stop)
{
	struct cache_hit hit;
	uint8_t name[NAME_MAX_BYTES];
	uint64_t *scratch = calloc(CACHE_SCRATCH_WORDS, 8);
	size_t bytes = reply_name(name, "bad.example.");
	struct cache_key key = {
		.name = name, .hash = cache_hash(world.reader, name_hash(name, bytes)), .type = RR_A, .name_bytes = (uint8_t)bytes
	};
	fake_script("bad.example.", say_servfail, 0);
	for (unsigned i = 1; i <= 2; i++) {
		expect("bad.example.", RR_A, "SERVFAIL");
		cr_assert_eq(cache_read(world.reader, &key, clock_mono_s(), scratch, &hit), CACHE_HIT);
		cr_assert_eq(hit.entry->backoff, i);
		cr_assert_eq(hit.entry->expire_s - hit.entry->stored_s, i);
		sleep_ms(i == 1 ? 2100 : 0);
	}
	cr_assert_eq(world_counter(C_RESOLVE_USELESS), 2);
	free(scratch);
}

Test(resolve, a_question_that_takes_too_long_fails_in_time, .init = setup, .fini = world_stop)
{
	struct client c;
	atomic_store(&fake.is_held, true);
	client_ask(&c, "www.example.", RR_A);
	char *text = client_text(&c);
	cr_assert_eq(strncmp(text, "SERVFAIL", 8), 0, "%s", text);
	cr_assert_geq(c.ended_ns - c.began_ns, 1900000000u);
	free(text);
	client_fini(&c);
}

Test(resolve, our_own_queries_get_no_answer, .init = setup, .fini = world_stop)
{
	struct client c;
	atomic_store(&fake.is_loop, true);
	client_ask(&c, "www.example.", RR_A);
	cr_assert(client_wait_ms(&c, WORLD_PATIENCE_MS));
	cr_assert_null(c.message);
	cr_assert_eq(world_counter(C_RESOLVE_LOOPS), 1);
	client_fini(&c);
}

/* --- stale ------------------------------------------------------------------------------------------------------------ */

Test(resolve, stale_data_is_served_when_the_upstream_fails_and_replaced_when_it_is_back, .init = setup, .fini = world_stop)
{
	struct client c;
	ttl = 1;
	expect("www.example.", RR_A, "NOERROR | www.example. 1 A 192.0.2.1");
	fake_script("www.example.", NULL, 0);
	sleep_ms(2100);
	client_ask(&c, "www.example.", RR_A);
	char *text = client_text(&c);
	cr_assert(strncmp(text, "NOERROR | www.example. 30 A 192.0.2.1", 37) == 0, "%s", text);
	cr_assert_eq(client_ede(&c), EDE_STALE);
	free(text);
	client_fini(&c);
	client_ask(&c, "www.example.", RR_A);
	cr_assert(c.is_hit, "stored for the stale TTL");
	cr_assert_eq(client_ede(&c), EDE_STALE);
	client_fini(&c);
	cr_assert_eq(atomic_load(&fake.asked), 2);
	cr_assert_eq(world_counter(C_RESOLVE_STALE), 1);
}

Test(resolve, the_client_timer_gives_stale_data_while_the_question_goes_on, .init = setup, .fini = world_stop)
{
	struct client c;
	ttl = 1;
	expect("www.example.", RR_A, "NOERROR | www.example. 1 A 192.0.2.1");
	address = "192.0.2.2";
	ttl = 300;
	fake_script("www.example.", say_address, 600);
	sleep_ms(2100);
	client_ask(&c, "www.example.", RR_A);
	char *text = client_text(&c);
	cr_assert(strncmp(text, "NOERROR | www.example. 30 A 192.0.2.1", 37) == 0, "%s", text);
	cr_assert_eq(client_ede(&c), EDE_STALE);
	cr_assert(c.ended_ns - c.began_ns >= 100000000 && c.ended_ns - c.began_ns < 550000000);
	free(text);
	client_fini(&c);
	client_ask(&c, "www.example.", RR_A); /* past the timer already: at once */
	free(client_text(&c));
	cr_assert_lt(c.ended_ns - c.began_ns, 90000000);
	cr_assert_eq(client_ede(&c), EDE_STALE);
	client_fini(&c);
	sleep_ms(700);
	cr_assert_eq(atomic_load(&fake.asked), 2);
	client_ask(&c, "www.example.", RR_A);
	cr_assert(c.is_hit);
	text = client_text(&c);
	cr_assert(strstr(text, "192.0.2.2"), "%s", text);
	free(text);
	client_fini(&c);
}

Test(resolve, beyond_its_time_stale_data_is_not_served, .init = setup, .fini = world_stop)
{
	resolve_stop(world.resolve);
	world.config.cache.stale_for_s = 0;
	struct resolve_config rc = { .config = &world.config,
				     .workers = 2,
				     .snapshots = &world.holder,
				     .cache = world.writer,
				     .cache_reader = world.reader,
				     .counters = world.counters,
				     .first_block = 1,
				     .worker_wake = world.wake };
	cr_assert_eq(resolve_start(&world.resolve, &rc), ERR_OK);
	ttl = 1;
	expect("www.example.", RR_A, "NOERROR | www.example. 1 A 192.0.2.1");
	fake_script("www.example.", NULL, 0);
	sleep_ms(2100);
	expect("www.example.", RR_A, "SERVFAIL");
}

/* --- refreshes -------------------------------------------------------------------------------------------------------- */

Test(resolve, a_refresh_asks_once_in_the_last_tenth_only, .init = setup, .fini = world_stop)
{
	uint8_t name[NAME_MAX_BYTES];
	struct answer_query q = { .qtype = RR_A };
	size_t bytes = reply_name(name, "www.example.");
	ttl = 20;
	expect("www.example.", RR_A, "NOERROR | www.example. 20 A 192.0.2.1");
	memcpy(q.lower, name, bytes);
	q.name_bytes = (uint8_t)bytes;
	q.cache_hash = cache_hash(world.reader, name_hash(name, bytes));
	resolve_refresh(world.resolve, &q);
	sleep_ms(100);
	cr_assert_eq(atomic_load(&fake.asked), 1, "too early");
	/* An entry that is about to end, put there as if it had come long ago. */
	struct cache_hit hit;
	uint64_t *scratch = calloc(CACHE_SCRATCH_WORDS, 8);
	struct cache_key key = { .name = name, .hash = q.cache_hash, .type = RR_A, .name_bytes = (uint8_t)bytes };
	cr_assert_eq(cache_read(world.reader, &key, clock_mono_s(), scratch, &hit), CACHE_HIT);
	struct cache_entry *e = (struct cache_entry *)scratch;
	e->stored_s -= 19;
	e->expire_s -= 18;
	cr_assert_eq(cache_store(world.writer, e), ERR_OK); /* its worker is idle */
	q.qtype = RR_A;
	q.flags = 0;
	sleep_ms(8100); /* beyond the pause of resolve_refresh, and the entry's time */
	e->stored_s = clock_mono_s() - 19;
	e->expire_s = clock_mono_s() + 2;
	cr_assert_eq(cache_store(world.writer, e), ERR_OK);
	for (unsigned i = 0; i < 1000; i++)
		resolve_refresh(world.resolve, &q);
	sleep_ms(100);
	cr_assert_eq(atomic_load(&fake.asked), 2);
	cr_assert_eq(world_counter(C_RESOLVE_REFRESHED), 1);
	cr_assert_eq(cache_read(world.reader, &key, clock_mono_s(), scratch, &hit), CACHE_HIT);
	cr_assert_geq(hit.entry->expire_s, clock_mono_s() + 18);
	free(scratch);
}

/* --- flush and changes ------------------------------------------------------------------------------------------------ */

static void flush_name(const char *text, uint16_t type, uint64_t expected)
{
	uint8_t name[NAME_MAX_BYTES];
	uint64_t removed;
	size_t bytes = reply_name(name, text);
	snapshot_offline();
	cr_assert_eq(resolve_flush_name(world.resolve, name, bytes, type, &removed), ERR_OK);
	snapshot_online();
	cr_assert_eq(removed, expected, "%llu", (unsigned long long)removed);
}

Test(resolve, flushes_reach_what_they_name, .init = setup, .fini = world_stop)
{
	uint8_t name[NAME_MAX_BYTES];
	uint64_t removed;
	static const char *const names[] = { "www.example.", "a.www.example.", "b.a.www.example." };
	for (unsigned i = 0; i < 3; i++)
		expect(names[i], RR_A, "NOERROR");
	cr_assert_eq(atomic_load(&fake.asked), 3);
	flush_name("www.example.", RR_AAAA, 0);
	flush_name("www.example.", RR_A, 1);
	expect("www.example.", RR_A, "NOERROR");
	cr_assert_eq(atomic_load(&fake.asked), 4);
	size_t bytes = reply_name(name, "a.www.example.");
	snapshot_offline();
	cr_assert_eq(resolve_flush_tree(world.resolve, name, bytes, &removed), ERR_OK);
	snapshot_online();
	cr_assert_eq(removed, 2);
	expect("www.example.", RR_A, "NOERROR");
	cr_assert_eq(atomic_load(&fake.asked), 4);
	expect("b.a.www.example.", RR_A, "NOERROR");
	cr_assert_eq(atomic_load(&fake.asked), 5);
	resolve_flush_all(world.resolve);
	expect("www.example.", RR_A, "NOERROR");
	cr_assert_eq(atomic_load(&fake.asked), 6);
}

Test(resolve, a_flush_reaches_an_nxdomain_above, .init = setup, .fini = world_stop)
{
	fake_script("no.example.", say_nxdomain, 0);
	expect("no.example.", RR_A, "NXDOMAIN");
	fake_script("no.example.", say_address, 0);
	flush_name("www.no.example.", 0, 0);
	expect("www.no.example.", RR_A, "NOERROR");
}

Test(resolve, a_flush_catches_what_is_under_way, .init = setup, .fini = world_stop)
{
	struct client c;
	for (unsigned kind = 0; kind < 3; kind++) {
		uint8_t name[NAME_MAX_BYTES];
		uint64_t removed;
		unsigned before = atomic_load(&fake.asked);
		address = "192.0.2.1";
		atomic_store(&fake.is_held, true);
		client_ask(&c, "www.example.", RR_A);
		cr_assert_eq(c.verdict, ANSWER_MISS);
		sleep_ms(50);
		size_t bytes = reply_name(name, "www.example.");
		snapshot_offline();
		if (kind == 0)
			cr_assert_eq(resolve_flush_name(world.resolve, name, bytes, 0, &removed), ERR_OK);
		else if (kind == 1)
			cr_assert_eq(resolve_flush_tree(world.resolve, (const uint8_t *)"\7example", 9, &removed), ERR_OK);
		else
			resolve_flush_all(world.resolve);
		snapshot_online();
		sleep_ms(50);
		address = "192.0.2.2";
		atomic_store(&fake.is_held, false);
		char *text = client_text(&c);
		cr_assert(strstr(text, "192.0.2.2"), "%s", text);
		cr_assert_eq(atomic_load(&fake.asked), before + 2, "asked again");
		free(text);
		client_fini(&c);
		flush_name("www.example.", 0, 1);
	}
	cr_assert_eq(world_counter(C_RESOLVE_RESTARTED), 3);
}

Test(resolve, a_new_zone_answers_those_who_wait, .init = setup, .fini = world_stop)
{
	struct client c;
	static const struct zones_text zone = {
		"example.", "@ 60 SOA ns hm 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.9\nwww 60 A 192.0.2.77\n"
	};
	atomic_store(&fake.is_held, true);
	client_ask(&c, "www.example.", RR_A);
	cr_assert_eq(c.verdict, ANSWER_MISS);
	sleep_ms(50);
	world_publish(&zone, 1);
	resolve_zones_changed(world.resolve);
	char *text = client_text(&c);
	cr_assert(strncmp(text, "NOERROR aa | www.example. 60 A 192.0.2.77", 41) == 0, "%s", text);
	free(text);
	client_fini(&c);
	atomic_store(&fake.is_held, false);
}

/* --- what is told ------------------------------------------------------------------------------------------------------- */

Test(resolve, the_cache_can_be_looked_into, .init = setup, .fini = world_stop)
{
	uint8_t name[NAME_MAX_BYTES];
	fake_script("no.example.", say_nxdomain, 0);
	fake_script("bad.example.", NULL, 0);
	expect("www.example.", RR_A, "NOERROR");
	expect("www.example.", RR_AAAA, "NOERROR");
	expect("no.example.", RR_A, "NXDOMAIN");
	expect("bad.example.", RR_A, "SERVFAIL");
	static const struct {
		const char *name;
		uint16_t type;
		unsigned count;
		const char *state, *rcode, *record;
	} cases[] = { { "www.example.", 0, 2, "fresh", "NOERROR", "www.example. 300 A 192.0.2.1" },
		      { "www.example.", RR_AAAA, 1, "fresh", "NOERROR", NULL },
		      { "www.example.", RR_TXT, 0, NULL, NULL, NULL },
		      { "no.example.", 0, 1, "fresh", "NXDOMAIN", NULL },
		      { "below.no.example.", RR_A, 1, "fresh", "NXDOMAIN", NULL },
		      { "bad.example.", 0, 1, "failure", "SERVFAIL", NULL } };
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		size_t bytes = reply_name(name, cases[i].name);
		json_t *entries = resolve_cache_lookup(world.resolve, name, bytes, cases[i].type),
		       *e = json_array_get(entries, 0);
		cr_assert_eq(json_array_size(entries), cases[i].count, "%s: %zu", cases[i].name, json_array_size(entries));
		if (e) {
			cr_assert_str_eq(json_string_value(json_object_get(e, "state")), cases[i].state);
			cr_assert_str_eq(json_string_value(json_object_get(e, "rcode")), cases[i].rcode);
		}
		if (cases[i].record)
			cr_assert_str_eq(json_string_value(json_array_get(json_object_get(e, "answer"), 0)), cases[i].record);
		json_decref(entries);
	}
	json_t *stats = resolve_cache_stats(world.resolve), *status = resolve_status(world.resolve);
	cr_assert_eq(json_integer_value(json_object_get(stats, "entries")), 4);
	cr_assert_eq(json_integer_value(json_object_get(status, "workers")), 2);
	json_decref(stats);
	json_decref(status);
}

/* --- chains ----------------------------------------------------------------------------------------------------------- */

static const struct zones_text ours = { "ours.test.",
					"@ 60 SOA ns hm 1 2 3 4 5\n@ 60 NS ns\nns 60 A 198.51.100.9\nwww 60 A 198.51.100.1\n"
					"back 60 CNAME www\n" };

Test(resolve, a_chain_into_our_zone_is_joined_with_what_the_zone_says, .init = setup, .fini = world_stop)
{
	static const struct zones_text changed = { "ours.test.", "@ 60 SOA ns hm 2 2 3 4 5\n@ 60 NS ns\nns 60 A 198.51.100.9\n"
								 "www 60 A 198.51.100.2\n" };
	world_publish(&ours, 1);
	fake_script("in.example.", say_cname_to_ours, 0);
	fake_script("back.example.", say_cname_to_back, 0);
	expect("in.example.", RR_A, "NOERROR | in.example. 300 CNAME www.ours.test.; www.ours.test. 60 A 198.51.100.1 |");
	cr_assert_eq(atomic_load(&fake.asked), 1);
	world_publish(&changed, 1); /* its content only: nothing needs to be told */
	expect("in.example.", RR_A, "NOERROR | in.example. 300 CNAME www.ours.test.; www.ours.test. 60 A 198.51.100.2 |");
	cr_assert_eq(atomic_load(&fake.asked), 1, "the chain itself is cached");
	world_publish(&ours, 1);
	expect("back.example.", RR_A,
	       "NOERROR | back.example. 300 CNAME back.ours.test.; back.ours.test. 60 CNAME www.ours.test.; "
	       "www.ours.test. 60 A 198.51.100.1 |");
	expect("in.example.", RR_TXT, "NOERROR | in.example. 300 CNAME www.ours.test. | ours.test. 5 SOA");
	cr_assert_eq(world_counter(C_RESOLVE_CHAINS), 4);
}

Test(resolve, a_chain_that_the_upstream_did_not_follow_is_followed, .init = setup, .fini = world_stop)
{
	fake_script("open.test.", say_open_chain, 0);
	for (unsigned i = 0; i < 2; i++) {
		expect("open.test.", RR_A, "NOERROR | open.test. 300 CNAME www.example.; www.example. 300 A 192.0.2.1 |");
		cr_assert_eq(atomic_load(&fake.asked), 2, "both parts are cached");
	}
}

Test(resolve, a_chain_from_our_zone_goes_on_outside_and_back, .init = setup, .fini = world_stop)
{
	static const struct zones_text zone = {
		"ours.test.", "@ 60 SOA ns hm 1 2 3 4 5\n@ 60 NS ns\nns 60 A 198.51.100.9\nwww 60 A 198.51.100.1\n"
			      "out 60 CNAME www.example.\nround 60 CNAME in.example.\n"
			      "loop 60 CNAME loop.example.\n$ORIGIN d.ours.test.\n@ 60 DNAME www.example.\n"
	};
	world_publish(&zone, 1);
	fake_script("in.example.", say_cname_to_ours, 0);
	fake_script("loop.example.", say_cname_to_loop, 0);
	expect("out.ours.test.", RR_A, "NOERROR aa | out.ours.test. 60 CNAME www.example.; www.example. 300 A 192.0.2.1 |");
	cr_assert_eq(atomic_load(&fake.asked), 1);
	expect("out.ours.test.", RR_A, "NOERROR aa | out.ours.test. 60 CNAME www.example.; www.example. 300 A 192.0.2.1 |");
	cr_assert_eq(atomic_load(&fake.asked), 1, "the rest is cached");
	expect("round.ours.test.", RR_A,
	       "NOERROR aa | round.ours.test. 60 CNAME in.example.; in.example. 300 CNAME www.ours.test.; "
	       "www.ours.test. 60 A 198.51.100.1 |");
	expect("x.d.ours.test.", RR_A,
	       "NOERROR aa | d.ours.test. 60 DNAME www.example.; x.d.ours.test. 60 CNAME x.www.example.; "
	       "x.www.example. 300 A 192.0.2.1 |");
	unsigned before = atomic_load(&fake.asked);
	expect("loop.ours.test.", RR_A,
	       "NOERROR aa | loop.ours.test. 60 CNAME loop.example.; loop.example. 300 CNAME loop.ours.test. |");
	cr_assert_leq(atomic_load(&fake.asked), before + 1, "a loop ends");
	/* Who waits for the same goes upstream once. */
	struct client c[50];
	fake_script("www.example.", say_address, 100);
	flush_name("www.example.", 0, 1);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++)
		client_ask(&c[i], "out.ours.test.", RR_A);
	before = atomic_load(&fake.asked);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++) {
		char *text = client_text(&c[i]);
		cr_assert(strstr(text, "192.0.2.1"), "%s", text);
		free(text);
		client_fini(&c[i]);
	}
	cr_assert_leq(atomic_load(&fake.asked), before + 1);
}

static void say_many(struct reply *r, const char *name, uint16_t type)
{
	uint8_t data[4] = { 192, 0, 0, 0 };
	reply_init(r, name, type, DNS_RA);
	for (unsigned i = 0; i < 2000; i++) {
		store_be16(data + 2, (uint16_t)i);
		reply_add_wire(r, 0, name, RR_A, RR_CLASS_IN, 300, data, 4);
	}
}

Test(resolve, large_answers_are_given_whole_and_joined_too, .init = setup, .fini = world_stop)
{
	struct client c;
	fake_script("www.example.", say_many, 0);
	fake_script("open.test.", say_open_chain, 0);
	static const char *const names[] = { "www.example.", "open.test." };
	for (unsigned i = 0; i < 2; i++) {
		client_ask(&c, names[i], RR_A);
		free(client_text(&c));
		cr_assert_eq(dns_ancount(c.message), 2000 + i);
		client_fini(&c);
	}
}

Test(resolve, a_chain_is_served_stale_too, .init = setup, .fini = world_stop)
{
	world_publish(&ours, 1);
	ttl = 1;
	fake_script("in.example.", say_cname_to_ours_briefly, 0);
	expect("in.example.", RR_A, "NOERROR | in.example. 1 CNAME www.ours.test.; www.ours.test. 60 A 198.51.100.1 |");
	fake_script("in.example.", NULL, 0);
	sleep_ms(2100);
	expect("in.example.", RR_A, "NOERROR | in.example. 30 CNAME www.ours.test.; www.ours.test. 60 A 198.51.100.1 |");
}

Test(resolve, a_chain_whose_rest_fails_fails, .init = setup, .fini = world_stop)
{
	fake_script("www.example.", NULL, 0);
	fake_script("open.test.", say_open_chain, 0);
	expect("open.test.", RR_A, "SERVFAIL");
}

/* --- bounds ----------------------------------------------------------------------------------------------------------- */

Test(resolve, one_prefix_may_have_so_many_questions_under_way, .init = setup, .fini = world_stop)
{
	static struct client c[2100], other;
	unsigned refused = 0;
	atomic_store(&fake.is_held, true);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++)
		client_ask_from(&c[i], "www.example.", RR_A, false, 1);
	client_ask_from(&other, "www.example.", RR_A, false, 2);
	sleep_ms(200);
	atomic_store(&fake.is_held, false);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++) {
		char *text = client_text(&c[i]);
		refused += *text == 0;
		free(text);
		client_fini(&c[i]);
	}
	cr_assert_eq(refused, 100, "%u", refused);
	cr_assert_eq(world_counter(C_RESOLVE_LIMIT_CLIENT), 100);
	char *text = client_text(&other);
	cr_assert_eq(strncmp(text, "NOERROR", 7), 0);
	free(text);
	client_fini(&other);
}

Test(resolve, stopping_ends_what_is_under_way, .init = setup)
{
	static struct client c[100];
	char name[32];
	atomic_store(&fake.is_held, true);
	for (unsigned i = 0; i < ARRAY_LEN(c); i++) {
		snprintf(name, sizeof(name), "n%u.www.example.", i);
		client_ask(&c[i], name, RR_A);
	}
	world_stop();
	for (unsigned i = 0; i < ARRAY_LEN(c); i++) {
		cr_assert_eq(sem_trywait(&c[i].done), 0);
		cr_assert_null(c[i].message);
		client_fini(&c[i]);
	}
}
