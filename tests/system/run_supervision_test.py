# SPDX-License-Identifier: Apache-2.0
"""What the supervisor does with parts of every kind of behaviour: run_fake_part.py plays them."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from lib import build_folder, free_port, wait_until
from lib.process import Process, run

HERE = os.path.dirname(os.path.abspath(__file__))
READY = {"type": "ready"}
CONFIG_LINES = "server:\n  run: {run}\n  state: {state}\n  workers: 2\n  identity: fake.test\nlisten:\n  dns: [ \"127.0.0.1:{port}\" ]\n"


class Supervisor(Process):
    """A copy of `skua` beside a fake slowpath."""

    name = "supervisor"

    def __init__(self, script=None, config=None, environment=None):
        super().__init__()
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        shutil.copy(os.path.join(build_folder(), "skua"), self.bin)
        for part in ("slowpath", "fastpath"):
            shutil.copy(os.path.join(HERE, "run_fake_part.py"), os.path.join(self.bin, f"skua-{part}"))
        self.port = free_port()
        self.run_folder = os.path.join(self.folder, "run")
        self.config_path = os.path.join(self.folder, "skua.yaml")
        self.extra_environment = environment or {}
        with open(self.config_path, "w") as f:
            f.write(config if config is not None else
                    CONFIG_LINES.format(run=self.run_folder, state=os.path.join(self.folder, "state"), port=self.port))
        self.script(script if script is not None else {"after_go": [READY]})

    def script(self, script, part="slowpath"):
        with open(os.path.join(self.folder, part + ".json.new"), "w") as f:
            json.dump(script, f)
        os.rename(f.name, os.path.join(self.folder, part + ".json"))

    def command(self):
        return [os.path.join(self.bin, "skua"), "run", "-c", self.config_path]

    def environment(self):
        return {**os.environ, "FAKE_PARTS": self.folder, **self.extra_environment}

    def start(self):
        self.launches = getattr(self, "launches", 0) + 1
        return super().start()

    def is_ready(self):
        return self.log().count("SK-RUN-001") == self.launches

    def received(self, part="slowpath"):
        try:
            with open(os.path.join(self.folder, part + ".received")) as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def of_type(self, kind, part="slowpath"):
        return [m for m in self.received(part) if m["type"] == kind]

    def wait_for(self, kind, count=1, timeout=10):
        return wait_until(lambda: len(self.of_type(kind)) >= count and self.of_type(kind), timeout, what=f"{count} x {kind}")

    def skua(self, *arguments, timeout=10):
        return run([os.path.join(self.bin, "skua"), *arguments], check=False, timeout=timeout)

    def status(self):
        return json.loads(self.skua("status", "--json", "-c", self.config_path).stdout)

    def slowpath(self):
        return self.status()["parts"]["slowpath"]

    def wait_state(self, state, timeout=10):
        return wait_until(lambda: self.slowpath()["state"] == state and self.slowpath(), timeout, what=f"state {state}")


def is_alive(pid):
    """A zombie that nobody has reaped yet is not."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def starts(supervisor):
    return supervisor.of_type("start")


def test_start_hands_over_everything_in_order():
    with Supervisor() as s:
        s.wait_for("go")
        messages = s.received()
        kinds = [m["type"] for m in messages]
        assert kinds == ["start", "config", "counters", "settings", "control", "policy", "log", "zones", "listen", "listen", "listen", "listen", "go"]
        assert all(m["fds"] == 1 for m in messages[1:-1])
        assert messages[1]["text"] == s.config_path and "identity: fake.test" in messages[1]["content"]
        assert b"fake.test" in bytes.fromhex(messages[3]["content"])
        listeners = {(m["a"], m["b"]) for m in messages if m["type"] == "listen"}
        assert listeners == {(0, 0), (0, 1), (1, 0), (1, 1)}, "a UDP and a TCP socket for each of two workers"
        assert messages[0]["fds"][:4] == [0, 1, 2, 3] and len(messages[0]["fds"]) <= 5, "nothing else is inherited"
        s.wait_state("serving")


