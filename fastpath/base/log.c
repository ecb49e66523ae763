/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/clock.h"
#include "base/printable.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION /* the id says where it came from; paths of the build machine say nothing */
#include <systemd/sd-journal.h>
#include <unistd.h>

#define LOG_LINE_BYTES 2048 /* one line with its head and its newline */
#define LOG_HEAD_BYTES 128  /* time, process, level, code */
#define LOG_TAIL_BYTES 64   /* what was left out */
#define LOG_PROCESS_BYTES 16
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static const struct {
	const char *code;
	enum log_subsystem subsystem;
	enum log_level level;
} messages[M_COUNT_] = {
#define X(id, code, subsystem, level, explanation, remedy) [M_##id] = { code, subsystem, level },
	LOG_MESSAGES(X)
#undef X
};
static const char *const level_texts[LOG_LEVEL_COUNT_] = { "error", "warning", "notice", "info", "debug" };
static const int syslog_priority[LOG_LEVEL_COUNT_] = { 3, 4, 5, 6, 7 };
/* clang-format off */
static const char *const subsystem_texts[LOG_SUBSYSTEM_COUNT_] = {
	[LOG_RUN] = "run", [LOG_CONFIG] = "config", [LOG_CONTROL] = "control", [LOG_ZONE] = "zone",
	[LOG_XDP] = "xdp", [LOG_NET] = "net",       [LOG_MEMORY] = "memory",
};
/* clang-format on */

static char process_name[LOG_PROCESS_BYTES] = "skua";
static bool is_journal;
/* Any thread writes, any reads; nothing else depends on the order. */
static _Atomic int level_above_default[LOG_SUBSYSTEM_COUNT_]; /* so that zero, before anything was set, is the default */
static struct {
	_Atomic uint64_t due_ns; /* when the next line would be due if lines came at exactly LOG_PER_MINUTE */
	_Atomic uint64_t left_out;
} limits[M_COUNT_];

/* systemd sets JOURNAL_STREAM to the device and inode of the stream that it made stderr (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;
	char rest;

	return stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &rest) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	       st.st_dev == device && st.st_ino == inode && access(JOURNAL_SOCKET, W_OK) == 0;
}

void log_init(const char *process)
{
	snprintf(process_name, sizeof process_name, "%s", process);
	is_journal = stderr_is_journal();
}

const char *log_code(enum log_id id) { return messages[id].code; }

void log_message_id(enum log_id id, char out[static LOG_MESSAGE_ID_BYTES])
{
	unsigned __int128 hash = (unsigned __int128)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du; /* FNV-1a, 128 bits */
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;

	for (const char *p = messages[id].code; *p; p++)
		hash = (hash ^ (uint8_t)*p) * prime;
	snprintf(out, LOG_MESSAGE_ID_BYTES, "%016llx%016llx", (unsigned long long)(hash >> 64), (unsigned long long)hash);
}

/* Whether a line of this id may go out now; then *left_out is how many were left out since the last one. Lock-free, so that
 * a child between fork and exec can log too. */
static bool admit(enum log_id id, uint64_t now_ns, uint64_t *left_out)
{
	const uint64_t interval_ns = 60000000000u / LOG_PER_MINUTE, slack_ns = interval_ns * (LOG_BURST - 1);
	uint64_t due = atomic_load_explicit(&limits[id].due_ns, memory_order_relaxed), next;

	do {
		if (due > now_ns + slack_ns) {
			atomic_fetch_add_explicit(&limits[id].left_out, 1, memory_order_relaxed);
			return false;
		}
		next = MAX(due, now_ns) + interval_ns;
	} while (!atomic_compare_exchange_weak_explicit(&limits[id].due_ns, &due, next, memory_order_relaxed,
							memory_order_relaxed));
	*left_out = atomic_exchange_explicit(&limits[id].left_out, 0, memory_order_relaxed);
	return true;
}

/* RFC 3339 in UTC. gmtime_r is not used because it may open /etc/localtime, which a sealed-off process can't. The calendar
 * is counted in years from March, so that the leap day comes last. */
static void format_time(char *out, size_t out_bytes, struct timespec t)
{
	int64_t days = t.tv_sec / 86400, seconds = t.tv_sec % 86400;
	int64_t since = days + 719468, era = since / 146097, of_era = since % 146097; /* days since 0000-03-01; 400 years */
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t march_month = (5 * of_year + 2) / 153, day = of_year - (153 * march_month + 2) / 5 + 1;
	int64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
	int64_t year = year_of_era + era * 400 + (month <= 2);

	snprintf(out, out_bytes, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year, (int)month, (int)day, (int)(seconds / 3600),
		 (int)(seconds / 60 % 60), (int)(seconds % 60), (int)(t.tv_nsec / 1000000));
}

