/* SPDX-License-Identifier: Apache-2.0 */
/* Writers that die: at any moment no reader sees damage, and the next writer finds a cache that is in order. */
#include "tests/unit/fastpath/table/cache_world.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "table/cache_layout.h"
#include "table/shm.h"

#define MIB (1u << 20)
#define NAMES 20000u

static struct cache_world world;

/* As world_check, but what was lost for good may have been counted or not. */
static void attach_and_check(struct cache_world *w)
{
	cr_assert_eq(cache_writer_attach(&w->writer, w->cache_fd, w->marks_fd), ERR_OK);
	w->reader = cache_writer_reader(w->writer);
	world_check(w);
}

static struct cache_entries_want random_want(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	struct cache_entries_want want = world_want(*random / 16 % NAMES);
	want.seed = *random;
	want.type = *random >> 28 == 0 ? 0 : 1;
	want.data_bytes = *random >> 24 == 7 ? 1200 : 4 + (*random >> 20) % 40;
	return want;
}

/* --- killed at random -------------------------------------------------------------------------------------------------------- */

static _Noreturn void write_forever(uint32_t random)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test end before it kills us */
	struct cache_writer *w;
	static struct cache_entries_room room;
	if (cache_writer_attach(&w, world.cache_fd, world.marks_fd) != ERR_OK)
		_exit(1);
	for (;;) {
		struct cache_entries_want want = random_want(&random);
		if (cache_store(w, cache_entries_make(&room, cache_writer_reader(w), &want)) != ERR_OK)
			_exit(2);
		if (random >> 26 == 1) {
			uint8_t wire[NAME_MAX_BYTES];
			want = random_want(&random);
			struct cache_key key = cache_entries_key(wire, cache_writer_reader(w), &want);
			cache_remove(w, wire, key.name_bytes, 0);
		}
	}
}

Test(cache_repair, two_hundred_killed_writers, .timeout = 120)
{
	uint32_t random = 7;
	uint64_t hits = 0;
	struct cache_reader *reader;
	world_open(&world, MIB);
	cache_writer_detach(world.writer);
	cr_assert_eq(cache_reader_attach(&reader, world.cache_fd, world.marks_fd), ERR_OK);
	for (unsigned death = 0; death < 200; death++) {
		pid_t child = fork();
		if (child == 0)
			write_forever(death * 77777);
		world.reader = reader;
		for (unsigned reads = 0; reads < 200 + death * 13 % 1500; reads++) {
			struct cache_entries_want want = random_want(&random);
			if (world_ask(&world, want) != CACHE_HIT) /* checks what it finds */
				continue;
			hits++;
			cache_mark(cache_reader_marks(reader, 0), world.hit.slot);
		}
		int status;
		cr_assert_eq(kill(child, SIGKILL), 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFSIGNALED(status), "the writer ended by itself: %x", status);
		if (death % 4 != 3) /* else the next child repairs */
			continue;
		attach_and_check(&world);
		cache_writer_detach(world.writer);
	}
	cr_expect_gt(hits, 1000u);
	attach_and_check(&world);
	cr_expect_gt(world_stats(&world).entries, 1000u);
	cache_reader_detach(reader);
	world_close(&world);
}

/* --- dead at every step -------------------------------------------------------------------------------------------------------- */

/* A cache with the memory that another has at this moment. */
static void copy_cache(struct cache_world *copy, const struct cache_world *of)
{
	void *map;
	size_t bytes;
	cr_assert_eq(cache_create(&copy->cache_fd, of->reader->map_bytes), ERR_OK);
	copy->marks_fd = -1;
	cr_assert_eq(shm_map_sparse(&map, &bytes, copy->cache_fd), ERR_OK);
	memcpy(map, of->reader->map, bytes);
	shm_unmap(map, bytes);
}

