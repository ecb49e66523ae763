/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: the words every other header uses: error codes, assertions, attributes. */
#pragma once
#include <assert.h> /* static_assert */
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MUST_USE __attribute__((warn_unused_result))
#define HOT __attribute__((hot))
#define COLD __attribute__((cold))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define CACHE_LINE 64
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* What the environment or an input can do to us. Out-parameters stay untouched on failure. */
enum err {
	ERR_OK = 0,
	ERR_NOMEM,     /* an allocation or a mapping failed */
	ERR_ARGUMENT,  /* the caller's value is out of its documented range */
	ERR_SYNTAX,    /* text does not follow its grammar */
	ERR_RANGE,     /* a well-formed value is out of range */
	ERR_NOSPACE,   /* the caller's buffer, a ring or a limit is full */
	ERR_TRUNCATED, /* input ends before its own lengths say so */
	ERR_MALFORMED, /* wire data breaks its format */
	ERR_CORRUPT,   /* shared memory or an image fails its checks */
	ERR_NOTFOUND,
	ERR_EXISTS,
	ERR_BUSY,   /* try again later: the resource is held */
	ERR_AGAIN,  /* would block */
	ERR_CLOSED, /* the peer has gone */
	ERR_TIMEOUT,
	ERR_DENIED,	 /* privileges or policy */
	ERR_UNSUPPORTED, /* the kernel, driver or library can't */
	ERR_IO,		 /* any other failed system call */
	ERR_COUNT_
};

/* A short English text for err, never NULL. */
const char *err_text(enum err err);
/* The closest enum err for an errno value; ERR_IO when there is none. */
enum err err_from_errno(int errno_value);

/* Our own bugs only: received bytes must never be able to trip one. Kept in release builds. */
#define ASSERT(cond) \
	do { \
		if (unlikely(!(cond))) \
			assert_failed(__FILE__, __LINE__, #cond); \
	} while (0)
/* Also costs time on the hot path: debug builds only. */
#ifdef SKUA_DEBUG
#define DEBUG_ASSERT(cond) ASSERT(cond)
#else
#define DEBUG_ASSERT(cond) ((void)0)
#endif

_Noreturn COLD void assert_failed(const char *file, int line, const char *condition);
