/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

/* The journal is replaced by a recorder: the fields of the last line. */
static char journal_text[8][4096];
static int journal_fields, journal_lines;
static bool journal_fails;
static int journal_record(const struct iovec *iov, int n);
#undef sd_journal_sendv
#define sd_journal_sendv journal_record
#define access(path, mode) (strcmp(path, JOURNAL_SOCKET)) /* it is there */
#include "../../../../fastpath/base/log.c"
#undef access

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <sys/wait.h>

static int journal_record(const struct iovec *iov, int n)
{
	journal_lines++;
	journal_fields = n;
	for (int i = 0; i < n && i < 8; i++)
		snprintf(journal_text[i], sizeof journal_text[i], "%.*s", (int)iov[i].iov_len, (const char *)iov[i].iov_base);
	return journal_fails ? -1 : 0;
}

static int log_file = -1;
static char text[1 << 20];

/* Sends stderr to a file that read_log reads; ids and limits are those of a fresh process, since each test is one. */
static void catch_stderr(void)
{
	char path[] = "/tmp/config-log-test-XXXXXX";
	log_file = mkstemp(path);
	cr_assert_geq(log_file, 0);
	unlink(path);
	cr_assert_eq(dup2(log_file, 2), 2);
	unsetenv("JOURNAL_STREAM");
	log_init("fastpath");
}

static const char *read_log(void)
{
	ssize_t n = pread(log_file, text, sizeof text - 1, 0);
	cr_assert_geq(n, 0);
	text[n] = '\0';
	return text;
}

static unsigned count_lines(const char *t)
{
	unsigned n = 0;
	for (; *t; t++)
		n += *t == '\n';
	return n;
}

