/* SPDX-License-Identifier: Apache-2.0 */
/* What named-checkzone checks, with its default settings: what it refuses is an error, the rest are warnings. Nothing is looked
 * up outside of the zone. One pass over all nodes; each climbs to the apex at most twice (127 labels). */
#include "table/zone_check_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "dns/rdata.h"

#define RRSET_MAX_BYTES (65535u - 12u - 255u) /* what zone_compile puts into one block: a message less header and question */

static const struct {
	const char *id;
	enum zone_finding_level level;
} checks[ZONE_CHECK_COUNT_] = {
#define X(e, id, level) { id, level },
	ZONE_CHECKS(X)
#undef X
};

void zone_check_report(struct zone_checker *c, enum zone_check_id id, const struct zone_build_node *node,
		       const struct zone_build_rr *rr, const char *format, ...)
{
	char text[ZONE_CHECK_TEXT_BYTES];
	struct zone_finding finding = { .level = checks[id].level, .id = checks[id].id, .text = text };
	size_t used = name_to_text(text, node->name);
	va_list args;

	used += (size_t)snprintf(text + used, sizeof(text) - used, ": ");
	va_start(args, format);
	vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
	if (rr != NULL)
		finding.place = zone_build_place(c->b, rr);
	if (finding.level == ZONE_ERROR)
		c->result.errors++;
	else
		c->result.warnings++;
	c->report(c->user, &finding);
}

bool zone_check_is_cut(const struct zone_checker *c, const struct zone_build_node *node)
{
	return node != c->apex && zone_build_rrset_of(c->b, node, RR_NS) != NULL;
}

const struct zone_build_node *zone_check_occluder(const struct zone_checker *c, const struct zone_build_node *node)
{
	if (!c->b->has_cut && !c->b->has_dname)
		return NULL;
	const struct zone_build_node *top = zone_check_is_cut(c, node) ? node : NULL;

	for (node = zone_build_node(c->b, node->parent); node != NULL; node = zone_build_node(c->b, node->parent))
		if (zone_check_is_cut(c, node) || zone_build_rrset_of(c->b, node, RR_DNAME) != NULL)
			top = node;
	return top;
}

static const struct zone_build_rr *first_rr(const struct zone_checker *c, const struct zone_build_rrset *rrset)
{
	return zone_build_rr(c->b, rrset->first);
}

static void check_apex(struct zone_checker *c)
{
	const struct zone_build_rrset *soa = zone_build_rrset_of(c->b, c->apex, RR_SOA);

	if (soa == NULL)
		zone_check_report(c, ZONE_CHECK_SOA_MISSING, c->apex, NULL, "the zone has no SOA record");
	else if (soa->rr_count > 1)
		zone_check_report(c, ZONE_CHECK_SOA_MULTIPLE, c->apex, zone_build_rr(c->b, soa->last),
				  "the zone has %u SOA records, not one", soa->rr_count);
	if (zone_build_rrset_of(c->b, c->apex, RR_NS) == NULL)
		zone_check_report(c, ZONE_CHECK_NS_MISSING, c->apex, NULL, "the zone has no NS records");
}

/* RFC 2181 section 10.1, RFC 4035 section 2.5: what may stand beside a CNAME. */
static bool may_stand_beside_cname(uint16_t type)
{
	return type == RR_CNAME || type == RR_SIG || type == RR_KEY || type == RR_NXT || type == RR_RRSIG || type == RR_NSEC;
}

static void check_aliases(struct zone_checker *c, const struct zone_build_node *node)
{
	const struct zone_build_rrset *cname = zone_build_rrset_of(c->b, node, RR_CNAME);
	const struct zone_build_rrset *dname = zone_build_rrset_of(c->b, node, RR_DNAME);
	char type[16];

	if (cname != NULL && cname->rr_count > 1)
		zone_check_report(c, ZONE_CHECK_CNAME_MULTIPLE, node, zone_build_rr(c->b, cname->last),
				  "%u CNAME records, not one", cname->rr_count);
	if (cname != NULL)
		ZONE_BUILD_EACH_RRSET(c->b, node, other) {
			if (may_stand_beside_cname(other->type))
				continue;
			rr_type_to_text(type, other->type);
			zone_check_report(c, ZONE_CHECK_CNAME_AND_OTHER_DATA, node, first_rr(c, other),
					  "%s data beside a CNAME record (line %u)", type, first_rr(c, cname)->line);
			break;
		}
	if (dname == NULL)
		return;
	if (dname->rr_count > 1)
		zone_check_report(c, ZONE_CHECK_DNAME_MULTIPLE, node, zone_build_rr(c->b, dname->last),
				  "%u DNAME records, not one", dname->rr_count);
	if (name_is_wildcard(node->name))
		zone_check_report(c, ZONE_CHECK_DNAME_AT_WILDCARD, node, first_rr(c, dname),
				  "a DNAME at a wildcard: servers differ in what they make of it");
	if (zone_check_is_cut(c, node))
		zone_check_report(c, ZONE_CHECK_DNAME_BESIDE_NS, node, first_rr(c, dname),
				  "a DNAME beside NS records: the name is delegated and the DNAME never seen");
}

