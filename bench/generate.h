/* SPDX-License-Identifier: Apache-2.0 */
/* generate.h: the parts of the load generator: what is asked, what is under way, and two ways onto the wire. */
#pragma once
#include "base/base.h"
#include "base/bytes.h"

#include <netinet/in.h>

#define GENERATE_BATCH 64u
#define GENERATE_FLOWS_MAX 4096u
#define GENERATE_MESSAGE_MAX 512u
#define GENERATE_FIRST_PORT 20000u /* of AF_XDP flows */

/* --- histogram: log-linear, 128 steps for each doubling: within 0.8 % --------------------------------------------------- */
#define HISTOGRAM_STEPS 128u
#define HISTOGRAM_BUCKETS (HISTOGRAM_STEPS * 40u)
struct histogram {
	uint64_t count, sum_ns, max_ns;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};
static inline unsigned histogram_bucket(uint64_t ns)
{
	if (ns < HISTOGRAM_STEPS)
		return (unsigned)ns;
	unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - 7u; /* 7: log2 of the steps */
	unsigned index = (shift + 1) * HISTOGRAM_STEPS + (unsigned)((ns >> shift) - HISTOGRAM_STEPS);

	return MIN(index, HISTOGRAM_BUCKETS - 1);
}
/* The largest value that falls into the bucket. */
static inline uint64_t histogram_edge(unsigned bucket)
{
	if (bucket < HISTOGRAM_STEPS)
		return bucket;
	unsigned shift = bucket / HISTOGRAM_STEPS - 1;

	return ((uint64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << shift) - 1;
}
static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	h->count++;
	h->sum_ns += ns;
	h->max_ns = MAX(h->max_ns, ns);
	h->bucket[histogram_bucket(ns)]++;
}
static inline uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t want = (uint64_t)((double)h->count * q), seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > want)
			return MIN(histogram_edge(i), h->max_ns);
	}
	return h->max_ns;
}

/* --- what travels ------------------------------------------------------------------------------------------------------- */
struct generate_message {
	uint16_t flow; /* source port: one of the flows */
	uint16_t bytes;
	const uint8_t *data; /* the query but for its id */
	uint16_t id;
};
struct generate_reply {
	uint16_t flow, id;
	uint8_t rcode, flags; /* flags: octet 2 of the header */
};

/* A way onto the wire. */
struct generate_wire {
	/* Sends as many of messages as it can without waiting; returns how many. */
	unsigned (*send)(struct generate_wire *w, const struct generate_message *messages, unsigned count);
	/* Takes replies without waiting, at most GENERATE_BATCH. */
	unsigned (*receive)(struct generate_wire *w, struct generate_reply *replies);
	/* Sleeps until a reply can be had or timeout_ns have passed. */
	void (*wait)(struct generate_wire *w, uint64_t timeout_ns);
	void (*close)(struct generate_wire *w);
};
struct generate_options {
	struct sockaddr_in server;
	unsigned flows;
	const char *interface; /* AF_XDP */
	uint8_t server_mac[6], own_mac[6];
	struct in_addr own;
};
/* NULL with a message on stderr. */
struct generate_wire *generate_udp(const struct generate_options *o);
struct generate_wire *generate_xdp(const struct generate_options *o);
