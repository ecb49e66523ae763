/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_clients.h: how many TCP connections there are, in all and per client, over all TCP threads of the process.
 *
 * A client is an IPv4 address or an IPv6 /64 (one customer has at least that). The lock is held for a few probes when a
 * connection opens or closes, never for a query. Allocates once: twice as many slots as there may be connections. */
#pragma once
#include "answer/answer.h"
#include "base/base.h"

enum tcp_admission {
	TCP_ADMITTED,
	TCP_CLIENT_FULL, /* this client has max_per_client already */
	TCP_FULL,	 /* max_connections are open */
};

struct tcp_clients;

/* Both limits at least 1, max_connections at most 2^24. */
MUST_USE enum err tcp_clients_create(struct tcp_clients **out, unsigned max_connections, unsigned max_per_client);
void tcp_clients_destroy(struct tcp_clients *c); /* NULL is fine */
/* Counts the connection if it is admitted; the client's own limit is checked first. */
MUST_USE enum tcp_admission tcp_clients_admit(struct tcp_clients *c, const struct answer_client *client);
/* For each that was admitted, once. */
void tcp_clients_leave(struct tcp_clients *c, const struct answer_client *client);
unsigned tcp_clients_total(struct tcp_clients *c);
