/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h: the thread that owns the zone store: the first load, reloads one after another, publication, and in idle
 * moments repacking and image files. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/publish.h"
#include "slowpath/zone/reload.h"
#include "slowpath/zone/zone_image_file.h"

#define LOADER_LIVE_TIMEOUT_MS 5000
#define LOADER_PATIENCE_NS 1000000000ull /* how long the first load may take before zones that wait are answered SERVFAIL */

struct loader_config {
	struct zone_store *store; /* borrowed, as the next two */
	struct publisher *publisher;
	struct zone_image_files *files;
	unsigned threads;
	uint64_t max_zone_bytes;
	bool is_adopted; /* the publisher serves the zones of the process before already */
	/* Called first, from the loader's thread: adds the zones to the store; on failure `started` gets *why, and nothing is loaded.
	 * NULL: they are in it. */
	enum err (*fill)(void *user, const char **why);
	/* Called once from the loader's thread, after the first publication or its failure (why != NULL). */
	void (*started)(void *user, const char *why);
	/* After each publication that added or removed zones, live in this process, before anybody is told: what was resolved across them is old.
	 * NULL: nobody wants to know. */
	void (*reshaped)(void *user);
	void *user;
};

struct loader;
MUST_USE enum err loader_start(struct loader **out, const struct loader_config *config);
/* Gives up what it is doing, answers those who wait, joins. Every other call stays possible, and reloads ERR_CLOSED. NULL is fine. */
void loader_stop(struct loader *l);
/* After loader_stop, once no other thread uses it. NULL is fine. */
void loader_destroy(struct loader *l);

struct loader_reply {
	enum err err;		     /* of reload_run or of the publication */
	const char *why;	     /* static; with err */
	struct reload_result result; /* reload_result_fini */
	uint64_t generation;	     /* what is served now */
	bool is_live;		     /* every part serves it */
};
/* Reloads all zones (zone NULL) or one, and waits for the end. ERR_CLOSED: the loader stops; reply is then unset. */
MUST_USE enum err loader_reload(struct loader *l, const uint8_t *zone, bool is_forced, struct loader_reply *reply);
/* Asks for a reload of all zones without waiting; several wishes become one. */
void loader_wish_reload(struct loader *l);
/* Whether it is loading now. */
bool loader_is_busy(struct loader *l);
/* The generation that was published last. */
uint64_t loader_generation(struct loader *l);