def test_systemd_is_told_and_the_parts_can_not_speak_in_our_name(tmp_path):
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(tmp_path / "notify"))
    notify.settimeout(5)
    heard = []

    def hear(word):
        while not any(word in h for h in heard):
            heard.append(notify.recv(4096).decode())

    s = Supervisor(environment={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"})
    with s:
        hear("READY=1")
        hear("WATCHDOG=1")
        assert starts(s)[0]["environment"] == {"NOTIFY_SOCKET": "", "WATCHDOG_USEC": ""}
        begin = time.monotonic()
        for _ in range(5):
            assert "WATCHDOG=1" in notify.recv(4096).decode()
        assert 0.3 < time.monotonic() - begin < 1.5, "twice in the watchdog's time"
        s.signal(signal.SIGTERM)
        hear("STOPPING=1")
        assert s.popen.wait(5) == 0
    notify.close()


def test_a_part_that_ends_starts_at_once_then_with_back_off():
    with Supervisor({"after_go": [READY], "exit": 1}) as s:
        wait_until(lambda: len(starts(s)) >= 5)
        status = s.slowpath()
        assert status["restarts"] >= 4 and status["last_exit"] == "ended with code 1"
        time.sleep(1.0)
        assert len(starts(s)) <= 9, "restarts must become rarer"
        log = s.log()
        assert "starts again in 0 ms" in log and "starts again in 50 ms" in log and "starts again in 200 ms" in log
        s.script({"after_go": [READY]})
        s.wait_state("serving")


def test_a_part_that_wants_a_new_socket_starts_without_back_off():
    with Supervisor({"after_go": [READY], "exit": 11}) as s:
        wait_until(lambda: len(starts(s)) >= 12)
        assert s.log().count("starts again in") == s.log().count("starts again in 0 ms")
        s.script({"after_go": [READY]})
        s.wait_state("serving")


def test_a_part_that_can_not_even_start_waits_although_it_wants_a_new_socket():
    with Supervisor({"exit": 11}) as s:
        wait_until(lambda: "starts again in 200 ms" in s.log())


def test_a_configuration_that_the_slowpath_refuses_ends_the_run():
    with Supervisor({"after_go": [{"type": "failed", "a": 2, "text": "no zone is any good"}], "exit": 2}) as s:
        assert s.popen.wait(10) == 2
        assert "SK-RUN-023 slowpath: no zone is any good" in s.log()
        assert len(starts(s)) == 1


def test_a_missing_program_ends_the_run():
    s = Supervisor()
    os.unlink(os.path.join(s.bin, "skua-slowpath"))
    with s:
        assert s.popen.wait(10) == 1
        assert "SK-RUN-022" in s.log() and "skua-slowpath can't be executed" in s.log()


def test_killed_part_is_named_by_its_signal():
    with Supervisor() as s:
        pid = s.wait_state("serving")["pid"]
        os.kill(pid, signal.SIGSEGV)
        wait_until(lambda: len(starts(s)) == 2)
        assert s.wait_state("serving")["last_exit"] == "ended by signal 11 (SIGSEGV)"


def test_the_end_of_a_part_is_seen_at_once_although_others_look_at_it_in_proc():
    """The kernel spins while it clears a released process out of /proc and one of its threads does the same; at real-time
    priority that thread would never be done."""
    one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]   # so that we get in each other's way
    s = Supervisor({"after_go": [READY], "threads": 30})
    s.command = lambda: one_cpu + Supervisor.command(s)
    with s:
        first = s.wait_state("serving")["pid"]
        looking = [subprocess.Popen([*one_cpu, sys.executable, "-c", LOOK, str(s.pid)]) for _ in range(4)]
        try:
            for restart in range(1, 7):
                pid = wait_until(lambda: s.slowpath()["state"] == "serving" and s.slowpath()["pid"], interval=0.1)
                begin = time.monotonic()
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: s.log().count("SK-RUN-004") == restart, interval=0.005)
                assert time.monotonic() - begin < 0.7, f"restart {restart}"
        finally:
            for process in looking:
                process.kill()
                process.wait()
        wait_until(lambda: not os.path.exists(f"/proc/{first}"), what="the ended process is reaped")


LOOK = """
import glob, os, sys
while True:
    for path in glob.glob(f"/proc/{sys.argv[1]}/task/*/children"):
        for child in open(path).read().split():
            try:
                for thread in os.listdir(f"/proc/{child}/task"):
                    for name in os.listdir(f"/proc/{child}/task/{thread}"):
                        os.stat(f"/proc/{child}/task/{thread}/{name}")
            except OSError:
                pass
"""


