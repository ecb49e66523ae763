/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <criterion/criterion.h>
#include <stdio.h>

Test(printable, shows_text_and_escapes_what_could_harm)
{
	static const struct {
		const char *what, *in, *out;
	} cases[] = {
		{ "plain text stays", "example.com. 3600 IN A", "example.com. 3600 IN A" },
		{ "nothing stays nothing", "", "" },
		{ "backslashes stay, master-file escapes are readable", "a\\046b\\.c", "a\\046b\\.c" },
		{ "a newline can't end the line", "a\nSK-RUN-001 forged", "a\\x0aSK-RUN-001 forged" },
		{ "carriage return, tab, bell, escape, DEL", "\r\t\a\x1b[2J\x7f", "\\x0d\\x09\\x07\\x1b[2J\\x7f" },
		{ "UTF-8 of two, three and four octets stays", "é €\xf0\x9f\x98\x80", "é €\xf0\x9f\x98\x80" },
		{ "C1 controls are controls",
		  "\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b31m" },
		{ "line separator", "\xe2\x80\xa8", "\\xe2\\x80\\xa8" },
		{ "right-to-left override",
		  "\xe2\x80\xae"
		  "txt",
		  "\\xe2\\x80\\xaetxt" },
		{ "isolates", "\xe2\x81\xa6", "\\xe2\\x81\\xa6" },
		{ "a lone continuation", "a\x80z", "a\\x80z" },
		{ "a cut character at the end", "a\xe2\x82", "a\\xe2\\x82" },
		{ "overlong slash", "\xc0\xaf", "\\xc0\\xaf" },
		{ "overlong of three octets", "\xe0\x80\xaf", "\\xe0\\x80\\xaf" },
		{ "a surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "beyond U+10FFFF", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
		{ "0xff", "\xff", "\\xff" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[128];
		size_t n = printable_copy(out, sizeof out, cases[i].in, strlen(cases[i].in));
		cr_expect_str_eq(out, cases[i].out, "%s: %s", cases[i].what, out);
		cr_expect_eq(n, strlen(out), "%s", cases[i].what);
	}
}

Test(printable, a_nul_is_escaped)
{
	char out[16];
	cr_expect_eq(printable_copy(out, sizeof out, "a\0b", 3), 6);
	cr_expect_str_eq(out, "a\\x00b");
}

Test(printable, cuts_between_characters_and_says_so)
{
	static const struct {
		const char *what, *in, *out;
	} cases[] = {
		{ "fits exactly", "1234567", "1234567" },
		{ "one too long", "12345678", "1234..." },
		{ "never inside an escape", "12\x01\x02", "12..." },
		{ "never inside a character",
		  "123\xe2\x82\xac"
		  "567",
		  "123..." },
		{ "an escape that just fits", "123\x01", "123\\x01" },
		{ "nothing fits before the dots", "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80..." },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[8];
		size_t n = printable_copy(out, sizeof out, cases[i].in, strlen(cases[i].in));
		cr_expect_str_eq(out, cases[i].out, "%s: %s", cases[i].what, out);
		cr_expect_eq(n, strlen(out), "%s", cases[i].what);
	}
}

Test(printable, any_octets_give_one_line_of_bounded_length)
{
	uint64_t state = 7;
	for (int round = 0; round < 20000; round++) {
		char in[40], out[64];
		state = state * 6364136223846793005u + 1442695040888963407u;
		size_t bytes = (state >> 40) % sizeof in, size = 8 + (state >> 50) % (sizeof out - 8);
		for (size_t i = 0; i < bytes; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			in[i] = (char)(state >> 56);
		}
		size_t n = printable_copy(out, size, in, bytes);
		cr_assert_lt(n, size, "round %d", round);
		cr_assert_eq(n, strlen(out), "round %d", round);
		for (size_t i = 0; i < n; i++)
			cr_assert((unsigned char)out[i] >= 0x20 && out[i] != 0x7f, "round %d", round);
	}
}
