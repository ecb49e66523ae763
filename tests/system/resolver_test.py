# SPDX-License-Identifier: Apache-2.0
"""The way of a miss and of a hit, with an upstream that does what it is told: over AF_XDP, UDP sockets and TCP."""
import concurrent.futures
import contextlib
import itertools
import random
import socket
import time

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from lib.net import Net
from lib.query import ask, ask_raw, make_query
from lib.skua import Skua
from lib.upstream import Reply, Upstream

ZONE = """$ORIGIN own.test.
$TTL 300
@ SOA ns host 1 7200 900 1209600 300
@ NS ns
ns A 10.99.0.1
www A 192.0.2.1
out CNAME target.else.test.
"""
FRESH = itertools.count()


def fresh(label="n"):
    """A name that nobody has asked for yet."""
    return f"{label}{next(FRESH)}.test."


@contextlib.contextmanager
def served(tmp_path_factory, xdp=True, upstreams=1, zones=True, **sections):
    """A network of its own, upstreams at 127.0.0.2 and on, and Skua, which forwards everything to them."""
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(Net(gro=True))
        ups = [stack.enter_context(Upstream(ns=net.server, address=f"127.0.0.{2 + i}")) for i in range(upstreams)]
        zone = tmp_path_factory.mktemp("zones") / "own.zone"
        zone.write_text(ZONE)
        extra = {"forward": [{"zone": ".", "to": [u.text for u in ups], "dnssec": True}],
                 "recursion": {"allow": ["127.0.0.0/8", f"{net.client.v4}/32", f"{net.client.v6}/128", f"{net.server.v4}/32"]}, "cache": {"memory": "8M"}, "local": {"special-names": False}}
        for name, keys in sections.items():
            extra.setdefault(name, {}).update(keys) if isinstance(keys, dict) else extra.update({name: keys})
        skua = stack.enter_context(Skua(ns=net.server, listen=[net.server.v4, f"[{net.server.v6}]:53"], zones=[("own.test.", zone)] if zones else [],
                                        xdp={"interfaces": [net.server.interface]} if xdp else None, extra=extra))
        yield net, skua, ups


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with served(tmp_path_factory) as made:
        yield made


@pytest.fixture
def net(world):
    return world[0]


@pytest.fixture
def server(world):
    return world[1], world[2][0]


@pytest.fixture(autouse=True)
def forget(request):
    if "server" in request.fixturenames:
        up = request.getfixturevalue("server")[1]
        up.script.clear()
        up.clear()
        up.is_edns_ok, up.ttl = True, 300


def question(net, name, rdtype="A", **kwargs):
    return ask(net.server.v4, name, rdtype, ns=net.client, rd=True, **{"timeout": 5.0, **kwargs})


def ede(response):
    return [(o.code if hasattr(o, "code") else int.from_bytes(o.data[:2], "big")) for o in response.options if o.otype == 15]


# --- misses and hits ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tcp", [False, True])
def test_a_miss_is_asked_once_and_then_a_hit(net, server, tcp):
    skua, up = server
    name = fresh()
    first = question(net, name, tcp=tcp)
    assert first.rcode() == dns.rcode.NOERROR and first.flags & dns.flags.RA and not first.flags & dns.flags.AA
    assert [r.to_text() for r in first.answer] == [r.to_text() for r in question(net, name, tcp=tcp).answer]
    assert up.count(name) == 1


def test_hits_leave_by_af_xdp(net, server):
    skua, up = server
    name = fresh()
    question(net, name)
    before = skua.counters("xdp")
    for _ in range(20):
        question(net, name)
    after = skua.counters("xdp")
    assert after["cache_hits"] - before["cache_hits"] == 20
    assert after["tx_frames"] - before["tx_frames"] == 20


def test_the_answer_to_a_miss_leaves_by_the_queue_of_its_query(net, server):
    skua, up = server
    before = skua.counters("xdp")
    for _ in range(10):
        question(net, fresh())
    after = skua.counters("xdp")
    assert after["miss_asked"] - before["miss_asked"] == 10
    assert after["miss_answered"] - before["miss_answered"] == 10
    assert after["tx_frames"] - before["tx_frames"] == 10


def test_ipv6_clients_too(net, server):
    skua, up = server
    name = fresh()
    for _ in range(2):
        assert ask(net.server.v6, name, ns=net.client, rd=True, timeout=5.0).answer


