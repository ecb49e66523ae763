/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"
#include "base/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_NAME "/etc/skua/skua.yaml"

/* Every report as "line:column: message\n", warnings with a "warning: " before the message. */
static char reports[32768];
static unsigned error_count;

static void collect(void *user, bool is_error, struct config_place place, const char *message)
{
	size_t used = strlen(reports);
	(void)user;
	error_count += is_error;
	snprintf(reports + used, sizeof reports - used, "%u:%u: %s%s\n", place.line, place.column,
		 is_error ? "" : "warning: ", message);
}

static enum err load(struct config **out, const char *text)
{
	reports[0] = '\0';
	error_count = 0;
	return config_load(out, FILE_NAME, text, strlen(text), collect, NULL);
}

/* The configuration of a right text; the test fails if there is any report. */
static struct config *good(const char *text)
{
	struct config *c = NULL;
	enum err err = load(&c, text);
	cr_assert_eq(err, ERR_OK, "%s\n%s", text, reports);
	cr_assert_str_eq(reports, "", "%s", text);
	return c;
}

static void check_defaults(const struct config *c)
{
	char host[256] = "";
	gethostname(host, sizeof host - 1);
	host[127] = '\0';
	cr_expect_str_eq(c->server.identity, host);
	cr_expect_str_eq(c->server.state, "/var/lib/skua");
	cr_expect_str_eq(c->server.run, "/run/skua");
	cr_expect_eq(c->server.workers, 0);
	cr_expect_str_eq(c->server.version_text, "");
	cr_expect(c->server.chaos && c->server.nsid && c->server.cookies && c->server.ede);
	cr_expect_eq(c->server.cookie_secret_count, 0);
	cr_expect_eq(c->server.udp_payload, 1232);
	cr_expect_str_eq(c->server.user_fastpath, "skua-fastpath");
	cr_expect_str_eq(c->server.user_slowpath, "skua-slowpath");
	cr_assert_eq(c->listen.dns_count, 1);
	cr_expect_str_eq(c->listen.dns[0].text, "127.0.0.1:53");
	cr_expect_eq(c->listen.udp_receive_buffer, 16u << 20);
	cr_expect(c->xdp.enabled);
	cr_expect_eq(c->xdp.interface_count, 0);
	cr_expect_eq(c->xdp.mode, XDP_MODE_AUTO);
	cr_expect_null(c->xdp.cpus);
	cr_expect_eq(c->xdp.cpu_count, 0);
	cr_expect_eq(c->xdp.reply, REPLY_SWAP);
	cr_expect_str_eq(c->xdp.pin_dir, "/sys/fs/bpf/skua");
	cr_expect_eq(c->xdp.ring_size, 2048);
	cr_expect_eq(c->xdp.busy_poll_us, 0);
	cr_expect_eq(c->xdp.park_after_ms, 40);
	cr_expect(!c->xdp.verify_checksums);
	cr_expect_eq(c->tcp.max_connections, 4096);
	cr_expect_eq(c->tcp.max_per_client, 64);
	cr_expect_eq(c->tcp.idle_timeout_ms, 10000);
	cr_expect_eq(c->tcp.max_queries_in_flight, 128);
	cr_expect_eq(c->zone_count, 0);
	cr_expect_eq(c->limits.max_zone_bytes, 16ull << 30);
	cr_expect(c->limits.max_questions == 20000 && c->limits.max_questions_per_client == 1000 &&
		  c->limits.max_questions_per_upstream == 10000 && c->limits.question_time_ms == 5000);
	cr_expect_eq(c->forward_count, 0);
	cr_assert_eq(c->recursion.allow_count, 2);
	cr_expect(c->recursion.allow[0].family == 4 && c->recursion.allow[0].bits == 8 &&
		  c->recursion.allow[0].address[0] == 127);
	cr_expect(c->recursion.allow[1].family == 6 && c->recursion.allow[1].bits == 128 &&
		  c->recursion.allow[1].address[15] == 1);
	cr_expect_eq(c->cache.memory, 0);
	cr_expect(c->cache.max_ttl_s == 86400 && c->cache.min_ttl_s == 0 && c->cache.negative_ttl_s == 3600);
	cr_expect(c->cache.stale_for_s == 86400 && c->cache.stale_ttl_s == 30 && c->cache.stale_wait_ms == 1800);
	cr_expect(c->cache.prefetch);
	cr_expect_str_eq(c->cache.file, "");
	cr_expect(c->local.special_names && c->local.special_names_off_count == 0 && c->local.hosts_count == 0 &&
		  c->local.records_count == 0);
	cr_assert_eq(c->log.level_count, LOG_SUBSYSTEM_COUNT_);
	for (size_t i = 0; i < c->log.level_count; i++) {
		cr_expect_eq(c->log.level[i].subsystem, (int)i);
		cr_expect_eq(c->log.level[i].level, LOG_LEVEL_INFO);
	}
	cr_expect_str_eq(c->path, FILE_NAME);
}

Test(load, what_is_left_out_has_its_default)
{
	static const char *const texts[] = {
		"",
		"\n",
		"# nothing\n",
		"---\n",
		"---\n...\n",
		"{}",
		"~",
		"server:\nlisten:\nxdp:\ntcp:\nzones:\nlimits:\nlog:\n",
		"server: {}\nlisten: {}\nxdp: {}\ntcp: {}\nzones: []\nlimits: {}\nlog: {}\n",
		"server:\n  # all commented out\n",
		"\xef\xbb\xbf# with a mark\n",
		"server: null\n",
		"listen:\r\n  allow: []\r\n  deny: [ ]\r\n",
		"%YAML 1.1\n---\n{}\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct config *c = good(texts[i]);
		check_defaults(c);
		config_free(c);
	}
	config_free(NULL);
}

Test(load, the_example_holds_every_key_with_its_default)
{
	char *text = NULL;
	size_t bytes = 0;
	struct config *c = NULL;
	cr_assert_eq(config_read_file("config/skua.yaml", &text, &bytes), ERR_OK, "run it from the top of the tree");
	reports[0] = '\0';
	cr_assert_eq(config_load(&c, FILE_NAME, text, bytes, collect, NULL), ERR_OK, "%s", reports);
	cr_expect_str_eq(reports, "");
	check_defaults(c);
	config_free(c);
	free(text);
}

Test(load, the_blueprints_example_is_read)
{
	struct config *c = good("server:\n"
				"  identity: ns1.example.net        # NSID\n"
				"  state: /var/lib/skua\n"
				"  run: /run/skua\n"
				"  workers: auto\n"
				"listen:\n"
				"  dns: [ \"10.99.0.1\" ]\n"
				"  allow: []\n"
				"xdp:\n"
				"  interfaces: []\n"
				"  mode: auto\n"
				"  cpus: auto\n"
				"  reply: swap\n"
				"zones:\n"
				"  - name: bench.example\n"
				"    file: /path/bench.zone\n");
	cr_expect_str_eq(c->server.identity, "ns1.example.net");
	cr_expect_str_eq(c->listen.dns[0].text, "10.99.0.1:53");
	cr_expect_eq(c->listen.dns[0].place.line, 7);
	cr_expect_eq(c->listen.dns[0].place.column, 10);
	cr_assert_eq(c->zone_count, 1);
	cr_expect_str_eq(c->zone[0].name_text, "bench.example");
	cr_expect_eq(c->zone[0].name_bytes, 15);
	cr_expect_eq(memcmp(c->zone[0].name, "\5bench\7example", 15), 0);
	cr_expect_str_eq(c->zone[0].file, "/path/bench.zone");
	cr_expect_eq(c->zone[0].place.line, 15);
	config_free(c);
}

