/* SPDX-License-Identifier: Apache-2.0 */
/* qload: sends DNS queries over UDP at a fixed rate for a bounded time and says what became of each: for system tests.
 *
 *   qload -s ADDRESS [-p PORT] -r RATE -t SECONDS -f NAMES [-D] [-c SOCKETS] [-w WAIT_MS]
 *
 * NAMES has one "name [type]" a line; they are asked in turn. A query is known by its socket and id; each socket has a port of
 * its own, so that the server's queues and workers all get some. Prints one JSON object. It is no benchmark tool: one thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_SOCKETS 256
#define IDS 65536u
#define BATCH 32
#define QUERY_MAX 300
#define REPLY_MAX 4096
#define MAX_NAMES 4000000
#define LINEAR_US 1024 /* latency histogram: single microseconds up to here, then 32 steps per power of two */
#define STEPS_PER_POWER 32
#define BUCKETS (LINEAR_US + 22 * STEPS_PER_POWER)

struct query {
	uint16_t bytes;
	uint8_t wire[];
};
struct type_name {
	const char *text;
	uint16_t value;
};

static struct {
	const char *server, *names;
	unsigned port, rate, seconds, sockets, wait_ms;
	bool with_do;
} option = { .port = 53, .sockets = 16, .wait_ms = 1000 };

static struct query **queries;
static size_t query_count;
static int sockets[MAX_SOCKETS];
static uint64_t *sent_at; /* [socket][id], nanoseconds since the start plus one; 0: not outstanding */
static uint16_t next_id[MAX_SOCKETS];
static uint64_t start_ns, sent, send_errors, received, unmatched, lost, rcodes[16], truncated;
static uint64_t last_reply_ns, longest_gap_ns, longest_gap_at_ns, first_lost_ns = UINT64_MAX, last_lost_ns;
static uint64_t histogram[BUCKETS];

static void die(const char *what)
{
	fprintf(stderr, "qload: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- queries ----------------------------------------------------------------- */
static uint16_t type_value(const char *text)
{
	static const struct type_name known[] = { { "A", 1 },	  { "NS", 2 },	   { "CNAME", 5 }, { "SOA", 6 },
						  { "PTR", 12 },  { "MX", 15 },	   { "TXT", 16 },  { "AAAA", 28 },
						  { "SRV", 33 },  { "DNAME", 39 }, { "DS", 43 },   { "DNSKEY", 48 },
						  { "SVCB", 64 }, { "HTTPS", 65 }, { "ANY", 255 }, { "CAA", 257 } };
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcasecmp(text, known[i].text) == 0)
			return known[i].value;
	}
	if (strncasecmp(text, "TYPE", 4) == 0)
		return (uint16_t)atoi(text + 4);
	fprintf(stderr, "qload: unknown type %s (TYPEnnn works for all)\n", text);
	exit(2);
}

/* Plain names only: no escapes. Returns the length, 0 if it is none. */
static size_t put_name(uint8_t *out, const char *text)
{
	size_t pos = 0;
	while (*text && strcmp(text, ".") != 0) {
		size_t label = strcspn(text, ".");
		if (label == 0 || label > 63 || pos + label + 2 > 255)
			return 0;
		out[pos++] = (uint8_t)label;
		memcpy(out + pos, text, label);
		pos += label;
		text += label;
		if (*text == '.')
			text++;
	}
	out[pos++] = 0;
	return pos;
}

static struct query *make_query(const char *name, uint16_t type)
{
	uint8_t wire[QUERY_MAX] = { [5] = 1 };
	size_t name_bytes = put_name(wire + 12, name), bytes = 12 + name_bytes;
	if (name_bytes == 0) {
		fprintf(stderr, "qload: no name: %s\n", name);
		exit(2);
	}
	wire[bytes++] = (uint8_t)(type >> 8);
	wire[bytes++] = (uint8_t)type;
	wire[bytes++] = 0;
	wire[bytes++] = 1;
	if (option.with_do) {
		static const uint8_t opt[11] = { 0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0 };
		memcpy(wire + bytes, opt, sizeof opt);
		bytes += sizeof opt;
		wire[11] = 1;
	}
	struct query *q = malloc(sizeof *q + bytes);
	if (!q)
		die("malloc");
	q->bytes = (uint16_t)bytes;
	memcpy(q->wire, wire, bytes);
	return q;
}

static void read_names(void)
{
	FILE *f = fopen(option.names, "r");
	if (!f)
		die(option.names);
	char line[512], name[256], type[32];
	size_t room = 0;
	while (fgets(line, sizeof line, f) && query_count < MAX_NAMES) {
		int fields = sscanf(line, "%255s %31s", name, type);
		if (fields < 1)
			continue;
		if (query_count == room) {
			room = room ? 2 * room : 1024;
			queries = realloc(queries, room * sizeof *queries);
			if (!queries)
				die("realloc");
		}
		queries[query_count++] = make_query(name, fields > 1 ? type_value(type) : 1);
	}
	fclose(f);
	if (query_count == 0) {
		fprintf(stderr, "qload: no names in %s\n", option.names);
		exit(2);
	}
}

