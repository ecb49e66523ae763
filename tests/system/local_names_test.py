# SPDX-License-Identifier: Apache-2.0
"""Names that must not leak, hosts files and the operator's own records."""
import dns.rcode
import dns.rdatatype
import pytest

from lib.query import ask
from resolver_test import question, served


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    hosts = tmp_path_factory.mktemp("hosts") / "hosts"
    hosts.write_text("# a comment\n192.0.2.10 printer.lan printer2.lan\n2001:db8::10\tprinter.lan # both\nnonsense here\n192.0.2.11 www.example.com\n")
    hosts.chmod(0o644)
    local = {"special-names": True, "special-names-off": ["test.", "10.in-addr.arpa."], "hosts": [str(hosts)],
             "records": ["mail.lan. 300 IN MX 10 printer.lan.", "alias.lan. CNAME www.example.net.", "broken.lan. A 1.2.3"]}
    with served(tmp_path_factory, local=local) as (net, skua, ups):
        yield net, skua, ups[0], hosts


@pytest.mark.parametrize("name", ["x.local.", "abc.onion.", "nothing.invalid.", "router.home.arpa.", "1.1.168.192.in-addr.arpa.", "1.1.16.172.in-addr.arpa.",
                                  "9.1.31.172.in-addr.arpa.", "1.0.64.100.in-addr.arpa.", "1.0.127.100.in-addr.arpa.", "a.b.8.e.f.ip6.arpa.", "x.alt."])
def test_special_names_do_not_leak(world, name):
    net, skua, up, _ = world
    response = question(net, name, "PTR")
    assert response.rcode() == dns.rcode.NXDOMAIN and response.authority[0].rdtype == dns.rdatatype.SOA
    assert up.count(name) == 0


def test_localhost_is_here(world):
    net, _, up, _ = world
    assert question(net, "localhost.").answer[0][0].to_text() == "127.0.0.1"
    assert question(net, "any.localhost.", "AAAA").answer[0][0].to_text() == "::1"
    assert question(net, "1.0.0.127.in-addr.arpa.", "PTR").answer[0][0].to_text() == "localhost."
    assert not [s for s in up.seen if "localhost" in s.name or "127" in s.name]


@pytest.mark.parametrize("name", ["x.test.", "1.2.3.10.in-addr.arpa.", "1.1.32.172.in-addr.arpa.", "1.1.128.100.in-addr.arpa."])
def test_what_is_switched_off_or_public_is_asked_for(world, name):
    net, _, up, _ = world
    question(net, name, "PTR")
    assert up.count(name) == 1


def test_hosts_and_records_answer_and_hide_nothing(world):
    net, _, up, _ = world
    assert question(net, "printer.lan.").answer[0][0].to_text() == "192.0.2.10"
    assert question(net, "PRINTER.lan.", "AAAA").answer[0][0].to_text() == "2001:db8::10"
    assert question(net, "printer2.lan.").answer[0][0].to_text() == "192.0.2.10"
    assert question(net, "10.2.0.192.in-addr.arpa.", "PTR").rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN)
    assert question(net, "mail.lan.", "MX").answer[0][0].to_text() == "10 printer.lan."
    nodata = question(net, "www.example.com.", "TXT")
    assert nodata.rcode() == dns.rcode.NOERROR and not nodata.answer and up.count("www.example.com.") == 0
    for other in ("example.com.", "sub.www.example.com.", "other.lan.", "com."):
        question(net, other)
        assert up.count(other) == 1, other


def test_a_record_of_ours_may_lead_outside(world):
    net, _, up, _ = world
    response = question(net, "alias.lan.")
    assert [r.name.to_text() for r in response.answer] == ["alias.lan.", "www.example.net."] and up.count("www.example.net.") == 1


def test_a_changed_hosts_file_counts_after_a_reload(world):
    net, skua, up, hosts = world
    question(net, "new.lan.")
    hosts.write_text("192.0.2.77 new.lan\n")
    skua.reload()
    assert question(net, "new.lan.").answer[0][0].to_text() == "192.0.2.77"
    assert question(net, "printer.lan.").answer[0][0].to_text() != "192.0.2.10"


def test_the_log_names_a_bad_line(world):
    _, skua, _, hosts = world
    assert f"{hosts}:4:" in skua.log() and "broken.lan." in skua.log()


def test_strangers_get_local_names_like_zones(world):
    net, _, _, _ = world
    assert ask(net.server.v4, "x.local.", ns=net.client).rcode() == dns.rcode.NXDOMAIN
