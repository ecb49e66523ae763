/* SPDX-License-Identifier: Apache-2.0 */
/* log_ring_private.h: the bytes of a log ring.
 *
 * Slot       { number, part, parts, data[...] }. The data of a record's slots, one after the other, are: struct log_fixed, 4 or 16 octets of
 *            address, the name. */
#pragma once
#include "table/log_ring.h"

#define LOG_SLOT_WORDS (CACHE_LINE / 8)
#define LOG_SLOT_DATA_BYTES (CACHE_LINE - 8)
#define LOG_FIXED_BYTES 32u
#define LOG_RECORD_MAX_BYTES (LOG_FIXED_BYTES + 16u + NAME_MAX_BYTES)
#define LOG_RECORD_MAX_SLOTS ((LOG_RECORD_MAX_BYTES + LOG_SLOT_DATA_BYTES - 1) / LOG_SLOT_DATA_BYTES)

struct log_fixed {
	uint64_t wall_ns;
	uint32_t latency_us;
	uint16_t qtype, qclass, response_bytes, flags, rcode, group, port;
	int16_t ede;
	uint8_t family, transport, path, name_bytes;
};
static_assert(sizeof(struct log_fixed) == LOG_FIXED_BYTES, "ABI changed");

/* A slot's first word, as shifts: the record's number, which of its slots, how many. */
#define LOG_HEAD(number, part, parts) ((uint64_t)(number) << 32 | (uint64_t)(part) << 8 | (parts))
#define LOG_HEAD_NUMBER(word) ((uint32_t)((word) >> 32))
#define LOG_HEAD_PART(word) ((uint32_t)(word) >> 8)
#define LOG_HEAD_PARTS(word) ((uint32_t)(word)&0xff)

struct log_ring {
	alignas(CACHE_LINE) _Atomic uint64_t begun; /* slots before this one may be being overwritten one lap behind */
	_Atomic uint64_t done;			    /* slots before this one are whole */
	_Atomic uint32_t number;		    /* of the next record */
	alignas(CACHE_LINE) _Atomic uint64_t slot[LOG_RING_SLOTS][LOG_SLOT_WORDS];
};
struct log_ring_header {
	uint32_t magic, version;
	uint64_t size_bytes;
	uint32_t threads, slots;
	alignas(CACHE_LINE) struct log_ring ring[];
};
