"""wholefeed.core.compose.saved_documents: saved entries in each format, which the parser reads again (I4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.compose.entries import said_in
from wholefeed.core.compose.saved_documents import write_saved
from wholefeed.core.model import Family, entry_id
from wholefeed.core.parse.documents import parse
from wholefeed.core.saved.saved_entries import SavedEnclosure, SavedEntry

VERSIONS = {Family.ATOM: "1.0", Family.RSS: "2.0", Family.RDF: "1.0", Family.JSON: "1.1"}
TEXTS = st.text(max_size=20)
ENTRIES = st.builds(
    SavedEntry,
    id=TEXTS,
    link=st.just("") | st.from_regex(r"http://s\.test/[a-z]{1,3}", fullmatch=True),
    title=TEXTS,
    author=TEXTS,
    published_at=st.none() | st.floats(1, 2e9),
    updated_at=st.none() | st.floats(1, 2e9),
    content=TEXTS,
    summary=TEXTS,
    base=st.sampled_from(["", "http://s.test/?a&b", 'http://s.test/"']),
    enclosures=st.lists(
        st.builds(SavedEnclosure, TEXTS, TEXTS, st.none() | st.integers(1, 9)), max_size=2
    ).map(tuple),
)


@pytest.mark.parametrize("family", VERSIONS)
@given(entries=st.lists(ENTRIES, min_size=1, max_size=4, unique_by=lambda each: each.id.strip()))
def test_any_text_makes_a_readable_document(family: Family, entries: list[SavedEntry]) -> None:
    """I4: every entry is there, whatever characters a file has."""
    (body,) = write_saved(entries, family, VERSIONS[family], undated_at=1.0)
    document = parse(body, "http://s.test/feed", "")
    assert (document.family, document.notes) == (family, ())
    assert len(document.entries) == len(entries)


@pytest.mark.parametrize("family", VERSIONS)
def test_an_entry_keeps_its_id_link_title_and_dates(family: Family) -> None:
    """I4."""
    entry = SavedEntry(
        id="urn:a",
        link="http://s.test/a",
        title="A & B",
        author="Ann",
        published_at=1e9,
        updated_at=1.1e9,
        content="<p>x</p>",
        summary="s",
        enclosures=(SavedEnclosure("http://s.test/a.mp3", "audio/mpeg", 7),),
    )
    (body,) = write_saved([entry], family, VERSIONS[family], undated_at=1.0)
    document = parse(body, "http://s.test/feed", "")
    (said,) = said_in(document)
    assert (said.id, said.href, said.title) == ("urn:a", "http://s.test/a", "A & B")
    assert said.published_at == (1.1e9 if family is Family.RDF else 1e9)  # dc:date is its only date
    assert document.entries[0].identity == entry_id("urn:a")
    assert document.entries[0].has_content
    assert (b"a.mp3" in body) is (family is not Family.RDF)


def test_entries_without_an_id_get_one_where_the_format_needs_it() -> None:
    """I4, H5: their link, if no other has it, else the same each time; RSS needs none (R9)."""
    entries = [
        SavedEntry(link="http://s.test/1"),
        *(SavedEntry(link="http://s.test/", title=t) for t in "ab"),
    ]
    (body,) = write_saved(entries, Family.ATOM, "1.0", undated_at=1.0)
    (again,) = write_saved(entries, Family.ATOM, "1.0", undated_at=1.0)
    assert body == again
    ids = [said.id for said in said_in(parse(body, "http://s.test/feed", ""))]
    assert ids[0] == "http://s.test/1"
    assert len(set(ids)) == 3
    (item,) = write_saved(entries[:1], Family.RSS, "2.0", undated_at=1.0)
    assert b"<guid" not in item


def test_documents_are_small() -> None:
    """I4: at most a thousand entries, and about 1 MiB."""
    many = [SavedEntry(id=str(number)) for number in range(1500)]
    assert len(list(write_saved(many, Family.RSS, "2.0", undated_at=1.0))) == 2
    large = [SavedEntry(id=str(number), content="x" * 600_000) for number in range(4)]
    assert len(list(write_saved(large, Family.ATOM, "1.0", undated_at=1.0))) == 2
    assert list(write_saved([], Family.ATOM, "1.0", undated_at=1.0)) == []
