/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/loader.h"
#include "base/clock.h"
#include "base/log.h"
#include "slowpath/zone/repack.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define LIVE_LOOK_MS 100 /* between two looks at `stop` */

struct wish {
	struct wish *next;
	const uint8_t *zone;
	bool is_forced, is_done;
	struct loader_reply *reply;
};

struct loader {
	struct loader_config config;
	pthread_t thread;
	_Atomic bool stop;
	_Atomic uint64_t generation;
	pthread_mutex_t lock; /* the rest */
	pthread_cond_t changed;
	struct wish *first, **last; /* on their askers' stacks */
	bool wants_reload, is_busy;
	_Atomic bool is_wanted; /* written under the lock: somebody waits, or `stop`; housekeeping gives up what it is at */
	/* the loader thread's own */
	uint64_t began_ns;
	bool is_started; /* config.started was called */
};

static bool is_stopped(const struct loader *l) { return atomic_load_explicit(&l->stop, memory_order_relaxed); }

/* --- publication ---------------------------------------------------------------------------------------------------- */

static void tell_started(struct loader *l, const char *why)
{
	if (!l->is_started)
		l->config.started(l->config.user, why);
	l->is_started = true;
}

/* Segments of which nothing is served: not named by the map that was just published. */
static void sweep(struct loader *l)
{
	struct zone_store *store = l->config.store;
	for (size_t i = 0; i < zone_store_segments(store);) {
		struct store_segment *s = zone_store_segment(store, i);
		if (s->live_zones) {
			i++;
			continue;
		}
		zone_image_files_forget(l->config.files, s);
		/* A link that fails ends the process elsewhere. */
		if (s->is_published && publisher_drop(l->config.publisher, s->id) != ERR_OK)
			return;
		zone_store_lock(store);
		zone_store_drop_segment(store, i);
		zone_store_unlock(store);
	}
	/* A link that fails ends the process elsewhere. */
	(void)!publisher_drop_orphans(l->config.publisher);
}

static enum err publish(struct loader *l, const char **why)
{
	uint64_t generation;
	uint64_t began_ns = clock_mono_ns();
	bool is_reshaped = zone_store_is_reshaped(l->config.store);
	enum err err = publisher_publish(l->config.publisher, l->config.store, &generation, why);
	if (err != ERR_OK) {
		log_write(M_ZONE_PUBLISH_FAILED, "%s: %s", *why, err_text(err));
		return err;
	}
	atomic_store(&l->generation, generation);
	if (is_reshaped && l->config.reshaped)
		l->config.reshaped(l->config.user);
	log_write(M_ZONE_PUBLISHED, "generation %" PRIu64 ": %u zones, %zu segments, in %" PRIu64 " us", generation,
		  zone_store_zones(l->config.store), zone_store_segments(l->config.store), (clock_mono_ns() - began_ns) / 1000);
	sweep(l);
	return ERR_OK;
}

/* In the first load: zones that are ready are served before the last one is; after a while, questions for the others are better
 * answered SERVFAIL than not at all. */
static void progress(void *user, bool is_new)
{
	struct loader *l = user;
	const char *why;
	bool is_late = !l->is_started && clock_mono_ns() - l->began_ns > LOADER_PATIENCE_NS;
	if ((is_new || is_late) && publish(l, &why) == ERR_OK)
		tell_started(l, NULL);
}

/* --- reloads -------------------------------------------------------------------------------------------------------- */

static void log_result(const struct reload_result *r)
{
	log_write(M_ZONE_RELOAD_DONE,
		  "%" PRIu64 " zones loaded, %" PRIu64 " unchanged, %" PRIu64 " refused, in %" PRIu64 ".%03u s", r->loaded,
		  r->unchanged, r->failed, r->duration_ns / 1000000000, (unsigned)(r->duration_ns / 1000000 % 1000));
}

static enum err load(struct loader *l, const uint8_t *zone, bool is_forced, bool is_first, struct loader_reply *reply)
{
	struct reload_request request = { .zone = zone,
					  .is_forced = is_forced,
					  .threads = l->config.threads,
					  .max_zone_bytes = l->config.max_zone_bytes,
					  .stop = &l->stop,
					  .next_segment_id = publisher_segment_id(l->config.publisher),
					  .progress = is_first && !l->config.is_adopted ? progress : NULL,
					  .user = l };
	zone_image_files_retry(l->config.files, l->config.store);
	uint32_t served = publisher_zones(l->config.publisher);
	reply->why = zone ? "no such zone" : "out of memory";
	enum err err = reload_run(l->config.store, &request, &reply->result);
	if (err == ERR_OK && is_stopped(l)) {
		/* Some zones were not looked at, and none is published. */
		reload_result_fini(&reply->result);
		return ERR_CLOSED;
	}
	if (err != ERR_OK)
		return err;
	log_result(&reply->result);
	bool is_changed = reply->result.loaded > 0 || served != zone_store_zones(l->config.store);
	if (is_changed || (is_first && (!l->config.is_adopted || reply->result.failed)))
		err = publish(l, &reply->why);
	return err;
}

static void reload(struct loader *l, const uint8_t *zone, bool is_forced, struct loader_reply *reply)
{
	*reply = (struct loader_reply){ 0 };
	reply->err = load(l, zone, is_forced, false, reply);
	reply->generation = atomic_load(&l->generation);
	uint64_t until_ns = clock_mono_ns() + LOADER_LIVE_TIMEOUT_MS * 1000000ull;
	while (reply->err == ERR_OK && !reply->is_live && !is_stopped(l) && clock_mono_ns() < until_ns)
		reply->is_live = publisher_wait_live(l->config.publisher, reply->generation, LIVE_LOOK_MS);
	if (reply->err == ERR_OK && !reply->is_live && !is_stopped(l))
		log_write(M_ZONE_LIVE_LATE, "generation %" PRIu64 " is not live everywhere after %u ms", reply->generation,
			  LOADER_LIVE_TIMEOUT_MS);
}

