"""Refreshes, and the entries that stay through all of them (rules R8, R10, R13, R15, R17, R18, R23, R24)."""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom, ids, own_ids, publish_chain, rdf, rss, texts
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Clock, Proxy, Reply, a_config, running
from tests.sqlite_faults import rows

NEWER_PARSER = 10_000


def read_by(proxy: Proxy) -> set[int]:
    return {version for (version,) in rows(proxy.database, "SELECT parser_version FROM document")}


async def test_a_new_archive_in_front_costs_only_itself(proxy: Proxy, origin: Origin) -> None:
    """R13, R14: the newest archive is fetched once more when it stops being the newest, then never."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.forget_requests()

    expected = publish_chain(origin, archives=4)
    proxy.clock.advance(3600)
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert origin.counts() == {"/feed": 1, "/archive/4": 1, "/archive/3": 1}

    origin.forget_requests()
    expected = publish_chain(origin, archives=5)
    proxy.clock.advance(90_000)
    reply = await proxy.whole(url)
    assert ids(reply.body) == expected
    assert origin.counts() == {"/feed": 1, "/archive/5": 1, "/archive/4": 1}


@pytest.mark.fault("52")
async def test_an_archive_that_still_grows_is_seen(proxy: Proxy, origin: Origin) -> None:
    """R13; docs/faults.md row 52: the new body replaces the old one."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/1"))
    origin.publish("/1", atom(an_item("a", 1), archive=True))
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("d", 4), prev_archive="/1"))
    origin.publish("/1", atom(an_item("b", 2), an_item("a", 1), archive=True))
    proxy.clock.advance(90_000)
    reply = await proxy.whole(url)
    assert ids(reply.body) == ["d", "c", "b", "a"]
    assert "ArchiveChanged" in str((await proxy.status(url))["notes"])


@pytest.mark.parametrize(("marked", "asked"), [(False, {"/feed", "/2", "/1"}), (True, {"/feed", "/2"})])
async def test_an_unmarked_archive_that_must_not_be_cached_is_looked_at_again(
    proxy: Proxy, origin: Origin, marked: bool, asked: set[str]
) -> None:
    """R13: it never settles; fh:archive says that it may."""
    url = origin.url("/feed")

    def publish(newest: str) -> None:
        origin.publish("/feed", atom(an_item(newest, 4), prev_archive="/2"))
        for path, item, older in (("/2", an_item("b", 2), "/1"), ("/1", an_item("a", 1), None)):
            body = atom(item, archive=marked, prev_archive=older)
            origin.publish(path, body, headers=[("Cache-Control", "no-store")])

    publish("c")
    await proxy.whole(url)
    for newest in ("d", "e"):
        publish(newest)
        origin.forget_requests()
        proxy.clock.advance(90_000)
        await proxy.whole(url)
        assert set(origin.counts()) == asked


async def test_what_a_304_says_of_an_archive_s_caching_counts(proxy: Proxy, origin: Origin) -> None:
    """R13; RFC 9111, 3.2: fields absent from the 304 are unchanged."""
    url = origin.url("/feed")

    def publish(newest: str, *said: tuple[str, str]) -> None:
        origin.publish("/feed", atom(an_item(newest, 4), prev_archive="/2"))
        for path, item, older in (("/2", an_item("b", 2), "/1"), ("/1", an_item("a", 1), None)):
            origin.publish(path, atom(item, prev_archive=older), etag=f'"{path}"', headers=list(said))

    publish("c", ("Cache-Control", "no-cache"))
    await proxy.whole(url)
    for newest, said, asked in (
        ("d", [], {"/feed", "/2", "/1"}),
        ("e", [("Cache-Control", "max-age=60")], {"/feed", "/2", "/1"}),
        ("f", [], {"/feed", "/2"}),
    ):
        publish(newest, *said)
        origin.forget_requests()
        proxy.clock.advance(90_000)
        await proxy.whole(url)
        assert set(origin.counts()) == asked


