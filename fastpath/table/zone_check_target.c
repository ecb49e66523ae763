/* SPDX-License-Identifier: Apache-2.0 */
#include "table/zone_check_internal.h"

#include "dns/rdata.h"

/* --- what a name leads to ------------------------------------------------------------------------------------------------ */

enum target_kind {
	TARGET_ELSEWHERE, /* not ours to know */
	TARGET_ADDRESS,	  /* addresses, by a wildcard or as glue also */
	TARGET_CNAME,
	TARGET_BELOW_DNAME,
	TARGET_DELEGATED, /* at or below a delegation and without glue here */
	TARGET_NOTHING,	  /* no such name, or no addresses there */
};

static bool has_addresses(const struct zone_checker *c, const struct zone_build_node *node)
{
	return zone_build_rrset_of(c->b, node, RR_A) != NULL || zone_build_rrset_of(c->b, node, RR_AAAA) != NULL;
}

static enum target_kind kind_of_data(const struct zone_checker *c, const struct zone_build_node *node)
{
	if (node == NULL)
		return TARGET_NOTHING;
	if (has_addresses(c, node))
		return TARGET_ADDRESS;
	return zone_build_rrset_of(c->b, node, RR_CNAME) != NULL ? TARGET_CNAME : TARGET_NOTHING;
}

/* The wildcard child of a node. */
static const struct zone_build_node *wildcard_of(const struct zone_checker *c, const struct zone_build_node *node)
{
	uint8_t name[NAME_MAX_BYTES + 2] = { 1, '*' };

	if (node->name_bytes + 2u > NAME_MAX_BYTES)
		return NULL;
	memcpy(name + 2, node->name, node->name_bytes);
	return zone_build_find(c->b, name);
}

/* *dname: where the DNAME is for TARGET_BELOW_DNAME. */
static enum target_kind target_find(const struct zone_checker *c, const uint8_t *name, const struct zone_build_node **dname)
{
	const struct zone_build_node *node, *occluder;
	bool exists = true;

	if (!name_is_at_or_below(name, c->apex->name))
		return TARGET_ELSEWHERE;
	while ((node = zone_build_find(c->b, name)) == NULL) { /* ends at the apex, which always has a node */
		name += 1u + name[0];
		exists = false;
	}
	occluder = zone_check_occluder(c, node);
	if (occluder == NULL && !exists && zone_build_rrset_of(c->b, node, RR_DNAME) != NULL)
		occluder = node;
	if (occluder == NULL)
		return kind_of_data(c, exists ? node : wildcard_of(c, node));
	if (zone_check_is_cut(c, occluder))
		return exists && has_addresses(c, node) ? TARGET_ADDRESS : TARGET_DELEGATED;
	*dname = occluder;
	return TARGET_BELOW_DNAME;
}

void zone_check_mark_glue(struct zone_checker *c)
{
	if (c->b->has_glue_marks)
		ZONE_BUILD_EACH_NODE(c->b, node)
			node->flags &= (uint16_t)~ZONE_BUILD_NS_TARGET;
	c->b->has_glue_marks = true;
	ZONE_BUILD_EACH_NODE(c->b, node) {
		const struct zone_build_rrset *ns = zone_build_rrset_of(c->b, node, RR_NS);

		if (ns == NULL)
			continue;
		ZONE_BUILD_EACH_RR(c->b, ns, rr) {
			struct zone_build_node *target = zone_build_find(c->b, rr->rdata);

			if (target != NULL)
				target->flags |= ZONE_BUILD_NS_TARGET;
		}
	}
}

/* "192.0.2.1" typed where a name belongs: four numeric labels, alone or under the zone's name. */
static bool looks_like_address(const struct zone_checker *c, const uint8_t *name)
{
	unsigned labels;

	for (labels = 0; labels < 4; labels++, name += 1u + name[0]) {
		unsigned value = 0;

		if (name[0] == 0 || name[0] > 3)
			return false;
		for (unsigned i = 1; i <= name[0]; i++) {
			if (name[i] < '0' || name[i] > '9')
				return false;
			value = value * 10 + (unsigned)(name[i] - '0');
		}
		if (value > 255)
			return false;
	}
	return name[0] == 0 || name_equal(name, c->apex->name);
}

struct target_checks {
	enum zone_check_id no_address, is_cname, below_dname;
};

