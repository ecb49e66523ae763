/* SPDX-License-Identifier: Apache-2.0 */
/* cache_micro: the answer cache alone.
 *   cache_micro read NAMES READS     reads per second of A answers in batches of 64, with both prefetches; instructions per read under
 *                                    valgrind --tool=callgrind --collect-atstart=no --toggle-collect=cache_read
 *   cache_micro miss NAMES READS     the same for names that are not there
 *   cache_micro cut NAMES READS      the same for cache_read_cut of names that are not there
 *   cache_micro store NAMES MIB      stores of NAMES distinct names into a cache of MIB: the rate of each tenth, and what it holds
 *   cache_micro bytes NAMES          memory for NAMES A answers: octets each, entries per MiB
 *   cache_micro ratio REQUESTS       hit ratios beside LRU's and an optimal policy's (Belady), of the same number of entries: Zipf over a million
 *                                    names, a fifth of all requests for names that nobody asks for again */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/lib/cache_entries.h"

#define BATCH 64
#define NOW_S CLOCK_MONO_S_FIRST
#define TTL_S (1u << 30)
#define ZIPF_NAMES (1u << 20)
#define ONCE_PERCENT 20u

static struct cache_writer *writer;
static struct cache_reader *reader;
static uint8_t *marks;
static uint64_t scratch[CACHE_SCRATCH_WORDS];
static struct cache_entries_room room;
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fail(const char *what)
{
	fprintf(stderr, "cache_micro: %s\n", what);
	exit(2);
}

static void make_cache(uint64_t bytes)
{
	int fd, marks_fd;

	if (cache_create(&fd, bytes) != ERR_OK || cache_marks_create(&marks_fd, fd, 1) != ERR_OK ||
	    cache_writer_attach(&writer, fd, marks_fd) != ERR_OK)
		fail("no memory for a cache");
	reader = cache_writer_reader(writer);
	marks = cache_reader_marks(reader, 0);
	close(marks_fd); /* fd stays: the lock is its */
}

/* n12345678.bench.example: 25 octets. */
#define WIRE_BYTES 25
struct question {
	uint8_t wire[WIRE_BYTES + 7];
	struct cache_key key;
};
static void ask_for(struct question *q, uint32_t number)
{
	static const char digits[16] = "0123456789abcdef";

	memcpy(q->wire, "\11n00000000\5bench\7example", WIRE_BYTES);
	for (unsigned i = 0; i < 8; i++)
		q->wire[2 + i] = (uint8_t)digits[number >> (28 - 4 * i) & 15];
	q->key = (struct cache_key){
		.name = q->wire, .hash = cache_hash(reader, name_hash(q->wire, WIRE_BYTES)), .type = 1, .name_bytes = WIRE_BYTES
	};
}

static void store(const struct question *q)
{
	static struct cache_entry *e;

	if (!e)
		e = cache_entries_make(
			&room, reader,
			&(struct cache_entries_want){
				.name = "n00000000.bench.example.", .type = 1, .stored_s = NOW_S, .ttl_s = TTL_S });
	memcpy((uint8_t *)(uintptr_t)cache_entry_name(e), q->wire, WIRE_BYTES);
	e->hash = q->key.hash;
	if (cache_store(writer, e) != ERR_OK)
		fail("an entry was not stored");
}

