/* SPDX-License-Identifier: Apache-2.0 */
/* reload_faults.h: collects the errors of one zone's load as lines of text, the first few whole and all of them counted. */
#pragma once
#include "base/base.h"
#include "slowpath/zone/zone_load.h"

struct reload_faults {
	char *lines;
	size_t bytes;
	uint32_t line_count, errors;
};

/* A zone_load_report; user is a struct reload_faults, all zero at first. */
void reload_faults_take(void *user, enum zone_finding_level level, struct master_place place, const char *text);
void reload_faults_fini(struct reload_faults *f);
