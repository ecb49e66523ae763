/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h: the answer cache: one memfd that `skua run` makes, that outlives every other process, that all serving threads read and
 * that the slowpath's resolver workers write.
 *
 *     header | shards: { buckets | ghost table | small log | main log }      (to the bit: cache_layout.h)
 *
 * Shards     A power of two, fixed when the cache is made; a name's hash chooses one. Each shard has one writing thread at a time
 *            (the worker that its names belong to), so that writers take no locks.
 * Buckets    One cache line of 8 slots. A name belongs to one of two buckets; all types of a name lie there. A slot is one 64-bit word: tag, lap, place
 *            of the entry; 0 is empty. Storing that word publishes, clearing it revokes. There is a slot for every 64 octets of the logs: half of them
 *            are used when entries take 128 octets, and nearly all with nothing but A records.
 * Logs       Entries lie in two circular logs, S3-FIFO: new ones in the small log; what was read there twice, or was evicted shortly
 *            before (the ghost table knows), in the main log. Room is made at the tail: an entry that is marked as read moves to the main
 *            log's head, any other loses its slot, and so does any that has expired. While the main log has room, nothing else is lost.
 *            No free lists, no fragments; a store is O(1) amortised.
 * NXDOMAIN   answers all types of its name. It and entries of types of the same name, partition and CD never stand beside each other: storing the
 *            one removes the other, so that the newest wins. A failure says nothing about the name and removes nothing.
 * Reading    Load the slot (acquire), copy the entry by relaxed words, fence (acquire), load the slot again: if it changed, the copy is
 *            worthless. A writer clears the slot and fences (release) before it reuses the place. The lap in the slot word tells one use
 *            of a place from the next. Readers never write here.
 * Marks      Each reader thread owns an array of one octet per slot (cache_marks), which it raises to at most 2 when it reads an entry;
 *            the evictor sums and clears them. They are hints: losing one costs nothing.
 * Death      A writer that dies leaves at worst unpublished octets in a log. The next one to attach checks heads and tails, walks the
 *            logs (unless the last one detached), and clears slots that aim at nothing sound; a shard that makes no sense becomes empty.
 * Trust      Readers copy constants at attach and check every offset and every copy; a hostile writer can make them miss or answer with
 *            what it likes for names that are not ours, never crash or over-read.
 * Clock      Seconds of clock_mono_s() (base/clock.h), an argument everywhere. */
#pragma once
#include "base/base.h"
#include "table/cache_entry.h"

#define CACHE_MAGIC 0x434b4153u
#define CACHE_VERSION 1u
#define CACHE_PARTITIONS 256u
#define CACHE_MAX_SHARDS 64u
#define CACHE_MIN_BYTES (1ull << 20) /* a shard more for every MiB, as far as that is a power of two */

struct cache_key {
	const uint8_t *name; /* lower-cased wire form */
	uint64_t hash;	     /* cache_hash(name_hash) */
	uint16_t type;	     /* as asked */
	uint16_t partition;
	uint8_t name_bytes;
	bool is_cd;
};

/* --- making -------------------------------------------------------------------------------------------------------- */
/* A memfd of about size_bytes (header, buckets, ghosts and logs together), whole and sealed against resizing, mode 0600; huge pages where
 * there are. The hash key is random. *fd is the caller's. ERR_RANGE below CACHE_MIN_BYTES or beyond 2 TiB; ERR_NOMEM, ERR_NOSPACE. */
MUST_USE enum err cache_create(int *fd, uint64_t size_bytes);
/* The same object for reading only: an O_RDONLY descriptor. */
MUST_USE enum err cache_reopen_read_only(int *fd, int cache_fd);
/* A memfd of 1 to 1,024 mark arrays for this cache, an octet a slot each; resized never. */
MUST_USE enum err cache_marks_create(int *fd, int cache_fd, unsigned readers);

/* --- reading (any thread) ------------------------------------------------------------------------------------------- */
struct cache_reader; /* one per process; immutable after attach */
/* Maps both (marks_fd may be -1). Takes neither descriptor. ERR_CORRUPT: not a cache, not its marks, or not sealed; ERR_NOMEM. */
MUST_USE enum err cache_reader_attach(struct cache_reader **out, int cache_fd, int marks_fd);
void cache_reader_detach(struct cache_reader *r);
/* Shard of a hash, as cache_shard: whom to ask what the cache does not know. */
HOT unsigned cache_reader_shard(const struct cache_reader *r, uint64_t hash);
/* Mark array of reader i, for struct answer_thread; NULL if there is none. */
uint8_t *cache_reader_marks(struct cache_reader *r, unsigned i);

enum cache_result {
	CACHE_MISS,
	CACHE_HIT,     /* fresh */
	CACHE_EXPIRED, /* was right once; the resolver may serve it stale */
};
struct cache_hit {
	const struct cache_entry *entry; /* in scratch */
	uint64_t slot;			 /* index in mark arrays */
};
#define CACHE_SCRATCH_WORDS (CACHE_ENTRY_MAX_BYTES / 8)

/* Where a name belongs: its name_hash, keyed. */
HOT uint64_t cache_hash(const struct cache_reader *r, uint64_t name_hash);
/* First and second prefetch: the buckets' lines; the entry that has the key's tag in its first bucket. */
HOT void cache_prefetch_bucket(const struct cache_reader *r, uint64_t hash);
HOT void cache_prefetch_entry(const struct cache_reader *r, const struct cache_key *key);
/* Finds the answer to key: the entry of the type, or the name's NXDOMAIN. Entries of an older epoch are misses. scratch: the thread's own,
 * CACHE_SCRATCH_WORDS; the entry is copied there and checked. hit is set unless it was a miss. */
