/* SPDX-License-Identifier: Apache-2.0 */
/* run_lock.h: the folders of one `skua run`, and the lock that keeps a second one out. */
#pragma once
#include "base/base.h"

#include <sys/types.h>

/* Makes a folder and those above it. ERR_OK also if it is there. The kernel's answer stays in errno. */
MUST_USE enum err run_lock_folder(const char *path, mode_t mode);
/* Takes <run_dir>/skua.lock and writes our pid into it. The lock dies with us, whatever kills us. *fd is the caller's.
 * ERR_BUSY: another one holds it; *holder is its pid (0: unknown). ERR_OK: *holder is the pid of one that did not end properly,
 * 0 if there was none. */
MUST_USE enum err run_lock_take(int *fd, const char *run_dir, pid_t *holder);
/* A proper end: nobody is named any more. Closes fd. */
void run_lock_give(int fd);
