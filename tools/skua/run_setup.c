/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "slowpath/listen/listen.h"
#include "table/counters.h"
#include "tools/skua/config_file.h"
#include "tools/skua/run.h"
#include "tools/skua/run_lock.h"
#include "tools/skua/run_memory.h"
#include "tools/skua/run_share.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define INSTALLED_PARTS "/../libexec/skua" /* seen from bin/, where `make install` puts this program */
#define PREDECESSOR_NS 3000000000ull	   /* how long what a killed `skua run` leaves behind may take to vanish */
#define RETRY_MS 10

struct loading {
	const char *path;
	unsigned errors;
};

static void report(void *user, bool is_error, struct config_place place, const char *message)
{
	struct loading *l = user;

	l->errors += is_error;
	fprintf(stderr, "%s:%u:%u: %s: %s\n", l->path, place.line, place.column, is_error ? "error" : "warning", message);
}

/* The zones are the slowpath's business: without them the configuration stays small here and in the fastpath. */
static enum err drop_zones(struct run *r, const char *text, size_t text_bytes)
{
	struct config *small;
	char *rest;
	size_t rest_bytes;
	struct loading loading = { .path = r->config_path };

	enum err err = config_text_without_zones(r->config, text, text_bytes, &rest, &rest_bytes);
	if (err != ERR_OK)
		return err;
	err = config_load(&small, r->config_path, rest, rest_bytes, report, &loading);
	if (err == ERR_OK) {
		config_free(r->config);
		r->config = small;
		err = run_share_bytes(&r->small_config_fd, "skua-config-small", rest, rest_bytes);
	}
	free(rest);
	return err;
}

static int share_config(struct run *r, const char *text, size_t text_bytes)
{
	enum err err = run_share_bytes(&r->config_fd, "skua-config", text, text_bytes);

	if (err == ERR_OK)
		err = drop_zones(r, text, text_bytes);
	if (err != ERR_OK) {
		log_write(M_RUN_SYSTEM, "no memory for the configuration: %s", err_text(err));
		return VERB_FAILED;
	}
	for (size_t i = 0; i < r->config->log.level_count; i++)
		log_set_level(r->config->log.level[i].subsystem, r->config->log.level[i].level);
	return VERB_OK;
}

static int load_config(struct run *r, const struct verb_call *call)
{
	bool is_default;
	const char *path = config_file_path(call->config, &is_default);
	struct loading loading = { .path = path };
	char *text, *absolute = NULL;
	size_t text_bytes;
	int exit_code = VERB_USAGE;

	enum err err = config_read_file(path, &text, &text_bytes);
	if (err != ERR_OK) {
		log_write(M_RUN_CONFIG_BAD, "%s: %s%s", path, err == ERR_NOSPACE ? "is too large" : strerror(errno),
			  is_default ? "; name another file by -c FILE or $SKUA_CONFIG" : "");
		return VERB_USAGE;
	}
	absolute = realpath(path, NULL);
	if (!absolute || strlen(absolute) >= sizeof r->config_path)
		log_write(M_RUN_CONFIG_BAD, "%s: its full path must be shorter than %zu octets", path, sizeof r->config_path);
	else if (snprintf(r->config_path, sizeof r->config_path, "%s", absolute) < 0)
		exit_code = VERB_FAILED;
	else if (config_load(&r->config, absolute, text, text_bytes, report, &loading) != ERR_OK)
		log_write(M_RUN_CONFIG_BAD, "%s: %u errors", path, loading.errors);
	else
		exit_code = share_config(r, text, text_bytes);
	free(absolute);
	free(text);
	run_memory_settle();
	return exit_code;
}

static const struct passwd *new_owner; /* nftw hands nothing through */

static int give(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return lchown(path, new_owner->pw_uid, new_owner->pw_gid);
}

/* The slowpath writes images there when it has given up root. What is in a folder that is its own already is its own business. */
static void give_state_folder(const struct config *config)
{
	struct stat st;

	new_owner = geteuid() == 0 ? getpwnam(config->server.user_slowpath) : NULL;
	if (!new_owner || (stat(config->server.state, &st) == 0 && st.st_uid == new_owner->pw_uid))
		return;
	if (nftw(config->server.state, give, 16, FTW_PHYS | FTW_MOUNT | FTW_DEPTH) != 0)
		log_write(M_RUN_FOLDER, "%s can't be given to user %s: %m", config->server.state, new_owner->pw_name);
}

static int make_folders(struct run *r)
{
	pid_t holder;
	enum err err;

	if (run_lock_folder(r->config->server.run, 0755) != ERR_OK) {
		log_write(M_RUN_FOLDER, "server.run %s: %m", r->config->server.run);
		return VERB_FAILED;
	}
	err = run_lock_take(&r->lock_fd, r->config->server.run, &holder);
	if (err == ERR_BUSY) {
		log_write(M_RUN_SECOND, "%s is in use by another `skua run`, process %d", r->config->server.run, (int)holder);
		return VERB_FAILED;
	}
	if (err != ERR_OK) {
		log_write(M_RUN_FOLDER, "%s/skua.lock: %m", r->config->server.run);
		return VERB_FAILED;
	}
	r->patience_until_ns = holder ? r->started_ns + PREDECESSOR_NS : 0;
	if (run_lock_folder(r->config->server.state, 0750) != ERR_OK) {
		log_write(M_RUN_FOLDER, "server.state %s: %m", r->config->server.state);
		return VERB_FAILED;
	}
	give_state_folder(r->config);
	return VERB_OK;
}

