/* SPDX-License-Identifier: Apache-2.0 */
/* reload, zone list, zone status: asked from the slowpath, whose zones they are. */
#include "tools/skua/client.h"
#include "tools/skua/verbs.h"

#include <stdio.h>

static int ask_slowpath(const struct verb_call *call, const char *verb, json_t *take_args, int timeout_ms, json_t **result)
{
	char run_dir[PATH_MAX];
	struct control_error error;
	int code = client_run_dir(call, run_dir);

	if (code != VERB_OK) {
		json_decref(take_args);
		return code;
	}
	code = client_ask(run_dir, "slowpath", verb, take_args, timeout_ms, result, &error);
	return code == VERB_OK ? VERB_OK : client_error(call, &error);
}