/* clang-format off */
/* One right value for each key, as unlike its default as can be: what it becomes. */
#define SHOWS(name, format, ...) \
	static void name(const struct config *c, char *out) { snprintf(out, 256, format, __VA_ARGS__); }
SHOWS(identity, "%s", c->server.identity)
SHOWS(state, "%s", c->server.state)
SHOWS(run, "%s", c->server.run)
SHOWS(workers, "%u", c->server.workers)
SHOWS(version_text, "%s", c->server.version_text)
SHOWS(chaos, "%d", c->server.chaos)
SHOWS(nsid, "%d", c->server.nsid)
SHOWS(cookies, "%d", c->server.cookies)
SHOWS(ede, "%d", c->server.ede)
SHOWS(secrets, "%zu %s %s", c->server.cookie_secret_count, c->server.cookie_secrets[0],
      c->server.cookie_secrets[c->server.cookie_secret_count - 1])
SHOWS(udp_payload, "%u", c->server.udp_payload)
SHOWS(user_fastpath, "%s", c->server.user_fastpath)
SHOWS(user_slowpath, "%s", c->server.user_slowpath)
SHOWS(dns, "%zu %s %s", c->listen.dns_count, c->listen.dns[0].text, c->listen.dns[c->listen.dns_count - 1].text)
SHOWS(udp_receive_buffer, "%u", c->listen.udp_receive_buffer)
SHOWS(enabled, "%d", c->xdp.enabled)
SHOWS(interfaces, "%zu %s %s", c->xdp.interface_count, c->xdp.interfaces[0], c->xdp.interfaces[c->xdp.interface_count - 1])
SHOWS(mode, "%d", (int)c->xdp.mode)
SHOWS(cpus, "%zu %u %u", c->xdp.cpu_count, c->xdp.cpus ? c->xdp.cpus[0] : 9999, c->xdp.cpus ? c->xdp.cpus[c->xdp.cpu_count - 1] : 9999)
SHOWS(reply, "%d", (int)c->xdp.reply)
SHOWS(pin_dir, "%s", c->xdp.pin_dir)
SHOWS(ring_size, "%u", c->xdp.ring_size)
SHOWS(busy_poll, "%u", c->xdp.busy_poll_us)
SHOWS(park_after, "%u", c->xdp.park_after_ms)
SHOWS(verify_checksums, "%d", c->xdp.verify_checksums)
SHOWS(max_connections, "%u", c->tcp.max_connections)
SHOWS(max_per_client, "%u", c->tcp.max_per_client)
SHOWS(idle_timeout, "%u", c->tcp.idle_timeout_ms)
SHOWS(in_flight, "%u", c->tcp.max_queries_in_flight)
SHOWS(max_zone_bytes, "%llu", (unsigned long long)c->limits.max_zone_bytes)
SHOWS(questions, "%u %u %u %u", c->limits.max_questions, c->limits.max_questions_per_client, c->limits.max_questions_per_upstream,
      c->limits.question_time_ms)
SHOWS(memory, "%llu", (unsigned long long)c->cache.memory)
SHOWS(ttls, "%u %u %u %u %u %u", c->cache.max_ttl_s, c->cache.min_ttl_s, c->cache.negative_ttl_s, c->cache.stale_for_s, c->cache.stale_ttl_s,
      c->cache.stale_wait_ms)
SHOWS(prefetch, "%d", c->cache.prefetch)
SHOWS(cache_file, "%s", c->cache.file)
SHOWS(special_names, "%d", c->local.special_names)
SHOWS(special_names_off, "%zu %s %zu %s %zu", c->local.special_names_off_count, c->local.special_names_off[0].text,
      c->local.special_names_off[0].name_bytes, c->local.special_names_off[1].text, c->local.special_names_off[1].name_bytes)
SHOWS(hosts, "%zu %s %s", c->local.hosts_count, c->local.hosts[0], c->local.hosts[c->local.hosts_count - 1])
SHOWS(records, "%zu %s %s", c->local.records_count, c->local.records[0], c->local.records[c->local.records_count - 1])
static void show_prefix(const struct config *c, size_t i, char out[16])
{
	const struct config_prefix *p = &c->recursion.allow[MIN(i, c->recursion.allow_count - 1)];
	snprintf(out, 16, c->recursion.allow_count ? "%u/%u/%u" : "-", p->family, p->bits, p->address[0]);
}
static void allow(const struct config *c, char *out)
{
	char shown[3][16];
	for (size_t i = 0; i < 3; i++)
		if (c->recursion.allow_count)
			show_prefix(c, i, shown[i]);
		else
			strcpy(shown[i], "-");
	snprintf(out, 256, "%zu %s %s %s", c->recursion.allow_count, shown[0], shown[1], shown[2]);
}
/* The last octet of a pin of 0, 1, 2, ... 31 says that it was read whole; shown as 2. */
static int pin_of(const struct config_upstream *u) { return u->has_pin + (u->has_pin && u->pin[0] == 0 && u->pin[31] == 31); }
static void forward(const struct config *c, char *out)
{
	const struct config_forward *f = &c->forward[0];
	const struct config_upstream *a = &f->to[0], *b = &f->to[f->count - 1];
	snprintf(out, 256, "%s %zu %d %d %zu %s %d %s %d %s %d %s %d", f->zone.text, f->zone.name_bytes, f->dnssec, (int)f->strategy, f->count,
		 a->address.text, a->is_tls, a->auth_name ?: "-", pin_of(a), b->address.text, b->is_tls, b->auth_name ?: "-", pin_of(b));
}
SHOWS(zone, "%s %s %zu", c->zone[0].name_text, c->zone[0].file, c->zone[0].name_bytes)
SHOWS(log_xdp, "%d %d", c->log.level[LOG_XDP].level, c->log.level[LOG_RUN].level)

