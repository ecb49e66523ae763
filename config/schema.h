/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h: what skua.yaml may hold: one row a key. Loading, defaults, validation, hints and docs/config.md follow from it. */
#pragma once
#include "config/config.h"

enum schema_kind {
	SCHEMA_TEXT,	     /* char *; min and max: octets */
	SCHEMA_USER,	     /* char * */
	SCHEMA_PATH,	     /* char *, absolute; max: octets */
	SCHEMA_BOOL,	     /* bool */
	SCHEMA_COUNT,	     /* unsigned */
	SCHEMA_SIZE,	     /* unsigned or uint64_t, by field_bytes */
	SCHEMA_DURATION,     /* unsigned, in units of unit_ns */
	SCHEMA_CHOICE,	     /* enum, the index in words */
	SCHEMA_LEVEL,	     /* none: into config.log; the row's key is the subsystem, words the levels */
	SCHEMA_ADDRESSES,    /* struct config_address * and a count */
	SCHEMA_PREFIXES,     /* struct config_prefix * and a count */
	SCHEMA_NAMES,	     /* struct config_name * and a count */
	SCHEMA_PATHS,	     /* char ** and a count */
	SCHEMA_RECORDS,	     /* char ** and a count */
	SCHEMA_INTERFACES,   /* char ** and a count */
	SCHEMA_SECRETS,	     /* char ** and a count */
	SCHEMA_CPUS,	     /* unsigned * and a count */
	SCHEMA_ZONE_NAME,    /* of struct config_zone: name and name_text */
	SCHEMA_ZONE_FILE,    /* of struct config_zone: file */
	SCHEMA_FORWARD_ZONE, /* of struct config_forward: struct config_name */
	SCHEMA_UPSTREAMS,    /* of struct config_forward: struct config_upstream * and a count */
	SCHEMA_LATER,	     /* none: a key of a later version, refused */
	SCHEMA_EMPTY_LIST,   /* none: a list of a later version, which may be there as long as it is empty */
};
/* When a changed value takes effect. All of skua.yaml is read when `skua run` starts; some things have a quicker way beside it. */
enum schema_effect {
	EFFECT_RESTART,
	EFFECT_RESTART_FILE,  /* a master file's content: at `skua reload` */
	EFFECT_RESTART_LEVEL, /* log levels: at once by `skua log level` */
};

/* clang-format off */
struct schema_row {
	const char *key;
	enum schema_kind kind;
	enum schema_effect effect;
	size_t offset, field_bytes;     /* in struct config; in struct config_zone or config_forward for a list's rows */
	size_t count_offset;            /* lists */
	uint64_t min, max;              /* counts, sizes; durations in nanoseconds; lists: entries */
	uint64_t unit_ns;               /* durations */
	const char *const *words;       /* choices; ends in NULL */
	unsigned words_later;           /* bit i: words[i] comes with a later version */
	bool has_auto;                  /* "auto" stands for 0, or for an empty list */
	bool is_power_of_two;
	bool is_optional;               /* paths: "" stands for none */
	const char *fallback;           /* as in the file: a word, "", [] or [ words, with commas ]; NULL: the key is required, or fallback_text says what is found out */
	const char *fallback_text;      /* what docs say instead of fallback */
	const char *help;
};
enum schema_list { SCHEMA_LIST_NONE, SCHEMA_LIST_ZONES, SCHEMA_LIST_FORWARD };
struct schema_section {
	const char *name;
	const struct schema_row *rows;
	size_t row_count;
	enum schema_list list;          /* other than NONE: a list of mappings, each with these rows */
	bool is_later;                  /* of a later version: refused */
	const char *help;
};
/* clang-format on */
extern const struct schema_section schema_sections[];
extern const size_t schema_section_count;

#define SCHEMA_EXPECTED_BYTES 256
/* What a value of the row must look like: "a number from 512 to 4096". */
void schema_expected(char out[static SCHEMA_EXPECTED_BYTES], const struct schema_row *row);
