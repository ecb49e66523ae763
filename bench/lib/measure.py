"""How a server is measured: highest rate, CPU per reply at a fixed rate, latency, memory; and what a table of rounds says."""
import json
import pathlib
import re
import statistics
import subprocess
import threading
import time

from lib import net, servers

FIXED_RATE = 50_000
FIXED_SECONDS = 4
SETTLE_SECONDS = 0.5    # of them, before the CPU time is read for the first time, and after it is read for the last
PROBE_SECONDS = 2
LOSS = 0.01
TRIES = 3           # of a probe that lost less than OVERLOAD: what a hiccup of the machine takes is not the server's loss
OVERLOAD = 0.10
START_RATE = 40_000
STEPS = 5           # halvings of the last doubling: the answer is within 3 %
LATENCY_RATE = 20_000
QUIET = 0.15            # of one CPU: what the rest of the machine may use


class Generator:
    def __init__(self, work, names, root):
        self.queries = work / "queries.txt"
        self.queries.write_text("".join(f"{name} A\n" for name in names))
        self.names = work / "names.txt"
        self.names.write_text("".join(f"{name}\n" for name in names))
        self.program = ["/usr/sbin/kxdpgun"]
        if root and pathlib.Path(root, "usr/sbin/kxdpgun").exists():
            inside = pathlib.Path(str(root) + "/queries.txt")
            inside.write_text(self.queries.read_text())
            self.program = ["chroot", str(root), "/usr/sbin/kxdpgun"]
            self.queries = pathlib.Path("/queries.txt")

    def flood(self, rate, seconds):
        """(sent, replied) of one run at a rate."""
        # kxdpgun pins its thread itself, to CPU 0 if not told otherwise.
        done = subprocess.run(net.inside(net.CLIENT, "taskset", "-c", str(net.CLIENT_CPU), *self.program, "-F", str(net.CLIENT_CPU),
                                         "-t", str(seconds), "-Q", str(rate), "-i", str(self.queries), "-I", net.CLIENT_IF, net.SERVER_IP),
                              capture_output=True, text=True)
        text = done.stdout + done.stderr
        sent = re.search(r"total queries:\s+(\d+)", text)
        replied = re.search(r"total replies:\s+(\d+)", text)
        net.sh(*net.inside(net.CLIENT, "ip", "link", "set", net.CLIENT_IF, "xdp", "off"), check=False)   # kxdpgun leaves its program attached
        net.pin_napi()
        if not sent or not replied:
            raise RuntimeError("kxdpgun: " + text[-2000:])
        return int(sent.group(1)), int(replied.group(1))

    def holds(self, rate):
        """Replies per second if the rate was held, else 0."""
        for _ in range(TRIES):
            sent, replied = self.flood(rate, PROBE_SECONDS)
            if replied >= (1 - LOSS) * sent and sent >= 0.97 * rate * PROBE_SECONDS:
                return replied / PROBE_SECONDS
            if replied < (1 - OVERLOAD) * sent:
                break
        return 0

    def latency(self):
        qload = servers.BUILD / "tests" / "tools" / "qload"
        if not qload.exists():
            return {}
        done = subprocess.run(net.inside(net.CLIENT, "taskset", "-c", str(net.CLIENT_CPU), str(qload), "-r", str(LATENCY_RATE), "-t", "3",
                                         "-f", str(self.names), "-s", net.SERVER_IP), capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}


