# SPDX-License-Identifier: Apache-2.0
"""Kernel sockets in a namespace: what loopback cannot show."""
import time

import dns.edns
import dns.flags
import pytest
from lib import Load, Net, Skua, TcpClient, ask, make_query

pytestmark = pytest.mark.second_chance

ZONE = "$ORIGIN s.test.\n$TTL 300\n@ SOA ns hm 1 3600 900 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n" + "".join(
    f"big TXT \"{i:03d}{'x' * 200}\"\n" for i in range(14))


@pytest.fixture
def zones(tmp_path):
    (tmp_path / "s.zone").write_text(ZONE)
    return [("s.test", tmp_path / "s.zone")]


def test_a_multihomed_host_replies_from_the_address_that_was_asked(zones):
    with Net() as net:
        others = ["10.99.0.77", "fd99::77"]
        net.server.add_address("10.99.0.77/24")
        net.server.add_address("fd99::77/64")
        with Skua(zones, listen=["0.0.0.0:53", "[::]:53"], ns=net.server) as skua:
            for address in (net.server.v4, net.server.v6, *others):
                for tcp in (False, True):     # ask() takes replies from the address asked only
                    assert ask(address, "www.s.test", ns=net.client, tcp=tcp).answer
            counters = skua.counters()
            assert counters["drop_martian"] == 0 and counters["udp_send_errors"] == 0


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_an_answer_above_the_mtu_is_truncated_not_fragmented(zones, family):
    with Net(mtu=1400) as net:
        address = getattr(net.server, family)
        with Skua(zones, listen=[address if family == "v4" else f"[{address}]:53"], ns=net.server, extra={"server": {"udp-payload": 4096}}):
            response = ask(address, "big.s.test", "TXT", ns=net.client, edns=0, payload=4096)
            assert response.flags & dns.flags.TC and not response.answer
            whole = ask(address, "big.s.test", "TXT", ns=net.client, tcp=True)
            assert len(whole.answer[0]) == 14


def test_keepalive_says_the_timeout_that_holds(zones):
    keepalive = dns.edns.GenericOption(11, b"")
    with Net() as net, Skua(zones, listen=[net.server.v4], ns=net.server, extra={"tcp": {"idle-timeout": "1s"}}):
        response = ask(net.server.v4, "www.s.test", ns=net.client, tcp=True, options=[keepalive])
        said = [o.to_wire() for o in response.options if o.otype == 11]
        assert said == [(10).to_bytes(2, "big")]
        with TcpClient(net.server.v4, ns=net.client) as client:
            client.send(make_query("www.s.test").to_wire())
            assert client.receive()
            begin = time.monotonic()
            assert client.is_closed(3)
            assert 0.8 < time.monotonic() - begin < 2


def test_a_slowpath_that_dies_loses_next_to_nothing(zones):
    """Its sockets are the supervisor's: what arrives meanwhile waits in them."""
    with Net() as net, Skua(zones, listen=[net.server.v4], ns=net.server, extra={"server": {"workers": 2}}) as skua:
        with Load(net.server.v4, ["www.s.test", "no.s.test"], rate=2000, seconds=5, ns=net.client, wait_ms=2000) as running:
            time.sleep(1.5)
            skua.kill_part("slowpath")
            result = running.result()
    assert result["sent"] > 9000 and result["lost"] <= 64 + 64, result    # one batch of each worker
    assert set(result["rcodes"]) == {"0", "3"}
