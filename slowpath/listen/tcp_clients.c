/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing; a leaving client's gap is closed by moving its successors up, so there are no
 * tombstones and probes stay short at the load of at most one half. */
#include "slowpath/listen/tcp_clients.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#define MAX_CONNECTIONS_LIMIT (1u << 24)

struct slot {
	uint64_t prefix;
	uint32_t count; /* 0: free */
	uint32_t family;
};

struct tcp_clients {
	pthread_mutex_t lock;
	unsigned total, max_connections, max_per_client;
	uint32_t mask;
	uint64_t secret[2]; /* clients choose their prefixes: without a secret they could make them collide */
	struct slot slot[];
};

enum err tcp_clients_create(struct tcp_clients **out, unsigned max_connections, unsigned max_per_client)
{
	if (max_connections == 0 || max_connections > MAX_CONNECTIONS_LIMIT || max_per_client == 0)
		return ERR_ARGUMENT;
	uint32_t slots = 16;
	while (slots < 2 * max_connections)
		slots *= 2;
	struct tcp_clients *c = calloc(1, sizeof *c + slots * sizeof c->slot[0]);
	if (!c)
		return ERR_NOMEM;
	if (getrandom(c->secret, sizeof c->secret, 0) != (ssize_t)sizeof c->secret || pthread_mutex_init(&c->lock, NULL)) {
		free(c);
		return ERR_IO;
	}
	c->max_connections = max_connections;
	c->max_per_client = max_per_client;
	c->mask = slots - 1;
	*out = c;
	return ERR_OK;
}

void tcp_clients_destroy(struct tcp_clients *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct slot key_of(const struct answer_client *client)
{
	struct slot key = { .family = client->family };
	memcpy(&key.prefix, client->address, client->family == 4 ? 4 : 8);
	return key;
}

/* Multiply-shift with secret multipliers, taken from the high half. */
static uint32_t home_of(const struct tcp_clients *c, const struct slot *key)
{
	unsigned __int128 product = (unsigned __int128)(key->prefix ^ c->secret[0] ^ key->family) * (c->secret[1] | 1);
	return (uint32_t)(product >> 64 ^ (uint64_t)product >> 32) & c->mask;
}

/* The client's slot, or the free one where it belongs. */
static struct slot *find(struct tcp_clients *c, const struct slot *key)
{
	uint32_t i = home_of(c, key);
	while (c->slot[i].count && (c->slot[i].prefix != key->prefix || c->slot[i].family != key->family))
		i = (i + 1) & c->mask; /* ends: at least half of the slots are free */
	return &c->slot[i];
}

enum tcp_admission tcp_clients_admit(struct tcp_clients *c, const struct answer_client *client)
{
	struct slot key = key_of(client);
	enum tcp_admission result = TCP_ADMITTED;
	pthread_mutex_lock(&c->lock);
	struct slot *s = find(c, &key);
	if (s->count >= c->max_per_client) {
		result = TCP_CLIENT_FULL;
	} else if (c->total >= c->max_connections) {
		result = TCP_FULL;
	} else {
		s->prefix = key.prefix;
		s->family = key.family;
		s->count++;
		c->total++;
	}
	pthread_mutex_unlock(&c->lock);
	return result;
}

/* Frees slot `gap` and moves up what a probe would not find any more. */
static void close_gap(struct tcp_clients *c, uint32_t gap)
{
	for (uint32_t i = (gap + 1) & c->mask; c->slot[i].count; i = (i + 1) & c->mask) {
		uint32_t home = home_of(c, &c->slot[i]);
		if (((i - home) & c->mask) < ((i - gap) & c->mask))
			continue; /* its home lies behind the gap */
		c->slot[gap] = c->slot[i];
		gap = i;
	}
	c->slot[gap] = (struct slot){ 0 };
}

void tcp_clients_leave(struct tcp_clients *c, const struct answer_client *client)
{
	struct slot key = key_of(client);
	pthread_mutex_lock(&c->lock);
	struct slot *s = find(c, &key);
	ASSERT(s->count > 0 && c->total > 0);
	c->total--;
	if (--s->count == 0)
		close_gap(c, (uint32_t)(s - c->slot));
	pthread_mutex_unlock(&c->lock);
}

unsigned tcp_clients_total(struct tcp_clients *c)
{
	pthread_mutex_lock(&c->lock);
	unsigned total = c->total;
	pthread_mutex_unlock(&c->lock);
	return total;
}
