# SPDX-License-Identifier: Apache-2.0
"""The written list of differences that are allowed between our answers and those of knotd and named.

Each rule looks at one question and the two answers; where it explains a difference it takes exactly that difference away and leaves the
rest to be compared. It says which RFC allows both, or makes the other one wrong. A rule that explains nothing any more should go.
"""
import dataclasses


A, NS, CNAME, SOA, MX, TXT, AAAA, SRV, DNAME, DS, RRSIG, NSEC, NSEC3, SVCB, HTTPS, ANY = (1, 2, 5, 6, 15, 16, 28, 33, 39, 43, 46, 47, 50, 64, 65,
                                                                                       255)
NOERROR, SERVFAIL, NXDOMAIN, YXDOMAIN = 0, 2, 3, 6


@dataclasses.dataclass(frozen=True)
class Question:
    zone: str       # the file it comes from
    name: bytes     # wire, lower case
    type: int
    do: bool


@dataclasses.dataclass(frozen=True)
class Rule:
    id: str
    peers: tuple
    reference: str
    text: str
    apply: object   # (question, ours, theirs) -> (ours, theirs) without the difference; the same two if it is not about them


RULES = []


def rule(peers, reference):
    def add(function):
        RULES.append(Rule(function.__name__.replace("_", "-"), peers, reference, " ".join(function.__doc__.split()), function))
        return function
    return add


def is_below(name, ancestor):
    """At or below: both are wire names in lower case."""
    pos = 0
    while True:
        if name[pos:] == ancestor:
            return True
        if name[pos] == 0:
            return False
        pos += 1 + name[pos]


def covered_type(record):
    return int.from_bytes(record[3][:2], "big")


def same(ours, theirs, *sections):
    """Both answers, agreed on what is named."""
    return dataclasses.replace(ours, **{s: getattr(theirs, s) for s in sections}), theirs


def rrset_of(records, owner, rtype):
    return {r for r in records if r[0] == owner and (r[1] == rtype or (r[1] == RRSIG and covered_type(r) == rtype))}


def targets(records):
    """Names that the records point to with a wish for addresses."""
    out = set()
    skip = {NS: 0, MX: 2, SRV: 6, SVCB: 2, HTTPS: 2, 18: 2, 21: 2, 36: 2}
    for owner, rtype, _, data in records:
        if rtype not in skip:
            continue
        name, pos = data[skip[rtype]:], 0
        while name[pos]:
            pos += 1 + name[pos]
        out.add(owner if rtype in (SVCB, HTTPS) and pos == 0 else name[:pos + 1])
    return out


def is_referral(answer):
    return not any(r[1] == SOA for r in answer.authority) and any(r[1] == NS for r in answer.authority)


def useful_only(answer):
    """Whether the additional section holds nothing but addresses, with signatures, of names that the answer points to."""
    wanted = targets(answer.answer | answer.authority | answer.additional)
    return all(r[0] in wanted and (r[1] in (A, AAAA, SVCB, HTTPS, CNAME) or (r[1] == RRSIG and covered_type(r) in (A, AAAA, SVCB, HTTPS, CNAME)))
               for r in answer.additional)


def glue(answer):
    """Of a referral: addresses at or below the cut."""
    cuts = [r[0] for r in answer.authority if r[1] == NS]
    return {r for r in answer.additional if any(is_below(r[0], c) for c in cuts)} if is_referral(answer) else set()


@rule(("knotd", "named"), "RFC 8482 section 4.1")
def any_gets_one_rrset(q, ours, theirs):
    """ANY over UDP: one RRset with its signatures is enough, and which one is free."""
    if q.type != ANY or not ours.answer or not theirs.answer or ours.rcode != theirs.rcode:
        return ours, theirs
    owner, types = next(iter(ours.answer))[0], {covered_type(r) if r[1] == RRSIG else r[1] for r in ours.answer}
    if len(types) != 1 or any(r[0] != owner for r in ours.answer):
        return ours, theirs
    rtype = types.pop()
    theirs_of_it = rrset_of(theirs.answer, owner, rtype)
    if theirs_of_it and not theirs_of_it <= ours.answer:
        return ours, theirs
    return same(ours, theirs, "answer", "authority", "additional")


@rule(("knotd",), "RFC 8482 section 7")
def rrsig_gets_some_signatures(q, ours, theirs):
    """A query for RRSIG is like ANY: knotd sends only some of a name's signatures."""
    if q.type != RRSIG or not theirs.answer < ours.answer or not all(r[1] == RRSIG for r in ours.answer - theirs.answer):
        return ours, theirs
    return same(ours, theirs, "answer", "additional")


@rule(("knotd", "named"), "RFC 1034 section 4.3.2 step 6, RFC 9471 section 3")
def additional_data_is_a_courtesy(q, ours, theirs):
    """Addresses of names in the answer may be added or left out; only a referral's glue below the cut must be there."""
    if ours.additional == theirs.additional or not useful_only(ours) or not useful_only(theirs) or not glue(theirs) <= glue(ours):
        return ours, theirs
    return same(ours, theirs, "additional")


@rule(("knotd",), "RFC 4034 section 6.1")
def knot_orders_nul_octets_wrongly(q, ours, theirs):
    """knotd 3.2 takes a label with a NUL octet for the predecessor of names below the label before it, and sends a NSEC that does not
    cover the name. Ours agrees with named."""
    nul = {r for r in theirs.authority if r[1] in (NSEC, RRSIG) and b"\0" in r[0][1:1 + r[0][0]]}
    if not nul or ours.rcode != theirs.rcode:
        return ours, theirs
    drop = {r for r in ours.authority ^ theirs.authority if r[1] == NSEC or (r[1] == RRSIG and covered_type(r) == NSEC)}
    return (dataclasses.replace(ours, authority=ours.authority - drop), dataclasses.replace(theirs, authority=theirs.authority - drop))


def explain(peer, q, ours, theirs):
    """(what still differs as field names, the ids of the rules that were used)"""
    used = []
    for r in RULES:
        if peer not in r.peers:
            continue
        if ours == theirs:
            break
        before = ours, theirs
        ours, theirs = r.apply(q, ours, theirs)
        if (ours, theirs) != before:
            used.append(r.id)
    fields = [f for f in ("rcode", "aa", "tc", "answer", "authority", "additional") if getattr(ours, f) != getattr(theirs, f)]
    return fields, used


