/* SPDX-License-Identifier: Apache-2.0 */
/* Shorter than in life, so that the test that sits it out is quick. */
#include "base/control.h"
#undef CONTROL_TIMEOUT_MS
#define CONTROL_TIMEOUT_MS 2000
#include "../../../../fastpath/base/control.c"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[100];
static _Atomic int running, most_running, gate; /* slow verbs inside; they wait until gate is set */

static json_t *quick(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)error;
	return json_incref((json_t *)args);
}

static json_t *slow(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args, (void)error;
	int now = ++running;
	if (now > most_running)
		most_running = now;
	while (!gate)
		usleep(1000);
	running--;
	return json_string("done");
}

static json_t *large(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args, (void)error;
	char *text = malloc(8 << 20);
	memset(text, 'x', 8 << 20);
	json_t *result = json_stringn(text, 8 << 20);
	free(text);
	return result;
}

static json_t *missing(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args;
	control_fail(error, "not-found", "no such zone");
	return NULL;
}

static const struct control_verb verbs[] = {
	{ "quick", quick, "", false }, { "slow a", slow, "", true },	  { "slow b", slow, "", true },
	{ "slow c", slow, "", true },  { "slow d", slow, "", true },	  { "slow e", slow, "", true },
	{ "large", large, "", false }, { "missing", missing, "", false }, { .name = NULL },
};

static struct control_server *server;
static int listener = -1;
static pthread_t server_thread;

static void *serve(void *arg)
{
	control_server_run(arg);
	return NULL;
}

static void setup(void)
{
	snprintf(folder, sizeof folder, "/tmp/config-control-XXXXXX");
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/socket", folder);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
}

static void teardown(void)
{
	unlink(path);
	rmdir(folder);
}

static void start(void)
{
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	cr_assert_eq(control_server_create(&server, listener, verbs, NULL), ERR_OK);
	cr_assert_eq(pthread_create(&server_thread, NULL, serve, server), 0);
}

static void stop(void)
{
	control_server_stop(server);
	pthread_join(server_thread, NULL);
	control_server_destroy(server);
	close(listener);
}

static int dial(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path, path, strlen(path) + 1);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static void say(int fd, const char *text) { cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text)); }

/* Whether a line equal to (or, with a star at its end, starting like) want comes within 5 s. */
static bool hears(int fd, const char *want)
{
	char line[1000];
	size_t used = 0;

	while (used < sizeof line - 1) {
		struct pollfd p = { fd, POLLIN, 0 };
		if (poll(&p, 1, 5000) != 1 || recv(fd, line + used, 1, 0) != 1)
			break;
		if (line[used++] == '\n')
			break;
	}
	line[used] = '\0';
	size_t n = strlen(want);
	bool ok = want[n - 1] == '*' ? strncmp(line, want, n - 1) == 0 : strcmp(line, want) == 0;
	if (!ok)
		cr_log_error("heard \"%s\", not \"%s\"", line, want);
	return ok;
}

static bool is_closed(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char c;
	return poll(&p, 1, 15000) == 1 && recv(fd, &c, 1, 0) <= 0;
}

TestSuite(control, .init = setup, .fini = teardown, .timeout = 60);

Test(control, a_call_gets_its_result_or_its_error)
{
	struct control_error error = { 0 };
	json_t *result = NULL;
	start();
	cr_assert_eq(control_call(path, "quick", json_pack("{s:i}", "x", 1), 5000, &result, &error), ERR_OK, "%s", error.message);
	cr_expect_eq(json_integer_value(json_object_get(result, "x")), 1);
	json_decref(result);
	cr_expect_eq(control_call(path, "quick", NULL, 5000, &result, &error), ERR_OK);
	json_decref(result);
	result = NULL;
	cr_expect_eq(control_call(path, "missing", NULL, 5000, &result, &error), ERR_NOTFOUND);
	cr_expect_str_eq(error.code, "not-found");
	cr_expect_str_eq(error.message, "no such zone");
	cr_expect_eq(control_call(path, "nonsense", NULL, 5000, &result, &error), ERR_UNSUPPORTED);
	cr_expect_null(result, "untouched");
	cr_expect_eq(control_call(path, "large", NULL, 5000, &result, &error), ERR_OK);
	cr_expect_eq(json_string_length(result), 8 << 20);
	json_decref(result);
	stop();
}

