"""docs/faults.md part E: faulty chains and entries, as a reader sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.answers import Answer, Computed, Document, Request, Status
from tests.feeds import Item, an_item, atom, ids, links, own_ids, publish_chain, rss, texts
from tests.origin import ATOM, Origin
from tests.running import Proxy, a_config, running

HOUR_SECONDS = 3600


async def missing(proxy: Proxy, url: str) -> list[tuple[str, str]]:
    return [(each["url"], each["reason"]) for each in (await proxy.status(url))["missing"]]


async def codes(proxy: Proxy, url: str) -> list[str]:
    return [each["code"] for each in (await proxy.status(url))["notes"]]


def publish_three(origin: Origin, older: str) -> str:
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/2"))
    origin.publish("/2", atom(an_item("b", 2), archive=True, prev_archive="/1"))
    origin.publish("/1", atom(an_item("a", 1), archive=True, prev_archive=older))
    return origin.url("/feed")


@pytest.mark.fault("50")
@pytest.mark.parametrize("older", ["/1", "#x", "/%31", "/2/../1#y", "/to-1"])
async def test_row_50_a_document_that_links_to_itself_is_the_end(
    proxy: Proxy, origin: Origin, older: str
) -> None:
    """R17; including another spelling or a redirect."""
    origin.redirect("/to-1", "/1")
    reply = await proxy.whole(publish_three(origin, older))
    assert (reply.state, ids(reply.body)) == ("complete", ["c", "b", "a"])


@pytest.mark.fault("50")
@pytest.mark.parametrize("older", ["/2", "/feed", "/%32", "/x/../feed", "/to-2", "/to-to-2"])
async def test_row_50_a_larger_circle_is_partial(proxy: Proxy, origin: Origin, older: str) -> None:
    """R17; of two documents and of three, by another spelling, through one redirect and through two."""
    origin.redirect("/to-2", "/2", status=301)
    origin.redirect("/to-to-2", "/to-2")
    url = publish_three(origin, older)
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("partial", ["c", "b", "a"])
    assert [reason for _, reason in await missing(proxy, url)] == ["loop"]
    assert sum(origin.counts().values()) <= 8

    publish_three(origin, "/0")
    origin.publish("/0", atom(an_item("z", 0), archive=True))
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a", "z"])


def endless(*entries: str) -> Answer:
    def answer(request: Request) -> Answer:
        number = int(request.target.partition("?")[2])
        items = [an_item(name.format(number), 1) for name in entries]
        body = atom(*items, archive=True, prev_archive=f"/older?{number + 1}", extra=f"<!-- {number} -->")
        return Document(body=body, headers=(("Content-Type", ATOM),))

    return Computed(answer)


@pytest.mark.fault("51")
async def test_row_51_a_chain_without_end_meets_a_limit(tmp_path: Path, origin: Origin) -> None:
    """R18: the collected entries are served, and the note names the limit."""
    origin.publish("/feed", atom(an_item("new", 9), prev_archive="/older?1"))
    origin.answer("/older", endless("e{}"))
    url = origin.url("/feed")
    async with running(a_config(tmp_path, limits={"documents_per_feed": 30})) as proxy:
        reply = await proxy.whole(url)
        assert reply.reconstruction == "partial;documents=30;entries=30;missing=1"
        assert await missing(proxy, url) == [(origin.url("/older?30"), "limit")]
        assert "limits.documents_per_feed" in str((await proxy.status(url))["notes"])
        assert len(origin.requests) <= 30


@pytest.mark.fault("51")
async def test_row_51_a_chain_without_news_ends(proxy: Proxy, origin: Origin) -> None:
    """R17: not after 5,000 documents, but after 50 without news."""
    origin.publish("/feed", atom(an_item("new", 9), an_item("same", 1), prev_archive="/older?1"))
    origin.answer("/older", endless("same"))
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("partial", ["new", "same"])
    assert [reason for _, reason in await missing(proxy, url)] == ["no-progress"]
    assert len(origin.requests) <= 50 + 10


@pytest.mark.fault("52")
async def test_row_52_an_archive_that_changed_is_replaced(proxy: Proxy, origin: Origin) -> None:
    """R13: found when it is revalidated; R10: an older copy stays behind a newer one."""
    old = [an_item("c", 3, "as it was"), an_item("b", 2), an_item("a", 1)]
    new = [an_item("c", 2, "older"), an_item("b", 7, "corrected"), an_item("x", 2)]
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 4), an_item("c", 3, "as it was"), prev_archive="/1"))
    origin.publish("/1", atom(*old, archive=True))
    assert ids((await proxy.whole(url)).body) == ["d", "c", "b", "a"]

    origin.publish("/1", atom(*new, archive=True))
    reply = await proxy.refreshed(url, full=True)
    assert (reply.state, sorted(ids(reply.body))) == ("complete", ["b", "c", "d", "x"])
    assert texts(reply.body) == {
        "d": "text of d", "c": "as it was", "b": "corrected", "x": "text of x",
    }  # fmt: skip
    assert await codes(proxy, url) == ["ArchiveChanged"]


@pytest.mark.fault("56")
@pytest.mark.parametrize("status", [401, 403, 410])
@pytest.mark.parametrize("maximum_seconds", [86400, 1800])
async def test_row_56_a_closed_feed_is_asked_for_daily(
    tmp_path: Path, origin: Origin, status: int, maximum_seconds: int
) -> None:
    """Even if freshness lasts less than a day at most."""
    expected = publish_chain(origin, archives=1)
    url = origin.url("/feed")
    freshness = {"maximum_seconds": maximum_seconds}
    async with running(a_config(tmp_path, freshness=freshness)) as proxy:
        await proxy.whole(url)
        origin.fault("/feed", Status(status))
        origin.forget_requests()
        for hours, asked in ((2, 1), (1, 1), (22, 1), (2, 2), (23, 2), (2, 3)):
            proxy.clock.advance(hours * HOUR_SECONDS)
            reply = await proxy.get(url)
            assert reply.reconstruction.endswith(";stale")
            assert ids(reply.body) == expected
            assert len(origin.requests) == asked, (hours, asked)
        origin.heal("/feed")
        assert not (await proxy.refreshed(url)).reconstruction.endswith(";stale")


@pytest.mark.fault("57")
async def test_row_57_duplicate_identities_stand_once(proxy: Proxy, origin: Origin) -> None:
    """R9, R10: the latest instant stays; then the one nearest the subscription document, then nearest the
    top."""
    url = origin.url("/feed")
    first = [an_item("a", 3, "first"), an_item("b", 1, "old"), an_item("b", 5, "new")]
    more = [an_item("a", 3, "second"), an_item("c", 2, "here")]
    origin.publish("/feed", atom(*first, *more, prev_archive="/1"))
    origin.publish("/1", atom(an_item("c", 2, "there"), an_item("a", 4, "latest"), archive=True))
    reply = await proxy.whole(url)
    assert (reply.state, sorted(ids(reply.body))) == ("complete", ["a", "b", "c"])
    assert texts(reply.body) == {"a": "latest", "b": "new", "c": "here"}


LONG_ID = "x" * 3000


@pytest.mark.fault("57")
async def test_row_57_entries_without_an_id_and_with_a_long_one(proxy: Proxy, origin: Origin) -> None:
    """R9: an empty id is none, and the entry's content replaces it; long ones count to their end."""
    url = origin.url("/feed")
    long = [an_item(LONG_ID + end, 2) for end in ("1", "2")]
    nameless = atom(an_item("p", 2), an_item("q", 2), *long, prev_archive="/1")
    archived = atom(an_item("p", 2), an_item("r", 1), *long, archive=True)
    for path, body in (("/feed", nameless), ("/1", archived)):
        blank = body.replace(b"<id>urn:p</id>", b"<id/>").replace(b"<id>urn:q</id>", b"<id>  </id>")
        origin.publish(path, blank.replace(b"<id>urn:r</id>", b""))
    reply = await proxy.whole(url)
    assert reply.reconstruction == "complete;documents=2;entries=5;missing=0"
    for name, count in (("p", 1), ("q", 1), ("r", 1), (LONG_ID + "1", 1), (LONG_ID + "2", 1)):
        assert reply.body.count(f"<title>{name}</title>".encode()) == count, name

    again = await proxy.refreshed(url, full=True)
    assert again.body == reply.body