#define S1 "000102030405060708090a0b0c0d0e0f"
#define S2 "101112131415161718191a1b1c1d1e1F"
#define LEVELS "one of error, warning, notice, info, debug"
static const struct {
	const char *section, *key, *value, *want;   /* want: what it becomes, or ... */
	void (*show)(const struct config *, char *);/* ... (NULL) the only report, without its place */
} values[] = {
	{ "server", "identity", "ns1", "ns1", identity },
	{ "server", "identity", "\"\"", "", identity },
	{ "server", "identity", "12", "12", identity },
	{ "server", "identity", "\"null\"", "null", identity },
	{ "server", "identity", "[]", "server.identity: expected a text of at most 127 printable characters, not a list", NULL },
	{ "server", "identity", "{}", "server.identity: expected a text of at most 127 printable characters, not a mapping", NULL },
	{ "server", "identity", "\"a\\nb\"", "server.identity: expected a text of at most 127 printable characters, not \"a\\x0ab\"", NULL },
	{ "server", "identity", "é", "server.identity: expected a text of at most 127 printable characters, not \"é\"", NULL },
	{ "server", "identity", "", "server.identity: has no value: expected a text of at most 127 printable characters; leave the key out for its default", NULL },
	{ "server", "state", "/x", "/x", state },
	{ "server", "state", "x/y", "/etc/skua/x/y", state },
	{ "server", "state", "./x", "/etc/skua/x", state },
	{ "server", "state", "\"\"", "server.state: expected a path of at most 1024 octets, not \"\"", NULL },
	{ "server", "state", "\"/a\\tb\"", "server.state: a path may not hold control characters", NULL },
	{ "server", "run", "/r", "/r", run },
	{ "server", "run", "/12345678901234567890123456789012345678901234567890123456789012345678901234567890",
	  "server.run: the path is longer than 80 octets", NULL },
	{ "server", "run", "12345678901234567890123456789012345678901234567890123456789012345678901",
	  "server.run: the path is longer than 80 octets with the folder of this file before it", NULL },
	{ "server", "workers", "4", "4", workers },
	{ "server", "workers", "auto", "0", workers },
	{ "server", "workers", "\"256\"", "256", workers },
	{ "server", "workers", "0", "server.workers: expected auto, or a number from 1 to 256, not \"0\"", NULL },
	{ "server", "workers", "257", "server.workers: expected auto, or a number from 1 to 256, not \"257\"", NULL },
	{ "server", "workers", "-1", "server.workers: expected auto, or a number from 1 to 256, not \"-1\"", NULL },
	{ "server", "workers", "2.5", "server.workers: expected auto, or a number from 1 to 256, not \"2.5\"", NULL },
	{ "server", "version-text", "Skua 1", "Skua 1", version_text },
	{ "server", "version-text", "~", "server.version-text: has no value: expected a text of at most 127 printable characters; leave the key out for its default", NULL },
	{ "server", "chaos", "false", "0", chaos },
	{ "server", "chaos", "\"off\"", "0", chaos },
	{ "server", "chaos", "0", "server.chaos: expected true or false, not \"0\"", NULL },
	{ "server", "nsid", "no", "0", nsid },
	{ "server", "nsid", "[ true ]", "server.nsid: expected true or false, not a list", NULL },
	{ "server", "cookies", "off", "0", cookies },
	{ "server", "cookies", "maybe", "server.cookies: expected true or false, not \"maybe\"", NULL },
	{ "server", "ede", "False", "0", ede },
	{ "server", "ede", "", "server.ede: has no value: expected true or false; leave the key out for its default", NULL },
	{ "server", "cookie-secrets", "[ " S1 " ]", "1 " S1 " " S1, secrets },
	{ "server", "cookie-secrets", "[ \"" S1 "\", \"" S2 "\" ]", "2 " S1 " " S2, secrets },
	{ "server", "cookie-secrets", "[ abc ]", "server.cookie-secrets[0]: expected 32 hexadecimal digits", NULL },
	{ "server", "cookie-secrets", "[ " S1 ", " S1 " ]", "server.cookie-secrets[1]: stands in the list already", NULL },
	{ "server", "cookie-secrets", S1, "server.cookie-secrets: expected a list of at most 2 texts, such as [ \"32 hexadecimal digits\" ]", NULL },
	{ "server", "cookie-secrets", "[ 1, 2, 3 ]",
	  "server.cookie-secrets: expected a list of at most 2 texts, such as [ \"32 hexadecimal digits\" ]; this list has 3 entries", NULL },
	{ "server", "udp-payload", "512", "512", udp_payload },
	{ "server", "udp-payload", "4096", "4096", udp_payload },
	{ "server", "udp-payload", "511", "server.udp-payload: expected a number from 512 to 4096, not \"511\"", NULL },
	{ "server", "udp-payload", "4097", "server.udp-payload: expected a number from 512 to 4096, not \"4097\"", NULL },
	{ "server", "udp-payload", "auto", "server.udp-payload: expected a number from 512 to 4096, not \"auto\"", NULL },
	{ "server", "udp-payload", "01232", "server.udp-payload: expected a number from 512 to 4096, not \"01232\"", NULL },
	{ "server", "user-fastpath", "dns", "dns", user_fastpath },
	{ "server", "user-fastpath", "../x", "server.user-fastpath: expected the name of a user, not \"../x\"", NULL },
	{ "server", "user-slowpath", "dns_2", "dns_2", user_slowpath },
	{ "server", "user-slowpath", "\"\"", "server.user-slowpath: expected the name of a user, not \"\"", NULL },
	{ "listen", "dns", "[ 10.0.0.1, \"[2001:db8::1]:5300\" ]", "2 10.0.0.1:53 [2001:db8::1]:5300", dns },
	{ "listen", "dns", "[ 0.0.0.0, \"::\" ]", "2 0.0.0.0:53 [::]:53", dns },
	{ "listen", "dns", "[ 10.0.0.1, 10.0.0.1:54 ]", "2 10.0.0.1:53 10.0.0.1:54", dns },
	{ "listen", "dns", "[ 10.0.0.1, 10.0.0.1:53 ]", "listen.dns[1]: 10.0.0.1:53 stands at line 2, column 10 already", NULL },
	{ "listen", "dns", "[ \"::1\", \"[0:0::1]\" ]", "listen.dns[1]: [::1]:53 stands at line 2, column 10 already", NULL },
	{ "listen", "dns", "[]", "listen.dns: expected a list of 1 to 64 addresses, such as [ \"10.0.0.1\", \"[2001:db8::1]:5300\" ]; this list has 0 entries", NULL },
	{ "listen", "dns", "10.0.0.1", "listen.dns: expected a list of 1 to 64 addresses, such as [ \"10.0.0.1\", \"[2001:db8::1]:5300\" ], not \"10.0.0.1\"", NULL },
	{ "listen", "dns", "[ eth0 ]", "listen.dns[0]: \"eth0\" is not an address: expected an IPv4 or IPv6 address, such as 10.0.0.1, 10.0.0.1:5300, 2001:db8::1 or "
	  "[2001:db8::1]:5300", NULL },
	{ "listen", "dns", "[ \"10.0.0.1:99999\" ]", "listen.dns[0]: \"10.0.0.1:99999\" is not an address: the port must be a number from 1 to 65535", NULL },
	{ "listen", "dns", "[ [ 10.0.0.1 ] ]", "listen.dns[0]: expected a text", NULL },
	{ "listen", "dns", "[ ~ ]", "listen.dns[0]: expected a text", NULL },
	{ "listen", "udp-receive-buffer", "64K", "65536", udp_receive_buffer },
	{ "listen", "udp-receive-buffer", "1G", "1073741824", udp_receive_buffer },
	{ "listen", "udp-receive-buffer", "100000", "100000", udp_receive_buffer },
	{ "listen", "udp-receive-buffer", "63K", "listen.udp-receive-buffer: expected a size from 64K to 1G, not \"63K\"", NULL },
	{ "listen", "udp-receive-buffer", "5G", "listen.udp-receive-buffer: expected a size from 64K to 1G, not \"5G\"", NULL },
	{ "listen", "udp-receive-buffer", "16MB", "listen.udp-receive-buffer: expected a size from 64K to 1G, not \"16MB\"", NULL },
	{ "listen", "allow", "[ 10.0.0.0/8 ]", "listen.allow is not available yet in this version: leave the list empty", NULL },
	{ "listen", "allow", "none", "listen.allow: expected an empty list, [], not \"none\"", NULL },
	{ "listen", "deny", "[ \"::/0\" ]", "listen.deny is not available yet in this version: leave the list empty", NULL },
	{ "listen", "deny", "", "listen.deny: has no value: expected an empty list, []; leave the key out for its default", NULL },
	{ "xdp", "enabled", "off", "0", enabled },
	{ "xdp", "enabled", "none", "xdp.enabled: expected true or false, not \"none\"", NULL },
	{ "xdp", "interfaces", "[ eth0 ]", "1 eth0 eth0", interfaces },
	{ "xdp", "interfaces", "[ eth0, enp1s0f1 ]", "2 eth0 enp1s0f1", interfaces },
	{ "xdp", "interfaces", "[ eth0, eth0 ]", "xdp.interfaces[1]: stands in the list already", NULL },
	{ "xdp", "interfaces", "[ ../eth0 ]", "xdp.interfaces[0]: \"../eth0\" can't be an interface's name", NULL },
	{ "xdp", "interfaces", "eth0", "xdp.interfaces: expected a list of at most 16 interfaces, such as [ eth0 ], not \"eth0\"", NULL },
	{ "xdp", "interfaces", "[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]",
	  "xdp.interfaces: expected a list of at most 16 interfaces, such as [ eth0 ]; this list has 17 entries", NULL },
	{ "xdp", "mode", "zerocopy", "1", mode },
	{ "xdp", "mode", "copy", "2", mode },
	{ "xdp", "mode", "SKB", "3", mode },
	{ "xdp", "mode", "native", "xdp.mode: expected one of auto, zerocopy, copy, skb, not \"native\"", NULL },
	{ "xdp", "cpus", "2", "1 2 2", cpus },
	{ "xdp", "cpus", "\"0,2-3\"", "3 0 3", cpus },
	{ "xdp", "cpus", "[ 4, 6-7, \"9\" ]", "4 4 9", cpus },
	{ "xdp", "cpus", "AUTO", "0 9999 9999", cpus },
	{ "xdp", "cpus", "[]", "xdp.cpus: expected auto, or a list of 1 to 256 CPUs, such as [ 0, 2, 3 ] or \"0,2-3\", not a list", NULL },
	{ "xdp", "cpus", "all", "xdp.cpus: \"all\": expected CPU numbers and ranges of them, such as 0,2-3", NULL },
	{ "xdp", "cpus", "[ 1, 1 ]", "xdp.cpus: \"1\": a CPU is named twice", NULL },
	{ "xdp", "cpus", "[ [ 1 ] ]", "xdp.cpus: expected auto, or a list of 1 to 256 CPUs, such as [ 0, 2, 3 ] or \"0,2-3\", not a list", NULL },
	{ "xdp", "reply", "swap", "0", reply },
	{ "xdp", "reply", "route", "xdp.reply: \"route\" is not available yet in this version", NULL },
	{ "xdp", "reply", "back", "xdp.reply: expected one of swap, not \"back\"", NULL },
	{ "xdp", "pin-dir", "/sys/fs/bpf/other", "/sys/fs/bpf/other", pin_dir },
	{ "xdp", "pin-dir", "[ x ]", "xdp.pin-dir: expected a path of at most 1024 octets, not a list", NULL },
	{ "xdp", "ring-size", "64", "64", ring_size },
	{ "xdp", "ring-size", "16384", "16384", ring_size },
	{ "xdp", "ring-size", "1000", "xdp.ring-size: expected a power of two from 64 to 16384, not \"1000\"", NULL },
	{ "xdp", "ring-size", "32", "xdp.ring-size: expected a power of two from 64 to 16384, not \"32\"", NULL },
	{ "xdp", "ring-size", "32768", "xdp.ring-size: expected a power of two from 64 to 16384, not \"32768\"", NULL },
	{ "xdp", "park-after", "1s", "1000", park_after },
	{ "xdp", "park-after", "19ms", "xdp.park-after: expected a duration from 20ms to 10s, in whole ms, not \"19ms\"", NULL },
	{ "xdp", "busy-poll", "50us", "50", busy_poll },
	{ "xdp", "busy-poll", "10ms", "10000", busy_poll },
	{ "xdp", "busy-poll", "50", "xdp.busy-poll: expected a duration from 0 to 10ms, in whole us, not \"50\"", NULL },
	{ "xdp", "busy-poll", "11ms", "xdp.busy-poll: expected a duration from 0 to 10ms, in whole us, not \"11ms\"", NULL },
	{ "xdp", "verify-checksums", "true", "1", verify_checksums },
	{ "xdp", "verify-checksums", "{ a: b }", "xdp.verify-checksums: expected true or false, not a mapping", NULL },
	{ "tcp", "max-connections", "1000000", "1000000", max_connections },
	{ "tcp", "max-connections", "0", "tcp.max-connections: expected a number from 1 to 1000000, not \"0\"", NULL },
	{ "tcp", "max-per-client", "1", "1", max_per_client },
	{ "tcp", "max-per-client", "x", "tcp.max-per-client: expected a number from 1 to 1000000, not \"x\"", NULL },
	{ "tcp", "idle-timeout", "500ms", "500", idle_timeout },
	{ "tcp", "idle-timeout", "1h", "3600000", idle_timeout },
	{ "tcp", "idle-timeout", "99ms", "tcp.idle-timeout: expected a duration from 100ms to 1h, in whole ms, not \"99ms\"", NULL },
	{ "tcp", "idle-timeout", "100500us", "tcp.idle-timeout: expected a duration from 100ms to 1h, in whole ms, not \"100500us\"", NULL },
	{ "tcp", "idle-timeout", "10", "tcp.idle-timeout: expected a duration from 100ms to 1h, in whole ms, not \"10\"", NULL },
	{ "tcp", "max-queries-in-flight", "65535", "65535", in_flight },
	{ "tcp", "max-queries-in-flight", "65536", "tcp.max-queries-in-flight: expected a number from 1 to 65535, not \"65536\"", NULL },
	{ "limits", "max-zone-bytes", "1M", "1048576", max_zone_bytes },
	{ "limits", "max-zone-bytes", "1T", "1099511627776", max_zone_bytes },
	{ "limits", "max-zone-bytes", "1K", "limits.max-zone-bytes: expected a size from 1M to 1T, not \"1K\"", NULL },
	{ "log", "xdp", "debug", "4 3", log_xdp },
	{ "log", "xdp", "Error", "0 3", log_xdp },
	{ "log", "run", "loud", "log.run: expected " LEVELS ", not \"loud\"", NULL },
	{ "log", "config", "7", "log.config: expected " LEVELS ", not \"7\"", NULL },
	{ "log", "control", "", "log.control: has no value: expected " LEVELS "; leave the key out for its default", NULL },
	{ "log", "zone", "[]", "log.zone: expected " LEVELS ", not a list", NULL },
	{ "log", "net", "warn", "log.net: expected " LEVELS ", not \"warn\"", NULL },
	{ "log", "memory", "{}", "log.memory: expected " LEVELS ", not a mapping", NULL },
	{ "zones", "- name", "Example.COM\n    file: a", "Example.COM /etc/skua/a 13", zone },
	{ "zones", "- name", ".\n    file: ./b", ". /etc/skua/b 1", zone },
	{ "zones", "- name", "a\\046b.example.\n    file: /c", "a\\046b.example. /c 13", zone },
	{ "zones", "- name", "x", "zones[0]: \"file\" is missing", NULL },
	{ "zones", "- file", "x", "zones[0]: \"name\" is missing", NULL },
	{ "zones", "- name", "[ x ]\n    file: y", "zones[0].name: expected a domain name, not a list", NULL },
	{ "zones", "- name", "\"\"\n    file: y", "zones[0].name: expected a domain name, not \"\"", NULL },
	{ "zones", "- name", "x\n    file:", "zones[0].file: has no value: expected a path of at most 4000 octets; leave the key out for its default", NULL },
	{ "zones", "- name", "x\n    file: { a: b }", "zones[0].file: expected a path of at most 4000 octets, not a mapping", NULL },
	{ "zones", "- name", "x\n    fil: y\n    file: z", "unknown key \"fil\" in zones: did you mean \"file\"?", NULL },
	{ "limits", "max-questions", "7", "7 1000 10000 5000", questions },
	{ "limits", "max-questions", "0", "limits.max-questions: expected a number from 1 to 1000000, not \"0\"", NULL },
	{ "limits", "max-questions-per-client", "8", "20000 8 10000 5000", questions },
	{ "limits", "max-questions-per-client", "x", "limits.max-questions-per-client: expected a number from 1 to 1000000, not \"x\"", NULL },
	{ "limits", "max-questions-per-upstream", "9", "20000 1000 9 5000", questions },
	{ "limits", "max-questions-per-upstream", "[]", "limits.max-questions-per-upstream: expected a number from 1 to 1000000, not a list", NULL },
	{ "limits", "question-time", "1500ms", "20000 1000 10000 1500", questions },
	{ "limits", "question-time", "99ms", "limits.question-time: expected a duration from 100ms to 1m, in whole ms, not \"99ms\"", NULL },
	{ "recursion", "allow", "[ 10.0.0.0/8, \"2001:db8::/32\", 192.0.2.1 ]", "3 4/8/10 6/32/32 4/32/192", allow },
	{ "recursion", "allow", "[ 0.0.0.0/0, \"::/0\" ]", "2 4/0/0 6/0/0 6/0/0", allow },
	{ "recursion", "allow", "[]", "0 - - -", allow },
	{ "recursion", "allow", "[ 10.0.0.1/8 ]", "recursion.allow[0]: \"10.0.0.1/8\" is not a prefix: the address has bits set behind the length", NULL },
	{ "recursion", "allow", "10.0.0.0/8",
	  "recursion.allow: expected a list of at most 1000000 prefixes, such as [ \"10.0.0.0/8\", \"2001:db8::/32\" ], not \"10.0.0.0/8\"", NULL },
	{ "cache", "memory", "256M", "268435456", memory },
	{ "cache", "memory", "auto", "0", memory },
	{ "cache", "memory", "1M", "1048576", memory },
	{ "cache", "memory", "1023K", "cache.memory: expected auto, or a size from 1M to 1T, not \"1023K\"", NULL },
	{ "cache", "max-ttl", "1h", "3600 0 3600 86400 30 1800", ttls },
	{ "cache", "max-ttl", "1500ms", "cache.max-ttl: expected a duration from 1s to 7d, in whole seconds, not \"1500ms\"", NULL },
	{ "cache", "min-ttl", "5s", "86400 5 3600 86400 30 1800", ttls },
	{ "cache", "min-ttl", "2h", "cache.min-ttl: expected a duration from 0 to 1h, in whole seconds, not \"2h\"", NULL },
	{ "cache", "negative-ttl", "1m", "86400 0 60 86400 30 1800", ttls },
	{ "cache", "negative-ttl", "x", "cache.negative-ttl: expected a duration from 0 to 1d, in whole seconds, not \"x\"", NULL },
	{ "cache", "stale-for", "0", "86400 0 3600 0 30 1800", ttls },
	{ "cache", "stale-for", "8d", "cache.stale-for: expected a duration from 0 to 7d, in whole seconds, not \"8d\"", NULL },
	{ "cache", "stale-ttl", "1s", "86400 0 3600 86400 1 1800", ttls },
	{ "cache", "stale-ttl", "0", "cache.stale-ttl: expected a duration from 1s to 1h, in whole seconds, not \"0\"", NULL },
	{ "cache", "stale-wait", "0", "86400 0 3600 86400 30 0", ttls },
	{ "cache", "stale-wait", "31s", "cache.stale-wait: expected a duration from 0 to 30s, in whole ms, not \"31s\"", NULL },
	{ "cache", "prefetch", "false", "0", prefetch },
	{ "cache", "prefetch", "2", "cache.prefetch: expected true or false, not \"2\"", NULL },
	{ "cache", "file", "x", "/etc/skua/x", cache_file },
	{ "cache", "file", "\"\"", "", cache_file },
	{ "cache", "file", "[]", "cache.file: expected a path of at most 1024 octets, or \"\", not a list", NULL },
	{ "local", "special-names", "false", "0", special_names },
	{ "local", "special-names", "x", "local.special-names: expected true or false, not \"x\"", NULL },
	{ "local", "special-names-off", "[ HOME.arpa., onion ]", "2 HOME.arpa. 11 onion 7", special_names_off },
	{ "local", "special-names-off", "[ a..b ]", "local.special-names-off[0]: \"a..b\" is not a domain name: the name has an empty label", NULL },
	{ "local", "special-names-off", "[ onion, Onion. ]", "local.special-names-off[1]: stands in the list already", NULL },
	{ "local", "hosts", "[ /etc/hosts, more ]", "2 /etc/hosts /etc/skua/more", hosts },
	{ "local", "hosts", "[ \"\" ]", "local.hosts[0]: expected a path of at most 4095 octets, not \"\"", NULL },
	{ "local", "records", "[ \"a. A 1.2.3.4\", \"b. 5 TXT \\\"x y\\\"\" ]", "2 a. A 1.2.3.4 b. 5 TXT \"x y\"", records },
	{ "local", "records", "[ \"a\\nb\" ]", "local.records[0]: expected one line of a master file", NULL },
	{ "forward", "- to", "[ 10.0.0.1, \"[::1]:5300\" ]", ". 1 1 1 2 10.0.0.1:53 0 - 0 [::1]:5300 0 - 0", forward },
	{ "forward", "- zone", "Example.COM\n    to: [ \"tls://9.9.9.9#dns.quad9.net\" ]\n    dnssec: off\n    strategy: spread",
	  "Example.COM 13 0 2 1 9.9.9.9:853 1 dns.quad9.net 0 9.9.9.9:853 1 dns.quad9.net 0", forward },
	{ "forward", "- to", "[ \"TLS://[2620:fe::fe]:8853#sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\" ]\n    strategy: Ordered",
	  ". 1 1 0 1 [2620:fe::fe]:8853 1 - 2 [2620:fe::fe]:8853 1 - 2", forward },
	{ "forward", "- to", "[ \"tls://9.9.9.9\" ]",
	  "forward[0].to[0]: \"tls://9.9.9.9\" is not a server: over TLS it needs a certificate's name or a pin: tls://ADDRESS#NAME or tls://ADDRESS#sha256/BASE64", NULL },
	{ "forward", "- zone", "x", "forward[0]: \"to\" is missing", NULL },
	{ "forward", "- zone", "[]\n    to: [ 10.0.0.1 ]", "forward[0].zone: expected a domain name, not a list", NULL },
	{ "zones", "- x", "", "unknown key \"x\" in zones: there are name, file", NULL },
};
/* clang-format on */

