/* SPDX-License-Identifier: Apache-2.0 */
/* $GENERATE start-stop[/step] owner [TTL] [class] type data: BIND's way to write many similar records. In owner and data, each
 * $ stands for the iterator, $$ and \$ for a dollar sign, and ${offset[,width[,base]]} for the iterator plus offset, zero-padded
 * to width, in base d, o, x, X, or as reversed nibbles with dots between (n, N; the width counts the dots). Data of several
 * words is quoted as a whole. */
#include <stdio.h>

#include "dns/master_internal.h"

#define OWNER_TEXT_BYTES 2048
#define DATA_TEXT_BYTES 4096
#define MAX_WIDTH 255
#define NUMBER_BYTES 320 /* MAX_WIDTH, or the longest number, or 32 nibbles, and a NUL */

struct range {
	uint32_t start, stop, step;
};
struct text {
	char *out;
	size_t used, max;
};

struct format {
	int64_t offset;
	uint32_t width;
	char base;
};

static bool text_add(struct text *t, const char *from, size_t bytes)
{
	if (bytes > t->max - t->used)
		return false;
	memcpy(t->out + t->used, from, bytes);
	t->used += bytes;
	return true;
}

/* Digits at *p, at most up to max. */
static bool number_parse(const char **p, const char *end, uint32_t max, uint32_t *out)
{
	uint64_t number = 0;
	const char *start = *p;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
		number = number * 10 + (uint64_t)(**p - '0');
		if (number > max)
			return false;
	}
	*out = (uint32_t)number;
	return *p > start;
}

static bool range_parse(const struct rdata_token *t, struct range *out)
{
	const char *p = t->text, *end = p + t->bytes;

	out->step = 1;
	if (t->quoted || !number_parse(&p, end, INT32_MAX, &out->start) || p == end || *p++ != '-' ||
	    !number_parse(&p, end, INT32_MAX, &out->stop))
		return false;
	if (p < end && (*p++ != '/' || !number_parse(&p, end, INT32_MAX, &out->step)))
		return false;
	return p == end && out->start <= out->stop && out->step > 0;
}

/* {offset[,width[,base]]} at *p, which stands at the brace. */
static bool format_parse(const char **p, const char *end, struct format *out)
{
	bool negative;
	uint32_t offset;

	(*p)++;
	negative = *p < end && **p == '-';
	if (*p < end && (**p == '-' || **p == '+'))
		(*p)++;
	if (!number_parse(p, end, INT32_MAX, &offset))
		return false;
	out->offset = negative ? -(int64_t)offset : (int64_t)offset;
	if (*p < end && **p == ',') {
		(*p)++;
		if (!number_parse(p, end, MAX_WIDTH, &out->width))
			return false;
		if (*p < end && **p == ',') {
			if (end - *p < 2 || memchr("doxXnN", (*p)[1], 6) == NULL)
				return false;
			out->base = (*p)[1];
			*p += 2;
		}
	}
	return *p < end && *(*p)++ == '}';
}

/* The lowest nibble first. Dots count as width, so an odd width ends in a nibble. */
static size_t nibbles(char out[static NUMBER_BYTES], uint32_t value, uint32_t width, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	size_t used = 0;

	do {
		out[used++] = digits[value & 15];
		value >>= 4;
		width -= width > 0;
		if (width > 0 || value != 0) {
			out[used++] = '.';
			width -= width > 0;
		}
	} while (width > 0 || value != 0);
	return used;
}

static bool number_add(struct text *t, uint32_t iterator, const struct format *f)
{
	char number[NUMBER_BYTES];
	uint32_t value = (uint32_t)(iterator + f->offset); /* two's complement where a base shows no sign */
	int width = (int)f->width, bytes;

	switch (f->base) {
	case 'n':
	case 'N': bytes = (int)nibbles(number, value, f->width, f->base == 'N'); break;
	case 'o': bytes = snprintf(number, sizeof(number), "%0*o", width, value); break;
	case 'x': bytes = snprintf(number, sizeof(number), "%0*x", width, value); break;
	case 'X': bytes = snprintf(number, sizeof(number), "%0*X", width, value); break;
	default: bytes = snprintf(number, sizeof(number), "%0*lld", width, (long long)iterator + (long long)f->offset); break;
	}
	return text_add(t, number, (size_t)bytes);
}

