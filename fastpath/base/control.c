/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of base/control.h: one epoll loop, a fixed number of connections, and workers for slow verbs.
 *
 * A connection is in one state at a time; only a worker's own slot is touched by another thread:
 *   READING --line--> (quick verb) WRITING --all sent--> READING
 *   READING --line--> WAITING --a worker is free--> RUNNING --its response--> WRITING
 * While it is not READING nothing is read from it, so that what a client can pile up is one line. */
#include "base/control.h"
#include "base/clock.h"
#include "base/control_request.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES 65536u
#define EVENTS_PER_WAIT 16
#define ACCEPTS_PER_EVENT 8
#define MAX_PEER_GROUPS 1024
enum { TAG_LISTEN = CONTROL_MAX_CONNECTIONS, TAG_WAKE, TAG_TIMER }; /* below: index of a connection */

enum conn_state { CONN_FREE, CONN_READING, CONN_WAITING, CONN_RUNNING, CONN_WRITING };
struct conn {
	enum conn_state state;
	int fd;
	bool close_after_write;
	uint64_t serial;      /* of the accepted connection; of the request while WAITING: who came first */
	uint64_t deadline_ns; /* READING, WRITING */
	char *in;	      /* owned; NULL when empty */
	size_t in_used, in_size;
	char *out; /* owned */
	size_t out_bytes, out_sent;
	struct control_request request; /* WAITING */
};

enum worker_state { WORKER_IDLE, WORKER_BUSY, WORKER_DONE };
struct worker {
	struct control_server *server;
	pthread_t thread;
	enum worker_state state;	/* server->lock */
	struct control_request request; /* the worker's while BUSY */
	char *response;			/* set by the worker before DONE; NULL: no memory */
	size_t response_bytes;
	size_t conn; /* the loop's: who asked */
	uint64_t conn_serial;
};

struct control_server {
	int listen_fd, epoll_fd, wake_fd, timer_fd;
	const struct control_verb *verbs;
	void *user;
	gid_t group; /* of the socket file */
	bool has_group, is_listening, is_ticking;
	_Atomic bool is_stopping;
	unsigned open_count;
	uint64_t next_serial;
	struct conn conn[CONTROL_MAX_CONNECTIONS];
	pthread_mutex_t lock;
	pthread_cond_t work;
	bool is_ending; /* lock: workers return */
	unsigned worker_count;
	struct worker worker[CONTROL_WORKERS];
};

/* ---- workers ---- */

static void wake(struct control_server *s)
{
	uint64_t one = 1;
	ssize_t n = write(s->wake_fd, &one, sizeof one);
	(void)n; /* fails only when the counter is at its limit, and then the loop is awake */
}

