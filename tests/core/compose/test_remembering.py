"""wholefeed.core.compose.remembering: remembered copies of a document, and cut texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.feeds import BASE_AT, Item, an_item, atom, atom_03, json_feed, rdf, rss
from wholefeed.core.compose.remembering import (
    SEALED_BYTES,
    SEALED_ENTRIES,
    ReplacedDocument,
    StoredMemory,
    WrittenMemory,
    cut_short,
    remember_copies,
)
from wholefeed.core.facts import CopyDates, Stored
from wholefeed.core.merge import OTHER
from wholefeed.core.model import MEMORY_URL, EntryId, FeedDocument, entry_id
from wholefeed.core.parse.documents import parse

URL = "http://o.test/feed"
FETCHED_AT = BASE_AT + 3600.0 * 24


# Departed entries


def a_feed(*names: str, updated: int = 0, text: str = "") -> FeedDocument:
    return parse(atom(*(an_item(name, text=text) for name in names), updated=updated), URL)


def names(memory: WrittenMemory) -> list[str]:
    text = memory.document.parse().text.decode()
    return [part.partition("</id>")[0] for part in text.split("<id>urn:")[1:]]


def dates_of(memory: WrittenMemory) -> tuple[CopyDates, ...]:
    return memory.facts.entries.copy_dates()


def opened(memory: WrittenMemory) -> StoredMemory:
    return StoredMemory(memory.number, memory.document, dates_of(memory))


def remember(
    old: FeedDocument,
    present: dict[EntryId, int],
    memory: StoredMemory | None = None,
    *,
    latest: float | None = None,
    made_at: float | None = None,
) -> list[WrittenMemory]:
    replaced = ReplacedDocument(
        document=old,
        present=present,
        memory=memory,
        fetched_at=FETCHED_AT,
        next_number=7 if memory is None else memory.number + 2,
        latest=latest,
        made_at=made_at,
    )
    return remember_copies(replaced).written


def left(old: FeedDocument, new: FeedDocument, memory: StoredMemory | None = None) -> list[WrittenMemory]:
    return remember(old, dict.fromkeys((entry.identity for entry in new.entries), OTHER), memory)


def test_what_left_is_remembered_with_the_date_of_its_document() -> None:
    """R8, R10: later departures join the open memory document, each with its own document's date and its
    feed's author. An entry that left twice is stored once.
    """
    old = a_feed("c", "b", "a", updated=5)
    assert left(old, a_feed("d", "c", "b", "a")) == []
    (first,) = left(old, a_feed("d", "c"))
    assert (first.number, names(first)) == (7, ["b", "a"])
    assert {dates.document_updated_at for dates in dates_of(first)} == {old.head.updated_at}
    assert b"<name>Ann</name>" in first.document.body
    later = a_feed("d", "c", "b", updated=6)
    (second,) = left(later, a_feed("d"), opened(first))
    assert (second.number, names(second)) == (7, ["c", "b", "a"])
    own = [later.head.updated_at] * 2 + [old.head.updated_at]
    assert [dates.document_updated_at for dates in dates_of(second)] == own


@pytest.mark.parametrize(
    ("back", "updated", "is_kept"), [(3, 9, True), (4, 1, True), (4, 2, False), (5, 1, False)]
)
def test_a_remembered_copy_gives_way_only_to_one_that_is_preferred(
    back: int, updated: int, is_kept: bool
) -> None:
    """R8, R10: the later instant stays; among equals the later document's, or the last."""
    (first,) = left(parse(atom(an_item("a", 4, "first"), updated=2), URL), a_feed("b"))
    second = left(parse(atom(an_item("a", back, "back"), updated=updated), URL), a_feed("b"), opened(first))
    assert [b"first" in memory.document.body for memory in second] == ([] if is_kept else [False])


def test_a_document_counts_with_no_later_date_than_it_is_given() -> None:
    """R10: a page's date is at most its subscription document's."""
    (memory,) = remember(a_feed("a", updated=9), {}, latest=BASE_AT + 3600.0)
    assert dates_of(memory)[0].document_updated_at == BASE_AT + 3600.0