def test_a_thousand_identical_questions_at_once_go_upstream_once(net, server):
    skua, up = server
    name = fresh("flood")
    up.script[name] = lambda q: [Reply(up.a(q), delay=0.03)]    # soon enough for no second try
    with net.client.inside():
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(50)]
    wire = make_query(name, "A", rd=True).to_wire()
    for s in sockets:
        s.settimeout(5)
        s.connect((net.server.v4, 53))
    for i in range(1000):
        sockets[i % 50].send(i.to_bytes(2, "big") + wire[2:])
    answered = sum(len(s.recv(4096)) > len(wire) for s in sockets for _ in range(20))
    assert answered == 1000
    assert up.count(name) == 1


def test_ttls_count_down_and_never_up(net, server):
    skua, up = server
    name = fresh()
    ttls = []
    for _ in range(4):
        ttls.append(question(net, name).answer[0].ttl)
        time.sleep(0.8)
    assert ttls[0] == 300 and ttls == sorted(ttls, reverse=True) and 297 <= ttls[-1] < 300
    assert up.count(name) == 1


@pytest.mark.parametrize("ttl,cached,shown", [(0, False, 0), (1, True, 1), (2**31 - 1, True, 86400), (2**31, False, 0), (2**32 - 1, False, 0)])
def test_ttls_at_the_edges(net, server, ttl, cached, shown):
    skua, up = server
    name = fresh()

    def odd(query):
        wire = bytearray(up.a(query, ttl=0).to_wire())
        at = wire.index(b"\x00\x01\x00\x01\x00\x00\x00\x00", 12 + len(query.question[0].name.to_wire())) + 4
        wire[at:at + 4] = ttl.to_bytes(4, "big")
        return [Reply(bytes(wire))]
    up.script[name] = odd
    assert question(net, name).answer[0].ttl == shown
    question(net, name)
    assert up.count(name) == (1 if cached else 2)


def test_an_expired_entry_is_asked_for_again(net, server):
    skua, up = server
    name = fresh()
    up.script[name] = lambda q: [Reply(up.a(q, ttl=1))]
    question(net, name)
    time.sleep(2.1)
    assert question(net, name).answer[0].ttl == 1
    assert up.count(name) == 2


def test_no_data_and_no_name_are_cached(net, server):
    skua, up = server
    name = fresh()
    for _ in range(3):
        response = question(net, name, "MX")
        assert response.rcode() == dns.rcode.NOERROR and not response.answer and response.authority[0].rdtype == dns.rdatatype.SOA
    assert up.count(name) == 1
    gone = f"x{next(FRESH)}.nx.test."
    for rdtype in ("A", "AAAA", "TXT"):
        response = question(net, gone, rdtype)
        assert response.rcode() == dns.rcode.NXDOMAIN and response.authority[0].rdtype == dns.rdatatype.SOA
    assert up.count(gone) == 1, "an NXDOMAIN is about the name, not the type"


def test_nothing_is_below_a_name_that_does_not_exist(net, server):
    skua, up = server
    gone = f"y{next(FRESH)}.nx.test."
    question(net, gone)
    for below in (f"a.{gone}", f"b.c.{gone}", f"MiXed.d.e.{gone}"):
        response = question(net, below, "AAAA")
        assert response.rcode() == dns.rcode.NXDOMAIN, below
        assert response.authority[0].name.to_text() == "test." and response.question[0].name.to_text() == below
        assert up.count(below.lower()) == 0


def test_negative_answers_live_as_long_as_their_soa_says(net, server):
    skua, up = server
    name = fresh()
    up.script[name] = lambda q: [Reply(up.negative(q, ttl=300, minimum=1))]
    assert question(net, name, "MX").authority[0].ttl == 1
    time.sleep(2.1)
    question(net, name, "MX")
    assert up.count(name) == 2


def test_the_case_of_the_question_is_kept(net, server):
    skua, up = server
    name = fresh()
    question(net, name)
    odd = name.upper()
    response = question(net, odd)
    assert response.question[0].name.to_text() == odd and response.answer[0].name.to_text() == odd
    assert up.count(name) == 1


def test_checking_disabled_has_entries_of_its_own(net, server):
    skua, up = server
    name = fresh()
    query = make_query(name, "A", rd=True)
    question(net, name)
    query.flags |= dns.flags.CD
    assert ask(net.server.v4, query, ns=net.client, timeout=5.0).flags & dns.flags.CD
    assert up.count(name) == 2


