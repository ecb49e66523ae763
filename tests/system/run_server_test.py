# SPDX-License-Identifier: Apache-2.0
"""`skua run` with its real parts: start, stop, reload, and what the verbs say."""
import json
import os
import signal
import time

import pytest

from lib import Load, Skua, ask, build_folder, wait_until
from lib.process import run

ZONE = """$TTL 300
@ IN SOA ns hostmaster {serial} 3600 600 86400 60
@ IN NS ns
ns IN A 192.0.2.1
www IN A {www}
"""
FAULTY = ZONE + "broken IN A 192.0.2.300\n"


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(ZONE.format(serial=1, www="192.0.2.10"))
    return path


@pytest.fixture
def skua(zone):
    with Skua(zones=[("example.test", zone)]) as server:
        yield server


def www(server):
    try:
        answer = ask(server.address, "www.example.test", "A", port=server.port)
    except TimeoutError:
        return None
    return answer.answer[0][0].address if answer and answer.answer else None


def serial(server):
    return json.loads(server.skua("zone", "status", "example.test", "--json").stdout)["serial"]


def test_serves_and_stops(skua):
    assert www(skua) == "192.0.2.10"
    skua.signal(signal.SIGTERM)
    assert skua.popen.wait(10) == 0
    assert "SK-RUN-002" in skua.log()


# --- reload ---------------------------------------------------------------------------------------------------------------

def test_reload_takes_a_good_zone(skua, zone):
    zone.write_text(ZONE.format(serial=2, www="192.0.2.20"))
    done = skua.reload()
    assert done.returncode == 0 and done.stdout.startswith("1 loaded, 0 unchanged")
    assert www(skua) == "192.0.2.20" and serial(skua) == 2
    assert f"SK-ZONE-001 example.test.: serial 2, 4 records, from {zone}" in skua.log()
    done = skua.reload()
    assert done.stdout.startswith("0 loaded, 1 unchanged")


def test_reload_refuses_a_bad_zone_and_says_where(skua, zone):
    zone.write_text(FAULTY.format(serial=3, www="192.0.2.30"))
    done = skua.reload(check=False)
    assert done.returncode == 1
    assert f"{zone}:6:13:" in done.stderr, done.stderr
    assert www(skua) == "192.0.2.10" and serial(skua) == 1
    status = json.loads(skua.skua("zone", "status", "example.test", "--json").stdout)
    assert status["state"] == "stale" and any(f"{zone}:6:13:" in line for line in status["fault"])
    assert f"{zone}:6:13:" in skua.skua("zone", "status", "example.test").stdout
    zone.write_text(ZONE.format(serial=4, www="192.0.2.40"))
    assert skua.reload("example.test").returncode == 0
    assert www(skua) == "192.0.2.40"


def test_reload_of_a_zone_that_is_none(skua):
    done = skua.reload("other.test", check=False)
    assert done.returncode == 1 and "other.test" in done.stderr


