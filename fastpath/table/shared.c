/* SPDX-License-Identifier: Apache-2.0 */
#include "table/shared.h"

#include <unistd.h>

void shared_init(struct shared *s) { *s = (struct shared){ .cache_fd = -1, .marks_fd = -1, .rings_fd = -1, .log_fd = -1 }; }

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void shared_fini(struct shared *s)
{
	if (s->cache)
		cache_reader_detach(s->cache);
	ring_set_detach(&s->rings);
	if (s->log)
		log_ring_detach(s->log);
	for (unsigned i = 0; i < s->worker_wake_count; i++)
		close_fd(&s->worker_wake[i]);
	for (unsigned i = 0; i < s->thread_wake_count; i++)
		close_fd(&s->thread_wake[i]);
	close_fd(&s->cache_fd);
	close_fd(&s->marks_fd);
	close_fd(&s->rings_fd);
	close_fd(&s->log_fd);
	shared_init(s);
}

static enum err take_fd(int *place, int *fd)
{
	if (*place >= 0)
		return ERR_MALFORMED;
	*place = *fd;
	*fd = -1;
	return ERR_OK;
}

static enum err take_wake(struct shared *s, const struct link_msg *m, int *fd)
{
	bool is_thread = m->a == LINK_WAKE_THREAD;
	unsigned *count = is_thread ? &s->thread_wake_count : &s->worker_wake_count;
	unsigned max = is_thread ? RING_SET_MAX_THREADS : RING_SET_MAX_WORKERS;

	if (m->a > LINK_WAKE_THREAD || m->b != *count || *count == max)
		return ERR_MALFORMED;
	(is_thread ? s->thread_wake : s->worker_wake)[(*count)++] = *fd;
	*fd = -1;
	return ERR_OK;
}

enum err shared_take(struct shared *s, const struct link_msg *m, int *fd)
{
	enum err err;

	switch (m->type) {
	case LINK_CACHE: return take_fd(&s->cache_fd, fd);
	case LINK_MARKS:
		err = take_fd(&s->marks_fd, fd);
		if (err == ERR_OK)
			s->first_marks = m->a;
		return err;
	case LINK_RINGS: return take_fd(&s->rings_fd, fd);
	case LINK_LOG: return take_fd(&s->log_fd, fd);
	case LINK_WAKE: return take_wake(s, m, fd);
	default: return ERR_NOTFOUND;
	}
}

static enum err attach_rings(struct shared *s)
{
	enum err err = ring_set_attach(&s->rings, s->rings_fd);

	if (err == ERR_OK && (s->rings.threads != s->thread_wake_count || s->rings.workers != s->worker_wake_count)) {
		ring_set_detach(&s->rings);
		err = ERR_CORRUPT;
	}
	return err;
}

enum err shared_attach(struct shared *s, const char **why)
{
	enum err err = ERR_OK, one;

	if (s->log_fd >= 0 && (one = log_ring_attach(&s->log, s->log_fd, true)) != ERR_OK) {
		err = one;
		*why = "the log rings can't be used";
	}
	if (s->rings_fd >= 0 && (one = attach_rings(s)) != ERR_OK) {
		err = one;
		*why = "the rings can't be used";
	}
	if (s->cache_fd >= 0 && (one = cache_reader_attach(&s->cache, s->cache_fd, s->marks_fd)) != ERR_OK) {
		err = one;
		*why = "the cache can't be used";
	}
	return err;
}