static bool matches(const char *t, const char *pattern)
{
	regex_t r;
	cr_assert_eq(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
	bool ok = regexec(&r, t, 0, NULL, 0) == 0;
	regfree(&r);
	return ok;
}

Test(log, a_line_has_time_process_level_code_and_text)
{
	catch_stderr();
	errno = 42;
	log_write(M_RUN_STARTED, "version %s on %d cores", "1.0", 2);
	cr_expect_eq(errno, 42, "errno is kept");
	char want[256];
	snprintf(want, sizeof want,
		 "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z fastpath\\[%d\\] notice "
		 "SK-RUN-001 version 1\\.0 on 2 cores\n$",
		 (int)getpid());
	cr_expect(matches(read_log(), want), "%s", text);
}

Test(log, a_name_can_not_forge_a_line)
{
	catch_stderr();
	log_write(M_RUN_STARTED, "zone %s", "a\n2026-11-30T15:00:00.123Z run[1] error SK-RUN-005 forged\r\x1b[1A");
	cr_expect_eq(count_lines(read_log()), 1);
	cr_expect(strstr(text, "zone a\\x0a2026") && strstr(text, "forged\\x0d\\x1b[1A\n"), "%s", text);
}

Test(log, a_long_text_is_cut_and_stays_one_line)
{
	char *longer = malloc(100001);
	memset(longer, 'x', 100000);
	longer[100000] = '\0';
	catch_stderr();
	log_write(M_RUN_STARTED, "%s", longer);
	size_t n = strlen(read_log());
	cr_expect(n > 1024 && n <= LOG_LINE_BYTES, "%zu", n);
	cr_expect(strcmp(text + n - 4, "...\n") == 0);
	memset(longer, '\n', 100000);
	log_write(M_RUN_STARTED, "%s", longer);
	cr_expect_eq(count_lines(read_log()), 2);
	free(longer);
}

Test(log, each_id_is_limited_on_its_own_and_says_what_was_left_out)
{
	uint64_t left_out = 99, now = 1000000000000;
	for (int i = 0; i < LOG_BURST; i++)
		cr_expect(admit(M_RUN_STARTED, now, &left_out) && left_out == 0, "line %d of the burst", i);
	for (int i = 0; i < 500; i++)
		cr_expect(!admit(M_RUN_STARTED, now, &left_out));
	cr_expect(admit(M_RUN_STOPPED, now, &left_out) && left_out == 0, "another id is not concerned");
	const uint64_t interval = 60000000000u / LOG_PER_MINUTE;
	cr_expect(!admit(M_RUN_STARTED, now + interval - 1, &left_out), "not yet");
	cr_expect(admit(M_RUN_STARTED, now + interval, &left_out));
	cr_expect_eq(left_out, 501);
	cr_expect(!admit(M_RUN_STARTED, now + interval, &left_out), "one for each interval");
	unsigned in_an_hour = 0;
	for (uint64_t t = now + interval + 1000; t < now + 3600000000000u; t += 50000000)
		in_an_hour += admit(M_RUN_STARTED, t, &left_out);
	cr_expect(in_an_hour > 59 * LOG_PER_MINUTE && in_an_hour <= 60 * LOG_PER_MINUTE, "%u", in_an_hour);
	unsigned burst = 0;
	for (int i = 0; i < 100; i++)
		burst += admit(M_RUN_STARTED, now + 7200000000000u, &left_out);
	cr_expect_eq(burst, LOG_BURST, "silence earns a burst again, not more");
}

Test(log, what_was_left_out_is_in_the_next_line)
{
	catch_stderr();
	for (int i = 0; i < LOG_BURST + 7; i++)
		log_write(M_RUN_STARTED, "line %d", i);
	cr_expect_eq(count_lines(read_log()), LOG_BURST);
	atomic_store(&limits[M_RUN_STARTED].due_ns, 0);
	log_write(M_RUN_STARTED, "after");
	cr_expect(strstr(read_log(), "SK-RUN-001 after (7 more of this kind left out)\n"), "%s", text);
}

Test(log, levels_are_per_subsystem_and_change_at_once)
{
	catch_stderr();
	cr_expect_eq(log_get_level(LOG_RUN), LOG_LEVEL_DEFAULT);
	log_set_level(LOG_RUN, LOG_LEVEL_ERROR);
	cr_expect_eq(log_get_level(LOG_RUN), LOG_LEVEL_ERROR);
	cr_expect_eq(log_get_level(LOG_CONTROL), LOG_LEVEL_DEFAULT);
	log_write(M_RUN_STARTED, "a notice");
	cr_expect_eq(count_lines(read_log()), 0);
	log_write(M_CHILD_HUNG, "an error");
	log_write(M_LOG_LEVEL_SET, "a notice of another subsystem");
	cr_expect_eq(count_lines(read_log()), 2);
	log_set_level(LOG_RUN, LOG_LEVEL_DEBUG);
	log_write(M_RUN_STARTED, "a notice");
	cr_expect_eq(count_lines(read_log()), 3);
}

Test(log, words_and_their_values)
{
	enum log_subsystem s = LOG_NET;
	enum log_level l = LOG_LEVEL_INFO;
	for (int i = 0; i < LOG_SUBSYSTEM_COUNT_; i++)
		cr_expect(log_subsystem_from_text(log_subsystem_text((enum log_subsystem)i), &s) && (int)s == i);
	for (int i = 0; i < LOG_LEVEL_COUNT_; i++)
		cr_expect(log_level_from_text(log_level_text((enum log_level)i), &l) && (int)l == i);
	s = LOG_NET;
	cr_expect(!log_subsystem_from_text("", &s) && !log_subsystem_from_text("xd", &s) &&
		  !log_subsystem_from_text("xdpp", &s) && s == LOG_NET);
	cr_expect(log_subsystem_from_text("XDP", &s) && s == LOG_XDP);
	cr_expect(!log_level_from_text("warn", &l) && !log_level_from_text("", &l));
	cr_expect_str_eq(log_subsystem_text(LOG_SUBSYSTEM_COUNT_), "unknown");
	cr_expect_str_eq(log_level_text(LOG_LEVEL_COUNT_), "unknown");
}

Test(log, codes_and_message_ids_are_unique_and_well_formed)
{
	char id[M_COUNT_][LOG_MESSAGE_ID_BYTES];
	for (int i = 0; i < M_COUNT_; i++) {
		cr_expect(matches(log_code((enum log_id)i), "^SK-[A-Z]+-[0-9]{3}$"), "%s", log_code((enum log_id)i));
		log_message_id((enum log_id)i, id[i]);
		cr_expect(matches(id[i], "^[0-9a-f]{32}$"), "%s", id[i]);
		for (int k = 0; k < i; k++) {
			cr_expect_str_neq(log_code((enum log_id)i), log_code((enum log_id)k));
			cr_expect_str_neq(id[i], id[k]);
		}
	}
	cr_expect_str_eq(id[M_LOG_LEVEL_SET], "ed23072b3f146a5c19bb5e0174dce549", "alerts depend on it: it may never change");
}

Test(log, times_of_all_years)
{
	static const struct {
		int64_t seconds;
		long ns;
		const char *out;
	} cases[] = {
		{ 0, 0, "1970-01-01T00:00:00.000Z" },
		{ 951782399, 999999999, "2000-02-28T23:59:59.999Z" },
		{ 951782400, 1000000, "2000-02-29T00:00:00.001Z" },
		{ 951868800, 0, "2000-03-01T00:00:00.000Z" },
		{ 1796050800, 123000000, "2026-11-30T15:00:00.123Z" },
		{ 4107542400, 0, "2100-03-01T00:00:00.000Z" },
		{ 4107542399, 0, "2100-02-28T23:59:59.000Z" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[40];
		format_time(out, sizeof out, (struct timespec){ cases[i].seconds, cases[i].ns });
		cr_expect_str_eq(out, cases[i].out, "%s", out);
	}
	for (int64_t t = 0; t < 8000000000; t += 86399 * 7 + 1) {
		char out[40], want[40];
		time_t seconds = t;
		struct tm tm;
		format_time(out, sizeof out, (struct timespec){ seconds, 0 });
		strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&seconds, &tm));
		cr_assert_str_eq(out, want);
	}
}

