/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/listen_thread.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

enum err listen_thread_init(struct listen_thread *t, const struct listen_service *service, struct counter_block *counters)
{
	t->resolve = service->resolve;
	t->counters = counters;
	t->answer = (struct answer_thread){ .counters = counters, .marks = service->marks };
	if (service->log) {
		log_writer_init(&t->log_, service->log, service->log_index);
		t->answer.log = &t->log_;
	}
	t->answer.scratch = calloc(CACHE_SCRATCH_WORDS, sizeof(uint64_t));
	return t->answer.scratch ? ERR_OK : ERR_NOMEM;
}

void listen_thread_fini(struct listen_thread *t)
{
	free(t->answer.scratch);
	t->answer.scratch = NULL;
}

static void *main_of_thread(void *argument)
{
	struct listen_thread *t = argument;
	snapshot_thread_register();
	listen_thread_beat(t);
	atomic_store_explicit(&t->counters->role, t->role_, memory_order_release);
	t->run_(t);
	atomic_store_explicit(&t->counters->heartbeat_ns, 0, memory_order_relaxed);
	snapshot_thread_unregister();
	return NULL;
}

static enum err prepare_attributes(pthread_attr_t *attributes, int cpu)
{
	if (pthread_attr_init(attributes))
		return ERR_NOMEM;
	if (cpu < 0)
		return ERR_OK;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	if (pthread_attr_setaffinity_np(attributes, sizeof set, &set) == 0)
		return ERR_OK;
	pthread_attr_destroy(attributes);
	return ERR_NOMEM;
}

enum err listen_thread_start(struct listen_thread *t, const char *name, int cpu, enum counter_role role,
			     struct counter_block *counters, const struct snapshot_holder *snapshots,
			     void (*run)(struct listen_thread *))
{
	if (cpu >= CPU_SETSIZE)
		return ERR_ARGUMENT;
	t->snapshots = snapshots;
	t->counters = counters;
	t->role_ = role;
	t->cpu_ = cpu;
	t->run_ = run;
	atomic_store_explicit(&t->stop_, false, memory_order_relaxed);
	counters->cpu = cpu < 0 ? 0 : (uint32_t)cpu;
	pthread_attr_t attributes;
	enum err err = prepare_attributes(&attributes, cpu);
	if (err)
		return err;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it: signals are for the control thread */
	int failed = pthread_create(&t->id_, &attributes, main_of_thread, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (failed)
		return err_from_errno(failed);
	(void)pthread_setname_np(t->id_, name);
	return ERR_OK;
}

void listen_thread_stop(struct listen_thread *t)
{
	atomic_store_explicit(&t->stop_, true, memory_order_relaxed);
	pthread_join(t->id_, NULL);
	atomic_store_explicit(&t->counters->role, COUNTER_UNUSED, memory_order_release);
}
