/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "dns/master.h"
#include "table/zone_build.h"
#include "table/zone_check_internal.h"

#define OUTPUT_BYTES 16384

/* Findings as text: "id@line " each, errors with a "!" in front. */
static char output[OUTPUT_BYTES];
static char last_text[4096];
static struct zone_check_result result;

static bool on_record(void *user, const struct master_record *record) { return zone_build_add(user, record) == ERR_OK; }

static bool on_error(void *user, struct master_place place, const char *message)
{
	(void)user;
	cr_assert_fail("the test's own zone: line %u: %s", place.line, message);
	return false;
}

static void on_finding(void *user, const struct zone_finding *f)
{
	size_t used = strlen(output);

	cr_assert_eq(user, output);
	snprintf(output + used, sizeof(output) - used, "%s%s%s@%u", used > 0 ? " " : "", f->level == ZONE_ERROR ? "!" : "", f->id,
		 f->place.line);
	snprintf(last_text, sizeof(last_text), "%s", f->text);
	cr_assert_eq(f->place.line > 0, f->place.file != NULL);
}

static void check_text(const char *apex, const char *text)
{
	uint8_t origin[NAME_MAX_BYTES];
	const char *why;
	struct zone_build *build;
	struct master_file file = { "z", text, strlen(text) };
	struct master_options options = {
		.origin = origin, .class_ = RR_CLASS_IN, .default_ttl_s = 300, .has_default_ttl = true
	};
	struct master_callbacks callbacks = { .record = on_record, .error = on_error };

	cr_assert_neq(name_from_text(origin, apex, strlen(apex), NULL, &why), 0);
	cr_assert_eq(zone_build_create(&build, origin, RR_CLASS_IN, 1 << 24), ERR_OK);
	callbacks.user = build;
	cr_assert(!master_read(&file, &options, &callbacks).stopped);
	output[0] = last_text[0] = '\0';
	result = zone_check(build, on_finding, output);
	zone_build_destroy(build);
}

struct check_case {
	const char *what, *text, *expected;
};

/* The texts stand behind two lines with SOA and NS, so that their own lines count from 3. */
static void check_cases(const struct check_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *text = malloc(strlen(cases[i].text) + 200);

		sprintf(text, "@ SOA ns.example.net. hm.example.net. 1 3600 900 604800 60\n@ NS ns.example.net.\n%s",
			cases[i].text);
		check_text("example.", text);
		cr_expect_str_eq(output, cases[i].expected, "%s: got \"%s\", expected \"%s\"", cases[i].what, output,
				 cases[i].expected);
		free(text);
	}
}

Test(zone_check, apex)
{
	check_text("example.", "");
	cr_expect_str_eq(output, "!soa-missing@0 !ns-missing@0");
	cr_expect_eq(result.errors, 2);
	cr_expect_eq(result.warnings, 0);
	check_text("example.", "@ NS ns.example.net.\n");
	cr_expect_str_eq(output, "!soa-missing@0");
	check_text("example.", "@ SOA . . 1 2 3 4 5\n");
	cr_expect_str_eq(output, "!ns-missing@0");
	check_text("example.", "a.b. SOA . . 1 2 3 4 5\na.b. NS .\n");
	cr_expect_str_eq(output, "!soa-missing@0 !ns-missing@0 out-of-zone@2");
	check_text(".", "@ SOA . . 1 2 3 4 5\n@ NS a.b.\na.b. A 192.0.2.1\n");
	cr_expect_str_eq(output, "");
	check_text(".", "@ SOA . . 1 2 3 4 5\n@ NS a.b.\n");
	cr_expect_str_eq(output, "!ns-no-address@2");
}

