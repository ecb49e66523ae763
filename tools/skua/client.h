/* SPDX-License-Identifier: Apache-2.0 */
/* client.h: how a verb speaks to the processes of a running server, and how it says what came of it.
 *
 * Results go to stdout, complaints to stderr; with --json both are one JSON value on stdout: the result itself, or
 * {"error": {"code": ..., "message": ...}}. Text from elsewhere is made printable before a terminal sees it. */
#pragma once
#include "base/base.h"
#include "base/control.h"
#include "tools/skua/verb.h"

#include <limits.h>

#define CLIENT_TIMEOUT_MS 5000
#define CLIENT_RELOAD_TIMEOUT_MS 3600000 /* large zones take their time */

/* The run folder: --run, or server.run of the configuration, or the default when there is no configuration. VERB_OK, or the
 * exit code after a complaint. */
MUST_USE int client_run_dir(const struct verb_call *call, char out[static PATH_MAX]);
/* Asks the process "run", "slowpath" or "fastpath". VERB_OK with *result a new reference, or the exit code with *error filled
 * (not yet shown). */
MUST_USE int client_ask(const char *run_dir, const char *process, const char *verb, json_t *take_args, int timeout_ms,
			json_t **result, struct control_error *error);
/* Asks the slowpath of the server that the call means, if it runs. VERB_OK with *result a new reference, or the exit code after a complaint. */
MUST_USE int client_ask_slowpath(const struct verb_call *call, const char *verb, json_t *take_args, int timeout_ms,
				 json_t **result);

/* Shows an error; returns the exit code that goes with its code. */
int client_error(const struct verb_call *call, const struct control_error *error);
PRINTF(3, 4) int client_complain(const struct verb_call *call, const char *code, const char *format, ...);
/* Prints the result as JSON, or by `human`. Takes it. */
int client_result(const struct verb_call *call, json_t *take_result, void (*human)(const json_t *result));

/* Fields of a result for the tables; missing ones and others of another type are "-" and 0. The text is printable and valid until the
 * fourth call after this one. */
const char *client_text(const json_t *object, const char *key);
long long client_integer(const json_t *object, const char *key);
/* "3d 4h", "5m 2s": two units at most. The buffer is the caller's. */
const char *client_duration(long long seconds, char out[static 32]);
