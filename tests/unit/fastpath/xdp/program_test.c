/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an XDP program on a veth pair in a network namespace of the test's own. Root only. */
#include "xdp/program.h"

#include "base/log.h"
#include "tests/unit/fastpath/xdp/veth.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <stdio.h>

static char pin_dir[64];
static struct xdp_program *program;
static struct xdp_program_info info;

static void start(void)
{
	veth_enter();
	veth_pin_dir(pin_dir);
	log_init("test");
	for (int i = 0; i < LOG_SUBSYSTEM_COUNT_; i++)
		log_set_level((enum log_subsystem)i, LOG_LEVEL_ERROR);
}

static void open_it(enum config_xdp_mode mode, enum xdp_program_origin want)
{
	cr_assert_eq(xdp_program_open(&program, "skt0", pin_dir, mode), ERR_OK);
	xdp_program_info(program, &info);
	cr_assert_eq(info.origin, want, "%s", xdp_program_origin_text(info.origin));
}

static void start_open(void)
{
	start();
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_ATTACHED);
}

static void end(void)
{
	xdp_program_close(program);
	veth_leave(pin_dir);
}

static uint32_t attached_id(void)
{
	uint32_t id = 0;

	cr_assert_eq(bpf_xdp_query_id((int)if_nametoindex("skt0"), 0, &id), 0);
	return id;
}

static int pinned(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/skt0/%s", pin_dir, name);
	return bpf_obj_get(path);
}

/* Puts another object in a pin's place. */
static void replace_pin(const char *name, int fd)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/skt0/%s", pin_dir, name);
	unlink(path);
	cr_assert_eq(bpf_obj_pin(fd, path), 0);
}

static int another_program(void)
{
	const struct bpf_insn pass[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS },
					 { .code = BPF_JMP | BPF_EXIT } };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_XDP);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "other", "GPL", pass, ARRAY_LEN(pass), &opts);

	cr_assert_geq(fd, 0);
	return fd;
}

static uint32_t map_id(int fd)
{
	struct bpf_map_info map = { 0 };
	uint32_t bytes = sizeof(map);

	cr_assert_eq(bpf_obj_get_info_by_fd(fd, &map, &bytes), 0);
	return map.id;
}

Test(program, is_attached_in_the_driver_and_switched_on, .init = start_open, .fini = end)
{
	struct steer_settings settings = { 0 };
	uint32_t zero = 0;

	cr_expect_not(info.is_skb);
	cr_expect_eq(info.program_id, attached_id());
	cr_expect_eq(info.ifindex, if_nametoindex("skt0"));
	cr_assert_eq(bpf_map_lookup_elem(pinned(STEER_MAP_SETTINGS), &zero, &settings), 0);
	cr_expect_eq(settings.flags, STEER_F_ON);
	cr_assert_eq(xdp_program_set_enabled(program, false), ERR_OK);
	cr_assert_eq(bpf_map_lookup_elem(pinned(STEER_MAP_SETTINGS), &zero, &settings), 0);
	cr_expect_eq(settings.flags, 0u);
}

Test(program, outlives_its_handle_and_is_adopted, .init = start_open, .fini = end)
{
	uint32_t id = info.program_id, map = map_id(xdp_program_xskmap_fd(program));

	for (int i = 0; i < 3; i++) {
		xdp_program_close(program);
		cr_assert_eq(attached_id(), id);
		open_it(XDP_MODE_AUTO, XDP_PROGRAM_ADOPTED);
		cr_expect_eq(info.program_id, id);
		cr_expect_eq(map_id(xdp_program_xskmap_fd(program)), map);
	}
	xdp_program_close(program);
	cr_assert_eq(xdp_program_adopt(&program, "skt0", pin_dir), ERR_OK);
	xdp_program_info(program, &info);
	cr_expect_eq(info.program_id, id);
}

Test(program, of_another_version_is_replaced_with_link_and_maps_kept, .init = start_open, .fini = end)
{
	uint32_t map = map_id(xdp_program_xskmap_fd(program));
	int link = pinned("link"), other = another_program();
	struct bpf_link_info before = { 0 }, after = { 0 };
	uint32_t bytes = sizeof(before);

	cr_assert_eq(bpf_obj_get_info_by_fd(link, &before, &bytes), 0);
	cr_assert_eq(bpf_link_update(link, other, NULL), 0);
	replace_pin("program", other);
	xdp_program_close(program);
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_UPDATED);
	cr_expect_eq(info.program_id, attached_id());
	cr_expect_eq(map_id(xdp_program_xskmap_fd(program)), map);
	bytes = sizeof(after);
	cr_assert_eq(bpf_obj_get_info_by_fd(pinned("link"), &after, &bytes), 0);
	cr_expect_eq(after.id, before.id);
	xdp_program_close(program);
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_ADOPTED);
}

