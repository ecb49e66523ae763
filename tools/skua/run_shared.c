/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_shared.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/cache.h"
#include "table/log_ring.h"
#include "table/policy.h"

#define AUTO_MAX_BYTES (4ull << 30)
#define GROUP_OTHERS 0u /* everybody whom recursion.allow does not name */
#define GROUP_ALLOWED 1u
#define PARTITION 0u /* one set of upstreams for all: one partition */

/* Threads of the slowpath, for each worker: UDP, TCP, resolver; in the order of the counter blocks the first two (listen/listen.h). */
#define SLOWPATH_THREADS 3u

/* A question is about 120 octets, an answer up to 4 KiB. So many pairs share this much, but none gets less than it needs. */
#define RINGS_BUDGET_BYTES (96ull << 20)
#define QUESTIONS_MIN_BYTES (16u << 10)
#define QUESTIONS_MAX_BYTES (128u << 10)
#define ANSWERS_PER_QUESTIONS 2u

/* A mark is an octet for each slot of the cache, and a slot goes with at least so many octets: 8 of its own, 64 of the logs. */
#define CACHE_BYTES_PER_MARK 72u

void run_shared_init(struct run_shared *s)
{
	memset(s, 0, sizeof *s);
	s->policy_fd = s->cache_fd = s->cache_read_fd = s->marks_fd = s->rings_fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(s->log_fd); i++)
		s->log_fd[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(s->worker_wake); i++)
		s->worker_wake[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(s->thread_wake); i++)
		s->thread_wake[i] = -1;
}

static void close_all(int *fd, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

void run_shared_fini(struct run_shared *s)
{
	close_all((int[]){ s->policy_fd, s->cache_fd, s->cache_read_fd, s->marks_fd, s->rings_fd }, 5);
	close_all(s->log_fd, ARRAY_LEN(s->log_fd));
	close_all(s->worker_wake, ARRAY_LEN(s->worker_wake));
	close_all(s->thread_wake, ARRAY_LEN(s->thread_wake));
	run_shared_init(s);
}

uint64_t run_shared_memory(const struct config *config, uint64_t machine_bytes)
{
	return config->cache.memory ? config->cache.memory : MAX(MIN(machine_bytes / 4, AUTO_MAX_BYTES), CACHE_MIN_BYTES);
}

unsigned run_shared_queues(const char *sys, const char *interface)
{
	char path[PATH_MAX];
	unsigned queues = 0;

	if ((size_t)snprintf(path, sizeof path, "%s/%s/queues", sys, interface) >= sizeof path)
		return 0;
	DIR *folder = opendir(path);
	if (!folder)
		return 0;
	for (const struct dirent *e; (e = readdir(folder));)
		queues += strncmp(e->d_name, "rx-", 3) == 0;
	closedir(folder);
	return queues;
}

/* --- making ---------------------------------------------------------------------------------------------------------- */

static enum err create_policy(struct run_shared *s, const struct config *config)
{
	const struct policy_group groups[] = {
		[GROUP_OTHERS] = { .partition = PARTITION },
		[GROUP_ALLOWED] = { .flags = s->has_recursion ? POLICY_F_RECURSION : 0, .partition = PARTITION },
	};
	size_t count = config->recursion.allow_count, bad;
	struct policy_prefix *prefixes = malloc((count + 1) * sizeof *prefixes);

	if (!prefixes)
		return ERR_NOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct config_prefix *p = &config->recursion.allow[i];
		prefixes[i] = (struct policy_prefix){ .family = p->family, .bits = p->bits, .group = GROUP_ALLOWED };
		memcpy(prefixes[i].address, p->address, sizeof prefixes[i].address);
	}
	enum err err = policy_create(&s->policy_fd, groups, ARRAY_LEN(groups), prefixes, count, &bad);
	free(prefixes);
	return err;
}