/* What the child does. */
static struct cache_entries_want stepped;
static struct cache_entries_room stepped_room;
static uint8_t stepped_wire[NAME_MAX_BYTES];
static size_t stepped_bytes;
static bool step_store(struct cache_writer *w) { return cache_store(w, (struct cache_entry *)stepped_room.words) == ERR_OK; }
static bool step_remove(struct cache_writer *w) { return cache_remove(w, stepped_wire, stepped_bytes, 0) == 1; }

static _Noreturn void step_child(bool (*step)(struct cache_writer *w))
{
	struct cache_writer *w;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || cache_writer_attach(&w, world.cache_fd, world.marks_fd) != ERR_OK)
		_exit(1);
	raise(SIGSTOP);
	_exit(step(w) ? 0 : 2);
}

static void check_copy(unsigned state)
{
	static struct cache_world copy;
	copy_cache(&copy, &world);
	attach_and_check(&copy);
	struct cache_entries_want want = world_want(NAMES + state); /* and it can be gone on with */
	world_store(&copy, want);
	cr_assert_eq(world_ask(&copy, want), CACHE_HIT);
	cache_writer_detach(copy.writer);
	close(copy.cache_fd);
}

/* Does one step in a child, instruction by instruction. After each that changed the memory a copy is repaired: as if the child had died there. Returns how
 * many states there were. */
static unsigned every_state(struct cache_entries_want want, bool (*step)(struct cache_writer *w))
{
	static uint8_t before[2 * MIB];
	static char name[64];
	unsigned states = 0;
	int status;
	snprintf(name, sizeof(name), "%s", want.name);
	stepped = want;
	stepped.name = name;
	stepped_bytes = cache_entries_key(stepped_wire, world.reader, &stepped).name_bytes;
	cache_entries_make(&stepped_room, world.reader, &stepped);
	pid_t child = fork();
	if (child == 0)
		step_child(step);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSTOPPED(status));
	cr_assert_leq(world.reader->map_bytes, sizeof(before));
	memcpy(before, world.reader->map, world.reader->map_bytes);
	for (;;) {
		cr_assert_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		if (WIFEXITED(status))
			break;
		cr_assert(WIFSTOPPED(status));
		if (memcmp(before, world.reader->map, world.reader->map_bytes) == 0)
			continue;
		memcpy(before, world.reader->map, world.reader->map_bytes);
		check_copy(states++);
	}
	cr_assert_eq(WEXITSTATUS(status), 0);
	return states;
}

/* A full cache whose oldest entries were all read twice, so that a store promotes, and main's turn round. Entries are large, so that they are few. */
static struct cache_entries_want large(unsigned number)
{
	struct cache_entries_want want = world_want(number);
	want.data_bytes = 500;
	return want;
}
static void open_full(void)
{
	world_open(&world, MIB);
	for (unsigned i = 0; i < 3000; i++) {
		world_store(&world, large(i));
		world_read(&world, i, 2);
	}
	for (unsigned i = 0; i < 3000; i++)
		if (world_ask(&world, world_want(i)) == CACHE_HIT)
			cache_mark(cache_reader_marks(world.reader, 0), world.hit.slot);
	cache_writer_detach(world.writer);
	cr_assert_eq(cache_reader_attach(&world.reader, world.cache_fd, world.marks_fd), ERR_OK);
}
static void close_full(void)
{
	cache_reader_detach(world.reader);
	close(world.cache_fd);
	close(world.marks_fd);
}
TestSuite(cache_repair_steps, .init = open_full, .fini = close_full, .timeout = 120);

