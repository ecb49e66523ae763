/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as skua.yaml: it is either refused with a report, or gives a configuration that keeps what config.h promises. */
#include "base/log.h"
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	unsigned errors;
};

static void check_report(void *user, bool is_error, struct config_place place, const char *message)
{
	struct seen *s = user;
	size_t n = strlen(message);

	s->errors += is_error;
	ASSERT(place.line >= 1 && place.column >= 1 && n > 0 && n < 512);
	for (size_t i = 0; i < n; i++)
		ASSERT((uint8_t)message[i] >= ' ' && message[i] != 127);
}

static void check_config(const struct config *c)
{
	ASSERT(c->server.udp_payload >= 512 && c->server.udp_payload <= 4096 && c->server.workers <= CONFIG_MAX_CPUS);
	ASSERT(c->server.state[0] == '/' && c->server.run[0] == '/' && strlen(c->server.run) <= 80 && c->xdp.pin_dir[0] == '/');
	ASSERT(strlen(c->server.identity) <= 127 && strlen(c->server.version_text) <= 127 && c->server.cookie_secret_count <= 2);
	for (size_t i = 0; i < c->server.cookie_secret_count; i++)
		ASSERT(strlen(c->server.cookie_secrets[i]) == 32);
	ASSERT(c->listen.dns_count >= 1 && c->listen.dns_count <= CONFIG_MAX_ADDRESSES);
	for (size_t i = 0; i < c->listen.dns_count; i++)
		ASSERT(c->listen.dns[i].port != 0 && (c->listen.dns[i].family == 4 || c->listen.dns[i].family == 6));
	ASSERT(c->xdp.interface_count <= CONFIG_MAX_INTERFACES && c->xdp.cpu_count <= CONFIG_MAX_CPUS &&
	       !c->xdp.cpus == !c->xdp.cpu_count);
	ASSERT(c->xdp.mode <= XDP_MODE_SKB && c->xdp.reply == REPLY_SWAP && (c->xdp.ring_size & (c->xdp.ring_size - 1)) == 0);
	ASSERT(c->log.level_count == LOG_SUBSYSTEM_COUNT_);
	for (size_t i = 0; i < c->zone_count; i++) {
		ASSERT(name_wire_bytes(c->zone[i].name, c->zone[i].name_bytes) == c->zone[i].name_bytes);
		ASSERT(c->zone[i].file[0] == '/' && c->zone[i].name_text[0]);
	}
}

static void check_recursion(const struct config *c)
{
	for (size_t i = 0; i < c->forward_count; i++) {
		const struct config_forward *f = &c->forward[i];
		ASSERT(name_wire_bytes(f->zone.name, f->zone.name_bytes) == f->zone.name_bytes && f->zone.text[0]);
		ASSERT(f->count >= 1 && f->count <= CONFIG_MAX_UPSTREAMS && f->strategy <= STRATEGY_SPREAD);
		for (size_t k = 0; k < f->count; k++) {
			const struct config_upstream *u = &f->to[k];
			ASSERT(u->address.port && (u->address.family == 4 || u->address.family == 6));
			ASSERT(u->is_tls == (u->has_pin || u->auth_name) && !(u->has_pin && u->auth_name));
		}
	}
	for (size_t i = 0; i < c->recursion.allow_count; i++)
		ASSERT(c->recursion.allow[i].bits <= (c->recursion.allow[i].family == 4 ? 32 : 128));
	ASSERT(c->cache.min_ttl_s <= c->cache.max_ttl_s && (!*c->cache.file || c->cache.file[0] == '/'));
	ASSERT(c->cache.memory == 0 || c->cache.memory >= 1u << 20);
	for (size_t i = 0; i < c->local.hosts_count; i++)
		ASSERT(c->local.hosts[i][0] == '/');
	for (size_t i = 0; i < c->local.records_count; i++)
		ASSERT(c->local.records[i][0] && !strchr(c->local.records[i], '\n'));
	for (size_t i = 0; i < c->local.special_names_off_count; i++)
		ASSERT(name_wire_bytes(c->local.special_names_off[i].name, c->local.special_names_off[i].name_bytes));
}

/* What is left without the zones is right as well, and has none if they could be cut out. */
static void check_rest(const struct config *c, const char *text, size_t bytes)
{
	struct seen seen = { 0 };
	struct config *rest = NULL;
	size_t rest_bytes;
	char *rest_text;

	if (config_text_without_zones(c, text, bytes, &rest_text, &rest_bytes) != ERR_OK)
		return;
	enum err err = config_load(&rest, "/f/skua.yaml", rest_text, rest_bytes, check_report, &seen);
	ASSERT(err == ERR_OK && rest->server.udp_payload == c->server.udp_payload &&
	       rest->tcp.max_connections == c->tcp.max_connections);
	ASSERT(rest->zone_count == 0 || rest->zone_count == c->zone_count);
	config_free(rest);
	free(rest_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = { 0 };
	struct config *c = NULL;

	enum err err = config_load(&c, "/f/skua.yaml", (const char *)data, size, check_report, &seen);
	ASSERT(err == ERR_OK ? c && seen.errors == 0 : !c && (err == ERR_NOMEM || seen.errors > 0));
	ASSERT(seen.errors <= CONFIG_MAX_ERRORS + 1);
	if (c) {
		check_config(c);
		check_recursion(c);
		check_rest(c, (const char *)data, size);
	}
	config_free(c);
	return 0;
}
