/* SPDX-License-Identifier: Apache-2.0 */
/* open_fds.h: for tests and fuzzers of code that is handed descriptors: how many are open in this process. */
#pragma once
#include "base/base.h"

#include <dirent.h>
#include <unistd.h>

static inline unsigned open_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	ASSERT(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}
