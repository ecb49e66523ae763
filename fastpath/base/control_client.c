/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of base/control.h, and the making of the listening socket. */
#include "base/control.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_RETRY_MS 10   /* the backlog of a unix socket is full: no event tells when it is not */
#define FOLDER_LOCK_TRIES 100 /* times CONNECT_RETRY_MS */
#define READ_BYTES 65536u

static bool address_from_path(struct sockaddr_un *out, const char *path)
{
	size_t bytes = strlen(path);

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (bytes == 0 || bytes >= sizeof out->sun_path)
		return false;
	memcpy(out->sun_path, path, bytes);
	return true;
}

static int unix_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

/* Removes the socket at address if nobody listens on it. */
static enum err remove_dead_socket(const struct sockaddr_un *address)
{
	struct stat st;

	if (lstat(address->sun_path, &st) != 0)
		return errno == ENOENT ? ERR_OK : err_from_errno(errno);
	if (!S_ISSOCK(st.st_mode))
		return ERR_EXISTS;
	int fd = unix_socket();
	if (fd < 0)
		return err_from_errno(errno);
	bool is_dead = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
	close(fd);
	if (!is_dead)
		return ERR_BUSY;
	return unlink(address->sun_path) == 0 || errno == ENOENT ? ERR_OK : err_from_errno(errno);
}

/* Locks the folder that path is in, so that two starting processes do not remove each other's socket. */
static enum err lock_folder(int *fd, const char *path)
{
	char folder[sizeof((struct sockaddr_un *)0)->sun_path];
	const char *slash = strrchr(path, '/');

	snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : slash ? (int)(slash - path) : 1, slash ? path : ".");
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return err_from_errno(errno);
	for (int i = 0; i < FOLDER_LOCK_TRIES; i++) {
		if (flock(folder_fd, LOCK_EX | LOCK_NB) == 0) {
			*fd = folder_fd;
			return ERR_OK;
		}
		poll(NULL, 0, CONNECT_RETRY_MS);
	}
	close(folder_fd);
	return ERR_BUSY;
}

enum err control_listen(int *fd, const char *path)
{
	struct sockaddr_un address;
	int lock = -1;

	if (!address_from_path(&address, path))
		return ERR_ARGUMENT;
	int listener = unix_socket();
	if (listener < 0)
		return err_from_errno(errno);
	enum err err = lock_folder(&lock, path);
	if (err == ERR_OK)
		err = remove_dead_socket(&address);
	/* fchmod before bind gives the file at most these rights from its first moment, chmod after it exactly these */
	if (err == ERR_OK && (fchmod(listener, 0660) != 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
			      chmod(path, 0660) != 0 || listen(listener, CONTROL_MAX_CONNECTIONS) != 0))
		err = errno == EADDRINUSE ? ERR_BUSY : err_from_errno(errno);
	if (lock >= 0)
		close(lock);
	if (err != ERR_OK) {
		close(listener);
		return err;
	}
	*fd = listener;
	return ERR_OK;
}

/* Milliseconds until deadline, rounded up; 0 when it has passed. */
static int left_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_mono_ns();

	return now >= deadline_ns ? 0 : (int)MIN((deadline_ns - now + 999999) / 1000000, (uint64_t)INT32_MAX);
}

static enum err wait_for(int fd, short events, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		int ms = left_ms(deadline_ns), n = poll(&p, 1, ms);
		if (n > 0)
			return ERR_OK;
		if (n == 0 && left_ms(deadline_ns) == 0)
			return ERR_TIMEOUT;
		if (n < 0 && errno != EINTR)
			return err_from_errno(errno);
	}
}

static enum err connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline_ns)
{
	while (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			return ERR_NOTFOUND;
		if (errno != EAGAIN && errno != EINTR)
			return err_from_errno(errno);
		if (left_ms(deadline_ns) == 0)
			return ERR_TIMEOUT;
		poll(NULL, 0, CONNECT_RETRY_MS);
	}
	return ERR_OK;
}

