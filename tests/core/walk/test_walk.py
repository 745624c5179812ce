from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    LimitReached,
    NoProgress,
    Note,
)
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.ahead import Want
from wholefeed.core.walk.chain import NO_PROGRESS_DOCUMENTS, Arrival, Trail, WalkLimits
from wholefeed.core.walk.walk import Walk, settle_path
from wholefeed.fetch.base import site_of

O = "http://o.test"  # noqa: E741
TRUE_END = Ending(End.OLDEST)
ITSELF = Ending(End.ITSELF)
CHAIN = Trail(relation="prev-archive")
PAGES = Trail(relation="prev-archive", is_paged=True)
TRAILS = [
    CHAIN,
    CHAIN,
    PAGES,
    dataclasses.replace(CHAIN, is_tentative=True),
    dataclasses.replace(PAGES, is_closing=True),
    dataclasses.replace(PAGES, first_relation="self"),
]
LIMITS = WalkLimits(documents=200, bytes=10**9, entries=10**6)


def archive(n: int | str) -> str:
    return f"{O}/archive/{n}"


def a_walk(
    subscription: Arrival,
    *,
    limits: WalkLimits = LIMITS,
    look_ahead: bool = True,
    known: Callable[[str], bool] = lambda _url: False,
    max_window: int = 8,
    trail: Trail = CHAIN,
) -> Walk:
    return Walk(
        subscription,
        trail=trail,
        limits=limits,
        site_of=site_of,
        look_ahead=look_ahead,
        known=known,
        max_window=max_window,
    )


def finish(walk: Walk, publisher: Callable[[str], Arrival | Note]) -> Ending:
    """Answer what is wanted, the path's document always first, until the walk ends."""
    while walk.ending is None:
        tell(walk, walk.wanted[0].url, publisher)
    return walk.ending


def tell(walk: Walk, url: str, publisher: Callable[[str], Arrival | Note]) -> None:
    answer = publisher(url)
    if isinstance(answer, Note):
        walk.failed(url, answer)
    else:
        walk.arrived(url, answer)
    while walk.candidate is not None:
        walk.judge(is_new=walk.candidate.news)


def a_publisher(*documents: Arrival) -> Callable[[str], Arrival | Note]:
    by_url = {document.url: document for document in documents}
    return lambda url: by_url.get(url) or DocumentUnavailable(url, reason="publisher-status")


def numbered(count: int) -> Callable[[str], Arrival | Note]:
    """A publisher of archives `count` to 1."""
    return a_publisher(
        *(an_arrival(archive(n), archive(n - 1) if n > 1 else None) for n in range(1, count + 1))
    )


def urls_of(walk: Walk) -> list[str]:
    return [arrival.url for arrival in walk.path]


