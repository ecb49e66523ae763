# SPDX-License-Identifier: Apache-2.0
"""Servers in zero-copy mode, each test with one of its own: reload, death, link down, other settings.

The guest's processors are emulated on a machine that may be busy: what is timed here has wide limits, what is counted has none."""
import signal

import pytest

from lib import ask, wait_until
from serving import MORE_THAN_IT_CAN, RATE, books, modes, server, serves_by_xdp, they_balance, under_load, www


@pytest.fixture
def side(guest):
    return guest.sides[0]


@pytest.fixture
def alone(guest):
    """Served on eth0 only, afresh."""
    with server(guest) as skua:
        yield skua


def test_reload_under_load(side, alone):
    path, before = alone.zones[0][1], books(alone)

    def reloads():
        for serial in range(2, 6):
            alone.guest.sh(f"sed -i 's/hostmaster [0-9]* /hostmaster {serial} /' {path}")
            alone.reload("example.test")
    result = under_load(side, reloads, seconds=8)
    assert result["lost"] <= result["sent"] // 100, result
    assert ask(side.server.v4, "example.test", "SOA", ns=side.client).answer[0][0].serial == 5
    they_balance(alone, before)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_hanging_fastpath_is_replaced(side, alone, number):
    first = alone.part_pid("fastpath")
    result = under_load(side, lambda: alone.kill_part("fastpath", number), seconds=10)
    # On a real machine 60 ms; the card is set up anew by an emulated processor.
    assert result["lost"] < RATE * 3, result
    wait_until(lambda: alone.part_pid("fastpath") not in (0, first), timeout=30)
    serves_by_xdp(side, alone)
    wait_until(lambda: modes(alone) == ["zerocopy"], timeout=20, what="zero-copy mode")
    assert alone.status()["answers"]["udp"] > 0, "the kernel path served meanwhile"
    assert "SK-XDP-013" not in alone.log(), "a socket could not be made"


def test_a_killed_supervisor_is_followed_by_one_that_adopts_the_program(side, alone):
    program = alone.status()["interfaces"][0]["program"]
    alone.terminate(signal.SIGKILL)
    alone.start()
    interface = alone.status()["interfaces"][0]
    assert interface["program"] == program and interface["origin"] == "adopted"
    serves_by_xdp(side, alone)
    wait_until(lambda: modes(alone) == ["zerocopy"], timeout=20, what="zero-copy mode")


def test_link_down_and_up(side, alone):
    def flap():
        alone.guest.sh("ip link set eth0 down; sleep 0.5; ip link set eth0 up; ip addr add {0}/64 dev eth0".format(side.server.v6), check=False)
    result = under_load(side, flap, seconds=6)
    assert result["lost"] < RATE * 5, result
    serves_by_xdp(side, alone)
    wait_until(lambda: modes(alone) == ["zerocopy"], timeout=20, what="zero-copy mode")
    wait_until(lambda: www(side, address=side.server.v6, timeout=1), timeout=20, what="IPv6 is back")


# --- other settings --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("xdp,mode,said", [
    ({"mode": "auto"}, "zerocopy", "zero-copy mode (the driver says it can)"),
    ({"busy-poll": "20us"}, "zerocopy", "zero-copy mode"),
    ({"mode": "copy"}, "copy", "copy mode (xdp.mode says so)"),
    ({"mode": "skb"}, "skb", "skb mode"),
], ids=["auto", "busy-poll", "copy", "skb"])
def test_settings(guest, side, xdp, mode, said):
    with server(guest, **xdp) as skua:
        assert modes(skua) == [mode] and said in skua.log(), skua.log()
        before = books(skua)
        result = under_load(side, rate=500, seconds=3)
        assert result["lost"] <= result["sent"] // 50, result
        under_load(side, rate=MORE_THAN_IT_CAN, seconds=3)
        they_balance(skua, before)
        serves_by_xdp(side, skua)


def test_the_smallest_rings_and_an_owner_for_each_frame(guest, side):
    """The debug build asserts after each batch that every frame has one owner."""
    with server(guest, debug=True, **{"ring-size": 64}) as skua:
        assert modes(skua) == ["zerocopy"]
        before = books(skua)
        under_load(side, rate=MORE_THAN_IT_CAN, seconds=3)
        under_load(side, rate=200, seconds=3)
        they_balance(skua, before)
        assert "assertion failed" not in skua.log()
        serves_by_xdp(side, skua)
