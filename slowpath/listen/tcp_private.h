/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_private.h: what tcp.c (the loop, accepting, timeouts) and tcp_connection.c (one connection) share. */
#pragma once
#include "answer/answer.h"
#include "slowpath/listen/listen_thread.h"
#include "slowpath/listen/tcp.h"
#include <uv.h>

#define TCP_LENGTH_BYTES 2u /* RFC 1035 section 4.2.2 */
#define TCP_MESSAGE_MAX 65535u
#define TCP_READ_BYTES 65536u					 /* one read of any connection; the buffer is the worker's */
#define TCP_OUT_BYTES (2 * (TCP_LENGTH_BYTES + TCP_MESSAGE_MAX)) /* answers collected before a write; the worker's as well */
#define TCP_HELD_FIRST_BYTES 512u     /* first size of a connection's own buffer; doubled as data really arrives */
#define TCP_BUFFER_BUDGET (64u << 20) /* all buffers of one worker's connections */

/* Where a connection stands; each state has its list, ordered by `since`, and its timeout. */
enum tcp_state {
	TCP_IDLE,    /* nothing begun, since the last complete query (or the start) */
	TCP_MESSAGE, /* an incomplete message, since its first octet */
	TCP_WAITING, /* for the resolver, which always answers, if only that there is no answer: no timeout of ours */
	TCP_WRITING, /* the client does not take answers, since the last progress; it is not read meanwhile */
	TCP_STATE_COUNT_
};

struct tcp_connection {
	uv_tcp_t handle; /* first: libuv gives it back to us */
	struct tcp_worker *worker;
	struct tcp_connection *previous, *next;
	uint64_t since_ms;
	size_t unsent_seen; /* WRITING: bytes in the write queue when last looked at */
	uint8_t *held;	    /* owned: input that could not be used yet, NULL if none */
	uint32_t held_bytes, held_capacity;
	uint32_t unsent_bytes; /* in the write queue's buffers */
	enum tcp_state state;
	uint32_t pending;	   /* queries that the resolver has */
	bool is_closing, is_ended; /* is_ended: the client has sent all it will send */
	bool is_closed;		   /* the handle too: freed when nothing is pending */
	bool is_paused;		   /* it is not read */
	struct answer_client client;
};

struct tcp_list {
	struct tcp_connection *first, *last;
};

struct tcp_listener {
	uv_tcp_t handle; /* first */
	struct tcp_worker *worker;
	bool is_pending; /* libuv accepted a connection that there was no memory for: it accepts no other until we take it */
};

struct tcp_worker {
	struct listen_thread thread;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_poll_t returns;   /* says that something lies in the box */
	struct tcp_box *box; /* queries that are with the resolver come back here; NULL: there is no resolver */
	bool has_returns;
	struct tcp_clients *clients;
	struct tcp_limits limits;
	struct tcp_list list[TCP_STATE_COUNT_];
	size_t buffer_bytes;  /* held and queued of all connections */
	size_t buffer_budget; /* its bound: TCP_BUFFER_BUDGET */
	size_t listener_count;
	struct tcp_listener *listeners; /* owned */
	uint8_t *read_buffer, *out;	/* owned: TCP_READ_BYTES, TCP_OUT_BYTES */
};

/* Begins to read from an accepted, admitted connection. */
void tcp_connection_begin(struct tcp_connection *c);
/* Closes and later frees it; safe to call again. `why` is counted beside C_TCP_CLOSED; C_COUNT_ counts nothing more. */
void tcp_connection_close(struct tcp_connection *c, enum counter why);
/* The response to a query that the resolver had, NULL: there is none; its connection goes on. Takes message. */
void tcp_connection_answered(struct tcp_connection *c, uint8_t *message, size_t bytes);
/* Moves it to the end of the list of `state`, from now on. */
void tcp_connection_enter(struct tcp_connection *c, enum tcp_state state);
