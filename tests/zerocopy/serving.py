# SPDX-License-Identifier: Apache-2.0
"""What the tests have in common: a server in the guest, load on it, and its books: whether each packet and each frame is accounted for."""
import time

import xdp_paths_test as paths
from guest import GuestSkua
from lib import Load, ask, wait_until

RATE, LOAD_S = 2000, 5
MORE_THAN_IT_CAN = 60000
DROPS = ("tx_full", "frame_bad", "drop_malformed", "drop_response", "drop_short", "drop_martian")


def server(guest, number=0, debug=False, **xdp):
    cards = guest.cards if number is None else [guest.cards[number]]
    text = paths.BIG + "".join(paths.sized_record(s) for s in paths.SIZES)
    return GuestSkua(guest, [("example.test", text)], [a for c in cards for a in (c.v4, c.v6)],
                     {"interfaces": [c.interface for c in cards], **xdp}, debug=debug)


def www(side, **more):
    try:
        return ask(more.pop("address", side.server.v4), "www.example.test", ns=side.client, **more).answer[0][0].address
    except TimeoutError:
        return None


def modes(skua):
    return [q.get("mode") for q in skua.xdp_status()["queues"]]


def books(skua):
    """What the kernel and we counted, of all queues: only to be compared when nothing is on its way."""
    pid = skua.part_pid("fastpath")
    return {"pid": pid, "taken": sum(i["packets"].get("taken", 0) for i in skua.xdp_status()["interfaces"]), **skua.counters("xdp")}


def they_balance(skua, before):
    """Since `before`, which is books(), each packet that the program took is accounted for, and no frame is lost. A fastpath that was killed
    since it had no processor for too long took its counters along: then only the frames of its successor count."""
    def balance():
        now = books(skua)
        if now["pid"] != before["pid"]:
            return now
        got = {name: value - before.get(name, 0) for name, value in now.items()}
        received, dropped = got["rx_frames"], sum(got[d] for d in DROPS)
        return now if (got["taken"] == received + got["xdp_rx_dropped"] + got["xdp_rx_ring_full"] and
                       received == got["tx_frames"] + dropped) else None
    try:
        now = wait_until(balance, timeout=20, interval=0.3)
    except TimeoutError:
        raise AssertionError(f"packets are missing: {_set(before)} before, now {_set(books(skua))}") from None
    assert now["pid"] == before["pid"] or "SK-RUN-005" in skua.log(), "the fastpath ended, and not for silence"
    for name in ("frame_lost", "xdp_tx_invalid_descs", "xdp_rx_invalid_descs", "tx_errors"):
        assert now[name] == 0, _set(now)
    return now


def _set(counters):
    return {name: value for name, value in counters.items() if value}


def serves_by_xdp(side, skua, timeout=30):
    before = skua.status()["answers"]["xdp"]
    wait_until(lambda: www(side, timeout=0.5) and skua.status()["answers"]["xdp"] > before, timeout=timeout, what="an answer by AF_XDP")


def under_load(side, hurt=lambda: None, rate=RATE, seconds=LOAD_S):
    with Load(side.server.v4, ["www.example.test A"], rate=rate, seconds=seconds, ns=side.client, wait_ms=3000) as load:
        time.sleep(1)
        hurt()
        return load.result()
