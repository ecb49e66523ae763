/* SPDX-License-Identifier: Apache-2.0 */
/* skua-slowpath: DNS from the kernel's sockets, and the zones for everybody. Started by `skua run` only: see base/link.h for what
 * it is handed, slowpath.h for its threads and the order of its start. */
#include "slowpath/slowpath.h"
#include "base/clock.h"
#include "base/log.h"
#include "slowpath/zone/local_zones.h"
#include "base/privileges.h"
#include "table/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SPARE_DESCRIPTORS 256u	 /* files being read, control connections, and what libraries hold */
#define TCP_MESSAGE_TIMEOUT_MS 0 /* as the idle timeout */

struct slowpath {
	struct handover handover;
	struct config *config; /* without zones; NULL once everything has taken its part */
	struct tcp_limits tcp;
	struct snapshot_holder holder;
	struct zone_store *store;
	struct publisher *publisher;
	struct zone_image_files files;
	struct loader *loader;
	struct cache_writer *cache;	 /* NULL: no recursion, as resolve */
	char *cache_file;		 /* owned; NULL: none */
	uint64_t cache_settings;	 /* what makes the file ours: cache_file_save */
	struct resolve *_Atomic resolve; /* the loader's thread reads it */
	struct listen *listen;
	struct control_server *control;
	pthread_t control_thread;
	bool has_control_thread;
	struct control_context context;
	bool is_adopted;
	int signal_fd, started_fd;
	_Atomic bool has_zones, is_started; /* told by the loader's thread through started_fd */
	const char *_Atomic start_failure;
};

/* --- start ---------------------------------------------------------------------------------------------------------- */

