# SPDX-License-Identifier: Apache-2.0
"""The written list of differences that are allowed between our answers and those of knotd and named.

Each rule looks at one question and the two answers; where it explains a difference it takes exactly that difference away and leaves the
rest to be compared. It says which RFC allows both, or makes the other one wrong. A rule that explains nothing any more should go.
"""
import dataclasses


A, NS, CNAME, SOA, MX, AAAA, SRV, NAPTR, DNAME, DS = 1, 2, 5, 6, 15, 28, 33, 35, 39, 43
RRSIG, NSEC, NSEC3, SVCB, HTTPS, ANY = 46, 47, 50, 64, 65, 255
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
    skip = {NS: 0, 3: 0, 4: 0, 7: 0, MX: 2, SRV: 6, SVCB: 2, HTTPS: 2, 18: 2, 21: 2, 36: 2}
    for owner, rtype, _, data in records:
        if rtype == NAPTR:
            at = 4
            for _ in range(3):
                at += 1 + data[at]
            out.add(data[at:])
            continue
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
    wanted, types = targets(answer.answer | answer.authority | answer.additional), (A, AAAA, SRV, SVCB, HTTPS)
    return all(r[0] in wanted and (covered_type(r) if r[1] == RRSIG else r[1]) in types for r in answer.additional)


def glue(answer):
    """Of a referral: addresses at or below the cut."""
    cuts = [r[0] for r in answer.authority if r[1] == NS]
    return {r for r in answer.additional if any(is_below(r[0], c) for c in cuts)} if is_referral(answer) else set()


@rule(("knotd",), "RFC 4034 section 3")
def knot_corrects_ttls_of_signatures(q, ours, theirs):
    """knotd gives an RRSIG the TTL of its RRset, whatever the file says; ours and named serve the file."""
    known = {(r[0], r[3]): r for r in ours.answer if r[1] == RRSIG}
    return ours, dataclasses.replace(theirs, answer=frozenset(known.get((r[0], r[3]), r) if r[1] == RRSIG else r for r in theirs.answer))


@rule(("knotd", "named"), "RFC 8482 section 4.1")
def any_gets_one_rrset(q, ours, theirs):
    """ANY over UDP: one RRset with its signatures is enough, and which one is free. Over TCP ours sends all of them, without the signatures that
    nobody asked for. Denials and referrals are compared as ever, and so is what the additional section adds to either answer."""
    if q.type != ANY or not ours.answer or not theirs.answer or ours.rcode != theirs.rcode:
        return ours, theirs
    owner, types = next(iter(ours.answer))[0], {covered_type(r) if r[1] == RRSIG else r[1] for r in ours.answer}
    theirs_of_it = {r for r in theirs.answer if r[0] == owner and r[1] in types}
    is_one = len(types) == 1 and all(r[0] == owner for r in ours.answer) and theirs_of_it <= ours.answer
    all_but_signatures = {r for r in theirs.answer if r[1] != RRSIG} <= ours.answer
    if not is_one and not all_but_signatures:
        return ours, theirs
    return same(ours, theirs, "answer")


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
    nul = {r for r in theirs.authority | ours.authority if r[1] in (NSEC, RRSIG) and b"\0" in r[0][1:1 + r[0][0]]}
    if not nul or ours.rcode != theirs.rcode:
        return ours, theirs
    drop = {r for r in ours.authority ^ theirs.authority if r[1] == NSEC or (r[1] == RRSIG and covered_type(r) == NSEC)}
    return (dataclasses.replace(ours, authority=ours.authority - drop), dataclasses.replace(theirs, authority=theirs.authority - drop))


@rule(("knotd", "named"), "RFC 4035 section 3.1.4")
def ds_of_an_unsigned_zone(q, ours, theirs):
    """A DS that stands at a cut goes into the referral when DO is set. The others leave it out where the zone itself is not signed."""
    if any(r[1] in (RRSIG, NSEC, NSEC3) for r in ours.authority | theirs.authority):
        return ours, theirs
    cuts = {r[0] for r in ours.authority & theirs.authority if r[1] == NS}
    extra = {r for r in ours.authority - theirs.authority if r[1] == DS and r[0] in cuts}
    return dataclasses.replace(ours, authority=ours.authority - extra), theirs


DENIALS = (NSEC, NSEC3)


def is_denial(record):
    return (covered_type(record) if record[1] == RRSIG else record[1]) in DENIALS


@rule(("knotd", "named"), "RFC 4035 section 3.1.3.4, RFC 5155 section 7.2.5")
def wildcards_that_are_empty_need_a_proof(q, ours, theirs):
    """Where the wildcard that matches is an empty non-terminal, ours sends the NSEC or NSEC3 that shows it, beside the one that
    shows that the name itself does not exist. The others leave it out."""
    if not q.do or ours.rcode != theirs.rcode or not theirs.authority < ours.authority:
        return ours, theirs
    if not all(is_denial(r) for r in ours.authority - theirs.authority):
        return ours, theirs
    return same(ours, theirs, "authority")


