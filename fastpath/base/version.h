/* SPDX-License-Identifier: Apache-2.0 */
/* version.h: which build this is. */
#pragma once

/* As git describes the tree that was built, for example "v1.2.0" or "v1.2.0-3-gabcdef0-dirty"; "unknown" outside a clone. */
const char *version_text(void);
