from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.feeds import BASE_AT, an_item, atom, rss
from wholefeed.core.compose.compose import SEALED_BYTES, SEALED_ENTRIES, MemoryDocument, OpenMemory, remember
from wholefeed.core.merge import OTHER
from wholefeed.core.model import FeedDocument
from wholefeed.core.parse.documents import parse

URL = "http://o.test/feed"
FETCHED_AT = BASE_AT + 3600.0 * 24


def a_feed(*names: str, updated: int = 0, text: str = "") -> FeedDocument:
    return parse(atom(*(an_item(name, text=text) for name in names), updated=updated), URL)


def names(memory: MemoryDocument) -> list[str]:
    text = parse(memory.text, "urn:wholefeed:memory:1").text.decode()
    return [part.partition("</id>")[0] for part in text.split("<id>urn:")[1:]]


def opened(memory: MemoryDocument) -> OpenMemory:
    return OpenMemory(memory.number, parse(memory.text, "urn:wholefeed:memory:1"), memory.dates)


def left(old: FeedDocument, new: FeedDocument, memory: OpenMemory | None = None) -> list[MemoryDocument]:
    present = dict.fromkeys((entry.identity for entry in new.entries), OTHER)
    next_number = 7 if memory is None else memory.number + 2
    return remember(old, present, memory, fetched_at=FETCHED_AT, next_number=next_number)


def test_nothing_is_written_when_no_entry_left() -> None:
    """R8: a subscription document that only gained entries leaves nothing to remember, so nothing is
    stored."""
    assert left(a_feed("b", "a"), a_feed("c", "b", "a")) == []


def test_what_left_is_remembered_with_the_date_of_its_document() -> None:
    """R8, R10."""
    old = a_feed("c", "b", "a", updated=5)
    (memory,) = left(old, a_feed("d", "c"))
    assert (memory.number, names(memory)) == (7, ["b", "a"])
    assert {dates.document_updated_at for dates in memory.dates} == {old.head.updated_at}


def test_the_open_document_grows_at_its_top() -> None:
    """R8, R10: later leavers join the open memory document in front, each with its own document's date."""
    (first,) = left(a_feed("b", "a", updated=1), a_feed("b"))
    (second,) = left(a_feed("c", "b", updated=2), a_feed("c"), opened(first))
    assert (second.number, names(second)) == (7, ["b", "a"])
    assert second.dates[0].document_updated_at != second.dates[1].document_updated_at


def test_a_newer_copy_takes_the_place_of_a_remembered_one() -> None:
    """R8: an entry that came back and left again is remembered once, in its newest copy."""
    (first,) = left(a_feed("b", "a"), a_feed("b"))
    (second,) = left(a_feed("a", "b"), a_feed("b"), opened(first))
    assert names(second) == ["a"]


@pytest.mark.parametrize(
    ("back", "updated", "is_kept"), [(3, 9, True), (4, 1, True), (4, 2, False), (5, 1, False)]
)
def test_a_remembered_copy_gives_way_only_to_one_that_is_preferred(
    back: int, updated: int, is_kept: bool
) -> None:
    """R8, R10: the copy of the later instant stays, of equal ones that of the later document, or the last."""
    (first,) = left(parse(atom(an_item("a", 4, "first"), updated=2), URL), a_feed("b"))
    second = left(parse(atom(an_item("a", back, "back"), updated=updated), URL), a_feed("b"), opened(first))
    assert [b"first" in memory.text for memory in second] == ([] if is_kept else [False])


def test_a_document_counts_with_no_later_date_than_it_is_given() -> None:
    """R10: that of a page is at most its subscription document's."""
    (memory,) = remember(a_feed("a", updated=9), {}, None, fetched_at=FETCHED_AT, latest=BASE_AT + 3600.0)
    assert memory.dates[0].document_updated_at == BASE_AT + 3600.0


@pytest.mark.parametrize(("made_at", "is_kept"), [(4.0, True), (5.0, False), (6.0, False)])
def test_a_remembered_copy_gives_way_to_none_that_was_made_before(made_at: float, is_kept: bool) -> None:
    """R10: of pages that an adapter asked for, which nothing else dates."""
    first, back = (parse(rss(an_item("a", 4, text)), URL) for text in ("first", "back"))
    (memory,) = remember(first, {}, None, fetched_at=FETCHED_AT, made_at=5.0)
    assert [dates.made_at for dates in memory.dates] == [5.0]
    second = remember(back, {}, opened(memory), fetched_at=FETCHED_AT, made_at=made_at)
    assert [b"first" in each.text for each in second] == ([] if is_kept else [False])


def test_an_entry_without_an_author_takes_its_documents_along() -> None:
    """R22: a remembered Atom entry keeps the author that its document's head gave it."""
    (memory,) = left(a_feed("a"), a_feed("b"))
    assert b"<name>Ann</name>" in memory.text


@settings(deadline=None)
@given(st.integers(1, 3 * SEALED_ENTRIES))
def test_full_documents_are_sealed_and_nothing_is_lost(count: int) -> None:
    """R25."""
    everyone = [f"e{n}" for n in range(count)]
    memories = left(a_feed(*everyone), a_feed("new"))
    assert [name for memory in reversed(memories) for name in names(memory)] == everyone
    assert [memory.is_sealed for memory in memories[:-1]] == [True] * (len(memories) - 1)
    assert [memory.number for memory in memories] == list(range(7, 7 + len(memories)))


def test_a_document_is_full_at_a_mebibyte_too() -> None:
    """docs/design.md#segments: one segment is made of it."""
    kilobytes = 120
    everyone = [f"e{n}" for n in range(20)]
    memories = left(a_feed(*everyone, text="x" * kilobytes * 1024), a_feed("new"))
    assert [name for memory in reversed(memories) for name in names(memory)] == everyone
    assert [len(memory.dates) for memory in memories] == [8, 8, 4]
    assert [memory.is_sealed for memory in memories] == [True, True, False]
    assert max(len(memory.text) for memory in memories) < SEALED_BYTES

    (last,) = memories[2:]
    more = left(a_feed(*"abcdef", text="x" * kilobytes * 1024), a_feed("new"), opened(last))
    assert [len(memory.dates) for memory in more] == [8, 2]
    assert [(memory.number, memory.is_sealed) for memory in more] == [(9, True), (11, False)]


def test_an_entry_that_is_larger_than_a_document_may_be_has_one_to_itself() -> None:
    """R25."""
    (small,) = left(a_feed("b", "a"), a_feed("new"))
    memories = left(a_feed("huge", text="x" * 3 * SEALED_BYTES), a_feed("new"), opened(small))
    assert [names(memory) for memory in memories] == [["b", "a"], ["huge"]]
    assert [memory.is_sealed for memory in memories] == [True, True]


def test_an_instant_that_was_too_far_ahead_never_counts_later() -> None:
    """R10: more than a day after its document was fetched."""
    old = parse(atom(an_item("b", 48), an_item("a", 49)), URL)
    (memory,) = left(old, a_feed("c"))
    assert [dates.updated_at is None for dates in memory.dates] == [False, True]
    (again,) = left(a_feed("c"), a_feed("d"), opened(memory))
    assert [dates.updated_at is None for dates in again.dates] == [False, False, True]
