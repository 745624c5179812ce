"""Documents that people kept, imported into a feed (I1)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.answers import Document, Gate, Held, Status
from tests.feeds import an_item, atom, json_feed, own_ids, publish_chain, rdf, rss, stamp, texts
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.discourse import Discourse
from tests.running import Proxy, Reply, StartProxy
from tests.sqlite_faults import rows
from wholefeed.web.keys import UPLOADS

Make = Callable[..., bytes]
DAY = 86400
MAKERS = {"atom": atom, "rss": rss, "rdf": rdf, "json": json_feed}
in_all_formats = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


async def imported(proxy: Proxy, url: str, body: bytes, **options: Any) -> Reply:
    headers = options.pop("headers", {})
    return await proxy.ask("POST", "/import", params={"url": url, **options}, data=body, headers=headers)


async def taken(proxy: Proxy, url: str, body: bytes, **options: Any) -> dict[str, Any]:
    reply = await imported(proxy, url, body, **options)
    assert reply.status == 200, reply.body
    await proxy.settled()
    found: dict[str, Any] = json.loads(reply.body)
    return found


def names(reply: Reply) -> list[str]:
    if reply.headers["Content-Type"].startswith("application/feed+json"):
        return [each["id"].removeprefix("urn:") for each in json.loads(reply.body)["items"]]
    return own_ids(reply.body)


async def imports_of(proxy: Proxy, url: str) -> list[dict[str, Any]]:
    return [each for each in (await proxy.status(url))["chain"] if each["import"] is not None]


# Entries of an import


@in_all_formats
async def test_what_was_kept_is_served_behind_what_the_publisher_has(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """I1, R20: newest first; the state is unchanged, and the answer shows who imported."""
    url = origin.url("/feed")
    origin.publish("/feed", make(an_item("e6", 60), an_item("e5", 50)))
    before = await proxy.whole(url)
    origin.forget_requests()
    oldest = await taken(proxy, url, make(an_item("e2", 20), an_item("e1", 10)), name="2011.xml", force="1")
    newer = await taken(proxy, url, make(an_item("e4", 40), an_item("e3", 30)), name="2012.xml", force="1")
    assert (oldest["outcome"], oldest["entries"], oldest["new"], oldest["served"]) == ("taken", 2, 2, True)
    reply = await proxy.get(url)
    assert names(reply) == ["e6", "e5", "e4", "e3", "e2", "e1"]
    assert (before.state, reply.state, newer["state"]) == ("remembered", "remembered", "remembered")
    assert origin.counts() == {}
    status = await proxy.status(url)
    assert status["imported"] == {"documents": 2, "entries": 4, "served": True}
    assert status["missing"] == []
    assert [each["import"]["name"] for each in await imports_of(proxy, url)] == ["2012.xml", "2011.xml"]
    assert all(each["memento"] is None for each in status["chain"])


@in_all_formats
async def test_the_publisher_s_own_entry_wins_whatever_the_dates(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """I1, R10: anybody can make an import."""
    url = origin.url("/feed")
    origin.publish("/feed", make(an_item("a", 1, "own"), an_item("b", 0, "own")))
    await proxy.whole(url)
    kept = make(an_item("a", 99, "kept, and longer"), an_item("c", 98, "kept"), updated=99)
    await taken(proxy, url, kept, force="1")
    reply = await proxy.get(url)
    assert sorted(names(reply)) == ["a", "b", "c"]
    assert b"kept, and longer" not in reply.body

    origin.publish("/feed", make(an_item("d", 5, "own"), an_item("c", 2, "own")))
    reply = await proxy.refreshed(url)
    assert sorted(names(reply)) == ["a", "b", "c", "d"]
    assert b"kept" not in reply.body  # a departed entry is remembered, and still its publisher's


async def test_an_entry_of_two_that_were_kept_is_the_one_that_r10_prefers(
    proxy: Proxy, origin: Origin
) -> None:
    """I1, R10: the same rule as for all copies."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("z", 90)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 5, "late"), an_item("b", 4)))
    await taken(proxy, url, atom(an_item("a", 3, "early"), an_item("c", 2)))
    assert texts((await proxy.get(url)).body)["a"] == "late"


