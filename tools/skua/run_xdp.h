/* SPDX-License-Identifier: Apache-2.0 */
/* run_xdp.h: the steering programs of all configured interfaces, as the supervisor holds them. An interface without one is
 * served by the kernel path; nothing here stops the supervisor. */
#pragma once
#include "base/base.h"
#include "config/config.h"
#include "xdp/program.h"

struct run_interface {
	char name[16];
	uint32_t ifindex;	     /* 0: no program */
	struct xdp_program *program; /* owned; NULL: the kernel path serves it */
	struct xdp_program_info info;
	enum err reason; /* why there is no program */
};
struct run_xdp {
	struct run_interface interface[CONFIG_MAX_INTERFACES];
	size_t count;	   /* configured ones; a bond counts as its members */
	size_t open_count; /* with a program */
	bool is_off;	   /* by the environment or the configuration */
	int netlink_fd;	   /* readable when addresses of this machine changed; -1: nobody needs to know */
};

void run_xdp_open(struct run_xdp *x, const struct config *config);
/* Empties the slots; programs, links and maps stay. */
void run_xdp_close(struct run_xdp *x);
void run_xdp_clear_slots(struct run_xdp *x);
/* ifindex and queue come from shared memory: unknown ones are ignored. */
void run_xdp_clear_slot(struct run_xdp *x, uint32_t ifindex, uint32_t queue);
const struct run_interface *run_xdp_find(const struct run_xdp *x, uint32_t ifindex);
/* netlink_fd is readable: reads it empty and tells the programs their addresses. */
void run_xdp_addresses_changed(struct run_xdp *x, const struct config *config);