static void report_target(struct zone_checker *c, const struct target_checks *checks, const struct zone_build_node *node,
			  const struct zone_build_rr *rr, const char *type, enum target_kind kind,
			  const struct zone_build_node *dname)
{
	char dname_text[NAME_TEXT_MAX_BYTES];

	switch (kind) {
	case TARGET_NOTHING:
		zone_check_report(c, checks->no_address, node, rr, "%s %s has no address records (A or AAAA)", type, c->target);
		break;
	case TARGET_CNAME: zone_check_report(c, checks->is_cname, node, rr, "%s %s is a CNAME", type, c->target); break;
	case TARGET_BELOW_DNAME:
		name_to_text(dname_text, dname->name);
		zone_check_report(c, checks->below_dname, node, rr, "%s %s is below the DNAME %.253s", type, c->target,
				  dname_text);
		break;
	case TARGET_ELSEWHERE:
	case TARGET_ADDRESS:
	case TARGET_DELEGATED: break;
	}
}

static void check_delegation(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rr *rr,
			     enum target_kind kind, const struct zone_build_node *dname)
{
	static const struct target_checks checks = { ZONE_CHECK_DELEGATION_NO_ADDRESS, ZONE_CHECK_DELEGATION_IS_CNAME,
						     ZONE_CHECK_DELEGATION_BELOW_DNAME };

	if (kind != TARGET_DELEGATED)
		report_target(c, &checks, node, rr, "NS", kind, dname);
	else if (name_is_at_or_below(rr->rdata, node->name))
		zone_check_report(c, ZONE_CHECK_GLUE_MISSING, node, rr,
				  "NS %s lies below the delegation and has no glue: "
				  "nobody can find its address",
				  c->target);
	else
		zone_check_report(c, ZONE_CHECK_SIBLING_GLUE_MISSING, node, rr,
				  "NS %s lies below another delegation and has no glue", c->target);
}

void zone_check_targets(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset)
{
	static const struct target_checks ns = { ZONE_CHECK_NS_NO_ADDRESS, ZONE_CHECK_NS_IS_CNAME, ZONE_CHECK_NS_BELOW_DNAME };
	static const struct target_checks mx = { ZONE_CHECK_MX_NO_ADDRESS, ZONE_CHECK_MX_IS_CNAME, ZONE_CHECK_MX_BELOW_DNAME };
	static const struct target_checks srv = { ZONE_CHECK_SRV_NO_ADDRESS, ZONE_CHECK_SRV_IS_CNAME,
						  ZONE_CHECK_SRV_BELOW_DNAME };
	uint16_t type = rrset->type;
	unsigned name_at = type == RR_MX ? 2 : type == RR_SRV ? 6 : 0;

	if (type != RR_NS && type != RR_MX && type != RR_SRV)
		return;
	ZONE_BUILD_EACH_RR(c->b, rrset, rr) {
		const struct zone_build_node *dname = NULL;
		enum target_kind kind = target_find(c, rr->rdata + name_at, &dname);

		bool is_address = type != RR_SRV && looks_like_address(c, rr->rdata + name_at);

		if (likely((kind == TARGET_ELSEWHERE || kind == TARGET_ADDRESS) && !is_address))
			continue;
		name_to_text(c->target, rr->rdata + name_at);
		if (is_address)
			zone_check_report(c, type == RR_NS ? ZONE_CHECK_NS_IS_ADDRESS : ZONE_CHECK_MX_IS_ADDRESS, node, rr,
					  "%s %s looks like an address; a name belongs here", type == RR_NS ? "NS" : "MX",
					  c->target);
		if (type == RR_MX)
			report_target(c, &mx, node, rr, "MX", kind, dname);
		else if (type == RR_SRV)
			report_target(c, &srv, node, rr, "SRV", kind, dname);
		else if (node == c->apex)
			report_target(c, &ns, node, rr, "NS", kind, dname);
		else
			check_delegation(c, node, rr, kind, dname);
	}
}

/* --- host names ---------------------------------------------------------------------------------------------------------- */

static bool is_letter_or_digit(uint8_t octet)
{
	return (octet >= '0' && octet <= '9') || ((octet | 0x20) >= 'a' && (octet | 0x20) <= 'z');
}

/* RFC 952, RFC 1123 section 2.1: letters, digits and hyphens, hyphens not at a label's ends. */
static bool is_host_label(const uint8_t *label)
{
	for (unsigned i = 1; i <= label[0]; i++)
		if (!is_letter_or_digit(label[i]) && (label[i] != '-' || i == 1 || i == label[0]))
			return false;
	return true;
}

