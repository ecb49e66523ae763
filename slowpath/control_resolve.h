/* SPDX-License-Identifier: Apache-2.0 */
/* control_resolve.h: the slowpath's verbs about cache and upstreams; user is a struct control_context. Without recursion they fail. */
#pragma once
#include "slowpath/slowpath.h"

json_t *control_cache_stats(void *user, const json_t *args, struct control_error *error);
json_t *control_cache_lookup(void *user, const json_t *args, struct control_error *error);
json_t *control_cache_flush(void *user, const json_t *args, struct control_error *error);
json_t *control_cache_flush_tree(void *user, const json_t *args, struct control_error *error);
json_t *control_cache_flush_all(void *user, const json_t *args, struct control_error *error);
json_t *control_upstream_list(void *user, const json_t *args, struct control_error *error);
json_t *control_upstream_test(void *user, const json_t *args, struct control_error *error);