def test_follows_the_older_links_to_the_end() -> None:
    """R2; RFC 5005, 4.2."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    assert walk.wanted == (Want(archive(3), is_guess=False),)
    assert finish(walk, numbered(3)) == TRUE_END
    assert urls_of(walk) == [FEED, archive(3), archive(2), archive(1)]
    assert wanted_urls(walk) == []
    assert walk.news(archive(3))
    assert not walk.news(archive(4))


def test_a_feed_without_archives_is_whole_at_once() -> None:
    """R2; RFC 5005, 4.2: unless there are no archives available."""
    assert a_walk(an_arrival(FEED)).ending == TRUE_END


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
        pytest.param(
            [],
            Ending(None, (DocumentUnavailable(archive(2), reason="publisher-status"),)),
            1,
            id="4.1 a document that cannot be had",
        ),
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
    assert finish(walk, numbered(10)) == Ending(None, (note,))
    assert len(walk.path) == path


def test_a_chain_that_ends_at_its_limit_is_whole() -> None:
    """R18: a limit counts only when the chain goes on."""
    limits = WalkLimits(documents=3, bytes=3000, entries=3)
    assert finish(a_walk(an_arrival(FEED, archive(2)), limits=limits), numbered(2)) == TRUE_END


def test_stops_when_the_time_is_over() -> None:
    """R18."""
    walk = a_walk(an_arrival(FEED, archive(2)))
    note = LimitReached(archive(2), limit="limits.walk_seconds", value=3600)
    walk.stop(note)
    assert walk.ending == Ending(None, (note,))
    walk.stop(LimitReached(FEED, limit="limits.walk_seconds", value=1))
    walk.arrived(archive(2), an_arrival(archive(2)))
    walk.predicted(archive(2), archive(1))
    assert walk.ending == Ending(None, (note,))
    assert len(walk.path) == 1


def endless(url: str) -> Arrival:
    """A publisher without an end, and without a new entry."""
    number = int(url.rpartition("/")[2])
    return an_arrival(url, archive(number + 1), keys=[a_key("always the same")])


def test_ends_where_nothing_new_comes_any_more() -> None:
    """R17; docs/faults.md row 51."""
    walk = a_walk(an_arrival(FEED, archive(1), keys=[a_key("always the same")]))
    ending = finish(walk, endless)
    assert ending == Ending(None, (NoProgress(archive(50), documents=NO_PROGRESS_DOCUMENTS),))
    assert len(walk.path) == 1 + NO_PROGRESS_DOCUMENTS


def test_ends_at_the_same_place_when_those_documents_are_stored() -> None:
    """R14, R17: a later walk over the same documents learns no more than the first one did."""

    def stored(url: str) -> Arrival:
        number = int(url.rpartition("/")[2])
        return an_arrival(url, archive(number + 1), keys=None, news=number < 3)

    ending = finish(a_walk(an_arrival(FEED, archive(1))), stored)
    assert ending == Ending(None, (NoProgress(archive(52), documents=NO_PROGRESS_DOCUMENTS),))


def test_a_chain_that_ends_after_many_documents_without_news_is_whole() -> None:
    """R17: only a chain that goes on makes no progress."""

    def publisher(url: str) -> Arrival:
        arrival = endless(url)
        return dataclasses.replace(arrival, links={}) if url == archive(50) else arrival

    subscription = an_arrival(FEED, archive(1), keys=[a_key("always the same")])
    assert finish(a_walk(subscription), publisher) == TRUE_END


def wanted_urls(walk: Walk) -> list[str]:
    return [want.url for want in walk.wanted]


def test_guesses_after_two_steps_and_more_with_each_hit() -> None:
    """docs/design.md#look-ahead: a window of two that grows with hits. One guess looks whether the chain goes
    on so far, then those before it are asked for."""
    walk, publisher = a_walk(an_arrival(FEED, archive(41))), numbered(41)
    assert wanted_urls(walk) == [archive(41)]
    tell(walk, archive(41), publisher)
    assert wanted_urls(walk) == [archive(n) for n in (40, 38)]
    assert [want.is_guess for want in walk.wanted] == [False, True]
    tell(walk, archive(38), publisher)
    assert wanted_urls(walk) == [archive(n) for n in (40, 39, 36)]
    tell(walk, archive(40), publisher)
    tell(walk, archive(39), publisher)
    assert wanted_urls(walk) == [archive(n) for n in (37, 36)]
    tell(walk, archive(36), publisher)
    assert wanted_urls(walk) == [archive(n) for n in (37, 28)]
    tell(walk, archive(28), publisher)
    assert wanted_urls(walk) == [archive(n) for n in (37, *range(35, 28, -1), 22)]


def test_a_wrong_guess_ends_the_guessing() -> None:
    """After a guess that the chain did not link to, the walk asks for linked documents alone."""
    walk = a_walk(an_arrival(FEED, archive(41)))
    walk.arrived(archive(41), an_arrival(archive(41), archive(40)))
    walk.arrived(archive(40), an_arrival(archive(40), archive(30)))
    assert wanted_urls(walk) == [archive(30)]
    walk.arrived(archive(30), an_arrival(archive(30), archive(29)))
    assert wanted_urls(walk) == [archive(29)]


def test_a_guess_that_failed_is_not_asked_for_again() -> None:
    """A URL is never wanted again once it was answered."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    walk.arrived(archive(3), an_arrival(archive(3), archive(2)))
    note = DocumentUnavailable(archive(1), reason="publisher-status")
    walk.failed(archive(1), note)
    walk.arrived(archive(2), an_arrival(archive(2), archive(1)))
    assert wanted_urls(walk) == [archive(0)]  # what may stand behind it (R34)
    walk.failed(archive(0), DocumentUnavailable(archive(0), reason="publisher-status"))
    assert walk.ending == Ending(None, (note,))


