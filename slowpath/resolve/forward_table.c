/* SPDX-License-Identifier: Apache-2.0 */
/* forward_table.c: forward zones and their upstreams, from the configuration. Zones that name the same server share what is known of it. */
#include "base/log.h"
#include "slowpath/resolve/forward_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* --- upstreams ------------------------------------------------------------------------------------------------------ */

static bool is_same_address(const struct config_address *a, const struct config_address *b)
{
	return a->family == b->family && a->port == b->port && memcmp(a->address, b->address, a->family == 4 ? 4 : 16) == 0;
}

static void fill_address(struct exchange_server *out, const struct config_address *a)
{
	if (a->family == 4) {
		struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(a->port) };
		memcpy(&v4.sin_addr, a->address, 4);
		memcpy(&out->address, &v4, sizeof v4);
		out->address_bytes = sizeof v4;
	} else {
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(a->port) };
		memcpy(&v6.sin6_addr, a->address, 16);
		memcpy(&out->address, &v6, sizeof v6);
		out->address_bytes = sizeof v6;
	}
}

static bool is_same(const struct upstream *u, const struct config_upstream *c)
{
	struct exchange_server s = { 0 };
	fill_address(&s, &c->address);
	return u->server.address_bytes == s.address_bytes && memcmp(&u->server.address, &s.address, s.address_bytes) == 0 &&
	       u->is_tls == c->is_tls && !u->auth_name == !c->auth_name && !u->server.pin == !c->has_pin &&
	       (!c->auth_name || strcmp(u->auth_name, c->auth_name) == 0) &&
	       (!c->has_pin || memcmp(u->pin, c->pin, sizeof u->pin) == 0);
}

static enum err add_upstream(struct forward_table *t, const struct config *config, const struct config_upstream *c)
{
	struct upstream *u = &t->upstream[t->upstream_count];
	if (c->is_tls && !c->auth_name && !c->has_pin)
		return ERR_ARGUMENT;
	fill_address(&u->server, &c->address);
	snprintf(u->text, sizeof u->text, "%s%s", c->is_tls ? "tls://" : "", c->address.text);
	u->server.text = u->text;
	u->is_tls = c->is_tls;
	if (c->has_pin) {
		memcpy(u->pin, c->pin, sizeof u->pin);
		u->server.pin = u->pin;
	}
	t->upstream_count++; /* destroy frees what follows */
	if (c->auth_name && !(u->auth_name = strdup(c->auth_name)))
		return ERR_NOMEM;
	u->server.auth_name = u->auth_name;
	if (getrandom(u->client_cookie, sizeof u->client_cookie, 0) != sizeof u->client_cookie)
		return err_from_errno(errno);
	for (size_t i = 0; i < config->listen.dns_count && !c->is_tls; i++)
		u->is_self |= is_same_address(&c->address, &config->listen.dns[i]);
	if (u->is_self)
		log_write(M_UPSTREAM_SELF, "%s is one of listen.dns", u->text);
	if (!c->is_tls)
		return ERR_OK;
	enum err err = t->tls ? ERR_OK : exchange_tls_create(&t->tls, NULL);
	u->server.tls = t->tls;
	return err;
}

/* --- zones ---------------------------------------------------------------------------------------------------------- */

static enum err add_zone(struct forward_table *t, const struct config *config, const struct config_forward *c)
{
	struct forward_zone *z = &t->zone[t->zone_count++];
	if (c->zone.name_bytes > NAME_MAX_BYTES || c->count == 0 || c->count > CONFIG_MAX_UPSTREAMS)
		return ERR_ARGUMENT;
	memcpy(z->name, c->zone.name, c->zone.name_bytes);
	z->name_bytes = (uint8_t)c->zone.name_bytes;
	z->labels = (uint8_t)name_labels(z->name);
	z->hash = name_hash(z->name, z->name_bytes);
	z->dnssec = c->dnssec;
	z->strategy = c->strategy;
	t->max_labels = MAX(t->max_labels, z->labels);
	for (size_t i = 0; i < c->count; i++) {
		size_t k = 0;
		while (k < t->upstream_count && !is_same(&t->upstream[k], &c->to[i]))
			k++;
		enum err err = k < t->upstream_count ? ERR_OK : add_upstream(t, config, &c->to[i]);
		if (err != ERR_OK)
			return err;
		z->upstream[z->count++] = (uint32_t)k;
	}
	uint32_t at = (uint32_t)z->hash & t->slot_mask;
	while (t->slot[at])
		at = (at + 1) & t->slot_mask;
	t->slot[at] = (uint32_t)t->zone_count;
	return ERR_OK;
}

