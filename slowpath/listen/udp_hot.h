/* SPDX-License-Identifier: Apache-2.0 */
/* udp_hot.h: a batch of UDP messages between recvmmsg and sendmmsg: who may be answered, the answers, and where they go.
 *
 * Memory     One struct udp_batch per worker, allocated before the first packet; nothing in it outlives a batch.
 * In place   A response is written over its query in the receive buffer; the send headers point there.
 * Budget     The raw socket echo costs about 5 us a message, nearly all of it in the kernel; ours: the answer, and some 40 ns. */
#pragma once
#include "answer/answer.h"
#include "base/base.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define UDP_BATCH 64	      /* messages per system call */
#define UDP_GROUP 16	      /* answered together: enough cache misses in flight, and the state stays in L1 */
#define UDP_BUFFER_BYTES 4096 /* the largest settings.udp_payload_bytes */
#define UDP_BUFFER_STRIDE \
	(UDP_BUFFER_BYTES + 2 * CACHE_LINE) /* not a multiple of 4096: the first lines spread over all L1 sets */
#define UDP_CONTROL_BYTES CMSG_SPACE(sizeof(struct in6_pktinfo))

union udp_peer {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct udp_socket {
	int fd;		  /* borrowed */
	uint8_t family;	  /* 4 or 6 */
	bool is_wildcard; /* IP_PKTINFO says where a query went to, and the answer must come from there */
	uint16_t port;
	uint8_t address[16]; /* what it is bound to */
};

/* What answer() leaves to others: ANSWER_MISS, or ANSWER_SEND_AND_REFRESH (which is sent besides). rx_index: the message. */
typedef void udp_leave(void *user, enum answer_verdict verdict, unsigned rx_index, const struct answer_query *q);

struct udp_batch {
	struct mmsghdr rx[UDP_BATCH];
	struct mmsghdr tx[UDP_BATCH];
	struct iovec rx_iov[UDP_BATCH];
	struct iovec tx_iov[UDP_BATCH];
	union udp_peer peer[UDP_BATCH];
	alignas(struct cmsghdr) uint8_t control[UDP_BATCH][UDP_CONTROL_BYTES];
	struct answer_query query[UDP_GROUP];
	udp_leave *leave; /* NULL: misses are dropped */
	void *user;
	alignas(CACHE_LINE) uint8_t buffer[UDP_BATCH][UDP_BUFFER_STRIDE];
};

/* Once: points the receive headers at their buffers. */
void udp_batch_init(struct udp_batch *b);
/* Before each recvmmsg: restores the lengths of the first `count` receive headers for this socket. */
HOT void udp_batch_rearm(struct udp_batch *b, const struct udp_socket *socket, unsigned count);
/* Answers rx[0..received); returns how many of tx[] are to be sent. */
MUST_USE HOT unsigned udp_batch_answer(struct udp_batch *b, const struct udp_socket *socket, const struct snapshot *s,
				       struct answer_thread *t, unsigned received);
/* Turns the response in tx[index], which the interface's MTU refused, into one with TC and nothing but the question. */
void udp_batch_truncate(struct udp_batch *b, unsigned index);
/* The same for a response anywhere; returns its octets. */
size_t udp_truncate(uint8_t *msg, size_t bytes);