def test_dnssec_records_are_for_those_who_ask_for_them(net, server):
    skua, up = server
    name = fresh()

    def signed(query):
        reply = up.a(query)
        reply.answer.append(up.rrset(query, "A 13 2 300 20360101000000 20260101000000 1 test. MTIzNA==", rdtype="RRSIG"))
        return [Reply(reply)]
    up.script[name] = signed
    for _ in range(2):
        assert [r.rdtype for r in question(net, name).answer] == [dns.rdatatype.A]
        assert {r.rdtype for r in question(net, name, do=True).answer} == {dns.rdatatype.A, dns.rdatatype.RRSIG}
    assert up.count(name) == 1
    assert up.seen[0].message.ednsflags & dns.flags.DO


def test_chains_are_followed_and_cached(net, server):
    skua, up = server
    alias, target = fresh("alias"), fresh("target")

    def chain(query):
        reply = up.reply_to(query)
        reply.answer.append(up.rrset(query, target, rdtype="CNAME", ttl=60))
        reply.answer.append(up.rrset(query, "192.0.2.7", rdtype="A", ttl=30, name=target))
        return [Reply(reply)]
    up.script[alias] = chain
    for _ in range(2):
        response = question(net, alias)
        assert [(r.name.to_text(), dns.rdatatype.to_text(r.rdtype)) for r in response.answer] == [(alias, "CNAME"), (target, "A")]
    assert up.count(alias) == 1


def test_records_that_nobody_asked_for_are_not_believed(net, server):
    skua, up = server
    name, victim = fresh(), fresh("victim")

    def poison(query):
        reply = up.a(query)
        reply.answer.append(up.rrset(query, "203.0.113.66", name=victim, rdtype="A"))
        reply.authority.append(up.rrset(query, "ns.evil.test.", name="test.", rdtype="NS"))
        reply.additional.append(up.rrset(query, "203.0.113.66", name=victim, rdtype="A"))
        return [Reply(reply)]
    up.script[name] = poison
    response = question(net, name)
    assert len(response.answer) == 1 and not response.authority and not response.additional
    assert "203.0.113.66" not in question(net, victim).answer[0].to_text()


# --- forged and broken replies -------------------------------------------------------------------------------------------
def forged(up, change, query):
    """The lie first, the truth a little later. Nobody can forge a TCP connection from beside."""
    if up.seen[-1].transport == "tcp":
        return [Reply(up.a(query))]
    return [Reply(change(up, query)), Reply(up.a(query), delay=0.1)]


def lie(up, query):
    return up.data(query, "203.0.113.66")


def wrong_id(up, query):
    reply = lie(up, query)
    reply.id ^= 1
    return reply


def wrong_question(up, query):
    wire = bytearray(lie(up, query).to_wire())
    wire[13] ^= 1
    return bytes(wire)


def wrong_case(up, query):
    wire = bytearray(lie(up, query).to_wire())
    for i in range(12, 12 + len(query.question[0].name.to_wire())):
        if chr(wire[i]).isalpha():
            wire[i] ^= 0x20
    return bytes(wire)


def no_response_bit(up, query):
    reply = lie(up, query)
    reply.flags &= ~dns.flags.QR
    return reply


@pytest.mark.parametrize("change", [wrong_id, wrong_question, wrong_case, no_response_bit])
def test_replies_that_do_not_match_are_ignored(net, server, change):
    skua, up = server
    for _ in range(3):      # 0x20 is used once the upstream is known to keep the case
        question(net, fresh("abcdefgh"))
    name = fresh("abcdefghijkl")
    up.script[name] = lambda q: forged(up, change, q)
    assert "203.0.113.66" not in question(net, name).answer[0].to_text()


def test_replies_from_another_port_are_ignored(net, server):
    skua, up = server
    name = fresh()
    up.script[name] = lambda q: [Reply(lie(up, q), stray=True), Reply(up.a(q), delay=0.1)]
    assert "203.0.113.66" not in question(net, name).answer[0].to_text()


def test_ports_and_ids_are_random(net, server):
    skua, up = server
    for _ in range(200):
        question(net, fresh())
    ports, ids = {s.peer[1] for s in up.seen}, {s.message.id for s in up.seen}
    assert len(ids) > 190 and len(ports) >= 10
    assert max(ports) - min(ports) > 10000


