# SPDX-License-Identifier: Apache-2.0
"""Queries over UDP and TCP: as dnspython messages or as raw octets."""
import contextlib
import socket
import struct
import time

import dns.flags
import dns.message
import dns.rdatatype

from .owner import SocketOwner

TIMEOUT = 3.0


def _inside(ns):
    return ns.inside() if ns else contextlib.nullcontext()


def _family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def make_query(name, rdtype="A", do=False, edns=None, payload=1232, rd=False, **kwargs):
    """edns: None (only if do or options are given), False, or a version."""
    options = kwargs.pop("options", None)
    query = dns.message.make_query(name, rdtype, **kwargs)
    query.flags = dns.flags.RD if rd else 0
    if do or options or (edns is not None and edns is not False):   # 0 == False, and version 0 is what everybody wants
        query.use_edns(edns or 0, dns.flags.DO if do else 0, payload, options=options)
    return query


def ask_raw(address, data, port=53, ns=None, tcp=False, timeout=TIMEOUT, source=None):
    """Sends octets, returns the octets of the first response; None if there is none in time (UDP) or the server closes (TCP)."""
    if tcp:
        with TcpClient(address, port, ns=ns, timeout=timeout, source=source) as c:
            c.send(data)
            return c.receive()
    with _inside(ns), socket.socket(_family(address), socket.SOCK_DGRAM) as s:
        s.settimeout(timeout)
        if source:
            s.bind(source if isinstance(source, tuple) else (source, 0))
        s.connect((address, port))
        s.send(data)
        try:
            return s.recv(65535)
        except (socket.timeout, ConnectionRefusedError):
            return None


def ask(address, name, rdtype="A", port=53, ns=None, tcp=False, timeout=TIMEOUT, tries=1, source=None, **kwargs):
    """Asks and parses; the response's id must be the query's. TimeoutError if nothing comes."""
    query = name if isinstance(name, dns.message.Message) else make_query(name, rdtype, **kwargs)
    wire = query.to_wire()
    for _ in range(tries):
        reply = ask_raw(address, wire, port=port, ns=ns, tcp=tcp, timeout=timeout, source=source)
        if reply is not None:
            response = dns.message.from_wire(reply, ignore_trailing=False, one_rr_per_rrset=False)
            assert response.id == query.id, "a response with another id"
            return response
    raise TimeoutError(f"no answer from {address} port {port} for {query.question}")


class TcpClient(SocketOwner):
    """One TCP connection: octets or messages, in pieces if wanted."""

    def __init__(self, address, port=53, ns=None, timeout=TIMEOUT, source=None):
        with _inside(ns):
            self.socket = socket.socket(_family(address), socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if source:
            self.socket.bind(source if isinstance(source, tuple) else (source, 0))
        self.socket.connect((address, port))
        self.buffer = b""

    def send(self, *messages):
        """All messages in one write."""
        self.socket.sendall(b"".join(struct.pack("!H", len(m)) + m for m in messages))

    def send_slowly(self, message, piece=1, pause=0.0):
        data = struct.pack("!H", len(message)) + message
        for i in range(0, len(data), piece):
            self.socket.sendall(data[i:i + piece])
            if pause:
                time.sleep(pause)

    def receive(self):
        """The next message's octets; None when the server has closed."""
        head = self._take(2)
        return None if head is None else self._take(struct.unpack("!H", head)[0])

    def _take(self, count):
        while len(self.buffer) < count:
            try:
                more = self.socket.recv(65536)
            except ConnectionResetError:
                return None
            if not more:
                return None
            self.buffer += more
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def is_closed(self, timeout=TIMEOUT):
        """Waits for the server's end of the connection; False if it is still open after timeout."""
        self.socket.settimeout(timeout)
        try:
            while True:
                if not self.socket.recv(65536):
                    return True
        except socket.timeout:
            return False
        except ConnectionError:
            return True

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)
