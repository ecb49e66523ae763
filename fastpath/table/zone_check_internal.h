/* SPDX-License-Identifier: Apache-2.0 */
/* zone_check_internal.h: shared by zone_check.c (structure), zone_check_target.c (what names in record data lead to, host
 * names) and zone_check_dnssec.c. */
#pragma once
#include "table/zone_build_internal.h"

/* X(enum, id, level). Ids are stable: scripts match them. docs/zone-checks.md explains each, and a test compares the lists. */
#define ZONE_CHECKS(X) \
	X(SOA_MISSING, "soa-missing", ZONE_ERROR) \
	X(SOA_MULTIPLE, "soa-multiple", ZONE_ERROR) \
	X(SOA_NOT_AT_APEX, "soa-not-at-apex", ZONE_ERROR) \
	X(NS_MISSING, "ns-missing", ZONE_ERROR) \
	X(NS_NO_ADDRESS, "ns-no-address", ZONE_ERROR) \
	X(NS_IS_CNAME, "ns-is-cname", ZONE_ERROR) \
	X(NS_BELOW_DNAME, "ns-below-dname", ZONE_ERROR) \
	X(NS_AT_WILDCARD, "ns-at-wildcard", ZONE_ERROR) \
	X(CNAME_AND_OTHER_DATA, "cname-and-other-data", ZONE_ERROR) \
	X(CNAME_MULTIPLE, "cname-multiple", ZONE_ERROR) \
	X(DNAME_MULTIPLE, "dname-multiple", ZONE_ERROR) \
	X(RRSET_TOO_LARGE, "rrset-too-large", ZONE_ERROR) \
	X(NSEC3_OWNER, "nsec3-owner", ZONE_ERROR) \
	X(NSEC3PARAM_ALGORITHM, "nsec3param-algorithm", ZONE_ERROR) \
	X(OUT_OF_ZONE, "out-of-zone", ZONE_WARNING) \
	X(DUPLICATE, "duplicate", ZONE_WARNING) \
	X(TTL_MISMATCH, "ttl-mismatch", ZONE_WARNING) \
	X(GLUE_MISSING, "glue-missing", ZONE_WARNING) \
	X(SIBLING_GLUE_MISSING, "sibling-glue-missing", ZONE_WARNING) \
	X(DELEGATION_NO_ADDRESS, "delegation-no-address", ZONE_WARNING) \
	X(DELEGATION_IS_CNAME, "delegation-is-cname", ZONE_WARNING) \
	X(DELEGATION_BELOW_DNAME, "delegation-below-dname", ZONE_WARNING) \
	X(NS_IS_ADDRESS, "ns-is-address", ZONE_WARNING) \
	X(MX_NO_ADDRESS, "mx-no-address", ZONE_WARNING) \
	X(MX_IS_CNAME, "mx-is-cname", ZONE_WARNING) \
	X(MX_BELOW_DNAME, "mx-below-dname", ZONE_WARNING) \
	X(MX_IS_ADDRESS, "mx-is-address", ZONE_WARNING) \
	X(SRV_NO_ADDRESS, "srv-no-address", ZONE_WARNING) \
	X(SRV_IS_CNAME, "srv-is-cname", ZONE_WARNING) \
	X(SRV_BELOW_DNAME, "srv-below-dname", ZONE_WARNING) \
	X(OCCLUDED_BY_DELEGATION, "occluded-by-delegation", ZONE_WARNING) \
	X(OCCLUDED_BY_DNAME, "occluded-by-dname", ZONE_WARNING) \
	X(DNAME_BESIDE_NS, "dname-beside-ns", ZONE_WARNING) \
	X(DNAME_AT_WILDCARD, "dname-at-wildcard", ZONE_WARNING) \
	X(WILDCARD_INSIDE, "wildcard-inside", ZONE_WARNING) \
	X(OWNER_NOT_HOST, "owner-not-host", ZONE_WARNING) \
	X(TARGET_NOT_HOST, "target-not-host", ZONE_WARNING) \
	X(SPF_WITHOUT_TXT, "spf-without-txt", ZONE_WARNING) \
	X(DS_AT_APEX, "ds-at-apex", ZONE_WARNING) \
	X(DS_WITHOUT_DELEGATION, "ds-without-delegation", ZONE_WARNING) \
	X(DNSKEY_NOT_AT_APEX, "dnskey-not-at-apex", ZONE_WARNING) \
	X(NSEC3PARAM_NOT_AT_APEX, "nsec3param-not-at-apex", ZONE_WARNING) \
	X(NSEC3PARAM_WITHOUT_CHAIN, "nsec3param-without-chain", ZONE_WARNING) \
	X(NSEC3_WITHOUT_PARAM, "nsec3-without-param", ZONE_WARNING) \
	X(NSEC3_ITERATIONS, "nsec3-iterations", ZONE_WARNING) \
	X(RRSIG_WITHOUT_RRSET, "rrsig-without-rrset", ZONE_WARNING)

enum zone_check_id {
#define X(e, id, level) ZONE_CHECK_##e,
	ZONE_CHECKS(X)
#undef X
		ZONE_CHECK_COUNT_
};

#define ZONE_CHECK_TEXT_BYTES (2 * NAME_TEXT_MAX_BYTES + 256)

struct zone_checker {
	struct zone_build *b;
	const struct zone_build_node *apex; /* NULL: no record at or below the zone's name */
	struct zone_check_result result;
	void (*report)(void *user, const struct zone_finding *finding);
	void *user;
	char target[NAME_TEXT_MAX_BYTES]; /* scratch for texts */
};

/* The text gets the node's name put before it. rr: where it stands; NULL: nowhere in particular. */
void zone_check_report(struct zone_checker *c, enum zone_check_id id, const struct zone_build_node *node,
		       const struct zone_build_rr *rr, const char *format, ...) PRINTF(5, 6);

/* The topmost delegation at or DNAME strictly above a node (self included for delegations), NULL if it is authoritative. */
const struct zone_build_node *zone_check_occluder(const struct zone_checker *c, const struct zone_build_node *node);
bool zone_check_is_cut(const struct zone_checker *c, const struct zone_build_node *node);

/* Marks the nodes that NS records name, so that their addresses count as glue. */
void zone_check_mark_glue(struct zone_checker *c);
/* Names that NS, MX and SRV data of this RRset lead to. */
void zone_check_targets(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset);
/* Host names where RFC 1123 wants them: the owner, and names in data. */
void zone_check_hosts(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset);

void zone_check_dnssec_rrset(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset);
void zone_check_dnssec_zone(struct zone_checker *c);
