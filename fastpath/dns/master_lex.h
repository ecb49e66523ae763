/* SPDX-License-Identifier: Apache-2.0 */
/* master_lex.h: splits a master file into entries and entries into words (RFC 1035 section 5.1). Private to master*.c.
 *
 * An entry ends at a line end outside parentheses. Line ends are LF, CR LF and a lone CR, everywhere. Tabs, vertical tabs
 * and form feeds are blanks. Words borrow the file's text; escapes in them are not resolved, only not split at.
 * A word that ends in '=' with a quote behind it goes on to the closing quote, quotes included (SvcParams). */
#pragma once
#include "base/base.h"
#include "dns/rdata.h"

/* The largest legal entry is an NSEC that lists all 65,536 types: owner, TTL, class, type and next name stand before them. */
#define MASTER_MAX_TOKENS 65600u
/* One word; the longest legal one is an SvcParam of 65,535 octets, each written as \DDD. */
#define MASTER_MAX_TOKEN_BYTES (1u << 20)
/* Every parenthesis that is not closed costs a second reading of what follows it. Behind these many the file is given up. */
#define MASTER_MAX_RECOVERIES 16u

struct master_lexer {
	const char *pos_, *end_; /* the next octet, and the end of the text */
	const char *line_start_;
	uint32_t line_;
	uint32_t recoveries_;
};

struct master_entry {
	const char *start;	      /* first octet of the entry's first line */
	const char *end;	      /* behind the last word */
	uint32_t line, first_line;    /* of start; of the first word */
	const char *first_line_start; /* first octet of the first word's line */
	bool starts_blank;	      /* the first line starts with a blank: the owner is the last one */
	bool has_pairs;		      /* some word is key="value" */
	uint32_t count;
	struct rdata_token token[MASTER_MAX_TOKENS];
};

struct master_lex_error {
	const char *at; /* the offending octet */
	uint32_t line;	/* of at */
	const char *line_start;
	const char *text; /* a static sentence */
};

enum master_lex_result { MASTER_LEX_ENTRY, MASTER_LEX_END, MASTER_LEX_ERROR };

void master_lexer_init(struct master_lexer *l, const char *text, size_t text_bytes);
/* The next entry that has words. After MASTER_LEX_ERROR the lexer stands at the place where the next entry probably starts. */
enum master_lex_result master_lex_entry(struct master_lexer *l, struct master_entry *e, struct master_lex_error *error);
/* Splits key="value" words from index `first` on into key= and "value", as all types but the SvcParams ones have them.
 * False if they are more than MASTER_MAX_TOKENS then. */
bool master_lex_split_pairs(struct master_entry *e, uint32_t first);
/* First octet of a word's text in the file: its opening quote if it has one. */
ALWAYS_INLINE const char *master_token_at(const struct rdata_token *t) { return t->text - (t->quoted ? 1 : 0); }
