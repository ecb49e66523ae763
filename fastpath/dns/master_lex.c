/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/master_lex.h"

enum char_class { WORD = 0, BLANK, LINE_END, QUOTE, OPEN, CLOSE, COMMENT, ESCAPE, ZERO };

static const uint8_t class_of[256] = {
	[0] = ZERO,    ['\t'] = BLANK, ['\v'] = BLANK, ['\f'] = BLANK,	[' '] = BLANK,	 ['\n'] = LINE_END,
	['"'] = QUOTE, ['('] = OPEN,   [')'] = CLOSE,  [';'] = COMMENT, ['\\'] = ESCAPE, ['\r'] = LINE_END,
};

ALWAYS_INLINE enum char_class class_at(const char *p) { return (enum char_class)class_of[(uint8_t)*p]; }

/* Behind the line end at p. */
ALWAYS_INLINE const char *skip_line_end(const char *p, const char *end)
{
	return p + (*p == '\r' && p + 1 < end && p[1] == '\n' ? 2 : 1);
}

/* To the line end (not behind it) or the end of the text. */
static const char *find_line_end(const char *p, const char *end)
{
	while (p < end && *p != '\n' && *p != '\r')
		p++;
	return p;
}

/* Behind an escape: the octet after a backslash is part of the word unless it ends the line or is no text at all. */
ALWAYS_INLINE const char *skip_escape(const char *p, const char *end)
{
	if (p + 1 < end && class_at(p + 1) != LINE_END && class_at(p + 1) != ZERO)
		return p + 2;
	return p + 1;
}

ALWAYS_INLINE const char *scan_word(const char *p, const char *end)
{
	for (;;) {
		while (p < end && class_at(p) == WORD)
			p++;
		if (p == end || *p != '\\')
			return p;
		p = skip_escape(p, end);
	}
}

/* From behind the opening quote to the closing one. A line end, a NUL or the end of the text stop it as well. */
static const char *scan_quoted(const char *p, const char *end)
{
	while (p < end) {
		enum char_class c = class_at(p);

		if (c == QUOTE || c == LINE_END || c == ZERO)
			break;
		p = c == ESCAPE ? skip_escape(p, end) : p + 1;
	}
	return p;
}

void master_lexer_init(struct master_lexer *l, const char *text, size_t text_bytes)
{
	if (text_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark, as editors leave it */
		text += 3;
		text_bytes -= 3;
	}
	*l = (struct master_lexer){ .pos_ = text, .end_ = text + text_bytes, .line_start_ = text, .line_ = 1 };
}

static void next_line(struct master_lexer *l, const char *line_end)
{
	if (line_end < l->end_) {
		line_end = skip_line_end(line_end, l->end_);
		l->line_++;
		l->line_start_ = line_end;
	}
	l->pos_ = line_end;
}

/* Goes on behind the current line: inside parentheses at the next line that starts with a word, which looks like an owner.
 * Lines that start with blanks, quotes, comments or parentheses rather belong to the damaged entry. */
static void recover(struct master_lexer *l, const char *from, bool in_parentheses)
{
	next_line(l, find_line_end(from, l->end_));
	while (in_parentheses && l->pos_ < l->end_ && class_at(l->pos_) != WORD && class_at(l->pos_) != ESCAPE)
		next_line(l, find_line_end(l->pos_, l->end_));
}

struct open_place {
	const char *at, *line_start;
	uint32_t line;
};

/* An entry that can't be ended. The text from its outermost parenthesis on is read again, so this is rationed. */
static enum master_lex_result give_up_parenthesis(struct master_lexer *l, const struct open_place *open, const char *text,
						  struct master_lex_error *error)
{
	*error = (struct master_lex_error){ .at = open->at, .line = open->line, .line_start = open->line_start, .text = text };
	if (++l->recoveries_ >= MASTER_MAX_RECOVERIES) {
		error->text =
			"expected a closing parenthesis for this one; too many are missing, the rest of the file is not read";
		l->pos_ = l->end_;
		return MASTER_LEX_ERROR;
	}
	l->line_ = open->line;
	l->line_start_ = open->line_start;
	recover(l, open->at, true);
	return MASTER_LEX_ERROR;
}

static enum master_lex_result bad_octet(struct master_lexer *l, const char *at, bool in_parentheses, const char *text,
					struct master_lex_error *error)
{
	*error = (struct master_lex_error){ .at = at, .line = l->line_, .line_start = l->line_start_, .text = text };
	recover(l, at, in_parentheses);
	return MASTER_LEX_ERROR;
}

static void entry_begin(struct master_lexer *l, struct master_entry *e, const char *p)
{
	e->start = p;
	e->line = l->line_;
	e->starts_blank = p < l->end_ && class_at(p) == BLANK;
}