/* What a delegation point itself may hold at the parent's side. */
static bool belongs_to_cut(uint16_t type)
{
	return type == RR_NS || type == RR_DS || type == RR_NSEC || type == RR_RRSIG || type == RR_KEY || type == RR_SIG ||
	       type == RR_NXT;
}

static bool is_glue(const struct zone_build_node *node, uint16_t type)
{
	return (type == RR_A || type == RR_AAAA) && (node->flags & ZONE_BUILD_NS_TARGET) != 0;
}

/* Data that no question can reach: below a delegation or a DNAME. */
static void check_occlusion(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_node *occluder)
{
	char type[16];
	bool by_cut = zone_check_is_cut(c, occluder);

	name_to_text(c->target, occluder->name);
	ZONE_BUILD_EACH_RRSET(c->b, node, rrset) {
		if (by_cut && (is_glue(node, rrset->type) || (node == occluder && belongs_to_cut(rrset->type))))
			continue;
		if (node == occluder && rrset->type == RR_DNAME)
			continue; /* dname-beside-ns says it better */
		rr_type_to_text(type, rrset->type);
		if (by_cut)
			zone_check_report(c, ZONE_CHECK_OCCLUDED_BY_DELEGATION, node, first_rr(c, rrset),
					  "%s data at or below the delegation of %s that is no glue is never served", type,
					  c->target);
		else
			zone_check_report(c, ZONE_CHECK_OCCLUDED_BY_DNAME, node, first_rr(c, rrset),
					  "%s data below the DNAME of %s is never served", type, c->target);
		return;
	}
}

static void check_wildcard(struct zone_checker *c, const struct zone_build_node *node)
{
	if (likely(memchr(node->name, '*', node->name_bytes) == NULL))
		return;
	const struct zone_build_rrset *ns = zone_build_rrset_of(c->b, node, RR_NS);
	size_t at = node->name[0] == 0 ? 0 : 1u + node->name[0];

	if (ns != NULL && name_is_wildcard(node->name))
		zone_check_report(c, ZONE_CHECK_NS_AT_WILDCARD, node, first_rr(c, ns), "NS records at a wildcard");
	for (; node->name[at] != 0; at += 1u + node->name[at])
		if (name_is_wildcard(node->name + at)) {
			zone_check_report(c, ZONE_CHECK_WILDCARD_INSIDE, node, first_rr(c, zone_build_rrset(c->b, node->rrsets)),
					  "the label * works as a wildcard only at the front of a name");
			return;
		}
}

static void check_spf(struct zone_checker *c, const struct zone_build_node *node)
{
	static const char mark[] = "v=spf1";
	const struct zone_build_rrset *spf = zone_build_rrset_of(c->b, node, RR_SPF), *txt;

	if (spf == NULL)
		return;
	txt = zone_build_rrset_of(c->b, node, RR_TXT);
	if (txt != NULL)
		ZONE_BUILD_EACH_RR(c->b, txt, rr)
			if (rr->rdata_bytes > sizeof(mark) - 1 && rr->rdata[0] >= sizeof(mark) - 1 &&
			    memcmp(rr->rdata + 1, mark, sizeof(mark) - 1) == 0)
				return;
	zone_check_report(c, ZONE_CHECK_SPF_WITHOUT_TXT, node, first_rr(c, spf),
			  "an SPF record without a TXT record \"v=spf1 ...\": mail servers look at TXT only");
}

static void check_duplicates(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset,
			     const char *type)
{
	for (const struct zone_build_rr *rr = zone_build_rr(c->b, rrset->duplicates); rr != NULL;
	     rr = zone_build_rr(c->b, rr->next))
		zone_check_report(c, ZONE_CHECK_DUPLICATE, node, rr, "this %s record occurs before; one is kept", type);
}

