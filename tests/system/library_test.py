# SPDX-License-Identifier: Apache-2.0
"""The library itself: its numbers are what other tests rely on."""
import os
import socket
import struct
import threading

import dns.rcode
import pytest
from lib import (FrameSocket, Knotd, Load, Named, Net, Nsd, TcpClient, ask, ask_raw, ethernet_ipv4, ethernet_ipv6, load, make_query, run,
                 wait_until)

ZONE = """$ORIGIN lib.test.
$TTL 300
@ SOA ns hostmaster 1 3600 900 86400 300
@ NS ns
ns A 192.0.2.1
www A 192.0.2.2
"""


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "lib.test.zone"
    path.write_text(ZONE)
    return [("lib.test", str(path))]


@pytest.mark.parametrize("peer", [Knotd, Named, Nsd])
def test_a_peer_answers_on_loopback_over_udp_and_tcp(peer, zone):
    with peer(zone) as server:
        for tcp in (False, True):
            response = ask(server.address, "www.lib.test", "A", port=server.port, tcp=tcp)
            assert [r.to_text() for r in response.answer[0]] == ["192.0.2.2"]
        assert ask(server.address, "no.lib.test", "A", port=server.port, do=True).rcode() == dns.rcode.NXDOMAIN
    assert not server.is_running() and not os.path.exists(server.folder)


def test_a_peer_in_a_namespace_answers_over_both_families(zone):
    with Net() as net:
        for address in (net.server.v4, net.server.v6):
            with Nsd(zone, address=address, ns=net.server):
                assert ask(address, "www.lib.test", ns=net.client).answer
        names = [net.server.name, net.client.name]
    assert not any(name in run(["ip", "netns", "list"]).stdout for name in names)


def test_a_failing_body_leaves_no_namespace():
    with pytest.raises(ZeroDivisionError):
        with Net(queues=2, threaded=True, gro=True) as net:
            assert net.server.exec("cat", "/sys/class/net/dns0/threaded").stdout.strip() == "1"
            queues = net.server.exec("ls", "/sys/class/net/dns0/queues").stdout.split()
            assert sorted(queues) == ["rx-0", "rx-1", "tx-0", "tx-1"]
            1 / 0
    assert net.server.name not in run(["ip", "netns", "list"]).stdout


def test_a_peer_that_cannot_start_says_why(tmp_path):
    peer = Knotd([("lib.test", tmp_path / "missing")], port=1)
    peer.start_timeout = 2
    peer.config = lambda: "nonsense: ["
    with pytest.raises(RuntimeError, match="at its start"):
        peer.start()


@pytest.mark.parametrize("make,server,client", [(ethernet_ipv4, "10.99.0.1", "10.99.0.2"), (ethernet_ipv6, "fd99::1", "fd99::2")])
def test_frames_of_our_own_are_answered_and_parsed(zone, make, server, client):
    with Net(offload=False) as net, Nsd(zone, address=server, ns=net.server), FrameSocket(net.client) as frames:
        query = make_query("www.lib.test", "A").to_wire()
        frames.send(make(net.server.mac(), net.client.mac(), client, server, 4000, 53, query, pad=100))
        reply = frames.receive(want=lambda f: f["sport"] == 53 and f["dport"] == 4000)
        assert reply and reply["checksum_ok"] and reply["ip_checksum_ok"] and reply["length_ok"]
        assert reply["payload"][:2] == query[:2] and reply["vlan"] == []
        frames.send(make(net.server.mac(), net.client.mac(), client, server, 4001, 53, query, udp_checksum=0x1234))
        assert frames.receive(timeout=0.3, want=lambda f: f["dport"] == 4001) is None   # the kernel checks what we claim


def test_tagged_frames_are_seen_with_their_tag():
    with Net() as net, FrameSocket(net.client) as sender, FrameSocket(net.server) as receiver:
        for vlan, pad in ((7, 0), (4095, 120), ([5, 6], 0)):
            frame = ethernet_ipv4(net.server.mac(), net.client.mac(), "10.99.0.2", "10.99.0.1", 4000, 53, b"x" * 20, vlan=vlan, pad=pad)
            sender.send(frame)
            seen = receiver.receive(want=lambda f: f["dport"] == 53)
            assert seen["vlan"] == (vlan if isinstance(vlan, list) else [vlan])
            assert seen["payload"] == b"x" * 20 and seen["checksum_ok"]


class Dropper(threading.Thread):
    """A server that leaves every tenth query unanswered and answers every fifth with NXDOMAIN."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.count = self.silent = self.denied = 0

    def run(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            if query == b"end":
                return
            self.count += 1
            if self.count % 10 == 0:
                self.silent += 1
                continue
            rcode = 3 if self.count % 5 == 0 else 0
            self.denied += rcode == 3
            self.socket.sendto(query[:2] + struct.pack("!BB", 0x84, rcode) + query[4:], client)


def test_the_load_counts_what_is_lost():
    server = Dropper()
    server.start()
    result = load("127.0.0.1", ["a.test", "b.test AAAA"], rate=2000, seconds=2, port=server.port, wait_ms=300)
    assert result["sent"] == server.count and 3900 <= result["sent"] <= 4010
    assert result["lost"] == server.silent
    assert result["received"] == result["sent"] - result["lost"]
    assert result["rcodes"] == {"0": result["received"] - server.denied, "3": server.denied}
    assert 0 < result["latency_us"]["p50"] <= result["latency_us"]["p99"] <= result["latency_us"]["max"]
    assert result["longest_gap_ms"] < 1000 and result["unmatched"] == 0
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"end", ("127.0.0.1", server.port))
    server.join(5)


def test_the_load_shows_a_gap(zone):
    with Nsd(zone) as server:
        with Load(server.address, ["www.lib.test"], rate=1000, seconds=3, port=server.port) as running:
            wait_until(lambda: True)
            threading.Event().wait(1.0)
            os.killpg(server.pid, 19)   # SIGSTOP
            threading.Event().wait(0.7)
            os.killpg(server.pid, 18)   # SIGCONT
            result = running.result()
    assert 600 <= result["longest_gap_ms"] <= 1500, result


def test_octets_in_pieces_over_tcp(zone):
    with Nsd(zone) as server, TcpClient(server.address, server.port) as client:
        query = make_query("www.lib.test", "A").to_wire()
        client.send_slowly(query, piece=5)
        assert client.receive()[:2] == query[:2]
        client.half_close()
        assert client.is_closed()
    assert ask_raw("127.0.0.1", query, port=server.port, timeout=0.2) is None
