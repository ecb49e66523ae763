/* SPDX-License-Identifier: Apache-2.0 */
/* config_file.h: finding and loading skua.yaml for the verbs. */
#pragma once
#include "base/base.h"
#include "config/config.h"

#define CONFIG_FILE_DEFAULT "/etc/skua/skua.yaml"
#define CONFIG_FILE_RUN_DIR "/run/skua"       /* where client verbs look when there is no configuration */
#define CONFIG_FILE_MAX_BYTES (16u << 20)

/* -c FILE's value (or NULL), else $SKUA_CONFIG, else the default. *is_default: it was neither given nor in the environment. */
const char *config_file_path(const char *given, bool *is_default);
/* Reads a whole file, with a NUL behind it. *text is the caller's (free). errno tells why not; ERR_RANGE: larger than max_bytes. */
MUST_USE enum err config_file_read(const char *path, size_t max_bytes, char **text, size_t *text_bytes);
