/* SPDX-License-Identifier: Apache-2.0 */
#include "table/ring.h"

#include <unistd.h>

#include "table/shm.h"

#define SET_VERSION 1u
#define SET_HEADER_BYTES 4096u /* the rings begin on a page of their own */

/* First octets of a set's memfd; the rings of questions follow, then those of answers, each group by thread, then worker. */
struct ring_set_header {
	uint32_t magic, version;
	uint32_t threads, workers;
	uint32_t question_capacity, answer_capacity;
	uint64_t total_bytes;
};
static_assert(sizeof(struct ring_set_header) == 32, "ABI changed");

size_t ring_bytes(uint32_t capacity)
{
	if (capacity < RING_MIN_BYTES || capacity > RING_MAX_BYTES || (capacity & (capacity - 1)) != 0)
		return 0;
	return sizeof(struct ring_map) + capacity;
}

uint32_t ring_record_max(uint32_t capacity) { return capacity / 4 - 8; }

enum err ring_format(void *mem, size_t mem_bytes, uint32_t capacity)
{
	size_t bytes = ring_bytes(capacity);
	if (bytes == 0 || mem_bytes != bytes || (uintptr_t)mem % CACHE_LINE != 0)
		return ERR_ARGUMENT;
	struct ring_map *map = mem;
	memset(map, 0, sizeof *map);
	map->capacity = capacity;
	map->magic = RING_MAGIC;
	return ERR_OK;
}

/* The capacity, loaded once; 0: no ring of exactly this size. */
static uint32_t checked_capacity(const struct ring_map *map, size_t mem_bytes)
{
	if (mem_bytes < sizeof *map || (uintptr_t)map % CACHE_LINE != 0 ||
	    __atomic_load_n(&map->magic, __ATOMIC_RELAXED) != RING_MAGIC)
		return 0;
	uint32_t capacity = __atomic_load_n(&map->capacity, __ATOMIC_RELAXED);
	return ring_bytes(capacity) == mem_bytes ? capacity : 0;
}

enum err ring_producer_attach(struct ring_producer *out, void *mem, size_t mem_bytes)
{
	struct ring_map *map = mem;
	uint32_t capacity = checked_capacity(map, mem_bytes);
	if (!capacity)
		return ERR_CORRUPT;
	uint32_t head = atomic_load_explicit(&map->head, memory_order_acquire) & ~7u;
	uint32_t tail = atomic_load_explicit(&map->tail, memory_order_relaxed) & ~7u;
	if (tail - head > capacity)
		tail = head; /* the consumer sees an empty ring, or, if head was no index of its own, skips to it */
	atomic_store_explicit(&map->tail, tail, memory_order_release);
	/* kicked_ differs from any tail: the predecessor may have died between its last commit and the kick. */
	*out = (struct ring_producer){
		.map_ = map, .capacity_ = capacity, .tail_ = tail, .head_seen_ = head, .kicked_ = tail + 1
	};
	return ERR_OK;
}

enum err ring_consumer_attach(struct ring_consumer *out, void *mem, size_t mem_bytes)
{
	struct ring_map *map = mem;
	uint32_t capacity = checked_capacity(map, mem_bytes);
	if (!capacity)
		return ERR_CORRUPT;
	uint32_t tail = atomic_load_explicit(&map->tail, memory_order_acquire) & ~7u;
	uint32_t head = atomic_load_explicit(&map->head, memory_order_relaxed) & ~7u;
	if (tail - head > capacity)
		head = tail;
	atomic_store_explicit(&map->is_sleeping, 0, memory_order_relaxed);
	atomic_store_explicit(&map->head, head, memory_order_release);
	*out = (struct ring_consumer){ .map_ = map, .capacity_ = capacity, .head_ = head, .tail_seen_ = head };
	return ERR_OK;
}

uint32_t ring_discard(struct ring_consumer *c)
{
	uint32_t tail = atomic_load_explicit(&c->map_->tail, memory_order_acquire) & ~7u;
	uint32_t bytes = tail - c->head_;
	c->head_ = c->tail_seen_ = tail;
	atomic_store_explicit(&c->map_->head, tail, memory_order_release);
	return MIN(bytes, c->capacity_);
}

/* --- the set --------------------------------------------------------------------------------------------------------- */