static bool send_to_journal(enum log_id id, const char *text)
{
	char message[LOG_LINE_BYTES], field[6][64], message_id[LOG_MESSAGE_ID_BYTES];
	struct iovec iov[1 + ARRAY_LEN(field)];

	log_message_id(id, message_id);
	snprintf(field[0], sizeof field[0], "MESSAGE_ID=%s", message_id);
	snprintf(field[1], sizeof field[1], "PRIORITY=%d", syslog_priority[messages[id].level]);
	snprintf(field[2], sizeof field[2], "SYSLOG_IDENTIFIER=skua-%s", process_name);
	snprintf(field[3], sizeof field[3], "SKUA_CODE=%s", messages[id].code);
	snprintf(field[4], sizeof field[4], "SKUA_SUBSYSTEM=%s", subsystem_texts[messages[id].subsystem]);
	snprintf(field[5], sizeof field[5], "SKUA_PROCESS=%s", process_name);
	iov[0] = (struct iovec){ message, (size_t)snprintf(message, sizeof message, "MESSAGE=%s", text) };
	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		iov[1 + i] = (struct iovec){ field[i], strlen(field[i]) };
	return sd_journal_sendv(iov, (int)ARRAY_LEN(iov)) == 0;
}

/* False: whoever reads stderr does not read it now. A line is not worth waiting for: this may be the thread that watches the others. */
static bool send_to_stderr(enum log_id id, const char *text)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[LOG_LINE_BYTES], time_text[40];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	format_time(time_text, sizeof time_text, now);
	int bytes = snprintf(line, sizeof line, "%s %s[%d] %s %s %s\n", time_text, process_name, (int)getpid(),
			     level_texts[messages[id].level], messages[id].code, text);
	ASSERT(bytes > 0 && (size_t)bytes < sizeof line);
	/* A pipe counts as writable when PIPE_BUF octets fit, which is more than a line. */
	if (poll(&p, 1, 0) == 0)
		return false;
	ssize_t written;
	do
		written = write(STDERR_FILENO, line, (size_t)bytes); /* one call a line: lines of several processes don't mix */
	while (written < 0 && errno == EINTR);
	return true;
}

void log_write(enum log_id id, const char *format, ...)
{
	char raw[LOG_LINE_BYTES], text[LOG_LINE_BYTES - LOG_HEAD_BYTES];
	int saved_errno = errno;
	uint64_t left_out;
	va_list args;

	ASSERT((unsigned)id < M_COUNT_);
	if (messages[id].level > log_get_level(messages[id].subsystem) || !admit(id, clock_mono_ns(), &left_out))
		return;
	va_start(args, format);
	int bytes = vsnprintf(raw, sizeof raw, format, args);
	va_end(args);
	if (bytes < 0)
		bytes = snprintf(raw, sizeof raw, "(the text could not be formatted)");
	size_t used = printable_copy(text, sizeof text - LOG_TAIL_BYTES, raw, MIN((size_t)bytes, sizeof raw - 1));
	if (left_out > 0)
		snprintf(text + used, LOG_TAIL_BYTES, " (%llu more of this kind left out)", (unsigned long long)left_out);
	if ((!is_journal || !send_to_journal(id, text)) && !send_to_stderr(id, text))
		atomic_fetch_add_explicit(&limits[id].left_out, left_out + 1, memory_order_relaxed);
	errno = saved_errno;
}

void log_set_level(enum log_subsystem subsystem, enum log_level level)
{
	ASSERT((unsigned)subsystem < LOG_SUBSYSTEM_COUNT_ && (unsigned)level < LOG_LEVEL_COUNT_);
	atomic_store_explicit(&level_above_default[subsystem], (int)level - (int)LOG_LEVEL_DEFAULT, memory_order_relaxed);
}

enum log_level log_get_level(enum log_subsystem subsystem)
{
	ASSERT((unsigned)subsystem < LOG_SUBSYSTEM_COUNT_);
	return (enum log_level)(atomic_load_explicit(&level_above_default[subsystem], memory_order_relaxed) +
				(int)LOG_LEVEL_DEFAULT);
}

bool log_subsystem_from_text(const char *text, enum log_subsystem *out)
{
	for (size_t i = 0; i < LOG_SUBSYSTEM_COUNT_; i++) {
		if (strcasecmp(text, subsystem_texts[i]) == 0) {
			*out = (enum log_subsystem)i;
			return true;
		}
	}
	return false;
}

bool log_level_from_text(const char *text, enum log_level *out)
{
	for (size_t i = 0; i < LOG_LEVEL_COUNT_; i++) {
		if (strcasecmp(text, level_texts[i]) == 0) {
			*out = (enum log_level)i;
			return true;
		}
	}
	return false;
}

const char *log_subsystem_text(enum log_subsystem s)
{
	return (unsigned)s < LOG_SUBSYSTEM_COUNT_ ? subsystem_texts[s] : "unknown";
}

const char *log_level_text(enum log_level l) { return (unsigned)l < LOG_LEVEL_COUNT_ ? level_texts[l] : "unknown"; }
