/* SPDX-License-Identifier: Apache-2.0 */
/* A ring whose other side writes what it likes: reserve, commit and pop stay inside, end, and are sound again after an attach.
 *
 * Input      the ring's first octets as they are after a format and a change; then steps of six octets: what to do, which word, a value */
#include "table/ring.h"

#include <stdlib.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CAPACITY RING_MIN_BYTES
#define RECORD_MAX (CAPACITY / 4 - 8)
#define STEP_BYTES 6u
#define STEPS_MAX 512u

/* Ends where its mapping ends: reading on is a fault. */
static struct ring_map *ring_memory(void)
{
	static uint8_t *map;
	const size_t bytes = ring_bytes(CAPACITY), whole = (bytes + 4095) / 4096 * 4096;

	if (!map) {
		map = mmap(NULL, whole + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT(map != MAP_FAILED && mprotect(map, whole, PROT_READ | PROT_WRITE) == 0);
	}
	struct ring_map *ring = (void *)(map + whole - bytes);
	memset(ring, 0, bytes);
	ASSERT(ring_format(ring, bytes, CAPACITY) == ERR_OK);
	return ring;
}

static void produce(struct ring_producer *p, uint32_t bytes, uint8_t value)
{
	uint8_t *at = ring_reserve(p, bytes);

	if (at) {
		ASSERT(bytes <= RECORD_MAX && at >= p->map_->data + 8 && at + bytes <= p->map_->data + CAPACITY &&
		       (uintptr_t)at % 8 == 0);
		memset(at, value, bytes);
	}
	if (value % 8)
		ring_commit(p);
	(void)!ring_needs_kick(p);
}

static void consume(struct ring_consumer *c, uint32_t room, unsigned most)
{
	uint8_t out[RECORD_MAX + 1];
	uint32_t bytes = 0;

	for (unsigned i = 0; i < most; i++) {
		out[room] = 0x5a;
		enum ring_result result = ring_pop(c, out, room, &bytes);
		ASSERT(out[room] == 0x5a && bytes <= RECORD_MAX);
		if (result == RING_WAIT)
			return;
	}
	(void)!ring_prepare_sleep(c);
}

/* Both sides attach afresh, and what one puts the other gets. */
static void check_sound(struct ring_map *ring)
{
	struct ring_producer p;
	struct ring_consumer c;
	uint8_t out[RECORD_MAX];
	uint32_t bytes;

	ring->magic = RING_MAGIC;
	ring->capacity = CAPACITY;
	ASSERT(ring_consumer_attach(&c, ring, ring_bytes(CAPACITY)) == ERR_OK &&
	       ring_producer_attach(&p, ring, ring_bytes(CAPACITY)) == ERR_OK);
	ASSERT(ring_discard(&c) <= CAPACITY);
	for (uint32_t n = 0; n < 20; n++) {
		uint8_t *at = ring_reserve(&p, n * 51 % RECORD_MAX);
		ASSERT(at);
		memset(at, (int)n, n * 51 % RECORD_MAX);
		ring_commit(&p);
		ASSERT(ring_pop(&c, out, sizeof out, &bytes) == RING_OK && bytes == n * 51 % RECORD_MAX &&
		       (!bytes || out[bytes - 1] == n));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_map *ring = ring_memory();
	struct ring_producer p;
	struct ring_consumer c;

	ASSERT(ring_producer_attach(&p, ring, ring_bytes(CAPACITY)) == ERR_OK);
	ASSERT(ring_consumer_attach(&c, ring, ring_bytes(CAPACITY)) == ERR_OK);
	for (unsigned step = 0; step < STEPS_MAX && size >= STEP_BYTES; step++, data += STEP_BYTES, size -= STEP_BYTES) {
		uint32_t value;
		memcpy(&value, data + 2, 4);
		switch (data[0] % 9) {
		case 0: ring->tail = value; break;
		case 1: ring->head = value; break;
		case 2: ring->tail = ring->head + value % (2 * CAPACITY); break;
		case 3: memcpy(ring->data + data[1] % (CAPACITY / 8) * 8, &value, 4); break;
		case 4:
			memcpy(ring->data + (c.head_ + data[1] * 8u) % CAPACITY / 8 * 8, &value, 4);
			break; /* where lengths are looked for */
		case 5: produce(&p, value % (RECORD_MAX + 9), data[1]); break;
		case 6: consume(&c, value % (RECORD_MAX + 1), data[1] % 8 + 1); break;
		case 7: (void)!ring_producer_attach(&p, ring, ring_bytes(CAPACITY)); break;
		default: (void)!ring_consumer_attach(&c, ring, ring_bytes(CAPACITY)); break;
		}
	}
	consume(&c, RECORD_MAX, 600); /* fewer than that lie in it */
	check_sound(ring);
	return 0;
}
