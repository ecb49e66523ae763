/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/skua/config_file.h"

#include <stdlib.h>

const char *config_file_path(const char *given, bool *is_default)
{
	const char *environment = getenv("SKUA_CONFIG");

	*is_default = !given && !(environment && *environment);
	return given ? given : *is_default ? CONFIG_FILE_DEFAULT : environment;
}
