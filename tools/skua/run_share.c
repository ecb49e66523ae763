/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_share.h"

#include "table/shm.h"

#include <stdio.h>
#include <unistd.h>

enum err run_share_bytes(int *fd, const char *label, const void *bytes, size_t size_bytes)
{
	static const char nothing[] = "\n";
	void *map;
	size_t map_bytes;
	int made;

	if (!size_bytes) {
		bytes = nothing;
		size_bytes = 1;
	}
	enum err err = shm_create(&made, label, size_bytes);
	if (err != ERR_OK)
		return err;
	err = shm_map_writable(&map, &map_bytes, made);
	if (err == ERR_OK) {
		memcpy(map, bytes, size_bytes);
		shm_unmap(map, map_bytes);
		err = shm_seal(made);
	}
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	*fd = made;
	return ERR_OK;
}

static uint8_t hex_digit(char c) { return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); }

void run_share_settings(struct settings *out, const struct config *config, const uint8_t random[static 16])
{
	settings_defaults(out);
	out->udp_payload_bytes = (uint16_t)config->server.udp_payload;
	out->flags = (uint16_t)((config->server.cookies ? SETTINGS_F_COOKIES : 0) | (config->server.nsid ? SETTINGS_F_NSID : 0) |
				(config->server.chaos ? SETTINGS_F_CHAOS : 0) | (config->server.ede ? SETTINGS_F_EDE : 0));
	out->cookie_secret_count = 0;
	for (size_t i = 0; i < config->server.cookie_secret_count && i < COOKIE_SECRETS; i++) {
		const char *hex = config->server.cookie_secrets[i]; /* the schema has checked that it is 32 hex digits */
		for (size_t j = 0; j < 16; j++)
			out->cookie_secret[i][j] = (uint8_t)(hex_digit(hex[2 * j]) << 4 | hex_digit(hex[2 * j + 1]));
		out->cookie_secret_count++;
	}
	if (config->server.cookies && out->cookie_secret_count == 0) {
		memcpy(out->cookie_secret[0], random, 16);
		out->cookie_secret_count = 1;
	}
	snprintf(out->identity, sizeof out->identity, "%s", config->server.identity);
	snprintf(out->version_text, sizeof out->version_text, "%s", config->server.version_text ?: "");
	out->tcp_idle_timeout_100ms = (uint16_t)MIN(config->tcp.idle_timeout_ms / 100, 65535u);
}