def test_reload_by_json_tells_its_result(skua, zone):
    result = json.loads(skua.skua("reload", "--force", "--json").stdout)
    assert result["loaded"] == 1 and result["live"] is True
    zone.write_text(FAULTY.format(serial=5, www="192.0.2.1"))
    done = skua.skua("reload", "--json", check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "zone-refused"


def test_sighup_reloads(skua, zone):
    zone.write_text(ZONE.format(serial=6, www="192.0.2.60"))
    skua.signal(signal.SIGHUP)
    wait_until(lambda: www(skua) == "192.0.2.60")
    wait_until(lambda: "SK-RUN-020" in skua.log())
    zone.write_text(FAULTY.format(serial=7, www="192.0.2.70"))
    skua.signal(signal.SIGHUP)
    wait_until(lambda: "SK-RUN-021" in skua.log())
    assert f"{zone}:6:13:" in skua.log()
    assert www(skua) == "192.0.2.60"


# --- its parts end ------------------------------------------------------------------------------------------------------------

def test_a_killed_slowpath_loses_little(skua):
    with Load(skua.address, ["www.example.test A"], rate=2000, seconds=4, port=skua.port) as load:
        time.sleep(1)
        first = skua.kill_part("slowpath")
        wait_until(lambda: skua.part_pid("slowpath") not in (0, first))
        result = load.result()
    assert result["lost"] < 100, result   # what it had taken from its sockets; what waits there is answered by the next
    assert skua.status()["parts"]["slowpath"]["restarts"] == 1


def test_a_stopped_slowpath_is_replaced_and_loses_little(skua):
    with Load(skua.address, ["www.example.test A"], rate=1000, seconds=4, port=skua.port, wait_ms=3000) as load:
        time.sleep(1)
        first = skua.kill_part("slowpath", signal.SIGSTOP)
        wait_until(lambda: skua.part_pid("slowpath") not in (0, first), timeout=5)
        result = load.result()
    assert result["lost"] < 100, result
    status = skua.status()["parts"]["slowpath"]
    assert status["hangs"] == 1 and status["last_exit"] == "was silent and was killed"


def test_totals_outlive_a_part(skua):
    for _ in range(5):
        assert www(skua)
    before = wait_until(lambda: skua.status()["answers"]["udp"] >= 5 and skua.status()["answers"]["udp"])
    first = skua.kill_part("slowpath")
    wait_until(lambda: skua.part_pid("slowpath") not in (0, first) and www(skua))
    assert skua.status()["answers"]["udp"] > before


def test_a_killed_supervisor_starts_again_at_once(skua):
    parts = [skua.part_pid("slowpath")]
    skua.kill()
    begin = time.monotonic()
    skua.restart()
    assert time.monotonic() - begin < 5
    assert www(skua) == "192.0.2.10"
    assert skua.part_pid("slowpath") not in parts


def test_the_slowpath_owns_its_state_when_it_has_a_user(zone):
    for folder in (zone.parent, zone.parent.parent, zone.parent.parent.parent):
        os.chmod(folder, 0o755)   # pytest's
    server = Skua(zones=[("example.test", zone)], extra={"server": {"user-slowpath": "nobody"}})
    os.chmod(server.folder, 0o755)
    state = os.path.join(server.folder, "state")
    os.makedirs(os.path.join(state, "zones"))   # as root has left it
    with server:
        assert www(server) == "192.0.2.10"
        assert [os.stat(path).st_uid for path in (state, os.path.join(state, "zones"))] == [65534, 65534]
        with open(f"/proc/{server.part_pid('slowpath')}/status") as f:
            assert "CapEff:\t0000000000000000" in f.read()


# --- the verbs ---------------------------------------------------------------------------------------------------------------

STATUS = {"version", "state", "pid", "uptime_s", "config", "run", "generation", "zones", "segments", "answers", "parts", "interfaces",
          "queues", "threads", "cache"}
PART = {"name", "state", "pid", "uptime_s", "restarts", "hangs", "threads", "live_generation", "last_exit", "counters"}


def test_status(skua):
    assert www(skua)
    status = skua.status()
    assert set(status) == STATUS
    assert set(status["parts"]) == {"fastpath", "slowpath"}
    assert set(status["parts"]["slowpath"]) == PART
    assert status["state"] == "serving" and status["pid"] == skua.pid and status["zones"] == 1
    assert status["parts"]["slowpath"]["pid"] == skua.part_pid("slowpath")
    assert status["parts"]["fastpath"]["state"] == "off"
    assert status["answers"]["udp"] >= 1 and status["answers"]["xdp"] == 0
    assert {t["role"] for t in status["threads"]} == {"udp", "tcp"}
    text = skua.skua("status").stdout
    assert "serving" in text and "slowpath" in text and "zones 1" in text


@pytest.mark.parametrize("arguments, fields", [
    (["version"], {"version"}),
    (["help"], {"verbs"}),
    (["help", "zone", "check"], {"verb", "arguments", "help"}),
    (["status"], STATUS),
    (["reload"], {"loaded", "unchanged", "failed", "generation", "live", "duration_us"}),
    (["zone", "check"], {"ok", "errors", "warnings", "zones_checked", "zones_bad", "zones"}),
    (["xdp", "status"], {"running", "interfaces", "queues"}),
    (["config", "check"], {"file", "ok", "errors", "warnings", "zones", "findings"}),
    (["log", "level"], {"run", "slowpath"}),
    (["log", "level", "zone", "info"], {"run", "slowpath"}),
])
def test_json_has_its_fields(skua, arguments, fields):
    done = skua.skua(*arguments, "--json")
    assert set(json.loads(done.stdout)) == fields
    human = skua.skua(*arguments)
    assert human.stdout or human.stderr


def test_zone_list_and_status(skua):
    zones = json.loads(skua.skua("zone", "list", "--json").stdout)
    assert [(z["zone"], z["state"], z["serial"]) for z in zones] == [("example.test.", "served", 1)]
    assert "example.test." in skua.skua("zone", "list").stdout
    assert "served" in skua.skua("zone", "status", "EXAMPLE.test.").stdout
    assert skua.skua("zone", "status", "other.test", check=False).returncode == 1
    assert skua.skua("zone", "status", "a..b", check=False).returncode == 2


def test_log_levels_change_in_every_process(skua):
    levels = json.loads(skua.skua("log", "level", "zone", "debug", "--json").stdout)
    assert levels == {"run": {"zone": "debug"}, "slowpath": {"zone": "debug"}}
    assert json.loads(skua.skua("log", "level", "zone", "--json").stdout) == levels
    assert skua.skua("log", "level", "nonsense", check=False).returncode == 2
    assert skua.skua("log", "level", "zone", "nonsense", check=False).returncode == 2


def test_a_verb_finds_the_server_by_its_run_folder(skua):
    done = run([os.path.join(build_folder(), "skua"), "status", "--json", "--run", skua.run_folder])
    assert json.loads(done.stdout)["pid"] == skua.pid
    done = run([os.path.join(build_folder(), "skua"), "status", "--json"], env={**os.environ, "SKUA_CONFIG": skua.config_path})
    assert json.loads(done.stdout)["pid"] == skua.pid


@pytest.mark.parametrize("arguments, code, says", [
    (["status", "--run", "/nowhere"], 3, "nobody listens"),
    (["reload", "--run", "/nowhere"], 3, "nobody listens"),
    (["zone", "list", "--run", "/nowhere"], 3, "nobody listens"),
    (["log", "level", "--run", "/nowhere"], 3, "nobody listens"),
    (["status", "-c", "/nowhere.yaml"], 2, "/nowhere.yaml: No such file"),
    (["statsu"], 2, "did you mean \"status\"?"),
    (["zone", "chekc"], 2, "did you mean \"zone check\"?"),
    (["zone", "check", "x"], 2, "needs --origin"),
    (["zone", "check", "x", "--origin", "a..b"], 2, "--origin a..b"),
    (["status", "more"], 2, "usage: skua status"),
    (["status", "--force"], 2, "does not go with"),
    (["help", "nonsense"], 2, "unknown verb"),
    ([], 2, ""),
])
def test_exit_codes_without_a_server(arguments, code, says):
    done = run([os.path.join(build_folder(), "skua"), *arguments], check=False)
    assert done.returncode == code
    assert says in done.stderr
    if says:
        with_json = run([os.path.join(build_folder(), "skua"), *arguments, "--json"], check=False)
        assert with_json.returncode == code and says in json.loads(with_json.stdout)["error"]["message"]


# --- zone check needs no server -------------------------------------------------------------------------------------------------

def check(*arguments):
    return run([os.path.join(build_folder(), "skua"), "zone", "check", *map(str, arguments)], check=False)


def test_zone_check_of_a_good_file(zone):
    done = check(zone, "--origin", "example.test")
    assert done.returncode == 0 and "zone example.test.: ok, 4 records" in done.stderr


def test_zone_check_prints_the_zone_in_canonical_order(zone):
    done = check(zone, "--origin", "example.test", "--print")
    assert done.returncode == 0
    assert [line.split("\t") for line in done.stdout.splitlines()] == [
        ["example.test.", "300", "IN", "NS", "ns.example.test."],
        ["example.test.", "300", "IN", "SOA", "ns.example.test. hostmaster.example.test. 1 3600 600 86400 60"],
        ["ns.example.test.", "300", "IN", "A", "192.0.2.1"],
        ["www.example.test.", "300", "IN", "A", "192.0.2.10"],
    ]
    result = json.loads(check(zone, "--origin", "example.test", "--print", "--json").stdout)
    assert result["zones"][0]["text"] == done.stdout and result["zones"][0]["records"] == 4


def test_zone_check_tells_every_finding_with_its_place(zone):
    zone.write_text(FAULTY.format(serial=1, www="192.0.2.10") + "more IN AAAA nonsense\n")
    done = check(zone, "--origin", "example.test")
    assert done.returncode == 1
    assert f"{zone}:6:13: error: " in done.stderr and f"{zone}:7:14: error: " in done.stderr
    result = json.loads(check(zone, "--origin", "example.test", "--json").stdout)
    places = [(f["file"], f["line"], f["column"], f["level"]) for f in result["zones"][0]["findings"]]
    assert places == [(str(zone), 6, 13, "error"), (str(zone), 7, 14, "error")]
    assert not result["ok"] and result["zones_bad"] == 1


def test_zone_check_of_a_missing_file(tmp_path):
    done = check(tmp_path / "none.zone", "--origin", "example.test")
    assert done.returncode == 1 and "none.zone" in done.stderr and "no such file" in done.stderr


def test_zone_check_of_a_configuration(zone, tmp_path):
    other = tmp_path / "other.zone"
    other.write_text("@ 60 IN SOA ns hostmaster 1 2 3 4 5\n")
    config = tmp_path / "skua.yaml"
    config.write_text(f"zones:\n  - name: example.test\n    file: {zone}\n  - name: other.test\n    file: {other}\n")
    done = check("-c", config)
    assert done.returncode == 1
    assert "zone example.test.: ok" in done.stderr and "zone other.test.: not usable" in done.stderr and "2 zones, 1 not usable" in done.stderr


def test_config_check_tells_every_finding(tmp_path):
    config = tmp_path / "skua.yaml"
    config.write_text("server:\n  identty: x\nlisten:\n  dns: [ \"1.2.3.4.5\" ]\n")
    done = run([os.path.join(build_folder(), "skua"), "config", "check", "-c", str(config)], check=False)
    assert done.returncode == 2
    assert f"{config}:2:3: error: " in done.stdout and "identity" in done.stdout
    assert f"{config}:4:" in done.stdout
    result = json.loads(run([os.path.join(build_folder(), "skua"), "config", "check", "-c", str(config), "--json"], check=False).stdout)
    assert result["errors"] == 2 and not result["ok"]