static void *worker_main(void *argument)
{
	struct worker *w = argument;
	struct control_server *s = w->server;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (w->state != WORKER_BUSY && !s->is_ending)
			pthread_cond_wait(&s->work, &s->lock);
		if (w->state != WORKER_BUSY)
			break;
		pthread_mutex_unlock(&s->lock);
		if (control_request_run(&w->request, s->verbs, s->user, &w->response, &w->response_bytes) != ERR_OK)
			w->response = NULL;
		pthread_mutex_lock(&s->lock);
		w->state = WORKER_DONE;
		wake(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* An idle worker; NULL if there is none, or if the verb runs already. */
static struct worker *worker_for(struct control_server *s, const struct control_verb *verb)
{
	struct worker *idle = NULL;

	for (unsigned i = 0; i < s->worker_count; i++) {
		if (s->worker[i].state == WORKER_IDLE)
			idle = &s->worker[i];
		else if (s->worker[i].request.verb == verb)
			return NULL;
	}
	return idle;
}

/* ---- connections ---- */

static void conn_listen_for(struct control_server *s, struct conn *c, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = (uint64_t)(c - s->conn) };
	int failed = epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
	ASSERT(!failed);
}

static void conn_close(struct control_server *s, struct conn *c)
{
	close(c->fd);
	free(c->in);
	free(c->out);
	control_request_fini(&c->request);
	*c = (struct conn){ .state = CONN_FREE, .fd = -1 };
	s->open_count--;
}

static void conn_start_reading(struct control_server *s, struct conn *c)
{
	c->state = CONN_READING;
	c->deadline_ns = clock_mono_ns() + CONTROL_TIMEOUT_MS * 1000000ull;
	if (c->in_used == 0) {
		free(c->in);
		c->in = NULL;
		c->in_size = 0;
	}
	/* a line that is here already must not wait for more input: a writable socket brings us back, after the others' turn */
	bool has_line = c->in_used > 0 && memchr(c->in, '\n', c->in_used);
	conn_listen_for(s, c, EPOLLIN | (has_line ? EPOLLOUT : 0));
}

static void conn_write(struct control_server *s, struct conn *c)
{
	while (c->out_sent < c->out_bytes) {
		ssize_t n = send(c->fd, c->out + c->out_sent, c->out_bytes - c->out_sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			conn_close(s, c);
			return;
		}
		c->out_sent += (size_t)n;
	}
	free(c->out);
	c->out = NULL;
	if (c->close_after_write)
		conn_close(s, c);
	else
		conn_start_reading(s, c);
}

/* take_response NULL: there was no memory even for an error. */
static void conn_respond(struct control_server *s, struct conn *c, char *take_response, size_t bytes)
{
	if (!take_response) {
		conn_close(s, c);
		return;
	}
	c->state = CONN_WRITING;
	c->deadline_ns = clock_mono_ns() + CONTROL_TIMEOUT_MS * 1000000ull;
	c->out = take_response;
	c->out_bytes = bytes;
	c->out_sent = 0;
	conn_listen_for(s, c, EPOLLOUT);
	conn_write(s, c);
}

static void conn_refuse(struct control_server *s, struct conn *c, const json_t *id, const struct control_error *error)
{
	char *response = NULL;
	size_t bytes = 0;

	if (control_response(id, NULL, error, &response, &bytes) != ERR_OK)
		response = NULL;
	conn_respond(s, c, response, bytes);
}

/* Hands waiting requests, oldest first, to workers. */
static void start_waiting(struct control_server *s)
{
	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct conn *oldest = NULL;
		struct worker *w = NULL;
		for (size_t i = 0; i < CONTROL_MAX_CONNECTIONS; i++) {
			struct conn *c = &s->conn[i];
			if (c->state != CONN_WAITING || (oldest && oldest->serial < c->serial))
				continue;
			struct worker *idle = worker_for(s, c->request.verb);
			if (idle) {
				oldest = c;
				w = idle;
			}
		}
		if (!oldest)
			break;
		w->request = oldest->request;
		oldest->request = (struct control_request){ 0 };
		oldest->state = CONN_RUNNING;
		w->conn = (size_t)(oldest - s->conn);
		w->conn_serial = oldest->serial;
		w->state = WORKER_BUSY;
	}
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
}

static void collect_done(struct control_server *s)
{
	for (unsigned i = 0; i < s->worker_count; i++) {
		struct worker *w = &s->worker[i];
		pthread_mutex_lock(&s->lock);
		bool is_done = w->state == WORKER_DONE;
		pthread_mutex_unlock(&s->lock);
		if (!is_done)
			continue;
		struct conn *c = &s->conn[w->conn];
		if (c->state == CONN_RUNNING && c->serial == w->conn_serial)
			conn_respond(s, c, w->response, w->response_bytes);
		else
			free(w->response); /* the client has gone */
		w->response = NULL;
		control_request_fini(&w->request);
		pthread_mutex_lock(&s->lock);
		w->state = WORKER_IDLE;
		pthread_mutex_unlock(&s->lock);
	}
}

static void conn_take_line(struct control_server *s, struct conn *c, size_t line_bytes)
{
	struct control_request request;
	struct control_error error;
	char *response = NULL;
	size_t bytes = 0;

	bool ok = control_request_parse(&request, s->verbs, c->in, line_bytes, &error);
	c->in_used -= line_bytes + 1;
	memmove(c->in, c->in + line_bytes + 1, c->in_used);
	if (ok && request.verb->is_slow) {
		c->request = request;
		c->serial = s->next_serial++;
		c->state = CONN_WAITING;
		conn_listen_for(s, c, 0);
		start_waiting(s);
		return;
	}
	if (!ok) {
		conn_refuse(s, c, request.id, &error);
	} else {
		if (control_request_run(&request, s->verbs, s->user, &response, &bytes) != ERR_OK)
			response = NULL;
		conn_respond(s, c, response, bytes);
	}
	control_request_fini(&request);
}

/* Takes one line if one is there whole. */
static bool conn_advance(struct control_server *s, struct conn *c)
{
	char *newline = c->in_used > 0 ? memchr(c->in, '\n', c->in_used) : NULL;
	struct control_error error;

	if (newline) {
		conn_take_line(s, c, (size_t)(newline - c->in));
		return true;
	}
	if (c->in_used < CONTROL_LINE_MAX)
		return false;
	control_fail(&error, "too-long", "a request is at most %u octets", CONTROL_LINE_MAX);
	c->close_after_write = true;
	conn_refuse(s, c, NULL, &error);
	return true;
}

