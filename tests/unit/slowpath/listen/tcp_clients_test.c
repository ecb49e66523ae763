/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "slowpath/listen/tcp_clients.h"

static struct answer_client client(const char *text)
{
	struct answer_client c = { .family = strchr(text, ':') ? 6 : 4, .port = 1000, .transport = TRANSPORT_TCP };
	cr_assert_eq(inet_pton(c.family == 6 ? AF_INET6 : AF_INET, text, c.address), 1);
	return c;
}

Test(tcp_clients, who_counts_as_one_client)
{
	static const struct {
		const char *first, *second;
		bool is_same;
	} cases[] = {
		{ "192.0.2.1", "192.0.2.1", true },	     { "192.0.2.1", "192.0.2.2", false },
		{ "2001:db8::1", "2001:db8::2", true },	     { "2001:db8::1", "2001:db8:0:0:ffff::", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false }, { "1.2.3.4", "102:304::", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tcp_clients *c;
		struct answer_client a = client(cases[i].first), b = client(cases[i].second);
		b.port = 2000;
		cr_assert_eq(tcp_clients_create(&c, 10, 1), ERR_OK);
		cr_assert_eq(tcp_clients_admit(c, &a), TCP_ADMITTED);
		cr_expect_eq(tcp_clients_admit(c, &b), cases[i].is_same ? TCP_CLIENT_FULL : TCP_ADMITTED, "%s %s", cases[i].first,
			     cases[i].second);
		tcp_clients_destroy(c);
	}
}

Test(tcp_clients, limits_hold_and_leaving_makes_room)
{
	struct tcp_clients *c;
	struct answer_client a = client("192.0.2.1"), b = client("192.0.2.2"), d = client("192.0.2.3");
	cr_assert_eq(tcp_clients_create(&c, 3, 2), ERR_OK);
	cr_assert_eq(tcp_clients_admit(c, &a), TCP_ADMITTED);
	cr_assert_eq(tcp_clients_admit(c, &a), TCP_ADMITTED);
	cr_assert_eq(tcp_clients_admit(c, &a), TCP_CLIENT_FULL);
	cr_assert_eq(tcp_clients_admit(c, &b), TCP_ADMITTED);
	cr_assert_eq(tcp_clients_admit(c, &d), TCP_FULL);
	cr_assert_eq(tcp_clients_admit(c, &a), TCP_CLIENT_FULL, "its own limit comes first: it must not push others out");
	cr_assert_eq(tcp_clients_total(c), 3);
	tcp_clients_leave(c, &a);
	cr_assert_eq(tcp_clients_admit(c, &d), TCP_ADMITTED);
	tcp_clients_destroy(c);
}

Test(tcp_clients, bad_limits_are_refused)
{
	struct tcp_clients *c;
	cr_assert_eq(tcp_clients_create(&c, 0, 1), ERR_ARGUMENT);
	cr_assert_eq(tcp_clients_create(&c, 1, 0), ERR_ARGUMENT);
	cr_assert_eq(tcp_clients_create(&c, (1u << 24) + 1, 1), ERR_ARGUMENT);
}

/* Random comings and goings against a plain array, at the fullest that the table gets. */
Test(tcp_clients, counts_stay_right_over_many_changes)
{
	enum { CLIENTS = 300, LIMIT = 256, PER_CLIENT = 3 };
	static unsigned have[CLIENTS];
	unsigned total = 0, seed = 12345;
	struct tcp_clients *c;
	cr_assert_eq(tcp_clients_create(&c, LIMIT, PER_CLIENT), ERR_OK);
	for (int i = 0; i < 200000; i++) {
		seed = seed * 1103515245 + 12345;
		unsigned k = (seed >> 8) % CLIENTS;
		struct answer_client a = { .family = k % 2 ? 4 : 6 };
		memcpy(a.address, &k, sizeof k);
		if ((seed >> 24) % 5 < 3) {
			enum tcp_admission want = have[k] >= PER_CLIENT ? TCP_CLIENT_FULL
						  : total >= LIMIT	? TCP_FULL
									: TCP_ADMITTED;
			cr_assert_eq(tcp_clients_admit(c, &a), want, "step %d", i);
			have[k] += want == TCP_ADMITTED;
			total += want == TCP_ADMITTED;
		} else if (have[k]) {
			tcp_clients_leave(c, &a);
			have[k]--;
			total--;
		}
		cr_assert_eq(tcp_clients_total(c), total);
	}
	tcp_clients_destroy(c);
}
