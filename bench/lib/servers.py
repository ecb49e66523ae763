"""The servers under test: each is a class with a command, a configuration and what must hold of it."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

from lib import net

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SKUA_BUILD", ROOT / "build"))


class Server:
    """Runs in the server's namespace on the server's CPU. root: a chroot with the programs, or None for this system's."""
    name = "?"
    is_xdp = False

    def __init__(self, work, zones, root=None):
        self.work = pathlib.Path(work)
        self.zones = zones          # [(origin without final dot, file)]
        self.root = root
        self.process = None
        self.log = None

    def path(self, *parts):
        return self.work.joinpath(*parts)

    def program(self, name):
        """The command that starts a peer's program, from the chroot if there is one."""
        return [*(["chroot", str(self.root)] if self.root else []), name]

    def inside(self):
        return pathlib.Path(str(self.root) + str(self.work.parent))

    def start(self):
        self.prepare()
        self.launch()
        self.wait()
        net.pin_napi()

    def prepare(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.work.chmod(0o777)
        if self.root:   # the same path inside the chroot; zone files lie below it too
            self.inside().mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", str(self.work.parent), str(self.inside())], check=True)
        self.configure()

    def launch(self):
        self.log = open(self.work / "log", "w")
        self.process = subprocess.Popen(net.inside(net.SERVER, "taskset", "-c", str(net.SERVER_CPU), *self.command()),
                                        stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def wait(self, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if self.probe():
                return
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"{self.name} does not answer:\n" + (self.work / "log").read_text()[-3000:])

    def probe(self):
        name = b"".join(bytes([len(label)]) + label for label in self.zones[0][0].encode().split(b".")) + b"\0"
        query = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 6, 1)
        code = ("import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.settimeout(0.2)\n"
                f"s.sendto(bytes.fromhex('{query.hex()}'),('{net.SERVER_IP}',53))\n"
                "d=s.recv(4096)\nsys.exit(0 if d[2]&0x80 and d[3]&15==0 else 1)")
        return subprocess.run(net.inside(net.CLIENT, "/usr/bin/python3", "-c", code), capture_output=True).returncode == 0

    def stop(self, keep=False):
        """keep: what the server left in its folder stays for the next launch."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                for pid in net.tree(self.process.pid):
                    os.kill(pid, signal.SIGKILL)
                self.process.wait(5)
        if self.log:
            self.log.close()
        if self.is_xdp and not keep:     # Knot leaves its program attached
            subprocess.run(["ip", "-n", net.SERVER, "link", "set", net.SERVER_IF, "xdp", "off"], capture_output=True)
        if self.root and not keep:
            subprocess.run(["umount", str(self.inside())], check=False, capture_output=True)

    def pids(self):
        return net.tree(self.process.pid)

    def xdp_answers(self):
        """Answers that left by AF_XDP since the start; None for servers that do not say."""
        return None

    def configure(self):
        pass


class Skua(Server):
    name = "skua"

    def configure(self):
        zones = "".join(f"  - name: {origin}\n    file: {file}\n" for origin, file in self.zones)
        xdp = f"xdp:\n  interfaces: [ {net.SERVER_IF} ]\n  cpus: [ {net.SERVER_CPU} ]\n  pin-dir: {self.work}/bpf/skua\n" if self.is_xdp else ""
        self.path("skua.yaml").write_text(
            f"server:\n  identity: bench\n  state: {self.work}/state\n  run: {self.work}/run\n  workers: 1\n"
            f"listen:\n  dns: [ \"{net.SERVER_IP}\" ]\n{xdp}zones:\n{zones}")

    def command(self):
        return [str(BUILD / "skua"), "run", "-c", str(self.path("skua.yaml"))]

    def status(self):
        done = subprocess.run([str(BUILD / "skua"), "status", "--json", "-c", str(self.path("skua.yaml"))], capture_output=True, text=True)
        return json.loads(done.stdout)

    def stop(self, keep=False):
        super().stop(keep)
        if self.is_xdp and not keep:
            subprocess.run(net.inside(net.SERVER, str(BUILD / "skua"), "xdp", "detach", "-c", str(self.path("skua.yaml"))), capture_output=True)
            subprocess.run(["umount", str(self.work / "bpf")], capture_output=True)


class SkuaXdp(Skua):
    name = "skua-xdp"
    is_xdp = True

    def xdp_answers(self):
        return self.status()["answers"]["xdp"]


class Knot(Server):
    name = "knot"

    def configure(self):
        for folder in ("run", "db"):
            self.path(folder).mkdir()
            self.path(folder).chmod(0o777)
        zones = "".join(f"  - domain: {origin}\n    file: {file}\n" for origin, file in self.zones)
        listen = f"    listen: {net.SERVER_IP}@53\n"
        xdp = f"xdp:\n    listen: {net.SERVER_IF}@53\n" if self.is_xdp else ""
        self.path("knot.conf").write_text(
            f"server:\n    rundir: {self.work}/run\n    udp-workers: 1\n    tcp-workers: 1\n    background-workers: 1\n{listen}{xdp}"
            f"log:\n  - target: stderr\n    any: warning\ndatabase:\n    storage: {self.work}/db\n"
            "template:\n  - id: default\n    semantic-checks: off\n    zonefile-sync: -1\n    zonefile-load: whole\n    journal-content: none\n"
            f"zone:\n{zones}")

    def command(self):
        return [*self.program("/usr/sbin/knotd"), "-c", str(self.path("knot.conf"))]


class KnotXdp(Knot):
    name = "knot-xdp"
    is_xdp = True


class Nsd(Server):
    name = "nsd"

    def configure(self):
        zones = "".join(f"zone:\n    name: {origin}\n    zonefile: {file}\n" for origin, file in self.zones)
        self.path("nsd.conf").write_text(
            f"server:\n    ip-address: {net.SERVER_IP}\n    server-count: 1\n    username: root\n    chroot: \"\"\n    database: \"\"\n"
            f"    zonesdir: {self.work}\n    pidfile: {self.work}/nsd.pid\n    xfrdfile: {self.work}/xfrd.state\n    zonelistfile: {self.work}/zone.list\n"
            f"    xfrdir: {self.work}\n    rrl-ratelimit: 0\nremote-control:\n    control-enable: yes\n    control-interface: {self.work}/control.sock\n{zones}")
        if self.root:   # newer versions have no database
            text = self.path("nsd.conf").read_text().replace("    database: \"\"\n", "")
            self.path("nsd.conf").write_text(text)

    def command(self):
        return [*self.program("/usr/sbin/nsd"), "-d", "-c", str(self.path("nsd.conf"))]


class Gdnsd(Server):
    name = "gdnsd"

    def configure(self):
        self.path("zones").mkdir()
        self.path("run").mkdir()
        for origin, file in self.zones:
            shutil.copy(file, self.path("zones", origin))
        self.path("config").write_text(
            f"options => {{ listen => {net.SERVER_IP}, udp_threads => 1, tcp_threads => 1, run_dir => {self.work}/run, state_dir => {self.work}/run }}\n")

    def command(self):
        return [*self.program("/usr/sbin/gdnsd"), "-c", str(self.work), "start"]


class Bind(Server):
    name = "bind"

    def configure(self):
        zones = "".join(f"zone \"{origin}\" {{ type primary; file \"{file}\"; }};\n" for origin, file in self.zones)
        self.path("named.conf").write_text(
            f"options {{ directory \"{self.work}\"; listen-on {{ {net.SERVER_IP}; }}; listen-on-v6 {{ none; }}; recursion no; "
            f"pid-file \"{self.work}/named.pid\"; session-keyfile \"{self.work}/session.key\"; dnssec-validation no; }};\ncontrols {{ }};\n{zones}")

    def command(self):
        return [*self.program("/usr/sbin/named"), "-g", "-n", "1", "-c", str(self.path("named.conf"))]


class Unbound(Server):
    name = "unbound"

    def configure(self):
        zones = "".join(f"auth-zone:\n  name: {origin}\n  zonefile: {file}\n  for-upstream: no\n  for-downstream: yes\n" for origin, file in self.zones)
        self.path("unbound.conf").write_text(
            f"server:\n  interface: {net.SERVER_IP}\n  num-threads: 1\n  access-control: 0.0.0.0/0 allow\n  do-daemonize: no\n  username: \"\"\n  chroot: \"\"\n"
            f"  directory: {self.work}\n  pidfile: {self.work}/unbound.pid\n  use-syslog: no\n  module-config: iterator\nremote-control:\n  control-enable: no\n{zones}")

    def command(self):
        return [*self.program("/usr/sbin/unbound"), "-d", "-c", str(self.path("unbound.conf"))]


class Pdns(Server):
    name = "pdns"

    def configure(self):
        self.path("named.conf").write_text("".join(f"zone \"{origin}\" {{ type master; file \"{file}\"; }};\n" for origin, file in self.zones))
        self.path("pdns.conf").write_text(
            f"launch=bind\nbind-config={self.work}/named.conf\nlocal-address={net.SERVER_IP}\nsocket-dir={self.work}\nreceiver-threads=1\n"
            "distributor-threads=1\nguardian=no\ndaemon=no\nsecurity-poll-suffix=\nsetuid=\nsetgid=\nzone-cache-refresh-interval=0\n")

    def command(self):
        return [*self.program("/usr/sbin/pdns_server"), f"--config-dir={self.work}"]


class Echo(Server):
    def probe(self):
        time.sleep(0.5)
        return self.process.poll() is None


class EchoXdp(Echo):
    name = "echo-xdp"
    is_xdp = True

    def command(self):
        return [str(BUILD / "bench" / "echo_xdp"), net.SERVER_IF]


class EchoSocket(Echo):
    name = "echo-socket"

    def start(self):
        time.sleep(1)   # the server before may still be giving its socket back
        super().start()

    def command(self):
        return [str(BUILD / "bench" / "echo_socket"), net.SERVER_IP]


ALL = {c.name: c for c in (Skua, SkuaXdp, Knot, KnotXdp, Nsd, Gdnsd, Bind, Unbound, Pdns, EchoXdp, EchoSocket)}
OWN = {"skua", "skua-xdp", "echo-xdp", "echo-socket"}