def test_zones_are_kept_and_handed_to_the_next_process():
    publish = [{"type": "segment", "a": 7}, {"type": "segment", "a": 3}, {"type": "map", "generation": 5, "zones": 2}, READY,
               {"type": "live", "a": 1, "generation": 5}]
    with Supervisor({"after_go": publish}) as s:
        s.wait_state("serving")
        status = wait_until(lambda: s.status()["zones"] and s.status())
        assert (status["generation"], status["zones"], status["segments"]) == (5, 2, 2)
        live = wait_until(lambda: [m for m in s.of_type("live") if m["generation"] == 5 and m["a"] == 0])
        assert live, "without a fastpath nobody there looks at older zones"
        assert [m for m in s.of_type("live") if m["a"] == 1], "and its own comes back"
        s.script({"after_go": [READY, {"type": "segment", "a": 9}, {"type": "map", "generation": 6, "zones": 3},
                               {"type": "segment-drop", "a": 7}]})
        os.kill(s.slowpath()["pid"], signal.SIGKILL)
        wait_until(lambda: len(starts(s)) == 2)
        s.wait_for("go", 2)
        second = [m for m in s.received() if m["pid"] == starts(s)[1]["pid"]]
        assert [(m["type"], m["a"], m["generation"]) for m in second if m["type"] in ("segment", "map", "go")] == [
            ("segment", 3, 0), ("segment", 7, 0), ("map", 0, 5), ("go", 0, 0)]
        status = wait_until(lambda: s.status()["generation"] == 6 and s.status())
        assert wait_until(lambda: s.status()["segments"] == 2)
        assert status["zones"] == 3


@pytest.mark.parametrize("what, message", [
    ("sent a bad segment (id 7, generation 0): exists already", {"type": "segment", "a": 7}),
    ("sent a bad map (id 0, generation 5): damaged", {"type": "map", "generation": 5}),
    ("sent a bad segment drop (id 99, generation 0): not found", {"type": "segment-drop", "a": 99}),
    ("says that a zone set is live that nobody published", {"type": "live", "generation": 6}),
    ("sent stop, an order that is ours", {"type": "stop"}),
    ("sent a malformed message", {"raw": "00" * 280}),
    ("sent a malformed message", {"raw": "ff"}),
    ("sent a malformed message", {"type": "segment", "a": 8, "bare": True}),
])
def test_a_part_that_breaks_the_protocol_is_killed(what, message):
    good = [{"type": "segment", "a": 7}, {"type": "map", "generation": 5, "zones": 1}, READY]
    with Supervisor({"after_go": [*good, message]}) as s:
        wait_until(lambda: f"SK-RUN-008 slowpath {what}" in s.log(), what=what)
        s.script({"after_go": [READY]})
        wait_until(lambda: len(starts(s)) >= 2)
        status = wait_until(lambda: s.slowpath()["state"] == "serving" and s.status())
        assert status["generation"] == 5 and status["segments"] == 1, "what was good stays"


def test_silence_of_a_serving_thread_kills_its_process():
    with Supervisor({"after_go": [READY], "heartbeat": "udp", "silent_after_s": 1.0}) as s:
        s.wait_state("serving")
        wait_until(lambda: "SK-RUN-005" in s.log())
        assert re.search(r"slowpath \(process \d+\): a serving thread gave no heartbeat for 5", s.log())
        wait_until(lambda: len(starts(s)) >= 2)
        assert s.slowpath()["hangs"] >= 1 and s.slowpath()["last_exit"] == "was silent and was killed"


def test_a_thread_that_beats_is_left_alone():
    with Supervisor({"after_go": [READY], "heartbeat": "tcp"}) as s:
        s.wait_state("serving")
        time.sleep(2)
        assert len(starts(s)) == 1 and "SK-RUN-005" not in s.log()
        assert [t["role"] for t in s.status()["threads"]] == ["tcp"]


def test_a_stopped_supervisor_does_not_blame_its_parts():
    with Supervisor({"after_go": [READY], "heartbeat": "udp"}) as s:
        pid = s.wait_state("serving")["pid"]
        for _ in range(3):
            s.signal(signal.SIGSTOP)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(1.0)
            os.kill(pid, signal.SIGCONT)
            s.signal(signal.SIGCONT)
            time.sleep(0.3)
        assert len(starts(s)) == 1 and "SK-RUN-005" not in s.log()


