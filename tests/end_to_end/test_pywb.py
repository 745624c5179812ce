"""A feed's history from a real web archive: pywb over WARC files (R33)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.end_to_end.test_mementos import captured, chained
from tests.feeds import an_item, atom, own_ids, publish_chain, rss, texts
from tests.origin import Origin
from tests.pywb_server import Saved, asked, needs_pywb, pywb
from tests.running import Proxy, a_config, running
from tests.web_archive import HASTY, searched

pytestmark = needs_pywb


@asynccontextmanager
async def searching(folder: Path, saved: list[Saved]) -> AsyncIterator[Proxy]:
    """Start the archive, and a proxy without pauses between requests to it."""
    serving = pywb(folder, saved)
    base = await asyncio.to_thread(serving.__enter__)
    try:
        history = {"memento": True, "memento_url": base, "memento_query_hosts": ("127.0.0.1",)}
        async with running(a_config(folder, history=history), archive_turns=HASTY()) as proxy:
            yield proxy
    finally:
        await asyncio.to_thread(serving.__exit__, None, None, None)


async def test_a_rolling_feed_that_is_gone_comes_out_whole(origin: Origin, tmp_path: Path) -> None:
    """R33: ten snapshots of three entries each; other crawled documents at its URL count for nothing."""
    url = origin.url("/feed.rss")
    saved = []
    for number in range(10):
        items = [
            an_item(f"y{n}", n + 1, f"as of {2010 + number}") for n in range(number, max(number - 3, -1), -1)
        ]
        body = rss(*items, updated=number + 1)
        saved.append(Saved(url, 2010 + number, body, content_type="application/rss+xml"))
    saved += [
        Saved(url, 2020, b"<html><body>For sale</body></html>", content_type="text/html"),
        Saved(url, 2021, b"gone", status="404 Not Found"),
        Saved(url, 2022, b"", status="301 Moved Permanently", location=origin.url("/other")),
    ]
    async with searching(tmp_path, saved) as proxy:
        reply = await searched(proxy, url)
        assert own_ids(reply.body) == [f"y{n}" for n in range(9, -1, -1)]
        assert reply.reconstruction.startswith("partial;")
        found = texts(reply.body)
        assert [found[f"y{n}"] for n in (0, 6, 7, 9)] == [
            f"as of {year}" for year in (2012, 2018, 2019, 2019)
        ]
        chain = await chained(proxy, url)
        assert all(each["memento"] is not None for each in chain.values())
        assert chain[url]["memento"]["captured"] == "2019-05-01T12:00:00Z"
        assert captured(chain) >= {"2012", "2019"}
    targets = asked(tmp_path)
    assert len([each for each in targets if "/cdx?" in each]) == 2
    assert len([each for each in targets if "id_/" in each]) == 10 + 1
    assert not [each for each in targets if "20210501" in each or "20220501" in each]


async def test_holes_in_a_chain_are_filled(origin: Origin, tmp_path: Path) -> None:
    """R33: from the newest mementos; the archive's own Link field and the crawled one lead nowhere. Documents
    it lacks stay missing, and a feed it never saw fails."""
    expected = publish_chain(origin, archives=6)
    saved = []
    for number in (2, 4):
        hole = origin.url(f"/archive/{number}")
        items = [an_item(f"e{n}", n) for n in (2 * number, 2 * number - 1)]
        older = f"/archive/{number - 1}"
        early = atom(an_item("early", 0), archive=True, prev_archive=older)
        saved.append(Saved(hole, 2015, early))
        saved.append(Saved(hole, 2019, atom(*items, updated=number, archive=True, prev_archive=older)))
        origin.remove(f"/archive/{number}")
    url = origin.url("/feed")
    async with searching(tmp_path, saved) as proxy:
        reply = await searched(proxy, url)
        assert own_ids(reply.body) == expected
        assert reply.reconstruction == "partial;documents=7;entries=14;missing=2"
        assert captured(await chained(proxy, url)) == {"2019"}
        assert len(asked(tmp_path)) == 4
        origin.publish("/other", atom(an_item("b", 2), prev_archive="/gone"))
        reply = await searched(proxy, origin.url("/other"))
        assert reply.reconstruction == "partial;documents=1;entries=1;missing=1"
        assert (await proxy.get(origin.url("/never"))).status == 404
    assert len(asked(tmp_path)) == 6