static const struct forward_zone *find_exactly(const struct forward_table *t, const uint8_t *name, size_t name_bytes)
{
	uint64_t hash = name_hash(name, name_bytes);
	for (uint32_t at = (uint32_t)hash & t->slot_mask; t->slot[at]; at = (at + 1) & t->slot_mask) {
		const struct forward_zone *z = &t->zone[t->slot[at] - 1];
		if (z->hash == hash && z->name_bytes == name_bytes && memcmp(z->name, name, name_bytes) == 0)
			return z;
	}
	return NULL;
}

const struct forward_zone *forward_zone_find(const struct forward_table *t, const uint8_t *lower, size_t name_bytes)
{
	unsigned labels = name_labels(lower), drop = labels > t->max_labels ? labels - t->max_labels : 0;
	for (; t->zone_count && drop <= labels; drop++) {
		size_t offset = name_suffix_offset(lower, drop);
		const struct forward_zone *z = find_exactly(t, lower + offset, name_bytes - offset);
		if (z)
			return z;
	}
	return NULL;
}

bool forward_covers(const struct forward_table *t, const uint8_t *lower, size_t name_bytes)
{
	return forward_zone_find(t, lower, name_bytes) != NULL;
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

enum err forward_share_add(struct forward_table *t, struct upstream_share **out)
{
	size_t bytes = MAX(t->upstream_count, 1u) * sizeof(struct upstream_share);
	if (atomic_load_explicit(&t->share_count, memory_order_relaxed) >= FORWARD_SHARES_MAX)
		return ERR_NOSPACE;
	struct upstream_share *share = aligned_alloc(CACHE_LINE, bytes);
	if (!share)
		return ERR_NOMEM;
	memset(share, 0, bytes);
	unsigned index = atomic_fetch_add_explicit(&t->share_count, 1, memory_order_relaxed);
	if (index >= FORWARD_SHARES_MAX) {
		free(share);
		return ERR_NOSPACE;
	}
	atomic_store_explicit(&t->share[index], share, memory_order_release);
	*out = share;
	return ERR_OK;
}

static enum err fill(struct forward_table *t, const struct config *config)
{
	size_t upstreams = 1;
	uint32_t slots = 16;
	for (size_t i = 0; i < config->forward_count; i++)
		upstreams += config->forward[i].count;
	while (slots < 2 * config->forward_count)
		slots *= 2;
	t->slot_mask = slots - 1;
	t->slot = calloc(slots, sizeof *t->slot);
	t->zone = calloc(config->forward_count + 1, sizeof *t->zone);
	t->upstream = aligned_alloc(CACHE_LINE, upstreams * sizeof *t->upstream);
	if (!t->slot || !t->zone || !t->upstream)
		return ERR_NOMEM;
	memset(t->upstream, 0, upstreams * sizeof *t->upstream);
	for (size_t i = 0; i < config->forward_count; i++) {
		enum err err = add_zone(t, config, &config->forward[i]);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

enum err forward_table_create(struct forward_table **out, const struct config *config)
{
	struct forward_table *t = calloc(1, sizeof *t);
	if (!t)
		return ERR_NOMEM;
	enum err err = fill(t, config);
	if (err != ERR_OK) {
		forward_table_destroy(t);
		return err;
	}
	*out = t;
	return ERR_OK;
}

void forward_table_destroy(struct forward_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->upstream_count; i++)
		free(t->upstream[i].auth_name);
	for (unsigned i = 0; i < FORWARD_SHARES_MAX; i++)
		free(atomic_load_explicit(&t->share[i], memory_order_relaxed));
	exchange_tls_destroy(t->tls);
	free(t->upstream);
	free(t->zone);
	free(t->slot);
	free(t);
}