@on_both
async def test_what_was_kept_outlives_refreshes_and_is_found_again(proxy: Proxy, origin: Origin) -> None:
    """I1: despite a refresh, a full one, and 90 days in a complete feed."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 9)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1)))
    origin.publish("/feed", atom(an_item("c", 10)))
    assert own_ids((await proxy.refreshed(url)).body) == ["c", "b", "a"]
    assert own_ids((await proxy.refreshed(url, full=True)).body) == ["c", "b", "a"]
    origin.publish("/feed", atom(an_item("c", 11), complete=True))
    assert own_ids((await proxy.refreshed(url)).body) == ["c"]
    proxy.clock.advance(100 * DAY)
    await proxy.swept()
    origin.publish("/feed", atom(an_item("c", 12)))
    assert own_ids((await proxy.refreshed(url)).body) == ["c", "a"]


async def test_what_was_kept_is_there_after_a_restart(
    start: StartProxy, origin: Origin, tmp_path: Any
) -> None:
    """I1: from the database."""
    url, place = origin.url("/feed"), {"path": str(tmp_path / "one.db")}
    origin.publish("/feed", atom(an_item("b", 9)))
    first = await start(store=place)
    await first.whole(url)
    await taken(first, url, atom(an_item("a", 1)))
    await first.client.close()
    again = await start(store=place)
    assert own_ids((await again.get(url)).body) == ["b", "a"]


# State of a feed with an import


@pytest.mark.parametrize("is_chain", [True, False], ids=["a chain", "one document"])
async def test_in_a_complete_feed_it_is_kept_and_not_served(
    proxy: Proxy, origin: Origin, is_chain: bool
) -> None:
    """I1, R1, R2, R21: otherwise fh:complete would be false; it is served once the feed is not complete."""
    url = origin.url("/feed")
    if is_chain:
        expected = publish_chain(origin, archives=1)
    else:
        origin.publish("/feed", atom(an_item("e4", 4), complete=True))
        expected = ["e4"]
    assert (await proxy.whole(url)).state == "complete"
    said = await taken(proxy, url, atom(an_item("e4", 4), an_item("old", -5), an_item("older", -6)))
    assert (said["outcome"], said["new"], said["served"], said["state"]) == ("taken", 2, False, "complete")
    reply = await proxy.get(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", expected)
    assert b"complete" in reply.body
    assert (await proxy.status(url))["imported"] == {"documents": 1, "entries": 2, "served": False}

    origin.publish("/feed", atom(an_item("e5", 5), an_item("e4", 4)))
    if is_chain:
        origin.publish("/feed", atom(an_item("e5", 5), prev_archive="/gone"))
    reply = await proxy.refreshed(url)
    assert reply.state == ("partial" if is_chain else "remembered")
    assert own_ids(reply.body)[-2:] == ["old", "older"]
    assert (await proxy.status(url))["imported"]["served"]

    if is_chain:
        origin.publish("/feed", atom(an_item("e5", 5), prev_archive="/archive/1"))
    else:
        origin.publish("/feed", atom(an_item("e5", 5), complete=True))
    reply = await proxy.refreshed(url)
    assert reply.state == "complete"
    assert "old" not in own_ids(reply.body)


async def test_it_makes_no_partial_feed_whole(proxy: Proxy, origin: Origin) -> None:
    """I1: missing documents stay so, though it may be one."""
    publish_chain(origin, archives=2)
    url, gone = origin.url("/feed"), origin.url("/archive/1")
    origin.fault("/archive/1", Status(404))
    assert (await proxy.whole(url)).state == "partial"
    notes = [each["code"] for each in (await proxy.status(url))["notes"]]
    await taken(proxy, url, atom(an_item("e2", 2), an_item("e1", 1), archive=True))
    reply = await proxy.get(url)
    assert reply.reconstruction == "partial;documents=3;entries=6;missing=1"
    status = await proxy.status(url)
    assert [each["url"] for each in status["missing"]] == [gone]
    assert [each["code"] for each in status["notes"]] == notes
    assert status["ending"] is not None

    origin.publish("/archive/1", atom(an_item("e2", 2, "own"), an_item("e1", 1), archive=True))
    reply = await proxy.refreshed(url)
    assert (reply.state, texts(reply.body)["e2"]) == ("complete", "own")


async def test_a_paged_feed_is_read_on_to_what_it_lacks(proxy: Proxy, origin: Origin) -> None:
    """I1, R6: an entry known only from an import is still news, and leads to the pages behind it."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1), next="/2"))
    origin.publish("/2", atom(an_item("b", 0)))
    assert (await proxy.whole(url)).state == "paged"
    await taken(proxy, url, atom(an_item("e", 5), an_item("d", 4)))
    assert (await proxy.get(url)).state == "paged"
    origin.publish("/feed", atom(an_item("e", 5, "own"), an_item("d", 4, "own"), next="/2"))
    origin.publish("/2", atom(an_item("c", 3, "own"), an_item("a", 1), next="/3"))
    origin.publish("/3", atom(an_item("b", 0)))
    reply = await proxy.refreshed(url)
    assert (reply.state, sorted(own_ids(reply.body))) == ("paged", ["a", "b", "c", "d", "e"])
    assert texts(reply.body)["d"] == "own"


