/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/name.h"
#include "dns/name_inline.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static const uint8_t root[1] = { 0 };

/* Wire form of an absolute text; the test fails if it is not one. */
static size_t wire(uint8_t out[static NAME_MAX_BYTES], const char *text)
{
	const char *why = "";
	size_t n = name_from_text(out, text, strlen(text), NULL, &why);

	cr_assert(n > 0, "%s: %s", text, why);
	return n;
}

static uint64_t seed_state;
static uint32_t pick(uint32_t below)
{
	seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed_state >> 33) % below;
}

/* A random valid name; small alphabets make equal labels likely. */
static size_t random_name(uint8_t out[static NAME_MAX_BYTES])
{
	size_t pos = 0;
	unsigned labels = pick(4) == 0 ? pick(NAME_MAX_LABELS + 1) : pick(5);

	while (labels-- > 0) {
		unsigned label = 1 + (pick(8) == 0 ? pick(NAME_MAX_LABEL_BYTES) : pick(3));

		if (pos + 1 + label > NAME_MAX_BYTES - 1)
			break;
		out[pos++] = (uint8_t)label;
		for (unsigned i = 0; i < label; i++)
			out[pos++] = pick(2) ? (uint8_t) "abAB"[pick(4)] : (uint8_t)pick(256);
	}
	out[pos++] = 0;
	return pos;
}

