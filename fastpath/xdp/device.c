/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/device.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The netdev family (Documentation/netlink/specs/netdev.yaml), for headers that do not have it. */
#define NETDEV_FAMILY "netdev"
enum { NETDEV_DEV_GET = 1, NETDEV_ATTR_IFINDEX = 1, NETDEV_ATTR_XDP_FEATURES = 3 };

static int device_ioctl(int fd, const char *ifname, unsigned long request, struct ifreq *ifr)
{
	memset(ifr->ifr_name, 0, sizeof(ifr->ifr_name));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	return ioctl(fd, request, ifr);
}

static bool ethtool(int fd, const char *ifname, void *command)
{
	struct ifreq ifr = { .ifr_data = command };

	return device_ioctl(fd, ifname, SIOCETHTOOL, &ifr) == 0;
}

/* --- XDP features, by generic netlink ------------------------------------------------------------------------------- */

struct request {
	struct nlmsghdr nl;
	struct genlmsghdr ge;
	char attributes[64];
};

static void request_add(struct request *r, uint16_t type, const void *data, uint16_t bytes)
{
	struct nlattr *a = (struct nlattr *)((char *)r + NLMSG_ALIGN(r->nl.nlmsg_len));

	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + bytes);
	memcpy((char *)a + NLA_HDRLEN, data, bytes);
	r->nl.nlmsg_len = NLMSG_ALIGN(r->nl.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* One request, one answer: copies the attribute `want` (of at most bytes octets) of the first message. */
static bool genl_ask(int fd, uint16_t family, uint8_t command, uint16_t add_type, const void *add, uint16_t add_bytes,
		     uint16_t want, void *out, size_t out_bytes)
{
	struct request r = { .nl = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST },
			     .ge = { .cmd = command, .version = 1 } };
	alignas(struct nlmsghdr) char reply[8192];
	const struct nlmsghdr *nl = (const struct nlmsghdr *)reply;
	ssize_t got;
	size_t at;

	request_add(&r, add_type, add, add_bytes);
	if (send(fd, &r, r.nl.nlmsg_len, 0) < 0)
		return false;
	got = recv(fd, reply, sizeof(reply), 0);
	if (got < (ssize_t)NLMSG_LENGTH(GENL_HDRLEN) || nl->nlmsg_len > (size_t)got || nl->nlmsg_type != family)
		return false;
	for (at = NLMSG_LENGTH(GENL_HDRLEN); at + NLA_HDRLEN <= nl->nlmsg_len;) {
		const struct nlattr *a = (const struct nlattr *)(reply + at);

		if (a->nla_len < NLA_HDRLEN || at + a->nla_len > nl->nlmsg_len)
			return false;
		if ((a->nla_type & NLA_TYPE_MASK) == want && a->nla_len >= NLA_HDRLEN + out_bytes) {
			memcpy(out, (const char *)a + NLA_HDRLEN, out_bytes);
			return true;
		}
		at += NLA_ALIGN(a->nla_len);
	}
	return false;
}

static bool query_features(uint32_t ifindex, uint64_t *features)
{
	struct timeval timeout = { .tv_sec = 1 };
	uint16_t family;
	bool ok;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd < 0)
		return false;
	ok = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
	     genl_ask(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY, sizeof(NETDEV_FAMILY),
		      CTRL_ATTR_FAMILY_ID, &family, sizeof(family)) &&
	     genl_ask(fd, family, NETDEV_DEV_GET, NETDEV_ATTR_IFINDEX, &ifindex, sizeof(ifindex), NETDEV_ATTR_XDP_FEATURES,
		      features, sizeof(*features));
	close(fd);
	return ok;
}

/* --- the rest ------------------------------------------------------------------------------------------------------- */

static int query_numa_node(const char *ifname)
{
	char path[128];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", ifname);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

static void query_ethtool(struct device *d, int fd, const char *ifname)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	alignas(struct ethtool_gfeatures) char
		buffer[sizeof(struct ethtool_gfeatures) + 4 * sizeof(struct ethtool_get_features_block)] = { 0 };
	struct ethtool_gfeatures *features = (struct ethtool_gfeatures *)buffer;

	d->queues = 1;
	if (ethtool(fd, ifname, &channels) && channels.combined_count + channels.rx_count)
		d->queues = channels.combined_count + channels.rx_count;
	if (ethtool(fd, ifname, &ring))
		d->rx_ring = ring.rx_pending;
	if (ethtool(fd, ifname, &driver))
		snprintf(d->driver, sizeof(d->driver), "%.*s", DEVICE_DRIVER_BYTES - 1, driver.driver);
	/* NETIF_F_HW_VLAN_CTAG_RX is bit 8 of every kernel's first block (linux/netdev_features.h). veth has no wire to take
	 * tags from. */
	features->cmd = ETHTOOL_GFEATURES;
	features->size = 4;
	if (ethtool(fd, ifname, features) && strcmp(d->driver, "veth") != 0)
		d->strips_vlan = features->features[0].active & 1u << 8;
}

int device_socket(void) { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

enum err device_query(struct device *out, const char *ifname)
{
	struct device d = { .ifindex = if_nametoindex(ifname) };
	int fd;

	if (!d.ifindex)
		return ERR_NOTFOUND;
	fd = device_socket();
	if (fd < 0)
		return err_from_errno(errno);
	query_ethtool(&d, fd, ifname);
	close(fd);
	d.numa_node = query_numa_node(ifname);
	d.has_features = query_features(d.ifindex, &d.features);
	*out = d;
	return ERR_OK;
}

uint32_t device_mtu_bytes(int fd, const char *ifname)
{
	struct ifreq ifr = { .ifr_mtu = 0 };

	return device_ioctl(fd, ifname, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu > 0 ? (uint32_t)ifr.ifr_mtu : 0;
}

bool device_is_running(int fd, const char *ifname)
{
	struct ifreq ifr = { .ifr_flags = 0 };

	return device_ioctl(fd, ifname, SIOCGIFFLAGS, &ifr) == 0 &&
	       (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

bool device_can_zerocopy(const struct device *d, const char **reason)
{
	/* Drivers whose zero-copy is used in production, for kernels that do not tell features. */
	static const char *const known[] = { "i40e", "ice", "ixgbe", "igc", "mlx5_core", "stmmac" };

	if (d->has_features) {
		*reason = d->features & DEVICE_XDP_ZEROCOPY ? "the driver says it can" : "the driver has no zero-copy";
		return d->features & DEVICE_XDP_ZEROCOPY;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(d->driver, known[i]) == 0) {
			*reason = "the driver is known to";
			return true;
		}
	*reason = "the driver is not known to do zero-copy";
	return false;
}