def test_truncated_replies_are_asked_again_over_tcp(net, server):
    skua, up = server
    name = fresh()

    def big(query):
        if up.seen[-1].transport == "tcp":
            return [Reply(up.data(query, *[f'"{i:04} {"x" * 200}"' for i in range(20)]))]
        reply = up.reply_to(query)
        reply.flags |= dns.flags.TC
        return [Reply(reply)]
    up.script[name] = big
    assert question(net, name, "TXT").flags & dns.flags.TC, "it does not fit into UDP"
    response = question(net, name, "TXT", tcp=True)
    assert len(response.answer) == 20 or len(response.answer[0]) == 20
    assert up.count(name, transport="tcp") == 1


def test_an_upstream_that_dislikes_edns_is_asked_without(tmp_path_factory):
    with served(tmp_path_factory, xdp=False, forward=[{"zone": ".", "to": ["127.0.0.2:53"], "dnssec": False}]) as (net, skua, ups):
        ups[0].is_edns_ok = False
        for _ in range(3):
            assert question(net, fresh()).rcode() == dns.rcode.NOERROR
        assert sum(s.message.edns >= 0 for s in ups[0].seen) <= 2, "it is remembered"


def test_dnssec_is_never_given_up_silently(tmp_path_factory):
    with served(tmp_path_factory, xdp=False) as (net, skua, ups):
        ups[0].is_edns_ok = False
        assert question(net, fresh(), timeout=8.0).rcode() == dns.rcode.SERVFAIL


# --- failures ---------------------------------------------------------------------------------------------------------------
def test_failures_are_cached_and_end(net, server):
    skua, up = server
    name = fresh()
    up.script[name] = lambda q: [Reply(up.reply_to(q, dns.rcode.SERVFAIL))]
    first = question(net, name, edns=0)
    assert first.rcode() == dns.rcode.SERVFAIL
    asked = up.count(name)
    second = question(net, name, edns=0)
    assert second.rcode() == dns.rcode.SERVFAIL and up.count(name) == asked
    assert 13 in ede(second), "it says that the error was cached"
    del up.script[name]
    deadline = time.monotonic() + 6
    while question(net, name).rcode() != dns.rcode.NOERROR:
        assert time.monotonic() < deadline, "the name never recovers"
        time.sleep(0.2)


def test_stale_answers_while_the_upstream_is_down(tmp_path_factory):
    with served(tmp_path_factory, limits={"question-time": "2s"}) as (net, skua, ups):
        up, name, fresh_name = ups[0], fresh(), fresh()
        up.ttl = 1
        address = question(net, name).answer[0][0].to_text()
        up.stop()
        time.sleep(2.1)
        for _ in range(5):
            response = question(net, name, edns=0, timeout=6.0)
            assert response.rcode() == dns.rcode.NOERROR and response.answer[0][0].to_text() == address
            assert response.answer[0].ttl <= 30 and 3 in ede(response)
        failed = question(net, fresh_name, edns=0, timeout=6.0)
        assert failed.rcode() == dns.rcode.SERVFAIL and {22, 23} & set(ede(failed))
        assert skua.counters("xdp")["stale_hits"] > 0, "later ones are hits"
        up.start()
        deadline = time.monotonic() + 40
        while 3 in ede(question(net, name, edns=0, timeout=6.0)):
            assert time.monotonic() < deadline, "it never becomes fresh again"
            time.sleep(0.5)
        while question(net, fresh_name).rcode() != dns.rcode.NOERROR:
            assert time.monotonic() < deadline, "a name that failed during the outage never recovers"
            time.sleep(0.5)


def test_a_slow_upstream_makes_nobody_wait_longer_than_the_client_timer(tmp_path_factory):
    with served(tmp_path_factory) as (net, skua, ups):
        up, name = ups[0], fresh()
        up.ttl = 1
        question(net, name)
        up.script[name] = lambda q: [Reply(up.a(q, ttl=300), delay=3.0)]
        time.sleep(2.1)
        began = time.monotonic()
        response = question(net, name, edns=0)
        assert 3 in ede(response) and 1.5 < time.monotonic() - began < 2.6
        time.sleep(2.0)
        assert 3 not in ede(question(net, name, edns=0)), "the late reply was taken"