Test(program, makes_new_maps_when_a_layout_has_changed, .init = start_open, .fini = end)
{
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "addresses4", 4, 1, 16, NULL);

	cr_assert_geq(map, 0);
	replace_pin(STEER_MAP_ADDRESSES4, map);
	xdp_program_close(program);
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_UPDATED);
	cr_expect_neq(map_id(pinned(STEER_MAP_ADDRESSES4)), map_id(map));
	xdp_program_close(program);
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_ADOPTED);
}

Test(program, pins_of_an_interface_that_was_made_anew_are_not_believed, .init = start_open, .fini = end)
{
	xdp_program_close(program);
	veth_run("ip link del skt0");
	veth_run("ip link add skt0 type veth peer name skt1 && ip link set skt0 up && ip link set skt1 up");
	cr_expect_eq(xdp_program_adopt(&program, "skt0", pin_dir), ERR_NOTFOUND);
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_ATTACHED);
	cr_expect_eq(info.program_id, attached_id());
}

Test(program, changes_its_mode_when_asked, .init = start, .fini = end)
{
	open_it(XDP_MODE_SKB, XDP_PROGRAM_ATTACHED);
	cr_expect(info.is_skb);
	xdp_program_close(program);
	open_it(XDP_MODE_SKB, XDP_PROGRAM_ADOPTED);
	xdp_program_close(program);
	open_it(XDP_MODE_COPY, XDP_PROGRAM_ATTACHED);
	cr_expect_not(info.is_skb);
}

Test(program, detach_takes_everything_away, .init = start_open, .fini = end)
{
	char path[80];

	cr_assert_eq(xdp_program_detach(program), ERR_OK);
	program = NULL;
	cr_expect_eq(attached_id(), 0u);
	snprintf(path, sizeof(path), "%s/skt0", pin_dir);
	cr_expect_neq(access(path, F_OK), 0);
	cr_expect_eq(xdp_program_adopt(&program, "skt0", pin_dir), ERR_NOTFOUND);
}

Test(program, errors_are_told_apart, .init = start, .fini = end)
{
	int index = (int)if_nametoindex("skt0");

	log_set_level(LOG_XDP, LOG_LEVEL_ERROR);
	cr_expect_eq(xdp_program_open(&program, "nothere", pin_dir, XDP_MODE_AUTO), ERR_NOTFOUND);
	veth_run("ip link set skt1 mtu 4000");
	cr_expect_eq(xdp_program_open(&program, "skt0", pin_dir, XDP_MODE_AUTO), ERR_RANGE);
	veth_run("ip link set skt1 mtu 1500");
	cr_assert_eq(bpf_xdp_attach(index, another_program(), XDP_FLAGS_DRV_MODE, NULL), 0);
	cr_expect_eq(xdp_program_open(&program, "skt0", pin_dir, XDP_MODE_AUTO), ERR_BUSY);
	cr_assert_eq(bpf_xdp_detach(index, XDP_FLAGS_DRV_MODE, NULL), 0);
	cr_expect_eq(xdp_program_open(&program, "lo", pin_dir, XDP_MODE_AUTO), ERR_UNSUPPORTED);
	cr_expect_eq(attached_id(), 0u, "asking why must leave nothing attached");
	open_it(XDP_MODE_AUTO, XDP_PROGRAM_ATTACHED);
}

/* --- addresses ------------------------------------------------------------------------------------------------------ */

static struct config_address address(const char *text, uint16_t port)
{
	struct config_address a = { .family = strchr(text, ':') ? 6 : 4, .port = port };

	cr_assert_eq(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, text, a.address), 1, "%s", text);
	return a;
}

