/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h: one query to one server, and its reply: ports, ids, matching, transports. Knows nothing of caches or of who waits.
 *
 * UDP        Random id (16 bits from a CSPRNG), random source port: a pool of unconnected sockets per worker and family, each bound to a
 *            random port and retired after a bounded number of queries. Replies are matched by id, source address, source port, question
 *            (and its letter case where 0x20 was used) and, where the server is known to send them, cookie. Anything else is counted
 *            and ignored, the exchange goes on waiting (RFC 5452).
 * TCP, TLS   Connections per server are kept and shared: pipelined, answered in any order (RFC 7766), closed when idle. TLS: OpenSSL,
 *            certificate name or SPKI pin must match (RFC 8310 strict), session resumption. A connection that breaks fails what waits on it
 *            with EXCHANGE_CLOSED at once.
 * Threads    One struct exchanger per worker; everything on its loop. */
#pragma once
#include "base/base.h"
#include "dns/name.h"
#include "table/counters.h"

#include <sys/socket.h>
#include <uv.h>

#define EXCHANGE_QUERY_MAX_BYTES 512u

struct exchange_server { /* immutable while anything uses it */
	struct sockaddr_storage address;
	socklen_t address_bytes;
	bool is_tls;
	const char *auth_name; /* NULL: no name to check */
	const uint8_t *pin;    /* 32 octets, SHA-256 of the SubjectPublicKeyInfo; NULL: none */
	const char *text;      /* for messages */
};

enum exchange_transport { EXCHANGE_UDP, EXCHANGE_TCP, EXCHANGE_TLS };
enum exchange_result {
	EXCHANGE_REPLY, /* a message that matches the query; anything may be in it */
	EXCHANGE_TIMEOUT,
	EXCHANGE_UNREACHABLE, /* ICMP, connection refused, no route, no socket to be had */
	EXCHANGE_CLOSED,      /* the connection ended before the reply */
	EXCHANGE_TLS_FAILED,  /* handshake, name or pin */
	EXCHANGE_LIMIT,	      /* too many queries to this server, or in all, are under way */
};

struct exchange_request {
	const struct exchange_server *server;
	enum exchange_transport transport;
	const uint8_t *name; /* wire form, lower-cased */
	uint8_t name_bytes;
	uint16_t type;
	bool is_rd, is_cd;
	bool is_edns, is_do;
	bool is_0x20;		    /* UDP: send the name in random case and want it back so */
	uint16_t udp_payload_bytes; /* in our OPT */
	const uint8_t *cookie;	    /* an EDNS COOKIE option's data (client, then server cookie); NULL: none */
	uint8_t cookie_bytes;
	uint64_t timeout_ns;
};

struct exchanger; /* one per worker */
struct exchange;  /* one under way */
/* message is valid during the call; it was checked for a header, QR, id, opcode and question only. rtt_ns: since it was sent. */
typedef void exchange_done(void *user, enum exchange_result result, const uint8_t *message, size_t message_bytes,
			   uint64_t rtt_ns);

struct exchange_limits {
	unsigned outstanding; /* in all of this worker */
	unsigned outstanding_per_server;
	unsigned udp_sockets; /* per family */
	unsigned connections_per_server;
	uint64_t idle_ns; /* connections */
};
MUST_USE enum err exchanger_create(struct exchanger **out, uv_loop_t *loop, struct counter_block *counters,
				   const struct exchange_limits *limits);
/* Cancels everything; the loop must run until its handles are closed. */
void exchanger_destroy(struct exchanger *x);
/* Sends. done is called exactly once, never from within exchange_start, unless cancelled. NULL with *result when it can't even be begun. */
MUST_USE struct exchange *exchange_start(struct exchanger *x, const struct exchange_request *request, exchange_done *done,
					 void *user, enum exchange_result *result);
/* done will not be called. */
void exchange_cancel(struct exchange *e);
/* UDP sends of one loop turn leave by one sendmmsg: call when the turn's work is done. */
void exchanger_flush(struct exchanger *x);