Test(name, texts_and_their_wire_forms)
{
	static const struct {
		const char *text, *origin, *back;
		size_t bytes; /* 0: refused */
	} cases[] = {
		{ ".", NULL, ".", 1 },
		{ "example.net.", NULL, "example.net.", 13 },
		{ "Example.NET.", NULL, "Example.NET.", 13 },
		{ "www", "example.net.", "www.example.net.", 17 },
		{ "a.b", ".", "a.b.", 5 },
		{ "\\065.b.", NULL, "A.b.", 5 },
		{ "a\\.b.", NULL, "a\\.b.", 5 },
		{ "\\@\\$\\;\\\"\\(\\)\\\\.", NULL, "\\@\\$\\;\\\"\\(\\)\\\\.", 9 },
		{ "\\000\\255\\032.", NULL, "\\000\\255\\032.", 5 },
		{ "a b.", NULL, "a\\032b.", 5 },
		{ "@.", NULL, "\\@.", 3 },
		{ "*.x.", NULL, "*.x.", 5 },
		{ "", NULL, NULL, 0 },
		{ "..", NULL, NULL, 0 },
		{ ".a.", NULL, NULL, 0 },
		{ "a..b.", NULL, NULL, 0 },
		{ "a..", NULL, NULL, 0 },
		{ "relative", NULL, NULL, 0 },
		{ "a\\", ".", NULL, 0 },
		{ "a\\1", ".", NULL, 0 },
		{ "a\\12", ".", NULL, 0 },
		{ "a\\12x.", NULL, NULL, 0 },
		{ "a\\256.", NULL, NULL, 0 },
		{ "123456789012345678901234567890123456789012345678901234567890123.", NULL,
		  "123456789012345678901234567890123456789012345678901234567890123.", 65 },
		{ "1234567890123456789012345678901234567890123456789012345678901234.", NULL, NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t origin[NAME_MAX_BYTES], out[NAME_MAX_BYTES];
		char text[NAME_TEXT_MAX_BYTES];
		const char *why = NULL;

		if (cases[i].origin != NULL)
			wire(origin, cases[i].origin);
		size_t n = name_from_text(out, cases[i].text, strlen(cases[i].text), cases[i].origin ? origin : NULL, &why);

		cr_assert_eq(n, cases[i].bytes, "%s gave %zu octets", cases[i].text, n);
		cr_assert_eq(n == 0, why != NULL, "%s", cases[i].text);
		if (n == 0)
			continue;
		cr_assert_eq(name_wire_bytes(out, n), n);
		cr_assert_eq(name_to_text(text, out), strlen(cases[i].back));
		cr_assert_str_eq(text, cases[i].back);
	}
}

Test(name, names_of_255_octets_fit_and_256_do_not)
{
	char text[600];
	uint8_t out[NAME_MAX_BYTES], origin[NAME_MAX_BYTES];
	const char *why = NULL;

	for (int i = 0; i < 127; i++)
		memcpy(text + i * 2, "a.", 2);
	cr_assert_eq(name_from_text(out, text, 254, NULL, &why), 255);
	cr_assert_eq(name_labels(out), NAME_MAX_LABELS);
	memcpy(text + 254, "a.", 2);
	cr_assert_eq(name_from_text(out, text, 256, NULL, &why), 0);
	cr_assert_eq(name_from_text(out, text, 255, root, &why), 0);
	wire(origin, "b.");
	cr_assert_eq(name_from_text(out, text, 251, origin, &why), 255);
	cr_assert_eq(name_from_text(out, text, 253, origin, &why), 0);
}

Test(name, every_octet_survives_text)
{
	for (unsigned c = 0; c < 256; c++) {
		uint8_t in[4] = { 2, (uint8_t)c, 'x', 0 }, out[NAME_MAX_BYTES];
		char text[NAME_TEXT_MAX_BYTES];
		const char *why;
		size_t n = name_to_text(text, in);

		cr_assert_eq(name_from_text(out, text, n, NULL, &why), 4);
		cr_assert_arr_eq(out, in, 4);
	}
}

Test(name, random_names_survive_text_and_message)
{
	seed_state = 20261130;
	for (int round = 0; round < 20000; round++) {
		uint8_t name[NAME_MAX_BYTES], out[NAME_MAX_BYTES];
		char text[NAME_TEXT_MAX_BYTES];
		const char *why;
		size_t n = random_name(name), pos = 0;

		cr_assert_eq(name_from_text(out, text, name_to_text(text, name), NULL, &why), n);
		cr_assert_arr_eq(out, name, n);
		cr_assert_eq(name_from_message(out, name, n, &pos), n);
		cr_assert_eq(pos, n);
		for (size_t cut = 0; cut < n; cut++) {
			pos = 0;
			cr_assert_eq(name_wire_bytes(name, cut), 0);
			cr_assert_eq(name_from_message(out, name, cut, &pos), 0);
			cr_assert_eq(pos, 0, "pos stays where it was");
		}
	}
}

Test(name, wire_bytes_refuses_what_is_no_plain_name)
{
	static const uint8_t pointer[] = { 1, 'a', 0xc0, 0 }, type01[] = { 0x40, 0 }, type10[] = { 0x80, 0 };
	uint8_t longest[300];

	cr_assert_eq(name_wire_bytes(pointer, sizeof pointer), 0);
	cr_assert_eq(name_wire_bytes(type01, sizeof type01), 0);
	cr_assert_eq(name_wire_bytes(type10, sizeof type10), 0);
	cr_assert_eq(name_wire_bytes(root, 0), 0);
	cr_assert_eq(name_wire_bytes(root, 1), 1);
	memset(longest, 1, sizeof longest);
	longest[254] = 0;
	cr_assert_eq(name_wire_bytes(longest, sizeof longest), 255);
	longest[254] = 1;
	longest[256] = 0;
	cr_assert_eq(name_wire_bytes(longest, sizeof longest), 0);
}

Test(name, lower_and_hash)
{
	uint8_t in[256 + NAME_LOWER_SLACK_BYTES], out[256 + NAME_LOWER_SLACK_BYTES], wide[256 + NAME_LOWER_SLACK_BYTES];

	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)i;
	for (size_t n = 0; n <= 256; n++) {
		memset(out, 0xee, sizeof out);
		name_lower(out, in, n);
		name_lower_inline(wide, in, n);
		for (size_t i = 0; i < n; i++) {
			cr_assert_eq(out[i], in[i] >= 'A' && in[i] <= 'Z' ? in[i] + 32 : in[i]);
			cr_assert_eq(out[i], wide[i]);
		}
		cr_assert_eq(out[n], 0xee, "nothing behind the name is written");
	}
	name_lower(in, in, 256);
	cr_assert_arr_eq(in, out, 256);
	/* Images on disk hold these values. */
	for (size_t bytes = 1; bytes <= NAME_MAX_BYTES; bytes++)
		cr_assert_eq(name_hash(out, bytes), name_hash_inline(out, bytes));
	size_t n = wire(out, "example.net.");
	cr_assert_eq(name_hash(out, n), UINT64_C(0x257448e8d7a28dfc));
}