/* --- sockets ----------------------------------------------------------------- */
static void open_sockets(void)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { 0 };
	socklen_t length;
	if (inet_pton(AF_INET, option.server, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons((uint16_t)option.port);
		length = sizeof a.v4;
	} else if (inet_pton(AF_INET6, option.server, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons((uint16_t)option.port);
		length = sizeof a.v6;
	} else {
		fprintf(stderr, "qload: no address: %s\n", option.server);
		exit(2);
	}
	int buffer = 4 << 20;
	for (unsigned i = 0; i < option.sockets; i++) {
		sockets[i] = socket(a.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (sockets[i] < 0 || connect(sockets[i], &a.any, length) < 0)
			die("socket");
		if (setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) < 0)
			(void)setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	}
	sent_at = calloc((size_t)option.sockets * IDS, sizeof *sent_at);
	if (!sent_at)
		die("calloc");
}

/* --- bookkeeping ----------------------------------------------------------------- */
static size_t bucket_of(uint64_t us)
{
	if (us < LINEAR_US)
		return us;
	unsigned power = 63u - (unsigned)__builtin_clzll(us); /* at least 10 */
	size_t bucket = LINEAR_US + (size_t)(power - 10) * STEPS_PER_POWER + ((us >> (power - 5)) & (STEPS_PER_POWER - 1));
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t bucket_us(size_t bucket)
{
	if (bucket < LINEAR_US)
		return bucket;
	unsigned power = 10 + (unsigned)((bucket - LINEAR_US) / STEPS_PER_POWER);
	return ((uint64_t)1 << power) + ((uint64_t)((bucket - LINEAR_US) % STEPS_PER_POWER) << (power - 5));
}

static void note_lost(uint64_t at_ns)
{
	lost++;
	if (at_ns < first_lost_ns)
		first_lost_ns = at_ns;
	if (at_ns > last_lost_ns)
		last_lost_ns = at_ns;
}

static void note_reply(unsigned s, const uint8_t *msg, size_t bytes, uint64_t at_ns)
{
	if (bytes < 12 || !(msg[2] & 0x80)) {
		unmatched++;
		return;
	}
	uint64_t *slot = &sent_at[(size_t)s * IDS + (size_t)(msg[0] << 8 | msg[1])];
	if (!*slot) {
		unmatched++;
		return;
	}
	histogram[bucket_of((at_ns - (*slot - 1)) / 1000)]++;
	*slot = 0;
	received++;
	rcodes[msg[3] & 15]++;
	truncated += (msg[2] & 2) != 0;
	if (at_ns - last_reply_ns > longest_gap_ns) {
		longest_gap_ns = at_ns - last_reply_ns;
		longest_gap_at_ns = last_reply_ns;
	}
	last_reply_ns = at_ns;
}

/* --- sending and receiving ----------------------------------------------------------------- */
static void send_some(unsigned s, unsigned count)
{
	static uint8_t wire[BATCH][QUERY_MAX];
	static struct mmsghdr m[BATCH];
	static struct iovec io[BATCH];
	static size_t next_query;
	uint64_t at_ns = now_ns() - start_ns;
	uint64_t *slots[BATCH];
	for (unsigned i = 0; i < count; i++) {
		const struct query *q = queries[next_query];
		next_query = (next_query + 1) % query_count;
		uint16_t id = next_id[s]++;
		slots[i] = &sent_at[(size_t)s * IDS + id];
		if (*slots[i])
			note_lost(*slots[i] - 1);
		*slots[i] = at_ns + 1;
		memcpy(wire[i], q->wire, q->bytes);
		wire[i][0] = (uint8_t)(id >> 8);
		wire[i][1] = (uint8_t)id;
		io[i] = (struct iovec){ wire[i], q->bytes };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &io[i], .msg_iovlen = 1 };
	}
	for (unsigned done = 0; done < count;) {
		int n = sendmmsg(sockets[s], m + done, count - done, 0);
		if (n > 0) {
			done += (unsigned)n;
			sent += (unsigned)n;
			continue;
		}
		*slots[done++] = 0; /* it never left: no lost query of the server's */
		send_errors++;
	}
}

static void receive_some(unsigned s)
{
	static uint8_t buffer[BATCH][REPLY_MAX];
	static struct mmsghdr m[BATCH];
	static struct iovec io[BATCH];
	for (unsigned i = 0; i < BATCH; i++) {
		io[i] = (struct iovec){ buffer[i], REPLY_MAX };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &io[i], .msg_iovlen = 1 };
	}
	int n = recvmmsg(sockets[s], m, BATCH, MSG_DONTWAIT, NULL);
	uint64_t at_ns = now_ns() - start_ns;
	for (int i = 0; i < n; i++)
		note_reply(s, buffer[i], m[i].msg_len, at_ns);
}

