# SPDX-License-Identifier: Apache-2.0
"""Signed variants of zones, made by dnssec-signzone."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from lib import zonefiles

CACHE = pathlib.Path(tempfile.gettempdir()) / f"skua-test-signed-{os.getuid()}"
ALGORITHM = "ECDSAP256SHA256"
START, END = "20250101000000", "20370101000000"   # long, so that what is cached stays valid


def _run(command, cwd):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def _keys(origin):
    """A folder with a KSK and a ZSK for the zone; the same ones for as long as the cache lives."""
    folder = CACHE / ("keys-" + hashlib.sha256(origin.lower().encode()).hexdigest()[:16])
    if not folder.exists():
        fresh = pathlib.Path(tempfile.mkdtemp(dir=CACHE))
        _run(["dnssec-keygen", "-q", "-a", ALGORITHM, "-f", "KSK", "-P", START, "-A", START, origin], fresh)
        _run(["dnssec-keygen", "-q", "-a", ALGORITHM, "-P", START, "-A", START, origin], fresh)
        try:
            fresh.rename(folder)
        except OSError:     # another test run was faster
            shutil.rmtree(fresh)
    return folder


def _sign(flat, origin, out, options):
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        source = pathlib.Path(work) / "zone"
        source.write_text(flat, encoding="latin-1")
        _run(["dnssec-signzone", "-q", "-S", "-K", _keys(origin), "-o", origin, "-s", START, "-e", END, "-O", "full", *options,
              "-f", "signed", "zone"], work)
        (pathlib.Path(work) / "signed").rename(out)


def sign_zone(path, origin, outdir, nsec3=False, optout=False, iterations=0, salt="-"):
    """Signs the master file `path` of the zone `origin` (as it stands: it needs no keys in it) and returns the path of the
    signed master file in outdir. NSEC by default; nsec3 chooses NSEC3, with opt-out, iterations and salt (hex, "-": none).
    The result is cached by content, so that suites which share zones sign them once."""
    CACHE.mkdir(mode=0o700, exist_ok=True)
    flat = zonefiles.flatten(path, origin)
    options = []
    if nsec3:
        options = ["-3", salt, "-H", str(iterations)] + (["-A"] if optout else [])
    digest = hashlib.sha256("\0".join([flat, origin, *options]).encode("latin-1")).hexdigest()[:32]
    cached = CACHE / f"{digest}.zone"
    if not cached.exists():
        _sign(flat, origin, cached, options)
    kind = "nsec" if not nsec3 else "nsec3-optout" if optout else "nsec3"
    target = pathlib.Path(outdir) / f"{pathlib.Path(path).stem}.{kind}.zone"
    shutil.copyfile(cached, target)
    return target
