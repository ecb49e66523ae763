"""What is asked: each scenario gives the zones to serve and the names to ask in turn."""


def auth(work):
    """A zone of 10,000 A records, each asked in turn; every tenth name does not exist."""
    zone = work / "bench.example.zone"
    records = "".join(f"h{i} A 10.{i >> 16}.{i >> 8 & 255}.{i & 255}\n" for i in range(10_000))
    zone.write_text("$ORIGIN bench.example.\n$TTL 3600\n@ SOA ns1 host 1 7200 900 1209600 300\n@ NS ns1\nns1 A 10.99.0.1\n" + records)
    asked = [f"n{i}.bench.example" if i % 10 == 9 else f"h{i}.bench.example" for i in range(10_000)]
    return [("bench.example", str(zone))], asked


ALL = {"auth": auth}
