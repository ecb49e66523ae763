/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *config_file_path(const char *given, bool *is_default)
{
	const char *environment = getenv("SKUA_CONFIG");

	*is_default = !given && !(environment && *environment);
	return given ? given : *is_default ? CONFIG_FILE_DEFAULT : environment;
}

/* Reads from fd until its end: sizes that stat tells are wrong for pipes and for files that grow. */
static enum err read_all(int fd, size_t max_bytes, size_t guess_bytes, char **text, size_t *text_bytes)
{
	size_t capacity = MIN(guess_bytes, max_bytes) + 2, used = 0;
	char *buffer = malloc(capacity);

	while (buffer) {
		ssize_t got = read(fd, buffer + used, capacity - 1 - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			enum err err = err_from_errno(errno);
			int saved_errno = errno;
			free(buffer);
			errno = saved_errno;
			return err;
		}
		if (got == 0) {
			buffer[used] = '\0';
			*text = buffer;
			*text_bytes = used;
			return ERR_OK;
		}
		used += (size_t)got;
		if (used > max_bytes) {
			free(buffer);
			errno = EFBIG;
			return ERR_RANGE;
		}
		if (used == capacity - 1) {
			char *grown = realloc(buffer, capacity *= 2);
			if (!grown)
				free(buffer);
			buffer = grown;
		}
	}
	errno = ENOMEM;
	return ERR_NOMEM;
}

enum err config_file_read(const char *path, size_t max_bytes, char **text, size_t *text_bytes)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_from_errno(errno);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		errno = EISDIR;
		return ERR_IO;
	}
	enum err err = read_all(fd, max_bytes, (size_t)MAX(st.st_size, 4096), text, text_bytes);
	int saved_errno = errno;
	close(fd);
	errno = saved_errno;
	return err;
}
