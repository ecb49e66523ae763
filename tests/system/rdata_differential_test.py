# SPDX-License-Identifier: Apache-2.0
"""Record data of every type against named-compilezone (text) and dnspython (wire), from the same master file."""
import collections
import os
import random
import re
import subprocess

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import pytest
from lib.skua import build_folder

SEED = int(os.environ.get("RDATA_SEED", "20261130"))
HEAD = "$TTL 300\n$ORIGIN x.\n@ SOA a b 1 1h 1w2d 5 6\n NS a\na A 1.2.3.4\n"

# Each line as an operator may write it; the owner is put in front.
WRITTEN = r"""
A 1.2.3.4
A \# 4 01020304
TYPE1 \# 4 0102 0304
TYPE1 1.2.3.4
AAAA ::2
AAAA ::1
AAAA ::
AAAA ::ffff:1.2.3.4
AAAA ::1.2.3.4
AAAA ::1:0
AAAA ::ffff:0:0
AAAA 64:ff9b::1.2.3.4
AAAA 1:0:0:2::3
AAAA 0:0:3:0:0:6:0:0
AAAA 1:2:3:4:5:6:7::
AAAA ::1:2:3:4:5:6:7
TXT "a b" c "\"\\;@\200" ""
TXT a\ b a\"b a\;b
TXT "~\127\031 "
TXT "\é"
TXT "\# 2 0161"
HINFO a "b;c"
X25 311061700956
X25 "1234"
ISDN 150862028003217 004
ISDN 150862028003217
ISDN "" ""
NSAP 0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00
NSAP 0x47..00
NSAP-PTR foo
GPOS -32.6882 116.8652 10.0
LOC 42 21 54 N 71 06 18 W -24m 30m
LOC 42 21 54.123 S 71 06 18.5 E 24m 30.5m 90000000m 0.05m
LOC 1 N 2 E 3
LOC 90 N 180 W 42849672.95m 1 2 3
LOC 90 N 180 W -100000.00
LOC 1 2 3 N 1 W 0 0
LOC 1 2 3. N 1 W .5
LOC \# 16 01121613ffffffffffffffffffffffff
EID 0102 0304
NIMLOC 0102 0304ab
ATMA +61200000000
ATMA 39.246f.0012
NAPTR 1 2 "u" "E2U+sip" "!^.*$!sip:x@y.example!" .
NAPTR 1 2 "" "" "" Foo
KX 10 foo
CERT PKIX 1 RSASHA1 AAAA
CERT ipgp 0 ed448 AAAA
CERT OID 0 INDIRECT AAAA
CERT 65534 1 0 AAAA
CERT 253 1 253 AA==
CERT 9 1 200 AAA=
A6 0 2001:db8::1
A6 64 ::1 foo
A6 127 ::1 foo
A6 8 ffff::1 foo
A6 128 foo
SINK 1 2 3 AAAA
SINK 1 2 3
APL 1:192.168.32.0/21 !1:192.168.38.0/28 2:ff00::/8
APL 1:0.0.0.0/0 1:1.2.3.4/8 !2:::1/128
APL
APL \# 4 00030800
DS 1 RSASHA256 2 0000000000000000000000000000000000000000000000000000000000000000
DS 1 8 200 00
DS 1 PRIVATEDNS 200 00ff
CDS 0 0 0 00
CDNSKEY 0 3 0 AA==
SSHFP 1 1 0000000000000000000000000000000000000000
SSHFP 1 9 00
IPSECKEY 10 1 2 192.0.2.38 AQNR
IPSECKEY 10 0 2 . AQNR
IPSECKEY 10 3 2 foo AQNR
IPSECKEY 10 2 2 2001:db8::1 AQNR
WKS 10.0.0.1 tcp ftp smtp 99
WKS 10.0.0.1 17 53 domain 65535
WKS 10.0.0.1 99
NXT foo A MX NXT
NXT foo
KEY 256 3 5 AQPS
KEY 49152 3 5
DNSKEY 257 3 ECDSAP256SHA256 AA AA
RKEY 0 0 5 AAAA
SIG A 5 3 300 20230101000000 20220101000000 1 foo AAAA
RRSIG A RSASHA256 3 300 20230101000000 1 1 foo AAAA
RRSIG TYPE300 253 3 300 20380119031408 20000229235959 1 foo AAAA
NSEC foo A MX TYPE1234 RRSIG A
NSEC foo NSEC RRSIG TYPE65535 ANY TYPE0
NSEC3 1 0 10 aabb 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A
NSEC3 1 1 10 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom
NSEC3PARAM 1 0 10 -
NSEC3PARAM 1 0 65535 abcd
DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=
TLSA 3 1 1 aabb ccdd
SMIMEA 3 1 1 aabb ccdd
HIP 2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p rvs1 rvs2.example.com.
NINFO "a" b
TALINK a b
OPENPGPKEY AAAA BBBB
OPENPGPKEY AA ==
CSYNC 66 3 A NS AAAA
CSYNC 66 3
ZONEMD 1 1 3 000000000000000000000000
SVCB 1 . alpn=h2,h3 port=53 ipv4hint=1.2.3.4,1.2.3.5 ipv6hint=::1,2::2 ech=AAAA dohpath="/q{?dns}" key667=hello key668
SVCB 1 foo alpn="h\\\\2,a\\,b,\" c" mandatory=port,alpn port=1 no-default-alpn key99="a\001 \"\\;"
SVCB 1 . alpn="\200" mandatory=key99 key99= ech=
SVCB 1 . key3=\000\053 key1=\002h2 key5 key65535=a
SVCB 0 foo
SVCB 0 .
HTTPS 1 . ipv4hint=1.2.3.4,1.2.3.4
SPF "v=spf1"
NID 10 0014:4fff:ff20:0
L32 10 10.1.2.0
L64 10 2001:0DB8:1140:1000
LP 10 foo
EUI48 00-00-5E-00-53-2a
EUI64 00-00-5e-ef-10-00-00-2a
URI 10 1 "ftp://a\"b"
URI 1 1 ""
CAA 0 issue "ca.example; x=\"y\""
CAA 128 iodef ""
CAA 0 ISSUE x
AVC "a"
DOA 0 1 2 "" AAAA
DOA 1234567 1 2 "text/html" -
AMTRELAY 10 0 1 203.0.113.15
AMTRELAY 10 1 3 foo
AMTRELAY 10 0 0 .
AMTRELAY 10 1 2 2001:db8::1
AMTRELAY \# 3 0a0411
TA 1 8 1 0000000000000000000000000000000000000000
DLV 1 8 1 0000000000000000000000000000000000000000
PX 10 a b
RP a b
AFSDB 1 a
RT 1 a
SRV 1 2 3 Foo
MX 0010 A
PTR a\.b.c
CNAME \000\255\@.x.
DNAME *.y
NULL \# 3 aabbcc
UID \# 1 00
TYPE9999 \# 1 00
TYPE9998 \# 0
TYPE300 \# 1 0 1
RESINFO "a"
WALLET "a"
DSYNC CDS NOTIFY 5353 foo
DSYNC CDS 2 1 .
MB a
MG a
MR a
MINFO a b
"""

