/* SPDX-License-Identifier: Apache-2.0 */
#include "table/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static int make_memfd(const char *label)
{
	int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* an older kernel */
		fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

/* The kernel would begin to allocate any size, and end by killing somebody. */
static bool is_beyond_memory(size_t size_bytes)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	return pages <= 0 || page_bytes <= 0 || size_bytes / (size_t)page_bytes >= (size_t)pages;
}

enum err shm_create(int *fd, const char *label, size_t size_bytes)
{
	if (size_bytes == 0)
		return ERR_ARGUMENT;
	if (is_beyond_memory(size_bytes))
		return ERR_NOMEM;
	int made = make_memfd(label);
	if (made < 0)
		return err_from_errno(errno);
	int r = ftruncate(made, (off_t)size_bytes);
	while (r == 0 && (r = fallocate(made, 0, 0, (off_t)size_bytes)) < 0 && errno == EINTR)
		r = 0;
	if (r < 0 || fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		enum err err = err_from_errno(errno);
		close(made);
		return err;
	}
	*fd = made;
	return ERR_OK;
}

static enum err write_all(int fd, const uint8_t *bytes, size_t size_bytes)
{
	for (size_t at = 0; at < size_bytes;) { /* ends: every turn writes something or returns, but for signals */
		ssize_t n = write(fd, bytes + at, size_bytes - at);
		if (n == 0)
			return ERR_NOSPACE;
		if (n < 0 && errno != EINTR)
			return err_from_errno(errno);
		at += n > 0 ? (size_t)n : 0;
	}
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ? err_from_errno(errno) : ERR_OK;
}

enum err shm_create_copy(int *fd, const char *label, const void *bytes, size_t size_bytes)
{
	if (size_bytes == 0)
		return ERR_ARGUMENT;
	int made = make_memfd(label);
	if (made < 0)
		return err_from_errno(errno);
	enum err err = write_all(made, bytes, size_bytes);
	if (err != ERR_OK) {
		close(made);
		return err;
	}
	*fd = made;
	return ERR_OK;
}

enum err shm_create_growing(int *fd, const char *label)
{
	int made = make_memfd(label);
	if (made < 0)
		return err_from_errno(errno);
	*fd = made;
	return ERR_OK;
}

enum err shm_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ? err_from_errno(errno)
												    : ERR_OK;
}

bool shm_is_sealed(int fd, bool write)
{
	int seals = fcntl(fd, F_GET_SEALS);
	int wanted = F_SEAL_SHRINK | F_SEAL_GROW | (write ? F_SEAL_WRITE : 0);
	return seals >= 0 && (seals & wanted) == wanted;
}

static enum err map_all(void **out, size_t *size_bytes, int fd, int protection, int populate)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_from_errno(errno);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return ERR_ARGUMENT;
	size_t bytes = (size_t)st.st_size;
	void *map = mmap(NULL, bytes, protection, MAP_SHARED | populate, fd, 0);
	/* Until Linux 6.7 a write-sealed memfd can't be mapped shared, not even for reading. Private read-only pages are the
	 * same pages. */
	if (map == MAP_FAILED && errno == EPERM && !(protection & PROT_WRITE))
		map = mmap(NULL, bytes, protection, MAP_PRIVATE | populate, fd, 0);
	if (map == MAP_FAILED)
		return err_from_errno(errno);
	*out = map;
	*size_bytes = bytes;
	return ERR_OK;
}

enum err shm_map(const void **out, size_t *size_bytes, int fd)
{
	void *map;
	enum err err = map_all(&map, size_bytes, fd, PROT_READ, MAP_POPULATE);
	if (err == ERR_OK)
		*out = map;
	return err;
}

enum err shm_map_sparse(void **out, size_t *size_bytes, int fd)
{
	return map_all(out, size_bytes, fd, PROT_READ | PROT_WRITE, 0);
}
enum err shm_map_writable(void **out, size_t *size_bytes, int fd)
{
	return map_all(out, size_bytes, fd, PROT_READ | PROT_WRITE, MAP_POPULATE);
}

void shm_unmap(const void *map, size_t size_bytes)
{
	if (map)
		munmap((void *)map, size_bytes);
}
