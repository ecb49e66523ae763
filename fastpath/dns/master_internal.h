/* SPDX-License-Identifier: Apache-2.0 */
/* master_internal.h: the reader's state, shared by master.c (records), master_directive.c and master_generate.c. */
#pragma once
#include "dns/master.h"
#include "dns/master_lex.h"

#define MASTER_MAX_TTL_S 0x7fffffffu /* RFC 2181 section 8 */
#define MASTER_MAX_INCLUDES 65536u   /* files read in all: a file that includes itself twice doubles at each level */
#define MASTER_MAX_PATH_BYTES 4096u
#define MASTER_TYPE_CACHE 16u

enum master_owner {
	MASTER_OWNER_NONE, /* no entry named one yet */
	MASTER_OWNER_BAD,  /* the last one had an error: what follows it is checked but not handed over */
	MASTER_OWNER_KNOWN,
};

/* One open file. Origin and owner are the file's own: an $INCLUDE changes neither in the including file. */
struct master_source {
	struct master_file file;
	struct master_lexer lexer;
	enum master_owner owner_state;
	size_t owner_bytes;
	uint8_t owner[NAME_MAX_BYTES];
	uint8_t origin[NAME_MAX_BYTES];
};

struct master_type_slot {
	uint64_t text;
	uint16_t type;
};

struct master_reader {
	const struct master_options *options;
	const struct master_callbacks *callbacks;
	struct master_result result;
	uint32_t depth; /* of source in use; 0 is the first file */
	uint32_t includes;
	uint32_t ttl_s, default_ttl_s;
	bool ttl_known, default_ttl_known, ttl_missed;
	struct master_type_slot type_cache[MASTER_TYPE_CACHE];
	struct master_source source[MASTER_MAX_INCLUDE_DEPTH + 1];
	uint8_t rdata[RDATA_MAX_BYTES];
	struct master_entry entry;
};

/* What stands between owner and record data. */
struct master_header {
	uint16_t type;
	uint32_t ttl_s;
	bool ttl_given;
	uint32_t next; /* index of the word behind the type */
};

ALWAYS_INLINE struct master_source *master_source(struct master_reader *r) { return &r->source[r->depth]; }

/* Where `at`, which lies in the current entry, stands. */
struct master_place master_place_at(struct master_reader *r, const char *at);
/* Place of word i of the current entry, or of its end if there are not so many. */
struct master_place master_place_of(struct master_reader *r, uint32_t i);
void master_error(struct master_reader *r, struct master_place place, const char *format, ...) PRINTF(3, 4);

/* A word as error messages show it: quoted, cut, printable. "the end of the line" if there is none. */
#define MASTER_SHOWN_BYTES 64
const char *master_show(char out[static MASTER_SHOWN_BYTES], const struct rdata_token *token);
const char *master_show_word(char out[static MASTER_SHOWN_BYTES], const struct master_reader *r, uint32_t i);

/* [TTL] [class] type or [class] [TTL] type from word `first` on. False after an error was reported. */
bool master_header_parse(struct master_reader *r, uint32_t first, struct master_header *out);
/* Checks the data in words [first, count) of r->entry and hands the record over. `generated` is the place for everything if
 * the words don't stand in the file (else NULL). False if the data was wrong; the error was reported. */
bool master_deliver(struct master_reader *r, const uint8_t *owner, size_t owner_bytes, const struct master_header *header,
		    uint32_t first, const struct master_place *generated);
/* ERR_SYNTAX: not the shape of a TTL; ERR_RANGE: it is one, but above MASTER_MAX_TTL_S. */
enum err master_ttl_parse(const char *text, size_t text_bytes, uint32_t *ttl_s);

/* The current entry's first word starts with a dollar sign. */
void master_directive(struct master_reader *r);
void master_generate(struct master_reader *r);
