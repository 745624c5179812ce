"""Documents from other sources than the publisher's links: imports, lists, and a web archive's mementos."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from tests.core.refresh.makers import (
    DAY,
    LIMITS,
    NOW,
    a_basis,
    a_feed,
    a_fresh,
    a_row,
    a_subscription,
    an_attempt,
    archive,
)
from tests.core.refresh.talking import Conversation, play
from tests.core.refresh.walking import WalkStore
from tests.makers import FEED, a_key, an_arrival
from wholefeed.core.listing.lists import LEAST
from wholefeed.core.model import IMPORT_URL, LIST_URL, Family, Kind, Role, State, entry_id
from wholefeed.core.notes import MementoServed
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.arrivals import FreshDocument, Offer
from wholefeed.core.refresh.asking import (
    Attach,
    CoreRequest,
    Detach,
    Drop,
    FindKnown,
    KeepDocument,
    NoteListing,
    Remove,
    Talk,
)
from wholefeed.core.refresh.basis import Basis, Settings, WalkResult
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.refresh.offered import (
    BEHIND_ALL,
    add_lists,
    note_copies,
    place_added,
    plan_look,
    store_copies,
    take_added,
)
from wholefeed.core.refresh.stored import StoredDocument

COPY = "http://archive.test/20190501/"
IMPORT, LIST = f"{IMPORT_URL}1", f"{LIST_URL}1"
PLAIN = a_row(an_arrival(FEED), 1, role=Role.SUBSCRIPTION, rank=0)


def an_offer(
    url: str, *, is_subscription: bool = False, captured_at: float = 1_000.0
) -> Offer[FreshDocument]:
    copy_url = url if url in (IMPORT, LIST) else f"{COPY}{url}"
    fresh = a_fresh(an_arrival(copy_url, keys=[a_key("old")]))
    origin = {IMPORT: Origin.IMPORT, LIST: Origin.LISTING}.get(url, Origin.MEMENTO)
    return Offer(
        url=url,
        copy_url=copy_url,
        captured_at=captured_at,
        document=fresh,
        is_subscription=is_subscription,
        origin=origin,
    )


def a_page(url: str, number: int = 5, **changes: Any) -> StoredDocument:
    return a_row(an_arrival(url), number, **{"role": Role.PAGE, "rank": 5, **changes})


def converse(talk: Talk[Any], basis: Basis | None = None, known: Sequence[str] = ()) -> Conversation[Any]:
    store = WalkStore()
    store.add(map(a_key, known))
    offers = () if basis is None else basis.offers
    store.come = {offer.copy_url: offer.document for offer in offers}

    def answer(request: CoreRequest[Any]) -> Any:
        if isinstance(request, Remove | NoteListing | Detach):
            return None
        return store.answer(request)

    return play(talk, answer)


# Imports and lists


def test_imports_and_lists_are_stored_detached() -> None:
    """I1, H7: a list's page that belongs to the feed keeps its place."""
    basis = a_basis(offers=[an_offer(IMPORT), an_offer(LIST), an_offer(archive(1))])
    played = converse(take_added(basis, [a_page(LIST)]), basis)
    found = [(each.url, each.placement.role, each.placement.rank) for each in played.of(KeepDocument)]
    assert found == [(IMPORT, Role.PAGE, None), (LIST, Role.PAGE, 5)]
    assert played.result is True


def test_what_is_taken_back_is_removed() -> None:
    """I1, I2."""
    entry = entry_id("gone")
    basis = a_basis(removes=(IMPORT,), forgets=(entry,))
    played = converse(take_added(basis, [PLAIN, a_page(IMPORT)]))
    assert played.requests == [Remove([5], (entry,))]
    assert played.result is True


def test_nothing_is_stored_where_nothing_is_offered() -> None:
    """I1: mementos come later, once the missing documents are known."""
    basis = a_basis(offers=[an_offer(archive(1))], removes=(f"{IMPORT_URL}2",))
    played = converse(take_added(basis, [PLAIN]), basis)
    assert (played.result, played.requests) == (False, [])


