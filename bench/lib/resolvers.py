"""Caching forwarders under test: each forwards everything to the upstream of lib/upstream.py, keeps a large cache, uses one thread."""
import json
import pathlib
import signal
import subprocess
import time

from lib import net
from lib.servers import BUILD, Echo, EchoSocket, EchoXdp, Server, Skua

UPSTREAM_IP = "127.0.0.53"
CACHE_MIB = 256


class Upstream:
    """A local knotd with the zone that is asked for, in the server's namespace, on the generator's CPU; its counters say how often it was asked.
    delay_ms: a dnsdist before it that waits so long before each answer."""

    def __init__(self, work, zones, root, delay_ms=0):
        self.work, self.zones, self.root, self.delay_ms, self.process, self.delayer = pathlib.Path(work), zones, root, delay_ms, None, None
        self.address = "127.0.0.54" if delay_ms else UPSTREAM_IP

    def start(self):
        self.work.mkdir(parents=True, exist_ok=True)
        for folder in ("run", "db"):
            self.work.joinpath(folder).mkdir(exist_ok=True)
            self.work.joinpath(folder).chmod(0o777)
        zones = "".join(f"  - domain: {origin}\n    file: {file}\n" for origin, file in self.zones)
        self.work.joinpath("knot.conf").write_text(
            f"server:\n    rundir: {self.work}/run\n    udp-workers: 1\n    tcp-workers: 1\n    background-workers: 1\n    listen: {self.address}@53\n"
            f"log:\n  - target: stderr\n    any: warning\ndatabase:\n    storage: {self.work}/db\nmod-stats:\n  - id: all\n    request-protocol: on\n"
            "template:\n  - id: default\n    semantic-checks: off\n    zonefile-sync: -1\n    zonefile-load: whole\n    journal-content: none\n"
            f"    global-module: mod-stats/all\nzone:\n{zones}")
        self.process = subprocess.Popen(net.inside(net.SERVER, "taskset", "-c", str(net.CLIENT_CPU), "/usr/sbin/knotd", "-c", str(self.work / "knot.conf")),
                                        stdout=subprocess.DEVNULL, stderr=open(self.work / "log", "w"), stdin=subprocess.DEVNULL)
        if self.delay_ms:
            self.work.joinpath("delay.conf").write_text(
                f"setLocal('{UPSTREAM_IP}:53')\nsetACL('0.0.0.0/0')\nnewServer({{address='{self.address}:53', healthCheckMode='up'}})\n"
                f"addResponseAction(AllRule(), DelayResponseAction({self.delay_ms}))\nsetSecurityPollSuffix('')\n")
            self.delayer = subprocess.Popen(net.inside(net.SERVER, "taskset", "-c", str(net.CLIENT_CPU), "dnsdist", "--supervised", "--disable-syslog", "-C",
                                                       str(self.work / "delay.conf")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not self._answers():
            time.sleep(0.1)

    def _answers(self):
        done = subprocess.run(net.inside(net.SERVER, "dig", "+time=1", "+tries=1", "+short", f"@{UPSTREAM_IP}", self.zones[0][0], "SOA"), capture_output=True, text=True)
        return done.returncode == 0 and done.stdout.strip() != ""

    def queries(self):
        """How many queries it has answered over UDP and TCP."""
        done = subprocess.run(["/usr/sbin/knotc", "-s", str(self.work / "run/knot.sock"), "stats"], capture_output=True, text=True)
        return sum(int(line.rsplit("=", 1)[1]) for line in done.stdout.splitlines() if "mod-stats.request-protocol[" in line)

    def stop(self):
        for process in (self.delayer, self.process):
            if process:
                process.send_signal(signal.SIGTERM)
                process.wait(15)


class Resolver(Server):
    """The probe asks for the zone's SOA with recursion desired."""
    needs_upstream = True


class SkuaCached(Skua):
    needs_upstream = True

    def configure(self):
        super().configure()
        path = self.path("skua.yaml")
        text = path.read_text()
        path.write_text(text[:text.index("zones:\n")] + f"forward:\n  - zone: \".\"\n    to: [ \"{UPSTREAM_IP}\" ]\n    dnssec: false\n"
                        f"recursion:\n  allow: [ \"10.99.0.0/24\", \"127.0.0.0/8\" ]\ncache:\n  memory: {CACHE_MIB}M\nlimits:\n  max-questions-per-client: 100000\n")


    def bytes_per_answer(self):
        """Of the logs, and of the slots and the rest of the cache in proportion to what the logs hold."""
        done = subprocess.run([str(BUILD / "skua"), "cache", "stats", "--json", "-c", str(self.path("skua.yaml"))], capture_output=True, text=True)
        return json.loads(done.stdout)["bytes_per_entry"]


class SkuaCachedXdp(SkuaCached):
    name = "skua-xdp"
    is_xdp = True

    def xdp_answers(self):
        return self.status()["answers"]["xdp"]


class Unbound(Resolver):
    name = "unbound"

    def configure(self):
        self.path("unbound.conf").write_text(
            f"server:\n  interface: {net.SERVER_IP}\n  num-threads: 1\n  so-reuseport: yes\n  access-control: 0.0.0.0/0 allow\n  do-daemonize: no\n  username: \"\"\n"
            f"  chroot: \"\"\n  directory: {self.work}\n  pidfile: {self.work}/unbound.pid\n  use-syslog: no\n  module-config: iterator\n  do-not-query-localhost: no\n"
            f"  msg-cache-size: {CACHE_MIB}m\n  rrset-cache-size: {CACHE_MIB}m\n  minimal-responses: yes\n  outgoing-range: 8192\n  num-queries-per-thread: 4096\n"
            f"remote-control:\n  control-enable: no\nforward-zone:\n  name: .\n  forward-addr: {UPSTREAM_IP}\n")

    def command(self):
        return [*self.program("/usr/sbin/unbound"), "-d", "-c", str(self.path("unbound.conf"))]


class Bind(Resolver):
    name = "bind"

    def configure(self):
        self.path("named.conf").write_text(
            f"options {{ directory \"{self.work}\"; listen-on {{ {net.SERVER_IP}; }}; listen-on-v6 {{ none; }}; recursion yes; allow-query {{ any; }}; "
            f"allow-recursion {{ any; }}; forward only; forwarders {{ {UPSTREAM_IP}; }}; dnssec-validation no; max-cache-size {2 * CACHE_MIB}m; "
            f"recursive-clients 20000; pid-file \"{self.work}/named.pid\"; session-keyfile \"{self.work}/session.key\"; }};\ncontrols {{ }};\n")

    def command(self):
        return [*self.program("/usr/sbin/named"), "-g", "-n", "1", "-c", str(self.path("named.conf"))]


class Recursor(Resolver):
    name = "recursor"

    def configure(self):
        self.path("recursor.yml").write_text(
            f"incoming:\n  listen: [ '{net.SERVER_IP}' ]\n  allow_from: [ '0.0.0.0/0' ]\n  reuseport: true\n  pdns_distributes_queries: false\n"
            "recursor:\n  threads: 1\n  daemon: false\n  setuid: ''\n  setgid: ''\n"
            f"  socket_dir: {self.work}\n  forward_zones_recurse:\n  - zone: .\n    forwarders: [ '{UPSTREAM_IP}' ]\n    recurse: true\n"
            "dnssec:\n  validation: off\noutgoing:\n  dont_query: []\nrecordcache:\n  max_entries: 6000000\npacketcache:\n  max_entries: 6000000\n")

    def command(self):
        return [*self.program("/usr/sbin/pdns_recursor"), f"--config-dir={self.work}"]


class Dnsdist(Resolver):
    name = "dnsdist"

    def configure(self):
        self.path("dnsdist.conf").write_text(
            f"setLocal('{net.SERVER_IP}:53')\nsetACL('0.0.0.0/0')\nnewServer({{address='{UPSTREAM_IP}:53', healthCheckMode='up'}})\n"
            "pc = newPacketCache(5500000)\ngetPool(''):setCache(pc)\nsetSecurityPollSuffix('')\nsetMaxUDPOutstanding(65535)\n")

    def command(self):
        return [*self.program("/usr/bin/dnsdist"), "--supervised", "--disable-syslog", "-C", str(self.path("dnsdist.conf"))]


class Kresd(Resolver):
    name = "kresd"

    def configure(self):
        self.path("kresd.conf").write_text(
            f"net.listen('{net.SERVER_IP}', 53)\ncache.storage = 'lmdb://{self.work}/cache'\ncache.size = {2 * CACHE_MIB} * MB\ntrust_anchors.remove('.')\n"
            f"policy.add(policy.all(policy.FORWARD('{UPSTREAM_IP}@53')))\n")

    def command(self):
        return [*self.program("/usr/sbin/kresd"), "-n", "-c", str(self.path("kresd.conf")), str(self.work)]


class Dnsmasq(Resolver):
    name = "dnsmasq"

    def configure(self):
        self.path("dnsmasq.conf").write_text(
            f"listen-address={net.SERVER_IP}\nbind-interfaces\nno-resolv\nno-hosts\nserver={UPSTREAM_IP}\ncache-size=1000000\ndns-forward-max=10000\n"
            f"user=root\npid-file={self.work}/pid\n")

    def command(self):
        return [*self.program("/usr/sbin/dnsmasq"), "-k", "-C", str(self.path("dnsmasq.conf"))]


ALL = {c.name: c for c in (SkuaCached, SkuaCachedXdp, Unbound, Bind, Recursor, Dnsdist, Kresd, Dnsmasq, EchoXdp, EchoSocket)}


def generate(*options, seconds=600):
    """One run of the generator in the client's namespace, on its CPU: its report."""
    done = subprocess.run(net.inside(net.CLIENT, "taskset", "-c", str(net.CLIENT_CPU), str(BUILD / "bench" / "generate"), "--to", net.SERVER_IP, *map(str, options)),
                          capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        raise RuntimeError("generate: " + done.stderr[-2000:])
    return json.loads(done.stdout)


def is_echo(server):
    return isinstance(server, Echo)
