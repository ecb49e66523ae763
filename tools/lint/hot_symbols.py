#!/usr/bin/env python3
"""What hot code may call: the undefined symbols of every *_hot.o must be defined in another *_hot.o or stand in the list below.
usage: hot_symbols.py OBJECT_FOLDER"""
import pathlib
import subprocess
import sys

ALLOWED = {
    # copying and comparing bytes
    "memcpy", "memmove", "memset", "memcmp", "strlen", "__memcpy_chk", "__memmove_chk", "__memset_chk",
    # failures of our own
    "assert_failed", "__stack_chk_fail", "__chk_fail",
    # pure functions over bytes (fastpath/dns)
    "name_compare", "name_hash", "name_wire_bytes", "name_labels", "name_lower", "name_equal",
    "name_is_at_or_below", "name_suffix_offset",
    # SHA-1's block functions: OpenSSL's low-level ones neither allocate nor lock
    "SHA1_Init", "SHA1_Update", "SHA1_Final",
    # the batch's kick, its wait, its clock
    "sendto", "recvfrom", "recvmmsg", "sendmmsg", "poll", "clock_gettime", "__errno_location", "__poll_chk",
    # quiescent states (liburcu QSBR): a store to the thread's own word, and the futex below if a grace period waits for it
    "urcu_qsbr_quiescent_state", "urcu_qsbr_thread_offline", "urcu_qsbr_thread_online",
    "urcu_qsbr_reader", "urcu_qsbr_gp", "_GLOBAL_OFFSET_TABLE_", "__tls_get_addr",
}
# A grace period may be waiting for this thread: the futex wakes it.
ALLOWED |= {"syscall", "abort", "compat_futex_noasync"}


def symbols(path, flag):
    out = subprocess.run(["nm", flag, str(path)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line.strip()}


def main(folder):
    objects = sorted(pathlib.Path(folder).rglob("*_hot.o"))
    if not objects:
        print(f"hot symbols: no *_hot.o below {folder}")
        return 1
    defined = set().union(*(symbols(o, "--defined-only") for o in objects))
    problems = [f"{o}: hot code calls {name}" for o in objects for name in sorted(symbols(o, "-u") - defined - ALLOWED)]
    print("\n".join(problems) or f"hot symbols: {len(objects)} objects call nothing that may wait or allocate")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