Test(zone_check, structure)
{
	static const struct check_case cases[] = {
		{ "a good zone", "a A 192.0.2.1\n*.b TXT x\nc CNAME a\nd DNAME e\n", "" },
		{ "a second SOA", "@ SOA . . 2 2 3 4 5\n", "!soa-multiple@1" },
		{ "the same SOA again", "@ SOA NS.example.net. hm.example.net. 1 3600 900 604800 60\n", "duplicate@3" },
		{ "an SOA elsewhere", "a SOA . . 2 2 3 4 5\n", "!soa-not-at-apex@3" },
		{ "CNAME and other data", "a CNAME b\na TXT x\na A 192.0.2.1\n", "!cname-and-other-data@5" },
		{ "CNAME and DNAME", "a CNAME b\na DNAME c\n", "!cname-and-other-data@4" },
		{ "what may stand beside a CNAME",
		  "a CNAME b\na KEY 512 3 1 AQNR\na NSEC b CNAME NSEC\n"
		  "a RRSIG CNAME 13 2 300 20370101000000 20250101000000 1 example. AAAA\n",
		  "" },
		{ "two CNAMEs", "a CNAME b\nx A 192.0.2.1\na CNAME c\n", "!cname-multiple@5" },
		{ "the same CNAME twice", "a CNAME b\na CNAME B\n", "duplicate@4" },
		{ "two DNAMEs", "a DNAME b\na DNAME c\n", "!dname-multiple@4" },
		{ "a DNAME at a wildcard", "*.a DNAME b\n", "dname-at-wildcard@3" },
		{ "a DNAME at a cut", "a DNAME b\na NS ns.example.net.\n", "dname-beside-ns@3" },
		{ "a DNAME at the apex hides the rest", "@ DNAME example.org.\na A 192.0.2.1\n", "occluded-by-dname@4" },
		{ "NS at a wildcard", "*.a NS ns.example.net.\n", "!ns-at-wildcard@3" },
		{ "* in the middle", "a.*.b A 192.0.2.1\n*.*.c TXT x\n* TXT x\n",
		  "wildcard-inside@3 owner-not-host@3 wildcard-inside@4" },
		{ "out of the zone, once a name",
		  "a.example.net. A 192.0.2.1\na.example.net. TXT x\nexample. NS x.\nnet. TXT x\nxexample. TXT x\n",
		  "out-of-zone@3 out-of-zone@6 out-of-zone@7" },
		{ "duplicates, in other forms too", "a TXT x\na TXT \"x\"\na TXT X\nb MX 1 x.\nb MX 1 X.\na TXT x\n",
		  "duplicate@8 duplicate@4 duplicate@7" },
		{ "different TTLs", "a 5 TXT x\na 7 TXT y\na 6 TXT z\n", "ttl-mismatch@4" },
		{ "signatures have TTLs of their own",
		  "a 5 TXT x\na 7 A 192.0.2.1\n"
		  "a 5 RRSIG TXT 13 2 5 20370101000000 20250101000000 1 example. AAAA\n"
		  "a 7 RRSIG A 13 2 7 20370101000000 20250101000000 1 example. AAAA\n",
		  "" },
		{ "SPF alone", "a SPF \"v=spf1 -all\"\nb SPF \"v=spf1 -all\"\nb TXT \"v=spf1 -all\"\nc SPF x\nc TXT v=spf\n",
		  "spf-without-txt@3 spf-without-txt@6" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(zone_check, delegations)
{
	static const struct check_case cases[] = {
		{ "with glue", "a NS ns.a\nns.a A 192.0.2.1\nb NS b\nb AAAA 2001:db8::1\n", "" },
		{ "glue missing", "a NS ns.a\n", "glue-missing@3" },
		{ "other data at the glue's name only", "a NS ns.a\nns.a TXT x\n", "glue-missing@3 occluded-by-delegation@4" },
		{ "sibling glue", "a NS ns.b\nb NS ns.a\nns.a A 192.0.2.1\nns.b A 192.0.2.2\n", "" },
		{ "sibling glue missing", "a NS ns.b\nb NS ns.example.net.\n", "sibling-glue-missing@3" },
		{ "a server without addresses", "a NS b\nc NS d\nd TXT x\n", "delegation-no-address@3 delegation-no-address@4" },
		{ "a server that a wildcard makes", "a NS x.b\n*.b A 192.0.2.1\n", "" },
		{ "a server that is an alias", "a NS b\nb CNAME c\nd NS x.e\n*.e CNAME c\n",
		  "delegation-is-cname@3 delegation-is-cname@5" },
		{ "a server below a DNAME", "a NS x.y.b\nb DNAME c\n", "delegation-below-dname@3" },
		{ "data below a cut",
		  "a NS ns.example.net.\nb.a TXT x\nc.a A 192.0.2.1\na TXT y\na DS 1 13 2 "
		  "0000000000000000000000000000000000000000000000000000000000000000\n",
		  "occluded-by-delegation@6 occluded-by-delegation@4 occluded-by-delegation@5" },
		{ "glue that only a lower cut names", "a NS ns.example.net.\nb.a NS ns.b.a\nns.b.a A 192.0.2.1\n",
		  "occluded-by-delegation@4" },
		{ "data below a DNAME", "a DNAME b\nx.a TXT x\ny.x.a A 192.0.2.1\n", "occluded-by-dname@4 occluded-by-dname@5" },
		{ "a DNAME below a cut: the cut is what hides", "a NS ns.example.net.\nb.a DNAME c\nd.b.a TXT x\n",
		  "occluded-by-delegation@4 occluded-by-delegation@5" },
		{ "servers of the zone itself", "@ NS a\n@ NS b\nb CNAME c\n@ NS x.d\nd DNAME e\n@ NS f\nf AAAA 2001:db8::1\n",
		  "!ns-no-address@3 !ns-is-cname@4 !ns-below-dname@6" },
		{ "a server of the zone below a cut", "@ NS ns.a\na NS ns.example.net.\n", "" },
		{ "addresses for names", "@ NS 192.0.2.1.\na NS 192.0.2.1\nb NS 192.0.2.256.\n",
		  "ns-is-address@3 ns-is-address@4 delegation-no-address@4" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(zone_check, mail_and_services)
{
	static const struct check_case cases[] = {
		{ "good ones",
		  "a MX 1 b\nb A 192.0.2.1\nc MX 0 .\nd MX 1 x.example.net.\n_s._tcp SRV 1 1 1 b\n_t._tcp SRV 0 0 0 .\n", "" },
		{ "no address", "a MX 1 b\n_s._tcp SRV 1 1 1 b\nb TXT x\n", "mx-no-address@3 srv-no-address@4" },
		{ "no such name", "a MX 1 b\n_s._tcp SRV 1 1 1 b.c\n", "mx-no-address@3 srv-no-address@4" },
		{ "an alias", "a MX 1 b\n_s._tcp SRV 1 1 1 b\nb CNAME x.example.net.\n", "mx-is-cname@3 srv-is-cname@4" },
		{ "below a DNAME", "a MX 1 x.b\n_s._tcp SRV 1 1 1 x.b\nb DNAME x.example.net.\n",
		  "mx-below-dname@3 srv-below-dname@4" },
		{ "delegated: not ours to know", "a MX 1 x.b\nb NS x.example.net.\n", "" },
		{ "an address", "a MX 1 192.0.2.1.\n", "mx-is-address@3" },
		{ "at names that are never served themselves", "b NS x.example.net.\na.b MX 1 nothing\n",
		  "occluded-by-delegation@4" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(zone_check, host_names)
{
	static const struct check_case cases[] = {
		{ "owners",
		  "a_b A 192.0.2.1\n-a AAAA 2001:db8::1\na- MX 0 .\n1-a A 192.0.2.1\n*.a A 192.0.2.1\n*.a_ A 192.0.2.1\na_c TXT "
		  "x\n_a._b SRV 0 0 0 .\n",
		  "owner-not-host@3 owner-not-host@4 owner-not-host@5 owner-not-host@8" },
		{ "known exceptions",
		  "gc._msdcs A 192.0.2.1\nx._spf A 192.0.2.1\ny._SPF_rate.z A 192.0.2.1\nx._spf MX 0 .\n_msdcs A 192.0.2.1\n",
		  "owner-not-host@7 owner-not-host@6" },
		{ "data",
		  "a MX 1 a_b.net.\nb NS a_b.net.\n_c._tcp SRV 1 1 1 a_b.net.\nd CNAME a_b.net.\ne PTR a_b.net.\nf RP a_b.c.net. "
		  "d_e.\ng RP a.b_c.net. .\n",
		  "target-not-host@3 target-not-host@4 target-not-host@5 target-not-host@9" },
	};

	check_cases(cases, ARRAY_LEN(cases));
	check_text("2.0.192.in-addr.arpa.", "@ SOA n_s.a. h_m.a. 1 2 3 4 5\n@ NS ns.a.\n1 PTR a_b.c.\n2 PTR a.c.\n");
	cr_expect_str_eq(output, "target-not-host@1 target-not-host@3", "%s", output);
	check_text("example.", "@ SOA ns.a. hm.a_b. 1 2 3 4 5\n@ NS ns.a.\n");
	cr_expect_str_eq(output, "target-not-host@1");
	cr_expect_str_eq(last_text, "example.: SOA hm.a_b. is no mailbox name", "%s", last_text);
}

#define N3 "2T7B4G4VSA5SMI47K61MV5BV1A22BOJR"
#define DS " DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n"

Test(zone_check, dnssec)
{
	static const struct check_case cases[] = {
		{ "DS", "@" DS "a" DS "b" DS "b NS ns.example.net.\n", "ds-at-apex@3 ds-without-delegation@4" },
		{ "keys", "@ DNSKEY 256 3 13 AAAA\na DNSKEY 256 3 13 AAAA\nb CDS 0 0 0 00\nc NSEC3PARAM 1 0 0 -\n",
		  "dnskey-not-at-apex@4 dnskey-not-at-apex@5 nsec3param-not-at-apex@6" },
		{ "a chain and its parameters", "@ NSEC3PARAM 1 0 2 AB\n" N3 " NSEC3 1 1 2 AB " N3 " A\n", "" },
		{ "parameters without a chain", "@ NSEC3PARAM 1 0 2 AB\n", "nsec3param-without-chain@3" },
		{ "another salt", "@ NSEC3PARAM 1 0 2 AB\n" N3 " NSEC3 1 1 2 AC " N3 " A\n",
		  "nsec3-without-param@4 nsec3param-without-chain@3" },
		{ "other iterations", "@ NSEC3PARAM 1 0 2 AB\n" N3 " NSEC3 1 1 3 AB " N3 " A\n",
		  "nsec3-without-param@4 nsec3param-without-chain@3" },
		{ "a chain without parameters", N3 " NSEC3 1 1 3 - " N3 " A\n", "nsec3-without-param@3" },
		{ "an unknown algorithm", "@ NSEC3PARAM 2 0 0 -\n", "nsec3param-without-chain@3 !nsec3param-algorithm@3" },
		{ "many iterations", "@ NSEC3PARAM 1 0 151 -\n" N3 " NSEC3 1 1 151 - " N3 " A\n", "nsec3-iterations@3" },
		{ "NSEC3 owners",
		  "@ NSEC3PARAM 1 0 0 -\na NSEC3 1 0 0 - " N3 " A\n*." N3 " NSEC3 1 0 0 - " N3 " A\n" N3 ".x NSEC3 1 0 0 - " N3
		  " A\n",
		  "!nsec3-owner@4 !nsec3-owner@5 !nsec3-owner@6" },
		{ "a signature of nothing",
		  "a A 192.0.2.1\na RRSIG AAAA 13 2 300 20370101000000 20250101000000 1 example. AAAA\n"
		  "a RRSIG A 13 2 300 20370101000000 20250101000000 1 example. AAAA\n",
		  "rrsig-without-rrset@4" },
	};

	check_cases(cases, ARRAY_LEN(cases));
}

Test(zone_check, large_rrsets)
{
	enum { LENGTH = 65535 - 12 - 255 - 12 };
	char *text = malloc(4 * LENGTH), *p;

	for (int over = 0; over < 2; over++) {
		p = text + sprintf(text, "@ SOA . . 1 2 3 4 5\n@ NS ns.a.\na TYPE65534 \\# %d ", LENGTH + over);
		for (int i = 0; i < LENGTH + over; i++)
			p = stpcpy(p, "00");
		strcpy(p, "\n");
		check_text("example.", text);
		cr_expect_str_eq(output, over ? "!rrset-too-large@3" : "");
	}
	p = text + sprintf(text, "@ SOA . . 1 2 3 4 5\n@ NS ns.a.\n");
	for (int i = 0; i < 4079; i++)
		p += sprintf(p, "a A 10.0.%d.%d\n", i / 256, i % 256);
	check_text("example.", text);
	cr_expect_str_eq(output, "", "4079 * 16 octets fit");
	sprintf(p, "a A 10.1.0.0\n");
	check_text("example.", text);
	cr_expect_str_eq(output, "!rrset-too-large@3", "%s", output);
	free(text);
}

Test(zone_check, can_be_repeated)
{
	uint8_t origin[] = "\7example";
	struct zone_build *build;
	struct zone_check_result again;
	static const uint8_t soa[] = { 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1 };
	struct master_record record = { .owner = origin,
					.owner_bytes = sizeof(origin),
					.type = RR_SOA,
					.class_ = RR_CLASS_IN,
					.rdata = soa,
					.rdata_bytes = sizeof(soa) };

	cr_assert_eq(zone_build_create(&build, origin, RR_CLASS_IN, 1 << 20), ERR_OK);
	cr_assert_eq(zone_build_add(build, &record), ERR_OK);
	output[0] = '\0';
	result = zone_check(build, on_finding, output);
	again = zone_check(build, on_finding, output);
	cr_expect_str_eq(output, "!ns-missing@0 !ns-missing@0");
	cr_expect_eq(result.errors, again.errors);
	zone_build_destroy(build);
}

Test(zone_check, every_check_is_documented)
{
	static const char *ids[] = {
#define X(e, id, level) "\n| " id " | ",
		ZONE_CHECKS(X)
#undef X
	};
	static char page[65536];
	FILE *f = fopen("docs/zone-checks.md", "r");
	size_t rows = 0;

	cr_assert_not_null(f, "tests run in the top folder");
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	fclose(f);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		cr_expect_not_null(strstr(page, ids[i]), "docs/zone-checks.md lacks %s", ids[i]);
	for (const char *p = page; (p = strstr(p, "\n| ")) != NULL; p++)
		rows++;
	cr_expect_eq(rows, ARRAY_LEN(ids) + 2, "docs/zone-checks.md has checks that are none");
}
