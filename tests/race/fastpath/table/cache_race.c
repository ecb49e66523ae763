/* SPDX-License-Identifier: Apache-2.0 */
/* cache_race SECONDS: four readers and two writers over a small cache, first as threads of one process over one mapping (where ThreadSanitizer looks on),
 * then as processes. Every entry follows from its question and a number that grows with each store; readers know how far it had come when they began to look. So
 * a torn, a crossed, a foreign and a late answer are all found out. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/lib/cache_entries.c"

#define READERS 4u
#define WRITERS 2u
#define SHARDS 2u
#define CACHE_BYTES (2u << 20)
#define NAMES 6000u
#define TYPES 3u /* NXDOMAIN, A, NS */
#define NOW_S 0x01000000u

/* What writers have done and readers may rely on. */
struct shared {
	_Atomic uint32_t least[NAMES][TYPES]; /* an answer that was made before this number is late */
	_Atomic uint32_t epoch;
	_Atomic bool is_over;
	_Atomic uint64_t reads, hits, stores, wrong;
};
static struct shared *shared;
static int cache_fd, marks_fd;

static uint32_t random_of(uint32_t *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }

static const char *name_of(char text[32], uint32_t name)
{
	snprintf(text, 32, "n%u.example.", name);
	return text;
}

static void wrong(const char *what, const struct cache_entry *e)
{
	fprintf(stderr, "cache_race: %s (type %u, number %u)\n", what, e->type, cache_entries_seed(e));
	atomic_fetch_add(&shared->wrong, 1);
	atomic_store(&shared->is_over, true);
}

/* --- readers ------------------------------------------------------------------------------------------------------------- */

static void look(const struct cache_reader *r, uint8_t *marks, uint32_t name, uint16_t type, uint64_t *scratch)
{
	char text[32];
	uint8_t wire[NAME_MAX_BYTES];
	struct cache_hit hit;
	struct cache_entries_want want = { .name = name_of(text, name), .type = type };
	struct cache_key key = cache_entries_key(wire, r, &want);
	uint32_t least = atomic_load(&shared->least[name][type]), least_none = atomic_load(&shared->least[name][0]);
	uint32_t epoch = atomic_load(&shared->epoch);

	cache_prefetch_bucket(r, key.hash);
	cache_prefetch_entry(r, &key);
	if (cache_read(r, &key, NOW_S, scratch, &hit) == CACHE_MISS)
		return;
	const struct cache_entry *e = hit.entry;
	if (!cache_entries_is_true(e))
		wrong("a torn answer", e);
	else if (e->name_bytes != key.name_bytes || memcmp(cache_entry_name(e), wire, key.name_bytes) != 0 ||
		 (e->type != type && e->type != 0))
		wrong("a foreign answer", e);
	else if (cache_entries_seed(e) < (e->type == 0 ? least_none : least))
		wrong("a late answer", e);
	else if ((int32_t)(e->epoch - epoch) < 0)
		wrong("an answer from before a flush", e);
	cache_mark(marks, hit.slot);
	atomic_fetch_add_explicit(&shared->hits, 1, memory_order_relaxed);
}

static void read_on(struct cache_reader *r, unsigned index)
{
	uint64_t *scratch = malloc(CACHE_SCRATCH_WORDS * sizeof(*scratch)), reads = 0;
	uint32_t random = index * 12345 + 1;

	while (scratch && !atomic_load_explicit(&shared->is_over, memory_order_relaxed)) {
		uint32_t name = random_of(&random) % NAMES;

		if (random_of(&random) % 4) /* some are popular */
			name %= 50;
		look(r, cache_reader_marks(r, index), name, (uint16_t)(random_of(&random) % TYPES), scratch);
		reads++;
	}
	atomic_fetch_add(&shared->reads, reads);
	free(scratch);
}

/* --- writers -------------------------------------------------------------------------------------------------------------- */

static void store(struct cache_writer *w, struct cache_entries_room *room, uint32_t name, uint32_t number, uint32_t *random)
{
	char text[32];
	struct cache_entries_want want = { .name = name_of(text, name),
					   .type = (uint16_t)(random_of(random) % 8 ? 1 + random_of(random) % 2 : 0),
					   .stored_s = NOW_S,
					   .ttl_s = 60,
					   .seed = number,
					   .epoch = cache_epoch(cache_writer_reader(w), 0),
					   .records = 1 + random_of(random) % 3,
					   .data_bytes = random_of(random) % 200 ? 4 + random_of(random) % 40 : 3000,
					   .signatures = random_of(random) % 4 == 0 };

	if (cache_store(w, cache_entries_make(room, cache_writer_reader(w), &want)) != ERR_OK)
		abort();
	/* Stored in an epoch that has just ended, it may have been left out: then it promises nothing. */
	if (want.epoch != cache_epoch(cache_writer_reader(w), 0))
		return;
	for (unsigned t = 0; t < TYPES; t++)
		if (t == want.type || t == 0 || want.type == 0)
			atomic_store(&shared->least[name][t], number);
}

static void remove_name(struct cache_writer *w, uint32_t name, uint32_t number)
{
	char text[32];
	uint8_t wire[NAME_MAX_BYTES];
	struct cache_entries_want want = { .name = name_of(text, name) };
	struct cache_key key = cache_entries_key(wire, cache_writer_reader(w), &want);

	cache_remove(w, wire, key.name_bytes, 0);
	for (unsigned t = 0; t < TYPES; t++)
		atomic_store(&shared->least[name][t], number);
}

