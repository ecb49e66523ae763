/* SPDX-License-Identifier: Apache-2.0 */
/* shm.h: memfds: made whole (a hole or a truncation would be a SIGBUS in a reader), sealed, mapped.
 *
 * Huge pages   Memory of SHM_HUGE_MIN_BYTES or more is made of pages of 2 MiB as far as the kernel can (MADV_COLLAPSE, Linux 6.1, whatever
 *              shmem_enabled says), and mapped so that the page tables say so too: answers from a large zone would else spend their time on
 *              TLB misses. It takes no more memory: what is left behind the last whole one are small pages. Where there are none, small
 *              ones do; nobody is told. */
#pragma once
#include "base/base.h"

#define SHM_HUGE_MIN_BYTES ((size_t)4 << 20)

/* A memfd of exactly size_bytes with every page allocated (ERR_NOSPACE/ERR_NOMEM if they can't be; ERR_NOMEM at once
 * for more than the machine has), sealed against
 * shrinking and growing. Close-on-exec. *fd is the caller's. */
MUST_USE enum err shm_create(int *fd, const char *label, size_t size_bytes);
/* The same, filled with a copy of these bytes: less work than mapping it and copying, since small pages are not cleared first. */
MUST_USE enum err shm_create_copy(int *fd, const char *label, const void *bytes, size_t size_bytes);
/* An empty memfd for a writer that does not know the size yet: it grows it by ftruncate and shm_allocate, then cuts it to size and
 * calls shm_seal. Not sealed at all. */
MUST_USE enum err shm_create_growing(int *fd, const char *label);
/* Gives pages to the octets [from, to) of such a one, which lie within its size, and maps them. map: all of it, by shm_map_sparse.
 * from is a multiple of the page size. What is in them already stays. ERR_NOSPACE, ERR_NOMEM. */
MUST_USE enum err shm_allocate(int fd, void *map, size_t from, size_t to);
/* Seals against resizing, writing and further seals: no writable mapping may exist any more (ERR_BUSY). */
MUST_USE enum err shm_seal(int fd);
/* Whether fd is a memfd that can neither be resized nor (if `write`) written. */
bool shm_is_sealed(int fd, bool write);
/* Maps all of fd, populated. *size_bytes from fstat. */
MUST_USE enum err shm_map(const void **out, size_t *size_bytes, int fd);
MUST_USE enum err shm_map_writable(void **out, size_t *size_bytes, int fd);
/* Not populated: for changes here and there in what shm_create_copy has made, and for growing ones. */
MUST_USE enum err shm_map_sparse(void **out, size_t *size_bytes, int fd);
void shm_unmap(const void *map, size_t size_bytes);
