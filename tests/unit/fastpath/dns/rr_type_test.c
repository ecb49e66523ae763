/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/rr_type.h"

#include <criterion/criterion.h>
#include <ctype.h>

static bool known(const char *text, uint16_t *type) { return rr_type_from_text(text, strlen(text), type); }

Test(rr_type, every_number_survives_text_in_any_case)
{
	unsigned named = 0;

	for (unsigned type = 0; type <= UINT16_MAX; type++) {
		const struct rr_type_info *info = rr_type_info((uint16_t)type);
		char text[16];
		uint16_t back;
		size_t n = rr_type_to_text(text, (uint16_t)type);

		cr_assert_eq(strlen(text), n);
		cr_assert(rr_type_from_text(text, n, &back));
		cr_assert_eq(back, type, "%s", text);
		for (size_t i = 0; i < n; i++)
			text[i] = (char)(i % 2 ? tolower((unsigned char)text[i]) : text[i]);
		cr_assert(rr_type_from_text(text, n, &back));
		cr_assert_eq(back, type, "%s", text);
		if (info->mnemonic == NULL) {
			cr_assert_eq(info->field[0].kind, RDF_UNKNOWN);
			continue;
		}
		cr_assert_eq(info->type, type);
		named++;
	}
	cr_assert_geq(named, 95);
}

Test(rr_type, mnemonics_and_numbers)
{
	static const struct {
		const char *text;
		int type;
	} cases[] = {
		{ "A", 1 },
		{ "aaaa", 28 },
		{ "NSAP-PTR", 23 },
		{ "nsec3param", 51 },
		{ "OpenPGPKey", 61 },
		{ "HTTPS", 65 },
		{ "ANY", 255 },
		{ "AXFR", 252 },
		{ "TA", 32768 },
		{ "DLV", 32769 },
		{ "TYPE1", 1 },
		{ "type65535", 65535 },
		{ "TYPE0", 0 },
		{ "TYPE00001", 1 },
		{ "TYPE", -1 },
		{ "TYPE65536", -1 },
		{ "TYPE-1", -1 },
		{ "TYPE1x", -1 },
		{ "", -1 },
		{ "AA", -1 },
		{ "AAAAA", -1 },
		{ "NSAP-PTRX", -1 },
		{ "OPENPGPKEYOPENPGPKEY", -1 },
		{ "4705", -1 },
		{ "app", -1 },
		{ "TYPE4294967297", -1 },
		{ "WALLET", 262 },
		{ "DSYNC", 66 },
		{ "NXNAME", 128 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint16_t type = 4711;

		cr_assert_eq(known(cases[i].text, &type), cases[i].type >= 0, "%s", cases[i].text);
		cr_assert_eq(type, cases[i].type >= 0 ? cases[i].type : 4711, "%s", cases[i].text);
	}
	uint16_t type;

	cr_assert_not(rr_type_from_text("A\0", 2, &type), "a NUL is no padding");
}

Test(rr_type, flags)
{
	static const struct {
		uint16_t type;
		uint8_t flags;
	} cases[] = {
		{ RR_CNAME, RR_TYPE_F_SINGLETON },
		{ RR_DNAME, RR_TYPE_F_SINGLETON },
		{ RR_SOA, RR_TYPE_F_SINGLETON },
		{ RR_DS, RR_TYPE_F_AT_PARENT },
		{ RR_OPT, RR_TYPE_F_META },
		{ RR_ANY, RR_TYPE_F_META },
		{ RR_A, RR_TYPE_F_CLASS_IN },
		{ 200, RR_TYPE_F_META },
		{ 0, RR_TYPE_F_META },
		{ 1000, 0 },
		{ RR_TXT, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(rr_type_info(cases[i].type)->flags, cases[i].flags, "type %u", cases[i].type);
}

Test(rr_type, name_flags_follow_rfc_3597_4034_and_6840)
{
	static const uint16_t compressed[] = { 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15 };
	static const uint16_t read_compressed[] = { 17, 18, 21, 24, 26, 30, 33, 35 };
	static const uint16_t lowered[] = { 2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15, 17, 18, 21, 24, 26, 30, 33, 35, 36, 38, 39, 46 };

	for (unsigned type = 0; type <= UINT16_MAX; type++) {
		uint8_t flags = 0;
		bool in[3] = { false };

		for (unsigned f = 0; f < RR_TYPE_MAX_FIELDS; f++)
			if (rr_type_info((uint16_t)type)->field[f].kind == RDF_NAME || type == 38)
				flags |= rr_type_info((uint16_t)type)->field[f].flags;
		for (size_t i = 0; i < ARRAY_LEN(compressed); i++)
			in[0] |= compressed[i] == type;
		for (size_t i = 0; i < ARRAY_LEN(read_compressed); i++)
			in[1] |= read_compressed[i] == type;
		for (size_t i = 0; i < ARRAY_LEN(lowered); i++)
			in[2] |= lowered[i] == type;
		cr_assert_eq((flags & RDF_F_COMPRESS) != 0, in[0], "type %u", type);
		cr_assert_eq((flags & RDF_F_DECOMPRESS) != 0, in[1], "type %u", type);
		cr_assert_eq((flags & RDF_F_LOWER) != 0, in[2], "type %u", type);
	}
}

Test(rr_type, classes)
{
	static const struct {
		const char *text;
		int class_;
		const char *back;
	} cases[] = {
		{ "IN", 1, "IN" },	    { "in", 1, "IN" },	   { "CH", 3, "CH" },
		{ "chaos", 3, "CH" },	    { "HS", 4, "HS" },	   { "ANY", 255, "ANY" },
		{ "NONE", 254, "NONE" },    { "CLASS1", 1, "IN" }, { "class77", 77, "CLASS77" },
		{ "CLASS65536", -1, NULL }, { "CLASS", -1, NULL }, { "I", -1, NULL },
		{ "INN", -1, NULL },	    { "", -1, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint16_t class_ = 0;
		char text[16];

		cr_assert_eq(rr_class_from_text(cases[i].text, strlen(cases[i].text), &class_), cases[i].class_ >= 0);
		if (cases[i].class_ < 0)
			continue;
		cr_assert_eq(class_, cases[i].class_);
		cr_assert_eq(rr_class_to_text(text, class_), strlen(cases[i].back));
		cr_assert_str_eq(text, cases[i].back);
	}
}

Test(rr_type, rcode_text_is_never_null)
{
	cr_assert_str_eq(rcode_text(RCODE_REFUSED), "REFUSED");
	cr_assert_str_eq(rcode_text(RCODE_BADCOOKIE), "BADCOOKIE");
	for (unsigned rcode = 0; rcode < 5000; rcode++)
		cr_assert_not_null(rcode_text(rcode));
}
