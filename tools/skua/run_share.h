/* SPDX-License-Identifier: Apache-2.0 */
/* run_share.h: what the supervisor lays into sealed memory for its parts: the configuration's text, and the settings made from it. */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "table/settings.h"

/* A sealed memfd with these bytes (a newline if there are none: nothing can't be mapped). *fd is the caller's. */
MUST_USE enum err run_share_bytes(int *fd, const char *label, const void *bytes, size_t size_bytes);

/* Settings from the configuration. random: 16 octets for the cookie secret when none is configured. */
void run_share_settings(struct settings *out, const struct config *config, const uint8_t random[static 16]);
