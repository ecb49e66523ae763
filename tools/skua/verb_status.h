/* SPDX-License-Identifier: Apache-2.0 */
/* verb_status.h: what `status` and `xdp status` share. */
#pragma once
#include "base/control.h"

/* The supervisor's status, each queue with the mode that the fastpath tells of it ("?" if it does not answer). As client_ask. */
MUST_USE int verb_status_fetch(const char *run_dir, json_t **result, struct control_error *error);

void verb_status_queues(const json_t *queues);
