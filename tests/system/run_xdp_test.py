# SPDX-License-Identifier: Apache-2.0
"""`skua run` with AF_XDP: attach, adopt, detach, and what the death or the hanging of the fastpath costs."""
import ctypes
import json
import os
import pathlib
import signal
import threading
import time

import pytest

from lib import Load, Net, Skua, ask, wait_until
from lib.process import run
from lib.skua import DEFAULT_PATIENCE

pytestmark = pytest.mark.second_chance

ZONE = "$TTL 300\n@ IN SOA ns hostmaster 1 3600 600 86400 60\n@ IN NS ns\nns IN A 192.0.2.1\nwww IN A 192.0.2.10\n"
RATE = 50000
LOST_MAX = RATE * 6 // 100   # 60 ms: 3,000
LOAD_S = 5


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    return path


@pytest.fixture
def net():
    with Net(queues=1) as made:
        yield made


def server(net, zone, **more):
    xdp = {"interfaces": ["dns0"], "park-after": DEFAULT_PATIENCE, **more.pop("xdp", {})}
    return Skua(zones=[("example.test", zone)], listen=more.pop("listen", [net.server.v4, net.server.v6]), ns=net.server, xdp=xdp, **more)


def www(net, address=None):
    try:
        answer = ask(address or net.server.v4, "www.example.test", "A", ns=net.client, timeout=1)
    except TimeoutError:
        return None
    return answer.answer[0][0].address if answer and answer.answer else None


def answers(skua):
    return skua.status()["answers"]


def has_program(net):
    return "prog/xdp" in net.server.exec("ip", "link", "show", "dns0").stdout


def test_answers_leave_by_af_xdp(net, zone):
    with server(net, zone) as skua:
        before = answers(skua)
        for address in (net.server.v4, net.server.v6):
            for _ in range(10):
                assert www(net, address) == "192.0.2.10"
        after = wait_until(lambda: answers(skua)["xdp"] - before["xdp"] >= 20 and answers(skua))
        assert after["udp"] == before["udp"]
        status = json.loads(skua.skua("xdp", "status", "--json").stdout)
        assert status["running"] and [q["state"] for q in status["queues"]] == ["serving"]
        assert status["queues"][0]["mode"] in ("copy", "zerocopy")
        interface = status["interfaces"][0]
        assert interface["attached"] and interface["mode"] == "driver" and interface["packets"]["taken"] >= 20
        assert "dns0" in skua.skua("xdp", "status").stdout and "dns0" in skua.skua("status").stdout


def lossy(net, skua, hurt, between=0.0):
    """Load while `hurt` happens after a second; the load's result."""
    with Load(net.server.v4, ["www.example.test A"], rate=RATE, seconds=LOAD_S, ns=net.client) as load:
        time.sleep(1)
        hurt()
        return load.result()


def test_a_killed_fastpath(net, zone):
    with server(net, zone) as skua:
        first = skua.part_pid("fastpath")
        result = lossy(net, skua, lambda: skua.kill_part("fastpath"))
        assert result["lost"] < LOST_MAX, result
        assert skua.part_pid("fastpath") not in (0, first)
        before = answers(skua)["xdp"]
        assert www(net)
        wait_until(lambda: answers(skua)["xdp"] > before, what="AF_XDP serves again")
        assert skua.status()["parts"]["fastpath"]["restarts"] == 1


def test_a_stopped_fastpath(net, zone):
    with server(net, zone) as skua:
        first = skua.part_pid("fastpath")
        result = lossy(net, skua, lambda: skua.kill_part("fastpath", signal.SIGSTOP))
        assert result["lost"] < LOST_MAX, result
        wait_until(lambda: skua.part_pid("fastpath") not in (0, first))
        log = skua.log()
        assert "SK-RUN-009 dns0 queue 0: no heartbeat" in log and "SK-RUN-005 fastpath" in log
        assert skua.status()["parts"]["fastpath"]["hangs"] == 1
        assert answers(skua)["udp"] > 0, "the kernel path served meanwhile"