Test(load, every_key_takes_right_values_and_refuses_wrong_ones)
{
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		char text[512], out[256] = "";
		struct config *c = NULL;
		snprintf(text, sizeof text, "%s:\n  %s: %s\n", values[i].section, values[i].key, values[i].value);
		if (values[i].show) {
			c = good(text);
			values[i].show(c, out);
			cr_expect_str_eq(out, values[i].want, "%s gave %s", text, out);
			config_free(c);
			continue;
		}
		cr_expect_eq(load(&c, text), ERR_SYNTAX, "%s", text);
		cr_expect_null(c);
		const char *message = strstr(reports, ": ");
		cr_expect(message && !strncmp(message + 2, values[i].want, strlen(values[i].want)) &&
				  message[2 + strlen(values[i].want)] == '\n',
			  "%sgave %s", text, reports);
		if (strcmp(values[i].key, "- x") != 0)
			cr_expect_eq(error_count, 1, "%sgave %s", text, reports);
	}
}

/* clang-format off */
static const struct { const char *text, *reports; } files[] = {
	/* keys */
	{ "servr:\n  x: 1\n", "1:1: unknown key \"servr\": did you mean \"server\"?\n" },
	{ "nonsense: 1\n", "1:1: unknown key \"nonsense\": there are server, listen, xdp, tcp, zones, forward, recursion, cache, local, limits, log\n" },
	{ "server:\n  udp_payload: 1232\n", "2:3: unknown key \"udp_payload\" in server: did you mean \"udp-payload\"?\n" },
	{ "server:\n  quux: 1\n", "2:3: unknown key \"quux\" in server: there are identity, state, run, workers, version-text, chaos, nsid, cookies, ede, "
	  "cookie-secrets, udp-payload, user-fastpath, user-slowpath\n" },
	{ "identity: x\n", "1:1: unknown key \"identity\": it belongs in \"server\"\n" },
	{ "server:\n  interfaces: []\n", "2:3: unknown key \"interfaces\" in server: it belongs in \"xdp\"\n" },
	{ "\"a\\nb\": 1\n", "1:1: unknown key \"a\\x0ab\": there are server, listen, xdp, tcp, zones, forward, recursion, cache, local, limits, log\n" },
	{ "server:\n  nsid: true\nserver:\n  nsid: false\n", "3:1: duplicate key \"server\": it stands at line 1, column 1 already\n" },
	{ "server:\n  nsid: true\n  ede: true\n  nsid: true\n", "4:3: duplicate key \"nsid\": it stands at line 2, column 3 already\n" },
	{ "zones:\n- {name: a, file: b, file: c}\n", "2:22: duplicate key \"file\": it stands at line 2, column 13 already\n" },
	/* later versions */
	{ "recursion:\n  root-hints: /x\n  trust-anchors: /y\n", "2:3: recursion.root-hints is not available yet in this version\n"
	  "3:3: recursion.trust-anchors is not available yet in this version\n" },
	/* forward zones */
	{ "forward: x\n", "1:10: forward: expected a list, such as \"- zone: example.com\" and \"  to: [ 10.0.0.1 ]\"\n" },
	{ "forward: [ x ]\n", "1:12: forward[0]: expected a mapping with \"zone\" and \"to\"\n" },
	{ "forward:\n  - to: [ 10.0.0.1 ]\n  - to: [ 10.0.0.2 ]\n    zone: .\n",
	  "4:11: forward[1].zone: \".\" stands in the entry at line 2 already\n" },
	{ "forward:\n  - zone: a.b\n    to: [ 10.0.0.1 ]\n  - zone: c\n    to: [ 10.0.0.1 ]\n  - zone: A.B.\n    to: [ 10.0.0.1 ]\n",
	  "6:11: forward[2].zone: \"A.B.\" stands in the entry at line 2 already\n" },
	{ "forward:\n  - to: [ 10.0.0.1 ]\n  - to: [ 10.0.0.2 ]\n", "3:5: forward[1].zone: \".\" stands in the entry at line 2 already\n" },
	{ "forward:\n  - to: [ 10.0.0.1, \"10.0.0.1:53\", \"10.0.0.1:54\", \"tls://10.0.0.1#a\" ]\n",
	  "2:21: forward[0].to[1]: 10.0.0.1:53 stands at line 2, column 11 already\n" },
	{ "forward:\n  - zone: a\n    strategy: best\n    dnssec: 7\n    to: []\n    x: y\n",
	  "6:5: unknown key \"x\" in forward: there are zone, to, dnssec, strategy\n"
	  "5:9: forward[0].to: expected a list of 1 to 64 servers, such as [ \"10.0.0.1\", \"tls://9.9.9.9#dns.quad9.net\" ]; this list has 0 entries\n"
	  "4:13: forward[0].dnssec: expected true or false, not \"7\"\n"
	  "3:15: forward[0].strategy: expected one of ordered, fastest, spread, not \"best\"\n" },
	/* the cache */
	{ "cache:\n  max-ttl: 10s\n  min-ttl: 11s\n", "3:12: cache.min-ttl: 11 s are more than cache.max-ttl (10 s)\n" },
	/* kinds of sections */
	{ "server: 5\n", "1:9: server: expected a mapping, such as \"identity: ...\", not a text\n" },
	{ "listen: []\n", "1:9: listen: expected a mapping, such as \"dns: ...\", not a list\n" },
	{ "zones: x\n", "1:8: zones: expected a list, such as \"- name: example.com\" and \"  file: example.com.zone\"\n" },
	{ "zones: { name: a, file: b }\n", "1:8: zones: expected a list, such as \"- name: example.com\" and \"  file: example.com.zone\"\n" },
	{ "zones: [ a ]\n", "1:10: zones[0]: expected a mapping with \"name\" and \"file\"\n" },
	{ "- a\n", "1:1: expected sections, such as \"server:\" and \"listen:\", not a list\n" },
	{ "hello\n", "1:1: expected sections, such as \"server:\" and \"listen:\", not a text\n" },
	/* zones */
	{ "zones:\n  - name: a.example\n    file: x\n  - name: b.example\n    file: x\n  - name: A.Example.\n    file: y\n",
	  "6:11: zones[2].name: \"A.Example.\" stands at line 2, column 11 already\n" },
	{ "zones:\n  - name: a..b\n    file: x\n", NULL },
	/* several errors in one run */
	{ "server:\n  workers: many\n  nsid: 5\nlisten:\n  dns: [ x, 1.2.3.4, y ]\nxdp:\n  ring-size: 3\n  foo: 1\n",
	  "2:12: server.workers: expected auto, or a number from 1 to 256, not \"many\"\n3:9: server.nsid: expected true or false, not \"5\"\n"
	  "5:10: listen.dns[0]: \"x\" is not an address: expected an IPv4 or IPv6 address, such as 10.0.0.1, 10.0.0.1:5300, 2001:db8::1 or "
	  "[2001:db8::1]:5300\n"
	  "5:22: listen.dns[2]: \"y\" is not an address: expected an IPv4 or IPv6 address, such as 10.0.0.1, 10.0.0.1:5300, 2001:db8::1 or "
	  "[2001:db8::1]:5300\n"
	  "8:3: unknown key \"foo\" in xdp: there are enabled, interfaces, mode, cpus, reply, pin-dir, ring-size, busy-poll, park-after, verify-checksums\n"
	  "7:14: xdp.ring-size: expected a power of two from 64 to 16384, not \"3\"\n" },
	/* YAML that we refuse */
	{ "server: &a\n  nsid: true\n", "1:9: anchors (&name) are not supported: write the value where it is needed\n" },
	{ "server:\n  nsid: &a true\n  ede: *a\n", "2:9: anchors (&name) are not supported: write the value where it is needed\n"
	  "3:8: aliases (*name) are not supported: write the value where it is needed\n" },
	{ "server:\n  <<: { nsid: true }\n", "2:3: merge keys (<<) are not supported: write the keys where they are needed\n" },
	{ "server:\n  <<: *x\n", "2:3: merge keys (<<) are not supported: write the keys where they are needed\n"
	  "2:7: aliases (*name) are not supported: write the value where it is needed\n" },
	{ "*x : 1\n", "1:1: aliases (*name) are not supported: write the value where it is needed\n" },
	{ "server:\n  workers: !!int 3\n", "2:12: tags (!type) are not supported: write the value alone\n" },
	{ "server: !x\n  nsid: true\n", "1:9: tags (!type) are not supported: write the value alone\n" },
	{ "{}\n---\n{}\n", "2:1: a second document (---) is not supported\n" },
	{ "? [ a ]\n: b\n", "1:3: a key must be a plain word, not a list\n" },
	{ "? { a: b }\n: c\n", "1:3: a key must be a plain word, not a mapping\n" },
	{ "server: [[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]\n", "1:16: mappings and lists are nested more than 8 deep\n" },
	{ "server:\n  identity: \"a\\0b\"\n", "2:13: a value holds a NUL character\n" },
	/* YAML that is none */
	{ "server:\n\tnsid: true\n", "2:1: a tab can't indent or separate in YAML: use spaces\n" },
	{ "server:\n  nsid: true\n \t ede: true\n", "3:2: a tab can't indent or separate in YAML: use spaces\n" },
	{ "server:\n  nsid: true\n   ede: true\n", "3:7: not valid YAML: mapping values are not allowed in this context\n" },
	{ "server:\n  identity: \"abc\n", "3:1: not valid YAML: found unexpected end of stream, while scanning a quoted scalar that starts at line 2\n" },
	{ "listen:\n  dns: [ 10.0.0.1\nxdp:\n", "3:4: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence that starts at line 2\n" },
	{ "server:\n  nsid: true\n ede: true\n", NULL },
	{ "server: }\n", NULL }, { "%BAD\n", NULL }, { "server: @x\n", NULL }, { "a: b: c\n", NULL }, { "- a\nb: c\n", NULL },
	{ "server:\n  identity: \"\\z\"\n", NULL },
	{ "server:\n  identity: a\xff\n", "2:14: not a text in UTF-8: invalid leading UTF-8 octet\n" },
	{ "# \xc3\xa9\xc3\xa9 \x01\n", "1:6: not a text in UTF-8: control characters are not allowed\n" },
};
/* clang-format on */

