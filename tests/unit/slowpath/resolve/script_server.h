/* SPDX-License-Identifier: Apache-2.0 */
/* script_server.h: for the tests of this folder: a DNS server in a thread, on UDP and TCP (or TLS) of one port of 127.0.0.x, that does with each
 * query what the test's script says; and a loop with an exchanger. */
#pragma once
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/bytes.h"
#include "base/clock.h"
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/exchange.h"

#define SERVER_CONNECTIONS 64
#define PATIENCE_NS 5000000000ull

struct server_query {
	const uint8_t *message;
	size_t bytes;
	unsigned index; /* 0: the first query of this server */
	bool is_stream;
	int connection; /* index, stream only */
	struct sockaddr_storage from;
	socklen_t from_bytes;
};
struct server;
typedef void server_script(struct server *s, const struct server_query *q);

struct server_connection {
	int fd; /* -1: none */
	SSL *ssl;
	size_t bytes;
	uint8_t in[70000];
};
struct server {
	server_script *script;
	void *user;
	int udp, tcp, wake;
	struct exchange_server as; /* how it is asked */
	pthread_t thread;
	SSL_CTX *tls; /* borrowed; NULL: plain */
	_Atomic unsigned queries, udp_queries, stream_queries, accepted, resumed;
	_Atomic bool is_stopped;
	struct server_connection *connection;
	char text[32];
};

