/* SPDX-License-Identifier: Apache-2.0 */
/* Prints one of the generated pages of docs/: a build tool, not installed. */
#include "base/log.h"
#include "config/config.h"

#include <stdio.h>

static const struct {
	const char *code, *explanation, *remedy;
	enum log_subsystem subsystem;
	enum log_level level;
} messages[M_COUNT_] = {
#define X(id, code, subsystem, level, explanation, remedy) [M_##id] = { code, explanation, remedy, subsystem, level },
	LOG_MESSAGES(X)
#undef X
};

static void print_subsystem(enum log_subsystem subsystem)
{
	char message_id[LOG_MESSAGE_ID_BYTES];
	unsigned count = 0;

	for (int i = 0; i < M_COUNT_; i++) {
		if (messages[i].subsystem != subsystem)
			continue;
		if (count++ == 0)
			printf("\n## %s\n\n| Code | Level | What it means | What to do | MESSAGE_ID |\n| - | - | - | - | - |\n",
			       log_subsystem_text(subsystem));
		log_message_id((enum log_id)i, message_id);
		printf("| %s | %s | %s | %s | %s |\n", messages[i].code, log_level_text(messages[i].level),
		       messages[i].explanation, messages[i].remedy, message_id);
	}
}

static void print_messages(void)
{
	fputs("<!-- Made by `make docs` from fastpath/base/log_messages.h: change it there. -->\n"
	      "# Log messages\n\n"
	      "Every line of every process carries one of these codes. They are never reused, so they can be searched for and "
	      "alerted on. In\n"
	      "journald a line has the fields SKUA_CODE, SKUA_SUBSYSTEM, SKUA_PROCESS and the MESSAGE_ID given here.\n\n",
	      stdout);
	printf("Each code is limited on its own: %d lines at once, then %d a minute; the next line says how many were left out. "
	       "Levels are set\n"
	       "by `log:` in skua.yaml and, until the next start, by `skua log level`.\n",
	       LOG_BURST, LOG_PER_MINUTE);
	for (int s = 0; s < LOG_SUBSYSTEM_COUNT_; s++)
		print_subsystem((enum log_subsystem)s);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "config") == 0) {
		config_print_reference(stdout);
	} else if (argc == 2 && strcmp(argv[1], "messages") == 0) {
		print_messages();
	} else {
		fprintf(stderr, "usage: docs config|messages\n");
		return 2;
	}
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