static void wait_and_receive(uint64_t until_ns)
{
	struct pollfd p[MAX_SOCKETS];
	for (unsigned i = 0; i < option.sockets; i++)
		p[i] = (struct pollfd){ .fd = sockets[i], .events = POLLIN };
	uint64_t now = now_ns(), wait = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = { .tv_sec = (time_t)(wait / 1000000000u), .tv_nsec = (long)(wait % 1000000000u) };
	if (ppoll(p, option.sockets, &timeout, NULL) <= 0)
		return;
	for (unsigned i = 0; i < option.sockets; i++) {
		if (p[i].revents)
			receive_some(i);
	}
}

static void run(void)
{
	uint64_t end_ns = (uint64_t)option.seconds * 1000000000u, scheduled = 0;
	unsigned s = 0;
	start_ns = now_ns();
	for (;;) {
		uint64_t elapsed = now_ns() - start_ns;
		if (elapsed >= end_ns)
			break;
		uint64_t due = elapsed * option.rate / 1000000000u + 1;
		for (unsigned bursts = 0; scheduled < due && bursts < 8; bursts++) { /* late: catch up, but go on receiving */
			unsigned count = due - scheduled < BATCH ? (unsigned)(due - scheduled) : BATCH;
			send_some(s, count);
			scheduled += count;
			s = (s + 1) % option.sockets;
		}
		uint64_t next = start_ns + (scheduled + 1) * 1000000000u / option.rate;
		wait_and_receive(next);
	}
	uint64_t final_ns = last_reply_ns, until = now_ns() + (uint64_t)option.wait_ms * 1000000u;
	if (end_ns > final_ns && end_ns - final_ns > longest_gap_ns) { /* silent at the end */
		longest_gap_ns = end_ns - final_ns;
		longest_gap_at_ns = final_ns;
	}
	uint64_t gap_ns = longest_gap_ns, gap_at_ns = longest_gap_at_ns;
	while (now_ns() < until && received + lost < sent)
		wait_and_receive(until);
	longest_gap_ns = gap_ns; /* the wait for stragglers is no gap in the service */
	longest_gap_at_ns = gap_at_ns;
	for (size_t i = 0; i < (size_t)option.sockets * IDS; i++) {
		if (sent_at[i])
			note_lost(sent_at[i] - 1);
	}
}

static uint64_t percentile_us(double fraction)
{
	uint64_t want = (uint64_t)((double)received * fraction), seen = 0;
	for (size_t i = 0; i < BUCKETS; i++) {
		seen += histogram[i];
		if (seen > want || (seen == received && seen))
			return bucket_us(i);
	}
	return 0;
}

static void print_result(void)
{
	printf("{\"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"unmatched\": %" PRIu64
	       ", \"send_errors\": %" PRIu64 ", \"truncated\": %" PRIu64 ", \"rcodes\": {",
	       sent, received, lost, unmatched, send_errors, truncated);
	const char *separator = "";
	for (unsigned i = 0; i < 16; i++) {
		if (rcodes[i]) {
			printf("%s\"%u\": %" PRIu64, separator, i, rcodes[i]);
			separator = ", ";
		}
	}
	printf("}, \"latency_us\": {\"p50\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64 ", \"p999\": %" PRIu64
	       ", \"max\": %" PRIu64 "}, \"longest_gap_ms\": %.3f, \"longest_gap_at_s\": %.3f",
	       percentile_us(0.5), percentile_us(0.9), percentile_us(0.99), percentile_us(0.999), percentile_us(1.0),
	       (double)longest_gap_ns / 1e6, (double)longest_gap_at_ns / 1e9);
	if (lost)
		printf(", \"first_lost_at_s\": %.3f, \"last_lost_at_s\": %.3f", (double)first_lost_ns / 1e9,
		       (double)last_lost_ns / 1e9);
	printf("}\n");
}

static unsigned number(const char *text, unsigned max)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);
	if (*end || v == 0 || v > max) {
		fprintf(stderr, "qload: not in 1 to %u: %s\n", max, text);
		exit(2);
	}
	return (unsigned)v;
}

int main(int argc, char **argv)
{
	int o;
	while ((o = getopt(argc, argv, "s:p:r:t:f:c:w:D")) != -1) {
		switch (o) {
		case 's': option.server = optarg; break;
		case 'f': option.names = optarg; break;
		case 'p': option.port = number(optarg, 65535); break;
		case 'r': option.rate = number(optarg, 5000000); break;
		case 't': option.seconds = number(optarg, 3600); break;
		case 'c': option.sockets = number(optarg, MAX_SOCKETS); break;
		case 'w': option.wait_ms = number(optarg, 60000); break;
		case 'D': option.with_do = true; break;
		default: return 2;
		}
	}
	if (!option.server || !option.names || !option.rate || !option.seconds) {
		fprintf(stderr, "usage: qload -s ADDRESS [-p PORT] -r RATE -t SECONDS -f NAMES [-D] [-c SOCKETS] [-w WAIT_MS]\n");
		return 2;
	}
	read_names();
	open_sockets();
	run();
	print_result();
	return 0;
}
