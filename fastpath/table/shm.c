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
#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

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

/* Maps large files so that their huge pages are huge in the page table too: where address and offset agree modulo 2 MiB. */
static void *map_aligned(size_t bytes, int protection, int flags, int fd)
{
	if (bytes < SHM_HUGE_MIN_BYTES)
		return mmap(NULL, bytes, protection, flags, fd, 0);
	uint8_t *room = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return mmap(NULL, bytes, protection, flags, fd, 0);
	size_t before = -(uintptr_t)room & (HUGE_PAGE_BYTES - 1), page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t mapped_bytes = (bytes + page_bytes - 1) & ~(page_bytes - 1);
	void *map = mmap(room + before, bytes, protection, flags | MAP_FIXED, fd, 0);
	int saved = errno;
	if (map == MAP_FAILED) {
		munmap(room, bytes + HUGE_PAGE_BYTES);
		errno = saved;
		return MAP_FAILED;
	}
	if (before)
		munmap(room, before);
	if (room + before + mapped_bytes < room + bytes + HUGE_PAGE_BYTES)
		munmap(room + before + mapped_bytes, (size_t)(room + bytes + HUGE_PAGE_BYTES - (room + before + mapped_bytes)));
	return map;
}

static enum err allocate(int fd, size_t from, size_t to)
{
	while (to > from && fallocate(fd, 0, (off_t)from, (off_t)(to - from)) < 0)
		if (errno != EINTR)
			return err_from_errno(errno);
	return ERR_OK;
}

/* Makes the whole huge pages inside [from, to) so, as far as the kernel can. It fills them up itself, but does not begin with nothing:
 * each gets one small page first. A huge page is cleared at once, so this takes a fifth of the time that small pages take. */
static enum err allocate_huge(int fd, uint8_t *map, size_t from, size_t to)
{
	size_t begin = (from + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1), end = to & ~(HUGE_PAGE_BYTES - 1);
	for (size_t at = begin; at < end; at += HUGE_PAGE_BYTES) {
		enum err err = allocate(fd, at, at + 1);
		if (err != ERR_OK)
			return err;
	}
	if (begin < end)
		(void)madvise(map + begin, end - begin, MADV_COLLAPSE); /* ends at the first one for which there is no memory */
	return ERR_OK;
}

/* Pages for a part of the mapping, made and mapped in one go: a fault for each would take longer than all else that happens to them. */
static enum err populate(int fd, uint8_t *map, size_t from, size_t to)
{
	while (madvise(map + from, to - from, MADV_POPULATE_WRITE) < 0) {
		if (errno == EFAULT) /* instead of a SIGBUS */
			return ERR_NOSPACE;
		if (errno == EINVAL) /* before Linux 5.14 */
			return allocate(fd, from, to);
		if (errno != EINTR && errno != EAGAIN)
			return err_from_errno(errno);
	}
	return ERR_OK;
}

enum err shm_allocate(int fd, void *map, size_t from, size_t to)
{
	enum err err = to >= SHM_HUGE_MIN_BYTES ? allocate_huge(fd, map, from, to) : ERR_OK;
	return err == ERR_OK ? populate(fd, map, from, to) : err;
}

/* Sizes a new memfd and gives it its pages. */
static enum err make_whole(int fd, size_t size_bytes)
{
	if (ftruncate(fd, (off_t)size_bytes) < 0)
		return err_from_errno(errno);
	if (size_bytes < SHM_HUGE_MIN_BYTES)
		return allocate(fd, 0, size_bytes);
	void *map = map_aligned(size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	if (map == MAP_FAILED)
		return allocate(fd, 0, size_bytes);
	enum err err = allocate_huge(fd, map, 0, size_bytes);
	munmap(map, size_bytes);
	return err == ERR_OK ? allocate(fd, 0, size_bytes) : err;
}

/* Against resizing. Closes it on failure. */
static enum err seal_size(int *fd, int made, enum err err)
{
	if (err == ERR_OK && fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		err = err_from_errno(errno);
	if (err == ERR_OK)
		*fd = made;
	else
		close(made);
	return err;
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
	return seal_size(fd, made, make_whole(made, size_bytes));
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
	return ERR_OK;
}

enum err shm_create_copy(int *fd, const char *label, const void *bytes, size_t size_bytes)
{
	if (size_bytes == 0)
		return ERR_ARGUMENT;
	int made = make_memfd(label);
	if (made < 0)
		return err_from_errno(errno);
	/* Small pages are not cleared before they are written, huge ones are worth it. */
	enum err err = size_bytes < SHM_HUGE_MIN_BYTES ? ERR_OK : make_whole(made, size_bytes);
	return seal_size(fd, made, err == ERR_OK ? write_all(made, bytes, size_bytes) : err);
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
	void *map = map_aligned(bytes, protection, MAP_SHARED | populate, fd);
	/* Until Linux 6.7 a write-sealed memfd can't be mapped shared, not even for reading. Private read-only pages are the
	 * same pages. */
	if (map == MAP_FAILED && errno == EPERM && !(protection & PROT_WRITE))
		map = map_aligned(bytes, protection, MAP_PRIVATE | populate, fd);
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
