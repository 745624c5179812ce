from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.walk.test_walk import (
    LIMITS,
    O,
    a_publisher,
    a_walk,
    archive,
    finish,
    numbered,
    tell,
    urls_of,
    wanted_urls,
)
from tests.makers import FEED, an_arrival
from wholefeed.core.model import Family
from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
    DocumentUnavailable,
    End,
    Ending,
    FormatMismatch,
    JumpedHole,
    LimitReached,
    Note,
)
from wholefeed.core.walk.ahead import count_left, guesses_behind, next_urls
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.walk import Walk


@pytest.mark.parametrize(
    ("steps", "guesses"),
    [
        (["/archive/41", "/archive/40"], ["/archive/39", "/archive/38"]),
        (["/?page=7", "/?page=8"], ["/?page=9", "/?page=10"]),
        (["/2003/12", "/2003/11"], ["/2003/10", "/2003/09"]),
        (["/2003/02/index.atom", "/2003/01/index.atom"], ["/2002/12/index.atom", "/2002/11/index.atom"]),
        (["/2003/01", "/2002/12"], ["/2002/11", "/2002/10"]),
        (["/2003-3", "/2003-2"], ["/2003-1", "/2002-12"]),
        (["/200302.xml", "/200301.xml"], ["/200212.xml", "/200211.xml"]),
        (["/2004/03/02", "/2004/03/01"], ["/2004/02/29", "/2004/02/28"]),
        (["/20040302", "/20040301"], ["/20040229", "/20040228"]),
        (["/2003/11/2", "/2003/11/1"], ["/2003/10/31", "/2003/10/30"]),
        (["/2004", "/2003"], ["/2002", "/2001"]),
        (["/a011b", "/a010b"], ["/a009b", "/a008b"]),
        (["/a100", "/a099"], ["/a098", "/a097"]),
        (["/11", "/10"], ["/9", "/8"]),
        (["/v2/41?k=3", "/v2/40?k=3"], ["/v2/39?k=3", "/v2/38?k=3"]),
        (["/2/1", "/2/0"], []),
        (["/2", "/1"], ["/0"]),
        (["/1970/02", "/1970/01"], []),
        (["/a?offset=10", "/a?offset=20"], []),
        (["/a?offset=10", "/a?offset=20", "/a?offset=30"], ["/a?offset=40", "/a?offset=50"]),
        (["/a?offset=10", "/a?offset=15", "/a?offset=30"], []),
        (["/a/10", "/b/20", "/b/30"], []),
        (["/99-99", "/98-98"], []),
        (["/41", "/41"], []),
        (["/41", "/041"], []),
        (["/41#a", "/40#b"], ["/39", "/38"]),
        (["/2003/13", "/2003/12"], ["/2003/11", "/2003/10"]),
        (["/a41", "/b40"], []),
        (["/41", "/40/1"], []),
        (["/feed", "/40"], []),
        (["/1234567890123456", "/1234567890123455"], []),
        (["/999999999999998", "/999999999999999"], []),
        (["/40"], []),
        ([], []),
    ],
)
def test_continues_numbers_and_dates(steps: list[str], guesses: list[str]) -> None:
    """docs/design.md#look-ahead: URLs that differ in one number or one date."""
    assert next_urls([O + step for step in steps], 2) == tuple(O + guess for guess in guesses)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("http://o41.test/a", "http://o40.test/a"),
        ("http://o.test:81/a", "http://o.test:80/a"),
        ("https://o.test/41", "http://o.test/40"),
        ("http://192.0.2.2/a", "http://192.0.2.1/a"),
    ],
)
def test_never_guesses_hosts(first: str, second: str) -> None:
    """A number in host, port or scheme is never counted down: a guess goes to no server that was not
    linked."""
    assert next_urls([first, second], 2) == ()


def test_stops_at_the_greatest_length_of_a_url() -> None:
    """Row 20: guessing stops before a URL would be longer than any that is fetched."""
    long = f"{O}/{'a' * 2033}"
    assert next_urls([f"{long}8", f"{long}9"], 5) == ()
    assert next_urls([f"{long}7", f"{long}8"], 5) == (f"{long}9",)


