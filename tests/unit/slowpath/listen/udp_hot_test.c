/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "slowpath/listen/udp_hot.h"

static struct fixture f;
static struct udp_batch batch;

static void setup(void)
{
	fixture_init(&f);
	udp_batch_init(&batch);
}

static void put(unsigned i, const char *source, unsigned port)
{
	batch.peer[i].v4 = fixture_v4(source, port);
	batch.rx[i].msg_len = (unsigned)fixture_query(batch.buffer[i], (uint16_t)(100 + i), i);
}

static void put_pktinfo(unsigned i, const char *header, const char *local)
{
	struct msghdr *h = &batch.rx[i].msg_hdr;
	struct in_pktinfo info = { .ipi_ifindex = 5 };
	inet_pton(AF_INET, header, &info.ipi_addr);
	inet_pton(AF_INET, local, &info.ipi_spec_dst);
	h->msg_control = batch.control[i];
	h->msg_controllen = CMSG_SPACE(sizeof info);
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof info);
	memcpy(CMSG_DATA(c), &info, sizeof info);
}

Test(udp_hot, sources_that_no_honest_client_has_are_dropped_and_counted, .init = setup)
{
	struct udp_socket s = { .family = 4, .port = 53, .address = { 10, 0, 0, 1 } };
	static const struct {
		const char *source;
		unsigned port;
		bool is_answered;
		const char *what;
	} cases[] = {
		{ "192.0.2.1", 4000, true, "a client" },
		{ "192.0.2.1", 0, false, "port 0" },
		{ "10.0.0.1", 53, false, "ourselves: two servers, or one, would talk for ever" },
		{ "10.0.0.1", 54, true, "a client on our machine" },
		{ "10.0.0.2", 53, true, "a resolver that asks from port 53" },
		{ "224.0.0.1", 4000, false, "multicast" },
		{ "255.255.255.255", 4000, false, "broadcast" },
		{ "240.1.2.3", 4000, false, "class E" },
		{ "0.0.0.0", 4000, false, "nobody" },
		{ "223.255.255.1", 4000, true, "the last unicast network" },
	};
	struct answer_thread t = { .counters = &f.counters->block[0], .wall_s = 1 };
	unsigned dropped = 0;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		udp_batch_rearm(&batch, &s, UDP_BATCH);
		put(0, cases[i].source, cases[i].port);
		unsigned n = udp_batch_answer(&batch, &s, snapshot_acquire(&f.holder), &t, 1);
		cr_expect_eq(n, cases[i].is_answered, "%s", cases[i].what);
		dropped += !cases[i].is_answered;
	}
	cr_assert_eq(counter_get(t.counters, C_DROP_MARTIAN), dropped);
}

Test(udp_hot, dropped_messages_leave_no_gap_in_what_is_sent, .init = setup)
{
	struct udp_socket s = { .family = 4, .port = 53, .address = { 10, 0, 0, 1 } };
	struct answer_thread t = { .counters = &f.counters->block[0], .wall_s = 1 };
	udp_batch_rearm(&batch, &s, UDP_BATCH);
	for (unsigned i = 0; i < UDP_BATCH; i++) {
		put(i, "192.0.2.1", i % 3 == 0 ? 0 : 1000 + i);
		if (i % 5 == 0)
			batch.buffer[i][2] |= 0x80; /* a response: dropped by the answer function */
	}
	unsigned n = udp_batch_answer(&batch, &s, snapshot_acquire(&f.holder), &t, UDP_BATCH), expected = 0;
	for (unsigned i = 0; i < UDP_BATCH; i++) {
		if (i % 3 == 0 || i % 5 == 0)
			continue;
		const struct msghdr *h = &batch.tx[expected++].msg_hdr;
		const struct sockaddr_in *to = h->msg_name;
		uint8_t query[64];
		size_t bytes = fixture_query(query, (uint16_t)(100 + i), i);
		cr_assert_eq(ntohs(to->sin_port), 1000 + i);
		cr_assert(fixture_is_refusal(h->msg_iov->iov_base, (ssize_t)h->msg_iov->iov_len, query, bytes));
	}
	cr_assert_eq(n, expected);
}

