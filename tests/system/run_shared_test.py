# SPDX-License-Identifier: Apache-2.0
"""What `skua run` shares with its parts where recursion is configured: who holds what, with which rights, and that it outlives the parts."""
import os
import re

import pytest

from lib import Net, Skua, ask, wait_until

ZONE = "$TTL 300\n@ IN SOA ns hostmaster 1 3600 600 86400 60\n@ IN NS ns\nns IN A 192.0.2.1\nwww IN A 192.0.2.10\n"
MEMORY = 16 << 20
RECURSION = {"forward": [{"zone": ".", "to": ["127.0.0.99"]}], "cache": {"memory": MEMORY}}
LABELS = {"fastpath": {"skua-cache", "skua-cache-marks", "skua-rings", "skua-log-fastpath"},
          "slowpath": {"skua-cache", "skua-cache-marks", "skua-rings", "skua-log-slowpath"}}


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    return path


@pytest.fixture
def net():
    with Net(queues=2) as made:
        yield made


def server(net, zone, **more):
    return Skua(zones=[("example.test", zone)], listen=[net.server.v4], ns=net.server, xdp={"interfaces": ["dns0"]},
                extra={"server": {"workers": 2}, **RECURSION}, **more)


def descriptors(pid):
    """{label: [(inode, access mode, octets), ...]} of the memfds that a process holds; "eventfd": how many."""
    held = {"eventfd": 0}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
            flags = int(re.search(r"flags:\s*(\d+)", open(f"/proc/{pid}/fdinfo/{fd}").read()).group(1), 8)
            stat = os.stat(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
        if "eventfd" in link:
            held["eventfd"] += 1
        found = re.match(r"/memfd:(\S+)", link)
        if found:
            held.setdefault(found.group(1), []).append((stat.st_ino, flags & os.O_ACCMODE, stat.st_size))
    return held


def www(net):
    try:
        answer = ask(net.server.v4, "www.example.test", "A", ns=net.client, timeout=1)
    except TimeoutError:
        return None
    return answer.answer[0][0].address if answer and answer.answer else None


def objects(held, part):
    return {label: [inode for inode, _, _ in held[label]] for label in LABELS[part]}


def test_each_part_holds_what_it_needs_and_no_more(net, zone):
    with server(net, zone) as skua:
        fastpath, slowpath = descriptors(skua.part_pid("fastpath")), descriptors(skua.part_pid("slowpath"))
        assert LABELS["fastpath"] <= fastpath.keys() and LABELS["slowpath"] <= slowpath.keys()
        assert "skua-log-slowpath" not in fastpath and "skua-log-fastpath" not in slowpath
        assert [mode for _, mode, _ in fastpath["skua-cache"]] == [os.O_RDONLY]
        assert [mode for _, mode, _ in slowpath["skua-cache"]] == [os.O_RDWR]
        for label in ("skua-cache", "skua-cache-marks", "skua-rings"):
            assert fastpath[label][0][0] == slowpath[label][0][0], f"{label}: one object for both"
        # Two queues of the interface and two workers: as many threads, and an eventfd for each.
        assert fastpath["eventfd"] >= 4 and slowpath["eventfd"] >= 4
        asked = sum(slowpath[label][0][2] for label in ("skua-cache", "skua-cache-marks"))
        assert MEMORY * 0.95 <= asked <= MEMORY * 1.01
        assert "SK-RUN-031" in skua.log() and "2 threads and 2 workers" in skua.log()
        assert www(net) == "192.0.2.10"


@pytest.mark.parametrize("part", ["fastpath", "slowpath"])
def test_the_objects_outlive_the_parts(net, zone, part):
    with server(net, zone) as skua:
        before = objects(descriptors(skua.part_pid(part)), part)
        old = skua.kill_part(part)
        wait_until(lambda: skua.part_pid(part) not in (0, old) and skua.status()["parts"][part]["state"] == "serving", 20)
        assert objects(descriptors(skua.part_pid(part)), part) == before
        assert www(net) == "192.0.2.10"


def test_without_recursion_there_is_no_cache(net, zone):
    with Skua(zones=[("example.test", zone)], listen=[net.server.v4], ns=net.server, xdp={"interfaces": ["dns0"]}) as skua:
        for part in LABELS:
            held = descriptors(skua.part_pid(part))
            assert f"skua-log-{part}" in held and not {"skua-cache", "skua-cache-marks", "skua-rings"} & held.keys()
        assert www(net) == "192.0.2.10"


def test_sockets_only(zone):
    with Skua(zones=[("example.test", zone)], extra=RECURSION) as skua:
        held = descriptors(skua.part_pid("slowpath"))
        assert {"skua-cache", "skua-cache-marks", "skua-log-slowpath"} <= held.keys() and "skua-rings" not in held
        assert ask(skua.address, "www.example.test", "A", port=skua.port).answer[0][0].address == "192.0.2.10"


def test_a_cache_larger_than_the_machine_is_refused(zone):
    server = Skua(zones=[("example.test", zone)], extra={**RECURSION, "cache": {"memory": "1T"}})
    try:
        with pytest.raises(Exception):
            server.start()
        assert "SK-RUN-032" in server.log() and "answer cache" in server.log()
    finally:
        server.stop()