@rule(("knotd",), "RFC 5155 section 7.2, RFC 1035 section 4.1.1")
def knot_gives_up_without_a_proof(q, ours, theirs):
    """Where knotd 3.2 finds no NSEC3 proof (opt-out spans; labels with NUL octets) it answers without AA and SOA. Ours agrees with named."""
    if not q.do or theirs.aa or not ours.aa or theirs.rcode != ours.rcode or not theirs.authority < ours.authority:
        return ours, theirs
    if not any(r[1] == NSEC3 for r in ours.authority):
        return ours, theirs
    return same(ours, theirs, "aa", "authority")


@rule(("knotd",), "RFC 9460 section 4.1")
def knot_denies_additional_svcb(q, ours, theirs):
    """knotd proves in the additional section that the target of an SVCB has no SVCB. Nobody asks for that."""
    extra = {r for r in theirs.additional - ours.additional if is_denial(r)}
    return ours, dataclasses.replace(theirs, additional=theirs.additional - extra)


@rule(("knotd", "named"), "RFC 4035 section 2.3, RFC 3658 section 2.2 by analogy")
def nsec_at_a_cut(q, ours, theirs):
    """A query for the NSEC of a delegation: the parent owns it, so that it may be the answer, or a referral holds it as its proof. Both must be
    whole: the answer is that NSEC alone; the referral has the NS of this very cut, and the same NSEC where DO asks for a proof."""
    if q.type != NSEC or ours.rcode != NOERROR or theirs.rcode != NOERROR or {ours.aa, theirs.aa} != {True, False}:
        return ours, theirs
    answered, referred = (ours, theirs) if ours.aa else (theirs, ours)
    nsec, proof = rrset_of(answered.answer, q.name, NSEC), rrset_of(referred.authority, q.name, NSEC)
    cut = {r for r in referred.authority if r[1] == NS}
    is_answer = nsec and nsec == answered.answer and not answered.authority and not answered.additional
    is_whole = cut and all(r[0] == q.name for r in cut) and not referred.answer and useful_only(referred)
    rest = referred.authority - cut - proof - rrset_of(referred.authority, q.name, DS)
    if not is_answer or not is_whole or rest or (q.do and proof != nsec and not rrset_of(referred.authority, q.name, DS)):
        return ours, theirs
    return same(ours, theirs, "aa", "answer", "authority", "additional")


def chain_length(answer):
    return sum(r[1] == CNAME for r in answer.answer)


@rule(("named",), "RFC 1034 section 3.6.2")
def named_fails_loops(q, ours, theirs):
    """For a loop of aliases, or a chain beyond its limit, named says SERVFAIL beside the chain. Ours, like knotd, says NOERROR: the resolver that
    follows the chain finds the loop and signals the error."""
    if theirs.rcode != SERVFAIL or ours.rcode != NOERROR or chain_length(ours) < 1:
        return ours, theirs
    return same(ours, theirs, "rcode")


CHAIN_OURS, CHAIN_LEAST = 16, 5    # aliases that ours follows; that the others do at least (knotd 3.2: 5 by one DNAME)


def chain_owners(answer, name):
    """The owners of the aliases from name on, in order; each once."""
    to = {r[0]: r[3].lower() for r in answer.answer if r[1] == CNAME}
    owners = []
    while name in to and name not in owners:
        owners.append(name)
        name = to[name]
    return owners


@rule(("knotd", "named"), "RFC 1034 section 4.3.2 step 3a")
def chains_end_somewhere(q, ours, theirs):
    """How many aliases of one question are followed is up to the server: ours 16. The shorter chain is the beginning of the longer one, and nothing
    but that chain; what the longer one has more hangs on its further aliases."""
    shorter, longer = (ours, theirs) if len(ours.answer) < len(theirs.answer) else (theirs, ours)
    first, all_ = chain_owners(shorter, q.name), chain_owners(longer, q.name)
    if len(first) < (CHAIN_OURS if shorter is ours else CHAIN_LEAST) or first != all_[:len(first)] or ours.rcode != theirs.rcode or not shorter.answer < longer.answer:
        return ours, theirs
    of_chain = {r for r in shorter.answer if (covered_type(r) if r[1] == RRSIG else r[1]) in (CNAME, DNAME)}
    if of_chain != shorter.answer or shorter.authority or shorter.additional or any(r[0] in first for r in longer.answer - shorter.answer):
        return ours, theirs
    return same(ours, theirs, "answer", "authority", "additional")


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


