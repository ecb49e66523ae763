/* SPDX-License-Identifier: Apache-2.0 */
/* The process skua-fastpath under a supervisor that is this test: link protocol, slots, privileges, end. On a veth pair in a
 * network
 * namespace of its own; root only. Zones: an empty map, so every answer is REFUSED. */
#include "base/clock.h"
#include "base/control.h"
#include "base/link.h"
#include "base/log.h"
#include "table/counters.h"
#include "table/settings.h"
#include "table/shm.h"
#include "table/zone_set.h"
#include "tests/unit/fastpath/xdp/veth.h"
#include "xdp/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define WAIT_MS 5000

static char pin_dir[64], control_path[64]; /* tests run side by side */
static struct xdp_program *program;
static struct counters *counters;
static int counters_fd, control_fd, link_fd = -1, raw = -1;
static pid_t pid;

/* The program beside the tests' folder: <out>/tests/unit/fastpath/xdp/fastpath_test, <out>/skua-fastpath. */
static void path_of_program(char out[PATH_MAX])
{
	ssize_t got = readlink("/proc/self/exe", out, PATH_MAX - 64);

	cr_assert_gt(got, 0);
	out[got] = '\0';
	for (int i = 0; i < 5; i++)
		*strrchr(out, '/') = '\0';
	strcat(out, "/skua-fastpath");
	cr_assert_eq(access(out, X_OK), 0, "%s is not there", out);
}

static int sealed(const void *bytes, size_t size_bytes)
{
	void *map;
	size_t mapped;
	int fd;

	cr_assert_eq(shm_create(&fd, "test", size_bytes), ERR_OK);
	cr_assert_eq(shm_map_writable(&map, &mapped, fd), ERR_OK);
	memcpy(map, bytes, size_bytes);
	shm_unmap(map, mapped);
	cr_assert_eq(shm_seal(fd), ERR_OK);
	return fd;
}

static void tell(struct link_msg m, const char *text, int fd)
{
	snprintf(m.text, sizeof(m.text), "%s", text);
	cr_assert_eq(link_send(link_fd, &m, fd), ERR_OK, "%s", link_type_text(m.type));
}

/* The next message from the process; 0 if none comes, or the link ends. */
static uint32_t hear(struct link_msg *m)
{
	struct pollfd p = { .fd = link_fd, .events = POLLIN };
	int fd = -1;

	if (poll(&p, 1, WAIT_MS) <= 0 || link_receive(link_fd, m, &fd) != ERR_OK)
		return 0;
	cr_assert_eq(fd, -1);
	return m->type;
}

static void spawn(void)
{
	char path[PATH_MAX];
	int ends[2];

	path_of_program(path);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dup2(ends[1], LINK_FD);
		if (ends[1] == LINK_FD)
			fcntl(LINK_FD, F_SETFD, 0);
		execl(path, path, NULL);
		_exit(127);
	}
	close(ends[1]);
	link_fd = ends[0];
}

static void tell_settings(void)
{
	struct settings settings;
	int fd;

	settings_defaults(&settings);
	fd = sealed(&settings, sizeof(settings));
	tell((struct link_msg){ .type = LINK_SETTINGS }, "", fd);
	close(fd);
}

static void tell_all(const char *config)
{
	int fd = sealed(config, strlen(config));

	tell((struct link_msg){ .type = LINK_CONFIG }, "/etc/skua/test.yaml", fd);
	close(fd);
	tell((struct link_msg){ .type = LINK_COUNTERS }, "", counters_fd);
	tell_settings();
	tell((struct link_msg){ .type = LINK_CONTROL }, "", control_fd);
	tell((struct link_msg){ .type = LINK_XSKMAP, .a = if_nametoindex("skt0"), .b = XDP_MODE_AUTO }, "skt0",
	     xdp_program_xskmap_fd(program));
}

