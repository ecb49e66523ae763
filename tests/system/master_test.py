# SPDX-License-Identifier: Apache-2.0
"""The master file reader and the zone checks against named-compilezone and named-checkzone, on the same files."""
import os
import re
import subprocess

import pytest
from lib import run
from lib.signed import sign_zone
from lib.skua import build_folder
from lib import zonefiles

GOOD = zonefiles.everywhere() + zonefiles.bind_only()
IDS = [z.name for z in GOOD]


def dump(path, origin):
    """(records as zonefiles.records gives them, messages, exit code)"""
    done = subprocess.run([os.path.join(build_folder(), "tests/tools/zonedump"), origin, str(path)], capture_output=True, timeout=60)
    return zonefiles.records(done.stdout.decode("latin-1")), done.stderr.decode("latin-1"), done.returncode


def assert_same(ours, theirs):
    only_ours, only_theirs = sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))
    assert not only_ours and not only_theirs, f"only ours: {only_ours[:5]}\nonly theirs: {only_theirs[:5]}"


def test_there_are_enough_zones():
    assert len(zonefiles.everywhere()) >= 40
    assert all(z.about and z.origin.endswith(".") for z in GOOD + zonefiles.bad())


@pytest.mark.parametrize("zone", GOOD, ids=IDS)
def test_a_zone_reads_as_named_compilezone_reads_it(zone):
    ours, messages, code = dump(zone.path, zone.origin)
    assert code == 0, messages
    theirs = zonefiles.records(zonefiles.flatten(zone.path, zone.origin))
    if zone.name == "duplicates":   # of two records that differ in letter case only, either may be kept (RFC 4343)
        ours, theirs = ([tuple(str(part).lower() for part in record) for record in records] for records in (ours, theirs))
    assert_same(ours, theirs)


@pytest.mark.parametrize("zone", GOOD, ids=IDS)
def test_what_we_print_named_reads_as_the_same_and_so_do_we(zone, tmp_path):
    ours, _, _ = dump(zone.path, zone.origin)
    again = tmp_path / "again.zone"
    again.write_text("".join(f"{o} {ttl} IN {rtype} {data}\n" for o, ttl, rtype, data in ours), encoding="latin-1")
    assert_same(zonefiles.records(zonefiles.flatten(again, zone.origin)), ours)
    assert_same(dump(again, zone.origin)[0], ours)


@pytest.mark.parametrize("zone", zonefiles.everywhere(), ids=lambda z: z.name)
def test_knot_loads_it(zone):
    run(["kzonecheck", "-o", zone.origin, str(zone.path)])


@pytest.mark.parametrize("zone", zonefiles.bad(), ids=lambda z: z.name)
def test_what_named_refuses_is_an_error_with_its_place(zone):
    named = subprocess.run(["named-checkzone", "-i", "local", "-w", zone.path.parent, zone.origin, zone.path.name], capture_output=True, timeout=60)
    assert named.returncode != 0
    _, messages, code = dump(zone.path, zone.origin)
    assert code == 1, messages
    errors = re.findall(r"^(?:-|\S+\.zone):(\d+):\d+: error: (\S+): ", messages, re.MULTILINE)
    assert len(errors) == 1, f"one fault, one error: {messages}"
    line, found = errors[0]
    assert zone.expect == (f"line {line}" if found == "syntax" else found), messages


