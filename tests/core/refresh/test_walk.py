"""Walks along archive documents, with fetches in any order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.refresh.makers import GONE, HOUR, LIMITS, O, a_row, an_attempt, archive
from tests.core.refresh.walking import (
    CHAIN,
    PAGES,
    Publisher,
    WalkPlayer,
    a_publisher,
    a_walk,
    finish,
    number_archives,
    tell,
)
from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.model import Family
from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
    DeadChainLink,
    DocumentUnavailable,
    End,
    Ending,
    FormatMismatch,
    JumpedHole,
    LimitReached,
    NewerNotOlder,
    NoProgress,
    Note,
)
from wholefeed.core.refresh.arrivals import Failure, FreshDocument
from wholefeed.core.refresh.asking import Attach, Depart, Fetch, KeepDocument, Rest, TakeTurn
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import NO_PROGRESS_DOCUMENTS, Arrival, DateSpan, Trail, WalkLimits

TRUE_END = Ending(End.OLDEST)
ITSELF = Ending(End.ITSELF)


def gone(url: str) -> Note:
    return DocumentUnavailable(url, reason="publisher-status")


# From document to document


def test_follows_the_older_links_to_the_end() -> None:
    """R2; RFC 5005, 4.2."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    assert walk.fetching == [archive(3)]
    assert not walk.fetch_of(archive(3)).is_ahead
    assert finish(walk, number_archives(3)) == TRUE_END
    assert walk.urls == [FEED, archive(3), archive(2), archive(1)]
    assert walk.kept == [archive(3), archive(2), archive(1)]
    assert walk.fetching == []
    assert walk.walked.path == [1001, 1002, 1003]
    assert walk.walked.has_met(archive(3))
    assert not walk.walked.has_met(archive(4))


def test_a_feed_without_archives_is_whole_at_once() -> None:
    """R2; RFC 5005, 4.2: no archives are available."""
    walk = a_walk(an_arrival(FEED))
    assert (walk.ending, walk.requests) == (TRUE_END, [])


def test_a_document_is_kept_before_the_walk_waits_for_the_next() -> None:
    """R14: joined documents are stored for any end of the walk."""
    walk = a_walk(an_arrival(FEED, archive(2)), looks_ahead=False)
    finish(walk, number_archives(2))
    assert walk.told == [TakeTurn, Fetch, Fetch, KeepDocument, KeepDocument]


