/* SPDX-License-Identifier: Apache-2.0 */
/* generate: asks queries at a rate or as fast as they are answered, and says what came back and when.
 *
 *   generate --to ADDRESS[:PORT] --queries FILE [--rate N | --outstanding N] [--seconds N] [--once] [--flows N] [--edns] [--do]
 *            [--timeout SECONDS] [--xdp INTERFACE --mac MAC --own-mac MAC --from ADDRESS]
 *
 * FILE has a line "name [type]" for each query, asked in turn from the first, again and again (--once: once).
 * Open loop  (--rate): query i is due at start + i / rate, whatever happens to those before it; its latency counts from then on, so
 *            that a server (or a generator) that stalls shows in every query that should have been sent meanwhile.
 * Closed     (--outstanding): so many are under way at any time; latency counts from the sending.
 * Output     One JSON object: sent, answered, lost, late, rcodes, rate of answers, latency quantiles in microseconds (within 1 %). */
#include "bench/generate.h"

#include "base/clock.h"
#include "dns/name.h"
#include "dns/rr_type.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define FLIGHT_MAX (1u << 20)
#define SECOND_NS 1000000000ull
#define OPT_BYTES 11u

struct query {
	uint32_t offset;
	uint16_t bytes;
};

struct flight { /* one query under way, in the order of sending */
	uint64_t due_ns;
	uint32_t key; /* flow << 16 | id */
};

struct generator {
	struct generate_options options;
	struct generate_wire *wire;
	uint8_t *text;
	struct query *queries;
	size_t query_count, text_bytes;
	bool is_edns, is_do, is_once;
	uint64_t rate, outstanding, seconds, timeout_ns;
	/* under way: due_ns + 1 by key, 0: not */
	uint64_t *due;
	struct flight *flights;
	uint64_t flight_first, flight_end;
	uint16_t *next_id;
	uint64_t sent, answered, lost, late, unsendable, under_way, rcode[16];
	uint64_t first_ns, last_ns;
	struct histogram latency;
};

static void fail(const char *what)
{
	fprintf(stderr, "generate: %s\n", what);
	exit(2);
}

/* --- what is asked -------------------------------------------------------------------------------------------------------- */

static void add_query(struct generator *g, const char *line, size_t line_number)
{
	char name[1100], type_text[32] = "A";
	uint8_t message[GENERATE_MESSAGE_MAX] = { 0, 0, 1, 0, 0, 1 };
	static const uint8_t root[1];
	const char *why = "no name";
	uint16_t type;
	size_t at = 12, name_bytes;

	if (sscanf(line, "%1099s %31s", name, type_text) < 1)
		return;
	name_bytes = name_from_text(message + at, name, strlen(name), root, &why);
	if (!name_bytes || !rr_type_from_text(type_text, strlen(type_text), &type)) {
		fprintf(stderr, "generate: query %zu: %s\n", line_number, name_bytes ? "unknown type" : why);
		exit(2);
	}
	at += name_bytes;
	store_be16(message + at, type);
	store_be16(message + at + 2, RR_CLASS_IN);
	at += 4;
	if (g->is_edns) {
		message[11] = 1;
		store_be16(message + at + 1, RR_OPT);
		store_be16(message + at + 3, 1232);
		message[at + 7] = g->is_do ? 0x80 : 0;
		at += OPT_BYTES;
	}
	if ((g->query_count & (g->query_count - 1)) == 0)
		g->queries = realloc(g->queries, MAX(2 * g->query_count, 1u) * sizeof(*g->queries));
	if (g->text_bytes % (1 << 20) + at > 1 << 20 || g->text_bytes == 0)
		g->text = realloc(g->text, (g->text_bytes / (1 << 20) + 2) << 20);
	if (!g->queries || !g->text)
		fail("no memory for the queries");
	memcpy(g->text + g->text_bytes, message, at);
	g->queries[g->query_count++] = (struct query){ (uint32_t)g->text_bytes, (uint16_t)at };
	g->text_bytes += at;
}

static void read_queries(struct generator *g, const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t capacity = 0, number = 0;

	if (!f)
		fail("the file of queries can't be read");
	while (getline(&line, &capacity, f) > 0)
		add_query(g, line, ++number);
	free(line);
	fclose(f);
	if (!g->query_count)
		fail("there are no queries");
}

/* --- sending and receiving ----------------------------------------------------------------------------------------------- */

static void forget_old(struct generator *g, uint64_t now_ns, uint64_t age_ns)
{
	for (; g->flight_first < g->flight_end; g->flight_first++) {
		struct flight *f = &g->flights[g->flight_first % FLIGHT_MAX];

		if (g->due[f->key] != f->due_ns + 1)
			continue; /* answered */
		if (now_ns < f->due_ns + age_ns)
			return;
		g->due[f->key] = 0;
		g->lost++;
		g->under_way--;
	}
}

