/* SPDX-License-Identifier: Apache-2.0 */
/* Building, sorting, compiling and verifying a zone while each allocation in turn fails: an error, nothing lost, and no crash. */
#include <stdbool.h>
#include <stdlib.h>

static unsigned allocations_left;
static bool may_allocate(void) { return allocations_left > 0 && allocations_left-- > 0; }
static void *failing_malloc(size_t bytes) { return may_allocate() ? malloc(bytes) : NULL; }
static void *failing_calloc(size_t count, size_t bytes) { return may_allocate() ? calloc(count, bytes) : NULL; }
static void *failing_realloc(void *p, size_t bytes) { return may_allocate() ? realloc(p, bytes) : NULL; }
static void *failing_aligned_alloc(size_t align, size_t bytes) { return may_allocate() ? aligned_alloc(align, bytes) : NULL; }

#include "zone_model.h"

#define malloc failing_malloc
#define calloc failing_calloc
#define realloc failing_realloc
#define aligned_alloc failing_aligned_alloc
#include "table/zone_build.c" /* NOLINT(bugprone-suspicious-include) */
#undef FIRST_SLOTS
#undef PREFETCH_AHEAD
#include "table/zone_compile.c"	      /* NOLINT(bugprone-suspicious-include) */
#include "table/zone_compile_nsec3.c" /* NOLINT(bugprone-suspicious-include) */
#undef malloc
#undef calloc
#undef realloc
#undef aligned_alloc

static enum err add_all(struct zone_build *b, const struct model *m)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct model_record *r = &m->record[i];
		static const char file[9]; /* nine names, each by its address */
		struct master_record record = { .owner = r->owner,
						.owner_bytes = r->owner_bytes,
						.type = r->type,
						.ttl_s = r->ttl_s,
						.rdata = r->rdata,
						.rdata_bytes = r->rdata_bytes,
						.place = { .file = &file[i % sizeof file], .line = 1, .column = 1 } };
		enum err err = zone_build_add(b, &record);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}
static bool ignore(void *user, const struct zone_build_record *r)
{
	(void)user;
	(void)r;
	return true;
}

static enum err whole(const struct model *m, struct zone_image **image, size_t *bytes)
{
	struct zone_build *b = NULL;
	const char *why = NULL;
	enum err err = zone_build_create(&b, m->apex, RR_CLASS_IN, 64u << 20);
	if (err == ERR_OK)
		err = add_all(b, m);
	if (err == ERR_OK)
		err = zone_build_each(b, ignore, NULL);
	if (err == ERR_OK)
		err = zone_compile_bytes(b, bytes, &why);
	if (err == ERR_OK) {
		*image = calloc(1, *bytes);
		err = zone_compile(b, *image, *bytes);
	}
	zone_build_destroy(b);
	return err;
}

Test(zone_build_memory, each_allocation_may_fail)
{
	static const enum model_signing signings[] = { MODEL_UNSIGNED, MODEL_NSEC, MODEL_NSEC3 };
	for (size_t i = 0; i < ARRAY_LEN(signings); i++) {
		model_random_state = 77 + i;
		struct model *m = model_create("zone.test.", signings[i], 40);
		enum err err = ERR_NOMEM;
		unsigned failures = 0;
		for (unsigned n = 0; err != ERR_OK; n++) {
			struct zone_image *image = NULL;
			const char *why;
			size_t bytes = 0;
			allocations_left = n;
			err = whole(m, &image, &bytes);
			cr_assert(err == ERR_OK || err == ERR_NOMEM, "%s", err_text(err));
			if (err == ERR_OK)
				cr_assert_eq(zone_image_verify(image, bytes, &why), ERR_OK);
			failures += err != ERR_OK;
			free(image);
			cr_assert_lt(n, 1000);
		}
		cr_assert_gt(failures, 8, "%u", failures);
		free(m);
	}
}