static void tell_map(uint64_t generation)
{
	struct zone_map_build *b;
	size_t bytes;
	void *map;
	int fd;

	cr_assert_eq(zone_map_build_create(&b, generation), ERR_OK);
	bytes = zone_map_build_bytes(b);
	map = aligned_alloc(8, (bytes + 7) / 8 * 8);
	memset(map, 0, bytes);
	cr_assert_eq(zone_map_build_finish(b, map), ERR_OK);
	fd = sealed(map, bytes);
	tell((struct link_msg){ .type = LINK_MAP, .generation = generation }, "", fd);
	close(fd);
	free(map);
	zone_map_build_destroy(b);
}

#define CONFIG "listen: { dns: [ 192.0.2.53 ] }\nxdp: { interfaces: [ skt0 ], ring-size: 256 }\n"

static void start(void)
{
	static const struct config_address listed = { .family = 4, .address = { 192, 0, 2, 53 }, .port = 53 };

	veth_enter();
	snprintf(control_path, sizeof(control_path), "/tmp/skua-fastpath-test-%d.sock", (int)getpid());
	veth_pin_dir(pin_dir);
	log_init("test");
	log_set_level(LOG_XDP, LOG_LEVEL_ERROR);
	cr_assert_eq(xdp_program_open(&program, "skt0", pin_dir, XDP_MODE_AUTO), ERR_OK);
	cr_assert_eq(xdp_program_set_addresses(program, &listed, 1), ERR_OK);
	cr_assert_eq(counters_create(&counters_fd, "test"), ERR_OK);
	cr_assert_eq(counters_attach(&counters, counters_fd, false), ERR_OK);
	cr_assert_eq(control_listen(&control_fd, control_path), ERR_OK);
	raw = veth_raw();
	spawn();
}

static void start_serving(void)
{
	struct link_msg m;

	start();
	tell_all(CONFIG);
	tell_map(1);
	tell((struct link_msg){ .type = LINK_GO }, "", -1);
	cr_assert_eq(hear(&m), LINK_READY);
	cr_assert_eq(hear(&m), LINK_LIVE);
	cr_assert_eq(m.generation, 1u);
	cr_assert_eq(m.a, LINK_PART_FASTPATH);
}

static int wait_for_end(void)
{
	int status = 0;

	for (int i = 0; i < WAIT_MS / 10; i++, usleep(10000))
		if (waitpid(pid, &status, WNOHANG) == pid) {
			pid = 0;
			return status;
		}
	cr_assert_fail("the process did not end");
	return status;
}

static void end(void)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (program)
		cr_assert_eq(xdp_program_detach(program), ERR_OK);
	unlink(control_path);
	veth_leave(pin_dir);
}

/* Asks and says whether a right REFUSED came back within timeout_ms. */
static bool ask(int timeout_ms)
{
	static const uint8_t dns[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 't', 'e', 's', 't', 0, 0, 1, 0, 1 };
	struct packet_options o = {
		.family = 4, .vlan = -1, .source_port = 4000, .destination_port = 53, .dns_bytes = sizeof(dns)
	};
	uint8_t query[256], reply[2048];
	size_t bytes = packet_make(query, &o, dns), got;

	cr_assert_eq(send(raw, query, bytes, 0), (ssize_t)bytes);
	got = veth_receive(raw, reply, sizeof(reply), timeout_ms);
	if (!got)
		return false;
	cr_assert_null(packet_check_reply(query, &o, reply, got, packet_get16(reply + 38) - 8));
	cr_expect_eq(reply[42], 0x12);
	cr_expect_eq(reply[44] & 0x80, 0x80, "QR");
	cr_expect_eq(reply[45] & 15, 5, "rcode %d", reply[45] & 15);
	return true;
}

static uint64_t steered(enum steer_counter c)
{
	uint64_t values[STEER_COUNTER_COUNT_];

	cr_assert_eq(xdp_program_counters(program, values), ERR_OK);
	return values[c];
}

