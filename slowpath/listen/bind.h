/* SPDX-License-Identifier: Apache-2.0 */
/* bind.h: makes the sockets that the supervisor keeps for the slowpath's workers.
 *
 * Every worker gets a socket of its own per address and kind, all in one SO_REUSEPORT group: the kernel spreads clients by the
 * hash of addresses and ports. Spreading by receiving CPU (SO_ATTACH_REUSEPORT_CBPF) is left out on purpose: it is better only
 * when the card has as many queues as we have workers and each queue's interrupt stays on its own CPU; anywhere else
 * (one queue, veth, threaded NAPI on one core) it sends everything to one worker. */
#pragma once
#include "base/base.h"
#include "base/link.h"
#include "config/config.h"

struct bind_request {
	const struct config_address *addresses;
	size_t address_count;
	unsigned workers;	     /* sockets per address and kind */
	unsigned udp_receive_buffer; /* bytes wanted per UDP socket; the kernel may grant less */
};

struct bind_socket {
	int fd; /* close-on-exec, blocking */
	enum link_listen kind;
	unsigned worker;
	char text[64]; /* "address port", for LINK_LISTEN and logs */
};

struct bind_set {
	struct bind_socket *sockets; /* owned */
	size_t count;
	unsigned udp_receive_buffer; /* bytes that the kernel granted, the smallest; less than asked for: net.core.rmem_max */
};

struct bind_error {
	const struct config_address *address;
	enum link_listen kind;
	int errno_value;
	char text[512]; /* a sentence: what failed, on what, who holds the port if that can be found, what to do */
};

/* All sockets, or none. Addresses that this machine does not have yet are bound anyway (IP_FREEBIND). A port that any other
 * process holds is refused (ERR_BUSY), also if that one would share it by SO_REUSEPORT. */
MUST_USE enum err bind_sockets(struct bind_set *out, const struct bind_request *request, struct bind_error *error);
/* Closes all sockets of the set. */
void bind_set_fini(struct bind_set *set);