async def test_imports_stand_by_their_time_behind_pages_that_come_and_go(
    proxy: Proxy, origin: Origin
) -> None:
    """I1, R20: in any order of imports and walks."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("e", 9), next="/2"))
    origin.publish("/2", atom(an_item("d", 8)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1)))
    origin.publish("/feed", atom(an_item("f", 10), next="/1"))
    origin.publish("/1", atom(an_item("e", 9), next="/2"))
    await proxy.refreshed(url)
    origin.publish("/feed", atom(an_item("g", 11), next="/2"))  # they trade places
    origin.publish("/2", atom(an_item("f", 10), an_item("e", 9), next="/1"))
    origin.publish("/1", atom(an_item("d", 8)))
    await proxy.refreshed(url, full=True)
    await taken(proxy, url, atom(an_item("c", 3), an_item("b", 2)))
    for reply in (await proxy.get(url), await proxy.refreshed(url, full=True)):
        assert own_ids(reply.body)[-3:] == ["c", "b", "a"]


async def test_it_buries_settles_and_claims_nothing(proxy: Proxy, origin: Origin) -> None:
    """I1, R8, R15, R19: its tombstones, flags and links do not count."""
    url = origin.url("/feed")
    at = 'xmlns:at="http://purl.org/atompub/tombstones/1.0"'
    grave = f'<at:deleted-entry {at} ref="urn:b" when="2030-01-01T00:00:00Z"/>'
    origin.publish("/feed", atom(an_item("c", 2), an_item("b", 1)))
    await proxy.whole(url)
    origin.forget_requests()
    kept = atom(an_item("a", 0), complete=True, extra=grave, prev_archive="/elsewhere", next="/elsewhere")
    await taken(proxy, url, kept)
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, own_ids(reply.body)) == ("remembered", ["c", "b", "a"])
    assert "/elsewhere" not in origin.counts()
    [(links,)] = rows(proxy.database, "SELECT links FROM document WHERE url LIKE 'urn:wholefeed:import:%'")
    assert links == "{}"


async def test_what_its_publisher_has_deleted_stays_deleted(proxy: Proxy, origin: Origin) -> None:
    """I1, R19: an import is not from the publisher."""
    url = origin.url("/feed")
    at = 'xmlns:at="http://purl.org/atompub/tombstones/1.0"'
    grave = f'<at:deleted-entry {at} ref="urn:b" when="{stamp(50)}"/>'
    origin.publish("/feed", atom(an_item("c", 2), extra=grave))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("b", 1), an_item("a", 0)))
    assert own_ids((await proxy.get(url)).body) == ["c", "a"]


async def test_what_its_publisher_has_taken_out_is_there_again(proxy: Proxy, origin: Origin) -> None:
    """I1, R8: its publisher did not declare it deleted."""
    url = origin.url("/feed")
    publish_chain(origin, archives=2)
    await proxy.whole(url)
    origin.publish("/archive/2", atom(an_item("e4", 4), an_item("e3", 3), archive=True))
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["e6", "e5", "e4", "e3"])
    origin.publish("/feed", atom(an_item("e6", 6), an_item("e5", 5), updated=7))
    await proxy.refreshed(url)
    await taken(proxy, url, atom(an_item("e2", 2)))
    reply = await proxy.get(url)
    assert (reply.state, own_ids(reply.body)) == ("remembered", ["e6", "e5", "e4", "e3", "e2"])


async def test_a_feed_that_changes_its_format_has_it_again_with_that(proxy: Proxy, origin: Origin) -> None:
    """I1, R23."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1)))
    origin.publish("/feed", rss(an_item("b", 2)))
    assert own_ids((await proxy.refreshed(url)).body) == ["b"]
    origin.publish("/feed", atom(an_item("b", 3)))
    assert own_ids((await proxy.refreshed(url)).body) == ["b", "a"]


