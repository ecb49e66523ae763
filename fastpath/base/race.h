/* SPDX-License-Identifier: Apache-2.0 */
/* race.h: tells ThreadSanitizer of an order between threads that it can't see, since a library without instrumentation makes it (a grace
 * period of liburcu). Nothing in other builds. */
#pragma once

#if defined(__SANITIZE_THREAD__)
#define RACE_IS_WATCHED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACE_IS_WATCHED
#endif
#endif

#ifdef RACE_IS_WATCHED
#include <sanitizer/tsan_interface.h>
/* What a thread does before race_before(x) comes before what another one does after race_after(x), if that is called later. */
#define race_before(address) __tsan_release((void *)(address))
#define race_after(address) __tsan_acquire((void *)(address))
#else
#define race_before(address) ((void)(address))
#define race_after(address) ((void)(address))
#endif
