# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces with a veth pair between them.

    with Net(queues=2) as net:
        with Skua(ns=net.server, listen=[net.server.v4, net.server.v6], zones=...) as skua:
            ask(net.server.v4, "example.", "SOA", ns=net.client)

The server's end is called dns0, the client's cli0: they live in namespaces of their own, whose names are unique to the test run.
"""
import contextlib
import ctypes
import ipaddress
import itertools
import os
import subprocess

from .process import run

_counter = itertools.count()
_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


class Namespace:
    def __init__(self, name, interface, v4, v6):
        self.name, self.interface, self.v4, self.v6 = name, interface, v4, v6

    def exec(self, *command, check=True, timeout=30):
        """Runs a command inside; the result has stdout and returncode."""
        return run(["ip", "netns", "exec", self.name, *map(str, command)], check=check, timeout=timeout)

    def popen(self, *command, **kwargs):
        return subprocess.Popen(["ip", "netns", "exec", self.name, *map(str, command)], **kwargs)

    @contextlib.contextmanager
    def inside(self):
        """The calling thread is in this namespace meanwhile: sockets that it makes belong there."""
        with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{self.name}") as there:
            _setns(there.fileno())
            try:
                yield self
            finally:
                _setns(before.fileno())

    def mac(self):
        return bytes.fromhex(self._sysfs("address").replace(":", ""))

    def _sysfs(self, attribute):
        return self.exec("cat", f"/sys/class/net/{self.interface}/{attribute}").stdout.strip()

    def index(self):
        return int(self._sysfs("ifindex"))

    def add_address(self, address, interface=None):
        """address with prefix length; IPv6 without duplicate address detection."""
        extra = ["nodad"] if ":" in address else []
        self.exec("ip", "address", "add", address, "dev", interface or self.interface, *extra)


def _setns(fd):
    if _libc.setns(fd, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Net:
    """prefix4 and prefix6: .1 and ::1 are the server's, .2 and ::2 the client's.

    queues      receive and transmit queues of both ends
    threaded    threaded NAPI on both ends (each end's receive work is a thread of its own)
    gro         generic receive offload on both ends; veth needs it, or an XDP program, for NAPI at all
    mtu         of both ends
    offload     transmit checksum offload on both ends; False lets the kernel fill in the checksums that frames show
    Tagged frames are made with lib.frames: not every kernel has VLAN interfaces, and AF_XDP sees frames, not interfaces.
    """

    def __init__(self, queues=1, threaded=False, gro=False, mtu=1500, offload=True, prefix4="10.99.0.0/24", prefix6="fd99::/64"):
        self.queues, self.threaded, self.gro, self.mtu, self.offload = queues, threaded, gro, mtu, offload
        self.prefix4, self.prefix6 = ipaddress.ip_network(prefix4), ipaddress.ip_network(prefix6)
        stem = f"skuatest-{os.getpid()}-{next(_counter)}"
        self.server = Namespace(stem + "-s", "dns0", str(self.prefix4[1]), str(self.prefix6[1]))
        self.client = Namespace(stem + "-c", "cli0", str(self.prefix4[2]), str(self.prefix6[2]))

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *unused):
        self.remove()

    def _make(self):
        for ns in (self.server, self.client):
            run(["ip", "netns", "add", ns.name])
        queues = ["numrxqueues", str(self.queues), "numtxqueues", str(self.queues)]
        run(["ip", "link", "add", self.server.interface, "netns", self.server.name, "mtu", str(self.mtu), *queues, "type", "veth",
             "peer", "name", self.client.interface, "netns", self.client.name, "mtu", str(self.mtu), *queues])
        for ns in (self.server, self.client):
            ns.exec("ip", "link", "set", "lo", "up")
            ns.exec("ip", "link", "set", ns.interface, "up")
            ns.add_address(f"{ns.v4}/{self.prefix4.prefixlen}")
            ns.add_address(f"{ns.v6}/{self.prefix6.prefixlen}")
            ns.exec("ethtool", "-K", ns.interface, "gro", "on" if self.gro else "off")
            ns.exec("ethtool", "-K", ns.interface, "tx", "on" if self.offload else "off")
            if self.threaded:
                ns.exec("sh", "-c", f"echo 1 > /sys/class/net/{ns.interface}/threaded")
        # Neighbours are known from the start: tests with raw frames need no ARP, and the first query is not delayed by it.
        for ns, other in ((self.server, self.client), (self.client, self.server)):
            mac = other.mac().hex(":")
            for address in (other.v4, other.v6):
                ns.exec("ip", "neighbour", "replace", address, "lladdr", mac, "dev", ns.interface, "nud", "permanent")

    def remove(self):
        for ns in (self.server, self.client):
            run(["ip", "netns", "delete", ns.name], check=False)
