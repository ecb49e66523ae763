/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/reload.h"
#include "base/clock.h"
#include "base/log.h"
#include "dns/name.h"
#include "slowpath/zone/reload_faults.h"
#include "slowpath/zone/segment_write.h"
#include "slowpath/zone/zone_load.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CLASS_IN 1
#define PROGRESS_FIRST_NS 400000000ull /* when `progress` is first called; each further time after twice as long */
#define PROGRESS_MAX_NS 10000000000ull

struct batch { /* what one finished segment brings; from a worker to the caller */
	struct batch *next;
	struct segment *segment; /* NULL: it could not be made, `why` says it */
	int fd;
	enum err err;
	const char *why;
	uint32_t count, capacity;
	struct zone_item **item; /* in the order of the segment's images */
};

struct outcome { /* a zone that was looked at but brings no image */
	struct outcome *next;
	struct zone_item *item;
	char *lines; /* owned; NULL: unchanged */
	uint32_t errors;
};

struct job {
	const struct reload_request *request;
	struct zone_store *store;
	struct zone_item **item; /* the zones to look at; NULL: all of the store */
	uint32_t item_count;
	_Atomic uint32_t next;
	_Atomic uint32_t flush_round; /* grows: workers hand over what they have */
	pthread_mutex_t lock;	      /* the rest */
	pthread_cond_t changed;	      /* batches, running: the caller waits */
	pthread_cond_t text_freed;    /* workers wait */
	struct batch *batches;
	struct outcome *outcomes; /* a list through `outcome` */
	struct outcome *outcome;  /* owned, one per zone to look at */
	unsigned running;
	uint32_t next_segment_id;
	uint64_t text_bytes; /* being read */
	unsigned text_waiting;
	uint64_t unread;
};

struct worker {
	struct job *job;
	struct segment_write write;
	struct batch *batch; /* of the segment being written; NULL: none */
	uint32_t flush_round;
};

/* --- a worker ------------------------------------------------------------------------------------------------------- */

/* take NULL: unchanged. */
static void hand_over_outcome(struct job *job, uint32_t index, struct zone_item *item, struct reload_faults *take)
{
	struct outcome *o = &job->outcome[index];
	*o = (struct outcome){ .item = item, .lines = take ? take->lines : NULL, .errors = take ? take->errors : 0 };
	if (take)
		*take = (struct reload_faults){ 0 };
	pthread_mutex_lock(&job->lock);
	o->next = job->outcomes;
	job->outcomes = o;
	pthread_mutex_unlock(&job->lock);
}

/* Waits until this file's share of memory is free. */
static void text_budget_take(struct job *job, uint64_t bytes)
{
	pthread_mutex_lock(&job->lock);
	job->text_waiting++;
	while (job->text_bytes != 0 && job->text_bytes + bytes > RELOAD_TEXT_BYTES)
		pthread_cond_wait(&job->text_freed, &job->lock);
	job->text_waiting--;
	job->text_bytes += bytes;
	pthread_mutex_unlock(&job->lock);
}

static void text_budget_give(struct job *job, uint64_t bytes)
{
	pthread_mutex_lock(&job->lock);
	job->text_bytes -= bytes;
	if (job->text_waiting)
		pthread_cond_broadcast(&job->text_freed);
	pthread_mutex_unlock(&job->lock);
}

/* Seals the worker's segment and hands it to the caller with the zones in it. */
static void finish_segment(struct worker *w)
{
	struct job *job = w->job;
	struct batch *b = w->batch;
	if (!b)
		return;
	pthread_mutex_lock(&job->lock);
	uint32_t id = job->next_segment_id++;
	pthread_mutex_unlock(&job->lock);
	b->err = segment_write_finish(&w->write, id, &b->fd, &b->segment, &b->why);
	w->batch = NULL;
	pthread_mutex_lock(&job->lock);
	b->next = job->batches;
	job->batches = b;
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
}

static enum err batch_add(struct worker *w, struct zone_item *item)
{
	if (!w->batch && !(w->batch = calloc(1, sizeof(*w->batch))))
		return ERR_NOMEM;
	struct batch *b = w->batch;
	if (b->count == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 4;
		struct zone_item **grown = realloc(b->item, capacity * sizeof(struct zone_item *));
		if (!grown)
			return ERR_NOMEM;
		b->item = grown;
		b->capacity = capacity;
	}
	b->item[b->count++] = item;
	return ERR_OK;
}

/* Compiles into the worker's segment, or into a new one if it has no room. */
static enum err compile(struct worker *w, struct zone_item *item, struct zone_load *l)
{
	size_t image_bytes = zone_load_image_bytes(l), note_bytes = zone_load_note_bytes(l);
	if (!segment_write_has_room(&w->write, image_bytes, note_bytes))
		finish_segment(w);
	void *image, *note;
	uint64_t offset;
	enum err err = segment_write_reserve(&w->write, image_bytes, note_bytes, &image, &note);
	if (err == ERR_OK)
		err = zone_load_finish(l, image, note);
	if (err == ERR_OK)
		err = batch_add(w, item);
	if (err == ERR_OK)
		segment_write_commit(&w->write, image_bytes, note_bytes, &offset);
	return err;
}