/* Many segments and sockets pass through here; the parts inherit the limits. */
static void raise_limits(void)
{
	struct rlimit files, memory = { RLIM_INFINITY, RLIM_INFINITY };

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files) != 0)
			log_write(M_RUN_SYSTEM, "the limit of open files can't be raised: %m");
	}
	(void)!setrlimit(RLIMIT_MEMLOCK, &memory); /* UMEM; where it is refused, the fastpath says what it lacks */
}

/* After a `skua run` that was killed, its parts are being killed as well, but the kernel may need a moment. True: try again. */
static bool is_patient(const struct run *r)
{
	struct timespec t = { .tv_nsec = RETRY_MS * 1000000l };

	if (clock_mono_ns() >= r->patience_until_ns)
		return false;
	nanosleep(&t, NULL);
	return true;
}

static enum err listen_control(struct run *r, int *fd, const char *name)
{
	char path[PATH_MAX];
	enum err err = ERR_RANGE;

	if ((size_t)snprintf(path, sizeof path, "%s/%s.sock", r->config->server.run, name) < sizeof path) {
		do
			err = control_listen(fd, path);
		while (err == ERR_BUSY && is_patient(r));
	}
	if (err != ERR_OK)
		log_write(M_RUN_FOLDER, "control socket %s/%s.sock: %s", r->config->server.run, name, err_text(err));
	return err;
}

/* With XDP the fastpath gets half of the cores; where there are one or two, all share. */
static unsigned worker_count(const struct run *r)
{
	cpu_set_t set;
	unsigned cores = 1;

	if (r->config->server.workers)
		return MIN(r->config->server.workers, LISTEN_MAX_WORKERS);
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		cores = (unsigned)MAX(CPU_COUNT(&set), 1);
	if (r->xdp.open_count && cores > 2)
		cores -= cores / 2;
	return MIN(cores, LISTEN_MAX_WORKERS);
}

static int bind_all(struct run *r)
{
	struct bind_request request = {
		.addresses = r->config->listen.dns,
		.address_count = r->config->listen.dns_count,
		.workers = worker_count(r),
		.udp_receive_buffer = r->config->listen.udp_receive_buffer,
	};
	struct bind_error error;
	enum err err;

	do
		err = bind_sockets(&r->sockets, &request, &error);
	while (err == ERR_BUSY && is_patient(r));
	if (err != ERR_OK) {
		log_write(M_RUN_LISTEN_FAILED, "%s", error.text);
		return VERB_FAILED;
	}
	if (r->sockets.count && r->sockets.udp_receive_buffer < request.udp_receive_buffer)
		log_write(M_RUN_BUFFER_SMALL, "UDP receive buffers are %u octets, not %u", r->sockets.udp_receive_buffer,
			  request.udp_receive_buffer);
	return VERB_OK;
}

/* Beside this program, as in a build folder, or where `make install` puts it; what does not exist fails when it is started. */
static void find_program(struct run_part *p)
{
	static const char *const folders[] = { "", INSTALLED_PARTS };
	char self[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);

	self[MAX(bytes, 0)] = '\0';
	if (strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		int length = snprintf(p->program, sizeof p->program, "%s%s/skua-%s", self, folders[i], p->name);
		if (length < (int)sizeof p->program && access(p->program, X_OK) == 0)
			return;
	}
}

static int prepare_part(struct run *r, struct run_part *p)
{
	char label[32];
	enum err err;

	find_program(p);
	snprintf(label, sizeof label, "skua-counters-%s", p->name);
	err = counters_create(&p->counters_fd, label);
	if (err == ERR_OK)
		err = counters_attach(&p->counters, p->counters_fd, false);
	if (err != ERR_OK) {
		log_write(M_RUN_SYSTEM, "no shared memory for counters: %s", err_text(err));
		return VERB_FAILED;
	}
	return listen_control(r, &p->control_fd, p->name) == ERR_OK ? VERB_OK : VERB_FAILED;
}

static int share_settings(struct run *r)
{
	struct settings settings;
	uint8_t random[16];

	if (getrandom(random, sizeof random, 0) != sizeof random) {
		log_write(M_RUN_SYSTEM, "no random numbers for the cookie secret: %m");
		return VERB_FAILED;
	}
	run_share_settings(&settings, r->config, random);
	enum err err = run_share_bytes(&r->settings_fd, "skua-settings", &settings, sizeof settings);
	explicit_bzero(&settings, sizeof settings);
	explicit_bzero(random, sizeof random);
	if (err != ERR_OK)
		log_write(M_RUN_SYSTEM, "no shared memory for the settings: %s", err_text(err));
	return err == ERR_OK ? VERB_OK : VERB_FAILED;
}

