/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets in any pieces on a TCP connection: what comes back is what answer() says to each whole message, in order, and all that the
 * connection held is given back.
 *
 * Input      an octet of choices: bit 0: little room for buffers, bit 1: the client reads only at the end
 *            pieces: an octet n; below 240: n octets follow; below 255: 256 times n - 239 octets follow; 255: the client reads */
#include "slowpath/listen/tcp_connection.c"
#include "tests/unit/lib/zones.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURNS_MAX 100000 /* of the loop; far more than the largest input needs */
#define SMALL_BUDGET_BYTES 2048u
#define SMALL_SEND_BUFFER_BYTES 4096

static const char zone[] =
	"@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\na TXT \"some text\"\n*.w CNAME a\nd NS ns.d\nns.d A 192.0.2.2\n";

struct stream {
	uint8_t *data;
	size_t bytes, capacity;
};

static struct snapshot_holder holder;
static struct tcp_worker worker;
static alignas(64) struct counter_block counters;
static const struct answer_client client = {
	.family = 4, .address = { 192, 0, 2, 1 }, .port = 40000, .transport = TRANSPORT_TCP
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct zones_text zones[] = { { "example.", zone }, { "bad.", NULL } };
	struct snapshot *s = zones_snapshot(zones, ARRAY_LEN(zones));
	(void)argc, (void)argv;
	s->settings.tcp_idle_timeout_100ms = 50;
	snapshot_publish(&holder, s);
	snapshot_thread_register();
	snapshot_offline();
	ASSERT(uv_loop_init(&worker.loop) == 0);
	worker.thread.snapshots = &holder;
	worker.thread.counters = worker.thread.answer.counters = &counters;
	worker.limits = (struct tcp_limits){ .max_connections = 1,
					     .max_per_client = 1,
					     .idle_timeout_ms = 1000,
					     .message_timeout_ms = 1000,
					     .max_queries_in_flight = 4 };
	worker.read_buffer = malloc(TCP_READ_BYTES);
	worker.out = malloc(TCP_OUT_BYTES);
	ASSERT(worker.read_buffer && worker.out && tcp_clients_create(&worker.clients, 1, 1) == ERR_OK);
	return 0;
}

static void append(struct stream *s, const void *data, size_t bytes)
{
	if (bytes == 0)
		return;
	if (s->bytes + bytes > s->capacity) {
		s->capacity = 2 * (s->bytes + bytes);
		s->data = realloc(s->data, s->capacity);
		ASSERT(s->data);
	}
	memcpy(s->data + s->bytes, data, bytes);
	s->bytes += bytes;
}

static void turn(void) { uv_run(&worker.loop, UV_RUN_NOWAIT); }

/* What has come so far. */
static void take_answers(int fd, struct stream *out)
{
	static uint8_t buffer[65536];
	for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
		append(out, buffer, (size_t)n);
}

/* False: the server has closed. */
static bool send_piece(int fd, const uint8_t *data, size_t bytes, bool reads, struct stream *out)
{
	for (int turns = 0; bytes && turns < TURNS_MAX; turns++) {
		ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n < 0 || reads)
			take_answers(fd, out); /* a client that never reads would wait for ever */
		data += MAX(n, 0);
		bytes -= (size_t)MAX(n, 0);
		turn();
	}
	ASSERT(bytes == 0);
	return true;
}

/* Walks the pieces; to fd if there is one, and into sent. */
static void play(const uint8_t *data, size_t size, int fd, bool reads, struct stream *sent, struct stream *answered)
{
	bool is_open = true;
	while (size) {
		size_t bytes = data[0] < 240 ? data[0] : (size_t)(data[0] - 239) * 256;
		if (data[0] == 255) {
			take_answers(fd, answered);
			turn();
			bytes = 0;
		}
		data++;
		size--;
		bytes = MIN(bytes, size);
		append(sent, data, bytes);
		is_open = is_open && send_piece(fd, data, bytes, reads, answered);
		data += bytes;
		size -= bytes;
	}
}

/* What should come back; false: something was no DNS at all, and the connection ends there. */
static bool expect(const struct stream *sent, struct stream *out)
{
	static uint8_t message[TCP_MESSAGE_MAX];
	struct answer_thread t = { .counters = zones_counters() };
	for (size_t pos = 0; sent->bytes - pos >= TCP_LENGTH_BYTES;) {
		size_t bytes = load_be16(sent->data + pos);
		pos += TCP_LENGTH_BYTES;
		if (sent->bytes - pos < bytes)
			return true;
		if (bytes < DNS_HEADER_BYTES)
			return false;
		struct answer_query q = {
			.msg = message, .query_bytes = (uint32_t)bytes, .capacity_bytes = sizeof message, .client = client
		};
		memcpy(message, sent->data + pos, bytes);
		enum answer_verdict verdict = answer(snapshot_acquire(&holder), &t, &q);
		if (verdict == ANSWER_SEND || verdict == ANSWER_SEND_AND_REFRESH) {
			append(out, (uint8_t[]){ (uint8_t)(q.response_bytes >> 8), (uint8_t)q.response_bytes }, TCP_LENGTH_BYTES);
			append(out, message, q.response_bytes);
		}
		pos += bytes;
	}
	return true;
}

static int open_connection(void)
{
	int pair[2], bytes = SMALL_SEND_BUFFER_BYTES;
	struct tcp_connection *c = calloc(1, sizeof *c);
	ASSERT(c && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	ASSERT(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0);
	c->worker = &worker;
	c->client = client;
	ASSERT(tcp_clients_admit(worker.clients, &c->client) == TCP_ADMITTED && uv_tcp_init(&worker.loop, &c->handle) == 0);
	ASSERT(uv_tcp_open(&c->handle, pair[1]) == 0);
	tcp_connection_begin(c);
	return pair[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream sent = { 0 }, answered = { 0 }, expected = { 0 };
	if (size < 1)
		return 0;
	uint64_t closed = counter_get(&counters, C_TCP_CLOSED), no_buffer = counter_get(&counters, C_TCP_NO_BUFFER);
	worker.buffer_budget = data[0] & 1 ? SMALL_BUDGET_BYTES : TCP_BUFFER_BUDGET;
	int fd = open_connection();
	play(data + 1, size - 1, fd, !(data[0] & 2), &sent, &answered);
	shutdown(fd, SHUT_WR);
	for (int turns = 0; counter_get(&counters, C_TCP_CLOSED) == closed && turns < TURNS_MAX; turns++) {
		take_answers(fd, &answered);
		turn();
	}
	turn(); /* libuv frees it */
	take_answers(fd, &answered);
	ASSERT(counter_get(&counters, C_TCP_CLOSED) == closed + 1 && worker.buffer_bytes == 0);
	ASSERT(tcp_clients_total(worker.clients) == 0 && !uv_loop_alive(&worker.loop));
	for (int state = 0; state < TCP_STATE_COUNT_; state++)
		ASSERT(!worker.list[state].first && !worker.list[state].last);
	bool is_whole = expect(&sent, &expected) && counter_get(&counters, C_TCP_NO_BUFFER) == no_buffer;
	ASSERT(is_whole ? answered.bytes == expected.bytes : answered.bytes <= expected.bytes);
	ASSERT(answered.bytes == 0 || memcmp(answered.data, expected.data, answered.bytes) == 0);
	close(fd);
	free(sent.data);
	free(answered.data);
	free(expected.data);
	return 0;
}