def test_never_guesses_what_is_stored() -> None:
    """docs/design.md#the-walk: stored documents cost no network."""
    stored = {archive(n) for n in (40, 38, 36)}
    walk = a_walk(an_arrival(FEED, archive(41)), known=stored.__contains__)
    walk.arrived(archive(41), an_arrival(archive(41), archive(40)))
    assert wanted_urls(walk) == [archive(40)]
    walk.arrived(archive(40), an_arrival(archive(40), archive(39)))
    assert wanted_urls(walk) == [archive(39), archive(37), archive(34)]


def test_guesses_stay_within_the_documents_allowed() -> None:
    """R18."""
    limits = dataclasses.replace(LIMITS, documents=4)
    walk = a_walk(an_arrival(FEED, archive(9)), limits=limits)
    walk.arrived(archive(9), an_arrival(archive(9), archive(8)))
    assert wanted_urls(walk) == [archive(8), archive(7)]


def test_what_is_fetched_ahead_counts_towards_the_bytes() -> None:
    """R18; docs/design.md#the-walk."""
    limits = dataclasses.replace(LIMITS, bytes=5000)
    walk = a_walk(an_arrival(FEED, archive(9)), limits=limits)
    walk.arrived(archive(9), an_arrival(archive(9), archive(8)))
    assert wanted_urls(walk) == [archive(8), archive(6)]
    walk.arrived(archive(6), an_arrival(archive(6), archive(5), body_bytes=9000))
    assert wanted_urls(walk) == [archive(8)]