static uint64_t size_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static enum err create_cache(struct run_shared *s, const struct config *config)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t machine_bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
	uint64_t memory = run_shared_memory(config, machine_bytes);
	unsigned readers = s->threads + SLOWPATH_THREADS * s->workers;
	/* Both together are what was asked for, as far as the least cache allows. */
	uint64_t cache = MAX(memory / (CACHE_BYTES_PER_MARK + readers) * CACHE_BYTES_PER_MARK, CACHE_MIN_BYTES);

	enum err err = cache_create(&s->cache_fd, cache);
	if (err == ERR_OK)
		err = cache_reopen_read_only(&s->cache_read_fd, s->cache_fd);
	if (err == ERR_OK)
		err = cache_marks_create(&s->marks_fd, s->cache_fd, readers);
	if (err == ERR_OK) {
		s->cache_bytes = size_of(s->cache_fd);
		s->marks_bytes = size_of(s->marks_fd);
	}
	return err;
}

static enum err create_rings(struct run_shared *s)
{
	uint64_t pairs = (uint64_t)s->threads * s->workers;
	uint32_t questions = QUESTIONS_MAX_BYTES;

	while (questions > QUESTIONS_MIN_BYTES && pairs * questions * (1 + ANSWERS_PER_QUESTIONS) > RINGS_BUDGET_BYTES)
		questions /= 2;
	enum err err = ring_set_create(&s->rings_fd, s->threads, s->workers, questions, questions * ANSWERS_PER_QUESTIONS);
	if (err == ERR_OK)
		s->rings_bytes = size_of(s->rings_fd);
	return err;
}

static enum err create_events(int *fd, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (fd[i] < 0)
			return err_from_errno(errno);
	}
	return ERR_OK;
}

static enum err create_for_recursion(struct run_shared *s, const struct config *config, const char **why)
{
	*why = "no memory for the answer cache";
	enum err err = create_cache(s, config);
	if (err != ERR_OK)
		return err;
	*why = "no memory for the rings between fastpath and slowpath";
	if (s->threads)
		err = create_rings(s);
	if (err != ERR_OK)
		return err;
	*why = "no eventfds";
	err = create_events(s->worker_wake, s->workers);
	return err == ERR_OK ? create_events(s->thread_wake, s->threads) : err;
}

enum err run_shared_create(struct run_shared *s, const struct config *config, unsigned threads, unsigned workers,
			   const char **why)
{
	*why = "too many threads";
	if (threads > RING_SET_MAX_THREADS || workers == 0 || workers > RING_SET_MAX_WORKERS)
		return ERR_ARGUMENT;
	s->threads = threads;
	s->workers = workers;
	s->has_recursion = config->forward_count > 0;
	*why = "no memory for the policy";
	enum err err = create_policy(s, config);
	if (err != ERR_OK)
		return err;
	*why = "no memory for the log rings";
	err = log_ring_create(&s->log_fd[LINK_PART_FASTPATH], MAX(threads, 1u), "skua-log-fastpath");
	if (err == ERR_OK)
		err = log_ring_create(&s->log_fd[LINK_PART_SLOWPATH], SLOWPATH_THREADS * workers, "skua-log-slowpath");
	return err == ERR_OK && s->has_recursion ? create_for_recursion(s, config, why) : err;
}

void run_shared_hand_over(const struct run_shared *s, enum link_part part,
			  void (*send)(void *user, const struct link_msg *message, int fd), void *user)
{
	bool is_fastpath = part == LINK_PART_FASTPATH;

	send(user, &(struct link_msg){ .type = LINK_POLICY }, s->policy_fd);
	send(user, &(struct link_msg){ .type = LINK_LOG }, s->log_fd[part]);
	if (!s->has_recursion)
		return;
	send(user, &(struct link_msg){ .type = LINK_CACHE }, is_fastpath ? s->cache_read_fd : s->cache_fd);
	send(user, &(struct link_msg){ .type = LINK_MARKS, .a = is_fastpath ? 0 : s->threads }, s->marks_fd);
	for (unsigned i = 0; i < s->workers; i++)
		send(user, &(struct link_msg){ .type = LINK_WAKE, .a = LINK_WAKE_WORKER, .b = i }, s->worker_wake[i]);
	for (unsigned i = 0; i < s->threads; i++)
		send(user, &(struct link_msg){ .type = LINK_WAKE, .a = LINK_WAKE_THREAD, .b = i }, s->thread_wake[i]);
	if (s->rings_fd >= 0)
		send(user, &(struct link_msg){ .type = LINK_RINGS }, s->rings_fd);
}
