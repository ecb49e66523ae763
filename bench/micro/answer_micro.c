/* SPDX-License-Identifier: Apache-2.0 */
/* answer_micro: the answer function alone. Builds a zone of N names, answers K questions in groups of 16 as the serving threads do.
 *   answer_micro SCENARIO NAMES ANSWERS
 * prints answers per second and nanoseconds per answer; under callgrind with --toggle-collect=measure the instruction count divided by
 * ANSWERS is what an answer costs (bench/micro/run does both). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "dns/message.h"
#include "tests/unit/lib/zones.h"

#define BATCH 16 /* SERVE_GROUP of xdp/serve.h, UDP_GROUP of listen/udp.h */
#define QUERY_BYTES_MAX 63
#define FRAME_BYTES 2048
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* clang-format off */
struct scenario { const char *name, *format; uint16_t type; bool has_edns; };
/* %u is a number below NAMES. */
static const struct scenario scenarios[] = {
	{ "hit", "h%u.bench.example.", 1, false },
	{ "hit-edns", "h%u.bench.example.", 1, true },
	{ "nxdomain", "n%u.bench.example.", 1, true },
	{ "nodata", "h%u.bench.example.", 28, true },
	{ "cname", "c%u.bench.example.", 1, true },
	{ "wildcard", "x%u.w.bench.example.", 1, true },
	{ "referral", "x%u.deleg.bench.example.", 1, true },
	{ "mx", "mail.bench.example.", 15, true },
	{ "refused", "h%u.elsewhere.example.", 1, true },
};
/* clang-format on */

static char *zone_text(unsigned names)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fputs("@ SOA ns1 host 1 7200 900 1209600 300\n@ NS ns1\n@ NS ns2\nns1 A 192.0.2.1\nns2 A 192.0.2.2\nns2 AAAA "
	      "2001:db8::2\n"
	      "mail MX 10 ns1\nmail MX 20 ns2\n*.w A 192.0.2.3\ndeleg NS ns.deleg\ndeleg NS ns2\nns.deleg A 192.0.2.4\n",
	      out);
	for (unsigned i = 0; i < names; i++)
		fprintf(out, "h%u A 10.%u.%u.%u\n", i, i >> 16 & 255, i >> 8 & 255, i & 255);
	for (unsigned i = 0; i < names / 10 + 1; i++)
		fprintf(out, "c%u CNAME h%u\n", i, i);
	fclose(out);
	return text;
}

/* One cache line each: fetching them is not what is measured. */
struct prepared {
	uint8_t bytes[QUERY_BYTES_MAX];
	uint8_t length;
};
static_assert(sizeof(struct prepared) == CACHE_LINE, "a line");

/* Questions in an order that the hardware can't guess. */
static struct prepared *questions(const struct scenario *s, unsigned names, unsigned count)
{
	size_t bytes = (count * sizeof(struct prepared) + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
	struct prepared *all = aligned_alloc(HUGE_PAGE_BYTES, bytes);
	uint64_t random = 88172645463325252u;

	if (all)
		(void)madvise(all, bytes, MADV_HUGEPAGE);
	for (unsigned i = 0; all && i < count; i++) {
		char name[64];

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		unsigned range = s->type == 1 && s->format[0] == 'c' ? names / 10 + 1 : names;

		snprintf(name, sizeof name, s->format, (unsigned)(random % range));
		struct zones_ask ask = { .name = name, .type = s->type, .has_edns = s->has_edns };

		all[i].length = (uint8_t)zones_query(all[i].bytes, sizeof all[i].bytes, &ask);
	}
	return all;
}

/* The loop that is measured; callgrind collects inside it only. Returns octets sent, so that nothing is optimised away. */
__attribute__((noinline)) uint64_t measure(const struct snapshot *s, struct answer_thread *t, const struct prepared *all,
					   unsigned count, unsigned answers, uint8_t (*frames)[FRAME_BYTES]);
__attribute__((noinline)) uint64_t measure(const struct snapshot *s, struct answer_thread *t, const struct prepared *all,
					   unsigned count, unsigned answers, uint8_t (*frames)[FRAME_BYTES])
{
	static struct answer_query query[BATCH];
	uint64_t octets = 0;

	for (unsigned done = 0; done < answers; done += BATCH) {
		for (unsigned i = 0; i < BATCH; i++) {
			const struct prepared *p = &all[(done + i) % count];

			memcpy(frames[i], p->bytes, p->length);
			query[i].msg = frames[i];
			query[i].query_bytes = p->length;
			query[i].capacity_bytes = 1472;
			query[i].client = (struct answer_client){ .family = 4, .port = 1024, .transport = TRANSPORT_UDP };
			answer_prepare(s, t, &query[i]);
		}
		for (unsigned i = 0; i < BATCH; i++)
			answer_prefetch(s, &query[i]);
		for (unsigned i = 0; i < BATCH; i++)
			if (answer_finish(s, t, &query[i]) == ANSWER_SEND)
				octets += query[i].response_bytes;
	}
	return octets;
}

int main(int argc, char **argv)
{
	const struct scenario *s = NULL;

	for (size_t i = 0; argc == 4 && i < ARRAY_LEN(scenarios); i++)
		if (strcmp(argv[1], scenarios[i].name) == 0)
			s = &scenarios[i];
	if (!s) {
		fputs("usage: answer_micro SCENARIO NAMES ANSWERS\nscenarios:", stderr);
		for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
			fprintf(stderr, " %s", scenarios[i].name);
		fputc('\n', stderr);
		return 2;
	}
	unsigned names = (unsigned)strtoul(argv[2], NULL, 10), answers = (unsigned)strtoul(argv[3], NULL, 10) / BATCH * BATCH;
	unsigned count = MIN(MAX(names, BATCH), 1u << 20);
	char *text = zone_text(names);
	struct snapshot *snapshot = zones_snapshot(&(struct zones_text){ "bench.example.", text }, 1);
	struct prepared *all = questions(s, names, count);
	struct answer_thread thread = { .counters = zones_counters(), .wall_s = 1700000000 };
	uint8_t(*frames)[FRAME_BYTES] = calloc(BATCH, FRAME_BYTES);

	if (!all || !frames || answers == 0)
		return 2;
	uint64_t start_ns = clock_mono_ns();
	uint64_t octets = measure(snapshot, &thread, all, count, answers, frames);
	double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;

	printf("{\"scenario\": \"%s\", \"names\": %u, \"answers\": %u, \"per_second\": %.0f, \"ns\": %.1f, \"octets\": %.1f}\n",
	       s->name, names, answers, answers / seconds, seconds * 1e9 / answers, (double)octets / answers);
	free(frames);
	free(all);
	free(text);
	snapshot_destroy(snapshot);
	return 0;
}
