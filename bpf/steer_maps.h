/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* steer_maps.h: what the XDP program and user space must agree on: map keys, settings, counters.
 * Included by both sides, so only <linux/types.h> is used. Addresses and ports are in wire order, as they stand in a packet. */
#pragma once
#include <linux/types.h>

#define STEER_MAX_QUEUES 256	 /* slots of the XSKMAP */
#define STEER_MAX_ADDRESSES 1024 /* per address family */

/* Map names; user space also pins the maps under these names. */
#define STEER_MAP_XSKS "xsks" /* XSKMAP: receive queue -> AF_XDP socket; an empty slot means the kernel path */
#define STEER_MAP_ADDRESSES4 "addresses4"
#define STEER_MAP_ADDRESSES6 "addresses6"
#define STEER_MAP_SETTINGS "settings"
#define STEER_MAP_COUNTERS "counters"

struct steer_key4 {
	__u32 address;
	__u16 port;
	__u16 zero;
};
struct steer_key6 {
	__u32 address[4];
	__u16 port;
	__u16 zero;
};
/* Values of the two address maps. For each listed port there is also an entry with an all-zero address: looked up only when
 * the address was not found, to count other_address and other_port apart. */
enum { STEER_LISTED = 1, STEER_PORT_ONLY = 2 };

#define STEER_FIRST4 4
#define STEER_FIRST6 2

/* The only element of the settings map. first4 and first6 repeat some entries of the address maps: a query to one of them needs
 * no look-up there. Port 0: unused. */
struct steer_settings {
	__u32 flags;
	__u32 zero;
	struct steer_key4 first4[STEER_FIRST4];
	struct steer_key6 first6[STEER_FIRST6];
};
enum { STEER_F_ON = 1 }; /* off: every packet goes to the kernel */

/* X(enum, name in JSON, help): what became of each packet. Everything but TAKEN went to the kernel. */
#define STEER_COUNTERS(X) \
	X(TAKEN, "taken", "handed to an AF_XDP socket") \
	X(OFF, "off", "steering is switched off") \
	X(NOT_IP, "not_ip", "neither IPv4 nor IPv6: ARP and the like") \
	X(VLAN, "vlan", "more than one VLAN tag, or an 802.1ad tag") \
	X(MULTICAST, "multicast", "to a multicast or broadcast MAC address") \
	X(NOT_UDP, "not_udp", "IP, but not UDP") \
	X(OPTIONS, "options", "IPv4 with options") \
	X(FRAGMENT, "fragment", "an IPv4 or IPv6 fragment") \
	X(EXT_HEADER, "ext_header", "IPv6 with extension headers other than fragment") \
	X(OTHER_ADDRESS, "other_address", "UDP to a listed port, but not to a listed address") \
	X(OTHER_PORT, "other_port", "UDP to another port") \
	X(BAD_LENGTH, "bad_length", "lengths disagree, or too short for a DNS header") \
	X(RESPONSE, "response", "a DNS response (QR=1)") \
	X(MARTIAN, "martian", "from an impossible source: port 0, loopback, multicast, the destination itself") \
	X(NO_SOCKET, "no_socket", "would be taken, but the queue has no AF_XDP socket now")

enum steer_counter {
#define X(e, name, help) STEER_##e,
	STEER_COUNTERS(X)
#undef X
		STEER_COUNTER_COUNT_
};
