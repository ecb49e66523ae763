# SPDX-License-Identifier: Apache-2.0
"""From zones to questions: the same zones under names of their own, so that one server can have them all, and what to ask of them."""
import random
import re

import dns.name
import dns.rdatatype

from . import zonefiles

UNKNOWN_TO_DNSPYTHON = {"SINK": 40, "TALINK": 58, "RKEY": 57, "DOA": 259}
ALWAYS = ("A", "NS", "SOA", "DS", "CNAME", "TXT", "ANY")
FOR_ABSENT = ("A", "DS", "CNAME")


def type_number(text):
    return UNKNOWN_TO_DNSPYTHON.get(text) or int(dns.rdatatype.from_text(text))


def rename(flat, origin, number):
    """Puts zoneNNN in place of the label "example" at the end of every name of a flat zone: as long as before, letter case kept.
    Zones that do not end so stay as they are. Returns (text, origin)."""
    new = f"zone{number:03d}"

    def swap(match):
        return match.group(1) + "".join(n.upper() if o.isupper() else n for o, n in zip(match.group(2), new)) + "."

    pattern = re.compile(r"(^|[\s]|(?<!\\)\.)(example)\.(?=\s|$)", re.IGNORECASE | re.MULTILINE)
    if not re.search(r"(^|\.)example\.$", origin, re.IGNORECASE):
        return flat, origin
    return pattern.sub(swap, flat), pattern.sub(swap, origin)


def for_knot(flat):
    """Knot 3.2 wants the groups of NID and L64 in four digits (RFC 6742 leaves leading zeros out)."""
    def pad(match):
        return match.group(1) + ":".join(g.zfill(4) for g in match.group(2).split(":"))
    return re.sub(r"(\s(?:NID|L64)\s+\d+ )([0-9a-f:]+)", pad, flat)


def _random_name(rng, labels):
    return ".".join(rng.choice("abcde") for _ in range(labels))


def generated(seed):
    """A zone of a few letters, so that everything meets everything: wildcards, empty non-terminals, aliases, DNAMEs, cuts, and names below
    all of them. Origin "example."."""
    rng = random.Random(seed)
    lines = ["example. 300 IN SOA ns.example. hm.example. 1 3600 900 604800 60", "example. 300 IN NS ns.example.",
             "ns.example. 300 IN A 192.0.2.53"]
    alone, others = set(), {"ns"}      # owners of CNAME, and those that can own none
    dnames = set()
    for i in range(70):
        owner = _random_name(rng, rng.randint(1, 4))
        if rng.random() < 0.2:
            owner = "*." + owner if rng.random() < 0.7 else "*"
        target = rng.choice([_random_name(rng, rng.randint(1, 3)) + ".example.", "www.example.net.", _random_name(rng, 2) + ".example."])
        kind = rng.choices(["A", "AAAA", "MX", "CNAME", "DNAME", "NS", "DS", "TXT", "SRV", "HTTPS"], [8, 3, 3, 5, 2, 3, 1, 3, 2, 1])[0]
        wild = owner.startswith("*")
        if kind == "CNAME" and owner not in others and owner not in alone:
            alone.add(owner)
            data = target
        elif owner in alone:
            continue
        elif kind == "DNAME" and not wild and owner not in dnames:
            dnames.add(owner)
            data = target
        elif kind == "NS" and not wild:
            data = rng.choice([f"ns.{owner}.example.", "ns.example.", "ns.example.net."])
            if data.startswith("ns." + owner):
                lines.append(f"{data} 300 IN A 192.0.2.{i + 1}")
                others.add("ns." + owner)
            if rng.random() < 0.4:
                lines.append(f"{owner}.example. 300 IN DS {i + 1} 13 2 {rng.randbytes(32).hex()}")
        elif kind in ("A", "AAAA", "MX", "TXT", "SRV", "HTTPS"):
            data = {"A": f"192.0.2.{i + 1}", "AAAA": f"2001:db8::{i + 1}", "MX": f"{i} {target}", "TXT": f'"{i}"', "SRV": f"1 2 {i} {target}",
                    "HTTPS": f"{i} {target}"}[kind]
        else:
            continue
        if kind != "CNAME":
            others.add(owner)
        lines.append(f"{owner}.example. 300 IN {kind} {data}")
    # Knot refuses zones with names below a DNAME, and an NS beside one.
    def is_hidden(line):
        owner, kind = line.split()[0], line.split()[3]
        return any(owner.endswith(f".{d}.example.") or (owner == f"{d}.example." and kind in ("NS", "DS")) for d in dnames)

    return "".join(line + "\n" for line in lines if not is_hidden(line))


def _relatives(name, origin):
    """Children and siblings of an owner, near it in canonical order too."""
    out = [(b"a",) + name.labels, (b"*",) + name.labels, (b"x", b"y") + name.labels]
    if name != origin:
        first, rest = name.labels[0], name.labels[1:]
        out += [(first[:62] + b"0",) + rest, ((first[:-1] or b"-") + b"!",) + rest, (b"zzz",) + rest]
        out += [(b"a",) + rest]
    for labels in out:
        try:
            yield dns.name.Name(labels)
        except dns.name.NameTooLong:
            continue


def questions(flat, origin):
    """(name as wire octets, type) pairs: every owner with its types and the usual ones, and what is around it."""
    apex = dns.name.from_text(origin)
    types_of, asked = {}, {}
    for owner, _, rtype, data in zonefiles.records(flat):
        name = dns.name.from_text(owner)
        if rtype == "NSEC3" or (rtype == "RRSIG" and data.startswith("NSEC3 ")):
            asked.setdefault(name, set()).add(type_number("A"))     # no names of the zone (RFC 5155 section 7.2.8): nothing is around them
        else:
            types_of.setdefault(name, set()).add(type_number(rtype))
    for name in list(types_of):
        while name != apex and name.is_subdomain(apex):     # empty non-terminals are names as well
            name = name.parent()
            types_of.setdefault(name, set())
    for name, types in types_of.items():
        asked.setdefault(name, set()).update(types, map(type_number, ALWAYS))
        for relative in _relatives(name, apex):
            asked.setdefault(relative, set()).update(map(type_number, FOR_ABSENT))
    return [(name.to_wire(), int(t)) for name in sorted(asked) for t in sorted(asked[name])]
