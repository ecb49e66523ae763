/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the two clocks. Hot code gets the time as an argument and calls neither. */
#pragma once
#include "base/base.h"
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds: comparable between processes of one boot. */
ALWAYS_INLINE uint64_t clock_mono_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
/* Wall time in whole seconds since 1970. */
ALWAYS_INLINE int64_t clock_wall_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec;
}
