# SPDX-License-Identifier: Apache-2.0
"""Rules for every system test: root, a bound on its time, no silent skip, and the logs of its processes when it fails."""
import os
import signal
import sys

import pytest
from _pytest.runner import runtestprotocol

sys.path.insert(0, os.path.dirname(__file__))
from lib import process  # noqa: E402

DEFAULT_BOUND_S = 120
LOG_LINES = 80


def pytest_configure(config):
    config.addinivalue_line("markers", "second_chance: may try again once; for tests that count losses under load")
    config.addinivalue_line("markers", f"bound(seconds): the test may take that long; without it {DEFAULT_BOUND_S} s")


def pytest_runtest_protocol(item, nextitem):
    """Tests that count what is lost under load may try again once: a virtual machine whose host pauses it loses queries without our help."""
    if not item.get_closest_marker("second_chance"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(r.failed for r in reports):
        print(f"second chance for {item.nodeid}", file=sys.stderr)
        item._initrequest()     # fixtures anew
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_sessionstart(session):
    if os.geteuid() != 0:
        pytest.exit("system tests need root: namespaces, veth pairs, AF_XDP", returncode=4)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be skipped here: {call.excinfo.value if call.excinfo else ''}"
    if report.failed:
        for p in process.STARTED[-8:]:
            tail = "\n".join(p.log().splitlines()[-LOG_LINES:])
            report.sections.append((f"log of {p.name}", tail))


@pytest.fixture(autouse=True)
def bound(request):
    marker = request.node.get_closest_marker("bound")
    seconds = marker.args[0] if marker else DEFAULT_BOUND_S

    def on_alarm(*unused):
        raise TimeoutError(f"the test took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def forget_old_processes():
    """Only processes that still run and those of this test are shown."""
    process.STARTED[:] = [p for p in process.STARTED if p.is_running()]
    yield