/* A thread of the fastpath for each queue of each interface that may get a program. */
static unsigned thread_count(const struct run *r)
{
	unsigned threads = 0;

	for (size_t i = 0; i < r->xdp.count; i++)
		threads += run_shared_queues("/sys/class/net", r->xdp.interface[i].name);
	return r->xdp.open_count ? MIN(threads, RING_SET_MAX_THREADS) : 0;
}

static int share_memory(struct run *r)
{
	const char *why;
	enum err err = run_shared_create(&r->shared, r->config, thread_count(r), worker_count(r), &why);

	if (err != ERR_OK) {
		log_write(M_RUN_NO_MEMORY, "%s: %s", why, err_text(err));
		return VERB_FAILED;
	}
	if (r->shared.has_recursion)
		log_write(M_RUN_RECURSION,
			  "%zu forward zones; cache %llu KiB, its marks %llu KiB, rings %llu KiB for %u threads and %u workers",
			  r->config->forward_count, (unsigned long long)r->shared.cache_bytes >> 10,
			  (unsigned long long)r->shared.marks_bytes >> 10, (unsigned long long)r->shared.rings_bytes >> 10,
			  r->shared.threads, r->shared.workers);
	return VERB_OK;
}

static int make_loop_descriptors(struct run *r)
{
	sigset_t set;
	struct itimerspec tick = { 0 };

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r->tick_ns = r->xdp.open_count ? RUN_TICK_XDP_NS : RUN_TICK_SOCKET_NS;
	tick.it_value.tv_nsec = tick.it_interval.tv_nsec = (long)r->tick_ns;
	if (r->signal_fd < 0 || r->timer_fd < 0 || timerfd_settime(r->timer_fd, 0, &tick, NULL) != 0) {
		log_write(M_RUN_SYSTEM, "signalfd or timerfd: %m");
		return VERB_FAILED;
	}
	return VERB_OK;
}

/* A busy box must not hide a hang from us. The parts do not inherit it. */
static void raise_priority(void)
{
	struct sched_param p = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p) == 0)
		return;
	log_write(M_RUN_PRIORITY, "no real-time priority: %m");
	p.sched_priority = 0;
	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &p) == 0)
		(void)!setpriority(PRIO_PROCESS, 0, -10);
}

int run_setup(struct run *r, const struct verb_call *call)
{
	int exit_code;

	*r = (struct run){ .config_fd = -1,
			   .small_config_fd = -1,
			   .settings_fd = -1,
			   .lock_fd = -1,
			   .signal_fd = -1,
			   .timer_fd = -1,
			   .control_fd = -1,
			   .xdp.netlink_fd = -1,
			   .started_ns = clock_mono_ns() };
	run_publish_init(&r->publish);
	run_shared_init(&r->shared);
	run_part_init(&r->part[LINK_PART_FASTPATH], LINK_PART_FASTPATH, "fastpath");
	run_part_init(&r->part[LINK_PART_SLOWPATH], LINK_PART_SLOWPATH, "slowpath");
	if ((exit_code = load_config(r, call)) != VERB_OK || (exit_code = make_folders(r)) != VERB_OK)
		return exit_code;
	raise_limits();
	if (listen_control(r, &r->control_fd, "run") != ERR_OK || run_control_create(r) != ERR_OK)
		return VERB_FAILED;
	run_xdp_open(&r->xdp, r->config);
	if ((exit_code = bind_all(r)) != VERB_OK || (exit_code = share_settings(r)) != VERB_OK ||
	    (exit_code = share_memory(r)) != VERB_OK || (exit_code = make_loop_descriptors(r)) != VERB_OK)
		return exit_code;
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		if ((exit_code = prepare_part(r, &r->part[i])) != VERB_OK)
			return exit_code;
	}
	if (sd_watchdog_enabled(0, &r->watchdog_ns) > 0)
		r->watchdog_ns *= 1000 / 2; /* it tells microseconds; we are to be heard twice in that time */
	else
		r->watchdog_ns = 0;
	raise_priority();
	return VERB_OK;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void remove_socket(const struct run *r, const char *name)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof path, "%s/%s.sock", r->config->server.run, name) < sizeof path)
		unlink(path);
}

void run_setup_undo(struct run *r)
{
	run_xdp_close(&r->xdp);
	control_server_destroy(r->control);
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		if (r->part[i].control_fd >= 0)
			remove_socket(r, r->part[i].name);
		run_part_fini(&r->part[i]);
	}
	if (r->control_fd >= 0)
		remove_socket(r, "run");
	run_publish_fini(&r->publish);
	run_shared_fini(&r->shared);
	bind_set_fini(&r->sockets);
	close_fd(&r->control_fd);
	close_fd(&r->signal_fd);
	close_fd(&r->timer_fd);
	close_fd(&r->settings_fd);
	close_fd(&r->config_fd);
	close_fd(&r->small_config_fd);
	if (r->lock_fd >= 0)
		run_lock_give(r->lock_fd);
	config_free(r->config);
}
