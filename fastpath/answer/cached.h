/* SPDX-License-Identifier: Apache-2.0 */
/* cached.h: questions for names that are not ours: who may ask them, and what the cache answers. */
#pragma once
#include "answer/answer_internal.h"

/* parse_hot.c: answer_prepare, but for counting the query. */
HOT void parse_query(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
/* Whether the client may recurse, into q->group and q->may_recurse. Before the zones are looked at: RA says so in every answer. */
HOT void cached_client(const struct snapshot *s, struct answer_query *q);
/* No zone of ours has the name: STATE_CACHE, with the bucket on its way into the CPU's cache, or STATE_QUESTION with a refusal. */
MUST_USE HOT uint8_t cached_prepare(const struct snapshot *s, struct answer_query *q);
HOT void cached_prefetch(const struct snapshot *s, const struct answer_query *q);
/* STATE_CACHE: writes the sections, or says MISS with the message untouched. */
MUST_USE HOT enum answer_verdict cached_answer(struct walk *w, struct answer_thread *t);
/* Writes the sections from a checked entry for the question's name or a name above it; does not fit: is_full, nothing written. */
HOT void cached_render(struct walk *w, const struct cache_entry *entry, uint32_t now_s);
