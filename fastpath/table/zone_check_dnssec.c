/* SPDX-License-Identifier: Apache-2.0 */
/* Sanity of zones that come signed. Signatures are not verified here. */
#include "table/zone_check_internal.h"

#include "base/bytes.h"

#define NSEC3_SHA1 1		 /* the only hash algorithm (RFC 5155 section 11) */
#define NSEC3_MAX_ITERATIONS 150 /* validators treat zones with more as insecure (RFC 9276 section 3.2) */
#define NSEC3_MAX_PARAMS 16	 /* looked at: each may cost a walk over the zone; one is usual, two while it changes */
#define NSEC3_LABEL_BYTES 32	 /* base32hex of 20 octets */

/* NSEC3 and NSEC3PARAM data start alike: algorithm, flags, iterations, salt. */
static bool same_chain(const struct zone_build_rr *a, const struct zone_build_rr *b)
{
	return a->rdata[0] == b->rdata[0] && load_be16(a->rdata + 2) == load_be16(b->rdata + 2) && a->rdata[4] == b->rdata[4] &&
	       memcmp(a->rdata + 5, b->rdata + 5, a->rdata[4]) == 0;
}

static bool is_nsec3_owner(const struct zone_checker *c, const struct zone_build_node *node)
{
	if (node->name[0] != NSEC3_LABEL_BYTES || node->parent != c->b->apex)
		return false;
	for (unsigned i = 1; i <= NSEC3_LABEL_BYTES; i++) {
		uint8_t octet = node->name[i];

		if (!(octet >= '0' && octet <= '9') && !((octet | 0x20) >= 'a' && (octet | 0x20) <= 'v'))
			return false;
	}
	return true;
}

static void check_signatures(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset)
{
	char type[16];

	ZONE_BUILD_EACH_RR(c->b, rrset, rr) {
		uint16_t covered = load_be16(rr->rdata);

		if (zone_build_rrset_of(c->b, node, covered) != NULL)
			continue;
		rr_type_to_text(type, covered);
		zone_check_report(c, ZONE_CHECK_RRSIG_WITHOUT_RRSET, node, rr, "a signature of %s, of which there is no record",
				  type);
	}
}

static void check_nsec3(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset)
{
	const struct zone_build_rrset *param = zone_build_rrset_of(c->b, c->apex, RR_NSEC3PARAM);
	const struct zone_build_rr *first = zone_build_rr(c->b, rrset->first);

	if (!is_nsec3_owner(c, node))
		zone_check_report(c, ZONE_CHECK_NSEC3_OWNER, node, first,
				  "NSEC3 records stand at a hash of 32 letters and digits (base32hex) "
				  "directly below the zone's name");
	if (param != NULL)
		ZONE_BUILD_EACH_RR(c->b, param, rr)
			if (same_chain(first, rr))
				return;
	zone_check_report(c, ZONE_CHECK_NSEC3_WITHOUT_PARAM, node, first, "no NSEC3PARAM record fits this NSEC3 record");
}

static bool is_at_apex_only(uint16_t type, enum zone_check_id *id)
{
	*id = type == RR_NSEC3PARAM ? ZONE_CHECK_NSEC3PARAM_NOT_AT_APEX : ZONE_CHECK_DNSKEY_NOT_AT_APEX;
	return type == RR_DNSKEY || type == RR_NSEC3PARAM || type == RR_CDS || type == RR_CDNSKEY;
}

void zone_check_dnssec_rrset(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset)
{
	const struct zone_build_rr *first = zone_build_rr(c->b, rrset->first);
	enum zone_check_id id;
	char type[16];

	if (rrset->type == RR_RRSIG)
		check_signatures(c, node, rrset);
	else if (rrset->type == RR_NSEC3)
		check_nsec3(c, node, rrset);
	else if (rrset->type == RR_DS && node == c->apex)
		zone_check_report(c, ZONE_CHECK_DS_AT_APEX, node, first, "DS records belong into the parent zone");
	else if (rrset->type == RR_DS && !zone_check_is_cut(c, node))
		zone_check_report(c, ZONE_CHECK_DS_WITHOUT_DELEGATION, node, first, "DS records without NS records");
	else if (node != c->apex && is_at_apex_only(rrset->type, &id)) {
		rr_type_to_text(type, rrset->type);
		zone_check_report(c, id, node, first, "%s records mean something at the zone's name only", type);
	}
}

/* Whether some NSEC3 belongs to the parameters. Each NSEC3PARAM looks at the first NSEC3 of every owner until one fits. */
static bool has_chain(const struct zone_checker *c, const struct zone_build_rr *param)
{
	ZONE_BUILD_EACH_NODE(c->b, node) {
		const struct zone_build_rrset *nsec3 = zone_build_rrset_of(c->b, node, RR_NSEC3);

		if (nsec3 == NULL)
			continue;
		ZONE_BUILD_EACH_RR(c->b, nsec3, rr)
			if (same_chain(rr, param))
				return true;
	}
	return false;
}

void zone_check_dnssec_zone(struct zone_checker *c)
{
	const struct zone_build_rrset *params = zone_build_rrset_of(c->b, c->apex, RR_NSEC3PARAM);
	bool some_supported = false;
	unsigned looked_at = 0;

	if (params == NULL)
		return;
	ZONE_BUILD_EACH_RR(c->b, params, rr) {
		if (looked_at++ == NSEC3_MAX_PARAMS)
			break;
		uint16_t iterations = load_be16(rr->rdata + 2);

		some_supported |= rr->rdata[0] == NSEC3_SHA1;
		if (iterations > NSEC3_MAX_ITERATIONS)
			zone_check_report(c, ZONE_CHECK_NSEC3_ITERATIONS, c->apex, rr,
					  "%u NSEC3 iterations: validators accept %u at most, "
					  "and 0 is right",
					  iterations, NSEC3_MAX_ITERATIONS);
		if (!has_chain(c, rr))
			zone_check_report(c, ZONE_CHECK_NSEC3PARAM_WITHOUT_CHAIN, c->apex, rr,
					  "no NSEC3 record fits this NSEC3PARAM record");
	}
	if (!some_supported)
		zone_check_report(c, ZONE_CHECK_NSEC3PARAM_ALGORITHM, c->apex, zone_build_rr(c->b, params->first),
				  "no NSEC3PARAM record with a hash algorithm that is known (1)");
}
