"""Imports may be hostile (docs/faults.md part M; rule I1)."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.faults.test_access import guarded, signed
from tests.feeds import an_item, atom, own_ids, rss, texts
from tests.origin import Origin
from tests.running import Proxy, Reply, StartProxy

TOKEN, KEY = "a-token-of-sixteen-characters", "a-key-of-sixteen-characters-and-more"
_ELEMENTS = 1_000_000


async def imported(proxy: Proxy, url: str, body: bytes, **fields: str) -> Reply:
    return await proxy.ask("POST", "/import", params={"url": url}, data=BytesIO(body), headers=fields)


@pytest.mark.fault("128")
@pytest.mark.parametrize(
    ("body", "slug"),
    [
        (b"<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:feed</id>" + b"<a/>" * _ELEMENTS, ""),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'>" + b"<a>" * 100_000, "xml-limit"),
        (b"[" * 100_000, "not-a-feed"),
        (b"<!DOCTYPE feed [<!ENTITY a 'b'>]><feed xmlns='http://www.w3.org/2005/Atom'/>", "dtd-forbidden"),
        (atom(an_item("x", 9), feed_id="urn:another"), "another-feed"),
        (rss(an_item("a", 9)), "format"),
        (b"\0" * 4096, "not-a-feed"),
    ],
    ids=["a million elements", "depth", "depth of JSON", "entities", "another's", "another format", "zeros"],
)
async def test_row_128_a_hostile_document_is_refused(
    proxy: Proxy, origin: Origin, body: bytes, slug: str
) -> None:
    """Row 128: with its reason; nothing of it is stored, and the proxy goes on to answer."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    before = await proxy.status(url)
    reply = await imported(proxy, url, body)
    if slug:
        assert (reply.status, reply.slug) == (422, slug)
    else:  # it has no entry, if it can be read at all: then there is nothing new in it
        assert reply.status in (200, 422)
        assert reply.status == 422 or json.loads(reply.body)["outcome"] == "known"
    assert await proxy.status(url) == before
    assert own_ids((await proxy.get(url)).body) == ["a"]


@pytest.mark.fault("128")
async def test_row_128_a_body_is_bounded_decoded_too(start: StartProxy, origin: Origin) -> None:
    """Row 128: a declared excess is not read at all, a coded body decoded no further than the limit."""
    proxy = await start(limits={"document_bytes": 65536})
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    large = atom(an_item("b", 1), extra=" " * 65536)
    assert (await imported(proxy, url, large)).slug == "too-large"
    assert (
        await imported(proxy, url, gzip.compress(large), **{"Content-Encoding": "gzip"})
    ).slug == "too-large"
    assert (await proxy.status(url))["imported"] is None


@pytest.mark.fault("128")
@pytest.mark.parametrize(
    ("key", "most"), [("documents_per_feed", 2), ("entries_per_feed", 4), ("feed_bytes", 2000)]
)
async def test_row_128_a_feed_grows_no_larger_than_it_may(
    start: StartProxy, origin: Origin, key: str, most: int
) -> None:
    """Row 128, R18: imports count like fetched documents."""
    proxy = await start(limits={key: most})
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    refused: list[str] = []
    for number in range(4):
        reply = await imported(proxy, url, atom(an_item(f"b{number}", 1), an_item(f"c{number}", 1)))
        refused += [] if reply.status == 200 else [reply.slug]
    assert set(refused) == {"limit"}
    status: dict[str, Any] = await proxy.status(url)
    assert status["state"] == "remembered"
    assert {"documents_per_feed": status["documents"], "entries_per_feed": status["entries"],
            "feed_bytes": status["bytes"]}[key] <= most  # fmt: skip


@pytest.mark.fault("129")
async def test_row_129_what_was_kept_takes_nothing_away(proxy: Proxy, origin: Origin) -> None:
    """Row 129, I1: it claims all of the feed's entries, later, fuller, and deletes them too."""
    url = origin.url("/feed")
    at = 'xmlns:at="http://purl.org/atompub/tombstones/1.0"'
    graves = "".join(
        f'<at:deleted-entry {at} ref="urn:{each}" when="2023-12-01T00:00:00Z"/>' for each in "ab"
    )
    origin.publish("/feed", atom(an_item("b", 2, "own"), an_item("a", 1, "own"), prev_archive="/1"))
    origin.publish("/1", atom(an_item("z", 0, "own"), archive=True))
    assert (await proxy.whole(url)).state == "complete"
    forged = [an_item(each, 999, "forged, and much longer than its own") for each in "abzx"]
    kept = atom(*forged, updated=999, complete=True, extra=graves, current="/feed", prev_archive="/2")
    assert (await imported(proxy, url, kept)).status == 200
    for is_full in (False, True):
        reply = await proxy.refreshed(url, full=is_full)
        assert (reply.state, own_ids(reply.body)) == ("complete", ["b", "a", "z"])
        assert set(texts(reply.body).values()) == {"own"}
    origin.publish("/feed", atom(an_item("b", 3, "own")))
    reply = await proxy.refreshed(url)
    assert {name: text for name, text in texts(reply.body).items() if name != "x"} == {
        "b": "own", "a": "own", "z": "own",
    }  # fmt: skip


@pytest.mark.fault("130")
async def test_row_130_no_signature_and_no_other_page_imports(tmp_path: Path, origin: Origin) -> None:
    """Row 130: the access is that of POST /refresh."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    body, mark = atom(an_item("a", 1)), signed(url, KEY)
    token = {"Authorization": f"Bearer {TOKEN}"}
    async with guarded(tmp_path, access_token=TOKEN, signing_keys=(KEY,)) as proxy:
        assert (await proxy.get(url, signed=mark)).status == 200
        for method in ("POST", "DELETE"):
            query = {"url": url, "signed": mark, "name": "a"}
            assert (await proxy.ask(method, "/import", params=query, data=body)).status == 401
            other = {**token, "Origin": "https://elsewhere.test"}
            reply = await proxy.ask(method, "/import", params={"url": url}, data=body, headers=other)
            assert (reply.status, reply.slug) == (403, "cross-origin")
        assert (await imported(proxy, url, body, **token)).status == 200
    (tmp_path / "keys").mkdir()
    async with guarded(tmp_path / "keys", signing_keys=(KEY,)) as proxy:
        reply = await proxy.ask("POST", "/import", params={"url": url, "signed": mark}, data=body)
        assert (reply.status, reply.slug) == (403, "token-required")
