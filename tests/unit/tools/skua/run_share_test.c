/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_share.h"

#include "table/shm.h"

#include <criterion/criterion.h>
#include <unistd.h>

static const uint8_t random_bytes[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

static void complain(void *user, bool is_error, struct config_place place, const char *message)
{
	(void)user;
	cr_expect_not(is_error, "%u:%u: %s", place.line, place.column, message);
}

static struct settings settings_of(const char *text)
{
	struct config *config;
	struct settings s;

	cr_assert_eq(config_load(&config, "/test.yaml", text, strlen(text), complain, NULL), ERR_OK);
	run_share_settings(&s, config, random_bytes);
	config_free(config);
	return s;
}

Test(run_share, settings_pass_the_readers_checks)
{
	struct settings s = settings_of("server:\n  identity: ns1.example.net\n"), loaded;
	const char *why = "";

	cr_assert_eq(settings_load(&loaded, &s, sizeof s, &why), ERR_OK, "%s", why);
	cr_expect_str_eq(loaded.identity, "ns1.example.net");
	cr_expect_str_eq(loaded.version_text, "");
	cr_expect_eq(loaded.udp_payload_bytes, 1232);
	cr_expect_eq(loaded.tcp_idle_timeout_100ms, 100);
	cr_expect_eq(loaded.flags, SETTINGS_F_COOKIES | SETTINGS_F_NSID | SETTINGS_F_CHAOS | SETTINGS_F_EDE);
}

Test(run_share, a_random_cookie_secret_when_none_is_configured)
{
	struct settings s = settings_of("server:\n  identity: x\n");

	cr_assert_eq(s.cookie_secret_count, 1);
	cr_expect_arr_eq(s.cookie_secret[0], random_bytes, 16);
}

Test(run_share, configured_cookie_secrets_in_their_order)
{
	static const uint8_t first[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
					   0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	static const uint8_t second[16] = { 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88,
					    0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00 };
	struct settings s = settings_of("server:\n  cookie-secrets: [ \"00112233445566778899aabbccddeeff\","
					" \"FFEEDDCCBBAA99887766554433221100\" ]\n");

	cr_assert_eq(s.cookie_secret_count, 2);
	cr_expect_arr_eq(s.cookie_secret[0], first, 16);
	cr_expect_arr_eq(s.cookie_secret[1], second, 16);
}

Test(run_share, what_is_switched_off_is_off)
{
	struct settings s =
		settings_of("server:\n  cookies: false\n  nsid: false\n  chaos: false\n  ede: false\n  udp-payload: 4096\n");

	cr_expect_eq(s.flags, 0);
	cr_expect_eq(s.cookie_secret_count, 0);
	cr_expect_eq(s.udp_payload_bytes, 4096);
}

Test(run_share, bytes_are_sealed_and_never_empty)
{
	const void *map;
	size_t bytes;
	int fd = -1;

	cr_assert_eq(run_share_bytes(&fd, "test", "hello", 5), ERR_OK);
	cr_expect(shm_is_sealed(fd, true));
	cr_assert_eq(shm_map(&map, &bytes, fd), ERR_OK);
	cr_expect_eq(bytes, 5);
	cr_expect_arr_eq(map, "hello", 5);
	shm_unmap(map, bytes);
	close(fd);
	cr_assert_eq(run_share_bytes(&fd, "test", "", 0), ERR_OK);
	cr_assert_eq(shm_map(&map, &bytes, fd), ERR_OK);
	cr_expect_eq(bytes, 1);
	shm_unmap(map, bytes);
	close(fd);
}
