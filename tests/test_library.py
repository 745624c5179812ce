"""`wholefeed.reconstruct`: a feed as an object, without a proxy, and nothing of the process changed."""

from __future__ import annotations

import ast
import asyncio
import inspect
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

import wholefeed
import wholefeed.library
from tests.answers import Status
from tests.feeds import BASE_AT, an_item, atom, ids, json_feed, publish_chain, rdf, rss
from tests.origin import Origin
from tests.running import a_config, running

ROOT = Path(__file__).parent.parent
CONFIG: Mapping[str, Any] = {"fetch": {"allow_networks": ["127.0.0.0/8"], "retries": 0}}


async def the_feed(url: str, **options: Any) -> wholefeed.Feed:
    """Reconstruct a feed of a publisher on loopback."""
    return await wholefeed.areconstruct(url, config=CONFIG, **options)


async def test_a_feed_has_its_whole_history_and_needs_no_store_any_more(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary store is gone when the feed is there; entries and document are in the same order, and the
    document's bytes are the proxy's but for the URL that each gives as its own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    publish_chain(origin, archives=2)
    feed = await the_feed(origin.url("/feed"))
    document = feed.document()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert (feed.url, feed.state, feed.is_stale, feed.missing) == (
        origin.url("/feed"), wholefeed.State.COMPLETE, False, (),
    )  # fmt: skip
    assert [entry.identity.removeprefix("urn:") for entry in feed.entries] == ids(document)
    assert len(feed.entries) == 6
    async with running(a_config(tmp_path)) as proxy:
        served = (await proxy.whole(origin.url("/feed"))).body
    assert ids(document) == ids(served)
    assert document[document.index(b"<entry") :] == served[served.index(b"<entry") :]


async def test_a_feed_says_its_title_and_links(origin: Origin) -> None:
    """The channel's own link is its site, in every format."""
    links = '<title>Of\n all</title><link href="/" type="text/HTML; a=b"/>'
    body = f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id>{links}</feed>'
    origin.publish("/feed", body.encode())
    feed = await the_feed(origin.url("/feed"))
    assert feed.title == "Of all"
    assert wholefeed.Link(relation="alternate", url=origin.url("/"), media_type="text/html") in feed.links
    channel = "<channel><title>R</title><link>http://a.example/</link></channel>"
    origin.publish("/rss", f'<rss version="2.0">{channel}</rss>'.encode())
    feed = await the_feed(origin.url("/rss"))
    assert (feed.title, [link.url for link in feed.links]) == ("R", ["http://a.example/"])
    assert len(feed.entries) == 0


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed])
async def test_entries_and_document_agree_in_every_format(origin: Origin, make: Any) -> None:
    """The same entries in the same order, each with the very bytes of its publisher; dates are aware, and RSS
    has none of an update."""
    body = make(an_item("a", 3), an_item("b", 5), complete=True)
    origin.publish("/feed", body)
    feed = await the_feed(origin.url("/feed"))
    document = feed.document()
    places = [document.index(f"text of {name}".encode()) for name in ("b", "a")]
    assert places == sorted(places)
    for name, entry in zip("ba", feed.entries, strict=True):
        assert f"text of {name}".encode() in entry.source
        assert entry.source in body
    assert [entry.identity.removeprefix("urn:") for entry in feed.entries] == ["b", "a"]
    updated = None if make is rss else datetime.fromtimestamp(BASE_AT, UTC) + timedelta(hours=3)
    assert (feed.entries[1].updated, feed.entries[1].published is None) == (updated, make is not rss)


async def test_what_has_left_the_feed_is_remembered_in_a_kept_store(origin: Origin, tmp_path: Path) -> None:
    """R7, R8: a copy of it is an entry like the others."""
    config = {**CONFIG, "freshness": {"minimum_seconds": 0, "default_seconds": 0}}
    url, path = origin.url("/feed"), tmp_path / "kept.db"
    origin.publish("/feed", atom(an_item("a", 1)))
    await wholefeed.areconstruct(url, config=config, store=path)
    origin.publish("/feed", atom(an_item("b", 2)))
    feed = await wholefeed.areconstruct(url, config=config, store=path)
    assert feed.state == "remembered"
    assert [entry.identity.removeprefix("urn:") for entry in feed.entries] == ["b", "a"]
    assert b"text of a" in feed.entries[1].source


async def test_entries_are_a_sequence(origin: Origin) -> None:
    """Counted from either end, in slices, and beyond the end: as of a list; documents that differ in size."""
    publish_chain(origin, archives=3, entries=3)
    entries = (await the_feed(origin.url("/feed"))).entries
    whole = list(entries)
    assert len(whole) == len(entries) == 12
    for index in range(-12, 12):
        assert entries[index] == whole[index]
    assert entries[2:9:3] == whole[2:9:3]
    assert entries[::-1] == whole[::-1]
    assert whole[5] in entries
    for index in (12, -13):
        with pytest.raises(IndexError, match="expected an entry from 0 to 11"):
            entries[index]


