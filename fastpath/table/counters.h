/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h: counters and heartbeats, one block per thread, in a memfd that `skua run` makes and every process maps.
 *
 * Writer     Only the thread that owns a block, by plain relaxed stores; a block is cache-line aligned and shared with no one.
 * Readers    The supervisor, `skua status`, mgmt: read-only mappings, relaxed loads, sums may be a moment apart.
 * Memory     Sized for COUNTER_MAX_THREADS when made, sealed against resizing. To add a counter: one line in COUNTERS. */
#pragma once
#include "base/base.h"

#define COUNTERS_MAGIC 0x434b5653u
#define COUNTERS_VERSION 1u
#define COUNTER_MAX_THREADS 256u

/* X(enum, name in metrics and JSON, help). Totals since the block's process started; never reset. */
#define COUNTERS(X) \
	X(QUERIES, "queries", "messages taken for answering") \
	X(ANSWERS, "answers", "responses handed to the transport") \
	X(NOERROR, "noerror", "responses by rcode: NOERROR") \
	X(FORMERR, "formerr", "responses by rcode: FORMERR") \
	X(SERVFAIL, "servfail", "responses by rcode: SERVFAIL") \
	X(NXDOMAIN, "nxdomain", "responses by rcode: NXDOMAIN") \
	X(NOTIMP, "notimp", "responses by rcode: NOTIMP") \
	X(REFUSED, "refused", "responses by rcode: REFUSED") \
	X(RCODE_OTHER, "rcode_other", "responses with another rcode") \
	X(TRUNCATED, "truncated", "responses with TC set") \
	X(MISSES, "misses", "questions that need the resolver") \
	X(CACHE_HITS, "cache_hits", "answers from the cache") \
	X(STALE_HITS, "stale_hits", "of these: answers served stale (RFC 8767)") \
	X(REFRESHES, "refreshes", "entries about to expire that were asked for again") \
	X(MISS_ASKED, "miss_asked", "AF_XDP: questions handed to the resolver") \
	X(MISS_ANSWERED, "miss_answered", "AF_XDP: answers of the resolver that were sent") \
	X(MISS_EXPIRED, "miss_expired", "AF_XDP: questions that the resolver did not answer in time") \
	X(MISS_LATE, "miss_late", "AF_XDP: answers of the resolver that nobody waits for any more") \
	X(MISS_QUOTA, "miss_quota", "questions dropped since their client's prefix has too many under way") \
	X(MISS_RING_FULL, "miss_ring_full", "AF_XDP: questions dropped since the resolver's ring was full") \
	X(MISS_NO_SLOT, "miss_no_slot", "AF_XDP: questions dropped since too many are under way") \
	X(MISS_TOO_LONG, "miss_too_long", "AF_XDP: questions dropped since the query was too long for the ring") \
	X(MISS_NO_FRAME, "miss_no_frame", "AF_XDP: answers of the resolver dropped since no frame was free") \
	X(MISS_BAD_ANSWER, "miss_bad_answer", "AF_XDP: answers of the resolver that failed their checks") \
	X(MISS_KICKS, "miss_kicks", "AF_XDP: times that a sleeping resolver worker was woken") \
	X(MISS_KICK_ERROR, "miss_kick_errors", "AF_XDP: wake-ups that failed") \
	X(DROP_SHORT, "drop_short", "messages shorter than a DNS header") \
	X(DROP_RESPONSE, "drop_response", "messages with QR set") \
	X(DROP_MARTIAN, "drop_martian", "queries from an impossible source: port 0, our own address, multicast") \
	X(DROP_MALFORMED, "drop_malformed", "messages too damaged to deserve FORMERR") \
	X(EDNS, "edns", "queries with EDNS") \
	X(EDNS_DO, "edns_do", "queries with the DO bit") \
	X(COOKIE_GOOD, "cookie_good", "queries with a valid server cookie") \
	X(COOKIE_BAD, "cookie_bad", "queries with a server cookie that is wrong or too old") \
	X(ZONE_EXPIRED, "zone_expired", "queries for a zone past its serve-until time") \
	X(RX, "rx_frames", "AF_XDP: frames received") \
	X(TX, "tx_frames", "AF_XDP: frames sent") \
	X(TX_FULL, "tx_full", "AF_XDP: answers dropped since the TX ring was full") \
	X(TX_KICK, "tx_kicks", "AF_XDP: sendto calls") \
	X(TX_ERROR, "tx_errors", "AF_XDP: sendto calls that failed other than for try-again") \
	X(FRAME_BAD, "frame_bad", "AF_XDP: frames that the header checks refused") \
	X(FRAME_LOST, "frame_lost", "AF_XDP: frames missing from the accounting") \
	X(RX_WAKEUP, "rx_wakeups", "AF_XDP: poll calls") \
	X(XDP_RX_DROPPED, "xdp_rx_dropped", "XDP_STATISTICS rx_dropped") \
	X(XDP_RX_INVALID, "xdp_rx_invalid_descs", "XDP_STATISTICS rx_invalid_descs") \
	X(XDP_TX_INVALID, "xdp_tx_invalid_descs", "XDP_STATISTICS tx_invalid_descs") \
	X(XDP_RX_RING_FULL, "xdp_rx_ring_full", "XDP_STATISTICS rx_ring_full") \
	X(XDP_FILL_EMPTY, "xdp_rx_fill_ring_empty_descs", "XDP_STATISTICS rx_fill_ring_empty_descs") \
	X(XDP_TX_EMPTY, "xdp_tx_ring_empty_descs", "XDP_STATISTICS tx_ring_empty_descs") \
	X(UDP_RX, "udp_received", "sockets: UDP messages received") \
	X(UDP_TX, "udp_sent", "sockets: UDP messages sent") \
	X(UDP_TX_ERROR, "udp_send_errors", "sockets: UDP messages that could not be sent") \
	X(TCP_ACCEPTED, "tcp_accepted", "TCP connections accepted") \
	X(TCP_REFUSED, "tcp_refused", "TCP connections closed at once: a limit was reached") \
	X(TCP_CLOSED, "tcp_closed", "TCP connections closed") \
	X(TCP_TIMEOUT, "tcp_timeouts", "TCP connections closed for being idle or slow") \
	X(TCP_QUERIES, "tcp_queries", "queries over TCP") \
	X(TCP_EVICTED, "tcp_evicted", "idle TCP connections closed to make room for new ones") \
	X(TCP_STALLED, "tcp_stalled", "times that a TCP connection was not read since its client did not take the answers") \
	X(TCP_NO_BUFFER, "tcp_no_buffer", "TCP connections closed since buffers would exceed their bound") \
	X(UPSTREAM_QUERIES, "upstream_queries", "upstream: queries sent") \
	X(UPSTREAM_REPLIES, "upstream_replies", "upstream: replies that matched their queries") \
	X(UPSTREAM_TIMEOUTS, "upstream_timeouts", "upstream: queries without a reply in time") \
	X(UPSTREAM_UNREACHABLE, "upstream_unreachable", "upstream: queries that ICMP, routing or a refused connection ended") \
	X(UPSTREAM_SEND_ERROR, "upstream_send_errors", "upstream: UDP messages that could not be sent") \
	X(UPSTREAM_MALFORMED, "upstream_malformed", "upstream: messages ignored: no response, no sane header or question") \
	X(UPSTREAM_WRONG_QUESTION, "upstream_wrong_question", \
	  "upstream: messages ignored: nobody waits for that question (any more)") \
	X(UPSTREAM_WRONG_SOURCE, "upstream_wrong_source", "upstream: messages ignored: not from the server that was asked") \
	X(UPSTREAM_WRONG_PORT, "upstream_wrong_port", "upstream: messages ignored: to another port than the query left from") \
	X(UPSTREAM_WRONG_ID, "upstream_wrong_id", "upstream: messages ignored: wrong id") \
	X(UPSTREAM_WRONG_CASE, "upstream_wrong_case", "upstream: messages ignored: the letter case (0x20) is not ours") \
	X(UPSTREAM_WRONG_COOKIE, "upstream_wrong_cookie", "upstream: messages ignored: the cookie is missing or not ours") \
	X(UPSTREAM_SUSPECT, "upstream_suspect", "upstream: queries given up over UDP since replies may be forged") \
	X(UPSTREAM_SOCKETS, "upstream_sockets", "upstream: UDP sockets made") \
	X(UPSTREAM_SOCKET_LIMIT, "upstream_socket_limit", \
	  "upstream: times that a UDP socket was used for longer since no more may be made") \
	X(UPSTREAM_TCP, "upstream_tcp", "upstream: TCP connections begun, those for TLS included") \
	X(UPSTREAM_TCP_CLOSED, "upstream_tcp_closed", "upstream: connections that ended while queries waited on them") \
	X(UPSTREAM_TLS_FAILURES, "upstream_tls_failures", "upstream: TLS handshakes that failed, or showed a wrong name or pin") \
	X(UPSTREAM_TLS_RESUMED, "upstream_tls_resumed", "upstream: TLS sessions resumed") \
	X(UPSTREAM_LIMIT, "upstream_limit", "upstream: queries refused: a bound of those under way is reached") \
	X(UPSTREAM_LOOPS, "upstream_loops", "upstream: queries of ours that came back to us") \
	X(UPSTREAM_HEDGES, "upstream_hedges", "forwarding: a second server asked since the first took unusually long") \
	X(UPSTREAM_FAILOVERS, "upstream_failovers", "forwarding: another server asked since one failed") \
	X(UPSTREAM_PROBES, "upstream_probes", "forwarding: queries sent only to learn how a server is") \
	X(UPSTREAM_TRUNCATED, "upstream_truncated", "forwarding: questions asked again over TCP after a truncated reply") \
	X(UPSTREAM_EDNS_OFF, "upstream_edns_off", "forwarding: questions asked again without EDNS") \
	X(UPSTREAM_OUT, "upstream_out", "forwarding: times that a server was left out for failing") \
	X(FORWARD_FAILED, "forward_failed", "forwarding: questions that no server answered usefully") \
	X(RESOLVE_QUESTIONS, "resolve_questions", "resolver: questions that were begun") \
	X(RESOLVE_JOINED, "resolve_joined", "resolver: queries that joined a question under way") \
	X(RESOLVE_REFRESHED, "resolve_refreshed", "resolver: entries that were asked for again before they ended") \
	X(RESOLVE_ANSWERS, "resolve_answers", "resolver: responses given back") \
	X(RESOLVE_FROM_CACHE, "resolve_from_cache", \
	  "resolver: queries that zones or the cache could answer by the time they arrived") \
	X(RESOLVE_FAILED, "resolve_failed", "resolver: questions that no upstream answered") \
	X(RESOLVE_STALE, "resolve_stale", \
	  "resolver: queries answered stale while or since their question was not answered (RFC 8767)") \
	X(RESOLVE_RESTARTED, "resolve_restarted", \
	  "resolver: questions asked again since a flush or a change of zones overtook them") \
	X(RESOLVE_LOOPS, "resolve_loops", "resolver: queries of our own that came back to us") \
	X(RESOLVE_CHAINS, "resolve_chains", "resolver: answers put together from several") \
	X(RESOLVE_LEFT_OUT, "resolve_left_out", "resolver: records of replies that were not kept") \
	X(RESOLVE_USELESS, "resolve_useless", "resolver: replies that answer nothing or are malformed") \
	X(RESOLVE_LIMIT_TOTAL, "resolve_limit_total", "resolver: queries dropped since too many are under way") \
	X(RESOLVE_LIMIT_CLIENT, "resolve_limit_client", \
	  "resolver: queries dropped since too many of their client's prefix are under way") \
	X(RESOLVE_NO_MEMORY, "resolve_no_memory", "resolver: queries dropped for lack of memory") \
	X(RESOLVE_RING_BAD, "resolve_ring_bad", "resolver: records of the fastpath's rings that failed their checks") \
	X(RESOLVE_RING_FULL, "resolve_ring_full", "resolver: responses dropped since the fastpath's ring was full") \
	X(RESOLVE_KICKS, "resolve_kicks", "resolver: times that a sleeping thread of the fastpath was woken")

