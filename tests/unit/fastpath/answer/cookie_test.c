/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of RFC 9018 appendix A, and the limits of section 4.3. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "answer/cookie.h"
#include "base/bytes.h"

static struct counter_block counters;

static void from_hex(uint8_t *out, const char *hex)
{
	for (; *hex; hex += 2, out++)
		cr_assert_eq(sscanf(hex, "%2hhx", out), 1);
}

/* clang-format off */
struct example { const char *sentence, *secret[2], *address, *cookie, *expected; uint32_t now_s; uint8_t state; };

static const struct example examples[] = {
	{ "A.1: a new cookie", { "e5e973e5a6b2a43f48e7dc849e37bfcf", NULL }, "c6336464", "2464c4abcf10c957",
	  "2464c4abcf10c957010000005cf79f111f8130c3eee29480", 0x5cf79f11, COOKIE_CLIENT_ONLY },
	{ "A.2: renewed when it is old", { "e5e973e5a6b2a43f48e7dc849e37bfcf", NULL }, "c6336464", "2464c4abcf10c957010000005cf79f111f8130c3eee29480",
	  "2464c4abcf10c957010000005cf7a871d4a564a1442aca77", 0x5cf7a871, COOKIE_VALID },
	{ "A.3: reserved octets are part of the hash, and zero in what we send", { "e5e973e5a6b2a43f48e7dc849e37bfcf", NULL }, "cb0071cb",
	  "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5", "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e", 0x5cf7a9ac, COOKIE_INVALID },
	{ "A.4: IPv6 and a rolled secret", { "445536bcd2513298075a5d379663c962", "dd3bdf9344b678b185a6f5cb60fca715" },
	  "20010db8022000015 9ded0f4876982b8", "22681ab97d52c298010000005cf7c57926556bd0934c72f8", "22681ab97d52c298010000005cf7c609a6bb79d16625507a",
	  0x5cf7c609, COOKIE_VALID },
};
/* clang-format on */

static void set_up(const struct example *e, struct settings *settings, struct answer_query *q)
{
	char address[40] = "";

	for (const char *p = e->address; *p; p++)
		if (*p != ' ')
			strncat(address, p, 1);
	settings_defaults(settings);
	memset(q, 0, sizeof *q);
	settings->cookie_secret_count = e->secret[1] ? 2 : 1;
	for (unsigned i = 0; i < settings->cookie_secret_count; i++)
		from_hex(settings->cookie_secret[i], e->secret[i]);
	q->client.family = strlen(address) == 8 ? 4 : 6;
	from_hex(q->client.address, address);
	from_hex(q->cookie, e->cookie);
	q->cookie_state = strlen(e->cookie) == 16 ? COOKIE_CLIENT_ONLY : COOKIE_SERVER_GIVEN;
}

Test(cookie, rfc_9018_examples)
{
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		const struct example *e = &examples[i];
		struct answer_thread t = { .counters = &counters, .wall_s = e->now_s };
		struct settings settings;
		struct answer_query q;
		uint8_t expected[24];

		set_up(e, &settings, &q);
		from_hex(expected, e->expected);
		cookie_verify(&settings, &t, &q);
		cr_expect_eq(q.cookie_state, e->state, "%s: state %u", e->sentence, q.cookie_state);
		cookie_renew(&settings, e->now_s, &q);
		cr_expect_arr_eq(q.cookie, expected, 24, "%s", e->sentence);
	}
}

static uint8_t state_after(int32_t seconds, int flip_bit, bool other_address)
{
	const struct example *e = &examples[0];
	struct answer_thread t = { .counters = &counters, .wall_s = e->now_s };
	struct settings settings;
	struct answer_query q;

	set_up(e, &settings, &q);
	cookie_renew(&settings, e->now_s, &q);
	q.cookie_state = COOKIE_SERVER_GIVEN;
	if (flip_bit >= 0)
		q.cookie[flip_bit / 8] ^= (uint8_t)(1u << (flip_bit % 8));
	if (other_address)
		q.client.address[3] ^= 1;
	t.wall_s += seconds;
	cookie_verify(&settings, &t, &q);
	return q.cookie_state;
}

Test(cookie, age_limits)
{
	cr_expect_eq(state_after(0, -1, false), COOKIE_VALID);
	cr_expect_eq(state_after(COOKIE_MAX_AGE_S, -1, false), COOKIE_VALID);
	cr_expect_eq(state_after(COOKIE_MAX_AGE_S + 1, -1, false), COOKIE_INVALID);
	cr_expect_eq(state_after(-COOKIE_MAX_AHEAD_S, -1, false), COOKIE_VALID);
	cr_expect_eq(state_after(-COOKIE_MAX_AHEAD_S - 1, -1, false), COOKIE_INVALID);
}

Test(cookie, any_changed_bit_or_address_makes_it_invalid)
{
	for (int bit = 0; bit < 24 * 8; bit++)
		cr_expect_eq(state_after(0, bit, false), COOKIE_INVALID, "bit %d", bit);
	cr_expect_eq(state_after(0, -1, true), COOKIE_INVALID);
}

Test(cookie, young_valid_cookie_is_returned_as_it_came)
{
	const struct example *e = &examples[0];
	struct answer_thread t = { .counters = &counters, .wall_s = e->now_s + COOKIE_RENEW_AGE_S - 1 };
	struct settings settings;
	struct answer_query q;
	uint8_t before[24];

	set_up(e, &settings, &q);
	cookie_renew(&settings, e->now_s, &q);
	memcpy(before, q.cookie, sizeof before);
	q.cookie_state = COOKIE_SERVER_GIVEN;
	cookie_verify(&settings, &t, &q);
	cookie_renew(&settings, t.wall_s, &q);
	cr_expect_arr_eq(q.cookie, before, sizeof before);
}

Test(cookie, siphash_reference)
{
	/* The test vectors of SipHash's authors: key 00..0f, message 00..n-1. */
	uint8_t key[16], message[15];

	for (unsigned i = 0; i < 16; i++)
		key[i] = (uint8_t)i;
	for (unsigned i = 0; i < 15; i++)
		message[i] = (uint8_t)i;
	cr_expect_eq(cookie_siphash(key, message, 0), 0x726fdb47dd0e0e31u);
	cr_expect_eq(cookie_siphash(key, message, 15), 0xa129ca6149be45e5u);
}