def test_a_part_that_stops_reading_is_stopped_by_harder_means():
    with Supervisor({"after_go": [READY], "ignore": ["stop", "term"]}) as s:
        s.wait_state("serving")
        begin = time.monotonic()
        s.signal(signal.SIGTERM)
        assert s.popen.wait(10) == 0
        assert 3 < time.monotonic() - begin < 6
        assert "did not end when asked: SIGTERM" in s.log() and "did not end on SIGTERM: killed" in s.log()


def test_a_log_that_nobody_reads_stops_nothing():
    s = Supervisor({"after_go": [READY], "exit": 11})
    reader, writer = os.pipe()
    process = subprocess.Popen(s.command(), stderr=writer, stdout=writer, env=s.environment(), start_new_session=True)
    try:
        os.set_blocking(writer, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writer, b"x" * 4096)
        os.set_blocking(writer, True)
        wait_until(lambda: len(starts(s)) >= 5, what="parts are started again and again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)
        s.stop()


def test_a_second_signal_is_in_a_hurry():
    with Supervisor({"after_go": [READY], "ignore": ["stop", "term"]}) as s:
        s.wait_state("serving")
        s.signal(signal.SIGINT)
        time.sleep(0.2)
        s.signal(signal.SIGINT)
        assert s.popen.wait(2) == 0


def test_sigterm_stops_in_order_and_removes_the_sockets():
    with Supervisor() as s:
        pid = s.wait_state("serving")["pid"]
        s.signal(signal.SIGTERM)
        assert s.popen.wait(5) == 0
        assert s.of_type("stop")
        assert not is_alive(pid)
        assert os.listdir(s.run_folder) == ["skua.lock"]
        assert "SK-RUN-002" in s.log()


def test_parts_die_with_a_killed_supervisor_and_the_next_one_starts_at_once():
    with Supervisor() as s:
        pid = s.wait_state("serving")["pid"]
        s.popen.kill()
        s.popen.wait()
        begin = time.monotonic()
        s.start()
        s.wait_state("serving")
        assert time.monotonic() - begin < 6
        assert not is_alive(pid)


def test_a_second_instance_is_refused_and_told_who_is_first():
    with Supervisor() as first:
        first.wait_state("serving")
        done = run(first.command(), check=False, env=first.environment())
        assert done.returncode == 1
        assert f"SK-RUN-016 {first.run_folder} is in use by another `skua run`, process {first.pid}" in done.stderr
        assert first.slowpath()["state"] == "serving"


@pytest.mark.parametrize("text, says", [
    ("server:\n  identty: x\n", "skua.yaml:2:3: error: "),
    ("server: [\n", "skua.yaml:"),
    ("listen:\n  dns: [ \"nonsense\" ]\n", "skua.yaml:2:"),
])
def test_errors_of_the_configuration_are_told_with_their_place(text, says):
    s = Supervisor(config=text)
    done = run(s.command(), check=False, env=s.environment())
    assert done.returncode == 2
    assert says in done.stderr and "SK-RUN-027" in done.stderr
    s.stop()


def test_a_missing_configuration_is_told():
    done = run([os.path.join(build_folder(), "skua"), "run", "-c", "/nowhere/skua.yaml"], check=False)
    assert done.returncode == 2 and "/nowhere/skua.yaml: No such file" in done.stderr


def test_a_port_that_is_taken_is_told_with_its_holder():
    with Supervisor() as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        s.wait_state("serving")
        holder.bind(("127.0.0.1", 0))
        other = Supervisor()
        with open(other.config_path, "w") as f:
            f.write(CONFIG_LINES.format(run=other.run_folder, state=other.folder + "/state", port=holder.getsockname()[1]))
        done = run(other.command(), check=False, env=other.environment())
        assert done.returncode == 1, "and at once: no predecessor was killed here"
        assert "SK-RUN-014" in done.stderr and str(os.getpid()) in done.stderr
        other.stop()


def test_the_supervisor_stays_small():
    with Supervisor() as s:
        s.wait_state("serving")
        time.sleep(0.5)
        with open(f"/proc/{s.pid}/status") as f:
            fields = dict(line.split(":", 1) for line in f)
        with open(os.path.join(s.bin, "skua"), "rb") as f:
            is_sanitized = b"__asan_init" in f.read()
        anonymous_kib = int(fields["RssAnon"].split()[0])
        assert anonymous_kib < (32768 if is_sanitized else 4096), fields["VmRSS"]
