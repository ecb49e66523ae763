/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_private.h: what exchange.c (life of an exchange, matching), exchange_query.c, exchange_udp.c, exchange_stream.c and
 * exchange_tls.c share.
 *
 * An exchange stands in the table of questions from its start to its end, and, once it has one, in the list of its carrier: a UDP socket or a
 * connection. Whoever ends it unlinks it from everything first and calls done last, so done may start and cancel whatever it likes. */
#pragma once
#include "slowpath/resolve/exchange.h"
#include "slowpath/resolve/random_pool.h"
#include "slowpath/resolve/timer_wheel.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/queue.h>

#define UDP_BATCH 64u		/* of one sendmmsg; also the sockets that one epoll_wait tells of */
#define UDP_RECEIVE_BATCH 32u	/* of one recvmmsg */
#define UDP_MESSAGE_BYTES 4096u /* we announce less */
#define UDP_SLOTS 32u		/* sockets to choose from, per family */
#define COOKIE_CLIENT_PART_BYTES 8u
#define STREAM_FRAME_BYTES 2u	 /* the length before a message, RFC 1035 section 4.2.2 */
#define STREAM_PIPELINE_MAX 128u /* queries on one connection */
#define STREAM_PIPELINE_EASY 16u /* when so many wait, another connection is begun if there may be one */
#define STREAM_READ_BYTES 65536u
#define STREAM_OUT_MAX_BYTES (256u << 10)  /* what a server does not take */
#define STREAM_OUT_EASY_BYTES (64u << 10)  /* with more to be written, no more queries */
#define STREAM_JUNK_MAX 16u		   /* messages on one connection that nobody asked for */
#define STREAM_OPEN_TIMEOUT_NS 3000000000u /* connecting and handshake */

enum exchange_state {
	EXCHANGE_QUEUED, /* not sent yet */
	EXCHANGE_SENT,
	EXCHANGE_ENDING, /* in x->ending, with a result */
};

struct udp_port;
struct stream;

/* A server by value: exchanges to one address share bounds and connections. */
struct exchange_peer {
	LIST_ENTRY(exchange_peer) link;
	uint64_t hash;
	struct sockaddr_storage address; /* the unused part is zero */
	socklen_t address_bytes;
	struct exchange_tls *tls;     /* NULL: UDP and TCP */
	const char *auth_name, *text; /* of the server that was first seen: with tls they live as long as the exchanger */
	const uint8_t *pin;
	unsigned outstanding, stream_count;
	LIST_HEAD(peer_stream_list, stream) streams; /* those that may still be used */
	SSL_SESSION *session;			     /* owned; NULL: none */
	bool is_sequential; /* it has closed a connection with queries waiting: one at a time from now on */
};

struct exchange {
	struct exchanger *x;
	struct exchange_peer *peer;
	exchange_done *done;
	void *user;
	LIST_ENTRY(exchange) same_bucket;
	TAILQ_ENTRY(exchange) same_carrier;
	TAILQ_ENTRY(exchange) queue; /* QUEUED for UDP: x->unsent; ENDING: x->ending; free: x->free_ */
	struct udp_port *port;	     /* the carrier: one of both, or none while QUEUED for UDP */
	struct stream *stream;
	struct timer_entry timer;
	uint64_t hash, sent_ns;
	enum exchange_transport transport;
	enum exchange_state state;
	enum exchange_result result; /* ENDING */
	uint16_t id, type, query_bytes;
	uint8_t name_bytes, near_misses, client_cookie[COOKIE_CLIENT_PART_BYTES];
	bool is_0x20, is_cookie_expected, has_cookie, is_suspect, is_resent;
	uint8_t frame[STREAM_FRAME_BYTES + EXCHANGE_QUERY_MAX_BYTES]; /* length, then the query */
};
TAILQ_HEAD(exchange_queue, exchange);
LIST_HEAD(exchange_list, exchange);
LIST_HEAD(peer_list, exchange_peer);
ALWAYS_INLINE uint8_t *exchange_query(struct exchange *e) { return e->frame + STREAM_FRAME_BYTES; }

/* --- UDP ------------------------------------------------------------------------------------------------------------ */
struct udp_port { /* a socket */
	struct exchanger *x;
	LIST_ENTRY(udp_port) link; /* x->udp[].ports, or x->dead_ports */
	struct exchange_queue exchanges;
	struct timer_entry timer; /* while it is in a slot: retires it */
	int fd;
	uint8_t is_v6, slot;
	bool is_retired; /* takes no more queries; closed with its last exchange */
	unsigned sent, outstanding;
};
LIST_HEAD(port_list, udp_port);
struct udp_family {
	struct udp_port *slot[UDP_SLOTS]; /* NULL: to be made */
	struct port_list ports;
	unsigned port_count, slot_count;
	struct exchange_queue unsent;
};

/* --- the exchanger -------------------------------------------------------------------------------------------------- */
struct udp_receive;