@pytest.mark.fault("53")
async def test_a_settled_archive_is_not_looked_at_again(proxy: Proxy, origin: Origin) -> None:
    """R13; docs/faults.md row 53: lost at the publisher, it still serves."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.remove("/archive/1")
    origin.remove("/archive/2")
    proxy.clock.advance(90_000)
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("complete", expected)


@pytest.mark.fault("53")
async def test_an_archive_that_is_gone_is_asked_for_once_a_day(proxy: Proxy, origin: Origin) -> None:
    """R13; docs/faults.md row 53: the newest one, and one followed by another, until it is back."""
    url = origin.url("/feed")

    async def asked_in_two_days() -> int:
        origin.forget_requests()
        for _ in range(24):
            proxy.clock.advance(7200)
            assert (await proxy.whole(url)).state == "complete"
            await proxy.settled()
        return len(origin.requests_for("/2"))

    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/2"))
    origin.publish("/2", atom(an_item("b", 2), archive=True, prev_archive="/1"))
    origin.publish("/1", atom(an_item("a", 1), archive=True))
    await proxy.whole(url)
    proxy.clock.advance(90_000)
    origin.publish("/feed", atom(an_item("d", 4), prev_archive="/2"))
    origin.remove("/2")
    assert await asked_in_two_days() == 1
    origin.publish("/feed", atom(an_item("e", 5), prev_archive="/3"))
    origin.publish("/3", atom(an_item("d", 4), an_item("c", 3), archive=True, prev_archive="/2"))
    assert await asked_in_two_days() == 2
    origin.publish("/2", atom(an_item("bb", 2), an_item("b", 2), archive=True, prev_archive="/1"))
    assert await asked_in_two_days() == 1
    assert await asked_in_two_days() == 0
    assert ids((await proxy.get(url)).body) == ["e", "d", "c", "bb", "b", "a"]


async def test_a_correction_in_the_subscription_document_replaces_the_archived_entry(
    proxy: Proxy, origin: Origin
) -> None:
    """R10; RFC 5005, 4.1 and 4.2: and it stays when it has left the subscription document (R8)."""
    url = origin.url("/feed")
    origin.publish("/1", atom(an_item("a", 1, "wrong"), an_item("z", 0), archive=True))
    origin.publish("/feed", atom(an_item("a", 5, "right"), updated=5, prev_archive="/1"))
    reply = await proxy.whole(url)
    assert ids(reply.body) == ["a", "z"]
    assert texts(reply.body)["a"] == "right"

    origin.publish("/feed", atom(an_item("b", 6), updated=6, prev_archive="/1"))
    reply = await proxy.refreshed(url)
    assert ids(reply.body) == ["b", "a", "z"]
    assert texts(reply.body)["a"] == "right"


async def test_an_entry_that_moved_into_an_archive_stands_once(proxy: Proxy, origin: Origin) -> None:
    """R8, R10: no entry is lost or doubled on its way there from the subscription document."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1), updated=2))
    await proxy.whole(url)
    origin.publish("/1", atom(an_item("a", 1), updated=1, archive=True))
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2), updated=3, prev_archive="/1"))
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(ids(reply.body))) == ("complete", ["a", "b", "c"])


async def test_detached_documents_come_back_without_a_fetch(proxy: Proxy, origin: Origin) -> None:
    """R15."""
    url = origin.url("/feed")
    expected = publish_chain(origin, archives=2)
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("x"), complete=True))
    assert ids((await proxy.refreshed(url)).body) == ["x"]
    origin.forget_requests()
    publish_chain(origin, archives=2)
    reply = await proxy.refreshed(url)
    assert reply.state == "complete"
    assert [name for name in ids(reply.body) if name != "x"] == expected
    assert "/archive/1" not in origin.counts()


