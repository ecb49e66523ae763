#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A part that does what a test tells it, to see what the supervisor makes of it.

Stands beside a copy of `skua` as skua-slowpath or skua-fastpath. Everything it receives goes to $FAKE_PARTS/<part>.received (one JSON
line a message, with the process id); $FAKE_PARTS/<part>.json is its script, read at the start:
  after_go   a list of messages to send: {"type": "ready"}, {"type": "segment", "a": 7, "bytes": 64}, {"type": "map", "generation": 3,
             "zones": 2}, {"type": "live", "generation": 3}, {"type": "failed", "text": "..."}; {"raw": "hex"} for any octets
  exit       then exit with this code
  heartbeat  role ("udp", "tcp", "xdp") of a thread whose counters it keeps stamping
  silent_after_s   stops stamping then
  threads    so many more threads, which sleep
  ignore     a list of what it does not react to: "stop", "term"
"""
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

MAGIC = 0x4c4b5653
FORMAT = "<IIIIQ256s"
TYPES = ["", "config", "counters", "settings", "control", "listen", "xskmap", "go", "stop", "parked", "segment", "segment-drop", "map", "ready",
         "live", "failed", "zones", "policy", "log", "cache", "marks", "wake", "rings"]
ROLES = {"xdp": 1, "udp": 2, "tcp": 3}
F_ADD_SEALS, SEALS = 1033, 15
MAP_MAGIC, MAP_VERSION = 0x4d4b5653, 1


def sealed(content):
    fd = os.memfd_create("fake", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.write(fd, content)
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


def zone_map(generation, zones):
    return struct.pack("<IIQQII", MAP_MAGIC, MAP_VERSION, 64, generation, 0, zones).ljust(64, b"\0")


class Part:
    def __init__(self):
        self.name = os.path.basename(sys.argv[0]).removeprefix("skua-")
        self.folder = os.environ["FAKE_PARTS"]
        with open(os.path.join(self.folder, self.name + ".json")) as f:
            self.script = json.load(f)
        self.link = socket.socket(fileno=3)
        self.counters = None
        self.started = time.monotonic()

    def send(self, message):
        if "raw" in message:
            self.link.send(bytes.fromhex(message["raw"]))
            return
        fds = []
        if message["type"] == "segment" and not message.get("bare"):
            fds = [sealed(b"x" * message.get("bytes", 64))]
        elif message["type"] == "map":
            fds = [sealed(zone_map(message["generation"], message.get("zones", 0)))]
        packet = struct.pack(FORMAT, MAGIC, TYPES.index(message["type"]), message.get("a", 0), message.get("b", 0),
                             message.get("generation", 0), message.get("text", "").encode())
        if fds:
            socket.send_fds(self.link, [packet], fds)
            os.close(fds[0])
        else:
            self.link.send(packet)

    def note(self, entry):
        with open(os.path.join(self.folder, self.name + ".received"), "a") as f:
            f.write(json.dumps({"pid": os.getpid(), **entry}) + "\n")

    def stamp(self):
        role = self.script.get("heartbeat")
        if not role or not self.counters:
            return
        silent = self.script.get("silent_after_s")
        if silent is not None and time.monotonic() - self.started > silent:
            return
        struct.pack_into("<QII", self.counters, 64, time.clock_gettime_ns(time.CLOCK_MONOTONIC), ROLES[role], 0)

    def receive(self):
        self.link.settimeout(0.02)
        try:
            packet, fds, _, _ = socket.recv_fds(self.link, 1024, 4)
        except TimeoutError:
            return None
        if not packet:
            sys.exit(10)
        magic, kind, a, b, generation, text = struct.unpack(FORMAT, packet)
        text = text.split(b"\0")[0].decode()
        entry = {"type": TYPES[kind], "a": a, "b": b, "generation": generation, "text": text, "fds": len(fds)}
        if TYPES[kind] == "config":
            entry["content"] = os.pread(fds[0], 1 << 20, 0).decode()
        elif TYPES[kind] == "settings":
            entry["content"] = os.pread(fds[0], 1 << 12, 0).hex()
        self.note(entry)
        if TYPES[kind] == "counters":
            self.counters = mmap.mmap(fds[0], 0)
            struct.pack_into("<I", self.counters, 28, os.getpid())
        for fd in fds:
            os.close(fd)
        return TYPES[kind]

    def main(self):
        if "term" in self.script.get("ignore", []):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.note({"type": "start", "environment": {k: os.environ.get(k, "") for k in ("NOTIFY_SOCKET", "WATCHDOG_USEC")},
                   "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))})
        for _ in range(self.script.get("threads", 0)):
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
        while True:
            kind = self.receive()
            self.stamp()
            if kind == "go":
                for message in self.script.get("after_go", []):
                    self.send(message)
                if "exit" in self.script:
                    sys.exit(self.script["exit"])
            if kind == "stop" and "stop" not in self.script.get("ignore", []):
                sys.exit(0)


Part().main()
