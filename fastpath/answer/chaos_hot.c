/* SPDX-License-Identifier: Apache-2.0 */
/* Class CH: version.bind, version.server, hostname.bind, id.server (RFC 4892), as TXT with TTL 0. */
#include "answer/render_inline.h"

struct chaos_name {
	uint8_t wire[18], bytes;
	bool is_version;
};

static const struct chaos_name chaos_names[] = {
	{ "\7version\4bind", 14, true },
	{ "\7version\6server", 16, true },
	{ "\10hostname\4bind", 15, false },
	{ "\2id\6server", 11, false },
};

void chaos_answer(struct walk *w)
{
	const struct settings *settings = &w->snapshot->settings;
	struct answer_query *q = w->q;
	const char *text = "";

	for (size_t i = 0; i < ARRAY_LEN(chaos_names); i++)
		if (q->name_bytes == chaos_names[i].bytes && memcmp(q->lower, chaos_names[i].wire, q->name_bytes) == 0)
			text = chaos_names[i].is_version ? settings->version_text : settings->identity;
	if (!(settings->flags & SETTINGS_F_CHAOS) || text[0] == '\0') {
		w->rcode = RCODE_REFUSED;
		return;
	}
	w->is_aa = true;
	if (q->qtype != RR_TXT && q->qtype != RR_ANY)
		return;
	uint32_t bytes = (uint32_t)strlen(text); /* at most 127: settings_load checks */
	uint8_t *p = w->r.msg + w->r.pos;

	if (w->r.pos + ZONE_RR_FIXED_BYTES + 1 + bytes > w->r.limit) {
		w->r.is_full = true;
		return;
	}
	store_be16(p, RENDER_POINTER | DNS_HEADER_BYTES);
	store_be16(p + 2, RR_TXT);
	store_be16(p + 4, RR_CLASS_CH);
	store_be32(p + 6, 0);
	store_be16(p + 10, (uint16_t)(1 + bytes));
	p[12] = (uint8_t)bytes;
	memcpy(p + 13, text, bytes);
	w->r.pos += ZONE_RR_FIXED_BYTES + 1 + bytes;
	w->r.count[SECTION_ANSWER]++;
}
