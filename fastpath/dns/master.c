/* SPDX-License-Identifier: Apache-2.0 */
/* The reader proper: entries to records. The fast case is an entry on one line with a known type; what it costs beyond the
 * lexer is two calls, name_from_text and rdata_from_text. */
#include "dns/master.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "dns/master_internal.h"

#define ERROR_TEXT_BYTES 512
#define SHOWN_OCTETS 40
#define SOA_MINIMUM_BYTES 4

static struct master_place place_from(struct master_reader *r, uint32_t line, const char *line_start, const char *at)
{
	return (struct master_place){ master_source(r)->file.name, line, (uint32_t)(at - line_start) + 1 };
}

struct master_place master_place_at(struct master_reader *r, const char *at)
{
	const char *line_start = r->entry.start;
	uint32_t line = r->entry.line;

	for (const char *p = r->entry.start; p < at; p++) {
		if (*p == '\r' && p + 1 < at && p[1] == '\n')
			continue;
		if (*p == '\n' || *p == '\r') {
			line++;
			line_start = p + 1;
		}
	}
	return place_from(r, line, line_start, at);
}

struct master_place master_place_of(struct master_reader *r, uint32_t i)
{
	return master_place_at(r, i < r->entry.count ? master_token_at(&r->entry.token[i]) : r->entry.end);
}

void master_error(struct master_reader *r, struct master_place place, const char *format, ...)
{
	char text[ERROR_TEXT_BYTES];
	va_list args;

	if (r->result.stopped)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	r->result.errors++;
	if (!r->callbacks->error(r->callbacks->user, place, text))
		r->result.stopped = true;
}

const char *master_show(char out[static MASTER_SHOWN_BYTES], const struct rdata_token *token)
{
	size_t used = 0;

	out[used++] = '\'';
	for (uint32_t i = 0; i < token->bytes; i++) {
		uint8_t octet = (uint8_t)token->text[i];

		if (used > SHOWN_OCTETS) {
			used += (size_t)snprintf(out + used, MASTER_SHOWN_BYTES - used, "...");
			break;
		}
		if (octet >= ' ' && octet < 0x7f)
			out[used++] = (char)octet;
		else
			used += (size_t)snprintf(out + used, MASTER_SHOWN_BYTES - used, "\\%03u", octet);
	}
	out[used++] = '\'';
	out[used] = '\0';
	return out;
}

const char *master_show_word(char out[static MASTER_SHOWN_BYTES], const struct master_reader *r, uint32_t i)
{
	return i < r->entry.count ? master_show(out, &r->entry.token[i]) : "the end of the entry";
}

/* The same few types fill a file, so their words are looked up once. Keyed by up to eight octets of text. */
static bool type_from_word(struct master_reader *r, const struct rdata_token *t, uint16_t *type)
{
	uint64_t key = 0;
	struct master_type_slot *slot;

	if (t->quoted)
		return false;
	if (t->bytes > sizeof(key))
		return rr_type_from_text(t->text, t->bytes, type);
	for (uint32_t i = 0; i < t->bytes; i++)
		key = key << 8 | (uint8_t)t->text[i];
	slot = &r->type_cache[(key ^ key >> 8) % MASTER_TYPE_CACHE];
	if (slot->text != key) {
		uint16_t found;

		if (!rr_type_from_text(t->text, t->bytes, &found))
			return false;
		*slot = (struct master_type_slot){ key, found };
	}
	*type = slot->type;
	return true;
}

/* Whether the word is a class; an error is reported for one that is not the zone's. Most words are ruled out by their first
 * letter: IN, CH, HS, CLASSnnn, ANY, NONE. */
static bool class_from_word(struct master_reader *r, uint32_t i, bool *wrong)
{
	const struct rdata_token *t = &r->entry.token[i];
	char shown[MASTER_SHOWN_BYTES], zone_class[16];
	uint16_t class_;

	if (i >= r->entry.count || t->quoted || t->bytes < 2)
		return false;
	if (t->bytes == 2 && (t->text[0] | 0x20) == 'i' && (t->text[1] | 0x20) == 'n')
		class_ = RR_CLASS_IN;
	else if (!rr_class_from_text(t->text, t->bytes, &class_))
		return false;
	if (class_ == r->options->class_)
		return true;
	rr_class_to_text(zone_class, r->options->class_);
	master_error(r, master_place_of(r, i), "expected the zone's class %s, found %s", zone_class, master_show(shown, t));
	*wrong = true;
	return true;
}