async def test_a_replay_has_it_too(proxy: Proxy, origin: Origin) -> None:
    """I1, P1: an imported entry has its line, and its slot."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 9)))
    await proxy.whole(url)
    pace: dict[str, Any] = {"replay": "50/day", "from": "2024-01-01T06:00:00Z"}
    assert own_ids((await proxy.get(url, **pace)).body) == ["b"]
    await taken(proxy, url, atom(an_item("a", 1)))
    proxy.clock.advance(DAY)
    assert sorted(own_ids((await proxy.get(url, **pace)).body)) == ["a", "b"]


# Which documents are taken


async def test_what_does_not_belong_is_refused_and_leaves_nothing(proxy: Proxy, origin: Origin) -> None:
    """I1: another id and no entry in common; a person can insist."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    foreign = atom(an_item("a", 1), feed_id="urn:somebody-else")
    before = await proxy.status(url)
    refused = await imported(proxy, url, foreign)
    assert (refused.status, refused.slug) == (422, "another-feed")
    assert b"urn:somebody-else" in refused.body
    assert await proxy.status(url) == before
    said = await taken(proxy, url, foreign, force="1")
    assert said["outcome"] == "taken"
    assert own_ids((await proxy.get(url)).body) == ["b", "a"]


async def test_an_entry_in_common_is_enough(proxy: Proxy, origin: Origin) -> None:
    """I1: feeds change their names."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("b", 2), an_item("a", 1), feed_id="urn:as-it-was"))
    assert own_ids((await proxy.get(url)).body) == ["b", "a"]


async def test_a_host_counts_where_nothing_else_is_named(proxy: Proxy, origin: Origin) -> None:
    """I1: for a JSON Feed without home_page_url, the host of feed_url; never against a named site."""
    url = origin.url("/feed")
    origin.publish("/feed", json_feed(an_item("b", 2)))
    await proxy.whole(url)
    kept = json_feed(an_item("a", 1), feed_url=origin.url("/old"))
    elsewhere = json_feed(an_item("x", 1), feed_url="http://elsewhere.test/feed")
    named = json_feed(an_item("y", 1), feed_url=origin.url("/old"), home_page_url="http://site.test/")
    for body in (elsewhere, named, json_feed(an_item("z", 1))):
        assert (await imported(proxy, url, body)).slug == "another-feed"
    await taken(proxy, url, kept)
    assert names(await proxy.get(url)) == ["b", "a"]


@pytest.mark.parametrize("force", ["0", "1"])
async def test_another_format_is_refused_whoever_insists(proxy: Proxy, origin: Origin, force: str) -> None:
    """I1, R23: the feed could not serve it."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    refused = await imported(proxy, url, rss(an_item("b", 2), an_item("a", 1)), force=force)
    assert (refused.status, refused.slug) == (422, "format")
    assert (await proxy.status(url))["imported"] is None


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        (b"", "not-a-feed"),
        (b"<html><body>Hello</body></html>", "not-a-feed"),
        (b"PK\x03\x04 no feed", "not-a-feed"),
        (b'{"version": "https://jsonfeed.org/version/1.1", "items": [', "malformed-json"),
    ],
    ids=["empty", "html", "zip", "broken"],
)
async def test_what_is_no_feed_is_refused(proxy: Proxy, origin: Origin, body: bytes, slug: str) -> None:
    """I1: with the reason; the feed does not change."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    refused = await imported(proxy, url, body)
    assert (refused.status, refused.slug) == (422, slug)
    assert (await proxy.status(url))["imported"] is None


async def test_what_was_there_is_told_and_no_error(proxy: Proxy, origin: Origin) -> None:
    """I1: the same document, or one without new entries."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    kept = atom(an_item("b", 2), an_item("a", 1))
    first = await taken(proxy, url, kept, name="one.xml")
    again = await taken(proxy, url, kept, name="two.xml")
    part = await taken(proxy, url, atom(an_item("a", 1)), name="three.xml")
    assert [each["outcome"] for each in (first, again, part)] == ["taken", "known", "known"]
    assert (again["name"], again["url"], again["new"]) == ("one.xml", first["url"], 0)
    assert len(await imports_of(proxy, url)) == 1