static void receive(struct generator *g)
{
	struct generate_reply r[GENERATE_BATCH];
	unsigned n;

	while ((n = g->wire->receive(g->wire, r)) > 0) {
		uint64_t now_ns = clock_mono_ns();

		for (unsigned i = 0; i < n; i++) {
			uint32_t key = (uint32_t)r[i].flow << 16 | r[i].id;

			if (r[i].flow >= g->options.flows || !(r[i].flags & 0x80) || !g->due[key]) {
				g->late++;
				continue;
			}
			histogram_add(&g->latency, now_ns - (g->due[key] - 1));
			g->due[key] = 0;
			g->answered++;
			g->under_way--;
			g->rcode[r[i].rcode]++;
			g->last_ns = now_ns;
		}
	}
}

/* Sends queries [sent, sent + count), due at due_ns[]. Returns how many. */
static unsigned send_some(struct generator *g, const uint64_t *due_ns, unsigned count)
{
	struct generate_message m[GENERATE_BATCH] = { 0 };

	for (unsigned i = 0; i < count; i++) {
		/* Neighbours share a flow, so that sockets send several at once. */
		uint64_t number = g->sent + i;
		uint16_t flow = (uint16_t)(number / 8 % g->options.flows);
		const struct query *q = &g->queries[number % g->query_count];

		m[i] = (struct generate_message){
			.flow = flow, .bytes = q->bytes, .data = g->text + q->offset, .id = g->next_id[flow]++
		};
	}
	unsigned n = g->wire->send(g->wire, m, count);

	for (unsigned i = 0; i < count; i++) {
		uint32_t key = (uint32_t)m[i].flow << 16 | m[i].id;

		if (i >= n) {
			g->next_id[m[i].flow]--;
			continue;
		}
		if (g->due[key]) { /* the ids have gone round: it is lost */
			g->lost++;
			g->under_way--;
		}
		g->due[key] = due_ns[i] + 1;
		g->flights[g->flight_end++ % FLIGHT_MAX] = (struct flight){ due_ns[i], key };
		g->under_way++;
	}
	if (g->flight_end - g->flight_first > FLIGHT_MAX - GENERATE_BATCH)
		forget_old(g, UINT64_MAX / 2, 0);
	g->sent += n;
	return n;
}

static uint64_t due_at(const struct generator *g, uint64_t number)
{
	return g->first_ns + (uint64_t)((unsigned __int128)number * SECOND_NS / g->rate);
}

static void run_open(struct generator *g, uint64_t total)
{
	while (g->sent < total) {
		uint64_t now_ns = clock_mono_ns(), due[GENERATE_BATCH];
		unsigned count = 0;

		while (count < GENERATE_BATCH && g->sent + count < total && due_at(g, g->sent + count) <= now_ns) {
			due[count] = due_at(g, g->sent + count);
			count++;
		}
		if (count && send_some(g, due, count) < count)
			g->unsendable++;
		receive(g);
		forget_old(g, now_ns, g->timeout_ns);
		if (count < GENERATE_BATCH) {
			uint64_t next_ns = due_at(g, g->sent), at_ns = clock_mono_ns();

			if (g->sent < total && next_ns > at_ns)
				g->wire->wait(g->wire, next_ns - at_ns);
		}
	}
}

static void run_closed(struct generator *g, uint64_t total, uint64_t until_ns)
{
	uint64_t now_ns;

	while (g->sent < total && (now_ns = clock_mono_ns()) < until_ns) {
		uint64_t due[GENERATE_BATCH];
		unsigned count =
			(unsigned)MIN(MIN(g->outstanding - MIN(g->under_way, g->outstanding), total - g->sent), GENERATE_BATCH);

		for (unsigned i = 0; i < count; i++)
			due[i] = now_ns;
		if (count)
			send_some(g, due, count);
		else
			g->wire->wait(g->wire, 10000000);
		receive(g);
		forget_old(g, now_ns, g->timeout_ns);
	}
}

/* Waits for what is under way. */
static void drain(struct generator *g)
{
	uint64_t until_ns = clock_mono_ns() + g->timeout_ns;

	while (g->under_way && clock_mono_ns() < until_ns) {
		g->wire->wait(g->wire, 1000000);
		receive(g);
	}
	forget_old(g, UINT64_MAX / 2, 0);
}

/* --- the report ------------------------------------------------------------------------------------------------------------ */

