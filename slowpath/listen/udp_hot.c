/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/udp_hot.h"
#include "dns/message.h"
#include "dns/rr_type.h"

void udp_batch_init(struct udp_batch *b)
{
	memset(b, 0, offsetof(struct udp_batch, buffer));
	for (unsigned i = 0; i < UDP_BATCH; i++) {
		b->rx_iov[i] = (struct iovec){ .iov_base = b->buffer[i], .iov_len = UDP_BUFFER_BYTES };
		b->rx[i].msg_hdr.msg_iov = &b->rx_iov[i];
		b->rx[i].msg_hdr.msg_iovlen = 1;
		b->rx[i].msg_hdr.msg_name = &b->peer[i];
		b->tx[i].msg_hdr.msg_iov = &b->tx_iov[i];
		b->tx[i].msg_hdr.msg_iovlen = 1;
	}
}

HOT void udp_batch_rearm(struct udp_batch *b, const struct udp_socket *socket, unsigned count)
{
	socklen_t name_bytes = socket->family == 4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	for (unsigned i = 0; i < count; i++) {
		struct msghdr *h = &b->rx[i].msg_hdr;
		h->msg_namelen = name_bytes;
		if (socket->is_wildcard) {
			h->msg_control = b->control[i];
			h->msg_controllen = UDP_CONTROL_BYTES;
		} else {
			h->msg_control = NULL;
			h->msg_controllen = 0;
		}
	}
}

/* Where the message was sent to, into local[16]; and the control data rewritten so that the response leaves from there.
 * The interface is left to the routing table (replies of a multi-homed host need not go out where the query came in),
 * except where the address means nothing without it. False for broadcast and multicast: an answer would come from another
 * address than was asked. */
ALWAYS_INLINE bool turn_around(struct msghdr *h, uint8_t family, uint8_t local[16])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	if (unlikely(!c))
		return false;
	if (family == 4) {
		struct in_pktinfo info;
		memcpy(&info, CMSG_DATA(c), sizeof info);
		if (unlikely(info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr))
			return false;
		memcpy(local, &info.ipi_spec_dst, 4);
		info.ipi_ifindex = 0;
		memcpy(CMSG_DATA(c), &info, sizeof info);
		return true;
	}
	struct in6_pktinfo info;
	memcpy(&info, CMSG_DATA(c), sizeof info);
	memcpy(local, &info.ipi6_addr, 16);
	if (unlikely(local[0] == 0xff))
		return false;
	if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
		info.ipi6_ifindex = 0;
	memcpy(CMSG_DATA(c), &info, sizeof info);
	return true;
}

/* Sources that no honest client has: an answer would go nowhere, to many, or back to ourselves. */
ALWAYS_INLINE bool is_martian(const struct udp_socket *socket, const struct answer_client *client, const uint8_t local[16])
{
	if (client->port == 0)
		return true;
	uint8_t first = client->address[0];
	if (socket->family == 4 ? first == 0 || first >= 224 : first == 0xff)
		return true;
	return client->port == socket->port && memcmp(client->address, local, 16) == 0;
}

ALWAYS_INLINE void fill_client(struct answer_client *out, const union udp_peer *peer, uint8_t family)
{
	memset(out, 0, sizeof *out);
	if (family == 4) {
		memcpy(out->address, &peer->v4.sin_addr, 4);
		out->port = ntohs(peer->v4.sin_port);
	} else {
		memcpy(out->address, &peer->v6.sin6_addr, 16);
		out->port = ntohs(peer->v6.sin6_port);
	}
	out->family = family;
	out->transport = TRANSPORT_UDP;
}

/* Fills query for rx[index]; false if it must be dropped. */
ALWAYS_INLINE bool take(struct udp_batch *b, const struct udp_socket *socket, unsigned index, struct answer_query *q,
			struct counter_block *counters)
{
	uint8_t local[16] = { 0 };
	fill_client(&q->client, &b->peer[index], socket->family);
	if (!socket->is_wildcard)
		memcpy(local, socket->address, sizeof local);
	else if (!turn_around(&b->rx[index].msg_hdr, socket->family, local))
		goto martian;
	if (unlikely(is_martian(socket, &q->client, local)))
		goto martian;
	q->msg = b->buffer[index];
	q->query_bytes = b->rx[index].msg_len;
	q->capacity_bytes = UDP_BUFFER_BYTES;
	return true;
martian:
	counter_add(counters, C_DROP_MARTIAN, 1);
	return false;
}

