/* SPDX-License-Identifier: Apache-2.0 */
#include "table/log_ring_private.h"
#include "table/shm.h"

#include <stdlib.h>
#include <unistd.h>

struct log_ring_map {
	struct log_ring_header *map;
	size_t bytes;
	unsigned threads; /* copied at attach */
};

static size_t size_of(unsigned threads) { return sizeof(struct log_ring_header) + threads * sizeof(struct log_ring); }

enum err log_ring_create(int *fd, unsigned threads, const char *label)
{
	int made;
	void *map;
	size_t bytes;

	if (threads == 0 || threads > LOG_RING_MAX_THREADS)
		return ERR_ARGUMENT;
	enum err err = shm_create(&made, label, size_of(threads));
	if (err != ERR_OK)
		return err;
	err = shm_map_writable(&map, &bytes, made);
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	struct log_ring_header *h = map;
	h->magic = LOG_RING_MAGIC;
	h->version = LOG_RING_VERSION;
	h->size_bytes = size_of(threads);
	h->threads = threads;
	h->slots = LOG_RING_SLOTS;
	shm_unmap(map, bytes);
	*fd = made;
	return ERR_OK;
}

enum err log_ring_attach(struct log_ring_map **out, int fd, bool writable)
{
	void *map = NULL;
	const void *read_only = NULL;
	size_t bytes;

	if (!shm_is_sealed(fd, false))
		return ERR_CORRUPT;
	enum err err = writable ? shm_map_writable(&map, &bytes, fd) : shm_map(&read_only, &bytes, fd);
	if (err != ERR_OK)
		return err;
	struct log_ring_header *h = writable ? map : (struct log_ring_header *)(uintptr_t)read_only;
	unsigned threads = bytes >= sizeof(*h) ? h->threads : 0;
	struct log_ring_map *m = malloc(sizeof(*m));

	if (!m || threads == 0 || threads > LOG_RING_MAX_THREADS || h->magic != LOG_RING_MAGIC ||
	    h->version != LOG_RING_VERSION || h->slots != LOG_RING_SLOTS || h->size_bytes != bytes || bytes != size_of(threads)) {
		shm_unmap(h, bytes);
		err = m ? ERR_CORRUPT : ERR_NOMEM;
		free(m);
		return err;
	}
	*m = (struct log_ring_map){ h, bytes, threads };
	*out = m;
	return ERR_OK;
}

void log_ring_detach(struct log_ring_map *m)
{
	if (!m)
		return;
	shm_unmap(m->map, m->bytes);
	free(m);
}

unsigned log_ring_threads(const struct log_ring_map *m) { return m->threads; }

uint32_t log_ring_written(const struct log_ring_map *m, unsigned thread)
{
	ASSERT(thread < m->threads);
	return atomic_load_explicit(&m->map->ring[thread].number, memory_order_relaxed);
}

