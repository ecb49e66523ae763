/* SPDX-License-Identifier: Apache-2.0 */
/* The table. To add a key: its field in config.h, its row here, its line in skua.yaml, `make docs`. */
#include "config/schema.h"
#include "base/log.h"
#include "config/value.h"

#include <stdio.h>

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define MS 1000000ull
#define US 1000ull
#define SECOND (1000 * MS)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

/* clang-format off */
#define AT(member) .offset = offsetof(struct config, member), .field_bytes = sizeof(((struct config *)0)->member)
#define LIST_AT(member, count) .offset = offsetof(struct config, member), .count_offset = offsetof(struct config, count)
#define IN_ZONE(member) .offset = offsetof(struct config_zone, member), .field_bytes = sizeof(((struct config_zone *)0)->member)
#define IN_FORWARD(member) .offset = offsetof(struct config_forward, member), .field_bytes = sizeof(((struct config_forward *)0)->member)
#define WORDS(...) (const char *const[]){ __VA_ARGS__, NULL }

static const struct schema_row server_rows[] = {
	{ .key = "identity", .kind = SCHEMA_TEXT, AT(server.identity), .min = 0, .max = 127,
	  .fallback_text = "the host's name",
	  .help = "What this server calls itself: NSID, and CHAOS `id.server` and `hostname.bind`. Empty: it does not say." },
	{ .key = "state", .kind = SCHEMA_PATH, AT(server.state), .max = 1024, .fallback = "/var/lib/skua",
	  .help = "Folder for what outlives a restart." },
	{ .key = "run", .kind = SCHEMA_PATH, AT(server.run), .max = 80, .fallback = "/run/skua",
	  .help = "Folder for the control sockets. A unix socket's path is short, so this one must be too." },
	{ .key = "workers", .kind = SCHEMA_COUNT, AT(server.workers), .min = 1, .max = CONFIG_MAX_CPUS,
	  .has_auto = true, .fallback = "auto",
	  .help = "Threads of the slowpath that answer UDP over kernel sockets. `auto`: one for every CPU that the process may use." },
	{ .key = "version-text", .kind = SCHEMA_TEXT, AT(server.version_text), .min = 0, .max = 127,
	  .fallback = "\"\"", .help = "What CHAOS `version.bind` and `version.server` answer. Empty: they are refused." },
	{ .key = "chaos", .kind = SCHEMA_BOOL, AT(server.chaos), .fallback = "true",
	  .help = "Answer CHAOS queries for the identity and the version." },
	{ .key = "nsid", .kind = SCHEMA_BOOL, AT(server.nsid), .fallback = "true",
	  .help = "Send the identity to those who ask for it by EDNS NSID (RFC 5001)." },
	{ .key = "cookies", .kind = SCHEMA_BOOL, AT(server.cookies), .fallback = "true",
	  .help = "Answer DNS cookies (RFC 7873, RFC 9018)." },
	{ .key = "ede", .kind = SCHEMA_BOOL, AT(server.ede), .fallback = "true",
	  .help = "Add extended errors (RFC 8914) to answers that need an explanation." },
	{ .key = "cookie-secrets", .kind = SCHEMA_SECRETS, LIST_AT(server.cookie_secrets, server.cookie_secret_count),
	  .max = 2, .fallback = "[]", .fallback_text = "a random one for each `skua run`",
	  .help = "Secrets for server cookies, the same on all boxes of an anycast group. The first makes new cookies, both are accepted: "
		  "to roll, put the new one second everywhere, then swap, then drop the old one." },
	{ .key = "udp-payload", .kind = SCHEMA_COUNT, AT(server.udp_payload), .min = 512, .max = 4096,
	  .fallback = "1232", .help = "Octets of the largest answer over UDP, whatever the client says it can take; larger ones are truncated (TC)." },
	{ .key = "user-fastpath", .kind = SCHEMA_USER, AT(server.user_fastpath), .fallback = "skua-fastpath",
	  .help = "User that the fastpath becomes, if `skua run` is root and the user exists." },
	{ .key = "user-slowpath", .kind = SCHEMA_USER, AT(server.user_slowpath), .fallback = "skua-slowpath",
	  .help = "User that the slowpath becomes, if `skua run` is root and the user exists." },
};
static const struct schema_row listen_rows[] = {
	{ .key = "dns", .kind = SCHEMA_ADDRESSES, LIST_AT(listen.dns, listen.dns_count), .min = 1,
	  .max = CONFIG_MAX_ADDRESSES, .fallback = "[ 127.0.0.1 ]",
	  .help = "Addresses for DNS over UDP and TCP, port 53 unless one is given. `0.0.0.0` and `::` stand for all of the system's." },
	{ .key = "udp-receive-buffer", .kind = SCHEMA_SIZE, AT(listen.udp_receive_buffer), .min = 64 * KIB,
	  .max = GIB, .fallback = "16M", .help = "Receive buffer asked for, for each UDP socket: what a burst may fill before queries are lost." },
	{ .key = "allow", .kind = SCHEMA_EMPTY_LIST, .fallback = "[]",
	  .help = "Prefixes that may ask; empty: everybody may. Anything else than an empty list is not available yet in this version." },
	{ .key = "deny", .kind = SCHEMA_EMPTY_LIST, .fallback = "[]",
	  .help = "Prefixes that may not ask. Anything else than an empty list is not available yet in this version." },
};
static const struct schema_row xdp_rows[] = {
	{ .key = "enabled", .kind = SCHEMA_BOOL, AT(xdp.enabled), .fallback = "true",
	  .help = "`false` keeps XDP off altogether, as does `SKUA_XDP=off` in the environment: for a box that can't be reached any more." },
	{ .key = "interfaces", .kind = SCHEMA_INTERFACES, LIST_AT(xdp.interfaces, xdp.interface_count),
	  .max = CONFIG_MAX_INTERFACES, .fallback = "[]",
	  .help = "Network interfaces whose queries the fastpath answers; each of their queues gets a thread. Empty: kernel sockets only." },
	{ .key = "mode", .kind = SCHEMA_CHOICE, AT(xdp.mode), .words = WORDS("auto", "zerocopy", "copy", "skb"),
	  .fallback = "auto", .help = "How AF_XDP binds. `auto`: the best that the driver is known to do; the choice is logged." },
	{ .key = "cpus", .kind = SCHEMA_CPUS, LIST_AT(xdp.cpus, xdp.cpu_count), .min = 1, .max = CONFIG_MAX_CPUS,
	  .has_auto = true, .fallback = "auto",
	  .help = "CPUs for the fastpath's threads. `auto`: at most half of the CPUs, on the card's NUMA node." },
	{ .key = "reply", .kind = SCHEMA_CHOICE, AT(xdp.reply), .words = WORDS("swap", "route"),
	  .words_later = 1u << REPLY_ROUTE, .fallback = "swap",
	  .help = "`swap`: an answer goes back to where its query came from. `route`, by the kernel's routes, is not available yet in this version." },
	{ .key = "pin-dir", .kind = SCHEMA_PATH, AT(xdp.pin_dir), .max = 1024, .fallback = "/sys/fs/bpf/skua",
	  .help = "Folder in a bpffs where the XDP link and maps are pinned; a bpffs is mounted where there is none." },
	{ .key = "ring-size", .kind = SCHEMA_COUNT, AT(xdp.ring_size), .min = 64, .max = 16384,
	  .is_power_of_two = true, .fallback = "2048", .help = "Descriptors in each of a queue's receive and transmit rings." },
	{ .key = "busy-poll", .kind = SCHEMA_DURATION, AT(xdp.busy_poll_us), .max = 10 * MS, .unit_ns = US,
	  .fallback = "0", .help = "How long the kernel polls the driver on a thread's behalf before it sleeps. 0: not at all." },
	{ .key = "park-after", .kind = SCHEMA_DURATION, AT(xdp.park_after_ms), .min = 20 * MS, .max = 10000 * MS, .unit_ns = MS,
	  .fallback = "40ms", .help = "How long a queue's thread may be silent before the kernel path serves its queue. Longer on a box whose cores are shared." },
	{ .key = "verify-checksums", .kind = SCHEMA_BOOL, AT(xdp.verify_checksums), .fallback = "false",
	  .help = "Check the UDP checksums of received queries in software. Cards do so already; virtual ones often leave them unfinished." },
};
static const struct schema_row tcp_rows[] = {
	{ .key = "max-connections", .kind = SCHEMA_COUNT, AT(tcp.max_connections), .min = 1, .max = 1000000,
	  .fallback = "4096", .help = "TCP connections in all." },
	{ .key = "max-per-client", .kind = SCHEMA_COUNT, AT(tcp.max_per_client), .min = 1, .max = 1000000,
	  .fallback = "64", .help = "TCP connections of one client address." },
	{ .key = "idle-timeout", .kind = SCHEMA_DURATION, AT(tcp.idle_timeout_ms), .min = 100 * MS,
	  .max = 3600 * SECOND, .unit_ns = MS, .fallback = "10s",
	  .help = "A connection without a query for so long is closed; told to clients by edns-tcp-keepalive (RFC 7828)." },
	{ .key = "max-queries-in-flight", .kind = SCHEMA_COUNT, AT(tcp.max_queries_in_flight), .min = 1,
	  .max = 65535, .fallback = "128", .help = "Queries of one connection that wait for their answer; further ones are read later." },
};
static const struct schema_row zone_rows[] = {
	{ .key = "name", .kind = SCHEMA_ZONE_NAME, IN_ZONE(name), .fallback_text = "required",
	  .help = "The zone's name. A name stands once only." },
	{ .key = "file", .kind = SCHEMA_ZONE_FILE, .effect = EFFECT_RESTART_FILE, IN_ZONE(file), .max = 4000, .fallback_text = "required",
	  .help = "Its master file (RFC 1035 section 5)." },
};
static const struct schema_row limits_rows[] = {
	{ .key = "max-zone-bytes", .kind = SCHEMA_SIZE, AT(limits.max_zone_bytes), .min = MIB, .max = 1024 * GIB,
	  .fallback = "16G", .help = "Memory that building one zone may take; a zone that needs more is not loaded." },
	{ .key = "max-questions", .kind = SCHEMA_COUNT, AT(limits.max_questions), .min = 1, .max = 1000000, .fallback = "20000",
	  .help = "Questions that are being resolved at a time; further ones are dropped and counted." },
	{ .key = "max-questions-per-client", .kind = SCHEMA_COUNT, AT(limits.max_questions_per_client), .min = 1, .max = 1000000, .fallback = "1000",
	  .help = "Of them, for one client prefix (IPv4 /24, IPv6 /56)." },
	{ .key = "max-questions-per-upstream", .kind = SCHEMA_COUNT, AT(limits.max_questions_per_upstream), .min = 1, .max = 1000000, .fallback = "10000",
	  .help = "Questions that wait for one upstream server." },
	{ .key = "question-time", .kind = SCHEMA_DURATION, AT(limits.question_time_ms), .min = 100 * MS, .max = 60 * SECOND, .unit_ns = MS,
	  .fallback = "5s", .help = "How long a question is worked on before it fails (SERVFAIL)." },
};
static const struct schema_row forward_rows[] = {
	{ .key = "zone", .kind = SCHEMA_FORWARD_ZONE, IN_FORWARD(zone), .fallback = ".",
	  .help = "Names at or below it are asked of these servers; of several zones the longest that matches counts. A zone stands once only." },
	{ .key = "to", .kind = SCHEMA_UPSTREAMS, .offset = offsetof(struct config_forward, to), .count_offset = offsetof(struct config_forward, count),
	  .min = 1, .max = CONFIG_MAX_UPSTREAMS, .fallback_text = "required",
	  .help = "The servers. `ADDRESS` or `ADDRESS:PORT`: UDP, and TCP where UDP does not do. `tls://ADDRESS#NAME`: DNS over TLS (port 853) with a certificate "
		  "for that name; `tls://ADDRESS#sha256/BASE64`: with the public key of that SPKI pin (RFC 7858)." },
	{ .key = "dnssec", .kind = SCHEMA_BOOL, IN_FORWARD(dnssec), .fallback = "true",
	  .help = "Ask for signatures (DO) and keep them, so that clients can validate. A server that can't then counts as failing." },
	{ .key = "strategy", .kind = SCHEMA_CHOICE, IN_FORWARD(strategy), .words = WORDS("ordered", "fastest", "spread"), .fallback = "fastest",
	  .help = "`fastest`: by round trip. `ordered`: the first one that works. `spread`: in turn." },
};
static const struct schema_row recursion_rows[] = {
	{ .key = "allow", .kind = SCHEMA_PREFIXES, LIST_AT(recursion.allow, recursion.allow_count), .max = CONFIG_MAX_PREFIXES,
	  .fallback = "[ 127.0.0.0/8, ::1/128 ]",
	  .help = "Who may ask for names that are not ours; everybody else is REFUSED. Empty: nobody." },
	{ .key = "root-hints", .kind = SCHEMA_LATER, .fallback_text = "built in",
	  .help = "Addresses of the root's servers. Not available yet in this version, which forwards only." },
	{ .key = "trust-anchors", .kind = SCHEMA_LATER, .fallback_text = "built in",
	  .help = "Keys to validate with. Not available yet in this version, which does not validate." },
};
static const struct schema_row cache_rows[] = {
	{ .key = "memory", .kind = SCHEMA_SIZE, AT(cache.memory), .min = MIB, .max = 1024 * GIB, .has_auto = true, .fallback = "auto",
	  .help = "Memory of the answer cache, all of it taken at the start. `auto`: a quarter of the machine's, at most 4G." },
	{ .key = "max-ttl", .kind = SCHEMA_DURATION, AT(cache.max_ttl_s), .min = SECOND, .max = 7 * DAY, .unit_ns = SECOND, .fallback = "1d",
	  .help = "Longer TTLs are cut to it." },
	{ .key = "min-ttl", .kind = SCHEMA_DURATION, AT(cache.min_ttl_s), .max = HOUR, .unit_ns = SECOND, .fallback = "0",
	  .help = "Shorter TTLs are raised to it. Not above `max-ttl`." },
	{ .key = "negative-ttl", .kind = SCHEMA_DURATION, AT(cache.negative_ttl_s), .max = DAY, .unit_ns = SECOND, .fallback = "1h",
	  .help = "How long a name or type that does not exist is remembered at most (RFC 2308)." },
	{ .key = "stale-for", .kind = SCHEMA_DURATION, AT(cache.stale_for_s), .max = 7 * DAY, .unit_ns = SECOND, .fallback = "1d",
	  .help = "How long an expired answer may serve while no server can be reached (RFC 8767). 0: not at all." },
	{ .key = "stale-ttl", .kind = SCHEMA_DURATION, AT(cache.stale_ttl_s), .min = SECOND, .max = HOUR, .unit_ns = SECOND, .fallback = "30s",
	  .help = "TTL of stale answers." },
	{ .key = "stale-wait", .kind = SCHEMA_DURATION, AT(cache.stale_wait_ms), .max = 30 * SECOND, .unit_ns = MS, .fallback = "1800ms",
	  .help = "How long a client waits for a fresh answer until it gets a stale one. 0: not at all." },
	{ .key = "prefetch", .kind = SCHEMA_BOOL, AT(cache.prefetch), .fallback = "true",
	  .help = "Ask again for popular names before their answers expire." },
	{ .key = "file", .kind = SCHEMA_PATH, AT(cache.file), .max = 1024, .is_optional = true, .fallback = "\"\"",
	  .help = "File that the cache is written to at the end and read from at the start, so that it is warm after the machine was off. Empty: none. "
		  "Restarts of the server's parts need no file." },
};
static const struct schema_row local_rows[] = {
	{ .key = "special-names", .kind = SCHEMA_BOOL, AT(local.special_names), .fallback = "true",
	  .help = "Answer names that must not leak to the Internet ourselves: those of RFC 6303, 6761, 7686 and 8375, and their like." },
	{ .key = "special-names-off", .kind = SCHEMA_NAMES, LIST_AT(local.special_names_off, local.special_names_off_count), .max = CONFIG_MAX_NAMES,
	  .fallback = "[]", .help = "Special names that are resolved like any other, such as `10.in-addr.arpa`." },
	{ .key = "hosts", .kind = SCHEMA_PATHS, LIST_AT(local.hosts, local.hosts_count), .max = CONFIG_MAX_HOSTS_FILES,
	  .fallback = "[]", .help = "Files with the format of /etc/hosts, whose names we answer." },
	{ .key = "records", .kind = SCHEMA_RECORDS, LIST_AT(local.records, local.records_count), .max = CONFIG_MAX_RECORDS, .fallback = "[]",
	  .help = "Records that we answer, each as a line of a master file; names without a final dot are below the root." },
};

