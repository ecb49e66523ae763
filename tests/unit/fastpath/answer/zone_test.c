/* SPDX-License-Identifier: Apache-2.0 */
/* The authoritative algorithm, case by case: question, expected response in text. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "dns/rr_type.h"
#include "tests/unit/lib/zones.h"

#define SOA_TEXT "ns1.example. host.example. 1 7200 900 1209600 60"
#define SOA "example. 60 SOA " SOA_TEXT

static const char example_zone[] =
	"@ 3600 SOA ns1 host 1 7200 900 1209600 60\n"
	"@ NS ns1\n@ NS ns2.other.test.\n@ MX 10 mail\n@ TXT \"hello\"\n"
	"ns1 A 192.0.2.1\nns1 AAAA 2001:db8::1\n"
	"mail A 192.0.2.2\nmail MX 5 mail\n"
	"www CNAME web\nweb A 192.0.2.3\nweb A 192.0.2.4\n"
	"alias CNAME www\nout CNAME x.other.test.\nhop CNAME a.b.third.test.\nunserved CNAME a.nowhere.test.\nbroken CNAME nx\n"
	"loop1 CNAME loop2\nloop2 CNAME loop1\nself CNAME self\n"
	"a.ent.deep TXT \"x\"\n"
	"*.wild A 192.0.2.9\n*.wild TXT \"w\"\nsub.wild A 192.0.2.10\n*.wc CNAME web\n*.wnx CNAME nothere\n"
	"deleg NS ns.deleg\ndeleg NS ns1\nns.deleg A 192.0.2.20\nns.deleg AAAA 2001:db8::20\nocc.deleg TXT \"occluded\"\n"
	"sec NS ns1\nsec DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n"
	"dn DNAME target.third.test.\nin DNAME web\ninto DNAME deep\n"
	"_s._tcp SRV 1 2 3 mail\n_s._tcp SRV 1 2 3 web\nsvc HTTPS 1 . alpn=h2\nsvc A 192.0.2.30\n"
	"UPPER A 192.0.2.40\n";
static const char third_zone[] =
	"@ 3600 SOA ns host 7 1 1 1 30\n@ NS ns\nns A 192.0.2.50\na.b A 192.0.2.51\nx.target A 192.0.2.52\n";
static const char child_zone[] = "@ 3600 SOA ns host 9 1 1 1 30\n@ NS ns\nns A 192.0.2.60\n";

static struct snapshot *snapshot;

static void setup(void)
{
	const struct zones_text zones[] = {
		{ "example.", example_zone },
		{ "third.test.", third_zone },
		{ "sec.example.", child_zone },
		{ "unusable.", NULL },
	};
	snapshot = zones_snapshot(zones, ARRAY_LEN(zones));
}
static void teardown(void) { snapshot_destroy(snapshot); }
TestSuite(zone_answer, .init = setup, .fini = teardown);

/* clang-format off */
struct test_case { const char *sentence; struct zones_ask ask; const char *expected; };

