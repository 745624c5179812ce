"""Row 95 of docs/faults.md: connections that never say the whole of what they want."""

from __future__ import annotations

import sys
from pathlib import Path

import aiohttp
import pytest

from benchmarks.support.flood import LONG_FORM, flooding
from benchmarks.support.usage import peak_bytes
from tests.processes import Served, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

TOKEN = "a-token-for-readers"
FORMS = 300
MOST_BYTES = 64 << 20
"""Of memory for all of them; a mebibyte for each would be five times as much."""


async def logged_in(served: Served) -> int:
    """Send the right token, as a person does; return the status."""
    target = f"http://127.0.0.1:{served.port}/login"
    async with (
        aiohttp.ClientSession() as session,
        session.post(target, data={"token": TOKEN}, allow_redirects=False) as response,
    ):
        return response.status


@pytest.mark.fault("95")
async def test_row_95_forms_without_end_do_not_fill_memory(tmp_path: Path) -> None:
    """Row 95: anybody may send one, from as many addresses as there are."""
    async with serving(tmp_path, server_access_token=TOKEN) as served:
        assert await logged_in(served) == 303
        before = peak_bytes(served.process.pid)
        async with flooding(served.port, LONG_FORM, count=FORMS):
            assert await logged_in(served) == 303
            assert peak_bytes(served.process.pid) - before < MOST_BYTES
