/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way on a veth pair in a network namespace of its own: program, XSKMAP, socket, serving thread. The answer is a test
 * double that turns QR on; frames are sent and received raw on the pair's other end. Root only, skipped otherwise. */
#include "answer/answer.h"

static void fake_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
static void fake_prefetch(const struct snapshot *s, struct answer_query *q);
static enum answer_verdict fake_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q);
#define answer_prepare fake_prepare
#define answer_prefetch fake_prefetch
#define answer_finish fake_finish
#include "fastpath/xdp/serve_hot.c"

#include "base/clock.h"
#include "base/log.h"
#include "packet.h"
#include "xdp/device.h"
#include "xdp/program.h"
#include "xdp/serve.h"

#include <criterion/criterion.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIN_DIR "/tmp/skua-veth-test"

static void fake_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q) { (void)s, (void)t, (void)q; }
static void fake_prefetch(const struct snapshot *s, struct answer_query *q) { (void)s, (void)q; }
static enum answer_verdict fake_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	(void)s, (void)t;
	q->msg[2] |= 0x80;
	q->response_bytes = q->query_bytes;
	return ANSWER_SEND;
}

static struct snapshot empty_snapshot;
static struct snapshot_holder holder;
static struct counter_block counters;
static struct xdp_program *program;
static struct xdp_socket *xsk;
static struct serve *serving;
static int raw = -1;

static void run(const char *command) { cr_assert_eq(system(command), 0, "%s", command); }

static void start(void)
{
	static const struct config_address listed[] = {
		{ .family = 4, .address = { 192, 0, 2, 53 }, .port = 53 },
		{ .family = 6, .address = { 0x20, 1, 0x0d, 0xb8, [15] = 0x53 }, .port = 53 },
	};
	struct xdp_socket_options o = { .ifname = "skt0", .queue = 0, .mode = XDP_MODE_AUTO, .ring_size = 256 };
	int on = 1;
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	if (geteuid() != 0)
		cr_skip_test("needs root");
	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
	cr_assert_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
	run("ip link add skt0 type veth peer name skt1 && ip link set skt0 up && ip link set skt1 up");
	log_init("test");
	log_set_level(LOG_XDP, LOG_LEVEL_ERROR);
	cr_assert_eq(xdp_program_open(&program, "skt0", PIN_DIR, XDP_MODE_AUTO), ERR_OK);
	cr_assert_eq(xdp_program_set_addresses(program, listed, ARRAY_LEN(listed)), ERR_OK);
	cr_assert_eq(xdp_socket_create(&xsk, &o), ERR_OK);
	serving = calloc(1, sizeof(*serving));
	serving->umem = &xsk->umem;
	serving->socket = xsk;
	serving->counters = &counters;
	serving->snapshots = &holder;
	serving->cpu = -1;
	serving->mtu_bytes = 1500;
	atomic_store(&holder.current_, &empty_snapshot);
	cr_assert_eq(serve_start(serving, "serve"), ERR_OK);
	cr_assert_eq(xdp_socket_insert(xsk, xdp_program_xskmap_fd(program)), ERR_OK);
	raw = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	at.sll_ifindex = (int)if_nametoindex("skt1");
	cr_assert_eq(setsockopt(raw, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), 0);
	cr_assert_eq(bind(raw, (struct sockaddr *)&at, sizeof(at)), 0);
}

static void end(void)
{
	if (!serving)
		return;
	serve_stop(serving);
	cr_assert(umem_is_conserved(&xsk->umem));
	xdp_socket_destroy(xsk);
	cr_assert_eq(xdp_program_detach(program), ERR_OK);
	free(serving);
	close(raw);
}

/* The next frame from the other end, our own ones left out; 0 after timeout_ms. The kernel takes VLAN tags out: put back. */
static size_t receive(uint8_t *out, size_t room, int timeout_ms)
{
	struct pollfd p = { .fd = raw, .events = POLLIN };

	while (poll(&p, 1, timeout_ms) > 0) {
		alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		struct sockaddr_ll from;
		struct iovec iov = { .iov_base = out, .iov_len = room - 4 };
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
				    .msg_control = control, .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(raw, &m, 0);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		struct tpacket_auxdata aux = { 0 };

		if (got <= 0 || from.sll_pkttype == PACKET_OUTGOING)
			continue;
		if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (aux.tp_status & TP_STATUS_VLAN_VALID) {
			memmove(out + 16, out + 12, (size_t)got - 12);
			packet_put16(out + 12, 0x8100);
			packet_put16(out + 14, aux.tp_vlan_tci);
			got += 4;
		}
		return (size_t)got;
	}
	return 0;
}

Test(veth, every_kind_of_frame_is_answered_by_af_xdp, .init = start, .fini = end, .timeout = 30)
{
	static const struct { const char *name; struct packet_options o; } cases[] = {
		{ "IPv4", { .family = 4, .vlan = -1, .dns_bytes = 40 } },
		{ "IPv4, 17 octets of DNS, padded to 60", { .family = 4, .vlan = -1, .dns_bytes = 17, .padded_bytes = 60 } },
		{ "IPv4, longest for MTU 1500", { .family = 4, .vlan = -1, .dns_bytes = 1472 } },
		{ "IPv4 in VLAN 7", { .family = 4, .vlan = 7, .dns_bytes = 41 } },
		{ "IPv6", { .family = 6, .vlan = -1, .dns_bytes = 41 } },
		{ "IPv6 in VLAN 4000", { .family = 6, .vlan = 4000, .dns_bytes = 100 } },
		{ "IPv6, longest for MTU 1500", { .family = 6, .vlan = -1, .dns_bytes = 1452 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct packet_options o = cases[i].o;
		uint8_t dns[1500], query[2048], reply[2048];
		size_t bytes, got;
		const char *wrong;

		memset(dns, 0, sizeof(dns));
		o.source_port = (uint16_t)(1024 + i);
		o.destination_port = 53;
		bytes = packet_make(query, &o, dns);
		cr_assert_eq(send(raw, query, bytes, 0), (ssize_t)bytes);
		got = receive(reply, sizeof(reply), 1000);
		cr_assert(got > 0, "%s: no reply", cases[i].name);
		wrong = packet_check_reply(query, &o, reply, got, o.dns_bytes);
		cr_assert_null(wrong, "%s: %s", cases[i].name, wrong);
	}
	cr_assert_eq(counter_get(&counters, C_RX), ARRAY_LEN(cases));
	cr_assert_eq(counter_get(&counters, C_TX), ARRAY_LEN(cases));
	cr_assert_eq(counter_get(&counters, C_FRAME_BAD), 0);
}