def test_a_document_is_stored_with_what_it_is_in_the_walk() -> None:
    """R13, R17: the newest archive is unsettled; later walks learn of news."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    documents = [an_arrival(archive(n), archive(n - 1), keys=[a_key("same")]) for n in (3, 2)]
    finish(walk, a_publisher(*documents, an_arrival(archive(1))))
    found = [(each.url, each.is_settled, each.brought_news, each.may_wait) for each in walk.store.kept]
    assert found == [
        (archive(3), False, True, True),
        (archive(2), True, False, True),
        (archive(1), True, True, True),
    ]
    ranks = [placement.rank for placement in walk.store.kept]
    assert ranks == sorted(ranks, key=lambda rank: rank or 0)


@pytest.mark.parametrize(
    ("documents", "ending", "path"),
    [
        pytest.param([an_arrival(archive(2), archive(2))], ITSELF, 2, id="R17 a link to itself"),
        pytest.param(
            [an_arrival(archive(2), f"{O}/again"), an_arrival(f"{O}/again", final_url=archive(2))],
            ITSELF,
            2,
            id="R17 a link to itself through a redirect",
        ),
        pytest.param(
            [an_arrival(archive(2), FEED)], Ending(None, (ChainLoop(FEED),)), 2, id="R17 a larger circle"
        ),
        pytest.param(
            [an_arrival(archive(2), archive(1)), an_arrival(archive(1), "HTTP://O.test:80/archive/./2")],
            Ending(None, (ChainLoop("HTTP://O.test:80/archive/./2"),)),
            3,
            id="R17 a circle in another spelling",
        ),
        pytest.param(
            [
                an_arrival(archive(2), archive(1), digest=b"x"),
                an_arrival(archive(1), archive(1), digest=b"x"),
            ],
            ITSELF,
            2,
            id="R17 the same body with the same link",
        ),
        pytest.param([], Ending(None, (gone(archive(2)),)), 1, id="4.1 a document that cannot be had"),
        pytest.param(
            [an_arrival(archive(2), links={"dead:prev-archive": "ftp://o.test/1"})],
            Ending(None, (DeadChainLink(archive(2), href="ftp://o.test/1"),)),
            2,
            id="R2 a link that cannot be followed",
        ),
        pytest.param(
            [an_arrival(archive(2), family=Family.RSS)],
            Ending(None, (FormatMismatch(archive(2), expected="atom", found="rss"),)),
            1,
            id="R23 another family",
        ),
        pytest.param(
            [an_arrival(archive(2), final_url="http://x.example/2", site_id="urn:x")],
            Ending(None, (CrossOriginUnconfirmed(archive(2)),)),
            1,
            id="R24 another site",
        ),
    ],
)
def test_ends(documents: list[Arrival], ending: Ending, path: int) -> None:
    """R2, R17, R23, R24; RFC 5005, 4.1 and 6."""
    walk = a_walk(an_arrival(FEED, archive(2)))
    assert finish(walk, a_publisher(*documents)) == ending
    assert len(walk.path) == path


@pytest.mark.parametrize(
    ("met_url", "ending"),
    [(archive(2), ITSELF), (FEED, Ending(None, (ChainLoop(archive(1)),)))],
    ids=["to the document itself", "to an earlier one"],
)
def test_a_redirect_back_is_a_link_back(met_url: str, ending: Ending) -> None:
    """R17: it is not followed, and counts as its target document."""
    walk = a_walk(an_arrival(FEED, archive(2)))
    walk.came(an_arrival(archive(2), archive(1)))
    walk.led_back(archive(1), met_url)
    assert (walk.ending, walk.urls) == (ending, [FEED, archive(2)])


@pytest.mark.parametrize(
    ("limits", "note", "path"),
    [
        ({"documents": 3}, LimitReached(archive(8), limit="limits.documents_per_feed", value=3), 3),
        ({"bytes": 3500}, LimitReached(archive(7), limit="limits.feed_bytes", value=3500), 4),
        ({"entries": 2}, LimitReached(archive(9), limit="limits.entries_per_feed", value=2), 2),
    ],
)
def test_stops_at_a_limit(limits: dict[str, int], note: Note, path: int) -> None:
    """R18; RFC 5005, 6."""
    walk = a_walk(an_arrival(FEED, archive(10)), limits=dataclasses.replace(LIMITS, **limits))
    assert finish(walk, number_archives(10)) == Ending(None, (note,))
    assert len(walk.path) == path


def test_a_chain_that_ends_at_its_limit_is_whole() -> None:
    """R18: a limit counts only if the chain goes on."""
    limits = WalkLimits(documents=3, bytes=3000, entries=3)
    assert finish(a_walk(an_arrival(FEED, archive(2)), limits=limits), number_archives(2)) == TRUE_END


def test_stops_when_the_time_is_over() -> None:
    """R18: joined documents stay."""
    walk = a_walk(an_arrival(FEED, archive(3)), looks_ahead=False)
    walk.came(an_arrival(archive(3), archive(2)))
    walk.early(archive(2), archive(1))
    walk.end_time()
    note = LimitReached(archive(2), limit="limits.walk_seconds", value=3600)
    assert walk.ending == Ending(None, (note,))
    assert (walk.urls, walk.kept) == ([FEED, archive(3)], [archive(3)])


def endless(url: str) -> Arrival:
    number = int(url.rpartition("/")[2])
    return an_arrival(url, archive(number + 1), keys=[a_key("always the same")])


def test_ends_where_nothing_new_comes_any_more() -> None:
    """R17; docs/faults.md row 51."""
    walk = a_walk(an_arrival(FEED, archive(1), keys=[a_key("always the same")]))
    ending = finish(walk, endless)
    assert ending == Ending(None, (NoProgress(archive(50), documents=NO_PROGRESS_DOCUMENTS),))
    assert len(walk.path) == 1 + NO_PROGRESS_DOCUMENTS


def store_chain(documents: Iterable[Arrival], **changes: object) -> list[StoredDocument]:
    return [a_row(arrival, number, **changes) for number, arrival in enumerate(documents, 1)]


def test_ends_at_the_same_place_when_those_documents_are_stored() -> None:
    """R14, R17: a later walk over the same documents learns the same."""
    documents = [an_arrival(archive(n), archive(n + 1), news=n < 3) for n in range(1, 60)]
    walk = a_walk(an_arrival(FEED, archive(1)), stored=store_chain(documents))
    assert walk.ending == Ending(None, (NoProgress(archive(52), documents=NO_PROGRESS_DOCUMENTS),))


def test_a_chain_that_ends_after_many_documents_without_news_is_whole() -> None:
    """R17: only a chain that goes on lacks progress."""

    def publisher(url: str) -> Arrival:
        arrival = endless(url)
        return dataclasses.replace(arrival, links={}) if url == archive(50) else arrival

    subscription = an_arrival(FEED, archive(1), keys=[a_key("always the same")])
    assert finish(a_walk(subscription), publisher) == TRUE_END


# Stored documents


def test_stored_documents_need_no_network() -> None:
    """R2, R14: in the chain's order and number; a detached one is attached again."""
    rows = store_chain([an_arrival(archive(n), archive(n - 1)) for n in (3, 2)])
    rows.append(a_row(an_arrival(archive(1)), 3, rank=None))
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows)
    assert (walk.ending, walk.walked.path) == (TRUE_END, [1, 2, 3])
    (attach,) = walk.requests
    assert isinstance(attach, Attach)
    assert attach.ranks.keys() == {3}


