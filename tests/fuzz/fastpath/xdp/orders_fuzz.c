/* SPDX-License-Identifier: Apache-2.0 */
/* Any orders to the fastpath: each is obeyed, or the process ends with a code that says why, and nothing stays open. Queues, threads and
 * what can't be taken back are stood in for; zones, settings, configuration and counters are the real ones. */
#include "tests/fuzz/hostile_link.h"

#include "fastpath/xdp/orders.c"
#include "fastpath/xdp/zones.c"

#include "table/zone_build.h"

static const char config[] = "listen:\n  dns: [\"127.0.0.1:53\"]\n";
static const char zone[] = "server:\n  run: [\n";

const struct syscall_list fastpath_syscalls;
const struct control_verb status_verbs[1];
static bool was_started;

enum err privileges_drop(const char *user) { return user ? ERR_OK : ERR_ARGUMENT; }
enum err syscall_filter_enter(const struct syscall_list *list) { return list ? ERR_OK : ERR_ARGUMENT; }
enum err control_server_create(struct control_server **out, int fd, const struct control_verb *verbs, void *user)
{
	ASSERT(fd >= 0 && verbs == status_verbs && user);
	*out = NULL;
	return ERR_OK;
}

enum err queues_add(struct queues *q, const char *ifname, uint32_t ifindex, enum config_xdp_mode mode, int xskmap_fd)
{
	ASSERT(*ifname && mode <= XDP_MODE_SKB);
	if (q->interface_count == ARRAY_LEN(q->interface))
		return ERR_NOSPACE;
	q->interface[q->interface_count++] = (struct queue_interface){ .ifindex = ifindex, .mode = mode, .xskmap_fd = xskmap_fd };
	return ERR_OK;
}
enum err queues_bind(struct queues *q, const struct config *c, struct counters *counters)
{
	ASSERT(q && c && counters);
	return q->interface_count % 4 == 3 ? ERR_UNSUPPORTED : ERR_OK;
}
enum err queues_start(struct queues *q, const struct config *c, const struct snapshot_holder *snapshots, struct shared *shared)
{
	ASSERT(q && c && shared && snapshot_acquire(snapshots) && !was_started);
	was_started = true;
	return ERR_OK;
}
void queues_insert(struct queues *q) { ASSERT(q && was_started); }
void queues_parked(struct queues *q, uint32_t ifindex, uint32_t queue) { ASSERT(q && (ifindex | queue | 1)); }

static int right_segment(void)
{
	struct segment_header h = {
		.magic = SEGMENT_MAGIC, .version = SEGMENT_VERSION, .size_bytes = sizeof h, .id = 1, .notes = sizeof h
	};

	return hostile_memfd(&h, sizeof h, true);
}

static int right_map(void)
{
	static uint64_t generation;
	struct zone_map_build *map;
	uint8_t bytes[4096] = { 0 };

	ASSERT(zone_map_build_create(&map, generation++ % 4 + 1) == ERR_OK);
	ASSERT(zone_map_build_add_unusable(map, (const uint8_t *)"\7example") == ERR_OK);
	size_t count = zone_map_build_bytes(map);
	ASSERT(count <= sizeof bytes && zone_map_build_finish(map, bytes) == ERR_OK);
	zone_map_build_destroy(map);
	return hostile_memfd(bytes, count, true);
}

static int right_fd(uint32_t type)
{
	int shared = hostile_shared_fd(type);

	if (shared >= 0)
		return shared;
	switch (type) {
	case LINK_COUNTERS: return hostile_counters_fd();
	case LINK_SETTINGS: return hostile_settings_fd();
	case LINK_CONFIG: return hostile_memfd(config, sizeof config - 1, true);
	case LINK_ZONES: return hostile_memfd(zone, sizeof zone - 1, true);
	case LINK_SEGMENT: return right_segment();
	case LINK_MAP: return right_map();
	default: return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
}

/* As the process ends. */
static void end(struct fastpath *f)
{
	zones_fini(&f->zones);
	shared_fini(&f->shared);
	if (f->counters)
		counters_detach(f->counters);
	config_free(f->config);
	if (f->control_listen_fd >= 0)
		close(f->control_listen_fd);
	for (size_t i = 0; i < f->queues.interface_count; i++)
		close(f->queues.interface[i].xskmap_fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	log_set_level(LOG_XDP, LOG_LEVEL_ERROR);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fastpath f;
	struct hostile_input in;
	int pair[2];
	bool goes_on = true;

	if (!hostile_input(&in, data, size))
		return 0;
	(void)hostile_shared_fd(0);
	unsigned before = open_fds();
	ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	memset(&f, 0, sizeof f);
	f.link = pair[1];
	f.control_listen_fd = -1;
	f.exit_code = LINK_EXIT_OK;
	was_started = false;
	zones_init(&f.zones);
	shared_init(&f.shared);
	for (unsigned i = 0; i < in.records && goes_on; i++) {
		struct link_msg m;
		int fd;
		(void)hostile_send(pair[0], &in, i, right_fd);
		goes_on = orders_receive(&f);
		ASSERT(f.is_started ? was_started && f.config && f.counters : true);
		ASSERT(f.zones.segment_count <= ZONE_SET_MAX_SEGMENTS);
		/* What it says is never more than its reports. */
		while (link_receive(pair[0], &m, &fd) == ERR_OK)
			ASSERT(fd < 0 && (m.type == LINK_READY || m.type == LINK_LIVE || m.type == LINK_FAILED));
	}
	close(pair[0]);
	ASSERT(!goes_on || !orders_receive(&f));
	end(&f);
	close(pair[1]);
	ASSERT(open_fds() == before);
	return 0;
}