@given(st.lists(st.text(st.sampled_from("/-.?=019ax"), max_size=14), max_size=4), st.integers(0, 5))
def test_whatever_the_urls_guesses_are_few_new_and_of_the_same_host(paths: list[str], count: int) -> None:
    """For any two links the guesses are at most as many as asked for, all new, and at the same host."""
    steps = [f"{O}/{path}" for path in paths]
    guesses = next_urls(steps, count)
    assert len(guesses) <= count
    assert len({*guesses, *steps[-1:]}) == len(guesses) + len(steps[-1:])
    assert all(guess.startswith(f"{O}/") for guess in guesses)


@given(st.integers(0, 90_000), st.integers(1, 3), st.booleans())
def test_a_counted_chain_is_guessed_right(start: int, step: int, is_padded: bool) -> None:
    """Six and eight digits can be a date as well: 200301 is followed by 200212."""
    urls = [f"{O}/a/{start + step * n:0{7 if is_padded else 1}d}" for n in range(5, -1, -1)]
    assert next_urls(urls[:3], 3) == tuple(urls[3:])


@pytest.mark.parametrize(
    ("steps", "last_url", "left"),
    [
        (["/a/41", "/a/40"], "", 39),
        (["/a/041", "/a/040"], "", 39),
        (["/a/2", "/a/1"], "", 0),
        (["/a?page=30", "/a?page=20"], "", None),
        (["/a?page=40", "/a?page=30", "/a?page=20"], "", 1),
        (["/a?page=2", "/a?page=3"], "/a?page=9", 6),
        (["/a?page=2", "/a?page=3"], "/a?page=2", 0),
        (["/a?page=2", "/a?page=3"], "/b?page=9", None),
        (["/a?page=2", "/a?page=3"], "", None),
        (["/2003/11", "/2003/10"], "", None),
        (["/200311", "/200310"], "", None),
        (["/a/41"], "", None),
        (["/a/x", "/a/y"], "", None),
    ],
)
def test_what_is_left_shows_in_numbers_alone(steps: list[str], last_url: str, left: int | None) -> None:
    """Numbers that go down end at 1, those that go up where the last page is known; else nobody knows."""
    urls = [f"http://o.test{each}" for each in steps]
    assert count_left(urls, f"http://o.test{last_url}" if last_url else "") == left


def months(*names: str) -> list[str]:
    return [f"{O}/{name}/feed.atom" for name in names]


@pytest.mark.parametrize(
    ("attached", "guesses"),
    [
        ([40, 39, 38], [40]),
        ([40], [40]),
        ([39, 38], [40, 39]),
        ([39], []),
        ([38, 37], [40, 39, 38]),
        ([37, 36], []),  # more than three
        ([42, 41], []),  # already behind what is stored
        ([20, 10], []),
        ([31, 21, 11], [31]),
        ([41, 40, 39], [40]),  # stored, and of another format than the feed's (R23)
    ],
)
def test_where_the_newest_is_missing_what_is_stored_tells_how_they_count(
    attached: Sequence[int], guesses: Sequence[int]
) -> None:
    """R34: up to the newest of the stored chain, which goes on behind it."""
    found = guesses_behind([archive(41)], [archive(number) for number in attached])
    assert list(found) == [archive(number) for number in guesses]


def a_chain(newest: int, *, without: Sequence[int] = ()) -> dict[str, Arrival]:
    """Archives from the newest to 1, without some of them."""
    publisher = numbered(newest)
    found = [publisher(archive(number)) for number in range(newest, 0, -1) if number not in without]
    return {each.url: each for each in found if isinstance(each, Arrival)}


def walked(
    documents: Mapping[str, Arrival | Note], newest: int, **options: object
) -> tuple[Walk, list[str], Ending]:
    """Walk to the end, one document at a time; return also what was asked for."""
    asked = []

    def answer(url: str) -> Arrival | Note:
        asked.append(url)
        return documents.get(url) or gone(url)

    walk = a_walk(an_arrival(FEED, archive(newest)), look_ahead=False, **options)  # type: ignore[arg-type]
    return walk, asked, finish(walk, answer)