def test_with_one_of_two_upstreams_dead_no_query_fails(tmp_path_factory):
    with served(tmp_path_factory, upstreams=2) as (net, skua, ups):
        for _ in range(20):
            question(net, fresh())
        ups[0].stop()
        times = []
        for _ in range(100):
            began = time.monotonic()
            assert question(net, fresh()).rcode() == dns.rcode.NOERROR
            times.append(time.monotonic() - began)
        assert sorted(times)[-2] < 1.0, "the dead one is left out after the first failures"


def test_a_silent_upstream_is_left_out(tmp_path_factory):
    with served(tmp_path_factory, upstreams=2) as (net, skua, ups):
        ups[0].script[None] = lambda q: []
        for i in range(40):
            began = time.monotonic()
            assert question(net, fresh()).rcode() == dns.rcode.NOERROR
            took = time.monotonic() - began
        assert took < 0.5
        assert ups[0].count() < 30


# --- zones of ours, and who may ask -----------------------------------------------------------------------------------------
def test_own_zones_win(net, server):
    skua, up = server
    response = question(net, "www.own.test.")
    assert response.flags & dns.flags.AA and response.answer[0][0].to_text() == "192.0.2.1" and up.count("www.own.test.") == 0


def test_a_chain_from_our_zone_goes_on_outside(net, server):
    skua, up = server
    for _ in range(2):
        response = question(net, "out.own.test.")
        assert [r.name.to_text() for r in response.answer] == ["out.own.test.", "target.else.test."]
        assert response.flags & dns.flags.AA
    assert up.count("target.else.test.") == 1 and up.count("out.own.test.") == 0


def test_a_chain_from_outside_ends_in_our_zone(net, server):
    skua, up = server
    name = fresh()

    def into_ours(query):
        reply = up.reply_to(query)
        reply.answer.append(up.rrset(query, "www.own.test.", rdtype="CNAME"))
        reply.answer.append(up.rrset(query, "203.0.113.66", rdtype="A", name="www.own.test."))
        return [Reply(reply)]
    up.script[name] = into_ours
    for _ in range(2):
        text = [r.to_text() for r in question(net, name).answer]
        assert any("192.0.2.1" in t for t in text) and not any("203.0.113.66" in t for t in text), text


def test_a_zone_that_comes_is_seen_at_once(tmp_path_factory):
    with served(tmp_path_factory) as (net, skua, ups):
        name = "www.late.test."
        assert question(net, name).answer[0][0].to_text() != "192.0.2.99"
        alias = fresh()
        ups[0].script[alias] = lambda q: [Reply(_alias(ups[0], q, name))]
        question(net, alias)
        zone = tmp_path_factory.mktemp("late") / "late.zone"
        zone.write_text("$ORIGIN late.test.\n@ 300 SOA ns host 1 7200 900 1209600 300\n@ 300 NS ns\nns 300 A 10.99.0.1\nwww 300 A 192.0.2.99\n")
        skua.zones.append(("late.test.", str(zone)))
        skua.write_config()
        skua.reload()
        if question(net, "late.test.", "SOA").flags & dns.flags.AA:     # zones that come by reload
            assert question(net, name).answer[0][0].to_text() == "192.0.2.99"
            assert "192.0.2.99" in " ".join(r.to_text() for r in question(net, alias).answer)


def _alias(up, query, target):
    reply = up.reply_to(query)
    reply.answer.append(up.rrset(query, target, rdtype="CNAME"))
    reply.answer.append(up.rrset(query, "203.0.113.66", rdtype="A", name=target))
    return reply


def test_strangers_are_refused(tmp_path_factory):
    with served(tmp_path_factory, recursion={"allow": ["127.0.0.0/8"]}) as (net, skua, ups):
        response = question(net, fresh(), edns=0)
        assert response.rcode() == dns.rcode.REFUSED and 18 in ede(response) and not response.flags & dns.flags.RA
        assert question(net, "www.own.test.").rcode() == dns.rcode.NOERROR
        assert not ups[0].seen


def test_without_recursion_desired_nothing_is_told(net, server):
    skua, up = server
    name = fresh()
    question(net, name)
    assert ask(net.server.v4, name, ns=net.client).rcode() == dns.rcode.REFUSED


