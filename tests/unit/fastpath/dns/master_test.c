/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "dns/master.h"

/* Everything that one reading gave, as text: "owner ttl TYPE data" a record, "file:line:column: message" an error. */
struct include_file {
	const char *name, *text;
};

static const uint8_t origin[] = "\7example";
static char *output;
static size_t output_used, output_size;
static struct master_result result;
static const struct include_file *include_files;
static unsigned opened, closed, stop_records, stop_errors;
static struct master_place last_place;

static void add(const char *text)
{
	size_t length = strlen(text);

	if (output_used + length >= output_size) {
		output_size = 2 * (output_used + length) + 4096;
		output = realloc(output, output_size);
	}
	memcpy(output + output_used, text, length + 1);
	output_used += length;
}

static bool on_record(void *user, const struct master_record *r)
{
	static char data[5 * RDATA_MAX_BYTES];
	char owner[NAME_TEXT_MAX_BYTES], type[16], line[2 * NAME_TEXT_MAX_BYTES];
	size_t bytes;

	(void)user;
	cr_assert_eq(r->owner_bytes, name_wire_bytes(r->owner, r->owner_bytes), "the owner is a whole wire name");
	cr_assert_eq(rdata_check(r->type, r->rdata, r->rdata_bytes), ERR_OK);
	cr_assert_eq(r->class_, RR_CLASS_IN);
	name_to_text(owner, r->owner);
	rr_type_to_text(type, r->type);
	cr_assert_eq(rdata_to_text(r->type, r->rdata, r->rdata_bytes, data, sizeof(data), &bytes), ERR_OK);
	snprintf(line, sizeof(line), "%s %u %s ", owner, r->ttl_s, type);
	add(line);
	add(data);
	add("\n");
	last_place = r->place;
	return stop_records == 0 || --stop_records > 0;
}

static bool on_error(void *user, struct master_place place, const char *message)
{
	char line[1024];

	(void)user;
	snprintf(line, sizeof(line), "%s:%u:%u: %s\n", place.file, place.line, place.column, message);
	add(line);
	return stop_errors == 0 || --stop_errors > 0;
}

static enum err on_open(void *user, const char *path, const char *from, struct master_file *out)
{
	(void)user;
	cr_assert_not_null(from);
	for (const struct include_file *f = include_files; f->name != NULL; f++)
		if (strcmp(f->name, path) == 0) {
			*out = (struct master_file){ f->name, f->text, strlen(f->text) };
			opened++;
			return ERR_OK;
		}
	return ERR_NOTFOUND;
}

static void on_close(void *user, struct master_file *file)
{
	(void)user;
	cr_assert_not_null(file->text);
	closed++;
}

static const char *read_bytes(const char *text, size_t bytes, const struct master_options *given)
{
	/* A copy of the exact size, so that ASan sees a read behind the end. */
	char *copy = malloc(bytes + (bytes == 0));
	struct master_file file = { "z", copy, bytes };
	struct master_options options = {
		.origin = origin, .class_ = RR_CLASS_IN, .default_ttl_s = 300, .has_default_ttl = true
	};
	struct master_callbacks callbacks = { .record = on_record, .error = on_error };

	if (include_files != NULL) {
		callbacks.open = on_open;
		callbacks.close = on_close;
	}
	memcpy(copy, text, bytes);
	output_used = 0;
	add("");
	opened = closed = 0;
	result = master_read(&file, given != NULL ? given : &options, &callbacks);
	free(copy);
	stop_records = stop_errors = 0;
	return output;
}

static const char *read_text(const char *text) { return read_bytes(text, strlen(text), NULL); }

/* --- entries ------------------------------------------------------------------------------------------------------------- */

struct reading_case {
	const char *what, *text, *expected;
};

static void check_cases(const struct reading_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		read_text(cases[i].text);
		cr_expect_str_eq(output, cases[i].expected, "%s:\n%s\nexpected:\n%s", cases[i].what, output, cases[i].expected);
		cr_expect(!result.stopped);
	}
}

