/* SPDX-License-Identifier: Apache-2.0 */
/* glance.h: the settings of a configuration without reading its zones, for commands that only want to know where a server runs: 200,000
 * zones take a second to read. Where the zones are is told by the look of lines, so this is a guess, right for every file that is laid
 * out as usual; when it finds errors, the whole file is loaded. Whoever serves loads the whole file. */
#pragma once
#include "config/config.h"

/* As config_load; *out may lack zones, and errors in them may go unnoticed. */
MUST_USE enum err glance_load(struct config **out, const char *path, const char *text, size_t text_bytes, config_report *report,
			      void *user);
/* The text without the lines that look like its zones; rest: text_bytes long. How many octets. */
size_t glance_cut(char *rest, const char *text, size_t text_bytes);
