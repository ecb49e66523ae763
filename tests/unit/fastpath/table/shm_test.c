/* SPDX-License-Identifier: Apache-2.0 */
#include "table/shm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

Test(shm, made_whole_and_sealed_against_resizing)
{
	int fd;
	struct stat st;
	cr_assert_eq(shm_create(&fd, "t", 10000), ERR_OK);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_size, 10000);
	cr_expect_geq(st.st_blocks * 512, 10000, "every page is allocated");
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(shm_is_sealed(fd, false));
	cr_expect_not(shm_is_sealed(fd, true));
	cr_expect_eq(ftruncate(fd, 5000), -1);
	cr_expect_eq(ftruncate(fd, 20000), -1);
	close(fd);
}

Test(shm, impossible_sizes_are_refused_and_leave_fd_alone)
{
	int fd = 77;
	cr_expect_eq(shm_create(&fd, "t", 0), ERR_ARGUMENT);
	cr_expect_eq(shm_create(&fd, "t", SIZE_MAX), ERR_NOMEM);
	cr_expect_eq(shm_create(&fd, "t", (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE)), ERR_NOMEM);
	cr_expect_eq(fd, 77);
}

Test(shm, sealed_against_writing_for_good)
{
	int fd;
	void *map;
	const void *read_only;
	size_t bytes;
	cr_assert_eq(shm_create(&fd, "t", 4096), ERR_OK);
	cr_assert_eq(shm_map_writable(&map, &bytes, fd), ERR_OK);
	cr_expect_eq(bytes, 4096);
	memcpy(map, "hello", 5);
	cr_expect_eq(shm_seal(fd), ERR_BUSY, "a writable mapping exists");
	shm_unmap(map, bytes);
	cr_expect_eq(shm_seal(fd), ERR_OK);
	cr_expect(shm_is_sealed(fd, true));
	cr_expect_neq(shm_map_writable(&map, &bytes, fd), ERR_OK);
	cr_expect_eq(write(fd, "x", 1), -1);
	cr_assert_eq(shm_map(&read_only, &bytes, fd), ERR_OK, "sealed memory is there to be read");
	cr_expect_eq(memcmp(read_only, "hello", 5), 0);
	cr_expect_eq(mprotect((void *)read_only, bytes, PROT_READ | PROT_WRITE), -1);
	shm_unmap(read_only, bytes);
	close(fd);
}

Test(shm, grown_then_cut_then_sealed)
{
	int fd;
	cr_assert_eq(shm_create_growing(&fd, "t"), ERR_OK);
	cr_expect_not(shm_is_sealed(fd, false));
	cr_expect_eq(ftruncate(fd, 1 << 20), 0);
	cr_expect_eq(ftruncate(fd, 4096), 0);
	cr_expect_eq(shm_seal(fd), ERR_OK);
	cr_expect(shm_is_sealed(fd, true));
	close(fd);
}

Test(shm, only_memfds_with_all_seals_are_sealed)
{
	char path[] = "/tmp/skua-shm-test-XXXXXX";
	int file = mkstemp(path), pipes[2];
	const void *map;
	size_t bytes;
	cr_assert_geq(file, 0);
	unlink(path);
	cr_assert_eq(pipe(pipes), 0);
	cr_expect_not(shm_is_sealed(file, false), "a plain file has no seals");
	cr_expect_not(shm_is_sealed(pipes[0], false));
	cr_expect_not(shm_is_sealed(-1, false));
	cr_expect_eq(shm_map(&map, &bytes, file), ERR_ARGUMENT, "an empty file");
	cr_expect_eq(shm_map(&map, &bytes, pipes[0]), ERR_ARGUMENT, "no file at all");
	cr_expect_neq(shm_map(&map, &bytes, -1), ERR_OK);
	int shrinkable = memfd_create("t", MFD_ALLOW_SEALING);
	cr_assert_eq(ftruncate(shrinkable, 4096), 0);
	cr_assert_eq(fcntl(shrinkable, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_WRITE), 0);
	cr_expect_not(shm_is_sealed(shrinkable, true), "it may still shrink under a reader");
	close(shrinkable);
	close(file);
	close(pipes[0]);
	close(pipes[1]);
}

