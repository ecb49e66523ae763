/* SPDX-License-Identifier: Apache-2.0 */
/* Any orders at the start of the slowpath: it goes with all that it needs, or not, and nothing stays open. */
#include "slowpath/slowpath.h"
#include "tests/fuzz/hostile_link.h"

static const char config[] = "listen:\n  dns: [\"127.0.0.1:53\"]\n";

static int right_fd(uint32_t type)
{
	int shared = hostile_shared_fd(type);

	if (shared >= 0)
		return shared;
	switch (type) {
	case LINK_COUNTERS: return hostile_counters_fd();
	case LINK_SETTINGS: return hostile_settings_fd();
	case LINK_CONFIG:
	case LINK_ZONES: return hostile_memfd(config, sizeof config - 1, true);
	default: return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hostile_input in;
	struct handover h;
	const char *why = NULL;
	int pair[2];

	if (!hostile_input(&in, data, size))
		return 0;
	(void)hostile_shared_fd(0);
	unsigned before = open_fds();
	ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	for (unsigned i = 0; i < in.records; i++)
		ASSERT(hostile_send(pair[0], &in, i, right_fd));
	close(pair[0]);
	enum handover_result result = handover_receive(&h, pair[1], &why);
	if (result == HANDOVER_GO) {
		ASSERT(h.config_text && h.config_text[h.config_bytes] == 0 && h.zones_fd >= 0 && h.control_fd >= 0 && h.counters);
		for (size_t i = 0; i < h.socket_count; i++)
			ASSERT(h.socket[i].worker < LISTEN_MAX_WORKERS && h.socket[i].kind <= LINK_LISTEN_TCP);
		ASSERT(h.shared.worker_wake_count <= RING_SET_MAX_WORKERS && h.shared.thread_wake_count <= RING_SET_MAX_THREADS);
		(void)shared_attach(&h.shared, &why);
		handover_drop_kept(&h);
	} else if (result == HANDOVER_BROKEN) {
		ASSERT(why);
	}
	handover_fini(&h);
	close(pair[1]);
	ASSERT(open_fds() == before);
	return 0;
}
