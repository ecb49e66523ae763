/* SPDX-License-Identifier: Apache-2.0 */
#include "table/shm.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
