/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_part.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define ENVIRONMENT_MAX 1024
#define EXEC_FAILED 127

struct run_part_queued {
	struct run_part_queued *next;
	int fd; /* owned; -1: none */
	struct link_msg message;
};

static const char *const state_texts[] = {
	[RUN_PART_OFF] = "off",		[RUN_PART_WAITING] = "waiting",	  [RUN_PART_STARTING] = "starting",
	[RUN_PART_SERVING] = "serving", [RUN_PART_STOPPING] = "stopping", [RUN_PART_KILLED] = "killed",
	[RUN_PART_FAILED] = "failed",
};

const char *run_part_state_text(enum run_part_state state) { return state_texts[state]; }

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void drop_first(struct run_part *p)
{
	struct run_part_queued *q = p->first_;

	p->first_ = q->next;
	if (!p->first_)
		p->last_ = NULL;
	p->queued--;
	close_fd(&q->fd);
	free(q);
}

void run_part_init(struct run_part *p, enum link_part id, const char *name)
{
	*p = (struct run_part){ .id = id, .name = name, .pid_fd = -1, .link = -1, .control_fd = -1, .counters_fd = -1 };
}

void run_part_fini(struct run_part *p)
{
	ASSERT(!run_part_is_running(p));
	while (p->first_)
		drop_first(p);
	if (p->counters)
		counters_detach(p->counters);
	p->counters = NULL;
	close_fd(&p->counters_fd);
	close_fd(&p->control_fd);
}

bool run_part_is_running(const struct run_part *p) { return p->pid != 0; }

/* Between fork and exec: async-signal-safe calls only. */
static _Noreturn void become(const struct run_part *p, int link, pid_t parent, char *const environment[])
{
	char *const argv[] = { (char *)p->program, NULL };
	sigset_t none;

	/* The parts must not outlive us: their sockets, slots and orders come from here. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(LINK_EXIT_ORPHANED);
	setsid(); /* the terminal's ^C is for us alone: we stop the parts in order */
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (link == LINK_FD) {
		if (fcntl(link, F_SETFD, 0) != 0)
			_exit(EXEC_FAILED);
	} else if (dup2(link, LINK_FD) < 0) {
		_exit(EXEC_FAILED);
	}
	close_range(LINK_FD + 1, ~0u, 0);
	execve(p->program, argv, environment);
	_exit(EXEC_FAILED);
}

/* systemd's notification socket is ours: a part that wrote to it would speak in our name. */
static void part_environment(char *out[ENVIRONMENT_MAX])
{
	static const char *const ours[] = { "NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "LISTEN_FDS=", "LISTEN_PID=" };
	size_t n = 0;

	for (char **e = environ; *e && n < ENVIRONMENT_MAX - 1; e++) {
		bool skip = false;
		for (size_t i = 0; i < ARRAY_LEN(ours); i++)
			skip = skip || !strncmp(*e, ours[i], strlen(ours[i]));
		if (!skip)
			out[n++] = *e;
	}
	out[n] = NULL;
}

static uint64_t nanoseconds(struct timespec t) { return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec; }

bool run_part_is_other_program(struct run_part *p)
{
	struct run_part_stamp last = p->program_stamp_, now = { 0 };
	struct stat st;

	if (stat(p->program, &st) == 0)
		now = (struct run_part_stamp){ .device = st.st_dev,
					       .inode = st.st_ino,
					       .bytes = (uint64_t)st.st_size,
					       .modified_ns = nanoseconds(st.st_mtim),
					       .changed_ns = nanoseconds(st.st_ctim) };
	p->program_stamp_ = now;
	return memcmp(&last, &now, sizeof now) != 0;
}

enum err run_part_spawn(struct run_part *p, uint64_t now_ns)
{
	char *environment[ENVIRONMENT_MAX];
	int ends[2];
	pid_t parent = getpid(), pid;

	if (run_part_is_running(p))
		return ERR_BUSY;
	if (access(p->program, X_OK) != 0)
		return ERR_NOTFOUND;
	part_environment(environment);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return ERR_IO;
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		goto failed;
	pid = fork();
	if (pid < 0)
		goto failed;
	if (pid == 0)
		become(p, ends[1], parent, environment);
	close(ends[1]);
	p->pid_fd = pidfd_open(pid, 0);
	if (p->pid_fd < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ends[0]);
		return ERR_IO;
	}
	p->pid = pid;
	p->link = ends[0];
	p->state = RUN_PART_STARTING;
	p->started_ns = now_ns;
	p->ready_ns = 0;
	p->live_generation = 0;
	p->is_hung = p->was_terminated = false;
	p->orphaned_ns = 0;
	p->failure[0] = '\0';
	memset(p->parked, 0, sizeof p->parked);
	p->until_full_look = 0;
	log_write(M_CHILD_STARTED, "%s started as process %d", p->name, (int)pid);
	return ERR_OK;
failed:
	close(ends[0]);
	close(ends[1]);
	return ERR_IO;
}

