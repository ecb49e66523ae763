/* SPDX-License-Identifier: Apache-2.0 */
/* log_messages.h: every message id. docs/messages.md is made from this table (make docs). Ids are never reused.
 * X(ID, code, subsystem, level, explanation, what to do) */
#pragma once

#define LOG_MESSAGES(X) \
	X(RUN_STARTED, "SK-RUN-001", LOG_RUN, LOG_LEVEL_NOTICE, "The supervisor has started and names its version and configuration file.", "Nothing.") \
	X(RUN_STOPPED, "SK-RUN-002", LOG_RUN, LOG_LEVEL_NOTICE, "The supervisor has stopped its parts and exits.", "Nothing.") \
	X(CHILD_STARTED, "SK-RUN-003", LOG_RUN, LOG_LEVEL_INFO, "A part (fastpath or slowpath) was started.", "Nothing.") \
	X(CHILD_EXITED, "SK-RUN-004", LOG_RUN, LOG_LEVEL_ERROR, "A part ended without being asked to; it is started again after the stated back-off.", "Look at the lines before it; if it repeats, send them with `skua version`.") \
	X(CHILD_HUNG, "SK-RUN-005", LOG_RUN, LOG_LEVEL_ERROR, "A part stopped its heartbeat and is killed and started again.", "Look for CPU starvation (steal time, other load on its cores).")
