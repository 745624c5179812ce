"""wholefeed.service.documents: what is at hand of documents, for whoever renders or replaces them."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import a_config, running
from tests.store.makers import a_document
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import Composed, Part, Rendered, Style, compose, render
from wholefeed.core.model import Family, HeadContext, Role
from wholefeed.service import documents as module
from wholefeed.service.documents import ANY, Fresh, FreshDocuments, ParsedDocuments, Put, at_hand
from wholefeed.store.rows import DocumentRow

# What was put a moment ago


STORED = Stored(atom(an_item("a", 1), an_item("b", 2)), "http://o.test/", "application/atom+xml")
DOCUMENT = STORED.parse()
COMPOSED: Composed = compose(STORED)
RENDERED: Rendered = render([Part(DOCUMENT, None)], COMPOSED.style)


def test_what_is_at_hand_says_what_its_body_is_needed_for() -> None:
    """A parsed document serves whichever entries are live, a rendered one only with all of them."""
    rendered = Fresh(b"2", rendered=RENDERED, style=COMPOSED.style)
    found = {1: Fresh(b"1", document=DOCUMENT), 2: rendered, 3: Fresh(b"3", composed=COMPOSED)}
    assert at_hand(found) == {1: ANY, 2: 2}


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
    """R23: another format, or another default namespace; R20: or without word of which entries it has."""
    assert Fresh(b"", rendered=RENDERED, style=COMPOSED.style).fits(style) is fits


def test_what_leans_on_another_head_is_not_sent() -> None:
    """RFC 4287, 4.2.1: entries without an author got that of their document, since the head had another."""
    by_b = Stored(atom(an_item("b", 1), extra="<author><name>B</name></author>"), *STORED[1:])
    style = COMPOSED.style._replace(context=HeadContext(authors=(b"<author><name>A</name></author>",)))
    leaning = Fresh(b"", rendered=render([Part(by_b, None)], style), style=style)
    assert leaning.fits(style)
    assert not leaning.fits(COMPOSED.style)


async def test_a_feed_is_the_same_whether_anything_is_at_hand_or_not(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R20, R22: byte for byte, of small documents and of those that are worked on elsewhere."""
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


async def test_the_oldest_go_when_it_becomes_too_much_and_who_renders_them_is_told_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At three quarters of the bound since the last time; what stays from before does not count again, nor
    does a document that is put again."""
    documents = FreshDocuments()
    monkeypatch.setattr(module, "MAX_FRESH_BYTES", 4 * Fresh(b"", document=DOCUMENT).size_bytes)
    growing = asyncio.create_task(documents.grown(60.0))
    for number in (0, 0, 1, 2):
        await asyncio.sleep(0)
        assert not growing.done()
        documents.keep(number, Fresh(b"", document=DOCUMENT))
    await growing
    documents.keep(5, Fresh(b"", document=DOCUMENT))
    growing = asyncio.create_task(documents.grown(0.01))
    await asyncio.sleep(0)
    assert not growing.done()
    await growing
    documents.keep(6, Fresh(b"", document=DOCUMENT))
    assert list(documents.at_hand()) == [1, 2, 5, 6]


# What was parsed


def a_put(name: str, role: Role = Role.SUBSCRIPTION, **changes: Any) -> Put:
    return Put(a_document(body=name.encode(), role=role, **changes), Fresh(b"", DOCUMENT))


def row_of(put: Put) -> DocumentRow:
    columns: dict[str, Any] = {each.name: 0 for each in fields(DocumentRow)}
    said = {name: getattr(put.new, name) for name in ("digest", "final_url", "media_type")}
    return DocumentRow(**{**columns, **said})


def test_a_document_is_found_as_it_is_stored() -> None:
    """The same bytes from elsewhere, or called something else, are read anew; and what has been replaced.

    Not held is what stays as it is: archive documents, and remembered copies to which none is added.
    """
    parsed = ParsedDocuments(1 << 20)
    for put in (a_put("b", Role.ARCHIVE), a_put("c", Role.MEMORY, is_settled=True), a_put("a")):
        parsed.keep(put)
    row = row_of(a_put("a"))
    assert [parsed.find(each) for each in (row, row_of(a_put("b")), row_of(a_put("c")))] == [
        DOCUMENT,
        None,
        None,
    ]
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
