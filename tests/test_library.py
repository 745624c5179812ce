"""`wholefeed.reconstruct`: a feed as an object, without a proxy, and without changes to the process."""

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
import threading
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
from tests.listing import LISTS
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import a_config, running

ROOT = Path(__file__).parent.parent
CONFIG: Mapping[str, Any] = {"fetch": {"allow_networks": ["127.0.0.0/8"], "retries": 0}}


async def the_feed(url: str, **options: Any) -> wholefeed.Feed:
    """Reconstruct a feed of a publisher on loopback."""
    return await wholefeed.areconstruct(url, config=CONFIG, **options)


async def test_a_feed_has_its_whole_history_and_needs_no_store_any_more(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary store is gone when the feed is there. Entries and document have the same order, and the
    document's bytes equal the proxy's except for its own URL."""
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
    """The same entries in the same order, each with its publisher's bytes; dates are aware, and RSS has no
    update date."""
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
    """R7, R8: its copy is an entry like the others."""
    config = {**CONFIG, "freshness": {"minimum_seconds": 0, "default_seconds": 0}}
    url, path = origin.url("/feed"), tmp_path / "kept.db"
    origin.publish("/feed", atom(an_item("a", 1)))
    await wholefeed.areconstruct(url, config=config, store=path)
    origin.publish("/feed", atom(an_item("b", 2)))
    feed = await wholefeed.areconstruct(url, config=config, store=path)
    assert feed.state == "remembered"
    assert [entry.identity.removeprefix("urn:") for entry in feed.entries] == ["b", "a"]
    assert b"text of a" in feed.entries[1].source


async def test_an_entry_is_removed_from_a_kept_store(origin: Origin, tmp_path: Path) -> None:
    """I2: by its identity, also one made from its content."""
    url, path = origin.url("/feed"), tmp_path / "kept.db"
    items = "<item><title>a</title></item><item><title>b</title></item>"
    origin.publish("/feed", f"<rss version='2.0'><channel><title>F</title>{items}</channel></rss>".encode())
    async with wholefeed.open(path, config=CONFIG) as library:
        with pytest.raises(wholefeed.WholefeedError) as caught:
            await library.forget_entry(url, "a")
        assert caught.value.slug == "unknown-feed"
        feed = await library.reconstruct(url)
        await library.forget_entry(url, feed.entries[0].identity)
        with pytest.raises(wholefeed.WholefeedError) as caught:
            await library.forget_entry(url, feed.entries[0].identity)
        assert caught.value.slug == "no-such-entry"
        again = await library.reconstruct(url)
    assert [entry.title for entry in again.entries] == ["b"]


async def test_entries_are_a_sequence(origin: Origin) -> None:
    """Counted from either end, in slices, and beyond the end, as in a list; documents differ in size."""
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
    """A stored fresh feed costs the publisher no request; the database is in the requested place."""
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
    """`loading`, with the entries so far; the persistent store resumes it, and asks nothing twice."""
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
    """A publisher's error status, and an unreadable document."""
    origin.fault("/gone", Status(410))
    origin.publish("/page", b"<!doctype html><html><body>no</body></html>")
    for path, slug in (("/gone", "publisher-status"), ("/page", "not-a-feed")):
        with pytest.raises(wholefeed.WholefeedError) as refused:
            await the_feed(origin.url(path))
        assert refused.value.slug == slug
        assert origin.url(path) in str(refused.value)


async def test_a_store_that_a_proxy_uses_is_refused_with_what_to_do(origin: Origin, tmp_path: Path) -> None:
    """The proxy has exclusive use of it; the message says to ask the proxy instead."""
    config = a_config(tmp_path)
    async with running(config):
        with pytest.raises(wholefeed.WholefeedError, match="in use by another process: stop") as refused:
            await the_feed(origin.url("/feed"), store=config.store.path)
    assert refused.value.slug == "store-unusable"


async def test_a_newer_store_is_refused_and_left_alone(origin: Origin, tmp_path: Path) -> None:
    """This version does not know its schema."""
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
    """Global state of the process that others rely on."""
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
    """In a thread of its own, as in a program without a loop: its loop is not left behind."""
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
    """The database is free again, and usable at once."""
    publish_chain(origin, archives=1)
    with origin.held("/feed") as gate:
        call = asyncio.create_task(the_feed(origin.url("/feed"), store=tmp_path / "kept.db"))
        await asyncio.wait_for(gate.reached(), 20)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert (await the_feed(origin.url("/feed"), store=tmp_path / "kept.db")).state == "complete"


# Sessions


async def test_calls_of_a_session_share_its_store(origin: Origin, tmp_path: Path) -> None:
    """Several at once: the same feed is walked once, another one beside it. Stored documents are not asked
    for again, and the next session finds all."""
    publish_chain(origin, archives=2)
    origin.publish("/other", rss(an_item("a")))
    urls = [origin.url("/feed"), origin.url("/other"), origin.url("/feed")]
    async with wholefeed.open(tmp_path / "kept.db", config=CONFIG) as library:
        first, other, again = await asyncio.gather(*map(library.reconstruct, urls))
        asked = origin.counts()
        assert (asked["/feed"], asked["/archive/1"], asked["/archive/2"]) == (1, 1, 1)
        assert (first.state, len(first.entries), len(other.entries)) == ("complete", 6, 1)
        assert (await library.reconstruct(urls[0])).document() == again.document() == first.document()
    assert origin.counts() == asked
    async with wholefeed.open(tmp_path / "kept.db", config=CONFIG) as library:
        assert list((await library.reconstruct(urls[0])).entries) == list(first.entries)
    assert origin.counts() == asked


async def test_entries_stand_as_in_the_document_where_some_are_remembered(
    origin: Origin, tmp_path: Path
) -> None:
    """R20: those placed by an archive, and those placed by date."""
    url, config, body = origin.url("/feed"), a_config(tmp_path), b""
    async with running(config) as proxy:
        for newest in (4, 9):
            older = [an_item(f"e{n}", n) for n in range(newest - 3, 0, -1)]
            front = [an_item(f"e{n}", n) for n in range(newest, newest - 3, -1) if n != 8]
            origin.publish("/archive", atom(*older, archive=True, current="/feed"))
            origin.publish("/feed", atom(*front, updated=newest, prev_archive="/archive"))
            await proxy.whole(url)
            proxy.clock.advance(90_000)
            body = (await proxy.refreshed(url)).body
    assert ids(body) == ["e9", "e7", "e6", "e5", "e4", "e3", "e2", "e1"]
    async with wholefeed.open(config.store.path, config=CONFIG) as library:
        feed = await library.reconstruct(url)
    assert [entry.title for entry in feed.entries] == ids(body)


async def test_a_session_without_a_store_has_a_temporary_one(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves all calls of the session and is gone at its end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    publish_chain(origin, archives=1)
    async with wholefeed.open(config=CONFIG) as library:
        await library.reconstruct(origin.url("/feed"))
        assert len(list(tmp_path.iterdir())) == 1
        feed = await library.reconstruct(origin.url("/feed"))
        assert origin.counts()["/feed"] == 1
    assert list(tmp_path.iterdir()) == []
    assert [entry.title for entry in feed.entries]


async def test_calls_on_one_kept_store_need_no_session(origin: Origin, tmp_path: Path) -> None:
    """At once, one behind the other while the one before closes, and beside a session."""
    path = tmp_path / "kept.db"
    publish_chain(origin, archives=1)
    for name in "abc":
        origin.publish(f"/{name}", atom(an_item(name), complete=True))
    urls = [origin.url(f"/{name}") for name in ("a", "b", "c", "feed")]
    feeds = await asyncio.gather(*(the_feed(url, store=path) for url in urls))
    assert [len(feed.entries) for feed in feeds] == [1, 1, 1, 4]

    async def calls(delay_turns: int) -> None:
        for _ in range(delay_turns):
            await asyncio.sleep(0)
        for url in urls:
            assert (await the_feed(url, store=path)).state == "complete"

    await asyncio.gather(*map(calls, range(0, 60, 20)))
    (tmp_path / "another-name").symlink_to(path)
    async with wholefeed.open(tmp_path / "another-name", config=CONFIG):
        assert len((await the_feed(urls[0], store=path)).entries) == 1
    assert not (tmp_path / "another-name.lock").exists()


async def test_a_store_that_is_being_closed_is_opened_anew(origin: Origin, tmp_path: Path) -> None:
    """At any time, after the closing has ended: a closing store takes no further calls."""
    path = tmp_path / "kept.db"

    async def leave(is_open: asyncio.Event) -> None:
        async with wholefeed.open(path, config=CONFIG):
            is_open.set()

    for turns in range(40):
        origin.publish(f"/{turns}", atom(an_item(f"{turns}"), complete=True))
        is_open = asyncio.Event()
        leaving = asyncio.create_task(leave(is_open))
        await is_open.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        assert (await the_feed(origin.url(f"/{turns}"), store=path)).state == "complete"
        await leaving


async def test_a_store_is_open_with_one_configuration_at_a_time(origin: Origin, tmp_path: Path) -> None:
    """Else one of two callers would get the other's settings."""
    path, other = tmp_path / "kept.db", {**CONFIG, "history": {"paged": False}}
    origin.publish("/feed", atom(an_item("a"), complete=True))
    async with wholefeed.open(path, config=CONFIG):
        with pytest.raises(wholefeed.WholefeedError, match="with other settings") as refused:
            await wholefeed.areconstruct(origin.url("/feed"), config=other, store=path)
        assert refused.value.slug == "store-unusable"
    assert len((await wholefeed.areconstruct(origin.url("/feed"), config=other, store=path)).entries) == 1


async def test_a_session_and_its_store_are_of_one_event_loop(origin: Origin, tmp_path: Path) -> None:
    """In another loop each error names the expected loop, and work goes on in its own."""
    path = tmp_path / "kept.db"
    origin.publish("/feed", atom(an_item("a"), complete=True))
    async with wholefeed.open(path, config=CONFIG) as library:

        def elsewhere() -> list[str]:
            found = []
            for work in (library.reconstruct(origin.url("/feed")), the_feed(origin.url("/feed"), store=path)):
                with pytest.raises(wholefeed.WholefeedError) as refused:
                    asyncio.run(work)
                found.append(f"{refused.value.slug}: {refused.value}")
            return found

        of_session, of_store = await asyncio.to_thread(elsewhere)
        assert of_session.startswith("bad-request: expected the event loop that the session was opened in")
        assert re.match("store-unusable: .*kept.db is open in another event loop", of_store)
        assert len((await library.reconstruct(origin.url("/feed"))).entries) == 1
    assert len((await asyncio.to_thread(asyncio.run, the_feed(origin.url("/feed"), store=path))).entries) == 1


async def test_a_session_that_has_ended_is_refused(tmp_path: Path) -> None:
    """A RuntimeError, as asyncio's own, and one of ours; an invalid URL is refused before."""
    async with wholefeed.open(tmp_path / "kept.db") as library:
        with pytest.raises(wholefeed.WholefeedError) as refused:
            await library.reconstruct("")
        assert refused.value.slug == "invalid-url"
    for kind in (RuntimeError, wholefeed.WholefeedError):
        with pytest.raises(kind, match="expected a session that is open"):
            await library.reconstruct("http://a.example/")


async def test_a_session_that_ends_ends_its_calls(origin: Origin, tmp_path: Path) -> None:
    """The calls fail with that reason, and the database is free; calls of others on the same store go on."""
    publish_chain(origin, archives=1)
    origin.publish("/other", atom(an_item("a"), complete=True))
    url, path = origin.url("/feed"), tmp_path / "kept.db"
    async with wholefeed.open(path, config=CONFIG) as library:
        with origin.held("/feed") as gate:
            async with wholefeed.open(path, config=CONFIG) as ending:
                call = asyncio.create_task(ending.reconstruct(url))
                await asyncio.wait_for(gate.reached(), 20)
            with pytest.raises(RuntimeError, match=f"expected a session that stays open .*{url}"):
                await call
            assert len((await library.reconstruct(origin.url("/other"))).entries) == 1
    assert (await the_feed(url, store=path)).state == "complete"


async def test_a_walk_goes_on_between_the_calls_of_a_session(origin: Origin, tmp_path: Path) -> None:
    """Also for a caller who does not wait, or leaves; the end of the session stops it, and the next resumes
    it."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    with origin.held("/archive/1") as gate:
        async with wholefeed.open(tmp_path / "kept.db", config=CONFIG) as library:
            leaving = asyncio.create_task(library.reconstruct(url))
            await asyncio.wait_for(gate.reached(), 20)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            feed = await library.reconstruct(url, wait_seconds=0.2)
            assert (feed.state, len(feed.entries)) == ("loading", 6)
            assert origin.counts()["/archive/1"] == 1
    async with wholefeed.open(tmp_path / "kept.db", config=CONFIG) as library:
        feed = await library.reconstruct(url)
    assert (feed.state, len(feed.entries)) == ("complete", 8)
    assert origin.counts()["/archive/3"] == 1


async def test_entries_and_document_are_of_one_moment(origin: Origin, tmp_path: Path) -> None:
    """While other calls find and remember new entries in the same feed."""
    config = {**CONFIG, "freshness": {"minimum_seconds": 0, "default_seconds": 0}, "history": {"list": "off"}}
    async with wholefeed.open(tmp_path / "kept.db", config=config) as library:

        async def calls(first: int) -> None:
            for number in range(first, 100, 8):
                origin.publish("/feed", atom(*(an_item(f"{n}", n) for n in range(number, number + 3))))
                feed = await library.reconstruct(origin.url("/feed"))
                found = [entry.identity.removeprefix("urn:") for entry in feed.entries]
                assert ids(feed.document()) == found

        await asyncio.gather(*map(calls, range(8)))


async def test_a_call_that_fails_leaves_the_session_as_it_was(origin: Origin) -> None:
    """Others go on; the failed feed can be asked for again."""
    origin.fault("/gone", Status(410))
    origin.publish("/feed", atom(an_item("a"), complete=True))
    async with wholefeed.open(config=CONFIG) as library:
        work = [library.reconstruct(origin.url(path)) for path in ("/gone", "/feed", "/gone")]
        one, feed, other = await asyncio.gather(*work, return_exceptions=True)
        assert isinstance(feed, wholefeed.Feed)
        for each in (one, other):
            assert isinstance(each, wholefeed.WholefeedError)
            assert each.slug == "publisher-status"


async def test_a_store_that_cannot_be_opened_is_told_to_all_who_want_it(tmp_path: Path) -> None:
    """After a repair it can be opened."""
    path = tmp_path / "kept.db"
    path.write_text("something else")
    work = [the_feed("http://a.example/", store=path) for _ in range(3)]
    for each in await asyncio.gather(*work, return_exceptions=True):
        assert isinstance(each, wholefeed.WholefeedError)
        assert each.slug == "store-unusable"
    path.unlink()
    async with wholefeed.open(path):
        assert path.is_file()


async def test_settings_that_are_not_allowed_are_refused_where_they_are_given() -> None:
    """Before anything is opened."""
    with pytest.raises(wholefeed.WholefeedError, match="walk_seconds") as refused:
        async with wholefeed.open(config={"limits": {"walk_seconds": -1}}):
            pass
    assert refused.value.slug == "config"


async def test_a_publisher_s_pages_are_looked_at_once_for_all_calls(origin: Origin) -> None:
    """H1: one request at a time to a site for all callers; each gets the result."""
    blog = ArchivePage(origin, posts=40, per_page=15)
    blog.publish()
    config = {**CONFIG, "history": LISTS}
    async with wholefeed.open(config=config) as library:
        feeds = await asyncio.gather(*(library.reconstruct(origin.url("/feed")) for _ in range(3)))
    assert [(feed.state, len(feed.entries)) for feed in feeds] == [("listed", 40)] * 3
    assert [origin.counts()[path] for path in blog.pages] == [1, 1, 1]


async def test_nothing_goes_on_behind_the_end_of_a_session(origin: Origin, tmp_path: Path) -> None:
    """No abandoned look at a publisher's pages either; the database is closed, without its journal."""
    ArchivePage(origin, posts=40).publish()
    before = asyncio.all_tasks()
    with origin.held("/archive/") as gate:
        async with wholefeed.open(tmp_path / "kept.db", config={**CONFIG, "history": LISTS}) as library:
            call = asyncio.create_task(library.reconstruct(origin.url("/feed"), wait_seconds=1.5))
            await asyncio.wait_for(gate.reached(), 20)
            assert (await call).state == "remembered"
        assert asyncio.all_tasks() == before
        assert not (tmp_path / "kept.db-wal").exists()


# Progress


async def test_whoever_wants_is_told_how_far_it_is(origin: Origin, tmp_path: Path) -> None:
    """Progress during the walk, and the final state; in the caller's thread."""
    publish_chain(origin, archives=3)
    told: list[wholefeed.Progress] = []
    with origin.held("/archive/1") as gate:
        call = asyncio.create_task(the_feed(origin.url("/feed"), progress=told.append))
        await asyncio.wait_for(gate.reached(), 20)
        async with asyncio.timeout(300):
            while not told:
                await asyncio.sleep(0.05)
        assert 1 <= told[0].documents <= 3
    feed = await call
    assert (told[-1].documents, told[-1].entries) == (4, len(feed.entries)) == (4, 8)
    assert sorted({each.documents for each in told}) == [each.documents for each in told]
    own: list[int] = []
    await asyncio.to_thread(
        wholefeed.reconstruct,
        origin.url("/feed"),
        config=CONFIG,
        progress=lambda _: own.append(threading.get_ident()),
    )
    assert own
    assert threading.get_ident() not in own


async def test_what_the_callback_raises_ends_the_call(origin: Origin) -> None:
    """The session goes on."""
    publish_chain(origin, archives=1)

    def stop(_: wholefeed.Progress) -> None:
        raise LookupError("enough")

    async with wholefeed.open(config=CONFIG) as library:
        with origin.held("/archive/1"), pytest.raises(LookupError, match="enough"):
            await library.reconstruct(origin.url("/feed"), progress=stop)
        assert (await library.reconstruct(origin.url("/feed"))).state == "complete"


# The package


def loaded(script: str) -> set[str]:
    """The package's modules, and some heavy ones, loaded by a fresh interpreter after a script."""
    watched = ("wholefeed", "aiohttp", "structlog")
    told = f"import sys; print(*(name for name in sys.modules if name.partition('.')[0] in {watched}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\n{told}"], capture_output=True, text=True, timeout=300, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing() -> None:
    """Each part loads no other; an unknown name fails as in Python."""
    assert loaded("import wholefeed; wholefeed.__version__; dir(wholefeed)") == {"wholefeed"}
    core = loaded("import wholefeed.core.merge, wholefeed.core")
    assert {name for name in core if not name.startswith("wholefeed.core")} == {"wholefeed"}
    assert "aiohttp" not in loaded("import wholefeed; wholefeed.WholefeedError")
    assert "aiohttp" in loaded("import wholefeed; wholefeed.reconstruct")
    assert {*wholefeed.__all__} <= {*dir(wholefeed)}
    with pytest.raises(AttributeError, match="module 'wholefeed' has no attribute 'refresh'"):
        getattr(wholefeed, "refresh")  # noqa: B009 - mypy knows that there is none


def test_type_checkers_are_told_the_same() -> None:
    """The stub has every public name, from the same home, and the signatures of functions and methods."""
    stub = ast.parse((ROOT / "proxy" / "wholefeed" / "__init__.pyi").read_text("utf-8"))
    imported = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wholefeed")
        for alias in node.names
    }
    told, source = signatures(stub), signatures(ast.parse(inspect.getsource(wholefeed.library)))
    classes = {name.partition(".")[0] for name in told}
    assert {*imported, *classes} == {*wholefeed.__all__}
    for name, module in imported.items():
        assert name is not None
        assert getattr(wholefeed, name).__module__ == module
    assert told == {name: source[name] for name in told}
    assert {name for name in source if name.startswith("Library.")} - told.keys() == {"Library.on"}