async def test_what_a_complete_feed_keeps_is_there_too(proxy: Proxy, origin: Origin) -> None:
    """I1: a stored entry that is not served brings nothing new when imported again."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), complete=True))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1), an_item("c", 0)))
    assert (await taken(proxy, url, atom(an_item("a", 1))))["outcome"] == "known"


async def test_a_document_that_broke_off_gives_its_whole_entries(proxy: Proxy, origin: Origin) -> None:
    """I1, docs/faults.md row 49: there is no fuller document."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    kept = atom(an_item("a", 1), an_item("lost", 0)).partition(b"<content>text of lost")[0]
    said = await taken(proxy, url, kept)
    assert (said["new"], said["state"]) == (1, "remembered")
    assert own_ids((await proxy.get(url)).body) == ["b", "a"]


async def test_an_unknown_feed_is_fetched_first(proxy: Proxy, origin: Origin) -> None:
    """I1: like a reader's request; if the fetch fails, the answer is that failure."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    assert (await taken(proxy, url, atom(an_item("a", 1))))["outcome"] == "taken"
    assert own_ids((await proxy.get(url)).body) == ["b", "a"]
    refused = await imported(proxy, origin.url("/gone"), atom(an_item("a", 1)))
    assert (refused.status, refused.slug) == (404, "publisher-status")


# Of which time it is


async def test_its_time_is_what_is_said_else_its_newest_date_else_the_file_s(
    proxy: Proxy, origin: Origin
) -> None:
    """I1: a date in the future does not count."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(an_item("z", 9)))
    await proxy.whole(url)
    file_at = {"headers": {"Last-Modified": "Sun, 01 May 2011 12:00:00 GMT"}}
    said = await taken(proxy, url, rss(an_item("a", 1)), at="2010-05-01T14:00:00+02:00", **file_at)
    assert said["as_of"] == "2010-05-01T12:00:00Z"
    dated = await taken(proxy, url, rss(an_item("b", 2), an_item("f", 1 << 20)), **file_at)
    assert dated["as_of"] == stamp(2)
    undated = await taken(proxy, url, rss(an_item("c", None)), **file_at)
    assert undated["as_of"] == "2011-05-01T12:00:00Z"
    shown = {each["import"]["as_of"] for each in await imports_of(proxy, url)}
    assert shown == {said["as_of"], dated["as_of"], undated["as_of"]}
    refused = await imported(proxy, url, rss(an_item("d", 1)), at="yesterday")
    assert (refused.status, refused.slug) == (400, "bad-request")


# Taken back


@on_both
async def test_what_was_imported_can_be_taken_back(proxy: Proxy, origin: Origin) -> None:
    """I1: by its name or URL; other imports stay, and their copies of an entry serve."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 9)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("c", 3)), name="c.xml")
    second = await taken(proxy, url, atom(an_item("b", 2)), name="b.xml")
    await taken(proxy, url, atom(an_item("a", 1), an_item("c", 0, "older")))
    assert own_ids((await proxy.get(url)).body) == ["d", "c", "b", "a"]
    for name, left in (("c.xml", ["d", "b", "a", "c"]), (second["url"], ["d", "a", "c"])):
        gone = await proxy.ask("DELETE", "/import", params={"url": url, "name": name})
        assert (gone.status, json.loads(gone.body)) == (200, {"removed": 1})
        assert own_ids((await proxy.get(url)).body) == left
    again = await proxy.ask("DELETE", "/import", params={"url": url, "name": "c.xml"})
    assert (again.status, again.slug) == (404, "not-found")
    assert (await proxy.ask("DELETE", "/import", params={"url": url})).slug == "bad-request"
    assert (await taken(proxy, url, atom(an_item("b", 2)), name="b.xml"))["outcome"] == "taken"
    assert own_ids((await proxy.get(url)).body) == ["d", "b", "a", "c"]


async def test_what_a_complete_feed_keeps_can_be_taken_back(proxy: Proxy, origin: Origin) -> None:
    """I1: it does not return when the feed is no longer complete."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), complete=True))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1)), name="a.xml")
    await proxy.ask("DELETE", "/import", params={"url": url, "name": "a.xml"})
    assert (await proxy.status(url))["imported"] is None
    origin.publish("/feed", atom(an_item("c", 3)))
    assert own_ids((await proxy.refreshed(url)).body) == ["c", "b"]