Test(fastpath, answers_once_it_has_a_map_and_not_before, .init = start, .fini = end, .timeout = 30)
{
	struct link_msg m;

	tell_all(CONFIG);
	tell((struct link_msg){ .type = LINK_GO }, "", -1);
	cr_assert_eq(hear(&m), LINK_READY);
	cr_expect_not(ask(200));
	cr_expect_eq(steered(STEER_NO_SOCKET), 1u);
	tell_map(7);
	cr_assert_eq(hear(&m), LINK_LIVE);
	cr_expect_eq(m.generation, 7u);
	cr_expect(ask(1000));
	cr_expect_eq(steered(STEER_TAKEN), 1u);
	cr_expect_eq(counters_sum(counters, COUNTER_XDP, C_TX), 1u);
	cr_expect_eq(counters_sum(counters, COUNTER_XDP, C_REFUSED), 1u);
	cr_expect_eq(counters->pid, (uint32_t)pid);
}

Test(fastpath, follows_newer_maps_and_settings, .init = start_serving, .fini = end, .timeout = 30)
{
	struct link_msg m;

	for (uint64_t generation = 2; generation < 20; generation++) {
		tell_settings();
		tell_map(generation);
		cr_assert_eq(hear(&m), LINK_LIVE);
		cr_assert_eq(m.generation, generation);
		cr_assert(ask(1000));
	}
	cr_expect_eq(counters->block[0].generation, 19u);
}

Test(fastpath, beats_at_least_every_10_ms_when_idle, .init = start_serving, .fini = end, .timeout = 30)
{
	unsigned late = 0;

	for (int i = 0; i < 2000 && counters->block[0].heartbeat_ns == 0; i++)
		usleep(1000);
	for (int i = 0; i < 200; i++, usleep(2000)) {
		uint64_t beat = counters->block[0].heartbeat_ns, now = clock_mono_ns();

		cr_assert_gt(beat, 0u);
		late += now > beat && now - beat > 10000000;
	}
	/* A busy machine may be late itself; a thread that slept for longer than 10 ms would be late in most looks. */
	cr_expect_lt(late, 100u, "%u of 200 looks found an old heartbeat", late);
}

Test(fastpath, puts_a_parked_queue_back, .init = start_serving, .fini = end, .timeout = 30)
{
	bool answered = false;

	cr_assert(ask(1000));
	cr_assert_eq(xdp_program_clear_slot(program, 0), ERR_OK);
	tell((struct link_msg){ .type = LINK_PARKED, .a = if_nametoindex("skt0"), .b = 0 }, "", -1);
	for (int i = 0; i < 50 && !answered; i++)
		answered = ask(20);
	cr_expect(answered);
}

Test(fastpath, has_no_privileges_while_it_serves, .init = start_serving, .fini = end, .timeout = 30)
{
	char path[64], line[256];
	unsigned seen = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "CapEff:", 7) == 0 || strncmp(line, "CapPrm:", 7) == 0 || strncmp(line, "CapBnd:", 7) == 0)
			seen += strtoull(line + 7, NULL, 16) == 0;
		if (strncmp(line, "NoNewPrivs:", 11) == 0)
			seen += atoi(line + 11) == 1;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		if (strncmp(line, "Seccomp:", 8) == 0)
			seen += atoi(line + 8) == 2;
#else
		seen += strncmp(line, "Seccomp:", 8) == 0;
#endif
	}
	fclose(f);
	cr_expect_eq(seen, 5u, "%u of 5 lines are as they should be", seen);
}

Test(fastpath, answers_the_control_protocol, .init = start_serving, .fini = end, .timeout = 30)
{
	struct control_error error;
	const char *state = NULL;
	json_t *result;
	char words[32];

	cr_assert(ask(1000));
	cr_assert_eq(control_call(control_path, "status", NULL, WAIT_MS, &result, &error), ERR_OK, "%s", error.message);
	cr_assert_eq(json_unpack(json_array_get(json_object_get(result, "queues"), 0), "{s:s}", "state", &state), 0);
	snprintf(words, sizeof(words), "%s", state);
	json_decref(result);
	cr_expect_str_eq(words, "serving");
	cr_assert_eq(control_call(control_path, "log level", NULL, WAIT_MS, &result, &error), ERR_OK, "%s", error.message);
	json_decref(result);
	cr_expect(ask(1000));
}

