"""R34: what stands behind a document that is missing, and which of it joins the walk."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from tests.core.walk.test_walk import (
    LIMITS,
    TRUE_END,
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
from wholefeed.core.walk.ahead import MAX_GUESSES, guesses_behind
from wholefeed.core.walk.chain import Arrival, Trail
from wholefeed.core.walk.walk import Walk


def months(*names: str) -> list[str]:
    return [f"{O}/{name}/feed.atom" for name in names]


@pytest.mark.parametrize(
    ("steps", "guesses"),
    [
        (["/a/41", "/a/40", "/a/39"], ["/a/38", "/a/37", "/a/36"]),
        (["/a/1", "/a/2"], ["/a/3", "/a/4", "/a/5"]),
        (["/a/2", "/a/1"], ["/a/0"]),
        (["/a/010", "/a/009"], ["/a/008", "/a/007", "/a/006"]),
        (["/?page=30", "/?page=20", "/?page=10"], ["/?page=0"]),
        (["/2004/02/", "/2004/01/"], ["/2003/12/", "/2003/11/", "/2003/10/"]),
        (["/2004/", "/2003/"], ["/2002/", "/2001/", "/2000/"]),
        (["/a/41", "/a/30"], []),  # nothing says that it goes on by elevens
        (["/may", "/april"], []),
        (["/a/41"], []),  # one URL does not tell which way it counts
    ],
)
def test_counts_on_from_the_missing_one(steps: Sequence[str], guesses: Sequence[str]) -> None:
    """R34: in the direction of the chain, across months and years, three at most."""
    found = guesses_behind([f"{O}{step}" for step in steps], [])
    assert list(found) == [f"{O}{guess}" for guess in guesses]
    assert len(found) <= MAX_GUESSES


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


def test_goes_on_behind_a_missing_document() -> None:
    """R34: the walk comes to the oldest document; that one is missing stays told."""
    walk, asked, ending = walked(a_chain(5, without=[3]), 5)
    assert urls_of(walk) == [FEED, *map(archive, (5, 4, 2, 1))]
    assert asked == [*map(archive, (5, 4, 3, 2, 1))]
    assert ending == Ending(End.OLDEST, (gone(archive(3)), JumpedHole(archive(3), goes_on_at=archive(2))))
    assert not ending.is_true_end


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


def test_gets_past_several_holes_and_tells_each() -> None:
    """R34: also past documents that are missing side by side, up to three of them."""
    walk, asked, ending = walked(a_chain(12, without=[10, 7, 6, 5]), 12)
    assert urls_of(walk) == [FEED, *map(archive, (12, 11, 9, 8, 4, 3, 2, 1))]
    assert asked == [*map(archive, range(12, 0, -1))]
    assert [note.url for note in ending.notes if note.partial] == [archive(10), archive(7)]


def test_a_hole_too_wide_ends_the_walk_after_three_guesses() -> None:
    """R34: at most three; the note is the missing document's, what was guessed is not missing."""
    walk, asked, ending = walked(a_chain(12, without=[10, 9, 8, 7]), 12)
    assert urls_of(walk) == [FEED, archive(12), archive(11)]
    assert asked == [*map(archive, (12, 11, 10, 9, 8, 7))]
    assert ending == Ending(None, (gone(archive(10)),))


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


def test_what_brings_nothing_new_does_not_join() -> None:
    """R34: by the word of whoever knows what is stored; the next guess may be another."""
    repeats = an_arrival(archive(2), news=False)
    walk, _, _ = walked({**a_chain(4, without=[3, 2]), archive(2): repeats}, 4)
    assert urls_of(walk) == [FEED, archive(4), archive(1)]


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


def test_goes_on_from_what_is_stored_where_the_newest_is_missing() -> None:
    """R34: the newest archive fails, and the stored chain goes on behind it."""
    stored = {url: dataclasses.replace(each, keys=None) for url, each in a_chain(4).items()}
    subscription = an_arrival(FEED, archive(5))
    walk = Walk(
        subscription,
        trail=Trail(relation="prev-archive"),
        limits=LIMITS,
        site_of=lambda _url: "o.test",
        attached=list(stored),
    )
    ending = finish(walk, lambda url: stored.get(url) or gone(url))
    assert ending == Ending(End.OLDEST, (gone(archive(5)), JumpedHole(archive(5), goes_on_at=archive(4))))
    assert urls_of(walk) == [FEED, *map(archive, (4, 3, 2, 1))]


def test_pages_have_no_holes() -> None:
    """R6: a page that is missing ends the trail, as ever."""
    walk = a_walk(an_arrival(FEED, archive(5)), trail=Trail(relation="prev-archive", is_paged=True))
    assert finish(walk, a_publisher(*a_chain(5, without=[3]).values())) == Ending(None, (gone(archive(3)),))


def test_a_chain_without_numbers_ends_at_its_hole() -> None:
    """R34: there is nothing to count on from, and nothing more is asked for."""
    walk = a_walk(an_arrival(FEED, f"{O}/may"))
    walk.arrived(f"{O}/may", an_arrival(f"{O}/may", f"{O}/april"))
    walk.failed(f"{O}/april", gone(f"{O}/april"))
    assert walk.ending == Ending(None, (gone(f"{O}/april"),))


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
    assert wanted_urls(walk) == [archive(8), archive(7), archive(6)]
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


def test_a_publisher_that_lacks_every_other_document_meets_the_limit() -> None:
    """R18, R34: holes make no walk endless."""

    def answer(url: str) -> Arrival | Note:
        number = int(url.rpartition("/")[2])
        return gone(url) if number % 2 else an_arrival(url, archive(number + 1))

    limits = dataclasses.replace(LIMITS, documents=20)
    walk = a_walk(an_arrival(FEED, archive(0)), limits=limits)
    ending = finish(walk, answer)
    assert len(walk.path) == 20
    assert ending.notes[0].kind is LimitReached


def test_a_whole_chain_has_no_holes() -> None:
    """R34: where all is there, nothing is guessed that is not linked."""
    walk, asked, ending = walked(a_chain(5), 5)
    assert (ending, asked) == (TRUE_END, [*map(archive, (5, 4, 3, 2, 1))])
    assert walk.hole_url is None


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
