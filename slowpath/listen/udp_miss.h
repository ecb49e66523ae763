/* SPDX-License-Identifier: Apache-2.0 */
/* udp_miss.h: what a UDP thread leaves to the resolver, and how the response gets back: by the socket that the query came through, from the
 * address that it was sent to, on the resolver's thread, which never waits for it. */
#pragma once
#include "slowpath/listen/listen_thread.h"
#include "slowpath/listen/udp_hot.h"

/* A UDP thread's; user of udp_miss_take. */
struct udp_miss {
	struct listen_thread *thread; /* borrowed, as all below */
	struct udp_batch *batch;
	const struct udp_socket *socket; /* of the batch that is being answered; its descriptor outlives the resolver */
	uint64_t received_ns;		 /* of that batch; 0: not looked up yet */
};

/* A udp_leave: hands a MISS to the resolver, or asks it to refresh. */
void udp_miss_take(void *user, enum answer_verdict verdict, unsigned rx_index, const struct answer_query *q);
