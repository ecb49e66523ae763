# SPDX-License-Identifier: Apache-2.0
"""A bounded load from the client's namespace: tests/tools/qload.c."""
import json
import os
import subprocess
import tempfile

from .process import run
from .skua import build_folder, source_folder


def qload_path():
    path = os.path.join(build_folder(), "tests/tools/qload")
    run(["make", "-s", "-C", source_folder(), f"BUILD={build_folder()}", path], timeout=120)
    return path


class Load:
    """Runs while the test does something else; result() waits for its end and returns what qload says.

    names: "name [type]" strings. result()["lost"] and the rest: see qload.c."""

    def __init__(self, address, names, rate, seconds, port=53, ns=None, do=False, sockets=16, wait_ms=1000):
        self.names_file = tempfile.NamedTemporaryFile("w", prefix="skua-test-names-", suffix=".txt")
        self.names_file.write("".join(f"{n}\n" for n in names))
        self.names_file.flush()
        command = [qload_path(), "-s", address, "-p", str(port), "-r", str(rate), "-t", str(seconds), "-f", self.names_file.name,
                   "-c", str(sockets), "-w", str(wait_ms)]
        if do:
            command.append("-D")
        if ns:
            command = ["ip", "netns", "exec", ns.name, *command]
        self.deadline_s = seconds + wait_ms / 1000 + 20
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self):
        try:
            out, error = self.popen.communicate(timeout=self.deadline_s)
        finally:
            self.stop()
        if self.popen.returncode != 0:
            raise RuntimeError(f"qload: {error}")
        return json.loads(out)

    def stop(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        self.names_file.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()


def load(*args, **kwargs):
    """The same, waiting for the result."""
    with Load(*args, **kwargs) as running:
        return running.result()