Test(master, entries)
{
	static const struct reading_case cases[] = {
		{ "nothing", "", "" },
		{ "blank lines and comments only", "\n  \n\t;x\n;y\n ( ) \n", "" },
		{ "one entry", "a A 192.0.2.1\n", "a.example. 300 A 192.0.2.1\n" },
		{ "no newline at the end", "a A 192.0.2.1", "a.example. 300 A 192.0.2.1\n" },
		{ "an absolute owner", "a.b. A 192.0.2.1\n", "a.b. 300 A 192.0.2.1\n" },
		{ "@ is the origin", "@ NS @\n", "example. 300 NS example.\n" },
		{ "an escaped @ is a label", "\\@ A 192.0.2.1\n", "\\@.example. 300 A 192.0.2.1\n" },
		{ "a quoted owner", "\"a b\" A 192.0.2.1\n", "a\\032b.example. 300 A 192.0.2.1\n" },
		{ "the last owner again", "a A 192.0.2.1\n A 192.0.2.2\n\tA 192.0.2.3\n",
		  "a.example. 300 A 192.0.2.1\na.example. 300 A 192.0.2.2\na.example. 300 A 192.0.2.3\n" },
		{ "CR LF", "a A 192.0.2.1\r\n A 192.0.2.2\r\n", "a.example. 300 A 192.0.2.1\na.example. 300 A 192.0.2.2\n" },
		{ "a lone CR ends a line, after a comment too", "a A 192.0.2.1\rb A 192.0.2.2 ; c\rc A 192.0.2.3\r",
		  "a.example. 300 A 192.0.2.1\nb.example. 300 A 192.0.2.2\nc.example. 300 A 192.0.2.3\n" },
		{ "CR CR LF", "a A 192.0.2.1\r\r\n A 192.0.2.2\r\r\n",
		  "a.example. 300 A 192.0.2.1\na.example. 300 A 192.0.2.2\n" },
		{ "form feeds and vertical tabs are blanks", "\f\na\fA\v192.0.2.1\n\f\n", "a.example. 300 A 192.0.2.1\n" },
		{ "a byte order mark",
		  "\xef\xbb\xbf"
		  "a A 192.0.2.1\n",
		  "a.example. 300 A 192.0.2.1\n" },
		{ "a comment right behind a word", "a A 192.0.2.1;c\n", "a.example. 300 A 192.0.2.1\n" },
		{ "an escaped semicolon is no comment", "a TXT b\\;c\n", "a.example. 300 TXT \"b;c\"\n" },
		{ "a semicolon in quotes is no comment", "a TXT \"b;c\"\n", "a.example. 300 TXT \"b;c\"\n" },
		{ "parentheses over lines", "a TXT ( b ; x )\n\n c\n)\nd A 192.0.2.1\n",
		  "a.example. 300 TXT \"b\" \"c\"\nd.example. 300 A 192.0.2.1\n" },
		{ "parentheses without blanks, inside each other", "a(TXT(b(c)d)e)\n",
		  "a.example. 300 TXT \"b\" \"c\" \"d\" \"e\"\n" },
		{ "the owner inside parentheses", "( a TXT b )\n(\n c TXT d )\n",
		  "a.example. 300 TXT \"b\"\nc.example. 300 TXT \"d\"\n" },
		{ "a blank before the parenthesis: the last owner", "a TXT b\n ( TXT c )\n",
		  "a.example. 300 TXT \"b\"\na.example. 300 TXT \"c\"\n" },
		{ "a line that starts in the first column inside parentheses", "a TXT (\nb\n)\n", "a.example. 300 TXT \"b\"\n" },
		{ "quotes side by side", "a TXT b\"c\"d\"\"\"e\"\n", "a.example. 300 TXT \"b\" \"c\" \"d\" \"\" \"e\"\n" },
		{ "quotes and backslashes in quotes", "a TXT \"b\\\"c\\\\\" \"(\"\n",
		  "a.example. 300 TXT \"b\\\"c\\\\\" \"(\"\n" },
		{ "key=\"value\" is two strings in a TXT", "a TXT b=\"c d\" e=\"\" f\n",
		  "a.example. 300 TXT \"b=\" \"c d\" \"e=\" \"\" \"f\"\n" },
		{ "key=\"value\" is one parameter in an SVCB", "a SVCB 1 . alpn=\"h2,h3\" port=\"53\"\n",
		  "a.example. 300 SVCB 1 . alpn=\"h2,h3\" port=53\n" },
		{ "letter case of types and classes", "A in a 192.0.2.1\n", "A.example. 300 A 192.0.2.1\n" },
		{ "types by number", "a TYPE1 192.0.2.1\na type65534 \\# 1 ff\n",
		  "a.example. 300 A 192.0.2.1\na.example. 300 TYPE65534 \\# 1 FF\n" },
		{ "a class by number", "a CLASS1 A 192.0.2.1\n", "a.example. 300 A 192.0.2.1\n" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(master, owners_that_look_like_something_else)
{
	static const struct reading_case cases[] = {
		{ "a type", "A A 192.0.2.1\nMX 5 MX 1 A\n", "A.example. 300 A 192.0.2.1\nMX.example. 5 MX 1 A.example.\n" },
		{ "a class", "IN IN A 192.0.2.1\nCH A 192.0.2.2\nCLASS9 A 192.0.2.3\nANY A 192.0.2.4\n",
		  "IN.example. 300 A 192.0.2.1\nCH.example. 300 A 192.0.2.2\nCLASS9.example. 300 A 192.0.2.3\nANY.example. 300 A "
		  "192.0.2.4\n" },
		{ "a number", "4705 A 192.0.2.1\n4705 4705 TXT 4705\n",
		  "4705.example. 300 A 192.0.2.1\n4705.example. 4705 TXT \"4705\"\n" },
		{ "a TTL", "1h 1h A 192.0.2.1\n", "1h.example. 3600 A 192.0.2.1\n" },
		{ "a word", "app A 192.0.2.1\nwallet TXT TXT\n",
		  "app.example. 300 A 192.0.2.1\nwallet.example. 300 TXT \"TXT\"\n" },
		{ "a type by number", "TYPE1 TYPE1 192.0.2.1\n", "TYPE1.example. 300 A 192.0.2.1\n" },
		{ "a directive, escaped", "\\$TTL A 192.0.2.1\n", "\\$TTL.example. 300 A 192.0.2.1\n" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(master, ttl_and_class_in_every_order)
{
	static const struct reading_case cases[] = {
		{ "neither", "a A 192.0.2.1\n", "a.example. 300 A 192.0.2.1\n" },
		{ "TTL", "a 5 A 192.0.2.1\n", "a.example. 5 A 192.0.2.1\n" },
		{ "class", "a IN A 192.0.2.1\n", "a.example. 300 A 192.0.2.1\n" },
		{ "TTL class", "a 5 IN A 192.0.2.1\n", "a.example. 5 A 192.0.2.1\n" },
		{ "class TTL", "a IN 5 A 192.0.2.1\n", "a.example. 5 A 192.0.2.1\n" },
		{ "with the last owner", "a A 192.0.2.1\n 5 IN A 192.0.2.2\n IN 6 A 192.0.2.3\n",
		  "a.example. 300 A 192.0.2.1\na.example. 5 A 192.0.2.2\na.example. 6 A 192.0.2.3\n" },
		{ "zero, the largest, units", "a 0 A 192.0.2.1\na 2147483647 A 192.0.2.2\na 1w2D3h4M5s A 192.0.2.3\n",
		  "a.example. 0 A 192.0.2.1\na.example. 2147483647 A 192.0.2.2\na.example. 788645 A 192.0.2.3\n" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(master, ttl_when_omitted)
{
	static const struct {
		const char *what, *text, *expected;
	} cases[] = {
		{ "$TTL counts from its line on, explicit ones do not change it",
		  "$TTL 1h\na A 192.0.2.1\nb 5 A 192.0.2.2\nc A 192.0.2.3\n$TTL 7\nd A 192.0.2.4\n",
		  "a.example. 3600 A 192.0.2.1\nb.example. 5 A 192.0.2.2\nc.example. 3600 A 192.0.2.3\nd.example. 7 A "
		  "192.0.2.4\n" },
		{ "without $TTL: the last one stated", "a 9 A 192.0.2.1\nb A 192.0.2.2\nc 8 A 192.0.2.3\nd A 192.0.2.4\n",
		  "a.example. 9 A 192.0.2.1\nb.example. 9 A 192.0.2.2\nc.example. 8 A 192.0.2.3\nd.example. 8 A 192.0.2.4\n" },
		{ "the SOA's minimum, when none was stated before",
		  "@ SOA . . 1 2 3 4 55\na A 192.0.2.1\nb 5 A 192.0.2.2\nc A 192.0.2.3\n",
		  "example. 55 SOA . . 1 2 3 4 55\na.example. 55 A 192.0.2.1\nb.example. 5 A 192.0.2.2\nc.example. 55 A "
		  "192.0.2.3\n" },
		{ "an SOA that states its own", "@ 9 SOA . . 1 2 3 4 55\na A 192.0.2.1\n",
		  "example. 9 SOA . . 1 2 3 4 55\na.example. 9 A 192.0.2.1\n" },
		{ "an SOA minimum beyond 2^31-1 counts as 0", "@ SOA . . 1 2 3 4 2147483648\n",
		  "example. 0 SOA . . 1 2 3 4 2147483648\n" },
		{ "no TTL at all: reported once", "a A 192.0.2.1\nb A 192.0.2.2\n",
		  "z:1:1: expected a TTL: neither this entry nor one before it states one, and there is no $TTL\n"
		  "a.example. 0 A 192.0.2.1\nb.example. 0 A 192.0.2.2\n" },
	};
	struct master_options options = { .origin = origin, .class_ = RR_CLASS_IN };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		read_bytes(cases[i].text, strlen(cases[i].text), &options);
		cr_expect_str_eq(output, cases[i].expected, "%s:\n%s", cases[i].what, output);
	}
}

/* --- errors -------------------------------------------------------------------------------------------------------------- */

/* `expected` lists "line:column: start of the message", one a line; records are left out. */
static void check_errors(const char *what, const char *text, size_t bytes, const char *expected)
{
	const char *at = expected;
	uint64_t count = 0;

	read_bytes(text, bytes, NULL);
	for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		size_t length = strcspn(at, "\n");

		if (strncmp(line, "z:", 2) != 0)
			continue;
		count++;
		cr_expect(length > 0 && strncmp(line + 2, at, length) == 0, "%s: got %s, expected %.*s", what, line, (int)length,
			  at);
		at += length + (at[length] == '\n');
	}
	cr_expect_str_empty(at, "%s: missing: %s", what, at);
	cr_expect_eq(result.errors, count, "%s", what);
}

Test(master, errors_name_their_place)
{
	static const struct reading_case cases[] = {
		{ "unknown type", "a IN B 192.0.2.1\n", "1:6: expected a TTL or a type, found 'B'" },
		{ "nothing behind the owner", "\na\n", "2:2: expected a TTL, a class or a type, found the end of the entry" },
		{ "nothing behind the class", "a 5 IN\n", "1:7: expected a type, found the end of the entry" },
		{ "two TTLs", "a 5 IN 6 A 192.0.2.1\n", "1:8: expected a type, found '6'" },
		{ "two classes", "a IN 5 IN A 192.0.2.1\n", "1:8: expected a type, found 'IN'" },
		{ "another class", "a CH A 192.0.2.1\nb A 192.0.2.2\n", "1:3: expected the zone's class IN, found 'CH'" },
		{ "a TTL that is too large", "a 2147483648 A 192.0.2.1\n",
		  "1:3: expected a TTL of at most 2147483647 seconds, found '2147483648'" },
		{ "a quoted type", "a \"A\" 192.0.2.1\n", "1:3: expected a TTL, a class or a type, found 'A'" },
		{ "meta types", "a ANY 192.0.2.1\na OPT \\# 0\na TYPE250 \\# 0\na TYPE0 \\# 0\na TYPE200 \\# 0\n",
		  "1:3: expected the zone's class IN, found 'ANY'\n2:3: expected a type that zones can hold, found 'OPT'\n"
		  "3:3: expected a type that zones can hold\n4:3: expected a type that zones can hold\n5:3: expected a type that "
		  "zones can hold" },
		{ "MD and MF", "a MD b\na MF b\n", "1:3: expected MX instead of an obsolete type, found 'MD'\n2:3: expected MX" },
		{ "no owner yet", " A 192.0.2.1\n A 192.0.2.2\nb A 192.0.2.1\n",
		  "1:2: expected an owner name in the first column" },
		{ "a bad owner, but nothing about entries that share it", "a..b A 192.0.2.1\n A 192.0.2.2\n",
		  "1:1: expected an owner name, found 'a..b': " },
		{ "data behind a bad owner is checked all the same", "a..b A 192.0.2.1\n A x\n",
		  "1:1: expected an owner name\n2:4: " },
		{ "bad data", "a A 192.0.2\n", "1:5: " },
		{ "missing data", "a\tMX 10 ; x\n", "1:8: " },
		{ "data too much, in a later line", "a TXT (\n b )\nb A ( 192.0.2.1\n   x )\n", "4:4: " },
		{ "a word out of any letters, shown as text", "a \\000\xff\x01\n",
		  "1:3: expected a TTL, a class or a type, found '\\000\\255\\001'" },
		{ "a long word is cut", "a bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n",
		  "1:3: expected a TTL, a class or a type, found 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb...'" },
		{ "lines count with any line end", "\r\n\r\n\n x\r y\n",
		  "4:2: expected an owner name\n4:2: expected a TTL\n5:2: expected a TTL" },
		{ "an escape at the end of a line", "a TXT b\\\nc A 192.0.2.1\n", "1:7: " },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_errors(cases[i].what, cases[i].text, strlen(cases[i].text), cases[i].expected);
}

Test(master, recovery)
{
	static const struct reading_case cases[] = {
		{ "a quote that is not closed ends with its line", "a TXT \"b\nc A 192.0.2.1\n",
		  "z:1:7: expected a closing quote on the same line as this one, found the end of the line\nc.example. 300 A "
		  "192.0.2.1\n" },
		{ "the same at the end of the file", "a TXT \"b",
		  "z:1:7: expected a closing quote on the same line as this one, found the end of the line\n" },
		{ "the same behind an equals sign", "a SVCB 1 . alpn=\"h2\nc A 192.0.2.1\n",
		  "z:1:17: expected a closing quote on the same line as this one, found the end of the line\nc.example. 300 A "
		  "192.0.2.1\n" },
		{ "the same in parentheses: on with the next owner", "a TXT ( \"b )\n \"c\" )\nd A 192.0.2.1\n",
		  "z:1:9: expected a closing quote on the same line as this one, found the end of the line\nd.example. 300 A "
		  "192.0.2.1\n" },
		{ "a parenthesis that is not closed: on with the next owner",
		  "@ SOA . . ( 1 2\n 3 4\n; x\n 5\nd A 192.0.2.1\n A 192.0.2.2\n",
		  "z:1:11: expected a closing parenthesis for this one, found the end of the file\n"
		  "d.example. 300 A 192.0.2.1\nd.example. 300 A 192.0.2.2\n" },
		{ "a closing one too many", "a A ) 192.0.2.1\nb A 192.0.2.2\n",
		  "z:1:5: expected no closing parenthesis: none is open\nb.example. 300 A 192.0.2.2\n" },
		{ "errors in a row", "a B\nb A x\nc A 192.0.2.1\n", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		read_text(cases[i].text);
		if (cases[i].expected != NULL)
			cr_expect_str_eq(output, cases[i].expected, "%s:\n%s", cases[i].what, output);
	}
	cr_expect_eq(result.errors, 2);
	cr_expect_eq(result.records, 1);
}

Test(master, nul_octets)
{
	check_errors("in a word", "a TXT b\0c\nd A 192.0.2.1\n", 24, "1:8: expected text, found a NUL octet");
	check_errors("behind a backslash", "a TXT b\\\0c\n", 11, "1:9: expected text, found a NUL octet");
	check_errors("in quotes", "a TXT \"b\0c\"\n", 12, "1:9: expected text, found a NUL octet");
	check_errors("alone", "\0\n", 2, "1:1: expected text, found a NUL octet");
	cr_expect_eq(read_bytes("a TXT b ; \0\n", 12, NULL)[0], 'a', "comments are not looked at");
}

Test(master, unclosed_parentheses_are_rationed)
{
	size_t lines = 100000, bytes = 0;
	char *text = malloc(lines * 4 + 1);

	for (size_t i = 0; i < lines; i++, bytes += 4)
		memcpy(text + bytes, "a (\n", 4);
	read_bytes(text, bytes, NULL);
	cr_expect_eq(result.errors, 16, "%llu errors", (unsigned long long)result.errors);
	cr_expect_not_null(strstr(output, "the rest of the file is not read"));
	free(text);
}

Test(master, callbacks_stop_the_reading)
{
	stop_records = 2;
	read_text("a A 192.0.2.1\nb A 192.0.2.2\nc A 192.0.2.3\n");
	cr_expect(result.stopped);
	cr_expect_eq(result.records, 2);
	stop_errors = 2;
	read_text("a B\nb B\nc B\nd A 192.0.2.3\n");
	cr_expect(result.stopped);
	cr_expect_eq(result.errors, 2);
	cr_expect_eq(result.records, 0);
	stop_errors = 1;
	read_text("a..b B\n");
	cr_expect_eq(result.errors, 1, "none follows within the same entry either");
}

Test(master, records_know_their_place)
{
	read_text("\n;\n(\n\n\ta\n TXT b )\n");
	cr_expect_eq(last_place.line, 5);
	cr_expect_eq(last_place.column, 2);
	read_text("a A 192.0.2.1\r\n   IN A 192.0.2.2");
	cr_expect_eq(last_place.line, 2);
	cr_expect_eq(last_place.column, 4);
	cr_expect_str_eq(last_place.file, "z");
	read_text("\"a\" A 192.0.2.1");
	cr_expect_eq(last_place.column, 1);
}

/* --- sizes --------------------------------------------------------------------------------------------------------------- */

static char *repeated(const char *start, const char *piece, size_t count, const char *end)
{
	size_t length = strlen(piece);
	char *text = malloc(strlen(start) + length * count + strlen(end) + 1), *p = stpcpy(text, start);

	for (size_t i = 0; i < count; i++, p += length)
		memcpy(p, piece, length);
	strcpy(p, end);
	return text;
}

Test(master, largest_legal_data)
{
	static const struct {
		const char *what, *start, *piece;
		size_t count;
		uint64_t records;
	} cases[] = {
		{ "65535 octets of hex in one word", "a TYPE65534 \\# 65535 ", "AB", 65535, 1 },
		{ "one more", "a TYPE65534 \\# 65536 ", "AB", 65536, 0 },
		{ "65535 octets of hex in words of one octet", "a TYPE65534 \\# 65535 ", "AB ", 65535, 1 },
		{ "65535 empty strings", "a TXT ", "\"\" ", 65535, 1 },
		{ "65536 empty strings", "a TXT ", "\"\" ", 65536, 0 },
		{ "more words than an entry may have", "a TXT ", "\"\" ", 70000, 0 },
		{ "a word that is too long", "a TXT ", "aaaaaaaaaaaaaaaa", 65537, 0 },
		{ "a long line of blanks", "a A 192.0.2.1", "        ", 1000000, 1 },
		{ "a long comment", "a A 192.0.2.1 ;", " comment", 1000000, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = repeated(cases[i].start, cases[i].piece, cases[i].count, "\nz A 192.0.2.1\n");

		read_text(text);
		cr_expect_eq(result.records, cases[i].records + 1, "%s", cases[i].what);
		cr_expect_eq(result.errors, 1 - cases[i].records, "%s", cases[i].what);
		free(text);
	}
}

Test(master, too_many_words_in_parentheses)
{
	char *text = repeated("a TXT (\n", "b\n", 70000, "c A 192.0.2.1\n");

	read_text(text);
	cr_expect(strstr(output, "z:1:7: expected an entry of at most 65600 words") == output, "%.200s", output);
	cr_expect_not_null(strstr(output, "c.example. 300 A 192.0.2.1"));
	free(text);
}

/* --- directives ---------------------------------------------------------------------------------------------------------- */

Test(master, directives)
{
	static const struct reading_case cases[] = {
		{ "$ORIGIN: relative, absolute, @, root",
		  "$ORIGIN x\na A 192.0.2.1\n$ORIGIN y\n@ A 192.0.2.2\n$ORIGIN z.\na A 192.0.2.3\n"
		  "$ORIGIN @\nb A 192.0.2.4\n$ORIGIN .\nc A 192.0.2.5\n@ NS d\n",
		  "a.x.example. 300 A 192.0.2.1\ny.x.example. 300 A 192.0.2.2\na.z. 300 A 192.0.2.3\nb.z. 300 A 192.0.2.4\n"
		  "c. 300 A 192.0.2.5\n. 300 NS d.\n" },
		{ "$ORIGIN leaves the last owner", "a A 192.0.2.1\n$ORIGIN x\n A 192.0.2.2\n",
		  "a.example. 300 A 192.0.2.1\na.example. 300 A 192.0.2.2\n" },
		{ "letter case and comments", "$origin x ; c\n$ttl 1m ; c\na A 192.0.2.1\n", "a.x.example. 60 A 192.0.2.1\n" },
		{ "over lines", "$ORIGIN ( ; c\n x )\na A 192.0.2.1\n", "a.x.example. 300 A 192.0.2.1\n" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(master, directive_errors)
{
	static const struct reading_case cases[] = {
		{ "unknown", "$DATE x\n$ A x\n",
		  "1:1: expected $ORIGIN, $TTL, $INCLUDE, $GENERATE or an owner name, found '$DATE'\n2:1: expected $ORIGIN" },
		{ "not in the first column", "a A 192.0.2.1\n $TTL 5\n", "2:2: expected a TTL, a class or a type, found '$TTL'" },
		{ "$ORIGIN without a name", "$ORIGIN\n", "1:8: expected a domain name, found the end of the directive" },
		{ "$ORIGIN with a bad one", "$ORIGIN a..b\n", "1:9: expected a domain name, found 'a..b': " },
		{ "$ORIGIN with more", "$ORIGIN a b\n", "1:11: expected the end of the directive, found 'b'" },
		{ "$TTL without a TTL", "$TTL\n",
		  "1:5: expected a TTL of at most 2147483647 seconds, such as 3600 or 1h30m, found the end" },
		{ "$TTL with another word, reported once", "$TTL x\na A 192.0.2.1\nb A 192.0.2.1\n", "1:6: expected a TTL" },
		{ "$TTL too large", "$TTL 2147483648\n", "1:6: expected a TTL of at most" },
		{ "$TTL with more", "$TTL 5 6\n", "1:8: expected the end of the directive, found '6'" },
		{ "$INCLUDE where it is not allowed", "$INCLUDE f\n", "1:10: expected no $INCLUDE" },
		{ "$INCLUDE without a path", "$INCLUDE\n", "1:9: expected the path of a file" },
		{ "$INCLUDE of an empty path", "$INCLUDE \"\"\n", "1:10: expected the path of a file" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_errors(cases[i].what, cases[i].text, strlen(cases[i].text), cases[i].expected);
}

Test(master, include)
{
	static const struct include_file files[] = {
		{ "one", " TXT \"the including file's owner\"\na A 192.0.2.1\n$ORIGIN x\nb A 192.0.2.2" },
		{ "two", "@ A 192.0.2.3\n$INCLUDE one\n c\n$TTL 7\n" },
		{ "a b\"c", "q A 192.0.2.4\n" },
		{ "empty", "" },
		{ "open", "a TXT ( b\n" },
		{ NULL, NULL },
	};

	include_files = files;
	read_text("o A 192.0.2.9\n$INCLUDE one\n A 192.0.2.8\n");
	cr_expect_str_eq(
		output,
		"o.example. 300 A 192.0.2.9\no.example. 300 TXT \"the including file's owner\"\na.example. 300 A 192.0.2.1\n"
		"b.x.example. 300 A 192.0.2.2\no.example. 300 A 192.0.2.8\n",
		"%s", output);
	cr_expect_eq(opened, 1);
	cr_expect_eq(closed, 1);
	read_text("$INCLUDE two sub\nl A 192.0.2.7\n$INCLUDE \"a b\\\"c\"\n$INCLUDE empty\n");
	cr_expect_str_eq(output,
			 "sub.example. 300 A 192.0.2.3\nsub.example. 300 TXT \"the including file's owner\"\na.sub.example. 300 "
			 "A 192.0.2.1\n"
			 "b.x.sub.example. 300 A 192.0.2.2\ntwo:3:2: expected a TTL, a class or a type, found 'c'\n"
			 "l.example. 7 A 192.0.2.7\nq.example. 7 A 192.0.2.4\n",
			 "%s", output);
	cr_expect_eq(opened, 4);
	cr_expect_eq(closed, 4);
	read_text("$INCLUDE none\n$INCLUDE one a..b\n$INCLUDE one x y\nb A 192.0.2.1\n");
	cr_expect(strstr(output, "z:1:10: expected a file that can be read, found 'none': ") == output, "%s", output);
	cr_expect_eq(result.errors, 3);
	cr_expect_eq(result.records, 1);
	cr_expect_eq(opened, 0);
	read_text("$INCLUDE open\nb A 192.0.2.1\n");
	cr_expect(strstr(output, "open:1:7: expected a closing parenthesis") == output, "parentheses do not reach over files: %s",
		  output);
	cr_expect_eq(result.records, 1);
	include_files = NULL;
}

Test(master, include_loops_end)
{
	static const struct include_file loop[] = { { "a", "$INCLUDE b\n$INCLUDE b\nx A 192.0.2.1\n" },
						    { "b", "$INCLUDE a\n" },
						    { NULL, NULL } };
	static struct include_file chain[40];
	static char names[40][8], texts[40][32];

	include_files = loop;
	read_text("$INCLUDE a\n");
	cr_expect_eq(result.errors, 2);
	cr_expect_not_null(strstr(output, "b:1:10: expected another file, found one that is being read already: 'a'"));
	cr_expect_eq(result.records, 1);
	cr_expect_eq(opened, closed);
	for (int i = 0; i < 39; i++) {
		sprintf(names[i], "f%d", i);
		sprintf(texts[i], "$INCLUDE f%d\n$INCLUDE f%d\n", i + 1, i + 1);
		chain[i] = (struct include_file){ names[i], texts[i] };
	}
	include_files = chain;
	stop_errors = 1;
	read_text("$INCLUDE f0\n");
	cr_expect(strstr(output, "f15:1:10: expected at most 16 files inside each other") == output, "%s", output);
	cr_expect_eq(opened, closed, "all are closed, also when the reading is stopped");
	cr_expect_eq(opened, 16);
	read_text("$INCLUDE f0\n");
	cr_expect_leq(opened, 65536u, "files that double at each level are bounded");
	include_files = NULL;
}

Test(master, generate)
{
	static const struct reading_case cases[] = {
		{ "plain", "$GENERATE 1-3 a$ A 192.0.2.$\n",
		  "a1.example. 300 A 192.0.2.1\na2.example. 300 A 192.0.2.2\na3.example. 300 A 192.0.2.3\n" },
		{ "one number", "$GENERATE 7-7 a A 192.0.2.1\n", "a.example. 300 A 192.0.2.1\n" },
		{ "steps", "$GENERATE 0-9/4 a$ A 192.0.2.1\n",
		  "a0.example. 300 A 192.0.2.1\na4.example. 300 A 192.0.2.1\na8.example. 300 A 192.0.2.1\n" },
		{ "TTL and class in both orders", "$GENERATE 1-1 a 5 IN A 192.0.2.1\n$GENERATE 1-1 b IN 6 A 192.0.2.1\n",
		  "a.example. 5 A 192.0.2.1\nb.example. 6 A 192.0.2.1\n" },
		{ "offsets",
		  "$GENERATE 1-1 a${9} A 192.0.2.1\n$GENERATE 1-1 a${-3} A 192.0.2.1\n$GENERATE 1-1 a${+3} A 192.0.2.1\n",
		  "a10.example. 300 A 192.0.2.1\na-2.example. 300 A 192.0.2.1\na4.example. 300 A 192.0.2.1\n" },
		{ "widths", "$GENERATE 5-5 ${0,3}.${0,0}.${0,1} A 192.0.2.1\n$GENERATE 1-1 a${-5,4} A 192.0.2.1\n",
		  "005.5.5.example. 300 A 192.0.2.1\na-004.example. 300 A 192.0.2.1\n" },
		{ "bases", "$GENERATE 254-254 ${0,4,d}.${0,4,o}.${0,4,x}.${0,4,X} A 192.0.2.1\n",
		  "0254.0376.00fe.00FE.example. 300 A 192.0.2.1\n" },
		{ "a negative number in hex", "$GENERATE 1-1 ${-2,0,x} A 192.0.2.1\n", "ffffffff.example. 300 A 192.0.2.1\n" },
		{ "nibbles", "$GENERATE 26-26 ${0,0,n}.${0,3,N}.${0,5,n}.${0,6,n}x A 192.0.2.1\n",
		  "a.1.A.1.a.1.0.a.1.0.x.example. 300 A 192.0.2.1\n" },
		{ "dollar signs", "$GENERATE 1-1 a$$b\\$c A 192.0.2.1\n", "a\\$b\\$c.example. 300 A 192.0.2.1\n" },
		{ "data of several words", "$GENERATE 1-1 a MX \"$ mail$\"\n$GENERATE 2-2 a TXT \"one $ \\\"two $\\\"\"\n",
		  "a.example. 300 MX 1 mail1.example.\na.example. 300 TXT \"one\" \"2\" \"two 2\"\n" },
		{ "any type", "$GENERATE 1-1 a$ TYPE65534 \"\\# 1 0$\"\n", "a1.example. 300 TYPE65534 \\# 1 01\n" },
		{ "@ and the last owner", "b A 192.0.2.1\n$GENERATE 1-1 @ TXT @\n TXT c\n",
		  "b.example. 300 A 192.0.2.1\nexample. 300 TXT \"@\"\nb.example. 300 TXT \"c\"\n" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(master, generate_errors)
{
	static const struct reading_case cases[] = {
		{ "no range", "$GENERATE\n", "1:10: expected a range" },
		{ "a single number", "$GENERATE 1 a A 192.0.2.1\n",
		  "1:11: expected a range start-stop or start-stop/step, found '1'" },
		{ "downwards", "$GENERATE 2-1 a A 192.0.2.1\n", "1:11: expected a range" },
		{ "a step of 0", "$GENERATE 1-2/0 a A 192.0.2.1\n", "1:11: expected a range" },
		{ "rubbish behind it", "$GENERATE 1-2x a A 192.0.2.1\n", "1:11: expected a range" },
		{ "too large a number", "$GENERATE 1-2147483648 a A 192.0.2.1\n", "1:11: expected a range" },
		{ "too many", "$GENERATE 1-16777217 a A 192.0.2.1\n", "1:11: expected a range of at most 16777216 numbers" },
		{ "no owner", "$GENERATE 1-2\n", "1:14: expected an owner name" },
		{ "no type", "$GENERATE 1-2 a\n", "1:16: expected a TTL, a class or a type" },
		{ "no data", "$GENERATE 1-2 a A\n", "1:18: expected record data as one word" },
		{ "two words of data", "$GENERATE 1-2 a MX 1 b\n",
		  "1:22: expected record data as one word, or quoted as a whole, found 'b'" },
		{ "a bad format, reported once", "$GENERATE 1-9 a${1,2,z} A 192.0.2.1\n", "1:15: expected ${offset}" },
		{ "a format without an end", "$GENERATE 1-9 a${1 A 192.0.2.1\n", "1:15: expected ${offset}" },
		{ "a width that is too large", "$GENERATE 1-9 a${0,256} A 192.0.2.1\n", "1:15: expected ${offset}" },
		{ "an owner that is no name, reported once", "$GENERATE 1-9 $..a A 192.0.2.1\n",
		  "1:15: expected an owner name, found '1..a'" },
		{ "bad data, reported once", "$GENERATE 1-9 a$ A 192.0.2.x$\n", "1:20: " },
		{ "data that becomes wrong in the end", "$GENERATE 254-257 a$ A 192.0.2.$\n", "1:24: " },
		{ "an open quote in the data", "$GENERATE 1-2 a TXT \"\\\"b\"\n", "1:21: expected a closing quote" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_errors(cases[i].what, cases[i].text, strlen(cases[i].text), cases[i].expected);
}

Test(master, generate_does_not_outgrow_its_buffers)
{
	char *text = repeated("$GENERATE 1-2 a TXT \"", "${0,255}", 1000, "\"\nb A 192.0.2.1\n");

	check_errors("data", text, strlen(text), "1:21: expected a shorter text");
	free(text);
	text = repeated("$GENERATE 1-2 ", "${0,255}", 1000, " A 192.0.2.1\nb A 192.0.2.1\n");
	check_errors("owner", text, strlen(text), "1:15: expected a shorter text");
	free(text);
}

Test(master, ttl_from_text)
{
	static const struct {
		const char *text;
		bool good;
		uint32_t ttl_s;
	} cases[] = {
		{ "0", true, 0 },
		{ "1", true, 1 },
		{ "007", true, 7 },
		{ "2147483647", true, 2147483647 },
		{ "2147483648", false, 0 },
		{ "99999999999999999999999999", false, 0 },
		{ "1w", true, 604800 },
		{ "1W2D3H4M5S", true, 788645 },
		{ "5s1w", true, 604805 },
		{ "1h1h", true, 7200 },
		{ "0s", true, 0 },
		{ "3550w", true, 2147040000 },
		{ "3551w", false, 0 },
		{ "1w2", false, 0 },
		{ "w", false, 0 },
		{ "", false, 0 },
		{ "1y", false, 0 },
		{ "-1", false, 0 },
		{ "1 ", false, 0 },
		{ "1.5h", false, 0 },
		{ "9999999999w1s", false, 0 },
		{ "h1", false, 0 },
		{ "1hh", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t ttl_s = 12345;

		cr_expect_eq(master_ttl_from_text(cases[i].text, strlen(cases[i].text), &ttl_s), cases[i].good, "%s",
			     cases[i].text);
		cr_expect_eq(ttl_s, cases[i].good ? cases[i].ttl_s : 12345, "%s", cases[i].text);
	}
}