Test(control, one_connection_carries_many_requests)
{
	start();
	int fd = dial();
	for (int i = 0; i < 100; i++) {
		say(fd, "{\"verb\":\"quick\",\"id\":1}\n");
		cr_assert(hears(fd, "{\"id\":1,\"ok\":true,\"result\":{}}\n"));
	}
	say(fd, "{\"verb\":\"quick\",\"id\":1}\n{\"verb\":\"quick\",\"id\":2}\nnonsense\n{\"verb\":\"qui");
	cr_expect(hears(fd, "{\"id\":1,\"ok\":true,\"result\":{}}\n"));
	cr_expect(hears(fd, "{\"id\":2,\"ok\":true,\"result\":{}}\n"));
	cr_expect(hears(fd, "{\"ok\":false,\"error\":{\"code\":\"bad-request\"*"), "a bad line does not end the connection");
	say(fd, "ck\",\"id\":3}\n");
	cr_expect(hears(fd, "{\"id\":3,\"ok\":true,\"result\":{}}\n"));
	shutdown(fd, SHUT_WR);
	cr_expect(is_closed(fd));
	close(fd);
	stop();
}

Test(control, a_slow_verb_does_not_hold_up_the_others)
{
	struct control_error error;
	json_t *result;
	start();
	int first = dial(), again = dial(), half_closed = dial();
	say(first, "{\"verb\":\"slow a\",\"id\":1}\n");
	say(again, "{\"verb\":\"slow a\",\"id\":2}\n");
	say(half_closed, "{\"verb\":\"slow b\",\"id\":3}\n");
	shutdown(half_closed, SHUT_WR);
	for (int i = 0; i < 50; i++) {
		cr_assert_eq(control_call(path, "quick", NULL, 2000, &result, &error), ERR_OK);
		json_decref(result);
	}
	cr_expect_eq(running, 2, "the same slow verb runs once at a time");
	cr_expect_eq(control_call(path, "slow c", NULL, 100, &result, &error), ERR_TIMEOUT);
	cr_expect_str_eq(error.code, "timeout");
	gate = 1;
	cr_expect(hears(first, "{\"id\":1,\"ok\":true,\"result\":\"done\"}\n"));
	cr_expect(hears(again, "{\"id\":2,\"ok\":true,\"result\":\"done\"}\n"));
	cr_expect(hears(half_closed, "{\"id\":3,\"ok\":true,\"result\":\"done\"}\n"));
	close(first), close(again), close(half_closed);
	stop();
}

Test(control, workers_are_bounded_and_clients_that_leave_are_forgotten)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	int fd[20];
	char line[64];
	start();
	for (int i = 0; i < 20; i++) {
		fd[i] = dial();
		snprintf(line, sizeof line, "{\"verb\":\"slow %s\",\"id\":%d}\n", names[i % 5], i);
		say(fd[i], line);
	}
	for (int i = 0; i < 2000 && running < CONTROL_WORKERS; i++)
		usleep(1000);
	usleep(50000);
	cr_expect_eq(running, CONTROL_WORKERS);
	for (int i = 0; i < 20; i += 2)
		close(fd[i]); /* some run, some wait */
	usleep(50000);
	gate = 1;
	for (int i = 1; i < 20; i += 2) {
		snprintf(line, sizeof line, "{\"id\":%d,\"ok\":true,\"result\":\"done\"}\n", i);
		cr_expect(hears(fd[i], line));
		close(fd[i]);
	}
	cr_expect_eq(most_running, CONTROL_WORKERS);
	stop();
	cr_expect_eq(running, 0);
}

Test(control, stopping_waits_for_what_runs)
{
	start();
	int fd = dial();
	say(fd, "{\"verb\":\"slow a\"}\n");
	for (int i = 0; i < 2000 && !running; i++)
		usleep(1000);
	cr_expect_eq(running, 1);
	gate = 1;
	stop();
	cr_expect_eq(running, 0);
	close(fd);
}

Test(control, a_line_that_is_too_long_ends_the_connection)
{
	start();
	int fd = dial();
	char *line = malloc(CONTROL_LINE_MAX + 1);
	memset(line, ' ', CONTROL_LINE_MAX + 1);
	memcpy(line, "{\"verb\":\"quick\"}", 16);
	line[CONTROL_LINE_MAX - 1] = '\n';
	cr_expect_eq(send(fd, line, CONTROL_LINE_MAX, MSG_NOSIGNAL), (ssize_t)CONTROL_LINE_MAX);
	cr_expect(hears(fd, "{\"ok\":true,\"result\":{}}\n"), "the longest line");
	line[CONTROL_LINE_MAX - 1] = ' ';
	cr_expect_eq(send(fd, line, CONTROL_LINE_MAX, MSG_NOSIGNAL), (ssize_t)CONTROL_LINE_MAX);
	cr_expect(hears(fd, "{\"ok\":false,\"error\":{\"code\":\"too-long\"*"));
	cr_expect(is_closed(fd));
	close(fd);
	free(line);
	stop();
}