def test_a_new_archive_is_fetched_in_front_of_stored_ones() -> None:
    """R13: it costs one request, and stands before all of them."""
    rows = store_chain([an_arrival(archive(2), archive(1)), an_arrival(archive(1))])
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows)
    assert finish(walk, number_archives(3)) == TRUE_END
    assert (walk.fetched, walk.walked.path) == ([archive(3)], [1001, 1, 2])
    (placement,) = walk.store.kept
    assert placement.rank is not None
    assert placement.rank < 1


def test_a_document_is_found_under_another_spelling_of_its_url() -> None:
    """R17: the stored spelling differs from the linked one."""
    rows = [a_row(an_arrival(archive(1)), 1)]
    walk = a_walk(an_arrival(FEED, "HTTP://O.test:80/archive/./1"), stored=rows)
    assert (walk.ending, walk.walked.path, walk.fetched) == (TRUE_END, [1], [])


def test_many_stored_documents_leave_other_tasks_a_turn() -> None:
    """docs/design.md#the-walk: a walk that never waits would block all tasks."""
    documents = [an_arrival(archive(n), archive(n - 1) if n > 1 else None) for n in range(150, 0, -1)]
    walk = a_walk(an_arrival(FEED, archive(150)), stored=store_chain(documents))
    assert (walk.ending, walk.told) == (TRUE_END, [Rest, Rest])


def test_a_document_that_waits_for_its_time_is_not_fetched() -> None:
    """R14: it stays missing for its former reason."""
    missing = [an_attempt(archive(2), reason="timeout")]
    walk = a_walk(an_arrival(FEED, archive(2)), missing=missing)
    assert walk.ending == Ending(None, (DocumentUnavailable(archive(2), reason="timeout"),))
    assert (walk.fetched, walk.walked.failures) == ([], {})
    walk = a_walk(an_arrival(FEED, archive(2)), missing=missing, now=1_700_000_000 + HOUR)
    assert walk.fetching == [archive(2)]
    assert a_walk(an_arrival(FEED, archive(2)), missing=missing, is_forced=True).fetching == [archive(2)]


# Ahead of the path


def test_guesses_after_two_steps_and_more_with_each_hit() -> None:
    """docs/design.md#look-ahead: a window of two that grows with hits. One far guess tries the chain, then
    those before it are fetched.
    """
    walk, publisher = a_walk(an_arrival(FEED, archive(41))), number_archives(41)
    assert walk.fetching == [archive(41)]
    tell(walk, archive(41), publisher)
    assert walk.fetching == [archive(n) for n in (40, 38)]
    assert [walk.fetch_of(url).is_ahead for url in walk.fetching] == [False, True]
    tell(walk, archive(38), publisher)
    assert walk.fetching == [archive(n) for n in (40, 39, 36)]
    tell(walk, archive(40), publisher)
    tell(walk, archive(39), publisher)
    assert walk.fetching == [archive(n) for n in (37, 36)]
    tell(walk, archive(36), publisher)
    assert walk.fetching == [archive(n) for n in (37, 28)]
    tell(walk, archive(28), publisher)
    assert walk.fetching == [archive(n) for n in (37, *range(35, 28, -1), 22)]


def test_a_wrong_guess_ends_the_guessing() -> None:
    """After a guess without a link to it, only links are fetched."""
    walk = a_walk(an_arrival(FEED, archive(41)))
    walk.came(an_arrival(archive(41), archive(40)))
    walk.came(an_arrival(archive(40), archive(30)))
    assert walk.fetched == [archive(n) for n in (41, 40, 38, 30)]
    walk.came(an_arrival(archive(30), archive(29)))
    assert walk.fetched == [archive(n) for n in (41, 40, 38, 30, 29)]


def test_a_guess_that_failed_is_not_asked_for_again() -> None:
    """An answered URL is never requested again."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    walk.came(an_arrival(archive(3), archive(2)))
    walk.failed(archive(1))
    walk.came(an_arrival(archive(2), archive(1)))
    assert walk.fetching == [archive(0)]  # a document may follow the hole (R34)
    walk.failed(archive(0))
    assert walk.ending == Ending(None, (gone(archive(1)),))


def test_never_guesses_what_is_stored() -> None:
    """docs/design.md#the-walk: stored documents cost no network."""
    rows = [a_row(an_arrival(archive(n), archive(n - 1)), n) for n in (38, 36)]
    walk = a_walk(an_arrival(FEED, archive(41)), stored=rows)
    walk.came(an_arrival(archive(41), archive(40)))
    assert walk.fetching == [archive(n) for n in (40, 39, 37, 34)]


def test_a_guess_waits_for_its_time_too() -> None:
    """R14: look-ahead skips documents in their pause."""
    walk = a_walk(an_arrival(FEED, archive(41)), missing=[an_attempt(archive(38))])
    walk.came(an_arrival(archive(41), archive(40)))
    assert walk.fetching == [archive(40)]


def test_guesses_stay_within_the_documents_allowed() -> None:
    """R18."""
    limits = dataclasses.replace(LIMITS, documents=4)
    walk = a_walk(an_arrival(FEED, archive(9)), limits=limits)
    walk.came(an_arrival(archive(9), archive(8)))
    assert walk.fetching == [archive(8), archive(7)]


