"""wholefeed.service.new_documents: new documents in memory, for rendering or replacement."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import rows
from tests.store.makers import a_document
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import Composed, DocumentInMemory, Part, Rendered, Style, compose, render
from wholefeed.core.model import Family, HeadContext, Role
from wholefeed.service import new_documents as module
from wholefeed.service.new_documents import FreshDocuments, ParsedDocuments
from wholefeed.service.storing import read_live_entries
from wholefeed.store.rows import DocumentRow, NewDocument

# Documents put a moment ago


STORED = Stored(atom(an_item("a", 1), an_item("b", 2)), "http://o.test/", "application/atom+xml")
DOCUMENT = STORED.parse()
COMPOSED: Composed = compose(STORED)
RENDERED: Rendered = render([Part(DOCUMENT, None)], COMPOSED.style)


@pytest.mark.parametrize(
    ("style", "fits"),
    [
        (COMPOSED.style, True),
        (Style(Family.ATOM, "0.3", HeadContext()), False),
        (Style(Family.RSS, "2.0", HeadContext()), False),
        (COMPOSED.style._replace(lists_members=True), False),
    ],
)
def test_what_was_rendered_for_another_format_is_not_sent(style: Style, fits: bool) -> None:
    """R23: another format, or another default namespace; R20: or without its list of entries."""
    assert DocumentInMemory(b"", rendered=RENDERED, style=COMPOSED.style).fits(style) is fits


def test_what_leans_on_another_head_is_not_sent() -> None:
    """RFC 4287, 4.2.1: entries without an author inherited that of another head."""
    by_b = Stored(atom(an_item("b", 1), extra="<author><name>B</name></author>"), *STORED[1:])
    style = COMPOSED.style._replace(context=HeadContext(authors=(b"<author><name>A</name></author>",)))
    leaning = DocumentInMemory(b"", rendered=render([Part(by_b, None)], style), style=style)
    assert leaning.fits(style)
    assert not leaning.fits(COMPOSED.style)


async def test_a_feed_is_the_same_whether_anything_is_at_hand_or_not(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R20, R22: byte for byte, for small documents and for those processed elsewhere."""
    url = origin.url("/feed")
    publish_chain(origin, archives=3)
    large = [an_item(f"large{n}", 50 + n, "word " * 300) for n in range(60)]
    origin.publish("/archive/2", atom(*large, an_item("e4", 4), archive=True, prev_archive="/archive/1"))
    found = []
    for max_bytes in (module.MAX_FRESH_BYTES, 0):
        monkeypatch.setattr(module, "MAX_FRESH_BYTES", max_bytes)
        for workers in (0, 1):
            folder = tmp_path / f"{max_bytes}-{workers}"
            folder.mkdir()
            async with running(a_config(folder, limits={"workers": workers})) as proxy:
                reply = await proxy.whole(url)
                found.append((reply.reconstruction, reply.body.partition(b"<entry")[2]))
    assert found[0][1].count(b"large") >= 60
    assert found[1:] == found[:1] * 3


async def test_a_body_is_read_where_nothing_in_memory_serves(proxy: Proxy, origin: Origin) -> None:
    """A parsed document serves any live entries, a rendered one only all of them."""
    origin.publish("/feed", STORED.body)
    await proxy.whole(origin.url("/feed"))
    ((number,),) = rows(proxy.database, "SELECT id FROM document")
    more = replace(RENDERED, entries=RENDERED.entries + 1)
    for in_memory, expected in (
        (None, STORED.body),
        (DocumentInMemory(b"", composed=COMPOSED), STORED.body),
        (DocumentInMemory(b"", document=DOCUMENT), None),
        (DocumentInMemory(b"", rendered=RENDERED, style=COMPOSED.style), None),
        (DocumentInMemory(b"", rendered=more, style=COMPOSED.style), STORED.body),
    ):
        fresh = {} if in_memory is None else {number: in_memory}
        read = partial(read_live_entries, wanted=[number], fresh=fresh)
        found = await proxy.store.store.read(read)
        assert [(list(each.ordinals), each.body) for each in found.values()] == [([0, 1], expected)]


async def test_the_oldest_go_when_it_becomes_too_much_and_who_renders_them_is_told_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At three quarters of the bound; repeated documents do not count again."""
    documents = FreshDocuments()
    monkeypatch.setattr(module, "MAX_FRESH_BYTES", 4 * DocumentInMemory(b"", document=DOCUMENT).size_bytes)
    growing = asyncio.create_task(documents.wait_for_more(60.0))
    for number in (0, 0, 1, 2):
        await asyncio.sleep(0)
        assert not growing.done()
        documents.keep(number, DocumentInMemory(b"", document=DOCUMENT))
    await growing
    documents.keep(5, DocumentInMemory(b"", document=DOCUMENT))
    growing = asyncio.create_task(documents.wait_for_more(0.01))
    await asyncio.sleep(0)
    assert not growing.done()
    await growing
    documents.keep(6, DocumentInMemory(b"", document=DOCUMENT))
    assert list(documents.by_number()) == [1, 2, 5, 6]


# Parsed documents


def a_new(name: str, role: Role = Role.SUBSCRIPTION, **changes: Any) -> NewDocument:
    return a_document(body=name.encode(), role=role, in_memory=DocumentInMemory(b"", DOCUMENT), **changes)


def row_of(new: NewDocument) -> DocumentRow:
    columns: dict[str, Any] = {each.name: 0 for each in fields(DocumentRow)}
    said = {name: getattr(new, name) for name in ("digest", "final_url", "media_type")}
    return DocumentRow(**{**columns, **said})


def test_a_document_is_found_as_it_is_stored() -> None:
    """Other bytes, another name, or a replaced document is read anew.

    Memory does not hold unchanging documents: archive documents, and remembered copies to which none is
    added.
    """
    parsed = ParsedDocuments(1 << 20)
    for new in (
        a_new("b", Role.ARCHIVE),
        a_new("c", Role.MEMORY, is_settled=True),
        a_new("a"),
    ):
        parsed.keep(new)
    row = row_of(a_new("a"))
    assert [parsed.find(each) for each in (row, row_of(a_new("b")), row_of(a_new("c")))] == [
        DOCUMENT,
        None,
        None,
    ]
    for change in ({"digest": b""}, {"final_url": "http://else.test/"}, {"media_type": "text/xml"}):
        assert parsed.find(replace(row, **change)) is None
    parsed.drop([row])
    assert (parsed.find(row), parsed.bytes) == (None, 0)


def test_what_was_not_asked_for_longest_goes() -> None:
    """All feeds together stay within the bound."""
    parsed = ParsedDocuments(1 << 20)
    parsed.keep(a_new("a"))
    parsed = ParsedDocuments(2 * parsed.bytes)
    for name in ("a", "b", "b"):
        parsed.keep(a_new(name))
    assert parsed.find(row_of(a_new("a"))) is DOCUMENT
    parsed.keep(a_new("c"))
    assert [name for name in "abc" if parsed.find(row_of(a_new(name)))] == ["a", "c"]
