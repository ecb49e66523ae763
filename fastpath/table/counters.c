/* SPDX-License-Identifier: Apache-2.0 */
#include "table/counters.h"
#include "table/shm.h"

#include <unistd.h>

#define COUNTERS_BYTES (sizeof(struct counters) + (size_t)COUNTER_MAX_THREADS * sizeof(struct counter_block))

static const char *const names[C_COUNT_] = {
#define X(e, name, help) [C_##e] = name,
	COUNTERS(X)
#undef X
};
static const char *const helps[C_COUNT_] = {
#define X(e, name, help) [C_##e] = help,
	COUNTERS(X)
#undef X
};

const char *counter_name(enum counter c) { return (unsigned)c < C_COUNT_ ? names[c] : "unknown"; }
const char *counter_help(enum counter c) { return (unsigned)c < C_COUNT_ ? helps[c] : ""; }

enum err counters_create(int *fd, const char *label)
{
	int made;
	enum err err = shm_create(&made, label, COUNTERS_BYTES);
	if (err != ERR_OK)
		return err;
	void *map;
	size_t bytes;
	err = shm_map_writable(&map, &bytes, made);
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	*(struct counters *)map = (struct counters){ .magic = COUNTERS_MAGIC,
						     .version = COUNTERS_VERSION,
						     .size_bytes = COUNTERS_BYTES,
						     .block_bytes = sizeof(struct counter_block),
						     .block_count = COUNTER_MAX_THREADS,
						     .counter_count = C_COUNT_ };
	shm_unmap(map, bytes);
	*fd = made;
	return ERR_OK;
}

static bool is_ours(const struct counters *c, size_t bytes)
{
	struct counters copy;
	if (bytes != COUNTERS_BYTES)
		return false;
	memcpy(&copy, c, sizeof(copy));
	return copy.magic == COUNTERS_MAGIC && copy.version == COUNTERS_VERSION && copy.size_bytes == COUNTERS_BYTES &&
	       copy.block_bytes == sizeof(struct counter_block) && copy.block_count == COUNTER_MAX_THREADS &&
	       copy.counter_count == C_COUNT_;
}

enum err counters_attach(struct counters **out, int fd, bool writable)
{
	if (!shm_is_sealed(fd, false))
		return ERR_DENIED;
	const void *map;
	void *map_rw;
	size_t bytes;
	enum err err;
	if (writable) {
		err = shm_map_writable(&map_rw, &bytes, fd);
		map = map_rw;
	} else {
		err = shm_map(&map, &bytes, fd);
	}
	if (err != ERR_OK)
		return err;
	if (!is_ours(map, bytes)) {
		shm_unmap(map, bytes);
		return ERR_CORRUPT;
	}
	*out = (struct counters *)map;
	return ERR_OK;
}

void counters_detach(struct counters *c) { shm_unmap(c, COUNTERS_BYTES); }

void counters_reset(struct counters *c, uint32_t pid)
{
	for (unsigned i = 0; i < COUNTER_MAX_THREADS; i++) {
		struct counter_block *b = &c->block[i];
		atomic_store_explicit(&b->role, COUNTER_UNUSED, memory_order_relaxed);
		atomic_store_explicit(&b->heartbeat_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&b->generation, 0, memory_order_relaxed);
		b->cpu = b->ifindex = b->queue = 0;
		for (unsigned n = 0; n < C_COUNT_; n++)
			atomic_store_explicit(&b->value[n], 0, memory_order_relaxed);
	}
	c->pid = pid;
}

uint64_t counters_sum(const struct counters *c, enum counter_role role, enum counter which)
{
	uint64_t sum = 0;
	/* The constant, not block_count: the mapping's size was checked against it, and the field is the writer's to spoil. */
	for (unsigned i = 0; i < COUNTER_MAX_THREADS; i++) {
		const struct counter_block *b = &c->block[i];
		uint32_t of = atomic_load_explicit((_Atomic uint32_t *)&b->role, memory_order_relaxed);
		if (of != COUNTER_UNUSED && (role == COUNTER_UNUSED || of == role))
			sum += counter_get(b, which);
	}
	return sum;
}