@pytest.mark.fault("57")
async def test_row_57_items_without_a_guid(proxy: Proxy, origin: Origin) -> None:
    """R9: the link, if no other item has it, else the item's content; the same in every document."""

    def item(title: str, link: str, guid: str = "") -> str:
        return f"<item><title>{title}</title><link>http://site.test/{link}</link>{guid}</item>"

    same = item("b", "same") + item("c", "same")
    items = item("a", "1") + same + item("d", "2", "<guid> </guid>")
    archived = rss(archive=True, extra=item("a again", "1") + same + item("e", "3"))
    origin.publish("/feed", rss(extra=items, prev_archive="/1"), content_type="application/rss+xml")
    origin.publish("/1", archived, content_type="application/rss+xml")
    reply = await proxy.whole(origin.url("/feed"))
    assert reply.state == "complete"
    titles = [part.partition(b"</title>")[0].decode() for part in reply.body.split(b"<item")[1:]]
    assert sorted(title.rpartition("<title>")[2] for title in titles) == ["a", "b", "c", "d", "e"]


def dated(item: Item, date: str) -> bytes:
    document = atom(item, archive=True).decode()
    before, _, after = document.rpartition("<updated>")
    return f"{before}<updated>{date}</updated>{after.partition('</updated>')[2]}".encode()