def test_the_first_answer_to_a_url_counts() -> None:
    """R17: a second answer to one URL changes nothing of where the chain leads."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    walk.arrived(archive(3), an_arrival(archive(3), archive(2)))
    walk.arrived(archive(1), an_arrival(archive(1)))
    walk.arrived(archive(1), an_arrival(archive(1), archive(9)))
    walk.arrived(archive(2), an_arrival(archive(2), archive(1)))
    assert walk.ending == TRUE_END


def test_a_document_is_wanted_by_the_spelling_it_is_being_fetched_by() -> None:
    """R17: two spellings of one URL are one document, fetched once."""
    walk = a_walk(an_arrival(FEED, archive(3)))
    walk.arrived(archive(3), an_arrival(archive(3), archive(2)))
    walk.arrived(archive(2), an_arrival(archive(2), "HTTP://O.test/archive/./1"))
    assert walk.wanted[0] == Want(archive(1), is_guess=False)


def test_the_early_link_of_a_document_that_fails_is_dropped() -> None:
    """R0: what only a failed document predicted is not asked for."""
    walk = a_walk(an_arrival(FEED, f"{O}/c"))
    walk.predicted(f"{O}/c", f"{O}/b")
    walk.predicted(f"{O}/b", f"{O}/a")
    walk.failed(f"{O}/b", DocumentUnavailable(f"{O}/b", reason="incomplete"))
    assert wanted_urls(walk) == [f"{O}/c"]


def test_an_early_link_is_wanted_while_its_document_still_arrives() -> None:
    """R0: an early link is a prediction."""
    walk = a_walk(an_arrival(FEED, f"{O}/b"), look_ahead=False)
    walk.predicted(f"{O}/b", f"{O}/a")
    assert walk.wanted == (Want(f"{O}/b", is_guess=False), Want(f"{O}/a", is_guess=True))
    walk.predicted(f"{O}/a", f"{O}/0")
    assert wanted_urls(walk) == [f"{O}/b", f"{O}/a", f"{O}/0"]
    walk.arrived(f"{O}/a", an_arrival(f"{O}/a", f"{O}/0"))
    walk.arrived(f"{O}/b", an_arrival(f"{O}/b", f"{O}/a"))
    assert wanted_urls(walk) == [f"{O}/0"]
    assert urls_of(walk) == [FEED, f"{O}/b", f"{O}/a"]


def test_an_early_link_lets_the_guessing_begin() -> None:
    """R0: look-ahead begins from a predicted link, before the document has arrived whole."""
    walk = a_walk(an_arrival(FEED, archive(41)))
    walk.predicted(archive(41), archive(40))
    assert wanted_urls(walk) == [archive(n) for n in (41, 40, 38)]


def test_an_early_link_back_is_not_wanted() -> None:
    """R0, R17: a predicted link to a document that is on the path already costs no request."""
    walk = a_walk(an_arrival(FEED, f"{O}/b"))
    walk.predicted(f"{O}/b", FEED)
    assert wanted_urls(walk) == [f"{O}/b"]


@pytest.mark.parametrize("newest_first", [True, False])
def test_look_ahead_shortens_a_numbered_chain(newest_first: bool) -> None:
    """docs/design.md#the-walk: walking is a chain of round trips."""
    walk, publisher, rounds = a_walk(an_arrival(FEED, archive(100))), numbered(100), 0
    while walk.ending is None:
        rounds += 1
        for want in walk.wanted if newest_first else walk.wanted[::-1]:
            tell(walk, want.url, publisher)
    assert (walk.ending, len(walk.path)) == (TRUE_END, 101)
    assert rounds <= 22


def test_pages_are_counted_up_to_the_last_one() -> None:
    """They name it: no guess has to look whether it is there."""
    pages = [f"{O}/feed?page={number}" for number in range(1, 20)]
    documents = {
        url: an_arrival(url, older, links={"last": pages[-1]}) for url, older in itertools.pairwise(pages)
    }
    walk = a_walk(documents[pages[0]], trail=PAGES)
    walk.arrived(pages[1], documents[pages[1]])
    assert wanted_urls(walk) == pages[2:5]


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
"""The archives of a chain, and how many requests may go beyond its end."""


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize(("paths", "beyond"), ENDS.values(), ids=ENDS.keys())
def test_at_most_one_request_goes_beyond_the_end_of_a_chain(
    paths: list[str], beyond: int, newest_first: bool
) -> None:
    """docs/design.md#look-ahead: no number tells where a chain ends; nothing stands below 1."""
    urls = [O + path for path in paths]
    older = dict(zip(urls, [*urls[1:], None], strict=True))
    walk, asked = a_walk(an_arrival(FEED, urls[0]), max_window=4), list[str]()
    while walk.ending is None:
        wants = [want.url for want in walk.wanted if want.url not in asked]
        asked += wants
        for url in wants if newest_first else wants[::-1]:
            if url in older:
                walk.arrived(url, an_arrival(url, older[url]))
            else:
                walk.failed(url, DocumentUnavailable(url, reason="publisher-status"))
    assert (walk.ending, len(walk.path)) == (TRUE_END, 1 + len(urls))
    assert len(asked) - len(urls) <= beyond


# Random link graphs.

NUMBERED = [archive(n) for n in range(12)]
TARGETS = [FEED, *NUMBERED, f"{O}/x", f"{O}/y", "http://far.example/1", "HTTP://O.test:80/archive/./5"]


@st.composite
def contents(draw: st.DrawFn, url: str) -> Arrival | Note:
    """What stands at one URL; mostly an archive that leads to the next lower number."""
    if draw(st.integers(0, 15)) == 0:
        return DocumentUnavailable(url, reason="publisher-status")
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
        keys=[a_key(name) for name in draw(st.lists(st.sampled_from("abcdefgh"), max_size=3))] or None,
        news=draw(st.booleans()),
    )