# --- life ---------------------------------------------------------------------------------------------------------------------
def test_the_cache_outlives_its_processes(tmp_path_factory):
    with served(tmp_path_factory) as (net, skua, ups):
        names = [fresh() for _ in range(50)]
        for name in names:
            question(net, name)
        ups[0].clear()
        for part in ("slowpath", "fastpath"):
            skua.kill_part(part)
            for name in names:
                assert ask(net.server.v4, name, ns=net.client, rd=True, timeout=2.0, tries=3).answer
        assert ups[0].count() == 0
        time.sleep(1)
        assert ask(net.server.v4, fresh(), ns=net.client, rd=True, timeout=3.0, tries=3).answer, "and misses are resolved again"


def end(skua):
    skua.popen.terminate()
    assert skua.popen.wait(10) == 0


def test_the_cache_outlives_the_box_by_its_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("state") / "cache"
    with served(tmp_path_factory, cache={"memory": "8M", "file": str(file)}) as (net, skua, ups):
        names = [fresh() for _ in range(50)]
        for name in names:
            question(net, name)
        end(skua)
        assert file.exists()
        ups[0].clear()
        time.sleep(1.1)
        skua.restart()
        answers = [question(net, name).answer[0] for name in names]
        assert ups[0].count() == 0 and all(280 < a.ttl < 300 for a in answers)
        end(skua)
        file.write_bytes(file.read_bytes()[:-100] + bytes(100))
        skua.restart()
        assert question(net, fresh()).answer and "SK-RES-004" in skua.log()


def test_flushing(net, server):
    skua, up = server
    names = [f"{label}.{fresh('zone')}" for label in ("a", "b")] + [fresh()]
    for name in names:
        question(net, name)
    skua.skua("cache", "flush", names[0])
    skua.skua("cache", "flush-tree", names[1].split(".", 1)[1])
    up.clear()
    for name in names:
        question(net, name)
    assert [up.count(name) for name in names] == [1, 1, 0]
    skua.skua("cache", "flush-all")
    question(net, names[2])
    assert up.count(names[2]) == 1


def test_a_flush_catches_what_is_under_way(net, server):
    skua, up = server
    name, version = fresh(), ["192.0.2.1"]
    up.script[name] = lambda q: [Reply(up.data(q, version[0]), delay=0.6)]     # the data of when the question came
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(question, net, name)
        time.sleep(0.2)
        version[0] = "192.0.2.2"
        skua.skua("cache", "flush", name)
        assert waiting.result().answer[0][0].to_text() == "192.0.2.2"
    assert question(net, name).answer[0][0].to_text() == "192.0.2.2"


# --- parity -------------------------------------------------------------------------------------------------------------------
def test_the_same_questions_get_the_same_answers_everywhere(net, server):
    """EDNS, DO, CD, letter case and size in every mix, over AF_XDP, UDP sockets and TCP: sections equal as sets, TTLs within a second."""
    skua, up = server
    dice = random.Random(4)
    names = [fresh("parity") for _ in range(30)] + [f"p{i}.nx.test." for i in range(5)] + ["www.own.test.", "none.own.test.", "out.own.test."]
    before = skua.counters("xdp")["answers"]
    for _ in range(1500):
        name = dice.choice(names)
        name = "".join(dice.choice((c.upper(), c)) for c in name)
        query = make_query(name, dice.choice(("A", "AAAA", "MX", "TXT", "ANY", "DS")), rd=True)
        if dice.random() < 0.7:
            query.use_edns(0, dns.flags.DO if dice.random() < 0.5 else 0, dice.choice((512, 1232, 4096)))
        if dice.random() < 0.2:
            query.flags |= dns.flags.CD
        wire = query.to_wire()
        replies = [dns.message.from_wire(r) for r in (
            ask_raw(net.server.v4, wire, ns=net.client, timeout=5), ask_raw(net.server.v4, wire, ns=net.client, tcp=True, timeout=5),
            ask_raw(net.server.v4, wire, ns=net.server, timeout=5, source=net.server.v4))]
        shapes = [_shape(r) for r in replies]
        assert shapes[0] == shapes[1] == shapes[2], (name, shapes)
    assert skua.counters("xdp")["answers"] - before > 1000


def _shape(response):
    def section(rrsets):
        return sorted((r.name.to_text(), r.rdtype, tuple(sorted(x.to_text() for x in r))) for r in rrsets)
    flags = response.flags & ~dns.flags.TC
    return response.rcode(), flags, section(response.answer), section(response.authority), section(response.additional), response.edns
