/* SPDX-License-Identifier: Apache-2.0 */
#include "table/settings.h"

#include <criterion/criterion.h>

Test(settings, the_defaults_load)
{
	struct settings s, copy;
	const char *why = NULL;
	settings_defaults(&s);
	cr_expect_eq(s.udp_payload_bytes, 1232);
	cr_expect_eq(s.flags & SETTINGS_F_COOKIES, 0, "no secret, no cookies");
	cr_expect_eq(s.cookie_secret_count, 0);
	cr_assert_eq(settings_load(&copy, &s, sizeof(s), &why), ERR_OK);
	cr_expect_eq(memcmp(&copy, &s, sizeof(s)), 0);
}

Test(settings, longer_memory_is_fine_as_a_memfd_has_whole_pages)
{
	static struct {
		struct settings s;
		char rest[100];
	} m;
	struct settings copy;
	const char *why;
	settings_defaults(&m.s);
	cr_expect_eq(settings_load(&copy, &m, sizeof(m), &why), ERR_OK);
}

static void nothing(struct settings *s) { (void)s; }
static void bad_magic(struct settings *s) { s->magic ^= 1; }
static void bad_version(struct settings *s) { s->version++; }
static void bad_size(struct settings *s) { s->size_bytes--; }
static void small_payload(struct settings *s) { s->udp_payload_bytes = 511; }
static void large_payload(struct settings *s) { s->udp_payload_bytes = 4097; }
static void strange_flag(struct settings *s) { s->flags |= 0x8000; }
static void many_secrets(struct settings *s) { s->cookie_secret_count = COOKIE_SECRETS + 1; }
static void no_secret(struct settings *s) { s->flags |= SETTINGS_F_COOKIES; }
static void endless_identity(struct settings *s) { memset(s->identity, 'x', sizeof(s->identity)); }
static void endless_version(struct settings *s) { memset(s->version_text, 'x', sizeof(s->version_text)); }
static void least_payload(struct settings *s) { s->udp_payload_bytes = 512; }
static void most_payload(struct settings *s) { s->udp_payload_bytes = 4096; }
static void cookies(struct settings *s)
{
	s->flags |= SETTINGS_F_COOKIES;
	s->cookie_secret_count = 2;
}
static void longest_identity(struct settings *s) { memset(s->identity, 'x', sizeof(s->identity) - 1); }

Test(settings, everything_is_checked)
{
	static const struct {
		void (*change)(struct settings *);
		enum err expected;
	} cases[] = {
		{ nothing, ERR_OK },
		{ least_payload, ERR_OK },
		{ most_payload, ERR_OK },
		{ cookies, ERR_OK },
		{ longest_identity, ERR_OK },
		{ bad_magic, ERR_CORRUPT },
		{ bad_version, ERR_CORRUPT },
		{ bad_size, ERR_CORRUPT },
		{ small_payload, ERR_CORRUPT },
		{ large_payload, ERR_CORRUPT },
		{ strange_flag, ERR_CORRUPT },
		{ many_secrets, ERR_CORRUPT },
		{ no_secret, ERR_CORRUPT },
		{ endless_identity, ERR_CORRUPT },
		{ endless_version, ERR_CORRUPT },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct settings s, copy = { .magic = 1 };
		const char *why = NULL;
		settings_defaults(&s);
		cases[i].change(&s);
		cr_expect_eq(settings_load(&copy, &s, sizeof(s), &why), cases[i].expected, "case %zu: %s", i, why);
		if (cases[i].expected != ERR_OK) {
			cr_expect_not_null(why, "case %zu says why", i);
			cr_expect_eq(copy.magic, 1, "case %zu leaves the result alone", i);
		}
	}
	struct settings s, copy;
	const char *why;
	settings_defaults(&s);
	for (size_t n = 0; n < sizeof(s); n++)
		cr_expect_eq(settings_load(&copy, &s, n, &why), ERR_CORRUPT, "cut to %zu", n);
}
