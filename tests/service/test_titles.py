"""wholefeed.service.titles: searches, years and the oldest entries of a feed of any size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.feeds import an_item, atom, json_feed, rdf, rss, stamp
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy
from wholefeed.core.compose.skimming import YearRun
from wholefeed.service import titles
from wholefeed.service.titles import TitleMatches, YearsReached
from wholefeed.store.rows import SegmentRow
from wholefeed.web.keys import STORE

YEAR_HOURS = 366 * 24


async def find(proxy: Proxy, url: str, words: str, *, start: int = 0, seconds: float = 9.0) -> TitleMatches:
    async with proxy.service.answer(url, wait_seconds=10.0) as found:
        return await proxy.service.titles.find(found.snapshot, words, start=start, most=3, seconds=seconds)


async def years(proxy: Proxy, url: str, *, seconds: float = 9.0) -> YearsReached:
    async with proxy.service.answer(url, wait_seconds=10.0) as found:
        return await proxy.service.titles.years(found.snapshot, seconds=seconds)


def count_reads(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    read, pieces = list[int](), proxy.app[STORE].pieces

    def counting(segment: SegmentRow) -> AsyncIterator[bytes]:
        read.append(segment.id)
        return pieces(segment)

    monkeypatch.setattr(proxy.app[STORE], "pieces", counting)
    return read


def names(found: TitleMatches) -> list[tuple[int, str]]:
    return [(place, heading.title) for place, heading in found.found]


def publish(origin: Origin, make: Any = atom) -> str:
    """Publish a chain of three segments: four entries of 2026, four of 2025, four of 2024."""
    text = "word " * 20_000
    for number, path in enumerate(("/feed", "/1", "/2")):
        items = [an_item(f"{path[1:]}-{n}", YEAR_HOURS * (2 - number) + 8 - n, text) for n in range(4)]
        older = f"/{number + 1}" if number < 2 else None
        origin.publish(path, make(*items, prev_archive=older, archive=number > 0))
    return origin.url("/feed")


@on_both
async def test_titles_are_found_across_segments(proxy: Proxy, origin: Origin) -> None:
    """With their places in output order; what is beyond the number wanted is counted."""
    url = publish(origin)
    await proxy.whole(url)
    found = await find(proxy, url, "-1")
    assert names(found) == [(1, "feed-1"), (5, "1-1"), (9, "2-1")]
    assert (found.entries, found.searched, found.is_all) == (3, 12, True)
    many = await find(proxy, url, "-")
    assert [place for place, _ in many.found] == [0, 1, 2]
    assert many.entries == 12
    assert names(await find(proxy, url, "-1", start=6)) == [(9, "2-1")]
    nothing = await find(proxy, url, "nowhere", start=999)
    assert (nothing.found, nothing.is_all) == ([], True)


@pytest.mark.fault("120")
async def test_a_search_whose_time_is_up_goes_on_where_it_ended(proxy: Proxy, origin: Origin) -> None:
    """Row 120: at least one segment is searched, so that it comes to an end."""
    url = publish(origin)
    await proxy.whole(url)
    start, ends = 0, []
    while True:
        found = await find(proxy, url, "2-3", start=start, seconds=0)
        ends.append(found.searched)
        if found.is_all:
            break
        start = found.searched
    assert ends == [4, 8, 12]
    assert names(found) == [(11, "2-3")]
    reached = await years(proxy, url, seconds=0)
    assert (len(reached.years), reached.is_all) == (1, False)


async def test_segments_are_read_once(proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the feed the new segment alone is read."""
    url = publish(origin)
    await proxy.whole(url)
    read = count_reads(proxy, monkeypatch)
    for _ in range(2):
        assert (await find(proxy, url, "-")).entries == 12
    assert len(read) == 3


async def test_years_stay_where_titles_have_no_room(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each page of a long feed would read it anew."""
    url = publish(origin)
    await proxy.whole(url)
    monkeypatch.setattr(titles, "TITLES_BYTES", 1)
    read = count_reads(proxy, monkeypatch)
    short = titles.Titles(proxy.app[STORE])
    async with proxy.service.answer(url, wait_seconds=10.0) as found:
        first, again = [await short.years(found.snapshot, seconds=9.0) for _ in range(2)]
    assert (len(read), first.is_all, first) == (3, True, again)


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed])
async def test_years_have_their_entries_and_their_places(proxy: Proxy, origin: Origin, make: Any) -> None:
    """Newest first, as they are shown, in all formats."""
    items = [an_item(f"{year}-{n}", -year * YEAR_HOURS - n - 1) for year in range(3) for n in range(year + 1)]
    origin.publish("/feed", make(*items))
    url = origin.url("/feed")
    await proxy.whole(url)
    assert await years(proxy, url) == YearsReached(
        [YearRun(2023, 0, 1), YearRun(2022, 1, 2), YearRun(2021, 3, 3)], is_all=True
    )


async def test_an_old_entry_on_top_is_not_where_its_year_begins(proxy: Proxy, origin: Origin) -> None:
    """Of several runs of a year the longest counts."""
    dates = f"<published>2018-12-30T00:00:00Z</published><updated>{stamp(99)}</updated>"
    old = f"<entry><id>urn:o</id>{dates}</entry>"
    origin.publish(
        "/feed", atom(*(an_item(f"{n}", -5 * YEAR_HOURS * (n // 2) - n) for n in range(4)), extra=old)
    )
    await proxy.whole(origin.url("/feed"))
    reached = await years(proxy, origin.url("/feed"))
    assert list(reached.years) == [YearRun(2023, 1, 2), YearRun(2018, 3, 3)]


@pytest.mark.parametrize("text", ["", "word " * 350_000])
async def test_the_oldest_are_those_of_the_oldest_dates_that_are_shown(
    proxy: Proxy, origin: Origin, text: str
) -> None:
    """An update sorts an Atom entry, and its publication is shown, however long the entries are."""
    entries = "".join(
        f"<entry><id>urn:{name}</id><title>{name}</title><published>{stamp(published)}</published>"
        f"<updated>{stamp(updated)}</updated><content>{text}</content></entry>"
        for name, published, updated in (("a", 5, 90), ("b", 9, 80), ("c", 1, 70), ("d", 7, 60), ("e", 3, 50))
    )
    origin.publish("/feed", atom(extra=entries))
    url = origin.url("/feed")
    await proxy.whole(url)

    async def oldest(newest: int, most: int) -> list[str]:
        async with proxy.service.answer(url, wait_seconds=10.0) as found:
            both = await proxy.service.titles.excerpt(found.snapshot, newest=newest, oldest=most)
            return [each.title for each in both.oldest]

    assert await oldest(1, 3) == ["d", "e", "c"]
    assert await oldest(3, 3) == ["d", "e"]


async def test_undated_entries_are_the_last_ones(proxy: Proxy, origin: Origin) -> None:
    """Their place is all that is known of their age."""
    origin.publish("/feed", rss(*(an_item(name, None) for name in "abcde")))
    await proxy.whole(origin.url("/feed"))
    async with proxy.service.answer(origin.url("/feed"), wait_seconds=10.0) as found:
        both = await proxy.service.titles.excerpt(found.snapshot, newest=1, oldest=2)
    assert [each.title for each in both.oldest] == ["d", "e"]
