/* SPDX-License-Identifier: Apache-2.0 */
/* config.h: skua.yaml as the processes see it, loaded by one schema table (config/schema.c) from which docs/config.md is
 * made too. Owned whole by config_free. Every key has a default there; a value here is always present and in range.
 * A key is spelled as its field, with hyphens, in the section that the struct names: server.udp_payload is
 * "server: udp-payload:"; a unit at a field's end (_s, _ms, _us) is not part of the key. */
#pragma once
#include "base/base.h"
#include "dns/name.h"

#define CONFIG_MAX_ADDRESSES 64
#define CONFIG_MAX_INTERFACES 16
#define CONFIG_MAX_CPUS 256
#define CONFIG_MAX_ZONES 1000000
#define CONFIG_MAX_FORWARD_ZONES 4096
#define CONFIG_MAX_PREFIXES 1000000
#define CONFIG_MAX_RECORDS 100000
#define CONFIG_MAX_HOSTS_FILES 64
#define CONFIG_MAX_NAMES 1024
#define CONFIG_MAX_BYTES (128u << 20) /* of the file */
#define CONFIG_MAX_ERRORS 50	      /* reported of one file */

struct config_place {
	uint32_t line, column;
};
struct config_address {
	uint8_t family;	     /* 4 or 6 */
	uint8_t address[16]; /* 4: the first four octets, the rest zero */
	uint16_t port;
	char text[64]; /* "10.99.0.1:53", "[2001:db8::1]:53" */
	struct config_place place;
};
enum config_xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZEROCOPY, XDP_MODE_COPY, XDP_MODE_SKB };
enum config_reply { REPLY_SWAP, REPLY_ROUTE };

struct config_prefix {
	uint8_t family;	     /* 4 or 6 */
	uint8_t bits;	     /* of the address; the others are zero */
	uint8_t address[16]; /* as in struct config_address */
	struct config_place place;
};
struct config_name {
	uint8_t *name; /* wire, lower-cased */
	size_t name_bytes;
	const char *text; /* as written; lies behind name */
	struct config_place place;
};
struct config_zone {
	const uint8_t *name; /* wire, lower-cased */
	size_t name_bytes;
	const char *name_text; /* as written */
	const char *file;      /* absolute, or made absolute relative to the configuration file's folder */
	struct config_place place;
};

#define CONFIG_MAX_UPSTREAMS 64 /* of one forward zone */
enum config_strategy { STRATEGY_ORDERED, STRATEGY_FASTEST, STRATEGY_SPREAD };

/* A server that questions are forwarded to. */
struct config_upstream {
	struct config_address address; /* port 53, with TLS 853, unless another one is given; text is address and port */
	bool is_tls;		       /* then auth_name or has_pin (RFC 8310) */
	char *auth_name;	       /* the name that its certificate must have; NULL: none */
	uint8_t pin[32];	       /* SHA-256 of its SubjectPublicKeyInfo (RFC 7858 section 4.2) */
	bool has_pin;
	struct config_place place;
};
struct config_forward {
	struct config_name zone;
	struct config_upstream *to;
	size_t count; /* 1..CONFIG_MAX_UPSTREAMS */
	bool dnssec;
	enum config_strategy strategy;
	struct config_place place;
};

