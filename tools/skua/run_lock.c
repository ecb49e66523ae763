/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum err run_lock_folder(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part) {
		errno = ENAMETOOLONG;
		return ERR_RANGE;
	}
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			return err_from_errno(errno);
		*slash = '/';
	}
	if (mkdir(part, mode) != 0 && errno != EEXIST)
		return err_from_errno(errno);
	if (stat(part, &st) != 0)
		return err_from_errno(errno);
	if (!S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		return ERR_EXISTS;
	}
	return ERR_OK;
}

static pid_t read_holder(int fd)
{
	char text[16] = "";
	ssize_t bytes = pread(fd, text, sizeof text - 1, 0);

	return bytes > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

enum err run_lock_take(int *fd, const char *run_dir, pid_t *holder)
{
	char path[PATH_MAX], text[16];
	int lock;

	if ((size_t)snprintf(path, sizeof path, "%s/skua.lock", run_dir) >= sizeof path) {
		errno = ENAMETOOLONG;
		return ERR_RANGE;
	}
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (lock < 0)
		return err_from_errno(errno);
	if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
		enum err err = errno == EWOULDBLOCK ? ERR_BUSY : err_from_errno(errno);
		*holder = read_holder(lock);
		close(lock);
		return err;
	}
	*holder = read_holder(lock);
	int bytes = snprintf(text, sizeof text, "%d\n", (int)getpid());
	if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)bytes, 0) != bytes) {
		enum err err = err_from_errno(errno);
		close(lock);
		return err;
	}
	*fd = lock;
	return ERR_OK;
}

void run_lock_give(int fd)
{
	(void)!ftruncate(fd, 0);
	close(fd);
}
