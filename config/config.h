/* SPDX-License-Identifier: Apache-2.0 */
/* config.h: skua.yaml as the processes see it, loaded by one schema table (config/schema.c) from which docs/config.md is
 * made too. Owned whole by config_free. Every key has a default there; a value here is always present and in range. */
#pragma once
#include "base/base.h"
#include "dns/name.h"

#define CONFIG_MAX_ADDRESSES 64
#define CONFIG_MAX_INTERFACES 16
#define CONFIG_MAX_CPUS 256

struct config_place { uint32_t line, column; };
struct config_address { uint8_t family; /* 4 or 6 */ uint8_t address[16]; uint16_t port; char text[64]; struct config_place place; };
enum config_xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZEROCOPY, XDP_MODE_COPY, XDP_MODE_SKB };
enum config_reply { REPLY_SWAP, REPLY_ROUTE };

struct config_zone {
	uint8_t name[NAME_MAX_BYTES];   /* wire, lower-cased */
	size_t name_bytes;
	char *name_text;                /* as written */
	char *file;                     /* absolute, or made absolute relative to the configuration file's folder */
	struct config_place place;
};

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
		struct config_address *dns;   /* default port 53 */
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
		bool verify_checksums;  /* UDP checksums of received packets; default false */
	} xdp;
	struct {
		unsigned max_connections, max_per_client;   /* 4096, 64 */
		unsigned idle_timeout_ms;                   /* 10000 */
		unsigned max_queries_in_flight;             /* per connection: 128 */
	} tcp;
	struct config_zone *zone;
	size_t zone_count;
	struct { uint64_t max_zone_bytes; } limits;         /* memory that building one zone may take; default 16 GiB */
	struct { struct { int subsystem, level; } *level; size_t level_count; } log;
};

/* Errors and warnings come one by one, with place; the file's own name is the caller's. */
typedef void config_report(void *user, bool is_error, struct config_place place, const char *message);

/* Parses text. path is used for relative file names and copied. ERR_SYNTAX after at least one report of an error. */
MUST_USE enum err config_load(struct config **out, const char *path, const char *text, size_t text_bytes, config_report *report, void *user);
void config_free(struct config *c);
/* Writes the schema as docs/config.md. */
void config_print_reference(void *file);
