"""What is measured: each scenario says which servers can take part, what they serve, what is asked, and how."""
import random
import subprocess

from lib import measure, net, resolvers, servers

MISS_RATE = 2_000
MISS_SECONDS = 10
LOSS = 0.001


class Auth:
    """A zone of 10,000 A records, each asked in turn; every tenth name does not exist."""
    servers, peers = servers.ALL, "knot-xdp,knot,nsd,gdnsd,echo-xdp,echo-socket"

    def __init__(self, work, root):
        zone = work / "bench.example.zone"
        records = "".join(f"h{i} A 10.{i >> 16}.{i >> 8 & 255}.{i & 255}\n" for i in range(10_000))
        zone.write_text("$ORIGIN bench.example.\n$TTL 3600\n@ SOA ns1 host 1 7200 900 1209600 300\n@ NS ns1\nns1 A 10.99.0.1\n" + records)
        self.zones = [("bench.example", str(zone))]
        asked = [f"n{i}.bench.example" if i % 10 == 9 else f"h{i}.bench.example" for i in range(10_000)]
        self.generator = measure.Generator(work, asked, root)

    def measure(self, server):
        return measure.measure(server, self.generator)

    def close(self):
        pass


class Cached:
    """The same zone at an upstream: one warm pass, then answers from the cache only; the upstream must not be asked meanwhile."""
    servers, peers = resolvers.ALL, "unbound,bind,dnsdist,recursor,kresd,dnsmasq,echo-xdp,echo-socket"
    names = 10_000
    warm_outstanding = 100

    def __init__(self, work, root):
        zone = work / "cached.example.zone"
        records = "".join(f"h{i} A 10.{i >> 16}.{i >> 8 & 255}.{i & 255}\n" for i in range(self.names))
        zone.write_text("$ORIGIN cached.example.\n$TTL 86400\n@ SOA ns1 host 1 7200 900 1209600 300\n@ NS ns1\nns1 A 10.99.0.1\n" + records)
        self.zones = [("cached.example", str(zone))]
        self.asked = [f"h{i}.cached.example" for i in range(self.names)]
        self.queries = work / "warm.txt"
        self.queries.write_text("".join(f"{name} A\n" for name in self.asked))
        self.generator = measure.Generator(work, self.order(), root)
        self.upstream = resolvers.Upstream(work / "upstream", self.zones, root)
        self.upstream.start()

    def order(self):
        return self.asked

    def warm(self):
        """Twice: what one overload lost comes with the second pass."""
        for _ in range(2):
            report = resolvers.generate("--queries", self.queries, "--outstanding", self.warm_outstanding, "--once", "--edns")
        if report["rcodes"].get("NOERROR", 0) < 0.999 * self.names:
            raise RuntimeError(f"the warm pass failed: {report}")

    def measure(self, server):
        def prepare():
            if not resolvers.is_echo(server):
                self.warm()
            self.before = self.upstream.queries()
        row = measure.measure(server, self.generator, prepare)
        row["upstream_queries"] = self.upstream.queries() - self.before
        return row

    def close(self):
        self.upstream.stop()


class CachedLarge(Cached):
    """Five million entries, asked uniformly. The peers need room for as many: not all can."""
    peers = "unbound,dnsdist,recursor"
    names = 5_000_000
    warm_outstanding = 300

    def order(self):
        dice = random.Random(1)
        return [self.asked[dice.randrange(self.names)] for _ in range(500_000)]


