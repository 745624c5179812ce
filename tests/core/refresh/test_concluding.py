"""The end of a refresh: departures, missing documents and publication."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.refresh.makers import (
    DAY,
    GONE,
    HOUR,
    NOW,
    UNAVAILABLE,
    a_basis,
    a_row,
    a_subscription,
    an_attempt,
    archive,
)
from tests.core.refresh.talking import Conversation, play
from tests.core.refresh.world import incremental
from tests.makers import FEED, an_arrival
from wholefeed.core.model import Family, Kind, Role, State
from wholefeed.core.notes import (
    ArchiveChanged,
    DocumentTruncated,
    DocumentUnavailable,
    End,
    Ending,
    FormatChanged,
    FormatMismatch,
    MementoServed,
    Note,
    PageStale,
)
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.asking import Attach, CoreRequest, Detach, Publish, Rows
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.concluding import conclude
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.refresh.subscription import SubscriptionState

OLDEST = Ending(End.OLDEST)
FIRST = a_row(an_arrival(FEED), 9, role=Role.SUBSCRIPTION, rank=0)
CHAIN = [a_row(an_arrival(archive(n), archive(n - 1)), n, rank=3 - n) for n in (3, 2, 1)]


def unavailable(number: int) -> Note:
    return DocumentUnavailable(archive(number), reason="publisher-status")


def a_partial_end(*notes: Note) -> WalkResult:
    return WalkResult(path=[3], notes=list(notes), ending=Ending(None, notes))


def end(
    walked: WalkResult,
    rows: Sequence[StoredDocument] = (FIRST, *CHAIN),
    *,
    basis: Basis | None = None,
    subscription: SubscriptionState | None = None,
    rows_now: Sequence[StoredDocument] | None = None,
) -> Conversation[None]:
    """End a refresh; `rows_now` are the documents after the walk, if changed."""

    def answer(request: CoreRequest[Any]) -> Any:
        return (rows if rows_now is None else rows_now) if isinstance(request, Rows) else None

    basis = a_basis() if basis is None else basis
    subscription = a_subscription() if subscription is None else subscription
    return play(conclude(basis, rows, subscription, walked), answer)


def publication(ended: Conversation[None]) -> Publish:
    """Return the only publication, made by the last request."""
    (publish,) = ended.of(Publish)
    assert ended.requests[-1] is publish
    return publish


# The feed's state


@pytest.mark.parametrize(
    ("walked", "state"),
    [
        pytest.param(WalkResult(path=[3, 2, 1]), State.COMPLETE, id="a whole chain"),
        pytest.param(WalkResult(state=State.PAGED, path=[3]), State.PAGED, id="all pages"),
        pytest.param(WalkResult(state=State.REMEMBERED), State.REMEMBERED, id="no history"),
        pytest.param(a_partial_end(unavailable(2)), State.PARTIAL, id="no true end"),
        pytest.param(
            WalkResult(path=[3], notes=[unavailable(2)]),
            State.PARTIAL,
            id="something is missing all the same",
        ),
        pytest.param(
            WalkResult(path=[3], notes=[ArchiveChanged(archive(3))]), State.COMPLETE, id="a mere note"
        ),
    ],
)
def test_the_state_says_whether_anything_is_missing(walked: WalkResult, state: State) -> None:
    """R2, R6, R7, R16."""
    published = publication(end(walked))
    assert (published.state, published.ending) == (state, walked.ending)


def test_what_is_noted_of_the_subscription_document_counts() -> None:
    """R3, R16: and comes first."""
    broken_off = DocumentTruncated(FEED, breaks_off=True)
    changed = ArchiveChanged(archive(3))
    walked = WalkResult(path=[3, 2, 1], notes=[changed])
    published = publication(end(walked, subscription=a_subscription(notes=(broken_off,))))
    assert (published.state, published.notes) == (State.PARTIAL, (broken_off, changed))


def test_copies_of_the_subscription_document_are_noted_unless_it_is_all() -> None:
    """R33, R1."""
    copy = dataclasses.replace(FIRST, origin=Origin.MEMENTO, memento="http://archive.test/feed")
    published = publication(end(WalkResult(path=[3, 2, 1]), [copy, *CHAIN]))
    assert (published.notes, published.state) == ((copy.as_memento(),), State.PARTIAL)
    whole = end(WalkResult(), [copy], subscription=a_subscription(kind=Kind.COMPLETE))
    assert publication(whole).notes == ()


def test_other_formats_are_noted_where_something_of_them_is_stored() -> None:
    """R23: with the last time of each; a complete feed lacks none of them."""
    left = {"family": Family.RSS, "rank": None}
    rows = [
        FIRST,
        *CHAIN,
        a_row(an_arrival(archive(5)), 5, detached_at=0.0, **left),
        a_row(an_arrival(archive(6)), 6, detached_at=DAY, **left),
        a_row(an_arrival(archive(7), keys=None), 7, detached_at=9 * DAY, **{**left, "entries": 0}),
    ]
    note = FormatChanged(FEED, found=Family.ATOM, other=Family.RSS, last_had="1970-01-02T00:00:00Z")
    assert publication(end(WalkResult(state=State.PAGED), rows)).notes == (note,)
    assert publication(end(WalkResult(path=[3, 2, 1]), rows)).notes == ()


# Departures


@pytest.mark.parametrize(
    ("changes", "subscription", "basis", "requests"),
    [
        pytest.param({}, {}, {}, [Detach((2,), is_withdrawn=True)], id="R15 what the path passed by"),
        pytest.param({"ending": Ending(None, (unavailable(1),))}, {}, {}, [], id="R25 there is no true end"),
        pytest.param({}, {"arrival": an_arrival(FEED, links=incremental({}))}, {}, [], id="-00 incremental"),
        pytest.param(
            {"notes": [MementoServed(archive(1), copy_url="c", captured="", copies=1)]}, {}, {}, [],
            id="R33 a copy stands on the path",
        ),
        pytest.param({"path": []}, {}, {}, [], id="R25 nothing was walked"),
        pytest.param({"path": [3]}, {}, {}, [], id="R15 a shorter chain is no deletion"),
        pytest.param(
            {"path": [3]}, {}, {"is_full": True}, [Detach((2, 1), is_withdrawn=True)],
            id="R14 but the truth for a full refresh",
        ),
    ],
)  # fmt: skip
def test_what_leaves_a_chain(
    changes: dict[str, Any],
    subscription: dict[str, Any],
    basis: dict[str, Any],
    requests: list[CoreRequest[Any]],
) -> None:
    """R14, R15, R25."""
    walked = WalkResult(**{"path": [3, 1], **changes})
    ended = end(walked, basis=a_basis(**basis), subscription=a_subscription(**subscription))
    assert ended.of(Detach) == requests


def test_what_takes_another_place_is_ranked_anew() -> None:
    """R15, R20: in the order of the path."""
    ended = end(WalkResult(path=[2, 3, 1]))
    assert ended.of(Attach) == [Attach({2: 0, 3: 1, 1: 2})]
    assert end(WalkResult(path=[3, 2, 1])).of(Attach) == []


def test_nothing_leaves_a_feed_of_pages() -> None:
    """R6: their order is compared with the stored one."""
    pages = [dataclasses.replace(row, role=Role.PAGE) for row in CHAIN]
    paged, walked = a_subscription(kind=Kind.PAGED), WalkResult(state=State.PAGED, path=[3, 1])
    ended = end(walked, [FIRST, *pages], subscription=paged)
    assert (ended.of(Detach), ended.of(Attach), len(ended.of(Rows))) == ([], [], 1)
    turned = end(walked, [FIRST, *pages], subscription=paged, rows_now=[FIRST, *pages[::-1]])
    assert turned.of(Attach) == [Attach({3: 0, 2: 1, 1: 2})]


def test_copies_of_earlier_subscription_documents_have_no_place_in_the_chain() -> None:
    """R33, R20: they stand after all others, for any path."""
    url = "http://archive.test/feed"
    capture = a_row(an_arrival(url), 7, role=Role.PAGE, rank=1 << 39, memento=url)
    pages = [dataclasses.replace(row, role=Role.PAGE) for row in CHAIN]
    paged = a_subscription(kind=Kind.PAGED)
    ended = end(WalkResult(state=State.PAGED, path=[1, 2, 3]), [FIRST, *pages, capture], subscription=paged)
    assert ended.of(Attach) == [Attach({1: 0, 2: 1, 3: 2})]


# Missing documents


def missing_after(walked: WalkResult, *before: Attempt, **options: Any) -> dict[str, Attempt]:
    asked = {name: options.pop(name) for name in ("is_forced",) if name in options}
    published = publication(end(walked, basis=a_basis(missing=before, **asked), **options))
    return {attempt.url: attempt for attempt in published.missing or ()}


def test_a_document_that_fails_is_noted_with_its_next_attempt() -> None:
    """R14, R16."""
    walked = a_partial_end(unavailable(2))
    walked.failures = {archive(2): UNAVAILABLE}
    (attempt,) = missing_after(walked).values()
    assert (attempt.reason, attempt.status, attempt.attempts) == ("publisher-status", 503, 1)
    assert attempt.first_at == attempt.last_at == NOW
    assert attempt.next_at > NOW
    earlier = an_attempt(archive(2), wait_seconds=-1.0, first_at=NOW - DAY)
    (again,) = missing_after(walked, earlier).values()
    assert (again.attempts, again.first_at) == (2, NOW - DAY)


def test_a_document_that_was_not_asked_for_is_as_it_was() -> None:
    """R14: its time has not come, or the walk tried others."""
    waits, is_over = an_attempt(archive(2)), an_attempt(archive(2), wait_seconds=-1.0)
    walked = a_partial_end(unavailable(2))
    assert missing_after(walked, waits) == {archive(2): waits}
    assert missing_after(dataclasses.replace(walked, has_tried=False), is_over) == {archive(2): is_over}
    untried = dataclasses.replace(walked, untried=frozenset([archive(2)]))
    assert missing_after(untried, is_over) == {archive(2): is_over}
    assert missing_after(walked, is_over)[archive(2)].attempts == 2
    failed = dataclasses.replace(walked, failures={archive(2): GONE})
    assert missing_after(failed, waits)[archive(2)].attempts == 2, "a trail has asked for it all the same"


def test_a_document_is_missing_for_what_the_note_says() -> None:
    """R23: for its format, even if the last attempt failed otherwise."""
    note = DocumentUnavailable(archive(2), reason=FormatMismatch.slug)
    walked = dataclasses.replace(a_partial_end(note), failures={archive(2): UNAVAILABLE})
    assert missing_after(walked)[archive(2)].reason == FormatMismatch.slug
    other = dataclasses.replace(a_partial_end(FormatMismatch(archive(2), expected="atom", found="rss")))
    (attempt,) = missing_after(other).values()
    assert (attempt.reason, attempt.status, attempt.next_at) == (FormatMismatch.slug, None, NOW + HOUR)


def test_an_older_copy_of_a_page_is_asked_for_with_the_next_refresh() -> None:
    """R6: it came from a cache."""
    (attempt,) = missing_after(a_partial_end(PageStale(archive(2)))).values()
    assert (attempt.reason, attempt.next_at) == (PageStale.slug, NOW + 60)


def test_what_was_missing_is_so_no_longer_when_the_chain_is_whole() -> None:
    """R14."""
    assert missing_after(WalkResult(path=[3, 2, 1]), an_attempt(archive(2))) == {}


BROKEN_OFF = an_attempt(archive(1), reason=DocumentTruncated.slug)


@pytest.mark.parametrize(
    ("attempt", "has_met", "links_now", "stays"),
    [
        pytest.param(an_attempt(archive(1)), False, True, False, id="it was not stored"),
        pytest.param(BROKEN_OFF, True, True, False, id="the walk has come by, and it is whole"),
        pytest.param(BROKEN_OFF, False, True, True, id="the walk has not come by"),
        pytest.param(BROKEN_OFF, False, False, False, id="nothing links to it any more"),
    ],
)
def test_a_stored_document_that_is_not_whole_is_missing_until_the_walk_comes_by(
    attempt: Attempt, has_met: bool, links_now: bool, stays: bool
) -> None:
    """R14: documents before it are missing."""
    walked = a_partial_end(unavailable(5))
    walked.has_met = lambda url: has_met and url == attempt.url
    rows_now = (
        [FIRST, *CHAIN] if links_now else [FIRST, *(dataclasses.replace(row, links={}) for row in CHAIN)]
    )
    found = missing_after(walked, attempt, rows_now=rows_now)
    assert found.get(archive(1)) == (attempt if stays else None)
    assert archive(5) in found