void run_part_flush(struct run_part *p)
{
	while (p->first_ && p->link >= 0) {
		enum err err = link_send(p->link, &p->first_->message, p->first_->fd);
		if (err == ERR_AGAIN)
			return;
		if (err != ERR_OK)
			return; /* it is ending: what waits is dropped when it is reaped */
		drop_first(p);
	}
}

bool run_part_has_queued(const struct run_part *p) { return p->first_ != NULL; }

void run_part_send(struct run_part *p, const struct link_msg *message, int fd)
{
	struct run_part_queued *q;

	if (!run_part_is_running(p) || p->link < 0)
		return;
	q = p->queued < RUN_PART_QUEUE_MAX ? calloc(1, sizeof *q) : NULL;
	if (q) {
		q->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
		q->message = *message;
	}
	if (!q || (fd >= 0 && q->fd < 0)) {
		log_write(M_RUN_QUEUE_FULL, "%s does not read its orders (%u wait) or descriptors ran out: killed", p->name,
			  p->queued);
		free(q);
		run_part_kill(p, true);
		return;
	}
	if (p->last_)
		p->last_->next = q;
	else
		p->first_ = q;
	p->last_ = q;
	p->queued++;
	run_part_flush(p);
}

void run_part_stop(struct run_part *p, uint64_t now_ns)
{
	struct link_msg message = { .type = LINK_STOP };

	if (!run_part_is_running(p) || p->state == RUN_PART_STOPPING || p->state == RUN_PART_KILLED)
		return;
	run_part_send(p, &message, -1);
	if (p->state == RUN_PART_KILLED)
		return;
	p->state = RUN_PART_STOPPING;
	p->due_ns = now_ns + RUN_PART_STOP_NS;
}

void run_part_kill(struct run_part *p, bool is_hung)
{
	if (!run_part_is_running(p) || p->state == RUN_PART_KILLED)
		return;
	p->is_hung = is_hung;
	p->hangs += is_hung;
	p->state = RUN_PART_KILLED;
	pidfd_send_signal(p->pid_fd, SIGKILL, NULL, 0);
}

void run_part_unlink(struct run_part *p, uint64_t now_ns)
{
	close_fd(&p->link);
	p->orphaned_ns = now_ns;
}

void run_part_tick(struct run_part *p, uint64_t now_ns)
{
	if (run_part_is_running(p) && p->orphaned_ns && now_ns - p->orphaned_ns > RUN_PART_ORPHAN_NS)
		run_part_kill(p, p->state != RUN_PART_STOPPING);
	if (p->state != RUN_PART_STOPPING || now_ns < p->due_ns)
		return;
	if (p->was_terminated) {
		log_write(M_RUN_STOP_SLOW, "%s did not end on SIGTERM: killed", p->name);
		run_part_kill(p, false);
		p->state = RUN_PART_STOPPING; /* its end is still the one that was asked for */
		p->due_ns = UINT64_MAX;
		return;
	}
	log_write(M_RUN_STOP_SLOW, "%s did not end when asked: SIGTERM", p->name);
	p->was_terminated = true;
	p->due_ns = now_ns + RUN_PART_TERM_NS;
	pidfd_send_signal(p->pid_fd, SIGTERM, NULL, 0);
}

