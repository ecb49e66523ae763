#!/usr/bin/env python3
"""Include directions (docs/architecture.md): every #include "..." goes to the own room or one that it may see."""
import pathlib
import re
import sys

ROOMS = ["bpf", "fastpath/base", "fastpath/dns", "fastpath/table", "fastpath/answer", "fastpath/xdp", "slowpath", "config",
         "tools", "tests", "bench"]
DATA = ["fastpath/base", "fastpath/dns"]
MAY_SEE = {
    "bpf": [],
    "fastpath/base": [],
    "fastpath/dns": ["fastpath/base"],
    "fastpath/table": DATA,
    "fastpath/answer": DATA + ["fastpath/table"],
    "config": DATA,
    "fastpath/xdp": DATA + ["fastpath/table", "fastpath/answer", "config", "bpf"],
    "slowpath": DATA + ["fastpath/table", "fastpath/answer", "config"],
    # The command supervises: it makes sockets, XDP programs and shared memory for the parts.
    "tools": DATA + ["fastpath/table", "fastpath/xdp", "slowpath", "config", "bpf"],
    "bench": DATA + ["fastpath/table", "fastpath/answer", "slowpath", "config", "tests"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def room_of(path):
    return next((r for r in ROOMS if str(path).startswith(r + "/")), None)


def target_of(root, source, name):
    for base in (root / "fastpath", root, source.parent):
        if (base / name).is_file():
            return (base / name).relative_to(root)
    return None


def check(root):
    problems = []
    for source in sorted(p for r in ROOMS if r != "tests" for p in (root / r).rglob("*.[ch]")):
        here = room_of(source.relative_to(root))
        for name in INCLUDE.findall(source.read_text()):
            target = target_of(root, source, name)
            if target is None:
                if not name.endswith(".skel.h"):
                    problems.append(f"{source.relative_to(root)}: no file for \"{name}\"")
                continue
            there = room_of(target)
            if there != here and there not in MAY_SEE[here]:
                problems.append(f"{source.relative_to(root)}: {here}/ must not include from {there}/ ({name})")
    return problems


if __name__ == "__main__":
    found = check(pathlib.Path(__file__).resolve().parents[2])
    print("\n".join(found) or "includes: every one goes the right way")
    sys.exit(bool(found))
