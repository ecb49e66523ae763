/* SPDX-License-Identifier: Apache-2.0 */
#include "script_server.h"
#include "certificates.h"

static const uint8_t name[] = "\3www\7example\4test";
static struct asker asker;
static struct certificate ca, other_ca, leaf;
static char ca_path[64];
static struct exchange_tls *tls;
static uint8_t pin[32], wrong_pin[32];

static void open_all(void)
{
	ca = certificate_make(NULL, NULL, 10);
	other_ca = certificate_make(NULL, NULL, 10);
	leaf = certificate_make(&ca, "DNS:dns.example.test,DNS:*.wild.test,IP:127.0.0.3", 10);
	certificate_pin(&leaf, pin);
	certificate_write(&ca, ca_path);
	cr_assert_eq(exchange_tls_create(&tls, ca_path), ERR_OK);
	unlink(ca_path);
}

static void close_all(void)
{
	exchange_tls_destroy(tls);
	certificate_free(&ca);
	certificate_free(&other_ca);
	certificate_free(&leaf);
}

TestSuite(exchange_tls, .init = open_all, .fini = close_all);

static uint64_t counted(enum counter c) { return counter_get(asker.counters, c); }

static struct server *start_with(server_script *script, SSL_CTX *context, const char *auth_name, const uint8_t *use_pin)
{
	struct server *s = server_start("127.0.0.3", script, NULL, context, SERVER_BOTH);
	s->as.tls = tls;
	s->as.auth_name = auth_name;
	s->as.pin = use_pin;
	return s;
}

static struct exchange_request request_to(const struct server *s)
{
	return (struct exchange_request){ .server = &s->as,
					  .transport = EXCHANGE_TLS,
					  .name = name,
					  .name_bytes = sizeof name,
					  .type = RR_A,
					  .is_edns = true,
					  .udp_payload_bytes = 1232,
					  .timeout_ns = 3000000000ull };
}

static struct asked ask(const struct server *s)
{
	struct asked a = { 0 };
	struct exchange_request r = request_to(s);
	enum exchange_result result;
	if (!exchange_start(asker.x, &r, asked_done, &a, &result)) {
		a.result = result;
		return a;
	}
	asker_run(&asker, &a.count, 1);
	return a;
}

struct identity {
	const char *what, *auth_name;
	const uint8_t *pin;
	enum exchange_result want;
};
static const struct identity identities[] = {
	{ "the name", "dns.example.test", NULL, EXCHANGE_REPLY },
	{ "the name in another letter case", "DNS.example.TEST", NULL, EXCHANGE_REPLY },
	{ "a name that a wildcard covers", "a.wild.test", NULL, EXCHANGE_REPLY },
	{ "the address as a name", "127.0.0.3", NULL, EXCHANGE_REPLY },
	{ "the pin", NULL, pin, EXCHANGE_REPLY },
	{ "name and pin", "dns.example.test", pin, EXCHANGE_REPLY },
	{ "another name", "dns.example.net", NULL, EXCHANGE_TLS_FAILED },
	{ "a part of the name", "example.test", NULL, EXCHANGE_TLS_FAILED },
	{ "two labels under a wildcard", "a.b.wild.test", NULL, EXCHANGE_TLS_FAILED },
	{ "another address", "127.0.0.4", NULL, EXCHANGE_TLS_FAILED },
	{ "another pin", NULL, wrong_pin, EXCHANGE_TLS_FAILED },
	{ "the name, but another pin", "dns.example.test", wrong_pin, EXCHANGE_TLS_FAILED },
	{ "the pin, but another name", "dns.example.net", pin, EXCHANGE_TLS_FAILED },
	{ "neither", NULL, NULL, EXCHANGE_TLS_FAILED },
};