/* The value of a pair in the map; 0: it is not there. */
static uint8_t listed(const char *text, uint16_t port)
{
	struct config_address a = address(text, port);
	struct steer_key4 key4 = { .port = htons(port) };
	struct steer_key6 key6 = { .port = htons(port) };
	uint8_t value = 0;

	memcpy(&key4.address, a.address, 4);
	memcpy(key6.address, a.address, 16);
	bpf_map_lookup_elem(pinned(a.family == 4 ? STEER_MAP_ADDRESSES4 : STEER_MAP_ADDRESSES6),
			    a.family == 4 ? (void *)&key4 : &key6, &value);
	return value;
}

static size_t entries(const char *map, size_t key_bytes)
{
	uint8_t key[sizeof(struct steer_key6)];
	const void *previous = NULL;
	size_t n = 0;
	int fd = pinned(map);

	for (; bpf_map_get_next_key(fd, previous, key) == 0; n++)
		previous = key;
	cr_assert_leq(key_bytes, sizeof(key));
	return n;
}

static struct steer_settings settings(void)
{
	struct steer_settings out = { 0 };
	uint32_t zero = 0;

	cr_assert_eq(bpf_map_lookup_elem(pinned(STEER_MAP_SETTINGS), &zero, &out), 0);
	return out;
}

/* Every pair that the settings repeat is listed in the maps, and up to their room every listed one is repeated. */
static size_t repeated(void)
{
	struct steer_settings now = settings();
	uint8_t value;
	size_t n = 0;

	for (size_t i = 0; i < STEER_FIRST4; i++)
		if (now.first4[i].port) {
			cr_assert_eq(bpf_map_lookup_elem(pinned(STEER_MAP_ADDRESSES4), &now.first4[i], &value), 0);
			cr_expect_eq(value, STEER_LISTED);
			n++;
		}
	for (size_t i = 0; i < STEER_FIRST6; i++)
		if (now.first6[i].port) {
			cr_assert_eq(bpf_map_lookup_elem(pinned(STEER_MAP_ADDRESSES6), &now.first6[i], &value), 0);
			cr_expect_eq(value, STEER_LISTED);
			n++;
		}
	return n;
}

Test(program, its_address_set_is_exactly_what_was_set, .init = start_open, .fini = end)
{
	struct config_address first[] = { address("192.0.2.1", 53), address("192.0.2.1", 5353), address("2001:db8::1", 53),
					  address("192.0.2.1", 53) };
	struct config_address second[] = { address("192.0.2.1", 53), address("192.0.2.2", 53) };

	cr_assert_eq(xdp_program_set_addresses(program, first, ARRAY_LEN(first)), ERR_OK);
	cr_expect_eq(listed("192.0.2.1", 53), STEER_LISTED);
	cr_expect_eq(listed("192.0.2.1", 5353), STEER_LISTED);
	cr_expect_eq(listed("2001:db8::1", 53), STEER_LISTED);
	cr_expect_eq(listed("0.0.0.0", 5353), STEER_PORT_ONLY);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES4, 8), 4u);
	cr_expect_eq(repeated(), 3u);
	cr_assert_eq(xdp_program_set_addresses(program, second, ARRAY_LEN(second)), ERR_OK);
	cr_expect_eq(listed("192.0.2.2", 53), STEER_LISTED);
	cr_expect_eq(listed("192.0.2.1", 5353), 0);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES4, 8), 3u);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES6, 20), 0u);
	cr_expect_eq(repeated(), 2u);
	cr_assert_eq(xdp_program_set_enabled(program, false), ERR_OK);
	cr_expect_eq(settings().flags, 0u);
	cr_expect_eq(repeated(), 2u, "the switch changes nothing but itself");
	cr_assert_eq(xdp_program_set_enabled(program, true), ERR_OK);
	cr_expect_eq(repeated(), 2u);
	cr_assert_eq(xdp_program_set_addresses(program, NULL, 0), ERR_OK);
	cr_expect_eq(repeated(), 0u);
	cr_expect_eq(settings().flags, (uint32_t)STEER_F_ON);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES4, 8), 0u);
}