static void conn_read(struct control_server *s, struct conn *c)
{
	if (conn_advance(s, c))
		return;
	if (c->in_size - c->in_used < READ_BYTES && c->in_size < CONTROL_LINE_MAX) {
		size_t larger = MIN(MAX(c->in_size * 2, (size_t)READ_BYTES), CONTROL_LINE_MAX);
		char *moved = realloc(c->in, larger);
		if (!moved) {
			conn_close(s, c);
			return;
		}
		c->in = moved;
		c->in_size = larger;
	}
	ssize_t n = recv(c->fd, c->in + c->in_used, c->in_size - c->in_used, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_close(s, c);
		return;
	}
	c->in_used += (size_t)n;
	conn_advance(s, c);
}

static void conn_event(struct control_server *s, struct conn *c, uint32_t events)
{
	switch (c->state) {
	case CONN_FREE: break; /* an event from before it was closed */
	case CONN_READING: conn_read(s, c); break;
	case CONN_WRITING: conn_write(s, c); break;
	case CONN_WAITING:
	case CONN_RUNNING:
		if (events & (EPOLLHUP | EPOLLERR))
			conn_close(s, c);
		break;
	}
}

/* ---- accepting ---- */

static bool peer_is_allowed(const struct control_server *s, int fd, struct ucred *peer)
{
	gid_t groups[MAX_PEER_GROUPS];
	socklen_t bytes = sizeof *peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) != 0)
		return false;
	if (peer->uid == 0 || peer->uid == geteuid() || (s->has_group && peer->gid == s->group))
		return true;
	bytes = sizeof groups;
	if (!s->has_group || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof groups[0]; i++) {
		if (groups[i] == s->group)
			return true;
	}
	return false;
}

static void tick(struct control_server *s, bool on)
{
	struct itimerspec every_second = { .it_interval.tv_sec = on, .it_value.tv_sec = on };

	if (s->is_ticking != on)
		timerfd_settime(s->timer_fd, 0, &every_second, NULL);
	s->is_ticking = on;
}

static void set_listening(struct control_server *s, bool on)
{
	struct epoll_event event = { .events = on ? EPOLLIN : 0, .data.u64 = TAG_LISTEN };

	if (s->is_listening != on && epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listen_fd, &event) == 0)
		s->is_listening = on;
}

/* Says why and closes. */
static void turn_away(int fd, const char *code, const char *message)
{
	struct control_error error;
	char *response;
	size_t bytes;

	control_fail(&error, code, "%s", message);
	if (control_response(NULL, NULL, &error, &response, &bytes) == ERR_OK) {
		ssize_t n = send(fd, response, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		(void)n; /* a courtesy */
		free(response);
	}
	close(fd);
}

static void add_conn(struct control_server *s, int fd)
{
	struct ucred peer = { .pid = -1, .uid = (uid_t)-1 };
	struct conn *c = s->conn;

	if (!peer_is_allowed(s, fd, &peer)) {
		log_write(M_CONTROL_DENIED,
			  "turned away process %d of uid %u: not root, not our own user, not of the socket's group",
			  (int)peer.pid, (unsigned)peer.uid);
		turn_away(fd, "denied", "this needs root, or a member of the socket's group");
		return;
	}
	while (c < s->conn + CONTROL_MAX_CONNECTIONS && c->state != CONN_FREE)
		c++;
	if (c == s->conn + CONTROL_MAX_CONNECTIONS) {
		log_write(M_CONTROL_FULL, "refused process %d: %d connections are open", (int)peer.pid, CONTROL_MAX_CONNECTIONS);
		turn_away(fd, "busy", "too many control connections are open");
		return;
	}
	struct epoll_event event = { .events = 0, .data.u64 = (uint64_t)(c - s->conn) };
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		close(fd);
		return;
	}
	*c = (struct conn){ .fd = fd, .serial = s->next_serial++ };
	s->open_count++;
	tick(s, true);
	conn_start_reading(s, c);
}

static void accept_some(struct control_server *s)
{
	for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			add_conn(s, fd);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			log_write(M_CONTROL_FAILED, "can't accept on the control socket: %s", err_text(err_from_errno(errno)));
			set_listening(s, false); /* until the next tick, or the loop would spin */
			tick(s, true);
		}
		return;
	}
}

static void on_tick(struct control_server *s)
{
	uint64_t now = clock_mono_ns(), count;
	ssize_t n = read(s->timer_fd, &count, sizeof count);

	(void)n; /* only clears it */
	set_listening(s, true);
	for (size_t i = 0; i < CONTROL_MAX_CONNECTIONS; i++) {
		struct conn *c = &s->conn[i];
		if ((c->state == CONN_READING || c->state == CONN_WRITING) && now >= c->deadline_ns)
			conn_close(s, c);
	}
	if (s->open_count == 0)
		tick(s, false);
}

