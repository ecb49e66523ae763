/* SPDX-License-Identifier: Apache-2.0 */
/* link.h: the supervisor's private link to each part: SOCK_SEQPACKET, one struct link_msg a packet, at most one descriptor.
 *
 * `skua run` makes every shared object and hands it over; parts keep nothing that they could lose. The order at start is
 *   CONFIG, COUNTERS, SETTINGS, CONTROL, POLICY, LOG, then, where recursion is configured, CACHE, MARKS, WAKE*, RINGS, then ZONES, LISTEN* (slowpath) or XSKMAP* (fastpath), then SEGMENT*, MAP (if there are any), GO.
 * The slowpath publishes by sending SEGMENT and MAP itself; the supervisor keeps them, so that a part that starts later
 * gets them at once, passes them to the other part, and returns every part's LIVE to the slowpath.
 * Both ends treat the other as hostile: unknown types, wrong lengths and unexpected descriptors end the link (ERR_MALFORMED).
 * A part whose link ends must exit (code 0 after STOP, LINK_EXIT_ORPHANED otherwise).
 *
 * Verified   Sealed memory can't change, so what one process has verified need not be verified by the next one: SEGMENT.b and MAP.b
 *            tell a part that starts that a process of the same part and the same program has reported LIVE with exactly that
 *            descriptor. Only the supervisor says so, of what it has kept itself; what the slowpath writes there is not passed on,
 *            and its LIVE counts for the slowpath only. A part that ends before it is READY loses all that it had reported. */
#pragma once
#include "base/base.h"

#define LINK_FD 3 /* inherited by every part */
#define LINK_MAGIC 0x4c4b5653u
#define LINK_TEXT_BYTES 256
#define LINK_VERIFIED 1u

enum link_type {
	/* supervisor to part */
	LINK_CONFIG = 1, /* fd: memfd with the text of skua.yaml, its zones left out; text: its path, for messages */
	LINK_COUNTERS,	 /* fd: this part's counters (table/counters.h) */
	LINK_SETTINGS,	 /* fd: table/settings.h; may come again at any time */
	LINK_CONTROL,	 /* fd: listening unix socket for the control protocol */
	LINK_LISTEN,	 /* fd: bound socket; a: enum link_listen; b: worker index; text: "address port" */
	LINK_XSKMAP,	 /* fd: XSKMAP of one interface; a: ifindex; b: enum xdp mode asked for; text: interface name */
	LINK_GO,	 /* everything that the start needs was sent */
	LINK_STOP,	 /* finish and exit 0 */
	LINK_PARKED, /* a: ifindex, b: queue: its XSKMAP slot was cleared since the heartbeat was late; put it back when it beats */
	/* both ways */
	LINK_SEGMENT,	   /* fd: sealed segment (table/zone_set.h); a: its id; b: LINK_VERIFIED or 0 */
	LINK_SEGMENT_DROP, /* a: id: no later map names it */
	LINK_MAP,	   /* fd: sealed zone map; generation; b: LINK_VERIFIED or 0, of the map over the segments sent before */
	/* part to supervisor (LIVE also back to the slowpath) */
	LINK_READY,  /* serving */
	LINK_LIVE,   /* generation: every serving thread has left older ones; a: enum link_part */
	LINK_FAILED, /* about to exit; a: enum link_exit; text: why */
	/* supervisor to slowpath */
	LINK_ZONES, /* fd: memfd with the whole text of skua.yaml: long to read, and not needed to serve what was kept */
	/* supervisor to part: what table/shared.h and table/policy.h attach */
	LINK_POLICY, /* fd: sealed policy image; may come again at any time */
	LINK_LOG,    /* fd: log rings of this part (table/log_ring.h) */
	LINK_CACHE,  /* fd: the answer cache; for the fastpath O_RDONLY */
	LINK_MARKS,  /* fd: mark arrays of all readers; a: the first of this part's */
	LINK_WAKE,   /* fd: eventfd; a: enum link_wake; b: index, from 0 without gaps */
	LINK_RINGS,  /* fd: table/ring.h, a pair for each fastpath thread and worker */
	LINK_TYPE_COUNT_
};
enum link_listen { LINK_LISTEN_UDP, LINK_LISTEN_TCP };
enum link_wake { LINK_WAKE_WORKER, LINK_WAKE_THREAD };
enum link_part { LINK_PART_FASTPATH, LINK_PART_SLOWPATH, LINK_PART_COUNT_ };
/* Exit codes of parts. */
enum link_exit {
	LINK_EXIT_OK = 0,
	LINK_EXIT_FAILURE = 1,
	LINK_EXIT_CONFIG = 2,
	LINK_EXIT_ORPHANED = 10,
	LINK_EXIT_REBIND = 11 /* a socket must be bound again: start me afresh, without back-off */
};

struct link_msg {
	uint32_t magic, type;
	uint32_t a, b;
	uint64_t generation;
	char text[LINK_TEXT_BYTES]; /* NUL-terminated */
};

/* Sends msg (magic is filled in) with fd (or -1). ERR_AGAIN when the queue is full and the link is non-blocking; ERR_CLOSED. */
MUST_USE enum err link_send(int link, struct link_msg *msg, int fd);
/* Receives one message; *fd is the caller's, -1 if none; close-on-exec. ERR_AGAIN, ERR_CLOSED, ERR_MALFORMED. */
MUST_USE enum err link_receive(int link, struct link_msg *msg, int *fd);
const char *link_type_text(uint32_t type);
