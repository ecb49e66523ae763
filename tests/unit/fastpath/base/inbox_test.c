/* SPDX-License-Identifier: Apache-2.0 */
#include "base/inbox.h"

#include <criterion/criterion.h>
#include <pthread.h>

#define THREADS 4u
#define EACH 20000u

struct letter {
	struct inbox_node node;
	unsigned from, number;
};
static struct inbox box;
static struct letter letters[THREADS][EACH];

Test(inbox, what_is_pushed_comes_in_its_order)
{
	struct letter a = { .number = 1 }, b = { .number = 2 };
	cr_assert_null(inbox_take(&box));
	cr_assert(inbox_push(&box, &a.node), "it was empty: wake the owner");
	cr_assert(!inbox_push(&box, &b.node));
	struct inbox_node *list = inbox_take(&box);
	cr_assert_eq(list, &a.node);
	cr_assert_eq(list->next, &b.node);
	cr_assert_null(list->next->next);
	cr_assert_null(inbox_take(&box));
	cr_assert(inbox_push(&box, &a.node));
}

static void *send_letters(void *argument)
{
	unsigned from = (unsigned)(uintptr_t)argument;
	for (unsigned i = 0; i < EACH; i++) {
		letters[from][i] = (struct letter){ .from = from, .number = i };
		inbox_push(&box, &letters[from][i].node);
	}
	return NULL;
}

Test(inbox, many_threads_lose_nothing_and_each_keeps_its_order)
{
	pthread_t thread[THREADS];
	unsigned next[THREADS] = { 0 }, all = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, send_letters, (void *)i), 0);
	while (all < THREADS * EACH) {
		for (struct inbox_node *n = inbox_take(&box); n; n = n->next, all++) {
			struct letter *l = (struct letter *)n;
			cr_assert_eq(l->number, next[l->from]++);
		}
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_assert_null(inbox_take(&box));
}
