"""wholefeed.service.documents: what was read a moment ago."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import a_config, running
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import Composed, Part, Rendered, Style, compose, render
from wholefeed.core.model import Family, HeadContext
from wholefeed.service import documents as module
from wholefeed.service.documents import ANY, Fresh, FreshDocuments

STORED = Stored(atom(an_item("a", 1), an_item("b", 2)), "http://o.test/", "application/atom+xml")
DOCUMENT = STORED.parse()
COMPOSED: Composed = compose(STORED)
RENDERED: Rendered = render([Part(DOCUMENT, None)], COMPOSED.style)


def test_what_is_at_hand_says_what_its_body_is_needed_for() -> None:
    """A parsed document serves whichever entries are live, a rendered one only with all of them."""
    documents = FreshDocuments()
    documents.keep(1, Fresh(b"1", document=DOCUMENT))
    documents.keep(2, Fresh(b"2", rendered=RENDERED, style=COMPOSED.style))
    documents.keep(3, Fresh(b"3", composed=COMPOSED))
    assert documents.at_hand() == {1: ANY, 2: 2}


def test_the_oldest_go_when_it_becomes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk through a long feed holds no more of it than the bound; a document put again counts once."""
    documents = FreshDocuments()
    size_bytes = Fresh(b"", document=DOCUMENT).size_bytes
    monkeypatch.setattr(module, "MAX_FRESH_BYTES", 2 * size_bytes)
    for number in (1, 1, 2, 3, 3):
        documents.keep(number, Fresh(b"", document=DOCUMENT))
    assert list(documents.at_hand()) == [2, 3]


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


async def test_who_renders_what_is_here_is_told_before_some_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three quarters of the bound since the last time; what stays from before does not count again."""
    documents = FreshDocuments()
    monkeypatch.setattr(module, "MAX_FRESH_BYTES", 4 * Fresh(b"", document=DOCUMENT).size_bytes)
    growing = asyncio.create_task(documents.grown(60.0))
    for number in range(4):
        await asyncio.sleep(0)
        assert not growing.done()
        documents.keep(number, Fresh(b"", document=DOCUMENT))
    await growing
    documents.keep(5, Fresh(b"", document=DOCUMENT))
    growing = asyncio.create_task(documents.grown(0.01))
    await asyncio.sleep(0)
    assert not growing.done()
    await growing