#define LEVELS WORDS("error", "warning", "notice", "info", "debug")
#define LEVEL_ROW(name, what) \
	{ .key = name, .kind = SCHEMA_LEVEL, .effect = EFFECT_RESTART_LEVEL, .words = LEVELS, .fallback = "info", \
	  .help = "Lines of this level and of more urgent ones are written about " what "." }
static const struct schema_row log_rows[] = {
	LEVEL_ROW("run", "the supervisor and the parts that it runs"),
	LEVEL_ROW("config", "this file"),
	LEVEL_ROW("control", "the control sockets"),
	LEVEL_ROW("zone", "zones"),
	LEVEL_ROW("xdp", "XDP and AF_XDP"),
	LEVEL_ROW("net", "kernel sockets"),
	LEVEL_ROW("memory", "memory"),
};
static_assert(ARRAY_LEN(log_rows) == LOG_SUBSYSTEM_COUNT_, "a row for every subsystem");

#define ROWS(rows) rows, ARRAY_LEN(rows)
const struct schema_section schema_sections[] = {
	{ "server", ROWS(server_rows), .help = "The server as a whole." },
	{ "listen", ROWS(listen_rows), .help = "Where queries come in." },
	{ "xdp", ROWS(xdp_rows), .help = "The fastpath: AF_XDP sockets on network cards." },
	{ "tcp", ROWS(tcp_rows), .help = "DNS over TCP." },
	{ "zones", ROWS(zone_rows), .list = SCHEMA_LIST_ZONES, .help = "A list: one entry for each zone that is served from a master file." },
	{ "forward", ROWS(forward_rows), .list = SCHEMA_LIST_FORWARD,
	  .help = "A list: for each zone the servers that questions are forwarded to. Empty: no recursion." },
	{ "recursion", ROWS(recursion_rows), .help = "Who may have names resolved that are not ours." },
	{ "cache", ROWS(cache_rows), .help = "The answer cache; it is there when `forward` is." },
	{ "local", ROWS(local_rows), .help = "Names that we answer though they are in no zone of ours; for those who may ask for recursion." },
	{ "limits", ROWS(limits_rows), .help = "Bounds for what one input may take." },
	{ "log", ROWS(log_rows), .help = "One level for each subsystem; `skua log level` changes them until the next start." },
};
const size_t schema_section_count = ARRAY_LEN(schema_sections);
/* clang-format on */

