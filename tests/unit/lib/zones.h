/* SPDX-License-Identifier: Apache-2.0 */
/* zones.h: for unit tests: zone text to a snapshot, questions to responses in text. Aborts with a message when a test's own
 * input is wrong. */
#pragma once
#include "answer/answer.h"

struct zones_text {
	const char *origin, *text;
}; /* text NULL: configured, but unusable */

/* A snapshot of these zones with default settings; destroy it by snapshot_destroy. */
struct snapshot *zones_snapshot(const struct zones_text *zones, size_t count);

struct zones_ask {
	const char *name; /* presentation form */
	uint16_t type;
	bool is_do, has_edns, is_tcp;
	uint16_t payload_bytes; /* with EDNS; 0: 1232 */
};
/* Writes a query; returns its length. */
size_t zones_query(uint8_t *msg, size_t max_bytes, const struct zones_ask *ask);
/* Asks and returns the response as text that the caller frees:
 *   NOERROR aa tc | answer records | authority records | additional records (without OPT)
 * Records stand in message order, "owner ttl TYPE rdata", joined by "; ". */
char *zones_response(const struct snapshot *s, const struct zones_ask *ask);
/* The same for a response at hand. Aborts on a message that does not parse to its last octet. */
char *zones_message_text(const uint8_t *msg, size_t bytes);
/* Runs one answer over raw bytes: msg has `capacity` octets of room. */
enum answer_verdict zones_answer_raw(const struct snapshot *s, uint8_t *msg, size_t bytes, size_t capacity, bool is_tcp,
				     struct answer_query *out);
/* The counters that zones_answer_raw wrote. */
struct counter_block *zones_counters(void);