Test(name, canonical_order_of_rfc_4034_section_6_1)
{
	static const char *const sorted[] = {
		".",	      "example.",	  "a.example.",	  "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.",
		"z.example.", "\\001.z.example.", "*.z.example.", "\\200.z.example.",	 "example2."
	};

	for (size_t i = 0; i < ARRAY_LEN(sorted); i++) {
		for (size_t j = 0; j < ARRAY_LEN(sorted); j++) {
			uint8_t a[NAME_MAX_BYTES], b[NAME_MAX_BYTES];
			int order;

			wire(a, sorted[i]);
			wire(b, sorted[j]);
			order = name_compare(a, b);
			cr_assert((order < 0) == (i < j) && (order > 0) == (i > j), "%s %s", sorted[i], sorted[j]);
			cr_assert_eq(name_equal(a, b), i == j);
		}
	}
}

Test(name, relations)
{
	static const struct {
		const char *name, *parent;
		bool below;
		unsigned common;
	} cases[] = {
		{ "a.b.", "b.", true, 1 },    { "A.B.", "a.b.", true, 2 },	{ "b.", "a.b.", false, 1 },
		{ "xb.", "b.", false, 0 },    { "a.b.", ".", true, 0 },		{ ".", ".", true, 0 },
		{ "a\\.b.", "b.", false, 0 }, { "c.a.b.", "d.a.b.", false, 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t a[NAME_MAX_BYTES], b[NAME_MAX_BYTES];

		wire(a, cases[i].name);
		wire(b, cases[i].parent);
		cr_assert_eq(name_is_at_or_below(a, b), cases[i].below, "%s %s", cases[i].name, cases[i].parent);
		cr_assert_eq(name_common_labels(a, b), cases[i].common, "%s %s", cases[i].name, cases[i].parent);
	}
	uint8_t name[NAME_MAX_BYTES];

	wire(name, "*.a.");
	cr_assert(name_is_wildcard(name));
	wire(name, "*a.");
	cr_assert_not(name_is_wildcard(name));
	wire(name, "a.*.");
	cr_assert_not(name_is_wildcard(name));
	cr_assert_not(name_is_wildcard(root));
	cr_assert_eq(name_suffix_offset(name, 0), 0);
	cr_assert_eq(name_suffix_offset(name, 1), 2);
	cr_assert_eq(name_suffix_offset(name, 2), 4);
}

Test(name, concat_and_replace_suffix)
{
	uint8_t name[NAME_MAX_BYTES], from[NAME_MAX_BYTES], to[NAME_MAX_BYTES], out[NAME_MAX_BYTES];
	char text[NAME_TEXT_MAX_BYTES];

	wire(name, "a.b.old.example.");
	wire(from, "OLD.example.");
	wire(to, "new.");
	cr_assert_eq(name_replace_suffix(out, name, from, to), 9);
	name_to_text(text, out);
	cr_assert_str_eq(text, "a.b.new.");
	cr_assert_eq(name_replace_suffix(out, name, root, to), 21);
	cr_assert_eq(name_replace_suffix(out, name, name, to), 5);
	memset(name, 1, sizeof name);
	name[254] = 0;
	cr_assert_eq(name_concat(out, name, 250, to), 255);
	cr_assert_eq(name_concat(out, name, 252, to), 0);
	cr_assert_eq(name_replace_suffix(out, name, root, to), 0, "YXDOMAIN");
}

Test(name, from_message_pointers)
{
	static const struct {
		const char *why;
		uint8_t msg[16];
		size_t msg_bytes, pos, name_bytes, end;
	} cases[] = {
		{ "a pointer backwards", { 1, 'a', 0, 1, 'b', 0xc0, 0 }, 7, 3, 5, 7 },
		{ "a pointer to a pointer", { 1, 'a', 0, 0xc0, 0, 0xc0, 3 }, 7, 5, 3, 7 },
		{ "a pointer to the root octet", { 0, 1, 'b', 0xc0, 0 }, 5, 1, 3, 5 },
		{ "a pointer to itself", { 0xc0, 0 }, 2, 0, 0, 0 },
		{ "a pointer to its own labels", { 1, 'a', 0xc0, 0 }, 4, 0, 0, 0 },
		{ "a pointer forwards", { 0xc0, 2, 0 }, 3, 0, 0, 0 },
		{ "two pointers that chase each other", { 0xc0, 2, 0xc0, 0 }, 4, 2, 0, 0 },
		{ "half a pointer", { 0, 0xc0 }, 2, 1, 0, 0 },
		{ "a target whose labels run into the pointer", { 3, 'a', 'b', 'c', 0xc0, 0 }, 6, 4, 0, 0 },
		{ "label type 01", { 0x41, 0 }, 2, 0, 0, 0 },
		{ "label type 10", { 0x80, 0 }, 2, 0, 0, 0 },
		{ "start behind the end", { 0 }, 1, 1, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t out[NAME_MAX_BYTES];
		size_t pos = cases[i].pos;

		cr_assert_eq(name_from_message(out, cases[i].msg, cases[i].msg_bytes, &pos), cases[i].name_bytes, "%s",
			     cases[i].why);
		cr_assert_eq(pos, cases[i].name_bytes ? cases[i].end : cases[i].pos, "%s", cases[i].why);
	}
}

Test(name, from_message_bounds_pointers)
{
	uint8_t msg[1 + 2 * (NAME_MAX_POINTERS + 1)], out[NAME_MAX_BYTES];
	size_t pos;

	msg[0] = 0;
	for (unsigned i = 0; i <= NAME_MAX_POINTERS; i++) { /* each pointer leads to the one before it */
		msg[1 + 2 * i] = 0xc0;
		msg[2 + 2 * i] = (uint8_t)(i == 0 ? 0 : 2 * i - 1);
	}
	pos = sizeof msg - 4;
	cr_assert_eq(name_from_message(out, msg, sizeof msg, &pos), 1);
	pos = sizeof msg - 2;
	cr_assert_eq(name_from_message(out, msg, sizeof msg, &pos), 0);
}

Test(name, compression_is_undone_by_reading)
{
	size_t saved = 0;

	seed_state = 7;
	for (int round = 0; round < 500; round++) {
		uint8_t names[40][NAME_MAX_BYTES];
		size_t bytes[40], at[40], pos = 12, plain = 12;
		static uint8_t msg[40 * NAME_MAX_BYTES];
		struct name_compressor c;

		name_compressor_init(&c);
		for (int i = 0; i < 40; i++) {
			bytes[i] = i > 0 && pick(3) ? name_concat(names[i], (const uint8_t *)"\1x\1Y", 2 * pick(3),
								  names[pick((uint32_t)i)])
						    : random_name(names[i]);
			if (bytes[i] == 0)
				bytes[i] = random_name(names[i]);
			at[i] = pos;
			plain += bytes[i];
			cr_assert(name_to_message(&c, msg, sizeof msg, &pos, names[i], pick(4) != 0));
		}
		cr_assert_leq(pos, plain);
		saved += plain - pos;
		for (int i = 0; i < 40; i++) {
			uint8_t out[NAME_MAX_BYTES];
			size_t p = at[i];

			cr_assert_eq(name_from_message(out, msg, pos, &p), bytes[i]);
			cr_assert(name_equal(out, names[i]));
			cr_assert_eq(p, i < 39 ? at[i + 1] : pos);
		}
	}
	cr_assert_gt(saved, 500 * 20, "names were compressed at all");
}

Test(name, to_message_leaves_pos_alone_when_it_does_not_fit)
{
	uint8_t msg[64], name[NAME_MAX_BYTES];
	struct name_compressor c;
	size_t pos = 12;

	name_compressor_init(&c);
	wire(name, "www.example.net.");
	cr_assert_not(name_to_message(&c, msg, 12 + 16, &pos, name, true));
	cr_assert_eq(pos, 12);
	cr_assert(name_to_message(&c, msg, 12 + 17, &pos, name, true));
	cr_assert_not(name_to_message(&c, msg, pos + 1, &pos, name, true));
	cr_assert(name_to_message(&c, msg, pos + 2, &pos, name, true));
	cr_assert_eq(pos, 12 + 17 + 2);
	cr_assert_not(name_to_message(&c, msg, pos, &pos, root, true));
	cr_assert_not(name_to_message(&c, msg, 3, &pos, root, true), "a limit before pos");
	cr_assert_eq(pos, 12 + 17 + 2);
}