static void fill(uint32_t names)
{
	struct question q;
	struct cache_stats stats;

	for (uint32_t i = 0; i < names; i++) {
		ask_for(&q, i);
		store(&q);
	}
	cache_writer_stats(writer, &stats);
	if (stats.entries < names - names / 1000)
		fail("the cache is too small for its names");
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

enum how { READ, MISS, CUT };

static uint64_t read_batch(struct question *q, enum how how)
{
	static const uint8_t label_offset[] = { 0, 10, 16, 24 };
	struct cache_hit hit;
	uint64_t hits = 0;

	for (unsigned i = 0; i < BATCH; i++)
		cache_prefetch_bucket(reader, q[i].key.hash);
	for (unsigned i = 0; i < BATCH; i++)
		cache_prefetch_entry(reader, &q[i].key);
	for (unsigned i = 0; i < BATCH; i++) {
		enum cache_result result = how == CUT ? cache_read_cut(reader, &q[i].key, label_offset, 3, NOW_S, scratch, &hit)
						      : cache_read(reader, &q[i].key, NOW_S, scratch, &hit);
		if (result != CACHE_HIT)
			continue;
		cache_mark(marks, hit.slot);
		hits++;
	}
	return hits;
}

static int measure_reads(enum how how, uint32_t names, uint32_t reads)
{
	static struct question q[BATCH];
	uint64_t hits = 0, ns = 0;

	make_cache(MAX(2ull * names * 96, 4ull << 20));
	fill(names);
	for (uint32_t done = 0; done < reads; done += BATCH) {
		for (unsigned i = 0; i < BATCH; i++)
			ask_for(&q[i], (uint32_t)(next_random() % names) + (how == READ ? 0 : names));
		uint64_t start_ns = clock_mono_ns();
		hits += read_batch(q, how);
		ns += clock_mono_ns() - start_ns;
	}
	reads = (reads + BATCH - 1) / BATCH * BATCH;
	printf("{\"names\": %u, \"reads\": %u, \"hits\": %llu, \"per_second\": %.0f, \"ns\": %.1f}\n", names, reads,
	       (unsigned long long)hits, reads * 1e9 / (double)ns, (double)ns / reads);
	return 0;
}

/* --- storing ------------------------------------------------------------------------------------------------------------- */

static long resident_kib(void)
{
	long pages = 0, all;
	FILE *in = fopen("/proc/self/statm", "r");

	if (in) {
		if (fscanf(in, "%ld %ld", &all, &pages) != 2)
			pages = 0;
		fclose(in);
	}
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int measure_stores(uint32_t names, uint32_t mib)
{
	struct cache_stats stats;
	struct question q;

	make_cache((uint64_t)mib << 20);
	printf("%10s %12s %10s %10s\n", "stored", "stores/s", "entries", "RSS KiB");
	for (uint32_t tenth = 0; tenth < 10; tenth++) {
		uint64_t start_ns = clock_mono_ns();
		uint32_t end = (uint32_t)((uint64_t)names * (tenth + 1) / 10), begin = (uint32_t)((uint64_t)names * tenth / 10);

		for (uint32_t i = begin; i < end; i++) {
			ask_for(&q, i);
			store(&q);
		}
		double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
		cache_writer_stats(writer, &stats);
		printf("%10u %12.0f %10llu %10ld\n", end, (end - begin) / seconds, (unsigned long long)stats.entries,
		       resident_kib());
	}
	printf("evicted %llu, no slot %llu, promoted %llu\n", (unsigned long long)stats.evicted,
	       (unsigned long long)stats.no_slot, (unsigned long long)stats.promoted);
	return 0;
}

/* The least cache that keeps all of them; a thousandth may find no slot. */
static int measure_bytes(uint32_t names)
{
	struct cache_stats stats;
	struct question q;

	for (uint64_t each = 72;; each++) {
		make_cache(MAX(each * names, CACHE_MIN_BYTES));
		for (uint32_t i = 0; i < names; i++) {
			ask_for(&q, i);
			store(&q);
		}
		cache_writer_stats(writer, &stats);
		if (stats.entries >= names - names / 1000)
			break;
		cache_writer_detach(writer);
	}
	printf("{\"entries\": %llu, \"bytes\": %llu, \"bytes_each\": %.1f, \"of_these_in_logs\": %.1f, \"entries_per_mib\": "
	       "%.0f}\n",
	       (unsigned long long)stats.entries, (unsigned long long)stats.size_bytes,
	       (double)stats.size_bytes / (double)stats.entries, (double)stats.entry_bytes / (double)stats.entries,
	       (double)stats.entries * 1048576 / (double)stats.size_bytes);
	return 0;
}

/* --- hit ratios ------------------------------------------------------------------------------------------------------------ */

/* Requests as numbers: below ZIPF_NAMES by rank, the others once. */
static uint32_t *make_requests(uint32_t count, double exponent)
{
	double *sum = malloc(ZIPF_NAMES * sizeof(*sum)), total = 0;
	uint32_t *requests = malloc(count * sizeof(*requests)), once = ZIPF_NAMES;

	if (!sum || !requests)
		fail("no memory");
	for (uint32_t i = 0; i < ZIPF_NAMES; i++)
		sum[i] = total += pow(i + 1, -exponent);
	for (uint32_t n = 0; n < count; n++) {
		if (next_random() % 100 < ONCE_PERCENT) {
			requests[n] = once++;
			continue;
		}
		double at = (double)(next_random() >> 11) / 9007199254740992.0 * total;
		uint32_t low = 0, high = ZIPF_NAMES - 1;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			if (sum[middle] < at)
				low = middle + 1;
			else
				high = middle;
		}
		requests[n] = low;
	}
	free(sum);
	return requests;
}

/* The second half counts; the first fills. */
static double share_of_second_half(uint64_t hits, uint32_t count)
{
	uint32_t half = count / 2;

	return (double)hits / (double)(count - half);
}

static double our_ratio(const uint32_t *requests, uint32_t count)
{
	uint64_t hits = 0;
	struct question q;
	struct cache_hit hit;

	for (uint32_t n = 0; n < count; n++) {
		ask_for(&q, requests[n]);
		if (cache_read(reader, &q.key, NOW_S, scratch, &hit) == CACHE_HIT) {
			cache_mark(marks, hit.slot);
			hits += n >= count / 2;
		} else {
			store(&q);
		}
	}
	return share_of_second_half(hits, count);
}

static double lru_ratio(const uint32_t *requests, uint32_t count, uint32_t names, uint32_t capacity)
{
	/* A ring of names by their last use; names is its head. */
	uint32_t *newer = malloc((names + 1) * sizeof(*newer)), *older = malloc((names + 1) * sizeof(*older)), used = 0;
	uint8_t *is_in = calloc(names, 1);
	uint64_t hits = 0;

	if (!newer || !older || !is_in)
		fail("no memory");
	newer[names] = older[names] = names;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t id = requests[n];

		if (is_in[id]) {
			hits += n >= count / 2;
			newer[older[id]] = newer[id];
			older[newer[id]] = older[id];
		} else if (used == capacity) {
			uint32_t oldest = newer[names];

			is_in[oldest] = 0;
			newer[names] = newer[oldest];
			older[newer[oldest]] = names;
		} else {
			used++;
		}
		is_in[id] = 1;
		newer[id] = names;
		older[id] = older[names];
		newer[older[names]] = id;
		older[names] = id;
	}
	free(newer);
	free(older);
	free(is_in);
	return share_of_second_half(hits, count);
}