Test(cache_repair_steps, a_store_that_promotes_and_evicts)
{
	cr_expect_gt(every_state(large(NAMES - 1), step_store), 100u);
	cr_expect_eq(world_ask(&world, stepped), CACHE_HIT);
}
Test(cache_repair_steps, a_store_that_replaces)
{
	struct cache_entries_want want = world_want(2990);
	want.seed = 5;
	cr_expect_gt(every_state(want, step_store), 8u);
	cr_assert_eq(world_ask(&world, stepped), CACHE_HIT);
	cr_expect_eq(cache_entries_seed(world.hit.entry), 5);
}
Test(cache_repair_steps, an_nxdomain_that_ends_a_type)
{
	struct cache_entries_want want = world_want(2990);
	want.type = 0;
	cr_expect_gt(every_state(want, step_store), 15u);
	cr_assert_eq(world_ask(&world, stepped), CACHE_HIT);
	stepped.type = 1;
	cr_assert_eq(world_ask(&world, stepped), CACHE_HIT);
	cr_expect_eq(world.hit.entry->type, 0);
}
Test(cache_repair_steps, a_removal)
{
	cr_expect_geq(every_state(world_want(2990), step_remove), 3u);
	cr_expect_eq(world_ask(&world, stepped), CACHE_MISS);
}

/* --- broken by whoever ------------------------------------------------------------------------------------------------------------ */

static struct cache_shard_head *shard_head(void) { return (struct cache_shard_head *)(world.reader->shards); }

Test(cache_repair, impossible_positions_cost_the_shard_its_content)
{
	static const uint64_t wrong[] = { UINT64_MAX, 1ull << 33, UINT32_MAX, 7 };
	for (size_t i = 0; i < 4 * ARRAY_LEN(wrong); i++) {
		world_open(&world, MIB);
		for (unsigned n = 0; n < 3000; n++)
			world_store(&world, world_want(n));
		struct cache_shard_head *head = shard_head();
		_Atomic uint64_t *position = i % 2 ? &head->log[i / 2 % 2].head : &head->log[i / 2 % 2].tail;
		atomic_store(position, wrong[i / 4]);
		cr_assert_eq(cache_writer_attach(&world.writer, world.cache_fd, world.marks_fd),
			     ERR_OK); /* as if the first had died */
		world.reader = cache_writer_reader(world.writer);
		cr_expect_leq(world_stats(&world).resets, 1);
		if (world_stats(&world).resets == 1)
			cr_expect_eq(world_stats(&world).entries, 0, "case %zu", i);
		world_store(&world, world_want(9));
		cr_expect_eq(world_ask(&world, world_want(9)), CACHE_HIT);
		cache_writer_detach(world.writer);
		close(world.cache_fd);
		close(world.marks_fd);
	}
}

Test(cache_repair, slots_that_aim_at_nothing_are_cleared)
{
	world_open(&world, MIB);
	for (unsigned n = 0; n < 1000; n++)
		world_store(&world, world_want(n));
	uint64_t *slots = (uint64_t *)(world.reader->shards + world.reader->g.slots_at);
	size_t count = (size_t)world.reader->g.buckets * CACHE_BUCKET_SLOTS;
	uint64_t false_slots = 0;
	for (size_t i = 0; i < count; i += 7) {
		if (slots[i] == 0) {
			slots[i] = i * UINT64_C(0x9e3779b97f4a7c15) | 1;
			false_slots++;
		}
	}
	cr_assert_gt(false_slots, 100u);
	cr_assert_eq(cache_writer_attach(&world.writer, world.cache_fd, world.marks_fd), ERR_OK);
	world.reader = cache_writer_reader(world.writer);
	uint64_t used = 0;
	for (size_t i = 0; i < count; i++)
		used += slots[i] != 0;
	cr_expect_eq(used, 1000);
	world_check(&world);
	world_close(&world);
}

Test(cache_repair, what_was_detached_is_taken_as_it_is)
{
	world_open(&world, MIB);
	for (unsigned n = 0; n < 5000; n++)
		world_store(&world, world_want(n));
	struct cache_stats before = world_stats(&world);
	cache_writer_detach(world.writer);
	attach_and_check(&world);
	struct cache_stats after = world_stats(&world);
	cr_expect_eq(memcmp(&before, &after, sizeof(before)), 0);
	world_close(&world);
}
