/* SPDX-License-Identifier: Apache-2.0 */
/* config.h: skua.yaml as the processes see it, loaded by one schema table (config/schema.c) from which docs/config.md is
 * made too. Owned whole by config_free. Every key has a default there; a value here is always present and in range.
 * A key is spelled as its field, with hyphens, in the section that the struct names: server.udp_payload is
 * "server: udp-payload:"; a unit at a field's end (_ms, _us) is not part of the key. */
#pragma once
#include "base/base.h"
#include "dns/name.h"

#define CONFIG_MAX_ADDRESSES 64
#define CONFIG_MAX_INTERFACES 16
#define CONFIG_MAX_CPUS 256
#define CONFIG_MAX_ZONES 1000000
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

struct config_zone {
	const uint8_t *name; /* wire, lower-cased */
	size_t name_bytes;
	const char *name_text; /* as written */
	const char *file;      /* absolute, or made absolute relative to the configuration file's folder */
	struct config_place place;
};

enum config_forward_strategy { CONFIG_FORWARD_FASTEST, CONFIG_FORWARD_ORDERED, CONFIG_FORWARD_SPREAD };
#define CONFIG_MAX_UPSTREAMS 64 /* of one forward zone */

struct config_upstream { /* "ADDR", "ADDR:PORT", "tls://ADDR[:PORT]#NAME", "tls://ADDR[:PORT]#sha256/BASE64" */
	struct config_address address; /* default port 53, with tls:// 853; text is as written */
	bool is_tls;
	const char *auth_name; /* NULL: none */
	uint8_t pin[32];       /* SHA-256 of the SubjectPublicKeyInfo */
	bool has_pin;
};
struct config_forward {
	const uint8_t *name; /* wire, lower-cased */
	size_t name_bytes;
	const struct config_upstream *to; /* 1 to CONFIG_MAX_UPSTREAMS */
	size_t to_count;
	bool dnssec;
	enum config_forward_strategy strategy;
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
	struct config_forward *forward; /* no two of one name */
	size_t forward_count;
	struct { uint64_t max_zone_bytes; } limits;         /* memory that building one zone may take; default 16 GiB */
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
