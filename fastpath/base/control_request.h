/* SPDX-License-Identifier: Apache-2.0 */
/* control_request.h: one request line to its verb, one outcome to its response line: the part of the control protocol
 * (base/control.h) that does no I/O. */
#pragma once
#include "base/control.h"

struct control_request {
	const struct control_verb *verb; /* borrowed from the table or built in */
	json_t *args;			 /* owned; an object */
	json_t *id;			 /* owned; NULL: none */
};

/* Reads line[0..line_bytes), without its newline. False with *error filled; id may be set even then, so that the response can
 * carry it. control_request_fini is due in both cases. */
MUST_USE bool control_request_parse(struct control_request *out, const struct control_verb *verbs, const char *line,
				    size_t line_bytes, struct control_error *error);
void control_request_fini(struct control_request *r);
/* Runs the verb; *response is its line, as from control_response. */
MUST_USE enum err control_request_run(const struct control_request *r, const struct control_verb *verbs, void *user,
				      char **response, size_t *response_bytes);
/* The response line, newline included, for free(): take_result, or *error if that is NULL. id is borrowed and may be NULL.
 * A result that can't be written or is longer than CONTROL_RESPONSE_MAX becomes an error. ERR_NOMEM. */
MUST_USE enum err control_response(const json_t *id, json_t *take_result, const struct control_error *error, char **response,
				   size_t *response_bytes);