@pytest.mark.parametrize(
    ("changes", "options", "requests"),
    [
        pytest.param({"rank": None}, {}, [Attach({5: BEHIND_ALL - int(NOW)})], id="an import joins"),
        pytest.param({}, {}, [], id="and stays"),
        pytest.param({}, {"state": State.COMPLETE}, [Detach([5])], id="a complete feed has none"),
        pytest.param({}, {"kind": Kind.COMPLETE}, [Detach([5])], id="nor one that says so"),
        pytest.param({"rank": None}, {"state": State.COMPLETE}, [], id="there is none to leave"),
        pytest.param({"rank": None, "family": Family.RSS}, {}, [], id="another format waits"),
        pytest.param({"url": LIST, "rank": None}, {"has_lists": True}, [Attach({5: BEHIND_ALL})], id="lists"),
        pytest.param({"url": LIST}, {"has_lists": False}, [Detach([5])], id="lists are none of it"),
        pytest.param({"url": LIST, "rank": None}, {}, [], id="lists are as they were"),
        pytest.param({"url": archive(1), "rank": None}, {"state": State.COMPLETE}, [], id="another document"),
    ],
)
def test_what_was_added_stands_behind_all_else(
    changes: dict[str, Any], options: dict[str, Any], requests: list[CoreRequest[Any]]
) -> None:
    """I1, H7: newest import first."""
    values = {"family": Family.ATOM, "kind": Kind.PLAIN, "state": State.REMEMBERED, **options}
    played = converse(place_added([a_page(**{"url": IMPORT, **changes})], **values))
    assert played.requests == requests


# Copies of a web archive (R33)


def offer_copies(
    *offers: Offer[FreshDocument],
    rows: Sequence[StoredDocument] = (PLAIN,),
    kind: Kind = Kind.ARCHIVED,
    known: Sequence[str] = (),
) -> Conversation[Any]:
    basis = a_basis(offers=offers)
    return converse(store_copies(basis, rows, a_subscription(kind=kind)), basis, known)


@pytest.mark.parametrize(("kind", "role"), [(Kind.ARCHIVED, Role.ARCHIVE), (Kind.PAGED, Role.PAGE)])
def test_a_copy_is_stored_until_the_walk_misses_its_document(kind: Kind, role: Role) -> None:
    """R33."""
    played = offer_copies(an_offer(archive(1)), kind=kind)
    (keep,) = played.of(KeepDocument)
    assert (keep.url, keep.placement.url) == (COPY + archive(1), archive(1))
    assert (keep.placement.role, keep.placement.rank) == (role, None)
    assert played.result is True


def test_a_copy_of_what_is_there_is_dropped() -> None:
    """R33: the publisher's own document is better; another memento is not."""
    own = a_row(an_arrival(archive(1)), 2)
    played = offer_copies(an_offer(archive(1)), rows=[PLAIN, own])
    assert (played.result, played.requests) == (False, [Drop(COPY + archive(1))])
    other = dataclasses.replace(own, origin=Origin.MEMENTO, memento=f"{COPY}earlier")
    assert offer_copies(an_offer(archive(1)), rows=[PLAIN, other]).result is True


def test_a_copy_of_the_subscription_document_is_a_page_behind_all_others() -> None:
    """R33: newest first, if it has an entry of its own."""
    offer = an_offer(FEED, is_subscription=True, captured_at=2_000.0)
    played = offer_copies(offer)
    assert [type(each) for each in played.requests] == [FindKnown, KeepDocument]
    (keep,) = played.of(KeepDocument)
    assert (keep.placement.url, keep.placement.role) == (offer.copy_url, Role.PAGE)
    assert keep.placement.rank == BEHIND_ALL - 2_000
    played = offer_copies(offer, known=["old"])
    assert (played.result, played.requests[1:]) == (False, [Drop(offer.copy_url)])


def test_a_copy_that_serves_as_the_subscription_document_is_a_page_too() -> None:
    """R33: with any entries, to stay when the publisher is back."""
    offer = an_offer(FEED, is_subscription=True)
    serving = dataclasses.replace(PLAIN, origin=Origin.MEMENTO, memento=offer.copy_url)
    played = offer_copies(offer, rows=[serving], known=["old"])
    assert [type(each) for each in played.requests] == [KeepDocument]


def test_an_import_is_no_copy() -> None:
    """I1."""
    assert offer_copies(an_offer(IMPORT)).requests == []


def a_capture(number: int, at: float, **changes: Any) -> StoredDocument:
    url = f"{COPY}{number}"
    return a_page(url, number, memento=url, fetched_at=at, **changes)