async def test_what_is_missing_is_told_and_no_error(origin: Origin) -> None:
    """A feed that lacks a document is partial."""
    publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    before = datetime.now(UTC)
    feed = await the_feed(origin.url("/feed"))
    assert feed.state == "partial"
    (missing,) = feed.missing
    assert (missing.url, missing.reason, missing.status, missing.attempts) == (
        origin.url("/archive/1"), "publisher-status", 404, 1,
    )  # fmt: skip
    assert before < missing.next_attempt < before + timedelta(days=1)


async def test_a_kept_store_makes_the_second_call_free(origin: Origin, tmp_path: Path) -> None:
    """What is stored and fresh costs the publisher no request; the database is where it was asked for."""
    publish_chain(origin, archives=2)
    path = tmp_path / "kept.db"
    first = await the_feed(origin.url("/feed"), store=path)
    asked = len(origin.requests)
    again = await the_feed(origin.url("/feed"), store=str(path))
    assert path.is_file()
    assert len(origin.requests) == asked
    assert list(again.entries) == list(first.entries)
    assert again.document() == first.document()


async def test_a_walk_that_is_not_waited_for_goes_on_with_the_next_call(
    origin: Origin, tmp_path: Path
) -> None:
    """`loading`, with what is there; the kept store takes it up, and asks nothing twice."""
    publish_chain(origin, archives=3)
    with origin.held("/archive/1") as gate:
        call = asyncio.create_task(
            the_feed(origin.url("/feed"), store=tmp_path / "kept.db", wait_seconds=2.0)
        )
        await asyncio.wait_for(gate.reached(), 20)
        feed = await call
    assert feed.state == "loading"
    assert {*ids(feed.document())} <= {entry.identity.removeprefix("urn:") for entry in feed.entries}
    assert len(feed.entries) == 6
    feed = await the_feed(origin.url("/feed"), store=tmp_path / "kept.db")
    assert (feed.state, len(feed.entries)) == ("complete", 8)
    assert [request.path for request in origin.requests].count("/archive/3") == 1


async def test_a_publisher_that_fails_leaves_what_is_stored(origin: Origin, tmp_path: Path) -> None:
    """Stale, and no error."""
    origin.publish("/feed", atom(an_item("a"), complete=True), headers=[("Cache-Control", "max-age=0")])
    config = {**CONFIG, "freshness": {"minimum_seconds": 0}}
    url, path = origin.url("/feed"), tmp_path / "kept.db"
    assert not (await wholefeed.areconstruct(url, config=config, store=path)).is_stale
    origin.fault("/feed", Status(500))
    feed = await wholefeed.areconstruct(url, config=config, store=path)
    assert (feed.is_stale, len(feed.entries)) == (True, 1)


