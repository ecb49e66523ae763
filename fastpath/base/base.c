/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const texts[ERR_COUNT_] = {
	[ERR_OK] = "no error",
	[ERR_NOMEM] = "out of memory",
	[ERR_ARGUMENT] = "invalid argument",
	[ERR_SYNTAX] = "syntax error",
	[ERR_RANGE] = "value out of range",
	[ERR_NOSPACE] = "no space left in the buffer or limit",
	[ERR_TRUNCATED] = "input ends too early",
	[ERR_MALFORMED] = "malformed data",
	[ERR_CORRUPT] = "damaged shared memory or image",
	[ERR_NOTFOUND] = "not found",
	[ERR_EXISTS] = "exists already",
	[ERR_BUSY] = "resource is busy",
	[ERR_AGAIN] = "try again",
	[ERR_CLOSED] = "peer has closed",
	[ERR_TIMEOUT] = "timed out",
	[ERR_DENIED] = "permission denied",
	[ERR_UNSUPPORTED] = "not supported",
	[ERR_IO] = "system call failed",
};

const char *err_text(enum err err) { return (unsigned)err < ERR_COUNT_ ? texts[err] : "unknown error"; }

enum err err_from_errno(int errno_value)
{
	switch (errno_value) {
	case 0: return ERR_OK;
	case ENOMEM: return ERR_NOMEM;
	case EINVAL: return ERR_ARGUMENT;
	case ERANGE: return ERR_RANGE;
	case ENOSPC:
	case ENOBUFS: return ERR_NOSPACE;
	case ENOENT:
	case ENODEV: return ERR_NOTFOUND;
	case EEXIST: return ERR_EXISTS;
	case EBUSY: return ERR_BUSY;
	case EAGAIN: return ERR_AGAIN;
	case EPIPE:
	case ECONNRESET: return ERR_CLOSED;
	case ETIMEDOUT: return ERR_TIMEOUT;
	case EPERM:
	case EACCES: return ERR_DENIED;
	case EOPNOTSUPP:
	case EAFNOSUPPORT:
	case ENOSYS: return ERR_UNSUPPORTED;
	default: return ERR_IO;
	}
}

void assert_failed(const char *file, int line, const char *condition)
{
	fprintf(stderr, "skua: assertion failed: %s (%s:%d)\n", condition, file, line);
	abort();
}
