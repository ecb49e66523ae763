# SPDX-License-Identifier: Apache-2.0
"""One guest for all tests, a bound on each, nothing skipped, and a last line `N passed, N failed`."""
import os
import signal
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../system"))
sys.path.insert(0, HERE)
from guest import Guest  # noqa: E402

BOUND_S = 120
_outcomes = {}      # by test: whether all of its phases passed
_guests = []


def pytest_sessionstart(session):
    """The run's own bound ends it by SIGTERM: what has failed so far is shown."""
    def on_term(*unused):
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, on_term)


@pytest.fixture(scope="session")
def guest():
    folder = os.environ["SKUA_ZEROCOPY"]
    logs = os.path.join(folder, "logs")
    with Guest(logs, os.path.join(folder, "kernel/vmlinuz"), os.path.join(folder, "initramfs.cpio")) as booted:
        _guests.append(booted)
        yield booted


@pytest.fixture(autouse=True)
def bound():
    def on_alarm(*unused):
        raise TimeoutError(f"the test took longer than {BOUND_S} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(BOUND_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be skipped here: {call.excinfo.value if call.excinfo else ''}"
    _outcomes[item.nodeid] = _outcomes.get(item.nodeid, True) and report.passed
    if report.failed and _guests:
        if _guests[0].is_deaf:
            item.session.shouldfail = "the guest does not answer any more"
        report.sections.append(("the guest's console", _guests[0].console()[-2000:]))
        try:
            report.sections.append(("log of skua in the guest", "\n".join(_guests[0].skua.log().splitlines()[-60:])))
        except (AttributeError, OSError, RuntimeError):
            pass    # there is none, or the guest does not answer


def pytest_unconfigure():
    passed = sum(_outcomes.values())
    print(f"\n{passed} passed, {len(_outcomes) - passed} failed")
