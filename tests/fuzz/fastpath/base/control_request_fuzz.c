/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets as lines of the control protocol: each gives exactly one response line of JSON. */
#include "base/control_request.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static json_t *echo(void *user, const json_t *args, struct control_error *error)
{
	const char *key;
	json_t *value;

	(void)user;
	json_object_foreach((json_t *)args, key, value) {
		if (json_is_string(value)) {
			control_fail(error, key, "%s", json_string_value(value));
			return NULL;
		}
	}
	return json_incref((json_t *)args);
}

static const struct control_verb verbs[] = { { "echo", echo, "", false }, { "slow", echo, NULL, true }, { .name = NULL } };

static void check_response(const char *response, size_t bytes)
{
	ASSERT(bytes > 1 && response[bytes - 1] == '\n' && !memchr(response, '\n', bytes - 1));
	json_t *root = json_loadb(response, bytes, JSON_REJECT_DUPLICATES, NULL);
	const json_t *ok = json_object_get(root, "ok"), *error = json_object_get(root, "error");
	ASSERT(json_is_boolean(ok) && (json_is_true(ok) ? json_object_get(root, "result") != NULL : json_is_object(error)));
	json_decref(root);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	log_set_level(LOG_CONTROL, LOG_LEVEL_ERROR); /* `log level` would write a line for each change */
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size;

	while (p <= end) {
		const char *newline = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
		size_t bytes = (size_t)((newline ? newline : end) - p), response_bytes = 0;
		struct control_request r;
		struct control_error error;
		char *response = NULL;
		enum err err;

		if (control_request_parse(&r, verbs, p, bytes, &error))
			err = control_request_run(&r, verbs, NULL, &response, &response_bytes);
		else
			err = control_response(r.id, NULL, &error, &response, &response_bytes);
		ASSERT(err == ERR_OK);
		check_response(response, response_bytes);
		free(response);
		control_request_fini(&r);
		p += bytes + 1;
	}
	return 0;
}