MUST_USE HOT enum cache_result cache_read(const struct cache_reader *r, const struct cache_key *key, uint32_t now_s,
					  uint64_t *scratch, struct cache_hit *hit);
/* The closest fresh NXDOMAIN above the name (RFC 8020); label_offset and label_count as in struct answer_query. At most
 * CACHE_CUT_LABELS names are looked up, the longest first. The hashes of ancestors are computed here. */
#define CACHE_CUT_LABELS 6u
MUST_USE HOT enum cache_result cache_read_cut(const struct cache_reader *r, const struct cache_key *key,
					      const uint8_t *label_offset, unsigned label_count, uint32_t now_s,
					      uint64_t *scratch, struct cache_hit *hit);
/* Raises the mark; returns its new value, 2: read at least twice since it was last cleared. marks may be NULL: 2. */
HOT unsigned cache_mark(uint8_t *marks, uint64_t slot);
/* Current epoch of a partition. */
HOT uint32_t cache_epoch(const struct cache_reader *r, uint16_t partition);

/* --- writing (the slowpath) ----------------------------------------------------------------------------------------- */
struct cache_writer;
/* Maps for writing, takes an exclusive lock on the file (ERR_BUSY: another process writes), repairs what a dead writer left. The lock is the
 * process's (fcntl(2), F_SETLK), since the open file is shared with those that handed it over: cache_fd stays open until detach, and closing any
 * other descriptor of the same cache in this process would end the lock. ERR_CORRUPT, ERR_NOMEM. */
MUST_USE enum err cache_writer_attach(struct cache_writer **out, int cache_fd, int marks_fd);
void cache_writer_detach(struct cache_writer *w);
/* A reader over the writer's own mapping, as good as any and with the writer's marks; borrowed until detach. */
struct cache_reader *cache_writer_reader(struct cache_writer *w);
unsigned cache_writer_shards(const struct cache_writer *w);
/* Shard of a hash: only one thread at a time may call the functions below for it. */
unsigned cache_shard(const struct cache_writer *w, uint64_t hash);
/* Stores a copy of e, replacing an entry with the same key. An entry of an older epoch than its partition's is left out and counted: ERR_OK.
 * ERR_NOSPACE: larger than CACHE_ENTRY_MAX_BYTES or a quarter of the shard's small log. ERR_MALFORMED: cache_entry_check says no.
 * e->hash must be that of the name. */
MUST_USE enum err cache_store(struct cache_writer *w, const struct cache_entry *e);
/* Removes what is known of a name in all partitions: its NXDOMAIN, and the type (0: all types). Returns how many. */
unsigned cache_remove(struct cache_writer *w, const uint8_t *lower, size_t name_bytes, uint16_t type);
/* Removes all at or below a name in one shard; linear in the shard. Returns how many. */
uint64_t cache_remove_tree(struct cache_writer *w, unsigned shard, const uint8_t *lower, size_t name_bytes);
/* Makes all that was asked before older than the partition's epoch: any thread. */
void cache_epoch_advance(struct cache_writer *w, uint16_t partition);

struct cache_stats {
	uint64_t size_bytes, slots;
	uint64_t entries, entry_bytes;	  /* live ones, and what they take in the logs */
	uint64_t small_bytes, main_bytes; /* in use in the logs, dead blocks included */
	uint64_t stores, replaced;
	uint64_t evicted, expired; /* to make room: what was still fresh, what was not */
	uint64_t promoted, ghost_hits;
	uint64_t no_slot;   /* both buckets were full, the entry that ends first gave way */
	uint64_t too_large; /* not stored */
	uint64_t outdated;  /* not stored: its question began before the epoch advanced */
	uint64_t resets;    /* shards that were found broken */
};
/* Sums over the shards; any thread; sums may be a moment apart. */
void cache_writer_stats(const struct cache_writer *w, struct cache_stats *out);
/* Calls visit with a copy of each entry of a shard, expired and outdated ones too: the main log, then the small one, each from its oldest
 * on; stops when it returns false. The shard's thread. */
void cache_walk(struct cache_writer *w, unsigned shard, bool (*visit)(void *user, const struct cache_entry *e), void *user);

/* --- the file ------------------------------------------------------------------------------------------------------- */
/* Writes what is fresh, of its partition's epoch, and neither a failure nor stale to path.new, and renames that to path: mode 0600, durable. settings:
 * a hash of what gives partitions their meaning, so that a file made with others is not loaded. wall_s, now_s: the two clocks of base/clock.h. Linear; while
 * it runs no shard may be written. ERR_NOMEM, ERR_RANGE (a long path), and what the system calls say; then the old file stays. */
MUST_USE enum err cache_file_save(struct cache_writer *w, const char *path, uint64_t settings, int64_t wall_s, uint32_t now_s,
				  uint64_t *entries);
/* Stores what the file holds and is still fresh, with the current epochs; TTLs go on from where they were. While it runs no shard may be written by others.
 * *entries: how many were stored, whatever is returned. ERR_CORRUPT: damage or another version, and what came before it is kept; ERR_NOTFOUND: there is no
 * file, or it was made with other settings; ERR_IO and others. *why: a sentence about the file unless it is ERR_OK. */
MUST_USE enum err cache_file_load(struct cache_writer *w, const char *path, uint64_t settings, int64_t wall_s, uint32_t now_s,
				  uint64_t *entries, const char **why);
