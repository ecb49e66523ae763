/* SPDX-License-Identifier: Apache-2.0 */
/* Any messages of the two parts to the supervisor: what it keeps stays consistent, a part that breaks the protocol is killed, nothing
 * stays open. Processes and steering programs are stood in for. Bit 7 of a message's text octet says which part sends it. */
#include "tests/fuzz/hostile_link.h"

#include "tools/skua/run_orders.c"

#include "table/zone_build.h"
#include "table/zone_set.h"

static struct run r;
static uint64_t killed;

void run_part_kill(struct run_part *p, bool is_hung)
{
	ASSERT(!is_hung && *p->failure);
	killed |= 1u << p->id;
}

void run_part_unlink(struct run_part *p, uint64_t now_ns)
{
	(void)now_ns;
	close(p->link);
	p->link = -1;
}

/* What is passed on must be fit to be sent. */
void run_part_send(struct run_part *p, const struct link_msg *message, int fd)
{
	int pair[2];
	struct link_msg copy = *message;
	(void)p;
	ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	ASSERT(link_send(pair[0], &copy, fd) == ERR_OK);
	close(pair[0]);
	close(pair[1]);
}

bool run_part_is_running(const struct run_part *p) { return p->link >= 0; }
bool run_part_is_other_program(struct run_part *p) { return p == NULL; }
enum err run_part_spawn(struct run_part *p, uint64_t now_ns) { return p && now_ns ? ERR_OK : ERR_IO; }
void run_part_stop(struct run_part *p, uint64_t now_ns) { run_part_unlink(p, now_ns); }
enum run_part_end run_part_reap(struct run_part *p, uint64_t now_ns, uint64_t *wait_ns)
{
	(void)p, (void)now_ns;
	*wait_ns = 1;
	return RUN_PART_END_STOPPED;
}
void run_xdp_clear_slots(struct run_xdp *x) { ASSERT(x == &r.xdp); }
int xdp_program_xskmap_fd(const struct xdp_program *p) { return p ? 0 : -1; }

static int right_fd(uint32_t type)
{
	static uint64_t generation;
	struct zone_map_build *map;
	uint8_t bytes[4096] = { 0 };
	if (type != LINK_MAP)
		return hostile_memfd("segment", 7, true);
	ASSERT(zone_map_build_create(&map, generation++ % 8) == ERR_OK && zone_map_build_bytes(map) <= sizeof bytes);
	size_t count = zone_map_build_bytes(map);
	ASSERT(zone_map_build_finish(map, bytes) == ERR_OK);
	zone_map_build_destroy(map);
	return hostile_memfd(bytes, count, true);
}

static void check_publish(const struct run_publish *p)
{
	ASSERT(p->count <= ZONE_SET_MAX_SEGMENTS && (p->map_fd >= 0) == (p->generation > 0));
	for (size_t i = 0; i < p->count; i++) {
		ASSERT(p->segment_[i].fd >= 0 && p->segment_[i].id <= p->highest_id);
		ASSERT(i == 0 || p->segment_[i - 1].id < p->segment_[i].id);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	log_set_level(LOG_RUN, LOG_LEVEL_ERROR);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hostile_input in;
	int far[LINK_PART_COUNT_];
	if (!hostile_input(&in, data, size))
		return 0;
	unsigned before = open_fds();
	memset(&r, 0, sizeof r);
	killed = 0;
	run_publish_init(&r.publish);
	for (unsigned i = 0; i < LINK_PART_COUNT_; i++) {
		int pair[2];
		ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
		r.part[i] = (struct run_part){ .id = i, .name = i ? "slowpath" : "fastpath", .state = RUN_PART_STARTING };
		r.part[i].link = pair[0];
		far[i] = pair[1];
	}
	for (unsigned i = 0; i < in.records; i++) {
		struct run_part *p = &r.part[in.record[i * HOSTILE_RECORD_BYTES + 5] >> 7];
		if (p->link < 0)
			continue;
		(void)hostile_send(far[p->id], &in, i, right_fd);
		run_orders_receive(&r, p, i + 1);
		check_publish(&r.publish);
		ASSERT((p->link < 0) == (killed >> p->id & 1));
	}
	for (unsigned i = 0; i < LINK_PART_COUNT_; i++) {
		close(far[i]);
		if (r.part[i].link >= 0)
			close(r.part[i].link);
	}
	run_publish_fini(&r.publish);
	ASSERT(open_fds() == before);
	return 0;
}