Test(program, any_address_means_those_of_the_namespace, .init = start_open, .fini = end)
{
	struct config_address any[] = { address("0.0.0.0", 53), address("::", 53) };

	veth_run("sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.skt0.disable_ipv6=0 net.ipv6.conf.lo.disable_ipv6=0");
	veth_run("ip link set lo up; ip addr add 192.0.2.7/24 dev skt0; ip addr add 198.51.100.1/32 dev lo");
	veth_run("ip addr add 2001:db8::7/64 dev skt0 nodad; ip addr add 2001:db8:1::1/128 dev lo nodad");
	cr_assert_eq(xdp_program_set_addresses(program, any, ARRAY_LEN(any)), ERR_OK);
	cr_expect_eq(listed("192.0.2.7", 53), STEER_LISTED);
	cr_expect_eq(listed("198.51.100.1", 53), STEER_LISTED, "an anycast address on lo");
	cr_expect_eq(listed("2001:db8::7", 53), STEER_LISTED);
	cr_expect_eq(listed("2001:db8:1::1", 53), STEER_LISTED);
	cr_expect_eq(listed("127.0.0.1", 53), 0);
	cr_expect_eq(listed("::1", 53), 0);
	cr_expect_eq(listed("0.0.0.0", 53), STEER_PORT_ONLY, "0.0.0.0 itself is no address");
	veth_run("ip addr del 192.0.2.7/24 dev skt0");
	cr_assert_eq(xdp_program_set_addresses(program, any, ARRAY_LEN(any)), ERR_OK);
	cr_expect_eq(listed("192.0.2.7", 53), 0);
}

Test(program, too_many_addresses_change_nothing, .init = start_open, .fini = end)
{
	struct config_address one = address("192.0.2.1", 53), *many = calloc(STEER_MAX_ADDRESSES, sizeof(*many));

	cr_assert_eq(xdp_program_set_addresses(program, &one, 1), ERR_OK);
	/* With the port's marker one too many. */
	for (unsigned i = 0; i < STEER_MAX_ADDRESSES; i++)
		many[i] = (struct config_address){ .family = 4,
						   .port = 53,
						   .address = { 10, 0, (uint8_t)(i >> 8), (uint8_t)(i + 1) } };
	for (unsigned i = 0; i < STEER_MAX_ADDRESSES; i++)
		many[i].address[1] = (uint8_t)(i >> 8);
	cr_expect_eq(xdp_program_set_addresses(program, many, STEER_MAX_ADDRESSES), ERR_NOSPACE);
	cr_expect_eq(listed("192.0.2.1", 53), STEER_LISTED);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES4, 8), 2u);
	/* As many as there is room for, over ones that have to go. */
	cr_expect_eq(xdp_program_set_addresses(program, many, STEER_MAX_ADDRESSES - 1), ERR_OK);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES4, 8), (size_t)STEER_MAX_ADDRESSES);
	cr_expect_eq(xdp_program_set_addresses(program, many + 1, STEER_MAX_ADDRESSES - 1), ERR_OK);
	cr_expect_eq(entries(STEER_MAP_ADDRESSES4, 8), (size_t)STEER_MAX_ADDRESSES);
	cr_expect_eq(repeated(), (size_t)STEER_FIRST4);
	free(many);
}

Test(program, slots_and_counters, .init = start_open, .fini = end)
{
	uint64_t values[STEER_COUNTER_COUNT_];
	uint32_t queue = 5;
	int xsk = socket(AF_XDP, SOCK_RAW, 0);

	cr_expect_eq(xdp_program_clear_slot(program, queue), ERR_OK, "an empty slot");
	cr_expect_eq(xdp_program_clear_slot(program, STEER_MAX_QUEUES), ERR_NOTFOUND);
	cr_assert_eq(bpf_map_update_elem(xdp_program_xskmap_fd(program), &queue, &xsk, BPF_NOEXIST), 0);
	cr_expect_eq(xdp_program_clear_slot(program, queue), ERR_OK);
	cr_assert_eq(bpf_map_update_elem(xdp_program_xskmap_fd(program), &queue, &xsk, BPF_NOEXIST), 0, "it was not empty");
	xdp_program_clear_slots(program);
	cr_assert_eq(bpf_map_update_elem(xdp_program_xskmap_fd(program), &queue, &xsk, BPF_NOEXIST), 0, "it was not empty");
	close(xsk);
	cr_assert_eq(xdp_program_counters(program, values), ERR_OK);
	for (unsigned c = 0; c < STEER_COUNTER_COUNT_; c++) {
		cr_expect_str_neq(xdp_program_counter_name((enum steer_counter)c), "unknown");
		cr_expect_gt(strlen(xdp_program_counter_help((enum steer_counter)c)), 0u);
	}
}
