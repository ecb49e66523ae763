/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: the XDP program of one interface: loading, attaching, pinning, adopting; its maps.
 *
 * Life       The program hangs on the interface by a bpf_link that is pinned, with the maps, under <pin-dir>/<interface>/. It
 *            outlives
 *            every process; only xdp_program_detach() takes it away. xdp_program_open() adopts what it finds pinned: the
 *            same program stays as it is, another version is swapped in with the maps kept, so no packet meets an
 *            interface without a program and no card is reset.
 * Owner      `skua run`. The fastpath gets the XSKMAP's descriptor only (LINK_XSKMAP).
 * Privilege  CAP_BPF and CAP_NET_ADMIN; CAP_SYS_ADMIN to mount a bpffs where there is none.
 * Threads    A handle belongs to one thread.
 * Errors     Logged here, with the kernel's own words and a hint, unless said otherwise. */
#pragma once
#include "base/base.h"
#include "bpf/steer_maps.h"
#include "config/config.h"

struct xdp_program; /* opaque */

enum xdp_program_origin {
	XDP_PROGRAM_ATTACHED, /* nothing usable was pinned: loaded and attached anew */
	XDP_PROGRAM_ADOPTED,  /* found pinned, the same program */
	XDP_PROGRAM_UPDATED,  /* found pinned, an other version: replaced in place */
};

struct xdp_program_info {
	char ifname[16];
	uint32_t ifindex, program_id;
	bool is_skb; /* attached in generic (SKB) mode, not in the driver */
	enum xdp_program_origin origin;
};

/* Adopts or loads, attaches, pins. mode XDP_MODE_SKB attaches in generic mode, every other one in the driver and nowhere else.
 * A new
 * program is switched on, its address set and XSKMAP are empty: it passes everything.
 * ERR_NOTFOUND no such interface; ERR_DENIED; ERR_UNSUPPORTED the driver has no XDP; ERR_RANGE the MTU is too large;
 * ERR_BUSY another program is attached; others as the kernel says. */
MUST_USE enum err xdp_program_open(struct xdp_program **out, const char *ifname, const char *pin_dir, enum config_xdp_mode mode);
/* Only what is pinned and attached already, unchanged: for status and detach. ERR_NOTFOUND (not logged) if there is none. */
MUST_USE enum err xdp_program_adopt(struct xdp_program **out, const char *ifname, const char *pin_dir);
/* Gives up the handle; program, link and maps stay. NULL is fine. */
void xdp_program_close(struct xdp_program *take);
/* Detaches from the interface, removes the pins, closes the handle (also on failure). Intel cards reset: seconds without a
 * link. */
MUST_USE enum err xdp_program_detach(struct xdp_program *take);

void xdp_program_info(const struct xdp_program *p, struct xdp_program_info *out);
/* Borrowed: valid until close. */
int xdp_program_xskmap_fd(const struct xdp_program *p);

/* Empties a queue's XSKMAP slot: the kernel path serves it from the next packet on. An empty slot is fine.
 * ERR_NOTFOUND (not logged): there is no such slot. */
MUST_USE enum err xdp_program_clear_slot(struct xdp_program *p, uint32_t queue);
/* The same for every queue. */
void xdp_program_clear_slots(struct xdp_program *p);
/* Makes the taken (address, port) pairs exactly these. 0.0.0.0 and :: stand for the addresses that this network namespace has now
 * (all interfaces, lo's global ones included): call again when they change. Pairs that stay are never missing in between.
 * ERR_NOSPACE beyond STEER_MAX_ADDRESSES of a family: nothing changed. */
MUST_USE enum err xdp_program_set_addresses(struct xdp_program *p, const struct config_address *addresses, size_t count);
/* Off: the program passes everything. */
MUST_USE enum err xdp_program_set_enabled(struct xdp_program *p, bool enabled);
/* Sums over CPUs. */
MUST_USE enum err xdp_program_counters(const struct xdp_program *p, uint64_t out[STEER_COUNTER_COUNT_]);
/* Name in JSON and metrics, and its meaning. */
const char *xdp_program_counter_name(enum steer_counter c);
const char *xdp_program_counter_help(enum steer_counter c);
const char *xdp_program_origin_text(enum xdp_program_origin o);

/* Makes pin_dir exist on a bpffs, mounting one if need be (at /sys/fs/bpf if pin_dir is below it, else at pin_dir). */
MUST_USE enum err xdp_program_pin_dir(const char *pin_dir);