@pytest.mark.parametrize(("made_at", "is_kept"), [(4.0, True), (5.0, False), (6.0, False)])
def test_a_remembered_copy_gives_way_to_none_that_was_made_before(made_at: float, is_kept: bool) -> None:
    """R10: only the time of fetch dates pages of an adapter."""
    first, back = (parse(rss(an_item("a", 4, text)), URL) for text in ("first", "back"))
    (memory,) = remember(first, {}, made_at=5.0)
    assert [dates.made_at for dates in dates_of(memory)] == [5.0]
    second = remember(back, {}, opened(memory), made_at=made_at)
    assert [b"first" in each.document.body for each in second] == ([] if is_kept else [False])


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
    """docs/design.md#segments: a document becomes one segment."""
    kilobytes = 120
    everyone = [f"e{n}" for n in range(20)]
    memories = left(a_feed(*everyone, text="x" * kilobytes * 1024), a_feed("new"))
    assert [name for memory in reversed(memories) for name in names(memory)] == everyone
    assert [len(dates_of(memory)) for memory in memories] == [8, 8, 4]
    assert [memory.is_sealed for memory in memories] == [True, True, False]
    assert max(len(memory.document.body) for memory in memories) < SEALED_BYTES

    (last,) = memories[2:]
    more = left(a_feed(*"abcdef", text="x" * kilobytes * 1024), a_feed("new"), opened(last))
    assert [len(dates_of(memory)) for memory in more] == [8, 2]
    assert [(memory.number, memory.is_sealed) for memory in more] == [(9, True), (11, False)]


def test_an_entry_that_is_larger_than_a_document_may_be_has_one_to_itself() -> None:
    """R25."""
    (small,) = left(a_feed("b", "a"), a_feed("new"))
    memories = left(a_feed("huge", text="x" * 3 * SEALED_BYTES), a_feed("new"), opened(small))
    assert [names(memory) for memory in memories] == [["b", "a"], ["huge"]]
    assert [memory.is_sealed for memory in memories] == [True, True]


def test_an_instant_that_was_too_far_ahead_never_counts_later() -> None:
    """R10: an instant over a day after the fetch of its document."""
    old = parse(atom(an_item("b", 48), an_item("a", 49)), URL)
    (memory,) = left(old, a_feed("c"))
    assert [dates.updated_at is None for dates in dates_of(memory)] == [False, True]
    (again,) = left(a_feed("c"), a_feed("d"), opened(memory))
    assert [dates.updated_at is None for dates in dates_of(again)] == [False, False, True]


def test_what_is_remembered_is_a_document_to_be_stored() -> None:
    """R8: in the departed entries' format, with its own address and digest; store and parser accept it."""
    for old, media_type in (
        (atom(an_item("a", 1), updated=5), "application/xml; charset=utf-8"),
        (json_feed(an_item("a", 1)), "application/feed+json"),
    ):
        stored = Stored(old, URL, media_type)
        (memory,) = remember(stored.parse(), {})
        assert (memory.document.url, memory.document.media_type) == (f"{MEMORY_URL}7", media_type)
        assert memory.digest == hashlib.sha256(memory.document.body).digest()
        assert memory.facts.family is stored.parse().family
        again = StoredMemory(7, memory.document.parse(), dates_of(memory))
        replaced = ReplacedDocument(
            document=stored, present={}, memory=again, fetched_at=FETCHED_AT, next_number=9
        )
        assert remember_copies(replaced).written == [memory]


# Cut texts

TEXT = "It was a bright cold day in April, and the clocks were striking thirteen."
MAKERS: dict[str, Callable[..., bytes]] = {
    "atom": atom,
    "atom 0.3": atom_03,
    "rss": rss,
    "rdf": rdf,
    "json": json_feed,
}


def cut(
    old: FeedDocument, new: FeedDocument, was_cut: str = "", remembered: FeedDocument | None = None
) -> str:
    found = cut_short(old, new, {entry_id(f"urn:{name}") for name in was_cut}, remembered)
    return "".join(name for name in "abcd" if entry_id(f"urn:{name}") in found)


def texts(*texts: str, form: str = "rss") -> FeedDocument:
    items: list[Item] = [an_item(name, 1, text) for name, text in zip("abcd", texts, strict=False)]
    return parse(MAKERS[form](*items), URL, "application/feed+json" if form == "json" else "")