/* A peer that closes early may have said why: that is for receive_line to find out. */
static enum err send_all(int fd, const char *text, size_t bytes, uint64_t deadline_ns)
{
	while (bytes > 0) {
		ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);
		if (n > 0) {
			text += n;
			bytes -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return ERR_OK;
		if (errno != EAGAIN && errno != EINTR)
			return err_from_errno(errno);
		enum err err = wait_for(fd, POLLOUT, deadline_ns);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

static enum err receive_line(int fd, char **line, size_t *line_bytes, uint64_t deadline_ns)
{
	char *text = NULL;
	size_t used = 0, size = 0;
	enum err err;

	for (;;) {
		if (size - used < READ_BYTES) {
			size_t larger = MAX(size * 2, 2 * (size_t)READ_BYTES);
			char *moved = used >= CONTROL_RESPONSE_MAX ? NULL : realloc(text, larger);
			err = used >= CONTROL_RESPONSE_MAX ? ERR_MALFORMED : ERR_NOMEM;
			if (!moved)
				break;
			text = moved;
			size = larger;
		}
		ssize_t n = recv(fd, text + used, READ_BYTES, 0);
		if (n > 0) {
			char *newline = memchr(text + used, '\n', (size_t)n);
			used += (size_t)n;
			if (!newline)
				continue;
			*line = text;
			*line_bytes = (size_t)(newline - text);
			return ERR_OK;
		}
		err = n == 0 || errno == ECONNRESET ? ERR_CLOSED : err_from_errno(errno);
		if (err == ERR_CLOSED || (errno != EAGAIN && errno != EINTR))
			break;
		err = wait_for(fd, POLLIN, deadline_ns);
		if (err != ERR_OK)
			break;
	}
	free(text);
	return err;
}

static enum err err_from_code(const char *code)
{
	static const struct {
		const char *code;
		enum err err;
	} table[] = {
		{ "not-found", ERR_NOTFOUND },
		{ "denied", ERR_DENIED },
		{ "busy", ERR_BUSY },
		{ "exists", ERR_EXISTS },
		{ "unsupported", ERR_UNSUPPORTED },
		{ "bad-args", ERR_ARGUMENT },
		{ "bad-request", ERR_ARGUMENT },
		{ "unknown-verb", ERR_UNSUPPORTED },
		{ "no-memory", ERR_NOMEM },
		{ "timeout", ERR_TIMEOUT },
		{ "too-large", ERR_NOSPACE },
		{ "too-long", ERR_NOSPACE },
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (strcmp(table[i].code, code) == 0)
			return table[i].err;
	}
	return ERR_IO;
}

/* Reads a response line into *result or *error. */
static enum err read_response(const char *line, size_t bytes, json_t **result, struct control_error *error)
{
	json_t *root = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);
	const json_t *ok = json_object_get(root, "ok"), *value = json_object_get(root, "result");
	const json_t *failure = json_object_get(root, "error");
	const char *code = json_string_value(json_object_get(failure, "code"));
	const char *message = json_string_value(json_object_get(failure, "message"));
	enum err err = ERR_OK;

	if (json_is_true(ok) && value) {
		*result = json_incref((json_t *)value);
	} else if (json_is_false(ok) && code && message) {
		control_fail(error, code, "%s", message);
		err = err_from_code(code);
	} else {
		control_fail(error, "bad-response", "the answer does not follow the control protocol");
		err = ERR_MALFORMED;
	}
	json_decref(root);
	return err;
}

static void explain(struct control_error *error, enum err err, const char *path, int timeout_ms)
{
	switch (err) {
	case ERR_NOTFOUND: control_fail(error, "not-running", "nobody listens at %s", path); break;
	case ERR_DENIED: control_fail(error, "denied", "no permission to open %s", path); break;
	case ERR_TIMEOUT: control_fail(error, "timeout", "no answer from %s within %d ms", path, timeout_ms); break;
	case ERR_CLOSED: control_fail(error, "closed", "%s closed the connection without an answer", path); break;
	case ERR_MALFORMED: control_fail(error, "bad-response", "the answer from %s is too long", path); break;
	default: control_fail(error, "failed", "%s: %s", path, err_text(err)); break;
	}
}

static enum err request_text(const char *verb, json_t *take_args, char **out, size_t *out_bytes)
{
	json_t *root = json_pack("{s:s, s:o}", "verb", verb, "args", take_args ? take_args : json_object());
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	if (!text)
		return ERR_NOMEM;
	*out_bytes = strlen(text) + 1;
	text[*out_bytes - 1] = '\n'; /* in place of the NUL */
	*out = text;
	return ERR_OK;
}

enum err control_call(const char *socket_path, const char *verb, json_t *take_args, int timeout_ms, json_t **result,
		      struct control_error *error)
{
	uint64_t deadline_ns = clock_mono_ns() + (uint64_t)MAX(timeout_ms, 0) * 1000000u;
	struct sockaddr_un address;
	char *request = NULL, *line = NULL;
	size_t request_bytes = 0, line_bytes = 0;
	int fd = -1;

	enum err err = request_text(verb, take_args, &request, &request_bytes);
	if (err == ERR_OK && !address_from_path(&address, socket_path))
		err = ERR_ARGUMENT;
	if (err == ERR_OK) {
		fd = unix_socket();
		err = fd < 0 ? err_from_errno(errno) : connect_until(fd, &address, deadline_ns);
	}
	if (err == ERR_OK)
		err = send_all(fd, request, request_bytes, deadline_ns);
	if (err == ERR_OK)
		err = receive_line(fd, &line, &line_bytes, deadline_ns);
	if (err == ERR_OK)
		err = read_response(line, line_bytes, result, error);
	else
		explain(error, err, socket_path, timeout_ms);
	if (fd >= 0)
		close(fd);
	free(line);
	free(request);
	return err;
}