/* clang-format off */
struct config {
	char *path;                     /* of the file, for messages */
	struct {
		char *identity;         /* default: the host's name */
		char *state, *run;      /* folders; defaults /var/lib/skua, /run/skua */
		unsigned workers;       /* 0: auto, one per usable core */
		char *version_text;     /* CHAOS version.bind; default empty: off */
		bool chaos, nsid, cookies, ede;  /* defaults true */
		char **cookie_secrets;  /* 0 to 2, 32 hex digits each; none: a random one per `skua run` */
		size_t cookie_secret_count;
		unsigned udp_payload;   /* 512..4096, default 1232 */
		char *user_fastpath, *user_slowpath;   /* default skua-fastpath, skua-slowpath; used if they exist and we are root */
	} server;
	struct {
		struct config_address *dns;   /* default 127.0.0.1; without a port: 53 */
		size_t dns_count;
		unsigned udp_receive_buffer;  /* bytes per socket, default 16 MiB */
	} listen;
	struct {
		char **interfaces;
		size_t interface_count;
		enum config_xdp_mode mode;
		unsigned *cpus;         /* explicit list; NULL: auto */
		size_t cpu_count;
		enum config_reply reply;
		char *pin_dir;          /* default /sys/fs/bpf/skua */
		unsigned ring_size;     /* descriptors in each of RX and TX; power of two, 64..16384, default 2048 */
		unsigned busy_poll_us;  /* 0: off */
		bool enabled;           /* default true; false (or SKUA_XDP=off in the environment) keeps XDP off */
		unsigned park_after_ms; /* 20..10000, default 40: silence of a queue's thread until the kernel path serves it */
		bool verify_checksums;  /* UDP checksums of received packets; default false */
	} xdp;
	struct {
		unsigned max_connections, max_per_client;   /* 4096, 64 */
		unsigned idle_timeout_ms;                   /* 10000 */
		unsigned max_queries_in_flight;             /* per connection: 128 */
	} tcp;
	struct config_zone *zone;       /* no two of one name */
	size_t zone_count;
	struct config_forward *forward; /* no two of one zone; none: no recursion */
	size_t forward_count;
	struct {
		struct config_prefix *allow;    /* default 127.0.0.0/8, ::1/128 */
		size_t allow_count;
	} recursion;
	struct {
		uint64_t memory;        /* octets; 0: auto, a quarter of the machine's, at most 4 GiB */
		unsigned max_ttl_s, min_ttl_s;  /* 1 d, 0; min is never above max */
		unsigned negative_ttl_s;        /* at most; 1 h */
		unsigned stale_for_s, stale_ttl_s;      /* RFC 8767: how long an expired answer may serve (0: never), with which TTL; 1 d, 30 s */
		unsigned stale_wait_ms; /* the client response timer: how long a client waits until it gets a stale answer; 1.8 s */
		bool prefetch;          /* default true */
		char *file;             /* that outlives the box's restart; "": none */
	} cache;
	struct {
		bool special_names;     /* answer names that must not leak (RFC 6303, 6761, 7686, 8375); default true */
		struct config_name *special_names_off;  /* but not these and what is below them */
		size_t special_names_off_count;
		char **hosts;           /* paths of hosts files */
		size_t hosts_count;
		char **records;         /* lines of a master file; their owners are below the root */
		size_t records_count;
	} local;
	struct {
		uint64_t max_zone_bytes;        /* memory that building one zone may take; default 16 GiB */
		unsigned max_questions;         /* that are being resolved, in all: 20000 */
		unsigned max_questions_per_client;      /* of one client prefix: 1000 */
		unsigned max_questions_per_upstream;    /* 10000 */
		unsigned question_time_ms;      /* until a question is given up: 5 s */
	} limits;
	struct { struct { int subsystem, level; } *level; size_t level_count; } log;   /* one for every subsystem */
	void *zone_memory_;             /* what the zones' pointers point into */
	uint32_t zones_line_, zones_end_line_;  /* lines [from, to) that hold the zones and nothing else; 0: there are none such */
};
/* clang-format on */

/* Errors and warnings come one by one, with place; the file's own name is the caller's. */
typedef void config_report(void *user, bool is_error, struct config_place place, const char *message);

/* Reads the file at path, at most CONFIG_MAX_BYTES (ERR_NOSPACE); *text is for free(). Any other error: errno is set. */
MUST_USE enum err config_read_file(const char *path, char **text, size_t *text_bytes);
/* Parses text. path is used for relative file names (it may be relative itself, to the working directory) and copied.
 * ERR_SYNTAX after at least one report of an error, at most CONFIG_MAX_ERRORS of them. ERR_NOMEM. */
MUST_USE enum err config_load(struct config **out, const char *path, const char *text, size_t text_bytes, config_report *report,
			      void *user);
void config_free(struct config *c);
/* A copy, for free(), of the text that c was loaded from, with the zones' lines left empty (other lines keep their numbers): for a
 * process that needs the rest of the settings at once and gets its zones otherwise. A whole copy if zones share a line with
 * something else. ERR_NOMEM. */
MUST_USE enum err config_text_without_zones(const struct config *c, const char *text, size_t text_bytes, char **out,
					    size_t *out_bytes);
/* Writes the schema as docs/config.md. file is a FILE. */
void config_print_reference(void *file);
