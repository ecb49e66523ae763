/* SPDX-License-Identifier: Apache-2.0 */
/* cookie.h: DNS cookies (RFC 7873) with the interoperable server cookie of RFC 9018: version 1, SipHash-2-4. */
#pragma once
#include "answer/answer.h"

#define COOKIE_CLIENT_BYTES 8
#define COOKIE_SERVER_BYTES 16
#define COOKIE_MAX_AGE_S 3600 /* RFC 9018 section 4.3 */
#define COOKIE_MAX_AHEAD_S 300
#define COOKIE_RENEW_AGE_S 1800

enum cookie_state {
	COOKIE_NONE, /* no cookie option */
	COOKIE_CLIENT_ONLY,
	COOKIE_SERVER_GIVEN, /* a server cookie of 16 octets, not yet verified */
	COOKIE_SERVER_ODD,   /* one of another length: not ours */
	COOKIE_VALID,
	COOKIE_INVALID,
};

/* SipHash-2-4 of bytes under a key of 16 octets; the result as the 8 octets of the reference, little-endian. */
HOT uint64_t cookie_siphash(const uint8_t key[16], const uint8_t *bytes, size_t byte_count);
/* Verifies the server cookie in q->cookie, sets q->cookie_state and counts. */
HOT void cookie_verify(const struct settings *settings, struct answer_thread *t, struct answer_query *q);
/* Leaves in q->cookie what the response must carry: the cookie as it came if it is valid and young, else a new one. */
HOT void cookie_renew(const struct settings *settings, int64_t wall_s, struct answer_query *q);
