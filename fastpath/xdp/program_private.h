/* SPDX-License-Identifier: Apache-2.0 */
/* program_private.h: the handle, shared by program.c (life) and program_maps.c (maps). */
#pragma once
#include "xdp/program.h"

#include <limits.h>

enum program_map {
	PROGRAM_MAP_XSKS,
	PROGRAM_MAP_ADDRESSES4,
	PROGRAM_MAP_ADDRESSES6,
	PROGRAM_MAP_SETTINGS,
	PROGRAM_MAP_COUNTERS,
	PROGRAM_MAP_COUNT_,
};

struct xdp_program {
	struct xdp_program_info info;
	char dir[PATH_MAX - 32];	/* <pin-dir>/<interface>; room for a file name behind it */
	int link_fd;			/* owned; -1 if none */
	int program_fd;			/* owned; -1 if none */
	int map_fd[PROGRAM_MAP_COUNT_]; /* owned; -1 if none */
};

/* One text for a failed step: what was tried, errno's text, the kernel's own words if it gave any. */
const char *program_errno_hint(int errno_value);