static inline struct sockaddr_in server_address(const char *text, unsigned port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	cr_assert_eq(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

static inline void server_send(struct server *s, const struct server_query *q, const uint8_t *message, size_t bytes)
{
	uint8_t frame[65537];
	if (!q->is_stream) {
		(void)!sendto(s->udp, message, bytes, 0, (const void *)&q->from, q->from_bytes);
		return;
	}
	struct server_connection *c = &s->connection[q->connection];
	store_be16(frame, (uint16_t)bytes);
	memcpy(frame + 2, message, bytes);
	if (c->ssl)
		(void)!SSL_write(c->ssl, frame, (int)bytes + 2);
	else
		(void)!send(c->fd, frame, bytes + 2, MSG_NOSIGNAL);
}

static inline void server_hang_up(struct server *s, const struct server_query *q)
{
	struct server_connection *c = &s->connection[q->connection];
	SSL_free(c->ssl);
	c->ssl = NULL;
	close(c->fd);
	c->fd = -1;
	c->bytes = 0;
}

static inline size_t question_end(const uint8_t *message, size_t bytes)
{
	size_t n = name_wire_bytes(message + 12, bytes - 12);
	return n && 12 + n + 4 <= bytes ? 12 + n + 4 : 12;
}

/* A response with this rcode; with NOERROR one A record 192.0.2.1; an OPT if the query has one. Returns its length. */
static inline size_t make_reply(uint8_t *out, const struct server_query *q, unsigned rcode, uint16_t more_flags)
{
	size_t end = question_end(q->message, q->bytes), pos = end;
	static const uint8_t answer[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
	bool has_opt = dns_arcount(q->message) > 0;
	memcpy(out, q->message, end);
	store_be16(out + 2, (uint16_t)(DNS_QR | DNS_RA | (dns_flags(q->message) & (DNS_RD | DNS_CD)) | rcode | more_flags));
	store_be16(out + 6, rcode == RCODE_NOERROR && !(more_flags & DNS_TC));
	store_be16(out + 8, 0);
	store_be16(out + 10, has_opt);
	if (load_be16(out + 6)) {
		memcpy(out + pos, answer, sizeof answer);
		pos += sizeof answer;
	}
	if (has_opt) {
		static const uint8_t opt[] = { 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0 };
		memcpy(out + pos, opt, sizeof opt);
		pos += sizeof opt;
	}
	return pos;
}

/* Appends an option to the OPT that ends the message. */
static inline size_t add_option(uint8_t *message, size_t bytes, uint16_t code, const uint8_t *data, size_t data_bytes,
				size_t opt_data_bytes)
{
	store_be16(message + bytes, code);
	store_be16(message + bytes + 2, (uint16_t)data_bytes);
	memcpy(message + bytes + 4, data, data_bytes);
	store_be16(message + bytes - opt_data_bytes - 2, (uint16_t)(opt_data_bytes + 4 + data_bytes));
	return bytes + 4 + data_bytes;
}

static inline void script_good(struct server *s, const struct server_query *q)
{
	uint8_t out[1024];
	server_send(s, q, out, make_reply(out, q, RCODE_NOERROR, 0));
}

static inline void script_silent(struct server *s, const struct server_query *q)
{
	(void)s;
	(void)q;
}

static inline void server_take_(struct server *s, struct server_query *q)
{
	q->index = atomic_fetch_add(&s->queries, 1);
	atomic_fetch_add(q->is_stream ? &s->stream_queries : &s->udp_queries, 1);
	s->script(s, q);
}

static inline void server_accept_(struct server *s)
{
	int fd = accept4(s->tcp, NULL, NULL, SOCK_CLOEXEC), on = 1;
	if (fd < 0)
		return;
	atomic_fetch_add(&s->accepted, 1);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	for (int i = 0; i < SERVER_CONNECTIONS; i++) {
		struct server_connection *c = &s->connection[i];
		if (c->fd >= 0)
			continue;
		if (s->tls) {
			struct timeval patience = { .tv_sec = 2 };
			(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
			c->ssl = SSL_new(s->tls);
			SSL_set_fd(c->ssl, fd);
			if (SSL_accept(c->ssl) != 1) {
				SSL_free(c->ssl);
				c->ssl = NULL;
				break;
			}
			if (SSL_session_reused(c->ssl))
				atomic_fetch_add(&s->resumed, 1);
		}
		c->fd = fd;
		c->bytes = 0;
		return;
	}
	close(fd);
}

static inline void server_read_(struct server *s, int i)
{
	struct server_connection *c = &s->connection[i];
	do {
		ssize_t n = c->ssl ? SSL_read(c->ssl, c->in + c->bytes, (int)(sizeof c->in - c->bytes))
				   : recv(c->fd, c->in + c->bytes, sizeof c->in - c->bytes, 0);
		struct server_query q = { .is_stream = true, .connection = i };
		if (n <= 0) {
			server_hang_up(s, &q);
			return;
		}
		c->bytes += (size_t)n;
		while (c->fd >= 0 && c->bytes >= 2 && c->bytes >= 2u + load_be16(c->in)) {
			uint8_t message[65536];
			q.bytes = load_be16(c->in);
			memcpy(message, c->in + 2, q.bytes);
			memmove(c->in, c->in + 2 + q.bytes, c->bytes - 2 - q.bytes);
			c->bytes -= 2 + q.bytes;
			q.message = message;
			server_take_(s, &q);
		}
	} while (c->fd >= 0 && c->ssl && SSL_pending(c->ssl));
}

static inline void *server_run_(void *user)
{
	struct server *s = user;
	while (!atomic_load(&s->is_stopped)) {
		struct pollfd fds[3 + SERVER_CONNECTIONS] = { { .fd = s->wake, .events = POLLIN },
							      { .fd = s->udp, .events = POLLIN },
							      { .fd = s->tcp, .events = POLLIN } };
		for (int i = 0; i < SERVER_CONNECTIONS; i++)
			fds[3 + i] = (struct pollfd){ .fd = s->connection[i].fd, .events = POLLIN };
		if (poll(fds, 3 + SERVER_CONNECTIONS, -1) < 0)
			continue;
		for (unsigned n = 0; fds[1].revents && n < 64; n++) {
			uint8_t message[4096];
			struct server_query q = { .message = message, .from_bytes = sizeof q.from };
			ssize_t bytes = recvfrom(s->udp, message, sizeof message, MSG_DONTWAIT, (void *)&q.from, &q.from_bytes);
			if (bytes < 12)
				break;
			q.bytes = (size_t)bytes;
			server_take_(s, &q);
		}
		for (int i = 0; i < SERVER_CONNECTIONS; i++)
			if (fds[3 + i].revents && s->connection[i].fd >= 0)
				server_read_(s, i);
		if (fds[2].revents)
			server_accept_(s);
	}
	return NULL;
}

enum server_kind { SERVER_BOTH, SERVER_UDP_ONLY };

/* address "127.0.0.3"; script runs in the server's thread. */
static inline struct server *server_start(const char *address, server_script *script, void *user, SSL_CTX *tls,
					  enum server_kind kind)
{
	struct server *s = calloc(1, sizeof *s);
	int on = 1, room = 8 << 20;
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
	s->script = script;
	s->user = user;
	s->tls = tls;
	s->wake = eventfd(0, EFD_CLOEXEC);
	s->connection = calloc(SERVER_CONNECTIONS, sizeof *s->connection);
	for (int i = 0; i < SERVER_CONNECTIONS; i++)
		s->connection[i].fd = -1;
	struct sockaddr_in a = server_address(address, 0);
	socklen_t bytes = sizeof a;
	for (unsigned tries = 0; tries < 20; tries++) { /* one port for both */
		s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		s->tcp = kind == SERVER_BOTH ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
		a.sin_port = 0;
		cr_assert_eq(bind(s->udp, (void *)&a, sizeof a), 0);
		cr_assert_eq(getsockname(s->udp, (void *)&a, &bytes), 0);
		(void)setsockopt(s->udp, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
		if (s->tcp < 0)
			break;
		cr_assert_eq(setsockopt(s->tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
		if (bind(s->tcp, (void *)&a, sizeof a) == 0 && listen(s->tcp, 64) == 0)
			break;
		close(s->udp);
		close(s->tcp);
	}
	snprintf(s->text, sizeof s->text, "%s:%u", address, ntohs(a.sin_port));
	memcpy(&s->as.address, &a, sizeof a);
	s->as.address_bytes = sizeof a;
	s->as.text = s->text;
	cr_assert_eq(pthread_create(&s->thread, NULL, server_run_, s), 0);
	return s;
}

static inline void server_stop(struct server *s)
{
	uint64_t one = 1;
	atomic_store(&s->is_stopped, true);
	(void)!write(s->wake, &one, sizeof one);
	pthread_join(s->thread, NULL);
	for (int i = 0; i < SERVER_CONNECTIONS; i++)
		if (s->connection[i].fd >= 0)
			server_hang_up(s, &(struct server_query){ .connection = i });
	if (s->udp >= 0)
		close(s->udp);
	close(s->wake);
	if (s->tcp >= 0)
		close(s->tcp);
	free(s->connection);
	free(s);
}

/* --- the asking side ------------------------------------------------------------------------------------------------ */

struct asker {
	uv_loop_t loop;
	struct counter_block *counters;
	struct exchanger *x;
};

static const struct exchange_limits ordinary_limits = { .outstanding = 20000,
							.outstanding_per_server = 20000,
							.udp_sockets = 512,
							.connections = 64,
							.connections_per_server = 4,
							.idle_ns = 2000000000ull };

static inline void asker_init(struct asker *a, const struct exchange_limits *limits)
{
	cr_assert_eq(uv_loop_init(&a->loop), 0);
	a->counters = aligned_alloc(CACHE_LINE, (sizeof *a->counters + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	memset(a->counters, 0, sizeof *a->counters);
	cr_assert_eq(exchanger_create(&a->x, &a->loop, a->counters, limits ? limits : &ordinary_limits), ERR_OK);
}

static inline void asker_fini(struct asker *a)
{
	exchanger_destroy(a->x);
	uv_run(&a->loop, UV_RUN_DEFAULT);
	cr_assert_eq(uv_loop_close(&a->loop), 0, "no handle is left open");
	free(a->counters);
}

static inline void asker_tick_(uv_timer_t *t) { (void)t; }

/* Runs the loop until *count reaches want, or for so long. */
static inline void asker_run_for(struct asker *a, const unsigned *count, unsigned want, uint64_t patience_ns)
{
	uint64_t end = clock_mono_ns() + patience_ns;
	uv_timer_t tick; /* so that the loop comes back even if nothing happens */
	uv_timer_init(&a->loop, &tick);
	uv_timer_start(&tick, asker_tick_, 5, 5);
	while (*count < want && clock_mono_ns() < end)
		uv_run(&a->loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&tick, NULL);
	uv_run(&a->loop, UV_RUN_NOWAIT);
}

static inline void asker_run(struct asker *a, const unsigned *count, unsigned want)
{
	asker_run_for(a, count, want, PATIENCE_NS);
	cr_assert_geq(*count, want, "waited in vain: %u of %u", *count, want);
}

/* What became of one exchange. */
struct asked {
	unsigned count;
	enum exchange_result result;
	uint8_t message[4096];
	size_t bytes;
	struct reply_edns edns;
	uint64_t rtt_ns;
};

static inline void asked_done(void *user, const struct exchange_outcome *o)
{
	struct asked *a = user;
	a->count++;
	a->result = o->result;
	a->bytes = MIN(o->message_bytes, sizeof a->message);
	if (o->message)
		memcpy(a->message, o->message, a->bytes);
	a->edns = o->edns;
	a->rtt_ns = o->rtt_ns;
}
