/* SPDX-License-Identifier: Apache-2.0 */
#include "base/control_request.h"
#include "base/log.h"
#include "base/version.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static json_t *echo(void *user, const json_t *args, struct control_error *error)
{
	(void)error;
	return json_pack("{s:i, s:O}", "user", *(int *)user, "args", args);
}

static json_t *fail(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args;
	control_fail(error, "not-found", "no zone \"%s\"", "a\n\xff");
	return NULL;
}

static json_t *fail_silently(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args, (void)error;
	return NULL;
}

static json_t *huge(void *user, const json_t *args, struct control_error *error)
{
	(void)user, (void)args, (void)error;
	char *text = malloc(CONTROL_RESPONSE_MAX);
	memset(text, 'x', CONTROL_RESPONSE_MAX);
	json_t *result = json_stringn(text, CONTROL_RESPONSE_MAX);
	free(text);
	return result;
}

static const struct control_verb verbs[] = {
	{ "echo", echo, "gives back its arguments", false },
	{ "fail", fail, "fails", true },
	{ "fail silently", fail_silently, NULL, false },
	{ "huge", huge, "says too much", false },
	{ .name = NULL },
};

/* One line to its response, without the newline. */
static const char *respond(const char *line, size_t bytes)
{
	static char out[4096];
	struct control_request r;
	struct control_error error;
	char *response = NULL;
	size_t n = 0;
	int user = 5;

	if (control_request_parse(&r, verbs, line, bytes, &error))
		cr_assert_eq(control_request_run(&r, verbs, &user, &response, &n), ERR_OK);
	else
		cr_assert_eq(control_response(r.id, NULL, &error, &response, &n), ERR_OK);
	control_request_fini(&r);
	cr_assert_eq(response[n - 1], '\n');
	cr_assert_null(memchr(response, '\n', n - 1));
	snprintf(out, sizeof out, "%.*s", (int)(n - 1), response);
	free(response);
	return out;
}

#define ERROR(code, message) "\"ok\":false,\"error\":{\"code\":\"" code "\",\"message\":\"" message "\"}}"

Test(control_request, lines_and_their_answers)
{
	/* clang-format off */
	static const struct { const char *line, *answer; } cases[] = {
		{ "{\"verb\":\"echo\",\"args\":{\"a\":[1,null]},\"id\":7}", "{\"id\":7,\"ok\":true,\"result\":{\"user\":5,\"args\":{\"a\":[1,null]}}}" },
		{ "  { \"verb\" : \"echo\" }  \r", "{\"ok\":true,\"result\":{\"user\":5,\"args\":{}}}" },
		{ "{\"id\":\"x\",\"verb\":\"echo\"}", "{\"id\":\"x\",\"ok\":true,\"result\":{\"user\":5,\"args\":{}}}" },
		{ "{\"id\":null,\"verb\":\"echo\"}", "{\"id\":null,\"ok\":true,\"result\":{\"user\":5,\"args\":{}}}" },
		{ "{\"verb\":\"fail\",\"id\":1}", "{\"id\":1," ERROR("not-found", "no zone \\\"a\\\\x0a\\\\xff\\\"") },
		{ "{\"verb\":\"fail silently\"}", "{" ERROR("internal", "the verb failed and did not say why") },
		{ "{\"verb\":\"huge\",\"id\":2}", "{\"id\":2," ERROR("too-large", "the result is longer than 67108864 octets; ask for a part of it") },
		{ "{\"verb\":\"nothing\",\"id\":3}", "{\"id\":3," ERROR("unknown-verb", "there is no verb \\\"nothing\\\" here; `help` lists them") },
		{ "{\"verb\":\"Echo\"}", "{" ERROR("unknown-verb", "there is no verb \\\"Echo\\\" here; `help` lists them") },
		{ "[]", "{" ERROR("bad-request", "a request is an object: {\\\"verb\\\": \\\"help\\\"}") },
		{ "{}", "{" ERROR("bad-request", "\\\"verb\\\" must be there and be a string") },
		{ "{\"verb\":7,\"id\":4}", "{\"id\":4," ERROR("bad-request", "\\\"verb\\\" must be there and be a string") },
		{ "{\"verb\":\"echo\",\"args\":[]}", "{" ERROR("bad-request", "\\\"args\\\" must be an object") },
		{ "{\"verb\":\"echo\",\"id\":{}}", "{" ERROR("bad-request", "\\\"id\\\" must be a number or a string") },
		{ "{\"verb\":\"echo\",\"id\":1.5}", "{" ERROR("bad-request", "\\\"id\\\" must be a number or a string") },
		{ "{\"verb\":\"echo\",\"arg\":{},\"id\":5}", "{\"id\":5," ERROR("bad-request", "unknown member \\\"arg\\\"") },
		{ "{\"verb\":\"echo\",\"verb\":\"fail\"}", NULL },
		{ "", NULL }, { "{", NULL }, { "help", NULL }, { "{\"verb\":\"echo\"}{}", NULL }, { "{\"verb\":\"\xff\"}", NULL },
		{ "{\"verb\":\"echo\\u0000\"}", NULL }, { "null", NULL },
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *answer = respond(cases[i].line, strlen(cases[i].line));
		if (cases[i].answer)
			cr_expect_str_eq(answer, cases[i].answer, "%s gave %s", cases[i].line, answer);
		else
			cr_expect(strstr(answer, "{\"ok\":false,\"error\":{\"code\":\"bad-request\"") == answer, "%s gave %s",
				  cases[i].line, answer);
	}
	cr_expect(strstr(respond("{\"verb\":\"echo\"}\0", 16), "bad-request"), "a NUL is no blank");
}