/* Whether the word is a TTL. No type, class or name-like mnemonic starts with a digit. */
static bool ttl_from_word(struct master_reader *r, uint32_t i, struct master_header *out, bool *wrong)
{
	const struct rdata_token *t = &r->entry.token[i];
	char shown[MASTER_SHOWN_BYTES];
	enum err err;

	if (i >= r->entry.count || t->quoted || t->bytes == 0 || t->text[0] < '0' || t->text[0] > '9')
		return false;
	err = master_ttl_parse(t->text, t->bytes, &out->ttl_s);
	if (err == ERR_SYNTAX)
		return false;
	out->ttl_given = true;
	if (err != ERR_OK) {
		master_error(r, master_place_of(r, i), "expected a TTL of at most %u seconds, found %s", MASTER_MAX_TTL_S,
			     master_show(shown, t));
		*wrong = true;
	}
	return true;
}

/* Types that only messages have (RFC 6895 section 3.1), and those that RFC 1123 section 6.1.2.3 bans from files. */
static const char *type_refused(uint16_t type)
{
	if (type == 0 || type == RR_OPT || (type >= 128 && type <= 255))
		return "a type that zones can hold";
	if (type == 3 || type == 4)
		return "MX instead of an obsolete type";
	return NULL;
}

bool master_header_parse(struct master_reader *r, uint32_t first, struct master_header *out)
{
	char shown[MASTER_SHOWN_BYTES];
	const char *wanted;
	bool wrong = false, has_class;
	uint32_t i = first;

	out->ttl_given = false;
	out->type = 0;
	has_class = class_from_word(r, i, &wrong);
	i += has_class;
	i += !wrong && ttl_from_word(r, i, out, &wrong);
	if (!has_class && out->ttl_given && !wrong)
		i += class_from_word(r, i, &wrong);
	if (wrong)
		return false;
	if (out->ttl_given) {
		r->ttl_s = out->ttl_s;
		r->ttl_known = true;
	}
	out->next = i + 1;
	if (i >= r->entry.count || !type_from_word(r, &r->entry.token[i], &out->type)) {
		wanted = i == first					  ? "a TTL, a class or a type"
			 : out->ttl_given && !has_class && i == first + 1 ? "a class or a type"
			 : has_class && !out->ttl_given			  ? "a TTL or a type"
									  : "a type";
		master_error(r, master_place_of(r, i), "expected %s, found %s", wanted, master_show_word(shown, r, i));
		return false;
	}
	wanted = type_refused(out->type);
	if (unlikely(wanted != NULL)) {
		master_error(r, master_place_of(r, i), "expected %s, found %s", wanted, master_show_word(shown, r, i));
		return false;
	}
	return true;
}

/* RFC 2308 section 4 and, without $TTL, RFC 1035 section 5.1: the last one stated. Before any was, the SOA's minimum counts. */
static uint32_t ttl_implied(struct master_reader *r, uint16_t type, size_t rdata_bytes, struct master_place place)
{
	if (r->default_ttl_known)
		return r->default_ttl_s;
	if (r->ttl_known)
		return r->ttl_s;
	if (type == RR_SOA && rdata_bytes >= SOA_MINIMUM_BYTES) {
		uint32_t minimum_s = load_be32(&r->rdata[rdata_bytes - SOA_MINIMUM_BYTES]);

		r->default_ttl_s = minimum_s <= MASTER_MAX_TTL_S ? minimum_s : 0; /* RFC 2181 section 8 */
		r->default_ttl_known = true;
		return r->default_ttl_s;
	}
	if (!r->ttl_missed)
		master_error(r, place, "expected a TTL: neither this entry nor one before it states one, and there is no $TTL");
	r->ttl_missed = true;
	return 0;
}

static bool is_svcb_like(uint16_t type) { return type == RR_SVCB || type == RR_HTTPS; }

bool master_deliver(struct master_reader *r, const uint8_t *owner, size_t owner_bytes, const struct master_header *header,
		    uint32_t first, const struct master_place *generated)
{
	struct master_entry *e = &r->entry;
	struct rdata_error error;
	size_t rdata_bytes = 0;
	struct master_record record;
	struct master_place place;

	place = generated != NULL ? *generated : place_from(r, e->first_line, e->first_line_start, master_token_at(&e->token[0]));
	if (unlikely(e->has_pairs) && !is_svcb_like(header->type) && !master_lex_split_pairs(e, first)) {
		master_error(r, place, "expected an entry of at most %u words", MASTER_MAX_TOKENS);
		return false;
	}
	if (unlikely(rdata_from_text(header->type, e->token + first, e->count - first, master_source(r)->origin, r->rdata,
				     sizeof(r->rdata), &rdata_bytes, &error) != ERR_OK)) {
		master_error(r, generated != NULL ? *generated : master_place_of(r, first + error.token), "%s", error.expected);
		return false;
	}
	record = (struct master_record){ .owner = owner,
					 .owner_bytes = owner_bytes,
					 .type = header->type,
					 .class_ = r->options->class_,
					 .rdata = r->rdata,
					 .rdata_bytes = (uint16_t)rdata_bytes,
					 .place = place };
	record.ttl_s = header->ttl_given ? header->ttl_s : ttl_implied(r, header->type, rdata_bytes, place);
	if (owner_bytes == 0) /* the owner had an error: only the rest was to be checked */
		return true;
	r->result.records++;
	if (!r->callbacks->record(r->callbacks->user, &record))
		r->result.stopped = true;
	return true;
}