def gone(url: str) -> Note:
    return DocumentUnavailable(url, reason="publisher-status")


@pytest.mark.parametrize(
    "what",
    [
        gone(archive(3)),
        DocumentUnavailable(archive(3), reason="timeout"),
        an_arrival(archive(3), family=Family.RSS),
        an_arrival(archive(3), site_id="urn:x", final_url="http://elsewhere.example/3"),
    ],
    ids=["gone", "silent", "another format", "another site"],
)
def test_whatever_makes_a_document_missing_is_a_hole(what: Arrival | Note) -> None:
    """R34; R23, R24: what stands there may be no part of the feed, and the documents behind it are."""
    walk, _, ending = walked({**a_chain(5), archive(3): what}, 5)
    note = ending.notes[0]
    assert note.kind in (DocumentUnavailable, FormatMismatch, CrossOriginUnconfirmed)
    assert (note.url, ending.end) == (archive(3), End.OLDEST)
    assert urls_of(walk) == [FEED, *map(archive, (5, 4, 2, 1))]


def test_a_second_hole_without_a_way_past_it_ends_the_walk() -> None:
    """R34: the reason of the end is told first, then what the walk had got past."""
    _, _, ending = walked(a_chain(12, without=[10, 8, 7, 6, 5]), 12)
    jump = (gone(archive(10)), JumpedHole(archive(10), goes_on_at=archive(9)))
    assert ending == Ending(None, (gone(archive(8)), *jump))


@pytest.mark.parametrize(
    ("behind", "joins"),
    [
        (an_arrival(archive(2), site_id="urn:feed"), True),
        (an_arrival(archive(2), site_id="urn:x"), False),
        (an_arrival(archive(2), site_id=""), False),
        (an_arrival(archive(2), site_id="", links={"current": FEED}), True),
        (an_arrival(archive(2), site_id="", links={"current": f"{O}/other"}), False),
        (an_arrival(archive(2), site_id="", links={"next-archive": archive(3)}), True),
        (an_arrival(archive(2), site_id="", links={"next-archive": archive(4)}), False),
        (an_arrival(archive(2), family=Family.RSS), False),
        (an_arrival(archive(2), final_url=FEED), False),
        (an_arrival(archive(2), digest=archive(4).encode(), links={"prev-archive": archive(3)}), False),
        (an_arrival(archive(2), site_id="urn:x", keys=None), True),  # stored: part of the feed before
    ],
)
def test_what_stands_behind_it_joins_if_it_says_that_it_belongs(behind: Arrival, joins: bool) -> None:
    """R34: nothing leads there, so its own word is asked for, at the feed's own site too; R17, R23."""
    walk, asked, ending = walked({**a_chain(4, without=[3, 1]), archive(2): behind}, 4)
    assert (archive(2) in urls_of(walk)) is joins
    assert ending.notes[0] == gone(archive(3))
    assert asked == [*map(archive, (4, 3, 2) if joins else (4, 3, 2, 1, 0))]


def test_what_stands_behind_may_name_the_guess_that_is_missing_too() -> None:
    """R34: of two documents side by side that are missing, the next names the second."""
    behind = an_arrival(archive(1), site_id="", links={"next-archive": archive(2)})
    walk, _, _ = walked({archive(4): an_arrival(archive(4), archive(3)), archive(1): behind}, 4)
    assert urls_of(walk)[-1] == archive(1)


def test_what_did_not_join_is_wanted_again_when_the_chain_links_to_it() -> None:
    """R34: it need not be kept for that; nothing else is wanted twice."""
    walk = a_walk(an_arrival(FEED, archive(5)), look_ahead=False)
    publisher = a_publisher(
        an_arrival(archive(5), archive(4)),
        an_arrival(archive(3), news=False),
        an_arrival(archive(2), archive(3)),
    )
    for number in (5, 4, 3, 2):
        tell(walk, archive(number), publisher)
    assert wanted_urls(walk) == [archive(3)]
    tell(walk, archive(3), publisher)
    assert urls_of(walk) == [FEED, *map(archive, (5, 2, 3))]


