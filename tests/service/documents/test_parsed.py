"""wholefeed.service.documents: documents as they were parsed, for the refresh that replaces them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.store.makers import a_document
from wholefeed.core.facts import Stored
from wholefeed.core.model import Role
from wholefeed.service.documents import Fresh, ParsedDocuments, Put
from wholefeed.store.rows import DocumentRow

DOCUMENT = Stored(atom(an_item("a", 1)), "http://o.test/", "application/atom+xml").parse()


def a_put(name: str, role: Role = Role.SUBSCRIPTION, **changes: Any) -> Put:
    return Put(a_document(body=name.encode(), role=role, **changes), Fresh(b"", DOCUMENT))


def row_of(put: Put) -> DocumentRow:
    columns: dict[str, Any] = {each.name: 0 for each in fields(DocumentRow)}
    said = {name: getattr(put.new, name) for name in ("digest", "final_url", "media_type")}
    return DocumentRow(**{**columns, **said})


def test_a_document_is_found_as_it_is_stored() -> None:
    """The same bytes from elsewhere, or called something else, are read anew; and what has been replaced."""
    parsed = ParsedDocuments(1 << 20)
    parsed.keep(a_put("a"))
    row = row_of(a_put("a"))
    assert parsed.find(row) is DOCUMENT
    for change in ({"digest": b""}, {"final_url": "http://else.test/"}, {"media_type": "text/xml"}):
        assert parsed.find(replace(row, **change)) is None
    parsed.drop([row])
    assert (parsed.find(row), parsed.bytes) == (None, 0)


def test_what_was_not_asked_for_longest_goes() -> None:
    """Whatever feeds there are, it comes to no more than its bound."""
    parsed = ParsedDocuments(1 << 20)
    parsed.keep(a_put("a"))
    parsed = ParsedDocuments(2 * parsed.bytes)
    for name in ("a", "b", "b"):
        parsed.keep(a_put(name))
    assert parsed.find(row_of(a_put("a"))) is DOCUMENT
    parsed.keep(a_put("c"))
    assert [name for name in "abc" if parsed.find(row_of(a_put(name)))] == ["a", "c"]


@pytest.mark.parametrize(
    "put", [a_put("a", Role.ARCHIVE), a_put("a", Role.MEMORY, is_settled=True)], ids=["archive", "sealed"]
)
def test_what_stays_as_it_is_is_not_held(put: Put) -> None:
    """An archive document is read again by nobody, nor are remembered copies to which none is added."""
    parsed = ParsedDocuments(1 << 20)
    parsed.keep(put)
    assert parsed.bytes == 0
