"""A veth pair between two namespaces, server on CPU 0, generator on CPU 1. Threaded NAPI is on and each end's receive thread is pinned to its
own CPU: otherwise veth runs the server's receive work on the generator's CPU, and every figure flatters sockets. TCP segmentation is off for
the same reason: with it veth thinks of a UDP packet as one that GRO can't merge, and goes round NAPI."""
import os
import pathlib
import subprocess
import time

SERVER, CLIENT = "skua-bench-s", "skua-bench-c"
SERVER_IF, CLIENT_IF = "srv0", "cli0"
SERVER_IP, CLIENT_IP = "10.99.0.1", "10.99.0.2"
SERVER_CPU, CLIENT_CPU = 0, 1


def sh(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


def inside(namespace, *command):
    return ["ip", "netns", "exec", namespace, *command]


def down():
    for namespace in (SERVER, CLIENT):
        sh("ip", "netns", "del", namespace, check=False)


def napi_thread(interface):
    """The pid of the receive thread of an interface; the kernel names it napi/<interface>-<id>."""
    for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith(f"napi/{interface}-"):
                return int(comm.parent.name)
        except OSError:
            continue
    return None


def up():
    down()
    for namespace in (SERVER, CLIENT):
        sh("ip", "netns", "add", namespace)
    sh("ip", "link", "add", SERVER_IF, "netns", SERVER, "numrxqueues", "1", "numtxqueues", "1", "type", "veth",
       "peer", "name", CLIENT_IF, "netns", CLIENT, "numrxqueues", "1", "numtxqueues", "1")
    for namespace, interface, address in ((SERVER, SERVER_IF, SERVER_IP), (CLIENT, CLIENT_IF, CLIENT_IP)):
        sh("ip", "-n", namespace, "addr", "add", address + "/24", "dev", interface)
        sh("ip", "-n", namespace, "link", "set", "lo", "up")
        sh("ip", "-n", namespace, "link", "set", interface, "up")
        sh(*inside(namespace, "ethtool", "-K", interface, "gro", "on", "tso", "off"))
        sh(*inside(namespace, "sh", "-c", f"echo 1 > /sys/class/net/{interface}/threaded"))
    pin_napi()
    # The generator's XDP program wants the neighbour to be known.
    sh(*inside(CLIENT, "ping", "-c1", "-W1", SERVER_IP), check=False)
    sh("ip", "-n", CLIENT, "neigh", "replace", SERVER_IP, "lladdr", mac(SERVER, SERVER_IF), "dev", CLIENT_IF)
    sh("ip", "-n", SERVER, "neigh", "replace", CLIENT_IP, "lladdr", mac(CLIENT, CLIENT_IF), "dev", SERVER_IF)


def mac(namespace, interface):
    return sh(*inside(namespace, "cat", f"/sys/class/net/{interface}/address")).stdout.strip()


def pin_napi():
    """Attaching XDP makes new NAPI threads, so this is called again when a server runs."""
    for interface, cpu in ((SERVER_IF, SERVER_CPU), (CLIENT_IF, CLIENT_CPU)):
        for _ in range(50):
            pid = napi_thread(interface)
            if pid:
                os.sched_setaffinity(pid, {cpu})
                break
            time.sleep(0.02)


def cpu_ns(pids):
    """CPU time in ns that these processes' threads have used."""
    total = 0
    for pid in pids:
        for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(stat.read_text().split()[0])
            except OSError:
                continue
    return total


def others_share(pids, seconds):
    """How much of one CPU everything but these processes uses: what disturbs a measurement. (/proc/stat: 1 is all of one CPU)"""
    def busy():
        fields = [int(f) for f in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")     # all but idle and iowait; steal is in
    before, own = busy(), cpu_ns(pids)
    time.sleep(seconds)
    return max(0.0, busy() - before - (cpu_ns(pids) - own) / 1e9) / seconds


def tree(pid):
    """pid and all its descendants."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        children.setdefault(int(text.rsplit(")", 1)[1].split()[1]), []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def pss_mib(pids):
    """Memory of the processes, shared pages divided among those that map them."""
    kib = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
        except OSError:
            continue
    return kib / 1024


def frames_sent():
    """tx_packets of the server's interface: what really left."""
    return int(sh(*inside(SERVER, "cat", f"/sys/class/net/{SERVER_IF}/statistics/tx_packets")).stdout)