Test(fastpath, stop_ends_it_and_empties_the_slot, .init = start_serving, .fini = end, .timeout = 30)
{
	int status;

	cr_assert(ask(1000));
	tell((struct link_msg){ .type = LINK_STOP }, "", -1);
	status = wait_for_end();
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == LINK_EXIT_OK, "status %x", (unsigned)status);
	cr_expect_not(ask(100));
	cr_expect_eq(steered(STEER_NO_SOCKET), 1u);
}

Test(fastpath, ends_when_the_supervisor_is_gone, .init = start_serving, .fini = end, .timeout = 30)
{
	int status;

	close(link_fd);
	status = wait_for_end();
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == LINK_EXIT_ORPHANED, "status %x", (unsigned)status);
}

Test(fastpath, killed_and_started_again_it_binds_at_once, .init = start_serving, .fini = end, .timeout = 60)
{
	for (int i = 0; i < 5; i++) {
		struct link_msg m;

		kill(pid, SIGKILL);
		wait_for_end();
		close(link_fd);
		cr_expect_not(ask(50), "the slot outlived the process");
		spawn();
		tell_all(CONFIG);
		tell_map(1);
		tell((struct link_msg){ .type = LINK_GO }, "", -1);
		cr_assert_eq(hear(&m), LINK_READY);
		cr_assert_eq(hear(&m), LINK_LIVE);
		cr_assert(ask(1000), "start %d", i);
	}
}

Test(fastpath, serves_on_after_the_link_was_down, .init = start_serving, .fini = end, .timeout = 30)
{
	bool answered = false;

	cr_assert(ask(1000));
	for (int round = 0; round < 3; round++) {
		veth_run("ip link set skt0 down");
		usleep(100000);
		veth_run("ip link set skt0 up");
		answered = false;
		for (int i = 0; i < 100 && !answered; i++)
			answered = ask(50);
		cr_assert(answered, "round %d", round);
	}
}

static const struct {
	const char *name;
	uint32_t type;
	int exit_code;
} bad_orders[] = {
	{ "GO before everything", LINK_GO, LINK_EXIT_FAILURE },
	{ "an order that is ours to give", LINK_READY, LINK_EXIT_ORPHANED },
};

Test(fastpath, orders_out_of_order_end_it, .init = start, .fini = end, .timeout = 60)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_orders); i++) {
		int status;

		if (i)
			spawn();
		tell((struct link_msg){ .type = bad_orders[i].type }, "", -1);
		status = wait_for_end();
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == bad_orders[i].exit_code, "%s: status %x",
			  bad_orders[i].name, (unsigned)status);
		close(link_fd);
	}
}

Test(fastpath, a_bad_configuration_and_a_mode_that_cannot_be_are_its_own_exit_code, .init = start, .fini = end, .timeout = 60)
{
	struct link_msg m;
	int status, fd = sealed("xdp: [", 6);

	tell((struct link_msg){ .type = LINK_CONFIG }, "/etc/skua/test.yaml", fd);
	close(fd);
	cr_expect_eq(hear(&m), LINK_FAILED);
	status = wait_for_end();
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == LINK_EXIT_CONFIG, "status %x", (unsigned)status);
	close(link_fd);
	spawn();
	fd = sealed(CONFIG, strlen(CONFIG));
	tell((struct link_msg){ .type = LINK_CONFIG }, "/etc/skua/test.yaml", fd);
	tell((struct link_msg){ .type = LINK_COUNTERS }, "", counters_fd);
	tell((struct link_msg){ .type = LINK_CONTROL }, "", control_fd);
	tell((struct link_msg){ .type = LINK_XSKMAP, .a = if_nametoindex("skt0"), .b = XDP_MODE_ZEROCOPY }, "skt0",
	     xdp_program_xskmap_fd(program));
	tell((struct link_msg){ .type = LINK_GO }, "", -1);
	cr_expect_eq(hear(&m), LINK_FAILED);
	status = wait_for_end();
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == LINK_EXIT_CONFIG, "zero-copy on veth: status %x", (unsigned)status);
}
