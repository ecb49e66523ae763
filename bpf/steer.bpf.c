/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* steer.bpf.c: hands DNS queries over UDP to AF_XDP sockets and leaves everything else to the kernel.
 *
 * Strict and additive: a packet is taken only if the fastpath surely handles it; XDP_PASS otherwise, never a drop, so the
 * sockets of the slowpath see fragments, options, odd lengths and other addresses as if this program did not exist.
 * Only fixed offsets are read; names are the fastpath's work. Behaviour changes through maps (steer_maps.h).
 * Each early exit is counted under its own reason. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "steer_maps.h"

#define DNS_HEADER_BYTES 12
#define DNS_QR 0x80                     /* in the header's third octet */
#define IPV4_DF 0x4000

struct vlan_tag { __be16 tci, protocol; };

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, STEER_MAX_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEER_MAX_ADDRESSES);
	__type(key, struct steer_key4);
	__type(value, __u8);
} addresses4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEER_MAX_ADDRESSES);
	__type(key, struct steer_key6);
	__type(value, __u8);
} addresses6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct steer_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_COUNTER_COUNT_);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

static __always_inline int pass(__u32 reason)
{
	__u64 *count = bpf_map_lookup_elem(&counters, &reason);

	if (count)
		*count += 1;
	return XDP_PASS;
}

/* The last steps, common to both families. */
static __always_inline int take(struct xdp_md *ctx, const struct udphdr *udp, void *end, __u32 ip_payload_bytes)
{
	const __u8 *dns = (const void *)(udp + 1);
	__u32 queue = ctx->rx_queue_index;
	__u32 udp_bytes = bpf_ntohs(udp->len);

	if (udp_bytes != ip_payload_bytes || udp_bytes < sizeof(*udp) + DNS_HEADER_BYTES)
		return pass(STEER_BAD_LENGTH);
	if ((const void *)(dns + DNS_HEADER_BYTES) > end)
		return pass(STEER_BAD_LENGTH);
	if (dns[2] & DNS_QR)
		return pass(STEER_RESPONSE);
	/* Replies to the DNS port of a server that answers are how loops begin; QR=0 excludes those, port 0 the rest. */
	if (!udp->source)
		return pass(STEER_MARTIAN);
	/* An empty slot gives XDP_PASS. */
	if (bpf_redirect_map(&xsks, queue, XDP_PASS) != XDP_REDIRECT)
		return pass(STEER_NO_SOCKET);
	pass(STEER_TAKEN);
	return XDP_REDIRECT;
}

/* True, or false and the reason to pass it; the key is spoilt then. */
static __always_inline int is_listed4(const struct steer_settings *now, struct steer_key4 *key, __u32 *reason)
{
	const __u8 *listed;

	for (int i = 0; i < STEER_FIRST4 && key->port; i++)
		if (now->first4[i].address == key->address && now->first4[i].port == key->port)
			return 1;
	listed = bpf_map_lookup_elem(&addresses4, key);
	if (listed && *listed == STEER_LISTED)
		return 1;
	key->address = 0;
	*reason = bpf_map_lookup_elem(&addresses4, key) ? STEER_OTHER_ADDRESS : STEER_OTHER_PORT;
	return 0;
}

static __always_inline int is_listed6(const struct steer_settings *now, struct steer_key6 *key, __u32 *reason)
{
	const __u8 *listed;

	for (int i = 0; i < STEER_FIRST6 && key->port; i++) {
		const struct steer_key6 *f = &now->first6[i];

		if (f->address[0] == key->address[0] && f->address[1] == key->address[1] && f->address[2] == key->address[2] &&
		    f->address[3] == key->address[3] && f->port == key->port)
			return 1;
	}
	listed = bpf_map_lookup_elem(&addresses6, key);
	if (listed && *listed == STEER_LISTED)
		return 1;
	__builtin_memset(key->address, 0, sizeof(key->address));
	*reason = bpf_map_lookup_elem(&addresses6, key) ? STEER_OTHER_ADDRESS : STEER_OTHER_PORT;
	return 0;
}

