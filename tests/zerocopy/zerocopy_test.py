# SPDX-License-Identifier: Apache-2.0
"""AF_XDP in zero-copy mode, in a guest with virtio_net. The first tests are those of veth: tests/system/xdp_paths_test.py.

The guest's processors are emulated on a machine that may be busy: what is timed here has wide limits, what is counted has none."""
import random
import signal
import time

import dns.flags
import pytest

import xdp_paths_test as paths
from guest import GuestSkua
from lib import FrameSocket, Load, ask, wait_until
# The same tests, with this file's `running`.
from xdp_paths_test import (test_both_paths_give_the_same_octets, test_fragments_are_put_together_by_the_kernel,  # noqa: F401
                            test_passed, test_taken, test_the_shortest_query_padded)

RATE, LOAD_S = 2000, 5
MORE_THAN_IT_CAN = 60000


def server(guest, number=0, debug=False, **xdp):
    cards = guest.cards if number is None else [guest.cards[number]]
    text = paths.BIG + "".join(paths.sized_record(s) for s in paths.SIZES)
    return GuestSkua(guest, [("example.test", text)], [a for c in cards for a in (c.v4, c.v6)],
                     {"interfaces": [c.interface for c in cards], **xdp}, debug=debug)


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


@pytest.fixture
def side(guest):
    return guest.sides[0]


def www(side, **more):
    try:
        return ask(more.pop("address", side.server.v4), "www.example.test", ns=side.client, **more).answer[0][0].address
    except TimeoutError:
        return None


def modes(skua):
    return [q.get("mode") for q in skua.xdp_status()["queues"]]


def books(skua):
    """What the kernel and we counted, of all queues: only to be compared when nothing is on its way."""
    pid = skua.part_pid("fastpath")
    return {"pid": pid, "taken": sum(i["packets"].get("taken", 0) for i in skua.xdp_status()["interfaces"]), **skua.counters("xdp")}


def they_balance(skua, before):
    """Since `before`, which is books(), each packet that the program took is accounted for, and no frame is lost. A fastpath that was killed
    since it had no processor for too long took its counters along: then only the frames of its successor count."""
    def balance():
        now = books(skua)
        if now["pid"] != before["pid"]:
            return now
        got = {name: value - before.get(name, 0) for name, value in now.items()}
        received, dropped = got["rx_frames"], sum(got[d] for d in DROPS)
        return now if (got["taken"] == received + got["xdp_rx_dropped"] + got["xdp_rx_ring_full"] and
                       received == got["tx_frames"] + dropped) else None
    try:
        now = wait_until(balance, timeout=20, interval=0.3)
    except TimeoutError:
        raise AssertionError(f"packets are missing: {_set(before)} before, now {_set(books(skua))}") from None
    assert now["pid"] == before["pid"] or "SK-RUN-005" in skua.log(), "the fastpath ended, and not for silence"
    for name in ("frame_lost", "xdp_tx_invalid_descs", "xdp_rx_invalid_descs", "tx_errors"):
        assert now[name] == 0, _set(now)
    return now


DROPS = ("tx_full", "frame_bad", "drop_malformed", "drop_response", "drop_short", "drop_martian")


def _set(counters):
    return {name: value for name, value in counters.items() if value}


def serves_by_xdp(side, skua, timeout=30):
    before = skua.status()["answers"]["xdp"]
    wait_until(lambda: www(side, timeout=0.5) and skua.status()["answers"]["xdp"] > before, timeout=timeout, what="an answer by AF_XDP")


def under_load(side, hurt=lambda: None, rate=RATE, seconds=LOAD_S):
    with Load(side.server.v4, ["www.example.test A"], rate=rate, seconds=seconds, ns=side.client, wait_ms=3000) as load:
        time.sleep(1)
        hurt()
        return load.result()


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


# --- what happens to servers -----------------------------------------------------------------------------------------------

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
    assert modes(alone) == ["zerocopy"]
    assert alone.status()["answers"]["udp"] > 0, "the kernel path served meanwhile"
    assert "SK-XDP-013" not in alone.log(), "a socket could not be made"


def test_a_killed_supervisor_is_followed_by_one_that_adopts_the_program(side, alone):
    program = alone.status()["interfaces"][0]["program"]
    alone.terminate(signal.SIGKILL)
    alone.start()
    interface = alone.status()["interfaces"][0]
    assert interface["program"] == program and interface["origin"] == "adopted"
    serves_by_xdp(side, alone)
    assert modes(alone) == ["zerocopy"]


def test_link_down_and_up(side, alone):
    def flap():
        alone.guest.sh("ip link set eth0 down; sleep 0.5; ip link set eth0 up; ip addr add {0}/64 dev eth0".format(side.server.v6), check=False)
    result = under_load(side, flap, seconds=6)
    assert 0 < result["lost"] < RATE * 5, result
    serves_by_xdp(side, alone)
    assert modes(alone) == ["zerocopy"]
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
        they_balance(skua, before)
        serves_by_xdp(side, skua)