static void load(struct worker *w, uint32_t index, struct zone_item *item)
{
	struct job *job = w->job;
	struct reload_faults faults = { 0 };
	struct zone_load_request request = { .name = item->name,
					     .file = item->file,
					     .class_ = CLASS_IN,
					     .max_bytes = job->request->max_zone_bytes,
					     .stop = job->request->stop,
					     .report = reload_faults_take,
					     .user = &faults };
	struct zone_stamp stamp;
	uint64_t bytes = zone_stamp_read(&stamp, item->file) == ERR_OK ? stamp.size_bytes : 0;
	text_budget_take(job, bytes);
	struct zone_load *l;
	enum err err = zone_load_begin(&l, &request);
	if (err == ERR_OK) {
		err = compile(w, item, l);
		zone_load_destroy(l);
		if (err != ERR_OK)
			reload_faults_take(&faults, ZONE_ERROR, (struct master_place){ .file = item->file }, err_text(err));
	}
	text_budget_give(job, bytes);
	if (err != ERR_OK)
		hand_over_outcome(job, index, item, &faults);
	reload_faults_fini(&faults);
}

static bool is_unchanged(const struct zone_item *item)
{
	return item->note && strcmp(segment_note_source_path(segment_note_source_next(item->note, NULL)), item->file) == 0 &&
	       segment_note_is_unchanged(item->note);
}

static bool is_stopped(const struct job *job)
{
	return job->request->stop && atomic_load_explicit(job->request->stop, memory_order_relaxed);
}

static void *work(void *user)
{
	struct worker w = { .job = user };
	struct job *job = user;
	uint64_t unread = 0;
	segment_write_init(&w.write);
	for (;;) {
		uint32_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
		if (i >= job->item_count)
			break;
		struct zone_item *item = job->item ? job->item[i] : zone_store_item(job->store, i);
		if (is_stopped(job))
			unread++;
		else if (!job->request->is_forced && is_unchanged(item))
			hand_over_outcome(job, i, item, NULL);
		else
			load(&w, i, item);
		uint32_t round = atomic_load_explicit(&job->flush_round, memory_order_relaxed);
		if (round != w.flush_round) {
			w.flush_round = round;
			finish_segment(&w);
		}
	}
	finish_segment(&w);
	segment_write_fini(&w.write);
	pthread_mutex_lock(&job->lock);
	job->unread += unread;
	job->running--;
	pthread_cond_broadcast(&job->changed);
	pthread_mutex_unlock(&job->lock);
	return NULL;
}

/* --- the calling thread --------------------------------------------------------------------------------------------- */

static void log_loaded(const struct zone_item *item)
{
	char name[NAME_TEXT_MAX_BYTES];
	name_to_text(name, item->name);
	log_write(M_ZONE_LOADED, "%s: serial %u, %llu records, from %s", name, item->image->serial,
		  (unsigned long long)item->image->rr_count, item->file);
}

static void fail_item(struct reload_result *result, struct zone_item *item, char *take_lines, uint32_t errors)
{
	char name[NAME_TEXT_MAX_BYTES];
	name_to_text(name, item->name);
	result->failed++;
	if (item->is_unchecked)
		zone_item_unload(item); /* an image of another content than the file's, and never served since the start */
	log_write(M_ZONE_REFUSED, "%s: %u error%s, %s: %.*s", name, errors, errors == 1 ? "" : "s",
		  item->segment ? "the version before stays" : "not served", (int)strcspn(take_lines ? take_lines : "", "\n"),
		  take_lines ? take_lines : "");
	if (result->fault_count < RELOAD_FAULTS) {
		struct reload_fault *f = &result->fault[result->fault_count++];
		*f = (struct reload_fault){ .lines = take_lines ? strdup(take_lines) : NULL, .errors = errors };
		memcpy(f->zone, item->name, item->name_bytes);
	}
	zone_item_fail(item, take_lines, errors);
}

static void commit_batch(struct zone_store *store, struct batch *b, struct reload_result *result)
{
	struct store_segment *segment = NULL;
	struct segment_notes_reader notes;
	if (b->err == ERR_OK) {
		b->why = "too many segments";
		b->err = zone_store_add_segment(store, b->segment, b->fd, &segment);
		if (b->err != ERR_OK) {
			segment_put(b->segment);
			close(b->fd);
		}
	}
	if (b->err != ERR_OK) {
		for (uint32_t i = 0; i < b->count; i++)
			fail_item(result, b->item[i], strdup(b->why), 1);
		return;
	}
	size_t notes_bytes;
	const void *notes_at = segment_notes(b->segment, &notes_bytes);
	ASSERT(segment_images(b->segment) == b->count && segment_notes_open(&notes, notes_at, notes_bytes, b->count));
	for (uint32_t i = 0; i < b->count; i++) {
		uint64_t offset;
		const struct zone_image *image = segment_image(b->segment, i, &offset);
		zone_item_serve(b->item[i], segment, image, offset, segment_notes_next(&notes));
		zone_item_clear_fault(b->item[i]);
		if (result->loaded + i < LOG_BURST) /* of many these are enough; the line at the end has the number */
			log_loaded(b->item[i]);
	}
	result->loaded += b->count;
}

