/* SPDX-License-Identifier: Apache-2.0 */
/* run_shared.h: what the supervisor makes once and shares with its parts for answers that need more than zones (table/shared.h): policy and
 * log rings always; cache, marks, rings and eventfds where recursion is configured. It outlives the parts, and ends with `skua run`. */
#pragma once
#include "base/link.h"
#include "config/config.h"
#include "table/ring.h"

struct run_shared {
	bool has_recursion;
	unsigned threads, workers;    /* of the fastpath, of the slowpath */
	int policy_fd;		      /* -1, as all: not there */
	int log_fd[LINK_PART_COUNT_]; /* by enum link_part */
	int cache_fd, cache_read_fd;  /* the same memory; the second O_RDONLY */
	int marks_fd, rings_fd;
	int worker_wake[RING_SET_MAX_WORKERS], thread_wake[RING_SET_MAX_THREADS];
	uint64_t cache_bytes, marks_bytes, rings_bytes;
};

void run_shared_init(struct run_shared *s);
void run_shared_fini(struct run_shared *s);
/* threads: 0 without XDP. workers: from 1. On failure *why is a static text, and run_shared_fini is due. ERR_NOMEM, ERR_NOSPACE, ERR_IO; ERR_ARGUMENT:
 * more threads or workers than there can be. */
MUST_USE enum err run_shared_create(struct run_shared *s, const struct config *config, unsigned threads, unsigned workers,
				    const char **why);
/* Calls send for each message that the part gets, in the order of base/link.h; fd stays run_shared's. */
void run_shared_hand_over(const struct run_shared *s, enum link_part part,
			  void (*send)(void *user, const struct link_msg *message, int fd), void *user);

/* Octets for cache and marks together: what the configuration says, or a quarter of the machine's memory, at most 4 GiB. */
uint64_t run_shared_memory(const struct config *config, uint64_t machine_bytes);
/* Receive queues of an interface, as /sys/class/net (sys) shows them; 0: none, or no such interface. */
unsigned run_shared_queues(const char *sys, const char *interface);
