/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: what a network interface says about itself: queues, rings, MTU, state, driver, XDP features, NUMA node. */
#pragma once
#include "base/base.h"

#define DEVICE_DRIVER_BYTES 32

/* Bits of the kernel's enum netdev_xdp_act (6.3 and newer), which older headers lack. */
enum { DEVICE_XDP_BASIC = 1, DEVICE_XDP_REDIRECT = 2, DEVICE_XDP_ZEROCOPY = 8 };

struct device {
	uint32_t ifindex;
	uint32_t queues;		  /* receive queues in use: one AF_XDP socket each */
	uint32_t rx_ring;		  /* descriptors of the card's receive ring; 0: unknown */
	int numa_node;			  /* -1: unknown */
	char driver[DEVICE_DRIVER_BYTES]; /* empty: unknown */
	bool has_features;		  /* false: a kernel before 6.3 */
	uint64_t features;		  /* DEVICE_XDP_ */
	bool strips_vlan;		  /* receive VLAN offload is on: tags do not reach XDP */
};

/* ERR_NOTFOUND: no such interface. What the driver does not tell is left at its neutral value. */
MUST_USE enum err device_query(struct device *out, const char *ifname);
/* A descriptor for the two questions below, asked time and again by a process that may no longer make sockets. -1: errno. */
int device_socket(void);
/* 0 if the interface has gone. */
uint32_t device_mtu_bytes(int fd, const char *ifname);
/* Administratively up, with a carrier. */
bool device_is_running(int fd, const char *ifname);
/* Whether zero-copy is to be tried on this device, and the reason, a static text, for the log. */
bool device_can_zerocopy(const struct device *d, const char **reason);