Test(control, connections_are_bounded)
{
	int fd[CONTROL_MAX_CONNECTIONS];
	struct control_error error;
	json_t *result;
	start();
	for (int i = 0; i < CONTROL_MAX_CONNECTIONS; i++) {
		fd[i] = dial();
		say(fd[i], "{\"verb\":\"quick\"}\n");
		cr_assert(hears(fd[i], "{\"ok\":true,\"result\":{}}\n"));
	}
	cr_expect_eq(control_call(path, "quick", NULL, 2000, &result, &error), ERR_BUSY);
	cr_expect_str_eq(error.code, "busy");
	close(fd[7]);
	enum err err = ERR_BUSY;
	for (int i = 0; i < 100 && err == ERR_BUSY; i++) {
		usleep(10000);
		err = control_call(path, "quick", NULL, 2000, &result, &error);
	}
	cr_expect_eq(err, ERR_OK, "a freed place is used again");
	for (int i = 0; i < CONTROL_MAX_CONNECTIONS; i++) {
		if (i != 7)
			close(fd[i]);
	}
	stop();
}

Test(control, silent_clients_are_closed_and_slow_verbs_are_not)
{
	start();
	int silent = dial(), dripping = dial(), deaf = dial(), waiting = dial();
	say(waiting, "{\"verb\":\"slow a\"}\n");
	say(deaf, "{\"verb\":\"large\"}\n");
	uint64_t began = clock_mono_ns();
	for (int i = 0; i < 16; i++) {
		ssize_t n = send(dripping, "x", 1, MSG_NOSIGNAL);
		(void)n;
		usleep(200000);
	}
	cr_expect(is_closed(silent));
	cr_expect(is_closed(dripping), "a line has to be whole in time, however many octets come");
	cr_expect_lt(clock_mono_ns() - began, 9000000000u);
	struct pollfd gone = { .fd = deaf, .events = POLLRDHUP }; /* its time began when the answer was made */
	cr_expect_eq(poll(&gone, 1, 10000), 1, "a client that does not read is closed");
	char buffer[65536];
	size_t got = 0;
	for (ssize_t n; (n = recv(deaf, buffer, sizeof buffer, 0)) > 0;)
		got += (size_t)n;
	cr_expect(got > 0 && got < 8 << 20, "a client that does not read loses the rest: %zu", got);
	gate = 1;
	cr_expect(hears(waiting, "{\"ok\":true,\"result\":\"done\"}\n"));
	stop();
}

/* Calls as another user, from a process of its own: what control_call returned. */
static enum err call_as(uid_t uid, gid_t gid, gid_t extra_group, char code[32])
{
	int pipe_fd[2], status = -1;
	cr_assert_eq(pipe(pipe_fd), 0);
	pid_t child = fork();
	if (child == 0) {
		struct control_error error = { .code = "" };
		json_t *result;
		gid_t groups[] = { 4242, extra_group };
		if (setgroups(2, groups) || setgid(gid) || setuid(uid))
			_exit(99);
		enum err err = control_call(path, "quick", NULL, 5000, &result, &error);
		if (write(pipe_fd[1], error.code, sizeof error.code) != sizeof error.code)
			_exit(98);
		_exit((int)err);
	}
	cr_assert_eq(read(pipe_fd[0], code, 32), 32);
	waitpid(child, &status, 0);
	close(pipe_fd[0]), close(pipe_fd[1]);
	return (enum err)WEXITSTATUS(status);
}

Test(control, only_root_our_own_user_and_the_group_get_in)
{
	char code[32];
	struct stat st;
	cr_assert_eq(geteuid(), 0, "unit tests run as root");
	chmod(folder, 0755);
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	cr_expect(stat(path, &st) == 0 && (st.st_mode & 07777) == 0660);
	cr_assert_eq(chown(path, 0, 5555), 0);
	cr_assert_eq(control_server_create(&server, listener, verbs, NULL), ERR_OK);
	cr_assert_eq(pthread_create(&server_thread, NULL, serve, server), 0);
	cr_expect_eq(call_as(65534, 65534, 65534, code), ERR_DENIED, "the file's mode");
	cr_expect_eq(call_as(65534, 5555, 65534, code), ERR_OK, "the group: %s", code);
	cr_expect_eq(call_as(65534, 65534, 5555, code), ERR_OK, "as a further group: %s", code);
	cr_expect_eq(call_as(0, 65534, 65534, code), ERR_OK, "root: %s", code);
	cr_assert_eq(chmod(path, 0666), 0);
	cr_expect_eq(call_as(65534, 65534, 65534, code), ERR_DENIED, "SO_PEERCRED, when the mode lets everybody in");
	cr_expect_str_eq(code, "denied");
	stop();
}

