/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define RELOAD_TIMEOUT_MS 3600000 /* large zones take their time */

enum poll_slot {
	POLL_SIGNAL,
	POLL_TIMER,
	POLL_CONTROL,
	POLL_ADDRESSES,
	POLL_PART,
	POLL_COUNT = POLL_PART + 2 * LINK_PART_COUNT_
};

/* --- reload: the only thing that takes long ------------------------------------------------------------------------- */

static void reload_once(struct run *r)
{
	char path[PATH_MAX];
	struct control_error error = { 0 };
	json_t *result = NULL;

	snprintf(path, sizeof path, "%s/slowpath.sock", r->config->server.run);
	if (control_call(path, "reload", NULL, RELOAD_TIMEOUT_MS, &result, &error) != ERR_OK) {
		log_write(M_RUN_RELOAD_FAILED, "reload: %s", error.message);
		return;
	}
	json_decref(result);
	log_write(M_RUN_RELOADED, "zones are reloaded");
}

static void *reload_thread(void *user)
{
	struct run *r = user;

	do {
		atomic_store(&r->reload_again, false);
		reload_once(r);
	} while (atomic_load(&r->reload_again));
	atomic_store(&r->is_reloading, false);
	return NULL;
}

/* A SIGHUP during a reload asks for another one after it: files may have changed since they were read. */
static void reload(struct run *r)
{
	pthread_t thread;
	pthread_attr_t attributes;

	atomic_store(&r->reload_again, true);
	if (atomic_exchange(&r->is_reloading, true))
		return;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int failed = pthread_create(&thread, &attributes, reload_thread, r);
	pthread_attr_destroy(&attributes);
	if (failed) {
		atomic_store(&r->is_reloading, false);
		log_write(M_RUN_RELOAD_FAILED, "reload: no thread: %s", strerror(failed));
	}
}

/* --- systemd --------------------------------------------------------------------------------------------------------- */

static void announce(struct run *r, uint64_t now_ns)
{
	const struct run_part *slowpath = &r->part[LINK_PART_SLOWPATH], *fastpath = &r->part[LINK_PART_FASTPATH];

	/* Ready when every path serves, or when the fastpath had its chance and the kernel path serves. */
	if (!r->was_announced && slowpath->state == RUN_PART_SERVING &&
	    (fastpath->state != RUN_PART_STARTING || fastpath->restarts > 0)) {
		r->was_announced = true;
		sd_notifyf(0, "READY=1\nSTATUS=serving %u zones%s", r->publish.zone_count,
			   fastpath->state == RUN_PART_SERVING ? " by AF_XDP" : "");
	}
	if (r->watchdog_ns && now_ns >= r->watchdog_due_ns) {
		sd_notify(0, "WATCHDOG=1");
		r->watchdog_due_ns = now_ns + r->watchdog_ns;
	}
}

/* --- the loop -------------------------------------------------------------------------------------------------------- */

static void take_signals(struct run *r, uint64_t now_ns)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof info) == sizeof info) {
		log_write(M_RUN_SIGNAL, "SIG%s from process %u", sigabbrev_np((int)info.ssi_signo), info.ssi_pid);
		if (info.ssi_signo == SIGHUP)
			reload(r);
		else
			run_orders_stop(r, VERB_OK, now_ns);
	}
}

static void tick(struct run *r, uint64_t now_ns)
{
	uint64_t expirations;

	if (read(r->timer_fd, &expirations, sizeof expirations) != sizeof expirations)
		return;
	run_watch(r, now_ns);
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		struct run_part *p = &r->part[i];
		run_part_tick(p, now_ns);
		if (p->state == RUN_PART_WAITING && now_ns >= p->due_ns && !r->is_stopping)
			run_orders_start(r, p, now_ns);
	}
	announce(r, now_ns);
}

static void wait_for_work(const struct run *r, struct pollfd poll_fds[static POLL_COUNT])
{
	for (int i = 0; i < POLL_COUNT; i++)
		poll_fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	poll_fds[POLL_SIGNAL].fd = r->signal_fd;
	poll_fds[POLL_TIMER].fd = r->timer_fd;
	poll_fds[POLL_CONTROL].fd = control_server_fd(r->control);
	poll_fds[POLL_ADDRESSES].fd = r->xdp.netlink_fd;
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		struct pollfd *link = &poll_fds[POLL_PART + 2 * i];
		link[0].fd = r->part[i].link;
		link[1].fd = r->part[i].pid_fd;
		if (run_part_has_queued(&r->part[i]))
			link[0].events |= POLLOUT;
	}
	if (poll(poll_fds, POLL_COUNT, -1) < 0 && errno != EINTR)
		log_write(M_RUN_SYSTEM, "poll: %m");
}

static void serve_parts(struct run *r, const struct pollfd *poll_fds)
{
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		uint64_t now_ns = clock_mono_ns();
		struct run_part *p = &r->part[i];
		const struct pollfd *link = &poll_fds[POLL_PART + 2 * i];
		/* A descriptor may have been closed, even reused, since it was polled: only ask those that are still the same. */
		if (link[0].fd == p->link && (link[0].revents & POLLOUT))
			run_part_flush(p);
		if (link[0].fd == p->link && (link[0].revents & ~POLLOUT))
			run_orders_receive(r, p, now_ns);
		if (link[1].fd == p->pid_fd && link[1].revents)
			run_orders_ended(r, p, now_ns);
	}
}

static void loop(struct run *r)
{
	struct pollfd poll_fds[POLL_COUNT];

	while (!r->is_stopping || run_part_is_running(&r->part[0]) || run_part_is_running(&r->part[1])) {
		wait_for_work(r, poll_fds);
		uint64_t now_ns = clock_mono_ns();
		if (poll_fds[POLL_TIMER].revents)
			tick(r, now_ns); /* first: clearing the slot of a silent queue is what can't wait */
		if (poll_fds[POLL_SIGNAL].revents)
			take_signals(r, now_ns);
		serve_parts(r, poll_fds);
		if (poll_fds[POLL_ADDRESSES].revents)
			run_xdp_addresses_changed(&r->xdp, r->config);
		if (poll_fds[POLL_CONTROL].revents)
			control_server_poll(r->control, 0);
	}
}

int run_verb(const struct verb_call *call)
{
	struct run *r = calloc(1, sizeof *r);

	if (!r)
		return VERB_FAILED;
	log_init("run");
	int exit_code = run_setup(r, call);
	if (exit_code == VERB_OK) {
		uint64_t now_ns = clock_mono_ns();
		log_write(M_RUN_STARTED, "skua %s runs with %s, %zu sockets, %zu XDP interfaces", version_text(), r->config_path,
			  r->sockets.count, r->xdp.open_count);
		run_orders_start(r, &r->part[LINK_PART_SLOWPATH], now_ns);
		if (r->xdp.open_count)
			run_orders_start(r, &r->part[LINK_PART_FASTPATH], now_ns);
		loop(r);
		exit_code = r->exit_code;
		log_write(M_RUN_STOPPED, "stopped after %llu s",
			  (unsigned long long)(clock_mono_ns() - r->started_ns) / 1000000000);
	}
	if (atomic_load(&r->is_reloading))
		_exit(exit_code); /* its thread still uses r */
	run_setup_undo(r);
	free(r);
	return exit_code;
}
