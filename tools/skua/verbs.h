/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h: the verbs of the command, one function each, one file per group (verb_*.c; run.c for `run`). Each prints what it has to
 * say and returns the exit code (enum verb_exit). The table that names them is in main.c. */
#pragma once
#include "tools/skua/verb.h"

int verb_status(const struct verb_call *call);

int verb_reload(const struct verb_call *call);
int verb_zone_list(const struct verb_call *call);
int verb_zone_status(const struct verb_call *call);

int verb_zone_check(const struct verb_call *call);

int verb_xdp_status(const struct verb_call *call);
int verb_xdp_detach(const struct verb_call *call);

int verb_cache_stats(const struct verb_call *call);
int verb_cache_lookup(const struct verb_call *call);
int verb_cache_flush(const struct verb_call *call);
int verb_cache_flush_tree(const struct verb_call *call);
int verb_cache_flush_all(const struct verb_call *call);
int verb_upstream_list(const struct verb_call *call);
int verb_upstream_test(const struct verb_call *call);

int verb_config_check(const struct verb_call *call);
int verb_log_level(const struct verb_call *call);
int verb_version(const struct verb_call *call);