async def test_a_link_that_cannot_be_followed_ends_it_partial(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 16: and stays so while the subscription document is unchanged."""
    origin.publish("/feed", atom(an_item("a", 1), prev_archive="ftp://o.test/1"), etag='"1"')
    url = origin.url("/feed")
    assert (await proxy.whole(url)).state == "partial"
    assert (await proxy.refreshed(url)).state == "partial"
    (missing,) = (await proxy.status(url))["missing"]
    assert missing["reason"] == "bad-link"


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        ({"documents_per_feed": 3}, "limits.documents_per_feed"),
        ({"entries_per_feed": 5}, "limits.entries_per_feed"),
        ({"feed_bytes": 2000}, "limits.feed_bytes"),
    ],
)
async def test_a_limit_ends_the_walk_partial_never_with_an_error(
    tmp_path: Path, origin: Origin, limits: dict[str, int], key: str
) -> None:
    """R18."""
    publish_chain(origin, archives=9)
    url = origin.url("/feed")
    async with running(a_config(tmp_path, limits=limits)) as proxy:
        reply = await proxy.whole(url)
        assert (reply.status, reply.state) == (200, "partial")
        status = await proxy.status(url)
        assert [missing["reason"] for missing in status["missing"]] == ["limit"]
        assert key in str(status["notes"])


async def test_a_walk_takes_no_longer_than_it_may(tmp_path: Path, origin: Origin) -> None:
    """R18: documents received by then stay."""
    publish_chain(origin, archives=3)
    async with running(a_config(tmp_path, limits={"walk_seconds": 1})) as proxy:
        with origin.held("/archive/2"):
            reply = await proxy.whole(origin.url("/feed"))
        assert (reply.state, ids(reply.body)[1:]) == ("partial", ["e8", "e7", "e6", "e5"])


async def test_a_newer_parser_reads_the_stored_bodies_again(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/design.md#the-store: without a second fetch, while the old segments serve."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    first = await proxy.whole(url)
    origin.forget_requests()
    set_constant(monkeypatch, "PARSER_VERSION", NEWER_PARSER)
    reply = await proxy.refreshed(url)
    assert (ids(reply.body), reply.headers["ETag"]) == (expected, first.headers["ETag"])
    assert set(origin.counts()) == {"/feed"}
    assert read_by(proxy) == {NEWER_PARSER}
    sent = rows(proxy.database, "SELECT DISTINCT parser_version FROM segment WHERE position IS NOT NULL")
    assert sent == [(NEWER_PARSER,)]


async def test_a_newer_parser_reads_them_again_while_the_publisher_has_news(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/design.md#the-store: a check made when the new document was stored no longer holds."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("b", 2)))
    assert ids((await proxy.refreshed(url)).body) == ["b", "a"]
    set_constant(monkeypatch, "PARSER_VERSION", NEWER_PARSER)
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2)))
    origin.forget_requests()
    assert ids((await proxy.refreshed(url)).body) == ["c", "b", "a"]
    await proxy.settled()
    assert origin.counts() == {"/feed": 1}, "a refresh that fails is begun again"
    assert rows(proxy.database, "SELECT revision - published_revision FROM feed") == [(0,)]
    assert read_by(proxy) == {NEWER_PARSER}


async def test_entries_without_an_author_follow_the_heads_they_stand_under(
    proxy: Proxy, origin: Origin
) -> None:
    """R22: an archive's authors go into its entries if the subscription document's differ."""
    url = origin.url("/feed")
    old = atom(an_item("a", 1), archive=True)
    new = atom(an_item("b", 2), prev_archive="/1")
    origin.publish("/1", old)
    origin.publish("/feed", new)
    assert (await proxy.whole(url)).body.count(b"<name>Ann</name>") == 1
    origin.publish("/feed", new.replace(b"Ann", b"Bea"))
    body = (await proxy.refreshed(url)).body
    assert (body.count(b"<name>Ann</name>"), body.count(b"<name>Bea</name>")) == (1, 1)


async def test_a_link_field_of_a_304_is_read(proxy: Proxy, origin: Origin) -> None:
    """R2, R12; RFC 9111, 3.2 and 4.3.4: it replaces the field of the stored document."""
    body, url = atom(an_item("new", 9)), origin.url("/feed")
    origin.publish("/feed", body, etag='"1"')
    assert (await proxy.whole(url)).state == "remembered"
    origin.publish("/old", atom(an_item("old", 1), archive=True))
    for _ in range(2):
        origin.publish("/feed", body, etag='"1"', headers=[("Link", '</old>; rel="prev-archive"')])
        reply = await proxy.looked(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", ["new", "old"])
        assert origin.counts()["/old"] == 1
    assert [request.headers.get("if-none-match") for request in origin.requests_for("/feed")] == [
        None,
        '"1"',
        '"1"',
    ]
    origin.publish("/feed", body, etag='"1"')
    reply = await proxy.looked(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["new", "old"]), "it says nothing"


async def test_a_link_field_of_a_304_of_an_archive_is_read(proxy: Proxy, origin: Origin) -> None:
    """R2, R12; RFC 9111, 4.3.4: the newest archive, as it grows, links to one before it."""
    url, archive = origin.url("/feed"), atom(an_item("b", 5), archive=True)
    origin.publish("/feed", atom(an_item("c", 8), prev_archive="/b"))
    origin.publish("/b", archive, etag='"b"')
    assert (await proxy.whole(url)).state == "complete"
    origin.publish("/a", atom(an_item("a", 1), archive=True))
    origin.publish("/b", archive, etag='"b"', headers=[("Link", '</a>; rel="prev-archive"')])
    origin.publish("/feed", atom(an_item("c", 9), prev_archive="/b"))
    reply = await proxy.later(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a"])
    assert origin.requests_for("/b")[-1].headers["if-none-match"] == '"b"'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Cache-Control", "max-age=3000"),
        ("Cache-Control", 'no-cache="set-cookie", max-age=1, s-maxage="3000"'),
        ("Expires", "3000"),
    ],
    ids=["max-age", "s-maxage", "Expires"],
)
async def test_what_a_304_does_not_say_of_freshness_is_as_it_was(
    tmp_path: Path, origin: Origin, field: str, value: str
) -> None:
    """RFC 9111, 3.2 and 4.3.4: even after several of them, and after a restart."""
    body, url, clock = atom(an_item("a", 1), complete=True), origin.url("/feed"), Clock()

    def said(seconds: int, name: str = field) -> list[tuple[str, str]]:
        if name == "Expires":
            return [(name, formatdate(clock() + seconds, usegmt=True))]
        return [(name, value.replace("3000", str(seconds)))]

    def lasts(reply: Reply, seconds: int) -> bool:
        left = int(reply.headers["Cache-Control"].removeprefix("max-age="))
        return seconds - 10 <= left <= seconds

    origin.publish("/feed", body, etag='"1"', headers=said(3000))
    for _ in range(2):
        async with running(a_config(tmp_path), clock=clock) as proxy:
            assert lasts(await proxy.whole(url), 3000)
            origin.publish("/feed", body, etag='"1"')
            for _ in range(2):
                assert lasts(await proxy.looked(url), 3000)
        async with running(a_config(tmp_path), clock=clock) as proxy:
            assert lasts(await proxy.looked(url), 3000)
            origin.publish("/feed", body, etag='"1"', headers=said(2000))
            assert lasts(await proxy.looked(url), 2000)
            origin.publish("/feed", body, etag='"1"')
            assert lasts(await proxy.looked(url), 2000)
            origin.publish("/feed", body, etag='"1"', headers=said(3000))
            assert lasts(await proxy.looked(url), 3000)
    origin.publish("/feed", atom(an_item("b", 2), complete=True), etag='"2"')
    async with running(a_config(tmp_path), clock=clock) as proxy:
        assert lasts(await proxy.looked(url), 900), "what has come whole says all"
    asked = [request.headers.get("if-none-match") for request in origin.requests]
    assert asked == [None, *['"1"'] * (len(asked) - 1)]


async def test_a_304_replaces_the_fields_that_it_bears_and_no_others(proxy: Proxy, origin: Origin) -> None:
    """RFC 9111, 3.2: Expires of the stored response counts if Cache-Control no longer gives a lifetime."""
    body, url = atom(an_item("a", 1), complete=True), origin.url("/feed")
    expires = formatdate(proxy.clock() + 3000, usegmt=True)
    first = [("Cache-Control", "max-age=600"), ("Expires", expires)]
    origin.publish("/feed", body, etag='"1"', headers=first)
    await proxy.whole(url)
    for headers, least, most in (
        ([], 590, 600),
        ([("Cache-Control", "private")], 2950, 3000),
        ([], 2950, 3000),
        ([("Expires", "never")], 299, 300),
        ([("Cache-Control", "max-age=500")], 490, 500),
    ):
        origin.publish("/feed", body, etag='"1"', headers=headers)
        reply = await proxy.looked(url)
        scope, _, seconds = reply.headers["Cache-Control"].rpartition("max-age=")
        assert least <= int(seconds) <= most
        assert bool(scope) is (most in (3000, 300))


async def test_a_link_that_a_304_does_not_name_stays(proxy: Proxy, origin: Origin) -> None:
    """R12; RFC 9111, 3.2: its Link field replaces only links of the relations it names."""
    body, url = atom(an_item("new", 9)), origin.url("/feed")
    origin.publish("/old", atom(an_item("old", 1), archive=True))
    origin.publish("/older", atom(an_item("older", 0), archive=True))
    origin.publish("/feed", body, etag='"1"', headers=[("Link", '</old>; rel="prev-archive"')])
    await proxy.whole(url)
    for link, expected in (
        ('</old>; rel="prev-archive"', ["new", "old"]),
        (f'<{url}>; rel="current"', ["new", "old"]),
        ('</feed?0>; rel="first"', ["new", "old"]),
        ('</older>; rel="prev-archive"', ["new", "older", "old"]),
    ):
        origin.publish("/feed", body, etag='"1"', headers=[("Link", link)])
        reply = await proxy.looked(url)
        assert (reply.state, own_ids(reply.body)) == ("complete", expected)


async def test_a_document_that_gets_another_tag_is_asked_for_by_that(proxy: Proxy, origin: Origin) -> None:
    """R14; RFC 9110, 13.1.2; RFC 9111, 4.3.4: a new tag for the same bytes, by 200 or 304, causes no repeated
    fetches."""
    body, url = atom(an_item("a", 1), complete=True), origin.url("/feed")
    origin.publish("/feed", body, etag='"1"', last_modified=1_700_000_000)
    await proxy.whole(url)
    asked = []
    for _ in range(3):
        origin.publish("/feed", body, etag='"2"', last_modified=1_700_000_001)
        origin.forget_requests()
        await proxy.looked(url)
        asked += [request.headers.get("if-none-match") for request in origin.requests]
    assert asked == ['"1"', '"2"', '"2"']
    origin.publish("/feed", b"", status=304, etag='"3"')
    await proxy.looked(url)
    origin.forget_requests()
    await proxy.looked(url)
    (request,) = origin.requests
    assert request.headers["if-none-match"] == '"3"'
    assert request.headers["if-modified-since"] == formatdate(1_700_000_001, usegmt=True)


@pytest.mark.parametrize("make", [atom, rss, rdf])
@pytest.mark.parametrize("is_dated", [True, False])
async def test_an_older_copy_of_the_feed_brings_no_old_text_back(
    proxy: Proxy, origin: Origin, make: Any, is_dated: bool
) -> None:
    """R10: its own date shows its age, even if the entry's does not."""
    url = origin.url("/feed")
    dates = (3, 2) if is_dated else (2, 2)
    edited = make(an_item("b", dates[0], "right"), an_item("a", 1), updated=9)
    stale = make(an_item("b", dates[1], "wrong"), an_item("a", 1), updated=8)
    for body, expected in (
        (stale, "wrong"),
        (edited, "right"),
        (stale, "right"),
        (edited, "right"),
        (stale, "right"),
        (make(an_item("b", dates[0], "again"), an_item("a", 1), updated=10), "again"),
    ):
        origin.publish("/feed", body)
        await proxy.whole(url)
        assert texts((await proxy.refreshed(url)).body) == {"b": expected, "a": "text of a"}


async def test_a_feed_whose_newest_entry_was_deleted_is_believed(proxy: Proxy, origin: Origin) -> None:
    """R10: the feed's date goes back with that; unchanged entries stay."""
    url = origin.url("/feed")
    for body, expected in (
        (rss(an_item("b", 2), an_item("a", 1), updated=2), "text of a"),
        (rss(an_item("a", 1), updated=1), "text of a"),
        (rss(an_item("a", 1, "edited"), updated=1), "edited"),
    ):
        origin.publish("/feed", body)
        await proxy.whole(url)
        assert texts((await proxy.refreshed(url)).body)["a"] == expected