/* ---- the server ---- */

static enum err make_descriptors(struct control_server *s)
{
	const int fd[] = { s->listen_fd, s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
			   s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC) };

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0 || s->wake_fd < 0 || s->timer_fd < 0)
		return err_from_errno(errno);
	int flags = fcntl(s->listen_fd, F_GETFL);
	if (flags < 0 || fcntl(s->listen_fd, F_SETFL, flags | O_NONBLOCK) != 0)
		return err_from_errno(errno);
	for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = TAG_LISTEN + i };
		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd[i], &event) != 0)
			return err_from_errno(errno);
	}
	s->is_listening = true;
	return ERR_OK;
}

static void find_group(struct control_server *s)
{
	struct sockaddr_un address = { 0 };
	socklen_t bytes = sizeof address - 1; /* the last octet stays NUL */
	struct stat st;

	s->has_group = getsockname(s->listen_fd, (struct sockaddr *)&address, &bytes) == 0 && address.sun_family == AF_UNIX &&
		       address.sun_path[0] && stat(address.sun_path, &st) == 0;
	if (s->has_group)
		s->group = st.st_gid;
}

static enum err start_workers(struct control_server *s)
{
	unsigned wanted = 0;
	sigset_t all, before;
	int failed = 0;

	for (const struct control_verb *v = s->verbs; v->name; v++)
		wanted += v->is_slow;
	wanted = MIN(wanted, CONTROL_WORKERS);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the threads that expect them */
	while (s->worker_count < wanted && !failed) {
		struct worker *w = &s->worker[s->worker_count];
		w->server = s;
		failed = pthread_create(&w->thread, NULL, worker_main, w);
		if (!failed)
			s->worker_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? ERR_NOMEM : ERR_OK;
}

enum err control_server_create(struct control_server **out, int listen_fd, const struct control_verb *verbs, void *user)
{
	struct control_server *s = calloc(1, sizeof *s);

	if (!s)
		return ERR_NOMEM;
	json_object_seed(0); /* now, while /dev/urandom may be opened: seccomp may forbid it at the first request */
	*s = (struct control_server){
		.listen_fd = listen_fd, .verbs = verbs, .user = user, .epoll_fd = -1, .wake_fd = -1, .timer_fd = -1
	};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	for (size_t i = 0; i < CONTROL_MAX_CONNECTIONS; i++)
		s->conn[i].fd = -1;
	enum err err = make_descriptors(s);
	if (err == ERR_OK) {
		find_group(s);
		err = start_workers(s);
	}
	if (err != ERR_OK) {
		control_server_destroy(s);
		return err;
	}
	*out = s;
	return ERR_OK;
}

int control_server_fd(const struct control_server *s) { return s->epoll_fd; }

void control_server_poll(struct control_server *s, int timeout_ms)
{
	struct epoll_event events[EVENTS_PER_WAIT];
	int count = epoll_wait(s->epoll_fd, events, EVENTS_PER_WAIT, timeout_ms);
	uint64_t woken;

	for (int i = 0; i < count; i++) {
		switch (events[i].data.u64) {
		case TAG_LISTEN: accept_some(s); break;
		case TAG_TIMER: on_tick(s); break;
		case TAG_WAKE:
			if (read(s->wake_fd, &woken, sizeof woken) > 0)
				collect_done(s);
			start_waiting(s);
			break;
		default: conn_event(s, &s->conn[events[i].data.u64], events[i].events); break;
		}
	}
}

void control_server_run(struct control_server *s)
{
	while (!atomic_load_explicit(&s->is_stopping, memory_order_acquire))
		control_server_poll(s, -1);
}

void control_server_stop(struct control_server *s)
{
	atomic_store_explicit(&s->is_stopping, true, memory_order_release);
	wake(s);
}

void control_server_destroy(struct control_server *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->is_ending = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < s->worker_count; i++) {
		pthread_join(s->worker[i].thread, NULL);
		free(s->worker[i].response);
		control_request_fini(&s->worker[i].request);
	}
	for (size_t i = 0; i < CONTROL_MAX_CONNECTIONS; i++) {
		if (s->conn[i].state != CONN_FREE)
			conn_close(s, &s->conn[i]);
	}
	const int own[] = { s->epoll_fd, s->wake_fd, s->timer_fd };
	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (own[i] >= 0)
			close(own[i]);
	}
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
