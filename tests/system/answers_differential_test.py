# SPDX-License-Identifier: Apache-2.0
"""Ours, knotd and named on the same zones: every (name, type) in them and around them, with and without DO, as sets.

Differences are allowed only by differences.py. All zones of a variant stand in one server each, under names of their own."""
import collections
import concurrent.futures
import dataclasses

import pytest
from differences import RULES, Question, explain
from lib import Knotd, Named, Skua, wire, zonefiles
from lib import questions as asking
from lib.signed import sign_zone

GENERATED = range(8)            # seeds
VARIANTS = {"plain": None, "nsec": {}, "nsec3": {"nsec3": True, "salt": "aabb", "iterations": 1}, "optout": {"nsec3": True, "optout": True}}
NO_NSEC3 = {"names-long"}       # a hashed owner does not fit before such names: dnssec-signzone refuses
SHOWN = 15
USED = collections.Counter()    # rule: how often


def zones_of(group):
    """(name, origin, flat text)"""
    if group == "bind":
        found = zonefiles.bind_only()
    else:
        found = [z for z in zonefiles.everywhere() if (z.origin == ".") == (group == "root")]
    out = [(z.name, z.origin, zonefiles.flatten(z.path, z.origin)) for z in found]
    if group == "all":
        out += [(f"generated-{seed}", "example.", asking.generated(seed)) for seed in GENERATED]
    return out


def prepare(group, variant, folder):
    """The zone files of a variant, and what to ask: ([(origin, path)], [Question])."""
    zones, questions = [], []
    for number, (name, origin, flat) in enumerate(zones_of(group)):
        options = VARIANTS[variant]
        if options and options.get("nsec3") and name in NO_NSEC3:
            continue
        flat, origin = asking.rename(flat, origin, number)
        path = folder / f"{number:03d}-{name.replace('/', '-')}.zone"
        path.write_text(asking.for_knot(flat), encoding="latin-1")
        if options is not None:
            path = sign_zone(path, origin, folder, **options)
            flat = zonefiles.flatten(path, origin)
            path.write_text(asking.for_knot(path.read_text(encoding="latin-1")), encoding="latin-1")
        zones.append((origin, str(path)))
        for do in (False, True):
            questions += [Question(name, qname, qtype, do) for qname, qtype in asking.questions(flat, origin)]
    return zones, questions


def answers_of(server, questions):
    """Parsed responses; over TCP where one does not fit. Every response must be well-formed, and ours may repeat no record."""
    octets = [wire.question(q.name, q.type, q.do) for q in questions]
    out = []
    for q, data, reply in zip(questions, octets, wire.ask_many(server.address, server.port, octets)):
        try:
            parsed = wire.parse(reply)
            if parsed.tc:
                parsed = wire.parse(wire.ask_tcp(server.address, server.port, data))
        except wire.BadResponse as e:
            raise AssertionError(f"{server.name}: {wire.name_text(q.name)} type {q.type}: {e}") from e
        out.append(parsed)
    return out


def show(q, peer, fields, ours, theirs):
    lines = [f"{q.zone}: {wire.name_text(q.name)} type {q.type}{' DO' if q.do else ''}, against {peer}:"]
    for f in fields:
        mine, other = getattr(ours, f), getattr(theirs, f)
        if isinstance(mine, frozenset):
            for word, records in (("only ours", mine - other), (f"only {peer}", other - mine)):
                lines += [f"    {f}, {word}: {wire.name_text(r[0])} {r[2]} type {r[1]} {r[3].hex()}" for r in sorted(records)[:6]]
        else:
            lines.append(f"    {f}: ours {mine}, {peer} {other}")
    return "\n".join(lines)


def compare(questions, ours, peer, theirs):
    """What no rule explains."""
    found = []
    for q, mine, other in zip(questions, ours, theirs):
        other = dataclasses.replace(other, duplicates=0, edns=True)
        if mine == other:
            continue
        fields, used = explain(peer, q, mine, other)
        USED.update(used)
        if fields:
            found.append((q, peer, fields, mine, other))
    return found


@pytest.mark.bound(240)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("group,peers", [("all", (Knotd, Named)), ("root", (Knotd, Named)), ("bind", (Named,))], ids=["all", "root", "bind"])
def test_answers_agree_with_those_of(group, peers, variant, tmp_path):
    zones, questions = prepare(group, variant, tmp_path)
    assert group != "all" or len(zones) >= 40
    servers = [Skua(zones, extra={"server": {"udp-payload": 4096}}), *(peer(zones) for peer in peers)]
    try:
        for server in servers:
            server.start()
        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            ours, *others = pool.map(answers_of, servers, [questions] * len(servers))
    finally:
        for server in servers:
            server.stop()
    repeated = [q for q, a in zip(questions, ours) if a.duplicates or not a.edns]
    assert not repeated, f"records that stand twice, or no OPT: {[(wire.name_text(q.name), q.type) for q in repeated[:SHOWN]]}"
    found = []
    for server, theirs in zip(servers[1:], others):
        found += compare(questions, ours, server.name, theirs)
    kinds = collections.Counter((peer, *fields) for _, peer, fields, _, _ in found)
    examples = {(peer, q.zone, *fields): (q, peer, fields, mine, other) for q, peer, fields, mine, other in found}    # one of each kind
    text = "\n".join(show(*f) for f in list(examples.values())[:SHOWN])
    assert not found, f"{len(found)} of {len(questions)} answers differ: {dict(kinds)}\n{text}"


def test_every_rule_is_still_needed():
    """Runs after the comparisons, in one session with them."""
    if not USED:
        return      # asked for alone
    assert {r.id for r in RULES} == set(USED), f"rules that explain nothing: {sorted({r.id for r in RULES} - set(USED))}"
