"""wholefeed.core.jobs.rendering: what is sent of documents."""

from __future__ import annotations

from tests.feeds import an_item, atom
from wholefeed.core.compose.deflate import inflate
from wholefeed.core.jobs.rendering import Part, Rendered, Stored, compose, render


def a_stored(body: bytes) -> Stored:
    return Stored(body, "http://example.org/feed", "application/atom+xml")


def text(rendered: Rendered) -> str:
    sealed = rendered.sealed
    return inflate(sealed.block, sealed.length, sealed.crc32).decode() if sealed.length else ""


def places(rendered: Rendered, *names: str) -> list[int]:
    return [text(rendered).find(f"text of {name}<") for name in names]


NEWER = a_stored(atom(an_item("a", 1), an_item("b", 9), an_item("c", 5)))
OLDER = a_stored(atom(an_item("x", 7), an_item("y", 8)))


def test_live_entries_stand_newest_first_in_each_document() -> None:
    """R20; the documents themselves stay in their order."""
    rendered = render([Part(NEWER, (0, 1, 2)), Part(OLDER, None)], compose(NEWER).style)
    found = places(rendered, "b", "c", "a", "y", "x")
    assert found == sorted(found)
    assert min(found) >= 0
    assert rendered.entries == 5


def test_entries_that_are_not_live_are_left_out() -> None:
    """R10; what an older parser counted beyond the last entry is none."""
    rendered = render([Part(NEWER, (0, 2, 17))], compose(NEWER).style)
    assert [at < 0 for at in places(rendered, "a", "b", "c")] == [False, True, False]
    assert rendered.entries == 2


def test_nothing_live_is_an_empty_segment() -> None:
    """No entry, no date, no byte."""
    rendered = render([Part(NEWER, ())], compose(NEWER).style)
    assert (rendered.entries, rendered.newest_at, rendered.oldest_at) == (0, None, None)
    assert rendered.sealed.length == 0


def test_what_leans_on_the_head_says_so() -> None:
    """An entry without an author gets its own document's where the head has another (RFC 4287, 4.2.1)."""
    by_a = a_stored(atom(an_item("a", 1), extra="<author><name>A</name></author>"))
    by_b = a_stored(atom(an_item("b", 1), extra="<author><name>B</name></author>"))
    style = compose(by_a).style
    rendered = render([Part(by_b, None)], style)
    assert rendered.context == style.digest
    assert "<name>B</name>" in text(rendered)
    assert style.digest != compose(by_b).style.digest
