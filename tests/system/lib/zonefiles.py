# SPDX-License-Identifier: Apache-2.0
"""The hand-written zones of tests/system/zones, what BIND's tools make of a master file, and records as comparable text."""
import dataclasses
import pathlib
import re
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "zones"


@dataclasses.dataclass(frozen=True)
class Zone:
    path: pathlib.Path
    origin: str      # with a final dot
    about: str
    expect: str      # of a bad zone: what ours must report

    @property
    def name(self):
        return str(self.path.relative_to(FOLDER)).removesuffix(".zone")


def _read(path):
    lines = path.read_bytes().decode("latin-1").split("\n", 3)
    about, origin, third = (line.strip().lstrip(";").strip() for line in lines[:3])
    if not origin.startswith("origin: "):
        raise ValueError(f"{path}: the second line must be '; origin: NAME.'")
    expect = third.removeprefix("expect: ") if third.startswith("expect: ") else ""
    return Zone(path, origin.removeprefix("origin: "), about, expect)


def everywhere():
    """Zones that named, Knot and ours load."""
    return [_read(p) for p in sorted(FOLDER.glob("*.zone"))]


def bind_only():
    """Zones whose spelling only named and ours take; flatten() makes them fit for others."""
    return [_read(p) for p in sorted((FOLDER / "bind").glob("*.zone"))]


def bad():
    """Zones that named refuses."""
    return [_read(p) for p in sorted((FOLDER / "bad").glob("*-bad.zone"))]


def flatten(path, origin):
    """The zone's records as named-compilezone writes them: one a line, whole names, TTL and class stated."""
    path = pathlib.Path(path)
    done = subprocess.run(["named-compilezone", "-i", "none", "-k", "ignore", "-w", path.parent, "-o", "-", origin, path.name],
                          capture_output=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"named-compilezone {path}:\n{done.stderr.decode('latin-1')}")
    return done.stdout.decode("latin-1")


RECORD = re.compile(r"^(\S+)\s+(\d+)\s+(\S+)\s+(\S+)(?:\s+(.*))?$")

# Data that named prints in pieces: how many words stand before it.
IN_PIECES = {"RRSIG": 8, "SIG": 8, "DNSKEY": 3, "CDNSKEY": 3, "KEY": 3, "RKEY": 3, "DS": 3, "CDS": 3, "DLV": 3, "TA": 3, "ZONEMD": 3,
             "TLSA": 3, "SMIMEA": 3, "CERT": 3, "SSHFP": 2, "OPENPGPKEY": 0, "DHCID": 0, "IPSECKEY": 4, "SINK": 3}


def _joined(rtype, data):
    words = data.split()
    before = 2 if data.startswith("\\# ") else IN_PIECES.get(rtype, len(words))
    if before >= len(words):
        return data
    return " ".join(words[:before] + ["".join(words[before:])])


def records(text):
    """[(owner in lower case, TTL, type, data)], sorted. An RRset's TTL is its smallest one."""
    found = set()
    for line in text.splitlines():
        if line and not line.startswith(";"):
            owner, ttl, _, rtype, data = RECORD.match(line).groups()
            found.add((owner.lower(), int(ttl), rtype, _joined(rtype, data or "")))
    lowest = {}
    for owner, ttl, rtype, _ in found:
        lowest[owner, rtype] = min(ttl, lowest.get((owner, rtype), ttl))
    return sorted({(owner, ttl if rtype == "RRSIG" else lowest[owner, rtype], rtype, data) for owner, ttl, rtype, data in found})
