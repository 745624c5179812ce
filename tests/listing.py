"""Feeds whose history stands in their publisher's pages, without what finds it there.

with looking(found(a_page(url, "a", "b"))):
    async with running(a_config(path, history=LOOKS)) as proxy:
        await proxy.whole(feed_url)
        status = await looked(proxy, feed_url)
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.running import Proxy
from wholefeed.core.listing.finding import Ask, Found, Job, Known, ListedEntry, ListedPage, Looked, Missing
from wholefeed.core.listing.reading import ListPage
from wholefeed.service import listing

LOOKS: Final = {"list": "auto"}
"""Of a configuration that looks: that of tests does not."""
BEGAN: Final = 1_500_000_000.0
"""2017-07-14: before the entries of `tests.feeds`."""
DAY_SECONDS: Final = 86_400.0


def a_page(url: str, *names: str, dated_by: str = "page") -> ListedPage:
    """A page of the site of `url` that lists entries of these names, newest first."""
    entries = tuple(
        ListedEntry(
            link=f"{url.rpartition('/')[0]}/{name}",
            title=f"Listed {name}",
            at=BEGAN - n * DAY_SECONDS,
            dated_by=dated_by,
        )
        for n, name in enumerate(names)
    )
    return ListedPage(url=url, entries=entries)


def found(
    *pages: ListedPage, missing: Sequence[Missing] = (), looked: Sequence[Looked] = (), is_cut: bool = False
) -> Found:
    """What a look has come to."""
    known = Known(first_url=pages[0].url, way="pages") if pages else Known()
    return Found(pages=pages, missing=tuple(missing), looked=tuple(looked), known=known, is_cut=is_cut)


@contextmanager
def looking(what: Found) -> Iterator[None]:
    """Let each look at a publisher's pages come to this at once."""

    def look(_job: Job) -> Generator[Ask, ListPage, Found]:
        yield from ()
        return what

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "look", look)
        yield


async def looked(proxy: Proxy, url: str) -> dict[str, Any]:
    """Wait until the pages of a feed's publisher were looked at; return its status object."""
    async with asyncio.timeout(20):
        while not (status := await proxy.status(url))["listing"]["looked"]:
            await asyncio.sleep(0.02)
    await proxy.settled()
    return status
