/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way on a veth pair in a network namespace of its own: program, XSKMAP, socket, serving thread. The answer is a test
 * double that turns QR on; frames are sent and received raw on the pair's other end. Root only. */
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
#include "xdp/program.h"
#include "xdp/serve.h"

#include "tests/unit/fastpath/xdp/veth.h"

static void fake_prepare(const struct snapshot *s, struct answer_thread *t, struct answer_query *q) { (void)s, (void)t, (void)q; }
static void fake_prefetch(const struct snapshot *s, struct answer_query *q) { (void)s, (void)q; }
static enum answer_verdict fake_finish(const struct snapshot *s, struct answer_thread *t, struct answer_query *q)
{
	(void)s, (void)t;
	q->msg[2] |= 0x80;
	q->response_bytes = q->query_bytes;
	return ANSWER_SEND;
}

static char pin_dir[64];
static struct snapshot empty_snapshot;
static struct snapshot_holder holder;
static struct counter_block counters;
static struct xdp_program *program;
static struct xdp_socket *xsk;
static struct serve *serving;
static int raw = -1;

static void start(void)
{
	static const struct config_address listed[] = {
		{ .family = 4, .address = { 192, 0, 2, 53 }, .port = 53 },
		{ .family = 6, .address = { 0x20, 1, 0x0d, 0xb8, [15] = 0x53 }, .port = 53 },
	};
	struct xdp_socket_options o = { .ifname = "skt0", .queue = 0, .mode = XDP_MODE_AUTO, .ring_size = 256 };

	veth_enter();
	veth_pin_dir(pin_dir);
	log_init("test");
	log_set_level(LOG_XDP, LOG_LEVEL_ERROR);
	cr_assert_eq(xdp_program_open(&program, "skt0", pin_dir, XDP_MODE_AUTO), ERR_OK);
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
	raw = veth_raw();
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
	veth_leave(pin_dir);
}

Test(veth, every_kind_of_frame_is_answered_by_af_xdp, .init = start, .fini = end, .timeout = 30)
{
	static const struct {
		const char *name;
		struct packet_options o;
	} cases[] = {
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
		got = veth_receive(raw, reply, sizeof(reply), 1000);
		cr_assert(got > 0, "%s: no reply", cases[i].name);
		wrong = packet_check_reply(query, &o, reply, got, o.dns_bytes);
		cr_assert_null(wrong, "%s: %s", cases[i].name, wrong);
	}
	cr_assert_eq(counter_get(&counters, C_RX), ARRAY_LEN(cases));
	cr_assert_eq(counter_get(&counters, C_TX), ARRAY_LEN(cases));
	cr_assert_eq(counter_get(&counters, C_FRAME_BAD), 0);
}
