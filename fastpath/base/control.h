/* SPDX-License-Identifier: Apache-2.0 */
/* control.h: the control protocol: JSON lines over a unix socket, one table of verbs a process.
 *
 * Request   {"verb": "zone list", "args": {...}, "id": 7}\n          id is optional and echoed
 * Response  {"id": 7, "ok": true, "result": ...}\n   or   {"id": 7, "ok": false, "error": {"code": "not-found", "message": "..."}}\n
 * A connection may send many requests, one after another. Lines are at most CONTROL_LINE_MAX octets; connections at most
 * CONTROL_MAX_CONNECTIONS; a client that does not read or write for CONTROL_TIMEOUT_MS is closed. Peers are checked by
 * SO_PEERCRED: root, our own uid, or the group of the socket file.
 *
 * Server    Single-threaded by itself: control_server_run in a thread of its own, or control_server_poll from a thread that
 *           already polls (control_server_fd). Handlers run in that thread, so they must be quick; a verb with is_slow runs
 *           in one of at most CONTROL_WORKERS threads, made at create (before a process gives up its privileges), while the
 *           other connections are served. A slow verb never runs twice at a time: later requests for it wait their turn.
 * Trust     Peers are privileged, yet lines, connections, times and nesting are bounded, and every request is checked. */
#pragma once
#include "base/base.h"
#include <jansson.h>

#define CONTROL_LINE_MAX (1u << 20)
#define CONTROL_RESPONSE_MAX (64u << 20) /* a longer result becomes the error "too-large" */
#define CONTROL_MAX_CONNECTIONS 32
#define CONTROL_TIMEOUT_MS 10000 /* for a request to come whole, and for a response to be read whole */
#define CONTROL_WORKERS 4

struct control_error {
	char code[32];
	char message[512];
};

/* A verb's work. Returns a new reference for "result" (json_null() is fine), or NULL with *error filled.
 * args is borrowed and an object (empty if absent). */
typedef json_t *control_handler(void *user, const json_t *args, struct control_error *error);
struct control_verb {
	const char *name;
	control_handler *handler;
	const char *help;
	bool is_slow;
};

struct control_server;
/* listen_fd is borrowed. verbs ends with a NULL name and is borrowed; "help", "version", "log level" are built in (their names
 * may not be taken). Makes threads only if there is a slow verb. */
MUST_USE enum err control_server_create(struct control_server **out, int listen_fd, const struct control_verb *verbs, void *user);
/* Serves until control_server_stop from another thread (or a handler); returns then. */
void control_server_run(struct control_server *s);
/* Safe from any thread and from a signal handler. */
void control_server_stop(struct control_server *s);
/* Instead of run: a descriptor that is readable when control_server_poll has work; poll serves what is there, waiting for at
 * most timeout_ms (-1: until something happens). Both from one thread. */
int control_server_fd(const struct control_server *s);
void control_server_poll(struct control_server *s, int timeout_ms);
/* Closes every connection; waits for slow verbs that still run. NULL is fine. */
void control_server_destroy(struct control_server *s);
/* Binds a listening unix socket (mode 0660) at path, replacing a dead one; ERR_BUSY if somebody answers there, ERR_EXISTS if
 * something else than a socket is there, ERR_ARGUMENT if the path is too long for a socket. */
MUST_USE enum err control_listen(int *fd, const char *path);

/* Client: one request, one response, within timeout_ms. *result is a new reference; take_args may be NULL. On failure *error
 * says why: the server's code and message, or "not-running" (nobody listens), "denied", "timeout", "closed", "bad-response". */
MUST_USE enum err control_call(const char *socket_path, const char *verb, json_t *take_args, int timeout_ms, json_t **result,
			       struct control_error *error);
/* Fills *error; the message is made printable (base/printable.h). code: "not-found", "bad-args", ... */
void control_fail(struct control_error *error, const char *code, const char *format, ...) PRINTF(3, 4);