# What named-checkzone says, and the id of ours for it.
NAMED_SAYS = [
    (r"ignoring out-of-zone data", "out-of-zone"),
    (r"TTL set to prior TTL", "ttl-mismatch"),
    (r"has no REQUIRED GLUE address records", "glue-missing"),
    (r"has no SIBLING GLUE address records", "sibling-glue-missing"),
    (r"/NS '\S+' has no address records", "delegation-no-address"),
    (r"/NS '\S+' is a CNAME", "delegation-is-cname"),
    (r"/NS '\S+' is below a DNAME", "delegation-below-dname"),
    (r"/MX '\S+' has no address records", "mx-no-address"),
    (r"/MX '\S+' is a CNAME", "mx-is-cname"),
    (r"/MX '\S+' is below a DNAME", "mx-below-dname"),
    (r"MX is an address", "mx-is-address"),
    (r"appears to be an address", "ns-is-address"),
    (r"/SRV '\S+' has no address records", "srv-no-address"),
    (r"/SRV '\S+' is a CNAME", "srv-is-cname"),
    (r"non-terminal wildcard", "wildcard-inside"),
    (r"bad owner name \(check-names\)", "owner-not-host"),
    (r"bad name \(check-names\)", "target-not-host"),
    (r"found type SPF record but no SPF TXT record", "spf-without-txt"),
    (r"excessive NSEC3PARAM iterations", "nsec3-iterations"),
]
# What named-checkzone has no word for.
OURS_ONLY = {"duplicate", "occluded-by-delegation", "occluded-by-dname", "dname-beside-ns", "dname-at-wildcard", "ds-at-apex",
             "ds-without-delegation", "dnskey-not-at-apex", "nsec3param-not-at-apex", "nsec3param-without-chain", "nsec3-without-param",
             "rrsig-without-rrset"}
WARNINGS = """
@ SOA n_s.example.net. hm 1 3600 900 604800 60
@ NS ns.example.net.
@ NSEC3PARAM 1 0 500 -
x.other. A 192.0.2.1
ttl 1 A 192.0.2.1
ttl 2 A 192.0.2.2
glue NS ns.glue
sibling NS ns.glue
noaddr NS nothing
ofalias NS alias
alias CNAME host
host A 192.0.2.3
ofdname NS ns.dname
dname DNAME example.net.
mx1 MX 1 nothing
mx2 MX 1 alias
mx3 MX 1 x.dname
mx4 MX 1 192.0.2.1.
ns4 NS 192.0.2.1.
_a._tcp SRV 1 1 1 nothing
_b._tcp SRV 1 1 1 alias
c.*.d TXT x
e_f A 192.0.2.4
g MX 1 h_i.example.net.
spf SPF "v=spf1 -all"
"""


@pytest.fixture
def warnings_zone(tmp_path):
    path = tmp_path / "warnings.zone"
    path.write_text("$TTL 300" + WARNINGS)
    return zonefiles.Zone(path, "example.", "every warning that named has", "")


def check_warnings(zone):
    named = subprocess.run(["named-checkzone", "-i", "local", "-w", zone.path.parent, zone.origin, zone.path.name], capture_output=True, text=True,
                           timeout=60, errors="replace")
    assert named.returncode == 0, named.stderr + named.stdout
    theirs = {ours for pattern, ours in NAMED_SAYS if re.search(pattern, named.stdout + named.stderr)}
    ours = set(re.findall(r": warning: (\S+): ", dump(zone.path, zone.origin)[1])) - OURS_ONLY
    assert ours == theirs, named.stdout + named.stderr
    return ours


@pytest.mark.parametrize("zone", GOOD, ids=IDS)
def test_warnings_are_those_of_named_checkzone(zone):
    check_warnings(zone)


def test_every_warning_of_named_checkzone_is_ours_too(warnings_zone):
    assert check_warnings(warnings_zone) == {ours for _, ours in NAMED_SAYS}


@pytest.mark.parametrize("options", [{}, {"nsec3": True}, {"nsec3": True, "optout": True, "iterations": 5, "salt": "AABBCCDD"}],
                         ids=["nsec", "nsec3", "optout"])
@pytest.mark.parametrize("name", ["plain", "ent-nested", "wildcard", "glue-occluded", "ds-at-cut", "mixed-case", "new-types", "denial"])
def test_a_signed_zone_reads_as_named_compilezone_reads_it(name, options, tmp_path):
    zone = next(z for z in GOOD if z.name == name)
    signed = sign_zone(zone.path, zone.origin, tmp_path, **options)
    ours, messages, code = dump(signed, zone.origin)
    assert code == 0, messages
    assert not re.search(r"nsec|rrsig|ds-|dnskey", messages.replace(str(signed), "")), messages
    theirs = zonefiles.records(zonefiles.flatten(signed, zone.origin))
    assert_same(ours, theirs)
    assert any(rtype == "RRSIG" for _, _, rtype, _ in ours)
