# SPDX-License-Identifier: Apache-2.0
"""AF_XDP when something breaks: links, slots, rings, threads. Death and hanging of whole processes: run_xdp_test.py."""
import json
import os
import time

import pytest

from lib import Load, Net, Skua, ask, wait_until
from lib.process import run
from lib.skua import DEFAULT_PATIENCE, build_folder, source_folder

pytestmark = pytest.mark.second_chance

ZONE = "$TTL 300\n@ IN SOA ns hostmaster {serial} 3600 600 86400 60\n@ IN NS ns\nns IN A 192.0.2.1\nwww IN A 192.0.2.10\n"
RATE = 5000


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(ZONE.format(serial=1))
    return path


def server(net, zone, **xdp):
    return Skua(zones=[("example.test", zone)], listen=[net.server.v4, net.server.v6], ns=net.server, xdp={"interfaces": ["dns0"], **xdp})


def answers(skua):
    return skua.status()["answers"]


def serves_by_xdp(net, skua, timeout=10):
    """Some answer leaves by AF_XDP."""
    before = answers(skua)["xdp"]

    def one():
        try:
            ask(net.server.v4, "www.example.test", ns=net.client, timeout=0.5)
        except TimeoutError:
            return False
        return answers(skua)["xdp"] > before
    wait_until(one, timeout=timeout, what="an answer by AF_XDP")


def under_load(net, hurt, seconds=4, rate=RATE):
    with Load(net.server.v4, ["www.example.test A"], rate=rate, seconds=seconds, ns=net.client) as running:
        time.sleep(1)
        hurt()
        return running.result()


def no_frame_is_lost(skua):
    counters = skua.counters("xdp")
    assert counters.get("frame_lost", 0) == 0 and counters.get("xdp_tx_invalid_descs", 0) == 0, counters


def test_link_down_and_up(zone):
    with Net(queues=1, gro=True) as net, server(net, zone) as skua:
        first = skua.part_pid("fastpath")

        def flap():
            net.server.exec("ip", "link", "set", "dns0", "down")
            time.sleep(0.5)
            net.server.exec("ip", "link", "set", "dns0", "up")
            # A link that went down forgets its permanent neighbours, and IPv6 its addresses.
            net.server.exec("ip", "neighbour", "replace", net.client.v4, "lladdr", net.client.mac().hex(":"), "dev", "dns0", "nud", "permanent")
        result = under_load(net, flap)
        assert 0 < result["lost"] < RATE * 2, result
        serves_by_xdp(net, skua)
        assert skua.part_pid("fastpath") == first, "the socket works on without being bound anew"
        no_frame_is_lost(skua)
        wait_until(lambda: "SK-XDP-021" in skua.log() or "SK-XDP-020" not in skua.log())


def test_peer_link_down_and_up(zone):
    with Net(queues=1, gro=True) as net, server(net, zone) as skua:
        for _ in range(3):
            net.client.exec("ip", "link", "set", "cli0", "down")
            time.sleep(2.5)     # the carrier is looked at about once a second
            net.client.exec("ip", "link", "set", "cli0", "up")
            net.client.exec("ip", "neighbour", "replace", net.server.v4, "lladdr", net.server.mac().hex(":"), "dev", "cli0", "nud", "permanent")
            serves_by_xdp(net, skua)
        wait_until(lambda: "SK-XDP-020 dns0" in skua.log() and "SK-XDP-021 dns0" in skua.log())
        no_frame_is_lost(skua)


def test_a_slot_emptied_by_hand(zone):
    """The kernel path serves at once, and AF_XDP again within two seconds."""
    with Net(queues=1, gro=True) as net, server(net, zone) as skua:
        serves_by_xdp(net, skua)
        before = answers(skua)

        def empty():
            pin = os.path.join(skua.bpf_folder, "skua/dns0/xsks")
            run(["bpftool", "map", "delete", "pinned", pin, "key", "0", "0", "0", "0"], env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
        result = under_load(net, empty)
        assert result["lost"] <= RATE // 100, result
        assert answers(skua)["udp"] > before["udp"], "the kernel path served meanwhile"
        serves_by_xdp(net, skua)


def test_full_rings_lose_queries_and_no_frames(zone):
    with Net(queues=1, gro=True, threaded=True) as net, server(net, zone, **{"ring-size": 64}) as skua:
        result = under_load(net, lambda: None, rate=150000)
        assert result["sent"] > RATE
        serves_by_xdp(net, skua)
        no_frame_is_lost(skua)
        wait_until(lambda: all(q["state"] == "serving" for q in skua.status()["queues"]))
        # What came in was answered, dropped for a stated reason, or is no frame at all.
        counters = skua.counters("xdp")
        assert counters["rx_frames"] == counters["tx_frames"] + counters.get("tx_full", 0) + counters.get("frame_bad", 0) + \
            counters.get("drop_malformed", 0)


def test_reload_under_load_loses_nothing(zone):
    with Net(queues=1, gro=True) as net, server(net, zone) as skua:
        def reloads():
            for serial in range(2, 8):
                zone.write_text(ZONE.format(serial=serial))
                skua.reload("example.test")
        result = under_load(net, reloads, rate=2000)
        assert result["lost"] == 0, result
        assert ask(net.server.v4, "example.test", "SOA", ns=net.client).answer[0][0].serial == 7
        assert answers(skua)["xdp"] >= 2000 * 3


def test_restarts_of_the_fastpath_never_find_the_queue_busy(zone):
    with Net(queues=2, gro=True) as net, server(net, zone) as skua:
        for _ in range(4):
            serves_by_xdp(net, skua)
            old = skua.kill_part("fastpath")
            wait_until(lambda: skua.part_pid("fastpath") not in (0, old), timeout=15)
            wait_until(lambda: skua.status()["parts"]["fastpath"]["state"] == "serving", timeout=15)
        assert "SK-XDP-013" not in skua.log(), "a socket could not be made"


def debug_build():
    folder = os.path.join(build_folder(), "debug")
    programs = [os.path.join(folder, p) for p in ("skua", "skua-fastpath", "skua-slowpath")]
    run(["make", "-s", "-C", source_folder(), f"BUILD={build_folder()}", "VARIANT=debug", *programs], timeout=600)
    return folder


@pytest.mark.bound(700)
def test_a_thread_that_spins_is_replaced(zone, monkeypatch):
    """It keeps its slot and would blackhole its queue: the missing heartbeat gives the queue to the kernel path. Only debug
    builds can be told to hang."""
    monkeypatch.setenv("SKUA_BUILD", debug_build())
    with Net(queues=1, gro=True) as net:
        skua = Skua(zones=[("example.test", zone)], listen=[net.server.v4], ns=net.server, xdp={"interfaces": ["dns0"], "park-after": DEFAULT_PATIENCE},
                    environment={"SKUA_FAULT_SPIN_AFTER": "6000"})
        with skua:
            monkeypatch.setenv("SKUA_BUILD", os.path.dirname(os.environ["SKUA_BUILD"]))   # the load generator of the other build
            result = under_load(net, lambda: None)
            monkeypatch.setenv("SKUA_BUILD", debug_build())
            # At most 60 ms of each hang, and two hangs: the fault counts anew in each process.
            assert result["lost"] < RATE * 60 // 1000 * 5, result
            log = skua.log()
            assert "SK-RUN-009 dns0 queue 0" in log and "SK-RUN-005 fastpath" in log
            assert json.loads(skua.skua("status", "--json").stdout)["parts"]["fastpath"]["hangs"] >= 1
            assert answers(skua)["udp"] > 0
