# SPDX-License-Identifier: Apache-2.0
"""A QEMU guest whose cards are virtio_net with AF_XDP zero-copy, and `skua run` inside of it.

Each card is a tap interface in a network namespace of the test's own: tests speak to the guest from there, as lib.Net's do from
net.client. What the guest is to do goes over a virtio-serial port: see init."""
import base64
import ctypes
import json
import os
import signal
import socket
import subprocess

from lib import Namespace, Skua, wait_until
from lib.process import run

BOOT_S = 180            # all processors are emulated, on a machine that may be busy
COMMAND_S = 60
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)

# Without iommu_platform the bind fails (virtio_net wants the DMA API), without queue_reset it can't swap its rings; XDP can't be
# with the offloads that make one packet of several.
CARD = "virtio-net-pci,ctrl_vlan=off,queue_reset=on,iommu_platform=on,disable-legacy=on,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off"


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Card:
    """The guest's end of a tap, with what tests ask of a lib.net.Namespace."""

    def __init__(self, number, queues, stem):
        self.number, self.queues = number, queues
        self.name, self.interface, self.tap = f"{stem}-guest-{number}", f"eth{number}", f"tap{number}"
        self.v4, self.v6 = f"10.99.{number + 1}.1", f"fd99:{number + 1}::1"
        self.hex_mac = f"52:54:00:99:00:{number + 1:02x}"

    def mac(self):
        return bytes.fromhex(self.hex_mac.replace(":", ""))

    def qemu(self):
        netdev = f"tap,id=net{self.number},ifname={self.tap},script=no,downscript=no,vhost=off"
        device = f"{CARD},netdev=net{self.number},mac={self.hex_mac}"
        if self.queues > 1:
            netdev += f",queues={self.queues}"
            device += f",mq=on,vectors={2 * self.queues + 2}"
        return ["-netdev", netdev, "-device", device]


class Side:
    """What tests of lib.Net take: .server and .client."""

    def __init__(self, card, client):
        self.server, self.client = card, client