Test(log, the_journal_gets_fields_when_stderr_is_its_stream)
{
	struct stat st;
	char stream[64];
	catch_stderr();
	fstat(2, &st);
	snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init("slowpath");
	log_write(M_CHILD_HUNG, "text\nMESSAGE_ID=forged");
	cr_assert_eq(journal_lines, 1);
	cr_expect_eq(count_lines(read_log()), 0, "not on stderr too");
	char message_id[64] = "MESSAGE_ID=";
	log_message_id(M_CHILD_HUNG, message_id + 11);
	const char *want[] = { "MESSAGE=text\\x0aMESSAGE_ID=forged",
			       message_id,
			       "PRIORITY=3",
			       "SYSLOG_IDENTIFIER=skua-slowpath",
			       "SKUA_CODE=SK-RUN-005",
			       "SKUA_SUBSYSTEM=run",
			       "SKUA_PROCESS=slowpath" };
	cr_assert_eq(journal_fields, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		cr_expect_str_eq(journal_text[i], want[i]);
	journal_fails = true;
	log_write(M_CHILD_HUNG, "second");
	cr_expect(strstr(read_log(), "SK-RUN-005 second\n"), "what the journal does not take goes to stderr");
}

Test(log, another_stream_is_not_the_journal)
{
	static const char *const streams[] = { "", "1", "1:2", "x:y", "8:1:3", ":" };
	catch_stderr();
	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		setenv("JOURNAL_STREAM", streams[i], 1);
		log_init("run");
		log_write(M_RUN_STARTED, "line");
	}
	cr_expect_eq(journal_lines, 0);
	cr_expect_eq(count_lines(read_log()), ARRAY_LEN(streams));
}

static void *write_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000; i++) {
		log_write(M_RUN_STARTED, "line of a thread %s", "abcdefghijklmnopqrstuvwxyz");
		log_set_level(LOG_NET, (enum log_level)(i % LOG_LEVEL_COUNT_));
	}
	return NULL;
}

Test(log, threads_write_whole_lines_and_lose_no_count)
{
	pthread_t thread[4];
	catch_stderr();
	fcntl(2, F_SETFL, O_APPEND);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, write_many, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	unsigned lines = count_lines(read_log());
	cr_expect_eq(lines + atomic_load(&limits[M_RUN_STARTED].left_out), 8000);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		cr_expect(matches(line, "^2[^ ]+ fastpath\\[[0-9]+\\] notice SK-RUN-001 line of a thread [a-z]{26}$"), "%s",
			  line);
}

Test(log, a_reader_that_does_not_read_is_not_waited_for, .timeout = 10)
{
	int ends[2];
	static char junk[1 << 16];

	cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
	while (write(ends[1], junk, sizeof junk) > 0)
		;
	cr_assert_eq(fcntl(ends[1], F_SETFL, 0), 0, "blocking, as a stderr is");
	cr_assert_eq(dup2(ends[1], 2), 2);
	unsetenv("JOURNAL_STREAM");
	log_init("run");
	log_write(M_RUN_STARTED, "one");
	log_write(M_RUN_STARTED, "two");
	while (read(ends[0], junk, sizeof junk) > 0)
		;
	log_write(M_RUN_STARTED, "three");
	ssize_t bytes = read(ends[0], text, sizeof text - 1);
	cr_assert_gt(bytes, 0);
	text[bytes] = '\0';
	cr_expect(matches(text, "SK-RUN-001 three \\(2 more of this kind left out\\)\n$"), "%s", text);
}