async def test_a_feed_that_is_forgotten_takes_it_along(proxy: Proxy, origin: Origin) -> None:
    """I1, R25."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1)))
    assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
    assert own_ids((await proxy.whole(url)).body) == ["b"]


async def test_it_may_come_coded(proxy: Proxy, origin: Origin) -> None:
    """I1: in the codings that /opml accepts."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    body = gzip.compress(atom(an_item("a", 1)))
    await taken(proxy, url, body, headers={"Content-Encoding": "gzip"})
    assert own_ids((await proxy.get(url)).body) == ["b", "a"]


async def test_a_collected_feed_stays_one(proxy: Proxy, origin: Origin) -> None:
    """I1, R20, R31: with imports among its pages, without requests."""
    publisher = Discourse(origin, 30)
    url = publisher.feed_url()
    before = await proxy.whole(url)
    assert before.state == "collected"
    origin.forget_requests()
    said = await taken(proxy, url, rss(an_item("old", -500_000)), force="1")
    assert said["state"] == "collected"
    reply = await proxy.get(url)
    assert (reply.state, own_ids(reply.body)) == ("collected", [*own_ids(before.body), "old"])
    assert origin.requests == []
    assert (await proxy.status(url))["collection"] is not None
    reply = await proxy.refreshed(url)
    assert (reply.state, own_ids(reply.body)[-1]) == ("collected", "old")


async def test_who_comes_while_the_feed_is_refreshed_is_told_to_come_again(
    start: StartProxy, origin: Origin
) -> None:
    """I1: imports wait for the feed's turn."""
    proxy = await start(limits={"respond_within_seconds": 0.3})
    url, gate = origin.url("/feed"), Gate()
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    origin.fault("/feed", Held(gate, Document(body=atom(an_item("c", 3)))))
    await proxy.ask("POST", "/refresh", params={"url": url})
    reply = await imported(proxy, url, atom(an_item("a", 1)))
    assert (reply.status, reply.slug) == (503, "overloaded")
    assert "Retry-After" in reply.headers
    gate.release()
    await proxy.settled()
    await taken(proxy, url, atom(an_item("a", 1)))
    assert own_ids((await proxy.get(url)).body) == ["c", "b", "a"]


async def test_a_publisher_that_is_gone_hinders_nobody(proxy: Proxy, origin: Origin) -> None:
    """I1: the feed is served from the store, with imported entries."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    origin.fault("/feed", Status(410))
    await proxy.refreshed(url)
    await taken(proxy, url, atom(an_item("a", 1)))
    reply = await proxy.get(url)
    assert (reply.state, own_ids(reply.body)) == ("remembered", ["b", "a"])
    assert "stale" in reply.reconstruction


async def test_people_are_told_of_it(proxy: Proxy, origin: Origin) -> None:
    """I1: the page of the feed describes the import in words."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    await taken(proxy, url, atom(an_item("a", 1)), name="<b>old</b>\u202e.xml")
    page = await proxy.ask("GET", "/", params={"url": url}, headers={"Accept": "text/html"})
    assert b"1 imported document: 1 entry that no other document of this feed has." in page.body
    assert b"<b>old" not in page.body
    (shown,) = await imports_of(proxy, url)
    assert shown["import"]["name"] == "<b>old</b> .xml"


@pytest.mark.parametrize(
    "limits", [{"entries_per_feed": 3}, {"documents_per_feed": 1}, {"feed_bytes": 1500}], ids=str
)
async def test_what_makes_a_feed_too_large_is_refused(
    start: StartProxy, origin: Origin, limits: dict[str, int]
) -> None:
    """I1, R18: imports count like fetched documents; nothing of it is stored."""
    proxy = await start(limits=limits)
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 4), an_item("c", 3)))
    await proxy.whole(url)
    reply = await imported(proxy, url, atom(*(an_item(name, 1, "x" * 500) for name in "ab")))
    assert (reply.status, reply.slug) == (422, "limit")
    assert f"limits.{next(iter(limits))}" in reply.body.decode()
    assert (await proxy.status(url))["imported"] is None


async def test_no_more_is_read_at_once_than_there_is_room_for(proxy: Proxy, origin: Origin) -> None:
    """I1: with Retry-After, and nothing stays in memory."""
    url, room = origin.url("/feed"), proxy.app[UPLOADS]
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    room.wait_seconds = 0.05
    assert await room.take(room.total_bytes)
    reply = await imported(proxy, url, atom(an_item("a", 1)))
    assert (reply.status, reply.slug) == (503, "overloaded")
    room.give_back(room.total_bytes)
    await taken(proxy, url, atom(an_item("a", 1)))
    assert room.free_bytes == room.total_bytes