def signatures(module: ast.Module) -> dict[str, tuple[type[ast.AST], str]]:
    """Signatures of the functions and of the classes' public methods."""
    bodies = {"": module.body} | {f"{n.name}.": n.body for n in module.body if isinstance(n, ast.ClassDef)}
    return {
        f"{within}{node.name}": (type(node), ast.unparse(node.args))
        for within, body in bodies.items()
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    }


PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(PRINTED,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ROUTED = """
import wholefeed.library
plain = wholefeed.library.config_of
wholefeed.library.config_of = lambda given: plain({**given, "fetch": {"allow_networks": ["127.0.0.0/8"]}})
"""
"""Before the blocks that ask example.org: here it is on loopback, which is refused otherwise."""


@pytest.mark.parametrize(
    ("number", "prints"),
    [
        (0, r"(2023-11-1\d \d\d:\d\d:20\+00:00 [ab] http://site\.test/[ab]\n){2}"),
        (1, "A feed remembered 2\nA feed remembered 2\n"),
        (2, "A feed 2\n"),
        (3, r"(\d+ documents, \d+ entries, (\d+|\?) to come\n)+"),
        (4, re.escape(PRINTED)),
    ],
)
async def test_what_the_page_shows_runs(origin: Origin, tmp_path: Path, number: int, prints: str) -> None:
    """docs/library.md: each block unchanged, in an empty folder."""
    origin.publish("/feed.atom", atom(an_item("b", 2), an_item("a", 1)))
    assert len(BLOCKS) == 5
    block = re.sub(r"https://example\.(org|net)(?=/feed)", origin.url("").rstrip("/"), BLOCKS[number])
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", "-c", block if block == BLOCKS[number] else ROUTED + block],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert re.fullmatch(prints, done.stdout)
    kept = {"feeds.db", "feeds.db.lock"} if number == 1 else set()
    assert {each.name for each in tmp_path.iterdir()} == kept
