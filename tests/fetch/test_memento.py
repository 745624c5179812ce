"""Requests to a web archive: their rate, their guard, and valid mementos."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.answers import Document, Redirect, Status
from tests.feeds import an_item, atom
from tests.fetchers import a_fetcher
from tests.origin import Origin
from tests.web_archive import INDEX, WebArchive
from wholefeed.core.memento import Capture, instant_of
from wholefeed.errors import DocumentError, ForbiddenTargetError, PublisherError, UnreadableError
from wholefeed.fetch.web_archive import NEWEST, PAGE_ROWS, REQUESTS_PER_MINUTE, Archive, Turns

URL = "http://blog.example.org/feed"
BODY = atom(an_item("a"))


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
async def saved() -> AsyncIterator[WebArchive]:
    async with WebArchive() as archive:
        yield archive


@asynccontextmanager
async def asking(saved: WebArchive, *, turns: Turns | None = None, **fetch: Any) -> AsyncIterator[Archive]:
    async with a_fetcher(**fetch) as fetcher:
        yield Archive(fetcher, saved.origin.url("").rstrip("/"), turns=turns or Turns(10**6))


async def test_no_minute_has_more_requests_than_it_may() -> None:
    """R33: for any number of callers at once; the first come first."""
    time, taken = Time(), list[tuple[float, int]]()
    turns = Turns(clock=time, sleep=time.sleep)

    async def take(number: int) -> None:
        await turns.take()
        taken.append((time.now, number))

    await asyncio.gather(*(take(number) for number in range(23)))
    assert [number for _, number in taken] == list(range(23))
    instants = [at for at, _ in taken]
    assert instants[REQUESTS_PER_MINUTE - 1] == 1000.0
    behind = zip(instants, instants[REQUESTS_PER_MINUTE:], strict=False)
    assert all(later - earlier >= 60 for earlier, later in behind)
    assert turns.waiting == 0


async def test_who_gives_up_takes_no_turn() -> None:
    """R33: a feed may be forgotten, or the program stopped."""
    time = Time()
    never = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        await never.wait()

    turns = Turns(1, clock=time, sleep=sleep)
    await turns.take()
    waiting = [asyncio.create_task(turns.take()) for _ in range(2)]
    await asyncio.sleep(0)
    assert turns.waiting == 2
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert turns.waiting == 0
    time.now += 60
    await turns.take()


async def test_redirects_and_further_tries_count(saved: WebArchive) -> None:
    """R33: each is a request."""
    turns = Turns(10**6)
    taken = 0
    take = turns.take

    async def counted() -> None:
        nonlocal taken
        taken += 1
        await take()

    turns.take = counted  # type: ignore[method-assign]
    saved.save(URL, 2018, BODY)
    saved.save(URL, 2019, b"", answer=Redirect(f"/web/20180501120000id_/{URL}"))
    saved.origin.fault(f"/web/20180501120000id_/{URL}", Status(503), times=1)
    capture = Capture("20190501120000", URL)
    asked = asking(saved, turns=turns, retries=1, sleep=Time().sleep)
    async with asked as archive, archive.fetching(capture, URL) as (fetched, _):
        assert fetched.body == BODY
    assert taken == len(saved.origin.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        Redirect("http://127.0.0.2:1234/feed"),
        Redirect(f"/web/20190501120000/{URL}"),
        Redirect("/web/20190501120000id_/http://other.example.org/feed"),
        Document(body=BODY, headers=(("Memento-Datetime", "Tue, 01 May 2091 12:00:00 GMT"),)),
        Status(404),
        Status(200),
    ],
    ids=["elsewhere", "rewritten", "of another", "of a time to come", "gone", "empty"],
)
async def test_what_is_no_copy_of_the_document_is_refused(saved: WebArchive, answer: Any) -> None:
    """R33."""
    saved.save(URL, 2019, b"", answer=answer)
    for path in (f"/web/20190501120000/{URL}", "/web/20190501120000id_/http://other.example.org/feed"):
        saved.origin.publish(path, BODY)
    async with asking(saved) as archive:
        with pytest.raises(PublisherError):
            async with archive.fetching(Capture("20190501120000", URL), URL):
                pass


async def test_the_guard_judges_the_archive_and_where_it_leads(saved: WebArchive) -> None:
    """R33: a private address only with fetch.allow_networks, and no other place than its mementos."""
    async with asking(saved, allow_networks=()) as archive:
        with pytest.raises(ForbiddenTargetError):
            await archive.newest(URL)
    async with Origin("127.0.0.3") as other:
        saved.save(URL, 2019, b"", answer=Redirect(other.url("/feed")))
        async with asking(saved) as archive:
            with pytest.raises(PublisherError):
                async with archive.fetching(Capture("20190501120000", URL), URL):
                    pass
        assert other.requests == []


async def test_a_copy_is_as_its_publisher_sent_it_then(saved: WebArchive) -> None:
    """R33, R10: its URL, its time; nothing of the archive's own header fields."""
    copy = saved.save(URL, 2019, BODY, original="http://www.blog.example.org:80/feed")
    async with asking(saved) as archive:
        (capture,) = (await archive.newest(URL)).captures
        async with archive.fetching(capture, URL) as (fetched, copy_url):
            assert (fetched.url, fetched.final_url) == (URL, "http://www.blog.example.org/feed")
            assert fetched.fetched_at == instant_of("20190501120000")
            assert (fetched.links, fetched.hops, fetched.permanent_url) == ((), (), None)
            assert fetched.headers.keys() == {"content-length"}
            assert fetched.media_type == "application/atom+xml"
            assert copy_url == copy


async def test_the_index_is_asked_for_so_much_at_once(saved: WebArchive) -> None:
    """R33: the newest mementos, or a page and the start of the next one."""
    for number in range(PAGE_ROWS + 5):
        saved.save(URL, f"2010{1 + number // 28:02}{1 + number % 28:02}120000", BODY + b" " * number)
    async with asking(saved) as archive:
        assert len((await archive.newest(URL)).captures) == NEWEST
        page, position = await archive.oldest(URL, "")
        assert (len(page.captures), position) == (PAGE_ROWS, f"resumeKey=k{PAGE_ROWS}")
        page, position = await archive.oldest(URL, position)
        assert (len(page.captures), position) == (5, "")


async def test_an_empty_index_is_one_and_another_thing_is_none(saved: WebArchive) -> None:
    """R33: pywb sends an empty body for an empty index."""
    saved.origin.fault(INDEX, Document(body=b""), times=1)
    saved.origin.fault(INDEX, Document(body=b"<html>"), times=1)
    saved.origin.fault(INDEX, Status(500), times=1)
    async with asking(saved) as archive:
        assert (await archive.newest(URL)).captures == ()
        with pytest.raises(UnreadableError):
            await archive.newest(URL)
        with pytest.raises(DocumentError):
            await archive.newest(URL)