ALWAYS_INLINE void give(struct udp_batch *b, unsigned rx_index, unsigned tx_index, uint32_t response_bytes)
{
	struct msghdr *to = &b->tx[tx_index].msg_hdr;
	const struct msghdr *from = &b->rx[rx_index].msg_hdr;
	b->tx_iov[tx_index] = (struct iovec){ .iov_base = b->buffer[rx_index], .iov_len = response_bytes };
	to->msg_name = from->msg_name;
	to->msg_namelen = from->msg_namelen;
	to->msg_control = from->msg_control;
	to->msg_controllen = from->msg_controllen;
}

HOT unsigned udp_batch_answer(struct udp_batch *b, const struct udp_socket *socket, const struct snapshot *s,
			      struct answer_thread *t, unsigned received)
{
	unsigned sent = 0;
	for (unsigned start = 0; start < received; start += UDP_GROUP) {
		unsigned end = MIN(start + UDP_GROUP, received), taken = 0;
		uint8_t origin[UDP_GROUP];
		for (unsigned i = start; i < end; i++) {
			if (!take(b, socket, i, &b->query[taken], t->counters))
				continue;
			answer_prepare(s, t, &b->query[taken]);
			origin[taken++] = (uint8_t)i;
		}
		for (unsigned k = 0; k < taken; k++)
			answer_prefetch(s, &b->query[k]);
		for (unsigned k = 0; k < taken; k++) {
			enum answer_verdict verdict = answer_finish(s, t, &b->query[k]);
			if (unlikely(verdict != ANSWER_SEND && verdict != ANSWER_DROP) && b->leave)
				b->leave(b->user, verdict, origin[k], &b->query[k]);
			if (verdict == ANSWER_SEND || verdict == ANSWER_SEND_AND_REFRESH)
				give(b, origin[k], sent++, b->query[k].response_bytes);
		}
	}
	return sent;
}

/* The offset of the OPT record of a response of ours; `bytes` if it has none. pos: behind the question. */
static size_t find_opt(const uint8_t *msg, size_t pos, size_t bytes)
{
	for (unsigned left = load_be16(msg + 6) + load_be16(msg + 8) + load_be16(msg + 10); left > 0 && pos < bytes; left--) {
		size_t owner = pos;
		while (pos < bytes && msg[pos] && msg[pos] < 0xc0)
			pos += 1u + msg[pos];
		pos += pos < bytes && msg[pos] ? 2 : 1;
		if (pos + 10 > bytes)
			break;
		if (load_be16(msg + pos) == RR_OPT)
			return owner;
		pos += 10u + load_be16(msg + pos + 8);
	}
	return bytes;
}

size_t udp_truncate(uint8_t *msg, size_t bytes)
{
	size_t end = DNS_HEADER_BYTES;
	if (load_be16(msg + 4)) { /* one, uncompressed: the answer function keeps the question as it came */
		while (end < bytes && msg[end])
			end += 1u + msg[end];
		end += 1 + 4;
	}
	if (end > bytes)
		return bytes;
	/* The OPT stays (RFC 6891 section 7). */
	size_t opt = find_opt(msg, end, bytes), opt_bytes = 0;
	if (opt + EDNS_OPT_FIXED_BYTES <= bytes)
		opt_bytes = MIN((size_t)EDNS_OPT_FIXED_BYTES + load_be16(msg + opt + 9), bytes - opt);
	memmove(msg + end, msg + opt, opt_bytes);
	msg[2] |= 0x02; /* TC */
	memset(msg + 6, 0, 6);
	msg[11] = opt_bytes > 0;
	return end + opt_bytes;
}

void udp_batch_truncate(struct udp_batch *b, unsigned index)
{
	struct iovec *iov = &b->tx_iov[index];
	iov->iov_len = udp_truncate(iov->iov_base, iov->iov_len);
}
