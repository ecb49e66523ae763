/* SPDX-License-Identifier: Apache-2.0 */
/* master.h: master files (RFC 1035 section 5, RFC 2308 section 4 for $TTL, BIND's $GENERATE), as a pure reader over
 * memory: the caller opens files, the reader hands over records and errors by callbacks. No allocation: its state,
 * 1.2 MiB of it (an entry's words, 65,600 at most, and its data), is on the stack.
 *
 * Line ends are LF, CR LF and a lone CR; form feeds and vertical tabs are blanks; columns count octets. Where BIND and the RFC
 * leave a choice it does what BIND does; docs/zone-checks.md lists the differences.
 * It goes on after an error with the next entry, so that one run reports more than the first. */
#pragma once
#include "base/base.h"
#include "dns/name.h"
#include "dns/rdata.h"

#define MASTER_MAX_INCLUDE_DEPTH 16
#define MASTER_MAX_GENERATE (1u << 24)

struct master_place {
	const char *file;
	uint32_t line, column;
}; /* 1-based; the file name is borrowed */

struct master_record {
	const uint8_t *owner; /* wire, case kept, valid during the call */
	size_t owner_bytes;
	uint16_t type, class_;
	uint32_t ttl_s;
	const uint8_t *rdata; /* wire, checked, valid during the call */
	uint16_t rdata_bytes;
	struct master_place place; /* of the entry's first token */
};
struct master_file {
	const char *name;
	const char *text;
	size_t bytes;
}; /* bytes need not end in a newline or NUL */

struct master_callbacks {
	/* False stops the reading (the callback has said why). */
	bool (*record)(void *user, const struct master_record *record);
	/* message: what was expected and what stands there. False stops the reading. */
	bool (*error)(void *user, struct master_place place, const char *message);
	/* $INCLUDE: opens `path` (relative ones are relative to `from`); close is called when it was read. NULL: not allowed. */
	enum err (*open)(void *user, const char *path, const char *from, struct master_file *out);
	void (*close)(void *user, struct master_file *file);
	void *user;
};
struct master_options {
	const uint8_t *origin;	/* initial $ORIGIN: the zone's name */
	uint16_t class_;	/* the zone's class; records of another are errors */
	uint32_t default_ttl_s; /* used until $TTL or an explicit TTL, if has_default_ttl; RFC 1035's last-stated rule and the
	                              * SOA minimum otherwise, as BIND does */
	bool has_default_ttl;
};
struct master_result {
	uint64_t records, errors;
	bool stopped;
};

struct master_result master_read(const struct master_file *file, const struct master_options *options,
				 const struct master_callbacks *callbacks);
/* "1w2d3h4m5s" or plain seconds, at most 2^31-1. False if it is neither. */
bool master_ttl_from_text(const char *text, size_t text_bytes, uint32_t *ttl_s);
