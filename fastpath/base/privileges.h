/* SPDX-License-Identifier: Apache-2.0 */
/* privileges.h: what a part gives up before it reads anything that a stranger wrote.
 *
 * Order      Sockets first: nothing can be bound afterwards. Threads after it: capabilities and ids are given up by the calling
 *            thread and inherited by those that it makes. */
#pragma once
#include "base/base.h"

/* Becomes user with that user's group and no others, if we are root and the user exists (if not: stays root, and says so); gives up
 * every capability, those of the bounding set too; takes no new ones (no_new_privs); is killed with its parent. Release builds
 * forbid that others read its memory or that it dumps core. Any failure is logged; what was given up by then stays given up.
 * ERR_CLOSED: the parent has died meanwhile. */
MUST_USE enum err privileges_drop(const char *user);
