"""Fixtures of the faults: another publisher, with faulty documents."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.origin import Origin


@pytest.fixture
async def struck() -> AsyncIterator[Origin]:
    """Another host than `origin`."""
    async with Origin("127.0.0.2") as struck:
        yield struck
