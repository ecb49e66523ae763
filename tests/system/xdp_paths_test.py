# SPDX-License-Identifier: Apache-2.0
"""Which packets are answered by AF_XDP and which by the kernel path, and that both give the same answers. The way is told from
the counters, never guessed."""
import contextlib
import random

import dns.edns
import dns.flags
import dns.message
import pytest

from lib import FrameSocket, Net, Skua, ask, ethernet_ipv4, ethernet_ipv6, wait_until
from lib.query import make_query

BIG = "$TTL 300\n@ IN SOA ns hostmaster 1 3600 600 86400 60\n@ IN NS ns\nns IN A 192.0.2.1\nns IN AAAA 2001:db8::1\n" \
      "www IN A 192.0.2.10\nalias IN CNAME www\n*.wild IN TXT wild\nsub IN NS ns.sub\nns.sub IN A 192.0.2.53\n"


def sized_name(bytes_):
    return f"t{bytes_}"


def sized_record(bytes_):
    """A TXT RRset whose whole response to `tN.example.test TXT` with EDNS has N octets: header 12, question, record, OPT 11."""
    question = 1 + len(sized_name(bytes_)) + 14 + 4
    rest = bytes_ - 12 - question - 12 - 11
    strings = []
    while rest:
        take = min(rest, 256)
        if rest - take == 1:      # a string has at least its length octet and, here, one more
            take -= 1
        strings.append('"' + "x" * (take - 1) + '"')
        rest -= take
    return f"{sized_name(bytes_)} IN TXT {' '.join(strings)}\n"


SIZES = [1231, 1232, 1233, 1451, 1452, 1453, 1471, 1472, 1473, 1729, 1730, 1731, 1749, 1750, 1751, 1752]


@pytest.fixture(scope="module")
def zone(tmp_path_factory):
    path = tmp_path_factory.mktemp("zones") / "example.zone"
    path.write_text(BIG + "".join(sized_record(s) for s in SIZES))
    return path


def server(net, zone, listen=None, **xdp):
    return Skua(zones=[("example.test", zone)], listen=listen or [net.server.v4, net.server.v6], ns=net.server,
                xdp={"interfaces": ["dns0"], **xdp}, extra={"server": {"udp-payload": 4096, "cookies": False}})


@pytest.fixture(scope="module")
def running(zone):
    with Net(queues=1, gro=True, offload=False) as net, server(net, zone) as skua:
        yield net, skua


class Paths:
    """How many answers left by AF_XDP and by UDP sockets while the block ran."""

    def __init__(self, skua):
        self.skua = skua

    def __enter__(self):
        self.before = self.skua.status()["answers"]
        return self

    def __exit__(self, *unused):
        pass

    def expect(self, xdp=0, udp=0):
        def now():
            after = self.skua.status()["answers"]
            return after["xdp"] - self.before["xdp"] == xdp and after["udp"] - self.before["udp"] == udp
        wait_until(now, timeout=5, what=f"{xdp} answers by AF_XDP, {udp} by UDP sockets")


_macs = {}


def mac(ns):
    if ns.name not in _macs:
        _macs[ns.name] = ns.mac()
    return _macs[ns.name]


def frame(net, family, payload, sport=4000, dport=53, **more):
    if family == 4:
        return ethernet_ipv4(mac(net.server), mac(net.client), net.client.v4, net.server.v4, sport, dport, payload, **more)
    return ethernet_ipv6(mac(net.server), mac(net.client), net.client.v6, net.server.v6, sport, dport, payload, **more)


def exchange(net, data, timeout=2.0, socket=None):
    """socket: made once by who exchanges a lot; closing one takes the kernel a while."""
    with contextlib.nullcontext(socket) if socket else FrameSocket(net.client) as s:
        s.send(data)
        return s.receive(timeout, want=lambda f: f["sport"] == 53 and f["dport"] == 4000)


def query(name="www.example.test", kind="A", **more):
    return make_query(name, kind, **more).to_wire()


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("vlan", [None, 7, 4094, 0x6007])
@pytest.mark.parametrize("pad", [0, 60, 128])
def test_taken(running, family, vlan, pad):
    net, skua = running
    with Paths(skua) as paths:
        reply = exchange(net, frame(net, family, query(), vlan=vlan, pad=pad))
        assert reply, "no answer"
        paths.expect(xdp=1)
    assert reply["checksum_ok"] and reply["ip_checksum_ok"] and reply["length_ok"] and reply["udp_checksum"] != 0
    assert reply["vlan"] == ([vlan] if vlan else []) and reply["ttl"] == 64
    assert (reply["src_mac"], reply["dst_mac"]) == (net.server.mac(), net.client.mac())
    assert (reply["source"], reply["destination"]) == ((net.server.v4, net.client.v4) if family == 4 else (net.server.v6, net.client.v6))
    assert dns.message.from_wire(reply["payload"]).answer[0][0].address == "192.0.2.10"


