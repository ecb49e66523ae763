/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h: one query to one server, and its reply: ports, ids, matching, transports. Knows nothing of caches or of who waits.
 *
 * UDP        Random id (16 bits from the kernel's CSPRNG), random source port: a pool of unconnected sockets per worker and family, each
 *            bound to a random port and retired after EXCHANGE_SOCKET_QUERIES queries or EXCHANGE_SOCKET_AGE_MS. Replies are matched by
 *            id, source address and port, our port, question (and its letter case where 0x20 was used) and cookie. Anything else is
 *            counted and ignored, the exchange goes on waiting (RFC 5452). After EXCHANGE_NEAR_MISSES replies that come from the
 *            server's address and have the question, but a wrong id, port, letter case or cookie, the exchange ends with
 *            EXCHANGE_SUSPECT: somebody is guessing. A reply that is right but for letter case or cookie shortens the wait to
 *            EXCHANGE_GRACE_MS: forged, or from a server that does not keep letter case or cookies. Ask over TCP in either case.
 * ICMP       Errors that quote our query fail its exchange at once; others are ignored.
 * TCP, TLS   Connections per server are kept and shared: pipelined, answered in any order (RFC 7766), closed when idle. TLS 1.2 or newer;
 *            certificate name and SPKI pin, of which at least one must be given, must match (RFC 8310, strict); sessions are resumed.
 *            A connection that breaks fails what waits on it at once with EXCHANGE_CLOSED; but what was sent on a connection
 *            that had worked before is sent once more on a new one (the server may have closed it for being idle).
 * Threads    One struct exchanger per worker; everything on its loop. */
#pragma once
#include "base/base.h"
#include "dns/name.h"
#include "slowpath/resolve/reply_edns.h"
#include "table/counters.h"

#include <sys/socket.h>
#include <uv.h>

#define EXCHANGE_QUERY_MAX_BYTES 512u
#define EXCHANGE_SOCKET_QUERIES 64u
#define EXCHANGE_SOCKET_AGE_MS 10000u
#define EXCHANGE_NEAR_MISSES 8u
#define EXCHANGE_GRACE_MS 50u
#define EXCHANGE_PIN_BYTES 32u

struct exchange_tls; /* what all TLS connections of the process share: settings and CAs; for any thread once it is made */
/* ca_file: PEM, the CAs that auth_name is checked against; NULL: the system's. Reads files, which takes some ms: at the start.
 * ERR_NOTFOUND: not one usable certificate. ERR_NOMEM. */
MUST_USE enum err exchange_tls_create(struct exchange_tls **out, const char *ca_file);
/* After the last exchanger that used it. NULL is fine. */
void exchange_tls_destroy(struct exchange_tls *t);

struct exchange_server { /* immutable while anything uses it; the pointer is the server's identity */
	struct sockaddr_storage address;
	socklen_t address_bytes;
	struct exchange_tls *tls; /* for EXCHANGE_TLS; without it that fails */
	const char *auth_name;	  /* NULL: no name to check */
	const uint8_t *pin;	  /* EXCHANGE_PIN_BYTES, SHA-256 of the SubjectPublicKeyInfo (RFC 7858 section 4.2); NULL: none */
	const char *text;	  /* for messages */
};

enum exchange_transport { EXCHANGE_UDP, EXCHANGE_TCP, EXCHANGE_TLS };
enum exchange_result {
	EXCHANGE_REPLY, /* a message that matches the query; anything may be in it */
	EXCHANGE_TIMEOUT,
	EXCHANGE_UNREACHABLE, /* ICMP, connection refused, no route, no socket to be had */
	EXCHANGE_CLOSED,      /* the connection ended before the reply */
	EXCHANGE_TLS_FAILED,  /* handshake, name or pin */
	EXCHANGE_SUSPECT,     /* UDP: only replies that may be forged came; ask over TCP */
	EXCHANGE_LOOP,	      /* the query came back to ourselves */
	EXCHANGE_LIMIT,	      /* too many queries to this server, or in all, are under way */
};

struct exchange_request {
	const struct exchange_server *server;
	enum exchange_transport transport;
	const uint8_t *name; /* wire form, lower-cased; copied */
	uint8_t name_bytes;
	uint16_t type;
	bool is_rd, is_cd;
	bool is_edns, is_do;
	bool is_0x20;		    /* UDP: send the name in random case and want it back so */
	bool is_cookie_expected;    /* the server is known to send cookies: a reply without one is suspect */
	uint16_t udp_payload_bytes; /* in our OPT */
	const uint8_t *
		cookie; /* an EDNS COOKIE option's data (client, then server cookie); NULL: none. A reply with another client cookie is suspect */
	uint8_t cookie_bytes; /* 8, or 16 to REPLY_COOKIE_MAX_BYTES */
	uint64_t timeout_ns;
};

struct exchange_outcome {
	enum exchange_result result;
	/* REPLY: valid during the call. Checked for header, QR, id, opcode and question only: one question, ours; or none, which is taken with
	 * FORMERR, NOTIMP, SERVFAIL and REFUSED only. A datagram that did not fit our buffer has TC set. */
	const uint8_t *message;
	size_t message_bytes;
	struct reply_edns edns; /* REPLY: of the message */
	uint64_t rtt_ns;	/* since it was sent: when it ended */
	uint64_t now_ns;	/* CLOCK_MONOTONIC, of this batch of replies */
};

struct exchanger; /* one per worker */
struct exchange;  /* one under way */
typedef void exchange_done(void *user, const struct exchange_outcome *outcome);

struct exchange_limits {
	unsigned outstanding; /* in all of this worker; 1 to EXCHANGE_OUTSTANDING_MAX */
	unsigned outstanding_per_server;
	unsigned
		udp_sockets; /* per family, those that only wait for late replies included; when no more may be made, the last ones are
				 used for longer */
	unsigned connections; /* in all of this worker */
	unsigned connections_per_server;
	uint64_t idle_ns; /* connections */
};
#define EXCHANGE_OUTSTANDING_MAX (1u << 20)

/* counters: the worker's block, borrowed. ERR_ARGUMENT: a limit is 0 or too large. ERR_NOMEM, ERR_IO. */
MUST_USE enum err exchanger_create(struct exchanger **out, uv_loop_t *loop, struct counter_block *counters,
				   const struct exchange_limits *limits);
/* Cancels everything; the loop must run until its handles are closed. Not from within a done. NULL is fine. */
void exchanger_destroy(struct exchanger *x);
/* Sends. done is called exactly once, never from within exchange_start, unless cancelled. NULL with *result when it can't even be begun. */
MUST_USE struct exchange *exchange_start(struct exchanger *x, const struct exchange_request *request, exchange_done *done,
					 void *user, enum exchange_result *result);
/* done will not be called. From within another exchange's done it may be called too. */
void exchange_cancel(struct exchange *e);
/* UDP sends of one loop turn leave by one sendmmsg: call when the turn's work is done. What is not flushed leaves before the loop waits. */
void exchanger_flush(struct exchanger *x);
/* Whether this query, which came from outside, is one that x has under way, octet for octet in id and question: it was sent to ourselves,
 * by whatever way. Its exchange ends with EXCHANGE_LOOP, from the loop's next turn. */
MUST_USE bool exchanger_take_loop(struct exchanger *x, const uint8_t *query, size_t query_bytes);
unsigned exchanger_outstanding(const struct exchanger *x);
