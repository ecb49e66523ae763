/* SPDX-License-Identifier: Apache-2.0 */
/* slowpath.h: the process skua-slowpath: what its files share.
 *
 * Threads    main: the link, signals, settings (main.c)
 *            loader: owns the zones, publishes them (zone/loader.h)
 *            control: the control protocol (control.c), with workers for its slow verbs
 *            per worker one for UDP and one for TCP (listen/listen.h), and, with recursion, one that resolves (resolve/resolve.h)
 * Start      orders from the supervisor, user and capabilities dropped, the seccomp filter; only then are threads made and
 *            is anything read that a stranger or another process has written. Zones that the supervisor has kept are served before
 *            a file is opened, and before the list of zones is read, which the loader does first. */
#pragma once
#include "base/base.h"
#include "base/control.h"
#include "base/syscall_filter.h"
#include "config/config.h"
#include "slowpath/listen/listen.h"
#include "slowpath/resolve/resolve.h"
#include "slowpath/zone/loader.h"
#include "table/counters.h"
#include "table/policy.h"
#include "table/shared.h"
#include "table/snapshot.h"

#define SLOWPATH_MAX_SOCKETS (LISTEN_MAX_WORKERS * LISTEN_MAX_SOCKETS * 2u)

/* What the supervisor hands over at the start. */
struct handover {
	char *config_text; /* owned, NUL-terminated; without zones */
	int zones_fd;	   /* memfd with the whole text; -1: none came */
	size_t config_bytes;
	char config_path[LINK_TEXT_BYTES];
	struct counters *counters; /* attached, writable */
	struct settings settings;
	int control_fd;
	int policy_fd;		      /* -1: none came */
	struct shared shared;	      /* not attached */
	struct listen_socket *socket; /* owned, their descriptors too */
	size_t socket_count;
	struct publish_kept kept; /* owned, its descriptors too; map_fd -1: nothing was kept */
};

enum handover_result { HANDOVER_GO, HANDOVER_STOP, HANDOVER_BROKEN };
/* Receives the orders up to GO. BROKEN: the link ended, or an order was impossible; *why says it. handover_fini in any case. */
enum handover_result handover_receive(struct handover *h, int link, const char **why);
/* What is kept was served or refused: closes it. */
void handover_drop_kept(struct handover *h);
void handover_fini(struct handover *h);
/* Copies the settings out of a memfd. ERR_DENIED, ERR_CORRUPT with *why. */
MUST_USE enum err handover_settings(struct settings *out, int fd, const char **why);

/* seccomp.c: for syscall_filter_enter, before threads are made. */
extern const struct syscall_list slowpath_syscalls;

/* The control protocol's verbs. */
struct control_context {
	struct zone_store *store;
	struct loader *loader;
	uint64_t started_ns;
	unsigned workers;
	struct resolve *_Atomic *resolve; /* what it points to is NULL without recursion, and before there is a snapshot */
	_Atomic bool is_ready;
};
extern const struct control_verb slowpath_verbs[];
