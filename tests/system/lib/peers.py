# SPDX-License-Identifier: Apache-2.0
"""Other name servers on the same zones, for comparison. zones: (name, file) pairs; ns: a lib.net.Namespace or None."""
import os

from .process import Process, free_port
from .query import ask_raw, make_query


class Peer(Process):
    binary = ""

    def __init__(self, zones, address="127.0.0.1", port=None, ns=None):
        super().__init__(ns)
        self.zones = [(name.rstrip(".") + ".", os.path.abspath(path)) for name, path in zones]
        self.address = address
        if port is None:
            if ns:
                port = 53
            else:
                port = free_port(address)
        self.port = port
        self.config_path = os.path.join(self.folder, "config")

    def config(self):
        raise NotImplementedError

    def start(self):
        with open(self.config_path, "w") as f:
            f.write(self.config())
        return super().start()

    def is_ready(self):
        """It answers for the last zone: these servers load them in order or all before they serve."""
        probe = make_query(self.zones[-1][0] if self.zones else ".", "SOA").to_wire()
        reply = ask_raw(self.address, probe, port=self.port, ns=self.ns, timeout=0.2)
        return reply is not None and (reply[3] & 15 == 0 or not self.zones)


class Knotd(Peer):
    name = "knotd"

    def command(self):
        return ["knotd", "-c", self.config_path]

    def config(self):
        zones = "".join(f"  - domain: \"{name}\"\n    file: \"{path}\"\n" for name, path in self.zones)
        return (f"server:\n  rundir: {self.folder}\n  listen: \"{self.address}@{self.port}\"\n  udp-workers: 1\n  tcp-workers: 1\n"
                f"  background-workers: 1\n  user: root\n  udp-max-payload: 4096\n"
                f"log:\n  - target: stderr\n    any: info\n"
                f"database:\n  storage: {self.folder}\n"
                f"template:\n  - id: default\n    storage: {self.folder}\n    zonefile-sync: -1\n    zonefile-load: whole\n"
                f"    journal-content: none\n    semantic-checks: off\n"
                + (f"zone:\n{zones}" if zones else ""))


class Named(Peer):
    name = "named"

    def command(self):
        return ["named", "-g", "-c", self.config_path, "-n", "1"]

    def config(self):
        v6 = ":" in self.address
        listen = f"listen-on port {self.port} {{ {'none' if v6 else self.address}; }};\n"
        listen += f"listen-on-v6 port {self.port} {{ {self.address if v6 else 'none'}; }};\n"
        zones = "".join(f"zone \"{name}\" {{ type primary; file \"{path}\"; }};\n" for name, path in self.zones)
        return (f"options {{ directory \"{self.folder}\"; pid-file none; session-keyfile none; lock-file none;\n{listen}"
                "recursion no; minimal-responses no-auth; minimal-any no; dnssec-validation no; notify no; check-names primary ignore;\n"
                "check-integrity no; check-dup-records ignore; check-mx ignore; check-mx-cname ignore; check-srv-cname ignore;\n"
                "check-wildcard no; check-sibling no; check-spf ignore; max-zone-ttl unlimited; zone-statistics none;\n"
                "empty-zones-enable no; zero-no-soa-ttl no; rate-limit { responses-per-second 0; }; max-udp-size 4096; };\n"
                + f"controls {{ }};\n{zones}")


class Nsd(Peer):
    name = "nsd"

    def command(self):
        return ["nsd", "-d", "-c", self.config_path]

    def config(self):
        zones = "".join(f"zone:\n  name: \"{name}\"\n  zonefile: \"{path}\"\n" for name, path in self.zones)
        return (f"server:\n  ip-address: {self.address}@{self.port}\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"\"\n"
                f"  database: \"\"\n  pidfile: {self.folder}/pid\n  xfrdfile: {self.folder}/xfrd\n  xfrdir: {self.folder}\n"
                f"  zonelistfile: {self.folder}/zone.list\n  server-count: 1\n  minimal-responses: yes\n  refuse-any: no\n"
                f"remote-control:\n  control-enable: no\n{zones}")