def test_the_shortest_query_padded(running):
    """`.` without EDNS: 59 octets, sent as 60 by any card."""
    net, skua = running
    with Paths(skua) as paths:
        reply = exchange(net, frame(net, 4, query(".", "NS"), pad=60))
        paths.expect(xdp=1)
    assert reply["frame_bytes"] == 60 and reply["udp_bytes"] == 8 + 17, "the answer too is padded, and its length is right"


PASSED = [
    ("IPv4 options", 4, {"options": b"\x01\x01\x01\x01"}, True),
    ("IPv4 options, 40 octets", 4, {"options": b"\x01" * 40}, True),
    ("hop-by-hop options", 6, {"extension": b"\x11\x00\x01\x04\0\0\0\0", "next_header": 0}, True),
    ("destination options", 6, {"extension": b"\x11\x00\x01\x04\0\0\0\0", "next_header": 60}, True),
    ("two VLAN tags", 4, {"vlan": [7, 8]}, False),
    ("another port", 4, {"dport": 54}, False),
    ("port 0", 4, {"sport": 0}, False),
]


@pytest.mark.parametrize("name,family,more,answered", PASSED, ids=[p[0] for p in PASSED])
def test_passed(running, name, family, more, answered):
    net, skua = running
    with Paths(skua) as paths:
        reply = exchange(net, frame(net, family, query(), **more), timeout=2.0 if answered else 0.3)
        assert bool(reply) == answered
        paths.expect(udp=int(answered))


@pytest.mark.parametrize("family", [4, 6])
def test_fragments_are_put_together_by_the_kernel(running, family):
    net, skua = running
    payload = query("www.example.test", "A", options=[dns.edns.GenericOption(65001, b"x" * 800)])
    with Paths(skua) as paths:
        whole = frame(net, family, payload)
        with FrameSocket(net.client) as s:
            for part in _fragments(net, family, whole):
                s.send(part)
            reply = s.receive(2.0, want=lambda f: f["sport"] == 53 and f["dport"] == 4000)
        assert reply
        paths.expect(udp=1)


def _fragments(net, family, whole):
    """Two fragments of a frame's UDP packet."""
    import struct
    from lib.frames import checksum
    if family == 4:
        head, udp = whole[14:34], whole[34:]
        for offset, piece, more in ((0, udp[:400], 1), (50, udp[400:], 0)):
            new = head[:2] + struct.pack("!HHH", 20 + len(piece), 77, more << 13 | offset) + head[8:10] + b"\0\0" + head[12:]
            yield whole[:14] + new[:10] + struct.pack("!H", checksum(new)) + new[12:] + piece
    else:
        head, udp = whole[14:54], whole[54:]
        for offset, piece, more in ((0, udp[:400], 1), (50, udp[400:], 0)):
            extension = struct.pack("!BBHI", 17, 0, offset << 3 | more, 77)
            yield whole[:14] + head[:4] + struct.pack("!HB", 8 + len(piece), 44) + head[7:] + extension + piece


def test_both_paths_give_the_same_octets(running):
    """The kernel path is forced by IPv4 options. Questions of every kind, with and without EDNS and DO, in random letter case."""
    net, skua = running
    names = ["example.test", "www.example.test", "alias.example.test", "x.wild.example.test", "sub.example.test", "a.sub.example.test",
             "nothing.example.test", "ns.example.test", "other.invalid", ".", "t1231.example.test", "t1473.example.test", "t1751.example.test"]
    kinds = ["A", "AAAA", "NS", "SOA", "TXT", "CNAME", "DS", "ANY"]
    dice = random.Random(1)
    asked = 0
    with Paths(skua) as paths, FrameSocket(net.client) as socket:
        for name in names:
            for kind in kinds:
                mixed = "".join(dice.choice((c.lower(), c.upper())) for c in name)
                for more in ({}, {"edns": 0}, {"do": True, "payload": 1232}, {"do": True, "payload": 4096}):
                    message = make_query(mixed, kind, **more)
                    message.id = dice.randrange(65536)
                    fast = exchange(net, frame(net, 4, message.to_wire()), socket=socket)
                    slow = exchange(net, frame(net, 4, message.to_wire(), options=b"\x01" * 4), socket=socket)
                    assert fast and slow, (mixed, kind, more)
                    if not _is_cut_by_the_mtu(fast["payload"], slow["payload"]):
                        assert fast["payload"] == slow["payload"], (mixed, kind, more)
                    asked += 1
        paths.expect(xdp=asked, udp=asked)