def test_what_is_fetched_ahead_counts_towards_the_bytes() -> None:
    """R18; docs/design.md#the-walk."""
    limits = dataclasses.replace(LIMITS, bytes=5000)
    walk = a_walk(an_arrival(FEED, archive(9)), limits=limits)
    walk.came(an_arrival(archive(9), archive(8)))
    assert walk.fetching == [archive(8), archive(6)]
    walk.came(an_arrival(archive(6), archive(5), body_bytes=9000))
    assert walk.fetching == [archive(8)]


def test_what_came_ahead_and_is_not_on_the_path_is_not_kept() -> None:
    """docs/design.md#look-ahead: it counts only after the chain links to it."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.came(an_arrival(archive(9), archive(8)))
    walk.came(an_arrival(archive(6), archive(5)))
    walk.came(an_arrival(archive(8)))
    assert (walk.ending, walk.kept) == (TRUE_END, [archive(9), archive(8)])
    assert walk.store.come.keys() == {archive(6)}


def test_a_document_is_fetched_by_the_spelling_it_is_being_fetched_by() -> None:
    """R17: two spellings of one URL are one document, fetched once."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    walk.came(an_arrival(archive(3), archive(2)))
    walk.came(an_arrival(archive(2), "HTTP://O.test/archive/./1"))
    assert walk.fetching == [archive(1)]
    assert walk.fetched == [archive(3), archive(2), archive(1)]


@pytest.mark.parametrize("newest_first", [True, False])
def test_look_ahead_shortens_a_numbered_chain(newest_first: bool) -> None:
    """docs/design.md#the-walk: a walk is a chain of round trips."""
    walk, publisher, rounds = a_walk(an_arrival(FEED, archive(100))), number_archives(100), 0
    while walk.ending is None:
        rounds += 1
        for url in walk.fetching if newest_first else walk.fetching[::-1]:
            tell(walk, url, publisher)
    assert (walk.ending, len(walk.path)) == (TRUE_END, 101)
    assert rounds <= 22


ENDS = {
    "down to 1": ([f"/{n}" for n in range(30, 0, -1)], 0),
    "down to 1, padded": ([f"/{n:03d}" for n in range(30, 0, -1)], 0),
    "down to 0": ([f"/{n}" for n in range(30, -1, -1)], 0),
    "down to 10": ([f"/{n}" for n in range(40, 9, -1)], 1),
    "up": ([f"/{n}" for n in range(1, 31)], 1),
    "by ten, down": ([f"/{n}" for n in range(300, 0, -10)], 0),
    "by ten, up": ([f"/{n}" for n in range(10, 310, 10)], 1),
    "months": ([f"/{2003 - n // 12}/{12 - n % 12:02d}" for n in range(30)], 1),
    "days": ([f"/2003/03/{n:02d}" for n in range(30, 0, -1)], 1),
    "years": ([f"/{n}" for n in range(2026, 1996, -1)], 1),
}
"""Archives of a chain, and the count of requests allowed beyond its end."""


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize(("paths", "beyond"), ENDS.values(), ids=ENDS.keys())
def test_at_most_one_request_goes_beyond_the_end_of_a_chain(
    paths: list[str], beyond: int, newest_first: bool
) -> None:
    """docs/design.md#look-ahead: no number shows a chain's end; nothing is below 1."""
    urls = [O + path for path in paths]
    publisher = a_publisher(*map(an_arrival, urls, [*urls[1:], None]))
    walk = a_walk(an_arrival(FEED, urls[0]), window=4)
    while walk.ending is None:
        for url in walk.fetching if newest_first else walk.fetching[::-1]:
            if walk.ending is None:
                tell(walk, url, publisher)
    assert (walk.ending, len(walk.path)) == (TRUE_END, 1 + len(urls))
    assert len(walk.fetched) - len(urls) <= beyond


# Early links (R0)


def test_the_early_link_of_a_document_that_fails_is_dropped() -> None:
    """R0: the prediction of a failed document causes no request."""
    walk = a_walk(an_arrival(FEED, f"{O}/c"))
    walk.early(f"{O}/c", f"{O}/b")
    walk.failed(f"{O}/b", Failure(slug="incomplete"))
    walk.early(f"{O}/c", f"{O}/b")
    assert walk.fetching == [f"{O}/c"]
    assert walk.fetched == [f"{O}/c", f"{O}/b"]


def test_a_document_is_fetched_from_an_early_link_while_the_one_before_still_arrives() -> None:
    """R0: an early link is a prediction."""
    walk = a_walk(an_arrival(FEED, f"{O}/b"), looks_ahead=False)
    walk.early(f"{O}/b", f"{O}/a")
    assert walk.fetching == [f"{O}/b", f"{O}/a"]
    assert walk.fetch_of(f"{O}/a").is_ahead
    walk.early(f"{O}/a", f"{O}/0")
    assert walk.fetching == [f"{O}/b", f"{O}/a", f"{O}/0"]
    walk.came(an_arrival(f"{O}/a", f"{O}/0"))
    walk.came(an_arrival(f"{O}/b", f"{O}/a"))
    assert walk.fetching == [f"{O}/0"]
    assert walk.urls == [FEED, f"{O}/b", f"{O}/a"]


