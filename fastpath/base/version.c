/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

const char *version_text(void) { return SKUA_VERSION; }
