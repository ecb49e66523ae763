/* SPDX-License-Identifier: Apache-2.0 */
/* verb_status.h: the queue table that `status` and `xdp status` share. */
#pragma once
#include <jansson.h>

void verb_status_queues(const json_t *queues);
