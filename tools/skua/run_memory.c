/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_memory.h"

#include <sys/types.h>

/* jemalloc's, which only release builds have. */
extern int mallctl(const char *name, void *old, size_t *old_bytes, void *new_value, size_t new_bytes) __attribute__((weak));

void run_memory_settle(void)
{
	ssize_t decay_ms = 0;
	if (mallctl)
		(void)mallctl("arena.0.dirty_decay_ms", NULL, NULL, &decay_ms, sizeof decay_ms);
}