# What dnspython 2.3 can't read or reads otherwise, and named and we agree on.
NOT_IN_DNSPYTHON = {
    'ISDN "" ""': "it drops an empty subaddress",
    "NSEC foo NSEC RRSIG TYPE65535 ANY TYPE0": "it refuses bit 0",
    'SVCB 1 . alpn="\\200" mandatory=key99 key99= ech=': "it refuses an empty ech",
    "SVCB 1 . key3=\\000\\053 key1=\\002h2 key5 key65535=a": "it refuses an empty ech",
    "NID 10 0014:4fff:ff20:0": "it wants all leading zeros; RFC 6742 section 2.1.2 does not",
    "L64 10 2001:0DB8:1140:1000": "it wants all leading zeros; RFC 6742 section 2.3.2 does not",
    'URI 1 1 ""': "it refuses an empty target",
    "LOC \\# 16 01121613ffffffffffffffffffffffff": "it refuses versions of the future",
    "AMTRELAY \\# 3 0a0411": "it refuses relay types of the future",
}

# Named reads and prints what we refuse, or the other way round.
OURS_ONLY = {  # line: why
    "IPSECKEY 10 0 0 .": "RFC 4025 section 2.4: algorithm 0 has no key; named 9.18 wants one",
    "URI 10 1 ftp": "quotes are optional in any <character-string>",
    "LOC 1 2 3 n 1 w 0": "case of the directions is not said to matter",
    "HTTPS 1 . ohttp tls-supported-groups=29": "newer keys",
}
NAMED_ONLY = {
    "GPOS a b c": "RFC 1712 section 3 wants numbers",
    "KEY NOKEY 3 5": "RFC 4034 section 2.2: flags are a number",
    "EUI48 00-00-5E-00-53-2": "RFC 7043 section 3.2: two digits each",
}


