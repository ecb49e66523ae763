# SPDX-License-Identifier: Apache-2.0
"""AF_XDP in zero-copy mode, in a guest with virtio_net: which packets are answered by it, and that none is lost. The first tests are
those of veth: tests/system/xdp_paths_test.py."""
import random

import dns.flags
import pytest

import xdp_paths_test as paths
from lib import FrameSocket, ask
from serving import LOAD_S, MORE_THAN_IT_CAN, RATE, books, server, serves_by_xdp, they_balance, under_load, www
# The same tests, with this file's `running`.
from xdp_paths_test import (test_both_paths_give_the_same_octets, test_fragments_are_put_together_by_the_kernel,  # noqa: F401
                            test_passed, test_taken, test_the_shortest_query_padded)


@pytest.fixture(scope="module")
def both(guest):
    """Served on both cards: eth0 has one queue, eth1 two."""
    guest.sh("echo 64 >/proc/sys/vm/nr_hugepages")
    with server(guest, None) as skua:
        yield skua
    guest.sh("echo 0 >/proc/sys/vm/nr_hugepages")


@pytest.fixture
def running(guest, both):
    return guest.sides[0], both


# --- what it says --------------------------------------------------------------------------------------------------------

def test_zero_copy_on_every_queue(both):
    status = both.xdp_status()
    assert [(q["interface"], q["queue"], q["mode"]) for q in status["queues"]] == [
        ("eth0", 0, "zerocopy"), ("eth1", 0, "zerocopy"), ("eth1", 1, "zerocopy")]
    assert all(i["attached"] and i["mode"] == "driver" for i in status["interfaces"])
    said = [line for line in both.log().splitlines() if "SK-XDP-012" in line]
    assert len(said) >= 3 and all("zero-copy mode (xdp.mode says so)" in line and "in huge pages" in line for line in said), said


# --- answers -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("family", [4, 6])
def test_answers_fill_the_mtu_and_no_more(guest, both, family):
    card, client = guest.cards[0], guest.sides[0].client
    address, most = (card.v4, 1472) if family == 4 else (card.v6, 1452)
    with paths.Paths(both) as by:
        for size in paths.SIZES:
            answer = ask(address, f"{paths.sized_name(size)}.example.test", "TXT", ns=client, edns=0, payload=4096)
            assert bool(answer.flags & dns.flags.TC) == (size > most), size
            if size <= most:
                assert len(answer.to_wire()) == size
        by.expect(xdp=len(paths.SIZES))


@pytest.mark.parametrize("family", [4, 6])
def test_tcp_passes(guest, both, family):
    card, client = guest.cards[0], guest.sides[0].client
    before = both.status()["answers"]["tcp"]
    for name, kind in (("t1752.example.test", "TXT"), ("www.example.test", "A")):
        assert ask(card.v4 if family == 4 else card.v6, name, kind, ns=client, tcp=True, edns=0).answer
    assert both.status()["answers"]["tcp"] == before + 2


def test_neighbours_are_learnt(guest, both):
    """ARP and neighbour discovery pass the program in both directions."""
    client, card = guest.sides[0].client, guest.cards[0]
    for address in (card.v4, card.v6):
        client.exec("ip", "neighbour", "delete", address, "dev", client.interface)
        assert ask(address, "www.example.test", ns=client, tries=5, timeout=2).answer
        assert card.hex_mac in client.exec("ip", "neighbour", "show", address).stdout


def test_both_queues_of_a_card_serve(guest, both):
    def received():
        return [q["rx_frames"] for q in both.status()["queues"] if q["interface"] == "eth1"]

    side, before = guest.sides[1], received()
    with paths.Paths(both) as by:
        for _ in range(60):
            assert www(side, tries=3)
            assert www(side, address=side.server.v6, tries=3)
        by.expect(xdp=120)
    grown = [now - then for now, then in zip(received(), before)]
    assert len(grown) == 2 and all(grown), f"one queue had everything: {grown}"


def test_damaged_frames_are_answered_by_nobody_and_lose_nothing(running):
    net, skua = running
    dice = random.Random(1)
    good = [paths.frame(net, family, paths.query()) for family in (4, 6)]
    before = books(skua)
    with FrameSocket(net.client) as socket:
        for n in range(400):
            frame = bytearray(dice.choice(good))
            kind = n % 4
            if kind == 0:       # octets of the DNS message
                for _ in range(dice.randrange(1, 8)):
                    frame[dice.randrange(len(frame) - 24, len(frame))] = dice.randrange(256)
            elif kind == 1:     # any octets behind the MAC addresses
                for _ in range(dice.randrange(1, 4)):
                    frame[dice.randrange(12, len(frame))] = dice.randrange(256)
            elif kind == 2:     # the end is missing
                del frame[dice.randrange(14, len(frame)):]
            else:               # more than the headers say, up to the MTU
                frame += bytes(dice.randrange(1, 1500 - len(frame)))
            socket.send(bytes(frame))
        response = bytearray(paths.query())
        response[2] |= 0x80
        # From another port: late answers to the damaged ones are on their way to 4000.
        socket.send(paths.frame(net, 4, bytes(response), sport=4001))
        socket.send(paths.frame(net, 4, paths.query(), sport=4002))
        got = socket.receive(10, want=lambda f: f["dport"] in (4001, 4002))
        assert got and got["dport"] == 4002, "a query is answered, a response is not"
    assert they_balance(skua, before)["taken"] >= before["taken"] + 100


# --- load ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("card", [0, 1])
def test_a_load_that_it_can_take(guest, both, card):
    before, by = books(both), both.status()["answers"]
    result = under_load(guest.sides[card])
    assert result["sent"] >= RATE * LOAD_S * 9 // 10
    assert result["lost"] <= result["sent"] // 100, result
    they_balance(both, before)
    after = both.status()["answers"]
    assert after["xdp"] - by["xdp"] >= result["received"] * 9 // 10, "by AF_XDP, but for hangs of the emulated processors"


@pytest.mark.parametrize("card", [0, 1])
def test_more_than_it_can_take_loses_queries_and_no_frames(guest, both, card):
    before = books(both)
    under_load(guest.sides[card], rate=MORE_THAN_IT_CAN)
    they_balance(both, before)
    serves_by_xdp(guest.sides[card], both)