static bool is_host(const uint8_t *name)
{
	for (; name[0] != 0; name += 1u + name[0])
		if (!is_host_label(name))
			return false;
	return true;
}

/* RFC 1035 section 8: the local part is any visible text. */
static bool is_mailbox(const uint8_t *name)
{
	for (unsigned i = 1; i <= name[0]; i++)
		if (name[i] <= ' ' || name[i] >= 0x7f)
			return false;
	return name[0] == 0 || is_host(name + 1 + name[0]);
}

static bool label_is(const uint8_t *label, const char *text)
{
	uint8_t lower[NAME_MAX_LABEL_BYTES + 1];

	name_lower(lower, label, 1u + label[0]);
	return label[0] == strlen(text) && memcmp(lower + 1, text, label[0]) == 0;
}

/* Owners with underscores that address records do have: gc._msdcs (Active Directory) and targets of SPF's "exists". */
static bool is_known_exception(const uint8_t *name)
{
	if (label_is(name, "gc") && label_is(name + 3, "_msdcs"))
		return is_host(name + 3 + 7);
	for (const uint8_t *label = name; label[0] != 0; label += 1u + label[0])
		if (label_is(label, "_spf") || label_is(label, "_spf_verify") || label_is(label, "_spf_rate"))
			return true;
	return false;
}

static bool owner_is_fine(const uint8_t *name, uint16_t type)
{
	if (type != RR_A && type != RR_AAAA && type != RR_WKS && type != RR_MX)
		return true;
	if (name_is_wildcard(name))
		name += 2;
	return is_host(name) || (type != RR_MX && is_known_exception(name));
}

static bool is_reverse(const uint8_t *name)
{
	static const uint8_t in_addr[] = "\7in-addr\4arpa", ip6[] = "\3ip6\4arpa";

	return name_is_at_or_below(name, in_addr) || name_is_at_or_below(name, ip6);
}

/* Which of a type's names, counted from the first, are hosts and which are mailboxes: bits. */
struct host_names {
	uint16_t type;
	uint8_t hosts, mailboxes;
};
static const struct host_names host_names[] = {
	{ RR_NS, 1, 0 },    { RR_SOA, 1, 2 }, { RR_MX, 1, 0 },	  { RR_SRV, 1, 0 }, { RR_PTR, 1, 0 },
	{ RR_MINFO, 0, 3 }, { RR_RP, 0, 1 },  { RR_AFSDB, 1, 0 }, { RR_RT, 1, 0 },
};

static void check_data_names(struct zone_checker *c, const struct zone_build_node *node, const struct host_names *names,
			     const struct zone_build_rr *rr)
{
	struct rdata_walk walk = { 0 };
	struct rdata_name name;
	char type[16];

	for (unsigned i = 0; rdata_next_name(names->type, rr->rdata, rr->rdata_bytes, &walk, &name); i++) {
		const uint8_t *wire = rr->rdata + name.offset;

		if (((names->hosts >> i & 1) == 0 || is_host(wire)) && ((names->mailboxes >> i & 1) == 0 || is_mailbox(wire)))
			continue;
		rr_type_to_text(type, names->type);
		name_to_text(c->target, wire);
		zone_check_report(c, ZONE_CHECK_TARGET_NOT_HOST, node, rr, "%s %s is no %s name", type, c->target,
				  names->hosts >> i & 1 ? "host" : "mailbox");
	}
}

void zone_check_hosts(struct zone_checker *c, const struct zone_build_node *node, const struct zone_build_rrset *rrset)
{
	char type[16];

	if (c->b->class_ != RR_CLASS_IN)
		return;
	if (likely(rrset->type == RR_A || rrset->type == RR_AAAA) && likely(owner_is_fine(node->name, rrset->type)))
		return; /* no names in the data */
	if (!owner_is_fine(node->name, rrset->type)) {
		rr_type_to_text(type, rrset->type);
		zone_check_report(c, ZONE_CHECK_OWNER_NOT_HOST, node, zone_build_rr(c->b, rrset->first),
				  "not a host name (letters, digits, hyphens), but has %s records", type);
	}
	for (size_t i = 0; i < ARRAY_LEN(host_names); i++) {
		if (host_names[i].type != rrset->type || (rrset->type == RR_PTR && !is_reverse(node->name)))
			continue;
		ZONE_BUILD_EACH_RR(c->b, rrset, rr)
			check_data_names(c, node, &host_names[i], rr);
	}
}
