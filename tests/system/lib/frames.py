# SPDX-License-Identifier: Apache-2.0
"""Whole Ethernet frames by AF_PACKET: what no socket would send."""
import contextlib
import ipaddress
import select
import socket
import struct
import time

from .owner import SocketOwner

ETH_P_ALL = 3
ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN = 0x0800, 0x86dd, 0x8100
PROTOCOL_UDP = 17
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID = 0x10


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def _udp(source, destination, sport, dport, payload, udp_checksum):
    length = 8 + len(payload)
    if udp_checksum is None:
        v6 = len(source) == 16
        pseudo = source + destination + (struct.pack("!IxxxB", length, PROTOCOL_UDP) if v6 else struct.pack("!BBH", 0, PROTOCOL_UDP, length))
        udp_checksum = checksum(pseudo + struct.pack("!HHHH", sport, dport, length, 0) + payload) or 0xffff
    return struct.pack("!HHHH", sport, dport, length, udp_checksum) + payload


def _ethernet(dst_mac, src_mac, ethertype, packet, vlan, pad):
    tags = b"".join(struct.pack("!HH", ETHERTYPE_VLAN, tag) for tag in ([vlan] if isinstance(vlan, int) else vlan or []))
    frame = dst_mac + src_mac + tags + struct.pack("!H", ethertype) + packet
    return frame + b"\0" * max(0, pad - len(frame))


def ethernet_ipv4(dst_mac, src_mac, source, destination, sport, dport, payload, vlan=None, pad=0, ttl=64, options=b"", flags=0x4000,
                  identification=0, udp_checksum=None):
    """vlan: a tag or a list of them; pad: the least length of the frame; options: of IPv4, a multiple of 4 octets; flags: DF, or MF and
    offset for fragments; udp_checksum: 0 leaves it out, None computes it."""
    source, destination = ipaddress.ip_address(source).packed, ipaddress.ip_address(destination).packed
    udp = _udp(source, destination, sport, dport, payload, udp_checksum)
    words = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | words, 0, 4 * words + len(udp), identification, flags, ttl, PROTOCOL_UDP, 0, source,
                       destination) + options
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return _ethernet(dst_mac, src_mac, ETHERTYPE_IPV4, head + udp, vlan, pad)


def ethernet_ipv6(dst_mac, src_mac, source, destination, sport, dport, payload, vlan=None, pad=0, hop_limit=64, extension=b"",
                  next_header=PROTOCOL_UDP, udp_checksum=None):
    """extension: octets of extension headers, the first of which is of type next_header."""
    source, destination = ipaddress.ip_address(source).packed, ipaddress.ip_address(destination).packed
    udp = _udp(source, destination, sport, dport, payload, udp_checksum)
    head = struct.pack("!IHBB16s16s", 6 << 28, len(extension) + len(udp), next_header, hop_limit, source, destination)
    return _ethernet(dst_mac, src_mac, ETHERTYPE_IPV6, head + extension + udp, vlan, pad)


def parse_frame(frame):
    """A dict of the headers and the payload of a UDP frame, None for any other. Checksums are verified: checksum_ok, ip_checksum_ok."""
    out = {"dst_mac": frame[:6], "src_mac": frame[6:12], "vlan": [], "frame_bytes": len(frame)}
    pos = 12
    ethertype = struct.unpack_from("!H", frame, pos)[0]
    while ethertype == ETHERTYPE_VLAN:
        out["vlan"].append(struct.unpack_from("!H", frame, pos + 2)[0])
        pos += 4
        ethertype = struct.unpack_from("!H", frame, pos)[0]
    packet = frame[pos + 2:]
    if ethertype == ETHERTYPE_IPV4 and len(packet) >= 28 and packet[9] == PROTOCOL_UDP:
        head = 4 * (packet[0] & 15)
        total = struct.unpack_from("!H", packet, 2)[0]
        out.update(ttl=packet[8], ip_checksum_ok=checksum(packet[:head]) == 0, identification=struct.unpack_from("!H", packet, 4)[0],
                   flags=struct.unpack_from("!H", packet, 6)[0])
        source, destination, udp = packet[12:16], packet[16:20], packet[head:total]
        pseudo = source + destination + struct.pack("!BBH", 0, PROTOCOL_UDP, len(udp))
    elif ethertype == ETHERTYPE_IPV6 and len(packet) >= 48 and packet[6] == PROTOCOL_UDP:
        total = struct.unpack_from("!H", packet, 4)[0]
        out.update(ttl=packet[7], ip_checksum_ok=True)
        source, destination, udp = packet[8:24], packet[24:40], packet[40:40 + total]
        pseudo = source + destination + struct.pack("!IxxxB", len(udp), PROTOCOL_UDP)
    else:
        return None
    sport, dport, length, given = struct.unpack_from("!HHHH", udp)
    out.update(source=str(ipaddress.ip_address(source)), destination=str(ipaddress.ip_address(destination)), sport=sport, dport=dport,
               udp_bytes=length, udp_checksum=given, payload=udp[8:length], checksum_ok=given == 0 or checksum(pseudo + udp) == 0,
               length_ok=length == len(udp))
    return out


class FrameSocket(SocketOwner):
    """Sends and receives frames on a namespace's interface."""

    def __init__(self, ns, interface=None):
        with ns.inside() if ns else contextlib.nullcontext():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.socket.bind((interface or ns.interface, ETH_P_ALL))

    def send(self, frame):
        self.socket.send(frame)

    def receive(self, timeout=2.0, want=lambda frame: True):
        """The next incoming UDP frame, parsed, for which want is true; None if there is none in time. A tag that the kernel
        has taken off is put back into ["vlan"]."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                return None
            data, auxiliary, _, address = self.socket.recvmsg(65536, 256)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            parsed = parse_frame(data)
            if parsed is None:
                continue
            parsed["frame"] = data
            for level, kind, value in auxiliary:
                if level == SOL_PACKET and kind == PACKET_AUXDATA:
                    status, tag = struct.unpack_from("=I", value)[0], struct.unpack_from("=H", value, 16)[0]
                    if status & TP_STATUS_VLAN_VALID:
                        parsed["vlan"].insert(0, tag)
            if want(parsed):
                return parsed