Test(exchange_tls, name_and_pin_must_be_those_that_were_asked_for)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	for (size_t i = 0; i < ARRAY_LEN(identities) * ARRAY_LEN(versions); i++) {
		const struct identity *id = &identities[i / 2];
		SSL_CTX *context = certificate_server(&leaf);
		SSL_CTX_set_min_proto_version(context, versions[i % 2]);
		SSL_CTX_set_max_proto_version(context, versions[i % 2]);
		struct server *s = start_with(script_good, context, id->auth_name, id->pin);
		asker_init(&asker, NULL);
		struct asked a = ask(s);
		cr_assert_eq(a.result, id->want, "%s: %d", id->what, a.result);
		cr_assert_eq(s->queries, id->want == EXCHANGE_REPLY, "%s: not one octet of a query", id->what);
		cr_assert_eq(counted(C_UPSTREAM_TLS_FAILURES), id->want != EXCHANGE_REPLY, "%s", id->what);
		asker_fini(&asker);
		server_stop(s);
		SSL_CTX_free(context);
	}
}

Test(exchange_tls, certificates_that_no_ca_of_ours_vouches_for)
{
	struct certificate stranger = certificate_make(&other_ca, "DNS:dns.example.test", 10);
	struct certificate expired = certificate_make(&ca, "DNS:dns.example.test", -1);
	const struct certificate *bad[] = { &stranger, &expired };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		SSL_CTX *context = certificate_server(bad[i]);
		struct server *s = start_with(script_good, context, "dns.example.test", NULL);
		asker_init(&asker, NULL);
		cr_assert_eq(ask(s).result, EXCHANGE_TLS_FAILED);
		cr_assert_eq(s->queries, 0);
		asker_fini(&asker);
		server_stop(s);
		SSL_CTX_free(context);
	}
	certificate_free(&stranger);
	certificate_free(&expired);
}

Test(exchange_tls, old_protocols_are_refused)
{
	SSL_CTX *context = certificate_server(&leaf);
	SSL_CTX_set_security_level(context, 0);
	SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
	struct server *s = start_with(script_good, context, "dns.example.test", NULL);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(s).result, EXCHANGE_TLS_FAILED);
	asker_fini(&asker);
	server_stop(s);
	SSL_CTX_free(context);
}

Test(exchange_tls, a_handshake_that_is_not_answered_ends_with_the_time)
{
	struct server *s = start_with(script_silent, NULL, "dns.example.test", NULL);
	asker_init(&asker, NULL);
	struct exchange_request r = request_to(s);
	r.timeout_ns = 200000000;
	struct asked a = { 0 };
	enum exchange_result result;
	cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a, &result));
	asker_run(&asker, &a.count, 1);
	cr_assert_eq(a.result, EXCHANGE_TIMEOUT);
	asker_fini(&asker);
	server_stop(s);
}

/* A server that answers a ClientHello with text. */
static void *run_text_server(void *user)
{
	int fd = accept(*(int *)user, NULL, NULL);
	uint8_t hello[2048];
	(void)!recv(fd, hello, sizeof hello, 0);
	(void)!send(fd, "220 mail.example.test ESMTP\r\n", 29, MSG_NOSIGNAL);
	(void)!recv(fd, hello, sizeof hello, 0);
	close(fd);
	return NULL;
}

Test(exchange_tls, text_instead_of_a_handshake_fails_at_once)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = server_address("127.0.0.3", 0);
	socklen_t bytes = sizeof a;
	cr_assert_eq(bind(listener, (void *)&a, sizeof a), 0);
	cr_assert_eq(listen(listener, 4), 0);
	cr_assert_eq(getsockname(listener, (void *)&a, &bytes), 0);
	pthread_t thread;
	cr_assert_eq(pthread_create(&thread, NULL, run_text_server, &listener), 0);
	struct server s = { .as = { .address_bytes = sizeof a, .tls = tls, .pin = pin, .text = "text" } };
	memcpy(&s.as.address, &a, sizeof a);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(&s).result, EXCHANGE_TLS_FAILED);
	cr_assert_eq(counted(C_UPSTREAM_TLS_FAILURES), 1);
	asker_fini(&asker);
	pthread_join(thread, NULL);
	close(listener);
}

static void script_keep_length(struct server *s, const struct server_query *q)
{
	*(_Atomic size_t *)s->user = q->bytes;
	script_good(s, q);
}

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_bytes, const unsigned char *in, unsigned in_bytes,
		       void *user)
{
	(void)ssl;
	*(_Atomic bool *)user = in_bytes == 4 && memcmp(in, "\3dot", 4) == 0;
	*out = in + 1;
	*out_bytes = 3;
	return SSL_TLSEXT_ERR_OK;
}

