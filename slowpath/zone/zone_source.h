/* SPDX-License-Identifier: Apache-2.0 */
/* zone_source.h: the files that a zone is made from, and how to tell that they have not changed.
 *
 * A stamp is what stat says. It proves that a file is the same one only if it was older than ZONE_SETTLE_NS when it was read:
 * a second write within the file system's clock tick may leave no trace. Where the stamp proves nothing, the content's hash does. */
#pragma once
#include "base/base.h"

#define ZONE_SETTLE_NS 2000000000ll /* the coarsest file time in use (FAT); others are far below */
#define ZONE_MAX_SOURCES 1024u	    /* files of one zone, the master file included */

struct zone_stamp {
	uint64_t device, inode, size_bytes;
	int64_t mtime_ns, ctime_ns;
};

struct zone_source {
	struct zone_stamp stamp; /* of the content that was read */
	uint64_t content_hash;	 /* XXH3 */
	bool is_settled;
	uint16_t path_bytes; /* with its NUL */
	char path[];
};

/* The file's stamp now. ERR_NOTFOUND, ERR_DENIED, ERR_UNSUPPORTED (no regular file), ERR_IO. */
MUST_USE enum err zone_stamp_read(struct zone_stamp *out, const char *path);
bool zone_stamp_equal(const struct zone_stamp *a, const struct zone_stamp *b);

/* Reads the whole file, again if it changes meanwhile (ERR_BUSY if it does not stop doing so). *text is the caller's (free), as
 * is *source (free). ERR_NOSPACE: longer than max_bytes; errors of zone_stamp_read; ERR_NOMEM. */
MUST_USE enum err zone_source_read(struct zone_source **source, char **text, const char *path, uint64_t max_bytes);
/* Whether the file still has the content that the source describes: by its stamp, else by its content. False if it can't be read. */
bool zone_source_is_unchanged(const struct zone_stamp *stamp, bool is_settled, uint64_t content_hash, const char *path);