class Misses(Cached):
    """Unique names: latency at a fixed rate, and the highest rate that loses next to nothing; the upstream answers at once."""
    peers = "unbound,dnsdist,recursor,kresd"
    names = 1
    delay_ms = 0

    def __init__(self, work, root):
        super().__init__(work, root)
        zone = work / "miss.example.zone"
        zone.write_text("$ORIGIN miss.example.\n$TTL 3600\n@ SOA ns1 host 1 7200 900 1209600 300\n@ NS ns1\nns1 A 10.99.0.1\n* A 192.0.2.1\n")
        self.upstream.stop()
        self.upstream = resolvers.Upstream(work / "upstream", [*self.zones, ("miss.example", str(zone))], root, self.delay_ms)
        self.upstream.start()
        self.work, self.next = work, 0

    def unique(self, count):
        path = self.work / "unique.txt"
        path.write_text("".join(f"m{self.next + i:x}.miss.example A\n" for i in range(count)))
        self.next += count
        return path

    def run(self, rate, seconds):
        return resolvers.generate("--queries", self.unique(rate * seconds), "--rate", rate, "--seconds", seconds, "--once", "--edns", "--timeout", 2)

    def holds(self, rate):
        report = self.run(rate, 3)
        good = report["rcodes"].get("NOERROR", 0)
        return good / 3 if good >= (1 - LOSS) * rate * 3 else 0

    def measure(self, server):
        server.start()
        try:
            self.run(500, 2)     # estimates of the upstream settle
            report = self.run(MISS_RATE, MISS_SECONDS)
            row = {"lost": report["lost"], "failed": report["sent"] - report["rcodes"].get("NOERROR", 0)}
            row.update({f"latency_{k}_us": v for k, v in report["latency_us"].items()})
            low, high = 0, 2 * MISS_RATE
            best = 0
            while high < 400_000 and (got := self.holds(high)):
                best, low, high = got, high, high * 2
            for _ in range(3):
                middle = (low + high) // 2
                got = self.holds(middle)
                best, low, high = (got, middle, high) if got else (best, low, middle)
            row["rate"] = best
            row["pss_mib"] = net.pss_mib(server.pids())
        finally:
            server.stop()
        return row


class MissesFar(Misses):
    """The same with an upstream that answers after 20 ms."""
    delay_ms = 20


class Telltale(Cached):
    """10,000 names by Zipf's law, 62/30/8 A/AAAA/HTTPS: the peak of a closed loop, then open loops at 25, 50 and 75 % of it, wire to wire."""
    peers = "unbound,dnsdist,recursor,kresd"

    def order(self):
        dice = random.Random(1)
        weights = [1 / (i + 1) for i in range(self.names)]
        names = dice.choices(self.asked, weights, k=200_000)
        kinds = dice.choices(("A", "AAAA", "HTTPS"), (62, 30, 8), k=200_000)
        self.mixed = self.queries.with_name("mixed.txt")
        self.mixed.write_text("".join(f"{n} {k}\n" for n, k in zip(names, kinds)))
        self.queries.write_text("".join(f"{n} {k}\n" for n in self.asked for k in ("A", "AAAA", "HTTPS")))
        return self.asked

    def load(self, *options):
        xdp = ("--xdp", net.CLIENT_IF, "--mac", net.mac(net.SERVER, net.SERVER_IF), "--own-mac", net.mac(net.CLIENT, net.CLIENT_IF), "--from", net.CLIENT_IP)
        report = resolvers.generate("--queries", self.mixed, *options, *xdp)
        subprocess.run(["ip", "-n", net.CLIENT, "link", "set", net.CLIENT_IF, "xdp", "off"], capture_output=True)
        net.pin_napi()
        return report

    def measure(self, server):
        server.start()
        try:
            for _ in range(2):
                resolvers.generate("--queries", self.queries, "--outstanding", self.warm_outstanding, "--once", "--edns")
            before = self.upstream.queries()
            peak = max(self.load("--outstanding", 200, "--seconds", 5)["rate"] for _ in range(2))
            row = {"rate": peak, "pss_mib": net.pss_mib(server.pids())}
            for part in (25, 50, 75):
                report = self.load("--rate", int(peak * part / 100), "--seconds", 8)
                row[f"lost_{part}"] = report["lost"]
                row.update({f"latency_{k}_{part}_us": report["latency_us"][k] for k in ("p50", "p99", "p999")})
            row["latency_p50_us"], row["latency_p99_us"] = row["latency_p50_50_us"], row["latency_p99_50_us"]
            row["upstream_queries"] = self.upstream.queries() - before
        finally:
            server.stop()
        return row


class Memory(Cached):
    """Bytes of memory for each of 100,000 cached A answers: what a server grows by, or what ours says of its cache."""
    peers = "unbound,recursor,dnsdist,kresd"
    names = 100_000

    def measure(self, server):
        server.start()
        try:
            before = net.pss_mib(server.pids())
            self.warm()
            grown = (net.pss_mib(server.pids()) - before) * (1 << 20)
            row = {"bytes_per_answer": grown / self.names, "pss_mib": net.pss_mib(server.pids()), "rate": 0}
            if isinstance(server, resolvers.SkuaCached):
                row["bytes_per_answer"] = server.bytes_per_answer()
        finally:
            server.stop()
        return row


ALL = {"auth": Auth, "cached": Cached, "cached-large": CachedLarge, "misses": Misses, "misses-far": MissesFar, "telltale": Telltale, "memory": Memory}
