/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/tcp_miss.h"
#include "base/inbox.h"
#include "slowpath/resolve/resolve.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct tcp_box {
	struct inbox inbox;
	struct inbox_node *taken; /* the TCP thread's: out of the inbox, not handed out yet */
	_Atomic uint32_t users;	  /* the TCP thread, and each query under way */
	int wake;
};

/* One query that waits for the resolver. */
struct tcp_origin {
	struct inbox_node node; /* first: it is what lies in the box */
	struct resolve_origin origin;
	struct tcp_box *box;
	struct tcp_connection *connection; /* the TCP thread's */
	uint8_t *message;		   /* owned */
	size_t bytes;
};

enum err tcp_box_create(struct tcp_box **out, int *wake)
{
	struct tcp_box *box = calloc(1, sizeof *box);
	if (!box)
		return ERR_NOMEM;
	box->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (box->wake < 0) {
		free(box);
		return err_from_errno(errno);
	}
	atomic_init(&box->users, 1);
	*out = box;
	*wake = box->wake;
	return ERR_OK;
}

/* The last one finds only what is left over, of connections that are closed. */
static void leave(struct tcp_box *box)
{
	struct tcp_returned left;
	if (atomic_fetch_sub_explicit(&box->users, 1, memory_order_acq_rel) != 1)
		return;
	while (tcp_miss_next(box, &left))
		free(left.message);
	close(box->wake);
	free(box);
}

void tcp_box_leave(struct tcp_box *box)
{
	if (box)
		leave(box);
}

/* On the resolver's thread. */
static void on_reply(struct resolve_origin *origin, const uint8_t *message, size_t bytes)
{
	struct tcp_origin *o = (struct tcp_origin *)((uint8_t *)origin - offsetof(struct tcp_origin, origin));
	struct tcp_box *box = o->box;
	uint64_t one = 1;
	o->message = message ? malloc(bytes) : NULL;
	o->bytes = o->message ? bytes : 0;
	if (o->message)
		memcpy(o->message, message, bytes);
	if (inbox_push(&box->inbox, &o->node)) /* o is the TCP thread's from here on */
		(void)!write(box->wake, &one, sizeof one);
	leave(box);
}

bool tcp_miss_ask(struct tcp_connection *c, const struct answer_query *q)
{
	struct tcp_worker *w = c->worker;
	struct tcp_origin *o = calloc(1, sizeof *o);
	if (!o) {
		counter_add(w->thread.counters, C_RESOLVE_NO_MEMORY, 1);
		return false;
	}
	o->origin.reply = on_reply;
	o->box = w->box;
	o->connection = c;
	atomic_fetch_add_explicit(&w->box->users, 1, memory_order_relaxed);
	c->pending++;
	if (resolve_submit(w->thread.resolve, q, clock_mono_ns(), &o->origin) == ERR_OK)
		return true;
	c->pending--;
	atomic_fetch_sub_explicit(&w->box->users, 1, memory_order_relaxed); /* never the last: that is ours */
	free(o);
	return false;
}

bool tcp_miss_next(struct tcp_box *box, struct tcp_returned *out)
{
	for (;;) {
		if (!box->taken)
			box->taken = inbox_take(&box->inbox);
		struct tcp_origin *o = (struct tcp_origin *)box->taken;
		if (!o)
			return false;
		box->taken = o->node.next;
		struct tcp_connection *c = o->connection;
		*out = (struct tcp_returned){ .connection = c, .message = o->message, .bytes = o->bytes };
		free(o);
		c->pending--;
		if (!c->is_closed)
			return true;
		free(out->message); /* NOLINT(clang-analyzer-unix.Malloc): each message is in one origin, which is gone */
		if (c->pending == 0)
			free(c);
	}
}
