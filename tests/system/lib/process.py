# SPDX-License-Identifier: Apache-2.0
"""Processes with a log, a bounded start and a clean stop."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

STARTED = []  # every Process of this test run, newest last; conftest.py shows their logs when a test fails


def run(command, check=True, timeout=30, **kwargs):
    """subprocess.run with captured text; the error shows what the command said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **kwargs)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def wait_until(condition, timeout=10.0, interval=0.02, what="condition"):
    """Calls condition until it returns something true, and returns that."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(interval)


def free_port(address="127.0.0.1"):
    """A port that is free for UDP and TCP on the address (in the calling thread's network namespace)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for _ in range(100):
        with socket.socket(family, socket.SOCK_STREAM) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
            tcp.bind((address, 0))
            port = tcp.getsockname()[1]
            try:
                udp.bind((address, port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


class Process:
    """A program in an optional network namespace (lib.net.Namespace), with a folder of its own that goes away with it."""

    name = "process"
    start_timeout = 15.0

    def __init__(self, ns=None):
        self.ns = ns
        self.folder = tempfile.mkdtemp(prefix=f"skua-test-{self.name}-")
        self.log_path = os.path.join(self.folder, "log")
        self.popen = None
        self.last_log = ""

    # What subclasses define.
    def command(self):
        raise NotImplementedError

    def is_ready(self):
        return True

    def environment(self):
        return dict(os.environ)

    def start(self):
        command = self.command()
        if self.ns:
            command = ["ip", "netns", "exec", self.ns.name, *command]
        STARTED.append(self)
        with open(self.log_path, "ab") as log:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                          env=self.environment(), start_new_session=True)
        deadline = time.monotonic() + self.start_timeout
        try:
            while not self.is_ready():
                if self.popen.poll() is not None:
                    raise RuntimeError(f"{self.name} ended with {self.popen.returncode} at its start:\n{self.log()}")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name}: not ready within {self.start_timeout} s:\n{self.log()}")
                time.sleep(0.02)
        except BaseException:
            self.stop()
            raise
        return self

    @property
    def pid(self):
        return self.popen.pid

    def is_running(self):
        return self.popen is not None and self.popen.poll() is None

    def log(self):
        try:
            with open(self.log_path, errors="replace") as f:
                self.last_log = f.read()
        except FileNotFoundError:
            pass
        return self.last_log

    def signal(self, number):
        self.popen.send_signal(number)

    def stop(self, timeout=10.0):
        """SIGTERM, then SIGKILL. Returns the exit code; removes the folder."""
        code = None
        if self.popen is not None:
            if self.is_running():
                self.popen.send_signal(signal.SIGCONT)
                self.popen.terminate()
                try:
                    self.popen.wait(timeout)
                except subprocess.TimeoutExpired:
                    self.popen.kill()
                    self.popen.wait(timeout)
            code = self.popen.returncode
        self.log()
        self.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)
        return code

    def cleanup(self):
        """For subclasses: what must go before the folder does."""

    def __enter__(self):
        return self if self.popen else self.start()

    def __exit__(self, *unused):
        self.stop()