Test(exchange_tls, queries_are_padded_and_the_protocol_is_named)
{
	static _Atomic size_t length;
	static _Atomic bool is_dot;
	SSL_CTX *context = certificate_server(&leaf);
	SSL_CTX_set_alpn_select_cb(context, choose_alpn, (void *)&is_dot);
	struct server *s = start_with(script_keep_length, context, "dns.example.test", NULL);
	s->user = (void *)&length;
	asker_init(&asker, NULL);
	cr_assert_eq(ask(s).result, EXCHANGE_REPLY);
	cr_assert_eq(length, 128);
	cr_assert(is_dot);
	asker_fini(&asker);
	server_stop(s);
	SSL_CTX_free(context);
}

Test(exchange_tls, sessions_are_resumed)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		SSL_CTX *context = certificate_server(&leaf);
		SSL_CTX_set_max_proto_version(context, versions[i]);
		SSL_CTX_set_session_id_context(context, (const unsigned char *)"t", 1);
		struct exchange_limits limits = ordinary_limits;
		limits.idle_ns = 10000000;
		struct server *s = start_with(script_good, context, "dns.example.test", pin);
		asker_init(&asker, &limits);
		for (unsigned n = 0; n < 3; n++) {
			unsigned never = 0;
			cr_assert_eq(ask(s).result, EXCHANGE_REPLY);
			asker_run_for(&asker, &never, 1, 60000000); /* idle: it goes */
		}
		cr_assert_eq(s->accepted, 3);
		cr_assert_eq(counted(C_UPSTREAM_TLS_RESUMED), 2, "TLS %x", versions[i]);
		cr_assert_eq(s->resumed, 2);
		asker_fini(&asker);
		server_stop(s);
		SSL_CTX_free(context);
	}
}

Test(exchange_tls, many_share_connections_and_wait_for_the_handshake)
{
	SSL_CTX *context = certificate_server(&leaf);
	struct server *s = start_with(script_good, context, "dns.example.test", NULL);
	asker_init(&asker, NULL);
	struct asked *a = calloc(200, sizeof *a);
	struct exchange_request r = request_to(s);
	for (unsigned i = 0; i < 200; i++) {
		enum exchange_result result;
		cr_assert_not_null(exchange_start(asker.x, &r, asked_done, &a[i], &result));
	}
	for (unsigned i = 0; i < 200; i++) {
		asker_run(&asker, &a[i].count, 1);
		cr_assert_eq(a[i].result, EXCHANGE_REPLY);
	}
	cr_assert_leq(s->accepted, ordinary_limits.connections_per_server);
	free(a);
	asker_fini(&asker);
	server_stop(s);
	SSL_CTX_free(context);
}

static void script_hang_up(struct server *s, const struct server_query *q) { server_hang_up(s, q); }

Test(exchange_tls, a_connection_that_breaks_is_told_at_once_and_may_be_cancelled_at_any_time)
{
	SSL_CTX *context = certificate_server(&leaf);
	struct server *s = start_with(script_hang_up, context, "dns.example.test", NULL);
	asker_init(&asker, NULL);
	cr_assert_eq(ask(s).result, EXCHANGE_CLOSED);
	struct exchange_request r = request_to(s);
	struct asked never = { 0 };
	for (unsigned turns = 0; turns < 12; turns++) { /* connecting, shaking hands, sent */
		enum exchange_result result;
		struct exchange *e = exchange_start(asker.x, &r, asked_done, &never, &result);
		for (unsigned i = 0; i < turns && never.count == 0; i++)
			uv_run(&asker.loop, UV_RUN_NOWAIT);
		if (never.count == 0)
			exchange_cancel(e);
		never.count = 0;
	}
	asker_fini(&asker);
	server_stop(s);
	SSL_CTX_free(context);
}

Test(exchange_tls, without_cas_there_is_no_context)
{
	struct exchange_tls *none = NULL;
	cr_assert_eq(exchange_tls_create(&none, "/nonexistent/ca.pem"), ERR_NOTFOUND);
	cr_assert_null(none);
	exchange_tls_destroy(none);
}
