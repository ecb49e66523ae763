/* SPDX-License-Identifier: Apache-2.0 */
/* log.h: one log for all processes: to journald when stderr is a journal stream (JOURNAL_STREAM), to stderr otherwise.
 *
 * Every line carries a stable id (base/log_messages.h, explained in docs/messages.md), its subsystem, level and process.
 * Each id is rate-limited on its own (LOG_BURST lines, then LOG_PER_MINUTE; what was left out is said with the next line).
 * Levels per subsystem change at run time. Never called from hot code. Thread-safe; no allocation, no lock; keeps errno.
 * A line is one write() of bounded length, and left out (and counted as above) when stderr can't take it at once. Whatever the arguments hold, it stays one line: control characters and octets that
 * are not UTF-8 are shown as \xNN (base/printable.h). */
#pragma once
#include "base/base.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG, LOG_LEVEL_COUNT_ };
enum log_subsystem { LOG_RUN, LOG_CONFIG, LOG_CONTROL, LOG_ZONE, LOG_XDP, LOG_NET, LOG_MEMORY, LOG_SUBSYSTEM_COUNT_ };

#define LOG_BURST 20
#define LOG_PER_MINUTE 20
#define LOG_LEVEL_DEFAULT LOG_LEVEL_INFO /* of every subsystem */
#define LOG_MESSAGE_ID_BYTES 33		 /* journald's MESSAGE_ID: 32 hex digits and a NUL */

#include "base/log_messages.h" /* LOG_MESSAGES(X): X(ID, "SK-ZONE-001", subsystem, level, "explanation", "what to do") */
enum log_id {
#define X(id, code, subsystem, level, explanation, remedy) M_##id,
	LOG_MESSAGES(X)
#undef X
		M_COUNT_
};

/* process: "run", "fastpath", "slowpath", "skua". Call once, before threads. */
void log_init(const char *process);
PRINTF(2, 3) COLD void log_write(enum log_id id, const char *format, ...);
/* "SK-ZONE-001" */
const char *log_code(enum log_id id);
/* The id's journald MESSAGE_ID, derived from its code. */
void log_message_id(enum log_id id, char out[static LOG_MESSAGE_ID_BYTES]);
void log_set_level(enum log_subsystem subsystem, enum log_level level);
enum log_level log_get_level(enum log_subsystem subsystem);
bool log_subsystem_from_text(const char *text, enum log_subsystem *out);
bool log_level_from_text(const char *text, enum log_level *out);
const char *log_subsystem_text(enum log_subsystem s);
const char *log_level_text(enum log_level l);