@pytest.mark.fault("58")
@pytest.mark.parametrize("date", ["", "yesterday", "2023-02-30T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_row_58_a_date_that_cannot_be_counts_as_none(proxy: Proxy, origin: Origin, date: str) -> None:
    """R10: a dated copy beats it at any place; without another copy it is still served."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), prev_archive="/2"))
    odd = dated(an_item("a", 0, "odd"), date)
    origin.publish("/2", odd.replace(b"<fh:archive/>", b'<link rel="prev-archive" href="/1"/>'))
    origin.publish("/1", atom(an_item("a", 1, "dated"), archive=True))
    reply = await proxy.whole(url)
    assert (reply.state, sorted(ids(reply.body))) == ("complete", ["a", "b"])
    assert texts(reply.body)["a"] == "dated"

    origin.publish("/alone", atom(an_item("b", 2), prev_archive="/odd"))
    origin.publish("/odd", odd)
    reply = await proxy.whole(origin.url("/alone"))
    assert (reply.state, sorted(ids(reply.body))) == ("complete", ["a", "b"])


@pytest.mark.fault("58")
async def test_row_58_a_clock_that_is_a_little_fast_counts(proxy: Proxy, origin: Origin) -> None:
    """R10: up to a day ahead of the time of the fetch."""
    ahead = (proxy.clock() - 1_700_000_000) // HOUR_SECONDS
    origin.publish("/feed", atom(an_item("a", 1, "old"), prev_archive="/1"))
    origin.publish("/1", atom(an_item("a", int(ahead) + 20, "new"), archive=True))
    assert texts((await proxy.whole(origin.url("/feed"))).body) == {"a": "new"}


@pytest.mark.fault("59")
async def test_row_59_another_format_in_the_chain_is_missing(proxy: Proxy, origin: Origin) -> None:
    """R23: until it is there in the format of the subscription document."""
    url = publish_three(origin, "/0")
    origin.publish("/1", rss(an_item("a", 1), archive=True), content_type="application/rss+xml")
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("partial", ["c", "b"])
    assert await missing(proxy, url) == [(origin.url("/1"), "format")]

    origin.publish("/1", atom(an_item("a", 1), archive=True))
    reply = await proxy.refreshed(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a"])


@pytest.mark.fault("60")
async def test_row_60_a_feed_that_calls_itself_complete_is_that_alone(proxy: Proxy, origin: Origin) -> None:
    """R1: no link is followed, earlier entries leave, and dropped ones leave too."""
    expected = publish_chain(origin, archives=2)
    url = origin.url("/feed")
    assert ids((await proxy.whole(url)).body) == expected
    origin.forget_requests()

    for kept in (["e6", "e5", "e4"], ["e6"], []):
        items = [an_item(name, int(name[1:])) for name in kept]
        origin.publish("/feed", atom(*items, updated=9, complete=True, prev_archive="/archive/2"))
        reply = await proxy.refreshed(url)
        assert reply.reconstruction == f"complete;documents=1;entries={len(kept)};missing=0"
        assert ids(reply.body) == kept
        assert b"complete/>" in reply.body
    assert set(origin.counts()) == {"/feed"}


@pytest.mark.fault("61")
async def test_row_61_the_first_link_that_can_be_followed_counts(proxy: Proxy, origin: Origin) -> None:
    """R11, R12: an empty href is no link; the others are noted."""
    url = origin.url("/feed")
    targets = ("", "ftp://o.test/", "/1", "/2")
    several = "".join(f'<link rel="prev-archive" href="{target}"/>' for target in targets)
    origin.publish("/feed", atom(an_item("b", 2), extra=several))
    origin.publish("/1", atom(an_item("a", 1), archive=True))
    origin.publish("/2", atom(an_item("z", 0), archive=True))
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("complete", ["b", "a"])
    assert sorted(await codes(proxy, url)) == ["BadLink", "BadLink", "ExtraLink"]
    assert "/2" not in origin.counts()
    assert "prev-archive" not in links(reply.body)