/* The template with the iterator put in. NULL, or what was wrong with it. */
static const char *expand(const struct rdata_token *template, uint32_t iterator, struct text *t)
{
	static const char too_long[] = "expected a shorter text: it does not fit when the number is put in";
	const char *p = template->text, *end = p + template->bytes;

	t->used = 0;
	while (p < end) {
		struct format f = { .base = 'd' };
		bool fits;

		if (*p == '\\' && p + 1 < end) {
			/* In a quoted template, a quote is escaped for the sake of the template only. */
			bool unescape = template->quoted && p[1] == '"';

			fits = text_add(t, p + unescape, 2u - unescape);
			p += 2;
		} else if (*p != '$') {
			fits = text_add(t, p++, 1);
		} else if (p + 1 < end && p[1] == '$') {
			fits = text_add(t, "\\$", 2);
			p += 2;
		} else {
			p++;
			if (p < end && *p == '{' && !format_parse(&p, end, &f))
				return "expected ${offset}, ${offset,width} or ${offset,width,base} with a base of d, o, x, X, n "
				       "or N";
			fits = number_add(t, iterator, &f);
		}
		if (!fits)
			return too_long;
	}
	return NULL;
}

struct generate {
	struct rdata_token owner, data; /* the templates */
	struct master_place owner_place, data_place;
	struct master_header header;
	char owner_text[OWNER_TEXT_BYTES], data_text[DATA_TEXT_BYTES];
};

/* One record. False after an error was reported: the next ones would have the same. */
static bool generate_one(struct master_reader *r, struct generate *g, uint32_t iterator)
{
	struct text owner_text = { g->owner_text, 0, sizeof(g->owner_text) },
		    data_text = { g->data_text, 0, sizeof(g->data_text) };
	const uint8_t *origin = master_source(r)->origin;
	uint8_t owner[NAME_MAX_BYTES];
	char shown[MASTER_SHOWN_BYTES];
	struct rdata_token t;
	struct master_lexer lexer;
	struct master_lex_error error;
	const char *why = expand(&g->owner, iterator, &owner_text);
	size_t owner_bytes;

	if (why == NULL) {
		t = (struct rdata_token){ .text = owner_text.out, .bytes = (uint32_t)owner_text.used };
		if (t.bytes == 1 && t.text[0] == '@') {
			owner_bytes = name_wire_bytes(origin, NAME_MAX_BYTES);
			memcpy(owner, origin, owner_bytes);
		} else {
			owner_bytes = name_from_text(owner, t.text, t.bytes, origin, &why);
		}
		if (owner_bytes == 0) {
			master_error(r, g->owner_place, "expected an owner name, found %s: %s", master_show(shown, &t), why);
			return false;
		}
	} else {
		master_error(r, g->owner_place, "%s", why);
		return false;
	}
	why = expand(&g->data, iterator, &data_text);
	if (why != NULL) {
		master_error(r, g->data_place, "%s", why);
		return false;
	}
	master_lexer_init(&lexer, data_text.out, data_text.used);
	if (master_lex_entry(&lexer, &r->entry, &error) == MASTER_LEX_ERROR) {
		master_error(r, g->data_place, "%s", error.text);
		return false;
	}
	return master_deliver(r, owner, owner_bytes, &g->header, 0, &g->data_place);
}

void master_generate(struct master_reader *r)
{
	struct master_entry *e = &r->entry;
	char shown[MASTER_SHOWN_BYTES];
	struct range range;
	struct generate g;
	uint64_t count = 0;

	if (e->count < 2 || !range_parse(&e->token[1], &range)) {
		master_error(r, master_place_of(r, 1), "expected a range start-stop or start-stop/step, found %s",
			     master_show_word(shown, r, 1));
		return;
	}
	count = (uint64_t)(range.stop - range.start) / range.step + 1;
	if (count > MASTER_MAX_GENERATE) {
		master_error(r, master_place_of(r, 1), "expected a range of at most %u numbers, found %s", MASTER_MAX_GENERATE,
			     master_show_word(shown, r, 1));
		return;
	}
	if (e->count < 3) {
		master_error(r, master_place_of(r, 2), "expected an owner name, found the end of the entry");
		return;
	}
	if (!master_header_parse(r, 3, &g.header))
		return;
	if (e->count != g.header.next + 1) {
		master_error(r, master_place_of(r, MIN(g.header.next + 1, e->count)),
			     "expected record data as one word, or quoted as a whole, found %s",
			     master_show_word(shown, r, g.header.next + 1));
		return;
	}
	g.owner = e->token[2];
	g.data = e->token[g.header.next];
	g.owner_place = master_place_of(r, 2);
	g.data_place = master_place_of(r, g.header.next);
	for (uint64_t i = 0; i < count && !r->result.stopped; i++)
		if (!generate_one(r, &g, range.start + (uint32_t)i * range.step))
			return;
}