static void expected_words(char out[static SCHEMA_EXPECTED_BYTES], const struct schema_row *row)
{
	size_t used = (size_t)snprintf(out, SCHEMA_EXPECTED_BYTES, "one of ");

	for (size_t i = 0; row->words[i] && used < SCHEMA_EXPECTED_BYTES; i++) {
		if (!(row->words_later >> i & 1))
			used += (size_t)snprintf(out + used, SCHEMA_EXPECTED_BYTES - used, "%s%s", i ? ", " : "", row->words[i]);
	}
}

static void expected_range(char out[static SCHEMA_EXPECTED_BYTES], const struct schema_row *row)
{
	char min[VALUE_TEXT_BYTES], max[VALUE_TEXT_BYTES];
	const char *also_auto = row->has_auto ? "auto, or " : "";

	switch (row->kind) {
	case SCHEMA_SIZE:
		value_size_text(min, row->min);
		value_size_text(max, row->max);
		snprintf(out, SCHEMA_EXPECTED_BYTES, "%sa size from %s to %s", also_auto, min, max);
		break;
	case SCHEMA_DURATION:
		value_duration_text(min, row->min);
		value_duration_text(max, row->max);
		snprintf(out, SCHEMA_EXPECTED_BYTES, "a duration from %s to %s, in whole %s", min, max,
			 row->unit_ns == US   ? "us"
			 : row->unit_ns == MS ? "ms"
					      : "seconds");
		break;
	default:
		snprintf(out, SCHEMA_EXPECTED_BYTES, "%sa %s from %llu to %llu", also_auto,
			 row->is_power_of_two ? "power of two" : "number", (unsigned long long)row->min,
			 (unsigned long long)row->max);
		break;
	}
}