Test(udp_hot, packet_information_is_turned_around, .init = setup)
{
	struct udp_socket s = { .family = 4, .port = 53, .is_wildcard = true };
	struct answer_thread t = { .counters = &f.counters->block[0], .wall_s = 1 };
	udp_batch_rearm(&batch, &s, UDP_BATCH);
	put(0, "192.0.2.1", 4000);
	put_pktinfo(0, "10.0.0.9", "10.0.0.9");
	put(1, "192.0.2.1", 4001);
	put_pktinfo(1, "10.0.0.255", "10.0.0.9"); /* sent to the broadcast address */
	put(2, "10.0.0.9", 53);
	put_pktinfo(2, "10.0.0.9", "10.0.0.9"); /* from ourselves */
	put(3, "192.0.2.1", 4003);
	batch.rx[3].msg_hdr.msg_controllen = 0; /* no information: where would the answer come from? */
	cr_assert_eq(udp_batch_answer(&batch, &s, snapshot_acquire(&f.holder), &t, 4), 1);
	cr_assert_eq(counter_get(t.counters, C_DROP_MARTIAN), 3);
	struct msghdr *h = &batch.tx[0].msg_hdr;
	struct in_pktinfo info;
	memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(h)), sizeof info);
	cr_assert_eq(info.ipi_ifindex, 0, "the routing table chooses the interface");
	cr_assert_eq(info.ipi_spec_dst.s_addr, htonl(0x0a000009));
	cr_assert_eq(h->msg_controllen, CMSG_SPACE(sizeof info));
}

Test(udp_hot, truncation_keeps_the_question_and_nothing_else, .init = setup)
{
	uint8_t query[64];
	size_t bytes = fixture_query(query, 7, 3);
	memcpy(batch.buffer[0], query, bytes);
	memset(batch.buffer[0] + bytes, 0xff, 900);
	memset(batch.buffer[0] + 6, 1, 6);
	batch.tx_iov[0] = (struct iovec){ batch.buffer[0], bytes + 900 };
	udp_batch_truncate(&batch, 0);
	cr_assert_eq(batch.tx_iov[0].iov_len, bytes);
	query[2] |= 2;
	cr_assert_arr_eq(batch.buffer[0], query, bytes);
	memset(batch.buffer[0] + 4, 0, 2); /* no question at all: the header */
	batch.tx_iov[0].iov_len = 500;
	udp_batch_truncate(&batch, 0);
	cr_assert_eq(batch.tx_iov[0].iov_len, 12);
}

Test(udp_hot, a_truncated_answer_keeps_its_opt, .init = setup)
{
	uint8_t query[64], opt[] = { 0, 0, 41, 4, 208, 0, 0, 128, 0, 0, 4, 0, 3, 0, 0 };
	uint8_t address[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
	size_t question = fixture_query(query, 7, 7), bytes = question;
	memcpy(batch.buffer[0], query, question);
	for (unsigned i = 0; i < 3; i++, bytes += sizeof address)
		memcpy(batch.buffer[0] + bytes, address, sizeof address);
	memcpy(batch.buffer[0] + bytes, opt, sizeof opt);
	batch.buffer[0][7] = 3;
	batch.buffer[0][11] = 1;
	batch.tx_iov[0] = (struct iovec){ .iov_base = batch.buffer[0], .iov_len = bytes + sizeof opt };
	udp_batch_truncate(&batch, 0);
	cr_assert_eq(batch.tx_iov[0].iov_len, question + sizeof opt);
	cr_assert_arr_eq(batch.buffer[0] + question, opt, sizeof opt);
	cr_assert_eq(batch.buffer[0][7], 0);
	cr_assert_eq(batch.buffer[0][11], 1);
	cr_assert(batch.buffer[0][2] & 2, "TC");
}