def test_an_early_link_lets_the_guessing_begin() -> None:
    """R0: look-ahead begins before the document has arrived whole."""
    walk = a_walk(an_arrival(FEED, archive(41)))
    walk.early(archive(41), archive(40))
    assert walk.fetching == [archive(n) for n in (41, 40)]
    walk.came(an_arrival(archive(40), archive(39)))
    assert walk.fetched == [archive(n) for n in (41, 40, 39, 38)]


def test_an_early_link_back_is_not_followed() -> None:
    """R0, R17: a predicted link to a document of the path costs no request."""
    walk = a_walk(an_arrival(FEED, f"{O}/b"))
    walk.early(f"{O}/b", FEED)
    assert walk.fetching == [f"{O}/b"]


def test_an_early_link_to_what_waits_or_is_stored_is_not_followed() -> None:
    """R0, R14: neither is fetched before its time."""
    rows = [a_row(an_arrival(archive(2), archive(1)), 2)]
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows, missing=[an_attempt(f"{O}/hole")])
    walk.early(archive(3), archive(2))
    walk.early(archive(3), f"{O}/hole")
    assert walk.fetching == [archive(3)]


def test_an_early_link_waits_for_the_turn_of_the_walk() -> None:
    """R0: looking again at the newest archive needs no turn. A document named in its head is fetched after
    it: then the walk takes its turn, and reports additions.
    """
    rows = [a_row(an_arrival(archive(3)), 3, is_settled=False, checked_at=0.0)]
    walk = a_walk(an_arrival(FEED, archive(3)), stored=rows, looks_ahead=False)
    walk.early(archive(3), archive(2))
    assert (walk.told, walk.fetching) == ([Fetch], [archive(3)])
    walk.came(an_arrival(archive(3), archive(2), digest=b"grown"))
    assert walk.fetching == [archive(2)]
    assert walk.told == [Fetch, Depart, KeepDocument, TakeTurn, Fetch]
    walk.early(archive(2), f"{O}/older")
    assert walk.fetching == [archive(2), f"{O}/older"]
    assert walk.told.count(TakeTurn) == 1


# Random link graphs

NUMBERED = [archive(n) for n in range(12)]
TARGETS = [FEED, *NUMBERED, f"{O}/x", f"{O}/y", "http://far.example/1", "HTTP://O.test:80/archive/./5"]
NAMES = "abcdefgh"
OLDER = dataclasses.replace(PAGES, relation="prev-archive")
TRAILS = [
    CHAIN,
    CHAIN,
    OLDER,
    dataclasses.replace(CHAIN, is_tentative=True),
    dataclasses.replace(OLDER, is_closing=True),
    dataclasses.replace(OLDER, first_relation="self"),
]


@st.composite
def contents(draw: st.DrawFn, url: str) -> Arrival | Failure:
    """Content of one URL; mostly an archive that links to the next lower number."""
    if draw(st.integers(0, 15)) == 0:
        return GONE
    number = url.rpartition("/")[2]
    lower = archive(int(number) - 1) if number.isdecimal() and number != "0" else None
    older = draw(st.sampled_from([lower] * 8 + [None, *TARGETS]))
    links = draw(
        st.fixed_dictionaries(
            {}, optional={"self": st.sampled_from(TARGETS), "current": st.sampled_from(TARGETS)}
        )
    )
    if older is None and draw(st.booleans()):
        links = links | {"dead:prev-archive": "ftp://o.test/"}
    return an_arrival(
        url,
        older,
        family=draw(st.sampled_from([Family.ATOM] * 9 + [Family.RSS])),
        site_id=draw(st.sampled_from(["urn:feed", "urn:feed", "", "urn:x"])),
        links=links,
        digest=draw(st.sampled_from([b"", b"", b"", b"one", b"two"])),
        body_bytes=draw(st.integers(0, 3000)),
        keys=[a_key(name) for name in draw(st.lists(st.sampled_from(NAMES), max_size=3))] or (),
    )


@st.composite
def webs(draw: st.DrawFn) -> Publisher:
    at = {document_key(url): draw(contents(url)) for url in TARGETS}
    moved = draw(st.dictionaries(st.sampled_from(TARGETS), st.sampled_from(TARGETS), max_size=3))
    redirects = {document_key(url): target for url, target in moved.items()}

    def fetch(url: str) -> Arrival | Failure:
        final = redirects.get(document_key(url), url)
        content = at.get(document_key(final), GONE)
        if isinstance(content, Failure):
            return content
        return dataclasses.replace(content, url=url, final_url=final)

    return fetch


