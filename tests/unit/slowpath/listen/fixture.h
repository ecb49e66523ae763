/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h: what the tests of this folder share: a snapshot without zones (every question gets REFUSED), counters, clients. */
#pragma once
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/bytes.h"
#include "base/clock.h"
#include "table/counters.h"
#include "table/snapshot.h"

#define PATIENCE_MS 3000

struct fixture {
	struct snapshot_holder holder;
	struct counters *counters;
};

static inline struct snapshot *fixture_snapshot(void)
{
	struct zone_set *zones;
	struct snapshot *s;
	struct settings settings;
	settings_defaults(&settings);
	settings.tcp_idle_timeout_100ms = 50;
	cr_assert_eq(zone_set_empty(&zones), ERR_OK);
	cr_assert_eq(snapshot_create(&s, zones, &settings), ERR_OK);
	return s;
}

static inline void fixture_init(struct fixture *f)
{
	int fd;
	memset(f, 0, sizeof *f);
	cr_assert_eq(counters_create(&fd, "test"), ERR_OK);
	cr_assert_eq(counters_attach(&f->counters, fd, true), ERR_OK);
	close(fd);
	snapshot_publish(&f->holder, fixture_snapshot());
}

static inline struct sockaddr_in fixture_v4(const char *text, unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	cr_assert_eq(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

static inline struct sockaddr_in6 fixture_v6(const char *text, unsigned port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	cr_assert_eq(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
	return a;
}

static inline int fixture_socket(const void *address, socklen_t bytes, int type)
{
	int fd = socket(((const struct sockaddr *)address)->sa_family, type, 0), on = 1;
	cr_assert_geq(fd, 0);
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	cr_assert_eq(bind(fd, address, bytes), 0, "bind: %s", strerror(errno));
	if (type == SOCK_STREAM)
		cr_assert_eq(listen(fd, 64), 0);
	return fd;
}

static inline unsigned fixture_port(int fd)
{
	struct sockaddr_in6 a;
	socklen_t bytes = sizeof a;
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &bytes), 0);
	return ntohs(a.sin6_port); /* the same place in both families */
}

/* A query for www.<number>.test A; returns its length. */
static inline size_t fixture_query(uint8_t *out, uint16_t id, unsigned number)
{
	char label[12];
	int digits = snprintf(label, sizeof label, "%u", number);
	uint8_t *p = out;
	memcpy(p, "\0\0\1\0\0\1\0\0\0\0\0\0\3www", 16);
	store_be16(p, id);
	p += 16;
	*p++ = (uint8_t)digits;
	memcpy(p, label, (size_t)digits);
	p += digits;
	memcpy(p, "\4test\0\0\1\0\1", 10);
	return (size_t)(p + 10 - out);
}

/* Whether `reply` refuses `query`: same id, same question, QR, REFUSED. */
static inline bool fixture_is_refusal(const uint8_t *reply, ssize_t reply_bytes, const uint8_t *query, size_t query_bytes)
{
	return reply_bytes >= (ssize_t)query_bytes && memcmp(reply, query, 2) == 0 && (reply[2] & 0x80) && (reply[3] & 15) == 5 &&
	       memcmp(reply + 12, query + 12, query_bytes - 12) == 0;
}

static inline bool fixture_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, timeout_ms) == 1;
}

static inline void fixture_sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

/* Waits until the counter is at least `least`. */
static inline bool fixture_reaches(const struct counter_block *b, enum counter c, uint64_t least)
{
	for (int i = 0; i < PATIENCE_MS / 5; i++) {
		if (counter_get(b, c) >= least)
			return true;
		fixture_sleep_ms(5);
	}
	return false;
}