Test(control_request, deep_nesting_is_refused_and_not_followed)
{
	size_t n = 500000;
	char *line = malloc(n);
	memset(line, '[', n);
	memcpy(line, "{\"verb\":\"echo\",\"args\":{\"a\":", 27);
	cr_expect(strstr(respond(line, n), "bad-request"));
	free(line);
}

Test(control_request, the_built_in_verbs)
{
	char want[256];
	snprintf(want, sizeof want, "{\"ok\":true,\"result\":{\"version\":\"%s\"}}", version_text());
	cr_expect_str_eq(respond("{\"verb\":\"version\"}", 18), want);
	const char *help = respond("{\"verb\":\"help\"}", 15);
	cr_expect(strstr(help, "{\"verb\":\"help\"") && strstr(help, "{\"verb\":\"log level\"") &&
			  strstr(help, "{\"verb\":\"echo\",\"help\":\"gives back its arguments\",\"slow\":false}") &&
			  strstr(help, "{\"verb\":\"fail\",\"help\":\"fails\",\"slow\":true}") &&
			  strstr(help, "{\"verb\":\"fail silently\",\"help\":\"\""),
		  "%s", help);
}

static const char *level(const char *args)
{
	char line[256];
	int n = snprintf(line, sizeof line, "{\"verb\":\"log level\",\"args\":%s}", args);
	return respond(line, (size_t)n);
}

Test(control_request, log_levels_are_listed_and_set)
{
	cr_assert_eq(dup2(open("/dev/null", O_WRONLY), 2), 2);
	cr_expect(strstr(level("{}"), "\"run\":\"info\"") && strstr(level("{}"), "\"memory\":\"info\""));
	cr_expect(strstr(level("{\"subsystem\":\"xdp\",\"level\":\"debug\"}"), "\"xdp\":\"debug\""));
	cr_expect_eq(log_get_level(LOG_XDP), LOG_LEVEL_DEBUG);
	cr_expect_eq(log_get_level(LOG_RUN), LOG_LEVEL_INFO);
	cr_expect(strstr(level("{\"level\":\"warning\"}"), "\"net\":\"warning\""));
	for (int i = 0; i < LOG_SUBSYSTEM_COUNT_; i++)
		cr_expect_eq(log_get_level((enum log_subsystem)i), LOG_LEVEL_WARNING);
	static const char *const wrong[] = { "{\"subsystem\":\"xdp\"}",
					     "{\"level\":\"loud\"}",
					     "{\"level\":1}",
					     "{\"subsystem\":\"x\",\"level\":\"debug\"}",
					     "{\"subsystem\":null,\"level\":\"debug\"}",
					     "{\"levels\":\"debug\"}" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		cr_expect(strstr(level(wrong[i]), "\"bad-args\""), "%s", wrong[i]);
	cr_expect_eq(log_get_level(LOG_XDP), LOG_LEVEL_WARNING, "a wrong request changes nothing");
}

Test(control_request, error_texts_are_bounded_and_printable)
{
	struct control_error e;
	char longer[2000];
	memset(longer, 'y', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	control_fail(&e, longer, "%s", longer);
	cr_expect_eq(strlen(e.code), sizeof e.code - 1);
	cr_expect_eq(strlen(e.message), sizeof e.message - 1);
	cr_expect_str_eq(e.message + sizeof e.message - 4, "...");
	control_fail(&e, "x", "%s", "tab\there");
	cr_expect_str_eq(e.message, "tab\\x09here");
}