Test(load, whole_files_and_all_that_is_reported_of_them)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct config *c = NULL;
		cr_expect_eq(load(&c, files[i].text), ERR_SYNTAX, "%s", files[i].text);
		cr_expect_null(c);
		if (files[i].reports)
			cr_expect_str_eq(reports, files[i].reports, "%sgave\n%s", files[i].text, reports);
		else
			cr_expect_eq(error_count, 1, "%sgave\n%s", files[i].text, reports);
	}
}

Test(load, warnings_do_not_refuse)
{
	struct config *c = NULL;
	cr_expect_eq(load(&c, "server:\n  cookies: false\n  cookie-secrets: [ " S1
			      " ]\ntcp:\n  max-connections: 10\n  max-per-client: 20\n"),
		     ERR_OK);
	cr_expect_str_eq(reports,
			 "3:19: warning: server.cookie-secrets: have no effect while server.cookies is false\n"
			 "6:19: warning: tcp.max-per-client: has no effect above tcp.max-connections (10)\n",
			 "%s", reports);
	config_free(c);
}

Test(load, secrets_are_never_shown)
{
	static const char *const texts[] = { "server:\n  cookie-secrets: " S1 "\n", "server:\n  cookie-secrets: [ " S1 "0 ]\n",
					     "server:\n  cookie-secrets: [ " S1 ", " S1 " ]\n",
					     "server:\n  cookie-secrets: [ [ " S1 " ] ]\n" };
	struct config *c;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		cr_expect_eq(load(&c, texts[i]), ERR_SYNTAX);
		cr_expect_null(strstr(reports, "0102030405"), "%s", reports);
	}
}

