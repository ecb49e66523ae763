# SPDX-License-Identifier: Apache-2.0
"""The parts as the users that they have on an installed machine. A mount namespace with an /etc/passwd and /etc/group of its own holds these
users, so that nothing is added to the machine."""
import os
import signal

import pytest

from lib import Net, Skua, ask, wait_until

USERS = {"fastpath": ("skua-fastpath", 61001), "slowpath": ("skua-slowpath", 61002)}
ZONE = "$TTL 300\n@ SOA ns hostmaster {serial} 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.{host}\n" + "".join(
    f"t{i} TXT \"{'x' * 250}\"\n" for i in range(5000))     # enough for an image file
NO_CAPABILITY = "0" * 16


class SkuaWithUsers(Skua):
    def command(self):
        binds = []
        for file, line in (("passwd", "{0}:x:{1}:{1}::/nonexistent:/usr/sbin/nologin\n"), ("group", "{0}:x:{1}:\n")):
            path = os.path.join(self.folder, file)
            with open(f"/etc/{file}") as old, open(path, "w") as new:
                new.write(old.read() + "".join(line.format(*user) for user in USERS.values()))
            binds.append(f"mount --bind {path} /etc/{file}")
        return ["unshare", "--mount", "sh", "-ec", "; ".join(binds) + '; exec "$@"', "sh", *super().command()]


@pytest.fixture
def zone(tmp_path):
    """Where other users may read."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    path = tmp_path / "example.zone"
    path.write_text(ZONE.format(serial=1, host=10))
    return path


@pytest.fixture
def world(zone):
    with Net(queues=1) as net:
        skua = SkuaWithUsers(zones=[("example.test", zone)], listen=[net.server.v4, net.server.v6], ns=net.server, xdp={"interfaces": ["dns0"]})
        os.chmod(skua.folder, 0o755)
        with skua:
            yield net, skua


def threads_of(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status") as f:
            yield dict(line.rstrip("\n").split(":", 1) for line in f if ":" in line)


def check_part(skua, part):
    name, uid = USERS[part]
    pid = skua.part_pid(part)
    count = 0
    for status in threads_of(pid):
        assert status["Uid"].split() == status["Gid"].split() == [str(uid)] * 4, f"{status['Name']} does not run as {name}"
        assert status["Groups"].split() == []
        assert {status[s].strip() for s in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {NO_CAPABILITY}, status["Name"]
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2", status["Name"]
        count += 1
    assert count >= 2, "a control thread and one that serves"
    return pid


def addresses(net, tcp):
    return [ask(a, "www.example.test", ns=net.client, tcp=tcp).answer[0][0].address for a in (net.server.v4, net.server.v6)]


def ways(skua):
    return skua.status()["answers"]


def test_both_parts_are_their_users_and_answer(world):
    net, skua = world
    for part in USERS:
        check_part(skua, part)
    before = ways(skua)
    assert addresses(net, tcp=False) == ["192.0.2.10"] * 2
    wait_until(lambda: ways(skua)["xdp"] - before["xdp"] == 2, what="two answers by AF_XDP")
    assert addresses(net, tcp=True) == ["192.0.2.10"] * 2
    wait_until(lambda: ways(skua)["tcp"] - before["tcp"] == 2, what="two answers by TCP")
    assert ways(skua)["udp"] == before["udp"]
    skua.signal(signal.SIGTERM)
    assert skua.popen.wait(10) == 0
    assert "SK-RUN-029" not in skua.log(), "a privilege could not be given up"


def test_a_part_that_starts_again_is_its_user_again(world):
    net, skua = world
    for part in USERS:
        old = skua.kill_part(part)
        wait_until(lambda p=part, o=old: skua.part_pid(p) not in (0, o) and skua.is_ready(), what=f"another {part}")
        check_part(skua, part)
    assert addresses(net, tcp=False) == addresses(net, tcp=True) == ["192.0.2.10"] * 2


def test_what_the_slowpath_reads_and_writes_it_may(world, zone):
    """Reloads, image files, and a zone that only root may read."""
    net, skua = world
    images = os.path.join(skua.folder, "state", "zones")
    wait_until(lambda: [f for f in os.listdir(images) if f.endswith(".img")], what="an image file")
    assert {os.stat(os.path.join(images, f)).st_uid for f in os.listdir(images)} == {USERS["slowpath"][1]}
    zone.write_text(ZONE.format(serial=2, host=20))
    skua.reload()
    assert addresses(net, tcp=False) == ["192.0.2.20"] * 2
    zone.write_text(ZONE.format(serial=3, host=30))
    zone.chmod(0o600)
    done = skua.reload(check=False)
    assert done.returncode != 0 and "the slowpath's user" in done.stderr
    assert addresses(net, tcp=False) == ["192.0.2.20"] * 2