static __always_inline int ipv4(struct xdp_md *ctx, const struct steer_settings *now, const struct iphdr *ip, void *end)
{
	const struct udphdr *udp = (const void *)(ip + 1);
	struct steer_key4 key = {};
	__u32 total_bytes, source, reason = 0;

	if ((const void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
		return pass(STEER_BAD_LENGTH);
	if (ip->frag_off & bpf_htons((__u16)~IPV4_DF))
		return pass(STEER_FRAGMENT);
	if (ip->protocol != IPPROTO_UDP)
		return pass(STEER_NOT_UDP);
	if (ip->ihl != 5)
		return pass(STEER_OPTIONS);
	if ((const void *)(udp + 1) > end)
		return pass(STEER_BAD_LENGTH);
	key.address = ip->daddr;
	key.port = udp->dest;
	if (!is_listed4(now, &key, &reason))
		return pass(reason);
	/* The frame may be longer: Ethernet pads to 60 octets. */
	total_bytes = bpf_ntohs(ip->tot_len);
	if (total_bytes < sizeof(*ip) || total_bytes > end - (void *)ip)
		return pass(STEER_BAD_LENGTH);
	source = bpf_ntohl(ip->saddr);
	if (source >> 24 == 0 || source >> 24 == 127 || source >> 28 >= 0xe || ip->saddr == ip->daddr)
		return pass(STEER_MARTIAN);
	return take(ctx, udp, end, total_bytes - sizeof(*ip));
}

static __always_inline int is_ipv6_martian(const struct in6_addr *source, const struct in6_addr *destination)
{
	const __u32 *s = source->in6_u.u6_addr32, *d = destination->in6_u.u6_addr32;

	if ((s[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000))
		return 1;
	/* ::/96 with the unspecified and loopback addresses, and ::ffff:0:0/96 */
	if (!(s[0] | s[1]) && (!s[2] || s[2] == bpf_htonl(0xffff)))
		return 1;
	return s[0] == d[0] && s[1] == d[1] && s[2] == d[2] && s[3] == d[3];
}

static __always_inline int ipv6(struct xdp_md *ctx, const struct steer_settings *now, const struct ipv6hdr *ip, void *end)
{
	const struct udphdr *udp = (const void *)(ip + 1);
	struct steer_key6 key = {};
	__u32 payload_bytes, reason = 0;

	if ((const void *)(ip + 1) > end || ip->version != 6)
		return pass(STEER_BAD_LENGTH);
	switch (ip->nexthdr) {
	case IPPROTO_UDP:
		break;
	case IPPROTO_FRAGMENT:
		return pass(STEER_FRAGMENT);
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
	case IPPROTO_AH:
		return pass(STEER_EXT_HEADER);
	default:
		return pass(STEER_NOT_UDP);
	}
	if ((const void *)(udp + 1) > end)
		return pass(STEER_BAD_LENGTH);
	__builtin_memcpy(key.address, &ip->daddr, sizeof(key.address));
	key.port = udp->dest;
	if (!is_listed6(now, &key, &reason))
		return pass(reason);
	payload_bytes = bpf_ntohs(ip->payload_len);
	if (payload_bytes > end - (const void *)udp)
		return pass(STEER_BAD_LENGTH);
	if (is_ipv6_martian(&ip->saddr, &ip->daddr))
		return pass(STEER_MARTIAN);
	return take(ctx, udp, end, payload_bytes);
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct vlan_tag *tag = (const void *)(eth + 1);
	const void *l3 = eth + 1;
	const struct steer_settings *now;
	__u32 zero = 0;
	__be16 protocol;

	now = bpf_map_lookup_elem(&settings, &zero);
	if (!now || !(now->flags & STEER_F_ON))
		return pass(STEER_OFF);
	if ((const void *)(eth + 1) > end)
		return pass(STEER_NOT_IP);
	protocol = eth->h_proto;
	if (protocol == bpf_htons(ETH_P_8021Q)) {
		if ((const void *)(tag + 1) > end)
			return pass(STEER_VLAN);
		protocol = tag->protocol;
		l3 = tag + 1;
		if (protocol == bpf_htons(ETH_P_8021Q))
			return pass(STEER_VLAN);
	}
	if (protocol == bpf_htons(ETH_P_8021AD))
		return pass(STEER_VLAN);
	if (protocol != bpf_htons(ETH_P_IP) && protocol != bpf_htons(ETH_P_IPV6))
		return pass(STEER_NOT_IP);
	if (eth->h_dest[0] & 1)
		return pass(STEER_MULTICAST);
	return protocol == bpf_htons(ETH_P_IP) ? ipv4(ctx, now, l3, end) : ipv6(ctx, now, l3, end);
}

char steer_license[] SEC("license") = "Dual BSD/GPL";