/* A heap of (next use, name) with the latest on top; entries that are out of date are skipped. */
struct use {
	uint32_t next, id;
};
static void heap_put(struct use *heap, uint32_t *size, struct use u)
{
	uint32_t i = (*size)++;

	for (; i > 0 && heap[(i - 1) / 2].next < u.next; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = u;
}
static struct use heap_take(struct use *heap, uint32_t *size)
{
	struct use top = heap[0], last = heap[--*size];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child >= *size)
			break;
		if (child + 1 < *size && heap[child + 1].next > heap[child].next)
			child++;
		if (heap[child].next <= last.next)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return top;
}

static double optimal_ratio(const uint32_t *requests, uint32_t count, uint32_t names, uint32_t capacity)
{
	uint32_t *next = malloc(count * sizeof(*next)), *at = malloc(names * sizeof(*at)), size = 0, used = 0;
	struct use *heap = malloc(count * sizeof(*heap));
	uint64_t hits = 0;

	if (!next || !at || !heap)
		fail("no memory");
	memset(at, 0xff, names * sizeof(*at));
	for (uint32_t n = count; n-- > 0;) {
		next[n] = at[requests[n]];
		at[requests[n]] = n;
	}
	memset(at, 0xff, names * sizeof(*at)); /* from here: the next use of what is in the cache, UINT32_MAX - 1: not in it */
	for (uint32_t i = 0; i < names; i++)
		at[i] = UINT32_MAX - 1;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t id = requests[n];

		if (at[id] != UINT32_MAX - 1) {
			hits += n >= count / 2;
		} else {
			if (next[n] == UINT32_MAX)
				continue; /* never again: not stored */
			used++;
		}
		at[id] = next[n];
		heap_put(heap, &size, (struct use){ next[n], id });
		while (used > capacity) {
			struct use u = heap_take(heap, &size);

			if (at[u.id] != u.next)
				continue;
			at[u.id] = UINT32_MAX - 1;
			used--;
		}
	}
	free(next);
	free(at);
	free(heap);
	return share_of_second_half(hits, count);
}

static int measure_ratios(uint32_t count)
{
	static const double exponents[] = { 0.8, 0.9, 1.0, 1.2 };
	static const uint32_t mib[] = { 1, 4, 16 };

	printf("%5s %5s %9s %8s %8s %8s %10s %10s\n", "Zipf", "MiB", "entries", "ours", "LRU", "optimal", "over LRU",
	       "under opt.");
	for (size_t x = 0; x < ARRAY_LEN(exponents); x++) {
		uint32_t *requests = make_requests(count, exponents[x]);

		for (size_t m = 0; m < ARRAY_LEN(mib); m++) {
			struct cache_stats stats;

			make_cache((uint64_t)mib[m] << 20);
			double ours = our_ratio(requests, count);
			cache_writer_stats(writer, &stats);
			cache_writer_detach(writer);
			double lru = lru_ratio(requests, count, ZIPF_NAMES + count, (uint32_t)stats.entries);
			double optimal = optimal_ratio(requests, count, ZIPF_NAMES + count, (uint32_t)stats.entries);
			printf("%5.1f %5u %9llu %7.2f%% %7.2f%% %7.2f%% %+10.2f %+10.2f\n", exponents[x], mib[m],
			       (unsigned long long)stats.entries, 100 * ours, 100 * lru, 100 * optimal, 100 * (ours - lru),
			       100 * (ours - optimal));
			fflush(stdout);
		}
		free(requests);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint32_t a = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0, b = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;

	if (strcmp(what, "read") == 0 && a && b)
		return measure_reads(READ, a, b);
	if (strcmp(what, "miss") == 0 && a && b)
		return measure_reads(MISS, a, b);
	if (strcmp(what, "cut") == 0 && a && b)
		return measure_reads(CUT, a, b);
	if (strcmp(what, "store") == 0 && a && b)
		return measure_stores(a, b);
	if (strcmp(what, "bytes") == 0 && a)
		return measure_bytes(a);
	if (strcmp(what, "ratio") == 0 && a)
		return measure_ratios(a);
	fputs("usage: cache_micro read|miss|cut NAMES READS | store NAMES MIB | bytes NAMES | ratio REQUESTS\n", stderr);
	return 2;
}