Test(shm, the_owner_writes_and_readers_see_it)
{
	int fd;
	void *owner;
	const void *reader;
	size_t bytes;
	cr_assert_eq(shm_create(&fd, "t", 4096), ERR_OK);
	cr_assert_eq(shm_map_writable(&owner, &bytes, fd), ERR_OK);
	cr_assert_eq(shm_map(&reader, &bytes, fd), ERR_OK);
	*(volatile int *)owner = 42;
	cr_expect_eq(*(volatile const int *)reader, 42);
	shm_unmap(owner, bytes);
	shm_unmap(reader, bytes);
	shm_unmap(NULL, 0);
	close(fd);
}

Test(shm, a_copy_holds_the_bytes_and_can_be_changed_until_it_is_sealed)
{
	static uint8_t bytes[10001];
	int fd;
	void *map;
	const void *reader;
	size_t got;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	cr_assert_eq(shm_create_copy(&fd, "copy", bytes, 0), ERR_ARGUMENT);
	cr_assert_eq(shm_create_copy(&fd, "copy", bytes, sizeof(bytes)), ERR_OK);
	cr_expect(shm_is_sealed(fd, false) && !shm_is_sealed(fd, true));
	cr_expect_neq(ftruncate(fd, 5), 0);
	cr_assert_eq(shm_map_sparse(&map, &got, fd), ERR_OK);
	cr_expect_eq(got, sizeof(bytes));
	((uint8_t *)map)[5000] = bytes[5000] = 99;
	cr_expect_eq(shm_seal(fd), ERR_BUSY);
	shm_unmap(map, got);
	cr_assert_eq(shm_seal(fd), ERR_OK);
	cr_assert_eq(shm_map(&reader, &got, fd), ERR_OK);
	cr_expect_arr_eq(reader, bytes, sizeof(bytes));
	shm_unmap(reader, got);
	close(fd);
}

/* --- huge pages --------------------------------------------------------------------------------------------------------- */

#define LARGE_BYTES ((9u << 20) + 12345)
#define LARGE_HUGE_KIB (8u << 10) /* its whole huge pages */

/* One line of /proc/self/smaps for the mapping that begins at map, in KiB. */
static unsigned long smaps_kib(const void *map, const char *line)
{
	char text[512], start[32];
	unsigned long kib = 0;
	bool is_ours = false;
	FILE *smaps = fopen("/proc/self/smaps", "r");
	cr_assert(smaps);
	snprintf(start, sizeof(start), "%lx-", (unsigned long)(uintptr_t)map);
	while (fgets(text, sizeof(text), smaps)) {
		if (strncmp(text, start, strlen(start)) == 0)
			is_ours = true;
		else if (is_ours && strncmp(text, line, strlen(line)) == 0) {
			kib = strtoul(text + strlen(line), NULL, 10);
			break;
		}
	}
	fclose(smaps);
	return kib;
}

/* Whether this kernel makes huge pages of a memfd's, found out without shm.c. */
static bool has_huge_pages(void)
{
	size_t huge = 2u << 20;
	int fd = memfd_create("probe", MFD_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)huge), 0);
	uint8_t *room = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(room, MAP_FAILED);
	uint8_t *at = (uint8_t *)(((uintptr_t)room + huge - 1) & ~(uintptr_t)(huge - 1));
	cr_assert_eq(mmap(at, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), at);
	at[0] = 1;
	bool can = madvise(at, huge, 25 /* MADV_COLLAPSE */) == 0;
	munmap(room, 2 * huge);
	close(fd);
	return can;
}

static void expect_huge(const void *map, const char *what)
{
	cr_expect_eq((uintptr_t)map % (2u << 20), 0, "%s: address", what);
	if (has_huge_pages())
		cr_expect_eq(smaps_kib(map, "ShmemPmdMapped:"), LARGE_HUGE_KIB, "%s: %lu KiB", what,
			     smaps_kib(map, "ShmemPmdMapped:"));
}