void log_writer_init(struct log_writer *w, struct log_ring_map *m, unsigned thread)
{
	ASSERT(thread < m->threads);
	struct log_ring *r = &m->map->ring[thread];

	/* What a process before had begun is given up: its number is used again. */
	w->ring_ = r;
	w->next_ = atomic_load_explicit(&r->begun, memory_order_relaxed);
	w->number_ = atomic_load_explicit(&r->number, memory_order_relaxed);
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* The oldest slot that is certainly not being overwritten. */
static uint64_t oldest(const struct log_ring *r)
{
	uint64_t begun = atomic_load_explicit((_Atomic uint64_t *)&r->begun, memory_order_relaxed);

	return begun > LOG_RING_SLOTS ? begun - LOG_RING_SLOTS : 0;
}

void log_reader_init(struct log_reader *r, const struct log_ring_map *m, unsigned thread, bool is_from_now)
{
	ASSERT(thread < m->threads);
	const struct log_ring *ring = &m->map->ring[thread];

	*r = (struct log_reader){ .ring_ = ring };
	r->next_ = is_from_now ? atomic_load_explicit((_Atomic uint64_t *)&ring->done, memory_order_acquire) : oldest(ring);
	if (is_from_now) {
		r->number_ = atomic_load_explicit((_Atomic uint32_t *)&ring->number, memory_order_relaxed);
		r->is_synced_ = true;
	}
}

static void copy_slot(const struct log_ring *r, uint64_t at, uint64_t out[static LOG_SLOT_WORDS])
{
	const _Atomic uint64_t *slot = r->slot[at % LOG_RING_SLOTS];

	for (unsigned i = 0; i < LOG_SLOT_WORDS; i++)
		out[i] = atomic_load_explicit((_Atomic uint64_t *)&slot[i], memory_order_relaxed);
}

static bool unpack(const uint8_t *data, uint32_t bytes, struct log_record *out)
{
	struct log_fixed f;

	memcpy(&f, data, sizeof(f));
	uint32_t address_bytes = f.family == 4 ? 4 : 16;

	if ((f.family != 4 && f.family != 6) || f.path >= LOG_PATH_COUNT_ ||
	    LOG_FIXED_BYTES + address_bytes + f.name_bytes > bytes)
		return false;
	memset(out, 0, offsetof(struct log_record, name));
	out->wall_ns = f.wall_ns;
	out->latency_us = f.latency_us;
	out->qtype = f.qtype;
	out->qclass = f.qclass;
	out->response_bytes = f.response_bytes;
	out->flags = f.flags;
	out->rcode = f.rcode;
	out->ede = f.ede;
	out->group = f.group;
	out->port = f.port;
	out->family = f.family;
	out->transport = f.transport;
	out->path = f.path;
	out->name_bytes = f.name_bytes;
	memcpy(out->address, data + LOG_FIXED_BYTES, address_bytes);
	memcpy(out->name, data + LOG_FIXED_BYTES + address_bytes, f.name_bytes);
	return true;
}

/* Collects the record that begins at r->next_, all of whose slots lie before done. Returns how many slots it takes; 0: its first slot
 * begins no record. */
static uint32_t collect(const struct log_reader *r, uint64_t done, uint8_t *data, uint32_t *number)
{
	uint64_t words[LOG_SLOT_WORDS];

	copy_slot(r->ring_, r->next_, words);
	uint32_t parts = LOG_HEAD_PARTS(words[0]);

	*number = LOG_HEAD_NUMBER(words[0]);
	if (LOG_HEAD_PART(words[0]) != 0 || parts == 0 || parts > LOG_RECORD_MAX_SLOTS || parts > done - r->next_)
		return 0;
	memcpy(data, &words[1], LOG_SLOT_DATA_BYTES);
	for (uint32_t i = 1; i < parts; i++) {
		copy_slot(r->ring_, r->next_ + i, words);
		if (words[0] != LOG_HEAD(*number, i, parts))
			return 0;
		memcpy(data + i * LOG_SLOT_DATA_BYTES, &words[1], LOG_SLOT_DATA_BYTES);
	}
	return parts;
}

bool log_reader_next(struct log_reader *r, struct log_record *out)
{
	uint8_t data[LOG_RECORD_MAX_SLOTS * LOG_SLOT_DATA_BYTES];
	uint64_t done = atomic_load_explicit((_Atomic uint64_t *)&r->ring_->done, memory_order_acquire);

	bool is_torn = !r->is_synced_; /* what comes may be the rest of a record */

	if (done - r->next_ > 2ull * LOG_RING_SLOTS) { /* also what a writer could not have written */
		r->next_ = done > LOG_RING_SLOTS ? done - LOG_RING_SLOTS : 0;
		is_torn = true;
	}
	/* Each turn moves on by a slot at least: at most two laps. */
	while (r->next_ != done) {
		uint32_t number, parts = collect(r, done, data, &number);

		atomic_thread_fence(memory_order_acquire);
		uint64_t safe = oldest(r->ring_);

		if (r->next_ < safe) { /* overrun while or before it was copied: gaps in the numbers tell how many */
			r->next_ = MIN(safe, done);
			is_torn = true;
			continue;
		}
		if (parts == 0) {
			r->next_++;
			r->damaged += !is_torn;
			continue;
		}
		is_torn = false;
		r->next_ += parts;
		if (r->is_synced_)
			r->lost += (uint32_t)(number - r->number_);
		r->is_synced_ = true;
		r->number_ = number + 1;
		if (unpack(data, parts * LOG_SLOT_DATA_BYTES, out)) {
			r->records++;
			return true;
		}
		r->damaged++;
	}
	return false;
}
