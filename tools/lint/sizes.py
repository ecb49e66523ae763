#!/usr/bin/env python3
"""Files stay under 800 lines and functions under 70 (CONTRIBUTING.md). A data table is no function."""
import pathlib
import re
import sys

FILE_MAX, FUNCTION_MAX = 800, 70
ROOMS = ["bpf", "fastpath", "slowpath", "config", "tools", "tests", "bench", "mgmt"]
SCRIPTS = {".py", ".sh"}
OPEN = re.compile(r"^\{\s*$|^[A-Za-z_].*\)\s*\{\s*$")


def functions(lines):
    """(first line, length) of each function: from a brace that opens one at the left margin to its end there."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and OPEN.match(line) and not line.startswith(("struct", "enum", "union", "typedef", "#")):
            start = number
        elif start is not None and line.startswith("}"):
            yield start, number - start + 1
            start = None


def check(root):
    problems = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in {".c", ".h"} | SCRIPTS or not path.is_file() or "corpus" in path.parts:
                continue
            lines = path.read_text(errors="replace").splitlines()
            name = path.relative_to(root)
            if len(lines) > FILE_MAX:
                problems.append(f"{name}: {len(lines)} lines, more than {FILE_MAX}")
            if path.suffix in {".c", ".h"}:
                problems += [f"{name}:{at}: a function of {n} lines, more than {FUNCTION_MAX}" for at, n in functions(lines) if n > FUNCTION_MAX]
    return problems


if __name__ == "__main__":
    found = check(pathlib.Path(__file__).resolve().parents[2])
    print("\n".join(found) or f"sizes: files within {FILE_MAX} lines, functions within {FUNCTION_MAX}")
    sys.exit(bool(found))
