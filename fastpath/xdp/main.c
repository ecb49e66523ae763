/* SPDX-License-Identifier: Apache-2.0 */
/* skua-fastpath: serves AF_XDP queues. Started by `skua run` only, which talks to it over descriptor 3 (base/link.h). */
#include "xdp/fastpath.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK_NS 1000000000u
#define UNPARK_MS 5 /* how often a parked queue's heartbeat is looked at */

enum { POLL_LINK, POLL_SIGNAL, POLL_CONTROL, POLL_COUNT_ };

static struct fastpath fastpath; /* one per process; too large for a stack */

/* All threads inherit the mask: signals come through the descriptor only. */
static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* SIGHUP is the supervisor's business. */
static bool is_asked_to_end(int signal_fd)
{
	struct signalfd_siginfo info;

	return read(signal_fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGHUP;
}

static bool check(struct fastpath *f, uint64_t now_ns)
{
	char why[LINK_TEXT_BYTES];

	if (queues_check(&f->queues, now_ns, why, sizeof(why)))
		return true;
	f->exit_code = LINK_EXIT_REBIND;
	/* The exit code alone says enough if the supervisor can't be told. */
	(void)!orders_send(f, LINK_FAILED, 0, LINK_EXIT_REBIND, why);
	return false;
}

/* Until it is time to end; f->exit_code says how. */
static void loop(struct fastpath *f, int signal_fd)
{
	uint64_t checked_ns = clock_mono_ns();
	bool is_parked = false;

	for (;;) {
		struct pollfd p[POLL_COUNT_] = {
			[POLL_LINK] = { .fd = f->link, .events = POLLIN },
			[POLL_SIGNAL] = { .fd = signal_fd, .events = POLLIN },
			[POLL_CONTROL] = { .fd = f->control ? control_server_fd(f->control) : -1, .events = POLLIN },
		};
		uint64_t now_ns;

		if (poll(p, POLL_COUNT_, is_parked ? UNPARK_MS : (int)(CHECK_NS / 1000000)) < 0 && errno != EINTR) {
			f->exit_code = LINK_EXIT_FAILURE;
			return;
		}
		if (p[POLL_SIGNAL].revents && is_asked_to_end(signal_fd))
			return;
		if (p[POLL_LINK].revents && !orders_receive(f))
			return;
		if (p[POLL_CONTROL].revents && f->control)
			control_server_poll(f->control, 0);
		if (!f->is_started)
			continue;
		now_ns = clock_mono_ns();
		is_parked = queues_unpark(&f->queues, now_ns);
		if (now_ns - checked_ns >= CHECK_NS) {
			checked_ns = now_ns;
			if (!check(f, now_ns))
				return;
		}
	}
}

static bool has_link(void)
{
	int type;
	socklen_t bytes = sizeof(type);

	return getsockopt(LINK_FD, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
	struct fastpath *f = &fastpath;
	int signal_fd;

	(void)argc;
	if (!has_link()) {
		fprintf(stderr, "%s: started by `skua run`, not by hand\n", argv[0]);
		return LINK_EXIT_FAILURE;
	}
	log_init("fastpath");
	f->link = LINK_FD;
	f->control_listen_fd = -1;
	f->started_ns = clock_mono_ns();
	queues_init(&f->queues);
	zones_init(&f->zones);
	shared_init(&f->shared);
	signal_fd = block_signals();
	if (signal_fd < 0 || fcntl(LINK_FD, F_SETFL, O_NONBLOCK) != 0 || fcntl(LINK_FD, F_SETFD, FD_CLOEXEC) != 0) {
		log_write(M_XDP_LINK_ENDED, "cannot start: %s", strerror(errno));
		return LINK_EXIT_FAILURE;
	}
	loop(f, signal_fd);
	/* Slots first: from here on the kernel path serves. */
	queues_stop(&f->queues);
	zones_fini(&f->zones);
	shared_fini(&f->shared);
	control_server_destroy(f->control);
	if (f->counters)
		counters_detach(f->counters);
	config_free(f->config);
	return (int)f->exit_code;
}