def ours(text):
    done = subprocess.run([os.path.join(build_folder(), "tests/tools/rdata_tool"), "x."], input=text.encode(), capture_output=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    records = collections.defaultdict(list)
    for line in done.stdout.decode("latin-1").splitlines():
        owner, rtype, wire, data = line.split(" ", 3)
        records[owner].append((rtype, b"" if wire == "-" else bytes.fromhex(wire), data))
    return records, done.stderr.decode("latin-1")


def named(text):
    done = subprocess.run(["named-compilezone", "-i", "none", "-k", "ignore", "-n", "ignore", "-r", "ignore", "-m", "ignore", "-s", "full",
                           "-o", "-", "x.", "/dev/stdin"], input=text.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    records = collections.defaultdict(list)
    for line in done.stdout.decode("latin-1").splitlines():
        found = re.match(r"(\S+)\s+\d+ IN (\S+)\s*(.*)", line)
        if found:
            records[found[1]].append((found[2], found[3]))
    return records


def plain(data):
    """Without the white space and the letter case that hex and base64 may have; nothing else is lost by both at once."""
    return re.sub(r"\s", "", data).lower()


def zone(lines):
    return HEAD + "".join(f"r{i} {line}\n" for i, line in enumerate(lines))


def compare(lines):
    """Differences in text between what named prints of the lines and what we do."""
    text = zone(lines)
    mine, errors = ours(text)
    theirs = named(text)
    assert errors == ""
    different = []
    for i, line in enumerate(lines):
        (a,), (b,) = mine[f"r{i}.x."], theirs[f"r{i}.x."]
        if (a[0], plain(a[2])) != (b[0], plain(b[1])):
            different.append(f"{line}\n  ours  {a[0]} {a[2]}\n  named {b[0]} {b[1]}")
    return different


WRITTEN_LINES = WRITTEN.strip().splitlines()


def test_written_lines_print_as_named_prints_them():
    assert compare(WRITTEN_LINES) == []


def generated(rng, count):
    """Lines whose data is random octets of types that any octets fit, or nearly so, in the RFC 3597 form."""
    def octets(n):
        return bytes(rng.choice((rng.randrange(256), 0, 34, 92, 32, 59)) for _ in range(n))

    def string():
        n = rng.choice((0, 1, 5, 20, 255))
        return bytes([n]) + octets(n)

    def name():
        labels = [octets(rng.randrange(1, 12)) for _ in range(rng.randrange(4))]
        return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"

    def bitmap():
        n = rng.randrange(1, 33)
        return bytes([rng.randrange(256), n]) + octets(n - 1) + b"\1"

    makers = {
        "A": lambda: octets(4), "AAAA": lambda: octets(16), "NS": name, "MX": lambda: octets(2) + name(), "SOA": None, "PTR": name,
        "TXT": lambda: b"".join(string() for _ in range(rng.randrange(1, 5))), "HINFO": lambda: string() + string(),
        "SRV": lambda: octets(6) + name(), "NAPTR": lambda: octets(4) + b"\1u" + string() + b"\0" + name(),
        "RP": lambda: name() + name(), "DNSKEY": lambda: octets(2) + b"\3" + octets(rng.randrange(2, 80)),
        "TLSA": lambda: octets(rng.randrange(4, 80)), "CERT": lambda: octets(rng.randrange(6, 80)), "NSEC": lambda: name() + bitmap(),
        "NSEC3": lambda: octets(4) + string() + b"\x14" + octets(20) + bitmap(), "CSYNC": lambda: octets(6) + bitmap(),
        "CAA": lambda: octets(1) + b"\5issue" + octets(rng.randrange(40)), "URI": lambda: octets(4 + rng.randrange(40)),
        "EUI48": lambda: octets(6), "EUI64": lambda: octets(8), "NID": lambda: octets(10), "L32": lambda: octets(6), "L64": lambda: octets(10),
        "LP": lambda: octets(2) + name(), "OPENPGPKEY": lambda: octets(rng.randrange(1, 80)), "NULL": lambda: octets(rng.randrange(80)),
        "SVCB": lambda: octets(2) + name() + b"\0\1\0\4\3" + octets(3) + b"\0\x63\0\7" + octets(7), "TYPE300": lambda: octets(rng.randrange(80)),
        "AMTRELAY": lambda: octets(1) + b"\3" + name(), "HIP": lambda: b"\4\2\0\5" + octets(9) + name(), "KX": lambda: octets(2) + name(),
        "DHCID": lambda: octets(rng.randrange(1, 50)), "SMIMEA": lambda: octets(rng.randrange(4, 50)), "ISDN": lambda: string() + string(),
        "SINK": lambda: octets(rng.randrange(3, 50)), "IPSECKEY": lambda: b"\1\3\1" + name() + octets(5), "DNAME": name, "LOC": None,
        "PX": lambda: octets(2) + name() + name(), "TALINK": lambda: name() + name(), "AVC": string, "DSYNC": lambda: octets(5) + name(),
    }
    lines = []
    for rtype, make in makers.items():
        for _ in range(count if make else 0):
            data = make()
            lines.append(f"{rtype} \\# {len(data)} {data.hex()}")
    return lines


def test_generated_data_prints_as_named_prints_it():
    print(f"RDATA_SEED={SEED}")
    assert compare(generated(random.Random(SEED), 40)) == []


@pytest.mark.parametrize("lines", [WRITTEN_LINES, generated(random.Random(SEED + 1), 10)], ids=["written", "generated"])
def test_named_reads_what_we_print_as_the_same(lines):
    records = ours(zone(lines))[0]
    printed = [f"{rtype} {data}" for i in range(len(lines)) for rtype, _, data in records[f"r{i}.x."]]
    assert compare(printed) == []


def test_generated_data_has_the_wire_that_it_was_made_of():
    lines = generated(random.Random(SEED + 2), 40)
    records = ours(zone(lines))[0]
    for i, line in enumerate(lines):
        ((_, wire, _),) = records[f"r{i}.x."]
        assert line.endswith(f"\\# {len(wire)} {wire.hex()}")


def dnspython_knows(rtype):
    known = rtype in dns.rdatatype.RdataType.__members__
    return known and dns.rdata.get_rdata_class(dns.rdataclass.IN, dns.rdatatype.from_text(rtype.replace("_", "-"))) is not dns.rdata.GenericRdata


def test_dnspython_has_the_same_wire():
    records, compared = ours(zone(WRITTEN_LINES))[0], set()
    for i, line in enumerate(WRITTEN_LINES):
        ((rtype, wire, data),) = records[f"r{i}.x."]
        if line in NOT_IN_DNSPYTHON or not dnspython_knows(rtype.replace("-", "_")):
            continue
        theirs = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rtype), data).to_wire()
        assert theirs == wire, f"{line}: ours {wire.hex()}, dnspython's {theirs.hex()}"
        compared.add(rtype)
    assert len(compared) >= 45
    assert set(NOT_IN_DNSPYTHON) <= set(WRITTEN_LINES)


@pytest.mark.parametrize("line", OURS_ONLY, ids=OURS_ONLY.values())
def test_only_we_read(line):
    assert ours(zone([line]))[1] == ""
    with pytest.raises(AssertionError):
        named(zone([line]))


@pytest.mark.parametrize("line", NAMED_ONLY, ids=NAMED_ONLY.values())
def test_only_named_reads(line):
    assert ours(zone([line]))[1] != ""
    named(zone([line]))