enum counter {
#define X(e, name, help) C_##e,
	COUNTERS(X)
#undef X
		C_COUNT_
};
enum counter_role { COUNTER_UNUSED, COUNTER_XDP, COUNTER_UDP, COUNTER_TCP, COUNTER_RESOLVE, COUNTER_OTHER };

/* clang-format off */
struct counter_block {
	alignas(CACHE_LINE) _Atomic uint64_t heartbeat_ns;  /* CLOCK_MONOTONIC, stored at least every 50 ms by a serving thread; 0: not serving */
	_Atomic uint32_t role;          /* enum counter_role; stored last when the block is set up */
	uint32_t cpu, ifindex, queue;   /* XDP: which queue. Others: 0 */
	_Atomic uint64_t generation;    /* of the snapshot that the thread last used */
	alignas(CACHE_LINE) _Atomic uint64_t value[C_COUNT_];
};
/* clang-format on */
struct counters {
	uint32_t magic, version;
	uint64_t size_bytes;
	uint32_t block_bytes, block_count, counter_count, pid;
	alignas(CACHE_LINE) struct counter_block block[];
};

ALWAYS_INLINE void counter_add(struct counter_block *b, enum counter c, uint64_t n)
{
	/* One writer: no read-modify-write needed. */
	atomic_store_explicit(&b->value[c], atomic_load_explicit(&b->value[c], memory_order_relaxed) + n, memory_order_relaxed);
}
ALWAYS_INLINE void counter_set(struct counter_block *b, enum counter c, uint64_t v)
{
	atomic_store_explicit(&b->value[c], v, memory_order_relaxed);
}
ALWAYS_INLINE uint64_t counter_get(const struct counter_block *b, enum counter c)
{
	return atomic_load_explicit((_Atomic uint64_t *)&b->value[c], memory_order_relaxed);
}

const char *counter_name(enum counter c);
const char *counter_help(enum counter c);
/* Makes the memfd (sealed against resizing, all pages allocated); *fd is the caller's. */
MUST_USE enum err counters_create(int *fd, const char *label);
/* Maps it; writable for its process, read-only otherwise. Checks magic, version, sizes. */
MUST_USE enum err counters_attach(struct counters **out, int fd, bool writable);
void counters_detach(struct counters *c);
/* Zeroes all blocks: at the start of a process, before its threads. */
void counters_reset(struct counters *c, uint32_t pid);
/* Sum of one counter over the blocks of a role (COUNTER_UNUSED: all). */
uint64_t counters_sum(const struct counters *c, enum counter_role role, enum counter which);