struct exchanger {
	uv_loop_t *loop;
	struct counter_block *counters;
	struct exchange_limits limits;
	struct random_pool random;
	struct timer_wheel wheel;
	uv_prepare_t prepare;
	uv_poll_t udp_poll; /* on udp_epoll: one handle however many sockets */
	int udp_epoll;
	unsigned open_handles, outstanding, peer_count;
	bool is_destroyed;
	uint64_t seed;
	struct exchange_queue free_, ending;
	struct exchange_list *bucket;		   /* owned: the table of questions */
	struct peer_list *peer_bucket, free_peers; /* bucket: owned */
	uint32_t bucket_mask, peer_mask;
	struct udp_family udp[2]; /* IPv4, IPv6 */
	struct port_list dead_ports;
	bool is_receiving;	     /* dead ports are freed afterwards */
	struct udp_receive *receive; /* owned */
	LIST_HEAD(stream_list, stream) all_streams, dirty_streams;
	unsigned stream_count;
	uint8_t *read_buffer; /* owned: STREAM_READ_BYTES */
	void **slabs;	      /* owned: what exchanges and peers live in */
	unsigned slab_count;
};

/* exchange.c */
struct exchange_arrival {
	const uint8_t *message;
	size_t message_bytes;
	struct udp_port *port; /* one of both */
	struct stream *stream;
	const struct sockaddr_storage *source; /* UDP */
	uint64_t now_ns;
};
/* Finds the exchange that the message answers and ends it; counts what is none. False: it was none. first: of the carrier's list. */
bool exchange_take_message(struct exchanger *x, const struct exchange_arrival *a, struct exchange *first);
/* Unlinks, gives back, calls done. message: for REPLY. */
void exchange_end(struct exchange *e, enum exchange_result result, const struct exchange_outcome *reply);
/* From the loop's next turn on. */
void exchange_end_later(struct exchange *e, enum exchange_result result);
/* Gives the peer back if nothing needs it. */
void exchange_peer_release(struct exchanger *x, struct exchange_peer *p);
bool exchange_address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* One handle less; the last one frees a destroyed exchanger. */
void exchanger_handle_closed(struct exchanger *x);

/* exchange_query.c: fills id, frame, query_bytes and what matching needs. False: it would not fit. */
MUST_USE bool exchange_query_build(struct exchange *e, const struct exchange_request *request);

/* exchange_udp.c */
MUST_USE enum err exchange_udp_init(struct exchanger *x);
void exchange_udp_close_all(struct exchanger *x); /* the sockets; no exchange is under way */
void exchange_udp_fini(struct exchanger *x);	  /* memory */
void exchange_udp_send(struct exchange *e);	  /* queues */
void exchange_udp_flush(struct exchanger *x);
void exchange_udp_leave(struct exchange *e); /* e has ended: its port may be done with */

/* --- streams -------------------------------------------------------------------------------------------------------- */
enum stream_state { STREAM_CONNECTING, STREAM_HANDSHAKE, STREAM_OPEN, STREAM_CLOSED };
struct stream_buffer {
	uint8_t *octets; /* owned; NULL: none */
	uint32_t bytes, capacity;
};
struct stream {		 /* a connection */
	uv_tcp_t handle; /* first: libuv gives it back to us */
	uv_connect_t connect;
	uv_write_t write;
	struct exchanger *x;
	struct exchange_peer *peer;
	LIST_ENTRY(stream) same_peer, all, dirty;
	struct exchange_queue exchanges;
	struct timer_entry timer; /* until it is open; while nothing waits */
	enum stream_state state;
	enum exchange_transport transport;
	bool is_writing, is_dirty, is_retired; /* is_retired: takes no more queries; not in the peer's list */
	unsigned waiting, in_flight;	       /* exchanges in the list; those that are sent */
	unsigned answered, abandoned,
		junk;	   /* replies; sent queries that nobody waits for any more; messages that were no reply */
	uint64_t heard_ns; /* when octets came last */
	struct stream_buffer in, out, writing; /* an incomplete message; to be written; being written */
	SSL *ssl;			       /* owned; TLS */
};

/* exchange_stream.c */
MUST_USE bool exchange_stream_send(struct exchange *e, enum exchange_result *result); /* false: not begun, for that reason */
void exchange_stream_flush(struct exchanger *x);
void exchange_stream_leave(struct exchange *e);
void exchange_stream_timed_out(struct exchange *e); /* before it ends */
void exchange_stream_close_all(struct exchanger *x);
/* For exchange_tls.c */
MUST_USE bool stream_buffer_append(struct stream_buffer *b, const uint8_t *octets, size_t bytes, size_t max_bytes);
void exchange_stream_opened(struct stream *c);
void exchange_stream_rest(struct stream *c);
/* Octets of messages. False: the connection is closed now. */
MUST_USE bool exchange_stream_take(struct stream *c, const uint8_t *octets, size_t bytes);

/* exchange_tls.c: over memory; what is to be sent is appended to c->out. False: it has failed (logged, counted); close the connection. */
MUST_USE bool exchange_tls_begin(struct stream *c);
MUST_USE bool exchange_tls_write(struct stream *c, const uint8_t *octets, size_t bytes);
/* Octets that came. False as above, or the connection is closed already. */
MUST_USE bool exchange_tls_feed(struct stream *c, const uint8_t *octets, size_t bytes);
/* The connection ends in order: says so to the peer, so that the session stays good. */
void exchange_tls_end(struct stream *c);