static const struct test_case cases[] = {
	{ "an exact match", { .name = "web.example.", .type = RR_A },
	  "NOERROR aa | web.example. 300 A 192.0.2.3; web.example. 300 A 192.0.2.4 | |" },
	{ "letter case of the question is kept", { .name = "WeB.eXaMple.", .type = RR_A },
	  "NOERROR aa | WeB.eXaMple. 300 A 192.0.2.3; WeB.eXaMple. 300 A 192.0.2.4 | |" },
	{ "letter case of the zone does not matter", { .name = "upper.example.", .type = RR_A }, "NOERROR aa | upper.example. 300 A 192.0.2.40 | |" },
	{ "NODATA has the SOA with the negative TTL", { .name = "web.example.", .type = RR_TXT }, "NOERROR aa | | " SOA " |" },
	{ "NXDOMAIN has it too", { .name = "nx.example.", .type = RR_A }, "NXDOMAIN aa | | " SOA " |" },
	{ "an empty non-terminal exists", { .name = "ent.deep.example.", .type = RR_A }, "NOERROR aa | | " SOA " |" },
	{ "a name below an empty non-terminal does not", { .name = "b.ent.deep.example.", .type = RR_A }, "NXDOMAIN aa | | " SOA " |" },
	{ "the apex answers with addresses of its servers", { .name = "example.", .type = RR_NS },
	  "NOERROR aa | example. 300 NS ns1.example.; example. 300 NS ns2.other.test. | | ns1.example. 300 A 192.0.2.1; "
	  "ns1.example. 300 AAAA 2001:db8::1" },
	{ "MX brings its address", { .name = "example.", .type = RR_MX }, "NOERROR aa | example. 300 MX 10 mail.example. | | mail.example. 300 A 192.0.2.2" },
	{ "SRV too, each name once", { .name = "_s._tcp.example.", .type = RR_SRV },
	  "NOERROR aa | _s._tcp.example. 300 SRV 1 2 3 web.example.; _s._tcp.example. 300 SRV 1 2 3 mail.example. | | "
	  "web.example. 300 A 192.0.2.3; web.example. 300 A 192.0.2.4; mail.example. 300 A 192.0.2.2" },
	{ "a service of its own name has its address", { .name = "svc.example.", .type = RR_HTTPS },
	  "NOERROR aa | svc.example. 300 HTTPS 1 . alpn=\"h2\" | | svc.example. 300 A 192.0.2.30" },
	{ "a CNAME is followed", { .name = "www.example.", .type = RR_A },
	  "NOERROR aa | www.example. 300 CNAME web.example.; web.example. 300 A 192.0.2.3; web.example. 300 A 192.0.2.4 | |" },
	{ "a CNAME asked for is not", { .name = "www.example.", .type = RR_CNAME }, "NOERROR aa | www.example. 300 CNAME web.example. | |" },
	{ "a chain of two", { .name = "alias.example.", .type = RR_A },
	  "NOERROR aa | alias.example. 300 CNAME www.example.; www.example. 300 CNAME web.example.; web.example. 300 A 192.0.2.3; "
	  "web.example. 300 A 192.0.2.4 | |" },
	{ "a chain that ends in NODATA", { .name = "www.example.", .type = RR_MX }, "NOERROR aa | www.example. 300 CNAME web.example. | " SOA " |" },
	{ "a chain that ends in NXDOMAIN (RFC 6604)", { .name = "broken.example.", .type = RR_A },
	  "NXDOMAIN aa | broken.example. 300 CNAME nx.example. | " SOA " |" },
	{ "a chain out of our zones", { .name = "out.example.", .type = RR_A }, "NOERROR aa | out.example. 300 CNAME x.other.test. | |" },
	{ "a chain into another zone of ours", { .name = "hop.example.", .type = RR_A },
	  "NOERROR aa | hop.example. 300 CNAME a.b.third.test.; a.b.third.test. 300 A 192.0.2.51 | |" },
	{ "a CNAME loop is told once", { .name = "loop1.example.", .type = RR_A },
	  "NOERROR aa | loop1.example. 300 CNAME loop2.example.; loop2.example. 300 CNAME loop1.example. | |" },
	{ "a CNAME to itself too", { .name = "self.example.", .type = RR_A }, "NOERROR aa | self.example. 300 CNAME self.example. | |" },
	{ "a wildcard answers for a name below", { .name = "x.y.wild.example.", .type = RR_A }, "NOERROR aa | x.y.wild.example. 300 A 192.0.2.9 | |" },
	{ "a wildcard's NODATA", { .name = "x.wild.example.", .type = RR_MX }, "NOERROR aa | | " SOA " |" },
	{ "an existing name stops the wildcard", { .name = "sub.wild.example.", .type = RR_TXT }, "NOERROR aa | | " SOA " |" },
	{ "and so do names below it", { .name = "x.sub.wild.example.", .type = RR_A }, "NXDOMAIN aa | | " SOA " |" },
	{ "the wildcard itself can be asked", { .name = "*.wild.example.", .type = RR_TXT }, "NOERROR aa | *.wild.example. 300 TXT \"w\" | |" },
	{ "a wildcard CNAME", { .name = "q.wc.example.", .type = RR_A },
	  "NOERROR aa | q.wc.example. 300 CNAME web.example.; web.example. 300 A 192.0.2.3; web.example. 300 A 192.0.2.4 | |" },
	{ "a wildcard CNAME to nowhere", { .name = "q.wnx.example.", .type = RR_A },
	  "NXDOMAIN aa | q.wnx.example. 300 CNAME nothere.example. | " SOA " |" },
	{ "a referral with glue", { .name = "a.b.deleg.example.", .type = RR_A },
	  "NOERROR | | deleg.example. 300 NS ns.deleg.example.; deleg.example. 300 NS ns1.example. | ns.deleg.example. 300 A 192.0.2.20; "
	  "ns.deleg.example. 300 AAAA 2001:db8::20; ns1.example. 300 A 192.0.2.1; ns1.example. 300 AAAA 2001:db8::1" },
	{ "occluded data is not seen", { .name = "occ.deleg.example.", .type = RR_TXT },
	  "NOERROR | | deleg.example. 300 NS ns.deleg.example.; deleg.example. 300 NS ns1.example. | ns.deleg.example. 300 A 192.0.2.20; "
	  "ns.deleg.example. 300 AAAA 2001:db8::20; ns1.example. 300 A 192.0.2.1; ns1.example. 300 AAAA 2001:db8::1" },
	{ "DS of an unsigned cut is NODATA from the parent", { .name = "deleg.example.", .type = RR_DS }, "NOERROR aa | | " SOA " |" },
	{ "DS comes from the parent though the child is ours", { .name = "sec.example.", .type = RR_DS },
	  "NOERROR aa | sec.example. 300 DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000 | |" },
	{ "the child answers for itself", { .name = "ns.sec.example.", .type = RR_A }, "NOERROR aa | ns.sec.example. 300 A 192.0.2.60 | |" },
	{ "DS at an apex whose parent is not ours", { .name = "third.test.", .type = RR_DS },
	  "NOERROR aa | | third.test. 30 SOA ns.third.test. host.third.test. 7 1 1 1 30 |" },
	{ "a DNAME into another zone of ours", { .name = "x.dn.example.", .type = RR_A },
	  "NOERROR aa | dn.example. 300 DNAME target.third.test.; x.dn.example. 300 CNAME x.target.third.test.; "
	  "x.target.third.test. 300 A 192.0.2.52 | |" },
	{ "the synthesized CNAME asked for", { .name = "X.dn.example.", .type = RR_CNAME },
	  "NOERROR aa | dn.example. 300 DNAME target.third.test.; X.dn.example. 300 CNAME X.target.third.test. | |" },
	{ "a DNAME's own name is ordinary", { .name = "dn.example.", .type = RR_DNAME }, "NOERROR aa | dn.example. 300 DNAME target.third.test. | |" },
	{ "a DNAME to a name without children", { .name = "x.in.example.", .type = RR_A },
	  "NXDOMAIN aa | in.example. 300 DNAME web.example.; x.in.example. 300 CNAME x.web.example. | " SOA " |" },
	{ "ANY over UDP gives one RRset (RFC 8482)", { .name = "mail.example.", .type = RR_ANY }, "NOERROR aa | mail.example. 300 A 192.0.2.2 | |" },
	{ "ANY over TCP gives all", { .name = "mail.example.", .type = RR_ANY, .is_tcp = true },
	  "NOERROR aa | mail.example. 300 A 192.0.2.2; mail.example. 300 MX 5 mail.example. | |" },
	{ "not our zone", { .name = "www.other.test.", .type = RR_A }, "REFUSED | | |" },
	{ "a zone that could not be loaded", { .name = "www.unusable.", .type = RR_A }, "SERVFAIL | | |" },
	{ "meta type OPT", { .name = "example.", .type = RR_OPT }, "FORMERR | | |" },
	{ "AXFR over UDP", { .name = "example.", .type = RR_AXFR }, "FORMERR | | |" },
	{ "AXFR over TCP is refused", { .name = "example.", .type = RR_AXFR, .is_tcp = true }, "REFUSED | | |" },
	{ "MAILB", { .name = "example.", .type = RR_MAILB }, "NOTIMP | | |" },
};
/* clang-format on */