/* False if the entry is full or the word too long. */
ALWAYS_INLINE bool entry_add(const struct master_lexer *l, struct master_entry *e, const char *start, const char *end,
			     bool quoted)
{
	if (e->count == 0) {
		e->first_line = l->line_;
		e->first_line_start = l->line_start_;
	}
	if (unlikely(e->count == MASTER_MAX_TOKENS || end - start > MASTER_MAX_TOKEN_BYTES))
		return false;
	e->token[e->count++] = (struct rdata_token){ .text = start, .bytes = (uint32_t)(end - start), .quoted = quoted };
	return true;
}

/* Reads one word or quoted string at p. NULL when the text breaks off, with *bad at the octet that did it. */
ALWAYS_INLINE const char *scan_token(struct master_entry *e, const char *p, const char *end, bool quoted, const char **bad)
{
	const char *stop;

	if (!quoted) {
		stop = scan_word(p, end);
		if (stop == end || *stop != '"' || stop == p || stop[-1] != '=')
			return stop;
		e->has_pairs = true;
		p = stop;
	}
	stop = scan_quoted(p + 1, end);
	if (stop < end && *stop == '"')
		return stop + 1;
	*bad = stop < end && *stop == 0 ? stop : p;
	return NULL;
}

static const char zero_text[] = "expected text, found a NUL octet";
static const char quote_text[] = "expected a closing quote on the same line as this one, found the end of the line";
static const char many_text[] =
	"expected an entry of at most 65600 words of at most 1048576 octets; is a parenthesis not closed?";

enum master_lex_result master_lex_entry(struct master_lexer *l, struct master_entry *e, struct master_lex_error *error)
{
	const char *p = l->pos_, *end = l->end_, *stop, *bad = p;
	struct open_place open = { 0 };
	unsigned depth = 0;

	e->count = 0;
	e->has_pairs = false;
	entry_begin(l, e, p);
	while (p < end) {
		enum char_class c = class_at(p);

		switch (c) {
		case BLANK: p++; continue;
		case WORD:
		case ESCAPE:
		case QUOTE:
			stop = scan_token(e, p, end, c == QUOTE, &bad);
			if (unlikely(stop == NULL))
				return bad_octet(l, bad, depth > 0, *bad == 0 ? zero_text : quote_text, error);
			if (unlikely(!entry_add(l, e, p + (c == QUOTE), stop - (c == QUOTE), c == QUOTE))) {
				if (depth > 0)
					return give_up_parenthesis(l, &open, many_text, error);
				return bad_octet(l, p, false, many_text, error);
			}
			e->end = p = stop;
			continue;
		case COMMENT: p = find_line_end(p, end); continue;
		case OPEN:
			if (depth++ == 0)
				open = (struct open_place){ p, l->line_start_, l->line_ };
			p++;
			continue;
		case CLOSE:
			if (unlikely(depth == 0))
				return bad_octet(l, p, false, "expected no closing parenthesis: none is open", error);
			depth--;
			p++;
			continue;
		case LINE_END:
			next_line(l, p);
			p = l->pos_;
			if (depth > 0)
				continue;
			if (e->count > 0)
				return MASTER_LEX_ENTRY;
			entry_begin(l, e, p);
			continue;
		case ZERO: return bad_octet(l, p, depth > 0, zero_text, error);
		}
	}
	if (depth > 0)
		return give_up_parenthesis(l, &open, "expected a closing parenthesis for this one, found the end of the file",
					   error);
	l->pos_ = p;
	return e->count > 0 ? MASTER_LEX_ENTRY : MASTER_LEX_END;
}

/* Where the value's opening quote stands in a key="value" word, 0 if it is none. */
static uint32_t pair_quote(const struct rdata_token *t)
{
	const char *quote;

	if (t->quoted || t->bytes < 3 || t->text[t->bytes - 1] != '"')
		return 0;
	quote = scan_word(t->text, t->text + t->bytes);
	return quote < t->text + t->bytes && *quote == '"' ? (uint32_t)(quote - t->text) : 0;
}

bool master_lex_split_pairs(struct master_entry *e, uint32_t first)
{
	uint32_t pairs = 0, to;

	for (uint32_t i = first; i < e->count; i++)
		pairs += pair_quote(&e->token[i]) > 0;
	if (pairs > MASTER_MAX_TOKENS - e->count)
		return false;
	to = e->count + pairs;
	for (uint32_t from = e->count; to > from;) { /* from the end, so that no word is overwritten before it was moved */
		struct rdata_token t = e->token[--from];
		uint32_t quote = pair_quote(&t);

		if (quote > 0) {
			e->token[--to] = (struct rdata_token){ t.text + quote + 1, t.bytes - quote - 2, true };
			t.bytes = quote;
		}
		e->token[--to] = t;
	}
	e->count += pairs;
	return true;
}