@pytest.mark.parametrize("form", MAKERS)
def test_a_beginning_with_a_mark_is_cut(form: str) -> None:
    """R10: in each format."""
    assert cut(texts(TEXT, TEXT, form=form), texts(f"{TEXT[:30]}\u2026", TEXT, form=form)) == "a"


@pytest.mark.parametrize(
    "mark",
    [
        *("\u2026", " ...", " [\u2026]", " [...]", " (\u2026)", " &#8230;", " [&amp;hellip;]", " \u00bb"),
        *(" Read more", " Continue reading", " (more)", " \u2192"),
        *(
            '\u2026 &lt;a href="/1"&gt;Continue reading &lt;span&gt;The title&lt;/span&gt;&lt;/a&gt;',
            "&lt;p class='more'&gt;&lt;a&gt;Read the rest of this entry \u00bb&lt;/a&gt;&lt;/p&gt;",
        ),
    ],
)
def test_marks_of_cutting(mark: str) -> None:
    """R10: in generators' spellings, with and without markup, with any white space."""
    whole = f"&lt;p&gt;{TEXT[:30]}&lt;/p&gt;\n&lt;p&gt;{TEXT[30:]}&lt;/p&gt;"
    assert cut(texts(whole), texts(f"{TEXT[:20].strip()}{mark}")) == "a"


@pytest.mark.parametrize(
    "text",
    [TEXT[:30], f"No. {TEXT[:20]}\u2026", f"{TEXT}\u2026", f"{TEXT[:30]}\u2026 {'and so on, ' * 40}", ""],
)
def test_what_its_author_may_have_written_is_not_cut(text: str) -> None:
    """R10: without a mark at the end, no beginning, or not shorter."""
    assert cut(texts(TEXT), texts(text)) == ""


SHORT = f"{TEXT[:30]}\u2026"


@pytest.mark.parametrize(
    ("old", "new", "was_cut", "expected"),
    [
        ((TEXT, TEXT, TEXT), (SHORT, TEXT, TEXT), "", ""),
        ((TEXT, TEXT, TEXT), (SHORT, SHORT, TEXT), "", "ab"),
        ((TEXT, TEXT, TEXT, TEXT), (SHORT, TEXT), "", "a"),
        ((SHORT, SHORT, TEXT), (SHORT, f"New. {SHORT}", TEXT), "ab", "a"),
        ((SHORT,), (TEXT,), "a", ""),
    ],
    ids=["one of three", "two of three", "what is gone does not count", "cut still", "whole again"],
)
def test_half_of_the_entries_in_common_have_to_be_cut(
    old: tuple[str, ...], new: tuple[str, ...], was_cut: str, expected: str
) -> None:
    """R10: except texts that were cut before and are unchanged."""
    assert cut(texts(*old), texts(*new), was_cut) == expected


@pytest.mark.parametrize("form", MAKERS)
def test_what_was_cut_and_has_another_mark_is_cut_still(form: str) -> None:
    """R10: only the text before the mark has to match, wherever the full text is remembered."""
    old = texts(f"{TEXT[:30]}\u2026 Read more (3)", form=form)
    assert cut(old, texts(f"{TEXT[:30]}\u2026 Read more (4)", form=form), "a") == "a"
    assert cut(old, texts(f"{TEXT[:30]}...", form=form), "a") == "a"
    assert cut(old, texts(f"{TEXT[:29]}ings\u2026 Read more (4)", form=form), "a") == ""
    assert cut(old, texts(TEXT[:30], form=form), "a") == ""


@pytest.mark.parametrize("form", MAKERS)
def test_what_was_cut_and_is_longer_is_cut_while_it_is_a_beginning(form: str) -> None:
    """R10: a beginning of the remembered text; the whole text is not cut."""
    old, remembered = texts(f"{TEXT[:30]}\u2026", form=form), texts("Other.", TEXT, form=form)
    swapped = texts("Other.", f"{TEXT[:30]}\u2026", form=form)
    assert cut(swapped, texts("Other.", f"{TEXT[:50]}\u2026", form=form), "b", remembered) == "b"
    assert cut(swapped, texts("Other.", f"So {TEXT[:50]}\u2026", form=form), "b", remembered) == ""
    assert cut(swapped, texts("Other.", TEXT, form=form), "b", remembered) == ""
    assert cut(old, texts(f"{TEXT[:50]}\u2026", form=form), "a") == "", "nothing is remembered of it"
