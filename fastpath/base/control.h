/* SPDX-License-Identifier: Apache-2.0 */
/* control.h: the control protocol: JSON lines over a unix socket, one table of verbs a process.
 *
 * Request   {"verb": "zone list", "args": {...}, "id": 7}\n          id is optional and echoed
 * Response  {"id": 7, "ok": true, "result": ...}\n   or   {"id": 7, "ok": false, "error": {"code": "not-found", "message": "..."}}\n
 * A connection may send many requests, one after another. Lines are at most CONTROL_LINE_MAX octets; connections at most
 * CONTROL_MAX_CONNECTIONS; a client that does not read or write for CONTROL_TIMEOUT_MS is closed. Peers are checked by
 * SO_PEERCRED: root, our own uid, or the group of the socket file.
 *
 * Server    Runs in a thread of its own (the process's control thread may share it through control_server_poll). */
#pragma once
#include "base/base.h"
#include <jansson.h>

#define CONTROL_LINE_MAX (1u << 20)
#define CONTROL_MAX_CONNECTIONS 32
#define CONTROL_TIMEOUT_MS 10000

struct control_error { char code[32]; char message[512]; };

/* A verb's work. Returns a new reference for "result" (json_null() is fine), or NULL with *error filled.
 * args is borrowed and an object (empty if absent). */
typedef json_t *control_handler(void *user, const json_t *args, struct control_error *error);
struct control_verb { const char *name; control_handler *handler; const char *help; };

struct control_server;
/* listen_fd is borrowed. verbs ends with a NULL name and is borrowed; "help", "version", "log level" are built in. */
MUST_USE enum err control_server_create(struct control_server **out, int listen_fd, const struct control_verb *verbs, void *user);
/* Serves until control_server_stop from another thread; returns then. */
void control_server_run(struct control_server *s);
void control_server_stop(struct control_server *s);
void control_server_destroy(struct control_server *s);
/* Binds a listening unix socket (mode 0660) at path, replacing a dead one; ERR_BUSY if somebody answers there. */
MUST_USE enum err control_listen(int *fd, const char *path);

/* Client: one request, one response, within timeout_ms. *result is a new reference. On failure *error says why
 * ("not-running" when nobody listens). */
MUST_USE enum err control_call(const char *socket_path, const char *verb, json_t *take_args, int timeout_ms, json_t **result,
			       struct control_error *error);
void control_fail(struct control_error *error, const char *code, const char *format, ...) PRINTF(3, 4);