Test(zone_answer, table)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *got = zones_response(snapshot, &cases[i].ask);

		cr_expect_str_eq(got, cases[i].expected, "%s\n  expected %s\n  got      %s", cases[i].sentence, cases[i].expected,
				 got);
		free(got);
	}
}

/* 20 servers below the cut: glue beyond the 13th is as needed as the first (RFC 9471); what does not fit means TC. */
Test(zone_answer, required_glue_is_whole_or_truncated)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fputs("@ SOA ns host 1 1 1 1 1\n@ NS ns\nns A 192.0.2.1\n", out);
	for (unsigned i = 0; i < 20; i++)
		fprintf(out, "d NS ns%u.d\nns%u.d A 192.0.2.%u\n", i, i, 100 + i);
	fclose(out);
	struct snapshot *s = zones_snapshot(&(struct zones_text){ "example.", text }, 1);
	char *whole = zones_response(s, &(struct zones_ask){ .name = "x.d.example.", .type = RR_A, .has_edns = true });
	char *cut = zones_response(s, &(struct zones_ask){ .name = "x.d.example.", .type = RR_A });

	cr_expect(strstr(whole, "NOERROR |") == whole, "%s", whole);
	for (unsigned i = 0; i < 20; i++) {
		char glue[64];

		snprintf(glue, sizeof glue, "ns%u.d.example. 300 A 192.0.2.%u", i, 100 + i);
		cr_expect(strstr(whole, glue), "%s is missing", glue);
	}
	cr_expect(strstr(cut, "NOERROR tc |") == cut, "%s", cut);
	free(whole);
	free(cut);
	free(text);
	snapshot_destroy(s);
}

/* Blocks beyond the reach of pointers are written name by name: 2,000 servers over TCP. */
Test(zone_answer, far_blocks)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fputs("@ SOA ns host 1 1 1 1 1\n@ NS ns\nns A 192.0.2.1\nwww CNAME big\n", out);
	for (unsigned i = 0; i < 1500; i++)
		fprintf(out, "big MX %u mail%u.sub.elsewhere.test.\n", i, i);
	fclose(out);
	struct snapshot *s = zones_snapshot(&(struct zones_text){ "example.", text }, 1);
	char *got = zones_response(s, &(struct zones_ask){ .name = "www.example.", .type = RR_MX, .is_tcp = true });

	cr_expect(strstr(got,
			 "NOERROR aa | www.example. 300 CNAME big.example.; big.example. 300 MX 0 mail0.sub.elsewhere.test.;") ==
		  got);
	cr_expect(strstr(got, "big.example. 300 MX 1499 mail1499.sub.elsewhere.test. |"));
	free(got);
	free(text);
	snapshot_destroy(s);
}