class StoppedThread:
    """Holds one thread of a process, as if it spun or waited for ever; the others go on."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def __init__(self, pid, prefix):
        tids = [int(t) for t in os.listdir(f"/proc/{pid}/task") if pathlib.Path(f"/proc/{pid}/task/{t}/comm").read_text().startswith(prefix)]
        assert len(tids) == 1, "one such thread"
        self.tid = tids[0]
        for request in (self.SEIZE, self.INTERRUPT):
            assert self.libc.ptrace(request, self.tid, None, None) == 0, os.strerror(ctypes.get_errno())

    def reap(self):
        """The tracer must take note of its end, or the process never ends."""
        try:
            while True:
                os.waitpid(self.tid, WALL)
        except ChildProcessError:
            pass


WALL = 0x40000000


def test_one_hung_thread(net, zone):
    with server(net, zone) as skua:
        first = skua.part_pid("fastpath")
        held = []

        def hurt():
            held.append(StoppedThread(first, "xdp-"))
            threading.Thread(target=held[0].reap, daemon=True).start()

        with Load(net.server.v4, ["www.example.test A"], rate=RATE, seconds=LOAD_S, ns=net.client) as load:
            time.sleep(1)
            hurt()
            result = load.result()
        assert result["lost"] < LOST_MAX, result
        wait_until(lambda: skua.part_pid("fastpath") not in (0, first))
        assert skua.status()["parts"]["fastpath"]["hangs"] == 1


def test_a_fastpath_that_pauses_gets_its_queue_back(net, zone):
    with server(net, zone) as skua:
        first = skua.kill_part("fastpath", signal.SIGSTOP)
        wait_until(lambda: "SK-RUN-009" in skua.log(), interval=0.005)
        assert www(net) == "192.0.2.10", "by the kernel path"
        os.kill(first, signal.SIGCONT)
        if "SK-RUN-005" not in skua.log():
            wait_until(lambda: "SK-RUN-010" in skua.log())
            before = answers(skua)["xdp"]
            wait_until(lambda: www(net) and answers(skua)["xdp"] > before)
            assert skua.part_pid("fastpath") == first


def test_a_killed_slowpath_is_not_noticed(net, zone):
    with server(net, zone) as skua:
        result = lossy(net, skua, lambda: skua.kill_part("slowpath"))
        assert result["lost"] < LOST_MAX // 10, result
        wait_until(lambda: skua.status()["parts"]["slowpath"]["state"] == "serving")


def test_a_stopped_slowpath_is_not_noticed(net, zone):
    with server(net, zone) as skua:
        result = lossy(net, skua, lambda: skua.kill_part("slowpath", signal.SIGSTOP))
        assert result["lost"] < LOST_MAX // 10, result
        wait_until(lambda: skua.status()["parts"]["slowpath"]["hangs"] == 1)


def test_a_killed_supervisor_adopts_the_program(net, zone):
    with server(net, zone) as skua:
        program = skua.status()["interfaces"][0]["program"]
        skua.kill()
        assert has_program(net), "the link is pinned"
        begin = time.monotonic()
        skua.restart()
        assert time.monotonic() - begin < 6
        interface = skua.status()["interfaces"][0]
        assert interface["program"] == program and interface["origin"] == "adopted"
        before = answers(skua)["xdp"]
        assert www(net)
        wait_until(lambda: answers(skua)["xdp"] > before)


def test_stop_leaves_the_program_and_detach_removes_it(net, zone):
    with server(net, zone) as skua:
        assert skua.skua("xdp", "detach", check=False).returncode == 1, "not while the server runs"
        skua.signal(signal.SIGTERM)
        assert skua.popen.wait(10) == 0
        assert has_program(net)
        status = json.loads(skua.skua("xdp", "status", "--json").stdout)
        assert not status["running"] and status["interfaces"][0]["name"] == "dns0" and status["interfaces"][0]["attached"]
        assert skua.skua("xdp", "detach", "nonsense", check=False).returncode == 1
        assert json.loads(skua.skua("xdp", "detach", "dns0", "--json").stdout) == {"detached": ["dns0"]}
        assert not has_program(net)
        assert json.loads(skua.skua("xdp", "detach", "--json").stdout) == {"detached": []}


@pytest.mark.parametrize("more", [{"environment": {"SKUA_XDP": "off"}}, {"xdp": {"enabled": False}}])
def test_switched_off(net, zone, more):
    with server(net, zone, **more) as skua:
        assert "SK-RUN-011" in skua.log()
        assert www(net) == "192.0.2.10"
        assert answers(skua)["xdp"] == 0 and answers(skua)["udp"] > 0
        assert not has_program(net)
        assert skua.status()["parts"]["fastpath"]["state"] == "off"
        assert skua.status()["interfaces"][0]["reason"] == "switched off"


def test_switched_off_over_a_program_that_is_there(net, zone):
    with server(net, zone) as skua:
        skua.kill()
        skua.extra_environment = {"SKUA_XDP": "off"}
        skua.restart()
        assert www(net) == "192.0.2.10" and answers(skua)["xdp"] == 0
        skua.kill()
        skua.extra_environment = {}
        skua.restart()
        assert www(net) == "192.0.2.10"
        wait_until(lambda: answers(skua)["xdp"] > 0, what="switched on again")


def test_an_interface_that_can_not_have_xdp_is_served_over_sockets(net, zone):
    with server(net, zone, xdp={"interfaces": ["nothere", "dns0"]}) as skua:
        assert "SK-RUN-012 nothere: no XDP" in skua.log()
        interfaces = {i["name"]: i for i in skua.status()["interfaces"]}
        assert not interfaces["nothere"]["attached"] and interfaces["dns0"]["attached"]
        assert www(net) == "192.0.2.10"
        wait_until(lambda: answers(skua)["xdp"] > 0)


def test_all_addresses_are_followed(net, zone):
    with server(net, zone, listen=["0.0.0.0", "::"]) as skua:
        net.server.add_address("10.99.0.9/24")
        net.client.exec("ip", "neighbour", "replace", "10.99.0.9", "lladdr", net.server.mac().hex(":"), "dev", "cli0", "nud", "permanent")
        before = answers(skua)["xdp"]
        wait_until(lambda: www(net, "10.99.0.9") and answers(skua)["xdp"] > before, what="the new address is taken")


def test_detach_by_hand_is_survived(net, zone):
    """Somebody removes the pins and the link while the server runs: the kernel path serves, and nothing crashes."""
    with server(net, zone) as skua:
        run(["rm", "-rf", os.path.join(skua.bpf_folder, "skua", "dns0")])
        assert www(net) == "192.0.2.10"
        assert skua.status()["state"] == "serving"