async def test_settings_come_from_the_mapping_or_a_config_alone(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the environment nor config.toml in the folder counts; loopback is refused without a setting."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text('[fetch]\nallow_networks = ["127.0.0.0/8"]')
    monkeypatch.setenv("WHOLEFEED_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
    origin.publish("/feed", atom(an_item("a"), complete=True))
    with pytest.raises(wholefeed.WholefeedError) as refused:
        await wholefeed.areconstruct(origin.url("/feed"))
    assert refused.value.slug == "destination-forbidden"
    assert len((await wholefeed.areconstruct(origin.url("/feed"), config=a_config(tmp_path))).entries) == 1
    assert not (tmp_path / "wholefeed.db").exists()


@pytest.mark.parametrize(
    ("url", "slug"),
    [("", "invalid-url"), ("not a url", "invalid-url"), ("http://a:b@c/", "userinfo-not-allowed")],
)
async def test_what_is_no_url_is_refused(url: str, slug: str) -> None:
    """Before anything is opened."""
    with pytest.raises(wholefeed.WholefeedError) as refused:
        await the_feed(url)
    assert refused.value.slug == slug


async def test_what_is_no_feed_is_an_error_with_its_slug(origin: Origin) -> None:
    """What the publisher answers, and what cannot be read."""
    origin.fault("/gone", Status(410))
    origin.publish("/page", b"<!doctype html><html><body>no</body></html>")
    for path, slug in (("/gone", "publisher-status"), ("/page", "not-a-feed")):
        with pytest.raises(wholefeed.WholefeedError) as refused:
            await the_feed(origin.url(path))
        assert refused.value.slug == slug
        assert origin.url(path) in str(refused.value)


async def test_a_store_that_a_proxy_uses_is_refused_with_what_to_do(origin: Origin, tmp_path: Path) -> None:
    """The proxy has it for itself; it can be asked instead."""
    config = a_config(tmp_path)
    async with running(config):
        with pytest.raises(wholefeed.WholefeedError, match="in use by another process: stop") as refused:
            await the_feed(origin.url("/feed"), store=config.store.path)
    assert refused.value.slug == "store-unusable"


async def test_a_newer_store_is_refused_and_left_alone(origin: Origin, tmp_path: Path) -> None:
    """Its schema is one that this version does not know."""
    path = tmp_path / "kept.db"
    origin.publish("/feed", atom(an_item("a"), complete=True))
    await the_feed(origin.url("/feed"), store=path)
    with path.open("r+b") as file:
        file.seek(60)
        file.write((9999).to_bytes(4))
    content = path.read_bytes()
    with pytest.raises(wholefeed.WholefeedError, match=r"newer than this program's \d+: update wholefeed"):
        await the_feed(origin.url("/feed"), store=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("path", ["missing/kept.db", "file/kept.db", "."])
async def test_a_store_that_cannot_be_made_is_refused(tmp_path: Path, path: str) -> None:
    """No folder, a file in its place, a folder where the file should be."""
    (tmp_path / "file").touch()
    with pytest.raises(wholefeed.WholefeedError, match=r"kept\.db|Is a directory") as refused:
        await the_feed("http://a.example/", store=tmp_path / path)
    assert refused.value.slug == "store-unusable"


async def test_reconstruct_in_a_running_loop_names_the_other_function() -> None:
    """A RuntimeError, as asyncio's own, and one of ours."""
    for kind in (RuntimeError, wholefeed.WholefeedError):
        with pytest.raises(kind, match=r"await wholefeed\.areconstruct"):
            wholefeed.reconstruct("http://a.example/")


def process_state() -> dict[str, object]:
    """What of the process others rely on."""
    umask = os.umask(0)
    os.umask(umask)
    return {
        "switch": sys.getswitchinterval(),
        "signals": {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)},
        "umask": umask,
        "structlog": structlog.get_config() | {"is_configured": structlog.is_configured()},
        "logging": (logging.root.handlers[:], logging.root.level),
        "hook": sys.excepthook,
    }


async def test_it_prints_nothing_and_changes_nothing(
    origin: Origin, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Run in a thread of its own as in a program without a loop: the loop that it made is not left behind."""
    publish_chain(origin, archives=1)
    before = process_state()

    def work() -> wholefeed.Feed:
        own = asyncio.new_event_loop()
        asyncio.set_event_loop(own)
        feed = wholefeed.reconstruct(origin.url("/feed"), config=CONFIG)
        assert asyncio.get_event_loop() is own
        own.close()
        return feed

    feed = await asyncio.to_thread(work)
    assert feed.state == "complete"
    assert process_state() == before
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


async def test_a_caller_that_has_configured_structlog_gets_the_events(origin: Origin) -> None:
    """They go where its own go."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    with structlog.testing.capture_logs() as logs:
        await the_feed(origin.url("/feed"))
    assert "document.fetched" in {line["event"] for line in logs}


async def test_cancelling_closes_what_was_opened(origin: Origin, tmp_path: Path) -> None:
    """The database is free again, and can be used at once."""
    publish_chain(origin, archives=1)
    with origin.held("/feed") as gate:
        call = asyncio.create_task(the_feed(origin.url("/feed"), store=tmp_path / "kept.db"))
        await asyncio.wait_for(gate.reached(), 20)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (await the_feed(origin.url("/feed"), store=tmp_path / "kept.db")).state == "complete"


# The package


def loaded(script: str) -> set[str]:
    """The modules of the package, and some heavy ones, that a fresh interpreter has after a script."""
    watched = ("wholefeed", "aiohttp", "structlog")
    told = f"import sys; print(*(name for name in sys.modules if name.partition('.')[0] in {watched}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\n{told}"], capture_output=True, text=True, timeout=30, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing() -> None:
    """Whoever wants one part of it loads no other; a name that is none is refused as Python does it."""
    assert loaded("import wholefeed; wholefeed.__version__; dir(wholefeed)") == {"wholefeed"}
    core = loaded("import wholefeed.core.merge, wholefeed.core")
    assert {name for name in core if not name.startswith("wholefeed.core")} == {"wholefeed"}
    assert "aiohttp" not in loaded("import wholefeed; wholefeed.WholefeedError")
    assert "aiohttp" in loaded("import wholefeed; wholefeed.reconstruct")
    assert {*wholefeed.__all__} <= {*dir(wholefeed)}
    with pytest.raises(AttributeError, match="module 'wholefeed' has no attribute 'refresh'"):
        getattr(wholefeed, "refresh")  # noqa: B009 - mypy knows that there is none


def test_type_checkers_are_told_the_same() -> None:
    """The stub has every public name, from the same home, and the signatures of the functions."""
    stub = ast.parse((ROOT / "proxy" / "wholefeed" / "__init__.pyi").read_text("utf-8"))
    imported = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wholefeed")
        for alias in node.names
    }
    functions = {
        node.name: node for node in stub.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {*imported, *functions} == {*wholefeed.__all__}
    for name, module in imported.items():
        assert name is not None
        assert getattr(wholefeed, name).__module__ == module
    source = ast.parse(inspect.getsource(wholefeed.library))
    defined = {n.name: n for n in source.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    for name, node in functions.items():
        assert type(node) is type(defined[name])
        assert ast.unparse(node.args) == ast.unparse(defined[name].args)


def test_the_example_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    """docs/library.md, as it stands, in a folder where nothing else is."""
    page = (ROOT / "docs" / "library.md").read_text("utf-8").partition("## An example that runs")[2]
    example, expected = re.findall(r"^```(?:python|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (expected, "")
    assert list(tmp_path.iterdir()) == []