static void expected_list(char out[static SCHEMA_EXPECTED_BYTES], const struct schema_row *row, const char *what,
			  const char *example)
{
	snprintf(out, SCHEMA_EXPECTED_BYTES, "%sa list of %s%llu %s, such as %s", row->has_auto ? "auto, or " : "",
		 row->min ? "1 to " : "at most ", (unsigned long long)row->max, what, example);
}

void schema_expected(char out[static SCHEMA_EXPECTED_BYTES], const struct schema_row *row)
{
	switch (row->kind) {
	case SCHEMA_TEXT:
		snprintf(out, SCHEMA_EXPECTED_BYTES, "a text of at most %u printable characters", (unsigned)row->max);
		break;
	case SCHEMA_USER: snprintf(out, SCHEMA_EXPECTED_BYTES, "the name of a user"); break;
	case SCHEMA_PATH:
	case SCHEMA_ZONE_FILE:
		snprintf(out, SCHEMA_EXPECTED_BYTES, "a path of at most %u octets%s", (unsigned)row->max,
			 row->is_optional ? ", or \"\"" : "");
		break;
	case SCHEMA_BOOL: snprintf(out, SCHEMA_EXPECTED_BYTES, "true or false"); break;
	case SCHEMA_COUNT:
	case SCHEMA_SIZE:
	case SCHEMA_DURATION: expected_range(out, row); break;
	case SCHEMA_CHOICE:
	case SCHEMA_LEVEL: expected_words(out, row); break;
	case SCHEMA_ADDRESSES: expected_list(out, row, "addresses", "[ \"10.0.0.1\", \"[2001:db8::1]:5300\" ]"); break;
	case SCHEMA_INTERFACES: expected_list(out, row, "interfaces", "[ eth0 ]"); break;
	case SCHEMA_SECRETS: expected_list(out, row, "texts", "[ \"32 hexadecimal digits\" ]"); break;
	case SCHEMA_CPUS: expected_list(out, row, "CPUs", "[ 0, 2, 3 ] or \"0,2-3\""); break;
	case SCHEMA_PREFIXES: expected_list(out, row, "prefixes", "[ \"10.0.0.0/8\", \"2001:db8::/32\" ]"); break;
	case SCHEMA_NAMES: expected_list(out, row, "domain names", "[ example.com ]"); break;
	case SCHEMA_PATHS: expected_list(out, row, "paths", "[ /etc/hosts ]"); break;
	case SCHEMA_RECORDS: expected_list(out, row, "records", "[ \"printer.lan. A 10.0.0.9\" ]"); break;
	case SCHEMA_UPSTREAMS: expected_list(out, row, "servers", "[ \"10.0.0.1\", \"tls://9.9.9.9#dns.quad9.net\" ]"); break;
	case SCHEMA_LATER: snprintf(out, SCHEMA_EXPECTED_BYTES, "nothing"); break;
	case SCHEMA_FORWARD_ZONE:
	case SCHEMA_ZONE_NAME: snprintf(out, SCHEMA_EXPECTED_BYTES, "a domain name"); break;
	case SCHEMA_EMPTY_LIST: snprintf(out, SCHEMA_EXPECTED_BYTES, "an empty list, []"); break;
	}
}
