/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: about 100 instructions a SipHash; only queries that carry a cookie pay it. */
#include "answer/cookie.h"

#include "base/bytes.h"

#define SIP_ROTATE(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

struct sip {
	uint64_t v0, v1, v2, v3;
};

ALWAYS_INLINE void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = SIP_ROTATE(s->v1, 13) ^ s->v0;
	s->v0 = SIP_ROTATE(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = SIP_ROTATE(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = SIP_ROTATE(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = SIP_ROTATE(s->v1, 17) ^ s->v2;
	s->v2 = SIP_ROTATE(s->v2, 32);
}

ALWAYS_INLINE void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

uint64_t cookie_siphash(const uint8_t key[16], const uint8_t *bytes, size_t byte_count)
{
	uint64_t k0, k1, word, last = (uint64_t)byte_count << 56;

	memcpy(&k0, key, 8);
	memcpy(&k1, key + 8, 8);
	struct sip s = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
	size_t i = 0;

	for (; i + 8 <= byte_count; i += 8) {
		memcpy(&word, bytes + i, 8);
		sip_word(&s, word);
	}
	for (unsigned shift = 0; i < byte_count; i++, shift += 8)
		last |= (uint64_t)bytes[i] << shift;
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (unsigned i4 = 0; i4 < 4; i4++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The hash of RFC 9018 section 4.4 over client cookie, version, reserved, timestamp and the client's address. */
static uint64_t server_hash(const uint8_t secret[16], const struct answer_query *q)
{
	uint8_t input[COOKIE_CLIENT_BYTES + 8 + 16];
	size_t address_bytes = q->client.family == 4 ? 4 : 16;

	memcpy(input, q->cookie, COOKIE_CLIENT_BYTES + 8);
	memcpy(input + COOKIE_CLIENT_BYTES + 8, q->client.address, address_bytes);
	return cookie_siphash(secret, input, COOKIE_CLIENT_BYTES + 8 + address_bytes);
}

/* Serial arithmetic (RFC 1982), as RFC 9018 wants it: the time stamp has 32 bits. */
static int32_t cookie_age_s(const struct answer_query *q, int64_t wall_s)
{
	return (int32_t)((uint32_t)wall_s - load_be32(q->cookie + COOKIE_CLIENT_BYTES + 4));
}

void cookie_verify(const struct settings *settings, struct answer_thread *t, struct answer_query *q)
{
	if (q->cookie_state != COOKIE_SERVER_GIVEN && q->cookie_state != COOKIE_SERVER_ODD)
		return;
	bool is_valid = false;

	if (q->cookie_state == COOKIE_SERVER_GIVEN && q->cookie[COOKIE_CLIENT_BYTES] == 1) {
		int32_t age_s = cookie_age_s(q, t->wall_s);
		uint64_t given;

		memcpy(&given, q->cookie + COOKIE_CLIENT_BYTES + 8, 8);
		if (age_s <= COOKIE_MAX_AGE_S && age_s >= -COOKIE_MAX_AHEAD_S)
			for (uint32_t i = 0; i < settings->cookie_secret_count; i++)
				is_valid |= server_hash(settings->cookie_secret[i], q) == given;
	}
	q->cookie_state = is_valid ? COOKIE_VALID : COOKIE_INVALID;
	counter_add(t->counters, is_valid ? C_COOKIE_GOOD : C_COOKIE_BAD, 1);
}

void cookie_renew(const struct settings *settings, int64_t wall_s, struct answer_query *q)
{
	/* A cookie by the older secret is renewed at once: the roll-over then ends within one renewal. */
	if (q->cookie_state == COOKIE_VALID && cookie_age_s(q, wall_s) < COOKIE_RENEW_AGE_S) {
		uint64_t given;

		memcpy(&given, q->cookie + COOKIE_CLIENT_BYTES + 8, 8);
		if (server_hash(settings->cookie_secret[0], q) == given)
			return;
	}
	q->cookie[COOKIE_CLIENT_BYTES] = 1;
	memset(q->cookie + COOKIE_CLIENT_BYTES + 1, 0, 3);
	store_be32(q->cookie + COOKIE_CLIENT_BYTES + 4, (uint32_t)wall_s);
	uint64_t hash = server_hash(settings->cookie_secret[0], q);

	memcpy(q->cookie + COOKIE_CLIENT_BYTES + 8, &hash, 8);
}