def test_copies_of_the_subscription_document_are_noted_together() -> None:
    """R33: those with entries for readers."""
    basis = a_basis()
    captures = [a_capture(7, 0.0), a_capture(8, DAY), a_capture(9, 2 * DAY, live_bytes=0)]
    captures.append(a_capture(10, 3 * DAY, rank=None))
    (note,) = note_copies(basis, [PLAIN, *captures, a_page(IMPORT, memento="kept")])
    assert note == MementoServed(
        FEED, copy_url=f"{COPY}8", captured="1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z", copies=2
    )
    (note,) = note_copies(basis, captures[:1])
    assert note.facts["captured"] == "1970-01-01T00:00:00Z"
    assert note_copies(basis, [PLAIN]) == []
    serving = dataclasses.replace(PLAIN, origin=Origin.MEMENTO, memento=COPY)
    assert note_copies(basis, [serving]) == [serving.as_memento()]


# Lists in a publisher's pages (H7, H8)

LISTING = ListingState(family=Family.ATOM, looked_at=NOW)
LISTED = a_page(LIST)
WALKED = WalkResult(state=State.REMEMBERED)


@pytest.mark.parametrize(
    ("listing", "rows", "is_listed"),
    [
        pytest.param(LISTING, [LISTED], True, id="a page lists the history"),
        pytest.param(LISTING, [], False, id="none does"),
        pytest.param(LISTING, [dataclasses.replace(LISTED, entries=0)], False, id="it is empty"),
        pytest.param(LISTING, [dataclasses.replace(LISTED, family=Family.RSS)], False, id="another format"),
        pytest.param(
            dataclasses.replace(LISTING, family=Family.RSS), [LISTED], False, id="looked at in another format"
        ),
    ],
)
def test_lists_are_the_history_of_a_feed(
    listing: ListingState, rows: list[StoredDocument], is_listed: bool
) -> None:
    """H7."""
    basis = a_basis(feed=a_feed(listing=listing.written()))
    walked = add_lists(basis, rows, a_subscription(), WALKED)
    assert (walked is WALKED) is not is_listed
    assert walked.state is (State.LISTED if is_listed else State.REMEMBERED)
    asked = a_basis(listing=listing)
    assert add_lists(asked, rows, a_subscription(), WALKED).state is walked.state


def looked(at: float, family: Family = Family.ATOM) -> dict[str, Any]:
    """Fields of a feed after a look at its publisher's pages."""
    return {"listing": ListingState(family=family, looked_at=at).written()}


LATER = {"list_at": NOW + 2 * DAY}
ENOUGH = dataclasses.replace(PLAIN, entries=LEAST)


@pytest.mark.parametrize(
    ("feed", "options", "noted"),
    [
        pytest.param({}, {}, [NOW], id="nobody has looked"),
        pytest.param({"list_at": NOW + DAY}, {}, [], id="there is a time"),
        pytest.param({"list_at": NOW + DAY}, {"is_plain": False}, [None], id="something else brings it"),
        pytest.param({"list_at": NOW + DAY}, {"rows": [PLAIN]}, [None], id="too few entries to compare"),
        pytest.param(LATER | looked(NOW - 2 * DAY), {"has_gap": True}, [NOW], id="entries went by unseen"),
        pytest.param(LATER | looked(NOW), {"has_gap": True}, [NOW + DAY], id="a day after the last look"),
        pytest.param(LATER | looked(NOW), {}, [], id="no entry went by unseen"),
        pytest.param(LATER | looked(NOW, Family.RSS), {}, [NOW], id="the feed has another format"),
    ],
)
def test_when_pages_are_looked_at_next(
    feed: dict[str, Any], options: dict[str, Any], noted: list[Any]
) -> None:
    """H1, H8."""
    basis = a_basis(feed=a_feed(**feed), settings=Settings(limits=LIMITS))
    rows = options.get("rows", [ENOUGH])
    is_plain = options.get("is_plain", True)
    subscription = a_subscription(kind=Kind.PLAIN, has_gap=options.get("has_gap", False))
    missing = [an_attempt(archive(1))]
    played = converse(plan_look(basis, rows, subscription, is_plain=is_plain, missing=missing))
    assert [each.next_at for each in played.of(NoteListing)] == noted


def test_a_look_that_was_made_is_noted_with_the_next() -> None:
    """H8."""
    basis = a_basis(listing=LISTING)
    played = converse(plan_look(basis, [ENOUGH], a_subscription(), is_plain=True, missing=[]))
    (noted,) = played.of(NoteListing)
    assert (noted.listing, noted.next_at) == (LISTING.written(), LISTING.next_at([], now=NOW))