class Guest:
    """queues: one card for each entry, with that many queues."""

    def __init__(self, folder, kernel, initramfs, queues=(1, 2), processors=2):
        self.folder, self.kernel, self.initramfs, self.processors = folder, kernel, initramfs, processors
        stem = os.environ.get("SKUA_ZEROCOPY_STEM") or f"skua-zerocopy-{os.getpid()}"
        self.cards = [Card(n, count, stem) for n, count in enumerate(queues)]
        self.sides = [Side(c, Namespace(f"{stem}-{c.number}", c.tap, f"10.99.{c.number + 1}.2", f"fd99:{c.number + 1}::2")) for c in self.cards]
        # All taps are in one namespace: QEMU opens them there.
        for side in self.sides:
            side.client.name = stem
        self.namespace = stem
        self.control_path = os.path.join(folder, "control")
        self.console_path = os.path.join(folder, "console.log")
        self.popen = self.control = self.skua = None     # skua: the one that was started last
        self.is_deaf = False

    def __enter__(self):
        try:
            self._make_network()
            self._boot()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *unused):
        self.stop()

    def _make_network(self):
        run(["ip", "netns", "add", self.namespace])
        for side in self.sides:
            client, card = side.client, side.server
            more = ["multi_queue"] if card.queues > 1 else []
            client.exec("ip", "tuntap", "add", card.tap, "mode", "tap", *more)
            client.exec("ip", "link", "set", card.tap, "up")
            client.add_address(f"{client.v4}/24")
            client.add_address(f"{client.v6}/64")
            for address in (card.v4, card.v6):
                client.exec("ip", "neighbour", "replace", address, "lladdr", card.hex_mac, "dev", card.tap, "nud", "permanent")
        self.sides[0].client.exec("ip", "link", "set", "lo", "up")

    def _boot(self):
        # Emulated, time is a count of instructions: when the machine has no processor for QEMU, the guest's clock waits too, and
        # nothing in there is taken for hanging.
        accelerator = ["-accel", "kvm", "-cpu", "host"] if os.access("/dev/kvm", os.R_OK | os.W_OK) else [
            "-accel", "tcg", "-cpu", "max", "-icount", "shift=2"]
        command = ["ip", "netns", "exec", self.namespace, "qemu-system-x86_64", *accelerator, "-m", "1024", "-smp", str(self.processors),
                   "-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{self.console_path}",
                   "-kernel", self.kernel, "-initrd", self.initramfs, "-append", "console=ttyS0 panic=-1 mitigations=off quiet loglevel=5",
                   "-device", "virtio-serial-pci", "-chardev", f"socket,id=control,path={self.control_path},server=on,wait=off",
                   "-device", "virtserialport,chardev=control,name=skua.control"]
        for card in self.cards:
            command += card.qemu()
        if os.path.exists(self.control_path):
            os.unlink(self.control_path)
        with open(os.path.join(self.folder, "qemu.log"), "wb") as log:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent)
        wait_until(lambda: self._is_up() and os.path.exists(self.control_path), timeout=COMMAND_S, what="QEMU")
        wait_until(lambda: self._is_up() and "init: ready" in self.console(), timeout=BOOT_S, interval=0.2, what="the guest's start")
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(self.control_path)
        for side in self.sides:
            card, client = side.server, side.client
            link = f"ip link set dev {card.interface} up"
            # As with lib.Net: no duplicate address detection. Neighbours are learnt, which tests that ARP and ND get through.
            self.sh(f"echo 0 >/proc/sys/net/ipv6/conf/{card.interface}/accept_dad; {link}; ip addr add {card.v4}/24 dev {card.interface}; "
                    f"ip addr add {card.v6}/64 dev {card.interface}; [ \"$(cat /sys/class/net/{card.interface}/address)\" = {card.hex_mac} ]")

    def _is_up(self):
        if self.popen.poll() is not None:
            with open(os.path.join(self.folder, "qemu.log"), errors="replace") as f:
                raise RuntimeError(f"QEMU ended with {self.popen.returncode}:\n{f.read()}\n{self.console()[-3000:]}")
        return True

    def console(self):
        try:
            with open(self.console_path, errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def sh(self, line, check=True, timeout=COMMAND_S):
        """Runs one line of shell in the guest; its output. A timeout leaves the guest of no further use."""
        assert "\n" not in line
        if self.is_deaf:
            raise RuntimeError("the guest did not answer before")
        # Whatever interrupts the exchange leaves half a reply on the way.
        self.is_deaf = True
        self.control.settimeout(timeout)
        self.control.sendall(line.encode() + b"\n")
        data = b""
        while b"\n" not in data:
            data += self._receive(line)
        head, _, data = data.partition(b"\n")
        code, count = map(int, head.split())
        while len(data) < count:
            data += self._receive(line)
        self.is_deaf = False
        text = data.decode(errors="replace")
        if check and code:
            raise RuntimeError(f"in the guest: {line}: exit {code}\n{text}")
        return text

    def _receive(self, line):
        try:
            piece = self.control.recv(65536)
        except socket.timeout:
            raise TimeoutError(f"the guest did not answer to: {line}") from None
        if not piece:
            raise RuntimeError("the guest has ended")
        return piece

    def put(self, path, text):
        self.sh(f"echo {base64.b64encode(text.encode()).decode()} | base64 -d >{path}")

    def stop(self):
        if self.control:
            self.control.close()
        if self.popen and self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait(20)
        run(["ip", "netns", "delete", self.namespace], check=False)


class GuestSkua:
    """`skua run` in the guest: the methods that tests use of lib.Skua. xdp: the section `xdp`; debug: the build whose fastpath
    checks after each batch who owns each frame."""

    counters = Skua.counters
    write_config = Skua.write_config

    def __init__(self, guest, zones, listen, xdp, debug=False):
        self.guest, self.listen = guest, listen
        self.program = "/skua/debug/skua" if debug else "/skua/skua"
        self.zones = []
        self.folder = "/run/test"
        self.config_path = os.path.join(guest.folder, "skua.yaml")
        self.log_path = f"{self.folder}/log"
        self.settings = {"server": {"identity": "skua-guest", "workers": 1, "udp-payload": 4096, "cookies": False,
                                    "state": f"{self.folder}/state", "run": f"{self.folder}/run"},
                         "listen": {"dns": listen}, "xdp": {"mode": "zerocopy", **xdp}}
        self.guest.sh(f"mkdir -p {self.folder}")
        for name, text in zones:
            path = f"{self.folder}/{name}.zone"
            self.guest.put(path, text)
            self.zones.append((name, path))
        self.write_config()
        with open(self.config_path) as f:
            self.guest.put("/etc/skua/skua.yaml", f.read())

    def __enter__(self):
        self.guest.skua = self
        try:
            self.start()
        except BaseException:
            print(self.log())
            self.stop()
            raise
        return self

    def __exit__(self, *unused):
        self.stop()

    def is_ready(self):
        if self.guest.sh(f"kill -0 $(cat {self.folder}/pid)", check=False):
            raise RuntimeError(f"skua in the guest has ended:\n{self.log()}")
        try:
            status = self.status()
        except (RuntimeError, ValueError):
            return False
        return all(part["state"] in ("serving", "off") for part in status["parts"].values())

    def skua(self, *arguments, check=True):
        return self.guest.sh("skua " + " ".join(arguments), check=check)

    def status(self):
        return json.loads(self.skua("status", "--json"))

    def xdp_status(self):
        return json.loads(self.skua("xdp", "status", "--json"))

    def reload(self, *zones):
        return self.skua("reload", *zones)

    def log(self):
        return self.guest.sh(f"cat {self.log_path}", check=False)

    def part_pid(self, part):
        return int(self.guest.sh(f"pidof skua-{part}", check=False) or 0)

    def kill_part(self, part, number=signal.SIGKILL):
        pid = self.part_pid(part)
        assert pid, f"no {part} to signal"
        self.guest.sh(f"kill -{int(number)} {pid}")
        return pid

    def terminate(self, number=signal.SIGTERM):
        """A signal to `skua run` itself, and the wait for its end and that of its parts."""
        self.guest.sh(f"kill -{int(number)} $(cat {self.folder}/pid)", check=False)
        wait_until(lambda: not self.guest.sh("pidof skua skua-fastpath skua-slowpath", check=False), timeout=30, interval=0.2,
                   what="skua's end")

    def start(self):
        """Also after terminate(): on the same folder."""
        self.guest.sh(f"setsid {self.program} run >>{self.log_path} 2>&1 </dev/null & echo $! >{self.folder}/pid")
        wait_until(self.is_ready, timeout=90, interval=0.3, what="skua in the guest")

    def stop(self):
        """SIGTERM, and at last the log goes to the host."""
        if self.guest.is_deaf:
            return
        self.terminate()
        self.guest.sh("skua xdp detach", check=False)
        with open(os.path.join(self.guest.folder, "skua.log"), "a") as f:
            f.write(self.log())
        self.guest.sh(f"rm -rf {self.folder}")