@st.composite
def webs(draw: st.DrawFn) -> Callable[[str], Arrival | Note]:
    """A publisher: contents and redirects."""
    at = {document_key(url): draw(contents(url)) for url in TARGETS}
    moved = draw(st.dictionaries(st.sampled_from(TARGETS), st.sampled_from(TARGETS), max_size=3))
    redirects = {document_key(url): target for url, target in moved.items()}

    def fetch(url: str) -> Arrival | Note:
        final = redirects.get(document_key(url), url)
        content = at.get(document_key(final), DocumentUnavailable("", reason="publisher-status"))
        if isinstance(content, Note):
            return DocumentUnavailable(document_key(url), reason="publisher-status")
        return dataclasses.replace(content, url=url, final_url=final)

    return fetch


def answer_in_any_order(
    walk: Walk, publisher: Callable[[str], Arrival | Note], data: st.DataObject
) -> Mapping[str, int]:
    """Drive a walk with answers in any order, early links right and wrong, dropped guesses kept or not.

    Returns how often each document was fetched to its end.
    """
    fetched: dict[str, int] = {}
    running: list[str] = []
    while walk.ending is None:
        listed = [want.url for want in walk.wanted]
        assert [want.is_guess for want in walk.wanted] == [False] + [True] * (len(listed) - 1)
        assert len({document_key(url) for url in listed}) == len(listed)
        assert not {document_key(url) for url in listed} & fetched.keys()
        if data.draw(st.booleans(), label="cancel what is not listed"):
            running = [url for url in running if url in listed]
        running += [url for url in listed if url not in running]
        url = data.draw(st.sampled_from(running), label="next answer")
        answer = publisher(url)
        if isinstance(answer, Arrival) and data.draw(st.booleans(), label="early link"):
            truth = answer.links.get("prev-archive", archive(3))
            walk.predicted(url, data.draw(st.sampled_from([truth, truth, archive(4)]), label="early link"))
            if data.draw(st.booleans(), label="still arriving"):
                continue
        running.remove(url)
        fetched[document_key(url)] = fetched.get(document_key(url), 0) + 1
        tell(walk, url, publisher)
    return fetched


def places(walk: Walk) -> list[tuple[str, bytes]]:
    return [(document_key(arrival.url), arrival.digest) for arrival in walk.path]


@given(webs(), st.integers(1, 8), st.integers(1, 15_000), st.integers(1, 20), st.data())
def test_every_walk_ends_within_its_limits_and_the_same_with_look_ahead_and_without(
    publisher: Callable[[str], Arrival | Note],
    documents: int,
    body_bytes: int,
    entries: int,
    data: st.DataObject,
) -> None:
    """R17, R18; docs/design.md#the-shape-of-the-code: never asks twice for one URL; look-ahead changes
    nothing."""
    limits = WalkLimits(documents=documents, bytes=body_bytes, entries=entries)
    subscription = dataclasses.replace(an_arrival(FEED, archive(11)), hops=(f"{O}/hop",))
    trail = data.draw(st.sampled_from(TRAILS), label="trail")
    plain = a_walk(subscription, limits=limits, look_ahead=False, trail=trail)
    finish(plain, publisher)
    ahead = a_walk(subscription, limits=limits, max_window=data.draw(st.integers(0, 8)), trail=trail)
    fetched = answer_in_any_order(ahead, publisher, data)

    assert all(times == 1 for times in fetched.values())
    assert places(ahead) == places(plain)
    assert ahead.ending == plain.ending
    assert [ahead.news(url) for url in urls_of(ahead)] == [plain.news(url) for url in urls_of(plain)]
    assert len(ahead.path) <= documents
    assert ahead.path[:-1] == () or sum(each.body_bytes for each in ahead.path[:-1]) < body_bytes
    assert ahead.path[:-1] == () or sum(each.entries for each in ahead.path[:-1]) < entries
    assert len({document_key(arrival.final_url) for arrival in ahead.path}) == len(ahead.path)


