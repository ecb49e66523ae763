/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the clocks. Hot code gets the time as an argument and calls neither. */
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
/* Wall time in nanoseconds since 1970. */
ALWAYS_INLINE uint64_t clock_wall_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
/* CLOCK_MONOTONIC in whole seconds, at most one tick late: the time of cached answers, the same for all processes of one boot. Starts at
 * CLOCK_MONO_S_FIRST, so that "an hour ago" is a number too. */
#define CLOCK_MONO_S_FIRST 0x01000000u
ALWAYS_INLINE uint32_t clock_mono_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint32_t)ts.tv_sec + CLOCK_MONO_S_FIRST;
}