static char *repeat(const char *head, const char *part, size_t times, const char *tail)
{
	size_t part_bytes = strlen(part), used = strlen(head);
	char *text = malloc(used + part_bytes * times + strlen(tail) + 1);
	memcpy(text, head, used);
	for (size_t i = 0; i < times; i++, used += part_bytes)
		memcpy(text + used, part, part_bytes);
	memcpy(text + used, tail, strlen(tail) + 1);
	return text;
}

Test(load, what_can_grow_is_bounded)
{
	struct config *c;
	static const struct {
		const char *head, *part;
		size_t times;
		const char *tail, *last_report;
	} cases[] = {
		{ "listen:\n  dns: [ ", "x, ", 64, "]\n", "51 errors" },
		{ "server:\n", "  a: 1\n", 257, "", "258:3: a mapping has at most 256 keys\n" },
		{ "server:\n  identity: ", "x", 5000, "\n", "2:13: a value is longer than 4096 octets\n" },
		{ "server:\n  identity: ", "x", 4096, "\n",
		  "2:13: server.identity: expected a text of at most 127 printable characters, not \""
		  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\"\n" },
		{ "", "[", 1000000, "", "1:9: mappings and lists are nested more than 8 deep\n" },
		{ "", "{a: ", 1000000, "", "1:33: mappings and lists are nested more than 8 deep\n" },
		{ "a: &a [x]\nb: ", "[*a,", 100, "",
		  "1:4: anchors (&name) are not supported: write the value where it is needed\n"
		  "2:5: aliases (*name) are not supported: write the value where it is needed\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = repeat(cases[i].head, cases[i].part, cases[i].times, cases[i].tail);
		cr_expect_eq(load(&c, text), ERR_SYNTAX);
		if (i == 0) {
			cr_expect_eq(error_count, CONFIG_MAX_ERRORS + 1, "%u", error_count);
			cr_expect(strstr(reports, "too many errors: the rest of the file was not checked\n"));
		} else if (i == ARRAY_LEN(cases) - 1) {
			cr_expect(strncmp(reports, cases[i].last_report, strlen(cases[i].last_report)) == 0, "%s", reports);
		} else {
			cr_expect_str_eq(reports, cases[i].last_report, "%s", reports);
		}
		free(text);
	}
	char *large = calloc(1, CONFIG_MAX_BYTES + 1u);
	reports[0] = '\0';
	cr_expect_eq(config_load(&c, FILE_NAME, large, CONFIG_MAX_BYTES + 1u, collect, NULL), ERR_SYNTAX);
	cr_expect_str_eq(reports, "1:1: the file is larger than 134217728 octets\n");
	free(large);
}

Test(load, many_zones_are_read_and_the_rest_is_had_without_them)
{
	enum { COUNT = 20000 };
	char *text = malloc(COUNT * 64 + 1000), *rest = NULL;
	size_t used = (size_t)sprintf(text, "server:\n  identity: x\nzones:\n"), rest_bytes = 0;
	for (int i = 0; i < COUNT; i++)
		used += (size_t)sprintf(text + used, "  - name: Z%d.example\n    file: zones/%d.zone\n", i, i);
	used += (size_t)sprintf(text + used, "# the end\nlog:\n  xdp: debug\n");
	struct config *c = good(text), *without = NULL;
	cr_assert_eq(c->zone_count, COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		char name[32], file[64];
		snprintf(name, sizeof name, "Z%zu.example", i);
		snprintf(file, sizeof file, "/etc/skua/zones/%zu.zone", i);
		cr_assert_str_eq(c->zone[i].name_text, name);
		cr_assert_str_eq(c->zone[i].file, file);
		cr_assert_eq(c->zone[i].place.line, 4 + 2 * i);
		cr_assert_eq(c->zone[i].name[1], 'z', "lower-cased");
	}
	cr_assert_eq(config_text_without_zones(c, text, used, &rest, &rest_bytes), ERR_OK);
	cr_expect_lt(rest_bytes, 2 * COUNT + 100);
	without = good(rest);
	cr_expect_eq(without->zone_count, 0);
	cr_expect_str_eq(without->server.identity, "x");
	cr_expect_eq(without->log.level[LOG_XDP].level, LOG_LEVEL_DEBUG);
	unsigned lines = 0, rest_lines = 0;
	for (char *p = text; *p; p++)
		lines += *p == '\n';
	for (char *p = rest; *p; p++)
		rest_lines += *p == '\n';
	cr_expect_eq(lines, rest_lines, "places stay right");
	config_free(without);
	config_free(c);
	free(rest);
	free(text);
}

Test(load, zones_are_cut_out_only_where_lines_are_theirs)
{
	static const struct {
		const char *text, *rest;
	} cases[] = {
		{ "zones: []\n", "\n" },
		{ "zones: []", "" },
		{ "log: {}\nzones:\n- name: a\n  file: b\n", "log: {}\n\n\n\n" },
		{ "zones:\n- name: a\n  file: b\nlog: {}\n", "\n\n\nlog: {}\n" },
		{ "zones: [\n {name: a, file: b}\n ]\nlog: {}\n", "\n\n\nlog: {}\n" },
		{ "{ log: {}, zones: [ {name: a, file: b} ] }\n", "{ log: {}, zones: [ {name: a, file: b} ] }\n" },
		{ "log: {}\n", "log: {}\n" },
		{ "  log: {}\n  zones: []\n", "  log: {}\n  zones: []\n" },
		{ "", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *c = good(cases[i].text);
		char *rest;
		size_t bytes;
		cr_assert_eq(config_text_without_zones(c, cases[i].text, strlen(cases[i].text), &rest, &bytes), ERR_OK);
		cr_expect_str_eq(rest, cases[i].rest, "%s", cases[i].text);
		cr_expect_eq(bytes, strlen(rest));
		free(rest);
		config_free(c);
	}
}

Test(load, relative_names_start_from_the_files_folder)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/skua.yaml", "/z" },	   { "/a/b/skua.yaml", "/a/b/z" },
		{ "skua.yaml", "/tmp/z" }, { "conf/skua.yaml", "/tmp/conf/z" },
		{ "", "/tmp/z" },
	};
	cr_assert_eq(chdir("/tmp"), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *c = NULL;
		static const char text[] = "zones: [ { name: x, file: z } ]";
		cr_assert_eq(config_load(&c, cases[i].path, text, strlen(text), collect, NULL), ERR_OK);
		cr_expect_str_eq(c->zone[0].file, cases[i].want, "%s gave %s", cases[i].path, c->zone[0].file);
		cr_expect_str_eq(c->path, cases[i].path);
		config_free(c);
	}
	char longer[5000];
	struct config *c = NULL;
	memset(longer, 'x', sizeof longer);
	longer[0] = longer[4998] = '/';
	longer[4999] = '\0';
	reports[0] = '\0';
	cr_expect_eq(config_load(&c, longer, "", 0, collect, NULL), ERR_SYNTAX);
	cr_expect_str_eq(reports, "1:1: the folder of this file can't be found out: its path is too long, or gone\n");
}

Test(load, files_are_read_whole_or_refused)
{
	char path[] = "/tmp/config-load-test-XXXXXX", *text = NULL;
	size_t bytes = 0;
	int fd = mkstemp(path);
	cr_assert_eq(config_read_file(path, &text, &bytes), ERR_OK, "an empty one");
	cr_expect_eq(bytes, 0);
	free(text);
	char block[70000];
	memset(block, 'x', sizeof block);
	cr_assert_eq(write(fd, block, sizeof block), (ssize_t)sizeof block);
	cr_assert_eq(config_read_file(path, &text, &bytes), ERR_OK);
	cr_expect(bytes == sizeof block && !memcmp(text, block, bytes));
	free(text);
	text = NULL;
	cr_assert_eq(ftruncate(fd, CONFIG_MAX_BYTES + 1ll), 0);
	cr_expect_eq(config_read_file(path, &text, &bytes), ERR_NOSPACE);
	cr_expect_eq(config_read_file("/nonexistent", &text, &bytes), ERR_NOTFOUND);
	errno = 0;
	cr_expect_eq(config_read_file("/tmp", &text, &bytes), ERR_IO);
	cr_expect_eq(errno, EISDIR);
	cr_expect_null(text);
	close(fd);
	unlink(path);
}
