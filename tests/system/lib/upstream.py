# SPDX-License-Identifier: Apache-2.0
"""An upstream server that does what a test tells it: counts, delays, truncates, lies, dies.

    with Upstream(ns=net.server) as up:
        up.script["slow.test."] = lambda q: [Reply(up.a(q), delay=0.3)]
        ... Skua(extra={"forward": [{"zone": ".", "to": [up.text]}]}) ...
        assert up.count("slow.test.", "A") == 1

Without a script a name has an A and an AAAA record made from it, and no other data; names below "nx.test." do not exist.
"""
import collections
import contextlib
import heapq
import itertools
import selectors
import socket
import struct
import threading
import time
import zlib

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset

Seen = collections.namedtuple("Seen", "at name type transport peer message")
SOA = "ns.test. host.test. 1 7200 900 1209600 {minimum}"


class Reply:
    """message: a dns.message.Message, or octets. delay: seconds. stray: sent from another socket (another source port). close: TCP only."""

    def __init__(self, message, delay=0.0, stray=False, close=False):
        self.message, self.delay, self.stray, self.close = message, delay, stray, close

    def wire(self):
        return self.message if isinstance(self.message, bytes) else self.message.to_wire(max_size=65535)


class Upstream:
    def __init__(self, ns=None, address="127.0.0.2", port=53, tcp=True):
        self.ns, self.address, self.port, self.tcp = ns, address, port, tcp
        self.script = {}        # name (text, lower case, final dot) -> function(query) -> list of Reply; None: for all names
        self.seen = []
        self.ttl = 300
        self.is_edns_ok = True  # False: FORMERR without OPT for queries with one
        self._lock = threading.Lock()
        self._thread = None

    @property
    def text(self):
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    # --- what is answered ----------------------------------------------------------------------------------------------
    def reply_to(self, query, rcode=dns.rcode.NOERROR):
        reply = dns.message.make_response(query, recursion_available=True, our_payload=1232)
        reply.flags |= dns.flags.RA
        reply.set_rcode(rcode)
        return reply

    def rrset(self, query, text, ttl=None, rdtype=None, name=None):
        question = query.question[0]
        return dns.rrset.from_text(name or question.name, self.ttl if ttl is None else ttl, "IN", rdtype or dns.rdatatype.to_text(question.rdtype), *([text] if isinstance(text, str) else text))

    def data(self, query, *text, ttl=None):
        """The answer with these records of the type that was asked for."""
        reply = self.reply_to(query)
        reply.answer.append(self.rrset(query, text, ttl))
        return reply

    def a(self, query, ttl=None):
        """The usual address of a name."""
        number = zlib.crc32(query.question[0].name.to_text().lower().encode())
        if query.question[0].rdtype == dns.rdatatype.AAAA:
            return self.data(query, f"2001:db8::{number >> 16:x}:{number & 0xffff:x}", ttl=ttl)
        return self.data(query, f"198.{18 + (number >> 16 & 1)}.{number >> 8 & 255}.{number & 255}", ttl=ttl)

    def negative(self, query, rcode=dns.rcode.NOERROR, ttl=300, minimum=300, owner="test."):
        reply = self.reply_to(query, rcode)
        reply.authority.append(dns.rrset.from_text(owner, ttl, "IN", "SOA", SOA.format(minimum=minimum)))
        return reply

    def default(self, query):
        question = query.question[0]
        name = question.name.canonicalize()
        if name.is_subdomain(dns.name.from_text("nx.test.")):
            return [Reply(self.negative(query, dns.rcode.NXDOMAIN))]
        if question.rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA):
            return [Reply(self.a(query))]
        return [Reply(self.negative(query))]

    # --- what was asked ------------------------------------------------------------------------------------------------
    def count(self, name=None, rdtype=None, transport=None):
        with self._lock:
            return sum(1 for s in self.seen if name in (None, s.name) and rdtype in (None, s.type) and transport in (None, s.transport))

    def clear(self):
        with self._lock:
            self.seen.clear()

    # --- life ----------------------------------------------------------------------------------------------------------
    def start(self):
        self._selector = selectors.DefaultSelector()
        self._due, self._number = [], itertools.count()
        self._stopping = threading.Event()
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        with self.ns.inside() if self.ns else contextlib.nullcontext():
            self._udp = socket.socket(family, socket.SOCK_DGRAM)
            self._stray = socket.socket(family, socket.SOCK_DGRAM)
            self._listener = socket.socket(family, socket.SOCK_STREAM) if self.tcp else None
        self._udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._udp.bind((self.address, self.port))
        self.port = self._udp.getsockname()[1]
        self._stray.bind((self.address, 0))
        self._udp.setblocking(False)
        self._selector.register(self._udp, selectors.EVENT_READ, self._on_udp)
        if self._listener:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((self.address, self.port))
            self._listener.listen(128)
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ, self._on_connection)
        self._open = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def stop(self):
        """Dies: ports are closed, connections are reset."""
        if not self._thread:
            return
        self._stopping.set()
        self._thread.join()
        self._thread = None
        for s in (self._udp, self._stray, self._listener, *self._open):
            if s:
                s.close()
        self._selector.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        self.stop()

    # --- the thread ----------------------------------------------------------------------------------------------------
    def _run(self):
        while not self._stopping.is_set():
            wait = 0.02
            if self._due:
                wait = min(wait, max(0.0, self._due[0][0] - time.monotonic()))
            for key, _ in self._selector.select(wait):
                key.data(key.fileobj)
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, send = heapq.heappop(self._due)
                with contextlib.suppress(OSError):
                    send()

    def _later(self, delay, send):
        heapq.heappush(self._due, (time.monotonic() + delay, next(self._number), send))

    def _replies(self, data, transport, peer):
        query = dns.message.from_wire(data)
        question = query.question[0]
        name = question.name.to_text().lower()
        with self._lock:
            self.seen.append(Seen(time.monotonic(), name, dns.rdatatype.to_text(question.rdtype), transport, peer, query))
        if not self.is_edns_ok and query.edns >= 0:
            reply = self.reply_to(query, dns.rcode.FORMERR)
            reply.use_edns(False)
            return [Reply(reply)]
        handler = self.script.get(name) or self.script.get(None) or self.default
        return handler(query) or []

    def _on_udp(self, udp):
        for _ in range(64):
            try:
                data, peer = udp.recvfrom(65535)
            except BlockingIOError:
                return
            for reply in self._replies(data, "udp", peer):
                source = self._stray if reply.stray else udp
                self._later(reply.delay, lambda wire=reply.wire(), to=peer, via=source: via.sendto(wire, to))

    def _on_connection(self, listener):
        with contextlib.suppress(BlockingIOError):
            connection, peer = listener.accept()
            connection.setblocking(False)
            self._open[connection] = (b"", peer)
            self._selector.register(connection, selectors.EVENT_READ, self._on_stream)

    def _forget(self, connection):
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection)
        self._open.pop(connection, None)
        connection.close()

    def _on_stream(self, connection):
        buffer, peer = self._open[connection]
        try:
            more = connection.recv(65536)
        except OSError:
            more = b""
        if not more:
            self._forget(connection)
            return
        buffer += more
        while len(buffer) >= 2 and len(buffer) >= 2 + struct.unpack("!H", buffer[:2])[0]:
            length = struct.unpack("!H", buffer[:2])[0]
            message, buffer = buffer[2:2 + length], buffer[2 + length:]
            for reply in self._replies(message, "tcp", peer):
                wire = reply.wire()
                self._later(reply.delay, lambda data=struct.pack("!H", len(wire)) + wire, c=connection, close=reply.close: self._send(c, data, close))
        if connection in self._open:
            self._open[connection] = (buffer, peer)

    def _send(self, connection, data, close):
        if connection not in self._open:
            return
        connection.sendall(data)
        if close:
            self._forget(connection)
