# SPDX-License-Identifier: Apache-2.0
"""What system tests are written with. See README.md in this folder."""
from .frames import FrameSocket, ethernet_ipv4, ethernet_ipv6, parse_frame
from .load import Load, load, qload_path
from .net import Namespace, Net
from .peers import Knotd, Named, Nsd
from .process import Process, free_port, run, wait_until
from .query import ask, ask_raw, make_query, TcpClient
from .skua import Skua, build_folder

__all__ = ["FrameSocket", "ethernet_ipv4", "ethernet_ipv6", "parse_frame", "Load", "load", "qload_path", "Namespace", "Net", "Knotd", "Named",
           "Nsd", "Process", "free_port", "run", "wait_until", "ask", "ask_raw", "make_query", "TcpClient", "Skua", "build_folder"]