def _is_cut_by_the_mtu(fast, slow):
    """Both say TC; a socket learns the MTU from the kernel's refusal only, and then sends the question alone."""
    return fast[2] & slow[2] & 2 and fast[4:6] == slow[4:6]


@pytest.mark.parametrize("mtu,v4_most,v6_most", [(1500, 1472, 1452), (1778, 1750, 1730), (1779, 1750, 1730), (3000, 1750, 1730), (1280, 1252, 1232)])
def test_answers_fill_the_mtu_or_the_frame_and_no_more(zone, mtu, v4_most, v6_most):
    with Net(queues=1, gro=True, mtu=mtu) as net, server(net, zone) as skua, Paths(skua) as paths:
        asked = 0
        for address, most in ((net.server.v4, v4_most), (net.server.v6, v6_most)):
            for size in SIZES:
                answer = ask(address, f"{sized_name(size)}.example.test", "TXT", ns=net.client, edns=0, payload=4096)
                asked += 1
                assert bool(answer.flags & dns.flags.TC) == (size > most), (address, size)
                if size <= most:
                    assert len(answer.to_wire()) == size, "the zone's records are not of the size that they say"
        paths.expect(xdp=asked)
        counters = skua.counters("xdp")
        assert counters.get("xdp_tx_invalid_descs", 0) == 0 and counters.get("frame_lost", 0) == 0


def test_every_queue_serves(zone):
    with Net(queues=4, gro=True) as net, server(net, zone) as skua:
        with Paths(skua) as paths:
            for i in range(200):
                assert ask(net.server.v4, "www.example.test", ns=net.client)
            paths.expect(xdp=200)
        per_queue = {q["queue"]: q["rx_frames"] for q in skua.status()["queues"]}
        assert sorted(per_queue) == [0, 1, 2, 3]
        assert sum(1 for n in per_queue.values() if n) >= 2, f"one queue had everything: {per_queue}"


def test_several_interfaces(zone):
    with Net(queues=1, gro=True) as net:
        net.server.exec("ip", "link", "add", "dns1", "type", "veth", "peer", "name", "cli1", "netns", net.client.name)
        for ns, interface, address, other in ((net.server, "dns1", "10.98.0.1/24", "cli1"), (net.client, "cli1", "10.98.0.2/24", "dns1")):
            ns.exec("ip", "link", "set", interface, "up")
            ns.add_address(address, interface)
        with server(net, zone, listen=[net.server.v4, "10.98.0.1"], interfaces=["dns0", "dns1"]) as skua, Paths(skua) as paths:
            for _ in range(5):
                assert ask(net.server.v4, "www.example.test", ns=net.client, tries=3)
                assert ask("10.98.0.1", "www.example.test", ns=net.client, tries=3)
            paths.expect(xdp=10)
            assert {q["interface"]: q["rx_frames"] for q in skua.status()["queues"]} == {"dns0": 5, "dns1": 5}


def test_generic_mode(zone):
    with Net(queues=1) as net, server(net, zone, mode="skb") as skua, Paths(skua) as paths:
        for address in (net.server.v4, net.server.v6):
            assert ask(address, "www.example.test", ns=net.client)
        paths.expect(xdp=2)
        assert skua.status()["interfaces"][0]["mode"] == "skb"


def test_checksums_are_verified_when_asked(zone):
    with Net(queues=1, gro=True, offload=False) as net, server(net, zone, **{"verify-checksums": True}) as skua:
        bad = skua.counters("xdp").get("frame_bad", 0)
        assert exchange(net, frame(net, 4, query()))
        assert exchange(net, frame(net, 4, query(), udp_checksum=0)), "IPv4 may go without"
        assert not exchange(net, frame(net, 4, query(), udp_checksum=0x1234), timeout=0.3)
        assert not exchange(net, frame(net, 6, query(), udp_checksum=0), timeout=0.3), "IPv6 may not"
        wait_until(lambda: skua.counters("xdp")["frame_bad"] - bad == 2)


def test_busy_polling(zone):
    with Net(queues=1, gro=True) as net, server(net, zone, **{"busy-poll": "20us"}) as skua, Paths(skua) as paths:
        assert "SK-XDP-015" not in skua.log(), "preferred busy polling was refused"
        for address in (net.server.v4, net.server.v6):
            assert ask(address, "www.example.test", ns=net.client)
        paths.expect(xdp=2)
        assert skua.counters("xdp").get("rx_wakeups", 0) == 0, "it slept"