struct writer {
	struct cache_writer *w;
	unsigned shard;
};
static void *write_on(void *user)
{
	const struct writer *me = user;
	struct cache_entries_room *room = malloc(sizeof(*room));
	uint32_t random = me->shard * 777 + 5, number = 1;
	uint64_t stores = 0;

	while (room && !atomic_load_explicit(&shared->is_over, memory_order_relaxed)) {
		char text[32];
		uint8_t wire[NAME_MAX_BYTES];
		uint32_t name = random_of(&random) % NAMES;
		struct cache_entries_want want = { .name = name_of(text, name) };

		if (random_of(&random) % 4 == 0)
			name = name % 50, want.name = name_of(text, name);
		if (cache_shard(me->w, cache_entries_key(wire, cache_writer_reader(me->w), &want).hash) != me->shard)
			continue;
		number++;
		if (random_of(&random) % 64 == 0) {
			remove_name(me->w, name, number);
		} else if (me->shard == 0 && random_of(&random) % 4096 == 0) {
			cache_epoch_advance(me->w, 0);
			atomic_store(&shared->epoch, cache_epoch(cache_writer_reader(me->w), 0));
		} else {
			store(me->w, room, name, number, &random);
			stores++;
		}
	}
	atomic_fetch_add(&shared->stores, stores);
	free(room);
	return NULL;
}

/* --- both ------------------------------------------------------------------------------------------------------------------ */

static void make_cache(void)
{
	if (cache_create(&cache_fd, CACHE_BYTES) != ERR_OK || cache_marks_create(&marks_fd, cache_fd, READERS) != ERR_OK)
		abort();
	memset(shared, 0, sizeof(*shared));
}

static void write_by_threads(struct cache_writer *w, pthread_t thread[WRITERS], struct writer writer[WRITERS])
{
	if (cache_writer_shards(w) != SHARDS)
		abort();
	for (unsigned i = 0; i < WRITERS; i++) {
		writer[i] = (struct writer){ w, i };
		if (pthread_create(&thread[i], NULL, write_on, &writer[i]) != 0)
			abort();
	}
}

struct reading {
	struct cache_reader *r;
	unsigned index;
};
static void *read_thread(void *user)
{
	const struct reading *reading = user;

	read_on(reading->r, reading->index);
	return NULL;
}

static void race_threads(unsigned seconds)
{
	struct cache_writer *w;
	pthread_t readers[READERS], writers[WRITERS];
	struct writer writer[WRITERS];
	struct reading reading[READERS];

	make_cache();
	if (cache_writer_attach(&w, cache_fd, marks_fd) != ERR_OK)
		abort();
	write_by_threads(w, writers, writer);
	for (unsigned i = 0; i < READERS; i++) {
		reading[i] = (struct reading){ cache_writer_reader(w), i };
		if (pthread_create(&readers[i], NULL, read_thread, &reading[i]) != 0)
			abort();
	}
	sleep(seconds);
	atomic_store(&shared->is_over, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	cache_writer_detach(w);
}

static _Noreturn void reader_process(unsigned index)
{
	struct cache_reader *r;
	int fd;

	if (cache_reopen_read_only(&fd, cache_fd) != ERR_OK || cache_reader_attach(&r, fd, marks_fd) != ERR_OK)
		_exit(1);
	read_on(r, index);
	_exit(0);
}
static _Noreturn void writer_process(void)
{
	struct cache_writer *w;
	pthread_t thread[WRITERS];
	struct writer writer[WRITERS];

	if (cache_writer_attach(&w, cache_fd, marks_fd) != ERR_OK)
		_exit(1);
	write_by_threads(w, thread, writer);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	cache_writer_detach(w);
	_exit(0);
}

static void race_processes(unsigned seconds)
{
	pid_t child[READERS + 1];

	make_cache();
	for (unsigned i = 0; i <= READERS; i++) {
		child[i] = fork();
		if (child[i] < 0)
			abort();
		if (child[i] == 0) {
			if (i < READERS)
				reader_process(i);
			writer_process();
		}
	}
	sleep(seconds);
	atomic_store(&shared->is_over, true);
	for (unsigned i = 0; i <= READERS; i++) {
		int status;

		if (waitpid(child[i], &status, 0) != child[i] || status != 0) {
			fprintf(stderr, "cache_race: a process ended with status %x\n", status);
			atomic_fetch_add(&shared->wrong, 1);
		}
	}
}

static bool report(const char *what)
{
	unsigned long long reads = shared->reads, hits = shared->hits, stores = shared->stores;

	printf("cache_race: %s: %llu reads, %llu hits, %llu stores, %u flushes, %llu wrong\n", what, reads, hits, stores,
	       shared->epoch, (unsigned long long)shared->wrong);
	close(cache_fd);
	close(marks_fd);
	return shared->wrong == 0 && hits > 1000 && hits < reads && stores > 1000 && shared->epoch > 0;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10, half = seconds > 1 ? seconds / 2 : 1;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	race_threads(half);
	bool is_right = report("threads");
	race_processes(half);
	return report("processes") && is_right ? 0 : 1;
}