IDS = st.lists(st.integers(0, 12), unique=True, max_size=8)


@pytest.mark.parametrize(
    ("stored", "path", "detached", "order", "is_reordered"),
    [
        pytest.param([], [1, 2], [], [1, 2], False, id="the first walk"),
        pytest.param([1, 2], [1, 2], [], [1, 2], False, id="nothing new"),
        pytest.param([1, 2], [3, 1, 2], [], [3, 1, 2], False, id="a new archive in front"),
        pytest.param([1, 2, 3], [4, 2, 3], [1], [4, 2, 3], False, id="the newest one replaced"),
        pytest.param([1, 2, 3], [1, 4, 3], [2], [1, 4, 3], True, id="the middle replaced"),
        pytest.param([1, 2, 3], [3], [1, 2], [3], False, id="the link skips some"),
        pytest.param([1, 2, 3], [1], [], [1, 2, 3], False, id="a dropped tail"),
        pytest.param([1, 2, 3], [4, 1], [], [4, 1, 2, 3], False, id="a dropped tail behind a new archive"),
        pytest.param([1, 2], [3, 4], [], [3, 4, 1, 2], False, id="a chain renamed throughout"),
        pytest.param([1, 2], [], [], [1, 2], False, id="the subscription document lost its link"),
        pytest.param([1, 2, 3], [2, 1, 3], [], [2, 1, 3], True, id="another order"),
        pytest.param([1, 2, 3], [1, 4], [], [1, 4, 2, 3], True, id="another tail"),
    ],
)
def test_a_path_to_the_true_end_replaces_what_stood_in_front_of_the_joint(
    stored: list[int], path: list[int], detached: list[int], order: list[int], is_reordered: bool
) -> None:
    """R15."""
    drift = settle_path(stored, path, is_true_end=True)
    assert (drift.detached, drift.order) == (tuple(detached), tuple(order))
    assert drift.is_reordered is is_reordered


@pytest.mark.parametrize(
    ("stored", "path", "order"),
    [
        pytest.param([1, 2, 3], [4], [4, 1, 2, 3], id="before it rejoins"),
        pytest.param([1, 2, 3], [4, 2], [4, 1, 2, 3], id="after it rejoined"),
        pytest.param([1, 2, 3], [1, 4], [1, 4, 2, 3], id="a new one behind a stored one"),
    ],
)
def test_a_path_that_ended_early_takes_nothing_away(
    stored: list[int], path: list[int], order: list[int]
) -> None:
    """R15, R25."""
    drift = settle_path(stored, path, is_true_end=False)
    assert (drift.detached, drift.order) == ((), tuple(order))


def test_a_full_refresh_takes_the_publishers_chain_for_the_truth() -> None:
    """R14."""
    drift = settle_path([1, 2, 3], [4, 1], is_true_end=True, is_full=True)
    assert (drift.detached, drift.order) == ((2, 3), (4, 1))
    assert settle_path([1, 2], [4], is_true_end=False, is_full=True).detached == ()


@given(IDS, IDS, st.booleans(), st.booleans())
def test_every_document_is_in_the_order_once_or_detached(
    stored: list[int], path: list[int], is_true_end: bool, is_full: bool
) -> None:
    """R25: nothing else takes documents away."""
    drift = settle_path(stored, path, is_true_end=is_true_end, is_full=is_full)
    assert sorted([*drift.order, *drift.detached]) == sorted({*stored, *path})
    assert not set(drift.detached) & set(path)
    assert [document for document in drift.order if document in path] == path
    again = settle_path(drift.order, path, is_true_end=is_true_end, is_full=is_full)
    assert again.detached == () or is_true_end
    if not is_full:
        assert settle_path(drift.order, path, is_true_end=False).order == drift.order