def test_a_link_back_into_the_hole_is_a_circle() -> None:
    """R17, R34: what could not be had is not asked for again, and the walk ends."""
    other = an_arrival(archive(3), family=Family.RSS)
    back = an_arrival(archive(2), archive(3))
    walk, asked, ending = walked({**a_chain(4), archive(3): other, archive(2): back}, 4)
    assert asked == [*map(archive, (4, 3, 2))]
    assert ending.notes[0] == ChainLoop(archive(3))
    assert urls_of(walk) == [FEED, archive(4), archive(2)]


def test_guesses_are_looked_at_one_after_the_other() -> None:
    """R34: no second one while the first may still come, and nothing ahead of it."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.arrived(archive(9), an_arrival(archive(9), archive(8)))
    walk.failed(archive(8), gone(archive(8)))
    assert (walk.hole_url, wanted_urls(walk)) == (archive(8), [archive(7)])
    walk.predicted(archive(7), archive(6))
    assert wanted_urls(walk) == [archive(7)]
    walk.arrived(archive(7), an_arrival(archive(7), archive(6)))
    assert (walk.candidate, wanted_urls(walk)) == (an_arrival(archive(7), archive(6)), [])
    assert walk.judge(is_new=True)
    assert (walk.hole_url, walk.candidate, wanted_urls(walk)) == (None, None, [archive(6)])


def test_what_was_fetched_ahead_is_used_behind_a_hole() -> None:
    """R17, R34: the look-ahead has asked for what stands there already."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.arrived(archive(9), an_arrival(archive(9), archive(8)))
    assert wanted_urls(walk) == [archive(8), archive(6)]
    walk.arrived(archive(6), an_arrival(archive(6)))
    walk.failed(archive(7), gone(archive(7)))
    walk.failed(archive(8), gone(archive(8)))
    assert walk.candidate == an_arrival(archive(6))
    walk.judge(is_new=True)
    assert walk.ending == Ending(
        End.OLDEST, (gone(archive(8)), JumpedHole(archive(8), goes_on_at=archive(6)))
    )


def test_the_time_that_is_over_behind_a_hole_is_told_as_the_hole() -> None:
    """R18, R34: the guess that is being asked for is no document that is missing."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.arrived(archive(9), an_arrival(archive(9), archive(8)))
    walk.failed(archive(8), gone(archive(8)))
    walk.stop(LimitReached(archive(7), limit="limits.walk_seconds", value=60))
    assert walk.ending == Ending(None, (gone(archive(8)),))


def test_what_stands_behind_holes_counts_towards_the_limits() -> None:
    """R18: documents that join, and the bytes also of those that do not."""
    limits = dataclasses.replace(LIMITS, documents=3)
    walk, _, ending = walked(a_chain(9, without=[8, 6, 4, 2]), 9, limits=limits)
    assert urls_of(walk) == [FEED, archive(9), archive(7)]
    assert ending.notes[0].kind is LimitReached

    alien = {archive(n): an_arrival(archive(n), site_id="urn:x", body_bytes=9000) for n in (7, 6, 5)}
    limits = dataclasses.replace(LIMITS, bytes=10_000)
    _, asked, ending = walked({**a_chain(9, without=[8]), **alien}, 9, limits=limits)
    assert asked == [*map(archive, (9, 8, 7))]
    assert ending == Ending(None, (gone(archive(8)),))


def test_a_chain_that_turns_round_behind_a_hole_asks_for_nothing_twice() -> None:
    """R17, R34: what is on the path, or was missing before, is no guess that costs a request."""
    other = an_arrival(archive(3), family=Family.RSS)
    back = an_arrival(archive(1), archive(2))
    walk, asked, ending = walked(
        {archive(4): an_arrival(archive(4), archive(3)), other.url: other, back.url: back}, 4
    )
    assert urls_of(walk) == [FEED, archive(4), archive(1)]
    assert asked == [*map(archive, (4, 3, 2, 1, 5))]  # 3 and 4 lie between, as it counts upwards now
    assert ending.notes[0] == gone(archive(2))
