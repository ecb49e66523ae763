"""Every command in a ```sh block of README.md does what the README says: exits 0, in a clone's folder, as root."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Running it from here would never end: this test is part of it.
NOT_FROM_HERE = {"tools/check"}


def commands():
    for block in re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S):
        for line in block.splitlines():
            command = re.sub(r"\s{2,}#.*", "", line).removeprefix("sudo ").strip()
            if command and command not in NOT_FROM_HERE:
                yield command


def test_there_are_commands():
    found = list(commands())
    assert "tools/quickstart" in found and "tools/quickstart stop" in found and "make" in found


@pytest.mark.bound(600)
@pytest.mark.parametrize("command", list(commands()))
def test_command(command):
    # The programs under test may have been built elsewhere; the README speaks of build/.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "VARIANT", "BUILD")}
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=600, env=environment, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    if command == "tools/quickstart":
        assert re.search(r"Answers that left by AF_XDP: \d+ before, \d+ after", done.stdout), done.stdout[-2000:]
        assert "www.demo.example.\t3600\tIN\tAAAA\t2001:db8::80" in done.stdout