/* Size and TTLs of one RRset. RRSIGs are one RRset for all types they cover, of which each has a TTL of its own. */
static void check_rrset(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset)
{
	const struct zone_build_rr *lowest = first_rr(c, rrset), *other = NULL;
	bool has_own_ttls = rrset->type == RR_RRSIG || rrset->type == RR_SIG;
	uint64_t bytes = 0;
	char type[16];

	if (likely(rrset->rr_count == 1 && rrset->duplicates == 0 && lowest->rdata_bytes < RRSET_MAX_BYTES - ZONE_RR_FIXED_BYTES))
		return;
	ZONE_BUILD_EACH_RR(c->b, rrset, rr) {
		bytes += ZONE_RR_FIXED_BYTES + rr->rdata_bytes;
		if (rr->ttl_s != lowest->ttl_s && (other == NULL || rr->ttl_s > other->ttl_s))
			other = rr;
		if (rr->ttl_s < lowest->ttl_s) {
			other = other == NULL || lowest->ttl_s > other->ttl_s ? lowest : other;
			lowest = rr;
		}
	}
	rr_type_to_text(type, rrset->type);
	check_duplicates(c, node, rrset, type);
	if (other != NULL && !has_own_ttls)
		zone_check_report(c, ZONE_CHECK_TTL_MISMATCH, node, other,
				  "the TTLs of an RRset must be equal: %s has %u and %u (line %u); "
				  "the smallest is used",
				  type, other->ttl_s, lowest->ttl_s, lowest->line);
	if (bytes > RRSET_MAX_BYTES && !has_own_ttls)
		zone_check_report(c, ZONE_CHECK_RRSET_TOO_LARGE, node, first_rr(c, rrset),
				  "the %s RRset is too large for a message: %llu octets of at most %u", type,
				  (unsigned long long)bytes, RRSET_MAX_BYTES);
}

/* Types that make checks of the whole node necessary; most nodes have none of them. */
static bool has_special(const struct zone_checker *c, const struct zone_build_node *node)
{
	ZONE_BUILD_EACH_RRSET(c->b, node, rrset)
		if (rrset->type == RR_CNAME || rrset->type == RR_DNAME || rrset->type == RR_SOA || rrset->type == RR_SPF)
			return true;
	return false;
}

static void check_special(struct zone_checker *c, const struct zone_build_node *node)
{
	const struct zone_build_rrset *soa = node == c->apex ? NULL : zone_build_rrset_of(c->b, node, RR_SOA);

	if (soa != NULL)
		zone_check_report(c, ZONE_CHECK_SOA_NOT_AT_APEX, node, first_rr(c, soa), "an SOA record below the zone's name");
	check_aliases(c, node);
}

static void check_node(struct zone_checker *c, const struct zone_build_node *node)
{
	const struct zone_build_node *occluder;
	bool is_special;

	if (node->rrsets == 0)
		return;
	if ((node->flags & ZONE_BUILD_OUT_OF_ZONE) != 0) {
		name_to_text(c->target, c->apex->name);
		zone_check_report(c, ZONE_CHECK_OUT_OF_ZONE, node, first_rr(c, zone_build_rrset(c->b, node->rrsets)),
				  "not at or below the zone's name %s; left out", c->target);
		return;
	}
	is_special = has_special(c, node);
	if (is_special)
		check_special(c, node);
	check_wildcard(c, node);
	if (is_special)
		check_spf(c, node);
	occluder = zone_check_occluder(c, node);
	if (occluder != NULL)
		check_occlusion(c, node, occluder);
	ZONE_BUILD_EACH_RRSET(c->b, node, rrset) {
		check_rrset(c, node, rrset);
		zone_check_hosts(c, node, rrset);
		zone_check_dnssec_rrset(c, node, rrset);
		if (occluder == NULL || (node == occluder && rrset->type == RR_NS))
			zone_check_targets(c, node, rrset);
	}
}

struct zone_check_result zone_check(struct zone_build *b, void (*report)(void *user, const struct zone_finding *), void *user)
{
	struct zone_checker c = { .b = b, .apex = zone_build_apex(b), .report = report, .user = user };

	c.result.err = zone_build_settle(b);
	if (c.result.err != ERR_OK)
		return c.result;
	if (b->has_cut)
		zone_check_mark_glue(&c);
	check_apex(&c);
	ZONE_BUILD_EACH_NODE(b, node)
		check_node(&c, node);
	zone_check_dnssec_zone(&c);
	return c.result;
}