def answer_in_any_order(walk: WalkPlayer, publisher: Publisher, data: st.DataObject) -> None:
    """Let fetches end in any order, with right and wrong early links."""
    while walk.ending is None:
        url = data.draw(st.sampled_from(walk.fetching), label="next response")
        answer = publisher(url)
        if isinstance(answer, Arrival) and data.draw(st.booleans(), label="early link"):
            truth = answer.links.get("prev-archive", archive(3))
            walk.early(url, data.draw(st.sampled_from([truth, truth, archive(4)]), label="early link"))
            if data.draw(st.booleans(), label="still arriving"):
                continue
        respond(walk, url, answer)


def respond(walk: WalkPlayer, url: str, answer: Arrival | FreshDocument | Failure) -> None:
    """Let a fetch end; a redirect to a document of the path is not followed (R17)."""
    if (
        isinstance(answer, Arrival)
        and answer.final_url != url
        and walk.fetch_of(url).is_met(answer.final_url)
    ):
        walk.led_back(url, answer.final_url)
    else:
        tell(walk, url, lambda _url: answer)


@given(webs(), st.integers(1, 8), st.integers(1, 15_000), st.integers(1, 20), st.data())
def test_every_walk_ends_within_its_limits_and_the_same_with_look_ahead_and_without(
    publisher: Publisher, documents: int, body_bytes: int, entries: int, data: st.DataObject
) -> None:
    """R17, R18; docs/design.md#the-shape-of-the-code: no URL is requested twice; look-ahead changes no
    result.
    """
    limits = WalkLimits(documents=documents, bytes=body_bytes, entries=entries)
    subscription = dataclasses.replace(an_arrival(FEED, archive(11)), hops=(f"{O}/hop",))
    trail = data.draw(st.sampled_from(TRAILS), label="trail")
    known = [a_key(name) for name in data.draw(st.sets(st.sampled_from(NAMES)), label="stored entries")]
    plain = a_walk(subscription, limits=limits, looks_ahead=False, trail=trail, known=known)
    while plain.ending is None:
        respond(plain, plain.fetching[0], publisher(plain.fetching[0]))
    window = data.draw(st.integers(0, 8), label="window")
    ahead = a_walk(subscription, limits=limits, window=window, trail=trail, known=known)
    answer_in_any_order(ahead, publisher, data)

    twice = [url for url in ahead.fetched if ahead.fetched.count(url) > 1]
    assert {*twice} <= {*ahead.store.dropped}, "only what was let go behind a hole is fetched again"
    assert [(document_key(each.url), each.digest) for each in ahead.path] == [
        (document_key(each.url), each.digest) for each in plain.path
    ]
    assert ahead.ending == plain.ending
    assert (ahead.walked.path, ahead.walked.notes) == (plain.walked.path, plain.walked.notes)
    assert ahead.walked.failures.keys() <= {*ahead.fetched}
    assert [dataclasses.replace(each, url=document_key(each.url)) for each in ahead.store.kept] == [
        dataclasses.replace(each, url=document_key(each.url)) for each in plain.store.kept
    ]
    assert len(ahead.path) <= documents
    assert ahead.path[:-1] == [] or sum(each.body_bytes for each in ahead.path[:-1]) < body_bytes
    assert ahead.path[:-1] == [] or sum(each.entries for each in ahead.path[:-1]) < entries
    assert len({document_key(arrival.final_url) for arrival in ahead.path}) == len(ahead.path)


# Behind a missing document (R34)


def a_chain(newest: int, *, without: Sequence[int] = ()) -> dict[str, Arrival | Failure]:
    """Archives from the newest to 1, some missing."""
    publisher = number_archives(newest)
    found = [publisher(archive(number)) for number in range(newest, 0, -1) if number not in without]
    return {each.url: each for each in found if isinstance(each, Arrival)}


def walk_along(documents: dict[str, Arrival | Failure], newest: int, **options: object) -> WalkPlayer:
    """Walk to the end, one document at a time."""
    walk = a_walk(an_arrival(FEED, archive(newest)), looks_ahead=False, **options)  # type: ignore[arg-type]
    finish(walk, lambda url: documents.get(url, GONE))
    return walk


@pytest.mark.parametrize(
    "what",
    [
        GONE,
        Failure(slug="timeout"),
        an_arrival(archive(3), family=Family.RSS),
        an_arrival(archive(3), site_id="urn:x", final_url="http://elsewhere.example/3"),
    ],
    ids=["gone", "silent", "another format", "another site"],
)
def test_whatever_makes_a_document_missing_is_a_hole(what: Arrival | Failure) -> None:
    """R34; R23, R24: even a foreign document, since the feed may go on behind."""
    walk = walk_along({**a_chain(5), archive(3): what}, 5)
    assert walk.ending is not None
    note = walk.ending.notes[0]
    assert note.kind in (DocumentUnavailable, FormatMismatch, CrossOriginUnconfirmed)
    assert (note.url, walk.ending.end) == (archive(3), End.OLDEST)
    assert walk.urls == [FEED, *map(archive, (5, 4, 2, 1))]