static void report(const struct generator *g)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 }, { "p9999", 0.9999 } };
	json_t *rcodes = json_object(), *latency = json_object();
	double seconds = (double)(MAX(g->last_ns, g->first_ns + 1) - g->first_ns) / 1e9;

	for (unsigned i = 0; i < ARRAY_LEN(g->rcode); i++)
		if (g->rcode[i])
			json_object_set_new(rcodes, rcode_text(i), json_integer((json_int_t)g->rcode[i]));
	for (unsigned i = 0; i < ARRAY_LEN(quantiles); i++)
		json_object_set_new(latency, quantiles[i].name,
				    json_real((double)histogram_quantile(&g->latency, quantiles[i].q) / 1000));
	json_object_set_new(latency, "max", json_real((double)g->latency.max_ns / 1000));
	json_object_set_new(latency, "mean",
			    json_real(g->latency.count ? (double)g->latency.sum_ns / (double)g->latency.count / 1000 : 0));
	json_t *out = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o}", "sent", (json_int_t)g->sent, "answered",
				(json_int_t)g->answered, "lost", (json_int_t)g->lost, "late", (json_int_t)g->late, "send_blocked",
				(json_int_t)g->unsendable, "seconds", seconds, "rate", (double)g->answered / seconds, "rcodes",
				rcodes, "latency_us", latency);

	json_dumpf(out, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(out);
}

/* --- options --------------------------------------------------------------------------------------------------------------- */

static uint64_t number(const char *text)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (*end || end == text)
		fail("a number was expected");
	return v;
}

static void parse_server(struct generator *g, char *text)
{
	char *colon = strchr(text, ':');

	if (colon)
		*colon = 0;
	g->options.server =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(colon ? (uint16_t)number(colon + 1) : 53) };
	if (inet_pton(AF_INET, text, &g->options.server.sin_addr) != 1)
		fail("--to takes an IPv4 address, with a port or without");
}

static void parse_mac(uint8_t out[6], const char *text)
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &out[0], &out[1], &out[2], &out[3], &out[4], &out[5]) != 6)
		fail("a MAC address was expected");
}

static const char *parse(struct generator *g, int argc, char **argv)
{
	static const struct option options[] = {
		{ "to", 1, NULL, 't' },		 { "queries", 1, NULL, 'f' }, { "rate", 1, NULL, 'r' },
		{ "outstanding", 1, NULL, 'q' }, { "seconds", 1, NULL, 's' }, { "once", 0, NULL, '1' },
		{ "flows", 1, NULL, 'c' },	 { "edns", 0, NULL, 'e' },    { "do", 0, NULL, 'd' },
		{ "timeout", 1, NULL, 'w' },	 { "xdp", 1, NULL, 'x' },     { "mac", 1, NULL, 'm' },
		{ "own-mac", 1, NULL, 'o' },	 { "from", 1, NULL, 'a' },    { NULL, 0, NULL, 0 },
	};
	const char *file = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 't': parse_server(g, optarg); break;
		case 'f': file = optarg; break;
		case 'r': g->rate = number(optarg); break;
		case 'q': g->outstanding = number(optarg); break;
		case 's': g->seconds = number(optarg); break;
		case '1': g->is_once = true; break;
		case 'c': g->options.flows = (unsigned)number(optarg); break;
		case 'd': g->is_do = true; /* fallthrough */
		case 'e': g->is_edns = true; break;
		case 'w': g->timeout_ns = number(optarg) * SECOND_NS; break;
		case 'x': g->options.interface = optarg; break;
		case 'm': parse_mac(g->options.server_mac, optarg); break;
		case 'o': parse_mac(g->options.own_mac, optarg); break;
		case 'a':
			if (inet_pton(AF_INET, optarg, &g->options.own) != 1)
				fail("--from takes an IPv4 address");
			break;
		default: exit(2);
		}
	}
	if (!file || !g->options.server.sin_family || !g->rate == !g->outstanding)
		fail("--to, --queries and one of --rate and --outstanding are needed; see the head of bench/generate.c");
	if (g->options.flows == 0 || g->options.flows > GENERATE_FLOWS_MAX)
		fail("--flows takes 1 to 4096");
	return file;
}

int main(int argc, char **argv)
{
	static struct generator g = { .options.flows = 64, .seconds = 10, .timeout_ns = 2 * SECOND_NS };

	read_queries(&g, parse(&g, argc, argv));
	prctl(PR_SET_TIMERSLACK, 1ul);
	g.due = calloc((size_t)g.options.flows << 16, sizeof(*g.due));
	g.flights = calloc(FLIGHT_MAX, sizeof(*g.flights));
	g.next_id = calloc(g.options.flows, sizeof(*g.next_id));
	g.wire = g.options.interface ? generate_xdp(&g.options) : generate_udp(&g.options);
	if (!g.due || !g.flights || !g.next_id)
		fail("no memory");
	if (!g.wire)
		return 1;
	uint64_t total = g.is_once ? g.query_count : UINT64_MAX;

	g.first_ns = clock_mono_ns();
	if (g.rate)
		run_open(&g, MIN(total, g.rate * g.seconds));
	else
		run_closed(&g, total, g.is_once ? UINT64_MAX : g.first_ns + g.seconds * SECOND_NS);
	drain(&g);
	report(&g);
	g.wire->close(g.wire);
	return 0;
}
