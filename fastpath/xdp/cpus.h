/* SPDX-License-Identifier: Apache-2.0 */
/* cpus.h: which CPU serves which queue. */
#pragma once
#include "base/base.h"

#include <sched.h>

/* The CPUs that serving threads take turns on; n-th queue: cpu[n % count]. */
struct cpus {
	uint32_t count;
	int cpu[CPU_SETSIZE];
};

/* Parses a list as the kernel writes it ("0-3,8"); false if it is none. */
bool cpus_parse(cpu_set_t *out, const char *text);
/* The CPUs of a NUMA node; false if unknown (node -1). */
bool cpus_of_node(cpu_set_t *out, int node);

/* auto: at most half of the usable CPUs, from the last one down (the first ones take interrupts), those on the card's node if
 * node is not
 * NULL and has usable ones. One or two usable CPUs are all used, shared with the slowpath. Never none if usable is not empty. */
void cpus_choose(struct cpus *out, const cpu_set_t *usable, const cpu_set_t *node);