bool run_part_has_counted(const struct run_part *p) { return run_part_is_running(p) && p->counters->pid == (uint32_t)p->pid; }

static void keep_totals(struct run_part *p)
{
	if (!run_part_has_counted(p))
		return;
	for (unsigned role = COUNTER_XDP; role <= COUNTER_OTHER; role++) {
		for (unsigned c = 0; c < C_COUNT_; c++)
			p->past[role][c] += counters_sum(p->counters, role, c);
	}
}

uint64_t run_part_total(const struct run_part *p, enum counter_role role, enum counter which)
{
	return p->past[role][which] + (run_part_has_counted(p) ? counters_sum(p->counters, role, which) : 0);
}

static void describe_end(struct run_part *p, const siginfo_t *info)
{
	int code = info->si_status;

	if (p->is_hung)
		snprintf(p->last_exit, sizeof p->last_exit, "was silent and was killed");
	else if (info->si_code != CLD_EXITED)
		snprintf(p->last_exit, sizeof p->last_exit, "ended by signal %d (SIG%s)", code, sigabbrev_np(code) ?: "?");
	else if (code == EXEC_FAILED)
		snprintf(p->last_exit, sizeof p->last_exit, "could not be executed");
	else
		snprintf(p->last_exit, sizeof p->last_exit, "ended with code %d%s%s", code, *p->failure ? ": " : "", p->failure);
}

static void *reap_thread(void *user)
{
	int pid_fd = (int)(intptr_t)user;
	siginfo_t info;

	waitid(P_PIDFD, (id_t)pid_fd, &info, WEXITED);
	close(pid_fd);
	return NULL;
}

/* Releasing a process also clears it out of /proc, and spins while one of its ending threads is at the same. At our priority that
 * thread may never get to run (seen: 0.95 s, until the kernel throttled us): a thread of ordinary priority does it. */
static void reap_later(int pid_fd)
{
	pthread_t thread;
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, reap_thread, (void *)(intptr_t)pid_fd) != 0)
		reap_thread((void *)(intptr_t)pid_fd);
	pthread_attr_destroy(&attributes);
}

enum run_part_end run_part_reap(struct run_part *p, uint64_t now_ns, uint64_t *wait_ns)
{
	siginfo_t info = { 0 };
	bool was_told = p->state == RUN_PART_STOPPING;

	if (waitid(P_PIDFD, (id_t)p->pid_fd, &info, WEXITED | WNOWAIT) != 0)
		info = (siginfo_t){ .si_code = CLD_EXITED };
	keep_totals(p);
	describe_end(p, &info);
	while (p->first_)
		drop_first(p);
	close_fd(&p->link);
	reap_later(p->pid_fd);
	p->pid_fd = -1;
	p->pid = 0;
	p->state = RUN_PART_OFF;
	*wait_ns = 0;
	if (was_told)
		return RUN_PART_END_STOPPED;
	if (info.si_code == CLD_EXITED && info.si_status == LINK_EXIT_CONFIG)
		return RUN_PART_END_CONFIG;
	/* A part that asks for a fresh socket before it ever served waits like any other: nothing may spin. */
	if (info.si_code != CLD_EXITED || info.si_status != LINK_EXIT_REBIND || !p->ready_ns)
		*wait_ns = run_backoff_next(&p->backoff, p->ready_ns, now_ns);
	p->state = RUN_PART_WAITING;
	p->due_ns = now_ns + *wait_ns;
	p->restarts++;
	return RUN_PART_END_RESTART;
}
