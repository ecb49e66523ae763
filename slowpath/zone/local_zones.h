/* SPDX-License-Identifier: Apache-2.0 */
/* local_zones.h: zones that no file holds: names that a resolver must not ask the world for, and the operator's own records.
 *
 * Special    RFC 6303 (private and documentation addresses), 6761 (localhost, test, invalid), 6762 (local), 7686 (onion), 7793 (shared
 *            address space), 8375 (home.arpa), 9462 (resolver.arpa), 9476 (alt): empty zones, and localhost with its addresses. A zone or a
 *            forward zone of the same name or below it, and local.special-names-off, take a name out.
 * Hosts      local.hosts and local.records make one transparent zone, the root's: it answers for the names that it has and hides no
 *            other (ZONE_TRANSPARENT, table/zone_image.h).
 * Paths      Such a zone's file has a path that no file can have: LOCAL_ZONES_PREFIX and a word. zone_source.c asks here for its text. */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "slowpath/zone/zone_store.h"

#define LOCAL_ZONES_PREFIX "builtin:"
#define LOCAL_ZONES_HOSTS LOCAL_ZONES_PREFIX "hosts"

/* Adds to the store what the configuration wants and has no zone for. With forward zones only. ERR_NOMEM. Once; before others read. */
MUST_USE enum err local_zones_add(struct zone_store *store, const struct config *config);
/* Text of a built-in file, for free(); *bytes without its NUL. ERR_NOTFOUND: no such path. Reads the hosts files anew each time;
 * what can't be read or is no such line is logged and left out. */
MUST_USE enum err local_zones_text(char **text, size_t *bytes, const char *path);
/* Whether the path is one of these. */
bool local_zones_has(const char *path);
void local_zones_fini(void);
