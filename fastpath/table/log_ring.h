/* SPDX-License-Identifier: Apache-2.0 */
/* log_ring.h: a record of every answer, from the serving threads to whoever reads along; lossy and counted, waiting for nobody.
 *
 * Layout     One memfd for a part: header, then one ring per thread. A ring is LOG_RING_SLOTS slots of one cache line; a record takes one
 *            slot, or more when address and name are longer than what the first one holds. Every slot says which record it belongs to,
 *            which of its slots it is, and how many there are.
 * Writer     One thread per ring, which never looks at readers: it overwrites the oldest. It stores `begun` (relaxed, then a release
 *            fence) before it writes slots, by relaxed words, and `done` (release) after.
 * Readers    Any number, read-only maps. A reader copies slots up to `done`, fences (acquire), and drops what `begun` has overrun. Records are
 *            numbered: what it could not read it knows by the gaps, so that records + lost = records written, up to the last one read.
 * Death      A process that follows another goes on with the numbers where the last whole record ended.
 * Trust      Readers check what they copied: a slot that makes no sense is counted as damaged and skipped. */
#pragma once
#include "base/base.h"
#include "dns/name.h"

#define LOG_RING_MAGIC 0x474f4c53u
#define LOG_RING_VERSION 1u
#define LOG_RING_SLOTS 4096u /* per thread: a quarter of a MiB; a power of two */
#define LOG_RING_MAX_THREADS 1024u

/* How an answer came about. */
enum log_path {
	LOG_PATH_ZONE,
	LOG_PATH_CACHE,
	LOG_PATH_STALE,
	LOG_PATH_RESOLVED,
	LOG_PATH_FAILED,
	LOG_PATH_REFUSED,
	LOG_PATH_OTHER,
	LOG_PATH_COUNT_
};

/* Host byte order. */
struct log_record {
	uint64_t wall_ns;    /* when the answer left */
	uint32_t latency_us; /* since the query was received, as far as known; 0: within the batch */
	uint16_t qtype, qclass;
	uint16_t response_bytes;
	uint16_t flags; /* header word of the query */
	uint16_t rcode; /* extended */
	int16_t ede;
	uint16_t group;
	uint16_t port;
	uint8_t address[16];
	uint8_t family;	   /* 4 or 6 */
	uint8_t transport; /* enum answer_transport */
	uint8_t path;	   /* enum log_path */
	uint8_t name_bytes;
	uint8_t name[NAME_MAX_BYTES + 1]; /* lower-cased wire form; only name_bytes of it are set */
};

/* --- making -------------------------------------------------------------------------------------------------------- */
/* A memfd, whole and sealed against resizing; *fd is the caller's. ERR_ARGUMENT: 0 or more than LOG_RING_MAX_THREADS; ERR_NOMEM, ERR_NOSPACE. */
MUST_USE enum err log_ring_create(int *fd, unsigned threads, const char *label);

/* Maps it. Takes no descriptor. ERR_CORRUPT: not a log ring, or not sealed against resizing. */
struct log_ring_map; /* one per process */
MUST_USE enum err log_ring_attach(struct log_ring_map **out, int fd, bool writable);
void log_ring_detach(struct log_ring_map *m);
unsigned log_ring_threads(const struct log_ring_map *m);
/* Records that a thread's ring has seen, modulo 2^32. */
uint32_t log_ring_written(const struct log_ring_map *m, unsigned thread);

/* --- writing ------------------------------------------------------------------------------------------------------- */
/* A thread's handle. */
struct log_writer {
	struct log_ring *ring_;
	uint64_t next_; /* slot */
	uint32_t number_;
};
/* thread < log_ring_threads(m), which was attached writable. */
void log_writer_init(struct log_writer *w, struct log_ring_map *m, unsigned thread);
/* Appends. Budget: 60 instructions for a short name. */
HOT void log_write_record(struct log_writer *w, const struct log_record *record);

/* --- reading ------------------------------------------------------------------------------------------------------- */
struct log_reader {
	const struct log_ring *ring_;
	uint64_t next_;			 /* slot */
	uint32_t number_;		 /* of the record that is expected */
	bool is_synced_;		 /* the first record says where counting begins */
	uint64_t records, lost, damaged; /* since init: records read, records lost, slots that made no sense */
};
/* Starts at what is written next (is_from_now) or at the oldest record that is still there. thread < log_ring_threads. */
void log_reader_init(struct log_reader *r, const struct log_ring_map *m, unsigned thread, bool is_from_now);
/* True: *out is the next record. False: nothing new. */
MUST_USE bool log_reader_next(struct log_reader *r, struct log_record *out);
