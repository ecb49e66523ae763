/* SPDX-License-Identifier: Apache-2.0 */
/* miss.h: what a serving thread of the fastpath and a resolver worker say to each other over their pair of rings (table/ring.h).
 *
 * Ticket     Slot and generation of the thread's private table of pending queries, where MACs, VLAN, addresses and ports stay: the
 *            worker can answer a ticket or not, never choose where a frame goes. Tickets expire; an unknown one is dropped and counted.
 * Question   The whole query message, so that the answer is made by the one answer function.
 * Trust      Both sides copy, check, and use the copy. */
#pragma once
#include "base/base.h"

#define MISS_QUERY_MAX_BYTES \
	512u /* longer queries are answered by the kernel path's threads: the fastpath drops and counts them */
#define MISS_RESPONSE_MAX_BYTES 4096u

enum miss_flags {
	MISS_F_REFRESH = 1, /* nobody waits: the entry is about to expire */
};

/* Thread to worker: this and query_bytes octets. */
struct miss_question {
	uint64_t ticket;
	uint64_t received_ns; /* CLOCK_MONOTONIC */
	uint64_t name_hash;
	uint8_t address[16]; /* the client's, as in struct answer_client */
	uint16_t port;
	uint8_t family, flags;
	uint16_t group;		 /* of the policy image */
	uint16_t capacity_bytes; /* room for a response */
	uint16_t query_bytes;
	uint16_t reserved[3];
};
static_assert(sizeof(struct miss_question) == 56, "ABI changed");

/* Worker to thread: this and response_bytes octets; 0 octets: no answer, forget the ticket. */
struct miss_answer {
	uint64_t ticket;
	uint32_t response_bytes;
	uint32_t reserved;
};
static_assert(sizeof(struct miss_answer) == 16, "ABI changed");
