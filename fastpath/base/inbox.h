/* SPDX-License-Identifier: Apache-2.0 */
/* inbox.h: messages from many threads to one, without locks: a stack that the owner takes whole and turns around.
 *
 * Ownership  push gives a node away; take returns all that were given, a list in the order in which they came.
 * Ordering   push stores head (release), take loads it (acquire): what was written before a push is seen after the take. */
#pragma once
#include "base/base.h"

struct inbox_node {
	struct inbox_node *next;
};
struct inbox { /* zero: empty */
	_Atomic(struct inbox_node *) head_;
};

/* Any thread. True: it was empty, so the owner may be asleep and must be woken. */
ALWAYS_INLINE bool inbox_push(struct inbox *box, struct inbox_node *give)
{
	struct inbox_node *head = atomic_load_explicit(&box->head_, memory_order_relaxed);
	do {
		give->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&box->head_, &head, give, memory_order_release, memory_order_relaxed));
	return head == NULL;
}
/* The owner: everything, oldest first; NULL if there is nothing. */
ALWAYS_INLINE struct inbox_node *inbox_take(struct inbox *box)
{
	struct inbox_node *from = atomic_exchange_explicit(&box->head_, NULL, memory_order_acquire), *list = NULL;
	while (from) {
		struct inbox_node *next = from->next;
		from->next = list;
		list = from;
		from = next;
	}
	return list;
}