/* What is served does not wait for this. */
static enum err fill(struct loader *l, const char **why)
{
	enum err err = l->config.fill ? l->config.fill(l->config.user, why) : ERR_OK;
	if (err != ERR_OK)
		return err;
	*why = "there is not enough memory for the list of segments";
	return publisher_adopt_store(l->config.publisher, l->config.store);
}

static void first_load(struct loader *l)
{
	struct loader_reply reply = { 0 };
	const char *why = "";
	if (fill(l, &why) != ERR_OK) {
		tell_started(l, why);
		return;
	}
	if (l->config.is_adopted) {
		tell_started(l, NULL);
		zone_image_files_match(l->config.files, l->config.store);
	} else {
		(void)zone_image_files_read(l->config.files, l->config.store, publisher_segment_id(l->config.publisher));
	}
	enum err err = load(l, NULL, false, true, &reply);
	reload_result_fini(&reply.result);
	if (!is_stopped(l))
		tell_started(l, err != ERR_OK ? reply.why : NULL);
}

static void keep_house(struct loader *l)
{
	const char *why;
	if (repack_is_due(l->config.store) && repack_run(l->config.store, publisher_segment_id(l->config.publisher)) == ERR_OK &&
	    publish(l, &why) != ERR_OK)
		return;
	zone_image_files_write(l->config.files, l->config.store, &l->is_wanted);
}

/* --- the thread ----------------------------------------------------------------------------------------------------- */

static void finish(struct loader *l, struct wish *w)
{
	pthread_mutex_lock(&l->lock);
	w->is_done = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

/* What somebody waits for goes before what nobody waits for. False: stop. */
static bool next(struct loader *l, struct wish **out)
{
	pthread_mutex_lock(&l->lock);
	l->is_busy = false;
	while (!is_stopped(l) && !l->first && !l->wants_reload)
		pthread_cond_wait(&l->changed, &l->lock);
	l->is_busy = true;
	*out = l->first;
	if (l->first && !(l->first = l->first->next))
		l->last = &l->first;
	if (!*out)
		l->wants_reload = false;
	atomic_store(&l->is_wanted, l->first || l->wants_reload || is_stopped(l));
	bool go_on = !is_stopped(l);
	pthread_mutex_unlock(&l->lock);
	return go_on;
}

static void *run(void *user)
{
	struct loader *l = user;
	struct wish *w;
	first_load(l);
	for (;;) {
		pthread_mutex_lock(&l->lock);
		bool is_idle = !l->first && !l->wants_reload;
		pthread_mutex_unlock(&l->lock);
		if (is_idle && !is_stopped(l))
			keep_house(l);
		bool go_on = next(l, &w);
		if (go_on && w) {
			reload(l, w->zone, w->is_forced, w->reply);
		} else if (go_on) {
			struct loader_reply nobodys;
			reload(l, NULL, false, &nobodys);
			reload_result_fini(&nobodys.result);
		} else if (w) {
			w->reply->err = ERR_CLOSED;
		}
		if (w)
			finish(l, w);
		else if (!go_on)
			return NULL;
	}
}

enum err loader_start(struct loader **out, const struct loader_config *config)
{
	struct loader *l = calloc(1, sizeof(*l));
	if (!l)
		return ERR_NOMEM;
	l->config = *config;
	l->last = &l->first;
	l->is_busy = true;
	l->began_ns = clock_mono_ns();
	atomic_init(&l->generation, publisher_generation(config->publisher));
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	if (pthread_create(&l->thread, NULL, run, l) != 0) {
		pthread_cond_destroy(&l->changed);
		pthread_mutex_destroy(&l->lock);
		free(l);
		return ERR_NOMEM;
	}
	*out = l;
	return ERR_OK;
}

void loader_stop(struct loader *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->stop, true);
	atomic_store(&l->is_wanted, true);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
}

void loader_destroy(struct loader *l)
{
	if (!l)
		return;
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

enum err loader_reload(struct loader *l, const uint8_t *zone, bool is_forced, struct loader_reply *reply)
{
	struct wish w = { .zone = zone, .is_forced = is_forced, .reply = reply };
	*reply = (struct loader_reply){ 0 };
	pthread_mutex_lock(&l->lock);
	if (is_stopped(l)) {
		pthread_mutex_unlock(&l->lock);
		return ERR_CLOSED;
	}
	/* It is off the list before this function returns. */
	*l->last = &w;
	/* cppcheck-suppress autoVariables */
	l->last = &w.next;
	atomic_store(&l->is_wanted, true);
	pthread_cond_broadcast(&l->changed);
	while (!w.is_done)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return reply->err == ERR_CLOSED ? ERR_CLOSED : ERR_OK;
}

void loader_wish_reload(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	l->wants_reload = true;
	atomic_store(&l->is_wanted, true);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

bool loader_is_busy(struct loader *l)
{
	pthread_mutex_lock(&l->lock);
	bool is_busy = l->is_busy;
	pthread_mutex_unlock(&l->lock);
	return is_busy;
}

uint64_t loader_generation(struct loader *l) { return atomic_load(&l->generation); }
