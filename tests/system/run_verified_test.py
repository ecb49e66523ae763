# SPDX-License-Identifier: Apache-2.0
"""What the supervisor tells parts that start about memory that a process before them has verified: run_fake_part.py plays both parts."""
import json
import os
import shutil
import signal

import pytest

from lib import Net, Skua, build_folder, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
READY = {"type": "ready"}
VERIFIED = 1
# Says of what it sends that it is verified, and that the fastpath serves it already: neither is its to say.
LIES = [{"type": "segment", "a": 7, "b": VERIFIED}, {"type": "segment", "a": 3, "b": VERIFIED},
        {"type": "map", "generation": 5, "zones": 2, "b": VERIFIED, "a": 0}, READY, {"type": "live", "a": 0, "generation": 5}]


class FakeParts(Skua):
    """A copy of `skua` in a namespace with an interface, beside a fake slowpath and a fake fastpath."""

    def __init__(self, net):
        super().__init__(listen=[net.server.v4], ns=net.server, xdp={"interfaces": ["dns0"]})
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        shutil.copy(os.path.join(build_folder(), "skua"), self.bin)
        for part in ("slowpath", "fastpath"):
            shutil.copy(os.path.join(HERE, "run_fake_part.py"), os.path.join(self.bin, f"skua-{part}"))
        self.script("slowpath", LIES)
        self.script("fastpath", [READY])

    def script(self, part, messages):
        with open(os.path.join(self.folder, part + ".json.new"), "w") as f:
            json.dump({"after_go": messages}, f)
        os.rename(f.name, os.path.join(self.folder, part + ".json"))

    def command(self):
        return [os.path.join(self.bin, "skua"), "run", "-c", self.config_path]

    def environment(self):
        return {**os.environ, "FAKE_PARTS": self.folder}

    def is_ready(self):
        return "SK-RUN-001" in self.log()

    def received(self, part):
        """What each process of the part got, one list a process."""
        lists = []
        try:
            with open(os.path.join(self.folder, part + ".received")) as f:
                for line in f:
                    if not line.endswith("\n"):
                        break
                    message = json.loads(line)
                    if message["type"] == "start":
                        lists.append([])
                    lists[-1].append(message)
        except FileNotFoundError:
            pass
        return lists

    def marks(self, part, number):
        """What the part's process of that number (1, 2, ...) was told of each: {id or "map": flag}, once it has the map."""
        def told():
            lists = self.received(part)
            got = lists[number - 1] if len(lists) >= number else []
            marks = {m["a"] if m["type"] == "segment" else "map": m["b"] for m in got if m["type"] in ("segment", "map")}
            return "map" in marks and any(m["type"] == "go" for m in got) and marks
        return wait_until(told, what=f"zones for {part} process {number}")

    def kill(self, part):
        """Waits for READY first: a part that ends before it loses its word."""
        wait_until(lambda: self.status()["parts"][part]["state"] == "serving", what=f"{part} serves")
        os.kill(self.status()["parts"][part]["pid"], signal.SIGKILL)


@pytest.fixture
def parts():
    with Net(queues=1) as net:
        with FakeParts(net) as made:
            yield made


def test_the_slowpath_can_not_say_that_something_is_verified(parts):
    assert parts.marks("fastpath", 1) == {7: 0, 3: 0, "map": 0}, "passed on without its marks"
    parts.kill("fastpath")
    assert parts.marks("fastpath", 2) == {7: 0, 3: 0, "map": 0}, "and its LIVE counts for nobody but itself"
    parts.script("slowpath", [READY])
    parts.kill("slowpath")
    assert parts.marks("slowpath", 2) == {7: 1, 3: 1, "map": 1}, "it has its own word back"


def test_a_part_that_served_is_told_so_unless_its_program_changed(parts):
    parts.marks("fastpath", 1)
    parts.script("fastpath", [READY, {"type": "live", "a": 0, "generation": 5}])
    parts.kill("fastpath")
    assert parts.marks("fastpath", 2) == {7: 0, 3: 0, "map": 0}
    wait_until(lambda: [m for p in parts.received("slowpath") for m in p if m["type"] == "live" and m["generation"] == 5 and m["a"] == 0])
    parts.kill("fastpath")
    assert parts.marks("fastpath", 3) == {7: 1, 3: 1, "map": 1}
    program = os.path.join(parts.bin, "skua-fastpath")
    shutil.copy(program, program + ".new")
    os.rename(program + ".new", program)
    parts.kill("fastpath")
    assert parts.marks("fastpath", 4) == {7: 0, 3: 0, "map": 0}, "another program may check what this one did not"


def test_a_part_that_ends_before_it_serves_loses_its_word(parts):
    parts.marks("fastpath", 1)
    parts.script("fastpath", [{"type": "live", "a": 0, "generation": 5}])
    parts.kill("fastpath")
    parts.marks("fastpath", 2)
    wait_until(lambda: [m for p in parts.received("slowpath") for m in p if m["type"] == "live" and m["generation"] == 5 and m["a"] == 0])
    os.kill(parts.status()["parts"]["fastpath"]["pid"], signal.SIGKILL)
    assert parts.marks("fastpath", 3) == {7: 0, 3: 0, "map": 0}, "what it believed may be what ended it"
