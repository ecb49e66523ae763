/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/cpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

bool cpus_parse(cpu_set_t *out, const char *text)
{
	cpu_set_t set;
	char *end;

	CPU_ZERO(&set);
	while (*text && !isspace((unsigned char)*text)) {
		unsigned long first, last;

		if (!isdigit((unsigned char)*text))
			return false;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return false;
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first || last >= CPU_SETSIZE || (*end && *end != ',' && !isspace((unsigned char)*end)))
			return false;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			CPU_SET(cpu, &set);
		text = *end == ',' ? end + 1 : end;
	}
	*out = set;
	return true;
}

bool cpus_of_node(cpu_set_t *out, int node)
{
	char path[64], text[1024] = "";
	bool ok;
	FILE *f;

	if (node < 0)
		return false;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(text, sizeof(text), f) && cpus_parse(out, text);
	fclose(f);
	return ok;
}

void cpus_choose(struct cpus *out, const cpu_set_t *usable, const cpu_set_t *node)
{
	uint32_t usable_count = (uint32_t)CPU_COUNT(usable), most = usable_count <= 2 ? usable_count : usable_count / 2;
	cpu_set_t from = *usable;

	if (node)
		CPU_AND(&from, usable, node);
	if (CPU_COUNT(&from) == 0)
		from = *usable;
	out->count = 0;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && out->count < most; cpu--)
		if (CPU_ISSET((size_t)cpu, &from))
			out->cpu[out->count++] = cpu;
}
