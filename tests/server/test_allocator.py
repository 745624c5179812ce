"""wholefeed.server.allocator: memory of freed documents returns to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from wholefeed.server.allocator import give_large_blocks_back

# Large blocks come and go while a small one stays behind each: those of a heap stay resident.
_SCRIPT = """
import sys
from pathlib import Path
from wholefeed.server.allocator import give_large_blocks_back

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "yes":
    assert give_large_blocks_back({})
bytes(1 << 20)
before, small = resident_bytes(), []
for _ in range(4):
    large = []
    for _ in range(40):
        large.append(bytearray(b"x") * (1 << 20))
        small.append(bytearray(b"y") * 4096)
    del large
print(resident_bytes() - before)
"""


def kept_bytes(*, asked: bool) -> int:
    """Return the resident part of 40 MB after four uses, in its own process."""
    answer = "yes" if asked else "no"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, answer], capture_output=True, text=True, timeout=300, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_large_blocks_go_back_to_the_system() -> None:
    """Most of 40 MB stays resident without the setting, and almost nothing with it."""
    assert kept_bytes(asked=True) < 8 << 20
    assert kept_bytes(asked=False) > 20 << 20


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_what_an_operator_has_set_stays(name: str) -> None:
    """An operator may tune the C library."""
    assert not give_large_blocks_back({name: "1"})