def test_a_second_hole_without_a_way_past_it_ends_the_walk() -> None:
    """R34: the end's reason comes first, then the holes passed before."""
    walk = walk_along(a_chain(12, without=[10, 8, 7, 6, 5]), 12)
    jump = (gone(archive(10)), JumpedHole(archive(10), goes_on_at=archive(9)))
    assert walk.ending == Ending(None, (gone(archive(8)), *jump))


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
        (an_arrival(archive(2), keys=[a_key(archive(4))]), False),  # it brings nothing new
        (an_arrival(archive(2), keys=[a_key(archive(4), 9.0)]), False),  # nor does an update
    ],
)
def test_what_stands_behind_it_joins_if_it_says_that_it_belongs(behind: Arrival, joins: bool) -> None:
    """R34: no link leads there, so the document itself must say so, at the feed's own site too; R17, R23."""
    walk = walk_along({**a_chain(4, without=[3, 1]), archive(2): behind}, 4)
    assert (archive(2) in walk.urls) is joins
    assert (walk.store.dropped == [archive(2)]) is not joins
    assert walk.ending is not None
    assert walk.ending.notes[0] == gone(archive(3))
    assert walk.fetched == [*map(archive, (4, 3, 2) if joins else (4, 3, 2, 1, 0))]


@pytest.mark.parametrize(
    ("rank", "detached_at", "joins"),
    [
        pytest.param(2, None, True, id="part of the feed"),
        pytest.param(None, 5.0, False, id="replaced"),
        pytest.param(None, 9.0, True, id="left with the one before the hole"),
    ],
)
def test_what_is_stored_behind_a_hole_joins_if_it_is_part_of_the_feed(
    rank: int | None, detached_at: float | None, joins: bool
) -> None:
    """R34, R15: it said so before; a replaced document stays away."""
    four = a_row(an_arrival(archive(4), archive(3)), 4, rank=None, detached_at=9.0)
    two = a_row(an_arrival(archive(2), site_id="urn:x"), 2, rank=rank, detached_at=detached_at)
    walk = walk_along({}, 4, stored=[four, two])
    assert (archive(2) in walk.urls) is joins
    assert archive(2) not in walk.fetched


def test_what_stands_behind_may_name_the_guess_that_is_missing_too() -> None:
    """R34: after two adjacent missing documents, the next names the second."""
    behind = an_arrival(archive(1), site_id="", links={"next-archive": archive(2)})
    walk = walk_along({archive(4): an_arrival(archive(4), archive(3)), archive(1): behind}, 4)
    assert walk.urls[-1] == archive(1)


def test_what_did_not_join_is_fetched_again_when_the_chain_links_to_it() -> None:
    """R34: the unjoined document is not stored; nothing else is fetched twice."""
    walk = a_walk(an_arrival(FEED, archive(5)), looks_ahead=False, known=[a_key("old")])
    old = an_arrival(archive(3), keys=[a_key("old")])
    publisher = a_publisher(an_arrival(archive(5), archive(4)), old, an_arrival(archive(2), archive(3)))
    finish(walk, publisher)
    assert walk.fetched == [*map(archive, (5, 4, 3, 2, 3))]
    assert walk.store.dropped == [archive(3)]
    assert walk.urls == [FEED, *map(archive, (5, 2, 3))]


def test_a_link_back_into_the_hole_is_a_circle() -> None:
    """R17, R34: a failed document is not requested again."""
    other = an_arrival(archive(3), family=Family.RSS)
    back = an_arrival(archive(2), archive(3))
    walk = walk_along({**a_chain(4), archive(3): other, archive(2): back}, 4)
    assert walk.fetched == [*map(archive, (4, 3, 2))]
    assert walk.ending is not None
    assert walk.ending.notes[0] == ChainLoop(archive(3))
    assert walk.urls == [FEED, archive(4), archive(2)]


def test_guesses_are_looked_at_one_after_the_other() -> None:
    """R34: nothing else while the first may still come."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.came(an_arrival(archive(9), archive(8)))
    walk.failed(archive(6))  # the guess of the look-ahead
    walk.failed(archive(8))
    assert walk.fetching == [archive(7)]
    walk.early(archive(7), archive(6))
    walk.early(archive(7), archive(5))
    assert walk.fetching == [archive(7)]
    walk.came(an_arrival(archive(7), archive(5)))
    assert walk.fetching == [archive(5)]
    assert walk.urls[-1] == archive(7)


def test_what_was_fetched_ahead_is_used_behind_a_hole() -> None:
    """R17, R34: look-ahead has already fetched the document there."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.came(an_arrival(archive(9), archive(8)))
    assert walk.fetching == [archive(8), archive(6)]
    walk.came(an_arrival(archive(6)))
    walk.failed(archive(7))
    walk.failed(archive(8))
    assert walk.fetched == [*map(archive, (9, 8, 6, 7, 4))]
    assert walk.ending == Ending(
        End.OLDEST, (gone(archive(8)), JumpedHole(archive(8), goes_on_at=archive(6)))
    )


def test_what_joined_before_is_stored_before_one_behind_a_hole_is_judged() -> None:
    """R34: else its entries would count as new."""
    walk = walk_along({**a_chain(4, without=[3]), archive(2): an_arrival(archive(2), keys=[a_key("x")])}, 4)
    asked = [type(request).__name__ for request in walk.requests]
    assert asked.index("KeepDocument") < asked.index("FindKnown")


