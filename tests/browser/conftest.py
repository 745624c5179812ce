"""A proxy with a token and some feeds, and their publisher."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.browser.visiting import TOKEN, started
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, a_config, running

LONG = "/a_path_without_a_place_to_break_in_it_whatever_the_width_of_the_window_is.atom"
SITE = f"""<html><head><title>A site</title>
<link rel=alternate type="application/rss+xml" title="All articles" href="/rss">
<link rel=alternate type="application/atom+xml" title="All articles, Atom" href="/chosen">
<link rel=alternate type="application/rss+xml" title="Comments" href="{LONG}">
</head>"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Visits run once more after a crash of the browser, and only then."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=["TargetClosedError", "Page crashed"]))


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def browser() -> AsyncIterator[None]:
    """The browser of all tests of a process; the other fixtures are in its event loop."""
    async with started():
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def origin() -> AsyncIterator[Origin]:
    """A publisher under the test's control."""
    async with Origin() as origin:
        yield origin


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(tmp_path: Path) -> AsyncIterator[Proxy]:
    async with running(a_config(tmp_path)) as proxy:
        yield proxy


@pytest_asyncio.fixture(loop_scope="session")
async def filled(tmp_path: Path, origin: Origin) -> AsyncIterator[Proxy]:
    """Feeds in several states, and a site with several to choose from."""
    publish_chain(origin, archives=2)
    origin.publish("/partial", atom(an_item("a"), prev_archive="/gone", feed_id="urn:partial"))
    origin.publish(LONG, atom(an_item("a"), feed_id="urn:remembered"))
    origin.publish("/chosen", atom(an_item("a"), feed_id="urn:chosen"))
    origin.publish("/site", SITE, content_type="text/html")
    origin.publish("/nothing", "<html>no feed", content_type="text/html")
    login = {"Authorization": f"Bearer {TOKEN}"}
    async with running(a_config(tmp_path, server={"access_token": TOKEN})) as proxy:
        for path in ("/feed", "/partial", LONG):
            await proxy.get(origin.url(path), headers=login)
        await proxy.settled()
        yield proxy
