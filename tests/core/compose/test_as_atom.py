"""Items of a JSON Feed as Atom entries (F2)."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wholefeed.core.compose.as_atom import ConversionContext, convert_head, convert_items
from wholefeed.core.compose.compose import MAX_HEAD_BYTES, synthesize
from wholefeed.core.model import Family, entry_id
from wholefeed.core.parse.documents import parse

ATOM = "{http://www.w3.org/2005/Atom}"
CONTEXT = ConversionContext("https://site.test/feed.json", "en", 1_700_000_000.0)


def convert(item: dict[str, Any], context: ConversionContext = CONTEXT) -> ElementTree.Element:
    made = convert_items([json.dumps(item).encode()], context)
    return ElementTree.fromstring(synthesize(Family.ATOM, "", made))[0]


@pytest.mark.parametrize(
    ("published", "modified", "updated"),
    [
        ("2024-02-03T04:05:06+02:00", None, "2024-02-03T04:05:06+02:00"),
        ("2024-02-03T04:05:06.25Z", "2024-03-01T00:00:00-08:00", "2024-03-01T00:00:00-08:00"),
        ("2024-02-03", None, "2024-02-03T00:00:00Z"),
        ("Sat, 03 Feb 2024 04:05:06 +0200", None, "2024-02-03T02:05:06Z"),
        ("2024-02-03t04:05:06z", None, "2024-02-03T04:05:06Z"),
        ("2024-02-30T00:00:00Z", "nonsense", "2023-11-14T22:13:20Z"),
        (None, 5, "2023-11-14T22:13:20Z"),
    ],
)
def test_a_date_stays_as_it_is_written(published: Any, modified: Any, updated: str) -> None:
    """F2; RFC 4287, 3.3: with its offset if the form is Atom's; an undated item gets the instant given."""
    entry = convert({"id": "1", "date_published": published, "date_modified": modified})
    assert entry.findtext(f"{ATOM}updated") == updated


def test_without_an_id_the_key_of_the_item_is_its_id() -> None:
    """F2, R9: the link; if that identifies nothing, a name made of the content; each the same every time."""
    item = {"title": "A", "url": "https://site.test/a"}
    assert convert(item).findtext(f"{ATOM}id") == "https://site.test/a"
    ambiguous = CONTEXT._replace(ambiguous=frozenset({entry_id("https://site.test/a")}))
    first, other = (convert({**item, "title": title}, ambiguous).findtext(f"{ATOM}id") for title in "AB")
    assert str(first).startswith("urn:wholefeed:entry:")
    assert first != other
    assert convert({"id": 12345678901234567890}).findtext(f"{ATOM}id") == "12345678901234567890"


def test_authors_of_both_versions_count() -> None:
    """F2; JSON Feed 1.1, "Top-level": `authors`, else 1.0's `author`, without doubles or persons unnamed."""
    people = [{"name": "A"}, {"name": "A"}, {"avatar": "x"}, {"url": "mailto:b@site.test"}]
    found = convert({"id": "1", "authors": people, "author": {"name": "C"}}).findall(f"{ATOM}author")
    assert [[each.text for each in person] for person in found] == [["A"], ["b@site.test", "b@site.test"]]
    assert convert({"id": "1", "author": {"name": "C"}}).findtext(f"{ATOM}author/{ATOM}name") == "C"


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_NAMES = (
    *("id", "url", "external_url", "title", "content_html", "content_text", "summary", "image", "language"),
    *("date_published", "date_modified", "authors", "author", "tags", "attachments", "_wholefeed"),
)


@given(st.dictionaries(st.sampled_from(_NAMES), _JSON))
def test_whatever_an_item_is_its_entry_is_read(item: dict[str, Any]) -> None:
    """F2: any values of any type become one entry that a strict parser takes."""
    made = convert_items([json.dumps(item).encode()], CONTEXT)
    document = parse(synthesize(Family.ATOM, "", made), "https://site.test/feed")
    assert len(document.entries) == 1
    assert document.entries[0].updated_at is not None


@example({"title": "&" * 100_000})
@given(st.dictionaries(st.sampled_from((*_NAMES, "description", "home_page_url", "icon", "favicon")), _JSON))
def test_whatever_a_head_is_it_is_read(members: dict[str, Any]) -> None:
    """F2: a head has room for an answer, and one title, id and date."""
    head = convert_head(json.dumps(members)[1:-1].encode(), identifier="urn:x", updated_at=0.0)
    assert len(head.text) <= MAX_HEAD_BYTES
    root = ElementTree.fromstring(b'<feed xmlns="http://www.w3.org/2005/Atom">' + head.text + b"</feed>")
    for name in ("title", "id", "updated"):
        assert len(root.findall(ATOM + name)) == 1