static void owner_parse(struct master_reader *r, const struct rdata_token *t)
{
	struct master_source *s = master_source(r);
	char shown[MASTER_SHOWN_BYTES];
	const char *why = NULL;

	if (t->bytes == 1 && t->text[0] == '@' && !t->quoted) {
		s->owner_bytes = name_wire_bytes(s->origin, NAME_MAX_BYTES);
		memcpy(s->owner, s->origin, s->owner_bytes);
	} else {
		s->owner_bytes = name_from_text(s->owner, t->text, t->bytes, s->origin, &why);
	}
	s->owner_state = s->owner_bytes > 0 ? MASTER_OWNER_KNOWN : MASTER_OWNER_BAD;
	if (s->owner_bytes == 0)
		master_error(r, master_place_of(r, 0), "expected an owner name, found %s: %s", master_show(shown, t), why);
}

static void read_entry(struct master_reader *r)
{
	struct master_source *s = master_source(r);
	struct master_entry *e = &r->entry;
	struct master_header header;

	if (!e->starts_blank) {
		if (e->token[0].bytes > 0 && e->token[0].text[0] == '$' && !e->token[0].quoted) {
			master_directive(r);
			return;
		}
		owner_parse(r, &e->token[0]);
	} else if (s->owner_state == MASTER_OWNER_NONE) {
		master_error(r, master_place_of(r, 0),
			     "expected an owner name in the first column: there is no entry before this one");
		s->owner_state = MASTER_OWNER_BAD;
		s->owner_bytes = 0;
	}
	if (master_header_parse(r, !e->starts_blank, &header))
		master_deliver(r, s->owner, s->owner_bytes, &header, header.next, NULL);
}

/* Reads the topmost file to its end, or to an $INCLUDE, which puts another on top. */
static void read_source(struct master_reader *r)
{
	uint32_t depth = r->depth;
	struct master_source *s = master_source(r);
	struct master_lex_error error;

	while (r->depth == depth && !r->result.stopped) {
		switch (master_lex_entry(&s->lexer, &r->entry, &error)) {
		case MASTER_LEX_ENTRY: read_entry(r); break;
		case MASTER_LEX_ERROR:
			master_error(r, place_from(r, error.line, error.line_start, error.at), "%s", error.text);
			break;
		case MASTER_LEX_END:
			if (depth == 0)
				return;
			if (r->callbacks->close != NULL)
				r->callbacks->close(r->callbacks->user, &s->file);
			r->depth--;
			return;
		}
	}
}

static void reader_init(struct master_reader *r, const struct master_file *file, const struct master_options *options,
			const struct master_callbacks *callbacks)
{
	struct master_source *s = &r->source[0];

	/* The big arrays are left as they are. */
	r->options = options;
	r->callbacks = callbacks;
	r->result = (struct master_result){ 0 };
	r->depth = r->includes = 0;
	r->ttl_s = 0;
	r->default_ttl_s = options->default_ttl_s;
	r->default_ttl_known = options->has_default_ttl;
	r->ttl_known = r->ttl_missed = false;
	memset(r->type_cache, 0, sizeof(r->type_cache));
	s->file = *file;
	s->owner_state = MASTER_OWNER_NONE;
	s->owner_bytes = 0;
	memcpy(s->origin, options->origin, name_wire_bytes(options->origin, NAME_MAX_BYTES));
	master_lexer_init(&s->lexer, file->text, file->bytes);
}

struct master_result master_read(const struct master_file *file, const struct master_options *options,
				 const struct master_callbacks *callbacks)
{
	struct master_reader r;

	reader_init(&r, file, options, callbacks);
	for (;;) {
		uint32_t depth = r.depth;

		read_source(&r);
		if (r.result.stopped || (depth == 0 && r.depth == 0))
			break;
	}
	for (; r.depth > 0; r.depth--) /* stopped inside an $INCLUDE */
		if (callbacks->close != NULL)
			callbacks->close(callbacks->user, &master_source(&r)->file);
	return r.result;
}
