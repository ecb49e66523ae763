/* SPDX-License-Identifier: Apache-2.0 */
/* log_messages.h: every message id. docs/messages.md is made from this table (make docs). Ids are never reused.
 * X(ID, code, subsystem, level, explanation, what to do) */
#pragma once

#define LOG_MESSAGES(X) \
	X(RUN_STARTED, "SK-RUN-001", LOG_RUN, LOG_LEVEL_NOTICE, "The supervisor has started and names its version and configuration file.", "Nothing.") \
	X(RUN_STOPPED, "SK-RUN-002", LOG_RUN, LOG_LEVEL_NOTICE, "The supervisor has stopped its parts and exits.", "Nothing.") \
	X(CHILD_STARTED, "SK-RUN-003", LOG_RUN, LOG_LEVEL_INFO, "A part (fastpath or slowpath) was started.", "Nothing.") \
	X(CHILD_EXITED, "SK-RUN-004", LOG_RUN, LOG_LEVEL_ERROR, "A part ended without being asked to; it is started again after the stated back-off.", "Look at the lines before it; if it repeats, send them with `skua version`.") \
	X(CHILD_HUNG, "SK-RUN-005", LOG_RUN, LOG_LEVEL_ERROR, "A part stopped its heartbeat and is killed and started again.", "Look for CPU starvation (steal time, other load on its cores).") \
	X(LOG_LEVEL_SET, "SK-CTL-001", LOG_CONTROL, LOG_LEVEL_NOTICE, "A log level was changed by the control verb `log level`.", "Nothing. The next start takes the levels of the configuration file again.") \
	X(CONTROL_DENIED, "SK-CTL-002", LOG_CONTROL, LOG_LEVEL_WARNING, "A process without the right to do so has connected to a control socket and was turned away.", "Run the command as root, or as a member of the socket's group.") \
	X(CONTROL_FULL, "SK-CTL-003", LOG_CONTROL, LOG_LEVEL_WARNING, "A control connection was refused because too many were open.", "Find out which client keeps connections open (`ss -xp`).") \
	X(CONTROL_FAILED, "SK-CTL-004", LOG_CONTROL, LOG_LEVEL_ERROR, "The control socket can't accept connections for now; it tries again every second.", "See the reason in the line; usually a limit on open files or memory.") \
	X(XDP_ATTACHED, "SK-XDP-001", LOG_XDP, LOG_LEVEL_NOTICE, "The XDP program was attached to an interface.", "Nothing. An Intel card may lose its link for some seconds at this moment.") \
	X(XDP_ADOPTED, "SK-XDP-002", LOG_XDP, LOG_LEVEL_NOTICE, "The XDP program of an earlier run was found pinned and attached, and is used as it is.", "Nothing.") \
	X(XDP_UPDATED, "SK-XDP-003", LOG_XDP, LOG_LEVEL_NOTICE, "The XDP program of another version was found and replaced without a gap.", "Nothing.") \
	X(XDP_DETACHED, "SK-XDP-004", LOG_XDP, LOG_LEVEL_NOTICE, "The XDP program was detached: the interface serves by sockets only.", "Nothing, if you asked for it.") \
	X(XDP_LOAD_FAILED, "SK-XDP-005", LOG_XDP, LOG_LEVEL_ERROR, "The kernel did not load the XDP program.", "Follow the hint in the line.") \
	X(XDP_ATTACH_FAILED, "SK-XDP-006", LOG_XDP, LOG_LEVEL_ERROR, "The XDP program could not be attached, replaced or detached; the line has the kernel's reason.", "Follow the hint in the line.") \
	X(XDP_PIN_FAILED, "SK-XDP-007", LOG_XDP, LOG_LEVEL_ERROR, "Program, link or maps could not be kept in the bpffs.", "Check xdp.pin-dir and that a bpffs can be mounted there.") \
	X(XDP_BPFFS_MOUNTED, "SK-XDP-008", LOG_XDP, LOG_LEVEL_NOTICE, "There was no bpffs at the pin folder, so one was mounted.", "Nothing. Systems with systemd have one at /sys/fs/bpf.") \
	X(XDP_MAP_FAILED, "SK-XDP-009", LOG_XDP, LOG_LEVEL_ERROR, "A map of the XDP program could not be read or changed.", "Follow the line; `skua xdp detach` and a restart make new maps.") \
	X(XDP_LIBBPF, "SK-XDP-010", LOG_XDP, LOG_LEVEL_INFO, "A message of libbpf, the library that loads XDP programs.", "Nothing by itself: see the lines after it.") \
	X(XDP_SKB_MODE, "SK-XDP-011", LOG_XDP, LOG_LEVEL_WARNING, "XDP runs in generic mode, which gains little over sockets.", "Use a card whose driver has XDP, or leave the interface out of xdp.interfaces.")
