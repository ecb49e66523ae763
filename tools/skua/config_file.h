/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.h: which skua.yaml a verb means. */
#pragma once
#include <stdbool.h>

#define CONFIG_FILE_DEFAULT "/etc/skua/skua.yaml"
#define CONFIG_FILE_RUN_DIR "/run/skua" /* where client verbs look when there is no configuration */

/* -c FILE's value (or NULL), else $SKUA_CONFIG, else the default. *is_default: it was neither given nor in the environment. */
const char *config_file_path(const char *given, bool *is_default);