def highest_rate(generator):
    rate, best = START_RATE, 0.0
    while rate < 4_000_000:
        got = generator.holds(rate)
        if not got:
            break
        best, rate = got, rate * 2
    low, high = (rate // 2, rate) if best else (0, rate)
    for _ in range(STEPS):
        middle = (low + high) // 2
        got = generator.holds(middle)
        if got:
            best, low = max(best, got), middle
        else:
            high = middle
    return best


def cpu_at_fixed_rate(generator, server):
    """CPU microseconds per reply, and the share of queries that was answered. Read in the middle of the run, when only queries make work:
    what a server does while the generator starts and ends is not charged to its replies."""
    result = []
    run = threading.Thread(target=lambda: result.append(generator.flood(FIXED_RATE, FIXED_SECONDS)))
    run.start()
    try:
        first = net.frames_sent()
        while run.is_alive() and net.frames_sent() - first < FIXED_RATE * SETTLE_SECONDS:
            time.sleep(0.02)
        processes, receiver = server.pids(), [net.napi_thread(net.SERVER_IF)]
        frames, used, received = net.frames_sent(), net.cpu_ns(processes), net.cpu_ns(receiver)
        time.sleep(FIXED_SECONDS - 3 * SETTLE_SECONDS)
        frames, used, received = net.frames_sent() - frames, net.cpu_ns(processes) - used, net.cpu_ns(receiver) - received
    finally:
        run.join()
    sent, replied = result[0]
    if frames and not received:
        raise RuntimeError("the receive thread of the server's interface did no work: its share is charged to the generator")
    return (used + received) / 1000 / max(frames, 1), replied / max(sent, 1)


def measure(server, generator, prepare=None):
    server.start()
    try:
        if prepare:
            prepare()
        others = net.others_share(server.pids(), 1)
        frames, answered = net.frames_sent(), server.xdp_answers()
        row = {"rate": highest_rate(generator)}
        row["cpu_us"], row["fixed_answered"] = cpu_at_fixed_rate(generator, server)
        if server.name not in ("echo-xdp", "echo-socket"):
            latency = generator.latency()
            row.update({f"latency_{k}_us": v for k, v in latency.get("latency_us", {}).items()})
        row["pss_mib"] = net.pss_mib(server.pids())
        row["others_cpu"] = max(others, net.others_share(server.pids(), 1))
        if answered is not None:
            left = net.frames_sent() - frames
            row["xdp_share"] = (server.xdp_answers() - answered) / max(left, 1)
    finally:
        server.stop()
    return row


def summary(rounds, names):
    table = {}
    for name in names:
        keys = sorted({k for r in rounds for k in r[name]})
        table[name] = {k: {"median": statistics.median(v), "min": min(v), "max": max(v)}
                       for k in keys if (v := [r[name][k] for r in rounds if k in r[name]])}
    return table


def ratios(rounds, names):
    """Skua's figure over the peer's, round by round: a claim must clear its bar in each."""
    out = {}
    for own in (n for n in names if n in ("skua", "skua-xdp")):
        for peer in (n for n in names if n != own):
            for key in ("rate", "cpu_us"):
                values = [r[own][key] / r[peer][key] for r in rounds if r[peer].get(key)]
                if values:
                    out[f"{own}/{peer} {key}"] = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return out


def show(result):
    print(f"{'server':12} {'rate/s':>10} {'(min..max)':>22} {'us CPU':>7} {'PSS MiB':>8} {'p50 us':>7} {'p99 us':>7} {'by XDP':>7}")
    for name, row in result["servers"].items():
        rate = row["rate"]
        cell = lambda key, form: format(row[key]["median"], form) if key in row else "-"  # noqa: E731
        print(f"{name:12} {rate['median']:10.0f} {'(%.0f..%.0f)' % (rate['min'], rate['max']):>22} {cell('cpu_us', '.2f'):>7} {cell('pss_mib', '.1f'):>8} "
              f"{cell('latency_p50_us', '.0f'):>7} {cell('latency_p99_us', '.0f'):>7} {cell('xdp_share', '.4f'):>7}")
    disturbed = [f"{name} ({row['others_cpu']['max']:.2f} of a CPU)" for name, row in result["servers"].items()
                 if row.get("others_cpu", {"max": 0})["max"] > QUIET]
    if disturbed:
        print("\nnot to be trusted: other processes ran beside " + ", ".join(disturbed))
    print()
    for name, r in result["ratios"].items():
        print(f"{name:32} {r['median']:.2f} ({r['min']:.2f}..{r['max']:.2f})")
