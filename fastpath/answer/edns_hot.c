/* SPDX-License-Identifier: Apache-2.0 */
/* EDNS(0): the options of a query and the OPT record of a response (RFC 6891, 7873, 5001, 7828, 8914). */
#include "answer/answer_internal.h"
#include "answer/cookie.h"

#define OPTION_HEADER_BYTES 4u

static bool parse_cookie(struct answer_query *q, const uint8_t *data, uint32_t bytes)
{
	/* RFC 7873 section 5.2.2: 8 octets, or 16 to 40; anything else is a format error. */
	if (bytes != COOKIE_CLIENT_BYTES && (bytes < 16 || bytes > 40))
		return false;
	if (q->cookie_state != COOKIE_NONE)
		return true; /* section 5.2: only the first one counts */
	memcpy(q->cookie, data, COOKIE_CLIENT_BYTES);
	if (bytes == COOKIE_CLIENT_BYTES) {
		q->cookie_state = COOKIE_CLIENT_ONLY;
	} else if (bytes == COOKIE_CLIENT_BYTES + COOKIE_SERVER_BYTES) {
		memcpy(q->cookie + COOKIE_CLIENT_BYTES, data + COOKIE_CLIENT_BYTES, COOKIE_SERVER_BYTES);
		q->cookie_state = COOKIE_SERVER_GIVEN;
	} else {
		q->cookie_state = COOKIE_SERVER_ODD;
	}
	return true;
}

bool edns_parse_options(struct answer_query *q, const uint8_t *options, uint32_t options_bytes)
{
	for (uint32_t pos = 0; pos < options_bytes;) {
		if (options_bytes - pos < OPTION_HEADER_BYTES)
			return false;
		uint16_t code = load_be16(options + pos);
		uint32_t bytes = load_be16(options + pos + 2);

		pos += OPTION_HEADER_BYTES;
		if (bytes > options_bytes - pos)
			return false;
		if (code == EDNS_COOKIE && !parse_cookie(q, options + pos, bytes))
			return false;
		if (code == EDNS_NSID)
			q->edns_options |= ANSWER_OPT_NSID;
		if (code == EDNS_TCP_KEEPALIVE)
			q->edns_options |= ANSWER_OPT_KEEPALIVE;
		pos += bytes;
	}
	return true;
}

static bool wants_cookie(const struct settings *settings, const struct answer_query *q)
{
	return q->cookie_state != COOKIE_NONE && (settings->flags & SETTINGS_F_COOKIES) && settings->cookie_secret_count > 0;
}
static bool wants_nsid(const struct settings *settings, const struct answer_query *q)
{
	return (q->edns_options & ANSWER_OPT_NSID) && (settings->flags & SETTINGS_F_NSID) && settings->identity[0] != '\0';
}
static bool wants_keepalive(const struct settings *settings, const struct answer_query *q)
{
	return (q->edns_options & ANSWER_OPT_KEEPALIVE) && q->client.transport == TRANSPORT_TCP &&
	       settings->tcp_idle_timeout_100ms > 0;
}

uint32_t edns_response_bytes(const struct settings *settings, const struct answer_query *q)
{
	uint32_t bytes = EDNS_OPT_FIXED_BYTES;

	if (likely(q->cookie_state == COOKIE_NONE && q->edns_options == 0))
		return bytes;
	if (wants_cookie(settings, q))
		bytes += OPTION_HEADER_BYTES + COOKIE_CLIENT_BYTES + COOKIE_SERVER_BYTES;
	if (wants_nsid(settings, q))
		bytes += OPTION_HEADER_BYTES + (uint32_t)strlen(settings->identity);
	if (wants_keepalive(settings, q))
		bytes += OPTION_HEADER_BYTES + 2;
	return bytes;
}

static uint8_t *put_option(uint8_t *p, uint16_t code, const void *data, uint32_t bytes)
{
	store_be16(p, code);
	store_be16(p + 2, (uint16_t)bytes);
	memcpy(p + OPTION_HEADER_BYTES, data, bytes);
	return p + OPTION_HEADER_BYTES + bytes;
}

void edns_render(struct walk *w, uint32_t end)
{
	const struct settings *settings = &w->snapshot->settings;
	struct answer_query *q = w->q;
	uint8_t *opt = w->r.msg + w->r.pos, *p = opt + EDNS_OPT_FIXED_BYTES;

	edns_put_fixed(opt, settings, q->is_do, w->rcode);
	if (unlikely(q->cookie_state != COOKIE_NONE || q->edns_options != 0)) {
		if (wants_cookie(settings, q))
			p = put_option(p, EDNS_COOKIE, q->cookie, COOKIE_CLIENT_BYTES + COOKIE_SERVER_BYTES);
		if (wants_nsid(settings, q))
			p = put_option(p, EDNS_NSID, settings->identity, (uint32_t)strlen(settings->identity));
		if (wants_keepalive(settings, q)) {
			be16 timeout = be16_from(settings->tcp_idle_timeout_100ms);

			p = put_option(p, EDNS_TCP_KEEPALIVE, &timeout, 2);
		}
	}
	if (q->ede != EDE_NONE && (settings->flags & SETTINGS_F_EDE) &&
	    (uint32_t)(p - w->r.msg) + OPTION_HEADER_BYTES + 2 <= end) {
		be16 code = be16_from((uint16_t)q->ede);

		p = put_option(p, EDNS_EDE, &code, 2);
	}
	store_be16(opt + 9, (uint16_t)(p - opt - EDNS_OPT_FIXED_BYTES));
	w->r.pos = (uint32_t)(p - w->r.msg);
	w->r.count[SECTION_ADDITIONAL]++;
}
