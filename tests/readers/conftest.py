"""One proxy for all tests of a process, one publisher and one reader for each.

A publisher has an address of its own, so that no test meets what the proxy keeps of another one's.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio

from tests.origin import Origin
from tests.readers.harness import TOKEN, Reader, Server, server
from tests.readers.programs import (
    Feedparser,
    Gpodder,
    Lemon24,
    Newsboat,
    Podcastparser,
    Rss2email,
    Sfeed,
)

READERS = (Newsboat, Sfeed, Rss2email, Gpodder, Lemon24, Feedparser, Podcastparser)

_hosts = itertools.count(2)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def proxy_of_readers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A proxy that lets anyone on this machine in."""
    async with server(tmp_path_factory.mktemp("proxy"), fetch_retries=0) as own:
        yield own


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def impatient_proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A proxy that answers at once with what is there."""
    async with server(tmp_path_factory.mktemp("impatient"), limits_respond_within_seconds=0.3) as own:
        yield own


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def closed_proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A proxy that asks for a token."""
    async with server(tmp_path_factory.mktemp("closed"), server_access_token=TOKEN) as own:
        yield own


@pytest_asyncio.fixture(loop_scope="session")
async def origin() -> AsyncIterator[Origin]:
    """A publisher that does what the test tells it."""
    async with Origin(f"127.0.0.{next(_hosts)}") as origin:
        yield origin


Kind = TypeVar("Kind", bound=Reader)


def installed(kind: type[Kind], folder: Path) -> Kind:
    """Return a reader that knows nothing yet; skip the test where it is not installed."""
    if lacking := kind.lacking():
        pytest.skip(lacking)
    home = folder / "reader"
    home.mkdir()
    return kind(home)


@pytest.fixture(params=READERS, ids=[each.name for each in READERS])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    """Each reader, one after the other."""
    kind: type[Reader] = request.param
    return installed(kind, tmp_path)
