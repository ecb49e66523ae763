/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_link.h: for fuzzers of what takes link messages: a list of well-formed messages in any order, with any numbers and any
 * kind of descriptor. How a message itself may be malformed is link_fuzz.c's affair.
 *
 * Input      an octet: how many messages (modulo HOSTILE_MESSAGES_MAX + 1)
 *            each: type, kind of descriptor, a, b, generation, text: six octets
 *            the rest: the content of HOSTILE_PAYLOAD descriptors */
#pragma once
#include "base/link.h"
#include "table/counters.h"
#include "table/policy.h"
#include "table/settings.h"
#include "table/shared.h"
#include "table/shm.h"
#include "tests/unit/lib/open_fds.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define HOSTILE_MESSAGES_MAX 24u
#define HOSTILE_RECORD_BYTES 6u

enum hostile_kind {
	HOSTILE_RIGHT, /* what belongs to the type */
	HOSTILE_PAYLOAD,
	HOSTILE_PAYLOAD_UNSEALED,
	HOSTILE_EMPTY,
	HOSTILE_HUGE, /* sparse */
	HOSTILE_NULL,
	HOSTILE_SOCKET,
	HOSTILE_PIPE,
	HOSTILE_KIND_COUNT_
};

struct hostile_input {
	const uint8_t *record;
	unsigned records;
	const uint8_t *payload;
	size_t payload_bytes;
};

static inline bool hostile_input(struct hostile_input *out, const uint8_t *data, size_t size)
{
	if (size < 1)
		return false;
	out->records = MIN(data[0] % (HOSTILE_MESSAGES_MAX + 1), (unsigned)((size - 1) / HOSTILE_RECORD_BYTES));
	out->record = data + 1;
	out->payload = out->record + (size_t)out->records * HOSTILE_RECORD_BYTES;
	out->payload_bytes = size - 1 - (size_t)out->records * HOSTILE_RECORD_BYTES;
	return true;
}

static inline int hostile_memfd(const void *bytes, size_t size, bool is_sealed)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ASSERT(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	if (is_sealed)
		ASSERT(shm_seal(fd) == ERR_OK);
	return fd;
}

/* What table/shared.h and table/policy.h attach, made once: call it before descriptors are counted. -1: another type. */
static inline int hostile_shared_fd(uint32_t type)
{
	static int cache = -1, marks = -1, rings = -1, logs = -1, policy = -1;
	size_t bad;

	if (cache < 0) {
		const struct policy_group group = { 0 };
		ASSERT(cache_create(&cache, CACHE_MIN_BYTES) == ERR_OK && cache_marks_create(&marks, cache, 1) == ERR_OK &&
		       ring_set_create(&rings, 1, 1, RING_MIN_BYTES, RING_MIN_BYTES) == ERR_OK &&
		       log_ring_create(&logs, 1, "fuzz") == ERR_OK && policy_create(&policy, &group, 1, NULL, 0, &bad) == ERR_OK);
	}
	switch (type) {
	case LINK_CACHE: return dup(cache);
	case LINK_MARKS: return dup(marks);
	case LINK_RINGS: return dup(rings);
	case LINK_LOG: return dup(logs);
	case LINK_POLICY: return dup(policy);
	default: return -1;
	}
}

static inline int hostile_fd(enum hostile_kind kind, const struct hostile_input *in, int (*right_fd)(uint32_t type),
			     uint32_t type)
{
	int fd, pair[2];

	switch (kind) {
	case HOSTILE_RIGHT: return right_fd(type);
	case HOSTILE_PAYLOAD: return hostile_memfd(in->payload, in->payload_bytes, true);
	case HOSTILE_PAYLOAD_UNSEALED: return hostile_memfd(in->payload, in->payload_bytes, false);
	case HOSTILE_EMPTY: return hostile_memfd("", 0, true);
	case HOSTILE_HUGE:
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		ASSERT(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0);
		return fd;
	case HOSTILE_SOCKET: return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	case HOSTILE_PIPE:
		ASSERT(pipe2(pair, O_CLOEXEC) == 0);
		close(pair[1]);
		return pair[0];
	default: return open("/dev/null", O_RDWR | O_CLOEXEC);
	}
}

/* Sends message i; a type that carries no descriptor goes without. False when the queue is full. */
static inline bool hostile_send(int link, const struct hostile_input *in, unsigned i, int (*right_fd)(uint32_t type))
{
	const uint8_t *r = in->record + (size_t)i * HOSTILE_RECORD_BYTES;
	/* Small numbers are the ones that mean something; the last of an octet are the largest. */
	struct link_msg m = { .type = 1 + r[0] % (LINK_TYPE_COUNT_ - 1),
			      .a = r[2] < 250 ? r[2] : UINT32_MAX - (255 - r[2]),
			      .b = r[3] < 250 ? r[3] : UINT32_MAX - (255 - r[3]),
			      .generation = r[4] < 250 ? r[4] : UINT64_MAX - (255 - r[4]) };
	int fd = hostile_fd((enum hostile_kind)(r[1] % HOSTILE_KIND_COUNT_), in, right_fd, m.type);

	snprintf(m.text, sizeof m.text, "%*s", r[5], "x");
	enum err err = link_send(link, &m, fd);
	if (err == ERR_ARGUMENT)
		err = link_send(link, &m, -1);
	if (fd >= 0)
		close(fd);
	return err == ERR_OK;
}

static inline int hostile_settings_fd(void)
{
	struct settings s;

	settings_defaults(&s);
	return hostile_memfd(&s, sizeof s, true);
}

static inline int hostile_counters_fd(void)
{
	int fd;

	ASSERT(counters_create(&fd, "fuzz") == ERR_OK);
	return fd;
}
