/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h: one-way queue of records of varying length, in memory that two threads, mostly of two processes, map.
 *
 * Roles      One producer, one consumer; a handle belongs to one thread. Either may die and be followed by another, which attaches and
 *            goes on from the indices in the memory.
 * Records    Octets 0 to ring_record_max(capacity); each lies in one piece. Nothing is promised about alignment beyond 8.
 * Ordering   commit stores tail (release), pop loads it (acquire): a popped record is whole. pop stores head (release), reserve loads
 *            it (acquire): nothing unread is overwritten.
 * Sleeping   A consumer that wants to sleep calls ring_prepare_sleep; if that says true it may sleep on its eventfd. Producers call
 *            ring_needs_kick once after a batch of commits, and write to the eventfd if it says true.
 * Trust      The other side may write anything anywhere at any time. Constants are copied at attach; indices and lengths are checked; a
 *            record is copied out before it is looked at. Impossible indices: the producer sees a full ring, the consumer skips to
 *            the producer's index and says RING_CORRUPT once.
 * Death      A record that was not committed is never seen. A producer that attaches calls ring_needs_kick at once: its predecessor may
 *            have died before its kick. A consumer that attaches finds what was committed; ring_discard drops it. */
#pragma once
#include "base/base.h"

#define RING_MAGIC 0x474e4952u
#define RING_MIN_BYTES 4096u
#define RING_MAX_BYTES (1u << 24)

struct ring_map {				   /* shared: layout is ABI */
	uint32_t magic, capacity;		   /* octets of data, a power of two; constant once formatted */
	alignas(CACHE_LINE) _Atomic uint32_t tail; /* producer writes */
	_Atomic uint32_t kicks;			   /* for status: eventfd writes of the producer */
	alignas(CACHE_LINE) _Atomic uint32_t head; /* consumer writes */
	_Atomic uint32_t is_sleeping;		   /* consumer sets, both clear */
	alignas(CACHE_LINE) uint8_t data[];
};
static_assert(offsetof(struct ring_map, data) == 192, "ABI changed");

struct ring_producer {
	struct ring_map *map_;
	uint32_t capacity_, tail_, head_seen_, reserved_, kicked_;
};
struct ring_consumer {
	struct ring_map *map_;
	uint32_t capacity_, head_, tail_seen_;
};
enum ring_result { RING_OK, RING_WAIT, RING_CORRUPT };

/* Octets to map for a capacity; 0 unless it is a power of two from RING_MIN_BYTES to RING_MAX_BYTES. */
size_t ring_bytes(uint32_t capacity);
/* Longest record: a quarter of the capacity, less its header. */
uint32_t ring_record_max(uint32_t capacity);
/* Lays out mem (CACHE_LINE aligned, exactly ring_bytes(capacity)) before any peer sees it. ERR_ARGUMENT. */
MUST_USE enum err ring_format(void *mem, size_t mem_bytes, uint32_t capacity);
/* mem is borrowed until the handle's last use. ERR_CORRUPT: no ring of exactly mem_bytes. Impossible indices are put
 * right. */
MUST_USE enum err ring_producer_attach(struct ring_producer *out, void *mem, size_t mem_bytes);
MUST_USE enum err ring_consumer_attach(struct ring_consumer *out, void *mem, size_t mem_bytes);
/* Consumer: throws away what is in the ring: questions of a process that is gone. Returns how many octets. */
uint32_t ring_discard(struct ring_consumer *c);

/* Room for a record, 8-byte aligned, to be filled before ring_commit; NULL: the ring is full (or broken), or the record longer than
 * ring_record_max. At most one reservation at a time: another one without a commit replaces it. */
MUST_USE HOT void *ring_reserve(struct ring_producer *p, uint32_t record_bytes);
HOT void ring_commit(struct ring_producer *p);
/* True at most once per sleep of the consumer. Cheap when nothing was committed since the last call. */
MUST_USE HOT bool ring_needs_kick(struct ring_producer *p);
/* Copies the next record to out, at most out_bytes (a longer one is RING_CORRUPT and skipped); *record_bytes is its length. */
MUST_USE HOT enum ring_result ring_pop(struct ring_consumer *c, void *out, uint32_t out_bytes, uint32_t *record_bytes);
/* True: empty, and the producer will kick. False: something is there, pop it. After waking, or if another ring of the same consumer says
 * false, ring_cancel_sleep saves the producer a kick. */
MUST_USE HOT bool ring_prepare_sleep(struct ring_consumer *c);
HOT void ring_cancel_sleep(struct ring_consumer *c);

/* --- all pairs of one fastpath and one slowpath ----------------------------------------------------------------------
 * One memfd: for each (thread, worker) a ring of questions (thread to worker) and one of answers. Both processes map it writable. */
#define RING_SET_MAGIC 0x53474e52u
#define RING_SET_MAX_THREADS 256u
#define RING_SET_MAX_WORKERS 128u
struct ring_set {
	uint8_t *map_;
	size_t map_bytes_;
	unsigned threads, workers;
	uint32_t question_capacity, answer_capacity;
};
/* ERR_ARGUMENT: a number out of range; ERR_NOMEM, ERR_NOSPACE. */
MUST_USE enum err ring_set_create(int *fd, unsigned threads, unsigned workers, uint32_t question_capacity,
				  uint32_t answer_capacity);
/* Checks everything but the rings, which *_attach check. Takes no descriptor. ERR_DENIED: not sealed against resizing; ERR_CORRUPT. */
MUST_USE enum err ring_set_attach(struct ring_set *out, int fd);
void ring_set_detach(struct ring_set *s);
/* Memory of one ring, for the attach functions; *bytes its size. */
void *ring_set_questions(const struct ring_set *s, unsigned thread, unsigned worker, size_t *bytes);
void *ring_set_answers(const struct ring_set *s, unsigned thread, unsigned worker, size_t *bytes);
