/* SPDX-License-Identifier: Apache-2.0 */
/* log_messages.h: every message id. docs/messages.md is made from this table (make docs). Ids are never reused.
 * X(ID, code, subsystem, level, explanation, what to do) */
#pragma once
/* clang-format off */

#define LOG_MESSAGES(X) \
	X(RUN_STARTED, "SK-RUN-001", LOG_RUN, LOG_LEVEL_NOTICE, "The supervisor has started and names its version and configuration file.", "Nothing.") \
	X(RUN_STOPPED, "SK-RUN-002", LOG_RUN, LOG_LEVEL_NOTICE, "The supervisor has stopped its parts and exits.", "Nothing.") \
	X(CHILD_STARTED, "SK-RUN-003", LOG_RUN, LOG_LEVEL_INFO, "A part (fastpath or slowpath) was started.", "Nothing.") \
	X(CHILD_EXITED, "SK-RUN-004", LOG_RUN, LOG_LEVEL_ERROR, "A part ended without being asked to; it is started again after the stated back-off.", "Look at the lines before it; if it repeats, send them with `skua version`.") \
	X(CHILD_HUNG, "SK-RUN-005", LOG_RUN, LOG_LEVEL_ERROR, "A part stopped its heartbeat and is killed and started again.", "Look for CPU starvation (steal time, other load on its cores).") \
	X(RUN_QUEUE_FULL, "SK-RUN-006", LOG_RUN, LOG_LEVEL_ERROR, "A part did not read its orders from the supervisor, or descriptors ran out while they were sent; it is killed and started again.", "Raise LimitNOFILE if descriptors ran out; otherwise look at the lines before it.") \
	X(RUN_STOP_SLOW, "SK-RUN-007", LOG_RUN, LOG_LEVEL_WARNING, "A part did not end in time when it was asked to; the next harder means is used.", "If it repeats, send it with the lines before it.") \
	X(RUN_LINK_BROKEN, "SK-RUN-008", LOG_RUN, LOG_LEVEL_ERROR, "A part sent something over its link that the protocol does not allow; it is killed and started again.", "Make sure that all programs are of one version (`skua version`).") \
	X(RUN_PARKED, "SK-RUN-009", LOG_RUN, LOG_LEVEL_WARNING, "The thread of an AF_XDP queue stopped its heartbeat; the kernel path serves its queue until it is heard again.", "Look for CPU starvation (steal time, other load on its core).") \
	X(RUN_UNPARKED, "SK-RUN-010", LOG_RUN, LOG_LEVEL_INFO, "The thread of an AF_XDP queue is heard again.", "Nothing.") \
	X(RUN_XDP_OFF, "SK-RUN-011", LOG_RUN, LOG_LEVEL_NOTICE, "XDP is kept off by SKUA_XDP=off or xdp.enabled; the kernel path serves everything.", "Remove the switch when the box is reachable again.") \
	X(RUN_XDP_FALLBACK, "SK-RUN-012", LOG_RUN, LOG_LEVEL_WARNING, "An interface can't have XDP; the kernel path serves it.", "The line before it says why, and what to do.") \
	X(RUN_XDP_READY, "SK-RUN-013", LOG_RUN, LOG_LEVEL_INFO, "The steering program is on an interface.", "Nothing.") \
	X(RUN_LISTEN_FAILED, "SK-RUN-014", LOG_RUN, LOG_LEVEL_ERROR, "A listening socket could not be made; the supervisor ends.", "Free the port or change listen.dns.") \
	X(RUN_FOLDER, "SK-RUN-015", LOG_RUN, LOG_LEVEL_ERROR, "A folder or file in server.run or server.state can't be made or used; the supervisor ends.", "Correct the path or its permissions.") \
	X(RUN_SECOND, "SK-RUN-016", LOG_RUN, LOG_LEVEL_ERROR, "Another supervisor uses the same run folder; this one ends.", "Stop the other one, or give this one its own server.run.") \
	X(RUN_SYSTEM, "SK-RUN-017", LOG_RUN, LOG_LEVEL_ERROR, "The kernel refused something that the supervisor needs.", "The line names the call and the kernel's answer.") \
	X(RUN_SERVING, "SK-RUN-018", LOG_RUN, LOG_LEVEL_NOTICE, "A part serves; the line says how long its start took.", "Nothing.") \
	X(RUN_PUBLISHED, "SK-RUN-019", LOG_RUN, LOG_LEVEL_INFO, "A new zone set is handed to all parts.", "Nothing.") \
	X(RUN_RELOADED, "SK-RUN-020", LOG_RUN, LOG_LEVEL_NOTICE, "The reload that a SIGHUP asked for is done.", "Nothing.") \
	X(RUN_RELOAD_FAILED, "SK-RUN-021", LOG_RUN, LOG_LEVEL_ERROR, "The reload that a SIGHUP asked for failed, wholly or for some zones; what was served before is still being served.", "The slowpath's lines before it name file, line and column.") \
	X(RUN_NO_PROGRAM, "SK-RUN-022", LOG_RUN, LOG_LEVEL_ERROR, "The program of a part can't be started.", "Install all programs into one folder.") \
	X(RUN_CONFIG_REFUSED, "SK-RUN-023", LOG_RUN, LOG_LEVEL_ERROR, "A part can't work with this configuration and is not started again.", "Correct what the line says.") \
	X(RUN_BUFFER_SMALL, "SK-RUN-024", LOG_RUN, LOG_LEVEL_WARNING, "The kernel grants smaller receive buffers than listen.udp-receive-buffer.", "sysctl net.core.rmem_max") \
	X(RUN_PRIORITY, "SK-RUN-025", LOG_RUN, LOG_LEVEL_INFO, "The supervisor got no real-time priority, so that it may see hangs late on a busy box.", "Allow CAP_SYS_NICE or LimitRTPRIO=1.") \
	X(RUN_SIGNAL, "SK-RUN-026", LOG_RUN, LOG_LEVEL_NOTICE, "A signal asks the supervisor to end or to reload.", "Nothing.") \
	X(RUN_CONFIG_BAD, "SK-RUN-027", LOG_RUN, LOG_LEVEL_ERROR, "The configuration has errors or can't be read; the supervisor ends.", "Correct them: `skua config check` lists them.") \
	X(RUN_ADDRESSES, "SK-RUN-028", LOG_RUN, LOG_LEVEL_WARNING, "The steering program could not be told the addresses that it takes; what is not listed goes to the kernel path.", "The line says why.") \
	X(PRIVILEGES, "SK-RUN-029", LOG_RUN, LOG_LEVEL_WARNING, "A part could not give up all of its privileges, or stays root, without capabilities, since the configured user does not exist.", "Create the user (a package does) that server.user-fastpath or server.user-slowpath names.") \
	X(SHARED_BAD, "SK-RUN-030", LOG_RUN, LOG_LEVEL_ERROR, "Memory that the supervisor shares with a part failed its checks; the part serves without it, or with what it had before.", "If it repeats, restart `skua run`; otherwise test the memory of the machine.") \
	X(RUN_RECURSION, "SK-RUN-031", LOG_RUN, LOG_LEVEL_NOTICE, "Recursion is configured; the line says how much memory the cache and the rings take.", "Nothing.") \
	X(RUN_NO_MEMORY, "SK-RUN-032", LOG_RUN, LOG_LEVEL_ERROR, "Memory that the parts need could not be had; the supervisor ends.", "Lower cache.memory, or give the machine more memory.") \
	X(LOG_LEVEL_SET, "SK-CTL-001", LOG_CONTROL, LOG_LEVEL_NOTICE, "A log level was changed by the control verb `log level`.", "Nothing. The next start takes the levels of the configuration file again.") \
	X(CONTROL_DENIED, "SK-CTL-002", LOG_CONTROL, LOG_LEVEL_WARNING, "A process without the right to do so has connected to a control socket and was turned away.", "Run the command as root, or as a member of the socket's group.") \
	X(CONTROL_FULL, "SK-CTL-003", LOG_CONTROL, LOG_LEVEL_WARNING, "A control connection was refused because too many were open.", "Find out which client keeps connections open (`ss -xp`).") \
	X(CONTROL_FAILED, "SK-CTL-004", LOG_CONTROL, LOG_LEVEL_ERROR, "The control socket can't accept connections for now; it tries again every second.", "See the reason in the line; usually a limit on open files or memory.") \
	X(ZONE_LOADED, "SK-ZONE-001", LOG_ZONE, LOG_LEVEL_INFO, "A zone was loaded from its master file: its serial and number of records. Of a load of many zones, the first ones only.", "Nothing.") \
	X(ZONE_REFUSED, "SK-ZONE-002", LOG_ZONE, LOG_LEVEL_ERROR, "A zone's master file can't be used. The version before stays in service; a zone that has none is answered SERVFAIL.", "Correct what the line says (file, line, column) and run `skua reload`. `skua zone status ZONE` lists more of the errors.") \
	X(ZONE_RELOAD_DONE, "SK-ZONE-003", LOG_ZONE, LOG_LEVEL_NOTICE, "A load or reload of zones has ended; the line says how many were read, unchanged and refused.", "Nothing; for refused zones see their own lines.") \
	X(ZONE_PUBLISHED, "SK-ZONE-004", LOG_ZONE, LOG_LEVEL_INFO, "A new zone set is being served.", "Nothing.") \
	X(ZONE_PUBLISH_FAILED, "SK-ZONE-005", LOG_ZONE, LOG_LEVEL_ERROR, "A new zone set could not be put in service; the one before stays.", "The line says why; usually memory.") \
	X(ZONE_LIVE_LATE, "SK-ZONE-006", LOG_ZONE, LOG_LEVEL_WARNING, "A part did not take up a new zone set in time; it still answers from the one before.", "Look for a hung or starved fastpath.") \
	X(ZONE_ADOPTED, "SK-ZONE-007", LOG_ZONE, LOG_LEVEL_NOTICE, "The zones of the process before were taken over from the supervisor's memory.", "Nothing.") \
	X(ZONE_ADOPT_FAILED, "SK-ZONE-008", LOG_ZONE, LOG_LEVEL_WARNING, "The zone set that the supervisor keeps failed its checks and was thrown away; the zones are loaded afresh.", "If it repeats, test the memory of the machine.") \
	X(ZONE_IMAGE_READ, "SK-ZONE-009", LOG_ZONE, LOG_LEVEL_INFO, "Zones were taken from an image file, since their master files have not changed.", "Nothing.") \
	X(ZONE_IMAGE_BAD, "SK-ZONE-010", LOG_ZONE, LOG_LEVEL_WARNING, "An image file is damaged or of another version; it was removed and the zones are loaded from their master files.", "Nothing after an upgrade. Otherwise check the disk.") \
	X(ZONE_IMAGE_WRITE_FAILED, "SK-ZONE-011", LOG_ZONE, LOG_LEVEL_WARNING, "An image file could not be written. Serving goes on; the next cold start has to read the master files.", "Make room, or give the slowpath's user the right to write to server.state.") \
	X(ZONE_REPACKED, "SK-ZONE-012", LOG_ZONE, LOG_LEVEL_INFO, "Segments with much garbage were written anew.", "Nothing.") \
	X(ZONE_MEMORY, "SK-ZONE-013", LOG_MEMORY, LOG_LEVEL_ERROR, "Memory ran out while zones were handled.", "Give the machine more memory, or lower limits.max-zone-bytes to find the zone.") \
	X(ZONE_HOSTS, "SK-ZONE-014", LOG_ZONE, LOG_LEVEL_WARNING, "A hosts file could not be read, or a line of it is no address followed by host names.", "Mend the line or the path in local.hosts, then `skua reload`.") \
	X(SLOWPATH_STARTED, "SK-SLOW-001", LOG_RUN, LOG_LEVEL_NOTICE, "The slowpath serves; the line says how many threads and zones.", "Nothing.") \
	X(SLOWPATH_STOPPED, "SK-SLOW-002", LOG_RUN, LOG_LEVEL_NOTICE, "The slowpath was asked to end and does so.", "Nothing.") \
	X(SLOWPATH_CONFIG, "SK-SLOW-003", LOG_RUN, LOG_LEVEL_ERROR, "The configuration that the supervisor handed over can't be used.", "Correct what the line says.") \
	X(SLOWPATH_LINK, "SK-SLOW-004", LOG_RUN, LOG_LEVEL_ERROR, "The link to the supervisor ended or broke its protocol; the slowpath ends.", "Look at the supervisor's lines.") \
	X(SLOWPATH_SYSTEM, "SK-SLOW-006", LOG_RUN, LOG_LEVEL_ERROR, "The system refused something that the slowpath needs to start.", "The line says what.") \
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
	X(XDP_SKB_MODE, "SK-XDP-011", LOG_XDP, LOG_LEVEL_WARNING, "XDP runs in generic mode, which gains little over sockets.", "Use a card whose driver has XDP, or leave the interface out of xdp.interfaces.") \
	X(XDP_SOCKET_READY, "SK-XDP-012", LOG_XDP, LOG_LEVEL_NOTICE, "An AF_XDP socket was bound to a queue, in the stated mode for the stated reason.", "Nothing. For zero-copy see the reason.") \
	X(XDP_SOCKET_FAILED, "SK-XDP-013", LOG_XDP, LOG_LEVEL_ERROR, "An AF_XDP socket could not be made; the interface is served by sockets.", "Follow the hint in the line.") \
	X(XDP_FALLBACK, "SK-XDP-014", LOG_XDP, LOG_LEVEL_WARNING, "Zero-copy was tried and refused; copy mode is used.", "Check the driver and kernel version; set xdp.mode: copy to silence this.") \
	X(XDP_BUSY_POLL, "SK-XDP-015", LOG_XDP, LOG_LEVEL_WARNING, "Preferred busy polling was asked for and refused.", "Kernel 5.11 or newer and CAP_NET_ADMIN at start are needed.") \
	X(XDP_CPU, "SK-XDP-016", LOG_XDP, LOG_LEVEL_WARNING, "A serving thread could not be pinned to its CPU.", "Correct xdp.cpus, or the CPU set that the service is started with.") \
	X(XDP_VLAN_OFFLOAD, "SK-XDP-017", LOG_XDP, LOG_LEVEL_WARNING, "The card strips VLAN tags before XDP sees them, so replies would leave untagged.", "If queries come tagged: ethtool -K INTERFACE rxvlan off txvlan off.") \
	X(XDP_SLOT_FAILED, "SK-XDP-018", LOG_XDP, LOG_LEVEL_ERROR, "A queue's XSKMAP slot could not be set; the kernel path goes on serving it.", "Kernel 6.0 or newer is needed; restart Skua if the interface was made anew.") \
	X(XDP_SLOT_RESTORED, "SK-XDP-019", LOG_XDP, LOG_LEVEL_NOTICE, "A queue that had been left to the kernel path, for its thread was late, is served by AF_XDP again.", "If it repeats, look for CPU starvation.") \
	X(XDP_LINK_DOWN, "SK-XDP-020", LOG_XDP, LOG_LEVEL_WARNING, "An interface lost its link.", "Check cable and switch.") \
	X(XDP_LINK_UP, "SK-XDP-021", LOG_XDP, LOG_LEVEL_NOTICE, "An interface has its link again.", "Nothing.") \
	X(XDP_FRAMES_MISSING, "SK-XDP-022", LOG_XDP, LOG_LEVEL_ERROR, "The driver did not give frames back that it had sent; the process is started afresh to bind its sockets anew.", "If it repeats without link changes, update driver and kernel, or set xdp.mode: copy.") \
	X(XDP_SERVING, "SK-XDP-023", LOG_XDP, LOG_LEVEL_NOTICE, "The fastpath serves: queues and CPUs are named.", "Nothing.") \
	X(XDP_ZONES, "SK-XDP-024", LOG_XDP, LOG_LEVEL_INFO, "A zone set became live in the fastpath.", "Nothing.") \
	X(XDP_ZONES_BAD, "SK-XDP-025", LOG_XDP, LOG_LEVEL_ERROR, "A segment or zone map was refused; the last good one goes on being served.", "This is a bug: send the line with `skua version`.") \
	X(XDP_LINK_ENDED, "SK-XDP-027", LOG_XDP, LOG_LEVEL_ERROR, "The supervisor is gone or broke the protocol; the fastpath ends.", "Look for the supervisor's own last lines.") \
	X(XDP_REPLY_ROUTE, "SK-XDP-028", LOG_XDP, LOG_LEVEL_WARNING, "xdp.reply: route is not available in this version; replies swap addresses.", "Set xdp.reply: swap.") \
	X(XDP_CONFIG, "SK-XDP-029", LOG_XDP, LOG_LEVEL_ERROR, "The fastpath could not read the configuration that it was given.", "Run `skua config check`.") \
	X(RESOLVE_FAILED, "SK-RES-001", LOG_NET, LOG_LEVEL_ERROR, "The resolver can't start; what is not ours is not resolved, zones are served.", "The line says why: memory, descriptors, or an upstream that the configuration describes wrongly.") \
	X(CACHE_LOADED, "SK-RES-002", LOG_NET, LOG_LEVEL_NOTICE, "The cache begins with what its file held.", "Nothing.") \
	X(CACHE_SAVED, "SK-RES-003", LOG_NET, LOG_LEVEL_NOTICE, "The cache was written to its file at the end.", "Nothing.") \
	X(CACHE_FILE, "SK-RES-004", LOG_NET, LOG_LEVEL_WARNING, "The cache's file can't be read or written, or is damaged; what could be read is used. The cache works without it.", "After a change of the forward section: nothing. Otherwise give the slowpath's user the right to write there, or check the disk.") \
	X(UPSTREAM_OUT, "SK-FWD-001", LOG_NET, LOG_LEVEL_WARNING, "An upstream server fails repeatedly and is left out; single questions find out when it works again.", "Check the server and the way to it: `skua upstream test`.") \
	X(UPSTREAM_BACK, "SK-FWD-002", LOG_NET, LOG_LEVEL_NOTICE, "An upstream server that had been left out works again.", "Nothing.") \
	X(UPSTREAM_TLS, "SK-FWD-003", LOG_NET, LOG_LEVEL_WARNING, "A TLS connection to an upstream server failed, or its certificate is not the one that the configuration asks for. It is not asked without TLS.", "Correct the name or pin behind the # of the upstream's address, or the server's certificate.") \
	X(UPSTREAM_NO_EDNS, "SK-FWD-004", LOG_NET, LOG_LEVEL_WARNING, "An upstream server does not understand EDNS. Zones with dnssec: true do not use it, the others ask it without EDNS.", "Use an upstream server that is newer than 1999.") \
	X(UPSTREAM_SELF, "SK-FWD-005", LOG_NET, LOG_LEVEL_ERROR, "An upstream server is this server itself: queries came back, or it is one of our own addresses. It is not asked.", "Correct the addresses in forward.")
