# SPDX-License-Identifier: Apache-2.0
"""Our own server: `skua run` from the build folder, with everything it writes in a temporary folder."""
import json
import os
import signal
import subprocess

from .process import Process, run
from .query import ask_raw, make_query

PARTS = ("fastpath", "slowpath")
# Tests that watch which way answers go must not see a queue parked because the machine was busy; tests of faults set what operators have.
PATIENT = "2s"
DEFAULT_PATIENCE = "40ms"


def source_folder():
    return os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))


def build_folder():
    return os.path.abspath(os.environ.get("SKUA_BUILD") or os.path.join(source_folder(), "build"))


def _yaml(value):
    return json.dumps(value)   # JSON is YAML


class Skua(Process):
    """listen: addresses, with ports as in "10.99.0.1:5300" or "[fd99::1]:5300"; default: loopback with a free port.
    zones: (name, file) pairs. xdp: a dict for the section `xdp`, e.g. {"interfaces": ["dns0"]}.
    extra: a dict of other sections or keys, merged: {"server": {"workers": 2}, "tcp": {...}}."""

    name = "skua"
    start_timeout = 30.0

    def __init__(self, zones=(), listen=None, ns=None, xdp=None, extra=None, environment=None):
        super().__init__(ns)
        if listen is None:
            from .process import free_port
            listen = [f"127.0.0.1:{free_port()}"]
        self.zones = [(name.rstrip(".") + ".", os.path.abspath(path)) for name, path in zones]
        self.listen = list(listen)
        self.extra_environment = environment or {}
        self.config_path = os.path.join(self.folder, "skua.yaml")
        self.bpf_folder = os.path.join(self.folder, "bpf")
        self.run_folder = os.path.join(self.folder, "run")
        os.mkdir(self.bpf_folder)
        self.settings = {"server": {"identity": "skua-test", "state": os.path.join(self.folder, "state"), "run": self.run_folder, "workers": 1},
                         "listen": {"dns": self.listen}, "xdp": {"pin-dir": os.path.join(self.bpf_folder, "skua"), "park-after": PATIENT, **(xdp or {})}}
        for section, keys in (extra or {}).items():
            if isinstance(keys, dict):
                self.settings.setdefault(section, {}).update(keys)
            else:
                self.settings[section] = keys
        if self.settings["xdp"].get("interfaces"):
            # `ip netns exec` gives each process a mount namespace of its own; pins must outlive them all.
            run(["mount", "-t", "bpf", "bpf", self.bpf_folder])
        self.address, self.port = _split(self.listen[0])
        self.write_config()

    def write_config(self):
        """Writes skua.yaml from self.settings and self.zones: change them and call this before a reload."""
        lines = []
        for section, keys in self.settings.items():
            lines.append(f"{section}:")
            lines += [f"  {key}: {_yaml(value)}" for key, value in keys.items()] if isinstance(keys, dict) else [f"  {_yaml(keys)}"]
        if self.zones:
            lines.append("zones:")
            for name, path in self.zones:
                lines += [f"  - name: {_yaml(name)}", f"    file: {_yaml(path)}"]
        with open(self.config_path, "w") as f:
            f.write("\n".join(lines) + "\n")

    def command(self):
        return [os.path.join(build_folder(), "skua"), "run", "-c", self.config_path]

    def environment(self):
        return {**os.environ, **self.extra_environment}

    def is_ready(self):
        """It answers for its last zone (without zones: at all), and serves by every part that is wanted."""
        probe = make_query(self.zones[-1][0] if self.zones else "skua.invalid.", "SOA").to_wire()
        reply = ask_raw(self.address, probe, port=self.port, ns=self.ns, timeout=0.2)
        if reply is None or (self.zones and reply[3] & 15):
            return False
        try:
            status = self.status()
        except (RuntimeError, ValueError, subprocess.TimeoutExpired):
            return False
        return all(part.get("state") in ("serving", "off") for part in status.get("parts", {}).values())

    # --- the command -----------------------------------------------------------------------------------------------------
    def skua(self, *arguments, check=True, timeout=30):
        """build/skua with this server's configuration, in its namespace; the result has stdout, stderr, returncode."""
        command = [os.path.join(build_folder(), "skua"), *map(str, arguments), "-c", self.config_path]
        if self.ns:
            command = ["ip", "netns", "exec", self.ns.name, *command]
        return run(command, check=check, timeout=timeout)

    def status(self):
        return json.loads(self.skua("status", "--json").stdout)

    def counters(self, role=None):
        """Sums of the counters over all threads (of a role: "xdp", "udp", "tcp")."""
        totals = {}
        for thread in self.status()["threads"]:
            if role is None or thread["role"] == role:
                for name, value in thread["counters"].items():
                    totals[name] = totals.get(name, 0) + value
        return totals

    def reload(self, *zones, check=True):
        return self.skua("reload", *zones, check=check)

    # --- its parts ---------------------------------------------------------------------------------------------------------
    def part_pid(self, part):
        """pid of "fastpath" or "slowpath", 0 if it does not run."""
        assert part in PARTS
        for pid in _children(self.pid):
            try:
                with open(f"/proc/{pid}/comm") as f:
                    if f.read().strip() == f"skua-{part}":
                        return pid
            except OSError:
                continue
        return 0

    def kill_part(self, part, number=signal.SIGKILL):
        pid = self.part_pid(part)
        assert pid, f"no {part} to signal"
        os.kill(pid, number)
        return pid

    def kill(self):
        """SIGKILL to `skua run` itself; its parts then end by themselves."""
        self.popen.kill()
        self.popen.wait()

    def restart(self):
        """After kill(): starts again on the same folder."""
        return Process.start(self)

    def cleanup(self):
        if self.settings["xdp"].get("interfaces"):
            self.skua("xdp", "detach", check=False)
            run(["umount", self.bpf_folder], check=False)


def _children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def _split(text):
    if text.startswith("["):
        address, _, port = text[1:].partition("]")
        return address, int(port[1:]) if port else 53
    if text.count(":") == 1:
        address, port = text.split(":")
        return address, int(port)
    return text, 53