def test_a_hole_that_waits_is_passed_by_stored_documents_alone() -> None:
    """R14, R34: no request goes behind it before its time."""
    missing = [an_attempt(archive(3))]
    documents = a_chain(4, without=[3])
    walk = walk_along(documents, 4, missing=missing)
    assert (walk.fetched, walk.urls) == ([archive(4)], [FEED, archive(4)])
    stored = [a_row(an_arrival(archive(2), archive(1)), 2)]
    walk = walk_along(documents, 4, missing=missing, stored=stored)
    assert (walk.fetched, walk.urls[2:]) == ([archive(4), archive(1)], [archive(2), archive(1)])


def test_the_time_that_is_over_behind_a_hole_is_told_as_the_hole() -> None:
    """R18, R34: the requested guess is not a missing document."""
    walk = a_walk(an_arrival(FEED, archive(9)))
    walk.came(an_arrival(archive(9), archive(8)))
    walk.failed(archive(8))
    walk.end_time()
    assert walk.ending == Ending(None, (gone(archive(8)),))


def test_what_stands_behind_holes_counts_towards_the_limits() -> None:
    """R18: joined documents, and the bytes of unjoined ones too."""
    limits = dataclasses.replace(LIMITS, documents=3)
    walk = walk_along(a_chain(9, without=[8, 6, 4, 2]), 9, limits=limits)
    assert walk.urls == [FEED, archive(9), archive(7)]
    assert walk.ending is not None
    assert walk.ending.notes[0].kind is LimitReached

    alien = {archive(n): an_arrival(archive(n), site_id="urn:x", body_bytes=9000) for n in (7, 6, 5)}
    limits = dataclasses.replace(LIMITS, bytes=10_000)
    walk = walk_along({**a_chain(9, without=[8]), **alien}, 9, limits=limits)
    assert walk.fetched == [*map(archive, (9, 8, 7))]
    assert walk.ending == Ending(None, (gone(archive(8)),))


def test_a_chain_that_turns_round_behind_a_hole_asks_for_nothing_twice() -> None:
    """R17, R34: a document on the path, or missing before, costs no guess."""
    other = an_arrival(archive(3), family=Family.RSS)
    back = an_arrival(archive(1), archive(2))
    walk = walk_along({archive(4): an_arrival(archive(4), archive(3)), other.url: other, back.url: back}, 4)
    assert walk.urls == [FEED, archive(4), archive(1)]
    assert walk.fetched == [*map(archive, (4, 3, 2, 1, 5))]  # 3 and 4 lie between, as it counts upwards now
    assert walk.ending is not None
    assert walk.ending.notes[0] == gone(archive(2))


# Supposed chains (R4)

NEW, OLD = DateSpan(10, 20), DateSpan(1, 9)
SUPPOSED = Trail(relation="prev", is_tentative=True)


def a_dated(url: str, span: DateSpan | None, **links: str) -> Arrival:
    return dataclasses.replace(an_arrival(url, links=links), span=span)


@pytest.mark.parametrize(
    ("subscription", "target", "is_chain"),
    [
        pytest.param(NEW, OLD, True, id="older"),
        pytest.param(OLD, NEW, False, id="newer"),
        pytest.param(NEW, DateSpan(1, 30), True, id="an old entry was updated"),
        pytest.param(NEW, NEW, True, id="as old"),
        pytest.param(None, NEW, True, id="undated"),
        pytest.param(OLD, None, True, id="undated target"),
    ],
)
def test_a_bare_link_counts_only_if_what_it_leads_to_is_not_newer(
    subscription: DateSpan | None, target: DateSpan | None, is_chain: bool
) -> None:
    """R4."""
    walk = a_walk(a_dated(FEED, subscription, prev=archive(2)), trail=SUPPOSED)
    ending = finish(walk, a_publisher(a_dated(archive(2), target)))
    doubted = Ending(None, (NewerNotOlder(archive(2)),))
    assert (ending, len(walk.path)) == ((TRUE_END, 2) if is_chain else (doubted, 1))


def test_only_the_first_document_of_a_tentative_chain_is_doubted() -> None:
    """R4."""
    walk = a_walk(a_dated(FEED, NEW, prev=archive(2)), trail=SUPPOSED)
    documents = [a_dated(archive(2), OLD, prev=archive(1)), a_dated(archive(1), DateSpan(5, 30))]
    assert (finish(walk, a_publisher(*documents)), len(walk.path)) == (TRUE_END, 3)


def test_one_relation_leads_through_a_chain() -> None:
    """R4: the first of `prev` and `previous`; among pages they are one."""
    walk = a_walk(an_arrival(FEED, links={"previous": archive(2)}), trail=Trail(relation="previous"))
    ending = finish(walk, a_publisher(an_arrival(archive(2), links={"prev": archive(1)})))
    assert (ending, len(walk.path)) == (TRUE_END, 2)