/* Takes what the workers handed over. True if there is something new to serve. */
static bool commit(struct job *job, struct reload_result *result)
{
	pthread_mutex_lock(&job->lock);
	struct batch *b = job->batches;
	struct outcome *o = job->outcomes;
	job->batches = NULL;
	job->outcomes = NULL;
	pthread_mutex_unlock(&job->lock);
	bool is_new = b;
	zone_store_lock(job->store);
	while (b) {
		struct batch *done = b;
		commit_batch(job->store, b, result);
		b = b->next;
		free(done->item);
		free(done);
	}
	for (; o; o = o->next) {
		if (o->errors) {
			fail_item(result, o->item, o->lines, o->errors);
		} else {
			is_new |= o->item->is_unchecked;
			zone_item_note_checked(o->item);
			zone_item_clear_fault(o->item);
			result->unchanged++;
		}
	}
	zone_store_unlock(job->store);
	return is_new;
}

/* Until the workers are done, or it is time for `progress`; true when they are done. */
static bool wait_for_workers(struct job *job, uint64_t until_ns)
{
	struct timespec until = { (time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000) };
	pthread_mutex_lock(&job->lock);
	int r = 0;
	while (job->running && r != ETIMEDOUT)
		r = until_ns ? pthread_cond_timedwait(&job->changed, &job->lock, &until)
			     : pthread_cond_wait(&job->changed, &job->lock);
	bool is_done = job->running == 0;
	pthread_mutex_unlock(&job->lock);
	return is_done;
}

static void run_workers(struct job *job, struct reload_result *result)
{
	unsigned wanted = (unsigned)MIN((uint64_t)MAX(job->request->threads, 1u), job->item_count);
	pthread_t thread[64];
	unsigned count = 0;
	job->running = wanted = MIN(wanted, (unsigned)ARRAY_LEN(thread));
	bool is_worth_it = wanted > 1 || job->request->progress;
	while (count < wanted && is_worth_it && pthread_create(&thread[count], NULL, work, job) == 0)
		count++;
	pthread_mutex_lock(&job->lock);
	job->running -= wanted - count;
	bool is_alone = job->running == 0;
	job->running += is_alone;
	pthread_mutex_unlock(&job->lock);
	if (is_alone)
		work(job); /* one zone, one thread, or none to be had */
	uint64_t wait_ns = PROGRESS_FIRST_NS;
	while (!wait_for_workers(job, job->request->progress ? clock_mono_ns() + wait_ns : 0)) {
		job->request->progress(job->request->user, commit(job, result));
		wait_ns = MIN(wait_ns * 2, PROGRESS_MAX_NS);
		/* What is in the making now comes with the next turn. */
		atomic_fetch_add_explicit(&job->flush_round, 1, memory_order_relaxed);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	(void)commit(job, result);
}

static void job_init(struct job *job, struct zone_store *store, const struct reload_request *request)
{
	pthread_condattr_t monotonic;
	*job = (struct job){ .request = request, .store = store, .next_segment_id = *request->next_segment_id };
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->changed, &monotonic);
	pthread_cond_init(&job->text_freed, NULL);
	pthread_condattr_destroy(&monotonic);
}

enum err reload_run(struct zone_store *store, const struct reload_request *request, struct reload_result *result)
{
	struct job job;
	struct zone_item *one = NULL;
	uint64_t began_ns = clock_mono_ns();
	*result = (struct reload_result){ 0 };
	if (request->zone && !(one = zone_store_find(store, request->zone)))
		return ERR_NOTFOUND;
	job_init(&job, store, request);
	job.item = one ? &one : NULL;
	job.item_count = one ? 1 : zone_store_zones(store);
	job.outcome = calloc((size_t)job.item_count + 1, sizeof(*job.outcome));
	enum err err = job.outcome ? ERR_OK : ERR_NOMEM;
	if (err == ERR_OK && job.item_count)
		run_workers(&job, result);
	free(job.outcome);
	*request->next_segment_id = job.next_segment_id;
	pthread_cond_destroy(&job.text_freed);
	pthread_cond_destroy(&job.changed);
	pthread_mutex_destroy(&job.lock);
	result->unread = job.unread;
	result->duration_ns = clock_mono_ns() - began_ns;
	return err;
}

void reload_result_fini(struct reload_result *result)
{
	for (unsigned i = 0; i < result->fault_count; i++)
		free(result->fault[i].lines);
	result->fault_count = 0;
}
