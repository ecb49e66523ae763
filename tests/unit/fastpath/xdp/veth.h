/* SPDX-License-Identifier: Apache-2.0 */
/* veth.h: a veth pair skt0 - skt1 in a network namespace of the test's own process, and raw frames on the far end. */
#pragma once
#include "tests/unit/fastpath/xdp/packet.h"

#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

static inline void veth_run(const char *command) { cr_assert_eq(system(command), 0, "%s", command); }

/* Mounts of the test are seen by nobody else, and go with it. */
static inline void veth_enter(void)
{
	cr_assert_eq(geteuid(), 0, "unit tests run as root");
	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
	cr_assert_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	veth_run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
	veth_run("ip link add skt0 type veth peer name skt1 && ip link set skt0 up && ip link set skt1 up");
}

/* A folder of this process for pins: the code under test mounts a bpffs there, which only this process's mount namespace sees. */
static inline void veth_pin_dir(char out[64]) { snprintf(out, 64, "/tmp/skua-test-%d.pins", (int)getpid()); }
static inline void veth_leave(const char *pin_dir)
{
	umount(pin_dir);
	rmdir(pin_dir);
}

static inline int veth_raw(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)if_nametoindex("skt1") };
	int on = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	cr_assert_eq(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* The next frame from the other end, our own ones left out; 0 after timeout_ms. The kernel takes VLAN tags out: put back. */
static inline size_t veth_receive(int fd, uint8_t *out, size_t room, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, timeout_ms) > 0) {
		alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		struct sockaddr_ll from;
		struct iovec iov = { .iov_base = out, .iov_len = room - 4 };
		struct msghdr m = { .msg_name = &from,
				    .msg_namelen = sizeof(from),
				    .msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(fd, &m, 0);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		struct tpacket_auxdata aux = { 0 };

		if (got <= 0 || from.sll_pkttype == PACKET_OUTGOING)
			continue;
		if (c && c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (aux.tp_status & TP_STATUS_VLAN_VALID) {
			memmove(out + 16, out + 12, (size_t)got - 12);
			packet_put16(out + 12, 0x8100);
			packet_put16(out + 14, aux.tp_vlan_tci);
			got += 4;
		}
		return (size_t)got;
	}
	return 0;
}