Test(control, the_caller_learns_why_it_got_no_answer)
{
	struct control_error error;
	json_t *result;
	cr_expect_eq(control_call(path, "quick", NULL, 1000, &result, &error), ERR_NOTFOUND, "no such file");
	cr_expect_str_eq(error.code, "not-running");
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	uint64_t began = clock_mono_ns();
	cr_expect_eq(control_call(path, "quick", NULL, 200, &result, &error), ERR_TIMEOUT, "somebody listens and says nothing");
	cr_expect(clock_mono_ns() - began >= 200000000 && clock_mono_ns() - began < 3000000000u);
	close(listener);
	cr_expect_eq(control_call(path, "quick", NULL, 1000, &result, &error), ERR_NOTFOUND, "a dead socket");
	cr_expect_str_eq(error.code, "not-running");
	char longer[200];
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	cr_expect_eq(control_call(longer, "quick", NULL, 1000, &result, &error), ERR_ARGUMENT);
}

/* Answers one connection with text. */
static void *impostor(void *text)
{
	struct pollfd p = { listener, POLLIN, 0 };
	poll(&p, 1, 5000);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char c[4096];
	ssize_t n = recv(fd, c, sizeof c, 0);
	(void)n;
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

Test(control, strange_answers_are_refused)
{
	static const char *const answers[] = { "{}\n",
					       "[]\n",
					       "x\n",
					       "\n",
					       "{\"ok\":true}\n",
					       "{\"ok\":false}\n",
					       "{\"ok\":false,\"error\":{}}\n",
					       "{\"ok\":1,\"result\":1}\n",
					       "{\"ok\":false,\"error\":{\"code\":1,\"message\":\"\"}}\n" };
	struct control_error error;
	json_t *result;
	pthread_t thread;
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		pthread_create(&thread, NULL, impostor, (void *)answers[i]);
		cr_expect_eq(control_call(path, "quick", NULL, 5000, &result, &error), ERR_MALFORMED, "%s", answers[i]);
		cr_expect_str_eq(error.code, "bad-response");
		pthread_join(thread, NULL);
	}
	pthread_create(&thread, NULL, impostor, "{\"ok\":true,\"result\":");
	cr_expect_eq(control_call(path, "quick", NULL, 5000, &result, &error), ERR_CLOSED);
	pthread_join(thread, NULL);
}

Test(control, the_socket_file_is_taken_over_only_from_the_dead)
{
	int second = -7;
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	cr_expect_eq(control_listen(&second, path), ERR_BUSY);
	cr_expect_eq(second, -7);
	close(listener);
	cr_expect_eq(control_listen(&listener, path), ERR_OK, "a dead one is replaced");
	cr_expect(fcntl(listener, F_GETFD) & FD_CLOEXEC);
	close(listener);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	cr_expect_eq(control_listen(&listener, path), ERR_EXISTS, "never anything else than a socket");
	cr_expect_eq(access(path, F_OK), 0);
	cr_expect_eq(control_listen(&listener, "/nonexistent/x"), ERR_NOTFOUND);
	char longer[200];
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	cr_expect_eq(control_listen(&listener, longer), ERR_ARGUMENT);
	cr_expect_eq(control_listen(&listener, ""), ERR_ARGUMENT);
}

Test(control, of_several_starters_one_wins)
{
	int child_count = 8, won = 0, status;
	int go[2];
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	close(listener); /* leaves a dead socket */
	cr_assert_eq(pipe(go), 0);
	for (int i = 0; i < child_count; i++) {
		if (fork() == 0) {
			char c;
			close(go[1]);
			ssize_t n = read(go[0], &c, 1);
			int fd;
			enum err err = control_listen(&fd, path);
			if (err == ERR_OK)
				usleep(1500000);
			_exit(n != 0 ? 2 : err == ERR_OK ? 0 : err == ERR_BUSY ? 1 : 3);
		}
	}
	close(go[0]), close(go[1]);
	for (int i = 0; i < child_count; i++) {
		wait(&status);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) < 2);
		won += WEXITSTATUS(status) == 0;
	}
	cr_expect_eq(won, 1);
}

Test(control, a_loop_of_ones_own_can_serve)
{
	cr_assert_eq(control_listen(&listener, path), ERR_OK);
	cr_assert_eq(control_server_create(&server, listener, verbs, NULL), ERR_OK);
	int fd = dial();
	say(fd, "{\"verb\":\"quick\"}\n");
	say(fd, "{\"verb\":\"slow a\"}\n");
	gate = 1;
	struct pollfd p[] = { { control_server_fd(server), POLLIN, 0 }, { fd, POLLIN, 0 } };
	size_t lines = 0;
	while (lines < 2 && poll(p, 2, 5000) > 0) {
		char c[256];
		if (p[0].revents)
			control_server_poll(server, 0);
		if (p[1].revents) {
			ssize_t n = recv(fd, c, sizeof c, 0);
			for (ssize_t i = 0; i < n; i++)
				lines += c[i] == '\n';
		}
	}
	cr_expect_eq(lines, 2);
	close(fd);
	control_server_destroy(server);
	control_server_destroy(NULL);
	close(listener);
}