static unsigned usable_cpus(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void report_config(void *user, bool is_error, struct config_place place, const char *message)
{
	const struct slowpath *s = user;
	if (is_error)
		log_write(M_SLOWPATH_CONFIG, "%s:%u:%u: %s", s->handover.config_path, place.line, place.column, message);
}

static struct tcp_limits tcp_limits(const struct config *c)
{
	return (struct tcp_limits){ .max_connections = c->tcp.max_connections,
				    .max_per_client = c->tcp.max_per_client,
				    .idle_timeout_ms = c->tcp.idle_timeout_ms,
				    .message_timeout_ms = TCP_MESSAGE_TIMEOUT_MS,
				    .max_queries_in_flight = c->tcp.max_queries_in_flight };
}

static enum err load_config(struct slowpath *s)
{
	struct handover *h = &s->handover;
	enum err err = config_load(&s->config, h->config_path, h->config_text, h->config_bytes, report_config, s);
	free(h->config_text);
	h->config_text = NULL;
	if (err != ERR_OK)
		return err;
	s->tcp = tcp_limits(s->config);
	for (size_t i = 0; i < s->config->log.level_count; i++)
		log_set_level((enum log_subsystem)s->config->log.level[i].subsystem,
			      (enum log_level)s->config->log.level[i].level);
	return ERR_OK;
}

static unsigned worker_count(const struct handover *h)
{
	unsigned workers = 0;
	for (size_t i = 0; i < h->socket_count; i++)
		workers = MAX(workers, h->socket[i].worker + 1);
	return workers;
}

/* Needs root for more than the hard limit; less than asked for only means fewer TCP connections. */
static void raise_descriptor_limit(const struct slowpath *s)
{
	rlim_t wanted = (rlim_t)listen_descriptors(worker_count(&s->handover), &s->tcp) + s->handover.socket_count +
			ZONE_SET_MAX_SEGMENTS + SPARE_DESCRIPTORS;
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	struct rlimit higher = { .rlim_cur = wanted, .rlim_max = MAX(limit.rlim_max, wanted) };
	if (setrlimit(RLIMIT_NOFILE, &higher) == 0)
		return;
	limit.rlim_cur = MIN(wanted, limit.rlim_max);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static enum err open_signals(struct slowpath *s)
{
	sigset_t set;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* a terminal's ^C is the supervisor's affair */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return ERR_IO;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->started_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->signal_fd < 0 || s->started_fd < 0 ? err_from_errno(errno) : ERR_OK;
}

static void wake(struct slowpath *s)
{
	uint64_t one = 1;
	(void)!write(s->started_fd, &one, sizeof(one));
}

static enum err read_zones(struct slowpath *s, struct config **out)
{
	const void *text;
	size_t bytes;
	enum err err = shm_map(&text, &bytes, s->handover.zones_fd);
	if (err != ERR_OK)
		return err;
	err = config_load(out, s->handover.config_path, text, bytes, report_config, s);
	shm_unmap(text, bytes);
	return err;
}

/* From the loader's thread: the list of zones, which may be long. */
static enum err fill_store(void *user, const char **why)
{
	struct slowpath *s = user;
	struct config *config;
	*why = "the configuration can't be read";
	enum err err = read_zones(s, &config);
	if (err != ERR_OK)
		return err;
	*why = "there is not enough memory for the list of zones";
	zone_store_lock(s->store);
	for (size_t i = 0; i < config->zone_count && err == ERR_OK; i++)
		err = zone_store_add(s->store, config->zone[i].name, config->zone[i].file);
	if (err == ERR_OK)
		err = local_zones_add(s->store, config);
	zone_store_unlock(s->store);
	config_free(config);
	atomic_store(&s->has_zones, err == ERR_OK);
	wake(s);
	return err;
}

/* What gives the one partition its meaning: who is asked for what. */
static uint64_t hash_forwarding(const struct config *c)
{
	uint64_t hash = c->forward_count;
	for (size_t i = 0; i < c->forward_count; i++) {
		const struct config_forward *f = &c->forward[i];
		hash = (hash << 7 | hash >> 57) ^ name_hash(f->zone.name, f->zone.name_bytes) ^ f->dnssec;
		for (size_t k = 0; k < f->count; k++)
			for (const char *t = f->to[k].address.text; *t; t++)
				hash = hash * 0x100000001b3u ^ (uint8_t)*t;
	}
	return hash;
}

/* A cache that nobody has written to yet begins with what the file holds. Before there are workers. */
static void load_cache(struct slowpath *s)
{
	struct cache_stats stats;
	uint64_t entries = 0;
	const char *why = "";
	if (!*s->config->cache.file)
		return;
	s->cache_file = strdup(s->config->cache.file);
	s->cache_settings = hash_forwarding(s->config);
	cache_writer_stats(s->cache, &stats);
	if (!s->cache_file || stats.stores > 0)
		return;
	enum err err =
		cache_file_load(s->cache, s->cache_file, s->cache_settings, clock_wall_s(), clock_mono_s(), &entries, &why);
	if (err == ERR_OK)
		log_write(M_CACHE_LOADED, "%llu entries from %s", (unsigned long long)entries, s->cache_file);
	else if (err != ERR_NOTFOUND) /* the first start, or another configuration */
		log_write(M_CACHE_FILE, "%s: %s; %llu entries are taken", s->cache_file, why, (unsigned long long)entries);
}

/* After the workers have ended. */
static void save_cache(struct slowpath *s)
{
	uint64_t entries = 0;
	if (!s->cache || !s->cache_file)
		return;
	enum err err = cache_file_save(s->cache, s->cache_file, s->cache_settings, clock_wall_s(), clock_mono_s(), &entries);
	if (err == ERR_OK)
		log_write(M_CACHE_SAVED, "%llu entries into %s", (unsigned long long)entries, s->cache_file);
	else
		log_write(M_CACHE_FILE, "%s can't be written: %s", s->cache_file, err_text(err));
}

/* Resolver workers behind the threads of listen/: counter blocks, mark arrays and log rings are theirs in that order. Without a cache, or if
 * anything fails, nothing is resolved, and what is ours is answered all the same. */
static void start_resolver(struct slowpath *s)
{
	struct handover *h = &s->handover;
	struct shared *shared = &h->shared;
	unsigned threads = listen_blocks(h->socket, h->socket_count);
	if (!shared->cache || shared->worker_wake_count == 0)
		return;
	enum err err = cache_writer_attach(&s->cache, shared->cache_fd, shared->marks_fd);
	struct resolve_config config = { .config = s->config,
					 .workers = shared->worker_wake_count,
					 .snapshots = &s->holder,
					 .cache = s->cache,
					 .cache_reader = shared->cache,
					 .first_marks = shared->first_marks + threads,
					 .counters = h->counters,
					 .first_block = threads,
					 .log = shared->log,
					 .first_log = threads,
					 .rings = shared->rings.threads ? &shared->rings : NULL,
					 .worker_wake = shared->worker_wake,
					 .thread_wake = shared->thread_wake };
	struct resolve *resolve;
	if (err == ERR_OK) {
		load_cache(s);
		err = resolve_start(&resolve, &config);
	}
	if (err == ERR_OK)
		atomic_store(&s->resolve, resolve);
	if (err != ERR_OK)
		log_write(M_RESOLVE_FAILED, "%s", err_text(err));
}

/* Serves what the supervisor has kept. Without it, or if it is damaged, the loader starts from the files. */
static void adopt(struct slowpath *s)
{
	struct publish_kept *kept = &s->handover.kept;
	const char *why;
	uint64_t began_ns = clock_mono_ns();
	enum err err = publisher_adopt(s->publisher, kept, usable_cpus(), &why);
	s->is_adopted = err == ERR_OK;
	if (s->is_adopted)
		log_write(M_ZONE_ADOPTED, "generation %llu: %u zones in %zu segments, in %llu us",
			  (unsigned long long)kept->generation, publisher_zones(s->publisher), kept->segment_count,
			  (unsigned long long)(clock_mono_ns() - began_ns) / 1000);
	else if (err != ERR_NOTFOUND)
		log_write(M_ZONE_ADOPT_FAILED, "%s: %s", why, err_text(err));
	handover_drop_kept(&s->handover);
}

/* From the loader's thread. */
static void loader_started(void *user, const char *why)
{
	struct slowpath *s = user;
	atomic_store(&s->start_failure, why);
	atomic_store(&s->is_started, true);
	wake(s);
}

/* From the loader's thread. */
static void zones_reshaped(void *user)
{
	struct slowpath *s = user;
	struct resolve *resolve = atomic_load(&s->resolve);
	if (resolve)
		resolve_zones_changed(resolve);
}

static enum err start_loader(struct slowpath *s)
{
	zone_image_files_init(&s->files, s->config->server.state, ZONE_IMAGE_FILE_MIN_BYTES);
	struct loader_config config = { .store = s->store,
					.publisher = s->publisher,
					.files = &s->files,
					.threads = usable_cpus(),
					.max_zone_bytes = s->config->limits.max_zone_bytes,
					.is_adopted = s->is_adopted,
					.fill = fill_store,
					.started = loader_started,
					.reshaped = zones_reshaped,
					.user = s };
	return loader_start(&s->loader, &config);
}

static void *run_control(void *user)
{
	control_server_run(user);
	return NULL;
}

static enum err start_control(struct slowpath *s)
{
	s->context.store = s->store;
	s->context.loader = s->loader;
	s->context.workers = worker_count(&s->handover);
	s->context.resolve = &s->resolve;
	enum err err = control_server_create(&s->control, s->handover.control_fd, slowpath_verbs, &s->context);
	if (err != ERR_OK)
		return err;
	s->has_control_thread = pthread_create(&s->control_thread, NULL, run_control, s->control) == 0;
	return s->has_control_thread ? ERR_OK : ERR_NOMEM;
}

/* Once everything has taken its part. */
static void drop_config(struct slowpath *s)
{
	config_free(s->config);
	s->config = NULL;
}

/* Answers from here on. */
static enum err serve(struct slowpath *s)
{
	struct handover *h = &s->handover;
	struct listen_config config = { .sockets = h->socket,
					.socket_count = h->socket_count,
					.snapshots = &s->holder,
					.counters = h->counters,
					.first_block = 0,
					.tcp = s->tcp,
					.cache = h->shared.cache,
					.first_marks = h->shared.first_marks,
					.log = h->shared.log,
					.first_log = 0 };
	if (s->listen)
		return ERR_OK;
	start_resolver(s); /* its workers read the snapshot that is there by now */
	config.resolve = s->resolve;
	enum err err = listen_start(&s->listen, &config);
	if (err != ERR_OK)
		return err;
	atomic_store(&s->context.is_ready, true);
	log_write(M_SLOWPATH_STARTED, "serving after %llu ms: %u workers, %zu sockets, %s",
		  (unsigned long long)(clock_mono_ns() - s->context.started_ns) / 1000000, worker_count(h), h->socket_count,
		  s->is_adopted ? "zones of the process before" : "zones from files");
	return link_send(LINK_FD, &(struct link_msg){ .type = LINK_READY }, -1);
}

/* --- the main loop --------------------------------------------------------------------------------------------------- */

/* The last good one stays. Without any, nobody may ask for names that are not ours. */
static void take_policy(struct slowpath *s, int fd)
{
	const char *why = NULL;
	struct policy *policy;
	enum err err = policy_attach(&policy, fd, &why);
	if (err == ERR_OK) {
		err = publisher_policy(s->publisher, policy);
		if (err != ERR_OK)
			policy_detach(policy);
	}
	if (err != ERR_OK)
		log_write(M_SHARED_BAD, "the policy: %s: %s", err_text(err), why ? why : "no memory");
}

/* What the loop ends with; negative: go on. */
static int take_message(struct slowpath *s)
{
	struct link_msg m;
	int fd = -1;
	enum err err = link_receive(LINK_FD, &m, &fd);
	if (err == ERR_AGAIN)
		return -1;
	if (err != ERR_OK) {
		log_write(M_SLOWPATH_LINK, "%s", err_text(err));
		return LINK_EXIT_ORPHANED;
	}
	int result = -1;
	const char *why = "the supervisor sent an order that makes no sense";
	struct settings settings;
	switch (m.type) {
	case LINK_STOP: result = LINK_EXIT_OK; break;
	case LINK_LIVE: publisher_note_live(s->publisher, m.a, m.generation); break;
	case LINK_POLICY: take_policy(s, fd); break;
	case LINK_SETTINGS:
		err = handover_settings(&settings, fd, &why);
		if (err == ERR_OK)
			err = publisher_settings(s->publisher, &settings);
		if (err != ERR_OK)
			log_write(M_SLOWPATH_CONFIG, "settings: %s: %s", why, err_text(err));
		break;
	default: log_write(M_SLOWPATH_LINK, "%s: %s", why, link_type_text(m.type)); result = LINK_EXIT_ORPHANED;
	}
	if (fd >= 0)
		close(fd);
	return result;
}

static int take_signal(struct slowpath *s)
{
	struct signalfd_siginfo info;
	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return -1;
	if (info.ssi_signo == SIGTERM)
		return LINK_EXIT_OK;
	loader_wish_reload(s->loader);
	return -1;
}

static int fail(const char *what, const char *why, int code)
{
	struct link_msg m = { .type = LINK_FAILED, .a = (uint32_t)code };
	snprintf(m.text, sizeof(m.text), "%s: %s", what, why);
	log_write(code == LINK_EXIT_CONFIG ? M_SLOWPATH_CONFIG : M_SLOWPATH_SYSTEM, "%s", m.text);
	(void)!link_send(LINK_FD, &m, -1);
	return code;
}

static int take_started(struct slowpath *s)
{
	uint64_t n;
	if (read(s->started_fd, &n, sizeof(n)) != sizeof(n))
		return -1;
	bool is_started = atomic_load(&s->is_started);
	const char *why = is_started ? atomic_load(&s->start_failure) : NULL;
	if (why)
		return fail("the zones can't be published", why, LINK_EXIT_FAILURE);
	/* Not earlier: status would count the zones while they come in. */
	enum err err = atomic_load(&s->has_zones) && !s->control ? start_control(s) : ERR_OK;
	if (err != ERR_OK)
		return fail("the control socket can't be served", err_text(err), LINK_EXIT_FAILURE);
	err = is_started ? serve(s) : ERR_OK;
	if (is_started)
		drop_config(s);
	return err == ERR_OK ? -1 : fail("the sockets can't be served", err_text(err), LINK_EXIT_FAILURE);
}

static int loop(struct slowpath *s)
{
	int result = -1;
	while (result < 0) {
		struct pollfd fds[] = { { .fd = LINK_FD, .events = POLLIN },
					{ .fd = s->signal_fd, .events = POLLIN },
					{ .fd = s->started_fd, .events = POLLIN } };
		if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
			return fail("poll", strerror(errno), LINK_EXIT_FAILURE);
		if (fds[2].revents)
			result = take_started(s);
		if (result < 0 && fds[1].revents)
			result = take_signal(s);
		if (result < 0 && fds[0].revents)
			result = take_message(s);
	}
	return result;
}

/* Before the first snapshot. */
static void attach_shared(struct slowpath *s)
{
	struct handover *h = &s->handover;
	const char *why = NULL;
	enum err err = shared_attach(&h->shared, &why);
	if (err != ERR_OK)
		log_write(M_SHARED_BAD, "%s: %s", why, err_text(err));
	publisher_cache(s->publisher, h->shared.cache);
	if (h->policy_fd >= 0)
		take_policy(s, h->policy_fd);
}

/* --- start and end --------------------------------------------------------------------------------------------------- */

static int start(struct slowpath *s)
{
	enum err err = open_signals(s);
	if (err == ERR_OK)
		err = load_config(s);
	if (err != ERR_OK)
		return fail("the configuration can't be used", err_text(err),
			    err == ERR_SYNTAX ? LINK_EXIT_CONFIG : LINK_EXIT_FAILURE);
	raise_descriptor_limit(s);
	counters_reset(s->handover.counters, (uint32_t)getpid());
	err = privileges_drop(s->config->server.user_slowpath);
	if (err == ERR_OK)
		err = syscall_filter_enter(&slowpath_syscalls);
	if (err == ERR_OK)
		err = zone_store_create(&s->store);
	if (err == ERR_OK)
		err = publisher_create(&s->publisher, LINK_FD, &s->holder, &s->handover.settings);
	if (err == ERR_OK) {
		attach_shared(s);
		adopt(s);
	}
	if (err == ERR_OK && s->is_adopted)
		err = serve(s);
	if (err == ERR_OK)
		err = start_loader(s);
	if (s->listen)
		drop_config(s);
	return err == ERR_OK ? -1 : fail("the slowpath can't start", err_text(err), LINK_EXIT_FAILURE);
}

/* Answers as long as anything else still runs. */
static void stop(struct slowpath *s)
{
	if (s->has_control_thread)
		control_server_stop(s->control);
	loader_stop(s->loader);
	if (s->has_control_thread)
		pthread_join(s->control_thread, NULL);
	control_server_destroy(s->control);
	loader_destroy(s->loader);
	listen_stop(s->listen);
	resolve_stop(s->resolve);
	save_cache(s);
	snapshot_publish(&s->holder, NULL);
	publisher_destroy(s->publisher);
	zone_store_destroy(s->store);
	local_zones_fini();
	zone_image_files_fini(&s->files);
	cache_writer_detach(s->cache);
	free(s->cache_file);
	drop_config(s);
	handover_fini(&s->handover);
}

int main(void)
{
	static struct slowpath s = { .signal_fd = -1, .started_fd = -1 };
	const char *why = "";
	log_init("slowpath");
	s.context.started_ns = clock_mono_ns();
	if (fcntl(LINK_FD, F_SETFD, FD_CLOEXEC) < 0) {
		fprintf(stderr, "skua-slowpath is started by `skua run`; it has no use by itself.\n");
		return LINK_EXIT_FAILURE;
	}
	switch (handover_receive(&s.handover, LINK_FD, &why)) {
	case HANDOVER_STOP: handover_fini(&s.handover); return LINK_EXIT_OK;
	case HANDOVER_BROKEN:
		log_write(M_SLOWPATH_LINK, "at the start: %s", why);
		handover_fini(&s.handover);
		return LINK_EXIT_ORPHANED;
	case HANDOVER_GO: break;
	}
	int code = start(&s);
	if (code < 0)
		code = loop(&s);
	if (code == LINK_EXIT_OK)
		log_write(M_SLOWPATH_STOPPED, "as asked");
	stop(&s);
	return code;
}
