/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/run_xdp.h"

#include "base/log.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert(IF_NAMESIZE == sizeof(((struct run_interface *)0)->name), "interface names");

static void add(struct run_xdp *x, const char *name)
{
	if (x->count == CONFIG_MAX_INTERFACES) {
		log_write(M_RUN_XDP_FALLBACK, "%s: more than %d interfaces (a bond counts as its members)", name,
			  CONFIG_MAX_INTERFACES);
		return;
	}
	for (size_t i = 0; i < x->count; i++) {
		if (!strcmp(x->interface[i].name, name))
			return;
	}
	snprintf(x->interface[x->count++].name, IF_NAMESIZE, "%s", name);
}

/* A bond hands packets on to its members' programs, so that these get one each. */
static void add_with_members(struct run_xdp *x, const char *name)
{
	char path[96], members[1024], *save = NULL;
	FILE *f = NULL;

	if (strlen(name) < IF_NAMESIZE && !strchr(name, '/')) {
		snprintf(path, sizeof path, "/sys/class/net/%s/bonding/slaves", name);
		f = fopen(path, "re");
	}
	if (!f) {
		add(x, name);
		return;
	}
	if (fgets(members, sizeof members, f)) {
		for (char *m = strtok_r(members, " \n", &save); m; m = strtok_r(NULL, " \n", &save))
			add(x, m);
	}
	fclose(f);
}

static bool has_wildcard(const struct config *config)
{
	static const uint8_t zero[16];

	for (size_t i = 0; i < config->listen.dns_count; i++) {
		if (!memcmp(config->listen.dns[i].address, zero, config->listen.dns[i].family == 4 ? 4 : 16))
			return true;
	}
	return false;
}

static int watch_addresses(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		log_write(M_RUN_ADDRESSES,
			  "changes of this machine's addresses can't be followed (netlink): %m; start again after one");
	return fd;
}

static void tell_addresses(struct run_interface *i, const struct config *config)
{
	enum err err = xdp_program_set_addresses(i->program, config->listen.dns, config->listen.dns_count);
	if (err != ERR_OK)
		log_write(M_RUN_ADDRESSES, "%s: %s", i->name, err_text(err));
}

static bool is_kept_off(const struct config *config)
{
	const char *environment = getenv("SKUA_XDP");

	if (environment && !strcasecmp(environment, "off")) {
		log_write(M_RUN_XDP_OFF, "SKUA_XDP=off in the environment keeps XDP off");
		return true;
	}
	if (!config->xdp.enabled)
		log_write(M_RUN_XDP_OFF, "\"xdp: enabled: false\" keeps XDP off");
	return !config->xdp.enabled;
}

/* A program that an earlier run left behind is told to pass everything, not taken away: that would reset the card. */
static void switch_off(const struct run_interface *i, const struct config *config)
{
	struct xdp_program *p;

	if (xdp_program_adopt(&p, i->name, config->xdp.pin_dir) != ERR_OK)
		return;
	if (xdp_program_set_enabled(p, false) == ERR_OK)
		log_write(M_RUN_XDP_OFF, "%s: the program that is attached passes everything; `skua xdp detach %s` removes it",
			  i->name, i->name);
	xdp_program_close(p);
}

static void open_one(struct run_xdp *x, struct run_interface *i, const struct config *config)
{
	i->reason = xdp_program_open(&i->program, i->name, config->xdp.pin_dir, config->xdp.mode);
	if (i->reason != ERR_OK) {
		i->program = NULL;
		log_write(M_RUN_XDP_FALLBACK, "%s: no XDP (%s); the kernel path serves it", i->name, err_text(i->reason));
		return;
	}
	xdp_program_clear_slots(i->program); /* of a fastpath that died with its supervisor */
	xdp_program_info(i->program, &i->info);
	i->ifindex = i->info.ifindex;
	tell_addresses(i, config);
	if (xdp_program_set_enabled(i->program, true) != ERR_OK)
		log_write(M_RUN_XDP_FALLBACK, "%s: the program can't be switched on; the kernel path serves it", i->name);
	log_write(M_RUN_XDP_READY, "%s: program %u %s, %s mode", i->name, i->info.program_id,
		  xdp_program_origin_text(i->info.origin), i->info.is_skb ? "generic (SKB)" : "driver");
	x->open_count++;
}

void run_xdp_open(struct run_xdp *x, const struct config *config)
{
	*x = (struct run_xdp){ .netlink_fd = -1 };
	for (size_t i = 0; i < config->xdp.interface_count; i++)
		add_with_members(x, config->xdp.interfaces[i]);
	if (!x->count)
		return;
	x->is_off = is_kept_off(config);
	enum err pins = x->is_off ? ERR_OK : xdp_program_pin_dir(config->xdp.pin_dir);
	for (size_t i = 0; i < x->count; i++) {
		x->interface[i].reason = pins;
		if (x->is_off)
			switch_off(&x->interface[i], config);
		else if (pins == ERR_OK)
			open_one(x, &x->interface[i], config);
		else
			log_write(M_RUN_XDP_FALLBACK, "%s: no folder for pins (%s); the kernel path serves it",
				  x->interface[i].name, err_text(pins));
	}
	if (x->open_count && has_wildcard(config))
		x->netlink_fd = watch_addresses();
}

void run_xdp_clear_slots(struct run_xdp *x)
{
	for (size_t i = 0; i < x->count; i++) {
		if (x->interface[i].program)
			xdp_program_clear_slots(x->interface[i].program);
	}
}

void run_xdp_close(struct run_xdp *x)
{
	run_xdp_clear_slots(x);
	for (size_t i = 0; i < x->count; i++)
		xdp_program_close(x->interface[i].program);
	if (x->netlink_fd >= 0)
		close(x->netlink_fd);
	*x = (struct run_xdp){ .netlink_fd = -1 };
}

const struct run_interface *run_xdp_find(const struct run_xdp *x, uint32_t ifindex)
{
	for (size_t i = 0; i < x->count; i++) {
		if (x->interface[i].program && x->interface[i].ifindex == ifindex)
			return &x->interface[i];
	}
	return NULL;
}

void run_xdp_clear_slot(struct run_xdp *x, uint32_t ifindex, uint32_t queue)
{
	const struct run_interface *i = run_xdp_find(x, ifindex);

	if (!i || queue >= STEER_MAX_QUEUES)
		return;
	enum err err = xdp_program_clear_slot(i->program, queue);
	if (err != ERR_OK && err != ERR_NOTFOUND)
		log_write(M_RUN_SYSTEM, "%s queue %u: the XSKMAP slot can't be cleared: %s", i->name, queue, err_text(err));
}

void run_xdp_addresses_changed(struct run_xdp *x, const struct config *config)
{
	char buffer[8192];

	/* What changed does not matter: the programs look for themselves. An overrun (ENOBUFS) is a change as well. */
	for (int i = 0; i < 64 && recv(x->netlink_fd, buffer, sizeof buffer, 0) > 0; i++)
		;
	for (size_t i = 0; i < x->count; i++) {
		if (x->interface[i].program)
			tell_addresses(&x->interface[i], config);
	}
}
