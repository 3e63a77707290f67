"""Memory that was freed goes back to the system, in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, whose options these are")

# A second array of the size is what glibc, left to itself, takes from its heap and keeps there.
_KEPT_MB = """
import ctypes
from service.heap import give_back_early

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20

allocate, release = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
allocate.restype, release.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

{call}
before = resident()
for _ in range(2):
    address = allocate(ctypes.c_size_t(20 * 2**20))
    ctypes.memset(address, 1, 20 * 2**20)
    release(address)
print(resident() - before)
"""


def _kept_mb(call: str, **options: str) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", _KEPT_MB.format(call=call)]
    run = subprocess.run(command, env=environment | options, capture_output=True, text=True, check=True)
    return float(run.stdout)


def test_what_was_freed_is_given_back() -> None:
    assert _kept_mb("") > 15, "the C library gives it back by itself"
    assert _kept_mb("give_back_early()") < 5


@pytest.mark.parametrize(("name", "value"), [("MALLOC_ARENA_MAX", "3"), ("GLIBC_TUNABLES", "glibc.malloc.arena_max=3")])
def test_options_of_the_environment_stay(name: str, value: str) -> None:
    assert _kept_mb("give_back_early()", **{name: value}) > 15