/* Octets of the memfd; 0: a number is out of range. Below 2^41, so nothing overflows. */
static uint64_t set_bytes(unsigned threads, unsigned workers, uint32_t question_capacity, uint32_t answer_capacity)
{
	size_t questions = ring_bytes(question_capacity), answers = ring_bytes(answer_capacity);
	if (threads == 0 || threads > RING_SET_MAX_THREADS || workers == 0 || workers > RING_SET_MAX_WORKERS || !questions ||
	    !answers)
		return 0;
	return SET_HEADER_BYTES + (uint64_t)threads * workers * (questions + answers);
}

static uint8_t *set_ring(const struct ring_set *s, bool is_answer, unsigned thread, unsigned worker)
{
	ASSERT(s->map_ && thread < s->threads && worker < s->workers);
	size_t pairs = (size_t)s->threads * s->workers, pair = (size_t)thread * s->workers + worker;
	uint8_t *first = s->map_ + SET_HEADER_BYTES;
	if (is_answer)
		return first + pairs * ring_bytes(s->question_capacity) + pair * ring_bytes(s->answer_capacity);
	return first + pair * ring_bytes(s->question_capacity);
}

void *ring_set_questions(const struct ring_set *s, unsigned thread, unsigned worker, size_t *bytes)
{
	*bytes = ring_bytes(s->question_capacity);
	return set_ring(s, false, thread, worker);
}

void *ring_set_answers(const struct ring_set *s, unsigned thread, unsigned worker, size_t *bytes)
{
	*bytes = ring_bytes(s->answer_capacity);
	return set_ring(s, true, thread, worker);
}

static enum err format_all(const struct ring_set *s)
{
	for (unsigned t = 0; t < s->threads; t++)
		for (unsigned w = 0; w < s->workers; w++) {
			size_t question_bytes, answer_bytes;
			void *questions = ring_set_questions(s, t, w, &question_bytes),
			     *answers = ring_set_answers(s, t, w, &answer_bytes);
			enum err err = ring_format(questions, question_bytes, s->question_capacity);
			if (err == ERR_OK)
				err = ring_format(answers, answer_bytes, s->answer_capacity);
			if (err != ERR_OK)
				return err;
		}
	return ERR_OK;
}

enum err ring_set_create(int *fd, unsigned threads, unsigned workers, uint32_t question_capacity, uint32_t answer_capacity)
{
	uint64_t bytes = set_bytes(threads, workers, question_capacity, answer_capacity);
	if (!bytes)
		return ERR_ARGUMENT;
	int made;
	enum err err = shm_create(&made, "skua-rings", bytes);
	if (err != ERR_OK)
		return err;
	void *map;
	struct ring_set s = {
		.threads = threads, .workers = workers, .question_capacity = question_capacity, .answer_capacity = answer_capacity
	};
	err = shm_map_writable(&map, &s.map_bytes_, made);
	if (err == ERR_OK) {
		s.map_ = map;
		err = format_all(&s);
		*(struct ring_set_header *)map = (struct ring_set_header){ .magic = RING_SET_MAGIC,
									   .version = SET_VERSION,
									   .threads = threads,
									   .workers = workers,
									   .question_capacity = question_capacity,
									   .answer_capacity = answer_capacity,
									   .total_bytes = bytes };
		shm_unmap(map, s.map_bytes_);
	}
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	*fd = made;
	return ERR_OK;
}

enum err ring_set_attach(struct ring_set *out, int fd)
{
	if (!shm_is_sealed(fd, false)) /* somebody could cut it short: SIGBUS */
		return ERR_DENIED;
	void *map;
	size_t map_bytes;
	enum err err = shm_map_writable(&map, &map_bytes, fd);
	if (err != ERR_OK)
		return err;
	struct ring_set_header h = { 0 };
	if (map_bytes >= SET_HEADER_BYTES)
		memcpy(&h, map, sizeof h);
	if (h.magic != RING_SET_MAGIC || h.version != SET_VERSION || h.total_bytes != map_bytes ||
	    set_bytes(h.threads, h.workers, h.question_capacity, h.answer_capacity) != map_bytes) {
		shm_unmap(map, map_bytes);
		return ERR_CORRUPT;
	}
	*out = (struct ring_set){ .map_ = map,
				  .map_bytes_ = map_bytes,
				  .threads = h.threads,
				  .workers = h.workers,
				  .question_capacity = h.question_capacity,
				  .answer_capacity = h.answer_capacity };
	return ERR_OK;
}

void ring_set_detach(struct ring_set *s)
{
	shm_unmap(s->map_, s->map_bytes_);
	*s = (struct ring_set){ 0 };
}
