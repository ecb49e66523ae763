/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_miss.h: queries of TCP connections that wait for the resolver, and the way back to the connection's thread.
 *
 * Ownership  A connection with such queries is freed when the last of them has come back, though it may be closed long before. The box
 *            outlives its TCP thread for the same reason: the last one that leaves it frees it, and what is in it.
 * Threads    tcp_miss_ask and tcp_miss_next are the TCP thread's; in between a query is the resolver's. */
#pragma once
#include "slowpath/listen/tcp_private.h"

struct tcp_box;
/* *wake: an eventfd of the box, readable when something has come back. */
MUST_USE enum err tcp_box_create(struct tcp_box **out, int *wake);
/* The TCP thread has ended. NULL is fine. */
void tcp_box_leave(struct tcp_box *box);

/* Hands a MISS of this connection to the resolver and counts it in c->pending. False: there will be no answer; counted. */
MUST_USE bool tcp_miss_ask(struct tcp_connection *c, const struct answer_query *q);

/* What came back: the connection may be closing. message is owned, NULL: there is no answer. */
struct tcp_returned {
	struct tcp_connection *connection;
	uint8_t *message;
	size_t bytes;
};
/* The next one, its connection's pending already lowered; false: no more for now. A connection that is gone but for this is freed. */
MUST_USE bool tcp_miss_next(struct tcp_box *box, struct tcp_returned *out);