Test(shm, large_memory_is_of_huge_pages_for_writer_and_readers)
{
	int fd;
	struct stat st;
	void *map;
	const void *read_only;
	size_t bytes;
	cr_assert_eq(shm_create(&fd, "t", LARGE_BYTES), ERR_OK);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_blocks * 512, (LARGE_BYTES + 4095) / 4096 * 4096, "and takes no more than small ones would");
	cr_assert_eq(shm_map_writable(&map, &bytes, fd), ERR_OK);
	cr_expect_eq(bytes, LARGE_BYTES);
	expect_huge(map, "writer");
	for (size_t i = 0; i < bytes; i++)
		cr_assert_eq(((uint8_t *)map)[i], 0, "octet %zu", i);
	memset(map, 'x', bytes);
	shm_unmap(map, bytes);
	cr_assert_eq(shm_seal(fd), ERR_OK);
	pid_t child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) { /* another process, with a descriptor that can't write */
		char path[64];
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		int reader = open(path, O_RDONLY | O_CLOEXEC);
		if (reader < 0 || shm_map(&read_only, &bytes, reader) != ERR_OK || ((const uint8_t *)read_only)[bytes - 1] != 'x')
			_exit(1);
		_exit(has_huge_pages() && smaps_kib(read_only, "ShmemPmdMapped:") != LARGE_HUGE_KIB ? 2 : 0);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "reader: %d", WEXITSTATUS(status));
	close(fd);
}

Test(shm, nothing_but_the_mapping_is_left_of_the_room_for_it)
{
	int fd;
	const void *map[8];
	size_t bytes;
	cr_assert_eq(shm_create(&fd, "t", LARGE_BYTES), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(map); i++)
		cr_assert_eq(shm_map(&map[i], &bytes, fd), ERR_OK);
	size_t mapped = (LARGE_BYTES + 4095) / 4096 * 4096;
	for (size_t i = 0; i < ARRAY_LEN(map); i++) {
		unsigned char page;
		cr_expect_eq(mincore((uint8_t *)map[i] + mapped - 4096, 4096, &page), 0);
		shm_unmap(map[i], bytes);
		cr_expect_eq(mincore((uint8_t *)map[i] + mapped - 4096, 4096, &page), -1, "the last page has gone");
		cr_expect_eq(errno, ENOMEM);
		cr_expect_eq(mincore((uint8_t *)map[i], 4096, &page), -1, "and the first one");
	}
	close(fd);
}

Test(shm, a_large_copy_is_the_same_and_of_huge_pages)
{
	uint8_t *from = malloc(LARGE_BYTES);
	const void *map;
	size_t bytes;
	int fd;
	cr_assert(from);
	for (size_t i = 0; i < LARGE_BYTES; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 13);
	cr_assert_eq(shm_create_copy(&fd, "t", from, LARGE_BYTES), ERR_OK);
	cr_expect(shm_is_sealed(fd, false));
	cr_assert_eq(shm_map(&map, &bytes, fd), ERR_OK);
	cr_expect_eq(bytes, LARGE_BYTES);
	cr_expect_eq(memcmp(map, from, bytes), 0);
	expect_huge(map, "copy");
	shm_unmap(map, bytes);
	free(from);
	close(fd);
}

Test(shm, grown_step_by_step_with_what_is_there_left_alone)
{
	int fd;
	void *map;
	size_t bytes;
	struct stat st;
	cr_assert_eq(shm_create_growing(&fd, "t"), ERR_OK);
	cr_assert_eq(ftruncate(fd, 16 << 20), 0);
	cr_assert_eq(shm_map_sparse(&map, &bytes, fd), ERR_OK);
	for (size_t at = 0, to; at < bytes; at = to) {
		to = at < (3u << 20) ? at + (700u << 10) : MIN(bytes, at + (3u << 20));
		cr_assert_eq(shm_allocate(fd, map, at, to), ERR_OK);
		memset((uint8_t *)map + at, (int)(at >> 10), to - at);
		cr_assert_eq(fstat(fd, &st), 0);
		cr_expect_geq(st.st_blocks * 512, (off_t)to, "every page up to %zu", to);
		cr_expect_lt(st.st_blocks * 512, (off_t)to + (2 << 20), "and none beyond %zu", to);
	}
	for (size_t at = 0, to; at < bytes; at = to) {
		to = at < (3u << 20) ? at + (700u << 10) : MIN(bytes, at + (3u << 20));
		for (size_t i = at; i < to; i++)
			cr_assert_eq(((uint8_t *)map)[i], (uint8_t)(at >> 10), "octet %zu", i);
	}
	shm_unmap(map, bytes);
	cr_assert_eq(ftruncate(fd, LARGE_BYTES), 0);
	cr_assert_eq(shm_seal(fd), ERR_OK);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_blocks * 512, (LARGE_BYTES + 4095) / 4096 * 4096, "cut off is given back");
	close(fd);
}
