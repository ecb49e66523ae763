/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/cpus.h"

#include <criterion/criterion.h>
#include <stdio.h>

static cpu_set_t set_of(const char *text)
{
	cpu_set_t set;

	cr_assert(cpus_parse(&set, text), "%s", text);
	return set;
}

Test(cpus, choice)
{
	static const struct {
		const char *name, *usable, *node, *want;
	} cases[] = {
		{ "one CPU is shared", "0", NULL, "0" },
		{ "two CPUs are shared", "0-1", NULL, "1 0" },
		{ "half of four, from the last one", "0-3", NULL, "3 2" },
		{ "half of seven, rounded down", "0-6", NULL, "6 5 4" },
		{ "three CPUs: one", "0-2", NULL, "2" },
		{ "those on the card's node", "0-7", "0-3", "3 2 1 0" },
		{ "never more than half of all", "0-7", "0-6", "6 5 4 3" },
		{ "a small node", "0-7", "2-3", "3 2" },
		{ "a node of which nothing is usable", "4-7", "0-3", "7 6" },
		{ "gaps", "1,3,5,7", "0-5", "5 3" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cpu_set_t usable = set_of(cases[i].usable), node;
		char got[256] = "";
		struct cpus cpus;
		size_t at = 0;

		if (cases[i].node)
			node = set_of(cases[i].node);
		cpus_choose(&cpus, &usable, cases[i].node ? &node : NULL);
		for (uint32_t n = 0; n < cpus.count; n++)
			at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%d", n ? " " : "", cpus.cpu[n]);
		cr_expect_str_eq(got, cases[i].want, "%s: %s", cases[i].name, got);
	}
}

Test(cpus, lists_as_the_kernel_writes_them)
{
	static const struct {
		const char *text;
		int count; /* -1: refused */
	} cases[] = {
		{ "0", 1 },    { "0-3\n", 4 },	 { "0-3,8,10-11\n", 7 }, { "", 0 },
		{ "\n", 0 },   { "1023", 1 },	 { "1024", -1 },	 { "3-1", -1 },
		{ "a", -1 },   { "1-", -1 },	 { "-1", -1 },		 { "1,,2", -1 },
		{ "1;2", -1 }, { "0-1024", -1 }, { "1-a", -1 },		 { "99999999999999999999", -1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cpu_set_t set;
		bool ok = cpus_parse(&set, cases[i].text);

		cr_expect_eq(ok, cases[i].count >= 0, "\"%s\"", cases[i].text);
		if (ok)
			cr_expect_eq(CPU_COUNT(&set), cases[i].count, "\"%s\"", cases[i].text);
	}
}

Test(cpus, an_unknown_node_is_none)
{
	cpu_set_t set;

	cr_expect_not(cpus_of_node(&set, -1));
	cr_expect_not(cpus_of_node(&set, 9999));
}
